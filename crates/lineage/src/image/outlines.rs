//! What a range image says of pages that have blobs of their own: enough to put the range in its place without reading them.
//!
//! ```text
//! history page   slots, positions | highest number of a version | versions
//!                1 (8), earliest and latest start of an update or delete; or 0
//! pages          newest insert | newest commit | rows that are not deleted | slots without a record | whether some is deleted (8)
//!                if there are updates: the records that were updated, positions
//!                for each column    see `column_outline`; in row layout its sketch
//! ```
//!
//! A page that is read later has to agree with what is said here, or it is damaged.
use std::ops::Range;
use std::sync::Arc;

use types::{StartTime, Timestamp};

use crate::codec::meta::{decode_sketch, encode_sketch};
use crate::codec::{ColumnSummary, Damage, Reader, Shape, Writer, decode_column_outline, encode_column_outline};
use crate::content::meta_columns::UpdateColumns;
use crate::history::positions::Positions;
use crate::image::range_bytes::{PagesImage, StartsImage};
use crate::page::base::{MetaColumns, Page, Values};
use crate::page::contents::HistoryOutline;
use crate::page::words::Layout;
use crate::value::sketch::Sketch;

/// The most versions that a history page may have.
const VERSIONS_MAX: usize = u32::MAX as usize;

/// What is known of the base pages of a range.
pub(crate) struct PagesOutline {
    pub(crate) meta: MetaOutline,
    pub(crate) columns: ColumnsOutline,
}

/// What is known of the meta-data columns.
pub(crate) struct MetaOutline {
    pub(crate) inserted: Timestamp,
    pub(crate) newest: Timestamp,
    pub(crate) live_rows: u64,
    pub(crate) tombstones: usize,
    pub(crate) has_deleted: bool,
    /// which records were updated; `None` where there are no updates
    pub(crate) updated: Option<Arc<Positions>>,
}

/// What is known of the data columns.
pub(crate) enum ColumnsOutline {
    Columns(Vec<ColumnSummary>),
    /// of each column
    Rows(Vec<Sketch>),
}

impl MetaOutline {
    /// What the one Start Time of all of `len` slots says, where there are no updates.
    pub(crate) fn of_one(len: usize, word: u64) -> MetaOutline {
        let is_tombstone = word == StartTime::TOMBSTONE || len == 0;
        let inserted = Timestamp(if is_tombstone { 0 } else { word });
        let live_rows = if is_tombstone { 0 } else { len as u64 };
        let tombstones = len - live_rows as usize;
        MetaOutline { inserted, newest: inserted, live_rows, tombstones, has_deleted: false, updated: None }
    }

    /// What Start Times, one for each of `len` slots, and updates say.
    pub(crate) fn of_each(
        len: usize,
        starts: impl Iterator<Item = u64>,
        updates: Option<&UpdateColumns>,
    ) -> MetaOutline {
        let is_deleted = |slot| updates.is_some_and(|updates| updates.is_deleted(slot));
        let (mut inserted, mut live_rows, mut tombstones, mut has_deleted) = (0, 0, 0, false);
        for (slot, word) in starts.enumerate() {
            let is_tombstone = word == StartTime::TOMBSTONE;
            inserted = inserted.max(if is_tombstone { 0 } else { word });
            tombstones += usize::from(is_tombstone);
            has_deleted |= is_deleted(slot);
            live_rows += u64::from(!is_tombstone && !is_deleted(slot));
        }
        let updated_at = updates.map_or(0, |updates| updates.newest.iter().copied().fold(0, u64::max));
        let updated = updates.map(|updates| {
            let slots: Vec<u64> = updates.updated().map(|slot| slot as u64).collect();
            Arc::new(Positions::of(&slots, len))
        });
        let (inserted, newest) = (Timestamp(inserted), Timestamp(inserted.max(updated_at)));
        MetaOutline { inserted, newest, live_rows, tombstones, has_deleted, updated }
    }

    /// What the meta-data columns of a range know.
    fn of(meta: &MetaColumns) -> MetaOutline {
        let MetaColumns { inserted, newest, live_rows, tombstones, has_deleted, ref updates, .. } = *meta;
        let updated = updates.as_ref().map(|updates| updates.outline.updated.clone());
        MetaOutline { inserted, newest, live_rows, tombstones, has_deleted, updated }
    }

    fn encode(&self, writer: &mut Writer) {
        for number in [self.inserted.0, self.newest.0, self.live_rows, self.tombstones as u64] {
            writer.number(number);
        }
        writer.byte(u8::from(self.has_deleted));
        self.updated.iter().for_each(|updated| writer.positions(updated));
    }

    fn decode(reader: &mut Reader<'_>, shape: Shape<'_>, image: &PagesImage) -> Result<MetaOutline, Damage> {
        let newest_insert = reader.at_most(shape.at.0, "the newest insert")?;
        let newest = reader.at_most(shape.at.0, "the newest commit of its pages")?;
        reader.check(newest_insert <= newest, || format!("has an insert at {newest_insert} after {newest}"))?;
        let live_rows = reader.count(shape.len, "rows")? as u64;
        let tombstones = reader.count(shape.len - live_rows as usize, "slots without a record")?;
        let has_deleted = reader.flag("whether rows are deleted")?;
        let updated = match image.updates {
            Some(_) => Some(Arc::new(reader.positions(shape.len, "updated records")?)),
            None => None,
        };
        let is_right = (updated.is_some() || !has_deleted)
            && match image.starts {
                StartsImage::One(StartTime::TOMBSTONE) => tombstones == shape.len && newest_insert == 0,
                StartsImage::One(word) => shape.len == 0 || tombstones == 0 && newest_insert == word,
                StartsImage::Each(_) => true,
            };
        reader.check(is_right, || "says other of its pages than they have".into())?;
        let (inserted, newest) = (Timestamp(newest_insert), Timestamp(newest));
        Ok(MetaOutline { inserted, newest, live_rows, tombstones, has_deleted, updated })
    }

    /// Whether both say the same.
    pub(crate) fn is_same(&self, other: &MetaOutline) -> bool {
        bytes_of(|writer| self.encode(writer)) == bytes_of(|writer| other.encode(writer))
    }
}

fn bytes_of(write: impl FnOnce(&mut Writer)) -> Vec<u8> {
    let mut writer = Writer::default();
    write(&mut writer);
    writer.finish()
}

/// Whether both say the same of a column.
pub(crate) fn are_same_columns(left: &ColumnSummary, right: &ColumnSummary) -> bool {
    let bytes = |of: &ColumnSummary| bytes_of(|writer| encode_column_outline(&of.outline, of.flat, &of.sketch, writer));
    bytes(left) == bytes(right)
}

/// Whether both say the same of a history page.
pub(crate) fn are_same_history(left: &HistoryOutline, right: &HistoryOutline) -> bool {
    left.slots.iter().eq(right.slots.iter())
        && (left.through, left.start_span, left.versions) == (right.through, right.start_span, right.versions)
}

impl PagesOutline {
    /// What the pages of a range know.
    pub(crate) fn of(meta: &MetaColumns, columns: &[Arc<Page>], layout: Layout) -> PagesOutline {
        let sketch = |page: &Page| page.sketch.as_deref().cloned().unwrap_or_default();
        let summary = |page: &Arc<Page>| match &page.values {
            Values::Column(encoded) => {
                let (outline, flat) = (encoded.outline.clone(), encoded.flat_form());
                ColumnSummary { outline, flat, sketch: sketch(page) }
            }
            Values::Rows(_) | Values::Insert(_) => unreachable!("the first merge makes pages of the table's layout"),
        };
        let columns = match layout {
            Layout::Column => ColumnsOutline::Columns(columns.iter().map(summary).collect()),
            Layout::Row => ColumnsOutline::Rows(columns.iter().map(|page| sketch(page)).collect()),
        };
        PagesOutline { meta: MetaOutline::of(meta), columns }
    }

    pub(crate) fn encode(&self, writer: &mut Writer) {
        self.meta.encode(writer);
        match &self.columns {
            ColumnsOutline::Columns(columns) => columns.iter().for_each(|column| {
                encode_column_outline(&column.outline, column.flat, &column.sketch, writer);
            }),
            ColumnsOutline::Rows(sketches) => sketches.iter().for_each(|sketch| encode_sketch(sketch, writer)),
        }
    }

    pub(super) fn decode(
        reader: &mut Reader<'_>,
        shape: Shape<'_>,
        layout: Layout,
        image: &PagesImage,
    ) -> Result<PagesOutline, Damage> {
        let meta = MetaOutline::decode(reader, shape, image)?;
        let mut types = shape.types.iter();
        let columns = match layout {
            Layout::Column => ColumnsOutline::Columns(
                types.map(|data_type| decode_column_outline(reader, shape, *data_type)).collect::<Result<_, _>>()?,
            ),
            Layout::Row => ColumnsOutline::Rows(types.try_fold(Vec::new(), |mut sketches, _| {
                sketches.push(decode_sketch(reader)?);
                Ok(sketches)
            })?),
        };
        Ok(PagesOutline { meta, columns })
    }
}

pub(crate) fn encode_history_outline(outline: &HistoryOutline, writer: &mut Writer) {
    writer.positions(&outline.slots);
    writer.number(outline.through);
    writer.number(outline.versions as u64);
    writer.byte(u8::from(outline.start_span.is_some()));
    if let Some((earliest, latest)) = outline.start_span {
        writer.number(earliest);
        writer.number(latest);
    }
}

/// What is known of a history page of records in `slots`, whose tail records were numbered at most `through`.
pub(super) fn decode_history_outline(
    reader: &mut Reader<'_>,
    shape: Shape<'_>,
    slots: Range<usize>,
    through: u64,
) -> Result<HistoryOutline, Damage> {
    let of_slots = reader.positions(slots.end, "slots of a history page")?;
    let is_within = of_slots.iter().next().is_none_or(|first| first >= slots.start);
    reader.check(is_within, || format!("has history of records before slot {}", slots.start))?;
    let through = reader.at_most(through, "the highest number of a history page")?;
    let versions = reader.count(VERSIONS_MAX, "versions")?;
    reader.check(versions >= of_slots.len(), || format!("has {versions} versions of {} records", of_slots.len()))?;
    let start_span = match reader.flag("whether there are starts")? {
        true => {
            let (earliest, latest) = (reader.number("a start")?, reader.at_most(shape.at.0, "a start")?);
            reader.check(earliest <= latest, || format!("has starts from {earliest} to {latest}"))?;
            Some((earliest, latest))
        }
        false => None,
    };
    let (types, slots) = (shape.types.into(), Arc::new(of_slots));
    #[cfg(test)]
    let page_bytes = 0;
    Ok(HistoryOutline {
        types,
        slots,
        through,
        start_span,
        versions,
        #[cfg(test)]
        page_bytes,
    })
}
