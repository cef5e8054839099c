//! Tests of all keys of a node at once, compiled for the widest vectors that the processor has.
//!
//! Keys stand dimension by dimension, all low ends of a dimension and then all high ends, so that a vector holds the same end of
//! several keys. A test is a few comparisons per end, joined to a byte for each slot, and the bytes to a word. What the word has
//! beyond the node's count is cut off by the caller.
use super::bounds::{Coordinate, Window};
use super::extension::SLOTS_MAX;

/// One end of the keys of a node, in one dimension.
pub(super) type Ends<T> = [T; SLOTS_MAX];

/// Defines a function that runs `$body`, plain code that is inlined into each variant and vectorised there anew.
macro_rules! kernel {
    ($(#[$meta:meta])* fn $name:ident($($argument:ident: $type:ty),* $(,)?) $(-> $output:ty)? = $body:ident) => {
        $(#[$meta])*
        #[inline]
        pub(super) fn $name<T: Coordinate, const D: usize>($($argument: $type),*) $(-> $output)? {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2,bmi2,popcnt")]
                fn avx2<T: Coordinate, const D: usize>($($argument: $type),*) $(-> $output)? {
                    $body($($argument),*)
                }
                #[target_feature(enable = "avx2,bmi2,popcnt,avx512f,avx512bw,avx512dq,avx512vl")]
                fn avx512<T: Coordinate, const D: usize>($($argument: $type),*) $(-> $output)? {
                    $body($($argument),*)
                }
                if is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
                    && is_x86_feature_detected!("bmi2")
                {
                    // SAFETY: the processor has what was asked for; with these parts of AVX-512 it has AVX2, AVX-512F and
                    // popcnt as well.
                    return unsafe { avx512::<T, D>($($argument),*) };
                }
                if is_x86_feature_detected!("avx2")
                    && is_x86_feature_detected!("bmi2")
                    && is_x86_feature_detected!("popcnt")
                {
                    // SAFETY: the processor has what was asked for.
                    return unsafe { avx2::<T, D>($($argument),*) };
                }
            }
            $body($($argument),*)
        }
    };
}

kernel! {
    /// The keys whose low ends are at most, and whose high ends are at least, the inner bounds of a window.
    fn reaching(low: &[Ends<T>; D], high: &[Ends<T>; D], window: &Window<T, D>) -> u64 = reaching_body
}

kernel! {
    /// The keys that pass a window.
    fn passing(low: &[Ends<T>; D], high: &[Ends<T>; D], window: &Window<T, D>) -> u64 = passing_body
}

kernel! {
    /// How far each key is from a point.
    fn distances(
        low: &[Ends<T>; D],
        high: &[Ends<T>; D],
        origin: &[T; D],
        distances: &mut [f64; SLOTS_MAX],
    ) = distances_body
}

kernel! {
    /// How much the volume of each key grows by covering another key as well.
    fn enlargements(
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

/// The lowest bit of each byte, the first byte's lowest.
#[inline(always)]
fn word_of(bytes: &[u8; SLOTS_MAX]) -> u64 {
    let mut word = 0;
    for (part, eight) in bytes.chunks_exact(8).enumerate() {
        let eight = u64::from_le_bytes(eight.try_into().expect("eight bytes"));
        // The product brings bit 8 n to bit 56 + n.
        word |= (eight.wrapping_mul(0x0102_0408_1020_4080) >> 56) << (8 * part);
    }
    word
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
