//! Words for operations, transactions and circles. A transaction is called `T` and its place in the history.

use std::fmt::Write;

use super::cycles::CycleStep;
use super::dependencies::Label;
use super::{History, Kind, Operation, Outcome};

/// So many elements of a list, from its end, are shown.
const ELEMENTS_SHOWN: usize = 8;

/// So many operations of a transaction are shown.
const OPERATIONS_SHOWN: usize = 16;

/// So many steps of a circle are shown.
const STEPS_SHOWN: usize = 16;

/// The list, shortened from the front.
pub(super) fn shown(list: &[u64]) -> String {
    let hidden = list.len().saturating_sub(ELEMENTS_SHOWN);
    let mut text = String::from("[");
    if hidden > 0 {
        let _ = write!(text, "{hidden} more ... ");
    }
    for (place, element) in list[hidden..].iter().enumerate() {
        let _ = write!(text, "{}{element}", if place > 0 { " " } else { "" });
    }
    text + "]"
}

/// The transaction with all that it did, on a line.
pub(super) fn cited(history: &History, number: usize) -> String {
    let transaction = &history.transactions[number];
    let mut text =
        format!("T{number}, session {}, instants {} to {}", transaction.session, transaction.start, transaction.end);
    match (transaction.outcome, transaction.commit_timestamp) {
        (Outcome::Committed, None) => text += ", committed",
        (Outcome::Committed, Some(timestamp)) => text += &format!(", committed at timestamp {timestamp}"),
        (Outcome::Aborted, _) => text += ", aborted",
        (Outcome::Unknown, _) => text += ", outcome unknown",
    }
    if let Some(timestamp) = transaction.snapshot {
        let _ = write!(text, ", snapshot {timestamp}");
    }
    text += ":";
    for operation in transaction.operations.iter().take(OPERATIONS_SHOWN) {
        let _ = match operation {
            Operation::Append { key, element } => write!(text, " append({key}, {element})"),
            Operation::Read { key, list } => write!(text, " read({key}) = {}", shown(list)),
            Operation::ReadSet { key, elements } => write!(text, " read_set({key}) = {}", shown(elements)),
        };
    }
    if transaction.operations.len() > OPERATIONS_SHOWN {
        text += " ...";
    }
    text
}

/// Why the circle cannot be, step by step.
pub(super) fn circle(history: &History, kind: Kind, steps: &[CycleStep]) -> String {
    let mut text = match kind {
        Kind::StaleRead(_) => "what was committed before a transaction began is not visible to it".to_string(),
        _ => "each of these transactions comes before the next, and the last before the first".to_string(),
    };
    for step in steps.iter().take(STEPS_SHOWN) {
        let _ = write!(text, "\n  T{} before T{}: {}", step.from, step.to, reason(history, step));
    }
    if steps.len() > STEPS_SHOWN {
        let _ = write!(text, "\n  and so on, {} steps in all", steps.len());
    }
    text
}

fn reason(history: &History, step: &CycleStep) -> String {
    let CycleStep { from, to, key, before, after, .. } = step;
    match step.label {
        Label::WriteWrite => format!("T{to} appended {after} to list {key}, behind {before} of T{from} (ww)"),
        Label::WriteRead => format!("T{to} read {before} in list {key}, which T{from} appended (wr)"),
        Label::ReadWrite => format!("T{from} read list {key} without {after}, which T{to} appended (rw)"),
        Label::Session => {
            format!("session {} ran one after the other", history.transactions[*to as usize].session)
        }
        Label::RealTime | Label::Passing => format!(
            "T{from} had ended at {} when T{to} began at {}",
            history.transactions[*from as usize].end, history.transactions[*to as usize].start
        ),
    }
}
