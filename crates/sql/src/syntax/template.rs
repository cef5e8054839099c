//! Queries of our own as syntax trees, to be filled.
use datafusion::sql::sqlparser::ast::{Query, Statement};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::Parser;

use crate::error::{Result, SqlError};

/// The syntax tree of a query of our own.
pub(crate) fn template(text: &str) -> Result<Box<Query>> {
    let parsed = Parser::parse_sql(&PostgreSqlDialect {}, text).map(|mut statements| statements.pop());
    match parsed {
        Ok(Some(Statement::Query(query))) => Ok(query),
        _ => Err(SqlError::new("XX000", "the template is no query")),
    }
}
