//! A snapshot of an array, and the ways to read it.
use std::marker::PhantomData;
use std::ops::{Bound, Range, RangeBounds};

use crate::error::SnapshotError;
use crate::item::{self, Item};
use crate::mechanism::memory::Image;

/// How many bytes of a snapshot are handed out at a time where they have to be copied.
const COPY_BYTES: usize = 256 << 10;

/// An array as it was at one instant. It does not change, may be read by many threads and outlives the array. Dropping it ends it.
pub struct Snapshot<T: Item> {
    image: Box<dyn Image>,
    len: usize,
    items: PhantomData<T>,
}

impl<T: Item> Snapshot<T> {
    pub(crate) fn new(image: Box<dyn Image>, len: usize) -> Snapshot<T> {
        Snapshot { image, len, items: PhantomData }
    }

    /// The number of items.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the array has no items.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The items, where they lie in memory of this process: by every mechanism but `Fork`.
    pub fn as_slice(&self) -> Option<&[T]> {
        let start = self.image.bytes()?;
        // SAFETY: the image has the array's items from its first byte on, which is aligned to a page; they do not change while
        // the image lives, and any bytes are items.
        Some(unsafe { std::slice::from_raw_parts(start.as_ptr().cast(), self.len) })
    }

    /// The item at `index`.
    ///
    /// # Errors
    /// `OutOfRange`; `Lost` where a child process is gone.
    pub fn get(&self, index: usize) -> Result<T, SnapshotError> {
        let mut item = [T::default()];
        self.read(index, &mut item)?;
        Ok(item[0])
    }

    /// Copies the items from `start` on into `into`.
    ///
    /// # Errors
    /// `OutOfRange`; `Lost` where a child process is gone.
    pub fn read(&self, start: usize, into: &mut [T]) -> Result<(), SnapshotError> {
        let end = start.saturating_add(into.len());
        self.check(start..end)?;
        // SAFETY: the bytes of items, which are plain; any bytes are items.
        let bytes = unsafe { std::slice::from_raw_parts_mut(into.as_mut_ptr().cast(), size_of_val(into)) };
        self.image.read(start * size_of::<T>(), bytes)
    }

    /// Calls `each` for the items of `range`, in order, some at a time: with the index of the first and the items. They are copied only
    /// where a child process has them; otherwise there is one call.
    ///
    /// # Errors
    /// `OutOfRange`; `Lost` where a child process is gone.
    pub fn for_each(
        &self,
        range: impl RangeBounds<usize>,
        mut each: impl FnMut(usize, &[T]),
    ) -> Result<(), SnapshotError> {
        let range = self.resolve(range)?;
        if let Some(items) = self.as_slice() {
            each(range.start, &items[range]);
            return Ok(());
        }
        let mut buffer = vec![T::default(); range.len().min(COPY_BYTES / size_of::<T>())];
        for start in range.clone().step_by(buffer.len().max(1)) {
            let part_len = buffer.len().min(range.end - start);
            let part = &mut buffer[..part_len];
            self.read(start, part)?;
            each(start, part);
        }
        Ok(())
    }

    /// The items of `range`.
    ///
    /// # Errors
    /// `OutOfRange`; `Lost` where a child process is gone.
    pub fn to_vec(&self, range: impl RangeBounds<usize>) -> Result<Vec<T>, SnapshotError> {
        let range = self.resolve(range)?;
        let mut items = vec![T::default(); range.len()];
        self.read(range.start, &mut items)?;
        Ok(items)
    }

    /// The sum of `range`, computed where the snapshot lies. Floats are added in an order that depends on the length alone.
    ///
    /// # Errors
    /// `OutOfRange`; `Lost` where a child process is gone.
    pub fn sum(&self, range: impl RangeBounds<usize>) -> Result<T::Total, SnapshotError> {
        let range = self.resolve(range)?;
        Ok(T::total_from(self.reduce(item::SUM, range)?))
    }

    /// The smallest item of `range`, if it has one. Floats that are no numbers are passed over unless one comes first.
    ///
    /// # Errors
    /// `OutOfRange`; `Lost` where a child process is gone.
    pub fn min(&self, range: impl RangeBounds<usize>) -> Result<Option<T>, SnapshotError> {
        self.extreme(item::MIN, range)
    }

    /// The largest item of `range`, if it has one. Floats that are no numbers are passed over unless one comes first.
    ///
    /// # Errors
    /// `OutOfRange`; `Lost` where a child process is gone.
    pub fn max(&self, range: impl RangeBounds<usize>) -> Result<Option<T>, SnapshotError> {
        self.extreme(item::MAX, range)
    }

    /// The memory that the snapshot has for itself beside what it shares with the array, in bytes. With `Fork` it is what the system tells
    /// of the child process.
    pub fn own_bytes(&self) -> usize {
        self.image.own_bytes()
    }

    /// Ends the snapshot and gives back its memory, as dropping it does.
    pub fn end(self) {}

    fn extreme(&self, number: usize, range: impl RangeBounds<usize>) -> Result<Option<T>, SnapshotError> {
        let range = self.resolve(range)?;
        if range.is_empty() {
            return Ok(None);
        }
        Ok(Some(item::from_first_bytes(self.reduce(number, range)?)))
    }

    fn reduce(&self, number: usize, range: Range<usize>) -> Result<[u8; 16], SnapshotError> {
        self.image.reduce(number, range.start * size_of::<T>(), range.len())
    }

    fn resolve(&self, range: impl RangeBounds<usize>) -> Result<Range<usize>, SnapshotError> {
        let start = match range.start_bound() {
            Bound::Included(start) => *start,
            Bound::Excluded(start) => start.saturating_add(1),
            Bound::Unbounded => 0,
        };
        let end = match range.end_bound() {
            Bound::Included(end) => end.saturating_add(1),
            Bound::Excluded(end) => *end,
            Bound::Unbounded => self.len,
        };
        self.check(start..end)?;
        Ok(start..end)
    }

    fn check(&self, range: Range<usize>) -> Result<(), SnapshotError> {
        if range.start <= range.end && range.end <= self.len {
            return Ok(());
        }
        let index = if range.start > range.end { range.start } else { range.end - 1 };
        Err(SnapshotError::OutOfRange { index, len: self.len })
    }
}

impl<T: Item> std::fmt::Debug for Snapshot<T> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Snapshot").field("len", &self.len).finish_non_exhaustive()
    }
}
