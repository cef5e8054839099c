//! Permission to use vector instructions, and the integers that they work on.
//!
//! [`Simd`] says which instructions the kernels of this module tree may use. Its variants hold proof tokens that only
//! a look at the processor hands out, so a kernel that gets one may run without a further check. The scalar variant
//! is the twin that the tests hold the others to.
use std::ops::{BitAnd, BitOr, BitXor, Not, Shl, Shr};

use arrow_buffer::ArrowNativeType;

/// How many values a block has: the unit of bit-packing, of zones and of evaluation.
pub(crate) const BLOCK: usize = 1_024;

/// How many words hold one bit for each value of a block.
pub(super) const BLOCK_WORDS: usize = BLOCK / 64;

/// One bit for each row of (a part of) a block; bit 0 of the first word is the part's first row.
pub(crate) type BlockBits = [u64; BLOCK_WORDS];

/// The word that has the lowest `bits` bits set.
#[inline(always)]
pub(super) fn low_bits(bits: usize) -> u64 {
    if bits >= 64 { u64::MAX } else { (1 << bits) - 1 }
}

/// Calls `action` for each block that rows `from..to` touch: the block, the rows within it, and how many rows came
/// before.
pub(super) fn each_block(from: usize, to: usize, mut action: impl FnMut(usize, (usize, usize), usize)) {
    let mut at = from;
    while at < to {
        let start = at / BLOCK * BLOCK;
        let end = to.min(start + BLOCK);
        action(at / BLOCK, (at - start, end - start), at - from);
        at = end;
    }
}

/// The processor has AVX2.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Avx2(());

/// The processor has AVX-512 with its byte, double-word and short-vector parts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Avx512(());

/// The instructions that a kernel may use.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "other processors have the scalar twin only"))]
pub(crate) enum Simd {
    Scalar,
    Avx2(Avx2),
    Avx512(Avx512),
}

impl Avx2 {
    /// The token, if this processor has the instructions.
    pub fn detect() -> Option<Avx2> {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("bmi2") && is_x86_feature_detected!("popcnt") {
            return Some(Avx2(()));
        }
        None
    }
}

impl Avx512 {
    /// The token, if this processor has the instructions.
    pub fn detect() -> Option<Avx512> {
        #[cfg(target_arch = "x86_64")]
        if Avx2::detect().is_some()
            && is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
        {
            return Some(Avx512(()));
        }
        None
    }
}

impl Simd {
    /// The widest instructions of this processor.
    #[inline]
    pub fn best() -> Simd {
        match (Avx512::detect(), Avx2::detect()) {
            (Some(token), _) => Simd::Avx512(token),
            (None, Some(token)) => Simd::Avx2(token),
            (None, None) => Simd::Scalar,
        }
    }

    /// Every variant that this processor can run.
    #[cfg(test)]
    pub fn available() -> Vec<Simd> {
        let avx2 = Avx2::detect().map(Simd::Avx2);
        let avx512 = Avx512::detect().map(Simd::Avx512);
        [Some(Simd::Scalar), avx2, avx512].into_iter().flatten().collect()
    }
}

/// Defines `fn $name(simd, arguments)`, which runs `$body` compiled for the instructions of `simd`. The body is plain
/// code, inlined into each variant, where the compiler vectorises it anew.
macro_rules! kernel {
    ($(#[$meta:meta])* $visibility:vis fn $name:ident $(<$t:ident: $bound:ident $(, const $n:ident: bool)?>)?
     ($($argument:ident: $type:ty),* $(,)?) $(-> $output:ty)? = $body:path;) => {
        $(#[$meta])*
        #[inline]
        $visibility fn $name$(<$t: $bound $(, const $n: bool)?>)?(
            simd: $crate::encoding::simd::Simd, $($argument: $type),*
        ) $(-> $output)? {
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,bmi2,popcnt")]
            fn avx2$(<$t: $bound $(, const $n: bool)?>)?($($argument: $type),*) $(-> $output)? {
                $body($($argument),*)
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,bmi2,popcnt,avx512f,avx512bw,avx512dq,avx512vl")]
            fn avx512$(<$t: $bound $(, const $n: bool)?>)?($($argument: $type),*) $(-> $output)? {
                $body($($argument),*)
            }
            match simd {
                // SAFETY: the token proves that the processor has these instructions.
                #[cfg(target_arch = "x86_64")]
                $crate::encoding::simd::Simd::Avx512(_) => unsafe { avx512$(::<$t $(, $n)?>)?($($argument),*) },
                // SAFETY: as above.
                #[cfg(target_arch = "x86_64")]
                $crate::encoding::simd::Simd::Avx2(_) => unsafe { avx2$(::<$t $(, $n)?>)?($($argument),*) },
                _ => $body($($argument),*),
            }
        }
    };
}
pub(crate) use kernel;

/// An unsigned integer of which a vector holds many.
pub(crate) trait Lane:
    ArrowNativeType
    + Ord
    + BitAnd<Output = Self>
    + BitOr<Output = Self>
    + BitXor<Output = Self>
    + Not<Output = Self>
    + Shl<u32, Output = Self>
    + Shr<u32, Output = Self>
{
    /// Its width.
    const WIDTH: usize;
    /// How many of them a row of a packed block has; a block has as many rows as the type has bits.
    const LANES: usize = BLOCK / Self::WIDTH;
    /// Nothing.
    const ZERO: Self;
    /// The greatest.
    const GREATEST: Self;
    /// The lowest bits of `word`.
    fn of(word: u64) -> Self;
    /// The value, zero-extended.
    fn word(self) -> u64;
    /// Subtraction modulo the type.
    fn minus(self, other: Self) -> Self;
}

macro_rules! lane {
    ($($t:ty),*) => {
        $(impl Lane for $t {
            const WIDTH: usize = <$t>::BITS as usize;
            const ZERO: Self = 0;
            const GREATEST: Self = <$t>::MAX;
            #[inline(always)]
            fn of(word: u64) -> Self {
                word as $t
            }
            #[inline(always)]
            fn word(self) -> u64 {
                u64::from(self)
            }
            #[inline(always)]
            fn minus(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }
        })*
    };
}
lane!(u8, u16, u32, u64);
