//! The bytes of a frame.
//!
//! Frames follow each other in a segment without a gap, each starting at a multiple of 8. Integers are
//! little-endian.
//!
//! ```text
//!   offset  bytes
//!        0      4  header checksum: crc32c of the segment's salt, the frame's offset in the file, bytes 4..40
//!        4      4  payload checksum: crc32c of the payload and its padding
//!        8      4  payload length in bytes, without padding
//!       12      4  flush distance: bytes from the first frame of this flush to this frame
//!       16      8  transaction; 0 in frames of the log's own
//!       24      8  LSN (commit, void), or the LSN up to which all was stable (flush, opening, mark), or 0
//!       32      4  stamp: the low half of the segment's salt
//!       36      1  tag: 1 data, 2 commit, 3 partition commit, 4 abort, 5 void, 6 flush, 7 opening, 8 mark,
//!                  9 partition commit that depends on others
//!       37      3  commit frames: the data frames of the transaction before it, 2^24 - 1 standing for that or more
//!       40      n  payload; its last 8 bytes, where the tag is 9, are the LSN that the commit depends on
//!   40 + n   0..7  zeros up to the next multiple of 8
//! ```
//!
//! **Commit, void.** Both take an LSN out of the dense row of LSNs; a void stands for a transaction that took a
//! number and did not commit. A partition commit is one that recovery applies even when a lower LSN is missing; with
//! tag 9, unless the missing one is at or below the LSN that it depends on.
//!
//! **Flush.** Each flush of a partition begins with a flush frame: every LSN up to its own was on disk, in
//! whichever partition, when the flush began. The first flush of a partition after the log was opened begins with an
//! opening frame instead: transactions that this partition holds open are void, and of the LSNs in the hole that
//! its payload names (first, and first after it; 8 bytes each) only partition commits count.
//!
//! **Mark.** Written in a flush of its own when a log is closed: it testifies for all that stands before it.
//!
//! **Where a frame is valid.** Salt and offset in the header checksum make a frame valid at one place of one segment
//! only. Left-over bytes of a recycled segment's earlier life, or a payload that happens to hold a copy of a frame,
//! are never taken for a frame; zeros are none either, as no tag is 0. The stamp brings the certainty to 64 bits: a
//! search of a recycled segment decodes some millions of left-over headers.
//!
//! The payload's checksum needs no salt, being covered by the header's, and so is computed before the append latch
//! is taken.
//!
//! **Flush distance.** It names the flush that a frame belongs to. A flush of a partition begins only after the sync
//! of its flush before, so a valid frame testifies that every byte of the partition before the first frame of its
//! flush was once on disk. Recovery tells a torn tail from corruption by it.

use super::checksum::crc32c;

/// The largest payload of one frame.
pub const MAX_PAYLOAD_BYTES: usize = 1 << 30;

pub(crate) const HEADER_BYTES: usize = 40;
pub(crate) const ALIGN_BYTES: usize = 8;
/// The payload of an opening frame: the hole.
pub(crate) const HOLE_BYTES: usize = 16;
/// The end of the payload of a commit that depends on others.
pub(crate) const DEPENDENCY_BYTES: usize = 8;
/// The most that a frame may have before it, where it is the first of its flush.
pub(crate) const FLUSH_BYTES_MAX: usize = HEADER_BYTES + HOLE_BYTES;
/// Data frames are counted up to here.
pub(crate) const DATA_FRAMES_MAX: u32 = (1 << 24) - 1;

const _: () = assert!(HEADER_BYTES.is_multiple_of(ALIGN_BYTES) && HOLE_BYTES.is_multiple_of(ALIGN_BYTES));

/// The part of a transaction that a frame holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// Part of the redo of a transaction whose commit follows.
    Data,
    /// The rest of the redo; the transaction is complete.
    Commit,
}

/// A frame as handed to the reader of the log. Those of one transaction come together, its commit last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The part of the transaction that the frame holds.
    pub kind: FrameKind,
    /// The transaction it belongs to.
    pub txn: u64,
    /// The LSN with which the transaction committed.
    pub lsn: u64,
    /// The bytes that were appended.
    pub payload: &'a [u8],
}

/// A frame's tag on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tag {
    Data = 1,
    Commit = 2,
    PartitionCommit = 3,
    Abort = 4,
    Void = 5,
    Flush = 6,
    Opening = 7,
    Mark = 8,
    DependentCommit = 9,
}

impl Tag {
    const ALL: [Tag; 9] = [
        Tag::Data,
        Tag::Commit,
        Tag::PartitionCommit,
        Tag::Abort,
        Tag::Void,
        Tag::Flush,
        Tag::Opening,
        Tag::Mark,
        Tag::DependentCommit,
    ];

    pub(crate) fn from_byte(byte: u8) -> Option<Tag> {
        Tag::ALL.into_iter().find(|&tag| tag as u8 == byte)
    }

    /// Whether the frame takes an LSN out of the row.
    pub(crate) fn is_numbered(self) -> bool {
        matches!(self, Tag::Commit | Tag::PartitionCommit | Tag::DependentCommit | Tag::Void)
    }

    /// Whether the frame's LSN is one up to which everything was stable.
    pub(crate) fn is_testimony(self) -> bool {
        matches!(self, Tag::Flush | Tag::Opening | Tag::Mark)
    }
}

/// Where a frame stands: valid there and nowhere else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FramePlace {
    pub(crate) salt: u64,
    pub(crate) offset: u64,
}

impl FramePlace {
    fn seed(self) -> u32 {
        crc32c(crc32c(0, &self.salt.to_le_bytes()), &self.offset.to_le_bytes())
    }
}

/// The salt of a segment with its checksum, for encoding many frames of one segment.
#[derive(Clone, Copy, Default)]
pub(crate) struct Salt {
    pub(crate) salt: u64,
    checksum: u32,
}

impl Salt {
    pub(crate) fn new(salt: u64) -> Salt {
        Salt { salt, checksum: crc32c(0, &salt.to_le_bytes()) }
    }
}

/// The fixed part of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) tag: Tag,
    pub(crate) txn: u64,
    pub(crate) lsn: u64,
    /// Data frames of the transaction before this one.
    pub(crate) data_frames: u32,
    pub(crate) payload_bytes: u32,
    pub(crate) payload_checksum: u32,
    /// Bytes from the first frame of the flush to this one.
    pub(crate) flush_distance: u32,
}

impl Header {
    pub(crate) fn encode(&self, place: FramePlace) -> [u8; HEADER_BYTES] {
        self.encode_at(Salt::new(place.salt), place.offset)
    }

    #[inline]
    pub(crate) fn encode_at(&self, salt: Salt, offset: u64) -> [u8; HEADER_BYTES] {
        assert_eq!(offset % ALIGN_BYTES as u64, 0, "frames are aligned");
        debug_assert!(self.payload_bytes as usize <= MAX_PAYLOAD_BYTES, "invariant 8: the frame would be refused");
        debug_assert!(u64::from(self.flush_distance) <= offset, "a flush begins within its segment");
        // The offset stands in front of what is to be checked, where the checksum goes afterwards: one run over both.
        let mut room = [0; HEADER_BYTES + 4];
        room[..8].copy_from_slice(&offset.to_le_bytes());
        let bytes = &mut room[4..];
        bytes[4..8].copy_from_slice(&self.payload_checksum.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.payload_bytes.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.flush_distance.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.txn.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.lsn.to_le_bytes());
        bytes[32..36].copy_from_slice(&(salt.salt as u32).to_le_bytes());
        let tag_and_count = self.tag as u32 | self.data_frames.min(DATA_FRAMES_MAX) << 8;
        bytes[36..40].copy_from_slice(&tag_and_count.to_le_bytes());
        let checksum = crc32c(salt.checksum, &room);
        let mut bytes = [0; HEADER_BYTES];
        bytes.copy_from_slice(&room[4..]);
        bytes[..4].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Appends the whole frame, which stands at `offset`: the header, the payload, the LSN that a commit depends on, zeros.
    #[inline]
    pub(crate) fn put(&self, out: &mut Vec<u8>, (salt, offset): (Salt, u64), payload: &[u8], depends_on: Option<u64>) {
        out.extend_from_slice(&self.encode_at(salt, offset));
        out.extend_from_slice(payload);
        if let Some(lsn) = depends_on {
            out.extend_from_slice(&lsn.to_le_bytes());
        }
        let padding = padding(self.payload_bytes as usize);
        if !padding.is_empty() {
            out.extend_from_slice(padding);
        }
        debug_assert!(out.len().is_multiple_of(ALIGN_BYTES), "the next frame would not be aligned");
    }

    /// The header in `bytes` if it is valid at `place`. The payload remains to be checked.
    pub(crate) fn decode(bytes: &[u8], place: FramePlace) -> Option<Header> {
        // The cheap tests come first: a search for frames decodes at every multiple of 8.
        if u32_at(bytes, 32) != place.salt as u32 {
            return None;
        }
        let tag = Tag::from_byte(bytes[36])?;
        let payload_bytes = u32_at(bytes, 8);
        let flush_distance = u32_at(bytes, 12);
        if payload_bytes as usize > MAX_PAYLOAD_BYTES || u64::from(flush_distance) > place.offset {
            return None;
        }
        if u32_at(bytes, 0) != crc32c(place.seed(), &bytes[4..HEADER_BYTES]) {
            return None;
        }
        let payload_checksum = u32_at(bytes, 4);
        let (txn, lsn, data_frames) = (u64_at(bytes, 16), u64_at(bytes, 24), u32_at(bytes, 36) >> 8);
        Some(Header { tag, txn, lsn, data_frames, payload_bytes, payload_checksum, flush_distance })
    }

    /// The payload with its padding.
    pub(crate) fn padded_bytes(&self) -> usize {
        (self.payload_bytes as usize).next_multiple_of(ALIGN_BYTES)
    }

    /// The size of the whole frame.
    pub(crate) fn frame_bytes(&self) -> u64 {
        frame_bytes(self.payload_bytes as usize) as u64
    }
}

/// The LSNs of which only partition commits count: from the first to before the second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hole {
    pub(crate) from: u64,
    pub(crate) to: u64,
}

impl Hole {
    pub(crate) fn encode(self) -> [u8; HOLE_BYTES] {
        let mut bytes = [0; HOLE_BYTES];
        bytes[..8].copy_from_slice(&self.from.to_le_bytes());
        bytes[8..].copy_from_slice(&self.to.to_le_bytes());
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Hole> {
        (bytes.len() == HOLE_BYTES).then(|| Hole { from: u64_at(bytes, 0), to: u64_at(bytes, 8) })
    }

    pub(crate) fn is_empty(self) -> bool {
        self.from >= self.to
    }
}

/// The size of a frame with a payload of so many bytes.
#[inline]
pub(crate) fn frame_bytes(payload_bytes: usize) -> usize {
    HEADER_BYTES + payload_bytes.next_multiple_of(ALIGN_BYTES)
}

/// The zeros that follow a payload.
#[inline]
pub(crate) fn padding(payload_bytes: usize) -> &'static [u8] {
    &[0; ALIGN_BYTES][..payload_bytes.next_multiple_of(ALIGN_BYTES) - payload_bytes]
}

/// The checksum of a payload and its padding.
#[inline]
pub(crate) fn payload_checksum(payload: &[u8]) -> u32 {
    crc32c(crc32c(0, payload), padding(payload.len()))
}

/// The LSN at the end of the payload of a commit that depends on others.
pub(crate) fn dependency(payload: &[u8]) -> Option<u64> {
    payload.len().checked_sub(DEPENDENCY_BYTES).map(|offset| u64_at(payload, offset))
}

/// The bytes that follow a payload of a commit that depends on others: the LSN and the padding of both.
pub(crate) fn dependency_and_padding(payload_bytes: usize, depends_on: u64) -> ([u8; DEPENDENCY_BYTES], &'static [u8]) {
    (depends_on.to_le_bytes(), padding(payload_bytes + DEPENDENCY_BYTES))
}

/// The number in the four bytes from `offset` on, the lowest first.
///
/// # Panics
/// If the bytes end before.
pub fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[offset..offset + 4]);
    u32::from_le_bytes(word)
}

/// The number in the eight bytes from `offset` on, the lowest first.
///
/// # Panics
/// If the bytes end before.
pub fn u64_at(bytes: &[u8], offset: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[offset..offset + 8]);
    u64::from_le_bytes(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: FramePlace = FramePlace { salt: 0x1234_5678_9abc_def0, offset: 4096 };

    fn header() -> Header {
        Header {
            tag: Tag::Commit,
            txn: 7,
            lsn: 9,
            data_frames: 3,
            payload_bytes: 5,
            payload_checksum: payload_checksum(b"hello"),
            flush_distance: 640,
        }
    }

    #[test]
    fn round_trip() {
        for tag in Tag::ALL {
            let header = Header { tag, ..header() };
            assert_eq!(Header::decode(&header.encode(PLACE), PLACE), Some(header));
        }
        let hole = Hole { from: 5, to: u64::MAX };
        assert_eq!(Hole::decode(&hole.encode()), Some(hole));
        assert_eq!(Hole::decode(&[0; 8]), None);
    }

    #[test]
    fn a_count_beyond_the_field_is_cut() {
        let header = Header { data_frames: u32::MAX, ..header() };
        let decoded = Header::decode(&header.encode(PLACE), PLACE).unwrap();
        assert_eq!((decoded.data_frames, decoded.tag), (DATA_FRAMES_MAX, Tag::Commit));
    }

    #[test]
    fn valid_at_its_place_only() {
        let bytes = header().encode(PLACE);
        assert_eq!(Header::decode(&bytes, FramePlace { offset: 4104, ..PLACE }), None);
        assert_eq!(Header::decode(&bytes, FramePlace { salt: 1, ..PLACE }), None);
        assert_eq!(Header::decode(&bytes, FramePlace { salt: PLACE.salt ^ 1 << 40, ..PLACE }), None);
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
        for salt in (0..1000).map(|i| i << 30) {
            assert_eq!(Header::decode(&[0; HEADER_BYTES], FramePlace { salt, ..PLACE }), None);
        }
    }

    #[test]
    fn sizes() {
        assert_eq!([0, 1, 8, 9].map(frame_bytes), [40, 48, 48, 56]);
        assert_eq!([0, 1, 8, 9].map(|n| padding(n).len()), [0, 7, 0, 7]);
    }
}
