//! The parts of a range that can be evicted, and what stays of them: columns, pages of rows, the two meta-data
//! pages, history pages.
use std::sync::Arc;

use sync::atomic::AtomicU64;
use types::{DataType, Timestamp};

use crate::codec::{
    Damage, Shape, decode_column, decode_history_page, decode_rows, decode_start_times, decode_update_columns,
};
use crate::content::meta_columns::{Times, UpdateColumns};
use crate::content::row_page::RowPage;
use crate::encoding::{ColumnOutline, EncodedColumn};
use crate::history::HistoryPage;
use crate::history::positions::Positions;
use crate::memory::budget::{MemoryKind, Meter};
use crate::memory::evictable::{Content, Evictable};
use crate::memory::flat::Flat;

/// The shape of pages that were checked against the time of their image when they were first read.
fn shape(types: &[DataType], len: usize) -> Shape<'_> {
    Shape { types, len, at: Timestamp::MAX }
}

impl Content for EncodedColumn {
    type Outline = ColumnOutline;
    const KIND: MemoryKind = MemoryKind::Base;

    fn bytes(&self) -> usize {
        EncodedColumn::bytes(self) - size_of_val(&*self.zones)
    }

    fn outline_bytes(outline: &ColumnOutline) -> usize {
        size_of::<Evictable<EncodedColumn>>() + size_of_val(&*outline.zones)
    }

    fn flat(&self) -> Option<Flat<'_>> {
        EncodedColumn::flat(self).map(|(words, base, bytes)| Flat { words, base, bytes })
    }

    fn decode(outline: &ColumnOutline, bytes: &[u8]) -> Result<Self, Damage> {
        let (mut column, _) = decode_column(bytes, shape(&[], outline.len), outline.data_type)?;
        if column.zones != outline.zones || column.encoding() != outline.encoding {
            return Err(Damage("column page has other zones than the image of its range says".into()));
        }
        // One copy of the zones serves both.
        column.zones = outline.zones.clone();
        Ok(column)
    }
}

/// The outline of a page of rows.
pub(crate) struct RowsOutline {
    pub(crate) types: Arc<[DataType]>,
    pub(crate) len: usize,
}

/// The outline of the meta-data columns of updated records.
#[derive(Clone)]
pub(crate) struct UpdatesOutline {
    pub(crate) types: Arc<[DataType]>,
    pub(crate) len: usize,
    /// which records were updated
    pub(crate) updated: Arc<Positions>,
}

impl UpdatesOutline {
    /// The outline of these columns.
    pub(crate) fn of(updates: &UpdateColumns, types: &Arc<[DataType]>) -> UpdatesOutline {
        // In the form in which an image has them, which is compared with this.
        let updated: Vec<u64> = updates.updated().map(|slot| slot as u64).collect();
        let len = updates.last_updated.len();
        UpdatesOutline { types: types.clone(), len, updated: Arc::new(Positions::of(&updated, len)) }
    }
}

impl Content for RowPage {
    type Outline = RowsOutline;
    const KIND: MemoryKind = MemoryKind::Base;

    fn bytes(&self) -> usize {
        RowPage::bytes(self)
    }

    fn outline_bytes(_: &RowsOutline) -> usize {
        size_of::<Evictable<RowPage>>()
    }

    fn decode(outline: &RowsOutline, bytes: &[u8]) -> Result<Self, Damage> {
        Ok(decode_rows(bytes, shape(&outline.types, outline.len))?.0)
    }
}

impl Content for UpdateColumns {
    type Outline = UpdatesOutline;
    const KIND: MemoryKind = MemoryKind::Base;

    fn bytes(&self) -> usize {
        UpdateColumns::bytes(self)
    }

    fn outline_bytes(outline: &UpdatesOutline) -> usize {
        size_of::<Evictable<UpdateColumns>>() + outline.updated.heap_bytes()
    }

    fn decode(outline: &UpdatesOutline, bytes: &[u8]) -> Result<Self, Damage> {
        let updates = decode_update_columns(bytes, shape(&outline.types, outline.len))?;
        match updates.updated().eq(outline.updated.iter()) {
            true => Ok(updates),
            false => Err(Damage("page of update columns has other records than the image of its range says".into())),
        }
    }
}

impl Content for Times {
    /// how many
    type Outline = usize;
    const KIND: MemoryKind = MemoryKind::Base;

    fn bytes(&self) -> usize {
        size_of_val(&*self.0)
    }

    fn outline_bytes(_: &usize) -> usize {
        size_of::<Evictable<Times>>()
    }

    fn decode(len: &usize, bytes: &[u8]) -> Result<Self, Damage> {
        let words = decode_start_times(bytes, shape(&[], *len))?;
        Ok(Times(words.into_iter().map(AtomicU64::new).collect()))
    }
}

/// The outline of a history page.
#[derive(Clone, Debug)]
pub(crate) struct HistoryOutline {
    pub(crate) types: Arc<[DataType]>,
    /// the slots that have versions
    pub(crate) slots: Arc<Positions>,
    /// the highest sequence of a version
    pub(crate) through: u64,
    /// the earliest and the latest start of an update or delete
    pub(crate) start_span: Option<(u64, u64)>,
    /// how many versions there are
    pub(crate) versions: usize,
    /// the memory that the page takes, this included
    #[cfg(test)]
    pub(crate) page_bytes: usize,
}

impl HistoryOutline {
    pub(crate) fn of(page: &HistoryPage, types: &Arc<[DataType]>) -> HistoryOutline {
        HistoryOutline {
            types: types.clone(),
            slots: page.slots.clone(),
            through: page.sequence_span().map_or(0, |(_, last)| last),
            start_span: page.start_span(),
            versions: page.len(),
            #[cfg(test)]
            page_bytes: page.bytes(),
        }
    }
}

impl Content for HistoryPage {
    type Outline = HistoryOutline;
    const KIND: MemoryKind = MemoryKind::History;

    fn bytes(&self) -> usize {
        HistoryPage::bytes(self) - self.slots.heap_bytes()
    }

    fn outline_bytes(outline: &HistoryOutline) -> usize {
        outline.slots.heap_bytes()
    }

    fn decode(outline: &HistoryOutline, bytes: &[u8]) -> Result<Self, Damage> {
        let end = outline.slots.iter().last().map_or(0, |last| last + 1);
        let mut page = decode_history_page(bytes, shape(&outline.types, 0), 0..end, outline.through)?;
        let is_same = page.slots.iter().eq(outline.slots.iter())
            && (page.len(), page.start_span()) == (outline.versions, outline.start_span);
        if !is_same {
            return Err(Damage("history page has other versions than the image of its range says".into()));
        }
        page.slots = outline.slots.clone();
        Ok(page)
    }
}

/// A history page that may be evicted.
pub(crate) type HistoryEntry = Arc<Evictable<HistoryPage>>;

impl Evictable<HistoryPage> {
    /// A page in memory.
    pub(crate) fn of_history(
        page: HistoryPage,
        types: &Arc<[DataType]>,
        meter: &Arc<Meter>,
        blob: Option<types::BlobRef>,
    ) -> HistoryEntry {
        let outline = HistoryOutline::of(&page, types);
        Evictable::new(page, outline, meter, blob)
    }
}
