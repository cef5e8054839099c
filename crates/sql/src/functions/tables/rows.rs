//! Columns of functions that show versions of rows.
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, TimestampMicrosecondArray};
use arrow_schema::Field;
use engine::{DataType, Table, Timestamp, Value};

use crate::error::{Result, SqlError};
use crate::state::view::View;
use crate::values::builder::ColumnBuilder;
use crate::values::types::arrow_schema;

/// A table's columns with a prefix before their names, all of them nullable.
pub(crate) fn nullable_fields(table: &Table, prefix: &str) -> impl Iterator<Item = Field> {
    let schema = arrow_schema(table.schema());
    let field = |field: &Arc<Field>| {
        let name = format!("{prefix}{}", field.name());
        field.as_ref().clone().with_name(name).with_nullable(true)
    };
    schema.fields().iter().map(field).collect::<Vec<_>>().into_iter()
}

/// The numbers of commits.
pub(crate) fn commits(commits: impl Iterator<Item = Option<Timestamp>>) -> ArrayRef {
    let number = |at: Timestamp| i64::try_from(at.0).unwrap_or(i64::MAX);
    Arc::new(commits.map(|at| at.map(number)).collect::<Int64Array>())
}

/// The times of commits.
pub(crate) fn times(view: &View, commits: impl Iterator<Item = Option<Timestamp>>) -> ArrayRef {
    let times = commits.map(|at| view.db.time_of_commit(at?)).collect::<TimestampMicrosecondArray>();
    Arc::new(times.with_data_type(DataType::TimestampTz.to_arrow()))
}

/// The columns of rows, of which some are missing.
pub(crate) fn values<'a>(
    table: &Table,
    rows: impl Iterator<Item = Option<&'a [Value]>> + Clone,
) -> Result<Vec<ArrayRef>> {
    let columns = table.schema().columns().iter().enumerate();
    let column = |(at, column): (usize, &engine::Column)| {
        let mut builder = ColumnBuilder::new(column.data_type);
        for row in rows.clone() {
            let value = row.map_or(&Value::Null, |row| &row[at]);
            builder
                .append_value(value)
                .map_err(|misfit| misfit.error(&column.name, column.data_type, &value.to_string(), "a stored value"))?;
        }
        Ok::<ArrayRef, SqlError>(builder.finish())
    };
    columns.map(column).collect()
}
