//! What every mechanism offers: memory that is updated in place, and images of it.
use std::ptr::NonNull;

use crate::error::SnapshotError;
use crate::item::Reduce;

/// Memory that is updated in place, and of which snapshots are taken.
pub(crate) trait Memory: Send + Sync {
    /// The address of the first byte, which does not change.
    fn live(&self) -> NonNull<u8>;

    /// Begins a snapshot, and calls `at` once at its instant, while nobody writes. The gate is closed; updates that are not announced
    /// to it are held back by the memory itself.
    fn begin(&self, at: &mut dyn FnMut()) -> Result<Box<dyn Image>, SnapshotError>;
}

/// The memory as of an instant. Dropping it ends the snapshot.
pub(crate) trait Image: Send + Sync {
    /// Where the bytes lie in this process. They do not change while the image lives.
    fn bytes(&self) -> Option<NonNull<u8>>;

    /// Reads bytes from `offset` on into `into`.
    fn read(&self, offset: usize, into: &mut [u8]) -> Result<(), SnapshotError>;

    /// Runs reduction number `number` over `len` items from the byte `offset` on.
    fn reduce(&self, number: usize, offset: usize, len: usize) -> Result<[u8; 16], SnapshotError>;

    /// The memory that the snapshot has for itself, in bytes, as far as this process can see it.
    fn own_bytes(&self) -> usize;
}

/// Runs a reduction in this process.
///
/// # Safety
/// `len` items of the reduction's type lie from `offset` on in the mapping that begins at `start`, and nobody writes them.
pub(super) unsafe fn reduce_here(reduce: Reduce, start: NonNull<u8>, offset: usize, len: usize) -> [u8; 16] {
    // SAFETY: as the caller promises.
    unsafe { reduce(start.as_ptr().add(offset), len) }
}

/// Copies bytes out of a mapping of this process.
///
/// # Safety
/// The mapping that begins at `start` has `into.len()` bytes from `offset` on, and nobody writes them.
pub(super) unsafe fn read_here(start: NonNull<u8>, offset: usize, into: &mut [u8]) {
    // SAFETY: as the caller promises; memory of the caller is not in the mapping.
    unsafe { std::ptr::copy_nonoverlapping(start.as_ptr().add(offset), into.as_mut_ptr(), into.len()) };
}
