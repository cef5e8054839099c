//! Few rows that an index leads to and that lie side by side, read column by column.
//!
//! **A range of the primary key.** Neighbouring keys mostly were given to records that follow one another: a range of them is a few
//! pieces (see `key_pieces`).
//!
//! **The rows of one key of another index**, such as the orders of a customer, often were put in one behind the other. Its entries tell the
//! records, and an entry holds as long as the record has the key: so the column of the key is read as well, and the rows are taken only if
//! all of them have it. Where no record has changed its key in the index, all have it.
//!
//! [`Table::rows_between`] is asked before any index is chosen, and costs little where the rows do not lie so.
use std::ops::Bound;

use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Int16Type, Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use index::KissIndex;
use lineage::{Cell, Stretch, Test, View, WordRows};
use smallvec::SmallVec;
use sync::Guard;
use types::{DataType, Rid, Snapshot};

use crate::error::Result;
use crate::keys::data::IndexData;
use crate::keys::entries::Entry;
use crate::keys::order::{Bounds, IndexKey, integer_in_order, ordered_integer};
use crate::state::table_data::ScanOptions;
use crate::table::found_rows::{FoundArrays, FoundCells, FoundRows, FoundWords, RowArrays};
use crate::table::index_scan::Few;
use crate::table::key_pieces::Pieces;
use crate::table::read_view::Sight;
use crate::table::{Table, batch_of};
use crate::terms::outcomes::Transactions;

/// Records that follow one another: the first, and how many.
type Stretches = SmallVec<[(Rid, usize); 4]>;

/// So many entries are to be in a stretch, on average, if their rows are read column by column.
const SIDE_BY_SIDE: usize = 4;

/// More entries of a key are not looked at before an index is chosen, and no wider range of keys.
const ENTRIES_MAX: usize = 1024;

/// Where the rows lie that have a whole number between two others in a column.
enum Way<'g> {
    /// under neighbouring keys of the primary key
    Pieces(&'g KissIndex, Pieces),
    /// under one key of another index
    Entries(&'g IndexData, Stretches),
}

impl Table {
    /// Columns of the rows that have a whole number from `low` to `high` in a column, ordered by that number. `None` says nothing of them:
    /// they are none, or many, or do not lie side by side along an index of the column alone, or have to be noted for a serializable
    /// transaction.
    ///
    /// # Errors
    /// [`Error::NoSuchColumn`](crate::error::Error::NoSuchColumn) if the table has fewer columns;
    /// [`Error::SnapshotTooOld`](crate::error::Error::SnapshotTooOld) if it does not keep what the view sees;
    /// [`Error::Page`](crate::error::Error::Page) if an evicted page cannot be read back.
    pub fn rows_between<'v>(
        &self,
        view: impl Into<Sight<'v>>,
        (column, low, high): (usize, i64, i64),
        columns: &[usize],
    ) -> Result<Option<RowArrays>> {
        self.data.check_positions(columns.iter().copied().chain([column]))?;
        let sight = view.into();
        let (_held, guard) = (self.hold_for_a_moment(sight)?, &sync::pin());
        let Some(way) = self.way_between(guard, sight, (column, low, high))? else { return Ok(None) };
        let view = self.database.shared.core.transactions.view(sight.snapshot);
        let options = ScanOptions { columns: columns.to_vec(), ..ScanOptions::default() };
        let mut rows = FoundArrays::new(self, &options);
        match way {
            Way::Pieces(index, pieces) => self.add_pieces(guard, view, (index, &pieces), &mut rows)?,
            Way::Entries(index, stretches) if index.has_changed_keys() => {
                let way = (&stretches, (column, ordered_integer(low)));
                return Ok(self
                    .arrays_with_key(guard, view, way, &options)?
                    .map(|found| (found, count_of(&stretches))));
            }
            Way::Entries(_, stretches) => {
                if !add_stretches(guard, view, &stretches, &mut rows)? {
                    return Ok(None);
                }
            }
        }
        let (arrays, count) = rows.finish();
        debug_assert!(
            low < high || is_of_key(&arrays, columns, (column, low)),
            "invariant 7: another key than asked for"
        );
        Ok(Some((arrays, count)))
    }

    /// As [`rows_between`](Self::rows_between), as words: puts the columns of the rows into `rows`. False says nothing of them, as there,
    /// or because one of the columns is not stored as words, or the table has more than 64; what `rows` has then says nothing either.
    ///
    /// # Errors
    /// As [`rows_between`](Self::rows_between).
    pub fn words_between<'v>(
        &self,
        view: impl Into<Sight<'v>>,
        (column, low, high): (usize, i64, i64),
        columns: &[usize],
        rows: &mut WordRows,
    ) -> Result<bool> {
        self.data.check_positions(columns.iter().copied().chain([column]))?;
        let sight = view.into();
        if !rows.begin(self.schema(), columns) {
            return Ok(false);
        }
        let (_held, guard) = (self.hold_for_a_moment(sight)?, &sync::pin());
        let Some(way) = self.way_between(guard, sight, (column, low, high))? else { return Ok(false) };
        let view = self.database.shared.core.transactions.view(sight.snapshot);
        let mut rows = FoundWords::new(self, rows);
        match way {
            Way::Pieces(index, pieces) => self.add_pieces(guard, view, (index, &pieces), &mut rows).map(|()| true),
            Way::Entries(index, _) if index.has_changed_keys() => Ok(false),
            Way::Entries(_, stretches) => add_stretches(guard, view, &stretches, &mut rows),
        }
    }

    /// As [`rows_between`](Self::rows_between), as cells, which `pass` is given. `None` says nothing of the rows, as there, and nothing is
    /// passed.
    ///
    /// # Errors
    /// As [`rows_between`](Self::rows_between).
    pub fn cells_between<'v, R>(
        &self,
        view: impl Into<Sight<'v>>,
        (column, low, high): (usize, i64, i64),
        columns: &[usize],
        pass: impl FnOnce(&FoundCells<'_>) -> R,
    ) -> Result<Option<R>> {
        self.data.check_positions(columns.iter().copied().chain([column]))?;
        let sight = view.into();
        let (_held, guard) = (self.hold_for_a_moment(sight)?, &sync::pin());
        let Some(way) = self.way_between(guard, sight, (column, low, high))? else { return Ok(None) };
        let view = self.database.shared.core.transactions.view(sight.snapshot);
        let mut rows = FoundCells::new(self, columns);
        match way {
            Way::Pieces(index, pieces) => self.add_pieces(guard, view, (index, &pieces), &mut rows)?,
            Way::Entries(index, _) if index.has_changed_keys() => return Ok(None),
            Way::Entries(_, stretches) => {
                if !add_stretches(guard, view, &stretches, &mut rows)? {
                    return Ok(None);
                }
            }
        }
        Ok(Some(pass(&rows)))
    }

    /// Where the rows lie that have a number from `low` to `high` in a column, if they are few and side by side.
    fn way_between<'g>(
        &'g self,
        guard: &'g Guard,
        Sight { snapshot, reads, .. }: Sight<'_>,
        (column, low, high): (usize, i64, i64),
    ) -> Result<Option<Way<'g>>> {
        let data_type = self.schema().columns()[column].data_type;
        if self.is_array() || reads.is_some() || low > high || !is_whole(data_type) {
            return Ok(None);
        }
        let (low, high) = (ordered_integer(low), ordered_integer(high));
        if let Some(key) = self.data.primary_key.as_ref().filter(|key| *key.columns == [column]) {
            self.data.fill(&key.index)?;
            return Ok(self
                .pieces_of_keys(guard, (low, high), ENTRIES_MAX)
                .map(|(index, way)| Way::Pieces(index, way)));
        }
        self.entries_of_key(guard, snapshot, column, Some(low).filter(|low| *low == high))
    }

    fn entries_of_key<'g>(
        &'g self,
        guard: &'g Guard,
        snapshot: Snapshot,
        column: usize,
        key: Option<u64>,
    ) -> Result<Option<Way<'g>>> {
        let index = self.data.indexes.of_column(guard, column).filter(|index| index.serves(snapshot.at));
        let Some((index, key)) = index.zip(key) else { return Ok(None) };
        self.data.fill(index)?;
        Ok(listed(guard, index, key)?.map(|stretches| Way::Entries(index, stretches)))
    }

    /// Where the rows of some keys of the primary key are. `None` if these are not few, or few of them have a record.
    fn pieces_of_keys<'g>(
        &'g self,
        guard: &'g Guard,
        (low, high): (u64, u64),
        keys_max: usize,
    ) -> Option<(&'g KissIndex, Pieces)> {
        // The keys of the view's rows are those of the index, as its snapshot was taken before this is asked.
        if high - low >= keys_max as u64 || self.data.has_changed_keys() {
            return None;
        }
        let index = self.data.primary_key.as_ref()?.kiss(guard)?;
        Some((index, Pieces::between(index, guard, low, high)?))
    }

    /// The rows of some keys of the primary key, in their order. `None` if this is not the way to them.
    fn rows_of_keys(
        &self,
        view: View<'_, Transactions>,
        keys: (u64, u64),
        keys_max: usize,
        options: &ScanOptions,
    ) -> Result<Option<RowArrays>> {
        let guard = &sync::pin();
        let Some((index, pieces)) = self.pieces_of_keys(guard, keys, keys_max) else { return Ok(None) };
        let mut rows = FoundArrays::new(self, options);
        self.add_pieces(guard, view, (index, &pieces), &mut rows)?;
        Ok(Some(rows.finish()))
    }

    /// The rows of a range of the primary key, upward, at most as many as are wanted, and the last key that was looked for. `None` if
    /// this is not the way to them.
    pub(crate) fn rows_of_runs(
        &self,
        view: View<'_, Transactions>,
        (index, bounds): (&IndexData, &Bounds),
        options: &ScanOptions,
        few: Few,
    ) -> Result<Option<(RecordBatch, IndexKey)>> {
        let Some(key) = self.data.primary_key.as_ref().filter(|key| std::ptr::eq(&*key.index, index)) else {
            return Ok(None);
        };
        let ([column], Some((low, high))) = (&*key.columns, keys_within(bounds)) else { return Ok(None) };
        let end = high.min(low.saturating_add(few.rows.saturating_sub(1) as u64));
        if few.rows == 0 || !self.all_pass(*column, options, (low, end)) {
            return Ok(None);
        }
        let found = self.rows_of_keys(view, (low, end), few.entries, options)?;
        // Where a key has no row, those that are wanted reach further.
        let found = found.filter(|(_, count)| end == high || *count == few.rows);
        let batch = |(arrays, count)| batch_of(self.data.projection(options).schema, arrays, count);
        Ok(found.map(|found| (batch(found), IndexKey::Word(end))))
    }

    /// Whether all keys in a range pass the tests, and nothing else is tested.
    fn all_pass(&self, column: usize, options: &ScanOptions, (low, high): (u64, u64)) -> bool {
        let data_type = self.schema().columns()[column].data_type;
        let passes = |test: &Test, key: u64| test.passes(Cell::Word(integer_in_order(key) as u64), data_type);
        options
            .tests
            .iter()
            .all(|(tested, test)| *tested == column && test.is_of_a_range() && passes(test, low) && passes(test, high))
    }

    /// The rows of the entries of one key, if that is a whole number, in their order. `None` if this is not the way to them.
    pub(crate) fn rows_of_entries(
        &self,
        view: View<'_, Transactions>,
        index: &IndexData,
        entries: &[Entry],
        options: &ScanOptions,
    ) -> Result<Option<RecordBatch>> {
        let ([(IndexKey::Word(word), _), _, ..], [column]) = (entries, index.columns()) else { return Ok(None) };
        let is_whole = is_whole(self.schema().columns()[*column].data_type);
        let is_one_key = entries.iter().all(|(key, _)| matches!(key, IndexKey::Word(other) if other == word));
        let is_plain = is_whole && is_one_key && !index.definition.is_computed();
        if !is_plain || !self.all_pass(*column, options, (*word, *word)) {
            return Ok(None);
        }
        debug_assert!(
            entries.iter().all(|(_, rid)| self.data.storage.contains(*rid)),
            "invariant 7: entries lead to records"
        );
        let Some(stretches) = side_by_side(entries.iter().map(|(_, rid)| *rid)) else { return Ok(None) };
        let guard = &sync::pin();
        // A version with another key would have been written after a note of that.
        let arrays = if index.has_changed_keys() {
            self.arrays_with_key(guard, view, (&stretches, (*column, *word)), options)?
        } else {
            let mut rows = FoundArrays::new(self, options);
            add_stretches(guard, view, &stretches, &mut rows)?.then(|| rows.finish().0)
        };
        let is_key = |arrays: &Vec<ArrayRef>| is_of_key(arrays, &options.columns, (*column, integer_in_order(*word)));
        debug_assert!(arrays.as_ref().is_none_or(is_key), "invariant 7: a record has lost the key of its entry");
        let schema = || self.data.projection(options).schema;
        Ok(arrays.map(|arrays| batch_of(schema(), arrays, count_of(&stretches))))
    }

    /// The arrays of all records of the stretches, if each has the key in the column of whole numbers that an index is of, where records
    /// of it may have lost the key of their entry.
    fn arrays_with_key(
        &self,
        guard: &Guard,
        view: View<'_, Transactions>,
        (stretches, (column, key)): (&Stretches, (usize, u64)),
        options: &ScanOptions,
    ) -> Result<Option<Vec<ArrayRef>>> {
        let place = options.columns.iter().position(|read| *read == column);
        let columns = options.columns.iter().copied().chain(Some(column).filter(|_| place.is_none())).collect();
        let read = ScanOptions { columns, with_rid: options.with_rid, ..ScanOptions::default() };
        let mut rows = FoundArrays::new(self, &read);
        if !add_stretches(guard, view, stretches, &mut rows)? {
            return Ok(None);
        }
        let (mut arrays, _) = rows.finish();
        let place = place.unwrap_or(options.columns.len());
        if !all_have(&arrays[place], integer_in_order(key)) {
            return Ok(None);
        }
        if place == options.columns.len() {
            arrays.remove(place);
        }
        Ok(Some(arrays))
    }
}

/// Adds all records of the stretches; false if one is not there for the view, and what was added says nothing.
fn add_stretches<'g>(
    guard: &'g Guard,
    view: View<'g, Transactions>,
    stretches: &Stretches,
    rows: &mut impl FoundRows<'g>,
) -> Result<bool> {
    for (first, count) in stretches.iter().copied() {
        if !rows.add_stretch(guard, view, Stretch { first, count })? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Where records are, if there are any and few stretches have them all.
fn side_by_side(rids: impl ExactSizeIterator<Item = Rid>) -> Option<Stretches> {
    let stretches_max = rids.len().div_ceil(SIDE_BY_SIDE);
    let (mut stretches, mut last) = (Stretches::new(), None::<(Rid, usize)>);
    for rid in rids {
        match &mut last {
            Some((first, count)) if first.range() == rid.range() && first.slot() + *count == rid.slot() => *count += 1,
            last => stretches.extend(last.replace((rid, 1))),
        }
    }
    stretches.extend(last);
    ((1..=stretches_max).contains(&stretches.len())).then_some(stretches)
}

fn count_of(stretches: &Stretches) -> usize {
    stretches.iter().map(|(_, count)| count).sum()
}

/// The records that an index has under a key, if they are side by side and not too many.
fn listed(guard: &sync::Guard, index: &IndexData, key: u64) -> Result<Option<Stretches>> {
    let key = IndexKey::Word(key);
    let rids = index.at(guard, &key)?.list(guard, &key, ENTRIES_MAX + 1);
    if rids.len() > ENTRIES_MAX {
        return Ok(None);
    }
    let stretches = side_by_side(rids.iter().copied());
    debug_assert!(
        stretches.as_ref().is_none_or(|stretches| count_of(stretches) == rids.len()),
        "each record is in a stretch"
    );
    Ok(stretches)
}

fn is_whole(data_type: DataType) -> bool {
    matches!(data_type, DataType::BigInt | DataType::Integer | DataType::SmallInt)
}

/// Whether all rows have a number in a column, as far as that is among those that were read.
fn is_of_key(arrays: &[ArrayRef], columns: &[usize], (column, key): (usize, i64)) -> bool {
    columns.iter().position(|read| *read == column).is_none_or(|place| all_have(&arrays[place], key))
}

/// Whether all values of a column of whole numbers are this one.
fn all_have(array: &ArrayRef, key: i64) -> bool {
    fn all<T: ArrowPrimitiveType<Native: Into<i64>>>(array: &ArrayRef, key: i64) -> Option<bool> {
        let values = array.as_primitive_opt::<T>()?;
        Some(values.null_count() == 0 && values.values().iter().all(|value| (*value).into() == key))
    }
    let found = all::<Int64Type>(array, key).or_else(|| all::<Int32Type>(array, key));
    found.or_else(|| all::<Int16Type>(array, key)).unwrap_or(false)
}

/// The first and the last key of a range that has both, and is not empty.
fn keys_within((low, high): &Bounds) -> Option<(u64, u64)> {
    let word = |key: &IndexKey| match key {
        IndexKey::Word(word) => Some(*word),
        IndexKey::Bytes(_) | IndexKey::Null => None,
    };
    let low = match low {
        Bound::Included((key, _)) => word(key)?,
        Bound::Excluded((key, _)) => word(key)?.checked_add(1)?,
        Bound::Unbounded => return None,
    };
    let high = match high {
        Bound::Included((key, _)) => word(key)?,
        Bound::Excluded((key, _)) => word(key)?.checked_sub(1)?,
        Bound::Unbounded => return None,
    };
    (low <= high).then_some((low, high))
}
