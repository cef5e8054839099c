//! Deadlocks: transactions that wait for each other in a circle.
//!
//! A transaction that sleeps publishes one edge, "A waits until B ends", and follows the edges from B on. If they lead
//! back to A, the youngest transaction of the circle is its victim.
//!
//! ```text
//! edge of a slot:  version (odd: there is an edge) | owner | the owner's count of rings when A looked last
//! ```
//!
//! **Meaning of an edge.** An edge stands only while A is inside its wait. It is in force as long as the owner has
//! not rung its bell since A looked: an owner rings when it ends, when it gives a row up, and when it leaves a
//! queue; A then looks again and, if it still has to wait, publishes an edge with the new count. The fields change
//! only while the version is even.
//!
//! **No deadlock is missed.** In a deadlock no bell rings, so that from some moment on all its edges stand
//! unchanged. One of them was published last. Its publisher followed the edges after that, found each of the others
//! in place, and so came back to itself. (Publishing is a `SeqCst` swap, following a row of `SeqCst` loads after
//! it.)
//!
//! **A reported deadlock is real.** Edges may change while they are followed, so that a circle put together of old
//! and new edges might never have existed. A transaction that finds a circle therefore reads all its edges a second
//! time. No version of an edge ever returns. If each is unchanged, then between the last read of the first round
//! and the first read of the second all edges stood, and were in force, at the same time: each transaction in the
//! circle was waiting for the next.
//!
//! **One victim.** A transaction has one edge, so it is in one circle at a time, and every transaction that finds a
//! circle chooses the same victim of it. The victim is told by the version of its edge: a second message tells it
//! nothing new, and it ignores a late message, after its wait has ended or another has begun. The victim is the
//! youngest transaction, by the clock at which it began, or by the begin time that the caller has noted. Among
//! those that began between the same two commits without such a note, the id decides. Every observer finds the same
//! order.
//!
//! **Circles through other waits.** A caller may hold something that this table knows nothing of, besides its
//! transactions, and another caller may wait for that: an advisory lock, or the numbers of a sequence that a
//! transaction has for itself, which a transaction of its own waits for. A caller with such a wait asks for
//! [`TransactionTable::edges`] from time to time, puts them together with its own edges, and is itself the victim of
//! a circle that it finds. The edges that it is given all stood, and were in force, at one moment of the call, by
//! the argument above. So the circle is real if the caller's own edges stood during the whole call. The edges of a
//! deadlock stay, so that each is found by every such wait that is part of it.
use std::iter;
use sync::atomic::Ordering::{Acquire, Release, SeqCst};

use sync::atomic::total_order;
use types::TxnId;

use crate::table::{SLOTS, TransactionTable};
use crate::waits::{RowName, Wait};

/// An edge as it was published.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Edge {
    pub version: u64,
    pub waiter: TxnId,
    pub owner: TxnId,
    pub rings: u64,
    pub row: RowName,
    pub since: u64,
}

impl TransactionTable {
    /// Publishes the owner that a transaction waits for, in place of its former edge.
    pub(crate) fn publish(&self, wait: &Wait<'_>, rings: u64, since: u64) -> Edge {
        self.withdraw(wait.waiter);
        let Wait { owner, row, .. } = *wait;
        let own = self.waits(wait.waiter);
        own.owner.store(owner.word(), Release);
        own.rings.store(rings, Release);
        own.row_table.store(row.table, Release);
        own.row_rid.store(row.rid, Release);
        own.since.store(since, Release);
        let version = own.version.load(SeqCst) + 1;
        debug_assert!(version % 2 == 1, "{:?} waits for two transactions at once", wait.waiter);
        own.version.swap(version, SeqCst);
        total_order();
        Edge { version, waiter: wait.waiter, owner, rings, row, since }
    }

    /// Takes the edge back, if there is one.
    pub(crate) fn withdraw(&self, waiter: TxnId) {
        let version = &self.waits(waiter).version;
        let current = version.load(SeqCst);
        if current % 2 == 1 {
            version.store(current + 1, SeqCst);
        }
    }

    /// Reads the edge of a waiter, if it has one. The version is read before the other fields and after them.
    pub(crate) fn edge_of(&self, waiter: TxnId) -> Option<Edge> {
        let own = self.waits(waiter);
        let version = own.version.load(SeqCst);
        if version.is_multiple_of(2) || self.slot(waiter).id.load(SeqCst) != waiter.word() {
            return None;
        }
        let owner = id_of_word(own.owner.load(Acquire));
        let row = RowName { table: own.row_table.load(Acquire), rid: own.row_rid.load(Acquire) };
        let (rings, since) = (own.rings.load(Acquire), own.since.load(Acquire));
        (own.version.load(SeqCst) == version).then_some(Edge { version, waiter, owner, rings, row, since })
    }

    /// The edge of a transaction, if it is in force.
    fn edge_in_force(&self, waiter: TxnId) -> Option<Edge> {
        self.edge_of(waiter).filter(|edge| self.waits(edge.owner).bell.rings() == edge.rings)
    }

    /// Looks whether the new edge closes a circle, and tells the circle's victim.
    pub(crate) fn break_circle(&self, edge: &Edge) {
        let Some(circle) = self.circle_of(edge) else { return };
        let victim = circle.iter().max_by_key(|edge| self.seniority(edge.waiter)).unwrap_or(edge);
        debug_assert!(victim.version % 2 == 1, "the victim of a circle waits: {victim:?}");
        self.waits(victim.waiter).doomed.fetch_max(victim.version, SeqCst);
        total_order();
        self.waits(victim.owner).bell.wake();
    }

    /// The edges from this one back to its waiter, if all of them are in force at one moment.
    fn circle_of(&self, edge: &Edge) -> Option<Vec<Edge>> {
        let next = |last: &Edge| if last.owner == edge.waiter { None } else { self.edge_in_force(last.owner) };
        // Beyond as many edges as there are slots, they go round in a circle without this transaction.
        let circle: Vec<Edge> = iter::successors(Some(*edge), next).take(SLOTS).collect();
        let is_closed = circle.last().is_some_and(|last| last.owner == edge.waiter);
        let still_stands = |edge: &Edge| self.edge_in_force(edge.waiter) == Some(*edge);
        let is_circle = is_closed && circle.iter().all(still_stands);
        debug_assert!(
            !is_circle || circle.windows(2).all(|pair| pair[0].owner == pair[1].waiter),
            "each edge of a circle leads to the next one's waiter: {circle:?}"
        );
        is_circle.then_some(circle)
    }

    /// The edges that stand and are in force at one moment of the call, each as the waiter and the owner. Of others there
    /// may be some at that moment that are not among these: such that change during the call, which none in a deadlock does.
    pub fn edges(&self) -> Vec<(TxnId, TxnId)> {
        let running = self.slots.iter().filter_map(|slot| slot.running(Acquire));
        let first: Vec<Edge> = running.filter_map(|txn| self.edge_in_force(txn)).collect();
        let stands = |edge: &&Edge| self.edge_in_force(edge.waiter) == Some(**edge);
        first.iter().filter(stands).map(|edge| (edge.waiter, edge.owner)).collect()
    }

    /// What the caller has noted of a transaction with [`describe`](Self::describe), while that runs.
    pub fn description(&self, txn: TxnId) -> Option<u64> {
        let slot = self.slot(txn);
        let description = slot.description.load(Acquire);
        (slot.id.load(Acquire) == txn.word()).then_some(description)
    }

    /// Greater is younger.
    fn seniority(&self, txn: TxnId) -> (u64, u64, u64) {
        let slot = self.slot(txn);
        (slot.born.load(Acquire), slot.begun.load(Acquire), txn.number())
    }
}

/// The transaction with this word as its id.
fn id_of_word(word: u64) -> TxnId {
    match types::StartTime::from_word(word) {
        types::StartTime::Pending(txn) => txn,
        // Read while the edge was being changed; its version tells.
        _ => TxnId::new(0),
    }
}
