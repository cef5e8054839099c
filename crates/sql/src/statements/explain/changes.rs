//! Statements that change rows, as the queries that find these rows.
use datafusion::sql::sqlparser::ast::{
    Delete, Expr, FromTable, Insert, Query, Select, SetExpr, Statement, TableFactor, TableObject, TableWithJoins,
    Update, UpdateTableFromKind,
};

use crate::error::{Result, SqlError};
use crate::names::fold;
use crate::syntax::template::template;

/// A change of rows.
pub(super) struct Change {
    /// `Insert`, `Update` or `Delete`
    pub(super) operation: &'static str,
    pub(super) table: String,
}

/// The query that finds the rows of a statement, and what becomes of them.
pub(super) fn read(statement: Statement) -> Result<(Statement, Option<Change>)> {
    let (operation, table, query) = match statement {
        Statement::Query(query) => return Ok((Statement::Query(query), None)),
        Statement::Insert(Insert { table: TableObject::TableName(name), source: Some(source), .. }) => {
            ("Insert", name.0.last().and_then(|part| part.as_ident()).map(fold), source)
        }
        Statement::Update(Update { table, from, selection, .. }) => {
            let others = match from {
                None => Vec::new(),
                Some(UpdateTableFromKind::AfterSet(tables) | UpdateTableFromKind::BeforeSet(tables)) => tables,
            };
            ("Update", name_of(&table), rows(table, others, selection)?)
        }
        Statement::Delete(Delete { from, using, selection, .. }) => {
            let (FromTable::WithFromKeyword(mut from) | FromTable::WithoutKeyword(mut from)) = from;
            let table = from.pop().filter(|_| from.is_empty()).ok_or_else(refused)?;
            ("Delete", name_of(&table), rows(table, using.unwrap_or_default(), selection)?)
        }
        _ => return Err(refused()),
    };
    let table = table.ok_or_else(refused)?;
    Ok((Statement::Query(query), Some(Change { operation, table })))
}

fn refused() -> SqlError {
    SqlError::unsupported("EXPLAIN of this statement")
        .hint("A query is explained, and an INSERT, UPDATE or DELETE of the rows of one table.")
}

fn name_of(table: &TableWithJoins) -> Option<String> {
    match &table.relation {
        TableFactor::Table { name, .. } => name.0.last().and_then(|part| part.as_ident()).map(fold),
        _ => None,
    }
}

/// `SELECT * FROM table, others... WHERE selection`.
fn rows(table: TableWithJoins, others: Vec<TableWithJoins>, condition: Option<Expr>) -> Result<Box<Query>> {
    let mut query = template("SELECT *")?;
    let SetExpr::Select(select) = query.body.as_mut() else {
        return Err(SqlError::new("XX000", "the template is no SELECT"));
    };
    let Select { from, selection, .. } = select.as_mut();
    *from = std::iter::once(table).chain(others).collect();
    *selection = condition;
    Ok(query)
}
