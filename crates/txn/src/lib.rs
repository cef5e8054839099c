//! Transactions: who began, who committed when, and who sees what.
//!
//! A [`TransactionTable`] gives transactions their ids, keeps their state while anybody may ask for it, and hands out
//! commit timestamps. It knows nothing of rows: the engine stamps what a transaction wrote.
//!
//! **Commit** in three steps, without a latch:
//!
//! ```text
//! committing   state <- Committing             readers that ask from here on wait for the next step
//! timestamp    at <- clock + 1, atomically     (the caller may do this under the log's latch, so that the order of
//!                                               timestamps is the order of the log)
//! committed    state <- Committed(at)          visible to every snapshot at or after `at`
//! ```
//!
//! A reader whose snapshot was taken at time t and that finds a transaction active knows that it will commit after t:
//! had the clock been advanced before the snapshot, the state would have been Committing before it. So one compare of
//! a Start Time word, and in the rare case one look here, decide visibility (DESIGN, "Transactions"; the transaction
//! table of the L-Store report).
#![forbid(unsafe_code)]

mod table;

pub use table::{Handle, State, TooManyTransactions, TransactionTable};
