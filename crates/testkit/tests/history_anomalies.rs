//! Every anomaly in its smallest history, by hand: it is found, under its name, and forbidden where it must be.

mod support;

use std::collections::BTreeSet;

use support::{append, concurrent, read, read_set, timed};
use testkit::history::{History, Isolation, Kind, Level, Outcome, Strictness, analyse, check};

use Isolation::{ReadCommitted, Serializable, Snapshot};
use Strictness::{Plain, RealTime, Session};

const ISOLATIONS: [Isolation; 3] = [ReadCommitted, Snapshot, Serializable];
const STRICTNESSES: [Strictness; 3] = [Plain, Session, RealTime];

/// Asserts that just these kinds are found, and that just these levels forbid the history: those at least as strong as
/// `isolation` and at least as strict as `strictness`.
#[track_caller]
fn expect(history: &History, kinds: &[Kind], isolation: Isolation, strictness: Strictness) {
    let report = analyse(history);
    assert_eq!(report.kinds(), kinds.iter().copied().collect::<BTreeSet<_>>(), "{:#?}", report.anomalies);
    for level in ISOLATIONS.into_iter().flat_map(|isolation| STRICTNESSES.map(|strictness| (isolation, strictness))) {
        let is_forbidden = level.0 >= isolation && level.1 >= strictness;
        let result = check(history, Level { isolation: level.0, strictness: level.1 });
        assert_eq!(result.is_err(), is_forbidden, "{level:?}: {result:?}");
    }
}

#[track_caller]
fn expect_clean(history: &History) {
    let report = analyse(history);
    assert_eq!(report.anomalies, []);
}

#[test]
fn transactions_in_a_row_are_fine() {
    let history = History {
        transactions: vec![
            timed(0, (1, 2), &[append(1, 1), append(2, 2)]),
            timed(1, (3, 4), &[read(1, &[1]), append(1, 3), read(1, &[1, 3])]),
            timed(0, (5, 6), &[read(1, &[1, 3]), read(2, &[2]), read(9, &[])]),
        ],
    };
    expect_clean(&history);
    let report = analyse(&history);
    assert_eq!((report.transactions, report.appends, report.reads), (3, 3, 5));
    let edges = report.dependencies;
    assert_eq!((edges.write_write, edges.write_read, edges.read_write, edges.session), (1, 4, 0, 1));
}

#[test]
fn an_own_append_that_is_not_read_is_internal() {
    expect(&concurrent(&[&[append(1, 1), read(1, &[])]]), &[Kind::Internal], ReadCommitted, Plain);
    expect(&concurrent(&[&[append(1, 1), read_set(1, &[])]]), &[Kind::Internal], ReadCommitted, Plain);
    expect_clean(&concurrent(&[&[append(1, 1), read(1, &[1]), append(1, 2), read(1, &[1, 2])]]));
}

#[test]
fn an_own_append_must_be_at_the_end() {
    let history = concurrent(&[&[append(1, 1), read(1, &[1, 2])], &[append(1, 2)]]);
    let kinds = analyse(&history).kinds();
    assert!(kinds.contains(&Kind::Internal), "{kinds:?}");
}

#[test]
fn a_read_that_moves_forward_is_for_read_committed_only() {
    let kinds = [Kind::UnrepeatableRead, Kind::ReadSkew(Plain)];
    expect(&concurrent(&[&[read(1, &[]), read(1, &[1])], &[append(1, 1)]]), &kinds, Snapshot, Plain);
    expect(&concurrent(&[&[read_set(1, &[]), read_set(1, &[1])], &[append(1, 1)]]), &kinds, Snapshot, Plain);
}

#[test]
fn a_read_that_moves_backward_is_for_no_strict_level() {
    let history = concurrent(&[&[read(1, &[1]), read(1, &[])], &[append(1, 1)]]);
    let kinds = analyse(&history).kinds();
    assert_eq!(kinds, BTreeSet::from([Kind::BackwardRead, Kind::ReadSkew(Plain)]));
    assert!(check(&history, Level::plain(ReadCommitted)).is_ok());
    assert!(check(&history, Level::strict(ReadCommitted)).is_err());
    assert!(check(&history, Level::plain(Snapshot)).is_err());
}

#[test]
fn an_element_that_is_there_twice_is_found() {
    let history = concurrent(&[&[append(1, 1)], &[read(1, &[1, 1])]]);
    expect(&history, &[Kind::DuplicateElement], ReadCommitted, Plain);
}

#[test]
fn an_element_that_nobody_appended_is_found() {
    let history = concurrent(&[&[append(1, 1)], &[read(1, &[1, 7])], &[read(1, &[1])]]);
    expect(&history, &[Kind::UnwrittenElement], ReadCommitted, Plain);
}

#[test]
fn reads_that_do_not_continue_one_another_are_incompatible() {
    let history = concurrent(&[&[append(1, 1)], &[append(1, 2)], &[read(1, &[1])], &[read(1, &[2])]]);
    let kinds = analyse(&history).kinds();
    assert!(kinds.contains(&Kind::IncompatibleOrder));
    assert!(check(&history, Level::plain(ReadCommitted)).is_err());
    expect_clean(&concurrent(&[&[append(1, 1)], &[append(1, 2)], &[read(1, &[1])], &[read(1, &[1, 2])]]));
}

#[test]
fn a_read_of_an_aborted_append_is_g1a() {
    let mut history = concurrent(&[&[append(1, 1)], &[read(1, &[1])], &[append(1, 2)], &[read(1, &[2])]]);
    history.transactions[0].outcome = Outcome::Aborted;
    expect(&history, &[Kind::AbortedRead], ReadCommitted, Plain);
    assert_eq!(analyse(&history).anomalies[0].transactions, [0, 1]);
    history.transactions[1].outcome = Outcome::Aborted;
    expect_clean(&history);
}

#[test]
fn a_read_between_two_appends_of_a_transaction_is_g1b() {
    let history = concurrent(&[&[append(1, 1), append(1, 2)], &[read(1, &[1])], &[read(1, &[1, 2])]]);
    let kinds = analyse(&history).kinds();
    assert!(kinds.contains(&Kind::IntermediateRead), "{kinds:?}");
    assert!(check(&history, Level::plain(ReadCommitted)).is_err());
}

#[test]
fn writers_in_a_circle_are_g0() {
    let history = concurrent(&[
        &[append(1, 1), append(2, 2)],
        &[append(1, 3), append(2, 4)],
        &[read(1, &[1, 3]), read(2, &[4, 2])],
    ]);
    expect(&history, &[Kind::WriteCycle(Plain)], ReadCommitted, Plain);
}

#[test]
fn a_transaction_between_two_appends_of_another_is_g0() {
    let history = concurrent(&[&[append(1, 1), append(1, 3)], &[append(1, 2)], &[read(1, &[1, 2, 3])]]);
    expect(&history, &[Kind::WriteCycle(Plain)], ReadCommitted, Plain);
}

#[test]
fn two_that_read_from_one_another_are_g1c() {
    let history = concurrent(&[&[append(1, 1), read(2, &[2])], &[append(2, 2), read(1, &[1])]]);
    expect(&history, &[Kind::CircularInformation(Plain)], ReadCommitted, Plain);
}

#[test]
fn two_that_append_behind_the_same_version_lose_an_update() {
    // T1 was overwritten by T2: its append is never seen.
    let overwritten = concurrent(&[&[read(1, &[]), append(1, 1)], &[read(1, &[]), append(1, 2)], &[read(1, &[2])]]);
    expect(&overwritten, &[Kind::LostUpdate, Kind::ReadSkew(Plain)], Snapshot, Plain);
    let both = concurrent(&[&[read(1, &[]), append(1, 1)], &[read(1, &[]), append(1, 2)], &[read(1, &[1, 2])]]);
    expect(&both, &[Kind::LostUpdate, Kind::ReadSkew(Plain)], Snapshot, Plain);
    let unread = concurrent(&[&[read(1, &[]), append(1, 1)], &[read(1, &[]), append(1, 2)]]);
    assert!(analyse(&unread).has(Kind::LostUpdate));
}

#[test]
fn half_of_a_transaction_is_read_skew() {
    let history = concurrent(&[&[append(1, 1), append(2, 2)], &[read(1, &[1]), read(2, &[])], &[read(2, &[2])]]);
    expect(&history, &[Kind::ReadSkew(Plain)], Snapshot, Plain);
    let anomaly = &analyse(&history).anomalies[0];
    assert_eq!(anomaly.transactions.len(), 2);
    assert!(anomaly.explanation.contains("T1 before T0: T1 read list 2 without 2, which T0 appended (rw)"));
    assert!(anomaly.explanation.contains("T0 before T1: T1 read 1 in list 1, which T0 appended (wr)"));
    assert!(anomaly.explanation.contains("T0, session 0, instants 0 to 1000, committed: append(1, 1) append(2, 2)"));
}

#[test]
fn two_readers_that_see_two_writers_in_different_orders_are_a_long_fork() {
    let history =
        concurrent(&[&[append(1, 1)], &[append(2, 2)], &[read(1, &[1]), read(2, &[])], &[read(1, &[]), read(2, &[2])]]);
    expect(&history, &[Kind::LongFork(Plain)], Snapshot, Plain);
}

#[test]
fn two_that_read_what_the_other_writes_are_write_skew() {
    let operations = [[read(1, &[]), append(2, 2)], [read(2, &[]), append(1, 1)]];
    let history = concurrent(&[&operations[0], &operations[1], &[read(1, &[1]), read(2, &[2])]]);
    expect(&history, &[Kind::WriteSkew(Plain)], Serializable, Plain);
    // Also where their writes are never read.
    expect(&concurrent(&[&operations[0], &operations[1]]), &[Kind::WriteSkew(Plain)], Serializable, Plain);
}

#[test]
fn a_phantom_is_write_skew() {
    let history = concurrent(&[
        &[append(1, 1), append(1, 2)],
        &[read_set(1, &[2, 1]), append(2, 3)],
        &[read_set(2, &[]), append(1, 4)],
        &[read_set(1, &[4, 1, 2]), read_set(2, &[3])],
    ]);
    expect(&history, &[Kind::WriteSkew(Plain)], Serializable, Plain);
}

#[test]
fn appends_to_a_set_are_in_no_order() {
    let history =
        concurrent(&[&[append(1, 1), read_set(1, &[1])], &[append(1, 2), read_set(1, &[2])], &[read_set(1, &[2, 1])]]);
    expect(&history, &[Kind::WriteSkew(Plain)], Serializable, Plain);
    expect_clean(&concurrent(&[&[append(1, 1)], &[append(1, 2)], &[read_set(1, &[2])], &[read_set(1, &[1, 2])]]));
}

#[test]
fn a_read_only_transaction_can_show_that_two_writers_were_not_serial() {
    // Fekete, O'Neil and O'Neil, "A Read-Only Transaction Anomaly Under Snapshot Isolation", 2004.
    let history = concurrent(&[
        &[read(1, &[]), append(1, 1)],
        &[read(1, &[]), read(2, &[]), append(2, 2)],
        &[read(1, &[1]), read(2, &[])],
        &[read(2, &[2])],
    ]);
    expect(&history, &[Kind::WriteSkew(Plain)], Serializable, Plain);
}

#[test]
fn who_does_not_see_what_was_committed_before_it_began_reads_stale() {
    let writer = timed(0, (1, 2), &[append(1, 1)]);
    let elsewhere = History { transactions: vec![writer.clone(), timed(1, (3, 4), &[read(1, &[])])] };
    expect(&elsewhere, &[Kind::StaleRead(RealTime)], ReadCommitted, RealTime);
    let in_session = History { transactions: vec![writer.clone(), timed(0, (3, 4), &[read(1, &[])])] };
    expect(&in_session, &[Kind::StaleRead(Session)], ReadCommitted, Session);
    expect_clean(&History { transactions: vec![writer.clone(), timed(1, (2, 4), &[read(1, &[])])] });
    expect_clean(&History { transactions: vec![writer, timed(1, (0, 4), &[read(1, &[])])] });
}

#[test]
fn what_ended_long_ago_must_be_seen() {
    let mut transactions = vec![timed(0, (1, 2), &[append(1, 1)])];
    transactions.extend((1..5).map(|other| timed(other, (other as u64 * 2 + 1, other as u64 * 2 + 2), &[])));
    transactions.push(timed(9, (20, 21), &[read(1, &[])]));
    let history = History { transactions };
    expect(&history, &[Kind::StaleRead(RealTime)], ReadCommitted, RealTime);
    assert_eq!(analyse(&history).anomalies[0].transactions, [5, 0]);
}

#[test]
fn one_append_that_had_ended_is_missed_among_many_that_had_not() {
    let mut history = concurrent(&[&[append(1, 1)], &[read(1, &[1])]]);
    history.transactions.extend((2..100).map(|number| timed(number, (3, 1000), &[append(1, number.into())])));
    expect_clean(&history);
    history.transactions.push(timed(100, (3, 4), &[append(1, 100)]));
    history.transactions.push(timed(101, (5, 6), &[read(1, &[1])]));
    expect(&history, &[Kind::StaleRead(RealTime)], ReadCommitted, RealTime);
}

#[test]
fn a_circle_is_found_however_long_it_is() {
    let count = 2500;
    let history = History {
        transactions: (0..count)
            .map(|number| {
                let before = (number + count - 1) % count;
                timed(number as u32, (1, 2), &[append(number, number), read(before, &[before])])
            })
            .collect(),
    };
    let report = analyse(&history);
    assert_eq!(report.kinds(), BTreeSet::from([Kind::CircularInformation(Plain)]));
    assert_eq!(report.anomalies[0].transactions.len(), count as usize);
    assert!(report.anomalies[0].explanation.lines().count() < 50);
}

#[test]
fn a_circle_is_told_with_as_few_reads_that_miss_something_as_there_can_be() {
    let history = concurrent(&[
        &[read(1, &[]), append(2, 2), read(4, &[4])],
        &[append(1, 1), read(2, &[]), append(3, 3)],
        &[read(3, &[3]), append(4, 4)],
    ]);
    expect(&history, &[Kind::ReadSkew(Plain)], Snapshot, Plain);
}

#[test]
fn what_one_has_seen_a_later_one_must_see() {
    // The writer has not ended, but a reader that saw it has.
    let history = History {
        transactions: vec![
            timed(0, (1, 100), &[append(1, 1)]),
            timed(1, (2, 3), &[read(1, &[1])]),
            timed(2, (4, 5), &[read(1, &[])]),
        ],
    };
    expect(&history, &[Kind::StaleRead(RealTime)], ReadCommitted, RealTime);
}

#[test]
fn a_lost_append_is_a_stale_read() {
    let history = History {
        transactions: vec![
            timed(0, (1, 2), &[append(1, 1)]),
            timed(1, (3, 4), &[append(1, 2)]),
            timed(2, (5, 6), &[read(1, &[2])]),
        ],
    };
    let kinds = analyse(&history).kinds();
    assert!(kinds.contains(&Kind::StaleRead(RealTime)), "{kinds:?}");
}

#[test]
fn skews_with_real_time_are_for_strict_levels() {
    // T0 misses T1. T2 began after the end of T1, and T0 sees T2.
    let skew = History {
        transactions: vec![
            timed(0, (1, 100), &[read(2, &[2]), read(1, &[])]),
            timed(1, (2, 3), &[append(1, 1)]),
            timed(2, (4, 5), &[append(2, 2)]),
        ],
    };
    expect(&skew, &[Kind::ReadSkew(RealTime)], Snapshot, RealTime);
    // T0 misses T1 and is missed by T2, which began after T1 had ended.
    let write_skew = History {
        transactions: vec![
            timed(0, (1, 100), &[read(1, &[]), append(2, 2)]),
            timed(1, (2, 3), &[append(1, 1)]),
            timed(2, (4, 5), &[read(2, &[])]),
        ],
    };
    expect(&write_skew, &[Kind::WriteSkew(RealTime)], Serializable, RealTime);
}

#[test]
fn writers_against_real_time_are_for_strict_levels() {
    let late = timed(1, (3, 4), &[append(1, 2)]);
    let history = |session| History {
        transactions: vec![
            timed(0, (1, 2), &[append(1, 1)]),
            late.clone(),
            timed(session, (1, 100), &[read(1, &[2, 1])]),
        ],
    };
    expect(&history(2), &[Kind::WriteCycle(RealTime)], ReadCommitted, RealTime);
    let mut reader_first = history(2);
    reader_first.transactions[1] = timed(1, (3, 4), &[read(2, &[9]), append(3, 3)]);
    reader_first.transactions[2] = timed(2, (1, 100), &[append(2, 9), read(3, &[3])]);
    expect(&reader_first, &[Kind::CircularInformation(Plain)], ReadCommitted, Plain);
}

#[test]
fn an_unknown_outcome_counts_once_it_is_read() {
    let mut history = concurrent(&[&[append(1, 1), append(2, 2)], &[read(1, &[]), read(2, &[])]]);
    history.transactions[0].outcome = Outcome::Unknown;
    expect_clean(&history);
    assert_eq!(analyse(&history).transactions, 1);
    history.transactions.push(timed(7, (1, 1000), &[read(1, &[1])]));
    expect_clean(&history);
    assert_eq!(analyse(&history).transactions, 3);
    history.transactions.push(timed(8, (1, 1000), &[read(1, &[1]), read(2, &[])]));
    expect(&history, &[Kind::ReadSkew(Plain)], Snapshot, Plain);
}

#[test]
fn an_unknown_outcome_may_come_after_its_end() {
    let mut history = History {
        transactions: vec![
            timed(0, (1, 2), &[append(1, 1)]),
            timed(0, (3, 4), &[read(1, &[])]),
            timed(1, (5, 6), &[read(1, &[1])]),
        ],
    };
    assert_eq!(analyse(&history).kinds(), BTreeSet::from([Kind::StaleRead(Session)]));
    history.transactions[0].outcome = Outcome::Unknown;
    expect_clean(&history);
}

#[test]
fn commit_timestamps_follow_the_data() {
    let mut history = concurrent(&[&[append(1, 1)], &[read(1, &[1]), append(1, 2)], &[read(1, &[1, 2])]]);
    history.transactions[0].commit_timestamp = Some(5);
    history.transactions[1].commit_timestamp = Some(6);
    expect_clean(&history);
    history.transactions[1].commit_timestamp = Some(4);
    expect(&history, &[Kind::CommitOrder(Plain)], ReadCommitted, Plain);
}

#[test]
fn commit_timestamps_follow_real_time() {
    let mut history =
        History { transactions: vec![timed(0, (3, 4), &[append(2, 1)]), timed(1, (1, 2), &[append(1, 1)])] };
    history.transactions[0].commit_timestamp = Some(6);
    history.transactions[1].commit_timestamp = Some(5);
    expect_clean(&history);
    history.transactions[0].commit_timestamp = Some(4);
    expect(&history, &[Kind::CommitOrder(RealTime)], ReadCommitted, RealTime);
}

#[test]
fn a_snapshot_sees_what_was_committed_up_to_it_and_nothing_else() {
    for (is_set, snapshot) in [false, true].into_iter().flat_map(|is_set| (4..=7).map(move |at| (is_set, at))) {
        let look = |key, list: &[u64]| if is_set { read_set(key, list) } else { read(key, list) };
        let mut history = concurrent(&[&[append(1, 1)], &[append(1, 2)], &[look(1, &[1])], &[look(1, &[1, 2])]]);
        history.transactions[0].commit_timestamp = Some(5);
        history.transactions[1].commit_timestamp = Some(7);
        history.transactions[2].snapshot = Some(snapshot);
        match snapshot {
            5 | 6 => expect_clean(&history),
            _ => expect(&history, &[Kind::SnapshotBreach], ReadCommitted, Plain),
        }
    }
}

#[test]
fn a_read_of_the_past_is_not_stale() {
    let mut history = History {
        transactions: vec![
            timed(0, (1, 2), &[append(1, 1)]),
            timed(0, (3, 4), &[append(1, 2)]),
            timed(1, (0, 6), &[read(1, &[1])]),
            timed(0, (7, 8), &[read(1, &[1, 2])]),
        ],
    };
    history.transactions[0].commit_timestamp = Some(1);
    history.transactions[1].commit_timestamp = Some(2);
    history.transactions[2].snapshot = Some(1);
    expect_clean(&history);
    history.transactions[2].snapshot = Some(2);
    expect(&history, &[Kind::SnapshotBreach], ReadCommitted, Plain);
    // Also if no read has the append that is missed.
    history.transactions.pop();
    expect(&history, &[Kind::SnapshotBreach], ReadCommitted, Plain);
}

#[test]
#[should_panic(expected = "element 1 was appended to 1 by T0 and by T1")]
fn an_element_that_is_appended_twice_is_refused() {
    analyse(&concurrent(&[&[append(1, 1)], &[append(1, 1)]]));
}

#[test]
fn a_violation_tells_level_and_circle() {
    let history = concurrent(&[&[append(1, 1), append(2, 2)], &[read(1, &[1]), read(2, &[])], &[read(2, &[2])]]);
    let violation = check(&history, Level::strict(Snapshot)).expect_err("read skew");
    let text = format!("{violation:?}");
    assert!(text.starts_with("SNAPSHOT with real time forbids 1 anomalies of 3 transactions:\nread skew (G-single):"));
}
