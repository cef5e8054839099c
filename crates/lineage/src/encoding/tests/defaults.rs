//! What a meaning of integers leaves out is worked out value by value, and comes to what the meanings say that have it.
use types::DataType;

use super::super::form::{Form, Meaning, TranslatedTest};
use super::super::integers::Integers;
use super::super::meaning::{IntegerMeaning, Keys};
use super::super::simd::{BLOCK, BLOCK_WORDS, Simd};
use super::super::{EncodedColumn, Test};
use super::{Random, SHAPES, TYPES, array_of, forms, some_test, values};
use crate::value::cell::{Cell, is_wide};

/// A meaning that says no more than it must.
struct OnlyValues<'a, M>(&'a M);

impl<M: IntegerMeaning> IntegerMeaning for OnlyValues<'_, M> {
    fn value(&self, slot: usize, integer: i64, data_type: DataType) -> Cell<'_> {
        self.0.value(slot, integer, data_type)
    }

    fn bytes(&self) -> usize {
        self.0.bytes()
    }
}

fn check(meaning: &impl IntegerMeaning, integers: &Integers, column: &EncodedColumn) {
    let (simd, data_type, len) = (Simd::best(), column.data_type, column.len.min(BLOCK));
    let (mut said, slow) = (integers.rows(0, len), OnlyValues(meaning));
    if is_wide(data_type) {
        let nulls = column.nulls.as_ref().map(|nulls| nulls.slice(0, len));
        assert_eq!(
            &slow.array(0, &said, data_type, nulls.clone()),
            &meaning.array(0, &said, data_type, nulls),
            "{data_type}"
        );
        return;
    }
    let mut found = said.clone();
    slow.replace_by_keys(simd, 0, &mut found, data_type);
    meaning.replace_by_keys(simd, 0, &mut said, data_type);
    assert_eq!(found, said, "{data_type}");
}

#[test]
fn values_one_by_one_say_what_a_meaning_says_of_a_block() {
    let mut random = Random::new(7);
    for data_type in TYPES {
        for shape in SHAPES {
            let rows = values(data_type, shape, 1_500, 10, &mut random);
            for column in forms(&array_of(data_type, &rows), data_type) {
                match &column.form {
                    Form::Raw(_) => {}
                    Form::Encoded(integers, Meaning::Keys) => check(&Keys, integers, &column),
                    Form::Encoded(integers, Meaning::Lookup(lookup)) => check(lookup, integers, &column),
                    Form::Encoded(integers, Meaning::Entries(entries)) => check(entries, integers, &column),
                    Form::Encoded(integers, Meaning::Float(alp)) => check(alp, integers, &column),
                }
            }
        }
    }
}

#[test]
fn keys_are_looked_at_where_integers_tell_nothing_of_a_test() {
    let mut random = Random::new(8);
    for data_type in TYPES.into_iter().filter(|data_type| !is_wide(*data_type)) {
        for shape in SHAPES {
            let rows = values(data_type, shape, 900, 10, &mut random);
            let tests = (0..20).map(|_| some_test(data_type, shape, &rows, &mut random));
            let tests: Vec<Test> = tests.filter(|test| !matches!(test, Test::IsNull | Test::IsNotNull)).collect();
            for column in forms(&array_of(data_type, &rows), data_type) {
                for test in &tests {
                    let told = column.form.translate(test, data_type);
                    let untold = TranslatedTest { zone: told.zone.clone(), integers: None };
                    let [told, untold] = [told, untold].map(|test| {
                        let mut bits = [0; BLOCK_WORDS];
                        column.form.find(Simd::best(), 0, (0, rows.len()), &test, data_type, &mut bits);
                        bits
                    });
                    for row in (0..rows.len()).filter(|row| !column.is_null(*row)) {
                        let bit = |bits: &[u64]| bits[row / 64] >> (row % 64) & 1;
                        assert_eq!(bit(&told), bit(&untold), "{data_type} {test:?} row {row}");
                    }
                }
            }
        }
    }
}
