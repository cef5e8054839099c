//! Getting tables back from a checkpoint, many ranges at a time.
//!
//! Of a range its image is read: what is not in a page of its own, and an outline of each page. Pages come in when they are first used,
//! unless all are to be read at once ([`PageReading`]). Indexes have no entries yet: they are told where their images are, and filled
//! when they are first used (`state/index_build.rs`).
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use durability::{CheckpointError, Checkpoints, Manifest};
use lineage::{BlobSource, MemoryBudget, PageReading, RestoreError, TableOptions};
use parking_lot::Mutex;
use types::{BlobRef, Rid, Timestamp};

use super::arrays;
use super::manifest::{Contents, FormerContents, TableContents};
use crate::disk::page_source::source_of;
use crate::error::{Error, Result};
use crate::state::table_data::TableData;
use crate::terms::former::{GivenUp, NameMeaning};
use crate::terms::table_name::TableId;
use crate::terms::wall_clock::Micros;

/// The state with which recovery begins, from a checkpoint; without one it is empty.
#[derive(Default)]
pub(crate) struct Base {
    /// those that are gone included
    pub(crate) tables: HashMap<TableId, Arc<TableData>>,
    /// their names, and since when
    pub(crate) names: HashMap<TableId, (String, Timestamp)>,
    pub(crate) former: Vec<(String, NameMeaning<Arc<TableData>>)>,
    pub(crate) given_up: GivenUp,
    /// up to which commit the images of a table's ranges go
    ranges_at: HashMap<TableId, Vec<Timestamp>>,
    /// up to which commit the images of array tables go
    arrays_at: HashMap<TableId, Timestamp>,
    /// up to which commit the catalog is known
    pub(crate) catalog_at: Timestamp,
    /// all before and at this commit is in the images
    pub(crate) low: Timestamp,
    pub(crate) next_table: TableId,
    pub(crate) clock: Vec<(Micros, Timestamp)>,
}

impl Base {
    /// Whether the image of an array table has the commit.
    pub(crate) fn has_array(&self, table: TableId, at: Timestamp) -> bool {
        self.arrays_at.get(&table).is_some_and(|image| at <= *image)
    }

    /// Whether the image of the record's range has the commit.
    pub(crate) fn has(&self, table: TableId, rid: Rid, at: Timestamp) -> bool {
        self.ranges_at.get(&table).and_then(|ranges| ranges.get(rid.range())).is_some_and(|image| at <= *image)
    }
}

struct Source<'c>(&'c Checkpoints);

impl BlobSource for Source<'_> {
    type Error = CheckpointError;

    fn get(&self, blob: BlobRef) -> Result<Vec<u8>, CheckpointError> {
        self.0.read(blob)
    }
}

/// A range that is to be restored.
struct Piece {
    data: Arc<TableData>,
    range: usize,
    blob: BlobRef,
}

/// Builds the tables of a checkpoint. `progress` is told the bytes done and the bytes in all.
///
/// # Errors
/// [`Error::Checkpoint`] and [`Error::BadCheckpoint`] if something of it can't be read or is damaged; nothing is lost by trying
/// another one.
pub(crate) fn restore(
    manifest: &Manifest,
    checkpoints: &Arc<Checkpoints>,
    options: TableOptions,
    budget: &Arc<MemoryBudget>,
    reading: PageReading,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Base> {
    let contents = Contents::from_bytes(&manifest.payload)?;
    let clock = contents.clock.iter().map(|(time, at)| (*time, Timestamp(*at))).collect();
    let mut base = Base {
        catalog_at: Timestamp(contents.catalog_at),
        low: Timestamp(manifest.low),
        next_table: contents.next_table,
        clock,
        ..Base::default()
    };
    let (mut pieces, source) = (Vec::new(), source_of(checkpoints));
    for table in contents.all_tables() {
        let options = table.options(options);
        let (id, schema) = (table.id, table.schema.clone());
        let data = Arc::new(TableData::new(id, &table.name, schema, table.settings.clone(), options, budget)?);
        if table.has_changed_keys {
            data.note_changed_key();
        }
        table.indexes.iter().try_for_each(|index| data.add_known_index(index.clone()))?;
        table.images.iter().for_each(|image| image.restore(&data, checkpoints, &source));
        data.storage.restore_horizon(Timestamp(table.horizon));
        let piece = |(range, contents): (usize, &super::manifest::RangeContents)| Piece {
            data: data.clone(),
            range,
            blob: contents.blob(),
        };
        pieces.extend(table.ranges.iter().enumerate().map(piece));
        base.ranges_at.insert(id, table.ranges.iter().map(|range| Timestamp(range.at)).collect());
        if let Some(array) = &table.array {
            arrays::restore(&data, array, &mut |blob| checkpoints.read(blob))?;
            base.arrays_at.insert(id, Timestamp(array.at));
        }
        base.tables.insert(id, data);
    }
    let name = |table: &TableContents| (table.id, (table.name.clone(), Timestamp(table.from)));
    base.names = contents.tables.iter().map(name).collect();
    base.former = contents.former.iter().filter_map(|former| meaning(&base.tables, former)).collect();
    base.given_up = contents.given_up.given_up();
    restore_pieces(&pieces, checkpoints, reading, &mut |done| {
        let total = manifest.live().1;
        progress(total * done as u64 / pieces.len().max(1) as u64, total);
    })?;
    Ok(base)
}

/// The meaning of a name; a table without a name is gone since its last one ended.
fn meaning(
    tables: &HashMap<TableId, Arc<TableData>>,
    former: &FormerContents,
) -> Option<(String, NameMeaning<Arc<TableData>>)> {
    let (from, to) = (Timestamp(former.from), Timestamp(former.to));
    tables.get(&former.table).map(|table| (former.name.clone(), NameMeaning { table: table.clone(), from, to }))
}

/// Restores ranges on all processors; `tell` how many are done.
fn restore_pieces(
    pieces: &[Piece],
    checkpoints: &Checkpoints,
    reading: PageReading,
    tell: &mut dyn FnMut(usize),
) -> Result<()> {
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(None));
    let step = || {
        let piece = pieces.get(next.fetch_add(1, Ordering::Relaxed))?;
        if failed.lock().is_some() {
            return None;
        }
        if let Err(error) = piece.restore(checkpoints, reading) {
            failed.lock().get_or_insert(error);
        }
        Some(())
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(pieces.len());
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(|| while step().is_some() {});
        }
        while step().is_some() {
            tell(next.load(Ordering::Relaxed).min(pieces.len()));
        }
    });
    let failed = failed.into_inner();
    debug_assert!(failed.is_some() || next.into_inner() >= pieces.len(), "invariant 3: a range was left out");
    failed.map_or(Ok(()), Err)
}

impl Piece {
    fn restore(&self, checkpoints: &Checkpoints, reading: PageReading) -> Result<()> {
        let Piece { data, range, blob } = self;
        let restored = data.storage.restore_range(*range, *blob, &Source(checkpoints), (reading, &data.name));
        restored.map_err(|error| match error {
            RestoreError::Source { error, .. } => Error::Checkpoint(error),
            other => Error::BadCheckpoint(format!("range {range} of \"{}\": {other}", data.name)),
        })?;
        debug_assert!(data.storage.range_count() > *range, "range {range} was restored and is not there");
        Ok(())
    }
}
