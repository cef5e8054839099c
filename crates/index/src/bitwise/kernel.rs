//! The test of suffixes against the bounds of a query, compiled for the widest vectors that the processor has.

/// Bounds of a query in one dimension, both ends included: outside of `may` nothing answers, within `must` everything does.
/// Bounds whose low end is above the high one let nothing pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SuffixBounds {
    pub(super) may: (u32, u32),
    pub(super) must: (u32, u32),
}

/// Clears, in words with a bit for each suffix, the bits of those that may not answer, and of those that need not.
#[inline]
pub(super) fn test(suffixes: &[u32], bounds: SuffixBounds, may: &mut [u64], must: &mut [u64]) {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2,bmi2")]
        fn avx2(suffixes: &[u32], bounds: SuffixBounds, may: &mut [u64], must: &mut [u64]) {
            body(suffixes, bounds, may, must);
        }
        #[target_feature(enable = "avx2,bmi2,avx512f,avx512bw,avx512dq,avx512vl")]
        fn avx512(suffixes: &[u32], bounds: SuffixBounds, may: &mut [u64], must: &mut [u64]) {
            body(suffixes, bounds, may, must);
        }
        if is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("bmi2")
        {
            // SAFETY: the processor has what was asked for; with these parts of AVX-512 it has AVX2 and AVX-512F as well.
            return unsafe { avx512(suffixes, bounds, may, must) };
        }
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("bmi2") {
            // SAFETY: the processor has what was asked for.
            return unsafe { avx2(suffixes, bounds, may, must) };
        }
    }
    body(suffixes, bounds, may, must);
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
    let mut word = 0;
    for (part, eight) in bytes.chunks_exact(8).enumerate() {
        let eight = u64::from_le_bytes(eight.try_into().expect("eight bytes"));
        // The product brings bit 8 n to bit 56 + n.
        word |= (eight.wrapping_mul(0x0102_0408_1020_4080) >> 56) << (8 * part);
    }
    word
}
