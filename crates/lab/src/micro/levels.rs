//! The cost of transactions: the isolation levels beside the storage without transactions, and contention for one
//! row.
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use crate::figures::Figure;
use engine::{Column, DataType, Database, Isolation, Schema, Table, TransactionOptions, Value};
use parking_lot::Mutex;

use super::args::{Access, MicroArgs};
use super::cases::{Bench, THOUSAND, approach_merge, of_threads};
use super::contestant::Contestant;
use super::drive::Drive;
use super::lstore::{Lstore, StoreOptions};
use super::workload::Workload;
use crate::LabError;

/// The threads at the hot row, unless others are asked for.
const HOT_THREADS: [u32; 5] = [1, 2, 4, 8, 16];
/// Transactions between two looks at the clock.
const BATCH: u64 = 8;

/// The storage without transactions, then the levels.
const ACCESSES: [Access; 4] = [Access::None, Access::ReadCommitted, Access::Snapshot, Access::Serializable];

impl Bench<'_, '_> {
    /// Transactions at each level beside the storage alone.
    pub(super) fn isolation(&mut self) -> Result<(), LabError> {
        let MicroArgs { rows, reads, updates, columns, .. } = *self.args;
        let load = |access: &Access| Lstore::load(rows, &StoreOptions { access: *access, ..self.options() });
        let contestants = ACCESSES.iter().map(load).collect::<Result<Vec<Lstore>, _>>()?;
        for (name, active) in [("low", rows), ("medium", rows / 100), ("high", rows / 1000)] {
            let workload = Workload::new(active, reads, updates, columns);
            for &threads in &self.args.threads {
                self.levels(&format!("isolation, {name}, {}", of_threads(threads)), &workload, threads, &contestants)?;
            }
        }
        Ok(())
    }

    fn levels(
        &mut self,
        case: &str,
        workload: &Workload,
        threads: u32,
        contestants: &[Lstore],
    ) -> Result<(), LabError> {
        let (time, options) = (self.args.seconds, self.options());
        let measured = self.in_turns(case, contestants.len(), |at, seed| {
            approach_merge(&contestants[at], workload, &options, seed)?;
            let driven = Drive { workload, threads, time, seed, done: None }.alone(&contestants[at])?;
            contestants[at].settle();
            let per_thousand = |count: u64| count as f64 / driven.transactions as f64 * THOUSAND;
            Ok(vec![driven.rate / THOUSAND, per_thousand(driven.conflicts), per_thousand(driven.waits)])
        })?;
        for (access, values) in ACCESSES.iter().zip(&measured) {
            let case = format!("{case}, {}", access.name());
            let rate = Figure::rate(&case, "transactions", "thousand/s", &values[0]);
            if *access == Access::None {
                self.report.push(rate)?;
                continue;
            }
            self.report.push(rate.beside(Access::None.name(), &measured[0][0]))?;
            self.report.push(Figure::amount(&case, "aborts", "per thousand", &values[1]))?;
            self.report.push(Figure::amount(&case, "waits", "per thousand", &values[2]))?;
        }
        Ok(())
    }

    /// All threads count in one row. Every figure stands beside that of one thread.
    pub(super) fn hot_row(&mut self) -> Result<(), LabError> {
        let asked = &self.args.threads;
        let threads: Vec<u32> = if asked[..] == [1] { HOT_THREADS.to_vec() } else { asked.clone() };
        let time = self.args.seconds;
        let mut single: Vec<Vec<f64>> = Vec::new();
        for &threads in &threads {
            let case = format!("hot-row, {}", of_threads(threads));
            let measured = self.in_turns(&case, 1 + Access::LEVELS.len(), |at, _| {
                let rate = match at.checked_sub(1).and_then(|level| Access::LEVELS[level].isolation()) {
                    Some(isolation) => HotRow::new()?.rate(threads, time, isolation)?,
                    None => (latched_rate(threads, time), 0.0),
                };
                Ok(vec![rate.0 / THOUSAND, rate.1])
            })?;
            if single.is_empty() {
                single = measured.iter().map(|values| values[0].clone()).collect();
            }
            let names = Access::LEVELS.map(Access::name);
            for (at, name) in std::iter::once("latched counter").chain(names).enumerate() {
                let case = format!("{case}, {name}");
                let mut rate = Figure::rate(&case, "increments", "thousand/s", &measured[at][0]);
                if at > 0 {
                    rate = rate.beside("latched counter", &measured[0][0]);
                }
                self.report.push(rate.beside("fewest threads", &single[at]))?;
                if at > 0 {
                    self.report.push(Figure::amount(&case, "aborts", "per thousand", &measured[at][1]))?;
                }
            }
        }
        Ok(())
    }
}

/// A table of one row that counts.
struct HotRow {
    database: Database,
    table: Table,
}

impl HotRow {
    fn new() -> Result<HotRow, LabError> {
        let database = Database::in_memory();
        let columns = ["id", "count"].map(|name| Column::new(name, DataType::BigInt).not_null()).to_vec();
        let schema = Schema::new(columns, &["id"]).map_err(|error| LabError::Failed(error.to_string()))?;
        let table = database.create_table("hot", schema)?;
        database.run(TransactionOptions::default(), |transaction| {
            transaction.insert(&table, &[Value::from(1i64), Value::from(0i64)]).map(drop)
        })?;
        Ok(HotRow { database, table })
    }

    /// Increments a second, and how many of a thousand had to start again.
    fn rate(&self, threads: u32, time: Duration, isolation: Isolation) -> Result<(f64, f64), LabError> {
        let counted = on_threads(threads, time, || {
            let mut tries = 0;
            self.increment(isolation, &mut tries).map(|()| tries)
        });
        let counted = counted.into_iter().collect::<Result<Vec<_>, _>>()?;
        let increments: u64 = counted.iter().map(|(increments, ..)| increments).sum();
        let tries: u64 = counted.iter().map(|(_, tries, _)| tries).sum();
        let row = self.database.begin()?.get(&self.table, &[Value::from(1i64)])?;
        if row.is_none_or(|row| row[1] != Value::from(increments as i64)) {
            return Err(LabError::Failed(format!("increments were lost at {isolation}")));
        }
        let rate = counted.iter().map(|(increments, _, seconds)| *increments as f64 / seconds).sum();
        Ok((rate, (tries - increments) as f64 / increments as f64 * THOUSAND))
    }

    fn increment(&self, isolation: Isolation, tries: &mut u64) -> Result<(), LabError> {
        let key = [Value::from(1i64)];
        self.database.run(TransactionOptions::at(isolation), |transaction| {
            *tries += 1;
            let row = match isolation {
                Isolation::ReadCommitted => transaction.get_for_update(&self.table, &key)?,
                Isolation::Snapshot | Isolation::Serializable => transaction.get(&self.table, &key)?,
            };
            let Some([_, Value::BigInt(count)]) = row.as_deref() else {
                return Err(LabError::Failed("the row is gone".to_owned()));
            };
            Ok(transaction.update_columns(&self.table, &key, &[(1, Value::from(count + 1))]).map(drop)?)
        })
    }
}

/// Increments a second of a counter under a mutex, for comparison.
fn latched_rate(threads: u32, time: Duration) -> f64 {
    let counter = Mutex::new(0_u64);
    let counted = on_threads(threads, time, || {
        *counter.lock() += 1;
        Ok::<u64, LabError>(1)
    });
    counted.into_iter().flatten().map(|(increments, _, seconds)| increments as f64 / seconds).sum()
}

/// Has threads do something over and over for so long: for each how often, the sum of what it returned, and the seconds.
fn on_threads(
    threads: u32,
    time: Duration,
    work: impl Fn() -> Result<u64, LabError> + Sync,
) -> Vec<Result<(u64, u64, f64), LabError>> {
    let start = Barrier::new(threads as usize);
    let run = || {
        start.wait();
        let (begin, mut done, mut sum) = (Instant::now(), 0, 0);
        while begin.elapsed() < time {
            for _ in 0..BATCH {
                sum += work()?;
            }
            done += BATCH;
        }
        Ok((done, sum, begin.elapsed().as_secs_f64()))
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(run)).collect();
        let joined = |thread: thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        threads.into_iter().map(joined).collect()
    })
}
