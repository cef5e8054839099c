//! Transactions: ids, states, commit timestamps, snapshots, visibility, and waiting for other transactions.
//!
//! A [`TransactionTable`] gives transactions their ids, keeps their state while another transaction may ask for it,
//! hands out commit timestamps, and lets transactions depend on each other and wait for each other. It knows
//! nothing of rows: the engine stamps what a transaction wrote, and supplies the names of the rows that
//! transactions wait for.
//!
//! | module | what it owns |
//! |---|---|
//! | `table` | slots, ids, states |
//! | `snapshots` | the clock as readers see it, the snapshots in use |
//! | `number` | the first steps of a commit: it is announced, and takes its timestamp |
//! | `commit` | the other steps of a commit, commit dependencies |
//! | `release` | the end: the slot is free again |
//! | `waits`, `bell` | waiting for a transaction to end, sleeping and waking |
//! | `queue` | the order of transactions that wait for the same row |
//! | `deadlock` | circles of waits, their victims |
//! | `uses` | which tables a transaction writes to |
//! | `list` | what runs now, counts |
//!
//! **Commit** without a latch:
//!
//! ```text
//! start_commit        state <- committing          readers that ask from here on wait for the next steps
//! next_timestamp      at <- clock + 1, atomically  (the caller may do this under the log's latch, so that the order of
//!                                                   timestamps is the order of the log)
//! prepare             state <- prepared(at)        only if it may still fail: readers whose snapshot includes `at` see
//!                                                   its versions, and depend on it
//!   validation, await_dependencies
//! finish_commit       state <- committed(at)       visible to every snapshot at or after `at`; waiters go on
//! release             the slot is free             once everything that it wrote is stamped
//! ```
//!
//! A reader whose snapshot was taken at time t and that finds a transaction active knows that it will commit after t:
//! had the clock been advanced before the snapshot, the state would have been committing before it. So one compare of
//! a Start Time word, and in the rare case one look here, decide visibility (DESIGN, "Transactions"; the transaction
//! table of the L-Store report). A reader that finds it prepared, at or before t, sees what it wrote if
//! [`depend`](TransactionTable::depend) says yes; otherwise it asks again, as it is decided.
//!
//! **Ids** are made by the slots: a number of uses of its own for each, so that beginning a transaction writes the
//! slot's line and no other. A thread finds the slot again that it used last, and its line in its own cache; there is no
//! counter that all processors share, and ids need no order among each other.
//!
//! **Commit timestamps** come from one counter, one `fetch_add` for each transaction that wrote something. Blocks
//! of numbers for each thread, or the processors' clocks, would avoid contention on that cache line, but the
//! numbers would no longer be dense and in order. Three properties rest on that: one compare with a snapshot
//! decides visibility; the order of visibility is the order of the log, so that no transaction sees a state that
//! recovery does not pass through; and a gap in the log is recognized as one. The counter limits writing
//! transactions to the rate at which a cache line can change hands: tens of millions of times a second between
//! cores without a common cache, and hundreds of millions within one. That is far above what the rest of a writing
//! transaction allows, as its log frame is appended under a latch. The counter lies in a cache line of its own,
//! which readers only read.
#![forbid(unsafe_code)]

mod bell;
mod commit;
mod deadlock;
mod list;
mod number;
mod queue;
mod release;
mod snapshots;
mod table;
mod uses;
mod waits;

pub use commit::Doomed;
pub use list::{RunningTransaction, WaitCounts, WaitOfTransaction};
pub use queue::QueuePlace;
pub use table::{Handle, TooManyTransactions, TransactionState, TransactionTable};
pub use waits::{Part, RowName, WaitError};
