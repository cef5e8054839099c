//! Whole numbers in few bits, each one within reach at once.
//!
//! A stream is cut into blocks of 128. A block knows a base, a slope and a width; the number at place *j* of it is
//! `base + slope * j + difference`, the difference taking `width` bits. With slope 0 this is a frame of reference; the
//! slope makes ascending numbers cheap (offsets, sequences), and evenly spaced or equal ones free. All arithmetic
//! wraps, so every 64-bit pattern comes back, whatever it stands for.
//!
//! ```text
//! blocks  | base (64) | first word (40) | width (8) | slope (16) |  one for every 128 numbers
//! bits    difference 0, 1, 2, ... from the lowest bit of a word upward; a full block ends at the end of a word
//! ```

use std::ops::Range;

use crate::encoding::simd::kernel;
use crate::encoding::{Simd, extremes_of_words};

/// Numbers in one block.
const BLOCK: usize = 128;
/// About as many blocks are looked at to see what a stream would take.
const SAMPLE_BLOCKS: usize = 8;
const WIDTH_SHIFT: u32 = 40;
const SLOPE_SHIFT: u32 = 48;

/// A stream of numbers that never changes.
#[derive(Debug)]
pub(crate) struct Packed {
    len: usize,
    blocks: Box<[Block]>,
    bits: Box<[u64]>,
}

#[derive(Clone, Copy, Debug)]
struct Block {
    base: u64,
    place: u64,
}

impl Packed {
    /// The stream of these numbers.
    pub(crate) fn of(values: &[u64]) -> Packed {
        // As if all blocks took as many bits as the first.
        let width = values.chunks(BLOCK).next().map_or(0, |first| Frame::best_of(first).width);
        let mut bits = Vec::with_capacity((values.len() * width).div_ceil(64) + 1);
        let blocks = values.chunks(BLOCK).map(|chunk| Block::of(chunk, &mut bits)).collect();
        Packed { len: values.len(), blocks, bits: bits.into_boxed_slice() }
    }

    /// The memory beyond the struct itself that the stream of these numbers would take.
    pub(crate) fn bytes_of(values: &[u64]) -> usize {
        let words = |chunk: &[u64]| (chunk.len() * Frame::best_of(chunk).width).div_ceil(64);
        let words: usize = values.chunks(BLOCK).map(words).sum();
        words * size_of::<u64>() + Self::block_count(values.len()) * size_of::<Block>()
    }

    /// About as many bytes as [`Packed::bytes_of`] says, from a look at some blocks.
    pub(super) fn about_bytes_of(values: &[u64]) -> usize {
        let blocks = Self::block_count(values.len());
        let step = blocks / SAMPLE_BLOCKS + 1;
        if step == 1 {
            return Self::bytes_of(values);
        }
        // The last block may be short, and is left out.
        let sample = values.chunks_exact(BLOCK).step_by(step);
        let count = sample.len();
        let words: usize = sample.map(|block| (BLOCK * Frame::best_of(block).width).div_ceil(64)).sum();
        words * blocks / count * size_of::<u64>() + blocks * size_of::<Block>()
    }

    /// The number at place `i`.
    #[inline]
    pub(crate) fn get(&self, i: usize) -> u64 {
        debug_assert!(i < self.len, "place {i} of {}", self.len);
        let Block { base, place } = self.blocks[i / BLOCK];
        let at = i % BLOCK;
        let slope = place as i64 >> SLOPE_SHIFT;
        let start = base.wrapping_add((slope * at as i64) as u64);
        let width = (place >> WIDTH_SHIFT) as u8 as usize;
        if width == 0 {
            return start;
        }
        let first = (place & ((1 << WIDTH_SHIFT) - 1)) as usize;
        let (word, shift) = (first + at * width / 64, at * width % 64);
        let mut difference = self.bits[word] >> shift;
        if shift + width > 64 {
            difference |= self.bits[word + 1] << (64 - shift);
        }
        start.wrapping_add(difference & (u64::MAX >> (64 - width)))
    }

    /// Passes the numbers at these places to `take`, in order: a block at a time, so that what is said of a block is looked up
    /// once.
    #[inline]
    pub(crate) fn each_within(&self, places: Range<usize>, mut take: impl FnMut(u64)) {
        let mut at = places.start;
        while at < places.end {
            let end = places.end.min((at / BLOCK + 1) * BLOCK);
            let Block { base, place } = self.blocks[at / BLOCK];
            let (slope, width) = (place as i64 >> SLOPE_SHIFT, (place >> WIDTH_SHIFT) as u8 as usize);
            let mut start = base.wrapping_add((slope * (at % BLOCK) as i64) as u64);
            let mut bit = (place & ((1 << WIDTH_SHIFT) - 1)) as usize * 64 + at % BLOCK * width;
            let mask = u64::MAX.checked_shr(64 - width as u32).unwrap_or(0);
            for _ in at..end {
                let mut difference = 0;
                if width > 0 {
                    difference = self.bits[bit / 64] >> (bit % 64);
                    if bit % 64 + width > 64 {
                        difference |= self.bits[bit / 64 + 1] << (64 - bit % 64);
                    }
                }
                take(start.wrapping_add(difference & mask));
                start = start.wrapping_add(slope as u64);
                bit += width;
            }
            at = end;
        }
    }

    /// How many numbers there are.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Base, slope and width of each block.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = (u64, i16, u8)> + '_ {
        let slope = |place: u64| (place as i64 >> SLOPE_SHIFT) as i16;
        self.blocks.iter().map(move |block| (block.base, slope(block.place), (block.place >> WIDTH_SHIFT) as u8))
    }

    /// The differences of all blocks.
    pub(crate) fn bits(&self) -> &[u64] {
        &self.bits
    }

    /// How many blocks a stream of `len` numbers has.
    pub(crate) fn block_count(len: usize) -> usize {
        len.div_ceil(BLOCK)
    }

    /// How many words of differences a stream of `len` numbers has, from the bits a number that each block takes.
    /// `None` if a number would take more than 64.
    pub(crate) fn bits_len(len: usize, widths: &[u8]) -> Option<usize> {
        let words = |(block, width): (usize, &u8)| {
            let numbers = BLOCK.min(len - block * BLOCK);
            (*width <= 64).then(|| (numbers * usize::from(*width)).div_ceil(64))
        };
        widths.iter().enumerate().map(words).sum()
    }

    /// The stream of these blocks. There are as many as [`Packed::block_count`] says and as many bits as
    /// [`Packed::bits_len`] says.
    pub(crate) fn of_parts(len: usize, blocks: impl Iterator<Item = (u64, i16, u8)>, bits: Box<[u64]>) -> Packed {
        let mut first = 0;
        let blocks: Box<[Block]> = blocks
            .enumerate()
            .map(|(at, (base, slope, width))| {
                let place = first as u64 | u64::from(width) << WIDTH_SHIFT | (slope as u64) << SLOPE_SHIFT;
                first += (BLOCK.min(len - at * BLOCK) * usize::from(width)).div_ceil(64);
                Block { base, place }
            })
            .collect();
        assert!(blocks.len() == Self::block_count(len) && first == bits.len(), "the parts belong together");
        Packed { len, blocks, bits }
    }

    /// All numbers in order.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = u64> + '_ {
        (0..self.len).map(|i| self.get(i))
    }

    /// In an ascending stream: how many numbers are below `bound`.
    pub(crate) fn count_below(&self, bound: u64) -> usize {
        partition_point(0..self.len, |i| self.get(i) < bound)
    }

    /// Memory beyond the struct itself.
    pub(crate) fn heap_bytes(&self) -> usize {
        size_of_val(&*self.blocks) + size_of_val(&*self.bits)
    }
}

/// The first place of a range for which `is_before` does not hold, all further ones being like it.
pub(super) fn partition_point(range: Range<usize>, is_before: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (range.start, range.end);
    while low < high {
        let middle = low.midpoint(high);
        if is_before(middle) { low = middle + 1 } else { high = middle }
    }
    low
}

impl Block {
    /// The block of at most 128 numbers, its differences added to `bits`.
    fn of(values: &[u64], bits: &mut Vec<u64>) -> Block {
        let frame = Frame::best_of(values);
        let first = bits.len();
        assert!(first < 1 << WIDTH_SHIFT, "a stream holds at most 2^40 words");
        match frame.slope {
            _ if frame.width == 0 => {}
            0 => pack_flat(Simd::best(), values, (frame.base as u64, frame.width), bits),
            slope => pack_sloped(Simd::best(), values, (frame.base as u64, slope, frame.width), bits),
        }
        let place = first as u64 | (frame.width as u64) << WIDTH_SHIFT | (frame.slope as u64) << SLOPE_SHIFT;
        Block { base: frame.base as u64, place }
    }
}

kernel! {
    /// Adds the differences of at most a block of numbers to the base to `bits`, each in `width` bits, of which there is one at least.
    fn pack_flat(values: &[u64], frame: (u64, usize), bits: &mut Vec<u64>) = pack_flat_body;
}

#[inline(always)]
fn pack_flat_body(values: &[u64], (base, width): (u64, usize), bits: &mut Vec<u64>) {
    pack(values, width, bits, |value| value.wrapping_sub(base));
}

kernel! {
    /// As [`pack_flat`], where a slope is added to the base from each number to the next.
    fn pack_sloped(values: &[u64], frame: (u64, i16, usize), bits: &mut Vec<u64>) = pack_sloped_body;
}

#[inline(always)]
fn pack_sloped_body(values: &[u64], (mut base, slope, width): (u64, i16, usize), bits: &mut Vec<u64>) {
    pack(values, width, bits, |value| {
        let difference = value.wrapping_sub(base);
        base = base.wrapping_add(slope as u64);
        difference
    });
}

#[inline(always)]
fn pack(values: &[u64], width: usize, bits: &mut Vec<u64>, mut difference: impl FnMut(u64) -> u64) {
    let mut words = PackedWords::new();
    if width > 32 {
        values.iter().for_each(|value| words.push(difference(*value), width));
    } else {
        // Two at a time, as if they were one.
        let (pairs, rest) = values.as_chunks::<2>();
        for [first, second] in pairs {
            let first = difference(*first);
            words.push(first | difference(*second) << width, 2 * width);
        }
        rest.iter().for_each(|value| words.push(difference(*value), width));
    }
    bits.extend_from_slice(words.finish());
}

/// Bits that are put one behind the other, of a block at most.
struct PackedWords {
    words: [u64; BLOCK + 1],
    /// whole words so far
    count: usize,
    /// what comes behind them, and how many bits of it there are
    word: u64,
    filled: usize,
}

impl PackedWords {
    #[inline(always)]
    fn new() -> PackedWords {
        PackedWords { words: [0; BLOCK + 1], count: 0, word: 0, filled: 0 }
    }

    /// Adds a number of so many bits, one at least.
    #[inline(always)]
    fn push(&mut self, number: u64, width: usize) {
        self.word |= number << self.filled;
        self.filled += width;
        if self.filled >= 64 {
            self.words[self.count] = self.word;
            self.count += 1;
            self.filled -= 64;
            // What has not found its place, which may be nothing.
            self.word = number >> 1 >> (width - self.filled - 1);
        }
    }

    #[inline(always)]
    fn finish(&mut self) -> &[u64] {
        self.words[self.count] = self.word;
        &self.words[..self.count + usize::from(self.filled > 0)]
    }
}

/// The slope from the first number to the last, 0 where it does not fit.
fn slope_of(values: &[u64]) -> i16 {
    let rise = values[values.len() - 1].wrapping_sub(values[0]) as i64;
    let steps = (values.len() - 1).max(1) as i64;
    i16::try_from(rise / steps).unwrap_or(0)
}

/// The bits of a distance in either direction.
fn width_of(distance: i64) -> usize {
    (64 - distance.unsigned_abs().leading_zeros()) as usize
}

/// One way to store a block.
struct Frame {
    base: i64,
    slope: i16,
    width: usize,
}

impl Frame {
    /// The one of fewer bits: with a slope or without.
    fn best_of(values: &[u64]) -> Frame {
        let slope = slope_of(values);
        if slope == 0 {
            return Frame::flat(values);
        }
        let sloped = Frame::of(values, slope);
        // Without a slope it takes no less than what lies between the first number and the last.
        if sloped.width < width_of(values[values.len() - 1].wrapping_sub(values[0]) as i64) {
            return sloped;
        }
        let flat = Frame::flat(values);
        if sloped.width < flat.width { sloped } else { flat }
    }

    fn flat(values: &[u64]) -> Frame {
        Frame::between(extremes_of_words(Simd::best(), values), 0)
    }

    fn of(values: &[u64], slope: i16) -> Frame {
        let frame = Frame { base: 0, slope, width: 0 };
        let mut residuals = [0; BLOCK];
        let residuals = &mut residuals[..values.len()];
        for (at, (residual, value)) in residuals.iter_mut().zip(values).enumerate() {
            *residual = frame.residual(at, *value) as u64;
        }
        Frame::between(extremes_of_words(Simd::best(), residuals), slope)
    }

    fn between((least, greatest): (i64, i64), slope: i16) -> Frame {
        let width = (64 - (greatest.wrapping_sub(least) as u64).leading_zeros()) as usize;
        Frame { base: least, slope, width }
    }

    #[inline]
    fn residual(&self, at: usize, value: u64) -> i64 {
        (value as i64).wrapping_sub(i64::from(self.slope) * at as i64)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn comes_back(values: &[u64]) -> Packed {
        let packed = Packed::of(values);
        assert_eq!(packed.iter().collect::<Vec<_>>(), values);
        for places in [0..values.len(), values.len() / 3..values.len() / 2, values.len() / 2..values.len()] {
            let mut found = Vec::new();
            packed.each_within(places.clone(), |value| found.push(value));
            assert_eq!(found, values[places]);
        }
        packed
    }

    #[test]
    fn equal_and_evenly_spaced_numbers_take_no_bits() {
        for values in [vec![7; 1000], (0..1000).map(|i| 5 + 3 * i).collect(), (0..1000).rev().collect()] {
            assert_eq!(comes_back(&values).bits.len(), 0);
        }
        assert_eq!(comes_back(&[]).heap_bytes(), 0);
    }

    #[test]
    fn a_number_takes_the_bits_of_its_distance_to_the_least() {
        let signed: Vec<u64> = (0..256).map(|i| ((i * 77 % 16) - 8_i64) as u64).collect();
        assert_eq!(comes_back(&signed).bits.len() * 64, 256 * 4);
        let extremes: Vec<u64> = (0..300).map(|i| [0, u64::MAX, i64::MAX as u64, 1 << 63, i][i as usize % 5]).collect();
        assert_eq!(comes_back(&extremes).bits.len(), 300);
    }

    #[test]
    fn counting_below_a_bound_is_a_search() {
        let values: Vec<u64> = (0..5000).map(|i| i * i / 3).collect();
        let packed = comes_back(&values);
        for bound in [0, 1, 2, 100, 1 << 20, u64::MAX] {
            assert_eq!(packed.count_below(bound), values.partition_point(|value| *value < bound));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_numbers_come_back(values in prop::collection::vec(any::<u64>(), 0..300), width in 0_u32..64) {
            comes_back(&values.iter().map(|value| value >> width).collect::<Vec<_>>());
            comes_back(&values.iter().map(|value| (*value as i64 >> width) as u64).collect::<Vec<_>>());
        }
    }
}
