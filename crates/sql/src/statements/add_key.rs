//! `ALTER TABLE ... ADD PRIMARY KEY`: the rows move to a new table that has the key, and takes the name.
//!
//! The index of a table is filled as its rows come in, and a column of the key takes no NULL, so a key is not added
//! to rows that are there: within one transaction they are read, inserted again under a name that no statement can
//! spell, and the old table is dropped; its other indexes are made again. The history before is not kept: that of the new
//! table begins here.
use arrow_array::Array;
use datafusion::sql::sqlparser::ast::{AlterTable, TableConstraint};
use engine::{ScanOptions, Schema, Table};

use crate::error::{Result, SqlError};
use crate::names::{find_column, table_name};
use crate::session::Session;
use crate::session::transactions::Write;
use crate::state::outcome::Command;
use crate::state::target::Target;
use crate::statements::altered::altered;
use crate::statements::ddl::key_columns;
use crate::syntax::source::Source;

/// Runs the statement.
pub(crate) fn run(
    session: &mut Session,
    alter: &AlterTable,
    constraint: &TableConstraint,
    source: &Source,
) -> Result<Command> {
    let name = table_name(&alter.name, source)?;
    let key = key_columns(constraint, source)?;
    session.write("ALTER TABLE", |_, write| {
        let table = match altered(write.transaction, &name, alter, source)? {
            Ok(table) => table,
            Err(skipped) => return Ok(skipped),
        };
        if !table.schema().primary_key().is_empty() {
            let message = format!("multiple primary keys for table \"{name}\" are not allowed");
            return Err(SqlError::new("42P16", message));
        }
        write.transaction.lock_table(&name)?;
        let with_key = schema_with_key(&table, &key, source)?;
        // The rows that are there are not looked at again.
        let constraints = write.transaction.take_constraints(&name)?;
        let settings = write.transaction.settings(&table);
        let indexes = write.transaction.indexes(&table);
        let temporary = format!("\0{name}");
        let new = write.transaction.create_table_with(&temporary, with_key, settings)?;
        move_rows(write, &table, new)?;
        write.transaction.drop_table(&name)?;
        write.transaction.rename_table(&temporary, &name)?;
        for index in indexes {
            write.transaction.create_index(&name, index.definition().clone())?;
        }
        write.transaction.give_constraints(&name, &constraints)?;
        Ok(Command::new("ALTER TABLE"))
    })
}

fn schema_with_key(table: &Table, key: &[String], source: &Source) -> Result<Schema> {
    let mut columns = table.schema().columns().to_vec();
    for name in key {
        let missing =
            |error: SqlError| SqlError { message: format!("column \"{name}\" of the key does not exist"), ..error };
        let at = find_column(table, name, source.find_word(name)).map_err(missing)?;
        columns[at].nullable = false;
    }
    let key: Vec<&str> = key.iter().map(String::as_str).collect();
    Schema::new(columns, &key).map_err(|error| SqlError::from(engine::Error::from(error)))
}

/// A key that two rows have, in the words for building an index.
fn not_unique(error: engine::Error, table: &str) -> SqlError {
    match error {
        engine::Error::DuplicateKey { key, .. } => {
            let message = format!("could not create unique index \"{table}_pkey\"");
            SqlError::new("23505", message).detail(format!("Key {key} is duplicated."))
        }
        other => other.into(),
    }
}

fn move_rows(write: &mut Write<'_>, from: &Table, to: Table) -> Result<()> {
    let columns = (0..from.schema().columns().len()).collect();
    let view = write.moment()?.view().clone();
    let rows = from.scan(&view, ScanOptions { columns, ..ScanOptions::default() })?;
    let target = Target::new(to, &[])?;
    for batch in rows.batches() {
        let batch = batch?;
        write.check()?;
        for (at, column) in target.table.schema().columns().iter().enumerate() {
            if !column.nullable && batch.column(at).null_count() > 0 {
                let message =
                    format!("column \"{}\" of relation \"{}\" contains null values", column.name, from.name());
                return Err(SqlError::new("23502", message));
            }
        }
        let batch = target.rows(batch.columns().to_vec(), batch.num_rows())?;
        write.transaction.insert_batch(&target.table, &batch).map_err(|error| not_unique(error, from.name()))?;
    }
    write.end_reading();
    Ok(())
}
