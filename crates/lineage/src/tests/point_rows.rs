//! Point rows: when a range gets them, that they say what its pages say, and when they go.
use std::sync::Arc;

use types::{Snapshot, Timestamp, TxnId};

use crate::record::view::{Outcome, View};
use crate::tests::mechanism::{Ended, Fixture, options};
use crate::value::cell::Cell;
use crate::{PointColumns, Table};

const RECORDS: usize = 128;

/// Numbers of four, eight and four bytes, by chance.
fn row_of(slot: u64) -> [u64; 3] {
    let number = (slot + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    [number >> 32, number, number << 32 >> 32]
}

fn fixture() -> Fixture {
    let fixture = Fixture::new(3, options(RECORDS, RECORDS));
    for slot in 0..RECORDS as u64 {
        fixture.table.insert(&row_of(slot).map(Cell::Word), 1);
    }
    fixture.table.merge_range(0, &fixture.ended, Timestamp::ZERO);
    fixture
}

fn rids(table: &Table) -> Vec<types::Rid> {
    (0..RECORDS).map(|slot| types::Rid::base(0, slot)).inspect(|rid| assert!(table.point(*rid).rid() == *rid)).collect()
}

/// Reads every record by key, and compares with the general way.
fn expect_same(fixture: &Fixture, at: u64) {
    let (guard, table) = (&sync::pin(), &fixture.table);
    let view = View { snapshot: Snapshot::at(Timestamp(at)), outcomes: &fixture.ended };
    let columns = PointColumns::new(table.schema(), &[2, 0, 1]).unwrap();
    for rid in rids(table) {
        let (mut words, hint) = ([0; 3], *table.point(rid).prefetch().look(guard, &columns, false));
        assert_eq!(hint.read(guard, &view, &columns, &mut words), Ok(Some(0)), "no NULL in {rid:?}");
        let values: Vec<u64> = [2, 0, 1]
            .map(|column| match table.read_values(view, rid, &[column]).unwrap().unwrap()[0] {
                types::Value::BigInt(value) => value as u64,
                ref value => panic!("{value:?} in {rid:?}"),
            })
            .into();
        assert_eq!(words[..], values, "{rid:?} at {at}");
    }
}

fn update(fixture: &Fixture, slot: usize, id: u64, at: u64, word: u64) {
    let (guard, txn) = (&sync::pin(), TxnId::new(id));
    let columns = PointColumns::new(fixture.table.schema(), &[1]).unwrap();
    let view = View { snapshot: Snapshot::of_transaction(Timestamp(at - 1), txn), outcomes: &fixture.ended };
    let point = fixture.table.point(types::Rid::base(0, slot));
    let appended = point.prefetch().append(guard, view, txn.word(), &columns, &[word]).expect("nobody is in the way");
    fixture.ended.end(txn, Outcome::Committed(Timestamp(at)));
    fixture.table.stamp_versions(guard, point.rid(), appended, txn, at);
}

fn rows_bytes(fixture: &Fixture) -> Option<u64> {
    let range = fixture.table.range(0);
    let rows = range.pages.load(&sync::pin()).rows.as_ref().map(Arc::clone)?;
    rows.row(&sync::pin(), 0, 0b111).map(|_| (RECORDS * 3 * 8) as u64)
}

#[test]
fn a_range_that_is_read_by_key_gets_rows_and_keeps_them_while_it_is() {
    let fixture = fixture();
    let merge = || fixture.table.merge_range(0, &fixture.ended, Timestamp::ZERO).is_some();
    let base_bytes = || fixture.table.memory().base_bytes;
    let before = base_bytes();
    fixture.table.make_point_rows(0);
    assert!(rows_bytes(&fixture).is_none() && base_bytes() == before, "nobody has read by key");
    expect_same(&fixture, 1);
    fixture.table.make_point_rows(0);
    assert_eq!(rows_bytes(&fixture).map(|bytes| before + bytes), Some(base_bytes()));
    expect_same(&fixture, 1);
    for (slot, at) in [(3, 2), (64, 3), (127, 4), (3, 5)] {
        update(&fixture, slot, at, at, 1000 + at);
        expect_same(&fixture, at);
    }
    assert!(merge() && rows_bytes(&fixture).is_some(), "the merge takes the rows over");
    expect_same(&fixture, 5);
    expect_same(&fixture, 2);
    assert!(fixture.table.range(0).pages.load(&sync::pin()).rows.as_ref().unwrap().take_recent());
    // The column was updated before, so that the writer needs no old value.
    update(&fixture, 3, 6, 6, 1);
    assert!(merge());
    assert!(rows_bytes(&fixture).is_none(), "nobody has read a row since the last merge");
    expect_same(&fixture, 6);
}

#[test]
fn a_writer_keeps_the_old_values_of_the_rows() {
    let fixture = fixture();
    expect_same(&fixture, 1);
    fixture.table.make_point_rows(0);
    update(&fixture, 5, 1, 2, 99);
    let view = View { snapshot: Snapshot::at(Timestamp(1)), outcomes: &fixture.ended as &Ended };
    let old = row_of(5)[1] as i64;
    for merged in [false, true] {
        let read = fixture.table.read_values(view, types::Rid::base(0, 5), &[1]);
        assert_eq!(read, Ok(Some(vec![types::Value::BigInt(old)])), "merged: {merged}");
        fixture.table.merge_range(0, &fixture.ended, Timestamp::ZERO);
    }
}
