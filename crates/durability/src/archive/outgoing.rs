//! Archiving: segments are handed over before the log gives them up, so that the database can be brought to any moment
//! since a backup.
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
//! handed over then; some are handed over twice.
//!
//! Beside that, [`Log::archive`](crate::Log::archive) hands over all that is on disk at a moment, also of segments that
//! are needed still or that take frames: those come again later, longer.
//!
//! `copies.rs` keeps copies of segments on another device; `gather.rs` makes a log of copies.

use std::collections::{HashMap, VecDeque};
use std::io;

use crate::Lsn;
use crate::error::{LogError, Result};
use crate::format::segment::SegmentInfo;
use crate::format::segment::file_name;

/// A segment that is handed over: one that the log is about to give up, or as much as is on disk of one that it needs.
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
    /// The highest LSN that it is needed for, as far as is known.
    pub lsn_max: Lsn,
    pub(crate) number: u64,
    /// Where its frames start.
    pub(crate) start: u64,
}

/// The segments that an archive was handed, from which LSN to which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArchivedSegments {
    /// The number of the log.
    pub log: u64,
    /// Every segment with something at or after this LSN was handed over.
    pub from: Lsn,
    /// Everything up to this LSN was.
    pub until: Lsn,
}

impl OldSegment {
    pub(crate) fn new(log: u64, partition: u64, segment: SegmentInfo) -> OldSegment {
        let SegmentInfo { number, sequence, lsn_max, start, end } = segment;
        debug_assert!(start <= end, "it is known where the frames of a segment end that is handed over: {segment:?}");
        OldSegment { file: file_name(number), log, partition, sequence, bytes: end, lsn_max, number, start }
    }

    fn info(&self) -> SegmentInfo {
        let &OldSegment { number, sequence, lsn_max, start, bytes: end, .. } = self;
        SegmentInfo { number, sequence, lsn_max, start, end }
    }
}

/// Takes segments over.
type Archive = Box<dyn Fn(&OldSegment) -> io::Result<()> + Send + Sync>;

/// Segments on their way from a partition to the stock of files.
#[derive(Default)]
pub(crate) struct OutgoingSegments {
    segments: VecDeque<OldSegment>,
    archive: Option<Archive>,
    /// By partition, the sequence up to which whole segments were handed over since the log was opened.
    handed_over: HashMap<u64, u64>,
}

impl OutgoingSegments {
    pub(crate) fn archive_with(&mut self, archive: Archive) {
        self.archive = Some(archive);
        self.handed_over.clear();
    }

    pub(crate) fn extend(&mut self, segments: impl Iterator<Item = OldSegment>) {
        self.segments.extend(segments);
    }

    /// Hands segments over. Returns those that can be given up now, and why the others cannot.
    pub(crate) fn hand_over(&mut self) -> (Vec<SegmentInfo>, Result<()>) {
        let mut done = Vec::new();
        while let Some(segment) = self.segments.pop_front() {
            if let Err(error) = self.offer(&segment) {
                self.segments.push_front(segment);
                return (done, Err(error));
            }
            self.note(&segment);
            done.push(segment.info());
        }
        (done, Ok(()))
    }

    /// Hands over what is on disk of the segments of a partition, the last of which takes frames still.
    pub(crate) fn hand_over_copies(&mut self, segments: impl Iterator<Item = OldSegment>) -> Result<()> {
        let mut segments = segments.peekable();
        while let Some(segment) = segments.next() {
            // Without frames it may yet be replaced by another one in its place.
            if segment.bytes > segment.start {
                self.offer(&segment)?;
            }
            if segments.peek().is_some() {
                self.note(&segment);
            }
        }
        Ok(())
    }

    /// Hands over what was cut off the chains and could not be handed over then. It is given up by the next trim.
    pub(crate) fn offer_all(&self) -> Result<()> {
        self.segments.iter().try_for_each(|segment| self.offer(segment))
    }

    fn offer(&self, segment: &OldSegment) -> Result<()> {
        let is_known = self.handed_over.get(&segment.partition).is_some_and(|last| segment.sequence <= *last);
        let outcome = match &self.archive {
            Some(archive) if !is_known => archive(segment),
            _ => Ok(()),
        };
        outcome.map_err(|source| LogError::NotArchived { file: segment.file.clone(), source })
    }

    /// The segment was handed over to its end.
    fn note(&mut self, segment: &OldSegment) {
        if self.archive.is_some() {
            let last = self.handed_over.entry(segment.partition).or_default();
            *last = segment.sequence.max(*last);
        }
    }
}
