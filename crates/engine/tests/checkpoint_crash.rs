//! Power loss at every step of a run with checkpoints: what was acknowledged is there, and everything is there whole, whatever
//! part of a checkpoint was written.
use std::sync::Arc;

use durability::LogOptions;
use engine::{Column, DataType, Database, Durability, Error, OpenOptions, Schema, Table, TransactionOptions, Value};
use testkit::{Failure, FaultyDevice};

/// The rows of each table, by key.
type Contents = Vec<(String, Vec<(i64, i64)>)>;

fn open(device: &FaultyDevice) -> Result<Database, Error> {
    // The extension of a file is searched for frames at each opening.
    let log = LogOptions { growth_bytes: 4096, ..LogOptions::default() };
    let options = OpenOptions { merge_threads: Some(0), range_records: Some(16), log, ..OpenOptions::default() };
    Database::open_on(Arc::new(device.clone()), options)
}

fn contents(db: &Database) -> Contents {
    read(db).unwrap()
}

/// What there is, or the error of a page that was never read and can't be, as the power is off.
fn read(db: &Database) -> Result<Contents, Error> {
    let rows = |name: &String| {
        let (table, view) = (db.table(name).unwrap(), db.begin().unwrap());
        let row = |id: i64| match view.get(&table, &[Value::from(id)]) {
            Err(error) => Some(Err(error)),
            Ok(found) => match found.as_deref() {
                Some([Value::BigInt(id), Value::BigInt(n)]) => Some(Ok((*id, *n))),
                _ => None,
            },
        };
        let rows = (0..60).filter_map(row).collect::<Result<Vec<(i64, i64)>, Error>>()?;
        let counted = table.aggregate(db.snapshot(), &[], &[]).unwrap().rows;
        assert_eq!(counted, rows.len() as u64, "the index and a scan agree");
        Ok((name.clone(), rows))
    };
    db.table_names().iter().map(rows).collect()
}

fn schema() -> Schema {
    Schema::new(["id", "n"].map(|name| Column::new(name, DataType::BigInt)).to_vec(), &["id"]).unwrap()
}

/// One transaction, by number: rows are inserted, updated, deleted and inserted again, tables made and dropped.
fn work(db: &Database, number: i64, durability: Durability) -> Result<(), Error> {
    db.run(TransactionOptions { durability, ..TransactionOptions::default() }, |transaction| {
        match number {
            0 => drop(transaction.create_table("a", schema())?),
            5 => drop(transaction.create_table("b", schema())?),
            9 => transaction.rename_table("b", "c")?,
            _ => {}
        }
        let table: Table = transaction.table("a")?;
        for id in number * 4..number * 4 + 4 {
            transaction.insert(&table, &[Value::from(id), Value::from(number)])?;
        }
        for id in (0..number * 4).step_by(3) {
            transaction.update_columns(&table, &[Value::from(id)], &[(1, Value::from(100 + number))])?;
        }
        if number % 2 == 1 && transaction.delete(&table, &[Value::from(1i64)])? {
            transaction.insert(&table, &[Value::from(1i64), Value::from(-number)])?;
        }
        Ok(())
    })
}

const TRANSACTIONS: i64 = 12;

/// Does all of it, with a checkpoint after every second transaction, merges, and a restart in the middle; returns what there was
/// after each commit, and how many were acknowledged as durable.
fn scripted(device: &FaultyDevice, durability: Durability) -> (Vec<Contents>, usize, Result<(), Error>) {
    let (mut states, mut durable) = (vec![Contents::new()], 0);
    let mut run = || {
        let mut db = open(device)?;
        for number in 0..TRANSACTIONS {
            work(&db, number, durability)?;
            states.push(read(&db)?);
            if durability == Durability::Sync {
                durable = states.len() - 1;
            }
            if number % 2 == 1 {
                db.checkpoint()?;
                durable = states.len() - 1;
            }
            if number % 3 == 2 {
                db.merge_now();
            }
            if number == 6 {
                // Closing flushes, and does not report whether it worked.
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

fn crash_everywhere(durability: Durability) {
    let rehearsal = FaultyDevice::new(0);
    let (states, _, done) = scripted(&rehearsal, durability);
    done.unwrap();
    for step in 1..=rehearsal.steps() {
        let device = FaultyDevice::new(0);
        device.cut_power_at(step);
        let (reached, durable, _) = scripted(&device, durability);
        for seed in 0..3 {
            let second = device.after_interrupted_recovery(step, seed, |interrupted| drop(open(interrupted)));
            let db = open(&second).unwrap();
            let found = contents(&db);
            let most = reached.len().min(states.len() - 1);
            assert!(states[durable.min(most)..=most].contains(&found), "step {step}, seed {seed}, {durable} durable");
            // It goes on from there: what is committed now is there the next time.
            db.checkpoint().unwrap();
            let Ok(table) = db.table("a") else { continue };
            let row = [Value::from(59i64), Value::from(0i64)];
            db.run(TransactionOptions::default(), |t| t.insert(&table, &row).map(drop)).unwrap();
            let expected = contents(&db);
            drop((db, table));
            assert_eq!(contents(&open(&second).unwrap()), expected, "step {step}, seed {seed}");
        }
    }
}

#[test]
fn power_loss_at_any_step_leaves_every_acknowledged_commit_and_no_part_of_another() {
    crash_everywhere(Durability::Sync);
}

#[test]
fn commits_that_nobody_waited_for_are_lost_from_the_end_and_a_checkpoint_makes_them_durable() {
    crash_everywhere(Durability::Async);
}

#[test]
fn a_checkpoint_that_fails_at_any_step_changes_nothing() {
    let prepare = |device: &FaultyDevice| {
        let db = open(device).unwrap();
        (0..6).for_each(|number| work(&db, number, Durability::Sync).unwrap());
        db.checkpoint().unwrap();
        (6..8).for_each(|number| work(&db, number, Durability::Sync).unwrap());
        db
    };
    let rehearsal = FaultyDevice::new(0);
    let db = prepare(&rehearsal);
    let (before, expected) = (rehearsal.steps(), contents(&db));
    db.checkpoint().unwrap();
    let after = rehearsal.steps();
    assert!(after > before + 3);
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
