//! The durable transactional heap: Hathi (Saxena et al., DaMoN 2012) as a library of its own.
//!
//! A [`Heap`] is a long row of words in memory. Transactions read and write them, allocate blocks of them and free blocks,
//! from any number of threads at once, each as if alone; what they commit survives the crash of the process and the loss of
//! power. There is no other copy to keep in step: a data structure of the heap, such as [`HashTable`], is the one in
//! memory and the one on disk.
//!
//! ```
//! use std::sync::Arc;
//! use durability::{CommitMode, FsDevice};
//! use heap::{Heap, HeapError, HeapOptions, HeapRef};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let folder = folder.path();
//! let options = HeapOptions { words: 1 << 20, ..HeapOptions::default() };
//! let (heap, _) = Heap::open(Arc::new(FsDevice::new(folder)?), options)?;
//! heap.atomically(CommitMode::Sync, |tx| {
//!     let account = tx.pmalloc(2)?;
//!     tx.write(account, 100)?;
//!     tx.set_root(0, account)?;
//!     Ok::<_, HeapError>(())
//! })?;
//! heap.close()?;
//!
//! let (heap, _) = Heap::open(Arc::new(FsDevice::new(folder)?), options)?;
//! let balance = heap.atomically(CommitMode::Async, |tx| {
//!     let account = tx.root(0)?;
//!     tx.read(account)
//! })?;
//! assert_eq!(balance, 100);
//! # Ok(())
//! # }
//! ```
//!
//! ```text
//!   Transaction: read, write, pmalloc, pfree, commit(mode), abort
//!        |                              |                                    Heap::checkpoint
//!        v                              v                                          |
//!   +---------------------------+   +---------------------------+                  v
//!   | words, ownership records, |   | redo log, a partition for |       +---------------------+
//!   | clock = LSN   (memory)    |   | each worker    (crate)    |       | two files of chunks |
//!   +---------------------------+   +---------------------------+       +---------------------+
//! ```
//!
//! | module | what it owns |
//! |---|---|
//! | `words` | where the words lie, and snapshots of them |
//! | `memory`, `sets`, `backoff` | the words under software transactional memory; what a transaction has read and will write |
//! | `transaction` | the life of a transaction; the order of memory and log at its commit |
//! | `allocator`, `reference` | which words belong to which block; names of words |
//! | `redo` | the bytes of a transaction in the log |
//! | `checkpoint`, `image`, `recover` | Algorithm 1; the bytes of a checkpoint; opening |
//! | `error` | what can go wrong |
//! | `hash_table` | the paper's example, a table of words by words |
//!
//! The promises, and the tests that check them:
//! 1. Transactions are serializable in the order of their LSNs, and see one moment even if they are bound to fail
//!    (`tests/history.rs`, the models in `model`).
//! 2. A commit that its mode has acknowledged survives power loss at any step, and no commit is there in half
//!    (`tests/crash.rs`).
//! 3. A heap that is opened again holds the same words (`tests/heap.rs`, `tests/crash.rs`).
//! 4. Damage is refused, or made good from the other checkpoint, and told (`tests/damage.rs`).
//!
//! The paper's workloads (random words, the hash table, STAMP's vacation) and its figures are in `lab::heap`.
#![forbid(unsafe_code)]

mod allocator;
mod backoff;
mod checkpoint;
mod error;
mod hash_table;
mod image;
mod memory;
#[cfg(all(test, loom))]
mod model;
mod recover;
mod redo;
mod reference;
mod sets;
mod transaction;
mod words;

use std::sync::Arc;
use std::time::Duration;

use durability::{CommitMode, Device, Log, LogError, LogOptions, LogStats, Lsn, device_error};
use parking_lot::Mutex;
use sync::{Counters, Pause};

pub use checkpoint::FinishedCheckpoint;
pub use error::{HeapError, HeapResult};
pub use hash_table::HashTable;
pub use recover::HeapRecovered;
pub use reference::HeapRef;
pub use transaction::{CommittedTransaction, Transaction};
pub use words::CheckpointCopy;

use allocator::{Allocator, BLOCKS_START};
use backoff::{Backoff, RightOfWay};
use checkpoint::{Checkpointer, Checkpoints};
use memory::{Memory, STRIPE_WORDS};

/// The sizes of a heap. They may differ from one opening to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeapOptions {
    /// How many words of 8 bytes the heap may hold. The system gives memory to those that are used only.
    pub words: u64,
    /// Words in a chunk of a checkpoint, rounded up to whole stripes of ownership.
    pub chunk_words: u64,
    /// How a checkpoint gets its copy of the words.
    pub checkpoint_copy: CheckpointCopy,
    /// Takes a checkpoint from time to time. `None`: only [`Heap::checkpoint`] does.
    pub checkpoint_interval: Option<Duration>,
    /// The log: its partitions, buffers and the interval of its group commit.
    pub log: LogOptions,
}

impl Default for HeapOptions {
    /// A gigabyte; log buffers and group commit as in the paper (section 5): 512 KB and 10 ms.
    fn default() -> HeapOptions {
        HeapOptions {
            words: 1 << 27,
            chunk_words: 1 << 13,
            checkpoint_copy: CheckpointCopy::default(),
            checkpoint_interval: None,
            log: LogOptions { buffer_bytes: 512 << 10, ..LogOptions::default() },
        }
    }
}

/// Counts of a heap's work since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeapStats {
    /// Transactions that have committed writes, and those that have only read.
    pub commits: u64,
    /// Transactions that ended without having written.
    pub read_only: u64,
    /// Conflicts; most transactions were begun again after it.
    pub conflicts: u64,
    /// Conflicts that were met when the LSN was taken already.
    pub voids: u64,
    /// Checkpoints taken.
    pub checkpoints: u64,
    /// Words that were ever given out.
    pub words: u64,
    /// The counts of the log.
    pub log: LogStats,
}

/// Places in the counters.
#[derive(Clone, Copy)]
pub(crate) enum Count {
    Commits,
    ReadOnly,
    Conflicts,
    Voids,
    Checkpoints,
}

const COUNTS: usize = Count::Checkpoints as usize + 1;

/// The state that transactions and the thread of checkpoints share.
pub(crate) struct HeapState {
    pub(crate) memory: Memory,
    pub(crate) allocator: Allocator,
    /// None where nothing is durable.
    pub(crate) log: Option<Log>,
    pub(crate) device: Option<Arc<dyn Device>>,
    pub(crate) checkpoints: Mutex<Checkpoints>,
    pub(crate) chunk_words: u64,
    pub(crate) right_of_way: RightOfWay,
    pub(crate) counts: Counters<COUNTS>,
}

/// A durable transactional heap. Share it between threads by reference or `Arc`.
pub struct Heap {
    // Its thread ends before the log is closed.
    checkpointer: Option<Checkpointer>,
    shared: Arc<HeapState>,
}

impl Heap {
    /// How many roots there are; they are numbered from 0.
    pub const ROOTS: usize = 63;

    /// Opens the heap on `device`, creating it if there is none: the newest checkpoint, then the log.
    ///
    /// # Errors
    /// - [`HeapError::TooSmall`] if the heap holds words beyond [`HeapOptions::words`].
    /// - [`HeapError::UnknownVersion`] if a checkpoint has another format; [`HeapError::NotABlock`] if a block's
    ///   header is damaged.
    /// - [`HeapError::Log`] with all that [`Log::open`] fails with, and with [`LogError::Corrupt`] if the log and the
    ///   newest whole checkpoint do not reach each other, or the log is not that of a heap.
    pub fn open(device: Arc<dyn Device>, options: HeapOptions) -> HeapResult<(Heap, HeapRecovered)> {
        let options = checked(options);
        let opened = recover::open(&device, &options)?;
        let allocator = Allocator::find(&opened.memory, opened.end)?;
        let location = device.location();
        let shared = Arc::new(HeapState {
            memory: opened.memory,
            allocator,
            log: Some(opened.log),
            device: Some(device),
            checkpoints: Mutex::new(opened.checkpoints),
            chunk_words: options.chunk_words,
            right_of_way: RightOfWay::default(),
            counts: Counters::default(),
        });
        let start = |interval| Checkpointer::start(&shared, interval);
        let checkpointer = options.checkpoint_interval.map(start).transpose();
        let fail = |source| device_error("start the thread of checkpoints".to_string(), location, source);
        let checkpointer = checkpointer.map_err(fail)?;
        Ok((Heap { shared, checkpointer }, opened.recovered))
    }

    /// A heap without log and checkpoints: transactional memory alone, which is gone with its process. Commits of every
    /// mode return at once.
    pub fn volatile(options: HeapOptions) -> Heap {
        let options = checked(options);
        let memory = Memory::plain(options.words);
        let allocator = Allocator::empty(&memory);
        let shared = HeapState {
            memory,
            allocator,
            log: None,
            device: None,
            checkpoints: Mutex::default(),
            chunk_words: options.chunk_words,
            right_of_way: RightOfWay::default(),
            counts: Counters::default(),
        };
        Heap { shared: Arc::new(shared), checkpointer: None }
    }

    /// Begins a transaction. After [`HeapError::Conflict`] the caller has to begin anew, which [`Heap::atomically`]
    /// does by itself.
    pub fn begin(&self) -> Transaction<'_> {
        Transaction::begin(&self.shared)
    }

    /// Runs a transaction until it commits, and waits for what the mode promises; see [`Transaction::commit`]. Where
    /// `body` fails, for another reason than a conflict, nothing has happened.
    ///
    /// `body` may run several times, and should do nothing that cannot be repeated. It gets through however many others
    /// commit beside it: after some conflicts they let it go first.
    ///
    /// # Errors
    /// What `body` fails with, unless it met a conflict. As [`Transaction::commit`] otherwise, but no
    /// [`HeapError::Conflict`]: then it runs again.
    pub fn atomically<T, E: From<HeapError>>(
        &self,
        mode: CommitMode,
        body: impl FnMut(&mut Transaction<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let (value, committed) = self.atomically_split_phase(mode, body)?;
        self.wait(&committed)?;
        Ok(value)
    }

    /// Runs a transaction as [`atomically`](Self::atomically) does, without the wait: the first half of a
    /// split-phase commit. [`Heap::wait`] or [`Heap::is_stable`] is the other.
    ///
    /// # Errors
    /// As [`atomically`](Self::atomically), but for failures to make the commit durable.
    pub fn atomically_split_phase<T, E: From<HeapError>>(
        &self,
        mode: CommitMode,
        mut body: impl FnMut(&mut Transaction<'_>) -> Result<T, E>,
    ) -> Result<(T, CommittedTransaction), E> {
        let mut backoff = None;
        let mut transaction = self.begin();
        loop {
            let result = body(&mut transaction);
            if !transaction.is_doomed() {
                let value = result?;
                match transaction.try_commit(mode) {
                    Ok(committed) => return Ok((value, committed)),
                    Err(HeapError::Conflict) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            let right = &self.shared.right_of_way;
            backoff.get_or_insert_with(|| Backoff::new(right, sync::thread_slot())).wait();
            transaction.restart();
        }
    }

    /// Waits for what the mode of a commit promises.
    ///
    /// # Errors
    /// [`HeapError::Log`] if the log has failed, or the disk is full: then it is not known whether the commit
    /// survives a crash.
    pub fn wait(&self, committed: &CommittedTransaction) -> HeapResult<()> {
        self.shared.wait(committed)
    }

    /// Whether all commits up to `lsn` survive a crash (Hathi's `isStable`); with `wait` it waits until they do.
    ///
    /// # Errors
    /// [`HeapError::Log`] if it waits, and the log has failed or was never given `lsn`.
    pub fn is_stable(&self, lsn: Lsn, wait: bool) -> HeapResult<bool> {
        if wait {
            self.shared.wait_stable(lsn)?;
        }
        Ok(lsn <= self.shared.stable_lsn())
    }

    /// The LSN up to which all commits survive a crash (Hathi's `min_lsn`).
    pub fn stable_lsn(&self) -> Lsn {
        self.shared.stable_lsn()
    }

    /// The last LSN taken.
    pub fn last_lsn(&self) -> Lsn {
        self.shared.memory.now()
    }

    /// Takes a checkpoint beside running transactions, and gives up the log that it makes needless. `None` where the heap has
    /// no log.
    ///
    /// # Errors
    /// [`HeapError::Log`] if the device or the log fails; the checkpoint before is whole then, and the log still
    /// reaches back to it.
    pub fn checkpoint(&self) -> HeapResult<Option<FinishedCheckpoint>> {
        match (&self.shared.log, &self.shared.device) {
            (Some(log), Some(device)) => self.shared.checkpoint(log, &**device).map(Some),
            _ => Ok(None),
        }
    }

    /// How many words the heap may hold.
    pub fn size_words(&self) -> u64 {
        self.shared.memory.size_words()
    }

    /// The counts since opening.
    pub fn stats(&self) -> HeapStats {
        let sum = |count: Count| self.shared.counts.sum(count as usize);
        HeapStats {
            commits: sum(Count::Commits),
            read_only: sum(Count::ReadOnly),
            conflicts: sum(Count::Conflicts),
            voids: sum(Count::Voids),
            checkpoints: sum(Count::Checkpoints),
            words: self.shared.allocator.frontier(),
            log: self.shared.log.as_ref().map_or_else(LogStats::default, Log::stats),
        }
    }

    /// Flushes, and marks the end of the log as intended. Without it the heap is flushed as well as possible when it is
    /// dropped.
    ///
    /// # Errors
    /// [`HeapError::Log`] if the last commits could not be made durable, or the end not be marked.
    pub fn close(self) -> HeapResult<()> {
        let Heap { checkpointer, shared } = self;
        drop(checkpointer);
        match Arc::into_inner(shared).and_then(|shared| shared.log) {
            Some(log) => Ok(log.close()?),
            None => Ok(()),
        }
    }
}

impl HeapState {
    pub(crate) fn stable_lsn(&self) -> Lsn {
        self.log.as_ref().map_or(Lsn::MAX, Log::stable_lsn)
    }

    pub(crate) fn wait(&self, committed: &CommittedTransaction) -> HeapResult<()> {
        match (&self.log, &committed.appended) {
            (Some(log), Some(appended)) => Ok(log.wait(appended)?),
            (Some(_), None) if committed.mode == CommitMode::Sync => self.wait_stable(committed.lsn),
            _ => Ok(()),
        }
    }

    /// Waits until everything up to `lsn` is stable.
    pub(crate) fn wait_stable(&self, lsn: Lsn) -> HeapResult<()> {
        let Some(log) = &self.log else {
            return Ok(());
        };
        let mut pause = Pause::default();
        loop {
            match log.wait_stable(lsn) {
                // It was taken, and its thread is about to append it.
                Err(LogError::NotAppended { .. }) if lsn <= self.memory.now() => pause.wait(),
                result => return Ok(result?),
            }
        }
    }
}

impl std::fmt::Debug for Heap {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Heap").field("memory", &self.shared.memory).field("stats", &self.stats()).finish()
    }
}

fn checked(options: HeapOptions) -> HeapOptions {
    HeapOptions {
        words: options.words.clamp(BLOCKS_START + 1, redo::WORDS_MAX),
        chunk_words: options.chunk_words.clamp(1, 1 << 24).next_multiple_of(STRIPE_WORDS),
        ..options
    }
}
