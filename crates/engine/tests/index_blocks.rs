//! Indexes that are read from their images block by block: readers, writers and walks find what is in blocks that are away, that come
//! and that leave; a block that is damaged is made from the table; an index that is larger than memory works.
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use durability::Device;
use engine::{
    Column, DataType, Database, Direction, Error, IndexDefinition, IndexMethod, IndexRange, OpenOptions, ScanOptions,
    Schema, Table, Value,
};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use testkit::FaultyDevice;

/// `n` and `t`, by id.
type Rows = BTreeMap<i64, (i64, String)>;

fn options() -> OpenOptions {
    OpenOptions { range_records: Some(32), merge_threads: Some(0), ..OpenOptions::default() }
}

fn open(device: &FaultyDevice) -> Database {
    Database::open_on(Arc::new(device.clone()), options()).unwrap()
}

/// Numbers of which several rows have one, so that a key is in several blocks.
fn number(id: i64) -> i64 {
    id * 7 % 5
}

fn text(id: i64) -> String {
    format!("{:05} text", id * 7919 % 10_007)
}

fn insert(db: &Database, table: &Table, id: i64, n: i64, t: &str) -> Result<(), Error> {
    let mut transaction = db.begin()?;
    transaction.insert(table, &[Value::from(id), Value::from(n), Value::from(t)])?;
    transaction.commit().map(drop)
}

/// A database of rows with these ids, closed with images of all indexes.
fn imaged(ids: impl Iterator<Item = i64>) -> (FaultyDevice, Rows) {
    let (device, db) = fresh(ids);
    db.merge_now();
    assert_eq!(db.checkpoint().unwrap().written_indexes, 4);
    let rows = found(&db, "t_pkey", &IndexRange::all(), Direction::Upward).into_iter();
    (device, rows.map(|id| (id, (number(id), text(id)))).collect())
}

/// A database of rows with these ids.
fn fresh(ids: impl Iterator<Item = i64>) -> (FaultyDevice, Database) {
    let device = FaultyDevice::new(0);
    let db = open(&device);
    let columns =
        vec![Column::new("id", DataType::BigInt), Column::new("n", DataType::BigInt), Column::new("t", DataType::TEXT)];
    let table = db.create_table("t", Schema::new(columns, &["id"]).unwrap()).unwrap();
    for definition in [
        IndexDefinition::new("by_n", &[1]),
        IndexDefinition::new("by_k", &[1]).using(IndexMethod::Kiss),
        IndexDefinition::new("by_t", &[2]).unique(),
    ] {
        db.create_index("t", definition).unwrap();
    }
    ids.for_each(|id| insert(&db, &table, id, number(id), &text(id)).unwrap());
    (device, db)
}

fn id_of(row: &[Value]) -> i64 {
    match row[0] {
        Value::BigInt(id) => id,
        ref other => panic!("{other:?}"),
    }
}

/// The ids that an index tells in a range.
fn found(db: &Database, name: &str, range: &IndexRange, direction: Direction) -> Vec<i64> {
    let (table, transaction) = (db.table("t").unwrap(), db.begin().unwrap());
    let mut indexes = table.primary_index().into_iter().chain(table.indexes());
    let index = indexes.find(|index| index.definition().name == name).unwrap();
    let rows = transaction.index_scan(&table, &index, range, direction).unwrap();
    rows.map(|row| id_of(&row.unwrap().1)).collect()
}

/// What one range of each index says, against the rows.
fn check_range(db: &Database, rows: &Rows, random: &mut StdRng) {
    let (from, len) = (random.random_range(-5..700), random.random_range(0..90));
    let direction = if random.random_range(0..2) == 0 { Direction::Upward } else { Direction::Downward };
    let expect = |name: &str, range: IndexRange, key: &dyn Fn(i64) -> String, is_in: &dyn Fn(i64) -> bool| {
        let mut expected: Vec<i64> = rows.keys().copied().filter(|id| is_in(*id)).collect();
        expected.sort_by_key(|id| (key(*id), *id));
        let mut answered = found(db, name, &range, direction);
        if direction == Direction::Downward {
            answered.reverse();
        }
        assert!(answered.is_sorted_by(|one, next| key(*one) <= key(*next)), "{name}, {range:?}");
        answered.sort_by_key(|id| (key(*id), *id));
        assert_eq!(answered, expected, "{name}, {range:?}, {direction:?}");
    };
    let (low, high) = (Bound::Included(Value::from(from)), Bound::Excluded(Value::from(from + len)));
    let ids = IndexRange { low, high, ..IndexRange::all() };
    expect("t_pkey", ids, &|id| format!("{:06}", id + 10), &|id| (from..from + len).contains(&id));
    let n = random.random_range(0..6);
    for name in ["by_n", "by_k"] {
        expect(name, IndexRange::equal(vec![Value::from(n)]), &|_| String::new(), &|id| rows[&id].0 == n);
        let above = IndexRange { low: Bound::Excluded(Value::from(n)), ..IndexRange::all() };
        expect(name, above, &|id| rows[&id].0.to_string(), &|id| rows[&id].0 > n);
    }
    let beginning = format!("{from:05}");
    let above = IndexRange { low: Bound::Included(Value::from(beginning.as_str())), ..IndexRange::all() };
    expect("by_t", above, &|id| rows[&id].1.clone(), &|id| rows[&id].1 >= beginning);
}

fn check_point(db: &Database, rows: &Rows, id: i64) {
    let found = db.begin().unwrap().get(&db.table("t").unwrap(), &[Value::from(id)]).unwrap();
    assert_eq!(found.map(|row| row[2].clone()), rows.get(&id).map(|row| Value::from(row.1.as_str())), "{id}");
}

#[test]
fn blocks_that_come_and_leave_have_what_a_model_has() {
    let seeds = std::env::var("LSTORE_IMAGE_SEEDS").map_or(2, |seeds| seeds.parse().unwrap());
    for seed in 0..seeds {
        let mut random = StdRng::seed_from_u64(seed);
        let (mut device, mut rows) = imaged((0..700).step_by(2));
        let mut db = open(&device);
        for step in 0..220 {
            let (table, id) = (db.table("t").unwrap(), random.random_range(0..700));
            match random.random_range(0..12) {
                0..=2 => check_point(&db, &rows, id),
                3 | 4 => check_range(&db, &rows, &mut random),
                5 | 6 => {
                    // Both keys have to be free, whether their blocks are here or away.
                    let other = if random.random_range(0..3) == 0 { random.random_range(0..700) } else { id };
                    let is_free = !rows.contains_key(&id) && !rows.values().any(|row| row.1 == text(other));
                    let inserted = insert(&db, &table, id, id % 6, &text(other));
                    assert_eq!(inserted.is_ok(), is_free, "{id}, {other}: {inserted:?}");
                    if is_free {
                        rows.insert(id, (id % 6, text(other)));
                    }
                }
                7 => {
                    let mut transaction = db.begin().unwrap();
                    let key = [Value::from(id)];
                    let is_there = match random.random_range(0..2) {
                        0 => transaction.delete(&table, &key).unwrap(),
                        _ => transaction.update(&table, &key, &[("n", Value::from(id % 3))]).unwrap(),
                    };
                    assert_eq!(is_there, rows.contains_key(&id));
                    // Another one is rolled back.
                    if random.random_range(0..4) > 0 {
                        let now = transaction.get(&table, &key).unwrap();
                        transaction.commit().unwrap();
                        match (now, rows.get_mut(&id)) {
                            (Some(_), Some(row)) => row.0 = id % 3,
                            _ => drop(rows.remove(&id)),
                        }
                    }
                }
                8 | 9 => db.reclaim_now(),
                10 => drop(db.checkpoint().unwrap()),
                _ => {
                    let crashes = random.random_range(0..2) == 0;
                    let crashed = crashes.then(|| device.after_process_crash(step));
                    drop((table, db));
                    device = crashed.unwrap_or(device);
                    db = open(&device);
                }
            }
        }
        for name in ["t_pkey", "by_n", "by_k", "by_t"] {
            let mut all = found(&db, name, &IndexRange::all(), Direction::Upward);
            all.sort_unstable();
            assert!(all.iter().eq(rows.keys()), "seed {seed}: {name}");
        }
        drop(db);
        let verified = Database::verify_on(Arc::new(device.clone()), |_, _| ()).unwrap();
        assert_eq!(verified.faults, [""; 0], "seed {seed}");
    }
}

/// Threads look up, walk and insert while blocks leave all the time, and checkpoints bring others; of two that insert one key only one
/// may.
#[test]
fn readers_and_writers_miss_nothing_while_blocks_leave() {
    let (device, rows) = imaged(0..600);
    miss_nothing(&open(&device), rows.clone());
    // The index is whole at the beginning, and what is in memory has come since the opening.
    let (_device, db) = fresh(0..600);
    miss_nothing(&db, rows);
}

fn miss_nothing(db: &Database, mut rows: Rows) {
    let stop = AtomicBool::new(false);
    let inserted: Vec<i64> = std::thread::scope(|scope| {
        let evictor = scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                db.reclaim_now();
            }
        });
        let checkpointer = scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                db.checkpoint().unwrap();
            }
        });
        let kept = &rows;
        let readers: Vec<_> = (0..2u64)
            .map(|seed| {
                scope.spawn(move || {
                    let mut random = StdRng::seed_from_u64(seed);
                    for round in 0..400 {
                        check_point(db, kept, random.random_range(0..600));
                        if round % 20 == 0 {
                            let all = found(db, "by_t", &IndexRange::all(), Direction::Downward);
                            assert_eq!(all.iter().filter(|id| **id < 600).count(), 600);
                            let all = found(db, "by_n", &IndexRange::all(), Direction::Upward);
                            assert_eq!(all.iter().filter(|id| **id < 600).count(), 600);
                        }
                    }
                })
            })
            .collect();
        let writers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(move || {
                    let table = db.table("t").unwrap();
                    let taken = insert(db, &table, 5, 1, "new");
                    assert!(matches!(taken, Err(Error::DuplicateKey { .. })), "{taken:?}");
                    (600..900).filter(|id| insert(db, &table, *id, number(*id), &text(*id)).is_ok()).collect::<Vec<_>>()
                })
            })
            .collect();
        let inserted = writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect();
        readers.into_iter().for_each(|reader| reader.join().unwrap());
        stop.store(true, Ordering::Relaxed);
        evictor.join().unwrap();
        checkpointer.join().unwrap();
        inserted
    });
    for id in &inserted {
        assert!(rows.insert(*id, (number(*id), text(*id))).is_none(), "{id} was inserted twice");
    }
    for name in ["t_pkey", "by_n", "by_k", "by_t"] {
        let mut all = found(db, name, &IndexRange::all(), Direction::Upward);
        all.sort_unstable();
        assert!(all.iter().eq(rows.keys()), "{name}");
    }
}

/// A record that several rows had the key of, one after the other, is found whichever block is loaded before the others.
#[test]
fn a_key_that_was_given_up_and_taken_again_leads_to_its_row() {
    let (device, mut rows) = imaged(0..200);
    for round in 0..3 {
        let db = open(&device);
        let table = db.table("t").unwrap();
        for id in (0..200).step_by(9) {
            let mut transaction = db.begin().unwrap();
            assert!(transaction.delete(&table, &[Value::from(id)]).unwrap());
            transaction.commit().unwrap();
            insert(&db, &table, id, round, &text(id)).unwrap();
            rows.insert(id, (round, text(id)));
        }
        if round == 1 {
            db.checkpoint().unwrap();
        }
        db.reclaim_now();
        (0..200).for_each(|id| check_point(&db, &rows, id));
        drop((table, db));
        let db = open(&device);
        (0..200).rev().for_each(|id| check_point(&db, &rows, id));
        drop(db);
        let verified = Database::verify_on(Arc::new(device.clone()), |_, _| ()).unwrap();
        assert_eq!(verified.faults, [""; 0], "round {round}");
    }
}

/// A checkpoint that has no image of an index, as those were that knew of none, opens.
#[test]
fn a_checkpoint_without_images_opens() {
    let (device, rows) = imaged(0..100);
    let bare = FaultyDevice::new(1);
    let db = open(&bare);
    let columns =
        vec![Column::new("id", DataType::BigInt), Column::new("n", DataType::BigInt), Column::new("t", DataType::TEXT)];
    let table = db.create_table("t", Schema::new(columns, &["id"]).unwrap()).unwrap();
    for definition in [IndexDefinition::new("by_n", &[1]), IndexDefinition::new("by_t", &[2]).unique()] {
        db.create_index("t", definition).unwrap();
    }
    rows.iter().for_each(|(id, (n, t))| insert(&db, &table, *id, *n, t).unwrap());
    let crashed = bare.after_process_crash(0);
    drop((table, db));
    // Recovered from the log, no index is used before the checkpoint.
    let db = open(&crashed);
    assert_eq!(db.checkpoint().unwrap().written_indexes, 0);
    drop(db);
    let manifest = |device: &FaultyDevice| {
        let names = device.list().unwrap();
        let name = names.iter().rfind(|name| name.ends_with(".manifest")).unwrap().clone();
        String::from_utf8_lossy(&device.contents(&name)).into_owned()
    };
    assert!(!manifest(&crashed).contains("\"images\"") && manifest(&device).contains("\"directory\""));
    let db = open(&crashed);
    (0..100).for_each(|id| check_point(&db, &rows, id));
    assert_eq!(found(&db, "by_t", &IndexRange::all(), Direction::Upward).len(), 100);
    assert_eq!(found(&db, "by_n", &IndexRange::all(), Direction::Upward).len(), 100);
}

/// Where the runs of images begin in a file of a checkpoint.
fn runs(contents: &[u8]) -> Vec<usize> {
    // A run begins with its kind, its format, what its keys are, and how many entries it has.
    let is_run = |at: &usize| {
        contents[*at..].starts_with(&[7, 1])
            && contents[at + 2] < 2
            && contents[at + 3] >= 32
            && contents[at + 4..at + 7] == [0; 3]
    };
    let runs: Vec<usize> = (0..contents.len() - 8).filter(is_run).collect();
    assert!(runs.len() > 20, "{} runs", runs.len());
    runs
}

/// Every run is damaged, and the index answers from the table.
#[test]
fn blocks_that_are_damaged_are_made_from_the_table() {
    let (device, rows) = imaged(0..400);
    let names = device.list().unwrap();
    let name = names.iter().rfind(|name| name.ends_with(".blobs")).unwrap();
    let runs = runs(&device.contents(name));
    runs.iter().for_each(|at| device.flip_bit(name, *at as u64 + 9, 3));
    let db = open(&device);
    (0..400).step_by(50).for_each(|id| check_point(&db, &rows, id));
    let mut random = StdRng::seed_from_u64(0);
    for _ in 0..5 {
        check_range(&db, &rows, &mut random);
        db.reclaim_now();
    }
    let taken = insert(&db, &db.table("t").unwrap(), 1000, 0, &text(333));
    assert!(matches!(taken, Err(Error::DuplicateKey { .. })), "{taken:?}");
    assert_eq!(db.checkpoint().unwrap().written_indexes, 4, "all are written anew");
}

/// A block that was written since the opening and can't be read is an error that names it; other keys are found, and the next opening
/// makes the index anew.
#[test]
fn a_damaged_block_of_what_came_since_the_opening_is_an_error() {
    let (device, db) = fresh(0..400);
    let rows: Rows = (0..400).map(|id| (id, (number(id), text(id)))).collect();
    assert_eq!(db.checkpoint().unwrap().written_indexes, 4);
    // All leave, once no other test has the epoch pinned, and what they had is asked for.
    (0..50).for_each(|_| db.reclaim_now());
    let name = device.list().unwrap().into_iter().rfind(|name| name.ends_with(".blobs")).unwrap();
    runs(&device.contents(&name)).into_iter().step_by(2).for_each(|at| device.flip_bit(&name, at as u64 + 9, 3));
    let table = db.table("t").unwrap();
    let (mut failed, transaction) = (0, db.begin().unwrap());
    for id in 0..400 {
        match transaction.get(&table, &[Value::from(id)]) {
            Ok(row) => assert_eq!(row.unwrap()[2], Value::from(rows[&id].1.as_str())),
            Err(Error::Page(error)) => {
                assert!(
                    error.to_string().starts_with("a block of index \"t_pkey\" of \"t\" cannot be read"),
                    "{error}"
                );
                failed += 1;
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert!((50..350).contains(&failed), "{failed} of 400 rows are not found");
    drop((transaction, table, db));
    let db = open(&device);
    (0..400).for_each(|id| check_point(&db, &rows, id));
}

/// Keys that come while the database is open, one behind the other as data is loaded, take no more memory than there is.
#[test]
fn keys_that_came_since_the_opening_leave_memory() {
    const ROWS: i64 = 30_000;
    const LIMIT: u64 = 2 << 20;
    let directory = tempfile::tempdir().unwrap();
    let options = OpenOptions {
        range_records: Some(512),
        memory_limit_bytes: Some(LIMIT),
        merge_threads: Some(1),
        ..OpenOptions::default()
    };
    let db = Database::open_with(directory.path(), options).unwrap();
    let columns = vec![Column::new("k", DataType::TEXT), Column::new("id", DataType::BigInt)];
    let table = db.create_table("t", Schema::new(columns, &["k"]).unwrap()).unwrap();
    db.create_index("t", IndexDefinition::new("by_id", &[1])).unwrap();
    let key = |id: i64| format!("{id:08} is a key of some length");
    let insert = |ids: &[i64]| -> Result<(), Error> {
        let mut transaction = db.begin()?;
        for id in ids {
            transaction.insert(&table, &[Value::from(key(*id)), Value::from(*id)])?;
        }
        transaction.commit().map(drop)
    };
    // Other tests have the epoch pinned as well, and nothing leaves before they have gone on.
    let patiently = |what: &dyn Fn() -> Result<(), Error>| {
        let mut outcome = what();
        for _ in 0..100 {
            if !matches!(outcome, Err(Error::OutOfMemory { .. })) {
                break;
            }
            db.reclaim_now();
            std::thread::sleep(std::time::Duration::from_millis(20));
            outcome = what();
        }
        outcome
    };
    for ids in (0..ROWS).collect::<Vec<_>>().chunks(500) {
        patiently(&|| insert(ids)).unwrap();
    }
    let mut index_bytes = u64::MAX;
    for _ in 0..100 {
        db.reclaim_now();
        index_bytes = table.memory().index_bytes;
        if index_bytes < LIMIT {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert!(index_bytes < LIMIT, "{index_bytes} bytes of index");
    let (mut random, options) = (StdRng::seed_from_u64(0), ScanOptions { columns: vec![1], ..ScanOptions::default() });
    for _ in 0..1000 {
        let id = random.random_range(0..ROWS);
        let batch = table.lookup(db.snapshot(), &[Value::from(key(id))], &options).unwrap();
        assert_eq!(batch.num_rows(), 1, "{id}");
    }
    let taken = patiently(&|| insert(&[77]));
    assert!(matches!(taken, Err(Error::DuplicateKey { .. })), "{taken:?}");
    for index in table.primary_index().into_iter().chain(table.indexes()) {
        let transaction = db.begin().unwrap();
        let rows = transaction.index_scan(&table, &index, &IndexRange::all(), Direction::Upward).unwrap();
        assert_eq!(rows.map(Result::unwrap).count() as i64, ROWS);
    }
}

/// Indexes that are twice as large as memory may be: rows are found by key, in order, and new ones enter.
#[test]
fn an_index_that_is_larger_than_memory_works() {
    const ROWS: i64 = 20_000;
    const LIMIT: u64 = 2 << 20;
    let directory = tempfile::tempdir().unwrap();
    let key = |id: i64| format!("{:016x} {:08}", (id as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15), id);
    let opened = |limit: Option<u64>| {
        let options = OpenOptions {
            range_records: Some(512),
            memory_limit_bytes: limit,
            merge_threads: Some(1),
            ..OpenOptions::default()
        };
        Database::open_with(directory.path(), options).unwrap()
    };
    let db = opened(None);
    let columns = vec![Column::new("k", DataType::TEXT), Column::new("id", DataType::BigInt)];
    let table = db.create_table("t", Schema::new(columns, &["k"]).unwrap()).unwrap();
    for ids in (0..ROWS).collect::<Vec<_>>().chunks(1000) {
        let mut transaction = db.begin().unwrap();
        for id in ids {
            transaction.insert(&table, &[Value::from(key(*id)), Value::from(*id)]).unwrap();
        }
        transaction.commit().unwrap();
    }
    db.merge_now();
    db.checkpoint().unwrap();
    let whole = table.memory().index_bytes;
    assert!(whole > LIMIT / 2, "{whole} bytes of index");
    drop((table, db));
    let db = opened(Some(LIMIT));
    let table = db.table("t").unwrap();
    let (mut random, options) = (StdRng::seed_from_u64(0), ScanOptions { columns: vec![1], ..ScanOptions::default() });
    for round in 0..2000 {
        let id = random.random_range(0..ROWS);
        let batch = table.lookup(db.snapshot(), &[Value::from(key(id))], &options).unwrap();
        assert_eq!(batch.num_rows(), 1, "{id}");
        if round % 100 == 0 {
            let index_bytes = table.memory().index_bytes;
            assert!(index_bytes < LIMIT, "{index_bytes} of {whole} bytes");
        }
    }
    let transaction = db.begin().unwrap();
    let index = table.primary_index().unwrap();
    let rows = transaction.index_scan(&table, &index, &IndexRange::all(), Direction::Upward).unwrap();
    assert_eq!(rows.map(Result::unwrap).count() as i64, ROWS);
    drop(transaction);
    let index_bytes = table.memory().index_bytes;
    assert!(index_bytes < LIMIT, "{index_bytes} of {whole} bytes after a walk");
    let mut transaction = db.begin().unwrap();
    transaction.insert(&table, &[Value::from("another"), Value::from(-1i64)]).unwrap();
    let taken = transaction.insert(&table, &[Value::from(key(77)), Value::from(-1i64)]);
    assert!(matches!(taken, Err(Error::DuplicateKey { .. })), "{taken:?}");
    transaction.commit().unwrap();
}
