//! The words of unencoded pages, column by column or row by row: the one interface behind which a table's layout is
//! chosen (L-Store is columnar; a table that is read and written mostly by whole rows may be declared row-wise).
//!
//! ```text
//! Layout::Column   column 0: [at 0][at 1][at 2] ...     column 1: [at 0][at 1] ...      each allocated on first use
//! Layout::Row      [at 0: column 0, column 1, ...][at 1: column 0, column 1, ...] ...   one array
//! ```
use sync::atomic::{AtomicU64, Ordering};
use sync::blocking::OnceLock;
use sync::zeroed_atomics;

/// How the values of a table's records lie in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Layout {
    /// The values of a column next to each other: for tables that are scanned.
    #[default]
    Column,
    /// The values of a record next to each other: for tables that are read and written by key, many columns at a time.
    Row,
}

/// Words of `capacity` records of `width` columns, zero until they are stored.
pub(crate) struct Words {
    layout: Layout,
    width: usize,
    capacity: usize,
    arrays: Box<[OnceLock<Box<[AtomicU64]>>]>,
}

impl Words {
    /// No words stored yet; allocates nothing but the places of its arrays.
    pub(crate) fn new(layout: Layout, width: usize, capacity: usize) -> Words {
        let arrays = match layout {
            Layout::Column => width,
            Layout::Row => 1,
        };
        Words { layout, width, capacity, arrays: (0..arrays).map(|_| OnceLock::new()).collect() }
    }

    #[inline]
    fn place(&self, column: usize, at: usize) -> (usize, usize) {
        match self.layout {
            Layout::Column => (column, at),
            Layout::Row => (0, at * self.width + column),
        }
    }

    /// Where a word is stored; `allocated` is told the bytes of an array that this made.
    #[inline]
    pub(crate) fn slot(&self, column: usize, at: usize, allocated: impl FnOnce(usize)) -> &AtomicU64 {
        let (array, index) = self.place(column, at);
        let words = match self.arrays[array].get() {
            Some(words) => words,
            None => self.allocate(array, allocated),
        };
        &words[index]
    }

    /// Where the words of a record are stored; takes memory for a column when it is first asked for.
    #[inline]
    pub(crate) fn record(&self, at: usize) -> RecordWords<'_> {
        let row = (self.layout == Layout::Row).then(|| &self.array(0)[at * self.width..][..self.width]);
        RecordWords { words: self, row, at }
    }

    #[inline]
    fn array(&self, array: usize) -> &[AtomicU64] {
        match self.arrays[array].get() {
            Some(words) => words,
            None => self.allocate(array, |_| {}),
        }
    }

    /// Where the words of a column are stored from `at` on, each so many words behind the one before.
    pub(crate) fn run(&self, column: usize, at: usize, allocated: impl FnOnce(usize)) -> (&[AtomicU64], usize) {
        let (array, index) = self.place(column, at);
        let words = match self.arrays[array].get() {
            Some(words) => words,
            None => self.allocate(array, allocated),
        };
        (&words[index..], if self.layout == Layout::Row { self.width } else { 1 })
    }

    /// The words of a column, each so many words behind the one before; `None` where none was stored.
    pub(crate) fn stored(&self, column: usize) -> Option<(&[AtomicU64], usize)> {
        let (array, index) = self.place(column, 0);
        let words = self.arrays[array].get()?;
        Some((&words[index..], if self.layout == Layout::Row { self.width } else { 1 }))
    }

    #[cold]
    fn allocate(&self, array: usize, allocated: impl FnOnce(usize)) -> &[AtomicU64] {
        self.arrays[array].get_or_init(|| {
            let len = if self.layout == Layout::Row { self.capacity * self.width } else { self.capacity };
            allocated(len * size_of::<AtomicU64>());
            zeroed_atomics(len)
        })
    }

    /// Asks for the memory of a word.
    #[inline]
    pub(crate) fn prefetch(&self, column: usize, at: usize) {
        let (array, index) = self.place(column, at);
        if let Some(words) = self.arrays[array].get() {
            sync::prefetch(words.as_ptr().wrapping_add(index));
        }
    }

    /// The word stored at a place; 0 where none was.
    #[inline]
    pub(crate) fn load(&self, column: usize, at: usize, ordering: Ordering) -> u64 {
        let (array, index) = self.place(column, at);
        self.arrays[array].get().map_or(0, |words| words[index].load(ordering))
    }
}

/// The words of one record.
pub(crate) struct RecordWords<'w> {
    words: &'w Words,
    /// those of all columns, where they lie together
    row: Option<&'w [AtomicU64]>,
    at: usize,
}

impl<'w> RecordWords<'w> {
    /// Where the word of a column is stored.
    #[inline]
    pub(crate) fn column(&self, column: usize) -> &'w AtomicU64 {
        match self.row {
            Some(row) => &row[column],
            None => &self.words.array(column)[self.at],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_layouts_give_back_what_was_stored() {
        for layout in [Layout::Column, Layout::Row] {
            let words = Words::new(layout, 3, 5);
            let mut allocated = 0;
            for (column, at) in [(0, 0), (2, 4), (2, 0)] {
                let slot = words.slot(column, at, |bytes| allocated += bytes);
                slot.store((10 * column + at) as u64 + 1, Ordering::Relaxed);
            }
            assert_eq!(allocated, if layout == Layout::Row { 5 * 3 * 8 } else { 2 * 5 * 8 });
            let load = |column, at| words.load(column, at, Ordering::Relaxed);
            assert_eq!([load(0, 0), load(2, 4), load(2, 0)], [1, 25, 21]);
            assert_eq!((load(1, 3), load(0, 4)), (0, 0));
            assert_eq!([0, 1, 2].map(|column| words.record(4).column(column).load(Ordering::Relaxed)), [0, 0, 25]);
        }
    }
}
