//! Queries that can't lock rows, refused in PostgreSQL's words.
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{Expr, Function, GroupByExpr, Query, Select, SetExpr, Visitor};

use crate::error::{Result, SqlError};
use crate::parsing::lock_clauses::LockClause;
use crate::planning::planner::Planner;
use crate::syntax::identifiers::last_part;
use crate::syntax::walk::Walk;

/// An error for what a clause can't do.
pub(super) fn refuse(clause: &LockClause, what: &str) -> SqlError {
    SqlError::new("0A000", format!("{} {what}", clause.strength)).at(clause.position)
}

/// The one `SELECT` that gives the rows of its tables, or an error.
pub(super) fn select<'q>(query: &'q Query, clause: &LockClause, planner: &Planner) -> Result<&'q Select> {
    let select = match query.body.as_ref() {
        SetExpr::Select(select) => select,
        SetExpr::SetOperation { .. } => {
            return Err(refuse(clause, "is not allowed with UNION/INTERSECT/EXCEPT"));
        }
        SetExpr::Values(_) => return Err(refuse(clause, "cannot be applied to VALUES")),
        _ => return Err(refuse(clause, "is not supported in this form of a query")),
    };
    if select.distinct.is_some() {
        return Err(refuse(clause, "is not allowed with DISTINCT clause"));
    }
    match &select.group_by {
        GroupByExpr::Expressions(exprs, modifiers) if exprs.is_empty() && modifiers.is_empty() => {}
        _ => return Err(refuse(clause, "is not allowed with GROUP BY clause")),
    }
    if select.having.is_some() {
        return Err(refuse(clause, "is not allowed with HAVING clause"));
    }
    match query.walk(&mut Functions { planner, depth: 0 }) {
        ControlFlow::Continue(()) => Ok(select),
        ControlFlow::Break(what) => Err(refuse(clause, what)),
    }
}

/// Looks for functions of many rows, in the query and not in its subqueries.
struct Functions<'a> {
    planner: &'a Planner,
    depth: usize,
}

impl Visitor for Functions<'_> {
    type Break = &'static str;

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<Self::Break> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<Self::Break> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Self::Break> {
        match expr {
            Expr::Function(function) if self.depth == 1 => self.function(function),
            _ => ControlFlow::Continue(()),
        }
    }
}

impl Functions<'_> {
    fn function(&self, function: &Function) -> ControlFlow<&'static str> {
        if function.over.is_some() {
            return ControlFlow::Break("is not allowed with window functions");
        }
        let name = last_part(&function.name);
        match name.is_some_and(|name| self.planner.is_aggregate(&name)) {
            true => ControlFlow::Break("is not allowed with aggregate functions"),
            false => ControlFlow::Continue(()),
        }
    }
}
