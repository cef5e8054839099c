//! Where rows are put that an index leads to, stretch by stretch or as records that lie anywhere: arrays of columns, words in a list that
//! the caller keeps, or cells, which leave texts where the pages have them.
//!
//! ```text
//! FoundArrays   a part of each column for each stretch, and for the records in between; joined at the end
//! FoundWords    row behind row
//! FoundCells    row behind row, as long as the pages are held
//! ```
use std::sync::Arc;

use arrow_array::{ArrayRef, UInt64Array};
use arrow_select::concat::concat;
use lineage::{Cell, GatheredColumn, Stretch, View, WordRows};
use smallvec::SmallVec;
use sync::Guard;
use types::Rid;

use crate::error::Result;
use crate::state::table_data::ScanOptions;
use crate::table::{Rows, Table};
use crate::terms::outcomes::Transactions;

/// Columns of some rows, and how many rows these are.
pub type RowArrays = (Vec<ArrayRef>, usize);

/// Rows in the order in which they were found.
pub(super) trait FoundRows<'g> {
    /// How many there are.
    fn len(&self) -> usize;

    /// Adds the records of a stretch; false if one of them is not plainly there for the view, and nothing is added.
    fn add_stretch(&mut self, guard: &'g Guard, view: View<'g, Transactions>, stretch: Stretch) -> Result<bool>;

    /// Adds records up to the first that is not there for the view; returns how many.
    fn add_records(&mut self, guard: &'g Guard, view: View<'g, Transactions>, rids: &[Rid]) -> Result<usize>;
}

/// Rows as arrays: the columns of the options and, if they say so, the Rids. The options' tests are not looked at.
pub(super) struct FoundArrays<'a> {
    table: &'a Table,
    options: &'a ScanOptions,
    parts: SmallVec<[Vec<ArrayRef>; 4]>,
    /// those that lie anywhere, behind the parts; made for the first of them, as mostly there are none
    rows: Option<Rows<'a>>,
    /// of the parts
    count: usize,
}

impl<'a> FoundArrays<'a> {
    pub(super) fn new(table: &'a Table, options: &'a ScanOptions) -> FoundArrays<'a> {
        FoundArrays { table, options, parts: SmallVec::new(), rows: None, count: 0 }
    }

    fn rows(&mut self, room: usize) -> &mut Rows<'a> {
        self.rows.get_or_insert_with(|| Rows::with_room(self.table, self.options, room))
    }

    /// Puts the rows that lie anywhere behind the parts.
    fn close_rows(&mut self) {
        if let Some(rows) = self.rows.as_mut().filter(|rows| rows.len() > 0) {
            self.count += rows.len();
            self.parts.push(rows.take_arrays());
        }
    }

    pub(super) fn finish(mut self) -> RowArrays {
        self.close_rows();
        if self.parts.is_empty() {
            let none = self.rows(0).take_arrays();
            self.parts.push(none);
        }
        debug_assert!(
            self.parts.iter().flatten().all(|array| array.len() <= self.count),
            "columns have no more values than there are rows"
        );
        (joined(&mut self.parts), self.count)
    }
}

impl<'g> FoundRows<'g> for FoundArrays<'_> {
    fn len(&self) -> usize {
        self.count + self.rows.as_ref().map_or(0, Rows::len)
    }

    fn add_stretch(&mut self, guard: &'g Guard, view: View<'g, Transactions>, stretch: Stretch) -> Result<bool> {
        let found = self.table.data.storage.stretch(guard, view, stretch, &self.options.columns)?;
        let Some(mut arrays) = found else { return Ok(false) };
        debug_assert!(arrays.iter().all(|array| array.len() == stretch.count), "invariant 7: a key without its row");
        if self.options.with_rid {
            arrays.push(Arc::new(UInt64Array::from_iter_values(stretch.records().map(Rid::word))));
        }
        self.close_rows();
        self.count += stretch.count;
        self.parts.push(arrays);
        Ok(true)
    }

    fn add_records(&mut self, guard: &'g Guard, view: View<'g, Transactions>, rids: &[Rid]) -> Result<usize> {
        let (storage, columns) = (&self.table.data.storage, &self.options.columns);
        let rows = self.rows(rids.len());
        let count = storage.gather(guard, view, rids, columns, |place, values| rows.push_column(place, values))?;
        rows.note_records(&rids[..count]);
        Ok(count)
    }
}

/// Rows as words.
pub(super) struct FoundWords<'a> {
    table: &'a Table,
    rows: &'a mut WordRows,
}

impl<'a> FoundWords<'a> {
    /// Puts them behind the rows of a list, which says the columns.
    pub(super) fn new(table: &'a Table, rows: &'a mut WordRows) -> FoundWords<'a> {
        debug_assert!(table.data.check_positions(rows.columns().iter().copied()).is_ok(), "columns of the table");
        FoundWords { table, rows }
    }
}

impl<'g> FoundRows<'g> for FoundWords<'_> {
    fn len(&self) -> usize {
        self.rows.len()
    }

    fn add_stretch(&mut self, guard: &'g Guard, view: View<'g, Transactions>, stretch: Stretch) -> Result<bool> {
        Ok(self.table.data.storage.stretch_words(guard, view, stretch, self.rows)?)
    }

    fn add_records(&mut self, guard: &'g Guard, view: View<'g, Transactions>, rids: &[Rid]) -> Result<usize> {
        let before = self.rows.len();
        let count = self.table.data.storage.gather_words(guard, view, rids, self.rows)?;
        debug_assert_eq!(self.rows.len(), before + count, "invariant 7: a row that is there was not added");
        Ok(count)
    }
}

/// Rows as cells.
#[expect(missing_debug_implementations, reason = "it is of pages, and lives as long as a call")]
pub struct FoundCells<'g> {
    table: &'g Table,
    columns: &'g [usize],
    count: usize,
    /// row behind row
    cells: Vec<Cell<'g>>,
}

impl<'g> FoundCells<'g> {
    pub(super) fn new(table: &'g Table, columns: &'g [usize]) -> FoundCells<'g> {
        FoundCells { table, columns, count: 0, cells: Vec::new() }
    }

    /// How many rows there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.count
    }

    /// How many columns were asked for.
    #[inline]
    pub fn width(&self) -> usize {
        self.columns.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The cells of a row, one for each column that was asked for.
    ///
    /// # Panics
    /// If there are fewer rows.
    #[inline]
    pub fn row(&self, row: usize) -> &[Cell<'g>] {
        assert!(row < self.count, "row {row} of {}", self.count);
        &self.cells[row * self.columns.len()..][..self.columns.len()]
    }

    /// The cell in a row of the column that was asked for at this place.
    ///
    /// # Panics
    /// If there are fewer rows.
    #[inline]
    pub fn cell(&self, row: usize, place: usize) -> Cell<'g> {
        debug_assert!(place < self.columns.len(), "column {place} of {}", self.columns.len());
        self.cells[row * self.columns.len() + place]
    }

    /// The bytes of the values that are no words.
    pub fn bytes(&self) -> usize {
        let bytes = |cell: &Cell<'_>| if let Cell::Bytes(bytes) = cell { bytes.len() } else { 0 };
        self.cells.iter().map(bytes).sum()
    }

    fn truncate(&mut self, count: usize) {
        self.count = count;
        self.cells.truncate(count * self.columns.len());
    }
}

impl<'g> FoundRows<'g> for FoundCells<'g> {
    fn len(&self) -> usize {
        self.count
    }

    fn add_stretch(&mut self, guard: &'g Guard, view: View<'g, Transactions>, stretch: Stretch) -> Result<bool> {
        let (before, rids) = (self.count, stretch.records().collect::<Vec<_>>());
        let is_whole = self.add_records(guard, view, &rids)? == stretch.count;
        if !is_whole {
            self.truncate(before);
        }
        Ok(is_whole)
    }

    fn add_records(&mut self, guard: &'g Guard, view: View<'g, Transactions>, rids: &[Rid]) -> Result<usize> {
        let (before, width) = (self.count, self.columns.len());
        self.cells.resize((before + rids.len()) * width, Cell::Null);
        let added = &mut self.cells[before * width..];
        let count = self.table.data.storage.gather(guard, view, rids, self.columns, |place, values| {
            let places = added.iter_mut().skip(place).step_by(width);
            match values {
                GatheredColumn::Words(words) => places.zip(words).for_each(|(cell, word)| *cell = Cell::Word(*word)),
                GatheredColumn::Cells(cells) => places.zip(cells).for_each(|(cell, value)| *cell = *value),
            }
        })?;
        debug_assert!(count <= rids.len(), "each record is added once");
        self.truncate(before + count);
        Ok(count)
    }
}

/// Columns whose parts follow one another.
fn joined(parts: &mut [Vec<ArrayRef>]) -> Vec<ArrayRef> {
    match parts {
        [whole] => std::mem::take(whole),
        parts => (0..parts.first().map_or(0, Vec::len)).map(|at| joined_column(parts, at)).collect(),
    }
}

fn joined_column(parts: &[Vec<ArrayRef>], at: usize) -> ArrayRef {
    let arrays: SmallVec<[&dyn arrow_array::Array; 4]> = parts.iter().map(|arrays| &*arrays[at]).collect();
    concat(&arrays).expect("parts of a column have its type")
}
