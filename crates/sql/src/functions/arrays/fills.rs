//! Arrays made by length: `array_fill(value, lengths)`, of one dimension, and `trim_array(array, count)`.
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef, ListArray, UInt64Array, new_empty_array};
use arrow_cast::cast;
use arrow_schema::{DataType, Field};
use arrow_select::concat::concat;
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer};
use datafusion::arrow::compute::take;
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};

use crate::error::SqlError;

/// How many items an array may have.
const ITEMS_MAX: i64 = 134_217_727;

/// The functions under their names in SQL.
pub(crate) fn functions() -> impl Iterator<Item = ScalarUDF> {
    [("array_fill", true), ("trim_array", false)].into_iter().map(|(name, fills)| {
        let signature = Signature::variadic_any(Volatility::Immutable);
        ScalarUDF::from(Function { name, fills, signature })
    })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Function {
    name: &'static str,
    fills: bool,
    signature: Signature,
}

fn external(error: SqlError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

fn list_of(item: &DataType) -> DataType {
    DataType::List(Arc::new(Field::new_list_field(item.clone(), true)))
}

impl ScalarUDFImpl for Function {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        let is_places = |found: &DataType| found.is_null() || found.is_list() || found.is_string();
        match types {
            [value, lengths] if self.fills && is_places(lengths) => Ok(filled_type(value)),
            [value, lengths, bounds] if self.fills && is_places(lengths) && is_places(bounds) => Ok(filled_type(value)),
            [array, count] if !self.fills && array.is_list() && (count.is_integer() || count.is_null()) => {
                Ok(array.clone())
            }
            _ => Err(DataFusionError::Plan(format!("Function '{}' failed to match any signature", self.name))),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_scalar = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let rows = if is_scalar { 1 } else { args.number_rows };
        let arrays = args.args.into_iter().map(|arg| arg.into_array(rows)).collect::<Result<Vec<_>>>()?;
        let made = if self.fills { fill(&arrays)? } else { trim(&arrays)? };
        Ok(match is_scalar {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&made, 0)?),
            false => ColumnarValue::Array(made),
        })
    }
}

/// An array of items of the value's type; of one that has none, of texts.
fn filled_type(value: &DataType) -> DataType {
    let item = if value.is_null() || *value == DataType::Utf8 { DataType::Utf8View } else { value.clone() };
    list_of(&item)
}

/// The numbers of a row of an array of places.
fn places(lists: &ArrayRef, row: usize) -> Result<Vec<i64>, SqlError> {
    let missing = || SqlError::new("22004", "dimension array or low bound array cannot be null");
    if !lists.data_type().is_list() || lists.is_null(row) {
        return Err(missing());
    }
    let numbers = cast(&lists.as_list::<i32>().value(row), &DataType::Int32)
        .map_err(|error| SqlError::new("42883", error.to_string()))?;
    let number = |number: Option<i32>| number.map(i64::from);
    let all: Option<Vec<i64>> = numbers.as_primitive::<Int32Type>().iter().map(number).collect();
    all.ok_or_else(|| SqlError::new("22004", "dimension values cannot be null"))
}

fn fill(arrays: &[ArrayRef]) -> Result<ArrayRef> {
    let item = match filled_type(arrays[0].data_type()) {
        DataType::List(item) => item.data_type().clone(),
        other => other,
    };
    let values = cast(&arrays[0], &item)?;
    let mut made: Vec<ArrayRef> = Vec::with_capacity(values.len());
    for row in 0..values.len() {
        let lengths = places(&arrays[1], row).map_err(external)?;
        if let Some(bounds) = arrays.get(2) {
            let bounds = places(bounds, row).map_err(external)?;
            check_bounds(&lengths, &bounds).map_err(external)?;
        }
        made.push(filled(&values.slice(row, 1), &lengths)?);
    }
    let made: Vec<&dyn Array> = made.iter().map(AsRef::as_ref).collect();
    match made.is_empty() {
        true => Ok(new_empty_array(&list_of(&item))),
        false => Ok(concat(&made)?),
    }
}

fn check_bounds(lengths: &[i64], bounds: &[i64]) -> Result<(), SqlError> {
    if lengths.len() != bounds.len() {
        let error = SqlError::new("2202E", "wrong number of array subscripts");
        return Err(error.detail("Low bound array has different size than dimensions array."));
    }
    match bounds.iter().all(|bound| *bound == 1) {
        true => Ok(()),
        false => Err(SqlError::unsupported("an array that does not begin with item 1")),
    }
}

/// One array of this length, all of its items the one that is given.
fn filled(value: &ArrayRef, lengths: &[i64]) -> Result<ArrayRef> {
    let too_long = || SqlError::new("54000", format!("array size exceeds the maximum allowed ({ITEMS_MAX})"));
    let count = match lengths {
        [] => 0,
        [length] => *length,
        // The planner has to know beforehand how deep an array is.
        _ => return Err(external(SqlError::unsupported("array_fill of more than one dimension"))),
    };
    let count = usize::try_from(count).ok().filter(|_| count <= ITEMS_MAX).ok_or_else(too_long).map_err(external)?;
    let indices = UInt64Array::from(vec![0; count]);
    Ok(one_list(take(value, &indices, None)?))
}

fn one_list(items: ArrayRef) -> ArrayRef {
    let field = Arc::new(Field::new_list_field(items.data_type().clone(), true));
    let offsets = OffsetBuffer::from_lengths([items.len()]);
    Arc::new(ListArray::new(field, offsets, items, None))
}

fn trim(arrays: &[ArrayRef]) -> Result<ArrayRef> {
    let lists = arrays[0].as_list::<i32>();
    let counts = cast(&arrays[1], &DataType::Int32)?;
    let counts = counts.as_primitive::<Int32Type>();
    let (mut kept, mut lengths, mut valid) = (Vec::new(), Vec::new(), Vec::new());
    for row in 0..lists.len() {
        let is_known = lists.is_valid(row) && counts.is_valid(row);
        let mut length = 0;
        if is_known {
            let items = lists.value(row);
            let trimmed = usize::try_from(counts.value(row)).ok();
            length = trimmed.and_then(|trimmed| items.len().checked_sub(trimmed)).ok_or_else(|| {
                let message = format!("number of elements to trim must be between 0 and {}", items.len());
                external(SqlError::new("2202E", message))
            })?;
            kept.push(items.slice(0, length));
        }
        lengths.push(length);
        valid.push(is_known);
    }
    let DataType::List(field) = lists.data_type() else {
        return Err(DataFusionError::Internal("an array that is none".to_owned()));
    };
    let kept: Vec<&dyn Array> = kept.iter().map(AsRef::as_ref).collect();
    let items = if kept.is_empty() { new_empty_array(field.data_type()) } else { concat(&kept)? };
    Ok(Arc::new(ListArray::new(
        field.clone(),
        OffsetBuffer::from_lengths(lengths),
        items,
        Some(NullBuffer::from(valid)),
    )))
}
