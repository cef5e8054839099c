//! Images of indexes in checkpoints: whatever happens between a checkpoint and a crash, an index that is filled from its image
//! answers as the rows say, and `verify` finds no entry missing. An image that is damaged or not there does no harm, and one that
//! few entries have come to since is not written again.
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use durability::Device;
use engine::{
    Column, DataType, Database, Direction, Error, IndexDefinition, IndexMethod, IndexRange, OpenOptions, Retention,
    Schema, Table, TableSettings, Transaction, Value,
};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use testkit::FaultyDevice;

/// `n`, `u` and `t`, by id.
type Rows = BTreeMap<i64, (Option<i64>, Option<i64>, String)>;

fn options() -> OpenOptions {
    OpenOptions { range_records: Some(32), merge_threads: Some(0), ..OpenOptions::default() }
}

fn open(device: &FaultyDevice) -> Database {
    Database::open_on(Arc::new(device.clone()), options()).unwrap()
}

fn definitions() -> [IndexDefinition; 6] {
    [
        IndexDefinition::new("by_n", &[1]),
        IndexDefinition::new("by_u", &[2]).unique(),
        IndexDefinition::new("by_t", &[3, 1]).unique(),
        IndexDefinition::new("by_k", &[1]).using(IndexMethod::Kiss),
        // Looked at by `verify`.
        IndexDefinition::new("by_b", &[1, 2]).using(IndexMethod::Bwd),
        IndexDefinition::new("by_g", &[2]).using(IndexMethod::Gist),
    ]
}

fn create(db: &Database, retention: Retention) {
    let columns = ["id", "n", "u"].map(|name| Column::new(name, DataType::BigInt)).into_iter();
    let columns = columns.chain([Column::new("t", DataType::TEXT), Column::new("v", DataType::BigInt)]).collect();
    let settings = TableSettings { retention, ..TableSettings::default() };
    db.create_table_with("t", Schema::new(columns, &["id"]).unwrap(), settings).unwrap();
    definitions().into_iter().for_each(|definition| drop(db.create_index("t", definition).unwrap()));
}

fn row(id: i64, n: Option<i64>, u: Option<i64>) -> ([Value; 5], (Option<i64>, Option<i64>, String)) {
    let t = format!("text of {} {id}", id % 3);
    ([Value::from(id), Value::from(n), Value::from(u), Value::from(t.clone()), Value::from(0i64)], (n, u, t))
}

/// Everything that the indexes say against the rows.
fn check(db: &Database, rows: &Rows, what: &str) {
    let (table, transaction) = (db.table("t").unwrap(), db.begin().unwrap());
    let mut by_key = rows.iter().map(|(id, (n, u, t))| (*id, *n, *u, t.clone())).collect::<Vec<_>>();
    let indexes = table.primary_index().into_iter().chain(transaction.indexes(&table));
    for index in indexes.filter(|index| index.is_ordered()) {
        let name = index.definition().name.clone();
        let found = transaction.index_scan(&table, &index, &IndexRange::all(), Direction::Upward).unwrap();
        let found: Vec<i64> = found.map(|row| id_of(&row.unwrap().1)).collect();
        // NULL comes last.
        let last = |value: Option<i64>| (value.is_none(), value);
        match name.as_str() {
            "by_u" => by_key.sort_by_key(|(id, _, u, _)| (last(*u), *id)),
            "by_t" => by_key.sort_by_key(|(id, n, _, t)| (t.clone(), last(*n), *id)),
            "by_n" | "by_k" => by_key.sort_by_key(|(id, n, ..)| (last(*n), *id)),
            _ => by_key.sort(),
        }
        let key_of = |id: &i64| match name.as_str() {
            "by_u" => format!("{:?}", rows[id].1),
            "by_t" => format!("{:?}", (&rows[id].2, rows[id].0)),
            "by_n" | "by_k" => format!("{:?}", rows[id].0),
            _ => id.to_string(),
        };
        let expected: Vec<String> = by_key.iter().map(|row| key_of(&row.0)).collect();
        assert!(found.iter().all(|id| rows.contains_key(id)), "{what}: {name} finds what is not there");
        assert_eq!(found.iter().map(key_of).collect::<Vec<_>>(), expected, "{what}: {name}");
        let mut found = found;
        found.sort_unstable();
        assert!(found.iter().eq(rows.keys()), "{what}: {name} has not every row once");
    }
    for id in (0..KEYS).step_by(7) {
        let found = transaction.get(&table, &[Value::from(id)]).unwrap();
        assert_eq!(found.map(|row| id_of(&row)), rows.contains_key(&id).then_some(id), "{what}: row {id}");
    }
}

fn id_of(row: &[Value]) -> i64 {
    match row[0] {
        Value::BigInt(id) => id,
        ref other => panic!("{other:?}"),
    }
}

fn verify(device: &FaultyDevice, what: &str) {
    let found = Database::verify_on(Arc::new(device.clone()), |_, _| ()).unwrap();
    assert_eq!(found.faults, [""; 0], "{what}");
}

const KEYS: i64 = 600;

struct World {
    random: StdRng,
    device: FaultyDevice,
    db: Option<Database>,
    rows: Rows,
    /// one that has not committed when the database crashes
    open: Option<Transaction>,
}

impl World {
    fn db(&self) -> &Database {
        self.db.as_ref().unwrap()
    }

    fn table(&self) -> Table {
        self.db().table("t").unwrap()
    }

    fn some_id(&mut self) -> Option<i64> {
        let from = self.random.random_range(0..KEYS);
        self.rows.range(from..).next().map(|(id, _)| *id)
    }

    fn values(&mut self) -> (Option<i64>, Option<i64>) {
        let null_or =
            |random: &mut StdRng, below: i64| (random.random_range(0..6) > 0).then(|| random.random_range(0..below));
        (null_or(&mut self.random, 9), null_or(&mut self.random, 1 << 40))
    }

    fn insert(&mut self) {
        let (table, mut transaction) = (self.table(), self.db().begin().unwrap());
        for _ in 0..self.random.random_range(1..40) {
            let (id, (n, u)) = (self.random.random_range(0..KEYS), self.values());
            let (values, kept) = row(id, n, u);
            match transaction.insert(&table, &values) {
                Ok(_) => assert!(self.rows.insert(id, kept).is_none()),
                Err(Error::DuplicateKey { .. }) => assert!(self.rows.contains_key(&id)),
                Err(error) => panic!("{error}"),
            }
        }
        transaction.commit().unwrap();
    }

    fn change(&mut self) {
        let (table, mut transaction) = (self.table(), self.db().begin().unwrap());
        for _ in 0..self.random.random_range(1..12) {
            let Some(id) = self.some_id() else { break };
            let (key, (n, u)) = ([Value::from(id)], self.values());
            match self.random.random_range(0..5) {
                0 => {
                    assert!(transaction.delete(&table, &key).unwrap());
                    self.rows.remove(&id);
                }
                1 => {
                    transaction.update(&table, &key, &[("n", Value::from(n))]).unwrap();
                    self.rows.get_mut(&id).unwrap().0 = n;
                }
                2 => {
                    transaction.update(&table, &key, &[("u", Value::from(u))]).unwrap();
                    self.rows.get_mut(&id).unwrap().1 = u;
                }
                _ => drop(transaction.update(&table, &key, &[("v", Value::from(1i64))]).unwrap()),
            }
        }
        transaction.commit().unwrap();
    }

    /// A record gets another key.
    fn rekey(&mut self) {
        let (Some(id), to) = (self.some_id(), self.random.random_range(0..KEYS)) else { return };
        if self.rows.contains_key(&to) {
            return;
        }
        let (table, mut transaction) = (self.table(), self.db().begin().unwrap());
        transaction.update(&table, &[Value::from(id)], &[("id", Value::from(to))]).unwrap();
        transaction.commit().unwrap();
        let row = self.rows.remove(&id).unwrap();
        self.rows.insert(to, row);
    }

    /// Begins a transaction that will not commit: its records and keys may get into images all the same.
    fn begin(&mut self, may_rekey: bool) {
        let (table, mut transaction) = (self.table(), self.db().begin().unwrap());
        for id in 0..self.random.random_range(1..50) {
            transaction.insert(&table, &row(KEYS + id, Some(id), Some(id << 41)).0).unwrap();
        }
        if let Some(id) = self.some_id().filter(|_| may_rekey) {
            transaction.update(&table, &[Value::from(id)], &[("n", Value::from(77i64))]).unwrap();
        }
        self.open = Some(transaction);
    }

    fn ddl(&mut self) {
        match self.random.random_range(0..7) {
            0 => {
                self.db().truncate_table("t").unwrap();
                self.rows.clear();
            }
            which => {
                let definition = definitions()[which - 1].clone();
                self.db().drop_index(&definition.name).unwrap();
                self.db().create_index("t", definition).unwrap();
            }
        }
    }

    fn reopen(&mut self, seed: u64) {
        let crashed = match seed % 3 {
            0 => {
                self.open = None;
                None
            }
            1 => Some(self.device.after_process_crash(seed)),
            _ => Some(self.device.after_power_loss(seed)),
        };
        self.open = None;
        self.db = None;
        if let Some(crashed) = crashed {
            self.device = crashed;
        }
        verify(&self.device, &format!("seed {seed}"));
        self.db = Some(open(&self.device));
    }

    fn step(&mut self, rekeys: bool) {
        match self.random.random_range(0..20) {
            0..=4 => self.insert(),
            // What another transaction has written can't be changed.
            5..=8 if self.open.is_none() => self.change(),
            9 if rekeys && self.open.is_none() => self.rekey(),
            10 => drop(self.db().merge_now()),
            11 => self.db().reclaim_now(),
            12..=14 => drop(self.db().checkpoint().unwrap()),
            15 if self.open.is_none() => self.begin(rekeys),
            16 => self.open = None,
            17 if self.open.is_none() => self.ddl(),
            18 | 19 => {
                let seed = self.random.random_range(0..1 << 40);
                self.reopen(seed);
                if self.random.random_range(0..2) == 0 {
                    check(self.db(), &self.rows, "after opening");
                }
            }
            _ => {}
        }
    }
}

#[test]
fn whatever_happens_before_a_crash_the_indexes_are_those_of_the_rows() {
    let seeds = std::env::var("LSTORE_IMAGE_SEEDS").map_or(12, |seeds| seeds.parse().unwrap());
    for seed in 0..seeds {
        let device = FaultyDevice::new(seed);
        let (db, random) = (open(&device), StdRng::seed_from_u64(seed));
        create(&db, if seed % 2 == 0 { Retention::Forever } else { Retention::None });
        let mut world = World { random, device, db: Some(db), rows: Rows::new(), open: None };
        for step in 0..40 {
            world.step(seed % 4 > 1);
            if step % 10 == 9 {
                check(world.db(), &world.rows, &format!("seed {seed}, step {step}"));
            }
        }
        world.reopen(seed);
        check(world.db(), &world.rows, &format!("seed {seed}"));
    }
}

/// A database with so many rows, all indexes imaged.
fn imaged(device: &FaultyDevice, ids: std::ops::Range<i64>) -> Rows {
    let db = open(device);
    create(&db, Retention::Forever);
    let (table, mut rows) = (db.table("t").unwrap(), Rows::new());
    insert(&db, &table, ids, &mut rows);
    db.merge_now();
    assert_eq!(db.checkpoint().unwrap().written_indexes, 7);
    rows
}

fn insert(db: &Database, table: &Table, ids: std::ops::Range<i64>, rows: &mut Rows) {
    let mut transaction = db.begin().unwrap();
    for id in ids {
        let (values, kept) = row(id, Some(id % 7), (id % 5 > 0).then_some(id));
        transaction.insert(table, &values).unwrap();
        rows.insert(id, kept);
    }
    transaction.commit().unwrap();
}

#[test]
fn an_image_is_written_again_once_many_ranges_have_had_new_entries() {
    let device = FaultyDevice::new(0);
    let mut rows = imaged(&device, 0..600);
    let db = open(&device);
    let table = db.table("t").unwrap();
    assert_eq!(db.checkpoint().unwrap().written_indexes, 0, "none was used");
    check(&db, &rows, "from images");
    assert_eq!(db.checkpoint().unwrap().written_indexes, 0, "none has changed");
    // Every row is written to, and no key.
    let mut transaction = db.begin().unwrap();
    for id in 0..600i64 {
        transaction.update(&table, &[Value::from(id)], &[("v", Value::from(8i64))]).unwrap();
    }
    transaction.commit().unwrap();
    let report = db.checkpoint().unwrap();
    assert_eq!((report.written_indexes, report.unchanged_ranges), (0, 0));
    insert(&db, &table, 600..620, &mut rows);
    assert_eq!(db.checkpoint().unwrap().written_indexes, 0, "one range in nineteen");
    insert(&db, &table, 620..700, &mut rows);
    assert_eq!(db.checkpoint().unwrap().written_indexes, 7, "one in five");
    // One index gets other keys everywhere.
    let mut transaction = db.begin().unwrap();
    for id in 0..700i64 {
        let u = Some(10_000 - id);
        transaction.update(&table, &[Value::from(id)], &[("u", Value::from(u))]).unwrap();
        rows.get_mut(&id).unwrap().1 = u;
    }
    transaction.commit().unwrap();
    assert_eq!(db.checkpoint().unwrap().written_indexes, 3, "by_u, by_b and by_g");
    drop((db, table));
    verify(&device, "in the end");
    check(&open(&device), &rows, "in the end");
}

/// A bit flips at one place after the other of the file of blobs.
#[test]
fn a_damaged_image_is_filled_from_the_table() {
    let device = FaultyDevice::new(0);
    let mut rows = imaged(&device, 0..120);
    let names = device.list().unwrap();
    let name = names.iter().rfind(|name| name.ends_with(".blobs")).unwrap();
    let size = device.contents(name).len() as u64;
    let (mut answered, mut repaired) = (0, 0);
    for at in (600..size).step_by(151) {
        let damaged = device.after_process_crash(at);
        damaged.flip_bit(name, at, 2);
        let db = open(&damaged);
        let Ok(table) = db.table("t") else { continue };
        let (mut transaction, new) = (db.begin().unwrap(), 1000 + at as i64);
        // A damaged page is an error of the statements that need it.
        let Ok(_) = transaction.insert(&table, &row(new, Some(1), None).0) else { continue };
        if transaction.commit().is_err() || !(0..120).all(|id| is_there(&db, &table, id)) {
            continue;
        }
        answered += 1;
        rows.insert(new, row(new, Some(1), None).1);
        check(&db, &rows, &format!("byte {at}"));
        rows.remove(&new);
        // What was damaged is written again, if it was an image of an index.
        repaired += usize::from(db.checkpoint().unwrap().written_indexes > 0);
    }
    assert!(answered > 10 && repaired > 3, "{answered} answered, {repaired} repaired");
}

fn is_there(db: &Database, table: &Table, id: i64) -> bool {
    matches!(db.begin().unwrap().get(table, &[Value::from(id)]), Ok(Some(_)))
}

/// A key of a transaction that did not survive is in an image, and its record's place is taken by another one afterwards.
#[test]
fn a_place_that_a_lost_record_had_is_taken_by_another_one() {
    let device = FaultyDevice::new(0);
    let mut rows = imaged(&device, 0..300);
    let db = open(&device);
    let table = db.table("t").unwrap();
    let mut lost = db.begin().unwrap();
    for id in 900..1000 {
        lost.insert(&table, &row(id, Some(5), Some(id)).0).unwrap();
    }
    assert_eq!(db.checkpoint().unwrap().written_indexes, 7, "with keys that are not committed");
    for round in 0..3 {
        let crashed = device.after_process_crash(round);
        let db = open(&crashed);
        check(&db, &rows, "after the crash");
        insert(&db, &db.table("t").unwrap(), 300..400, &mut rows);
        check(&db, &rows, "with other records");
        if round > 0 {
            db.checkpoint().unwrap();
        }
        let again = crashed.after_process_crash(round);
        drop(db);
        verify(&again, "after another crash");
        let db = open(&again);
        assert!((900..1000).all(|id| !is_there(&db, &db.table("t").unwrap(), id)));
        check(&db, &rows, "after another crash");
        (300..400).for_each(|id| drop(rows.remove(&id)));
    }
}

/// Power is lost at every step of a checkpoint that writes images, and of one that keeps them.
#[test]
fn power_loss_at_any_step_of_writing_images_leaves_every_row_in_every_index() {
    let prepared = FaultyDevice::new(0);
    let rows = imaged(&prepared, 0..100);
    let run = |device: &FaultyDevice| -> Result<Rows, Error> {
        let mut rows = rows.clone();
        let db = Database::open_on(Arc::new(device.clone()), options())?;
        let table = db.table("t")?;
        for ids in [100..104, 104..140] {
            let mut transaction = db.begin()?;
            for id in ids {
                let (values, kept) = row(id, Some(id % 7), Some(id));
                transaction.insert(&table, &values)?;
                rows.insert(id, kept);
            }
            if transaction.commit().is_err() {
                return Ok(Rows::new());
            }
            drop(db.checkpoint());
        }
        Ok(rows)
    };
    let rehearsal = prepared.after_process_crash(0);
    run(&rehearsal).unwrap();
    for step in 1..=rehearsal.steps() {
        let device = prepared.after_process_crash(0);
        device.cut_power_at(step);
        let rows = run(&device).unwrap_or_default();
        let device = device.after_power_loss(step);
        let what = format!("power is lost at step {step}");
        verify(&device, &what);
        let db = open(&device);
        if rows.is_empty() {
            // Whether the last commit is there is not known; the indexes are of one mind.
            let table = db.table("t").unwrap();
            let ordered = table.primary_index().into_iter().chain(table.indexes()).filter(|index| index.is_ordered());
            let counts = ordered.map(|index| {
                let transaction = db.begin().unwrap();
                transaction.index_scan(&table, &index, &IndexRange::all(), Direction::Upward).unwrap().count()
            });
            let counts: Vec<usize> = counts.collect();
            assert!(counts.iter().all(|count| *count == counts[0] && *count >= 100), "{what}: {counts:?}");
        } else {
            check(&db, &rows, &what);
        }
    }
}

/// Checkpoints are taken while some threads commit rows and others insert rows that never commit; then the process crashes, and
/// other rows are inserted.
#[test]
fn writers_that_come_and_go_while_images_are_written_are_in_every_index_or_in_none() {
    for seed in 0..4u64 {
        let device = FaultyDevice::new(seed);
        let mut rows = imaged(&device, 0..100);
        let (db, stop) = (open(&device), AtomicBool::new(false));
        // All indexes are filled.
        insert(&db, &db.table("t").unwrap(), 100..101, &mut rows);
        let crashed = std::thread::scope(|scope| {
            for thread in 1..5i64 {
                let (db, stop) = (&db, &stop);
                scope.spawn(move || {
                    let table = db.table("t").unwrap();
                    for round in (0..).take_while(|_| !stop.load(Ordering::Relaxed)) {
                        let mut transaction = db.begin().unwrap();
                        let mut insert = |at: i64| {
                            let id = thread * 1_000_000 + round * 5 + at;
                            transaction.insert(&table, &row(id, Some(id % 7), Some(id)).0).map(drop)
                        };
                        let inserted = (0..5).try_for_each(&mut insert);
                        // The device is off after the crash.
                        if inserted.is_err() || thread % 2 == 0 && transaction.commit().is_err() {
                            break;
                        }
                    }
                });
            }
            for _ in 0..10 {
                std::thread::sleep(std::time::Duration::from_millis(5));
                db.checkpoint().unwrap();
            }
            let crashed = device.after_process_crash(seed);
            stop.store(true, Ordering::Relaxed);
            crashed
        });
        drop(db);
        for round in 0..2 {
            verify(&crashed, &format!("seed {seed}, round {round}"));
            let db = open(&crashed);
            let (table, mut transaction) = (db.table("t").unwrap(), db.begin().unwrap());
            let rows = table.aggregate(db.snapshot(), &[], &[]).unwrap().rows;
            for index in table.primary_index().into_iter().chain(table.indexes()).filter(|index| index.is_ordered()) {
                let found = transaction.index_scan(&table, &index, &IndexRange::all(), Direction::Upward).unwrap();
                let ids: HashSet<i64> = found.map(|row| id_of(&row.unwrap().1)).collect();
                assert_eq!(ids.len() as u64, rows, "{}", index.definition().name);
                assert!(ids.iter().all(
                    |id| id / 1_000_000 % 2 == 0 && transaction.get(&table, &[Value::from(*id)]).unwrap().is_some()
                ));
            }
            for id in 0..20_000 {
                let (one, three) = ([Value::from(1_000_000 + id)], [Value::from(3_000_000 + id)]);
                assert!([one, three].iter().all(|key| transaction.get(&table, key).unwrap().is_none()), "{id}");
            }
            for id in 0..60 {
                let id = 8_000_000 + round * 100 + id;
                transaction.insert(&table, &row(id, Some(1), Some(id)).0).unwrap();
            }
            transaction.commit().unwrap();
        }
    }
}
