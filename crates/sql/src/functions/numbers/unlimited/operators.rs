//! `+`, `-`, `*`, `/`, `%` and the sign of numerics without limits.
use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_schema::DataType as ArrowType;
use datafusion::error::Result;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use engine::Numeric;
use engine::numeric::{self, Number};

use super::super::nulls::null_of;
use super::{NUMERIC, arguments, column, failed, kept, rows};

/// An operator of one or two numerics as a function; `-` of one is its other sign.
pub(crate) fn operator(op: Operator, operands: usize) -> ScalarUDF {
    ScalarUDF::from(Arithmetic { op, signature: Signature::any(operands, Volatility::Immutable) })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Arithmetic {
    op: Operator,
    signature: Signature,
}

impl ScalarUDFImpl for Arithmetic {
    fn name(&self) -> &str {
        match self.op {
            Operator::Plus => "numeric_add",
            Operator::Minus => "numeric_subtract",
            Operator::Multiply => "numeric_times",
            Operator::Divide => "numeric_quotient",
            _ => "numeric_remainder",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[ArrowType]) -> Result<ArrowType> {
        Ok(NUMERIC)
    }

    fn simplify(&self, args: Vec<Expr>, _: &SimplifyContext) -> Result<ExprSimplifyResult> {
        null_of(args, &NUMERIC)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        rows(args, |arrays, count| {
            let arrays = arguments(arrays)?;
            let operand = |at: usize, row: usize| {
                let values = arrays[at].as_binary::<i32>();
                (!values.is_null(row)).then(|| values.value(row))
            };
            match arrays.len() {
                1 => column(count, |row| {
                    operand(0, row).map(|bytes| kept(&Number::of_bytes(bytes).negated())).transpose()
                }),
                _ => column(count, |row| match (operand(0, row), operand(1, row)) {
                    (Some(left), Some(right)) => self.compute(left, right).map(Some),
                    _ => Ok(None),
                }),
            }
        })
    }
}

impl Arithmetic {
    fn compute(&self, left: &[u8], right: &[u8]) -> Result<Numeric> {
        if let Some((units, decimals)) = self.small(left, right) {
            return Ok(Numeric::new(units, decimals));
        }
        let (left, right) = (Number::of_bytes(left), Number::of_bytes(right));
        kept(&match self.op {
            Operator::Plus => left.plus(&right),
            Operator::Minus => left.minus(&right),
            Operator::Multiply => left.times(&right),
            Operator::Divide => left.divided_by(&right).map_err(failed)?,
            _ => left.remainder(&right).map_err(failed)?,
        })
    }

    /// Sums and products of numbers of few digits.
    fn small(&self, left: &[u8], right: &[u8]) -> Option<(i128, u32)> {
        if !matches!(self.op, Operator::Plus | Operator::Minus | Operator::Multiply) {
            return None;
        }
        let ((left, left_decimals), (right, right_decimals)) = (numeric::small(left)?, numeric::small(right)?);
        if self.op == Operator::Multiply {
            return Some((left.checked_mul(right)?, left_decimals + right_decimals));
        }
        let decimals = left_decimals.max(right_decimals);
        let scaled = |units: i128, own: u32| units.checked_mul(10_i128.checked_pow(decimals - own)?);
        let (left, right) = (scaled(left, left_decimals)?, scaled(right, right_decimals)?);
        let sum = if self.op == Operator::Plus { left.checked_add(right) } else { left.checked_sub(right) };
        Some((sum?, decimals))
    }
}
