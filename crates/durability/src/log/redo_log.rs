//! The log: append, acknowledge, trim.
//!
//! **LSNs come from outside**, from a clock that all share (one atomic addition). Nothing is latched over all
//! partitions. The price is that numbers arrive out of order; `frontier.rs` sees to it. There are two ways:
//!
//! - [`Log::append_commit`] takes the number when there is room, under the append latch of the partition.
//! - A transaction that has something to check between its number and its commit reserves room first
//!   ([`Log::reserve`]), takes the number, checks, and appends its commit, or a void if it cannot commit after all.
//!   Nothing is waited for then but the append latch. The first way is to be preferred: where threads outnumber
//!   processors, a thread that is stopped between its number and its frame holds up the commits of all later ones.
//!
//! **Every number that is taken must be appended.** No later commit is stable before.
//!
//! **Modes** (Hathi, section 3). They differ in what [`Log::wait`] waits for, and a partition commit in its frame:
//!
//! | mode | acknowledged when | after a crash |
//! |---|---|---|
//! | sync | every LSN up to its own is on disk, in all partitions | is there |
//! | async | at once; on disk after [`LogOptions::flush_interval`] or the next flush | is there once stable |
//! | partition | its own partition is on disk up to it, and all that it depends on | is there, even where lower LSNs are missing |
//!
//! **Which partition.** Any, but all frames of a transaction go to the same. [`Log::partition_for`] gives a thread one of
//! its own, except for sync commits, which all go to the first: a flush of many commits costs as much as that of
//! one, and a sync of a second file costs as much as the first, so what is to be waited for is best kept together.
//! Spread over 4 partitions, 64 threads on two processors and one disk committed two thirds as often as in one, over 16
//! less than half as often.
//!
//! Waiting for what was promised is in `wait.rs`.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::Lsn;
use crate::archive::outgoing::{ArchivedSegments, OldSegment, OutgoingSegments};
use crate::device::lock::lock_directory;
use crate::device::{Access, Device, DirectoryLock};
#[cfg(doc)]
use crate::error::LogError;
use crate::error::{OpenError, Result, device_error};
use crate::format::frame::{Frame, Hole, Tag};
use crate::format::segment::HEADER_BYTES;
use crate::format::trim;
use crate::log::append::{Append, Entry, NO_LSN};
use crate::log::commit::{CommitLocation, CommitMode};
use crate::log::dependency::Dependencies;
use crate::log::files::Files;
use crate::log::flusher::{Alarm, Flusher};
use crate::log::frontier::{AHEAD_MAX, Frontier};
use crate::log::partition::{Common, FrameLocation, Partition};
use crate::log::poison::Poison;
use crate::options::LogOptions;
use crate::recovery::recover::{self, RecoveredLog, Resume};

/// Counts of a log's work since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogStats {
    /// Bytes appended, headers and padding included.
    pub bytes: u64,
    /// Frames appended.
    pub frames: u64,
    /// Flushes: each is one durable write of everything appended to a partition meanwhile.
    pub syncs: u64,
    /// Segments that are needed.
    pub segments: u64,
}

/// A redo log. Share it between threads by reference or `Arc`.
///
/// Dropping a log flushes it as well as it can; [`Log::close`] does so and reports.
pub struct Log {
    pub(super) shared: Arc<LogState>,
    flusher: Option<Flusher>,
}

/// The state that the flusher's thread shares with the log.
pub(crate) struct LogState {
    pub(crate) common: Common,
    /// The partitions that take frames, then those of earlier openings. None where the log is read only.
    pub(super) partitions: Vec<Partition>,
    appended_to: usize,
    pub(crate) alarm: Alarm,
    trim: Mutex<Trim>,
    _lock: Box<dyn DirectoryLock>,
}

struct Trim {
    below: Lsn,
    /// Everything up to here is known to have been on disk.
    proven: Lsn,
    /// Of earlier crashes, and what was not read; the trim point never stands within one.
    holes: Vec<Hole>,
    outgoing: OutgoingSegments,
}

/// Room in a partition for one commit or void. Its holder must not append anything else meanwhile, and should not
/// hold it for long: the partition cannot go on to its next file.
#[must_use = "room that is not used is given back"]
pub struct Reservation<'a> {
    log: &'a Log,
    partition: usize,
    payload_bytes: usize,
    reserved: u64,
}

impl Log {
    /// Opens the log on `device`, creating it if there is none, and hands every transaction that survived to `apply`,
    /// in LSN order, each with its data frames first. `progress` is told the bytes read and the bytes to read.
    ///
    /// Tails torn by a crash are dropped (they held nothing acknowledged) and counted in [`RecoveredLog`]. Damage to
    /// what may have been acknowledged is refused with [`LogError::Corrupt`]; frames before the damage have been
    /// applied by then.
    ///
    /// A directory that may not be written to is opened for reading only: see [`Log::is_read_only`].
    ///
    /// # Errors
    /// [`OpenError::Apply`] if `apply` refuses a frame. [`OpenError::Log`] with:
    /// - [`LogError::Locked`] if another process, or another part of this one, has the directory open.
    /// - [`LogError::Corrupt`] if what may have been acknowledged is damaged or missing; [`LogError::UnknownVersion`]
    ///   if a file has another format.
    /// - A failure of the device to read the log or to mend its end, or of the system to start the flushing thread.
    pub fn open<E>(
        device: Arc<dyn Device>,
        options: LogOptions,
        apply: &mut dyn FnMut(Frame<'_>) -> std::result::Result<(), E>,
        progress: &mut dyn FnMut(u64, u64),
    ) -> std::result::Result<(Log, RecoveredLog), OpenError<E>> {
        let locked = lock_directory(&*device)?;
        Log::open_locked(device, locked, 0, options, apply, progress)
    }

    /// Opens the log as [`open`](Self::open) does, for a caller that already holds the lock ([`lock_directory`]), on which the log
    /// goes on holding, and has the commits up to `held`, which were on disk. Of these it is handed some or none: where the log was
    /// closed, segments without later ones are not read, and damage to them is not noticed.
    ///
    /// # Errors
    /// As [`open`](Self::open), but for [`LogError::Locked`].
    pub fn open_locked<E>(
        device: Arc<dyn Device>,
        locked: (Box<dyn DirectoryLock>, Access),
        held: Lsn,
        options: LogOptions,
        apply: &mut dyn FnMut(Frame<'_>) -> std::result::Result<(), E>,
        progress: &mut dyn FnMut(u64, u64),
    ) -> std::result::Result<(Log, RecoveredLog), OpenError<E>> {
        let options = LogOptions {
            partitions: options.partitions.max(1),
            segment_bytes: options.segment_bytes.max(HEADER_BYTES as u64),
            buffer_bytes: options.buffer_bytes.min(1 << 30),
            growth_bytes: options.growth_bytes.max(HEADER_BYTES as u64),
            ..options
        };
        let (lock, access) = locked;
        let (Resume { chains, stock, hole, holes }, recovered) =
            recover::recover(&*device, access, held, apply, progress)?;
        let location = device.location();
        let mut partitions = Vec::new();
        if access == Access::Write {
            let found = chains.last().map_or(0, |last| last.partition as usize + 1);
            let mut chains = chains.into_iter().peekable();
            for number in 0..found.max(options.partitions) as u64 {
                let partition = match chains.next_if(|chain| chain.partition == number) {
                    None => Partition::new(number, Append::new(Default::default(), 0, true, hole), None, &options),
                    Some(chain) => {
                        // A hole is in an opening frame before the log is closed again, also where all before it was closed.
                        let (lsn_max, is_settled) = (chain.lsn_max, chain.is_settled && hole.is_empty());
                        let (segments, end) = chain.into_parts();
                        Partition::new(number, Append::new(segments, lsn_max, is_settled, hole), Some(end), &options)
                    }
                };
                partitions.push(partition);
            }
        }
        let common = Common {
            files: Files::new(device, stock.log, stock.next_number, stock.spare),
            options,
            frontier: Frontier::new(recovered.last_lsn),
            poison: Poison::default(),
        };
        let shared = Arc::new(LogState {
            common,
            appended_to: partitions.len().min(options.partitions),
            partitions,
            alarm: Alarm::default(),
            trim: Mutex::new(Trim {
                below: stock.trim.below,
                proven: stock.trim.proven,
                holes,
                outgoing: OutgoingSegments::default(),
            }),
            _lock: lock,
        });
        let fail = |source| device_error("start the flushing thread".to_string(), location, source);
        let interval = options.flush_interval.filter(|_| access == Access::Write);
        let flusher = interval.map(|interval| Flusher::start(&shared, interval)).transpose().map_err(fail)?;
        Ok((Log { shared, flusher }, recovered))
    }

    /// Whether the directory may not be written to. Such a log was read and takes no frames.
    #[inline]
    pub fn is_read_only(&self) -> bool {
        self.shared.partitions.is_empty()
    }

    /// How many partitions take frames; they are numbered from 0. None does where the log is read only.
    #[inline]
    pub fn partitions(&self) -> usize {
        self.shared.appended_to
    }

    /// The partition in which a transaction of this thread that will commit with `mode` is best kept.
    #[inline]
    pub fn partition_for(&self, mode: CommitMode) -> usize {
        match mode {
            CommitMode::Sync => 0,
            CommitMode::Async | CommitMode::Partition => sync::thread_slot() % self.partitions().max(1),
        }
    }

    /// Appends part of a running transaction's redo to the partition in which it will commit. Not flushed on its own
    /// account; a large transaction calls this many times.
    ///
    /// # Errors
    /// As [`reserve`](Self::reserve).
    pub fn append_data(&self, partition: usize, txn: u64, payload: &[u8]) -> Result<()> {
        let pushed = self.partition(partition)?.append(&self.shared.common, Entry::new(Tag::Data, txn, 0, payload))?;
        self.ring(&pushed);
        Ok(())
    }

    /// Says that the data frames of `txn` are void, so that recovery need not remember them. They are void in any
    /// case when no commit follows; so a failure is not told.
    pub fn append_abort(&self, partition: usize, txn: u64) {
        if let Ok(partition) = self.partition(partition) {
            partition.abort(&self.shared.common, txn);
        }
    }

    /// Reserves room for a commit frame with at most so many bytes. May wait for the disk; after it, nothing up to
    /// the commit does. To be called before the LSN is taken.
    ///
    /// # Errors
    /// [`LogError::FrameTooLarge`] if a frame may not have so many bytes; [`LogError::DiskFull`] if the file cannot
    /// grow, where nothing has happened; [`LogError::Poisoned`] after a failure; [`LogError::ReadOnly`] if the log is
    /// read only; a failure of the device to flush what is before it or to begin the next file, which poisons the
    /// log.
    pub fn reserve(&self, partition: usize, payload_bytes: usize) -> Result<Reservation<'_>> {
        let reserved = self.partition(partition)?.reserve(&self.shared.common, payload_bytes)?;
        Ok(Reservation { log: self, partition, payload_bytes, reserved })
    }

    /// Appends the frame that commits `txn`; to be acknowledged once [`Log::wait`] returns for it. `next_lsn` takes the
    /// number. It is called under the append latch of the partition, once and only if there is room: so no number is
    /// owed to the log when the append fails, and no commit of the partition overtakes another.
    ///
    /// # Panics
    /// If the LSN is stable already or out of all proportion.
    ///
    /// # Errors
    /// As [`reserve`](Self::reserve): no number was taken, and nothing has happened.
    pub fn append_commit(
        &self,
        partition: usize,
        txn: u64,
        payload: &[u8],
        mode: CommitMode,
        next_lsn: impl FnOnce() -> Lsn,
    ) -> Result<CommitLocation> {
        self.append_entry(partition, Entry::new(mode.tag(), txn, 0, payload), mode, next_lsn)
    }

    /// Appends a commit as [`append_commit`](Self::append_commit) does, with mode [`CommitMode::Partition`], for a
    /// transaction that has seen what others wrote.
    ///
    /// # Errors
    /// As [`append_commit`](Self::append_commit).
    ///
    /// # Panics
    /// As [`append_commit`](Self::append_commit).
    pub fn append_partition_commit(
        &self,
        partition: usize,
        txn: u64,
        payload: &[u8],
        on: Dependencies<'_>,
        next_lsn: impl FnOnce() -> Lsn,
    ) -> Result<CommitLocation> {
        self.append_entry(partition, Entry::partition_commit(txn, 0, payload, on), CommitMode::Partition, next_lsn)
    }

    #[inline(always)]
    fn append_entry(
        &self,
        partition: usize,
        mut entry: Entry<'_>,
        mode: CommitMode,
        next_lsn: impl FnOnce() -> Lsn,
    ) -> Result<CommitLocation> {
        let number = || self.checked(next_lsn());
        entry.is_unawaited = mode == CommitMode::Async;
        let pushed = self.partition(partition)?.append_numbered(&self.shared.common, entry, number)?;
        self.ring(&pushed);
        Ok(CommitLocation::new(partition, mode, &pushed))
    }

    /// Gives up the segments that hold nothing at or after `below`, nor data of a transaction that has not ended; what
    /// is not stable is kept. From then on LSNs below are not handed over by [`Log::open`]. To be called when a
    /// checkpoint holds them. Returns how many segments were given up.
    ///
    /// # Errors
    /// - [`LogError::NotArchived`] if the archive failed for a segment: it and those behind it stay until the next
    ///   call.
    /// - [`LogError::ReadOnly`] if the log is read only; [`LogError::Poisoned`] after a failure.
    /// - A failure of the device to write the trim point or to remove files, which poisons the log, but for
    ///   [`LogError::DiskFull`].
    pub fn trim(&self, below: Lsn) -> Result<u64> {
        self.check_writable()?;
        let LogState { common, partitions, trim, .. } = &*self.shared;
        let mut trim = trim.lock();
        let mut below = below.min(self.stable_lsn() + 1);
        if let Some(hole) = trim.holes.iter().find(|hole| hole.from < below && below < hole.to) {
            below = hole.from;
        }
        debug_assert!(below <= self.stable_lsn() + 1, "invariant 8: {below} is given up, and is not on disk");
        common.poison.watch(|| {
            if below > trim.below {
                trim::write(&*common.files.device, common.files.log, below, trim.proven)?;
                trim.below = below;
                trim.holes.retain(|hole| hole.to > below);
            }
            Ok(())
        })?;
        for (number, partition) in (0..).zip(partitions) {
            let freed = partition.trim(trim.below).into_iter();
            trim.outgoing.extend(freed.map(|segment| OldSegment::new(common.files.log, number, segment)));
        }
        let (freed, outcome) = trim.outgoing.hand_over();
        common.poison.watch(|| common.files.give_up(&freed, &common.options))?;
        outcome.map(|()| freed.len() as u64)
    }

    /// From now on every segment is handed to `archive` before it is given up. One that it fails for stays, with
    /// [`LogError::NotArchived`] from [`Log::trim`], and is handed over again by the next trim; so it may get a
    /// segment more than once, after a crash as well. The file is used again afterwards: it is to be copied
    /// ([`SegmentArchive`](crate::SegmentArchive) does), not linked to.
    pub fn archive_with(&self, archive: impl Fn(&OldSegment) -> std::io::Result<()> + Send + Sync + 'static) {
        self.shared.trim.lock().outgoing.archive_with(Box::new(archive));
    }

    /// Hands all that is on disk to the archive, whether the log needs it or not. Frames that are not stable yet
    /// may be among it. No segment is given up meanwhile.
    ///
    /// # Errors
    /// [`LogError::NotArchived`] if the archive failed for a segment; those before it were handed over.
    pub fn archive(&self) -> Result<ArchivedSegments> {
        let LogState { common, partitions, trim, .. } = &*self.shared;
        let mut trim = trim.lock();
        let archived = ArchivedSegments { log: common.files.log, from: trim.below.max(1), until: self.stable_lsn() };
        debug_assert!(archived.from <= archived.until + 1, "{archived:?} ends before it begins");
        trim.outgoing.offer_all()?;
        for (number, partition) in (0..).zip(partitions) {
            let segments = partition.on_disk().into_iter();
            trim.outgoing.hand_over_copies(segments.map(|segment| OldSegment::new(archived.log, number, segment)))?;
        }
        Ok(archived)
    }

    /// The number of the log: random, and the same for its whole life.
    pub fn number(&self) -> u64 {
        self.shared.common.files.log
    }

    /// Flushes, and marks the end of every partition as intended: damage to anything before the mark is told from an
    /// interrupted write from then on.
    ///
    /// # Errors
    /// As [`flush`](Self::flush); a failure of the device to write the marks. What was acknowledged before is safe.
    pub fn close(mut self) -> Result<()> {
        self.finish()
    }

    /// The counts since opening.
    pub fn stats(&self) -> LogStats {
        let add = |sum: [u64; 4], counts: [u64; 4]| std::array::from_fn(|at| sum[at] + counts[at]);
        let [bytes, frames, syncs, segments] = self.shared.partitions.iter().map(Partition::counts).fold([0; 4], add);
        LogStats { bytes, frames, syncs, segments }
    }

    /// Wakes the flusher for a commit that no thread waits for, the first of a flush does for all, and for a buffer that is half full.
    #[inline]
    fn ring(&self, pushed: &FrameLocation) {
        if (pushed.is_first_unawaited || pushed.is_half_full)
            && let Some(flusher) = &self.flusher
        {
            if pushed.is_half_full { flusher.press() } else { flusher.ring() }
        }
    }

    #[inline]
    fn checked(&self, lsn: Lsn) -> Lsn {
        let stable = self.shared.common.frontier.stable();
        assert!(lsn > stable && lsn - stable < AHEAD_MAX, "LSN {lsn} with {stable} stable");
        lsn
    }

    #[inline]
    pub(super) fn partition(&self, partition: usize) -> Result<&Partition> {
        let appended_to = &self.shared.partitions[..self.shared.appended_to];
        if let Some(partition) = appended_to.get(partition) {
            return Ok(partition);
        }
        self.check_writable()?;
        panic!("partition {partition} of {}", appended_to.len());
    }

    fn check_writable(&self) -> Result<()> {
        if !self.is_read_only() {
            return Ok(());
        }
        let source = std::io::ErrorKind::ReadOnlyFilesystem.into();
        Err(device_error("append to the redo log".to_string(), self.shared.common.files.device.location(), source))
    }

    /// Ends the flusher, flushes, then marks the ends.
    fn finish(&mut self) -> Result<()> {
        self.flusher = None;
        self.flush()?;
        let LogState { common, partitions, trim, .. } = &*self.shared;
        partitions.iter().try_for_each(|partition| partition.mark_end(common))?;
        // A hole that a crash has left is in an opening frame by now: where it is, some partition was not settled.
        let (mut trim, proven) = (trim.lock(), self.stable_lsn());
        if !self.is_read_only() && proven > trim.proven {
            trim::write(&*common.files.device, common.files.log, trim.below, proven)?;
            trim.proven = proven;
        }
        Ok(())
    }
}

impl LogState {
    pub(crate) fn has_pending(&self) -> bool {
        self.partitions.iter().any(|partition| partition.has_pending(NO_LSN - 1))
    }

    /// Flushes the partitions with commits that are not on disk.
    pub(crate) fn flush_pending(&self) -> Result<()> {
        let mut pending = self.partitions.iter().filter(|partition| partition.has_pending(NO_LSN - 1));
        pending.try_for_each(|partition| partition.wait_lsns(&self.common, NO_LSN - 1).map(drop))
    }

    /// Flushes the partitions whose buffers are half full.
    pub(crate) fn flush_half_full(&self) -> Result<()> {
        self.partitions.iter().try_for_each(|partition| partition.flush_half_full(&self.common))
    }

    /// Makes room in the files for what is likely to come, by what came since the last call: `appended` holds the bytes of each partition.
    pub(crate) fn extend_ahead(&self, appended: &mut Vec<u64>) -> Result<()> {
        appended.resize(self.partitions.len(), 0);
        let mut each = self.partitions.iter().zip(appended);
        each.try_for_each(|(partition, appended)| {
            *appended = partition.extend_ahead(&self.common, *appended)?;
            Ok(())
        })
    }
}

impl Reservation<'_> {
    /// Commits `txn` with `lsn`. Does not wait.
    ///
    /// # Panics
    /// If the payload is larger than what was reserved, or the LSN is stable already or out of all proportion.
    pub fn commit(self, txn: u64, lsn: Lsn, payload: &[u8], mode: CommitMode) -> CommitLocation {
        assert!(payload.len() <= self.payload_bytes, "{} bytes reserved", self.payload_bytes);
        self.append(Entry::new(mode.tag(), txn, lsn, payload), mode)
    }

    /// Commits `txn` with mode [`CommitMode::Partition`], for a transaction that has seen what others wrote.
    ///
    /// # Panics
    /// As [`Reservation::commit`].
    pub fn partition_commit(self, txn: u64, lsn: Lsn, payload: &[u8], on: Dependencies<'_>) -> CommitLocation {
        assert!(payload.len() <= self.payload_bytes, "{} bytes reserved", self.payload_bytes);
        self.append(Entry::partition_commit(txn, lsn, payload, on), CommitMode::Partition)
    }

    /// Says that `txn` took `lsn` and did not commit.
    ///
    /// # Panics
    /// If the LSN is stable already or out of all proportion.
    pub fn void(self, txn: u64, lsn: Lsn) -> CommitLocation {
        self.append(Entry::new(Tag::Void, txn, lsn, &[]), CommitMode::Async)
    }

    fn append(mut self, entry: Entry<'_>, mode: CommitMode) -> CommitLocation {
        self.log.checked(entry.lsn);
        let entry = Entry { is_unawaited: mode == CommitMode::Async, ..entry };
        debug_assert!(
            self.reserved >= Append::need(entry.payload_bytes_max()),
            "invariant 8: {} bytes were reserved for {}",
            self.reserved,
            entry.payload_bytes_max()
        );
        let (reserved, shared) = (std::mem::take(&mut self.reserved), &self.log.shared);
        let pushed = shared.partitions[self.partition].append_reserved(&shared.common, entry, reserved);
        self.log.ring(&pushed);
        CommitLocation::new(self.partition, mode, &pushed)
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        if self.reserved > 0 {
            self.log.shared.partitions[self.partition].release(self.reserved);
        }
    }
}

impl std::fmt::Debug for Reservation<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut debug = formatter.debug_struct("Reservation");
        debug.field("partition", &self.partition).field("payload_bytes", &self.payload_bytes).finish_non_exhaustive()
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        // No caller is left to receive an error, and nothing was promised for the frames that a failure loses.
        let _ = self.finish();
    }
}

impl std::fmt::Debug for Log {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Log")
            .field("directory", &self.shared.common.files.device.location())
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}
