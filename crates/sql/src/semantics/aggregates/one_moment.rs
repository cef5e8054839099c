//! Exact sums of numbers and of their squares, and the average, variance or deviation that is worked out of them, with PostgreSQL's
//! digits.
use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Decimal256Type, Int64Type};
use arrow_array::{ArrayRef, Decimal256Array};
use arrow_schema::DataType;
use datafusion::arrow::datatypes::i256;
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::Accumulator;

use super::group_averages::{DECIMALS, overflow, unscaled};
use crate::semantics::operations::decimals::{self, power_of_ten, rounded};

/// The type of sums between the steps of a query.
pub(super) const WIDE: DataType = DataType::Decimal256(76, 0);

/// What is worked out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Average,
    Variance { of_population: bool },
    Deviation { of_population: bool },
}

/// One group.
#[derive(Debug)]
pub(super) struct Moment {
    pub(super) kind: Kind,
    /// the decimals of the numbers
    pub(super) scale: i8,
    pub(super) count: i64,
    pub(super) sum: i256,
    pub(super) squares: i256,
}

impl Moment {
    /// Of no rows.
    pub(super) fn new(kind: Kind, scale: i8) -> Moment {
        Moment { kind, scale, count: 0, sum: i256::ZERO, squares: i256::ZERO }
    }

    /// The decimals of the result.
    pub(super) fn decimals(&self) -> i8 {
        self.scale.max(DECIMALS)
    }

    fn change(&mut self, values: &ArrayRef, sign: i64) -> Result<()> {
        for value in unscaled(values, self.scale)?.iter().flatten() {
            let (value, sign_wide) = (i256::from_i128(value), i256::from_i128(sign.into()));
            self.count += sign;
            let add = |total: i256, more: Option<i256>| more.and_then(|more| total.checked_add(more * sign_wide));
            self.sum = add(self.sum, Some(value)).ok_or_else(overflow)?;
            if self.kind != Kind::Average {
                self.squares = add(self.squares, value.checked_mul(value)).ok_or_else(overflow)?;
            }
        }
        Ok(())
    }

    /// The result with so many decimals.
    pub(super) fn result(&self, decimals: i8) -> Result<Option<i128>> {
        let count = i256::from_i128(self.count.into());
        let least = match self.kind {
            Kind::Variance { of_population: false } | Kind::Deviation { of_population: false } => 2,
            _ => 1,
        };
        if self.count < least {
            return Ok(None);
        }
        let shift = |digits: i8| power_of_ten(u32::try_from(digits).unwrap_or(0));
        let scaled = |value: i256, digits| shift(digits).and_then(|power| value.checked_mul(power));
        let found = match self.kind {
            Kind::Average => scaled(self.sum, decimals - self.scale).and_then(|dividend| rounded(dividend, count)),
            Kind::Variance { of_population } => {
                self.spread(of_population).and_then(|(dividend, divisor)| match decimals - 2 * self.scale {
                    digits @ 0.. => rounded(scaled(dividend, digits)?, divisor),
                    digits => rounded(dividend, scaled(divisor, -digits)?),
                })
            }
            Kind::Deviation { of_population } => {
                self.spread(of_population).and_then(|(dividend, divisor)| self.deviation(dividend, divisor, decimals))
            }
        };
        let limit = 10i128.pow(38);
        found.and_then(i256::to_i128).filter(|value| value.abs() < limit).map(Some).ok_or_else(overflow)
    }

    /// The root of a variance. PostgreSQL rounds the variance first, to as many decimals as it gives the quotient.
    fn deviation(&self, dividend: i256, divisor: i256, decimals: i8) -> Option<i256> {
        let scale_of_dividend = 2 * i32::from(self.scale);
        let scale = decimals::scale_of_quotient((dividend, scale_of_dividend), (divisor, 0)).max(scale_of_dividend);
        let power = |digits: i32| power_of_ten(u32::try_from(digits).ok()?);
        let exact = power(scale - scale_of_dividend)
            .and_then(|power| dividend.checked_mul(power))
            .and_then(|dividend| rounded(dividend, divisor))
            .and_then(|variance| root(variance.checked_mul(power(scale)?)?));
        match (exact, i32::from(decimals) - scale) {
            (Some(exact), more @ 0..) => exact.checked_mul(power(more)?),
            (Some(exact), less) => rounded(exact, power(-less)?),
            // The numbers are large: half of the digits are taken from the root.
            (None, _) => {
                let digits = i32::from(decimals - self.scale);
                let square = rounded(dividend.checked_mul(power(digits)?)?, divisor)?;
                root(square)?.checked_mul(power(digits / 2)?)
            }
        }
    }

    /// The variance as a quotient, with twice the decimals of the numbers.
    fn spread(&self, of_population: bool) -> Option<(i256, i256)> {
        let count = i256::from_i128(self.count.into());
        let left = count.checked_mul(self.squares)?;
        let dividend = left.checked_sub(self.sum.checked_mul(self.sum)?)?;
        let others = if of_population { count } else { count - i256::ONE };
        Some((dividend, count.checked_mul(others)?))
    }
}

/// The square root, rounded to the nearest whole number.
fn root(square: i256) -> Option<i256> {
    if square <= i256::ZERO {
        return Some(i256::ZERO);
    }
    let (low, high) = square.to_parts();
    if high == 0 {
        return Some(i256::from_parts(root_narrow(low), 0));
    }
    // The root in floats, with at least half of its digits. Newton's first step comes to the root or above, the next ones come down.
    let in_floats = (high as f64 * 2f64.powi(128) + low as f64).sqrt() as u128;
    let step = |guess: i256| guess.checked_add(square.checked_div(guess)?)?.checked_div(i256::from_i128(2));
    let mut guess = step(i256::from_parts(in_floats, 0))?;
    loop {
        let next = step(guess)?;
        if next >= guess {
            break;
        }
        guess = next;
    }
    let rest = square.checked_sub(guess.checked_mul(guess)?)?;
    Some(if rest > guess { guess + i256::ONE } else { guess })
}

/// The root of a number of 128 bits that is not zero. Its root in floats is too large or too small by at most 4096, so that one step of
/// Newton's comes to the root, or to one above.
fn root_narrow(square: u128) -> u128 {
    let in_floats = ((square as f64).sqrt() as u128).max(1);
    let mut guess = (in_floats + square / in_floats) / 2;
    while guess.checked_mul(guess).is_none_or(|above| above > square) {
        guess -= 1;
    }
    if square - guess * guess > guess { guess + 1 } else { guess }
}

impl Accumulator for Moment {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.change(&values[0], 1)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.change(&values[0], -1)
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let decimals = self.decimals();
        Ok(ScalarValue::Decimal128(self.result(decimals)?, 38, decimals))
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let count = ScalarValue::Int64(Some(self.count));
        Ok(match self.kind {
            Kind::Average => {
                let sum = self.sum.to_i128().ok_or_else(overflow)?;
                vec![count, ScalarValue::Decimal128(Some(sum), 38, self.scale)]
            }
            _ => {
                let wide = |value| ScalarValue::Decimal256(Some(value), 76, 0);
                vec![count, wide(self.sum), wide(self.squares)]
            }
        })
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.count += states[0].as_primitive::<Int64Type>().iter().flatten().sum::<i64>();
        if self.kind == Kind::Average {
            for sum in states[1].as_primitive::<Decimal128Type>().iter().flatten() {
                self.sum = self.sum.checked_add(i256::from_i128(sum)).ok_or_else(overflow)?;
            }
            return Ok(());
        }
        let total = |array: &ArrayRef, from: i256| {
            let values: &Decimal256Array = array.as_primitive::<Decimal256Type>();
            values.iter().flatten().try_fold(from, |total, value| total.checked_add(value)).ok_or_else(overflow)
        };
        self.sum = total(&states[1], self.sum)?;
        self.squares = total(&states[2], self.squares)?;
        Ok(())
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::Int64Array;
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};

    use super::*;

    fn of(kind: Kind, values: &[i64]) -> Option<i128> {
        let mut moment = Moment::new(kind, 0);
        let values: ArrayRef = Arc::new(Int64Array::from(values.to_vec()));
        moment.update_batch(&[values]).unwrap();
        moment.result(DECIMALS).unwrap()
    }

    #[test]
    fn results_are_exact() {
        assert_eq!(of(Kind::Average, &[1, 1, 2]), Some(13_333_333_333_333_333));
        assert_eq!(of(Kind::Variance { of_population: true }, &[1, 2, 4]), Some(15_555_555_555_555_556));
        assert_eq!(of(Kind::Variance { of_population: false }, &[1, 2, 4]), Some(23_333_333_333_333_333));
        assert_eq!(of(Kind::Deviation { of_population: false }, &[1, 2, 4]), Some(15_275_252_316_519_467));
        assert_eq!(of(Kind::Variance { of_population: false }, &[7]), None);
        // In floats the squares of these would lose their last digits.
        let large = [i64::from(i32::MAX), i64::from(i32::MAX) - 1];
        assert_eq!(of(Kind::Variance { of_population: true }, &large), Some(2_500_000_000_000_000));
    }

    #[test]
    fn roots_are_rounded() {
        let of = |value: i128| root(i256::from_i128(value)).and_then(i256::to_i128);
        assert_eq!(
            (of(0), of(1), of(2), of(3), of(4), of(6), of(7)),
            (Some(0), Some(1), Some(1), Some(2), Some(2), Some(2), Some(3))
        );
        assert_eq!(of(10i128.pow(38)), Some(10i128.pow(19)));
    }

    #[test]
    fn roots_are_the_nearest_numbers_whatever_their_length() {
        let mut random = StdRng::seed_from_u64(7);
        let one = i256::ONE;
        for bits in 1..127u32 {
            for _ in 0..20 {
                let of = random.random_range(1u128 << (bits - 1)..1 << bits);
                let exact = i256::from_parts(of, 0);
                let square = exact.checked_mul(exact).unwrap();
                // The square of `of` and a half is `square + of` and a quarter.
                let (last, next) = (square + exact, square + exact + one);
                let first = square - exact + one;
                for near in [square, square + one, last, first] {
                    assert_eq!(root(near), Some(exact), "{near}");
                }
                assert_eq!(root(next), Some(exact + one), "{next}");
                assert_eq!(root(first - one), Some(exact - one), "{first}");
            }
        }
        assert_eq!(root(i256::from_parts(u128::MAX, 0)), Some(i256::from_parts(1 << 64, 0)));
        assert!(root(i256::MAX).is_some());
    }
}
