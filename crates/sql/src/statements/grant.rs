//! `GRANT`, `REVOKE` and `ALTER DEFAULT PRIVILEGES`: everything belongs to the one role there is, which may do all, so that nothing
//! changes. What the statement names has to be there.
use datafusion::sql::sqlparser::ast::{Ident, ObjectName};
use engine::{PUBLIC_SCHEMA, Table, Transaction};

use crate::error::{Result, SqlError};
use crate::names::schemas::entry;
use crate::names::tables::CATALOG;
use crate::names::{find_column, fold, position, table_name};
use crate::parsing::grant_statement::{Grant, GrantedKind, GrantedOn, Privilege};
use crate::session::Session;
use crate::session::transactions::Write;
use crate::state::outcome::Command;
use crate::statements::{function_users, made_types};
use crate::syntax::identifiers::last_part;
use crate::syntax::source::Source;

/// The privileges that there are, of anything.
const PRIVILEGES: [&str; 14] = [
    "select",
    "insert",
    "update",
    "delete",
    "truncate",
    "references",
    "trigger",
    "usage",
    "create",
    "connect",
    "temporary",
    "temp",
    "execute",
    "set",
];

/// The words that stand for roles.
const ROLE_WORDS: [&str; 3] = ["current_user", "current_role", "session_user"];

/// The names that may stand for roles: all of them, and the one that owns everything, by its own name and by that which `initdb` gives.
const ROLES: [&str; 3] = ["public", "lstore", "postgres"];

/// Runs it.
pub(crate) fn run(session: &mut Session, grant: &Grant, source: &Source) -> Result<Command> {
    session.write(grant.tag, |session, write| {
        check_objects(session, write, grant, source)?;
        if let GrantedOn::Roles = grant.on {
            grant.privileges.iter().try_for_each(|role| check_role(&role.name, source))?;
        }
        grant.roles.iter().try_for_each(|role| check_role(role, source))?;
        Ok(Command::new(grant.tag))
    })
}

/// Refuses a role that is not there.
pub(crate) fn check_role(role: &Ident, source: &Source) -> Result<()> {
    let name = fold(role);
    let is_word = role.quote_style.is_none() && ROLE_WORDS.contains(&name.as_str());
    match is_word || ROLES.contains(&name.as_str()) {
        true => Ok(()),
        false => Err(SqlError::new("42704", format!("role \"{name}\" does not exist")).at(source.start(role.span))),
    }
}

fn check_objects(session: &Session, write: &mut Write<'_>, grant: &Grant, source: &Source) -> Result<()> {
    match &grant.on {
        GrantedOn::Roles => Ok(()),
        GrantedOn::AllIn(kind, schemas) | GrantedOn::Future(kind, schemas) => {
            check_privileges(*kind, grant)?;
            schemas.iter().try_for_each(|schema| check_schema(write.transaction, schema, source))
        }
        GrantedOn::Named(kind, names) => {
            // Names of relations are looked for before it is looked at what is granted, as in PostgreSQL.
            let tables = names.iter().map(|name| object(session, write.transaction, *kind, name, source));
            let tables = tables.collect::<Result<Vec<Option<Table>>>>()?;
            check_privileges(*kind, grant)?;
            let columns = grant.privileges.iter().flat_map(|privilege| &privilege.columns);
            for (column, table) in columns.flat_map(|column| tables.iter().flatten().map(move |table| (column, table)))
            {
                find_column(table, &fold(column), source.start(column.span))?;
            }
            Ok(())
        }
    }
}

/// Refuses what is no privilege of such objects.
fn check_privileges(kind: GrantedKind, grant: &Grant) -> Result<()> {
    for Privilege { name, columns } in &grant.privileges {
        let privilege = fold(name);
        if !PRIVILEGES.contains(&privilege.as_str()) {
            return Err(SqlError::syntax(format!("unrecognized privilege type \"{privilege}\"")));
        }
        let of_columns = ["select", "insert", "update", "references"];
        let (what, known): (_, &[&str]) = match kind {
            GrantedKind::Relation if !columns.is_empty() => ("column", &of_columns),
            // `usage` of what is named without a word is that of a sequence.
            GrantedKind::Relation => ("relation", &PRIVILEGES[..8]),
            GrantedKind::Sequence => ("sequence", &["usage", "select", "update"]),
            GrantedKind::Database => ("database", &["create", "connect", "temporary", "temp"]),
            GrantedKind::Domain => ("domain", &["usage"]),
            GrantedKind::Function => ("function", &["execute"]),
            GrantedKind::Language => ("language", &["usage"]),
            GrantedKind::Schema => ("schema", &["create", "usage"]),
            GrantedKind::Type => ("type", &["usage"]),
        };
        if !known.contains(&privilege.as_str()) {
            let message = format!("invalid privilege type {} for {what}", privilege.to_uppercase());
            return Err(SqlError::new("0LP01", message));
        }
    }
    Ok(())
}

/// Looks for what a name means; gives the table that it is, if it is one.
fn object(
    session: &Session,
    transaction: &Transaction,
    kind: GrantedKind,
    name: &ObjectName,
    source: &Source,
) -> Result<Option<Table>> {
    let (local, at) = (last_part(name).unwrap_or_default(), position(name, source));
    let missing =
        |sqlstate, what: &str| Err(SqlError::new(sqlstate, format!("{what} \"{local}\" does not exist")).at(at));
    match kind {
        GrantedKind::Relation | GrantedKind::Sequence => {
            let table = transaction.table(&table_name(name, source)?);
            let table = table.map_err(|error| SqlError::from(error).at(at))?;
            if kind == GrantedKind::Sequence && table.sequence().is_none() {
                return Err(SqlError::new("42809", format!("\"{local}\" is not a sequence")));
            }
            return Ok(Some(table));
        }
        GrantedKind::Schema => check_schema_named(transaction, &local, at)?,
        GrantedKind::Database if local != CATALOG && local != "postgres" => return missing("3D000", "database"),
        GrantedKind::Language if !["sql", "plpgsql", "internal", "c"].contains(&local.as_str()) => {
            return missing("42704", "language");
        }
        GrantedKind::Type | GrantedKind::Domain => {
            if made_types::find(transaction, session, name, source)?.is_none() {
                return Err(made_types::not_there(name, source).at(at));
            }
        }
        GrantedKind::Function
            if !session.planner.has_function(&local)
                && !function_users::all(transaction).iter().any(|(_, function)| function.name == local) =>
        {
            return Err(SqlError::new("42883", format!("function {local} does not exist")).at(at));
        }
        GrantedKind::Database | GrantedKind::Language | GrantedKind::Function => {}
    }
    Ok(None)
}

fn check_schema(transaction: &Transaction, schema: &Ident, source: &Source) -> Result<()> {
    check_schema_named(transaction, &fold(schema), source.start(schema.span))
}

fn check_schema_named(transaction: &Transaction, schema: &str, at: Option<usize>) -> Result<()> {
    let is_of_system = schema == "pg_catalog" || schema == "information_schema";
    match schema == PUBLIC_SCHEMA || is_of_system || transaction.table(&entry(schema)).is_ok() {
        true => Ok(()),
        false => Err(SqlError::new("3F000", format!("schema \"{schema}\" does not exist")).at(at)),
    }
}
