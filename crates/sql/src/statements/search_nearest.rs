//! Running a query of the rows that are nearest to a point, along an index that knows the distances.
//!
//! The index gives its entries by the distances of their extents, portion by portion. Distances of rows are worked out as the planner
//! would, and rows wait until no nearer one may come ([`ByDistance`]); what the index knows is never more than they are.
use arrow_array::RecordBatch;
use arrow_select::concat::concat_batches;
use engine::{ScanOptions, Table};

use super::search::there;
use crate::access::nearest::order::ByDistance;
use crate::error::{Result, SqlError};
use crate::names::moment::Moment;
use crate::point::bound::Bound;
use crate::point::search::derived::BoundDerived;
use crate::point::search::nearest::Nearest;
use crate::point::search::{Cut, Search};

/// The most rows that are looked at; where more are needed, few pass, which the planner finds out.
const ROWS_MAX: usize = 4096;

impl Search {
    /// The rows that pass, by their distance, up to as many as are wanted; `None` if they are for the planner to find.
    pub(super) fn nearest_rows(
        &self,
        nearest: &Nearest,
        table: &Table,
        moment: &Moment,
        options: &ScanOptions,
        (cut, bound, derived): (Cut, &Bound<'_>, &BoundDerived<'_>),
    ) -> Result<Option<RecordBatch>> {
        let Some((point, (index, part))) = nearest.point(bound).zip(nearest.index(table)) else { return Ok(None) };
        let found = there(table.index_nearest(moment.view(), &index, part, point, options.clone()))?;
        let Some(mut found) = found else { return Ok(None) };
        let schema = found.schema().clone();
        let mut waiting = ByDistance::new(&schema);
        let (mut read, mut count, mut ready) = (0, 0, Vec::new());
        while count < cut.end() {
            let (rows, beyond) = match found.next().transpose()? {
                Some(portion) => (portion.rows, portion.beyond),
                None if waiting.is_empty() => break,
                None => (RecordBatch::new_empty(schema.clone()), f64::NAN),
            };
            read += rows.num_rows();
            if read > ROWS_MAX {
                return Ok(None);
            }
            let Some(rows) = derived.filtered(rows) else { return Ok(None) };
            let Some(distances) = nearest.distance.of_rows(&rows, bound.values) else { return Ok(None) };
            let Ok(rows) = waiting.take(&rows, &distances, beyond) else { return Ok(None) };
            count += rows.num_rows();
            ready.push(rows);
        }
        let whole = concat_batches(&schema, &ready);
        whole.map(Some).map_err(|error| SqlError::new("XX000", error.to_string()))
    }
}
