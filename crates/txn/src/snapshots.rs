//! Snapshots: each transaction announces what it reads, so that no version that it still sees is given up.
//!
//! A transaction announces a time and reads the clock *afterwards*; if the clock has moved it announces the new
//! time, until both agree. A thread that wants to give up versions reads the clock and looks at the announcements
//! *afterwards*. In the one order of these four accesses, either the announcement comes before the look, and is
//! seen; or the look comes before it, and then the clock that was read before the look shows no more than the one
//! read after the announcement. So a snapshot that the look missed is at or after the clock that was read before
//! the look.
use sync::atomic::{Ordering, fence, total_order};
use types::{Snapshot, Timestamp};

use crate::table::{Handle, TooManyTransactions, TransactionTable};

/// The announcement of a transaction that has no snapshot, and of an unused slot: later than all others.
pub(crate) const NO_SNAPSHOT: u64 = u64::MAX;

impl TransactionTable {
    /// The newest commit timestamp handed out.
    #[inline]
    pub fn now(&self) -> Timestamp {
        Timestamp(self.clock.load(Ordering::Acquire))
    }

    /// The newest snapshot, for a reader that belongs to no transaction.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::at(self.now())
    }

    /// Starts a transaction and takes the snapshot that it reads: every commit so far.
    ///
    /// # Errors
    /// [`TooManyTransactions`] if as many transactions run as the table has slots.
    #[inline]
    pub fn begin(&self) -> Result<(Handle, Timestamp), TooManyTransactions> {
        let now = self.now();
        let handle = self.claim_slot(now)?;
        let at = self.announce_newest(&handle, now);
        Ok((handle, at))
    }

    /// Starts a transaction that reads the snapshot at `at`. The caller still has to find out whether what that snapshot
    /// sees has been given up; from here on it will not be.
    ///
    /// # Errors
    /// [`TooManyTransactions`] if as many transactions run as the table has slots.
    pub fn begin_at(&self, at: Timestamp) -> Result<Handle, TooManyTransactions> {
        let handle = self.claim_slot(self.now())?;
        self.announce(&handle, at);
        Ok(handle)
    }

    /// Starts a transaction that has no snapshot until [`renew_snapshot`](Self::renew_snapshot).
    ///
    /// # Errors
    /// [`TooManyTransactions`] if as many transactions run as the table has slots.
    pub fn begin_without_snapshot(&self) -> Result<Handle, TooManyTransactions> {
        self.claim_slot(self.now())
    }

    /// Takes a new snapshot in place of the one before, if there was one: every commit so far.
    pub fn renew_snapshot(&self, handle: &Handle) -> Timestamp {
        self.announce_newest(handle, self.now())
    }

    /// Gives up the snapshot: what only this transaction saw may go.
    pub fn drop_snapshot(&self, handle: &Handle) {
        self.slots[handle.slot].reads.store(NO_SNAPSHOT, Ordering::Release);
    }

    #[inline]
    fn announce_newest(&self, handle: &Handle, now: Timestamp) -> Timestamp {
        let mut announced = now;
        loop {
            self.announce(handle, announced);
            let now = Timestamp(self.clock.load(Ordering::SeqCst));
            if now == announced {
                return now;
            }
            debug_assert!(now > announced, "invariant 4: the clock went back from {announced:?} to {now:?}");
            announced = now;
        }
    }

    /// Announces that the transaction reads nothing older than `at`. The load that follows decides what it reads,
    /// and must be `SeqCst` too: after a weaker one, a processor may find an older clock than the thread that
    /// missed the announcement.
    #[inline]
    fn announce(&self, handle: &Handle, at: Timestamp) {
        self.slots[handle.slot].reads.swap(at.0, Ordering::SeqCst);
        total_order();
    }

    /// A time that no snapshot in use, nor any that a transaction will take later, is older than.
    pub fn oldest_snapshot(&self) -> Timestamp {
        let (now, announced) = self.announced();
        let oldest = announced.fold(now, Timestamp::min);
        debug_assert!(oldest <= now, "invariant 3: a snapshot taken from now on would be older than {oldest:?}");
        oldest
    }

    /// The snapshots in use, in order and without repeats, and as the last one the clock: every other snapshot, of now
    /// or later, is at or after it.
    pub fn snapshots_in_use(&self) -> Vec<Timestamp> {
        let (now, announced) = self.announced();
        let mut snapshots: Vec<Timestamp> = announced.filter(|at| *at < now).collect();
        snapshots.push(now);
        snapshots.sort_unstable();
        snapshots.dedup();
        debug_assert_eq!(
            snapshots.last(),
            Some(&now),
            "invariant 3: later snapshots are at or after the last one told"
        );
        snapshots
    }

    /// The clock, and then the announcements.
    fn announced(&self) -> (Timestamp, impl Iterator<Item = Timestamp>) {
        let now = self.now();
        fence(Ordering::SeqCst);
        (now, self.slots.iter().map(|slot| Timestamp(slot.reads.load(Ordering::Acquire))))
    }
}
