//! The promises of eviction, on a table of every type: pages go and come back for any reader; a page that can't be
//! read back is an error of the operation that needs it. Random histories with evictions in them are in `model`.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering as StdOrdering};

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_schema::{DataType as ArrowType, Field, Schema as ArrowSchema};
use types::{Column, DataType, Rid, Schema, Snapshot, StartTime, Timestamp, TxnId, Value};

use crate::image::tests::{Blobs, Shelf};
use crate::record::view::{Outcome, Outcomes, View};
use crate::value::cell::Cell;
use crate::{
    Change, Comparison, Layout, MemoryBudget, PageError, Projection, Request, Sum, Table, TableOptions, Test, Totals,
};

const ROWS: u64 = 6_144;

/// A transaction that has not stamped its versions has rolled back.
struct RolledBack;

impl Outcomes for RolledBack {
    fn outcome(&self, _: TxnId) -> Outcome {
        Outcome::Aborted
    }

    fn speculate(&self, _: Snapshot, _: TxnId) -> bool {
        unreachable!("nobody is prepared")
    }

    fn await_decision(&self, _: TxnId) {}
}

/// A table with record *n* inserted at *n* + 1 with (n, n % 5, text), and the blobs of its image.
struct Fixture {
    table: Table,
    budget: Arc<MemoryBudget>,
    shelf: Arc<Shelf>,
    blobs: Blobs,
    now: u64,
}

fn text(number: u64) -> String {
    format!("text number {number} of many")
}

impl Fixture {
    fn new(layout: Layout) -> Fixture {
        let columns = vec![
            Column::new("n", DataType::BigInt),
            Column::new("few", DataType::BigInt),
            Column::new("text", DataType::TEXT),
        ];
        let (shelf, budget) = Shelf::with_budget();
        let options = TableOptions { layout, workers: 1, ..TableOptions::with_range(1 << 10) };
        let table = Table::new(Schema::new(columns, &[]).unwrap(), options, budget.clone());
        for number in 0..ROWS {
            let text = text(number);
            table.insert(&[Cell::Word(number), Cell::Word(number % 5), Cell::Bytes(text.as_bytes())], number + 1);
        }
        Fixture { table, budget, shelf, blobs: Blobs::default(), now: ROWS }
    }

    fn view(at: u64) -> View<'static, RolledBack> {
        View { snapshot: Snapshot::at(Timestamp(at)), outcomes: &RolledBack }
    }

    fn merge(&self) {
        (0..self.table.range_count()).for_each(|range| {
            self.table.merge_range(range, &RolledBack, Timestamp::ZERO);
            self.table.archive_range(range, Timestamp::ZERO, true);
        });
        // Other tests pin the same epoch.
        while self.table.memory().insert_bytes > 0 {
            sync::pin().flush();
            std::thread::yield_now();
        }
    }

    /// Takes a checkpoint, so that what is merged may go.
    fn image(&mut self) {
        for range in 0..self.table.range_count() {
            let now = Timestamp(self.now);
            let Ok(image) = self.table.image_range(range, &RolledBack, || now, &mut self.blobs);
            self.shelf.fill(&self.blobs);
            image.published();
        }
    }

    /// Evicts all that can be; returns how much memory came back.
    fn evict_all(&self) -> u64 {
        let before = self.budget.used_bytes();
        self.budget.evict(u64::MAX);
        while self.budget.awaits_memory() {
            sync::pin().flush();
            std::thread::yield_now();
        }
        before - self.budget.used_bytes()
    }

    fn update(&mut self, number: u64, few: u64) {
        self.now += 1;
        let rid = Rid::base((number >> 10) as usize, number as usize & 1023);
        let change = [(1, Cell::Word(few))];
        self.table.append(Self::view(self.now), self.now, rid, Change::Update(&change)).unwrap();
    }

    fn read(&self, number: u64, at: u64) -> Result<Option<Vec<Value>>, PageError> {
        let rid = Rid::base((number >> 10) as usize, number as usize & 1023);
        self.table.read_values(Self::view(at), rid, &[0, 1, 2])
    }

    fn scan(&self, at: u64, tests: Vec<(usize, Test)>) -> Result<usize, PageError> {
        let fields =
            [DataType::BigInt, DataType::BigInt, DataType::TEXT].map(|of| Field::new("c", of.to_arrow(), true));
        let schema = Arc::new(ArrowSchema::new(fields.to_vec()));
        let projection = Projection { request: Request { columns: vec![0, 1, 2], tests }, with_rid: false, schema };
        let rows = |range| {
            let batches = self.table.scan_range(range, Self::view(at), &projection)?;
            Ok(batches.iter().map(|batch| batch.num_rows()).sum::<usize>())
        };
        (0..self.table.range_count()).map(rows).sum()
    }

    fn totals(&self, at: u64, columns: &[usize]) -> Result<Totals, PageError> {
        let types = [DataType::BigInt, DataType::BigInt, DataType::TEXT];
        let mut totals = Totals::new(columns.iter().map(|column| types[*column]));
        let request = Request { columns: columns.to_vec(), tests: vec![] };
        for range in 0..self.table.range_count() {
            totals.merge(&self.table.aggregate_range(range, Self::view(at), &request)?);
        }
        Ok(totals)
    }

    fn read_backs(&self) -> u64 {
        self.budget.evictions().read_backs
    }
}

fn row(number: u64, few: u64) -> Result<Option<Vec<Value>>, PageError> {
    Ok(Some(vec![Value::BigInt(number as i64), Value::BigInt(few as i64), Value::from(text(number))]))
}

fn below(column: usize, bound: i64) -> (usize, Test) {
    (column, Test::Compare(Comparison::Less, Value::BigInt(bound)))
}

#[test]
fn pages_go_once_a_checkpoint_has_them_and_come_back_when_they_are_read() {
    for layout in [Layout::Column, Layout::Row] {
        let mut fixture = Fixture::new(layout);
        fixture.merge();
        assert_eq!(fixture.evict_all(), 0, "no checkpoint has anything");
        assert!(fixture.budget.take_lack_of_blobs() && !fixture.budget.take_lack_of_blobs());
        fixture.image();
        let used = fixture.table.memory();
        let freed = fixture.evict_all();
        let memory = fixture.table.memory();
        assert_eq!((memory.evicted_bytes, used.total_bytes() - memory.total_bytes()), (freed, freed));
        assert!(freed > used.base_bytes / 2, "{freed} of {used:?}");
        assert_eq!(fixture.read(5, 9), row(5, 0));
        assert_eq!(fixture.read(9, 9), Ok(None), "inserted later");
        assert!(fixture.table.memory().evicted_bytes < freed, "what was read is in memory again");
        let read_backs = fixture.read_backs();
        assert_eq!(fixture.read(7, 9), row(7, 2));
        assert_eq!(fixture.read_backs(), read_backs, "and is not read again");
        assert_eq!(fixture.scan(ROWS, vec![]), Ok(ROWS as usize));
        let memory = fixture.table.memory();
        assert_eq!(memory.base_bytes + memory.evicted_bytes, used.base_bytes);
        assert!(memory.evicted_bytes <= 6 * 8_192, "all is back but for when records were inserted");
    }
}

#[test]
fn old_versions_are_read_from_evicted_history() {
    for layout in [Layout::Column, Layout::Row] {
        let mut fixture = Fixture::new(layout);
        fixture.merge();
        for number in (0..ROWS).step_by(3) {
            fixture.update(number, 7);
        }
        let between = fixture.now;
        for number in (0..ROWS).step_by(3) {
            fixture.update(number, 8);
        }
        fixture.merge();
        fixture.image();
        assert!(fixture.table.memory().history_bytes > 1_000);
        for number in [3, 999, 2_046] {
            fixture.evict_all();
            assert!(fixture.table.memory().history_bytes < 1_000, "{:?}", fixture.table.memory());
            let rid = Rid::base((number >> 10) as usize, number as usize & 1023);
            assert_eq!(fixture.table.version_times(rid, Timestamp::MAX, &RolledBack).unwrap().len(), 3);
            fixture.evict_all();
            let few = [ROWS, between, fixture.now].map(|at| fixture.read(number, at));
            assert_eq!(few, [row(number, number % 5), row(number, 7), row(number, 8)]);
        }
        fixture.evict_all();
        let changed = fixture.table.changed(0, Timestamp(ROWS), Timestamp(between), &RolledBack).unwrap();
        assert_eq!(changed.len(), 342);
        let sum = |at| fixture.totals(at, &[1]).unwrap().columns[0].sum;
        let old: i128 = (0..ROWS).map(|number| i128::from(number % 5)).sum();
        assert_eq!(sum(ROWS), Sum::Integer(old));
    }
}

#[test]
fn merges_and_writers_work_on_evicted_pages_and_leave_alone_what_does_not_change() {
    for layout in [Layout::Column, Layout::Row] {
        let mut fixture = Fixture::new(layout);
        fixture.merge();
        fixture.image();
        let freed = fixture.evict_all();
        fixture.update(3, 70);
        fixture.update(4, 80);
        fixture.update(3, 71);
        fixture.evict_all();
        let read_backs = fixture.read_backs();
        fixture.merge();
        if layout == Layout::Column {
            // The first range has one column that changed; when its records were inserted does not change.
            assert_eq!(fixture.read_backs(), read_backs + 1, "of {freed} bytes");
        }
        assert_eq!([3, 4, 5].map(|number| fixture.read(number, fixture.now)), [row(3, 71), row(4, 80), row(5, 0)]);
        fixture.image();
        fixture.evict_all();
        assert_eq!([3, 4, 5].map(|number| fixture.read(number, fixture.now)), [row(3, 71), row(4, 80), row(5, 0)]);
        assert_eq!([3, 4].map(|number| fixture.read(number, ROWS)), [row(3, 3), row(4, 4)]);
    }
}

#[test]
fn what_the_outline_tells_is_not_read_back() {
    let mut fixture = Fixture::new(Layout::Column);
    fixture.merge();
    fixture.image();
    let statistics = fixture.table.statistics();
    let encodings = fixture.table.encodings(2);
    fixture.evict_all();
    assert_eq!((fixture.table.statistics(), fixture.table.encodings(2)), (statistics, encodings));
    let totals = fixture.totals(ROWS, &[0, 1]).unwrap();
    assert_eq!(totals.columns[0].sum, Sum::Integer((0..i128::from(ROWS)).sum()));
    assert_eq!((totals.rows, totals.columns[0].max.clone()), (ROWS, Some(Value::BigInt(ROWS as i64 - 1))));
    assert_eq!(fixture.scan(ROWS, vec![below(1, 0)]), Ok(0), "no value is so small");
    let no_text = (2, Test::Compare(Comparison::Less, Value::from("text number")));
    assert_eq!(fixture.scan(ROWS, vec![no_text]), Ok(0), "nor any text");
    assert_eq!(fixture.scan(ROWS, vec![(1, Test::IsNull)]), Ok(0));
    assert_eq!(fixture.read_backs(), 0);
    assert_eq!(fixture.scan(ROWS, vec![below(0, 10)]), Ok(10));
    assert_eq!(fixture.read_backs(), 3, "of one range the three columns");
    assert_eq!(fixture.totals(ROWS, &[2]).unwrap().columns[0].max, Some(Value::from(text(999))));
}

/// A scan that finds no room keeps what it reads to itself.
#[test]
fn a_scan_of_more_than_memory_leaves_in_memory_what_is_read_by_key() {
    let mut fixture = Fixture::new(Layout::Column);
    fixture.merge();
    fixture.image();
    fixture.evict_all();
    let hot = |fixture: &Fixture| (0..5_000).step_by(500).all(|number| fixture.read(number, ROWS) == row(number, 0));
    assert!(hot(&fixture) && hot(&fixture));
    let used = fixture.budget.used_bytes();
    fixture.budget.set_limit_bytes(used * 100 / 78);
    for _ in 0..3 {
        assert_eq!(fixture.scan(ROWS, vec![]), Ok(ROWS as usize));
    }
    let read_backs = fixture.read_backs();
    assert!(hot(&fixture) && fixture.budget.evictions().evictions < 30, "{:?}", fixture.budget.evictions());
    assert_eq!(fixture.read_backs(), read_backs, "it is still there");
    assert_eq!(fixture.budget.used_bytes(), used);
    // Where there is room, what the scan brings stands first in the row.
    fixture.budget.set_limit_bytes(u64::MAX);
    assert_eq!(fixture.scan(ROWS, vec![]), Ok(ROWS as usize));
    assert!(fixture.budget.used_bytes() > used);
    fixture.budget.evict(fixture.budget.used_bytes() - used);
    let read_backs = fixture.read_backs();
    assert!(hot(&fixture));
    assert_eq!(fixture.read_backs(), read_backs, "the scan's pages went");
}

/// Pages that were read ahead serve the scan that they were read for, as far as they are still those of the range.
#[test]
fn what_was_read_ahead_is_not_read_again_and_counts_only_for_the_pages_it_is_from() {
    let mut fixture = Fixture::new(Layout::Column);
    fixture.merge();
    fixture.image();
    fixture.evict_all();
    fixture.budget.set_limit_bytes(0);
    let request = || Request { columns: vec![0, 1], tests: vec![] };
    let fields = vec![Field::new("n", ArrowType::Int64, true), Field::new("few", ArrowType::Int64, true)];
    let projection = Projection { request: request(), with_rid: false, schema: Arc::new(ArrowSchema::new(fields)) };
    let scan = |fixture: &Fixture, ahead| {
        let batches = fixture.table.scan_range_after(0, Fixture::view(fixture.now), &projection, ahead).unwrap();
        let sums = batches.iter().map(|batch| batch.column(1).as_primitive::<Int64Type>().values().iter().sum::<i64>());
        sums.sum::<i64>()
    };
    let few: i64 = (0..1_024).map(|number| number % 5).sum();
    assert!(fixture.table.is_away(0, &request()));
    let ahead = fixture.table.read_ahead(0, &request());
    assert_eq!(fixture.read_backs(), 2);
    assert_eq!((scan(&fixture, ahead), fixture.read_backs()), (few, 2));
    let ahead = fixture.table.read_ahead(0, &request());
    fixture.update(5, 1_000);
    fixture.merge();
    assert_eq!(scan(&fixture, ahead), few + 1_000, "the page of one column is another one now");
    let none = Request { columns: vec![0], tests: vec![below(1, -1)] };
    assert!(!fixture.table.is_away(1, &none), "no row of it is asked for");
    fixture.shelf.is_broken.store(true, StdOrdering::Relaxed);
    fixture.evict_all();
    let ahead = fixture.table.read_ahead(1, &request());
    assert!(fixture.table.scan_range_after(1, Fixture::view(1), &projection, ahead).is_err(), "the scan is told");
}

#[test]
fn what_was_used_since_its_last_turn_has_a_second_chance() {
    let mut fixture = Fixture::new(Layout::Column);
    fixture.merge();
    fixture.image();
    fixture.evict_all();
    // Installed without a mark: a second look sets it.
    for number in [1, 1, 1_500] {
        assert!(fixture.read(number, ROWS).is_ok());
    }
    let read_backs = fixture.read_backs();
    fixture.budget.evict(1);
    assert!(fixture.read(1, ROWS).is_ok());
    assert_eq!(fixture.read_backs(), read_backs, "it was not its turn");
    assert!(fixture.read(1_500, ROWS).is_ok());
    assert!(fixture.read_backs() > read_backs, "but that of what was looked at once");
}

#[test]
fn what_cannot_be_read_back_is_an_error_of_who_needs_it() {
    for layout in [Layout::Column, Layout::Row] {
        let mut fixture = Fixture::new(layout);
        fixture.merge();
        fixture.image();
        fixture.update(1_500, 0);
        fixture.evict_all();
        fixture.update(5, 0);
        assert_eq!(fixture.read(5, ROWS), row(5, 0));
        fixture.shelf.is_broken.store(true, StdOrdering::Relaxed);
        assert_eq!(fixture.read(6, ROWS), row(6, 1), "its pages are in memory");
        let error = fixture.read(1_501, ROWS).unwrap_err();
        assert!(error.to_string().contains("the shelf is broken"), "{error}");
        assert!(error.to_string().contains(&error.blob().to_string()), "{error}");
        assert!(fixture.scan(ROWS, vec![]).is_err() && fixture.totals(ROWS, &[2]).is_err());
        let change = Change::Update(&[(1, Cell::Word(1))]);
        let now = fixture.now + 1;
        let rid = Rid::base(1, 7);
        assert!(fixture.table.append(Fixture::view(now), now, rid, change).is_err());
        fixture.update(5, 3);
        assert_eq!(fixture.table.merge_range(1, &RolledBack, Timestamp::ZERO), None);
        assert!(fixture.budget.evictions().failures > 3);
        fixture.shelf.is_broken.store(false, StdOrdering::Relaxed);
        fixture.table.append(Fixture::view(now + 1), now + 1, rid, change).expect("the latch was given back");
        assert!(fixture.table.merge_range(1, &RolledBack, Timestamp::ZERO).is_some(), "nothing was lost");
        assert_eq!(fixture.read(1_500, ROWS), row(1_500, 0));
        assert_eq!(fixture.scan(ROWS, vec![]), Ok(ROWS as usize));
    }
}

#[test]
fn bytes_that_are_no_page_are_an_error_and_other_pages_go_on() {
    let mut fixture = Fixture::new(Layout::Column);
    fixture.merge();
    fixture.image();
    fixture.shelf.spoil(|bytes| bytes.truncate(bytes.len() / 2));
    fixture.evict_all();
    let error = fixture.read(5, ROWS).unwrap_err();
    assert!(error.cause().is_none(), "{error}");
    fixture.shelf.fill(&fixture.blobs);
    let restored = fixture.read(5, ROWS);
    assert_eq!(restored, Err(error), "what is held is what was there when the page went");
}

/// Readers of all kinds, and a thread that evicts all the time.
#[test]
fn readers_find_every_page_under_eviction() {
    let mut fixture = Fixture::new(Layout::Column);
    fixture.merge();
    for number in (0..ROWS).step_by(7) {
        fixture.update(number, 9);
    }
    fixture.merge();
    fixture.image();
    let (fixture, done) = (&fixture, &AtomicBool::new(false));
    let few = |number: u64| if number.is_multiple_of(7) { 9 } else { number % 5 };
    // On a busy machine the readers go on until the thread that evicts has had its turns.
    let is_enough = || {
        let stats = fixture.budget.evictions();
        stats.evictions > 100 && stats.read_backs > 100
    };
    std::thread::scope(|scope| {
        for thread in 0..2_u64 {
            scope.spawn(move || {
                for round in (0..).take_while(|round| *round < 1_500 || !is_enough()) {
                    let number = (round * 37 + thread * 501) % ROWS;
                    assert_eq!(fixture.read(number, fixture.now), row(number, few(number)));
                    assert_eq!(fixture.read(number, ROWS), row(number, number % 5));
                    if round % 100 == 0 {
                        assert_eq!(fixture.scan(fixture.now, vec![]), Ok(ROWS as usize));
                    }
                }
                done.store(true, StdOrdering::Relaxed);
            });
        }
        let mut round = 0;
        while !done.load(StdOrdering::Relaxed) {
            round += 1;
            fixture.budget.set_limit_bytes(if round % 2 == 0 { 0 } else { u64::MAX });
            fixture.budget.evict(1 << (round % 18));
            sync::pin().flush();
        }
    });
    let stats = fixture.budget.evictions();
    assert!(stats.evictions > 100 && stats.read_backs > 100, "{stats:?}");
    fixture.evict_all();
    assert_eq!(fixture.scan(ROWS, vec![]), Ok(ROWS as usize));
}

/// Records that never were leave tombstones, which are counted without a look at their times.
#[test]
fn tombstones_are_known_without_their_page() {
    let mut fixture = Fixture::new(Layout::Column);
    let cells = [Cell::Null, Cell::Null, Cell::Null];
    fixture.table.insert(&cells, StartTime::TOMBSTONE);
    fixture.now += 1;
    fixture.table.insert(&cells, fixture.now);
    fixture.table.insert(&cells, TxnId::new(7).word());
    fixture.merge();
    fixture.image();
    fixture.evict_all();
    let statistics = fixture.table.statistics();
    assert_eq!((statistics.rows, statistics.columns[1].nulls), (ROWS + 1, 1));
    assert_eq!(fixture.read_backs(), 0);
}

#[test]
fn who_needs_memory_waits_for_the_merge_that_another_thread_is_at() {
    let fixture = Fixture::new(Layout::Column);
    let has_waited = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let merging = fixture.table.range(1).merging.lock().unwrap();
        fixture.table.await_merge(0);
        let (table, has_waited) = (&fixture.table, &has_waited);
        let waiting = scope.spawn(move || {
            table.await_merge(1);
            has_waited.store(true, StdOrdering::Relaxed);
        });
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert!(!has_waited.load(StdOrdering::Relaxed) && !waiting.is_finished());
        drop(merging);
    });
    assert!(has_waited.load(StdOrdering::Relaxed));
}
