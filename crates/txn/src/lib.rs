//! Transactions: who began, who committed when, who sees what, and who waits for whom.
#![forbid(unsafe_code)]

mod bell;
mod commit;
mod deadlock;
mod list;
mod queue;
mod snapshots;
mod table;
mod waits;

pub use commit::Doomed;
pub use list::{Running, WaitCounts, Waiting};
pub use queue::Place;
pub use table::{Handle, State, TooManyTransactions, TransactionTable};
pub use waits::{RowName, WaitError};
