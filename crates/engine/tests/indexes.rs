//! Indexes, case by case: which record has a key, and which transaction waits for which.
use std::ops::Bound;
use std::thread;
use std::time::Duration;

use engine::{
    Column, DataType, Database, Direction, Error, IndexDefinition, IndexMethod, IndexRange, IndexWindow, Isolation,
    Schema, Table, Transaction, TransactionOptions, Value,
};

fn table(db: &Database) -> Table {
    let columns = ["id", "k"].map(|name| Column::new(name, DataType::BigInt)).to_vec();
    db.create_table("t", Schema::new(columns, &["id"]).unwrap()).unwrap()
}

fn unique_methods() -> impl Iterator<Item = IndexMethod> {
    IndexMethod::ALL.into_iter().filter(|method| method.may_be_unique())
}

fn unique(method: IndexMethod) -> IndexDefinition {
    IndexDefinition::new("t_k", &[1]).using(method).unique()
}

fn insert(transaction: &mut Transaction, table: &Table, id: i64, k: impl Into<Value>) -> Result<(), Error> {
    transaction.insert(table, &[Value::from(id), k.into()]).map(drop)
}

fn set(transaction: &mut Transaction, table: &Table, id: i64, k: i64) -> Result<bool, Error> {
    transaction.update(table, &[Value::from(id)], &[("k", Value::from(k))])
}

fn read_committed(db: &Database) -> Transaction {
    db.begin_with(TransactionOptions::at(Isolation::ReadCommitted)).unwrap()
}

fn alone<T>(db: &Database, work: impl FnOnce(&mut Transaction) -> Result<T, Error>) -> Result<T, Error> {
    let mut transaction = read_committed(db);
    let done = work(&mut transaction)?;
    transaction.commit().map(|_| done)
}

fn is_taken<T>(done: Result<T, Error>) -> bool {
    matches!(done, Err(Error::DuplicateKey { constraint, .. }) if constraint == "t_k")
}

/// A record that was deleted is taken to have had its key last only while no record has changed its own.
#[test]
fn a_record_that_has_its_key_again_after_a_rollback_is_asked_although_a_later_one_was_deleted() {
    for method in unique_methods() {
        let db = Database::in_memory();
        let table = table(&db);
        db.create_index("t", unique(method)).unwrap();
        alone(&db, |transaction| {
            insert(transaction, &table, 1, 5i64)?;
            insert(transaction, &table, 2, 6i64)
        })
        .unwrap();
        // The second record's entry under 5 is the newer one, and stays.
        let mut undone = db.begin().unwrap();
        assert!(undone.delete(&table, &[Value::from(1i64)]).unwrap() && set(&mut undone, &table, 2, 5).unwrap());
        undone.rollback();
        db.merge_now();
        alone(&db, |transaction| transaction.delete(&table, &[Value::from(2i64)])).unwrap();
        assert!(is_taken(alone(&db, |transaction| insert(transaction, &table, 3, 5i64))), "{method:?}");
    }
}

/// The newest entry under a key is that of the record which was inserted last, wherever it stands.
#[test]
fn the_records_of_a_key_are_in_order_again_after_a_restart() {
    for method in unique_methods() {
        let directory = tempfile::tempdir().unwrap();
        let db = Database::open(directory.path()).unwrap();
        let t = table(&db);
        db.create_index("t", unique(method)).unwrap();
        // Each thread fills a range of its own: the first record of this one has a lower Rid than those of the other.
        alone(&db, |transaction| insert(transaction, &t, 1, Value::Null)).unwrap();
        for other in 0..3 {
            thread::scope(|scope| {
                scope.spawn(|| {
                    alone(&db, |transaction| insert(transaction, &t, 10 + other, 5i64)).unwrap();
                    alone(&db, |transaction| transaction.delete(&t, &[Value::from(10 + other)])).unwrap();
                });
            });
        }
        alone(&db, |transaction| insert(transaction, &t, 2, 5i64)).unwrap();
        drop((t, db));
        let db = Database::open(directory.path()).unwrap();
        let t = db.table("t").unwrap();
        assert!(is_taken(alone(&db, |transaction| insert(transaction, &t, 3, 5i64))), "{method:?}");
    }
}

#[test]
fn who_wants_a_key_waits_for_the_one_that_may_give_it_up_and_goes_on_as_that_ends() {
    for (commits, method) in [(true, IndexMethod::Btree), (false, IndexMethod::Btree), (false, IndexMethod::Hash)] {
        let db = Database::in_memory();
        let t = table(&db);
        db.create_index("t", unique(method)).unwrap();
        let mut first = read_committed(&db);
        insert(&mut first, &t, 1, 5i64).unwrap();
        thread::scope(|scope| {
            let waiting = scope.spawn(|| alone(&db, |transaction| insert(transaction, &t, 2, 5i64)));
            thread::sleep(Duration::from_millis(30));
            assert!(!waiting.is_finished(), "it is not known whether the key is free");
            if commits {
                first.commit().map(drop).unwrap();
            } else {
                first.rollback()
            }
            assert_eq!(is_taken(waiting.join().unwrap()), commits);
        });
    }
}

#[test]
fn above_read_committed_who_wants_a_key_of_a_running_transaction_has_lost() {
    for isolation in [Isolation::Snapshot, Isolation::Serializable] {
        let db = Database::in_memory();
        let t = table(&db);
        db.create_index("t", unique(IndexMethod::Btree)).unwrap();
        let mut first = db.begin().unwrap();
        insert(&mut first, &t, 1, 5i64).unwrap();
        let mut second = db.begin_with(TransactionOptions::at(isolation)).unwrap();
        assert!(matches!(insert(&mut second, &t, 2, 5i64), Err(Error::Conflict)));
        first.commit().unwrap();
        // Its snapshot does not show the row that has the key.
        assert!(is_taken(insert(&mut second, &t, 2, 5i64)));
    }
}

#[test]
fn a_key_is_free_again_for_the_transaction_that_gave_it_up() {
    for method in unique_methods() {
        let db = Database::in_memory();
        let t = table(&db);
        db.create_index("t", unique(method)).unwrap();
        alone(&db, |transaction| insert(transaction, &t, 1, 5i64)).unwrap();
        alone(&db, |transaction| {
            assert!(is_taken(insert(transaction, &t, 2, 5i64)));
            transaction.delete(&t, &[Value::from(1i64)])?;
            insert(transaction, &t, 2, 5i64)?;
            assert!(set(transaction, &t, 2, 6)?);
            insert(transaction, &t, 3, 5i64)?;
            let savepoint = transaction.savepoint();
            assert!(set(transaction, &t, 3, 7)?);
            insert(transaction, &t, 4, 5i64)?;
            transaction.rollback_to(savepoint)?;
            assert!(is_taken(insert(transaction, &t, 4, 5i64)));
            // NULL is never the same key.
            insert(transaction, &t, 5, Value::Null)?;
            insert(transaction, &t, 6, Value::Null)
        })
        .unwrap();
        assert!(is_taken(alone(&db, |transaction| insert(transaction, &t, 7, 6i64))));
    }
}

#[test]
fn an_index_waits_for_those_who_write_and_not_for_those_who_come_later() {
    let db = Database::in_memory();
    let t = table(&db);
    let mut early = db.begin().unwrap();
    insert(&mut early, &t, 1, 5i64).unwrap();
    thread::scope(|scope| {
        let making = scope.spawn(|| db.create_index("t", IndexDefinition::new("t_k", &[1])).unwrap());
        thread::sleep(Duration::from_millis(30));
        assert!(!making.is_finished() && t.indexes().is_empty());
        // It neither waits nor is waited for.
        let mut late = db.begin().unwrap();
        insert(&mut late, &t, 2, 5i64).unwrap();
        early.commit().unwrap();
        let index = making.join().unwrap();
        late.commit().unwrap();
        let transaction = db.begin().unwrap();
        let range = IndexRange::equal(vec![Value::from(5i64)]);
        let rows = transaction.index_scan(&t, &index, &range, Direction::Downward).unwrap();
        let mut ids: Vec<Value> = rows.map(|row| row.unwrap().1.swap_remove(0)).collect();
        ids.sort_by_key(Value::to_string);
        assert_eq!(ids, [Value::from(1i64), Value::from(2i64)]);
    });
}

#[test]
fn ranges_that_an_index_can_not_serve_are_refused() {
    let db = Database::in_memory();
    let t = table(&db);
    let hash = db.create_index("t", IndexDefinition::new("h", &[0, 1]).using(IndexMethod::Hash)).unwrap();
    let tree = db.create_index("t", IndexDefinition::new("b", &[1])).unwrap();
    let transaction = db.begin().unwrap();
    let refused = |index, range: &IndexRange| {
        let scan = transaction.index_scan(&t, index, range, Direction::Upward);
        matches!(scan, Err(Error::BadIndexRange { .. }))
    };
    let one = || vec![Value::from(1i64)];
    assert!(refused(&hash, &IndexRange::all()) && refused(&hash, &IndexRange::equal(one())));
    assert!(refused(&tree, &IndexRange::equal([one(), one()].concat())));
    assert!(!refused(&tree, &IndexRange::equal(one())) && !refused(&hash, &IndexRange::equal([one(), one()].concat())));
    let plane = db.create_index("t", IndexDefinition::new("w", &[0, 1]).using(IndexMethod::Bwd)).unwrap();
    let open =
        |width: usize| IndexRange::within(IndexWindow::Between(vec![(Bound::Unbounded, Bound::Unbounded); width]));
    assert!(refused(&tree, &open(1)) && refused(&plane, &open(1)) && refused(&plane, &IndexRange::equal(one())));
    assert!(!refused(&plane, &open(2)));
    let space = db.create_index("t", IndexDefinition::new("g", &[1]).using(IndexMethod::Gist)).unwrap();
    let any = IndexRange::within(IndexWindow::Overlapping { extents: vec![None], takes_others: true });
    assert!(refused(&space, &open(1)) && refused(&space, &IndexRange::equal(one())) && refused(&plane, &any));
    assert!(!refused(&space, &any));
    for (definition, why) in [
        (IndexDefinition::new("x", &[]), "no columns"),
        (IndexDefinition::new("x", &[7]), "no column number 7"),
        (IndexDefinition::new("x", &[0, 1]).using(IndexMethod::Kiss), "takes one column"),
        (IndexDefinition::new("x", &[1]).using(IndexMethod::Bwd).unique(), "does not support unique indexes"),
        (IndexDefinition::new("x", &[0, 1, 0]).using(IndexMethod::Bwd), "takes one or two columns"),
        (IndexDefinition::new("x", &[0, 1, 0, 1, 0]).using(IndexMethod::Gist), "4 dimensions at most"),
        (IndexDefinition::new("x", &[1]).using(IndexMethod::Bwd).with_budget(1), "a budget of 1 bytes is too small"),
    ] {
        let error = db.create_index("t", definition).map(drop).unwrap_err();
        assert!(error.to_string().contains(why), "{error}");
    }
}
