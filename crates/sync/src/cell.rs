//! A cell for plain data that a latch protects. Loom checks its accesses for races.

/// `std::cell::UnsafeCell` with loom's way of access: a closure receives the pointer, and loom complains where another
/// access overlaps.
#[derive(Debug, Default)]
pub struct UnsafeCell<T>(Inner<T>);

#[cfg(loom)]
type Inner<T> = loom::cell::UnsafeCell<T>;
#[cfg(not(loom))]
type Inner<T> = std::cell::UnsafeCell<T>;

impl<T> UnsafeCell<T> {
    /// A cell that holds `value`.
    pub fn new(value: T) -> Self {
        UnsafeCell(Inner::new(value))
    }

    /// Hands out a pointer for reading.
    #[inline]
    pub fn with<R>(&self, access: impl FnOnce(*const T) -> R) -> R {
        #[cfg(loom)]
        return self.0.with(access);
        #[cfg(not(loom))]
        access(self.0.get())
    }

    /// Hands out a pointer for writing.
    #[inline]
    pub fn with_mut<R>(&self, access: impl FnOnce(*mut T) -> R) -> R {
        #[cfg(loom)]
        return self.0.with_mut(access);
        #[cfg(not(loom))]
        access(self.0.get())
    }
}
