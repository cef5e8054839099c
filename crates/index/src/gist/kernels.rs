//! Tests of all keys of a node at once, compiled for the widest vectors that the processor has.
//!
//! Keys stand dimension by dimension, all low ends of a dimension and then all high ends, so that a vector holds the same end of
//! several keys. A test is a few comparisons per end, joined to a byte for each slot, and the bytes to a word. What the word has
//! beyond the node's count is cut off by the caller.
use super::bounds::{Coordinate, Window};
use super::extension::SLOTS_MAX;
use crate::vectors::{kernel, word_of};

/// One end of the keys of a node, in one dimension.
pub(super) type Ends<T> = [T; SLOTS_MAX];

kernel! {
    /// The keys whose low ends are at most, and whose high ends are at least, the inner bounds of a window.
    fn reaching<T: Coordinate, const D: usize>(low: &[Ends<T>; D], high: &[Ends<T>; D], window: &Window<T, D>) -> u64 = reaching_body
}

kernel! {
    /// The keys that pass a window.
    fn passing<T: Coordinate, const D: usize>(low: &[Ends<T>; D], high: &[Ends<T>; D], window: &Window<T, D>) -> u64 = passing_body
}

kernel! {
    /// How far each key is from a point.
    fn distances<T: Coordinate, const D: usize>(
        low: &[Ends<T>; D],
        high: &[Ends<T>; D],
        origin: &[T; D],
        distances: &mut [f64; SLOTS_MAX],
    ) = distances_body
}

kernel! {
    /// How much the volume of each key grows by covering another key as well.
    fn enlargements<T: Coordinate, const D: usize>(
        low: &[Ends<T>; D],
        high: &[Ends<T>; D],
        new: (&[T; D], &[T; D]),
        enlargements: &mut [f64; SLOTS_MAX],
    ) = enlargements_body
}

#[inline(always)]
fn reaching_body<T: Coordinate, const D: usize>(low: &[Ends<T>; D], high: &[Ends<T>; D], window: &Window<T, D>) -> u64 {
    let mut passed = [1u8; SLOTS_MAX];
    for d in 0..D {
        let (low_most, high_least) = (window.low.1[d], window.high.0[d]);
        for slot in 0..SLOTS_MAX {
            passed[slot] &= u8::from(low[d][slot] <= low_most) & u8::from(high[d][slot] >= high_least);
        }
    }
    word_of(&passed)
}

#[inline(always)]
fn passing_body<T: Coordinate, const D: usize>(low: &[Ends<T>; D], high: &[Ends<T>; D], window: &Window<T, D>) -> u64 {
    let mut passed = [1u8; SLOTS_MAX];
    for d in 0..D {
        let (low_least, high_most) = (window.low.0[d], window.high.1[d]);
        for slot in 0..SLOTS_MAX {
            passed[slot] &= u8::from(low[d][slot] >= low_least) & u8::from(high[d][slot] <= high_most);
        }
    }
    word_of(&passed) & reaching_body(low, high, window)
}

#[inline(always)]
fn distances_body<T: Coordinate, const D: usize>(
    low: &[Ends<T>; D],
    high: &[Ends<T>; D],
    origin: &[T; D],
    distances: &mut [f64; SLOTS_MAX],
) {
    let mut squares = [0.0; SLOTS_MAX];
    for d in 0..D {
        let at = origin[d].to_f64();
        for slot in 0..SLOTS_MAX {
            // Where both are infinite the difference is NaN, which `max` leaves out.
            let apart = (low[d][slot].to_f64() - at).max(at - high[d][slot].to_f64()).max(0.0);
            squares[slot] += apart * apart;
        }
    }
    for slot in 0..SLOTS_MAX {
        distances[slot] = squares[slot].sqrt();
    }
}

#[inline(always)]
fn enlargements_body<T: Coordinate, const D: usize>(
    low: &[Ends<T>; D],
    high: &[Ends<T>; D],
    new: (&[T; D], &[T; D]),
    enlargements: &mut [f64; SLOTS_MAX],
) {
    let (mut before, mut after) = ([1.0; SLOTS_MAX], [1.0; SLOTS_MAX]);
    for d in 0..D {
        let (new_low, new_high) = (new.0[d].to_f64(), new.1[d].to_f64());
        for slot in 0..SLOTS_MAX {
            let (low, high) = (low[d][slot].to_f64(), high[d][slot].to_f64());
            before[slot] *= high - low;
            after[slot] *= high.max(new_high) - low.min(new_low);
        }
    }
    for slot in 0..SLOTS_MAX {
        enlargements[slot] = after[slot] - before[slot];
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::vectors::Vectors;

    proptest! {
        #[test]
        fn every_variant_answers_as_the_plain_one(
            ends in proptest::collection::vec(-9i32..9, 4 * SLOTS_MAX),
            window in proptest::collection::vec(-9i32..9, 8),
        ) {
            let part = |at: usize| -> Ends<f64> { std::array::from_fn(|slot| f64::from(ends[at * SLOTS_MAX + slot])) };
            let (low, high) = ([part(0), part(1)], [part(2), part(3)]);
            let bound = |at: usize| [f64::from(window[at]), f64::from(window[at + 1])];
            let window = Window { low: (bound(0), bound(2)), high: (bound(4), bound(6)) };
            let all = |vectors: Vectors| {
                let (mut far, mut growth) = ([0.0; SLOTS_MAX], [0.0; SLOTS_MAX]);
                distances(vectors, &low, &high, &bound(0), &mut far);
                enlargements(vectors, &low, &high, (&bound(0), &bound(2)), &mut growth);
                (reaching(vectors, &low, &high, &window), passing(vectors, &low, &high, &window), far, growth)
            };
            for vectors in Vectors::available() {
                prop_assert_eq!(all(vectors), all(Vectors::Plain));
            }
        }
    }
}
