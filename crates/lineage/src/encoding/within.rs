//! The one comparison kernel: which values lie in an interval?
//!
//! Every comparison of an ordered type is an interval or two (`x = 5` is 5..=5, `x <> 5` is two), and membership is
//! one unsigned comparison: `x - low <= high - low`, modulo the type. That is right for signed numbers as well as for
//! unsigned ones, so four widths are enough for everything. The answer is a bit a row, 64 rows at a time.
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

use super::simd::{BlockBits, Lane, Simd};

/// Sets in `bits` the bit of each of `values` (at most a block) that lies `low..=low + width`, and leaves the others.
pub(super) fn within<T: Lane>(simd: Simd, values: &[T], low: T, width: T, bits: &mut BlockBits) {
    let (whole, rest) = values.as_chunks::<64>();
    match simd {
        // SAFETY: the token proves that the processor has AVX-512.
        #[cfg(target_arch = "x86_64")]
        Simd::Avx512(_) => unsafe { within_avx512(whole, low, width, bits) },
        // SAFETY: the token proves that the processor has AVX2.
        #[cfg(target_arch = "x86_64")]
        Simd::Avx2(_) => unsafe { within_avx2(whole, low, width, bits) },
        _ => whole.iter().zip(&mut *bits).for_each(|(values, word)| *word |= within_scalar(values, low, width)),
    }
    if !rest.is_empty() {
        bits[whole.len()] |= within_scalar(rest, low, width);
    }
}

#[inline]
fn within_scalar<T: Lane>(values: &[T], low: T, width: T) -> u64 {
    let bit = |(i, value): (usize, &T)| u64::from(value.minus(low) <= width) << i;
    values.iter().enumerate().map(bit).fold(0, |word, bit| word | bit)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw")]
fn within_avx512<T: Lane>(chunks: &[[T; 64]], low: T, width: T, bits: &mut BlockBits) {
    let (low, width) = (low.word(), width.word());
    for (values, word) in chunks.iter().zip(bits) {
        // SAFETY: `part` is below the number of 64-byte parts that 64 values of this type have.
        let load = |part: usize| unsafe { _mm512_loadu_si512(values.as_ptr().cast::<u8>().add(part * 64).cast()) };
        *word |= match T::WIDTH {
            8 => {
                let distance = _mm512_sub_epi8(load(0), _mm512_set1_epi8(low as i8));
                _mm512_cmple_epu8_mask(distance, _mm512_set1_epi8(width as i8))
            }
            16 => (0..2).fold(0, |word, part| {
                let distance = _mm512_sub_epi16(load(part), _mm512_set1_epi16(low as i16));
                word | u64::from(_mm512_cmple_epu16_mask(distance, _mm512_set1_epi16(width as i16))) << (part * 32)
            }),
            32 => (0..4).fold(0, |word, part| {
                let distance = _mm512_sub_epi32(load(part), _mm512_set1_epi32(low as i32));
                word | u64::from(_mm512_cmple_epu32_mask(distance, _mm512_set1_epi32(width as i32))) << (part * 16)
            }),
            _ => (0..8).fold(0, |word, part| {
                let distance = _mm512_sub_epi64(load(part), _mm512_set1_epi64(low as i64));
                word | u64::from(_mm512_cmple_epu64_mask(distance, _mm512_set1_epi64(width as i64))) << (part * 8)
            }),
        };
    }
}

/// AVX2 has no unsigned comparison: `a <= b` is `min(a, b) == a`, and for 64 bits a signed one with flipped signs.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn within_avx2<T: Lane>(chunks: &[[T; 64]], low: T, width: T, bits: &mut BlockBits) {
    let (low, width) = (low.word(), width.word());
    for (values, word) in chunks.iter().zip(bits) {
        // SAFETY: `part` is below the number of 32-byte parts that 64 values of this type have.
        let load = |part: usize| unsafe { _mm256_loadu_si256(values.as_ptr().cast::<u8>().add(part * 32).cast()) };
        *word |= match T::WIDTH {
            8 => (0..2).fold(0, |word, part| {
                let distance = _mm256_sub_epi8(load(part), _mm256_set1_epi8(low as i8));
                let is_within = _mm256_cmpeq_epi8(_mm256_min_epu8(distance, _mm256_set1_epi8(width as i8)), distance);
                word | u64::from(_mm256_movemask_epi8(is_within) as u32) << (part * 32)
            }),
            16 => (0..2).fold(0, |word, half| {
                let is_within = |part: usize| {
                    let distance = _mm256_sub_epi16(load(part), _mm256_set1_epi16(low as i16));
                    _mm256_cmpeq_epi16(_mm256_min_epu16(distance, _mm256_set1_epi16(width as i16)), distance)
                };
                // Packing works within halves of a register; the permutation puts its quarters in order again.
                let packed = _mm256_packs_epi16(is_within(half * 2), is_within(half * 2 + 1));
                let ordered = _mm256_permute4x64_epi64::<0b11_01_10_00>(packed);
                word | u64::from(_mm256_movemask_epi8(ordered) as u32) << (half * 32)
            }),
            32 => (0..8).fold(0, |word, part| {
                let distance = _mm256_sub_epi32(load(part), _mm256_set1_epi32(low as i32));
                let limit = _mm256_set1_epi32(width as i32);
                let is_within = _mm256_cmpeq_epi32(_mm256_min_epu32(distance, limit), distance);
                word | u64::from(_mm256_movemask_ps(_mm256_castsi256_ps(is_within)) as u8) << (part * 8)
            }),
            _ => (0..16).fold(0, |word, part| {
                let sign = _mm256_set1_epi64x(i64::MIN);
                let distance = _mm256_sub_epi64(load(part), _mm256_set1_epi64x(low as i64));
                let limit = _mm256_set1_epi64x(width as i64 ^ i64::MIN);
                let is_outside = _mm256_cmpgt_epi64(_mm256_xor_si256(distance, sign), limit);
                let outside = _mm256_movemask_pd(_mm256_castsi256_pd(is_outside)) as u64;
                word | (outside ^ 0b1111) << (part * 4)
            }),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoding::simd::BLOCK_WORDS;

    fn all_variants_agree<T: Lane>() {
        let mut state = 99u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            T::of(state >> 29 ^ state)
        };
        let values: Vec<T> = (0..400).map(|i| if i % 9 == 0 { T::GREATEST } else { next() }).collect();
        for len in 0..200 {
            for offset in [0, 1, 5, 64, 150] {
                let values = &values[offset..offset + len];
                for (low, width) in [(T::ZERO, T::GREATEST), (next(), next()), (T::GREATEST, T::ZERO), (next(), next())]
                {
                    let mut twin = [0u64; BLOCK_WORDS];
                    for (i, value) in values.iter().enumerate() {
                        twin[i / 64] |= u64::from(value.minus(low).word() <= width.word()) << (i % 64);
                    }
                    for simd in Simd::available() {
                        let mut bits = [0; BLOCK_WORDS];
                        within(simd, values, low, width, &mut bits);
                        assert_eq!(bits, twin, "{simd:?}, {len} from {offset}, {} bits", T::WIDTH);
                    }
                }
            }
        }
    }

    #[test]
    fn every_variant_finds_the_same_rows() {
        all_variants_agree::<u8>();
        all_variants_agree::<u16>();
        all_variants_agree::<u32>();
        all_variants_agree::<u64>();
    }
}
