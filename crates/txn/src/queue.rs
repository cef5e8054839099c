//! Queues of rows: many transactions may want one row, and not all of them should wake whenever it changes hands.
//!
//! ```text
//! row -> [ first | second | third ... ]      owner <- first <- second <- third      each sleeps at the one before it
//! ```
//!
//! The first in the queue waits for the transaction that holds the row; each other one waits for the transaction
//! before it. This is a queue as in MCS latches, of transactions. A [`QueuePlace`] is kept until its transaction has
//! looked at the row again and has written it, or does not want it any more; then it is dropped. The next
//! transaction wakes, finds itself first, looks at the row, and waits for the transaction that has written it,
//! spinning at first. So a short transaction hands the row over to a spinning waiter, and a long one to a sleeping
//! waiter. Newcomers that find the row free take it without looking at the queue; the first in the queue then waits
//! for them.
//!
//! An edge to the transaction before in the queue is a real dependency: the waiter does not go on until that
//! transaction has ended or has left the queue, and it does not leave the queue while it waits in it.
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasher, RandomState};
use std::sync::PoisonError;
use std::time::Instant;

use sync::CachePadded;
use sync::blocking::{Mutex, MutexGuard};
use types::TxnId;

use crate::table::{Handle, TransactionTable};
use crate::waits::{Part, RowName, Wait, WaitError};

const SHARDS: usize = if cfg!(any(loom, shuttle)) { 1 } else { 64 };

type Queues = HashMap<RowName, Vec<TxnId>>;

/// The queues of all rows that transactions wait for.
pub(crate) struct RowQueues {
    hasher: RandomState,
    shards: Box<[CachePadded<Mutex<Queues>>]>,
}

impl Default for RowQueues {
    fn default() -> Self {
        let shards = (0..SHARDS).map(|_| CachePadded::new(Mutex::new(Queues::default()))).collect();
        RowQueues { hasher: RandomState::new(), shards }
    }
}

impl RowQueues {
    fn shard(&self, row: &RowName) -> MutexGuard<'_, Queues> {
        let shard = self.hasher.hash_one(row) as usize % SHARDS;
        self.shards[shard].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many rows have a queue.
    pub fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().unwrap_or_else(PoisonError::into_inner).len()).sum()
    }
}

/// A transaction's place in the queue of a row, taken at its first wait and given up when this is dropped.
pub struct QueuePlace<'t> {
    table: &'t TransactionTable,
    waiter: TxnId,
    row: RowName,
    is_taken: bool,
}

impl TransactionTable {
    /// Opens a place in the queue of a row that `waiter` wants and another transaction holds. Keep the place until
    /// the row is written or not wanted any more, then drop it: the next in the queue looks at the row. A
    /// transaction may hold one place per row at a time.
    pub fn queue(&self, waiter: &Handle, row: RowName) -> QueuePlace<'_> {
        QueuePlace { table: self, waiter: waiter.id, row, is_taken: false }
    }

    /// How many rows have waiting transactions in a queue.
    pub fn queued_rows(&self) -> usize {
        self.queues.len()
    }
}

impl QueuePlace<'_> {
    /// Waits until it is this transaction's turn and `owner` has ended or `row` is not held by it any more, as
    /// [`TransactionTable::wait_for`] does. The caller looks at the row again; if another transaction holds it then, it
    /// waits for that, and keeps its place.
    ///
    /// # Errors
    /// As [`TransactionTable::wait_for`]; the place in the queue is kept.
    pub fn wait(
        &mut self,
        owner: TxnId,
        is_held: &dyn Fn() -> bool,
        deadline: Option<Instant>,
    ) -> Result<(), WaitError> {
        self.take();
        let (waiter, row, part) = (self.waiter, self.row, Part::default());
        while let Some(before) = self.before() {
            let is_before = || self.before() == Some(before);
            let wait = Wait { waiter, owner: before, row, is_held: &is_before, deadline, is_next: false, part };
            self.table.wait(&wait)?;
        }
        self.table.wait(&Wait { waiter, owner, row, is_held, deadline, is_next: true, part })
    }

    fn take(&mut self) {
        if !self.is_taken {
            let mut queues = self.table.queues.shard(&self.row);
            let queue = queues.entry(self.row).or_default();
            debug_assert!(!queue.contains(&self.waiter), "{:?} has two places for {:?}", self.waiter, self.row);
            queue.push(self.waiter);
            self.is_taken = true;
        }
    }

    /// The nearest transaction before this one in the queue that has not ended.
    fn before(&self) -> Option<TxnId> {
        let queues = self.table.queues.shard(&self.row);
        let queue = queues.get(&self.row)?;
        let ahead = queue.iter().take_while(|txn| **txn != self.waiter);
        ahead.filter(|txn| !self.table.slot(**txn).has_ended(**txn)).last().copied()
    }
}

impl Drop for QueuePlace<'_> {
    fn drop(&mut self) {
        if !self.is_taken {
            return;
        }
        let mut has_next = false;
        if let Entry::Occupied(mut queue) = self.table.queues.shard(&self.row).entry(self.row) {
            let position = queue.get().iter().position(|txn| *txn == self.waiter);
            debug_assert!(position.is_some(), "{:?} has lost its place for {:?}", self.waiter, self.row);
            if let Some(position) = position {
                queue.get_mut().remove(position);
                has_next = position < queue.get().len();
            }
            if queue.get().is_empty() {
                queue.remove();
            }
        }
        if has_next {
            self.table.ring(self.waiter);
        }
    }
}
