//! Which segments were begun: so that a segment which is missing, or was emptied, is missed.
//!
//! Every segment testifies to the one before it, and its witnesses to its own frames (`witness.rs`); of the last segment of a
//! partition nothing is left when its file goes. So the file `redo.begun` names for each partition the last segment that was
//! begun. The note is on disk before the segment takes its first frame, and after its header and slots are. Thus
//! - a segment that is named must be there, and its witnesses whole;
//! - one that is not named and was never used is the trace of an interrupted beginning, and spare, even where it has the place
//!   of the one that is named.
//!
//! ```text
//!   offset  bytes
//!   1024 P         the note of partition P on segments with even sequences:
//!        0      8    magic "LSTBEGN\0"
//!        8      4    format version, 1
//!       12      4    checksum: crc32c of the other bytes (0..12, 16..48)
//!       16      8    log: the number that all files of a log share
//!       24      8    partition
//!       32      8    sequence of the segment
//!       40      8    its salt
//!       48    464    zeros
//!      512    512    the note on segments with odd sequences
//! ```
//!
//! The note before is never touched, so whatever happens while one is written, the other is whole. Lost notes are
//! written again when the log is opened, as they lose no commit.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};

use crate::device::{Access, Device, DeviceFile};
use crate::error::{LogError, Result, device_error};
use crate::format::frame::{u32_at, u64_at};
use crate::format::segment::Header;

pub(crate) const FILE: &str = "redo.begun";
const MAGIC: [u8; 8] = *b"LSTBEGN\0";
const FORMAT_VERSION: u32 = 1;
const NOTE_BYTES: usize = 48;
const NOTE_STEP: usize = 512;

/// A segment of a partition. Of two the one with the higher sequence is the later one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SegmentNote {
    pub(crate) sequence: u64,
    pub(crate) salt: u64,
}

impl SegmentNote {
    pub(crate) fn of(header: &Header) -> SegmentNote {
        SegmentNote { sequence: header.link.sequence, salt: header.salt }
    }
}

/// The notes that were found on disk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Begun {
    /// By partition, the last segment that was begun.
    pub(crate) segments: BTreeMap<u64, SegmentNote>,
    /// The number of the log, if the file tells it.
    pub(crate) log: Option<u64>,
}

/// The notes of log `log`. `log` is `None` where no segment tells it.
pub(crate) fn read(device: &dyn Device, log: Option<u64>) -> Result<Begun> {
    let Some(bytes) = bytes_of(device).map_err(|source| failed("read", device, source))? else {
        return Ok(Begun::default());
    };
    let (mut begun, mut damaged) = (Begun { log, ..Begun::default() }, None);
    for (place, note) in bytes.chunks(NOTE_STEP).enumerate() {
        let (partition, offset) = (place as u64 / 2, (place * NOTE_STEP) as u64);
        let corrupt = |detail: &str| LogError::Corrupt { file: FILE.to_string(), offset, detail: detail.to_string() };
        let is_note = note.len() >= NOTE_BYTES && note[..8] == MAGIC;
        if is_note && u32_at(note, 8) != FORMAT_VERSION && u32_at(note, 12) == checksum(note) {
            let (file, found) = (FILE.to_string(), u32_at(note, 8));
            return Err(LogError::UnknownVersion { file, found, supported: FORMAT_VERSION });
        }
        if !is_note || u32_at(note, 12) != checksum(note) || u64_at(note, 24) != partition {
            if note.iter().any(|&byte| byte != 0) {
                damaged = Some(corrupt("it does not say which segments were begun"));
            }
            continue;
        }
        if *begun.log.get_or_insert(u64_at(note, 16)) != u64_at(note, 16) {
            return Err(corrupt("it belongs to another log than the segments beside it"));
        }
        let last = begun.segments.entry(partition).or_default();
        *last = SegmentNote { sequence: u64_at(note, 32), salt: u64_at(note, 40) }.max(*last);
    }
    // A file without a single valid note does not tell which log it belongs to.
    if begun.segments.is_empty() { damaged.map_or(Ok(begun), Err) } else { Ok(begun) }
}

/// The whole file, if there is one.
pub(crate) fn bytes_of(device: &dyn Device) -> io::Result<Option<Vec<u8>>> {
    let file = match device.open(FILE, Access::Read) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    let mut bytes = vec![0; file.size()? as usize];
    file.read_at(&mut bytes, 0)?;
    Ok(Some(bytes))
}

/// The file with room for the notes of a partition, so that writing one needs no space.
pub(crate) fn prepare(device: &dyn Device, partition: u64) -> Result<Box<dyn DeviceFile>> {
    let made = match device.create(FILE) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => device.open(FILE, Access::Write),
        created => created.and_then(|file| device.sync_dir().map(|()| file)),
    };
    let size = (partition + 1) * 2 * NOTE_STEP as u64;
    let made = made.and_then(|file| file.preallocate(size).map(|()| file));
    made.map_err(|source| failed("extend", device, source))
}

/// Notes durably that a segment was begun.
pub(crate) fn note(file: &dyn DeviceFile, device: &dyn Device, segment: &Header) -> Result<()> {
    debug_assert!(segment.has_witnesses(), "a segment that is noted has witnesses: {segment:?}");
    let offset = offset_of(segment.link.partition, segment.link.sequence);
    let written = file.write_durably(&encode(segment), offset);
    written.map_err(|source| failed("write", device, source))
}

/// Where the note of a segment stands.
pub(crate) fn offset_of(partition: u64, sequence: u64) -> u64 {
    (partition * 2 + sequence % 2) * NOTE_STEP as u64
}

fn encode(segment: &Header) -> [u8; NOTE_STEP] {
    let words = [segment.log, segment.link.partition, segment.link.sequence, segment.salt];
    let mut bytes = [0; NOTE_STEP];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
    for (word, place) in words.iter().zip(bytes[16..].chunks_exact_mut(8)) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    let checksum = checksum(&bytes);
    bytes[12..16].copy_from_slice(&checksum.to_le_bytes());
    debug_assert_eq!(u64_at(&bytes, 24), segment.link.partition, "invariant 8: the note would be taken for damage");
    bytes
}

fn checksum(note: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&note[..12]), &note[16..NOTE_BYTES])
}

fn failed(verb: &str, device: &dyn Device, source: io::Error) -> LogError {
    device_error(format!("{verb} {FILE}"), device.location(), source)
}
