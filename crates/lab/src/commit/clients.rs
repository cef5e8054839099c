//! Clients that commit: threads, each with a row of its own.
use std::path::Path;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use engine::{Column, DataType, Database, Durability, Schema, Table, TransactionOptions, Value};

use crate::LabError;

/// When commits are acknowledged.
pub(super) const MODES: [Durability; 3] = [Durability::Sync, Durability::Async, Durability::Partition];

/// The mode by its name in SQL and in reports.
pub(super) fn mode_name(mode: Durability) -> &'static str {
    match mode {
        Durability::Sync => "sync",
        Durability::Async => "async",
        Durability::Partition => "partition",
    }
}

/// The percentiles of commit times that are reported: names and shares.
pub(super) const PERCENTILES: [(&str, f64); 3] = [("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999)];

/// A database with a row for each client.
pub(super) struct Clients {
    database: Database,
    table: Table,
    clients: u32,
}

/// The result of a run.
#[derive(Clone, Debug, Default)]
pub(super) struct CommitResult {
    /// commits a second, all clients together
    rate: f64,
    /// how long each took, ascending
    latencies_ns: Vec<u32>,
}

impl CommitResult {
    /// Commits a second, then the percentiles in microseconds.
    pub(super) fn figures(&self) -> Vec<f64> {
        let percentiles = PERCENTILES.iter().map(|(_, share)| self.percentile_us(*share));
        std::iter::once(self.rate).chain(percentiles).collect()
    }

    fn percentile_us(&self, share: f64) -> f64 {
        let last = self.latencies_ns.len().saturating_sub(1);
        self.latencies_ns.get((last as f64 * share) as usize).map_or(0.0, |ns| f64::from(*ns) / 1e3)
    }
}

impl Clients {
    /// Makes the database in this directory.
    pub(super) fn new(directory: &Path, clients: u32) -> Result<Clients, LabError> {
        let database = Database::open(directory)?;
        let columns = ["id", "n"].map(|name| Column::new(name, DataType::BigInt).not_null()).to_vec();
        let schema = Schema::new(columns, &["id"]).map_err(|error| LabError::Failed(error.to_string()))?;
        let table = database.create_table("counters", schema)?;
        database.run(TransactionOptions::default(), |transaction| {
            (0..i64::from(clients))
                .try_for_each(|client| transaction.insert(&table, &[Value::BigInt(client), Value::BigInt(0)]).map(drop))
        })?;
        Ok(Clients { database, table, clients })
    }

    /// Has all clients commit for so long.
    pub(super) fn commit_for(&self, time: Duration, durability: Durability) -> Result<CommitResult, LabError> {
        let start = Barrier::new(self.clients as usize);
        let runs: Vec<Result<(f64, Vec<u32>), LabError>> = thread::scope(|scope| {
            let client = |client: u32| {
                let start = &start;
                scope.spawn(move || {
                    start.wait();
                    self.commit_one_by_one(client, time, durability)
                })
            };
            let clients: Vec<_> = (0..self.clients).map(client).collect();
            clients
                .into_iter()
                .map(|client| client.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect()
        });
        let mut committed = CommitResult::default();
        for run in runs {
            let (rate, latencies_ns) = run?;
            committed.rate += rate;
            committed.latencies_ns.extend(latencies_ns);
        }
        committed.latencies_ns.sort_unstable();
        Ok(committed)
    }

    fn commit_one_by_one(
        &self,
        client: u32,
        time: Duration,
        durability: Durability,
    ) -> Result<(f64, Vec<u32>), LabError> {
        let options = TransactionOptions { durability, ..TransactionOptions::default() };
        let (key, begin) = ([Value::BigInt(i64::from(client))], Instant::now());
        let (mut latencies_ns, mut now) = (Vec::new(), begin);
        while now - begin < time {
            let n = Value::BigInt(latencies_ns.len() as i64);
            self.database.run(options, |transaction| {
                transaction.update_columns(&self.table, &key, &[(1, n.clone())]).map(drop)
            })?;
            let before = std::mem::replace(&mut now, Instant::now());
            latencies_ns.push(u32::try_from((now - before).as_nanos()).unwrap_or(u32::MAX));
        }
        Ok((latencies_ns.len() as f64 / (now - begin).as_secs_f64(), latencies_ns))
    }
}
