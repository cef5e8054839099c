//! A small table through all that happens to one: sizes that an interpreter gets through (`cargo xtask miri`).
use std::sync::Arc;

use arrow_schema::{DataType as ArrowType, Field, Schema as ArrowSchema};
use lineage::{Cell, Change, Layout, Outcome, Outcomes, Projection, Request, Table, TableOptions, View};
use types::{Column, DataType, Rid, Schema, Snapshot, StartTime, Timestamp, TxnId};

const ROWS: usize = 24;

/// No transaction runs: everything is stamped.
struct NoneRuns;

impl Outcomes for NoneRuns {
    fn outcome(&self, _: TxnId) -> Outcome {
        Outcome::Stamped
    }

    fn speculate(&self, _: Snapshot, _: TxnId) -> bool {
        false
    }

    fn await_decision(&self, _: TxnId) {}
}

fn view(at: u64) -> View<'static, NoneRuns> {
    View { snapshot: Snapshot::at(Timestamp(at)), outcomes: &NoneRuns }
}

fn table(layout: Layout) -> Table {
    let columns = vec![Column::new("id", DataType::BigInt), Column::new("name", DataType::TEXT)];
    let options = TableOptions { layout, workers: 1, ..TableOptions::with_range(16) };
    Table::new(Schema::new(columns, &["id"]).unwrap(), options, Arc::default())
}

fn name(number: usize) -> String {
    format!("{} {number}", "name ".repeat(number % 5))
}

/// What a snapshot sees of the names, by scanning.
fn scanned(table: &Table, at: u64) -> usize {
    let fields = vec![Field::new("id", ArrowType::Int64, true), Field::new("name", ArrowType::Utf8View, true)];
    let request = Request { columns: vec![0, 1], tests: Vec::new() };
    let projection = Projection { request, with_rid: false, schema: Arc::new(ArrowSchema::new(fields)) };
    let rows = |range| {
        table.scan_range(range, view(at), &projection).unwrap().iter().map(|batch| batch.num_rows()).sum::<usize>()
    };
    (0..table.range_count()).map(rows).sum()
}

fn live_through_it(layout: Layout) {
    let table = table(layout);
    let rids: Vec<Rid> = (0..ROWS)
        .map(|number| {
            table.insert(&[Cell::Word(number as u64), Cell::Bytes(name(number).as_bytes())], 1 + number as u64)
        })
        .collect();
    let now = 100;
    for (number, rid) in rids.iter().enumerate().filter(|(number, _)| number % 3 > 0) {
        let renamed = name(number + 1);
        let change = Change::Update(&[(1, Cell::Bytes(renamed.as_bytes()))]);
        table.append(view(now), now + number as u64, *rid, change).unwrap();
    }
    let running = table.append(view(200), TxnId::new(1).word(), rids[0], Change::Delete).unwrap();
    table.stamp_versions(&sync::pin(), rids[0], running, TxnId::new(1), StartTime::TOMBSTONE);
    table.append(view(200), 201, rids[1], Change::Delete).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for range in 0..table.range_count() {
                table.merge_range(range, &NoneRuns, Timestamp::ZERO);
                table.archive_range(range, Timestamp::ZERO, true);
            }
        });
        scope.spawn(|| assert_eq!((scanned(&table, 99), scanned(&table, 300)), (ROWS, ROWS - 1)));
    });
    assert_eq!((scanned(&table, 99), scanned(&table, 300)), (ROWS, ROWS - 1));
    for (number, rid) in rids.iter().enumerate().skip(2) {
        let at = |at| table.read(view(at), *rid, &[1], |cells| format!("{:?}", cells[0])).unwrap().unwrap();
        let cell = |number| format!("{:?}", Cell::Bytes(name(number).as_bytes()));
        assert_eq!((at(99), at(300)), (cell(number), cell(number + usize::from(number % 3 > 0))));
    }
}

#[test]
fn a_table_of_columns_keeps_every_version() {
    live_through_it(Layout::Column);
}

#[test]
fn a_table_of_rows_keeps_every_version() {
    live_through_it(Layout::Row);
}
