//! The settings that the sessions of a database begin with, as the database remembers them: texts, by the names of the settings
//! after a prefix (`engine`'s `remembered`). `ALTER DATABASE` (`alter_database`) sets them.
//!
//! `memory_limit` is not a session's but the database's: it holds for all from the commit on, and when the database is opened
//! again. A session that has committed one reads what is remembered by then and sets it, one after the other, so that the
//! limit in force is that of the newest commit.
use engine::Database;
use parking_lot::Mutex;

use crate::error::{Result, SqlError};
use crate::names::made_collations;
use crate::state::memory_limit;
use crate::state::outcome::{Command, Notice};

/// Before the names of settings among all that a database remembers.
pub(crate) const PREFIX: &str = "setting ";
pub(crate) const MEMORY_LIMIT: &str = "memory_limit";

/// The memory limit that was committed takes effect. Where it can't be read the commit stands all the same, and a warning
/// tells of it.
pub(crate) fn with_memory_limit(db: &Database, command: Command) -> Command {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _turn = ONE_AT_A_TIME.lock();
    match remembered_memory_limit(db) {
        Ok(limit) => {
            db.set_memory_limit_bytes(limit.unwrap_or_else(|| db.memory_limit_at_opening_bytes()));
            command
        }
        Err(error) => {
            let message = format!("the memory limit takes effect at the next opening: {}", error.message);
            command.with_notice(Notice::warning(error.sqlstate, message))
        }
    }
}

/// The name under which a database remembers a setting.
pub(crate) fn key(name: &str) -> String {
    format!("{PREFIX}{name}")
}

/// The settings, by name, that a database gives its sessions to begin with.
pub(crate) fn remembered(db: &Database) -> Result<Vec<(String, String)>> {
    let all = db.remembered()?;
    if all.keys().any(|name| made_collations::is_key(name)) {
        made_collations::introduce();
    }
    let all = all.into_iter();
    Ok(all.filter_map(|(name, value)| Some((name.strip_prefix(PREFIX)?.to_owned(), value))).collect())
}

/// The limit of memory that a database is to begin with, if it has been given one by `ALTER DATABASE`: some bytes, or none.
///
/// # Errors
/// What it remembers can't be read.
pub fn remembered_memory_limit(db: &Database) -> Result<Option<Option<u64>>, SqlError> {
    let found = remembered(db)?.into_iter().find(|(name, _)| name == MEMORY_LIMIT);
    Ok(found.and_then(|(_, value)| memory_limit::parse(&value).ok()))
}
