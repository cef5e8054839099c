//! `FOR SYSTEM_TIME AS OF`: a table as it was, by the clock or by the number of a commit.
//!
//! Each such table reference is worked out before the statement is planned: its expression becomes a commit, the
//! moment after that commit is held for the statement, and the name is replaced by one in a schema of that moment
//! ([`past_schema`]). A name means what it meant then: a table that was emptied, renamed or dropped since is there as it was,
//! under the name that it had. A table that was not there yet has no rows then, as in SQL:2011 and MariaDB; where its
//! history, or that of the name, does not reach back so far, reading it is an error.
use std::ops::ControlFlow;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, TimestampMicrosecondType};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_cast::cast;
use arrow_schema::{DataType as ArrowType, TimeUnit};
use datafusion::sql::sqlparser::ast::{
    Expr, Ident, ObjectName, SelectItem, SetExpr, Spanned, Statement, TableAlias, TableFactor, TableVersion, VisitorMut,
};
use engine::{DataType, Database, Timestamp};

use crate::error::{Result, SqlError};
use crate::names::moment::Moment;
use crate::names::schemas::local;
use crate::names::{position, table_name};
use crate::state::view::{View, past_schema};
use crate::syntax::source::Source;
use crate::syntax::template::template;
use crate::syntax::walk::WalkMut;
use crate::values::Misfit;
use crate::values::datetime::{format_timestamp, parse_timestamp, wall_time};
use crate::values::types::type_name;

/// Runs a query over what a view shows.
pub(crate) type Run<'a> = dyn Fn(Statement, View) -> Result<Vec<RecordBatch>> + 'a;

/// Replaces the tables of the past that a statement names, and has `view` hold their moments. `run` works out expressions.
pub(crate) fn resolve(statement: &mut Statement, view: &mut View, source: &Source, run: &Run<'_>) -> Result<()> {
    match statement.walk_mut(&mut Resolve { run, view, source }) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(*error),
    }
}

struct Resolve<'a> {
    run: &'a Run<'a>,
    view: &'a mut View,
    source: &'a Source<'a>,
}

impl VisitorMut for Resolve<'_> {
    type Break = Box<SqlError>;

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Self::Break> {
        match self.replace(factor) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(Box::new(error)),
        }
    }
}

impl Resolve<'_> {
    fn replace(&mut self, factor: &mut TableFactor) -> Result<()> {
        let TableFactor::Table { name, alias, version, args: None, .. } = factor else { return Ok(()) };
        let Some(TableVersion::ForSystemTimeAsOf(expr)) = version else { return Ok(()) };
        let table = table_name(name, self.source)?;
        let at = self.commit(expr).map_err(|error| error.at(self.source.start(expr.span())))?;
        let moment = match self.view.past.get(&at.0) {
            Some(moment) => moment.clone(),
            None => Moment::after(&self.view.db, at)?,
        };
        let found = self.view.tables.find_past(&moment, &table);
        found.map_err(|error| SqlError::from(error).at(position(name, self.source)))?;
        self.view.past.insert(at.0, moment);
        let quoted = |name: &str| Ident::with_quote('"', name);
        *name = ObjectName::from(vec![quoted(&past_schema(at.0)), quoted(&table)]);
        let plain = || TableAlias { explicit: true, name: quoted(local(&table)), columns: Vec::new(), at: None };
        alias.get_or_insert_with(plain);
        *version = None;
        Ok(())
    }

    /// The commit that an expression of `AS OF` means.
    fn commit(&self, expr: &Expr) -> Result<Timestamp> {
        let started = wall_time();
        let value = self.evaluate(expr)?;
        commit_of(&self.view.db, self.view.moment.at(), &value, started)
    }

    /// The one value of an expression that names no column.
    fn evaluate(&self, expr: &Expr) -> Result<ArrayRef> {
        let mut query = template("SELECT 1")?;
        if let SetExpr::Select(select) = query.body.as_mut() {
            select.projection = vec![SelectItem::UnnamedExpr(expr.clone())];
        }
        let batches = (self.run)(Statement::Query(query), self.view.clone())?;
        let first = batches.iter().find(|batch| batch.num_rows() > 0);
        first.map(|batch| batch.column(0).clone()).ok_or_else(|| SqlError::new("XX000", "AS OF gave no value"))
    }
}

/// The commit that a value of one row means: a number, or the newest at a time. `newest` is the newest that the
/// statement sees which says so, and `started` when it started: from then on, that commit was the newest.
pub(crate) fn commit_of(db: &Database, newest: Timestamp, value: &ArrayRef, started: i64) -> Result<Timestamp> {
    if value.is_null(0) {
        return Err(SqlError::new("22004", "a moment of the past must not be null"));
    }
    match value.data_type() {
        ArrowType::Int16 | ArrowType::Int32 | ArrowType::Int64 => {
            let number = cast(value, &ArrowType::Int64).map_err(internal)?.as_primitive::<Int64Type>().value(0);
            numbered(number, newest)
        }
        ArrowType::Timestamp(..) | ArrowType::Date32 => {
            let micros = cast(value, &ArrowType::Timestamp(TimeUnit::Microsecond, None)).map_err(internal)?;
            commit_at(db, newest, micros.as_primitive::<TimestampMicrosecondType>().value(0), started)
        }
        ArrowType::Utf8 | ArrowType::Utf8View | ArrowType::LargeUtf8 => {
            let text = cast(value, &ArrowType::Utf8View).map_err(internal)?;
            commit_at(db, newest, parse_time(text.as_string_view().value(0))?, started)
        }
        other => {
            let message =
                format!("a moment of the past is a timestamp or the number of a commit, not {}", type_name(other));
            Err(SqlError::mismatch(message))
        }
    }
}

/// The commit that a setting's text means.
pub(crate) fn commit_of_text(db: &Database, text: &str) -> Result<Timestamp> {
    let (newest, started) = (db.snapshot().at, wall_time());
    match text.parse::<i64>() {
        Ok(number) => numbered(number, newest),
        Err(_) => commit_at(db, newest, parse_time(text)?, started),
    }
}

/// Reads a moment as in `AS OF`: microseconds since 1970; without a zone it is one of UTC.
///
/// # Errors
/// The error that PostgreSQL has for a text that is no timestamp, or one out of range.
pub fn parse_time(text: &str) -> Result<i64> {
    let failed = |misfit: Misfit| SqlError { detail: None, ..misfit.error("", DataType::TimestampTz, text, "text") };
    parse_timestamp(text, true).map_err(failed)
}

fn numbered(number: i64, newest: Timestamp) -> Result<Timestamp> {
    match u64::try_from(number) {
        Ok(at) if at > newest.0 => Err(engine::Error::SnapshotInFuture { at, newest: newest.0 }.into()),
        Ok(at) => Ok(Timestamp(at)),
        Err(_) => Err(SqlError::new("22023", format!("there is no commit {number}; the first is 1"))),
    }
}

fn commit_at(db: &Database, newest: Timestamp, micros: i64, started: i64) -> Result<Timestamp> {
    if micros > wall_time() {
        let message = format!("\"{}\" lies in the future", format_timestamp(micros, "+00"));
        return Err(SqlError::new("22023", message).hint("A table can be read as of a time that has passed."));
    }
    if micros >= started {
        return Ok(newest);
    }
    Ok(db.newest_commit_at(micros).unwrap_or(Timestamp::ZERO).min(newest))
}

fn internal(error: arrow_schema::ArrowError) -> SqlError {
    SqlError::new("XX000", error.to_string())
}
