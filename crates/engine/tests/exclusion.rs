//! Exclusion constraints: no two rows of one snapshot exclude each other, whatever is written at the same time.
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use engine::{
    Column, DataType, Database, Deferral, Error, Exclusion, IndexDefinition, IndexMethod, Isolation, OpenOptions,
    RangeKind, RangeValue, Schema, Table, Transaction, TransactionOptions, Value,
};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

const KIND: RangeKind = RangeKind::Int4;

fn range(low: i128, high: i128) -> Value {
    Value::Range(Box::new(RangeValue::new(KIND, Some((low, true)), Some((high, false))).unwrap()))
}

fn table(db: &Database) -> Table {
    let columns = vec![
        Column::new("id", DataType::BigInt),
        Column::new("room", DataType::Integer),
        Column::new("during", DataType::Range(KIND)),
    ];
    db.create_table("t", Schema::new(columns, &["id"]).unwrap()).unwrap()
}

fn constraint() -> IndexDefinition {
    let exclusion = vec![Exclusion::Equal, Exclusion::Overlapping];
    IndexDefinition::new("t_excl", &[1, 2]).using(IndexMethod::Gist).excluding(exclusion)
}

fn begin(db: &Database, isolation: Isolation) -> Transaction {
    let options =
        TransactionOptions { lock_timeout: Some(Duration::from_secs(20)), ..TransactionOptions::at(isolation) };
    db.begin_with(options).unwrap()
}

fn insert(transaction: &mut Transaction, table: &Table, id: i64, room: i32, during: Value) -> Result<(), Error> {
    transaction.insert(table, &[Value::from(id), Value::from(room), during]).map(drop)
}

fn is_excluded<T>(done: Result<T, Error>) -> bool {
    matches!(done, Err(error @ Error::ExclusionViolated { .. }) if error.sqlstate() == "23P01")
}

/// The rows that a transaction sees: room, low and high end.
fn rows(transaction: &Transaction, table: &Table) -> Vec<(i64, i128, i128)> {
    let mut rows = Vec::new();
    for id in 0..IDS {
        match transaction.get(table, &[Value::from(id)]).unwrap().as_deref() {
            Some([_, Value::Integer(room), Value::Range(during)]) => {
                let (low, high) = (during.lower().unwrap().0, during.upper().unwrap().0);
                rows.push((i64::from(*room), low, high));
            }
            None => {}
            other => panic!("{other:?}"),
        }
    }
    rows.sort_unstable();
    rows
}

const IDS: i64 = 200;

fn check(transaction: &Transaction, table: &Table) -> usize {
    let rows = rows(transaction, table);
    for pair in rows.windows(2) {
        assert!(pair[0].0 != pair[1].0 || pair[0].2 <= pair[1].1, "{pair:?} are there together");
    }
    rows.len()
}

#[test]
fn a_row_that_another_excludes_is_refused_and_one_beside_it_is_not() {
    let db = Database::in_memory();
    let t = table(&db);
    db.create_index("t", constraint()).unwrap();
    let mut first = begin(&db, Isolation::ReadCommitted);
    insert(&mut first, &t, 1, 7, range(5, 9)).unwrap();
    let refused = insert(&mut first, &t, 2, 7, range(8, 9)).unwrap_err();
    let expected = "conflicting key value violates exclusion constraint \"t_excl\": key (room, during)=(7, [8,9)) \
                    conflicts with existing key (room, during)=(7, [5,9))";
    assert_eq!(refused.to_string(), expected);
    // Neither what follows, nor another room, nor NULL, nor an empty range is in the way; nobody waits for what is not decided.
    let mut second = begin(&db, Isolation::Serializable);
    insert(&mut second, &t, 2, 7, range(9, 12)).unwrap();
    insert(&mut second, &t, 3, 8, range(5, 9)).unwrap();
    insert(&mut second, &t, 4, 7, Value::Null).unwrap();
    insert(&mut second, &t, 5, 7, Value::Range(Box::new(RangeValue::empty(KIND)))).unwrap();
    second.commit().unwrap();
    first.commit().unwrap();
    let mut third = begin(&db, Isolation::ReadCommitted);
    assert!(is_excluded(third.update(&t, &[Value::from(2i64)], &[("during", range(3, 6))])));
    third.rollback();
    let mut fourth = begin(&db, Isolation::ReadCommitted);
    // A row is not in its own way, and one that has gone is in nobody's.
    assert!(fourth.update(&t, &[Value::from(1i64)], &[("during", range(4, 8))]).unwrap());
    assert!(fourth.delete(&t, &[Value::from(2i64)]).unwrap());
    insert(&mut fourth, &t, 6, 7, range(8, 20)).unwrap();
    fourth.commit().unwrap();
}

#[test]
fn a_writer_waits_for_one_that_may_exclude_it_and_goes_on_as_that_ends() {
    for commits in [true, false] {
        let db = Database::in_memory();
        let t = table(&db);
        db.create_index("t", constraint()).unwrap();
        let mut first = begin(&db, Isolation::ReadCommitted);
        insert(&mut first, &t, 1, 7, range(5, 9)).unwrap();
        let mut other = begin(&db, Isolation::Snapshot);
        assert!(matches!(insert(&mut other, &t, 3, 7, range(8, 9)), Err(Error::Conflict)));
        thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                let mut second = begin(&db, Isolation::ReadCommitted);
                insert(&mut second, &t, 2, 7, range(8, 9))?;
                second.commit().map(drop)
            });
            thread::sleep(Duration::from_millis(30));
            assert!(!waiting.is_finished(), "it is not known whether the room is free");
            if commits {
                first.commit().unwrap();
            } else {
                first.rollback()
            }
            assert_eq!(is_excluded(waiting.join().unwrap()), commits);
        });
    }
}

#[test]
fn a_constraint_is_made_only_of_rows_that_do_not_exclude_each_other() {
    let db = Database::in_memory();
    let t = table(&db);
    let mut transaction = begin(&db, Isolation::ReadCommitted);
    insert(&mut transaction, &t, 1, 7, range(5, 9)).unwrap();
    insert(&mut transaction, &t, 2, 7, range(8, 10)).unwrap();
    transaction.commit().unwrap();
    let refused = db.create_index("t", constraint()).map(drop).unwrap_err();
    assert!(matches!(refused, Error::KeysExcluded { .. }), "{refused}");
    let mut transaction = begin(&db, Isolation::ReadCommitted);
    transaction.delete(&t, &[Value::from(1i64)]).unwrap();
    transaction.commit().unwrap();
    db.create_index("t", constraint()).unwrap();
    let wrong = IndexDefinition::new("w", &[1]).excluding(vec![Exclusion::Equal]);
    assert!(db.create_index("t", wrong).map(drop).unwrap_err().to_string().contains("gist"));
}

/// One writer's transactions; returns how many were committed, and how many rows refused.
fn write(db: &Database, table: &Table, seed: u64) -> (u64, u64) {
    let (mut random, mut committed, mut refused) = (StdRng::seed_from_u64(seed), 0, 0);
    for _ in 0..60 {
        let isolation = [Isolation::ReadCommitted, Isolation::ReadCommitted, Isolation::Serializable];
        let mut transaction = begin(db, isolation[random.random_range(0..3)]);
        let mut work = || -> Result<(), Error> {
            for _ in 0..random.random_range(1..4) {
                let (id, low) = (random.random_range(0..IDS), random.random_range(0..60i128));
                let (room, high) = (random.random_range(0..3i32), low + random.random_range(1..5));
                let during = range(low, high);
                let done = match random.random_range(0..4) {
                    0 => transaction.delete(table, &[Value::from(id)]).map(drop),
                    1 => transaction.update(table, &[Value::from(id)], &[("during", during)]).map(drop),
                    _ => insert(&mut transaction, table, id, room, during),
                };
                match done {
                    Err(Error::DuplicateKey { .. }) => {}
                    Err(Error::ExclusionViolated { .. }) => refused += 1,
                    done => done?,
                }
            }
            Ok(())
        };
        match work() {
            Ok(()) if random.random_range(0..8) == 0 => transaction.rollback(),
            Ok(()) => match transaction.commit() {
                Ok(_) => committed += 1,
                Err(Error::ExclusionViolated { .. }) => refused += 1,
                Err(error) => assert!(error.is_retryable(), "{error}"),
            },
            Err(error) => assert!(error.is_retryable(), "{error}"),
        }
    }
    (committed, refused)
}

#[test]
fn of_sixteen_writers_none_commits_what_another_ones_row_excludes() {
    race(constraint());
}

#[test]
fn of_sixteen_writers_that_put_it_off_none_commits_what_another_ones_row_excludes() {
    race(constraint().deferrable(Deferral::Deferred));
}

#[test]
fn what_is_put_off_is_looked_at_before_the_commit() {
    let db = Database::in_memory();
    let t = table(&db);
    db.create_index("t", constraint().deferrable(Deferral::Deferred)).unwrap();
    let mut first = begin(&db, Isolation::ReadCommitted);
    insert(&mut first, &t, 1, 7, range(5, 9)).unwrap();
    insert(&mut first, &t, 2, 7, range(8, 9)).unwrap();
    first.update(&t, &[Value::from(1i64)], &[("during", range(1, 3))]).unwrap();
    first.commit().unwrap();
    let mut second = begin(&db, Isolation::ReadCommitted);
    insert(&mut second, &t, 3, 7, range(2, 4)).unwrap();
    assert!(is_excluded(second.commit()));
    let mut third = begin(&db, Isolation::ReadCommitted);
    insert(&mut third, &t, 4, 7, range(2, 4)).unwrap();
    assert!(is_excluded(third.set_constraints(None, false)));
}

#[test]
fn rows_exclude_each_other_by_the_operators_of_the_constraint() {
    let mut random = StdRng::seed_from_u64(7);
    for exclusion in [
        vec![Exclusion::Equal, Exclusion::Adjacent],
        vec![Exclusion::Different, Exclusion::Adjacent],
        vec![Exclusion::Different, Exclusion::Overlapping],
        vec![Exclusion::Different, Exclusion::Equal],
        vec![Exclusion::Equal, Exclusion::Different],
    ] {
        let db = Database::in_memory();
        let t = table(&db);
        let definition = IndexDefinition::new("x", &[1, 2]).using(IndexMethod::Gist).excluding(exclusion.clone());
        db.create_index("t", definition).unwrap();
        let mut known: Vec<(i32, RangeValue)> = Vec::new();
        for id in 0..150 {
            let low = random.random_range(0..40i128);
            let during = match random.random_range(0..8) {
                0 => RangeValue::empty(KIND),
                1 => RangeValue::new(KIND, Some((low, true)), None).unwrap(),
                _ => RangeValue::new(KIND, Some((low, true)), Some((low + random.random_range(1..5), false))).unwrap(),
            };
            let room = random.random_range(0..3);
            let holds = |of: &Exclusion, is_equal: bool, other: &RangeValue| match of {
                Exclusion::Equal => is_equal,
                Exclusion::Different => !is_equal,
                Exclusion::Overlapping => during.overlaps(other),
                Exclusion::Adjacent => during.is_adjacent(other),
            };
            let is_in_the_way = |(of_room, other): &(i32, RangeValue)| {
                holds(&exclusion[0], room == *of_room, other) && holds(&exclusion[1], during == *other, other)
            };
            let mut transaction = begin(&db, Isolation::ReadCommitted);
            let done = insert(&mut transaction, &t, id, room, Value::Range(Box::new(during)));
            let expected = known.iter().any(is_in_the_way);
            assert_eq!(is_excluded(done), expected, "{exclusion:?}: {room} {during:?} beside {known:?}");
            if !expected {
                transaction.commit().unwrap();
                known.push((room, during));
            }
        }
        assert!(known.len() > 1, "{exclusion:?}");
    }
}

fn race(constraint: IndexDefinition) {
    let options = OpenOptions { range_records: Some(64), merge_tail_records: Some(32), ..OpenOptions::default() };
    let db = Database::in_memory_with(&options);
    let t = table(&db);
    db.create_index("t", constraint).unwrap();
    let running = AtomicU64::new(16);
    let outcomes: Vec<(u64, u64)> = thread::scope(|scope| {
        let (db, t, running) = (&db, &t, &running);
        let writer = |seed| {
            move || {
                let outcome = write(db, t, seed);
                running.fetch_sub(1, Ordering::Relaxed);
                outcome
            }
        };
        let writers: Vec<_> = (0..16).map(|seed| scope.spawn(writer(seed))).collect();
        while running.load(Ordering::Relaxed) > 0 {
            check(&begin(db, Isolation::Snapshot), t);
            db.merge_now();
        }
        writers.into_iter().map(|writer| writer.join().unwrap()).collect()
    });
    assert!(check(&begin(&db, Isolation::Snapshot), &t) > 10);
    let (committed, refused) = outcomes.iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    assert!(committed > 100 && refused > 50, "{committed} commits, {refused} rows refused");
}
