//! The reads of a serializable transaction, and whether it would read the same at its commit.
//!
//! Validation is backward and optimistic (Kung and Robinson; Larson et al., VLDB 2011, section 3.2; the model that L-Store
//! relies on, section 5 of its paper). The transaction reads one snapshot. When it has its commit timestamp, everything that
//! it read is looked at again, as of just before that timestamp:
//!
//! - a *record*: has another transaction changed it since the snapshot?
//! - a *key* without a record: has one appeared?
//! - a *table*, or the name of one: has it been dropped, replaced, or given to another?
//! - *entries* of an index: has a record come into their range, left it, or changed within it?
//! - a *predicate*, the tests of a scan: has a row that passes them come, gone or changed? So there are no phantoms.
//!
//! If nothing has changed, the transaction might as well have done all its reads at its commit timestamp, where its writes
//! happen: it takes effect at one point in time, and these points are the order of commits. A transaction that wrote nothing
//! takes effect at its snapshot and need not be looked at.
//!
//! Two transactions that read what the other writes have different timestamps; the later one finds the earlier
//! one's write. The earlier one may itself be validating still: then the later one waits until that is decided.
//! Waiting goes from later to earlier timestamps only, so never in a circle.
use std::sync::Arc;

use lineage::{Test, Validation, View};
use parking_lot::Mutex;
use smallvec::SmallVec;
use types::{Rid, Snapshot, Timestamp, TxnId};

use crate::error::{Error, Result};
use crate::keys::data::IndexData;
use crate::keys::order::IndexKey;
use crate::keys::space::Asked;
use crate::state::catalog::has_gone_between;
use crate::state::core::Core;
use crate::state::table_data::TableData;
use crate::terms::outcomes::Transactions;
use crate::terms::table_lock::Standing;
use crate::terms::table_name::TableId;

/// More single records than this are read as "any row of their table".
const RECORDS_MAX: usize = 1 << 16;

/// The reads of a transaction.
#[derive(Default)]
pub(crate) struct ReadSet {
    reads: Mutex<Vec<Read>>,
    /// Names of tables, with what they meant.
    names: Mutex<Vec<(String, Option<TableId>)>>,
}

struct Read {
    table: Arc<TableData>,
    what: What,
}

enum What {
    Record(Rid),
    /// Records that were read together.
    Records(SmallVec<[Rid; 8]>),
    /// No record had the key.
    Key(IndexKey),
    /// The rows of a range of an index.
    Entries(Arc<IndexData>, Asked),
    /// Every row that passes these tests, with some columns or all.
    Rows {
        tests: Vec<(usize, Test)>,
        columns: Option<Vec<usize>>,
    },
}

impl ReadSet {
    /// Notes that a key was looked up, and the record that had it.
    pub(crate) fn note_key(&self, table: &Arc<TableData>, key: IndexKey, found: Option<Rid>) {
        self.note(table, found.map_or(What::Key(key), What::Record));
    }

    /// Notes that a record was read.
    pub(crate) fn note_record(&self, table: &Arc<TableData>, rid: Rid) {
        debug_assert!(table.storage.contains(rid), "invariant 4: {rid:?} was read and is no record");
        self.note(table, What::Record(rid));
    }

    /// Notes that records were read together.
    pub(crate) fn note_records(&self, table: &Arc<TableData>, rids: impl Iterator<Item = Rid>) {
        let rids: SmallVec<[Rid; 8]> = rids.collect();
        debug_assert!(rids.iter().all(|rid| table.storage.contains(*rid)), "invariant 4: what is no record was read");
        if !rids.is_empty() {
            self.note(table, What::Records(rids));
        }
    }

    /// Notes that the rows of a range of an index were read.
    pub(crate) fn note_entries(&self, table: &Arc<TableData>, index: &Arc<IndexData>, bounds: &Asked) {
        self.note(table, What::Entries(index.clone(), bounds.clone()));
    }

    /// Notes that `columns` of all rows were read that pass `tests`.
    pub(crate) fn note_rows(&self, table: &Arc<TableData>, tests: &[(usize, Test)], columns: &[usize]) {
        // Keys of another table are no condition on this one: a row is read whether it has a partner there or not.
        let is_lasting = |test: &&(usize, Test)| !matches!(test.1, Test::Among(_));
        let tests: Vec<(usize, Test)> = tests.iter().filter(is_lasting).cloned().collect();
        self.note(table, What::Rows { tests, columns: Some(columns.to_vec()) });
    }

    fn note(&self, table: &Arc<TableData>, what: What) {
        let mut reads = self.reads.lock();
        if reads.len() >= RECORDS_MAX {
            coarsen(&mut reads);
        }
        let is_covered = |read: &Read| Arc::ptr_eq(&read.table, table) && read.what.is_everything();
        // A read that covers a whole table is at the front, once there are so many reads that it pays to look.
        if reads.first().is_none_or(|first| !first.what.is_everything()) || !reads.iter().take(8).any(is_covered) {
            reads.push(Read { table: table.clone(), what });
        }
        debug_assert!(reads.len() <= RECORDS_MAX, "{} reads are noted", reads.len());
    }

    /// Notes what the name of a table meant.
    pub(crate) fn note_name(&self, name: &str, table: Option<TableId>) {
        let mut names = self.names.lock();
        if !names.iter().any(|(known, _)| known == name) {
            names.push((name.into(), table));
        }
    }

    /// Whether nothing was read.
    pub(crate) fn is_empty(&self) -> bool {
        self.reads.lock().is_empty() && self.names.lock().is_empty()
    }

    /// Whether a transaction with the snapshot `from` would read the same just before it commits at `at`.
    ///
    /// # Errors
    /// [`Error::ReadChanged`] if it would not.
    pub(crate) fn validate(&self, core: &Core, from: Timestamp, at: Timestamp, own: TxnId) -> Result<()> {
        let transactions = &core.transactions;
        debug_assert!(from < at, "invariant 4: a commit at {at:?} of a transaction that reads {from:?}");
        let to = Timestamp(at.0 - 1);
        if to <= from {
            return Ok(());
        }
        let asked = Validation { from, to, own, outcomes: transactions };
        let (reads, mut held) = (self.reads.lock(), None);
        let mut has_changed = |read: &Read| -> Result<bool> {
            if let Some(array) = &read.table.array {
                // A commit that is about to change it has its latch; whether it comes before this one is not known. Where this transaction
                // has the table for itself, nobody has changed it since it was first looked at.
                let is_own = read.table.lock.standing() == Standing::Locked(own);
                let has_changed = !is_own && array.newest_if_free().is_none_or(|newest| newest > from);
                return Ok(has_changed || has_gone_between(transactions, &read.table, from, to, own));
            }
            if !read.is_untouched_since(from) {
                // Versions between the two are given up while their end is not held: what came after the snapshot must not be
                // forgotten because more came after it. Where it was already, nothing is known, which is as bad.
                if held.is_none() {
                    held = Some(transactions.0.begin_at(to).map_err(|error| Error::TooManyTransactions(error.limit))?);
                }
                if !read.table.storage.keeps(to) || read.what.has_changed(&read.table, asked)? {
                    return Ok(true);
                }
            }
            Ok(has_gone_between(transactions, &read.table, from, to, own))
        };
        let mut changed = reads.iter().map(&mut has_changed).find(|changed| !matches!(changed, Ok(false)));
        if changed.is_none() && self.has_renamed(core, to) {
            changed = Some(Ok(true));
        }
        if let Some(held) = held {
            transactions.0.release(held);
        }
        changed.transpose()?.map_or(Ok(()), |_| Err(Error::ReadChanged))
    }
}

impl ReadSet {
    /// Whether a name means something else at `to` than it did.
    fn has_renamed(&self, core: &Core, to: Timestamp) -> bool {
        let meaning = |name| core.catalog.find(&core.transactions, Snapshot::at(to), name).map(|table| table.id);
        self.names.lock().iter().any(|(name, table)| meaning(name) != *table)
    }
}

impl Read {
    /// Whether a look tells that nobody has changed what was read since then: whatever others commit before this transaction does
    /// is there already, as they have written it before they took their timestamps. False also where more is to be asked.
    fn is_untouched_since(&self, from: Timestamp) -> bool {
        let rids = match &self.what {
            What::Record(rid) => std::slice::from_ref(rid),
            What::Records(rids) => rids,
            What::Key(_) | What::Entries(..) | What::Rows { .. } => return false,
        };
        let guard = &sync::pin();
        let points = self.table.storage.points(guard);
        rids.iter().all(|rid| points.at(*rid).is_untouched_since(guard, from))
    }
}

impl What {
    /// Whether it would be read differently now.
    fn has_changed(&self, table: &TableData, asked: Validation<'_, Transactions>) -> Result<bool> {
        let storage = &table.storage;
        Ok(match self {
            What::Record(rid) => storage.changed_between(*rid, asked)?,
            What::Records(rids) => {
                let changed = |rid: &Rid| storage.changed_between(*rid, asked);
                rids.iter().map(changed).find(|changed| !matches!(changed, Ok(false))).transpose()?.is_some()
            }
            // What the transaction itself has taken away is there for others, and has not changed.
            What::Key(key) => {
                match table.find(View { snapshot: Snapshot::at(asked.to), outcomes: asked.outcomes }, key)? {
                    Some(rid) => storage.changed_between(rid, asked)?,
                    None => false,
                }
            }
            What::Entries(index, bounds) => index.has_changed(table, bounds, asked)?,
            What::Rows { tests, columns } => {
                let changed = |range| storage.range_changed_between(range, asked, tests, columns.as_deref());
                let found = (0..storage.range_count()).map(changed).find(|changed| !matches!(changed, Ok(false)));
                found.transpose()?.is_some()
            }
        })
    }

    fn is_everything(&self) -> bool {
        matches!(self, What::Rows { tests, columns: None } if tests.is_empty())
    }
}

/// Puts "any row" in place of all reads, for each of their tables.
fn coarsen(reads: &mut Vec<Read>) {
    let mut tables: Vec<Arc<TableData>> = Vec::new();
    let read_count = reads.len();
    for read in reads.drain(..) {
        if !tables.iter().any(|known| Arc::ptr_eq(known, &read.table)) {
            tables.push(read.table);
        }
    }
    reads.extend(tables.into_iter().map(|table| Read { table, what: What::Rows { tests: Vec::new(), columns: None } }));
    debug_assert!(
        reads.len() <= read_count && reads.iter().all(|read| read.what.is_everything()),
        "invariant 4: a read would be forgotten"
    );
}
