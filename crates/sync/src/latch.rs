//! Latches behind one trait, so that an index is written once and measured over each of them.
//!
//! | latch | readers share | waits | for |
//! |---|---|---|---|
//! | [`SpinLatch`] | no | on the latch word, with backoff | short sections, few cores; the latch to elide |
//! | [`RwSpinLatch`] | yes | on the latch word, writers first | readers in the majority |
//! | [`VersionLatch`] | yes | readers need not wait nor write | nodes of an index |
//!
//! Crate `latches` adds those that only figures use: queues, biased, elided and throttled latches.
//!
//! The index of tsx-index, section 2.1.1, uses the first two, one latch for the whole tree.
mod latched;
mod rw;
mod spin;
mod version;

pub use latched::Latched;
pub use rw::RwSpinLatch;
pub use spin::SpinLatch;
pub use version::{Version, VersionLatch};

use crate::atomic::{AtomicU64, Ordering, fence};
use std::marker::PhantomData;
use std::mem::ManuallyDrop;

/// Protects memory for a few nanoseconds: many readers or one writer.
///
/// Acquiring returns a token that belongs to the release; [`Latch::exclusive`] and [`Latch::shared`] wrap both calls
/// in a guard. No latch may be acquired again by the thread that holds it.
///
/// # Safety
///
/// Between the return of an exclusive acquire and its release no other acquire may return, and between the return
/// of a shared acquire and its release no exclusive one; a release happens before every later acquire that it could
/// have kept waiting. [`Latched`] builds references on that.
pub unsafe trait Latch: Default + Send + Sync {
    /// Passed from an exclusive acquire to its release.
    type Exclusive;
    /// Passed from a shared acquire to its release.
    type Shared;

    /// Waits until this thread is alone.
    fn acquire_exclusive(&self) -> Self::Exclusive;

    /// Acquires the latch for this thread alone if that needs no waiting.
    fn try_acquire_exclusive(&self) -> Option<Self::Exclusive>;

    /// Ends an exclusive hold.
    ///
    /// # Safety
    ///
    /// `held` comes from an exclusive acquire of this latch by this thread.
    unsafe fn release_exclusive(&self, held: Self::Exclusive);

    /// Waits until no writer is inside.
    fn acquire_shared(&self) -> Self::Shared;

    /// Acquires the latch for reading if that needs no waiting.
    fn try_acquire_shared(&self) -> Option<Self::Shared>;

    /// Ends a shared hold.
    ///
    /// # Safety
    ///
    /// `held` comes from a shared acquire of this latch by this thread.
    unsafe fn release_shared(&self, held: Self::Shared);

    /// [`Latch::acquire_exclusive`] with a guard that releases.
    #[inline]
    fn exclusive(&self) -> ExclusiveGuard<'_, Self> {
        ExclusiveGuard { latch: self, held: ManuallyDrop::new(self.acquire_exclusive()), not_send: PhantomData }
    }

    /// [`Latch::try_acquire_exclusive`] with a guard that releases.
    #[inline]
    fn try_exclusive(&self) -> Option<ExclusiveGuard<'_, Self>> {
        let held = ManuallyDrop::new(self.try_acquire_exclusive()?);
        Some(ExclusiveGuard { latch: self, held, not_send: PhantomData })
    }

    /// [`Latch::acquire_shared`] with a guard that releases.
    #[inline]
    fn shared(&self) -> SharedGuard<'_, Self> {
        SharedGuard { latch: self, held: ManuallyDrop::new(self.acquire_shared()), not_send: PhantomData }
    }

    /// [`Latch::try_acquire_shared`] with a guard that releases.
    #[inline]
    fn try_shared(&self) -> Option<SharedGuard<'_, Self>> {
        let held = ManuallyDrop::new(self.try_acquire_shared()?);
        Some(SharedGuard { latch: self, held, not_send: PhantomData })
    }

    /// Runs `body` as a reader in the cheapest way that the latch has, several times if need be.
    ///
    /// Under an optimistic latch a writer may be at work meanwhile: `body` reads nothing but atomics, and calls
    /// [`Reading::check`] before it follows what it has read. Its result is taken only if all it read belongs
    /// together.
    #[inline]
    fn read<R>(&self, mut body: impl FnMut(&Reading<'_>) -> Result<R, Restart>) -> R {
        let _held = self.shared();
        body_until_done(&mut body)
    }
}

/// Runs `body` under a latch that is held, until it returns a result.
pub fn body_until_done<R>(body: &mut impl FnMut(&Reading<'_>) -> Result<R, Restart>) -> R {
    loop {
        if let Ok(result) = body(&Reading::undisturbed()) {
            return result;
        }
    }
}

/// A latch that can be inspected from within a transaction, as elision requires: the latch word enters the
/// transaction's read set, and a thread that acquires the latch aborts the transaction (tsx-index, section 3.1).
///
/// # Safety
///
/// The answers are right at the moment at which the words that they were read from had these values, and an acquire
/// that would change an answer writes one of these words.
pub unsafe trait Elidable: Latch {
    /// Whether no section is inside: then a section of either kind may run as a transaction.
    fn is_free(&self) -> bool;

    /// No writer is inside: a reading section may run as a transaction.
    fn is_free_of_writers(&self) -> bool;
}

/// A reader has to begin again, as a writer was at work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Restart;

/// The state of the latch for the body of a [`Latch::read`].
pub struct Reading<'a> {
    watched: Option<(&'a AtomicU64, u64, u64)>,
}

impl<'a> Reading<'a> {
    /// A read that no writer disturbs, as its latch is held.
    #[inline]
    pub fn undisturbed() -> Self {
        Reading { watched: None }
    }

    /// A read that stays valid while `word`, without the bits outside `mask`, is `expected`.
    #[inline]
    pub fn watching(word: &'a AtomicU64, expected: u64, mask: u64) -> Self {
        Reading { watched: Some((word, expected, mask)) }
    }

    /// Whether everything read so far belongs together; to be called before a pointer or a position among it is
    /// followed.
    ///
    /// # Errors
    /// [`Restart`] if a writer has the latch, or had it since this read began: what was read may not belong together.
    #[inline]
    pub fn check(&self) -> Result<(), Restart> {
        match self.watched {
            Some((word, expected, mask)) if !is_unchanged(word, expected, mask) => Err(Restart),
            _ => Ok(()),
        }
    }
}

/// The second half of a sequence lock's read. The fence pairs with the writer's, between its taking the word and
/// its first store of data: a thread that has read a datum of that writer sees the word taken.
#[inline]
pub(crate) fn is_unchanged(word: &AtomicU64, expected: u64, mask: u64) -> bool {
    fence(Ordering::Acquire);
    word.load(Ordering::Relaxed) & mask == expected
}

/// Holds a latch alone until dropped.
#[must_use = "the latch is released when the guard is dropped"]
pub struct ExclusiveGuard<'a, L: Latch> {
    latch: &'a L,
    held: ManuallyDrop<L::Exclusive>,
    not_send: PhantomData<*const ()>,
}

impl<L: Latch> Drop for ExclusiveGuard<'_, L> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the token is taken here only, and the guard is not used after its drop.
        let held = unsafe { ManuallyDrop::take(&mut self.held) };
        // SAFETY: the token comes from this latch, and as the guard cannot leave its thread, from this thread.
        unsafe { self.latch.release_exclusive(held) }
    }
}

/// Holds a latch for reading until dropped.
#[must_use = "the latch is released when the guard is dropped"]
pub struct SharedGuard<'a, L: Latch> {
    latch: &'a L,
    held: ManuallyDrop<L::Shared>,
    not_send: PhantomData<*const ()>,
}

impl<L: Latch> Drop for SharedGuard<'_, L> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the token is taken here only, and the guard is not used after its drop.
        let held = unsafe { ManuallyDrop::take(&mut self.held) };
        // SAFETY: the token comes from this latch, and as the guard cannot leave its thread, from this thread.
        unsafe { self.latch.release_shared(held) }
    }
}
