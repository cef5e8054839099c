//! Checks of transactional histories: was what these transactions saw possible at their isolation level?
//!
//! Sessions run transactions that append unique elements to lists and read lists; a [`Recorder`] takes down what
//! they did and saw, and [`check`] looks for anomalies. It knows nothing of the database and needs no model of it:
//! an element identifies the transaction that appended it, and a list tells the order of its appends. The method is
//! that of Kingsbury and Alvaro, "Elle: Inferring Isolation Anomalies from Experimental Observations", VLDB 2020,
//! with the anomalies of Adya's thesis.
//!
//! ```text
//!   recorder -> model      what each session did and saw, with instants of begin and end
//!               internal   each transaction by itself: own appends, repeated reads
//!               versions   the order of each list from its longest read; aborted, intermediate, torn reads
//!               dependencies    which transaction comes before which: ww, wr, rw, session, real time
//!               points     what each level makes of that: an order of begins and commits
//!               cycles     circles in it, short ones, and their kinds
//!               timestamps commit timestamps and snapshots of the database, held against the data
//!               level      which kinds a level forbids
//! ```
//!
//! Anomalies that are found are real, as long as the record is: an append is noted if and only if it was made, the
//! start is drawn before the database begins and the end after it has acknowledged. Of transactions that did not
//! commit only the appends are looked at. The lists begin empty; what is loaded before is recorded as a transaction.
//!
//! **Phantoms.** Where lists are stored as a row per element, reading one is a predicate read, and appending to one is an
//! insert. Nothing here changes: a phantom is an rw edge like any other, and G2 through phantoms shows itself as
//! [`Kind::WriteSkew`]. But then two appends to a list need not meet, and if rows carry no position that follows the
//! commits, the order in which they are read is no order of versions: such reads are [`Operation::ReadSet`].
//!
//! **A good workload** has few keys that many transactions meet at, moves on to new keys before lists grow beyond
//! some dozens of elements (reads are recorded whole), reads and appends in one transaction, and reads each list
//! once more at the end: an append that is never read tells little. [`Report`] counts what there was to check.
//!
//! Two transactions of which each appends to what the other has read make a write skew, which SNAPSHOT permits and
//! SERIALIZABLE does not:
//!
//! ```
//! use testkit::history::{Isolation, Kind, Level, Recorder, Strictness, check};
//!
//! let recorder = Recorder::new();
//! let (mut one, mut other) = (recorder.session(), recorder.session());
//!
//! // Each session may live on a thread of its own. Begin first here, then in the database.
//! let (mut first, mut second) = (one.begin(), other.begin());
//! first.read(1, vec![]);
//! second.read(2, vec![]);
//! let (for_two, for_one) = (first.fresh_element(), second.fresh_element());
//! first.append(2, for_two);
//! second.append(1, for_one);
//! // Commit first in the database, then here, with its timestamp if there is one.
//! first.commit(Some(10));
//! second.commit(Some(11));
//!
//! let mut last = one.begin();
//! last.read(1, vec![for_one]);
//! last.read(2, vec![for_two]);
//! last.commit(None);
//! drop((one, other));
//! let history = recorder.into_history();
//!
//! let report = check(&history, Level::strict(Isolation::Snapshot)).unwrap();
//! assert_eq!((report.transactions, report.reads, report.dependencies.read_write), (3, 4, 2));
//! assert!(report.has(Kind::WriteSkew(Strictness::Plain)));
//!
//! let violation = check(&history, Level::strict(Isolation::Serializable)).unwrap_err();
//! assert_eq!(violation.anomalies[0].transactions, [0, 1]);
//! println!("{violation}");
//! ```

mod cycles;
mod dependencies;
mod explain;
mod internal;
mod level;
mod model;
mod points;
mod recorder;
mod report;
mod timestamps;
mod versions;

pub use level::{Isolation, Kind, Level, Strictness};
pub use model::{History, Operation, Outcome, Transaction};
pub use recorder::{Recorder, SessionRecorder, TransactionRecorder};
pub use report::{Anomaly, Dependencies, Report, Violation};

use dependencies::Graph;
use report::Findings;
use versions::Writers;

/// Checks whether a history is possible at a level. Anomalies that the level permits are in the report.
///
/// # Errors
/// The anomalies that the level forbids.
///
/// # Panics
/// If the record makes no sense: an element appended twice to a key, or an end before its start.
pub fn check(history: &History, level: Level) -> Result<Report, Box<Violation>> {
    let mut report = analyse(history);
    let (forbidden, permitted): (Vec<_>, Vec<_>) =
        std::mem::take(&mut report.anomalies).into_iter().partition(|anomaly| level.forbids(anomaly.kind));
    report.anomalies = permitted;
    match forbidden.is_empty() {
        true => Ok(report),
        false => Err(Box::new(Violation { level, anomalies: forbidden, report })),
    }
}

/// Looks for anomalies of all kinds.
///
/// # Panics
/// As [`check`].
pub fn analyse(history: &History) -> Report {
    let mut findings = Findings::new(history);
    let writers = Writers::of(history);
    let (lists, sets) = writers.versions(&mut findings);
    let mut report = Report::default();
    for number in writers.counted() {
        internal::judge(history, number, &mut findings);
        let operations = &history.transactions[number as usize].operations;
        let appends = operations.iter().filter(|operation| operation.elements().is_none()).count();
        report.transactions += 1;
        report.appends += appends;
        report.reads += operations.len() - appends;
    }
    lists.iter().for_each(|list| versions::judge_reads(history, list, &mut findings));
    let graph = Graph::new(history, &writers, &lists, &sets);
    report.dependencies = graph.counts();
    cycles::judge(history, &graph, &mut findings);
    timestamps::judge_commits(history, &graph, &mut findings);
    timestamps::judge_snapshots(history, &lists, &sets, &mut findings);
    report.anomalies = findings.into_anomalies();
    report
}
