//! The memory of history pages beside the tail records that they replace, for several ways to update a table of ten
//! `bigint` columns. `cargo test --release -p lstore-lineage history::size -- --nocapture` prints the figures.
use types::DataType;

use super::{HistoryPage, NewVersion};
use crate::value::cell::Cell;
use crate::value::kept::Kept;
use crate::value::kind::Kind;

const COLUMNS: usize = 10;
const CHANGED: usize = 4;
/// Meta-data of a tail record, without its values.
const TAIL_BYTES: usize = 64;

/// A way to update a table.
struct Workload {
    name: &'static str,
    slots: u64,
    updates: u64,
    /// whether an update repeats all columns updated before
    is_cumulative: bool,
    /// a column's next value from its last one and a random number
    next: fn(u64, u64) -> u64,
    /// the most that pages may take, in hundredths of the tail records
    percent_max: usize,
}

struct Record {
    slot: usize,
    sequence: u64,
    kind: Kind,
    start: u64,
    values: Vec<(usize, Cell<'static>)>,
}

/// Numbers without an apparent pattern, the same in every run.
fn scattered(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*seed ^ *seed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed ^ mixed >> 29
}

/// The tail records of a workload, sorted for a page. Two records a transaction, as in the paper's micro benchmark.
fn records_of(workload: &Workload) -> Vec<Record> {
    let mut seed = 7;
    let row = |seed: &mut u64| std::array::from_fn(|_| (workload.next)(1_000_000_000, scattered(seed)));
    let mut rows: Vec<[u64; COLUMNS]> = (0..workload.slots).map(|_| row(&mut seed)).collect();
    let mut ever = vec![[false; COLUMNS]; workload.slots as usize];
    let mut records: Vec<Record> = Vec::new();
    for update in 0..workload.updates {
        let slot = (scattered(&mut seed) % workload.slots) as usize;
        let start = 5_000_000 + update / 2;
        let (row, ever) = (&mut rows[slot], &mut ever[slot]);
        let first = scattered(&mut seed) as usize;
        let changed: Vec<usize> = (0..CHANGED).map(|at| (first + at * 3) % COLUMNS).collect();
        let cells = |columns: &mut dyn Iterator<Item = usize>, row: &[u64; COLUMNS]| {
            columns.map(|column| (column, Cell::Word(row[column]))).collect::<Vec<_>>()
        };
        let originals = cells(&mut changed.iter().copied().filter(|column| !ever[*column]), row);
        let mut push = |kind, start, values| {
            records.push(Record { slot, sequence: records.len() as u64 + 1, kind, start, values });
        };
        if !originals.is_empty() {
            push(Kind::Snapshot, 1 + slot as u64, originals);
        }
        for column in &changed {
            ever[*column] = true;
            row[*column] = (workload.next)(row[*column], scattered(&mut seed));
        }
        let explicit = |column: &usize| changed.contains(column) || workload.is_cumulative && ever[*column];
        push(Kind::Update, start, cells(&mut (0..COLUMNS).filter(explicit), row));
    }
    records.sort_by_key(|record| (record.slot, std::cmp::Reverse(record.sequence)));
    records
}

fn measure(workload: &Workload) {
    let records = records_of(workload);
    let page = HistoryPage::build(
        &[DataType::BigInt; COLUMNS],
        &Kept::default(),
        records.iter().map(|record| NewVersion {
            slot: record.slot,
            sequence: record.sequence,
            kind: record.kind,
            start: record.start,
            values: record.values[..].into(),
        }),
    );
    let tail: usize = records.iter().map(|record| TAIL_BYTES + 8 * record.values.len()).sum();
    let per_record = |bytes: usize| bytes as f64 / records.len() as f64;
    let (ours, theirs) = (per_record(page.bytes()), per_record(tail));
    println!("{:48} {ours:6.1} bytes a version, tail records {theirs:6.1}", workload.name);
    assert!(page.bytes() * 100 <= tail * workload.percent_max, "{}: {ours} of {theirs}", workload.name);
}

#[test]
fn history_takes_a_fraction_of_the_tail() {
    let small = |_, random| random % 256;
    let counter = |last: u64, random: u64| last.wrapping_add(random % 20);
    let workload = |name, slots, updates, is_cumulative, next: fn(u64, u64) -> u64, percent_max| {
        measure(&Workload { name, slots, updates, is_cumulative, next, percent_max });
    };
    workload("small values, a record once", 65_536, 30_000, false, small, 15);
    workload("small values, a record often", 2_000, 30_000, false, small, 12);
    workload("small values, a record very often", 50, 30_000, false, small, 11);
    workload("small values, cumulative", 2_000, 30_000, true, small, 8);
    workload("counters, a record often", 2_000, 30_000, false, counter, 15);
    workload("counters, cumulative", 2_000, 30_000, true, counter, 11);
    workload("one of four values", 2_000, 30_000, false, |_, random| (random % 4).wrapping_mul(u64::MAX / 5), 9);
    workload("the same values again, cumulative", 2_000, 30_000, true, |last, _| last, 6);
    workload("any 64 bits", 2_000, 30_000, false, |_, random| random, 45);
}
