//! Waiting for another transaction to end. The uncommitted version of a row is its lock: a transaction that wants
//! the row waits for the version's owner.
//!
//! A waiter spins for about as long as a blocking hand-over takes, as most transactions end sooner, and then sleeps
//! at the owner's [`Bell`]. Before it sleeps it publishes its *edge*, which names the owner, and looks for a circle
//! of edges (see `deadlock.rs`). A waiter goes on when the owner has committed or rolled back, whether or not its
//! slot is released and its log flushed; when the owner has given the row up by going back to a savepoint; when it
//! is the victim of a deadlock; when it is interrupted; and at its deadline.
//!
//! A transaction that waits for several owners (a row locked in share mode by many) waits for one after the other:
//! at each moment it has exactly one edge, that of the wait which stops it now. A circle that goes through another
//! of the owners closes when the waiter comes to that owner, and is found then.
use std::time::{Duration, Instant};

use sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use sync::hint::SpinWait;
use types::TxnId;

use crate::bell::Bell;
use crate::deadlock::Edge;
use crate::list::Count;
use crate::table::{Handle, TransactionTable};

/// How long to spin before sleeping: about half of what it costs to put a thread to sleep and wake it.
const SPIN: Duration = Duration::from_micros(20);

/// A row by name, for queues and for display; the words mean something to the caller only.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RowName {
    /// the table
    pub table: u32,
    /// the record in it
    pub rid: u64,
}

/// Why a wait ended without the row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WaitError {
    /// Transactions wait for each other in a circle, and this one is to roll back.
    Deadlock,
    /// The deadline has passed.
    TimedOut,
    /// [`TransactionTable::interrupt`] was called.
    Interrupted,
}

/// Beside each slot: the waiters for its transaction, and the edge of the transaction's own wait.
#[derive(Default)]
pub(crate) struct Waits {
    pub bell: Bell,
    /// Counts changes of the edge, over all transactions of the slot: odd while there is one.
    pub version: AtomicU64,
    /// The edge: the transaction waited for, and its count of rings when the waiter last looked.
    pub owner: AtomicU64,
    pub rings: AtomicU64,
    /// The row waited for, and since when; for display.
    pub row_table: AtomicU32,
    pub row_rid: AtomicU64,
    pub since: AtomicU64,
    /// The version of an edge that makes its waiter the victim of a deadlock.
    pub doomed: AtomicU64,
    /// The transaction that is to wait no more.
    pub interrupted: AtomicU64,
}

/// Spinning, up to a time limit. Models know no time: they sleep at once.
pub(crate) struct Patience(Option<Instant>);

impl Patience {
    pub fn new(deadline: Option<Instant>) -> Patience {
        if cfg!(any(loom, shuttle)) {
            return Patience(None);
        }
        let limit = Instant::now() + SPIN;
        Patience(Some(deadline.map_or(limit, |deadline| deadline.min(limit))))
    }

    /// Spins until it is over; `false` if the time is up before.
    pub fn spin_until(&self, is_over: impl Fn() -> bool) -> bool {
        let mut wait = SpinWait::new();
        loop {
            if is_over() {
                return true;
            }
            if self.0.is_none_or(|limit| Instant::now() >= limit) {
                return false;
            }
            wait.pause();
        }
    }
}

/// Which part of a wait it is. A caller that looks at something else from time to time waits in parts, which count as
/// one wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// Whether another part came before.
    pub is_later: bool,
    /// Whether the caller goes on waiting after the deadline of this part.
    pub goes_on: bool,
}

/// One wait, from the first look to the last.
pub(crate) struct Wait<'a> {
    pub waiter: TxnId,
    pub owner: TxnId,
    pub row: RowName,
    /// Whether there is still a reason to wait for the owner; it alone changes that, and rings its bell then.
    pub is_held: &'a dyn Fn() -> bool,
    pub deadline: Option<Instant>,
    /// Whether it is worthwhile to spin: not in the middle of a queue.
    pub is_next: bool,
    pub part: Part,
}

impl TransactionTable {
    /// Waits until `owner` has ended or `row` is not held by it any more; the caller then looks at the row again.
    /// `is_held` looks at the row itself: an owner that goes back to a savepoint gives rows up, calls
    /// [`wake_waiters`](Self::wake_waiters) and goes on. A row that many want is better waited for in its
    /// [`queue`](Self::queue).
    ///
    /// # Errors
    /// - [`WaitError::Deadlock`] if transactions wait for each other in a circle, and this one is to roll back.
    /// - [`WaitError::TimedOut`] once `deadline` has passed.
    /// - [`WaitError::Interrupted`] after [`interrupt`](Self::interrupt).
    pub fn wait_for(
        &self,
        waiter: &Handle,
        owner: TxnId,
        row: RowName,
        is_held: &dyn Fn() -> bool,
        deadline: Option<Instant>,
    ) -> Result<(), WaitError> {
        self.wait_part(waiter, owner, row, is_held, deadline, Part::default())
    }

    /// Waits as [`wait_for`](Self::wait_for) does, for a part of a wait.
    ///
    /// # Errors
    /// Those of [`wait_for`](Self::wait_for).
    pub fn wait_part(
        &self,
        waiter: &Handle,
        owner: TxnId,
        row: RowName,
        is_held: &dyn Fn() -> bool,
        deadline: Option<Instant>,
        part: Part,
    ) -> Result<(), WaitError> {
        self.wait(&Wait { waiter: waiter.id, owner, row, is_held, deadline, is_next: true, part })
    }

    /// Wakes the waiters of a transaction that has gone back to a savepoint. Call it once the rows are given up, so
    /// that the waiters for them look again.
    pub fn wake_waiters(&self, handle: &Handle) {
        self.ring(handle.id);
    }

    pub(crate) fn ring(&self, txn: TxnId) {
        let slot = self.slot(txn);
        fence(Ordering::SeqCst);
        if slot.is_watched.load(Ordering::SeqCst) != 0 {
            self.waits(txn).bell.ring(&slot.is_watched);
        }
    }

    /// Ends a transaction's wait, or the next one if it does not wait now, and all further ones until
    /// [`clear_interrupt`](Self::clear_interrupt). Harmless if the transaction is over.
    pub fn interrupt(&self, txn: TxnId) {
        let slot = self.slot(txn);
        // One that runs no more takes nothing from the slot's next transaction.
        let note = |noted| (noted == txn.word() || noted != slot.id.load(Ordering::SeqCst)).then_some(txn.word());
        let _ = self.waits(txn).interrupted.fetch_update(Ordering::SeqCst, Ordering::SeqCst, note);
        fence(Ordering::SeqCst);
        self.wake_at_edge(txn);
    }

    /// Whether [`interrupt`](Self::interrupt) was called.
    pub fn is_interrupted(&self, txn: TxnId) -> bool {
        self.waits(txn).interrupted.load(Ordering::SeqCst) == txn.word()
    }

    /// Lets the transaction wait again.
    pub fn clear_interrupt(&self, handle: &Handle) {
        let interrupted = &self.waits[handle.slot].interrupted;
        let _ = interrupted.compare_exchange(handle.id.word(), 0, Ordering::SeqCst, Ordering::Relaxed);
    }

    /// Wakes a transaction that sleeps, wherever it does.
    pub(crate) fn wake_at_edge(&self, waiter: TxnId) {
        if let Some(edge) = self.edge_of(waiter) {
            self.waits(edge.owner).bell.wake();
        }
    }

    pub(crate) fn wait(&self, wait: &Wait<'_>) -> Result<(), WaitError> {
        debug_assert_ne!(wait.waiter, wait.owner);
        let slot = self.slot(wait.owner);
        if slot.has_ended(wait.owner) {
            return Ok(());
        }
        if !wait.part.is_later {
            self.count(Count::Waits);
        }
        let goes_on = || slot.has_ended(wait.owner) || !(wait.is_held)();
        let is_hopeless = || self.waits(wait.owner).version.load(Ordering::Relaxed) % 2 == 1;
        let gives_up = || self.is_interrupted(wait.waiter) || is_hopeless();
        if wait.is_next && Patience::new(wait.deadline).spin_until(|| goes_on() || gives_up()) && goes_on() {
            return Ok(());
        }
        let result = self.wait_asleep(wait, &goes_on);
        self.withdraw(wait.waiter);
        if let Err(error) = result
            && !(wait.part.goes_on && error == WaitError::TimedOut)
        {
            self.count(Count::of_error(error));
        }
        result
    }

    fn wait_asleep(&self, wait: &Wait<'_>, goes_on: &dyn Fn() -> bool) -> Result<(), WaitError> {
        if !wait.part.is_later {
            self.count(Count::Sleeps);
        }
        let since = self.micros();
        let (own, slot, bell) = (self.waits(wait.waiter), self.slot(wait.owner), &self.waits(wait.owner).bell);
        loop {
            let rings = bell.watch(&slot.is_watched);
            // An edge says that there was a reason to wait after these rings. A transaction that had given the row
            // up before, and now waits for this one, must not find one.
            if goes_on() {
                return Ok(());
            }
            let edge = self.publish(wait, rings, since);
            debug_assert!(edge.waiter == wait.waiter && edge.owner == wait.owner, "{edge:?} is another wait's");
            if let Some(result) = self.verdict(wait, &edge, goes_on) {
                return result;
            }
            self.break_circle(&edge);
            bell.park_until(wait.deadline, || {
                let is_told = own.doomed.load(Ordering::SeqCst) == edge.version || self.is_interrupted(wait.waiter);
                is_told || bell.rings() != rings || slot.has_ended(wait.owner)
            });
            if let Some(result) = self.verdict(wait, &edge, goes_on) {
                return result;
            }
        }
    }

    /// How the wait ends, if it ends now.
    fn verdict(&self, wait: &Wait<'_>, edge: &Edge, goes_on: &dyn Fn() -> bool) -> Option<Result<(), WaitError>> {
        if goes_on() {
            return Some(Ok(()));
        }
        if self.waits(wait.waiter).doomed.load(Ordering::SeqCst) == edge.version {
            return Some(Err(WaitError::Deadlock));
        }
        if self.is_interrupted(wait.waiter) {
            return Some(Err(WaitError::Interrupted));
        }
        let is_late = wait.deadline.is_some_and(|deadline| deadline <= Instant::now());
        is_late.then_some(Err(WaitError::TimedOut))
    }
}
