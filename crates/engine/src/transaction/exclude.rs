//! Keys that rows have only where no other row has one in their way: exclusion constraints.
//!
//! ```text
//! EXCLUDE USING gist (room WITH =, during WITH &&)       no two rows have one room and ranges that overlap
//! EXCLUDE ... DEFERRABLE                                 the look comes when all is written, as with keys (`references/keyed.rs`)
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
use crate::keys::definition::Exclusion;
use crate::keys::extents::dimensions;
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
            transaction.heed(data, index, rid, found)
        })
    }

    /// Looks whether a row is in no other's way with the key that it has by now, of a constraint that was put off. Its key is entered: of
    /// two writers whose rows exclude each other, the one that looks later finds the other's.
    pub(super) fn settle_excluding(&mut self, data: &Arc<TableData>, index: &Arc<IndexData>, rid: Rid) -> Result<()> {
        debug_assert!(index.definition.deferral.is_some(), "other rows are looked for when a key is entered");
        let key = |cells: &[Cell<'_>]| Some((index.keys(cells).pop()?.key, index.part_values(cells)?));
        let known = data.storage.read(self.newest(), rid, index.columns(), key)?.flatten();
        let Some((key, values)) = known else { return Ok(()) };
        self.when_free(data, |transaction| {
            let found = transaction.in_the_way(data, index, &key, (rid, &values))?;
            transaction.heed(data, index, rid, found)
        })
    }

    /// Goes on, fails or waits, as another row asks for that was found in the way of one.
    fn heed(
        &mut self,
        data: &Arc<TableData>,
        index: &IndexData,
        rid: Rid,
        found: Option<InTheWay>,
    ) -> Result<LockAttempt<()>> {
        match found {
            None => Ok(LockAttempt::Done(())),
            Some(InTheWay::Row(other)) => {
                self.reads().into_iter().for_each(|reads| reads.note_record(data, other));
                Err(self.excluded(data, index, rid, other)?)
            }
            Some(InTheWay::Undecided(other, Some(owner))) => self.wait_or_lose(data, other, owner),
            Some(InTheWay::Undecided(_, None)) => Err(self.lose(Error::Conflict)),
        }
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
        let exclusion = &self.definition.exclusion;
        let asks_near = exclusion.iter().all(|of| matches!(of, Exclusion::Equal | Exclusion::Overlapping));
        let around = Window::around(key, dimensions);
        if asks_near {
            return around.or_else(|| self.excludes(values, values).then(|| Window::all(dimensions)));
        }
        if values.iter().any(Value::is_null) {
            return None;
        }
        let Some(Window::Extents { mut low, mut high, .. }) = around else { return Some(Window::all(dimensions)) };
        let mut at = 0;
        for (of, dimensions) in exclusion.iter().zip(self.dimensions()) {
            let (low, high) = (&mut low[at..at + dimensions], &mut high[at..at + dimensions]);
            match of {
                Exclusion::Equal | Exclusion::Overlapping => {}
                // Ranges of whole numbers that follow one another are one apart at the most.
                Exclusion::Adjacent => {
                    low.iter_mut().for_each(|end| *end -= 1.0);
                    high.iter_mut().for_each(|end| *end += 1.0);
                }
                Exclusion::Different => {
                    low.fill(f64::NEG_INFINITY);
                    high.fill(f64::INFINITY);
                }
            }
            at += dimensions;
        }
        // A range that is empty has no extent, and differs from all others.
        let takes_others = exclusion.contains(&Exclusion::Different);
        Some(Window::Extents { low, high, takes_others })
    }

    /// How many dimensions each part of a key has.
    fn dimensions(&self) -> impl Iterator<Item = usize> {
        dimensions(self.key_columns.iter().map(|column| column.data_type)).into_iter()
    }
}
