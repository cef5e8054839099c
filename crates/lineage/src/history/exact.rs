//! History pages give back exactly what was put in: every type, NULL, every slot, long records, no version at all.
use std::sync::Arc;

use types::json::Jsonb;
use types::{DataType, GeometryKind, Interval, Numeric, RangeKind, Timestamp, Value};

use super::{HistoryPage, NewVersion};
use crate::page::history::History;
use crate::value::cell::{Cell, Scratch, cell_of_value, value_of_cell};
use crate::value::kept::Kept;
use crate::value::kind::Kind;

/// A version with its values.
struct Row<'a> {
    slot: usize,
    sequence: u64,
    kind: Kind,
    start: u64,
    values: Vec<(usize, Cell<'a>)>,
}

fn page_of(types: &[DataType], rows: &[Row<'_>]) -> HistoryPage {
    let version = |row: &Row<'_>| (row.slot, row.sequence, row.kind, row.start);
    let page = HistoryPage::build(
        types,
        &Kept::default(),
        rows.iter().map(|row| {
            let (slot, sequence, kind, start) = version(row);
            NewVersion { slot, sequence, kind, start, values: row.values[..].into() }
        }),
    );
    assert_eq!(page.len(), rows.len());
    page
}

fn holds(page: &HistoryPage, rows: &[Row<'_>]) {
    for chain in rows.chunk_by(|a, b| a.slot == b.slot) {
        let versions: Vec<_> = page.versions(chain[0].slot).collect();
        assert_eq!(versions.len(), chain.len());
        for (version, row) in versions.iter().zip(chain) {
            assert_eq!((version.sequence(), version.kind(), version.start()), (row.sequence, row.kind, row.start));
            assert!(version.values().eq(row.values.iter().copied()), "slot {} at {}", row.slot, row.start);
            assert!(version.explicit().iter().eq(row.values.iter().map(|(column, _)| *column)));
            assert!(row.values.iter().all(|(column, _)| version.is_explicit(*column)));
        }
    }
}

/// Every type with values at its limits.
fn samples() -> Vec<(DataType, [Value; 3])> {
    let decimal = |precision| DataType::Decimal { precision, scale: 2 };
    let text = |text: &str| Value::from(text);
    vec![
        (DataType::Boolean, [true, false, true].map(Value::Boolean)),
        (DataType::SmallInt, [i16::MIN, 0, i16::MAX].map(Value::SmallInt)),
        (DataType::Integer, [i32::MIN, -1, i32::MAX].map(Value::Integer)),
        (DataType::BigInt, [i64::MIN, 0, i64::MAX].map(Value::BigInt)),
        (DataType::Real, [f32::MIN, -0.0, f32::INFINITY].map(Value::Real)),
        (DataType::Double, [f64::MIN, -0.0, 1e-300].map(Value::Double)),
        (decimal(15), [-1, 0, 10i128.pow(15) - 1].map(|unscaled| Value::decimal(unscaled, 2))),
        (decimal(38), [-10i128.pow(37), 0, 10i128.pow(37)].map(|unscaled| Value::decimal(unscaled, 2))),
        (DataType::Numeric, ["-1e40", "0.00", "NaN"].map(|text| Value::from(Numeric::parse(text).unwrap()))),
        (DataType::TEXT, [text(""), text("äöü"), text("a text of more than twelve bytes")]),
        (DataType::Bytea, [vec![], vec![0, 255], vec![7; 5000]].map(Value::from)),
        (DataType::Date, [i32::MIN, -1, i32::MAX].map(Value::Date)),
        (DataType::Timestamp, [i64::MIN, -1, i64::MAX].map(Value::Timestamp)),
        (DataType::TimestampTz, [i64::MIN, 1_700_000_000_000_000, i64::MAX].map(Value::TimestampTz)),
        (DataType::Json, ["{}", "[ 1 ]", "null"].map(|text| Value::Json(text.to_owned()))),
        (DataType::Jsonb, ["{}", "[1.50]", "null"].map(|text| Value::Jsonb(Jsonb::parse(text).unwrap()))),
        (DataType::Time, [0, 1, 86_400_000_000].map(Value::Time)),
        (DataType::TimeTz, [-9, 0, 7].map(|east| Value::TimeTz(types::ZonedTime { micros: 5, east }))),
        (DataType::Interval, [i32::MIN, -1, 7].map(|days| Value::Interval(Interval { months: 1, days, micros: -1 }))),
        (DataType::Range(RangeKind::Num), [-5, 0, 1 << 70].map(|at| range(RangeKind::Num, at))),
        (DataType::Geometry(GeometryKind::Box), [-1.0, 0.0, f64::NAN].map(shape)),
        (DataType::Uuid, [[0; 16], [255; 16], std::array::from_fn(|i| (i * 17) as u8)].map(Value::Uuid)),
    ]
}

fn range(kind: RangeKind, lower: i128) -> Value {
    types::RangeValue::new(kind, Some((lower, true)), None).unwrap().into()
}

fn shape(number: f64) -> Value {
    Value::Geometry(types::Geometry::of_numbers(GeometryKind::Box, [number, 1.0, 2.0, 3.0]))
}

#[test]
fn every_type_comes_back_bit_by_bit_and_null_too() {
    let samples = samples();
    let types: Vec<DataType> = samples.iter().map(|(data_type, _)| *data_type).collect();
    let mut scratch: Vec<[Scratch; 3]> = samples.iter().map(|_| Default::default()).collect();
    let cells: Vec<[Cell<'_>; 3]> = samples
        .iter()
        .zip(&mut scratch)
        .map(|((data_type, values), [a, b, c])| {
            let cell = |at: usize, scratch| cell_of_value(&values[at], *data_type, scratch);
            [cell(0, a), cell(1, b), cell(2, c)]
        })
        .collect();
    // Neighbours differ, so that nothing is left out.
    let pick = |column: usize, at: usize| [cells[column].as_slice(), &[Cell::Null]].concat()[(column + at) % 4];
    let row = |at: usize| Row {
        slot: at / 5,
        sequence: 100 - at as u64,
        kind: Kind::Update,
        start: 100 - at as u64,
        values: (0..types.len()).map(|column| (column, pick(column, at))).collect(),
    };
    let rows: Vec<Row<'_>> = (0..40).map(row).collect();
    let page = page_of(&types, &rows);
    holds(&page, &rows);
    for (column, (data_type, values)) in samples.iter().enumerate() {
        for at in 0..40 {
            let version = page.versions(at / 5).nth(at % 5).unwrap();
            let expected = values.get((column + at) % 4).unwrap_or(&Value::Null);
            assert_eq!(value_of_cell(version.cell(column), *data_type).to_string(), expected.to_string());
        }
    }
}

#[test]
fn a_page_without_versions_answers_nothing() {
    let page = HistoryPage::build(&[DataType::BigInt], &Kept::default(), []);
    assert_eq!(page.len(), 0);
    assert_eq!((page.start_span(), page.sequence_span(), page.slots().count()), (None, None, 0));
    assert_eq!(page.versions(0).count() + page.versions(65_535).count() + page.changes(0, u64::MAX).count(), 0);
    let history = History::empty([DataType::BigInt].into(), Arc::default());
    let history = history.append(&sync::pin(), page, 17, &Kept::default()).unwrap();
    assert_eq!((history.through(), history.len(), history.pages().len()), (17, 0, 0));
    assert!(history.expired(&Kept::from(Timestamp::MAX), |_| false).is_none());
}

#[test]
fn all_slots_of_a_range_find_their_versions() {
    for step in [1, 3, 64, 1000, 65_535] {
        let row = |(at, slot): (usize, usize)| Row {
            slot,
            sequence: 1 + (at as u64).wrapping_mul(7919) % 65_537,
            kind: [Kind::Update, Kind::Delete, Kind::Snapshot][at % 3],
            start: 1 + at as u64,
            values: if at % 3 == 1 { vec![] } else { vec![(0, Cell::Word(slot as u64))] },
        };
        let rows: Vec<Row<'_>> = (0..65_536).step_by(step).enumerate().map(row).collect();
        let page = page_of(&[DataType::BigInt], &rows);
        holds(&page, &rows);
        assert!(page.slots().eq(rows.iter().map(|row| row.slot)));
        assert!((0..65_536).filter(|slot| slot % step != 0).all(|slot| page.versions(slot).count() == 0));
    }
}

#[test]
fn a_record_with_a_hundred_thousand_versions_is_read_at_any_depth() {
    let row = |at: u64| Row {
        slot: 9,
        sequence: 200_000 - at,
        kind: Kind::Update,
        start: 900_000 - 3 * at,
        values: vec![(0, Cell::Word((1 << 40) + at * at % 1000)), (1, Cell::Word(at % 2))],
    };
    let rows: Vec<Row<'_>> = (0..100_000).map(row).collect();
    let page = page_of(&[DataType::BigInt, DataType::Boolean], &rows);
    assert_eq!(page.versions(9).len(), rows.len());
    for at in [0, 1, 127, 128, 50_001, 99_999] {
        let version = page.versions(9).nth(at).unwrap();
        assert_eq!((version.sequence(), version.start()), (rows[at].sequence, rows[at].start));
        assert!(version.values().filter(|(column, _)| *column == 1).eq([rows[at].values[1]]));
        let seen = page.versions_seen(9, rows[at].start + 2).next().unwrap();
        assert_eq!(seen.sequence(), rows[at].sequence);
    }
    assert!(page.bytes() < 2 * rows.len(), "{} bytes for {} versions", page.bytes(), rows.len());
}
