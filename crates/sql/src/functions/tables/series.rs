//! The values of `generate_series(start, stop [, step])`: whole numbers, decimals, and times in steps of intervals.
//!
//! The type of the values is that of the widest argument; dates count as times with a zone, as in PostgreSQL. NULL among the
//! arguments gives no values. A series ends where its type does.
use std::sync::Arc;

use arrow_array::types::IntervalMonthDayNano;
use arrow_array::{ArrayRef, Decimal128Array, Int32Array, Int64Array, TimestampMicrosecondArray};
use arrow_schema::{DataType as ArrowType, IntervalUnit, TimeUnit};
use datafusion::common::ScalarValue;
use engine::DataType;

use crate::error::{Result, SqlError};
use crate::interrupt::session_zone;
use crate::interrupt::zone::Zone;
use crate::values::builder::ColumnBuilder;
use crate::values::zoned::{cast_in, depends_on_zone, later};

/// The type of the values of a series.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    /// Four bytes.
    Integer,
    BigInt,
    Decimal {
        precision: u8,
        scale: i8,
    },
    /// Microseconds, with the zone of the type if it has one.
    Time(Option<Arc<str>>),
}

#[derive(Clone, Copy, Debug)]
enum SeriesStep {
    Number(i128),
    Time(IntervalMonthDayNano),
}

/// A series and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    kind: Kind,
    /// `None` once it is over.
    next: Option<i128>,
    stop: i128,
    step: SeriesStep,
}

/// The type of the values for arguments of these types; `None` where there is no such series.
pub(crate) fn type_of(types: &[ArrowType]) -> Option<ArrowType> {
    kind_of(types).map(|kind| kind.data_type())
}

fn kind_of(types: &[ArrowType]) -> Option<Kind> {
    let (ends, step) = types.split_at_checked(2)?;
    let is_interval = |data_type: &ArrowType| matches!(data_type, ArrowType::Interval(_) | ArrowType::Duration(_));
    let is_untyped = |data_type: &ArrowType| *data_type == ArrowType::Utf8;
    if ends.iter().all(is_untyped) {
        return None;
    }
    match step {
        [] => number_kind(ends),
        [step] if is_interval(step) || is_untyped(step) && time_kind(ends).is_some() => time_kind(ends),
        [_] => number_kind(types),
        _ => None,
    }
}

fn number_kind(types: &[ArrowType]) -> Option<Kind> {
    let mut widest = Kind::Integer;
    let mut scale_max = 0;
    for data_type in types {
        let kind = match data_type {
            ArrowType::Null | ArrowType::Utf8 => Kind::Integer,
            ArrowType::Int8 | ArrowType::Int16 | ArrowType::Int32 => Kind::Integer,
            ArrowType::UInt8 | ArrowType::UInt16 => Kind::Integer,
            ArrowType::Int64 | ArrowType::UInt32 | ArrowType::UInt64 => Kind::BigInt,
            ArrowType::Decimal128(_, scale) => {
                scale_max = scale_max.max(*scale);
                Kind::Decimal { precision: 38, scale: scale_max }
            }
            _ => return None,
        };
        widest = match (widest, kind) {
            (_, decimal @ Kind::Decimal { .. }) => decimal,
            (Kind::Integer, other) => other,
            (wider, _) => wider,
        };
    }
    Some(widest)
}

fn time_kind(types: &[ArrowType]) -> Option<Kind> {
    let mut zone = None;
    for data_type in types {
        match data_type {
            ArrowType::Timestamp(_, Some(own)) => zone = Some(own.clone()),
            ArrowType::Timestamp(_, None) | ArrowType::Null | ArrowType::Utf8 => {}
            ArrowType::Date32 | ArrowType::Date64 => zone = zone.or_else(|| Some("+00:00".into())),
            _ => return None,
        }
    }
    Some(Kind::Time(zone))
}

impl Kind {
    fn data_type(&self) -> ArrowType {
        match self {
            Kind::Integer => ArrowType::Int32,
            Kind::BigInt => ArrowType::Int64,
            Kind::Decimal { precision, scale } => ArrowType::Decimal128(*precision, *scale),
            Kind::Time(zone) => ArrowType::Timestamp(TimeUnit::Microsecond, zone.clone()),
        }
    }

    /// The type of values that literals without a type are read as.
    fn of_values(&self) -> DataType {
        match self {
            Kind::Integer => DataType::Integer,
            Kind::BigInt => DataType::BigInt,
            Kind::Decimal { precision, scale } => DataType::Decimal { precision: *precision, scale: *scale },
            Kind::Time(None) => DataType::Timestamp,
            Kind::Time(Some(_)) => DataType::TimestampTz,
        }
    }

    /// The zone by whose calendar times follow one another.
    fn zone(&self) -> Zone {
        if let Kind::Time(Some(_)) = self { session_zone::current() } else { Zone::UTC }
    }

    /// An argument as a number of the kind; `None` for NULL.
    fn number(&self, value: &ScalarValue) -> Result<Option<i128>> {
        Ok(match typed(value, self.of_values(), &self.data_type())? {
            ScalarValue::Int32(value) => value.map(i128::from),
            ScalarValue::Int64(value) | ScalarValue::TimestampMicrosecond(value, _) => value.map(i128::from),
            ScalarValue::Decimal128(value, ..) => value,
            _ => None,
        })
    }

    fn holds(&self, value: i128) -> bool {
        match self {
            Kind::Integer => i32::try_from(value).is_ok(),
            Kind::BigInt | Kind::Time(_) => i64::try_from(value).is_ok(),
            Kind::Decimal { precision, .. } => value.unsigned_abs() < 10u128.pow(u32::from(*precision)),
        }
    }

    fn array(&self, values: &[i128]) -> Result<ArrayRef> {
        // All of them are values of the kind.
        let small = |value: &i128| i32::try_from(*value).unwrap_or_default();
        let wide = |value: &i128| i64::try_from(*value).unwrap_or_default();
        Ok(match self {
            Kind::Integer => Arc::new(values.iter().map(small).collect::<Int32Array>()),
            Kind::BigInt => Arc::new(values.iter().map(wide).collect::<Int64Array>()),
            Kind::Decimal { precision, scale } => {
                let array = Decimal128Array::from_iter_values(values.iter().copied());
                Arc::new(array.with_precision_and_scale(*precision, *scale).map_err(internal)?)
            }
            Kind::Time(zone) => {
                let array = TimestampMicrosecondArray::from_iter_values(values.iter().map(wide));
                Arc::new(array.with_timezone_opt(zone.clone()))
            }
        })
    }
}

fn internal(error: arrow_schema::ArrowError) -> SqlError {
    SqlError::new("XX000", error.to_string())
}

/// An argument as a value of a type, also if it is a literal without one.
fn typed(value: &ScalarValue, of: DataType, to: &ArrowType) -> Result<ScalarValue> {
    let ScalarValue::Utf8(Some(text)) = value else { return cast(value, to) };
    let mut builder = ColumnBuilder::new(of);
    builder.append_text(text).map_err(|misfit| SqlError { detail: None, ..misfit.error("", of, text, "text") })?;
    ScalarValue::try_from_array(&builder.finish(), 0).map_err(|error| SqlError::new("XX000", error.to_string()))
}

/// An argument as a value of another type.
fn cast(value: &ScalarValue, to: &ArrowType) -> Result<ScalarValue> {
    let cast = match depends_on_zone(&value.data_type(), to) {
        true => value.to_array().and_then(|value| {
            let moments = cast_in(session_zone::current(), &value, to)?;
            ScalarValue::try_from_array(&moments, 0)
        }),
        false => value.cast_to(to),
    };
    cast.map_err(|error| SqlError::new("22003", error.to_string()))
}

impl Series {
    /// The series of some arguments.
    pub(crate) fn of(args: &[ScalarValue]) -> Result<Series> {
        let types: Vec<ArrowType> = args.iter().map(ScalarValue::data_type).collect();
        if types.iter().all(|data_type| *data_type == ArrowType::Utf8) {
            let unknown = vec!["unknown"; types.len()].join(", ");
            return Err(SqlError::new("42725", format!("function generate_series({unknown}) is not unique")));
        }
        let kind = kind_of(&types).ok_or_else(|| {
            let named: Vec<String> = types.iter().map(crate::values::types::type_name).collect();
            SqlError::new("42883", format!("function generate_series({}) does not exist", named.join(", ")))
                .hint("There are series of whole numbers, of numerics, and of times with an interval as the step.")
        })?;
        let zero = || SqlError::new("22023", "step size cannot equal zero");
        let step = match args.get(2) {
            Some(step) if matches!(kind, Kind::Time(_)) => {
                match typed(step, DataType::Interval, &ArrowType::Interval(IntervalUnit::MonthDayNano))? {
                    ScalarValue::IntervalMonthDayNano(step) => step.map(SeriesStep::Time),
                    _ => None,
                }
            }
            Some(step) => kind.number(step)?.map(SeriesStep::Number),
            None => match kind {
                Kind::Decimal { scale, .. } => Some(SeriesStep::Number(10i128.pow(scale.unsigned_abs().into()))),
                _ => Some(SeriesStep::Number(1)),
            },
        };
        let ends = [kind.number(&args[0])?, kind.number(&args[1])?];
        let ([Some(start), Some(stop)], Some(step)) = (ends, step) else {
            return Ok(Series { kind, next: None, stop: 0, step: SeriesStep::Number(1) });
        };
        let is_zero = match step {
            SeriesStep::Number(step) => step == 0,
            SeriesStep::Time(step) => step.months == 0 && step.days == 0 && step.nanoseconds == 0,
        };
        if is_zero {
            return Err(zero());
        }
        let mut series = Series { kind, next: Some(start), stop, step };
        series.end_if_over();
        Ok(series)
    }

    pub(crate) fn data_type(&self) -> ArrowType {
        self.kind.data_type()
    }

    /// The next values, at most so many; none once it is over.
    pub(crate) fn batch(&mut self, most: usize) -> Result<Option<ArrayRef>> {
        let mut values = Vec::new();
        while let Some(value) = self.next.filter(|_| values.len() < most) {
            values.push(value);
            self.advance();
        }
        if values.is_empty() { Ok(None) } else { self.kind.array(&values).map(Some) }
    }

    /// All values that are left, of which there may be so many.
    pub(crate) fn all(mut self, most: usize) -> Result<ArrayRef> {
        let array = match self.batch(most)? {
            Some(array) => array,
            None => self.kind.array(&[])?,
        };
        match self.next {
            None => Ok(array),
            Some(_) => Err(SqlError::new("54000", format!("a series of more than {most} values for one row"))
                .hint("In FROM a series of constants may be as long as you like.")),
        }
    }

    fn advance(&mut self) {
        let (Some(at), step) = (self.next, self.step) else { return };
        self.next = match step {
            SeriesStep::Number(step) => at.checked_add(step),
            SeriesStep::Time(step) => {
                i64::try_from(at).ok().and_then(|at| later(self.kind.zone(), at, step)).map(i128::from)
            }
        };
        self.end_if_over();
    }

    fn end_if_over(&mut self) {
        let is_upward = match self.step {
            SeriesStep::Number(step) => step > 0,
            SeriesStep::Time(step) => {
                let days = i128::from(step.months) * 30 + i128::from(step.days);
                days * 86_400_000_000_000 + i128::from(step.nanoseconds) > 0
            }
        };
        let is_over = |at: i128| if is_upward { at > self.stop } else { at < self.stop };
        self.next = self.next.filter(|at| !is_over(*at) && self.kind.holds(*at));
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::Array;

    use super::*;

    fn shown(args: &[ScalarValue]) -> Vec<String> {
        let array = Series::of(args).and_then(|series| series.all(100)).unwrap();
        let text = |row| ScalarValue::try_from_array(&array, row).unwrap().to_string();
        (0..array.len()).map(text).collect()
    }

    #[test]
    fn a_series_has_the_type_of_its_widest_argument_and_ends_with_it() {
        let small = |value: i32| ScalarValue::Int32(Some(value));
        assert_eq!(shown(&[small(1), small(3)]), ["1", "2", "3"]);
        assert_eq!(shown(&[small(3), small(1), small(-2)]), ["3", "1"]);
        assert_eq!(shown(&[small(i32::MAX - 1), small(i32::MAX)]).len(), 2);
        assert!(shown(&[small(3), small(1)]).is_empty() && shown(&[small(1), ScalarValue::Null]).is_empty());
        assert_eq!(type_of(&[ArrowType::Int32, ArrowType::Int64]), Some(ArrowType::Int64));
        assert_eq!(type_of(&[ArrowType::Utf8, ArrowType::Int64]), Some(ArrowType::Int64));
        assert_eq!(type_of(&[ArrowType::Utf8View, ArrowType::Int64]), None);
        let literal = |text: &str| ScalarValue::Utf8(Some(text.to_owned()));
        assert_eq!(shown(&[literal("2"), small(3)]), ["2", "3"]);
        assert_eq!(Series::of(&[small(1), literal("x")]).unwrap_err().sqlstate, "22P02");
        assert_eq!(Series::of(&[literal("1"), literal("2")]).unwrap_err().sqlstate, "42725");
        let half = ScalarValue::Decimal128(Some(5), 2, 1);
        assert_eq!(shown(&[small(1), small(2), half]).len(), 3);
        assert_eq!(Series::of(&[small(1), small(2), small(0)]).unwrap_err().sqlstate, "22023");
    }

    #[test]
    fn months_go_by_the_calendar() {
        let day = 86_400_000_000;
        let at = |days: i64| ScalarValue::TimestampMicrosecond(Some(days * day), None);
        let month = ScalarValue::IntervalMonthDayNano(Some(IntervalMonthDayNano::new(1, 0, 0)));
        let numbers = |array: ArrayRef| {
            let times = array.as_any().downcast_ref::<TimestampMicrosecondArray>().unwrap().clone();
            times.values().iter().map(|micros| micros / day).collect::<Vec<_>>()
        };
        // From the last of January the day stays what it has become, as in PostgreSQL.
        let series = Series::of(&[at(30), at(100), month]).unwrap().all(10).unwrap();
        assert_eq!(numbers(series), [30, 58, 86]);
    }
}
