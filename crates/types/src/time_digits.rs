//! Times whose seconds keep fewer digits than six, as `timestamp(3)` and `time(0)` have them.
use serde::{Deserialize, Serialize};

/// The most digits behind the point of a second.
pub const SECOND_DIGITS_MAX: u8 = 6;

/// Microseconds from 1970-01-01 to 2000-01-01, from which PostgreSQL counts, and from which it rounds away.
const EPOCH: i64 = 946_684_800_000_000;

/// The types that may say how many digits of a second they keep.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum TimeKind {
    /// `timestamp`
    Timestamp,
    /// `timestamptz`
    TimestampTz,
    /// `time`
    Time,
    /// `timetz`
    TimeTz,
    /// `interval`, with what it says of its fields
    Interval {
        /// the fields that its values keep
        fields: IntervalFields,
        /// whether it says how many digits of a second they keep
        says_digits: bool,
    },
}

/// The fields that a type of intervals names.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[allow(missing_docs, reason = "each is what its name says")]
pub enum IntervalFields {
    All,
    Year,
    Month,
    Day,
    Hour,
    Minute,
    Second,
    YearToMonth,
    DayToHour,
    DayToMinute,
    DayToSecond,
    HourToMinute,
    HourToSecond,
    MinuteToSecond,
}

impl IntervalFields {
    /// All of them, with their names in SQL and the masks by which PostgreSQL's modifiers tell them.
    const NAMED: [(IntervalFields, &str, i32); 14] = [
        (IntervalFields::All, "", 0x7fff),
        (IntervalFields::Year, "year", 4),
        (IntervalFields::Month, "month", 2),
        (IntervalFields::Day, "day", 8),
        (IntervalFields::Hour, "hour", 0x400),
        (IntervalFields::Minute, "minute", 0x800),
        (IntervalFields::Second, "second", 0x1000),
        (IntervalFields::YearToMonth, "year to month", 6),
        (IntervalFields::DayToHour, "day to hour", 0x408),
        (IntervalFields::DayToMinute, "day to minute", 0xc08),
        (IntervalFields::DayToSecond, "day to second", 0x1c08),
        (IntervalFields::HourToMinute, "hour to minute", 0xc00),
        (IntervalFields::HourToSecond, "hour to second", 0x1c00),
        (IntervalFields::MinuteToSecond, "minute to second", 0x1800),
    ];

    /// The name in SQL; empty where none is named.
    pub fn name(self) -> &'static str {
        IntervalFields::NAMED[self as usize].1
    }

    /// The fields of this name.
    pub fn named(name: &str) -> Option<IntervalFields> {
        IntervalFields::NAMED.iter().find(|known| known.1 == name).map(|known| known.0)
    }

    /// The mask by which a modifier of PostgreSQL tells them.
    pub fn mask(self) -> i32 {
        IntervalFields::NAMED[self as usize].2
    }

    /// The fields of this mask.
    pub fn of_mask(mask: i32) -> Option<IntervalFields> {
        IntervalFields::NAMED.iter().find(|known| known.2 == mask).map(|known| known.0)
    }
}

impl TimeKind {
    /// All kinds that say no more of themselves.
    pub const ALL: [TimeKind; 4] = [TimeKind::Timestamp, TimeKind::TimestampTz, TimeKind::Time, TimeKind::TimeTz];

    /// Microseconds of a time of this kind, its seconds rounded to so many digits. The ends of time stay where they are.
    pub fn round(self, micros: i64, digits: u8) -> i64 {
        let unit = 10i64.pow(u32::from(SECOND_DIGITS_MAX.saturating_sub(digits)));
        let epoch = if matches!(self, TimeKind::Timestamp | TimeKind::TimestampTz) { EPOCH } else { 0 };
        match micros.checked_sub(epoch) {
            Some(since) if micros != i64::MAX => {
                let away = (since.unsigned_abs() + unit.unsigned_abs() / 2) / unit.unsigned_abs() * unit.unsigned_abs();
                i64::try_from(away).map_or(micros, |away| away * since.signum() + epoch)
            }
            _ => micros,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_rounded_away_from_the_year_2000() {
        let round = |micros, digits| TimeKind::Timestamp.round(micros, digits);
        assert_eq!(round(EPOCH + 1_500_000, 0), EPOCH + 2_000_000);
        assert_eq!(round(EPOCH - 500_000, 0), EPOCH - 1_000_000);
        assert_eq!(round(EPOCH + 1_499, 3), EPOCH + 1_000);
        assert_eq!(round(EPOCH + 123_456, 6), EPOCH + 123_456);
        assert_eq!((round(i64::MIN, 0), round(i64::MAX, 0)), (i64::MIN, i64::MAX));
        assert_eq!(TimeKind::Time.round(86_399_999_999, 3), 86_400_000_000);
    }

    #[test]
    fn fields_are_found_by_their_names_and_masks() {
        for (at, (fields, name, mask)) in IntervalFields::NAMED.into_iter().enumerate() {
            assert_eq!((fields as usize, fields.name(), fields.mask()), (at, name, mask));
            assert_eq!((IntervalFields::named(name), IntervalFields::of_mask(mask)), (Some(fields), Some(fields)));
        }
    }
}
