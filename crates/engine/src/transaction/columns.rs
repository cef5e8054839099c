//! Inserting rows of a batch column by column.
//!
//! ```text
//! store   as many rows as the open range takes, a column after the other, marked as this transaction's
//! keys    where the only index is that of the primary key: new keys together, those that are neighbours or go into one leaf;
//!         else row by row
//! note    what to stamp, and the redo, column by column
//! ```
//!
//! What a row may not have is found beforehand, and told by the way of single rows.
use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use lineage::{ArrayCells, Cell, VALUE_BYTES_MAX};
use smallvec::SmallVec;
use types::{Column, Rid, StartTime};

use super::Transaction;
use super::keys::is_found;
use super::notes::neighbours;
use super::noting::REDO_BYTES_MAX;
use crate::disk::redo;
use crate::error::Result;
use crate::keys::computed::KeysOfBatch;
use crate::keys::data::Indexes;
use crate::keys::order::{IndexKey, ordered_integer};
use crate::keys::primary_key::PrimaryKey;
use crate::state::table_data::TableData;

/// Columns of a batch, and which of its rows are meant.
pub(super) struct ColumnRows<'a> {
    pub(super) columns: &'a [ArrayCells<'a>],
    pub(super) rows: Range<usize>,
}

impl<'a> ColumnRows<'a> {
    /// Whether each row may be inserted into such a table, as far as it alone says.
    pub(super) fn fit(&self, data: &TableData) -> bool {
        let mut columns = data.schema.columns().iter().zip(self.columns);
        columns.all(|(column, cells)| self.fit_column(column, cells))
    }

    fn fit_column(&self, column: &Column, cells: &ArrayCells<'_>) -> bool {
        let (longest, _) = cells.lengths(self.rows.clone());
        (column.nullable || !cells.has_null(self.rows.clone())) && longest <= VALUE_BYTES_MAX
    }

    /// The keys by which the index of a whole number knows the rows.
    fn words(&self, column: usize) -> Vec<u64> {
        let mut keys = vec![0; self.rows.len()];
        let are_words =
            self.columns[column].each_word(self.rows.clone(), |at, word| keys[at] = ordered_integer(word as i64));
        debug_assert!(are_words, "invariant 7: a key that is a whole number is stored as a word");
        keys
    }

    /// The keys of the first rows.
    fn few_keys(&self, primary_key: &PrimaryKey) -> FewKeys {
        let key = |row: usize| primary_key.key_of_row(|column| self.columns[column].get(row));
        self.rows.clone().take(KEYS_AT_ONCE).map(key).collect()
    }

    /// The bytes of their long values.
    fn long_bytes(&self) -> usize {
        let long = self.columns.iter().filter(|column| column.is_wide());
        long.map(|column| column.lengths(self.rows.clone()).1).sum()
    }

    /// The first of the rows, as many as have no more bytes in their long values, and one at least.
    fn within(self, bytes_max: usize) -> ColumnRows<'a> {
        if self.long_bytes() <= bytes_max {
            return self;
        }
        let long: Vec<_> = self.columns.iter().filter(|column| column.is_wide()).collect();
        let bytes = |row: usize| -> usize {
            long.iter().map(|column| if let Cell::Bytes(bytes) = column.get(row) { bytes.len() } else { 0 }).sum()
        };
        let mut sum = 0;
        let fit = self.rows.clone().take_while(|row| {
            sum += bytes(*row);
            sum <= bytes_max
        });
        let count = fit.count().max(1);
        self.part(0, count)
    }

    /// So many of the rows, from this one on.
    fn part(&self, from: usize, count: usize) -> ColumnRows<'a> {
        let first = self.rows.start + from;
        ColumnRows { columns: self.columns, rows: first..first + count }
    }
}

/// Keys that are worked out together: a few, as the allocator would have to clean up behind many.
const KEYS_AT_ONCE: usize = 64;

type FewKeys = SmallVec<[IndexKey; KEYS_AT_ONCE]>;

/// How the rows of a batch get their keys.
enum Keys<'k> {
    /// There is no index.
    None,
    /// The primary key is a whole number, and there is no other index.
    Words(&'k PrimaryKey, Vec<u64>),
    /// There is another primary key, and no other index.
    Primary(&'k PrimaryKey),
    /// Those that have to be worked out are.
    OfRows(KeysOfBatch),
}

impl<'k> Keys<'k> {
    fn new(data: &'k TableData, indexes: &Indexes, batch: &ColumnRows<'_>, rows: &RecordBatch) -> Keys<'k> {
        match &data.primary_key {
            None if indexes.is_empty() => Keys::None,
            Some(key) if indexes.is_empty() && key.kiss(&sync::pin()).is_some() => {
                Keys::Words(key, batch.words(key.columns[0]))
            }
            Some(key) if indexes.is_empty() => Keys::Primary(key),
            _ => Keys::OfRows(KeysOfBatch::new(indexes, rows)),
        }
    }
}

impl Transaction {
    /// Inserts rows that [`fit`](ColumnRows::fit), given once more as a batch. Where it fails, those before are inserted, and the
    /// caller takes them back.
    pub(super) fn insert_columns(
        &mut self,
        data: &Arc<TableData>,
        batch: ColumnRows<'_>,
        rows: &RecordBatch,
    ) -> Result<()> {
        debug_assert!(self.has_entered(data), "the table could go while it is written to");
        debug_assert!(batch.fit(data), "rows that do not fit are inserted one by one, which tells why");
        debug_assert_eq!(batch.rows.len(), rows.num_rows(), "the same rows twice");
        let keys = Keys::new(data, &data.indexes.all(), &batch, rows);
        let mut done = 0;
        while done < batch.rows.len() {
            self.anchor.check_memory_of(data)?;
            let left = batch.rows.start + done..batch.rows.end;
            let (first, count) = data.storage.insert_rows(batch.columns, left, self.start()?);
            debug_assert!(
                (1..=batch.rows.len() - done).contains(&count) && data.storage.contains(first),
                "invariant 3: some of {count} rows from {first:?} on are out of reach"
            );
            self.enter_stored(data, first, batch.part(done, count), (&keys, done))?;
            done += count;
        }
        Ok(())
    }

    /// Enters the keys of rows that are stored from `first` on, which begin at a place among the `keys`, and notes the rows. Those
    /// that do not get theirs become tombstones.
    fn enter_stored(
        &mut self,
        data: &Arc<TableData>,
        first: Rid,
        stored: ColumnRows<'_>,
        (keys, from): (&Keys<'_>, usize),
    ) -> Result<()> {
        let (mut entered, mut outcome, count) = (0, Ok(()), stored.rows.len());
        let (mut few, mut few_from) = (FewKeys::new(), 0);
        while entered < count && outcome.is_ok() {
            let next = Rid::base(first.range(), first.slot() + entered);
            let step = match keys {
                Keys::None => Ok(count),
                Keys::Words(key, words) => {
                    let words = &words[from + entered..from + count];
                    // Where the index has no room, the one key says so.
                    let guard = &sync::pin();
                    let together = key.kiss(guard).and_then(|index| index.insert_new(words, next).ok()).unwrap_or(0);
                    self.enter_together(data, key, together, |at| IndexKey::Word(words[at]), next)
                }
                Keys::Primary(key) => {
                    if entered == few_from + few.len() {
                        (few, few_from) = (stored.part(entered, count - entered).few_keys(key), entered);
                    }
                    let keys = &few[entered - few_from..];
                    let together = key.index.insert_new(keys, next);
                    together.and_then(|together| self.enter_together(data, key, together, |at| keys[at].clone(), next))
                }
                Keys::OfRows(keys) => {
                    let (row, columns) = (stored.rows.start + entered, stored.columns);
                    let keys = (keys, from + entered);
                    self.enter_keys(data, |column| columns[column].get(row), Some(keys), next).map(|()| 1)
                }
            };
            match step {
                Ok(step) => entered += step,
                Err(error) => outcome = Err(error),
            }
        }
        if outcome.is_err() {
            let (guard, id) = (&sync::pin(), self.id());
            let rest = (entered..count).map(|at| Rid::base(first.range(), first.slot() + at));
            rest.for_each(|rid| data.storage.stamp_insert(guard, rid, id, StartTime::TOMBSTONE));
            self.wake_waiters();
        }
        if entered > 0 {
            self.note_inserts(data, first, stored.part(0, entered))?;
        }
        outcome
    }

    /// Notes that the first of some keys have entered the primary key together, for the rows that are stored from `first` on; where
    /// none has, the first is entered alone. Returns how many are there then.
    fn enter_together(
        &mut self,
        data: &Arc<TableData>,
        primary_key: &PrimaryKey,
        together: usize,
        key: impl Fn(usize) -> IndexKey,
        first: Rid,
    ) -> Result<usize> {
        match together {
            0 => self.enter_key(data, primary_key, &key(0), first)?,
            _ => {
                let entered = || (0..together).map(&key).zip(neighbours(first, together as u32));
                primary_key.index.note_entered(first.range(), entered);
            }
        }
        debug_assert!(
            neighbours(first, together.max(1) as u32).enumerate().all(|(at, rid)| is_found(primary_key, &key(at), rid)),
            "invariant 7: a row from {first:?} on is not found by its key"
        );
        Ok(together.max(1))
    }

    /// Notes neighbouring records that were inserted.
    fn note_inserts(&mut self, data: &Arc<TableData>, first: Rid, inserted: ColumnRows<'_>) -> Result<()> {
        debug_assert!(!inserted.rows.is_empty(), "each step of the index enters a key or fails");
        self.note_stored(data, first, inserted.rows.len() as u32);
        if self.is_logged(data) && !self.put_off_redo(data, first, inserted.rows.len(), || inserted.long_bytes())? {
            self.log_rows(data, first, inserted.columns, inserted.rows)?;
        }
        Ok(())
    }

    /// Adds the insertion of rows that are stored from `first` on to the redo.
    pub(super) fn log_rows(
        &mut self,
        data: &Arc<TableData>,
        first: Rid,
        columns: &[ArrayCells<'_>],
        rows: Range<usize>,
    ) -> Result<()> {
        debug_assert!(
            rows.is_empty() || data.storage.contains(first),
            "invariant 8: {first:?} is logged and not there"
        );
        let (inserted, mut done) = (ColumnRows { columns, rows }, 0);
        while done < inserted.rows.len() {
            let part = inserted.part(done, inserted.rows.len() - done).within(REDO_BYTES_MAX);
            let rid = Rid::base(first.range(), first.slot() + done);
            done += part.rows.len();
            redo::put_insert_rows(&mut self.redo, data.id, rid, part.columns, part.rows);
            self.pass_redo_on()?;
        }
        Ok(())
    }
}
