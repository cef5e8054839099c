//! Getting a range back from its image (L-Store, section 5): pages and history as they were, and from the base slots of
//! tail records the Indirection column.
//!
//! The word of a record with versions that are all history, or given up, leads to the last number that is history:
//! readers go on there as they would from any number of these.
//!
//! Everything is read and checked before anything of the range is changed.
use std::sync::{Arc, PoisonError};

use sync::Guard;
use sync::atomic::{AtomicU64, Ordering};
use types::{BlobRef, StartTime, Timestamp};

use super::{BlobSource, RestoreError};
use crate::codec::{
    Damage, Shape, decode_column, decode_history_page, decode_rows, decode_start_times, decode_update_columns,
};
use crate::content::meta_columns::Times;
use crate::content::meta_columns::UpdateColumns;
use crate::image::range_bytes::{ArchiveImage, PagesImage, RangeBytes, StartsImage, decode_range, slots_of};
use crate::image::records::{InsertsReader, TailsReader};
use crate::memory::evictable::Evictable;
use crate::page::archived::Archive;
use crate::page::base::{Lineage, MetaColumns, MetaPage, Page, Pages, StartTimes, Values};
use crate::page::contents::RowsOutline;
use crate::page::history::History;
use crate::page::words::Layout;
use crate::record::last_image::LastImage;
use crate::record::range::Range;
use crate::table::Table;
use crate::value::sketch::Sketch;

/// A range that was read and fits together.
struct RestoredRange<'a> {
    len: usize,
    is_closed: bool,
    /// and which records a merge has taken in versions of; `None` if nothing was merged
    pages: Option<(Pages, Vec<bool>)>,
    inserts: Option<InsertsReader<'a>>,
    /// the past of each update range, its tail records, and how far these are numbered
    parts: Vec<(Archive, TailsReader<'a>, u64)>,
}

/// Reads the blobs of an image.
struct Blobs<'s, S> {
    source: &'s S,
    read: Vec<BlobRef>,
}

impl<S: BlobSource> Blobs<'_, S> {
    fn get<T>(
        &mut self,
        blob: BlobRef,
        decode: impl FnOnce(&[u8]) -> Result<T, Damage>,
    ) -> Result<T, RestoreError<S::Error>> {
        let bytes = self.source.get(blob).map_err(|error| RestoreError::Source { blob, error })?;
        self.read.push(blob);
        decode(&bytes).map_err(|damage| damaged(blob, damage))
    }
}

fn damaged<E>(blob: BlobRef, Damage(what): Damage) -> RestoreError<E> {
    RestoreError::Damaged { blob, what }
}

impl Table {
    /// Puts a range in the place that it had when this image of it was written. For recovery, before
    /// [`Table::finish_recovery`]; several ranges may be restored at a time.
    ///
    /// # Errors
    /// - [`RestoreError::Source`] if `source` does not give a blob.
    /// - [`RestoreError::Damaged`] if what is in a blob cannot be, or is not of this table.
    /// - [`RestoreError::Occupied`] if the range has records: it was restored before, or written to.
    pub fn restore_range<S: BlobSource>(
        &self,
        range: usize,
        image: BlobRef,
        source: &S,
    ) -> Result<(), RestoreError<S::Error>> {
        let bytes = source.get(image).map_err(|error| RestoreError::Source { blob: image, error })?;
        let restoring = self.range_for_recovery(range);
        if !restoring.is_new() {
            return Err(RestoreError::Occupied { range });
        }
        let decoded = decode_range(&bytes, &restoring.types, &restoring.options);
        let (head, inserts, tails) = decoded.map_err(|damage| damaged(image, damage))?;
        let (horizon, newest) = (head.horizon, head.newest);
        let mut blobs = Blobs { source, read: Vec::new() };
        let restored = restoring.read_pages(head, inserts, tails, &mut blobs)?;
        // Without slots that the log may still fill, only new slots and new tail records can change it.
        let is_settled = restored.inserts.as_ref().is_none_or(|inserts| inserts.len() == restored.len);
        restoring.install(&sync::pin(), restored);
        self.restore_horizon(horizon);
        let last = LastImage { blob: image, newest, pages: blobs.read, state: restoring.state() };
        *restoring.last_image.lock().unwrap_or_else(PoisonError::into_inner) = is_settled.then_some(last);
        Ok(())
    }
}

impl Range {
    /// Whether nothing was ever written to it.
    fn is_new(&self) -> bool {
        let is_insert = matches!(self.pages.load(&sync::pin()).meta, MetaPage::Insert { .. });
        is_insert && self.len() == 0 && !self.is_closed() && self.tail_records() == 0
    }

    fn read_pages<'a, S: BlobSource>(
        &self,
        head: RangeBytes,
        inserts: Option<InsertsReader<'a>>,
        tails: Vec<TailsReader<'a>>,
        blobs: &mut Blobs<'_, S>,
    ) -> Result<RestoredRange<'a>, RestoreError<S::Error>> {
        let RangeBytes { at, len, is_closed, archives, pages, .. } = head;
        let shape = Shape { types: &self.types, len, at };
        let pages = match pages {
            Some(image) => Some(self.read_base_pages(shape, image, blobs)?),
            None => None,
        };
        let mut parts = Vec::with_capacity(archives.len());
        for (part, (image, tails)) in archives.into_iter().zip(tails).enumerate() {
            let allocated = image.allocated;
            parts.push((self.read_archive(shape, part, image, blobs)?, tails, allocated));
        }
        Ok(RestoredRange { len, is_closed, pages, inserts, parts })
    }

    fn read_base_pages<S: BlobSource>(
        &self,
        shape: Shape<'_>,
        image: PagesImage,
        blobs: &mut Blobs<'_, S>,
    ) -> Result<(Pages, Vec<bool>), RestoreError<S::Error>> {
        let starts = match &image.starts {
            StartsImage::One(word) => (vec![*word], None),
            StartsImage::Each(blob) => (blobs.get(*blob, |bytes| decode_start_times(bytes, shape))?, Some(*blob)),
        };
        let updates = match image.updates {
            Some(blob) => Some((blobs.get(blob, |bytes| decode_update_columns(bytes, shape))?, blob)),
            None => None,
        };
        let last_updated = updates.iter().flat_map(|(updates, _)| &updates.last_updated);
        let updated = last_updated.map(|at| *at != 0).collect();
        let lineages: Vec<Lineage> = image.lineages.into_iter().map(Lineage::from).collect();
        let values = self.read_values(shape, &image.pages, blobs)?;
        let columns = values.into_iter().zip(image.lineage_of_column).map(|((values, sketch), lineage)| {
            Arc::new(Page { lineage: lineages[lineage].clone(), values, sketch: Some(Arc::new(sketch)) })
        });
        let columns = columns.collect();
        let meta = self.meta_of(shape.len, lineages[0].clone(), starts, updates);
        self.meter.budget().help_to_evict();
        Ok((Pages::new(MetaPage::Base(meta), columns), updated))
    }

    fn read_values<S: BlobSource>(
        &self,
        shape: Shape<'_>,
        pages: &[BlobRef],
        blobs: &mut Blobs<'_, S>,
    ) -> Result<Vec<(Values, Sketch)>, RestoreError<S::Error>> {
        if self.options.layout == Layout::Row {
            let Some(blob) = pages.first() else { return Ok(Vec::new()) };
            let (rows, sketches) = blobs.get(*blob, |bytes| decode_rows(bytes, shape))?;
            let outline = RowsOutline { types: self.types.clone(), len: shape.len };
            let values = Values::Rows(Evictable::new(rows, outline, &self.meter, Some(*blob)));
            return Ok(sketches.into_iter().map(|sketch| (values.clone(), sketch)).collect());
        }
        let mut values = Vec::with_capacity(pages.len());
        for (blob, data_type) in pages.iter().zip(shape.types) {
            let (column, sketch) = blobs.get(*blob, |bytes| decode_column(bytes, shape, *data_type))?;
            values.push((Values::of_column(column, &self.meter, Some(*blob)), sketch));
        }
        Ok(values)
    }

    fn read_archive<S: BlobSource>(
        &self,
        shape: Shape<'_>,
        part: usize,
        image: ArchiveImage,
        blobs: &mut Blobs<'_, S>,
    ) -> Result<Archive, RestoreError<S::Error>> {
        let slots = slots_of(&self.options, shape.len, part);
        let mut pages = Vec::with_capacity(image.pages.len());
        for blob in &image.pages {
            let decode = |bytes: &[u8]| decode_history_page(bytes, shape, slots.clone(), image.through);
            let page = blobs.get(*blob, decode)?;
            pages.push(Evictable::of_history(page, &self.types, &self.meter, Some(*blob)));
            self.meter.budget().help_to_evict();
        }
        let (types, meter) = (self.types.clone(), self.meter.clone());
        let history = History::of_parts(types, pages, image.through, image.given_up, meter);
        // One that was never published is not charged.
        let archive = if history.through() == 0 { Archive::unpublished } else { Archive::new };
        Ok(archive(history, image.expired, &self.meter))
    }

    /// Puts in what was read.
    fn install(&self, guard: &Guard, restored: RestoredRange<'_>) {
        let RestoredRange { len, is_closed, pages, inserts, parts } = restored;
        if len > 0 {
            self.raise_len(len - 1);
        }
        if let Some(inserts) = inserts {
            inserts.for_each(|slot, start, cells| {
                self.write_insert(slot, cells, start);
            });
        }
        if let Some((pages, updated)) = pages {
            (0..len).for_each(|slot| self.charge_slot(slot));
            self.lead_to_the_past(&updated, &parts);
            self.pages.replace(pages, guard);
        }
        for (part, (archive, tails, allocated)) in self.parts.iter().zip(parts) {
            part.tails.restore(guard, archive.history.through(), allocated, &tails.sequences);
            part.archive.replace(archive, guard);
            tails.for_each(|sequence, record| {
                part.tails.write(guard, sequence, record);
                self.indirection[record.slot].store(sequence, Ordering::Release);
            });
        }
        if is_closed {
            self.close();
        }
    }

    /// Lets the words of records that were updated lead to the history, be there something left of theirs or not.
    fn lead_to_the_past(&self, is_updated: &[bool], parts: &[(Archive, TailsReader<'_>, u64)]) {
        for (part, (archive, ..)) in parts.iter().enumerate() {
            let through = archive.history.through();
            let lead = |slot: usize| self.indirection[slot].store(through, Ordering::Relaxed);
            let slots = slots_of(&self.options, self.len(), part);
            slots.filter(|slot| is_updated.get(*slot) == Some(&true)).for_each(lead);
            archive.history.pages().iter().for_each(|page| page.outline.slots.iter().for_each(lead));
        }
    }

    /// The meta-data page of what is known slot by slot: one Start Time for all, or each one's with the blob that has them.
    fn meta_of(
        &self,
        len: usize,
        lineage: Lineage,
        (words, starts_blob): (Vec<u64>, Option<BlobRef>),
        updates: Option<(UpdateColumns, BlobRef)>,
    ) -> MetaColumns {
        let is_deleted = |slot| updates.as_ref().is_some_and(|(updates, _)| updates.is_deleted(slot));
        let (mut inserted, mut live_rows, mut tombstones, mut has_deleted) = (0, 0, 0, false);
        for slot in 0..len {
            let word = words[slot % words.len()];
            let is_tombstone = word == StartTime::TOMBSTONE;
            inserted = inserted.max(if is_tombstone { 0 } else { word });
            tombstones += usize::from(is_tombstone);
            has_deleted |= is_deleted(slot);
            live_rows += u64::from(!is_tombstone && !is_deleted(slot));
        }
        let updated = updates.as_ref().map_or(0, |(updates, _)| updates.newest.iter().copied().fold(0, u64::max));
        let start = match starts_blob {
            None => StartTimes::One(AtomicU64::new(words[0])),
            Some(_) => {
                let each = Times(words.into_iter().map(AtomicU64::new).collect());
                StartTimes::Each(Evictable::new(each, len, &self.meter, starts_blob))
            }
        };
        let updates = updates.map(|(updates, blob)| {
            let outline = RowsOutline { types: self.types.clone(), len };
            Evictable::new(updates, outline, &self.meter, Some(blob))
        });
        let (inserted, newest) = (Timestamp(inserted), Timestamp(inserted.max(updated)));
        let start = Arc::new(start);
        MetaColumns { lineage, start, updates, inserted, newest, live_rows, tombstones, has_deleted }
    }
}
