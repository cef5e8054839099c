//! What fills the columns that a statement by key leaves out, as far as it goes the short way.
use datafusion::sql::sqlparser::ast::Expr;
use engine::{ColumnDefault, Identity};

use super::scope::Scope;
use super::term::Origin;
use crate::access::default_expressions::{expression_of, next_of};
use crate::point::exact::is_integer;

/// What fills the columns of a table.
pub(crate) struct Fills {
    columns: Vec<Fill>,
}

enum Fill {
    From(Origin),
    /// By the long way.
    Other,
}

impl Fills {
    /// Those of a table with these columns; only some are asked for.
    pub(crate) fn of(defaults: &[ColumnDefault], scope: &Scope<'_>, is_asked: impl Fn(usize) -> bool) -> Fills {
        let fill = |at: usize| {
            let expr = if is_asked(at) { expression_of(defaults, at) } else { Ok(None) };
            match expr {
                Ok(None) => Fill::From(Origin::Constant(engine::Value::Null)),
                Ok(Some(expr)) => origin(&expr, at, scope).map_or(Fill::Other, Fill::From),
                Err(_) => Fill::Other,
            }
        };
        Fills { columns: (0..scope.schema().columns().len()).map(fill).collect() }
    }

    /// What fills a column; `None` where that goes the long way.
    pub(crate) fn origin(&self, column: usize) -> Option<&Origin> {
        match self.columns.get(column)? {
            Fill::From(origin) => Some(origin),
            Fill::Other => None,
        }
    }
}

fn origin(expr: &Expr, at: usize, scope: &Scope<'_>) -> Option<Origin> {
    let column = scope.known(at);
    let next = || next_of(expr).filter(|_| is_integer(column.data_type));
    scope.cell(expr, column).or_else(|| next().map(|sequence| Origin::Next(sequence, column.data_type)))
}

/// Whether a column takes no value from a statement.
pub(crate) fn is_always_filled(defaults: &[ColumnDefault], column: usize) -> bool {
    defaults.iter().any(|default| default.column == column && default.identity == Some(Identity::Always))
}
