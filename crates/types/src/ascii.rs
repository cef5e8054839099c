//! Whether a text is made of ASCII alone.

/// The highest bit of each byte, which none of ASCII has.
const HIGH_BITS: u64 = 0x8080_8080_8080_8080;

/// Whether bytes are characters of ASCII alone. Takes 32 bytes at a time, or eight of a shorter text; the last of these may be looked at
/// twice, so that texts of a line or two, which most are, take no loop over what is left.
#[inline]
pub fn is_ascii(bytes: &[u8]) -> bool {
    let all = match (bytes.last_chunk::<32>(), bytes.last_chunk::<8>()) {
        (Some(last), _) => {
            let mut all = words(last);
            for piece in bytes.as_chunks::<32>().0 {
                let piece = words(piece);
                all = [all[0] | piece[0], all[1] | piece[1], all[2] | piece[2], all[3] | piece[3]];
            }
            all[0] | all[1] | all[2] | all[3]
        }
        (None, Some(last)) => {
            let pieces = bytes.as_chunks::<8>().0.iter();
            pieces.fold(u64::from_le_bytes(*last), |all, piece| all | u64::from_le_bytes(*piece))
        }
        (None, None) => return bytes.is_ascii(),
    };
    all & HIGH_BITS == 0
}

/// 32 bytes as words, which registers of 16 bytes hold in pairs.
#[inline]
fn words(piece: &[u8; 32]) -> [u64; 4] {
    let words = piece.as_chunks::<8>().0;
    let word = |at: usize| u64::from_le_bytes(words[at]);
    [word(0), word(1), word(2), word(3)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_byte_anywhere_is_seen() {
        for len in 0..140 {
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
