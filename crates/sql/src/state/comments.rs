//! Comments: texts that the database remembers by the names of what they are about (`engine`'s `remembered`).
use std::collections::BTreeMap;

use engine::Transaction;

use crate::error::Result;

/// Stands between the name of a table and that of its column.
const OF: char = '\u{1}';

/// What a comment is about, by the names of the engine's catalog.
#[derive(Clone, Copy)]
pub(crate) enum About<'a> {
    Relation(&'a str),
    Column(&'a str, &'a str),
    /// A constraint of a table.
    Constraint(&'a str, &'a str),
    /// A domain, or another type.
    Type(&'a str),
    /// A function, by the name by which the catalog keeps it.
    Function(&'a str),
    /// A constraint of a domain.
    OfDomain(&'a str, &'a str),
    Schema(&'a str),
    Database,
}

impl About<'_> {
    /// The name under which the database remembers it.
    pub(crate) fn key(self) -> String {
        match self {
            About::Relation(name) => format!("comment relation {name}"),
            About::Column(table, column) => format!("comment column {table}{OF}{column}"),
            About::Constraint(table, name) => format!("comment constraint {table}{OF}{name}"),
            About::Type(name) => format!("comment type {name}"),
            About::Function(entry) => format!("comment function {entry}"),
            About::OfDomain(domain, name) => format!("comment of domain {domain}{OF}{name}"),
            About::Schema(schema) => format!("comment schema {schema}"),
            About::Database => "comment database".to_owned(),
        }
    }
}

/// The comments on a relation, its columns and its constraints, by the names under which they are remembered.
fn of_relation(transaction: &Transaction, name: &str) -> Result<BTreeMap<String, String>> {
    let (own, columns) = (About::Relation(name).key(), About::Column(name, "").key());
    let constraints = About::Constraint(name, "").key();
    let mut all = transaction.remembered()?;
    all.retain(|key, _| *key == own || key.starts_with(&columns) || key.starts_with(&constraints));
    Ok(all)
}

/// A new type has no comments, whatever had its name before.
pub(crate) fn forget_type(transaction: &mut Transaction, name: &str) -> Result<()> {
    let (own, constraints) = (About::Type(name).key(), About::OfDomain(name, "").key());
    let all = transaction.remembered()?.into_keys().filter(|key| *key == own || key.starts_with(&constraints));
    for key in all {
        transaction.remember(&key, None)?;
    }
    Ok(())
}

/// A new relation has no comments, whatever had its name before.
pub(crate) fn forget(transaction: &mut Transaction, name: &str) -> Result<()> {
    for key in of_relation(transaction, name)?.into_keys() {
        transaction.remember(&key, None)?;
    }
    Ok(())
}

/// Of the constraints of a table no others are there than these.
pub(crate) fn keep_constraints(transaction: &mut Transaction, table: &str, names: &[String]) -> Result<()> {
    let start = About::Constraint(table, "").key();
    let is_gone = |key: &String| key.strip_prefix(&start).is_some_and(|name| !names.iter().any(|known| known == name));
    for key in transaction.remembered()?.into_keys().filter(is_gone) {
        transaction.remember(&key, None)?;
    }
    Ok(())
}

/// A relation has got another name.
pub(crate) fn rename(transaction: &mut Transaction, from: &str, to: &str) -> Result<()> {
    forget(transaction, to)?;
    for (key, text) in of_relation(transaction, from)? {
        transaction.remember(&key, None)?;
        let is_of_column = key.starts_with(&About::Column(from, "").key());
        let new = match key.split_once(OF) {
            Some((_, column)) if is_of_column => About::Column(to, column).key(),
            Some((_, constraint)) => About::Constraint(to, constraint).key(),
            None => About::Relation(to).key(),
        };
        transaction.remember(&new, Some(&text))?;
    }
    Ok(())
}

/// A column has got another name, or is gone.
pub(crate) fn rename_column(transaction: &mut Transaction, table: &str, from: &str, to: Option<&str>) -> Result<()> {
    rename_one(transaction, About::Column(table, from), to.map(|to| About::Column(table, to)))
}

/// What is no relation has got another name, or is gone.
pub(crate) fn rename_one(transaction: &mut Transaction, from: About<'_>, to: Option<About<'_>>) -> Result<()> {
    let key = from.key();
    let Some(text) = transaction.remembered()?.remove(&key) else { return Ok(()) };
    transaction.remember(&key, None)?;
    match to {
        Some(to) => Ok(transaction.remember(&to.key(), Some(&text))?),
        None => Ok(()),
    }
}
