//! The files of the log.
//!
//! Each partition is a chain of segments of about
//! [`LogOptions::segment_bytes`](crate::LogOptions::segment_bytes) each. Files are named `redo-00000001.log`,
//! `redo-00000002.log` and so on, in the order in which they were created; which partition a file belongs to, and
//! where in its chain, stands in its header, so that a file that was trimmed can be recycled by any partition. A
//! segment grows by preallocated steps, as overwriting allocated zeros makes for the cheapest sync, and a small
//! database stays small. A frame never spans segments: one that does not fit starts the next segment, and one larger
//! than a segment gets a longer segment.
//!
//! ```text
//!   offset  bytes
//!        0      8  magic "LSTREDO\0"
//!        8      4  format version, 4
//!       12      4  checksum: crc32c of the other bytes of the header sector (0..12, 16..512)
//!       16      8  number of the file, as in its name
//!       24      8  log: random, the same in all files of a log
//!       32      8  salt: random, seeds the checksums of the segment's frames
//!       40      8  partition
//!       48      8  sequence: place in the partition's chain, from 1
//!       56      8  end of the segment before, the offset after its last frame; 0 in the first of a chain
//!       64      8  salt of the segment before; 0 in the first of a chain
//!       72      8  the highest LSN in all segments of the chain before this one
//!       80      8  in a copy in an archive: where its frames end (`copies.rs`); else 0
//!       88      8  the size W of each of the two slots for witnesses: 512 to 65536
//!       96    416  zeros
//!        A      W  the slot of witnesses with even numbers (`witness.rs`); A is W, and 4096 at most
//!    A + W      W  the slot of those with odd numbers
//!   A + 2W         frames, then zeros or what a recycled file held before
//! ```
//!
//! The header has its sector to itself and changes only when the file is recycled. A segment is begun only after
//! everything in the segment before is on disk, and takes frames only after its header and its name are, and a note that it
//! was begun (`begun.rs`); so
//! - a valid header testifies to where the segment before ends;
//! - an interrupted creation leaves a file of zeros, or none, or a segment without frames of which there is no note, and an
//!   interrupted recycling leaves the old header or such a segment; any other invalid header is damage.
//!
//! Version 3 had neither witnesses nor notes, so that its frames began at byte 512; version 2 had no commits that name what
//! they depend on (`frame.rs`) either. Their segments are read, and take no frames: the first append begins a new one. Version
//! 1 was a log of one stream; it is refused.

use std::hash::{BuildHasher, Hasher, RandomState};

use crate::Lsn;
use crate::device::DeviceFile;
use crate::error::{LogError, Result, device_error};
use crate::format::frame::{u32_at, u64_at};
use crate::format::witness::Flush;
use crate::options::LogOptions;

/// The size of a header.
pub(crate) const HEADER_BYTES: usize = 512;
const MAGIC: [u8; 8] = *b"LSTREDO\0";
const FORMAT_VERSION: u32 = 4;
/// The first version with witnesses.
const WITNESS_VERSION: u32 = 4;
const OLDEST_VERSION: u32 = 2;
const CHECKSUM_OFFSET: usize = 12;
/// Slots begin at pages of their own, where they are large enough.
const PAGE_BYTES: u64 = 4096;
const SLOT_BYTES_MIN: u64 = 512;
const SLOT_BYTES_MAX: u64 = 64 << 10;
/// The part of a segment's first room that a slot takes at most.
const SLOT_PART: u64 = 16;

/// The file name of a segment.
pub(crate) fn file_name(number: u64) -> String {
    format!("redo-{number:08}.log")
}

/// The file number in a name; `None` if the file is no segment.
pub(crate) fn parse_name(name: &str) -> Option<u64> {
    let number = name.strip_prefix("redo-")?.strip_suffix(".log")?.parse().ok()?;
    (file_name(number) == name).then_some(number)
}

/// The header of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) version: u32,
    pub(crate) number: u64,
    pub(crate) log: u64,
    pub(crate) salt: u64,
    pub(crate) link: Link,
    /// Where the frames of a copy in an archive end; 0 in a segment of the log itself.
    pub(crate) copy_end: u64,
    /// The size of a slot for witnesses; 0 in older versions.
    pub(crate) slot_bytes: u64,
}

/// The size of the slots for witnesses in segments that begin with room for so many bytes.
pub(crate) fn slot_bytes(options: &LogOptions) -> u64 {
    let part = options.growth_bytes.min(options.segment_bytes) / SLOT_PART;
    let slot_bytes = part.next_multiple_of(SLOT_BYTES_MIN).clamp(SLOT_BYTES_MIN, SLOT_BYTES_MAX);
    debug_assert!(slot_bytes.is_multiple_of(SLOT_BYTES_MIN), "a slot has its sectors to itself: {slot_bytes}");
    slot_bytes
}

/// The place of a segment in its chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) partition: u64,
    pub(crate) sequence: u64,
    pub(crate) previous_end: u64,
    pub(crate) previous_salt: u64,
    /// The highest LSN in the chain before.
    pub(crate) lsn_before: Lsn,
}

impl Header {
    /// Of a segment that is begun now.
    pub(crate) fn new(number: u64, log: u64, salt: u64, link: Link, slot_bytes: u64) -> Header {
        let header = Header { version: FORMAT_VERSION, number, log, salt, link, copy_end: 0, slot_bytes };
        debug_assert!(
            Header::decode(&header.encode(), number).is_ok_and(|read| read == header),
            "invariant 8: {header:?} would be refused"
        );
        header
    }

    /// Whether the segment may take more frames. One of an older version keeps to what that version knows.
    pub(crate) fn takes_frames(&self) -> bool {
        self.version == FORMAT_VERSION && self.copy_end == 0
    }

    /// Whether flushes have left witnesses in the file. Copies in archives have none.
    pub(crate) fn has_witnesses(&self) -> bool {
        self.version >= WITNESS_VERSION && self.copy_end == 0
    }

    /// Where the slot of a witness stands.
    pub(crate) fn slot_of(&self, witness: u64) -> u64 {
        self.slot_bytes.min(PAGE_BYTES) + witness % 2 * self.slot_bytes
    }

    /// Where the first frame starts.
    pub(crate) fn frames_start(&self) -> u64 {
        if self.slot_bytes == 0 { HEADER_BYTES as u64 } else { self.slot_of(1) + self.slot_bytes }
    }

    /// Where frames end at the latest, unless there is only one.
    pub(crate) fn frames_limit(&self, options: &LogOptions) -> u64 {
        self.frames_start() + options.segment_bytes - HEADER_BYTES as u64
    }

    pub(crate) fn encode(&self) -> [u8; HEADER_BYTES] {
        let Link { partition, sequence, previous_end, previous_salt, lsn_before } = self.link;
        let words = [self.number, self.log, self.salt, partition, sequence, previous_end, previous_salt, lsn_before];
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&self.version.to_le_bytes());
        for (word, place) in words.iter().chain([&self.copy_end, &self.slot_bytes]).zip(bytes[16..].chunks_exact_mut(8))
        {
            place.copy_from_slice(&word.to_le_bytes());
        }
        let checksum = checksum(&bytes);
        bytes[CHECKSUM_OFFSET..16].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// The header in the first bytes of a copy called `file`.
    pub(crate) fn decode_copy(bytes: &[u8], file: &str) -> Result<Header> {
        // A copy has another name than the segment, which knows its number only.
        let is_short = bytes.len() < HEADER_BYTES;
        let header = Header::decode(bytes, if is_short { 0 } else { u64_at(bytes, 16) });
        header.map_err(|error| match error {
            LogError::Corrupt { offset, detail, .. } => LogError::Corrupt { file: file.to_string(), offset, detail },
            LogError::UnknownVersion { found, supported, .. } => {
                LogError::UnknownVersion { file: file.to_string(), found, supported }
            }
            other => other,
        })
    }

    /// Whether both name the same place of the same life of a log.
    pub(crate) fn is_same_segment(&self, other: &Header) -> bool {
        (self.log, self.salt, self.link) == (other.log, other.salt, other.link)
    }

    /// The header in the first bytes of file `number`; says what is wrong if it is none.
    pub(crate) fn decode(bytes: &[u8], number: u64) -> Result<Header> {
        let file = file_name(number);
        let corrupt = |detail: &str| LogError::Corrupt { file: file.clone(), offset: 0, detail: detail.to_string() };
        if bytes.len() < HEADER_BYTES || bytes[..8] != MAGIC {
            return Err(corrupt("it does not begin like a redo log segment"));
        }
        // The version comes before the checksum, as another format may have another checksum.
        let found = u32_at(bytes, 8);
        if !(OLDEST_VERSION..=FORMAT_VERSION).contains(&found) {
            return Err(LogError::UnknownVersion { file, found, supported: FORMAT_VERSION });
        }
        if u32_at(bytes, CHECKSUM_OFFSET) != checksum(bytes) {
            return Err(corrupt("the checksum of its header does not match"));
        }
        if u64_at(bytes, 16) != number {
            return Err(corrupt("its header names another file, was it renamed?"));
        }
        let link = Link {
            partition: u64_at(bytes, 40),
            sequence: u64_at(bytes, 48),
            previous_end: u64_at(bytes, 56),
            previous_salt: u64_at(bytes, 64),
            lsn_before: u64_at(bytes, 72),
        };
        let slot_bytes = if found < WITNESS_VERSION { 0 } else { u64_at(bytes, 88) };
        if found >= WITNESS_VERSION && !(SLOT_BYTES_MIN..=SLOT_BYTES_MAX).contains(&slot_bytes) {
            return Err(corrupt("the slots for witnesses have a size that cannot be"));
        }
        let (log, salt, copy_end) = (u64_at(bytes, 24), u64_at(bytes, 32), u64_at(bytes, 80));
        Ok(Header { version: found, number, log, salt, link, copy_end, slot_bytes })
    }
}

/// Makes a header of a sector, whatever it holds: for fuzz targets, which would seldom hit a checksum.
pub(crate) fn make_valid(sector: &mut [u8; HEADER_BYTES]) {
    sector[..8].copy_from_slice(&MAGIC);
    let version = OLDEST_VERSION + u32_at(sector, 8) % (FORMAT_VERSION + 1 - OLDEST_VERSION);
    sector[8..12].copy_from_slice(&version.to_le_bytes());
    let checksum = checksum(sector);
    sector[CHECKSUM_OFFSET..16].copy_from_slice(&checksum.to_le_bytes());
}

fn checksum(bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&bytes[..CHECKSUM_OFFSET]), &bytes[CHECKSUM_OFFSET + 4..HEADER_BYTES])
}

/// An open segment: its file, and how far it is allocated.
pub(crate) struct Segment {
    pub(crate) header: Header,
    pub(crate) file: Box<dyn DeviceFile>,
    pub(crate) location: String,
    pub(crate) allocated_bytes: u64,
    /// The number of the next witness.
    pub(crate) witness: u64,
}

impl Segment {
    /// Writes a flush that starts at `start`, with its witness. `claims` says whether it holds something that may be
    /// acknowledged. After a failure the same flush is written again, or none.
    pub(crate) fn write_flush(&mut self, frames: &[u8], start: u64, claims: bool) -> Result<()> {
        debug_assert!(start >= self.header.frames_start(), "a flush at {start} would go over the witnesses");
        let flush = Flush { frames, zeros: 0, start, witness: self.witness };
        let written = flush.write(&*self.file, &self.header, claims);
        self.witness += u64::from(written.map_err(|source| self.failed("write", source))?);
        Ok(())
    }

    /// Allocates the file up to `size` bytes. A failure may leave bytes allocated, which is no harm.
    pub(crate) fn grow(&mut self, size: u64) -> Result<()> {
        self.file.preallocate(size).map_err(|source| self.failed("extend", source))?;
        self.allocated_bytes = self.allocated_bytes.max(size);
        Ok(())
    }

    fn failed(&self, verb: &str, source: std::io::Error) -> LogError {
        device_error(format!("{verb} {}", file_name(self.header.number)), self.location.clone(), source)
    }
}

/// A number that nothing else is likely to have. The standard library's hasher keys come from the system.
pub(crate) fn random_number() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// The facts about a segment that are kept for the day on which it can be given up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SegmentInfo {
    pub(crate) number: u64,
    pub(crate) sequence: u64,
    /// The highest LSN that needs the segment: of its commits, and of commits with data frames in it.
    pub(crate) lsn_max: Lsn,
    /// Where its frames start.
    pub(crate) start: u64,
    /// Where its frames end; 0 for the one that still takes frames.
    pub(crate) end: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: Link = Link { partition: 2, sequence: 9, previous_end: 4096, previous_salt: 5, lsn_before: 77 };
    const HEADER: Header =
        Header { version: FORMAT_VERSION, number: 3, log: 6, salt: 11, link: LINK, copy_end: 0, slot_bytes: 1024 };

    #[test]
    fn names() {
        assert_eq!(file_name(1), "redo-00000001.log");
        assert_eq!(parse_name("redo-00000017.log"), Some(17));
        assert_eq!(parse_name("redo-123456789.log"), Some(123_456_789));
        for other in ["LOCK", "redo-1.log", "redo-+0000001.log", "redo-00000001.log.bak", "redo.trim"] {
            assert_eq!(parse_name(other), None, "{other}");
        }
    }

    #[test]
    fn round_trip() {
        assert_eq!(Header::decode(&HEADER.encode(), 3).unwrap(), HEADER);
        let copy = Header { copy_end: 5000, ..HEADER };
        assert_eq!(Header::decode_copy(&copy.encode(), "copy").unwrap(), copy);
        assert!(HEADER.takes_frames() && HEADER.has_witnesses() && !copy.takes_frames() && !copy.has_witnesses());
        let error = Header::decode_copy(&[7; 100], "copy").unwrap_err();
        assert!(matches!(&error, LogError::Corrupt { file, .. } if file == "copy"), "{error}");
    }

    #[test]
    fn slots_stand_in_front_of_the_frames_and_fit_the_segment() {
        let options = LogOptions { segment_bytes: 64 << 20, growth_bytes: 1 << 20, ..LogOptions::default() };
        let sizes = [(512, 1536), (1024, 3072), (4096, 12288), (65536, 135_168)];
        for (growth_bytes, (slot, start)) in [2048, 16 << 10, 64 << 10, 1 << 20].into_iter().zip(sizes) {
            let options = LogOptions { growth_bytes, ..options };
            let header = Header { slot_bytes: slot_bytes(&options), ..HEADER };
            assert_eq!((header.slot_bytes, header.frames_start()), (slot, start));
            assert!(header.slot_of(2) >= HEADER_BYTES as u64 && header.slot_of(3) == header.slot_of(2) + slot);
            assert_eq!(header.frames_limit(&options), start - 512 + options.segment_bytes);
        }
        let old = Header { slot_bytes: 0, version: 3, ..HEADER };
        assert_eq!((old.frames_start(), old.frames_limit(&options)), (512, options.segment_bytes));
        for slot_bytes in [0, 1 << 17] {
            assert!(Header::decode(&Header { slot_bytes, ..HEADER }.encode(), 3).is_err());
        }
    }

    #[test]
    fn versions_before_are_read_and_take_no_frames() {
        for version in OLDEST_VERSION..FORMAT_VERSION {
            let header = Header { version, slot_bytes: 0, ..HEADER };
            assert_eq!(Header::decode(&header.encode(), 3).unwrap(), header);
            assert!(!header.takes_frames() && !header.has_witnesses());
        }
        for version in [OLDEST_VERSION - 1, FORMAT_VERSION + 1] {
            let refused = Header::decode(&Header { version, ..HEADER }.encode(), 3);
            assert!(matches!(refused, Err(LogError::UnknownVersion { found, .. }) if found == version));
        }
    }

    #[test]
    fn renamed_or_flipped_is_refused() {
        assert!(matches!(Header::decode(&HEADER.encode(), 4), Err(LogError::Corrupt { .. })));
        for bit in 0..HEADER_BYTES * 8 {
            let mut bytes = HEADER.encode();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(Header::decode(&bytes, 3).is_err(), "bit {bit}");
        }
    }
}
