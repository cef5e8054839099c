//! An array that many threads update in place while snapshots of it are taken and read.
use std::marker::PhantomData;
use std::sync::Arc;

use crate::error::SnapshotError;
use crate::gate::{Gate, Seat};
use crate::item::{self, Item};
use crate::kind::Mechanism;
use crate::mechanism::file::FileSharing;
use crate::mechanism::memory::Memory;
use crate::options::Options;
use crate::reading::Snapshot;

/// A fixed number of items that are updated in place, each by atomic operations, by any number of [`Writer`]s.
///
/// [`SnapshotArray::snapshot`] takes all items as of one instant: every update, and every batch of updates, is in it as a whole or not
/// at all, and so is whatever came before an update that is in it.
pub struct SnapshotArray<T: Item> {
    live: *mut T,
    len: usize,
    /// What writers ask before they write; nothing where the memory guards itself.
    sharing: Option<Arc<FileSharing>>,
    /// A page has 2 to the power of this many bytes.
    page_bits: u32,
    /// Whether single updates are announced to the gate. Otherwise the memory holds them back while a snapshot begins.
    announces: bool,
    // Apart, so that an array asks its owner for no alignment of its own: of Python objects it would not be kept.
    gate: Box<Gate>,
    mechanism: Mechanism,
    memory: Box<dyn Memory>,
}

// SAFETY: the address is that of the memory that the array owns; its items are read and written by atomic operations alone.
unsafe impl<T: Item> Send for SnapshotArray<T> {}
// SAFETY: as above.
unsafe impl<T: Item> Sync for SnapshotArray<T> {}

impl<T: Item> SnapshotArray<T> {
    /// An array of `len` zeros.
    ///
    /// # Errors
    /// `Refused` where the system does not let the mechanism run, `BadOptions`.
    pub fn new(len: usize, options: &Options) -> Result<SnapshotArray<T>, SnapshotError> {
        let Some(len_bytes) = len.checked_mul(size_of::<T>()) else {
            return Err(SnapshotError::BadOptions {
                what: format!("an array of {len} items is larger than memory can be"),
            });
        };
        let page_bits = options.granule_bytes()?.trailing_zeros();
        let announces = options.announces()?;
        let (memory, sharing) = options.memory(len_bytes, item::reductions::<T>())?;
        let live = memory.live().as_ptr().cast();
        let (gate, mechanism) = (Box::new(Gate::new()), options.mechanism);
        Ok(SnapshotArray { live, len, sharing, page_bits, announces, gate, mechanism, memory })
    }

    /// The number of items.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no items.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How snapshots are kept.
    pub fn mechanism(&self) -> Mechanism {
        self.mechanism
    }

    /// The newest value of the item at `index`.
    ///
    /// # Errors
    /// `OutOfRange`.
    #[inline]
    pub fn get(&self, index: usize) -> Result<T, SnapshotError> {
        let at = self.at(index)?;
        // SAFETY: the item lies in the array's memory, where all writes are atomic and of its width.
        Ok(unsafe { T::load(at) })
    }

    /// A writer for this thread.
    pub fn writer(&self) -> Writer<'_, T> {
        let (live, len, announces) = (self.live, self.len, self.announces);
        Writer { array: self, seat: self.gate.seat(), me: this_thread(), live, len, announces, thread: PhantomData }
    }

    /// Takes a snapshot: waits for the updates and batches under way, and holds back others while it begins.
    ///
    /// # Errors
    /// `Refused` where the system has no memory, mapping or process left for it; `InsideBatch`.
    pub fn snapshot(&self) -> Result<Snapshot<T>, SnapshotError> {
        self.snapshot_with(|| ()).map(|(snapshot, ())| snapshot)
    }

    /// Takes a snapshot, and calls `at` at its instant, while no update is under way: for what is to be known of it. Updates wait for
    /// `at`.
    ///
    /// # Errors
    /// As [`snapshot`](Self::snapshot).
    ///
    /// # Panics
    /// Where `at` does; updates go on.
    pub fn snapshot_with<R>(&self, at: impl FnOnce() -> R) -> Result<(Snapshot<T>, R), SnapshotError> {
        let closed = self.gate.close(this_thread()).map_err(|_| SnapshotError::InsideBatch)?;
        let (mut at, mut known) = (Some(at), None);
        let image = self.memory.begin(&mut || known = at.take().map(|at| at()));
        drop(closed);
        let snapshot = Snapshot::new(image?, self.len);
        Ok((snapshot, known.expect("a snapshot that began had an instant")))
    }

    #[inline]
    fn at(&self, index: usize) -> Result<*mut T, SnapshotError> {
        if index >= self.len {
            return Err(out_of_range(index, self.len));
        }
        // SAFETY: the index is below the length.
        Ok(unsafe { self.live.add(index) })
    }

    /// The address of the item at `index`, which may be written until the update ends.
    #[inline]
    fn writable(&self, index: usize) -> Result<*mut T, SnapshotError> {
        let at = self.at(index)?;
        if let Some(sharing) = &self.sharing {
            let page = (index * size_of::<T>()) >> self.page_bits;
            if sharing.is_shared(page) {
                return self.keep(sharing, index, page, at);
            }
        }
        Ok(at)
    }

    #[cold]
    fn keep(&self, sharing: &FileSharing, index: usize, page: usize, at: *mut T) -> Result<*mut T, SnapshotError> {
        let kept = sharing.preserve(page, || Ok(()));
        kept.map_err(|reason| SnapshotError::NotKept { index, reason })?;
        Ok(at)
    }
}

#[cold]
fn out_of_range(index: usize, len: usize) -> SnapshotError {
    SnapshotError::OutOfRange { index, len }
}

/// The number of this thread and one.
fn this_thread() -> usize {
    sync::thread_slot() + 1
}

impl<T: Item> std::fmt::Debug for SnapshotArray<T> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut debug = formatter.debug_struct("SnapshotArray");
        debug.field("len", &self.len).field("mechanism", &self.mechanism).finish_non_exhaustive()
    }
}

/// Updates an array from one thread. An update waits while a snapshot begins.
pub struct Writer<'a, T: Item> {
    array: &'a SnapshotArray<T>,
    seat: Arc<Seat>,
    me: usize,
    /// Of the array. Here nobody else can change them, so that a loop of updates keeps them in registers.
    live: *mut T,
    len: usize,
    announces: bool,
    /// A writer stays on its thread, whose number it knows.
    thread: PhantomData<*const ()>,
}

/// Updates that a snapshot has all of, or none.
pub struct Batch<'a, 'b, T: Item> {
    writer: &'b Writer<'a, T>,
}

impl<T: Item> Writer<'_, T> {
    /// Sets the item at `index`.
    ///
    /// # Errors
    /// `OutOfRange`; `NotKept` where a snapshot's page could not be copied.
    #[inline]
    pub fn set(&mut self, index: usize, value: T) -> Result<(), SnapshotError> {
        if self.announces {
            return self.enter().set(index, value);
        }
        let at = self.unannounced(index)?;
        // SAFETY: the item lies in the array's memory, where all accesses are atomic and of its width, and which holds updates back
        // that no snapshot may have.
        unsafe { T::store(at, value) };
        Ok(())
    }

    /// Adds to the item at `index` and returns what it was. Integers wrap around.
    ///
    /// # Errors
    /// `OutOfRange`; `NotKept` where a snapshot's page could not be copied.
    #[inline]
    pub fn add(&mut self, index: usize, value: T) -> Result<T, SnapshotError> {
        if self.announces {
            return self.enter().add(index, value);
        }
        let at = self.unannounced(index)?;
        // SAFETY: as for `set`.
        Ok(unsafe { T::fetch_add(at, value) })
    }

    /// Replaces the item at `index` by `change` of it, and returns what it was. `change` may be called several times.
    ///
    /// # Errors
    /// `OutOfRange`; `NotKept` where a snapshot's page could not be copied.
    #[inline]
    pub fn update(&mut self, index: usize, change: impl FnMut(T) -> T) -> Result<T, SnapshotError> {
        self.enter().update(index, change)
    }

    /// Runs `updates` as one batch, of which a snapshot has all or nothing. Snapshots wait for its end, and other writers see its
    /// updates as they happen. What was written before an error stays.
    pub fn batch<R>(&mut self, updates: impl FnOnce(&mut Batch<'_, '_, T>) -> R) -> R {
        updates(&mut self.enter())
    }

    /// The address of an item whose memory holds updates back by itself.
    #[inline]
    fn unannounced(&self, index: usize) -> Result<*mut T, SnapshotError> {
        if index >= self.len {
            return Err(out_of_range(index, self.len));
        }
        // SAFETY: the index is below the length.
        Ok(unsafe { self.live.add(index) })
    }

    #[inline]
    fn enter(&self) -> Batch<'_, '_, T> {
        self.array.gate.enter(&self.seat, self.me);
        Batch { writer: self }
    }
}

impl<T: Item> Drop for Writer<'_, T> {
    fn drop(&mut self) {
        self.array.gate.leave(&self.seat);
    }
}

impl<T: Item> Batch<'_, '_, T> {
    /// Sets the item at `index`.
    ///
    /// # Errors
    /// `OutOfRange`; `NotKept` where a snapshot's page could not be copied.
    #[inline]
    pub fn set(&mut self, index: usize, value: T) -> Result<(), SnapshotError> {
        let at = self.writer.array.writable(index)?;
        // SAFETY: the item lies in the array's memory, where all accesses are atomic and of its width, and no snapshot shares its
        // page while this update lasts.
        unsafe { T::store(at, value) };
        Ok(())
    }

    /// Adds to the item at `index` and returns what it was. Integers wrap around.
    ///
    /// # Errors
    /// `OutOfRange`; `NotKept` where a snapshot's page could not be copied.
    #[inline]
    pub fn add(&mut self, index: usize, value: T) -> Result<T, SnapshotError> {
        let at = self.writer.array.writable(index)?;
        // SAFETY: as for `set`.
        Ok(unsafe { T::fetch_add(at, value) })
    }

    /// Replaces the item at `index` by `change` of it, and returns what it was. `change` may be called several times.
    ///
    /// # Errors
    /// `OutOfRange`; `NotKept` where a snapshot's page could not be copied.
    #[inline]
    pub fn update(&mut self, index: usize, change: impl FnMut(T) -> T) -> Result<T, SnapshotError> {
        let at = self.writer.array.writable(index)?;
        // SAFETY: as for `set`.
        Ok(unsafe { T::replace(at, change) })
    }

    /// The newest value of the item at `index`.
    ///
    /// # Errors
    /// `OutOfRange`.
    #[inline]
    pub fn get(&self, index: usize) -> Result<T, SnapshotError> {
        self.writer.array.get(index)
    }
}

impl<T: Item> Drop for Batch<'_, '_, T> {
    fn drop(&mut self) {
        self.writer.array.gate.exit(&self.writer.seat);
    }
}
