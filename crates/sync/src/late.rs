//! Work that is put off until it is first needed, such as filling an index of a database that was just opened.
//!
//! ```text
//! not done --> the first caller does it, others that need it wait --> done: one load tells
//!     ^                       |
//!     +------- it failed -----+   the caller is told; the next one tries again
//! ```
//!
//! A thread that has seen it done sees all that the work has written.
use std::sync::PoisonError;

use crate::atomic::{AtomicBool, Ordering};
use crate::blocking::Mutex;

/// See the module.
pub struct Late {
    is_done: AtomicBool,
    /// held by the thread that does it
    doing: Mutex<()>,
}

impl Default for Late {
    fn default() -> Late {
        Late::nothing()
    }
}

impl Late {
    /// There is nothing to do.
    pub fn nothing() -> Late {
        Late { is_done: AtomicBool::new(true), doing: Mutex::new(()) }
    }

    /// From here on there is something to do. To be called before other threads can ask.
    pub fn put_off(&self) {
        self.is_done.store(false, Ordering::Relaxed);
    }

    /// Whether all is done.
    #[inline]
    pub fn is_done(&self) -> bool {
        self.is_done.load(Ordering::Acquire)
    }

    /// Does the work, unless that is done already; waits for a thread that does it.
    ///
    /// # Errors
    /// Those of the work, which is still to be done then.
    #[inline]
    pub fn ensure<E>(&self, work: impl FnOnce() -> Result<(), E>) -> Result<(), E> {
        if self.is_done() { Ok(()) } else { self.ensure_slowly(work) }
    }

    #[cold]
    fn ensure_slowly<E>(&self, work: impl FnOnce() -> Result<(), E>) -> Result<(), E> {
        let _doing = self.doing.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.is_done() {
            work()?;
            self.is_done.store(true, Ordering::Release);
        }
        Ok(())
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn work_that_has_failed_is_done_again_and_work_that_is_done_is_not() {
        let late = Late::nothing();
        assert_eq!(late.ensure(|| Err("nothing is to be done")), Ok(()));
        late.put_off();
        assert!(!late.is_done());
        assert_eq!(late.ensure(|| Err("no")), Err("no"));
        let mut done = 0;
        for _ in 0..2 {
            late.ensure(|| {
                done += 1;
                Ok::<(), ()>(())
            })
            .unwrap();
        }
        assert!(done == 1 && late.is_done());
    }
}
