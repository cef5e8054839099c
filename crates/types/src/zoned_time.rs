//! Times of day with the distance of their zone from Greenwich, as `timetz` has them.
//!
//! ```text
//! 04:05:06-08      04:05:06 on clocks that are eight hours behind those of Greenwich
//! ```
//!
//! Two times compare by what the clocks of Greenwich show then. Of two for which that is one, the zone further to the east comes first.
use std::fmt;

use crate::interval::write_clock;

/// Bytes of a time as it is kept.
pub const ZONED_TIME_BYTES: usize = 12;

const MICROS_PER_SECOND: i64 = 1_000_000;
const TIME_SIGN: u64 = 1 << 63;
const ZONE_SIGN: u32 = 1 << 31;

/// A time of day on the clocks of a zone.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct ZonedTime {
    /// Microseconds since midnight on these clocks, 0..=86,400,000,000.
    pub micros: i64,
    /// Seconds by which these clocks are ahead of those of Greenwich.
    pub east: i32,
}

impl ZonedTime {
    /// No zone is this many seconds or more away from Greenwich.
    pub const EAST_MAX: i32 = 16 * 3600;

    /// What the clocks of Greenwich show then, in microseconds; below zero or beyond a day where it is another day there.
    pub fn at_greenwich(self) -> i64 {
        self.micros.wrapping_sub(i64::from(self.east) * MICROS_PER_SECOND)
    }

    /// The time as it is kept, in the order of times:
    ///
    /// ```text
    /// microseconds at Greenwich + 2^63, 8 bytes, the most significant first | seconds to the west + 2^31, 4
    /// ```
    pub fn to_bytes(self) -> [u8; ZONED_TIME_BYTES] {
        let mut bytes = [0; ZONED_TIME_BYTES];
        bytes[..8].copy_from_slice(&(self.at_greenwich().cast_unsigned() ^ TIME_SIGN).to_be_bytes());
        bytes[8..].copy_from_slice(&(self.east.wrapping_neg().cast_unsigned() ^ ZONE_SIGN).to_be_bytes());
        bytes
    }

    /// The time that is kept as these bytes; midnight at Greenwich where they are too few.
    pub fn from_bytes(bytes: &[u8]) -> ZonedTime {
        let Some((greenwich, rest)) = bytes.split_first_chunk::<8>() else { return ZonedTime::default() };
        let Some(west) = rest.first_chunk::<4>() else { return ZonedTime::default() };
        let east = (u32::from_be_bytes(*west) ^ ZONE_SIGN).cast_signed().wrapping_neg();
        let greenwich = (u64::from_be_bytes(*greenwich) ^ TIME_SIGN).cast_signed();
        ZonedTime { micros: greenwich.wrapping_add(i64::from(east) * MICROS_PER_SECOND), east }
    }
}

/// PostgreSQL's style: `04:05:06.789-08`, with the minutes and seconds of a zone that has them.
impl fmt::Display for ZonedTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_clock(f, self.micros.unsigned_abs())?;
        let (sign, seconds) = (if self.east < 0 { '-' } else { '+' }, self.east.unsigned_abs());
        write!(f, "{sign}{:02}", seconds / 3600)?;
        match (seconds / 60 % 60, seconds % 60) {
            (0, 0) => Ok(()),
            (minutes, 0) => write!(f, ":{minutes:02}"),
            (minutes, seconds) => write!(f, ":{minutes:02}:{seconds:02}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn times() -> impl Strategy<Value = ZonedTime> {
        let clocks = prop_oneof![(0i64..4).prop_map(|hour| hour * 3_600_000_000), 0i64..=86_400_000_000];
        let zones = prop_oneof![(-4i32..4).prop_map(|hour| hour * 3600), 1 - ZonedTime::EAST_MAX..ZonedTime::EAST_MAX];
        (clocks, zones).prop_map(|(micros, east)| ZonedTime { micros, east })
    }

    proptest! {
        #[test]
        fn times_come_back_and_bytes_are_in_their_order(first in times(), second in times()) {
            prop_assert_eq!(ZonedTime::from_bytes(&first.to_bytes()), first);
            let order = first.at_greenwich().cmp(&second.at_greenwich()).then(second.east.cmp(&first.east));
            prop_assert_eq!(first.to_bytes().cmp(&second.to_bytes()), order);
        }

        #[test]
        fn no_bytes_are_a_panic(bytes: Vec<u8>) {
            let _ = ZonedTime::from_bytes(&bytes).to_string();
        }
    }

    #[test]
    fn zones_show_as_much_as_they_have() {
        let show = |micros, east| ZonedTime { micros, east }.to_string();
        assert_eq!(show(14_706_700_000, -8 * 3600), "04:05:06.7-08");
        assert_eq!(show(86_400_000_000, 5 * 3600 + 1800), "24:00:00+05:30");
        assert_eq!(show(0, -7), "00:00:00-00:00:07");
    }
}
