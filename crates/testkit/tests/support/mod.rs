//! Histories by hand: short names for operations and transactions.

use testkit::history::{History, Operation, Outcome, Transaction};

pub fn append(key: u64, element: u64) -> Operation {
    Operation::Append { key, element }
}

pub fn read(key: u64, list: &[u64]) -> Operation {
    Operation::Read { key, list: list.to_vec() }
}

pub fn read_set(key: u64, elements: &[u64]) -> Operation {
    Operation::ReadSet { key, elements: elements.to_vec() }
}

/// A committed transaction of a session, between two instants.
pub fn timed(session: u32, (start, end): (u64, u64), operations: &[Operation]) -> Transaction {
    Transaction {
        session,
        start,
        end,
        outcome: Outcome::Committed,
        commit_timestamp: None,
        snapshot: None,
        operations: operations.to_vec(),
    }
}

/// Committed transactions that all overlap, each in a session of its own.
pub fn concurrent(transactions: &[&[Operation]]) -> History {
    let transactions =
        (0..).zip(transactions).map(|(number, operations)| timed(number, (u64::from(number), 1000), operations));
    History { transactions: transactions.collect() }
}
