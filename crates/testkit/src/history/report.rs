//! The results of a check: [`Report`] and [`Violation`], and the collector that keeps them short.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::explain::cited;
use super::{History, Kind, Level};

/// So many anomalies of a kind are told; of a broken database there may be thousands.
const TOLD_OF_A_KIND: usize = 5;

/// So many of the transactions concerned are cited.
const CITED: usize = 16;

/// A fault of a history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Anomaly {
    /// The kind of the anomaly.
    pub kind: Kind,
    /// Why, in words, with the operations that show it.
    pub explanation: String,
    /// The places in the history of the transactions that it concerns.
    pub transactions: Vec<usize>,
}

impl fmt::Display for Anomaly {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.kind, self.explanation)
    }
}

/// How many dependencies a history showed, so that a test can tell a check from an idle one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dependencies {
    /// One transaction appended to what another had appended.
    pub write_write: usize,
    /// One transaction read what another had appended.
    pub write_read: usize,
    /// One transaction appended to what another had read.
    pub read_write: usize,
    /// One transaction followed another in its session.
    pub session: usize,
}

/// The findings of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Transactions that count as committed.
    pub transactions: usize,
    /// Their appends.
    pub appends: usize,
    /// Their reads.
    pub reads: usize,
    /// The dependencies between them.
    pub dependencies: Dependencies,
    /// The anomalies: after [`super::analyse`] all that were found, after [`super::check`] those that the level
    /// permits. A few of each kind are listed.
    pub anomalies: Vec<Anomaly>,
}

impl Report {
    /// Whether there is an anomaly of this kind.
    pub fn has(&self, kind: Kind) -> bool {
        self.anomalies.iter().any(|anomaly| anomaly.kind == kind)
    }

    /// The kinds of the anomalies.
    pub fn kinds(&self) -> BTreeSet<Kind> {
        self.anomalies.iter().map(|anomaly| anomaly.kind).collect()
    }
}

/// A history that its level forbids. `Debug` and `Display` tell the anomalies in words, so that an `unwrap` in a test
/// shows them.
#[derive(Clone, PartialEq, Eq)]
pub struct Violation {
    /// The level that forbids it.
    pub level: Level,
    /// The anomalies that the level forbids, a few of each kind.
    pub anomalies: Vec<Anomaly>,
    /// All else, as for a history that is fine.
    pub report: Report,
}

impl Violation {
    /// The kinds of the forbidden anomalies.
    pub fn kinds(&self) -> BTreeSet<Kind> {
        self.anomalies.iter().map(|anomaly| anomaly.kind).collect()
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.anomalies.len();
        writeln!(formatter, "{} forbids {count} anomalies of {} transactions:", self.level, self.report.transactions)?;
        self.anomalies.iter().try_for_each(|anomaly| writeln!(formatter, "{anomaly}"))
    }
}

impl fmt::Debug for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl std::error::Error for Violation {}

/// Collects anomalies, each once and a few of each kind.
pub(super) struct Findings<'h> {
    history: &'h History,
    told: BTreeMap<Kind, BTreeSet<Vec<usize>>>,
    anomalies: Vec<Anomaly>,
}

impl<'h> Findings<'h> {
    pub(super) fn new(history: &'h History) -> Findings<'h> {
        Findings { history, told: BTreeMap::new(), anomalies: Vec::new() }
    }

    /// Adds an anomaly. The transactions concerned are cited below the explanation, first to last.
    pub(super) fn add(&mut self, kind: Kind, transactions: &[u32], explain: impl FnOnce() -> String) {
        let transactions: Vec<usize> = transactions.iter().map(|&number| number as usize).collect();
        let mut concerned = transactions.clone();
        concerned.sort_unstable();
        concerned.dedup();
        let told = self.told.entry(kind).or_default();
        if told.len() < TOLD_OF_A_KIND && told.insert(concerned.clone()) {
            let mut explanation = explain();
            for &number in concerned.iter().take(CITED) {
                explanation.push_str(&format!("\n  {}", cited(self.history, number)));
            }
            if concerned.len() > CITED {
                explanation.push_str(&format!("\n  and {} transactions more", concerned.len() - CITED));
            }
            self.anomalies.push(Anomaly { kind, explanation, transactions });
        }
    }

    /// The anomalies, by kind.
    pub(super) fn into_anomalies(mut self) -> Vec<Anomaly> {
        self.anomalies.sort_by_key(|anomaly| anomaly.kind);
        self.anomalies
    }
}
