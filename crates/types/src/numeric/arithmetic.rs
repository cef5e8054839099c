//! Numbers that may be infinite or none, and their operators, with the decimals that PostgreSQL gives the results.
use num_bigint::Sign;

use super::exact::{DECIMALS_MAX, Exact, quotient, ten};

/// The significant digits that a quotient has at least.
const SIGNIFICANT: i64 = 16;
/// The most decimals that a quotient is given for the sake of its digits.
const QUOTIENT_MAX: i64 = 1000;
/// The digits that PostgreSQL keeps in one unit.
const UNIT: i64 = 4;

/// What a number is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Number {
    /// It is none; equal to itself, and greater than all numbers.
    NotANumber,
    /// It is greater, or less, than all finite ones.
    Infinite {
        /// whether it is less
        is_negative: bool,
    },
    /// It is finite.
    Finite(Exact),
}

/// Why an operator has no result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NumericFault {
    /// More digits than a number may have.
    Overflow,
    /// A divisor is zero.
    DivisionByZero,
}

use Number::{Finite, Infinite, NotANumber};

impl Number {
    /// Whether it is less than zero.
    pub fn is_negative(&self) -> bool {
        match self {
            NotANumber => false,
            Infinite { is_negative } => *is_negative,
            Finite(exact) => exact.is_negative(),
        }
    }

    fn is_zero(&self) -> bool {
        matches!(self, Finite(exact) if exact.is_zero())
    }

    /// The number with the other sign.
    #[must_use]
    pub fn negated(self) -> Number {
        match self {
            NotANumber => NotANumber,
            Infinite { is_negative } => Infinite { is_negative: !is_negative },
            Finite(Exact { units, decimals }) => Finite(Exact { units: -units, decimals }),
        }
    }

    /// The sum.
    #[must_use]
    pub fn plus(&self, other: &Number) -> Number {
        match (self, other) {
            (NotANumber, _) | (_, NotANumber) => NotANumber,
            (Infinite { is_negative: left }, Infinite { is_negative: right }) if left != right => NotANumber,
            (infinite @ Infinite { .. }, _) | (_, infinite @ Infinite { .. }) => infinite.clone(),
            (Finite(left), Finite(right)) => {
                let decimals = left.decimals.max(right.decimals);
                Finite(Exact { units: left.rounded(decimals).units + right.rounded(decimals).units, decimals })
            }
        }
    }

    /// The difference.
    #[must_use]
    pub fn minus(&self, other: &Number) -> Number {
        self.plus(&other.clone().negated())
    }

    /// The product.
    #[must_use]
    pub fn times(&self, other: &Number) -> Number {
        match (self, other) {
            (NotANumber, _) | (_, NotANumber) => NotANumber,
            (Finite(left), Finite(right)) => {
                let product = Exact { units: &left.units * &right.units, decimals: left.decimals + right.decimals };
                Finite(if product.decimals > DECIMALS_MAX { product.rounded(DECIMALS_MAX) } else { product })
            }
            (left, right) if left.is_zero() || right.is_zero() => NotANumber,
            (left, right) => Infinite { is_negative: left.is_negative() != right.is_negative() },
        }
    }

    /// The quotient, with as many decimals as make sixteen significant digits, and no fewer than either number has.
    ///
    /// # Errors
    /// The divisor is zero.
    pub fn divided_by(&self, divisor: &Number) -> Result<Number, NumericFault> {
        Ok(match (self, divisor) {
            (NotANumber, _) | (_, NotANumber) => NotANumber,
            (_, divisor) if divisor.is_zero() => return Err(NumericFault::DivisionByZero),
            (Infinite { .. }, Infinite { .. }) => NotANumber,
            (Infinite { is_negative }, divisor) => Infinite { is_negative: *is_negative != divisor.is_negative() },
            (_, Infinite { .. }) => Finite(Exact::whole(0)),
            (Finite(dividend), Finite(divisor)) => {
                let decimals = decimals_of_quotient(dividend, divisor);
                let (more, fewer) = (decimals + divisor.decimals, dividend.decimals);
                let units = match more.checked_sub(fewer) {
                    Some(shift) => quotient(&(&dividend.units * ten(shift)), &divisor.units),
                    None => quotient(&dividend.units, &(&divisor.units * ten(fewer - more))),
                };
                Finite(Exact { units, decimals })
            }
        })
    }

    /// The whole part of the quotient.
    ///
    /// # Errors
    /// The divisor is zero.
    pub fn times_within(&self, divisor: &Number) -> Result<Number, NumericFault> {
        match (self, divisor) {
            (Finite(dividend), Finite(divisor)) if !divisor.is_zero() => {
                let decimals = dividend.decimals.max(divisor.decimals);
                let units = dividend.rounded(decimals).units / divisor.rounded(decimals).units;
                Ok(Finite(Exact { units, decimals: 0 }))
            }
            (dividend, divisor) => dividend.divided_by(divisor),
        }
    }

    /// What is left of a division, with the sign of the dividend.
    ///
    /// # Errors
    /// The divisor is zero.
    pub fn remainder(&self, divisor: &Number) -> Result<Number, NumericFault> {
        Ok(match (self, divisor) {
            (NotANumber, _) | (_, NotANumber) => NotANumber,
            (_, divisor) if divisor.is_zero() => return Err(NumericFault::DivisionByZero),
            (Infinite { .. }, _) => NotANumber,
            (dividend, Infinite { .. }) => dividend.clone(),
            (Finite(dividend), Finite(divisor)) => {
                let decimals = dividend.decimals.max(divisor.decimals);
                Finite(Exact { units: dividend.rounded(decimals).units % divisor.rounded(decimals).units, decimals })
            }
        })
    }

    /// Minus one, zero or one; NaN of NaN.
    #[must_use]
    pub fn signum(&self) -> Number {
        match self {
            NotANumber => NotANumber,
            other if other.is_zero() => Finite(Exact::whole(0)),
            other => Finite(Exact::whole(if other.is_negative() { -1 } else { 1 })),
        }
    }

    /// The number without its sign.
    #[must_use]
    pub fn absolute(self) -> Number {
        if self.is_negative() { self.negated() } else { self }
    }

    /// The number that a function of finite numbers makes of it; the same of any other.
    #[must_use]
    pub fn finite(self, of: impl FnOnce(Exact) -> Exact) -> Number {
        match self {
            Finite(exact) => Finite(of(exact)),
            other => other,
        }
    }
}

/// The decimals that PostgreSQL gives a quotient, by where the first units of four digits of both numbers stand.
fn decimals_of_quotient(dividend: &Exact, divisor: &Exact) -> u32 {
    let ((weight, first), (other_weight, other_first)) = (leading(dividend), leading(divisor));
    let weight = weight - other_weight - i64::from(first <= other_first);
    let wanted = SIGNIFICANT - weight * UNIT;
    let least = i64::from(dividend.decimals.max(divisor.decimals));
    u32::try_from(wanted.max(least).clamp(0, QUOTIENT_MAX)).unwrap_or(0).max(u32::try_from(least).unwrap_or(0))
}

/// Where the first unit of four digits of a number stands, counted from the point, and which it is.
fn leading(number: &Exact) -> (i64, u32) {
    if number.units.sign() == Sign::NoSign {
        return (0, 0);
    }
    let magnitude = number.units.magnitude();
    // The digits but the first few are cut off, so that only few are written out; the logarithm may be one too small.
    let digits = match u128::try_from(magnitude) {
        Ok(small) => i64::from(small.ilog10()) + 1,
        Err(_) => i64::try_from(magnitude.to_str_radix(10).len()).unwrap_or(i64::MAX),
    };
    let exponent = digits - 1 - i64::from(number.decimals);
    let length = exponent.rem_euclid(UNIT) + 1;
    let first = match u32::try_from(digits - length) {
        Ok(others) => magnitude / ten(others).magnitude(),
        Err(_) => magnitude * ten(u32::try_from(length - digits).unwrap_or(0)).magnitude(),
    };
    (exponent.div_euclid(UNIT), u32::try_from(&first).unwrap_or(0))
}
