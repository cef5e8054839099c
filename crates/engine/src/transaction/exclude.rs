//! Keys that rows have only where no other row has one in their way: exclusion constraints.
//!
//! ```text
//! EXCLUDE USING gist (room WITH =, during WITH &&)       no two rows have one room and ranges that overlap
//!
//! a writer    append the version -> [ look for others that it excludes -> enter its key ] -> ... -> commit
//!                                     one at a time for each index
//! ```
//!
//! Of two writers whose rows exclude each other, the one that enters its key later finds the other's entry, and looks at the record: a
//! committed version is a violation; one whose writer runs is waited for, or a conflict above READ COMMITTED, as with keys of unique
//! indexes (`claim.rs`). NULL excludes nothing, and an empty range only where it is to be equal.
use std::sync::Arc;

use lineage::{Cell, PageError, Writer};
use types::{Rid, Snapshot, TxnId, Value};

use super::Transaction;
use super::locks::LockAttempt;
use crate::error::{Error, Result};
use crate::keys::data::IndexData;
use crate::keys::order::IndexKey;
use crate::keys::space::Window;
use crate::state::table_data::TableData;

/// Another row that is in the way.
enum InTheWay {
    /// It is there.
    Row(Rid),
    /// It may be there, once its writer has ended; `None` if that has ended too late for this transaction's snapshot.
    Undecided(Rid, Option<TxnId>),
}

impl Transaction {
    /// Enters `rid` under its key, unless another row excludes it.
    pub(super) fn enter_excluding(
        &mut self,
        data: &Arc<TableData>,
        index: &Arc<IndexData>,
        key: &IndexKey,
        rid: Rid,
    ) -> Result<()> {
        let Some(values) = self.values_now(data, index, rid)? else { return index.enter(key, rid) };
        self.when_free(data, |transaction| {
            let found = {
                let _alone = index.excluding.lock();
                let found = transaction.in_the_way(data, index, key, (rid, &values))?;
                if found.is_none() {
                    index.enter(key, rid)?;
                }
                found
            };
            match found {
                None => Ok(LockAttempt::Done(())),
                Some(InTheWay::Row(other)) => {
                    transaction.reads().into_iter().for_each(|reads| reads.note_record(data, other));
                    Err(transaction.excluded(data, index, rid, other)?)
                }
                Some(InTheWay::Undecided(other, Some(owner))) => transaction.wait_or_lose(data, other, owner),
                Some(InTheWay::Undecided(_, None)) => Err(transaction.lose(Error::Conflict)),
            }
        })
    }

    /// The error of a row that another one excludes.
    pub(super) fn excluded(&self, data: &TableData, index: &IndexData, rid: Rid, other: Rid) -> Result<Error> {
        let (table, constraint) = (data.name.to_string(), index.definition.name.clone());
        let key = self.describe_key(data, index, rid)?;
        let existing = self.describe_key(data, index, other)?;
        Ok(Error::ExclusionViolated { table, constraint, key, existing })
    }

    /// The parts of the key that a record has in its newest version, or in that of this transaction.
    fn values_now(&self, data: &TableData, index: &IndexData, rid: Rid) -> Result<Option<Vec<Value>>> {
        let values = data.storage.read(self.newest(), rid, index.columns(), |cells| index.part_values(cells))?;
        Ok(values.flatten())
    }

    /// The first other row that excludes one with these values.
    fn in_the_way(
        &self,
        data: &TableData,
        index: &IndexData,
        key: &IndexKey,
        (rid, values): (Rid, &[Value]),
    ) -> Result<Option<InTheWay>, PageError> {
        let mut found = Vec::new();
        if let (Some(space), Some(window)) = (index.entries().space(), index.window_of_excluded(key, values)) {
            space.search(&window, &mut found);
        }
        let seen = self.transactions().view(Snapshot::of_transaction(self.newest_allowed(), self.id()));
        let excludes =
            |cells: &[Cell<'_>]| index.part_values(cells).is_some_and(|other| index.excludes(values, &other));
        for (_, other) in found.into_iter().filter(|(_, other)| *other != rid) {
            self.saw_anything();
            match data.storage.newest_writer(self.newest(), other)? {
                Writer::Running(owner) => return Ok(Some(InTheWay::Undecided(other, Some(owner)))),
                Writer::Tombstone => continue,
                Writer::Settled => {}
            }
            if data.storage.read(self.newest(), other, index.columns(), excludes)? == Some(true) {
                return Ok(Some(InTheWay::Row(other)));
            }
            // It has gone after this transaction's snapshot, which would have both.
            if data.storage.read(seen, other, index.columns(), excludes)? == Some(true) {
                return Ok(Some(InTheWay::Undecided(other, None)));
            }
        }
        Ok(None)
    }

    /// Refuses an index of which two rows exclude each other now. Rows that come while this looks have looked for others themselves.
    pub(super) fn check_excluding(&self, data: &Arc<TableData>, index: &IndexData) -> Result<()> {
        for range in 0..data.storage.range_count() {
            let slots = 0..data.storage.range_records();
            let rids = slots.map(|slot| Rid::base(range, slot)).take_while(|rid| data.storage.contains(*rid));
            for rid in rids {
                let key = |cells: &[Cell<'_>]| Some((index.keys(cells).pop()?.key, index.part_values(cells)?));
                let Some((key, values)) = data.storage.read(self.newest(), rid, index.columns(), key)?.flatten() else {
                    continue;
                };
                let mut found = Vec::new();
                if let (Some(space), Some(window)) = (index.entries().space(), index.window_of_excluded(&key, &values))
                {
                    space.search(&window, &mut found);
                }
                for (_, other) in found.into_iter().filter(|(_, other)| *other != rid) {
                    self.await_decided(data, other)?;
                    let is_other = self.values_now(data, index, other)?;
                    if is_other.is_some_and(|other| index.excludes(&values, &other)) {
                        let (table, index_name) = (data.name.to_string(), index.definition.name.clone());
                        let key = self.describe_key(data, index, rid)?;
                        let other = self.describe_key(data, index, other)?;
                        return Err(Error::KeysExcluded { table, index: index_name, key, other });
                    }
                }
            }
        }
        Ok(())
    }
}

impl IndexData {
    /// Where the keys of rows are that a row with this key may exclude; `None` if it excludes none. A key without extents, such as an empty
    /// range, stands beside the tree, as do those that equal it.
    fn window_of_excluded(&self, key: &IndexKey, values: &[Value]) -> Option<Window> {
        let dimensions = self.shape.dimensions();
        Window::around(key, dimensions).or_else(|| self.excludes(values, values).then(|| Window::all(dimensions)))
    }
}
