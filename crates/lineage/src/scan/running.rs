//! Running totals: rows, values and their sum of a column over a range as of a prefix of its tails, so that a sum that
//! comes again adds only what has come since.
//!
//! A committed version changes the sum by its value less that of the version before it; a delete takes the value before it away.
//! Over the committed versions of a record these differences telescope to the newest value less the one in the base page. So
//! the totals as of a prefix of the tails do not depend on how far merges have come, every version counts, in any order, and
//! what was rolled back adds nothing, and no version's difference is taken from it. Writers do nothing for it.
//!
//! ```text
//! Running   through   of each update range, the prefix that is counted: every record is a tombstone, or stamped and counted
//!           newest    the newest commit in it; older snapshots are added up in the general way
//!           totals
//!
//! sum at t  a merge has passed `through`    begin again from the zones of the base pages, as of their TPS
//!           records after `through`         while they are decided at or before t the prefix moves over them;
//!                                           what t sees behind it counts for this sum only, and is looked at again next time
//! ```
//!
//! Nobody waits for another with the totals' lock held: outcomes of transactions are asked for when it is free again.
//! Ranges of insert pages or rows, pages that are away or of different age, columns of floats, whose sums depend on the
//! order, and chains that have become history take the general way.
use sync::Guard;
use sync::atomic::Ordering;
use types::{StartTime, Timestamp};

use crate::content::meta_columns::UpdateColumns;
use crate::encoding::{Aggregates, EncodedColumn};
use crate::memory::source::PageError;
use crate::page::base::{MetaColumns, MetaPage, Pages, Values};
use crate::page::tail::TailRecord;
use crate::record::range::Range;
use crate::record::running::{Counts, Running};
use crate::record::view::{Outcomes, Resolved, View, Visibility};
use crate::scan::aggregate::Totals;
use crate::scan::request::Request;
use crate::value::cell::is_wide;
use crate::value::kind::Kind;

/// Whether a version was rolled back; `None` if that is not to be asked now.
type IsRolledBack<'f> = dyn Fn(&TailRecord<'_>) -> Option<bool> + 'f;

/// What Start Time says by itself.
fn is_stamped_away(record: &TailRecord<'_>) -> Option<bool> {
    match StartTime::from_word(record.start().load(Ordering::Acquire)) {
        StartTime::Tombstone => Some(true),
        StartTime::Committed(_) => Some(false),
        StartTime::Pending(_) | StartTime::Unwritten => None,
    }
}

/// A column of a range as one sum sees it.
struct Column<'g> {
    guard: &'g Guard,
    column: usize,
    pages: &'g Pages,
    meta: &'g MetaColumns,
    encoded: &'g EncodedColumn,
}

impl Range {
    /// Counts and sums of the columns over the rows that `view` sees; extremes are not told.
    pub(crate) fn sums<O: Outcomes>(&self, view: View<'_, O>, columns: &[usize]) -> Result<Totals, PageError> {
        if let Some(totals) = self.running_totals(view, columns) {
            return Ok(totals);
        }
        let request = Request { columns: columns.to_vec(), tests: Vec::new() };
        let mut totals = self.aggregate(view, &request)?;
        totals.columns.iter_mut().for_each(Aggregates::forget_extremes);
        Ok(totals)
    }

    fn running_totals<O: Outcomes>(&self, view: View<'_, O>, columns: &[usize]) -> Option<Totals> {
        let (mut rows, mut totals) = (0, Vec::with_capacity(columns.len()));
        for column in columns {
            let counts = self.running_counts(view, *column)?;
            rows = counts.rows as u64;
            totals.push(Aggregates::of_sum(self.types[*column], counts.values as u64, counts.sum)?);
        }
        (!columns.is_empty()).then_some(Totals { rows, columns: totals })
    }

    fn running_counts<O: Outcomes>(&self, view: View<'_, O>, column: usize) -> Option<Counts> {
        let guard = &sync::pin();
        let pages = self.pages.load(guard);
        let MetaPage::Base(meta) = &pages.meta else { return None };
        let Values::Column(values) = &pages.columns[column].values else { return None };
        let seen = Column { guard, column, pages, meta, encoded: values.here(guard)? };
        if pages.floor != meta.lineage || meta.newest > view.snapshot.at {
            return None;
        }
        let running = self.advance(&seen, view.snapshot.at)?;
        let mut counts = running.totals;
        for (part, through) in running.through.iter().enumerate() {
            let mut is_known = true;
            let visited = self.parts[part].tails.each_oldest_first(guard, *through, |record| {
                let Some(record) = record else { return true };
                if record.visibility(view) == Visibility::Visible {
                    let is_rolled_back =
                        |before: &TailRecord<'_>| Some(before.resolve(view.outcomes) == Resolved::Tombstone);
                    match self.difference(&seen, part, &record, &is_rolled_back) {
                        Some(difference) => counts.add(difference),
                        None => is_known = false,
                    }
                }
                is_known
            });
            if visited.is_err() || !is_known {
                return None;
            }
        }
        Some(counts)
    }

    /// Moves the totals over what was decided at or before `at`, and returns them as they are then; `None` if they can't be told, or
    /// are of a later time.
    fn advance(&self, seen: &Column<'_>, at: Timestamp) -> Option<Running> {
        let mut place = self.running.of(seen.column)?.lock().ok()?;
        let is_passed = |running: &Running| running.through.iter().zip(seen.pages.floor.iter()).any(|(a, b)| a < b);
        if place.as_ref().is_none_or(is_passed) {
            *place = Some(Running {
                through: seen.pages.floor.iter().copied().collect(),
                newest: seen.meta.newest,
                totals: seen.base_counts()?,
            });
        }
        let running = place.as_mut()?;
        if running.newest > at {
            return None;
        }
        for (part, through) in running.through.iter_mut().enumerate() {
            let visited = self.parts[part].tails.each_oldest_first(seen.guard, *through, |record| {
                let Some(record) = record else { return false };
                let start = record.start().load(Ordering::Acquire);
                if start != StartTime::TOMBSTONE {
                    if start == 0 || start > at.0 {
                        return false;
                    }
                    let Some(difference) = self.difference(seen, part, &record, &is_stamped_away) else { return false };
                    running.totals.add(difference);
                    if record.kind() != Kind::Snapshot {
                        running.newest = running.newest.max(Timestamp(start));
                    }
                }
                *through = record.sequence;
                true
            });
            visited.ok()?;
        }
        Some(running.clone())
    }

    /// What a visible version changes; `None` if the value before it is not in the tail or the base page, or it is not known yet
    /// which version that is.
    fn difference(
        &self,
        seen: &Column<'_>,
        part: usize,
        record: &TailRecord<'_>,
        is_rolled_back: &IsRolledBack<'_>,
    ) -> Option<Counts> {
        let mut difference = Counts::default();
        match record.kind() {
            Kind::Update if record.is_explicit(seen.column) => {
                difference.add_value(seen.value_of(record), 1);
            }
            Kind::Delete => difference.rows = -1,
            Kind::Update | Kind::Snapshot | Kind::Lock | Kind::ValuesLock => return Some(difference),
        }
        difference.add_value(self.value_before(seen, part, record, is_rolled_back)?, -1);
        Some(difference)
    }

    /// The value of the column in the version before a visible one, `None` within if it is NULL.
    fn value_before(
        &self,
        seen: &Column<'_>,
        part: usize,
        record: &TailRecord<'_>,
        is_rolled_back: &IsRolledBack<'_>,
    ) -> Option<Option<i128>> {
        let (slot, page) = (record.slot(), &seen.pages.columns[seen.column]);
        let mut sequence = record.prev();
        while sequence > seen.pages.floor[part] {
            let before = self.parts[part].tails.get(seen.guard, sequence)?;
            // What a visible version stands on is a lock, was rolled back, stamped or not, or is a version before it.
            if matches!(before.kind(), Kind::Update | Kind::Snapshot) && !is_rolled_back(&before)? {
                if before.is_explicit(seen.column) {
                    return Some(seen.value_of(&before));
                }
                let is_in_base = !before.was_ever_updated(seen.column) || page.lineage[part] >= before.reset();
                if before.kind() == Kind::Update && is_in_base {
                    break;
                }
            }
            sequence = before.prev();
        }
        Some(seen.base_value(slot))
    }
}

impl Column<'_> {
    /// The value that an explicit column has in a version. Of what is not added up it only matters whether it is NULL.
    fn value_of(&self, record: &TailRecord<'_>) -> Option<i128> {
        if record.is_null(self.column) {
            return None;
        }
        Some(if self.is_wide() { 0 } else { i128::from(record.word(self.column) as i64) })
    }

    fn base_value(&self, slot: usize) -> Option<i128> {
        if self.is_wide() {
            return (!self.encoded.is_null(slot)).then_some(0);
        }
        self.encoded.word(slot).map(|word| i128::from(word as i64))
    }

    fn is_wide(&self) -> bool {
        is_wide(self.encoded.data_type())
    }

    /// The totals of the base pages: those of the zones, without what is in slots that hold no record.
    fn base_counts(&self) -> Option<Counts> {
        let (values, sum) = self.encoded.zones_totals();
        let mut counts = Counts { rows: self.meta.live_rows as i64, values: values as i64, sum };
        let mut leave_out = |slot: usize| counts.add_value(self.base_value(slot), -1);
        if self.meta.tombstones > 0 {
            let starts = self.meta.start.get(self.guard).ok()?;
            (0..self.encoded.len()).filter(|slot| starts.is_tombstone(*slot)).for_each(&mut leave_out);
        }
        if self.meta.has_deleted {
            let updates: &UpdateColumns = self.meta.updates(self.guard).ok()??;
            (0..self.encoded.len()).filter(|slot| updates.is_deleted(*slot)).for_each(&mut leave_out);
        }
        Some(counts)
    }
}
