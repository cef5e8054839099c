//! Every value comes back from every form, bit by bit; the choice of an encoding is sensible and never costs memory.
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use types::{DataType, Value};

use super::super::{EncodedColumn, Encoding};
use super::{Random, SHAPES, Shape, TYPES, array_of, cells, forms, values};
use crate::value::cell::{Cell, cell_of_value, is_wide};

/// Cells, whole decoding and decoding of parts agree with the array.
fn assert_same(column: &EncodedColumn, array: &ArrayRef, data_type: DataType, what: &str) {
    assert_eq!(column.len(), array.len());
    let expected = cells(array, data_type);
    let decoded = column.decode(0, column.len());
    assert_eq!(decoded.data_type(), array.data_type());
    decoded.to_data().validate_full().expect("decoded arrays are valid");
    let all = cells(&decoded, data_type);
    let encoding = column.encoding();
    for slot in 0..array.len() {
        assert_eq!(column.cell(slot), expected.get(slot), "cell {slot}, {what}, {encoding:?}");
        assert_eq!(all.get(slot), expected.get(slot), "decoded {slot}, {what}, {encoding:?}");
    }
    for (from, to) in [(0, 1), (1, 1), (5, 1_030), (1_000, 1_090), (1_023, 1_025), (1_024, 1_024), (900, array.len())] {
        if from <= to && to <= array.len() {
            let part = column.decode(from, to);
            assert_eq!(part.len(), to - from);
            let part = cells(&part, data_type);
            assert!((from..to).all(|slot| part.get(slot - from) == expected.get(slot)), "{from}..{to}, {what}");
            if !is_wide(data_type) {
                let mut words = Vec::new();
                column.each_word(from, to, |at, word| words.push((at, word)));
                let wanted = (from..to).map(|slot| (slot - from, expected.get(slot).word()));
                assert!(words.into_iter().eq(wanted), "words {from}..{to}, {what}, {encoding:?}");
            }
            let some: Vec<u32> = (0..(to - from) as u32).filter(|at| at % 7 < 2).collect();
            if let Some(picked) = column.pick(from, &some) {
                assert_eq!((picked.len(), picked.data_type()), (some.len(), array.data_type()));
                let picked = cells(&picked, data_type);
                let is_right = |(place, at): (usize, &u32)| picked.get(place) == expected.get(from + *at as usize);
                assert!(some.iter().enumerate().all(is_right), "some of {from}..{to}, {what}");
            }
        }
    }
}

#[test]
fn every_value_comes_back_from_every_form() {
    let mut random = Random::new(1);
    for data_type in TYPES {
        for shape in SHAPES {
            for len in [0, 1, 1_023, 1_024, 1_025, 2_500] {
                for null_percent in [0, 10, 100] {
                    let array = array_of(data_type, &values(data_type, shape, len, null_percent, &mut random));
                    let what = format!("{data_type} {shape:?} {len} {null_percent}% NULL");
                    for column in forms(&array, data_type) {
                        assert_same(&column, &array, data_type, &what);
                    }
                }
            }
        }
    }
}

#[test]
fn full_pages_of_every_type_come_back() {
    let mut random = Random::new(2);
    for (i, data_type) in TYPES.into_iter().enumerate() {
        let shape = SHAPES[i % SHAPES.len()];
        let array = array_of(data_type, &values(data_type, shape, 65_536, (i % 2) * 3, &mut random));
        let column = EncodedColumn::encode(&array, data_type);
        assert_same(&column, &array, data_type, &format!("{data_type} {shape:?}"));
    }
}

#[test]
fn slices_of_arrays_are_encoded_as_they_are() {
    let mut random = Random::new(3);
    for data_type in TYPES {
        let array = array_of(data_type, &values(data_type, Shape::Narrow, 3_000, 20, &mut random)).slice(77, 2_100);
        for column in forms(&array, data_type) {
            assert_same(&column, &array, data_type, &data_type.to_string());
        }
    }
}

#[test]
fn an_encoding_never_takes_more_than_the_raw_values() {
    let mut random = Random::new(4);
    for data_type in TYPES {
        for shape in SHAPES {
            for len in [0, 1, 3, 100, 1_024, 5_000] {
                let array = array_of(data_type, &values(data_type, shape, len, 5, &mut random));
                let encoded = EncodedColumn::encode(&array, data_type).bytes();
                let raw = EncodedColumn::raw(array, data_type).bytes();
                assert!(encoded <= raw, "{data_type} {shape:?} {len}: {encoded} > {raw}");
            }
        }
    }
}

#[test]
fn the_encoding_fits_the_values() {
    let mut random = Random::new(5);
    let mut encoding = |data_type: DataType, shape: Shape| {
        let array = array_of(data_type, &values(data_type, shape, 20_000, 0, &mut random));
        EncodedColumn::encode(&array, data_type).encoding()
    };
    for data_type in TYPES {
        assert_eq!(encoding(data_type, Shape::Constant), Encoding::Constant, "{data_type}");
    }
    assert_eq!(encoding(DataType::BigInt, Shape::Runs), Encoding::RunLength);
    assert_eq!(encoding(DataType::BigInt, Shape::Ascending), Encoding::FrameOfReference);
    assert_eq!(encoding(DataType::Integer, Shape::Narrow), Encoding::FrameOfReference);
    assert_eq!(encoding(DataType::Decimal { precision: 15, scale: 2 }, Shape::Any), Encoding::FrameOfReference);
    assert_eq!(encoding(DataType::BigInt, Shape::Few), Encoding::Dictionary);
    assert_eq!(encoding(DataType::TEXT, Shape::Few), Encoding::Dictionary);
    assert_eq!(encoding(DataType::Uuid, Shape::Runs), Encoding::Dictionary);
    assert_eq!(encoding(DataType::Double, Shape::Narrow), Encoding::Float);
    assert_eq!(encoding(DataType::Real, Shape::Ascending), Encoding::Float);
    assert_eq!(encoding(DataType::BigInt, Shape::Any), Encoding::Raw);
    assert_eq!(encoding(DataType::Double, Shape::Any), Encoding::Raw);
    assert_eq!(encoding(DataType::TEXT, Shape::Ascending), Encoding::Raw);
}

#[test]
fn nulls_cost_a_block_no_width() {
    let value = |i: i64| match i % 1_024 {
        0..5 => Value::Null,
        row => Value::BigInt(i / 1_024 * 1_000_000_000_000 + row),
    };
    let array = array_of(DataType::BigInt, &(0..10 * 1_024).map(value).collect::<Vec<_>>());
    let column = EncodedColumn::encode(&array, DataType::BigInt);
    assert_eq!(column.encoding(), Encoding::FrameOfReference);
    assert!(column.bytes() < 10 * 1_024 * 2, "ten bits a value: {}", column.bytes());
}

#[test]
fn text_is_decoded_without_a_copy_of_its_bytes() {
    let texts: Vec<Value> = (0..5_000).map(|i| format!("one of seven long texts: {}", i % 7).into()).collect();
    let array = array_of(DataType::TEXT, &texts);
    for column in forms(&array, DataType::TEXT) {
        let (one, other) = (column.decode(10, 3_000), column.decode(2_000, 5_000));
        let address = |array: &ArrayRef| array.as_string_view().data_buffers()[0].as_ptr();
        assert_eq!(address(&one), address(&other), "{:?}", column.encoding());
    }
    let raw = EncodedColumn::raw(array_of(DataType::BigInt, &[Value::BigInt(1), Value::BigInt(2)]), DataType::BigInt);
    let values = |array: &ArrayRef| array.as_primitive::<arrow_array::types::Int64Type>().values().as_ptr();
    assert_eq!(values(&raw.decode(1, 2)), values(&raw.decode(0, 2)).wrapping_add(1));
}

#[test]
fn zones_are_exact() {
    let mut random = Random::new(6);
    for data_type in TYPES {
        for shape in SHAPES {
            let rows = values(data_type, shape, 2_500, 30, &mut random);
            let array = array_of(data_type, &rows);
            for column in forms(&array, data_type) {
                for (from, to) in [(0, 2_500), (0, 1_024), (1_024, 2_048), (2_048, 2_500)] {
                    let zone = column.zone(from, to);
                    let mut twin = super::super::Aggregates::new(data_type);
                    (from..to).for_each(|slot| twin.add(column.cell(slot)));
                    assert_eq!(zone.null_count, to - from - twin.count as usize);
                    for (found, expected) in [(&zone.min, &twin.min), (&zone.max, &twin.max)] {
                        assert!(same(found, expected, data_type), "{data_type} {shape:?}: {found:?}, not {expected:?}");
                    }
                }
            }
        }
    }
}

/// Equal bit by bit: NaN is itself.
pub(super) fn same(left: &Option<Value>, right: &Option<Value>, data_type: DataType) -> bool {
    let cell = |value: &Option<Value>| {
        let mut scratch = crate::value::cell::Scratch::default();
        match cell_of_value(value.as_ref().unwrap_or(&Value::Null), data_type, &mut scratch) {
            Cell::Null => None,
            Cell::Word(word) => Some(word.to_le_bytes().to_vec()),
            Cell::Bytes(bytes) => Some(bytes.to_vec()),
        }
    };
    cell(left) == cell(right)
}
