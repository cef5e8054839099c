//! Inserting rows of a batch column by column.
//!
//! ```text
//! store   as many rows as the open range takes, a column after the other, marked as this transaction's
//! keys    of the primary key: neighbours among new keys together, in one step of the index; any other by itself
//! note    what to stamp, and the redo
//! ```
//!
//! For tables without another index, whose primary key, if they have one, is a whole number; rows of others are inserted one by one.
//! What a row may not have is found beforehand, and told by the way of single rows.
use std::ops::Range;
use std::sync::Arc;

use lineage::{ArrayCells, Cell, VALUE_BYTES_MAX};
use types::{Column, Rid, StartTime};

use super::Transaction;
use super::notes::neighbours;
use crate::error::Result;
use crate::keys::order::{IndexKey, ordered_integer};
use crate::state::table_data::TableData;
use crate::terms::row::Cells;

/// Columns of a batch, and which of its rows are meant.
pub(super) struct ColumnRows<'a> {
    pub(super) columns: &'a [ArrayCells<'a>],
    pub(super) rows: Range<usize>,
}

impl ColumnRows<'_> {
    /// Whether each row may be inserted into such a table, as far as it alone says.
    pub(super) fn fit(&self, data: &TableData) -> bool {
        let has_plain_key = data.primary_key.as_ref().is_none_or(|key| key.kiss().is_some());
        let mut columns = data.schema.columns().iter().zip(self.columns);
        has_plain_key && data.indexes.all().is_empty() && columns.all(|(column, cells)| self.fit_column(column, cells))
    }

    fn fit_column(&self, column: &Column, cells: &ArrayCells<'_>) -> bool {
        let is_short = |row| !matches!(cells.get(row), Cell::Bytes(bytes) if bytes.len() > VALUE_BYTES_MAX);
        (column.nullable || !cells.has_null(self.rows.clone()))
            && (!lineage::is_wide(column.data_type) || self.rows.clone().all(is_short))
    }

    /// The keys by which the index of a whole number knows the rows.
    fn keys(&self, column: usize) -> Vec<u64> {
        let mut keys = vec![0; self.rows.len()];
        let are_words =
            self.columns[column].each_word(self.rows.clone(), |at, word| keys[at] = ordered_integer(word as i64));
        debug_assert!(are_words, "invariant 7: a key that is a whole number is stored as a word");
        keys
    }
}

impl Transaction {
    /// Inserts rows that [`fit`](ColumnRows::fit). Where it fails, those before are inserted, and the caller takes them back.
    pub(super) fn insert_columns(&mut self, data: &Arc<TableData>, batch: ColumnRows<'_>) -> Result<()> {
        debug_assert!(self.has_entered(data), "the table could go while it is written to");
        debug_assert!(batch.fit(data), "rows that do not fit are inserted one by one, which tells why");
        let keys = data.primary_key.as_ref().map(|key| batch.keys(key.columns[0]));
        let mut next = batch.rows.start;
        while next < batch.rows.end {
            self.anchor.check_memory_of(data)?;
            let (first, count) = data.storage.insert_rows(batch.columns, next..batch.rows.end, self.start()?);
            debug_assert!(
                (1..=batch.rows.end - next).contains(&count) && data.storage.contains(first),
                "invariant 3: some of {count} rows from {first:?} on are out of reach"
            );
            let keys = keys.as_ref().map(|keys| &keys[next - batch.rows.start..][..count]);
            let stored = ColumnRows { columns: batch.columns, rows: next..next + count };
            self.enter_stored(data, first, &stored, keys)?;
            next += count;
        }
        Ok(())
    }

    /// Enters the keys of rows that are stored from `first` on, and notes the rows. Those that do not get theirs become tombstones.
    fn enter_stored(
        &mut self,
        data: &Arc<TableData>,
        first: Rid,
        stored: &ColumnRows<'_>,
        keys: Option<&[u64]>,
    ) -> Result<()> {
        let (mut done, count) = (0, stored.rows.len());
        debug_assert!(keys.is_none_or(|keys| keys.len() == count), "invariant 7: a key for each row");
        let rid = |at: usize| Rid::base(first.range(), first.slot() + at);
        while done < count {
            let entered = match keys {
                Some(keys) => self.enter_next(data, &keys[done..], rid(done)),
                None => Ok(count),
            };
            let noted = entered.and_then(|entered| {
                let rows = stored.rows.start + done..stored.rows.start + done + entered;
                done += entered;
                self.note_inserts(data, rid(done - entered), &ColumnRows { columns: stored.columns, rows })
            });
            if let Err(error) = noted {
                let (guard, id) = (&sync::pin(), self.id());
                let rest = (done..count).map(rid);
                rest.for_each(|rid| data.storage.stamp_insert(guard, rid, id, StartTime::TOMBSTONE));
                self.wake_waiters();
                return Err(error);
            }
        }
        Ok(())
    }

    /// Enters the first of some keys, whose rows are stored from `first` on; returns how many.
    fn enter_next(&mut self, data: &Arc<TableData>, keys: &[u64], first: Rid) -> Result<usize> {
        let Some(primary_key) = &data.primary_key else { return Ok(keys.len()) };
        // Where the index has no room, the one key says so.
        let together = primary_key.kiss().and_then(|index| index.insert_new(keys, first).ok()).unwrap_or(0);
        match together {
            0 => self.enter_key(data, primary_key, &IndexKey::Word(keys[0]), first)?,
            _ => primary_key.index.note_entered(|| {
                let entered = keys[..together].iter().map(|key| IndexKey::Word(*key));
                entered.zip(neighbours(first, together as u32))
            }),
        }
        debug_assert!(
            neighbours(first, together.max(1) as u32).zip(keys).all(|(rid, key)| {
                primary_key.find(&sync::pin(), &IndexKey::Word(*key), |known| (known == rid).then_some(())).is_some()
            }),
            "invariant 7: a row from {first:?} on is not found by its key"
        );
        Ok(together.max(1))
    }

    /// Notes neighbouring records that were inserted.
    fn note_inserts(&mut self, data: &Arc<TableData>, first: Rid, inserted: &ColumnRows<'_>) -> Result<()> {
        debug_assert!(!inserted.rows.is_empty(), "each step of the index enters a key or fails");
        self.note_stored(data, first, inserted.rows.len() as u32);
        if self.anchor.log.is_none() {
            return Ok(());
        }
        let mut cells = Cells::with_capacity(inserted.columns.len());
        for (rid, row) in neighbours(first, inserted.rows.len() as u32).zip(inserted.rows.clone()) {
            cells.clear();
            cells.extend(inserted.columns.iter().map(|column| column.get(row)));
            self.log_insert(data, rid, &cells)?;
        }
        Ok(())
    }
}
