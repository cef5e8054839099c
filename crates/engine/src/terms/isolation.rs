//! What a transaction promises, and how one is asked for.
use std::fmt;
use std::time::Duration;

/// What a transaction sees of others, by the names that PostgreSQL gives the levels.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Isolation {
    /// Each statement sees what was committed before it began. A writer waits for another one and goes on from the newest
    /// version.
    ReadCommitted,
    /// All statements see what was committed before the transaction began (PostgreSQL: REPEATABLE READ). A write on top of a
    /// version that the transaction does not see fails.
    #[default]
    Snapshot,
    /// As if transactions ran one after the other: a commit fails if what the transaction has read, rows and conditions
    /// alike, was changed by others since.
    Serializable,
}

impl fmt::Display for Isolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Isolation::ReadCommitted => "read committed",
            Isolation::Snapshot => "repeatable read",
            Isolation::Serializable => "serializable",
        })
    }
}

/// When a commit is acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Durability {
    /// When it is on disk, with every commit before it.
    #[default]
    Sync,
    /// At once; it is on disk some milliseconds later. Until then a crash may take it back, whole, with all that came after
    /// it. [`Database::is_durable`](crate::Database::is_durable) tells.
    Async,
    /// When it is on disk, with all commits that it depends on: those of the rows that it has read or changed. It
    /// does not wait for others, and survives without them. Pays where threads work on rows of their own, beside
    /// others that commit without waiting.
    Partition,
}

/// How a transaction is begun.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TransactionOptions {
    /// What it promises.
    pub isolation: Isolation,
    /// Whether it refuses to write.
    pub read_only: bool,
    /// How long it waits for a row that another transaction has locked; for ever if not given.
    pub lock_timeout: Option<Duration>,
    /// When its commit is acknowledged.
    pub durability: Durability,
    /// Whose it is, if the caller numbers those that use the database: what one waits for keeps all of its transactions. See
    /// [`Database::waits`](crate::Database::waits).
    pub session: Option<SessionNumber>,
    /// Whether what it changes looks at no foreign keys.
    pub ignores_references: bool,
}

/// One of those that use a database, by a number of the caller's.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct SessionNumber(pub std::num::NonZeroU32);

impl TransactionOptions {
    /// The defaults with an isolation level.
    pub fn at(isolation: Isolation) -> TransactionOptions {
        TransactionOptions { isolation, ..TransactionOptions::default() }
    }
}

/// The transactions that a locked row is kept from: PostgreSQL's four strengths, each keeping off all that the one
/// before does. An update takes [`NoKeyUpdate`](LockStrength::NoKeyUpdate), unless it sets a column of the primary
/// key or of a unique index of columns; that and a delete take [`Update`](LockStrength::Update).
///
/// ```text
/// waits for          KeyShare   Share   NoKeyUpdate   Update
/// KeyShare                                               x
/// Share                                       x          x
/// NoKeyUpdate                     x           x          x
/// Update                x         x           x          x
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum LockStrength {
    /// Keeps off transactions that end the row or change its key, or lock it for that.
    KeyShare,
    /// Keeps off transactions that change the row or lock it for a change.
    Share,
    /// Keeps off all transactions but those that share the row's key.
    NoKeyUpdate,
    /// Keeps off all transactions that change the row or lock it.
    Update,
}

impl LockStrength {
    /// Whether two transactions can't lock a row so at the same time.
    pub fn conflicts_with(self, other: LockStrength) -> bool {
        let (weaker, stronger) = (self.min(other), self.max(other));
        match weaker {
            LockStrength::KeyShare => stronger == LockStrength::Update,
            LockStrength::Share => stronger >= LockStrength::NoKeyUpdate,
            LockStrength::NoKeyUpdate | LockStrength::Update => true,
        }
    }
}

/// What to do about a row that another transaction has locked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LockWait {
    /// Wait until it is free.
    Block,
    /// Fail.
    NoWait,
    /// Go without it.
    SkipLocked,
}

/// What became of a row that was to be locked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RowLock {
    /// It is locked, as it was seen.
    Locked,
    /// It is locked, but newer than it was seen: look again.
    Stale,
    /// It was deleted.
    Gone,
    /// Another transaction has it, and nobody waits.
    Skipped,
}

/// What a batch of changes did.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Changed {
    /// how many rows were changed
    pub rows: u64,
    /// Rid words of rows that were not, as their newest version is newer than the view in which they were found. They are
    /// locked now: look at them again in a new view.
    pub stale: Vec<u64>,
    /// Rid words of rows that were not, as others have deleted them
    pub gone: Vec<u64>,
}
