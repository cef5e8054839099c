//! Reading records by their Rids.
use arrow_array::ArrayRef;
use sync::Guard;
use types::{DataType, Rid, Value};

use super::Table;
use crate::memory::source::PageError;
use crate::record::range::FEW_COLUMNS;
use crate::record::view::{Outcomes, View};
use crate::scan::stretch::Stretch;
use crate::value::cell::{Cell, value_of_cell};
use crate::value::word_rows::WordRows;

impl Table {
    /// Passes the values of `columns` of the version that `view` sees to `take`, `None` where it sees no record.
    ///
    /// # Errors
    /// [`PageError`] if an evicted page that it takes cannot be read back.
    pub fn read<O: Outcomes, R>(
        &self,
        view: View<'_, O>,
        rid: Rid,
        columns: &[usize],
        take: impl FnOnce(&[Cell<'_>]) -> R,
    ) -> Result<Option<R>, PageError> {
        self.read_pinned(&sync::pin(), view, rid, columns, take)
    }

    /// Reads the version that `view` sees, for callers that have pinned the epoch; see [`Table::read`].
    ///
    /// # Errors
    /// As [`read`](Self::read).
    #[inline]
    pub fn read_pinned<O: Outcomes, R>(
        &self,
        guard: &Guard,
        view: View<'_, O>,
        rid: Rid,
        columns: &[usize],
        take: impl FnOnce(&[Cell<'_>]) -> R,
    ) -> Result<Option<R>, PageError> {
        let mut few = [Cell::Null; FEW_COLUMNS];
        let mut many: Vec<Cell<'_>>;
        let cells = if columns.len() <= FEW_COLUMNS {
            &mut few[..columns.len()]
        } else {
            many = vec![Cell::Null; columns.len()];
            &mut many
        };
        let exists = self.range(rid.range()).read(guard, view, rid.slot(), columns, cells)?;
        Ok(exists.then(|| take(cells)))
    }

    /// The values of some columns of a stretch of records, as arrays of the columns' types. `None` if one of the records is not there for
    /// the view, or cannot be told to be by a look at it.
    ///
    /// # Errors
    /// [`PageError`] if an evicted page that it takes cannot be read back.
    pub fn stretch<O: Outcomes>(
        &self,
        guard: &Guard,
        view: View<'_, O>,
        stretch: Stretch,
        columns: &[usize],
    ) -> Result<Option<Vec<ArrayRef>>, PageError> {
        self.range(stretch.first.range()).stretch(guard, view, stretch, columns)
    }

    /// Adds the values of the columns of `rows` in a stretch of records to these, as words. False if one of the records is not there for
    /// the view, or cannot be told to be by a look at it, and nothing is added.
    ///
    /// # Errors
    /// [`PageError`] if an evicted page that it takes cannot be read back; rows that were added then say nothing.
    pub fn stretch_words<O: Outcomes>(
        &self,
        guard: &Guard,
        view: View<'_, O>,
        stretch: Stretch,
        rows: &mut WordRows,
    ) -> Result<bool, PageError> {
        self.range(stretch.first.range()).stretch_words(guard, view, stretch, rows)
    }

    /// Reads the version that `view` sees as owned values.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_values<O: Outcomes>(
        &self,
        view: View<'_, O>,
        rid: Rid,
        columns: &[usize],
    ) -> Result<Option<Vec<Value>>, PageError> {
        let data_type = |column: usize| -> DataType { self.schema.columns()[column].data_type };
        self.read(view, rid, columns, |cells| {
            cells.iter().zip(columns).map(|(cell, column)| value_of_cell(*cell, data_type(*column))).collect()
        })
    }
}
