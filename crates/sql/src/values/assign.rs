//! Assignment casts: arrays of a query's or a file's type into arrays of a column's type.
//!
//! As in PostgreSQL an assignment goes between numbers, between dates and timestamps, and from anything to text;
//! what else there is needs a cast in the statement. Nothing is lost silently: what does not fit is an error.
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef, Float64Array, ListArray, StringViewArray, new_null_array};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{DataType as ArrowType, Field};
use datafusion::arrow::buffer::OffsetBuffer;
use engine::{DataType, NetworkKind, Value};

use super::builder::ColumnBuilder;
use super::input;
use super::single::value_at;
use super::zoned;
use super::{Misfit, Misplaced, blanks, clock, numerics};
use crate::error::{Result, SqlError};
use crate::interrupt::session_zone;
use crate::values::text::{float_digits, text_value};
use crate::values::types::{field_of_items, is_space, type_name, type_of_field};

/// The types that texts may become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Texts {
    /// Texts only: an expression of type text.
    Stay,
    /// Anything, by its input syntax: an untyped literal.
    AreRead,
}

/// Casts a query's column for assignment to the table's column `name`.
pub(crate) fn assign(array: &ArrayRef, from: &Field, name: &str, to: DataType, texts: Texts) -> Result<ArrayRef> {
    convert(array, from, to, texts).map_err(|(row, misfit)| misplaced(array, row, misfit, name, to))
}

/// An argument of a function as values of the type that it is taken for, a literal without a type among them.
pub(crate) fn argument(array: &ArrayRef, to: DataType) -> Result<ArrayRef> {
    let from = Field::new("", array.data_type().clone(), true);
    assign(array, &from, "", to, Texts::AreRead).map_err(|error| SqlError { detail: None, ..error })
}

/// Numbers as doubles.
///
/// # Errors
/// 22003 where one is too large.
pub(crate) fn doubles(array: &ArrayRef) -> Result<ArrayRef> {
    into_numbers(array, DataType::Double).map_err(|_| SqlError::new("22003", "value out of range: overflow"))
}

/// As [`assign`], for values of rows that are counted from `first`; errors name the row.
pub(crate) fn assign_counted(
    array: &ArrayRef,
    from: &Field,
    name: &str,
    to: DataType,
    texts: Texts,
    first: u64,
) -> Result<ArrayRef> {
    convert(array, from, to, texts).map_err(|(row, misfit)| {
        let error = misplaced(array, row, misfit, name, to);
        let Some(row) = row.and_then(|row| u64::try_from(row).ok()) else { return error };
        let place = error.detail.clone().unwrap_or_default().replacen("Column", "column", 1);
        error.detail(format!("Row {}, {place}", first + row))
    })
}

fn misplaced(array: &ArrayRef, row: Option<usize>, misfit: Misfit, name: &str, to: DataType) -> SqlError {
    let value = row.and_then(|row| text_value(array, row)).unwrap_or_default();
    misfit.error(name, to, &value, &type_name(array.data_type()))
}

/// Whether values of this type may be assigned to such a column at all.
pub(crate) fn is_assignable(from: &Field, to: DataType, texts: Texts) -> bool {
    let empty = new_null_array(from.data_type(), 0);
    convert(&empty, from, to, texts).is_ok()
}

fn convert(array: &ArrayRef, from: &Field, to: DataType, texts: Texts) -> Result<ArrayRef, Misplaced> {
    if let ArrowType::Dictionary(_, values) = array.data_type() {
        let plain = Field::new(from.name(), values.as_ref().clone(), true).with_metadata(from.metadata().clone());
        return convert(&kernel(array, values)?, &plain, to, texts);
    }
    if let DataType::TimeDigits { of, digits } = to {
        let whole = convert(array, from, of.whole(), texts)?;
        return clock::rounded(&whole, of, digits).ok_or((None, Misfit::Kind));
    }
    let target = to.to_arrow();
    let is_label = |of: &ArrowType| matches!(DataType::from_arrow(of), Some(DataType::Enum(_)));
    match (array.data_type(), to) {
        (ArrowType::Null, _) => Ok(new_null_array(&target, array.len())),
        (ArrowType::Utf8 | ArrowType::Utf8View, _) => {
            let known = type_of_field(from);
            let text = kernel(array, &ArrowType::Utf8View)?;
            let text = if matches!(known, Some(DataType::Char { .. })) { blanks::without(&text) } else { text };
            from_text(&text, known, to, texts)
        }
        (_, DataType::HSTORE) => Err((None, Misfit::Kind)),
        (from_type, DataType::Text { .. } | DataType::Char { .. }) if !is_binary(from_type) => {
            let texts = (0..array.len()).map(|row| long_text(array, row));
            let texts: ArrayRef = Arc::new(texts.collect::<StringViewArray>());
            from_text(&texts, None, to, Texts::Stay)
        }
        (from_type, _) if *from_type == target && !from_type.is_list() => Ok(array.clone()),
        (ArrowType::LargeList(item) | ArrowType::FixedSizeList(item, _), DataType::Array(_)) => {
            let plain = from.clone().with_data_type(ArrowType::List(item.clone()));
            convert(&kernel(array, plain.data_type())?, &plain, to, texts)
        }
        (ArrowType::List(_), DataType::Array(item)) => into_lists(array.as_list(), from, item.data_type(), texts),
        (ArrowType::LargeUtf8, DataType::Jsonb) | (ArrowType::LargeBinary, DataType::Json) => {
            let texts: ArrayRef =
                Arc::new((0..array.len()).map(|row| text_value(array, row)).collect::<StringViewArray>());
            from_text(&texts, None, to, Texts::AreRead)
        }
        (ArrowType::Timestamp(..) | ArrowType::Interval(_), DataType::Time) => {
            clock::times(array).map_err(|misfit| (None, misfit))
        }
        (ArrowType::Time32(_) | ArrowType::Time64(_), DataType::Time)
        | (ArrowType::Interval(_) | ArrowType::Duration(_), DataType::Interval) => kernel(array, &target),
        (ArrowType::FixedSizeBinary(_), DataType::Time) => clock::times_without_zone(array).ok_or((None, Misfit::Kind)),
        (ArrowType::Time32(_) | ArrowType::Time64(_), DataType::Interval) => {
            clock::spans(array).map_err(|misfit| (None, misfit))
        }
        (from_type, DataType::Numeric) if is_number(from_type) => numerics::of_numbers(array),
        (ArrowType::Binary, _) => numerics::into_numbers(array, to),
        (from_type, DataType::SmallInt | DataType::Integer | DataType::BigInt) if is_number(from_type) => {
            into_integers(array, &target)
        }
        (from_type, DataType::Real | DataType::Double) if is_number(from_type) => into_floats(array, &target),
        (from_type, DataType::Decimal { .. }) if from_type.is_floating() => floats_into_decimals(array, to),
        (from_type, DataType::Decimal { .. }) if is_number(from_type) => checked(array, &target),
        (from_type, DataType::Bytea) if is_binary(from_type) => kernel(array, &target),
        (ArrowType::FixedSizeBinary(_), DataType::Network(kind)) => networks(array, kind).ok_or((None, Misfit::Kind)),
        (from_type, _) if is_label(from_type) || matches!(to, DataType::Enum(_)) => Err((None, Misfit::Kind)),
        (from_type @ (ArrowType::Date32 | ArrowType::Date64 | ArrowType::Timestamp(..)), _)
            if matches!(to, DataType::Date | DataType::Timestamp | DataType::TimestampTz) =>
        {
            let of_clocks = |_| (None, Misfit::Range);
            match zoned::depends_on_zone(from_type, &target) {
                true => zoned::cast_in(session_zone::current(), array, &target).map_err(of_clocks),
                false => checked(array, &target),
            }
        }
        _ => Err((None, Misfit::Kind)),
    }
}

/// Addresses of one kind as those of the other one; `None` if they are none. A `cidr` has no more than the network.
fn networks(array: &ArrayRef, to: NetworkKind) -> Option<ArrayRef> {
    let of = DataType::from_arrow(array.data_type()).filter(|of| matches!(of, DataType::Network(_)))?;
    let mut builder = ColumnBuilder::new(DataType::Network(to));
    for row in 0..array.len() {
        let value = match value_at(array, row, of)? {
            Value::Network(address) if to == NetworkKind::Cidr => Value::Network(address.network()),
            Value::Network(address) => Value::Network(address.inet()),
            other => other,
        };
        builder.append_value(&value).ok()?;
    }
    Some(builder.finish())
}

/// Arrays whose items are assigned to items of this type.
fn into_lists(lists: &ListArray, from: &Field, item: DataType, texts: Texts) -> Result<ArrayRef, Misplaced> {
    let offsets = lists.value_offsets();
    let (first, last) = (offsets[0] as usize, offsets[lists.len()] as usize);
    if lists.values().data_type().is_list() {
        return Err((None, Misfit::Dimensions));
    }
    let field = field_of_items(from);
    let of_list = |at: usize| offsets[1..].partition_point(|end| *end as usize <= first + at);
    let placed = |(at, misfit): Misplaced| (at.map(of_list), misfit);
    let items = convert(&lists.values().slice(first, last - first), &field, item, texts).map_err(placed)?;
    let lengths = lists.offsets().lengths();
    let made = Arc::new(Field::new_list_field(items.data_type().clone(), true));
    Ok(Arc::new(ListArray::new(made, OffsetBuffer::from_lengths(lengths), items, lists.nulls().cloned())))
}

fn is_number(data_type: &ArrowType) -> bool {
    data_type.is_numeric()
}

fn is_binary(data_type: &ArrowType) -> bool {
    matches!(data_type, ArrowType::BinaryView | ArrowType::FixedSizeBinary(_)) && !is_space(data_type)
}

/// The text that a value becomes when assigned; booleans are spelled out then, and addresses have their length.
pub(crate) fn long_text(array: &ArrayRef, row: usize) -> Option<String> {
    if let Some(values) = array.as_boolean_opt() {
        return (!array.is_null(row)).then(|| values.value(row).to_string());
    }
    match DataType::from_arrow(array.data_type()) {
        Some(of @ DataType::Network(_)) => match value_at(array, row, of)? {
            Value::Network(address) => Some(address.with_mask()),
            _ => None,
        },
        _ => text_value(array, row),
    }
}

/// Arrow's cast where it can't fail.
fn kernel(array: &ArrayRef, target: &ArrowType) -> Result<ArrayRef, Misplaced> {
    if array.data_type() == target {
        return Ok(array.clone());
    }
    cast_with_options(array, target, &CastOptions::default()).map_err(|_| (None, Misfit::Kind))
}

/// Arrow's cast where what does not fit becomes NULL, which is how it is found.
fn checked(array: &ArrayRef, target: &ArrowType) -> Result<ArrayRef, Misplaced> {
    let cast = kernel(array, target)?;
    match cast.logical_null_count() > array.logical_null_count() {
        false => Ok(cast),
        true => {
            let row = (0..array.len()).find(|row| cast.is_null(*row) && !array.is_null(*row));
            Err((row, Misfit::Range))
        }
    }
}

/// Makes numbers of one type of those of another, where it is not done by the library.
pub(crate) fn into_numbers(array: &ArrayRef, to: DataType) -> Result<ArrayRef, Misplaced> {
    match to {
        DataType::Numeric => numerics::of_numbers(array),
        _ if numerics::is_numeric(array.data_type()) => numerics::into_numbers(array, to),
        DataType::Real | DataType::Double => into_floats(array, &to.to_arrow()),
        DataType::Decimal { .. } if array.data_type().is_floating() => floats_into_decimals(array, to),
        DataType::Decimal { .. } => checked(array, &to.to_arrow()),
        _ => into_integers(array, &to.to_arrow()),
    }
}

/// Rounds numbers to integers.
fn into_integers(array: &ArrayRef, target: &ArrowType) -> Result<ArrayRef, Misplaced> {
    let whole: ArrayRef = match array.data_type() {
        // To the even neighbour when just between two, as PostgreSQL's rint does.
        ArrowType::Float64 => {
            Arc::new(array.as_primitive::<Float64Type>().unary::<_, Float64Type>(f64::round_ties_even))
        }
        ArrowType::Float32 => {
            Arc::new(array.as_primitive::<Float32Type>().unary::<_, Float32Type>(f32::round_ties_even))
        }
        ArrowType::Decimal128(..) | ArrowType::Decimal256(..) | ArrowType::Decimal64(..) | ArrowType::Decimal32(..) => {
            checked(array, &ArrowType::Decimal128(38, 0))?
        }
        _ => array.clone(),
    };
    checked(&whole, target)
}

fn into_floats(array: &ArrayRef, target: &ArrowType) -> Result<ArrayRef, Misplaced> {
    if array.data_type().is_decimal() {
        return decimals_into_floats(array, target);
    }
    let cast = checked(array, target)?;
    if let (ArrowType::Float64, Some(narrow)) = (array.data_type(), cast.as_primitive_opt::<Float32Type>()) {
        let wide = array.as_primitive::<Float64Type>();
        let lost = |row: &usize| {
            let (before, after) = (wide.value(*row), narrow.value(*row));
            !wide.is_null(*row) && ((after.is_infinite() && before.is_finite()) || (after == 0.0 && before != 0.0))
        };
        if let Some(row) = (0..array.len()).find(lost) {
            return Err((Some(row), Misfit::Range));
        }
    }
    Ok(cast)
}

/// Numerics as the floats that are nearest to them: their digits are read as such.
fn decimals_into_floats(array: &ArrayRef, target: &ArrowType) -> Result<ArrayRef, Misplaced> {
    let read = |row: usize| text_value(array, row).and_then(|text| text.parse::<f64>().ok());
    let doubles = (0..array.len()).map(read).collect::<Float64Array>();
    match target {
        ArrowType::Float64 => Ok(Arc::new(doubles)),
        _ => into_floats(&(Arc::new(doubles) as ArrayRef), target),
    }
}

/// PostgreSQL takes as many digits of a float as it holds for sure: 15, and 6 of a `real`.
fn floats_into_decimals(array: &ArrayRef, to: DataType) -> Result<ArrayRef, Misplaced> {
    let digits = if array.data_type() == &ArrowType::Float64 { 14 } else { 5 };
    let wide = kernel(array, &ArrowType::Float64)?;
    let mut builder = ColumnBuilder::new(to);
    for (row, value) in wide.as_primitive::<Float64Type>().iter().enumerate() {
        let appended = match value {
            Some(value) if !value.is_finite() => Err(Misfit::NotFinite),
            value => builder.append_option(value.map(|value| float_digits(value, digits)).as_deref()),
        };
        appended.map_err(|misfit| (Some(row), misfit))?;
    }
    Ok(builder.finish())
}

fn from_text(array: &ArrayRef, known: Option<DataType>, to: DataType, texts: Texts) -> Result<ArrayRef, Misplaced> {
    match to {
        DataType::Text { max_chars } if to != DataType::HSTORE => into_text(array, max_chars),
        DataType::Char { chars } => into_text(&blanks::without(array), Some(chars)),
        _ if known == Some(to) => Ok(array.clone()),
        _ if texts == Texts::Stay => Err((None, Misfit::Kind)),
        _ => {
            let mut builder = ColumnBuilder::new(to);
            for (row, text) in array.as_string_view().iter().enumerate() {
                builder.append_option(text).map_err(|misfit| (Some(row), misfit))?;
            }
            Ok(builder.finish())
        }
    }
}

/// Whether a view has all of a text, as those of up to twelve bytes do behind their length, and this is no longer than allowed and has no
/// zero byte.
fn is_short_text(view: u128, max_chars: Option<u32>) -> bool {
    const INLINE_BYTES: u32 = 12;
    const LOWEST_BITS: u128 = u128::MAX / 0xff;
    let len = view as u32;
    if len > INLINE_BYTES || max_chars.is_some_and(|max| len > max) {
        return false;
    }
    let text = view >> 32 | u128::MAX << (8 * len);
    text.wrapping_sub(LOWEST_BITS) & !text & LOWEST_BITS << 7 == 0
}

/// Texts go on as they are; only where one is too long by blanks a copy is made.
fn into_text(array: &ArrayRef, max_chars: Option<u32>) -> Result<ArrayRef, Misplaced> {
    let texts = array.as_string_view();
    let mut is_cut = false;
    for (row, view) in texts.views().iter().enumerate() {
        if !is_short_text(*view, max_chars) && texts.is_valid(row) {
            let text = texts.value(row);
            let fitted = input::text(text, max_chars).map_err(|misfit| (Some(row), misfit))?;
            is_cut |= fitted.len() < text.len();
        }
    }
    if !is_cut {
        return Ok(array.clone());
    }
    let fitted = texts.iter().map(|text| text.map(|text| input::text(text, max_chars).unwrap_or(text)));
    Ok(Arc::new(fitted.collect::<StringViewArray>()))
}

#[cfg(test)]
mod tests {
    use arrow_array::{BooleanArray, Decimal128Array, Int64Array, StringArray, TimestampMicrosecondArray};

    use super::*;

    fn try_assign(array: impl Array + 'static, to: DataType, texts: Texts) -> Result<ArrayRef> {
        let array: ArrayRef = Arc::new(array);
        assign(&array, &Field::new("", array.data_type().clone(), true), "c", to, texts)
    }

    fn first(array: impl Array + 'static, to: DataType) -> Result<String, &'static str> {
        let assigned = try_assign(array, to, Texts::Stay).map_err(|error| error.sqlstate)?;
        assert_eq!(assigned.data_type(), &to.to_arrow());
        Ok(text_value(&assigned, 0).unwrap())
    }

    #[test]
    fn numbers_round_or_fail() {
        let float = |value| Float64Array::from(vec![value]);
        assert_eq!(first(float(2.5), DataType::Integer).as_deref(), Ok("2"));
        assert_eq!(first(float(3e9), DataType::Integer), Err("22003"));
        assert_eq!(first(float(f64::NAN), DataType::BigInt), Err("22003"));
        assert_eq!(first(float(1e300), DataType::Real), Err("22003"));
        let money = DataType::Decimal { precision: 5, scale: 2 };
        assert_eq!(first(float(1.005), money).as_deref(), Ok("1.01"));
        assert_eq!(first(float(1e5), money), Err("22003"));
        assert_eq!(first(Int64Array::from(vec![1000]), money), Err("22003"));
        let decimal = |value| Decimal128Array::from(vec![value]).with_precision_and_scale(10, 3).unwrap();
        assert_eq!(first(decimal(2500), DataType::Integer).as_deref(), Ok("3"));
        assert_eq!(first(decimal(-2500), DataType::SmallInt).as_deref(), Ok("-3"));
        assert_eq!(first(decimal(1005), money).as_deref(), Ok("1.01"));
        assert_eq!(first(Int64Array::from(vec![i64::MAX]), DataType::SmallInt), Err("22003"));
        assert_eq!(first(decimal(-1005), money).as_deref(), Ok("-1.01"));
    }

    #[test]
    fn the_first_row_that_does_not_fit_is_named() {
        let error = try_assign(Int64Array::from(vec![Some(1), None, Some(70_000)]), DataType::SmallInt, Texts::Stay);
        let error = error.unwrap_err();
        assert_eq!(error.message, "value \"70000\" is out of range for type smallint");
        assert_eq!(error.detail.as_deref(), Some("Column \"c\", value \"70000\"."));
    }

    #[test]
    fn kinds_do_not_mix_without_a_cast() {
        assert_eq!(first(BooleanArray::from(vec![true]), DataType::Integer), Err("42804"));
        assert_eq!(first(BooleanArray::from(vec![true]), DataType::TEXT).as_deref(), Ok("true"));
        assert_eq!(first(StringArray::from(vec!["1"]), DataType::Integer), Err("42804"));
        assert_eq!(first(StringArray::from(vec!["abc"]), DataType::Text { max_chars: Some(2) }), Err("22001"));
        assert_eq!(first(TimestampMicrosecondArray::from(vec![-1]), DataType::Date).as_deref(), Ok("1969-12-31"));
        let read = try_assign(StringArray::from(vec!["2020-01-02"]), DataType::Date, Texts::AreRead).unwrap();
        assert_eq!(text_value(&read, 0).as_deref(), Some("2020-01-02"));
    }

    #[test]
    fn short_texts_are_known_by_their_views() {
        for text in
            ["", "a", "\0", "a\0b", "ä", "twelve bytes", "eleven byte\0", "thirteen byte", "long enough\0 for a buffer"]
        {
            let array = StringViewArray::from(vec![text]);
            for max in [None, Some(0), Some(1), Some(12), Some(99)] {
                let is_short =
                    text.len() <= 12 && !text.contains('\0') && max.is_none_or(|max| text.len() <= max as usize);
                assert_eq!(is_short_text(array.views()[0], max), is_short, "{text:?}, {max:?}");
            }
        }
    }
}
