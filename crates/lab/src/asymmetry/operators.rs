//! A sort and a hash join that keep few pages in memory and the rest in a temporary file, built as the paper describes PostgreSQL's
//! (its Section 3.1.2) for what they write and read.
//!
//! ```text
//! sort       heap of memory ─▶ runs, twice as long as memory ─▶ merged a few at a time, pages that were read being written again
//! hash join  inner side ─▶ batches, one page of each in memory ─▶ outer side likewise ─▶ batch by batch: table, lookups
//! ```
//!
//! Batches grow side by side, each in stretches of neighbouring pages, as file systems set space aside for files that grow.
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::io;
use std::path::Path;

use costs::CostModel;

use super::trace::{Counts, KEYS, Spill};

/// The pages that a batch is given at a time.
const EXTENT: u64 = 64;

/// Pages in the order of their keys, and how many keys each has.
type Run = VecDeque<(u64, usize)>;

/// Sorts keys with so many pages of memory; the keys in order, and what was written and read.
///
/// # Errors
/// If the file can't be made, written or read.
pub fn sort(path: &Path, keys: impl Iterator<Item = u64>, memory: usize) -> io::Result<(Vec<u64>, Counts)> {
    let mut spill = Spill::new(path)?;
    let mut runs = first_runs(&mut spill, keys, memory * KEYS)?;
    let order = CostModel::merge_order(memory as f64) as usize;
    while runs.len() > order {
        let some: Vec<Run> = runs.drain(..order).collect();
        let mut merged = Writer::default();
        merge(&mut spill, some, |spill, key| merged.push(spill, key))?;
        runs.push_back(merged.end(&mut spill)?);
    }
    let mut sorted = Vec::new();
    merge(&mut spill, runs.into(), |_, key| {
        sorted.push(key);
        Ok(())
    })?;
    Ok((sorted, spill.counts))
}

/// Replacement selection: the least key that may still go into this run leaves a heap, and the next one takes its place.
fn first_runs(spill: &mut Spill, mut keys: impl Iterator<Item = u64>, capacity: usize) -> io::Result<VecDeque<Run>> {
    let mut heap: BinaryHeap<Reverse<(usize, u64)>> =
        keys.by_ref().take(capacity).map(|key| Reverse((0, key))).collect();
    let (mut runs, mut writer, mut run) = (VecDeque::new(), Writer::default(), 0);
    while let Some(Reverse((of, key))) = heap.pop() {
        if of != run {
            runs.push_back(std::mem::take(&mut writer).end(spill)?);
            run = of;
        }
        writer.push(spill, key)?;
        if let Some(next) = keys.next() {
            heap.push(Reverse((if next < key { run + 1 } else { run }, next)));
        }
    }
    runs.push_back(writer.end(spill)?);
    Ok(runs)
}

/// Writes keys page by page.
#[derive(Default)]
struct Writer {
    keys: Vec<u64>,
    run: Run,
}

impl Writer {
    fn push(&mut self, spill: &mut Spill, key: u64) -> io::Result<()> {
        self.keys.push(key);
        if self.keys.len() == KEYS { self.flush(spill) } else { Ok(()) }
    }

    fn flush(&mut self, spill: &mut Spill) -> io::Result<()> {
        let page = spill.place();
        spill.write(page, &self.keys)?;
        self.run.push_back((page, self.keys.len()));
        self.keys.clear();
        Ok(())
    }

    fn end(mut self, spill: &mut Spill) -> io::Result<Run> {
        if !self.keys.is_empty() {
            self.flush(spill)?;
        }
        Ok(self.run)
    }
}

/// Gives the keys of all runs in order; a page of each run is in memory.
fn merge(
    spill: &mut Spill,
    mut runs: Vec<Run>,
    mut give: impl FnMut(&mut Spill, u64) -> io::Result<()>,
) -> io::Result<()> {
    let mut pages: Vec<VecDeque<u64>> = vec![VecDeque::new(); runs.len()];
    let mut heap = BinaryHeap::new();
    for at in 0..runs.len() {
        next(spill, &mut runs[at], &mut pages[at])?.into_iter().for_each(|key| heap.push(Reverse((key, at))));
    }
    while let Some(Reverse((key, at))) = heap.pop() {
        give(spill, key)?;
        next(spill, &mut runs[at], &mut pages[at])?.into_iter().for_each(|key| heap.push(Reverse((key, at))));
    }
    Ok(())
}

fn next(spill: &mut Spill, run: &mut Run, page: &mut VecDeque<u64>) -> io::Result<Option<u64>> {
    if page.is_empty()
        && let Some((at, count)) = run.pop_front()
    {
        *page = spill.take(at, count)?.into();
    }
    Ok(page.pop_front())
}

/// Joins two sides by their keys with so many pages of memory; how many pairs there are, and what was written and read.
///
/// # Errors
/// If the file can't be made, written or read.
pub fn hash_join(
    path: &Path,
    inner: impl ExactSizeIterator<Item = u64>,
    outer: impl Iterator<Item = u64>,
    memory: usize,
) -> io::Result<(u64, Counts)> {
    let mut spill = Spill::new(path)?;
    let batches = inner.len().div_ceil(memory * KEYS).max(1);
    let batch_of = |key: u64| (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33) as usize % batches;
    let (mut table, mut count): (HashMap<u64, u64>, u64) = (HashMap::new(), 0);
    let mut inner_batches: Vec<Batch> = (0..batches).map(|_| Batch::default()).collect();
    for key in inner {
        match batch_of(key) {
            0 => *table.entry(key).or_default() += 1,
            at => inner_batches[at].push(&mut spill, key)?,
        }
    }
    let mut outer_batches: Vec<Batch> = (0..batches).map(|_| Batch::default()).collect();
    for key in outer {
        match batch_of(key) {
            0 => count += table.get(&key).copied().unwrap_or_default(),
            at => outer_batches[at].push(&mut spill, key)?,
        }
    }
    for batch in inner_batches.iter_mut().chain(&mut outer_batches) {
        batch.flush(&mut spill)?;
    }
    for (inner, outer) in inner_batches.into_iter().zip(outer_batches) {
        table.clear();
        for (page, keys) in inner.run {
            spill.take(page, keys)?.into_iter().for_each(|key| *table.entry(key).or_default() += 1);
        }
        for (page, keys) in outer.run {
            let pairs = |key: u64| table.get(&key).copied().unwrap_or_default();
            count += spill.take(page, keys)?.into_iter().map(pairs).sum::<u64>();
        }
    }
    Ok((count, spill.counts))
}

/// A batch of one side: a page in memory, and pages in stretches of the file.
#[derive(Default)]
struct Batch {
    keys: Vec<u64>,
    run: Run,
    next: u64,
    left: u64,
}

impl Batch {
    fn push(&mut self, spill: &mut Spill, key: u64) -> io::Result<()> {
        self.keys.push(key);
        if self.keys.len() == KEYS { self.flush(spill) } else { Ok(()) }
    }

    fn flush(&mut self, spill: &mut Spill) -> io::Result<()> {
        if self.keys.is_empty() {
            return Ok(());
        }
        if self.left == 0 {
            (self.next, self.left) = (spill.extent(EXTENT), EXTENT);
        }
        spill.write(self.next, &self.keys)?;
        self.run.push_back((self.next, self.keys.len()));
        (self.next, self.left) = (self.next + 1, self.left - 1);
        self.keys.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use costs::Random;

    use super::*;

    const MEMORY: usize = 4;

    fn keys(pages: usize, distinct: u64) -> Vec<u64> {
        let mut random = Random::new(9);
        (0..pages * KEYS + 17).map(|_| random.next_u64() % distinct).collect()
    }

    #[test]
    fn a_sort_beyond_memory_gives_all_keys_in_order_and_reads_what_it_wrote() {
        let folder = tempfile::tempdir().unwrap();
        for pages in [0, 1, 3, 60, 120] {
            let mut keys = keys(pages, u64::MAX);
            let (sorted, counts) = sort(&folder.path().join("sort"), keys.iter().copied(), MEMORY).unwrap();
            keys.sort_unstable();
            assert!(sorted == keys, "{pages} pages");
            let written = counts.sequential_writes + counts.random_writes;
            assert_eq!(written, counts.sequential_reads + counts.random_reads);
        }
    }

    #[test]
    fn unordered_keys_are_merged_anywhere_and_ordered_ones_are_one_run() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sort");
        let unordered = sort(&path, keys(200, u64::MAX).into_iter(), MEMORY).unwrap().1;
        assert!(unordered.random_reads > unordered.sequential_reads, "{unordered:?}");
        let ordered = sort(&path, 0..200 * KEYS as u64, MEMORY).unwrap().1;
        assert_eq!((ordered.random_writes, ordered.random_reads), (0, 0), "{ordered:?}");
    }

    #[test]
    fn a_hash_join_beyond_memory_finds_all_pairs_writes_anywhere_and_reads_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let (inner, outer) = (keys(40, 10_000), keys(90, 10_000));
        let mut all: HashMap<u64, u64> = HashMap::new();
        inner.iter().for_each(|key| *all.entry(*key).or_default() += 1);
        let pairs: u64 = outer.iter().filter_map(|key| all.get(key)).sum();
        let path = folder.path().join("join");
        let (found, counts) = hash_join(&path, inner.into_iter(), outer.into_iter(), MEMORY).unwrap();
        assert_eq!(found, pairs);
        assert!(counts.random_writes > counts.sequential_writes, "{counts:?}");
        assert!(counts.sequential_reads > counts.random_reads, "{counts:?}");
    }
}
