//! The benchmark's table and transactions, for other benchmarks to compare databases with.
use std::path::PathBuf;
use std::time::Duration;

use super::contestant::Contestant;
use super::drive::Drive;
use super::lstore::{Lstore, StoreOptions};
use super::workload::Workload;
use crate::LabError;

/// A loaded database.
pub(crate) struct Store(Lstore);

impl Store {
    /// Loads a database in a directory, or in memory.
    pub(crate) fn load(rows: u64, directory: Option<PathBuf>) -> Result<Store, LabError> {
        Ok(Store(Lstore::load(rows, &StoreOptions { directory, has_prefetch: true, ..StoreOptions::default() })?))
    }

    /// Transactions a second of one thread, on the first `active` rows.
    pub(crate) fn rate(&self, active: u64, time: Duration, seed: u64) -> Result<f64, LabError> {
        let workload = &Workload::new(active, 8, 2, 4);
        let driven = Drive { workload, threads: 1, time, seed, done: None }.alone(&self.0)?;
        self.0.settle();
        Ok(driven.rate)
    }
}
