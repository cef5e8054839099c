//! Circles of waits: of advisory locks, of locks of rows and tables, and through both.
//!
//! ```text
//! session A  ── advisory lock ──▶  session B  ── row, table, sequence ──▶  session A
//!   edge: under this table's latch    edge: of one of its transactions (`engine::Database::waits`)
//! ```
//!
//! What a session waits for in any of these ways keeps all that it holds. The engine finds circles that go through its
//! transactions alone. Any other goes through an advisory lock, or through the small transaction in which numbers of a
//! sequence are waited for; and such a wait looks for circles itself, at its start and then from time to time, and is the
//! victim of the one that it finds. It looks under the latch, under which advisory edges change, and it has none any more when it
//! lets go of the latch: of those in one circle one alone finds it.
use std::collections::{HashMap, HashSet};

use engine::{Database, Party, SessionNumber};

use super::{Lock, Mode, Table};

/// All waits, by the one that waits.
#[derive(Default)]
struct Graph<'a> {
    /// Waits that the engine tells of.
    others: HashMap<Party, Vec<Party>>,
    /// Places in queues of advisory locks, by the session that has it.
    places: HashMap<SessionNumber, Vec<(&'a Lock, usize)>>,
}

impl Table {
    /// Whether one of these waits for `session` in the end, or is it.
    pub(super) fn leads_to(&self, db: &Database, session: SessionNumber, from: Vec<Party>) -> bool {
        let mut graph = Graph::default();
        for (waits, owner) in db.waits() {
            graph.others.entry(waits).or_default().push(owner);
        }
        for lock in self.locks.iter().filter(|(key, _)| key.0 == db.address()).map(|(_, lock)| lock) {
            for (at, waiter) in lock.queue.iter().enumerate() {
                graph.places.entry(waiter.session).or_default().push((lock, at));
            }
        }
        graph.leads_to(session, from)
    }
}

impl Graph<'_> {
    fn leads_to(&self, session: SessionNumber, mut pending: Vec<Party>) -> bool {
        let mut seen = HashSet::new();
        // How far each queue was gone through for one that wants its lock alone: all in front of that are known.
        let mut known: HashMap<*const Lock, usize> = HashMap::new();
        while let Some(party) = pending.pop() {
            if party == Party::Session(session) {
                return true;
            }
            if !seen.insert(party) {
                continue;
            }
            pending.extend(self.others.get(&party).into_iter().flatten());
            let Party::Session(waits) = party else { continue };
            for (lock, at) in self.places.get(&waits).into_iter().flatten() {
                let far = known.entry(std::ptr::from_ref::<Lock>(lock)).or_default();
                if *at < *far {
                    continue;
                }
                let waiter = lock.queue[*at];
                if waiter.mode == Mode::Exclusive {
                    *far = at + 1;
                }
                pending.extend(lock.in_the_way(waits, waiter.mode, waiter.ticket).into_iter().map(Party::Session));
            }
        }
        false
    }
}
