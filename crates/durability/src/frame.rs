//! The bytes of a frame.
//!
//! Frames follow each other in a segment without a gap, each starting at a multiple of 8. Integers are
//! little-endian.
//!
//! ```text
//!   offset  bytes
//!        0      4  header checksum: crc32c of the segment's salt, the frame's offset in the file, bytes 4..32
//!        4      4  payload checksum: crc32c of the payload and its padding
//!        8      4  payload length in bytes, without padding
//!       12      4  flush distance: bytes from the first frame of this flush to this frame, a multiple of 8,
//!                  plus the tag in its low three bits (1 data, 2 commit, 3 abort, 4 mark)
//!       16      8  transaction
//!       24      8  LSN; 0 unless the tag is commit
//!       32      n  payload
//!   32 + n   0..7  zeros up to the next multiple of 8
//! ```
//!
//! Salt and offset in the header checksum make a frame valid at one place of one file only. Left-over bytes of
//! another segment, or a payload that happens to hold a copy of a frame, are never taken for a frame; zeros are
//! none either, as no tag is 0.
//!
//! The payload's checksum needs neither, being covered by the header's, and so is computed before the append
//! latch is taken.
//!
//! The flush distance names the flush that a frame belongs to. A flush begins only after the sync of the flush
//! before it, so a valid frame testifies that every byte before the first frame of its flush was once on disk.
//! Recovery tells a torn tail from corruption by it. The mark of a clean end, a frame without meaning to the reader
//! of the log, is written in a flush of its own when a log is closed: it testifies for all that stands before it.

/// The largest payload of one frame.
pub const MAX_PAYLOAD_BYTES: usize = 1 << 30;

pub(crate) const HEADER_BYTES: usize = 32;
pub(crate) const ALIGN_BYTES: usize = 8;

const _: () = assert!(HEADER_BYTES.is_multiple_of(ALIGN_BYTES));

/// What a frame says about its transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// Part of the redo; counts only if a commit of the same transaction follows.
    Data,
    /// The transaction committed with the frame's LSN.
    Commit,
    /// The transaction aborted; its data frames are void.
    Abort,
}

/// A frame as handed to the reader of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// What the frame says.
    pub kind: FrameKind,
    /// The transaction it belongs to.
    pub txn: u64,
    /// The commit's LSN, 0 in other frames.
    pub lsn: u64,
    /// The bytes that were appended.
    pub payload: &'a [u8],
}

/// A frame's tag on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tag {
    Data = 1,
    Commit = 2,
    Abort = 3,
    Mark = 4,
}

impl Tag {
    const MASK: u32 = ALIGN_BYTES as u32 - 1;

    fn from_bits(bits: u32) -> Option<Tag> {
        [Tag::Data, Tag::Commit, Tag::Abort, Tag::Mark].into_iter().find(|&tag| tag as u32 == bits)
    }

    /// What the reader of the log is told; a mark is none of its business.
    pub(crate) fn kind(self) -> Option<FrameKind> {
        match self {
            Tag::Data => Some(FrameKind::Data),
            Tag::Commit => Some(FrameKind::Commit),
            Tag::Abort => Some(FrameKind::Abort),
            Tag::Mark => None,
        }
    }
}

/// Where a frame stands: valid there and nowhere else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) salt: u64,
    pub(crate) offset: u64,
}

impl Place {
    fn seed(self) -> u32 {
        crc32c::crc32c_append(crc32c::crc32c(&self.salt.to_le_bytes()), &self.offset.to_le_bytes())
    }
}

/// The fixed part of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) tag: Tag,
    pub(crate) txn: u64,
    pub(crate) lsn: u64,
    pub(crate) payload_bytes: u32,
    pub(crate) payload_checksum: u32,
    /// Bytes from the first frame of the flush to this one.
    pub(crate) flush_distance: u32,
}

impl Header {
    pub(crate) fn encode(&self, place: Place) -> [u8; HEADER_BYTES] {
        assert_eq!(self.flush_distance & Tag::MASK, 0, "frames are aligned");
        assert_eq!(place.offset % ALIGN_BYTES as u64, 0, "frames are aligned");
        let mut bytes = [0; HEADER_BYTES];
        bytes[4..8].copy_from_slice(&self.payload_checksum.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.payload_bytes.to_le_bytes());
        bytes[12..16].copy_from_slice(&(self.flush_distance | self.tag as u32).to_le_bytes());
        bytes[16..24].copy_from_slice(&self.txn.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.lsn.to_le_bytes());
        let checksum = crc32c::crc32c_append(place.seed(), &bytes[4..]);
        bytes[..4].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// The header in `bytes` if it is valid at `place`. The payload remains to be checked.
    pub(crate) fn decode(bytes: &[u8], place: Place) -> Option<Header> {
        let flush_and_tag = u32_at(bytes, 12);
        // The cheap tests come first: a search for frames decodes at every multiple of 8.
        let tag = Tag::from_bits(flush_and_tag & Tag::MASK)?;
        let flush_distance = flush_and_tag & !Tag::MASK;
        let payload_bytes = u32_at(bytes, 8);
        if payload_bytes as usize > MAX_PAYLOAD_BYTES || u64::from(flush_distance) > place.offset {
            return None;
        }
        if u32_at(bytes, 0) != crc32c::crc32c_append(place.seed(), &bytes[4..HEADER_BYTES]) {
            return None;
        }
        let payload_checksum = u32_at(bytes, 4);
        let (txn, lsn) = (u64_at(bytes, 16), u64_at(bytes, 24));
        Some(Header { tag, txn, lsn, payload_bytes, payload_checksum, flush_distance })
    }

    /// The payload with its padding.
    pub(crate) fn padded_bytes(&self) -> usize {
        (self.payload_bytes as usize).next_multiple_of(ALIGN_BYTES)
    }
}

/// The size of a whole frame.
pub(crate) fn frame_bytes(payload_bytes: usize) -> usize {
    HEADER_BYTES + payload_bytes.next_multiple_of(ALIGN_BYTES)
}

/// The zeros that follow a payload.
pub(crate) fn padding(payload_bytes: usize) -> &'static [u8] {
    &[0; ALIGN_BYTES][..payload_bytes.next_multiple_of(ALIGN_BYTES) - payload_bytes]
}

/// The checksum of a payload and its padding.
pub(crate) fn payload_checksum(payload: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(payload), padding(payload.len()))
}

pub(crate) fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[offset..offset + 4]);
    u32::from_le_bytes(word)
}

pub(crate) fn u64_at(bytes: &[u8], offset: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[offset..offset + 8]);
    u64::from_le_bytes(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: Place = Place { salt: 0x1234_5678_9abc_def0, offset: 4096 };

    fn header() -> Header {
        let payload_checksum = payload_checksum(b"hello");
        Header { tag: Tag::Commit, txn: 7, lsn: 9, payload_bytes: 5, payload_checksum, flush_distance: 640 }
    }

    #[test]
    fn round_trip() {
        for tag in [Tag::Data, Tag::Commit, Tag::Abort, Tag::Mark] {
            let header = Header { tag, ..header() };
            assert_eq!(Header::decode(&header.encode(PLACE), PLACE), Some(header));
        }
    }

    #[test]
    fn valid_at_its_place_only() {
        let bytes = header().encode(PLACE);
        assert_eq!(Header::decode(&bytes, Place { offset: 4104, ..PLACE }), None);
        assert_eq!(Header::decode(&bytes, Place { salt: 1, ..PLACE }), None);
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let bytes = header().encode(PLACE);
        for bit in 0..HEADER_BYTES * 8 {
            let mut flipped = bytes;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Header::decode(&flipped, PLACE), None, "bit {bit}");
        }
    }

    #[test]
    fn zeros_are_no_frame() {
        for salt in 0..1000 {
            assert_eq!(Header::decode(&[0; HEADER_BYTES], Place { salt, ..PLACE }), None);
        }
    }

    #[test]
    fn sizes() {
        assert_eq!([0, 1, 8, 9].map(frame_bytes), [32, 40, 40, 48]);
        assert_eq!([0, 1, 8, 9].map(|n| padding(n).len()), [0, 7, 0, 7]);
    }
}
