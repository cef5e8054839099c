//! Output columns may have the same name, as in `SELECT 1, 1` or `SELECT *, id`; the planner wants each once.
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Ident, ObjectNamePart, Select, SelectItem, Statement, TableAliasColumnDef, TableFactor, VisitMut, VisitorMut,
};

use super::cast_names::without_casts;
use crate::functions::has_columns;
use crate::headings::heading;
use crate::names::fold;

/// Gives hidden names to output columns that repeat another, in every part of a statement.
pub(crate) fn rename(statement: &mut Statement) {
    let _ = statement.visit(&mut Rename);
}

/// The name that a user sees for a column: of a hidden name what stands after its mark.
pub(crate) fn shown(name: &str) -> &str {
    match name.strip_prefix('\0').and_then(|rest| rest.split_once('\0')) {
        Some((_, shown)) => shown,
        None => name,
    }
}

struct Rename;

impl VisitorMut for Rename {
    type Break = ();

    /// The alias of a function in FROM names its column too, as in `generate_series(1, 3) AS i`.
    fn pre_visit_table_factor(&mut self, table: &mut TableFactor) -> ControlFlow<()> {
        if let TableFactor::Table { name, alias: Some(alias), args: Some(_), .. } = table
            && alias.columns.is_empty()
            && !name.0.last().and_then(ObjectNamePart::as_ident).is_some_and(|name| has_columns(&fold(name)))
        {
            let name = alias.name.clone();
            alias.columns.push(TableAliasColumnDef { name, data_type: None });
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        let is_wildcard =
            |item: &SelectItem| matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..));
        let has_wildcard = select.projection.iter().any(is_wildcard);
        let mut seen: Vec<String> = Vec::new();
        for (at, item) in select.projection.iter_mut().enumerate() {
            let (shown, name, expr) = match item {
                SelectItem::UnnamedExpr(expr) => {
                    let heading = heading(expr);
                    let name = heading.clone().unwrap_or_else(|| without_casts(expr));
                    (heading.unwrap_or_else(|| "?column?".to_owned()), name, expr)
                }
                SelectItem::ExprWithAlias { expr, alias } => (fold(alias), fold(alias), expr),
                _ => continue,
            };
            let may_repeat_wildcard = has_wildcard && matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_));
            let repeats = seen.contains(&name) || (matches!(expr, Expr::Subquery(_)) && !seen.is_empty());
            seen.push(name);
            if repeats || may_repeat_wildcard {
                let alias = Ident::with_quote('"', format!("\0{at}\0{shown}"));
                *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias };
            }
        }
        ControlFlow::Continue(())
    }
}
