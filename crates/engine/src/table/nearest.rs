//! Rows by their distance from a point, as an index of boxes knows it.
//!
//! ```text
//! entries by distance   0.0  0.4  0.4  1.3 | 1.3  2.0  2.2  ...      a portion goes on from the last distance of the one before,
//! rows, by the version        p         q  | r         s              without the entries of that distance that it had
//! handed out                  p, q: all others are 1.3 or more away
//! ```
//!
//! An index keeps the extents of values, so that a row may be farther away than its entry is, and never nearer. A reader works the
//! distances of the rows out, and keeps back those that are farther than what is still to come may be. Between portions nothing is held
//! but the view: entries that come meanwhile are of versions that it does not see.
//!
//! Other parts of the keys have no say in the distance. A row that has NULL or an empty range in one of them lies nowhere, however near
//! its shape is, so that all such rows come first.
use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use foldhash::fast::FixedState;
use lineage::Cell;
use types::{DataType, Rid};

use crate::error::{Error, Result};
use crate::keys::data::{Index, IndexData};
use crate::keys::definition::IndexMethod;
use crate::keys::entries::Entry;
use crate::keys::extents::dimensions;
use crate::state::table_data::ScanOptions;
use crate::table::read_view::{ReadView, Sight};
use crate::table::{Rows, Table};

/// Entries of the first portion; each has twice as many as the one before.
const ENTRIES_FIRST: usize = 32;
const ENTRIES_MAX: usize = 8192;

/// Distances are worked out by other steps than the index's, and rounded otherwise: by less than this share of them.
const ROUNDING: f64 = 1e-12;
/// The square of a greater distance may be none.
const DISTANCE_MAX: f64 = 1e150;

impl Table {
    /// The rows that the view sees and that pass the tests, by the distance of a part of their keys from a point: those that are nearest
    /// by the index first. Rows whose value is NULL come last; of an index of several parts they come first, with all that have no
    /// extent in some part.
    ///
    /// # Errors
    /// [`Error::NoSuchIndex`] if the index was dropped before the view was taken, or made so late that what the view holds was given up
    /// but for the view; [`Error::BadIndexRange`] if it is no `gist` index of all rows, if that part is no point, box or circle, or a
    /// coordinate is no finite number; [`Error::SnapshotTooOld`] if the table does not keep what the view sees;
    /// [`Error::TooManyTransactions`] if as many run as there may be.
    pub fn index_nearest<'v>(
        &self,
        view: impl Into<Sight<'v>>,
        index: &Index,
        part: usize,
        point: [f64; 2],
        options: ScanOptions,
    ) -> Result<NearestScan> {
        self.data.check_no_array("reading by an index", "Read it by scans.")?;
        let definition = &index.data.definition;
        let types: Vec<DataType> = index.data.key_columns.iter().map(|part| part.data_type).collect();
        let is_of_shape = matches!(types.get(part), Some(DataType::Geometry(_)));
        if definition.method != IndexMethod::Gist || !is_of_shape || definition.predicate.is_some() {
            return Err(index.data.refuse_range("is asked for distances, which a gist index of a shape knows"));
        }
        if !point.iter().all(|at| at.is_finite()) {
            return Err(index.data.refuse_range("is asked for distances from where no point is"));
        }
        let Sight { snapshot, reads, .. } = view.into();
        let held = self.hold(snapshot)?;
        if !index.data.serves(snapshot.at) {
            return Err(Error::NoSuchIndex(definition.name.clone()));
        }
        self.data.fill(&index.data)?;
        if let Some(reads) = reads {
            // A row that is nearer may come anywhere.
            reads.note_rows(&self.data, &options.tests, &[index.data.columns(), &options.columns[..]].concat());
        }
        let schema = self.data.projection(&options).schema;
        // A dimension in which a point has NaN does not count.
        let in_part = |(at, of): (usize, usize)| match at == part {
            true => point.to_vec(),
            false => vec![f64::NAN; of],
        };
        let point = dimensions(types.iter().copied()).into_iter().enumerate().flat_map(in_part).collect();
        let next = if types.len() == 1 { Next::beginning() } else { Next::NowhereFirst };
        Ok(NearestScan { table: self.clone(), index: index.data.clone(), view: held, point, options, schema, next })
    }
}

/// What is still to be looked at.
enum Next {
    /// Entries that are so far away, those that are `known` left out, and all that are farther.
    Beyond {
        from: f64,
        known: HashSet<Entry, FixedState>,
        count: usize,
    },
    /// Entries of rows that have no extent: in the end where they have no distance either, at the beginning where some may be near.
    Nowhere,
    NowhereFirst,
    Nothing,
}

impl Next {
    /// All entries with extents.
    fn beginning() -> Next {
        Next::Beyond { from: 0.0, known: HashSet::default(), count: ENTRIES_FIRST }
    }
}

/// A search for the nearest rows in progress: an iterator over portions.
pub struct NearestScan {
    table: Table,
    index: Arc<IndexData>,
    view: ReadView,
    point: Vec<f64>,
    options: ScanOptions,
    schema: SchemaRef,
    next: Next,
}

/// Some of the rows of a search for the nearest.
pub struct NearestRows {
    /// The rows, shaped as a scan's are, in no order.
    pub rows: RecordBatch,
    /// No row of a later portion is nearer; infinite if none has a distance.
    pub beyond: f64,
}

impl NearestScan {
    /// The Arrow schema of the rows.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The entries of the next portion, and how far those are at least that come after it.
    fn advance(&mut self) -> Option<(Vec<Entry>, f64)> {
        let entries = self.index.entries();
        let space = entries.space()?;
        match std::mem::replace(&mut self.next, Next::Nothing) {
            Next::Beyond { from, mut known, count } => {
                let found = space.nearest(&self.point, from, known.len() + count);
                let is_all = found.len() < known.len() + count;
                let (mut last, mut new) = (from, Vec::with_capacity(found.len()));
                for (distance, entry) in found {
                    debug_assert!(distance >= last, "entries come by their distance");
                    if distance > last {
                        last = distance;
                        known.clear();
                    }
                    // An entry may be there twice, if two threads have made it.
                    if known.insert(entry.clone()) {
                        new.push(entry);
                    }
                }
                self.next = match is_all {
                    true if self.index.key_columns.len() == 1 => Next::Nowhere,
                    true => Next::Nothing,
                    false => Next::Beyond { from: last, known, count: (count * 2).min(ENTRIES_MAX) },
                };
                let beyond = if is_all { f64::INFINITY } else { last.min(DISTANCE_MAX) * (1.0 - ROUNDING) };
                Some((new, beyond))
            }
            Next::Nowhere => Some((space.without_place(), f64::INFINITY)),
            Next::NowhereFirst => {
                self.next = Next::beginning();
                Some((space.without_place(), 0.0))
            }
            Next::Nothing => None,
        }
    }
}

impl Iterator for NearestScan {
    type Item = Result<NearestRows>;

    fn next(&mut self) -> Option<Result<NearestRows>> {
        let (entries, beyond) = self.advance()?;
        let table = self.table.clone();
        let mut rows = Rows::with_room(&table, &self.options, entries.len());
        let columns = rows.columns.clone();
        let view = table.database.shared.core.transactions.view(self.view.snapshot());
        let take = |rid: Rid, cells: &[Cell<'_>]| rows.push(rid, cells);
        if let Err(error) = table.data.read_entries(view, &self.index, &entries, &columns, take) {
            return Some(Err(error));
        }
        debug_assert!(rows.len() <= entries.len(), "invariant 7: a record comes twice");
        Some(Ok(NearestRows { rows: rows.finish(self.schema.clone()), beyond }))
    }
}
