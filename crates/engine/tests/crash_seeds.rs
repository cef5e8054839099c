//! Random runs with random faults: transactions of rows and of the catalog, acknowledged at once or waited for, in several
//! partitions of the log, with checkpoints, merges, backups, an archive and restarts; and while they run, or at their end, the
//! power is cut, the process ends, steps of the disk fail, the disk is full, a bit is flipped.
//!
//! After each crash the database holds what it held after some commit, and no earlier one than the last that was
//! acknowledged. Its backups and its archive are right too.
//!
//! `LSTORE_CRASH_SEEDS=5000 cargo test --release -p lstore-engine --test crash_seeds -- --nocapture` runs more seeds,
//! `LSTORE_CRASH_SEED=17` runs that one again.
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use durability::{Device, LogError, LogOptions};
use engine::{
    Column, DataType, Database, Durability, Error, OpenOptions, RecoveryTarget, Retention, Schema, Timestamp,
    Transaction, TransactionOptions, Value,
};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use testkit::{Failure, FaultyDevice};

/// How many seeds run by default: seconds in a debug build.
const SEEDS: u64 = 300;
const KEYS: i64 = 24;

/// The rows of each table.
type Contents = BTreeMap<String, BTreeMap<i64, i64>>;

/// The fault of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    PowerLoss,
    ProcessCrash,
    /// Steps fail, and then the power is lost.
    FailedSteps,
    /// There is no space for a while, and then the power is lost.
    FullDisk,
    /// The database is closed in order, and then a bit flips.
    FlippedBit,
}

const FAULTS: [Fault; 5] =
    [Fault::PowerLoss, Fault::ProcessCrash, Fault::FailedSteps, Fault::FullDisk, Fault::FlippedBit];

/// Says which run failed.
struct Seed(u64, Fault);

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Seed(seed, fault) = self;
            eprintln!("seed {seed} ({fault:?}) failed; LSTORE_CRASH_SEED={seed} runs it again");
        }
    }
}

/// Threads that commit: each has a partition of the log for what is not waited for.
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
            std::thread::spawn(move || transactions.into_iter().try_for_each(|work| done.send(work.commit())));
            sender
        };
        Committers { threads: (0..3).map(thread).collect(), outcome }
    }

    fn commit(&self, transaction: Transaction, thread: usize) -> Result<Timestamp, Error> {
        self.threads[thread].send(transaction).unwrap();
        self.outcome.recv().unwrap()
    }
}

fn device(device: &FaultyDevice) -> Arc<dyn Device> {
    Arc::new(device.clone())
}

fn schema() -> Schema {
    Schema::new(["id", "n"].map(|name| Column::new(name, DataType::BigInt)).to_vec(), &["id"]).unwrap()
}

fn contents(db: &Database) -> Contents {
    let rows = |name: String| {
        let (table, view) = (db.table(&name).unwrap(), db.begin().unwrap());
        let row = |id: i64| match view.get(&table, &[Value::from(id)]).unwrap().as_deref() {
            Some([Value::BigInt(id), Value::BigInt(n)]) => Some((*id, *n)),
            _ => None,
        };
        let rows: BTreeMap<i64, i64> = (0..KEYS).filter_map(row).collect();
        let counted = table.aggregate(&db.read_view().unwrap(), &[], &[]).unwrap().rows;
        assert_eq!(counted, rows.len() as u64, "the index and a scan agree");
        (name, rows)
    };
    db.table_names().into_iter().map(rows).collect()
}

/// A run.
struct Run {
    random: StdRng,
    seed: u64,
    fault: Fault,
    log: FaultyDevice,
    archive: Option<FaultyDevice>,
    options: LogOptions,
    /// The contents after each commit.
    states: BTreeMap<u64, Contents>,
    /// Up to which commit everything was acknowledged.
    acknowledged: u64,
    backups: Vec<(FaultyDevice, u64)>,
    committers: Committers,
    commits: u64,
}

impl Run {
    fn new(seed: u64) -> Run {
        let mut random = StdRng::seed_from_u64(seed);
        let fault = FAULTS[random.random_range(0..FAULTS.len())];
        let options = LogOptions {
            partitions: random.random_range(1..4),
            segment_bytes: random.random_range(2..9) << 10,
            growth_bytes: 1024,
            flush_interval: None,
            ..LogOptions::default()
        };
        Run {
            fault,
            log: FaultyDevice::new(seed),
            archive: random.random_bool(0.5).then(|| FaultyDevice::new(seed + 1)),
            options,
            random,
            seed,
            states: BTreeMap::from([(0, Contents::new())]),
            acknowledged: 0,
            backups: Vec::new(),
            committers: Committers::start(),
            commits: 0,
        }
    }

    fn open(&self) -> Result<Database, Error> {
        self.open_reading(false)
    }

    fn open_reading(&self, reads_pages_at_once: bool) -> Result<Database, Error> {
        let options = OpenOptions {
            merge_threads: Some(0),
            range_records: Some(16),
            archive_device: self.archive.as_ref().map(device),
            archive_interval: Some(Duration::from_secs(3600)),
            log: self.options,
            reads_pages_at_once,
            ..OpenOptions::default()
        };
        Database::open_on(device(&self.log), options)
    }

    /// The database after a crash. Only the archive may still fail, some times.
    fn reopen(&self) -> Database {
        let mut errors = Vec::new();
        // It fails three times at most.
        for _ in 0..4 {
            match self.open() {
                Ok(db) => return db,
                Err(error @ Error::Log(LogError::NotArchived { .. } | LogError::Io { .. })) => errors.push(error),
                Err(error) => panic!("{error}"),
            }
        }
        panic!("{errors:?}")
    }

    fn newest(&self) -> &Contents {
        self.states.last_key_value().expect("there is always a state").1
    }

    /// Prepares the faults that come while the run goes on.
    fn plant(&mut self) {
        let mut step = || self.random.random_range(1..250);
        match self.fault {
            Fault::PowerLoss => self.log.cut_power_at(step()),
            Fault::FailedSteps => {
                for failure in [Failure::Io, Failure::DiskFull] {
                    self.log.fail_at(step(), failure);
                }
            }
            _ => {}
        }
        if let Some(archive) = &self.archive
            && self.random.random_bool(0.4)
        {
            (0..3).for_each(|_| archive.fail_at(self.random.random_range(4..60), Failure::Io));
        }
    }

    /// The database, or nothing where even opening it fails.
    fn work(&mut self) -> Option<Database> {
        let mut db = self.open().ok()?;
        for _ in 0..self.random.random_range(8..26) {
            match self.random.random_range(0..100) {
                0..60 => self.transaction(&db)?,
                60..72 => self.checkpoint(&db),
                72..80 => assert!(db.merge_now() < 1000),
                80..85 if self.archive.is_some() => drop(db.archive_now()),
                85..90 => self.back_up(&db),
                90..95 => {
                    drop(db);
                    // Closing flushes, and does not report whether it worked.
                    if !self.log.is_off() && !matches!(self.fault, Fault::FailedSteps | Fault::FullDisk) {
                        self.acknowledged = *self.states.last_key_value()?.0;
                    }
                    db = self.open().ok()?;
                    self.recovered(&db);
                }
                _ if self.fault == Fault::FullDisk => {
                    let room = self.random.random_range(0..3000);
                    let is_full = self.random.random_bool(0.5);
                    self.log.set_capacity(is_full.then(|| self.log.used_bytes() + room));
                }
                _ => drop(self.changes(&mut db.begin().ok()?, &mut self.newest().clone())),
            }
        }
        Some(db)
    }

    fn checkpoint(&mut self, db: &Database) {
        if let Ok(report) = db.checkpoint() {
            // It waits for the log.
            self.acknowledged = self.acknowledged.max(report.from.0);
        }
    }

    fn back_up(&mut self, db: &Database) {
        let copy = FaultyDevice::new(self.seed);
        if let Ok(report) = db.backup_on(&device(&copy)) {
            self.acknowledged = self.acknowledged.max(report.until.0);
            self.backups.push((copy, report.until.0));
        }
    }

    /// One transaction; nothing if the database can't go on.
    fn transaction(&mut self, db: &Database) -> Option<()> {
        let durability = if self.random.random_bool(0.5) { Durability::Sync } else { Durability::Async };
        let options = TransactionOptions { durability, ..TransactionOptions::default() };
        let (mut transaction, mut model) = (db.begin_with(options).ok()?, self.newest().clone());
        self.changes(&mut transaction, &mut model).ok()?;
        let before = db.snapshot().at;
        let thread = self.random.random_range(0..3);
        match self.committers.commit(transaction, thread) {
            Ok(at) => {
                if at > before {
                    self.states.insert(at.0, model);
                    self.commits += 1;
                }
                if durability == Durability::Sync {
                    self.acknowledged = self.acknowledged.max(at.0);
                }
                Some(())
            }
            Err(Error::Log(_)) => {
                // It has committed and is not on disk, or it never committed.
                if contents(db) == model && model != *self.newest() {
                    self.states.insert(db.snapshot().at.0, model);
                }
                (self.fault == Fault::FullDisk).then_some(())
            }
            Err(error) => panic!("{error}"),
        }
    }

    /// Random changes, which the model follows.
    fn changes(&mut self, transaction: &mut Transaction, model: &mut Contents) -> Result<(), Error> {
        let random = &mut self.random;
        for _ in 0..random.random_range(1..4) {
            let names: Vec<String> = model.keys().cloned().collect();
            let new = format!("t{}", random.random_range(0..50));
            let is_free = !model.contains_key(&new);
            let Some(name) = (!names.is_empty()).then(|| names[random.random_range(0..names.len())].clone()) else {
                transaction.create_table(&new, schema())?;
                model.insert(new, BTreeMap::new());
                continue;
            };
            match random.random_range(0..30) {
                0 if is_free && names.len() < 4 => {
                    transaction.create_table(&new, schema())?;
                    model.insert(new, BTreeMap::new());
                }
                1 => {
                    transaction.drop_table(&name)?;
                    model.remove(&name);
                }
                2 => {
                    transaction.truncate_table(&name)?;
                    model.insert(name, BTreeMap::new());
                }
                3 if is_free => {
                    transaction.rename_table(&name, &new)?;
                    let rows = model.remove(&name).unwrap_or_default();
                    model.insert(new, rows);
                }
                4 => transaction.set_retention(&name, Retention::None)?,
                _ => change_row(random, transaction, &name, model.get_mut(&name).expect("it is there"))?,
            }
        }
        Ok(())
    }

    /// The contents found after a restart are those after a commit; all that came later never was.
    fn recovered(&mut self, db: &Database) {
        let found = contents(db);
        let allowed = self.states.range(self.acknowledged..).filter(|(_, state)| **state == found);
        let base = self.states.range(..=self.acknowledged).next_back().filter(|(_, state)| **state == found);
        // Of several equal states, the one with the database's number is meant.
        let newest = db.snapshot().at.0;
        let at = allowed.chain(base).map(|(at, _)| *at).filter(|at| *at <= newest).max();
        let Some(at) = at else {
            let states: Vec<_> = self.states.iter().rev().take(4).collect();
            panic!("{found:?} as of {newest} is none of {states:?}; {} acknowledged", self.acknowledged);
        };
        self.states.split_off(&(at + 1));
    }

    /// The crash, and what is there afterwards.
    fn crash(&mut self, db: Option<Database>) {
        let seed = self.seed;
        match self.fault {
            Fault::FlippedBit => return self.flip(db),
            Fault::ProcessCrash => {
                let next = self.log.after_process_crash(seed);
                drop(db);
                self.log = next;
            }
            _ => {
                // Closing must not write to the archive what the log has lost.
                self.log.cut_power_at(self.log.steps() + 1);
                let next = self.log.after_power_loss(seed);
                drop(db);
                self.log = next;
            }
        }
        if self.random.random_bool(0.5) {
            self.log.cut_power_at(self.random.random_range(1..12));
            drop(self.open());
            self.log = self.log.after_power_loss(seed + 1);
        }
        let db = self.reopen();
        self.recovered(&db);
        // It goes on from there.
        for _ in 0..3 {
            self.transaction(&db).unwrap();
        }
        self.checkpoint(&db);
        self.transaction(&db).unwrap();
        drop(db);
        self.acknowledged = *self.states.last_key_value().unwrap().0;
        self.recovered(&self.reopen());
        let found = Database::verify_on(device(&self.log), |_, _| ()).unwrap();
        assert_eq!(found.faults, [""; 0]);
    }

    /// A bit flips in a database that was closed: that is told, or changes nothing. Pages are read at once; `flips.rs` has those
    /// that are read later.
    fn flip(&mut self, db: Option<Database>) {
        drop(db);
        let whole = self.log.clone();
        let names = whole.list().unwrap();
        self.archive = None;
        // Where the archive failed at the first opening there is nothing.
        for _ in 0..if names.is_empty() { 0 } else { 4 } {
            self.log = whole.after_power_loss(0);
            let name = &names[self.random.random_range(0..names.len())];
            let bytes = self.log.contents(name).len() as u64;
            self.log.flip_bit(name, self.random.random_range(0..bytes.max(1)), self.random.random_range(0..8));
            match self.open_reading(true) {
                Ok(db) => assert_eq!(contents(&db), *self.newest(), "a bit of {name}"),
                Err(error) => {
                    let is_named = matches!(error, Error::Log(_) | Error::Checkpoint(_) | Error::NoCheckpoint { .. });
                    assert!(is_named, "a bit of {name}: {error}");
                }
            }
        }
    }

    /// Backups are what there was, and with the archive they go on to what there was later.
    fn check_copies(&self) {
        for (copy, until) in &self.backups {
            let state = |at: u64| self.states.range(..=at).next_back().map(|(_, state)| state.clone());
            let options = || OpenOptions { merge_threads: Some(0), range_records: Some(16), ..OpenOptions::default() };
            let restore = |archive: Option<&Arc<dyn Device>>| {
                let target = device(&FaultyDevice::new(0));
                let report = Database::restore_on(&device(copy), archive, &target, RecoveryTarget::Latest)?;
                Ok::<_, Error>((Database::open_on(target, options())?, report.until.0))
            };
            let (db, at) = restore(None).unwrap();
            assert_eq!((Some(contents(&db)), at), (state(*until), *until), "a backup");
            if let Some(archive) = self.archive.as_ref().map(device) {
                match restore(Some(&archive)) {
                    Ok((db, at)) => assert_eq!(Some(contents(&db)), state(at), "archived up to {at}"),
                    // It was never written to.
                    Err(error) => assert!(matches!(error, Error::BadBackup { .. }), "{error}"),
                }
            }
        }
    }
}

fn change_row(
    random: &mut StdRng,
    transaction: &mut Transaction,
    name: &str,
    rows: &mut BTreeMap<i64, i64>,
) -> Result<(), Error> {
    let table = transaction.table_to_write(name)?;
    for _ in 0..random.random_range(1..5) {
        let (id, n) = (random.random_range(0..KEYS), random.random_range(0..1000i64));
        let key = [Value::from(id)];
        match rows.contains_key(&id) {
            false => drop(transaction.insert(&table, &[Value::from(id), Value::from(n)])?),
            true if random.random_bool(0.3) => {
                assert!(transaction.delete(&table, &key)?);
                rows.remove(&id);
                continue;
            }
            true => assert!(transaction.update_columns(&table, &key, &[(1, Value::from(n))])?),
        }
        rows.insert(id, n);
    }
    Ok(())
}

#[test]
fn whatever_goes_wrong_the_database_is_what_it_was_after_some_commit() {
    let number = |name| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    let seeds = match (number("LSTORE_CRASH_SEED"), number("LSTORE_CRASH_SEEDS")) {
        (Some(seed), _) => seed..seed + 1,
        (None, count) => 0..count.unwrap_or(SEEDS),
    };
    let (count, mut commits) = (seeds.end - seeds.start, 0);
    let mut faults: BTreeMap<String, u64> = BTreeMap::new();
    for seed in seeds {
        let mut run = Run::new(seed);
        let _seed = Seed(seed, run.fault);
        *faults.entry(format!("{:?}", run.fault)).or_default() += 1;
        run.plant();
        let db = run.work();
        if run.fault == Fault::FullDisk {
            run.log.set_capacity(None);
        }
        run.crash(db);
        run.check_copies();
        commits += run.commits;
    }
    println!("{count} seeds, {commits} commits: {faults:?}");
    assert!(count == 1 || commits > 3 * count, "{commits} commits");
}
