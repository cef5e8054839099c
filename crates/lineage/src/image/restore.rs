//! Getting a range back from its image (L-Store, section 5): pages and history as they were, and from the base slots of
//! tail records the Indirection column.
//!
//! The word of a record with versions that are all history, or given up, leads to the last number that is history:
//! readers go on there as they would from any number of these.
//!
//! The image is read and checked before anything of the range is changed. Its pages are read then as well, or each when it is first
//! used ([`PageReading`]): they are *away* until then, as pages are that were evicted, and what the image says of them is their outline.
//! A page that is read at once has to agree with it, like any other.
use std::sync::{Arc, PoisonError};

use sync::Guard;
use sync::atomic::{AtomicU64, Ordering};
use types::{BlobRef, Schema};

use super::{BlobSource, PageReading, RestoreError};
use crate::codec::{
    ColumnSummary, Damage, FlatNumbers, Shape, decode_column, decode_history_page, decode_rows, decode_start_times,
    decode_update_columns,
};
use crate::content::meta_columns::Times;
use crate::image::outlines::{ColumnsOutline, MetaOutline, are_same_columns, are_same_history};
use crate::image::range_bytes::{
    ArchiveImage, PagesImage, RangeBytes, StartsImage, TailsPlace, decode_range, slots_of,
};
use crate::image::records::{InsertsReader, TailsReader};
use crate::memory::budget::{Charge, MemoryKind, Meter};
use crate::memory::evictable::{Content, Evictable};
use crate::page::archived::Archive;
use crate::page::base::{Lineage, MetaColumns, MetaPage, Page, Pages, StartTimes, Values};
use crate::page::contents::{RowsOutline, UpdatesOutline};
use crate::page::history::History;
use crate::page::words::Layout;
use crate::record::last_image::LastImage;
use crate::record::range::Range;
use crate::table::Table;
use crate::value::sketch::Sketch;

/// A range that was read and fits together, but for its tail records.
struct RestoredRange<'a> {
    len: usize,
    is_closed: bool,
    /// `None` if nothing was merged
    pages: Option<Pages>,
    inserts: Option<InsertsReader<'a>>,
    /// the past of each update range, and how far its tail records are numbered
    parts: Vec<(Archive, u64)>,
}

/// The blobs of an image.
struct Blobs<'s, S> {
    source: &'s S,
    reading: PageReading,
    meter: &'s Arc<Meter>,
    /// what errors call the range
    name: &'s str,
    schema: &'s Schema,
    /// those that it refers to, as far as they were asked for
    referred: Vec<BlobRef>,
}

impl<S: BlobSource> Blobs<'_, S> {
    /// The content of a blob.
    fn get<T>(
        &mut self,
        blob: BlobRef,
        decode: impl FnOnce(&[u8]) -> Result<T, Damage>,
    ) -> Result<T, RestoreError<S::Error>> {
        let bytes = self.source.get(blob).map_err(|error| RestoreError::Source { blob, error })?;
        self.referred.push(blob);
        decode(&bytes).map_err(|damage| damaged(blob, damage))
    }

    /// A page that is not read before it is used, if that may be; `outline` is asked for what is known of it.
    fn away<T: Content>(
        &mut self,
        blob: BlobRef,
        (what, flat): (&str, FlatNumbers),
        outline: impl FnOnce() -> Option<T::Outline>,
    ) -> Option<Arc<Evictable<T>>> {
        if self.reading == PageReading::AtOnce {
            return None;
        }
        let subject = format!("{what} of {}", self.name).into();
        let page = Evictable::away(outline()?, flat, self.meter, blob, subject)?;
        self.referred.push(blob);
        Some(page)
    }
}

/// Refuses a page that is not what the image of its range says.
fn check_said<E>(blob: BlobRef, is_same: bool) -> Result<(), RestoreError<E>> {
    match is_same {
        true => Ok(()),
        false => Err(damaged(blob, Damage("page is another than the image of its range says".into()))),
    }
}

fn damaged<E>(blob: BlobRef, Damage(what): Damage) -> RestoreError<E> {
    RestoreError::Damaged { blob, what }
}

impl Table {
    /// Puts a range in the place that it had when this image of it was written. For recovery, before
    /// [`Table::finish_recovery`]; several ranges may be restored at a time. Errors of pages that are read later call the table
    /// as it is called here.
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
        (reading, table): (PageReading, &str),
    ) -> Result<(), RestoreError<S::Error>> {
        let bytes = source.get(image).map_err(|error| RestoreError::Source { blob: image, error })?;
        let restoring = self.range_for_recovery(range);
        if !restoring.is_new() {
            return Err(RestoreError::Occupied { range });
        }
        let decoded = decode_range(&bytes, &restoring.types, &restoring.options);
        let (head, inserts, (tails, tails_place)) = decoded.map_err(|damage| damaged(image, damage))?;
        let (horizon, newest) = (head.horizon, head.newest);
        let has_outlines = head.has_outlines();
        let name = format!("range {range} of \"{table}\"");
        let mut blobs = Blobs {
            source,
            reading,
            meter: &restoring.meter,
            name: &name,
            schema: self.schema(),
            referred: Vec::new(),
        };
        let restored = restoring.read_pages(head, inserts, &mut blobs)?;
        // Without slots that the log may still fill, only new slots and new tail records can change it.
        let is_settled = restored.inserts.as_ref().is_none_or(|inserts| inserts.len() == restored.len);
        // An image that says nothing of its pages is written anew with the next checkpoint.
        let may_stay = is_settled && has_outlines;
        // Records without base pages are here; their versions are few.
        let is_late = reading == PageReading::WhenUsed && restored.pages.is_some() && tails_place.has_numbers();
        let referred = blobs.referred;
        restoring.install(&sync::pin(), restored);
        self.restore_horizon(horizon);
        let last = LastImage { blob: image, newest, pages: referred, state: restoring.state() };
        *restoring.last_image.lock().unwrap_or_else(PoisonError::into_inner) = may_stay.then_some(last);
        if is_late {
            drop(tails);
            self.put_past_off(range, late_past(restoring, tails_place, bytes));
        } else {
            restoring.install_past(&sync::pin(), tails);
        }
        Ok(())
    }
}

/// Brings the tail records of a range from the bytes of its image, which were read and checked before.
fn late_past(range: &Range, tails: TailsPlace, image: Vec<u8>) -> impl FnOnce(&Range) + Send + 'static {
    let charge = Charge::new(&range.meter, MemoryKind::Tail, image.len());
    move |range| {
        let records = tails.read(&image, &range.types, &range.options);
        range.install_past(&sync::pin(), records.expect("these bytes were read before"));
        drop(charge);
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
        blobs: &mut Blobs<'_, S>,
    ) -> Result<RestoredRange<'a>, RestoreError<S::Error>> {
        let RangeBytes { at, len, is_closed, archives, pages, .. } = head;
        let shape = Shape { types: &self.types, len, at };
        let pages = match pages {
            Some(image) => Some(self.read_base_pages(shape, image, blobs)?),
            None => None,
        };
        let mut parts = Vec::with_capacity(archives.len());
        for (part, image) in archives.into_iter().enumerate() {
            let allocated = image.allocated;
            parts.push((self.read_archive(shape, part, image, blobs)?, allocated));
        }
        Ok(RestoredRange { len, is_closed, pages, inserts, parts })
    }

    fn read_base_pages<S: BlobSource>(
        &self,
        shape: Shape<'_>,
        mut image: PagesImage,
        blobs: &mut Blobs<'_, S>,
    ) -> Result<Pages, RestoreError<S::Error>> {
        let outlines = image.outlines.take();
        let lineages: Vec<Lineage> = std::mem::take(&mut image.lineages).into_iter().map(Lineage::from).collect();
        let (meta, columns) = outlines.map(|outlines| (outlines.meta, outlines.columns)).unzip();
        let meta = self.read_meta(shape, lineages[0].clone(), &image, meta, blobs)?;
        let values = match self.options.layout {
            Layout::Row => self.read_rows(shape, &image.pages, columns, blobs)?,
            Layout::Column => self.read_columns(shape, &image.pages, columns, blobs)?,
        };
        let columns = values.into_iter().zip(image.lineage_of_column).map(|((values, sketch), lineage)| {
            Arc::new(Page { lineage: lineages[lineage].clone(), values, sketch: Some(Arc::new(sketch)) })
        });
        let columns = columns.collect();
        self.meter.budget().help_to_evict();
        Ok(Pages::new(MetaPage::Base(meta), columns))
    }

    /// The meta-data page.
    fn read_meta<S: BlobSource>(
        &self,
        shape: Shape<'_>,
        lineage: Lineage,
        image: &PagesImage,
        said: Option<MetaOutline>,
        blobs: &mut Blobs<'_, S>,
    ) -> Result<MetaColumns, RestoreError<S::Error>> {
        let (types, len) = (&self.types, shape.len);
        let times = match image.starts {
            StartsImage::One(_) => None,
            StartsImage::Each(blob) => {
                Some(match blobs.away(blob, ("the insert times", None), || said.as_ref().map(|_| len)) {
                    Some(page) => page,
                    None => {
                        let words = blobs.get(blob, |bytes| decode_start_times(bytes, shape))?;
                        let each = Times(words.into_iter().map(AtomicU64::new).collect());
                        Evictable::new(each, len, &self.meter, Some(blob))
                    }
                })
            }
        };
        let updates = match image.updates {
            None => None,
            Some(blob) => {
                let outline = || {
                    let updated = said.as_ref()?.updated.clone()?;
                    Some(UpdatesOutline { types: types.clone(), len, updated })
                };
                Some(match blobs.away(blob, ("the times of updates", None), outline) {
                    Some(page) => page,
                    None => {
                        let updates = blobs.get(blob, |bytes| decode_update_columns(bytes, shape))?;
                        let outline = UpdatesOutline::of(&updates, types);
                        Evictable::new(updates, outline, &self.meter, Some(blob))
                    }
                })
            }
        };
        let guard = &sync::pin();
        // Where some of it is away the image has said what is in it.
        let updates_here = updates.as_ref().map(|updates| updates.here(guard));
        let known = match (&image.starts, &times, updates_here) {
            (StartsImage::One(word), _, None) => Some(MetaOutline::of_one(len, *word)),
            (StartsImage::One(word), _, Some(Some(updates))) => {
                Some(MetaOutline::of_each(len, std::iter::repeat_n(*word, len), Some(updates)))
            }
            (StartsImage::Each(_), Some(times), None | Some(Some(_))) => {
                let words = times.here(guard).map(Times::words);
                words.map(|words| MetaOutline::of_each(len, words.into_iter(), updates_here.flatten()))
            }
            _ => None,
        };
        if let (Some(said), Some(known), Some(blob)) = (&said, &known, image.updates.or(image.starts.blob())) {
            check_said(blob, said.is_same(known))?;
        }
        let MetaOutline { inserted, newest, live_rows, tombstones, has_deleted, .. } =
            known.or(said).expect("a page is away only where the image says what is in it");
        let start = match (&image.starts, times) {
            (StartsImage::One(word), _) => StartTimes::One(AtomicU64::new(*word)),
            (StartsImage::Each(_), times) => StartTimes::Each(times.expect("it was read, or is away")),
        };
        let start = Arc::new(start);
        Ok(MetaColumns { lineage, start, updates, inserted, newest, live_rows, tombstones, has_deleted })
    }

    fn read_rows<S: BlobSource>(
        &self,
        shape: Shape<'_>,
        pages: &[BlobRef],
        said: Option<ColumnsOutline>,
        blobs: &mut Blobs<'_, S>,
    ) -> Result<Vec<(Values, Sketch)>, RestoreError<S::Error>> {
        let Some(blob) = pages.first() else { return Ok(Vec::new()) };
        let said = match said {
            Some(ColumnsOutline::Rows(sketches)) => Some(sketches),
            _ => None,
        };
        let outline = || RowsOutline { types: self.types.clone(), len: shape.len };
        let away = blobs.away(*blob, ("the rows", None), || said.is_some().then(outline));
        let (page, sketches) = match (away, said) {
            (Some(page), Some(sketches)) => (page, sketches),
            _ => {
                let (rows, sketches) = blobs.get(*blob, |bytes| decode_rows(bytes, shape))?;
                (Evictable::new(rows, outline(), &self.meter, Some(*blob)), sketches)
            }
        };
        let values = Values::Rows(page);
        Ok(sketches.into_iter().map(|sketch| (values.clone(), sketch)).collect())
    }

    fn read_columns<S: BlobSource>(
        &self,
        shape: Shape<'_>,
        pages: &[BlobRef],
        said: Option<ColumnsOutline>,
        blobs: &mut Blobs<'_, S>,
    ) -> Result<Vec<(Values, Sketch)>, RestoreError<S::Error>> {
        let mut said = match said {
            Some(ColumnsOutline::Columns(columns)) => columns.into_iter(),
            _ => Vec::new().into_iter(),
        };
        let mut values = Vec::with_capacity(pages.len());
        for (column, (blob, data_type)) in pages.iter().zip(shape.types).enumerate() {
            let said = said.next();
            let outline = || said.as_ref().map(|said| said.outline.clone());
            let what = format!("column \"{}\"", blobs.schema.columns()[column].name);
            let called = (&*what, said.as_ref().and_then(|said| said.flat));
            if let (Some(page), Some(said)) = (blobs.away(*blob, called, outline), &said) {
                values.push((Values::Column(page), said.sketch.clone()));
                continue;
            }
            let (column, sketch) = blobs.get(*blob, |bytes| decode_column(bytes, shape, *data_type))?;
            let outline = column.outline();
            let page = Evictable::new(column, outline.clone(), &self.meter, Some(*blob));
            if let Some(said) = &said {
                let read = ColumnSummary { outline, flat: page.flat_form(), sketch: sketch.clone() };
                check_said(*blob, are_same_columns(said, &read))?;
            }
            values.push((Values::Column(page), sketch));
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
        for (at, blob) in image.pages.iter().enumerate() {
            let said = image.outlines.as_ref().map(|outlines| &outlines[at]);
            if let Some(page) = blobs.away(*blob, ("the history", None), || said.cloned()) {
                pages.push(page);
                continue;
            }
            let decode = |bytes: &[u8]| decode_history_page(bytes, shape, slots.clone(), image.through);
            let page = Evictable::of_history(blobs.get(*blob, decode)?, &self.types, &self.meter, Some(*blob));
            check_said(*blob, said.is_none_or(|said| are_same_history(said, &page.outline)))?;
            pages.push(page);
            self.meter.budget().help_to_evict();
        }
        let (types, meter) = (self.types.clone(), self.meter.clone());
        let history = History::of_parts(types, pages, image.through, image.given_up, meter);
        // One that was never published is not charged.
        let archive = if history.through() == 0 { Archive::unpublished } else { Archive::new };
        Ok(archive(history, image.expired, &self.meter))
    }

    /// Puts in what was read: pages and history.
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
        if let Some(pages) = pages {
            self.pages.replace(pages, guard);
        }
        for (part, (archive, allocated)) in self.parts.iter().zip(parts) {
            part.tails.restore_numbers(allocated);
            part.archive.replace(archive, guard);
        }
        if is_closed {
            self.close();
        }
    }

    /// Puts in the tail records, after pages and history, and the words that lead to them.
    fn install_past(&self, guard: &Guard, tails: Vec<TailsReader<'_>>) {
        self.lead_to_history(guard);
        for (part, tails) in self.parts.iter().zip(tails) {
            part.tails.restore(guard, part.archive.load(guard).history.through(), &tails.sequences);
            tails.for_each(|sequence, record| {
                part.tails.write(guard, sequence, record);
                self.indirection.touch(record.slot);
                self.indirection[record.slot].store(sequence, Ordering::Release);
            });
        }
    }

    /// Lets the words of records that were updated lead to the history, be there something left of theirs or not.
    fn lead_to_history(&self, guard: &Guard) {
        let MetaPage::Base(meta) = &self.pages.load(guard).meta else { return };
        let updated = meta.updates.as_ref().map(|updates| &*updates.outline.updated);
        for (part, of_part) in self.parts.iter().enumerate() {
            let archive = of_part.archive.load(guard);
            let through = archive.history.through();
            let lead = |slot: usize| {
                self.indirection.touch(slot);
                self.indirection[slot].store(through, Ordering::Relaxed);
            };
            let slots = slots_of(&self.options, self.len(), part);
            updated.into_iter().flat_map(|updated| updated.within(slots.clone())).for_each(lead);
            archive.history.pages().iter().for_each(|page| page.outline.slots.iter().for_each(lead));
        }
    }
}
