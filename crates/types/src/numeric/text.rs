//! Numbers as text, read and written as PostgreSQL does.
use std::fmt::{self, Write};

use super::exact::{DECIMALS_MAX, WHOLE_MAX};
use super::kept::{INFINITY, MINUS_INFINITY, Numeric, Parts, ZERO, more_of};

/// Why a text is no number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NumericTextFault {
    /// It is none.
    Syntax,
    /// It has more digits than a number may have.
    Range,
}

use NumericTextFault::{Range, Syntax};

impl Numeric {
    /// Reads a number: `-1.50`, `1e-7`, `NaN`, `inf` or `-Infinity`, with blanks around it.
    ///
    /// # Errors
    /// See [`NumericTextFault`].
    pub fn parse(text: &str) -> Result<Numeric, NumericTextFault> {
        let text = text.trim_matches(|c: char| c.is_ascii_whitespace() || c == '\x0b');
        let (is_negative, unsigned) = match text.strip_prefix(['-', '+']) {
            Some(unsigned) => (text.starts_with('-'), unsigned),
            None => (false, text),
        };
        if ["inf", "infinity"].iter().any(|name| unsigned.eq_ignore_ascii_case(name)) {
            return Ok(Numeric::infinite(is_negative));
        }
        if text.eq_ignore_ascii_case("nan") {
            return Ok(Numeric::nan());
        }
        let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent_of(exponent)?),
            None => (unsigned, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let is_plain = |digits: &str| digits.bytes().all(|digit| digit.is_ascii_digit());
        if (whole.is_empty() && fraction.is_empty()) || !is_plain(whole) || !is_plain(fraction) {
            return Err(Syntax);
        }
        let count = |digits: &str| i64::try_from(digits.len()).map_err(|_| Range);
        let decimals = (count(fraction)? - exponent).max(0);
        let decimals = u32::try_from(decimals).ok().filter(|decimals| *decimals <= DECIMALS_MAX).ok_or(Range)?;
        of_decimal_digits(is_negative, whole.bytes().chain(fraction.bytes()), count(whole)? + exponent, decimals)
    }
}

fn exponent_of(text: &str) -> Result<i64, NumericTextFault> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return Err(Syntax);
    }
    match text.parse::<i64>() {
        Ok(exponent) if exponent.abs() < i64::from(i32::MAX / 2) => Ok(exponent),
        _ => Err(Range),
    }
}

/// The number with these digits, as letters, of which so many stand before the point.
fn of_decimal_digits(
    is_negative: bool,
    digits: impl Iterator<Item = u8>,
    point: i64,
    decimals: u32,
) -> Result<Numeric, NumericTextFault> {
    let mut digits = digits.map(|digit| digit - b'0');
    let mut point = point;
    // The first digit that is not zero tells how large the number is.
    let Some(first) = digits.by_ref().inspect(|_| point -= 1).find(|digit| *digit != 0) else {
        return Ok(Numeric::zero(decimals));
    };
    point += 1;
    if point > i64::from(WHOLE_MAX) {
        return Err(Range);
    }
    let pairs_before = (point + 1).div_euclid(2);
    let mut pairs = Vec::new();
    let mut half = (point.rem_euclid(2) == 0).then_some(first);
    if half.is_none() {
        pairs.push(first);
    }
    for digit in digits {
        match half.take() {
            Some(tens) => pairs.push(tens * 10 + digit),
            None => half = Some(digit),
        }
    }
    pairs.extend(half.map(|tens| tens * 10));
    Ok(Numeric::of_digits(is_negative, &pairs, i32::try_from(pairs_before).map_err(|_| Range)?, decimals))
}

/// The number with all decimals that it shows.
impl fmt::Display for Numeric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(f, self.as_bytes())
    }
}

/// Writes the number that these bytes keep.
///
/// # Errors
/// Those of the writer.
pub(super) fn write(f: &mut impl Write, bytes: &[u8]) -> fmt::Result {
    let Some(parts) = Parts::of(bytes) else {
        return match bytes.first() {
            Some(&MINUS_INFINITY) => f.write_str("-Infinity"),
            Some(&INFINITY) => f.write_str("Infinity"),
            Some(&ZERO) => {
                f.write_char('0')?;
                write_decimals(f, std::iter::empty(), more_of(&bytes[1..]))
            }
            _ => f.write_str("NaN"),
        };
    };
    if parts.is_negative {
        f.write_char('-')?;
    }
    let letter = |digit: u8| char::from(b'0' + digit);
    let mut digits = parts.each_digit().flat_map(|pair| [pair / 10, pair % 10]);
    let before = 2 * i64::from(parts.point);
    let mut is_first = true;
    for _ in 0..before.max(0) {
        let digit = digits.next().unwrap_or(0);
        if digit > 0 || !is_first {
            f.write_char(letter(digit))?;
            is_first = false;
        }
    }
    if is_first {
        f.write_char('0')?;
    }
    let zeros = std::iter::repeat_n(0, usize::try_from(-before).unwrap_or(0));
    write_decimals(f, zeros.chain(digits), parts.decimals())
}

fn write_decimals(f: &mut impl Write, mut digits: impl Iterator<Item = u8>, count: u32) -> fmt::Result {
    if count > 0 {
        f.write_char('.')?;
    }
    (0..count).try_for_each(|_| f.write_char(char::from(b'0' + digits.next().unwrap_or(0))))
}
