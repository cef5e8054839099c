//! Numbers of JSON: exact, of any length that a `numeric` has, with the decimals that they were written with.
use std::cmp::Ordering;
use std::fmt;

/// How many digits there may be before the point, and behind it.
const WHOLE_MAX: i64 = 131_072;
const DECIMALS_MAX: i64 = 16_383;

/// The number `0.DIGITS * 10^point`, with its sign.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JsonNumber {
    pub(super) is_negative: bool,
    /// 0 to 9 each; the first and the last are not 0, and there are none of a zero
    pub(super) digits: Vec<u8>,
    /// how many digits stand before the point; negative where zeros follow it
    pub(super) point: i32,
    /// how many decimals are shown, zeros at the end among them
    pub(super) scale: u32,
}

impl JsonNumber {
    /// Reads a number as JSON writes it; `None` if it has more digits than a number may have.
    pub fn read(text: &str) -> Option<JsonNumber> {
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let unsigned = mantissa.strip_prefix('-');
        let (whole, fraction) = {
            let plain = unsigned.unwrap_or(mantissa);
            plain.split_once('.').unwrap_or((plain, ""))
        };
        let exponent = match exponent.parse::<i64>() {
            Ok(exponent) => exponent,
            Err(_) if exponent.starts_with('-') => i64::from(i32::MIN),
            Err(_) => i64::from(i32::MAX),
        };
        let all: Vec<u8> = whole.bytes().chain(fraction.bytes()).map(|digit| digit.wrapping_sub(b'0')).collect();
        let written = i64::try_from(fraction.len()).ok()?;
        let scale = written.saturating_sub(exponent).max(0);
        let scale = u32::try_from(scale).ok().filter(|scale| i64::from(*scale) <= DECIMALS_MAX)?;
        let Some(first) = all.iter().position(|digit| *digit != 0) else {
            return Some(JsonNumber { is_negative: false, digits: Vec::new(), point: 0, scale });
        };
        let last = all.iter().rposition(|digit| *digit != 0)?;
        let point = i64::try_from(whole.len()).ok()?.checked_sub(i64::try_from(first).ok()?)?.checked_add(exponent)?;
        let point = i32::try_from(point).ok().filter(|_| point <= WHOLE_MAX)?;
        Some(JsonNumber { is_negative: unsigned.is_some(), digits: all[first..=last].to_vec(), point, scale })
    }

    /// Whether it is less than zero.
    pub fn is_negative(&self) -> bool {
        self.is_negative
    }

    /// The number with the other sign.
    #[must_use]
    pub fn negated(&self) -> JsonNumber {
        JsonNumber { is_negative: !self.is_negative && !self.digits.is_empty(), ..self.clone() }
    }

    /// How many decimals it has without zeros at the end.
    pub(super) fn decimals(&self) -> u32 {
        let count = i64::try_from(self.digits.len()).unwrap_or(i64::MAX) - i64::from(self.point);
        if self.digits.is_empty() { 0 } else { u32::try_from(count.max(0)).unwrap_or(u32::MAX) }
    }

    /// The order of numbers, where the decimals that are shown mean nothing.
    pub fn compare(&self, other: &JsonNumber) -> Ordering {
        let signed = |number: &JsonNumber| match (number.digits.is_empty(), number.is_negative) {
            (true, _) => 0,
            (false, true) => -1,
            (false, false) => 1,
        };
        let magnitude = (self.point, &self.digits).cmp(&(other.point, &other.digits));
        let magnitude = if self.is_negative { magnitude.reverse() } else { magnitude };
        signed(self).cmp(&signed(other)).then(if self.digits.is_empty() { Ordering::Equal } else { magnitude })
    }
}

/// A whole number.
impl From<i64> for JsonNumber {
    fn from(number: i64) -> JsonNumber {
        let shown = number.unsigned_abs().to_string();
        let digits: Vec<u8> = shown.trim_end_matches('0').bytes().map(|digit| digit - b'0').collect();
        let point = if digits.is_empty() { 0 } else { i32::try_from(shown.len()).unwrap_or(0) };
        JsonNumber { is_negative: number < 0, digits, point, scale: 0 }
    }
}

/// The number as `numeric` shows it.
impl fmt::Display for JsonNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write;
        if self.is_negative {
            f.write_char('-')?;
        }
        let digit = |at: i64| {
            let digit = usize::try_from(at).ok().and_then(|at| self.digits.get(at)).copied().unwrap_or(0);
            char::from(b'0' + digit)
        };
        let point = if self.digits.is_empty() { 0 } else { i64::from(self.point) };
        if point <= 0 {
            f.write_char('0')?;
        }
        (0..point).try_for_each(|at| f.write_char(digit(at)))?;
        if self.scale > 0 {
            f.write_char('.')?;
        }
        (0..i64::from(self.scale)).try_for_each(|at| f.write_char(digit(point + at)))
    }
}
