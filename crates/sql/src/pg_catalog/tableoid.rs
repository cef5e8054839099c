//! `tableoid` of what is read from the catalog: the number of the relation that a row is of, by which descriptions are found.
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{Expr, ObjectName, Select, TableFactor, Value};

use super::oids::catalog_oid;
use crate::names::fold;
use crate::syntax::visit::own;

/// The column that every table of PostgreSQL has.
const TABLEOID: &str = "tableoid";

/// Puts the number in the place of the column, where it is that of a relation of the catalog; `name_of` gives the name of one.
pub(super) fn spell_out(select: &mut Select, name_of: fn(&ObjectName) -> Option<String>) {
    let factors = select
        .from
        .iter()
        .flat_map(|table| std::iter::once(&table.relation).chain(table.joins.iter().map(|join| &join.relation)));
    let known = |factor: &TableFactor| {
        let TableFactor::Table { name, alias, args: None, .. } = factor else { return None };
        let relation = name_of(name)?;
        let oid = catalog_oid(&relation)?;
        Some((alias.as_ref().map_or(relation, |alias| fold(&alias.name)), oid))
    };
    let known: Vec<(String, i64)> = factors.filter_map(known).collect();
    if known.is_empty() {
        return;
    }
    let _ = own(select, |expr| {
        if let Expr::CompoundIdentifier(parts) = expr
            && let [label, column] = &parts[..]
            && fold(column) == TABLEOID
            && let Some((_, oid)) = known.iter().find(|(known, _)| *known == fold(label))
        {
            *expr = Expr::value(Value::Number(oid.to_string(), false));
        }
        ControlFlow::<()>::Continue(())
    });
}
