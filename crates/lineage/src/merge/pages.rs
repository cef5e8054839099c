//! The merge: brings the base pages of one range forward in time (L-Store, section 4.1 and Algorithm 1).
//!
//! ```text
//! step 1  the consecutive prefix of resolved tail records after the TPS, for each update range; tombstones are passed
//! step 2  the outdated base (or insert) page of each column
//! step 3  newest first, with one seen-mark a slot: the newest value of each record goes into a new page
//! step 4  publish: one pointer swap for the pages of the range, those that did not change included
//! step 5  the outdated pages wait for their readers in the epoch queue
//! ```
//!
//! The merge reads only what never changes and writes only pages that no reader sees yet: it never waits for a
//! transaction and no transaction waits for it. Running it again gives the same pages. (The paper prints the inner
//! loop of Algorithm 1 as ending at the tail page's size; it must run down to the first record, and the seen-set is
//! keyed by the base record.)
//!
//! Columns may be merged at different times ([`Table::merge_columns`](crate::Table::merge_columns)): each page has its
//! own TPS, and the meta-data page is always at least as far as any of them.
//!
//! Insert pages are merged the same way once every one of their slots is resolved. A range that is not full is closed
//! first: it takes no further records, and the table opens another one.
use std::sync::Arc;

use sync::Guard;
use sync::atomic::{AtomicU64, Ordering};
use types::{StartTime, Timestamp};

use crate::content::meta_columns::Times;
use crate::content::meta_columns::UpdateColumns;
use crate::content::row_page::RowPage;
use crate::encoding::EncodedColumn;
use crate::memory::evictable::Evictable;
use crate::memory::source::PageError;
use crate::merge::inserted::{InsertedRows, sketch_of};
use crate::merge::texts::TextRows;
use crate::merge::words::overwritten;
use crate::page::base::{Lineage, MetaColumns, MetaPage, NewValues, Page, Pages, StartTimes, Starts, Values};
use crate::page::contents::{RowsOutline, UpdatesOutline};
use crate::page::insert::InsertPages;
use crate::page::lent::Lent;
use crate::page::point_rows::are_worthwhile;
use crate::page::tail::{RECORDS_AHEAD, RecordPlace, TailRecord};
use crate::page::text::is_text;
use crate::page::words::Layout;
use crate::record::range::Range;
use crate::record::view::{Outcomes, Resolved, resolve_and_stamp};
use crate::value::cell::Cell;
use crate::value::kept::Kept;
use crate::value::kind::Kind;
use crate::value::sketch::Sketch;
use crate::value::slots::SlotSet;

/// The work of a merge.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MergeReport {
    /// tail records taken in, tombstones and snapshot records included
    pub tail_records: u64,
    /// insert records turned into base records
    pub inserted: u64,
}

/// The newest version that a merge takes in of one record.
pub(super) struct MergedVersion<'g> {
    pub(super) slot: usize,
    pub(super) part: usize,
    pub(super) record: TailRecord<'g>,
    committed: Timestamp,
}

/// The resolved prefixes of a range's tails.
pub(super) struct Prefixes<'g> {
    ends: Lineage,
    /// the newest version of each record in them, by ascending slot
    pub(super) newest: Vec<MergedVersion<'g>>,
}

impl Range {
    /// Merges what is resolved, all columns or those named. `None` if there was nothing to do, another merge is running,
    /// or a transaction that still runs holds up the first step; nothing is lost then and a later merge takes it.
    ///
    /// Evicted pages that it needs are read back; where that fails nothing has happened.
    pub(crate) fn merge<O: Outcomes>(
        &self,
        outcomes: &O,
        columns: Option<&[usize]>,
        kept: &Kept,
    ) -> Result<Option<MergeReport>, PageError> {
        let Ok(mut progress) = self.merging.try_lock() else { return Ok(None) };
        let guard = &sync::pin();
        let before = self.pages.load(guard);
        let (base, prefixes, inserted) = match &before.meta {
            MetaPage::Insert { pages, .. } => {
                let Some(base) = self.close_and_resolve(pages, outcomes) else { return Ok(None) };
                (base, self.resolved_prefixes(guard, &before.floor, outcomes), self.len() as u64)
            }
            MetaPage::Base(meta) => {
                let prefixes = self.resolved_prefixes(guard, &before.floor, outcomes);
                if prefixes.ends == before.floor {
                    return Ok(None);
                }
                (meta.clone(), prefixes, 0)
            }
        };
        // The first merge takes all: it replaces the insert pages. Rows are a single page.
        let is_partial = |column: &usize| inserted == 0 && matches!(before.columns[*column].values, Values::Column(_));
        let merged: Vec<usize> = (0..self.types.len())
            .filter(|column| columns.is_none_or(|some| some.contains(column)) || !is_partial(column))
            .collect();
        let taken_in = |tps: &Lineage| prefixes.ends.iter().zip(tps.iter()).map(|(end, tps)| end - tps).sum();
        let report = MergeReport { tail_records: taken_in(before.meta.lineage()), inserted };
        for part in 0..self.parts.len() {
            let newest = prefixes.newest.iter().filter(|version| version.part == part);
            let newest = newest.map(|version| (version.record, version.committed));
            self.keep_origins(guard, part, &base, newest, kept)?;
        }
        let is_as_inserted = inserted > 0 && base.tombstones == 0 && prefixes.newest.is_empty();
        let pages = match progress.early.take() {
            Some(columns) if is_as_inserted => columns,
            _ => self.merge_columns(guard, before, &merged, &base, &prefixes)?,
        };
        let meta = self.merge_meta(guard, base, &prefixes)?;
        let mut columns = before.columns.clone();
        for (column, (values, sketch)) in merged.into_iter().zip(pages) {
            columns[column] = Arc::new(Page { lineage: meta.lineage.clone(), values, sketch });
        }
        let slots = prefixes.newest.iter().map(|version| version.slot);
        self.publish_with_rows(guard, Pages::new(MetaPage::Base(meta), columns), slots);
        Ok(Some(report))
    }

    /// Publishes pages that a merge made, with point rows if those before are in use: what was merged at these slots is put anew.
    fn publish_with_rows(&self, guard: &Guard, pages: Pages, slots: impl Iterator<Item = usize>) {
        let rows = match &self.pages.load(guard).rows {
            Some(rows) if rows.take_recent() => pages.make_rows(guard, Some(rows), self.len(), slots, &self.meter),
            _ if self.is_often_read_by_key() => pages.make_rows(guard, None, self.len(), slots, &self.meter),
            _ => None,
        };
        self.read_by_key.store(0, Ordering::Relaxed);
        let merged = pages.floor.clone();
        self.pages.replace_large(pages.with_rows(rows), guard);
        let hints = self.parts.iter().map(|part| &part.merged_hint);
        hints.zip(merged.iter()).for_each(|(hint, merged)| hint.store(*merged, Ordering::Relaxed));
        self.has_published();
        self.forward.merged(&merged);
        // A thread that needs the memory may wait for this merge and then for readers: what was replaced is in sight from now on.
        guard.flush();
    }

    /// Gives a range that is often read by key its point rows, without a merge. Does nothing while a merge runs.
    pub(crate) fn make_point_rows(&self) {
        let guard = &sync::pin();
        let is_wanted = || self.pages.load(guard).rows.is_none() && self.is_often_read_by_key();
        if !is_wanted() {
            return;
        }
        let Ok(_one_at_a_time) = self.merging.try_lock() else { return };
        let pages = self.pages.load(guard);
        if !is_wanted() {
            return;
        }
        self.read_by_key.store(0, Ordering::Relaxed);
        if let Some(rows) = pages.make_rows(guard, None, self.len(), std::iter::empty(), &self.meter) {
            self.pages.replace_large(pages.clone().with_rows(Some(rows)), guard);
            self.has_published();
        }
    }

    /// Whether readers by key have looked at many base records since the pages were published.
    fn is_often_read_by_key(&self) -> bool {
        are_worthwhile(self.len(), self.read_by_key.load(Ordering::Relaxed))
    }

    /// Closes an insert range and reads the Start Time of all its records, `None` while one is unresolved.
    fn close_and_resolve<O: Outcomes>(&self, pages: &InsertPages, outcomes: &O) -> Option<MetaColumns> {
        self.close();
        let mut newest = Timestamp::ZERO;
        let mut tombstones = 0;
        let resolve = |slot| match resolve_and_stamp(pages.start(slot), outcomes) {
            Resolved::Committed(at) => {
                newest = newest.max(at);
                Some(at.0)
            }
            Resolved::Tombstone => {
                tombstones += 1;
                Some(StartTime::TOMBSTONE)
            }
            Resolved::Unwritten | Resolved::Active(_) | Resolved::Prepared(..) => None,
        };
        let words = (0..self.len()).map(resolve).collect::<Option<Vec<u64>>>()?;
        let live_rows = words.iter().filter(|word| **word != StartTime::TOMBSTONE).count() as u64;
        let is_one = words.iter().all(|word| *word == words[0]);
        let start = if let (true, Some(word)) = (is_one, words.first()) {
            StartTimes::One(AtomicU64::new(*word))
        } else {
            let each: Box<[AtomicU64]> = words.into_iter().map(AtomicU64::new).collect();
            let len = each.len();
            StartTimes::Each(Evictable::new(Times(each), len, &self.meter, None))
        };
        let zero: Lineage = vec![0; self.parts.len()].into();
        let start = Arc::new(start);
        Some(MetaColumns {
            lineage: zero,
            start,
            updates: None,
            inserted: newest,
            newest,
            live_rows,
            tombstones,
            has_deleted: false,
        })
    }

    fn resolved_prefixes<'g, O: Outcomes>(&'g self, guard: &'g Guard, from: &Lineage, outcomes: &O) -> Prefixes<'g> {
        let mut newest = Vec::new();
        let end = |(part, tps): (usize, &u64)| self.resolved_prefix(guard, part, *tps, outcomes, &mut newest);
        let ends = from.iter().enumerate().map(end).collect();
        Prefixes { ends, newest }
    }

    /// Adds the newest version of each record in the resolved prefix of an update range; returns its end.
    fn resolved_prefix<'g, O: Outcomes>(
        &'g self,
        guard: &'g Guard,
        part: usize,
        tps: u64,
        outcomes: &O,
        newest: &mut Vec<MergedVersion<'g>>,
    ) -> u64 {
        let tails = &self.parts[part].tails;
        let slots = self.options.update_range_records;
        // Of each slot, how far behind the TPS its newest version lies.
        let (first_slot, mut updated, mut distances) = (part * slots, SlotSet::new(slots), vec![0_u32; slots]);
        let mut note = |sequence: u64, place: RecordPlace<'_>| {
            if place.kind() != Kind::Snapshot {
                let slot = place.slot() - first_slot;
                updated.insert(slot);
                distances[slot] = (sequence - tps) as u32;
            }
        };
        let mut end = tps;
        let mut is_sealed = false;
        loop {
            // Most versions are stamped.
            tails.each_place(guard, end + 1..tails.allocated() + 1, |sequence, place| {
                let start = StartTime::from_word(place.start().load(Ordering::Acquire));
                if sequence > end + 1 || !matches!(start, StartTime::Committed(_)) {
                    return false;
                }
                note(sequence, place);
                end = sequence;
                true
            });
            if end >= tails.allocated() {
                break;
            }
            let record = tails.get(guard, end + 1);
            match record.map(|record| (record, record.resolve_and_stamp(outcomes))) {
                // Perhaps the number is only held ready by a writer.
                None | Some((_, Resolved::Unwritten)) if !is_sealed => {
                    tails.seal(guard);
                    is_sealed = true;
                    continue;
                }
                None | Some((_, Resolved::Unwritten | Resolved::Active(_) | Resolved::Prepared(..))) => break,
                Some((record, Resolved::Committed(_))) => note(end + 1, record.place()),
                Some((_, Resolved::Tombstone)) => {}
            }
            end += 1;
        }
        let slots: Vec<usize> = updated.iter().collect();
        let sequence = |slot: usize| tps + u64::from(distances[slot]);
        let ask = |slot: &usize| tails.place_of(guard, sequence(*slot)).into_iter().for_each(RecordPlace::prefetch);
        slots.iter().take(RECORDS_AHEAD).for_each(ask);
        newest.reserve(slots.len());
        for (at, slot) in slots.iter().enumerate() {
            slots.get(at + RECORDS_AHEAD).into_iter().for_each(ask);
            let Some(record) = tails.get(guard, sequence(*slot)) else { continue };
            if let Resolved::Committed(committed) = record.resolve(outcomes) {
                newest.push(MergedVersion { slot: first_slot + slot, part, record, committed });
            }
        }
        end
    }

    fn merge_columns(
        &self,
        guard: &Guard,
        pages: &Pages,
        columns: &[usize],
        base: &MetaColumns,
        prefixes: &Prefixes<'_>,
    ) -> Result<Vec<NewValues>, PageError> {
        let Some(first) = columns.first() else { return Ok(Vec::new()) };
        if self.options.layout == Layout::Column {
            let mut words = self.new_words(pages, &base.lineage, prefixes);
            let merge = |column: &usize| {
                let (column, page) = (*column, &pages.columns[*column]);
                match overwritten(guard, page, words.take(column), &self.meter)? {
                    Some(merging) => Ok(merging),
                    None => self.merge_column(guard, page, column, base, prefixes),
                }
            };
            return columns.iter().map(merge).collect();
        }
        // All columns of a row are in one page and have one lineage.
        let page = &pages.columns[*first];
        let starts = base.start.get(guard)?;
        let rows = self.merge_rows(guard, page, starts, prefixes)?;
        let sketches: Vec<_> = columns.iter().map(|column| self.sketch_rows(&rows, *column, starts)).collect();
        let outline = RowsOutline { types: self.types.clone(), len: self.len() };
        let values = Values::Rows(Evictable::new(rows, outline, &self.meter, None));
        Ok(sketches.into_iter().map(|sketch| (values.clone(), Some(sketch))).collect())
    }

    fn merge_column(
        &self,
        guard: &Guard,
        page: &Page,
        column: usize,
        base: &MetaColumns,
        prefixes: &Prefixes<'_>,
    ) -> Result<NewValues, PageError> {
        let newest = self.newest_values(guard, column, &page.lineage, prefixes);
        let patches: Vec<_> = newest.iter().map(|(slot, record)| (*slot, record.cell(column))).collect();
        let encoded = match &page.values {
            // Be it in memory or away.
            Values::Column(_) if patches.is_empty() => return Ok((page.values.clone(), page.sketch.clone())),
            Values::Column(encoded) => {
                let encoded = encoded.hold(guard)?;
                let merged = encoded.recoded(&patches).or_else(|| self.patch_texts(column, &encoded, &newest));
                merged.unwrap_or_else(|| encoded.patched(&patches))
            }
            Values::Insert(pages) => {
                let rows = InsertedRows { pages, starts: base.start.get(guard)?, tombstones: base.tombstones };
                let (encoded, sketch) = self.build_inserted(column, &rows, &newest, &patches);
                return Ok((Values::of_column(encoded, &self.meter, None), Some(Arc::new(sketch))));
            }
            Values::Rows(_) => unreachable!("the pages of a range are all of one layout"),
        };
        let mut sketch = page.sketch.as_deref().cloned().unwrap_or_else(|| sketch_of(&encoded));
        patches.iter().for_each(|(_, cell)| sketch.add(*cell));
        Ok((Values::of_column(encoded, &self.meter, None), Some(Arc::new(sketch))))
    }

    fn sketch_rows(&self, rows: &RowPage, column: usize, starts: Starts<'_>) -> Arc<Sketch> {
        let mut sketch = Sketch::default();
        let slots = (0..self.len()).filter(|slot| !starts.is_tombstone(*slot));
        slots.for_each(|slot| sketch.add(rows.cell(column, slot)));
        Arc::new(sketch)
    }

    /// The values that a page lacks, by ascending slot: the tail records that have them.
    fn newest_values<'g>(
        &'g self,
        guard: &'g Guard,
        column: usize,
        tps: &Lineage,
        prefixes: &Prefixes<'g>,
    ) -> Vec<(usize, TailRecord<'g>)> {
        let value = |version: &MergedVersion<'g>| {
            let (record, tps) = (&version.record, tps[version.part]);
            if record.sequence <= tps || record.kind() == Kind::Delete {
                return None;
            }
            if record.is_explicit(column) {
                return Some((version.slot, *record));
            }
            if !record.was_ever_updated(column) || tps >= record.reset() {
                return None;
            }
            Some((version.slot, self.older_value(guard, column, version, tps)?))
        };
        prefixes.newest.iter().filter_map(value).collect()
    }

    /// The newest value of a column that a version left out because another column's page had merged it.
    fn older_value<'g>(
        &'g self,
        guard: &'g Guard,
        column: usize,
        version: &MergedVersion<'g>,
        tps: u64,
    ) -> Option<TailRecord<'g>> {
        let tails = &self.parts[version.part].tails;
        let mut sequence = version.record.prev();
        while sequence > tps {
            let record = tails.get(guard, sequence)?;
            let is_tombstone = record.start().load(Ordering::Acquire) == StartTime::TOMBSTONE;
            if record.kind() != Kind::Snapshot && !is_tombstone && record.is_explicit(column) {
                return Some(record);
            }
            sequence = record.prev();
        }
        None
    }

    /// A base page of text with the newest values over it, if it is a dictionary and those of the tail have most of them.
    fn patch_texts(
        &self,
        column: usize,
        base: &EncodedColumn,
        newest: &[(usize, TailRecord<'_>)],
    ) -> Option<EncodedColumn> {
        if !is_text(self.types[column]) {
            return None;
        }
        let mut rows = TextRows::of_base(column, base)?;
        newest.iter().for_each(|(slot, record)| rows.set(*slot, record.text(column)));
        rows.encode(self.types[column])
    }

    /// The rows of a range in row layout with the newest values over them.
    fn merge_rows(
        &self,
        guard: &Guard,
        page: &Page,
        starts: Starts<'_>,
        prefixes: &Prefixes<'_>,
    ) -> Result<RowPage, PageError> {
        let lent = Lent::new(0);
        let base = |column| lent.values(guard, page, (0, column));
        let base = (0..self.types.len()).map(base).collect::<Result<Vec<_>, PageError>>()?;
        let newest = |column| self.newest_values(guard, column, &page.lineage, prefixes).into_iter().peekable();
        let mut newest: Vec<_> = (0..self.types.len()).map(newest).collect();
        Ok(RowPage::build(&self.types, self.len(), |slot, column| {
            let record = newest[column].next_if(|(at, _)| *at == slot);
            match record {
                _ if starts.is_tombstone(slot) => Cell::Null,
                Some((_, record)) => record.cell(column),
                None => base[column].cell(slot),
            }
        }))
    }

    fn merge_meta(
        &self,
        guard: &Guard,
        mut meta: MetaColumns,
        prefixes: &Prefixes<'_>,
    ) -> Result<MetaColumns, PageError> {
        if !prefixes.newest.is_empty() {
            let set_words = self.types.len().div_ceil(64);
            let mut updates = match &meta.updates {
                Some(updates) => updates.hold(guard)?.clone(),
                None => UpdateColumns::untouched(self.len(), set_words),
            };
            let mut has_new = false;
            for version in &prefixes.newest {
                has_new |= updates.last_updated[version.slot] == 0;
                let is_delete = version.record.kind() == Kind::Delete;
                meta.live_rows -= u64::from(is_delete && !updates.is_deleted(version.slot));
                updates.take_in(version.slot, version.committed, &version.record.ever(), is_delete);
                meta.newest = meta.newest.max(version.committed);
                meta.has_deleted |= is_delete;
            }
            let outline = match &meta.updates {
                Some(before) if !has_new => before.outline.clone(),
                _ => UpdatesOutline::of(&updates, &self.types),
            };
            meta.updates = Some(Evictable::new(updates, outline, &self.meter, None));
        }
        debug_assert!(prefixes.ends.iter().zip(meta.lineage.iter()).all(|(end, tps)| end >= tps), "a TPS only grows");
        meta.lineage = prefixes.ends.clone();
        Ok(meta)
    }
}
