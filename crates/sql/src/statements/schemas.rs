//! `CREATE SCHEMA` and `DROP SCHEMA`, and the schemas that tables are made in.
use datafusion::sql::sqlparser::ast::{ObjectName, SchemaName, Statement};
use engine::{Column, DataType, PUBLIC_SCHEMA, Schema, Transaction, TypeDefinition, ViewDefinition, schema_and_name};

use crate::error::{Result, SqlError};
use crate::interrupt::made_types::MadeFunction;
use crate::names::schemas::{entry, is_relation, is_temporary, schema_of, spelled};
use crate::names::{made_types as types, position};
use crate::parsing::sequence_statement::PlacedName;
use crate::session::Session;
use crate::session::transactions::Write;
use crate::state::outcome::{Command, Notice};
use crate::statements::{ddl, function_users, held_collations, held_types, sequence_users, view_users};
use crate::syntax::identifiers::{last_part, quoted};
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

/// What a schema has.
pub(super) struct Contents {
    pub(super) tables: Vec<String>,
    pub(super) views: Vec<String>,
    /// Those that belong to no column.
    pub(super) sequences: Vec<String>,
    pub(super) types: Vec<(String, TypeDefinition)>,
    /// The functions, each with the name by which the engine keeps it.
    pub(super) functions: Vec<(String, MadeFunction)>,
    pub(super) collations: Vec<String>,
}

impl Contents {
    pub(super) fn of(transaction: &Transaction, schema: &str) -> Result<Contents> {
        let own = |names: Vec<String>| -> Vec<String> {
            names.into_iter().filter(|name| schema_of(name) == schema && is_relation(name)).collect()
        };
        let tables = own(transaction.table_names());
        let owned = |name: &String| {
            let settings = tables.iter().filter_map(|table| transaction.table(table).ok());
            let mut defaults = settings.flat_map(|table| transaction.settings(&table).defaults);
            defaults.any(|default| default.sequences.contains(name))
        };
        let sequences = own(transaction.sequence_names()).into_iter().filter(|name| !owned(name)).collect();
        let types = held_types::all_of(transaction, schema);
        let mut functions = function_users::all(transaction);
        functions.retain(|(_, function)| function.schema == schema);
        let collations = held_collations::of_schema(transaction, schema)?;
        Ok(Contents { views: own(transaction.view_names()), sequences, tables, types, functions, collations })
    }

    fn shown(&self, transaction: &Transaction) -> Vec<String> {
        let types = self.types.iter().map(|(name, _)| name.clone()).collect();
        let is_materialized = |name: &String| transaction.table(name).is_ok_and(|table| table.is_materialized());
        let (materialized, tables) = self.tables.iter().cloned().partition(is_materialized);
        let kinds = [
            ("collation", &self.collations),
            ("type", &types),
            ("table", &tables),
            ("materialized view", &materialized),
            ("view", &self.views),
            ("sequence", &self.sequences),
        ];
        let functions = self.functions.iter();
        let functions =
            functions.map(|(_, function)| format!("function {}.{}", quoted(&function.schema), function.signature()));
        kinds
            .into_iter()
            .flat_map(|(kind, names): (&str, &Vec<String>)| {
                names.iter().map(move |name| format!("{kind} {}", spelled(name)))
            })
            .chain(functions)
            .collect()
    }
}

/// `DROP SCHEMA`.
pub(crate) fn drop(session: &mut Session, statement: &Statement, source: &Source) -> Result<Command> {
    let Statement::Drop { names, if_exists, cascade, .. } = statement else {
        return Err(SqlError::new("XX000", "not a DROP SCHEMA"));
    };
    session.write("DROP SCHEMA", |session, write| {
        let mut command = Command::new("DROP SCHEMA");
        for name in names {
            command = drop_one(session, write, name, (*if_exists, *cascade), command, source)?;
        }
        Ok(command)
    })
}

fn drop_one(
    session: &Session,
    write: &mut Write<'_>,
    name: &ObjectName,
    (if_exists, cascade): (bool, bool),
    command: Command,
    source: &Source,
) -> Result<Command> {
    let (schema, at) = (last_part(name).unwrap_or_default(), position(name, source));
    if schema == PUBLIC_SCHEMA {
        return Err(SqlError::unsupported("dropping schema \"public\"").at(at));
    }
    let transaction = &mut *write.transaction;
    transaction.claim_name(&entry(&schema))?;
    if transaction.table(&entry(&schema)).is_err() {
        let message = format!("schema \"{schema}\" does not exist");
        return match if_exists {
            true => Ok(command.with_notice(format!("{message}, skipping"))),
            false => Err(SqlError::new("3F000", message).at(at)),
        };
    }
    let contents = Contents::of(transaction, &schema)?;
    let shown = contents.shown(transaction);
    if !cascade && !shown.is_empty() {
        let message = format!("cannot drop schema {} because other objects depend on it", quoted(&schema));
        let lines = shown.iter().map(|what| format!("{what} depends on schema {}", quoted(&schema)));
        let error = SqlError::new("2BP01", message).detail(lines.collect::<Vec<_>>().join("\n"));
        return Err(error.hint("Use DROP ... CASCADE to drop the dependent objects too."));
    }
    let command = match &shown[..] {
        [] => command,
        [only] => command.with_notice(format!("drop cascades to {only}")),
        many => command.with_notice(format!("drop cascades to {} other objects", many.len())),
    };
    let tables = contents.tables.into_iter().map(|table| (table, None)).collect();
    // What depends on these elsewhere goes, too; that was said already of what is in the schema.
    for (known, function) in &contents.functions {
        function_users::release(transaction, session, function, true, Command::new(""))?;
        function_users::drop(transaction, known)?;
    }
    let quiet = ddl::drop_found(transaction, session, tables, (true, false), Command::new(""))?;
    drop_rest(transaction, session, &contents.views, &contents.sequences, quiet)?;
    held_collations::drop_of_schema(write.transaction, &contents.collations)?;
    for (name, of_type) in &contents.types {
        // Tables of the schema are gone, and their columns with them.
        if let Some((table, column)) = held_types::columns_of(write.transaction, name, of_type)?.first() {
            let what =
                format!("dropping type {}, of which column {column} of table {} is,", spelled(name), spelled(table));
            return Err(SqlError::unsupported(what).hint("Drop the type first, with CASCADE."));
        }
        write.transaction.drop_view(&types::entry(name))?;
    }
    write.transaction.drop_view(&entry(&schema))?;
    Ok(command)
}

/// Drops the views and sequences of a schema that did not go with its tables.
fn drop_rest(
    transaction: &mut Transaction,
    session: &Session,
    views: &[String],
    sequences: &[String],
    command: Command,
) -> Result<()> {
    let is_there = |transaction: &Transaction, name: &String| transaction.table(name).is_ok();
    let mut command = command;
    for (kind, names) in [("view", views), ("sequence", sequences)] {
        for name in names {
            if !is_there(transaction, name) {
                continue;
            }
            let own = [name.clone()];
            let what = view_users::Dropped { kind, names: &own, cascade: true };
            command = function_users::release_rows(transaction, session, &what, command)?;
            command = view_users::release(transaction, &what, command)?;
            if kind == "view" {
                transaction.drop_view(name)?;
            } else {
                let what = sequence_users::Dropped { kind, name, cascade: true };
                command = sequence_users::release(transaction, &what, &own, &[], command)?;
                transaction.drop_sequence(name)?;
            }
        }
    }
    Ok(())
}
