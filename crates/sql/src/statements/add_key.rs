//! `ALTER TABLE ... ADD PRIMARY KEY`, and `DROP CONSTRAINT` of one: the rows move to a new table that has the key, or has none, and takes
//! the name.
//!
//! The index of a table is filled as its rows come in, and a column of the key takes no NULL, so a key is not added
//! to rows that are there: within one transaction a new table takes the place of the old one, whose rows are put into it. The
//! history before is that of the old table; the history of the new one begins here.
use arrow_array::Array;
use datafusion::sql::sqlparser::ast::TableConstraint;
use engine::{ReadView, ScanOptions, Schema, Table, TableSettings};

use crate::error::{Result, SqlError};
use crate::names::find_column;
use crate::names::schemas::local;
use crate::session::Session;
use crate::session::transactions::Write;
use crate::state::outcome::Command;
use crate::state::target::Target;
use crate::statements::ddl::Key;
use crate::statements::dependents::{Dependents, Object};
use crate::statements::foreign_keys;
use crate::syntax::source::Source;
use crate::values::stored::{rows_as_queried, rows_as_stored};
use crate::values::types::arrow_schema;

/// Adds a primary key to a table, which the statement has for itself.
pub(crate) fn add(
    write: &mut Write<'_>,
    (table, name): (&Table, &str),
    constraint: &TableConstraint,
    source: &Source,
) -> Result<()> {
    let key = Key::read(constraint, source)?.over(table.schema().columns().iter());
    if foreign_keys::has_primary_key(write.transaction, table) {
        let message = format!("multiple primary keys for table \"{name}\" are not allowed");
        return Err(SqlError::new("42P16", message));
    }
    let own = if key.put_off().is_none() { &key.columns[..] } else { &[] };
    let with_key = schema_with_key(table, (&key.columns, own), source)?;
    replace(write, (table, name), with_key, key.own_name(name))?;
    let Some(unique) = key.put_off() else { return Ok(()) };
    let new = write.transaction.table(name)?;
    unique.create(write.transaction, &new, source)
}

/// Drops the primary key of a table, which the statement has for itself; its columns go on taking no NULL.
pub(crate) fn drop_key(
    session: &Session,
    write: &mut Write<'_>,
    (table, name): (&Table, &str),
    cascade: bool,
    command: Command,
) -> Result<Command> {
    if table.is_array() {
        return Err(SqlError::unsupported(format!("array table \"{name}\" without a primary key")));
    }
    write.transaction.lock_table(name)?;
    let key = local(&write.transaction.settings(table).name_of_key(name)).to_owned();
    let dependents = Dependents::of(write.transaction, session, &[Object::Constraint(name.to_owned(), key)])?;
    let command = dependents.tell(cascade, command)?;
    dependents.drop_along(write.transaction)?;
    let without_key = Schema::new(table.schema().columns().to_vec(), &[]);
    let without_key = without_key.map_err(|error| SqlError::from(engine::Error::from(error)))?;
    replace(write, (table, name), without_key, None)?;
    Ok(command)
}

/// Puts a table with another key, and all that there is beside it, in the place of one.
fn replace(
    write: &mut Write<'_>,
    (table, name): (&Table, &str),
    schema: Schema,
    key_name: Option<String>,
) -> Result<()> {
    // The rows that are there are not looked at again.
    let constraints = write.transaction.take_constraints(name)?;
    let settings = TableSettings { key_name, ..write.transaction.settings(table) };
    let (indexes, view) = (write.transaction.indexes(table), write.latest_moment()?.view().clone());
    let new = write.transaction.replace_table(name, schema, settings)?;
    move_rows(write, &view, table, new)?;
    for index in indexes {
        write.transaction.create_index(name, index.definition().clone())?;
    }
    Ok(write.transaction.give_constraints(name, &constraints)?)
}

/// The columns of a table, these without NULL, and those the key.
fn schema_with_key(table: &Table, (never_null, key): (&[String], &[String]), source: &Source) -> Result<Schema> {
    let mut columns = table.schema().columns().to_vec();
    for name in never_null {
        let missing =
            |error: SqlError| SqlError { message: format!("column \"{name}\" of the key does not exist"), ..error };
        let at = find_column(table, name, source.find_word(name)).map_err(missing)?;
        columns[at].nullable = false;
    }
    let key: Vec<&str> = key.iter().map(String::as_str).collect();
    Schema::new(columns, &key).map_err(|error| SqlError::from(engine::Error::from(error)))
}

/// A key that two rows have, in the words for building an index.
pub(crate) fn not_unique(error: engine::Error) -> SqlError {
    match error {
        engine::Error::DuplicateKey { key, constraint, .. } => {
            let message = format!("could not create unique index \"{constraint}\"");
            SqlError::new("23505", message).detail(format!("Key {key} is duplicated."))
        }
        other => other.into(),
    }
}

fn move_rows(write: &mut Write<'_>, view: &ReadView, from: &Table, to: Table) -> Result<()> {
    let columns = (0..from.schema().columns().len()).collect();
    let rows = from.scan(view, ScanOptions { columns, ..ScanOptions::default() })?;
    let (target, schema) = (Target::new(to, &[])?, arrow_schema(from.schema()));
    for batch in rows.batches() {
        let batch = rows_as_queried(&batch?, &schema);
        write.check()?;
        for (at, column) in target.table.schema().columns().iter().enumerate() {
            if !column.nullable && batch.column(at).null_count() > 0 {
                let message =
                    format!("column \"{}\" of relation \"{}\" contains null values", column.name, from.name());
                return Err(SqlError::new("23502", message));
            }
        }
        let batch = target.rows(batch.columns().to_vec(), batch.num_rows())?;
        let batch = rows_as_stored(&batch);
        write.transaction.insert_batch(&target.table, &batch).map_err(not_unique)?;
    }
    write.end_reading();
    Ok(())
}
