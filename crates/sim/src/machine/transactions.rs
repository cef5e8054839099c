//! Best-effort hardware transactions: read and write sets by line, conflicts, rolling back.
//!
//! Writes go to memory at once, and what was there is kept for an abort. Nobody can see them before the commit: an access of
//! another thread to a line in the write set, or a write to a line in the read set, aborts this transaction before it happens
//! (the requester wins), as the coherence protocol does on the processors of tsx-index (section 3.2).

use super::cache::LineNumber;
use super::state::{Aborted, Address, Machine, NOBODY};
use latches::elision::AbortCause;

impl Machine {
    /// Aborts the transactions of others that an access of `thread` to `line` conflicts with.
    #[inline]
    pub(super) fn abort_conflicting(&mut self, thread: usize, line: LineNumber, is_write: bool) {
        let entry = &self.lines[line as usize];
        let has_writer = entry.writer != NOBODY && usize::from(entry.writer) != thread;
        let readers = if is_write { entry.readers & !(1 << thread) } else { 0 };
        if has_writer || readers != 0 {
            self.abort_each(usize::from(entry.writer), has_writer, readers);
        }
    }

    #[cold]
    fn abort_each(&mut self, writer: usize, has_writer: bool, mut readers: u128) {
        if has_writer {
            self.abort(writer, AbortCause::Conflict);
            readers &= !(1 << writer);
        }
        while readers != 0 {
            self.abort(readers.trailing_zeros() as usize, AbortCause::Conflict);
            readers &= readers - 1;
        }
    }

    /// Aborts the transactions on a socket that have the line in a set.
    pub(super) fn abort_all_of(&mut self, socket: usize, line: LineNumber) {
        let entry = self.lines[line as usize];
        let mut threads = entry.readers;
        if entry.writer != NOBODY {
            threads |= 1 << entry.writer;
        }
        while threads != 0 {
            let thread = threads.trailing_zeros() as usize;
            if self.threads[thread].socket == socket {
                self.abort(thread, AbortCause::Overflow);
            }
            threads &= threads - 1;
        }
    }

    /// Rolls a thread's transaction back. The thread hears of it at its next step.
    pub(super) fn abort(&mut self, thread: usize, cause: AbortCause) {
        let me = &mut self.threads[thread];
        debug_assert!(me.is_in_transaction, "a line is in the sets of running transactions only");
        me.aborted = Some(Aborted::by(cause));
        me.counters.aborts[cause as usize] += 1;
        while let Some((at, value)) = self.threads[thread].undo.pop() {
            self.words[at as usize] = value;
        }
        self.leave_sets(thread);
    }

    /// Ends a transaction, with its effects.
    pub(super) fn commit(&mut self, thread: usize) {
        self.threads[thread].counters.commits += 1;
        self.threads[thread].undo.clear();
        for at in 0..self.threads[thread].writes.len() {
            let line = self.threads[thread].writes[at];
            if self.lines[line as usize].is_watched {
                self.wake(line, self.threads[thread].clock);
            }
        }
        self.leave_sets(thread);
    }

    fn leave_sets(&mut self, thread: usize) {
        let me = &mut self.threads[thread];
        me.is_in_transaction = false;
        for line in me.reads.drain(..) {
            self.lines[line as usize].readers &= !(1 << thread);
        }
        for line in me.writes.drain(..) {
            self.lines[line as usize].writer = NOBODY;
        }
    }

    /// Puts a line into the read set.
    #[inline]
    pub(super) fn track_read(&mut self, thread: usize, line: LineNumber) {
        let entry = &mut self.lines[line as usize];
        if entry.readers >> thread & 1 == 0 {
            entry.readers |= 1 << thread;
            self.threads[thread].reads.push(line);
        }
    }

    /// Puts a line into the write set, and keeps a word of it as it is.
    #[inline]
    pub(super) fn track_write(&mut self, thread: usize, line: LineNumber, at: Address) {
        let entry = &mut self.lines[line as usize];
        if usize::from(entry.writer) != thread {
            debug_assert_eq!(entry.writer, NOBODY, "two transactions never write a line");
            entry.writer = thread as u8;
            self.threads[thread].writes.push(line);
        }
        self.threads[thread].undo.push((at, self.words[at as usize]));
    }
}
