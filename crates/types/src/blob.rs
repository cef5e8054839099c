//! Where a blob of a checkpoint stands: bytes that were written once and are never changed.
//!
//! `durability` writes and reads blobs without knowing what is in them; `lineage` keeps the reference of each page that
//! is on disk already, so that the next checkpoint refers to it again instead of writing it.
use std::fmt;

/// Names the bytes of one blob.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct BlobRef {
    /// number of the file
    pub file: u64,
    /// of its first byte in the file
    pub offset: u64,
    /// in bytes
    pub len: u32,
    /// crc32c of the bytes
    pub checksum: u32,
}

impl BlobRef {
    /// The bit in the number of a file which says that a load wrote it (`load-00000001.blobs`) and not a checkpoint.
    pub const OF_LOAD: u64 = 1 << 63;

    /// Bytes of the encoded form.
    pub const ENCODED_LEN: usize = 24;

    /// Whether a load wrote its file.
    pub fn is_of_load(self) -> bool {
        self.file & Self::OF_LOAD != 0
    }

    /// The reference as bytes, little-endian: file, offset, length, checksum.
    pub fn to_bytes(self) -> [u8; Self::ENCODED_LEN] {
        let mut bytes = [0; Self::ENCODED_LEN];
        bytes[..8].copy_from_slice(&self.file.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.offset.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.len.to_le_bytes());
        bytes[20..].copy_from_slice(&self.checksum.to_le_bytes());
        bytes
    }

    /// The reference that [`to_bytes`](Self::to_bytes) gave.
    pub fn from_bytes(bytes: [u8; Self::ENCODED_LEN]) -> BlobRef {
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        let half = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        BlobRef { file: word(0), offset: word(8), len: half(16), checksum: half(20) }
    }
}

impl fmt::Display for BlobRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = if self.is_of_load() { "load" } else { "file" };
        write!(f, "{} bytes at {} of {of} {}", self.len, self.offset, self.file & !BlobRef::OF_LOAD)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_survives_its_bytes() {
        let blob = BlobRef { file: u64::MAX - 1, offset: 1 << 40, len: 7, checksum: 0xdead_beef };
        assert_eq!(BlobRef::from_bytes(blob.to_bytes()), blob);
    }
}
