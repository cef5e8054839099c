//! Few rows as they were committed last, found by a whole number and read as words: no transaction is begun, and nothing is kept but the
//! snapshot, for as long as the read takes.
//!
//! ```text
//! the snapshot is held ──▶ the table still has its name ──▶ the key's record ──▶ its words
//!                                                       ──▶ records side by side (`key_runs`) ──▶ their words
//! ```
use lineage::{PointColumns, WordRows, put_value_of_word};
use smallvec::SmallVec;
use txn::{Handle, TransactionTable};
use types::{DataType, Snapshot, Timestamp, Value};

use crate::database::handle::Database;
use crate::error::{Error, Result};
use crate::keys::order::ordered_integer;
use crate::state::core::Core;
use crate::state::table_data::TableData;
use crate::table::Table;
use crate::table::read_view::Sight;
use crate::table::seen::SeenTables;

/// A row of at most so many columns has its words on the stack.
const FEW_COLUMNS: usize = 16;

/// Columns of a table that are read together, of rows that are found by a primary key of one whole number. Words are as those of
/// [`PointAccess`](crate::PointAccess). It is of one table, and does not hold it.
#[derive(Clone, Debug)]
pub struct WordsRead {
    columns: PointColumns,
    /// where the key is among the columns
    key_place: Option<usize>,
    types: Box<[DataType]>,
    table: u32,
}

impl WordsRead {
    /// Puts the values of a row's words, of which these are NULL, into the places of others.
    #[inline]
    fn put_values(&self, words: &[u64], nulls: u64, row: &mut Vec<Value>) {
        debug_assert_eq!(words.len(), self.types.len(), "a word for each column");
        row.resize(words.len(), Value::Null);
        for (at, ((word, data_type), value)) in words.iter().zip(&self.types).zip(row).enumerate() {
            match nulls >> at & 1 {
                0 => put_value_of_word(*word, *data_type, value),
                _ => *value = Value::Null,
            }
        }
    }
}

impl Table {
    /// Prepares reads of some columns, by their positions; `None` where rows or values are not of the kind that
    /// [`point_access`](Table::point_access) is for.
    ///
    /// # Errors
    /// [`Error::NoSuchColumn`] if the table has fewer columns.
    pub fn words_read(&self, columns: &[usize]) -> Result<Option<WordsRead>> {
        let Some(access) = self.point_access(columns)? else { return Ok(None) };
        let types = columns.iter().map(|column| self.schema().columns()[*column].data_type).collect();
        Ok(Some(WordsRead { columns: access.columns, key_place: access.key_place, types, table: self.id() }))
    }
}

impl Database {
    /// Puts the values of the row that has a key in the table of this name, as it was committed last, into `row`, in place of those that
    /// are there; whether there is such a row. `None` where [`Table::lookup_values`] is to be asked instead: the key had another record
    /// before, the table's rows have changed their keys, or the caller has not found the table by its name before, or another one.
    ///
    /// # Errors
    /// [`Error::TooManyTransactions`] and [`Error::Page`] as [`Table::lookup_values`].
    pub fn newest_values(
        &self,
        seen: &SeenTables,
        name: &str,
        read: &WordsRead,
        key: i64,
        row: &mut Vec<Value>,
    ) -> Result<Option<bool>> {
        let core = &self.shared.core;
        let held = HeldSlot::now(&core.transactions.0)?;
        let Some(place) = seen.find(&self.shared, held.snapshot(), name) else { return Ok(None) };
        let table = seen.at(place);
        if table.id() != read.table {
            return Ok(None);
        }
        let mut words: SmallVec<[u64; FEW_COLUMNS]> = SmallVec::from_elem(0, read.types.len());
        let found = held.row(core, &table.data, (&read.columns, read.key_place), key, &mut words)?;
        if let Some(Some(nulls)) = found {
            read.put_values(&words, nulls, row);
        }
        Ok(found.map(|nulls| nulls.is_some()))
    }

    /// As [`Table::words_between`], of the rows that were committed last in the table of this name, if that has this
    /// [number](Table::id): false also where the caller has not found it by its name before.
    ///
    /// # Errors
    /// As [`Table::words_between`], and [`Error::TooManyTransactions`].
    pub fn newest_words_between(
        &self,
        seen: &SeenTables,
        (name, id): (&str, u32),
        between: (usize, i64, i64),
        columns: &[usize],
        rows: &mut WordRows,
    ) -> Result<bool> {
        let held = HeldSlot::now(&self.shared.core.transactions.0)?;
        match seen.find(&self.shared, held.snapshot(), name).map(|place| seen.at(place)) {
            Some(table) if table.id() == id => {
                table.words_between(Sight::held(held.snapshot()), between, columns, rows)
            }
            _ => Ok(false),
        }
    }
}

/// A place in the transaction table for the sake of a snapshot, given up with this.
pub(super) struct HeldSlot<'t> {
    table: &'t TransactionTable,
    /// `None` once it was given up
    handle: Option<Handle>,
    at: Timestamp,
}

impl<'t> HeldSlot<'t> {
    /// Holds the snapshot of everything committed so far.
    #[inline]
    pub(super) fn now(table: &'t TransactionTable) -> Result<HeldSlot<'t>> {
        let (handle, at) = table.begin().map_err(|error| Error::TooManyTransactions(error.limit))?;
        Ok(HeldSlot { table, handle: Some(handle), at })
    }

    #[inline]
    pub(super) fn snapshot(&self) -> Snapshot {
        Snapshot::at(self.at)
    }

    /// Puts the words of the row of a key of a table that has its name in the snapshot into `out`, one for each column; tells which of
    /// them are NULL, a bit each, or that there is no such row. The word of a NULL is left as it is. `None` as of
    /// [`Database::newest_values`].
    #[inline]
    pub(super) fn row(
        &self,
        core: &Core,
        data: &TableData,
        (columns, key_place): (&PointColumns, Option<usize>),
        key: i64,
        out: &mut [u64],
    ) -> Result<Option<Option<u64>>> {
        data.fill_primary_key()?;
        let guard = &sync::pin();
        if data.has_changed_keys() {
            return Ok(None);
        }
        let Some(index) = data.primary_key.as_ref().and_then(|key| key.kiss(guard)) else { return Ok(None) };
        // A key that no record has had since the snapshot was taken had none before.
        let Some(rid) = index.newest(ordered_integer(key), guard) else { return Ok(Some(None)) };
        let (hint, view) = (data.storage.points(guard).at(rid).glance(guard), core.transactions.view(self.snapshot()));
        let nulls = hint.read(guard, &view, columns, out)?;
        debug_assert!(self.handle.is_some(), "invariant 3: the versions that were read may be given up");
        if let (Some(place), Some(_)) = (key_place, nulls) {
            // The row has the key by which it was found.
            out[place] = key as u64;
        }
        Ok(nulls.map(Some))
    }
}

impl Drop for HeldSlot<'_> {
    fn drop(&mut self) {
        self.handle.take().into_iter().for_each(|handle| self.table.release(handle));
    }
}
