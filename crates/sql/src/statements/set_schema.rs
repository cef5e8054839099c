//! `ALTER ... SET SCHEMA`: a table, view or sequence goes into another schema, with the indexes and sequences that belong to it.
use engine::{Index, Transaction, name_in_schema};

use crate::error::{Result, SqlError};
use crate::names::schemas::{beside, is_temporary, local, schema_of};
use crate::parsing::set_schema::SetSchema;
use crate::session::Session;
use crate::state::comments;
use crate::state::outcome::Command;
use crate::statements::{function_users, schemas, sequence_users, view_users, wrong_kind};

/// Runs it.
pub(crate) fn run(session: &mut Session, asked: &SetSchema) -> Result<Command> {
    let (name, schema) = (&asked.name.name, &asked.schema.name);
    let command = Command::new(format!("ALTER {}", asked.kind));
    session.write(&command.tag.clone(), |_, write| {
        let transaction = &mut *write.transaction;
        let table = match transaction.table(name) {
            Err(engine::Error::NoSuchTable(_)) if asked.if_exists => {
                let notice = format!("relation \"{}\" does not exist, skipping", local(name));
                return Ok(command.clone().with_notice(notice));
            }
            found => found.map_err(|error| asked.name.error(error))?,
        };
        if asked.kind != "TABLE" {
            wrong_kind::check_is(&table, &asked.kind.to_lowercase())?;
        }
        if is_temporary(schema_of(name)) || is_temporary(schema) {
            return Err(SqlError::new("0A000", "cannot move objects into or out of temporary schemas"));
        }
        let new = name_in_schema(schema, local(name));
        schemas::check_there(transaction, &new).map_err(|error| error.at(asked.schema.position))?;
        if new == *name {
            return Ok(command.clone());
        }
        move_to(transaction, name, &new)?;
        Ok(command.clone())
    })
}

/// Gives a relation a name in another schema, and what belongs to it.
pub(super) fn move_to(transaction: &mut Transaction, name: &str, new: &str) -> Result<()> {
    let table = transaction.table(name)?;
    let is_table = table.view().is_none() && table.sequence().is_none();
    let sequences = if is_table { sequence_users::owned_by(transaction, name)? } else { Vec::new() };
    move_with_indexes(transaction, name, new)?;
    if table.sequence().is_some() {
        sequence_users::rename(transaction, name, new)?;
    }
    for sequence in sequences {
        let moved = beside(new, &sequence);
        rename(transaction, &sequence, &moved)?;
        sequence_users::rename(transaction, &sequence, &moved)?;
    }
    Ok(())
}

/// Gives a relation its new name. Indexes are in the schema of their table, so that they are made anew there.
fn move_with_indexes(transaction: &mut Transaction, name: &str, new: &str) -> Result<()> {
    let indexes = transaction.indexes(&transaction.table(name)?);
    let definitions: Vec<_> = indexes.iter().map(Index::definition).cloned().collect();
    for definition in &definitions {
        transaction.drop_index(&definition.name)?;
    }
    rename(transaction, name, new)?;
    for mut definition in definitions {
        let before = definition.name;
        definition.name = beside(new, &before);
        comments::rename(transaction, &before, &definition.name)?;
        transaction.create_index(new, definition)?;
    }
    Ok(())
}

fn rename(transaction: &mut Transaction, name: &str, new: &str) -> Result<()> {
    transaction.rename_table(name, new).map_err(|error| match error {
        engine::Error::TableExists(_) | engine::Error::IndexExists(_) => {
            let message = format!("relation \"{}\" already exists in schema \"{}\"", local(new), schema_of(new));
            SqlError::new("42P07", message)
        }
        error => error.into(),
    })?;
    function_users::rename_rows(transaction, name, new)?;
    view_users::rename(transaction, name, new)?;
    comments::rename(transaction, name, new)
}
