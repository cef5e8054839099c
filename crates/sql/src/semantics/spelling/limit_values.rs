//! `LIMIT` and `OFFSET` by a subquery or a function: the number is worked out before the statement is planned.
//!
//! The planner takes what it can work out without a table. Anything else becomes a query of its own over what the statement
//! sees, with the statement's `WITH` where the clause belongs to the query that it stands before; its one value takes the place
//! of the expression. That happens once, as the clause may name no column of a row.
//!
//! A literal without a type is read as a `bigint`, as drivers write parameters there. A value of another type is rounded where it
//! is a number, and refused where it is not.
use std::ops::ControlFlow;

use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch};
use arrow_cast::cast;
use arrow_schema::DataType;
use datafusion::sql::sqlparser::ast::{Expr, Query, Spanned, Statement, Value, VisitorMut, With};

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
        for (count, name) in limit_and_offset(query.limit_clause.as_mut()).into_iter().zip(["LIMIT", "OFFSET"]) {
            let Some(count) = count else { continue };
            if self.works_out(count)
                && let Err(error) = self.replace(count, name, query.with.as_ref())
            {
                return ControlFlow::Break(Box::new(error.at(self.source.start(count.span()))));
            }
        }
        ControlFlow::Continue(())
    }
}

impl Limits<'_> {
    /// Whether an expression has a query or a function, or is of another type than the planner takes, and has no parameter: the
    /// value of that is not known while a statement is described.
    fn works_out(&self, count: &mut Expr) -> bool {
        let is_more = is_of_another_type(count);
        let mut parts = Parts { is_aggregate: self.is_aggregate, queries: 0, is_more, is_refused: false };
        let _ = count.walk_mut(&mut parts);
        parts.is_more && !parts.is_refused
    }

    fn replace(&self, count: &mut Expr, name: &str, with: Option<&With>) -> Result<()> {
        let mut query = template(if is_untyped(count) { OF_LITERAL } else { OF_ANY })?;
        query.with = with.cloned();
        let mut slot = Slot { count: Some(count.clone()) };
        let _ = query.walk_mut(&mut slot);
        let batches = (self.run)(Statement::Query(query), self.view.clone())?;
        let Some(row) = batches.iter().find(|batch| batch.num_rows() > 0) else {
            *count = Expr::value(Value::Null);
            return Ok(());
        };
        let found = text_of(row, 1).unwrap_or_default();
        if !NUMBERS.contains(&found.as_str()) {
            return Err(SqlError::mismatch(format!("argument of {name} must be type bigint, not type {found}")));
        }
        let value = text_of(row, 0).map(|number| rounded(&number)).transpose()?;
        *count = Expr::value(value.map_or(Value::Null, |number| Value::Number(number.to_string(), false)));
        Ok(())
    }
}

/// Reads a literal without a type.
const OF_LITERAL: &str = "SELECT CAST(CAST(NULL AS bigint) AS text), 'bigint'";

/// Tells any value and its type.
const OF_ANY: &str = "SELECT CAST(v AS text), CAST(pg_typeof(v) AS text) FROM (SELECT NULL) AS counts(v)";

/// The types of the values that are taken.
const NUMBERS: [&str; 6] = ["smallint", "integer", "bigint", "numeric", "real", "double precision"];

/// Whether an expression is a text or a number with a fraction, or a cast.
fn is_of_another_type(count: &Expr) -> bool {
    match count {
        Expr::Nested(inner) | Expr::UnaryOp { expr: inner, .. } => is_of_another_type(inner),
        Expr::Cast { .. } | Expr::TypedString(_) => true,
        Expr::Value(value) => match &value.value {
            Value::Number(digits, _) => digits.parse::<i64>().is_err(),
            Value::Null | Value::Placeholder(_) => false,
            _ => true,
        },
        _ => false,
    }
}

fn is_untyped(count: &Expr) -> bool {
    match count {
        Expr::Nested(inner) => is_untyped(inner),
        Expr::Value(value) => value.value.clone().into_string().is_some(),
        _ => false,
    }
}

/// A text of the first row.
fn text_of(row: &RecordBatch, column: usize) -> Option<String> {
    let texts = cast(row.column(column), &DataType::Utf8).ok()?;
    let texts = texts.as_string_opt::<i32>()?;
    (!texts.is_null(0)).then(|| texts.value(0).to_string())
}

/// A number as a `bigint`.
fn rounded(number: &str) -> Result<i64> {
    if let Ok(whole) = number.parse() {
        return Ok(whole);
    }
    let near = number.parse::<f64>().unwrap_or(f64::NAN).round();
    if near.abs() < 9.2e18 { Ok(near as i64) } else { Err(SqlError::new("22003", "bigint out of range")) }
}

/// Puts an expression into the place of the `NULL` of a template.
struct Slot {
    count: Option<Expr>,
}

impl VisitorMut for Slot {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if matches!(expr, Expr::Value(value) if value.value == Value::Null)
            && let Some(count) = self.count.take()
        {
            *expr = count;
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
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
