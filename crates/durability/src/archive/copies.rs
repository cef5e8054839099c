//! An archive: copies of segments on another device, and for each log from where to where they go.
//!
//! ```text
//!   <log>-<partition>-<sequence>-<salt>.redo    a segment, or the first part of one that takes frames still
//!   <log>.extent                                what the archive is sure to hold of the log
//! ```
//!
//! (log, partition, sequence, salt) names a segment for ever. A log gets a new number when a database is restored to a
//! moment or from a backup, so one archive can hold several lives of a database (timelines) without mixing them. Two copies
//! of a directory that are both written to are two lives with one number, which go on in the same last segment: the
//! archive refuses to take other bytes, or another salt, in a place that it knows.
//!
//! **Copies grow.** The header of a copy says where its frames end. New frames are written behind and synced first,
//! then the header, which has its sector to itself, durably: so a copy always holds what its header says, and never
//! less than it did. A copy that begins with zeros was interrupted before it held anything and is written again.
//!
//! **The extent** is written durably once everything that it speaks of is in the copies:
//!
//! ```text
//!   offset  bytes
//!        0      8  magic "LSTEXTN\0"
//!        8      4  format version, 1
//!       12      4  checksum: crc32c of the other bytes (0..12, 16..48)
//!       16      8  log
//!       24      8  every LSN from this one on ...
//!       32      8  ... up to this one is there
//!       40      8  when that was so: microseconds since 1970
//!       48    464  zeros
//! ```

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::ops::Range;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::Lsn;
use crate::archive::outgoing::{ArchivedSegments, OldSegment};
use crate::device::{Access, Device, DeviceFile};
use crate::error::{LogError, Result, device_error};
use crate::format::frame::{u32_at, u64_at};
use crate::format::segment::{HEADER_BYTES, Header};

/// How the names of copies end.
pub(crate) const SUFFIX: &str = ".redo";
const EXTENT_SUFFIX: &str = ".extent";
const MAGIC: [u8; 8] = *b"LSTEXTN\0";
const FORMAT_VERSION: u32 = 1;
const CHUNK_BYTES: u64 = 1 << 20;
const SECTOR: usize = HEADER_BYTES;
const EXTENT_BYTES: usize = 48;

/// Copies segments to another device, to be used with [`Log::archive_with`](crate::Log::archive_with).
pub struct SegmentArchive {
    log: Arc<dyn Device>,
    archive: Arc<dyn Device>,
    known: Mutex<Known>,
}

/// Facts learnt since the archive was opened.
#[derive(Default)]
struct Known {
    /// The ends of copies that were compared or written.
    ends: HashMap<String, u64>,
    /// The highest LSN that may stand in a segment which is not there, though the one after it is.
    missing: Lsn,
}

impl SegmentArchive {
    /// From the device of the log to another one.
    pub fn new(log: Arc<dyn Device>, archive: Arc<dyn Device>) -> SegmentArchive {
        SegmentArchive { log, archive, known: Mutex::default() }
    }

    /// Copies a segment durably, or the frames added since it was copied before. The part copied before is compared
    /// once.
    ///
    /// # Errors
    /// What one of the devices fails with. An error of kind [`io::ErrorKind::Other`] if the file is not the segment
    /// that is meant, if a header cannot be read (the [`LogError`] is in it), or if the archive holds other frames in
    /// its place: then another copy of the database uses the archive.
    pub fn take(&self, segment: &OldSegment) -> io::Result<()> {
        let source = self.log.open(&segment.file, Access::Read)?;
        let mut sector = [0; SECTOR];
        source.read_at(&mut sector, 0)?;
        let header = Header::decode(&sector, segment.number).map_err(io::Error::other)?;
        if (header.log, header.link.partition, header.link.sequence)
            != (segment.log, segment.partition, segment.sequence)
        {
            return Err(io::Error::other(format!("{} is not the segment that the log knows", segment.file)));
        }
        debug_assert!(segment.bytes >= header.frames_start(), "a copy would end within its header: {segment:?}");
        let place = place_of(segment.log, segment.partition, segment.sequence);
        let name = copy_name(&place, header.salt);
        let mut known = self.known.lock();
        let known_end = known.ends.get(&name).copied();
        if known_end.is_none() && !self.has_previous(&header)? {
            known.missing = known.missing.max(header.link.lsn_before);
        }
        let (copy, end) = match self.find(&name, &header)? {
            Some((copy, end)) => {
                if known_end != Some(end) {
                    compare(&*source, &*copy, header.frames_start()..end.min(segment.bytes), &name)?;
                }
                (copy, end)
            }
            None => (self.begin(&place, &name)?, header.frames_start()),
        };
        if end > segment.bytes {
            return Err(other_frames(&name));
        }
        if end < segment.bytes {
            for_each_chunk(&*source, end..segment.bytes, |from, chunk| copy.write_at(chunk, from))?;
            copy.sync()?;
        }
        // If it was there before, it may have been read from the page cache only.
        if known_end != Some(segment.bytes) {
            copy.write_durably(&Header { copy_end: segment.bytes, ..header }.encode(), 0)?;
        }
        known.ends.insert(name, segment.bytes);
        Ok(())
    }

    /// Whether the segment before is in the archive, or there is none.
    fn has_previous(&self, header: &Header) -> io::Result<bool> {
        let link = header.link;
        let name =
            copy_name(&place_of(header.log, link.partition, link.sequence.saturating_sub(1)), link.previous_salt);
        match self.archive.open(&name, Access::Read) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(link.sequence <= 1),
            opened => opened.map(|_| true),
        }
    }

    /// A copy that was made before, with the end of its frames. One that was interrupted at once is removed.
    fn find(&self, name: &str, header: &Header) -> io::Result<Option<(Box<dyn DeviceFile>, u64)>> {
        let copy = match self.archive.open(name, Access::Write) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        let Some((found, end)) = read_header(&*copy, name)? else {
            self.archive.remove(name)?;
            return Ok(None);
        };
        if found.is_same_segment(header) { Ok(Some((copy, end))) } else { Err(other_frames(name)) }
    }

    fn begin(&self, place: &str, name: &str) -> io::Result<Box<dyn DeviceFile>> {
        for other in self.archive.list()?.iter().filter(|other| other.starts_with(place) && *other != name) {
            let copy = self.archive.open(other, Access::Write)?;
            if read_header(&*copy, other)?.is_some() {
                return Err(other_frames(other));
            }
        }
        let copy = self.archive.create(name)?;
        copy.write_at(&[0; SECTOR], 0)?;
        copy.sync()?;
        self.archive.sync_dir()?;
        Ok(copy)
    }

    /// Notes durably what the archive holds of a log: what it was handed at the time `micros`.
    ///
    /// # Errors
    /// [`LogError::Corrupt`] or [`LogError::UnknownVersion`] if what was noted before cannot be read; a failure of
    /// the archive's device to read or write the note.
    pub fn note(&self, archived: ArchivedSegments, micros: i64) -> Result<Extent> {
        let ArchivedSegments { log, from, until } = archived;
        let before = extent_of(&*self.archive, log)?;
        // The archive goes on from before, unless something between was not archived.
        let missing = self.known.lock().missing;
        let from = before.map_or(from, |before| before.from.max(missing + 1));
        let until = before.map_or(until, |before| before.until.max(until));
        debug_assert!(
            before.is_none_or(|before| before.from <= from && before.until <= until),
            "invariant 8: the archive would claim what it does not have, or forget what it has: {before:?}"
        );
        let extent = Extent { log, from, until, micros };
        let name = extent_name(log);
        let fail = |source| device_error(format!("write {name}"), self.archive.location(), source);
        if before.is_none() {
            let made = match self.archive.create(&name) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => self.archive.open(&name, Access::Write),
                made => made,
            };
            let made = made.and_then(|file| file.preallocate(SECTOR as u64).and_then(|()| file.sync()));
            made.and_then(|()| self.archive.sync_dir()).map_err(fail)?;
        }
        let file = self.archive.open(&name, Access::Write).map_err(fail)?;
        file.write_durably(&extent.encode(), 0).map_err(fail)?;
        Ok(extent)
    }
}

/// The part of a log that an archive holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The number of the log.
    pub log: u64,
    /// Every LSN from this one on ...
    pub from: Lsn,
    /// ... up to this one is there.
    pub until: Lsn,
    /// When that was so, in microseconds since 1970.
    pub micros: i64,
}

impl Extent {
    fn encode(&self) -> [u8; SECTOR] {
        let mut bytes = [0; SECTOR];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
        let words = [self.log, self.from, self.until, self.micros as u64];
        for (word, place) in words.iter().zip(bytes[16..].chunks_exact_mut(8)) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        let checksum = checksum(&bytes);
        bytes[12..16].copy_from_slice(&checksum.to_le_bytes());
        debug_assert!(
            Extent::decode(&bytes, "").is_ok_and(|extent| extent == *self),
            "invariant 8: {self:?} would be taken for damage"
        );
        bytes
    }

    fn decode(bytes: &[u8], file: &str) -> Result<Extent> {
        let is_whole = bytes.len() == SECTOR && bytes[..8] == MAGIC;
        if is_whole && u32_at(bytes, 8) != FORMAT_VERSION {
            let (found, supported) = (u32_at(bytes, 8), FORMAT_VERSION);
            return Err(LogError::UnknownVersion { file: file.to_string(), found, supported });
        }
        if !is_whole || u32_at(bytes, 12) != checksum(bytes) {
            let detail = "it does not say what the archive holds of the log".to_string();
            return Err(LogError::Corrupt { file: file.to_string(), offset: 0, detail });
        }
        let micros = u64_at(bytes, 40) as i64;
        Ok(Extent { log: u64_at(bytes, 16), from: u64_at(bytes, 24), until: u64_at(bytes, 32), micros })
    }
}

fn checksum(bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&bytes[..12]), &bytes[16..EXTENT_BYTES])
}

/// How the names of all copies from one place of a log begin.
fn place_of(log: u64, partition: u64, sequence: u64) -> String {
    format!("{log:016x}-{partition:04}-{sequence:08}-")
}

fn copy_name(place: &str, salt: u64) -> String {
    format!("{place}{salt:016x}{SUFFIX}")
}

fn extent_name(log: u64) -> String {
    format!("{log:016x}{EXTENT_SUFFIX}")
}

/// The part of a log that an archive claims to hold; `None` if it claims nothing yet.
fn extent_of(archive: &dyn Device, log: u64) -> Result<Option<Extent>> {
    let name = extent_name(log);
    let fail = |source| device_error(format!("read {name}"), archive.location(), source);
    let file = match archive.open(&name, Access::Read) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(fail)?,
    };
    let mut bytes = vec![0; file.size().map_err(fail)?.min(SECTOR as u64) as usize];
    file.read_at(&mut bytes, 0).map_err(fail)?;
    if bytes.iter().all(|&byte| byte == 0) {
        return Ok(None);
    }
    Extent::decode(&bytes, &name).map(Some)
}

/// A log in an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArchivedLog {
    /// Its number.
    pub log: u64,
    /// The part that the archive is sure to hold; `None` where it was interrupted before the first time.
    pub extent: Option<Extent>,
    /// Its segments.
    pub segments: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// The logs in an archive.
///
/// # Errors
/// [`LogError::Corrupt`] or [`LogError::UnknownVersion`] if the extent of a log cannot be read; a failure of the
/// device to list or read the files.
pub fn archived_logs(archive: &dyn Device) -> Result<Vec<ArchivedLog>> {
    let fail = |source| device_error("list the files".to_string(), archive.location(), source);
    let mut logs: BTreeMap<u64, ArchivedLog> = BTreeMap::new();
    for name in archive.list().map_err(fail)? {
        let is_copy = name.ends_with(SUFFIX);
        let number = name.get(..16).filter(|_| is_copy || name.ends_with(EXTENT_SUFFIX));
        let Some(log) = number.and_then(|number| u64::from_str_radix(number, 16).ok()) else { continue };
        let found = logs.entry(log).or_insert(ArchivedLog { log, extent: None, segments: 0, bytes: 0 });
        if is_copy {
            let size = archive.open(&name, Access::Read).and_then(|file| file.size());
            found.segments += 1;
            found.bytes += size.map_err(|source| device_error(format!("read {name}"), archive.location(), source))?;
        }
    }
    logs.into_values().map(|log| Ok(ArchivedLog { extent: extent_of(archive, log.log)?, ..log })).collect()
}

/// The header of a copy and the end of its frames; `None` if it was interrupted before it held anything.
pub(crate) fn read_header(copy: &dyn DeviceFile, name: &str) -> io::Result<Option<(Header, u64)>> {
    let size = copy.size()?;
    let mut sector = vec![0; size.min(SECTOR as u64) as usize];
    copy.read_at(&mut sector, 0)?;
    if sector.iter().all(|&byte| byte == 0) {
        return Ok(None);
    }
    let header = Header::decode_copy(&sector, name).map_err(io::Error::other)?;
    let end = header.copy_end;
    if end > size {
        let detail = format!("it ends at byte {size}, its frames at byte {end}");
        let corrupt = LogError::Corrupt { file: name.to_string(), offset: size, detail };
        return Err(io::Error::other(corrupt));
    }
    Ok(Some((header, if end == 0 { size } else { end })))
}

/// Reads what stands in a file from one place to another.
fn for_each_chunk(
    file: &dyn DeviceFile,
    range: Range<u64>,
    mut apply: impl FnMut(u64, &[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let mut chunk = Vec::new();
    let mut from = range.start;
    while from < range.end {
        chunk.resize(CHUNK_BYTES.min(range.end - from) as usize, 0);
        file.read_at(&mut chunk, from)?;
        apply(from, &chunk)?;
        from += chunk.len() as u64;
    }
    debug_assert!(from >= range.end, "invariant 8: {range:?} is read up to {from}");
    Ok(())
}

/// Refuses a copy that holds other frames than the segment in a range of both.
fn compare(segment: &dyn DeviceFile, copy: &dyn DeviceFile, range: Range<u64>, name: &str) -> io::Result<()> {
    let (mut there, mut is_same) = (Vec::new(), true);
    for_each_chunk(segment, range, |from, chunk| {
        there.resize(chunk.len(), 0);
        copy.read_at(&mut there, from)?;
        is_same &= there == chunk;
        Ok(())
    })?;
    if is_same { Ok(()) } else { Err(other_frames(name)) }
}

fn other_frames(name: &str) -> io::Error {
    let why = "a copy of the database that went its own way needs an archive of its own";
    io::Error::other(format!("{name} holds other frames: {why}"))
}

impl std::fmt::Debug for SegmentArchive {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (from, to) = (self.log.location(), self.archive.location());
        formatter.debug_struct("SegmentArchive").field("log", &from).field("archive", &to).finish_non_exhaustive()
    }
}
