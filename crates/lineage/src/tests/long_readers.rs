//! Long readers beside many updates: what is kept for them is what they see, however many versions come after, and it goes
//! when they end.
use std::collections::BTreeMap;
use std::sync::Arc;

use types::{Column, DataType, Rid, Schema, Snapshot, Timestamp, TxnId};

use crate::record::view::{Outcome, Outcomes, View};
use crate::value::cell::Cell;
use crate::{Change, Kept, Layout, Table, TableOptions};

const ROWS: usize = 50;
const UPDATES: u64 = 100_000;
/// Updates from one merge to the next.
const MERGED_TOGETHER: u64 = 1_000;

/// Everything is stamped when it is written.
struct NobodyRuns;

impl Outcomes for NobodyRuns {
    fn outcome(&self, txn: TxnId) -> Outcome {
        panic!("{txn:?} writes nothing")
    }

    fn speculate(&self, _: Snapshot, _: TxnId) -> bool {
        unreachable!("nobody is prepared")
    }

    fn await_decision(&self, _: TxnId) {}
}

fn view(at: Timestamp) -> View<'static, NobodyRuns> {
    View { snapshot: Snapshot::at(at), outcomes: &NobodyRuns }
}

/// Some rows of two numbers, updated one after the other, and the snapshots that are in use.
struct World {
    table: Table,
    rows: Vec<[u64; 2]>,
    now: u64,
    /// the rows that each reader reads, by its time
    readers: BTreeMap<Timestamp, Vec<[u64; 2]>>,
    /// the most that there was: tail records that are not history, versions in history, and bytes of these
    most: (u64, usize, usize),
}

impl World {
    fn new() -> World {
        let columns = ["a", "b"].map(|name| Column::new(name, DataType::BigInt)).to_vec();
        let options = TableOptions {
            merge_tail_records: MERGED_TOGETHER,
            workers: 1,
            layout: Layout::Column,
            ..TableOptions::with_range(1 << 12)
        };
        let table = Table::new(Schema::new(columns, &[]).unwrap(), options, Arc::default());
        let rows: Vec<[u64; 2]> = (0..ROWS as u64).map(|i| [i, 100 + i]).collect();
        rows.iter().for_each(|row| assert!(!table.insert(&row.map(Cell::Word), 1).is_tail()));
        World { table, rows, now: 1, readers: BTreeMap::new(), most: (0, 0, 0) }
    }

    fn begin_to_read(&mut self) {
        self.readers.insert(Timestamp(self.now), self.rows.clone());
    }

    fn update(&mut self) {
        let next = self.now as usize + 1;
        self.update_row(next * 7 % ROWS, next / 3 % 2);
    }

    fn update_row(&mut self, row: usize, column: usize) {
        self.now += 1;
        let value = self.now.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let change = [(column, Cell::Word(value))];
        let before = view(Timestamp(self.now - 1));
        self.table.append(before, self.now, Rid::base(0, row), Change::Update(&change)).unwrap();
        self.rows[row][column] = value;
    }

    /// The snapshots for which a table without retention keeps its rows.
    fn kept(&self) -> Kept {
        let now = Timestamp(self.now);
        self.table.raise_horizon(Timestamp::MAX, || self.readers.keys().copied().chain([now]).collect())
    }

    /// As the background does after so many updates.
    fn merge_and_archive(&mut self) {
        self.table.merge_range(0, &NobodyRuns, self.kept());
        self.table.archive_range(0, self.kept(), false);
        let (tail_records, versions, bytes) = self.versions();
        self.most = (self.most.0.max(tail_records), self.most.1.max(versions), self.most.2.max(bytes));
    }

    fn update_many(&mut self, updates: u64) {
        for update in 1..=updates {
            self.update();
            if update.is_multiple_of(MERGED_TOGETHER) {
                self.merge_and_archive();
            }
        }
    }

    /// Counted, as memory is given back when the readers of other tests allow.
    fn versions(&self) -> (u64, usize, usize) {
        let part = &self.table.range(0).parts[0];
        let guard = &sync::pin();
        let history = &part.archive.load(guard).history;
        (part.tails.allocated() - history.through(), history.len(), history.bytes())
    }

    fn check_readers(&self) {
        for (at, rows) in &self.readers {
            assert!(self.table.keeps(*at));
            for (slot, row) in rows.iter().enumerate() {
                let is_right = |cells: &[Cell<'_>]| cells == row.map(Cell::Word);
                assert_eq!(self.table.read(view(*at), Rid::base(0, slot), &[0, 1], is_right), Ok(Some(true)), "{at:?}");
            }
        }
    }
}

#[test]
fn a_long_reader_does_not_keep_the_versions_that_come_after_it() {
    let mut world = World::new();
    world.update_many(3 * MERGED_TOGETHER);
    world.begin_to_read();
    world.update_many(UPDATES / 2);
    world.begin_to_read();
    world.update_many(UPDATES / 2);
    world.check_readers();
    let (tail_records, versions, bytes) = world.most;
    println!("{UPDATES} updates: {tail_records} tail records, {versions} versions of {bytes} bytes at most");
    assert!(tail_records < 2 * MERGED_TOGETHER, "{tail_records} tail records");
    // The versions that each of three snapshots sees, and the original values, in a few pages.
    assert!(versions <= 5 * ROWS, "{versions} versions of {bytes} bytes");
    let between = Timestamp(world.now - UPDATES / 4);
    assert!(!world.table.keeps(between), "newer than a snapshot in use, and not in use itself");
}

#[test]
fn what_a_long_reader_kept_goes_when_it_ends() {
    let mut world = World::new();
    world.update_many(MERGED_TOGETHER);
    for _ in 0..200 {
        world.begin_to_read();
        world.update_many(MERGED_TOGETHER / 4);
        world.merge_and_archive();
    }
    world.check_readers();
    world.table.archive_range(0, world.kept(), true);
    let (_, many, _) = world.versions();
    world.readers.clear();
    // No transaction writes any more, and nothing says that everything should be looked at.
    assert!(world.table.has_archivable());
    world.table.archive_range(0, world.kept(), false);
    let (_, few, _) = world.versions();
    assert!(many > 100 * ROWS && few <= 2 * ROWS, "{few} of {many} versions are left");
}

/// The history may have what a reader sees, and the tail what made base pages show something newer.
#[test]
fn what_a_reader_sees_stays_while_the_next_version_is_still_in_the_tail() {
    for is_history_before in [false, true] {
        let mut world = World::new();
        world.update_row(0, 0);
        world.begin_to_read();
        // To the end of the first tail page and a little further.
        (0..300).for_each(|i| world.update_row(1 + i % (ROWS - 1), 0));
        if is_history_before {
            world.table.merge_range(0, &NobodyRuns, Timestamp::ZERO);
            world.table.archive_range(0, Timestamp::ZERO, true);
        }
        world.update_row(0, 0);
        world.table.merge_range(0, &NobodyRuns, world.kept());
        world.table.archive_range(0, world.kept(), true);
        let (tail_records, ..) = world.versions();
        assert!(tail_records > 0, "the newest version of the row has not become history");
        world.check_readers();
    }
}

/// A record's history goes when it is no longer needed; a reader that begins then needs the base value, which the
/// next merge replaces.
#[test]
fn a_snapshot_after_the_lost_history_keeps_the_origin_and_little_else() {
    let mut world = World::new();
    // With the original value, a tail page.
    (0..255).for_each(|_| world.update_row(0, 0));
    world.merge_and_archive();
    let (tail_records, versions, _) = world.versions();
    assert_eq!((tail_records, versions), (0, 0), "nobody needs history");
    world.begin_to_read();
    // Too few for a look at every record.
    (0..300).for_each(|_| world.update_row(0, 1));
    world.merge_and_archive();
    world.check_readers();
    assert_eq!(world.versions().1, 3, "the origin, the original value, and the newest version");
}
