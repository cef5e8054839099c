//! Writing the blobs of an image, each once: what is on disk already is referred to again.
use std::collections::HashMap;
use std::sync::{Arc, PoisonError};

use sync::atomic::Ordering;
use types::{BlobRef, Timestamp};

use super::take::{RangeParts, TakenArchive};
use super::{BlobSink, RangeImage};
use crate::codec::{Shape, encode_column, encode_history_page, encode_rows, encode_start_times, encode_update_columns};
use crate::content::meta_columns::Times;
use crate::image::outlines::PagesOutline;
use crate::image::range_bytes::{ArchiveImage, PagesImage, RangeBytes, StartsImage, encode_range};
use crate::memory::evictable::{Content, Evictable, StoredBlob};
use crate::page::base::{MetaColumns, Page, StartTimes, Values};
use crate::record::last_image::{LastImage, RangeState};
use crate::record::range::Range;
use crate::record::view::Outcomes;
use crate::table::Table;
use crate::value::sketch::Sketch;

/// The blobs of one image on their way.
struct BlobPlacement<'s, S> {
    sink: &'s mut S,
    /// where blobs of earlier checkpoints are in this one
    kept: HashMap<BlobRef, BlobRef>,
    placed: Vec<(Arc<StoredBlob>, BlobRef)>,
}

impl<S: BlobSink> BlobPlacement<'_, S> {
    /// Where a blob is in this checkpoint; `None` if it is damaged.
    fn keep(&mut self, blob: BlobRef) -> Result<Option<BlobRef>, S::Error> {
        if let Some(kept) = self.kept.get(&blob) {
            return Ok(Some(*kept));
        }
        let kept = self.sink.keep(blob)?;
        self.kept.extend(kept.map(|kept| (blob, kept)));
        Ok(kept)
    }

    /// The blob of a page, which is written if none has it yet. A page that is away is in a blob; if that is damaged it stays so,
    /// while a page that is here is written anew.
    fn place<T: Content>(
        &mut self,
        page: &Evictable<T>,
        encode: impl FnOnce(&T) -> Vec<u8>,
    ) -> Result<BlobRef, S::Error> {
        let stored = page.stored.get();
        let kept = stored.map_or(Ok(None), |blob| self.keep(blob))?;
        let here = || page.here(&sync::pin()).map(encode);
        let blob = match (kept, stored) {
            (Some(kept), _) => kept,
            (None, Some(damaged)) => match here() {
                Some(encoded) => self.sink.put(&encoded)?,
                None => self.sink.keep_damaged(damaged)?,
            },
            (None, None) => self.sink.put(&here().expect("a page goes once a blob has it"))?,
        };
        self.placed.push((page.stored.clone(), blob));
        Ok(blob)
    }
}

impl Table {
    /// Writes an image of a range: what committed at or before the time that `now` answers, which is asked for the newest
    /// commit timestamp handed out. Pages that are on disk are kept, all others put.
    ///
    /// One image of a range is written at a time.
    ///
    /// # Errors
    /// What `sink` fails with. The range is as it was, and may be imaged again.
    pub fn image_range<O: Outcomes, S: BlobSink>(
        &self,
        range: usize,
        outcomes: &O,
        now: impl Fn() -> Timestamp,
        sink: &mut S,
    ) -> Result<RangeImage, S::Error> {
        let mut placing = BlobPlacement { sink, kept: HashMap::new(), placed: Vec::new() };
        if let Some(image) = self.range_as_is(range).former_image(&now, &mut placing)? {
            return Ok(image);
        }
        let range = self.range(range);
        let taken = range.take(outcomes, &now, || self.horizon_decided());
        range.place(taken, &mut placing)
    }
}

impl Range {
    /// Counts that pages or history were exchanged.
    pub(crate) fn has_published(&self) {
        self.publications.fetch_add(1, Ordering::AcqRel);
    }

    pub(super) fn publications(&self) -> u64 {
        self.publications.load(Ordering::Acquire)
    }

    /// The range as it is now.
    pub(super) fn state(&self) -> RangeState {
        let allocated = self.parts.iter().map(|part| part.tails.allocated()).collect();
        let (len, is_closed) = (self.len(), self.is_closed());
        RangeState { publications: self.publications(), allocated, len, is_closed }
    }

    /// The last image, if nothing has happened since.
    fn former_image<S: BlobSink>(
        &self,
        now: &impl Fn() -> Timestamp,
        placing: &mut BlobPlacement<'_, S>,
    ) -> Result<Option<RangeImage>, S::Error> {
        let last = self.last_image.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(last) = last else { return Ok(None) };
        // A transaction that commits up to here has written before; so the look comes after.
        let at = now();
        if self.state() != last.state {
            return Ok(None);
        }
        for blob in &last.pages {
            if placing.keep(*blob)? != Some(*blob) {
                return Ok(None);
            }
        }
        let Some(blob) = placing.keep(last.blob)? else { return Ok(None) };
        let (newest, remembers) = (last.newest, self.last_image.clone());
        let last = Some(LastImage { blob, ..last });
        Ok(Some(RangeImage { at, blob, is_unchanged: true, newest, placed: Vec::new(), last, remembers }))
    }

    fn place<S: BlobSink>(
        &self,
        taken: RangeParts,
        placing: &mut BlobPlacement<'_, S>,
    ) -> Result<RangeImage, S::Error> {
        let RangeParts { at, newest, horizon, merged, inserts, archives, tails, state, is_settled } = taken;
        let shape = Shape { types: &self.types, len: state.len, at };
        let pages = match &merged {
            Some((meta, columns)) => Some(self.place_pages(shape, meta, columns, placing)?),
            None => None,
        };
        let tps = |part: usize| merged.as_ref().map_or(0, |(meta, _)| meta.lineage[part]);
        let mut archive_images = Vec::with_capacity(archives.len());
        for (part, archive) in archives.into_iter().enumerate() {
            let allocated = tails[part].last().max(tps(part));
            archive_images.push(place_archive(archive, allocated, placing)?);
        }
        let (len, is_closed) = (state.len, state.is_closed || merged.is_some());
        let bytes = RangeBytes { at, newest, horizon, len, is_closed, archives: archive_images, pages };
        let encoded = encode_range((&self.types, &self.options), &bytes, inserts.as_ref(), &tails);
        let blob = placing.sink.put(&encoded)?;
        let placed = std::mem::take(&mut placing.placed);
        let pages = placed.iter().map(|(_, blob)| *blob).collect();
        let last = is_settled.then_some(LastImage { blob, newest, pages, state });
        let remembers = self.last_image.clone();
        Ok(RangeImage { at, blob, is_unchanged: false, newest, placed, last, remembers })
    }

    fn place_pages<S: BlobSink>(
        &self,
        shape: Shape<'_>,
        meta: &MetaColumns,
        columns: &[Arc<Page>],
        placing: &mut BlobPlacement<'_, S>,
    ) -> Result<PagesImage, S::Error> {
        let starts = match &*meta.start {
            StartTimes::One(word) => StartsImage::One(word.load(Ordering::Relaxed)),
            StartTimes::Each(words) => {
                let encode =
                    |words: &Times| encode_start_times(words.0.iter().map(|word| word.load(Ordering::Relaxed)));
                StartsImage::Each(placing.place(words, encode)?)
            }
        };
        let updates = match &meta.updates {
            Some(updates) => Some(placing.place(updates, |updates| encode_update_columns(shape, updates))?),
            None => None,
        };
        let mut lineages = vec![meta.lineage.to_vec()];
        let mut lineage_of_column = Vec::with_capacity(columns.len());
        let mut pages = Vec::new();
        let none = Sketch::default();
        let sketch = |page: &'_ Page| page.sketch.clone().unwrap_or_default();
        for (column, page) in columns.iter().enumerate() {
            let known = lineages.iter().position(|lineage| **lineage == *page.lineage);
            lineage_of_column.push(known.unwrap_or(lineages.len()));
            if known.is_none() {
                lineages.push(page.lineage.to_vec());
            }
            match &page.values {
                Values::Column(encoded) => {
                    pages.push(placing.place(encoded, |encoded| encode_column(encoded, &sketch(page)))?);
                }
                Values::Rows(rows) if column == 0 => {
                    let sketches = columns.iter().map(|page| page.sketch.as_deref().unwrap_or(&none));
                    pages.push(placing.place(rows, |rows| encode_rows(shape, rows, sketches))?);
                }
                Values::Rows(_) => {}
                Values::Insert(_) => unreachable!("the first merge takes all columns"),
            }
        }
        let outlines = Some(PagesOutline::of(meta, columns, self.options.layout));
        Ok(PagesImage { starts, updates, lineages, lineage_of_column, pages, outlines })
    }
}

fn place_archive<S: BlobSink>(
    archive: TakenArchive,
    allocated: u64,
    placing: &mut BlobPlacement<'_, S>,
) -> Result<ArchiveImage, S::Error> {
    let TakenArchive { history, expired } = archive;
    let mut pages = Vec::with_capacity(history.pages().len());
    for page in history.pages() {
        pages.push(placing.place(page, encode_history_page)?);
    }
    let (through, given_up) = (history.through(), history.given_up());
    let allocated = allocated.max(through);
    let outlines = Some(history.pages().iter().map(|page| page.outline.clone()).collect());
    Ok(ArchiveImage { allocated, through, given_up, expired, pages, outlines })
}
