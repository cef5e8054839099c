//! Transactions of statements by key in one call do what the same statements do in a transaction that is held, and are seen whole.
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use durability::LogOptions;
use engine::{
    Column, DataType, Database, Durability, Error, IndexDefinition, Isolation, OpenOptions, PointAccess, PointAction,
    PointStatement, Schema, Table, TransactionOptions, Value,
};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use testkit::FaultyDevice;

const KEYS: i64 = 80;

/// Sets of columns that are read and written; the first is the whole row.
const SETS: [&[usize]; 5] = [&[0, 1, 2, 3, 4], &[1, 2, 3, 4], &[3], &[4, 1], &[0, 2]];

struct Side {
    db: Database,
    table: Table,
    accesses: Vec<PointAccess>,
}

impl Side {
    fn new(merge_tail_records: u64) -> Side {
        let merge_tail_records = Some(merge_tail_records);
        let db = Database::in_memory_with(&OpenOptions { merge_tail_records, ..OpenOptions::default() });
        let columns = (0..5).map(|at| Column::new(format!("c{at}"), DataType::BigInt)).collect();
        let table = db.create_table("t", Schema::new(columns, &["c0"]).unwrap()).unwrap();
        let insert = |transaction: &mut engine::Transaction| {
            for key in 0..KEYS - 8 {
                let row = [Value::from(key), Value::from(key), Value::Null, Value::from(1_i64), Value::from(-key)];
                transaction.insert(&table, &row)?;
            }
            Ok::<(), Error>(())
        };
        db.run(TransactionOptions::default(), insert).unwrap();
        let accesses = SETS.iter().map(|set| table.point_access(set).unwrap().unwrap()).collect();
        Side { db, table, accesses }
    }

    /// Runs a transaction; what it answered, or the code of its error.
    fn run(&self, options: TransactionOptions, plan: &[Planned], is_held: bool) -> Result<Vec<Answer>, String> {
        let mut outs: Vec<Vec<u64>> = plan.iter().map(|planned| planned.words.clone()).collect();
        let mut group: Vec<PointStatement<'_>> = Vec::new();
        for (planned, out) in plan.iter().zip(&mut outs) {
            let action = match planned.kind {
                0 => PointAction::Read(out),
                1 => PointAction::Update(&planned.words),
                2 => PointAction::Upsert(&planned.words),
                3 => PointAction::Insert(&planned.words),
                _ => PointAction::Delete,
            };
            group.push(PointStatement::new(&self.accesses[planned.set], planned.key, action));
        }
        let result = match is_held {
            true => self.db.run(options, |transaction| transaction.run_points(&mut group)),
            false => self.db.run_points(options, &mut group).map(drop),
        };
        result.map_err(|error| error.sqlstate().to_owned())?;
        let answer = |statement: &PointStatement<'_>| match &statement.action {
            PointAction::Read(words) if statement.is_found => {
                let is_null = |at: usize| statement.nulls >> at & 1 != 0;
                (true, words.iter().enumerate().map(|(at, word)| (!is_null(at)).then_some(*word)).collect())
            }
            _ => (statement.is_found, Vec::new()),
        };
        Ok(group.iter().map(answer).collect())
    }

    fn rows(&self) -> Vec<Option<Vec<Value>>> {
        let transaction = self.db.begin().unwrap();
        (0..KEYS).map(|key| transaction.get(&self.table, &[Value::from(key)]).unwrap()).collect()
    }
}

/// Whether there was a row, and what was read of it.
type Answer = (bool, Vec<Option<u64>>);

#[derive(Clone, Debug)]
struct Planned {
    kind: u8,
    key: i64,
    set: usize,
    words: Vec<u64>,
}

fn plan(rng: &mut StdRng) -> Vec<Planned> {
    let is_plain = rng.random_bool(0.7);
    let one = |rng: &mut StdRng| {
        let kind = match rng.random_range(0..20) {
            0..10 => 0,
            10..15 => 1,
            _ if is_plain => rng.random_range(0..2),
            15..17 => 2,
            17..19 => 3,
            _ => 4,
        };
        let key = if rng.random_bool(0.3) { rng.random_range(0..3) } else { rng.random_range(0..KEYS) };
        let set = if kind > 1 { 0 } else { rng.random_range(0..if is_plain { 4 } else { 5 }) };
        let set = if kind == 1 && set == 0 { 1 } else { set };
        let word = |column: &usize| if *column == 0 { key as u64 } else { rng.random_range(0..9) };
        Planned { kind, key, set, words: SETS[set].iter().map(word).collect() }
    };
    (0..rng.random_range(1..24)).map(|_| one(rng)).collect()
}

#[test]
fn a_transaction_in_one_call_does_what_a_held_one_does() {
    for (seed, isolation) in
        (0..9).zip([Isolation::Snapshot, Isolation::ReadCommitted, Isolation::Serializable].into_iter().cycle())
    {
        let mut rng = StdRng::seed_from_u64(seed);
        let sides = [Side::new(8), Side::new(8)];
        let options = TransactionOptions { lock_timeout: Some(Duration::ZERO), ..TransactionOptions::at(isolation) };
        for round in 0..300 {
            let plan = plan(&mut rng);
            // Another one has a row, at times.
            let key = rng.random_range(0..KEYS - 8);
            let mut others = sides.each_ref().map(|side| side.db.begin().unwrap());
            if round % 5 == 0 {
                for (side, other) in sides.iter().zip(&mut others) {
                    other.update_words(&side.accesses[2], key, &[3]).unwrap();
                }
            }
            let [held, at_once] =
                [(&sides[0], true), (&sides[1], false)].map(|(side, is_held)| side.run(options, &plan, is_held));
            assert_eq!(held, at_once, "{plan:?}, seed {seed}");
            others.into_iter().for_each(|other| other.rollback());
            match rng.random_range(0..40) {
                0..4 => sides.iter().for_each(|side| assert!(side.db.merge_now() < 100)),
                4 => {
                    for side in &sides {
                        side.db.create_index("t", IndexDefinition::new(format!("i{round}"), &[1])).unwrap();
                    }
                }
                5 => {
                    for index in sides[0].table.indexes() {
                        sides.iter().for_each(|side| side.db.drop_index(&index.definition().name).unwrap());
                    }
                }
                _ => {}
            }
            assert_eq!(sides[0].rows(), sides[1].rows(), "seed {seed}, round {round}, {plan:?}");
        }
    }
}

/// Writers set the same number in some rows; a reader sees one of these numbers in all of them.
#[test]
fn transactions_in_one_call_are_seen_whole() {
    let side = Side::new(64);
    let (stop, written, whole) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    let keys: Vec<i64> = (0..5).map(|at| at * 7).collect();
    let end = Instant::now() + Duration::from_millis(if cfg!(debug_assertions) { 1_500 } else { 500 });
    let write = |thread: u64| {
        let mut number = thread;
        while !stop.load(Ordering::Relaxed) {
            number += 2;
            let words = [number; 4];
            let statement = |key: &i64| PointStatement::new(&side.accesses[1], *key, PointAction::Update(&words));
            let mut group: Vec<_> = keys.iter().map(statement).collect();
            side.db.run_points(TransactionOptions::default(), &mut group).unwrap();
            assert!(group.iter().all(|statement| statement.is_found));
            written.fetch_add(1, Ordering::Release);
        }
    };
    let read = || {
        while Instant::now() < end {
            // Asked first: what is read before may be older than the first transactions.
            let is_written = written.load(Ordering::Acquire) > 1;
            let mut outs = [[0; 4]; 5];
            let mut group: Vec<PointStatement<'_>> = Vec::new();
            for (key, out) in keys.iter().zip(&mut outs) {
                group.push(PointStatement::new(&side.accesses[1], *key, PointAction::Read(out)));
            }
            side.db.run_points(TransactionOptions::default(), &mut group).unwrap();
            drop(group);
            if is_written {
                assert!(outs.iter().flatten().all(|word| *word == outs[0][0]), "{outs:?}");
                whole.fetch_add(1, Ordering::Relaxed);
            }
        }
        stop.store(true, Ordering::Relaxed);
    };
    std::thread::scope(|scope| {
        scope.spawn(|| write(0));
        scope.spawn(|| write(1));
        scope.spawn(read);
    });
    assert!(written.load(Ordering::Relaxed) > 100 && whole.load(Ordering::Relaxed) > 100);
    let tail = || side.table.stats().tail_records_unmerged;
    let begun = Instant::now();
    while side.db.merge_now() > 0 || tail() > 0 {
        assert!(begun.elapsed() < Duration::from_secs(20), "versions stay that nobody has stamped: {}", tail());
    }
}

/// A transaction that has committed: the number that it alone has written, where, and what it has read by key.
struct Ran {
    number: u64,
    written: i64,
    reads: Vec<(i64, u64)>,
}

/// Runs a transaction of random reads and blind writes of a number until it has committed.
fn read_and_write(side: &Side, isolation: Isolation, rng: &mut StdRng, number: u64) -> Ran {
    let access = &side.accesses[2];
    let keys: Vec<i64> = (0..3).map(|_| rng.random_range(0..8)).collect();
    let (words, written) = ([number], [rng.random_range(0..8), rng.random_range(0..8)]);
    loop {
        let mut outs = [[0]; 3];
        let reads =
            keys.iter().zip(&mut outs).map(|(key, out)| PointStatement::new(access, *key, PointAction::Read(out)));
        let mut group: Vec<PointStatement<'_>> = reads.collect();
        group.extend(written.iter().map(|key| PointStatement::new(access, *key, PointAction::Update(&words))));
        match side.db.run_points(TransactionOptions::at(isolation), &mut group) {
            Ok(_) => {
                let reads = keys.into_iter().zip(outs.map(|[word]| word)).collect();
                return Ran { number, written: written[0], reads };
            }
            Err(error) => assert_eq!(error.sqlstate(), "40001"),
        }
    }
}

/// How many of many transactions at once have read what was not there any more just before their commits.
fn stale_reads(isolation: Isolation) -> usize {
    let (side, start) = (&Side::new(64), &Barrier::new(4));
    let run = |thread: u64| {
        start.wait();
        let mut rng = StdRng::seed_from_u64(thread);
        let run = |count: u64| read_and_write(side, isolation, &mut rng, 1_000 + 4 * count + thread);
        (0..2_000).map(run).collect::<Vec<Ran>>()
    };
    let ran: Vec<Ran> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|thread| scope.spawn(move || run(thread))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    // The commits of each row, with what they wrote.
    let word = |value: &Value| if let Value::BigInt(word) = value { *word as u64 } else { panic!("{value:?}") };
    let versions = |key: i64| side.table.record_history(&[Value::from(key)]).unwrap();
    let commit = |version: &engine::RecordVersion| (version.from.0, word(&version.row.as_ref().unwrap()[3]));
    let commits: Vec<Vec<(u64, u64)>> = (0..8).map(|key| versions(key).iter().map(commit).collect()).collect();
    let is_stale = |Ran { number, written, reads }: &Ran| {
        let of = |key: i64| commits[key as usize].iter();
        let (at, _) = of(*written).find(|(_, known)| known == number).expect("what was written has a commit");
        let before = |key: i64| of(key).rev().find(|(from, _)| from < at).map(|(_, word)| *word);
        reads.iter().any(|(key, word)| before(*key) != Some(*word))
    };
    ran.iter().filter(|ran| is_stale(ran)).count()
}

/// So they are in the order of their commits, as if one ran after the other. Below, others come between a snapshot and a commit, as far
/// as the machine lets them.
#[test]
fn serializable_transactions_in_one_call_have_read_what_is_there_at_their_commits() {
    println!("of 8,000 under SNAPSHOT: {}", stale_reads(Isolation::Snapshot));
    assert_eq!(stale_reads(Isolation::Serializable), 0);
}

fn open(device: &FaultyDevice) -> Result<Database, Error> {
    // The extension of a file is searched for frames at each opening.
    let log = LogOptions { growth_bytes: 4096, ..LogOptions::default() };
    let options = OpenOptions { merge_threads: Some(0), range_records: Some(16), log, ..OpenOptions::default() };
    Database::open_on(Arc::new(device.clone()), options)
}

const ROWS: i64 = 5;
const ROUNDS: i64 = 9;

/// The numbers of all rows; none where there is no table, or no row in it.
fn numbers(db: &Database) -> Vec<i64> {
    let (Ok(table), Ok(view)) = (db.table("t"), db.begin()) else { return Vec::new() };
    let number = |id: i64| match view.get(&table, &[Value::from(id)]).unwrap()?[..] {
        [_, Value::BigInt(n)] => Some(n),
        _ => None,
    };
    (0..ROWS).filter_map(number).collect()
}

/// Makes a table of a few rows and sets all of them to the number of the round, with a checkpoint in between; tells `durable` the rounds
/// that were acknowledged.
fn rounds(device: &FaultyDevice, durability: Durability, durable: &mut i64) -> Result<(), Error> {
    let db = open(device)?;
    let schema = Schema::new(["id", "n"].map(|name| Column::new(name, DataType::BigInt)).to_vec(), &["id"]).unwrap();
    let table = db.create_table("t", schema)?;
    let insert = |id: i64| [Value::from(id), Value::from(0_i64)];
    db.run(TransactionOptions::default(), |transaction| {
        (0..ROWS).try_for_each(|id| transaction.insert(&table, &insert(id)).map(drop))
    })?;
    *durable = 0;
    let access = table.point_access(&[1]).unwrap().unwrap();
    for round in 1..=ROUNDS {
        let words = [round as u64];
        let statement = |id: i64| PointStatement::new(&access, id, PointAction::Update(&words));
        let mut group: Vec<_> = (0..ROWS).map(statement).collect();
        db.run_points(TransactionOptions { durability, ..TransactionOptions::default() }, &mut group)?;
        if durability == Durability::Sync {
            *durable = round;
        }
        if round == 5 {
            db.checkpoint()?;
            *durable = round;
        }
    }
    Ok(())
}

/// Power loss at every step of a run: what was acknowledged is there, and every transaction whole or not at all.
#[test]
fn what_one_call_has_committed_survives_a_crash() {
    for durability in [Durability::Sync, Durability::Async] {
        let (rehearsal, mut last) = (FaultyDevice::new(0), -1);
        rounds(&rehearsal, durability, &mut last).unwrap();
        let steps = rehearsal.steps();
        assert_eq!(numbers(&open(&rehearsal).unwrap()), vec![ROUNDS; ROWS as usize], "closing loses nothing");
        assert!(steps > 20, "{steps}");
        for step in 1..=steps {
            let (device, mut durable) = (FaultyDevice::new(0), -1);
            device.cut_power_at(step);
            let _ = rounds(&device, durability, &mut durable);
            let found = numbers(&open(&device.after_power_loss(step)).unwrap());
            match found[..] {
                [] => assert_eq!(durable, -1, "{durability:?}, step {step}"),
                [n, ..] => assert!(
                    n >= durable && found == vec![n; ROWS as usize],
                    "{durability:?}, step {step}: {found:?} where {durable} was acknowledged"
                ),
            }
        }
    }
}
