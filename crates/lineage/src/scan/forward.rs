//! Columns brought forward: copies of a range's columns in which scans put pending values in their places, so that a scan that comes
//! again looks at those alone that have come since.
//!
//! It is what the merge does with a column (L-Store, section 4.1), but in place, for the columns that are scanned, and as often as they
//! are. Base pages can't be changed in place, as readers by key look into them at any time. These copies are for scans
//! alone, of which one at a time brings them forward; a scan that still reads one makes the next scan take another copy.
//!
//! ```text
//! tails       1 2 3 4 5 6 7 8 9 10 11 12 ...
//! base pages  ----> TPS
//! forward     ------------------> through       every record up to there is a tombstone, or committed and put in its place
//! a scan                          <----->       is left to the fold, as everything after the TPS was
//! ```
//!
//! The prefix of the tails that is passed ends before a record that is not decided, or was committed after the scan's snapshot; before a
//! delete; and before a value that the copy can't take: a NULL, bytes, a number that its lanes have no room for. So a snapshot that sees
//! the newest commit of a copy sees all of it, and the fold finds everything else. Others go by the base pages.
//!
//! A column of which no record that was passed has a value needs no copy: its page is as good, and so is each later one. Copies are made
//! once a second scan meets many pending records between two merges, and go when a merge has come as far.
use std::sync::Arc;

use sync::Guard;
use sync::atomic::Ordering;
use types::{StartTime, Timestamp};

use crate::encoding::{EncodedColumn, KeyRoom};
use crate::memory::budget::{Charge, MemoryKind};
use crate::page::base::{Lineage, MetaPage, Page, Pages, Values};
use crate::page::tail::TailRecord;
use crate::record::forward::{Followed, Forward, ForwardColumn};
use crate::record::range::Range;
use crate::value::column_set::{WORD_COLUMNS, columns_of};
use crate::value::kind::Kind;

/// So many pending records are folded each time; tests look into copies at once.
const FEW: u64 = if cfg!(any(test, shuttle)) { 2 } else { 256 };

/// The columns of one scan, brought forward.
pub(crate) struct Forwarded {
    /// of each update range, up to which tail record
    pub(crate) through: Box<[u64]>,
    /// of each column of the scan; those that have none are as their pages have them
    pub(crate) copies: Box<[Option<Arc<ForwardColumn>>]>,
}

/// New keys of one column with their slots, oldest first.
struct Patches {
    room: KeyRoom,
    keys: Vec<(usize, i64)>,
}

impl Range {
    /// Brings the columns forward for a snapshot at this time; `None` where the scan has to go by these pages.
    pub(crate) fn forwarded(
        &self,
        guard: &Guard,
        pages: &Pages,
        columns: &[usize],
        at: Timestamp,
    ) -> Option<Forwarded> {
        let MetaPage::Base(meta) = &pages.meta else { return None };
        let pending = |part: usize| self.parts[part].tails.allocated().saturating_sub(pages.tps_min(part, columns));
        let is_worthwhile = (0..self.parts.len()).map(pending).sum::<u64>() >= FEW;
        if !is_worthwhile || meta.newest > at || self.types.len() > WORD_COLUMNS || columns.is_empty() {
            return None;
        }
        // While another scan brings it forward this one does not wait.
        let mut kept = self.forward.kept.try_lock().ok()?;
        if kept.as_ref().is_some_and(|forward| forward.is_passed(&pages.floor)) {
            *kept = None;
        }
        if kept.is_none() {
            let met = 1 + pages.floor.iter().sum::<u64>();
            if self.forward.met.swap(met, Ordering::Relaxed) != met {
                return None;
            }
            *kept = Some(Forward::at(&pages.floor, meta.newest, self.types.len()));
        }
        let forward = kept.as_mut()?;
        if forward.newest > at {
            return None;
        }
        forward.newest = forward.newest.max(meta.newest);
        for column in columns {
            self.follow(guard, pages, forward, *column)?;
        }
        forward.leave_unused(columns);
        self.advance_columns(guard, pages, forward, at)?;
        let copies = columns.iter().map(|column| forward.columns[*column].copy.clone()).collect();
        Some(Forwarded { through: forward.through.clone(), copies })
    }

    /// Follows a column from now on, having brought it as far as the others; `None` if this can't be done, or if its page is older than
    /// the one with which that began.
    fn follow(&self, guard: &Guard, pages: &Pages, forward: &mut Forward, column: usize) -> Option<()> {
        let page = &pages.columns[column];
        if forward.columns[column].since.is_some() {
            return forward.columns[column].goes_on_from(&page.lineage).then_some(());
        }
        let mut followed = Followed::from(page.lineage.clone());
        let mut patches = None;
        for (part, through) in forward.through.iter().enumerate() {
            let mut has_places = true;
            let visited = self.parts[part].tails.each_oldest_first(guard, page.lineage[part], |record| {
                let Some(record) = record.filter(|record| record.sequence <= *through) else { return false };
                let is_committed = record.start().load(Ordering::Acquire) != StartTime::TOMBSTONE;
                if is_committed && record.kind() == Kind::Update && record.is_explicit(column) {
                    has_places = self.has_place(guard, page, &mut followed, &mut patches, (column, &record));
                    note(&mut patches, column, &record, &followed);
                }
                has_places
            });
            if visited.is_err() || !has_places {
                return None;
            }
        }
        patches.iter().for_each(|patches| self.put(&mut followed, patches));
        forward.columns[column] = followed;
        Some(())
    }

    /// Moves on over what was decided at or before `at`; `None` where some of it has become history.
    fn advance_columns(&self, guard: &Guard, pages: &Pages, forward: &mut Forward, at: Timestamp) -> Option<()> {
        let Forward { through, newest, columns } = forward;
        columns.iter_mut().zip(&pages.columns).for_each(|(column, page)| column.see(&page.lineage));
        let is_followed = |column: &usize| columns[*column].since.is_some();
        let followed = (0..columns.len()).filter(is_followed).fold(0, |set, column| set | 1 << column);
        let mut patches: Vec<Option<Patches>> = columns.iter().map(|_| None).collect();
        let mut are_there = true;
        for (part, through) in through.iter_mut().enumerate() {
            let visited = self.parts[part].tails.each_oldest_first(guard, *through, |record| {
                let Some(record) = record else { return false };
                let start = record.start().load(Ordering::Acquire);
                if start != StartTime::TOMBSTONE {
                    if start == 0 || start > at.0 || record.kind() == Kind::Delete {
                        return false;
                    }
                    if record.kind() == Kind::Update {
                        let is_new = |column: &usize| columns[*column].is_without(part, record.sequence);
                        let values = columns_of(record.sets().0 & followed).filter(is_new);
                        let values = values.fold(0, |set, column| set | 1 << column);
                        // All of them before the first is noted: what is not passed leaves nothing behind.
                        let has_place = |column: usize| {
                            let (page, of_column) = (&pages.columns[column], &mut columns[column]);
                            self.has_place(guard, page, of_column, &mut patches[column], (column, &record))
                        };
                        if !columns_of(values).all(has_place) {
                            return false;
                        }
                        columns_of(values)
                            .for_each(|column| note(&mut patches[column], column, &record, &columns[column]));
                        *newest = (*newest).max(Timestamp(start));
                    }
                }
                *through = record.sequence;
                true
            });
            are_there &= visited.is_ok();
        }
        // Whatever was passed is put in its place.
        for (column, patches) in columns.iter_mut().zip(&patches) {
            patches.iter().for_each(|patches| self.put(column, patches));
        }
        are_there.then_some(())
    }

    /// Whether a copy of the column, which this makes if there is none, has room for the value in a record.
    fn has_place(
        &self,
        guard: &Guard,
        page: &Page,
        followed: &mut Followed,
        patches: &mut Option<Patches>,
        (column, record): (usize, &TailRecord<'_>),
    ) -> bool {
        if patches.is_none() {
            if followed.copy.is_none() && followed.goes_on_from(&page.lineage) {
                followed.copy = self.copy_of(guard, page);
            }
            let room = followed.copy.as_ref().and_then(|copy| copy.values.room());
            *patches = room.map(|room| Patches { room, keys: Vec::new() });
        }
        match (patches, &followed.copy) {
            (Some(patches), Some(copy)) if !record.is_null(column) => {
                patches.room.has(copy.values.key_of(record.word(column)))
            }
            _ => false,
        }
    }

    fn copy_of(&self, guard: &Guard, page: &Page) -> Option<Arc<ForwardColumn>> {
        let Values::Column(values) = &page.values else { return None };
        let values = values.here(guard)?;
        let has_room = self.meter.budget().has_room_for_copies(values.bytes() as u64);
        has_room.then(|| values.copy()).flatten().map(|values| self.charged(values, page.lineage.clone()))
    }

    fn charged(&self, values: EncodedColumn, lineage: Lineage) -> Arc<ForwardColumn> {
        let charge = Charge::new(&self.meter, MemoryKind::Base, values.bytes());
        Arc::new(ForwardColumn { values, lineage, _charge: charge })
    }

    /// Puts new values in their places: where a scan still reads the copy, in those of another one.
    fn put(&self, followed: &mut Followed, patches: &Patches) {
        let Some(copy) = &mut followed.copy else { unreachable!("values have places in a copy") };
        if let Some(alone) = Arc::get_mut(copy) {
            return alone.values.overwrite(&patches.keys);
        }
        let mut values = copy.values.copy().expect("a copy can be copied");
        values.overwrite(&patches.keys);
        *copy = self.charged(values, copy.lineage.clone());
    }
}

/// Notes the value of a record, which has a place.
fn note(patches: &mut Option<Patches>, column: usize, record: &TailRecord<'_>, followed: &Followed) {
    if let (Some(patches), Some(copy)) = (patches, &followed.copy) {
        patches.keys.push((record.slot(), copy.values.key_of(record.word(column))));
    }
}

#[cfg(test)]
mod tests {
    use types::{Rid, TxnId, Value};

    use super::*;
    use crate::record::append::AppendedRecords;
    use crate::record::view::Outcome;
    use crate::record::write::Change;
    use crate::tests::mechanism::{Fixture, options};
    use crate::value::cell::Cell;
    use crate::{Comparison, Request, Sum, Test};

    const ROWS: usize = 1 << 12;

    /// Three numbers or NULLs.
    type Row = [Option<i64>; 3];

    /// A fixture of merged rows, with what each has had and when: newest last.
    struct World {
        fixture: Fixture,
        versions: Vec<Vec<(u64, Option<Row>)>>,
        random: u64,
        now: u64,
    }

    impl World {
        fn new(seed: u64) -> World {
            let fixture = Fixture::filled(3, options(ROWS, ROWS), ROWS);
            fixture.merge();
            let row = |slot: i64| vec![(1, Some([slot, 1_000 + slot, 2_000 + slot].map(Some)))];
            World { fixture, versions: (0..ROWS as i64).map(row).collect(), random: seed, now: 4 }
        }

        fn below(&mut self, end: u64) -> u64 {
            self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.random >> 33) % end
        }

        /// A version of some row: values, a NULL now and then where `has_nulls`, a delete where `has_deletes`, one that is rolled back.
        fn write(&mut self, (has_nulls, has_deletes): (bool, bool)) {
            // Few rows, so that one has several versions between two merges.
            let slot = 61 * self.below(64) as usize;
            let Some(mut row) = self.versions[slot].last().and_then(|(_, row)| *row) else { return };
            self.now += 1;
            let (now, rid) = (self.now, Rid::base(0, slot));
            if has_deletes && self.below(64) == 0 {
                self.fixture.table.append(self.fixture.view(now), now, rid, Change::Delete).unwrap();
                return self.versions[slot].push((now, None));
            }
            let (column, number) = (1 + self.below(2) as usize, self.below(5_000) as i64);
            let value = (!has_nulls || self.below(32) > 0).then_some(number);
            let cell = value.map_or(Cell::Null, |number| Cell::Word(number as u64));
            let change = [(column, cell), (3 - column, Cell::Word(7))];
            let change = Change::Update(&change[..1 + self.below(2) as usize]);
            if self.below(8) == 0 {
                let written = self.begin(TxnId::new(now), rid, change);
                return self.end(TxnId::new(now), rid, written, StartTime::TOMBSTONE);
            }
            self.fixture.table.append(self.fixture.view(now), now, rid, change).unwrap();
            row[column] = value;
            if let Change::Update([_, (other, _)]) = change {
                row[*other] = Some(7);
            }
            self.versions[slot].push((now, Some(row)));
        }

        fn begin(&self, txn: TxnId, rid: Rid, change: Change<'_>) -> AppendedRecords {
            let view = self.fixture.own_view(self.now, txn);
            self.fixture.table.append(view, txn.word(), rid, change).unwrap()
        }

        fn end(&self, txn: TxnId, rid: Rid, written: AppendedRecords, stamp: u64) {
            let outcome = match stamp {
                StartTime::TOMBSTONE => Outcome::Aborted,
                at => Outcome::Committed(Timestamp(at)),
            };
            self.fixture.ended.end(txn, outcome);
            self.fixture.table.stamp_versions(&sync::pin(), rid, written, txn, stamp);
        }

        /// Scans and point reads agree with the model now, and as of an earlier time.
        fn check_now_and_before(&mut self) {
            use Comparison::{GreaterOrEqual, Less};
            let before = self.now - self.below(20).min(self.now - 4);
            let bound = self.below(5_000) as i64;
            for at in [before, self.now, self.now, before, self.now] {
                for tests in [&[][..], &[(1, Less, bound)], &[(2, GreaterOrEqual, bound), (1, GreaterOrEqual, 7)]] {
                    self.check(at, tests);
                }
            }
        }

        /// Sums of two columns by a scan at some time are those of the model.
        fn check(&self, at: u64, tests: &[(usize, Comparison, i64)]) {
            let passes = |row: &Row| {
                tests.iter().all(|(column, comparison, number)| match (row[*column], comparison) {
                    (Some(value), Comparison::Less) => value < *number,
                    (Some(value), Comparison::GreaterOrEqual) => value >= *number,
                    _ => false,
                })
            };
            let row = |versions: &Vec<(u64, Option<Row>)>| versions.iter().rfind(|(start, _)| *start <= at)?.1;
            let rows: Vec<_> = self.versions.iter().filter_map(row).filter(passes).collect();
            for column in [1, 2] {
                let test =
                    |(column, comparison, number): &_| (*column, Test::Compare(*comparison, Value::BigInt(*number)));
                let request = Request { columns: vec![column], tests: tests.iter().map(test).collect() };
                let totals = self.fixture.table.aggregate_range(0, self.fixture.view(at), &request).unwrap();
                let values: Vec<i64> = rows.iter().filter_map(|row| row[column]).collect();
                let sum = Sum::Integer(values.iter().map(|value| i128::from(*value)).sum());
                let of_model = (rows.len() as u64, values.len() as u64, sum);
                let total = &totals.columns[0];
                assert_eq!(
                    (totals.rows, total.count as u64, total.sum),
                    of_model,
                    "{tests:?} at {at}, column {column}"
                );
                let extremes = (values.iter().min().copied(), values.iter().max().copied());
                let number = |value: &Option<Value>| {
                    value.as_ref().map(|value| match value {
                        Value::BigInt(number) => *number,
                        other => panic!("{other:?} is no number"),
                    })
                };
                assert_eq!((number(&total.min), number(&total.max)), extremes, "{tests:?} at {at}, column {column}");
            }
        }

        /// Whether scans have passed all tail records, but for numbers that the writer holds ready.
        fn has_passed_all(&self) -> bool {
            self.passed() + 16 > self.fixture.range().tail_records()
        }

        /// How many tail records scans have passed.
        fn passed(&self) -> u64 {
            let kept = self.fixture.range().forward.kept.lock().unwrap();
            kept.as_ref().map_or(0, |forward| forward.through.iter().sum())
        }
    }

    #[test]
    fn a_scan_sees_its_snapshot_whatever_was_brought_forward() {
        for (seed, kinds) in [(1, (false, false)), (2, (false, true)), (3, (true, false)), (4, (true, true))] {
            let mut world = World::new(seed);
            let (mut held, mut passed_most) = (Vec::new(), 0);
            for _ in 0..40 {
                for _ in 0..world.below(150) {
                    world.write(kinds);
                }
                if world.below(4) == 0 {
                    world.fixture.table.merge_columns(0, &[1], &world.fixture.ended, Timestamp::ZERO);
                }
                world.check_now_and_before();
                passed_most = passed_most.max(world.passed());
                match world.below(10) {
                    0..2 => drop(world.fixture.table.merge_range(0, &world.fixture.ended, Timestamp::ZERO)),
                    // A scan that goes on reading what it has: the next one puts its values elsewhere.
                    2..5 => {
                        let range = world.fixture.range();
                        let guard = &sync::pin();
                        held.extend(range.forwarded(guard, range.pages.load(guard), &[1, 2], Timestamp(world.now)));
                    }
                    5 => held.clear(),
                    _ => {}
                }
            }
            assert!(passed_most > 0, "seed {seed}: nothing was brought forward");
        }
    }

    #[test]
    fn all_that_is_committed_is_passed_and_a_merge_lets_the_copies_go() {
        let mut world = World::new(7);
        (0..500).for_each(|_| world.write((false, false)));
        world.check_now_and_before();
        assert!(world.has_passed_all());
        let copies = |world: &World| {
            let kept = world.fixture.range().forward.kept.lock().unwrap();
            kept.as_ref().map(|forward| forward.columns.iter().map(|column| column.copy.is_some()).collect::<Vec<_>>())
        };
        assert_eq!(copies(&world), Some(vec![false, true, true]), "the key has no newer values");
        world.fixture.merge();
        assert_eq!(copies(&world), None);
        world.check_now_and_before();
    }

    #[test]
    fn a_scan_that_came_before_a_merge_keeps_to_its_pages() {
        let mut world = World::new(11);
        (0..300).for_each(|_| world.write((false, false)));
        let (guard, range) = (&sync::pin(), world.fixture.range());
        let (before, then) = (range.pages.load(guard), Timestamp(world.now));
        let forwarded = |pages: &Pages, columns: &[usize], at: Timestamp| range.forwarded(guard, pages, columns, at);
        world.fixture.table.merge_columns(0, &[1], &world.fixture.ended, Timestamp::ZERO);
        let merged = range.pages.load(guard);
        assert!(forwarded(merged, &[2], then).is_none(), "the first time");
        assert!(forwarded(merged, &[2], then).is_some());
        assert!(forwarded(merged, &[1, 2], then).is_some());
        assert!(
            forwarded(before, &[1, 2], then).is_none(),
            "its page has less than the one with which following began"
        );
        assert!(
            forwarded(before, &[2], Timestamp(then.0 - 1)).is_none(),
            "the pages that were copied have what came later"
        );
    }

    #[test]
    fn what_the_page_of_a_column_has_is_not_put_over_it_again() {
        let fixture = Fixture::filled(3, options(ROWS, ROWS), ROWS);
        fixture.merge();
        let before: i128 = (0..ROWS as i128).map(|slot| 1_000 + slot).sum();
        fixture.update(7, 5, &[(1, 1_100)]);
        fixture.update(7, 6, &[(1, 1_200)]);
        fixture.table.merge_columns(0, &[1], &fixture.ended, Timestamp::ZERO);
        let request = Request { columns: vec![1, 2], tests: Vec::new() };
        for _ in 0..3 {
            let totals = fixture.table.aggregate_range(0, fixture.view(9), &request).unwrap();
            assert_eq!(totals.columns[0].sum, Sum::Integer(before + 1_200 - 1_007));
        }
    }

    #[test]
    fn what_is_undecided_or_has_no_room_is_left_to_the_fold() {
        let mut world = World::new(9);
        (0..100).for_each(|_| world.write((false, false)));
        world.check_now_and_before();
        let (passed, rid, txn) = (world.passed(), Rid::base(0, 5), TxnId::new(1 << 20));
        let written = world.begin(txn, rid, Change::Update(&[(1, Cell::Word(1 << 40))]));
        (0..100).for_each(|_| world.write((false, false)));
        world.check_now_and_before();
        assert!(!world.has_passed_all(), "{passed} were passed before");
        world.now += 1;
        world.end(txn, rid, written, world.now);
        let mut row = world.versions[5].last().unwrap().1.unwrap();
        row[1] = Some(1 << 40);
        let now = world.now;
        world.versions[5].push((now, Some(row)));
        world.check_now_and_before();
        assert!(!world.has_passed_all(), "16 bits have no room for it");
        world.fixture.merge();
        (0..100).for_each(|_| world.write((false, false)));
        world.check_now_and_before();
        assert!(world.has_passed_all(), "the next page has");
    }
}
