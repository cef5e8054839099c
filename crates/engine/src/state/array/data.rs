//! What is committed of an array table, and its latch.
use std::sync::{Arc, Weak};

use lineage::{MemoryBudget, is_wide};
use parking_lot::{Mutex, RwLock, RwLockWriteGuard};
use snapshot::{Batch, Mechanism, Options, SnapshotArray, SnapshotError};
use types::{DataType, Schema, Timestamp};

use super::image::ArrayImage;
use super::leaf::{LEAF_KEYS, Leaf, Overlay, Shape, place_of, slots};
use crate::error::{Error, Result};
use crate::terms::table_name::TableName;

/// Leaves of an array that has just been made: 65,536 keys.
const LEAVES_MIN: usize = 1 << 10;
/// So many keys are taken without a look at how many rows there are.
const KEYS_FREE: u64 = 1 << 20;
/// No key is as large as this.
pub(crate) const KEY_MAX: u64 = (u32::MAX as u64) * LEAF_KEYS as u64;
/// Beyond them, a key is taken that is less than this many times the rows.
const SPARSE_MAX: u64 = 4;
/// The words of the smallest page that a snapshot keeps.
const PAGE_WORDS: usize = 512;

/// The storage of an array table.
pub(crate) struct ArrayData {
    pub(crate) shape: Shape,
    /// Counts the array, and what transactions have written to it and not committed.
    pub(crate) budget: Arc<MemoryBudget>,
    stored: RwLock<Stored>,
}

/// What is committed.
pub(crate) struct Stored {
    /// Nothing before the first row.
    array: Option<Arc<SnapshotArray<u64>>>,
    leaf_count: usize,
    rows: u64,
    at: Timestamp,
    /// The snapshot that was taken last, while somebody reads it.
    latest: Mutex<Weak<ArrayImage>>,
}

impl ArrayData {
    /// The storage of a new table.
    ///
    /// # Errors
    /// [`Error::ArrayTable`] if its columns make no array.
    pub(crate) fn new(name: &str, schema: &Schema, budget: &Arc<MemoryBudget>) -> Result<ArrayData> {
        let refuse = |what: String, hint| Err(Error::ArrayTable { table: name.into(), what, hint });
        let &[key] = schema.primary_key() else {
            return refuse("anything but one key column".into(), "Give it a PRIMARY KEY of one integer column.");
        };
        let columns = schema.columns();
        let is_integer = matches!(columns[key].data_type, DataType::SmallInt | DataType::Integer | DataType::BigInt);
        if !is_integer {
            let what = format!("a key of type {}", columns[key].data_type);
            return refuse(what, "Use smallint, integer or bigint: keys are places in an array.");
        }
        for column in columns {
            if is_wide(column.data_type) {
                let what = format!("column \"{}\" of type {}", column.name, column.data_type);
                return refuse(what, "Use types of at most eight bytes, or a table of another layout.");
            }
            if column.nullable {
                let what = format!("column \"{}\", which may be NULL,", column.name);
                return refuse(what, "Declare it NOT NULL.");
            }
        }
        let stored = Stored { array: None, leaf_count: 0, rows: 0, at: Timestamp::ZERO, latest: Mutex::default() };
        debug_assert!(!columns.is_empty(), "the key is a column");
        Ok(ArrayData { shape: Shape::new(key, columns.len()), budget: budget.clone(), stored: RwLock::new(stored) })
    }

    /// Its latch, taken alone.
    pub(crate) fn latch(&self) -> RwLockWriteGuard<'_, Stored> {
        self.stored.write()
    }

    /// Its latch, unless it is taken alone by a commit: the newest commit then.
    pub(crate) fn newest_if_free(&self) -> Option<Timestamp> {
        self.stored.try_read().map(|stored| stored.at)
    }

    /// The newest commit that has written to it.
    pub(crate) fn newest(&self) -> Timestamp {
        self.stored.read().at
    }

    /// How many rows there are.
    pub(crate) fn rows(&self) -> u64 {
        self.stored.read().rows
    }

    pub(crate) fn leaf_count(&self) -> usize {
        self.stored.read().leaf_count
    }

    /// The memory that it may take, without what snapshots have for themselves.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes_of(self.leaf_count())
    }

    fn bytes_of(&self, leaves: usize) -> u64 {
        (leaves * self.shape.leaf_words() * size_of::<u64>()) as u64
    }

    /// Everything that is committed, as of one instant. `now` is called with the latch held, for what is to be known of that
    /// instant.
    pub(crate) fn image<T>(&self, name: &TableName, now: impl FnOnce() -> T) -> Result<(Arc<ArrayImage>, T)> {
        let stored = self.stored.read();
        let mut latest = stored.latest.lock();
        if let Some(image) = latest.upgrade().filter(|image| image.at == stored.at) {
            return Ok((image, now()));
        }
        let snapshot = stored.array.as_ref().map(|array| array.snapshot()).transpose();
        let snapshot = snapshot.map_err(|source| no_memory(name, source))?;
        let image = Arc::new(ArrayImage::new(snapshot, self.shape, stored.at));
        *latest = Arc::downgrade(&image);
        Ok((image, now()))
    }

    /// The newest committed row with a key, as its stored words.
    pub(crate) fn newest_row(&self, key: u64) -> Option<Vec<u64>> {
        let (leaf, slot) = place_of(key);
        let stored = self.stored.read();
        let array = stored.array.as_ref().filter(|_| leaf < stored.leaf_count)?;
        let word = |at: usize| array.get(leaf * self.shape.leaf_words() + at).unwrap_or_default();
        (word(0) >> slot & 1 == 1)
            .then(|| (0..self.shape.width()).map(|place| word(1 + place * LEAF_KEYS + slot)).collect())
    }

    /// The first key that would be too far from the others, where there are so many rows.
    pub(crate) fn keys_below(rows: u64) -> u64 {
        KEYS_FREE.max(SPARSE_MAX.saturating_mul(rows + 1))
    }

    /// The first key for which there is no room yet.
    pub(crate) fn keys_reserved(&self) -> u64 {
        (self.leaf_count() * LEAF_KEYS) as u64
    }

    /// Makes room for so many leaves, within the memory limit. The caller has the table for itself.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] at the limit, [`Error::ArrayMemory`] where the system has no memory. Nothing has changed then.
    pub(crate) fn reserve(&self, name: &TableName, leaves: usize) -> Result<()> {
        let leaf_count = self.leaf_count();
        if leaves <= leaf_count {
            return Ok(());
        }
        let used = self.budget.used_bytes() + self.bytes_of(room_for(leaves)) - self.bytes_of(leaf_count);
        match self.budget.limit_bytes() {
            limit if used > limit => Err(Error::OutOfMemory { used, limit }),
            _ => self.grow_to(name, leaves),
        }
    }

    /// Makes room for so many leaves, whatever the limit.
    ///
    /// # Errors
    /// [`Error::ArrayMemory`] where the system has no memory.
    pub(crate) fn grow_to(&self, name: &TableName, leaves: usize) -> Result<()> {
        let mut stored = self.stored.write();
        if leaves <= stored.leaf_count {
            return Ok(());
        }
        let leaf_count = room_for(leaves);
        let more = self.bytes_of(leaf_count) - self.bytes_of(stored.leaf_count);
        let array = self.grown(&stored, leaf_count).map_err(|source| no_memory(name, source))?;
        self.budget.add(more as i64);
        (stored.array, stored.leaf_count) = (Some(Arc::new(array)), leaf_count);
        debug_assert!(stored.leaf_count >= leaves, "room for {leaves} leaves");
        Ok(())
    }

    /// A larger array with the same rows. Pages without rows are not touched, and take no memory.
    fn grown(&self, stored: &Stored, leaf_count: usize) -> Result<SnapshotArray<u64>, SnapshotError> {
        let len = leaf_count * self.shape.leaf_words();
        let array = match SnapshotArray::new(len, &Options::of(Mechanism::Rewire)) {
            Err(SnapshotError::Refused { .. }) => SnapshotArray::new(len, &Options::of(Mechanism::Physical))?,
            made => made?,
        };
        if let Some(old) = &stored.array {
            let mut writer = array.writer();
            for at in 0..old.len() {
                match old.get(at)? {
                    0 => {}
                    word => writer.set(at, word)?,
                }
            }
        }
        Ok(array)
    }

    /// Sees to it that [`apply`](Self::apply) cannot fail: the pages to be written are kept for the snapshots that share them. No
    /// snapshot begins between the two, as the caller has the latch.
    ///
    /// # Errors
    /// [`Error::ArrayMemory`] where the system has no memory for that.
    pub(crate) fn prepare(&self, name: &TableName, stored: &Stored, overlay: &Overlay) -> Result<()> {
        let Some(array) = &stored.array else { return Ok(()) };
        debug_assert!(overlay.leaf_count() <= stored.leaf_count, "room was made for every row");
        let mut writer = array.writer();
        writer.batch(|batch| {
            for number in overlay.leaves.keys() {
                let start = number * self.shape.leaf_words();
                let end = start + self.shape.leaf_words();
                for at in (start..end).step_by(PAGE_WORDS).chain([end - 1]) {
                    batch.update(at, |word| word).map_err(|source| no_memory(name, source))?;
                }
            }
            Ok(())
        })
    }

    /// Writes what a transaction has committed at `at`. The caller has the latch and has prepared it, unless nobody reads, as
    /// during recovery.
    ///
    /// # Errors
    /// Where a page cannot be kept for a snapshot, which [`prepare`](Self::prepare) rules out.
    pub(crate) fn apply(&self, stored: &mut Stored, overlay: &Overlay, at: Timestamp) -> Result<(), SnapshotError> {
        debug_assert!(stored.at <= at, "invariant 4: {at:?} is written after {:?}", stored.at);
        if let Some(array) = stored.array.clone() {
            let mut writer = array.writer();
            writer.batch(|batch| {
                overlay.leaves.iter().try_for_each(|(number, leaf)| self.apply_leaf(stored, batch, *number, leaf))
            })?;
        }
        stored.at = at;
        Ok(())
    }

    fn apply_leaf(
        &self,
        stored: &mut Stored,
        batch: &mut Batch<'_, '_, u64>,
        number: usize,
        leaf: &Leaf,
    ) -> Result<(), SnapshotError> {
        let start = number * self.shape.leaf_words();
        let before = batch.get(start)?;
        let after = (before & !leaf.touched) | leaf.present;
        stored.rows = stored.rows + u64::from(after.count_ones()) - u64::from(before.count_ones());
        for slot in slots(leaf.touched) {
            for place in 0..self.shape.width() {
                // A key without a row has zeros, so that pages of such keys alone stay as they are.
                let word = if leaf.present >> slot & 1 == 1 { leaf.word(place, slot) } else { 0 };
                batch.set(start + 1 + place * LEAF_KEYS + slot, word)?;
            }
        }
        batch.set(start, after)
    }

    /// Puts whole leaves there, as a checkpoint has them. For recovery.
    ///
    /// # Errors
    /// As [`grow_to`](Self::grow_to).
    pub(crate) fn restore(&self, name: &TableName, first: usize, words: &[u64]) -> Result<()> {
        let leaves = words.len() / self.shape.leaf_words();
        self.grow_to(name, first + leaves)?;
        let mut stored = self.stored.write();
        let rows = words.chunks(self.shape.leaf_words()).map(|leaf| u64::from(leaf[0].count_ones())).sum::<u64>();
        if let Some(array) = stored.array.clone() {
            let mut writer = array.writer();
            for (at, word) in words.iter().enumerate().filter(|(_, word)| **word != 0) {
                let index = first * self.shape.leaf_words() + at;
                writer.set(index, *word).map_err(|source| no_memory(name, source))?;
            }
        }
        stored.rows += rows;
        debug_assert!(stored.leaf_count >= first + leaves, "invariant 3: a leaf of a checkpoint has no room");
        Ok(())
    }

    /// Sets up to which commit it has everything. For recovery.
    pub(crate) fn restored_at(&self, at: Timestamp) {
        let mut stored = self.stored.write();
        debug_assert!(stored.at <= at, "invariant 4: {at:?} is before {:?}", stored.at);
        stored.at = at;
    }
}

impl Drop for ArrayData {
    fn drop(&mut self) {
        self.budget.add(-(self.bytes() as i64));
    }
}

/// The leaves of an array that has room for so many.
fn room_for(leaves: usize) -> usize {
    leaves.next_power_of_two().max(LEAVES_MIN)
}

fn no_memory(name: &TableName, source: SnapshotError) -> Error {
    Error::ArrayMemory { table: name.to_string(), source }
}
