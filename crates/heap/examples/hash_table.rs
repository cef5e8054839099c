//! A hash table that survives the end of its process: the paper's example (Hathi, figure 2).
//!
//! `cargo run --release -p lstore-heap --example hash_table -- DIRECTORY WORD...`
//!
//! Counts the words that it is given, and all that it was ever given; run it twice, or stop it in the middle.
use std::error::Error;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use durability::{CommitMode, FsDevice};
use heap::{HashTable, Heap, HeapError, HeapOptions, Transaction};

/// The root that leads to the table.
const TABLE: usize = 0;

/// The table of the heap, a new one if there is none.
fn table(tx: &mut Transaction<'_>) -> Result<HashTable, HeapError> {
    let place = tx.root(TABLE)?;
    if !place.is_null() {
        return Ok(HashTable::at(place));
    }
    let table = HashTable::create(tx, 1_000)?;
    tx.set_root(TABLE, table.place())?;
    Ok(table)
}

/// The key of a word; this is an example, and does not look whether two words share one.
fn key(word: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    word.hash(&mut hasher);
    hasher.finish()
}

/// Counts a word, durably. Returns how often it was counted by now.
fn count(heap: &Heap, word: &str) -> Result<u64, HeapError> {
    heap.atomically(CommitMode::Sync, |tx| {
        let table = table(tx)?;
        let times = table.get(tx, key(word))?.unwrap_or(0) + 1;
        table.insert(tx, key(word), times)?;
        Ok(times)
    })
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let directory = arguments.next().ok_or("usage: hash_table DIRECTORY WORD...")?;
    let options = HeapOptions { words: 1 << 22, ..HeapOptions::default() };
    let (heap, recovered) = Heap::open(Arc::new(FsDevice::new(&directory)?), options)?;
    println!("{directory}: {} commits were found in the log", recovered.log.commits);
    for word in arguments {
        println!("{word}: {}", count(&heap, &word)?);
    }
    let words = heap.atomically(CommitMode::Async, |tx| {
        let table = table(tx)?;
        table.len(tx)
    })?;
    println!("{words} different words in all");
    heap.checkpoint()?;
    Ok(heap.close()?)
}
