//! The values of columns that new values are made of, one after the other, as words or values.
use engine::{CellRows, Value, WordsUpdate};

/// Values that are read, in their order. Each is taken in one of two ways.
pub(crate) trait Operands {
    /// The next, which is of a column of integers; `None` if it is NULL, or there is none.
    fn integer(&mut self) -> Option<i64>;

    /// The next; `None` if there is none.
    fn value(&mut self) -> Option<Value>;
}

/// Those of the row that is there.
pub(crate) struct OfRow<'a> {
    update: &'a WordsUpdate,
    words: &'a [u64],
    next: usize,
}

impl<'a> OfRow<'a> {
    /// The words of the columns that an update reads, of which none is NULL.
    pub(crate) fn new(update: &'a WordsUpdate, words: &'a [u64]) -> OfRow<'a> {
        OfRow { update, words, next: 0 }
    }
}

impl Operands for OfRow<'_> {
    #[inline]
    fn integer(&mut self) -> Option<i64> {
        let word = self.words.get(self.next)?;
        self.next += 1;
        Some(*word as i64)
    }

    #[inline]
    fn value(&mut self) -> Option<Value> {
        let value = self.update.value(self.next, *self.words.get(self.next)?);
        self.next += 1;
        Some(value)
    }
}

/// Those of the row that is there and of the one that was to be put in.
pub(crate) struct OfBoth<'a, 't, 'v, T> {
    pub(crate) there: T,
    /// the first row
    pub(crate) new: &'a CellRows<'t, 'v>,
    /// the columns that are still to be read, those of the new row counted from the table's width on
    pub(crate) reads: &'a [usize],
}

impl<T> OfBoth<'_, '_, '_, T> {
    /// Takes the next from one of the rows.
    #[inline]
    fn next<R>(
        &mut self,
        there: impl FnOnce(&mut T) -> Option<R>,
        new: impl FnOnce(&CellRows<'_, '_>, usize) -> Option<R>,
    ) -> Option<R> {
        let (column, rest) = self.reads.split_first()?;
        self.reads = rest;
        match column.checked_sub(self.new.table().schema().columns().len()) {
            None => there(&mut self.there),
            Some(column) => new(self.new, column),
        }
    }
}

impl<T: Operands> Operands for OfBoth<'_, '_, '_, T> {
    #[inline]
    fn integer(&mut self) -> Option<i64> {
        self.next(T::integer, |new, column| new.integer(0, column))
    }

    #[inline]
    fn value(&mut self) -> Option<Value> {
        self.next(T::value, |new, column| Some(new.value(0, column)))
    }
}
