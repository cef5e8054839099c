//! Calls of the library's functions that answer otherwise than PostgreSQL for some arguments.
use arrow_schema::{DataType as ArrowType, TimeUnit};
use datafusion::common::DFSchema;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{Expr, ExprSchemable, cast, lit, when};

use crate::functions::times::zones;

/// A call that answers as PostgreSQL's function does.
pub(crate) fn adapt(mut call: ScalarFunction, schema: &DFSchema) -> Result<Transformed<Expr>> {
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
        // A date is a midnight with a time zone.
        "date_trunc"
            if call.args.len() == 2 && call.args[1].get_type(schema).is_ok_and(|of| of == ArrowType::Date32) =>
        {
            let date = std::mem::replace(&mut call.args[1], lit(false));
            call.args[1] = cast(date, ArrowType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())));
            Ok(Transformed::yes(Expr::ScalarFunction(call)))
        }
        // Of a date it is the midnight with a zone.
        zones::NAME if call.args.len() == 2 && call.args[1].get_type(schema)? == ArrowType::Date32 => {
            let time = std::mem::replace(&mut call.args[1], lit(false));
            call.args[1] = cast(time, ArrowType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())));
            Ok(Transformed::yes(Expr::ScalarFunction(call)))
        }
        _ => Ok(Transformed::no(Expr::ScalarFunction(call))),
    }
}
