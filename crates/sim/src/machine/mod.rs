//! The machine: caches, the directory that keeps them coherent, hardware transactions, and the clock of each thread.
//!
//! ```text
//! config        shapes, costs, placement of threads
//! cache         one cache
//! state         all there is: words, lines, caches, threads
//! access        what an access to a line costs, and what it does to the caches of others
//! transactions  read and write sets, conflicts, rolling back
//! steps         the steps of a thread: loads, stores, waiting, transactions
//! ```

mod access;
mod cache;
mod config;
mod state;
mod steps;
mod transactions;

pub use cache::{Cache, LineNumber};
pub use config::{CacheShape, Core, Latencies, MachineConfig, Pinning, Transactions};
pub use state::{Aborted, Address, Counters, LINE_WORDS, Machine};
pub use steps::Step;
