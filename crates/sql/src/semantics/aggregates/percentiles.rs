//! `percentile_cont` and `percentile_disc` `(fraction) WITHIN GROUP (ORDER BY x)`, of one fraction or of an array of them.
//!
//! The values are kept until the end and put in order then. The first function gives a double between two neighbours, the second a
//! value that is there: the first one that has the fraction of all values, itself among them, before it.
use std::mem::size_of_val;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{Array, ArrayRef, Float64Array, RecordBatch, RecordBatchOptions, UInt64Array, new_empty_array};
use arrow_cast::cast;
use arrow_schema::{DataType, Field, FieldRef, Schema, SortOptions};
use datafusion::arrow::compute::{concat, sort_to_indices, take};
use datafusion::common::ScalarValue;
use datafusion::common::utils::SingleRowListArrayBuilder;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::format_state_name;
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility};
use datafusion::physical_expr::PhysicalExpr;

use crate::error::SqlError;
use crate::values::assign;
use crate::values::numerics::is_numeric;

/// The functions.
pub(crate) fn functions() -> impl Iterator<Item = Arc<AggregateUDF>> {
    [true, false].into_iter().map(|is_between| {
        let signature = Signature::any(2, Volatility::Immutable);
        Arc::new(AggregateUDF::from(Percentile { is_between, signature }))
    })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Percentile {
    /// Whether it gives what lies between two values.
    is_between: bool,
    signature: Signature,
}

impl Percentile {
    /// The type for one fraction, and whether there are several.
    fn result(&self, types: &[DataType]) -> Result<(DataType, bool)> {
        let [of, fraction] = types else { return Err(internal()) };
        let is_number = |found: &DataType| found.is_numeric() || is_numeric(found) || found.is_null();
        let is_fraction = |found: &DataType| is_number(found) || *found == DataType::Utf8;
        let (one, is_list) = match fraction {
            DataType::List(item) => (item.data_type(), true),
            one => (one, false),
        };
        if !is_fraction(one) || (self.is_between && !is_number(of)) {
            let message = format!("Function '{}' failed to match any signature", self.name());
            return Err(DataFusionError::Plan(message));
        }
        Ok((if self.is_between { DataType::Float64 } else { of.clone() }, is_list))
    }
}

fn internal() -> DataFusionError {
    DataFusionError::Internal("a percentile without values or fractions".to_owned())
}

impl AggregateUDFImpl for Percentile {
    fn name(&self) -> &str {
        if self.is_between { "percentile_cont" } else { "percentile_disc" }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(match self.result(types)? {
            (one, false) => one,
            (one, true) => DataType::List(Arc::new(Field::new_list_field(one, true))),
        })
    }

    fn supports_within_group_clause(&self) -> bool {
        true
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let of = args.input_fields.first().ok_or_else(internal)?.data_type().clone();
        let list = Field::new_list(format_state_name(args.name, "values"), Field::new_list_field(of, true), true);
        Ok(vec![Arc::new(list)])
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let types: Vec<DataType> = args.expr_fields.iter().map(|field| field.data_type().clone()).collect();
        let (_, is_list) = self.result(&types)?;
        Ok(Box::new(Values {
            is_between: self.is_between,
            is_list,
            of: types.into_iter().next().ok_or_else(internal)?,
            fractions: fractions(args.exprs.get(1).ok_or_else(internal)?)?,
            options: args.order_bys.first().map(|key| key.options).unwrap_or_default(),
            values: Vec::new(),
        }))
    }
}

/// The fractions that are asked for, which are constants.
fn fractions(expr: &Arc<dyn PhysicalExpr>) -> Result<Vec<Option<f64>>> {
    let options = RecordBatchOptions::new().with_row_count(Some(1));
    let nothing = RecordBatch::try_new_with_options(Arc::new(Schema::empty()), Vec::new(), &options)?;
    let constant = expr.evaluate(&nothing).map_err(|_| {
        let message = "direct arguments of a percentile must be constants, and not columns";
        DataFusionError::External(Box::new(SqlError::unsupported(message)))
    })?;
    let array = constant.into_array(1)?;
    let items = match array.data_type() {
        DataType::List(_) if array.is_null(0) => return Ok(vec![None]),
        DataType::List(_) => array.as_list::<i32>().value(0),
        _ => array,
    };
    let doubles = doubles(&items)?;
    let checked = doubles.as_primitive::<Float64Type>().iter().map(|fraction| match fraction {
        Some(fraction) if !(0.0..=1.0).contains(&fraction) => {
            let message = format!("percentile value {fraction} is not between 0 and 1");
            Err(DataFusionError::External(Box::new(SqlError::new("22003", message))))
        }
        fraction => Ok(fraction),
    });
    checked.collect()
}

fn doubles(array: &ArrayRef) -> Result<ArrayRef> {
    if array.data_type().is_null() || *array.data_type() == DataType::Utf8 {
        return Ok(cast(array, &DataType::Float64)?);
    }
    assign::doubles(array).map_err(|error| DataFusionError::External(Box::new(error)))
}

/// The values of a group, of which none is NULL.
#[derive(Debug)]
struct Values {
    is_between: bool,
    is_list: bool,
    of: DataType,
    fractions: Vec<Option<f64>>,
    options: SortOptions,
    values: Vec<ArrayRef>,
}

impl Values {
    fn all(&self) -> Result<ArrayRef> {
        match &self.values[..] {
            [] => Ok(new_empty_array(&self.of)),
            values => Ok(concat(&values.iter().map(AsRef::as_ref).collect::<Vec<&dyn Array>>())?),
        }
    }

    fn add(&mut self, values: &ArrayRef) -> Result<()> {
        let there = match values.logical_null_count() {
            0 => values.clone(),
            _ => {
                let rows = (0..values.len()).filter(|row| !values.is_null(*row)).map(|row| row as u64);
                take(values, &UInt64Array::from_iter_values(rows), None)?
            }
        };
        if !there.is_empty() {
            self.values.push(there);
        }
        Ok(())
    }

    /// What the fractions of the values are, one for each.
    fn found(&self) -> Result<ArrayRef> {
        let values = self.all()?;
        let order = sort_to_indices(&values, Some(self.options), None)?;
        let count = order.len();
        let place = |fraction: &Option<f64>| fraction.filter(|_| count > 0);
        #[expect(clippy::cast_precision_loss, reason = "there are fewer values than a double has digits for")]
        let last = count.saturating_sub(1) as f64;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "fractions are from 0 to 1")]
        let whole = |place: f64| place as usize;
        if !self.is_between {
            let at = |fraction: f64| whole(((last + 1.0) * fraction).ceil() - 1.0).min(count - 1);
            let rows =
                self.fractions.iter().map(place).map(|place| place.map(|fraction| order.value(at(fraction)).into()));
            return Ok(take(&values, &rows.collect::<UInt64Array>(), None)?);
        }
        let doubles = doubles(&values)?;
        let doubles = doubles.as_primitive::<Float64Type>();
        let at = |place: f64| doubles.value(order.value(whole(place)) as usize);
        let between = |fraction: f64| {
            let place = fraction * last;
            let (below, above) = (at(place.floor()), at(place.ceil()));
            below + (above - below) * (place - place.floor())
        };
        let found = self.fractions.iter().map(place).map(|place| place.map(between));
        Ok(Arc::new(found.collect::<Float64Array>()))
    }
}

impl Accumulator for Values {
    fn update_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        self.add(columns.first().ok_or_else(internal)?)
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let lists = states.first().ok_or_else(internal)?.as_list::<i32>();
        lists.iter().flatten().try_for_each(|values| self.add(&values))
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let found = self.found()?;
        match self.is_list && !self.values.is_empty() {
            true => Ok(SingleRowListArrayBuilder::new(found).build_list_scalar()),
            false if self.is_list => {
                let item = Arc::new(Field::new_list_field(found.data_type().clone(), true));
                ScalarValue::try_from(&DataType::List(item))
            }
            false => ScalarValue::try_from_array(&found, 0),
        }
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![SingleRowListArrayBuilder::new(self.all()?).build_list_scalar()])
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.values.iter().map(|values| values.get_array_memory_size()).sum::<usize>()
    }
}
