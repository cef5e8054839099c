//! The merge: brings the base pages of one range forward in time (L-Store, section 4.1 and Algorithm 1).
//!
//! ```text
//! step 1  the consecutive prefix of resolved tail records after the TPS; tombstones are passed over
//! step 2  the outdated base (or insert) page of each column
//! step 3  newest first, with one seen-mark a slot: the newest value of each record goes into a new page
//! step 4  publish: the meta-data page first, then each column, one pointer swap a page
//! step 5  the outdated pages wait for their readers in the epoch queue
//! ```
//!
//! The merge reads only what never changes and writes only pages that nobody sees yet: it never waits for a
//! transaction and no transaction waits for it. Running it again gives the same pages. (The paper prints the inner
//! loop of Algorithm 1 as ending at the tail page's size; it must run down to the first record, and the seen-set is
//! keyed by the base record.)
//!
//! Insert pages are merged the same way once every one of their slots is resolved. A range that is not full is closed
//! first: it takes no further records, and the table opens another one.
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow_array::ArrayRef;
use arrow_array::cast::AsArray;
use arrow_select::interleave::interleave;
use sync::Guard;
use types::{StartTime, Timestamp};

use crate::base::{ColumnPage, MetaColumns, MetaPage};
use crate::cell::{Cell, ColumnBuilder};
use crate::insert::InsertPages;
use crate::range::Range;
use crate::tail::{Kind, TailRecord};
use crate::view::{Outcomes, Resolved, resolve_and_stamp};

/// What a merge did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MergeReport {
    /// tail records taken in, tombstones and snapshot records included
    pub tail_records: u64,
    /// insert records turned into base records
    pub inserted: u64,
}

/// A version that the merge takes in, newest first.
struct Merged<'a> {
    record: TailRecord<'a>,
    slot: usize,
    committed: Timestamp,
}

/// The resolved prefix of a range's tail.
struct Prefix<'a> {
    end: u64,
    newest_first: Vec<Merged<'a>>,
}

impl Range {
    /// Merges what is resolved. `None` if there was nothing to do, another merge is running, or a transaction that
    /// still runs holds up the first step; nothing is lost then and a later merge takes it.
    pub(crate) fn merge<O: Outcomes>(&self, outcomes: &O) -> Option<MergeReport> {
        let _one_at_a_time = self.merging.try_lock().ok()?;
        let guard = sync::pin();
        let (base, prefix, inserted) = match self.meta.load(&guard) {
            MetaPage::Insert(pages) => {
                let base = self.close_and_resolve(pages, outcomes)?;
                let inserted = base.start.len() as u64;
                (base, self.resolved_prefix(0, outcomes), inserted)
            }
            MetaPage::Base(meta) => {
                let prefix = self.resolved_prefix(meta.tps, outcomes);
                if prefix.end == meta.tps {
                    return None;
                }
                (meta.clone(), prefix, 0)
            }
        };
        let report = MergeReport { tail_records: prefix.end - base.tps, inserted };
        let merged: Vec<ArrayRef> =
            (0..self.columns.len()).map(|column| self.merge_column(&guard, column, &base, &prefix)).collect();
        let meta = merge_meta(base, &prefix);

        debug_assert!(prefix.end >= self.meta.load(&guard).tps(), "a page's TPS only grows");
        self.meta.replace(MetaPage::Base(meta), &guard);
        for (cell, array) in self.columns.iter().zip(merged) {
            cell.replace(ColumnPage::Base { tps: prefix.end, array }, &guard);
        }
        Some(report)
    }

    /// Closes an insert range and reads the Start Time of all its records, `None` while one is unresolved.
    fn close_and_resolve<O: Outcomes>(&self, pages: &InsertPages, outcomes: &O) -> Option<MetaColumns> {
        self.close();
        let mut newest = Timestamp::ZERO;
        let mut complete = true;
        let start = (0..self.len())
            .map(|slot| match resolve_and_stamp(pages.start(slot), outcomes) {
                Resolved::Committed(at) => {
                    newest = newest.max(at);
                    Some(AtomicU64::new(at.0))
                }
                Resolved::Tombstone => {
                    complete = false;
                    Some(AtomicU64::new(StartTime::TOMBSTONE))
                }
                Resolved::Unwritten | Resolved::Active(_) => None,
            })
            .collect::<Option<Arc<[AtomicU64]>>>()?;
        Some(MetaColumns { tps: 0, start, last_updated: Box::default(), deleted: Box::default(), newest, complete })
    }

    fn resolved_prefix<O: Outcomes>(&self, tps: u64, outcomes: &O) -> Prefix<'_> {
        let mut end = tps;
        let mut newest_first = Vec::new();
        while end < self.tails.allocated() {
            let Some(record) = self.tails.get(end + 1) else { break };
            match resolve_and_stamp(record.start(), outcomes) {
                Resolved::Unwritten | Resolved::Active(_) => break,
                Resolved::Tombstone => {}
                Resolved::Committed(committed) if record.kind() != Kind::Snapshot => {
                    newest_first.push(Merged { record, slot: record.slot(), committed });
                }
                Resolved::Committed(_) => {}
            }
            end += 1;
        }
        newest_first.reverse();
        Prefix { end, newest_first }
    }

    fn merge_column(&self, guard: &Guard, column: usize, base: &MetaColumns, prefix: &Prefix<'_>) -> ArrayRef {
        let page = self.columns[column].load(guard);
        let mut newest: Vec<Option<Cell<'_>>> = Vec::new();
        for version in &prefix.newest_first {
            if version.record.sequence > page.tps() && version.record.is_explicit(column) {
                if newest.is_empty() {
                    newest.resize(base.start.len(), None);
                }
                newest[version.slot].get_or_insert_with(|| version.record.cell(column));
            }
        }
        match page {
            ColumnPage::Base { array, .. } if newest.is_empty() => array.clone(),
            ColumnPage::Base { array, .. } => self.patch(column, array, &newest),
            ColumnPage::Insert(pages) => self.build(column, pages, base, &newest),
        }
    }

    /// A column of a first merge: insert pages with the newest values over them.
    fn build(&self, column: usize, pages: &InsertPages, base: &MetaColumns, newest: &[Option<Cell<'_>>]) -> ArrayRef {
        let mut builder = ColumnBuilder::new(self.types[column], base.start.len());
        for (slot, start) in base.start.iter().enumerate() {
            let is_tombstone = start.load(Ordering::Relaxed) == StartTime::TOMBSTONE;
            builder.push(match newest.get(slot).copied().flatten() {
                _ if is_tombstone => Cell::Null,
                Some(cell) => cell,
                None => pages.cell(column, slot),
            });
        }
        builder.finish()
    }

    /// A copy of `array` with the newest values in place.
    fn patch(&self, column: usize, array: &ArrayRef, newest: &[Option<Cell<'_>>]) -> ArrayRef {
        let mut builder = ColumnBuilder::new(self.types[column], newest.len() / 8);
        let mut patched = 0;
        let places: Vec<(usize, usize)> = newest
            .iter()
            .enumerate()
            .map(|(slot, cell)| match cell {
                None => (0, slot),
                Some(cell) => {
                    builder.push(*cell);
                    patched += 1;
                    (1, patched - 1)
                }
            })
            .collect();
        let patches = builder.finish();
        let merged = interleave(&[array.as_ref(), patches.as_ref()], &places)
            .expect("both arrays have the column's type and every place is within them");
        compact(merged)
    }
}

/// Copies the bytes of a view array together once patches have left it with many buffers.
fn compact(array: ArrayRef) -> ArrayRef {
    const BUFFERS_MAX: usize = 8;
    if let Some(text) = array.as_string_view_opt()
        && text.data_buffers().len() > BUFFERS_MAX
    {
        return Arc::new(text.gc());
    }
    if let Some(bytes) = array.as_binary_view_opt()
        && bytes.data_buffers().len() > BUFFERS_MAX
    {
        return Arc::new(bytes.gc());
    }
    array
}

fn merge_meta(mut base: MetaColumns, prefix: &Prefix<'_>) -> MetaColumns {
    let len = base.start.len();
    let mut seen = vec![false; len];
    for version in &prefix.newest_first {
        if std::mem::replace(&mut seen[version.slot], true) {
            continue;
        }
        if base.last_updated.is_empty() {
            base.last_updated = vec![0; len].into();
        }
        base.last_updated[version.slot] = version.committed.0;
        base.newest = base.newest.max(version.committed);
        if version.record.kind() == Kind::Delete {
            if base.deleted.is_empty() {
                base.deleted = vec![false; len].into();
            }
            base.deleted[version.slot] = true;
        }
    }
    base.tps = prefix.end;
    base
}
