//! Arguments of functions in FROM: constants, the first of them a table's name.
use datafusion::common::ScalarValue;
use datafusion::logical_expr::Expr;
use datafusion::sql::sqlparser::parser::Parser;
use engine::Table;

use crate::catalog::View;
use crate::dialect::SqlDialect;
use crate::error::{Result, SqlError};
use crate::names::table_name;
use crate::parse::Source;

/// The values of arguments, which the planner has worked out as far as it can.
pub(super) fn literals(function: &str, args: &[Expr]) -> Result<Vec<ScalarValue>> {
    let literal = |arg: &Expr| match arg {
        Expr::Literal(value, _) => Ok(value.clone()),
        _ => Err(SqlError::unsupported(format!("an argument of {function} that is no constant"))),
    };
    args.iter().map(literal).collect()
}

/// The table whose name an argument is, in SQL's spelling.
pub(super) fn find(function: &str, view: &View, arg: Option<&ScalarValue>) -> Result<Table> {
    let Some(text) = arg.and_then(|arg| arg.try_as_str().flatten()) else {
        return Err(SqlError::new(
            "42883",
            format!("the first argument of {function} is the name of a table, as text"),
        ));
    };
    let dialect = SqlDialect::default();
    let name = Parser::new(&dialect).try_with_sql(text).and_then(|mut parser| parser.parse_object_name(false));
    let name = name.map_err(|_| SqlError::new("42602", format!("invalid name syntax: \"{text}\"")))?;
    let name = table_name(&name, &Source { text })?;
    view.tables.find(&name).map_err(SqlError::from)
}
