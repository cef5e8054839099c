//! `EXPLAIN`, with PostgreSQL's two ways to give options.
use datafusion::sql::sqlparser::ast::{Expr, Statement, UtilityOption, Value};

use crate::error::{Result, SqlError};

/// Checks an `EXPLAIN` and moves its options to where the planner looks for them.
pub(crate) fn read(statement: Statement) -> Result<Statement> {
    let Statement::Explain {
        describe_alias,
        mut analyze,
        mut verbose,
        query_plan,
        estimate,
        statement,
        format,
        options,
    } = statement
    else {
        return Err(SqlError::new("XX000", "not an EXPLAIN"));
    };
    for option in options.iter().flatten() {
        match option.name.value.to_ascii_lowercase().as_str() {
            "analyze" => analyze = is_on(option)?,
            "verbose" => verbose = is_on(option)?,
            other => return Err(SqlError::unsupported(format!("EXPLAIN ({})", other.to_uppercase()))),
        }
    }
    if query_plan || estimate || format.is_some() {
        return Err(SqlError::unsupported("this form of EXPLAIN"));
    }
    if !matches!(*statement, Statement::Query(_)) {
        return Err(SqlError::unsupported("EXPLAIN of anything but a query"));
    }
    Ok(Statement::Explain {
        describe_alias,
        analyze,
        verbose,
        query_plan: false,
        estimate: false,
        statement,
        format: None,
        options: None,
    })
}

fn is_on(option: &UtilityOption) -> Result<bool> {
    match &option.arg {
        None => Ok(true),
        Some(Expr::Value(value)) => match &value.value {
            Value::Boolean(value) => Ok(*value),
            other => Err(SqlError::syntax(format!("{} requires a Boolean value, not {other}", option.name))),
        },
        Some(Expr::Identifier(ident)) if ident.value.eq_ignore_ascii_case("on") => Ok(true),
        Some(Expr::Identifier(ident)) if ident.value.eq_ignore_ascii_case("off") => Ok(false),
        Some(other) => Err(SqlError::syntax(format!("{} requires a Boolean value, not {other}", option.name))),
    }
}
