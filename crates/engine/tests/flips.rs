//! A bit flips in a byte of a small database that was closed: opening it is an error that names the file, or the answer is
//! right. It never panics and never answers wrongly.
//!
//! `LSTORE_FLIP_STEP=1 cargo test --release -p lstore-engine --test flips -- --nocapture` looks at every byte.
use std::sync::Arc;

use durability::{Device, LogOptions};
use engine::{Column, DataType, Database, Error, OpenOptions, Schema, TransactionOptions, Value};
use testkit::FaultyDevice;

/// By default each so manyth byte: seconds in a debug build.
const STEP: usize = 47;

fn open(device: &FaultyDevice) -> Result<Database, Error> {
    let log = LogOptions { partitions: 2, segment_bytes: 2048, growth_bytes: 512, ..LogOptions::default() };
    let options = OpenOptions { merge_threads: Some(0), range_records: Some(16), log, ..OpenOptions::default() };
    Database::open_on(Arc::new(device.clone()), options)
}

/// Every version of every row.
fn answers(db: &Database) -> Vec<String> {
    let mut answers = Vec::new();
    for name in db.table_names() {
        let table = db.table(&name).unwrap();
        let totals = table.aggregate(db.snapshot(), &[], &[0]).unwrap();
        answers.push(format!("{name}: {} rows, {:?}", totals.rows, totals.columns[0].sum));
        answers.extend((0..30i64).map(|id| format!("{:?}", table.record_history(&[Value::from(id)]).unwrap())));
    }
    answers
}

/// Two checkpoints, of merged and of new rows, and a log after them.
fn database() -> FaultyDevice {
    let device = FaultyDevice::new(0);
    let db = open(&device).unwrap();
    let columns = vec![Column::new("id", DataType::BigInt), Column::new("text", DataType::TEXT)];
    let table = db.create_table("t", Schema::new(columns, &["id"]).unwrap()).unwrap();
    let row = |id: i64, text: &str| [Value::from(id), Value::from(format!("{text} {id}"))];
    for round in 0..3i64 {
        db.run(TransactionOptions::default(), |transaction| {
            (round * 9..round * 9 + 9).try_for_each(|id| transaction.insert(&table, &row(id, "row")).map(drop))
        })
        .unwrap();
        db.run(TransactionOptions::default(), |transaction| {
            transaction.update_columns(&table, &[Value::from(round)], &[(1, Value::from("changed"))])?;
            transaction.delete(&table, &[Value::from(round + 4)]).map(drop)
        })
        .unwrap();
        if round < 2 {
            assert!(db.merge_now() < 100);
            db.checkpoint().unwrap();
        }
    }
    drop((table, db));
    device
}

#[test]
fn a_flipped_bit_is_an_error_or_harmless() {
    let step = std::env::var("LSTORE_FLIP_STEP").map_or(STEP, |step| step.parse().expect("a number"));
    let whole = database();
    let expected = answers(&open(&whole.after_power_loss(0)).unwrap());
    let (mut told, mut harmless) = (0, 0);
    for name in whole.list().unwrap() {
        for offset in (0..whole.contents(&name).len() as u64).step_by(step) {
            let device = whole.after_power_loss(0);
            device.flip_bit(&name, offset, (offset % 8) as u32);
            match open(&device) {
                Ok(db) => {
                    assert_eq!(answers(&db), expected, "{name}, byte {offset}");
                    harmless += 1;
                }
                Err(error) => {
                    assert!(error.to_string().contains(&name), "{name}, byte {offset}: {error}");
                    assert!(
                        matches!(error, Error::Log(_) | Error::Checkpoint(_) | Error::NoCheckpoint { .. }),
                        "{error}"
                    );
                    told += 1;
                }
            }
        }
    }
    println!("{told} told, {harmless} harmless");
    // A damaged checkpoint is harmless: the one before it serves.
    assert!(told > 100 / step as u64 && harmless > 100 / step as u64, "{told} told, {harmless} harmless");
}

#[test]
fn without_either_checkpoint_the_database_is_refused() {
    let whole = database();
    let device: Arc<dyn Device> = Arc::new(whole.after_power_loss(0));
    let manifests: Vec<String> =
        device.list().unwrap().into_iter().filter(|name| name.ends_with(".manifest")).collect();
    assert_eq!(manifests.len(), 2);
    for damaged in [false, true] {
        let device = whole.after_power_loss(0);
        for name in &manifests {
            if damaged { device.flip_bit(name, 700, 1) } else { Device::remove(&device, name).unwrap() }
        }
        // Its log was trimmed for the older one.
        match open(&device) {
            Err(Error::NoCheckpoint { .. } | Error::Log(_) | Error::Checkpoint(_)) => {}
            Err(error) => panic!("{error}"),
            Ok(db) => assert_eq!(answers(&db), answers(&open(&whole.after_power_loss(0)).unwrap()), "the log has all"),
        }
    }
}
