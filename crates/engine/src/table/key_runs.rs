//! Few rows that an index leads to and that lie side by side, read column by column.
//!
//! **A range of the primary key.** The index knows *key runs*: 64 neighbouring keys that were given to records that follow one another. A
//! range of keys within runs is a few stretches of records, and no entry of the index is looked at:
//!
//! ```text
//! keys       lo ........ hi
//! runs    | 64 keys | 64 keys | 64 keys |     ──▶  stretches  (r, 40), (r', 60)  ──▶  columns
//! ```
//!
//! A run is a guess. It is right for a key if its record is there for the reader, as a key has one record at a time and no record
//! of the table has changed its key. So the rows are taken only if every record of the range is there; otherwise the index is walked.
//!
//! **The rows of one key of another index**, such as the orders of a customer, often were put in one behind the other. Its entries tell the
//! records, and an entry holds as long as the record has the key: so the column of the key is read as well, and the rows are taken only if
//! all of them have it.
use std::ops::Bound;

use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Int16Type, Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, RecordBatch, UInt64Array};
use arrow_select::concat::concat;
use index::KissIndex;
use lineage::{Cell, Test, View};
use smallvec::SmallVec;
use std::sync::Arc;
use types::{DataType, Rid};

use crate::error::Result;
use crate::keys::data::IndexData;
use crate::keys::entries::Entry;
use crate::keys::order::{Bounds, IndexKey, integer_in_order};
use crate::state::table_data::ScanOptions;
use crate::table::index_scan::Few;
use crate::table::{Table, batch_of};
use crate::terms::outcomes::Transactions;

/// Records that follow one another: the first, and how many.
type Stretches = SmallVec<[(Rid, usize); 4]>;

/// So many entries are to be in a stretch, on average, if their rows are read column by column.
const SIDE_BY_SIDE: usize = 4;

impl Table {
    /// The rows of a range of the primary key, upward, at most as many as are wanted. `None` if this is not the way to them.
    pub(crate) fn rows_of_runs(
        &self,
        view: View<'_, Transactions>,
        (index, bounds): (&IndexData, &Bounds),
        options: &ScanOptions,
        few: Few,
    ) -> Result<Option<RecordBatch>> {
        let Some(key) = self.data.primary_key.as_ref().filter(|key| std::ptr::eq(&*key.index, index)) else {
            return Ok(None);
        };
        let (Some(kiss), [column]) = (key.kiss(), &*key.columns) else { return Ok(None) };
        let Some((low, high)) = keys_within(bounds) else { return Ok(None) };
        let high = high.min(low.saturating_add(few.rows.saturating_sub(1) as u64));
        let is_short = high - low < few.entries as u64 && few.rows > 0;
        // The keys of the view's rows are those of the index, as its snapshot was taken before this is asked.
        if !is_short || self.data.has_changed_keys() || !self.all_pass(*column, options, (low, high)) {
            return Ok(None);
        }
        let Some(stretches) = stretches(kiss, low, high) else { return Ok(None) };
        self.rows_of_stretches(view, &stretches, options)
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
        let is_whole = matches!(
            self.schema().columns()[*column].data_type,
            DataType::BigInt | DataType::Integer | DataType::SmallInt
        );
        let is_one_key = entries.iter().all(|(key, _)| matches!(key, IndexKey::Word(other) if other == word));
        let is_plain = is_whole && is_one_key && !index.definition.is_computed();
        if !is_plain || !self.all_pass(*column, options, (*word, *word)) {
            return Ok(None);
        }
        debug_assert!(
            entries.iter().all(|(_, rid)| self.data.storage.contains(*rid)),
            "invariant 7: entries lead to records"
        );
        let Some(stretches) = side_by_side(entries) else { return Ok(None) };
        let place = options.columns.iter().position(|read| read == column);
        let columns: SmallVec<[usize; 16]> =
            options.columns.iter().chain(Some(column).filter(|_| place.is_none())).copied().collect();
        let Some(mut arrays) = self.arrays_of(view, &stretches, &columns)? else { return Ok(None) };
        if !all_have(&arrays[place.unwrap_or(options.columns.len())], integer_in_order(*word)) {
            return Ok(None);
        }
        arrays.truncate(options.columns.len());
        Ok(Some(self.batch_of_stretches(&stretches, arrays, options)))
    }

    fn rows_of_stretches(
        &self,
        view: View<'_, Transactions>,
        stretches: &Stretches,
        options: &ScanOptions,
    ) -> Result<Option<RecordBatch>> {
        let arrays = self.arrays_of(view, stretches, &options.columns)?;
        Ok(arrays.map(|arrays| self.batch_of_stretches(stretches, arrays, options)))
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
            match self.data.storage.stretch(guard, view, *stretch, columns)? {
                Some(arrays) => parts.push(arrays),
                None => return Ok(None),
            }
        }
        Ok(Some(match &mut parts[..] {
            [whole] => std::mem::take(whole),
            parts => (0..columns.len()).map(|at| joined(parts, at)).collect(),
        }))
    }

    fn batch_of_stretches(
        &self,
        stretches: &Stretches,
        mut arrays: Vec<ArrayRef>,
        options: &ScanOptions,
    ) -> RecordBatch {
        let count = stretches.iter().map(|(_, count)| count).sum();
        if options.with_rid {
            let words = |(first, count): &(Rid, usize)| first.word()..first.word() + *count as u64;
            arrays.push(Arc::new(UInt64Array::from_iter_values(stretches.iter().flat_map(words))));
        }
        debug_assert!(arrays.iter().all(|array| array.len() == count), "invariant 7: a key without its row");
        batch_of(self.data.projection(options).schema, arrays, count)
    }
}

/// The records of some entries, if few stretches have them all.
fn side_by_side(entries: &[Entry]) -> Option<Stretches> {
    let mut stretches = Stretches::new();
    for (_, rid) in entries {
        let known = stretches.len();
        match stretches.last_mut() {
            Some((first, count)) if first.range() == rid.range() && first.slot() + *count == rid.slot() => *count += 1,
            _ if known * SIDE_BY_SIDE >= entries.len() => return None,
            _ => stretches.push((*rid, 1)),
        }
    }
    Some(stretches)
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

/// A column of all stretches.
fn joined(parts: &[Vec<ArrayRef>], at: usize) -> ArrayRef {
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

/// Where the records of all keys of a range are; `None` if one is in no run.
fn stretches(index: &KissIndex, low: u64, high: u64) -> Option<Stretches> {
    let (mut stretches, mut key) = (Stretches::new(), low);
    loop {
        let (rid, count) = (index.likely(key)?, (KissIndex::RUN_KEYS - key % KissIndex::RUN_KEYS).min(high - key + 1));
        match stretches.last_mut() {
            Some((first, known)) if first.range() == rid.range() && first.slot() + *known == rid.slot() => {
                *known += count as usize;
            }
            _ => stretches.push((rid, count as usize)),
        }
        if high - key < count {
            return Some(stretches);
        }
        key += count;
    }
}
