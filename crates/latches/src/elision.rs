//! Transactional lock elision: sections of a latch run as hardware transactions, side by side where they do not touch
//! the same lines, and the latch is only looked at (tsx-index, sections 3 and 4; tle-multisocket, section 2).
//!
//! ```text
//! acquire:  elision switched off? ------------------------------------+
//!      +--> wait until the latch is free                              |
//!      |    begin a transaction                                       |
//!      |      started:  latch free? (now in the read set) -> inside   |
//!      |      aborted:  count the cause; may it be tried again?       |
//!      +----- yes                                                     |
//!             no -> was it too often? then off for a while            v
//!                                                            take the latch inside
//! ```
//!
//! - *Limits.* How often is tried again depends on the cause: [`RetryPolicy`].
//! - *No lemming effect* (tsx-index, section 3.3.2). An attempt that fails because the latch is held is not counted,
//!   and the next one waits until it is free.
//! - *Adaptivity* (tsx-index, section 3.3.3). Where transactions abort too often, the latch is taken at once for a number
//!   of acquisitions, then elision is tried again: [`Adaptivity`]. The paper speaks of a period of time; a count needs
//!   no clock.
//! - *No transactions here.* Where the processor has none (the [`Backend`] says so), a reader that comes through
//!   [`Latch::read`] looks without acquiring and checks a version that real writers count up; all others acquire.
//!
//! The older interface of the paper, HLE (instruction prefixes instead of a fall-back path), has been removed from the
//! processors and is not offered.
mod backend;
mod injected;
mod policy;
mod rtm;

pub use backend::{AbortCause, Backend, Begin};
pub use injected::InjectedBackend;
pub use policy::{Adaptivity, Attempts, RetryPolicy};
pub use rtm::{Rtm, RtmPermission};

use sync::Counters;
use sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use sync::hint::SpinWait;
use sync::latch::{Elidable, Latch, Reading, Restart, body_until_done};

/// Counter behind those of the causes.
const COMMITS: usize = AbortCause::COUNT;
const FALL_BACKS: usize = COMMITS + 1;
const PAUSED: usize = COMMITS + 2;
const RESTARTS: usize = COMMITS + 3;

/// Optimistic attempts of a reader where there are no transactions, before it acquires the latch.
const OPTIMISTIC_ATTEMPTS: usize = if cfg!(any(loom, shuttle)) { 2 } else { 8 };

/// A latch that runs its sections as hardware transactions where that succeeds.
///
/// The processor may roll a section back and repeat it, so it must touch memory only. A system call aborts the
/// transaction, and the section then runs under the latch.
pub struct Elided<L, B = Rtm> {
    latch: L,
    /// Acquisitions that are still to take the latch at once.
    pause: AtomicU32,
    /// Odd while a writer holds the latch; counted where there are no transactions.
    version: AtomicU64,
    has_transactions: bool,
    backend: B,
    policy: RetryPolicy,
    adaptivity: Adaptivity,
    /// Aborts and commits at the last look at their proportion.
    aborts: AtomicU32,
    commits_before: AtomicU64,
    counters: Counters<{ RESTARTS + 1 }>,
}

/// How an elided section is held: as a transaction, or by the latch inside.
pub struct Section<T>(Way<T>);

enum Way<T> {
    Transaction,
    Latch(T),
}

/// Counts of how the sections of an [`Elided`] latch ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ElisionCounts {
    /// Transactions that committed.
    pub commits: u64,
    /// Transactions that aborted, by [`AbortCause`].
    pub aborts: [u64; AbortCause::COUNT],
    /// Sections that took the latch because transactions had failed.
    pub fall_backs: u64,
    /// Sections that took the latch because elision was switched off for a while.
    pub paused: u64,
    /// Optimistic reads that had to begin again.
    pub restarts: u64,
}

impl ElisionCounts {
    /// The transactions that aborted for this cause.
    pub fn aborts_by(&self, cause: AbortCause) -> u64 {
        self.aborts[cause as usize]
    }
}

impl<L: Elidable, B: Backend + Default> Default for Elided<L, B> {
    fn default() -> Self {
        Self::with_policy(B::default(), RetryPolicy::default(), Adaptivity::default())
    }
}

impl<L: Elidable, B: Backend> Elided<L, B> {
    /// A free latch with a policy of its own.
    pub fn with_policy(backend: B, policy: RetryPolicy, adaptivity: Adaptivity) -> Self {
        Elided {
            latch: L::default(),
            pause: AtomicU32::new(0),
            version: AtomicU64::new(0),
            has_transactions: backend.is_available(),
            backend,
            policy,
            adaptivity,
            aborts: AtomicU32::new(0),
            commits_before: AtomicU64::new(0),
            counters: Counters::default(),
        }
    }

    /// The counts of the sections so far.
    pub fn counts(&self) -> ElisionCounts {
        ElisionCounts {
            commits: self.counters.sum(COMMITS),
            aborts: std::array::from_fn(|cause| self.counters.sum(cause)),
            fall_backs: self.counters.sum(FALL_BACKS),
            paused: self.counters.sum(PAUSED),
            restarts: self.counters.sum(RESTARTS),
        }
    }

    /// The backend.
    pub fn backend(&self) -> &B {
        &self.backend
    }

    /// The latch inside, for callers that must take it themselves.
    pub fn latch(&self) -> &L {
        &self.latch
    }

    /// Runs the section from here on as a transaction, if that succeeds; otherwise the latch has to be taken.
    fn elide(&self, is_free: impl Fn(&L) -> bool) -> bool {
        if self.is_paused() {
            return false;
        }
        let mut attempts = self.policy.attempts();
        loop {
            self.wait_until_free(&is_free);
            match self.attempt(&is_free) {
                Begin::Started => return true,
                Begin::Aborted(cause) if attempts.may_try_again(cause) => {}
                Begin::Aborted(_) => break,
            }
        }
        self.note_fall_back(attempts.aborts());
        false
    }

    /// One transaction. The look at the latch from inside puts its word into the read set.
    fn attempt(&self, is_free: impl Fn(&L) -> bool) -> Begin {
        // SAFETY: the section that begins is ended by `commit` in the release, or by the abort below.
        let mut begin = unsafe { self.backend.begin() };
        if let Begin::Started = begin {
            if is_free(&self.latch) {
                return Begin::Started;
            }
            // SAFETY: a transaction of this thread is running.
            unsafe { self.backend.abort_latch_busy() };
            // A processor goes on at `begin`; a backend in software comes here.
            begin = Begin::Aborted(AbortCause::LatchBusy);
        }
        if let Begin::Aborted(cause) = begin {
            self.counters.add(cause as usize, 1);
        }
        begin
    }

    /// Waiting within an outer transaction would be endless: it sees the latch as it was. There the attempt is made
    /// at once and aborts the outer transaction.
    fn wait_until_free(&self, is_free: impl Fn(&L) -> bool) {
        let mut wait = SpinWait::new();
        while !is_free(&self.latch) && !self.backend.is_active() {
            wait.pause();
        }
    }

    /// Whether elision is switched off; counts towards its return. Two threads that count at once may count one.
    fn is_paused(&self) -> bool {
        let left = self.pause.load(Ordering::Relaxed);
        if left == 0 {
            return false;
        }
        self.pause.store(left - 1, Ordering::Relaxed);
        self.counters.add(PAUSED, 1);
        true
    }

    /// Switches elision off where commits are too few for the aborts. Only sections that have failed come here, so
    /// that successful ones write nothing that others read.
    #[cold]
    fn note_fall_back(&self, aborts: u32) {
        self.counters.add(FALL_BACKS, 1);
        let aborts = self.aborts.fetch_add(aborts, Ordering::Relaxed) + aborts;
        if aborts < self.adaptivity.aborts_max {
            return;
        }
        self.aborts.store(0, Ordering::Relaxed);
        let commits = self.counters.sum(COMMITS);
        let commits_since = commits - self.commits_before.swap(commits, Ordering::Relaxed).min(commits);
        if commits_since < u64::from(aborts) * u64::from(self.adaptivity.commits_per_abort_min) {
            self.pause.store(self.adaptivity.pause_acquisitions, Ordering::Relaxed);
        }
    }

    /// Tells optimistic readers that a writer is at work. The fence stands before its first store, and
    /// pairs with that of [`Reading::check`].
    #[inline]
    fn begin_write(&self) {
        if self.has_transactions {
            self.backend.settle();
        } else {
            let version = self.version.load(Ordering::Relaxed);
            self.version.store(version + 1, Ordering::Relaxed);
            fence(Ordering::Release);
        }
    }

    #[inline]
    fn end_write(&self) {
        if !self.has_transactions {
            let version = self.version.load(Ordering::Relaxed);
            self.version.store(version + 1, Ordering::Release);
        }
    }

    #[inline]
    fn begin_read(&self) {
        if self.has_transactions {
            self.backend.settle();
        }
    }

    #[inline]
    fn commit(&self) {
        // SAFETY: the section was begun as a transaction by this thread, and its token ends with it.
        unsafe { self.backend.commit() };
        self.counters.add(COMMITS, 1);
    }

    /// A reader without transactions and without acquiring: looks, and looks whether a writer was there.
    fn read_optimistically<R>(&self, body: &mut impl FnMut(&Reading<'_>) -> Result<R, Restart>) -> Option<R> {
        let mut wait = SpinWait::new();
        for _ in 0..OPTIMISTIC_ATTEMPTS {
            let version = self.version.load(Ordering::Acquire);
            let reading = Reading::watching(&self.version, version, u64::MAX);
            if version & 1 == 0
                && let Ok(result) = body(&reading)
                && reading.check().is_ok()
            {
                return Some(result);
            }
            self.counters.add(RESTARTS, 1);
            wait.pause();
        }
        None
    }
}

// SAFETY: a section holds the latch inside, with what that promises, or is a transaction that has seen the latch
// free of the sections that it excludes and has the latch's word in its read set. Such a transaction commits only
// if no thread has taken the latch until then, and transactions exclude each other by conflict. `settle` makes the
// same true of backends in software.
unsafe impl<L: Elidable, B: Backend + Default> Latch for Elided<L, B> {
    type Exclusive = Section<L::Exclusive>;
    type Shared = Section<L::Shared>;

    #[inline]
    fn acquire_exclusive(&self) -> Self::Exclusive {
        if self.has_transactions && self.elide(L::is_free) {
            return Section(Way::Transaction);
        }
        let held = self.latch.acquire_exclusive();
        self.begin_write();
        Section(Way::Latch(held))
    }

    #[inline]
    fn try_acquire_exclusive(&self) -> Option<Self::Exclusive> {
        if self.has_transactions && !self.is_paused() && self.latch.is_free() {
            let Begin::Aborted(_) = self.attempt(L::is_free) else { return Some(Section(Way::Transaction)) };
        }
        let held = self.latch.try_acquire_exclusive()?;
        self.begin_write();
        Some(Section(Way::Latch(held)))
    }

    #[inline]
    unsafe fn release_exclusive(&self, held: Self::Exclusive) {
        match held.0 {
            Way::Transaction => self.commit(),
            Way::Latch(held) => {
                self.end_write();
                // SAFETY: the caller's promise, passed on.
                unsafe { self.latch.release_exclusive(held) }
            }
        }
    }

    #[inline]
    fn acquire_shared(&self) -> Self::Shared {
        if self.has_transactions && self.elide(L::is_free_of_writers) {
            return Section(Way::Transaction);
        }
        let held = self.latch.acquire_shared();
        self.begin_read();
        Section(Way::Latch(held))
    }

    #[inline]
    fn try_acquire_shared(&self) -> Option<Self::Shared> {
        if self.has_transactions && !self.is_paused() && self.latch.is_free_of_writers() {
            let begin = self.attempt(L::is_free_of_writers);
            let Begin::Aborted(_) = begin else { return Some(Section(Way::Transaction)) };
        }
        let held = self.latch.try_acquire_shared()?;
        self.begin_read();
        Some(Section(Way::Latch(held)))
    }

    #[inline]
    unsafe fn release_shared(&self, held: Self::Shared) {
        match held.0 {
            Way::Transaction => self.commit(),
            // SAFETY: the caller's promise, passed on.
            Way::Latch(held) => unsafe { self.latch.release_shared(held) },
        }
    }

    #[inline]
    fn read<R>(&self, mut body: impl FnMut(&Reading<'_>) -> Result<R, Restart>) -> R {
        if !self.has_transactions
            && let Some(result) = self.read_optimistically(&mut body)
        {
            return result;
        }
        let _held = self.shared();
        body_until_done(&mut body)
    }
}
