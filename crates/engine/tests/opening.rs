//! Opening a directory reads no page and fills no index: pages come in when they are first used, under the limit of memory, and an
//! index has its entries before it is first asked. A page that is damaged is an error that names it; checkpoints and backups
//! carry over what was never read; directories that an older program has written open as before.
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use durability::Device;
use engine::{
    Column, DataType, Database, Direction, Error, IndexDefinition, IndexMethod, IndexRange, LayoutSetting, OpenOptions,
    Retention, ScanOptions, Schema, Table, TableSettings, TransactionOptions, Value,
};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use testkit::FaultyDevice;

const LIMIT: u64 = 1 << 20;

fn options() -> OpenOptions {
    OpenOptions { range_records: Some(256), merge_threads: Some(0), ..OpenOptions::default() }
}

fn open(device: &FaultyDevice) -> Database {
    Database::open_on(Arc::new(device.clone()), options()).unwrap()
}

fn columns() -> Vec<Column> {
    let column = |name, data_type| Column::new(name, data_type);
    vec![column("id", DataType::BigInt), column("n", DataType::BigInt), column("text", DataType::TEXT)]
}

fn row(id: i64, n: i64) -> [Value; 3] {
    [Value::from(id), Value::from(n), Value::from(format!("text {id} of {n} {}", "x".repeat(n as usize % 50)))]
}

fn create(db: &Database, name: &str, settings: TableSettings) -> Table {
    let table = db.create_table_with(name, Schema::new(columns(), &["id"]).unwrap(), settings).unwrap();
    let index = IndexDefinition::new(format!("{name}_n"), &[1]);
    db.run(TransactionOptions::default(), |transaction| transaction.create_index(name, index.clone()).map(drop))
        .unwrap();
    table
}

fn insert(db: &Database, table: &Table, ids: std::ops::Range<i64>) {
    db.run(TransactionOptions::default(), |transaction| {
        ids.clone().try_for_each(|id| transaction.insert(table, &row(id, id % 7)).map(drop))
    })
    .unwrap();
}

/// A database of 2,000 merged rows, all of them in a checkpoint, that was closed.
fn closed(device: &FaultyDevice) {
    let db = open(device);
    let table = create(&db, "t", TableSettings::default());
    insert(&db, &table, 0..2_000);
    db.merge_now();
    db.checkpoint().unwrap();
}

fn ids_with(db: &Database, table: &Table, n: i64) -> Vec<i64> {
    let view = db.read_view().unwrap();
    let index = table.indexes().into_iter().next().unwrap();
    let range = IndexRange::equal(vec![Value::from(n)]);
    let options = ScanOptions { columns: vec![0], ..ScanOptions::default() };
    let batches = table.index_scan(&view, &index, &range, Direction::Upward, options).unwrap();
    let mut ids: Vec<i64> =
        batches.flat_map(|batch| batch.unwrap().column(0).as_primitive::<Int64Type>().values().to_vec()).collect();
    ids.sort_unstable();
    ids
}

fn contents(db: &Database, table: &Table) -> Result<BTreeMap<i64, (i64, String)>, Error> {
    let options = ScanOptions { columns: vec![0, 1, 2], ..ScanOptions::default() };
    let mut rows = BTreeMap::new();
    for batch in table.scan(db.snapshot(), options)?.batches() {
        let batch = batch?;
        let (ids, ns) = (batch.column(0).as_primitive::<Int64Type>(), batch.column(1).as_primitive::<Int64Type>());
        for at in 0..batch.num_rows() {
            let text = batch.column(2).as_string_view().value(at).to_owned();
            assert!(rows.insert(ids.value(at), (ns.value(at), text)).is_none(), "row {} comes twice", ids.value(at));
        }
    }
    Ok(rows)
}

fn lookup(db: &Database, table: &Table, id: i64) -> Result<Option<i64>, Error> {
    let options = ScanOptions { columns: vec![1], ..ScanOptions::default() };
    let found = table.lookup(db.snapshot(), &[Value::from(id)], &options)?;
    Ok((found.num_rows() == 1).then(|| found.column(0).as_primitive::<Int64Type>().value(0)))
}

#[test]
fn opening_reads_no_page_and_what_is_used_comes_in() {
    let device = FaultyDevice::new(0);
    closed(&device);
    let db = open(&device);
    let table = db.table("t").unwrap();
    let [evicted, resident] = [db.memory()[0].evicted_bytes, db.memory()[0].base_bytes];
    assert_eq!((db.evictions().read_backs, db.memory()[0].index_bytes < 10_000), (0, true), "{:?}", db.memory());
    assert!(evicted > 2 * resident && evicted > 50_000, "{evicted} away, {resident} of outlines");
    let totals = table.aggregate(db.snapshot(), &[], &[1]).unwrap();
    assert_eq!((totals.rows, db.evictions().read_backs), (2_000, 0), "outlines answer");
    assert_eq!(lookup(&db, &table, 700).unwrap(), Some(0));
    let for_keys = db.evictions().read_backs;
    assert!((1..=2 * 8 + 1).contains(&for_keys), "the columns of the key, and a page of the row: {for_keys}");
    let expected: BTreeMap<i64, (i64, String)> =
        (0..2_000).map(|id| (id, (id % 7, row(id, id % 7)[2].to_string()))).collect();
    assert_eq!(contents(&db, &table).unwrap(), expected);
    assert_eq!(ids_with(&db, &table, 3), (0..2_000).filter(|id| id % 7 == 3).collect::<Vec<_>>());
}

#[test]
fn keys_are_refused_and_found_from_the_first_statement_on_whichever_threads_come_first() {
    let device = FaultyDevice::new(0);
    closed(&device);
    for round in 0..4i64 {
        let db = open(&device);
        let table = &db.table("t").unwrap();
        let works: Vec<Box<dyn Fn() + Send + Sync + '_>> = vec![
            Box::new(|| {
                let refused = db.run(TransactionOptions::default(), |t| t.insert(table, &row(5, 1)).map(drop));
                assert!(matches!(refused, Err(Error::DuplicateKey { .. })), "{refused:?}");
            }),
            Box::new(|| {
                db.run(TransactionOptions::default(), |t| t.insert(table, &row(5_000 + round, 3)).map(drop)).unwrap();
            }),
            Box::new(|| assert_eq!(lookup(&db, table, 1_234).unwrap(), Some(1_234 % 7))),
            Box::new(|| assert!(ids_with(&db, table, 2).len() >= 285)),
        ];
        std::thread::scope(|scope| works.iter().for_each(|work| drop(scope.spawn(work))));
        drop(works);
        assert_eq!(lookup(&db, table, 5_000 + round).unwrap(), Some(3));
        assert!(ids_with(&db, table, 3).contains(&(5_000 + round)));
    }
    let found = Database::verify_on(Arc::new(device), |_, _| ()).unwrap();
    assert_eq!(found.faults, [""; 0]);
}

/// A view that was taken before an index was first used finds what it sees, although the table keeps less by then.
#[test]
fn an_index_that_is_filled_late_serves_views_that_are_older() {
    let device = FaultyDevice::new(0);
    let db = open(&device);
    let table = create(&db, "t", TableSettings { retention: Retention::None, ..TableSettings::default() });
    insert(&db, &table, 0..300);
    db.merge_now();
    db.checkpoint().unwrap();
    drop((db, table));
    let db = open(&device);
    let table = db.table("t").unwrap();
    let other = db.create_table("other", Schema::new(columns(), &[]).unwrap()).unwrap();
    let view = db.read_view().unwrap();
    // Commits go on elsewhere, and the table's horizon with them.
    (0..3).for_each(|id| insert(&db, &other, id..id + 1));
    db.reclaim_now();
    let options = ScanOptions { columns: vec![1], ..ScanOptions::default() };
    let found = table.lookup(view.snapshot(), &[Value::from(12i64)], &options).unwrap();
    assert_eq!(found.num_rows(), 1);
    let change = [(0, Value::from(9_000i64))];
    db.run(TransactionOptions::default(), |t| t.update_columns(&table, &[Value::from(13i64)], &change).map(drop))
        .unwrap();
    let found = table.lookup(view.snapshot(), &[Value::from(13i64)], &options).unwrap();
    assert_eq!((found.num_rows(), lookup(&db, &table, 13).unwrap()), (1, None));
}

/// Keys that rows have had, that were given up by an abort, and that went with their rows are all found after opening, by readers of
/// every moment.
#[test]
fn keys_of_every_moment_are_found_after_opening() {
    let device = FaultyDevice::new(0);
    let db = open(&device);
    let tables = ["whole", "changed", "aborted", "deleted"].map(|name| create(&db, name, TableSettings::default()));
    tables.iter().for_each(|table| insert(&db, table, 0..600));
    let before = db.snapshot();
    let [whole, changed, aborted, deleted] = &tables;
    let mut rolled_back = db.begin().unwrap();
    (600..700).for_each(|id| assert!(rolled_back.insert(aborted, &row(id, 1)).is_ok()));
    rolled_back.rollback();
    let key = |id: i64| [Value::from(id)];
    db.run(TransactionOptions::default(), |t| {
        t.delete(deleted, &key(17))?;
        t.insert(deleted, &row(17, 6))?;
        t.update_columns(changed, &key(18), &[(0, Value::from(9_000i64))]).map(drop)
    })
    .unwrap();
    [whole, aborted].into_iter().for_each(|table| insert(&db, table, 600..1_200));
    db.merge_now();
    db.checkpoint().unwrap();
    drop((db, tables));
    let db = open(&device);
    let options = ScanOptions { columns: vec![1], ..ScanOptions::default() };
    for name in ["whole", "changed", "aborted", "deleted"] {
        let table = db.table(name).unwrap();
        let then = |id: i64| table.lookup(before, &key(id), &options).unwrap().num_rows();
        assert!((0..600).all(|id| then(id) == 1) && then(600) + then(9_000) == 0, "{name} before");
        let now = |id: i64| lookup(&db, &table, id).unwrap();
        let end = if matches!(name, "whole" | "aborted") { 1_200 } else { 600 };
        let missing: Vec<i64> = (0..end).filter(|id| now(*id).is_none()).collect();
        assert_eq!(missing, if name == "changed" { vec![18] } else { vec![] }, "{name} now");
        assert_eq!((now(9_000), now(end)), ((name == "changed").then_some(4), None), "{name} now");
        assert_eq!(now(17), Some(if name == "deleted" { 6 } else { 3 }), "{name} now");
    }
    drop(db);
    assert_eq!(Database::verify_on(Arc::new(device), |_, _| ()).unwrap().faults, [""; 0]);
}

#[test]
fn a_checkpoint_and_a_backup_carry_over_what_was_never_read() {
    let device = FaultyDevice::new(0);
    closed(&device);
    let db = open(&device);
    let report = db.checkpoint().unwrap();
    assert_eq!((report.unchanged_ranges, report.ranges), (8, 8));
    let table = db.table("t").unwrap();
    db.run(TransactionOptions::default(), |t| {
        t.update_columns(&table, &[Value::from(9i64)], &[(1, Value::from(1i64))]).map(drop)
    })
    .unwrap();
    let read = db.evictions().read_backs;
    let report = db.checkpoint().unwrap();
    assert_eq!((report.unchanged_ranges, db.evictions().read_backs), (7, read), "no page is read for it");
    assert!(report.written_bytes * 4 < report.live_bytes, "{report:?}");
    drop((db, table));
    let db = open(&device);
    let target = FaultyDevice::new(1);
    db.backup_on(&(Arc::new(target.clone()) as Arc<dyn Device>)).unwrap();
    assert_eq!(db.evictions().read_backs, 0, "files are copied");
    let expected = contents(&db, &db.table("t").unwrap()).unwrap();
    let copy = open(&target);
    assert_eq!(contents(&copy, &copy.table("t").unwrap()).unwrap(), expected);
    assert_eq!((expected[&9].0, expected[&10].0), (1, 3));
}

/// The file of blobs, and where in it the first page of texts has its first.
fn first_text(device: &FaultyDevice) -> (String, u64) {
    let blobs = device.list().unwrap().into_iter().find(|name| name.ends_with(".blobs")).unwrap();
    let text = device.contents(&blobs).windows(4).position(|four| four == b"text").expect("a page of texts");
    (blobs, text as u64)
}

/// Bits flip in the file of blobs while the database is closed.
#[test]
fn damage_is_told_by_the_first_reader_with_table_range_column_and_file() {
    let device = FaultyDevice::new(0);
    closed(&device);
    let (blobs, text) = first_text(&device);
    device.flip_bit(&blobs, text, 1);
    let db = open(&device);
    let table = db.table("t").unwrap();
    let totals = table.aggregate(db.snapshot(), &[], &[0, 1]).unwrap();
    assert_eq!(totals.rows, 2_000, "the page is not needed");
    let error = contents(&db, &table).unwrap_err();
    let told = error.to_string();
    assert!(matches!(error, Error::Page(_)) && error.sqlstate() == "XX001", "{told}");
    for part in ["column \"text\"", "range ", "of \"t\"", &blobs, "byte"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    let scanned = table.scan(db.snapshot(), ScanOptions { columns: vec![2], ..ScanOptions::default() }).unwrap();
    let failed = scanned.batches().filter(Result::is_err).count();
    assert_eq!(failed, 1, "the other ranges are read");
    assert_eq!(lookup(&db, &table, 3).unwrap(), Some(3), "nor by a reader of another column");
    db.checkpoint().unwrap();
    drop((db, table));
    let found = Database::verify_on(Arc::new(device.clone()), |_, _| ()).unwrap();
    assert!(found.faults.iter().any(|fault| fault.contains(&blobs)), "{found:?}");
    open(&device).drop_table("t").unwrap();
}

/// Gives all ranges but the first new pages, and takes a checkpoint.
fn renew_later_ranges(db: &Database, table: &Table, round: i64) {
    for ids in (300..2_000).collect::<Vec<i64>>().chunks(500) {
        let change = |id: &i64| ([Value::from(*id)], [(1, Value::from(round)), (2, Value::from("short"))]);
        db.run(TransactionOptions::default(), |t| {
            ids.iter().map(change).try_for_each(|(key, set)| t.update_columns(table, &key, &set).map(drop))
        })
        .unwrap();
    }
    db.merge_now();
    db.reclaim_now();
    db.checkpoint().unwrap();
}

/// A page that nobody has read is damaged, and little else of its file lives: checkpoints go on, and the page's readers are told.
#[test]
fn a_damaged_page_that_was_never_read_stops_no_checkpoint() {
    let device = FaultyDevice::new(0);
    closed(&device);
    let (blobs, text) = first_text(&device);
    device.flip_bit(&blobs, text, 1);
    let db = open(&device);
    let table = db.table("t").unwrap();
    for round in 0..3i64 {
        renew_later_ranges(&db, &table, round);
    }
    assert!(matches!(contents(&db, &table), Err(Error::Page(_))));
    assert_eq!(lookup(&db, &table, 1_000).unwrap(), Some(2));
    drop((db, table));
    let db = open(&device);
    let table = db.table("t").unwrap();
    assert_eq!((lookup(&db, &table, 1_999).unwrap(), lookup(&db, &table, 3).unwrap()), (Some(2), Some(3)));
}

/// What is in memory takes the place of its damaged blob once that is met.
#[test]
fn a_damaged_page_that_is_in_memory_is_written_anew() {
    let device = FaultyDevice::new(0);
    closed(&device);
    let (blobs, text) = first_text(&device);
    let db = open(&device);
    let table = db.table("t").unwrap();
    let before = contents(&db, &table).unwrap();
    device.flip_bit(&blobs, text, 1);
    for round in 0..3i64 {
        renew_later_ranges(&db, &table, round);
    }
    drop((db, table));
    assert_eq!(Database::verify_on(Arc::new(device.clone()), |_, _| ()).unwrap().faults, [""; 0]);
    let db = open(&device);
    let after = contents(&db, &db.table("t").unwrap()).unwrap();
    assert!((0..300).all(|id| after[&id] == before[&id]));
}

/// A page of the keys of an index without an image that is damaged keeps writers from the table, and nothing from going.
#[test]
fn an_index_whose_keys_cannot_be_read_says_so_each_time_and_the_table_can_be_dropped() {
    let whole = FaultyDevice::new(0);
    let db = open(&whole);
    let table = create(&db, "t", TableSettings::default());
    db.create_index("t", IndexDefinition::new("t_hash", &[1]).using(IndexMethod::Hash)).unwrap();
    insert(&db, &table, 0..2_000);
    db.merge_now();
    db.checkpoint().unwrap();
    drop((db, table));
    let refused = |db: &Database, table: &Table| {
        db.run(TransactionOptions::default(), |t| t.insert(table, &row(9_999, 1)).map(drop)).err()
    };
    let blobs = whole.list().unwrap().into_iter().find(|name| name.ends_with(".blobs")).unwrap();
    let damaged = (512..whole.contents(&blobs).len() as u64).step_by(61).find_map(|at| {
        let device = whole.after_power_loss(0);
        device.flip_bit(&blobs, at, 0);
        let db = Database::open_on(Arc::new(device), options()).ok()?;
        let table = db.table("t").unwrap();
        let error = refused(&db, &table)?;
        error.to_string().contains("column \"n\" of range").then_some((db, table))
    });
    let (db, table) = damaged.expect("a byte in a page of keys");
    for _ in 0..2 {
        let refused = refused(&db, &table);
        assert!(matches!(refused, Some(Error::Page(_))), "{refused:?}");
    }
    assert_eq!(lookup(&db, &table, 1_999).unwrap(), Some(1_999 % 7), "other indexes serve");
    db.drop_table("t").unwrap();
    assert!(db.table("t").is_err());
}

/// Random steps on a database that is opened again and again under a small limit, against a model.
#[test]
fn whatever_was_read_before_a_database_that_is_opened_again_is_what_the_model_says() {
    for seed in 0..3u64 {
        let (device, mut random) = (FaultyDevice::new(seed), StdRng::seed_from_u64(seed));
        let limited = || {
            let options = OpenOptions { memory_limit_bytes: Some(LIMIT), ..options() };
            Database::open_on(Arc::new(device.clone()), options).unwrap()
        };
        let mut db = limited();
        let layout = if seed == 1 { LayoutSetting::Row } else { LayoutSetting::Column };
        create(&db, "t", TableSettings { layout, ..TableSettings::default() });
        let mut model: BTreeMap<i64, i64> = BTreeMap::new();
        for step in 0..140 {
            let table = db.table("t").unwrap();
            match random.random_range(0..10) {
                0..=3 => write(&db, &table, &mut random, &mut model),
                4 => drop(db.merge_now()),
                5 => drop(db.checkpoint().unwrap()),
                6 => drop(db.evict_now(u64::MAX)),
                7 => {
                    let id = random.random_range(0..3_000);
                    assert_eq!(lookup(&db, &table, id).unwrap(), model.get(&id).copied(), "seed {seed}, step {step}");
                }
                8 => {
                    let n = random.random_range(0..7);
                    let expected: Vec<i64> =
                        model.iter().filter(|(_, known)| **known == n).map(|(id, _)| *id).collect();
                    assert_eq!(ids_with(&db, &table, n), expected, "seed {seed}, step {step}");
                }
                _ => {
                    drop((table, db));
                    db = limited();
                    assert_eq!(db.evictions().failures, 0);
                }
            }
        }
        let found = contents(&db, &db.table("t").unwrap()).unwrap();
        assert_eq!(found.iter().map(|(id, (n, _))| (*id, *n)).collect::<BTreeMap<_, _>>(), model, "seed {seed}");
        drop(db);
        let found = Database::verify_on(Arc::new(device.clone()), |_, _| ()).unwrap();
        assert_eq!(found.faults, [""; 0], "seed {seed}");
    }
}

fn write(db: &Database, table: &Table, random: &mut StdRng, model: &mut BTreeMap<i64, i64>) {
    let ids: Vec<i64> = (0..random.random_range(1..60)).map(|_| random.random_range(0..3_000)).collect();
    let n = random.random_range(0..7i64);
    db.run(TransactionOptions::default(), |transaction| {
        for id in &ids {
            let key = [Value::from(*id)];
            match transaction.update_columns(table, &key, &[(1, Value::from(n))])? {
                true if id % 11 == 0 => drop(transaction.delete(table, &key)?),
                true => {}
                false => drop(transaction.insert(table, &row(*id, n))?),
            }
        }
        Ok::<_, Error>(())
    })
    .unwrap();
    for id in ids {
        match model.contains_key(&id) {
            true if id % 11 == 0 => drop(model.remove(&id)),
            _ => drop(model.insert(id, n)),
        }
    }
}

/// A directory that was written before range images had outlines: two tables of 40 rows in either layout, three rows deleted,
/// three changed, one of them twice, and a row in the log after the checkpoint.
#[test]
fn a_directory_of_the_older_format_opens_and_is_written_in_the_newer_one() {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/older_format");
    let directory = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        std::fs::copy(entry.path(), directory.path().join(entry.file_name())).unwrap();
    }
    let open = || {
        let options = OpenOptions { range_records: Some(16), merge_threads: Some(0), ..OpenOptions::default() };
        Database::open_with(directory.path(), options).unwrap()
    };
    let check = |db: &Database, is_new: bool| {
        for name in ["columns", "rows"] {
            let table = db.table(name).unwrap();
            let rows = older_rows(db, &table);
            let gone = [2, 13, 24];
            let expected: Vec<i64> =
                (0..40).filter(|id| !gone.contains(id)).chain((name == "columns").then_some(100)).collect();
            assert_eq!(rows.iter().map(|(id, _)| *id).collect::<Vec<_>>(), expected);
            for (id, text) in rows {
                let round = [(1, 1), (12, 1), (23, 1), (3, 2), (100, 3)]
                    .iter()
                    .find(|(of, _)| *of == id)
                    .map_or(0, |found| found.1);
                let expected = (id % 5 != 0).then(|| format!("row {} of round {round}", id % 7));
                assert_eq!(text, expected, "row {id} of {name}");
            }
            let history = table.record_history(&[Value::from(13i64)]).unwrap();
            assert_eq!(history.iter().map(|version| version.row.is_some()).collect::<Vec<_>>(), [true, false]);
        }
        assert_eq!(db.evictions().read_backs > 0, is_new, "pages of the older format are read at once");
    };
    let db = open();
    check(&db, false);
    assert_eq!(db.checkpoint().unwrap().unchanged_ranges, 0, "the images are written anew");
    drop(db);
    let db = open();
    check(&db, true);
    drop(db);
    let found = Database::verify(directory.path(), |_, _| ()).unwrap();
    assert_eq!((found.faults, found.rows), (vec![], 37 + 38));
}

fn older_rows(db: &Database, table: &Table) -> Vec<(i64, Option<String>)> {
    use arrow_array::Array;
    let options = ScanOptions { columns: vec![0, 1], ..ScanOptions::default() };
    let mut rows = Vec::new();
    for batch in table.scan(db.snapshot(), options).unwrap().batches().map(Result::unwrap) {
        let (ids, texts) = (batch.column(0).as_primitive::<Int64Type>(), batch.column(1).as_string_view());
        let text = |at: usize| (!texts.is_null(at)).then(|| texts.value(at).to_owned());
        rows.extend((0..batch.num_rows()).map(|at| (ids.value(at), text(at))));
    }
    rows.sort_unstable();
    rows
}

/// What a database has logged since its last checkpoint is in one when it is closed, unless replaying it takes no time.
#[test]
fn a_long_log_is_in_a_checkpoint_once_the_database_is_closed() {
    for (rows, has_checkpoint) in [(10, false), (1_500, true)] {
        let device = FaultyDevice::new(0);
        let db = open(&device);
        let table = create(&db, "t", TableSettings::default());
        let wide = |id: i64| [Value::from(id), Value::from(id), Value::from(format!("{id:02000}"))];
        db.run(TransactionOptions::default(), |t| (0..rows).try_for_each(|id| t.insert(&table, &wide(id)).map(drop)))
            .unwrap();
        drop((db, table));
        let names = device.list().unwrap();
        assert_eq!(names.iter().any(|name| name.ends_with(".manifest")), has_checkpoint, "{rows} rows: {names:?}");
        let db = open(&device);
        assert_eq!(contents(&db, &db.table("t").unwrap()).unwrap().len() as i64, rows);
    }
}

#[test]
fn files_of_queries_go_when_the_database_is_opened_to_be_written() {
    let folder = tempfile::tempdir().unwrap();
    assert!(!Database::is_in(folder.path()) && !Database::is_in(folder.path().join("none")));
    let db = Database::open_with(folder.path(), options()).unwrap();
    db.create_table("t", Schema::new(vec![Column::new("id", DataType::BigInt)], &[]).unwrap()).unwrap();
    drop(db);
    assert!(Database::is_in(folder.path()));
    let left = folder.path().join("temporary/of a process that died");
    std::fs::create_dir_all(&left).unwrap();
    let reading = Database::open_with(folder.path(), OpenOptions { read_only: true, ..options() }).unwrap();
    assert!(left.exists() && reading.temporary_directory().is_none(), "another reader may be using it");
    drop(reading);
    let db = Database::open_with(folder.path(), options()).unwrap();
    assert!(!left.exists() && db.temporary_directory().unwrap().ends_with("temporary"));
    let other = tempfile::tempdir().unwrap();
    let kept = other.path().join("temporary/of somebody else");
    std::fs::create_dir_all(&kept).unwrap();
    drop(Database::open_with(other.path(), options()).unwrap());
    assert!(kept.exists(), "there was no database that could have made it");
}
