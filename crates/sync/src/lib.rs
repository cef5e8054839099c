//! The building blocks of the concurrent parts of lstore: cells that swap under epochs, directories that only grow,
//! zeroed arrays of atomics, a small number for each thread, counters, threads that free for others, and latches; and what the process
//! has in memory. Latches that only figures use are in crate `latches`.
//!
//! Nothing here knows what a page or a transaction is. Readers of the cells and directories take no latch and write no
//! cache line that another thread reads, but for pinning their own epoch.
//!
//! All of it stands on the modules [`atomic`], [`zeroed`], [`blocking`], [`hint`], [`thread`] and [`cell`], through which a model
//! checker can take the place of `std`.

pub mod atomic;
pub mod blocking;
pub mod cell;
mod clock;
mod counter;
mod directory;
mod epoch;
pub mod hint;
pub mod latch;
mod late;
mod pause;
mod prefetch;
#[cfg(not(any(loom, shuttle)))]
pub mod process;
mod reclaimer;
#[cfg(not(loom))]
mod shared_lock;
mod sparse;
pub mod thread;
#[cfg(not(any(loom, shuttle)))]
mod thread_slot;
pub mod zeroed;

pub use clock::{Clock, SystemClock, VirtualClock};
pub use counter::{Counter, Counters, line_count};
pub use crossbeam_utils::atomic::AtomicCell;
pub use crossbeam_utils::{Backoff, CachePadded};
pub use directory::Directory;
#[cfg(not(any(loom, shuttle)))]
pub use epoch::await_readers;
pub use epoch::{EpochCell, Guard, drop_later, pin};
pub use latch::{Elidable, Latch, Latched, RwSpinLatch, SpinLatch, VersionLatch};
pub use late::Late;
pub use pause::Pause;
pub use prefetch::prefetch;
pub use reclaimer::{Reclaimer, free_handed_over};
#[cfg(not(loom))]
pub use shared_lock::{Exclusive, Shared, SharedLock};
pub use sparse::{PAGE_BYTES, SparseAtomics};
#[cfg(any(loom, shuttle))]
pub use thread::{number as thread_slot, number as writer_slot};
#[cfg(not(any(loom, shuttle)))]
pub use thread_slot::{thread_slot, writer_slot};
pub use zeroed::zeroed_atomics;
