//! A column of a delta storage: its rows as ids, with the index that they are ids of (tsx-index, figure 2).
use sync::atomic::{AtomicU64, Ordering};
use sync::zeroed::AtomicU32;
use sync::{Latch, RwSpinLatch};

use super::buckets::Buckets;
use super::dictionary::{DictionaryError, ValueId};
use super::value::DictionaryValue;
use super::{DeltaForm, DeltaIndex};

/// A column that values are appended to, from any number of threads. Reading takes no latch.
pub struct DeltaColumn<V: DictionaryValue + ?Sized, L = RwSpinLatch> {
    index: DeltaIndex<V, L>,
    row_count: AtomicU64,
    /// The word of a row's id, plus one; 0 where the row is not written yet.
    rows: Buckets<AtomicU32>,
}

impl<V: DictionaryValue + ?Sized, L: Latch> Default for DeltaColumn<V, L> {
    fn default() -> Self {
        Self::new(DeltaForm::default())
    }
}

impl<V: DictionaryValue + ?Sized, L: Latch> DeltaColumn<V, L> {
    /// The rows that a column can have.
    pub const ROWS_MAX: u64 = u32::MAX as u64;

    /// An empty column.
    pub fn new(form: DeltaForm) -> Self {
        DeltaColumn { index: DeltaIndex::new(form), row_count: AtomicU64::new(0), rows: Buckets::default() }
    }

    /// The dictionary and its index.
    pub fn index(&self) -> &DeltaIndex<V, L> {
        &self.index
    }

    /// Appends a row, and returns its number. None when the column has [`DeltaColumn::ROWS_MAX`] rows.
    ///
    /// # Errors
    /// As [`DeltaIndex::encode`]; no row was appended.
    pub fn append(&self, value: V::Borrowed<'_>) -> Result<Option<u32>, DictionaryError> {
        let id = self.index.encode(value)?;
        let next = |count: u64| (count < Self::ROWS_MAX).then_some(count + 1);
        let Ok(row) = self.row_count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next) else {
            return Ok(None);
        };
        self.rows.reserve(row as u32).store(id.word() + 1, Ordering::Release);
        Ok(Some(row as u32))
    }

    /// How many rows have been appended, those included that another thread is about to write.
    pub fn row_count(&self) -> u64 {
        self.row_count.load(Ordering::Relaxed)
    }

    /// The id in a row, once it is written.
    #[inline]
    pub fn id(&self, row: u32) -> Option<ValueId> {
        self.rows.get(row)?.load(Ordering::Acquire).checked_sub(1).map(ValueId::from_word)
    }

    /// The value in a row, once it is written.
    #[inline]
    pub fn value(&self, row: u32) -> Option<V::Borrowed<'_>> {
        self.index.value(self.id(row)?)
    }
}
