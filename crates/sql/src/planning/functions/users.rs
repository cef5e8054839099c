//! Which functions a query calls: those that a view depends on, and where in the view's text they stand.
//!
//! A view goes on calling the functions that it called when it was made, though others of their names come that fit better: its text casts
//! each argument that is not of the parameter's type as it is, as PostgreSQL shows views (`kind(1.5)` becomes
//! `kind((1.5)::double precision)`).
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArguments, ObjectName, ObjectNamePart, Query, Select, Spanned, TableFactor, Visitor,
};
use datafusion::sql::sqlparser::tokenizer::Span;
use engine::{DataType, PUBLIC_SCHEMA};

use super::{Calls, Columns, Library, Place};
use crate::interrupt::made_types;
use crate::names::tables::Tables;
use crate::syntax::identifiers::fold;
use crate::syntax::walk::Walk;

/// Where nothing is written out, any name may be one of our own.
pub(super) const NAMES_ALONE: Library<'static> =
    Library { is_aggregate: &|_| false, is_built_in: &|_| true, is_volatile: &|_| false };

/// A call in a view's query.
pub(crate) struct Found {
    /// The name by which the engine keeps the function.
    pub(crate) key: String,
    /// Where the function's name stands.
    pub(crate) name: Span,
    /// Of each argument the type that it is to be cast to, if it is not of that.
    pub(crate) casts: Vec<Option<DataType>>,
}

/// The functions that a view's query calls.
pub(crate) fn found(query: &Query, tables: &Tables, is_in_view: bool) -> Vec<Found> {
    let Some(calls) = Calls::of(tables, NAMES_ALONE) else { return Vec::new() };
    let mut users = Users { calls: &calls, columns: calls.columns(), is_in_view, found: Vec::new() };
    let _ = query.walk(&mut users);
    users.found
}

/// The names by which the engine keeps the functions that a view's query calls.
pub(crate) fn called(query: &Query, tables: &Tables) -> Vec<String> {
    found(query, tables, true).into_iter().map(|found| found.key).collect()
}

/// Whether an expression calls what may be such a function.
pub(crate) fn calls_one(expr: &Expr, tables: &Tables) -> bool {
    Calls::of(tables, NAMES_ALONE).is_some_and(|calls| calls.has_call(expr))
}

struct Users<'a> {
    calls: &'a Calls<'a>,
    columns: Columns<'a>,
    is_in_view: bool,
    found: Vec<Found>,
}

impl Visitor for Users<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        self.columns.enter_query(query);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.columns.leave_query();
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        self.columns.enter(select);
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, _: &Select) -> ControlFlow<()> {
        self.columns.leave();
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if let Expr::Function(function) = expr
            && let FunctionArguments::List(list) = &function.args
        {
            self.look(&function.name, &list.args);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        match factor {
            TableFactor::Table { name, args: Some(args), .. } => self.look(name, &args.args),
            TableFactor::Function { name, args, .. } => self.look(name, args),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

impl Users<'_> {
    fn look(&mut self, name: &ObjectName, args: &[FunctionArg]) {
        let place = Place { columns: &self.columns, parameters: &[], is_in_view: self.is_in_view };
        // A call that means none any more is told where the view is read.
        if let Ok(Some(called)) = self.calls.find(name, args, place) {
            self.found.push(Found { key: called.key(), name: name.span(), casts: called.casts() });
        }
    }
}

/// The calls of functions that the search path finds in another schema than `public`: that schema, and where the name stands.
pub(crate) fn called_by_path(query: &Query, tables: &Tables) -> Vec<(String, Span)> {
    let functions = made_types::functions();
    if tables.path().is_plain() || functions.is_empty() {
        return Vec::new();
    }
    let schema_of = |name: &ObjectName| -> Option<(String, Span)> {
        let [ObjectNamePart::Identifier(own)] = &name.0[..] else { return None };
        let local = fold(own);
        let has =
            |schema: &String| functions.iter().any(|function| function.name == local && function.schema == *schema);
        let found = tables.path().schemas(tables).into_iter().find(has)?;
        (found != PUBLIC_SCHEMA).then_some((found, own.span))
    };
    let mut found = Placed { schema_of: &schema_of, found: Vec::new() };
    let _ = query.walk(&mut found);
    found.found
}

struct Placed<'a> {
    schema_of: &'a dyn Fn(&ObjectName) -> Option<(String, Span)>,
    found: Vec<(String, Span)>,
}

impl Visitor for Placed<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if let Expr::Function(function) = expr {
            self.found.extend((self.schema_of)(&function.name));
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        if let TableFactor::Table { name, args: Some(_), .. } | TableFactor::Function { name, .. } = factor {
            self.found.extend((self.schema_of)(name));
        }
        ControlFlow::Continue(())
    }
}
