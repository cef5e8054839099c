//! The four strengths of row locks: which keeps off which, which transaction waits for which, and that no deadlock
//! is reported where there is none. PostgreSQL's answers to the same scripts are in `tests/wire/protocol.py`.
use std::collections::HashMap;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use engine::LockStrength::{KeyShare, NoKeyUpdate, Share, Update};
use engine::{
    Column, DataType, Database, Error, IndexDefinition, Isolation, LockStrength, LockWait, RowLock, ScanOptions,
    Schema, Table, Transaction, TransactionOptions, Value,
};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

const STRENGTHS: [LockStrength; 4] = [KeyShare, Share, NoKeyUpdate, Update];

/// The action of a transaction on a row.
#[derive(Clone, Copy, Debug)]
enum Step {
    Lock(LockStrength),
    /// a column of no key
    Set,
    /// the column of a key, or of a unique index
    SetKey(&'static str),
    Delete,
}

const STEPS: [Step; 8] = [
    Step::Lock(KeyShare),
    Step::Lock(Share),
    Step::Lock(NoKeyUpdate),
    Step::Lock(Update),
    Step::Set,
    Step::SetKey("id"),
    Step::SetKey("code"),
    Step::Delete,
];

impl Step {
    fn strength(self) -> LockStrength {
        match self {
            Step::Lock(strength) => strength,
            Step::Set => NoKeyUpdate,
            Step::SetKey(_) | Step::Delete => Update,
        }
    }

    /// Does it to the row with this key; its table has one row for each of 0, 1, 2, ... and nothing is moved.
    fn run(self, transaction: &mut Transaction, table: &Table, id: i64) -> Result<(), Error> {
        let key = [Value::from(id)];
        let done = match self {
            Step::Lock(strength) => {
                let view = transaction.view()?;
                let rid = rid_of(table, &view, id);
                let locked = transaction.lock_row(table, rid, strength, LockWait::Block, &view)?;
                locked == RowLock::Locked || locked == RowLock::Stale
            }
            Step::Set => transaction.update(table, &key, &[("n", Value::from(7i64))])?,
            Step::SetKey(column) => transaction.update(table, &key, &[(column, Value::from(id))])?,
            Step::Delete => transaction.delete(table, &key)?,
        };
        assert!(done, "{self:?}");
        Ok(())
    }
}

fn rid_of(table: &Table, view: &engine::ReadView, id: i64) -> u64 {
    let options = ScanOptions { columns: vec![0], with_rid: true, ..ScanOptions::default() };
    table.lookup(view, &[Value::from(id)], &options).unwrap().column(1).as_primitive::<UInt64Type>().value(0)
}

/// Rows 0, 1, 2, ..., with a key, a unique column, one with an index that is not unique, and one with none.
fn filled(rows: i64) -> (Database, Table) {
    let db = Database::in_memory();
    let columns = ["id", "code", "kind", "n"].map(|name| Column::new(name, DataType::BigInt)).to_vec();
    let table = db.create_table("t", Schema::new(columns, &["id"]).unwrap()).unwrap();
    db.create_index("t", IndexDefinition::new("code", &[1]).unique()).unwrap();
    db.create_index("t", IndexDefinition::new("kind", &[2])).unwrap();
    let mut transaction = db.begin().unwrap();
    for id in 0..rows {
        transaction.insert(&table, &[id, id, 0, 0].map(Value::from)).unwrap();
    }
    transaction.commit().unwrap();
    (db, table)
}

fn begin(db: &Database) -> Transaction {
    db.begin_with(TransactionOptions::at(Isolation::ReadCommitted)).unwrap()
}

/// Does a step that has to wait, and gives up.
fn must_wait(db: &Database, table: &Table, step: Step) -> bool {
    let mut transaction = begin(db);
    transaction.set_lock_timeout(Some(Duration::from_millis(3)));
    match step.run(&mut transaction, table, 0) {
        Ok(()) => false,
        Err(Error::LockTimeout) => true,
        Err(error) => panic!("{step:?}: {error}"),
    }
}

#[test]
fn each_strength_keeps_off_whom_it_should() {
    let conflicts = |first, second| match (first, second) {
        (KeyShare, Update) | (Update, KeyShare) => true,
        (KeyShare, _) | (_, KeyShare) | (Share, Share) => false,
        _ => true,
    };
    for held in STEPS {
        let (db, table) = filled(1);
        let mut holder = begin(&db);
        held.run(&mut holder, &table, 0).unwrap();
        for asked in STEPS {
            let expected = conflicts(held.strength(), asked.strength());
            assert_eq!(held.strength().conflicts_with(asked.strength()), expected);
            assert_eq!(must_wait(&db, &table, asked), expected, "{asked:?} beside {held:?}");
        }
        holder.rollback();
        assert!(!must_wait(&db, &table, Step::Delete), "{held:?} leaves nothing behind");
    }
    let (db, table) = filled(1);
    let mut sharer = begin(&db);
    Step::Lock(KeyShare).run(&mut sharer, &table, 0).unwrap();
    assert!(!must_wait(&db, &table, Step::SetKey("kind")), "nobody refers to a row by an index that is not unique");
}

/// The lock is as strong as all that was done, and as weak again once it is taken back.
#[test]
fn a_transaction_holds_the_most_that_it_took_and_did_not_take_back() {
    for (first, second) in STEPS.iter().flat_map(|first| STEPS.map(|second| (*first, second))) {
        if matches!(first, Step::Delete) {
            continue;
        }
        let (db, table) = filled(1);
        let mut holder = begin(&db);
        first.run(&mut holder, &table, 0).unwrap();
        let savepoint = holder.savepoint();
        second.run(&mut holder, &table, 0).unwrap();
        let strengths = [first.strength(), second.strength()];
        let keeps_off = |asked: LockStrength| strengths.iter().any(|held| held.conflicts_with(asked));
        for asked in STRENGTHS {
            assert_eq!(must_wait(&db, &table, Step::Lock(asked)), keeps_off(asked), "{asked:?}: {first:?}, {second:?}");
        }
        holder.rollback_to(savepoint).unwrap();
        for asked in STRENGTHS {
            let expected = first.strength().conflicts_with(asked);
            assert_eq!(must_wait(&db, &table, Step::Lock(asked)), expected, "{asked:?}: {first:?} without {second:?}");
        }
    }
}

#[test]
fn who_does_not_wait_is_told_at_once() {
    for (held, asked) in STEPS.iter().flat_map(|held| STRENGTHS.map(|asked| (*held, asked))) {
        let (db, table) = filled(1);
        let mut holder = begin(&db);
        held.run(&mut holder, &table, 0).unwrap();
        let mut other = begin(&db);
        let view = other.view().unwrap();
        let rid = rid_of(&table, &view, 0);
        let conflicts = held.strength().conflicts_with(asked);
        let refused = other.lock_row(&table, rid, asked, LockWait::NoWait, &view);
        assert_eq!(matches!(refused, Err(Error::LockNotAvailable { .. })), conflicts, "{asked:?} beside {held:?}");
        let skipped = other.lock_row(&table, rid, asked, LockWait::SkipLocked, &view).unwrap();
        assert_eq!(skipped, if conflicts { RowLock::Skipped } else { RowLock::Locked }, "{asked:?} beside {held:?}");
    }
}

/// Runs `meanwhile` once so many others are waiting, each with a step of its own, and returns what became of them. They commit.
fn beside_waiters(db: &Database, table: &Table, steps: &[Step], meanwhile: impl FnOnce()) -> Vec<Result<(), Error>> {
    thread::scope(|scope| {
        let waiting = || db.running_transactions().iter().filter(|running| running.waits.is_some()).count();
        let waits = |(before, step): (usize, &Step)| {
            let (mut transaction, step) = (begin(db), *step);
            let waiter = scope.spawn(move || {
                step.run(&mut transaction, table, 0)?;
                transaction.commit().map(drop)
            });
            while waiting() <= before && !waiter.is_finished() {
                thread::yield_now();
            }
            waiter
        };
        let waiters: Vec<_> = steps.iter().enumerate().map(waits).collect();
        assert!(waiters.iter().all(|waiter| !waiter.is_finished()));
        meanwhile();
        waiters.into_iter().map(|waiter| waiter.join().unwrap()).collect()
    })
}

/// PostgreSQL lets the waiters wait: the one that shares the row goes on to change it before them.
#[test]
fn who_shares_a_row_may_change_it_beside_those_who_wait_for_that() {
    for (shared, waits) in [(Share, Step::Set), (Share, Step::Lock(Update)), (KeyShare, Step::Lock(Update))] {
        for then in [Step::Set, Step::Lock(NoKeyUpdate), Step::Lock(Update), Step::SetKey("code")] {
            let (db, table) = filled(1);
            let mut sharer = begin(&db);
            Step::Lock(shared).run(&mut sharer, &table, 0).unwrap();
            let outcomes = beside_waiters(&db, &table, &[waits, waits, Step::SetKey("id")], || {
                then.run(&mut sharer, &table, 0).unwrap();
                thread::sleep(Duration::from_millis(3));
                sharer.commit().unwrap();
            });
            assert!(outcomes.iter().all(Result::is_ok), "{shared:?}, {then:?} beside {waits:?}: {outcomes:?}");
            assert_eq!(db.wait_counts().deadlocks, 0);
        }
    }
}

/// Two transactions that share a row and both want to change it wait for each other; one is the victim.
#[test]
fn of_two_who_share_a_row_and_want_to_change_it_one_is_told() {
    let (db, table) = filled(1);
    let mut first = begin(&db);
    let mut second = begin(&db);
    Step::Lock(Share).run(&mut first, &table, 0).unwrap();
    Step::Lock(Share).run(&mut second, &table, 0).unwrap();
    let outcomes = thread::scope(|scope| {
        let run = |mut transaction: Transaction| {
            let table = &table;
            scope.spawn(move || {
                Step::Set.run(&mut transaction, table, 0)?;
                transaction.commit().map(drop)
            })
        };
        [run(first), run(second)].map(|thread| thread.join().unwrap())
    });
    let told = outcomes.iter().filter(|outcome| matches!(outcome, Err(Error::Deadlock))).count();
    assert_eq!((told, outcomes.iter().filter(|outcome| outcome.is_ok()).count()), (1, 1), "{outcomes:?}");
}

/// A transaction that shares the key beside an update is waited for as soon as the update is followed by more, and
/// waits if that came first.
#[test]
fn an_update_goes_on_to_a_delete_once_nobody_shares_the_key() {
    let (db, table) = filled(1);
    let mut writer = begin(&db);
    Step::Set.run(&mut writer, &table, 0).unwrap();
    let mut sharer = begin(&db);
    Step::Lock(KeyShare).run(&mut sharer, &table, 0).unwrap();
    thread::scope(|scope| {
        let deletes = scope.spawn(|| Step::Delete.run(&mut writer, &table, 0));
        thread::sleep(Duration::from_millis(10));
        assert!(!deletes.is_finished());
        sharer.commit().unwrap();
        deletes.join().unwrap().unwrap();
    });
    let savepoint_was_before = beside_waiters(&db, &table, &[Step::Lock(KeyShare)], || writer.rollback());
    assert!(savepoint_was_before[0].is_ok());
}

/// A transaction that waits for a delete goes on when that is taken back, although an update before it stands.
#[test]
fn who_shares_the_key_goes_on_when_the_delete_is_taken_back() {
    let (db, table) = filled(1);
    let mut writer = begin(&db);
    Step::Set.run(&mut writer, &table, 0).unwrap();
    let savepoint = writer.savepoint();
    Step::Delete.run(&mut writer, &table, 0).unwrap();
    let outcomes = beside_waiters(&db, &table, &[Step::Lock(KeyShare)], || {
        writer.rollback_to(savepoint).unwrap();
        thread::sleep(Duration::from_millis(10));
        Step::Set.run(&mut writer, &table, 0).unwrap();
    });
    assert!(outcomes[0].is_ok());
    writer.commit().unwrap();
}

type Holders = Mutex<HashMap<i64, Vec<(u64, LockStrength)>>>;

/// Many lock and change few rows at random, with savepoints; at no time do two hold a row in ways that conflict.
#[test]
fn no_two_hold_a_row_in_ways_that_conflict() {
    let seed = rand::random::<u64>();
    println!("seed {seed}");
    let (db, table) = filled(3);
    let holders = Holders::default();
    let counted = Mutex::new((0u32, 0u32));
    thread::scope(|scope| {
        for worker in 0..6u64 {
            let (db, table, holders, counted) = (&db, &table, &holders, &counted);
            scope.spawn(move || {
                let mut random = StdRng::seed_from_u64(seed + worker);
                for round in 0..150 {
                    let done = one_of_many(db, table, holders, &mut random, worker * 1_000 + round);
                    let mut counted = counted.lock().unwrap();
                    match done {
                        Ok(()) => counted.0 += 1,
                        Err(Error::Deadlock) => counted.1 += 1,
                        Err(error) => panic!("seed {seed}: {error}"),
                    }
                }
            });
        }
    });
    let (done, told) = *counted.lock().unwrap();
    assert!(done > told, "seed {seed}: {done} done, {told} deadlocks");
    assert!(!must_wait(&db, &table, Step::Lock(Update)));
}

fn one_of_many(db: &Database, table: &Table, holders: &Holders, random: &mut StdRng, id: u64) -> Result<(), Error> {
    let mut transaction = begin(db);
    let savepoint = transaction.savepoint();
    let leave = |kept: &[(i64, LockStrength)]| {
        let mut holders = holders.lock().unwrap();
        holders.values_mut().for_each(|held| held.retain(|(holder, _)| *holder != id));
        kept.iter().for_each(|(row, strength)| holders.entry(*row).or_default().push((id, *strength)));
    };
    for _ in 0..random.random_range(1..5) {
        let (row, step) = (random.random_range(0..3), STEPS[random.random_range(0..STEPS.len() - 1)]);
        if let Err(error) = step.run(&mut transaction, table, row) {
            leave(&[]);
            return Err(error);
        }
        let strength = step.strength();
        {
            let mut holders = holders.lock().unwrap();
            let held = holders.entry(row).or_default();
            let other = held.iter().find(|(holder, held)| *holder != id && held.conflicts_with(strength));
            assert_eq!(other, None, "{step:?} of row {row}");
            held.push((id, strength));
        }
        if random.random_bool(0.2) {
            leave(&[]);
            transaction.rollback_to(savepoint)?;
        }
    }
    leave(&[]);
    if random.random_bool(0.8) { transaction.commit().map(drop) } else { Ok(()) }
}
