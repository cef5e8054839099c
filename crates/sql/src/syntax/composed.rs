//! Whether a statement has parts of their own: queries of its `WITH` that change rows, a `WITH` before what changes rows, or the
//! clauses of a `MERGE`.
use datafusion::sql::sqlparser::ast::{Query, SelectItem, SetExpr, Statement};

/// Whether the body of a query is an `INSERT`, `UPDATE` or `DELETE`.
pub(crate) fn changes_rows(body: &SetExpr) -> bool {
    changing(body).is_some()
}

/// The `INSERT`, `UPDATE` or `DELETE` that the body of a query is.
pub(crate) fn changing(body: &SetExpr) -> Option<&Statement> {
    match body {
        SetExpr::Insert(statement)
        | SetExpr::Update(statement)
        | SetExpr::Delete(statement)
        | SetExpr::Merge(statement) => Some(statement),
        _ => None,
    }
}

/// Whether a query is one that changes rows, or has one in its `WITH`.
pub(crate) fn writes(query: &Query) -> bool {
    let mut with = query.with.iter().flat_map(|with| &with.cte_tables);
    changes_rows(&query.body) || with.any(|cte| changes_rows(&cte.query.body))
}

/// Whether a statement has such parts.
pub(crate) fn has_parts(statement: &Statement) -> bool {
    match statement {
        Statement::Query(query) => writes(query),
        statement => matches!(statement, Statement::Merge(_)),
    }
}

/// Whether a statement of parts gives rows in the end.
pub(crate) fn gives_rows(statement: &Statement) -> bool {
    match statement {
        Statement::Query(query) => changing(&query.body).is_none_or(|changing| returning(changing).is_some()),
        other => returning(other).is_some(),
    }
}

/// What a statement that changes rows gives back of them, if it does.
pub(crate) fn returning(statement: &Statement) -> Option<&Vec<SelectItem>> {
    match statement {
        Statement::Insert(insert) => insert.returning.as_ref(),
        Statement::Update(update) => update.returning.as_ref(),
        Statement::Delete(delete) => delete.returning.as_ref(),
        _ => None,
    }
}
