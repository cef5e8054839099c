//! A partition of the log: a buffer and a chain of segments of its own, flushed on its own.
//!
//! ```text
//!   append:   take the append latch
//!               no room in the buffer   -> release, help to flush, again
//!               no room in the file     -> release, flush, extend the file or begin the next segment, again
//!             put the frame into the buffer
//!   flush:    take the buffer, and write it durably (`flush.rs`)
//!   extend:   make the file longer, or begin the next segment; flushing and extending are done by one thread at a time
//! ```
//!
//! **A full disk.** Files are extended, and segments begun, before frames are accepted for them. If there is no space,
//! the append fails with [`LogError::DiskFull`] and nothing has happened; the next append tries again.
//!
//! Any other failure of the device poisons the log.
//!
//! Latch order: turn, writer, append; the frontier's latch is taken with the writer's held only.

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, MutexGuard};
use sync::{CachePadded, Pause};

use crate::Lsn;
use crate::error::{LogError, Result};
use crate::format::frame::{DEPENDENCY_BYTES, MAX_PAYLOAD_BYTES, Tag};
use crate::format::segment::SegmentInfo;
use crate::format::segment::{Link, Segment};
use crate::log::append::{Append, Entry, Extension, FlushBatch, NO_LSN, Room};
use crate::log::files::Files;
use crate::log::frontier::Frontier;
use crate::log::poison::Poison;
use crate::log::turn::Turn;
use crate::options::LogOptions;

/// The common state of the partitions of a log. An append writes none of it.
pub(crate) struct Common {
    pub(crate) files: Files,
    pub(crate) options: LogOptions,
    pub(crate) frontier: Frontier,
    pub(crate) poison: Poison,
}

/// One partition.
pub(crate) struct Partition {
    number: u64,
    pub(super) append: CachePadded<Mutex<Append>>,
    /// The lowest LSN that is in the buffer or on its way to the disk, a copy for readers without the latch.
    pub(super) pending_first: AtomicU64,
    pub(super) turn: Turn,
    /// Latched by the leader only.
    pub(super) writer: Mutex<Writer>,
    /// Flushes on disk: everything that they took is.
    pub(super) written: CachePadded<AtomicU64>,
    /// How often the file was extended or changed.
    pub(super) extensions: AtomicU64,
}

pub(super) struct Writer {
    /// The segment that takes the frames; none before the first frame of the chain.
    pub(super) segment: Option<Segment>,
    /// Taken from the appenders and not yet on disk, as the disk was full.
    pub(super) taken: Option<FlushBatch>,
    /// The vectors that the appenders do not use.
    pub(super) spare: Vec<u8>,
    pub(super) spare_lsns: Vec<Lsn>,
}

/// Where a frame was put.
pub(crate) struct FrameLocation {
    pub(crate) lsn: Lsn,
    /// The number of the flush that takes it to disk.
    pub(crate) flush: u64,
    /// The LSN that it depends on, 0 if none.
    pub(crate) depends_on: Lsn,
    /// No thread waits for the frame, and it is the first such one that the flush takes.
    pub(crate) is_first_unawaited: bool,
    /// With it the buffer is half full: it is time to write, before appenders have to wait for room.
    pub(crate) is_half_full: bool,
}

/// The event that a thread waits for.
#[derive(Clone, Copy)]
pub(super) enum Target {
    /// So many flushes are on disk.
    Flush(u64),
    /// The file was extended so often.
    Extension(u64),
}

impl Partition {
    /// A partition that goes on with `segment` after the end of its frames, `end`, or with a segment to be begun.
    pub(crate) fn new(
        number: u64,
        mut append: Append,
        segment: Option<(Segment, u64)>,
        options: &LogOptions,
    ) -> Partition {
        if let Some((segment, end)) = &segment {
            append.resume(segment, *end, options);
        }
        let segment = segment.map(|(segment, _)| segment);
        Partition {
            number,
            append: CachePadded::new(Mutex::new(append)),
            pending_first: AtomicU64::new(NO_LSN),
            turn: Turn::default(),
            writer: Mutex::new(Writer { segment, taken: None, spare: Vec::new(), spare_lsns: Vec::new() }),
            written: CachePadded::new(AtomicU64::new(0)),
            extensions: AtomicU64::new(0),
        }
    }

    /// Appends a frame, waiting for room where there is none.
    pub(crate) fn append(&self, common: &Common, entry: Entry<'_>) -> Result<FrameLocation> {
        let mut append = self.room_for(common, entry.payload.len())?;
        Ok(self.push(common, &mut append, &entry))
    }

    /// Appends a frame under the LSN that `number` takes when there is room.
    #[inline]
    pub(crate) fn append_numbered(
        &self,
        common: &Common,
        mut entry: Entry<'_>,
        number: impl FnOnce() -> Lsn,
    ) -> Result<FrameLocation> {
        let mut append = self.room_for(common, entry.payload_bytes_max())?;
        entry.lsn = number();
        Ok(self.push(common, &mut append, &entry))
    }

    /// Reserves room for a frame, to be appended by [`Partition::append_reserved`] or given back.
    pub(crate) fn reserve(&self, common: &Common, payload_bytes: usize) -> Result<u64> {
        let payload_bytes = payload_bytes + DEPENDENCY_BYTES;
        let need = Append::need(payload_bytes);
        self.room_for(common, payload_bytes)?.reserve(need);
        Ok(need)
    }

    /// Says that the data frames of `txn` are void. Without room or log they are forgotten here and void on disk.
    pub(crate) fn abort(&self, common: &Common, txn: u64) {
        let has_data = self.append.lock().is_open(txn);
        if has_data && self.append(common, Entry::new(Tag::Abort, txn, 0, &[])).is_err() {
            self.append.lock().forget(txn);
        }
    }

    /// Appends a frame into reserved room.
    pub(crate) fn append_reserved(&self, common: &Common, entry: Entry<'_>, reserved: u64) -> FrameLocation {
        let mut append = self.append.lock();
        append.release(reserved);
        self.push(common, &mut append, &entry)
    }

    pub(crate) fn release(&self, reserved: u64) {
        self.append.lock().release(reserved);
    }

    #[inline]
    fn push(&self, common: &Common, append: &mut Append, entry: &Entry<'_>) -> FrameLocation {
        let resolved;
        let entry = if entry.may_depend() {
            resolved = append.resolved(entry, common.frontier.stable());
            &resolved
        } else {
            entry
        };
        if entry.tag.is_numbered() {
            // A reader of it goes on with the append latch, and so finds the frame in the buffer.
            self.pending_first.store(append.pending_first().min(entry.lsn), Ordering::Release);
        }
        let is_first_unawaited = entry.is_unawaited && append.is_first_unawaited();
        let (before, half) = (append.buffered(), common.options.buffer_bytes / 2);
        let flush = append.push(entry);
        let is_half_full = before < half && append.buffered() >= half;
        FrameLocation { lsn: entry.lsn, flush, depends_on: entry.depends_on, is_first_unawaited, is_half_full }
    }

    /// The append latch with room for a frame; flushes or extends as long as there is none (back-pressure).
    #[inline]
    fn room_for(&self, common: &Common, payload_bytes: usize) -> Result<MutexGuard<'_, Append>> {
        let need = Append::need(payload_bytes);
        if payload_bytes <= MAX_PAYLOAD_BYTES && !common.poison.is_set() {
            let mut append = self.append.lock();
            if append.room(need, &common.options) == Room::Enough {
                return Ok(append);
            }
        }
        self.room_made_for(common, payload_bytes)
    }

    /// As [`Partition::room_for`], where there was none at first.
    #[cold]
    fn room_made_for(&self, common: &Common, payload_bytes: usize) -> Result<MutexGuard<'_, Append>> {
        if payload_bytes > MAX_PAYLOAD_BYTES {
            return Err(LogError::FrameTooLarge { bytes: payload_bytes, limit: MAX_PAYLOAD_BYTES });
        }
        let need = Append::need(payload_bytes);
        loop {
            common.poison.check()?;
            let extensions = self.extensions.load(Ordering::Acquire);
            let mut append = self.append.lock();
            let room = append.room(need, &common.options);
            if room == Room::Enough {
                return Ok(append);
            }
            drop(append);
            match room {
                Room::InBuffer(flush) => self.wait_written(common, flush)?,
                _ => self.wait_for(common, Target::Extension(extensions + 1), || self.extend(common, need))?,
            }
        }
    }

    /// Makes room for `need` bytes in the file: extends it, or flushes and goes on to the next segment. Called by the
    /// leader.
    fn extend(&self, common: &Common, need: u64) -> Result<()> {
        let mut pause = Pause::default();
        let mut writer = self.writer.lock();
        loop {
            let extension = self.append.lock().extension(need, &common.options);
            match extension {
                Extension::Nothing => break,
                Extension::Grow(size) => {
                    let segment = writer.segment.as_mut().expect("a segment that is not full");
                    segment.grow(size)?;
                    debug_assert!(segment.allocated_bytes >= size, "{} bytes of {size}", segment.allocated_bytes);
                    self.append.lock().extended_to(segment.allocated_bytes);
                    break;
                }
                Extension::NextSegment => {
                    while writer.taken.is_some() || self.append.lock().has_buffered() {
                        self.flush_with(common, &mut writer)?;
                    }
                    self.begin_segment(common, &mut writer, need)?;
                    break;
                }
                // Their holders are a few instructions from giving them back, and wait for nothing.
                Extension::AfterReservations => pause.wait(),
            }
        }
        self.extensions.fetch_add(1, Ordering::Release);
        Ok(())
    }

    /// Extends the file for twice the bytes that were appended since `appended` bytes were, so that appenders seldom do it themselves.
    /// Returns how many bytes are appended by now.
    pub(crate) fn extend_ahead(&self, common: &Common, appended: u64) -> Result<u64> {
        let extensions = self.extensions.load(Ordering::Acquire);
        let (now, need) = {
            let append = self.append.lock();
            debug_assert!(append.appended >= appended, "bytes were taken back");
            (append.appended, append.not_allocated(2 * (append.appended - appended)))
        };
        if let Some(need) = need {
            self.wait_for(common, Target::Extension(extensions + 1), || self.extend(common, need))?;
        }
        Ok(now)
    }

    /// Goes on to the next segment. No append happens meanwhile, as the segment before is sealed and everything in
    /// it is on disk.
    fn begin_segment(&self, common: &Common, writer: &mut Writer, need: u64) -> Result<()> {
        let options = &common.options;
        let link = {
            let append = self.append.lock();
            debug_assert!(!append.has_buffered(), "frames belong to the segment before");
            let previous = writer.segment.as_ref().map(|segment| segment.header.salt);
            Link {
                partition: self.number,
                sequence: append.sequence() + 1,
                previous_end: if previous.is_some() { append.end() } else { 0 },
                previous_salt: previous.unwrap_or(0),
                lsn_before: append.lsn_max,
            }
        };
        let segment = common.files.begin(link, need, options)?;
        debug_assert!(segment.allocated_bytes >= segment.header.frames_start() + need, "there is room for the frame");
        self.append.lock().enter(&segment, options);
        writer.segment = Some(segment);
        Ok(())
    }

    /// Takes the segments off the chain that nothing at or after `below` needs.
    pub(crate) fn trim(&self, below: Lsn) -> Vec<SegmentInfo> {
        self.append.lock().trim(below)
    }

    /// Flushes a buffer that is half full, or fuller.
    pub(crate) fn flush_half_full(&self, common: &Common) -> Result<()> {
        let flush = {
            let append = self.append.lock();
            (append.buffered() >= common.options.buffer_bytes / 2).then(|| append.last_flush())
        };
        let Some(flush) = flush else { return Ok(()) };
        self.wait_written(common, flush)?;
        debug_assert!(self.written.load(Ordering::Relaxed) >= flush, "invariant 8: flush {flush} is told as written");
        Ok(())
    }

    /// Flushes, then writes the mark of a clean end in a flush of its own.
    pub(crate) fn mark_end(&self, common: &Common) -> Result<()> {
        self.wait_all_written(common)?;
        if !self.append.lock().is_settled {
            self.append(common, Entry::new(Tag::Mark, 0, common.frontier.stable(), &[]))?;
            self.wait_all_written(common)?;
        }
        Ok(())
    }

    /// The segments that are needed, each with the end of what is on disk.
    pub(crate) fn on_disk(&self) -> Vec<SegmentInfo> {
        // Nothing is flushed meanwhile.
        let writer = self.writer.lock();
        let append = self.append.lock();
        let mut segments: Vec<SegmentInfo> = append.segments.iter().copied().collect();
        if let Some(last) = segments.last_mut() {
            last.end = writer.taken.as_ref().map_or(append.flushed_end(), |taken| taken.start);
        }
        debug_assert!(segments.iter().all(|segment| segment.start <= segment.end), "{segments:?}");
        segments
    }

    /// The highest LSN appended here.
    pub(crate) fn lsn_max(&self) -> Lsn {
        self.append.lock().lsn_max
    }

    /// Bytes and frames appended, flushes, segments.
    pub(crate) fn counts(&self) -> [u64; 4] {
        let append = self.append.lock();
        [append.appended, append.frames, self.written.load(Ordering::Relaxed), append.segments.len() as u64]
    }
}
