//! The binary form of `numeric`: digits of base 10,000.
//!
//! ```text
//! count of digits (2 bytes)  weight of the first digit (2)  sign (2)  decimals shown (2)  digits (2 each)
//! ```
//!
//! The weight says how many digits of base 10,000 stand before the point, less one; zeros at both ends are left out.
use engine::{Decimal, Numeric, Value};

const NEGATIVE: u16 = 0x4000;
/// The signs of what is no finite number, with the text that it is shown as.
const OTHERS: [(u16, &str); 3] = [(0xc000, "NaN"), (0xd000, "Infinity"), (0xf000, "-Infinity")];

/// Appends the binary form of a number that is given as `-123.45`.
pub(crate) fn put(out: &mut Vec<u8>, text: &str) {
    if let Some((sign, _)) = OTHERS.into_iter().find(|(_, name)| *name == text) {
        return [0, 0, sign, 0].into_iter().for_each(|short| out.extend_from_slice(&short.to_be_bytes()));
    }
    let (sign, digits) = text.strip_prefix('-').map_or((0, text), |digits| (NEGATIVE, digits));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let whole = format!("{}{whole}", "0".repeat(whole.len().next_multiple_of(4) - whole.len()));
    let padded = format!("{whole}{fraction}{}", "0".repeat(fraction.len().next_multiple_of(4) - fraction.len()));
    let mut groups: Vec<u16> = padded.as_bytes().chunks(4).map(group).collect();
    let mut weight = i16::try_from(whole.len() / 4).unwrap_or(i16::MAX) - 1;
    let zeros = groups.iter().take_while(|group| **group == 0).count();
    groups.drain(..zeros);
    weight -= i16::try_from(zeros).unwrap_or(0);
    while groups.last() == Some(&0) {
        groups.pop();
    }
    if groups.is_empty() {
        weight = 0;
    }
    let sign = if groups.is_empty() { 0 } else { sign };
    out.extend_from_slice(&u16::try_from(groups.len()).unwrap_or(u16::MAX).to_be_bytes());
    out.extend_from_slice(&weight.to_be_bytes());
    out.extend_from_slice(&sign.to_be_bytes());
    out.extend_from_slice(&u16::try_from(fraction.len()).unwrap_or(0).to_be_bytes());
    groups.iter().for_each(|group| out.extend_from_slice(&group.to_be_bytes()));
}

/// Four decimal digits as a number.
fn group(digits: &[u8]) -> u16 {
    digits.iter().fold(0, |value, digit| value * 10 + u16::from(digit.wrapping_sub(b'0') % 10))
}

/// Why bytes are no number that there is here.
#[derive(Debug, PartialEq, Eq)]
pub enum Wrong {
    /// Of another form, or too short, or too long.
    Form,
    /// Not a number, infinite, or of too many digits.
    Range,
}

/// A number in its binary form.
struct Parts {
    groups: Vec<u16>,
    weight: i16,
    is_negative: bool,
    shown: u16,
}

/// Reads the binary form: a decimal where it has at most 38 digits, else a numeric without limits.
pub(crate) fn read(bytes: &[u8]) -> Result<Value, Wrong> {
    let mut shorts = bytes.chunks(2).map(|pair| match pair {
        [high, low] => Ok(u16::from_be_bytes([*high, *low])),
        _ => Err(Wrong::Form),
    });
    let mut next = || shorts.next().unwrap_or(Err(Wrong::Form));
    let (count, weight, sign, shown) = (next()?, next()?.cast_signed(), next()?, next()?);
    if usize::from(count) * 2 + 8 != bytes.len() {
        return Err(Wrong::Form);
    }
    if let Some((_, name)) = OTHERS.into_iter().find(|(other, _)| *other == sign) {
        return Numeric::parse(name).map(Value::Numeric).map_err(|_| Wrong::Form);
    }
    let groups = shorts.collect::<Result<Vec<u16>, Wrong>>()?;
    if !matches!(sign, 0 | NEGATIVE) || groups.iter().any(|group| *group > 9_999) {
        return Err(Wrong::Form);
    }
    let parts = Parts { groups, weight, is_negative: sign == NEGATIVE, shown };
    match small(&parts) {
        Ok(decimal) => Ok(Value::Decimal(decimal)),
        Err(Wrong::Range) => large(&parts).map(Value::Numeric),
        Err(Wrong::Form) => Err(Wrong::Form),
    }
}

/// A number of any precision, by its digits; those beyond the ones that are shown are cut.
fn large(parts: &Parts) -> Result<Numeric, Wrong> {
    let at = |place: i32| {
        let group = i32::from(parts.weight) - place;
        usize::try_from(group).ok().and_then(|group| parts.groups.get(group)).copied().unwrap_or(0)
    };
    let whole: String = (0..=i32::from(parts.weight)).rev().map(|place| format!("{:04}", at(place))).collect();
    let behind = i32::from(parts.shown.div_ceil(4));
    let fraction: String = (1..=behind).map(|place| format!("{:04}", at(-place))).collect();
    let fraction = fraction.get(..usize::from(parts.shown)).unwrap_or_default();
    let sign = if parts.is_negative { "-" } else { "" };
    Numeric::parse(&format!("{sign}0{whole}.{fraction}")).map_err(|_| Wrong::Range)
}

fn small(parts: &Parts) -> Result<Decimal, Wrong> {
    let scale = i8::try_from(parts.shown).ok().filter(|scale| *scale <= 38).ok_or(Wrong::Range)?;
    let mut unscaled: i128 = 0;
    for (at, group) in parts.groups.iter().enumerate() {
        let at = i32::try_from(at).map_err(|_| Wrong::Form)?;
        // The last digit of the group has this power of ten, the number as a whole counted in units of its scale.
        let power = (i32::from(parts.weight) - at) * 4 + i32::from(scale);
        unscaled = unscaled.checked_add(scaled(i128::from(*group), power)?).ok_or(Wrong::Range)?;
    }
    if unscaled >= 10_i128.pow(38) {
        return Err(Wrong::Range);
    }
    Ok(Decimal { unscaled: if parts.is_negative { -unscaled } else { unscaled }, scale })
}

/// A group times a power of ten; digits beyond those shown are zeros, or are cut.
fn scaled(group: i128, power: i32) -> Result<i128, Wrong> {
    match u32::try_from(power) {
        _ if group == 0 => Ok(0),
        Ok(power) => 10_i128.checked_pow(power).and_then(|ten| group.checked_mul(ten)).ok_or(Wrong::Range),
        Err(_) => Ok(10_i128.checked_pow(power.unsigned_abs()).map_or(0, |ten| group / ten)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn binary(text: &str) -> Vec<u8> {
        let mut out = Vec::new();
        put(&mut out, text);
        out
    }

    fn shorts(numbers: &[i16]) -> Vec<u8> {
        numbers.iter().flat_map(|number| number.to_be_bytes()).collect()
    }

    #[test]
    fn digits_are_grouped_around_the_point() {
        assert_eq!(binary("0"), shorts(&[0, 0, 0, 0]));
        assert_eq!(binary("0.00"), shorts(&[0, 0, 0, 2]));
        assert_eq!(binary("12345.6"), shorts(&[3, 1, 0, 1, 1, 2345, 6000]));
        assert_eq!(binary("-0.0001"), shorts(&[1, -1, 0x4000, 4, 1]));
        assert_eq!(binary("100000000"), shorts(&[1, 2, 0, 0, 1]));
    }

    #[test]
    fn what_is_no_number_is_told() {
        assert_eq!(read(&shorts(&[1, 0, 0, 0, 10_000])), Err(Wrong::Form));
        assert_eq!(read(&shorts(&[2, 0, 0, 0, 1])), Err(Wrong::Form));
        assert_eq!(read(b"\0"), Err(Wrong::Form));
    }

    #[test]
    fn numbers_of_many_digits_and_none_come_back() {
        let long = format!("-{}.{}", "9".repeat(50), "1234567".repeat(20));
        for text in ["NaN", "Infinity", "-Infinity", &long, "0.0000000000000000000000000000000000000000000012"] {
            let number = Value::Numeric(Numeric::parse(text).unwrap());
            assert_eq!(binary(text), binary(&number.to_string()));
            let found = read(&binary(text)).unwrap();
            assert_eq!((found.to_string().as_str(), &found), (text, &number));
        }
        assert_eq!(read(&shorts(&[1, 30_000, 0, 0, 1])).unwrap().to_string().len(), 120_001);
    }

    #[test]
    fn a_number_comes_back_as_it_was_sent_and_no_bytes_are_a_panic() {
        let mut bytes = super::super::noise(2);
        for _ in 0..5_000 {
            let digits = u32::from(bytes.next().unwrap_or(0)) % 39;
            let raw = bytes.by_ref().take(16).fold(0_u128, |raw, byte| raw << 8 | u128::from(byte));
            let unscaled = i128::try_from(raw % 10_u128.pow(digits)).unwrap_or(0) * if raw & 1 == 0 { 1 } else { -1 };
            let scale = i8::try_from(bytes.next().unwrap_or(0) % 39).unwrap_or(0);
            let number = Decimal { unscaled, scale };
            assert_eq!(read(&binary(&number.to_string())), Ok(Value::Decimal(number)));
            let length = usize::from(bytes.next().unwrap_or(0)) % 32;
            let _ = read(&bytes.by_ref().take(length).collect::<Vec<u8>>());
        }
    }
}
