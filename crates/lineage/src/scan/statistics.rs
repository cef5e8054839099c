//! Statistics of a table for the optimizer: row counts and, for each column, NULLs, extremes and distinct values,
//! as the merges have left them. Rows that are not merged yet are counted and not looked at.
use sync::Guard;
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

/// Statistics as they are put together from ranges.
pub(crate) struct CollectedStatistics {
    rows: u64,
    rows_merged: u64,
    columns: Vec<(u64, Aggregates, Sketch)>,
}

impl CollectedStatistics {
    pub(crate) fn new(schema: &Schema) -> CollectedStatistics {
        let column = |column: &types::Column| (0, Aggregates::new(column.data_type), Sketch::default());
        CollectedStatistics { rows: 0, rows_merged: 0, columns: schema.columns().iter().map(column).collect() }
    }

    pub(crate) fn finish(self) -> TableStatistics {
        let (rows, merged) = (self.rows, self.rows_merged);
        let column = |(nulls, extremes, sketch): (u64, Aggregates, Sketch)| {
            let distinct = sketch.distinct().min(merged);
            // A column that is nearly unique so far is taken to go on so.
            let is_unique = distinct * 10 >= merged * 9;
            let distinct = if is_unique && merged > 0 { distinct * rows.max(merged) / merged } else { distinct };
            // Deleted rows may have been NULL more often than those that are left.
            let nulls = (nulls * rows).checked_div(merged).unwrap_or(0).min(rows);
            ColumnStatistics { nulls, min: extremes.min, max: extremes.max, distinct }
        };
        TableStatistics { rows, rows_merged: merged, columns: self.columns.into_iter().map(column).collect() }
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

    /// Adds what is known of this range.
    pub(crate) fn collect_statistics(&self, collected: &mut CollectedStatistics) {
        let guard = &sync::pin();
        let pages = self.pages.load(guard);
        let MetaPage::Base(meta) = &pages.meta else {
            collected.rows += self.len() as u64;
            return;
        };
        collected.rows += meta.live_rows;
        collected.rows_merged += meta.live_rows;
        // In base pages these slots are NULL.
        let tombstones = meta.tombstones;
        for (column, (nulls, extremes, sketch)) in collected.columns.iter_mut().enumerate() {
            let page = &pages.columns[column];
            add_page(page, self.types[column], tombstones, nulls, extremes);
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
