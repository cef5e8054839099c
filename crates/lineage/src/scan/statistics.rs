//! Statistics of a table for the optimizer: row counts and, for each column, NULLs, extremes and distinct values,
//! as the merges have left them. Rows that are not merged yet are counted and not looked at.
use std::sync::{Arc, PoisonError};

use sync::Guard;
use sync::blocking::{Mutex, MutexGuard};
use types::{Schema, Value};

use crate::encoding::{Aggregates, Encoding};
use crate::page::base::{MetaPage, Page, Values};
use crate::record::range::Range;
use crate::value::sketch::Sketch;

/// Statistics of one column. The extremes are those of the rows merged so far.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnStatistics {
    /// about how many rows are NULL
    pub nulls: u64,
    /// the smallest value merged, `None` if there is none
    pub min: Option<Value>,
    /// the greatest value merged
    pub max: Option<Value>,
    /// about how many distinct values there are
    pub distinct: u64,
}

/// Statistics of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct TableStatistics {
    /// about how many rows there are
    pub rows: u64,
    /// how many of them were merged, which is what the rest is about
    pub rows_merged: u64,
    /// of each column
    pub columns: Vec<ColumnStatistics>,
}

/// What merges have left of a table's columns, put together from its ranges.
pub(crate) struct MergedColumns {
    rows: u64,
    columns: Vec<ColumnStatistics>,
}

impl MergedColumns {
    /// Puts together what is known of these ranges.
    pub(crate) fn of<'r>(schema: &Schema, ranges: impl Iterator<Item = &'r Range>) -> MergedColumns {
        let column = |column: &types::Column| (0, Aggregates::new(column.data_type), Sketch::default());
        let mut collected = (0, schema.columns().iter().map(column).collect::<Vec<_>>());
        ranges.for_each(|range| range.collect_statistics(&mut collected));
        let (rows, columns) = collected;
        let column = |(nulls, extremes, sketch): CollectedColumn| {
            let distinct = sketch.distinct().min(rows);
            ColumnStatistics { nulls, min: extremes.min, max: extremes.max, distinct }
        };
        MergedColumns { rows, columns: columns.into_iter().map(column).collect() }
    }

    /// Statistics of a table of so many rows: those that are not merged yet are taken to be as the others.
    pub(crate) fn of_rows(&self, rows: u64) -> TableStatistics {
        let merged = self.rows;
        let column = |column: &ColumnStatistics| {
            let mut column = column.clone();
            // A column that is nearly unique so far is taken to go on so.
            if merged > 0 && column.distinct * 10 >= merged * 9 {
                column.distinct = column.distinct * rows.max(merged) / merged;
            }
            // Deleted rows may have been NULL more often than those that are left.
            column.nulls = (column.nulls * rows).checked_div(merged).unwrap_or(0).min(rows);
            column
        };
        TableStatistics { rows, rows_merged: merged, columns: self.columns.iter().map(column).collect() }
    }
}

/// Of a column: its NULLs, its extremes and the values that it has.
type CollectedColumn = (u64, Aggregates, Sketch);

/// A share of a table's ranges, as a divisor: after merges of more than these, columns are looked at again.
const STALE_SHARE: u64 = 16;

/// The columns of a table as they were found last. To go through all ranges takes time with their number, and each plan asks.
#[derive(Default)]
pub(crate) struct FoundColumns {
    last: Mutex<Option<FoundAt>>,
}

struct FoundAt {
    ranges: usize,
    merges: u64,
    columns: Arc<MergedColumns>,
}

impl FoundColumns {
    /// The columns of a table that has so many ranges and saw so many merges. Of a small table they are as its last merge left them;
    /// of a large one they may lack some.
    pub(crate) fn at(&self, ranges: usize, merges: u64, collect: impl FnOnce() -> MergedColumns) -> Arc<MergedColumns> {
        let is_fresh = |found: &&FoundAt| {
            found.ranges == ranges && merges.saturating_sub(found.merges) <= ranges as u64 / STALE_SHARE
        };
        if let Some(found) = self.last().as_ref().filter(is_fresh) {
            return found.columns.clone();
        }
        let columns = Arc::new(collect());
        *self.last() = Some(FoundAt { ranges, merges, columns: columns.clone() });
        columns
    }

    fn last(&self) -> MutexGuard<'_, Option<FoundAt>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Range {
    /// How the base page of a column is encoded, if it is one of its own.
    pub(crate) fn encoding(&self, guard: &Guard, column: usize) -> Option<Encoding> {
        match &self.pages.load(guard).columns[column].values {
            Values::Column(encoded) => Some(encoded.outline.encoding),
            Values::Insert(_) | Values::Rows(_) => None,
        }
    }

    /// About how many rows the range has.
    pub(crate) fn estimated_rows(&self, guard: &Guard) -> u64 {
        match &self.pages.load(guard).meta {
            MetaPage::Base(meta) => meta.live_rows,
            _ => self.len() as u64,
        }
    }

    /// Adds what merges have left of this range: rows, and of each column what is known.
    fn collect_statistics(&self, (rows, columns): &mut (u64, Vec<CollectedColumn>)) {
        let guard = &sync::pin();
        let pages = self.pages.load(guard);
        let MetaPage::Base(meta) = &pages.meta else { return };
        *rows += meta.live_rows;
        for (column, (nulls, extremes, sketch)) in columns.iter_mut().enumerate() {
            let page = &pages.columns[column];
            // In base pages the slots of tombstones are NULL.
            add_page(page, self.types[column], meta.tombstones, nulls, extremes);
            if let Some(page) = &page.sketch {
                sketch.merge(page);
            }
        }
    }
}

fn add_page(page: &Page, data_type: types::DataType, tombstones: usize, nulls: &mut u64, extremes: &mut Aggregates) {
    let Values::Column(encoded) = &page.values else { return };
    let zone = &encoded.outline.zone;
    *nulls += zone.null_count.saturating_sub(tombstones) as u64;
    let mut scratch = crate::value::cell::Scratch::default();
    for value in [&zone.min, &zone.max].into_iter().flatten() {
        let cell = crate::value::cell::cell_of_value(value, data_type, &mut scratch);
        extremes.add(cell);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_looked_at_again_after_a_share_of_all_ranges_was_merged() {
        let found = FoundColumns::default();
        let rows = |ranges, merges, now| {
            let collect = || MergedColumns { rows: now, columns: Vec::new() };
            found.at(ranges, merges, collect).of_rows(100).rows_merged
        };
        assert_eq!(rows(15, 0, 1), 1);
        assert_eq!(rows(15, 0, 2), 1, "nothing was merged");
        assert_eq!(rows(15, 1, 3), 3, "of few ranges each merge counts");
        assert_eq!(rows(32, 1, 4), 4, "there are more ranges");
        assert_eq!((rows(32, 3, 5), rows(32, 4, 6)), (4, 6), "of many ranges some merges do not count");
    }
}
