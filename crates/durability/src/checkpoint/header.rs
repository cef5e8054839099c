//! The first sector of every file of a checkpoint, and the names of the files.
//!
//! ```text
//!   offset  bytes
//!        0      8  magic
//!        8      4  format version
//!       12      4  checksum: crc32c of the other bytes of the sector (0..12, 16..512)
//!       16    496  words of 8 bytes: what the kind of file says (`manifest.rs`, `blob_file.rs`), then zeros
//! ```
//!
//! The four fields are the same in all versions of the format to come, so a newer version is told from a damaged
//! header: its checksum matches. A sector of zeros is no header but one that was never written.
//!
//! Names begin with `checkpoint-`, or `load-` where a load wrote the blobs, those of the log with `redo`.

use types::BlobRef;

use super::error::{CheckpointError, Result, corrupt};
use crate::format::frame::{u32_at, u64_at};

/// Where the contents of a file start.
pub(super) const HEADER_BYTES: usize = 512;
const CHECKSUM_OFFSET: usize = 12;
const WORDS_OFFSET: usize = 16;

/// One of the two kinds of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kind {
    magic: [u8; 8],
    /// the newest that is read, and written where it is needed; those from 1 on are read
    version: u32,
    suffix: &'static str,
}

/// Whether a load wrote the file of blobs with this number. Programs from before take it for no file of theirs, and remove none.
pub(super) fn is_of_load(number: u64) -> bool {
    number & BlobRef::OF_LOAD != 0
}

/// The number of a file of a load.
pub(super) fn load_number(number: u64) -> u64 {
    debug_assert!(!is_of_load(number), "so many files there are never");
    number | BlobRef::OF_LOAD
}

/// What is counted in the number of a file.
pub(super) fn count_of(number: u64) -> u64 {
    number & !BlobRef::OF_LOAD
}

/// `checkpoint-00000001.manifest`: what belongs to a checkpoint. Version 2 lists files of loads.
pub(super) const MANIFEST: Kind = Kind { magic: *b"LSTCKPT\0", version: 2, suffix: ".manifest" };
/// `checkpoint-00000001.blobs`, or `load-00000002.blobs` of a load: bytes.
pub(super) const BLOBS: Kind = Kind { magic: *b"LSTBLOB\0", version: 1, suffix: ".blobs" };

impl Kind {
    /// The newest version that this program writes.
    pub(super) fn version(self) -> u32 {
        self.version
    }

    /// The name of a file.
    pub(super) fn file_name(self, number: u64) -> String {
        let of = if is_of_load(number) { "load" } else { "checkpoint" };
        format!("{of}-{:08}{}", count_of(number), self.suffix)
    }

    /// The number in the name of a file of this kind; `None` if it is another file.
    pub(super) fn parse_name(self, name: &str) -> Option<u64> {
        let (of, count) = name.strip_suffix(self.suffix)?.split_once('-')?;
        let count: u64 = count.parse().ok().filter(|count| !is_of_load(*count))?;
        let number = if of == "load" { load_number(count) } else { count };
        (self.file_name(number) == name).then_some(number)
    }

    /// A header of a version with these words.
    pub(super) fn encode(self, version: u32, words: &[u64]) -> [u8; HEADER_BYTES] {
        debug_assert!((1..=self.version).contains(&version), "version {version} is not read");
        debug_assert!(words.len() <= (HEADER_BYTES - WORDS_OFFSET) / 8, "{} words in a header", words.len());
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(&self.magic);
        bytes[8..CHECKSUM_OFFSET].copy_from_slice(&version.to_le_bytes());
        for (word, place) in words.iter().zip(bytes[WORDS_OFFSET..].chunks_exact_mut(8)) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        let checksum = checksum(&bytes);
        bytes[CHECKSUM_OFFSET..WORDS_OFFSET].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// The words of the header at the start of file `name`; `None` where only zeros stand.
    pub(super) fn decode<const COUNT: usize>(self, bytes: &[u8], name: &str) -> Result<Option<[u64; COUNT]>> {
        if bytes.iter().all(|&byte| byte == 0) {
            return Ok(None);
        }
        if bytes.len() != HEADER_BYTES || bytes[..8] != self.magic {
            return Err(corrupt(name, 0, "it does not begin like a file of a checkpoint"));
        }
        if u32_at(bytes, CHECKSUM_OFFSET) != checksum(bytes) {
            return Err(corrupt(name, 0, "the checksum of its header does not match"));
        }
        let found = u32_at(bytes, 8);
        if !(1..=self.version).contains(&found) {
            return Err(CheckpointError::UnknownVersion { file: name.to_string(), found, supported: self.version });
        }
        Ok(Some(std::array::from_fn(|at| u64_at(bytes, WORDS_OFFSET + 8 * at))))
    }
}

fn checksum(bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&bytes[..CHECKSUM_OFFSET]), &bytes[WORDS_OFFSET..HEADER_BYTES])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::segment;

    #[test]
    fn names_come_back_and_clash_with_no_others() {
        assert_eq!(MANIFEST.file_name(3), "checkpoint-00000003.manifest");
        assert_eq!(BLOBS.file_name(123_456_789), "checkpoint-123456789.blobs");
        assert_eq!(BLOBS.file_name(load_number(7)), "load-00000007.blobs");
        for number in [1, 99_999_999, 100_000_000, BlobRef::OF_LOAD - 1, BlobRef::OF_LOAD, u64::MAX] {
            let (manifest, blobs) = (MANIFEST.file_name(number), BLOBS.file_name(number));
            assert_eq!((MANIFEST.parse_name(&manifest), BLOBS.parse_name(&blobs)), (Some(number), Some(number)));
            assert_eq!((MANIFEST.parse_name(&blobs), BLOBS.parse_name(&manifest)), (None, None));
            assert_eq!((segment::parse_name(&manifest), segment::parse_name(&blobs)), (None, None));
            assert_eq!(MANIFEST.parse_name(&segment::file_name(number)), None);
        }
        let late = format!("checkpoint-{}.blobs", BlobRef::OF_LOAD);
        for other in [
            "LOCK",
            "redo.trim",
            "load-1.blobs",
            "loads-00000001.blobs",
            &late,
            "checkpoint-1.blobs",
            "checkpoint-+0000001.blobs",
            "checkpoint-00000001",
        ] {
            assert_eq!((MANIFEST.parse_name(other), BLOBS.parse_name(other)), (None, None), "{other}");
        }
    }

    #[test]
    fn words_come_back_and_every_flipped_bit_is_noticed() {
        let bytes = MANIFEST.encode(2, &[7, u64::MAX, 0]);
        assert_eq!(MANIFEST.decode(&bytes, "x").unwrap(), Some([7, u64::MAX, 0, 0]));
        for bit in 0..HEADER_BYTES * 8 {
            let mut flipped = bytes;
            flipped[bit / 8] ^= 1 << (bit % 8);
            let error = MANIFEST.decode::<3>(&flipped, "x").unwrap_err();
            assert!(matches!(error, CheckpointError::Corrupt { .. }), "bit {bit}: {error}");
        }
        assert!(BLOBS.decode::<3>(&bytes, "x").is_err(), "another kind");
        assert!(MANIFEST.decode::<3>(&bytes[..500], "x").is_err());
        assert_eq!(MANIFEST.decode::<3>(&[0; 100], "x").unwrap(), None);
    }

    #[test]
    fn a_newer_version_is_told_from_damage() {
        let newer = Kind { version: 3, ..MANIFEST };
        let error = MANIFEST.decode::<1>(&newer.encode(3, &[1]), "x").unwrap_err();
        assert!(matches!(error, CheckpointError::UnknownVersion { found: 3, supported: 2, .. }), "{error}");
        assert_eq!(MANIFEST.decode(&MANIFEST.encode(1, &[1]), "x").unwrap(), Some([1]));
    }
}
