//! A bit flips in a byte of a small database that was closed: opening it is an error that names the file, or the answer is
//! right, or, of a page that is read when it is used, an error that names the file. It never panics and never answers wrongly.
//!
//! `LSTORE_FLIP_STEP=1 cargo test --release -p lstore-engine --test flips -- --nocapture` looks at every byte.
use std::sync::Arc;

use durability::{Device, LogOptions};
use engine::{Column, DataType, Database, Error, OpenOptions, Schema, TransactionOptions, Value};
use testkit::FaultyDevice;

/// By default each so manyth byte: seconds in a debug build.
const STEP: usize = 47;

fn open(device: &FaultyDevice, reads_pages_at_once: bool) -> Result<Database, Error> {
    let log = LogOptions { partitions: 2, segment_bytes: 2048, growth_bytes: 512, ..LogOptions::default() };
    let options = OpenOptions {
        merge_threads: Some(0),
        range_records: Some(16),
        log,
        reads_pages_at_once,
        ..OpenOptions::default()
    };
    Database::open_on(Arc::new(device.clone()), options)
}

/// Every version of every row.
fn answers(db: &Database) -> Result<Vec<String>, Error> {
    let mut answers = Vec::new();
    for name in db.table_names() {
        let table = db.table(&name).unwrap();
        let totals = table.aggregate(db.snapshot(), &[], &[0, 1])?;
        answers.push(format!("{name}: {} rows, {:?}", totals.rows, totals.columns[0].sum));
        for id in 0..30i64 {
            answers.push(format!("{:?}", table.record_history(&[Value::from(id)])?));
        }
    }
    Ok(answers)
}

/// Two checkpoints, of merged and of new rows, and a log after them.
fn database() -> FaultyDevice {
    let device = FaultyDevice::new(0);
    let db = open(&device, false).unwrap();
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

/// Opens whole and damaged databases; returns how often the damage was told at opening, by a reader, and not at all.
fn flip(reads_pages_at_once: bool) -> [u64; 3] {
    let step = std::env::var("LSTORE_FLIP_STEP").map_or(STEP, |step| step.parse().expect("a number"));
    let whole = database();
    let expected = answers(&open(&whole.after_power_loss(0), reads_pages_at_once).unwrap()).unwrap();
    let (mut told, mut read, mut harmless) = (0, 0, 0);
    for name in whole.list().unwrap() {
        for offset in (0..whole.contents(&name).len() as u64).step_by(step) {
            let device = whole.after_power_loss(0);
            device.flip_bit(&name, offset, (offset % 8) as u32);
            let answered = match open(&device, reads_pages_at_once) {
                Ok(db) => answers(&db).inspect_err(|_| read += 1),
                Err(error) => {
                    let is_of_a_file =
                        matches!(error, Error::Log(_) | Error::Checkpoint(_) | Error::NoCheckpoint { .. });
                    assert!(is_of_a_file, "{error}");
                    told += 1;
                    Err(error)
                }
            };
            match answered {
                Ok(answered) => {
                    assert_eq!(answered, expected, "{name}, byte {offset}");
                    harmless += 1;
                }
                Err(error) => assert!(error.to_string().contains(&name), "{name}, byte {offset}: {error}"),
            }
        }
    }
    println!("{told} told at opening, {read} by a reader, {harmless} harmless");
    // A damaged checkpoint is harmless where all of it is read at once: the one before it serves.
    assert!(told > 100 / step as u64 && harmless > 100 / step as u64, "{told} told, {harmless} harmless");
    [told, read, harmless]
}

#[test]
fn a_flipped_bit_is_an_error_or_harmless() {
    assert_eq!(flip(true)[1], 0, "what was read at once is right");
}

#[test]
fn a_flipped_bit_in_a_page_that_is_read_when_it_is_used_is_an_error_of_its_readers() {
    assert!(flip(false)[1] > 0);
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
        match open(&device, false) {
            Err(Error::NoCheckpoint { .. } | Error::Log(_) | Error::Checkpoint(_)) => {}
            Err(error) => panic!("{error}"),
            Ok(db) => {
                let expected = answers(&open(&whole.after_power_loss(0), true).unwrap()).unwrap();
                assert_eq!(answers(&db).unwrap(), expected, "the log has all");
            }
        }
    }
}
