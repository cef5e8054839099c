//! Reads and writes as words, with hints that were taken before others wrote, merged, gave versions up or evicted pages.
use sync::Guard;

use crate::AppendedVersion;
use crate::tests::shuttle_models::eviction::{evicts, moves, restored, stored};
use crate::tests::shuttle_models::*;

fn columns(world: &World) -> PointColumns {
    PointColumns::new(world.table.schema(), &[A, B]).unwrap()
}

/// Hints for both records.
fn hints<'g>(world: &'g World, guard: &'g Guard) -> [PointHint<'g>; 2] {
    let points = world.table.points(guard);
    [0, 1].map(|slot| *points.at(record(slot)).prefetch().look(guard, &columns(world), true))
}

impl Transaction<'_> {
    fn words(&self, guard: &Guard, hint: &PointHint<'_>) -> Row {
        let mut words = [0; 2];
        let nulls = hint.read(guard, &self.view(), &columns(self.world), &mut words);
        nulls.unwrap().map(|nulls| {
            assert_eq!(nulls, 0, "no value is null");
            words
        })
    }

    /// Reads both records as words, and notes what it saw.
    fn look_by(&self, guard: &Guard, hints: &[PointHint<'_>; 2]) {
        for (slot, hint) in hints.iter().enumerate() {
            let rid = record(slot);
            let row = self.words(guard, hint);
            self.world.seen.lock().unwrap().push(Seen::Row { at: self.snapshot.at, rid, row });
        }
    }

    /// Returns whether it could, by words or in the general way.
    fn update_words(&mut self, guard: &Guard, rid: Rid, column: usize, value: u64) -> bool {
        let before = self.row(rid);
        let columns = PointColumns::new(self.world.table.schema(), &[column]).unwrap();
        let point = self.world.table.point(rid);
        let Some(appended) = point.prefetch().append(guard, self.view(), self.id().word(), &columns, &[value]) else {
            return self.update(rid, column, value);
        };
        let wrote = Wrote::Updated(column, value);
        self.written.push((rid, Some(appended), wrote));
        self.own.insert(rid, apply(before, wrote));
        true
    }
}

impl Transaction<'_> {
    /// Reads both records as words by hints that were taken after the snapshot.
    fn look_seen(&self, guard: &Guard, hints: &[PointHint<'_>; 2]) {
        for (slot, hint) in hints.iter().enumerate() {
            let (rid, mut words) = (record(slot), [0; 2]);
            let nulls = hint.read_seen(guard, &self.view(), &columns(self.world), &mut words).unwrap();
            let row = nulls.map(|_| words);
            self.world.seen.lock().unwrap().push(Seen::Row { at: self.snapshot.at, rid, row });
        }
    }

    /// Commits, and stamps the only version where it lies.
    fn commit_version(self, rid: Rid, version: AppendedVersion<'_>, wrote: Wrote) {
        let at = self.prepare();
        self.world.commits.lock().unwrap().push((at, rid, wrote));
        self.world.states[self.number].store(COMMITTED + at.0, Ordering::Release);
        version.stamp(at.0);
        self.world.states[self.number].store(RELEASED, Ordering::Release);
    }
}

/// Transactions that are known beforehand: the snapshot comes first, and the epoch is pinned once.
fn at_once(world: &World) {
    for (slot, column, value) in [(0, A, 50), (1, B, 60), (0, B, 70)] {
        let guard = &sync::pin();
        let txn = world.begin();
        let hints = hints(world, guard);
        txn.look_seen(guard, &hints);
        let columns = PointColumns::new(world.table.schema(), &[column]).unwrap();
        let placed = hints[slot].append_placed(guard, txn.view(), txn.id().word(), &columns, &[value]);
        let Some((_, version)) = placed else { continue };
        if value == 60 && txn.snapshot.at.0.is_multiple_of(2) {
            version.stamp(StartTime::TOMBSTONE);
            continue;
        }
        txn.commit_version(record(slot), version, Wrote::Updated(column, value));
    }
}

fn deletes(world: &World) {
    let mut txn = world.begin();
    if txn.delete(record(1)) {
        txn.commit();
    }
}

/// Each transaction begins, and each snapshot is taken, after the hints.
fn reader(world: &World) {
    for _ in 0..2 {
        let guard = &sync::pin();
        let hints = hints(world, guard);
        let transaction = world.begin();
        transaction.look_by(guard, &hints);
    }
}

fn writer(world: &World) {
    for (slot, column, value) in [(0, A, 10), (0, B, 20), (1, A, 30)] {
        let guard = &sync::pin();
        let hints = hints(world, guard);
        let mut txn = world.begin();
        if txn.update_words(guard, record(slot), column, value) {
            let row = txn.words(guard, &hints[slot]);
            assert_eq!(row, txn.own[&record(slot)], "its own write");
            txn.commit();
        }
    }
}

/// By words and in the general way, and not all of it stays.
fn undecided(world: &World) {
    let guard = &sync::pin();
    let mut txn = world.begin();
    if txn.update_words(guard, record(0), A, 40) {
        txn.update(record(0), B, 41);
    }
    drop(txn);
    let mut txn = world.begin();
    if txn.update(record(1), B, 42) && txn.update_words(guard, record(1), A, 43) {
        txn.commit();
    }
}

/// Base pages, and a newer version of record 0 that leaves B to them.
fn updated_in_part() -> World {
    let world = World::new();
    world.merge();
    let guard = &sync::pin();
    let mut txn = world.begin();
    assert!(txn.update_words(guard, record(0), A, 10));
    txn.commit();
    world
}

fn looks_once(world: &World) {
    let guard = &sync::pin();
    let hints = hints(world, guard);
    world.begin().look_by(guard, &hints);
}

fn updates_the_rest_and_merges(world: &World) {
    let guard = &sync::pin();
    let mut txn = world.begin();
    assert!(txn.update_words(guard, record(0), B, 20));
    txn.commit();
    world.merge();
}

fn merges(world: &World) {
    for _ in 0..2 {
        world.merge();
        world.archive();
    }
}

/// Point rows come, are taken over by a merge, and are evicted.
fn arranges(world: &World) {
    for _ in 0..2 {
        world.table.make_point_rows(0);
        world.merge_only();
    }
    evicts(world);
}

#[test]
fn a_record_moves_between_hint_and_read() {
    explore(|| together(World::new(), vec![writer, reader, undecided]));
}

#[test]
fn transactions_at_once_take_turns_with_others() {
    explore(|| together(World::new(), vec![at_once, writer, at_once]));
    explore(|| together(World::new(), vec![at_once, undecided, deletes]));
}

#[test]
fn transactions_at_once_are_merged_and_become_history_before_they_are_stamped() {
    explore(|| together(World::new(), vec![at_once, at_once, merges]));
    explore(|| together(updated_in_part(), vec![at_once, merges]));
    explore(|| together(World::with_layout(Layout::Row), vec![at_once, writer, merges]));
}

#[test]
fn point_rows_and_pages_go_beside_transactions_at_once() {
    explore(|| together(stored(Layout::Column), vec![at_once, writer, arranges]));
    explore(|| together(stored(Layout::Row), vec![at_once, evicts]));
}

#[test]
fn versions_become_base_pages_and_history_between_hint_and_read() {
    explore(|| together(World::new(), vec![writer, reader, merges]));
}

#[test]
fn base_pages_take_in_a_newer_version_while_a_reader_is_between_it_and_them() {
    explore(|| together(updated_in_part(), vec![looks_once, updates_the_rest_and_merges]));
}

#[test]
fn point_rows_come_and_go_between_hint_and_read() {
    explore(|| together(stored(Layout::Column), vec![reader, writer, arranges]));
}

#[test]
fn writers_by_words_take_turns_with_others_and_with_merges() {
    explore(|| together(World::new(), vec![writer, undecided, merges]));
}

#[test]
fn rows_change_between_hint_and_read() {
    explore(|| together(World::with_layout(Layout::Row), vec![writer, reader, merges]));
}

#[test]
fn a_page_is_evicted_between_hint_and_read() {
    explore(|| together(stored(Layout::Column), vec![reader, writer, evicts]));
    explore(|| together(stored(Layout::Row), vec![reader, writer, evicts]));
}

/// A restored range that nobody has used.
fn unused() -> World {
    let world = restored(Layout::Column);
    assert!(!world.table.range_as_is(0).late_past.is_here(), "its past comes later");
    world
}

#[test]
fn the_first_users_of_a_restored_range_meet_and_find_its_past() {
    explore(|| together(unused(), vec![reader, writer, merges]));
    explore(|| together(unused(), vec![at_once, |world| world.begin().look_around(), moves]));
}
