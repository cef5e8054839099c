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
use arrow_array::{Array, ArrayRef, RecordBatch, UInt64Array};
use arrow_select::concat::concat;
use lineage::{Cell, Stretch, Test, View};
use smallvec::SmallVec;
use std::sync::Arc;
use types::{DataType, Rid};

use crate::error::Result;
use crate::keys::data::IndexData;
use crate::keys::entries::Entry;
use crate::keys::order::{Bounds, IndexKey, integer_in_order, ordered_integer};
use crate::state::table_data::ScanOptions;
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

/// Columns of some rows, and how many rows these are.
pub type RowArrays = (Vec<ArrayRef>, usize);

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
        let sight @ Sight { snapshot, reads, .. } = view.into();
        let data_type = self.schema().columns()[column].data_type;
        if self.is_array() || reads.is_some() || low > high || !is_whole(data_type) {
            return Ok(None);
        }
        let _held = self.hold_for_a_moment(sight)?;
        let view = self.database.shared.core.transactions.view(snapshot);
        let (low, high) = (ordered_integer(low), ordered_integer(high));
        if let Some(key) = self.data.primary_key.as_ref().filter(|key| *key.columns == [column]) {
            self.data.fill(&key.index)?;
            let options = ScanOptions { columns: columns.to_vec(), ..ScanOptions::default() };
            return self.rows_of_keys(view, (low, high), ENTRIES_MAX, &options);
        }
        let guard = &sync::pin();
        match self.data.indexes.of_column(guard, column).filter(|index| low == high && index.serves(snapshot.at)) {
            Some(index) => {
                self.data.fill(index)?;
                let Some(stretches) = listed(guard, index, low)? else { return Ok(None) };
                let arrays = self.arrays_with_key(view, (index, &stretches), (column, low), columns)?;
                Ok(arrays.map(|arrays| (arrays, count_of(&stretches))))
            }
            None => Ok(None),
        }
    }

    /// The rows of some keys of the primary key, in their order. `None` if these are not few, or few of them have a record.
    fn rows_of_keys(
        &self,
        view: View<'_, Transactions>,
        (low, high): (u64, u64),
        keys_max: usize,
        options: &ScanOptions,
    ) -> Result<Option<RowArrays>> {
        // The keys of the view's rows are those of the index, as its snapshot was taken before this is asked.
        if high - low >= keys_max as u64 || self.data.has_changed_keys() {
            return Ok(None);
        }
        let guard = &sync::pin();
        let Some(index) = self.data.primary_key.as_ref().and_then(|key| key.kiss(guard)) else { return Ok(None) };
        let Some(pieces) = Pieces::between(index, guard, low, high) else { return Ok(None) };
        self.rows_of_pieces(guard, view, (index, &pieces), options).map(Some)
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
        let arrays = self.arrays_with_key(view, (index, &stretches), (*column, *word), &options.columns)?;
        Ok(arrays.map(|arrays| self.batch_of_stretches(&stretches, arrays, options)))
    }

    /// Columns of all records of the stretches, if each has the key in the column of whole numbers that an index is of.
    fn arrays_with_key(
        &self,
        view: View<'_, Transactions>,
        (index, stretches): (&IndexData, &Stretches),
        (column, key): (usize, u64),
        columns: &[usize],
    ) -> Result<Option<Vec<ArrayRef>>> {
        // A version with another key would have been written after a note of that.
        if !index.has_changed_keys() {
            let arrays = self.arrays_of(view, stretches, columns)?;
            let is_key = |arrays: &Vec<ArrayRef>| {
                let place = columns.iter().position(|read| *read == column);
                place.is_none_or(|place| all_have(&arrays[place], integer_in_order(key)))
            };
            debug_assert!(arrays.as_ref().is_none_or(is_key), "invariant 7: a record has lost the key of its entry");
            return Ok(arrays);
        }
        let place = columns.iter().position(|read| *read == column);
        let read: SmallVec<[usize; 16]> =
            columns.iter().copied().chain(Some(column).filter(|_| place.is_none())).collect();
        let Some(mut arrays) = self.arrays_of(view, stretches, &read)? else { return Ok(None) };
        if !all_have(&arrays[place.unwrap_or(columns.len())], integer_in_order(key)) {
            return Ok(None);
        }
        arrays.truncate(columns.len());
        Ok(Some(arrays))
    }

    /// Columns of all records of the stretches; `None` if one is not there.
    fn arrays_of(
        &self,
        view: View<'_, Transactions>,
        stretches: &Stretches,
        columns: &[usize],
    ) -> Result<Option<Vec<ArrayRef>>> {
        let guard = &sync::pin();
        let mut parts: SmallVec<[Vec<ArrayRef>; 4]> = SmallVec::new();
        for stretch in stretches {
            let (first, count) = *stretch;
            match self.data.storage.stretch(guard, view, Stretch { first, count, elsewhere: &[] }, columns)? {
                Some(arrays) => parts.push(arrays),
                None => return Ok(None),
            }
        }
        Ok(Some(joined(&mut parts)))
    }

    fn batch_of_stretches(
        &self,
        stretches: &Stretches,
        mut arrays: Vec<ArrayRef>,
        options: &ScanOptions,
    ) -> RecordBatch {
        let count = count_of(stretches);
        if options.with_rid {
            let words = |(first, count): &(Rid, usize)| first.word()..first.word() + *count as u64;
            arrays.push(Arc::new(UInt64Array::from_iter_values(stretches.iter().flat_map(words))));
        }
        debug_assert!(arrays.iter().all(|array| array.len() == count), "invariant 7: a key without its row");
        batch_of(self.data.projection(options).schema, arrays, count)
    }
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

/// Whether all values of a column of whole numbers are this one.
fn all_have(array: &ArrayRef, key: i64) -> bool {
    fn all<T: ArrowPrimitiveType<Native: Into<i64>>>(array: &ArrayRef, key: i64) -> Option<bool> {
        let values = array.as_primitive_opt::<T>()?;
        Some(values.null_count() == 0 && values.values().iter().all(|value| (*value).into() == key))
    }
    let found = all::<Int64Type>(array, key).or_else(|| all::<Int32Type>(array, key));
    found.or_else(|| all::<Int16Type>(array, key)).unwrap_or(false)
}

/// Columns whose parts follow one another.
pub(super) fn joined(parts: &mut [Vec<ArrayRef>]) -> Vec<ArrayRef> {
    match parts {
        [whole] => std::mem::take(whole),
        parts => (0..parts.first().map_or(0, Vec::len)).map(|at| joined_column(parts, at)).collect(),
    }
}

fn joined_column(parts: &[Vec<ArrayRef>], at: usize) -> ArrayRef {
    let arrays: SmallVec<[&dyn arrow_array::Array; 4]> = parts.iter().map(|arrays| &*arrays[at]).collect();
    concat(&arrays).expect("parts of a column have its type")
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
