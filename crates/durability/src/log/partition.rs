//! A partition of the log: a buffer and a chain of segments of its own, flushed on its own.
//!
//! ```text
//!   append:   take the append latch
//!               no room in the buffer   -> release, help to flush, again
//!               no room in the file     -> release, flush, extend the file or begin the next segment, again
//!             put the frame into the buffer
//!   flush:    (one thread at a time, elected by `turn.rs`)
//!             take the append latch: exchange the buffer for an empty one; release
//!             write the buffer durably, with its witness (`witness.rs`)
//!             tell the frontier which LSNs arrived; publish the number of the flush
//! ```
//!
//! Appenders go on while a flush is under way; everything they append meanwhile goes out with the next one. Each
//! flush of a partition begins only after the one before is on disk, which is what a frame's flush distance relies
//! on (`frame.rs`). Flushes of different partitions know nothing of each other.
//!
//! **A full disk.** Files are extended, and segments begun, before frames are accepted for them. If there is no space,
//! the append fails with [`LogError::DiskFull`] and nothing has happened; the next append tries again. On file
//! systems that never overwrite in place even a write into allocated space may find the disk full. Then the flush fails,
//! keeps what it took, and the next flush begins by writing the same bytes at the same place again, which is sound as
//! the whole of them is written again before the sync.
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
use crate::log::turn::{self, Turn};
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
    append: CachePadded<Mutex<Append>>,
    /// The lowest LSN that is in the buffer or on its way to the disk, a copy for readers without the latch.
    pending_first: AtomicU64,
    turn: Turn,
    /// Latched by the leader only.
    writer: Mutex<Writer>,
    /// Flushes on disk: everything that they took is.
    written: CachePadded<AtomicU64>,
    /// How often the file was extended or changed.
    extensions: AtomicU64,
}

struct Writer {
    /// The segment that takes the frames; none before the first frame of the chain.
    segment: Option<Segment>,
    /// Taken from the appenders and not yet on disk, as the disk was full.
    taken: Option<FlushBatch>,
    /// The vectors that the appenders do not use.
    spare: Vec<u8>,
    spare_lsns: Vec<Lsn>,
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
}

/// The event that a thread waits for.
#[derive(Clone, Copy)]
enum Target {
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

    /// Appends a frame, waiting for room where there is none. Returns the flush that takes it to disk.
    pub(crate) fn append(&self, common: &Common, entry: Entry<'_>) -> Result<u64> {
        let mut append = self.room_for(common, entry.payload.len())?;
        Ok(self.push(common, &mut append, entry).flush)
    }

    /// Appends a frame under the LSN that `number` takes when there is room.
    pub(crate) fn append_numbered(
        &self,
        common: &Common,
        entry: Entry<'_>,
        number: impl FnOnce() -> Lsn,
    ) -> Result<FrameLocation> {
        let mut append = self.room_for(common, entry.payload_bytes_max())?;
        let lsn = number();
        Ok(self.push(common, &mut append, Entry { lsn, ..entry }))
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
        self.push(common, &mut append, entry)
    }

    pub(crate) fn release(&self, reserved: u64) {
        self.append.lock().release(reserved);
    }

    fn push(&self, common: &Common, append: &mut Append, entry: Entry<'_>) -> FrameLocation {
        let entry = if entry.may_depend() { append.resolved(entry, common.frontier.stable()) } else { entry };
        let flush = append.push(entry);
        if entry.tag.is_numbered() {
            self.pending_first.store(append.pending_first(), Ordering::Release);
        }
        let is_first_unawaited = entry.is_unawaited && append.is_first_unawaited();
        FrameLocation { lsn: entry.lsn, flush, depends_on: entry.depends_on, is_first_unawaited }
    }

    /// The append latch with room for a frame; flushes or extends as long as there is none (back-pressure).
    fn room_for(&self, common: &Common, payload_bytes: usize) -> Result<MutexGuard<'_, Append>> {
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

    /// Waits until flush number `flush` is on disk. Flushes if no other thread does.
    pub(crate) fn wait_written(&self, common: &Common, flush: u64) -> Result<()> {
        self.wait_for(common, Target::Flush(flush), || self.flush(common))
    }

    /// Waits until everything appended so far is on disk.
    pub(crate) fn wait_all_written(&self, common: &Common) -> Result<()> {
        let flush = self.append.lock().last_flush();
        self.wait_written(common, flush)
    }

    /// Waits until no LSN up to `lsn` that was appended to this partition is missing on disk. Returns whether there
    /// was one to wait for.
    pub(crate) fn wait_lsns(&self, common: &Common, lsn: Lsn) -> Result<bool> {
        if !self.has_pending(lsn) {
            return Ok(false);
        }
        let flush = self.append.lock().flush_of(lsn);
        if let Some(flush) = flush {
            self.wait_written(common, flush)?;
        }
        Ok(true)
    }

    /// Whether an LSN up to `lsn` was appended here and is not on disk.
    pub(crate) fn has_pending(&self, lsn: Lsn) -> bool {
        self.pending_first.load(Ordering::Acquire) <= lsn
    }

    fn wait_for(&self, common: &Common, target: Target, lead: impl FnMut() -> Result<()>) -> Result<()> {
        let mut lead = lead;
        let room = match target {
            Target::Flush(flush) => turn::Room::of_flush(flush),
            Target::Extension(_) => turn::Room::Others,
        };
        let next = || turn::Room::of_flush(self.written.load(Ordering::Relaxed) + 1);
        let (reached, is_over) = (|| self.has_reached(target), || common.poison.is_set());
        self.turn.wait_for(room, next, reached, is_over, || common.poison.watch(&mut lead))?;
        if self.has_reached(target) { Ok(()) } else { common.poison.check() }
    }

    fn has_reached(&self, target: Target) -> bool {
        match target {
            Target::Flush(flush) => self.written.load(Ordering::Acquire) >= flush,
            Target::Extension(count) => self.extensions.load(Ordering::Acquire) >= count,
        }
    }

    /// Flushes once. Called by the leader.
    fn flush(&self, common: &Common) -> Result<()> {
        self.flush_with(common, &mut self.writer.lock())
    }

    fn flush_with(&self, common: &Common, writer: &mut Writer) -> Result<()> {
        if writer.taken.is_none() {
            let stable = common.frontier.stable();
            writer.taken = self.append.lock().take(&mut writer.spare, &mut writer.spare_lsns, stable);
        }
        let Some(taken) = &writer.taken else {
            return Ok(());
        };
        let segment = writer.segment.as_mut().expect("frames are appended to a segment");
        debug_assert!(
            taken.start + taken.bytes.len() as u64 <= segment.allocated_bytes,
            "invariant 8: a full disk would stop the flush of what was accepted"
        );
        segment.write_flush(&taken.bytes, taken.start, !taken.lsns.is_empty())?;
        // Another partition may have failed meanwhile; nothing is acknowledged after that.
        common.poison.check()?;
        common.frontier.complete(&taken.lsns);
        let flush = taken.flush;
        debug_assert_eq!(self.written.load(Ordering::Relaxed) + 1, flush, "invariant 8: a flush was passed over");
        writer.recycle(&common.options);
        {
            let mut append = self.append.lock();
            append.taken_is_on_disk();
            self.pending_first.store(append.pending_first(), Ordering::Release);
        }
        self.written.store(flush, Ordering::Release);
        Ok(())
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

impl Writer {
    /// Keeps the vectors of a finished flush for the next but one.
    fn recycle(&mut self, options: &LogOptions) {
        if let Some(FlushBatch { bytes, lsns, .. }) = self.taken.take() {
            (self.spare, self.spare_lsns) = (bytes, lsns);
            self.spare.clear();
            self.spare_lsns.clear();
            // One huge frame must not hold its memory for ever.
            self.spare.shrink_to(2 * options.buffer_bytes);
        }
    }
}
