//! `SET CONSTRAINTS`: when a transaction looks at its foreign keys and those UNIQUE constraints that may be put off.
use engine::Transaction;

use crate::error::{Result, SqlError};
use crate::names::schemas::local;
use crate::session::Session;
use crate::state::outcome::{Command, Notice};
use crate::state::settings::Limit;

impl Session {
    /// Puts the checks of constraints off to the end of the transaction, or does them now: of all, or of those with these names.
    pub(crate) fn set_constraints(&mut self, names: Option<&[String]>, deferred: bool) -> Result<Command> {
        let command = Command::new("SET CONSTRAINTS");
        let Some(mut block) = self.block.take() else {
            let message = "SET CONSTRAINTS can only be used in transaction blocks";
            return Ok(command.with_notice(Notice::warning("25P01", message)));
        };
        let done = block.transaction(&self.db, &self.token).and_then(|transaction| {
            transaction.set_lock_timeout(self.settings.limit(Limit::Lock));
            names.unwrap_or_default().iter().try_for_each(|name| check_deferrable(transaction, name))?;
            Ok(transaction.set_constraints(names, deferred)?)
        });
        self.block = Some(block);
        done.map(|()| command)
    }
}

fn check_deferrable(transaction: &Transaction, name: &str) -> Result<()> {
    let mut found = None;
    for table in transaction.table_names() {
        let table = transaction.table(&table)?;
        let key = transaction.settings(&table).foreign_keys.into_iter().find(|key| key.name == name);
        let of_index = |index: &engine::Index| {
            let definition = index.definition();
            (definition.is_constraint && local(&definition.name) == name).then_some(definition.deferral.is_some())
        };
        let is_primary =
            table.primary_index().is_some() && name == local(&transaction.settings(&table).name_of_key(table.name()));
        found = found
            .or(key.map(|key| key.deferrable))
            .or_else(|| transaction.indexes(&table).iter().find_map(of_index))
            .or(is_primary.then_some(false));
    }
    match found {
        Some(true) => Ok(()),
        Some(false) => Err(SqlError::new("42809", format!("constraint \"{name}\" is not deferrable"))),
        None => Err(SqlError::new("42704", format!("constraint \"{name}\" does not exist"))),
    }
}
