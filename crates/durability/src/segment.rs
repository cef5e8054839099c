//! The files of the log.
//!
//! A log is a row of segments, `redo-00000001.log`, `redo-00000002.log` and so on, of about
//! [`LogOptions::segment_bytes`](crate::LogOptions::segment_bytes) each. A segment grows by preallocated steps, as
//! overwriting allocated zeros makes for the cheapest sync, and a small database stays small. A frame never spans
//! segments: one that does not fit starts the next segment, and one larger than a segment gets a longer segment.
//!
//! ```text
//!   offset  bytes
//!        0      8  magic "LSTREDO\0"
//!        8      4  format version, 1
//!       12      4  checksum: crc32c of the other bytes of the header sector (0..12, 16..512)
//!       16      8  number of the segment, as in the file's name
//!       24      8  salt: random, seeds the checksums of the segment's frames
//!       32      8  end of the segment before, the offset after its last frame; 0 in the first segment
//!       40      8  salt of the segment before; 0 in the first segment
//!       48    464  zeros
//!      512         frames, then zeros
//! ```
//!
//! The header has its sector to itself and is never written again. A segment is created only after everything in
//! the segment before is on disk, and takes frames only after its header and its name are; so
//! - a valid header testifies to where the segment before ends;
//! - an interrupted creation leaves a file of zeros, or none; any other invalid header is damage.

use std::hash::{BuildHasher, Hasher, RandomState};

use crate::device::{Device, DeviceFile};
use crate::error::{LogError, Result, device_error};
use crate::frame::{u32_at, u64_at};

/// Where the first frame starts.
pub(crate) const FRAMES_START: u64 = 512;
const HEADER_BYTES: usize = FRAMES_START as usize;
const MAGIC: [u8; 8] = *b"LSTREDO\0";
const FORMAT_VERSION: u32 = 1;
const CHECKSUM_OFFSET: usize = 12;

/// The file name of a segment.
pub(crate) fn file_name(number: u64) -> String {
    format!("redo-{number:08}.log")
}

/// The segment number in a file name; `None` if the file is no segment.
pub(crate) fn parse_name(name: &str) -> Option<u64> {
    let number = name.strip_prefix("redo-")?.strip_suffix(".log")?.parse().ok()?;
    (file_name(number) == name).then_some(number)
}

/// The header of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) number: u64,
    pub(crate) salt: u64,
    pub(crate) previous_end: u64,
    pub(crate) previous_salt: u64,
}

impl Header {
    fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.number.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.salt.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.previous_end.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.previous_salt.to_le_bytes());
        let checksum = checksum(&bytes);
        bytes[CHECKSUM_OFFSET..16].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// The header in the first bytes of segment `number`; says what is wrong if it is none.
    pub(crate) fn decode(bytes: &[u8], number: u64) -> Result<Header> {
        let file = file_name(number);
        let corrupt = |detail: &str| LogError::Corrupt { file: file.clone(), offset: 0, detail: detail.to_string() };
        if bytes.len() < HEADER_BYTES || bytes[..8] != MAGIC {
            return Err(corrupt("it does not begin like a redo log segment"));
        }
        // The version comes before the checksum, as another format may have another checksum.
        let found = u32_at(bytes, 8);
        if found != FORMAT_VERSION {
            return Err(LogError::UnknownVersion { file, found, supported: FORMAT_VERSION });
        }
        if u32_at(bytes, CHECKSUM_OFFSET) != checksum(bytes) {
            return Err(corrupt("the checksum of its header does not match"));
        }
        let (salt, previous_end, previous_salt) = (u64_at(bytes, 24), u64_at(bytes, 32), u64_at(bytes, 40));
        if u64_at(bytes, 16) != number {
            return Err(corrupt("its header names another segment, was the file renamed?"));
        }
        Ok(Header { number, salt, previous_end, previous_salt })
    }
}

fn checksum(bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&bytes[..CHECKSUM_OFFSET]), &bytes[CHECKSUM_OFFSET + 4..HEADER_BYTES])
}

/// An open segment: its file, and how far it is allocated.
pub(crate) struct Segment {
    pub(crate) header: Header,
    file: Box<dyn DeviceFile>,
    location: String,
    allocated_bytes: u64,
}

impl Segment {
    /// Creates the segment after one that ends at `previous_end` with `previous_salt`, durably.
    pub(crate) fn create(
        device: &dyn Device,
        number: u64,
        (previous_end, previous_salt): (u64, u64),
        allocate_bytes: u64,
    ) -> Result<Segment> {
        let header = Header { number, salt: random_salt(), previous_end, previous_salt };
        let location = device.location();
        let name = file_name(number);
        let fail = |source| device_error(format!("create {name}"), location.clone(), source);
        let file = device.create(&name).map_err(fail)?;
        file.write_at(&header.encode(), 0).map_err(fail)?;
        file.preallocate(allocate_bytes).map_err(fail)?;
        file.sync().map_err(fail)?;
        device.sync_dir().map_err(fail)?;
        let allocated_bytes = allocate_bytes.max(FRAMES_START);
        Ok(Segment { header, file, location, allocated_bytes })
    }

    /// A segment found on the device.
    pub(crate) fn existing(header: Header, file: Box<dyn DeviceFile>, location: String, size: u64) -> Segment {
        Segment { header, file, location, allocated_bytes: size }
    }

    /// Writes at `offset`, allocates in steps of `growth_bytes` what was passed, and syncs.
    pub(crate) fn write_durably(&mut self, bytes: &[u8], offset: u64, growth_bytes: u64) -> Result<()> {
        let end = offset + bytes.len() as u64;
        self.file.write_at(bytes, offset).map_err(|source| self.failed("write", source))?;
        if end > self.allocated_bytes {
            let size = end.next_multiple_of(growth_bytes);
            self.file.preallocate(size).map_err(|source| self.failed("extend", source))?;
            self.allocated_bytes = size;
        }
        self.file.sync().map_err(|source| self.failed("sync", source))
    }

    fn failed(&self, verb: &str, source: std::io::Error) -> LogError {
        device_error(format!("{verb} {}", file_name(self.header.number)), self.location.clone(), source)
    }
}

/// A number that no other segment is likely to have. The standard library's hasher keys come from the system.
fn random_salt() -> u64 {
    RandomState::new().build_hasher().finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: Header = Header { number: 3, salt: 11, previous_end: 4096, previous_salt: 5 };

    #[test]
    fn names() {
        assert_eq!(file_name(1), "redo-00000001.log");
        assert_eq!(parse_name("redo-00000017.log"), Some(17));
        assert_eq!(parse_name("redo-123456789.log"), Some(123_456_789));
        for other in ["LOCK", "redo-1.log", "redo-+0000001.log", "redo-00000001.log.bak"] {
            assert_eq!(parse_name(other), None, "{other}");
        }
    }

    #[test]
    fn round_trip() {
        assert_eq!(Header::decode(&HEADER.encode(), 3).unwrap(), HEADER);
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
