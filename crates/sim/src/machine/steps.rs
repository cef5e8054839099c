//! The steps of a thread.
//!
//! A step happens at the moment of the thread's clock: words are read and written then, and the clock goes on by what the step
//! costs. The scheduler takes the threads in the order of their clocks, so that steps happen in the order of time.

use super::cache::LineNumber;
use super::state::{Aborted, Address, LINE_WORDS, Machine, NOBODY};
use latches::elision::AbortCause;

/// A step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Reads a word whose address needed the loads before it.
    Load(Address),
    /// Reads a word whose address was known: it is on its way together with those before it.
    LoadAhead(Address),
    /// Writes a word.
    Store(Address, u64),
    /// Writes a word if it has the first value; answers what it had.
    CompareAndSwap(Address, u64, u64),
    /// Adds to a word; answers what it had.
    FetchAdd(Address, u64),
    /// Computes for so many cycles.
    Compute(u64),
    /// Sleeps while a word has a value.
    WaitWhile(Address, u64),
    /// Begins a transaction.
    Begin,
    /// Ends it with its effects.
    Commit,
    /// Ends it without.
    Abort(AbortCause),
}

#[inline]
fn line_of(at: Address) -> LineNumber {
    (at / LINE_WORDS) as LineNumber
}

impl Machine {
    /// Does a step of a thread; its answer, or 0. None if the thread has gone to sleep, or waits for its stores: the step is to
    /// be done again when its moment has come.
    ///
    /// # Errors
    /// If the thread's transaction has been aborted, before or by this step. The thread is in no transaction then.
    #[inline]
    pub fn step(&mut self, thread: usize, step: Step) -> Option<Result<u64, Aborted>> {
        let me = &mut self.threads[thread];
        if me.clock >= me.next_interrupt {
            self.interrupt(thread);
        }
        if self.threads[thread].aborted.is_some() {
            return Some(Err(self.tell_abort(thread)));
        }
        if matches!(step, Step::Commit | Step::CompareAndSwap(..) | Step::FetchAdd(..)) && self.waits_for_stores(thread)
        {
            return None;
        }
        let answer = match step {
            Step::Load(at) => self.load(thread, at),
            Step::LoadAhead(at) => self.load_ahead(thread, at),
            Step::Store(at, value) => self.store(thread, at, value),
            Step::CompareAndSwap(at, expected, new) => self.atomic(thread, at, |old| (old == expected).then_some(new)),
            Step::FetchAdd(at, value) => self.atomic(thread, at, |old| Some(old.wrapping_add(value))),
            Step::Compute(cycles) => {
                let me = &mut self.threads[thread];
                me.clock += cycles * me.percent / 100;
                0
            }
            Step::WaitWhile(at, value) => {
                let found = self.load(thread, at);
                if found == value && self.threads[thread].aborted.is_none() {
                    self.sleep(thread, line_of(at));
                    return None;
                }
                found
            }
            Step::Begin | Step::Commit | Step::Abort(_) => {
                self.bound(thread, step);
                0
            }
        };
        if self.threads[thread].aborted.is_some() {
            return Some(Err(self.tell_abort(thread)));
        }
        Some(Ok(answer))
    }

    /// Whether a thread waits until a line has come to the core that it is on its way to. That core does the step that needed the
    /// line, and its next one if that begins at once; then the line is taken. So is it where lines migrate; the step is to be done
    /// again.
    #[inline]
    pub(crate) fn waits_for_owner(&mut self, thread: usize, step: Step) -> bool {
        if !self.config.lines_migrate {
            return false;
        }
        let (Step::Load(at) | Step::CompareAndSwap(at, ..) | Step::FetchAdd(at, _) | Step::WaitWhile(at, _)) = step
        else {
            return false;
        };
        let entry = &self.lines[line_of(at) as usize];
        let me = &mut self.threads[thread];
        let is_coming = entry.owner != NOBODY && usize::from(entry.owner) != me.core && entry.busy_until > me.clock;
        if is_coming {
            me.clock = entry.busy_until + 1;
            me.has_asked = true;
        }
        is_coming
    }

    #[inline]
    fn load(&mut self, thread: usize, at: Address) -> u64 {
        let line = line_of(at);
        let cost = self.access(thread, line, false);
        let me = &mut self.threads[thread];
        me.clock = me.clock.max(me.arrived_at) + me.issue + cost;
        if me.is_in_transaction {
            self.track_read(thread, line);
        }
        self.words[at as usize]
    }

    /// As many loads as a core has line fill buffers are on their way at once.
    fn load_ahead(&mut self, thread: usize, at: Address) -> u64 {
        let line = line_of(at);
        let cost = self.access(thread, line, false);
        let loads = self.config.loads_ahead;
        let me = &mut self.threads[thread];
        me.clock += me.issue;
        me.arrived_at = me.arrived_at.max(me.clock + cost);
        me.clock += cost / loads;
        if me.is_in_transaction {
            self.track_read(thread, line);
        }
        self.words[at as usize]
    }

    #[inline]
    fn atomic(&mut self, thread: usize, at: Address, change: impl FnOnce(u64) -> Option<u64>) -> u64 {
        let line = line_of(at);
        let cost = self.access(thread, line, true) + self.config.latencies.atomic;
        let me = &mut self.threads[thread];
        me.clock = me.clock.max(me.arrived_at) + me.issue + cost;
        self.change(thread, line, at, change)
    }

    /// The store buffer takes the word, and the thread goes on while the line is on its way.
    #[inline]
    fn store(&mut self, thread: usize, at: Address, value: u64) -> u64 {
        let line = line_of(at);
        let cost = self.access(thread, line, true);
        let me = &mut self.threads[thread];
        me.clock += me.issue;
        me.drained_at = me.drained_at.max(me.clock + cost);
        me.clock += me.l1.min(cost);
        self.change(thread, line, at, |_| Some(value))
    }

    /// Whether a thread waits until all its stores own their lines. Its clock goes on until then, and the step is to be done again:
    /// others may abort the transaction meanwhile.
    #[inline]
    fn waits_for_stores(&mut self, thread: usize) -> bool {
        let me = &mut self.threads[thread];
        let waits = me.drained_at > me.clock;
        if waits {
            // What has waited begins only now: the core that asks for the line next may be faster.
            let begins = if self.config.lines_migrate { self.config.latencies.atomic } else { 0 };
            me.clock = me.drained_at + begins;
        }
        waits
    }

    /// Changes a word of a line that the core owns; what the word was. A line that left L1 may have aborted the transaction itself:
    /// nothing is written then.
    #[inline]
    fn change(&mut self, thread: usize, line: LineNumber, at: Address, change: impl FnOnce(u64) -> Option<u64>) -> u64 {
        let me = &self.threads[thread];
        if me.aborted.is_some() {
            return 0;
        }
        let old = self.words[at as usize];
        let is_in_transaction = me.is_in_transaction;
        self.lines[line as usize].is_modified = true;
        if is_in_transaction {
            self.track_write(thread, line, at);
        } else if self.lines[line as usize].is_watched {
            self.wake(line, self.threads[thread].clock);
        }
        if let Some(new) = change(old) {
            self.words[at as usize] = new;
        }
        old
    }

    /// The bounds of a transaction.
    fn bound(&mut self, thread: usize, step: Step) {
        let costs = self.config.transactions;
        let me = &mut self.threads[thread];
        match step {
            Step::Begin => {
                assert!(!me.is_in_transaction, "transactions do not nest");
                me.is_in_transaction = true;
                me.counters.begins += 1;
                me.clock += costs.begin;
            }
            Step::Commit => {
                assert!(me.is_in_transaction, "a transaction is running");
                me.clock += costs.commit;
                self.commit(thread);
            }
            Step::Abort(cause) => {
                assert!(me.is_in_transaction, "a transaction is running");
                self.abort(thread, cause);
            }
            _ => {}
        }
    }

    #[cold]
    fn tell_abort(&mut self, thread: usize) -> Aborted {
        let cost = self.config.transactions.abort;
        let me = &mut self.threads[thread];
        me.clock += cost;
        // What is still on its way is of no use any more.
        me.drained_at = 0;
        me.arrived_at = 0;
        me.aborted.take().unwrap_or(Aborted::by(AbortCause::Other))
    }

    #[cold]
    fn interrupt(&mut self, thread: usize) {
        let costs = self.config.transactions;
        let me = &mut self.threads[thread];
        me.next_interrupt = me.clock + costs.interrupt + me.random.interval(costs.interrupt_period);
        me.clock += costs.interrupt;
        if me.is_in_transaction {
            self.abort(thread, AbortCause::Other);
        }
    }

    #[cold]
    fn sleep(&mut self, thread: usize, line: LineNumber) {
        assert!(!self.threads[thread].is_in_transaction, "nothing changes for a thread in a transaction");
        self.lines[line as usize].is_watched = true;
        self.sleepers.push((line, thread));
        self.threads[thread].is_asleep = true;
    }

    /// Wakes the threads that sleep until a line is written.
    #[cold]
    pub(super) fn wake(&mut self, line: LineNumber, now: u64) {
        self.lines[line as usize].is_watched = false;
        let threads = &mut self.threads;
        let woken = &mut self.woken;
        self.sleepers.retain(|&(watched, thread)| {
            if watched == line {
                let sleeper = &mut threads[thread];
                sleeper.is_asleep = false;
                sleeper.clock = sleeper.clock.max(now);
                woken.push(thread);
            }
            watched != line
        });
    }
}
