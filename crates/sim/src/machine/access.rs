//! What an access to a line costs, and what it does to the caches.
//!
//! ```text
//! read    L1 -> L2 -> an owner elsewhere -> L3 of the socket -> L3 of another socket -> memory
//! write   as above, and all other copies go: those of other sockets cost a hop
//! ```
//!
//! A line that goes to an owner, or leaves one, is busy until it has arrived: the next access from outside waits. So atomic
//! instructions on one line come one after the other, at the pace of transfers (tsx-index, section 2.1.4).
//!
//! L3 holds whatever the cores of its socket hold; a line that leaves L1 stays in L2.

use super::cache::LineNumber;
use super::config::Core;
use super::state::{Machine, NOBODY};
use latches::elision::AbortCause;

/// Where a core finds a line in its own caches.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    L1,
    L2,
    Outside,
}

impl Machine {
    /// An access of a thread to a line; the cycles that it takes. Transactions in its way are aborted before: the requester wins.
    #[inline]
    pub(super) fn access(&mut self, thread: usize, line: LineNumber, is_write: bool) -> u64 {
        self.abort_conflicting(thread, line, is_write);
        let me = &mut self.threads[thread];
        me.counters.accesses += 1;
        let core = me.core;
        let is_allowed = !is_write || usize::from(self.lines[line as usize].owner) == core;
        if self.cores[core].l1.touch(line) {
            if is_allowed {
                return self.threads[thread].l1;
            }
            return self.access_outside(thread, line, is_write, Level::L1);
        }
        me.counters.l1_misses += 1;
        if self.cores[core].l2.touch(line) {
            if is_allowed {
                self.fill_l1(core, line);
                return self.config.latencies.l2;
            }
            return self.access_outside(thread, line, is_write, Level::L2);
        }
        self.threads[thread].counters.l2_misses += 1;
        let cost = self.access_outside(thread, line, is_write, Level::Outside);
        if self.config.prefetches_pairs {
            self.prefetch(thread, line ^ 1);
        }
        cost
    }

    /// The other line of a pair comes into L2 as well, beside what the thread waits for.
    fn prefetch(&mut self, thread: usize, line: LineNumber) {
        let (core, socket) = (self.threads[thread].core, self.threads[thread].socket);
        let Some(&entry) = self.lines.get(line as usize) else { return };
        if entry.sharers >> core & 1 == 1 {
            return;
        }
        self.abort_conflicting(thread, line, false);
        let is_beside = entry.sockets & !(1 << socket) != 0;
        let crosses = if entry.owner != NOBODY {
            usize::from(entry.owner) / self.config.cores_per_socket != socket
        } else {
            entry.sockets >> socket & 1 == 0 && is_beside
        };
        if crosses {
            self.link_free_at = self.link_free_at.max(self.threads[thread].clock) + self.config.latencies.link;
        }
        if entry.owner != NOBODY {
            self.lines[line as usize].owner = NOBODY;
        } else if entry.sharers == 0 && !is_beside {
            self.take_alone(core, line);
        }
        self.fill_from_outside(core, socket, line);
    }

    /// Makes a core that reads a line of no other cache its owner.
    fn take_alone(&mut self, core: Core, line: LineNumber) {
        let entry = &mut self.lines[line as usize];
        entry.owner = core as u8;
        entry.is_modified = false;
    }

    /// Brings all memory into L3, as far as it fits: each line into that of one of these cores' sockets, by chance.
    pub(crate) fn preload(&mut self, cores: &[Core]) {
        for line in 0..self.lines.len() as LineNumber {
            let core = cores[self.random.below(cores.len() as u64) as usize];
            let socket = core / self.config.cores_per_socket;
            if self.lines[line as usize].sockets != 0 {
                continue;
            }
            if let Some(dropped) = self.sockets[socket].insert(line) {
                self.drop_from_socket(socket, dropped);
            }
            self.lines[line as usize].sockets |= 1 << socket;
        }
    }

    /// An access that other caches or the directory hear of.
    fn access_outside(&mut self, thread: usize, line: LineNumber, is_write: bool, level: Level) -> u64 {
        let (core, socket, clock) = {
            let me = &self.threads[thread];
            (me.core, me.socket, me.clock)
        };
        let entry = self.lines[line as usize];
        let has_owner_elsewhere = entry.owner != NOBODY && usize::from(entry.owner) != core;
        let cost = self.cost_outside(thread, line, is_write, level);
        let start = clock.max(entry.busy_until);
        let arrives = entry.sockets >> socket & 1 == 0 && level == Level::Outside;
        if is_write || has_owner_elsewhere || arrives {
            self.lines[line as usize].busy_until = start + cost;
        }
        let migrates = has_owner_elsewhere && entry.is_modified && self.config.lines_migrate;
        if is_write || migrates {
            self.take_from_others(thread, line);
        } else if has_owner_elsewhere {
            self.lines[line as usize].owner = NOBODY;
        } else if entry.sharers == 0 && entry.sockets & !(1 << socket) == 0 {
            self.take_alone(core, line);
        }
        self.fill(core, socket, line, level);
        start - clock + cost
    }

    fn cost_outside(&mut self, thread: usize, line: LineNumber, is_write: bool, level: Level) -> u64 {
        let latencies = self.config.latencies;
        let me = &mut self.threads[thread];
        let entry = &self.lines[line as usize];
        let is_beside = entry.sockets & !(1 << me.socket) != 0;
        let mut hop = 0;
        let fetch = match level {
            Level::L1 => latencies.l1,
            Level::L2 => latencies.l2,
            Level::Outside if entry.owner != NOBODY => {
                me.counters.transfers += 1;
                if usize::from(entry.owner) / self.config.cores_per_socket == me.socket {
                    latencies.transfer
                } else {
                    // The owner is asked while the line's home is.
                    hop = latencies.hop;
                    latencies.l3
                }
            }
            Level::Outside if entry.sockets & (1 << me.socket) != 0 => latencies.l3,
            Level::Outside if is_beside => {
                hop = latencies.hop;
                latencies.l3
            }
            Level::Outside => {
                me.counters.memory += 1;
                // Pages lie on the sockets in turn.
                hop = latencies.hop * u64::from(line as usize / 64 % self.config.sockets != me.socket);
                latencies.memory
            }
        };
        let has_asked = std::mem::take(&mut me.has_asked) && entry.owner != NOBODY;
        let mut cost = hop + if has_asked { latencies.queued } else { fetch };
        if is_write {
            let others = entry.sharers & !(1 << me.core) != 0;
            let near = if has_asked {
                latencies.queued
            } else if others {
                latencies.transfer
            } else {
                latencies.l3
            };
            let invalidate = near + if is_beside { latencies.hop } else { 0 };
            cost = cost.max(invalidate);
        }
        if hop > 0 || (is_write && is_beside) {
            me.counters.hops += 1;
            // What crosses does so one after the other; a message without a line takes a quarter of its time.
            let start = self.link_free_at.max(me.clock);
            let length = if hop > 0 { latencies.link } else { latencies.link / 4 };
            self.link_free_at = start + length;
            cost += start - me.clock;
        }
        cost
    }

    /// Makes the thread's core the owner: all other copies go.
    fn take_from_others(&mut self, thread: usize, line: LineNumber) {
        let (core, socket) = (self.threads[thread].core, self.threads[thread].socket);
        let entry = &mut self.lines[line as usize];
        let mut others = entry.sharers & !(1 << core);
        let mut sockets = entry.sockets & !(1 << socket);
        entry.sharers &= 1 << core;
        entry.sockets &= 1 << socket;
        entry.owner = core as u8;
        self.threads[thread].counters.invalidations += u64::from(others.count_ones());
        while others != 0 {
            let caches = &mut self.cores[others.trailing_zeros() as usize];
            caches.l1.remove(line);
            caches.l2.remove(line);
            others &= others - 1;
        }
        while sockets != 0 {
            self.sockets[sockets.trailing_zeros() as usize].remove(line);
            sockets &= sockets - 1;
        }
    }

    /// Brings a line into all caches on its way.
    fn fill(&mut self, core: Core, socket: usize, line: LineNumber, level: Level) {
        if level == Level::L1 {
            return;
        }
        if level == Level::Outside {
            self.fill_from_outside(core, socket, line);
        }
        self.fill_l1(core, line);
    }

    fn fill_from_outside(&mut self, core: Core, socket: usize, line: LineNumber) {
        if !self.sockets[socket].touch(line)
            && let Some(dropped) = self.sockets[socket].insert(line)
        {
            self.drop_from_socket(socket, dropped);
        }
        let entry = &mut self.lines[line as usize];
        entry.sockets |= 1 << socket;
        entry.sharers |= 1 << core;
        self.fill_l2(core, line);
    }

    fn fill_l1(&mut self, core: Core, line: LineNumber) {
        let l1 = &mut self.cores[core].l1;
        let mut rank = l1.ways() - 1;
        if self.random.chance_ppm(self.config.transactions.replacement_noise_ppm) {
            rank = self.random.below(l1.ways() as u64) as usize;
        }
        let Some(dropped) = l1.insert_over(line, rank) else { return };
        self.note_eviction(core, dropped);
        if !self.cores[core].l2.touch(dropped) {
            self.fill_l2(core, dropped);
        }
    }

    fn fill_l2(&mut self, core: Core, line: LineNumber) {
        let Some(dropped) = self.cores[core].l2.insert(line) else { return };
        if !self.cores[core].l1.contains(dropped) {
            let entry = &mut self.lines[dropped as usize];
            entry.sharers &= !(1 << core);
            if usize::from(entry.owner) == core {
                entry.owner = NOBODY;
            }
        }
    }

    /// A line leaves L1: a transaction that wrote it can't go on; one that read it may be tracked on (tsx-index, section 3.2).
    fn note_eviction(&mut self, core: Core, line: LineNumber) {
        let here = self.cores[core].threads;
        let writer = self.lines[line as usize].writer;
        if writer != NOBODY && here >> writer & 1 == 1 {
            self.abort(usize::from(writer), AbortCause::Overflow);
        }
        // The writer may have been a reader as well, and is none any more.
        let mut readers = self.lines[line as usize].readers & here;
        while readers != 0 {
            if self.random.chance_ppm(self.config.transactions.read_eviction_aborts_ppm) {
                self.abort(readers.trailing_zeros() as usize, AbortCause::Overflow);
            }
            readers &= readers - 1;
        }
    }

    /// A line leaves L3 and with it all cores of the socket; nothing tracks it there any more.
    fn drop_from_socket(&mut self, socket: usize, line: LineNumber) {
        let first = socket * self.config.cores_per_socket;
        for core in first..first + self.config.cores_per_socket {
            let entry = self.lines[line as usize];
            if entry.sharers >> core & 1 == 0 {
                continue;
            }
            self.cores[core].l1.remove(line);
            self.cores[core].l2.remove(line);
            let entry = &mut self.lines[line as usize];
            entry.sharers &= !(1 << core);
            if usize::from(entry.owner) == core {
                entry.owner = NOBODY;
            }
        }
        self.lines[line as usize].sockets &= !(1 << socket);
        self.abort_all_of(socket, line);
    }
}
