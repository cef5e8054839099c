//! Calls of the library's functions that answer otherwise than PostgreSQL for some arguments.
use arrow_schema::DataType as ArrowType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::functions::core::expr_fn::nullif;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{Expr, ExprSchemable, cast, lit, when};

/// A call that answers as PostgreSQL's function does.
pub(super) fn adapt(mut call: ScalarFunction, schema: &DFSchema) -> Result<Transformed<Expr>> {
    match call.name() {
        // A boolean is one letter there.
        "concat" | "concat_ws" => {
            for arg in &mut call.args {
                if arg.get_type(schema).is_ok_and(|found| found == ArrowType::Boolean) {
                    let value = std::mem::replace(arg, lit(false));
                    let is_false = Expr::Not(Box::new(value.clone()));
                    *arg = when(value, lit("t")).when(is_false, lit("f")).end()?;
                }
            }
            Ok(Transformed::yes(Expr::ScalarFunction(call)))
        }
        // There is nothing before the first item; the library counts from the end there.
        "array_element" if call.args.len() == 2 => {
            let is_after_the_start = |value: &ScalarValue| *value > ScalarValue::Int64(Some(0));
            match &call.args[1] {
                Expr::Literal(value @ ScalarValue::Int64(_), _) if is_after_the_start(value) => {
                    return Ok(Transformed::no(Expr::ScalarFunction(call)));
                }
                _ => {}
            }
            let at = std::mem::replace(&mut call.args[1], lit(false));
            call.args[1] = when(at.clone().gt(lit(0i64)), at).end()?;
            Ok(Transformed::yes(Expr::ScalarFunction(call)))
        }
        // An array without items has no length.
        "array_length" => Ok(Transformed::yes(integer(nullif(Expr::ScalarFunction(call), lit(0u64))))),
        "cardinality" | "array_ndims" | "array_position" => Ok(Transformed::yes(integer(Expr::ScalarFunction(call)))),
        // Of a numeric it is one.
        "signum" if call.args.iter().any(|arg| arg.get_type(schema).is_ok_and(|found| found.is_decimal())) => {
            Ok(Transformed::yes(cast(Expr::ScalarFunction(call), ArrowType::Decimal128(38, 0))))
        }
        "gcd" | "lcm" if call.args.iter().all(|arg| is_integer(arg, schema)) => {
            Ok(Transformed::yes(integer(Expr::ScalarFunction(call))))
        }
        _ => Ok(Transformed::no(Expr::ScalarFunction(call))),
    }
}

/// What counts is an `integer`, where the library gives a number without a sign.
fn integer(expr: Expr) -> Expr {
    cast(expr, ArrowType::Int32)
}

fn is_integer(expr: &Expr, schema: &DFSchema) -> bool {
    matches!(expr.get_type(schema), Ok(ArrowType::Int16 | ArrowType::Int32))
}
