//! The bell of a slot: waiters sleep at the bell of the transaction they wait for, and it rings when they should
//! look again.
//!
//! The protocol uses two words in two places, and depends on the order of the accesses:
//!
//! ```text
//! the waiter                              the owner, when it ends or gives a row up
//!   note the count of rings                 change what the waiter looks at (the state, a row)
//!   raise the watch flag                    -- fence --
//!   -- fence --                             look at the watch flag; if it is up:
//!   look again: is there a reason to wait?    latch: lower it, count a ring, release
//!   latch: sleep unless it has rung           wake all sleepers
//! ```
//!
//! Either the waiter sees the change, or the owner sees the flag. If a flag is raised before it is lowered, its
//! waiter noted the count before the ring, finds that the bell has rung and looks again. A flag raised later stays
//! up.
use std::sync::PoisonError;
use std::time::Instant;

use sync::atomic::{AtomicU64, Ordering, fence};
use sync::blocking::{Condvar, Mutex, MutexGuard};
use types::TxnId;

/// See the module.
#[derive(Default)]
pub(crate) struct Bell {
    listeners: Mutex<Listeners>,
    sleepers: Condvar,
    /// How often it has rung, over all transactions of the slot.
    rings: AtomicU64,
}

#[derive(Default)]
pub(crate) struct Listeners {
    /// The transactions that depend on the slot's.
    pub dependents: Vec<TxnId>,
    /// Threads that sleep.
    sleeping: u32,
}

impl Bell {
    pub fn lock(&self) -> MutexGuard<'_, Listeners> {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn rings(&self) -> u64 {
        self.rings.load(Ordering::SeqCst)
    }

    /// Announces a waiter, which must look once more before it sleeps. Returns the count of rings from before.
    pub fn watch(&self, is_watched: &AtomicU64) -> u64 {
        let rings = self.rings();
        is_watched.swap(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        rings
    }

    /// Sleeps until `is_over`, or the deadline. The state that `is_over` reads is changed before
    /// [`wake`](Self::wake) or [`ring`](Self::ring).
    pub fn park_until(&self, deadline: Option<Instant>, is_over: impl Fn() -> bool) {
        let mut listeners = self.lock();
        while !is_over() {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return;
            }
            listeners.sleeping += 1;
            listeners = match left {
                None => self.sleepers.wait(listeners).unwrap_or_else(PoisonError::into_inner),
                Some(left) => self.sleepers.wait_timeout(listeners, left).unwrap_or_else(PoisonError::into_inner).0,
            };
            debug_assert!(listeners.sleeping > 0, "a sleeper is not counted");
            listeners.sleeping -= 1;
        }
    }

    /// Wakes all sleepers, so that they look at what has changed.
    pub fn wake(&self) {
        let has_sleepers = self.lock().sleeping > 0;
        if has_sleepers {
            self.sleepers.notify_all();
        }
    }

    /// Wakes all waiters, so that they look again.
    pub fn ring(&self, is_watched: &AtomicU64) {
        self.ring_with(is_watched, |_| ());
    }

    /// Rings for the last time for this transaction, so that every waiter looks again. Returns the transactions
    /// that depend on it.
    pub fn ring_out(&self, is_watched: &AtomicU64) -> Vec<TxnId> {
        let dependents = self.ring_with(is_watched, |listeners| std::mem::take(&mut listeners.dependents));
        debug_assert!(
            dependents.iter().enumerate().all(|(at, txn)| !dependents[..at].contains(txn)),
            "each dependent counts one decision: {dependents:?}"
        );
        dependents
    }

    fn ring_with<R>(&self, is_watched: &AtomicU64, take: impl FnOnce(&mut Listeners) -> R) -> R {
        let mut listeners = self.lock();
        let taken = take(&mut listeners);
        is_watched.swap(u64::from(!listeners.dependents.is_empty()), Ordering::SeqCst);
        self.rings.fetch_add(1, Ordering::SeqCst);
        let has_sleepers = listeners.sleeping > 0;
        drop(listeners);
        if has_sleepers {
            self.sleepers.notify_all();
        }
        taken
    }
}
