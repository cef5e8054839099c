//! What the background executes behind updates: merges, and turning what is merged into history. Four of ten columns change in
//! each update, as in `lstore bench micro`; the thread that writes does the work of the background itself, so the
//! same instructions are executed each time.
//!
//! ```text
//! cargo build --release -p lstore-lineage --example background
//! valgrind --tool=callgrind --toggle-collect='background::counted_*' .../background ACTIVE MERGES [APART]
//! ```
//!
//! So many of the range's 65,536 records are updated; a merge takes in the versions of 8,192 updates. After each so many merges, one if
//! nothing is said, what is merged becomes history.
use std::sync::Arc;

use lineage::{Cell, Change, Outcome, Outcomes, Table, TableOptions, View};
use types::{Column, DataType, Rid, Schema, Snapshot, Timestamp, TxnId};

const COLUMNS: usize = 10;
const RECORDS: usize = 1 << 16;

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

/// Numbers by chance (wyrand).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0xa076_1d64_78bd_642f);
        let product = u128::from(self.0) * u128::from(self.0 ^ 0xe703_7ed1_a0b4_28db);
        let word = (product >> 64) as u64 ^ product as u64;
        ((u128::from(word) * u128::from(bound)) >> 64) as u64
    }
}

#[inline(never)]
fn counted_merge(table: &Table) {
    table.merge_range(0, &NoneRuns, Timestamp::ZERO);
}

#[inline(never)]
fn counted_archive(table: &Table) {
    table.archive_range(0, Timestamp::ZERO, false);
}

fn main() {
    let arguments: Vec<u64> = std::env::args().skip(1).map(|argument| argument.parse().unwrap()).collect();
    let (active, merges, apart) = match arguments[..] {
        [active, merges] => (active, merges, 1),
        [active, merges, apart] => (active, merges, apart),
        _ => panic!("how many records are updated, and how many merges?"),
    };
    let columns = (0..COLUMNS).map(|column| Column::new(format!("c{column}"), DataType::BigInt)).collect();
    let options = TableOptions { workers: 1, ..TableOptions::with_range(RECORDS) };
    let table = Table::new(Schema::new(columns, &["c0"]).unwrap(), options, Arc::default());
    let mut random = Random(7);
    for _ in 0..RECORDS {
        let cells: [Cell<'_>; COLUMNS] = std::array::from_fn(|_| Cell::Word(random.below(1 << 31)));
        table.insert(&cells, 1);
    }
    table.merge_range(0, &NoneRuns, Timestamp::ZERO);
    let mut now = 1;
    for merge in 1..=merges {
        for _ in 0..options.merge_tail_records {
            now += 1;
            let mut columns = [0; 4];
            for at in 0..4 {
                columns[at] = loop {
                    let column = 1 + random.below(COLUMNS as u64 - 1) as usize;
                    if !columns[..at].contains(&column) {
                        break column;
                    }
                };
            }
            let values = columns.map(|column| (column, Cell::Word(random.below(1 << 31))));
            let rid = Rid::base(0, random.below(active) as usize);
            let view = View { snapshot: Snapshot::at(Timestamp(now)), outcomes: &NoneRuns };
            table.append(view, now, rid, Change::Update(&values)).unwrap();
        }
        counted_merge(&table);
        if merge % apart == 0 {
            counted_archive(&table);
        }
    }
}
