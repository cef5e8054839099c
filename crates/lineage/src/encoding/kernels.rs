//! Kernels over the values of one block: sums and extremes, of all rows or of those that a mask keeps.
//!
//! All of them are plain loops that the compiler vectorises for each instruction set (see [`super::simd`]). Integers
//! come as unsigned lanes; signed ones are handed in with `flip` set to their sign bit, which maps their order to
//! the unsigned one: the result is then relative to the smallest signed number. No sum can overflow: a call sees at
//! most one block.
//!
//! Floats are added in sixteen lanes, row `i` in lane `i % 16`, and the lanes in order, whatever the instructions are:
//! the same rows give the same sum on every machine. A row left out adds zero.
use super::simd::{BLOCK, Lane, Simd, kernel};

/// Totals of the integers of a block, after the flip.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Totals {
    /// the sum
    pub sum: u128,
    /// the smallest, all ones if there is none
    pub min: u64,
    /// the greatest, 0 if there is none
    pub max: u64,
}

/// Sum in parts that no block can overflow, and extremes.
#[derive(Clone, Copy)]
struct Running<T> {
    small: u32,
    low: u64,
    high: u64,
    min: T,
    max: T,
}

impl<T: Lane> Running<T> {
    const START: Self = Running { small: 0, low: 0, high: 0, min: T::GREATEST, max: T::ZERO };

    /// Adds a value where `keep` is all ones, nothing where it is 0.
    #[inline(always)]
    fn add<const EXTREMES: bool>(&mut self, value: T, keep: T) {
        let value = value & keep;
        if T::WIDTH <= 16 {
            self.small += value.word() as u32;
        } else if T::WIDTH <= 32 {
            self.low += value.word();
        } else {
            self.low += value.word() & 0xffff_ffff;
            self.high += value.word() >> 32;
        }
        if EXTREMES {
            self.min = self.min.min(value | !keep);
            self.max = self.max.max(value);
        }
    }

    #[inline(always)]
    fn finish(self) -> Totals {
        let sum = u128::from(self.small) + u128::from(self.low) + (u128::from(self.high) << 32);
        // A narrow type's "all ones" must be the widest, too.
        let min = if self.min == T::GREATEST && self.max == T::ZERO { u64::MAX } else { self.min.word() };
        Totals { sum, min, max: self.max.word() }
    }
}

kernel! {
    /// The smallest and the greatest of some words, as signed numbers.
    pub(crate) fn extremes_of_words(words: &[u64]) -> (i64, i64) = extremes_of_words_body;
}

#[inline(always)]
fn extremes_of_words_body(words: &[u64]) -> (i64, i64) {
    let (mut least, mut greatest) = (i64::MAX, i64::MIN);
    for word in words {
        least = least.min(*word as i64);
        greatest = greatest.max(*word as i64);
    }
    (least, greatest)
}

/// Which words are the same in two lists of at most 64, a bit each.
#[inline]
pub(crate) fn equal_words(simd: Simd, words: &[u64], others: &[u64]) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if let Simd::Avx2(_) | Simd::Avx512(_) = simd
        && words.len() >= 4
        && words.len() == others.len()
    {
        // SAFETY: the token proves that the processor has these instructions.
        return unsafe { equal_words_avx2(words, others) };
    }
    let _ = simd;
    let pairs = words.iter().zip(others).enumerate();
    pairs.fold(0, |equal, (at, (word, other))| equal | u64::from(word == other) << at)
}

/// Four words at a time, the last four as they lie: some of these may have been compared before.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn equal_words_avx2(words: &[u64], others: &[u64]) -> u64 {
    use std::arch::x86_64::{_mm256_castsi256_pd, _mm256_cmpeq_epi64, _mm256_loadu_si256, _mm256_movemask_pd};
    let last = words.len().min(others.len()) - 4;
    let four = |at: usize| {
        let (words, others) = (words.as_ptr().wrapping_add(at).cast(), others.as_ptr().wrapping_add(at).cast());
        // SAFETY: `at` is `last` at most, so that each has four words there.
        let (words, others) = unsafe { (_mm256_loadu_si256(words), _mm256_loadu_si256(others)) };
        let mask = _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpeq_epi64(words, others)));
        (mask as u64) << at
    };
    let (mut at, mut equal) = (0, 0);
    while at < last {
        equal |= four(at);
        at += 4;
    }
    equal | four(last)
}

kernel! {
    /// Totals of all `values` (at most a block); extremes only where asked for.
    pub(super) fn totals<T: Lane, const EXTREMES: bool>(values: &[T], flip: T) -> Totals = totals_body::<T, EXTREMES>;
}

#[inline(always)]
fn totals_body<T: Lane, const EXTREMES: bool>(values: &[T], flip: T) -> Totals {
    debug_assert!(values.len() <= BLOCK);
    let mut running = Running::<T>::START;
    for value in values {
        running.add::<EXTREMES>(*value ^ flip, T::GREATEST);
    }
    running.finish()
}

kernel! {
    /// Totals of those `values` (at most a block) that have their bit set in `kept`.
    pub(super) fn totals_kept<T: Lane, const EXTREMES: bool>(values: &[T], flip: T, kept: &[u64]) -> Totals
        = totals_kept_body::<T, EXTREMES>;
}

#[inline(always)]
fn totals_kept_body<T: Lane, const EXTREMES: bool>(values: &[T], flip: T, kept: &[u64]) -> Totals {
    debug_assert!(values.len() <= BLOCK && kept.len() * 64 >= values.len());
    let mut running = Running::<T>::START;
    let (whole, rest) = values.as_chunks::<64>();
    for (values, word) in whole.iter().zip(kept) {
        if *word == 0 {
            continue;
        }
        for (i, value) in values.iter().enumerate() {
            running.add::<EXTREMES>(*value ^ flip, T::of((word >> i & 1).wrapping_neg()));
        }
    }
    for (i, value) in rest.iter().enumerate() {
        running.add::<EXTREMES>(*value ^ flip, T::of((kept[whole.len()] >> i & 1).wrapping_neg()));
    }
    running.finish()
}

/// How many partial sums of floats there are.
const FLOAT_LANES: usize = 16;

kernel! {
    /// The sum of all values.
    pub(super) fn sum_floats(values: &[f64]) -> f64 = sum_floats_body;
}

#[inline(always)]
fn sum_floats_body(values: &[f64]) -> f64 {
    let mut lanes = [0.0; FLOAT_LANES];
    let (whole, rest) = values.as_chunks::<FLOAT_LANES>();
    for values in whole {
        for i in 0..FLOAT_LANES {
            lanes[i] += values[i];
        }
    }
    lanes.iter_mut().zip(rest).for_each(|(lane, value)| *lane += value);
    lanes.iter().sum()
}

kernel! {
    /// The sum of the values that have their bit set in `kept`.
    pub(super) fn sum_floats_kept(values: &[f64], kept: &[u64]) -> f64 = sum_floats_kept_body;
}

#[inline(always)]
fn sum_floats_kept_body(values: &[f64], kept: &[u64]) -> f64 {
    let mut lanes = [0.0; FLOAT_LANES];
    let (whole, rest) = values.as_chunks::<64>();
    let keep = |value: f64, bit: u64| f64::from_bits(value.to_bits() & (bit & 1).wrapping_neg());
    for (values, word) in whole.iter().zip(kept) {
        for (quarter, values) in values.as_chunks::<FLOAT_LANES>().0.iter().enumerate() {
            let word = word >> (quarter * FLOAT_LANES);
            for i in 0..FLOAT_LANES {
                lanes[i] += keep(values[i], word >> i);
            }
        }
    }
    for (i, value) in rest.iter().enumerate() {
        lanes[i % FLOAT_LANES] += keep(*value, kept[whole.len()] >> i);
    }
    lanes.iter().sum()
}

kernel! {
    /// How many neighbours differ.
    pub(super) fn count_changes(keys: &[i64]) -> usize = count_changes_body;
}

#[inline(always)]
fn count_changes_body(keys: &[i64]) -> usize {
    let next = keys.get(1..).unwrap_or(&[]);
    keys.iter().zip(next).map(|(key, next)| u64::from(key != next)).sum::<u64>() as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random(count: usize, seed: u64) -> Vec<u64> {
        let mut state = seed | 1;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        (0..count).map(|_| next()).collect()
    }

    #[test]
    fn words_that_are_the_same_are_found_in_lists_of_every_length() {
        let words = random(64, 5);
        for len in 0..=64 {
            for differ in [0, u64::MAX, 1, 1 << 63, 0x8421_0842_1084_2108, random(65, 7)[len]] {
                let others: Vec<u64> =
                    words.iter().enumerate().map(|(at, word)| word ^ (differ >> at & 1) << at).collect();
                let equal = (0..len).fold(0, |equal, at| equal | (!differ >> at & 1) << at);
                for simd in Simd::available() {
                    assert_eq!(equal_words(simd, &words[..len], &others[..len]), equal, "{simd:?}, {len} words");
                }
            }
        }
    }

    fn all_variants_agree<T: Lane>() {
        let values: Vec<T> = random(BLOCK + 200, 3).into_iter().map(T::of).collect();
        let kept = random(BLOCK / 64, 9);
        for len in (0..200).chain([1_000, BLOCK]) {
            for offset in [0, 1, 7, 63, 130] {
                let values = &values[offset..offset + len];
                for flip in [T::ZERO, T::of(1u64 << (T::WIDTH - 1))] {
                    let is_kept = |i: usize| kept[i / 64] >> (i % 64) & 1 == 1;
                    let all: Vec<u64> = values.iter().map(|value| (*value ^ flip).word()).collect();
                    let some: Vec<u64> = (0..len).filter(|i| is_kept(*i)).map(|i| all[i]).collect();
                    for simd in Simd::available() {
                        assert_eq!(totals::<T, true>(simd, values, flip), slow(&all));
                        assert_eq!(totals_kept::<T, true>(simd, values, flip, &kept), slow(&some));
                        assert_eq!(totals::<T, false>(simd, values, flip).sum, slow(&all).sum);
                        assert_eq!(totals_kept::<T, false>(simd, values, flip, &kept).sum, slow(&some).sum);
                    }
                }
            }
        }
    }

    fn slow(values: &[u64]) -> Totals {
        Totals {
            sum: values.iter().map(|value| u128::from(*value)).sum(),
            min: values.iter().copied().min().unwrap_or(u64::MAX),
            max: values.iter().copied().max().unwrap_or(0),
        }
    }

    #[test]
    fn totals_are_the_same_with_all_instructions() {
        all_variants_agree::<u8>();
        all_variants_agree::<u16>();
        all_variants_agree::<u32>();
        all_variants_agree::<u64>();
    }

    #[test]
    fn float_sums_are_bitwise_the_same_with_all_instructions() {
        let values: Vec<f64> = random(BLOCK, 5).iter().map(|word| *word as i64 as f64 * 1e-7).collect();
        let kept = random(BLOCK / 64, 11);
        for len in 0..200 {
            for offset in [0, 1, 63] {
                let values = &values[offset..offset + len];
                let twin = (sum_floats_body(values), sum_floats_kept_body(values, &kept));
                for simd in Simd::available() {
                    assert_eq!(sum_floats(simd, values).to_bits(), twin.0.to_bits());
                    assert_eq!(sum_floats_kept(simd, values, &kept).to_bits(), twin.1.to_bits());
                }
                let masked: Vec<f64> =
                    (0..len).map(|i| if kept[i / 64] >> (i % 64) & 1 == 1 { values[i] } else { 0.0 }).collect();
                assert_eq!(sum_floats_body(&masked).to_bits(), twin.1.to_bits());
            }
        }
    }

    #[test]
    fn changes_are_counted_with_all_instructions() {
        for len in 0..200 {
            let keys: Vec<i64> = random(len, 17).iter().map(|word| (word % 3) as i64).collect();
            let slow = keys.windows(2).filter(|pair| pair[0] != pair[1]).count();
            for simd in Simd::available() {
                assert_eq!(count_changes(simd, &keys), slow);
            }
        }
    }
}
