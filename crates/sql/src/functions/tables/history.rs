//! `lstore_history(table, key...)`: every version of one row, oldest first.
//!
//! | column | |
//! |---|---|
//! | `valid_from` | the commit that made the version |
//! | `valid_to` | the commit that ended it, NULL for the newest |
//! | `valid_from_time`, `valid_to_time` | when that was, a little late at most; NULL while it is not known yet |
//! | `deleted` | whether there was no row; its columns are NULL then |
//! | the table's columns | |
//!
//! Where the table was emptied, or dropped and made again, the row was deleted by that commit.
//!
//! A column of the table that has one of these names keeps it, and ours is called `lstore_...` then.
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, RecordBatch};
use arrow_cast::cast;
use arrow_schema::{DataType as ArrowType, Field, Schema, SchemaRef};
use datafusion::catalog::{TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::ScalarValue;
use datafusion::error::DataFusionError;
use engine::{RecordVersion, Table, Timestamp, Value};

use super::arguments::{find, literals};
use super::rows::{commits, nullable_fields, times, values};
use crate::access::computed;
use crate::error::{Result, SqlError};
use crate::state::view::View;
use crate::values::assign::{Texts, assign};
use crate::values::single::value_of_scalar;
use crate::values::types::type_of_field;

pub(crate) const NAME: &str = "lstore_history";

/// The function for one statement.
#[derive(Debug)]
pub(crate) struct History {
    pub(crate) view: View,
}

impl TableFunctionImpl for History {
    fn call_with_args(&self, args: TableFunctionArgs) -> datafusion::error::Result<Arc<dyn TableProvider>> {
        let prepared = literals(NAME, args.exprs()).and_then(|args| {
            let (name, table) = find(NAME, &self.view, args.first())?;
            let key = key(&table, args.get(1..).unwrap_or_default())?;
            Ok((name, table, key))
        });
        let (name, table, key) = prepared.map_err(|error| DataFusionError::External(Box::new(error)))?;
        let (schema, view) = (schema(&table), self.view.clone());
        let shown = schema.clone();
        computed::table(NAME, schema, move || {
            view.moment.note_row(&table, &key)?;
            let at = view.moment.at();
            let versions = until(view.db.record_history(&name, &table, at, &key)?, at);
            rows(&view, &table, &versions, &shown)
        })
    }
}

/// The arguments as values of the primary key's columns.
fn key(table: &Table, args: &[ScalarValue]) -> Result<Vec<Value>> {
    let columns = table.schema().columns();
    let key = table.schema().primary_key();
    if key.is_empty() {
        return Err(engine::Error::NoPrimaryKey(table.name().to_owned()).into());
    }
    if key.len() != args.len() {
        let names: Vec<&str> = key.iter().map(|at| columns[*at].name.as_str()).collect();
        let message = format!("{NAME} of table \"{}\" takes its key: {}", table.name(), names.join(", "));
        return Err(SqlError::new("42883", message));
    }
    let value = |(arg, at): (&ScalarValue, &usize)| {
        let column = &columns[*at];
        let array = arg.to_array().map_err(|error| SqlError::new("XX000", error.to_string()))?;
        let field = Field::new(&column.name, array.data_type().clone(), true);
        let is_text = type_of_field(&field)
            .is_some_and(|from| matches!(from, engine::DataType::Text { .. } | engine::DataType::Char { .. }));
        let texts = if is_text { Texts::AreRead } else { Texts::Stay };
        let assigned = assign(&array, &field, &column.name, column.data_type, texts)?;
        // A number that is rounded on its way is no row's key.
        let is_same = is_text || cast(&assigned, array.data_type()).is_ok_and(|back| *back == *array);
        if !is_same {
            return Ok(Value::Null);
        }
        let scalar = ScalarValue::try_from_array(&assigned, 0);
        let scalar = scalar.map_err(|error| SqlError::new("XX000", error.to_string()))?;
        Ok(value_of_scalar(&scalar, column.data_type).unwrap_or(Value::Null))
    };
    args.iter().zip(key).map(value).collect()
}

/// The versions as a statement sees them that has this as its newest commit.
fn until(versions: Vec<RecordVersion>, at: Timestamp) -> Vec<RecordVersion> {
    let mut versions: Vec<RecordVersion> = versions.into_iter().filter(|version| version.from <= at).collect();
    versions.iter_mut().for_each(|version| version.to = version.to.filter(|to| *to <= at));
    versions
}

fn schema(table: &Table) -> SchemaRef {
    let name = |name: &str| match table.schema().position(name) {
        Some(_) => format!("lstore_{name}"),
        None => name.to_owned(),
    };
    let time = engine::DataType::TimestampTz.to_arrow();
    let ours = [
        Field::new(name("valid_from"), ArrowType::Int64, false),
        Field::new(name("valid_to"), ArrowType::Int64, true),
        Field::new(name("valid_from_time"), time.clone(), true),
        Field::new(name("valid_to_time"), time, true),
        Field::new(name("deleted"), ArrowType::Boolean, false),
    ];
    Arc::new(Schema::new(ours.into_iter().chain(nullable_fields(table, "")).collect::<Vec<_>>()))
}

fn rows(view: &View, table: &Table, versions: &[RecordVersion], schema: &SchemaRef) -> Result<RecordBatch> {
    let from = || versions.iter().map(|version| Some(version.from));
    let to = || versions.iter().map(|version| version.to);
    let deleted: BooleanArray = versions.iter().map(|version| Some(version.row.is_none())).collect();
    let mut columns: Vec<ArrayRef> =
        vec![commits(from()), commits(to()), times(view, from()), times(view, to()), Arc::new(deleted)];
    columns.extend(values(table, versions.iter().map(|version| version.row.as_deref()))?);
    RecordBatch::try_new(schema.clone(), columns).map_err(|error| SqlError::new("XX000", error.to_string()))
}
