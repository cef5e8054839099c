//! Calls of functions in expressions that the catalog keeps: of indexes, checks, defaults and columns that are generated.
//!
//! Such an expression is worked out where no statement is, so that it is kept with the bodies in place of the calls, as they are when it
//! is defined. That the body's functions are immutable is looked at afterwards, as in PostgreSQL.
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{Expr, FunctionArguments, VisitorMut};
use engine::{Column, DataType};

use super::build::Written;
use super::{Calls, Columns, Library, Place};
use crate::error::{Result, SqlError};
use crate::names::position;
use crate::planning::planner::plain_state;
use crate::syntax::limits;
use crate::syntax::source::Source;
use crate::syntax::walk::WalkMut;

/// How many functions may be called within one another.
const DEPTH_MAX: usize = 50;

/// An expression over these columns with bodies in place of its calls.
///
/// # Errors
/// PostgreSQL's, where a call means no function; where a body is more than an expression.
pub(crate) fn inlined(mut expr: Expr, columns: &[Column], source: &Source) -> Result<Expr> {
    let state = plain_state();
    let is_aggregate = |name: &str| state.aggregate_functions().contains_key(name);
    let is_built_in = |name: &str| state.scalar_functions().contains_key(name) || is_aggregate(name);
    // An expression that changes is refused when it is planned.
    let library = Library { is_aggregate: &is_aggregate, is_built_in: &is_built_in, is_volatile: &|_| false };
    let Some(calls) = Calls::without_tables(library) else { return Ok(expr) };
    let seen = Columns::of(columns);
    let mut inlining = Inlining { calls: &calls, columns: &seen, parameters: &[], source: Some(source), depth: 0 };
    match expr.walk_mut(&mut inlining) {
        ControlFlow::Continue(()) => Ok(expr),
        ControlFlow::Break(error) => Err(*error),
    }
}

struct Inlining<'a> {
    calls: &'a Calls<'a>,
    columns: &'a Columns<'a>,
    parameters: &'a [DataType],
    source: Option<&'a Source<'a>>,
    depth: usize,
}

impl Inlining<'_> {
    fn call(&self, expr: &Expr) -> Result<Option<Expr>> {
        let Expr::Function(function) = expr else { return Ok(None) };
        let FunctionArguments::List(list) = &function.args else { return Ok(None) };
        let place = Place { columns: self.columns, parameters: self.parameters, is_in_view: false };
        let Some(called) = self.calls.find(&function.name, &list.args, place)? else { return Ok(None) };
        let definition = &called.function.definition;
        super::check_plain(function, &called.function.name)?;
        if self.depth >= DEPTH_MAX {
            return Err(limits::too_deep("It calls too many functions within one another.".to_owned()));
        }
        let refused = || {
            let what = format!("function {} in this expression", called.function.signature());
            SqlError::unsupported(what)
                .hint("Functions whose bodies are an expression of their arguments may stand here.")
        };
        let mut query = self.calls.query_of(called.function)?;
        let types = called.function.types();
        let none = Columns::default();
        let mut within =
            Inlining { calls: self.calls, columns: &none, parameters: &types, source: None, depth: self.depth + 1 };
        if let ControlFlow::Break(error) = query.walk_mut(&mut within) {
            return Err(*error);
        }
        let data_type = called.function.value_type().filter(|_| !definition.returns_set).ok_or_else(refused)?;
        let is_strict = definition.is_strict;
        let written = Written { query, arguments: called.arguments, types, is_strict, number: 0 };
        written.alone(data_type, self.calls.library).map(Some).ok_or_else(refused)
    }
}

impl VisitorMut for Inlining<'_> {
    type Break = Box<SqlError>;

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Self::Break> {
        let at = match (&*expr, self.source) {
            (Expr::Function(function), Some(source)) => position(&function.name, source),
            _ => None,
        };
        match self.call(expr) {
            Ok(None) => {}
            Ok(Some(instead)) => *expr = instead,
            Err(error) => return ControlFlow::Break(Box::new(error.at(at))),
        }
        ControlFlow::Continue(())
    }
}
