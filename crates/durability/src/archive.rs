//! Archiving: segments are handed over before the log gives them up, so that the database can be brought to any point
//! in time since a backup.
//!
//! ```text
//!   trim --> the segments of a partition that are needed no more, in their order
//!               |
//!               v
//!            archive (Log::archive_with) --- failed: it stays, and what comes after it; the next trim tries again
//!               |
//!               v
//!            spare or removed
//! ```
//!
//! The segments of a partition are handed over in their order, and none is given up before the ones in front of it. So
//! after a crash those that were not handed over still belong to the chain of their partition, are trimmed once more and
//! handed over then; some are handed over twice. (log, partition, sequence, salt) names a segment for ever, with one
//! exception: two copies of a directory that are both written to go on in the same last segment. So each needs an
//! archive of its own, and [`SegmentArchive`] refuses to take other bytes under a name that it knows.
//!
//! [`SegmentArchive`] copies segments to another device. A copy gets its first sector, the header of the segment, last and
//! durably; one that begins with zeros was interrupted and is written again. `gather.rs` makes a log of copies.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use crate::Lsn;
use crate::append::SegmentInfo;
use crate::device::{Access, Device, DeviceFile};
use crate::error::{LogError, Result};
use crate::segment::{FRAMES_START, Header, file_name};

/// How the names of copies end.
pub(crate) const SUFFIX: &str = ".redo";
const CHUNK_BYTES: u64 = 1 << 20;

/// A segment that the log is about to give up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OldSegment {
    /// Its file in the directory of the log.
    pub file: String,
    /// The number that all files of the log share.
    pub log: u64,
    /// Its partition.
    pub partition: u64,
    /// Its place in the partition.
    pub sequence: u64,
    /// Where its frames end; the rest of the file means nothing.
    pub bytes: u64,
    /// The highest LSN that it is needed for.
    pub lsn_max: Lsn,
    number: u64,
}

impl OldSegment {
    pub(crate) fn new(log: u64, partition: u64, segment: SegmentInfo) -> OldSegment {
        let SegmentInfo { number, sequence, lsn_max, end } = segment;
        OldSegment { file: file_name(number), log, partition, sequence, bytes: end, lsn_max, number }
    }

    fn info(&self) -> SegmentInfo {
        SegmentInfo { number: self.number, sequence: self.sequence, lsn_max: self.lsn_max, end: self.bytes }
    }
}

/// Takes segments over.
type Archive = Box<dyn Fn(&OldSegment) -> io::Result<()> + Send + Sync>;

/// Segments on their way from a partition to the stock of files.
#[derive(Default)]
pub(crate) struct Outgoing {
    segments: VecDeque<OldSegment>,
    archive: Option<Archive>,
}

impl Outgoing {
    pub(crate) fn archive_with(&mut self, archive: Archive) {
        self.archive = Some(archive);
    }

    pub(crate) fn extend(&mut self, segments: impl Iterator<Item = OldSegment>) {
        self.segments.extend(segments);
    }

    /// Hands segments over. Returns those that can be given up now, and why the others cannot.
    pub(crate) fn hand_over(&mut self) -> (Vec<SegmentInfo>, Result<()>) {
        let mut done = Vec::new();
        while let Some(segment) = self.segments.front() {
            let outcome = self.archive.as_ref().map_or(Ok(()), |archive| archive(segment));
            if let Err(source) = outcome {
                return (done, Err(LogError::NotArchived { file: segment.file.clone(), source }));
            }
            done.push(segment.info());
            self.segments.pop_front();
        }
        (done, Ok(()))
    }
}

/// Copies segments to another device, to be used with [`Log::archive_with`](crate::Log::archive_with).
pub struct SegmentArchive {
    log: Arc<dyn Device>,
    archive: Arc<dyn Device>,
}

impl SegmentArchive {
    /// From the device of the log to another one.
    pub fn new(log: Arc<dyn Device>, archive: Arc<dyn Device>) -> SegmentArchive {
        SegmentArchive { log, archive }
    }

    /// Copies a segment durably. One that was copied before is compared.
    pub fn take(&self, segment: &OldSegment) -> io::Result<()> {
        let source = self.log.open(&segment.file, Access::Read)?;
        let mut header = [0; FRAMES_START as usize];
        source.read_at(&mut header, 0)?;
        let Header { log, salt, link, .. } = Header::decode(&header, segment.number).map_err(io::Error::other)?;
        if (log, link.partition, link.sequence) != (segment.log, segment.partition, segment.sequence) {
            return Err(io::Error::other(format!("{} is not the segment that the log knows", segment.file)));
        }
        let name = format!("{log:016x}-{:04}-{:08}-{salt:016x}{SUFFIX}", link.partition, link.sequence);
        let known = match self.archive.open(&name, Access::Write) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            opened => Some(opened?),
        };
        let mut there = [0; FRAMES_START as usize];
        if let Some(copy) = known {
            if copy.size()? >= FRAMES_START {
                copy.read_at(&mut there, 0)?;
            }
            if there == header {
                compare(&*source, &*copy, segment.bytes, &name)?;
                // It may have been read from the page cache only.
                return copy.write_durably(&header, 0);
            }
            self.archive.remove(&name)?;
        }
        let copy = self.archive.create(&name)?;
        copy.write_at(&[0; FRAMES_START as usize], 0)?;
        for_each_chunk(&*source, segment.bytes, |from, chunk| copy.write_at(chunk, from))?;
        copy.sync()?;
        self.archive.sync_dir()?;
        copy.write_durably(&header, 0)
    }
}

/// Reads what follows the header, up to `bytes`.
fn for_each_chunk(
    file: &dyn DeviceFile,
    bytes: u64,
    mut apply: impl FnMut(u64, &[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let mut chunk = Vec::new();
    let mut from = FRAMES_START;
    while from < bytes {
        chunk.resize(CHUNK_BYTES.min(bytes - from) as usize, 0);
        file.read_at(&mut chunk, from)?;
        apply(from, &chunk)?;
        from += chunk.len() as u64;
    }
    Ok(())
}

/// Refuses a copy that holds other frames than the segment.
fn compare(segment: &dyn DeviceFile, copy: &dyn DeviceFile, bytes: u64, name: &str) -> io::Result<()> {
    let mut is_same = copy.size()? == bytes;
    let mut there = Vec::new();
    for_each_chunk(segment, if is_same { bytes } else { 0 }, |from, chunk| {
        there.resize(chunk.len(), 0);
        copy.read_at(&mut there, from)?;
        is_same &= there == chunk;
        Ok(())
    })?;
    if is_same {
        return Ok(());
    }
    let why = "a copy of the database that went its own way needs an archive of its own";
    Err(io::Error::other(format!("{name} holds other frames: {why}")))
}

impl std::fmt::Debug for SegmentArchive {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (from, to) = (self.log.location(), self.archive.location());
        formatter.debug_struct("SegmentArchive").field("log", &from).field("archive", &to).finish()
    }
}
