//! Arrays made by length: `array_fill(value, lengths)`, of one dimension, `trim_array(array, count)`, the slice `array[2:3]`
//! and the item `array[2]`, which has the type that the array's says of its items.
use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, ListArray, UInt64Array, new_empty_array};
use arrow_cast::cast;
use arrow_schema::{DataType, Field, FieldRef};
use arrow_select::concat::concat;
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer};
use datafusion::arrow::compute::take;
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::error::{SqlError, external};
use crate::values::types::{field_of_items, type_name};

/// How many items an array may have.
const ITEMS_MAX: i64 = 134_217_727;

/// The functions under their names in SQL.
pub(crate) fn functions() -> impl Iterator<Item = ScalarUDF> {
    let named = [("array_fill", Makes::Filled), ("trim_array", Makes::Trimmed), (SLICED, Makes::Sliced)];
    named.into_iter().map(|(name, makes)| function(name, makes))
}

/// The name of the function for `array[first:last]`, which no statement can spell.
pub(crate) const SLICED: &str = "\0sliced";

/// What is made of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Makes {
    Filled,
    Trimmed,
    Sliced,
    /// One item.
    Item,
}

/// `array[place]`.
pub(crate) fn item(array: Expr, place: Expr) -> Expr {
    function("array_element", Makes::Item).call(vec![array, place])
}

fn function(name: &'static str, makes: Makes) -> ScalarUDF {
    ScalarUDF::from(Function { name, makes, signature: Signature::variadic_any(Volatility::Immutable) })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Function {
    name: &'static str,
    makes: Makes,
    signature: Signature,
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
        let is_number = |found: &DataType| found.is_integer() || found.is_null();
        match types {
            [value, lengths] if self.makes == Makes::Filled && is_places(lengths) => Ok(filled_type(value)),
            [value, lengths, bounds] if self.makes == Makes::Filled && is_places(lengths) && is_places(bounds) => {
                Ok(filled_type(value))
            }
            [array, count] if self.makes == Makes::Trimmed && array.is_list() && is_number(count) => Ok(array.clone()),
            [array, places @ ..] if self.makes == Makes::Sliced && array.is_list() && places.iter().all(is_number) => {
                Ok(array.clone())
            }
            [DataType::List(item), place] if self.makes == Makes::Item && is_number(place) => {
                Ok(item.data_type().clone())
            }
            [other, ..] if self.makes == Makes::Sliced => {
                let name = type_name(other);
                let message = format!("cannot subscript type {name} because it does not support subscripting");
                Err(external(SqlError::mismatch(message)))
            }
            _ => Err(DataFusionError::Plan(format!("Function '{}' failed to match any signature", self.name))),
        }
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let types: Vec<DataType> = args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        let of = self.return_type(&types)?;
        Ok(match self.makes {
            Makes::Filled => Arc::new(Field::new(self.name, of, true)),
            Makes::Item => Arc::new(field_of_items(&args.arg_fields[0]).with_name(self.name).with_nullable(true)),
            // What the type of the array says of its items is kept.
            Makes::Trimmed | Makes::Sliced => {
                Arc::new(args.arg_fields[0].as_ref().clone().with_name(self.name).with_nullable(true))
            }
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_scalar = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let rows = if is_scalar { 1 } else { args.number_rows };
        let arrays = args.args.into_iter().map(|arg| arg.into_array(rows)).collect::<Result<Vec<_>>>()?;
        let made = match self.makes {
            Makes::Filled => fill(&arrays)?,
            Makes::Trimmed => trim(&arrays)?,
            Makes::Sliced => slice(&arrays)?,
            Makes::Item => items(&arrays)?,
        };
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
    let counts = cast(&arrays[1], &DataType::Int32)?;
    let counts = counts.as_primitive::<Int32Type>();
    parts(arrays[0].as_list(), |row, length| {
        if counts.is_null(row) {
            return Ok(None);
        }
        let trimmed = usize::try_from(counts.value(row)).ok();
        let kept = trimmed.and_then(|trimmed| length.checked_sub(trimmed)).ok_or_else(|| {
            SqlError::new("2202E", format!("number of elements to trim must be between 0 and {length}"))
        })?;
        Ok(Some(0..kept))
    })
}

/// The items between two places of each dimension, counted from 1, as far as there are such.
fn slice(arrays: &[ArrayRef]) -> Result<ArrayRef> {
    let (outer, inner) = arrays.split_at(3.min(arrays.len()));
    let sliced = slice_outer(outer)?;
    if inner.is_empty() {
        return Ok(sliced);
    }
    let lists = sliced.as_list::<i32>();
    let nothing = |_: usize, _: usize| Ok(Some(0..0));
    if !lists.values().data_type().is_list() {
        return parts(lists, nothing);
    }
    let rows = (0..lists.len()).flat_map(|row| {
        let length = usize::try_from(lists.value_length(row)).unwrap_or(0);
        std::iter::repeat_n(row as u64, length)
    });
    let rows: UInt64Array = rows.collect();
    let mut within = vec![lists.values().slice(0, rows.len())];
    for places in inner {
        within.push(take(places, &rows, None)?);
    }
    let items = slice(&within)?;
    let DataType::List(field) = lists.data_type() else {
        return Err(DataFusionError::Internal("an array that is none".to_owned()));
    };
    let whole = ListArray::new(field.clone(), lists.offsets().clone(), items, lists.nulls().cloned());
    // An array has items in all of its dimensions, or none.
    parts(&whole, |row, length| {
        let is_empty = whole.value(row).as_list::<i32>().iter().flatten().all(|item| item.is_empty());
        Ok(Some(if is_empty { 0..0 } else { 0..length }))
    })
}

/// The items between two places of the outermost dimension.
fn slice_outer(arrays: &[ArrayRef]) -> Result<ArrayRef> {
    let places = arrays[1..].iter().map(|places| Ok(cast(places, &DataType::Int64)?)).collect::<Result<Vec<_>>>()?;
    let place = |at: usize, row: usize| {
        let places = places[at].as_primitive::<Int64Type>();
        places.is_valid(row).then(|| places.value(row))
    };
    parts(arrays[0].as_list(), |row, length| {
        let (Some(first), Some(last)) = (place(0, row), place(1, row)) else { return Ok(None) };
        let end = usize::try_from(last).unwrap_or(0).min(length);
        let start = usize::try_from(first.max(1) - 1).unwrap_or(usize::MAX).min(end);
        Ok(Some(start..end))
    })
}

/// The item of each list at a place, counted from 1; NULL where there is none.
fn items(arrays: &[ArrayRef]) -> Result<ArrayRef> {
    let (lists, places) = (arrays[0].as_list::<i32>(), cast(&arrays[1], &DataType::Int64)?);
    let places = places.as_primitive::<Int64Type>();
    let at = |row: usize| {
        let place = places.is_valid(row).then(|| u64::try_from(places.value(row)).ok()?.checked_sub(1))??;
        let length = u64::try_from(lists.value_length(row)).ok()?;
        let start = u64::try_from(lists.value_offsets()[row]).ok()?;
        (lists.is_valid(row) && place < length).then_some(start + place)
    };
    let indices: UInt64Array = (0..lists.len()).map(at).collect();
    Ok(take(lists.values(), &indices, None)?)
}

/// The part of each list that is told by its row and its length; NULL where none is.
fn parts(lists: &ListArray, part: impl Fn(usize, usize) -> Result<Option<Range<usize>>, SqlError>) -> Result<ArrayRef> {
    let (mut kept, mut lengths, mut valid) = (Vec::new(), Vec::new(), Vec::new());
    for row in 0..lists.len() {
        let items = lists.is_valid(row).then(|| lists.value(row));
        let range = items.as_ref().map_or(Ok(None), |items| part(row, items.len())).map_err(external)?;
        lengths.push(range.as_ref().map_or(0, ExactSizeIterator::len));
        valid.push(range.is_some());
        kept.extend(items.zip(range).map(|(items, range)| items.slice(range.start, range.len())));
    }
    let DataType::List(field) = lists.data_type() else {
        return Err(DataFusionError::Internal("an array that is none".to_owned()));
    };
    let kept: Vec<&dyn Array> = kept.iter().map(AsRef::as_ref).collect();
    let items = if kept.is_empty() { new_empty_array(field.data_type()) } else { concat(&kept)? };
    let nulls = Some(NullBuffer::from(valid));
    Ok(Arc::new(ListArray::new(field.clone(), OffsetBuffer::from_lengths(lengths), items, nulls)))
}
