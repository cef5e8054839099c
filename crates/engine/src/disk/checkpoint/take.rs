//! Taking a checkpoint, one range after the other, while transactions go on.
use std::sync::Arc;
use std::time::{Duration, Instant};

use durability::{CheckpointError, CheckpointWriter, Checkpoints, Device, Log, LogError, Lsn, PublishedCheckpoint};
use lineage::{BlobSink, PageSource, RangeImage};
use txn::{TransactionState, TransactionTable};
use types::{BlobRef, Timestamp};

use super::indexes::TakenImage;
use super::manifest::{Contents, RangeContents, TableContents};
use super::{arrays, indexes};
use crate::disk::page_source::source_of;
use crate::error::{Error, Result};
use crate::keys::data::Indexes;
use crate::state::catalog::NamedSince;
use crate::state::core::Core;
use crate::state::table_data::TableData;
use crate::terms::settings::TableSettings;
use crate::terms::wall_clock::{Micros, wall_time};

/// The work of a checkpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CheckpointReport {
    /// counts the checkpoints of the database
    pub number: u64,
    /// the log is read from the commit after this one when the database is opened
    pub from: Timestamp,
    /// ranges of all tables
    pub ranges: u64,
    /// those to which nothing had happened since the checkpoint before
    pub unchanged_ranges: u64,
    /// indexes whose image was written, the former one being too far behind
    pub written_indexes: u64,
    /// bytes written
    pub written_bytes: u64,
    /// bytes that belong to the checkpoint, written now or before
    pub live_bytes: u64,
    /// how long it took
    pub time: Duration,
}

/// The parts that taking a checkpoint needs.
pub(crate) struct CheckpointParts {
    pub(super) core: Arc<Core>,
    pub(crate) log: Arc<Log>,
    pub(crate) checkpoints: Arc<Checkpoints>,
    /// Where all of it is.
    pub(crate) device: Arc<dyn Device>,
}

/// The images of a checkpoint.
struct CheckpointImages {
    images: Vec<RangeImage>,
    indexes: Vec<TakenImage>,
    /// the commit from which on the log is needed
    low: Timestamp,
    /// the commit of the newest image
    high: Timestamp,
}

struct Sink<'s, 'w>(&'s mut CheckpointWriter<'w>);

impl BlobSink for Sink<'_, '_> {
    type Error = CheckpointError;

    fn put(&mut self, bytes: &[u8]) -> Result<BlobRef, CheckpointError> {
        self.0.put(bytes)
    }

    fn keep(&mut self, blob: BlobRef) -> Result<Option<BlobRef>, CheckpointError> {
        match self.0.keep(blob) {
            Err(CheckpointError::Corrupt { .. }) => Ok(None),
            // Its file was given up before its columns became pages.
            Err(CheckpointError::NotThere { blob }) if blob.is_of_load() => Ok(None),
            outcome => outcome.map(Some),
        }
    }

    fn keep_damaged(&mut self, blob: BlobRef) -> Result<BlobRef, CheckpointError> {
        self.0.keep_in_place(blob)
    }
}

impl CheckpointParts {
    /// Takes one; the caller sees to it that there is no other meanwhile.
    pub(super) fn checkpoint(&self) -> Result<CheckpointReport> {
        let started = Instant::now();
        let transactions = &self.core.transactions.0;
        let (handle, at) = transactions.begin().map_err(|error| Error::TooManyTransactions(error.limit))?;
        let written = self.write(at);
        // Until here nothing that the snapshot sees was given up, dropped tables included.
        transactions.release(handle);
        let (published, CheckpointImages { images, indexes, low, .. }) = written?;
        debug_assert!(images.iter().all(|image| low <= image.at), "invariant 3: an image is from before {low:?}");
        debug_assert!(
            published.trim_below <= low.0 + 1,
            "invariant 8: the log is trimmed below {}, and needed from {low:?} on",
            published.trim_below
        );
        let ranges = images.len() as u64;
        let unchanged_ranges = images.iter().filter(|image| image.is_unchanged).count() as u64;
        let written_indexes = indexes.iter().filter(|image| image.is_written()).count() as u64;
        images.into_iter().for_each(RangeImage::published);
        indexes.into_iter().for_each(TakenImage::published);
        if published.trim_below > 0 {
            match self.log.trim(published.trim_below) {
                // The checkpoint is there all the same; the archiver tells, and the log waits for it.
                Ok(_) | Err(LogError::NotArchived { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(CheckpointReport {
            number: published.number,
            from: low,
            ranges,
            unchanged_ranges,
            written_indexes,
            written_bytes: published.put_bytes + published.copied_bytes,
            live_bytes: published.live_bytes,
            time: started.elapsed(),
        })
    }

    /// Puts the log on disk. Returns a time and the commit up to which everything is there; all that was committed by then
    /// is.
    pub(crate) fn put_on_disk(&self) -> Result<(Micros, Lsn)> {
        put_on_disk(&self.core, &self.log)
    }

    fn write(&self, at: Timestamp) -> Result<(PublishedCheckpoint, CheckpointImages)> {
        let core = &*self.core;
        await_published(&core.transactions.0, at);
        let meanings = core.catalog.meanings_at(at).without_temporary();
        let [present, gone] =
            [meanings.newest.clone().into_iter().collect(), meanings.gone()].map(|tables| seen(tables, at));
        let clock = core.clock.marks();
        let mut writer = self.checkpoints.begin()?;
        let mut taken = CheckpointImages { images: Vec::new(), indexes: Vec::new(), low: at, high: at };
        let source = source_of(&self.checkpoints);
        let tables = taken.take_tables(core, present, (&mut writer, &source))?;
        let gone = taken.take_tables(core, gone, (&mut writer, &source))?;
        let contents = Contents::new(at, core.catalog.next_table(), (tables, gone), &meanings, clock);
        // Not only up to the newest commit in an image: numbers that an image has passed must never be given again to
        // commits, which would be taken for a part of it.
        debug_assert_eq!(taken.low, at, "invariant 3: an image is from before the catalog");
        self.log.wait_stable(taken.high.0)?;
        debug_assert!(self.log.is_stable(taken.high.0), "invariant 8: the log goes to disk before the checkpoint");
        let published = writer.commit(taken.low.0, &contents.to_bytes())?;
        Ok((published, taken))
    }
}

/// See [`CheckpointParts::put_on_disk`].
pub(crate) fn put_on_disk(core: &Core, log: &Log) -> Result<(Micros, Lsn)> {
    let (time, newest) = (wall_time(), core.transactions.0.now());
    log.flush()?;
    loop {
        match log.wait_stable(newest.0) {
            // Its transaction has its number and is still being validated.
            Err(LogError::NotAppended { .. }) => std::thread::sleep(Duration::from_millis(1)),
            outcome => break outcome?,
        }
    }
    let stable = log.stable_lsn();
    debug_assert!(stable >= newest.0, "invariant 8: {newest:?} is not on disk, only {stable} is");
    Ok((time, stable))
}

/// A table with what is to be told of it as of the checkpoint's commit.
struct TableAtCheckpoint {
    name: String,
    named: NamedSince,
    settings: TableSettings,
    indexes: Indexes,
}

/// Looks at tables before their images are taken, which may last.
fn seen(tables: Vec<(String, NamedSince)>, at: Timestamp) -> Vec<TableAtCheckpoint> {
    let look = |(name, named): (String, NamedSince)| {
        let (settings, indexes) = (named.table.settings(), named.table.indexes.made_by(at));
        TableAtCheckpoint { name, named, settings, indexes }
    };
    tables.into_iter().map(look).collect()
}

impl CheckpointImages {
    fn take_tables(
        &mut self,
        core: &Core,
        tables: Vec<TableAtCheckpoint>,
        (writer, source): (&mut CheckpointWriter<'_>, &Arc<dyn PageSource>),
    ) -> Result<Vec<TableContents>> {
        let mut taken = Vec::with_capacity(tables.len());
        for TableAtCheckpoint { name, named: NamedSince { table, from }, settings, indexes } in tables {
            let ranges = self.take(core, &table, &mut Sink(writer))?;
            let array = arrays::take(core, &table, &mut |bytes| writer.put(bytes))?;
            self.high = self.high.max(array.as_ref().map_or(self.high, |array| Timestamp(array.at)));
            let images = indexes::take(&table, &indexes, (writer, source), &mut self.indexes)?;
            taken.push(TableContents::new((name, from), settings, &table, &indexes, (ranges, images, array)));
        }
        Ok(taken)
    }

    fn take(&mut self, core: &Core, data: &TableData, sink: &mut Sink<'_, '_>) -> Result<Vec<RangeContents>> {
        let mut ranges = Vec::new();
        for range in 0..data.storage.range_count() {
            let now = || core.transactions.0.now();
            let image = data.storage.image_range(range, &core.transactions, now, sink)?;
            self.low = self.low.min(image.at);
            self.high = self.high.max(image.at);
            ranges.push(RangeContents::new(image.at, image.blob));
            self.images.push(image);
        }
        Ok(ranges)
    }
}

/// Waits until every transaction that committed at or before `at` has given its slot up: until then what it did to the
/// catalog may not be published.
fn await_published(transactions: &TransactionTable, at: Timestamp) {
    for running in transactions.list() {
        loop {
            match transactions.state(running.id) {
                TransactionState::Committed(committed) if committed <= at => std::thread::yield_now(),
                TransactionState::Prepared(prepared) if prepared <= at => drop(transactions.await_decision(running.id)),
                TransactionState::Active
                | TransactionState::Prepared(_)
                | TransactionState::Committed(_)
                | TransactionState::Aborted
                | TransactionState::Released => break,
            }
        }
    }
}
