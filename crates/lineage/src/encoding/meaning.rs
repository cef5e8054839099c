//! What the integers of a column stand for, as each meaning says it in a file of its own.
//!
//! A meaning that says only what must be said is read value by value. What else it says makes it quicker: which integers pass a
//! test, keys a block at a time, rows as an array; and that a value has one code, so that a merge changes codes alone.
use arrow_array::ArrayRef;
use arrow_buffer::NullBuffer;
use types::DataType;

use super::keys::{key_of_word, word_of_key};
use super::predicate::{Intervals, KeyOrder, Test};
use super::simd::{BlockBits, Simd};
use crate::value::cell::Cell;
use crate::value::column_builder::ColumnBuilder;

/// See the module. Zone keys are keys of the values, unless a meaning says otherwise; one of a wide type has to.
pub(super) trait IntegerMeaning {
    /// The value at `slot`, where the integer is this; it is not NULL.
    fn value(&self, slot: usize, integer: i64, data_type: DataType) -> Cell<'_>;

    /// Bytes of memory beside the integers.
    fn bytes(&self) -> usize;

    /// Turns the integers of the rows from `from` on into keys; of a type that has keys.
    fn replace_by_keys(&self, _: Simd, from: usize, integers: &mut [i64], data_type: DataType) {
        for (slot, integer) in (from..).zip(integers) {
            match self.value(slot, *integer, data_type) {
                Cell::Word(word) => *integer = key_of_word(word, data_type),
                Cell::Null | Cell::Bytes(_) => unreachable!("wide types have no keys"),
            }
        }
    }

    /// The rows from `from` on, with these integers, as an Arrow array; of a wide type.
    fn array(&self, from: usize, integers: &[i64], data_type: DataType, nulls: Option<NullBuffer>) -> ArrayRef {
        let mut builder = ColumnBuilder::new(data_type, integers.len());
        for (row, integer) in integers.iter().enumerate() {
            let is_null = nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
            builder.push(if is_null { Cell::Null } else { self.value(from + row, *integer, data_type) });
        }
        builder.finish()
    }

    /// Whether the integers are the zone keys.
    fn has_zone_keys(&self) -> bool {
        false
    }

    /// The value of a zone key.
    fn zone_value(&self, key: i64, data_type: DataType) -> Cell<'_> {
        Cell::Word(word_of_key(key, data_type))
    }

    /// The zone keys that pass a test.
    fn zone_keys_of(&self, test: &Test, data_type: DataType) -> Intervals {
        let _ = data_type;
        Intervals::of_ranges(&test.ranges(&KeyOrder))
    }

    /// The integers whose values have these zone keys, but for [exceptions](IntegerMeaning::correct); `None` if that can't be said
    /// as intervals, and keys must be looked at.
    fn integers_of(&self, zone_keys: &Intervals) -> Option<Intervals> {
        self.has_zone_keys().then(|| zone_keys.clone())
    }

    /// Corrects the bits of the rows from..to, of one block, whose integers do not tell their values. Bit 0 is row `from`.
    fn correct(&self, rows: (usize, usize), zone_keys: &Intervals, bits: &mut BlockBits) {
        let _ = (rows, zone_keys, bits);
    }

    /// Whether each value has an integer of its own, in whichever row it stands, so that it can be put into other rows.
    fn has_codes(&self) -> bool {
        false
    }

    /// The integer of a value that is not NULL, where values have one and this value is among them.
    fn code_of(&self, value: Cell<'_>, data_type: DataType) -> Option<i64> {
        let _ = (value, data_type);
        None
    }
}

/// The integers are the keys of the values.
#[derive(Clone)]
pub(super) struct Keys;

impl IntegerMeaning for Keys {
    #[inline]
    fn value(&self, _: usize, integer: i64, data_type: DataType) -> Cell<'_> {
        Cell::Word(word_of_key(integer, data_type))
    }

    fn bytes(&self) -> usize {
        0
    }

    fn replace_by_keys(&self, _: Simd, _: usize, _: &mut [i64], _: DataType) {}

    fn has_zone_keys(&self) -> bool {
        true
    }
}
