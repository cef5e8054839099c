//! The outcome of commits, those that may still fail, and transactions that depend on them.
//!
//! A commit has its timestamp before it is decided: validation, and the transactions that it depends on itself, may
//! still stop it. In between it is *prepared*. A reader with a snapshot that includes its timestamp need not wait:
//! the reader takes the versions for committed and *depends* on the outcome (speculative reads: Larson et al., VLDB
//! 2011, section 2.7). Each prepared transaction keeps a list of its dependents, and tells each exactly once when
//! it is decided. Each dependent keeps a count of the decisions that it still waits for, and a flag for a bad one:
//!
//! ```text
//! dependencies:  0 | use of the slot (35 bits) | a transaction depended on has rolled back | count (27 bits)
//! ```
//!
//! The word names the use of the slot, so that a late message to the slot's former transaction never reaches its
//! new one.
//!
//! A dependent registers with the list's latch held: it raises the watch flag and then checks that the other
//! transaction is still prepared. A deciding transaction sets its state and then looks at the flag, and takes the
//! latch if the flag is up. So either the registration finds the decision, or the decision finds the registration.
//!
//! **Cascades end.** A transaction with the snapshot s depends only on those prepared at or before s, and its own
//! commit timestamp comes after s: dependencies lead from higher commit timestamps to lower ones, never in a circle. Nor
//! do they close one with waits for rows, as a prepared transaction waits for decisions only.
use sync::atomic::{AtomicU64, Ordering, total_order};
use types::{Timestamp, TxnId};

use crate::list::Count;
use crate::table::{Handle, TransactionState, TransactionTable, phase, use_of};
use crate::waits::Patience;

/// A transaction on which this one depends has rolled back: it has read what never was, and must roll back too.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Doomed;

/// The word of a slot that counts its dependencies.
#[derive(Default)]
pub(crate) struct Dependencies(AtomicU64);

impl Dependencies {
    const DOOMED: u64 = 1 << 27;
    const USE_SHIFT: u32 = 28;

    #[inline]
    fn of(txn: TxnId, word: u64) -> Option<u64> {
        (word >> Self::USE_SHIFT == use_of(txn)).then_some(word & ((1 << Self::USE_SHIFT) - 1))
    }

    /// One more, for a transaction that runs. The first one takes the word over from the slot's former transaction.
    fn add(&self, txn: TxnId) {
        let none = use_of(txn) << Self::USE_SHIFT;
        let add = |word| {
            let counted = Self::of(txn, word).unwrap_or(0) & (Self::DOOMED - 1);
            debug_assert!(counted + 1 < Self::DOOMED, "the count of dependencies runs into the flag");
            Some(Self::of(txn, word).map_or(none, |_| word) + 1)
        };
        let _ = self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, add);
    }

    /// One less; whether the word is still that of `txn`.
    fn settle(&self, txn: TxnId, is_aborted: bool) -> bool {
        let flag = if is_aborted { Self::DOOMED } else { 0 };
        let settle = |word| {
            let counted = Self::of(txn, word)?;
            debug_assert!(counted & (Self::DOOMED - 1) > 0, "a decision is told to {txn:?} twice");
            Some((word - 1) | flag)
        };
        self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, settle).is_ok()
    }

    /// The outcome, as soon as it is certain.
    #[inline]
    fn outcome(&self, txn: TxnId) -> Option<Result<(), Doomed>> {
        match Self::of(txn, self.0.load(Ordering::SeqCst)) {
            None | Some(0) => Some(Ok(())),
            Some(counted) if counted & Self::DOOMED != 0 => Some(Err(Doomed)),
            Some(_) => None,
        }
    }
}

impl TransactionTable {
    /// Third step, of commits that may still fail: from here on readers take what it wrote for committed at `at`, if they
    /// depend on it.
    pub fn prepare(&self, handle: &Handle, at: Timestamp) {
        debug_assert!(self.is_in(handle, &[phase::COMMITTING]), "{handle:?} is prepared, and has not begun to commit");
        debug_assert!(self.is_past(at), "invariant 4: a snapshot taken before the commit would see it at {at:?}");
        self.slots[handle.slot].state.store(at.0 << phase::BITS | phase::PREPARED, Ordering::Release);
    }

    /// Last step: the transaction is visible to snapshots from `at` on, and its waiters go on.
    #[inline]
    pub fn finish_commit(&self, handle: &Handle, at: Timestamp) {
        debug_assert!(
            self.is_in(handle, &[phase::COMMITTING, phase::PREPARED]),
            "{handle:?} ends its commit, and has not begun it or has ended before"
        );
        debug_assert!(self.is_past(at), "invariant 4: a snapshot taken before the commit would see it at {at:?}");
        self.decide(handle, at.0 << phase::BITS | phase::COMMITTED);
    }

    /// Rolls the transaction back, at any step before the last. Its waiters go on, its dependents are doomed.
    pub fn abort(&self, handle: &Handle) {
        debug_assert!(
            !self.is_in(handle, &[phase::COMMITTED]) || cfg!(any(loom, shuttle)),
            "invariant 8: {handle:?} is rolled back after its commit"
        );
        self.decide(handle, phase::ABORTED);
    }

    #[inline]
    fn decide(&self, handle: &Handle, state: u64) {
        let slot = &self.slots[handle.slot];
        slot.state.swap(state, Ordering::SeqCst);
        total_order();
        if slot.is_watched.load(Ordering::SeqCst) != 0 {
            self.tell_all(handle, phase::of(state) == phase::ABORTED);
        }
    }

    #[cold]
    fn tell_all(&self, handle: &Handle, is_aborted: bool) {
        let dependents = self.waits[handle.slot].bell.ring_out(&self.slots[handle.slot].is_watched);
        debug_assert!(!dependents.contains(&handle.id), "{handle:?} depends on itself");
        for dependent in dependents {
            if self.slot(dependent).dependencies.settle(dependent, is_aborted) {
                self.waits(dependent).bell.wake();
            }
        }
    }

    /// Lets `reader`, which has seen what the prepared transaction `on` wrote, depend on its outcome, however often it is
    /// asked. `false` if `on` is decided by now (ask for its state again) or `reader` runs no more. To be called by
    /// the reader's own threads.
    pub fn depend(&self, reader: TxnId, on: TxnId) -> bool {
        debug_assert_ne!(reader, on);
        let (slot, bell) = (self.slot(on), &self.waits(on).bell);
        let mut listeners = bell.lock();
        slot.is_watched.swap(1, Ordering::SeqCst);
        total_order();
        let is_prepared = phase::of(slot.state.load(Ordering::SeqCst)) == phase::PREPARED;
        if !is_prepared || slot.id.load(Ordering::SeqCst) != on.word() {
            return false;
        }
        if listeners.dependents.contains(&reader) {
            return true;
        }
        let dependent = self.slot(reader);
        if dependent.id.load(Ordering::Acquire) != reader.word() {
            return false;
        }
        dependent.dependencies.add(reader);
        listeners.dependents.push(reader);
        self.count(Count::Dependencies);
        true
    }

    /// Whether the transaction must roll back, because one that it depends on has.
    pub fn is_doomed(&self, handle: &Handle) -> bool {
        self.slots[handle.slot].dependencies.outcome(handle.id) == Some(Err(Doomed))
    }

    /// Waits until every transaction that this one depends on is decided, before the last step of a commit. Costs a load
    /// of its own line if there is none.
    ///
    /// # Errors
    /// [`Doomed`] if one of them has rolled back: this transaction must roll back, too.
    #[inline]
    pub fn await_dependencies(&self, handle: &Handle) -> Result<(), Doomed> {
        let slot = &self.slots[handle.slot];
        let outcome = match slot.dependencies.outcome(handle.id) {
            Some(outcome) => outcome,
            None => self.await_outcome(handle),
        };
        if outcome.is_err() {
            self.count(Count::Cascades);
        }
        outcome
    }

    #[cold]
    fn await_outcome(&self, handle: &Handle) -> Result<(), Doomed> {
        let (slot, bell) = (&self.slots[handle.slot], &self.waits[handle.slot].bell);
        let is_settled = || slot.dependencies.outcome(handle.id).is_some();
        if !Patience::new(None).spin_until(is_settled) {
            bell.park_until(None, is_settled);
        }
        slot.dependencies.outcome(handle.id).expect("it does not park any more")
    }

    /// Waits until a transaction is not prepared any more, and returns its state: for readers that are no
    /// transactions, and for writers. A prepared transaction may wait only for those prepared before it.
    pub fn await_decision(&self, txn: TxnId) -> TransactionState {
        let slot = self.slot(txn);
        let is_decided = || {
            let state = slot.state.load(Ordering::SeqCst);
            slot.id.load(Ordering::SeqCst) != txn.word() || phase::of(state) != phase::PREPARED
        };
        let mut state = self.state(txn);
        if matches!(state, TransactionState::Prepared(_)) && Patience::new(None).spin_until(is_decided) {
            state = self.state(txn);
        }
        while matches!(state, TransactionState::Prepared(_)) {
            let bell = &self.waits(txn).bell;
            let rings = bell.watch(&slot.is_watched);
            bell.park_until(None, || bell.rings() != rings || is_decided());
            state = self.state(txn);
        }
        state
    }
}
