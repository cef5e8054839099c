//! The log: append, flush, acknowledge.
//!
//! ```text
//!   append:   check the payload's size; compute its checksum
//!             take the append latch
//!               no room in the buffer   -> release, help to flush, again
//!               no room in the segment  -> seal it, release, help to flush and roll, again
//!             number the commit, put the frame into the buffer
//!   flush:    (one thread at a time, elected by `turn.rs`)
//!             take the append latch: exchange the buffer for an empty one; release
//!             write the buffer, sync
//!             publish what is stable: LSN and bytes
//!             if the segment was sealed: create the next one, open it to appenders
//!   wait:     until the stable LSN has reached ours, flush or let others flush
//! ```
//!
//! Appenders go on while a flush is under way; everything they append meanwhile goes out with the next one. Each
//! write is followed by a sync before the next write begins, which is what a frame's flush distance relies on
//! (`frame.rs`).
//!
//! Any failure of the device poisons the log: the failed thread gets the cause, all others from then on
//! [`LogError::Poisoned`], except for commits that were stable before. A commit whose wait failed may or may not
//! be found by the next [`Log::open`], but if it is then whole.
//!
//! Latch order: turn, writer, append.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::{Mutex, MutexGuard};

use crate::device::{Device, DirectoryLock};
use crate::error::{LogError, OpenError, Result, device_error};
use crate::frame::{self, Frame, Header, MAX_PAYLOAD_BYTES, Place, Tag};
use crate::recover::{self, Recovered, Resume};
use crate::segment::{FRAMES_START, Segment};
use crate::turn::Turn;

/// The sizes of a log. They may differ from one opening to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogOptions {
    /// A segment takes no frame that would end beyond this size, unless it is the segment's only one.
    pub segment_bytes: u64,
    /// An append that would fill the buffer beyond this size flushes first, at most 1 GiB.
    pub buffer_bytes: usize,
    /// A segment is allocated in steps of this size.
    pub growth_bytes: u64,
}

impl Default for LogOptions {
    fn default() -> LogOptions {
        LogOptions { segment_bytes: 64 << 20, buffer_bytes: 4 << 20, growth_bytes: 1 << 20 }
    }
}

/// What a log did since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogStats {
    /// Bytes appended, headers and padding included.
    pub bytes: u64,
    /// Frames appended.
    pub frames: u64,
    /// Flushes: each is one write and one sync of everything appended meanwhile.
    pub syncs: u64,
    /// Segments that exist.
    pub segments: u64,
}

/// A redo log. Share it between threads by reference or `Arc`.
///
/// Dropping a log flushes it as well as it can; [`Log::close`] does so and reports.
pub struct Log {
    device: Arc<dyn Device>,
    options: LogOptions,
    append: Mutex<Append>,
    turn: Turn<Target>,
    /// Latched by the leader only.
    writer: Mutex<Writer>,
    stable: Stable,
    poison: OnceLock<String>,
    syncs: AtomicU64,
    _lock: Box<dyn DirectoryLock>,
}

/// What appenders share.
struct Append {
    /// Frames not yet taken by a flush.
    buffer: Vec<u8>,
    /// The offset in the segment of the buffer's first byte, where the next flush starts.
    buffer_start: u64,
    segment: u64,
    salt: u64,
    /// The segment takes no more frames; the next flush opens the next segment.
    sealed: bool,
    last_lsn: u64,
    bytes: u64,
    frames: u64,
    /// Nothing stands in the log that a mark does not testify for.
    settled: bool,
}

struct Writer {
    segment: Segment,
    /// The buffer that the appenders do not use.
    spare: Vec<u8>,
}

/// What is on disk. Only ever grows.
struct Stable {
    lsn: AtomicU64,
    bytes: AtomicU64,
    segment: AtomicU64,
}

/// What a thread waits for.
#[derive(Clone, Copy)]
enum Target {
    /// The commit with this LSN is on disk.
    Lsn(u64),
    /// So many bytes appended since opening are on disk.
    Bytes(u64),
    /// The segment with this number takes frames.
    Segment(u64),
}

/// What a flush took from the appenders.
struct Taken {
    start: u64,
    last_lsn: u64,
    bytes: u64,
    sealed: bool,
}

impl Log {
    /// Opens the log on `device`, creating it if there is none, and hands every valid frame to `apply` in file
    /// order. `progress` is told the bytes read and the bytes to read.
    ///
    /// A tail torn by a crash is dropped (it held nothing acknowledged) and counted in [`Recovered`]. Damage to
    /// what may have been acknowledged is refused with [`LogError::Corrupt`]; frames before the damage have been
    /// applied by then.
    pub fn open<E>(
        device: Arc<dyn Device>,
        options: LogOptions,
        apply: &mut dyn FnMut(Frame<'_>) -> std::result::Result<(), E>,
        progress: &mut dyn FnMut(u64, u64),
    ) -> std::result::Result<(Log, Recovered), OpenError<E>> {
        let options = LogOptions {
            segment_bytes: options.segment_bytes.max(FRAMES_START),
            buffer_bytes: options.buffer_bytes.min(1 << 30),
            growth_bytes: options.growth_bytes.max(FRAMES_START),
        };
        let lock = take_lock(&*device)?;
        let (resume, recovered) = recover::recover(&*device, options, apply, progress)?;
        let Resume { segment, end, settled } = resume;
        let append = Append {
            buffer: Vec::new(),
            buffer_start: end,
            segment: segment.header.number,
            salt: segment.header.salt,
            sealed: false,
            last_lsn: recovered.last_lsn,
            bytes: 0,
            frames: 0,
            settled,
        };
        let stable = Stable {
            lsn: AtomicU64::new(append.last_lsn),
            bytes: AtomicU64::new(0),
            segment: AtomicU64::new(append.segment),
        };
        let log = Log {
            device,
            options,
            append: Mutex::new(append),
            turn: Turn::new(),
            writer: Mutex::new(Writer { segment, spare: Vec::new() }),
            stable,
            poison: OnceLock::new(),
            syncs: AtomicU64::new(0),
            _lock: lock,
        };
        Ok((log, recovered))
    }

    /// Appends part of a running transaction's redo. Not flushed on its own account; a large transaction calls
    /// this many times.
    pub fn append_data(&self, txn: u64, payload: &[u8]) -> Result<()> {
        self.append(Tag::Data, txn, payload, |_| Ok::<_, LogError>(0)).map(drop)
    }

    /// Appends the frame that commits `txn`. `next_lsn` is called under the append latch, once and only if the
    /// append succeeds, so that order in the file is LSN order; if it fails, nothing is appended. Returns the LSN; the
    /// commit is durable once [`Log::wait_stable`] returns for it.
    ///
    /// # Panics
    /// If `next_lsn` returns anything but the LSN after the last one.
    pub fn append_commit<E: From<LogError>>(
        &self,
        txn: u64,
        payload: &[u8],
        next_lsn: impl FnOnce() -> Result<u64, E>,
    ) -> Result<u64, E> {
        self.append(Tag::Commit, txn, payload, |last| {
            let lsn = next_lsn()?;
            assert_eq!(lsn, last + 1, "LSNs are dense and in file order");
            Ok(lsn)
        })
    }

    /// Appends the frame that voids the data frames of `txn`.
    pub fn append_abort(&self, txn: u64) -> Result<()> {
        self.append(Tag::Abort, txn, &[], |_| Ok::<_, LogError>(0)).map(drop)
    }

    /// Waits until every commit up to `lsn`, and every frame before it, is on disk. Flushes if nobody else does.
    pub fn wait_stable(&self, lsn: u64) -> Result<()> {
        if self.is_stable(lsn) {
            return Ok(());
        }
        let last = self.append.lock().last_lsn;
        if lsn > last {
            return Err(LogError::NotAppended { lsn, last });
        }
        self.wait_for(Target::Lsn(lsn))
    }

    /// Whether every commit up to `lsn` is on disk.
    pub fn is_stable(&self, lsn: u64) -> bool {
        self.stable.reached(Target::Lsn(lsn))
    }

    /// Waits until everything appended so far is on disk.
    pub fn flush(&self) -> Result<()> {
        let bytes = self.append.lock().bytes;
        self.wait_for(Target::Bytes(bytes))
    }

    /// Flushes, and marks the end of the log as intended: damage to anything before the mark is told from an
    /// interrupted write from then on.
    pub fn close(self) -> Result<()> {
        self.finish()
    }

    /// What happened since opening.
    pub fn stats(&self) -> LogStats {
        let append = self.append.lock();
        let syncs = self.syncs.load(Ordering::Relaxed);
        LogStats { bytes: append.bytes, frames: append.frames, syncs, segments: append.segment }
    }

    fn append<E: From<LogError>>(
        &self,
        tag: Tag,
        txn: u64,
        payload: &[u8],
        number: impl FnOnce(u64) -> Result<u64, E>,
    ) -> Result<u64, E> {
        if payload.len() > MAX_PAYLOAD_BYTES {
            return Err(LogError::FrameTooLarge { bytes: payload.len(), limit: MAX_PAYLOAD_BYTES }.into());
        }
        let payload_checksum = frame::payload_checksum(payload);
        let mut append = self.room_for(frame::frame_bytes(payload.len()))?;
        let lsn = number(append.last_lsn)?;
        append.push(tag, (txn, lsn), payload, payload_checksum);
        Ok(lsn)
    }

    /// The append latch with room for a frame of `bytes`; flushes as long as there is none (back-pressure).
    fn room_for(&self, bytes: usize) -> Result<MutexGuard<'_, Append>> {
        loop {
            let mut append = self.append.lock();
            if let Some(cause) = self.poison.get() {
                return Err(LogError::Poisoned { cause: cause.clone() });
            }
            let offset = append.buffer_start + append.buffer.len() as u64;
            let target = if append.sealed || !fits_segment(&self.options, offset, bytes) {
                append.sealed = true;
                Target::Segment(append.segment + 1)
            } else if !append.buffer.is_empty() && append.buffer.len() + bytes > self.options.buffer_bytes {
                Target::Bytes(append.bytes)
            } else {
                return Ok(append);
            };
            drop(append);
            self.wait_for(target)?;
        }
    }

    /// Waits for `target`, leading a flush when it is this thread's turn.
    fn wait_for(&self, target: Target) -> Result<()> {
        let over = |target| self.stable.reached(target) || self.poison.get().is_some();
        self.turn.wait_for(target, over, || self.lead())?;
        match self.poison.get() {
            Some(cause) if !self.stable.reached(target) => Err(LogError::Poisoned { cause: cause.clone() }),
            _ => Ok(()),
        }
    }

    /// Flushes once. A failure, a panic included, poisons the log.
    fn lead(&self) -> Result<()> {
        let mut guard = PoisonOnUnwind { log: self, armed: true };
        let result = self.flush_taken();
        guard.armed = false;
        if let Err(error) = &result {
            self.poison.get_or_init(|| error.to_string());
        }
        result
    }

    fn flush_taken(&self) -> Result<()> {
        let mut writer = self.writer.lock();
        let writer = &mut *writer;
        let taken = self.append.lock().take(&mut writer.spare);
        if !writer.spare.is_empty() {
            writer.segment.write_durably(&writer.spare, taken.start, self.options.growth_bytes)?;
            self.syncs.fetch_add(1, Ordering::Relaxed);
        }
        self.stable.lsn.store(taken.last_lsn, Ordering::Release);
        self.stable.bytes.store(taken.bytes, Ordering::Release);
        let end = taken.start + writer.spare.len() as u64;
        writer.spare.clear();
        // One huge frame must not hold its memory for ever.
        writer.spare.shrink_to(2 * self.options.buffer_bytes);
        if taken.sealed {
            self.roll(writer, end)?;
        }
        Ok(())
    }

    /// Goes on to the next segment. Nobody appends meanwhile, as the segment is sealed.
    fn roll(&self, writer: &mut Writer, end: u64) -> Result<()> {
        let number = writer.segment.header.number + 1;
        let previous = (end, writer.segment.header.salt);
        let allocate = self.options.growth_bytes.min(self.options.segment_bytes);
        writer.segment = Segment::create(&*self.device, number, previous, allocate)?;
        self.append.lock().enter(&writer.segment);
        self.stable.segment.store(number, Ordering::Release);
        Ok(())
    }

    /// Flushes, then writes the mark in a flush of its own.
    fn finish(&self) -> Result<()> {
        self.flush()?;
        if !self.append.lock().settled {
            self.append(Tag::Mark, 0, &[], |_| Ok::<_, LogError>(0))?;
            self.flush()?;
        }
        Ok(())
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        // Nobody is left to tell of a failure, and nothing was promised for what it loses.
        let _ = self.finish();
    }
}

impl std::fmt::Debug for Log {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Log")
            .field("directory", &self.device.location())
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}

impl Append {
    fn push(&mut self, tag: Tag, (txn, lsn): (u64, u64), payload: &[u8], payload_checksum: u32) {
        debug_assert!(!self.sealed);
        let distance = self.buffer.len();
        let place = Place { salt: self.salt, offset: self.buffer_start + distance as u64 };
        // Neither cast cuts: payloads end at 1 GiB and flushes at 1 GiB or one frame.
        let header = Header {
            tag,
            txn,
            lsn,
            payload_bytes: payload.len() as u32,
            payload_checksum,
            flush_distance: distance as u32,
        };
        self.buffer.extend_from_slice(&header.encode(place));
        self.buffer.extend_from_slice(payload);
        self.buffer.extend_from_slice(frame::padding(payload.len()));
        self.bytes += (self.buffer.len() - distance) as u64;
        self.frames += 1;
        self.last_lsn = self.last_lsn.max(lsn);
        self.settled = tag == Tag::Mark;
    }

    /// Exchanges the buffer for `spare`, which is empty, and says what it held.
    fn take(&mut self, spare: &mut Vec<u8>) -> Taken {
        debug_assert!(spare.is_empty());
        std::mem::swap(&mut self.buffer, spare);
        let start = self.buffer_start;
        self.buffer_start += spare.len() as u64;
        Taken { start, last_lsn: self.last_lsn, bytes: self.bytes, sealed: self.sealed }
    }

    fn enter(&mut self, segment: &Segment) {
        debug_assert!(self.sealed && self.buffer.is_empty());
        self.segment = segment.header.number;
        self.salt = segment.header.salt;
        self.buffer_start = FRAMES_START;
        self.sealed = false;
    }
}

impl Stable {
    fn reached(&self, target: Target) -> bool {
        match target {
            Target::Lsn(lsn) => self.lsn.load(Ordering::Acquire) >= lsn,
            Target::Bytes(bytes) => self.bytes.load(Ordering::Acquire) >= bytes,
            Target::Segment(segment) => self.segment.load(Ordering::Acquire) >= segment,
        }
    }
}

/// A leader that panics has taken frames that nobody will write.
struct PoisonOnUnwind<'a> {
    log: &'a Log,
    armed: bool,
}

impl Drop for PoisonOnUnwind<'_> {
    fn drop(&mut self) {
        if self.armed {
            self.log.poison.get_or_init(|| "the flushing thread panicked".to_string());
        }
    }
}

/// Whether a frame of `bytes` may stand at `offset`. The first of a segment always may.
fn fits_segment(options: &LogOptions, offset: u64, bytes: usize) -> bool {
    offset == FRAMES_START || offset + bytes as u64 <= options.segment_bytes
}

fn take_lock(device: &dyn Device) -> Result<Box<dyn DirectoryLock>> {
    device.lock().map_err(|source| match source.kind() {
        std::io::ErrorKind::WouldBlock => LogError::Locked { directory: device.location() },
        _ => device_error("lock the redo log".to_string(), device.location(), source),
    })
}
