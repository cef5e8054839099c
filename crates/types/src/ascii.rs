//! Whether a text is made of ASCII alone.

/// Whether bytes are characters of ASCII alone. Takes eight bytes at a time, the last of which may be looked at twice, so that texts of a
/// line or two, which most are, take no loop over what is left.
#[inline]
pub fn is_ascii(bytes: &[u8]) -> bool {
    const HIGH_BITS: u64 = 0x8080_8080_8080_8080;
    let Some(last) = bytes.last_chunk::<8>() else { return bytes.is_ascii() };
    let (words, _) = bytes.as_chunks::<8>();
    words.iter().fold(u64::from_le_bytes(*last), |all, word| all | u64::from_le_bytes(*word)) & HIGH_BITS == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_byte_anywhere_is_seen() {
        for len in 0..40 {
            let mut bytes = vec![0x7f; len];
            assert!(is_ascii(&bytes), "{len}");
            for at in 0..len {
                bytes[at] = 0x80;
                assert!(!is_ascii(&bytes), "{len} {at}");
                bytes[at] = b' ';
            }
        }
    }
}
