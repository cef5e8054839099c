//! `DROP SCHEMA`.
use datafusion::sql::sqlparser::ast::Statement;
use engine::{PUBLIC_SCHEMA, Transaction};

use crate::error::{Result, SqlError};
use crate::names::schemas::entry;
use crate::names::{made_types as types, position};
use crate::session::Session;
use crate::session::transactions::Write;
use crate::state::outcome::Command;
use crate::statements::dependents::{Dependents, Object};
use crate::statements::{alter_columns, ddl, held_collations, sequence_users};
use crate::syntax::identifiers::last_part;
use crate::syntax::source::Source;

/// `DROP SCHEMA`.
pub(crate) fn drop(session: &mut Session, statement: &Statement, source: &Source) -> Result<Command> {
    let Statement::Drop { names, if_exists, cascade, .. } = statement else {
        return Err(SqlError::new("XX000", "not a DROP SCHEMA"));
    };
    session.write("DROP SCHEMA", |session, write| {
        let (mut command, mut dropped) = (Command::new("DROP SCHEMA"), Vec::with_capacity(names.len()));
        for name in names {
            let (schema, at) = (last_part(name).unwrap_or_default(), position(name, source));
            if schema == PUBLIC_SCHEMA {
                return Err(SqlError::unsupported("dropping schema \"public\"").at(at));
            }
            write.transaction.claim_name(&entry(&schema))?;
            if write.transaction.table(&entry(&schema)).is_ok() {
                dropped.push(Object::Schema(schema));
                continue;
            }
            let message = format!("schema \"{schema}\" does not exist");
            match if_exists {
                true => command = command.with_notice(format!("{message}, skipping")),
                false => return Err(SqlError::new("3F000", message).at(at)),
            }
        }
        dropped.dedup();
        let dependents = Dependents::of(write.transaction, session, &dropped)?;
        let command = dependents.tell(*cascade, command)?;
        drop_found(session, write, &dependents, source)?;
        for schema in dropped.iter().filter_map(Object::schema) {
            write.transaction.drop_view(&entry(schema))?;
        }
        Ok(command)
    })
}

/// Drops what schemas have, and what depends on that.
fn drop_found(session: &Session, write: &mut Write<'_>, dependents: &Dependents, source: &Source) -> Result<()> {
    dependents.drop_along(write.transaction)?;
    let relations: Vec<String> = dependents.relations().map(str::to_owned).collect();
    let is_there = |transaction: &Transaction, name: &str| transaction.table(name).is_ok();
    let (tables, sequences): (Vec<String>, Vec<String>) = relations
        .into_iter()
        .filter(|name| is_there(write.transaction, name))
        .partition(|name| write.transaction.table(name).is_ok_and(|table| table.sequence().is_none()));
    ddl::drop_tables(write.transaction, &tables.iter().map(|table| (table.clone(), None)).collect::<Vec<_>>(), false)?;
    for (table, column) in dependents.columns() {
        if is_there(write.transaction, table) {
            alter_columns::drop_column(session, write, table, column, source)?;
        }
    }
    for sequence in sequences.iter().filter(|sequence| is_there(write.transaction, sequence)).collect::<Vec<_>>() {
        sequence_users::forget(write.transaction, std::slice::from_ref(sequence))?;
        write.transaction.drop_sequence(sequence)?;
    }
    held_collations::drop_of_schema(write.transaction, dependents.collations())?;
    for known in dependents.types() {
        write.transaction.drop_view(&types::entry(known))?;
    }
    Ok(())
}
