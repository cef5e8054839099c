//! The past of a table: the versions of one row, and what changed between two commits.
use types::{Rid, Snapshot, Timestamp, Value};

use crate::error::Result;
use crate::table::Table;

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

/// What happened to a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub enum ChangeKind {
    Insert,
    Update,
    Delete,
}

/// What one commit did to one row.
#[derive(Clone, PartialEq, Debug)]
pub struct RowChange {
    /// the commit
    pub at: Timestamp,
    /// what it did
    pub kind: ChangeKind,
    /// which record
    pub rid: Rid,
    /// the row before, `None` for an insert
    pub old: Option<Vec<Value>>,
    /// the row after, `None` for a delete
    pub new: Option<Vec<Value>>,
}

impl Table {
    /// The versions of the row with this primary key, oldest first, as far back as the table keeps them.
    pub fn record_history(&self, key: &[Value]) -> Result<Vec<RecordVersion>> {
        let transactions = &self.database.shared.core.transactions;
        let all = self.data.storage.keep_all();
        let newest = transactions.0.now();
        let Some(index_key) = self.data.key_of_values(key)? else { return Ok(Vec::new()) };
        let mut times = Vec::new();
        if let Some(primary_key) = &self.data.primary_key {
            // Every record that ever had the key; none is accepted, so all are asked about.
            let failed = primary_key.find(&sync::pin(), &index_key, |rid| {
                match self.data.storage.version_times(rid, newest, transactions) {
                    Ok(found) => times.extend(found),
                    Err(error) => return Some(error),
                }
                None
            });
            failed.map_or(Ok(()), Err)?;
        }
        // What was there at the horizon is the first version that is known.
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
            let row = row(at)?;
            let last = versions.last_mut();
            if last.as_ref().map_or(row.is_none(), |last| last.row.is_none() && row.is_none()) {
                continue;
            }
            last.into_iter().for_each(|last| last.to = Some(at));
            versions.push(RecordVersion { from: at, to: None, row });
        }
        Ok(versions)
    }

    /// What commits after `from` and not after `to` did to the rows of this table, in the order of commits.
    ///
    /// # Errors
    /// [`Error::SnapshotTooOld`](crate::Error::SnapshotTooOld) if the table's history does not reach back to `from` without a
    /// gap.
    pub fn changes(&self, from: Timestamp, to: Timestamp) -> Result<Vec<RowChange>> {
        // A snapshot that is held would keep what it sees, not what came after it.
        let _all = self.data.storage.keep_from(from).ok_or_else(|| self.too_old(from))?;
        let (storage, transactions) = (&self.data.storage, &self.database.shared.core.transactions);
        let to = to.min(transactions.0.now());
        let ranges = 0..storage.range_count();
        let mut changed = Vec::new();
        for range in ranges {
            changed.extend(storage.changed(range, from, to, transactions)?);
        }
        changed.sort_unstable();
        let columns: Vec<usize> = (0..self.schema().columns().len()).collect();
        let row = |rid, at| storage.read_values(transactions.view(Snapshot::at(at)), rid, &columns);
        let change = |changed: lineage::Changed| {
            let (at, rid) = (changed.at, changed.rid);
            let (old, new) = (row(rid, Timestamp(at.0 - 1))?, row(rid, at)?);
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
}
