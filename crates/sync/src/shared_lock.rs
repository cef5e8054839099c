//! A lock that many threads hold to read, and one to change what it guards.
//!
//! A thread that holds it to read may do so once more while another one waits to change what it guards. So where a thread keeps several
//! such locks, one that it has already never stops it. Nothing hot waits here: it is the lock of `parking_lot`, and the model
//! checker's under a model.
#[cfg(not(any(loom, shuttle)))]
use parking_lot as locks;
#[cfg(all(shuttle, not(loom)))]
use shuttle::sync as locks;

/// A lock of a `T`, without poisoning.
pub struct SharedLock<T>(locks::RwLock<T>);

/// What a thread reads.
pub type Shared<'l, T> = locks::RwLockReadGuard<'l, T>;
/// What a thread changes.
pub type Exclusive<'l, T> = locks::RwLockWriteGuard<'l, T>;

impl<T> SharedLock<T> {
    /// A lock that nobody holds.
    pub fn new(value: T) -> SharedLock<T> {
        SharedLock(locks::RwLock::new(value))
    }
}

#[cfg(not(any(loom, shuttle)))]
impl<T> SharedLock<T> {
    /// Holds it to read; waits while another thread changes what it guards, and not for one that waits to.
    #[inline]
    pub fn read(&self) -> Shared<'_, T> {
        self.0.read_recursive()
    }

    /// Holds it to change what it guards; waits for all others.
    pub fn write(&self) -> Exclusive<'_, T> {
        self.0.write()
    }

    /// Holds it to change what it guards, unless another thread has it.
    pub fn try_write(&self) -> Option<Exclusive<'_, T>> {
        self.0.try_write()
    }
}

/// Models never have a thread hold one twice.
#[cfg(all(shuttle, not(loom)))]
impl<T> SharedLock<T> {
    /// Holds it to read; waits while another thread changes what it guards.
    pub fn read(&self) -> Shared<'_, T> {
        self.0.read().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Holds it to change what it guards; waits for all others.
    pub fn write(&self) -> Exclusive<'_, T> {
        self.0.write().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Holds it to change what it guards, unless another thread has it.
    pub fn try_write(&self) -> Option<Exclusive<'_, T>> {
        self.0.try_write().ok()
    }
}
