//! Witnesses: what a flush leaves in a second place, so that its loss is noticed.
//!
//! The last flush of a partition is what a frame's flush distance cannot testify to (`frame.rs`): if it is damaged it looks like
//! a write that power loss interrupted, though its commits may have been acknowledged. So every flush writes, beside its frames
//! and made durable by the same sync, a **witness** into one of two slots at the beginning of the same segment:
//!
//! ```text
//!   | header | slot 0: witness 4 | slot 1: witness 5 | frames ... flush 3 | flush 4 | flush 5 |  room ...
//!                     |                   |                               ^         ^
//!                     |                   `-- starts, ends; a copy -------'---------|
//!                     `-- starts, ends; a copy -------------------------------------'
//!
//!   offset  bytes
//!        0      4  checksum: crc32c of the segment's salt, the slot's offset in the file, bytes 4..40 and the copy
//!        4      4  bytes of the copy, 0 if there is none
//!        8      8  number of the witness, counted in each segment; even ones stand in the first slot, odd ones in the second
//!       16      8  where the flush starts
//!       24      8  where it ends
//!       32      4  stamp: the low half of the segment's salt
//!       36      4  zeros
//!       40      n  the frames of the flush once more, where the slot has room for them
//! ```
//!
//! A segment begins with witnesses 0 and 1 of nothing, so that slots of zeros are damage.
//!
//! **Why a copy.** A commit is acknowledged as soon as the sync of its flush returns. A mark alone, written with that flush,
//! could not say more than "this flush was begun": power loss may have kept the mark and lost frames, and what was never
//! acknowledged would be refused. A mark that says "it is on disk" takes a second sync. With the frames in both places there is
//! nothing to tell apart: whichever place is whole is the flush, and a flush that was not acknowledged may survive as well.
//! So damage to the last frames does not only show, it is mended. Where the slot is too small for a copy the witness is written
//! after the sync of its frames, by a second one, and says that they were on disk. A flush beside which nothing can have been
//! acknowledged, parts of transactions that go on, then needs no witness.
//!
//! **Conclusions of recovery** (`chain.rs`). Let frames be valid up to X, N the newest witness that is whole, from
//! S to E.
//!
//! ```text
//!   no witness is whole               damage: at most one slot is written at a time
//!   X >= E                            nothing is missing; what stands beyond E is a flush whose witness did not arrive
//!   X <  S                            damage: the flush before N was synced before N was begun
//!   S <= X < E, N - 1 is whole, too   N is the last flush: it is taken from the copy, and damage where there is none
//!   S <= X < E, N - 1 is not whole    damage: N + 1 was being written over it, so N was on disk
//! ```
//!
//! After power loss none of the three cases of damage can occur, as a flush begins only after the sync of the one before it:
//! slots are overwritten one at a time, and of the frames only those of the last flush may be torn.
//!
//! **Damage that is found.** All damage to one run of bytes is found, in the file or cut off its end. Frames are
//! lost silently only if they and their witness are hit, and what stands between is not. If that run reaches from
//! the first slot into the frames both slots are hit. If it reaches from the second slot into the frames, all
//! frames from the first one on are hit, and the first slot holds a witness of some of them: as the other one is
//! not whole, these are missed. Files that are missing or were emptied are missed by `begun.rs`.
//!
//! The price is a second run of bytes in the same sync. Two syncs would cost twice as much (docs/decisions.md).

use std::borrow::Cow;
use std::io;

use crate::device::DeviceFile;
use crate::format::frame::{u32_at, u64_at};
use crate::format::segment::Header;

const HEADER_BYTES: usize = 40;
/// The number of the first witness that a flush leaves.
pub(crate) const FIRST: u64 = 2;

/// A flush that is to be written.
pub(crate) struct Flush<'a> {
    pub(crate) frames: &'a [u8],
    /// So many zeros follow.
    pub(crate) zeros: usize,
    /// Where it starts.
    pub(crate) start: u64,
    /// The number of its witness.
    pub(crate) witness: u64,
}

impl Flush<'_> {
    /// Writes the flush durably into a segment, and its witness. Where it `claims` nothing, so that nothing in it may be
    /// acknowledged, and is large, no witness is needed. Returns whether there is one.
    pub(crate) fn write(&self, file: &dyn DeviceFile, header: &Header, claims: bool) -> io::Result<bool> {
        debug_assert!(header.has_witnesses());
        let bytes = match self.zeros {
            0 => Cow::Borrowed(self.frames),
            zeros => Cow::Owned([self.frames, &vec![0; zeros]].concat()),
        };
        debug_assert!(self.start >= header.frames_start(), "a flush at {} goes over the witnesses", self.start);
        let slot = header.slot_of(self.witness);
        let copy = if self.frames.len() <= header.slot_bytes as usize - HEADER_BYTES { self.frames } else { &[] };
        let end = self.start + self.frames.len() as u64;
        let witness = encode(header, self.witness, (self.start, end), copy);
        if !copy.is_empty() {
            file.write_parts_durably(&[(&bytes, self.start), (&witness, slot)])?;
            return Ok(true);
        }
        file.write_durably(&bytes, self.start)?;
        if claims {
            file.write_durably(&witness, slot)?;
        }
        Ok(claims)
    }
}

/// Writes the first two witnesses of a segment, not durably.
pub(crate) fn begin(file: &dyn DeviceFile, header: &Header) -> io::Result<()> {
    let start = header.frames_start();
    [0, 1]
        .into_iter()
        .try_for_each(|number| file.write_at(&encode(header, number, (start, start), &[]), header.slot_of(number)))
}

fn encode(header: &Header, number: u64, (start, end): (u64, u64), copy: &[u8]) -> Vec<u8> {
    debug_assert!(start <= end && (copy.is_empty() || copy.len() as u64 == end - start), "a copy of the whole flush");
    debug_assert!(
        header.slot_bytes as usize >= HEADER_BYTES + copy.len(),
        "invariant 8: the witness would go over the other one, or over frames"
    );
    let mut bytes = vec![0; HEADER_BYTES];
    bytes[4..8].copy_from_slice(&(copy.len() as u32).to_le_bytes());
    bytes[8..16].copy_from_slice(&number.to_le_bytes());
    bytes[16..24].copy_from_slice(&start.to_le_bytes());
    bytes[24..32].copy_from_slice(&end.to_le_bytes());
    bytes[32..36].copy_from_slice(&(header.salt as u32).to_le_bytes());
    bytes.extend_from_slice(copy);
    let checksum = checksum(&bytes, header.salt, header.slot_of(number));
    bytes[..4].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

fn checksum(bytes: &[u8], salt: u64, offset: u64) -> u32 {
    let place = crc32c::crc32c_append(crc32c::crc32c(&salt.to_le_bytes()), &offset.to_le_bytes());
    crc32c::crc32c_append(place, &bytes[4..])
}

/// The contents of a witness.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Witness {
    pub(crate) number: u64,
    /// Where its flush starts and ends.
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// The flush, or nothing.
    pub(crate) copy: Vec<u8>,
}

impl Witness {
    /// The witness in the first bytes of the slot for such numbers, if there is a whole one.
    fn decode(bytes: &[u8], header: &Header, parity: u64) -> Option<Witness> {
        if bytes.len() < HEADER_BYTES || u32_at(bytes, 32) != header.salt as u32 {
            return None;
        }
        let bytes = bytes.get(..HEADER_BYTES + u32_at(bytes, 4) as usize)?;
        if u32_at(bytes, 0) != checksum(bytes, header.salt, header.slot_of(parity)) {
            return None;
        }
        let (number, start, end) = (u64_at(bytes, 8), u64_at(bytes, 16), u64_at(bytes, 24));
        let copy = bytes[HEADER_BYTES..].to_vec();
        let is_sound = number % 2 == parity && start <= end && [0, end - start].contains(&(copy.len() as u64));
        is_sound.then_some(Witness { number, start, end, copy })
    }
}

/// The witnesses in a segment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Witnesses {
    /// The newest one that is whole.
    pub(crate) newest: Option<Witness>,
    /// The one before it is whole, too.
    pub(crate) has_previous: bool,
}

impl Witnesses {
    /// Reads the slots of a segment.
    pub(crate) fn read(
        header: &Header,
        mut read: impl FnMut(u64, u64) -> io::Result<Vec<u8>>,
    ) -> io::Result<Witnesses> {
        let mut found = Vec::new();
        for parity in [0, 1] {
            found.extend(Witness::decode(&read(header.slot_of(parity), header.slot_bytes)?, header, parity));
        }
        found.sort_by_key(|witness| witness.number);
        let newest = found.pop();
        let before = newest.as_ref().and_then(|newest| newest.number.checked_sub(1));
        debug_assert!(
            newest.as_ref().is_none_or(|newest| found.iter().all(|other| other.number < newest.number)),
            "the two slots hold different witnesses"
        );
        let has_previous = found.pop().is_some_and(|other| Some(other.number) == before);
        Ok(Witnesses { newest, has_previous })
    }

    /// Whether a flush has left one.
    pub(crate) fn is_used(&self) -> bool {
        self.newest.as_ref().is_some_and(|newest| newest.number >= FIRST)
    }

    /// Whether one speaks of a flush that ends at `end`; with it its number, or else that of the next one.
    pub(crate) fn number_for(&self, end: u64) -> (bool, u64) {
        match &self.newest {
            Some(newest) if newest.end == end => (true, newest.number),
            newest => (false, newest.as_ref().map_or(0, |newest| newest.number + 1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::segment::Link;

    fn header() -> Header {
        let link = Link { partition: 0, sequence: 1, previous_end: 0, previous_salt: 0, lsn_before: 0 };
        Header::new(1, 2, 0x1234_5678_9abc_def0, link, 512)
    }

    #[test]
    fn round_trip_and_every_flipped_bit_is_noticed() {
        let header = header();
        for (number, copy) in [(6, &b"the frames of a flush"[..]), (7, b"")] {
            let bytes = encode(&header, number, (4096, 4117), copy);
            let witness = Witness { number, start: 4096, end: 4117, copy: copy.to_vec() };
            let slot = [&bytes[..], &[9; 30]].concat();
            assert_eq!(Witness::decode(&slot, &header, number % 2), Some(witness));
            assert_eq!(Witness::decode(&bytes, &header, (number + 1) % 2), None, "the other slot");
            assert_eq!(Witness::decode(&bytes, &Header { salt: 1, ..header }, number % 2), None);
            for bit in 0..bytes.len() * 8 {
                let mut flipped = bytes.clone();
                flipped[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(Witness::decode(&flipped, &header, number % 2), None, "bit {bit}");
            }
            for end in 0..bytes.len() {
                assert_eq!(Witness::decode(&bytes[..end], &header, number % 2), None, "cut at {end}");
            }
        }
        assert_eq!(Witness::decode(&[0; 512], &Header { salt: 0, ..header }, 0), None, "zeros are none");
    }

    #[test]
    fn the_newest_counts_and_the_one_before_it() {
        let header = header();
        let slots = |numbers: [Option<u64>; 2]| {
            let slot = |number: Option<u64>| number.map_or(vec![0; 50], |number| encode(&header, number, (9, 9), &[]));
            let both = numbers.map(slot);
            Witnesses::read(&header, |offset, _| Ok(both[usize::from(offset == header.slot_of(1))].clone())).unwrap()
        };
        let told = |numbers| {
            let found = slots(numbers);
            (found.newest.as_ref().map(|newest| newest.number), found.has_previous, found.is_used())
        };
        assert_eq!(told([Some(0), Some(1)]), (Some(1), true, false));
        assert_eq!(told([Some(2), Some(1)]), (Some(2), true, true));
        assert_eq!(told([Some(2), None]), (Some(2), false, true));
        assert_eq!(told([None, Some(1)]), (Some(1), false, false));
        assert_eq!(told([Some(6), Some(3)]), (Some(6), false, true));
        assert_eq!(told([None, None]), (None, false, false));
        assert_eq!(slots([Some(4), Some(3)]).number_for(9), (true, 4));
        assert_eq!(slots([Some(4), Some(3)]).number_for(10), (false, 5));
    }
}
