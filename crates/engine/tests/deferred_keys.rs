//! UNIQUE constraints that a transaction may put off, and keys in which NULL equals NULL: no two rows of one snapshot have one key,
//! whatever is written at the same time.
use std::thread;
use std::time::Duration;

use engine::{
    Column, DataType, Database, Deferral, Error, IndexDefinition, Isolation, Schema, Table, Transaction,
    TransactionOptions, Value,
};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

fn table(db: &Database) -> Table {
    let columns = vec![Column::new("id", DataType::BigInt), Column::new("key", DataType::Integer)];
    db.create_table("t", Schema::new(columns, &["id"]).unwrap()).unwrap()
}

fn begin(db: &Database, isolation: Isolation) -> Transaction {
    let options =
        TransactionOptions { lock_timeout: Some(Duration::from_secs(20)), ..TransactionOptions::at(isolation) };
    db.begin_with(options).unwrap()
}

fn insert(transaction: &mut Transaction, table: &Table, id: i64, key: Value) -> Result<(), Error> {
    transaction.insert(table, &[Value::from(id), key]).map(drop)
}

fn is_duplicate<T>(done: Result<T, Error>) -> bool {
    matches!(done, Err(error @ Error::DuplicateKey { .. }) if error.sqlstate() == "23505")
}

#[test]
fn a_key_may_be_there_twice_until_it_is_looked_at() {
    let db = Database::in_memory();
    let t = table(&db);
    db.create_index("t", IndexDefinition::new("late", &[1]).deferrable(Deferral::Deferred)).unwrap();
    let mut one = begin(&db, Isolation::ReadCommitted);
    insert(&mut one, &t, 1, Value::from(5)).unwrap();
    insert(&mut one, &t, 2, Value::from(5)).unwrap();
    one.end_statement().unwrap();
    one.update(&t, &[Value::from(1i64)], &[("key", Value::from(6))]).unwrap();
    one.commit().unwrap();
    let mut two = begin(&db, Isolation::ReadCommitted);
    two.set_constraints(Some(&["late".to_owned()]), false).unwrap();
    insert(&mut two, &t, 3, Value::from(5)).unwrap();
    assert!(is_duplicate(two.end_statement()));
    two.rollback();
    let mut three = begin(&db, Isolation::ReadCommitted);
    insert(&mut three, &t, 3, Value::from(5)).unwrap();
    assert!(is_duplicate(three.commit()));
}

#[test]
fn a_later_look_waits_for_the_other_and_goes_on_as_that_ends() {
    for commits in [true, false] {
        let db = Database::in_memory();
        let t = table(&db);
        db.create_index("t", IndexDefinition::new("soon", &[1]).deferrable(Deferral::Immediate)).unwrap();
        let mut first = begin(&db, Isolation::ReadCommitted);
        insert(&mut first, &t, 1, Value::from(5)).unwrap();
        first.end_statement().unwrap();
        thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                let mut second = begin(&db, Isolation::ReadCommitted);
                insert(&mut second, &t, 2, Value::from(5))?;
                second.commit().map(drop)
            });
            thread::sleep(Duration::from_millis(30));
            assert!(!waiting.is_finished(), "it is not known whether the key is free");
            if commits {
                first.commit().unwrap();
            } else {
                first.rollback()
            }
            assert_eq!(is_duplicate(waiting.join().unwrap()), commits);
        });
    }
}

/// Rows that others put in, change and take away at once, of which no two that are committed have one key, NULL included.
fn no_key_is_there_twice(definition: IndexDefinition, isolation: Isolation) {
    const IDS: i64 = 12;
    let directory = tempfile::tempdir().unwrap();
    let db = Database::open(directory.path()).unwrap();
    let t = table(&db);
    db.create_index("t", definition).unwrap();
    thread::scope(|scope| {
        for seed in 0..4 {
            let (db, t) = (&db, &t);
            scope.spawn(move || {
                let mut random = StdRng::seed_from_u64(seed);
                for _ in 0..150 {
                    let mut transaction = begin(db, isolation);
                    let mut done = Ok(());
                    for _ in 0..random.random_range(1..4) {
                        let id = random.random_range(0..IDS);
                        let key = random.random_range(0..6);
                        let key = if key == 0 { Value::Null } else { Value::from(key) };
                        done = done.and_then(|()| match random.random_range(0..3) {
                            0 => transaction.delete(t, &[Value::from(id)]).map(drop),
                            1 => transaction.update(t, &[Value::from(id)], &[("key", key)]).map(drop),
                            _ => insert(&mut transaction, t, id, key),
                        });
                        done = done.and_then(|()| transaction.end_statement());
                    }
                    match done {
                        Ok(()) => drop(transaction.commit()),
                        Err(_) => transaction.rollback(),
                    }
                }
            });
        }
    });
    let all = begin(&db, Isolation::Snapshot);
    let row = |id: i64| all.get(&t, &[Value::from(id)]).unwrap();
    let mut keys: Vec<String> = (0..IDS).filter_map(row).map(|row| format!("{:?}", row[1])).collect();
    keys.sort_unstable();
    let count = keys.len();
    keys.dedup();
    assert_eq!(keys.len(), count, "{keys:?}");
    drop((all, t, db));
    let verified = Database::verify(directory.path(), |_, _| ()).unwrap();
    assert_eq!(verified.faults, Vec::<String>::new());
}

#[test]
fn random_writers_leave_no_key_twice() {
    for isolation in [Isolation::ReadCommitted, Isolation::Snapshot, Isolation::Serializable] {
        let plain = || IndexDefinition::new("i", &[1]).with_equal_nulls();
        no_key_is_there_twice(plain().unique(), isolation);
        no_key_is_there_twice(plain().deferrable(Deferral::Immediate), isolation);
        no_key_is_there_twice(plain().deferrable(Deferral::Deferred), isolation);
    }
}
