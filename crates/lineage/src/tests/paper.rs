//! Tables 1, 2 and 3 of the L-Store paper as tests, with their exact records: k1..k3 under columns Key, A, B and C.
//!
//! Times are written as in the paper (10:02 is 1002); the delete of b1 at 20:15 belongs to a transaction that still
//! runs while the first merge takes in t1 to t7.
use std::sync::Arc;

use types::{Column, DataType, Rid, Schema, Snapshot, Timestamp, TxnId};

use crate::page::base::MetaPage;
use crate::record::append::AppendedRecords;
use crate::record::range::Range;
use crate::record::view::{Outcome, Outcomes, View};
use crate::record::write::Change;
use crate::value::cell::Cell;
use crate::value::kind::Kind;
use crate::{Table, TableOptions};

const A: usize = 1;
const B: usize = 2;
const C: usize = 3;

/// The only transaction that runs is the one which deletes b1.
struct OnlyDeleteRuns;

impl Outcomes for OnlyDeleteRuns {
    fn outcome(&self, _: TxnId) -> Outcome {
        Outcome::Active
    }

    fn speculate(&self, _: Snapshot, _: TxnId) -> bool {
        unreachable!("nothing is prepared")
    }

    fn await_decision(&self, _: TxnId) {}
}

fn view(at: u64) -> View<'static, OnlyDeleteRuns> {
    View { snapshot: Snapshot::at(Timestamp(at)), outcomes: &OnlyDeleteRuns }
}

/// A value such as a21 as a word: the column's position, the record, the version.
fn word(column: usize, record: u64, version: u64) -> Cell<'static> {
    Cell::Word(column as u64 * 1_000 + record * 100 + version)
}

fn update(table: &Table, slot: usize, at: u64, values: &[(usize, Cell<'_>)]) {
    table.append(view(at), at, Rid::base(0, slot), Change::Update(values)).unwrap();
}

fn deleter() -> TxnId {
    TxnId::new(1)
}

/// The records of Table 1: t1 to t8.
fn table_1() -> Table {
    let names = ["key", "a", "b", "c"];
    let schema = Schema::new(names.map(|name| Column::new(name, DataType::BigInt)).to_vec(), &["key"]).unwrap();
    let table = Table::new(schema, TableOptions { workers: 1, ..TableOptions::default() }, Arc::default());
    for (record, inserted) in [(1, 1002), (2, 1304), (3, 1505)] {
        let cells: Vec<Cell<'_>> = (0..4).map(|column| word(column, record, 0)).collect();
        table.insert(&cells, inserted);
    }
    update(&table, 1, 1921, &[(A, word(A, 2, 1))]);
    update(&table, 1, 1924, &[(A, word(A, 2, 2))]);
    update(&table, 1, 1925, &[(C, word(C, 2, 1))]);
    update(&table, 2, 1945, &[(C, word(C, 3, 1))]);
    table.append(view(2015), deleter().word(), Rid::base(0, 0), Change::Delete).unwrap();
    table
}

/// One line of a table of the paper: number, indirection, kind, start time, explicit values.
type Line<'a> = (u64, u64, Kind, u64, &'a [(usize, Cell<'a>)]);

fn assert_tail(range: &Range, lines: &[Line<'_>]) {
    for (sequence, prev, kind, start, values) in lines {
        let guard = &sync::pin();
        let record = range.parts[0].tails.get(guard, *sequence).unwrap();
        let columns: Vec<usize> = values.iter().map(|(column, _)| *column).collect();
        assert_eq!((record.prev(), record.kind()), (*prev, *kind), "t{sequence}");
        assert_eq!(record.start().load(sync::atomic::Ordering::Relaxed), *start, "start time of t{sequence}");
        assert_eq!(record.explicit().iter().collect::<Vec<_>>(), columns, "schema encoding of t{sequence}");
        for (column, cell) in *values {
            assert_eq!(record.cell(*column), *cell, "column {column} of t{sequence}");
        }
    }
}

fn read(table: &Table, slot: usize, at: u64) -> Option<[u64; 4]> {
    let read = table.read(view(at), Rid::base(0, slot), &[0, A, B, C], |cells| {
        std::array::from_fn(|i| if let Cell::Word(word) = cells[i] { word } else { panic!("no value is null") })
    });
    read.unwrap()
}

fn versions(record: u64, [a, b, c]: [u64; 3]) -> Option<[u64; 4]> {
    Some([record * 100, 1_000 + record * 100 + a, 2_000 + record * 100 + b, 3_000 + record * 100 + c])
}

#[test]
fn table_1_updates_and_deletes() {
    let table = table_1();
    let range = table.range(0);
    assert_tail(
        range,
        &[
            (1, 0, Kind::Snapshot, 1304, &[(A, word(A, 2, 0))]),
            (2, 1, Kind::Update, 1921, &[(A, word(A, 2, 1))]),
            (3, 2, Kind::Update, 1924, &[(A, word(A, 2, 2))]),
            (4, 3, Kind::Snapshot, 1304, &[(C, word(C, 2, 0))]),
            (5, 4, Kind::Update, 1925, &[(A, word(A, 2, 2)), (C, word(C, 2, 1))]),
            (6, 0, Kind::Snapshot, 1505, &[(C, word(C, 3, 0))]),
            (7, 6, Kind::Update, 1945, &[(C, word(C, 3, 1))]),
            (8, 0, Kind::Delete, deleter().word(), &[]),
        ],
    );
    assert_eq!(read(&table, 1, 1303), None);
    assert_eq!(read(&table, 1, 1304), versions(2, [0, 0, 0]));
    assert_eq!(read(&table, 1, 1922), versions(2, [1, 0, 0]));
    assert_eq!(read(&table, 1, 1924), versions(2, [2, 0, 0]));
    assert_eq!(read(&table, 1, 1925), versions(2, [2, 0, 1]));
    assert_eq!(read(&table, 0, 2016), versions(1, [0, 0, 0]), "the delete has not committed");
}

#[test]
fn table_2_relaxed_and_almost_up_to_date_merge() {
    let table = table_1();
    let report = table.merge_range(0, &OnlyDeleteRuns, Timestamp::ZERO).unwrap();
    assert_eq!((report.tail_records, report.inserted), (7, 3));
    let (range, guard) = (table.range(0), sync::pin());
    let pages = range.pages.load(&guard);
    let MetaPage::Base(meta) = &pages.meta else { panic!("the range was merged") };
    assert_eq!(*meta.lineage, [7]);
    let starts = meta.start.get(&guard).unwrap();
    let start: Vec<u64> = (0..3).map(|slot| starts.word(slot).load(sync::atomic::Ordering::Relaxed)).collect();
    assert_eq!(start, [1002, 1304, 1505], "Start Time is preserved");
    // The paper repeats b1's Start Time as its Last Updated Time; here 0 says that no tail record was applied.
    assert_eq!([0, 1, 2].map(|slot| meta.last_updated(&guard, slot).unwrap()), [0, 1925, 1945]);
    for (slot, versions) in [(0, [0, 0, 0]), (1, [2, 0, 1]), (2, [0, 0, 1])] {
        let record = slot as u64 + 1;
        for (column, version) in [A, B, C].into_iter().zip(versions) {
            let page = &pages.columns[column];
            assert_eq!(*page.lineage, [7]);
            assert_eq!(page.cell(&guard, column, slot).unwrap(), word(column, record, version));
        }
    }
    assert_eq!(read(&table, 1, 1922), versions(2, [1, 0, 0]), "the past is on the chain");
    assert!(table.merge_range(0, &OnlyDeleteRuns, Timestamp::ZERO).is_none(), "t8 is not resolved yet");
}

#[test]
fn table_3_indirection_and_reset_of_cumulation() {
    let table = table_1();
    table.merge_range(0, &OnlyDeleteRuns, Timestamp::ZERO).unwrap();
    update(&table, 1, 2125, &[(B, word(B, 2, 1))]);
    update(&table, 2, 2130, &[(C, word(C, 3, 2))]);
    update(&table, 1, 2155, &[(A, word(A, 2, 3))]);
    table.stamp_versions(&sync::pin(), Rid::base(0, 0), AppendedRecords { first: 8, last: 8 }, deleter(), 2015);
    assert_tail(
        table.range(0),
        &[
            (8, 0, Kind::Delete, 2015, &[]),
            (9, 5, Kind::Snapshot, 1304, &[(B, word(B, 2, 0))]),
            (10, 9, Kind::Update, 2125, &[(B, word(B, 2, 1))]),
            (11, 7, Kind::Update, 2130, &[(C, word(C, 3, 2))]),
            (12, 10, Kind::Update, 2155, &[(A, word(A, 2, 3)), (B, word(B, 2, 1))]),
        ],
    );
    let check = |table: &Table| {
        assert_eq!(read(table, 0, 2014), versions(1, [0, 0, 0]));
        assert_eq!(read(table, 0, 2015), None);
        assert_eq!(read(table, 1, 2124), versions(2, [2, 0, 1]));
        assert_eq!(read(table, 1, 2125), versions(2, [2, 1, 1]));
        assert_eq!(read(table, 1, 2155), versions(2, [3, 1, 1]));
        assert_eq!(read(table, 2, 2129), versions(3, [0, 0, 1]));
        assert_eq!(read(table, 2, 2130), versions(3, [0, 0, 2]));
    };
    check(&table);
    table.merge_range(0, &OnlyDeleteRuns, Timestamp::ZERO).unwrap();
    // The numbers after 12 were held ready for the next writer and are given up by the merge.
    let guard = &sync::pin();
    let MetaPage::Base(meta) = &table.range(0).pages.load(guard).meta else { panic!("the range was merged") };
    assert!(meta.lineage[0] >= 12);
    check(&table);
}

/// The end of section 4.2: a reader that still has base pages of TPS 0 must read both t5 and t12.
#[test]
fn a_reader_of_outdated_pages_walks_past_the_reset() {
    let table = table_1();
    let (range, guard) = (table.range(0), sync::pin());
    let columns = [0, A, B, C];
    let outdated = range.pages.load(&guard);
    table.merge_range(0, &OnlyDeleteRuns, Timestamp::ZERO);
    update(&table, 1, 2125, &[(B, word(B, 2, 1))]);
    update(&table, 1, 2155, &[(A, word(A, 2, 3))]);
    let mut cells = [Cell::Null; 4];
    let newest = range.indirection[1].load(sync::atomic::Ordering::Acquire);
    assert!(range.read_chain(&guard, outdated, view(2200), 1, newest, &columns, &mut cells).unwrap());
    assert_eq!(cells[1..], [word(A, 2, 3), word(B, 2, 1), word(C, 2, 1)]);
}
