//! Arrays of which a part is set: `SET a[2] = value` and `SET a[2:3] = array`, which
//! [`subscript_tokens`](crate::syntax::subscript_tokens) makes calls of functions.
//!
//! ```text
//! {1,2,3}    a[2] = 9      {1,9,3}
//! {1}        a[4] = 9      {1,NULL,NULL,9}     what lies between is NULL
//! {1,2,3}    a[2:3] = {8,9,10}   {1,8,9}       of a longer array the first items are taken
//! ```
//!
//! The first item of an array is always item 1 here.
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, ListArray};
use arrow_cast::cast;
use arrow_schema::{DataType as ArrowType, Field, FieldRef};
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use engine::DataType;

use crate::error::{SqlError, external};
use crate::syntax::subscript_tokens::{ITEM, SLICE};
use crate::values::builder::ColumnBuilder;
use crate::values::set_parts::{check_part, part};
use crate::values::types::{type_name_of_field, type_of_field};

/// How many items an array may have.
const ITEMS_MAX: i64 = 134_217_727;

/// The functions that a statement's tokens name.
pub(crate) fn functions() -> impl Iterator<Item = ScalarUDF> {
    [(ITEM, false), (SLICE, true)].into_iter().map(|(name, is_slice)| {
        ScalarUDF::from(Parts { name, is_slice, signature: Signature::variadic_any(Volatility::Immutable) })
    })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Parts {
    name: &'static str,
    is_slice: bool,
    signature: Signature,
}

impl ScalarUDFImpl for Parts {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[ArrowType]) -> Result<ArrowType> {
        types.first().cloned().ok_or_else(|| DataFusionError::Plan(format!("{} of nothing", self.name)))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let [array, places @ .., value] = args.arg_fields else { return Err(wrong_count()) };
        if places.len() != 1 + usize::from(self.is_slice) {
            return Err(wrong_count());
        }
        let is_place = |field: &FieldRef| {
            let found = field.data_type();
            found.is_integer() || found.is_null() || *found == ArrowType::Utf8
        };
        if !places.iter().all(is_place) {
            return Err(external(SqlError::mismatch("array subscript must have type integer")));
        }
        let to = self.value_type(array)?;
        check_part(array, to, value)?;
        Ok(Arc::new(array.as_ref().clone().with_name(self.name).with_nullable(true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let to = self.value_type(&args.arg_fields[0])?;
        let last = args.arg_fields.len() - 1;
        let field = args.arg_fields[last].clone();
        let arrays = args.args.into_iter().map(|arg| arg.into_array(rows)).collect::<Result<Vec<ArrayRef>>>()?;
        let values = part(&arrays[last], &field, &args.arg_fields[0], to)?;
        let places = arrays[1..last].iter().map(|places| Ok(cast(places, &ArrowType::Int64)?));
        let places = places.collect::<Result<Vec<ArrayRef>>>()?;
        let lists = arrays[0].as_list::<i32>();
        Ok(ColumnarValue::Array(Arc::new(self.with_parts(lists, &places, &values).map_err(external)?)))
    }
}

fn wrong_count() -> DataFusionError {
    external(SqlError::unsupported("this form of setting a part of an array"))
}

impl Parts {
    /// The type of what is set in an array.
    fn value_type(&self, array: &Field) -> Result<DataType> {
        match type_of_field(array) {
            Some(of @ DataType::Array(item)) => Ok(if self.is_slice { of } else { item.data_type() }),
            _ => {
                let name = type_name_of_field(array);
                let message = format!("cannot subscript type {name} because it does not support subscripting");
                Err(external(SqlError::mismatch(message)))
            }
        }
    }

    fn with_parts(&self, lists: &ListArray, places: &[ArrayRef], values: &ArrayRef) -> Result<ListArray, SqlError> {
        let ArrowType::List(field) = lists.data_type() else { return Err(SqlError::new("XX000", "an array is none")) };
        let of = DataType::from_arrow(field.data_type()).unwrap_or(DataType::TEXT);
        let (mut items, mut lengths, mut valid) = (ColumnBuilder::new(of), Vec::new(), Vec::new());
        for row in 0..lists.len() {
            let old = lists.is_valid(row).then(|| lists.value(row));
            // A slice that is set to NULL stays as it is.
            let made = match (self.is_slice && values.is_null(row), old) {
                (true, None) => None,
                (true, Some(old)) => Some(put(&mut items, &old, 0..0, &old)),
                (false, old) => {
                    let old = old.unwrap_or_else(|| lists.values().slice(0, 0));
                    let places = places.iter().map(|places| place(places, row)).collect::<Result<Vec<_>, _>>()?;
                    let new = if self.is_slice { values.as_list::<i32>().value(row) } else { values.slice(row, 1) };
                    let (first, last) = (places[0], places[places.len() - 1]);
                    let range = range(first, last, old.len(), new.len())?;
                    Some(put(&mut items, &old, range, &new))
                }
            };
            lengths.push(made.unwrap_or(0));
            valid.push(made.is_some());
        }
        let nulls = NullBuffer::from(valid);
        let items = items.finish();
        let offsets = OffsetBuffer::from_lengths(lengths);
        let made = ListArray::try_new(field.clone(), offsets, items, Some(nulls));
        made.map_err(|error| SqlError::new("XX000", error.to_string()))
    }
}

fn place(places: &ArrayRef, row: usize) -> Result<i64, SqlError> {
    match places.is_valid(row) {
        true => Ok(places.as_primitive::<Int64Type>().value(row)),
        false => Err(SqlError::new("22004", "array subscript in assignment must not be null")),
    }
}

/// The items that are set, counted from 0.
fn range(first: i64, last: i64, old: usize, new: usize) -> Result<std::ops::Range<usize>, SqlError> {
    if last >= ITEMS_MAX {
        return Err(SqlError::new("54000", format!("array size exceeds the maximum allowed ({ITEMS_MAX})")));
    }
    if last < first {
        return Err(SqlError::new("2202E", "upper bound cannot be less than lower bound"));
    }
    if first < 1 || (old == 0 && first > 1) {
        return Err(SqlError::unsupported("an array that does not begin with item 1"));
    }
    let at = |place: i64| usize::try_from(place).unwrap_or(usize::MAX);
    let range = at(first) - 1..at(last);
    if range.len() > new {
        return Err(SqlError::new("2202E", "source array too small"));
    }
    Ok(range)
}

/// Appends the items of an array in which those of a range are others; returns how many these are.
fn put(items: &mut ColumnBuilder, old: &ArrayRef, range: std::ops::Range<usize>, new: &ArrayRef) -> usize {
    let length = old.len().max(range.end);
    for at in 0..length {
        match () {
            () if range.contains(&at) => items.append_cell(new, at - range.start),
            () if at < old.len() => items.append_cell(old, at),
            () => items.append_null(),
        }
    }
    length
}
