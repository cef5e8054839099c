//! Frame of reference: each block of 1,024 keys as its smallest key and the bit-packed distances to it.
//!
//! ```text
//!   blocks:  base, width, offset | base, width, offset | ...       16 bytes a block
//!   words:   width * 128 bytes of packed distances     | ...       see `packing`
//! ```
//!
//! A block of equal keys has width 0 and takes no words. A width that is nearly that of a lane is taken for it: a
//! value is then in one word, which a reader by slot finds without shifts, and in one cache line. Where all blocks
//! come to the same whole lane, they share one base, too: such a column is *plain*, and a value is read without a
//! look at its block. Below that base is a little room, for values that a merge brings.
//!
//! The last block is filled up with its base. Tests and
//! totals work on the distances, unpacked into the narrowest integers that hold them: intervals of keys are moved
//! by the base, sums get it back once for each row.
use arrow_buffer::{Buffer, MutableBuffer};

use super::integers::{KeyTotals, find_keys};
use super::kernels::{Totals, totals, totals_kept};
use super::mask::count_bits;
use super::packing::{bytes_of, packed_len, subtract_and_pack, unpack, unpack_and_add, unpack_one, width_of};
use super::predicate::Intervals;
use super::simd::{BLOCK, BlockBits, Lane, Simd, each_block};
use super::within::within;

/// A column of keys as bit-packed distances.
pub(crate) struct Packed {
    blocks: Box<[PackedBlock]>,
    words: Buffer,
    plain: Option<Plain>,
}

/// What all blocks have in common, where each of their distances fills a lane.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Plain {
    base: i64,
    /// of a lane: 1, 2, 4 or 8
    bytes: usize,
}

/// Keys between two bounds.
#[derive(Clone, Copy)]
pub(crate) struct KeyRoom {
    base: i64,
    greatest: u64,
}

impl KeyRoom {
    /// Whether this key is among them.
    #[inline]
    pub fn has(self, key: i64) -> bool {
        key >= self.base && distance(self.base, key) <= self.greatest
    }
}

struct PackedBlock {
    base: i64,
    /// where the block begins, in units of 128 bytes
    offset: u32,
    width: u8,
}

/// How many bytes one bit of width costs a block.
const UNIT: usize = BLOCK / 8;

/// Calls `$action` with `$t` set to the lane type of a width.
macro_rules! with_lane {
    ($width:expr, $t:ident => $action:expr) => {
        match $width {
            0..=8 => {
                type $t = u8;
                $action
            }
            9..=16 => {
                type $t = u16;
                $action
            }
            17..=32 => {
                type $t = u32;
                $action
            }
            _ => {
                type $t = u64;
                $action
            }
        }
    };
}

impl Packed {
    /// How many bytes keys with these extremes in each block take.
    pub fn bytes_for(extremes: &[(i64, i64)]) -> usize {
        let block = |(min, max): &(i64, i64)| stored_width(distance(*min, *max)) * UNIT + size_of::<PackedBlock>();
        extremes.iter().map(block).sum()
    }

    /// Packs keys that have these extremes in each block.
    pub fn new(simd: Simd, keys: &[i64], extremes: &[(i64, i64)]) -> Packed {
        let plain = plain_of(extremes);
        let units: usize = extremes.iter().map(|(min, max)| stored_width(distance(*min, *max))).sum();
        let mut words = MutableBuffer::from_len_zeroed(units * UNIT);
        let mut offset = 0;
        let mut blocks = Vec::with_capacity(extremes.len());
        for (keys, &(base, max)) in keys.chunks(BLOCK).zip(extremes) {
            let width = stored_width(distance(base, max));
            let base = plain.map_or(base, |plain| plain.base);
            let mut filled = [base; BLOCK];
            let keys = keys.try_into().unwrap_or_else(|_| {
                filled[..keys.len()].copy_from_slice(keys);
                &filled
            });
            with_lane!(width, T => {
                let at = offset * UNIT / size_of::<T>();
                let packed = &mut words.typed_data_mut::<T>()[at..][..packed_len::<T>(width)];
                subtract_and_pack(simd, keys, base, width, packed);
            });
            blocks.push(PackedBlock { base, offset: offset as u32, width: width as u8 });
            offset += width;
        }
        Packed { blocks: blocks.into(), words: words.into(), plain }
    }

    /// The keys that there is room for at any slot without a change of form, if the column is plain.
    pub fn room(&self) -> Option<KeyRoom> {
        let Plain { base, bytes } = self.plain?;
        Some(KeyRoom { base, greatest: super::simd::low_bits(bytes * 8) })
    }

    /// Packs keys, none below or above these, as a plain column of whole lanes, whatever it takes; what the lanes have room for is as much
    /// below as above.
    pub fn new_plain(simd: Simd, keys: &[i64], (min, max): (i64, i64)) -> Packed {
        let lane = width_of(distance(min, max)).next_power_of_two().max(8);
        let spare = super::simd::low_bits(lane) - distance(min, max);
        let base = min.checked_sub_unsigned(spare / 2).unwrap_or(min);
        let plain = Plain { base, bytes: lane / 8 };
        let blocks = keys.len().div_ceil(BLOCK);
        let mut words = MutableBuffer::from_len_zeroed(blocks * lane * UNIT);
        for (block, keys) in keys.chunks(BLOCK).enumerate() {
            let mut filled = [plain.base; BLOCK];
            filled[..keys.len()].copy_from_slice(keys);
            with_lane!(lane, T => {
                let at = block * BLOCK;
                subtract_and_pack(simd, &filled, plain.base, lane, &mut words.typed_data_mut::<T>()[at..][..BLOCK]);
            });
        }
        let block = |block: usize| PackedBlock { base: plain.base, offset: (block * lane) as u32, width: lane as u8 };
        Packed { blocks: (0..blocks).map(block).collect(), words: words.into(), plain: Some(plain) }
    }

    /// A copy in memory of its own.
    pub fn copy(&self) -> Packed {
        let words = own_memory(&self.words);
        let copy = |block: &PackedBlock| PackedBlock { base: block.base, offset: block.offset, width: block.width };
        Packed { blocks: self.blocks.iter().map(copy).collect(), words: words.into(), plain: self.plain }
    }

    /// Puts other keys at some slots, one after the other, each of which has [room](Self::room); passes on each slot with its old key and
    /// its new one.
    #[inline]
    pub fn overwrite(&mut self, keys: &[(usize, i64)], note: impl FnMut(usize, i64, i64)) {
        let Some(plain) = self.plain else { unreachable!("keys have room in plain columns alone") };
        let words = std::mem::take(&mut self.words).into_mutable();
        let mut words = words.unwrap_or_else(|shared| own_memory(&shared));
        match plain.bytes {
            1 => overwrite::<u8>(words.typed_data_mut(), plain.base, keys, note),
            2 => overwrite::<u16>(words.typed_data_mut(), plain.base, keys, note),
            4 => overwrite::<u32>(words.typed_data_mut(), plain.base, keys, note),
            _ => overwrite::<u64>(words.typed_data_mut(), plain.base, keys, note),
        }
        self.words = words.into();
    }

    /// Whether keys with these extremes would take as many bits as they do here.
    pub fn is_as_wide(&self, min: i64, max: i64) -> bool {
        self.plain.is_some_and(|plain| min <= max && stored_width(distance(min, max)) == plain.bytes * 8)
    }

    /// Base and width of each block.
    pub fn blocks(&self) -> impl Iterator<Item = (i64, u8)> + '_ {
        self.blocks.iter().map(|block| (block.base, block.width))
    }

    /// The distances of all blocks.
    pub fn words(&self) -> &[u8] {
        self.words.as_slice()
    }

    /// How many bytes the distances of blocks of these widths take, `None` if one is wider than 64.
    pub fn words_len(widths: &[u8]) -> Option<usize> {
        widths.iter().map(|width| (*width <= 64).then(|| usize::from(*width) * UNIT)).sum()
    }

    /// A column of these blocks; `words` are as long as [`Packed::words_len`] says and aligned for 64-bit integers.
    pub fn of_parts(blocks: impl Iterator<Item = (i64, u8)>, words: Buffer) -> Packed {
        let mut offset = 0;
        let blocks: Box<[PackedBlock]> = blocks
            .map(|(base, width)| {
                let block = PackedBlock { base, offset, width };
                offset += u32::from(width);
                block
            })
            .collect();
        assert!(offset as usize * UNIT == words.len(), "the parts belong together");
        let plain = |block: &PackedBlock| Plain { base: block.base, bytes: usize::from(block.width) / 8 };
        let first = blocks.first().filter(|block| matches!(block.width, 8 | 16 | 32 | 64)).map(plain);
        let is_plain = blocks.iter().all(|block| block.width % 8 == 0 && Some(plain(block)) == first);
        Packed { blocks, words, plain: first.filter(|_| is_plain) }
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        self.words.len() + size_of_val(&*self.blocks)
    }

    #[inline]
    fn packed<T: Lane>(&self, block: &PackedBlock) -> &[T] {
        let at = block.offset as usize * UNIT / size_of::<T>();
        &self.words.typed_data()[at..][..packed_len::<T>(usize::from(block.width))]
    }

    /// Passes the distances of a block on: as they lie there, where each fills its lane, else unpacked.
    #[inline(always)]
    fn with_distances<T: Lane, R>(&self, simd: Simd, block: &PackedBlock, look: impl FnOnce(&[T]) -> R) -> R {
        let width = usize::from(block.width);
        if width == T::WIDTH {
            return look(self.packed(block));
        }
        let mut values = [T::ZERO; BLOCK];
        unpack::<T>(simd, self.packed(block), width, &mut values);
        look(&values)
    }

    /// Asks for the memory of the distance at `slot`, which may be in two words far apart.
    #[inline]
    pub fn prefetch(&self, slot: usize) {
        if let Some(plain) = &self.plain {
            return sync::prefetch(self.words.as_ptr().wrapping_add(slot * plain.bytes));
        }
        let block = &self.blocks[slot / BLOCK];
        let width = usize::from(block.width);
        let (first, second) = with_lane!(width, T => bytes_of::<T>(width, slot % BLOCK));
        let at = self.words.as_ptr().wrapping_add(block.offset as usize * UNIT);
        sync::prefetch(at.wrapping_add(first));
        if second != first {
            sync::prefetch(at.wrapping_add(second));
        }
    }

    /// The key at `slot`.
    #[inline]
    pub fn get(&self, slot: usize) -> i64 {
        match self.plain(slot) {
            Some(key) => key,
            None => self.get_of_block(slot),
        }
    }

    /// The distances of a plain column, their base, and how many bytes each takes.
    pub fn flat(&self) -> Option<(&[u8], i64, usize)> {
        self.plain.map(|Plain { base, bytes }| (self.words.as_slice(), base, bytes))
    }

    /// The key at `slot` of a plain column.
    #[inline]
    fn plain(&self, slot: usize) -> Option<i64> {
        let Plain { base, bytes } = self.plain?;
        let at = self.words.as_slice().get(slot * bytes..)?;
        let distance = match bytes {
            4 => u64::from(u32::from_le_bytes(*at.first_chunk()?)),
            8 => u64::from_le_bytes(*at.first_chunk()?),
            2 => u64::from(u16::from_le_bytes(*at.first_chunk()?)),
            _ => u64::from(*at.first()?),
        };
        Some(base.wrapping_add(distance as i64))
    }

    fn get_of_block(&self, slot: usize) -> i64 {
        let block = &self.blocks[slot / BLOCK];
        let width = usize::from(block.width);
        let value = with_lane!(width, T => unpack_one::<T>(self.packed(block), width, slot % BLOCK));
        block.base.wrapping_add(value as i64)
    }

    /// Passes the keys of few rows `from..to`, taken out one by one, each with its place among them.
    #[inline]
    pub fn each_key(&self, from: usize, to: usize, mut visit: impl FnMut(usize, i64)) {
        each_block(from, to, |block, (start, end), at| {
            let block = &self.blocks[block];
            let width = usize::from(block.width);
            with_lane!(width, T => {
                let packed = self.packed::<T>(block);
                for row in start..end {
                    let key = block.base.wrapping_add(unpack_one::<T>(packed, width, row) as i64);
                    visit(at + row - start, key);
                }
            });
        });
    }

    /// Passes the keys at some slots, taken out one by one.
    #[inline]
    pub fn each_key_at(&self, slots: &[u32], mut visit: impl FnMut(i64)) {
        for slots in slots.chunk_by(|one, next| *one as usize / BLOCK == *next as usize / BLOCK) {
            let block = &self.blocks[slots[0] as usize / BLOCK];
            let width = usize::from(block.width);
            with_lane!(width, T => {
                let packed = self.packed::<T>(block);
                for slot in slots {
                    visit(block.base.wrapping_add(unpack_one::<T>(packed, width, *slot as usize % BLOCK) as i64));
                }
            });
        }
    }

    /// Adds the keys of few rows of a block to a list, taken out one by one.
    pub fn add_rows(&self, block: usize, (from, to): (usize, usize), keys: &mut Vec<i64>) {
        self.add_picked(block, from..to, keys);
    }

    /// Adds the keys of some rows of a block to a list, taken out one by one.
    pub fn add_picked(&self, block: usize, rows: impl Iterator<Item = usize>, keys: &mut Vec<i64>) {
        let block = &self.blocks[block];
        let width = usize::from(block.width);
        with_lane!(width, T => {
            let packed = self.packed::<T>(block);
            keys.extend(rows.map(|row| block.base.wrapping_add(unpack_one::<T>(packed, width, row) as i64)));
        });
    }

    /// All keys of a block; what stands past the end of the column is arbitrary.
    pub fn unpack(&self, simd: Simd, block: usize, keys: &mut [i64; BLOCK]) {
        let block = &self.blocks[block];
        let width = usize::from(block.width);
        if width == 0 {
            return keys.fill(block.base);
        }
        with_lane!(width, T => unpack_and_add::<T>(simd, self.packed(block), width, block.base, keys));
    }

    /// Sets the bits of those of the rows `from..to` of a block that have a key in the intervals; bit 0 is row
    /// `from`.
    pub fn find(
        &self,
        simd: Simd,
        block: usize,
        (from, to): (usize, usize),
        intervals: &Intervals,
        bits: &mut BlockBits,
    ) {
        if intervals.are_many() {
            let mut keys = [0; BLOCK];
            self.unpack(simd, block, &mut keys);
            return find_keys(simd, &keys[from..to], intervals, bits);
        }
        let block = &self.blocks[block];
        let width = usize::from(block.width);
        let last = block.base.wrapping_add(super::simd::low_bits(width) as i64);
        // The greatest distance may go past the greatest key.
        let last = if last < block.base { i64::MAX } else { last };
        with_lane!(width, T => self.with_distances::<T, ()>(simd, block, |values| {
            for (low, high) in intervals.clipped(block.base, last) {
                let (low, span) = (distance(block.base, low), distance(low, high));
                within(simd, &values[from..to], T::of(low), T::of(span), bits);
            }
        }));
    }

    /// Totals of the rows `from..to` of a block, or of those among them that `kept` has; bit 0 is row `from`.
    pub fn totals<const EXTREMES: bool>(
        &self,
        simd: Simd,
        block: usize,
        (from, to): (usize, usize),
        kept: Option<&BlockBits>,
    ) -> KeyTotals {
        let block = &self.blocks[block];
        let width = usize::from(block.width);
        let count = kept.map_or(to - from, |kept| count_bits(kept, 0, to - from));
        let totals: Totals = with_lane!(width, T => self.with_distances::<T, _>(simd, block, |values| match kept {
            None => totals::<T, EXTREMES>(simd, &values[from..to], T::ZERO),
            Some(kept) => totals_kept::<T, EXTREMES>(simd, &values[from..to], T::ZERO, kept),
        }));
        KeyTotals::from_distances(block.base, count, totals)
    }
}

/// The bytes of a buffer in memory that nobody shares.
fn own_memory(shared: &Buffer) -> MutableBuffer {
    let mut own = MutableBuffer::new(shared.len());
    own.extend_from_slice(shared.as_slice());
    own
}

/// Puts the distances of keys to a base at their slots; passes on each slot with its old key and its new one.
#[inline(always)]
fn overwrite<T: Lane>(distances: &mut [T], base: i64, keys: &[(usize, i64)], mut note: impl FnMut(usize, i64, i64)) {
    for (slot, key) in keys {
        let old = std::mem::replace(&mut distances[*slot], T::of(distance(base, *key)));
        note(*slot, base.wrapping_add(old.word() as i64), *key);
    }
}

/// What blocks with these extremes have in common, if all of them fill the same lane, and do so with one base.
fn plain_of(extremes: &[(i64, i64)]) -> Option<Plain> {
    let width = |(min, max): &(i64, i64)| stored_width(distance(*min, *max));
    let lane = width(extremes.first()?);
    if !matches!(lane, 8 | 16 | 32 | 64) || !extremes.iter().all(|extremes| width(extremes) == lane) {
        return None;
    }
    let low = extremes.iter().map(|(min, _)| *min).min()?;
    let high = extremes.iter().map(|(_, max)| *max).max()?;
    let fits = |base: i64| base <= low && distance(base, high) <= super::simd::low_bits(lane);
    let room = distance(low, high) / 16;
    let base = low.checked_sub_unsigned(room).filter(|base| fits(*base)).unwrap_or(low);
    fits(base).then_some(Plain { base, bytes: lane / 8 })
}

/// In how many bits distances up to this one are stored: in all of a lane's where that costs an eighth at most.
#[inline(always)]
fn stored_width(distance: u64) -> usize {
    let width = width_of(distance);
    let lane = width.next_power_of_two().max(8);
    if width * 8 >= lane * 7 { lane } else { width }
}

/// How far `to` lies above `from`.
#[inline(always)]
fn distance(from: i64, to: i64) -> u64 {
    to.wrapping_sub(from) as u64
}

/// The smallest and the greatest key of each block.
pub(super) fn extremes(simd: Simd, keys: &[i64]) -> Vec<(i64, i64)> {
    let totals = keys.chunks(BLOCK).map(|keys| KeyTotals::of_keys::<true>(simd, keys, None));
    totals.map(|totals| (totals.min, totals.max)).collect()
}
