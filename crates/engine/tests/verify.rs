//! `verify` names every kind of damage to the files of a database, and finds none where none is.
use std::sync::Arc;

use durability::{Device, LogOptions};
use engine::{
    Column, DataType, Database, OpenOptions, RecoveryTarget, Schema, Sum, TransactionOptions, Value, Verification,
};
use testkit::FaultyDevice;

fn open(device: &FaultyDevice) -> Result<Database, engine::Error> {
    let options = OpenOptions {
        merge_threads: Some(0),
        range_records: Some(32),
        log: LogOptions { partitions: 2, segment_bytes: 4096, growth_bytes: 1024, ..LogOptions::default() },
        ..OpenOptions::default()
    };
    Database::open_on(Arc::new(device.clone()), options)
}

/// Two checkpoints and a log of several files, with keys that were changed, deleted and used again.
fn database() -> FaultyDevice {
    let device = FaultyDevice::new(0);
    let db = open(&device).unwrap();
    let columns = vec![Column::new("id", DataType::BigInt), Column::new("text", DataType::TEXT)];
    let table = db.create_table("t", Schema::new(columns, &["id"]).unwrap()).unwrap();
    let run = |work: &dyn Fn(&mut engine::Transaction) -> engine::Result<()>| {
        db.run(TransactionOptions::default(), |transaction| work(transaction)).unwrap();
    };
    for round in 0..6i64 {
        let row = |id: i64| [Value::from(id), Value::from(format!("{id} of round {round}"))];
        run(&|t| (round * 20..round * 20 + 20).try_for_each(|id| t.insert(&table, &row(id)).map(drop)));
        for id in round * 20..round * 20 + 6 {
            run(&|t| t.delete(&table, &[Value::from(id)]).map(drop));
            run(&|t| t.insert(&table, &row(id)).map(drop));
            let key = [Value::from(id + 6)];
            run(&|t| t.update_columns(&table, &key, &[(0, Value::from(1000 + id))]).map(drop));
        }
        assert!(db.merge_now() < 1000);
        if round == 2 || round == 4 {
            db.checkpoint().unwrap();
        }
    }
    drop((table, db));
    device
}

fn verify(device: &FaultyDevice) -> Verification {
    let device: Arc<dyn Device> = Arc::new(device.clone());
    Database::verify_on(device, |done, all| assert!(done <= all)).unwrap()
}

#[test]
fn a_whole_database_has_no_fault() {
    let found = verify(&database());
    assert_eq!(found.faults, [""; 0]);
    // In each round 20 rows, 6 of them deleted and made anew, and 6 given another key.
    assert_eq!((found.tables, found.rows), (1, 120));
    assert_eq!((found.versions, found.index_entries), (6 * (20 + 6 + 6), 6 * (20 + 6 + 6)));
    assert!(found.checkpoint_bytes > 2000);
}

/// Whatever byte is damaged: it is told with the name of the file, or what the database says is not changed by it.
#[test]
fn every_damaged_byte_is_told_or_harmless() {
    let whole = database();
    let (mut told, mut harmless, versions) = (0, 0, verify(&whole).versions);
    for name in whole.list().unwrap() {
        let bytes = whole.contents(&name).len();
        for offset in (0..bytes as u64).step_by(307) {
            let device = whole.after_power_loss(0);
            device.flip_bit(&name, offset, (offset % 8) as u32);
            let found = verify(&device);
            if found.faults.is_empty() {
                assert_eq!(found.versions, versions, "{name} at {offset}");
                harmless += 1;
            } else {
                assert!(found.faults.iter().any(|fault| fault.contains(&name)), "{name} at {offset}: {found:?}");
                told += 1;
            }
        }
    }
    assert!(told > 40 && harmless < told, "{told} told, {harmless} harmless");
}

#[test]
fn a_missing_file_is_told() {
    let whole = database();
    let (mut told, versions) = (0, verify(&whole).versions);
    for name in whole.list().unwrap() {
        let device = whole.after_power_loss(0);
        device.remove(&name).unwrap();
        let found = verify(&device);
        let is_told = !found.faults.is_empty();
        // A spare file of the log is nothing.
        assert!(is_told || found.versions == versions, "{name}");
        told += usize::from(is_told);
    }
    assert!(told >= 5, "{told}");
}

/// How many rows there are; they are the first that were committed.
fn rows_of(db: &Database) -> i64 {
    let table = db.table("t").unwrap();
    let totals = table.aggregate(db.snapshot(), &[], &[0]).unwrap();
    let rows = totals.rows as i64;
    assert_eq!(totals.columns[0].sum, Sum::Integer(i128::from(rows * (rows - 1) / 2)));
    rows
}

/// The end of the log of a database that was not closed is cut off or zeroed: `verify` tells it, opening refuses, and what
/// stands before the damage can be kept; or all is there.
#[test]
fn a_log_without_its_end_is_told_and_the_rest_can_be_kept() {
    let device = FaultyDevice::new(0);
    let db = open(&device).unwrap();
    let columns = vec![Column::new("id", DataType::BigInt), Column::new("text", DataType::TEXT)];
    let table = db.create_table("t", Schema::new(columns, &["id"]).unwrap()).unwrap();
    for id in 0..30i64 {
        let row = [Value::from(id), Value::from("text of a row ".repeat(1 + id as usize % 50))];
        db.run(TransactionOptions::default(), |transaction| transaction.insert(&table, &row).map(drop)).unwrap();
    }
    let image = device.after_power_loss(0);
    drop((table, db));
    let (mut told, mut kept) = (0, 0);
    for name in image.list().unwrap() {
        let whole = image.contents(&name);
        let used = whole.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        for cut in [used * 3 / 4, used.saturating_sub(60), used.saturating_sub(1), 600, 0] {
            for is_cut in [true, false] {
                let damaged = image.after_power_loss(0);
                let mut bytes = whole.clone();
                if is_cut {
                    bytes.truncate(cut)
                } else {
                    bytes[cut.min(used)..].fill(0)
                }
                damaged.put(&name, bytes);
                let (found, what) = (verify(&damaged), format!("{name}, {cut}, {is_cut}"));
                let refused = match open(&damaged) {
                    Ok(db) => {
                        assert_eq!((rows_of(&db), found.faults), (30, vec![]), "{what}");
                        continue;
                    }
                    Err(error) => error.to_string(),
                };
                assert_eq!(found.faults, std::slice::from_ref(&refused), "{what}");
                told += 1;
                let Some((_, rest)) = refused.split_once("every commit up to LSN ") else { continue };
                let last: u64 = rest.split_once(' ').unwrap().0.parse().unwrap();
                let (from, target) = (Arc::new(damaged) as Arc<dyn Device>, FaultyDevice::new(0));
                let to = Arc::new(target.clone()) as Arc<dyn Device>;
                let latest =
                    Database::restore_on(&from, None, &(Arc::new(FaultyDevice::new(0)) as _), RecoveryTarget::Latest);
                assert!(latest.is_err(), "{what}: without saying that the rest may go");
                let restored = Database::restore_on(&from, None, &to, RecoveryTarget::Lsn(last)).unwrap();
                assert_eq!((restored.until.0, rows_of(&open(&target).unwrap())), (last, last as i64 - 1), "{what}");
                kept += 1;
            }
        }
    }
    assert!(told > 10 && kept > 5, "{told} told, {kept} kept");
}
