//! Rows compared with those of a subquery: `(a, b) IN (SELECT c, d ...)`, `(a, b) < ANY (SELECT c, d ...)`, and `(a, b) =
//! (SELECT c, d ...)`; and values by operators that the planner does not know there: `a LIKE ANY (SELECT ...)`.
//!
//! The planner knows subqueries of one column only. So the subquery gets column names that no statement can spell, and the
//! comparison goes into a query over it: as a condition of its own `IN` is `EXISTS (... WHERE a = c AND b = d)`; elsewhere,
//! where NULL is not as good as false, an aggregate tells whether a row is equal, and whether it is not known of one.
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Ident, Query, Select, SelectItem, SetExpr, Statement, TableAlias, TableAliasColumnDef,
    TableFactor, VisitorMut,
};

use super::periods;
use super::row_values::{compared, compared_values, row};
use crate::error::{Result, SqlError};
use crate::syntax::template::template;
use crate::syntax::visit::replace;
use crate::syntax::walk::WalkMut;

/// Whether the comparison holds for a row, and whether it is not known of one where it holds for none.
const ANY: &str =
    "SELECT (SELECT CASE WHEN bool_or(p) THEN true WHEN NOT bool_or(p IS NULL) IS TRUE THEN false END FROM s)";
/// Whether it fails for none.
const ALL: &str =
    "SELECT (SELECT CASE WHEN bool_or(NOT (p)) THEN false WHEN NOT bool_or(p IS NULL) IS TRUE THEN true END FROM s)";

/// Rewrites every such comparison of a statement.
pub(crate) fn spell_out(statement: &mut Statement) -> Result<()> {
    let of_select = |select: &mut Select| select.selection.as_mut().map_or(Ok(()), conditions);
    match statement.walk_mut(&mut Selects(of_select)) {
        ControlFlow::Continue(()) => {}
        ControlFlow::Break(error) => return Err(*error),
    }
    replace(statement, periods::rewritten)?;
    replace(statement, rewritten)
}

struct Selects<F>(F);

impl<F: FnMut(&mut Select) -> Result<()>> VisitorMut for Selects<F> {
    type Break = Box<SqlError>;

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Self::Break> {
        match (self.0)(select) {
            Ok(()) => ControlFlow::Continue(()),
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
            if let Some((Operand::Row(items), BinaryOperator::Eq, subquery, false)) = quantified(other) {
                *other = over(subquery, items.len(), "SELECT EXISTS (SELECT 1 FROM s WHERE p)", &|columns| {
                    compared(&items, &BinaryOperator::Eq, &columns.iter().collect::<Vec<_>>())
                })?;
            }
            Ok(())
        }
    }
}

fn rewritten(expr: &Expr) -> Result<Option<Expr>> {
    let (operand, op, subquery, text) = match quantified(expr) {
        Some((operand, op, subquery, false)) => (operand, op, subquery, ANY),
        Some((operand, op, subquery, true)) => (operand, op, subquery, ALL),
        None => {
            let Expr::BinaryOp { left, op, right } = expr else { return Ok(None) };
            let (items, op, subquery) = match (row(left), subquery_of(right), subquery_of(left), row(right)) {
                (Some(items), Some(subquery), ..) => (items, op.clone(), subquery),
                (.., Some(subquery), Some(items)) => (items, mirrored(op), subquery),
                _ => return Ok(None),
            };
            (Operand::Row(items), op, subquery, "SELECT (SELECT p FROM s)")
        }
    };
    let width = match &operand {
        Operand::Row(items) => items.len(),
        Operand::Value(_) => 1,
    };
    let comparison = |columns: &[Expr]| match &operand {
        Operand::Row(items) => compared(items, &op, &columns.iter().collect::<Vec<_>>()),
        Operand::Value(value) => Ok(columns.first().and_then(|c| compared_values((*value).clone(), &op, c.clone()))),
    };
    over(subquery, width, text, &comparison).map(Some)
}

/// What is compared with the rows of a subquery.
enum Operand<'e> {
    Row(Vec<&'e Expr>),
    Value(&'e Expr),
}

/// The parts of `(a, b) IN (SELECT ...)`, of `(a, b) op ANY (SELECT ...)`, of `a LIKE ANY (SELECT ...)` and of their like, and
/// whether all rows are meant.
fn quantified(expr: &Expr) -> Option<(Operand<'_>, BinaryOperator, &Query, bool)> {
    match expr {
        Expr::InSubquery { expr, subquery, negated } => {
            let op = if *negated { BinaryOperator::NotEq } else { BinaryOperator::Eq };
            Some((Operand::Row(row(expr)?), op, subquery, *negated))
        }
        Expr::AnyOp { left, compare_op, right, .. } => {
            Some((operand(left, compare_op)?, compare_op.clone(), subquery_of(right)?, false))
        }
        Expr::AllOp { left, compare_op, right } => {
            Some((operand(left, compare_op)?, compare_op.clone(), subquery_of(right)?, true))
        }
        _ => None,
    }
}

/// What stands before `ANY`, if the planner knows no such comparison.
fn operand<'e>(left: &'e Expr, op: &BinaryOperator) -> Option<Operand<'e>> {
    match op {
        BinaryOperator::Eq
        | BinaryOperator::NotEq
        | BinaryOperator::Lt
        | BinaryOperator::LtEq
        | BinaryOperator::Gt
        | BinaryOperator::GtEq => row(left).map(Operand::Row),
        _ => Some(Operand::Value(left)),
    }
}

/// The operator with its sides changed.
fn mirrored(op: &BinaryOperator) -> BinaryOperator {
    match op {
        BinaryOperator::Lt => BinaryOperator::Gt,
        BinaryOperator::LtEq => BinaryOperator::GtEq,
        BinaryOperator::Gt => BinaryOperator::Lt,
        BinaryOperator::GtEq => BinaryOperator::LtEq,
        other => other.clone(),
    }
}

fn subquery_of(expr: &Expr) -> Option<&Query> {
    match expr {
        Expr::Subquery(query) => Some(query),
        Expr::Nested(inner) => subquery_of(inner),
        _ => None,
    }
}

/// A comparison with the columns of a subquery.
type Comparison<'c> = dyn Fn(&[Expr]) -> Result<Option<Expr>> + 'c;

/// The expression that a template selects, with the subquery for its `s` and the comparison for its `p`.
fn over(subquery: &Query, width: usize, text: &str, comparison: &Comparison<'_>) -> Result<Expr> {
    let quoted = |name: &str| Ident::with_quote('"', name);
    let columns: Vec<Ident> = (0..width).map(|at| quoted(&format!("\0item {at}"))).collect();
    let named: Vec<Expr> =
        columns.iter().map(|column| Expr::CompoundIdentifier(vec![quoted(ROW), column.clone()])).collect();
    let comparison = comparison(&named)?;
    let comparison = comparison.ok_or_else(|| SqlError::unsupported("this comparison with the rows of a subquery"))?;
    let columns = columns.into_iter().map(|name| TableAliasColumnDef { name, data_type: None }).collect();
    let alias = TableAlias { explicit: true, name: quoted(ROW), columns, at: None };
    let source =
        TableFactor::Derived { lateral: false, subquery: Box::new(subquery.clone()), alias: Some(alias), sample: None };
    let mut query = template(text)?;
    let _ = query.walk_mut(&mut Fill { source, comparison });
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
