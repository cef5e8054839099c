//! Checkpoints of a heap: Hathi's Algorithm 1.
//!
//! ```text
//!   write the header of the last checkpoint again, if it was only read so far
//!   zero the header of the other file
//!   for each chunk of the heap
//!       copy it by a transaction that only reads; its LSN is the last one that it may have read from
//!       write it
//!   wait until the LSN of the newest chunk is stable             write-ahead: what a chunk holds is in the log
//!   sync the chunks, then write the header
//!   give up the log before the oldest chunk of the checkpoint before this one
//! ```
//!
//! Where it is asked for ([`CheckpointCopy::Snapshot`](crate::CheckpointCopy)), all chunks are copied from a snapshot of the memory
//! instead, and are of one moment; commits wait while the snapshot begins.
//!
//! No transaction waits for a checkpoint otherwise. Chunks are of different moments, and recovery takes each on from its own
//! LSN.
//!
//! Two differences to the paper. A chunk's transaction takes no number of its own: what it has read ends at a number that
//! others took. And the log is kept from the *older* of the two checkpoints on, so that damage to the newer one loses
//! nothing; the paper gives up both the older one and its log.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use durability::{Device, Log, Lsn};

use crate::error::HeapResult;
use crate::image::{self, FILES, Header, Writer};
use crate::{Count, HeapState};

/// The state of the heap's checkpoints.
#[derive(Debug, Default)]
pub(crate) struct Checkpoints {
    /// The newest one, and the place of its file.
    pub(crate) newest: Option<(usize, Header)>,
    /// The newest header may not be on disk.
    pub(crate) is_unconfirmed: bool,
    /// The highest number ever seen.
    pub(crate) number: u64,
}

/// A finished checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FinishedCheckpoint {
    /// Its number, from 1.
    pub number: u64,
    /// The words that it holds; all others are zero.
    pub words: u64,
    /// The LSN of its oldest chunk: recovery goes on from here.
    pub first: Lsn,
    /// The LSN of its newest chunk.
    pub last: Lsn,
    /// Files of the log that were given up.
    pub trimmed_segments: u64,
}

impl HeapState {
    /// Takes a checkpoint; see the head of the module.
    pub(crate) fn checkpoint(&self, log: &Log, device: &dyn Device) -> HeapResult<FinishedCheckpoint> {
        let mut checkpoints = self.checkpoints.lock();
        let before = checkpoints.newest;
        if let Some((file, header)) = before
            && checkpoints.is_unconfirmed
        {
            image::confirm(device, FILES[file], &header)?;
            checkpoints.is_unconfirmed = false;
        }
        let file = before.map_or(0, |(file, _)| 1 - file);
        checkpoints.number += 1;
        let mut writer = Writer::begin(device, FILES[file])?;
        // The words behind all chunks are zero at this LSN: a transaction that has a lower one and uses them has
        // moved the frontier.
        let whole = self.memory.snapshot()?;
        let now = whole.as_ref().map_or_else(|| self.memory.now(), |(_, lsn)| *lsn);
        let words = self.allocator.frontier();
        let chunk_words = self.chunk_words;
        let mut header = Header { number: checkpoints.number, chunk_words, words, first: now, last: now };
        let (thread, mut copy) = (sync::thread_slot(), Vec::new());
        for chunk in 0..header.chunks() {
            let run = header.run(chunk);
            let lsn = match &whole {
                None => self.memory.copy(run, &mut copy, thread),
                Some((snapshot, lsn)) => {
                    copy.resize((run.end - run.start) as usize, 0);
                    snapshot.read(run.start as usize, &mut copy)?;
                    *lsn
                }
            };
            writer.write_chunk(&header, chunk, lsn, &copy)?;
            header.last = header.last.max(lsn);
        }
        drop(whole);
        self.wait_stable(header.last)?;
        writer.finish(&header)?;
        (checkpoints.newest, checkpoints.is_unconfirmed) = (Some((file, header)), false);
        self.counts.add(Count::Checkpoints as usize, 1);
        let trimmed_segments = match before {
            Some((_, before)) => log.trim(before.first + 1)?,
            None => 0,
        };
        let Header { number, first, last, .. } = header;
        Ok(FinishedCheckpoint { number, words, first, last, trimmed_segments })
    }
}

/// The thread that takes a checkpoint from time to time; ends when dropped.
pub(crate) struct Checkpointer {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Checkpointer {
    pub(crate) fn start(shared: &Arc<HeapState>, interval: Duration) -> std::io::Result<Checkpointer> {
        let is_over = Arc::new(AtomicBool::new(false));
        let (shared, over) = (Arc::downgrade(shared), is_over.clone());
        let work = move || run(&shared, &over, interval);
        let thread = std::thread::Builder::new().name("heap-checkpoints".to_string()).spawn(work)?;
        Ok(Checkpointer { is_over, thread: Some(thread) })
    }
}

impl Drop for Checkpointer {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A panic of the thread has left a checkpoint unfinished, as a crash does.
            let _ = thread.join();
        }
    }
}

fn run(shared: &Weak<HeapState>, is_over: &AtomicBool, interval: Duration) {
    let mut until = Instant::now() + interval;
    while !is_over.load(Ordering::Acquire) {
        let left = until.saturating_duration_since(Instant::now());
        if !left.is_zero() {
            std::thread::park_timeout(left);
            continue;
        }
        let Some(shared) = shared.upgrade() else {
            return;
        };
        if let (Some(log), Some(device)) = (&shared.log, &shared.device) {
            // One that failed is no checkpoint; the log has all that it would have held. There is a next time.
            let _ = shared.checkpoint(log, &**device);
        }
        until = Instant::now() + interval;
    }
}
