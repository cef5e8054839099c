//! When the functions that a `RETURNING` calls read their tables: before its statement, or after it.
//!
//! PostgreSQL gives a function that is STABLE or IMMUTABLE the snapshot of the statement that calls it, and a VOLATILE one what the
//! statement has done so far.
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{Expr, ObjectName, Select, Visitor};
use engine::FunctionVolatility;

use super::body;
use crate::interrupt::made_types::{self, MadeFunction};
use crate::parsing::parse::{Places, parse_query};
use crate::syntax::identifiers::last_part;
use crate::syntax::walk::Walk;

/// Which of the two there is.
#[derive(Default)]
pub(crate) struct Reading {
    pub(crate) before: bool,
    pub(crate) after: bool,
}

impl Reading {
    /// Adds what a call of a function of this name reads. Of functions in SQL that share the name any may be meant.
    pub(crate) fn add(&mut self, name: &ObjectName) {
        let Some(name) = last_part(name) else { return };
        let functions = made_types::functions();
        for function in functions.iter().filter(|function| function.name == name && reads(function, &functions)) {
            match function.definition.volatility {
                FunctionVolatility::Volatile => self.after = true,
                FunctionVolatility::Stable | FunctionVolatility::Immutable => self.before = true,
            }
        }
    }
}

/// Whether a function's body may read tables: it has a FROM, or calls another function in SQL.
fn reads(function: &MadeFunction, functions: &[MadeFunction]) -> bool {
    struct Reads<'a>(&'a [MadeFunction]);

    impl Visitor for Reads<'_> {
        type Break = ();

        fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
            if select.from.is_empty() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        }

        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            match expr {
                Expr::Function(function) => {
                    let name = last_part(&function.name);
                    let is_made = self.0.iter().any(|made| Some(&made.name) == name.as_ref());
                    if is_made { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                }
                _ => ControlFlow::Continue(()),
            }
        }
    }

    let last = body::statements(&function.definition).pop();
    let query = last.and_then(|last| parse_query(&last, Places::Unknown).ok());
    query.is_some_and(|query| query.walk(&mut Reads(functions)).is_break())
}
