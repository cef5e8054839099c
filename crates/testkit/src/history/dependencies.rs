//! The graph of which transaction must come before which.
//!
//! ```text
//!   ww   a transaction appended right behind another's element
//!   wr   a transaction read another's element at the end of a list (all before it follow by ww)
//!   rw   a transaction read a list up to just before another's element
//!   session    the next transaction of the session
//!   real time  all transactions that began after the end of one
//! ```
//!
//! Real time would be quadratic as edges. Instead there is a chain with a link for each end: a transaction leads to
//! the link of its end, each link to the next, and the last link before a start to the transaction that started.
//!
//! ```text
//!   T1 --.          T2 --.              T1 -> T3 and T2 -> T3, but not T2 -> T4
//!         v               v
//!        end 1 --------> end 2 ---> ...
//!             `--> T4         `--> T3
//! ```

use super::report::Dependencies;
use super::versions::{List, Set, Writers};
use super::{History, Outcome};

/// Edges from a reader of the last known version, at most. It comes before all transactions that appended later, in
/// an unknown order; it gets edges to those of the earliest end, as real time contradicts these first.
const UNSEEN_EDGES: usize = 32;

/// Why one transaction comes before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Label {
    WriteWrite,
    WriteRead,
    ReadWrite,
    Session,
    /// From a transaction into the chain of ends.
    RealTime,
    /// Along the chain and out of it.
    Passing,
}

/// One transaction comes before another, by what happened to an element of a key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) label: Label,
    pub(super) key: u64,
    /// The element that `from` appended.
    pub(super) before: u64,
    /// The element that `to` appended.
    pub(super) after: u64,
}

/// The edges, ordered by where they begin. Nodes are transactions, and behind them the links of the chain.
#[derive(Debug)]
pub(super) struct Graph {
    pub(super) transaction_count: usize,
    pub(super) edges: Vec<Edge>,
    /// Where the edges of each node begin; one more than there are nodes.
    first: Vec<u32>,
}

impl Graph {
    pub(super) fn new(history: &History, writers: &Writers, lists: &[List], sets: &[Set]) -> Graph {
        let mut edges = Vec::new();
        lists.iter().for_each(|list| add_list(&mut edges, list));
        sets.iter().for_each(|set| add_set(&mut edges, set));
        add_sessions(&mut edges, history, writers);
        let links = add_real_time(&mut edges, history, writers);
        let transaction_count = history.transactions.len();
        let node_count = transaction_count + links;
        edges.sort_by_key(|edge| edge.from);
        let mut first = vec![0; node_count + 1];
        edges.iter().for_each(|edge| first[edge.from as usize + 1] += 1);
        for node in 0..node_count {
            first[node + 1] += first[node];
        }
        Graph { transaction_count, edges, first }
    }

    pub(super) fn node_count(&self) -> usize {
        self.first.len() - 1
    }

    /// The numbers of the edges that begin at a node.
    pub(super) fn edges_from(&self, node: u32) -> std::ops::Range<u32> {
        self.first[node as usize]..self.first[node as usize + 1]
    }

    pub(super) fn counts(&self) -> Dependencies {
        let mut counts = Dependencies::default();
        for edge in &self.edges {
            match edge.label {
                Label::WriteWrite => counts.write_write += 1,
                Label::WriteRead => counts.write_read += 1,
                Label::ReadWrite => counts.read_write += 1,
                Label::Session => counts.session += 1,
                Label::RealTime | Label::Passing => {}
            }
        }
        counts
    }
}

fn add_list(edges: &mut Vec<Edge>, list: &List) {
    let key = list.key;
    let mut add = |from, to, label, before, after| {
        if from != to {
            edges.push(Edge { from, to, label, key, before, after });
        }
    };
    for pair in list.order.windows(2) {
        add(pair[0].writer, pair[1].writer, Label::WriteWrite, pair[0].element, pair[1].element);
    }
    if let Some(last) = list.order.last() {
        for append in &list.unseen {
            add(last.writer, append.writer, Label::WriteWrite, last.element, append.element);
        }
    }
    for read in &list.reads {
        if let Some(last) = read.last {
            add(last.writer, read.reader, Label::WriteRead, last.element, 0);
        }
        // A transaction that has appended before reading comes before others by that append.
        let (Some(place), 0) = (read.place, read.own) else { continue };
        let later = match list.order.get(place) {
            Some(next) => std::slice::from_ref(next),
            None => &list.unseen[..list.unseen.len().min(UNSEEN_EDGES)],
        };
        for append in later {
            add(read.reader, append.writer, Label::ReadWrite, 0, append.element);
        }
    }
}

/// Adds the edges of a set, which has no order of versions: writers that a read saw came before it, the others
/// after.
fn add_set(edges: &mut Vec<Edge>, set: &Set) {
    let key = set.key;
    for (reader, seen) in &set.reads {
        for append in set.appends.iter().filter(|append| append.writer != *reader) {
            edges.push(match seen.contains(&append.element) {
                true => Edge {
                    from: append.writer,
                    to: *reader,
                    label: Label::WriteRead,
                    key,
                    before: append.element,
                    after: 0,
                },
                false => Edge {
                    from: *reader,
                    to: append.writer,
                    label: Label::ReadWrite,
                    key,
                    before: 0,
                    after: append.element,
                },
            });
        }
    }
}

fn bare(from: u32, to: u32, label: Label) -> Edge {
    Edge { from, to, label, key: 0, before: 0, after: 0 }
}

/// The end of a transaction, if it is known.
fn end(history: &History, number: u32) -> Option<u64> {
    let transaction = &history.transactions[number as usize];
    (transaction.outcome == Outcome::Committed).then_some(transaction.end)
}

fn add_sessions(edges: &mut Vec<Edge>, history: &History, writers: &Writers) {
    let mut numbers: Vec<u32> = writers.counted().collect();
    numbers.sort_by_key(|&number| {
        let transaction = &history.transactions[number as usize];
        (transaction.session, transaction.start)
    });
    let mut last: Option<u32> = None;
    for number in numbers {
        let session = history.transactions[number as usize].session;
        last = last.filter(|&last| history.transactions[last as usize].session == session);
        if let Some(last) = last {
            edges.push(bare(last, number, Label::Session));
        }
        // A transaction of unknown outcome may have taken effect later than its end.
        if end(history, number).is_some() {
            last = Some(number);
        }
    }
}

/// Adds the chain of ends, and tells how many links it has.
fn add_real_time(edges: &mut Vec<Edge>, history: &History, writers: &Writers) -> usize {
    let first_link = history.transactions.len() as u32;
    let mut ends: Vec<(u64, u32)> =
        writers.counted().filter_map(|number| Some((end(history, number)?, number))).collect();
    ends.sort_unstable();
    for (link, &(_, number)) in (first_link..).zip(&ends) {
        edges.push(bare(number, link, Label::RealTime));
        if link > first_link {
            edges.push(bare(link - 1, link, Label::Passing));
        }
    }
    for number in writers.counted() {
        let start = history.transactions[number as usize].start;
        let ended = ends.partition_point(|&(end, _)| end < start) as u32;
        if ended > 0 {
            edges.push(bare(first_link + ended - 1, number, Label::Passing));
        }
    }
    ends.len()
}
