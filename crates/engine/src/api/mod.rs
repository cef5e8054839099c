//! What a caller does with a database: the methods of [`Database`](crate::Database), by subject.
//!
//! Imports all other rooms; no room imports it.
//!
//! | module | subject |
//! |---|---|
//! | `open` | opening, beginning transactions, snapshots, merging on demand |
//! | `statements`, `retry` | changes of the catalog as one statement each; work that is tried again after a conflict |
//! | `names`, `past`, `running` | names as a snapshot sees them; their past; the transactions that run |
//! | `disk`, `durable` | checkpoints and archiving on demand; whether a commit is on disk |
//! | `backup` | a copy in another directory; bringing a database to a moment |
//! | `inspect`, `verify` | looking at the files of a database; whether all of it is whole |
//! | `memory` | what the tables take, and the limit |
mod backup;
pub(crate) mod disk;
pub(crate) mod durable;
pub(crate) mod inspect;
mod memory;
pub(crate) mod names;
pub(crate) mod open;
mod past;
pub(crate) mod retry;
mod running;
pub(crate) mod statements;
pub(crate) mod verify;
