//! Columns brought forward: copies of a range's columns in which scans put pending values in their places, so that a scan that comes
//! again looks at those alone that have come since.
//!
//! It is what the merge does with a column (L-Store, section 4.1), but in place, for the columns that are scanned, and as often as they
//! are. Base pages can't be changed in place, as readers by key look into them at any time. These copies are for scans
//! alone, of which one at a time brings them forward; a scan that still reads one makes the next scan take another copy.
//!
//! ```text
//! tails       1 2 3 4 5 6 7 8 9 10 11 12 ...
//! base pages  ----> TPS
//! forward     ------------------> through       every record up to there is a tombstone, or committed and put in its place
//! a scan                          <----->       is left to the fold, as everything after the TPS was
//! ```
//!
//! The prefix of the tails that is passed ends before a record that is not decided, or was committed after the scan's snapshot; before a
//! delete; and before a value that the copy can't take: a NULL, bytes, a number that its lanes have no room for. So a snapshot that sees
//! the newest commit of a copy sees all of it, and the fold finds everything else. Others go by the base pages.
//!
//! A column of which no record that was passed has a value needs no copy: its page is as good, and so is each later one. Copies are made
//! once a second scan meets many pending records between two merges, and go when a merge has come as far.
use std::sync::Arc;

use sync::Guard;
use sync::atomic::Ordering;
use types::{StartTime, Timestamp};

use crate::encoding::{EncodedColumn, KeyRoom};
use crate::memory::budget::{Charge, MemoryKind};
use crate::page::base::{MetaPage, Page, Pages, Values};
use crate::page::tail::TailRecord;
use crate::record::forward::{Followed, Forward, ForwardColumn};
use crate::record::range::Range;
use crate::value::column_set::{WORD_COLUMNS, columns_of};
use crate::value::kind::Kind;

/// So many pending records are folded each time; tests look into copies at once.
const FEW: u64 = if cfg!(any(test, shuttle)) { 2 } else { 256 };

/// The columns of one scan, brought forward.
pub(crate) struct Forwarded {
    /// of each update range, up to which tail record
    pub(crate) through: Box<[u64]>,
    /// of each column of the scan; those that have none are as their pages have them
    pub(crate) copies: Box<[Option<Arc<ForwardColumn>>]>,
}

/// New keys of one column with their slots, oldest first.
struct Patches {
    room: KeyRoom,
    keys: Vec<(usize, i64)>,
}

impl Range {
    /// Brings the columns forward for a snapshot at this time; `None` where the scan has to go by these pages.
    pub(crate) fn forwarded(
        &self,
        guard: &Guard,
        pages: &Pages,
        columns: &[usize],
        at: Timestamp,
    ) -> Option<Forwarded> {
        let MetaPage::Base(meta) = &pages.meta else { return None };
        let pending = |part: usize| self.parts[part].tails.allocated().saturating_sub(pages.tps_min(part, columns));
        let is_worthwhile = (0..self.parts.len()).map(pending).sum::<u64>() >= FEW;
        if !is_worthwhile || meta.newest > at || self.types.len() > WORD_COLUMNS || columns.is_empty() {
            return None;
        }
        // While another scan brings it forward this one does not wait.
        let mut kept = self.forward.kept.try_lock().ok()?;
        if kept.as_ref().is_some_and(|forward| forward.is_passed(&pages.floor)) {
            *kept = None;
        }
        if kept.is_none() {
            let met = 1 + pages.floor.iter().sum::<u64>();
            if self.forward.met.swap(met, Ordering::Relaxed) != met {
                return None;
            }
            *kept = Some(Forward::at(&pages.floor, meta.newest, self.types.len()));
        }
        let forward = kept.as_mut()?;
        if forward.newest > at {
            return None;
        }
        forward.newest = forward.newest.max(meta.newest);
        for column in columns {
            self.follow(guard, pages, forward, *column)?;
        }
        forward.leave_unused(columns);
        self.advance_columns(guard, pages, forward, at)?;
        let copies = columns.iter().map(|column| forward.columns[*column].copy.clone()).collect();
        Some(Forwarded { through: forward.through.clone(), copies })
    }

    /// Follows a column from now on, having brought it as far as the others; `None` if this can't be done, or if its page is older than
    /// the one with which that began.
    fn follow(&self, guard: &Guard, pages: &Pages, forward: &mut Forward, column: usize) -> Option<()> {
        let page = &pages.columns[column];
        if forward.columns[column].since.is_some() {
            return forward.columns[column].goes_on_from(&page.lineage).then_some(());
        }
        let mut followed = Followed::from(page.lineage.clone());
        let mut patches = None;
        for (part, through) in forward.through.iter().enumerate() {
            let mut has_places = true;
            let visited = self.parts[part].tails.each_oldest_first(guard, page.lineage[part], |record| {
                let Some(record) = record.filter(|record| record.sequence <= *through) else { return false };
                let is_committed = record.start().load(Ordering::Acquire) != StartTime::TOMBSTONE;
                if is_committed && record.kind() == Kind::Update && record.is_explicit(column) {
                    has_places = self.has_place(guard, page, &mut followed, &mut patches, (column, &record));
                    note(&mut patches, column, &record, &followed);
                }
                has_places
            });
            if visited.is_err() || !has_places {
                return None;
            }
        }
        patches.iter().for_each(|patches| self.put(&mut followed, patches));
        forward.columns[column] = followed;
        Some(())
    }

    /// Moves on over what was decided at or before `at`.
    fn advance_columns(&self, guard: &Guard, pages: &Pages, forward: &mut Forward, at: Timestamp) -> Option<()> {
        let Forward { through, newest, columns } = forward;
        let is_followed = |column: &usize| columns[*column].since.is_some();
        let followed = (0..columns.len()).filter(is_followed).fold(0, |set, column| set | 1 << column);
        let mut patches: Vec<Option<Patches>> = columns.iter().map(|_| None).collect();
        for (part, through) in through.iter_mut().enumerate() {
            let visited = self.parts[part].tails.each_oldest_first(guard, *through, |record| {
                let Some(record) = record else { return false };
                let start = record.start().load(Ordering::Acquire);
                if start != StartTime::TOMBSTONE {
                    if start == 0 || start > at.0 || record.kind() == Kind::Delete {
                        return false;
                    }
                    if record.kind() == Kind::Update {
                        let values = record.sets().0 & followed;
                        // All of them before the first is noted: what is not passed leaves nothing behind.
                        let has_place = |column: usize| {
                            let (page, of_column) = (&pages.columns[column], &mut columns[column]);
                            self.has_place(guard, page, of_column, &mut patches[column], (column, &record))
                        };
                        if !columns_of(values).all(has_place) {
                            return false;
                        }
                        columns_of(values)
                            .for_each(|column| note(&mut patches[column], column, &record, &columns[column]));
                        *newest = (*newest).max(Timestamp(start));
                    }
                }
                *through = record.sequence;
                true
            });
            visited.ok()?;
        }
        for (column, patches) in columns.iter_mut().zip(&patches) {
            patches.iter().for_each(|patches| self.put(column, patches));
        }
        Some(())
    }

    /// Whether a copy of the column, which this makes if there is none, has room for the value in a record.
    fn has_place(
        &self,
        guard: &Guard,
        page: &Page,
        followed: &mut Followed,
        patches: &mut Option<Patches>,
        (column, record): (usize, &TailRecord<'_>),
    ) -> bool {
        if patches.is_none() {
            if followed.copy.is_none() && followed.goes_on_from(&page.lineage) {
                followed.copy = self.copy_of(guard, page);
            }
            let room = followed.copy.as_ref().and_then(|copy| copy.values.room());
            *patches = room.map(|room| Patches { room, keys: Vec::new() });
        }
        match (patches, &followed.copy) {
            (Some(patches), Some(copy)) if !record.is_null(column) => {
                patches.room.has(copy.values.key_of(record.word(column)))
            }
            _ => false,
        }
    }

    fn copy_of(&self, guard: &Guard, page: &Page) -> Option<Arc<ForwardColumn>> {
        let Values::Column(values) = &page.values else { return None };
        let values = values.here(guard)?;
        let has_room = self.meter.budget().has_room_for_copies(values.bytes() as u64);
        has_room.then(|| values.copy()).flatten().map(|values| self.charged(values))
    }

    fn charged(&self, values: EncodedColumn) -> Arc<ForwardColumn> {
        let charge = Charge::new(&self.meter, MemoryKind::Base, values.bytes());
        Arc::new(ForwardColumn { values, _charge: charge })
    }

    /// Puts new values in their places: where a scan still reads the copy, in those of another one.
    fn put(&self, followed: &mut Followed, patches: &Patches) {
        let Some(copy) = &mut followed.copy else { unreachable!("values have places in a copy") };
        if let Some(alone) = Arc::get_mut(copy) {
            return alone.values.overwrite(&patches.keys);
        }
        let mut values = copy.values.copy().expect("a copy can be copied");
        values.overwrite(&patches.keys);
        *copy = self.charged(values);
    }
}

/// Notes the value of a record, which has a place.
fn note(patches: &mut Option<Patches>, column: usize, record: &TailRecord<'_>, followed: &Followed) {
    if let (Some(patches), Some(copy)) = (patches, &followed.copy) {
        patches.keys.push((record.slot(), copy.values.key_of(record.word(column))));
    }
}
