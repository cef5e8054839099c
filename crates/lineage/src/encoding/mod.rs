//! One column of a base page in encoded form: read-only, smaller than its values, and evaluated as it is.
//!
//! ```text
//!   EncodedColumn = NULL bitmap + zones (a block of 1,024 rows each) + form
//!
//!   form   raw         Arrow's buffers
//!          integers    bit-packed distances to each block's smallest key, or runs of equal keys
//!            as keys             integers, dates, times, decimals of a word, booleans, floats in their order
//!            as codes            of a sorted dictionary of keys, text, bytea, uuids, wide decimals
//!            as ALP integers     of floats, with exceptions
//! ```
//!
//! So there is one integer codec and a meaning on top, and since every meaning keeps the order, a predicate becomes
//! intervals of integers whatever the type. A block is first judged by its zone; only if that does not decide are
//! its values unpacked, 1,024 into a buffer on the stack, and compared many at a time.
//!
//! | module | subject |
//! |---|---|
//! | `choose` | which encoding a column gets |
//! | `texts` | text whose order is known from the dictionaries of insert and tail pages |
//! | `patch` | a column with some values replaced |
//! | `select`, `aggregate` | predicates and aggregates on the encoded form |
//! | `outline` | what is known of a column that is evicted |
//! | `predicate`, `aggregates`, `mask`, `zones` | what goes in and comes out of these |
//! | `raw`, `integers`, `packed`, `packing`, `dictionary`, `float`, `keys` | the forms |
//! | `simd`, `kernels`, `within` | loops for AVX-512, AVX2 and everything else |
//!
//! The ideas are those of FastLanes (VLDB 2023) and ALP (SIGMOD 2023); each module says what it does otherwise.
mod aggregate;
mod aggregates;
mod choose;
pub(crate) mod dictionary;
pub(crate) mod float;
pub(crate) mod integers;
mod kernels;
mod keys;
mod mask;
mod outline;
pub(crate) mod packed;
mod packing;
mod patch;
mod predicate;
pub(crate) mod raw;
mod select;
pub(crate) mod simd;
#[cfg(test)]
mod tests;
mod texts;
mod within;
pub(crate) mod zones;

use std::sync::Arc;

use arrow_array::{Array, ArrayRef};
use arrow_buffer::NullBuffer;
use types::{DataType, Value};

pub use aggregates::{Aggregates, Sum};
#[cfg(test)]
pub(crate) use integers::BLOCKS_UNPACKED;
pub use mask::Mask;
pub(crate) use outline::ColumnOutline;
pub use predicate::{Comparison, Test};
pub(crate) use texts::NULL_NUMBER;
pub use zones::Zone;

use crate::cell::{Cell, value_of_cell};
use dictionary::Entries;
use float::Alp;
use integers::Integers;
use keys::word_of_key;
use raw::{Raw, array_of_keys};
use simd::{BLOCK, Simd};
use zones::BlockZone;

/// How a column is stored.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Encoding {
    /// All values are equal.
    Constant,
    /// Runs of equal values.
    RunLength,
    /// Small distances to the smallest value of each block, bit-packed.
    FrameOfReference,
    /// Bit-packed numbers of distinct values.
    Dictionary,
    /// Floats as small integers (ALP).
    Float,
    /// As it came.
    Raw,
}

/// One column of a base page.
pub(crate) struct EncodedColumn {
    pub(crate) data_type: DataType,
    pub(crate) len: usize,
    /// `None` if no value is NULL
    pub(crate) nulls: Option<NullBuffer>,
    pub(crate) form: Form,
    /// shared with its outline
    pub(crate) zones: Arc<[BlockZone]>,
}

/// The values of a column.
pub(crate) enum Form {
    Raw(Raw),
    Encoded(Integers, Meaning),
}

/// What the integers of an encoded column stand for.
pub(crate) enum Meaning {
    /// The keys of the values.
    Keys,
    /// Codes of these keys, ascending.
    Lookup(Box<[i64]>),
    /// Codes of these values, ascending.
    Entries(Entries),
    /// Floats.
    Float(Alp),
}

impl EncodedColumn {
    /// Chooses an encoding by sampling and encodes. `array` has the Arrow form of the type.
    pub fn encode(array: &ArrayRef, data_type: DataType) -> EncodedColumn {
        choose::encode(Raw::of(array, data_type), nulls_of(array), array.len(), data_type, None)
    }

    /// A column of text as a dictionary, made of values whose order is known: `values` are ascending runs, one after the
    /// other, and `numbers` says for each row where its value is among them, or [`NULL_NUMBER`]. `None` if a dictionary is
    /// not worth it.
    pub fn of_texts(values: &[&[u8]], numbers: &[u32], data_type: DataType) -> Option<EncodedColumn> {
        texts::of_numbers(values, numbers, data_type)
    }

    /// The entries of a dictionary of text with the number of the entry that each row has, or [`NULL_NUMBER`]; `None` if the
    /// column is not kept as that.
    pub fn texts(&self) -> Option<(Vec<&[u8]>, Vec<u32>)> {
        let Form::Encoded(integers, Meaning::Entries(Entries::Text(entries))) = &self.form else { return None };
        let is_null = |slot: usize| self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(slot));
        let codes = self.codes(integers, 0, self.len).into_iter().enumerate();
        let numbers = codes.map(|(slot, code)| if is_null(slot) { NULL_NUMBER } else { code as u32 }).collect();
        Some(((0..entries.len()).map(|entry| entries.value(entry).as_bytes()).collect(), numbers))
    }

    /// Passes every value of a column that was just encoded, at least once.
    pub fn each_value<'a>(&'a self, mut visit: impl FnMut(Cell<'a>)) {
        match &self.form {
            // All of them are used, but for the one that a column of NULLs has.
            Form::Encoded(_, Meaning::Entries(entries)) if self.nulls_len() < self.len => {
                (0..entries.len()).for_each(|code| visit(entries.cell(code as i64)));
            }
            _ => (0..self.len).for_each(|slot| visit(self.cell(slot))),
        }
    }

    fn nulls_len(&self) -> usize {
        self.nulls.as_ref().map_or(0, NullBuffer::null_count)
    }

    /// Keeps the array as it is.
    #[cfg(test)]
    pub fn raw(array: ArrayRef, data_type: DataType) -> EncodedColumn {
        choose::keep_raw(Raw::of(&array, data_type), nulls_of(&array), array.len(), data_type)
    }

    /// How many values it has.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// The value at `slot`, without decoding its block.
    #[inline]
    pub fn cell(&self, slot: usize) -> Cell<'_> {
        if let Some(nulls) = &self.nulls
            && nulls.is_null(slot)
        {
            return Cell::Null;
        }
        match &self.form {
            Form::Raw(raw) => raw.cell(slot),
            Form::Encoded(integers, meaning) => self.encoded_cell(integers, meaning, slot),
        }
    }

    /// Asks for the memory of the value at `slot`, where it can be told without reading any.
    #[inline]
    pub fn prefetch(&self, slot: usize) {
        if let Form::Raw(Raw::I64(values)) = &self.form {
            sync::prefetch(values.as_ptr().wrapping_add(slot));
        }
    }

    fn encoded_cell<'a>(&self, integers: &Integers, meaning: &'a Meaning, slot: usize) -> Cell<'a> {
        debug_assert!(slot < self.len);
        let integer = integers.get(slot);
        let key = match meaning {
            Meaning::Keys => integer,
            Meaning::Lookup(keys) => keys[integer as usize],
            Meaning::Entries(entries) => return entries.cell(integer),
            Meaning::Float(alp) => alp.key(slot, integer),
        };
        Cell::Word(word_of_key(key, self.data_type))
    }

    /// Rows `from..to` as an Arrow array of the type: a slice where the column is raw, views into the dictionary's
    /// buffers where it is text in a dictionary.
    pub fn decode(&self, from: usize, to: usize) -> ArrayRef {
        assert!(from <= to && to <= self.len, "rows {from}..{to} of {}", self.len);
        let nulls = self.nulls.as_ref().map(|nulls| nulls.slice(from, to - from));
        match &self.form {
            Form::Raw(raw) => raw.array(self.data_type, nulls, (from, to)),
            Form::Encoded(integers, Meaning::Entries(entries)) => {
                let codes = self.codes(integers, from, to);
                entries.array(&codes, self.data_type, nulls)
            }
            Form::Encoded(..) => array_of_keys(self.keys(from, to), self.data_type, nulls),
        }
    }

    /// The integers of rows `from..to` of an encoded column.
    fn codes(&self, integers: &Integers, from: usize, to: usize) -> Vec<i64> {
        let mut codes = Vec::with_capacity(to - from);
        let simd = Simd::best();
        let mut buffer = [0; BLOCK];
        self.each_block(from, to, |block, rows, _| {
            integers.unpack(simd, block, &mut buffer);
            codes.extend_from_slice(&buffer[rows.0..rows.1]);
        });
        codes
    }

    /// The keys of rows `from..to` of a type that has keys.
    fn keys(&self, from: usize, to: usize) -> Vec<i64> {
        let mut keys = Vec::with_capacity(to - from);
        let simd = Simd::best();
        let mut buffer = [0; BLOCK];
        self.each_block(from, to, |block, rows, _| {
            self.block_keys(simd, block, rows, &mut buffer);
            keys.extend_from_slice(&buffer[rows.0..rows.1]);
        });
        keys
    }

    /// The keys of a block, right in `rows` of it.
    fn block_keys(&self, simd: Simd, block: usize, rows: (usize, usize), keys: &mut [i64; BLOCK]) {
        let start = block * BLOCK;
        match &self.form {
            Form::Raw(raw) => raw.keys(start + rows.0, start + rows.1, &mut keys[rows.0..rows.1]),
            Form::Encoded(integers, meaning) => {
                integers.unpack(simd, block, keys);
                let keys = &mut keys[rows.0..rows.1];
                match meaning {
                    Meaning::Keys => {}
                    Meaning::Lookup(values) => keys.iter_mut().for_each(|key| *key = values[*key as usize]),
                    Meaning::Float(alp) => alp.decode(simd, start + rows.0, keys),
                    Meaning::Entries(_) => unreachable!("wide types have no keys"),
                }
            }
        }
    }

    /// Calls `action` for each block that rows `from..to` touch: the block, the rows within it, and how many rows came
    /// before.
    fn each_block(&self, from: usize, to: usize, mut action: impl FnMut(usize, (usize, usize), usize)) {
        let mut at = from;
        while at < to {
            let start = at / BLOCK * BLOCK;
            let end = to.min(start + BLOCK);
            action(at / BLOCK, (at - start, end - start), at - from);
            at = end;
        }
    }

    /// A new column with some values replaced: `patches` are slots, ascending, each once, and their new values.
    pub fn patched(&self, patches: &[(usize, Cell<'_>)]) -> EncodedColumn {
        patch::patched(self, patches)
    }

    /// The same if only codes change: the column is a dictionary that has all the new values.
    pub fn recoded(&self, patches: &[(usize, Cell<'_>)]) -> Option<EncodedColumn> {
        patch::recoded(self, patches)
    }

    /// Bytes of memory that it takes.
    pub fn bytes(&self) -> usize {
        let nulls = self.nulls.as_ref().map_or(0, |nulls| nulls.len().div_ceil(8));
        let form = match &self.form {
            Form::Raw(raw) => raw.bytes(),
            Form::Encoded(integers, meaning) => {
                integers.bytes()
                    + match meaning {
                        Meaning::Keys => 0,
                        Meaning::Lookup(keys) => size_of_val(&**keys),
                        Meaning::Entries(entries) => entries.bytes(),
                        Meaning::Float(alp) => alp.bytes(),
                    }
            }
        };
        size_of::<Self>() + nulls + form + size_of_val(&*self.zones)
    }

    /// How it is stored.
    pub fn encoding(&self) -> Encoding {
        match &self.form {
            Form::Raw(_) => Encoding::Raw,
            Form::Encoded(integers, meaning) => match (integers.runs(), meaning) {
                (_, Meaning::Float(_)) => Encoding::Float,
                (Some(1), _) => Encoding::Constant,
                (Some(_), Meaning::Keys) => Encoding::RunLength,
                (None, Meaning::Keys) => Encoding::FrameOfReference,
                (_, Meaning::Lookup(_) | Meaning::Entries(_)) => Encoding::Dictionary,
            },
        }
    }

    /// What the zones say of rows `from..to`: of all blocks that these touch.
    pub fn zone(&self, from: usize, to: usize) -> Zone {
        let zones = &self.zones[from / BLOCK..to.div_ceil(BLOCK)];
        let null_count = zones.iter().map(|zone| zone.nulls as usize).sum();
        let mut extremes = Aggregates::new(self.data_type);
        for zone in zones.iter().filter(|zone| self.zone_has_values(zone)) {
            extremes.add_extreme(self.zone_cell(zone.min));
            extremes.add_extreme(self.zone_cell(zone.max));
        }
        Zone { min: extremes.min, max: extremes.max, null_count }
    }

    fn zone_has_values(&self, zone: &BlockZone) -> bool {
        !(zone.min == i64::MAX && zone.max == i64::MIN)
    }

    /// The value of a zone key.
    fn zone_cell(&self, key: i64) -> Cell<'_> {
        match &self.form {
            Form::Encoded(_, Meaning::Entries(entries)) => entries.cell(key),
            Form::Raw(raw @ (Raw::Text(_) | Raw::Bytea(_) | Raw::WideDecimal(_))) => raw.cell(key as usize),
            _ => Cell::Word(word_of_key(key, self.data_type)),
        }
    }

    /// The value of a zone key.
    fn zone_value(&self, key: i64) -> Value {
        value_of_cell(self.zone_cell(key), self.data_type)
    }
}

/// The NULLs of an array, if there are any.
fn nulls_of(array: &ArrayRef) -> Option<NullBuffer> {
    array.nulls().filter(|nulls| nulls.null_count() > 0).cloned()
}
