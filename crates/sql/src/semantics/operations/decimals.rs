//! Quotients and products of decimals with PostgreSQL's digits.
//!
//! A `numeric` of PostgreSQL has its own number of decimals in every value; here a column has one. A quotient has as many
//! decimals as PostgreSQL gives it where both operands are literals. Otherwise it has 20, which is what PostgreSQL gives
//! quotients below one, or 16 where more digits may be needed before the point, and at least those of either operand. It
//! is rounded half away from zero. A product has the decimals of both; where that may be more than 38 digits hold, it has
//! 256 bits.
use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Decimal256Type};
use arrow_array::{Array, ArrayRef, Datum, Decimal128Array, Decimal256Array};
use arrow_cast::cast;
use arrow_schema::{ArrowError, DataType as ArrowType};
use datafusion::arrow::datatypes::i256;
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::expr::{Cast, ScalarFunction};
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::physical_expr_common::datum::apply;

use crate::error::SqlError;
use crate::functions::numbers::nulls::null_of;

/// The significant digits that PostgreSQL gives a quotient at least.
const SIGNIFICANT: i32 = 16;
/// The digits of one of its units.
const UNIT: i32 = 4;
/// The digits that 128 and 256 bits hold.
const NARROW: u8 = 38;
const WIDE: u8 = 76;
/// A product with more decimals than this may need 256 bits.
const DECIMALS_MAX: i8 = 24;

/// The function for an operator on two decimals; `None` where they are none, or DataFusion's operator serves.
pub(crate) fn function(op: Operator, left: (&Expr, &ArrowType), right: (&Expr, &ArrowType)) -> Option<ScalarUDF> {
    if left.1.is_integer() && right.1.is_integer() {
        return None;
    }
    let (first, second) = (digits(left.1)?, digits(right.1)?);
    let to = match op {
        Operator::Divide => quotient(left.0, right.0, first, second),
        _ => product(first, second)?,
    };
    let signature = Signature::any(2, Volatility::Immutable);
    Some(ScalarUDF::from(Decimals { is_quotient: op == Operator::Divide, to, signature }))
}

/// The type of what such a function gives.
pub(crate) fn result_of(call: &ScalarFunction) -> Option<ArrowType> {
    call.func.inner().downcast_ref::<Decimals>().map(|function| function.to.clone())
}

/// Precision and scale of a decimal or an integer.
pub(crate) fn digits(data_type: &ArrowType) -> Option<(u8, i8)> {
    Some(match data_type {
        ArrowType::Decimal128(precision, scale) | ArrowType::Decimal256(precision, scale) => (*precision, *scale),
        ArrowType::Int8 | ArrowType::Int16 => (5, 0),
        ArrowType::Int32 => (10, 0),
        ArrowType::Int64 => (19, 0),
        ArrowType::UInt64 => (20, 0),
        _ => return None,
    })
}

fn quotient(left: &Expr, right: &Expr, first: (u8, i8), second: (u8, i8)) -> ArrowType {
    let least = first.1.max(second.1).max(0);
    if let (Some(left), Some(right)) = (LeadingDigit::of(left), LeadingDigit::of(right)) {
        let scale = i8::try_from(left.scale(&right)).unwrap_or(i8::MAX).max(least);
        return match scale {
            ..=24 => ArrowType::Decimal128(NARROW, scale),
            _ => ArrowType::Decimal256(WIDE, scale.min(60)),
        };
    }
    let before = i32::from(first.0) - i32::from(first.1) + i32::from(second.1);
    let scale = if before <= 18 { 20 } else { 16 };
    ArrowType::Decimal128(NARROW, scale.max(least))
}

fn product(first: (u8, i8), second: (u8, i8)) -> Option<ArrowType> {
    let scale = first.1.saturating_add(second.1);
    let precision = first.0.saturating_add(second.0);
    let is_wide = precision > NARROW && scale > DECIMALS_MAX;
    is_wide.then_some(ArrowType::Decimal256(WIDE, scale.min(60)))
}

/// Where the first digit of a literal stands: what PostgreSQL looks at.
#[derive(Debug, PartialEq)]
struct LeadingDigit {
    /// of the first unit of four digits, counted from the point
    weight: i32,
    unit: i32,
}

impl LeadingDigit {
    fn of(expr: &Expr) -> Option<LeadingDigit> {
        let (text, scale) = match expr {
            Expr::Literal(ScalarValue::Decimal128(Some(value), _, scale), _) => {
                (value.unsigned_abs().to_string(), i32::from(*scale))
            }
            Expr::Literal(ScalarValue::Decimal256(Some(value), _, scale), _) => {
                (value.to_string().trim_start_matches('-').to_owned(), i32::from(*scale))
            }
            Expr::Literal(value, _) => match value.cast_to(&ArrowType::Int64).ok()? {
                ScalarValue::Int64(Some(whole)) if value.data_type().is_integer() => {
                    (whole.unsigned_abs().to_string(), 0)
                }
                _ => return None,
            },
            Expr::Cast(Cast { expr, .. }) => return LeadingDigit::of(expr),
            _ => return None,
        };
        LeadingDigit::of_digits(&text, scale)
    }

    /// Of an unsigned number that is written without its point.
    fn of_digits(text: &str, scale: i32) -> Option<LeadingDigit> {
        if text == "0" {
            return Some(LeadingDigit { weight: 0, unit: 0 });
        }
        let exponent = i32::try_from(text.len()).ok()? - 1 - scale;
        let weight = exponent.div_euclid(UNIT);
        let length = usize::try_from(exponent.rem_euclid(UNIT) + 1).ok()?;
        let unit = format!("{text:0<length$}");
        Some(LeadingDigit { weight, unit: unit[..length].parse().ok()? })
    }

    /// Of a number without its point that is not negative.
    fn of_number(value: i256, scale: i32) -> Option<LeadingDigit> {
        let (low, high) = value.to_parts();
        if high != 0 || low == 0 {
            return LeadingDigit::of_digits(&value.to_string(), scale);
        }
        let digits = low.ilog10();
        let exponent = digits.cast_signed() - scale;
        let behind = exponent.rem_euclid(UNIT).cast_unsigned();
        let unit = match digits.checked_sub(behind) {
            Some(others) => low / 10u128.pow(others),
            None => low * 10u128.pow(behind - digits),
        };
        Some(LeadingDigit { weight: exponent.div_euclid(UNIT), unit: i32::try_from(unit).ok()? })
    }

    /// The decimals that PostgreSQL gives the quotient.
    fn scale(&self, divisor: &LeadingDigit) -> i32 {
        let is_less = self.unit <= divisor.unit;
        SIGNIFICANT - (self.weight - divisor.weight - i32::from(is_less)) * UNIT
    }
}

/// The decimals that PostgreSQL gives a quotient of two numbers, none of them negative, each without its point and with its
/// decimals.
pub(crate) fn scale_of_quotient(dividend: (i256, i32), divisor: (i256, i32)) -> i32 {
    let leading = |(value, scale): (i256, i32)| LeadingDigit::of_number(value, scale);
    match (leading(dividend), leading(divisor)) {
        (Some(dividend), Some(divisor)) => dividend.scale(&divisor).max(0),
        _ => SIGNIFICANT,
    }
}

/// A quotient or a product as a function.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Decimals {
    is_quotient: bool,
    to: ArrowType,
    signature: Signature,
}

impl ScalarUDFImpl for Decimals {
    fn name(&self) -> &str {
        if self.is_quotient { "numeric_divide" } else { "numeric_multiply" }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[ArrowType]) -> Result<ArrowType> {
        Ok(self.to.clone())
    }

    fn simplify(&self, args: Vec<Expr>, _: &SimplifyContext) -> Result<ExprSimplifyResult> {
        null_of(args, &self.to)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [left, right] = &args.args[..] else {
            return Err(DataFusionError::Internal("an operator without two operands".to_owned()));
        };
        apply(left, right, |left, right| self.compute(left, right))
    }
}

impl Decimals {
    fn compute(&self, left: &dyn Datum, right: &dyn Datum) -> Result<ArrayRef, ArrowError> {
        let (left, right) = (Operand::of(left)?, Operand::of(right)?);
        let rows = if left.is_scalar { right.values.len() } else { left.values.len() };
        let (precision, scale) = match self.to {
            ArrowType::Decimal128(precision, scale) | ArrowType::Decimal256(precision, scale) => (precision, scale),
            _ => return Err(ArrowError::ComputeError("a quotient that is no decimal".to_owned())),
        };
        let rule = Rule { is_quotient: self.is_quotient, shift: self.shift(&left, &right, scale), precision };
        let value = |row| match (left.value(row), right.value(row)) {
            (Some(left), Some(right)) => rule.compute(left, right).map(Some),
            _ => Ok(None),
        };
        if let ArrowType::Decimal128(..) = self.to {
            let narrow = |value: Option<i256>| Ok(value.and_then(i256::to_i128));
            let values = (0..rows).map(|row| value(row).and_then(narrow));
            let values = values.collect::<Result<Decimal128Array, ArrowError>>()?;
            return Ok(std::sync::Arc::new(values.with_data_type(self.to.clone())));
        }
        let values = (0..rows).map(value).collect::<Result<Decimal256Array, ArrowError>>()?;
        Ok(std::sync::Arc::new(values.with_data_type(self.to.clone())))
    }

    /// The power of ten that the unscaled result of the whole numbers is multiplied by.
    fn shift(&self, left: &Operand, right: &Operand, scale: i8) -> i32 {
        let (left, right, scale) = (i32::from(left.scale), i32::from(right.scale), i32::from(scale));
        match self.is_quotient {
            true => scale - left + right,
            false => scale - left - right,
        }
    }
}

struct Rule {
    is_quotient: bool,
    shift: i32,
    precision: u8,
}

impl Rule {
    fn compute(&self, left: i256, right: i256) -> Result<i256, ArrowError> {
        let (dividend, divisor) = match self.is_quotient {
            true if right == i256::ZERO => return Err(ArrowError::DivideByZero),
            true => (Some(left), Some(right)),
            false => (left.checked_mul(right), Some(i256::ONE)),
        };
        let power = power_of_ten(self.shift.unsigned_abs());
        let (dividend, divisor) = match self.shift {
            0.. => (dividend.zip(power).and_then(|(value, power)| value.checked_mul(power)), divisor),
            _ => (dividend, divisor.zip(power).and_then(|(value, power)| value.checked_mul(power))),
        };
        let quotient = dividend.zip(divisor).and_then(|(dividend, divisor)| rounded(dividend, divisor));
        let limit = power_of_ten(self.precision.into());
        quotient.filter(|value| limit.is_none_or(|limit| value.wrapping_abs() < limit)).ok_or_else(overflow)
    }
}

fn overflow() -> ArrowError {
    let error = SqlError::new("22003", "numeric field overflow");
    let hint = "A numeric has 38 digits here: cast an operand to fewer decimals or to double precision.";
    ArrowError::ExternalError(Box::new(error.hint(hint)))
}

pub(crate) fn power_of_ten(exponent: u32) -> Option<i256> {
    match 10i128.checked_pow(exponent) {
        Some(narrow) => Some(i256::from_i128(narrow)),
        None => i256::from_i128(10).checked_pow(exponent),
    }
}

/// The quotient of whole numbers of 128 bits, rounded half away from zero; `None` by zero, and for the least number of all.
pub(crate) fn rounded_narrow(dividend: i128, divisor: i128) -> Option<i128> {
    if dividend == i128::MIN || divisor == i128::MIN {
        return None;
    }
    let (whole, rest) = (dividend.checked_div(divisor)?, dividend.checked_rem(divisor)?);
    let is_up = rest.unsigned_abs() >= divisor.unsigned_abs() - rest.unsigned_abs();
    let up = if (dividend < 0) == (divisor < 0) { 1 } else { -1 };
    Some(if is_up { whole + up } else { whole })
}

/// The quotient of whole numbers, rounded half away from zero.
pub(crate) fn rounded(dividend: i256, divisor: i256) -> Option<i256> {
    if let (Some(dividend), Some(divisor)) = (dividend.to_i128(), divisor.to_i128())
        && let Some(quotient) = rounded_narrow(dividend, divisor)
    {
        return Some(i256::from_i128(quotient));
    }
    let (whole, rest) = (dividend.checked_div(divisor)?, dividend.checked_rem(divisor)?);
    let (rest, size) = (rest.wrapping_abs(), divisor.wrapping_abs());
    let is_up = rest >= size.checked_sub(rest)?;
    let is_positive = (dividend < i256::ZERO) == (divisor < i256::ZERO);
    match (is_up, is_positive) {
        (false, _) => Some(whole),
        (true, true) => whole.checked_add(i256::ONE),
        (true, false) => whole.checked_sub(i256::ONE),
    }
}

/// One side of an operator, in whichever width.
struct Operand {
    values: ArrayRef,
    scale: i8,
    is_scalar: bool,
}

impl Operand {
    fn of(datum: &dyn Datum) -> Result<Operand, ArrowError> {
        let (array, is_scalar) = datum.get();
        let array = array.slice(0, array.len());
        let (values, scale) = match array.data_type() {
            ArrowType::Decimal128(_, scale) | ArrowType::Decimal256(_, scale) => (array.clone(), *scale),
            _ => (cast(&array, &ArrowType::Decimal128(NARROW, 0))?, 0),
        };
        Ok(Operand { values, scale, is_scalar })
    }

    fn value(&self, row: usize) -> Option<i256> {
        let row = if self.is_scalar { 0 } else { row };
        if self.values.is_null(row) {
            return None;
        }
        Some(match self.values.data_type() {
            ArrowType::Decimal256(..) => self.values.as_primitive::<Decimal256Type>().value(row),
            _ => i256::from_i128(self.values.as_primitive::<Decimal128Type>().value(row)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotients_have_the_decimals_of_postgresql() {
        let decimal = |value, scale| Expr::Literal(ScalarValue::Decimal128(Some(value), 38, scale), None);
        let scale =
            |left: Expr, right: Expr| LeadingDigit::of(&left).unwrap().scale(&LeadingDigit::of(&right).unwrap());
        assert_eq!(scale(decimal(10, 1), decimal(3, 0)), 20);
        assert_eq!(scale(decimal(100, 1), decimal(3, 0)), 16);
        assert_eq!(scale(decimal(10_000_000, 1), decimal(7, 0)), 12);
        assert_eq!(scale(decimal(1, 3), decimal(3, 0)), 20);
    }

    #[test]
    fn the_leading_digits_of_a_number_are_those_of_its_text() {
        for digits in 0..=38 {
            for first in [1, 9, 12, 987, 4_321, 98_765] {
                let value = i256::from_i128(first).checked_mul(power_of_ten(digits).unwrap()).unwrap();
                for scale in [0, 1, 2, 3, 4, 7, 40] {
                    let of_text = LeadingDigit::of_digits(&value.to_string(), scale);
                    assert_eq!(LeadingDigit::of_number(value, scale), of_text, "{value} with {scale} decimals");
                }
            }
        }
        assert_eq!(LeadingDigit::of_number(i256::ZERO, 2), LeadingDigit::of_digits("0", 2));
    }

    #[test]
    fn halves_are_rounded_away_from_zero() {
        let of = |a: i128, b: i128| rounded(i256::from_i128(a), i256::from_i128(b)).unwrap().to_i128().unwrap();
        assert_eq!((of(5, 2), of(-5, 2), of(5, -2), of(4, 3), of(-5, 3)), (3, -3, -3, 1, -2));
        assert_eq!(
            rounded(i256::MAX, i256::from_i128(2)),
            Some(i256::MAX.wrapping_div(i256::from_i128(2)) + i256::ONE)
        );
    }
}
