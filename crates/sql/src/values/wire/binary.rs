//! The binary form of values that are rarer than numbers and texts, worked out from one value of an array.
use arrow_array::cast::AsArray;
use arrow_array::types::{IntervalDayTimeType, IntervalMonthDayNanoType, IntervalYearMonthType};
use arrow_array::{Array, ArrayRef, StructArray};
use arrow_schema::{DataType as ArrowType, IntervalUnit};
use engine::DataType;

use super::rows::Column;
use super::{oids, spaces};
use crate::error::SqlError;
use crate::values::text::text_value;

/// Appends a time of day, an interval, a range, a shape or an array; anything else has no binary form here.
pub(crate) fn put(out: &mut Vec<u8>, array: &dyn Array, row: usize, oid: u32) -> Result<(), SqlError> {
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
        (_, ArrowType::List(_)) => put_list(out, &array.as_list::<i32>().value(row), oid)?,
        (_, ArrowType::LargeList(_)) => put_list(out, &array.as_list::<i64>().value(row), oid)?,
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

/// An array of one dimension: dimensions, whether there are NULLs, the items' type, length and lower bound, items.
fn put_list(out: &mut Vec<u8>, items: &ArrayRef, oid: u32) -> Result<(), SqlError> {
    let vector_item = oids::item_of_vector(oid);
    let item = vector_item.or_else(|| oids::item_of(oid));
    let item = item.filter(|_| !items.data_type().is_nested()).ok_or_else(|| refused(items))?;
    let length = i32::try_from(items.len()).map_err(|_| refused(items))?;
    let dimensions = i32::from(length > 0);
    let has_null = i32::from(items.null_count() > 0);
    out.extend_from_slice(&dimensions.to_be_bytes());
    out.extend_from_slice(&has_null.to_be_bytes());
    out.extend_from_slice(&item.to_be_bytes());
    if length > 0 {
        out.extend_from_slice(&length.to_be_bytes());
        // Vectors count from 0.
        out.extend_from_slice(&i32::from(vector_item.is_none()).to_be_bytes());
    }
    let column = Column::new(items.as_ref(), item, 1);
    (0..items.len()).try_for_each(|row| column.put(out, row))
}
