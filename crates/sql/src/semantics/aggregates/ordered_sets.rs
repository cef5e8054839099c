//! `mode() WITHIN GROUP (ORDER BY x)`: the value that is there most often; of several the first in the order.
use std::collections::HashMap;
use std::mem::size_of_val;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, Field, FieldRef, SortOptions};
use datafusion::arrow::compute::sort_to_indices;
use datafusion::common::ScalarValue;
use datafusion::common::utils::SingleRowListArrayBuilder;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::format_state_name;
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility};

/// The function.
pub(crate) fn mode() -> AggregateUDF {
    AggregateUDF::from(Mode(Signature::any(1, Volatility::Immutable)))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Mode(Signature);

impl AggregateUDFImpl for Mode {
    fn name(&self) -> &str {
        "mode"
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        types.first().cloned().ok_or_else(without_values)
    }

    fn return_field(&self, args: &[FieldRef]) -> Result<FieldRef> {
        let field = args.first().ok_or_else(without_values)?;
        Ok(Arc::new(field.as_ref().clone().with_nullable(true)))
    }

    fn supports_within_group_clause(&self) -> bool {
        true
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let list = |part: &str, item: DataType| -> FieldRef {
            let item = Arc::new(Field::new_list_field(item, true));
            Arc::new(Field::new(format_state_name(args.name, part), DataType::List(item), true))
        };
        let of = args.input_fields.first().ok_or_else(without_values)?.data_type().clone();
        Ok(vec![list("values", of), list("counts", DataType::Int64)])
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let of = args.expr_fields.first().ok_or_else(without_values)?.data_type().clone();
        let options = args.order_bys.first().map(|key| key.options).unwrap_or_default();
        Ok(Box::new(Counts { of, options, counts: HashMap::new() }))
    }
}

fn without_values() -> DataFusionError {
    DataFusionError::Internal("mode of nothing".to_owned())
}

/// How often each value is there.
#[derive(Debug)]
struct Counts {
    of: DataType,
    options: SortOptions,
    counts: HashMap<ScalarValue, i64>,
}

impl Counts {
    fn add(&mut self, values: &ArrayRef, count: impl Fn(usize) -> i64) -> Result<()> {
        for at in (0..values.len()).filter(|at| !values.is_null(*at)) {
            let value = ScalarValue::try_from_array(values, at)?.compacted();
            *self.counts.entry(value).or_default() += count(at);
        }
        Ok(())
    }

    /// The values, and how often each is there.
    fn columns(&self) -> Result<(ArrayRef, Vec<i64>)> {
        let values = match self.counts.is_empty() {
            true => arrow_array::new_empty_array(&self.of),
            false => ScalarValue::iter_to_array(self.counts.keys().cloned())?,
        };
        Ok((values, self.counts.values().copied().collect()))
    }
}

impl Accumulator for Counts {
    fn update_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        let values = columns.first().ok_or_else(without_values)?;
        self.add(values, |_| 1)
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let [values, counts] = states else { return Err(without_values()) };
        let (values, counts) = (values.as_list::<i32>(), counts.as_list::<i32>());
        for row in (0..values.len()).filter(|row| !values.is_null(*row)) {
            let counts = counts.value(row);
            let counts = counts.as_primitive::<Int64Type>();
            self.add(&values.value(row), |at| counts.value(at))?;
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let (values, counts) = self.columns()?;
        let order = sort_to_indices(&values, Some(self.options), None)?;
        let mut most: Option<usize> = None;
        for at in order.values().iter().map(|at| *at as usize) {
            if most.is_none_or(|most| counts[at] > counts[most]) {
                most = Some(at);
            }
        }
        match most {
            Some(at) => ScalarValue::try_from_array(&values, at),
            None => ScalarValue::try_from(&self.of),
        }
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let (values, counts) = self.columns()?;
        let counts: ArrayRef = Arc::new(arrow_array::Int64Array::from(counts));
        let list = |items: ArrayRef| SingleRowListArrayBuilder::new(items).build_list_scalar();
        Ok(vec![list(values), list(counts)])
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.counts.keys().map(|value| value.size() + size_of::<i64>()).sum::<usize>()
    }
}
