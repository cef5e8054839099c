//! The operators of arithmetic on integers and floats as functions that fail when a result does not fit.
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef, ArrowNativeTypeOp, ArrowPrimitiveType, Datum, PrimitiveArray};
use arrow_schema::{ArrowError, DataType as ArrowType};
use datafusion::arrow::compute::kernels::numeric::{add, div, mul, neg, rem, sub};
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::physical_expr_common::datum::apply;

use crate::error::SqlError;
use crate::functions::numbers::nulls::null_of;
use crate::functions::of_one_zero;

/// The action of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Does {
    Binary(Operator),
    Negate,
}

/// One operator as a function.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct CheckedOperator {
    does: Does,
    /// The type of the operands and the result.
    of: ArrowType,
    signature: Signature,
}

impl CheckedOperator {
    /// The function for `+`, `-`, `*`, `/` or `%` of two numbers of this type.
    pub(crate) fn function(op: Operator, of: ArrowType) -> ScalarUDF {
        let signature = Signature::any(2, Volatility::Immutable);
        ScalarUDF::from(CheckedOperator { does: Does::Binary(op), of, signature })
    }

    /// `-expr`.
    pub(crate) fn negated(expr: Expr, of: ArrowType) -> Expr {
        let signature = Signature::any(1, Volatility::Immutable);
        let function = ScalarUDF::from(CheckedOperator { does: Does::Negate, of, signature });
        Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(function), vec![expr]))
    }

    /// The type of its result.
    pub(crate) fn of(&self) -> &ArrowType {
        &self.of
    }
}

/// `left op right` of two numbers of a type.
pub(crate) fn compute(
    op: Operator,
    of: &ArrowType,
    left: &dyn Datum,
    right: &dyn Datum,
) -> Result<ArrayRef, ArrowError> {
    let result = match op {
        Operator::Plus => add(left, right),
        Operator::Minus => sub(left, right),
        Operator::Multiply => mul(left, right),
        Operator::Divide => div(left, right),
        _ => rem(left, right),
    };
    let result = result.map_err(|error| out_of_range(error, of))?;
    match of {
        ArrowType::Float64 => check_floats::<Float64Type>(op, left, right, &result)?,
        ArrowType::Float32 => check_floats::<Float32Type>(op, left, right, &result)?,
        _ => {}
    }
    Ok(of_one_zero(result))
}

impl ScalarUDFImpl for CheckedOperator {
    fn name(&self) -> &str {
        match self.does {
            Does::Binary(Operator::Plus) => "checked_add",
            Does::Binary(Operator::Minus) => "checked_subtract",
            Does::Binary(Operator::Multiply) => "checked_multiply",
            Does::Binary(Operator::Divide) => "checked_divide",
            Does::Binary(_) => "checked_modulo",
            Does::Negate => "checked_negate",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[ArrowType]) -> Result<ArrowType> {
        Ok(self.of.clone())
    }

    fn simplify(&self, args: Vec<Expr>, _: &SimplifyContext) -> Result<ExprSimplifyResult> {
        null_of(args, &self.of)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match (self.does, &args.args[..]) {
            (Does::Binary(op), [left, right]) => apply(left, right, |left, right| compute(op, &self.of, left, right)),
            (Does::Negate, [ColumnarValue::Array(array)]) => Ok(ColumnarValue::Array(self.negate(array)?)),
            (Does::Negate, [ColumnarValue::Scalar(value)]) => {
                let negated = self.negate(&value.to_array()?)?;
                Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&negated, 0)?))
            }
            _ => Err(DataFusionError::Internal("an operator without its operands".to_owned())),
        }
    }
}

impl CheckedOperator {
    fn negate(&self, array: &ArrayRef) -> Result<ArrayRef> {
        Ok(of_one_zero(neg(array.as_ref()).map_err(|error| out_of_range(error, &self.of))?))
    }
}

/// PostgreSQL's words for an integer that does not fit.
fn out_of_range(error: ArrowError, of: &ArrowType) -> ArrowError {
    let name = match of {
        ArrowType::Int16 => "smallint",
        ArrowType::Int32 => "integer",
        _ => "bigint",
    };
    match error {
        ArrowError::ArithmeticOverflow(_) => failed("22003", &format!("{name} out of range")),
        other => other,
    }
}

fn failed(code: &'static str, message: &str) -> ArrowError {
    ArrowError::ExternalError(Box::new(SqlError::new(code, message)))
}

/// An infinite result of finite operands has overflowed; a zero that no operand is the reason of is an underflow.
fn check_floats<T: ArrowPrimitiveType<Native: Float>>(
    op: Operator,
    left: &dyn Datum,
    right: &dyn Datum,
    result: &ArrayRef,
) -> Result<(), ArrowError> {
    let results = result.as_primitive::<T>();
    let (left, right) = (Operand::<T>::of(left), Operand::<T>::of(right));
    // The usual case in one pass without branches.
    let is_plain = |value: &T::Native| value.is_finite() & (!value.is_zero() | !matches!(op, Operator::Multiply));
    if !matches!(op, Operator::Divide) && results.values().iter().all(is_plain) {
        return Ok(());
    }
    for row in 0..results.len() {
        if results.is_null(row) {
            continue;
        }
        let (a, b, value) = (left.value(row), right.value(row), results.value(row));
        if op == Operator::Divide && b.is_zero() && !a.is_not_a_number() {
            return Err(ArrowError::DivideByZero);
        }
        if value.is_infinite() && !a.is_infinite() && !b.is_infinite() {
            return Err(failed("22003", "value out of range: overflow"));
        }
        let is_lost = match op {
            Operator::Multiply => !a.is_zero() && !b.is_zero(),
            Operator::Divide => !a.is_zero() && !b.is_infinite(),
            _ => false,
        };
        if value.is_zero() && is_lost {
            return Err(failed("22003", "value out of range: underflow"));
        }
    }
    Ok(())
}

/// The operations needed of floats of both widths.
pub(crate) trait Float: Copy {
    fn is_finite(self) -> bool;
    fn is_infinite(self) -> bool;
    fn is_not_a_number(self) -> bool;
}

impl Float for f64 {
    fn is_finite(self) -> bool {
        f64::is_finite(self)
    }

    fn is_infinite(self) -> bool {
        f64::is_infinite(self)
    }

    fn is_not_a_number(self) -> bool {
        self.is_nan()
    }
}

impl Float for f32 {
    fn is_finite(self) -> bool {
        f32::is_finite(self)
    }

    fn is_infinite(self) -> bool {
        f32::is_infinite(self)
    }

    fn is_not_a_number(self) -> bool {
        self.is_nan()
    }
}

/// One side of an operator: a value for each row or one for all.
struct Operand<'a, T: ArrowPrimitiveType> {
    values: &'a PrimitiveArray<T>,
    is_scalar: bool,
}

impl<'a, T: ArrowPrimitiveType> Operand<'a, T> {
    fn of(datum: &'a dyn Datum) -> Operand<'a, T> {
        let (array, is_scalar) = datum.get();
        Operand { values: array.as_primitive::<T>(), is_scalar }
    }

    fn value(&self, row: usize) -> T::Native {
        self.values.value(if self.is_scalar { 0 } else { row })
    }
}
