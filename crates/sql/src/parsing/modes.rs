//! The modes of a transaction: its isolation level, whether it only reads, whether it may wait to begin.
use std::fmt;

use engine::Isolation;

/// The levels by SQL's names. Each protects from what the ones before it do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IsolationLevel {
    /// Taken for READ COMMITTED, as in PostgreSQL: uncommitted rows are never read.
    ReadUncommitted,
    ReadCommitted,
    RepeatableRead,
    Serializable,
}

/// The levels with their names, in the order in which PostgreSQL lists them.
const LEVELS: [(IsolationLevel, &str); 4] = [
    (IsolationLevel::Serializable, "serializable"),
    (IsolationLevel::RepeatableRead, "repeatable read"),
    (IsolationLevel::ReadCommitted, "read committed"),
    (IsolationLevel::ReadUncommitted, "read uncommitted"),
];

impl IsolationLevel {
    /// The level of this name.
    pub(crate) fn named(name: &str) -> Option<IsolationLevel> {
        LEVELS.iter().find(|(_, known)| known.eq_ignore_ascii_case(name)).map(|(level, _)| *level)
    }

    /// The names of all levels, for the message about an unknown one.
    pub(crate) fn names() -> String {
        LEVELS.map(|(_, name)| name).join(", ")
    }

    /// The isolation level for the engine.
    pub(crate) fn isolation(self) -> Isolation {
        match self {
            IsolationLevel::ReadUncommitted | IsolationLevel::ReadCommitted => Isolation::ReadCommitted,
            IsolationLevel::RepeatableRead => Isolation::Snapshot,
            IsolationLevel::Serializable => Isolation::Serializable,
        }
    }
}

impl fmt::Display for IsolationLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = LEVELS.iter().find(|(level, _)| level == self).map_or("", |(_, name)| name);
        f.write_str(name)
    }
}

/// The modes of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Modes {
    pub(crate) isolation: IsolationLevel,
    pub(crate) is_read_only: bool,
    /// Changes nothing: where PostgreSQL would wait for a snapshot without danger, any snapshot here is one.
    pub(crate) is_deferrable: bool,
}

impl Modes {
    /// The modes of a transaction in a new session.
    pub(crate) const DEFAULT: Modes =
        Modes { isolation: IsolationLevel::ReadCommitted, is_read_only: false, is_deferrable: false };

    /// Adds to these modes what a statement asks for.
    pub(crate) fn with(self, asked: AskedModes) -> Modes {
        Modes {
            isolation: asked.isolation.unwrap_or(self.isolation),
            is_read_only: asked.is_read_only.unwrap_or(self.is_read_only),
            is_deferrable: asked.is_deferrable.unwrap_or(self.is_deferrable),
        }
    }
}

/// The modes that a statement names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct AskedModes {
    pub(crate) isolation: Option<IsolationLevel>,
    pub(crate) is_read_only: Option<bool>,
    pub(crate) is_deferrable: Option<bool>,
}
