//! The types of expressions that only the planner knows: calls, aggregates, and columns of queries, views and `WITH`.
//!
//! A parameter takes the type of what it stands beside. Where that can't be seen in the statement's text, the expression is
//! planned as a query of its own over the tables that it stands over, and described:
//!
//! ```text
//! SELECT a, count(*) FROM t GROUP BY a HAVING count(*) > $1   ──▶   SELECT count(*) FROM t GROUP BY a   ──▶   bigint
//! ```
//!
//! Nothing is run. An expression that can't be planned in this way has no type that is known.
use datafusion::sql::sqlparser::ast::{
    Delete, Expr, FromTable, GroupByExpr, Query, Select, SelectItem, SetExpr, Statement, TableWithJoins, Update,
    UpdateTableFromKind, With,
};
use engine::DataType;

use crate::parsing::ParsedStatement;
use crate::syntax::template::template;

/// Plans a query, whose parameters have types as far as they are known, and gives the type of its one column.
pub(crate) type Ask<'a> = &'a dyn Fn(ParsedStatement, &Known) -> Option<DataType>;

/// The types of parameters and of the items of those that are arrays.
pub(crate) struct Known {
    pub(crate) types: Vec<DataType>,
    pub(crate) items: Vec<Option<DataType>>,
}

/// What a query says of the names in its expressions.
pub(super) struct Around {
    with: Option<With>,
    /// The parts of a set operation, or the one that there is; each with the clauses that give rows alone.
    parts: Vec<Select>,
}

impl Around {
    pub(super) fn of_query(query: &Query) -> Around {
        let mut parts = Vec::new();
        leaves(&query.body, &mut parts);
        Around { with: query.with.clone(), parts }
    }

    /// What a statement that changes rows says of them; `None` for others.
    pub(super) fn of_change(statement: &Statement) -> Option<Around> {
        let from: Vec<TableWithJoins> = match statement {
            Statement::Update(Update { table, from, .. }) => {
                let others = match from {
                    Some(UpdateTableFromKind::BeforeSet(from) | UpdateTableFromKind::AfterSet(from)) => &from[..],
                    None => &[],
                };
                [std::slice::from_ref(table), others].concat()
            }
            Statement::Delete(Delete { from, using, .. }) => {
                let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = from;
                [from.as_slice(), using.as_deref().unwrap_or_default()].concat()
            }
            _ => return None,
        };
        Some(Around { with: None, parts: vec![Select { from, ..bare()? }] })
    }
}

/// The parts of a set operation, without what they give and keep.
fn leaves(body: &SetExpr, into: &mut Vec<Select>) {
    match body {
        SetExpr::Select(select) => into.extend(bare().map(|bare| Select {
            from: select.from.clone(),
            group_by: select.group_by.clone(),
            named_window: select.named_window.clone(),
            ..bare
        })),
        SetExpr::SetOperation { left, right, .. } => {
            leaves(left, into);
            leaves(right, into);
        }
        SetExpr::Query(query) => leaves(&query.body, into),
        _ => {}
    }
}

/// A part that has no tables.
fn bare() -> Option<Select> {
    match *template("SELECT NULL").ok()?.body {
        SetExpr::Select(select) => Some(*select),
        _ => None,
    }
}

/// The type of an expression within these queries, of which the last is the innermost.
pub(super) fn ask(expr: &Expr, around: &[Around], known: &Known, ask: Ask<'_>) -> Option<DataType> {
    let innermost = around.last()?;
    innermost.parts.iter().find_map(|part| {
        let no_groups = GroupByExpr::Expressions(Vec::new(), Vec::new());
        let alone = [part.group_by.clone(), no_groups.clone()];
        let alone = alone.into_iter().map(|group_by| Select { group_by, ..part.clone() });
        // A column of a query further out is one of another table.
        let outer = around.iter().rev().skip(1).filter_map(|outer| outer.parts.first());
        let from = part.from.iter().chain(outer.flat_map(|outer| &outer.from)).cloned().collect();
        let with_outer = (around.len() > 1).then(|| Select { from, group_by: no_groups, ..part.clone() });
        alone.chain(with_outer).find_map(|select| {
            let query = query_of(expr, select, around)?;
            ask(ParsedStatement::Statement(Box::new(Statement::Query(query))), known)
        })
    })
}

fn query_of(expr: &Expr, mut select: Select, around: &[Around]) -> Option<Box<Query>> {
    let mut query = template("SELECT NULL").ok()?;
    select.projection = vec![SelectItem::UnnamedExpr(expr.clone())];
    *query.body = SetExpr::Select(Box::new(select));
    for with in around.iter().rev().filter_map(|around| around.with.as_ref()) {
        match &mut query.with {
            None => query.with = Some(with.clone()),
            Some(inner) => {
                inner.recursive |= with.recursive;
                let hidden = |name| inner.cte_tables.iter().any(|known| known.alias.name == name);
                let outer = with.cte_tables.iter().filter(|table| !hidden(table.alias.name.clone())).cloned();
                let outer: Vec<_> = outer.collect();
                inner.cte_tables.splice(0..0, outer);
            }
        }
    }
    Some(query)
}
