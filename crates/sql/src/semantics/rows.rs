//! Rows compared with those of a subquery: `(a, b) IN (SELECT c, d ...)`, and `(a, b) = (SELECT c, d ...)`.
//!
//! The planner knows subqueries of one column only. So the subquery gets column names that no statement can spell, and the
//! comparison goes into a query over it: as a condition of its own `IN` is `EXISTS (... WHERE a = c AND b = d)`; elsewhere,
//! where NULL is not as good as false, an aggregate tells whether a row is equal, and whether it is not known of one.
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Ident, Query, Select, SelectItem, SetExpr, Statement, TableAlias, TableAliasColumnDef,
    TableFactor, VisitMut, VisitorMut,
};

use crate::error::{Result, SqlError};
use crate::template::template;

/// Rewrites every such comparison of a statement.
pub(crate) fn spell_out(statement: &mut Statement) -> Result<()> {
    match statement.visit(&mut Rows) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(*error),
    }
}

struct Rows;

impl VisitorMut for Rows {
    type Break = Box<SqlError>;

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Self::Break> {
        match select.selection.as_mut().map_or(Ok(()), conditions) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(Box::new(error)),
        }
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Self::Break> {
        match rewritten(expr) {
            Ok(Some(other)) => {
                *expr = other;
                ControlFlow::Continue(())
            }
            Ok(None) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(Box::new(error)),
        }
    }
}

/// Rewrites what stands in a condition by itself or under `AND`.
fn conditions(expr: &mut Expr) -> Result<()> {
    match expr {
        Expr::Nested(inner) => conditions(inner),
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
            conditions(left)?;
            conditions(right)
        }
        other => {
            if let Some((items, subquery, false)) = membership(other) {
                *other = over(subquery, items, "SELECT EXISTS (SELECT 1 FROM s WHERE p)")?;
            }
            Ok(())
        }
    }
}

fn rewritten(expr: &Expr) -> Result<Option<Expr>> {
    if let Some((items, subquery, negated)) = membership(expr) {
        let text = match negated {
            false => {
                "SELECT (SELECT CASE WHEN bool_or(p) THEN true WHEN NOT bool_or(p IS NULL) IS TRUE THEN false END FROM s)"
            }
            true => {
                "SELECT (SELECT CASE WHEN bool_or(p) THEN false WHEN NOT bool_or(p IS NULL) IS TRUE THEN true END FROM s)"
            }
        };
        return over(subquery, items, text).map(Some);
    }
    let Expr::BinaryOp { left, op, right } = expr else { return Ok(None) };
    let (items, subquery) = match (row(left), subquery_of(right), subquery_of(left), row(right)) {
        (Some(items), Some(subquery), ..) | (.., Some(subquery), Some(items)) => (items, subquery),
        _ => return Ok(None),
    };
    match op {
        BinaryOperator::Eq => over(subquery, items, "SELECT (SELECT p FROM s)").map(Some),
        BinaryOperator::NotEq => over(subquery, items, "SELECT (SELECT NOT (p) FROM s)").map(Some),
        _ => Ok(None),
    }
}

/// The items and the subquery of `(a, b) IN (SELECT ...)` and of its other spellings, and whether it is negated.
fn membership(expr: &Expr) -> Option<(&[Expr], &Query, bool)> {
    match expr {
        Expr::InSubquery { expr, subquery, negated } => Some((row(expr)?, subquery, *negated)),
        Expr::AnyOp { left, compare_op: BinaryOperator::Eq, right, .. } => {
            Some((row(left)?, subquery_of(right)?, false))
        }
        Expr::AllOp { left, compare_op: BinaryOperator::NotEq, right } => Some((row(left)?, subquery_of(right)?, true)),
        _ => None,
    }
}

fn row(expr: &Expr) -> Option<&[Expr]> {
    match expr {
        Expr::Tuple(items) => Some(items),
        _ => None,
    }
}

fn subquery_of(expr: &Expr) -> Option<&Query> {
    match expr {
        Expr::Subquery(query) => Some(query),
        Expr::Nested(inner) => subquery_of(inner),
        _ => None,
    }
}

/// The expression that a template selects, with the subquery for its `s` and the comparison for its `p`.
fn over(subquery: &Query, items: &[Expr], text: &str) -> Result<Expr> {
    let quoted = |name: &str| Ident::with_quote('"', name);
    let columns: Vec<Ident> = (0..items.len()).map(|at| quoted(&format!("\0item {at}"))).collect();
    let equal = |(item, column): (&Expr, &Ident)| Expr::BinaryOp {
        left: Box::new(Expr::Nested(Box::new(item.clone()))),
        op: BinaryOperator::Eq,
        right: Box::new(Expr::CompoundIdentifier(vec![quoted(ROW), column.clone()])),
    };
    let and = |left: Expr, right: Expr| Expr::BinaryOp {
        left: Box::new(left),
        op: BinaryOperator::And,
        right: Box::new(right),
    };
    let comparison = items.iter().zip(&columns).map(equal).reduce(and);
    let comparison = comparison.ok_or_else(|| SqlError::syntax("a row without columns"))?;
    let columns = columns.into_iter().map(|name| TableAliasColumnDef { name, data_type: None }).collect();
    let alias = TableAlias { explicit: true, name: quoted(ROW), columns, at: None };
    let source =
        TableFactor::Derived { lateral: false, subquery: Box::new(subquery.clone()), alias: Some(alias), sample: None };
    let mut query = template(text)?;
    let _ = query.visit(&mut Fill { source, comparison });
    match *query.body {
        SetExpr::Select(mut select) => match select.projection.pop() {
            Some(SelectItem::UnnamedExpr(expr)) => Ok(expr),
            _ => Err(SqlError::new("XX000", "the template has no expression")),
        },
        _ => Err(SqlError::new("XX000", "the template is no SELECT")),
    }
}

/// The name of the subquery; no statement can spell it.
const ROW: &str = "\0row";

/// Puts the parts into a template.
struct Fill {
    source: TableFactor,
    comparison: Expr,
}

impl VisitorMut for Fill {
    type Break = ();

    fn post_visit_table_factor(&mut self, table: &mut TableFactor) -> ControlFlow<()> {
        if matches!(table, TableFactor::Table { .. }) {
            *table = self.source.clone();
            return ControlFlow::Continue(());
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if matches!(expr, Expr::Identifier(ident) if ident.value == "p") {
            *expr = Expr::Nested(Box::new(self.comparison.clone()));
        }
        ControlFlow::Continue(())
    }
}
