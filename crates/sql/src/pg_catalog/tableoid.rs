//! Columns that every table of PostgreSQL has and no list of columns names: `tableoid`, the number of the relation that a row is of, and
//! `xmax`, which is 0 for a row that nobody changes.
use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{Expr, Ident, ObjectName, Select, SelectItem, TableFactor, Value};

use super::oids::catalog_oid;
use crate::names::origin::oid_of;
use crate::names::tables::Tables;
use crate::names::{fold, table_name};
use crate::syntax::identifiers::last_part;
use crate::syntax::source::Source;
use crate::syntax::visit::own;
use crate::syntax::walk::walk_expressions;

const TABLEOID: &str = "tableoid";
const XMAX: &str = "xmax";

/// A table in FROM.
struct Known {
    label: String,
    oid: i64,
    /// Whether it has columns of those names itself.
    has: [bool; 2],
}

/// Puts the values in the place of the columns; `name_of` gives the name of a relation of the catalog, and `queries` are the names of
/// those that stand in WITH.
pub(super) fn spell_out(
    select: &mut Select,
    name_of: fn(&ObjectName) -> Option<String>,
    (tables, source): (&Tables, &Source),
    queries: &HashSet<String>,
) {
    let found = walk_expressions(&*select, |expr| match name_of_column(expr) {
        Some(_) => ControlFlow::Break(()),
        None => ControlFlow::Continue(()),
    });
    if found.is_continue() {
        return;
    }
    let factors = select
        .from
        .iter()
        .flat_map(|table| std::iter::once(&table.relation).chain(table.joins.iter().map(|join| &join.relation)));
    let known: Vec<Option<Known>> =
        factors.map(|factor| table_of(factor, name_of, (tables, source), queries)).collect();
    if known.iter().all(Option::is_none) {
        return;
    }
    let value = |expr: &Expr| value_of(expr, &known);
    for item in &mut select.projection {
        if let SelectItem::UnnamedExpr(expr) = item
            && let Some((name, value)) = value(expr)
        {
            *item = SelectItem::ExprWithAlias { expr: value, alias: Ident::new(name) };
        }
    }
    let _ = own(select, |expr| {
        if let Some((_, value)) = value(expr) {
            *expr = value;
        }
        ControlFlow::<()>::Continue(())
    });
}

fn table_of(
    factor: &TableFactor,
    name_of: fn(&ObjectName) -> Option<String>,
    (tables, source): (&Tables, &Source),
    queries: &HashSet<String>,
) -> Option<Known> {
    let TableFactor::Table { name, alias, args: None, version: None, .. } = factor else { return None };
    let label = alias.as_ref().map(|alias| fold(&alias.name));
    if let Some(oid) = name_of(name).and_then(|relation| catalog_oid(&relation)) {
        return Some(Known { label: label.or_else(|| last_part(name))?, oid, has: [false; 2] });
    }
    let local = last_part(name)?;
    if name.0.len() == 1 && queries.contains(&local) {
        return None;
    }
    let table = tables.find(&table_name(name, source).ok()?).ok().filter(|table| table.view().is_none())?;
    let has = [TABLEOID, XMAX].map(|column| table.schema().position(column).is_some());
    Some(Known { label: label.unwrap_or(local), oid: oid_of(&table), has })
}

/// The place of such a column among them, and what its table is called.
fn name_of_column(expr: &Expr) -> Option<(Option<String>, usize)> {
    let (label, column) = match expr {
        Expr::Identifier(column) => (None, column),
        Expr::CompoundIdentifier(parts) => match &parts[..] {
            [label, column] => (Some(fold(label)), column),
            _ => return None,
        },
        _ => return None,
    };
    let column = fold(column);
    Some((label, [TABLEOID, XMAX].iter().position(|name| *name == column)?))
}

/// The name and the value of such a column.
fn value_of(expr: &Expr, known: &[Option<Known>]) -> Option<(&'static str, Expr)> {
    let (label, at) = name_of_column(expr)?;
    let known = match &label {
        Some(label) => known.iter().flatten().find(|known| known.label == *label)?,
        // Among several tables the name alone would not tell which is meant.
        None => match known {
            [Some(known)] => known,
            _ => return None,
        },
    };
    let value = if at == 0 { known.oid } else { 0 };
    (!known.has[at]).then(|| ([TABLEOID, XMAX][at], Expr::value(Value::Number(value.to_string(), false))))
}
