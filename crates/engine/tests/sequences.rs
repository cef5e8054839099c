//! Numbers from sequences: each once, whatever becomes of transactions, threads and power.
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use engine::{
    Column, DataType, Database, Durability, Error, OpenOptions, Party, Retention, Schema, Sequence, SequenceOptions,
    SequenceWaits, SessionNumber, TransactionOptions, Value,
};
use testkit::FaultyDevice;

fn up(min: i64, max: i64) -> SequenceOptions {
    SequenceOptions { start: min, min, max, ..SequenceOptions::default() }
}

fn made(options: SequenceOptions) -> (Database, Sequence) {
    let db = Database::in_memory();
    db.create_sequence("s", options).unwrap();
    let sequence = db.sequence("s").unwrap();
    (db, sequence)
}

fn take(sequence: &Sequence, count: usize) -> Vec<i64> {
    (0..count).map(|_| sequence.next_value().unwrap()).collect()
}

fn open(device: &FaultyDevice) -> Result<Database, Error> {
    let options = OpenOptions { merge_threads: Some(0), ..OpenOptions::default() };
    Database::open_on(Arc::new(device.clone()), options)
}

#[test]
fn numbers_go_from_bound_to_bound() {
    let (_, sequence) = made(up(1, 3));
    assert_eq!(take(&sequence, 3), [1, 2, 3]);
    let end = sequence.next_value().unwrap_err();
    assert_eq!(end.to_string(), "nextval: reached maximum value of sequence \"s\" (3)");
    assert_eq!((end.sqlstate(), sequence.position().unwrap().last_value), ("2200H", 3));

    let down = SequenceOptions { start: 5, increment: -4, min: -5, max: 7, ..SequenceOptions::default() };
    let (_, sequence) = made(down);
    assert_eq!(take(&sequence, 3), [5, 1, -3]);
    let end = sequence.next_value().unwrap_err();
    assert_eq!(end.to_string(), "nextval: reached minimum value of sequence \"s\" (-5)");

    let (_, sequence) = made(SequenceOptions { cycle: true, ..down });
    assert_eq!(take(&sequence, 8), [5, 1, -3, 7, 3, -1, -5, 7]);

    let (_, sequence) = made(SequenceOptions { cycle: true, start: 99, ..up(1, 100) });
    assert_eq!(take(&sequence, 300).into_iter().collect::<BTreeSet<_>>().len(), 100);

    let (_, sequence) = made(up(i64::MAX - 40, i64::MAX));
    assert_eq!(take(&sequence, 41).last(), Some(&i64::MAX));
    assert!(sequence.next_value().is_err());
}

#[test]
fn options_that_contradict_each_other_are_refused() {
    let db = Database::in_memory();
    let refused = |options| match db.create_sequence("s", options) {
        Err(error @ Error::BadSequence(_)) => (error.sqlstate(), error.to_string()),
        other => panic!("{other:?}"),
    };
    let plain = SequenceOptions::default();
    let small = SequenceOptions { data_type: DataType::SmallInt, ..up(1, 32_768) };
    assert_eq!(refused(SequenceOptions { increment: 0, ..plain }).1, "INCREMENT must not be zero");
    assert_eq!(refused(small).1, "MAXVALUE (32768) is out of range for sequence data type smallint");
    assert_eq!(refused(up(3, 3)).1, "MINVALUE (3) must be less than MAXVALUE (3)");
    assert_eq!(refused(SequenceOptions { start: 0, ..plain }).0, "22023");
    assert_eq!(
        refused(SequenceOptions { start: 9, ..up(1, 8) }).1,
        "START value (9) cannot be greater than MAXVALUE (8)"
    );
    assert_eq!(refused(SequenceOptions { data_type: DataType::TEXT, ..plain }).0, "22023");
    assert!(db.sequence_names().is_empty());
}

#[test]
fn threads_never_get_a_number_twice() {
    let (_, sequence) = made(SequenceOptions::default());
    let all: Vec<Vec<i64>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| take(&sequence, 700))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(all.iter().all(|numbers| numbers.is_sorted()));
    let different: BTreeSet<i64> = all.into_iter().flatten().collect();
    assert_eq!((different.len(), different.last()), (2_800, Some(&2_800)));
}

#[test]
fn numbers_are_set() {
    let (_, sequence) = made(up(1, 100));
    sequence.set_value(50, true).unwrap();
    assert_eq!(take(&sequence, 2), [51, 52]);
    sequence.set_value(7, false).unwrap();
    assert_eq!(take(&sequence, 2), [7, 8]);
    let refused = sequence.set_value(101, true).unwrap_err();
    assert_eq!((refused.sqlstate(), take(&sequence, 1)), ("22003", vec![9]));
}

/// Numbers that a transaction takes from a sequence that is there for all stay taken; numbers from its own sequence
/// are its own.
#[test]
fn a_rollback_gives_no_number_back() {
    let (db, sequence) = made(SequenceOptions::default());
    let transaction = db.begin().unwrap();
    assert_eq!(take(&transaction.sequence(&db.table("s").unwrap()).unwrap(), 3), [1, 2, 3]);
    transaction.rollback();
    assert_eq!(take(&sequence, 1), [4]);

    let mut transaction = db.begin().unwrap();
    transaction.create_sequence("own", up(10, 99)).unwrap();
    let own = transaction.sequence(&transaction.table("own").unwrap()).unwrap();
    assert!(db.sequence("own").is_err());
    assert_eq!(take(&own, 2), [10, 11]);
    let savepoint = transaction.savepoint();
    assert_eq!(take(&own, 40).len(), 40);
    transaction.rollback_to(savepoint).unwrap();
    assert_eq!(take(&own, 1), [52]);
    transaction.commit().unwrap();
    assert_eq!(take(&db.sequence("own").unwrap(), 1), [53]);
}

#[test]
fn a_sequence_is_changed_within_a_transaction() {
    let (db, sequence) = made(up(1, 100));
    take(&sequence, 5);
    let changed = SequenceOptions { increment: 10, ..up(1, 1_000) };
    for (commits, restart, next) in [(false, None, 6), (true, None, 16), (true, Some(3), 3)] {
        let mut transaction = db.begin().unwrap();
        transaction.alter_sequence("s", changed, restart).unwrap();
        let seen = transaction.sequence(&transaction.table("s").unwrap()).unwrap();
        assert_eq!(*seen.options(), changed);
        if commits {
            transaction.commit().map(drop).unwrap()
        } else {
            transaction.rollback()
        }
        assert_eq!(take(&db.sequence("s").unwrap(), 1), [next]);
    }
    assert_eq!(take(&sequence, 1), [13], "a handle goes on with what has taken its place");
    let refused = db.begin().unwrap().alter_sequence("s", up(1, 2), None).unwrap_err();
    assert_eq!(refused.to_string(), "RESTART value (13) cannot be greater than MAXVALUE (2)");
    assert_eq!(sequence.id(), db.sequence("s").unwrap().id(), "it is the same sequence for its former handles");
    db.drop_sequence("s").unwrap();
    db.create_sequence("s", up(1, 100)).unwrap();
    assert!(matches!(sequence.next_value(), Err(Error::NoSuchTable(_))), "this one is another");
    assert_ne!(sequence.id(), db.sequence("s").unwrap().id());
}

#[test]
fn who_waited_for_a_change_of_the_sequence_gets_a_number_of_the_changed_one() {
    let (db, sequence) = made(up(1, 100));
    take(&sequence, 2);
    for (commits, next) in [(false, 3), (true, 50)] {
        let mut transaction = db.begin().unwrap();
        transaction.alter_sequence("s", up(1, 100), Some(7)).unwrap();
        let savepoint = transaction.savepoint();
        transaction.alter_sequence("s", up(1, 1_000), Some(60)).unwrap();
        transaction.rollback_to(savepoint).unwrap();
        transaction.alter_sequence("s", up(1, 1_000), Some(50)).unwrap();
        std::thread::scope(|scope| {
            let taking = scope.spawn(|| sequence.next_value());
            std::thread::sleep(std::time::Duration::from_millis(20));
            assert!(!taking.is_finished());
            if commits {
                transaction.commit().map(drop).unwrap()
            } else {
                transaction.rollback()
            }
            assert_eq!(taking.join().unwrap().unwrap(), next);
        });
    }
}

/// Counts the looks during a wait.
struct Looks {
    limit: Option<Duration>,
    count: AtomicUsize,
}

impl SequenceWaits for Looks {
    fn session(&self) -> Option<SessionNumber> {
        None
    }

    fn limit(&self) -> Option<Duration> {
        self.limit
    }

    fn look(&self, _: Party) -> Result<(), Error> {
        self.count.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

#[test]
fn a_wait_for_a_sequence_counts_once_however_often_it_is_looked_at() {
    let (db, sequence) = made(up(1, 100));
    take(&sequence, 1);
    for (limit, timed_out) in [(None, 0), (Some(Duration::from_millis(70)), 1)] {
        let looks = Arc::new(Looks { limit, count: AtomicUsize::new(0) });
        let waiting = db.sequence("s").unwrap().waiting(looks.clone());
        let before = db.wait_counts();
        let mut transaction = db.begin().unwrap();
        transaction.alter_sequence("s", up(1, 1_000), None).unwrap();
        let done = std::thread::scope(|scope| {
            let taking = scope.spawn(|| waiting.next_value());
            // Where time is short, the limit is met before the third look.
            while looks.count.load(Ordering::SeqCst) < 3 && !taking.is_finished() {
                std::thread::yield_now();
            }
            if limit.is_none() {
                transaction.rollback();
            }
            taking.join().unwrap()
        });
        assert_eq!(done.is_err(), limit.is_some());
        let after = db.wait_counts();
        let counted = (after.waits - before.waits, after.timed_out - before.timed_out);
        assert_eq!(counted, (1, timed_out), "{limit:?}");
    }
}

#[test]
fn who_drops_a_sequence_is_waited_for() {
    let (db, sequence) = made(SequenceOptions::default());
    take(&sequence, 1);
    for commits in [false, true] {
        let mut transaction = db.begin().unwrap();
        transaction.drop_sequence("s").unwrap();
        std::thread::scope(|scope| {
            let taking = scope.spawn(|| sequence.next_value());
            std::thread::sleep(std::time::Duration::from_millis(20));
            assert!(!taking.is_finished());
            if commits {
                transaction.commit().map(drop).unwrap()
            } else {
                transaction.rollback()
            }
            match taking.join().unwrap() {
                Ok(number) => assert!(number == 2 && !commits),
                Err(error) => assert!(matches!(error, Error::NoSuchTable(_)) && commits),
            }
        });
    }
}

#[test]
fn tables_and_sequences_are_told_apart() {
    let (db, _) = made(SequenceOptions::default());
    let schema = Schema::new(vec![Column::new("id", DataType::BigInt)], &["id"]).unwrap();
    let table = db.create_table("t", schema.clone()).unwrap();
    assert!(table.sequence().is_none() && db.sequence("t").is_err());
    assert_eq!((db.table_names(), db.sequence_names()), (vec!["t".to_owned()], vec!["s".to_owned()]));
    assert!(matches!(db.create_table("s", schema), Err(Error::TableExists(_))), "they share their names");
    let refusals = [
        db.drop_table("s"),
        db.truncate_table("s"),
        db.set_retention("s", Retention::Forever),
        db.drop_sequence("t"),
        db.begin().unwrap().alter_sequence("t", SequenceOptions::default(), None),
    ];
    assert!(refusals.into_iter().all(|refused| matches!(refused, Err(Error::WrongKind { .. }))));
    let row = [Value::from(1i64), Value::from(0i64), Value::Boolean(true)];
    let written = db.begin().unwrap().insert(&db.table("s").unwrap(), &row);
    assert_eq!(written.unwrap_err().to_string(), "cannot change sequence \"s\"");
    db.rename_table("s", "u").unwrap();
    assert_eq!((db.sequence_names(), take(&db.sequence("u").unwrap(), 1)), (vec!["u".to_owned()], vec![1]));
}

#[test]
fn numbers_go_on_when_the_database_is_opened_again() {
    let directory = tempfile::tempdir().unwrap();
    let mut last = 0;
    for round in 0..6 {
        let db = Database::open(directory.path()).unwrap();
        if round == 0 {
            db.create_sequence("s", SequenceOptions::default()).unwrap();
        }
        let numbers = take(&db.sequence("s").unwrap(), 1 + 20 * round);
        assert_eq!(numbers[0], last + 1, "the row followed the numbers when the database was closed");
        last = numbers[numbers.len() - 1];
        if round % 2 == 1 {
            db.checkpoint().unwrap();
        }
    }
}

/// A transaction that outlives the last handle has the sequence for itself: nobody waits for it, and what was ahead is skipped.
#[test]
fn a_database_that_is_closed_waits_for_no_sequence() {
    let directory = tempfile::tempdir().unwrap();
    let db = Database::open(directory.path()).unwrap();
    for name in ["held", "free"] {
        db.create_sequence(name, SequenceOptions::default()).unwrap();
        assert_eq!(take(&db.sequence(name).unwrap(), 2), [1, 2]);
    }
    let mut holder = db.begin().unwrap();
    holder.rename_table("held", "renamed").unwrap();
    drop(db);
    holder.rollback();
    let db = Database::open(directory.path()).unwrap();
    assert_eq!((take(&db.sequence("held").unwrap(), 1), take(&db.sequence("free").unwrap(), 1)), (vec![33], vec![3]));
}

/// Takes numbers in every way, with checkpoints in between; returns all that were given out, most of them without a commit after.
fn scripted(device: &FaultyDevice) -> (Vec<i64>, Result<(), Error>) {
    let mut given = Vec::new();
    let done = open(device).and_then(|db| {
        let mut making = db.begin()?;
        making.create_sequence("s", SequenceOptions::default())?;
        let own = making.sequence(&making.table("s")?).unwrap();
        let first: Vec<i64> = (0..3).map(|_| own.next_value()).collect::<Result<_, _>>()?;
        making.create_table("t", Schema::new(vec![Column::new("id", DataType::BigInt)], &["id"]).unwrap())?;
        making.commit()?;
        given.extend(first);
        let (sequence, table) = (db.sequence("s")?, db.table("t")?);
        for round in 0..24 {
            let lost = db.begin()?;
            given.push(sequence.next_value()?);
            lost.rollback();
            given.push(sequence.next_value()?);
            let asynchronous = TransactionOptions { durability: Durability::Async, ..TransactionOptions::default() };
            let mut transaction = db.begin_with(asynchronous)?;
            transaction.insert(&table, &[given[given.len() - 1].into()])?;
            transaction.commit()?;
            match round % 8 {
                1 => given.extend(sequence.next_values(1 + 10 * round as usize)?),
                3 => take_under_another_name(&db, &mut given)?,
                5 => sequence.set_value(given[given.len() - 1] + 100, true)?,
                7 => db.begin().and_then(|mut changer| {
                    changer.alter_sequence("s", up(1, 1_000_000 + round), None)?;
                    changer.commit().map(drop)
                })?,
                _ => {}
            }
            if round % 17 == 5 {
                db.checkpoint()?;
            }
        }
        Ok(())
    });
    (given, done)
}

/// A transaction that has the sequence for itself, but has not made it, is rolled back.
fn take_under_another_name(db: &Database, given: &mut Vec<i64>) -> Result<(), Error> {
    let mut renaming = db.begin()?;
    renaming.rename_table("s", "renamed")?;
    let own = renaming.sequence(&renaming.table("renamed")?).unwrap();
    for _ in 0..40 {
        given.push(own.next_value()?);
    }
    renaming.rollback();
    Ok(())
}

#[test]
fn no_number_that_was_given_out_comes_again_after_power_loss() {
    let rehearsal = FaultyDevice::new(0);
    let (given, done) = scripted(&rehearsal);
    done.unwrap();
    assert!(given.is_sorted_by(|first, second| first < second), "{given:?}");
    for step in 1..=rehearsal.steps() {
        let device = FaultyDevice::new(0);
        device.cut_power_at(step);
        let (given, _) = scripted(&device);
        let db = open(&device.after_power_loss(step)).unwrap();
        let Ok(sequence) = db.sequence("s") else {
            assert!(given.is_empty(), "step {step}");
            continue;
        };
        let last = given.last().copied().unwrap_or(0);
        assert!(sequence.next_value().unwrap() > last, "step {step}: after {last}");
    }
}

/// The disk is waited for once in a block of numbers, and once for all that are taken together.
#[test]
fn few_numbers_wait_for_the_disk() {
    let device = FaultyDevice::new(0);
    let db = open(&device).unwrap();
    db.create_sequence("s", SequenceOptions::default()).unwrap();
    let sequence = db.sequence("s").unwrap();
    // What the database does in the background may come on top of some of them.
    let steps_of = |work: &dyn Fn()| {
        let steps = (0..5).map(|_| {
            let before = device.steps();
            work();
            device.steps() - before
        });
        steps.min().unwrap()
    };
    let block = steps_of(&|| drop(take(&sequence, 32)));
    assert_eq!(steps_of(&|| drop(take(&sequence, 320))), 10 * block);
    assert_eq!(steps_of(&|| assert_eq!(sequence.next_values(100_000).unwrap().len(), 100_000)), block);
}
