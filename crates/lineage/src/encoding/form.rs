//! The forms of a column in one list, by which everything else asks them.
//!
//! What a form does stands in its own file: `raw`, `integers`, and for what integers mean an
//! [`IntegerMeaning`] each. No call here is dynamic: a value, or a block, costs one look at the list.
use arrow_array::ArrayRef;
use arrow_buffer::NullBuffer;
use types::DataType;

use super::dictionary::{Entries, Lookup};
use super::float::Alp;
use super::integers::{Integers, KeyTotals, find_keys};
use super::keys::{double_of_key, real_of_key, word_of_key};
use super::meaning::{IntegerMeaning, Keys};
use super::predicate::{Intervals, KeyOrder, Test};
use super::raw::{Raw, array_of_keys};
use super::simd::{BLOCK, BlockBits, Simd, each_block};
use crate::value::cell::{Cell, is_wide};

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

/// The values of a column.
pub(crate) enum Form {
    Raw(Raw),
    Encoded(Integers, Meaning),
}

/// What the integers of an encoded column stand for.
#[derive(Clone)]
pub(crate) enum Meaning {
    /// The keys of the values.
    Keys,
    /// Codes of keys, ascending.
    Lookup(Lookup),
    /// Codes of values, ascending.
    Entries(Entries),
    /// Floats.
    Float(Alp),
}

/// Asks a meaning, as the type that it is.
macro_rules! ask {
    ($meaning:expr, |$known:ident| $question:expr) => {
        match $meaning {
            Meaning::Keys => {
                let $known = &Keys;
                $question
            }
            Meaning::Lookup($known) => $question,
            Meaning::Entries($known) => $question,
            Meaning::Float($known) => $question,
        }
    };
}

/// A test in terms of a column's integers.
pub(super) struct TranslatedTest {
    /// what passes, in zone keys
    pub(super) zone: Intervals,
    /// what passes, in the integers of the column, where they tell
    pub(super) integers: Option<Intervals>,
}

impl Meaning {
    /// Bytes of memory beside the integers.
    fn bytes(&self) -> usize {
        ask!(self, |known| known.bytes())
    }

    /// Whether each value has an integer of its own, in whichever row it stands.
    pub(super) fn has_codes(&self) -> bool {
        ask!(self, |known| known.has_codes())
    }

    /// The integer of a value that is not NULL, where values have one and this value is among them.
    pub(super) fn code_of(&self, value: Cell<'_>, data_type: DataType) -> Option<i64> {
        ask!(self, |known| known.code_of(value, data_type))
    }

    /// Turns the integers of the rows from `from` on into zone keys.
    pub(super) fn replace_by_zone_keys(&self, from: usize, integers: &mut [i64], data_type: DataType) {
        if !ask!(self, |known| known.has_zone_keys()) {
            ask!(self, |known| known.replace_by_keys(Simd::best(), from, integers, data_type));
        }
    }
}

/// So few rows are taken out of their block one by one.
const FEW_ROWS: usize = 128;

impl Form {
    /// The value at `slot`, which is not NULL.
    #[inline]
    pub(super) fn value(&self, slot: usize, data_type: DataType) -> Cell<'_> {
        match self {
            Form::Raw(raw) => raw.cell(slot),
            Form::Encoded(integers, meaning) => {
                let integer = integers.get(slot);
                ask!(meaning, |known| known.value(slot, integer, data_type))
            }
        }
    }

    /// Rows `from..to` as an Arrow array of the type, with these NULLs: a slice where the column is raw, views into the
    /// dictionary's buffers where it is text in a dictionary.
    pub(super) fn array(&self, data_type: DataType, nulls: Option<NullBuffer>, (from, to): (usize, usize)) -> ArrayRef {
        match self {
            Form::Raw(raw) => raw.array(data_type, nulls, (from, to)),
            Form::Encoded(integers, meaning) if is_wide(data_type) => {
                let integers = integers.rows(from, to);
                ask!(meaning, |known| known.array(from, &integers, data_type, nulls))
            }
            Form::Encoded(..) => array_of_keys(self.keys(from, to, data_type), data_type, nulls),
        }
    }

    /// Some rows, where the integers or what they are codes of are the keys, with these NULLs.
    pub(super) fn picked(
        &self,
        data_type: DataType,
        (from, rows): (usize, &[u32]),
        nulls: Option<NullBuffer>,
    ) -> Option<ArrayRef> {
        let Form::Encoded(integers, meaning @ (Meaning::Keys | Meaning::Lookup(_))) = self else { return None };
        if is_wide(data_type) {
            return None;
        }
        let mut keys = integers.pick(from, rows);
        ask!(meaning, |known| known.replace_by_keys(Simd::best(), from, &mut keys, data_type));
        Some(array_of_keys(keys, data_type, nulls))
    }

    /// The keys of rows `from..to` of a type that has keys.
    pub(super) fn keys(&self, from: usize, to: usize, data_type: DataType) -> Vec<i64> {
        let mut keys = Vec::with_capacity(to - from);
        let simd = Simd::best();
        if let Form::Encoded(integers, meaning) = self
            && to - from <= FEW_ROWS
        {
            each_block(from, to, |block, rows, at| {
                integers.add_rows(block, rows, &mut keys);
                ask!(meaning, |known| known.replace_by_keys(simd, from + at, &mut keys[at..], data_type));
            });
            return keys;
        }
        let mut buffer = [0; BLOCK];
        each_block(from, to, |block, rows, _| {
            self.block_keys(simd, block, rows, data_type, &mut buffer);
            keys.extend_from_slice(&buffer[rows.0..rows.1]);
        });
        keys
    }

    /// The keys of a block, right in `rows` of it.
    pub(super) fn block_keys(
        &self,
        simd: Simd,
        block: usize,
        rows: (usize, usize),
        data_type: DataType,
        keys: &mut [i64; BLOCK],
    ) {
        let start = block * BLOCK;
        match self {
            Form::Raw(raw) => raw.keys(start + rows.0, start + rows.1, &mut keys[rows.0..rows.1]),
            Form::Encoded(integers, meaning) => {
                integers.unpack(simd, block, keys);
                let keys = &mut keys[rows.0..rows.1];
                ask!(meaning, |known| known.replace_by_keys(simd, start + rows.0, keys, data_type));
            }
        }
    }

    /// Whether zone keys are slots, and nothing but their values can be compared.
    pub(super) fn has_slots_as_zone_keys(&self, data_type: DataType) -> bool {
        is_wide(data_type) && matches!(self, Form::Raw(_))
    }

    /// The value of a zone key.
    pub(super) fn zone_value(&self, key: i64, data_type: DataType) -> Cell<'_> {
        match self {
            Form::Raw(raw) if is_wide(data_type) => raw.cell(key as usize),
            Form::Raw(_) => Cell::Word(word_of_key(key, data_type)),
            Form::Encoded(_, meaning) => ask!(meaning, |known| known.zone_value(key, data_type)),
        }
    }

    /// A test in terms of the zone keys and integers, unless zone keys are slots.
    pub(super) fn translate(&self, test: &Test, data_type: DataType) -> TranslatedTest {
        match self {
            Form::Raw(_) => TranslatedTest { zone: Intervals::of_ranges(&test.ranges(&KeyOrder)), integers: None },
            Form::Encoded(_, meaning) => ask!(meaning, |known| {
                let zone = known.zone_keys_of(test, data_type);
                TranslatedTest { integers: known.integers_of(&zone), zone }
            }),
        }
    }

    /// Sets the bits of those of the rows `from..to` of a block that pass; bit 0 is row `from`. Those of NULLs are arbitrary.
    pub(super) fn find(
        &self,
        simd: Simd,
        block: usize,
        rows: (usize, usize),
        test: &TranslatedTest,
        data_type: DataType,
        bits: &mut BlockBits,
    ) {
        let (from, to) = (block * BLOCK + rows.0, block * BLOCK + rows.1);
        match (self, &test.integers) {
            (Form::Raw(raw), _) => raw.find(simd, (from, to), &test.zone, bits),
            (Form::Encoded(integers, meaning), Some(passing)) => {
                integers.find(simd, block, rows, passing, bits);
                ask!(meaning, |known| known.correct((from, to), &test.zone, bits));
            }
            (Form::Encoded(..), None) => {
                let mut keys = [0; BLOCK];
                self.block_keys(simd, block, rows, data_type, &mut keys);
                find_keys(simd, &keys[rows.0..rows.1], &test.zone, bits);
            }
        }
    }

    /// Totals in zone keys of the rows `from..to` of a block, or of those among them that `kept` has; bit 0 is row `from`.
    pub(super) fn totals<const EXTREMES: bool>(
        &self,
        simd: Simd,
        block: usize,
        rows: (usize, usize),
        data_type: DataType,
        kept: Option<&BlockBits>,
    ) -> KeyTotals {
        let start = block * BLOCK;
        match self {
            Form::Raw(raw) => raw.totals::<EXTREMES>(simd, (start + rows.0, start + rows.1), kept),
            Form::Encoded(integers, meaning) if ask!(meaning, |known| known.has_zone_keys()) => {
                integers.totals::<EXTREMES>(simd, block, rows, kept)
            }
            Form::Encoded(..) => {
                let mut keys = [0; BLOCK];
                self.block_keys(simd, block, rows, data_type, &mut keys);
                KeyTotals::of_keys::<EXTREMES>(simd, &keys[rows.0..rows.1], kept)
            }
        }
    }

    /// The floats of the rows `from..to` of a block as doubles.
    pub(super) fn doubles<'a>(
        &'a self,
        simd: Simd,
        block: usize,
        rows: (usize, usize),
        data_type: DataType,
        buffer: &'a mut [f64; BLOCK],
    ) -> &'a [f64] {
        let start = block * BLOCK;
        match self {
            Form::Raw(raw) => raw.doubles((start + rows.0, start + rows.1), buffer),
            Form::Encoded(..) => {
                let mut keys = [0; BLOCK];
                self.block_keys(simd, block, rows, data_type, &mut keys);
                let keys = &keys[rows.0..rows.1];
                if data_type == DataType::Real {
                    buffer.iter_mut().zip(keys).for_each(|(out, key)| *out = f64::from(real_of_key(*key)));
                } else {
                    buffer.iter_mut().zip(keys).for_each(|(out, key)| *out = double_of_key(*key));
                }
                &buffer[..keys.len()]
            }
        }
    }

    /// Bytes of memory.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Form::Raw(raw) => raw.bytes(),
            Form::Encoded(integers, meaning) => integers.bytes() + meaning.bytes(),
        }
    }

    /// How the column is stored.
    pub(super) fn encoding(&self) -> Encoding {
        match self {
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
}
