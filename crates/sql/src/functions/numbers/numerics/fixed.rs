//! Logarithms, powers and roots of numerics to as many decimals as are asked for.
//!
//! A number is a whole number of units of its last digit. While something is worked out it has more digits than are asked
//! for, and in the end it is rounded half away from zero. Logarithms are those of a number near one and of a power of two; the
//! first is twice the series of the inverse hyperbolic tangent, `y + y^3/3 + y^5/5 + ...` of `y = (x - 1) / (x + 1)`. The
//! exponential function is taken of a small number by its series, squared some times, and multiplied by a power of two.
use engine::numeric::{Exact, quotient, ten};
use num_bigint::{BigInt, Sign};

/// Digits beyond those that are asked for.
const MORE: u32 = 12;
/// How often the exponential function's argument is halved, and its value squared.
const HALVINGS: u32 = 8;

fn is_negative(number: &BigInt) -> bool {
    number.sign() == Sign::Minus
}

/// Changes the number of decimals of whole units.
fn rescaled(units: &BigInt, from: u32, to: u32) -> BigInt {
    match to.checked_sub(from) {
        Some(more) => units * ten(more),
        None => quotient(units, &ten(from - to)),
    }
}

/// Functions of exact numbers, to as many decimals as are asked for.
pub(super) trait Functions: Sized {
    /// The whole number that it is, if it is one.
    fn whole(&self) -> Option<BigInt>;
    /// Roughly.
    fn to_f64(&self) -> f64;
    /// The natural logarithm of a number above zero.
    fn ln(&self, decimals: u32) -> Self;
    /// The logarithm to a base, both above zero and the base not one.
    fn log(&self, base: &Self, decimals: u32) -> Self;
    /// `e` to this power; the caller knows that the result is not too large.
    fn exp(&self, decimals: u32) -> Self;
    /// A power whose exponent is a whole number.
    fn power_of_whole(&self, exponent: i32, decimals: u32) -> Self;
    /// A power of a number above zero.
    fn power(&self, exponent: &Self, decimals: u32) -> Self;
}

impl Functions for Exact {
    fn whole(&self) -> Option<BigInt> {
        let unit = ten(self.decimals);
        let whole = &self.units / &unit;
        (&whole * unit == self.units).then_some(whole)
    }

    fn to_f64(&self) -> f64 {
        let text = format!("{}e-{}", self.units, self.decimals);
        text.parse().unwrap_or(f64::INFINITY)
    }

    fn ln(&self, decimals: u32) -> Exact {
        let places = decimals + MORE;
        Exact { units: ln(&self.units, self.decimals, places), decimals: places }.rounded(decimals)
    }

    fn log(&self, base: &Exact, decimals: u32) -> Exact {
        let places = decimals + 2 * MORE;
        let of = ln(&self.units, self.decimals, places);
        let by = ln(&base.units, base.decimals, places);
        Exact { units: quotient(&(of * ten(decimals)), &by), decimals }
    }

    fn exp(&self, decimals: u32) -> Exact {
        let places = decimals + MORE + digits_of_exp(self);
        let units = exp(&rescaled(&self.units, self.decimals, places.max(self.decimals)), places.max(self.decimals));
        Exact { units, decimals: places.max(self.decimals) }.rounded(decimals)
    }

    fn power_of_whole(&self, exponent: i32, decimals: u32) -> Exact {
        let magnitude = exponent.unsigned_abs();
        let power = self.units.pow(magnitude);
        let places = self.decimals * magnitude;
        match exponent < 0 {
            false => Exact { units: power, decimals: places }.rounded(decimals),
            true => Exact { units: quotient(&ten(places + decimals), &power), decimals },
        }
    }

    fn power(&self, exponent: &Exact, decimals: u32) -> Exact {
        let size = (self.to_f64().ln() * exponent.to_f64()).abs().min(2000.0);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it was just cut to 2000")]
        let places = decimals + 2 * MORE + size as u32 + exponent.units.to_string().len() as u32;
        let product = ln(&self.units, self.decimals, places) * &exponent.units;
        let product = rescaled(&product, places + exponent.decimals, places);
        Exact { units: exp(&product, places), decimals: places }.rounded(decimals)
    }
}

/// How many digits before the point the exponential function has.
fn digits_of_exp(of: &Exact) -> u32 {
    let digits = (of.to_f64() * std::f64::consts::LOG10_E).clamp(0.0, 1000.0);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it was just cut to 0 to 1000")]
    let digits = digits as u32;
    digits + 1
}

/// The series of the inverse hyperbolic tangent.
fn atanh(y: &BigInt, places: u32) -> BigInt {
    let unit = ten(places);
    let square = y * y / &unit;
    let (mut power, mut sum, mut odd) = (y.clone(), y.clone(), 1u32);
    while power.sign() != Sign::NoSign {
        power = power * &square / &unit;
        odd += 2;
        sum += &power / odd;
    }
    sum
}

fn ln_of_two(places: u32) -> BigInt {
    atanh(&(ten(places) / 3), places) * 2
}

/// The logarithm of units of so many decimals, with `places` decimals.
fn ln(units: &BigInt, decimals: u32, places: u32) -> BigInt {
    let unit = ten(places);
    let wide = units * ten(places);
    let divisor = ten(decimals);
    // Brought between 3/4 and 3/2 by a power of two.
    let shift = i64::try_from(units.bits()).unwrap_or(0) - i64::try_from(divisor.bits()).unwrap_or(0);
    let near = |shift: i64| match u64::try_from(shift) {
        Ok(shift) => &wide / (&divisor << shift),
        Err(_) => (&wide << shift.unsigned_abs()) / &divisor,
    };
    let (mut value, mut shift) = (near(shift), shift);
    if &value * 2 >= &unit * 3 {
        (value, shift) = (near(shift + 1), shift + 1);
    } else if &value * 4 < &unit * 3 {
        (value, shift) = (near(shift - 1), shift - 1);
    }
    let y = (&value - &unit) * &unit / (&value + &unit);
    atanh(&y, places) * 2 + ln_of_two(places) * shift
}

/// The exponential function of units of so many decimals.
fn exp(units: &BigInt, places: u32) -> BigInt {
    let places_within = places + 4 + HALVINGS;
    let unit = ten(places_within);
    let wide = rescaled(units, places, places_within);
    let two = ln_of_two(places_within);
    // Rounded down, so that what is left is not below zero.
    let shift = match is_negative(&wide) {
        false => &wide / &two,
        true => -((&two - &wide - BigInt::from(1)) / &two),
    };
    let rest = (&wide - &shift * &two) >> HALVINGS;
    let (mut term, mut sum, mut count) = (unit.clone(), unit.clone(), 0u32);
    while term.sign() != Sign::NoSign {
        count += 1;
        term = term * &rest / &unit / count;
        sum += &term;
    }
    for _ in 0..HALVINGS {
        sum = &sum * &sum / &unit;
    }
    let shift = i64::try_from(&shift).unwrap_or(0);
    let value = match u64::try_from(shift) {
        Ok(shift) => sum << shift,
        Err(_) => sum >> shift.unsigned_abs(),
    };
    rescaled(&value, places_within, places)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(units: i64, decimals: u32) -> Exact {
        Exact { units: BigInt::from(units), decimals }
    }

    fn text(number: &Exact) -> String {
        number.units.to_string()
    }

    #[test]
    fn digits_are_those_of_the_functions() {
        assert_eq!(text(&number(20, 1).ln(30)), "693147180559945309417232121458");
        assert_eq!(text(&number(1, 4).ln(16)), "-92103403719761827");
        assert_eq!(text(&number(10, 1).exp(30)), "2718281828459045235360287471353");
        assert_eq!(text(&number(-325, 2).exp(17)), "3877420783172201");
        assert_eq!(text(&number(2, 0).root(20)), "141421356237309504880");
        assert_eq!(text(&number(1, 20).root(25)), "1000000000000000");
        assert_eq!(text(&number(80, 1).log(&number(20, 1), 16)), "30000000000000000");
        assert_eq!(text(&number(25, 1).power(&number(-15, 1), 16)), "2529822128134703");
        assert_eq!(text(&number(1001, 3).power_of_whole(-2, 16)), "9980029960049940");
        assert_eq!(text(&number(15, 1).power_of_whole(3, 3)), "3375");
    }

    #[test]
    fn halves_are_rounded_away_from_zero() {
        assert_eq!((text(&number(25, 1).rounded(0)), text(&number(-25, 1).rounded(0))), {
            ("3".to_owned(), "-3".to_owned())
        });
    }
}
