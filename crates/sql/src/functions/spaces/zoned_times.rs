//! The functions and operators of times of day with their zone (`timetz`).
//!
//! They are compared by the planner's library, as the bytes that it has of them are in their order.
use engine::{DataType, Interval, Value, ZonedTime};

use super::form::{Form, strict};
use crate::error::SqlError;
use crate::interrupt::session_zone;
use crate::interrupt::zone::Zone;
use crate::values::datetime::{MICROS_PER_DAY, MICROS_PER_SECOND, wall_time};

const TIME: DataType = DataType::Time;
const TIMETZ: DataType = DataType::TimeTz;
const MOMENT: DataType = DataType::TimestampTz;

/// The function of a cast to `time`.
pub(crate) const TO_TIME: &str = "\0time of timetz";

/// The functions under their names in SQL.
pub(super) fn named() -> Vec<(&'static str, Vec<Form>)> {
    vec![
        ("timetz", vec![strict([TIME], TIMETZ, of_clock), strict([MOMENT], TIMETZ, of_moment)]),
        (
            "timezone",
            vec![strict([DataType::TEXT, TIMETZ], TIMETZ, in_named), strict([DataType::Interval, TIMETZ], TIMETZ, far)],
        ),
    ]
}

/// The operators under their names in SQL, and what casts are.
pub(super) fn operators() -> Vec<(&'static str, Vec<Form>)> {
    let span = DataType::Interval;
    vec![
        (
            "+",
            vec![
                strict([TIMETZ, span], TIMETZ, |row| Ok(moved(row, 1))),
                strict([span, TIMETZ], TIMETZ, |row| Ok(moved(row, 1))),
                strict([DataType::Date, TIMETZ], MOMENT, of_day),
                strict([TIMETZ, DataType::Date], MOMENT, of_day),
            ],
        ),
        ("-", vec![strict([TIMETZ, span], TIMETZ, |row| Ok(moved(row, -1)))]),
        (
            TO_TIME,
            vec![strict([TIMETZ], TIME, |row| Ok(time(row).map_or(Value::Null, |time| Value::Time(time.micros))))],
        ),
    ]
}

/// The time among the values of a row.
fn time(row: &[Value]) -> Option<ZonedTime> {
    row.iter().find_map(|value| if let Value::TimeTz(time) = value { Some(*time) } else { None })
}

/// A time on the session's clocks of today.
fn of_clock(row: &[Value]) -> Result<Value, SqlError> {
    let [Value::Time(micros)] = row else { return Ok(Value::Null) };
    let zone = session_zone::current();
    let midnight = zone.shown(wall_time()).unwrap_or_default().div_euclid(MICROS_PER_DAY) * MICROS_PER_DAY;
    let moment = zone.moment(midnight.saturating_add(*micros)).unwrap_or(midnight);
    Ok(Value::TimeTz(ZonedTime { micros: *micros, east: seconds(zone, moment) }))
}

/// What the session's clocks show at a moment.
fn of_moment(row: &[Value]) -> Result<Value, SqlError> {
    let [Value::TimestampTz(moment)] = row else { return Ok(Value::Null) };
    if [i64::MIN, i64::MAX].contains(moment) {
        return Ok(Value::Null);
    }
    let zone = session_zone::current();
    let micros = zone.shown(*moment).unwrap_or(*moment).rem_euclid(MICROS_PER_DAY);
    Ok(Value::TimeTz(ZonedTime { micros, east: seconds(zone, *moment) }))
}

fn seconds(zone: Zone, moment: i64) -> i32 {
    i32::try_from(zone.at_moment(moment)).unwrap_or(0)
}

/// The clocks of a zone, today.
fn in_named(row: &[Value]) -> Result<Value, SqlError> {
    let ([Value::Text(name), _], Some(time)) = (row, time(row)) else { return Ok(Value::Null) };
    let zone = Zone::named(name);
    let zone = zone.ok_or_else(|| SqlError::new("22023", format!("time zone \"{name}\" not recognized")))?;
    Ok(Value::TimeTz(shown(time, seconds(zone, wall_time()))))
}

/// The clocks that are so far from those of Greenwich.
fn far(row: &[Value]) -> Result<Value, SqlError> {
    let ([Value::Interval(distance), _], Some(time)) = (row, time(row)) else { return Ok(Value::Null) };
    if distance.months != 0 || distance.days != 0 {
        let message = format!("interval time zone \"{distance}\" must not include months or days");
        return Err(SqlError::new("22023", message));
    }
    let east = i32::try_from(distance.micros / MICROS_PER_SECOND).unwrap_or(i32::MAX);
    Ok(Value::TimeTz(shown(time, east)))
}

/// What other clocks show then.
fn shown(time: ZonedTime, east: i32) -> ZonedTime {
    let micros = time.at_greenwich() + i64::from(east) * MICROS_PER_SECOND;
    ZonedTime { micros: micros.rem_euclid(MICROS_PER_DAY), east }
}

/// A time later or earlier by the part of an interval that is no whole day.
fn moved(row: &[Value], sign: i64) -> Value {
    let span = row.iter().find_map(|value| if let Value::Interval(span) = value { Some(*span) } else { None });
    match (time(row), span) {
        (Some(time), Some(Interval { micros, .. })) => {
            let micros = (time.micros + sign * (micros % MICROS_PER_DAY)).rem_euclid(MICROS_PER_DAY);
            Value::TimeTz(ZonedTime { micros, ..time })
        }
        _ => Value::Null,
    }
}

/// The moment of a time on a day.
fn of_day(row: &[Value]) -> Result<Value, SqlError> {
    let day = row.iter().find_map(|value| if let Value::Date(day) = value { Some(*day) } else { None });
    let (Some(time), Some(day)) = (time(row), day) else { return Ok(Value::Null) };
    Ok(match day {
        i32::MIN => Value::TimestampTz(i64::MIN),
        i32::MAX => Value::TimestampTz(i64::MAX),
        day => {
            let moment =
                i64::from(day).checked_mul(MICROS_PER_DAY).and_then(|day| day.checked_add(time.at_greenwich()));
            Value::TimestampTz(moment.ok_or_else(|| SqlError::new("22008", "date out of range for timestamp"))?)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Value {
        crate::read_value(text, TIMETZ).unwrap()
    }

    #[test]
    fn intervals_go_around_the_clock() {
        let span = |micros| Value::Interval(Interval { months: 1, days: 1, micros });
        assert_eq!(moved(&[at("23:30-08"), span(3_600_000_000)], 1), at("00:30-08"));
        assert_eq!(moved(&[at("00:30-08"), span(90_000_000_000)], -1), at("23:30-08"));
        assert_eq!(moved(&[at("24:00+00"), span(0)], 1), at("00:00+00"));
        assert_eq!(moved(&[Value::Null, span(0)], 1), Value::Null);
    }

    #[test]
    fn other_clocks_show_the_moment_in_their_way() {
        let far = |text: &str, micros| far(&[Value::Interval(Interval { months: 0, days: 0, micros }), at(text)]);
        assert_eq!(far("04:05:06-08", 3_600_000_000), Ok(at("13:05:06+01")));
        assert_eq!(far("20:00-08", 0), Ok(at("04:00+00")));
        let named = in_named(&[Value::from("nowhere"), at("20:00-08")]);
        assert_eq!(named.unwrap_err().message, "time zone \"nowhere\" not recognized");
        assert_eq!(of_day(&[Value::Date(0), at("00:00:01+01")]), Ok(Value::TimestampTz(-3_599_000_000)));
    }
}
