//! Row and column layout give the same answers, and every type of value comes through all of a record's homes: insert
//! pages, tail pages, base pages, history.

use std::collections::BTreeMap;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use engine::json::Jsonb;
use engine::{
    ArrayItem, ArrayValue, Column, Comparison, DataType, Database, Geometry, GeometryKind, Interval, LayoutSetting,
    Numeric, OpenOptions, RangeKind, RangeValue, ScanOptions, Schema, Snapshot, Table, TableSettings, Test, Timestamp,
    Transaction, Value, ZonedTime,
};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

const LAYOUTS: [LayoutSetting; 2] = [LayoutSetting::Column, LayoutSetting::Row];

/// Only the test itself merges.
fn quiet() -> Database {
    let (range_records, update_range_records) = (Some(64), Some(16));
    let (merge_tail_records, merge_threads) = (Some(1 << 30), Some(0));
    let options =
        OpenOptions { range_records, update_range_records, merge_tail_records, merge_threads, ..Default::default() };
    Database::in_memory_with(&options)
}

fn make_table(db: &Database, name: &str, types: &[DataType], layout: LayoutSetting) -> Table {
    let mut columns = vec![Column::new("id", DataType::BigInt)];
    columns.extend(types.iter().enumerate().map(|(i, data_type)| Column::new(format!("c{i}"), *data_type)));
    let settings = TableSettings { layout, ..TableSettings::default() };
    db.create_table_with(name, Schema::new(columns, &["id"]).unwrap(), settings).unwrap()
}

/// An array of texts.
fn array(texts: &[&str]) -> Value {
    Value::Array(ArrayValue::of(ArrayItem::TEXT, &texts.iter().map(|text| Value::from(*text)).collect::<Vec<_>>()))
}

/// The range from a bound on; the empty one without it.
fn range(lower: Option<i128>) -> Value {
    match lower {
        Some(lower) => RangeValue::new(RangeKind::Int4, Some((lower, true)), None).unwrap().into(),
        None => RangeValue::empty(RangeKind::Int4).into(),
    }
}

fn circle(x: f64) -> Value {
    Value::Geometry(Geometry::of_numbers(GeometryKind::Circle, [x, 0.5, 2.0, 0.0]))
}

/// Each type with values of it, extremes among them.
fn samples() -> Vec<(DataType, Vec<Value>)> {
    let long = "a text that is much longer than the twelve bytes which a view holds";
    let decimal = |precision, scale| DataType::Decimal { precision, scale };
    let huge = 10i128.pow(38) - 1;
    vec![
        (DataType::Boolean, vec![Value::Boolean(true), Value::Boolean(false)]),
        (DataType::SmallInt, vec![Value::SmallInt(i16::MIN), Value::SmallInt(-1), Value::SmallInt(i16::MAX)]),
        (DataType::Integer, vec![Value::Integer(i32::MIN), Value::Integer(0), Value::Integer(i32::MAX)]),
        (DataType::BigInt, vec![Value::BigInt(i64::MIN), Value::BigInt(-7), Value::BigInt(i64::MAX)]),
        (DataType::Real, vec![Value::Real(f32::NEG_INFINITY), Value::Real(1.5e-40), Value::Real(f32::MAX)]),
        (DataType::Double, vec![Value::Double(f64::MIN), Value::Double(0.1), Value::Double(f64::INFINITY)]),
        (decimal(18, 2), vec![Value::decimal(-999_999_999_999_999_999, 2), Value::decimal(5, 2)]),
        (decimal(38, 10), vec![Value::decimal(huge, 10), Value::decimal(-huge, 10), Value::decimal(0, 10)]),
        (DataType::Numeric, ["-1e40", "0.00", "NaN", "7"].map(|text| Numeric::parse(text).unwrap().into()).into()),
        (DataType::TEXT, vec![Value::from(""), Value::from("b"), Value::from(long)]),
        (DataType::Text { max_chars: Some(5) }, vec![Value::from("äöüßé"), Value::from("x")]),
        (DataType::Bytea, vec![Value::Bytea(vec![]), Value::Bytea(vec![0, 255, 0]), Value::Bytea(vec![7; 300])]),
        (DataType::Date, vec![Value::Date(-719_162), Value::Date(0), Value::Date(2_932_896)]),
        (DataType::Timestamp, vec![Value::Timestamp(i64::MIN + 1), Value::Timestamp(1), Value::Timestamp(1 << 50)]),
        (DataType::TimestampTz, vec![Value::TimestampTz(-1), Value::TimestampTz(1 << 51)]),
        (DataType::Json, ["{}", "[ 1 ]"].map(|text| Value::Json(text.to_owned())).into()),
        (DataType::Jsonb, ["{}", "[1.50]", "null"].map(|text| Value::Jsonb(Jsonb::parse(text).unwrap())).into()),
        (DataType::Time, [0, 1, 86_400_000_000].map(Value::Time).into()),
        (DataType::Array(ArrayItem::TEXT), vec![array(&[]), array(&["a", ""]), array(&["b"; 40])]),
        (DataType::TimeTz, [-1, 7].map(|east| Value::TimeTz(ZonedTime { micros: 3, east })).into()),
        (DataType::Interval, [-1, 7].map(|days| Value::Interval(Interval { months: 1, days, micros: -1 })).into()),
        (DataType::Range(RangeKind::Int4), vec![range(None), range(Some(-5)), range(Some(7))]),
        (DataType::Geometry(GeometryKind::Circle), [-1.5, 0.0, 1e300].map(circle).into()),
        (DataType::Uuid, vec![Value::Uuid([0; 16]), Value::Uuid([0xab; 16]), Value::Uuid([255; 16])]),
    ]
}

/// Row `id` in its version number `version`: NULL comes round like any other value.
fn row(samples: &[(DataType, Vec<Value>)], id: i64, version: usize) -> Vec<Value> {
    let value = |(i, (_, values)): (usize, &(DataType, Vec<Value>))| {
        let at = (id as usize + i + version * (1 + i % 2)) % (values.len() + 1);
        values.get(at).cloned().unwrap_or(Value::Null)
    };
    std::iter::once(Value::from(id)).chain(samples.iter().enumerate().map(value)).collect()
}

/// All versions of all rows, from the newest commit and from the past.
fn check_rows(db: &Database, table: &Table, commits: &[Timestamp], samples: &[(DataType, Vec<Value>)]) {
    let transaction = db.begin().unwrap();
    for id in 0..24 {
        let key = [Value::from(id)];
        let newest = row(samples, id, commits.len() - 1);
        assert_eq!(transaction.get(table, &key).unwrap(), Some(newest), "row {id}");
        let versions = table.record_history(&key).unwrap();
        let found: Vec<_> = versions.into_iter().map(|version| (version.from, version.row)).collect();
        let expected = commits.iter().enumerate().map(|(version, at)| (*at, Some(row(samples, id, version))));
        assert_eq!(found, expected.collect::<Vec<_>>(), "versions of {id}");
    }
    for change in table.changes(commits[0], commits[commits.len() - 1]).unwrap() {
        let version = commits.iter().position(|at| *at == change.at).expect("only commits change anything");
        let Some(Value::BigInt(id)) = change.new.as_ref().map(|row| row[0].clone()) else { panic!("no deletes") };
        let expected = (Some(row(samples, id, version - 1)), Some(row(samples, id, version)));
        assert_eq!((change.old, change.new), expected, "row {id} at {:?}", change.at);
    }
}

#[test]
fn every_type_and_null_come_through_insert_update_merge_and_history() {
    let samples = samples();
    let types: Vec<DataType> = samples.iter().map(|(data_type, _)| *data_type).collect();
    for layout in LAYOUTS {
        let db = quiet();
        let table = make_table(&db, "t", &types, layout);
        let mut commits = Vec::new();
        for version in 0..6 {
            let mut transaction = db.begin().unwrap();
            for id in 0..24 {
                let row = row(&samples, id, version);
                if version == 0 {
                    transaction.insert(&table, &row).unwrap();
                } else {
                    let changes: Vec<(usize, Value)> = row.into_iter().enumerate().skip(1).collect();
                    assert!(transaction.update_columns(&table, &[Value::from(id)], &changes).unwrap());
                }
            }
            commits.push(transaction.commit().unwrap());
            check_rows(&db, &table, &commits, &samples);
            match version {
                1 => drop(db.merge_now()),
                2 => drop(db.merge_columns_now("t", &[1, 4, 9, 12]).unwrap()),
                3 | 5 => db.reclaim_now(),
                _ => {}
            }
            check_rows(&db, &table, &commits, &samples);
        }
    }
}

const TYPES: [DataType; 4] =
    [DataType::BigInt, DataType::TEXT, DataType::Decimal { precision: 30, scale: 2 }, DataType::Double];

fn random_value(rng: &mut StdRng, column: usize) -> Value {
    let number = rng.random_range(0..12i64);
    match TYPES[column] {
        _ if number == 0 => Value::Null,
        DataType::BigInt => Value::from(number - 5),
        DataType::TEXT => Value::from(format!("text number {number}")),
        DataType::Double => Value::Double(number as f64 / 4.0),
        _ => Value::decimal(i128::from(number) * 1_000_000_007, 2),
    }
}

/// Makes one random change in both tables.
fn change_both(transaction: &mut Transaction, tables: &[Table; 2], rng: &mut StdRng) {
    let key = [Value::from(rng.random_range(0..60i64))];
    let fresh: Vec<Value> = (0..TYPES.len()).map(|column| random_value(rng, column)).collect();
    let (columns, deletes) = (rng.random_range(1..16usize), rng.random_bool(0.1));
    let done = tables.each_ref().map(|table| {
        if transaction.get(table, &key).unwrap().is_none() {
            let row: Vec<Value> = key.iter().chain(&fresh).cloned().collect();
            return transaction.insert(table, &row).is_ok();
        }
        if deletes {
            return transaction.delete(table, &key).unwrap();
        }
        let picked = (0..TYPES.len()).filter(|column| columns >> column & 1 != 0);
        let changes: Vec<(usize, Value)> = picked.map(|column| (column + 1, fresh[column].clone())).collect();
        transaction.update_columns(table, &key, &changes).unwrap()
    });
    assert_eq!(done[0], done[1]);
}

/// The rows that a scan finds, by key.
fn scan(table: &Table, at: Timestamp, tests: &[(usize, Test)]) -> BTreeMap<i64, RecordBatch> {
    let options = ScanOptions { columns: (0..=TYPES.len()).collect(), tests: tests.to_vec(), with_rid: false };
    let mut rows = BTreeMap::new();
    for batch in table.scan(Snapshot::at(at), options).unwrap().batches().map(Result::unwrap) {
        let ids = batch.column(0).as_primitive::<Int64Type>().values().to_vec();
        rows.extend(ids.into_iter().enumerate().map(|(row, id)| (id, batch.slice(row, 1))));
    }
    rows
}

fn compare(tables: &[Table; 2], commits: &[Timestamp]) {
    let [column, row] = tables;
    let tests = [
        vec![],
        vec![(1, Test::Compare(Comparison::GreaterOrEqual, Value::from(1i64)))],
        vec![(2, Test::Prefix(b"text number 1".to_vec())), (4, Test::IsNotNull)],
        vec![(3, Test::IsNull)],
    ];
    for at in commits {
        for tests in &tests {
            assert_eq!(scan(column, *at, tests), scan(row, *at, tests), "at {at:?} where {tests:?}");
            let totals =
                tables.each_ref().map(|table| table.aggregate(Snapshot::at(*at), tests, &[1, 2, 3, 4]).unwrap());
            assert_eq!(totals[0], totals[1], "at {at:?} where {tests:?}");
        }
    }
    for id in 0..60i64 {
        let versions = tables.each_ref().map(|table| table.record_history(&[Value::from(id)]).unwrap());
        assert_eq!(versions[0], versions[1]);
    }
    let to = commits[commits.len() - 1];
    let changes = tables.each_ref().map(|table| table.changes(commits[commits.len() / 2], to).unwrap());
    assert_eq!(changes[0], changes[1]);
}

#[test]
fn row_and_column_layout_give_the_same_answers() {
    for seed in 0..3 {
        let db = quiet();
        let mut rng = StdRng::seed_from_u64(seed);
        let tables = LAYOUTS.map(|layout| make_table(&db, &format!("{layout:?}"), &TYPES, layout));
        let mut commits = vec![db.snapshot().at];
        for _ in 0..40 {
            let mut transaction = db.begin().unwrap();
            (0..rng.random_range(1..8)).for_each(|_| change_both(&mut transaction, &tables, &mut rng));
            match rng.random_range(0..10) {
                0 => transaction.rollback(),
                _ => commits.push(transaction.commit().unwrap()),
            }
            match rng.random_range(0..12) {
                0 => drop(db.merge_now()),
                1 => db.reclaim_now(),
                2 => compare(&tables, &commits[commits.len() - 1..]),
                _ => {}
            }
        }
        compare(&tables, &commits);
        db.reclaim_now();
        compare(&tables, &commits);
    }
}
