//! `verify` names every kind of damage to the files of a database, and finds none where none is.
use std::sync::Arc;

use durability::{Device, LogOptions};
use engine::{Column, DataType, Database, OpenOptions, Schema, TransactionOptions, Value, Verification};
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
