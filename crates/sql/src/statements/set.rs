//! The statements about settings: `SET`, `RESET`, `SHOW` and `ALTER DATABASE`.
use datafusion::sql::sqlparser::ast::{Ident, Reset, Set};
use engine::Transaction;

use crate::error::{Result, SqlError};
use crate::interrupt::session_zone::ZoneScope;
use crate::names::tables::CATALOG;
use crate::parsing::alter_database::{self, AlterDatabase};
use crate::session::Session;
use crate::state::database_settings::{MEMORY_LIMIT, PREFIX, key, with_memory_limit};
use crate::state::outcome::{Command, Notice, Rows, texts};
use crate::state::setting_values::Change;
use crate::state::settings::Settings;
use crate::values::wire::encodings::Encoding;

impl Session {
    /// Sets a setting by its name, for the block only if that is asked.
    pub(crate) fn set_named(&mut self, name: &str, value: &str, is_local: bool) -> Result<String> {
        let change = self.settings.assign_named(name, value, is_local)?;
        self.finish_set(change)?;
        let shown = self.setting(name).unwrap_or_default();
        if is_local && self.block.is_none() {
            self.settings.end_local();
        }
        Ok(shown)
    }

    /// Runs `SET`.
    pub(crate) fn set(&mut self, set: &Set) -> Result<Command> {
        let change = self.settings.set(set)?;
        self.finish_set(change)?;
        let command = Command::new("SET");
        match Settings::is_local(set) && self.block.is_none() {
            true => {
                self.settings.end_local();
                let message = "SET LOCAL can only be used in transaction blocks";
                Ok(command.with_notice(Notice::warning("25P01", message)))
            }
            false => Ok(command),
        }
    }

    /// A mode of the running transaction is the block's to set; outside of one it would end with this statement.
    pub(crate) fn finish_set(&mut self, change: Change) -> Result<()> {
        if let Change::Modes(modes) = change {
            self.set_transaction(modes)?;
        }
        Ok(())
    }

    pub(crate) fn show(&self, words: &[Ident]) -> Result<Rows> {
        let shown = self.settings.show(words, self.modes())?;
        match &shown[..] {
            [(name, value)] if words.len() > 1 || !words[0].value.eq_ignore_ascii_case("all") => {
                texts(&[spelled(name)], vec![vec![value.clone()]])
            }
            _ => {
                let (names, values) = shown.into_iter().unzip();
                texts(&["name", "setting"], vec![names, values])
            }
        }
    }

    /// Has the thread read and write times in the zone and style of the session, as its statements do, until what is returned is dropped.
    pub fn in_zone(&self) -> ZoneScope {
        ZoneScope::of(self.settings.times())
    }

    /// The value of a setting, as `SHOW` gives it.
    pub fn setting(&self, name: &str) -> Option<String> {
        let shown = self.settings.show(&[Ident::new(name)], self.modes()).ok()?;
        shown.into_iter().next().map(|(_, value)| value)
    }

    /// A number that is another one once a setting may have changed, other than the modes of the running transaction.
    pub fn settings_turn(&self) -> u64 {
        self.settings.turn()
    }

    /// The encoding of the client, where it is one of one byte a character.
    pub fn client_encoding(&self) -> Option<&'static Encoding> {
        self.settings.encoding()
    }

    /// Sets a setting of the session, as `SET` does.
    ///
    /// # Errors
    /// If there is no such setting, or not with this value.
    pub fn set_setting(&mut self, name: &str, value: &str) -> Result<(), SqlError> {
        let change = self.settings.assign_named(name, value, false)?;
        self.finish_set(change)
    }
}

/// The name of a setting as PostgreSQL spells it above its value.
fn spelled(name: &str) -> &str {
    match name {
        "datestyle" => "DateStyle",
        "intervalstyle" => "IntervalStyle",
        "timezone" => "TimeZone",
        name => name,
    }
}

/// Runs `ALTER DATABASE`.
pub(crate) fn alter_database(session: &mut Session, alter: &AlterDatabase) -> Result<Command> {
    if alter.database != CATALOG {
        let message = format!("database \"{}\" does not exist", alter.database);
        let hint = format!("The one database here is called \"{CATALOG}\".");
        return Err(SqlError::new("3D000", message).at(alter.position).hint(hint));
    }
    let changed = session
        .write("ALTER DATABASE", |session, write| remember(&session.settings, write.transaction, &alter.change))?;
    let command = Command::new("ALTER DATABASE");
    if !changed.contains(&key(MEMORY_LIMIT)) {
        return Ok(command);
    }
    match &mut session.block {
        Some(block) => {
            block.alter_memory_limit();
            Ok(command)
        }
        None => Ok(with_memory_limit(&session.db, command)),
    }
}

/// Has the database remember a change; returns what it is about.
fn remember(
    settings: &Settings,
    transaction: &mut Transaction,
    change: &alter_database::Change,
) -> Result<Vec<String>> {
    let changed = match change {
        alter_database::Change::Set(set) => {
            let (name, value) = settings.for_a_database(set)?;
            transaction.remember(&key(&name), value.as_deref())?;
            return Ok(vec![key(&name)]);
        }
        alter_database::Change::Reset(Reset::ConfigurationParameter(name)) => {
            vec![key(Settings::check_name(&name.to_string().to_lowercase())?)]
        }
        alter_database::Change::Reset(Reset::ALL) => {
            transaction.remembered()?.into_keys().filter(|name| name.starts_with(PREFIX)).collect()
        }
    };
    for name in &changed {
        transaction.remember(name, None)?;
    }
    Ok(changed)
}
