//! Rows by key without a transaction: `PointAccess::newest` says what `Table::lookup_values` says, or nothing.
use engine::{Column, DataType, Database, Error, OpenOptions, PointAccess, Schema, Table, TransactionOptions, Value};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

const KEYS: i64 = 20;

fn table(db: &Database, name: &str) -> (Table, PointAccess) {
    let columns = vec![
        Column::new("id", DataType::BigInt),
        Column::new("a", DataType::BigInt),
        Column::new("b", DataType::Integer),
    ];
    let table = db.create_table(name, Schema::new(columns, &["id"]).unwrap()).unwrap();
    let access = table.point_access(&[2, 0, 1]).unwrap().unwrap();
    (table, access)
}

fn run(db: &Database, work: impl Fn(&mut engine::Transaction) -> Result<(), Error>) {
    db.run(TransactionOptions::default(), work).unwrap();
}

/// The row as values, by the short way.
fn newest(access: &PointAccess, key: i64) -> Option<Vec<Value>> {
    let mut words = [7; 3];
    let nulls = access.newest(key, &mut words).unwrap()?;
    let value = |(at, word): (usize, &u64)| match nulls >> at & 1 {
        0 => access.value(at, *word),
        _ => Value::Null,
    };
    Some(words.iter().enumerate().map(value).collect())
}

#[test]
fn the_newest_row_is_the_one_that_a_view_of_this_moment_finds() {
    let db = Database::in_memory_with(&OpenOptions { merge_tail_records: Some(8), ..OpenOptions::default() });
    let (table, access) = table(&db, "t");
    let mut random = StdRng::seed_from_u64(27);
    let mut found = 0;
    for step in 0..2000 {
        let (key, a) = (random.random_range(0..KEYS), random.random_range(-5..5i64));
        let b = if a < 0 { Value::Null } else { Value::Integer(step) };
        let row = [Value::BigInt(key), Value::BigInt(a), b.clone()];
        run(&db, |transaction| match step % 7 {
            0 => transaction.delete(&table, &row[..1]).map(drop),
            _ if transaction.get(&table, &row[..1])?.is_some() => {
                transaction.update(&table, &row[..1], &[("a", row[1].clone()), ("b", b.clone())]).map(drop)
            }
            _ => transaction.insert(&table, &row).map(drop),
        });
        if step % 100 == 50 {
            db.merge_now();
        }
        let other = random.random_range(0..KEYS);
        for key in [key, other] {
            let view = db.read_view().unwrap();
            let wanted = table.lookup_values(&view, &[Value::BigInt(key)], &[2, 0, 1]).unwrap();
            assert_eq!(newest(&access, key), wanted, "key {key} at step {step}");
            found += u32::from(wanted.is_some());
        }
    }
    assert!(found > 1000, "{found} rows were there");
}

#[test]
fn what_is_not_committed_is_not_the_newest() {
    let db = Database::in_memory();
    let (table, access) = table(&db, "t");
    run(&db, |transaction| transaction.insert(&table, &[Value::BigInt(1), Value::BigInt(10), Value::Null]).map(drop));
    let mut open = db.begin().unwrap();
    open.update(&table, &[Value::BigInt(1)], &[("a", Value::BigInt(11))]).unwrap();
    open.insert(&table, &[Value::BigInt(2), Value::BigInt(20), Value::Null]).unwrap();
    assert_eq!(newest(&access, 1), Some(vec![Value::Null, Value::BigInt(1), Value::BigInt(10)]));
    assert_eq!(newest(&access, 2), None);
    open.commit().unwrap();
    assert_eq!(newest(&access, 1), Some(vec![Value::Null, Value::BigInt(1), Value::BigInt(11)]));
    assert_eq!(newest(&access, 2), Some(vec![Value::Null, Value::BigInt(2), Value::BigInt(20)]));
}

#[test]
fn a_name_that_means_another_table_has_no_newest_row() {
    let db = Database::in_memory();
    let row = [Value::BigInt(1), Value::BigInt(10), Value::Null];
    let (first, access) = table(&db, "t");
    run(&db, |transaction| transaction.insert(&first, &row).map(drop));
    assert!(access.is_current() && newest(&access, 1).is_some());
    db.truncate_table("t").unwrap();
    assert!(!access.is_current() && newest(&access, 1).is_none());
    let (second, access) = table(&db, "u");
    run(&db, |transaction| transaction.insert(&second, &row).map(drop));
    db.rename_table("u", "v").unwrap();
    assert!(access.is_current() && newest(&access, 1).is_some(), "an access goes with its table");
    assert_eq!(access.table().name(), "v");
    let (third, access) = table(&db, "w");
    run(&db, |transaction| transaction.insert(&third, &row).map(drop));
    db.drop_table("w").unwrap();
    assert!(!access.is_current() && newest(&access, 1).is_none());
}

#[test]
fn a_table_whose_rows_have_changed_keys_is_read_the_general_way() {
    let db = Database::in_memory();
    let (table, access) = table(&db, "t");
    run(&db, |transaction| transaction.insert(&table, &[Value::BigInt(1), Value::BigInt(10), Value::Null]).map(drop));
    run(&db, |transaction| transaction.update(&table, &[Value::BigInt(1)], &[("id", Value::BigInt(2))]).map(drop));
    assert_eq!((newest(&access, 1), newest(&access, 2)), (None, None));
    let mut words = [0; 2];
    assert!(matches!(access.newest(1, &mut words), Err(Error::WrongWidth { expected: 3, found: 2, .. })));
}
