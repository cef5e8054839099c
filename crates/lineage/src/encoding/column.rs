//! An encoded column: its forms, reading its values, what it takes.
use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_buffer::NullBuffer;
use types::{DataType, Value};

use super::aggregates::Aggregates;
use super::dictionary::Entries;
use super::float::Alp;
use super::integers::Integers;
use super::keys::{is_float, is_summed, word_of_key};
use super::raw::{Raw, array_of_keys};
use super::simd::{BLOCK, Simd};
use super::zones::{BlockZone, Zone};
use crate::value::cell::{Cell, value_of_cell};

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

    pub(super) fn nulls_len(&self) -> usize {
        self.nulls.as_ref().map_or(0, NullBuffer::null_count)
    }

    /// The type of its values.
    #[inline]
    pub fn data_type(&self) -> DataType {
        self.data_type
    }

    /// Whether the value at `slot` is NULL.
    #[inline]
    pub fn is_null(&self, slot: usize) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(slot))
    }

    /// How many values are not NULL and, if they are added up as whole numbers, their sum.
    pub fn zones_totals(&self) -> (usize, i128) {
        let nulls: usize = self.zones.iter().map(|zone| zone.nulls as usize).sum();
        let sum = if is_summed(self.data_type) { self.zones.iter().map(|zone| zone.sum).sum() } else { 0 };
        (self.len - nulls, sum)
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

    /// The word at `slot` of a column of a type that is stored as words; `None` if the value is NULL.
    #[inline]
    pub fn word(&self, slot: usize) -> Option<u64> {
        match &self.form {
            Form::Encoded(Integers::Packed(packed), Meaning::Keys) if self.nulls.is_none() => {
                Some(word_of_key(packed.get(slot), self.data_type))
            }
            Form::Raw(Raw::I64(values)) if self.nulls.is_none() => Some(values[slot] as u64),
            _ => match self.cell(slot) {
                Cell::Word(word) => Some(word),
                Cell::Null | Cell::Bytes(_) => None,
            },
        }
    }

    /// Distances, their base and how many bytes each takes, where these are the column's words and none is NULL.
    pub fn flat(&self) -> Option<(&[u8], u64, usize)> {
        match &self.form {
            _ if self.nulls.is_some() => None,
            Form::Raw(Raw::I64(values)) => Some((values.inner().as_slice(), 0, size_of::<i64>())),
            Form::Encoded(Integers::Packed(packed), Meaning::Keys) if !is_float(self.data_type) => {
                packed.flat().map(|(words, base, bytes)| (words, base as u64, bytes))
            }
            _ => None,
        }
    }

    /// Asks for the memory of the value at `slot`, where that takes few instructions.
    #[inline]
    pub fn prefetch(&self, slot: usize) {
        match &self.form {
            Form::Raw(Raw::I64(values)) => sync::prefetch(values.as_ptr().wrapping_add(slot)),
            Form::Encoded(Integers::Packed(packed), _) => packed.prefetch(slot),
            _ => {}
        }
    }

    pub(super) fn encoded_cell<'a>(&self, integers: &Integers, meaning: &'a Meaning, slot: usize) -> Cell<'a> {
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
    pub(super) fn codes(&self, integers: &Integers, from: usize, to: usize) -> Vec<i64> {
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
    pub(super) fn keys(&self, from: usize, to: usize) -> Vec<i64> {
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
    pub(super) fn block_keys(&self, simd: Simd, block: usize, rows: (usize, usize), keys: &mut [i64; BLOCK]) {
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
    pub(super) fn each_block(&self, from: usize, to: usize, mut action: impl FnMut(usize, (usize, usize), usize)) {
        let mut at = from;
        while at < to {
            let start = at / BLOCK * BLOCK;
            let end = to.min(start + BLOCK);
            action(at / BLOCK, (at - start, end - start), at - from);
            at = end;
        }
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

    pub(super) fn zone_has_values(&self, zone: &BlockZone) -> bool {
        !(zone.min == i64::MAX && zone.max == i64::MIN)
    }

    /// The value of a zone key.
    pub(super) fn zone_cell(&self, key: i64) -> Cell<'_> {
        match &self.form {
            Form::Encoded(_, Meaning::Entries(entries)) => entries.cell(key),
            Form::Raw(raw @ (Raw::Text(_) | Raw::Bytea(_) | Raw::WideDecimal(_))) => raw.cell(key as usize),
            _ => Cell::Word(word_of_key(key, self.data_type)),
        }
    }

    /// The value of a zone key.
    pub(super) fn zone_value(&self, key: i64) -> Value {
        value_of_cell(self.zone_cell(key), self.data_type)
    }
}
