//! An aggregate of distinct values that is ordered by one of its arguments, as `string_agg(DISTINCT x, ',' ORDER BY x)`.
//!
//! PostgreSQL allows no other order there. Whether an expression is the argument shows best in what was written: what
//! rewrites a statement gives the two copies of a subquery names of their own, and other types to the two copies of a
//! constant. So an order by an argument becomes one by its number, in a text that no statement can spell.
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    DuplicateTreatment, Expr, FunctionArg, FunctionArgExpr, FunctionArgumentClause, FunctionArguments, Spanned,
    Statement, Value, VisitorMut,
};

use crate::error::{Result, SqlError};
use crate::syntax::source::Source;
use crate::syntax::walk::WalkMut;

/// How the text begins that stands for an argument.
const MARK: &str = "\0argument\0";

/// Writes numbers for the arguments in the orders of a statement's aggregates; an error for an order by a literal without a type.
pub(crate) fn number(statement: &mut Statement, source: &Source) -> Result<()> {
    match statement.walk_mut(&mut Orders { source }) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(()),
    }
}

/// The error for an order by anything but an argument.
pub(crate) fn not_an_argument() -> SqlError {
    SqlError::new("42P10", "in an aggregate with DISTINCT, ORDER BY expressions must appear in argument list")
}

/// Which argument a text stands for, counted from 0.
pub(crate) fn argument(text: &str) -> Option<usize> {
    text.strip_prefix(MARK)?.parse().ok()
}

struct Orders<'a> {
    source: &'a Source<'a>,
}

impl VisitorMut for Orders<'_> {
    type Break = SqlError;

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<SqlError> {
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
                if !has_type(&key.expr) {
                    return ControlFlow::Break(not_an_argument().at(self.source.start(key.expr.span())));
                }
                if let Some(at) = list.args.iter().position(is_key) {
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
    use Value::{Null, SingleQuotedString};
    !matches!(bare(expr), Expr::Value(value) if matches!(&value.value, Null | SingleQuotedString(_)))
}
