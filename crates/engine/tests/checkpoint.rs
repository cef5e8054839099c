//! Checkpoints of a database: what they hold, what the log still has to give, and what is left of both when something is
//! damaged.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use engine::{
    Column, DataType, Database, Error, OpenOptions, Retention, Schema, Snapshot, Sum, Table, Timestamp,
    TransactionOptions, Value,
};
use testkit::FaultyDevice;

fn options() -> OpenOptions {
    OpenOptions { merge_threads: Some(0), range_records: Some(64), ..OpenOptions::default() }
}

fn open(device: &FaultyDevice) -> Database {
    Database::open_on(Arc::new(device.clone()), options()).unwrap()
}

/// The database after it, and whatever else is open of it, was closed.
fn reopened(db: impl Sized, device: &FaultyDevice) -> Database {
    drop(db);
    open(device)
}

fn schema() -> Schema {
    let columns = vec![Column::new("id", DataType::BigInt), Column::new("n", DataType::BigInt)];
    Schema::new([columns, vec![Column::new("text", DataType::TEXT)]].concat(), &["id"]).unwrap()
}

fn row(id: i64, n: i64) -> [Value; 3] {
    [Value::from(id), Value::from(n), Value::from(format!("row {id}").as_str())]
}

fn insert(db: &Database, table: &Table, ids: std::ops::Range<i64>) {
    db.run(TransactionOptions::default(), |transaction| {
        ids.clone().try_for_each(|id| transaction.insert(table, &row(id, id)).map(drop))
    })
    .unwrap();
}

fn set(db: &Database, table: &Table, id: i64, n: i64) {
    let key = [Value::from(id)];
    let set = db.run(TransactionOptions::default(), |t| t.update(table, &key, &[("n", Value::from(n))]));
    assert!(set.unwrap());
}

fn delete(db: &Database, table: &Table, id: i64) {
    assert!(db.run(TransactionOptions::default(), |t| t.delete(table, &[Value::from(id)])).unwrap());
}

fn rows_and_sum(table: &Table, at: impl Into<Option<Timestamp>>, db: &Database) -> (u64, i128) {
    let at = at.into().unwrap_or_else(|| db.snapshot().at);
    let totals = table.aggregate(Snapshot::at(at), &[], &[1]).unwrap();
    let sum = match totals.columns[0].sum {
        Sum::Integer(sum) => sum,
        _ => 0,
    };
    (totals.rows, sum)
}

fn n_of(db: &Database, table: &Table, id: i64) -> Option<Value> {
    db.begin().unwrap().get(table, &[Value::from(id)]).unwrap().map(|mut row| row.remove(1))
}

#[test]
fn rows_versions_and_keys_come_back_from_the_checkpoint_and_the_log_after_it() {
    let device = FaultyDevice::new(0);
    let db = open(&device);
    let table = db.create_table("t", schema()).unwrap();
    insert(&db, &table, 0..200);
    let before = db.snapshot().at;
    (0..200).step_by(3).for_each(|id| set(&db, &table, id, 1000));
    db.merge_now();
    set(&db, &table, 1, 7);
    delete(&db, &table, 2);
    let mut open_transaction = db.begin().unwrap();
    open_transaction.update(&table, &[Value::from(5i64)], &[("n", Value::from(-1i64))]).unwrap();
    open_transaction.insert(&table, &row(900, 900)).unwrap();
    let first = db.checkpoint().unwrap();
    assert!(first.ranges >= 4 && first.unchanged_ranges == 0, "{first:?}");
    // After the checkpoint: one that was running then, and new ones.
    open_transaction.commit().unwrap();
    set(&db, &table, 1, 8);
    insert(&db, &table, 300..310);
    let now = rows_and_sum(&table, None, &db);
    let then = rows_and_sum(&table, before, &db);
    assert_eq!(then, (200, (0..200).sum()));
    let db = reopened((db, table), &device);
    let table = db.table("t").unwrap();
    assert_eq!((rows_and_sum(&table, None, &db), rows_and_sum(&table, before, &db)), (now, then));
    assert_eq!(n_of(&db, &table, 1), Some(Value::from(8i64)));
    assert_eq!(n_of(&db, &table, 2), None);
    assert_eq!(n_of(&db, &table, 5), Some(Value::from(-1i64)));
    assert_eq!(n_of(&db, &table, 900), Some(Value::from(900i64)));
    let taken = db.begin().unwrap().insert(&table, &row(305, 0));
    assert!(matches!(taken, Err(Error::DuplicateKey { .. })), "{taken:?}");
    insert(&db, &table, 2..3);
    set(&db, &table, 900, 901);
    db.merge_now();
    assert_eq!(n_of(&db, &table, 900), Some(Value::from(901i64)));
}

#[test]
fn what_has_not_changed_is_not_written_again_and_the_log_is_trimmed() {
    let device = FaultyDevice::new(0);
    let db = open(&device);
    let table = db.create_table("t", schema()).unwrap();
    insert(&db, &table, 0..640);
    db.merge_now();
    let first = db.checkpoint().unwrap();
    set(&db, &table, 3, 0);
    let second = db.checkpoint().unwrap();
    assert_eq!(
        (second.number, second.ranges, second.unchanged_ranges),
        (first.number + 1, first.ranges, first.ranges - 1)
    );
    assert!(second.written_bytes * 4 < first.written_bytes, "{first:?} {second:?}");
    // Ranges are known to be on disk after a restart as well.
    let db = reopened((db, table), &device);
    let third = db.checkpoint().unwrap();
    assert_eq!((third.ranges, third.unchanged_ranges), (first.ranges, first.ranges), "{third:?}");
    assert!(third.from > first.from);
    // Nothing of the log before the second checkpoint is left, so the checkpoints alone have the rows.
    let db = reopened(db, &device);
    let fourth = db.checkpoint().unwrap();
    assert_eq!(fourth.number, third.number + 1);
    let table = db.table("t").unwrap();
    assert_eq!(rows_and_sum(&table, None, &db), (640, (0..640).sum::<i64>() as i128 - 3));
}

/// A key that goes from record to record, in ranges with images of different times: the index must know which is
/// the newest.
#[test]
fn a_key_that_was_deleted_and_inserted_again_has_one_owner_after_recovery() {
    let device = FaultyDevice::new(0);
    let db = open(&device);
    let table = db.create_table("t", schema()).unwrap();
    insert(&db, &table, 0..10);
    for round in 0..5 {
        delete(&db, &table, 4);
        insert(&db, &table, 4..5);
        insert(&db, &table, 1000 + 40 * round..1040 + 40 * round);
        if round == 2 {
            db.checkpoint().unwrap();
        }
    }
    delete(&db, &table, 7);
    let db = reopened((db, table), &device);
    let table = db.table("t").unwrap();
    for id in [4, 1000, 1100] {
        let taken = db.begin().unwrap().insert(&table, &row(id, 0));
        assert!(matches!(taken, Err(Error::DuplicateKey { .. })), "{id}: {taken:?}");
        set(&db, &table, id, -5);
        assert_eq!(n_of(&db, &table, id), Some(Value::from(-5i64)));
    }
    insert(&db, &table, 7..8);
    assert_eq!(rows_and_sum(&table, None, &db).0, 10 + 200);
}

#[test]
fn a_record_that_was_given_another_key_is_found_by_it_and_its_past_by_the_old_one() {
    let device = FaultyDevice::new(0);
    let db = open(&device);
    let table = db.create_table("t", schema()).unwrap();
    insert(&db, &table, 0..3);
    let before = db.snapshot().at;
    let rename = |from: i64, to: i64| {
        db.run(TransactionOptions::default(), |t| t.update(&table, &[Value::from(from)], &[("id", Value::from(to))]))
    };
    assert!(rename(1, 50).unwrap());
    db.checkpoint().unwrap();
    assert!(rename(2, 51).unwrap());
    let db = reopened((db, table), &device);
    let table = db.table("t").unwrap();
    for (id, n) in [(0, Some(0)), (1, None), (2, None), (50, Some(1)), (51, Some(2))] {
        assert_eq!(n_of(&db, &table, id), n.map(|n: i64| Value::from(n)), "{id}");
    }
    let then = table.lookup(
        Snapshot::at(before),
        &[Value::from(1i64)],
        &engine::ScanOptions { columns: vec![0], ..Default::default() },
    );
    assert_eq!(then.unwrap().num_rows(), 1);
}

#[test]
fn tables_names_and_settings_are_those_of_the_newest_commit() {
    let device = FaultyDevice::new(0);
    let db = open(&device);
    for name in ["kept", "dropped", "emptied", "renamed"] {
        let table = db.create_table(name, schema()).unwrap();
        insert(&db, &table, 0..5);
    }
    db.set_retention("kept", Retention::For(Duration::from_secs(60))).unwrap();
    db.checkpoint().unwrap();
    let change = |db: &Database| {
        db.run(TransactionOptions::default(), |transaction| {
            transaction.drop_table("dropped")?;
            transaction.truncate_table("emptied")?;
            transaction.rename_table("renamed", "new name")?;
            transaction.set_retention("kept", Retention::None)?;
            transaction.create_table("made", schema()).map(drop)
        })
    };
    change(&db).unwrap();
    let check = |db: &Database| {
        assert_eq!(db.table_names(), ["emptied", "kept", "made", "new name"]);
        let rows = |name: &str| rows_and_sum(&db.table(name).unwrap(), None, db).0;
        assert_eq!(["emptied", "kept", "made", "new name"].map(rows), [0, 5, 0, 5]);
        assert_eq!(db.table("kept").unwrap().settings().retention, Retention::None);
    };
    let db = reopened(db, &device);
    check(&db);
    db.checkpoint().unwrap();
    let db = reopened(db, &device);
    check(&db);
    // Numbers of tables are not used twice, whatever the log still has.
    db.run(TransactionOptions::default(), |t| t.create_table("newest", schema()).map(drop)).unwrap();
    insert(&db, &db.table("newest").unwrap(), 0..2);
    db.checkpoint().unwrap();
    let db = reopened(db, &device);
    assert_eq!(rows_and_sum(&db.table("newest").unwrap(), None, &db).0, 2);
    assert_eq!(rows_and_sum(&db.table("made").unwrap(), None, &db).0, 0);
}

#[test]
fn a_damaged_checkpoint_is_replaced_by_the_one_before_it() {
    let device = FaultyDevice::new(0);
    let db = open(&device);
    let table = db.create_table("t", schema()).unwrap();
    for round in 0..3 {
        insert(&db, &table, 100 * round..100 * round + 100);
        db.merge_now();
        db.checkpoint().unwrap();
    }
    set(&db, &table, 5, 0);
    let whole = rows_and_sum(&table, None, &db);
    drop((db, table));
    let names = testkit_names(&device);
    let newest = names.iter().filter(|name| name.ends_with(".manifest")).max().unwrap();
    let flip = |device: &FaultyDevice, name: &str| {
        let bytes = device.contents(name);
        device.flip_bit(name, bytes.len() as u64 / 2, 3);
        device.flip_bit(name, 600.min(bytes.len() as u64 - 1), 1);
    };
    let image = device.after_process_crash(1);
    flip(&image, newest);
    let db = open(&image);
    assert_eq!(rows_and_sum(&db.table("t").unwrap(), None, &db), whole);
    drop(db);
    // Neither can be restored, and the log does not have it all: opening must not show half of it.
    let image = image.after_process_crash(2);
    names.iter().filter(|name| name.ends_with(".manifest")).for_each(|name| {
        if testkit_names(&image).contains(name) {
            image.put(name, vec![0; 4096]);
        }
    });
    let error = Database::open_on(Arc::new(image.clone()), options()).err().unwrap();
    assert!(matches!(error, Error::NoCheckpoint { .. }), "{error}");
}

fn testkit_names(device: &FaultyDevice) -> Vec<String> {
    durability::Device::list(device).unwrap()
}

#[test]
fn a_database_in_memory_has_no_checkpoints() {
    assert!(matches!(Database::in_memory().checkpoint(), Err(Error::NotOnDisk)));
}

#[test]
fn checkpoints_are_taken_as_the_log_grows() {
    let device = FaultyDevice::new(0);
    let options = OpenOptions { recovery_time: Some(Duration::from_millis(1)), ..options() };
    let db = Database::open_on(Arc::new(device.clone()), options).unwrap();
    let table = db.create_table("t", schema()).unwrap();
    let has_checkpoint = || testkit_names(&device).iter().any(|name| name.ends_with(".manifest"));
    let mut next = 0;
    while !has_checkpoint() {
        insert(&db, &table, next..next + 50);
        next += 50;
    }
    let db = reopened((db, table), &device);
    assert_eq!(rows_and_sum(&db.table("t").unwrap(), None, &db).0, next as u64);
}

/// Amounts move between rows and tables while checkpoints are taken, merges run, and tables come and go; the power fails at some
/// moment, and all sums are right.
#[test]
fn checkpoints_under_load_lose_nothing() {
    for seed in 0..4_u64 {
        let device = FaultyDevice::new(seed);
        let db = open(&device);
        let tables = ["a", "b"].map(|name| db.create_table(name, schema()).unwrap());
        tables.iter().for_each(|table| insert(&db, table, 0..150));
        let total: i128 = 2 * (0..150).sum::<i128>();
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for thread in 0..2_u64 {
                let (db, tables, stop) = (&db, &tables, &stop);
                scope.spawn(move || move_amounts(db, tables, seed * 7 + thread, stop));
            }
            for round in 0..6 {
                db.checkpoint().unwrap();
                db.merge_now();
                db.run(TransactionOptions::default(), |t| t.create_table(&format!("t{round}"), schema()).map(drop))
                    .unwrap();
            }
            stop.store(true, Ordering::Release);
        });
        let moved = db.snapshot().at;
        drop((db, tables));
        for image in [device.after_power_loss(seed), device.after_power_loss(seed + 100)] {
            let db = open(&image);
            let sums = ["a", "b"].map(|name| rows_and_sum(&db.table(name).unwrap(), None, &db));
            assert_eq!((sums[0].0, sums[1].0, sums[0].1 + sums[1].1), (150, 150, total), "seed {seed}");
            assert!(db.snapshot().at >= moved, "all was acknowledged");
            assert_eq!(db.table_names().len(), 8);
        }
    }
}

fn move_amounts(db: &Database, tables: &[Table; 2], seed: u64, stop: &AtomicBool) {
    let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut pick = move |below: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (random >> 33) % below
    };
    while !stop.load(Ordering::Acquire) {
        // Few rows, so that some change more than once between the images of a checkpoint.
        let (from, to) = ((pick(2) as usize, pick(6) as i64 * 25), (pick(2) as usize, pick(6) as i64 * 25));
        let moved: Result<(), Error> = db.run(TransactionOptions::default(), |transaction| {
            let mut add = |(table, id): (usize, i64), by: i64| {
                let key = [Value::from(id)];
                let Some(row) = transaction.get(&tables[table], &key)? else { return Ok(()) };
                let Value::BigInt(n) = row[1] else { return Ok(()) };
                transaction.update(&tables[table], &key, &[("n", Value::from(n + by))]).map(drop)
            };
            add(from, -1)?;
            add(to, 1)
        });
        moved.unwrap();
    }
}

fn on_disk(directory: &std::path::Path) -> Database {
    let db = Database::open_with(directory, options()).unwrap();
    let table = db.create_table("t", schema()).unwrap();
    insert(&db, &table, 0..300);
    db.checkpoint().unwrap();
    (0..300).step_by(7).for_each(|id| set(&db, &table, id, -1));
    delete(&db, &table, 4);
    insert(&db, &table, 4..5);
    db
}

#[test]
fn a_whole_database_is_verified_and_inspected_without_a_change() {
    let directory = tempfile::tempdir().unwrap();
    let db = on_disk(directory.path());
    assert!(matches!(Database::verify(directory.path(), |_, _| ()), Err(Error::Log(_))), "it is open");
    drop(db);
    let files = || {
        let named = |entry: std::io::Result<std::fs::DirEntry>| {
            let path = entry.unwrap().path();
            (path.clone(), std::fs::read(path).unwrap_or_default())
        };
        std::fs::read_dir(directory.path()).unwrap().map(named).collect::<std::collections::BTreeMap<_, _>>()
    };
    let before = files();
    let found = Database::verify(directory.path(), |_, _| ()).unwrap();
    assert_eq!((found.tables, found.rows, found.faults), (1, 300, vec![]));
    let inspection = Database::inspect(directory.path()).unwrap();
    let tables = &inspection.checkpoints[0].tables;
    assert_eq!((inspection.checkpoints.len(), tables[0].name.as_str(), tables[0].ranges), (1, "t", 5));
    assert!(
        !inspection.log_files.is_empty() && inspection.checkpoint_files.len() == 2 && inspection.damaged.is_empty()
    );
    assert!(files() == before, "nothing was changed");
    let options = OpenOptions { read_only: true, ..options() };
    let db = Database::open_with(directory.path(), options).unwrap();
    let table = db.table("t").unwrap();
    assert_eq!(rows_and_sum(&table, None, &db).0, 300);
    let refused = db.run(TransactionOptions::default(), |t| t.delete(&table, &[Value::from(1i64)]).map(drop));
    assert!(refused.is_err());
}

#[test]
fn every_flipped_bit_of_a_blob_is_a_fault_that_is_told() {
    let directory = tempfile::tempdir().unwrap();
    drop(on_disk(directory.path()));
    let blobs = std::fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().path());
    let blobs = blobs.into_iter().find(|path| path.extension().is_some_and(|end| end == "blobs")).unwrap();
    let whole = std::fs::read(&blobs).unwrap();
    for at in (0..whole.len()).step_by(whole.len() / 40) {
        let mut bytes = whole.clone();
        bytes[at] ^= 4;
        std::fs::write(&blobs, bytes).unwrap();
        let found = Database::verify(directory.path(), |_, _| ()).unwrap();
        assert!(!found.faults.is_empty(), "the byte at {at}");
    }
    std::fs::write(&blobs, whole).unwrap();
    assert!(Database::verify(directory.path(), |_, _| ()).unwrap().faults.is_empty());
    assert!(Database::verify(directory.path().join("nowhere"), |_, _| ()).is_err());
}
