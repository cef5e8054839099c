//! An aggregate of distinct values that is ordered by one of its arguments, as `string_agg(DISTINCT x, ',' ORDER BY x)`.
//!
//! PostgreSQL allows no other order there. Whether an expression is the argument shows best in what was written: what
//! rewrites a statement gives the two copies of a subquery names of their own, and other types to the two copies of a
//! constant. So an order by an argument becomes one by its number, in a text that no statement can spell.
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    DuplicateTreatment, Expr, FunctionArg, FunctionArgExpr, FunctionArgumentClause, FunctionArguments, Statement,
    Value, VisitorMut,
};

use crate::walk::WalkMut;

/// How the text begins that stands for an argument.
const MARK: &str = "\0argument\0";

/// Writes numbers for the arguments in the orders of a statement's aggregates.
pub(crate) fn number(statement: &mut Statement) {
    let _ = statement.walk_mut(&mut Orders);
}

/// Which argument a text stands for, counted from 0.
pub(super) fn argument(text: &str) -> Option<usize> {
    text.strip_prefix(MARK)?.parse().ok()
}

struct Orders;

impl VisitorMut for Orders {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let Expr::Function(call) = expr else { return ControlFlow::Continue(()) };
        let FunctionArguments::List(list) = &mut call.args else { return ControlFlow::Continue(()) };
        if list.duplicate_treatment != Some(DuplicateTreatment::Distinct) {
            return ControlFlow::Continue(());
        }
        for clause in &mut list.clauses {
            let FunctionArgumentClause::OrderBy(keys) = clause else { continue };
            for key in keys {
                let is_key = |arg: &FunctionArg| match arg {
                    FunctionArg::Unnamed(FunctionArgExpr::Expr(arg)) => bare(arg) == bare(&key.expr),
                    _ => false,
                };
                if has_type(&key.expr)
                    && let Some(at) = list.args.iter().position(is_key)
                {
                    key.expr = Expr::value(Value::SingleQuotedString(format!("{MARK}{at}")));
                }
            }
        }
        ControlFlow::Continue(())
    }
}

/// An expression without the parentheses around it.
fn bare(mut expr: &Expr) -> &Expr {
    while let Expr::Nested(inner) = expr {
        expr = inner;
    }
    expr
}

/// A text and NULL have the type of the argument there, and none in the order, so that PostgreSQL finds them different.
fn has_type(expr: &Expr) -> bool {
    !matches!(bare(expr), Expr::Value(value) if !matches!(value.value, Value::Number(..) | Value::Boolean(_)))
}
