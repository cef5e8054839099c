//! Base pages: read-only columns of a range, each with its own lineage (L-Store, sections 2.1 and 4.2).
//!
//! A column of a range is at first a column of its insert pages and later a base page made by the merge. Both are one
//! [`ColumnPage`], so readers do not care which they meet. The record's meta-data columns that base records have
//! (Start Time, Last Updated Time, and whether the record was deleted) are a page of their own, [`MetaPage`], merged
//! like any other. Each page carries its TPS: the number of the last tail record that it has taken in.
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use arrow_array::ArrayRef;
use types::{DataType, Timestamp};

use crate::cell::{ArrayCells, Cell};
use crate::insert::InsertPages;

/// One data column of a range.
pub enum ColumnPage {
    /// Still in the insert pages; its TPS is 0.
    Insert(Arc<InsertPages>),
    /// Merged: an Arrow array with one value for each slot.
    Base {
        /// the last tail record taken in
        tps: u64,
        /// the values, slot by slot
        array: ArrayRef,
    },
}

impl ColumnPage {
    /// The last tail record that this page has taken in.
    #[inline]
    pub fn tps(&self) -> u64 {
        match self {
            ColumnPage::Insert(_) => 0,
            ColumnPage::Base { tps, .. } => *tps,
        }
    }

    /// The value at `slot` of this page, which is column `column` of the table. The caller has seen the record's
    /// Start Time written.
    #[inline]
    pub fn cell(&self, column: usize, data_type: DataType, slot: usize) -> Cell<'_> {
        match self {
            ColumnPage::Insert(pages) => pages.cell(column, slot),
            ColumnPage::Base { array, .. } => ArrayCells::new(array.as_ref(), data_type).get(slot),
        }
    }
}

/// The meta-data columns of a range's base records.
pub enum MetaPage {
    /// Start Time is in the insert pages; nothing was merged.
    Insert(Arc<InsertPages>),
    /// Merged.
    Base(MetaColumns),
}

/// The merged meta-data columns, one entry for each slot.
#[derive(Clone)]
pub struct MetaColumns {
    /// the last tail record taken in
    pub tps: u64,
    /// Start Time: when each record was inserted, or a tombstone
    pub start: Arc<[AtomicU64]>,
    /// Last Updated Time: the Start Time of the newest tail record taken in, 0 = none; empty while no record has one
    pub last_updated: Box<[u64]>,
    /// whether the newest tail record taken in was a delete; empty while no record is deleted
    pub deleted: Box<[bool]>,
    /// the newest time in `start` and `last_updated`
    pub newest: Timestamp,
    /// whether every slot holds a record: no tombstones
    pub complete: bool,
}

impl MetaColumns {
    /// When the record at `slot` was last updated by a merged tail record, 0 = never.
    #[inline]
    pub fn last_updated(&self, slot: usize) -> u64 {
        self.last_updated.get(slot).copied().unwrap_or(0)
    }

    /// Whether the newest merged tail record of `slot` was a delete.
    #[inline]
    pub fn is_deleted(&self, slot: usize) -> bool {
        self.deleted.get(slot).copied().unwrap_or(false)
    }
}

impl MetaPage {
    /// The last tail record that this page has taken in.
    #[inline]
    pub fn tps(&self) -> u64 {
        match self {
            MetaPage::Insert(_) => 0,
            MetaPage::Base(columns) => columns.tps,
        }
    }

    /// The Start Time word of the base record at `slot`.
    #[inline]
    pub fn start(&self, slot: usize) -> &AtomicU64 {
        match self {
            MetaPage::Insert(pages) => pages.start(slot),
            MetaPage::Base(columns) => &columns.start[slot],
        }
    }
}
