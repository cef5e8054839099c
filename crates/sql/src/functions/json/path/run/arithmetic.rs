//! Arithmetic of numbers, exact as PostgreSQL's `numeric` is.
use engine::json::{Json, JsonNumber};
use num_bigint::{BigInt, Sign};

use super::items::Item;
use super::{Failure, Found, Outcome, Run, named};
use crate::error::SqlError;
use crate::functions::json::path::tree::{Node, Operator};

/// The decimals of a quotient at most, and of any number.
const DECIMALS_OF_QUOTIENT: i64 = 1_000;
const DECIMALS_MAX: u32 = 16_383;

/// A number as whole units of its last decimal.
struct Units {
    units: BigInt,
    decimals: u32,
}

fn ten(power: u32) -> BigInt {
    BigInt::from(10).pow(power)
}

impl Units {
    fn of(number: &JsonNumber) -> Units {
        let text = number.to_string();
        let decimals = text.split_once('.').map_or(0, |(_, decimals)| decimals.len());
        let units = BigInt::parse_bytes(text.replace('.', "").as_bytes(), 10).unwrap_or_default();
        Units { units, decimals: u32::try_from(decimals).unwrap_or(u32::MAX) }
    }

    /// With so many decimals, rounded half away from zero where these are fewer.
    fn with_decimals(self, decimals: u32) -> Units {
        let units = match decimals.checked_sub(self.decimals) {
            Some(more) => self.units * ten(more),
            None => {
                let unit = ten(self.decimals - decimals);
                quotient(&self.units, &unit)
            }
        };
        Units { units, decimals }
    }

    fn into_number(self) -> Result<JsonNumber, SqlError> {
        let units = if self.decimals > DECIMALS_MAX { self.with_decimals(DECIMALS_MAX) } else { self };
        let text = format!("{}e-{}", units.units, units.decimals);
        JsonNumber::read(&text).ok_or_else(|| SqlError::new("22003", "value overflows numeric format"))
    }

    /// The first four digits in groups of four around the point, and the place of that group.
    fn first_group(&self) -> (i64, u16) {
        if self.units.sign() == Sign::NoSign {
            return (0, 0);
        }
        let digits = self.units.magnitude().to_string();
        // How many digits stand before the point; fewer than none where zeros follow it.
        let whole = i64::try_from(digits.len()).unwrap_or(i64::MAX) - i64::from(self.decimals);
        let place = (whole - 1).div_euclid(4);
        let count = usize::try_from(whole - place * 4).unwrap_or(1);
        let group = digits.chars().chain(std::iter::repeat('0')).take(count);
        (place, group.fold(0, |value, digit| value * 10 + u16::try_from(digit.to_digit(10).unwrap_or(0)).unwrap_or(0)))
    }
}

/// A quotient, rounded half away from zero.
fn quotient(dividend: &BigInt, divisor: &BigInt) -> BigInt {
    let twice: BigInt = dividend * 2;
    let is_below = (dividend.sign() == Sign::Minus) != (divisor.sign() == Sign::Minus);
    let magnitude = (twice.magnitude() + divisor.magnitude()) / (divisor.magnitude() * 2_u32);
    BigInt::from_biguint(if is_below { Sign::Minus } else { Sign::Plus }, magnitude)
}

/// The decimals that PostgreSQL gives a quotient: sixteen digits that count at the least.
fn decimals_of_quotient(left: &Units, right: &Units) -> u32 {
    let ((left_place, left_group), (right_place, right_group)) = (left.first_group(), right.first_group());
    let place = left_place - right_place - i64::from(left_group <= right_group);
    let decimals = (16 - place * 4).max(left.decimals.into()).max(right.decimals.into());
    u32::try_from(decimals.clamp(0, DECIMALS_OF_QUOTIENT)).unwrap_or(0)
}

fn computed(op: Operator, left: &JsonNumber, right: &JsonNumber) -> Result<JsonNumber, SqlError> {
    let (left, right) = (Units::of(left), Units::of(right));
    let decimals = left.decimals.max(right.decimals);
    let is_zero = right.units.sign() == Sign::NoSign;
    if matches!(op, Operator::Divide | Operator::Modulo) && is_zero {
        return Err(SqlError::new("22012", "division by zero"));
    }
    let result = match op {
        Operator::Multiply => {
            Units { units: &left.units * &right.units, decimals: left.decimals.saturating_add(right.decimals) }
        }
        Operator::Divide => {
            let decimals = decimals_of_quotient(&left, &right);
            // left / right in units of the result
            let dividend = left.units * ten(decimals + right.decimals);
            let divisor = right.units * ten(left.decimals);
            Units { units: quotient(&dividend, &divisor), decimals }
        }
        _ => {
            let (left, right) = (left.with_decimals(decimals).units, right.with_decimals(decimals).units);
            let units = match op {
                Operator::Add => left + right,
                Operator::Subtract => left - right,
                _ => left % right,
            };
            Units { units, decimals }
        }
    };
    result.into_number()
}

/// A number without its decimals.
pub(super) fn whole_of(number: &JsonNumber) -> Option<i64> {
    number.to_string().split('.').next()?.parse().ok()
}

/// The nearest whole number that is not above a number, or not below it.
pub(super) fn rounded(number: &JsonNumber, is_up: bool) -> Result<JsonNumber, SqlError> {
    let Units { units, decimals } = Units::of(number);
    let unit = ten(decimals);
    let (whole, rest) = (&units / &unit, &units % &unit);
    let step = match rest.sign() {
        Sign::Plus if is_up => 1,
        Sign::Minus if !is_up => -1,
        _ => 0,
    };
    Units { units: whole + step, decimals: 0 }.into_number()
}

impl<'a> Run<'a> {
    /// `+`, `-`, `*`, `/` or `%` of two numbers.
    pub(super) fn operation(
        &mut self,
        node: &'a Node,
        op: Operator,
        sides: &'a [Node; 2],
        item: Item<'a>,
        found: Found<'_, 'a>,
    ) -> Outcome<bool> {
        let (mut left, mut right) = (Vec::new(), Vec::new());
        self.opened(&sides[0], &item, Some(&mut left), true)?;
        self.opened(&sides[1], &item, Some(&mut right), true)?;
        let left = self.operand(op, "left", &left)?;
        let right = self.operand(op, "right", &right)?;
        let result = match computed(op, &left, &right) {
            Ok(result) => result,
            Err(_) if self.is_silent => return Err(Failure::OfPath(None)),
            Err(error) => return Err(Failure::OfPath(Some(error))),
        };
        self.next(node, 0, Item::number(result), found)
    }

    fn operand(&self, op: Operator, side: &str, items: &[Item<'a>]) -> Outcome<JsonNumber> {
        match items {
            [one] if let Json::Number(number) = one.json() => Ok(number.clone()),
            _ => Err(self.failed("22038", || {
                format!("{side} operand of jsonpath operator {} is not a single numeric value", named(op))
            })),
        }
    }

    /// A sign before numbers.
    pub(super) fn sign(
        &mut self,
        node: &'a Node,
        op: Operator,
        of: &'a Node,
        item: Item<'a>,
        mut found: Found<'_, 'a>,
    ) -> Outcome<bool> {
        let mut given = Vec::new();
        self.opened(of, &item, Some(&mut given), true)?;
        let is_wanted = found.is_some() || !node.steps.is_empty();
        let mut is_any = false;
        for one in given {
            let number = match one.json() {
                Json::Number(_) if !is_wanted => return Ok(true),
                Json::Number(number) if op == Operator::Minus => number.negated(),
                Json::Number(number) => number.clone(),
                _ if !is_wanted => continue,
                _ => {
                    let of = named(op);
                    let message = || format!("operand of unary jsonpath operator {of} is not a numeric value");
                    return Err(self.failed("2203B", message));
                }
            };
            if self.next(node, 0, Item::number(number), found.as_deref_mut())? {
                is_any = true;
                if found.is_none() {
                    break;
                }
            }
        }
        Ok(is_any)
    }
}
