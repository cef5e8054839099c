//! Tests and aggregates on encoded columns say what they say of the values one by one.
use std::sync::Arc;

use arrow_array::{Array, Scalar};
use arrow_ord::cmp;
use proptest::prelude::*;
use types::{DataType, Numeric, Value};

use super::super::{Aggregates, CellTest, Comparison, Encoding, KeyFilter, KeySet, Mask, Sum, Test};
use super::columns::same;
use super::{Random, SHAPES, Shape, TYPES, array_of, cells, forms, some_test, values};
use crate::value::cell::{Cell, Scratch, cell_of_value, is_wide};

#[test]
fn a_test_passes_what_arrows_kernels_pass() {
    let mut random = Random::new(21);
    for data_type in TYPES {
        for shape in SHAPES {
            let rows = values(data_type, shape, 400, 10, &mut random);
            let array = array_of(data_type, &rows);
            for literal in rows.iter().take(20) {
                let scalar = Scalar::new(array_of(data_type, std::slice::from_ref(literal)));
                let kernels = [
                    (Comparison::Eq, cmp::eq(&array, &scalar)),
                    (Comparison::NotEq, cmp::neq(&array, &scalar)),
                    (Comparison::Less, cmp::lt(&array, &scalar)),
                    (Comparison::LessOrEqual, cmp::lt_eq(&array, &scalar)),
                    (Comparison::Greater, cmp::gt(&array, &scalar)),
                    (Comparison::GreaterOrEqual, cmp::gt_eq(&array, &scalar)),
                ];
                for (comparison, passing) in kernels {
                    let passing = passing.expect("both sides have one type");
                    let test = Test::Compare(comparison, literal.clone());
                    for (row, value) in rows.iter().enumerate() {
                        let mut scratch = Scratch::default();
                        let cell = cell_of_value(value, data_type, &mut scratch);
                        let expected = passing.is_valid(row) && passing.value(row);
                        assert_eq!(test.passes(cell, data_type), expected, "{value:?} {test:?}");
                        assert_eq!(CellTest::new(&test, data_type).passes(cell), expected, "{value:?} {test:?}");
                        // As one of many words, the others of which are NULL.
                        let (words, nulls) = match cell {
                            Cell::Word(word) => ([0, 0, word], 0b011),
                            Cell::Null => ([7, 7, 7], 0b111),
                            Cell::Bytes(_) => continue,
                        };
                        let passing = CellTest::new(&test, data_type).passing(&words, nulls);
                        assert_eq!(passing, u64::from(expected) << 2, "{value:?} {test:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn lists_ranges_and_prefixes_are_made_of_comparisons() {
    let passes = |test: &Test, value: &Value, data_type: DataType| {
        let mut scratch = Scratch::default();
        let cell = cell_of_value(value, data_type, &mut scratch);
        let passes = test.passes(cell, data_type);
        assert_eq!(CellTest::new(test, data_type).passes(cell), passes, "{value:?} {test:?}");
        passes
    };
    let number = |number: i64| Value::BigInt(number);
    let between = Test::Between(number(2), number(4));
    let list = Test::In(vec![number(2), Value::Null, number(9)]);
    for (value, is_between, is_listed) in
        [(1, false, false), (2, true, true), (4, true, false), (5, false, false), (9, false, true)]
    {
        assert_eq!(passes(&between, &number(value), DataType::BigInt), is_between);
        assert_eq!(passes(&list, &number(value), DataType::BigInt), is_listed);
    }
    assert!(!passes(&Test::Between(Value::Null, number(4)), &number(1), DataType::BigInt));
    assert!(!passes(&Test::In(vec![Value::Null]), &Value::Null, DataType::BigInt));
    let prefix = Test::Prefix(b"ab".to_vec());
    assert!(passes(&prefix, &"abc".into(), DataType::TEXT) && passes(&prefix, &"ab".into(), DataType::TEXT));
    assert!(!passes(&prefix, &"a".into(), DataType::TEXT) && !passes(&prefix, &Value::Null, DataType::TEXT));
    assert!(
        passes(&Test::IsNull, &Value::Null, DataType::TEXT) && !passes(&Test::IsNotNull, &Value::Null, DataType::TEXT)
    );
}

#[test]
fn literals_beyond_the_type_decide() {
    let decimal = DataType::Decimal { precision: 15, scale: 2 };
    let array = array_of(decimal, &(0..3_000).map(|i| Value::decimal(i * 7, 2)).collect::<Vec<_>>());
    let huge = |sign: i128| Value::decimal(sign * 10i128.pow(36), 2);
    for column in forms(&array, decimal) {
        let count = |test: Test| {
            let mut mask = Mask::new_all(3_000);
            column.select(0, &test, &mut mask);
            mask.count()
        };
        assert_eq!(count(Test::Compare(Comparison::Less, huge(1))), 3_000);
        assert_eq!(count(Test::Compare(Comparison::Less, huge(-1))), 0);
        assert_eq!(count(Test::Compare(Comparison::Eq, huge(1))), 0);
        assert_eq!(count(Test::Compare(Comparison::NotEq, huge(1))), 3_000);
        assert_eq!(count(Test::Between(huge(-1), huge(1))), 3_000);
        assert_eq!(count(Test::Between(huge(1), huge(-1))), 0);
    }
}

#[test]
fn numerics_pass_by_their_numbers_whatever_decimals_they_show() {
    let number = |units: i128, decimals: u32| Value::from(Numeric::new(units * 10_i128.pow(decimals), decimals));
    let rows: Vec<Value> = (0..3_000).map(|i| number(i / 3 % 10, i as u32 % 4)).collect();
    for column in forms(&array_of(DataType::Numeric, &rows), DataType::Numeric) {
        let count = |test: Test| {
            let mut mask = Mask::new_all(3_000);
            column.select(0, &test, &mut mask);
            mask.count()
        };
        assert_eq!(count(Test::Compare(Comparison::Eq, number(7, 5))), 300);
        assert_eq!(count(Test::Compare(Comparison::NotEq, number(7, 0))), 2_700);
        assert_eq!(count(Test::Compare(Comparison::Less, number(7, 2))), 2_100);
        assert_eq!(count(Test::Compare(Comparison::LessOrEqual, number(7, 0))), 2_400);
        assert_eq!(count(Test::Compare(Comparison::Greater, number(7, 1))), 600);
        assert_eq!(count(Test::Compare(Comparison::GreaterOrEqual, number(7, 3))), 900);
        assert_eq!(count(Test::Between(number(2, 3), number(4, 0))), 900);
        assert_eq!(count(Test::In(vec![number(0, 1), number(9, 0)])), 600);
    }
}

fn assert_sums_agree(found: &Aggregates, expected: &Aggregates, data_type: DataType) -> Result<(), TestCaseError> {
    prop_assert_eq!(found.count, expected.count);
    prop_assert!(same(&found.min, &expected.min, data_type), "{:?}, not {:?}", found.min, expected.min);
    prop_assert!(same(&found.max, &expected.max, data_type), "{:?}, not {:?}", found.max, expected.max);
    prop_assert_eq!(found.sum_overflows, expected.sum_overflows);
    match (found.sum, expected.sum) {
        (Sum::Float(left), Sum::Float(right)) if left.is_finite() && right.is_finite() => {
            // Another order of addition: as good as the greatest partial sum allows.
            let greatest = [&found.min, &found.max].into_iter().flatten().map(|value| match value {
                Value::Double(value) => value.abs(),
                Value::Real(value) => f64::from(value.abs()),
                _ => 0.0,
            });
            let scale = greatest.fold(0.0, f64::max) * found.count as f64;
            prop_assert!((left - right).abs() <= scale * 1e-12, "{left}, not {right}");
        }
        // Sums of huge values can overflow or become NaN in one order and not in another.
        (Sum::Float(_), Sum::Float(_)) => {}
        (left, right) => prop_assert_eq!(left, right),
    }
    Ok(())
}

proptest! {
    #![proptest_config(super::cases(150))]

    #[test]
    fn encoded_columns_select_and_aggregate_like_their_values(
        seed: u64, kind in 0..TYPES.len(), shape in 0..SHAPES.len(), len in 0..3_000usize, nulls in 0..4usize,
        bounds: (u16, u16), rounds in 1..4usize,
    ) {
        let (data_type, shape) = (TYPES[kind], SHAPES[shape]);
        let mut random = Random::new(seed);
        let rows = values(data_type, shape, len, [0, 0, 15, 100][nulls], &mut random);
        let array = array_of(data_type, &rows);
        let expected = cells(&array, data_type);
        let (one, other) = (usize::from(bounds.0) % (len + 1), usize::from(bounds.1) % (len + 1));
        let (from, to) = (one.min(other), one.max(other));
        let tests: Vec<Test> = (0..rounds).map(|_| some_test(data_type, shape, &rows, &mut random)).collect();
        for column in forms(&array, data_type) {
            let what = format!("{data_type} {shape:?} {from}..{to} of {len}, {:?}", column.encoding());
            let mut mask = Mask::new_all(to - from);
            for (i, test) in tests.iter().enumerate() {
                column.select(from, test, &mut mask);
                for slot in from..to {
                    let passes = tests[..=i].iter().all(|test| test.passes(expected.get(slot), data_type));
                    prop_assert_eq!(mask.get(slot - from), passes, "row {}, {:?}, {}", slot, &tests[..=i], &what);
                }
                let mut twin = Aggregates::new(data_type);
                mask.rows().for_each(|row| twin.add(expected.get(from + row)));
                assert_sums_agree(&column.aggregate(from, to, Some(&mask)), &twin, data_type)?;
            }
            let mut twin = Aggregates::new(data_type);
            (from..to).for_each(|slot| twin.add(expected.get(slot)));
            assert_sums_agree(&column.aggregate(from, to, None), &twin, data_type)?;
        }
    }
}

#[test]
fn keys_of_a_join_are_found_in_every_form_once_they_are_known() {
    let mut random = Random::new(45);
    for data_type in [DataType::SmallInt, DataType::Integer, DataType::BigInt, DataType::Date] {
        for shape in SHAPES {
            let array = array_of(data_type, &values(data_type, shape, 5_000, 10, &mut random));
            let expected = cells(&array, data_type);
            for column in forms(&array, data_type) {
                let filter = Arc::new(KeyFilter::default());
                let test = Test::Among(filter.clone());
                let mut mask = Mask::new_all(5_000);
                column.select(0, &test, &mut mask);
                assert_eq!(mask.count(), 5_000, "all rows pass while nothing is known");
                let some: Vec<usize> = (0..200).map(|_| random.below(5_000)).collect();
                let key =
                    |row: &usize| if let Cell::Word(word) = expected.get(*row) { Some(word as i64) } else { None };
                filter.publish(KeySet::of(&[some.iter().filter_map(key).collect()]));
                for keep in [1, 50] {
                    let mut mask = Mask::new_all(4_900);
                    (0..4_900).filter(|row| row % keep != 0).for_each(|row| mask.clear(row));
                    column.select(77, &test, &mut mask);
                    for row in 0..4_900 {
                        let passes = row % keep == 0 && test.passes(expected.get(row + 77), data_type);
                        assert_eq!(mask.get(row), passes, "row {row}, {data_type} {shape:?}, {:?}", column.encoding());
                    }
                }
                assert!(some.iter().all(|row| key(row).is_none() || test.passes(expected.get(*row), data_type)));
            }
        }
    }
}

#[test]
fn the_parts_of_a_sum_make_the_whole() {
    let mut random = Random::new(33);
    for data_type in TYPES {
        let array = array_of(data_type, &values(data_type, Shape::Narrow, 5_000, 10, &mut random));
        for column in forms(&array, data_type) {
            let whole = column.aggregate(0, 5_000, None);
            let mut parts = Aggregates::new(data_type);
            for from in (0..5_000).step_by(777) {
                parts.merge(&column.aggregate(from, 5_000.min(from + 777), None));
            }
            assert_eq!((parts.count, parts.sum_overflows), (whole.count, whole.sum_overflows));
            assert!(same(&parts.min, &whole.min, data_type) && same(&parts.max, &whole.max, data_type));
            if let (Sum::Integer(parts), Sum::Integer(whole)) = (parts.sum, whole.sum) {
                assert_eq!(parts, whole);
            }
        }
    }
}

#[test]
fn sums_of_the_greatest_integers_do_not_overflow() {
    let array = array_of(DataType::BigInt, &vec![Value::BigInt(i64::MAX); 5_000]);
    for column in forms(&array, DataType::BigInt) {
        let mut mask = Mask::new_all(5_000);
        mask.clear(17);
        assert_eq!(column.aggregate(0, 5_000, None).sum, Sum::Integer(i128::from(i64::MAX) * 5_000));
        assert_eq!(column.aggregate(0, 5_000, Some(&mask)).sum, Sum::Integer(i128::from(i64::MAX) * 4_999));
    }
}

#[test]
fn floats_as_integers_are_found_at_both_ends_of_an_interval() {
    let double = |i: usize| Value::Double(i as f64 / 100.0);
    let mut rows: Vec<Value> = (0..3_000).map(|i| double(i * 7 % 3_000)).collect();
    rows[1_500] = Value::Double(f64::NAN);
    rows[40] = Value::Double(-0.0);
    let array = array_of(DataType::Double, &rows);
    let columns = forms(&array, DataType::Double);
    assert!(columns.iter().filter(|column| column.encoding() == Encoding::Float).count() >= 2);
    for column in columns {
        for i in (0..3_000).step_by(61) {
            let tests = [
                Test::Compare(Comparison::Eq, double(i)),
                Test::Compare(Comparison::LessOrEqual, double(i)),
                Test::Compare(Comparison::Greater, double(i)),
                Test::Between(double(i), double(i + 5)),
            ];
            for test in tests {
                let mut mask = Mask::new_all(3_000);
                column.select(0, &test, &mut mask);
                let passes = |row: &usize| test.passes(cells(&array, DataType::Double).get(*row), DataType::Double);
                assert!(mask.rows().eq((0..3_000).filter(passes)), "{test:?}, {:?}", column.encoding());
            }
        }
    }
}

#[test]
fn a_prefix_is_found_in_blocks_whose_extremes_have_it_or_not() {
    let texts: Vec<Value> =
        (0..4_000).map(|i| format!("{}{i:05}", if i < 2_048 { "ab" } else { "b" }).into()).collect();
    let array = array_of(DataType::TEXT, &texts);
    assert!(is_wide(DataType::TEXT));
    for column in forms(&array, DataType::TEXT) {
        for (prefix, count) in [("ab", 2_048), ("", 4_000), ("b", 1_952), ("a", 2_048), ("abc", 0), ("b039", 100)] {
            let mut mask = Mask::new_all(4_000);
            column.select(0, &Test::Prefix(prefix.into()), &mut mask);
            assert_eq!(mask.count(), count, "{prefix}");
            assert!(
                mask.rows()
                    .all(|row| matches!(column.cell(row), Cell::Bytes(text) if text.starts_with(prefix.as_bytes())))
            );
        }
    }
}
