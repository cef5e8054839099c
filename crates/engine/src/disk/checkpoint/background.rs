//! When a checkpoint is due: when the log has grown so much since the last one that replaying it would take longer than the
//! time that opening the database may take; or when memory is short and pages stay there only because no checkpoint has
//! them; and when the database is closed, unless replaying the log and filling its indexes would hardly take time.
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use durability::{Checkpoints, Device, Log};
use parking_lot::{Condvar, Mutex};

use super::indexes;
use super::take::{CheckpointParts, CheckpointReport};
use crate::background::merger;
use crate::error::Result;
use crate::state::core::Core;

/// Bytes of the log that are replayed in a second. On two cores 45 MB were of updates of 4 columns of random rows of a million, 120 MB
/// where the rows were in the cache.
const REPLAYED_PER_SECOND: u64 = 32 << 20;
/// A database that is closed takes a last checkpoint if replaying its log would take longer than about a twentieth of a second.
const REPLAYED_AT_REST: u64 = REPLAYED_PER_SECOND / 20;
/// Bytes of a load count as this part of them.
const LOAD_PART: u64 = 4;
/// Between two looks at the log.
const REST: Duration = Duration::from_millis(100);
/// After a checkpoint that was taken for the sake of memory, so many times as long as it took: memory that stays short although
/// pages have blobs is not to keep the disk busy.
const REST_FROM_MEMORY: u32 = 4;
/// After a checkpoint that failed: the disk may be full for a while.
const REST_AFTER_FAILURE: Duration = Duration::from_secs(5);

/// Takes checkpoints as they become due, and when asked to. Its thread ends when it is dropped.
pub(crate) struct Checkpointer {
    state: Arc<CheckpointerState>,
    thread: Option<JoinHandle<()>>,
}

struct CheckpointerState {
    taking: CheckpointParts,
    /// Held by the one checkpoint that is taken, or is being copied.
    one_at_a_time: Mutex<()>,
    /// Bytes of the log at which a checkpoint is due, counted from the last one.
    due_bytes: u64,
    /// The size of the log, in [`durability::LogStats::bytes`], at the last checkpoint; the part replayed at
    /// opening counts as grown.
    covered_bytes: AtomicU64,
    replayed_bytes: u64,
    is_stopping: Mutex<bool>,
    stopped: Condvar,
}

/// The files of the database on disk.
pub(crate) struct Disk {
    pub(crate) device: Arc<dyn Device>,
    pub(crate) log: Arc<Log>,
    pub(crate) checkpoints: Arc<Checkpoints>,
}

impl Checkpointer {
    /// Starts the thread, unless the log is only read. Opening the database is to take no longer than `recovery_time`, by
    /// estimate; it has just replayed `replayed_bytes`.
    pub(crate) fn start(core: Arc<Core>, disk: Disk, recovery_time: Duration, replayed_bytes: u64) -> Checkpointer {
        let Disk { device, log, checkpoints } = disk;
        let is_read_only = log.is_read_only();
        let state = Arc::new(CheckpointerState {
            taking: CheckpointParts { core, log, checkpoints, device },
            one_at_a_time: Mutex::new(()),
            due_bytes: (recovery_time.as_secs_f64() * REPLAYED_PER_SECOND as f64) as u64,
            covered_bytes: AtomicU64::new(0),
            replayed_bytes,
            is_stopping: Mutex::new(false),
            stopped: Condvar::new(),
        });
        let shared = state.clone();
        let spawn = || std::thread::Builder::new().name("lstore-checkpoint".into()).spawn(move || shared.work()).ok();
        // Where the system has no thread left, checkpoints are taken on demand only.
        let thread = if is_read_only { None } else { spawn() };
        Checkpointer { state, thread }
    }

    /// Takes a checkpoint and does something while no other is taken and the log is not trimmed.
    pub(crate) fn with_checkpoint<T>(
        &self,
        work: impl FnOnce(&CheckpointParts, CheckpointReport) -> Result<T>,
    ) -> Result<T> {
        self.state.with_checkpoint(work)
    }
}

impl CheckpointerState {
    fn with_checkpoint<T>(&self, work: impl FnOnce(&CheckpointParts, CheckpointReport) -> Result<T>) -> Result<T> {
        let _one_at_a_time = self.one_at_a_time.lock();
        let bytes = self.log_bytes();
        debug_assert!(bytes >= self.covered_bytes.load(Ordering::Acquire), "invariant 8: the log has shrunk");
        let report = self.taking.checkpoint()?;
        self.covered_bytes.fetch_max(bytes, Ordering::AcqRel);
        work(&self.taking, report)
    }

    /// The bytes of the log that would have to be replayed, were it not for checkpoints.
    fn log_bytes(&self) -> u64 {
        self.taking.log.stats().bytes + self.replayed_bytes
    }

    /// The bytes of the log since the last checkpoint, and some for those of loads: their pages are not read when they are replayed, but
    /// indexes have no images of their rows.
    fn grown_bytes(&self) -> u64 {
        let grown = self.log_bytes().saturating_sub(self.covered_bytes.load(Ordering::Acquire));
        grown + self.taking.checkpoints.load_bytes() / LOAD_PART
    }

    /// Takes the last checkpoint, so that opening the database again has little to replay. Ranges that are full become base pages
    /// first, which take fewer bytes and are not read before they are used.
    fn close(&self) {
        let is_due = || self.grown_bytes() > REPLAYED_AT_REST || indexes::is_due(&self.taking.core);
        if !self.taking.log.is_read_only() && is_due() {
            merger::merge_full(&self.taking.core);
            // Where it fails the log has everything.
            let _taken = self.with_checkpoint(|_, _| Ok(()));
        }
    }

    fn work(&self) {
        let mut failed: Option<Instant> = None;
        let (budget, mut rest_from_memory) = (&self.taking.core.budget, (Instant::now(), Duration::ZERO));
        let mut is_stopping = self.is_stopping.lock();
        while !*is_stopping {
            self.stopped.wait_for(&mut is_stopping, REST);
            // After a checkpoint the redo of transactions that run has to be replayed as before.
            let grown = self.grown_bytes().saturating_sub(self.taking.core.running_redo.load(Ordering::Relaxed));
            let is_patient = failed.is_some_and(|failed| failed.elapsed() < REST_AFTER_FAILURE);
            let (ended, rest) = rest_from_memory;
            let is_wanted = ended.elapsed() >= rest && budget.is_crowded() && budget.take_lack_of_blobs();
            if *is_stopping || (grown < self.due_bytes && !is_wanted) || is_patient {
                continue;
            }
            drop(is_stopping);
            // As base pages they take fewer bytes. The merge threads are about to do it where they are not.
            merger::merge_full(&self.taking.core);
            // A failure leaves the log as it is, and is reported to the next caller that asks for a checkpoint.
            let taken = self.with_checkpoint(|_, report| Ok(report.time));
            failed = taken.is_err().then(Instant::now);
            rest_from_memory = (Instant::now(), REST_FROM_MEMORY * taken.unwrap_or_default());
            budget.evict_to_reserve();
            is_stopping = self.is_stopping.lock();
        }
    }
}

impl Drop for Checkpointer {
    fn drop(&mut self) {
        *self.state.is_stopping.lock() = true;
        self.state.stopped.notify_all();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was printed when it happened; closing goes on without it.
            let _ = thread.join();
        }
        self.state.close();
    }
}
