//! Locks, savepoints and commit dependencies of running and prepared transactions; one test for each statement that
//! the model (see `model`) would seldom meet or not explain.
use types::{Command, Rid, Snapshot, StartTime, Timestamp, TxnId};

use crate::record::append::AppendedRecords;
use crate::record::hold::Hold;
use crate::record::view::{Outcome, View};
use crate::record::write::{Change, WriteError, Writer};
use crate::tests::mechanism::{Ended, Fixture, options};
use crate::value::cell::Cell;

const RECORD: usize = 1;

fn rid() -> Rid {
    Rid::base(0, RECORD)
}

/// Three columns, two records inserted at 1, the second of them updated at 5.
fn fixture() -> Fixture {
    let fixture = Fixture::filled(3, options(16, 16), 2);
    fixture.update(RECORD, 5, &[(0, 50)]);
    fixture
}

impl Fixture {
    fn lock(&self, txn: TxnId, at: u64) -> Result<Option<AppendedRecords>, WriteError> {
        self.table.lock(self.own_view(at, txn), txn.word(), rid(), Hold::Whole)
    }

    fn append(&self, txn: TxnId, at: u64, values: &[(usize, u64)]) -> Result<AppendedRecords, WriteError> {
        let values: Vec<_> = values.iter().map(|(column, word)| (*column, Cell::Word(*word))).collect();
        self.table.append(self.own_view(at, txn), txn.word(), rid(), Change::Update(&values))
    }

    fn take_back(&self, txn: TxnId, appended: AppendedRecords) {
        self.table.stamp_versions(&sync::pin(), rid(), appended, txn, StartTime::TOMBSTONE);
    }

    fn writer(&self) -> Writer {
        self.table.newest_writer_latched(self.view(99), rid()).unwrap()
    }
}

#[test]
fn a_lock_keeps_others_off_and_leaves_nothing_behind_however_its_transaction_ends() {
    for outcome in [Outcome::Committed(Timestamp(7)), Outcome::Aborted] {
        for is_stamped in [false, true] {
            let fixture = fixture();
            let (txn, other) = (TxnId::new(1), TxnId::new(2));
            let lock = fixture.lock(txn, 6).unwrap().expect("it was nobody's");
            assert_eq!(fixture.lock(txn, 6), Ok(None), "once is enough");
            assert_eq!(fixture.lock(other, 6), Err(WriteError::Locked(txn)));
            assert_eq!(fixture.append(other, 6, &[(0, 1)]), Err(WriteError::Locked(txn)));
            assert_eq!(fixture.writer(), Writer::Running(txn));
            fixture.ended.end(txn, Outcome::Prepared(Timestamp(7)));
            assert_eq!(fixture.append(other, 8, &[(0, 1)]), Err(WriteError::Locked(txn)), "it is not over");
            fixture.ended.end(txn, outcome);
            if is_stamped {
                let stamp = if outcome == Outcome::Aborted { StartTime::TOMBSTONE } else { 7 };
                fixture.table.stamp_versions(&sync::pin(), rid(), lock, txn, stamp);
            }
            assert_eq!(fixture.writer(), Writer::Settled);
            for _ in 0..3 {
                assert_eq!(fixture.read(RECORD, 9, &[0, 1]), Some(vec![50, 1_001]));
                let times = fixture.table.version_times(rid(), Timestamp::MAX, &fixture.ended);
                assert_eq!(times, Ok([1, 5].map(Timestamp).to_vec()));
                assert_eq!(fixture.table.changed(0, Timestamp(5), Timestamp(9), &fixture.ended), Ok(vec![]));
                fixture.table.merge_range(0, &fixture.ended, Timestamp::ZERO);
                fixture.table.archive_range(0, Timestamp::ZERO, true);
            }
            assert!(fixture.append(other, 6, &[(0, 1)]).is_ok(), "nothing has changed since 6");
        }
    }
}

/// All that a transaction has appended and not taken back tells what it may still do to the record.
#[test]
fn a_lock_tells_how_much_of_the_record_it_keeps() {
    let fixture = fixture();
    let (txn, other) = (TxnId::new(1), TxnId::new(2));
    let lock = |hold| fixture.table.lock(fixture.own_view(6, txn), txn.word(), rid(), hold).unwrap();
    let held = || fixture.table.hold(fixture.view(99), rid(), txn).unwrap();
    let values = lock(Hold::Values).expect("it was nobody's");
    assert_eq!((lock(Hold::Values), held()), (None, Hold::Values));
    let update = fixture.append(txn, 6, &[(0, 60)]).unwrap();
    assert_eq!((lock(Hold::Values), held()), (None, Hold::Values));
    let whole = lock(Hold::Whole).expect("it is more");
    let update_upon = fixture.append(txn, 6, &[(1, 61)]).unwrap();
    assert_eq!((lock(Hold::Whole), lock(Hold::Values), held()), (None, None, Hold::Whole));
    assert_eq!(fixture.append(other, 6, &[(0, 1)]), Err(WriteError::Locked(txn)));
    assert_eq!(fixture.read_as(fixture.own_view(6, txn), RECORD, &[0, 1]), Some(vec![60, 61]));
    fixture.take_back(txn, whole);
    assert_eq!(held(), Hold::Values);
    fixture.take_back(txn, update_upon);
    let end = fixture.table.append(fixture.own_view(6, txn), txn.word(), rid(), Change::Delete).unwrap();
    assert_eq!(held(), Hold::Whole);
    fixture.take_back(txn, end);
    assert_eq!((held(), fixture.writer()), (Hold::Values, Writer::Running(txn)));
    fixture.ended.end(txn, Outcome::Committed(Timestamp(7)));
    fixture.take_back(txn, values);
    fixture.table.stamp_versions(&sync::pin(), rid(), update, txn, 7);
    for _ in 0..3 {
        assert_eq!(fixture.read(RECORD, 7, &[0, 1]), Some(vec![60, 1_001]));
        assert_eq!(fixture.writer(), Writer::Settled);
        fixture.table.merge_range(0, &fixture.ended, Timestamp::ZERO);
        fixture.table.archive_range(0, Timestamp::ZERO, true);
    }
    let inserted = fixture.table.insert(&[10, 11, 12].map(Cell::Word), other.word());
    assert_eq!(fixture.table.hold(fixture.view(99), inserted, other), Ok(Hold::Whole));
}

#[test]
fn a_lock_holds_again_when_what_was_written_upon_it_is_taken_back() {
    for values in [vec![(0, 60)], vec![(2, 60)]] {
        let fixture = fixture();
        let (txn, other) = (TxnId::new(1), TxnId::new(2));
        fixture.lock(txn, 6).unwrap();
        let update = fixture.append(txn, 6, &values).unwrap();
        assert_eq!(fixture.read_as(fixture.own_view(6, txn), RECORD, &[values[0].0]), Some(vec![60]));
        fixture.take_back(txn, update);
        assert_eq!(fixture.read_as(fixture.own_view(6, txn), RECORD, &[0, 2]), Some(vec![50, 2_001]));
        assert_eq!(fixture.append(other, 6, &[(0, 1)]), Err(WriteError::Locked(txn)));
        assert_eq!(fixture.lock(txn, 6), Ok(None));
    }
}

/// The page of column 0 has its value, that of column 1 has not: the update leaves out the one and repeats the other, as
/// if there were no lock below it.
#[test]
fn an_update_upon_a_lock_stays_two_hops_away() {
    for ends_first in [false, true] {
        let fixture = fixture();
        fixture.update(RECORD, 6, &[(1, 60)]);
        fixture.merge_some(&[0, 1, 2]);
        let merged = fixture.update(RECORD, 7, &[(0, 70), (1, 71)]).last;
        fixture.merge_some(&[0]);
        let (txn, view) = (TxnId::new(1), |at| fixture.view(at));
        let lock = fixture.lock(txn, 8).unwrap().unwrap();
        if ends_first {
            fixture.take_back(txn, lock);
        }
        let update = fixture.append(txn, 8, &[(2, 80)]).unwrap();
        let guard = &sync::pin();
        let record = fixture.range().parts[0].tails.get(guard, update.last).unwrap();
        assert_eq!((record.explicit().iter().collect::<Vec<_>>(), record.reset()), (vec![1, 2], merged));
        fixture.take_back(txn, lock);
        fixture.table.stamp_versions(&sync::pin(), rid(), update, txn, 9);
        for _ in 0..3 {
            assert_eq!(fixture.read_as(view(9), RECORD, &[0, 1, 2]), Some(vec![70, 71, 80]));
            assert_eq!(fixture.read_as(view(8), RECORD, &[0, 1, 2]), Some(vec![70, 71, 2_001]));
            assert_eq!(fixture.read_as(view(6), RECORD, &[0, 1, 2]), Some(vec![50, 60, 2_001]));
            fixture.table.merge_range(0, &fixture.ended, Timestamp::ZERO);
            fixture.table.archive_range(0, Timestamp::ZERO, true);
        }
    }
}

/// The snapshot record of such an update is taken back with it, and the history will not have it: the next update has
/// to keep the old values again.
#[test]
fn an_update_taken_back_from_an_own_insert_does_not_cost_the_old_value() {
    let fixture = Fixture::filled(3, options(16, 16), 1);
    let txn = TxnId::new(1);
    let cells = [10, 11, 12].map(Cell::Word);
    assert_eq!(fixture.table.insert(&cells, txn.word()), rid());
    let update = fixture.append(txn, 4, &[(0, 20)]).unwrap();
    assert_eq!(update.last - update.first, 1, "with a snapshot record");
    fixture.take_back(txn, update);
    fixture.table.stamp_insert(&sync::pin(), rid(), txn, 5);
    fixture.update(RECORD, 6, &[(0, 30)]);
    for _ in 0..3 {
        let seen = [4, 5, 6].map(|at| fixture.read(RECORD, at, &[0, 1]));
        assert_eq!(seen, [None, Some(vec![10, 11]), Some(vec![30, 11])]);
        fixture.table.merge_range(0, &fixture.ended, Timestamp::ZERO);
        fixture.table.archive_range(0, Timestamp::ZERO, true);
    }
}

#[test]
fn a_prepared_insert_is_locked_for_those_who_have_read_it_and_not_there_for_others() {
    let fixture = Fixture::filled(3, options(16, 16), 1);
    let (txn, other) = (TxnId::new(1), TxnId::new(2));
    fixture.table.insert(&[10, 11, 12].map(Cell::Word), txn.word());
    assert_eq!(fixture.lock(other, 9), Err(WriteError::NotVisible));
    fixture.ended.end(txn, Outcome::Prepared(Timestamp(5)));
    assert_eq!(fixture.lock(other, 5), Err(WriteError::Locked(txn)));
    assert_eq!(fixture.append(other, 5, &[(0, 1)]), Err(WriteError::Locked(txn)));
    assert_eq!(fixture.lock(other, 4), Err(WriteError::NotVisible));
    assert_eq!(fixture.writer(), Writer::Running(txn));
    assert_eq!(fixture.table.merge_range(0, &fixture.ended, Timestamp::ZERO), None, "it may still abort");
    assert_eq!(fixture.table.version_times(rid(), Timestamp(4), &fixture.ended), Ok(vec![]));
}

/// The fixture's [`Ended::speculate`](crate::Outcomes::speculate) refuses.
#[test]
fn nobody_depends_on_himself() {
    let fixture = fixture();
    let txn = TxnId::new(1);
    fixture.append(txn, 6, &[(0, 60)]).unwrap();
    fixture.ended.end(txn, Outcome::Prepared(Timestamp(7)));
    let own = Snapshot::of_transaction(Timestamp(9), txn);
    let read = |snapshot| fixture.read_as(View::<Ended> { snapshot, outcomes: &fixture.ended }, RECORD, &[0]);
    assert_eq!(read(own), Some(vec![60]));
    assert_eq!(read(Snapshot { before: Command::FIRST, ..own }), Some(vec![50]));
}
