//! The paper's example: a hash table in a heap (Hathi, figure 2).
//!
//! ```text
//!   table    | buckets -> | how many, a power of two |  .. | 16 counts, four words apart
//!   buckets  | -> | -> | 0 | -> | ...
//!   entry    | key | value | next -> |
//! ```
//!
//! It differs from the figure in one thing: the number of entries is kept in several counts, a key's by its hash,
//! so that transactions on different keys seldom meet at them. The table doubles when one of them is full.

use crate::error::HeapResult;
use crate::reference::HeapRef;
use crate::transaction::Transaction;

const BUCKETS: u64 = 0;
const BUCKET_COUNT: u64 = 1;
const COUNTS: u64 = 4;
const COUNT_STEP: u64 = 4;
const COUNT_COUNT: u64 = 16;
const TABLE_WORDS: u64 = COUNTS + COUNT_COUNT * COUNT_STEP;

const KEY: u64 = 0;
const VALUE: u64 = 1;
const NEXT: u64 = 2;
const ENTRY_WORDS: u64 = 3;

const BUCKETS_MIN: u64 = 16;

/// A hash table of words by words. The value is only its place: keep it in a root, or in another block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HashTable {
    table: HeapRef,
}

impl HashTable {
    /// A new, empty table with room for about so many entries before it grows.
    ///
    /// # Errors
    /// As [`Transaction::pmalloc`].
    pub fn create(tx: &mut Transaction<'_>, entries: u64) -> HeapResult<HashTable> {
        let table = tx.pmalloc(TABLE_WORDS)?;
        let bucket_count = entries.max(BUCKETS_MIN).next_power_of_two();
        let buckets = tx.pmalloc(bucket_count)?;
        tx.write_ref(table.at(BUCKETS), buckets)?;
        tx.write(table.at(BUCKET_COUNT), bucket_count)?;
        Ok(HashTable { table })
    }

    /// The table at a place where one was created.
    pub fn at(table: HeapRef) -> HashTable {
        HashTable { table }
    }

    /// Its place.
    pub fn place(&self) -> HeapRef {
        self.table
    }

    /// The value of a key.
    ///
    /// # Errors
    /// [`HeapError::Conflict`](crate::HeapError::Conflict);
    /// [`HeapError::OutOfBounds`](crate::HeapError::OutOfBounds) if the place is not that of a table.
    pub fn get(&self, tx: &mut Transaction<'_>, key: u64) -> HeapResult<Option<u64>> {
        let (_, entry) = self.find(tx, key)?;
        if entry.is_null() { Ok(None) } else { tx.read(entry.at(VALUE)).map(Some) }
    }

    /// Sets the value of a key. Returns the one before.
    ///
    /// # Errors
    /// As [`Transaction::pmalloc`] and [`Transaction::pfree`], as a new entry takes a block and may double the table;
    /// [`HeapError::OutOfBounds`](crate::HeapError::OutOfBounds) if the place is not that of a table.
    pub fn insert(&self, tx: &mut Transaction<'_>, key: u64, value: u64) -> HeapResult<Option<u64>> {
        let (link, entry) = self.find(tx, key)?;
        if !entry.is_null() {
            let before = tx.read(entry.at(VALUE))?;
            tx.write(entry.at(VALUE), value)?;
            return Ok(Some(before));
        }
        let entry = tx.pmalloc(ENTRY_WORDS)?;
        tx.write(entry.at(KEY), key)?;
        tx.write(entry.at(VALUE), value)?;
        tx.write_ref(link, entry)?;
        let count = self.add_to_count(tx, key, 1)?;
        let bucket_count = tx.read(self.table.at(BUCKET_COUNT))?;
        if count * COUNT_COUNT > bucket_count {
            self.grow(tx, bucket_count)?;
        }
        Ok(None)
    }

    /// Removes a key. Returns its value.
    ///
    /// # Errors
    /// As [`Transaction::pfree`]; [`HeapError::OutOfBounds`](crate::HeapError::OutOfBounds) if the place is not
    /// that of a table.
    pub fn remove(&self, tx: &mut Transaction<'_>, key: u64) -> HeapResult<Option<u64>> {
        let (link, entry) = self.find(tx, key)?;
        if entry.is_null() {
            return Ok(None);
        }
        let value = tx.read(entry.at(VALUE))?;
        let next = tx.read_ref(entry.at(NEXT))?;
        tx.write_ref(link, next)?;
        tx.pfree(entry)?;
        self.add_to_count(tx, key, u64::MAX)?;
        Ok(Some(value))
    }

    /// How many entries there are. Meets every transaction that changes this.
    ///
    /// # Errors
    /// [`HeapError::Conflict`](crate::HeapError::Conflict);
    /// [`HeapError::OutOfBounds`](crate::HeapError::OutOfBounds) if the place is not that of a table.
    pub fn len(&self, tx: &mut Transaction<'_>) -> HeapResult<u64> {
        (0..COUNT_COUNT).try_fold(0, |sum, count| Ok(sum + tx.read(self.count_at(count))?))
    }

    /// Whether there are no entries.
    ///
    /// # Errors
    /// As [`len`](Self::len).
    pub fn is_empty(&self, tx: &mut Transaction<'_>) -> HeapResult<bool> {
        self.len(tx).map(|len| len == 0)
    }

    /// All entries, in no order: keys with their values.
    ///
    /// # Errors
    /// [`HeapError::Conflict`](crate::HeapError::Conflict);
    /// [`HeapError::OutOfBounds`](crate::HeapError::OutOfBounds) if the place is not that of a table.
    pub fn entries(&self, tx: &mut Transaction<'_>) -> HeapResult<Vec<(u64, u64)>> {
        let mut entries = Vec::new();
        let buckets = tx.read_ref(self.table.at(BUCKETS))?;
        for bucket in 0..tx.read(self.table.at(BUCKET_COUNT))? {
            let mut entry = tx.read_ref(buckets.at(bucket))?;
            while !entry.is_null() {
                entries.push((tx.read(entry.at(KEY))?, tx.read(entry.at(VALUE))?));
                entry = tx.read_ref(entry.at(NEXT))?;
            }
        }
        Ok(entries)
    }

    /// The word that leads to the entry of a key, and the entry; no place where there is none.
    fn find(&self, tx: &mut Transaction<'_>, key: u64) -> HeapResult<(HeapRef, HeapRef)> {
        let buckets = tx.read_ref(self.table.at(BUCKETS))?;
        let bucket_count = tx.read(self.table.at(BUCKET_COUNT))?;
        let mut link = buckets.at(hash(key) & (bucket_count - 1));
        loop {
            let entry = tx.read_ref(link)?;
            if entry.is_null() || tx.read(entry.at(KEY))? == key {
                return Ok((link, entry));
            }
            link = entry.at(NEXT);
        }
    }

    fn count_at(&self, count: u64) -> HeapRef {
        self.table.at(COUNTS + count * COUNT_STEP)
    }

    fn add_to_count(&self, tx: &mut Transaction<'_>, key: u64, change: u64) -> HeapResult<u64> {
        // The upper bits: the lower ones choose the bucket.
        let at = self.count_at(hash(key) >> 28 & (COUNT_COUNT - 1));
        let count = tx.read(at)?.wrapping_add(change);
        tx.write(at, count)?;
        Ok(count)
    }

    /// Doubles the buckets and hangs every entry into its new one.
    fn grow(&self, tx: &mut Transaction<'_>, bucket_count: u64) -> HeapResult<()> {
        let before = tx.read_ref(self.table.at(BUCKETS))?;
        let buckets = tx.pmalloc(2 * bucket_count)?;
        for bucket in 0..bucket_count {
            let mut entry = tx.read_ref(before.at(bucket))?;
            while !entry.is_null() {
                let next = tx.read_ref(entry.at(NEXT))?;
                let link = buckets.at(hash(tx.read(entry.at(KEY))?) & (2 * bucket_count - 1));
                let first = tx.read(link)?;
                tx.write(entry.at(NEXT), first)?;
                tx.write_ref(link, entry)?;
                entry = next;
            }
        }
        tx.write_ref(self.table.at(BUCKETS), buckets)?;
        tx.write(self.table.at(BUCKET_COUNT), 2 * bucket_count)?;
        tx.pfree(before)
    }
}

fn hash(key: u64) -> u64 {
    let mixed = (key ^ key >> 32).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed >> 32
}
