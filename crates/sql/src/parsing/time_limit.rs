//! The lengths of time that settings hold, in PostgreSQL's spelling: `1000`, `'5s'`, `'1.5 min'`; 0 is for ever.
use std::time::Duration;

/// Units and their milliseconds, the longest first.
const UNITS: [(&str, f64); 6] =
    [("d", 86_400_000.0), ("h", 3_600_000.0), ("min", 60_000.0), ("s", 1_000.0), ("ms", 1.0), ("us", 0.001)];

/// The largest number of milliseconds.
const MILLIS_MAX: u32 = i32::MAX as u32;

/// Why a text is no such length.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Wrong {
    /// The text is no number, or has no unit that is known.
    Form,
    /// The limit is negative or too long; with the milliseconds that it would be.
    Range(String),
}

/// The milliseconds that a text says.
pub(crate) fn parse(text: &str) -> Result<u32, Wrong> {
    let text = text.trim();
    let is_of_number = |c: char| c.is_ascii_digit() || matches!(c, '.' | '-' | '+');
    let end = text.find(|c| !is_of_number(c)).unwrap_or(text.len());
    let number: f64 = text[..end].parse().map_err(|_| Wrong::Form)?;
    let factor = match text[end..].trim() {
        "" => 1.0,
        unit => UNITS.iter().find(|(known, _)| *known == unit).ok_or(Wrong::Form)?.1,
    };
    let millis = (number * factor).round_ties_even();
    if !(0.0..=f64::from(MILLIS_MAX)).contains(&millis) {
        return Err(Wrong::Range(format!("{millis}")));
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is within 0 and MILLIS_MAX")]
    Ok(millis as u32)
}

/// Milliseconds in the largest unit of which they are whole.
pub(crate) fn show(millis: u32) -> String {
    let units = [("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1_000), ("ms", 1)];
    match units.iter().find(|(_, length)| millis.is_multiple_of(*length)) {
        Some((unit, length)) if millis > 0 => format!("{}{unit}", millis / length),
        _ => "0".to_owned(),
    }
}

/// The length of time, if there is a limit.
pub(crate) fn limit(millis: u32) -> Option<Duration> {
    (millis > 0).then(|| Duration::from_millis(u64::from(millis)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_read_and_shown_as_postgresql_does() {
        let cases = [
            ("0", 0, "0"),
            ("250", 250, "250ms"),
            ("100ms", 100, "100ms"),
            ("5s", 5_000, "5s"),
            (" 1.5 s ", 1_500, "1500ms"),
            ("2min", 120_000, "2min"),
            ("1h", 3_600_000, "1h"),
            ("2d", 172_800_000, "2d"),
            ("1500us", 2, "2ms"),
        ];
        for (text, millis, shown) in cases {
            assert_eq!(parse(text), Ok(millis), "{text}");
            assert_eq!(show(millis), shown);
        }
        for text in ["", "s", "5 parsecs", "1S", "abc", "1-2"] {
            assert_eq!(parse(text), Err(Wrong::Form), "{text}");
        }
        assert_eq!(parse("-1"), Err(Wrong::Range("-1".to_owned())));
        assert_eq!(parse("30d"), Err(Wrong::Range("2592000000".to_owned())));
    }
}
