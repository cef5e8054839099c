//! `SELECT ... INTO [TEMP] table ...` as the `CREATE TABLE ... AS` that it is.
use datafusion::sql::sqlparser::ast::{Query, SetExpr, Statement};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::Parser;

use crate::error::{Result, SqlError};

/// The statement, with what makes a table of a query put in front of it.
pub(crate) fn spelled_out(statement: Statement) -> Result<Statement> {
    match statement {
        Statement::Query(query) if is_into(&query) => create_as(query),
        other => Ok(other),
    }
}

fn is_into(query: &Query) -> bool {
    matches!(query.body.as_ref(), SetExpr::Select(select) if select.into.is_some())
}

fn create_as(mut query: Box<Query>) -> Result<Statement> {
    let SetExpr::Select(select) = query.body.as_mut() else { return Ok(Statement::Query(query)) };
    let Some(into) = select.into.take() else { return Ok(Statement::Query(query)) };
    if into.unlogged {
        return Err(SqlError::unsupported("an unlogged table"));
    }
    let template = Parser::parse_sql(&PostgreSqlDialect {}, "CREATE TABLE t AS SELECT 1").map(|mut all| all.pop());
    let Ok(Some(Statement::CreateTable(mut create))) = template else {
        return Err(SqlError::new("XX000", "the template makes no table"));
    };
    (create.name, create.temporary, create.query) = (into.name, into.temporary, Some(query));
    Ok(Statement::CreateTable(create))
}
