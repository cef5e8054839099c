//! A temporary file whose accesses are counted, in order or anywhere, as the paper's Table 1 counts them.
//!
//! An access is in order if it begins at the page after the last one of its kind. The paper traced the block device, where reads
//! and writes of a merge have been gathered by the system; here each page is an access of its own, and reads and writes have a place
//! each, as they take turns page by page.
use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Keys of a page.
pub(super) const KEYS: usize = 1024;

/// How often pages were written and read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// in order
    pub sequential_writes: u64,
    /// anywhere
    pub random_writes: u64,
    /// in order
    pub sequential_reads: u64,
    /// anywhere
    pub random_reads: u64,
}

impl Counts {
    /// Those of two operators together.
    #[must_use]
    pub fn and(self, other: Counts) -> Counts {
        Counts {
            sequential_writes: self.sequential_writes + other.sequential_writes,
            random_writes: self.random_writes + other.random_writes,
            sequential_reads: self.sequential_reads + other.sequential_reads,
            random_reads: self.random_reads + other.random_reads,
        }
    }
}

/// A temporary file of pages of keys.
pub(super) struct Spill {
    file: File,
    /// pages that were read for the last time, the lowest of which is written next
    free: BTreeSet<u64>,
    end: u64,
    last_write: Option<u64>,
    last_read: Option<u64>,
    pub(super) counts: Counts,
}

impl Spill {
    pub(super) fn new(path: &Path) -> io::Result<Spill> {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(path)?;
        Ok(Spill { file, free: BTreeSet::new(), end: 0, last_write: None, last_read: None, counts: Counts::default() })
    }

    /// Sets so many neighbouring pages aside at the end of the file.
    pub(super) fn extent(&mut self, pages: u64) -> u64 {
        self.end += pages;
        self.end - pages
    }

    /// A page to be written: one that is free, or the next at the end.
    pub(super) fn place(&mut self) -> u64 {
        self.free.pop_first().unwrap_or_else(|| self.extent(1))
    }

    pub(super) fn write(&mut self, page: u64, keys: &[u64]) -> io::Result<()> {
        let mut bytes = vec![0u8; KEYS * 8];
        bytes.chunks_exact_mut(8).zip(keys).for_each(|(word, key)| word.copy_from_slice(&key.to_le_bytes()));
        self.file.write_all_at(&bytes, page * bytes.len() as u64)?;
        match is_next(&mut self.last_write, page) {
            true => self.counts.sequential_writes += 1,
            false => self.counts.random_writes += 1,
        }
        Ok(())
    }

    /// Reads a page for the last time.
    pub(super) fn take(&mut self, page: u64, count: usize) -> io::Result<Vec<u64>> {
        let mut bytes = vec![0u8; KEYS * 8];
        self.file.read_exact_at(&mut bytes, page * (KEYS * 8) as u64)?;
        match is_next(&mut self.last_read, page) {
            true => self.counts.sequential_reads += 1,
            false => self.counts.random_reads += 1,
        }
        self.free.insert(page);
        let word = |word: &[u8]| u64::from_le_bytes(word.try_into().expect("eight bytes"));
        Ok(bytes.chunks_exact(8).take(count).map(word).collect())
    }
}

/// Whether a page is the one after the last, which it becomes. The first of all is in order.
fn is_next(last: &mut Option<u64>, page: u64) -> bool {
    last.replace(page).is_none_or(|last| page == last + 1)
}
