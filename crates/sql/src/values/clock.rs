//! Times of day and spans made of one another, and of timestamps.
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType, Time64MicrosecondType, TimestampMicrosecondType,
};
use arrow_array::{
    Array, ArrayRef, Int64Array, IntervalMonthDayNanoArray, Time64MicrosecondArray, TimestampMicrosecondArray,
};
use arrow_cast::cast;
use arrow_schema::{DataType as ArrowType, IntervalUnit, TimeUnit};

use engine::{DataType, Interval, TimeKind, Value};

use super::Misfit;
use super::builder::ColumnBuilder;
use super::datetime::MICROS_PER_DAY;
use super::interval_form::IntervalForm;
use super::single::value_at;
use super::zoned::cast_in;
use crate::interrupt::session_zone;

const NANOS_PER_MICRO: i64 = 1000;

/// A span as queries have it; one that is too long for them has the longest time.
pub(crate) fn interval_of(span: Interval) -> IntervalMonthDayNano {
    IntervalMonthDayNano::new(span.months, span.days, span.micros.saturating_mul(NANOS_PER_MICRO))
}

/// A span of a query.
pub(crate) fn span_of(interval: IntervalMonthDayNano) -> Interval {
    let micros = interval.nanoseconds / NANOS_PER_MICRO;
    Interval { months: interval.months, days: interval.days, micros }
}

/// The times of day of timestamps, or what spans are more than whole days.
pub(crate) fn times(array: &ArrayRef) -> Result<ArrayRef, Misfit> {
    let of_day = |micros: i64| micros.rem_euclid(MICROS_PER_DAY);
    if let ArrowType::Interval(_) = array.data_type() {
        let spans = cast(array, &ArrowType::Interval(IntervalUnit::MonthDayNano)).map_err(|_| Misfit::Kind)?;
        let spans = spans.as_primitive::<IntervalMonthDayNanoType>().iter();
        let times = spans.map(|span| span.map(|span| of_day(span.nanoseconds / 1000)));
        return Ok(Arc::new(times.collect::<Time64MicrosecondArray>()));
    }
    let plain = ArrowType::Timestamp(TimeUnit::Microsecond, None);
    let shown = cast_in(session_zone::current(), array, &plain).map_err(|_| Misfit::Kind)?;
    let micros = cast(&shown, &ArrowType::Int64).map_err(|_| Misfit::Kind)?;
    // The ends of time have no time of day.
    let time = |micros: i64| if matches!(micros, i64::MIN | i64::MAX) { 0 } else { of_day(micros) };
    let times: Int64Array = micros.as_primitive::<Int64Type>().unary(time);
    cast(&times, &ArrowType::Time64(TimeUnit::Microsecond)).map_err(|_| Misfit::Kind)
}

/// Times with their zone as they stand on the clock there; `None` if they are none.
pub(crate) fn times_without_zone(array: &ArrayRef) -> Option<ArrayRef> {
    DataType::from_arrow(array.data_type()).filter(|of| *of == DataType::TimeTz)?;
    let time = |row| match value_at(array, row, DataType::TimeTz) {
        Some(Value::TimeTz(time)) => Some(time.micros),
        _ => None,
    };
    Some(Arc::new((0..array.len()).map(time).collect::<Time64MicrosecondArray>()))
}

/// Times of this kind, their seconds rounded to so many digits; `None` if they are none.
pub(crate) fn rounded(times: &ArrayRef, of: TimeKind, digits: u8) -> Option<ArrayRef> {
    let round = |micros: i64| of.round(micros, digits);
    Some(match of {
        TimeKind::Timestamp | TimeKind::TimestampTz => {
            let times = times.as_primitive_opt::<TimestampMicrosecondType>()?;
            let rounded: TimestampMicrosecondArray = times.unary(round);
            Arc::new(rounded.with_data_type(times.data_type().clone()))
        }
        TimeKind::Time => {
            let rounded: Time64MicrosecondArray = times.as_primitive_opt::<Time64MicrosecondType>()?.unary(round);
            Arc::new(rounded)
        }
        TimeKind::TimeTz => {
            let mut builder = ColumnBuilder::new(DataType::TimeTz);
            for row in 0..times.len() {
                builder.append_value(&value_at(times, row, DataType::TimeTz)?.rounded(digits)).ok()?;
            }
            builder.finish()
        }
        TimeKind::Interval { .. } => {
            let mut builder = ColumnBuilder::new(DataType::Interval);
            for row in 0..times.len() {
                builder.append_value(&kept(value_at(times, row, DataType::Interval)?, of, digits)).ok()?;
            }
            builder.finish()
        }
    })
}

/// The value of a kind that keeps so many digits of its seconds, or of its fields some, which another one becomes.
pub(crate) fn kept(value: Value, of: TimeKind, digits: u8) -> Value {
    match (value, of) {
        (Value::Interval(whole), TimeKind::Interval { fields, .. }) => {
            Value::Interval(IntervalForm::of_column(fields, digits).cut_interval(whole))
        }
        (value, _) => value.rounded(digits),
    }
}

/// Times of day as spans.
pub(crate) fn spans(array: &ArrayRef) -> Result<ArrayRef, Misfit> {
    let micros = cast(array, &ArrowType::Time64(TimeUnit::Microsecond)).map_err(|_| Misfit::Kind)?;
    let micros = cast(&micros, &ArrowType::Int64).map_err(|_| Misfit::Kind)?;
    let span = |micros: Option<i64>| micros.map(|micros| IntervalMonthDayNano::new(0, 0, micros * 1000));
    Ok(Arc::new(micros.as_primitive::<Int64Type>().iter().map(span).collect::<IntervalMonthDayNanoArray>()))
}
