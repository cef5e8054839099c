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
    Schema(&'a str),
    Database,
}

impl About<'_> {
    /// The name under which the database remembers it.
    pub(crate) fn key(self) -> String {
        match self {
            About::Relation(name) => format!("comment relation {name}"),
            About::Column(table, column) => format!("comment column {table}{OF}{column}"),
            About::Schema(schema) => format!("comment schema {schema}"),
            About::Database => "comment database".to_owned(),
        }
    }
}

/// The comments on a relation and its columns, by the names under which they are remembered.
fn of_relation(transaction: &Transaction, name: &str) -> Result<BTreeMap<String, String>> {
    let (own, columns) = (About::Relation(name).key(), About::Column(name, "").key());
    let mut all = transaction.remembered()?;
    all.retain(|key, _| *key == own || key.starts_with(&columns));
    Ok(all)
}

/// A new relation has no comments, whatever had its name before.
pub(crate) fn forget(transaction: &mut Transaction, name: &str) -> Result<()> {
    for key in of_relation(transaction, name)?.into_keys() {
        transaction.remember(&key, None)?;
    }
    Ok(())
}

/// A relation has got another name.
pub(crate) fn rename(transaction: &mut Transaction, from: &str, to: &str) -> Result<()> {
    forget(transaction, to)?;
    for (key, text) in of_relation(transaction, from)? {
        transaction.remember(&key, None)?;
        let new = match key.split_once(OF) {
            Some((_, column)) => About::Column(to, column).key(),
            None => About::Relation(to).key(),
        };
        transaction.remember(&new, Some(&text))?;
    }
    Ok(())
}

/// A column has got another name, or is gone.
pub(crate) fn rename_column(transaction: &mut Transaction, table: &str, from: &str, to: Option<&str>) -> Result<()> {
    let key = About::Column(table, from).key();
    let Some(text) = transaction.remembered()?.remove(&key) else { return Ok(()) };
    transaction.remember(&key, None)?;
    match to {
        Some(to) => Ok(transaction.remember(&About::Column(table, to).key(), Some(&text))?),
        None => Ok(()),
    }
}
