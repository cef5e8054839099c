//! Images of indexes in a checkpoint.
//!
//! ```text
//! entries, as a walk lists them     run | run | run | ...     a blob each of RUN_ENTRIES, or some more
//! ```
//!
//! Images are taken after those of the table's ranges: all that these have was counted by then, and what comes later is in the log
//! (`keys/image.rs` says which ranges are behind). The walk pins the epoch a step at a time and stops no writer.
//!
//! An image that a former checkpoint has is kept while at most one in [`BEHIND_SHARE`] ranges is behind, so that an index that
//! nobody writes to costs nothing, and one that grows is written anew each time it has grown by that part. It is kept as well while
//! the index was not used since the database was opened. A hash table has none, as no walk through it is sure to meet all that
//! is there.
use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;

use durability::{CheckpointError, CheckpointWriter};
use lineage::PageSource;
use serde::{Deserialize, Serialize};
use types::BlobRef;

use crate::keys::data::IndexData;
use crate::keys::entries::Entry;
use crate::keys::image::IndexImage;
use crate::keys::order::Direction;
use crate::keys::runs::write_run;
use crate::state::core::Core;
use crate::state::table_data::TableData;

/// Entries of a run.
const RUN_ENTRIES: usize = 1 << 16;
/// A database that is closed takes a checkpoint for the sake of an index without an image if its table has room for so many records:
/// to fill it from these would take longer than about a tenth of a second.
const RECORDS_AT_REST: usize = 1 << 20;
/// An image is kept while no larger part of the table's ranges is behind.
const BEHIND_SHARE: usize = 8;

/// An image of an index: file, offset, length and checksum of each run, and the ranges that are behind.
#[derive(Serialize, Deserialize)]
pub(crate) struct ImageContents {
    /// `None` is the primary key's
    #[serde(default, skip_serializing_if = "Option::is_none")]
    index: Option<String>,
    runs: Vec<(u64, u64, u32, u32)>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    behind: BTreeSet<usize>,
}

/// The image of an index as part of a checkpoint that is being written.
pub(super) struct TakenImage {
    index: Arc<IndexData>,
    image: Option<IndexImage>,
    is_unchanged: bool,
}

impl TakenImage {
    /// Whether there is one that no former checkpoint has.
    pub(super) fn is_written(&self) -> bool {
        self.image.is_some() && !self.is_unchanged
    }

    /// The checkpoint that has it can be found after a crash.
    pub(super) fn published(self) {
        match self.is_unchanged {
            true => self.index.imaged.set_kept(self.image),
            false => self.index.imaged.set(self.image),
        }
    }
}

/// Takes the images of a table's indexes; `others` are those beside the primary key's.
pub(super) fn take(
    table: &TableData,
    others: &[Arc<IndexData>],
    writer: &mut CheckpointWriter<'_>,
    taken: &mut Vec<TakenImage>,
) -> Result<Vec<ImageContents>, CheckpointError> {
    let primary = table.primary_key.iter().map(|primary_key| (None, &primary_key.index));
    let others = others.iter().map(|index| (Some(index.definition.name.clone()), index));
    let mut contents = Vec::new();
    for (name, index) in primary.chain(others) {
        let (image, is_unchanged) = take_one(table, index, writer)?;
        contents.extend(image.as_ref().map(|image| ImageContents::new(name, image)));
        taken.push(TakenImage { index: index.clone(), image, is_unchanged });
    }
    debug_assert!(contents.len() <= taken.len(), "invariant 7: an index has two images");
    Ok(contents)
}

/// The image of an index, if it is to have one, and whether that is the former one.
fn take_one(
    table: &TableData,
    index: &IndexData,
    writer: &mut CheckpointWriter<'_>,
) -> Result<(Option<IndexImage>, bool), CheckpointError> {
    let ranges = table.storage.range_count();
    // Before the walk, and before the look at what the index has.
    let (counts, is_filled) = (index.imaged.counts(ranges), index.is_filled());
    if let Some(former) = index.imaged.image() {
        let behind = former.behind(&counts);
        if (!is_filled || behind.len() * BEHIND_SHARE <= ranges)
            && let Some(runs) = keep(&former.runs, writer)?
        {
            return Ok((Some(IndexImage { runs, behind, counts, ..former }), true));
        }
    }
    if !is_filled || ranges == 0 || !has_images(index) {
        return Ok((None, !is_filled));
    }
    let runs = write(index, writer)?;
    Ok((Some(IndexImage { runs, behind: BTreeSet::new(), counts, source: None }), false))
}

/// Whether an index of this kind has images.
fn has_images(index: &IndexData) -> bool {
    let entries = index.entries_so_far();
    entries.is_ordered() || entries.space().is_some()
}

/// Whether closing the database leaves an index to be filled from its table where that takes long.
pub(super) fn is_due(core: &Core) -> bool {
    let lacks_image = |index: &Arc<IndexData>| index.is_filled() && has_images(index) && index.imaged.image().is_none();
    let lasts = |table: &TableData| table.storage.range_count() * table.storage.range_records() >= RECORDS_AT_REST;
    let tables = core.catalog.all_tables();
    tables
        .iter()
        .any(|table| !table.is_temporary && lasts(table) && table.all_indexes().any(|index| lacks_image(&index)))
}

/// Makes the runs of an earlier checkpoint some of this one; `None` where one is not there.
fn keep(runs: &[BlobRef], writer: &mut CheckpointWriter<'_>) -> Result<Option<Vec<BlobRef>>, CheckpointError> {
    let mut kept = Vec::with_capacity(runs.len());
    for run in runs {
        match writer.keep(*run) {
            Ok(run) => kept.push(run),
            Err(CheckpointError::Corrupt { .. } | CheckpointError::NotThere { .. }) => return Ok(None),
            Err(error) => return Err(error),
        }
    }
    debug_assert_eq!(kept.len(), runs.len(), "invariant 8: an image has lost a run");
    Ok(Some(kept))
}

fn write(index: &IndexData, writer: &mut CheckpointWriter<'_>) -> Result<Vec<BlobRef>, CheckpointError> {
    let (mut runs, mut bytes) = (Vec::new(), Vec::new());
    let mut put = |entries: &[Entry]| {
        let mut done = 0;
        while done < entries.len() {
            bytes.clear();
            done += write_run(&entries[done..], &mut bytes);
            runs.push(writer.put(&bytes)?);
        }
        Ok(())
    };
    let mut entries = Vec::<Entry>::new();
    if !index.entries().is_ordered() {
        // What is asked for parts of space is found at one time, and others may write meanwhile.
        index.entries().for_each(&mut |key, rids| entries.extend(rids.iter().map(|rid| (key.clone(), *rid))));
        entries.chunks(RUN_ENTRIES).try_for_each(put)?;
        return Ok(runs);
    }
    let (mut low, mut has_more) = (Bound::Unbounded, true);
    while has_more {
        entries.clear();
        has_more = index.entries().next(&(low, Bound::Unbounded), Direction::Upward, RUN_ENTRIES, &mut entries);
        low = entries.last().map_or(Bound::Unbounded, |last| Bound::Excluded(last.clone()));
        put(&entries)?;
    }
    debug_assert!(runs.iter().all(|run| run.len > 0), "invariant 8: a run without entries");
    Ok(runs)
}

impl ImageContents {
    fn new(index: Option<String>, image: &IndexImage) -> ImageContents {
        let run = |blob: &BlobRef| (blob.file, blob.offset, blob.len, blob.checksum);
        ImageContents { index, runs: image.runs.iter().map(run).collect(), behind: image.behind.clone() }
    }

    /// Tells the index that it has this image, if the table has the index.
    pub(super) fn restore(&self, table: &TableData, source: &Arc<dyn PageSource>) {
        let index = match &self.index {
            None => table.primary_key.as_ref().map(|primary_key| primary_key.index.clone()),
            Some(name) => table.indexes.which(|index| index.definition.name == *name).into_iter().next(),
        };
        let run = |&(file, offset, len, checksum): &(u64, u64, u32, u32)| BlobRef { file, offset, len, checksum };
        let image = IndexImage {
            runs: self.runs.iter().map(run).collect(),
            behind: self.behind.clone(),
            counts: Vec::new(),
            source: Some(source.clone()),
        };
        if let Some(index) = index {
            debug_assert!(index.imaged.image().is_none(), "invariant 7: {:?} has two images", self.index);
            index.imaged.set(Some(image));
        }
    }
}
