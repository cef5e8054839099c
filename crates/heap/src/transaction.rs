//! A transaction on a heap: read, write, allocate, free, then commit or abort.
//!
//! ```text
//!   commit   sort the writes, put their redo together
//!            reserve room in the log                  may wait for the disk; nothing is owned yet
//!            own the records of the writes            or conflict
//!            take the next LSN, validate the reads    or void the LSN and conflict
//!            append the redo                          into the room reserved: nothing is waited for
//!            write the words, give the records back   others may see them from here on
//!   then     wait for the disk as the mode says; or later, which is the split-phase commit
//! ```
//!
//! The redo stands in the log before any other transaction sees the words: so what a transaction has read stands
//! before what it appends, in whichever partition, and partition commits that share a partition may depend on each
//! other.

use std::marker::PhantomData;

use durability::{CommitLocation, CommitMode, Log, Lsn};

use crate::HeapState;
use crate::allocator::{BLOCKS_START, Block, Found};
use crate::error::{HeapError, HeapResult};
use crate::memory::Conflict;
use crate::reference::HeapRef;
use crate::sets::Sets;
use crate::{Count, redo};

/// A transaction that has not ended. Dropped without a commit it is aborted: nothing of it has happened.
///
/// Whatever it reads is the state of the heap at one moment, with its own writes on top, also when it is bound to meet a
/// conflict. After a conflict every call fails with [`HeapError::Conflict`].
pub struct Transaction<'heap> {
    shared: &'heap HeapState,
    /// There until the transaction has ended.
    sets: Option<Box<Sets>>,
    thread: usize,
    is_doomed: bool,
    /// Keeps the transaction on its thread, which names it while it commits.
    _stays_on_its_thread: PhantomData<*const ()>,
}

/// A transaction that has committed in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommittedTransaction {
    /// Its LSN; of one that only read, the last LSN that it may have read from.
    pub lsn: Lsn,
    /// The mode that it committed with.
    pub mode: CommitMode,
    /// Its place in the log; `None` where it wrote nothing, or the heap has no log.
    pub(crate) appended: Option<CommitLocation>,
    pub(crate) has_written: bool,
}

impl CommittedTransaction {
    /// Whether it has written.
    pub fn has_written(&self) -> bool {
        self.has_written
    }
}

impl<'heap> Transaction<'heap> {
    pub(crate) fn begin(shared: &'heap HeapState) -> Transaction<'heap> {
        let (sets, thread) = (Some(Sets::fresh(shared.memory.now())), sync::thread_slot());
        Transaction { shared, sets, thread, is_doomed: false, _stays_on_its_thread: PhantomData }
    }

    /// Begins anew, as if nothing had happened.
    pub(crate) fn restart(&mut self) {
        self.give_back_taken();
        let now = self.shared.memory.now();
        self.sets().restart(now);
        self.is_doomed = false;
    }

    /// Whether it met a conflict.
    pub(crate) fn is_doomed(&self) -> bool {
        self.is_doomed
    }

    /// The word at a place.
    ///
    /// # Errors
    /// [`HeapError::Conflict`] if another transaction has committed what this one may not see together with what it
    /// has read, or holds the word for too long; [`HeapError::OutOfBounds`] if `at` is null or not in the heap.
    #[inline]
    pub fn read(&mut self, at: HeapRef) -> HeapResult<u64> {
        let at = self.checked(at)?;
        let (shared, sets) = (self.shared, self.sets());
        if !sets.writes.is_empty()
            && let Some(value) = sets.writes.get(at)
        {
            return Ok(value);
        }
        shared.memory.read(sets, at).map_err(|Conflict| self.doom())
    }

    /// The words from a place on.
    ///
    /// # Errors
    /// As [`read`](Self::read); `into` may have been filled in part.
    pub fn read_words(&mut self, from: HeapRef, into: &mut [u64]) -> HeapResult<()> {
        (0..).zip(into).try_for_each(|(offset, word)| self.read(from.at(offset)).map(|value| *word = value))
    }

    /// The reference that stands at a place.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_ref(&mut self, at: HeapRef) -> HeapResult<HeapRef> {
        self.read(at).map(HeapRef::from_word)
    }

    /// Writes the word at a place. Others see it once the transaction has committed.
    ///
    /// # Errors
    /// [`HeapError::Conflict`] after one; [`HeapError::OutOfBounds`] if `at` is null or not in the heap. A word of
    /// the heap that belongs to no block yet is refused by the commit.
    #[inline]
    pub fn write(&mut self, at: HeapRef, value: u64) -> HeapResult<()> {
        let at = self.checked(at)?;
        self.sets().writes.put(at, value);
        Ok(())
    }

    /// Writes words from a place on.
    ///
    /// # Errors
    /// As [`write`](Self::write); some of the words may have been written.
    pub fn write_words(&mut self, from: HeapRef, words: &[u64]) -> HeapResult<()> {
        (0..).zip(words).try_for_each(|(offset, &word)| self.write(from.at(offset), word))
    }

    /// Writes a reference.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn write_ref(&mut self, at: HeapRef, to: HeapRef) -> HeapResult<()> {
        self.write(at, to.to_word())
    }

    /// The reference in root `number`: the way into the heap after it was opened.
    ///
    /// # Panics
    /// If there is no such root: see [`Heap::ROOTS`](crate::Heap::ROOTS).
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn root(&mut self, number: usize) -> HeapResult<HeapRef> {
        self.read_ref(root_at(number))
    }

    /// Sets root `number`.
    ///
    /// # Panics
    /// If there is no such root: see [`Heap::ROOTS`](crate::Heap::ROOTS).
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn set_root(&mut self, number: usize, to: HeapRef) -> HeapResult<()> {
        self.write_ref(root_at(number), to)
    }

    /// Allocates a block of words, all zero. It is the heap's own again if the transaction does not commit.
    ///
    /// # Errors
    /// - [`HeapError::OutOfSpace`] if there is no room for the block.
    /// - [`HeapError::Conflict`] after a conflict.
    /// - [`HeapError::Log`] if it had to wait until freed blocks are stable, and the log has failed.
    pub fn pmalloc(&mut self, words: u64) -> HeapResult<HeapRef> {
        let block = self.find_block(words)?;
        let sets = self.sets();
        sets.taken.push(block);
        sets.writes.put(block.header_at(), block.header_in_use());
        let place = HeapRef::from_word(block.at);
        if !block.is_zero {
            (0..block.words).for_each(|offset| sets.writes.put(block.at + offset, 0));
        }
        Ok(place)
    }

    /// Frees a block, if the transaction commits. It is given out again when this is stable.
    ///
    /// # Errors
    /// [`HeapError::NotABlock`] if no block in use begins at `at`; [`HeapError::Conflict`] and
    /// [`HeapError::OutOfBounds`] as [`read`](Self::read).
    pub fn pfree(&mut self, at: HeapRef) -> HeapResult<()> {
        let wrong = HeapError::NotABlock { at: at.to_word() };
        if at.to_word() <= BLOCKS_START {
            return Err(wrong);
        }
        let header_at = HeapRef::from_word(at.to_word() - 1);
        let header = self.read(header_at)?;
        let Some((block, true)) = Block::decode(at.to_word(), header) else {
            return Err(wrong);
        };
        let sets = self.sets();
        sets.writes.put(block.header_at(), block.header_free());
        sets.given.push(block);
        Ok(())
    }

    /// Commits, and waits for what the mode promises:
    ///
    /// - sync: this commit and all before it survive a crash. (Of a transaction that only read: all that it has read.)
    /// - async: nothing yet; see [`Heap::is_stable`](crate::Heap::is_stable).
    /// - partition: this commit survives a crash, and so did all that it depends on, if they were partition commits of
    ///   the same thread, or stable. This is for the caller to see to.
    ///
    /// # Errors
    /// - [`HeapError::Conflict`] if another transaction has committed what contradicts this one; nothing has
    ///   happened.
    /// - [`HeapError::OutOfBounds`] if it has written a word that belongs to no block; nothing has happened.
    /// - [`HeapError::Log`] if the log fails. Where there was no space to reserve room for the commit, nothing has
    ///   happened. After any other failure it is not known whether it survives a crash, and unless the disk was full
    ///   the heap takes no more commits.
    pub fn commit(self, mode: CommitMode) -> HeapResult<CommittedTransaction> {
        let shared = self.shared;
        let committed = self.commit_split_phase(mode)?;
        shared.wait(&committed)?;
        Ok(committed)
    }

    /// Commits in memory and returns at once; [`Heap::wait`](crate::Heap::wait) or
    /// [`Heap::is_stable`](crate::Heap::is_stable) is the other half of the commit.
    ///
    /// # Errors
    /// As [`commit`](Self::commit), but for failures to make the commit durable.
    pub fn commit_split_phase(mut self, mode: CommitMode) -> HeapResult<CommittedTransaction> {
        self.try_commit(mode)
    }

    /// Ends the transaction. Nothing of it has happened.
    pub fn abort(self) {
        drop(self);
    }

    /// Commits in memory. After a conflict it can be restarted.
    pub(crate) fn try_commit(&mut self, mode: CommitMode) -> HeapResult<CommittedTransaction> {
        if self.is_doomed {
            return Err(HeapError::Conflict);
        }
        let sets = self.sets.as_mut().expect("it has not ended");
        if sets.writes.is_empty() {
            self.shared.counts.add(Count::ReadOnly as usize, 1);
            return Ok(CommittedTransaction { lsn: sets.snapshot, mode, appended: None, has_written: false });
        }
        self.shared.right_of_way.give(self.thread);
        sets.writes.sort();
        let end = self.shared.allocator.frontier();
        if let Some(last) = sets.writes.as_slice().last().filter(|last| last.at >= end) {
            let at = last.at;
            self.is_doomed = true;
            return Err(HeapError::OutOfBounds { at, end });
        }
        let appended = match &self.shared.log {
            Some(log) => self.commit_logged(log, mode).map(|appended| (appended.lsn, Some(appended))),
            None => self.commit_in_memory().map(|lsn| (lsn, None)),
        };
        let (lsn, appended) = appended?;
        self.shared.counts.add(Count::Commits as usize, 1);
        let sets = self.sets.as_mut().expect("it has not ended");
        sets.taken.clear();
        for block in sets.given.drain(..) {
            self.shared.allocator.put_freed(block, lsn, self.thread);
        }
        Ok(CommittedTransaction { lsn, mode, appended, has_written: true })
    }

    fn commit_logged(&mut self, log: &Log, mode: CommitMode) -> HeapResult<CommitLocation> {
        let (memory, thread) = (&self.shared.memory, self.thread);
        let sets = self.sets.as_mut().expect("it has not ended");
        redo::encode(sets.writes.as_slice(), &mut sets.redo);
        let room = match log.reserve(log.partition_for(mode), sets.redo.len()) {
            Ok(room) => room,
            Err(error) => {
                // Its writes are sorted: it is not to go on.
                self.is_doomed = true;
                return Err(error.into());
            }
        };
        let done = memory.commit(|writer| {
            writer.prepare(sets)?;
            if memory.own_writes(sets, thread).is_err() {
                return Err(HeapError::Conflict);
            }
            let lsn = memory.next_lsn();
            if !memory.validate(sets, lsn, thread) {
                room.void(lsn, lsn);
                memory.release(sets);
                self.shared.counts.add(Count::Voids as usize, 1);
                return Err(HeapError::Conflict);
            }
            let appended = room.commit(lsn, lsn, &sets.redo, mode);
            memory.publish(sets, lsn, writer);
            Ok(appended)
        });
        done.map_err(|error| self.not_committed(error))
    }

    fn commit_in_memory(&mut self) -> HeapResult<Lsn> {
        let (memory, thread) = (&self.shared.memory, self.thread);
        let sets = self.sets.as_mut().expect("it has not ended");
        let done = memory.commit(|writer| {
            writer.prepare(sets)?;
            if memory.own_writes(sets, thread).is_err() {
                return Err(HeapError::Conflict);
            }
            let lsn = memory.next_lsn();
            if !memory.validate(sets, lsn, thread) {
                memory.release(sets);
                return Err(HeapError::Conflict);
            }
            memory.publish(sets, lsn, writer);
            Ok(lsn)
        });
        done.map_err(|error| self.not_committed(error))
    }

    /// Notes that a commit has failed, and nothing of it has happened.
    fn not_committed(&mut self, error: HeapError) -> HeapError {
        match error {
            HeapError::Conflict => self.doom(),
            error => {
                // Its writes are sorted: it is not to go on.
                self.is_doomed = true;
                error
            }
        }
    }

    fn find_block(&mut self, words: u64) -> HeapResult<Block> {
        if self.is_doomed {
            return Err(HeapError::Conflict);
        }
        loop {
            match self.shared.allocator.take(words, self.shared.stable_lsn(), self.thread) {
                Found::Block(block) => return Ok(block),
                Found::Later(lsn) => self.shared.wait_stable(lsn)?,
                Found::Nothing => {
                    let size_words = self.shared.memory.size_words();
                    return Err(HeapError::OutOfSpace { words, size_words });
                }
            }
        }
    }

    fn checked(&self, at: HeapRef) -> HeapResult<u64> {
        if self.is_doomed {
            return Err(HeapError::Conflict);
        }
        let (at, end) = (at.to_word(), self.shared.memory.size_words());
        if at == 0 || at >= end {
            return Err(HeapError::OutOfBounds { at, end });
        }
        Ok(at)
    }

    fn doom(&mut self) -> HeapError {
        self.shared.counts.add(Count::Conflicts as usize, 1);
        self.is_doomed = true;
        HeapError::Conflict
    }

    fn sets(&mut self) -> &mut Sets {
        self.sets.as_mut().expect("it has not ended")
    }

    /// The blocks of a transaction that does not commit.
    fn give_back_taken(&mut self) {
        let (shared, thread) = (self.shared, self.thread);
        self.sets().taken.drain(..).for_each(|block| shared.allocator.put_back(block, thread));
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        self.give_back_taken();
        self.sets.take().into_iter().for_each(Sets::recycle);
    }
}

impl std::fmt::Debug for Transaction<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Transaction").field("is_doomed", &self.is_doomed).finish_non_exhaustive()
    }
}

fn root_at(number: usize) -> HeapRef {
    assert!(number < super::Heap::ROOTS, "root {number} of {}", super::Heap::ROOTS);
    HeapRef::from_word(number as u64 + 1)
}
