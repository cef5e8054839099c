//! The words of a heap under software transactional memory.
//!
//! Hathi takes TinySTM; this is the same family, in its lazy form:
//!
//! ```text
//!   words    | w0 w1 w2 w3 | w4 w5 w6 w7 | ...          four words under
//!   records  |     r0      |     r1      | ...          one ownership record:  version << 1, or owner << 1 | 1
//!   clock    one number: the LSN of the last commit, and the version of what it wrote
//!
//!   read     record, word, record again: the same, not owned, and not newer than the snapshot
//!            newer: extend the snapshot to now, if everything read so far is still as it was
//!   write    kept aside
//!   commit   own the records of the writes; take the next LSN from the clock; is what was read as it was?
//!            write the words; the records get the LSN as their version
//! ```
//!
//! | choice | here | why |
//! |---|---|---|
//! | granularity | words, four to a record | as TinySTM |
//! | writes | kept aside until the commit | redo is what the log wants; an abort has nothing to undo |
//! | ownership | taken at commit | nothing is owned while a transaction computes or waits for the disk |
//! | reads | invisible, validated | no read writes a cache line that others read |
//! | snapshot | extended where possible (TinySTM's lazy snapshot) | a long transaction survives commits beside it |
//! | clock | one counter, which is the LSN (section 4) | version order, serial order and log order are one |
//!
//! **Opacity.** Whatever a transaction reads, also one that will not commit, is the state at its snapshot. A commit
//! that changes a word owned its record before it took its LSN from the clock. So a transaction that has seen the
//! clock at or after this LSN finds the record owned, or newer; and one that reads the record unchanged around the
//! word has read what stood there at the snapshot.
//!
//! **Serial order is LSN order.** The LSN is taken with all records owned, and validated after it: a transaction that
//! writes what we have read has a higher LSN, or we see its record owned or newer and do not commit. Our number is then
//! void, and the log is told so.

use std::ops::Range;

use durability::Lsn;
use snapshot::{Snapshot, SnapshotError};
use sync::CachePadded;
use sync::atomic::{AtomicU64, Ordering};
use sync::hint::SpinWait;
use sync::zeroed_atomics;

use crate::sets::{OwnershipRead, Sets};
use crate::words::{CheckpointCopy, WordWriter, Words};

/// Words under one record.
pub(crate) const STRIPE_WORDS: u64 = 4;
/// More records than this gain nothing: words that are far apart share.
const RECORDS_MAX: u64 = 1 << 22;
/// Waits for a record that another owns before it counts as a conflict; the last few give way to its owner.
const WAITS: u32 = 16;
/// A copy that was overtaken so often owns what it copies.
const COPY_ATTEMPTS: u32 = 4;

/// A transaction met another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Conflict;

/// The words, their records, the clock.
pub(crate) struct Memory {
    words: Words,
    records: Box<[AtomicU64]>,
    clock: CachePadded<AtomicU64>,
}

impl Memory {
    /// `words` zeros, of which snapshots are taken where `copy` asks for them. The system gives memory only to those that are touched.
    ///
    /// # Errors
    /// Where the system gives no memory of which snapshots can be taken.
    pub(crate) fn new(words: u64, copy: CheckpointCopy) -> Result<Memory, SnapshotError> {
        Ok(Memory::of(Words::new(words as usize, copy)?))
    }

    /// `words` zeros without snapshots.
    pub(crate) fn plain(words: u64) -> Memory {
        Memory::of(Words::plain(words as usize))
    }

    fn of(words: Words) -> Memory {
        let records = (words.len() as u64).div_ceil(STRIPE_WORDS).next_power_of_two().min(RECORDS_MAX);
        Memory { words, records: zeroed_atomics(records as usize), clock: CachePadded::new(AtomicU64::new(0)) }
    }

    /// Runs a commit, from before it takes its LSN until its words are written. Snapshots have it as a whole.
    #[inline]
    pub(crate) fn commit<R>(&self, commit: impl FnOnce(&mut WordWriter<'_, '_, '_>) -> R) -> R {
        self.words.commit(commit)
    }

    /// All words with exactly the commits up to an LSN, where snapshots are taken.
    pub(crate) fn snapshot(&self) -> Result<Option<(Snapshot<u64>, Lsn)>, SnapshotError> {
        self.words.snapshot(|| self.now())
    }

    pub(crate) fn size_words(&self) -> u64 {
        self.words.len() as u64
    }

    /// The last LSN taken.
    pub(crate) fn now(&self) -> Lsn {
        self.clock.load(Ordering::Acquire)
    }

    /// A word as recovery finds it, while no other thread is there.
    pub(crate) fn get(&self, at: u64) -> u64 {
        self.words.load(at)
    }

    /// Sets a word, while no other thread is there.
    pub(crate) fn set(&self, at: u64, value: u64) {
        self.set_all(std::iter::once((at, value)));
    }

    /// Sets words, while no other thread is there.
    pub(crate) fn set_all(&self, values: impl Iterator<Item = (u64, u64)>) {
        self.words.set_all(values);
    }

    /// Sets the clock, while no other thread is there.
    pub(crate) fn set_clock(&self, lsn: Lsn) {
        self.clock.store(lsn, Ordering::Release);
    }

    fn record_of(&self, at: u64) -> usize {
        (at / STRIPE_WORDS) as usize & (self.records.len() - 1)
    }

    /// The word at the snapshot, which may move on for it. The transaction's own writes are not looked at.
    pub(crate) fn read(&self, sets: &mut Sets, at: u64) -> Result<u64, Conflict> {
        let record = self.record_of(at);
        let mut patience = Patience::default();
        loop {
            let before = self.records[record].load(Ordering::Acquire);
            if is_owned(before) {
                patience.wait()?;
                continue;
            }
            // Acquire keeps the second look behind it, and a thread that reads a new word here also sees its owner
            // there.
            let value = self.words.load(at);
            if self.records[record].load(Ordering::Relaxed) != before {
                continue;
            }
            if version(before) > sets.snapshot {
                self.extend(sets)?;
                continue;
            }
            sets.note_read(record, before);
            return Ok(value);
        }
    }

    /// Moves the snapshot to now, if everything read is still as it was.
    fn extend(&self, sets: &mut Sets) -> Result<(), Conflict> {
        let now = self.now();
        let is_as_it_was = |seen: &OwnershipRead| self.records[seen.record].load(Ordering::Acquire) == seen.word;
        if !sets.reads.iter().all(is_as_it_was) {
            return Err(Conflict);
        }
        sets.snapshot = now;
        Ok(())
    }

    /// Owns the records of all writes, or none. The writes are sorted, so that owners of common records meet at the
    /// first of them.
    pub(crate) fn own_writes(&self, sets: &mut Sets, owner: usize) -> Result<(), Conflict> {
        let owned = self.own_each(sets, owned_by(owner));
        if owned.is_err() {
            self.release(sets);
        }
        sets.owned.sort_unstable_by_key(|owned| owned.record);
        owned
    }

    fn own_each(&self, sets: &mut Sets, mine: u64) -> Result<(), Conflict> {
        let Sets { writes, owned, .. } = sets;
        let mut last = usize::MAX;
        for write in writes.iter() {
            let record = self.record_of(write.at);
            if std::mem::replace(&mut last, record) != record
                && let Some(word) = self.own(record, mine)?
            {
                owned.push(OwnershipRead { record, word });
            }
        }
        Ok(())
    }

    /// Owns one record. Returns what stood there, nothing if it is owned already.
    fn own(&self, record: usize, mine: u64) -> Result<Option<u64>, Conflict> {
        let mut patience = Patience::default();
        loop {
            let word = self.records[record].load(Ordering::Relaxed);
            if word == mine {
                return Ok(None);
            }
            if is_owned(word) {
                patience.wait()?;
                continue;
            }
            let exchanged =
                self.records[record].compare_exchange(word, mine, Ordering::Acquire, Ordering::Relaxed).is_ok();
            if exchanged {
                return Ok(Some(word));
            }
        }
    }

    /// The LSN of a transaction that owns all it will write. The log has to hear of it, whatever becomes of the
    /// transaction.
    pub(crate) fn next_lsn(&self) -> Lsn {
        // Release: a thread that sees this LSN sees the records owned. Acquire: we see those of every commit before
        // ours.
        self.clock.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// Whether what was read is as it was, now that `lsn` is ours.
    pub(crate) fn validate(&self, sets: &Sets, lsn: Lsn, owner: usize) -> bool {
        // No other transaction has committed in between.
        if lsn == sets.snapshot + 1 {
            return true;
        }
        let mine = owned_by(owner);
        sets.reads.iter().all(|seen| {
            let word = self.records[seen.record].load(Ordering::Relaxed);
            word == seen.word || (word == mine && sets.before(seen.record) == Some(seen.word))
        })
    }

    /// Writes the words and gives the records back with their new version.
    pub(crate) fn publish(&self, sets: &mut Sets, lsn: Lsn, writer: &mut WordWriter<'_, '_, '_>) {
        // A thread that reads a word sees that its record was owned.
        sets.writes.iter().for_each(|write| writer.store(write.at, write.value));
        for owned in sets.owned.drain(..) {
            self.records[owned.record].store(lsn << 1, Ordering::Release);
        }
    }

    /// Gives the records back as they were.
    pub(crate) fn release(&self, sets: &mut Sets) {
        for owned in sets.owned.drain(..) {
            self.records[owned.record].store(owned.word, Ordering::Release);
        }
    }

    /// Copies a run of words as a transaction that only reads does. Returns the LSN at which the words were so: exactly
    /// the commits up to it are in the copy.
    ///
    /// Where commits keep overtaking it the last attempt owns the records for the moment of the copy, as a writer does,
    /// so that the copy of a busy place comes to an end.
    pub(crate) fn copy(&self, run: Range<u64>, into: &mut Vec<u64>, owner: usize) -> Lsn {
        let mut sets = Sets::fresh(self.now());
        let attempts = if cfg!(loom) { 1 } else { COPY_ATTEMPTS };
        for _ in 0..attempts {
            into.clear();
            if run.clone().try_for_each(|at| self.read(&mut sets, at).map(|value| into.push(value))).is_ok() {
                let lsn = sets.snapshot;
                Sets::recycle(sets);
                return lsn;
            }
            sets.restart(self.now());
        }
        into.clear();
        let lsn = self.copy_owned(run, into, &mut sets, owner);
        Sets::recycle(sets);
        lsn
    }

    /// Copies words at one moment as [`copy`](Self::copy) does, by owning their records.
    pub(crate) fn copy_owned(&self, run: Range<u64>, into: &mut Vec<u64>, sets: &mut Sets, owner: usize) -> Lsn {
        let mine = owned_by(owner);
        let mut wait = SpinWait::new();
        for at in run.clone().step_by(STRIPE_WORDS as usize) {
            let record = self.record_of(at);
            // Committers wait for no other without end, so we may.
            loop {
                match self.own(record, mine) {
                    Ok(Some(word)) => break sets.owned.push(OwnershipRead { record, word }),
                    Ok(None) => break,
                    Err(Conflict) => wait.pause(),
                }
            }
        }
        // A commit with an LSN up to this one has written its words, or none of these.
        let lsn = self.now();
        into.extend(run.map(|at| self.words.load(at)));
        self.release(sets);
        lsn
    }
}

/// How long a transaction waits for the owner of a record.
#[derive(Default)]
struct Patience {
    waits: u32,
    wait: SpinWait,
}

impl Patience {
    fn wait(&mut self) -> Result<(), Conflict> {
        self.waits += 1;
        let waits = if cfg!(loom) { 2 } else { WAITS };
        if self.waits > waits {
            return Err(Conflict);
        }
        self.wait.pause();
        Ok(())
    }
}

fn is_owned(word: u64) -> bool {
    word & 1 == 1
}

fn version(word: u64) -> Lsn {
    word >> 1
}

fn owned_by(owner: usize) -> u64 {
    (owner as u64) << 1 | 1
}

impl std::fmt::Debug for Memory {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Memory")
            .field("words", &self.words.len())
            .field("records", &self.records.len())
            .field("now", &self.now())
            .finish()
    }
}
