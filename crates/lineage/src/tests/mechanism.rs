//! The mechanisms of the storage, one test for each statement that is made about them (L-Store, sections 2 to 4).
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_schema::{DataType as ArrowType, Field, Schema as ArrowSchema};
use types::{Column, DataType, Rid, Schema, Snapshot, StartTime, Timestamp, TxnId, Value};

use crate::encoding::BLOCKS_UNPACKED;
use crate::page::base::MetaPage;
use crate::page::options::page_records;
use crate::record::append::AppendedRecords;
use crate::record::range::Range;
use crate::record::view::{Outcome, Outcomes, View};
use crate::record::write::{Change, WriteError, Writer};
use crate::value::cell::Cell;
use crate::value::kind::Kind;
use crate::{Comparison, MemoryBudget, Projection, Request, Table, TableOptions, TailValues, Test};

/// Transactions run until they are entered here.
#[derive(Default)]
pub(crate) struct Ended(RefCell<HashMap<u64, Outcome>>);

impl Ended {
    pub(crate) fn end(&self, txn: TxnId, outcome: Outcome) {
        self.0.borrow_mut().insert(txn.number(), outcome);
    }
}

impl Outcomes for Ended {
    fn outcome(&self, txn: TxnId) -> Outcome {
        self.0.borrow().get(&txn.number()).copied().unwrap_or(Outcome::Active)
    }

    fn speculate(&self, _: Snapshot, _: TxnId) -> bool {
        unreachable!("nothing is prepared")
    }

    fn await_decision(&self, _: TxnId) {}
}

/// A table of whole numbers with its transactions.
pub(crate) struct Fixture {
    pub(crate) table: Table,
    pub(crate) ended: Ended,
}

pub(crate) fn options(range_records: usize, update_range_records: usize) -> TableOptions {
    let defaults = TableOptions::with_range(range_records);
    TableOptions { update_range_records, merge_tail_records: 1 << 15, workers: 1, ..defaults }
}

impl Fixture {
    pub(crate) fn new(columns: usize, options: TableOptions) -> Fixture {
        let columns = (0..columns).map(|i| Column::new(format!("c{i}"), DataType::BigInt)).collect();
        let table = Table::new(Schema::new(columns, &[]).unwrap(), options, Arc::default());
        Fixture { table, ended: Ended::default() }
    }

    /// Inserts so many records at time 1; column c of slot s is 1000 c + s.
    pub(crate) fn filled(columns: usize, options: TableOptions, records: usize) -> Fixture {
        let fixture = Fixture::new(columns, options);
        for slot in 0..records {
            let cells: Vec<Cell<'_>> = (0..columns).map(|c| Cell::Word((1_000 * c + slot) as u64)).collect();
            fixture.table.insert(&cells, 1);
        }
        fixture
    }

    pub(crate) fn view(&self, at: u64) -> View<'_, Ended> {
        View { snapshot: Snapshot::at(Timestamp(at)), outcomes: &self.ended }
    }

    pub(crate) fn own_view(&self, at: u64, own: TxnId) -> View<'_, Ended> {
        View { snapshot: Snapshot::of_transaction(Timestamp(at), own), outcomes: &self.ended }
    }

    pub(crate) fn update(&self, slot: usize, start: u64, values: &[(usize, u64)]) -> AppendedRecords {
        let values: Vec<_> = values.iter().map(|(column, word)| (*column, Cell::Word(*word))).collect();
        let at = if start > Timestamp::MAX.0 { Timestamp::MAX.0 } else { start };
        self.table.append(self.view(at), start, Rid::base(0, slot), Change::Update(&values)).unwrap()
    }

    pub(crate) fn merge(&self) {
        self.table.merge_range(0, &self.ended, Timestamp::ZERO).expect("there is something to merge");
    }

    pub(crate) fn range(&self) -> &Range {
        self.table.range(0)
    }

    pub(crate) fn read(&self, slot: usize, at: u64, columns: &[usize]) -> Option<Vec<u64>> {
        self.read_as(self.view(at), slot, columns)
    }

    pub(crate) fn read_as(&self, view: View<'_, Ended>, slot: usize, columns: &[usize]) -> Option<Vec<u64>> {
        let word = |cell: &Cell<'_>| if let Cell::Word(word) = cell { *word } else { panic!("no value is null") };
        self.table.read(view, Rid::base(0, slot), columns, |cells| cells.iter().map(word).collect()).unwrap()
    }

    fn tps(&self) -> Vec<u64> {
        self.range().pages.load(&sync::pin()).meta.lineage().to_vec()
    }
}

#[test]
fn update_ranges_of_every_size_have_tails_of_their_own() {
    let range_records = 1 << 16;
    for bits in 12..=16 {
        let update_range = 1 << bits;
        let fixture = Fixture::filled(1, options(range_records, update_range), range_records);
        let parts = range_records / update_range;
        assert_eq!(fixture.range().parts.len(), parts);
        for part in (0..parts).step_by(2) {
            let slot = part * update_range + 7;
            assert_eq!(
                fixture.update(slot, 5, &[(0, 42)]),
                AppendedRecords { first: 1, last: 2 },
                "numbers begin anew"
            );
        }
        fixture.merge();
        for (part, tps) in fixture.tps().into_iter().enumerate() {
            assert_eq!(tps > 0, part % 2 == 0, "one merge over all update ranges, each with its own TPS");
            let slot = part * update_range + 7;
            assert_eq!(fixture.read(slot, 9, &[0]), Some(vec![if part % 2 == 0 { 42 } else { slot as u64 }]));
            assert_eq!(fixture.read(slot, 4, &[0]), Some(vec![slot as u64]));
        }
    }
}

#[test]
fn tail_pages_are_smaller_than_base_pages() {
    for bits in 12..=16 {
        assert!(page_records(1 << bits) * 16 <= 1 << bits, "a sixteenth of the records at most");
    }
    let fixture = Fixture::filled(1, options(1 << 16, 1 << 16), 1);
    assert_eq!(fixture.range().parts[0].tails.page_records(), 256);
}

#[test]
fn tail_pages_exist_for_updated_columns_only_and_from_the_first_value_on() {
    let options = TableOptions { tail_values: TailValues::InColumns, ..options(1 << 16, 1 << 16) };
    let fixture = Fixture::filled(10, options, 100);
    let tail_bytes = || fixture.table.memory().tail_bytes;
    assert_eq!(tail_bytes(), 0, "nothing was updated");
    fixture.update(3, 5, &[(4, 1)]);
    let (headers, column) = (256 * 64, 256 * 8);
    assert_eq!(tail_bytes(), headers + column);
    (4..40).for_each(|slot| {
        fixture.update(slot, 5, &[(4, 1)]);
    });
    assert_eq!(tail_bytes(), headers + column, "the page has room");
    fixture.update(3, 6, &[(9, 1)]);
    assert_eq!(tail_bytes(), headers + 2 * column);
    fixture.table.append(fixture.view(9), 9, Rid::base(0, 3), Change::Delete).unwrap();
    assert_eq!(tail_bytes(), headers + 2 * column, "a delete has no values");
}

#[test]
fn a_record_has_the_values_of_the_first_columns_and_the_others_lie_in_columns() {
    for (columns, line_count) in [(2, 1), (3, 2), (10, 2), (12, 2)] {
        let fixture = Fixture::filled(columns, options(1 << 16, 1 << 16), 100);
        let tail_bytes = || fixture.table.memory().tail_bytes;
        fixture.update(3, 5, &[(0, 1), (columns.min(10) - 1, 2)]);
        assert_eq!(tail_bytes(), 256 * 64 * line_count);
        fixture.update(3, 6, &[(columns - 1, 3)]);
        assert_eq!(tail_bytes(), 256 * 64 * line_count + if columns > 10 { 256 * 8 } else { 0 });
        fixture.update(3, 7, &[(0, 4)]);
        assert_eq!(fixture.read(3, 7, &[0, columns - 1]), Some(vec![4, 3]));
        assert_eq!(fixture.read(3, 5, &[0, columns.min(10) - 1]), Some(vec![1, 2]));
    }
}

#[test]
fn a_worker_takes_numbers_by_the_block() {
    let fixture = Fixture::filled(2, options(1 << 12, 1 << 12), 100);
    let allocated = || fixture.table.stats().tail_records;
    fixture.update(0, 5, &[(0, 1)]);
    assert_eq!(allocated(), 16);
    (1..8).for_each(|slot| {
        fixture.update(slot, 5, &[(0, 1)]);
    });
    assert_eq!(allocated(), 16, "eight pairs of snapshot record and update");
    fixture.update(8, 5, &[(0, 1)]);
    assert_eq!(allocated(), 32);
}

#[test]
fn each_worker_fills_an_insert_range_of_its_own() {
    let workers = TableOptions { workers: 64, ..options(64, 64) };
    let fixture = Fixture::new(1, workers);
    let table = &fixture.table;
    let insert = || (0..40).map(|i| table.insert(&[Cell::Word(i)], 1)).collect::<Vec<Rid>>();
    let rids = std::thread::scope(|scope| [scope.spawn(insert), scope.spawn(insert)].map(|each| each.join().unwrap()));
    for rids in &rids {
        let slots: Vec<usize> = rids.iter().map(|rid| rid.slot()).collect();
        assert_eq!(slots, (0..40).collect::<Vec<_>>(), "nobody else takes slots there");
        assert!(rids.iter().all(|rid| rid.range() == rids[0].range()));
    }
    assert_ne!(rids[0][0].range(), rids[1][0].range());
}

#[test]
fn the_first_update_of_a_column_leaves_a_snapshot_record_and_later_ones_do_not() {
    let fixture = Fixture::filled(3, options(1 << 12, 1 << 12), 2);
    fixture.update(1, 5, &[(0, 50)]);
    fixture.update(1, 6, &[(0, 60)]);
    fixture.update(1, 7, &[(0, 70), (2, 71)]);
    fixture.merge();
    fixture.update(1, 8, &[(2, 80)]);
    let guard = &sync::pin();
    let kinds: Vec<(Kind, Vec<usize>)> = (1..=5)
        .map(|sequence| fixture.range().parts[0].tails.get(guard, sequence).unwrap())
        .map(|record| (record.kind(), record.explicit().iter().collect()))
        .collect();
    let (snapshot, update) = (Kind::Snapshot, Kind::Update);
    let expected =
        [(snapshot, vec![0]), (update, vec![0]), (update, vec![0]), (snapshot, vec![2]), (update, vec![0, 2])];
    assert_eq!(kinds, expected);
    let newest = fixture.range().indirection[1].load(Ordering::Acquire);
    let newest = fixture.range().parts[0].tails.get(guard, newest).unwrap();
    assert_eq!(newest.explicit().iter().collect::<Vec<_>>(), [2], "cumulation began anew at the merge");
    assert_eq!(newest.reset(), 5, "what it leaves out is in base pages that have come so far");
}

#[test]
fn several_updates_of_a_record_in_one_transaction_are_one_version() {
    let fixture = Fixture::filled(3, options(16, 16), 2);
    let (txn, view) = (TxnId::new(1), |own| fixture.own_view(3, own));
    let update = |column, word| {
        let values = [(column, Cell::Word(word))];
        fixture.table.append(view(txn), txn.word(), Rid::base(0, 0), Change::Update(&values)).unwrap()
    };
    for (column, word) in [(0, 10), (1, 20), (0, 11), (2, 30), (0, 12)] {
        update(column, word);
    }
    let (old, new) = (Some(vec![0, 1_000, 2_000]), Some(vec![12, 20, 30]));
    assert_eq!(fixture.read_as(view(txn), 0, &[0, 1, 2]), new, "its own");
    assert_eq!(fixture.read(0, 3, &[0, 1, 2]), old, "nobody else's");
    let other = fixture.table.append(fixture.view(3), 4, Rid::base(0, 0), Change::Delete);
    assert_eq!(other, Err(WriteError::Locked(txn)));
    assert_eq!(fixture.table.newest_writer(fixture.view(3), Rid::base(0, 0)), Ok(Writer::Running(txn)));
    fixture.ended.end(txn, Outcome::Committed(Timestamp(4)));
    for _ in 0..3 {
        assert_eq!(fixture.read(0, 4, &[0, 1, 2]), new);
        assert_eq!(fixture.read(0, 3, &[0, 1, 2]), old);
        let times = fixture.table.version_times(Rid::base(0, 0), Timestamp::MAX, &fixture.ended);
        assert_eq!(times, Ok([1, 4].map(Timestamp).to_vec()));
        fixture.table.merge_range(0, &fixture.ended, Timestamp::ZERO);
        fixture.table.archive_range(0, Timestamp::ZERO, true);
    }
}

#[test]
fn a_deleted_record_is_gone_for_later_snapshots_only() {
    let fixture = Fixture::filled(2, options(16, 16), 3);
    fixture.update(1, 5, &[(0, 50)]);
    fixture.table.append(fixture.view(9), 10, Rid::base(0, 1), Change::Delete).unwrap();
    for _ in 0..3 {
        let seen = [4, 5, 9, 10].map(|at| fixture.read(1, at, &[0]));
        assert_eq!(seen, [Some(vec![1]), Some(vec![50]), Some(vec![50]), None]);
        let again = fixture.table.append(fixture.view(20), 20, Rid::base(0, 1), Change::Delete);
        assert_eq!(again, Err(WriteError::NotVisible));
        fixture.table.merge_range(0, &fixture.ended, Timestamp::ZERO);
        fixture.table.archive_range(0, Timestamp::ZERO, true);
    }
    let guard = &sync::pin();
    let MetaPage::Base(meta) = &fixture.range().pages.load(guard).meta else { panic!("the range was merged") };
    assert_eq!((meta.live_rows, meta.has_deleted, meta.last_updated(guard, 1)), (2, true, Ok(10)));
}

#[test]
fn tombstones_are_skipped_by_readers_and_passed_by_the_merge() {
    let fixture = Fixture::filled(2, options(1 << 12, 1 << 12), 4);
    for number in 1..=20 {
        let txn = TxnId::new(number);
        fixture.update(number as usize % 4, txn.word(), &[(1, 7)]);
        fixture.ended.end(txn, Outcome::Aborted);
    }
    fixture.update(2, 5, &[(0, 50)]);
    let inserted = fixture.table.insert(&[Cell::Word(1), Cell::Word(2)], TxnId::new(1).word());
    let check = || {
        let read: Vec<_> = (0..4).map(|slot| fixture.read(slot, 9, &[0, 1]).unwrap()).collect();
        assert_eq!(read, [vec![0, 1_000], vec![1, 1_001], vec![50, 1_002], vec![3, 1_003]]);
        assert_eq!(fixture.read(inserted.slot(), 9, &[0]), None);
    };
    check();
    fixture.merge();
    check();
    assert_eq!(fixture.tps(), [fixture.table.stats().tail_records], "the TPS has passed them all");
    assert_eq!(fixture.table.stats().tail_records_unmerged, 0);
}

/// The newest committed version and the base pages, whatever was rolled back or merged before, have all there is.
#[test]
fn the_newest_version_is_at_most_two_hops_away() {
    let fixture = Fixture::filled(4, options(1 << 12, 1 << 12), 8);
    let mut seed = 7u64;
    let mut random = |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    for at in 10..2_000 {
        fixture.update(random(8) as usize, at, &[(random(4) as usize, at)]);
        if random(20) == 0 {
            fixture.merge();
        }
        let guard = &sync::pin();
        for slot in 0..8 {
            let newest = fixture.range().indirection[slot].load(Ordering::Acquire);
            let columns = [0, 1, 2, 3];
            let pages = fixture.range().pages.load(guard);
            if newest > pages.tps_min(0, &columns) {
                let record = fixture.range().parts[0].tails.get(guard, newest).unwrap();
                let is_near = |column: &usize| {
                    record.is_explicit(*column)
                        || !record.was_ever_updated(*column)
                        || pages.columns[*column].lineage[0] >= record.reset()
                };
                assert!(columns.iter().all(is_near), "slot {slot} at {at}");
            }
        }
    }
}

#[test]
fn columns_merged_at_different_times_are_read_as_one_record() {
    let fixture = Fixture::filled(3, options(16, 16), 2);
    fixture.merge_some(&[0, 1, 2]);
    fixture.update(0, 5, &[(0, 50), (1, 51)]);
    fixture.merge_some(&[0]);
    fixture.update(0, 6, &[(2, 62)]);
    fixture.merge_some(&[2]);
    fixture.update(0, 7, &[(0, 70)]);
    fixture.merge_some(&[1]);
    let guard = &sync::pin();
    let tps: Vec<u64> = (0..3).map(|column| fixture.range().pages.load(guard).columns[column].lineage[0]).collect();
    assert!(tps[0] < tps[2] && tps[2] < tps[1], "three ages: {tps:?}");
    let expected = [[0, 1_000, 2_000], [50, 51, 2_000], [50, 51, 62], [70, 51, 62]];
    for (at, row) in (4..).zip(expected) {
        assert_eq!(fixture.read(0, at, &[0, 1, 2]), Some(row.to_vec()), "at {at}");
        assert_eq!(fixture.read(0, at, &[2, 0]), Some(vec![row[2], row[0]]), "at {at}");
    }
}

impl Fixture {
    pub(crate) fn merge_some(&self, columns: &[usize]) {
        self.table.merge_columns(0, columns, &self.ended, Timestamp::ZERO).expect("there is something to merge");
    }
}

/// The snapshot record that a rolled-back update left goes with its page; the next writer has written none of its
/// own, and earlier snapshots still need the old value.
#[test]
fn what_a_rolled_back_first_update_leaves_is_kept_for_earlier_snapshots() {
    let fixture = Fixture::filled(2, options(16, 16), 1);
    let (first, second) = (TxnId::new(1), TxnId::new(2));
    fixture.update(0, first.word(), &[(0, 70)]);
    fixture.ended.end(first, Outcome::Aborted);
    fixture.update(0, second.word(), &[(0, 80)]);
    fixture.merge();
    fixture.table.archive_range(0, Timestamp(5), true);
    fixture.ended.end(second, Outcome::Committed(Timestamp(10)));
    fixture.table.merge_range(0, &fixture.ended, Timestamp(5)).expect("the second update is merged");
    assert_eq!(fixture.read(0, 9, &[0]), Some(vec![0]));
    assert_eq!(fixture.read(0, 10, &[0]), Some(vec![80]));
}

#[test]
fn history_is_in_order_and_far_smaller_than_the_tail_that_it_replaces() {
    let budget: Arc<MemoryBudget> = Arc::default();
    let columns = (0..4).map(|i| Column::new(format!("c{i}"), DataType::BigInt)).collect();
    let table = Table::new(Schema::new(columns, &[]).unwrap(), options(1 << 12, 1 << 12), budget);
    let fixture = Fixture { table, ended: Ended::default() };
    for slot in 0..512 {
        fixture.table.insert(&[slot, 1, 2, 3].map(Cell::Word), 1);
    }
    for at in 2..6_000 {
        fixture.update(at as usize * 37 % 512, at, &[(1 + at as usize % 2, at % 100)]);
    }
    fixture.merge();
    let tail = fixture.table.memory().tail_bytes;
    fixture.table.archive_range(0, Timestamp::ZERO, true);
    (0..8).for_each(|_| sync::pin().flush());
    let history = fixture.table.memory().history_bytes;
    assert!(history * 4 < tail, "{history} bytes of history for {tail} of tail");
    let guard = &sync::pin();
    let archive = fixture.range().parts[0].archive.load(guard);
    let mut versions = 0;
    for page in archive.history.pages() {
        let page = page.here(guard).unwrap();
        let slots: Vec<usize> = page.slots().collect();
        assert!(slots.is_sorted(), "records by slot");
        for slot in slots {
            let sequences: Vec<u64> = page.versions(slot).map(|version| version.sequence()).collect();
            assert!(sequences.is_sorted_by(|newer, older| newer > older), "versions of a record from new to old");
            versions += sequences.len();
        }
    }
    assert!(versions > 5_900, "{versions} versions");
}

#[test]
fn an_unencoded_page_is_handed_out_without_a_copy() {
    let fixture = Fixture::new(1, options(1 << 12, 1 << 12));
    // Numbers that no encoding makes shorter.
    for i in 0..1u64 << 12 {
        fixture.table.insert(&[Cell::Word(i.wrapping_mul(0x9e37_79b9_7f4a_7c15))], 1);
    }
    fixture.merge();
    let schema = Arc::new(ArrowSchema::new(vec![Field::new("c0", ArrowType::Int64, true)]));
    let projection = Projection { request: Request { columns: vec![0], tests: vec![] }, with_rid: false, schema };
    let addresses = || -> Vec<*const i64> {
        let batches = fixture.table.scan_range(0, fixture.view(9), &projection).unwrap();
        batches.iter().map(|batch| batch.column(0).as_primitive::<Int64Type>().values().as_ptr()).collect()
    };
    let first = addresses();
    assert_eq!((first.len(), addresses()), (1, first.clone()), "two scans lend the same memory");
    fixture.update(9, 5, &[(0, 1)]);
    assert_ne!(addresses(), first, "a block with pending values is laid over a copy");
}

#[test]
fn a_block_without_a_passing_row_is_not_decoded() {
    let fixture = Fixture::filled(1, options(1 << 12, 1 << 12), 1 << 12);
    fixture.merge();
    let unpacked = |test: Test| {
        let before = BLOCKS_UNPACKED.get();
        let request = Request { columns: vec![0], tests: vec![(0, test)] };
        let rows = fixture.table.aggregate_range(0, fixture.view(9), &request).unwrap().rows;
        (rows, BLOCKS_UNPACKED.get() - before)
    };
    let equal = |number: i64| Test::Compare(Comparison::Eq, Value::BigInt(number));
    assert_eq!(unpacked(equal(5_000)), (0, 0), "beyond the greatest value");
    assert_eq!(unpacked(Test::Between(Value::BigInt(0), Value::BigInt(4_095))).0, 4_096);
    let (rows, blocks) = unpacked(equal(2_500));
    assert!(rows == 1 && blocks <= 2, "one of four blocks is looked at, for the test and for the sum: {blocks}");
}

#[test]
fn a_buried_number_reads_as_a_tombstone() {
    let fixture = Fixture::filled(1, options(1 << 12, 1 << 12), 1);
    fixture.update(0, 5, &[(0, 1)]);
    fixture.merge();
    let guard = &sync::pin();
    let start = |sequence| fixture.range().parts[0].tails.get(guard, sequence).unwrap().start().load(Ordering::Relaxed);
    assert_eq!((start(2), start(3), start(16)), (5, StartTime::TOMBSTONE, StartTime::TOMBSTONE));
    assert_eq!(fixture.tps(), [16]);
}

/// What a reader's pages have not merged must be in the tail or in the history; where it is no longer, the pages are too
/// old and the reader loads newer ones.
#[test]
fn a_reader_whose_pages_are_older_than_what_is_left_is_told() {
    let fixture = Fixture::filled(2, options(16, 16), 2);
    fixture.merge();
    let guard = &sync::pin();
    let outdated = fixture.range().pages.load(guard);
    fixture.update(1, 5, &[(0, 50)]);
    fixture.merge();
    fixture.table.archive_range(0, Timestamp(9), true);
    let newest = fixture.range().indirection[1].load(Ordering::Acquire);
    let mut cells = [Cell::Null];
    let read = fixture.range().read_chain(guard, outdated, fixture.view(9), 1, newest, &[0], &mut cells);
    assert!(read.is_err(), "the only version that says 50 is in newer pages: {cells:?}");
    assert_eq!(fixture.read(1, 9, &[0]), Some(vec![50]));
}

/// A writer leaves out a column that is merged into its page, though others have not merged; a reader that still
/// has the pages from before that merge has to notice.
#[test]
fn a_reader_of_pages_from_before_the_reset_walks_on() {
    let fixture = Fixture::filled(2, options(16, 16), 1);
    fixture.merge();
    let guard = &sync::pin();
    let outdated = fixture.range().pages.load(guard);
    fixture.update(0, 5, &[(0, 50)]);
    fixture.merge_some(&[0]);
    fixture.update(0, 6, &[(1, 60)]);
    let newest = fixture.range().indirection[0].load(Ordering::Acquire);
    let record = fixture.range().parts[0].tails.get(guard, newest).unwrap();
    assert_eq!(record.explicit().iter().collect::<Vec<_>>(), [1], "the page of column 0 has it");
    let mut cells = [Cell::Null; 2];
    let read = fixture.range().read_chain(guard, outdated, fixture.view(9), 0, newest, &[0, 1], &mut cells);
    assert!(read.unwrap());
    assert_eq!(cells, [50, 60].map(Cell::Word));
    assert_eq!(fixture.read(0, 9, &[0, 1]), Some(vec![50, 60]));
}
