//! Rows of a query of few, passed on as cells: no array is made of them, and a text is copied once, from its page to where it is wanted.
//!
//! ```text
//! SELECT ... WHERE key = ?                                              its row
//! SELECT [DISTINCT] ... WHERE n BETWEEN ? AND ? [ORDER BY text]         its rows, sorted by their places
//! SELECT count(*), sum(n) ... WHERE n BETWEEN ? AND ?                   one row of words that are added up
//! ```
//!
//! Pages are held as long as rows are passed, so a sink puts them into memory, and waits for nothing.
use std::cmp::Ordering;

use engine::{Cell, FoundCells, ReadView, Table, WordRows};
use smallvec::SmallVec;

use crate::error::Result;
use crate::point::bound::Bound;
use crate::point::search::answer::Total;
use crate::point::search::ordering::{SortKey, Sorted, head, places_of, places_of_each};
use crate::point::search::passed::{Given, Passed};
use crate::point::{Action, Point};
use crate::session::Session;
use crate::state::row_sink::RowSink;

/// Rows of more bytes are not passed on, but given as arrays: what is put into memory is not sent before the last of them.
const BYTES_MAX: usize = 1 << 20;

impl Point {
    /// Passes the rows that a view sees; how many there are. `None` where they are not passed on, and none was.
    pub(crate) fn pass(
        &self,
        session: &Session,
        view: &ReadView,
        bound: &Bound<'_>,
        sink: &mut dyn RowSink,
    ) -> Result<Option<u64>> {
        let passed = match &self.action {
            Action::Select { key, columns, .. } => {
                let Some(key) = bound.key(key) else { return Ok(None) };
                self.seen(session, view, |table| match table.is_array() {
                    true => Ok(None),
                    false => {
                        let take = |cells: &[Cell<'_>]| sink.take(cells);
                        let taken = table.lookup_cells(view, &key, &columns.positions, take)?;
                        taken.transpose().map(|taken| Some(u64::from(taken.is_some())))
                    }
                })
            }
            Action::Search(search) => {
                let Some(passed) = &search.passed else { return Ok(None) };
                self.seen(session, view, |table| passed.pass(table, view, &search.reads, bound, sink))
            }
            _ => None,
        };
        Ok(passed.transpose()?.flatten())
    }
}

impl Passed {
    fn pass(
        &self,
        table: &Table,
        view: &ReadView,
        reads: &[usize],
        bound: &Bound<'_>,
        sink: &mut dyn RowSink,
    ) -> Result<Option<u64>> {
        let Some((low, high)) = self.between.bounds(bound) else { return Ok(None) };
        let numbers = (self.between.column, low, high);
        let passed = match &self.given {
            Given::Rows { places, order, is_distinct } => {
                let pass = |rows: &FoundCells<'_>| match rows.bytes() > BYTES_MAX {
                    true => Ok(None),
                    false => pass_rows(rows, places, (*order, *is_distinct), sink).map(Some),
                };
                table.cells_between(view, numbers, reads, pass)?
            }
            Given::Sums(totals) => {
                let mut rows = WordRows::default();
                let is_found = table.words_between(view, numbers, reads, &mut rows)?;
                is_found.then(|| pass_sums(&rows, totals, sink))
            }
        };
        self.between.note(passed.is_some());
        Ok(passed.transpose()?.flatten())
    }
}

/// Passes the columns at these places of the rows, as they stand or in the order of one of them, of which equal ones once.
fn pass_rows(
    rows: &FoundCells<'_>,
    places: &[usize],
    (order, is_distinct): (Option<SortKey>, bool),
    sink: &mut dyn RowSink,
) -> Result<u64> {
    let is_as_read = places.iter().copied().eq(0..rows.width());
    let mut give = |row: usize| {
        let cells = rows.row(row);
        if is_as_read {
            return sink.take(cells);
        }
        let given: SmallVec<[Cell<'_>; 8]> = places.iter().map(|place| cells[*place]).collect();
        sink.take(&given)
    };
    let Some(key) = order else {
        (0..rows.len()).try_for_each(give)?;
        return Ok(rows.len() as u64);
    };
    let column = CellColumn { rows, place: key.place };
    let sorted = if is_distinct { places_of_each(&column, key) } else { places_of(&column, key) };
    sorted.iter().try_for_each(|row| give(*row as usize))?;
    Ok(sorted.len() as u64)
}

/// Passes the row of totals; `None`, and nothing is passed, if one is beyond its type.
fn pass_sums(rows: &WordRows, totals: &[Total], sink: &mut dyn RowSink) -> Result<Option<u64>> {
    let numbers = |place: usize| (0..rows.len()).filter_map(move |row| rows.word(row, place)).map(|word| word as i64);
    let cell = |total: &Total| match total {
        Total::Rows => Some(Cell::Word(rows.len() as u64)),
        Total::Count(place) => Some(Cell::Word(numbers(*place).count() as u64)),
        Total::Sum(place) => {
            let (count, sum) = numbers(*place).fold((0, 0), |(count, sum), n| (count + 1, sum + i128::from(n)));
            if count == 0 { Some(Cell::Null) } else { i64::try_from(sum).ok().map(|sum| Cell::Word(sum as u64)) }
        }
        Total::CountDistinct(_) | Total::Min(_) | Total::Max(_) => None,
    };
    let Some(row) = totals.iter().map(cell).collect::<Option<SmallVec<[Cell<'_>; 8]>>>() else { return Ok(None) };
    sink.take(&row).map(|()| Some(1))
}

/// A column of texts or whole numbers.
struct CellColumn<'c, 'g> {
    rows: &'c FoundCells<'g>,
    place: usize,
}

impl<'g> CellColumn<'_, 'g> {
    #[inline]
    fn cell(&self, row: u32) -> Cell<'g> {
        self.rows.cell(row as usize, self.place)
    }
}

impl Sorted for CellColumn<'_, '_> {
    fn len(&self) -> usize {
        self.rows.len()
    }

    fn has_null(&self) -> bool {
        (0..self.rows.len() as u32).any(|row| self.is_null(row))
    }

    fn is_null(&self, row: u32) -> bool {
        matches!(self.cell(row), Cell::Null)
    }

    fn head(&self, row: u32) -> u64 {
        match self.cell(row) {
            Cell::Bytes(bytes) => head(bytes),
            // The least number is the smallest.
            Cell::Word(word) => word ^ 1 << 63,
            Cell::Null => 0,
        }
    }

    fn compare(&self, left: u32, right: u32) -> Ordering {
        match (self.cell(left), self.cell(right)) {
            (Cell::Bytes(left), Cell::Bytes(right)) => left.cmp(right),
            _ => Ordering::Equal,
        }
    }

    fn is_same(&self, left: u32, right: u32) -> bool {
        self.cell(left) == self.cell(right)
    }
}
