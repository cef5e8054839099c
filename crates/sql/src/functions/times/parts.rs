//! `extract(field FROM time)`, a numeric, and `date_part('field', time)`, a float: fields of dates, times and intervals as
//! PostgreSQL counts them.
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, IntervalMonthDayNanoType, Time64MicrosecondType, TimestampMicrosecondType};
use arrow_array::{Array, ArrayRef, Decimal128Array, Float64Array};
use arrow_schema::{DataType, Field, FieldRef, IntervalUnit, TimeUnit};
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use engine::ZonedTime;

use crate::error::SqlError;
use crate::interrupt::session_zone;
use crate::interrupt::zone::Zone;
use crate::values::datetime::{MICROS_PER_DAY, civil, day_number};
use crate::values::zoned::cast_in;

/// The functions under their names in SQL.
pub(crate) fn functions() -> impl Iterator<Item = ScalarUDF> {
    [extract(), ScalarUDF::from(Part::new(false))].into_iter()
}

/// `extract`.
pub(crate) fn extract() -> ScalarUDF {
    ScalarUDF::from(Part::new(true))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Part {
    is_exact: bool,
    signature: Signature,
}

impl Part {
    fn new(is_exact: bool) -> Part {
        Part { is_exact, signature: Signature::any(2, Volatility::Immutable) }
    }
}

/// The type of value that parts are taken of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Date,
    Timestamp { has_zone: bool },
    Time,
    TimeTz,
    Interval,
}

impl Kind {
    fn of(data_type: &DataType) -> Option<Kind> {
        Some(match data_type {
            DataType::Date32 | DataType::Date64 => Kind::Date,
            DataType::Timestamp(_, zone) => Kind::Timestamp { has_zone: zone.is_some() },
            DataType::Time32(_) | DataType::Time64(_) => Kind::Time,
            DataType::Interval(_) | DataType::Duration(_) => Kind::Interval,
            other if engine::DataType::from_arrow(other) == Some(engine::DataType::TimeTz) => Kind::TimeTz,
            _ => return None,
        })
    }

    fn name(self) -> &'static str {
        match self {
            Kind::Date => "date",
            Kind::Timestamp { has_zone: false } => "timestamp without time zone",
            Kind::Timestamp { has_zone: true } => "timestamp with time zone",
            Kind::Time => "time without time zone",
            Kind::TimeTz => "time with time zone",
            Kind::Interval => "interval",
        }
    }

    fn arrow(self) -> DataType {
        match self {
            Kind::Date => DataType::Date32,
            Kind::Timestamp { has_zone: false } => DataType::Timestamp(TimeUnit::Microsecond, None),
            Kind::Timestamp { has_zone: true } => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
            Kind::Time => DataType::Time64(TimeUnit::Microsecond),
            Kind::TimeTz => engine::DataType::TimeTz.to_arrow(),
            Kind::Interval => DataType::Interval(IntervalUnit::MonthDayNano),
        }
    }
}

impl ScalarUDFImpl for Part {
    fn name(&self) -> &str {
        if self.is_exact { "extract" } else { "date_part" }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(if self.is_exact { DataType::Decimal128(38, 6) } else { DataType::Float64 })
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let data_type = match self.is_exact {
            true => {
                let field = args.scalar_arguments.first().copied().flatten();
                let name = field.and_then(|value| value.try_as_str().flatten()).map(str::to_ascii_lowercase);
                let kind = args.arg_fields.get(1).and_then(|field| Kind::of(field.data_type()));
                let scale = name.map_or(6, |name| decimals(&name, kind));
                // No field has more than eighteen digits before its point.
                DataType::Decimal128(18 + scale.unsigned_abs(), scale)
            }
            false => DataType::Float64,
        };
        Ok(Arc::new(Field::new(self.name(), data_type, true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_scalar = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let [ColumnarValue::Scalar(field), of] = &args.args[..] else {
            let error = SqlError::unsupported(format!("{} of a field that is no literal", self.name()));
            return Err(DataFusionError::External(Box::new(error)));
        };
        let name = field.try_as_str().flatten().map(str::to_ascii_lowercase);
        let of = of.to_array(if is_scalar { 1 } else { args.number_rows })?;
        let computed = match name {
            Some(name) => self.compute(&name, of, args.return_field.data_type())?,
            None => arrow_array::new_null_array(args.return_field.data_type(), of.len()),
        };
        Ok(match is_scalar {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&computed, 0)?),
            false => ColumnarValue::Array(computed),
        })
    }
}

/// The decimals of an extracted field.
fn decimals(name: &str, kind: Option<Kind>) -> i8 {
    match (name, kind) {
        ("epoch", Some(Kind::Date)) | ("julian", Some(Kind::Date)) => 0,
        ("second" | "seconds" | "sec" | "secs" | "epoch", _) => 6,
        ("milliseconds" | "millisecond" | "msec" | "msecs" | "ms", _) => 3,
        ("julian", _) => 20,
        _ => 0,
    }
}

impl Part {
    fn compute(&self, name: &str, of: ArrayRef, to: &DataType) -> Result<ArrayRef> {
        let external = |error: SqlError| DataFusionError::External(Box::new(error));
        // A text without a type is a timestamp; the fields of the time of a date are those of its midnight for a float.
        let kind = match Kind::of(of.data_type()) {
            Some(Kind::Date) if !self.is_exact => Kind::Timestamp { has_zone: false },
            Some(kind) => kind,
            None if of.data_type().is_string() || of.data_type().is_null() => Kind::Timestamp { has_zone: true },
            None => {
                let message = format!("Function '{}' failed to match any signature", self.name());
                return Err(DataFusionError::Plan(message));
            }
        };
        // A date is a timestamp below, but for its ends.
        let (given, given_kind) = (of.clone(), Kind::of(of.data_type()).unwrap_or(kind));
        let of = cast_in(session_zone::current(), &of, &kind.arrow())?;
        let values = values(&of, name, kind).map_err(external)?;
        let scale = u32::try_from(decimals(name, Some(kind))).unwrap_or(0);
        if let DataType::Decimal128(_, declared) = to {
            let up = u32::try_from(*declared).unwrap_or(0).saturating_sub(scale);
            let values = values.into_iter().map(|value| value.map(|value| value * 10i128.pow(up)));
            return Ok(Arc::new(values.collect::<Decimal128Array>().with_data_type(to.clone())));
        }
        let unit = 10f64.powi(i32::try_from(scale).unwrap_or(0));
        let float = |(row, value): (usize, Option<i128>)| match value {
            Some(value) => Some(value as f64 / unit),
            None if GROW.contains(&name) => end_of_time(&given, row, given_kind),
            None => None,
        };
        Ok(Arc::new(values.into_iter().enumerate().map(float).collect::<Float64Array>()))
    }
}

/// Fields that grow with time, and are infinite at its ends.
const GROW: [&str; 7] = ["year", "decade", "century", "millennium", "isoyear", "julian", "epoch"];

/// The end of time that a row has, as an infinite number.
fn end_of_time(of: &ArrayRef, row: usize, kind: Kind) -> Option<f64> {
    let (lowest, highest) = match kind {
        _ if of.is_null(row) => return None,
        Kind::Date => {
            let days = of.as_primitive::<Date32Type>().value(row);
            (days == i32::MIN, days == i32::MAX)
        }
        Kind::Timestamp { .. } => {
            let micros = of.as_primitive::<TimestampMicrosecondType>().value(row);
            (micros == i64::MIN, micros == i64::MAX)
        }
        Kind::Time | Kind::TimeTz | Kind::Interval => return None,
    };
    match (lowest, highest) {
        (true, _) => Some(f64::NEG_INFINITY),
        (_, true) => Some(f64::INFINITY),
        _ => None,
    }
}

/// The field of each row, none of the ends of time, as many decimals as [`decimals`] says being shifted before the point.
fn values(of: &ArrayRef, name: &str, kind: Kind) -> Result<Vec<Option<i128>>, SqlError> {
    let each = |row: usize| -> Result<Option<i128>, SqlError> {
        if of.is_null(row) {
            return Ok(None);
        }
        let value = match kind {
            Kind::Date | Kind::Timestamp { .. } if end_of_time(of, row, kind).is_some() => {
                return of_timestamp(name, 0, Some(Zone::UTC)).map(|_| None).ok_or_else(|| unknown(name, kind));
            }
            Kind::Date => of_day(name, of.as_primitive::<Date32Type>().value(row).into()).map(i128::from),
            Kind::Timestamp { has_zone } => {
                let micros = of.as_primitive::<TimestampMicrosecondType>().value(row);
                of_timestamp(name, micros, if has_zone { Some(session_zone::current()) } else { None })
            }
            Kind::Time => of_time(name, of.as_primitive::<Time64MicrosecondType>().value(row)),
            Kind::TimeTz => of_zoned_time(name, ZonedTime::from_bytes(of.as_fixed_size_binary().value(row))),
            Kind::Interval => {
                let value = of.as_primitive::<IntervalMonthDayNanoType>().value(row);
                of_interval(name, value.months.into(), value.days.into(), value.nanoseconds / 1000)
            }
        };
        value.map(Some).ok_or_else(|| unknown(name, kind))
    };
    (0..of.len()).map(each).collect()
}

fn unknown(name: &str, kind: Kind) -> SqlError {
    const KNOWN: [&str; 12] = [
        "hour",
        "minute",
        "second",
        "milliseconds",
        "microseconds",
        "timezone",
        "timezone_hour",
        "timezone_minute",
        "julian",
        "week",
        "dow",
        "isodow",
    ];
    match KNOWN.contains(&name) || of_day(name, 0).is_some() {
        true => SqlError::new("0A000", format!("unit \"{name}\" not supported for type {}", kind.name())),
        false => SqlError::new("22023", format!("unit \"{name}\" not recognized for type {}", kind.name())),
    }
}

/// Years are counted without a year zero: 1 BC is -1.
fn shown(year: i64) -> i64 {
    if year > 0 { year } else { year - 1 }
}

/// The monday of the first week of the ISO year that a day belongs to, and that year.
fn iso_year(days: i64) -> (i64, i64) {
    let monday = |year: i64| {
        let fourth = day_number(year, 1, 4);
        fourth - (fourth + 3).rem_euclid(7)
    };
    let year = civil(days).0;
    let found = [year + 1, year, year - 1].into_iter().find(|year| monday(*year) <= days).unwrap_or(year);
    (monday(found), found)
}

fn of_day(name: &str, days: i64) -> Option<i64> {
    let (year, month, day) = civil(days);
    Some(match name {
        "year" | "years" | "y" => shown(year),
        "month" | "months" | "mon" | "mons" => month.into(),
        "day" | "days" | "d" => day.into(),
        "quarter" | "qtr" => i64::from((month - 1) / 3 + 1),
        "decade" | "decades" | "dec" => year.div_euclid(10),
        "century" | "centuries" | "c" => {
            if year > 0 {
                (year + 99) / 100
            } else {
                -((99 - (year - 1)) / 100)
            }
        }
        "millennium" | "millenniums" | "millennia" | "mil" => {
            if year > 0 {
                (year + 999) / 1000
            } else {
                -((999 - (year - 1)) / 1000)
            }
        }
        "dow" => (days + 4).rem_euclid(7),
        "isodow" => (days + 3).rem_euclid(7) + 1,
        "doy" => days - day_number(year, 1, 1) + 1,
        "week" | "weeks" | "w" => (days - iso_year(days).0) / 7 + 1,
        "isoyear" => shown(iso_year(days).1),
        "epoch" => days * 86_400,
        "julian" => days + 2_440_588,
        _ => return None,
    })
}

fn of_timestamp(name: &str, moment: i64, zone: Option<Zone>) -> Option<i128> {
    let micros = zone.and_then(|zone| zone.shown(moment)).unwrap_or(moment);
    let offset = zone.map(|zone| zone.at_moment(moment));
    let (days, time) = (micros.div_euclid(MICROS_PER_DAY), micros.rem_euclid(MICROS_PER_DAY));
    match name {
        "epoch" => Some(moment.into()),
        "julian" => {
            // Rounded, as a quotient of numerics is.
            let day = i128::from(MICROS_PER_DAY);
            let fraction = (i128::from(time) * 10i128.pow(20) + day / 2) / day;
            Some(i128::from(days + 2_440_588) * 10i128.pow(20) + fraction)
        }
        _ => {
            let field = offset.and_then(|offset| of_zone(name, offset));
            field.or_else(|| of_clock(name, time)).or_else(|| of_day(name, days)).map(i128::from)
        }
    }
}

fn of_time(name: &str, micros: i64) -> Option<i128> {
    match name {
        "epoch" => Some(micros.into()),
        _ => of_clock(name, micros).map(i128::from),
    }
}

fn of_zoned_time(name: &str, time: ZonedTime) -> Option<i128> {
    match name {
        "epoch" => Some(time.at_greenwich().into()),
        _ => of_zone(name, time.east.into()).or_else(|| of_clock(name, time.micros)).map(i128::from),
    }
}

/// The fields of a zone that is so many seconds ahead of Greenwich.
fn of_zone(name: &str, offset: i64) -> Option<i64> {
    match name {
        "timezone" => Some(offset),
        "timezone_hour" => Some(offset / 3_600),
        "timezone_minute" => Some(offset / 60 % 60),
        _ => None,
    }
}

/// The fields of a time of day, or of so many hours.
fn of_clock(name: &str, micros: i64) -> Option<i64> {
    Some(match name {
        "hour" | "hours" | "h" | "hr" | "hrs" => micros / 3_600_000_000,
        "minute" | "minutes" | "m" | "min" | "mins" => micros / 60_000_000 % 60,
        "second" | "seconds" | "sec" | "secs" | "s" | "milliseconds" | "millisecond" | "msec" | "msecs" | "ms"
        | "microseconds" | "microsecond" | "usec" | "usecs" | "us" => micros % 60_000_000,
        _ => return None,
    })
}

fn of_interval(name: &str, months: i64, days: i64, micros: i64) -> Option<i128> {
    let years = months / 12;
    Some(i128::from(match name {
        "year" | "years" | "y" => years,
        "month" | "months" | "mon" | "mons" => months % 12,
        "quarter" | "qtr" => months % 12 / 3 + 1,
        "decade" | "decades" => years / 10,
        "century" | "centuries" => years / 100,
        "millennium" | "millenniums" | "millennia" => years / 1000,
        "day" | "days" | "d" => days,
        "epoch" => {
            let days = i128::from(years) * 1461 * 6 + (i128::from(months % 12) * 30 + i128::from(days)) * 24;
            return Some(days * 3_600_000_000 + i128::from(micros));
        }
        _ => of_clock(name, micros)?,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::datetime::parse_date;

    fn day(name: &str, text: &str) -> i64 {
        of_day(name, parse_date(text).unwrap().into()).unwrap()
    }

    #[test]
    fn years_before_christ_are_negative() {
        assert_eq!(
            (day("year", "0044-03-15 BC"), day("year", "0001-01-01 BC"), day("year", "0001-01-01")),
            (-44, -1, 1)
        );
        assert_eq!((day("century", "0044-03-15 BC"), day("century", "2000-01-01")), (-1, 20));
        assert_eq!((day("decade", "0044-03-15 BC"), day("millennium", "2001-01-01")), (-5, 3));
    }

    #[test]
    fn weeks_are_those_of_iso() {
        assert_eq!((day("week", "2005-01-01"), day("isoyear", "2005-01-01")), (53, 2004));
        assert_eq!(
            (day("week", "2012-12-31"), day("isoyear", "2012-12-31"), day("isodow", "2012-12-31")),
            (1, 2013, 1)
        );
        assert_eq!((day("doy", "2020-12-31"), day("dow", "2020-01-31"), day("quarter", "2020-01-31")), (366, 5, 1));
    }

    #[test]
    fn intervals_have_months_of_thirty_days() {
        assert_eq!(of_interval("epoch", 1, 0, 0), Some(2_592_000_000_000));
        assert_eq!(of_interval("epoch", 12, 0, 0), Some(31_557_600_000_000));
        assert_eq!(of_interval("hour", 0, 1, 90_000_000_000), Some(25));
    }
}
