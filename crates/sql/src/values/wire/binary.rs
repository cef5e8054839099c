//! The binary form of values that are rarer than numbers and texts, worked out from one value of an array.
use arrow_array::cast::AsArray;
use arrow_array::types::{IntervalDayTimeType, IntervalMonthDayNanoType, IntervalYearMonthType};
use arrow_array::{Array, ArrayRef, StructArray};
use arrow_schema::{DataType as ArrowType, IntervalUnit};
use engine::DataType;

use super::encodings::Encoding;
use super::parameters::{DIMENSIONS_MAX, too_many_dimensions};
use super::rows::Column;
use super::{oids, spaces};
use crate::error::SqlError;
use crate::values::text::text_value;

/// Appends a time of day, an interval, a range, a shape or an array; anything else has no binary form here.
pub(crate) fn put(
    out: &mut Vec<u8>,
    array: &dyn Array,
    row: usize,
    oid: u32,
    encoding: Option<&'static Encoding>,
) -> Result<(), SqlError> {
    match (oid, array.data_type()) {
        (oids::NUMERIC, _) => super::numeric::put(out, &text_value(array, row).unwrap_or_default()),
        (oids::TIME, _) => out.extend_from_slice(&time_micros(array, row)?.to_be_bytes()),
        (oids::INTERVAL, ArrowType::Interval(unit)) => put_interval(out, interval(array, row, *unit)),
        (_, ArrowType::FixedSizeBinary(_)) => {
            let bytes = array.as_fixed_size_binary().value(row);
            if !spaces::put(out, bytes, DataType::from_arrow(array.data_type())) {
                return Err(refused(array));
            }
        }
        (_, ArrowType::Struct(_)) => put_record(out, array.as_struct(), row)?,
        (_, ArrowType::List(_)) => put_list(out, &array.as_list::<i32>().value(row), oid, encoding)?,
        (_, ArrowType::LargeList(_)) => put_list(out, &array.as_list::<i64>().value(row), oid, encoding)?,
        _ => return Err(refused(array)),
    }
    Ok(())
}

fn refused(array: &dyn Array) -> SqlError {
    SqlError::new("42883", format!("no binary output function available for type {}", array.data_type()))
}

/// A time of day in microseconds, from its text, which is the same for every unit.
fn time_micros(array: &dyn Array, row: usize) -> Result<i64, SqlError> {
    let text = text_value(array, row).unwrap_or_default();
    let (clock, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let seconds = clock.split(':').try_fold(0_i64, |sum, part| part.parse::<i64>().map(|part| sum * 60 + part));
    let micros = format!("{fraction:0<6}").parse::<i64>();
    match (seconds, micros) {
        (Ok(seconds), Ok(micros)) => Ok(seconds * 1_000_000 + micros),
        _ => Err(refused(array)),
    }
}

/// Months, days and microseconds.
fn interval(array: &dyn Array, row: usize, unit: IntervalUnit) -> (i32, i32, i64) {
    match unit {
        IntervalUnit::YearMonth => (array.as_primitive::<IntervalYearMonthType>().value(row), 0, 0),
        IntervalUnit::DayTime => {
            let value = array.as_primitive::<IntervalDayTimeType>().value(row);
            (0, value.days, i64::from(value.milliseconds) * 1_000)
        }
        IntervalUnit::MonthDayNano => {
            let value = array.as_primitive::<IntervalMonthDayNanoType>().value(row);
            (value.months, value.days, value.nanoseconds / 1_000)
        }
    }
}

fn put_interval(out: &mut Vec<u8>, (months, days, micros): (i32, i32, i64)) {
    out.extend_from_slice(&micros.to_be_bytes());
    out.extend_from_slice(&days.to_be_bytes());
    out.extend_from_slice(&months.to_be_bytes());
}

/// A record: how many columns it has, and of each the type, the length and the value.
fn put_record(out: &mut Vec<u8>, record: &StructArray, row: usize) -> Result<(), SqlError> {
    let width = i32::try_from(record.num_columns()).map_err(|_| refused(record))?;
    out.extend_from_slice(&width.to_be_bytes());
    for (field, column) in record.fields().iter().zip(record.columns()) {
        let oid = oids::of_field(field);
        out.extend_from_slice(&oid.to_be_bytes());
        Column::new(column.as_ref(), oid, 1).put(out, row)?;
    }
    Ok(())
}

/// An array: dimensions, whether there are NULLs, the items' type, the length and lower bound of each dimension, items.
fn put_list(
    out: &mut Vec<u8>,
    items: &ArrayRef,
    oid: u32,
    encoding: Option<&'static Encoding>,
) -> Result<(), SqlError> {
    let vector_item = oids::item_of_vector(oid);
    let item = vector_item.or_else(|| oids::item_of(oid)).ok_or_else(|| refused(items))?;
    let (lengths, parts) = dimensions(items).ok_or_else(|| refused(items))?;
    if lengths.len() > DIMENSIONS_MAX {
        return Err(too_many_dimensions(lengths.len()));
    }
    if parts.iter().any(|part| part.data_type().is_nested()) && item != oids::RECORD {
        return Err(refused(items));
    }
    let count = |length: usize| i32::try_from(length).map_err(|_| refused(items));
    let has_null = parts.iter().any(|part| part.null_count() > 0);
    out.extend_from_slice(&count(lengths.len())?.to_be_bytes());
    out.extend_from_slice(&i32::from(has_null).to_be_bytes());
    out.extend_from_slice(&item.to_be_bytes());
    for length in lengths {
        out.extend_from_slice(&count(length)?.to_be_bytes());
        // Vectors count from 0.
        out.extend_from_slice(&i32::from(vector_item.is_none()).to_be_bytes());
    }
    for part in parts {
        let column = Column::new(part.as_ref(), item, 1).in_encoding(encoding);
        (0..part.len()).try_for_each(|row| column.put(out, row))?;
    }
    Ok(())
}

/// The lengths of an array's dimensions, and its items in their order. `None` where arrays within it are NULL, or of other lengths
/// than those beside them.
fn dimensions(items: &ArrayRef) -> Option<(Vec<usize>, Vec<ArrayRef>)> {
    let (mut lengths, mut parts) = (vec![items.len()], vec![items.clone()]);
    while let ArrowType::List(_) | ArrowType::LargeList(_) = parts.first()?.data_type() {
        let mut inner: Vec<ArrayRef> = Vec::new();
        for part in &parts {
            for row in 0..part.len() {
                inner.push(match part.data_type() {
                    _ if part.is_null(row) => return None,
                    ArrowType::List(_) => part.as_list::<i32>().value(row),
                    _ => part.as_list::<i64>().value(row),
                });
            }
        }
        let Some(length) = inner.first().map(|first| first.len()) else { break };
        if inner.iter().any(|other| other.len() != length) {
            return None;
        }
        lengths.push(length);
        parts = inner;
    }
    if lengths.contains(&0) { Some((Vec::new(), Vec::new())) } else { Some((lengths, parts)) }
}
