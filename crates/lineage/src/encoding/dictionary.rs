//! Dictionaries: the distinct values of a column in ascending order, of which the rows hold the numbers.
//!
//! As the entries are sorted, codes are in the order of the values: every test is an interval or two of codes, found by
//! binary search, and the extremes of a block are those of its codes. Text keeps its entries as an Arrow view array, so
//! that rows are handed out as views into its buffers, without a copy of a byte.
use std::cmp::Ordering;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::Hash;
use std::sync::Arc;

use arrow_array::builder::{BinaryViewBuilder, GenericByteViewBuilder, StringViewBuilder};
use arrow_array::types::{BinaryViewType, ByteViewType, Decimal128Type, StringViewType};
use arrow_array::{Array, ArrayRef, BinaryViewArray, GenericByteViewArray, PrimitiveArray, StringViewArray};
use arrow_buffer::{Buffer, NullBuffer, ScalarBuffer};
use foldhash::fast::FixedState;
use types::DataType;

use super::keys::{key_of_word, wide_decimal, word_of_key};
use super::meaning::IntegerMeaning;
use super::predicate::{CellOrder, Intervals, Ranges, Test};
use super::raw::Raw;
use super::simd::Simd;
use crate::value::cell::Cell;

/// The entries of a dictionary of a type that is stored as bytes, ascending.
#[derive(Clone)]
pub(crate) enum Entries {
    Text(StringViewArray),
    Bytea(BinaryViewArray),
    Decimal(ScalarBuffer<i128>),
}

impl Entries {
    /// Texts, which ascend.
    pub(super) fn of_texts(texts: &[&str]) -> Entries {
        let mut builder: StringViewBuilder = builder_for::<StringViewType>(texts.iter().map(|text| text.len()));
        texts.iter().for_each(|text| builder.append_value(text));
        Entries::Text(builder.finish())
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Entries::Text(array) => array.len(),
            Entries::Bytea(array) => array.len(),
            Entries::Decimal(values) => values.len(),
        }
    }

    /// The entry with this code.
    #[inline]
    pub fn cell(&self, code: i64) -> Cell<'_> {
        let code = code as usize;
        match self {
            Entries::Text(array) => Cell::Bytes(array.value(code).as_bytes()),
            Entries::Bytea(array) => Cell::Bytes(array.value(code)),
            Entries::Decimal(values) => Cell::Bytes(&values.inner().as_slice()[code * 16..][..16]),
        }
    }

    /// The code of a value, if it is an entry.
    fn code(&self, bytes: &[u8]) -> Option<i64> {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = (low + high) / 2;
            let order = match self {
                Entries::Text(array) => array.value(middle).as_bytes().cmp(bytes),
                Entries::Bytea(array) => array.value(middle).cmp(bytes),
                Entries::Decimal(values) => values[middle].cmp(&wide_decimal(bytes)),
            };
            match order {
                Ordering::Less => low = middle + 1,
                Ordering::Equal => return Some(middle as i64),
                Ordering::Greater => high = middle,
            }
        }
        None
    }

    /// The order of the entries.
    fn order<'a>(&'a self, data_type: DataType) -> CellOrder<impl Fn(usize) -> Cell<'a>> {
        CellOrder { data_type, len: self.len(), cell: |code| self.cell(code as i64) }
    }
}

impl IntegerMeaning for Entries {
    #[inline]
    fn value(&self, _: usize, integer: i64, _: DataType) -> Cell<'_> {
        self.cell(integer)
    }

    fn bytes(&self) -> usize {
        match self {
            Entries::Text(array) => views_bytes(array),
            Entries::Bytea(array) => views_bytes(array),
            Entries::Decimal(values) => size_of_val(&**values),
        }
    }

    fn array(&self, _: usize, integers: &[i64], data_type: DataType, nulls: Option<NullBuffer>) -> ArrayRef {
        match self {
            Entries::Text(array) => Arc::new(take_views(array, integers, nulls)),
            Entries::Bytea(array) => Arc::new(take_views(array, integers, nulls)),
            Entries::Decimal(values) => {
                let values: Vec<i128> = integers.iter().map(|code| values[*code as usize]).collect();
                let array = PrimitiveArray::<Decimal128Type>::new(values.into(), nulls);
                Arc::new(array.with_data_type(data_type.to_stored_arrow()))
            }
        }
    }

    fn has_zone_keys(&self) -> bool {
        true
    }

    fn zone_value(&self, key: i64, _: DataType) -> Cell<'_> {
        self.cell(key)
    }

    fn zone_keys_of(&self, test: &Test, data_type: DataType) -> Intervals {
        Intervals::of_ranges(&test.ranges(&self.order(data_type)))
    }

    fn has_codes(&self) -> bool {
        true
    }

    fn code_of(&self, value: Cell<'_>, _: DataType) -> Option<i64> {
        match value {
            Cell::Bytes(bytes) => self.code(bytes),
            Cell::Null | Cell::Word(_) => None,
        }
    }
}

/// The entries of a dictionary of keys, ascending.
#[derive(Clone)]
pub(crate) struct Lookup(pub Box<[i64]>);

impl IntegerMeaning for Lookup {
    #[inline]
    fn value(&self, _: usize, integer: i64, data_type: DataType) -> Cell<'_> {
        Cell::Word(word_of_key(self.0[integer as usize], data_type))
    }

    fn bytes(&self) -> usize {
        size_of_val(&*self.0)
    }

    fn replace_by_keys(&self, _: Simd, _: usize, integers: &mut [i64], _: DataType) {
        integers.iter_mut().for_each(|integer| *integer = self.0[*integer as usize]);
    }

    fn integers_of(&self, zone_keys: &Intervals) -> Option<Intervals> {
        let codes = |(low, high): (i64, i64)| {
            let below = self.0.partition_point(|key| *key < low) as i128;
            (below, self.0.partition_point(|key| *key <= high) as i128)
        };
        Some(Intervals::of_ranges(&zone_keys.iter().map(codes).collect::<Ranges>()))
    }

    fn has_codes(&self) -> bool {
        true
    }

    fn code_of(&self, value: Cell<'_>, data_type: DataType) -> Option<i64> {
        match value {
            Cell::Word(word) => self.0.binary_search(&key_of_word(word, data_type)).ok().map(|code| code as i64),
            Cell::Null | Cell::Bytes(_) => None,
        }
    }
}

fn views_bytes<T: ByteViewType>(array: &GenericByteViewArray<T>) -> usize {
    size_of_val(&**array.views()) + array.data_buffers().iter().map(Buffer::len).sum::<usize>()
}

fn take_views<T: ByteViewType>(
    entries: &GenericByteViewArray<T>,
    codes: &[i64],
    nulls: Option<NullBuffer>,
) -> GenericByteViewArray<T> {
    assert!(nulls.as_ref().is_none_or(|nulls| nulls.len() == codes.len()), "a NULL bit for each code");
    let views = entries.views();
    let taken: Vec<u128> = codes.iter().map(|code| views[*code as usize]).collect();
    let buffers: Arc<[Buffer]> = entries.data_buffers().into();
    // SAFETY: each view is one of the entries' array, which is valid, and points into the same buffers; there are as
    // many NULL bits as codes.
    unsafe { GenericByteViewArray::new_unchecked(taken.into(), buffers, nulls) }
}

/// The numbers of distinct values in the order in which they came.
struct ValueNumbering<K> {
    numbers: HashMap<K, u32, FixedState>,
    values: Vec<K>,
    max: usize,
}

impl<K: Copy + Eq + Hash> ValueNumbering<K> {
    fn new(max: usize) -> Self {
        ValueNumbering { numbers: HashMap::with_hasher(FixedState::default()), values: vec![], max }
    }

    /// The number of a value, `None` if there are more than allowed.
    fn number(&mut self, value: K) -> Option<u32> {
        match self.numbers.entry(value) {
            Entry::Occupied(entry) => Some(*entry.get()),
            Entry::Vacant(_) if self.values.len() == self.max => None,
            Entry::Vacant(entry) => {
                self.values.push(value);
                Some(*entry.insert(self.values.len() as u32 - 1))
            }
        }
    }
}

/// Sorts values that were numbered as they came: the sorted values, and the place of each among them.
fn sorted<K: Copy + Ord>(values: &[K]) -> (Vec<K>, Vec<i64>) {
    let mut order: Vec<u32> = (0..values.len() as u32).collect();
    order.sort_unstable_by_key(|number| values[*number as usize]);
    let mut place = vec![0; values.len()];
    order.iter().enumerate().for_each(|(code, number)| place[*number as usize] = code as i64);
    (order.iter().map(|number| values[*number as usize]).collect(), place)
}

/// Numbers the values of all rows, NULLs as the row before (or the first value): the sorted values and the codes.
fn numbered<K: Copy + Eq + Hash + Ord>(
    len: usize,
    nulls: Option<&NullBuffer>,
    max: usize,
    value: impl Fn(usize) -> K,
) -> Option<(Vec<K>, Vec<i64>)> {
    let mut numbering = ValueNumbering::new(max);
    let mut codes = Vec::with_capacity(len);
    let mut last = 0i64;
    for slot in 0..len {
        if nulls.is_none_or(|nulls| nulls.is_valid(slot)) {
            last = i64::from(numbering.number(value(slot))?);
        }
        codes.push(last);
    }
    let (values, place) = sorted(&numbering.values);
    if !values.is_empty() {
        codes.iter_mut().for_each(|code| *code = place[*code as usize]);
    }
    Some((values, codes))
}

/// The distinct keys of a column, ascending, and the code of each row; `None` if they are more than `max`.
pub(super) fn of_keys(keys: &[i64], max: usize) -> Option<(Vec<i64>, Vec<i64>)> {
    numbered(keys.len(), None, max, |slot| keys[slot])
}

/// The distinct values of a column of bytes and the code of each row; `None` if they are more than `max`.
pub(super) fn of_raw(raw: &Raw, nulls: Option<&NullBuffer>, max: usize) -> Option<(Entries, Vec<i64>)> {
    match raw {
        Raw::Text(array) => {
            let (mut values, codes) = numbered(array.len(), nulls, max, |slot| array.value(slot))?;
            // A column of NULLs only still needs something for its codes to point to.
            values.is_empty().then(|| values.push(""));
            Some((Entries::of_texts(&values), codes))
        }
        Raw::Bytea(array) => {
            let (mut values, codes) = numbered(array.len(), nulls, max, |slot| array.value(slot))?;
            values.is_empty().then(|| values.push(b""));
            let mut builder: BinaryViewBuilder = builder_for::<BinaryViewType>(values.iter().map(|bytes| bytes.len()));
            values.into_iter().for_each(|bytes| builder.append_value(bytes));
            Some((Entries::Bytea(builder.finish()), codes))
        }
        Raw::WideDecimal(values) => {
            let (mut distinct, codes) = numbered(values.len(), nulls, max, |slot| values[slot])?;
            distinct.is_empty().then(|| distinct.push(0));
            Some((Entries::Decimal(distinct.into()), codes))
        }
        _ => unreachable!("only wide types have entries"),
    }
}

/// A builder with one buffer that is just long enough for the values that are not held in their views.
fn builder_for<T: ByteViewType + ?Sized>(lengths: impl Iterator<Item = usize>) -> GenericByteViewBuilder<T> {
    let bytes: usize = lengths.map(buffer_bytes).sum();
    GenericByteViewBuilder::new().with_fixed_block_size(u32::try_from(bytes).unwrap_or(u32::MAX).max(1))
}

/// The bytes that an Arrow view array takes for a value of this length beside its view, which holds short ones itself.
pub(super) fn buffer_bytes(len: usize) -> usize {
    const INLINE_MAX: usize = 12;
    if len > INLINE_MAX { len } else { 0 }
}
