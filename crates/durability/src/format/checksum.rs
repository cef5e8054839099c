//! CRC-32C of the few bytes of a frame.
//!
//! The library chooses by the processor and by the length of a run, for which a frame takes two calls and a hundred instructions each.
//! The processor's own instruction takes eight bytes at a time: ten instructions for the redo of a short transaction. Longer runs are the
//! library's, which has three under way at once.

/// Runs up to this length are checked here.
const FEW_BYTES: usize = 256;

/// The checksum of bytes that follow others, of which `before` is the checksum; 0 where there are none.
#[inline]
pub(crate) fn crc32c(before: u32, bytes: &[u8]) -> u32 {
    #[cfg(target_arch = "x86_64")]
    if bytes.len() <= FEW_BYTES && std::arch::is_x86_feature_detected!("sse4.2") {
        // SAFETY: the processor has the instructions that the function is built for.
        #[allow(unsafe_code)]
        return unsafe { of_few(before, bytes) };
    }
    crc32c::crc32c_append(before, bytes)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse4.2")]
fn of_few(before: u32, bytes: &[u8]) -> u32 {
    use std::arch::x86_64::{_mm_crc32_u8, _mm_crc32_u64};

    let (words, rest) = bytes.as_chunks::<8>();
    let state = words.iter().fold(u64::from(!before), |state, word| _mm_crc32_u64(state, u64::from_le_bytes(*word)));
    // The instruction leaves the upper half zero.
    !rest.iter().fold(state as u32, |state, byte| _mm_crc32_u8(state, *byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_and_long_runs_are_what_the_library_says() {
        let bytes: Vec<u8> = (0..FEW_BYTES + 20).map(|at| (at * 167 + at / 7) as u8).collect();
        for end in 0..bytes.len() {
            let whole = crc32c::crc32c(&bytes[..end]);
            assert_eq!(crc32c(0, &bytes[..end]), whole, "{end} bytes");
            for start in [end / 3, end / 2, end] {
                assert_eq!(crc32c(crc32c(0, &bytes[..start]), &bytes[start..end]), whole, "{start} and {end} bytes");
            }
        }
        assert_eq!(crc32c(0, b"123456789"), 0xe306_9283, "the check value of the definition");
    }
}
