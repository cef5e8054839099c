//! PostgreSQL's input syntax of the types that are not dates or times.
use engine::json::{Jsonb, check_json};
use engine::{EnumType, Interval};

use super::interval_form::Span;
use super::{Misfit, interval_input};

/// `boolean`: any start of true, false, yes, no, on, off that means only one of them, or 1, 0.
pub(crate) fn boolean(text: &str) -> Result<bool, Misfit> {
    let text = text.trim().to_ascii_lowercase();
    let starts = |word: &str, least: usize| text.len() >= least && word.starts_with(&text);
    match () {
        () if text == "1" || starts("true", 1) || starts("yes", 1) || starts("on", 2) => Ok(true),
        () if text == "0" || starts("false", 1) || starts("no", 1) || starts("off", 2) => Ok(false),
        () => Err(Misfit::Syntax),
    }
}

/// `smallint`, `integer`, `bigint`.
pub(crate) fn integer<T: TryFrom<i64>>(text: &str) -> Result<T, Misfit> {
    let text = text.trim();
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Misfit::Syntax);
    }
    let value: i64 = text.parse().map_err(|_| Misfit::Range)?;
    T::try_from(value).map_err(|_| Misfit::Range)
}

/// `double precision`; what is too large for it or vanishes in it is out of range.
pub(crate) fn double(text: &str) -> Result<f64, Misfit> {
    let text = text.trim();
    let value: f64 = text.parse().map_err(|_| Misfit::Syntax)?;
    float_in_range(text, value.is_infinite(), value == 0.0).map(|()| value)
}

/// `real`.
pub(crate) fn real(text: &str) -> Result<f32, Misfit> {
    let text = text.trim();
    let value: f32 = text.parse().map_err(|_| Misfit::Syntax)?;
    float_in_range(text, value.is_infinite(), value == 0.0).map(|()| value)
}

fn float_in_range(text: &str, is_infinite: bool, is_zero: bool) -> Result<(), Misfit> {
    let mantissa = text.split(['e', 'E']).next().unwrap_or(text);
    let says_infinity = text.to_ascii_lowercase().contains("inf");
    let says_more_than_zero = mantissa.bytes().any(|byte| (b'1'..=b'9').contains(&byte));
    match (is_infinite && !says_infinity) || (is_zero && says_more_than_zero) {
        true => Err(Misfit::Range),
        false => Ok(()),
    }
}

/// `numeric(precision, scale)`: the unscaled value, rounded half away from zero.
pub(crate) fn decimal(text: &str, precision: u8, scale: i8) -> Result<i128, Misfit> {
    match plain_decimal(text, precision, scale) {
        Some(unscaled) => Ok(i128::from(unscaled)),
        None => any_decimal(text.trim(), precision, scale),
    }
}

/// What `numeric(precision, scale)` mostly looks like: a few digits, no more of them behind the point than the type has.
fn plain_decimal(text: &str, precision: u8, scale: i8) -> Option<i64> {
    /// Digits that a word has room for, whatever they are.
    const DIGITS_MAX: u8 = 18;
    let (mut unscaled, mut digits, mut fraction) = (0_i64, 0, None);
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    for byte in unsigned.bytes() {
        match byte {
            b'0'..=b'9' => {
                digits += 1;
                if digits > DIGITS_MAX {
                    return None;
                }
                unscaled = unscaled * 10 + i64::from(byte - b'0');
                fraction = fraction.map(|digits: u8| digits + 1);
            }
            b'.' if fraction.is_none() => fraction = Some(0),
            _ => return None,
        }
    }
    let missing = u8::try_from(scale).ok()?.checked_sub(fraction.unwrap_or(0))?;
    if digits == 0 || digits + missing > DIGITS_MAX {
        return None;
    }
    unscaled *= 10_i64.pow(u32::from(missing));
    if precision < DIGITS_MAX && unscaled >= 10_i64.pow(u32::from(precision)) {
        return None;
    }
    Some(if unsigned.len() < text.len() { -unscaled } else { unscaled })
}

/// Every form of `numeric(precision, scale)`.
fn any_decimal(text: &str, precision: u8, scale: i8) -> Result<i128, Misfit> {
    if ["nan", "inf", "+inf", "-inf", "infinity", "+infinity", "-infinity"]
        .contains(&text.to_ascii_lowercase().as_str())
    {
        return Err(Misfit::NotFinite);
    }
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, integer::<i64>(exponent)?),
        None => (text, 0),
    };
    let is_negative = mantissa.starts_with('-');
    let unsigned = mantissa.strip_prefix(['+', '-']).unwrap_or(mantissa);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if (whole.is_empty() && fraction.is_empty()) || !is_digits(whole) || !is_digits(fraction) {
        return Err(Misfit::Syntax);
    }
    let digits: Vec<u8> = whole.bytes().chain(fraction.bytes()).map(|byte| byte - b'0').collect();
    let Some(first) = digits.iter().position(|digit| *digit != 0) else { return Ok(0) };
    // How many digits stand before the point once it has moved `scale` places to the right.
    let kept = i64::try_from(whole.len()).map_err(|_| Misfit::Range)?.saturating_add(exponent) + i64::from(scale);
    let first = i64::try_from(first).map_err(|_| Misfit::Range)?;
    if kept.saturating_sub(first) > i64::from(precision) {
        return Err(Misfit::Range);
    }
    let digit = |at: i64| usize::try_from(at).ok().and_then(|at| digits.get(at)).map_or(0, |digit| i128::from(*digit));
    let rounded = (first..kept).fold(0i128, |value, at| value * 10 + digit(at)) + i128::from(digit(kept) >= 5);
    if rounded >= 10i128.pow(u32::from(precision)) {
        return Err(Misfit::Range);
    }
    Ok(if is_negative { -rounded } else { rounded })
}

/// `bytea`: the hex form `\x0aff` or the escape form, in which `\\` and `\ooo` stand for bytes.
pub(crate) fn bytea(text: &str) -> Result<Vec<u8>, Misfit> {
    if let Some(hex) = text.strip_prefix("\\x") {
        let digit = |byte: u8| (byte as char).to_digit(16).ok_or(Misfit::Syntax);
        let digits = hex.bytes().filter(|byte| !byte.is_ascii_whitespace()).map(digit);
        let digits: Vec<u32> = digits.collect::<Result<_, _>>()?;
        let pairs = digits.chunks(2).map(|pair| match pair {
            [high, low] => u8::try_from(high * 16 + low).map_err(|_| Misfit::Syntax),
            _ => Err(Misfit::Syntax),
        });
        return pairs.collect();
    }
    bytea_escapes(text)
}

/// The escape form of `bytea`.
pub(crate) fn bytea_escapes(text: &str) -> Result<Vec<u8>, Misfit> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        if *byte != b'\\' {
            out.push(*byte);
        } else if let [b'\\', after @ ..] = rest {
            out.push(b'\\');
            rest = after;
        } else if let [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', after @ ..] = rest {
            out.push((a - b'0') * 64 + (b - b'0') * 8 + (c - b'0'));
            rest = after;
        } else {
            return Err(Misfit::Syntax);
        }
    }
    Ok(out)
}

/// The position of a label, which is written exactly as it was declared.
pub(crate) fn label(text: &str, of: EnumType) -> Result<i64, Misfit> {
    of.position(text).ok_or(Misfit::Label)
}

/// `uuid`, with or without hyphens and braces, in its canonical form.
pub(crate) fn uuid(text: &str) -> Result<String, Misfit> {
    let text = text.trim();
    let bare = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or(text);
    let mut digits = String::with_capacity(32);
    for c in bare.chars() {
        match c {
            '-' if !digits.is_empty() && digits.len().is_multiple_of(4) => {}
            _ if c.is_ascii_hexdigit() => digits.push(c),
            _ => return Err(Misfit::Syntax),
        }
    }
    match uuid::Uuid::try_parse(&digits) {
        Ok(id) if digits.len() == 32 && !bare.ends_with('-') => Ok(id.hyphenated().to_string()),
        _ => Err(Misfit::Syntax),
    }
}

/// `json`, as it is.
pub(crate) fn json(text: &str) -> Result<&str, Misfit> {
    check_json(text).map(|()| text).map_err(Misfit::Json)
}

/// `jsonb`.
pub(crate) fn jsonb(text: &str) -> Result<Jsonb, Misfit> {
    Jsonb::parse(text).map_err(Misfit::Json)
}

/// `interval`.
pub(crate) fn interval(text: &str) -> Result<Interval, Misfit> {
    interval_of(interval_input::parse(text)?)
}

/// The interval that a span is, if it is none too long.
pub(crate) fn interval_of(span: Span) -> Result<Interval, Misfit> {
    let narrow = |number: i64| i32::try_from(number).map_err(|_| Misfit::DateField);
    // Queries count nanoseconds.
    span.micros.checked_mul(1000).ok_or(Misfit::DateField)?;
    Ok(Interval { months: narrow(span.months)?, days: narrow(span.days)?, micros: span.micros })
}

/// `text` and `varchar(n)`: too many characters are an error unless all that is too much is blank.
pub(crate) fn text(text: &str, max_chars: Option<u32>) -> Result<&str, Misfit> {
    if text.contains('\0') {
        return Err(Misfit::Encoding);
    }
    let Some(max) = max_chars.map(|max| max as usize) else { return Ok(text) };
    if text.len() <= max {
        return Ok(text);
    }
    match text.char_indices().nth(max) {
        None => Ok(text),
        Some((end, _)) if text[end..].bytes().all(|byte| byte == b' ') => Ok(&text[..end]),
        Some(_) => Err(Misfit::TooLong),
    }
}

/// `char(n)`, without the blanks at its end.
pub(crate) fn blank_padded(value: &str, chars: u32) -> Result<&str, Misfit> {
    text(value.trim_end_matches(' '), Some(chars))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn booleans_may_be_shortened_while_clear() {
        assert!(["t", "TRUE", " tr ", "y", "yes", "on", "1"].iter().all(|text| boolean(text) == Ok(true)));
        assert!(["f", "fal", "n", "no", "of", "off", "0"].iter().all(|text| boolean(text) == Ok(false)));
        assert!(["", "o", "2", "truee", "oui"].iter().all(|text| boolean(text) == Err(Misfit::Syntax)));
    }

    #[test]
    fn integers_know_their_range() {
        assert_eq!(integer::<i16>(" -32768 "), Ok(-32_768));
        assert_eq!(integer::<i16>("32768"), Err(Misfit::Range));
        assert_eq!(integer::<i64>("9223372036854775807"), Ok(i64::MAX));
        assert_eq!(integer::<i64>("9223372036854775808"), Err(Misfit::Range));
        assert!(["", "-", "1.0", "1e3", "x"].iter().all(|text| integer::<i32>(text) == Err(Misfit::Syntax)));
    }

    #[test]
    fn decimals_round_half_away_from_zero() {
        let of = |text| decimal(text, 5, 2);
        assert_eq!((of("1.005"), of("-1.005"), of("1.004")), (Ok(101), Ok(-101), Ok(100)));
        assert_eq!((of("999.994"), of("999.995")), (Ok(99_999), Err(Misfit::Range)));
        assert_eq!((of("1e2"), of("12345e-3"), of(".5"), of("5.")), (Ok(10_000), Ok(1235), Ok(50), Ok(500)));
        assert_eq!((of("0.004"), of("0.005"), of("0.0000001"), of("000")), (Ok(0), Ok(1), Ok(0), Ok(0)));
        assert_eq!((of("1e99999999999"), of("1e-999999999")), (Err(Misfit::Range), Ok(0)));
        assert_eq!((of("NaN"), of("1,5"), of("-")), (Err(Misfit::NotFinite), Err(Misfit::Syntax), Err(Misfit::Syntax)));
        let plain =
            ["0", "-0", "7", "-12.5", "000.10", "999.99", "1000", "-999.995", "12.", ".5", "-", ".", "1.2.3", "+5"];
        let long = ["123456789012345678", "1234567890123456789", "0.000000000000000001", "-99999999999999999.9"];
        for (text, (precision, scale)) in plain
            .into_iter()
            .chain(long)
            .flat_map(|text| [(5, 2), (1, 0), (18, 0), (18, 18), (38, 3), (4, 4)].map(|of| (text, of)))
        {
            assert_eq!(
                decimal(text, precision, scale),
                any_decimal(text, precision, scale),
                "{text} {precision} {scale}"
            );
        }
        assert_eq!(decimal(&"9".repeat(38), 38, 0), Ok(10i128.pow(38) - 1));
        assert_eq!(decimal(&format!("0.{}", "0".repeat(60)), 38, 38), Ok(0));
    }

    #[test]
    fn floats_out_of_range_are_refused() {
        assert_eq!((double("1e400"), double("1e-400")), (Err(Misfit::Range), Err(Misfit::Range)));
        assert_eq!((double("-Infinity"), double("0e5")), (Ok(f64::NEG_INFINITY), Ok(0.0)));
        assert!(double("NaN").unwrap().is_nan());
        assert_eq!((real("1e39"), real("1.5")), (Err(Misfit::Range), Ok(1.5)));
    }

    #[test]
    fn bytes_ids_and_texts() {
        assert_eq!(bytea("\\x00fF"), Ok(vec![0, 255]));
        assert_eq!(bytea("a\\\\\\001"), Ok(vec![b'a', b'\\', 1]));
        assert_eq!((bytea("\\x0"), bytea("\\y")), (Err(Misfit::Syntax), Err(Misfit::Syntax)));
        let id = "550e8400-e29b-41d4-a716-446655440000";
        assert_eq!(uuid("{550E8400E29B41D4A716446655440000}").as_deref(), Ok(id));
        assert_eq!(uuid("550e8400"), Err(Misfit::Syntax));
        assert_eq!((text("äöü", Some(3)), text("ab  ", Some(2))), (Ok("äöü"), Ok("ab")));
        assert_eq!(text("abc", Some(2)), Err(Misfit::TooLong));
    }
}
