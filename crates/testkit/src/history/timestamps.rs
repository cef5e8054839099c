//! The database's own account of its order, compared with the data: commit timestamps and snapshots.
//!
//! - a transaction that reads from another or appends behind it has the larger commit timestamp;
//! - so has a transaction that begins after the other's end (as real time, for the strict levels);
//! - a read with a snapshot sees every append that was committed at or before it, and none that was committed later.

use super::dependencies::{Graph, Label};
use super::report::Findings;
use super::versions::{Append, List, Set};
use super::{History, Kind, Outcome, Strictness};

/// Tells where commit timestamps contradict the edges of the graph or real time.
pub(super) fn judge_commits(history: &History, graph: &Graph, findings: &mut Findings) {
    for edge in &graph.edges {
        let (from, to) = (edge.from, edge.to);
        if matches!(edge.label, Label::WriteWrite | Label::WriteRead)
            && let (Some(first), Some(second)) = (timestamp(history, from), timestamp(history, to))
            && first >= second
        {
            findings.add(Kind::CommitOrder(Strictness::Plain), &[from, to], || {
                let key = edge.key;
                format!(
                    "T{to} built on what T{from} appended to {key}, but was committed at {second}, not after {first}"
                )
            });
        }
    }
    judge_real_time(history, findings);
}

fn judge_real_time(history: &History, findings: &mut Findings) {
    let mut starts: Vec<(u64, u64, u32)> = Vec::new();
    let mut ends: Vec<(u64, u64, u32)> = Vec::new();
    for (number, transaction) in (0..).zip(&history.transactions) {
        if let (Some(timestamp), Outcome::Committed) = (transaction.commit_timestamp, transaction.outcome) {
            starts.push((transaction.start, timestamp, number));
            ends.push((transaction.end, timestamp, number));
        }
    }
    starts.sort_unstable();
    ends.sort_unstable();
    let mut ended = ends.into_iter().peekable();
    let mut newest: Option<(u64, u32)> = None;
    for (start, timestamp, number) in starts {
        while let Some((_, earlier, by)) = ended.next_if(|&(end, ..)| end < start) {
            newest = newest.max(Some((earlier, by)));
        }
        if let Some((earlier, by)) = newest
            && earlier >= timestamp
        {
            findings.add(Kind::CommitOrder(Strictness::RealTime), &[by, number], || {
                format!("T{number} began after T{by} had ended, but was committed at {timestamp}, not after {earlier}")
            });
        }
    }
}

/// Tells of reads that do not see just what was committed up to their snapshots.
pub(super) fn judge_snapshots(history: &History, lists: &[List], sets: &[Set], findings: &mut Findings) {
    for list in lists {
        for read in &list.reads {
            let (Some(snapshot), Some(place)) = (snapshot(history, read.reader), read.place) else { continue };
            let others =
                list.order.get(place).into_iter().chain(&list.unseen).filter(|next| next.writer != read.reader);
            for (append, is_seen) in read.last.iter().map(|last| (last, true)).chain(others.map(|next| (next, false))) {
                judge_sight(history, (list.key, read.reader, snapshot), append, is_seen, findings);
            }
        }
    }
    for set in sets {
        for (reader, seen) in &set.reads {
            let Some(snapshot) = snapshot(history, *reader) else { continue };
            for append in set.appends.iter().filter(|append| append.writer != *reader) {
                let is_seen = seen.contains(&append.element);
                judge_sight(history, (set.key, *reader, snapshot), append, is_seen, findings);
            }
        }
    }
}

fn judge_sight(
    history: &History,
    (key, reader, snapshot): (u64, u32, u64),
    &Append { writer, element }: &Append,
    is_seen: bool,
    findings: &mut Findings,
) {
    let Some(timestamp) = timestamp(history, writer) else { return };
    if is_seen != (timestamp <= snapshot) {
        findings.add(Kind::SnapshotBreach, &[writer, reader], || {
            let verb = if is_seen { "sees" } else { "misses" };
            format!(
                "T{reader} at snapshot {snapshot} {verb} {element} of {key}, which T{writer} committed at {timestamp}"
            )
        });
    }
}

fn timestamp(history: &History, number: u32) -> Option<u64> {
    history.transactions.get(number as usize)?.commit_timestamp
}

fn snapshot(history: &History, number: u32) -> Option<u64> {
    history.transactions[number as usize].snapshot
}
