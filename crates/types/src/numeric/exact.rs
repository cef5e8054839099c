//! Finite numbers as whole units of their last decimal.
use num_bigint::{BigInt, BigUint, Sign};

/// How many digits there may be before the point.
pub const WHOLE_MAX: u32 = 131_072;
/// How many digits there may be behind the point.
pub const DECIMALS_MAX: u32 = 16_383;

/// A finite number: whole units, and how many decimals these have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exact {
    /// How many units it is.
    pub units: BigInt,
    /// A unit is one divided by so many powers of ten.
    pub decimals: u32,
}

/// Ten to a power.
pub fn ten(power: u32) -> BigInt {
    match 10_i128.checked_pow(power) {
        Some(small) => small.into(),
        None => BigInt::from(10).pow(power),
    }
}

/// A quotient, rounded half away from zero.
pub fn quotient(dividend: &BigInt, divisor: &BigInt) -> BigInt {
    let is_below = dividend.sign() == Sign::Minus && divisor.sign() == Sign::Plus
        || dividend.sign() == Sign::Plus && divisor.sign() == Sign::Minus;
    let two: BigUint = 2_u32.into();
    let rounded = (dividend.magnitude() * &two + divisor.magnitude()) / (divisor.magnitude() * &two);
    BigInt::from_biguint(if is_below { Sign::Minus } else { Sign::Plus }, rounded)
}

impl Exact {
    /// A whole number.
    pub fn whole(number: i64) -> Exact {
        Exact { units: number.into(), decimals: 0 }
    }

    /// Whether it is zero.
    pub fn is_zero(&self) -> bool {
        self.units.sign() == Sign::NoSign
    }

    /// Whether it is less than zero.
    pub fn is_negative(&self) -> bool {
        self.units.sign() == Sign::Minus
    }

    /// With so many decimals, rounded half away from zero.
    #[must_use]
    pub fn rounded(&self, decimals: u32) -> Exact {
        let units = match decimals.checked_sub(self.decimals) {
            Some(0) => self.units.clone(),
            Some(more) => &self.units * ten(more),
            None => quotient(&self.units, &ten(self.decimals - decimals)),
        };
        Exact { units, decimals }
    }

    /// With so many decimals, without those behind them.
    #[must_use]
    pub fn cut(&self, decimals: u32) -> Exact {
        match self.decimals.checked_sub(decimals) {
            None | Some(0) => self.rounded(decimals),
            Some(fewer) => Exact { units: &self.units / ten(fewer), decimals },
        }
    }

    /// Rounded, or cut, to so many digits behind the point; to those before it, where they are negative.
    #[must_use]
    pub fn to_place(&self, place: i32, is_cut: bool) -> Exact {
        let to = |decimals| if is_cut { self.cut(decimals) } else { self.rounded(decimals) };
        match u32::try_from(place) {
            Ok(decimals) => to(decimals),
            Err(_) => {
                let (power, unit) = (place.unsigned_abs(), ten(place.unsigned_abs().saturating_add(self.decimals)));
                let count = if is_cut { &self.units / unit } else { quotient(&self.units, &unit) };
                Exact { units: count * ten(power), decimals: 0 }
            }
        }
    }

    /// The greatest whole number that is not greater, or the least one that is not less.
    #[must_use]
    pub fn to_whole(&self, is_up: bool) -> Exact {
        let cut = self.cut(0);
        let is_short = cut.rounded(self.decimals).units != self.units && self.is_negative() != is_up;
        let one = if is_up { 1 } else { -1 };
        if is_short { Exact { units: cut.units + one, decimals: 0 } } else { cut }
    }

    /// How many decimals it needs.
    pub fn decimals_needed(&self) -> u32 {
        let (mut units, mut decimals) = (self.units.clone(), self.decimals);
        while decimals > 0 && (&units % 10_u32).sign() == Sign::NoSign {
            (units, decimals) = (units / 10_u32, decimals - 1);
        }
        decimals
    }

    /// The square root of a number that is not negative, rounded to so many decimals.
    #[must_use]
    pub fn root(&self, decimals: u32) -> Exact {
        // Twice the decimals before the root are those behind it; one more tells where to round.
        let wide = self.rounded((2 * (decimals + 1)).max(self.decimals.next_multiple_of(2)));
        Exact { units: wide.units.sqrt(), decimals: wide.decimals / 2 }.rounded(decimals)
    }

    /// How many digits it has before the point, roughly where there are very many: never fewer than there are.
    pub(super) fn whole_digits(&self) -> u64 {
        let bits = self.units.bits();
        // A digit is more than 3.32 bits.
        let most = bits * 1000 / 3321 + 1;
        let behind = u64::from(self.decimals);
        if most <= behind + u64::from(WHOLE_MAX) {
            return most.saturating_sub(behind);
        }
        let limit = ten(WHOLE_MAX.saturating_add(self.decimals));
        if self.units.magnitude() < limit.magnitude() { WHOLE_MAX.into() } else { most }
    }

    /// The order of two numbers.
    pub fn compare(&self, other: &Exact) -> std::cmp::Ordering {
        let decimals = self.decimals.max(other.decimals);
        self.rounded(decimals).units.cmp(&other.rounded(decimals).units)
    }
}
