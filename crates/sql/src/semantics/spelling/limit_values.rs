//! `LIMIT` and `OFFSET` by a subquery or a function: the number is worked out before the statement is planned.
//!
//! The planner takes what it can work out without a table. Anything else becomes a query of its own over what the statement
//! sees, with the statement's `WITH` where the clause belongs to the query that it stands before; its one value takes the place
//! of the expression. That happens once, as the clause may name no column of a row.
use std::ops::ControlFlow;

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use datafusion::sql::sqlparser::ast::{Expr, Query, SelectItem, SetExpr, Spanned, Statement, Value, VisitorMut, With};

use crate::error::{Result, SqlError};
use crate::state::past::Run;
use crate::state::view::View;
use crate::syntax::identifiers::last_part;
use crate::syntax::source::Source;
use crate::syntax::template::template;
use crate::syntax::visit::limit_and_offset;
use crate::syntax::walk::WalkMut;

/// Puts numbers in the place of such expressions; `run` works them out. `is_aggregate` knows the names of functions that have no
/// place there.
pub(crate) fn work_out(
    statement: &mut Statement,
    view: &View,
    source: &Source,
    is_aggregate: &dyn Fn(&str) -> bool,
    run: &Run<'_>,
) -> Result<()> {
    match statement.walk_mut(&mut Limits { view, source, is_aggregate, run }) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(*error),
    }
}

struct Limits<'a> {
    view: &'a View,
    source: &'a Source<'a>,
    is_aggregate: &'a dyn Fn(&str) -> bool,
    run: &'a Run<'a>,
}

impl VisitorMut for Limits<'_> {
    type Break = Box<SqlError>;

    /// Inner queries come first, those of a `WITH` included.
    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<Self::Break> {
        for count in limit_and_offset(query.limit_clause.as_mut()).into_iter().flatten() {
            if self.works_out(count)
                && let Err(error) = self.replace(count, query.with.as_ref())
            {
                return ControlFlow::Break(Box::new(error.at(self.source.start(count.span()))));
            }
        }
        ControlFlow::Continue(())
    }
}

impl Limits<'_> {
    /// Whether an expression has a query or a function, and no parameter: the value of that is not known while a statement is
    /// described.
    fn works_out(&self, count: &mut Expr) -> bool {
        let mut parts = Parts { is_aggregate: self.is_aggregate, queries: 0, is_more: false, is_refused: false };
        let _ = count.walk_mut(&mut parts);
        parts.is_more && !parts.is_refused
    }

    fn replace(&self, count: &mut Expr, with: Option<&With>) -> Result<()> {
        let mut query = template("SELECT CAST(1 AS bigint)")?;
        query.with = with.cloned();
        if let SetExpr::Select(select) = query.body.as_mut()
            && let [SelectItem::UnnamedExpr(Expr::Cast { expr, .. })] = &mut select.projection[..]
        {
            **expr = count.clone();
        }
        let batches = (self.run)(Statement::Query(query), self.view.clone())?;
        let value = batches.iter().find_map(|batch| {
            let numbers = batch.column(0).as_primitive_opt::<Int64Type>()?;
            (!numbers.is_empty() && !numbers.is_null(0)).then(|| numbers.value(0))
        });
        *count = Expr::value(value.map_or(Value::Null, |number| Value::Number(number.to_string(), false)));
        Ok(())
    }
}

struct Parts<'a> {
    is_aggregate: &'a dyn Fn(&str) -> bool,
    queries: usize,
    is_more: bool,
    is_refused: bool,
}

impl VisitorMut for Parts<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.queries += 1;
        self.is_more = true;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.queries -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        match expr {
            Expr::Function(call) => {
                self.is_more = true;
                let name = last_part(&call.name).unwrap_or_default();
                self.is_refused |= self.queries == 0 && (call.over.is_some() || (self.is_aggregate)(&name));
            }
            Expr::Value(value) => self.is_refused |= matches!(value.value, Value::Placeholder(_)),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}
