//! More data than memory: pages go to the blobs of checkpoints that have them, and come back when they are read.
//!
//! ```text
//! in use, of the memory limit
//!   above 50%   no copies are made: point rows, columns that wait for the first merge of their range (`transaction/put_off.rs`)
//!   above 85%   columns that wait are given up; the merge pool evicts down to 75%, many times a second; threads that read pages back help
//!               where pages stay only because no checkpoint has them, the next checkpoint comes early
//!   above 100%  not counting what is evicted and still being read, which is a quarter of the limit for long at most:
//!               a statement that needs memory evicts; takes a checkpoint and evicts; merges, takes a checkpoint and
//!               evicts; waits for readers of what merges have replaced, and for other transactions to end; and then fails
//! ```
//!
//! Base pages, meta-data pages and history pages can be evicted (see `lineage`'s `evict`); insert and tail pages
//! become such by merges. Of an index that was opened as an image its blocks can go, but not what has come to it since
//! (`keys/blocks.rs`); Indirection and other indexes stay. A database in memory has nowhere to evict to.
use std::thread;
use std::time::{Duration, Instant};

use crate::background::merger;
use crate::database::shared::DatabaseState;
use crate::error::{Error, Result};
use crate::state::table_data::TableData;

/// How long a statement waits for readers of pages that were evicted or replaced.
const READERS_MAX: Duration = Duration::from_secs(1);
/// The shortest time between two attempts to reclaim memory, where the first was in vain.
const BETWEEN_RECLAIMS: Duration = Duration::from_millis(100);
/// How long a statement waits for other transactions to end before it fails.
const PATIENCE: Duration = Duration::from_secs(5);
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);

impl DatabaseState {
    /// Refuses what needs memory when the limit is reached and nothing helps: evicting, checkpoints, merging, giving up
    /// history.
    #[inline]
    pub(crate) fn check_memory(&self) -> Result<()> {
        if self.core.budget.is_within_limit() { Ok(()) } else { self.make_room() }
    }

    /// Refuses what needs memory for a table: nothing for one that serves the database itself.
    #[inline]
    pub(crate) fn check_memory_of(&self, table: &TableData) -> Result<()> {
        if self.core.budget.is_within_limit() || table.is_hidden() { Ok(()) } else { self.make_room() }
    }

    /// Waits for room while other transactions run: what one has written can go, or is given up, once it has ended.
    #[cold]
    fn make_room(&self) -> Result<()> {
        let (budget, begun) = (&self.core.budget, Instant::now());
        debug_assert!(budget.limit_bytes() < u64::MAX, "invariant 9: without a limit nothing fails for memory");
        while !self.has_made_room() {
            if begun.elapsed() >= PATIENCE || self.core.transactions.0.running() <= 1 {
                return Err(Error::OutOfMemory { used: budget.used_bytes(), limit: budget.limit_bytes() });
            }
            thread::sleep(BETWEEN_LOOKS);
        }
        Ok(())
    }

    /// Does what can be done for room; whether there is some then. One thread at a time: one that waited finds what the other has
    /// reached, and need not try at once what was in vain.
    fn has_made_room(&self) -> bool {
        let mut in_vain = self.making_room.lock();
        debug_assert!(in_vain.is_none_or(|tried| tried <= Instant::now()), "an attempt that is still to come");
        if self.evict() {
            return true;
        }
        let tries = in_vain.is_none_or(|tried| tried.elapsed() >= BETWEEN_RECLAIMS);
        if tries && self.reclaim() || self.core.budget.is_within_limit_soon() {
            return true;
        }
        if tries {
            *in_vain = Some(Instant::now());
        }
        false
    }

    /// Takes checkpoints, so that more pages can go, merges, and as the last resort gives up tables that are gone; whether there
    /// is room then.
    fn reclaim(&self) -> bool {
        let lacks_blobs = self.core.budget.take_lack_of_blobs();
        if lacks_blobs && self.checkpoint_and_evict() {
            return true;
        }
        merger::reclaim(&self.core);
        if self.checkpointer.is_some() && (self.evict() || self.checkpoint_and_evict())
            || self.core.budget.is_within_limit_soon()
        {
            return true;
        }
        self.core.catalog.forget_gone(&self.core.transactions);
        merger::flush();
        // What merges have replaced is counted until it is freed, and a reader may be a thread that does not run now.
        self.evict() || sync::await_readers(READERS_MAX) && self.evict()
    }

    /// Lets pages go to checkpoints; whether there is room then.
    fn evict(&self) -> bool {
        let budget = &self.core.budget;
        merger::evict(&self.core);
        budget.await_readers(0, READERS_MAX);
        budget.is_within_limit_soon()
    }

    fn checkpoint_and_evict(&self) -> bool {
        // Where no checkpoint can be taken, memory is short as before, and that is what the statement is told.
        debug_assert!(self.log.is_some() || self.checkpointer.is_none(), "there is nothing to take checkpoints of");
        let taken = self.checkpointer.as_ref().map(|checkpointer| checkpointer.with_checkpoint(|_, _| Ok(())));
        matches!(taken, Some(Ok(()))) && self.evict()
    }
}
