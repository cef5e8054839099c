//! The checker against a small database: what is correct passes under every seed, and every fault is found under every
//! seed and called by its name.

mod simulation;

use std::collections::BTreeSet;

use parking_lot::Mutex;
use simulation::{Fault, Plan, Store, run};
use testkit::history::{Isolation, Kind, Level, Recorder, Strictness, analyse, check};

use Isolation::{ReadCommitted, Serializable, Snapshot};
use Strictness::{Plain, RealTime, Session};

const SEEDS: u64 = 4;

fn plan(isolation: Isolation, fault: Fault, rows: bool, seed: u64) -> Plan {
    Plan { isolation, fault, rows, tells_snapshots: false, transactions: 300, seed }
}

/// Runs a correct database under all seeds, and tells which anomalies its level permits.
#[track_caller]
fn expect_clean(isolation: Isolation, rows: bool) -> BTreeSet<Kind> {
    let mut permitted = BTreeSet::new();
    for seed in 0..SEEDS {
        let tells_snapshots = isolation > ReadCommitted;
        let history = run(Plan { tells_snapshots, ..plan(isolation, Fault::Nothing, rows, seed) });
        let report =
            check(&history, Level::strict(isolation)).unwrap_or_else(|violation| panic!("{seed}: {violation}"));
        let edges = report.dependencies;
        assert!(report.transactions > 120 && report.reads > 120 && report.appends > 40, "{seed}: {report:?}");
        assert!(edges.write_read > 60 && edges.read_write > 20 && edges.session > 120, "{seed}: {edges:?}");
        assert_eq!(edges.write_write > 20, !rows, "{seed}: {edges:?}");
        permitted.extend(report.kinds());
    }
    permitted
}

/// Runs a broken database under all seeds: the level forbids each run for the first of these kinds, and some for the
/// others.
#[track_caller]
fn expect_found(isolation: Isolation, fault: Fault, rows: bool, kinds: &[Kind]) {
    let mut found = BTreeSet::new();
    for seed in 0..SEEDS {
        let history = run(plan(isolation, fault, rows, seed));
        let violation = check(&history, Level::strict(isolation)).expect_err("a fault");
        assert!(violation.kinds().contains(&kinds[0]), "seed {seed}: {:?}", violation.kinds());
        found.extend(violation.kinds());
    }
    assert!(kinds.iter().all(|kind| found.contains(kind)), "{found:?}");
}

#[test]
fn read_committed_passes_and_shows_what_it_permits() {
    for rows in [false, true] {
        let permitted = expect_clean(ReadCommitted, rows);
        assert!(permitted.is_superset(&BTreeSet::from([Kind::UnrepeatableRead, Kind::ReadSkew(Plain)])));
        assert_eq!(permitted.contains(&Kind::LostUpdate), !rows);
    }
}

#[test]
fn snapshot_passes_and_shows_write_skew_only() {
    for rows in [false, true] {
        let permitted = expect_clean(Snapshot, rows);
        assert!(permitted.contains(&Kind::WriteSkew(Plain)));
        assert!(permitted.iter().all(|kind| matches!(kind, Kind::WriteSkew(_))), "{permitted:?}");
    }
}

#[test]
fn serializable_passes_and_shows_nothing() {
    for rows in [false, true] {
        assert_eq!(expect_clean(Serializable, rows), BTreeSet::new());
    }
}

#[test]
fn dirty_reads_are_found() {
    for isolation in [ReadCommitted, Snapshot, Serializable] {
        expect_found(isolation, Fault::DirtyReads, false, &[Kind::AbortedRead]);
        expect_found(isolation, Fault::DirtyReads, true, &[Kind::AbortedRead]);
    }
}

#[test]
fn lost_updates_are_found() {
    expect_found(Snapshot, Fault::LostUpdates, false, &[Kind::LostUpdate, Kind::IncompatibleOrder]);
    expect_found(Serializable, Fault::LostUpdates, false, &[Kind::IncompatibleOrder]);
}

#[test]
fn snapshots_that_move_are_found() {
    for rows in [false, true] {
        expect_found(Snapshot, Fault::MovingSnapshots, rows, &[Kind::ReadSkew(Plain), Kind::UnrepeatableRead]);
    }
}

#[test]
fn reads_that_are_not_validated_are_found() {
    for rows in [false, true] {
        expect_found(Serializable, Fault::NoValidation, rows, &[Kind::WriteSkew(Plain)]);
    }
}

#[test]
fn old_snapshots_are_found_by_the_strict_levels_only() {
    for rows in [false, true] {
        expect_found(Snapshot, Fault::OldSnapshots, rows, &[Kind::StaleRead(Session), Kind::StaleRead(RealTime)]);
        for seed in 0..SEEDS {
            let history = run(plan(Snapshot, Fault::OldSnapshots, rows, seed));
            check(&history, Level::plain(Snapshot)).unwrap();
        }
    }
}

#[test]
fn keys_that_lag_behind_others_are_found() {
    for rows in [false, true] {
        expect_found(Snapshot, Fault::LaggingKeys, rows, &[Kind::ReadSkew(Plain), Kind::StaleRead(RealTime)]);
    }
}

#[test]
fn lost_appends_are_found() {
    for isolation in [ReadCommitted, Snapshot, Serializable] {
        let kinds = [Kind::StaleRead(Session), Kind::StaleRead(RealTime), Kind::IncompatibleOrder];
        expect_found(isolation, Fault::LostAppends, false, &kinds);
        expect_found(isolation, Fault::LostAppends, true, &kinds[..2]);
    }
}

#[test]
fn wrong_timestamps_are_found() {
    for seed in 0..SEEDS {
        let history = run(plan(Serializable, Fault::WrongTimestamps, false, seed));
        let kinds = analyse(&history).kinds();
        assert!(!kinds.is_empty() && kinds.iter().all(|kind| matches!(kind, Kind::CommitOrder(_))), "{kinds:?}");
    }
}

#[test]
fn every_fault_of_snapshots_breaches_them() {
    for (fault, rows) in [Fault::DirtyReads, Fault::MovingSnapshots, Fault::LaggingKeys, Fault::LostAppends]
        .into_iter()
        .flat_map(|fault| [(fault, false), (fault, true)])
    {
        let history = run(Plan { tells_snapshots: true, ..plan(Snapshot, fault, rows, 1) });
        let kinds = analyse(&history).kinds();
        // Aborted appends are told as such, whatever the snapshot was.
        let kind = if fault == Fault::DirtyReads { Kind::AbortedRead } else { Kind::SnapshotBreach };
        assert!(kinds.contains(&kind), "{fault:?}: {kinds:?}");
    }
}

#[test]
fn many_transactions_are_checked_at_once() {
    for isolation in [Snapshot, Serializable] {
        let history = run(Plan { transactions: 20_000, ..plan(isolation, Fault::Nothing, false, 1) });
        let report = check(&history, Level::strict(isolation)).unwrap();
        assert!(report.transactions > 8_000, "{report:?}");
        assert_eq!(report.has(Kind::WriteSkew(Plain)), isolation == Snapshot);
    }
}

#[test]
fn threads_record_what_they_see() {
    let recorder = Recorder::new();
    let store = Mutex::new(Store::new(plan(Serializable, Fault::Nothing, false, 0)));
    std::thread::scope(|scope| {
        for number in 0..4 {
            let (store, mut session) = (&store, recorder.session());
            scope.spawn(move || {
                for round in 0..200 {
                    let mut record = session.begin();
                    let mut open = store.lock().begin(number);
                    record.snapshot(open.snapshot);
                    let key = round / 20 * 2;
                    record.read(key, store.lock().read(&mut open, key));
                    std::thread::yield_now();
                    let element = record.fresh_element();
                    if !store.lock().append(&mut open, key + u64::from(number % 2), element) {
                        store.lock().abort(&open);
                        record.abort();
                        continue;
                    }
                    record.append(key + u64::from(number % 2), element);
                    let timestamp = store.lock().commit(&open);
                    match timestamp {
                        Some(timestamp) => record.commit(Some(timestamp)),
                        None => record.abort(),
                    }
                }
            });
        }
    });
    let report = check(&recorder.into_history(), Level::strict(Serializable)).unwrap();
    assert_eq!(report.appends, report.transactions);
    assert!(report.transactions >= 50, "{report:?}");
}
