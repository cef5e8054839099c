//! A column of 64-bit keys in one of two forms: bit-packed distances, or runs.
//!
//! Everything that is not raw is such a column together with what its keys mean (see [`super`]), so tests and
//! totals on encoded data are written here once.
use super::kernels::{Totals, count_changes, totals, totals_kept};
use super::mask::{count_bits, set_bits};
use super::packed::{Packed, extremes};
use super::predicate::Intervals;
use super::simd::{BLOCK, BlockBits, Simd, each_block};
use super::within::within;

#[cfg(test)]
thread_local! {
    /// Blocks that this thread has unpacked, for tests of what is left alone.
    pub(crate) static BLOCKS_UNPACKED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Sum and extremes of some keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct KeyTotals {
    /// how many keys
    pub count: usize,
    /// their sum
    pub sum: i128,
    /// the smallest, `i64::MAX` if there is none
    pub min: i64,
    /// the greatest, `i64::MIN` if there is none
    pub max: i64,
}

impl KeyTotals {
    /// Of no keys.
    pub const NONE: KeyTotals = KeyTotals { count: 0, sum: 0, min: i64::MAX, max: i64::MIN };

    /// Totals of at most a block of keys, or of those that have their bit set in `kept`.
    pub fn of_keys<const EXTREMES: bool>(simd: Simd, keys: &[i64], kept: Option<&BlockBits>) -> KeyTotals {
        const SIGN: u64 = 1 << 63;
        let count = kept.map_or(keys.len(), |kept| count_bits(kept, 0, keys.len()));
        let words = words_of_keys(keys);
        let totals = match kept {
            None => totals::<u64, EXTREMES>(simd, words, SIGN),
            Some(kept) => totals_kept::<u64, EXTREMES>(simd, words, SIGN, kept),
        };
        KeyTotals::from_distances(i64::MIN, count, totals)
    }

    /// Of `count` keys of which the totals of their distances to `base` are known.
    pub fn from_distances(base: i64, count: usize, totals: Totals) -> KeyTotals {
        if count == 0 {
            return KeyTotals::NONE;
        }
        KeyTotals {
            count,
            sum: totals.sum as i128 + i128::from(base) * count as i128,
            min: base.wrapping_add(totals.min as i64),
            max: base.wrapping_add(totals.max as i64),
        }
    }

    fn add_run(&mut self, key: i64, count: usize) {
        if count > 0 {
            self.count += count;
            self.sum += i128::from(key) * count as i128;
            self.min = self.min.min(key);
            self.max = self.max.max(key);
        }
    }
}

/// The keys as unsigned words.
fn words_of_keys(keys: &[i64]) -> &[u64] {
    // SAFETY: every bit pattern is a u64, and the two types have one size and alignment.
    let (before, words, after) = unsafe { keys.align_to::<u64>() };
    debug_assert!(before.is_empty() && after.is_empty());
    words
}

/// Sets the bits of those of at most a block of keys that lie in the intervals.
pub(super) fn find_keys(simd: Simd, keys: &[i64], intervals: &Intervals, bits: &mut BlockBits) {
    if intervals.are_many() {
        for (i, key) in keys.iter().enumerate() {
            bits[i / 64] |= u64::from(intervals.contains(*key)) << (i % 64);
        }
        return;
    }
    for (low, high) in intervals.iter() {
        within(simd, words_of_keys(keys), low as u64, high.wrapping_sub(low) as u64, bits);
    }
}

/// A column of keys.
pub(crate) enum Integers {
    Packed(Packed),
    Runs(Runs),
}

/// Runs of equal keys.
pub(crate) struct Runs {
    /// where each run ends
    pub ends: Box<[u32]>,
    pub keys: Box<[i64]>,
    /// the run in which each block begins
    first: Box<[u32]>,
}

impl Runs {
    /// How many bytes a column takes.
    pub fn bytes_for(runs: usize, len: usize) -> usize {
        runs * (size_of::<u32>() + size_of::<i64>()) + len.div_ceil(BLOCK) * size_of::<u32>()
    }

    /// The runs of these keys.
    pub fn new(keys: &[i64]) -> Runs {
        let (mut ends, mut values): (Vec<u32>, Vec<i64>) = (vec![], vec![]);
        let mut at = 0;
        for run in keys.chunk_by(|left, right| left == right) {
            at += run.len();
            ends.push(at as u32);
            values.push(run[0]);
        }
        Runs::of_parts(ends.into(), values.into())
    }

    /// Runs that end at these slots and have these keys.
    pub fn of_parts(ends: Box<[u32]>, keys: Box<[i64]>) -> Runs {
        let len = ends.last().map_or(0, |end| *end as usize);
        let first = |block: usize| ends.partition_point(|end| *end as usize <= block * BLOCK) as u32;
        let first = (0..len.div_ceil(BLOCK)).map(first).collect();
        Runs { first, ends, keys }
    }

    #[inline]
    fn get(&self, slot: usize) -> i64 {
        let first = self.first[slot / BLOCK] as usize;
        let after = self.first.get(slot / BLOCK + 1).map_or(self.ends.len(), |run| *run as usize + 1);
        let run = self.ends[first..after].partition_point(|end| *end as usize <= slot);
        self.keys[first + run]
    }

    /// The runs in the rows `from..to` of a block: where in these rows each begins and ends, and its key.
    fn in_rows(&self, block: usize, (from, to): (usize, usize)) -> impl Iterator<Item = (usize, usize, i64)> + '_ {
        let (start, end) = (block * BLOCK + from, block * BLOCK + to);
        let first = self.first[block] as usize;
        let mut at = start;
        let runs = self.ends[first..].iter().zip(&self.keys[first..]);
        runs.skip_while(move |(run_end, _)| **run_end as usize <= start).map_while(move |(run_end, key)| {
            let run = (at - start, end.min(*run_end as usize) - start, *key);
            let is_within = at < end;
            at = *run_end as usize;
            is_within.then_some(run)
        })
    }
}

impl Integers {
    /// The better form of the keys; `None` if it takes more bytes than `limit`.
    pub fn smallest(simd: Simd, keys: &[i64], limit: usize) -> Option<Integers> {
        let runs = count_changes(simd, keys) + 1;
        let runs_bytes = Runs::bytes_for(runs, keys.len());
        if runs == 1 && runs_bytes <= limit {
            return Some(Integers::Runs(Runs::new(keys)));
        }
        let extremes = extremes(simd, keys);
        let packed_bytes = Packed::bytes_for(&extremes);
        // Runs are slower to read by slot: they must be worth it.
        if runs_bytes <= limit && runs * 8 <= keys.len() && runs_bytes * 2 <= packed_bytes {
            return Some(Integers::Runs(Runs::new(keys)));
        }
        (packed_bytes <= limit).then(|| Integers::Packed(Packed::new(simd, keys, &extremes)))
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        match self {
            Integers::Packed(packed) => packed.bytes(),
            Integers::Runs(runs) => size_of_val(&*runs.ends) + size_of_val(&*runs.keys) + size_of_val(&*runs.first),
        }
    }

    /// How many runs there are, if it has that form.
    pub fn runs(&self) -> Option<usize> {
        match self {
            Integers::Packed(_) => None,
            Integers::Runs(runs) => Some(runs.ends.len()),
        }
    }

    /// The key at `slot`.
    #[inline]
    pub fn get(&self, slot: usize) -> i64 {
        match self {
            Integers::Packed(packed) => packed.get(slot),
            Integers::Runs(runs) => runs.get(slot),
        }
    }

    /// All keys of a block; what stands past the end of the column is arbitrary.
    pub fn unpack(&self, simd: Simd, block: usize, keys: &mut [i64; BLOCK]) {
        #[cfg(test)]
        BLOCKS_UNPACKED.set(BLOCKS_UNPACKED.get() + 1);
        match self {
            Integers::Packed(packed) => packed.unpack(simd, block, keys),
            Integers::Runs(runs) => {
                runs.in_rows(block, (0, BLOCK)).for_each(|(from, to, key)| keys[from..to].fill(key));
            }
        }
    }

    /// Adds the keys of few rows of a block to a list.
    pub fn add_rows(&self, block: usize, rows: (usize, usize), keys: &mut Vec<i64>) {
        match self {
            Integers::Packed(packed) => packed.add_rows(block, rows, keys),
            Integers::Runs(runs) => {
                runs.in_rows(block, rows).for_each(|(from, to, key)| keys.extend(std::iter::repeat_n(key, to - from)));
            }
        }
    }

    /// The keys of some rows in ascending order, `rows` being their places behind row `from`.
    pub fn pick(&self, from: usize, rows: &[u32]) -> Vec<i64> {
        /// So many rows of a block take longer one by one than the whole block.
        const MANY: usize = 48;
        let block_of = |row: &u32| (from + *row as usize) / BLOCK;
        let by_block = || rows.chunk_by(|left, right| block_of(left) == block_of(right));
        if let Integers::Packed(packed) = self {
            // Rows far apart have lines of memory of their own, which are asked for before the first one is waited for.
            let few = by_block().filter(|rows| rows.len() < MANY).flatten();
            few.for_each(|row| packed.prefetch(from + *row as usize));
        }
        let mut keys = Vec::with_capacity(rows.len());
        let mut buffer = [0; BLOCK];
        for rows in by_block() {
            let block = block_of(&rows[0]);
            let places = rows.iter().map(|row| (from + *row as usize) % BLOCK);
            match self {
                Integers::Packed(packed) if rows.len() < MANY => packed.add_picked(block, places, &mut keys),
                Integers::Runs(runs) if rows.len() < MANY => {
                    keys.extend(places.map(|place| runs.get(block * BLOCK + place)));
                }
                _ => {
                    self.unpack(Simd::best(), block, &mut buffer);
                    keys.extend(places.map(|place| buffer[place]));
                }
            }
        }
        keys
    }

    /// The keys of rows `from..to`.
    pub fn rows(&self, from: usize, to: usize) -> Vec<i64> {
        let mut keys = Vec::with_capacity(to - from);
        let simd = Simd::best();
        let mut buffer = [0; BLOCK];
        each_block(from, to, |block, rows, _| {
            self.unpack(simd, block, &mut buffer);
            keys.extend_from_slice(&buffer[rows.0..rows.1]);
        });
        keys
    }

    /// Sets the bits of those of the rows `from..to` of a block that have a key in the intervals; bit 0 is row
    /// `from`.
    pub fn find(&self, simd: Simd, block: usize, rows: (usize, usize), intervals: &Intervals, bits: &mut BlockBits) {
        match self {
            Integers::Packed(packed) => packed.find(simd, block, rows, intervals, bits),
            Integers::Runs(runs) => {
                for (from, to, key) in runs.in_rows(block, rows) {
                    if intervals.contains(key) {
                        set_bits(bits, from, to);
                    }
                }
            }
        }
    }

    /// Totals of the rows `from..to` of a block, or of those among them that `kept` has; bit 0 is row `from`.
    pub fn totals<const EXTREMES: bool>(
        &self,
        simd: Simd,
        block: usize,
        rows: (usize, usize),
        kept: Option<&BlockBits>,
    ) -> KeyTotals {
        match self {
            Integers::Packed(packed) => packed.totals::<EXTREMES>(simd, block, rows, kept),
            Integers::Runs(runs) => {
                let mut totals = KeyTotals::NONE;
                for (from, to, key) in runs.in_rows(block, rows) {
                    totals.add_run(key, kept.map_or(to - from, |kept| count_bits(kept, from, to)));
                }
                totals
            }
        }
    }
}
