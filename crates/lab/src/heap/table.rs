//! The paper's hash table under many threads: of ten transactions six look for two keys each, two insert one, two remove
//! one.
//!
//! The value of a key is the key turned round, so that an entry shows whether it is whole.

use durability::CommitMode;
use heap::{CommittedTransaction, HashTable, Heap, HeapError, HeapResult};

use crate::heap::{Random, Workload};

/// Entries that are put in by one transaction when the table is filled.
const FILLED: u64 = 256;

/// A hash table with keys from a range, half of them there.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    table: HashTable,
    keys: u64,
}

impl Table {
    /// A table for so many keys, every other one inserted.
    ///
    /// # Errors
    /// [`HeapError::OutOfSpace`] if the heap is too small for it; [`HeapError::Log`] if the log fails.
    pub fn create(heap: &Heap, keys: u64) -> HeapResult<Table> {
        let table = heap.atomically(CommitMode::Async, |tx| HashTable::create(tx, keys))?;
        for start in (0..keys).step_by(2 * FILLED as usize) {
            heap.atomically(CommitMode::Async, |tx| {
                let mut keys = (start..keys.min(start + 2 * FILLED)).step_by(2);
                keys.try_for_each(|key| table.insert(tx, key, !key).map(drop))
            })?;
        }
        Ok(Table { table, keys })
    }
}

impl Workload for Table {
    fn step(&self, heap: &Heap, random: &mut Random, mode: CommitMode) -> HeapResult<CommittedTransaction> {
        let (kind, key, other) = (random.below(10), random.below(self.keys), random.below(self.keys));
        let table = self.table;
        let work = heap.atomically_split_phase(mode, |tx| {
            match kind {
                0..6 => drop((table.get(tx, key)?, table.get(tx, other)?)),
                6..8 => drop(table.insert(tx, key, !key)?),
                _ => drop(table.remove(tx, key)?),
            }
            Ok::<_, HeapError>(())
        });
        work.map(|(_, committed)| committed)
    }

    fn check(&self, heap: &Heap) -> HeapResult<Result<(), String>> {
        heap.atomically(CommitMode::Async, |tx| {
            let mut entries = self.table.entries(tx)?;
            let len = self.table.len(tx)?;
            entries.sort_unstable();
            if len != entries.len() as u64 {
                return Ok(Err(format!("{} entries hang in the table, which counts {len}", entries.len())));
            }
            let is_doubled = entries.windows(2).any(|pair| pair[0].0 == pair[1].0);
            let wrong = entries.iter().find(|(key, value)| *value != !key || *key >= self.keys);
            Ok(match wrong {
                Some((key, value)) => Err(format!("key {key} has value {value:x}")),
                None if is_doubled => Err("a key is there twice".to_string()),
                None => Ok(()),
            })
        })
    }
}
