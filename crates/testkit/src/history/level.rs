//! The kinds of anomalies, and which of them a [`Level`] forbids.
//!
//! | kind | Adya | read committed | snapshot | serializable |
//! |---|---|---|---|---|
//! | `Internal`, `DuplicateElement`, `UnwrittenElement`, `IncompatibleOrder`, `SnapshotBreach` | | x | x | x |
//! | `AbortedRead`, `IntermediateRead` | G1a, G1b | x | x | x |
//! | `WriteCycle`, `CircularInformation` | G0, G1c | x | x | x |
//! | `StaleRead` (has session or real-time edges) | | x | x | x |
//! | `CommitOrder` | | x | x | x |
//! | `BackwardRead` | | if strict | x | x |
//! | `UnrepeatableRead`, `LostUpdate` | P2, P4 | | x | x |
//! | `ReadSkew`, `LongFork` | G-single, G-nonadjacent | | x | x |
//! | `WriteSkew` | G2, G2-item | | | x |
//!
//! Kinds that carry a [`Strictness`] are forbidden by the levels that are at least as strict.

use std::fmt;

/// The order that the data must agree with: none, the order within each session, or real time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Strictness {
    /// Only what transactions read and write orders them.
    Plain,
    /// Also the order in which a session ran them: a session sees its own commits.
    Session,
    /// Also real time: a transaction that begins after a commit was acknowledged sees it.
    RealTime,
}

/// An isolation level: what a transaction is protected from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Isolation {
    /// Each read sees committed values only, and the latest of them when it looks.
    ReadCommitted,
    /// All reads see one moment, and of two concurrent writers of a list one aborts.
    Snapshot,
    /// As though one transaction ran after the other.
    Serializable,
}

/// An isolation level with its strictness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Level {
    /// The isolation level.
    pub isolation: Isolation,
    /// Which orders beside that of the data must be kept.
    pub strictness: Strictness,
}

impl Level {
    /// `isolation` with the order of the data alone.
    pub fn plain(isolation: Isolation) -> Level {
        Level { isolation, strictness: Strictness::Plain }
    }

    /// `isolation` with real time: what is committed before a transaction begins is visible to it.
    pub fn strict(isolation: Isolation) -> Level {
        Level { isolation, strictness: Strictness::RealTime }
    }

    /// Whether this level promises that there is no such anomaly.
    pub fn forbids(self, kind: Kind) -> bool {
        let (weakest, strictness) = match kind {
            Kind::Internal
            | Kind::DuplicateElement
            | Kind::UnwrittenElement
            | Kind::IncompatibleOrder
            | Kind::SnapshotBreach
            | Kind::AbortedRead
            | Kind::IntermediateRead => (Isolation::ReadCommitted, Strictness::Plain),
            Kind::WriteCycle(order)
            | Kind::CircularInformation(order)
            | Kind::StaleRead(order)
            | Kind::CommitOrder(order) => (Isolation::ReadCommitted, order),
            // A statement of a strict transaction sees what the one before it saw.
            Kind::BackwardRead if self.strictness > Strictness::Plain => (Isolation::ReadCommitted, Strictness::Plain),
            Kind::BackwardRead | Kind::UnrepeatableRead | Kind::LostUpdate => (Isolation::Snapshot, Strictness::Plain),
            Kind::ReadSkew(order) | Kind::LongFork(order) => (Isolation::Snapshot, order),
            Kind::WriteSkew(order) => (Isolation::Serializable, order),
        };
        self.isolation >= weakest && self.strictness >= strictness
    }
}

impl fmt::Display for Level {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self.isolation {
            Isolation::ReadCommitted => "READ COMMITTED",
            Isolation::Snapshot => "SNAPSHOT",
            Isolation::Serializable => "SERIALIZABLE",
        })?;
        self.strictness.describe(formatter)
    }
}

impl Strictness {
    fn describe(self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Strictness::Plain => "",
            Strictness::Session => " with session order",
            Strictness::RealTime => " with real time",
        })
    }
}

/// The kinds of anomalies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A transaction does not see its own appends at the end of what it reads.
    Internal,
    /// An element is in a list twice.
    DuplicateElement,
    /// An element was read that was never appended.
    UnwrittenElement,
    /// Two reads of a list of which neither continues the other: an append was lost or reordered.
    IncompatibleOrder,
    /// A read saw a commit beyond its snapshot, or missed one within.
    SnapshotBreach,
    /// G1a: an append of an aborted transaction was read.
    AbortedRead,
    /// G1b: an append was read without a later one of the same transaction to the same list.
    IntermediateRead,
    /// G0: transactions that overwrite one another in a circle.
    WriteCycle(Strictness),
    /// G1c: transactions that read from or overwrite one another in a circle.
    CircularInformation(Strictness),
    /// A transaction does not see what was committed before it began; a lost append shows itself so, too.
    StaleRead(Strictness),
    /// Commit timestamps contradict the order of the data, or of real time.
    CommitOrder(Strictness),
    /// A transaction read a list again and found less in it.
    BackwardRead,
    /// P2: a transaction read a list again and found more in it than its own appends.
    UnrepeatableRead,
    /// P4: two transactions read the same version of a list and both appended to it.
    LostUpdate,
    /// G-single: a circle with one edge from a reader to a transaction that overwrote what it read.
    ReadSkew(Strictness),
    /// G-nonadjacent: a circle with several such edges, no two of them in succession. The long fork is one.
    LongFork(Strictness),
    /// G2: a circle with two such edges in succession. Also for phantoms, where rows were read by a predicate.
    WriteSkew(Strictness),
}

impl Kind {
    /// The edges beside those of the data without which there would be no such circle.
    pub fn strictness(self) -> Strictness {
        match self {
            Kind::WriteCycle(order)
            | Kind::CircularInformation(order)
            | Kind::StaleRead(order)
            | Kind::CommitOrder(order)
            | Kind::ReadSkew(order)
            | Kind::LongFork(order)
            | Kind::WriteSkew(order) => order,
            _ => Strictness::Plain,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Kind::Internal => "own appends not read",
            Kind::DuplicateElement => "duplicate element",
            Kind::UnwrittenElement => "unwritten element",
            Kind::IncompatibleOrder => "incompatible order",
            Kind::SnapshotBreach => "snapshot breach",
            Kind::AbortedRead => "aborted read (G1a)",
            Kind::IntermediateRead => "intermediate read (G1b)",
            Kind::WriteCycle(_) => "write cycle (G0)",
            Kind::CircularInformation(_) => "circular information (G1c)",
            Kind::StaleRead(_) => "stale read",
            Kind::CommitOrder(_) => "commit order",
            Kind::BackwardRead => "backward read",
            Kind::UnrepeatableRead => "unrepeatable read (P2)",
            Kind::LostUpdate => "lost update (P4)",
            Kind::ReadSkew(_) => "read skew (G-single)",
            Kind::LongFork(_) => "long fork (G-nonadjacent)",
            Kind::WriteSkew(_) => "write skew (G2)",
        })?;
        self.strictness().describe(formatter)
    }
}
