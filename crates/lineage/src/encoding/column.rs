//! An encoded column: reading its values, what it takes.
use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_buffer::NullBuffer;
use types::{DataType, Value};

use super::aggregates::Aggregates;
use super::form::{Encoding, Form, Meaning};
use super::integers::Integers;
use super::keys::{is_float, is_summed, word_of_key};
use super::raw::Raw;
use super::simd::BLOCK;
use super::zones::{BlockZone, Zone};
use crate::value::cell::{Cell, value_of_cell};

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
        self.form.value(slot, self.data_type)
    }

    /// The word at `slot` of a column of a type that is stored as words; `None` if the value is NULL.
    #[inline]
    pub fn word(&self, slot: usize) -> Option<u64> {
        match &self.form {
            Form::Encoded(Integers::Packed(packed), Meaning::Keys) if self.nulls.is_none() => {
                Some(word_of_key(packed.get(slot), self.data_type))
            }
            Form::Raw(Raw::I64(values)) if self.nulls.is_none() => Some(values[slot] as u64),
            _ => self.cell(slot).word(),
        }
    }

    /// Passes the words of few rows `from..to` of a column of a type that is stored as words, each with its place among them; `None` for a
    /// NULL.
    pub fn each_word(&self, from: usize, to: usize, mut visit: impl FnMut(usize, Option<u64>)) {
        assert!(from <= to && to <= self.len, "rows {from}..{to} of {}", self.len);
        match &self.form {
            Form::Encoded(Integers::Packed(packed), Meaning::Keys) if self.nulls.is_none() => {
                packed.each_key(from, to, |at, key| visit(at, Some(word_of_key(key, self.data_type))));
            }
            _ => (from..to).enumerate().for_each(|(at, slot)| visit(at, self.word(slot))),
        }
    }

    /// Passes the words at some slots of a column of a type that is stored as words, in their order; `None` for a NULL.
    pub fn each_word_at(&self, slots: &[u32], mut visit: impl FnMut(Option<u64>)) {
        match &self.form {
            Form::Encoded(Integers::Packed(packed), Meaning::Keys) if self.nulls.is_none() => {
                packed.each_key_at(slots, |key| visit(Some(word_of_key(key, self.data_type))));
            }
            _ => slots.iter().for_each(|slot| visit(self.word(*slot as usize))),
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

    /// Rows `from..to` as an Arrow array of the type: a slice where the column is raw, views into the dictionary's
    /// buffers where it is text in a dictionary.
    pub fn decode(&self, from: usize, to: usize) -> ArrayRef {
        assert!(from <= to && to <= self.len, "rows {from}..{to} of {}", self.len);
        let nulls = self.nulls.as_ref().map(|nulls| nulls.slice(from, to - from));
        self.form.array(self.data_type, nulls, (from, to))
    }

    /// Some rows from row `from` on, `rows` being their places behind it, as an Arrow array; `None` where that takes more than a look at
    /// each.
    pub fn pick(&self, from: usize, rows: &[u32]) -> Option<ArrayRef> {
        let is_valid = |nulls: &NullBuffer| rows.iter().map(|row| nulls.is_valid(from + *row as usize)).collect();
        self.form.picked(self.data_type, (from, rows), self.nulls.as_ref().map(is_valid))
    }

    /// Bytes of memory that it takes.
    pub fn bytes(&self) -> usize {
        let nulls = self.nulls.as_ref().map_or(0, |nulls| nulls.len().div_ceil(8));
        size_of::<Self>() + nulls + self.form.bytes() + size_of_val(&*self.zones)
    }

    /// How it is stored.
    pub fn encoding(&self) -> Encoding {
        self.form.encoding()
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
        !zone.is_of_nothing()
    }

    /// The value of a zone key.
    pub(super) fn zone_cell(&self, key: i64) -> Cell<'_> {
        self.form.zone_value(key, self.data_type)
    }

    /// The value of a zone key.
    pub(super) fn zone_value(&self, key: i64) -> Value {
        value_of_cell(self.zone_cell(key), self.data_type)
    }
}
