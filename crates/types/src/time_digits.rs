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
}

impl TimeKind {
    /// All kinds.
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
}
