//! Domains: `CREATE DOMAIN`, `DROP DOMAIN` (`ALTER DOMAIN` is in `alter_domain`), and what a column is given that is of one.
//!
//! A column is of the type below the domain. What the domain asks of values becomes rules of the column's table, which the engine
//! applies to every row that is written; their names are such that no user gives, and tell the domain for messages:
//!
//! ```text
//! CREATE DOMAIN posint AS int CHECK (VALUE > 0)
//! CREATE TABLE t (a posint)   ─▶  a int, a rule "\1 0000 \1 posint \1 posint_check": a > 0
//! ```
//!
//! The catalog remembers with the table which of its columns are of a domain.
use datafusion::sql::sqlparser::ast::ObjectName;
use engine::{Column, DomainDefinition, TypeDefinition, schema_and_name};

use crate::error::{Result, SqlError};
use crate::names::made_names::free_name;
use crate::names::{fold, position};
use crate::parsing::domain_statement::{DomainChange, DomainStatement, NewDomain};
use crate::planning::default_define::define as define_default;
use crate::planning::index_compile::Kind;
use crate::planning::index_define::define_over;
use crate::session::Session;
use crate::state::outcome::Command;
use crate::statements::domain_rules::VALUE;
use crate::statements::{alter_domain, made_types, rename_type};
use crate::syntax::source::Source;
use crate::values::types::column_or_domain;

/// Runs a statement about domains.
pub(crate) fn run(session: &mut Session, statement: &DomainStatement, source: &Source) -> Result<Command> {
    match statement {
        DomainStatement::Create(new) => create(session, new, source),
        DomainStatement::Alter { name, change } if let DomainChange::RenameTo(to) = change.as_ref() => {
            rename_type::run(session, "ALTER DOMAIN", (name, to), source)
        }
        DomainStatement::Alter { name, change } => alter_domain::run(session, name, change, source),
        DomainStatement::Drop { names, if_exists, cascade } => drop(session, names, (*if_exists, *cascade), source),
    }
}

fn create(session: &mut Session, new: &NewDomain, source: &Source) -> Result<Command> {
    let (known, at) = (made_types::new_name(session, &new.name, source)?, position(&new.name, source));
    let (base, below) = column_or_domain(&new.base).map_err(|error| error.at(at))?;
    session.write("CREATE DOMAIN", |session, write| {
        let value = Column::new(VALUE, base);
        let below = below.clone().map(|(_, below)| below);
        let default = match &new.default {
            Some(expr) => {
                let view = session.view(write.moment()?, Vec::new());
                define_default(&session.planner, view, expr, &value, source)?
            }
            None => below.as_ref().and_then(|below| below.default.clone()),
        };
        let mut checks = below.as_ref().map(|below| below.checks.clone()).unwrap_or_default();
        for (name, condition) in &new.checks {
            let defined = define_over(condition, ("", std::slice::from_ref(&value)), Kind::Check, source)?;
            let name = match name {
                Some(name) => taken(&checks, fold(name), &known)?,
                None => free(&checks, schema_and_name(&known).1),
            };
            checks.push((name, defined.text));
        }
        write.end_reading();
        let number = made_types::free_number(write.transaction)?.number();
        let not_null = new.not_null || below.is_some_and(|below| below.not_null);
        let definition = DomainDefinition { base, number, default, not_null, checks };
        made_types::make(write.transaction, &known, TypeDefinition::Domain(definition))
            .map_err(|error| error.at(at))?;
        Ok(Command::new("CREATE DOMAIN"))
    })
}

pub(crate) fn taken(checks: &[(String, String)], name: String, domain: &str) -> Result<String> {
    match checks.iter().any(|(known, _)| *known == name) {
        true => {
            let domain = schema_and_name(domain).1;
            Err(SqlError::new("42710", format!("constraint \"{name}\" for domain \"{domain}\" already exists")))
        }
        false => Ok(name),
    }
}

pub(crate) fn free(checks: &[(String, String)], domain: &str) -> String {
    free_name(domain, "", "check", |name| !checks.iter().any(|(known, _)| known == name))
}

fn drop(
    session: &mut Session,
    names: &[ObjectName],
    (if_exists, cascade): (bool, bool),
    source: &Source,
) -> Result<Command> {
    session.write("DROP DOMAIN", |session, write| {
        let (mut command, mut dropped) = (Command::new("DROP DOMAIN"), Vec::with_capacity(names.len()));
        for name in names {
            match made_types::find(write.transaction, session, name, source)? {
                Some((known, TypeDefinition::Enum(_))) => {
                    let message = format!("\"{}\" is not a domain", schema_and_name(&known).1);
                    return Err(SqlError::new("42809", message).at(position(name, source)));
                }
                Some(found) => dropped.push(found),
                None if if_exists => {
                    let missing = made_types::not_there(name, source).message;
                    command = command.with_notice(format!("{missing}, skipping"));
                }
                None => return Err(made_types::not_there(name, source)),
            }
        }
        made_types::drop_found(session, write, dropped, cascade, command, source)
    })
}
