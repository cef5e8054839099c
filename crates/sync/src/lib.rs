//! What the concurrent parts of lstore are built from: cells that swap under epochs, directories that only grow,
//! zeroed arrays of atomics, and a small number for each thread.
//!
//! Nothing here knows what a page or a transaction is. Readers of every structure in this crate take no latch and
//! write no cache line that another thread reads, but for pinning their own epoch.

mod directory;
mod epoch;
mod thread_slot;
mod zeroed;

pub use crossbeam_utils::{Backoff, CachePadded};
pub use directory::Directory;
pub use epoch::{EpochCell, Guard, pin};
pub use thread_slot::thread_slot;
pub use zeroed::zeroed_atomics;
