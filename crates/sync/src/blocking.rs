//! The switch between what `std` makes threads wait with, [`Mutex`], [`Condvar`] and [`OnceLock`], and what the model
//! checkers do. A wait with a time limit never ends by its limit under a model checker.
//!
//! All threads of a model share one thread of the system. If a model checker stopped a thread inside a mutex of
//! `std`, the next thread that asks for the mutex would therefore block for good.
#[cfg(loom)]
pub use loom::sync::{Condvar, Mutex, MutexGuard};
#[cfg(all(shuttle, not(loom)))]
pub use shuttle::sync::{Condvar, Mutex, MutexGuard};
#[cfg(not(any(loom, shuttle)))]
pub use std::sync::{Condvar, Mutex, MutexGuard, OnceLock};

#[cfg(any(loom, shuttle))]
pub use once::OnceLock;

#[cfg(any(loom, shuttle))]
mod once {
    use std::sync::PoisonError;

    use super::Mutex;
    use crate::atomic::{AtomicBool, Ordering};

    /// A cell that is set once, of the parts that the model checker watches; it promises what that of `std` does.
    pub struct OnceLock<T> {
        is_set: AtomicBool,
        setting: Mutex<()>,
        /// No thread waits for this cell: it is set with the mutex held.
        value: std::sync::OnceLock<T>,
    }

    impl<T> Default for OnceLock<T> {
        fn default() -> Self {
            Self::new()
        }
    }

    impl<T> From<T> for OnceLock<T> {
        fn from(value: T) -> Self {
            OnceLock { is_set: AtomicBool::new(true), setting: Mutex::new(()), value: value.into() }
        }
    }

    impl<T> OnceLock<T> {
        /// A cell that is not set.
        pub fn new() -> Self {
            OnceLock { is_set: AtomicBool::new(false), setting: Mutex::new(()), value: std::sync::OnceLock::new() }
        }

        /// The value, once it is set.
        pub fn get(&self) -> Option<&T> {
            if self.is_set.load(Ordering::Acquire) { self.value.get() } else { None }
        }

        /// The value. The first caller makes it with `make`, and others wait.
        pub fn get_or_init(&self, make: impl FnOnce() -> T) -> &T {
            if !self.is_set.load(Ordering::Acquire) {
                let _setting = self.setting.lock().unwrap_or_else(PoisonError::into_inner);
                if self.value.get().is_none() {
                    let made = make();
                    self.value.get_or_init(|| made);
                    self.is_set.store(true, Ordering::Release);
                }
            }
            self.value.get().expect("it was set with the mutex held")
        }
    }
}
