//! The promises of the typed API: one outcome for each situation that an application meets.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BinaryArray, BinaryViewArray, Int32Array, Int64Array, LargeBinaryArray, LargeStringArray, RecordBatch,
    StringArray, StringViewArray,
};
use engine::{Column, DataType, Database, Error, Schema, Table, Value};

fn table(db: &Database) -> Table {
    let columns =
        vec![Column::new("a", DataType::Integer), Column::new("b", DataType::TEXT), Column::new("n", DataType::BigInt)];
    db.create_table("t", Schema::new(columns, &["a", "b"]).unwrap()).unwrap()
}

fn key(a: i32, b: &str) -> [Value; 2] {
    [Value::from(a), Value::from(b)]
}

fn row(a: i32, b: &str, n: i64) -> [Value; 3] {
    [Value::from(a), Value::from(b), Value::from(n)]
}

fn n_of(db: &Database, table: &Table, a: i32, b: &str) -> Option<Value> {
    db.begin().unwrap().get(table, &key(a, b)).unwrap().map(|row| row[2].clone())
}

fn put(db: &Database, table: &Table, a: i32, b: &str, n: i64) {
    let mut transaction = db.begin().unwrap();
    transaction.insert(table, &row(a, b, n)).unwrap();
    transaction.commit().unwrap();
}

#[test]
fn a_duplicate_key_is_refused_and_the_transaction_goes_on() {
    let db = Database::in_memory();
    let table = table(&db);
    put(&db, &table, 1, "x", 10);
    let mut transaction = db.begin().unwrap();
    let error = transaction.insert(&table, &row(1, "x", 11)).unwrap_err();
    assert_eq!(error.sqlstate(), "23505");
    assert_eq!(
        error.to_string(),
        "duplicate key value violates unique constraint \"t_pkey\": key (a, b)=(1, x) already exists"
    );
    transaction.insert(&table, &row(1, "y", 12)).unwrap();
    transaction.commit().unwrap();
    assert_eq!(n_of(&db, &table, 1, "x"), Some(Value::from(10i64)));
    assert_eq!(n_of(&db, &table, 1, "y"), Some(Value::from(12i64)));
}

#[test]
fn a_key_is_free_again_after_delete_and_after_rollback() {
    let db = Database::in_memory();
    let table = table(&db);
    put(&db, &table, 1, "x", 10);
    let before = db.snapshot();
    let mut transaction = db.begin().unwrap();
    assert!(transaction.delete(&table, &key(1, "x")).unwrap());
    assert!(!transaction.delete(&table, &key(1, "x")).unwrap());
    transaction.insert(&table, &row(1, "x", 20)).unwrap();
    transaction.rollback();
    assert_eq!(n_of(&db, &table, 1, "x"), Some(Value::from(10i64)));
    let mut transaction = db.begin().unwrap();
    transaction.delete(&table, &key(1, "x")).unwrap();
    transaction.commit().unwrap();
    put(&db, &table, 1, "x", 30);
    assert_eq!(n_of(&db, &table, 1, "x"), Some(Value::from(30i64)));
    let options = engine::ScanOptions { columns: vec![2], ..Default::default() };
    assert_eq!(table.lookup(before, &key(1, "x"), &options).unwrap().num_rows(), 1, "the old row at the old time");
}

/// Rows come and go under one key; rows with other keys pass through it, and some of that is rolled back.
#[test]
fn a_key_used_again_and_again_has_one_row_at_a_time() {
    let db = Database::in_memory();
    let table = table(&db);
    put(&db, &table, 9, "x", -1);
    let mut seen = Vec::new();
    for round in 0..60 {
        put(&db, &table, 1, "x", round);
        seen.push((db.snapshot(), round));
        let mut passing = db.begin().unwrap();
        let to_key = [("a", Value::from(1))];
        assert!(matches!(passing.update(&table, &key(9, "x"), &to_key), Err(Error::DuplicateKey { .. })));
        assert!(passing.delete(&table, &key(1, "x")).unwrap());
        assert!(passing.update(&table, &key(9, "x"), &to_key).unwrap());
        assert!(matches!(passing.insert(&table, &row(1, "x", 0)), Err(Error::DuplicateKey { .. })));
        if round % 3 == 0 {
            assert!(passing.update(&table, &key(1, "x"), &[("a", Value::from(9))]).unwrap());
            passing.commit().unwrap();
        } else {
            passing.rollback();
            let mut transaction = db.begin().unwrap();
            assert!(matches!(transaction.insert(&table, &row(1, "x", 0)), Err(Error::DuplicateKey { .. })));
            transaction.delete(&table, &key(1, "x")).unwrap();
            transaction.commit().unwrap();
        }
    }
    let options = engine::ScanOptions { columns: vec![2], ..Default::default() };
    for (snapshot, round) in seen {
        let found = table.lookup(snapshot, &key(1, "x"), &options).unwrap();
        let n = arrow_array::cast::AsArray::as_primitive::<arrow_array::types::Int64Type>(found.column(0));
        assert_eq!((found.num_rows(), n.value(0)), (1, round));
    }
}

#[test]
fn of_two_inserters_of_a_key_one_waits_for_the_other() {
    let db = Database::in_memory();
    let table = table(&db);
    let (mut first, mut second) = (db.begin().unwrap(), db.begin().unwrap());
    first.insert(&table, &row(1, "x", 1)).unwrap();
    assert!(matches!(second.insert(&table, &row(1, "x", 2)), Err(Error::Conflict)));
    first.rollback();
    second.insert(&table, &row(1, "x", 2)).unwrap();
    second.commit().unwrap();
    assert_eq!(n_of(&db, &table, 1, "x"), Some(Value::from(2i64)));
}

#[test]
fn a_key_given_up_after_the_snapshot_is_not_taken() {
    let db = Database::in_memory();
    let table = table(&db);
    put(&db, &table, 1, "x", 1);
    put(&db, &table, 2, "x", 1);
    let mut late = db.begin().unwrap();
    let mut transaction = db.begin().unwrap();
    assert!(transaction.delete(&table, &key(1, "x")).unwrap());
    assert!(transaction.update(&table, &key(2, "x"), &[("a", Value::from(3))]).unwrap());
    transaction.commit().unwrap();
    // Both rows are still there for it: it would see two rows of one key.
    assert!(matches!(late.insert(&table, &row(1, "x", 2)), Err(Error::Conflict)));
    assert!(matches!(late.insert(&table, &row(2, "x", 2)), Err(Error::Conflict)));
    late.rollback();
    put(&db, &table, 1, "x", 2);
    put(&db, &table, 2, "x", 2);
}

#[test]
fn the_second_of_two_writers_gets_a_conflict() {
    let db = Database::in_memory();
    let table = table(&db);
    put(&db, &table, 1, "x", 10);
    let (mut first, mut second) = (db.begin().unwrap(), db.begin().unwrap());
    let change = |n: i64| [("n", Value::from(n))];
    assert!(first.update(&table, &key(1, "x"), &change(11)).unwrap());
    let while_it_runs = second.update(&table, &key(1, "x"), &change(12)).unwrap_err();
    assert_eq!(while_it_runs.sqlstate(), "40001");
    first.commit().unwrap();
    assert!(matches!(second.update(&table, &key(1, "x"), &change(12)), Err(Error::Conflict)));
    second.rollback();
    assert_eq!(n_of(&db, &table, 1, "x"), Some(Value::from(11i64)));
}

#[test]
fn a_changed_key_is_found_under_its_new_value_only() {
    let db = Database::in_memory();
    let table = table(&db);
    put(&db, &table, 1, "x", 10);
    put(&db, &table, 2, "x", 20);
    let before = db.begin().unwrap();
    let mut transaction = db.begin().unwrap();
    let taken = transaction.update(&table, &key(1, "x"), &[("a", Value::from(2))]).unwrap_err();
    assert!(matches!(taken, Error::DuplicateKey { .. }));
    assert!(transaction.update(&table, &key(1, "x"), &[("a", Value::from(3))]).unwrap());
    assert_eq!(transaction.get(&table, &key(1, "x")).unwrap(), None);
    transaction.commit().unwrap();
    assert_eq!(n_of(&db, &table, 1, "x"), None);
    assert_eq!(n_of(&db, &table, 3, "x"), Some(Value::from(10i64)));
    assert!(before.get(&table, &key(1, "x")).unwrap().is_some());
    assert!(before.get(&table, &key(3, "x")).unwrap().is_none());
    put(&db, &table, 1, "x", 30);
    let mut back = db.begin().unwrap();
    assert!(matches!(back.update(&table, &key(3, "x"), &[("a", Value::from(1))]), Err(Error::DuplicateKey { .. })));
}

#[test]
fn bad_values_are_refused_by_name() {
    let db = Database::in_memory();
    let table = table(&db);
    let mut transaction = db.begin().unwrap();
    let error = |row: &[Value], transaction: &mut engine::Transaction| transaction.insert(&table, row).unwrap_err();
    let null = error(&[Value::Null, Value::from("x"), Value::Null], &mut transaction);
    assert_eq!(null.to_string(), "null value in column \"a\" of table \"t\" violates not-null constraint");
    let wide = error(&[Value::from(1i64 << 40), Value::from("x"), Value::Null], &mut transaction);
    assert_eq!(wide.sqlstate(), "22003");
    assert_eq!(error(&[Value::from(1)], &mut transaction).sqlstate(), "42601");
    let unknown = transaction.update(&table, &key(1, "x"), &[("zz", Value::Null)]).unwrap_err();
    assert_eq!(unknown.to_string(), "column \"zz\" of table \"t\" does not exist");
    let twice = [("n", Value::Null), ("n", Value::from(5i64))];
    assert_eq!(transaction.update(&table, &key(1, "x"), &twice).unwrap_err().sqlstate(), "42601");
    let unknown = arrow_array::UInt64Array::from(vec![0, 1 << 40, u64::MAX]);
    let view = transaction.view().unwrap();
    let deleted = transaction.delete_batch(&table, &unknown, &view).unwrap();
    assert_eq!(deleted, engine::Changed::default(), "no row has these Rids");
    assert_eq!(table.stats().records, 0);
}

#[test]
fn tables_come_and_go_and_survive() {
    let directory = tempfile::tempdir().unwrap();
    {
        let db = Database::open(directory.path()).unwrap();
        let table = table(&db);
        put(&db, &table, 1, "x", 10);
        db.create_table("gone", Schema::new(vec![Column::new("a", DataType::Date)], &[]).unwrap()).unwrap();
        db.drop_table("gone").unwrap();
        assert_eq!(db.drop_table("gone").unwrap_err().sqlstate(), "42P01");
        assert!(matches!(Database::open(directory.path()), Err(Error::Log(_))), "in use");
    }
    let db = Database::open(directory.path()).unwrap();
    assert_eq!(db.table_names(), ["t"]);
    let t = db.table("t").unwrap();
    assert_eq!(n_of(&db, &t, 1, "x"), Some(Value::from(10i64)));
    db.truncate_table("t").unwrap();
    drop((t, db));
    let db = Database::open(directory.path()).unwrap();
    let t = db.table("t").unwrap();
    assert_eq!((n_of(&db, &t, 1, "x"), t.schema().columns().len()), (None, 3));
    put(&db, &t, 1, "x", 11);
}

#[test]
fn handles_of_replaced_tables_and_of_other_databases_are_refused() {
    let db = Database::in_memory();
    let old = table(&db);
    put(&db, &old, 1, "x", 10);
    db.truncate_table("t").unwrap();
    let mut transaction = db.begin().unwrap();
    // Accepted, this row would be in no table, though its commit was acknowledged.
    assert_eq!(transaction.insert(&old, &row(2, "x", 20)).unwrap_err().sqlstate(), "42P01");
    assert_eq!(transaction.delete(&old, &key(1, "x")).unwrap_err().sqlstate(), "42P01");
    assert!(transaction.get(&old, &key(1, "x")).unwrap().is_some(), "what was there can be read");
    let other = Database::in_memory();
    let foreign = table(&other);
    // Accepted, the other database's readers would wait for a transaction that it does not know.
    assert_eq!(transaction.insert(&foreign, &row(1, "x", 1)).unwrap_err().sqlstate(), "42P01");
    assert!(transaction.get(&foreign, &key(1, "x")).is_err() && transaction.scan(&foreign, &["n"]).is_err());
    put(&db, &db.table("t").unwrap(), 2, "x", 20);
    db.drop_table("t").unwrap();
    assert!(transaction.update(&old, &key(1, "x"), &[("n", Value::from(3i64))]).is_err());
}

#[test]
fn ranges_may_grow_from_one_opening_to_the_next_and_not_shrink() {
    let directory = tempfile::tempdir().unwrap();
    let open = |range_records| {
        let options = engine::OpenOptions { range_records: Some(range_records), ..engine::OpenOptions::default() };
        Database::open_with(directory.path(), options)
    };
    let fill = |db: &Database, table: &Table, b: &str| (0..20).for_each(|a| put(db, table, a, b, 1));
    let db = open(16).unwrap();
    fill(&db, &table(&db), "x");
    drop(db);
    let db = open(64).unwrap();
    fill(&db, &db.table("t").unwrap(), "y");
    drop(db);
    assert_eq!(open(16).err().unwrap().sqlstate(), "22023");
    let db = open(64).unwrap();
    let table = db.table("t").unwrap();
    assert!((0..20).all(|a| ["x", "y"].iter().all(|b| n_of(&db, &table, a, b).is_some())));
}

/// A transaction so large that its redo goes to the log in parts, cut off before its commit, then its id used again.
#[test]
fn parts_of_a_transaction_that_never_committed_do_not_come_back() {
    let directory = tempfile::tempdir().unwrap();
    let copy = tempfile::tempdir().unwrap();
    let text = "x".repeat(100_000);
    {
        let db = Database::open(directory.path()).unwrap();
        let table = table(&db);
        let mut lost = db.begin().unwrap();
        for a in 0..30 {
            lost.insert(&table, &row(a, &text, 1)).unwrap();
        }
        put(&db, &table, -1, "x", 2);
        for entry in std::fs::read_dir(directory.path()).unwrap() {
            let entry = entry.unwrap();
            std::fs::copy(entry.path(), copy.path().join(entry.file_name())).unwrap();
        }
    }
    for round in 0..3 {
        let db = Database::open(copy.path()).unwrap();
        let table = db.table("t").unwrap();
        let rows: usize = db
            .begin()
            .unwrap()
            .scan(&table, &[])
            .unwrap()
            .batches()
            .map(Result::unwrap)
            .map(|batch| batch.num_rows())
            .sum();
        assert_eq!(rows, 1 + round, "round {round}");
        put(&db, &table, 100 + round as i32, "x", 3);
    }
}

/// A transaction frees a key, gives it to another record and rolls back; merging forgets that other record's update.
#[test]
fn a_key_that_came_back_by_a_rollback_stays_taken() {
    let db = Database::in_memory();
    let columns = vec![Column::new("id", DataType::BigInt), Column::new("x", DataType::BigInt)];
    let table = db.create_table("t", Schema::new(columns, &["id"]).unwrap()).unwrap();
    let key = |id: i64| [Value::from(id)];
    let mut transaction = db.begin().unwrap();
    for id in 1..=2 {
        transaction.insert(&table, &[Value::from(id), Value::Null]).unwrap();
    }
    transaction.commit().unwrap();
    let mut transaction = db.begin().unwrap();
    assert!(transaction.delete(&table, &key(2)).unwrap());
    assert!(transaction.update(&table, &key(1), &[("id", Value::from(2i64))]).unwrap());
    transaction.rollback();
    db.merge_now();
    let mut transaction = db.begin().unwrap();
    assert!(transaction.delete(&table, &key(1)).unwrap());
    transaction.commit().unwrap();
    db.merge_now();
    let mut transaction = db.begin().unwrap();
    let inserted = transaction.insert(&table, &[Value::from(2i64), Value::Null]);
    assert!(matches!(inserted, Err(Error::DuplicateKey { .. })), "{inserted:?}");
}

#[test]
fn batches_take_texts_and_bytes_in_any_of_arrows_layouts() {
    let db = Database::in_memory();
    let columns = vec![
        Column::new("id", DataType::BigInt),
        Column::new("name", DataType::TEXT),
        Column::new("image", DataType::Bytea),
    ];
    let table = db.create_table("t", Schema::new(columns, &["id"]).unwrap()).unwrap();
    let (names, images) = ([Some("a name longer than a view"), None], [Some(b"bytes".as_slice()), None]);
    let layouts: [(ArrayRef, ArrayRef); 3] = [
        (Arc::new(StringArray::from_iter(names)), Arc::new(BinaryArray::from_iter(images))),
        (Arc::new(LargeStringArray::from_iter(names)), Arc::new(LargeBinaryArray::from_iter(images))),
        (Arc::new(StringViewArray::from_iter(names)), Arc::new(BinaryViewArray::from_iter(images))),
    ];
    for (layout, (names, images)) in (0i64..).zip(layouts) {
        let ids: ArrayRef = Arc::new(Int64Array::from(vec![layout * 2, layout * 2 + 1]));
        let batch = RecordBatch::try_from_iter([("id", ids), ("name", names), ("image", images)]).unwrap();
        let mut transaction = db.begin().unwrap();
        assert_eq!(transaction.insert_batch(&table, &batch).unwrap(), 2);
        transaction.commit().unwrap();
        let row = |id: i64| db.begin().unwrap().get(&table, &[Value::from(id)]).unwrap().unwrap();
        let bytes = Value::Bytea(b"bytes".to_vec());
        assert_eq!(row(layout * 2)[1..], [Value::from("a name longer than a view"), bytes]);
        assert_eq!(row(layout * 2 + 1)[1..], [Value::Null, Value::Null]);
    }
    let ids: ArrayRef = Arc::new(Int32Array::from(vec![7]));
    let name: ArrayRef = Arc::new(StringArray::from(vec!["x"]));
    let image: ArrayRef = Arc::new(BinaryArray::from_vec(vec![b"x"]));
    let batch = RecordBatch::try_from_iter([("id", ids), ("name", name), ("image", image)]).unwrap();
    let error = db.begin().unwrap().insert_batch(&table, &batch).unwrap_err().to_string();
    assert!(error.contains("of Arrow type Int32, not Int64"), "{error}");
}
