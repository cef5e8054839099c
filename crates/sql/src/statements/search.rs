//! Running a query of few rows that an index leads to.
//!
//! ```text
//! tests with their values ──▶ an index and its ranges ──▶ the rows that pass, as one batch ──▶ the answer
//!                                                     ──▶ row by row, each locked          ──▶ the answer
//! ```
//!
//! A row that has changed since the statement's snapshot is looked at again as it is now, once it is locked, as by any other query
//! that locks ([`locking`](super::locking)).
use std::sync::atomic::Ordering;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_select::concat::concat_batches;
use engine::{LockStrength, LockWait, ReadView, RowLock, ScanOptions, Table, Value};

use crate::error::{Result, SqlError};
use crate::names::moment::Moment;
use crate::point::bound::{Bound, Now};
use crate::point::search::answer::Answer;
use crate::point::search::derived::BoundDerived;
use crate::point::search::ordering::sorted;
use crate::point::search::path::{Asked, Counting, ENTRIES_MAX, Path};
use crate::point::search::{Cut, Search};
use crate::point::{Action, Point};
use crate::session::Session;
use crate::session::transactions::Write;
use crate::state::outcome::{Outcome, Rows};

/// What an index gives; nothing if it was dropped meanwhile, which is the planner's to find out.
pub(super) fn there<T>(found: engine::Result<T>) -> Result<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(engine::Error::NoSuchIndex(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

impl Point {
    /// Runs it; `None` if it has to go the long way.
    pub(super) fn search(&self, session: &mut Session, bound: &Bound<'_>, search: &Search) -> Result<Option<Outcome>> {
        session.token.check()?;
        if search.between.is_some() {
            let moment = session.moment()?;
            if let Some(rows) = self.side_by_side(session, moment.view(), bound, search)? {
                return Ok(Some(Outcome::Rows(Rows::ready(rows))));
            }
        }
        let (Some(tests), Some(cut)) = (bound.tests(&search.conditions), search.limits.cut(bound)) else {
            return Ok(None);
        };
        let options = ScanOptions { columns: search.reads.clone(), tests, ..ScanOptions::default() };
        let rows = match search.lock {
            None => {
                // The moment first: the table is to be the one that its rows belong to.
                let moment = session.moment()?;
                let rows = |table: &Table| search.rows(table, &moment, &options, (cut, bound));
                self.seen(session, moment.view(), rows).transpose()?.flatten()
            }
            Some(lock) => {
                let command = search.command();
                session.write(command, |session, write| {
                    session.with_seen(|seen| {
                        let Some(table) = self.find(write, seen)? else { return Ok(None) };
                        let options = ScanOptions { with_rid: true, ..options.clone() };
                        Locking { session, table, search, options: &options, cut, lock }.rows(write)
                    })
                })?
            }
        };
        Ok(rows.map(|rows| Outcome::Rows(Rows::ready(rows))))
    }

    /// Whether its rows may lie side by side.
    pub(crate) fn is_of_stretches(&self) -> bool {
        matches!(&self.action, Action::Search(search) if search.between.is_some())
    }

    /// The rows of a query of few that lie side by side, in a session that sees the newest commit; `None` where they do not.
    pub(crate) fn rows_at_once(&self, session: &Session, values: &[Value]) -> Result<Option<Rows>> {
        let Action::Search(search) = &self.action else { return Ok(None) };
        let view = session.db.read_view()?;
        // The bounds are whole numbers, and none of them the time.
        let rows = self.side_by_side(session, &view, &Bound { values, now: Now::at(session.now) }, search)?;
        Ok(rows.map(|rows| Rows::ready_in(rows, session.settings.times())))
    }

    /// The answer, if the rows have one number after the other in a column and lie side by side.
    fn side_by_side(
        &self,
        session: &Session,
        view: &ReadView,
        bound: &Bound<'_>,
        search: &Search,
    ) -> Result<Option<RecordBatch>> {
        let Some(between) = &search.between else { return Ok(None) };
        let Some((low, high)) = between.bounds(bound) else { return Ok(None) };
        let look = |table: &Table| table.rows_between(view, (between.column, low, high), &search.reads);
        let found = self.seen(session, view, look).transpose()?.flatten();
        between.note(found.is_some());
        found.map_or(Ok(None), |(arrays, count)| search.answer.of_arrays(&arrays, count))
    }
}

impl Search {
    /// What it is called where it has to wait or to fail.
    fn command(&self) -> &'static str {
        match self.lock {
            Some((LockStrength::Update, _)) => "SELECT FOR UPDATE",
            Some((LockStrength::NoKeyUpdate, _)) => "SELECT FOR NO KEY UPDATE",
            Some((LockStrength::Share, _)) => "SELECT FOR SHARE",
            Some((LockStrength::KeyShare, _)) => "SELECT FOR KEY SHARE",
            None => "SELECT",
        }
    }

    /// Whether all rows have to be there before the first is given.
    fn takes_all(&self, is_sorted: bool) -> bool {
        self.answer.is_distinct() || self.derived.has_filters() || !(is_sorted || self.order.is_empty())
    }

    /// The answer, read at a moment.
    pub(super) fn rows(
        &self,
        table: &Table,
        moment: &Moment,
        options: &ScanOptions,
        (cut, bound): (Cut, &Bound<'_>),
    ) -> Result<Option<RecordBatch>> {
        if self.is_of_whole_table() {
            return self.answer.batch_of_sums(&table.sums(moment.view(), &self.reads)?);
        }
        let Some(derived) = self.derived.bound(bound) else { return Ok(None) };
        if let Some(nearest) = &self.nearest {
            let rows = self.nearest_rows(nearest, table, moment, options, (cut, bound, &derived))?;
            return rows.map_or(Ok(None), |rows| self.answered(rows, true, (cut, &derived)));
        }
        let asked = Asked { tests: &options.tests, overlaps: &derived.overlaps };
        let counting = if self.was_long.load(Ordering::Relaxed) { Counting::Always } else { Counting::AmongWays };
        let order = (&self.order[..], &self.reads[..]);
        let Some(path) = Path::find(table, asked, order, cut.end(), counting) else { return Ok(None) };
        let end = if self.takes_all(path.is_ordered()) { usize::MAX } else { cut.end() };
        let way = (&path.index, &path.ranges[..]);
        let found = table.index_rows(moment.view(), way, path.direction(), options, path.few(end));
        let Some(Some(found)) = there(found)? else {
            self.was_long.store(true, Ordering::Relaxed);
            return Ok(None);
        };
        let Some(found) = derived.filtered(found) else { return Ok(None) };
        self.answered(found, path.is_ordered(), (cut, &derived))
    }

    /// The answer from rows that pass; they come sorted if that is so.
    pub(super) fn answered(
        &self,
        rows: RecordBatch,
        is_sorted: bool,
        (cut, derived): (Cut, &BoundDerived<'_>),
    ) -> Result<Option<RecordBatch>> {
        let Some(rows) = derived.with_values(rows) else { return Ok(None) };
        let answer = self.answer.of_rows(&rows, &self.order, is_sorted)?;
        Ok(answer.map(|answer| match &self.answer {
            Answer::Columns { .. } | Answer::Items { .. } => cut_off(&answer, cut),
            Answer::Totals { .. } => answer,
        }))
    }
}

pub(super) fn cut_off(rows: &RecordBatch, cut: Cut) -> RecordBatch {
    if cut.offset == 0 && cut.limit.is_none_or(|limit| limit >= rows.num_rows()) {
        return rows.clone();
    }
    let offset = cut.offset.min(rows.num_rows());
    let left = rows.num_rows() - offset;
    rows.slice(offset, cut.limit.map_or(left, |limit| limit.min(left)))
}

/// A query that locks its rows.
struct Locking<'a> {
    session: &'a Session,
    table: &'a Table,
    search: &'a Search,
    /// with the ids of the rows
    options: &'a ScanOptions,
    cut: Cut,
    lock: (LockStrength, LockWait),
}

/// The rows that are locked so far.
struct Locked {
    kept: Vec<RecordBatch>,
    /// with those that are left out
    count: usize,
}

impl Locking<'_> {
    fn rows(&self, write: &mut Write<'_>) -> Result<Option<RecordBatch>> {
        let moment = write.moment()?;
        let order = (&self.search.order[..], &self.search.reads[..]);
        let asked = Asked::of(&self.options.tests);
        let Some(path) = Path::find(self.table, asked, order, self.cut.end(), Counting::Always) else {
            return Ok(None);
        };
        let mut locked = Locked { kept: Vec::new(), count: 0 };
        let is_met_in_order = path.is_ordered() || self.search.order.is_empty();
        if let ([range], true) = (&path.ranges[..], is_met_in_order) {
            let options = self.options.clone();
            let scan = self.table.index_scan(moment.view(), &path.index, range, path.direction(), options);
            let Some(scan) = there(scan)? else { return Ok(None) };
            let mut scan = scan.up_to(ENTRIES_MAX).wanting(self.cut.end());
            while locked.count < self.cut.end() {
                let Some(batch) = scan.next() else { break };
                self.lock(write, &moment, &batch?, &mut locked)?;
            }
            if scan.is_cut() && locked.count < self.cut.end() {
                return Ok(None);
            }
        } else {
            let way = (&path.index, &path.ranges[..]);
            let few = path.few(usize::MAX);
            let found = self.table.index_rows(moment.view(), way, path.direction(), self.options, few);
            let Some(Some(found)) = there(found)? else { return Ok(None) };
            self.lock(write, &moment, &sorted(&found, &self.search.order)?, &mut locked)?;
        }
        let rows = match &locked.kept[..] {
            [] => RecordBatch::new_empty(self.table.scan_schema(self.options)),
            kept => {
                concat_batches(&kept[0].schema(), kept).map_err(|error| SqlError::new("XX000", error.to_string()))?
            }
        };
        self.search.answer.of_rows(&rows, &self.search.order, true)
    }

    /// Locks rows, up to as many as are wanted.
    fn lock(&self, write: &mut Write<'_>, moment: &Moment, rows: &RecordBatch, locked: &mut Locked) -> Result<()> {
        let rids = rows.column(rows.num_columns() - 1).as_primitive::<UInt64Type>();
        let (strength, wait) = self.lock;
        for row in 0..rows.num_rows() {
            if locked.count >= self.cut.end() {
                break;
            }
            self.session.token.check()?;
            let row = match write.transaction.lock_row(self.table, rids.value(row), strength, wait, moment.view())? {
                RowLock::Locked => Some(rows.slice(row, 1)),
                RowLock::Stale => {
                    let now = write.next_moment()?;
                    let row = self.table.lookup_rids(now.view(), &[rids.value(row)], self.options)?;
                    Some(row).filter(|row| row.num_rows() > 0)
                }
                RowLock::Gone | RowLock::Skipped => None,
            };
            if let Some(row) = row {
                locked.count += 1;
                locked.kept.extend(Some(row).filter(|_| locked.count > self.cut.offset));
            }
        }
        Ok(())
    }
}
