//! The prepared statements of a session, by their names.
//!
//! What the catalog says of them stands beside them in a map of its own, which each statement's view shares.
use std::sync::Arc;

use foldhash::HashMap;

use crate::error::{Result, SqlError};
use crate::session::prepared::PreparedStatement;
use crate::state::view::{StatementFacts, StatementsFacts};
use crate::values::datetime::wall_time;

/// Names and what they stand for.
#[derive(Default)]
pub(crate) struct Statements {
    by_name: HashMap<String, Arc<PreparedStatement>>,
    /// Of those with names. Copied before it changes only while a cursor or another reader still has it.
    facts: Arc<StatementsFacts>,
}

/// What a prepared statement was made by.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Maker {
    /// `PREPARE`.
    Sql,
    /// A message of the client.
    Client,
}

impl Statements {
    pub(crate) fn get(&self, name: &str) -> Result<Arc<PreparedStatement>> {
        let missing = || SqlError::new("26000", format!("prepared statement \"{name}\" does not exist"));
        self.by_name.get(name).cloned().ok_or_else(missing)
    }

    pub(crate) fn add(
        &mut self,
        name: &str,
        prepared: PreparedStatement,
        maker: Maker,
    ) -> Result<Arc<PreparedStatement>> {
        if self.by_name.contains_key(name) {
            return Err(SqlError::new("42P05", format!("prepared statement \"{name}\" already exists")));
        }
        let prepared = Arc::new(prepared);
        if !name.is_empty() {
            let facts = StatementFacts {
                text: prepared.text().to_owned(),
                parameters: prepared.parameter_names(),
                is_of_sql: maker == Maker::Sql,
                made: wall_time(),
            };
            Arc::make_mut(&mut self.facts).insert(name.to_owned(), facts);
        }
        self.by_name.insert(name.to_owned(), prepared.clone());
        Ok(prepared)
    }

    pub(crate) fn remove(&mut self, name: &str) {
        self.by_name.remove(name);
        if !name.is_empty() {
            Arc::make_mut(&mut self.facts).remove(name);
        }
    }

    /// What the catalog says of those with names.
    pub(crate) fn facts(&self) -> Arc<StatementsFacts> {
        self.facts.clone()
    }
}
