//! Images of indexes in a checkpoint.
//!
//! ```text
//! entries, as a walk lists them     run | run | run | ...     a blob each of RUN_ENTRIES, or some more
//! directory                         first entry and place of each run, of an index in order
//! ```
//!
//! Images are taken after those of the table's ranges: all that these have was counted by then, and what comes later is in the log
//! (`keys/image.rs` says which ranges are behind). The walk pins the epoch a step at a time and stops no writer.
//!
//! An image that a former checkpoint has is kept while few ranges are behind ([`IndexImage::is_close`]), so that an index that
//! nobody writes to costs nothing, and one that grows is written anew each time it has grown by that part. It is kept as well while
//! the index was not used since the database was opened. Of an index of which blocks are away, those to which nothing has come are
//! kept where they are: what is written is about what is in memory. A hash table has none, as no walk through it is sure to meet all that
//! is there.
use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;

use durability::{CheckpointError, CheckpointWriter, Checkpoints};
use lineage::PageSource;
use serde::{Deserialize, Serialize};
use types::{BlobRef, DataType};

use crate::keys::blocks::{BlockPlace, Blocks, Counting, bounds_of};
use crate::keys::data::IndexData;
use crate::keys::directory::{read_directory, write_directory};
use crate::keys::entries::Entry;
use crate::keys::image::{ImageRun, IndexImage};
use crate::keys::order::{Bounds, Direction, beside_all};
use crate::keys::runs::write_run;
use crate::state::core::Core;
use crate::state::table_data::TableData;

/// Entries of a run of an index in order, if a range of its table has no fewer: what comes in, and leaves, together.
const RUN_ENTRIES: usize = 1 << 12;
/// Entries of a run of another index, which comes in as a whole.
const UNORDERED_ENTRIES: usize = 1 << 16;
/// A database that is closed takes a checkpoint for the sake of an index without an image if its table has room for so many records:
/// to fill it from these would take longer than about a tenth of a second.
const RECORDS_AT_REST: usize = 1 << 20;

/// File, offset, length and checksum of a blob.
type BlobPlace = (u64, u64, u32, u32);

/// An image of an index: where its directory is, or, if it has none, each run; and the ranges that are behind.
#[derive(Serialize, Deserialize)]
pub(crate) struct ImageContents {
    /// `None` is the primary key's
    #[serde(default, skip_serializing_if = "Option::is_none")]
    index: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    runs: Vec<BlobPlace>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    directory: Option<BlobPlace>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    behind: BTreeSet<usize>,
    /// whether both zeros of a float have one key in it, and so have all NaN; older images say nothing of it
    #[serde(default)]
    floats_are_equal: bool,
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
    (writer, source): (&mut CheckpointWriter<'_>, &Arc<dyn PageSource>),
    taken: &mut Vec<TakenImage>,
) -> Result<Vec<ImageContents>, CheckpointError> {
    let primary = table.primary_key.iter().map(|primary_key| (None, &primary_key.index));
    let others = others.iter().map(|index| (Some(index.definition.name.clone()), index));
    let mut contents = Vec::new();
    for (name, index) in primary.chain(others) {
        let (mut image, is_unchanged) = take_one(table, index, writer)?;
        image.iter_mut().for_each(|image| image.source = Some(source.clone()));
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
        if (!is_filled || IndexImage::is_close(&behind, ranges))
            && let Some((runs, directory)) = keep(&former, writer)?
        {
            return Ok((Some(IndexImage { runs, directory, behind, counts, ..former }), true));
        }
    }
    if !is_filled || ranges == 0 || !has_images(index) {
        return Ok((None, !is_filled));
    }
    let Some((runs, directory)) = write(index, RUN_ENTRIES.min(table.storage.range_records()), writer)? else {
        return Ok((None, false));
    };
    Ok((Some(IndexImage { runs, directory, counts, ..IndexImage::default() }), false))
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

/// The runs of an image, and their directory.
type Written = (Vec<ImageRun>, Option<BlobRef>);

/// Makes the runs of an earlier checkpoint some of this one; `None` where one is not there.
fn keep(former: &IndexImage, writer: &mut CheckpointWriter<'_>) -> Result<Option<Written>, CheckpointError> {
    let mut keep = |blob: BlobRef| keep_one(blob, writer);
    let (mut kept, mut is_in_place) = (Vec::with_capacity(former.runs.len()), true);
    for run in &former.runs {
        let Some(blob) = keep(run.blob)? else { return Ok(None) };
        is_in_place &= blob == run.blob;
        kept.push(ImageRun { blob, ..run.clone() });
    }
    debug_assert_eq!(kept.len(), former.runs.len(), "invariant 8: an image has lost a run");
    let directory = match former.directory {
        Some(directory) if is_in_place => keep(directory)?,
        _ => None,
    };
    match directory {
        Some(directory) => Ok(Some((kept, Some(directory)))),
        None => Ok(Some(with_directory(kept, writer)?)),
    }
}

/// Makes a run of an earlier checkpoint one of this one; `None` where it is not there.
fn keep_one(blob: BlobRef, writer: &mut CheckpointWriter<'_>) -> Result<Option<BlobRef>, CheckpointError> {
    match writer.keep(blob) {
        Ok(blob) => Ok(Some(blob)),
        Err(CheckpointError::Corrupt { .. } | CheckpointError::NotThere { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Writes the directory of runs that are in order.
fn with_directory(runs: Vec<ImageRun>, writer: &mut CheckpointWriter<'_>) -> Result<Written, CheckpointError> {
    let firsts: Option<Vec<Entry>> = runs.iter().map(|run| run.first.clone()).collect();
    let places: Vec<BlobRef> = runs.iter().map(|run| run.blob).collect();
    let bytes = firsts.filter(|firsts| !firsts.is_empty()).map(|firsts| write_directory(&firsts, &places));
    debug_assert!(
        runs.iter().map(|run| &run.first).is_sorted(),
        "invariant 7: runs are to be found by their first entries"
    );
    let directory = bytes.map(|bytes| writer.put(&bytes)).transpose()?;
    Ok((runs, directory))
}

/// Puts entries as runs; those of an index in order with their first entries.
fn put(
    entries: &[Entry],
    first: impl Fn(&Entry) -> Option<Entry>,
    writer: &mut CheckpointWriter<'_>,
    runs: &mut Vec<ImageRun>,
) -> Result<(), CheckpointError> {
    let (mut done, mut bytes) = (0, Vec::new());
    while done < entries.len() {
        bytes.clear();
        let first = first(&entries[done]);
        done += write_run(&entries[done..], &mut bytes);
        runs.push(ImageRun { first, blob: writer.put(&bytes)? });
    }
    debug_assert!(runs.iter().all(|run| run.blob.len > 0), "invariant 8: a run without entries");
    Ok(())
}

/// Writes the image of an index; `None` where not all of it can be read.
fn write(
    index: &IndexData,
    run_entries: usize,
    writer: &mut CheckpointWriter<'_>,
) -> Result<Option<Written>, CheckpointError> {
    if !index.entries().is_ordered() {
        return write_unordered(index, writer).map(|runs| Some((runs, None)));
    }
    let mut runs = Vec::new();
    let is_read = match index.shared_blocks() {
        None => write_between(index, (Bound::Unbounded, Bound::Unbounded), run_entries, (writer, &mut runs))?,
        Some(blocks) => write_blocks(index, &blocks, run_entries, (writer, &mut runs))?,
    };
    if is_read { with_directory(runs, writer).map(Some) } else { Ok(None) }
}

/// Writes all entries of an index without order.
fn write_unordered(index: &IndexData, writer: &mut CheckpointWriter<'_>) -> Result<Vec<ImageRun>, CheckpointError> {
    // What is asked for parts of space is found at one time, and others may write meanwhile.
    let (mut runs, mut entries, mut written) = (Vec::new(), Vec::<Entry>::new(), Ok(()));
    index.entries().for_each(&mut |key, rids| {
        entries.extend(rids.iter().map(|rid| (key.clone(), *rid)));
        if entries.len() >= UNORDERED_ENTRIES && written.is_ok() {
            written = put(&entries, |_| None, writer, &mut runs);
            entries.clear();
        }
    });
    written?;
    put(&entries, |_| None, writer, &mut runs)?;
    Ok(runs)
}

/// Where runs go: to a checkpoint, and their places to a list.
type RunsOut<'o, 'w> = (&'o mut CheckpointWriter<'w>, &'o mut Vec<ImageRun>);

/// Writes what an index has in memory, with all that lies about it in its block, and keeps the other blocks. Returns whether all can be
/// read.
fn write_blocks(
    index: &IndexData,
    blocks: &Blocks,
    run_entries: usize,
    (writer, runs): RunsOut<'_, '_>,
) -> Result<bool, CheckpointError> {
    debug_assert!(runs.is_empty(), "invariant 7: runs before the first block");
    for block in 0..blocks.len() {
        let bounds = bounds_of(blocks, block);
        // What came to it since is in memory: while it is away there is nothing else.
        let is_untouched = |place: &BlockPlace| {
            let mut entries = Vec::new();
            let _more = index.entries().next(&bounds, Direction::Upward, 1, &mut entries);
            (entries.is_empty() && *blocks.with() == Counting::All).then_some(place.blob)
        };
        let kept = match blocks.while_away(block, is_untouched).flatten() {
            Some(blob) => keep_one(blob, writer)?,
            None => None,
        };
        match (kept, blocks.first(block)) {
            (Some(blob), Some(first)) => runs.push(ImageRun { first: Some(first.clone()), blob }),
            _ if !write_between(index, bounds, run_entries, (writer, runs))? => return Ok(false),
            _ => {}
        }
    }
    Ok(true)
}

/// Writes the entries of an index in order between some bounds, about `run_entries` in a run. Returns whether all can be read.
fn write_between(
    index: &IndexData,
    (mut low, high): Bounds,
    run_entries: usize,
    (writer, runs): RunsOut<'_, '_>,
) -> Result<bool, CheckpointError> {
    debug_assert!(run_entries > 0, "invariant 8: runs without entries would never end");
    // All records of a key that are listed are in one run.
    let are_listed = |entry: &Entry| index.entries().are_listed(&entry.0);
    let first = |entry: &Entry| match are_listed(entry) {
        true => Some(beside_all(&entry.0, false)),
        false => Some(entry.clone()),
    };
    let (mut entries, mut has_more) = (Vec::<Entry>::new(), true);
    while has_more || !entries.is_empty() {
        if has_more && entries.len() < 2 * run_entries {
            match index.next(&(low, high.clone()), Direction::Upward, run_entries, &mut entries) {
                Ok(more) => has_more = more,
                Err(_) => return Ok(false),
            }
            low = entries.last().map_or(Bound::Unbounded, |last| Bound::Excluded(last.clone()));
            continue;
        }
        // The last two are of one length, or one, so that a block that grows does not leave a short one behind.
        let count = match entries.len() {
            left if has_more || left >= 2 * run_entries => run_entries,
            left if 2 * left > 3 * run_entries => left.div_ceil(2),
            left => left,
        };
        let may_end = |at: &usize| entries[*at].0 != entries[at - 1].0 || !are_listed(&entries[*at]);
        let count = (count..entries.len()).find(may_end).unwrap_or(entries.len());
        put(&entries[..count], first, writer, runs)?;
        entries.drain(..count);
    }
    Ok(true)
}

fn place_of(blob: &BlobRef) -> BlobPlace {
    (blob.file, blob.offset, blob.len, blob.checksum)
}

fn blob_at(&(file, offset, len, checksum): &BlobPlace) -> BlobRef {
    BlobRef { file, offset, len, checksum }
}

impl ImageContents {
    fn new(index: Option<String>, image: &IndexImage) -> ImageContents {
        let directory = image.directory.as_ref().map(place_of);
        let runs = match directory {
            Some(_) => Vec::new(),
            None => image.runs.iter().map(|run| place_of(&run.blob)).collect(),
        };
        ImageContents { index, runs, directory, behind: image.behind.clone(), floats_are_equal: true }
    }

    /// Tells the index that it has this image, if the table has the index.
    pub(super) fn restore(&self, table: &TableData, checkpoints: &Checkpoints, source: &Arc<dyn PageSource>) {
        let index = match &self.index {
            None => table.primary_key.as_ref().map(|primary_key| primary_key.index.clone()),
            Some(name) => table.indexes.which(|index| index.definition.name == *name).into_iter().next(),
        };
        let Some(index) = index else { return };
        debug_assert!(index.imaged.image().is_none(), "invariant 7: {:?} has two images", self.index);
        let types = index.columns().iter().map(|column| table.schema.columns()[*column].data_type);
        if index.definition.is_computed() && !self.floats_are_equal || !self.has_keys_of(types) {
            // It is filled from the table.
            return;
        }
        match self.read_runs(checkpoints) {
            Ok(runs) => index.imaged.set(Some(IndexImage {
                runs,
                directory: self.directory.as_ref().map(blob_at),
                behind: self.behind.clone(),
                source: Some(source.clone()),
                ..IndexImage::default()
            })),
            Err(why) => eprintln!(
                "lstore: index \"{}\" of \"{}\" will be filled from the table, not from its image: {why}",
                index.definition.name, table.name
            ),
        }
    }

    /// Whether its keys are those that columns of these types have by now.
    fn has_keys_of(&self, mut types: impl Iterator<Item = DataType>) -> bool {
        self.floats_are_equal || !types.any(|data_type| matches!(data_type, DataType::Real | DataType::Double))
    }

    fn read_runs(&self, checkpoints: &Checkpoints) -> Result<Vec<ImageRun>, String> {
        match &self.directory {
            None => Ok(self.runs.iter().map(|run| ImageRun { first: None, blob: blob_at(run) }).collect()),
            Some(directory) => {
                let bytes = checkpoints.read(blob_at(directory)).map_err(|error| error.to_string())?;
                let runs = read_directory(&bytes)?.into_iter();
                Ok(runs.map(|(first, blob)| ImageRun { first: Some(first), blob }).collect())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_of_floats_with_two_zeros_are_made_anew() {
        let older: ImageContents = serde_json::from_str("{}").unwrap();
        let written = ImageContents::new(None, &IndexImage::default());
        for (data_type, has_keys) in [(DataType::BigInt, true), (DataType::Real, false), (DataType::Double, false)] {
            assert_eq!(older.has_keys_of([DataType::TEXT, data_type].into_iter()), has_keys, "{data_type}");
            assert!(written.has_keys_of([data_type].into_iter()));
        }
        let read: ImageContents = serde_json::from_str(&serde_json::to_string(&written).unwrap()).unwrap();
        assert!(read.floats_are_equal, "it is written");
    }
}
