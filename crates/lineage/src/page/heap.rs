//! The byte heap of a page: where insert and tail pages keep values that do not fit a word.
//!
//! Append-only. Space is taken by one compare-and-swap on (chunk, bytes used); the bytes are then written by the
//! caller that took them and never change. The word that a page stores is a place in the heap:
//!
//! ```text
//! word:   | chunk + 1 (32) | offset (32) |      chunk:  ... | length (4, LE) | bytes ... | length | ...
//! ```
//!
//! The word 0, which a page has where nothing was stored yet, names no place.
//!
//! Chunks start small and double up to 256 KiB; a value larger than a quarter of that has a chunk of its own.
use std::cell::UnsafeCell;

use sync::Directory;
use sync::atomic::{AtomicU32, AtomicU64, Ordering};

const CHUNK_BYTES_MIN: usize = 4 << 10;
const CHUNK_BYTES_MAX: usize = 256 << 10;
const OWN_CHUNK_BYTES: usize = CHUNK_BYTES_MAX / 4;
const PREFIX: usize = size_of::<u32>();
/// The value of `current` before the first chunk: a chunk number that is never reached, with no room left.
const NO_CHUNK: u64 = (u32::MAX as u64) << 32 | u32::MAX as u64;

/// The longest value that a heap takes, in bytes: half of PostgreSQL's limit, so that it fits a log frame.
pub const VALUE_BYTES_MAX: usize = 1 << 29;

/// An append-only heap of byte strings.
pub struct ByteHeap {
    chunks: Directory<Chunk>,
    current: AtomicU64,
    chunk_next: AtomicU32,
}

struct Chunk {
    bytes: Box<[UnsafeCell<u8>]>,
}

// SAFETY: each byte of a chunk is written by the one caller that reserved it (`ByteHeap::reserve` hands out disjoint
// spans) before the word naming it is published; afterwards it is only read.
unsafe impl Sync for Chunk {}

impl Chunk {
    fn new(len: usize) -> Chunk {
        let zeroed = vec![0u8; len].into_boxed_slice();
        // SAFETY: `UnsafeCell<u8>` has the layout of `u8`, and the box is the only owner.
        Chunk { bytes: unsafe { Box::from_raw(Box::into_raw(zeroed) as *mut [UnsafeCell<u8>]) } }
    }

    /// # Safety
    /// - `offset..offset + bytes.len()` was reserved by the caller and is not yet known to any other thread.
    unsafe fn write(&self, offset: usize, bytes: &[u8]) {
        let target = &self.bytes[offset..offset + bytes.len()];
        // SAFETY: the span lies within the chunk (the slice above checked it) and no other thread reads or writes
        // it.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), target.as_ptr() as *mut u8, bytes.len()) };
    }

    /// # Safety
    /// - the span was written and published before this call.
    unsafe fn read(&self, offset: usize, len: usize) -> &[u8] {
        let source = &self.bytes[offset..offset + len];
        // SAFETY: the span lies within the chunk, was written before it was published, and never changes again.
        unsafe { std::slice::from_raw_parts(source.as_ptr() as *const u8, len) }
    }
}

impl Default for ByteHeap {
    fn default() -> Self {
        ByteHeap { chunks: Directory::new(), current: AtomicU64::new(NO_CHUNK), chunk_next: AtomicU32::new(0) }
    }
}

impl ByteHeap {
    /// Appends `bytes` and returns the word that names them. The word must reach other threads by a release store.
    /// `allocated` is told the bytes of memory that this took.
    pub fn append(&self, bytes: &[u8], allocated: impl Fn(usize)) -> u64 {
        assert!(bytes.len() <= VALUE_BYTES_MAX, "checked by the engine before a value comes here");
        let (chunk_index, offset) = self.reserve(PREFIX + bytes.len(), allocated);
        let chunk = self.chunks.get(chunk_index as usize).expect("a reserved chunk was made");
        // SAFETY: `reserve` gave this span to this call alone.
        unsafe {
            chunk.write(offset as usize, &(bytes.len() as u32).to_le_bytes());
            chunk.write(offset as usize + PREFIX, bytes);
        }
        u64::from(chunk_index + 1) << 32 | u64::from(offset)
    }

    /// The bytes that `word` names; none for 0.
    ///
    /// # Safety
    /// - `word` is 0, or came from [`ByteHeap::append`] of this heap and was read through an acquire load that saw the
    ///   release store which published it.
    #[inline]
    pub unsafe fn get(&self, word: u64) -> &[u8] {
        let Some(chunk) = (word >> 32).checked_sub(1) else { return &[] };
        let chunk = self.chunks.get(chunk as usize).expect("a published word names a chunk");
        let offset = word as u32 as usize;
        // SAFETY: by the contract the prefix and the bytes behind it are written and published.
        unsafe {
            let mut prefix = [0; PREFIX];
            prefix.copy_from_slice(chunk.read(offset, PREFIX));
            chunk.read(offset + PREFIX, u32::from_le_bytes(prefix) as usize)
        }
    }

    fn reserve(&self, len: usize, allocated: impl Fn(usize)) -> (u32, u32) {
        let add_chunk = |len| {
            allocated(len);
            self.add_chunk(len)
        };
        if len > OWN_CHUNK_BYTES {
            return (add_chunk(len), 0);
        }
        let mut current = self.current.load(Ordering::Acquire);
        loop {
            let (chunk, used) = ((current >> 32) as u32, current as u32);
            let room = if current == NO_CHUNK { 0 } else { self.chunk_len(chunk).saturating_sub(used as usize) };
            let (next, place) = if len <= room {
                (current + len as u64, (chunk, used))
            } else {
                let doubled = CHUNK_BYTES_MAX.min(CHUNK_BYTES_MIN << self.chunk_count().min(16));
                let added = add_chunk(doubled.max(len));
                (u64::from(added) << 32 | len as u64, (added, 0))
            };
            match self.current.compare_exchange(current, next, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return place,
                Err(seen) => current = seen,
            }
        }
    }

    fn chunk_count(&self) -> u32 {
        self.chunk_next.load(Ordering::Relaxed)
    }

    fn chunk_len(&self, chunk: u32) -> usize {
        self.chunks.get(chunk as usize).map_or(0, |chunk| chunk.bytes.len())
    }

    fn add_chunk(&self, len: usize) -> u32 {
        let index = self.chunk_next.fetch_add(1, Ordering::AcqRel);
        self.chunks.get_or_init(index as usize, || Chunk::new(len));
        index
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_all_lengths_come_back() {
        let heap = ByteHeap::default();
        let value = |i: usize| vec![i as u8; [0, 1, 11, 300, 4_000, 70_000, 300_000][i % 7]];
        let words: Vec<u64> = (0..500).map(|i| heap.append(&value(i), |_| {})).collect();
        assert!(!words.contains(&0));
        // SAFETY: 0 is no place.
        assert_eq!(unsafe { heap.get(0) }, b"");
        for (i, word) in words.into_iter().enumerate() {
            // SAFETY: the words come from this heap and this thread.
            assert_eq!(unsafe { heap.get(word) }, value(i), "value {i}");
        }
    }

    #[test]
    fn appenders_never_share_a_span() {
        let heap = ByteHeap::default();
        let words: Vec<(u64, Vec<u8>)> = std::thread::scope(|scope| {
            let writers: Vec<_> = (0..4u8)
                .map(|writer| {
                    let heap = &heap;
                    scope.spawn(move || {
                        let value = |i: usize| vec![writer * 60 + (i % 60) as u8; i % 100];
                        (0..5_000).map(|i| (heap.append(&value(i), |_| {}), value(i))).collect::<Vec<_>>()
                    })
                })
                .collect();
            writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect()
        });
        for (word, value) in words {
            // SAFETY: the words come from this heap; joining the writers published them.
            assert_eq!(unsafe { heap.get(word) }, value);
        }
    }
}
