//! Spans of time: months, days and microseconds, which are kept apart, as a month has no fixed number of days.
use std::fmt;

/// Bytes of a span as it is kept.
const BYTES: usize = 24;

const MICROS_PER_DAY: i128 = 86_400_000_000;

/// A span of time, as `interval` has it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Interval {
    /// Whole months.
    pub months: i32,
    /// Whole days.
    pub days: i32,
    /// The rest, in microseconds.
    pub micros: i64,
}

impl Interval {
    /// How many microseconds it is where a month has 30 days and a day 24 hours, as it is compared.
    pub fn total_micros(self) -> i128 {
        (i128::from(self.months) * 30 + i128::from(self.days)) * MICROS_PER_DAY + i128::from(self.micros)
    }

    /// The span as it is kept, in the order of spans:
    ///
    /// ```text
    /// all microseconds + 2^127, 16 bytes, the most significant first | months + 2^31, 4 | days + 2^31, 4
    /// ```
    pub fn to_bytes(self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        bytes[..16].copy_from_slice(&(self.total_micros().cast_unsigned() ^ 1 << 127).to_be_bytes());
        bytes[16..20].copy_from_slice(&(self.months.cast_unsigned() ^ 1 << 31).to_be_bytes());
        bytes[20..].copy_from_slice(&(self.days.cast_unsigned() ^ 1 << 31).to_be_bytes());
        bytes
    }

    /// The span that is kept as these bytes; what is too short has zeros behind it.
    pub fn from_bytes(bytes: &[u8]) -> Interval {
        let mut whole = [0; BYTES];
        let length = bytes.len().min(BYTES);
        whole[..length].copy_from_slice(&bytes[..length]);
        let mut total = [0; 16];
        total.copy_from_slice(&whole[..16]);
        let part = |at: usize| {
            let bytes = [whole[at], whole[at + 1], whole[at + 2], whole[at + 3]];
            (u32::from_be_bytes(bytes) ^ 1 << 31).cast_signed()
        };
        let (months, days) = (part(16), part(20));
        let total = (u128::from_be_bytes(total) ^ 1 << 127).cast_signed();
        let above = Interval { months, days, micros: 0 }.total_micros();
        Interval { months, days, micros: i64::try_from(total.wrapping_sub(above)).unwrap_or(0) }
    }
}

/// A time of day, or a longer count of hours, with as many digits of its second as it needs.
pub(crate) fn write_clock(f: &mut fmt::Formatter<'_>, micros: u64) -> fmt::Result {
    let (seconds, fraction) = (micros / 1_000_000, micros % 1_000_000);
    write!(f, "{:02}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60)?;
    match fraction {
        0 => Ok(()),
        _ => f.write_str(format!(".{fraction:06}").trim_end_matches('0')),
    }
}

/// PostgreSQL's style: `1 year 2 mons 3 days 04:05:06.7`.
impl Interval {
    /// The form of ISO 8601, as `P1Y2M3DT4H5M6.7S`; each part has its own sign.
    pub fn iso_8601(self) -> String {
        let (seconds, fraction) = (self.micros / 1_000_000, (self.micros % 1_000_000).unsigned_abs());
        let part = |count: i64, unit: char| if count == 0 { String::new() } else { format!("{count}{unit}") };
        let date = [(self.months / 12, 'Y'), (self.months % 12, 'M'), (self.days, 'D')];
        let date: String = date.map(|(count, unit)| part(count.into(), unit)).concat();
        let mut time =
            [(seconds / 3600, 'H'), (seconds / 60 % 60, 'M')].map(|(count, unit)| part(count, unit)).concat();
        if self.micros % 60_000_000 != 0 {
            let sign = if self.micros < 0 { "-" } else { "" };
            let digits = format!("{}.{fraction:06}", (seconds % 60).unsigned_abs());
            time += &format!("{sign}{}S", digits.trim_end_matches('0').trim_end_matches('.'));
        }
        match (date.is_empty(), time.is_empty()) {
            (true, true) => "PT0S".to_owned(),
            (_, true) => format!("P{date}"),
            _ => format!("P{date}T{time}"),
        }
    }
}

impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A positive part behind a negative one shows its sign.
        let (mut is_behind_negative, mut is_first) = (false, true);
        for (count, unit) in [(self.months / 12, "year"), (self.months % 12, "mon"), (self.days, "day")] {
            if count != 0 {
                let blank = if is_first { "" } else { " " };
                let sign = if is_behind_negative && count > 0 { "+" } else { "" };
                write!(f, "{blank}{sign}{count} {unit}{}", if count == 1 { "" } else { "s" })?;
                (is_behind_negative, is_first) = (count < 0, false);
            }
        }
        if self.micros != 0 || is_first {
            let sign = match self.micros < 0 {
                true => "-",
                false if is_behind_negative => "+",
                false => "",
            };
            f.write_str(if is_first { "" } else { " " })?;
            f.write_str(sign)?;
            write_clock(f, self.micros.unsigned_abs())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn parts_have_their_own_signs_in_the_form_of_iso() {
        let text = |months, days, micros| Interval { months, days, micros }.iso_8601();
        assert_eq!(text(0, 0, 0), "PT0S");
        assert_eq!(text(14, 3, 14_706_700_000), "P1Y2M3DT4H5M6.7S");
        assert_eq!(text(-14, 0, -3_723_000_000), "P-1Y-2MT-1H-2M-3S");
        assert_eq!((text(0, 1, 0), text(0, 0, -500_000)), ("P1D".to_owned(), "PT-0.5S".to_owned()));
    }

    proptest! {
        #[test]
        fn spans_come_back_and_bytes_are_in_their_order(first: (i32, i32, i64), second: (i32, i32, i64)) {
            let of = |(months, days, micros)| Interval { months, days, micros };
            let (first, second) = (of(first), of(second));
            prop_assert_eq!(Interval::from_bytes(&first.to_bytes()), first);
            let order = first.total_micros().cmp(&second.total_micros());
            prop_assert!(order.is_eq() || first.to_bytes().cmp(&second.to_bytes()) == order);
        }

        #[test]
        fn no_bytes_are_a_panic(bytes: Vec<u8>) {
            let _ = Interval::from_bytes(&bytes).to_string();
        }
    }

    #[test]
    fn spans_are_written_as_postgresql_does() {
        let shown = |months, days, micros| Interval { months, days, micros }.to_string();
        assert_eq!(shown(14, 3, 14_706_700_000), "1 year 2 mons 3 days 04:05:06.7");
        assert_eq!(shown(14, -3, 3_600_000_000), "1 year 2 mons -3 days +01:00:00");
        assert_eq!(
            (shown(0, 0, 0), shown(0, 1, 0), shown(0, 0, -1)),
            ("00:00:00".into(), "1 day".into(), "-00:00:00.000001".into())
        );
    }
}
