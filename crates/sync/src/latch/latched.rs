//! Data together with the latch that protects it.
use super::Latch;
use crate::cell::UnsafeCell;

/// A `T` that is reached only under its latch. Access is by closure, which keeps a section short and lets loom see
/// where it begins and ends.
#[derive(Default)]
pub struct Latched<T, L> {
    latch: L,
    data: UnsafeCell<T>,
}

// SAFETY: the latch lets several threads have `&T` at once, and one at a time `&mut T`.
unsafe impl<T: Send + Sync, L: Latch> Sync for Latched<T, L> {}
// SAFETY: both parts may move to another thread.
unsafe impl<T: Send, L: Latch> Send for Latched<T, L> {}

impl<T, L: Latch> Latched<T, L> {
    /// Data under a free latch.
    pub fn new(data: T) -> Self {
        Self::with_latch(L::default(), data)
    }

    /// Data under a latch that was prepared by hand.
    pub fn with_latch(latch: L, data: T) -> Self {
        Latched { latch, data: UnsafeCell::new(data) }
    }

    /// The latch.
    pub fn latch(&self) -> &L {
        &self.latch
    }

    /// Looks at the data together with other readers.
    #[inline]
    pub fn read<R>(&self, body: impl FnOnce(&T) -> R) -> R {
        let _held = self.latch.shared();
        // SAFETY: the latch is held for reading, so no thread has the data for writing.
        self.data.with(|data| body(unsafe { &*data }))
    }

    /// Changes the data alone.
    #[inline]
    pub fn write<R>(&self, body: impl FnOnce(&mut T) -> R) -> R {
        let _held = self.latch.exclusive();
        // SAFETY: the latch is held exclusively, so no other thread has the data.
        self.data.with_mut(|data| body(unsafe { &mut *data }))
    }
}
