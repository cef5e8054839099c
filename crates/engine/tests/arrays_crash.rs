//! Power loss, failing steps and interrupted recoveries with array tables: what was acknowledged is there, and every commit is there
//! as a whole, with what it wrote to an ordinary table.
use std::sync::Arc;

use durability::LogOptions;
use engine::{
    Column, DataType, Database, Durability, Error, LayoutSetting, OpenOptions, Schema, Table, TableSettings,
    TransactionOptions, Value,
};
use testkit::{Failure, FaultyDevice};

/// The sum of each table's numbers and its rows, by name.
type Contents = Vec<(String, u64, i128)>;

const TRANSACTIONS: i64 = 10;

fn open(device: &FaultyDevice) -> Result<Database, Error> {
    let log = LogOptions { growth_bytes: 4096, ..LogOptions::default() };
    let options = OpenOptions { merge_threads: Some(0), range_records: Some(16), log, ..OpenOptions::default() };
    Database::open_on(Arc::new(device.clone()), options)
}

fn contents(db: &Database) -> Contents {
    let of_table = |name: String| {
        let totals = db.table(&name).unwrap().aggregate(&db.read_view().unwrap(), &[], &[1]).unwrap();
        let engine::Sum::Integer(sum) = totals.columns[0].sum else { panic!("numbers add up to a number") };
        (name, totals.rows, sum)
    };
    db.table_names().into_iter().map(of_table).collect()
}

fn schema() -> Schema {
    let column = |name| Column { nullable: false, ..Column::new(name, DataType::BigInt) };
    Schema::new(["id", "n"].map(column).to_vec(), &["id"]).unwrap()
}

/// One transaction, by number: the same rows go to an array and to an ordinary table.
fn work(db: &Database, number: i64, durability: Durability) -> Result<(), Error> {
    db.run(TransactionOptions { durability, ..TransactionOptions::default() }, |transaction| {
        let array = TableSettings { layout: LayoutSetting::Array, ..TableSettings::default() };
        if number == 0 {
            transaction.create_table_with("array", schema(), array.clone())?;
            transaction.create_table("rows", schema())?;
        }
        if number == 6 {
            transaction.truncate_table("array")?;
            transaction.truncate_table("rows")?;
            transaction.create_table_with("short", schema(), array)?;
        }
        if number == 8 {
            transaction.drop_table("short")?;
        }
        for name in ["array", "rows"] {
            let table: Table = transaction.table(name)?;
            for id in number * 40..number * 40 + 3 {
                transaction.insert(&table, &[Value::from(id), Value::from(number + 1)])?;
            }
            for id in (0..number * 40).step_by(40) {
                transaction.update_columns(&table, &[Value::from(id)], &[(1, Value::from(100 + number))])?;
            }
            transaction.delete(&table, &[Value::from(number * 40 - 39)])?;
        }
        Ok(())
    })
}

/// Does all of it, with checkpoints and a restart; returns what there was after each commit, and how many were durable.
fn scripted(device: &FaultyDevice, durability: Durability) -> (Vec<Contents>, usize, Result<(), Error>) {
    let (mut states, mut durable) = (vec![Contents::new()], 0);
    let mut run = || {
        let mut db = open(device)?;
        for number in 0..TRANSACTIONS {
            work(&db, number, durability)?;
            states.push(contents(&db));
            if durability == Durability::Sync {
                durable = states.len() - 1;
            }
            if number % 3 == 1 {
                db.checkpoint()?;
                durable = states.len() - 1;
            }
            if number == 5 {
                drop(db);
                durable = if device.is_off() { durable } else { states.len() - 1 };
                db = open(device)?;
            }
        }
        Ok(())
    };
    let done = run();
    (states, durable, done)
}

/// What arrays and ordinary tables have is the same.
fn check_alike(found: &Contents, context: &str) {
    let of = |name: &str| found.iter().find(|(known, ..)| known == name).map(|(_, rows, sum)| (*rows, *sum));
    assert_eq!(of("array"), of("rows"), "{context}");
}

fn crash_everywhere(durability: Durability) {
    let rehearsal = FaultyDevice::new(0);
    let (states, _, done) = scripted(&rehearsal, durability);
    done.unwrap();
    for step in 1..=rehearsal.steps() {
        let device = FaultyDevice::new(0);
        device.cut_power_at(step);
        let (reached, durable, _) = scripted(&device, durability);
        for seed in 0..2 {
            let second = device.after_interrupted_recovery(step, seed, |interrupted| drop(open(interrupted)));
            let db = open(&second).unwrap();
            let found = contents(&db);
            check_alike(&found, &format!("step {step}, seed {seed}"));
            let most = reached.len().min(states.len() - 1);
            assert!(states[durable.min(most)..=most].contains(&found), "step {step}, seed {seed}, {durable} durable");
            db.checkpoint().unwrap();
            let Ok(table) = db.table("array") else { continue };
            let row = [Value::from(999i64), Value::from(0i64)];
            db.run(TransactionOptions::default(), |t| t.insert(&table, &row).map(drop)).unwrap();
            let expected = contents(&db);
            drop((db, table));
            assert_eq!(contents(&open(&second).unwrap()), expected, "step {step}, seed {seed}");
        }
    }
}

#[test]
fn power_loss_at_any_step_leaves_acknowledged_commits_whole_in_arrays_as_in_other_tables() {
    crash_everywhere(Durability::Sync);
}

#[test]
fn commits_that_nobody_waited_for_are_lost_from_the_end() {
    crash_everywhere(Durability::Async);
}

#[test]
fn partition_commits_of_arrays_are_waited_for_as_whole_ones() {
    crash_everywhere(Durability::Partition);
}

#[test]
fn a_checkpoint_that_fails_at_any_step_changes_nothing() {
    let prepare = |device: &FaultyDevice| {
        let db = open(device).unwrap();
        (0..5).for_each(|number| work(&db, number, Durability::Sync).unwrap());
        db.checkpoint().unwrap();
        work(&db, 5, Durability::Sync).unwrap();
        db
    };
    let rehearsal = FaultyDevice::new(0);
    let db = prepare(&rehearsal);
    let (before, expected) = (rehearsal.steps(), contents(&db));
    db.checkpoint().unwrap();
    let after = rehearsal.steps();
    drop(db);
    for step in before + 1..=after {
        for failure in [Failure::DiskFull, Failure::Io] {
            let device = FaultyDevice::new(0);
            let db = prepare(&device);
            device.fail_at(step, failure);
            let failed = db.checkpoint();
            assert_eq!(contents(&db), expected);
            drop(db);
            let db = open(&device.after_power_loss(step)).unwrap();
            assert_eq!(contents(&db), expected, "step {step}, {failure:?}: {failed:?}");
            db.checkpoint().unwrap();
        }
    }
}

#[test]
fn a_commit_that_the_log_refuses_leaves_the_array_as_it_was() {
    let prepare = |device: &FaultyDevice| {
        let db = open(device).unwrap();
        work(&db, 0, Durability::Sync).unwrap();
        db
    };
    let rehearsal = FaultyDevice::new(0);
    let db = prepare(&rehearsal);
    let (before, expected) = (rehearsal.steps(), contents(&db));
    work(&db, 1, Durability::Sync).unwrap();
    let (after, next) = (rehearsal.steps(), contents(&db));
    drop(db);
    for step in before + 1..=after {
        let device = FaultyDevice::new(0);
        let db = prepare(&device);
        device.fail_at(step, Failure::Io);
        let refused = work(&db, 1, Durability::Sync);
        drop(db);
        let found = contents(&open(&device.after_power_loss(step)).unwrap());
        check_alike(&found, &format!("step {step}"));
        assert!(found == expected || found == next, "step {step}: {refused:?}");
        assert!(refused.is_err() || found == next, "step {step}: an acknowledged commit is gone");
    }
}
