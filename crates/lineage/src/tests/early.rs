//! Columns that are made of insert pages before the first merge: what they have, and what becomes of them.
use std::sync::Arc;
use std::sync::atomic::Ordering;

use types::{BlobRef, Column, DataType, Rid, Schema, Snapshot, StartTime, Timestamp, TxnId};

use crate::image::tests::{Blobs, Shelf};
use crate::memory::budget::MemoryBudget;
use crate::tests::mechanism::Ended;
use crate::value::cell::Cell;
use crate::{BlobSink, Change, Outcome, PageReading, Table, TableOptions, View};

const RECORDS: usize = 64;
const AT: u64 = 7;

fn empty() -> Table {
    empty_in(Default::default())
}

/// A table whose pages go to the source that this account has.
fn empty_in(budget: Arc<MemoryBudget>) -> Table {
    let columns = vec![
        Column::new("n", DataType::BigInt),
        Column::new("half", DataType::Double),
        Column::new("t", DataType::TEXT),
        Column::new("b", DataType::Bytea),
    ];
    Table::new(Schema::new(columns, &[]).unwrap(), TableOptions::with_range(RECORDS), budget)
}

/// A row whose values are short, long, repeated, and now and then NULL.
fn texts(slot: usize) -> (String, Vec<u8>) {
    (format!("kind {}", slot % 3).repeat(1 + slot % 4), vec![slot as u8; slot])
}

fn row<'t>(slot: usize, (text, bytes): &'t (String, Vec<u8>)) -> [Cell<'t>; 4] {
    let is_null = slot % 7 == 3;
    [
        Cell::Word(slot as u64 * 1_000_003),
        if is_null { Cell::Null } else { Cell::Word((slot as f64 / 2.0).to_bits()) },
        if is_null { Cell::Null } else { Cell::Bytes(text.as_bytes()) },
        Cell::Bytes(bytes),
    ]
}

/// A range that one transaction has filled, which runs.
fn filled(txn: TxnId) -> Table {
    filled_in(empty(), txn)
}

fn filled_in(table: Table, txn: TxnId) -> Table {
    for slot in 0..RECORDS {
        let texts = texts(slot);
        assert_eq!(table.insert(&row(slot, &texts), txn.word()), Rid::base(0, slot));
    }
    table
}

fn check(table: &Table, ended: &Ended, is_there: impl Fn(usize) -> bool) {
    let view = View { snapshot: Snapshot::at(Timestamp(AT)), outcomes: ended };
    for slot in 0..RECORDS {
        let (texts, columns) = (texts(slot), [0, 1, 2, 3]);
        let read = table.read(view, Rid::base(0, slot), &columns, |cells| assert_eq!(cells, row(slot, &texts)));
        assert_eq!(read.unwrap().is_some(), is_there(slot), "record {slot}");
    }
}

fn stamp(table: &Table, txn: TxnId, slot: usize, stamp: u64) {
    table.stamp_insert(&sync::pin(), Rid::base(0, slot), txn, stamp);
}

#[test]
fn a_first_merge_takes_them_where_all_was_committed() {
    for rolled_back in [None, Some(9)] {
        let (txn, ended) = (TxnId::new(1), Ended::default());
        let table = filled(txn);
        assert!(table.is_filled(0, RECORDS) && table.build_columns(0).is_some());
        table.merge_range(0, &ended, Timestamp::ZERO);
        assert_eq!(table.stats().merges, 0, "the transaction runs");
        ended.end(txn, Outcome::Committed(Timestamp(AT)));
        for slot in 0..RECORDS {
            stamp(&table, txn, slot, if rolled_back == Some(slot) { StartTime::TOMBSTONE } else { AT });
        }
        table.merge_range(0, &ended, Timestamp::ZERO);
        assert_eq!(table.stats().merges, 1);
        check(&table, &ended, |slot| rolled_back != Some(slot));
        assert!(table.build_columns(0).is_none() && table.inserted(0, 0..1).is_none(), "there are base pages");
    }
}

#[test]
fn what_was_changed_since_is_merged_in() {
    let (txn, ended) = (TxnId::new(1), Ended::default());
    let table = filled(txn);
    table.build_columns(0).unwrap();
    ended.end(txn, Outcome::Committed(Timestamp(AT)));
    (0..RECORDS).for_each(|slot| stamp(&table, txn, slot, AT));
    let view = || View { snapshot: Snapshot::at(Timestamp(AT + 1)), outcomes: &ended };
    table.append(view(), AT + 1, Rid::base(0, 5), Change::Update(&[(0, Cell::Word(55))])).unwrap();
    table.merge_range(0, &ended, Timestamp::ZERO);
    assert_eq!(table.stats().tail_records_unmerged, 0);
    let value = |slot| table.read(view(), Rid::base(0, slot), &[0], |cells| cells[0] == Cell::Word(55)).unwrap();
    assert_eq!([value(5), value(6)], [Some(true), Some(false)]);
}

#[test]
fn a_range_comes_back_from_their_bytes() {
    let (table, ended) = (filled(TxnId::new(1)), Ended::default());
    let bytes = table.build_columns(0).unwrap().to_bytes();
    let restored = empty();
    restored.restore_columns(0, &bytes, Timestamp(AT)).unwrap();
    restored.finish_recovery();
    assert!(restored.is_filled(0, RECORDS));
    check(&restored, &ended, |_| true);
    let before = View { snapshot: Snapshot::at(Timestamp(AT - 1)), outcomes: &ended };
    assert_eq!(restored.read(before, Rid::base(0, 0), &[0], |_| ()).unwrap(), None, "it is of commit {AT}");
    assert!(restored.restore_columns(0, &bytes, Timestamp(AT)).is_err(), "it has records");
}

/// Puts the columns of a range into blobs. Returns them, and what the log is to have of them.
fn in_blobs(table: &Table) -> (Blobs, Vec<u8>) {
    let (columns, mut blobs) = (table.build_columns(0).unwrap(), Blobs::default());
    let places: Vec<BlobRef> = columns.blobs().map(|bytes| blobs.put(bytes).unwrap()).collect();
    table.place_columns(0, &places);
    (blobs, columns.with_blobs(&places))
}

#[test]
fn a_range_comes_back_from_blobs_that_are_read_when_they_are_used() {
    let ended = Ended::default();
    let (blobs, said) = in_blobs(&filled(TxnId::new(1)));
    for reading in [PageReading::WhenUsed, PageReading::AtOnce] {
        let (shelf, budget) = Shelf::with_budget();
        let restored = empty_in(budget);
        assert!(restored.restore_blobs(0, &said, Timestamp(AT), (reading, "t")).is_err(), "no file has the blobs");
        shelf.fill(&blobs);
        restored.restore_blobs(0, &said, Timestamp(AT), (reading, "t")).unwrap();
        restored.finish_recovery();
        let view = View { snapshot: Snapshot::at(Timestamp(AT)), outcomes: &ended };
        // What was not read yet can't be, and is told; what was read is there.
        shelf.is_broken.store(true, Ordering::Relaxed);
        let read = restored.read(view, Rid::base(0, 1), &[2], |_| ());
        match reading {
            PageReading::AtOnce => assert!(read.unwrap().is_some()),
            PageReading::WhenUsed => {
                let error = read.unwrap_err().to_string();
                assert!(error.contains("column \"t\" of range 0 of \"t\""), "{error}");
            }
        }
        shelf.is_broken.store(false, Ordering::Relaxed);
        check(&restored, &ended, |_| true);
    }
}

/// The next image refers to the blobs.
#[test]
fn an_image_keeps_the_blobs_of_columns_that_a_merge_has_taken() {
    let (txn, ended) = (TxnId::new(1), Ended::default());
    let (_shelf, budget) = Shelf::with_budget();
    let table = filled_in(empty_in(budget), txn);
    let (mut blobs, _) = in_blobs(&table);
    ended.end(txn, Outcome::Committed(Timestamp(AT)));
    (0..RECORDS).for_each(|slot| stamp(&table, txn, slot, AT));
    table.merge_range(0, &ended, Timestamp::ZERO);
    blobs.begin();
    let image = table.image_range(0, &ended, || Timestamp(AT), &mut blobs).unwrap();
    assert_eq!((blobs.kept.len(), blobs.put.len()), (4, 1), "four columns, and the image itself");
    image.published();
}

#[test]
fn blobs_that_are_said_otherwise_are_refused_or_read_as_other_rows() {
    let (blobs, said) = in_blobs(&filled(TxnId::new(1)));
    let (ended, columns) = (Ended::default(), [0, 1, 2, 3]);
    for place in 0..said.len() {
        let (shelf, budget) = Shelf::with_budget();
        shelf.fill(&blobs);
        let (mut damaged, table) = (said.clone(), empty_in(budget));
        damaged[place] ^= 1 << (place % 8);
        if table.restore_blobs(0, &damaged, Timestamp(AT), (PageReading::WhenUsed, "t")).is_ok() {
            table.finish_recovery();
            let view = View { snapshot: Snapshot::at(Timestamp(AT)), outcomes: &ended };
            let read = |slot| table.read(view, Rid::base(0, slot), &columns, |cells| cells.len());
            (0..table.range_len(0)).for_each(|slot| assert!(matches!(read(slot), Ok(Some(4)) | Err(_)), "{place}"));
        }
        let cut = empty_in(Shelf::with_budget().1).restore_blobs(
            0,
            &said[..place],
            Timestamp(AT),
            (PageReading::AtOnce, "t"),
        );
        assert!(cut.is_err(), "cut at {place}");
    }
}

#[test]
fn damaged_bytes_are_refused_or_are_other_rows() {
    let bytes = filled(TxnId::new(1)).build_columns(0).unwrap().to_bytes();
    for place in 0..bytes.len() {
        for bit in [1, 1 << 6] {
            let (mut damaged, table) = (bytes.clone(), empty());
            damaged[place] ^= bit;
            if table.restore_columns(0, &damaged, Timestamp(AT)).is_ok() {
                table.finish_recovery();
                let ended = Ended::default();
                let view = View { snapshot: Snapshot::at(Timestamp(AT)), outcomes: &ended };
                let read = |slot| table.read(view, Rid::base(0, slot), &[0, 1, 2, 3], |cells| cells.len()).unwrap();
                assert!((0..table.range_len(0)).all(|slot| read(slot) == Some(4)));
            }
        }
        assert!(empty().restore_columns(0, &bytes[..place], Timestamp(AT)).is_err(), "cut at {place}");
    }
}
