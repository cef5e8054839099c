//! Intervals: times a number, their order, the one between two timestamps; and `to_timestamp(float)`.
//!
//! A month has 30 days and a day 24 hours where intervals are compared or cut into parts, as in PostgreSQL.
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{DurationMicrosecondType, Float64Type, IntervalMonthDayNano, IntervalMonthDayNanoType};
use arrow_array::{ArrayRef, Decimal128Array, IntervalMonthDayNanoArray, TimestampMicrosecondArray};
use arrow_cast::cast;
use arrow_schema::{DataType, IntervalUnit, TimeUnit};
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::interval_arithmetic::Interval;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, cast as as_type,
};

use engine::TimeKind;

use crate::error::SqlError;
use crate::values::clock;
use crate::values::datetime::MICROS_PER_DAY;
use crate::values::interval_form::IntervalForm;
use crate::values::interval_input;

pub(crate) const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);
const ORDER: DataType = DataType::Decimal128(38, 0);

/// The action of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Does {
    Multiply,
    Divide,
    /// A number that orders intervals.
    Order,
    /// The interval that a number of microseconds is.
    FromMicros,
    ToTimestamp,
    /// An interval that keeps the fields of a type.
    Fields(IntervalForm),
    /// A time that keeps so many digits of its seconds.
    Digits {
        digits: u8,
        of: TimeKind,
    },
}

/// A time of this type, its seconds rounded to so many digits.
pub(crate) fn with_digits(time: Expr, data_type: &DataType, digits: u32) -> Expr {
    let of = engine::DataType::from_arrow(data_type).and_then(TimeKind::of);
    match (of, u8::try_from(digits)) {
        (Some(of), Ok(digits)) => call(Does::Digits { digits, of }, vec![time]),
        _ => time,
    }
}

/// The value of a type with these fields that an interval becomes.
pub(crate) fn cut(interval: Expr, form: IntervalForm) -> Expr {
    call(Does::Fields(form), vec![interval])
}

/// The interval that a text is.
pub(crate) fn read(text: &str) -> Result<Expr> {
    let wrong = || {
        let message = format!("invalid input syntax for type interval: \"{text}\"");
        DataFusionError::External(Box::new(SqlError::new("22007", message)))
    };
    let span = interval_input::parse(text).map_err(|_| wrong())?;
    let narrow = |number: i64| i32::try_from(number).map_err(|_| wrong());
    let nanoseconds = span.micros.checked_mul(1000).ok_or_else(wrong)?;
    let interval = IntervalMonthDayNano::new(narrow(span.months)?, narrow(span.days)?, nanoseconds);
    Ok(Expr::Literal(ScalarValue::IntervalMonthDayNano(Some(interval)), None))
}

/// `to_timestamp` of a number of seconds.
pub(crate) fn to_timestamp(seconds: Expr) -> Expr {
    call(Does::ToTimestamp, vec![seconds])
}

/// An interval times a number, or divided by it.
pub(crate) fn scaled(interval: Expr, number: Expr, divides: bool) -> Expr {
    call(if divides { Does::Divide } else { Does::Multiply }, vec![interval, number])
}

/// The expression by which an interval is compared.
pub(crate) fn order(interval: Expr) -> Expr {
    call(Does::Order, vec![interval])
}

/// The interval that the difference of two timestamps is.
pub(crate) fn from_difference(difference: Expr) -> Expr {
    call(Does::FromMicros, vec![difference])
}

/// The interval that a time of day is since midnight.
pub(crate) fn of_time(time: Expr) -> Expr {
    from_difference(as_type(as_type(time, DataType::Int64), DataType::Duration(TimeUnit::Microsecond)))
}

fn call(does: Does, args: Vec<Expr>) -> Expr {
    let signature = Signature::any(args.len(), Volatility::Immutable);
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(ScalarUDF::from(Function { does, signature })), args))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Function {
    does: Does,
    signature: Signature,
}

impl ScalarUDFImpl for Function {
    fn name(&self) -> &str {
        match self.does {
            Does::Multiply => "interval_multiply",
            Does::Divide => "interval_divide",
            Does::Order => "interval_order",
            Does::FromMicros => "interval_between",
            Does::ToTimestamp => "to_timestamp",
            Does::Fields(_) => "interval_fields",
            Does::Digits { .. } => "round_seconds",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(match self.does {
            Does::Multiply | Does::Divide | Does::FromMicros | Does::Fields(_) => INTERVAL,
            Does::Order => ORDER,
            Does::ToTimestamp => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
            Does::Digits { of, .. } => of.whole().to_arrow(),
        })
    }

    /// Without the type of what it gives, the library knows no order of a sum with it.
    fn evaluate_bounds(&self, _: &[&Interval]) -> Result<Interval> {
        Interval::make_unbounded(&self.return_type(&[])?)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_scalar = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let rows = if is_scalar { 1 } else { args.number_rows };
        let arrays = args.args.into_iter().map(|arg| arg.into_array(rows)).collect::<Result<Vec<_>>>()?;
        let computed = self.compute(&arrays)?;
        Ok(match is_scalar {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&computed, 0)?),
            false => ColumnarValue::Array(computed),
        })
    }
}

impl Function {
    fn compute(&self, args: &[ArrayRef]) -> Result<ArrayRef> {
        let external = |error: SqlError| DataFusionError::External(Box::new(error));
        match (self.does, args) {
            (Does::Multiply | Does::Divide, [intervals, factors]) => {
                let intervals = cast(intervals, &INTERVAL)?;
                let factors = cast(factors, &DataType::Float64)?;
                let pairs = intervals.as_primitive::<IntervalMonthDayNanoType>().iter();
                let pairs = pairs.zip(factors.as_primitive::<Float64Type>()).map(|(left, right)| left.zip(right));
                let value = |pair: Option<(IntervalMonthDayNano, f64)>| {
                    pair.map(|(interval, factor)| times(interval, factor, self.does == Does::Divide)).transpose()
                };
                let computed: IntervalMonthDayNanoArray =
                    pairs.map(value).collect::<Result<_, _>>().map_err(external)?;
                Ok(Arc::new(computed))
            }
            (Does::Order, [intervals]) => {
                let intervals = cast(intervals, &INTERVAL)?;
                let values = intervals.as_primitive::<IntervalMonthDayNanoType>().iter();
                let values: Decimal128Array = values.map(|value| value.map(key)).collect();
                Ok(Arc::new(values.with_data_type(ORDER)))
            }
            (Does::FromMicros, [differences]) => {
                let differences = cast(differences, &DataType::Duration(TimeUnit::Microsecond))?;
                let values = differences.as_primitive::<DurationMicrosecondType>().iter();
                let value = |micros: Option<i64>| micros.map(between).transpose();
                let computed: IntervalMonthDayNanoArray =
                    values.map(value).collect::<Result<_, _>>().map_err(external)?;
                Ok(Arc::new(computed))
            }
            (Does::Fields(form), [intervals]) => {
                let intervals = cast(intervals, &INTERVAL)?;
                let computed: IntervalMonthDayNanoArray =
                    intervals.as_primitive::<IntervalMonthDayNanoType>().unary(|value| with_fields(value, form));
                Ok(Arc::new(computed))
            }
            (Does::ToTimestamp, [seconds]) => {
                let seconds = cast(seconds, &DataType::Float64)?;
                let value = |seconds: Option<f64>| seconds.map(moment).transpose();
                let values = seconds.as_primitive::<Float64Type>().iter().map(value);
                let computed: TimestampMicrosecondArray = values.collect::<Result<_, _>>().map_err(external)?;
                Ok(Arc::new(computed.with_timezone("UTC")))
            }
            (Does::Digits { digits, of }, [times]) => {
                let whole = cast(times, &of.whole().to_arrow())?;
                clock::rounded(&whole, of, digits)
                    .ok_or_else(|| DataFusionError::Internal(format!("{whole:?} is no time")))
            }
            _ => Err(DataFusionError::Internal("a function of intervals without its arguments".to_owned())),
        }
    }
}

fn out_of_range() -> SqlError {
    SqlError::new("22008", "interval out of range")
}

fn with_fields(value: IntervalMonthDayNano, form: IntervalForm) -> IntervalMonthDayNano {
    let whole = engine::Interval { months: value.months, days: value.days, micros: value.nanoseconds / 1000 };
    let engine::Interval { months, days, micros } = form.cut_interval(whole);
    IntervalMonthDayNano::new(months, days, micros.saturating_mul(1000))
}

/// The microseconds of an interval, for comparison.
fn key(value: IntervalMonthDayNano) -> i128 {
    let days = i128::from(value.months) * 30 + i128::from(value.days);
    days * i128::from(MICROS_PER_DAY) + i128::from(value.nanoseconds / 1000)
}

fn between(micros: i64) -> Result<IntervalMonthDayNano, SqlError> {
    let days = i32::try_from(micros / MICROS_PER_DAY).map_err(|_| out_of_range())?;
    Ok(IntervalMonthDayNano::new(0, days, micros % MICROS_PER_DAY * 1000))
}

/// Seconds since 1970 as a time.
pub(crate) fn moment(seconds: f64) -> Result<i64, SqlError> {
    let micros = (seconds * 1e6).round_ties_even();
    match seconds {
        _ if seconds.is_nan() => Err(SqlError::new("22008", "timestamp cannot be NaN")),
        f64::INFINITY => Ok(i64::MAX),
        f64::NEG_INFINITY => Ok(i64::MIN),
        // 4714-11-24 BC up to the year 294277.
        _ if !(-210_866_803_200.0..9_224_318_016_000.0).contains(&seconds) => {
            Err(SqlError::new("22008", format!("timestamp out of range: \"{seconds}\"")))
        }
        #[expect(clippy::cast_possible_truncation, reason = "the range has just been checked")]
        _ => Ok(micros as i64),
    }
}

/// A part of a unit to the microsecond, as PostgreSQL rounds it.
fn rounded(value: f64) -> f64 {
    (value * 1e6).round_ties_even() / 1e6
}

/// A whole number of a field of an interval.
#[expect(clippy::cast_possible_truncation, reason = "the range is checked before")]
fn field(value: f64) -> Result<i32, SqlError> {
    match value.is_finite() && value.abs() < f64::from(i32::MAX) {
        true => Ok(value as i32),
        false => Err(out_of_range()),
    }
}

/// An interval divided by a number.
pub(crate) fn divided(interval: IntervalMonthDayNano, by: f64) -> Result<IntervalMonthDayNano, SqlError> {
    times(interval, by, true)
}

/// An interval times a number: what is left of a month becomes days, what is left of a day becomes time.
fn times(interval: IntervalMonthDayNano, factor: f64, divides: bool) -> Result<IntervalMonthDayNano, SqlError> {
    if divides && factor == 0.0 {
        return Err(SqlError::new("22012", "division by zero"));
    }
    let scale = |value: f64| if divides { value / factor } else { value * factor };
    let (months, days) = (scale(f64::from(interval.months)), scale(f64::from(interval.days)));
    let (whole_months, mut whole_days) = (field(months)?, field(days)?);
    let more_days = rounded((months - f64::from(whole_months)) * 30.0);
    let whole_more_days = field(more_days)?;
    let mut seconds = rounded((days - f64::from(whole_days) + more_days - f64::from(whole_more_days)) * 86_400.0);
    if seconds.abs() >= 86_400.0 {
        let carried = field(seconds / 86_400.0)?;
        whole_days += carried;
        seconds -= f64::from(carried) * 86_400.0;
    }
    let whole_days = whole_days.checked_add(whole_more_days).ok_or_else(out_of_range)?;
    #[expect(clippy::cast_precision_loss, reason = "PostgreSQL computes in floats, too")]
    let micros = (scale((interval.nanoseconds / 1000) as f64) + seconds * 1e6).round_ties_even();
    if !micros.is_finite() || micros.abs() > 9.2e15 {
        return Err(out_of_range());
    }
    #[expect(clippy::cast_possible_truncation, reason = "the range has just been checked")]
    let nanoseconds = micros as i64 * 1000;
    Ok(IntervalMonthDayNano::new(whole_months, whole_days, nanoseconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(months: i32, days: i32, hours: i64) -> IntervalMonthDayNano {
        IntervalMonthDayNano::new(months, days, hours * 3_600_000_000_000)
    }

    #[test]
    fn parts_of_months_become_days() {
        assert_eq!(times(of(1, 0, 0), 1.5, false), Ok(of(1, 15, 0)));
        assert_eq!(times(of(0, 1, 0), 2.0, true), Ok(of(0, 0, 12)));
        assert_eq!(times(of(0, 1, 0), 0.0, true).map_err(|error| error.sqlstate), Err("22012"));
    }

    #[test]
    fn a_month_is_thirty_days_long() {
        assert_eq!(key(of(1, 0, 0)), key(of(0, 30, 0)));
        assert_eq!(key(of(0, 1, 0)), key(of(0, 0, 24)));
        assert!(key(of(1, 0, 0)) < key(of(0, 31, 0)));
    }

    #[test]
    fn times_are_numbers_of_seconds() {
        assert_eq!(moment(1.5), Ok(1_500_000));
        assert_eq!(moment(f64::NAN).map_err(|error| error.sqlstate), Err("22008"));
        assert_eq!((moment(f64::INFINITY), moment(1e15).is_err()), (Ok(i64::MAX), true));
    }
}
