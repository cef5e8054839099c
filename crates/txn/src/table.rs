//! The transaction table: a fixed array of slots, one for each transaction that may run at the same time.
//!
//! ```text
//! id:     1 | use (35 bits) | slot (12 bits) | 0        slot s:  [ id | state ]   one cache line each
//! state:  0 active | 1 committing | 2 aborted | 4 + at: committed at `at`
//! ```
//!
//! A slot is reused once its transaction has stamped everything that it wrote; whoever then asks for the old id sees
//! another id in the slot and is told to read the record's Start Time again.
use sync::atomic::{AtomicU64, Ordering, fence, total_order};
use sync::hint::SpinWait;
use sync::{CachePadded, thread_slot};
use types::{Snapshot, Timestamp, TxnId};

const SLOT_BITS: u32 = 12;
/// How often a slot can be used before its ids come again, days later at the least.
const USES_MAX: u64 = (1 << (TxnId::NUMBER_BITS - SLOT_BITS)) - 1;
/// Transactions that may run at the same time. Models take few, as every slot is looked at.
const SLOTS: usize = if cfg!(any(loom, shuttle)) { 3 } else { 1 << SLOT_BITS };

const ACTIVE: u64 = 0;
const COMMITTING: u64 = 1;
const ABORTED: u64 = 2;
const COMMITTED: u64 = 4;

/// The id of an unused slot; no transaction has it, as its top bit is clear.
const FREE: u64 = 0;

/// All transactions of a database.
pub struct TransactionTable {
    clock: CachePadded<AtomicU64>,
    slots: Box<[CachePadded<Slot>]>,
}

struct Slot {
    id: AtomicU64,
    state: AtomicU64,
    /// How often the slot was tried for, to make ids that never return.
    uses: AtomicU64,
    /// At or before the snapshot that the transaction reads; `NO_SNAPSHOT` while the slot is unused.
    reads: AtomicU64,
}

/// The snapshot of an unused slot: later than all others.
const NO_SNAPSHOT: u64 = u64::MAX;

/// A running transaction's place in the table. Ends by [`TransactionTable::release`].
#[derive(Debug)]
pub struct Handle {
    id: TxnId,
    slot: usize,
}

impl Handle {
    /// The id that stands in the Start Time of what the transaction writes.
    pub fn id(&self) -> TxnId {
        self.id
    }
}

/// What became of a transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// It is running.
    Active,
    /// It committed at this time.
    Committed(Timestamp),
    /// It rolled back.
    Aborted,
    /// It is over, and everything that it wrote is stamped.
    Released,
}

/// As many transactions run as the table has slots.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TooManyTransactions {
    /// the number of slots
    pub limit: usize,
}

impl Default for TransactionTable {
    fn default() -> Self {
        Self::starting_at(Timestamp::ZERO)
    }
}

impl TransactionTable {
    /// A table whose newest commit was at `newest`.
    pub fn starting_at(newest: Timestamp) -> Self {
        let slot = |_| {
            CachePadded::new(Slot {
                id: AtomicU64::new(FREE),
                state: AtomicU64::new(ACTIVE),
                uses: AtomicU64::new(0),
                reads: AtomicU64::new(NO_SNAPSHOT),
            })
        };
        TransactionTable { clock: CachePadded::new(AtomicU64::new(newest.0)), slots: (0..SLOTS).map(slot).collect() }
    }

    /// The newest commit timestamp handed out.
    pub fn now(&self) -> Timestamp {
        Timestamp(self.clock.load(Ordering::Acquire))
    }

    /// What a reader that belongs to no transaction sees now.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::at(self.now())
    }

    /// Starts a transaction and takes the snapshot that it reads: every commit so far.
    pub fn begin(&self) -> Result<(Handle, Timestamp), TooManyTransactions> {
        let handle = self.claim_slot()?;
        // What is announced may be older than what is read, never newer; see `oldest_snapshot`.
        self.announce(&handle, self.now());
        Ok((handle, Timestamp(self.clock.load(Ordering::SeqCst))))
    }

    /// Starts a transaction that reads the snapshot at `at`. The caller still has to find out whether what that snapshot
    /// sees has been given up; from here on it will not be.
    pub fn begin_at(&self, at: Timestamp) -> Result<Handle, TooManyTransactions> {
        let handle = self.claim_slot()?;
        self.announce(&handle, at);
        Ok(handle)
    }

    /// Announces that the transaction reads nothing older than `at`. What it loads next decides what it reads, and that
    /// load has to be `SeqCst` too: after a weaker one, a processor may find an older clock than whoever missed the
    /// announcement.
    fn announce(&self, handle: &Handle, at: Timestamp) {
        self.slots[handle.slot].reads.swap(at.0, Ordering::SeqCst);
        total_order();
    }

    /// A time that no snapshot in use, nor any that a transaction will take later, is older than.
    ///
    /// The clock is read before the slots, with a fence between: a transaction whose announcement this call misses has
    /// yet to read the clock, and will find it no earlier.
    pub fn oldest_snapshot(&self) -> Timestamp {
        let now = self.now();
        fence(Ordering::SeqCst);
        let reads = self.slots.iter().map(|slot| Timestamp(slot.reads.load(Ordering::Acquire)));
        reads.fold(now, Timestamp::min)
    }

    fn claim_slot(&self) -> Result<Handle, TooManyTransactions> {
        // Threads start at places of their own, so that they seldom try the same slot.
        let first = thread_slot().wrapping_mul(67);
        for i in 0..SLOTS {
            let index = (first + i) % SLOTS;
            let slot = &self.slots[index];
            if slot.id.load(Ordering::Relaxed) != FREE {
                continue;
            }
            // Counted before the slot is won: two that try at once never make the same id.
            let number = (slot.uses.fetch_add(1, Ordering::Relaxed) + 1) % USES_MAX;
            let id = TxnId::new(number << SLOT_BITS | index as u64);
            if slot.id.compare_exchange(FREE, id.word(), Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                // Whoever sees this state, asking for the slot's former id, also sees the id gone.
                slot.state.store(ACTIVE, Ordering::Release);
                return Ok(Handle { id, slot: index });
            }
        }
        Err(TooManyTransactions { limit: SLOTS })
    }

    /// First step of a commit.
    pub fn start_commit(&self, handle: &Handle) {
        self.slots[handle.slot].state.store(COMMITTING, Ordering::Release);
    }

    /// Second step: takes the next commit timestamp. The transaction's state must be committing.
    pub fn next_timestamp(&self) -> Timestamp {
        Timestamp(self.clock.fetch_add(1, Ordering::AcqRel) + 1)
    }

    /// Third step: the transaction is visible to snapshots from `at` on.
    pub fn finish_commit(&self, handle: &Handle, at: Timestamp) {
        self.slots[handle.slot].state.store(COMMITTED + at.0, Ordering::Release);
    }

    /// Rolls the transaction back, before it took a timestamp or after.
    pub fn abort(&self, handle: &Handle) {
        self.slots[handle.slot].state.store(ABORTED, Ordering::Release);
    }

    /// Gives the slot back. Everything that the transaction wrote must be stamped.
    #[allow(clippy::needless_pass_by_value, reason = "the handle ends here")]
    pub fn release(&self, handle: Handle) {
        let slot = &self.slots[handle.slot];
        slot.reads.store(NO_SNAPSHOT, Ordering::Release);
        slot.id.store(FREE, Ordering::Release);
    }

    /// What became of a transaction. Waits out the few instructions between the first and third step of a commit.
    pub fn state(&self, txn: TxnId) -> State {
        let index = (txn.number() & ((1 << SLOT_BITS) - 1)) as usize;
        let slot = &self.slots[index % SLOTS];
        let mut wait = SpinWait::new();
        loop {
            let state = slot.state.load(Ordering::Acquire);
            if slot.id.load(Ordering::Acquire) != txn.word() {
                return State::Released;
            }
            match state {
                ACTIVE => return State::Active,
                COMMITTING => wait.pause(),
                ABORTED => return State::Aborted,
                committed => return State::Committed(Timestamp(committed - COMMITTED)),
            }
        }
    }

    /// How many transactions run now.
    pub fn running(&self) -> usize {
        self.slots.iter().filter(|slot| slot.id.load(Ordering::Relaxed) != FREE).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::sync::Mutex;
    use std::sync::atomic::AtomicBool;
    use types::StartTime;

    fn commit(table: &TransactionTable, handle: &Handle) -> Timestamp {
        table.start_commit(handle);
        let at = table.next_timestamp();
        table.finish_commit(handle, at);
        at
    }

    #[test]
    fn a_transaction_goes_from_active_to_committed_to_released() {
        let table = TransactionTable::default();
        let (handle, _) = table.begin().unwrap();
        let id = handle.id();
        assert_eq!(table.state(id), State::Active);
        assert_eq!(commit(&table, &handle), Timestamp(1));
        assert_eq!(table.state(id), State::Committed(Timestamp(1)));
        table.release(handle);
        assert_eq!(table.state(id), State::Released);
        let (next, _) = table.begin().unwrap();
        assert_eq!((table.state(id), table.state(next.id())), (State::Released, State::Active));
        table.abort(&next);
        assert_eq!(table.state(next.id()), State::Aborted);
        table.release(next);
        assert_eq!((table.running(), table.now()), (0, Timestamp(1)));
    }

    #[test]
    fn a_full_table_says_so() {
        let table = TransactionTable::default();
        let handles: Vec<Handle> = (0..SLOTS).map(|_| table.begin().unwrap().0).collect();
        assert_eq!(table.begin().unwrap_err(), TooManyTransactions { limit: SLOTS });
        handles.into_iter().for_each(|handle| table.release(handle));
        table.begin().unwrap();
    }

    #[test]
    fn no_snapshot_in_use_is_older_than_the_oldest() {
        let table = TransactionTable::default();
        let (done, horizon) = (AtomicBool::new(false), AtomicU64::new(0));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..20_000 {
                    let (handle, _) = table.begin().unwrap();
                    commit(&table, &handle);
                    table.release(handle);
                }
                done.store(true, Ordering::Relaxed);
            });
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    horizon.fetch_max(table.oldest_snapshot().0, Ordering::SeqCst);
                }
            });
            while !done.load(Ordering::Relaxed) {
                let (handle, at) = table.begin().unwrap();
                let oldest = table.oldest_snapshot();
                assert!(oldest <= at, "{oldest:?} is after {at:?}");
                std::thread::yield_now();
                assert!(horizon.load(Ordering::SeqCst) <= at.0);
                table.release(handle);
            }
        });
        let (old, at) = table.begin().unwrap();
        let (next, _) = table.begin().unwrap();
        commit(&table, &next);
        table.release(next);
        assert_eq!(table.oldest_snapshot(), at);
        let past = table.begin_at(Timestamp(7)).unwrap();
        assert_eq!(table.oldest_snapshot(), Timestamp(7));
        table.release(past);
        table.release(old);
        assert_eq!(table.oldest_snapshot(), table.now());
    }

    #[test]
    fn ids_never_return() {
        let table = TransactionTable::default();
        let seen = Mutex::new(HashSet::new());
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..2_000 {
                        let (handle, _) = table.begin().unwrap();
                        assert!(seen.lock().unwrap().insert(handle.id()), "id used twice");
                        table.release(handle);
                    }
                });
            }
        });
    }

    /// Between the first and the third step nobody is told that the transaction is active: its timestamp may be older
    /// than the snapshot of whoever asks.
    #[test]
    fn who_asks_during_a_commit_waits_for_its_timestamp() {
        let table = TransactionTable::default();
        let (handle, _) = table.begin().unwrap();
        table.start_commit(&handle);
        let at = table.next_timestamp();
        std::thread::scope(|scope| {
            let asking = scope.spawn(|| table.state(handle.id()));
            std::thread::sleep(std::time::Duration::from_millis(20));
            table.finish_commit(&handle, at);
            assert_eq!(asking.join().unwrap(), State::Committed(at));
        });
    }

    fn id_of(word: u64) -> TxnId {
        match StartTime::from_word(word) {
            StartTime::Pending(id) => id,
            other => panic!("{other:?} is no transaction"),
        }
    }

    /// A reader that finds a transaction active must not have a snapshot that includes its commit.
    #[test]
    fn active_means_after_my_snapshot() {
        let table = TransactionTable::default();
        let newest = AtomicU64::new(0);
        let commits = Mutex::new(Vec::new());
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let readers: Vec<_> = (0..2)
                .map(|_| {
                    scope.spawn(|| {
                        let mut seen_active = Vec::new();
                        while !done.load(Ordering::Relaxed) {
                            let word = newest.load(Ordering::Acquire);
                            let at = table.now();
                            if word != 0 && table.state(id_of(word)) == State::Active {
                                seen_active.push((word, at));
                            }
                        }
                        seen_active
                    })
                })
                .collect();
            for _ in 0..20_000 {
                let (handle, _) = table.begin().unwrap();
                newest.store(handle.id().word(), Ordering::Release);
                let at = commit(&table, &handle);
                commits.lock().unwrap().push((handle.id().word(), at));
                table.release(handle);
            }
            done.store(true, Ordering::Relaxed);
            let commits: std::collections::HashMap<u64, Timestamp> = commits.lock().unwrap().iter().copied().collect();
            for (word, snapshot) in readers.into_iter().flat_map(|reader| reader.join().unwrap()) {
                assert!(commits[&word] > snapshot, "active at {snapshot:?}, committed at {:?}", commits[&word]);
            }
        });
    }
}
