//! Flushing a partition, and waiting for it: many commits go to disk with one write.
//!
//! ```text
//!   wait:     the flush is on disk already  -> done
//!             another thread flushes        -> sleep (`turn.rs`), and look again
//!             else flush:
//!               take the append latch: exchange the buffer for an empty one; release
//!               write the buffer durably, with its witness (`witness.rs`)
//!               tell the frontier which LSNs arrived; publish the number of the flush
//! ```
//!
//! Appenders go on while a flush is under way; everything they append meanwhile goes out with the next one. Each
//! flush of a partition begins only after the one before is on disk, which is what a frame's flush distance relies
//! on (`frame.rs`). Flushes of different partitions know nothing of each other.
//!
//! **A full disk.** On file systems that never overwrite in place even a write into allocated space may find the disk
//! full. Then the flush fails, keeps what it took, and the next flush begins by writing the same bytes at the same place
//! again, which is sound as the whole of them is written again before the sync.

use std::sync::atomic::Ordering;

use crate::Lsn;
use crate::error::Result;
use crate::log::append::FlushBatch;
use crate::log::partition::{Common, Partition, Target, Writer};
use crate::log::turn;
use crate::options::LogOptions;

impl Partition {
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

    /// Waits for an event. What leads to it is done by `lead`, by one of the threads that wait.
    pub(super) fn wait_for(&self, common: &Common, target: Target, lead: impl FnMut() -> Result<()>) -> Result<()> {
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

    /// Flushes once, by a leader that has the writer already. Does nothing where nothing was appended.
    pub(super) fn flush_with(&self, common: &Common, writer: &mut Writer) -> Result<()> {
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
