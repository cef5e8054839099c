//! Loads whose columns go to files that the log names: power loss and failures at every step of them, of checkpoints that refer to the
//! files, and of openings. What was acknowledged is there, nothing of another load is, and no file stays for nothing.
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use durability::{Device, LogOptions};
use engine::{
    Column, DataType, Database, Durability, Error, OpenOptions, RecoveryTarget, ScanOptions, Schema, Table,
    TransactionOptions, Value,
};
use testkit::{Failure, FaultyDevice};

/// Records in a range.
const RANGE: i64 = 16;

type Contents = Vec<(i64, i64)>;

fn options() -> OpenOptions {
    let log = LogOptions { growth_bytes: 4096, ..LogOptions::default() };
    OpenOptions {
        merge_threads: Some(0),
        range_records: Some(RANGE as usize),
        load_from_bytes: Some(0),
        log,
        ..OpenOptions::default()
    }
}

fn open(device: &FaultyDevice) -> Result<Database, Error> {
    Database::open_on(Arc::new(device.clone()), options())
}

fn schema() -> Schema {
    Schema::new(["id", "n"].map(|name| Column::new(name, DataType::BigInt)).to_vec(), &["id"]).unwrap()
}

/// The rows, by a scan and each by its key; nothing where there is no table.
fn read(db: &Database) -> Result<Contents, Error> {
    let Ok(table) = db.table("a") else { return Ok(Contents::new()) };
    let (view, mut rows) = (db.read_view()?, Contents::new());
    for batch in table.scan(&view, ScanOptions { columns: vec![0, 1], ..ScanOptions::default() })?.batches() {
        let batch = batch?;
        let [ids, numbers] = [0, 1].map(|at| batch.column(at).as_primitive::<Int64Type>().clone());
        rows.extend(ids.values().iter().copied().zip(numbers.values().iter().copied()));
    }
    rows.sort_unstable();
    let transaction = db.begin()?;
    for (id, n) in &rows {
        let found = transaction.get(&table, &[Value::BigInt(*id)])?;
        assert_eq!(found.as_deref(), Some(&[Value::BigInt(*id), Value::BigInt(*n)][..]));
    }
    Ok(rows)
}

fn insert(transaction: &mut engine::Transaction, table: &Table, ids: std::ops::Range<i64>) -> Result<(), Error> {
    let numbers = ids.clone().map(|id| id.wrapping_mul(0x5851_f42d_4c95_7f2d));
    let columns: [(&str, ArrayRef); 2] =
        [("id", Arc::new(Int64Array::from_iter_values(ids))), ("n", Arc::new(Int64Array::from_iter_values(numbers)))];
    let rows = RecordBatch::try_from_iter(columns).expect("two columns of one length");
    transaction.insert_batch(table, &rows).map(drop)
}

/// One load, by number: of seven ranges, some of them taken back again, rows of others changed.
fn load(db: &Database, number: i64, durability: Durability) -> Result<(), Error> {
    db.run(TransactionOptions { durability, ..TransactionOptions::default() }, |transaction| {
        if number == 0 {
            drop(transaction.create_table("a", schema())?);
        }
        let (table, first) = (transaction.table("a")?, 1_000 * number);
        insert(transaction, &table, first..first + 4 * RANGE)?;
        if number % 3 == 1 {
            let savepoint = transaction.savepoint();
            insert(transaction, &table, first + 500..first + 500 + 3 * RANGE)?;
            transaction.rollback_to(savepoint)?;
        }
        insert(transaction, &table, first + 4 * RANGE..first + 7 * RANGE)?;
        if number % 2 == 1 {
            transaction.update(&table, &[Value::BigInt(first + 3)], &[("n", Value::BigInt(number))])?;
            transaction.delete(&table, &[Value::BigInt(first - 1_000 + 2 * RANGE)])?;
        }
        Ok(())
    })
}

const LOADS: i64 = 7;

/// Does all of it, with checkpoints, merges and a restart; returns what there was after each commit, and how many were acknowledged as
/// durable.
fn scripted(device: &FaultyDevice, durability: Durability) -> (Vec<Contents>, usize, Result<(), Error>) {
    let (mut states, mut durable) = (vec![Contents::new()], 0);
    let mut run = || {
        let mut db = open(device)?;
        for number in 0..LOADS {
            load(&db, number, durability)?;
            states.push(read(&db)?);
            durable = if durability == Durability::Sync { states.len() - 1 } else { durable };
            if number == 2 {
                db.merge_now();
            }
            if matches!(number, 1..=3 | 6) {
                db.checkpoint()?;
                durable = states.len() - 1;
            }
            if number == 4 {
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

/// The files of loads.
fn load_files(device: &FaultyDevice) -> Vec<String> {
    let mut names = device.list().unwrap();
    names.retain(|name| name.starts_with("load-"));
    names
}

fn crash_everywhere(durability: Durability) {
    let rehearsal = FaultyDevice::new(0);
    let (states, _, done) = scripted(&rehearsal, durability);
    done.unwrap();
    assert!(load_files(&rehearsal).len() > 1, "the loads go to files");
    for step in 1..=rehearsal.steps() {
        let device = FaultyDevice::new(0);
        device.cut_power_at(step);
        let (reached, durable, _) = scripted(&device, durability);
        for seed in 0..2 {
            let second = device.after_interrupted_recovery(step, seed, |interrupted| drop(open(interrupted)));
            let db = open(&second).unwrap_or_else(|error| panic!("step {step}, seed {seed}: {error}"));
            let found = read(&db).unwrap_or_else(|error| panic!("step {step}, seed {seed}: {error}"));
            let most = reached.len().min(states.len() - 1);
            assert!(states[durable.min(most)..=most].contains(&found), "step {step}, seed {seed}, {durable} durable");
            // Once two checkpoints are from after all loads, only what they refer to stays.
            let reports = [db.checkpoint().unwrap(), db.checkpoint().unwrap()];
            assert!(reports[0].number < reports[1].number);
            assert_eq!(read(&db).unwrap(), found, "step {step}, seed {seed}");
            drop(db);
            let needed = load_files(&second);
            let db = open(&second).unwrap();
            assert_eq!((read(&db).unwrap(), load_files(&second)), (found, needed), "step {step}, seed {seed}");
        }
    }
}

#[test]
fn power_loss_at_any_step_leaves_every_acknowledged_load_and_no_part_of_another() {
    crash_everywhere(Durability::Sync);
}

#[test]
fn loads_that_nobody_waited_for_are_whole_or_gone() {
    crash_everywhere(Durability::Async);
}

#[test]
fn a_load_that_fails_at_any_step_leaves_nothing() {
    let prepare = |device: &FaultyDevice| {
        let db = open(device).unwrap();
        (0..2).for_each(|number| load(&db, number, Durability::Sync).unwrap());
        db.checkpoint().unwrap();
        db
    };
    let rehearsal = FaultyDevice::new(0);
    let db = prepare(&rehearsal);
    let (before, first) = (rehearsal.steps(), read(&db).unwrap());
    load(&db, 2, Durability::Sync).unwrap();
    let (after, second) = (rehearsal.steps(), read(&db).unwrap());
    drop(db);
    let mut failures = 0;
    for (step, failure) in (before + 1..=after).flat_map(|step| [(step, Failure::DiskFull), (step, Failure::Io)]) {
        let device = FaultyDevice::new(0);
        let db = prepare(&device);
        device.fail_at(step, failure);
        let outcome = load(&db, 2, Durability::Sync);
        failures += usize::from(outcome.is_err());
        drop(db);
        let db = open(&device.after_power_loss(step)).unwrap();
        let found = read(&db).unwrap();
        let Err(error) = outcome else {
            assert_eq!(found, second, "step {step}, {failure:?}");
            continue;
        };
        assert!(found == first || found == second, "step {step}, {failure:?}: {error}");
        let told = if matches!(failure, Failure::DiskFull) { "53100" } else { "58030" };
        assert_eq!(error.sqlstate(), told, "step {step}: {error}");
    }
    assert!(failures > 4, "{failures} steps are of some use");
}

/// Files that neither a checkpoint nor the log needs are gone: those of a load that was rolled back at once, those of one that was
/// taken in by checkpoints and whose rows were written anew once nothing refers to them.
#[test]
fn files_go_once_nothing_needs_them() {
    let device = FaultyDevice::new(0);
    let db = open(&device).unwrap();
    load(&db, 0, Durability::Sync).unwrap();
    let first = load_files(&device);
    assert_eq!(first.len(), 1);
    let mut transaction = db.begin().unwrap();
    insert(&mut transaction, &db.table("a").unwrap(), 10_000..10_000 + 5 * RANGE).unwrap();
    assert_eq!(load_files(&device).len(), 2);
    transaction.rollback();
    assert_eq!(load_files(&device), first);
    // Rows that are changed have their pages written anew.
    let table = db.table("a").unwrap();
    db.run(TransactionOptions::default(), |transaction| {
        (0..7 * RANGE).try_for_each(|id| {
            let (key, n) = ([Value::BigInt(id)], [("n", Value::BigInt(-id)), ("id", Value::BigInt(50_000 + id))]);
            transaction.update(&table, &key, &n).map(drop)
        })
    })
    .unwrap();
    db.merge_now();
    for _ in 0..2 {
        assert_eq!(load_files(&device), first, "replaying the log needs it");
        db.checkpoint().unwrap();
    }
    db.checkpoint().unwrap();
    assert!(load_files(&device).is_empty(), "{:?}", load_files(&device));
}

/// A file of which little lives is emptied, also where a database takes but one checkpoint between an opening and the next.
#[test]
fn a_file_of_which_little_lives_goes() {
    let device = FaultyDevice::new(0);
    let mut db = open(&device).unwrap();
    load(&db, 0, Durability::Sync).unwrap();
    let table = db.table("a").unwrap();
    db.run(TransactionOptions::default(), |transaction| {
        let change = |id| transaction.update(&table, &[Value::BigInt(id)], &[("n", Value::BigInt(-id))]).map(drop);
        (0..6 * RANGE).try_for_each(change)
    })
    .unwrap();
    db.merge_now();
    let expected = read(&db).unwrap();
    drop(table);
    for _ in 0..4 {
        db.checkpoint().unwrap();
        drop(db);
        db = open(&device).unwrap();
        assert_eq!(read(&db).unwrap(), expected);
    }
    assert!(load_files(&device).is_empty(), "{:?}", load_files(&device));
}

/// What is missing, or another file, is an error that names it and the commit.
#[test]
fn a_file_that_is_missing_or_another_is_told() {
    let device = FaultyDevice::new(0);
    let db = open(&device).unwrap();
    load(&db, 0, Durability::Sync).unwrap();
    let [name] = <[String; 1]>::try_from(load_files(&device)).unwrap();
    let crashed = || device.after_process_crash(1);
    let without = crashed();
    without.remove(&name).unwrap();
    let error = open(&without).map(drop).unwrap_err().to_string();
    assert!(error.contains(&name) && error.contains("commit 1 of the log"), "{error}");
    let cut = crashed();
    cut.put(&name, device.contents(&name)[..600].to_vec());
    let error = open(&cut).map(drop).unwrap_err().to_string();
    assert!(error.contains("range 1 of \"a\"") && error.contains("of load 1"), "{error}");
    let damaged = crashed();
    let middle = device.contents(&name).len() as u64 / 2;
    damaged.flip_bit(&name, middle, 3);
    let db = open(&damaged).unwrap();
    let error = read(&db).unwrap_err().to_string();
    assert!(error.contains(&name) && error.contains("range"), "{error}");
}

/// An archive has no files of loads. So none are written while there is one; a history that names one from before is refused where the
/// file is missing, and restored where it is.
#[test]
fn a_moment_behind_a_load_needs_its_file() {
    let (device, archive, backup) = (FaultyDevice::new(0), FaultyDevice::new(1), FaultyDevice::new(2));
    let archived = || OpenOptions { archive_device: Some(Arc::new(archive.clone())), ..options() };
    let db = open(&device).unwrap();
    load(&db, 0, Durability::Sync).unwrap();
    let copy: Arc<dyn Device> = Arc::new(backup.clone());
    db.backup_on(&copy).unwrap();
    load(&db, 1, Durability::Sync).unwrap();
    drop(db);
    let db = Database::open_on(Arc::new(device.clone()), archived()).unwrap();
    let named = load_files(&device);
    load(&db, 2, Durability::Sync).unwrap();
    assert_eq!(load_files(&device), named, "the log has the columns");
    let expected = read(&db).unwrap();
    drop(db);
    let restored = |from: &FaultyDevice| {
        let target = FaultyDevice::new(3);
        let devices: [Arc<dyn Device>; 3] = [from, &archive, &target].map(|it| Arc::new(it.clone()) as Arc<dyn Device>);
        Database::restore_on(&devices[0], Some(&devices[1]), &devices[2], RecoveryTarget::Latest).map(|_| target)
    };
    let from_backup = restored(&backup);
    let error = from_backup.map(drop).unwrap_err().to_string();
    assert!(error.contains("load-") && error.contains("a backup from after commit"), "{error}");
    let target = restored(&device).unwrap();
    assert_eq!(read(&open(&target).unwrap()).unwrap(), expected);
}

/// A backup has the files that its log names, also of loads that came while it was made.
#[test]
fn a_backup_beside_loads_opens() {
    let device = FaultyDevice::new(0);
    let db = open(&device).unwrap();
    load(&db, 0, Durability::Sync).unwrap();
    std::thread::scope(|scope| {
        let loads = scope.spawn(|| (1..60).for_each(|number| load(&db, number, Durability::Async).unwrap()));
        while !loads.is_finished() {
            let copy = FaultyDevice::new(1);
            let to: Arc<dyn Device> = Arc::new(copy.clone());
            let report = db.backup_on(&to).unwrap();
            let copied = open(&copy).unwrap();
            let loads = read(&copied).unwrap().iter().filter(|(id, _)| id % 1_000 == 1).count() as u64;
            assert_eq!(loads, report.until.0, "each commit is a load");
        }
    });
}
