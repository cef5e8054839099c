//! The test of suffixes against the bounds of a query, compiled for the widest vectors that the processor has.

use crate::vectors::{self, kernel};

/// Bounds of a query in one dimension, both ends included: outside of `may` nothing answers, within `must` everything does.
/// Bounds whose low end is above the high one let nothing pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SuffixBounds {
    pub(super) may: (u32, u32),
    pub(super) must: (u32, u32),
}

kernel! {
    /// Clears, in words with a bit for each suffix, the bits of those that may not answer, and of those that need not.
    fn test(suffixes: &[u32], bounds: SuffixBounds, may: &mut [u64], must: &mut [u64]) = body
}

#[inline(always)]
fn body(suffixes: &[u32], bounds: SuffixBounds, may: &mut [u64], must: &mut [u64]) {
    for ((suffixes, may), must) in suffixes.chunks(64).zip(may).zip(must) {
        *may &= word_of(suffixes, bounds.may);
        *must &= word_of(suffixes, bounds.must);
    }
}

/// A bit for each of up to 64 numbers, whether it is within bounds.
#[inline(always)]
fn word_of(numbers: &[u32], (low, high): (u32, u32)) -> u64 {
    let mut bytes = [0u8; 64];
    match <&[u32; 64]>::try_from(numbers) {
        Ok(numbers) => {
            for (byte, number) in bytes.iter_mut().zip(numbers) {
                *byte = u8::from(low <= *number) & u8::from(*number <= high);
            }
        }
        Err(_) => {
            for (byte, number) in bytes.iter_mut().zip(numbers) {
                *byte = u8::from(low <= *number) & u8::from(*number <= high);
            }
        }
    }
    vectors::word_of(&bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::vectors::Vectors;

    proptest! {
        #[test]
        fn every_variant_answers_as_the_plain_one(
            suffixes in proptest::collection::vec(0..40u32, 0..200),
            bounds in (0..40u32, 0..40u32, 0..40u32, 0..40u32),
        ) {
            let bounds = SuffixBounds { may: (bounds.0, bounds.1), must: (bounds.2, bounds.3) };
            let all = |vectors: Vectors| {
                let (mut may, mut must) = ([u64::MAX; 4], [u64::MAX; 4]);
                test(vectors, &suffixes, bounds, &mut may, &mut must);
                (may, must)
            };
            for (at, suffix) in suffixes.iter().enumerate() {
                let may = all(Vectors::Plain).0[at / 64] >> (at % 64) & 1;
                prop_assert_eq!(may == 1, bounds.may.0 <= *suffix && *suffix <= bounds.may.1);
            }
            for vectors in Vectors::available() {
                prop_assert_eq!(all(vectors), all(Vectors::Plain));
            }
        }
    }
}
