//! The prepared statements of a session, by their names.
use std::collections::HashMap;
use std::sync::Arc;

use crate::error::{Result, SqlError};
use crate::session::prepared::PreparedStatement;

/// Names and what they stand for.
#[derive(Default)]
pub(crate) struct Statements {
    by_name: HashMap<String, Arc<PreparedStatement>>,
}

impl Statements {
    pub(crate) fn get(&self, name: &str) -> Result<Arc<PreparedStatement>> {
        let missing = || SqlError::new("26000", format!("prepared statement \"{name}\" does not exist"));
        self.by_name.get(name).cloned().ok_or_else(missing)
    }

    pub(crate) fn add(&mut self, name: &str, prepared: PreparedStatement) -> Result<Arc<PreparedStatement>> {
        if self.by_name.contains_key(name) {
            return Err(SqlError::new("42P05", format!("prepared statement \"{name}\" already exists")));
        }
        let prepared = Arc::new(prepared);
        self.by_name.insert(name.to_owned(), prepared.clone());
        Ok(prepared)
    }

    pub(crate) fn remove(&mut self, name: &str) {
        self.by_name.remove(name);
    }
}
