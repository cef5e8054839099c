//! The transaction table: a fixed array of slots, one for each transaction that may run at the same time.
//!
//! ```text
//! id:     1 | use (35 bits) | slot (12 bits) | 0          while the slot is unused: the last id, its top bit clear
//! slot:   [ id | state | reads | dependencies | is_watched | born | begun | description ]     one cache line
//! state:  timestamp << 3 | active, committing, aborted, prepared or committed
//! ```
//!
//! A slot is reused once its transaction has stamped everything that it wrote. A caller that then asks for the old
//! id finds another id in the slot, and is told to read the record's Start Time again. The state that only waiting
//! needs lies beside the slots, in [`Waits`], and no other code touches it.
use sync::atomic::{AtomicU64, Ordering};
use sync::hint::SpinWait;
use sync::{CachePadded, Counters, SystemClock, thread_slot};
use types::{Timestamp, TxnId};

use crate::commit::Dependencies;
use crate::list::Count;
use crate::queue::RowQueues;
use crate::snapshots::NO_SNAPSHOT;
use crate::uses::Uses;
use crate::waits::Waits;

const SLOT_BITS: u32 = 12;
/// How often a slot can be used before its ids come again, days later at the least.
const USES_MAX: u64 = (1 << (TxnId::NUMBER_BITS - SLOT_BITS)) - 1;
/// Transactions that may run at the same time. Models take few, as every slot is looked at.
pub(crate) const SLOTS: usize = if cfg!(any(loom, shuttle)) { 3 } else { 1 << SLOT_BITS };

/// The top bit of an id, clear in the word of a slot that is unused.
pub(crate) const IN_USE: u64 = 1 << 63;

/// The phase of a transaction: the low bits of its state word, below a timestamp.
pub(crate) mod phase {
    /// The width of a phase.
    pub const BITS: u32 = 3;
    pub const ACTIVE: u64 = 0;
    pub const COMMITTING: u64 = 1;
    pub const ABORTED: u64 = 2;
    pub const PREPARED: u64 = 3;
    pub const COMMITTED: u64 = 4;

    pub fn of(state: u64) -> u64 {
        state & ((1 << BITS) - 1)
    }
}

/// The greatest timestamp that a state word holds above the phase.
pub(crate) const TIMESTAMP_MAX: u64 = u64::MAX >> phase::BITS;

/// All transactions of a database.
pub struct TransactionTable {
    pub(crate) clock: CachePadded<AtomicU64>,
    pub(crate) slots: Box<[CachePadded<Slot>]>,
    /// By slot number: the waiters for the slot's transaction, and the edge of its own wait.
    pub(crate) waits: Box<[CachePadded<Waits>]>,
    /// By slot number: the tables that the slot's transaction writes to.
    pub(crate) uses: Box<[Uses]>,
    pub(crate) queues: RowQueues,
    pub(crate) counters: Counters<{ Count::ALL }>,
    pub(crate) time: SystemClock,
}

/// The state of a running transaction.
pub(crate) struct Slot {
    pub id: AtomicU64,
    pub state: AtomicU64,
    /// At or before the snapshot that the transaction reads; `NO_SNAPSHOT` while it reads none.
    pub reads: AtomicU64,
    /// On how many prepared transactions it depends.
    pub dependencies: Dependencies,
    /// Not 0 if another transaction waits for this one or depends on it.
    pub is_watched: AtomicU64,
    /// The clock when it began, which tells older from younger.
    pub born: AtomicU64,
    /// When it began, as the caller says.
    pub begun: AtomicU64,
    /// For the caller.
    pub description: AtomicU64,
}

#[cfg(all(target_os = "linux", not(any(loom, shuttle))))]
const _: () = assert!(size_of::<Slot>() == 64 && size_of::<Waits>() <= 128, "one cache line, and two beside it");

impl Slot {
    fn new(index: usize) -> Slot {
        Slot {
            id: AtomicU64::new(TxnId::new(index as u64).word() & !IN_USE),
            state: AtomicU64::new(phase::ACTIVE),
            reads: AtomicU64::new(NO_SNAPSHOT),
            dependencies: Dependencies::default(),
            is_watched: AtomicU64::new(0),
            born: AtomicU64::new(0),
            begun: AtomicU64::new(0),
            description: AtomicU64::new(0),
        }
    }

    /// The id of the running transaction.
    pub fn running(&self, order: Ordering) -> Option<TxnId> {
        let word = self.id.load(order);
        (word & IN_USE != 0).then(|| TxnId::new((word & !IN_USE) >> u16::BITS))
    }

    /// Whether `txn` has committed or rolled back, or is gone. The two loads are `SeqCst`, for callers that
    /// announce themselves before they look.
    pub fn has_ended(&self, txn: TxnId) -> bool {
        let state = self.state.load(Ordering::SeqCst);
        self.id.load(Ordering::SeqCst) != txn.word() || matches!(phase::of(state), phase::ABORTED | phase::COMMITTED)
    }
}

/// The slot of a transaction.
pub(crate) fn slot_of(txn: TxnId) -> usize {
    (txn.number() & ((1 << SLOT_BITS) - 1)) as usize % SLOTS
}

/// How often the slot was used up to this transaction.
pub(crate) fn use_of(txn: TxnId) -> u64 {
    txn.number() >> SLOT_BITS
}

/// A running transaction's place in the table. Ends by [`TransactionTable::release`].
#[derive(Debug)]
pub struct Handle {
    pub(crate) id: TxnId,
    pub(crate) slot: usize,
    /// How many tables it has noted.
    pub(crate) tables: u8,
}

impl Handle {
    /// The id that stands in the Start Time of what the transaction writes.
    #[inline]
    pub fn id(&self) -> TxnId {
        self.id
    }
}

/// The state of a transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TransactionState {
    /// The transaction is running.
    Active,
    /// The transaction has this commit timestamp, and may still fail.
    Prepared(Timestamp),
    /// The transaction committed at this time.
    Committed(Timestamp),
    /// The transaction rolled back.
    Aborted,
    /// The transaction is over, and everything that it wrote is stamped.
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
    /// Creates a table that continues after a newest commit at `newest`.
    pub fn starting_at(newest: Timestamp) -> Self {
        debug_assert!(newest.0 <= TIMESTAMP_MAX, "a commit after {newest:?} does not fit a state word");
        TransactionTable {
            clock: CachePadded::new(AtomicU64::new(newest.0)),
            slots: (0..SLOTS).map(|index| CachePadded::new(Slot::new(index))).collect(),
            waits: (0..SLOTS).map(|_| CachePadded::new(Waits::default())).collect(),
            uses: (0..SLOTS).map(|_| Uses::default()).collect(),
            queues: RowQueues::default(),
            counters: Counters::default(),
            time: SystemClock,
        }
    }

    #[inline]
    pub(crate) fn slot(&self, txn: TxnId) -> &Slot {
        &self.slots[slot_of(txn)]
    }

    pub(crate) fn waits(&self, txn: TxnId) -> &Waits {
        &self.waits[slot_of(txn)]
    }

    /// Takes an unused slot for a transaction that begins when the clock shows `born`.
    #[inline]
    pub(crate) fn claim_slot(&self, born: Timestamp) -> Result<Handle, TooManyTransactions> {
        // Threads start at places of their own, so that they seldom try the same slot.
        let first = thread_slot().wrapping_mul(67);
        for i in 0..SLOTS {
            let index = (first + i) % SLOTS;
            let slot = &self.slots[index];
            let former = slot.id.load(Ordering::Relaxed);
            if former & IN_USE != 0 {
                continue;
            }
            // The former id stands in the slot until another takes its place: no id is made twice.
            let next_use = ((former >> u16::BITS >> SLOT_BITS) + 1) % USES_MAX;
            let id = TxnId::new(next_use << SLOT_BITS | index as u64);
            if slot.id.compare_exchange(former, id.word(), Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                // A caller that asks for the slot's former id and sees this state also sees the id gone. So with
                // the others.
                debug_assert_eq!(slot_of(id), index, "an id names its slot");
                debug_assert_ne!(
                    id.word() & !IN_USE,
                    former,
                    "invariant 4: no running transaction has a former one's id"
                );
                slot.state.store(phase::ACTIVE, Ordering::Release);
                slot.born.store(born.0, Ordering::Release);
                slot.begun.store(0, Ordering::Release);
                slot.description.store(0, Ordering::Release);
                return Ok(Handle { id, slot: index, tables: 0 });
            }
        }
        Err(TooManyTransactions { limit: SLOTS })
    }

    /// The state of a transaction. Waits out the few instructions in which a commit takes its timestamp.
    pub fn state(&self, txn: TxnId) -> TransactionState {
        let slot = self.slot(txn);
        let mut wait = SpinWait::new();
        loop {
            let state = slot.state.load(Ordering::Acquire);
            if slot.id.load(Ordering::Acquire) != txn.word() {
                return TransactionState::Released;
            }
            if phase::of(state) != phase::COMMITTING {
                return state_of_word(state);
            }
            wait.pause();
        }
    }

    /// Whether the phase of the caller's own transaction is one of these. Models do not look: each look is a step of theirs.
    pub(crate) fn is_in(&self, handle: &Handle, phases: &[u64]) -> bool {
        cfg!(any(loom, shuttle)) || phases.contains(&phase::of(self.slots[handle.slot].state.load(Ordering::Relaxed)))
    }

    /// Whether the clock has shown a time. Models do not look.
    pub(crate) fn is_past(&self, at: Timestamp) -> bool {
        cfg!(any(loom, shuttle)) || at <= self.now()
    }

    /// How many transactions run now.
    pub fn running(&self) -> usize {
        self.slots.iter().filter(|slot| slot.running(Ordering::Relaxed).is_some()).count()
    }
}

/// Decodes a state word. A commit that has no timestamp yet counts as active, for callers that do not wait for the
/// timestamp.
pub(crate) fn state_of_word(state: u64) -> TransactionState {
    let at = Timestamp(state >> phase::BITS);
    debug_assert!(phase::of(state) <= phase::COMMITTED, "a state word of no phase: {state:#x}");
    match phase::of(state) {
        phase::PREPARED => TransactionState::Prepared(at),
        phase::COMMITTED => TransactionState::Committed(at),
        phase::ABORTED => TransactionState::Aborted,
        _ => TransactionState::Active,
    }
}
