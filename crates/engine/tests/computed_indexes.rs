//! Indexes of expressions and of a part of a table: what fails, what is refused, what stays when a database is opened again.
use std::ops::Bound;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringViewArray};
use engine::{
    Column, DataType, Database, Direction, Error, IndexDefinition, IndexPart, IndexRange, Isolation, OpenOptions,
    Retention, Schema, Table, TableSettings, Transaction, TransactionOptions, Value,
};
use testkit::FaultyDevice;

mod expressions;

fn part(text: &str) -> IndexPart {
    IndexPart::Expression(expressions::expression(text, 1, 2))
}

/// Of `a` where that is odd, no two alike.
fn odd() -> IndexDefinition {
    IndexDefinition::new("odd", &[1]).only_where(expressions::expression("(a % 2 = 1)", 1, 2)).unique()
}

fn inverse() -> IndexDefinition {
    IndexDefinition::of("inverse", vec![part("(12 / a)")])
}

fn options() -> OpenOptions {
    OpenOptions { merge_threads: Some(0), expressions: expressions::compiler(), ..OpenOptions::default() }
}

fn make(db: &Database) -> Table {
    make_with(db, Retention::Forever)
}

fn make_with(db: &Database, retention: Retention) -> Table {
    let columns = [("id", DataType::BigInt), ("a", DataType::BigInt), ("t", DataType::TEXT)];
    let columns = columns.map(|(name, data_type)| Column::new(name, data_type)).to_vec();
    let settings = TableSettings { retention, ..TableSettings::default() };
    db.create_table_with("t", Schema::new(columns, &["id"]).unwrap(), settings).unwrap()
}

fn row(id: i64, a: i64) -> [Value; 3] {
    [Value::from(id), Value::from(a), Value::from("text")]
}

fn run(db: &Database, work: impl Fn(&mut Transaction) -> Result<(), Error>) -> Result<(), Error> {
    db.run(TransactionOptions::default(), |transaction| work(transaction))
}

/// The ids in a range of an index.
fn ids(transaction: &Transaction, table: &Table, index: &str, range: &IndexRange) -> Vec<i64> {
    let (_, index) = transaction.index(index).unwrap();
    let rows = transaction.index_scan(table, &index, range, Direction::Upward).unwrap();
    let id = |row: Vec<Value>| if let Value::BigInt(id) = row[0] { id } else { panic!("{row:?}") };
    rows.map(|row| id(row.unwrap().1)).collect()
}

fn all(db: &Database, table: &Table, index: &str) -> Vec<i64> {
    ids(&db.begin().unwrap(), table, index, &IndexRange::all())
}

#[test]
fn a_statement_fails_where_an_expression_does_and_changes_nothing() {
    let db = Database::in_memory_with(&options());
    let table = make(&db);
    db.create_index("t", inverse()).unwrap();
    db.create_index("t", odd()).unwrap();
    run(&db, |t| t.insert(&table, &row(1, 3)).map(drop)).unwrap();
    let mut transaction = db.begin().unwrap();
    let refused = [
        transaction.insert(&table, &row(2, 0)).map(drop),
        transaction.update(&table, &[Value::from(1i64)], &[("a", Value::from(0i64))]).map(drop),
    ];
    for refused in refused {
        let error = refused.unwrap_err();
        assert_eq!((error.sqlstate(), error.to_string().as_str()), ("22012", "division by zero"));
    }
    transaction.insert(&table, &row(2, 4)).unwrap();
    transaction.commit().unwrap();
    assert_eq!((all(&db, &table, "inverse"), all(&db, &table, "odd")), (vec![2, 1], vec![1]));
    // A transaction is not troubled by an index that it has dropped, as long as it stays so.
    let mut transaction = db.begin().unwrap();
    let savepoint = transaction.savepoint();
    transaction.drop_index("inverse").unwrap();
    transaction.insert(&table, &row(3, 0)).unwrap();
    transaction.rollback_to(savepoint).unwrap();
    assert_eq!(transaction.insert(&table, &row(3, 0)).unwrap_err().sqlstate(), "22012");
    transaction.commit().unwrap();
    assert_eq!(all(&db, &table, "inverse"), [2, 1]);
}

/// Rows of ids and values of `a`.
fn batch(rows: &[(i64, i64)]) -> RecordBatch {
    let numbers = |of: fn(&(i64, i64)) -> i64| Arc::new(Int64Array::from_iter_values(rows.iter().map(of))) as ArrayRef;
    let texts = Arc::new(StringViewArray::from_iter_values(rows.iter().map(|_| "text")));
    RecordBatch::try_from_iter([("id", numbers(|row| row.0)), ("a", numbers(|row| row.1)), ("t", texts)]).unwrap()
}

#[test]
fn rows_of_a_batch_have_keys_of_their_own_and_the_first_wrong_row_is_told() {
    let db = Database::in_memory_with(&options());
    let table = make(&db);
    db.create_index("t", inverse()).unwrap();
    db.create_index("t", odd()).unwrap();
    // Every third row has an even number, and so no entry in one of the indexes.
    let a_of = |id: i64| 2 * id - i64::from(id % 3 != 0);
    let rows: Vec<(i64, i64)> = (1..=2_500).map(|id| (id, a_of(id))).collect();
    assert_eq!(db.begin().unwrap().insert_batch(&table, &batch(&rows)).unwrap(), 2_500);
    assert_eq!(all(&db, &table, "odd"), [0i64; 0], "it was rolled back");
    run(&db, |t| t.insert_batch(&table, &batch(&rows)).map(drop)).unwrap();
    let odd_ids: Vec<i64> = (1..=2_500).filter(|id| id % 3 != 0).collect();
    let found = all(&db, &table, "inverse");
    assert!(found.is_sorted_by_key(|id| 12 / a_of(*id)) && found.len() == 2_500);
    assert_eq!(all(&db, &table, "odd"), odd_ids);
    // One row divides by zero, and one has an odd number that is taken, in the same thousand.
    let more = |wrong: [(usize, i64); 2]| {
        let mut rows: Vec<(i64, i64)> = (0..2_000).map(|more| (3_000 + more, 2 * (3_000 + more))).collect();
        wrong.iter().for_each(|(at, a)| rows[*at].1 = *a);
        run(&db, |t| t.insert_batch(&table, &batch(&rows)).map(drop)).unwrap_err().sqlstate()
    };
    assert_eq!(more([(1_500, 0), (1_600, 1)]), "22012");
    assert_eq!(more([(1_500, 1), (1_600, 0)]), "23505");
    assert_eq!((all(&db, &table, "inverse"), all(&db, &table, "odd")), (found, odd_ids), "nothing stays");
}

#[test]
fn an_index_is_made_if_its_expression_holds_for_the_rows_that_are_there_now() {
    let db = Database::in_memory_with(&options());
    let table = make(&db);
    run(&db, |t| (1..=3).try_for_each(|id| t.insert(&table, &row(id, id - 1)).map(drop))).unwrap();
    let error = db.create_index("t", inverse()).map(drop).unwrap_err();
    assert_eq!(error.sqlstate(), "22012");
    assert!(db.create_index("t", odd()).is_ok(), "the name of the one that failed is free, and the table");
    db.drop_index("odd").unwrap();
    // Rows of which it does not hold are none of its business where a predicate says so.
    let guarded = IndexDefinition { name: "guarded".into(), ..inverse() };
    db.create_index("t", guarded.only_where(expressions::expression("(a <> 0)", 1, 2))).unwrap();
    assert_eq!(all(&db, &table, "guarded"), [3, 2]);
    let view = db.read_view().unwrap();
    run(&db, |t| t.update(&table, &[Value::from(1i64)], &[("a", Value::from(6i64))]).map(drop)).unwrap();
    // The version that fails is in the past, and a view still sees it.
    let index = db.create_index("t", inverse()).unwrap();
    assert_eq!(all(&db, &table, "inverse"), [1, 3, 2]);
    let scan = table.index_scan(&view, &index, &IndexRange::all(), Direction::Upward, Default::default());
    assert_eq!(scan.unwrap().map(|batch| batch.unwrap().num_rows()).sum::<usize>(), 2);
}

#[test]
fn keys_of_a_part_are_unique_there_and_rows_come_and_go() {
    let db = Database::in_memory_with(&options());
    let table = make_with(&db, Retention::None);
    db.create_index("t", odd()).unwrap();
    let set = |id: i64, a: i64| run(&db, |t| t.update(&table, &[Value::from(id)], &[("a", Value::from(a))]).map(drop));
    run(&db, |t| (1..=4).try_for_each(|id| t.insert(&table, &row(id, 2)).map(drop))).unwrap();
    assert_eq!(all(&db, &table, "odd"), [0i64; 0]);
    set(1, 7).unwrap();
    let error = set(2, 7).unwrap_err();
    assert!(matches!(&error, Error::DuplicateKey { key, .. } if key == "(a)=(7)"), "{error}");
    set(1, 2).unwrap();
    set(2, 7).unwrap();
    set(3, 5).unwrap();
    assert_eq!(all(&db, &table, "odd"), [3, 2]);
    // A transaction that gives a key up keeps it until it has committed.
    let mut leaving = db.begin().unwrap();
    leaving.update(&table, &[Value::from(2i64)], &[("a", Value::from(2i64))]).unwrap();
    let mut coming = db.begin().unwrap();
    let refused = coming.update(&table, &[Value::from(4i64)], &[("a", Value::from(7i64))]);
    assert!(matches!(refused, Err(Error::Conflict)), "{refused:?}");
    leaving.rollback();
    assert!(matches!(set(4, 7), Err(Error::DuplicateKey { .. })));
    // Entries of those that have gone are swept.
    let (before, index) = (all(&db, &table, "odd"), db.begin().unwrap().index("odd").unwrap().1);
    (0..50).for_each(|i| set(3, if i % 2 == 0 { 2 } else { 101 + i }).unwrap());
    set(3, 5).unwrap();
    db.reclaim_now();
    assert_eq!(all(&db, &table, "odd"), before);
    assert_eq!(table.index_estimate(&index, &IndexRange::all(), 100).unwrap(), 2);
}

#[test]
fn a_serializable_transaction_finds_who_came_into_what_it_read_or_left_it() {
    let db = Database::in_memory_with(&options());
    let table = make(&db);
    db.create_index("t", odd()).unwrap();
    db.create_index("t", IndexDefinition::of("upper", vec![part("upper(t)")])).unwrap();
    run(&db, |t| (1..=4).try_for_each(|id| t.insert(&table, &row(id, id * 2)).map(drop))).unwrap();
    run(&db, |t| t.insert(&table, &row(9, 21)).map(drop)).unwrap();
    let range = IndexRange::between(Bound::Included(Value::from(20i64)), Bound::Unbounded);
    // Which change of which row is one of what was read: into the predicate and out of it, within it, beside it.
    let changes = [(1, 25, true), (9, 20, true), (9, 23, true), (2, 30, false), (1, 3, false)];
    for (id, a, is_seen) in changes {
        let mut reader = db.begin_with(TransactionOptions::at(Isolation::Serializable)).unwrap();
        ids(&reader, &table, "odd", &range);
        reader.insert(&table, &row(100, 100)).unwrap();
        let mut writer = db.begin().unwrap();
        writer.update(&table, &[Value::from(id)], &[("a", Value::from(a))]).unwrap();
        writer.commit().unwrap();
        let committed = reader.commit();
        assert_eq!(matches!(committed, Err(Error::ReadChanged)), is_seen, "{id} to {a}: {committed:?}");
        run(&db, |t| t.delete(&table, &[Value::from(100i64)]).map(drop)).unwrap();
        run(&db, |t| t.update(&table, &[Value::from(9i64)], &[("a", Value::from(21i64))]).map(drop)).unwrap();
        run(&db, |t| t.update(&table, &[Value::from(1i64)], &[("a", Value::from(2i64))]).map(drop)).unwrap();
    }
    let mut reader = db.begin_with(TransactionOptions::at(Isolation::Serializable)).unwrap();
    assert_eq!(ids(&reader, &table, "upper", &IndexRange::equal(vec![Value::from("NEW")])), [0i64; 0]);
    reader.insert(&table, &row(100, 100)).unwrap();
    run(&db, |t| t.update(&table, &[Value::from(4i64)], &[("t", Value::from("New"))]).map(drop)).unwrap();
    assert!(matches!(reader.commit(), Err(Error::ReadChanged)));
}

#[test]
fn what_was_made_is_there_when_the_database_is_opened_again_with_what_it_needs() {
    for has_checkpoint in [false, true] {
        let device = FaultyDevice::new(0);
        let open = |options| Database::open_on(Arc::new(device.clone()), options);
        let db = open(options()).unwrap();
        let table = make(&db);
        run(&db, |t| (1..=6).try_for_each(|id| t.insert(&table, &row(id, id)).map(drop))).unwrap();
        db.create_index("t", odd()).unwrap();
        db.create_index("t", inverse()).unwrap();
        run(&db, |t| t.update(&table, &[Value::from(3i64)], &[("a", Value::from(10i64))]).map(drop)).unwrap();
        if has_checkpoint {
            db.checkpoint().unwrap();
        }
        run(&db, |t| t.update(&table, &[Value::from(4i64)], &[("a", Value::from(3i64))]).map(drop)).unwrap();
        drop((table, db));
        let error = open(OpenOptions::default()).map(drop).unwrap_err();
        let message = error.to_string();
        assert!(matches!(error, Error::NoExpressions { .. }), "{message}");
        assert!(message.contains("index \"") && message.contains("sql::open"), "{message}");
        let db = open(options()).unwrap();
        let table = db.table("t").unwrap();
        assert_eq!((all(&db, &table, "odd"), all(&db, &table, "inverse")), (vec![1, 4, 5], vec![3, 5, 6, 4, 2, 1]));
        let refused = run(&db, |t| t.update(&table, &[Value::from(6i64)], &[("a", Value::from(3i64))]).map(drop));
        assert!(matches!(refused, Err(Error::DuplicateKey { .. })));
        db.drop_index("odd").unwrap();
        db.drop_index("inverse").unwrap();
        drop((table, db));
        assert!(open(OpenOptions::default()).is_ok(), "they are gone");
    }
}

#[test]
fn verifying_needs_what_opening_needs_and_finds_no_fault() {
    let directory = tempfile::tempdir().unwrap();
    let db = Database::open_with(directory.path(), options()).unwrap();
    let table = make(&db);
    db.create_index("t", odd()).unwrap();
    db.create_index("t", IndexDefinition::of("half", vec![part("(a / 2)"), IndexPart::Column(2)])).unwrap();
    run(&db, |t| (0..3000).try_for_each(|id| t.insert(&table, &row(id, id)).map(drop))).unwrap();
    run(&db, |t| {
        let mut move_out = |id: i64| t.update(&table, &[Value::from(id)], &[("a", Value::from(2 * id))]).map(drop);
        (0..40).try_for_each(&mut move_out)
    })
    .unwrap();
    drop((table, db));
    let found = Database::verify_with(directory.path(), options()).unwrap();
    assert_eq!(found.faults, [""; 0]);
    // The rows by their key, those of odd numbers, and all by their halves.
    assert!(found.index_entries >= 3000 + 1480 + 3000, "{}", found.index_entries);
    assert!(matches!(Database::verify(directory.path(), |_, _| ()), Err(Error::NoExpressions { .. })));
}

#[test]
fn a_database_gets_what_it_needs_once_and_says_so_until_then() {
    let db = Database::in_memory();
    let table = make(&db);
    assert!(matches!(db.create_index("t", odd()), Err(Error::NoExpressions { index }) if index == "odd"));
    db.supply_expressions(|| Arc::new(expressions::Compiler));
    db.supply_expressions(|| unreachable!("it has them"));
    db.create_index("t", odd()).unwrap();
    run(&db, |t| t.insert(&table, &row(1, 1)).map(drop)).unwrap();
    assert_eq!(all(&db, &table, "odd"), [1]);
    let unknown = engine::IndexExpression { text: "what(a)".into(), columns: vec![1], data_type: DataType::BigInt };
    let unknown = IndexDefinition::of("i", vec![IndexPart::Expression(unknown)]);
    let error = db.create_index("t", unknown).map(drop).unwrap_err();
    assert!(matches!(error, Error::BadIndex { .. }) && error.to_string().contains("no such expression"), "{error}");
}
