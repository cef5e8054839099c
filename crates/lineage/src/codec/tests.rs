//! Encoded values come out again, in every form, and bytes that are cut off are refused.
use types::{DataType, Timestamp, Value};

use super::encode_update_columns;
use super::{BlobKind, Shape, decode_column, decode_history_page, decode_rows, decode_start_times};
use super::{decode_update_columns, encode_column, encode_history_page, encode_rows, encode_start_times};
use crate::content::meta_columns::UpdateColumns;
use crate::content::row_page::RowPage;
use crate::encoding::{EncodedColumn, Encoding};
use crate::history::column::Values;
use crate::history::packed::Packed;
use crate::history::{HistoryPage, NewVersion};
use crate::image::tests::sample::{Random, TYPES, value};
use crate::value::cell::{Cell, Scratch, cell_of_value};
use crate::value::column_builder::ColumnBuilder;
use crate::value::column_set::ColumnSet;
use crate::value::kept::Kept;
use crate::value::kind::Kind;
use crate::value::sketch::Sketch;

/// Columns of a type and this length, as many encodings as it takes.
fn columns_of(data_type: DataType, len: usize) -> Vec<EncodedColumn> {
    let column = |next: &mut dyn FnMut(usize) -> Value| {
        let mut builder = ColumnBuilder::new(data_type, len);
        for slot in 0..len {
            let (value, mut scratch) = (next(slot), Scratch::default());
            builder.push(cell_of_value(&value, data_type, &mut scratch));
        }
        builder.finish()
    };
    let mut random = Random(9);
    let few: Vec<Value> = (0..7).map(|_| value(data_type, &mut random, 1 << 30)).collect();
    let arrays = [
        column(&mut |_| value(data_type, &mut random, 1 << 30)),
        column(&mut |_| value(data_type, &mut random, 300)),
        column(&mut |slot| few[slot / 200 % 7].clone()),
        column(&mut |slot| few[(slot * slot + slot / 3) % 7].clone()),
        column(&mut |_| few.iter().find(|value| !value.is_null()).cloned().unwrap_or(Value::Null)),
        column(&mut |_| Value::Null),
    ];
    let encoded = arrays.iter().map(|array| EncodedColumn::encode(array, data_type));
    encoded.chain(arrays.iter().map(|array| EncodedColumn::raw(array.clone(), data_type))).collect()
}

fn sketch_of(column: &EncodedColumn) -> Sketch {
    let mut sketch = Sketch::default();
    (0..column.len()).for_each(|slot| sketch.add(column.cell(slot)));
    sketch
}

#[test]
fn columns_of_every_type_and_encoding_come_back() {
    let mut encodings = std::collections::HashSet::new();
    for data_type in TYPES {
        for len in [0, 1, 63, 1_024, 2_500] {
            for column in columns_of(data_type, len) {
                let sketch = sketch_of(&column);
                let bytes = encode_column(&column, &sketch);
                let shape = Shape { types: &[data_type], len, at: Timestamp(1) };
                let (decoded, decoded_sketch) = decode_column(&bytes, shape, data_type).unwrap();
                encodings.insert(column.encoding());
                assert_eq!((decoded.len(), decoded.encoding()), (len, column.encoding()), "{data_type}");
                assert!((0..len).all(|slot| decoded.cell(slot) == column.cell(slot)), "{data_type}, {len} values");
                assert_eq!(format!("{:?}", decoded.zone(0, len)), format!("{:?}", column.zone(0, len)));
                assert_eq!(&decoded.decode(0, len), &column.decode(0, len));
                assert_eq!(decoded_sketch.distinct(), sketch.distinct());
                assert!(decoded.bytes() <= column.bytes());
                assert_eq!(encode_column(&decoded, &decoded_sketch), bytes, "the same bytes again");
            }
        }
    }
    for encoding in [
        Encoding::Constant,
        Encoding::RunLength,
        Encoding::FrameOfReference,
        Encoding::Dictionary,
        Encoding::Float,
        Encoding::Raw,
    ] {
        assert!(encodings.contains(&encoding), "{encoding:?} was among them");
    }
}

#[test]
fn a_column_that_is_cut_off_is_refused_wherever_that_is() {
    for data_type in [DataType::BigInt, DataType::Double, DataType::TEXT] {
        let shape = Shape { types: &[data_type], len: 63, at: Timestamp(1) };
        for column in columns_of(data_type, 63) {
            let bytes = encode_column(&column, &sketch_of(&column));
            for end in 0..bytes.len() {
                assert!(decode_column(&bytes[..end], shape, data_type).is_err(), "{end} of {} bytes", bytes.len());
            }
            let longer = [&bytes[..], &[0]].concat();
            let Err(damage) = decode_column(&longer, shape, data_type) else { panic!("there is a byte too many") };
            assert!(damage.0.contains("behind its end"), "{damage}");
            assert!(decode_column(&bytes, Shape { len: 62, ..shape }, data_type).is_err());
            assert!(decode_column(&bytes, shape, DataType::Bytea).is_err());
        }
    }
}

#[test]
fn wide_decimals_and_binary_codes_keep_all_their_bits() {
    let decimal = DataType::Decimal { precision: 38, scale: 0 };
    let most = 10i128.pow(38) - 1;
    let mut builder = ColumnBuilder::new(decimal, 3);
    let digits = [most, -most, 0].map(i128::to_le_bytes);
    digits.iter().for_each(|digits| builder.push(Cell::Bytes(digits)));
    let column = EncodedColumn::encode(&builder.finish(), decimal);
    let shape = Shape { types: &[decimal], len: 3, at: Timestamp(1) };
    let bytes = encode_column(&column, &Sketch::default());
    let (decoded, _) = decode_column(&bytes, shape, decimal).unwrap();
    assert!((0..3).all(|slot| decoded.cell(slot) == Cell::Bytes(&digits[slot])));
}

#[test]
fn meta_data_comes_back_with_its_hints() {
    let types = [DataType::BigInt; 70];
    let (len, at) = (1_300, Timestamp(900));
    let shape = Shape { types: &types, len, at };
    let mut updates = UpdateColumns::untouched(len, 2);
    for slot in (0..len).step_by(7) {
        let mut ever = ColumnSet::EMPTY;
        [slot % 70, 69].into_iter().for_each(|column| ever.insert(column));
        updates.take_in(slot, Timestamp(1 + slot as u64 % 900), &ever, slot % 3 == 0);
    }
    let bytes = encode_update_columns(shape, &updates);
    let decoded = decode_update_columns(&bytes, shape).unwrap();
    assert_eq!((&decoded.last_updated, &decoded.newest), (&updates.last_updated, &updates.newest));
    assert_eq!((&decoded.ever, &decoded.deleted), (&updates.ever, &updates.deleted));
    let Err(late) = decode_update_columns(&bytes, Shape { at: Timestamp(800), ..shape }) else {
        panic!("900 is later")
    };
    assert!(late.0.contains("its image is of 800"), "{late}");
    let words = [5, u64::MAX, 900];
    let of_three = Shape { len: 3, ..shape };
    let starts = encode_start_times(words.into_iter());
    assert_eq!(decode_start_times(&starts, of_three).unwrap(), words);
    let other = decode_start_times(&bytes, of_three).unwrap_err();
    assert!(other.0.contains("is a blob of kind 4, not 3"), "{other}");
    let newer = [&[BlobKind::StartTimes as u8, 9][..], &starts[2..]].concat();
    assert!(decode_start_times(&newer, of_three).unwrap_err().0.contains("format 9"));
}

/// Breaks one thing in a page that is right otherwise.
type Break = (&'static str, fn(&mut HistoryPage));

#[test]
fn a_history_page_with_something_wrong_says_what() {
    let types = [DataType::BigInt, DataType::TEXT];
    let (number, text) = (Cell::Word(7), Cell::Bytes("ä long value".as_bytes()));
    let values = [[(0, number), (1, text)], [(0, Cell::Word(9)), (1, Cell::Null)]];
    let version = |at: usize| NewVersion {
        slot: 20 + at / 3,
        sequence: 40 - at as u64,
        kind: Kind::Update,
        start: 90 - at as u64,
        values: values[at % 2][..].into(),
    };
    let page = || HistoryPage::build(&types, &Kept::default(), (0..9).map(version));
    let shape = Shape { types: &types, len: 64, at: Timestamp(90) };
    let decode = |page: &HistoryPage, shape, slots, through| {
        decode_history_page(&encode_history_page(page), shape, slots, through).map(|_| ()).map_err(|damage| damage.0)
    };
    assert_eq!(decode(&page(), shape, 16..32, 40), Ok(()));
    assert!(decode(&page(), shape, 21..32, 40).unwrap_err().contains("its records begin at 21"));
    assert!(decode(&page(), shape, 16..22, 40).unwrap_err().contains("22"));
    assert!(decode(&page(), shape, 16..32, 39).unwrap_err().contains("a sequence above 39"));
    assert!(decode(&page(), Shape { at: Timestamp(89), ..shape }, 16..32, 40).unwrap_err().contains("up to 89"));
    let breaks: [Break; 6] = [
        ("begin at version 2", |page| page.first = Packed::of(&[0, 6, 2, 9])),
        ("begin at version 1", |page| page.first = Packed::of(&[1, 3, 6, 9])),
        ("instead of 99", |page| page.first = Packed::of(&[0, 3, 6, 99])),
        ("began later", |page| page.starts = Packed::of(&[80, 81, 82, 83, 84, 85, 86, 87, 88])),
        ("began at no time", |page| page.starts = Packed::of(&[9, 8, 7, 6, 5, 4, 3, 2, 0])),
        ("of 12 bytes", |page| {
            let Some(column) = &mut page.columns[1] else { unreachable!("there are texts") };
            if let Values::Bytes { begins, distinct, .. } = &mut column.values {
                (*begins, *distinct) = (Packed::of(&[0, 13]), distinct[..12].into());
            }
        }),
    ];
    for (what, break_it) in breaks {
        let mut broken = page();
        break_it(&mut broken);
        let found = decode(&broken, shape, 16..32, 40).unwrap_err();
        assert!(found.contains(what), "{found}, not {what}");
    }
}

#[test]
fn a_page_of_rows_with_something_wrong_says_what() {
    let types = [DataType::TEXT, DataType::Boolean, DataType::Decimal { precision: 20, scale: 0 }];
    let digits = 5i128.to_le_bytes();
    let build = || {
        RowPage::build(&types, 3, |slot, column| match column {
            0 if slot == 1 => Cell::Null,
            0 => Cell::Bytes("ää".as_bytes()),
            1 => Cell::Word(1),
            _ => Cell::Bytes(&digits),
        })
    };
    let shape = Shape { types: &types, len: 3, at: Timestamp(1) };
    let decode = |page: &RowPage| {
        let sketches = vec![Sketch::default(); 3];
        let bytes = encode_rows(shape, page, sketches.iter());
        decode_rows(&bytes, shape).map(|_| ()).map_err(|damage| damage.0)
    };
    assert_eq!(decode(&build()), Ok(()));
    let breaks = [
        (0, 1 << 40 | 4, "ends at 260"),
        (0, u64::MAX, "ends at"),
        (0, 1 << 32 | 2, "no UTF-8"),
        (1, 2, "as boolean"),
        (2, 4 << 32 | 15, "a decimal of 15 bytes"),
        (2, 8 << 32 | 16, "as digits of"),
    ];
    for (at, word, what) in breaks {
        let mut broken = build();
        broken.words[at] = word;
        let found = decode(&broken).unwrap_err();
        assert!(found.contains(what), "{found}, not {what}");
    }
}
