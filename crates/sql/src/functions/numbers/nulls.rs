//! Operators beside NULL.
use arrow_schema::DataType as ArrowType;
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::simplify::ExprSimplifyResult;

/// NULL for an operator beside a NULL, so that its other operand is not worked out.
pub(crate) fn null_of(args: Vec<Expr>, to: &ArrowType) -> Result<ExprSimplifyResult> {
    let is_null = |arg: &Expr| matches!(arg, Expr::Literal(value, _) if value.is_null());
    Ok(match args.iter().any(is_null) {
        true => ExprSimplifyResult::Simplified(Expr::Literal(ScalarValue::try_from(to)?, None)),
        false => ExprSimplifyResult::Original(args),
    })
}
