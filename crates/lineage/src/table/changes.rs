//! What changed in a table: when a record's versions were committed, which records changed between two moments, and whether
//! what a transaction has read is as it was.
use types::{Rid, Timestamp};

use super::Table;
use crate::encoding::Test;
use crate::memory::source::PageError;
use crate::record::view::Outcomes;
use crate::scan::past::ChangedRecord;
use crate::scan::validation::Validation;
use crate::value::cell::Cell;

impl Table {
    /// When the versions of a record were committed, oldest first, up to `to`; complete from the horizon on, which
    /// [`Table::keep_from`] can stop.
    ///
    /// # Errors
    /// [`PageError`] if an evicted page that it takes cannot be read back.
    pub fn version_times<O: Outcomes>(
        &self,
        rid: Rid,
        to: Timestamp,
        outcomes: &O,
    ) -> Result<Vec<Timestamp>, PageError> {
        self.range(rid.range()).version_times(&sync::pin(), rid.slot(), to, outcomes)
    }

    /// Which records of a range were inserted, updated or deleted by commits after `from` and not after `to`; ordered by
    /// commit, then by slot. Complete from the horizon on, which [`Table::keep_from`] can stop.
    ///
    /// # Errors
    /// [`PageError`] if an evicted page that it takes cannot be read back.
    pub fn changed<O: Outcomes>(
        &self,
        index: usize,
        from: Timestamp,
        to: Timestamp,
        outcomes: &O,
    ) -> Result<Vec<ChangedRecord>, PageError> {
        self.range(index).changed(index, from, to, outcomes)
    }

    /// Passes on what those records of a range that are wanted were at each moment between `from` and `to`, both included, at which
    /// one changed: record by record, from the newest moment back, `None` where there was no record. Complete from the horizon on,
    /// which [`Table::keep_from`] can stop.
    ///
    /// # Errors
    /// [`PageError`] if an evicted page that it takes cannot be read back.
    pub fn for_each_moment<O: Outcomes>(
        &self,
        index: usize,
        columns: &[usize],
        between: (Timestamp, Timestamp),
        outcomes: &O,
        is_wanted: impl Fn(Rid) -> bool,
        visit: impl FnMut(ChangedRecord, Option<&[Cell<'_>]>),
    ) -> Result<(), PageError> {
        self.range(index).for_each_moment(index, columns, between, outcomes, is_wanted, visit)
    }

    /// Whether another transaction than the one that asks has changed (inserted, updated, deleted) a record by a commit
    /// after `asked.from` and not after `asked.to`. See the `validation` module.
    ///
    /// # Errors
    /// [`PageError`] if an evicted page that it takes cannot be read back.
    pub fn changed_between<O: Outcomes>(&self, rid: Rid, asked: Validation<'_, O>) -> Result<bool, PageError> {
        self.range(rid.range()).changed_between(&sync::pin(), rid.slot(), asked)
    }

    /// When the version of a record was committed that others than the asking transaction had made at `asked.to`;
    /// no later than `asked.from` if that is not known any more.
    ///
    /// # Errors
    /// [`PageError`] if an evicted page that it takes cannot be read back.
    pub fn newest_change<O: Outcomes>(&self, rid: Rid, asked: Validation<'_, O>) -> Result<Timestamp, PageError> {
        self.range(rid.range()).newest_change(&sync::pin(), rid.slot(), asked)
    }

    /// Whether such a commit has changed a record of range `index` that passed all of `tests` at `asked.from` or does so at
    /// `asked.to`; no tests are passed by every record. With `columns`, only if its two images differ in these or in the
    /// columns of the tests.
    ///
    /// # Errors
    /// [`PageError`] if an evicted page that it takes cannot be read back.
    pub fn range_changed_between<O: Outcomes>(
        &self,
        index: usize,
        asked: Validation<'_, O>,
        tests: &[(usize, Test)],
        columns: Option<&[usize]>,
    ) -> Result<bool, PageError> {
        self.range(index).range_changed_between(asked, tests, columns)
    }
}
