//! The words of a heap: plain ones, or an array of which snapshots are taken ([`CheckpointCopy`]).
//!
//! Where snapshots are taken, a commit is a batch of the array from before it takes its LSN until its words are written: so a snapshot
//! has every commit up to the LSN of its instant as a whole, and none after it. What may fail about an update, keeping its page for a
//! snapshot, is done before the LSN is taken; no snapshot begins in between.
use snapshot::{Batch, Mechanism, Options, Snapshot, SnapshotArray, SnapshotError};
use sync::atomic::{AtomicU64, Ordering, fence};
use sync::zeroed_atomics;

use crate::sets::Sets;

/// How a checkpoint gets its copy of the words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CheckpointCopy {
    /// Chunk by chunk, each by a transaction that only reads, as the paper has it: commits wait for nothing, and copies begin
    /// again where commits overtake them.
    #[default]
    Chunks,
    /// All at one moment, by a snapshot of the memory (crate `snapshot`, by rewiring): commits wait while it begins, and each page
    /// is copied by the first commit that writes to it while the checkpoint lasts.
    Snapshot,
}

/// See the module.
pub(crate) enum Words {
    Plain(Box<[AtomicU64]>),
    Array(SnapshotArray<u64>),
}

impl Words {
    /// So many zeros without snapshots.
    pub(crate) fn plain(len: usize) -> Words {
        Words::Plain(zeroed_atomics(len))
    }

    /// So many zeros.
    pub(crate) fn new(len: usize, copy: CheckpointCopy) -> Result<Words, SnapshotError> {
        Ok(match copy {
            CheckpointCopy::Chunks => Words::plain(len),
            CheckpointCopy::Snapshot => Words::Array(SnapshotArray::new(len, &Options::of(Mechanism::Rewire))?),
        })
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Words::Plain(words) => words.len(),
            Words::Array(words) => words.len(),
        }
    }

    /// A word; what was written before it is seen, too.
    #[inline]
    pub(crate) fn load(&self, at: u64) -> u64 {
        match self {
            Words::Plain(words) => words[at as usize].load(Ordering::Acquire),
            Words::Array(words) => {
                let word = words.get(at as usize).expect("the caller knows the length");
                fence(Ordering::Acquire);
                word
            }
        }
    }

    /// Sets words while no other thread is there, and no snapshot.
    pub(crate) fn set_all(&self, values: impl Iterator<Item = (u64, u64)>) {
        match self {
            Words::Plain(words) => {
                values.for_each(|(at, value)| words[at as usize].store(value, Ordering::Relaxed));
            }
            Words::Array(words) => {
                let mut writer = words.writer();
                for (at, value) in values {
                    writer.set(at as usize, value).expect("the caller knows the length, and nothing is to be kept");
                }
            }
        }
    }

    /// Runs a commit, from before it takes its LSN until its words are written.
    #[inline]
    pub(crate) fn commit<R>(&self, commit: impl FnOnce(&mut WordWriter<'_, '_, '_>) -> R) -> R {
        match self {
            Words::Plain(words) => commit(&mut WordWriter::Plain(words)),
            Words::Array(words) => words.writer().batch(|batch| commit(&mut WordWriter::Batch(batch))),
        }
    }

    /// All words as of an instant at which no commit is under way, with what `at` tells then; `None` of plain words.
    pub(crate) fn snapshot<T>(&self, at: impl FnOnce() -> T) -> Result<Option<(Snapshot<u64>, T)>, SnapshotError> {
        match self {
            Words::Plain(_) => Ok(None),
            Words::Array(words) => words.snapshot_with(at).map(Some),
        }
    }
}

/// Writes the words of one commit.
pub(crate) enum WordWriter<'words, 'writer, 'batch> {
    Plain(&'batch [AtomicU64]),
    Batch(&'batch mut Batch<'words, 'writer, u64>),
}

impl WordWriter<'_, '_, '_> {
    /// Sees to it that [`store`](Self::store) cannot fail for these writes.
    pub(crate) fn prepare(&mut self, sets: &Sets) -> Result<(), SnapshotError> {
        match self {
            WordWriter::Plain(_) => Ok(()),
            WordWriter::Batch(batch) => {
                sets.writes.iter().try_for_each(|write| batch.update(write.at as usize, |word| word).map(drop))
            }
        }
    }

    /// Writes a word; a thread that reads it sees all that came before.
    #[inline]
    pub(crate) fn store(&mut self, at: u64, value: u64) {
        match self {
            WordWriter::Plain(words) => words[at as usize].store(value, Ordering::Release),
            WordWriter::Batch(batch) => {
                fence(Ordering::Release);
                batch.set(at as usize, value).expect("its page was kept, and no snapshot has begun since");
            }
        }
    }
}
