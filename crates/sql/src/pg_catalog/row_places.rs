//! `ctid`, the place of a row in PostgreSQL, where it does no more than say which rows a statement means:
//!
//! ```text
//! WHERE t.ctid IN (SELECT u.ctid FROM t AS u JOIN ...)   ->   WHERE t.key IN (SELECT u.key FROM t AS u JOIN ...)
//! UPDATE t ... FROM t AS u JOIN ... WHERE t.ctid = u.ctid ->   UPDATE t ... FROM t AS u JOIN ... WHERE t.key = u.key
//! ```
//!
//! Object mappers write that for changes of several tables. Rows have no place here that a query could name; the primary key, where there
//! is one, tells them apart as well.
use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, Ident, Query, Select, SelectItem, SetExpr, TableFactor};
use engine::Table;

use crate::names::tables::Tables;
use crate::names::{fold, table_name};
use crate::syntax::identifiers::last_part;
use crate::syntax::source::Source;

/// The name of the column.
const PLACE: &str = "ctid";

/// Compares keys where such an expression compares places.
pub(super) fn spell_out(expr: &mut Expr, tables: &Tables, source: &Source) {
    if let Expr::InSubquery { expr: outer, subquery, .. } = expr
        && let Some(of_outer) = place(outer)
        && let Some((of_inner, table)) = given(subquery, tables, source)
    {
        let keys = keys_of(&table);
        let SetExpr::Select(select) = subquery.body.as_mut() else { return };
        let inner = |key| SelectItem::UnnamedExpr(column(&of_inner, key));
        select.projection = keys.iter().map(inner).collect();
        let mut keys: Vec<Expr> = keys.iter().map(|key| column(&of_outer, key)).collect();
        **outer = if keys.len() == 1 { keys.remove(0) } else { Expr::Tuple(keys) };
    } else if let Expr::BinaryOp { left, op: BinaryOperator::Eq, right } = expr
        && let (Some(of_left), Some(of_right)) = (place(left), place(right))
    {
        // One of them is called as its table is.
        let named = |of: &[Ident]| tables.find(&fold(of.last()?)).ok().filter(is_fit);
        let Some(table) = named(&of_left).or_else(|| named(&of_right)) else { return };
        let equal = |key: &Ident| Expr::BinaryOp {
            left: Box::new(column(&of_left, key)),
            op: BinaryOperator::Eq,
            right: Box::new(column(&of_right, key)),
        };
        let and =
            |left, right| Expr::BinaryOp { left: Box::new(left), op: BinaryOperator::And, right: Box::new(right) };
        if let Some(all) = keys_of(&table).iter().map(equal).reduce(and) {
            *expr = Expr::Nested(Box::new(all));
        }
    }
}

/// Whether a table has a key that tells its rows apart, and no such column.
fn is_fit(table: &Table) -> bool {
    let schema = table.schema();
    table.view().is_none() && !schema.primary_key().is_empty() && schema.position(PLACE).is_none()
}

fn keys_of(table: &Table) -> Vec<Ident> {
    let columns = table.schema().columns();
    table.schema().primary_key().iter().map(|at| Ident::with_quote('"', &columns[*at].name)).collect()
}

fn column(of: &[Ident], key: &Ident) -> Expr {
    match of {
        [] => Expr::Identifier(key.clone()),
        of => Expr::CompoundIdentifier(of.iter().chain([key]).cloned().collect()),
    }
}

/// What stands before the name of such a column.
fn place(expr: &Expr) -> Option<Vec<Ident>> {
    match expr {
        Expr::Identifier(column) if fold(column) == PLACE => Some(Vec::new()),
        Expr::CompoundIdentifier(parts) => match parts.split_last() {
            Some((column, before)) if fold(column) == PLACE => Some(before.to_vec()),
            _ => None,
        },
        _ => None,
    }
}

/// What stands before the place that a query gives, and the table that it is of, if that has a key and no such column.
fn given(query: &Query, tables: &Tables, source: &Source) -> Option<(Vec<Ident>, Table)> {
    let SetExpr::Select(select) = query.body.as_ref() else { return None };
    let [SelectItem::UnnamedExpr(item) | SelectItem::ExprWithAlias { expr: item, .. }] = &select.projection[..] else {
        return None;
    };
    let before = place(item)?;
    let table = table_of(select, before.last().map(fold).as_deref(), tables, source)?;
    is_fit(&table).then_some((before, table))
}

/// The table in `FROM` that is called so, or the only one.
fn table_of(select: &Select, label: Option<&str>, tables: &Tables, source: &Source) -> Option<Table> {
    let factors = select
        .from
        .iter()
        .flat_map(|from| std::iter::once(&from.relation).chain(from.joins.iter().map(|join| &join.relation)));
    let named: Vec<_> = factors
        .filter_map(|factor| match factor {
            TableFactor::Table { name, alias, args: None, .. } => {
                let called = alias.as_ref().map(|alias| fold(&alias.name)).or_else(|| last_part(name))?;
                Some((called, name))
            }
            _ => None,
        })
        .collect();
    let name = match label {
        Some(label) => named.iter().find(|(called, _)| called == label).map(|(_, name)| *name)?,
        None if select.from.len() == 1 && select.from[0].joins.is_empty() => named.first()?.1,
        None => return None,
    };
    tables.find(&table_name(name, source).ok()?).ok()
}
