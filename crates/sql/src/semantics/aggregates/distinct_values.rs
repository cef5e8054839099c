//! An aggregate of the distinct ones of its values, which are numbers without a fraction or of one number of decimals.
use std::collections::BTreeSet;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Decimal128Type;
use arrow_array::{Array, ArrayRef, Decimal128Array};
use arrow_cast::cast;
use arrow_schema::{DataType, Field, FieldRef};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::Accumulator;
use datafusion::logical_expr::utils::format_state_name;

/// Keeps values, each once, and gives them to another aggregate in the end.
#[derive(Debug)]
pub(crate) struct DistinctValues {
    values: BTreeSet<i128>,
    /// A decimal.
    of: DataType,
    then: Box<dyn Accumulator>,
}

/// The state: a list of the values.
pub(crate) fn field(name: &str, of: DataType) -> FieldRef {
    Arc::new(Field::new_list(format_state_name(name, "distinct"), Field::new_list_field(of, true), true))
}

impl DistinctValues {
    pub(crate) fn new(of: DataType, then: Box<dyn Accumulator>) -> DistinctValues {
        DistinctValues { values: BTreeSet::new(), of, then }
    }

    fn array(&self) -> ArrayRef {
        let values = Decimal128Array::from_iter_values(self.values.iter().copied());
        Arc::new(values.with_data_type(self.of.clone()))
    }
}

impl Accumulator for DistinctValues {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let values = cast(&values[0], &self.of)?;
        self.values.extend(values.as_primitive::<Decimal128Type>().iter().flatten());
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let values = self.array();
        self.then.update_batch(&[values])?;
        self.then.evaluate()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let values = self.array();
        let values = (0..values.len()).map(|row| ScalarValue::try_from_array(&values, row));
        let values = values.collect::<Result<Vec<_>>>()?;
        Ok(vec![ScalarValue::List(ScalarValue::new_list_nullable(&values, &self.of))])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for values in states[0].as_list::<i32>().iter().flatten() {
            self.update_batch(&[values])?;
        }
        Ok(())
    }

    fn size(&self) -> usize {
        // A tree has as much again for its nodes.
        size_of_val(self) + self.then.size() + 2 * self.values.len() * size_of::<i128>()
    }
}
