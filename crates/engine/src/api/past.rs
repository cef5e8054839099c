//! The past of a name: the versions of one row, and what changed between two commits, whatever sets of rows it has meant.
use types::{Timestamp, Value};

use crate::database::handle::Database;
use crate::error::{Error, Result};
use crate::state::catalog::{Chapter, Chapters};
use crate::table::Table;
use crate::table::change_order::{ChangeKind, RowChange, in_order};
use crate::table::past::{RecordVersion, follow_one_another, push_version};

impl Chapter {
    /// The commit after which what happened to the table belongs to it.
    fn begin(&self) -> Timestamp {
        match self.came_with_rows {
            true => self.from,
            false => Timestamp(self.from.0.saturating_sub(1)),
        }
    }

    /// Adds what commits after `from` and not after `to` did to the table under the name.
    fn changes(&self, table: &Table, from: Timestamp, to: Timestamp, changes: &mut Vec<RowChange>) -> Result<()> {
        debug_assert!(
            self.to.is_none_or(|to| self.from < to),
            "a chapter ends by {:?}, begins by {:?}",
            self.to,
            self.from
        );
        let first = from.max(self.begin());
        let last = self.to.map_or(to, |end| to.min(Timestamp(end.0 - 1)));
        let needed = if self.came_with_rows { first.min(self.from) } else { first };
        let _all = table.data.storage.keep_from(needed).ok_or_else(|| table.too_old(needed))?;
        if let Some(end) = self.to.filter(|end| *end <= to) {
            table.change_all(Timestamp(end.0 - 1), end, ChangeKind::Delete, changes)?;
        }
        if first < last {
            changes.extend(table.changes_kept(first, last)?);
        }
        if self.came_with_rows && from < self.from {
            table.change_all(self.from, self.from, ChangeKind::Insert, changes)?;
        }
        Ok(())
    }
}

impl Database {
    fn chapters(&self, name: &str, at: Timestamp) -> Chapters {
        let core = &self.shared.core;
        core.catalog.chapters(&core.transactions, name, at)
    }

    /// The changes that commits after `from` and not after `to` made to the rows of a name's tables, as of the
    /// commit `at` and before it; in the order of commits, and those of one commit in an order in which they can be
    /// replayed. `table` is the present meaning of the name.
    ///
    /// # Errors
    /// [`Error::SnapshotTooOld`] or [`Error::NameTooOld`] if the history of a table, or of the name, does not reach back to
    /// `from` without a gap; [`Error::OtherColumns`] if the name meant a table with other columns meanwhile.
    pub fn changes(
        &self,
        name: &str,
        table: &Table,
        at: Timestamp,
        (from, to): (Timestamp, Timestamp),
    ) -> Result<Vec<RowChange>> {
        let (Chapters { tables, known_from }, to) = (self.chapters(name, at), to.min(at));
        let mut changes = Vec::new();
        let reaches_back = |chapter: &Chapter| chapter.from <= from;
        if from < known_from && !tables.iter().any(reaches_back) {
            return Err(Error::NameTooOld { name: name.into(), at: from.0, oldest: known_from.0 });
        }
        let is_asked = |chapter: &&Chapter| chapter.from <= to && chapter.to.is_none_or(|end| from < end);
        for chapter in tables.iter().filter(is_asked) {
            let rows = Table::of(self.clone(), chapter.table.clone());
            if !rows.has_columns_of(table) {
                let end = chapter.to.unwrap_or(chapter.from);
                return Err(Error::OtherColumns { name: name.into(), at: end.0 });
            }
            chapter.changes(&rows, from, to, &mut changes)?;
        }
        changes.sort_by_key(|change| change.at);
        debug_assert!(
            changes.iter().all(|change| from < change.at && change.at <= to),
            "invariant 4: changes outside of {from:?} and {to:?}"
        );
        Ok(in_order(table, changes))
    }

    /// The versions of the row with this primary key of what a name meant, as of the commit `at` and before it, oldest first, as
    /// far back as that is kept. `table` is what it means.
    ///
    /// # Errors
    /// As [`Table::record_history`].
    pub fn record_history(
        &self,
        name: &str,
        table: &Table,
        at: Timestamp,
        key: &[Value],
    ) -> Result<Vec<RecordVersion>> {
        let Chapters { tables, known_from } = self.chapters(name, at);
        let tables: Vec<(Chapter, Table)> = tables
            .into_iter()
            .map(|chapter| {
                let rows = Table::of(self.clone(), chapter.table.clone());
                (chapter, rows)
            })
            .take_while(|(_, rows)| {
                rows.has_columns_of(table) && rows.schema().primary_key() == table.schema().primary_key()
            })
            .collect();
        let mut versions: Vec<RecordVersion> = Vec::new();
        if let Some((oldest, _)) = tables.last().filter(|_| known_from > Timestamp::ZERO) {
            // The rows before are not known; that there was no row then is.
            versions.push(RecordVersion { from: oldest.from, to: None, row: None });
        }
        for (chapter, rows) in tables.iter().rev() {
            for version in rows.record_history(key)? {
                let ended = |end: Timestamp| version.to.is_some_and(|to| to <= end);
                if chapter.to.is_some_and(|end| end <= version.from) || ended(chapter.from) {
                    continue;
                }
                push_version(&mut versions, version.from.max(chapter.from), version.row);
            }
            chapter.to.into_iter().for_each(|end| push_version(&mut versions, end, None));
        }
        debug_assert!(follow_one_another(&versions), "invariant 3: {versions:?}");
        Ok(versions)
    }
}
