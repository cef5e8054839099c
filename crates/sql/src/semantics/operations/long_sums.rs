//! Long rows of operators of arithmetic as one call: `a + b - c + ...`.
//!
//! The planner asks for the name and the type of an expression at each level of its tree, and goes through all that is below each
//! time, so that its work grows with the cube of the length. A row in which the operands and the results are of one type becomes
//! one call with all operands, worked out from the left to the right as the operators would be: a result that does not fit is an
//! error where it first occurs.
//!
//! ```text
//! ((a + b) - c) + d   ─▶   row_of_operators [+, -, +] (a, b, c, d)
//! ```
use std::sync::Arc;

use arrow_schema::DataType as ArrowType;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::physical_expr_common::datum::apply;

use super::operators::compute;

/// The levels from which on operators become a call.
const LEVELS_MIN: usize = 16;

#[derive(Debug, PartialEq, Eq, Hash)]
struct RowOfOperators {
    /// One less than there are operands.
    ops: Vec<Operator>,
    /// The type of all operands and results.
    of: ArrowType,
    signature: Signature,
}

/// A call, or the operands that make none.
type Joined = std::result::Result<Expr, Box<(Expr, Expr)>>;

/// The call for `left op right`, which both are of this type, if that is a long row; else the operands as they were.
pub(crate) fn joined(op: Operator, left: Expr, right: Expr, of: &ArrowType) -> Joined {
    let (mut ops, mut operands) = match left {
        _ if !is_joined(of) => return Err(Box::new((left, right))),
        Expr::ScalarFunction(call) if result_of(&call).as_ref() == Some(of) => (ops_of(&call), call.args),
        left if is_deep(&left) => (Vec::new(), vec![left]),
        left => return Err(Box::new((left, right))),
    };
    ops.push(op);
    operands.push(right);
    let row = RowOfOperators { ops, of: of.clone(), signature: Signature::variadic_any(Volatility::Immutable) };
    Ok(Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(ScalarUDF::from(row)), operands)))
}

/// The type of a call that is such a row.
pub(crate) fn result_of(call: &ScalarFunction) -> Option<ArrowType> {
    call.func.inner().downcast_ref::<RowOfOperators>().map(|row| row.of.clone())
}

fn ops_of(call: &ScalarFunction) -> Vec<Operator> {
    call.func.inner().downcast_ref::<RowOfOperators>().map(|row| row.ops.clone()).unwrap_or_default()
}

/// Numbers of which two give a third of their type.
fn is_joined(of: &ArrowType) -> bool {
    matches!(of, ArrowType::Int32 | ArrowType::Int64 | ArrowType::Float64)
}

/// Whether so many operators stand in a row that calls begin there.
fn is_deep(expr: &Expr) -> bool {
    let (mut next, mut levels) = (expr, 0);
    while let Expr::BinaryExpr(binary) = next {
        (next, levels) = (&binary.left, levels + 1);
    }
    levels >= LEVELS_MIN
}

impl ScalarUDFImpl for RowOfOperators {
    fn name(&self) -> &str {
        "row_of_operators"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[ArrowType]) -> Result<ArrowType> {
        Ok(self.of.clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let mut operands = args.args.into_iter();
        let Some(mut result) = operands.next() else {
            return Err(DataFusionError::Internal("operators without operands".to_owned()));
        };
        for (op, operand) in self.ops.iter().zip(operands) {
            result = apply(&result, &operand, |left, right| compute(*op, &self.of, left, right))?;
        }
        Ok(result)
    }
}

#[cfg(test)]
mod tests {
    use datafusion::logical_expr::{col, lit};

    use super::*;

    #[test]
    fn a_long_row_is_one_call_whose_steps_are_those_of_the_operators() {
        let mut row = col("a");
        for _ in 0..LEVELS_MIN {
            row = joined(Operator::Plus, row, lit(1_i64), &ArrowType::Int64)
                .unwrap_or_else(|operands| operands.0 + operands.1);
        }
        assert!(matches!(row, Expr::BinaryExpr(_)));
        for op in [Operator::Minus, Operator::Multiply, Operator::Plus] {
            row = joined(op, row, lit(2_i64), &ArrowType::Int64).unwrap();
        }
        let Expr::ScalarFunction(call) = &row else { panic!("it is no call") };
        assert_eq!((call.args.len(), result_of(call)), (4, Some(ArrowType::Int64)));
        assert_eq!(ops_of(call), [Operator::Minus, Operator::Multiply, Operator::Plus]);
        // Another type begins another row.
        assert!(joined(Operator::Plus, row, lit(1.5), &ArrowType::Float64).is_err());
    }
}
