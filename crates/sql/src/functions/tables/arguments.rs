//! Arguments of functions in FROM: constants, the first of them a table's name.
use datafusion::common::ScalarValue;
use datafusion::logical_expr::Expr;
use engine::Table;

use crate::error::{Result, SqlError};
use crate::names::name_in_text;
use crate::state::view::View;

/// The values of arguments, which the planner has worked out as far as it can.
pub(crate) fn literals(function: &str, args: &[Expr]) -> Result<Vec<ScalarValue>> {
    let literal = |arg: &Expr| match arg {
        Expr::Literal(value, _) => Ok(value.clone()),
        _ => Err(SqlError::unsupported(format!("an argument of {function} that is no constant"))),
    };
    args.iter().map(literal).collect()
}

/// The table that an argument names, in SQL's spelling, and its name.
pub(crate) fn find(function: &str, view: &View, arg: Option<&ScalarValue>) -> Result<(String, Table)> {
    let name = view.tables.resolved(name(function, arg)?);
    let table = view.tables.find(&name)?;
    match table.view() {
        Some(_) => Err(SqlError::new("42809", format!("\"{name}\" is not a table"))),
        None => Ok((name, table)),
    }
}

/// The name alone.
pub(crate) fn name(function: &str, arg: Option<&ScalarValue>) -> Result<String> {
    let Some(text) = arg.and_then(|arg| arg.try_as_str().flatten()) else {
        return Err(SqlError::new(
            "42883",
            format!("the first argument of {function} is the name of a table, as text"),
        ));
    };
    name_in_text(text)
}
