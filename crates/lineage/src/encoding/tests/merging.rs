//! A patched column is the column of the patched values.
use proptest::prelude::*;
use types::{DataType, Value};

use super::super::{EncodedColumn, Encoding};
use super::{Random, SHAPES, Shape, TYPES, array_of, cells, forms, value, values};
use crate::value::cell::{Cell, Scratch, cell_of_value};

/// A copy in which values are put in their places is the patched column, as far as there is room for them.
fn assert_overwritten(
    mut copy: EncodedColumn,
    column: &EncodedColumn,
    patches: &[(usize, Cell<'_>)],
    patched: &EncodedColumn,
) {
    let room = copy.room().expect("copies have room");
    let key = |(slot, cell): &(usize, Cell<'_>)| match cell {
        Cell::Word(word) => Some((*slot, copy.key_of(*word))).filter(|(_, key)| room.has(*key)),
        Cell::Null | Cell::Bytes(_) => None,
    };
    let keys: Vec<(usize, i64)> = patches.iter().filter_map(key).collect();
    // The last one of a slot stays.
    let twice: Vec<(usize, i64)> = keys.iter().rev().chain(&keys).copied().collect();
    copy.overwrite(&twice);
    for slot in 0..column.len() {
        let is_put = keys.iter().any(|(put, _)| *put == slot);
        let expected = if is_put { patched.cell(slot) } else { column.cell(slot) };
        assert_eq!(copy.cell(slot), expected, "{slot}, {}, {:?}", column.data_type, column.encoding());
    }
    if keys.len() == patches.len() && patched.nulls.is_none() {
        assert!(copy.zone(0, column.len()) == patched.zone(0, column.len()), "{}", column.data_type);
        assert!(copy.zones_totals() == patched.zones_totals(), "{}", column.data_type);
    }
}

/// Patches some rows of every form and compares with the column made of the patched values.
fn assert_patched(data_type: DataType, rows: &[Value], patches: &[(usize, Value)]) {
    let mut scratch: Vec<Scratch> = patches.iter().map(|_| Scratch::default()).collect();
    let pairs = patches.iter().zip(&mut scratch);
    let patch_cells: Vec<(usize, Cell<'_>)> =
        pairs.map(|((slot, value), scratch)| (*slot, cell_of_value(value, data_type, scratch))).collect();
    let mut expected = rows.to_vec();
    patches.iter().for_each(|(slot, value)| expected[*slot] = value.clone());
    let array = array_of(data_type, &expected);
    let expected = cells(&array, data_type);
    let rebuilt = EncodedColumn::encode(&array, data_type);
    for column in forms(&array_of(data_type, rows), data_type) {
        let patched = column.patched(&patch_cells);
        assert_eq!(patched.len(), rows.len());
        for slot in 0..rows.len() {
            assert_eq!(patched.cell(slot), expected.get(slot), "{slot}, {data_type}, {:?}", column.encoding());
        }
        let (found, wanted) = (patched.zone(0, rows.len()), rebuilt.zone(0, rows.len()));
        assert_eq!(found.null_count, wanted.null_count);
        assert!(super::columns::same(&found.min, &wanted.min, data_type));
        assert!(super::columns::same(&found.max, &wanted.max, data_type));
        if let Some(copy) = column.copy() {
            assert_overwritten(copy, &column, &patch_cells, &patched);
        }
        let decoded = patched.decode(0, rows.len());
        decoded.to_data().validate_full().expect("patched arrays are valid");
        assert!((0..rows.len()).all(|slot| cells(&decoded, data_type).get(slot) == expected.get(slot)));
    }
}

proptest! {
    #![proptest_config(super::cases(100))]

    #[test]
    fn a_patched_column_holds_the_new_values_and_the_old_ones(
        seed: u64, kind in 0..TYPES.len(), shape in 0..SHAPES.len(), len in 1..2_500usize, nulls in 0..3usize,
        patch_percent in 0..100usize,
    ) {
        let (data_type, shape) = (TYPES[kind], SHAPES[shape]);
        let mut random = Random::new(seed);
        let rows = values(data_type, shape, len, [0, 20, 100][nulls], &mut random);
        let new_shape = SHAPES[random.below(SHAPES.len())];
        let slots: Vec<usize> = (0..len).filter(|_| random.below(100) < patch_percent).collect();
        let patches: Vec<(usize, Value)> = slots
            .into_iter()
            .map(|slot| match random.below(10) {
                0 => (slot, Value::Null),
                _ => (slot, value(data_type, new_shape, slot, &mut random)),
            })
            .collect();
        assert_patched(data_type, &rows, &patches);
    }
}

/// Numbers that fill their lanes are overwritten in a copy: totals and extremes are those of the column made anew, whether the
/// new values are within the old ones, within the room beside them or beyond, or leave only a narrow span.
#[test]
fn plain_distances_are_overwritten() {
    let mut random = Random::new(5);
    let any = |random: &mut Random, span: usize| 1_000_000 + random.below(span) as i64;
    for (span, len) in [(1 << 31, 5_000), (1 << 15, 2_048), (250, 1_500), (1 << 31, 1)] {
        let mut rows: Vec<i64> = (0..len).map(|_| any(&mut random, span)).collect();
        let array_of_rows = |rows: &[i64]| {
            let values: Vec<Value> = rows.iter().map(|row| Value::BigInt(*row)).collect();
            EncodedColumn::encode(&array_of(DataType::BigInt, &values), DataType::BigInt)
        };
        let mut column = array_of_rows(&rows);
        for round in 0..12 {
            let room = (span / 20) as i64;
            let mut patches: Vec<(usize, i64)> = Vec::new();
            for slot in (0..len).filter(|slot| (slot + round) % 7 == 0) {
                let value = match round {
                    3 => any(&mut random, span) - room,
                    4 => any(&mut random, span) + room,
                    5 => any(&mut random, span) * 1_000_000_007,
                    _ => any(&mut random, span),
                };
                patches.push((slot, value));
            }
            patches.iter().for_each(|(slot, value)| rows[*slot] = *value);
            let cells: Vec<_> = patches.iter().map(|(slot, value)| (*slot, Cell::Word(*value as u64))).collect();
            column = column.patched(&cells);
            let rebuilt = array_of_rows(&rows);
            assert!((0..len).all(|slot| column.word(slot) == Some(rows[slot] as u64)), "round {round}");
            assert_eq!(column.zones_totals(), rebuilt.zones_totals());
            assert_eq!(column.aggregate(0, len, None), rebuilt.aggregate(0, len, None));
            for from in (0..len).step_by(1024) {
                assert_eq!(column.zone(from, len.min(from + 1024)), rebuilt.zone(from, len.min(from + 1024)));
            }
        }
        let narrow: Vec<_> = (0..len).step_by(5).map(|slot| (slot, Cell::Word(7))).collect();
        let all: Vec<_> = (0..len).map(|slot| (slot, Cell::Word(8 + slot as u64 % 3))).collect();
        let column = column.patched(&narrow).patched(&all);
        assert!(len < 10 || column.bytes() * 8 < rows.len() * 64, "what became narrow is packed anew");
    }
}

#[test]
fn few_patches_keep_the_encoding() {
    let mut random = Random::new(8);
    for (data_type, shape, encoding) in [
        (DataType::BigInt, Shape::Narrow, Encoding::FrameOfReference),
        (DataType::BigInt, Shape::Few, Encoding::Dictionary),
        (DataType::BigInt, Shape::Any, Encoding::Raw),
        (DataType::Double, Shape::Narrow, Encoding::Float),
        (DataType::TEXT, Shape::Few, Encoding::Dictionary),
        (DataType::TEXT, Shape::Any, Encoding::Raw),
    ] {
        let array = array_of(data_type, &values(data_type, shape, 10_000, 0, &mut random));
        let column = EncodedColumn::encode(&array, data_type);
        assert_eq!(column.encoding(), encoding);
        let new = value(data_type, shape, 5, &mut random);
        let mut scratch = Scratch::default();
        let patched = column.patched(&[(77, cell_of_value(&new, data_type, &mut scratch))]);
        assert_eq!(patched.encoding(), encoding, "{data_type}");
    }
}

#[test]
fn many_merges_of_text_do_not_pile_up_buffers() {
    let long = |i: usize, round: usize| format!("a text that is longer than twelve bytes {i} {round}");
    let rows: Vec<Value> = (0..2_000).map(|i| long(i, 0).into()).collect();
    let mut column = EncodedColumn::encode(&array_of(DataType::TEXT, &rows), DataType::TEXT);
    let at_first = column.bytes();
    for round in 1..60 {
        let texts: Vec<String> = (0..200).map(|i| long(i * 10, round)).collect();
        let patches: Vec<_> =
            texts.iter().enumerate().map(|(i, text)| (i * 10, Cell::Bytes(text.as_bytes()))).collect();
        column = column.patched(&patches);
        assert_eq!(column.cell(50), Cell::Bytes(long(50, round).as_bytes()));
        assert_eq!(column.cell(51), Cell::Bytes(long(51, 0).as_bytes()));
    }
    assert!(column.bytes() < at_first * 3, "{} bytes, {at_first} at first", column.bytes());
}
