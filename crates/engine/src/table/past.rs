//! The past of a table: the versions of one row, and what changed between two commits.
//!
//! Both are there for one set of rows ([`Table`]), and for a name, whatever sets of rows it has meant
//! ([`Database`](crate::Database)): where a table was emptied, or dropped and made again, its rows were deleted by that commit,
//! and where a table came from another name in the place of one, its rows were inserted. Replaying the changes of a name gives
//! what the name means.
//!
//! The changes of one commit are in an order in which they can be replayed one by one onto a table with the same key
//! (`change_order.rs`).
use types::{Rid, Snapshot, Timestamp, Value};

use crate::error::Result;
use crate::table::Table;
use crate::table::change_order::{ChangeKind, RowChange, in_order};

/// What to do where there is no past.
const NO_PAST: &str = "It is updated in place and keeps no history; use a table of another layout.";

/// One version of the row that a key names.
#[derive(Clone, PartialEq, Debug)]
pub struct RecordVersion {
    /// the commit that made it
    pub from: Timestamp,
    /// the commit that ended it, `None` for the newest
    pub to: Option<Timestamp>,
    /// the row, `None` where there was none with this key
    pub row: Option<Vec<Value>>,
}

impl Table {
    /// The versions of the row with this primary key, oldest first, as far back as the table keeps them.
    ///
    /// # Errors
    /// [`Error::NoPrimaryKey`](crate::Error::NoPrimaryKey), [`Error::WrongWidth`](crate::Error::WrongWidth) or
    /// [`Error::BadValue`](crate::Error::BadValue) if the table has no such key; [`Error::Page`](crate::Error::Page) if an
    /// evicted page cannot be read back.
    pub fn record_history(&self, key: &[Value]) -> Result<Vec<RecordVersion>> {
        self.data.check_no_array("the history of a row", NO_PAST)?;
        let transactions = &self.database.shared.core.transactions;
        let all = self.data.storage.keep_all();
        let newest = transactions.0.now();
        let Some(index_key) = self.data.key_of_values(key)? else { return Ok(Vec::new()) };
        let mut times = Vec::new();
        self.data.fill_primary_key()?;
        if let Some(primary_key) = &self.data.primary_key {
            // Every record that ever had the key; none is accepted, so all are asked about.
            let failed = primary_key.find(&sync::pin(), &index_key, |rid| {
                match self.data.storage.version_times(rid, newest, transactions) {
                    Ok(found) => times.extend(found),
                    Err(error) => return Some(error),
                }
                None
            });
            failed?.map_or(Ok(()), Err)?;
        }
        // The version at the horizon is the first that is known.
        times.iter_mut().for_each(|at| *at = all.from().max(*at));
        times.retain(|at| *at <= newest);
        times.sort_unstable();
        times.dedup();
        let columns: Vec<usize> = (0..self.schema().columns().len()).collect();
        let row = |at: Timestamp| {
            let view = transactions.view(Snapshot::at(at));
            self.data.read(view, &index_key, &columns, |_, cells| self.values_of(&columns, cells))
        };
        let mut versions: Vec<RecordVersion> = Vec::new();
        for at in times {
            push_version(&mut versions, at, row(at)?);
        }
        debug_assert!(follow_one_another(&versions), "invariant 3: {versions:?}");
        Ok(versions)
    }

    /// The changes that commits after `from` and not after `to` made to the rows of this table, in the order of
    /// commits, and those of one commit in an order in which they can be replayed.
    ///
    /// # Errors
    /// [`Error::SnapshotTooOld`](crate::Error::SnapshotTooOld) if the table's history does not reach back to `from` without a gap.
    pub fn changes(&self, from: Timestamp, to: Timestamp) -> Result<Vec<RowChange>> {
        // A snapshot that is held would keep what it sees, not what came after it.
        let _all = self.data.storage.keep_from(from).ok_or_else(|| self.too_old(from))?;
        Ok(in_order(self, self.changes_kept(from, to)?))
    }

    /// The changes of commits, in no order within a commit; all since `from` is kept meanwhile.
    pub(crate) fn changes_kept(&self, from: Timestamp, to: Timestamp) -> Result<Vec<RowChange>> {
        self.data.check_no_array("a list of changes", NO_PAST)?;
        let (storage, transactions) = (&self.data.storage, &self.database.shared.core.transactions);
        let to = to.min(transactions.0.now());
        let ranges = 0..storage.range_count();
        let mut changed = Vec::new();
        for range in ranges {
            changed.extend(storage.changed(range, from, to, transactions)?);
        }
        changed.sort_unstable();
        debug_assert!(
            changed.iter().all(|changed| from < changed.at && changed.at <= to),
            "invariant 4: changes outside of {from:?} and {to:?}"
        );
        let change = |changed: lineage::ChangedRecord| {
            let (at, rid) = (changed.at, changed.rid);
            let (old, new) = (self.row_at(rid, Timestamp(at.0 - 1))?, self.row_at(rid, at)?);
            let kind = match (&old, &new) {
                (None, Some(_)) => ChangeKind::Insert,
                (Some(_), Some(_)) => ChangeKind::Update,
                (Some(_), None) => ChangeKind::Delete,
                // Inserted and deleted by one transaction.
                (None, None) => return Ok(None),
            };
            Ok(Some(RowChange { at, kind, rid, old, new }))
        };
        changed.into_iter().filter_map(|changed| change(changed).transpose()).collect()
    }

    fn row_at(&self, rid: Rid, at: Timestamp) -> Result<Option<Vec<Value>>> {
        let columns: Vec<usize> = (0..self.schema().columns().len()).collect();
        let view = self.database.shared.core.transactions.view(Snapshot::at(at));
        Ok(self.data.storage.read_values(view, rid, &columns)?)
    }

    /// Adds a change of every row that was there as of `seen`: all of them came, or went, by the commit `at`.
    pub(crate) fn change_all(
        &self,
        seen: Timestamp,
        at: Timestamp,
        kind: ChangeKind,
        changes: &mut Vec<RowChange>,
    ) -> Result<()> {
        for range in 0..self.data.storage.range_count() {
            let slots = (0..self.data.storage.range_records()).map(|slot| Rid::base(range, slot));
            for rid in slots.take_while(|rid| self.data.storage.contains(*rid)) {
                let Some(row) = self.row_at(rid, seen)? else { continue };
                debug_assert_ne!(kind, ChangeKind::Update, "rows come or go together");
                let (old, new) = match kind {
                    ChangeKind::Delete => (Some(row), None),
                    ChangeKind::Insert | ChangeKind::Update => (None, Some(row)),
                };
                changes.push(RowChange { at, kind, rid, old, new });
            }
        }
        Ok(())
    }

    /// Whether rows of the other table are like those of this one.
    pub(crate) fn has_columns_of(&self, other: &Table) -> bool {
        let [own, others] = [self, other].map(|table| table.schema().columns());
        own.len() == others.len()
            && own.iter().zip(others).all(|(own, other)| (&own.name, own.data_type) == (&other.name, other.data_type))
    }
}

/// Whether each version begins where the one before it ends.
pub(crate) fn follow_one_another(versions: &[RecordVersion]) -> bool {
    versions.windows(2).all(|pair| pair[0].from < pair[1].from && pair[0].to == Some(pair[1].from))
}

/// Adds a version to those before it.
pub(crate) fn push_version(versions: &mut Vec<RecordVersion>, from: Timestamp, row: Option<Vec<Value>>) {
    let last = versions.last_mut();
    if last.as_ref().map_or(row.is_none(), |last| last.row.is_none() && row.is_none()) {
        return;
    }
    if let Some(last) = last {
        debug_assert!(last.from <= from, "invariant 3: {from:?} comes after {:?}", last.from);
        last.to = Some(from);
        if last.from == from {
            versions.pop();
        }
    }
    versions.push(RecordVersion { from, to: None, row });
}
