//! Getting a range back from the columns that were made before its first merge (`merge/early.rs`): from their bytes, or from blobs, which
//! are read when they are first used, as the pages of an image are.
use std::sync::Arc;

use sync::atomic::AtomicU64;
use types::{BlobRef, DataType, Timestamp};

use super::PageReading;
use crate::codec::{ColumnSummary, Damage, Reader, Shape, decode_column, decode_column_outline};
use crate::image::outlines::are_same_columns;
use crate::memory::evictable::Evictable;
use crate::page::base::{Lineage, MetaColumns, MetaPage, NewValues, Page, Pages, StartTimes, Values};
use crate::record::range::Range;
use crate::table::Table;

impl Table {
    /// Gives a range the columns that were made of its insert pages, of records that all were inserted by the commit `at`. For
    /// recovery, before [`Table::finish_recovery`].
    ///
    /// # Errors
    /// What is wrong with the bytes, or that the range has other records.
    pub fn restore_columns(&self, range: usize, bytes: &[u8], at: Timestamp) -> Result<(), String> {
        let restored = self.range_for_recovery(range).restore_columns(bytes, at);
        restored.map_err(|damage| damage.to_string())
    }

    /// As [`restore_columns`](Self::restore_columns), by what [`EarlyColumns::with_blobs`](crate::EarlyColumns::with_blobs) says of them.
    /// The source of pages has the blobs.
    ///
    /// # Errors
    /// What is wrong with the bytes or a blob, or that the range has other records.
    pub fn restore_blobs(
        &self,
        range: usize,
        bytes: &[u8],
        at: Timestamp,
        (reading, table): (PageReading, &str),
    ) -> Result<(), String> {
        let name = |column: usize| &self.schema().columns()[column].name;
        let called = |column: usize| format!("column \"{}\" of range {range} of \"{table}\"", name(column));
        let restored = self.range_for_recovery(range).restore_blobs(bytes, at, (reading, called));
        restored.map_err(|damage| damage.to_string())
    }
}

fn damaged(blob: BlobRef, what: &str) -> Damage {
    Damage(format!("has a column in blob {blob}: {what}"))
}

impl Range {
    /// See `Table::restore_columns`.
    fn restore_columns(&self, bytes: &[u8], at: Timestamp) -> Result<(), Damage> {
        let mut reader = Reader::new(bytes, "list of columns");
        let shape = self.free_shape(&mut reader, at)?;
        let mut column = |data_type: &DataType| {
            let size = reader.count(usize::MAX, "the size of a column")?;
            let (encoded, sketch) = decode_column(reader.bytes(size, "a column")?, shape, *data_type)?;
            Ok((Values::of_column(encoded, &self.meter, None), Some(Arc::new(sketch))))
        };
        let columns = self.types.iter().map(&mut column).collect::<Result<Vec<_>, Damage>>()?;
        reader.check_end()?;
        self.restore_early(shape, columns);
        Ok(())
    }

    /// See `Table::restore_blobs`.
    fn restore_blobs(
        &self,
        bytes: &[u8],
        at: Timestamp,
        (reading, called): (PageReading, impl Fn(usize) -> String),
    ) -> Result<(), Damage> {
        let mut reader = Reader::new(bytes, "list of blobs");
        let shape = self.free_shape(&mut reader, at)?;
        let mut columns = Vec::with_capacity(self.types.len());
        for (column, data_type) in self.types.iter().enumerate() {
            let blob = reader.bytes(BlobRef::ENCODED_LEN, "a blob")?;
            let blob = BlobRef::from_bytes(std::array::from_fn(|i| blob[i]));
            let said = decode_column_outline(&mut reader, shape, *data_type)?;
            columns.push(match reading {
                PageReading::WhenUsed => self.column_away(blob, said, called(column))?,
                PageReading::AtOnce => self.column_now(blob, &said, shape, *data_type)?,
            });
        }
        reader.check_end()?;
        self.restore_early(shape, columns);
        Ok(())
    }

    fn column_away(&self, blob: BlobRef, said: ColumnSummary, called: String) -> Result<NewValues, Damage> {
        let ColumnSummary { outline, flat, sketch } = said;
        let page = Evictable::away(outline, flat, &self.meter, blob, called.into());
        let page = page.ok_or_else(|| damaged(blob, "no file has it"))?;
        Ok((Values::Column(page), Some(Arc::new(sketch))))
    }

    fn column_now(
        &self,
        blob: BlobRef,
        said: &ColumnSummary,
        shape: Shape<'_>,
        data_type: DataType,
    ) -> Result<NewValues, Damage> {
        let held = self.meter.budget().clock().source().and_then(|source| source.hold(blob));
        let held = held.ok_or_else(|| damaged(blob, "no file has it"))?;
        let bytes = held.read().map_err(|error| damaged(blob, &error.to_string()))?;
        let decoded = decode_column(&bytes, shape, data_type);
        let (encoded, sketch) = decoded.map_err(|Damage(what)| damaged(blob, &what))?;
        let outline = encoded.outline();
        let page = Evictable::new(encoded, outline.clone(), &self.meter, Some(blob));
        let read = ColumnSummary { outline, flat: page.flat_form(), sketch };
        if !are_same_columns(said, &read) {
            return Err(damaged(blob, "it is another column than the log says"));
        }
        Ok((Values::Column(page), Some(Arc::new(read.sketch))))
    }

    /// The shape of the columns that the reader begins with; refused where the range has other records.
    fn free_shape(&self, reader: &mut Reader<'_>, at: Timestamp) -> Result<Shape<'_>, Damage> {
        let len = reader.count(self.options.range_records, "records")?;
        let is_free = matches!(self.pages.load(&sync::pin()).meta, MetaPage::Insert { .. }) && self.tail_records() == 0;
        reader.check(len > 0 && self.len() <= len && is_free, || "is of a range that has other records".into())?;
        Ok(Shape { types: &self.types, len, at })
    }

    /// Gives the range these columns as its base pages, all records being from one commit.
    fn restore_early(&self, Shape { len, at, .. }: Shape<'_>, columns: Vec<NewValues>) {
        let lineage: Lineage = vec![0; self.parts.len()].into();
        let page = |(values, sketch)| Arc::new(Page { lineage: lineage.clone(), values, sketch });
        let columns = columns.into_iter().map(page).collect();
        let meta = MetaColumns {
            lineage: lineage.clone(),
            start: Arc::new(StartTimes::One(AtomicU64::new(at.0))),
            updates: None,
            inserted: at,
            newest: at,
            live_rows: len as u64,
            tombstones: 0,
            has_deleted: false,
        };
        self.raise_len(len - 1);
        self.close();
        self.pages.replace(Pages::new(MetaPage::Base(meta), columns), &sync::pin());
        self.has_published();
    }
}
