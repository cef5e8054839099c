//! A recorded history: transactions over lists, with the instants at which they began and ended.

/// One operation of a transaction, recorded after it succeeded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// `element` was put at the end of the list `key`. No two appends to a key have the same element, those of
    /// aborted transactions included: the element tells which append a read saw.
    Append {
        /// The list.
        key: u64,
        /// The element that was put at its end.
        element: u64,
    },
    /// The list `key` was read, with this result. A list without appends is empty.
    Read {
        /// The list.
        key: u64,
        /// Its elements in their order.
        list: Vec<u64>,
    },
    /// The elements of `key` were read, in an order that says nothing. For elements that are stored as a row each and
    /// without a position, where two appends to a key need not meet. A key that is read so anywhere is a set
    /// everywhere: its appends are not ordered among themselves.
    ReadSet {
        /// The set.
        key: u64,
        /// Its elements in any order.
        elements: Vec<u64>,
    },
}

impl Operation {
    /// The list that it is about.
    pub fn key(&self) -> u64 {
        match self {
            Operation::Append { key, .. } | Operation::Read { key, .. } | Operation::ReadSet { key, .. } => *key,
        }
    }

    /// The elements that were read, if it is a read.
    pub(super) fn elements(&self) -> Option<&[u64]> {
        match self {
            Operation::Append { .. } => None,
            Operation::Read { list, .. } => Some(list),
            Operation::ReadSet { elements, .. } => Some(elements),
        }
    }
}

/// How a transaction ended, as far as its session knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The commit was acknowledged.
    Committed,
    /// The abort was acknowledged: its appends must never be seen.
    Aborted,
    /// Unknown, as after a crash during the commit. It counts as committed once a committed transaction has read
    /// from it, and as though it had not been until then.
    Unknown,
}

/// A transaction as its session recorded it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// The session that ran it. A session runs one transaction after the other.
    pub session: u32,
    /// An instant before it began.
    pub start: u64,
    /// An instant after its end was acknowledged. Instants are numbers from one counter that grows.
    pub end: u64,
    /// How it ended.
    pub outcome: Outcome,
    /// The commit timestamp that the database gave it, where it is known.
    pub commit_timestamp: Option<u64>,
    /// The commit timestamp up to which all its reads saw everything and beyond which they saw nothing, where the
    /// database tells it. A read `AS OF` the past has one too; it is recorded with a session of its own and
    /// `start` 0, as it need not see what was committed before it began.
    pub snapshot: Option<u64>,
    /// Its operations, in order.
    pub operations: Vec<Operation>,
}

impl Transaction {
    /// The last element that it appended to `key`.
    pub(super) fn last_append(&self, key: u64) -> Option<u64> {
        self.operations.iter().rev().find_map(|operation| match operation {
            Operation::Append { key: appended, element } if *appended == key => Some(*element),
            _ => None,
        })
    }
}

/// A recorded history. Anomalies name transactions by their places in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// All transactions of all sessions, in any order.
    pub transactions: Vec<Transaction>,
}
