//! How many decimals PostgreSQL gives the results of functions: as many as make sixteen significant digits, by a rough guess of
//! how large the result is, and no fewer than the arguments have.
use engine::numeric::Exact;

use super::fixed::Functions;

/// What is computed of one or two numerics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Elementary {
    Ln,
    /// to base 10, or to the first of two arguments
    Log,
    Exp,
    Sqrt,
    Power,
}

/// The significant digits of results at least, and the decimals at most.
const SIGNIFICANT: i32 = 16;
const DECIMALS_MAX: i32 = 60;
/// The digits that PostgreSQL keeps in one unit.
const UNIT: i32 = 4;

/// The decimals of a result, and the digits before its point.
pub(super) fn of_result(of: Elementary, args: &[Exact]) -> Option<(u32, u32)> {
    let least = args.iter().map(|number| i32::try_from(number.decimals).unwrap_or(0)).max().unwrap_or(0);
    let (scale, size) = match (of, args) {
        (Elementary::Ln, [value]) => (SIGNIFICANT - weight_of_ln(value)?, value.to_f64().ln().abs().log10()),
        (Elementary::Log, [value]) => {
            let ten = Exact { units: 10.into(), decimals: 0 };
            (SIGNIFICANT - weight_of_ln(value)? + weight_of_ln(&ten)?, 4.0)
        }
        (Elementary::Log, [base, value]) => (SIGNIFICANT - weight_of_ln(value)? + weight_of_ln(base)?, 4.0),
        (Elementary::Exp, [value]) => {
            let digits = (value.to_f64() * std::f64::consts::LOG10_E).clamp(-1000.0, 1000.0);
            (SIGNIFICANT - toward_zero(digits), digits)
        }
        (Elementary::Sqrt, [value]) => {
            let weight = (unit_weight(value) + 1) * UNIT / 2 - 1;
            (SIGNIFICANT - weight, f64::from(weight))
        }
        (Elementary::Power, [base, exponent]) => {
            let digits = base.to_f64().abs().log10() * exponent.to_f64();
            let is_whole = exponent.whole().is_some_and(|whole| i32::try_from(whole).is_ok());
            match is_whole || base.is_zero() {
                true => (SIGNIFICANT, digits),
                false => (SIGNIFICANT - toward_zero(digits.clamp(-1000.0, 1000.0)), digits),
            }
        }
        _ => return None,
    };
    let scale = match (of, args) {
        // A whole exponent's decimals do not count.
        (Elementary::Power, [base, exponent]) if exponent.whole().is_some() => {
            scale.max(i32::try_from(base.decimals).unwrap_or(0))
        }
        _ => scale.max(least),
    };
    let before = if size.is_finite() { toward_zero(size.clamp(0.0, 1000.0)) + 2 } else { 2 };
    Some((u32::try_from(scale.clamp(0, DECIMALS_MAX)).unwrap_or(0), u32::try_from(before).unwrap_or(2)))
}

#[expect(clippy::cast_possible_truncation, reason = "the callers cut numbers to some thousand")]
fn toward_zero(number: f64) -> i32 {
    number as i32
}

/// The decimal digits of a number without its sign, and how many of them stand before the point.
fn digits(number: &Exact) -> (String, i32) {
    let text = number.units.magnitude().to_string();
    let before = i32::try_from(text.len()).unwrap_or(0) - i32::try_from(number.decimals).unwrap_or(0);
    (text, before)
}

/// Where the first unit of four digits stands, counted from the point.
fn unit_weight(number: &Exact) -> i32 {
    if number.is_zero() {
        return 0;
    }
    let (_, before) = digits(number);
    (before - 1).div_euclid(UNIT)
}

/// The units of four digits of a number, the first one not zero, at most two of them.
fn units(number: &Exact) -> Vec<i64> {
    let (text, before) = digits(number);
    let lead = usize::try_from((before - 1).rem_euclid(UNIT) + 1).unwrap_or(1);
    let padded = format!("{}{text}", "0".repeat(4 - lead));
    let mut units: Vec<i64> = padded
        .as_bytes()
        .chunks(4)
        .map(|chunk| {
            let text = String::from_utf8_lossy(chunk);
            format!("{text:0<4}").parse().unwrap_or(0)
        })
        .collect();
    while units.last() == Some(&0) {
        units.pop();
    }
    units.truncate(2);
    units
}

/// The weight of the first decimal digit of the natural logarithm.
fn weight_of_ln(number: &Exact) -> Option<i32> {
    if number.is_zero() || number.is_negative() {
        return None;
    }
    let value = number.to_f64();
    if (0.9..=1.1).contains(&value) {
        // There it is about as large as the distance from one.
        let one = Exact { units: 1.into(), decimals: 0 }.rounded(number.decimals).units;
        let distance = Exact { units: &number.units - one, decimals: number.decimals };
        let first = units(&distance).first().copied();
        #[expect(clippy::cast_precision_loss, reason = "it has four digits")]
        return Some(first.map_or(0, |first| unit_weight(&distance) * UNIT + toward_zero((first as f64).log10())));
    }
    let parts = units(number);
    let weight = unit_weight(number) * UNIT;
    let (digits, weight) = match parts[..] {
        [first, second] => (first * 10_000 + second, weight - UNIT),
        [first] => (first, weight),
        _ => return None,
    };
    #[expect(clippy::cast_precision_loss, reason = "it has eight digits")]
    let ln = (digits as f64).ln() + f64::from(weight) * std::f64::consts::LN_10;
    Some(toward_zero(ln.abs().log10()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_have_sixteen_significant_digits() {
        let number = |units: i64, decimals| Exact { units: units.into(), decimals };
        let scale = |of, args: &[Exact]| of_result(of, args).map(|(scale, _)| scale);
        assert_eq!(scale(Elementary::Sqrt, &[number(20, 1)]), Some(15));
        assert_eq!(scale(Elementary::Sqrt, &[number(1, 4)]), Some(17));
        assert_eq!(scale(Elementary::Ln, &[number(20, 1)]), Some(16));
        assert_eq!(scale(Elementary::Ln, &[number(10_000_001, 7)]), Some(23));
        assert_eq!(scale(Elementary::Exp, &[number(-325, 2)]), Some(17));
        assert_eq!(scale(Elementary::Power, &[number(20, 1), number(5, 1)]), Some(16));
        assert_eq!(scale(Elementary::Power, &[number(20, 1), number(10, 0)]), Some(16));
    }
}
