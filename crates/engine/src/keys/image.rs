//! What checkpoints have of an index: an image of its entries, and which entries the image may lack.
//!
//! ```text
//! image     runs of entries (see `runs`), in the order of the index, of one walk that stopped no writer; where they are (`directory`)
//! counts    for each range of the table how many entries of its records have come: those before the walk are in the image
//! behind    ranges whose records have, or may have, entries that the image lacks
//! ```
//!
//! A writer enters a key and counts it then, before it commits. So the image has all entries that were counted before its walk, and a
//! range whose count has not changed since has no other. The ranges that are *behind* are those with another count, and those that
//! were behind an image that was loaded: of these what the table has is entered, and what the image says of them is left out. So an
//! image need not be written anew as long as few are.
//!
//! Entries that an image has beyond those that versions explain are as harmless as in the index: of updates that were rolled back or
//! given up, and of records that did not survive a crash. Such a record has no version, and its slot none ever; a slot that was not
//! there after the crash is taken again by an insertion, which counts, so that its range is behind.
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use lineage::PageSource;
use parking_lot::Mutex;
use sync::Directory;
use types::BlobRef;

use super::blocks::{BlockPlace, Counting};
use super::entries::Entry;

/// An image is kept while no larger part of the table's ranges is behind.
const BEHIND_SHARE: usize = 8;

/// A run of an image.
#[derive(Clone)]
pub(crate) struct ImageRun {
    /// the least entry that may be in it; `None` where the index has no order
    pub(crate) first: Option<Entry>,
    pub(crate) blob: BlobRef,
}

/// The image of an index in the newest checkpoint.
#[derive(Clone, Default)]
pub(crate) struct IndexImage {
    pub(crate) runs: Vec<ImageRun>,
    /// where their first entries and places are written; `None` where the index has no order
    pub(crate) directory: Option<BlobRef>,
    /// ranges that were behind when it was written, or kept
    pub(crate) behind: BTreeSet<usize>,
    /// by range, how many entries had come then; none of those that are not named
    pub(crate) counts: Vec<u64>,
    /// which of its entries count
    pub(crate) counting: Counting,
    /// where the runs are read
    pub(crate) source: Option<Arc<dyn PageSource>>,
}

impl IndexImage {
    /// The ranges that are behind it, where so many entries have come by now.
    pub(crate) fn behind(&self, counts: &[u64]) -> BTreeSet<usize> {
        let known = |range: usize| self.counts.get(range).copied().unwrap_or(0);
        debug_assert!(self.counts.len() <= counts.len(), "a table loses no range");
        let changed = counts.iter().enumerate().filter(|(range, count)| known(*range) != **count);
        self.behind.iter().copied().chain(changed.map(|(range, _)| range)).collect()
    }

    /// Whether so few of the table's ranges are behind that it need not be written anew.
    pub(crate) fn is_close(behind: &BTreeSet<usize>, ranges: usize) -> bool {
        behind.len() * BEHIND_SHARE <= ranges
    }

    /// Where a run is read; `None` if no checkpoint has it any more.
    pub(crate) fn place(&self, blob: BlobRef) -> Option<BlockPlace> {
        Some(BlockPlace { blob, held: self.source.as_ref()?.hold(blob)? })
    }

    /// Its runs as blocks that are read when they are needed: of an index in order, all of whose runs are there.
    pub(crate) fn blocks(&self) -> Option<Vec<(Entry, BlockPlace)>> {
        self.runs.iter().map(|run| Some((run.first.clone()?, self.place(run.blob)?))).collect()
    }
}

/// The image of an index, if there is one, and what came since.
#[derive(Default)]
pub(crate) struct Imaged {
    counts: Directory<AtomicU64>,
    image: Mutex<Option<IndexImage>>,
    /// whether the index has that image's blocks
    is_served: AtomicBool,
}

impl Imaged {
    /// Notes that entries of records of a range have come: after they were entered, and before their transaction commits.
    #[inline]
    pub(crate) fn note(&self, range: usize) {
        let count = self.counts.get(range).unwrap_or_else(|| self.counts.get_or_init(range, AtomicU64::default));
        count.fetch_add(1, Ordering::Release);
    }

    /// By range, how many entries have come: what the index had before the call is counted.
    pub(crate) fn counts(&self, ranges: usize) -> Vec<u64> {
        (0..ranges).map(|range| self.counts.get(range).map_or(0, |count| count.load(Ordering::Acquire))).collect()
    }

    /// The image of the newest checkpoint.
    pub(crate) fn image(&self) -> Option<IndexImage> {
        self.image.lock().clone()
    }

    /// Says which one that is from now on; `None` where the one that there was is damaged.
    pub(crate) fn set(&self, image: Option<IndexImage>) {
        debug_assert!(
            image.as_ref().is_none_or(|image| image.runs.iter().all(|run| run.blob.len > 0)),
            "a run without bytes"
        );
        let mut known = self.image.lock();
        *known = image;
        self.is_served.store(false, Ordering::Relaxed);
    }

    /// Notes which entries of the image count, when it is first used after it was read from a checkpoint.
    pub(crate) fn count_only(&self, counting: Counting) {
        self.image.lock().iter_mut().for_each(|image| image.counting = counting.clone());
    }

    /// Says whether the index has the blocks of the newest image.
    pub(crate) fn set_served(&self, is_served: bool) {
        self.is_served.store(is_served, Ordering::Relaxed);
    }

    /// The newest image, if the index has not its blocks.
    pub(crate) fn unserved(&self) -> Option<IndexImage> {
        if self.is_served.load(Ordering::Relaxed) { None } else { self.image() }
    }

    /// Whether an image that is written now would have more than the newest one, of a table with so many ranges.
    pub(crate) fn is_due(&self, ranges: usize) -> bool {
        let counts = self.counts(ranges);
        self.image.lock().as_ref().is_none_or(|image| !IndexImage::is_close(&image.behind(&counts), ranges))
    }

    /// Says that a checkpoint has kept the image as this, which is not so if it was found damaged meanwhile.
    pub(crate) fn set_kept(&self, image: Option<IndexImage>) {
        let mut known = self.image.lock();
        if let Some(former) = known.take() {
            // It may have been used for the first time meanwhile.
            *known = image.map(|image| IndexImage { counting: former.counting, ..image });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_that_was_found_damaged_is_not_kept() {
        let (imaged, image) = (Imaged::default(), IndexImage::default());
        imaged.set_kept(Some(image.clone()));
        assert!(imaged.image().is_none());
        imaged.set(Some(image.clone()));
        imaged.set_kept(Some(IndexImage { counts: vec![3], ..image }));
        assert_eq!(imaged.image().unwrap().counts, [3]);
    }

    #[test]
    fn a_range_with_new_entries_is_behind_and_stays_so() {
        let imaged = Imaged::default();
        (0..3).for_each(|range| imaged.note(range));
        let image = IndexImage { behind: BTreeSet::from([7]), counts: imaged.counts(3), ..IndexImage::default() };
        assert_eq!(Vec::from_iter(image.behind(&imaged.counts(9))), [7]);
        imaged.note(1);
        imaged.note(8);
        let behind = image.behind(&imaged.counts(9));
        assert_eq!(Vec::from_iter(behind.clone()), [1, 7, 8]);
        let kept = IndexImage { behind, counts: imaged.counts(9), ..image };
        imaged.note(0);
        assert_eq!(Vec::from_iter(kept.behind(&imaged.counts(9))), [0, 1, 7, 8]);
    }
}
