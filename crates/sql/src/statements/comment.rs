//! `COMMENT ON`.
use datafusion::sql::sqlparser::ast::{CommentObject, Ident, ObjectName, ObjectNamePart, Statement};
use engine::{Transaction, TypeDefinition};

use crate::error::{Result, SqlError};
use crate::names::schemas::{entry, is_temporary, local, schema_of, spelled};
use crate::names::tables::{CATALOG, SCHEMA};
use crate::names::{find_column, position, table_name};
use crate::parsing::comment_statement::{CommentStatement, PartKind};
use crate::session::Session;
use crate::state::comments::About;
use crate::state::outcome::Command;
use crate::statements::checks::table_of_key;
use crate::statements::{alter_constraint, extensions, grant, made_types, wrong_kind};
use crate::syntax::identifiers::{fold, last_part};
use crate::syntax::source::Source;

/// Runs it.
pub(crate) fn run(session: &mut Session, statement: &Statement, source: &Source) -> Result<Command> {
    let Statement::Comment { object_type, object_name: name, comment, if_exists: false } = statement else {
        return Err(SqlError::unsupported("this form of COMMENT"));
    };
    let text = comment.as_deref().filter(|text| !text.is_empty());
    session.write("COMMENT", |session, write| {
        let transaction = &mut *write.transaction;
        let at = position(name, source);
        match object_type {
            CommentObject::Table => relation(transaction, name, "table", text, source)?,
            CommentObject::View => relation(transaction, name, "view", text, source)?,
            CommentObject::MaterializedView => relation(transaction, name, "materialized view", text, source)?,
            CommentObject::Sequence => relation(transaction, name, "sequence", text, source)?,
            CommentObject::Index => {
                let name = table_name(name, source)?;
                if !is_of_key(transaction, &name) {
                    transaction.index(&name).map_err(|error| SqlError::from(error).at(at))?;
                }
                remember(transaction, About::Relation(&name), text)?;
            }
            CommentObject::Column => column(transaction, name, text, source)?,
            CommentObject::Schema => {
                let schema = last_part(name).unwrap_or_default();
                if schema != SCHEMA && transaction.table(&entry(&schema)).is_err() {
                    return Err(SqlError::new("3F000", format!("schema \"{schema}\" does not exist")).at(at));
                }
                transaction.remember(&About::Schema(&schema).key(), text)?;
            }
            CommentObject::Database => {
                let database = last_part(name).unwrap_or_default();
                if database != CATALOG && database != "postgres" {
                    return Err(SqlError::new("3D000", format!("database \"{database}\" does not exist")).at(at));
                }
                transaction.remember(&About::Database.key(), text)?;
            }
            CommentObject::Type | CommentObject::Domain => {
                let found = made_types::find(transaction, session, name, source)?;
                let (known, of_type) = found.ok_or_else(|| made_types::not_there(name, source).at(at))?;
                if *object_type == CommentObject::Domain && !matches!(of_type, TypeDefinition::Domain(_)) {
                    return Err(SqlError::new("42809", format!("\"{}\" is not a domain", local(&known))).at(at));
                }
                transaction.remember(&About::Type(&known).key(), text)?;
            }
            // Nobody asks for these: the statement is read for the scripts that `pg_dump` writes.
            CommentObject::Role | CommentObject::User => {
                if let Some(ObjectNamePart::Identifier(role)) = name.0.last() {
                    grant::check_role(role, source)?;
                }
            }
            CommentObject::Extension => extensions::check_known(&last_part(name).unwrap_or_default(), at)?,
            other => return Err(SqlError::unsupported(format!("COMMENT ON {other}")).at(at)),
        }
        Ok(Command::new("COMMENT"))
    })
}

/// Runs `COMMENT ON` a constraint, or on what there is none of.
pub(crate) fn run_on_part(session: &mut Session, statement: &CommentStatement, source: &Source) -> Result<Command> {
    let CommentStatement { kind, name: part, of, of_domain, text } = statement;
    let text = text.as_deref().filter(|text| !text.is_empty());
    let (name, at) = (fold(part), source.start(part.span));
    session.write("COMMENT", |session, write| {
        if *of_domain {
            of_domain_check(session, write.transaction, (of, &name), text, source)?;
            return Ok(Command::new("COMMENT"));
        }
        let known = table_name(of, source)?;
        let table = write.transaction.table(&known);
        let table = table.map_err(|error| SqlError::from(error).at(position(of, source)))?;
        let missing = |what: &str, of: &str| {
            let message = format!("{what} \"{name}\" for {of} \"{}\" does not exist", local(&known));
            SqlError::new("42704", message).at(at)
        };
        match kind {
            PartKind::Constraint => {
                let found = alter_constraint::check_there(write, (&table, &known), part, source);
                found.map_err(|_| missing("constraint", "table"))?;
                remember(write.transaction, About::Constraint(&known, &name), text)?;
            }
            PartKind::Policy => return Err(missing("policy", "table")),
            PartKind::Rule => return Err(missing("rule", "relation")),
            PartKind::Trigger => return Err(missing("trigger", "table")),
        }
        Ok(Command::new("COMMENT"))
    })
}

/// Comments on a check of a domain.
fn of_domain_check(
    session: &Session,
    transaction: &mut Transaction,
    (domain, name): (&ObjectName, &str),
    text: Option<&str>,
    source: &Source,
) -> Result<()> {
    let found = made_types::find(transaction, session, domain, source)?;
    let at = position(domain, source);
    let (known, of_type) = found.ok_or_else(|| made_types::not_there(domain, source).at(at))?;
    let TypeDefinition::Domain(definition) = of_type else {
        return Err(SqlError::new("42809", format!("\"{}\" is not a domain", local(&known))).at(at));
    };
    if !definition.checks.iter().any(|(check, _)| check == name) {
        let message = format!("constraint \"{name}\" for domain {} does not exist", spelled(&known));
        return Err(SqlError::new("42704", message));
    }
    Ok(transaction.remember(&About::OfDomain(&known, name).key(), text)?)
}

/// Whether an index is that of a primary key.
fn is_of_key(transaction: &Transaction, name: &str) -> bool {
    matches!(table_of_key(transaction, name), Ok(Some(_)))
}

fn remember(transaction: &mut Transaction, about: About<'_>, text: Option<&str>) -> Result<()> {
    if let About::Relation(name) | About::Column(name, _) | About::Constraint(name, _) = about
        && is_temporary(schema_of(name))
    {
        return Err(SqlError::unsupported("a comment on something temporary"));
    }
    Ok(transaction.remember(&about.key(), text)?)
}

fn relation(
    transaction: &mut Transaction,
    name: &ObjectName,
    kind: &str,
    text: Option<&str>,
    source: &Source,
) -> Result<()> {
    let (known, at) = (table_name(name, source)?, position(name, source));
    let table = transaction.table(&known).map_err(|error| SqlError::from(error).at(at))?;
    wrong_kind::check_is(&table, kind).map_err(|error| error.at(at))?;
    remember(transaction, About::Relation(&known), text)
}

fn column(transaction: &mut Transaction, name: &ObjectName, text: Option<&str>, source: &Source) -> Result<()> {
    let Some((ObjectNamePart::Identifier(column), table)) = name.0.split_last().filter(|(_, table)| !table.is_empty())
    else {
        return Err(SqlError::syntax("column name must be qualified").at(position(name, source)));
    };
    let table = ObjectName(table.to_vec());
    let (known, at) = (table_name(&table, source)?, position(&table, source));
    let found = transaction.table(&known).map_err(|error| SqlError::from(error).at(at))?;
    let column: &Ident = column;
    find_column(&found, &fold(column), source.start(column.span))?;
    remember(transaction, About::Column(&known, &fold(column)), text)
}
