//! Whether a database is whole: every byte of its files, every version of every record, every index entry.
//!
//! ```text
//! files     every blob of the kept checkpoints against its checksum; what a backup says of itself
//! older     the older checkpoint restored: it must serve as well, should the newest be damaged
//! log       every frame, replayed upon the newest checkpoint
//! pages     what each page says of itself (zones, counts, newest times) against what it holds; chains of versions
//! rows      NOT NULL in every version that is kept
//! indexes   each lists a record under every key that a version of it has, and under no other; unique keys have one holder at
//!           each moment that is kept
//! ```
//!
//! Indexes are checked as opening the database builds them, from the images in the checkpoint where there are some, which is what a
//! user would get.
//!
//! All of it may be larger than memory: pages come and go under the limit as they always do.
//!
//! Nothing is changed. A database that another process has open is refused.
use std::path::Path;
use std::sync::Arc;

use durability::{Access, Checkpoints, Device, lock_to_read};
use lineage::{PageReading, TableOptions};

use crate::database::handle::Database;
use crate::disk::backup::BackupMark;
use crate::disk::checkpoint::restore;
use crate::disk::directory;
use crate::disk::page_source::budget_of;
use crate::error::{Error, Result};
use crate::state::options::OpenOptions;
use crate::state::table_data::TableData;

mod index;
mod report;
mod rows;

pub use report::Verification;
#[cfg(test)]
mod tests;

/// Faults of one table and kind that are told; more are counted.
const FAULTS_MAX: usize = 20;

impl Database {
    /// Checks every page, every frame of the log, every version and every index entry of a database that is not
    /// open. `progress` is told (bytes done, bytes in all) of each stage.
    ///
    /// # Errors
    /// If it can't be checked. Faults of the database are in the answer.
    pub fn verify(directory: impl AsRef<Path>, progress: impl FnMut(u64, u64) + 'static) -> Result<Verification> {
        Self::verify_within(directory, None, progress)
    }

    /// Checks a database as [`Database::verify`] does, with so many bytes of memory for its tables, which may be
    /// larger.
    ///
    /// # Errors
    /// As [`Database::verify`].
    pub fn verify_within(
        directory: impl AsRef<Path>,
        memory_limit_bytes: Option<u64>,
        progress: impl FnMut(u64, u64) + 'static,
    ) -> Result<Verification> {
        let progress = Some(Box::new(progress) as Box<_>);
        Self::verify_with(directory, OpenOptions { memory_limit_bytes, progress, ..OpenOptions::default() })
    }

    /// Checks a database as [`Database::verify`] does, with the options that concern it: the limit of memory, the
    /// receiver of progress, and the compiler for the expressions of indexes.
    ///
    /// # Errors
    /// As [`Database::verify`].
    pub fn verify_with(directory: impl AsRef<Path>, options: OpenOptions) -> Result<Verification> {
        verify(Arc::new(directory::existing(directory.as_ref())?), options)
    }

    /// Checks a database on a device. For tests.
    #[doc(hidden)]
    pub fn verify_on(device: Arc<dyn Device>, progress: impl FnMut(u64, u64) + 'static) -> Result<Verification> {
        verify(device, OpenOptions { progress: Some(Box::new(progress)), ..OpenOptions::default() })
    }
}

fn verify(device: Arc<dyn Device>, options: OpenOptions) -> Result<Verification> {
    let OpenOptions { memory_limit_bytes, progress, expressions, .. } = options;
    let mut progress = progress.unwrap_or_else(|| Box::new(|_, _| ()));
    let mut verification = Verification::default();
    verification.look_at_files(&device, memory_limit_bytes, &mut *progress)?;
    let options = OpenOptions {
        read_only: true,
        reads_pages_at_once: true,
        merge_threads: Some(0),
        memory_limit_bytes,
        expressions,
        progress: Some(progress),
        ..OpenOptions::default()
    };
    match Database::open_on(device, options) {
        Ok(db) => verification.look_at_tables(&db)?,
        // It was opened meanwhile, or it can't be looked at so; that is no fault.
        Err(error @ (Error::Log(durability::LogError::Locked { .. }) | Error::NoExpressions { .. })) => {
            return Err(error);
        }
        Err(error) => verification.faults.push(error.to_string()),
    }
    Ok(verification)
}

impl Verification {
    /// Every byte of the checkpoints, and the older of them as a whole.
    fn look_at_files(
        &mut self,
        device: &Arc<dyn Device>,
        memory_limit_bytes: Option<u64>,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<()> {
        let _lock = lock_to_read(&**device)?;
        self.faults.extend(BackupMark::read(&**device).err().map(|error| error.to_string()));
        let (checkpoints, found) = Checkpoints::open(device.clone(), Access::Read)?;
        let checkpoints = Arc::new(checkpoints);
        self.faults.extend(found.damaged.iter().map(ToString::to_string));
        let mut seen = 0;
        let damaged = checkpoints.verify(&mut |done, all| {
            seen = done;
            progress(done, all);
        });
        self.checkpoint_bytes = seen;
        self.faults.extend(damaged.iter().map(ToString::to_string));
        let options = OpenOptions::default().table_options();
        for manifest in found.manifests.iter().skip(1) {
            let told = |fault: String| format!("checkpoint {}: {fault}", manifest.number);
            let budget = budget_of(&checkpoints, memory_limit_bytes);
            let options = TableOptions { workers: 1, ..options };
            match restore(manifest, &checkpoints, options, &budget, PageReading::AtOnce, progress) {
                Ok(base) => base.tables.values().for_each(|table| {
                    let pages = rows::check_pages(table);
                    self.faults.extend(told_of(table, pages).into_iter().map(told));
                }),
                // Damage of a blob was found above.
                Err(Error::Checkpoint(_)) => {}
                Err(error) => self.faults.push(told(error.to_string())),
            }
        }
        Ok(())
    }

    fn look_at_tables(&mut self, db: &Database) -> Result<()> {
        // Nothing is given up meanwhile.
        let _view = db.read_view()?;
        let transactions = &db.shared.core.transactions;
        for table in db.shared.core.catalog.all_tables() {
            self.tables += 1;
            self.faults.extend(told_of(&table, rows::check_pages(&table)));
            self.collect(&table, |found, faults| rows::check_versions(&table, transactions, found, faults));
            if let Some(primary_key) = &table.primary_key {
                self.collect(&table, |found, faults| index::check(&table, transactions, primary_key, found, faults));
            }
            for index in table.indexes.all() {
                self.collect(&table, |found, faults| index::check(&table, transactions, &*index, found, faults));
            }
        }
        Ok(())
    }

    /// Adds what a check finds. Where the table can't be read, the check ends with that as its last fault.
    fn collect(&mut self, table: &TableData, check: impl FnOnce(&mut Self, &mut Vec<String>) -> Result<()>) {
        let mut faults = Vec::new();
        let ended = check(self, &mut faults);
        let told = told_of(table, faults);
        self.faults.extend(told);
        self.faults.extend(ended.err().map(|error| format!("\"{}\": {error}", table.name)));
    }
}

/// Faults of a table, each with its name; of very many only the first.
fn told_of(table: &TableData, mut faults: Vec<String>) -> Vec<String> {
    let more = faults.len().saturating_sub(FAULTS_MAX);
    faults.truncate(FAULTS_MAX);
    faults.extend((more > 0).then(|| format!("{more} more of this kind")));
    faults.into_iter().map(|fault| format!("\"{}\": {fault}", table.name)).collect()
}
