//! Bit-packing of blocks of 1,024 values in interleaved lanes, the order that makes unpacking vectorise by itself
//! (FastLanes: Afroozeh and Boncz, VLDB 2023).
//!
//! Values of `width` bits are handled as the narrowest integer of 8, 16, 32 or 64 bits that holds them, `T` bits
//! from here on. A block is a table of `T` rows and `1024 / T` lanes, filled row by row; each lane is a bit stream of
//! its own:
//!
//! ```text
//!   value 0        value 1        ...  value L-1        L = 1024 / T lanes
//!   value L        value L+1      ...  value 2L-1       row r of a lane lies at bits r*width.. of its stream
//!   ...                                                 word w of all lanes lies together: lane 0, lane 1, ...
//! ```
//!
//! One row of all lanes is thus cut out of neighbouring words by the same two shifts: no shuffles, 128 bytes at a
//! time. Otherwise than in FastLanes' unified layout the rows are not permuted. That permutation serves delta
//! coding, which base pages do not use; without it the values come out in the order of the rows, and so do the bits
//! of a mask over them.
use super::simd::{BLOCK, Lane, kernel, low_bits};

/// How many values of `T` a packed block takes.
#[inline(always)]
pub(super) const fn packed_len<T: Lane>(width: usize) -> usize {
    width * T::LANES
}

/// How many bits a number needs.
#[inline(always)]
pub(super) fn width_of(number: u64) -> usize {
    64 - number.leading_zeros() as usize
}

/// Where a row begins in its lanes' streams: word and bit.
#[inline(always)]
fn place<T: Lane>(row: usize, width: usize) -> (usize, usize) {
    (row * width / T::WIDTH, row * width % T::WIDTH)
}

kernel! {
    /// Unpacks a block.
    pub(super) fn unpack<T: Lane>(packed: &[T], width: usize, out: &mut [T; BLOCK]) = unpack_body;
}

#[inline(always)]
fn unpack_body<T: Lane>(packed: &[T], width: usize, out: &mut [T; BLOCK]) {
    if width == 0 {
        return out.fill(T::ZERO);
    }
    let mask = T::of(low_bits(width));
    for (row, out) in out.chunks_exact_mut(T::LANES).enumerate() {
        let (word, shift) = place::<T>(row, width);
        let here = &packed[word * T::LANES..][..T::LANES];
        if shift + width <= T::WIDTH {
            for lane in 0..T::LANES {
                out[lane] = (here[lane] >> shift as u32) & mask;
            }
        } else {
            let next = &packed[(word + 1) * T::LANES..][..T::LANES];
            let rest = (T::WIDTH - shift) as u32;
            for lane in 0..T::LANES {
                out[lane] = ((here[lane] >> shift as u32) | (next[lane] << rest)) & mask;
            }
        }
    }
}

kernel! {
    /// Unpacks a block and adds `base` to every value.
    pub(super) fn unpack_and_add<T: Lane>(packed: &[T], width: usize, base: i64, out: &mut [i64; BLOCK])
        = unpack_and_add_body;
}

#[inline(always)]
fn unpack_and_add_body<T: Lane>(packed: &[T], width: usize, base: i64, out: &mut [i64; BLOCK]) {
    let mut values = [T::ZERO; BLOCK];
    unpack_body(packed, width, &mut values);
    for (out, value) in out.iter_mut().zip(&values) {
        *out = base.wrapping_add(value.word() as i64);
    }
}

kernel! {
    /// Packs `key - base` for a block of keys, which all lie within `width` bits of `base`. `packed` is all zero.
    pub(super) fn subtract_and_pack<T: Lane>(keys: &[i64; BLOCK], base: i64, width: usize, packed: &mut [T])
        = subtract_and_pack_body;
}

#[inline(always)]
fn subtract_and_pack_body<T: Lane>(keys: &[i64; BLOCK], base: i64, width: usize, packed: &mut [T]) {
    if width == 0 {
        return;
    }
    let mut values = [T::ZERO; BLOCK];
    for (value, key) in values.iter_mut().zip(keys) {
        *value = T::of(key.wrapping_sub(base) as u64);
    }
    for (row, values) in values.chunks_exact(T::LANES).enumerate() {
        let (word, shift) = place::<T>(row, width);
        let here = &mut packed[word * T::LANES..][..T::LANES];
        for lane in 0..T::LANES {
            here[lane] = here[lane] | (values[lane] << shift as u32);
        }
        if shift + width > T::WIDTH {
            let next = &mut packed[(word + 1) * T::LANES..][..T::LANES];
            for lane in 0..T::LANES {
                next[lane] = values[lane] >> (T::WIDTH - shift) as u32;
            }
        }
    }
}

/// The value at `index` of a packed block.
#[inline]
pub(super) fn unpack_one<T: Lane>(packed: &[T], width: usize, index: usize) -> u64 {
    if width == T::WIDTH {
        return packed[index].word();
    }
    if width == 0 {
        return 0;
    }
    let (word, shift) = place::<T>(index / T::LANES, width);
    let at = word * T::LANES + index % T::LANES;
    let mut value = packed[at].word() >> shift;
    if shift + width > T::WIDTH {
        value |= packed[at + T::LANES].word() << (T::WIDTH - shift);
    }
    value & low_bits(width)
}

/// Where the value at `index` of a packed block is, in bytes: its first word and its last.
#[inline]
pub(super) fn bytes_of<T: Lane>(width: usize, index: usize) -> (usize, usize) {
    let (word, shift) = place::<T>(index / T::LANES, width);
    let first = (word * T::LANES + index % T::LANES) * size_of::<T>();
    let is_split = shift + width > T::WIDTH;
    (first, first + usize::from(is_split) * T::LANES * size_of::<T>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoding::simd::Simd;

    fn every_width_survives<T: Lane>() {
        let mut state = 7u64;
        for width in 0..=T::WIDTH {
            let base = -12_345i64;
            let keys: [i64; BLOCK] = std::array::from_fn(|i| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let value = if i % 5 == 0 { u64::MAX } else { state.rotate_left(21) };
                base.wrapping_add((value & low_bits(width)) as i64)
            });
            for simd in Simd::available() {
                let mut packed = vec![T::ZERO; packed_len::<T>(width)];
                subtract_and_pack(simd, &keys, base, width, &mut packed);
                let mut values = [T::GREATEST; BLOCK];
                unpack(simd, &packed, width, &mut values);
                let mut back = [0; BLOCK];
                unpack_and_add(simd, &packed, width, base, &mut back);
                assert_eq!(back, keys, "{simd:?} {width} of {}", T::WIDTH);
                for (i, key) in keys.iter().enumerate() {
                    let value = key.wrapping_sub(base) as u64;
                    assert_eq!((values[i].word(), unpack_one(&packed, width, i)), (value, value));
                }
            }
        }
    }

    #[test]
    fn every_width_of_every_lane_type_comes_back() {
        every_width_survives::<u8>();
        every_width_survives::<u16>();
        every_width_survives::<u32>();
        every_width_survives::<u64>();
    }
}
