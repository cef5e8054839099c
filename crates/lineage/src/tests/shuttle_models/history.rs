//! Tail records that become history, and history that is given up, against readers of old and new snapshots
//! (L-Store, end of section 2.1): history is published first, tail pages go last, and a reader with outdated pages
//! looks again.
use crate::tests::shuttle_models::*;

fn commit_update(world: &World, column: usize, value: u64) {
    let mut txn = world.begin();
    if txn.update(record(0), column, value) {
        txn.commit();
    }
}

fn reader(world: &World) {
    for _ in 0..2 {
        world.begin().look_around();
    }
}

fn looks_twice(world: &World) {
    let txn = world.begin();
    txn.look_around();
    txn.look_around();
}

/// A record in base pages with three versions, all of them in the tail.
fn with_versions() -> World {
    let world = World::new();
    world.merge_only();
    for (column, value) in [(A, 10), (B, 20), (A, 11)] {
        commit_update(&world, column, value);
    }
    world
}

#[test]
fn a_version_is_found_in_the_tail_or_in_the_history() {
    let archives = |world: &World| {
        world.merge_only();
        world.table.archive_range(0, Timestamp::ZERO, true);
        commit_update(world, B, 21);
        world.merge_only();
        world.table.archive_range(0, Timestamp::ZERO, true);
    };
    let looks_back = |world: &World| {
        let mut txn = world.begin();
        for at in [2, 3] {
            txn.snapshot.at = Timestamp(at);
            txn.look_around();
        }
    };
    explore(move || together(with_versions(), vec![archives, looks_back, reader]));
}

#[test]
fn history_is_kept_for_the_snapshots_in_use() {
    let archives = |world: &World| {
        world.merge();
        world.archive();
        world.archive();
    };
    let updates = |world: &World| {
        commit_update(world, A, 12);
        commit_update(world, B, 22);
    };
    explore(move || together(with_versions(), vec![archives, updates, looks_twice]));
}

/// A reader that finds an older snapshot there keeps it, and nothing newer with it.
#[test]
fn a_snapshot_that_is_found_to_be_there_stays() {
    let archives = |world: &World| {
        for _ in 0..2 {
            world.merge();
            world.archive();
        }
    };
    let updates = |world: &World| {
        commit_update(world, A, 12);
        commit_update(world, B, 22);
    };
    let looks_back = |world: &World| {
        for at in [2, 3] {
            if let Some(txn) = world.begin_at(Timestamp(at)) {
                txn.look_around();
                txn.look_around();
            }
        }
    };
    explore(move || together(with_versions(), vec![archives, updates, looks_back]));
}

/// A reader that asks for changes needs all versions since, not only those that it sees.
#[test]
fn changes_are_complete_while_they_are_told() {
    let archives = |world: &World| {
        for _ in 0..2 {
            world.merge();
            world.archive();
        }
    };
    let updates = |world: &World| commit_update(world, B, 22);
    let asks = |world: &World| {
        let txn = world.begin();
        let all = world.table.keep_all();
        txn.changes_after(all.from());
    };
    explore(move || together(with_versions(), vec![archives, updates, asks]));
}

/// The record's history was given up; its next version must not cover what older snapshots still need.
#[test]
fn an_origin_is_kept_for_the_snapshots_before_the_next_version() {
    let world = || {
        let world = with_versions();
        world.merge();
        world.archive();
        world
    };
    let updates = |world: &World| {
        commit_update(world, A, 12);
        world.merge();
        world.archive();
        commit_update(world, A, 13);
        world.merge();
    };
    explore(move || together(world(), vec![updates, looks_twice, looks_twice]));
}

#[test]
fn a_scan_whose_tail_becomes_history_looks_again() {
    let archives = |world: &World| {
        world.merge();
        world.archive();
    };
    explore(move || together(with_versions(), vec![archives, archives, reader]));
}

#[test]
fn columns_merged_apart_meet_in_the_history() {
    let archives = |world: &World| {
        for column in [A, B] {
            world.table.merge_columns(0, &[column], world, world.kept());
        }
        world.merge();
        world.archive();
    };
    let updates = |world: &World| commit_update(world, B, 22);
    explore(move || together(with_versions(), vec![archives, updates, looks_twice]));
}

#[test]
fn every_change_is_told_once_wherever_it_is() {
    let archives = |world: &World| {
        world.merge_only();
        world.table.archive_range(0, Timestamp::ZERO, true);
    };
    let updates = |world: &World| {
        commit_update(world, A, 12);
        let mut txn = world.begin();
        txn.insert([1, 2]);
        txn.commit();
    };
    let asks = |world: &World| {
        for _ in 0..2 {
            let txn = world.begin();
            txn.changes_after(Timestamp(1));
        }
    };
    explore(move || together(with_versions(), vec![archives, updates, asks]));
}
