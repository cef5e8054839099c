//! `lstore_changes(table, after [, until])`: what commits did to a table's rows, in the order of the commits.
//!
//! Both ends are commits or times: changes by commits after the first and not after the second are given, so that the
//! end of one call is the start of the next. One row is one change, with the row before it and the row after it side by
//! side, as consumers of change feeds take them (Debezium's `before` and `after`):
//!
//! | column | |
//! |---|---|
//! | `commit` | the commit |
//! | `commit_time` | when that was, a little late at most; NULL while it is not known yet |
//! | `kind` | `insert`, `update` or `delete` |
//! | `old_` and each column's name | the row before, NULL for an insert |
//! | `new_` and each column's name | the row after, NULL for a delete |
//!
//! The changes are those of the name, whatever tables it has meant: TRUNCATE, or DROP and CREATE, deletes the rows that were
//! there. A name that means nothing now is looked up as of the second end. Done one by one in their order, on a table with the
//! same key that has the rows as of the first end, they make those as of the second.
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, StringViewArray};
use arrow_schema::{DataType as ArrowType, Field, Schema, SchemaRef};
use datafusion::catalog::{TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::ScalarValue;
use datafusion::error::DataFusionError;
use engine::{ChangeKind, RowChange, Table, Timestamp};

use super::arguments::{literals, name};
use super::rows::{commits, nullable_fields, times, values};
use crate::access::computed;
use crate::error::{Result, SqlError};
use crate::names::moment::Moment;
use crate::state::past::commit_of;
use crate::state::view::View;

pub(crate) const NAME: &str = "lstore_changes";

/// The function for one statement.
#[derive(Debug)]
pub(crate) struct Changes {
    pub(crate) view: View,
    /// when the statement started
    pub(crate) started: i64,
}

impl TableFunctionImpl for Changes {
    fn call_with_args(&self, args: TableFunctionArgs) -> datafusion::error::Result<Arc<dyn TableProvider>> {
        let prepared = literals(NAME, args.exprs()).and_then(|args| self.prepare(&args));
        let ChangesArguments { name, table, at, after, until } =
            prepared.map_err(|error| DataFusionError::External(Box::new(error)))?;
        let (schema, view) = (schema(&table), self.view.clone());
        let shown = schema.clone();
        computed::table(NAME, schema, move || {
            if at == view.moment.at() {
                view.moment.note_rows(&table)?;
            }
            rows(&view, &table, &view.db.changes(&name, &table, at, (after, until))?, &shown)
        })
    }
}

/// The arguments of a call.
struct ChangesArguments {
    name: String,
    /// The table that the name means as of `at`.
    table: Table,
    at: Timestamp,
    after: Timestamp,
    until: Timestamp,
}

impl Changes {
    fn prepare(&self, args: &[ScalarValue]) -> Result<ChangesArguments> {
        let (name, newest) = (name(NAME, args.first())?, self.view.moment.at());
        let commit = |arg: &ScalarValue| {
            let value = arg.to_array().map_err(|error| SqlError::new("XX000", error.to_string()))?;
            commit_of(&self.view.db, self.view.moment.at(), &value, self.started)
        };
        let (after, until) = match args {
            [_, after] => (commit(after)?, newest),
            [_, after, until] => (commit(after)?, commit(until)?),
            _ => {
                let message = format!("{NAME} takes a table, a commit or time to start after, and one to end with");
                return Err(SqlError::new("42883", message));
            }
        };
        let (at, table) = match self.view.tables.find(&name) {
            Err(engine::Error::NoSuchTable(_)) if until < newest => {
                let then = Moment::after(&self.view.db, until)?;
                (until, self.view.tables.at(&then).find(&name)?)
            }
            found => (newest, found?),
        };
        if table.view().is_some() {
            return Err(SqlError::new("42809", format!("\"{name}\" is not a table")));
        }
        Ok(ChangesArguments { name, table, at, after, until })
    }
}

fn schema(table: &Table) -> SchemaRef {
    let ours = [
        Field::new("commit", ArrowType::Int64, false),
        Field::new("commit_time", engine::DataType::TimestampTz.to_arrow(), true),
        Field::new("kind", ArrowType::Utf8View, false),
    ];
    let both = nullable_fields(table, "old_").chain(nullable_fields(table, "new_"));
    Arc::new(Schema::new(ours.into_iter().chain(both).collect::<Vec<_>>()))
}

fn rows(view: &View, table: &Table, changes: &[RowChange], schema: &SchemaRef) -> Result<RecordBatch> {
    let at = || changes.iter().map(|change| Some(change.at));
    let kind = |change: &RowChange| match change.kind {
        ChangeKind::Insert => "insert",
        ChangeKind::Update => "update",
        ChangeKind::Delete => "delete",
    };
    let kinds: StringViewArray = changes.iter().map(kind).map(Some).collect();
    let mut columns: Vec<ArrayRef> = vec![commits(at()), times(view, at()), Arc::new(kinds)];
    columns.extend(values(table, changes.iter().map(|change| change.old.as_deref()))?);
    columns.extend(values(table, changes.iter().map(|change| change.new.as_deref()))?);
    RecordBatch::try_new(schema.clone(), columns).map_err(|error| SqlError::new("XX000", error.to_string()))
}
