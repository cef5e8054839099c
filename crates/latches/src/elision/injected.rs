//! Transactions in software for tests: they abort as the test says, on any machine.
//!
//! A transaction that starts is real in so far as it excludes others: one runs at a time, a second one conflicts,
//! and a thread that takes an elided latch waits for it to end. It cannot be rolled back, so it aborts at its
//! beginning or when it finds the latch held, and never later. Users of the latch cannot tell the difference.
use super::backend::{AbortCause, Backend, Begin};
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use sync::atomic::{AtomicUsize, Ordering, fence};
use sync::hint::SpinWait;

/// A backend with a script of what happens to the next transactions; when it has ended, they start.
#[derive(Debug)]
pub struct InjectedBackend {
    is_available: bool,
    script: Mutex<VecDeque<Begin>>,
    /// The number of the thread in a transaction, plus one.
    running: AtomicUsize,
}

impl Default for InjectedBackend {
    fn default() -> Self {
        InjectedBackend { is_available: true, script: Mutex::default(), running: AtomicUsize::new(0) }
    }
}

impl InjectedBackend {
    /// A processor without transactions.
    pub fn absent() -> Self {
        InjectedBackend { is_available: false, ..Self::default() }
    }

    /// Appends to the script.
    pub fn inject(&self, next: impl IntoIterator<Item = Begin>) {
        self.script.lock().unwrap_or_else(PoisonError::into_inner).extend(next);
    }

    /// Appends so many aborts of one cause to the script.
    pub fn inject_aborts(&self, cause: AbortCause, count: usize) {
        self.inject(std::iter::repeat_n(Begin::Aborted(cause), count));
    }

    /// How much of the script is left.
    pub fn script_len(&self) -> usize {
        self.script.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

// SAFETY: one transaction runs at a time. It looks at the latch after it has entered itself as running; a thread
// that takes the latch looks for running transactions afterwards, and waits. With the fences in between, one of the
// two sees the other.
unsafe impl Backend for InjectedBackend {
    fn is_available(&self) -> bool {
        self.is_available
    }

    fn is_active(&self) -> bool {
        self.running.load(Ordering::Relaxed) == sync::thread::number() + 1
    }

    unsafe fn begin(&self) -> Begin {
        let next = self.script.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        if let Some(Begin::Aborted(cause)) = next {
            return Begin::Aborted(cause);
        }
        let me = sync::thread::number() + 1;
        if self.running.compare_exchange(0, me, Ordering::Acquire, Ordering::Relaxed).is_err() {
            return Begin::Aborted(AbortCause::Conflict);
        }
        fence(Ordering::SeqCst);
        Begin::Started
    }

    unsafe fn commit(&self) {
        self.running.store(0, Ordering::Release);
    }

    unsafe fn abort_latch_busy(&self) {
        self.running.store(0, Ordering::Release);
    }

    fn settle(&self) {
        fence(Ordering::SeqCst);
        let mut wait = SpinWait::new();
        while self.running.load(Ordering::Acquire) != 0 {
            wait.pause();
        }
    }
}
