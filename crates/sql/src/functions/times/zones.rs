//! `timezone(zone, time)`, which is what `time AT TIME ZONE zone` says: a time without a zone as one of that zone, and a moment
//! as the clocks of the zone show it. A zone is a name of the time zone database, an offset as POSIX writes it, or an
//! interval.
use std::str::FromStr;

use arrow_array::IntervalMonthDayNanoArray;
use arrow_array::timezone::Tz;
use chrono::{DateTime, MappedLocalTime, NaiveDateTime, Offset, TimeZone};
use datafusion::logical_expr::ScalarUDF;

use crate::error::SqlError;
use crate::functions::row_wise::{Cell, Kind, Variant, function, interval, text, whole};
use crate::values::text::text_value;

const MICROS: i64 = 1_000_000;
/// The largest offset of a zone.
const OFFSET_MAX_S: i64 = 15 * 3_600 + 59 * 60 + 59;

type Row = [Option<Cell>];
type Answer = Result<Option<Cell>, SqlError>;

/// The name of the function.
pub(crate) const NAME: &str = "timezone";

/// The functions under their names in SQL.
pub(crate) fn functions() -> impl Iterator<Item = ScalarUDF> {
    use Kind::{Interval, Text, Timestamp, TimestampTz};
    const TIMEZONE: &[Variant] = &[
        Variant::strict(&[Text, Timestamp], TimestampTz, |row| moment(&Zone::named(text(row.first()))?, row)),
        Variant::strict(&[Text, TimestampTz], Timestamp, |row| shown(&Zone::named(text(row.first()))?, row)),
        Variant::strict(&[Interval, Timestamp], TimestampTz, |row| moment(&Zone::far(row)?, row)),
        Variant::strict(&[Interval, TimestampTz], Timestamp, |row| shown(&Zone::far(row)?, row)),
    ];
    [function(NAME, TIMEZONE)].into_iter()
}

/// A time zone.
#[derive(Debug)]
enum Zone {
    /// So many seconds east of Greenwich.
    Fixed(i64),
    Named(Tz),
}

impl Zone {
    fn named(name: &str) -> Result<Zone, SqlError> {
        let unknown = || SqlError::new("22023", format!("time zone \"{name}\" not recognized"));
        if ["utc", "gmt", "z", "zulu", "uct"].contains(&&*name.to_ascii_lowercase()) {
            return Ok(Zone::Fixed(0));
        }
        if name.starts_with(['+', '-']) || name.starts_with(|sign: char| sign.is_ascii_digit()) {
            return offset(name).map(Zone::Fixed).ok_or_else(unknown);
        }
        [name.to_owned(), capitalized(name), name.to_ascii_uppercase()]
            .iter()
            .find_map(|name| Tz::from_str(name).ok())
            .map(Zone::Named)
            .ok_or_else(unknown)
    }

    /// The zone that is as far from Greenwich as the interval in a row.
    fn far(row: &Row) -> Result<Zone, SqlError> {
        let distance = interval(row.first());
        if distance.months != 0 || distance.days != 0 {
            let shown = IntervalMonthDayNanoArray::from(vec![distance]);
            let shown = text_value(&shown, 0).unwrap_or_default();
            let message = format!("interval time zone \"{shown}\" must not include months or days");
            return Err(SqlError::new("22023", message));
        }
        Ok(Zone::Fixed(distance.nanoseconds / 1_000_000_000))
    }

    /// The seconds that the clocks are ahead of those of Greenwich at a moment.
    fn at_moment(&self, moment: i64) -> i64 {
        match self {
            Zone::Fixed(seconds) => *seconds,
            Zone::Named(zone) => DateTime::from_timestamp_micros(moment)
                .map_or(0, |moment| zone.offset_from_utc_datetime(&moment.naive_utc()).fix().local_minus_utc().into()),
        }
    }

    /// The seconds that clocks which show this time are ahead: of two such moments the later, and of none the clocks as they
    /// were before.
    fn at_shown(&self, shown: i64) -> i64 {
        let Zone::Named(zone) = self else { return self.at_moment(shown) };
        let Some(naive) = naive(shown) else { return 0 };
        match zone.offset_from_local_datetime(&naive) {
            MappedLocalTime::Single(offset) | MappedLocalTime::Ambiguous(_, offset) => {
                offset.fix().local_minus_utc().into()
            }
            MappedLocalTime::None => self.at_moment(shown - 24 * 3_600 * MICROS),
        }
    }
}

fn naive(micros: i64) -> Option<NaiveDateTime> {
    DateTime::from_timestamp_micros(micros).map(|moment| moment.naive_utc())
}

/// A name with capitals as the database writes most of them: `Europe/Berlin`.
fn capitalized(name: &str) -> String {
    let mut is_first = true;
    name.chars()
        .map(|sign| {
            let changed = if is_first { sign.to_ascii_uppercase() } else { sign.to_ascii_lowercase() };
            is_first = matches!(sign, '/' | '_' | '-');
            changed
        })
        .collect()
}

/// An offset in hours, minutes and seconds, where POSIX counts to the west.
fn offset(text: &str) -> Option<i64> {
    let (sign, digits) = match text.as_bytes().first()? {
        b'-' => (1, &text[1..]),
        b'+' => (-1, &text[1..]),
        _ => (-1, text),
    };
    let mut seconds = 0;
    let mut unit = 3_600;
    for part in digits.split(':') {
        let is_number = !part.is_empty() && part.len() <= 2 && part.bytes().all(|byte| byte.is_ascii_digit());
        let number: i64 =
            part.parse().ok().filter(|number| is_number && unit > 0 && (unit == 3_600 || *number < 60))?;
        seconds += number * unit;
        unit /= 60;
    }
    (seconds <= OFFSET_MAX_S).then_some(sign * seconds)
}

fn is_end(time: i64) -> bool {
    [i64::MIN, i64::MAX].contains(&time)
}

fn out_of_range() -> SqlError {
    SqlError::new("22008", "timestamp out of range")
}

/// The moment at which the clocks of the zone show the time.
fn moment(zone: &Zone, row: &Row) -> Answer {
    let time = whole(row.get(1));
    let moment = match is_end(time) {
        true => Some(time),
        false => time.checked_sub(zone.at_shown(time) * MICROS),
    };
    moment.map(|moment| Some(Cell::Time(moment))).ok_or_else(out_of_range)
}

/// What the clocks of the zone show at the moment.
fn shown(zone: &Zone, row: &Row) -> Answer {
    let moment = whole(row.get(1));
    let shown = match is_end(moment) {
        true => Some(moment),
        false => moment.checked_add(zone.at_moment(moment) * MICROS),
    };
    shown.map(|shown| Some(Cell::Time(shown))).ok_or_else(out_of_range)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> i64 {
        text.parse::<NaiveDateTime>().unwrap().and_utc().timestamp_micros()
    }

    #[test]
    fn clocks_that_were_moved_show_an_hour_twice_or_never() {
        let berlin = Zone::named("europe/berlin").unwrap();
        assert_eq!(berlin.at_moment(at("2024-07-01T00:00:00")), 7_200);
        assert_eq!(berlin.at_shown(at("2024-10-27T02:30:00")), 3_600);
        assert_eq!(berlin.at_shown(at("2024-03-31T02:30:00")), 3_600);
    }

    #[test]
    fn offsets_count_to_the_west() {
        assert_eq!((offset("+02"), offset("-05:30"), offset("2:00:01")), (Some(-7_200), Some(19_800), Some(-7_201)));
        assert_eq!((offset("+2:60"), offset("+99"), offset("1:2:3:4"), offset("+")), (None, None, None, None));
        assert!(Zone::named("Nowhere/City").is_err());
    }
}
