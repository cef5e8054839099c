//! `ALTER SCHEMA ... RENAME TO`: all that is in a schema goes into a new one, which takes its place; and `OWNER TO`.
use datafusion::sql::sqlparser::ast::{AlterSchema, AlterSchemaOperation, ObjectName};
use engine::{PUBLIC_SCHEMA, name_in_schema};

use crate::error::{Result, SqlError};
use crate::interrupt::made_types::MadeFunction;
use crate::names::position;
use crate::names::schemas::{entry, local, spelled};
use crate::session::Session;
use crate::session::transactions::Write;
use crate::state::comments::{self, About};
use crate::state::outcome::Command;
use crate::statements::schema_contents::Contents;
use crate::statements::schemas::{check_name, make};
use crate::statements::{functions, rename_type, set_schema};
use crate::syntax::identifiers::last_part;
use crate::syntax::source::Source;

/// Runs it.
pub(crate) fn run(session: &mut Session, alter: &AlterSchema, source: &Source) -> Result<Command> {
    let [AlterSchemaOperation::Rename { name: to }] = &alter.operations[..] else {
        return Err(SqlError::unsupported("this form of ALTER SCHEMA").at(source.find_word("schema")));
    };
    let (schema, at) = (last_part(&alter.name).unwrap_or_default(), position(&alter.name, source));
    session.write("ALTER SCHEMA", |session, write| {
        let is_there = |write: &Write<'_>, schema: &str| {
            schema == PUBLIC_SCHEMA || write.transaction.table(&entry(schema)).is_ok()
        };
        write.transaction.claim_name(&entry(&schema))?;
        if !is_there(write, &schema) {
            return Err(SqlError::new("3F000", format!("schema \"{schema}\" does not exist")).at(at));
        }
        if schema == PUBLIC_SCHEMA {
            return Err(SqlError::unsupported("renaming schema \"public\"").at(at));
        }
        let new = name_of_new(to, source)?;
        write.transaction.claim_name(&entry(&new))?;
        if is_there(write, &new) {
            let message = format!("schema \"{new}\" already exists");
            return Err(SqlError::new("42P06", message).at(position(to, source)));
        }
        rename(session, write, &schema, &new)?;
        Ok(Command::new("ALTER SCHEMA"))
    })
}

fn name_of_new(to: &ObjectName, source: &Source) -> Result<String> {
    let (new, at) = (last_part(to).unwrap_or_default(), position(to, source));
    check_name(&new, at)?;
    match new == "information_schema" {
        true => Err(SqlError::new("42P06", format!("schema \"{new}\" already exists")).at(at)),
        false => Ok(new),
    }
}

fn rename(session: &Session, write: &mut Write<'_>, schema: &str, new: &str) -> Result<()> {
    let moved = |name: &str| name_in_schema(new, local(name));
    let contents = Contents::of(write.transaction, schema)?;
    if let Some(collation) = contents.collations.first() {
        let what = format!("renaming a schema with a collation, {},", spelled(collation));
        return Err(SqlError::unsupported(what).hint("Drop the collation first."));
    }
    make(write.transaction, new)?;
    for (name, of_type) in contents.types {
        rename_type::rename(session, write, (&name, of_type), &moved(&name))?;
    }
    for name in contents.sequences.iter().chain(&contents.tables).chain(&contents.views) {
        set_schema::move_to(write.transaction, name, &moved(name))?;
    }
    for (known, function) in contents.functions {
        let renamed = MadeFunction { schema: new.to_owned(), ..function.clone() };
        functions::rename(session, write, (&known, &function), renamed)?;
    }
    comments::rename_one(write.transaction, About::Schema(schema), Some(About::Schema(new)))?;
    Ok(write.transaction.drop_view(&entry(schema))?)
}
