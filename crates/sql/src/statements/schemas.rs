//! `CREATE SCHEMA`, and the schemas that tables are made in.
use datafusion::sql::sqlparser::ast::{SchemaName, Statement};
use engine::{Column, DataType, PUBLIC_SCHEMA, Schema, Transaction, ViewDefinition, schema_and_name};

use crate::error::{Result, SqlError};
use crate::names::position;
use crate::names::schemas::{entry, is_temporary};
use crate::parsing::sequence_statement::PlacedName;
use crate::session::Session;
use crate::state::outcome::{Command, Notice};
use crate::syntax::identifiers::last_part;
use crate::syntax::source::Source;

/// Makes sure that the schema is there of something that is about to be made, and stays until the transaction ends.
pub(crate) fn check_there(transaction: &mut Transaction, name: &str) -> Result<()> {
    let schema = schema_and_name(name).0;
    if schema == PUBLIC_SCHEMA || is_temporary(schema) {
        return Ok(());
    }
    transaction.claim_name(&entry(schema))?;
    match transaction.table(&entry(schema)) {
        Ok(_) => Ok(()),
        Err(_) => Err(SqlError::new("3F000", format!("schema \"{schema}\" does not exist"))),
    }
}

/// Refuses the name of something that is to be there, if not even its schema is.
pub(crate) fn check_known(transaction: &Transaction, named: &PlacedName) -> Result<()> {
    let schema = schema_and_name(&named.name).0;
    if schema == PUBLIC_SCHEMA || is_temporary(schema) || transaction.table(&entry(schema)).is_ok() {
        return Ok(());
    }
    Err(SqlError::new("3F000", format!("schema \"{schema}\" does not exist")).at(named.position))
}

/// `CREATE SCHEMA`.
pub(crate) fn create(session: &mut Session, statement: &Statement, source: &Source) -> Result<Command> {
    let Statement::CreateSchema { schema_name, if_not_exists, with, options, default_collate_spec, clone } = statement
    else {
        return Err(SqlError::new("XX000", "not a CREATE SCHEMA"));
    };
    if with.is_some() || options.is_some() || default_collate_spec.is_some() || clone.is_some() {
        return Err(SqlError::unsupported("an option of a schema").at(source.find_word("schema")));
    }
    let name = match schema_name {
        SchemaName::Simple(name) | SchemaName::NamedAuthorization(name, _) => name,
        SchemaName::UnnamedAuthorization(_) => {
            return Err(SqlError::unsupported("CREATE SCHEMA without a name").at(source.find_word("authorization")));
        }
    };
    let at = position(name, source);
    let schema = last_part(name).unwrap_or_default();
    check_name(&schema, at)?;
    session.write("CREATE SCHEMA", |_, write| {
        let (transaction, command) = (&mut *write.transaction, Command::new("CREATE SCHEMA"));
        transaction.claim_name(&entry(&schema))?;
        if schema == PUBLIC_SCHEMA || schema == "information_schema" || transaction.table(&entry(&schema)).is_ok() {
            let message = format!("schema \"{schema}\" already exists");
            return match if_not_exists {
                true => Ok(command.with_notice(Notice::skipping("42P06", message))),
                false => Err(SqlError::new("42P06", message).at(at)),
            };
        }
        make(transaction, &schema)?;
        Ok(command)
    })
}

/// Makes a schema, which the engine keeps as a view that is of no columns for anybody.
pub(super) fn make(transaction: &mut Transaction, schema: &str) -> Result<()> {
    let columns = Schema::new(vec![Column::new("schema", DataType::TEXT)], &[]);
    let columns = columns.map_err(|error| SqlError::from(engine::Error::from(error)))?;
    transaction.create_view(&entry(schema), columns, ViewDefinition::default())?;
    Ok(())
}

/// Refuses a name that only PostgreSQL's own schemas have.
pub(super) fn check_name(schema: &str, at: Option<usize>) -> Result<()> {
    if !schema.starts_with("pg_") {
        return Ok(());
    }
    let error = SqlError::new("42939", format!("unacceptable schema name \"{schema}\"")).at(at);
    Err(error.detail("The prefix \"pg_\" is reserved for system schemas."))
}
