//! Columns that are made of insert pages before the first merge: what they have, and what becomes of them.
use types::{Column, DataType, Rid, Schema, Snapshot, StartTime, Timestamp, TxnId};

use crate::tests::mechanism::Ended;
use crate::value::cell::Cell;
use crate::{Change, Outcome, Table, TableOptions, View};

const RECORDS: usize = 64;
const AT: u64 = 7;

fn empty() -> Table {
    let columns = vec![
        Column::new("n", DataType::BigInt),
        Column::new("half", DataType::Double),
        Column::new("t", DataType::TEXT),
        Column::new("b", DataType::Bytea),
    ];
    Table::new(Schema::new(columns, &[]).unwrap(), TableOptions::with_range(RECORDS), Default::default())
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
    let table = empty();
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
    let bytes = table.build_columns(0).unwrap();
    let restored = empty();
    restored.restore_columns(0, &bytes, Timestamp(AT)).unwrap();
    restored.finish_recovery();
    assert!(restored.is_filled(0, RECORDS));
    check(&restored, &ended, |_| true);
    let before = View { snapshot: Snapshot::at(Timestamp(AT - 1)), outcomes: &ended };
    assert_eq!(restored.read(before, Rid::base(0, 0), &[0], |_| ()).unwrap(), None, "it is of commit {AT}");
    assert!(restored.restore_columns(0, &bytes, Timestamp(AT)).is_err(), "it has records");
}

#[test]
fn damaged_bytes_are_refused_or_are_other_rows() {
    let bytes = filled(TxnId::new(1)).build_columns(0).unwrap();
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
