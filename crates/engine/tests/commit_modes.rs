//! Transactions of all commit modes, isolation levels and log partitions that depend on each other, and power loss at any step.
//!
//! Every transaction has a number and notes it in a table of its own, so that what survived a crash is known. Each
//! also knows the transactions that it has seen: by rows that it read, wrote over, or missed as they were deleted,
//! and by tables that others made. After a crash
//! - every acknowledged transaction is there;
//! - with a transaction everything is there that it has seen, and so on;
//! - the tables hold what those that are there have written, in their order, and nothing else.
//!
//! Transactions interleave as a seed says, in one thread; other threads only commit them, so that they go to several partitions.
//! `LSTORE_COMMIT_SEEDS=5000 cargo test --release -p lstore-engine --test commit_modes -- --nocapture` runs more of them.
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use durability::LogOptions;
use engine::{
    Column, DataType, Database, Durability, Error, Isolation, LockStrength, LockWait, OpenOptions, Schema, Timestamp,
    Transaction, TransactionOptions, Value,
};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use testkit::FaultyDevice;

const KEYS: i64 = 12;
const PARTITIONS: usize = 3;

/// The number of a transaction.
type Number = i64;

/// The work of a transaction.
#[derive(Clone, Default, Debug)]
struct Deed {
    number: Number,
    /// By table and key; `None` for a delete.
    writes: BTreeMap<(String, i64), Option<i64>>,
    made: Option<String>,
    seen: BTreeSet<Number>,
}

/// Everything that has committed, by commit number, and the transactions that were acknowledged.
#[derive(Clone, Default)]
struct World {
    committed: BTreeMap<u64, Deed>,
    acknowledged: BTreeSet<Number>,
    started: Number,
}

impl World {
    /// The last writer of a row, as of a commit.
    fn writer(&self, table: &str, key: i64, at: Timestamp) -> Option<Number> {
        let row = (table.to_string(), key);
        let upto = self.committed.range(..=at.0).rev();
        upto.map(|(_, deed)| deed).find(|deed| deed.writes.contains_key(&row)).map(|deed| deed.number)
    }

    fn has_row(&self, table: &str, key: i64) -> bool {
        let row = (table.to_string(), key);
        self.committed.values().rev().find_map(|deed| deed.writes.get(&row)).is_some_and(Option::is_some)
    }

    fn maker(&self, table: &str) -> Option<Number> {
        self.committed.values().find(|deed| deed.made.as_deref() == Some(table)).map(|deed| deed.number)
    }

    fn acknowledge_up_to(&mut self, at: Timestamp) {
        let numbers: Vec<Number> = self.committed.range(..=at.0).map(|(_, deed)| deed.number).collect();
        self.acknowledged.extend(numbers);
    }
}

/// Threads that commit.
struct Committers {
    threads: Vec<Sender<Transaction>>,
    outcome: Receiver<Result<Timestamp, Error>>,
}

impl Committers {
    fn start() -> Committers {
        let (done, outcome) = channel();
        let thread = |_| {
            let (sender, transactions) = channel::<Transaction>();
            let done = done.clone();
            std::thread::spawn(move || {
                transactions.into_iter().try_for_each(|transaction| done.send(transaction.commit()))
            });
            sender
        };
        Committers { threads: (0..PARTITIONS).map(thread).collect(), outcome }
    }

    fn commit(&self, transaction: Transaction, thread: usize) -> Result<Timestamp, Error> {
        self.threads[thread].send(transaction).unwrap();
        self.outcome.recv().unwrap()
    }
}

/// A transaction that runs.
struct Open {
    transaction: Transaction,
    options: TransactionOptions,
    at: Timestamp,
    deed: Deed,
}

fn schema() -> Schema {
    Schema::new(["id", "n"].map(|name| Column::new(name, DataType::BigInt)).to_vec(), &["id"]).unwrap()
}

fn open(device: &FaultyDevice) -> Result<Database, Error> {
    open_with(device, PARTITIONS)
}

fn open_with(device: &FaultyDevice, partitions: usize) -> Result<Database, Error> {
    let log = LogOptions {
        partitions,
        segment_bytes: 32 << 10,
        growth_bytes: 4 << 10,
        flush_interval: None,
        ..LogOptions::default()
    };
    let options = OpenOptions { merge_threads: Some(0), range_records: Some(16), log, ..OpenOptions::default() };
    Database::open_on(Arc::new(device.clone()), options)
}

impl Open {
    fn begin(db: &Database, world: &mut World, random: &mut StdRng) -> Result<Open, Error> {
        let durability = match random.random_range(0..10) {
            0 => Durability::Sync,
            1..6 => Durability::Async,
            _ => Durability::Partition,
        };
        let isolation = [Isolation::ReadCommitted, Isolation::Snapshot, Isolation::Serializable];
        let options = TransactionOptions {
            durability,
            lock_timeout: Some(Duration::ZERO),
            ..TransactionOptions::at(isolation[random.random_range(0..3)])
        };
        world.started += 1;
        let deed = Deed { number: world.started, ..Deed::default() };
        // One in four decides later how it will be acknowledged.
        let first = if random.random_bool(0.25) { Durability::Sync } else { options.durability };
        let at = db.newest_commit();
        let mut transaction = db.begin_with(TransactionOptions { durability: first, ..options })?;
        let row = [Value::from(deed.number), Value::from(0i64)];
        transaction.insert(&db.table("numbers")?, &row)?;
        Ok(Open { transaction, options, at, deed })
    }

    /// Up to which commit it sees rows.
    fn sight(&self, db: &Database) -> Timestamp {
        if self.options.isolation == Isolation::ReadCommitted { db.newest_commit() } else { self.at }
    }

    /// Notes the writer of a row's version as seen, unless it was this transaction.
    fn saw(&mut self, world: &World, table: &str, key: i64, at: Timestamp) {
        if !self.deed.writes.contains_key(&(table.to_string(), key)) {
            self.deed.seen.extend(world.writer(table, key, at));
        }
    }

    /// One statement. An error leaves the transaction to be rolled back.
    fn step(&mut self, db: &Database, world: &World, random: &mut StdRng) -> Result<(), Error> {
        // Most see little: a transaction that has seen everything survives nothing.
        if random.random_bool(0.04) {
            return self.look_around(db, world);
        }
        let names = self.transaction.table_names();
        let name = names[random.random_range(1..names.len())].clone();
        let (table, key) = (self.transaction.table(&name)?, random.random_range(0..KEYS));
        let (id, number) = ([Value::from(key)], self.deed.number);
        let sight = self.sight(db);
        match random.random_range(0..24) {
            0..6 => drop(self.transaction.get(&table, &id)?),
            6 => drop(self.transaction.get_for_update(&table, &id)?),
            7..9 => {
                let is_there = self.transaction.delete(&table, &id)?;
                self.saw(world, &name, key, sight);
                if is_there {
                    self.deed.writes.insert((name.clone(), key), None);
                }
            }
            9..16 if !world.has_row(&name, key) => {
                self.transaction.insert(&table, &[Value::from(key), Value::from(number)])?;
                self.saw(world, &name, key, sight);
                self.deed.writes.insert((name.clone(), key), Some(number));
            }
            _ => {
                let is_there = self.transaction.update_columns(&table, &id, &[(1, Value::from(number))])?;
                self.saw(world, &name, key, sight);
                if !is_there {
                    self.transaction.insert(&table, &[Value::from(key), Value::from(number)])?;
                }
                self.deed.writes.insert((name.clone(), key), Some(number));
            }
        }
        self.saw(world, &name, key, sight);
        if self.deed.made.as_ref() != Some(&name) {
            self.deed.seen.extend(world.maker(&name));
        }
        Ok(())
    }

    /// Scans a table.
    fn look_around(&mut self, db: &Database, world: &World) -> Result<(), Error> {
        let (table, sight) = (self.transaction.table("t")?, self.sight(db));
        let rows: usize =
            self.transaction.scan(&table, &["id", "n"])?.batches().map(|batch| batch.unwrap().num_rows()).sum();
        assert!(rows <= KEYS as usize);
        (0..KEYS).for_each(|key| self.saw(world, "t", key, sight));
        Ok(())
    }

    fn make_table(&mut self) -> Result<(), Error> {
        let name = format!("t{}", self.deed.number);
        self.transaction.create_table(&name, schema())?;
        self.deed.made = Some(name);
        Ok(())
    }

    /// Commits in some thread, and notes what came of it. An error of the device is the end of the run.
    fn commit(
        mut self,
        db: &Database,
        committers: &Committers,
        world: &mut World,
        random: &mut StdRng,
    ) -> Result<(), Error> {
        self.transaction.set_durability(self.options.durability);
        let before = db.newest_commit();
        match committers.commit(self.transaction, random.random_range(0..PARTITIONS)) {
            Ok(at) => {
                let number = self.deed.number;
                world.committed.insert(at.0, self.deed);
                match self.options.durability {
                    Durability::Sync => world.acknowledge_up_to(at),
                    Durability::Partition => drop(world.acknowledged.insert(number)),
                    Durability::Async => {}
                }
                if random.random_bool(0.05) && db.wait_durable_for(at, Duration::from_secs(60))? {
                    world.acknowledge_up_to(at);
                }
                world.acknowledge_up_to(db.newest_durable_commit());
                Ok(())
            }
            Err(error @ Error::Log(_)) => {
                // It may have got as far as the log.
                let at = db.newest_commit();
                if at > before {
                    world.committed.insert(at.0, self.deed);
                }
                Err(error)
            }
            Err(_) => Ok(()),
        }
    }
}

/// Transactions until so many have ended, or the power is off.
fn run(db: &Database, world: &mut World, random: &mut StdRng, count: usize) -> Result<(), Error> {
    let committers = Committers::start();
    let mut running: Vec<Open> = Vec::new();
    let mut ended = 0;
    while ended < count {
        if running.is_empty() || running.len() < 3 && random.random_bool(0.3) {
            match Open::begin(db, world, random) {
                Ok(open) => running.push(open),
                Err(error) => return Err(error),
            }
            continue;
        }
        let at = random.random_range(0..running.len());
        let chance = random.random_range(0..100);
        let stepped = match chance {
            0..3 if running[at].deed.made.is_none() => running[at].make_table(),
            0..50 => running[at].step(db, world, random),
            _ => {
                ended += 1;
                let open = running.swap_remove(at);
                open.commit(db, &committers, world, random)?;
                match chance {
                    97 => drop(db.merge_now()),
                    98 => drop(db.checkpoint()?),
                    _ => {}
                }
                continue;
            }
        };
        match stepped {
            Ok(()) => {}
            Err(error @ Error::Log(_)) => return Err(error),
            Err(_) => drop(running.swap_remove(at)),
        }
    }
    Ok(())
}

/// A new database with its first tables.
fn prepared(device: &FaultyDevice) -> Result<Database, Error> {
    let db = open(device)?;
    ["numbers", "t"].iter().try_for_each(|name| db.create_table(name, schema()).map(drop))?;
    Ok(db)
}

fn rows(db: &Database, table: &str) -> BTreeMap<i64, i64> {
    let (table, view) = (db.table(table).unwrap(), db.begin().unwrap());
    let scan = view.scan(&table, &["id", "n"]).unwrap();
    let mut found = BTreeMap::new();
    let mut count = 0;
    for batch in scan.batches().map(Result::unwrap) {
        let column = |at: usize| batch.column(at).as_any().downcast_ref::<arrow_array::Int64Array>().unwrap().clone();
        let (ids, values) = (column(0), column(1));
        count += ids.len();
        found.extend(ids.values().iter().copied().zip(values.values().iter().copied()));
    }
    assert_eq!(found.len(), count, "no key is there twice");
    for (id, n) in &found {
        let row = view.get(&table, &[Value::from(*id)]).unwrap().unwrap();
        assert_eq!(row, [Value::from(*id), Value::from(*n)], "the index and a scan agree");
    }
    found
}

/// Checks what a crash has left, and makes it the world. Returns how many transactions were lost from before the last one that
/// survived.
fn check(db: &Database, world: &mut World, name: &str) -> usize {
    let there: BTreeSet<Number> = rows(db, "numbers").into_keys().collect();
    let lost: Vec<_> = world.acknowledged.difference(&there).collect();
    assert!(lost.is_empty(), "{name}: {lost:?} were acknowledged and are lost");
    let before = world.committed.len();
    let last = world.committed.iter().rev().find(|(_, deed)| there.contains(&deed.number)).map_or(0, |(at, _)| *at);
    let lost_before_last = world.committed.range(..last).filter(|(_, deed)| !there.contains(&deed.number)).count();
    world.committed.retain(|_, deed| there.contains(&deed.number));
    assert!(there.len() == world.committed.len() && before >= there.len(), "{name}: nobody knows what is there");
    let mut tables = BTreeMap::from([("t".to_string(), BTreeMap::new())]);
    for deed in world.committed.values() {
        let unknown: Vec<_> = deed.seen.difference(&there).collect();
        assert!(unknown.is_empty(), "{name}: {} is there without {unknown:?}, which it has seen", deed.number);
        if let Some(made) = &deed.made {
            tables.insert(made.clone(), BTreeMap::new());
        }
        for ((table, key), n) in &deed.writes {
            let rows = tables.get_mut(table).unwrap();
            match n {
                Some(n) => rows.insert(*key, *n),
                None => rows.remove(key),
            };
        }
    }
    for (table, expected) in &tables {
        assert_eq!(rows(db, table), *expected, "{name}: table {table}");
    }
    assert_eq!(db.table_names().len(), tables.len() + 1, "{name}");
    lost_before_last
}

/// The world of a database that may not have its first tables yet.
fn reopened(image: &FaultyDevice, world: &mut World, name: &str) -> Option<(Database, usize)> {
    let db = open(image).unwrap_or_else(|error| panic!("{name}: {error}"));
    if db.table("t").is_err() {
        assert!(world.acknowledged.is_empty());
        return None;
    }
    let lost = check(&db, world, name);
    Some((db, lost))
}

/// One database through several crashes; how many survived others that came before them.
fn lives(seed: u64) -> usize {
    let mut random = StdRng::seed_from_u64(seed);
    let (mut device, mut world, mut lost) = (FaultyDevice::new(seed), World::default(), 0);
    let mut db = prepared(&device).unwrap();
    for life in 0..3 {
        device.cut_power_at(device.steps() + random.random_range(1..60));
        let done = run(&db, &mut world, &mut random, 40);
        assert!(done.is_ok() || device.is_off(), "{done:?}");
        let image = device.after_power_loss(random.random());
        drop(db);
        // The first recovery is interrupted as well.
        let name = format!("seed {seed}, life {life}");
        image.cut_power_at(image.steps() + random.random_range(1..9));
        drop(open(&image));
        device = image.after_power_loss(random.random());
        let (opened, lost_now) = reopened(&device, &mut world, &name).unwrap();
        (db, lost) = (opened, lost + lost_now);
    }
    lost
}

#[test]
fn whatever_survives_has_all_that_it_has_seen_and_what_was_acknowledged_survives() {
    let seeds = std::env::var("LSTORE_COMMIT_SEEDS").map_or(120, |seeds| seeds.parse().unwrap());
    let lost: usize = (0..seeds).map(lives).sum();
    println!("{seeds} seeds, 3 crashes each; {lost} transactions were lost from before others that survived");
    assert!(lost > 0, "no gap was survived");
}

#[test]
fn power_loss_at_every_step_of_transactions_of_all_modes() {
    let run_with = |device: &FaultyDevice| {
        let mut world = World::default();
        let done = prepared(device).and_then(|db| run(&db, &mut world, &mut StdRng::seed_from_u64(7), 25));
        (world, done)
    };
    let rehearsal = FaultyDevice::new(0);
    run_with(&rehearsal).1.unwrap();
    let steps = rehearsal.steps();
    for step in 1..=steps {
        let device = FaultyDevice::new(0);
        device.cut_power_at(step);
        let (world, _) = run_with(&device);
        for seed in 0..2 {
            let name = format!("step {step}, seed {seed}");
            reopened(&device.after_power_loss(step << 8 | seed), &mut world.clone(), &name);
        }
    }
    println!("{steps} steps");
}

/// The work of a transaction on the table "t", or on another one.
type Work = fn(&Database, &mut Transaction) -> Result<(), Error>;

fn set(db: &Database, transaction: &mut Transaction, key: i64, n: i64) -> Result<(), Error> {
    transaction.update_columns(&db.table("t")?, &[Value::from(key)], &[(1, Value::from(n))]).map(drop)
}

fn insert(db: &Database, transaction: &mut Transaction, key: i64) -> Result<(), Error> {
    transaction.insert(&db.table("t")?, &[Value::from(key), Value::from(0i64)]).map(drop)
}

fn delete(db: &Database, transaction: &mut Transaction, key: i64) -> Result<(), Error> {
    transaction.delete(&db.table("t")?, &[Value::from(key)]).map(drop)
}

/// Pairs of transactions: a first one that is not waited for, a second one that has seen it.
const DEPENDENT: [(&str, Work, Work); 9] = [
    ("reads its row", |db, t| set(db, t, 1, 7), |db, t| t.get(&db.table("t")?, &[Value::from(1i64)]).map(drop)),
    ("writes over its row", |db, t| set(db, t, 1, 7), |db, t| set(db, t, 1, 8)),
    ("deletes its row", |db, t| insert(db, t, 5), |db, t| delete(db, t, 5)),
    ("misses the row that it deleted", |db, t| delete(db, t, 1), |db, t| delete(db, t, 1)),
    (
        "reads no row where it deleted one",
        |db, t| delete(db, t, 1),
        |db, t| t.get(&db.table("t")?, &[Value::from(1i64)]).map(drop),
    ),
    ("takes a key that it gave up", |db, t| delete(db, t, 1), |db, t| insert(db, t, 1)),
    ("scans its table", |db, t| insert(db, t, 5), |db, t| t.scan(&db.table("t")?, &["id"]).map(drop)),
    (
        "locks its row",
        |db, t| set(db, t, 1, 7),
        |db, t| {
            let (table, view) = (db.table("t")?, t.view()?);
            let rid = t.insert(&table, &[Value::from(6i64), Value::from(0i64)])?;
            t.lock_row(&table, rid.word(), LockStrength::Share, LockWait::NoWait, &view).map(drop)
        },
    ),
    (
        "writes to a table that it made",
        |_, t| t.create_table("u", schema()).map(drop),
        |db, t| t.insert(&db.table("u")?, &[Value::from(1i64), Value::from(0i64)]).map(drop),
    ),
];

/// Pairs of transactions: a first one that is not waited for, a second one that has seen nothing of it.
const INDEPENDENT: [(&str, Work, Work); 4] = [
    ("inserts", |db, t| insert(db, t, 5), |db, t| insert(db, t, 6)),
    (
        "reads and writes another row",
        |db, t| set(db, t, 1, 7),
        |db, t| {
            t.get(&db.table("t")?, &[Value::from(2i64)])?;
            set(db, t, 2, 7)
        },
    ),
    ("deletes another row", |db, t| delete(db, t, 1), |db, t| delete(db, t, 2)),
    ("does nothing", |db, t| set(db, t, 1, 7), |_, _| Ok(())),
];

/// Commits `first` without waiting, then `second` by partition, three times on rows of its own before; whether the first was on
/// disk when the second was acknowledged.
fn is_waited_for(isolation: Isolation, first: Work, second: Work, is_late: bool) -> bool {
    let db = open_with(&FaultyDevice::new(0), 64).unwrap();
    let committers = Committers::start();
    ["t", "own"].iter().for_each(|name| drop(db.create_table(name, schema()).unwrap()));
    db.run(TransactionOptions::default(), |t| (0..4).try_for_each(|key| insert(&db, t, key))).unwrap();
    let run = |durability, thread, work: &dyn Fn(&mut Transaction) -> Result<(), Error>| {
        let first = if is_late { Durability::Sync } else { durability };
        let mut transaction =
            db.begin_with(TransactionOptions { durability: first, ..TransactionOptions::at(isolation) }).unwrap();
        let done = work(&mut transaction);
        transaction.set_durability(durability);
        done.unwrap();
        committers.commit(transaction, thread).unwrap()
    };
    let own = db.table("own").unwrap();
    let at = run(Durability::Async, 0, &|t| first(&db, t));
    for n in 0..3i64 {
        let set = |t: &mut Transaction| match t.update_columns(&own, &[Value::from(1i64)], &[(1, Value::from(n))])? {
            true => Ok(()),
            false => t.insert(&own, &[Value::from(1i64), Value::from(n)]).map(drop),
        };
        if n > 0 || is_late {
            run(Durability::Partition, 1, &set);
        } else {
            // No row is there, which might be the work of any transaction.
            run(Durability::Partition, 1, &|t| t.insert(&own, &[Value::from(1i64), Value::from(n)]).map(drop));
        }
    }
    // A transaction that writes waits for any change of the catalog.
    assert!(is_late || db.table("u").is_ok() || !db.is_durable(at), "its own rows are nobody else's");
    run(Durability::Partition, 1, &|t| {
        second(&db, t)?;
        t.update_columns(&own, &[Value::from(1i64)], &[(1, Value::from(9i64))]).map(drop)
    });
    db.is_durable(at)
}

#[test]
fn a_partition_commit_waits_for_those_that_it_has_seen_and_for_no_other() {
    for isolation in [Isolation::ReadCommitted, Isolation::Snapshot, Isolation::Serializable] {
        for (name, first, second) in DEPENDENT {
            assert!(is_waited_for(isolation, first, second, false), "{isolation}: {name}");
        }
        for (name, first, second) in INDEPENDENT {
            assert!(!is_waited_for(isolation, first, second, false), "{isolation}: {name}");
            assert!(is_waited_for(isolation, first, second, true), "{isolation}: {name}, and decides late");
        }
    }
}

#[test]
fn whether_a_commit_is_durable_can_be_waited_for_as_long_as_wanted() {
    let db = prepared(&FaultyDevice::new(0)).unwrap();
    let options = TransactionOptions { durability: Durability::Async, ..TransactionOptions::default() };
    let mut transaction = db.begin_with(options).unwrap();
    insert(&db, &mut transaction, 1).unwrap();
    let at = transaction.commit().unwrap();
    assert_eq!((db.newest_commit(), db.newest_durable_commit().0 < at.0), (at, true));
    assert!(!db.wait_durable_for(at, Duration::ZERO).unwrap());
    assert!(matches!(db.wait_durable(Timestamp(at.0 + 1)), Err(Error::Log(_))), "there is no such commit");
    assert!(db.wait_durable_for(at, Duration::from_secs(60)).unwrap());
    assert_eq!(db.newest_durable_commit(), at);
    let memory = Database::in_memory();
    assert!(memory.wait_durable_for(memory.newest_commit(), Duration::ZERO).unwrap());
}
