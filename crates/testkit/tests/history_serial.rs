//! Properties of serial histories: what ran one after the other has no anomaly at any level, and what is taken away
//! from it, or moved in it, is noticed.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::sample::Index;
use testkit::history::{History, Isolation, Kind, Level, Operation, Outcome, Strictness, Transaction, analyse, check};

/// A transaction to be run: its session, its steps (a key, and whether it is an append), its outcome, and whether an
/// unknown outcome was a commit.
type Script = (u32, Vec<(u64, bool)>, Outcome, bool);

fn scripts() -> impl Strategy<Value = Vec<Script>> {
    let outcome = prop_oneof![
        6 => Just(Outcome::Committed),
        1 => Just(Outcome::Aborted),
        1 => Just(Outcome::Unknown),
    ];
    let steps = prop::collection::vec((0..4u64, any::<bool>()), 0..6);
    prop::collection::vec((0..3u32, steps, outcome, any::<bool>()), 1..40)
}

/// Keys above this one are sets.
const LISTS: u64 = 2;

fn look(key: u64, list: Vec<u64>) -> Operation {
    match key < LISTS {
        true => Operation::Read { key, list },
        false => Operation::ReadSet { key, elements: list.into_iter().rev().collect() },
    }
}

/// Runs one transaction after the other, and reads everything at the end.
fn serial(scripts: &[Script]) -> History {
    let mut lists: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    let mut transactions = Vec::new();
    let (mut instant, mut element, mut timestamp) = (0, 0, 0);
    let last = (9, (0..4).map(|key| (key, false)).collect(), Outcome::Committed, true);
    for (session, steps, outcome, takes_place) in scripts.iter().chain([&last]) {
        let mut own = lists.clone();
        let mut operations = Vec::new();
        for &(key, is_append) in steps {
            let list = own.entry(key).or_default();
            if is_append {
                element += 1;
                list.push(element);
                operations.push(Operation::Append { key, element });
            } else {
                operations.push(look(key, list.clone()));
            }
        }
        let (start, snapshot) = (instant + 1, Some(timestamp));
        instant += 2;
        let commits = *outcome == Outcome::Committed || (*outcome == Outcome::Unknown && *takes_place);
        if commits {
            lists = own;
            timestamp += 1;
        }
        let commit_timestamp = commits.then_some(timestamp);
        let (session, outcome) = (*session, *outcome);
        let transaction = Transaction { session, start, end: instant, outcome, commit_timestamp, snapshot, operations };
        transactions.push(transaction);
    }
    History { transactions }
}

/// The history as the database alone would not tell it: without its timestamps.
fn without_timestamps(mut history: History) -> History {
    for transaction in &mut history.transactions {
        (transaction.snapshot, transaction.commit_timestamp) = (None, None);
    }
    history
}

/// The appends of acknowledged transactions.
fn committed_appends(history: &History) -> Vec<(u64, u64)> {
    let committed = history.transactions.iter().filter(|transaction| transaction.outcome == Outcome::Committed);
    committed
        .flat_map(|transaction| &transaction.operations)
        .filter_map(|operation| match operation {
            Operation::Append { key, element } => Some((*key, *element)),
            _ => None,
        })
        .collect()
}

fn elements(operation: &mut Operation) -> Option<&mut Vec<u64>> {
    match operation {
        Operation::Read { list, .. } => Some(list),
        Operation::ReadSet { elements, .. } => Some(elements),
        Operation::Append { .. } => None,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_serial_history_has_no_anomaly(scripts in scripts()) {
        let history = serial(&scripts);
        let report = analyse(&history);
        prop_assert_eq!(&report.anomalies, &[]);
        for isolation in [Isolation::ReadCommitted, Isolation::Snapshot, Isolation::Serializable] {
            for strictness in [Strictness::Plain, Strictness::Session, Strictness::RealTime] {
                let level = Level { isolation, strictness };
                prop_assert_eq!(check(&history, level), Ok(report.clone()));
            }
        }
    }

    #[test]
    fn an_append_that_later_reads_do_not_have_is_missed(scripts in scripts(), which: Index) {
        let mut history = without_timestamps(serial(&scripts));
        let appends = committed_appends(&history);
        prop_assume!(!appends.is_empty());
        let (lost_key, lost) = appends[which.index(appends.len())];
        for operation in history.transactions.iter_mut().flat_map(|each| &mut each.operations) {
            if operation.key() == lost_key && let Some(list) = elements(operation) {
                list.retain(|&element| element != lost);
            }
        }
        let violation = check(&history, Level::strict(Isolation::ReadCommitted)).expect_err("a lost append");
        prop_assert!(violation.kinds().iter().all(|kind| matches!(kind,
            Kind::StaleRead(_) | Kind::Internal | Kind::IntermediateRead | Kind::WriteCycle(_)
            | Kind::CircularInformation(_))), "{}", violation);
    }

    #[test]
    fn an_abort_that_was_seen_is_told(scripts in scripts(), which: Index) {
        let mut history = without_timestamps(serial(&scripts));
        let appends = committed_appends(&history);
        prop_assume!(!appends.is_empty());
        let append = appends[which.index(appends.len())];
        let is_append = |operation: &Operation| *operation == Operation::Append { key: append.0, element: append.1 };
        let writer = history.transactions.iter_mut().find(|each| each.operations.iter().any(is_append));
        writer.expect("its transaction").outcome = Outcome::Aborted;
        prop_assert!(analyse(&history).has(Kind::AbortedRead));
    }

    #[test]
    fn commits_that_change_places_are_told(scripts in scripts(), which: Index) {
        let mut history = serial(&scripts);
        let committed: Vec<usize> = (0..history.transactions.len())
            .filter(|&number| history.transactions[number].outcome == Outcome::Committed)
            .collect();
        prop_assume!(committed.len() > 1);
        let place = which.index(committed.len() - 1);
        let (one, other) = (committed[place], committed[place + 1]);
        let swapped = history.transactions[one].commit_timestamp;
        history.transactions[one].commit_timestamp = history.transactions[other].commit_timestamp;
        history.transactions[other].commit_timestamp = swapped;
        prop_assert!(analyse(&history).has(Kind::CommitOrder(Strictness::RealTime)));
    }
}
