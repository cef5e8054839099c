//! The merge against writers and readers (L-Store, sections 4.1 and 4.2): the pages of a range are swapped at once, those
//! of its columns may have come to different numbers, and a reader loads them before the Indirection word.
use crate::tests::shuttle_models::*;

fn writer(world: &World) {
    let mut txn = world.begin();
    txn.update(record(0), A, 10);
    txn.commit();
    let mut txn = world.begin();
    txn.update(record(0), B, 20);
    txn.update(record(1), A, 30);
    txn.commit();
    let mut txn = world.begin();
    txn.update(record(0), A, 11);
    txn.commit();
}

fn merger(world: &World) {
    world.merge_only();
    world.merge_only();
}

fn reader(world: &World) {
    for _ in 0..2 {
        world.begin().look_around();
    }
}

#[test]
fn a_merge_changes_nothing_that_a_reader_sees() {
    explore(|| together(World::new(), vec![writer, merger, reader]));
}

#[test]
fn a_merge_changes_nothing_that_a_reader_sees_in_row_layout() {
    explore(|| together(World::with_layout(Layout::Row), vec![writer, merger, reader]));
}

/// A world with its records in base pages, in which one of them was updated since.
fn merged_before() -> World {
    let world = World::new();
    world.merge_only();
    let mut txn = world.begin();
    txn.update(record(0), A, 5);
    txn.update(record(0), B, 6);
    txn.commit();
    world
}

#[test]
fn columns_may_be_merged_at_different_times() {
    let merges_columns = |world: &World| {
        for column in [A, B] {
            world.table.merge_columns(0, &[column], world, Timestamp::ZERO);
        }
        world.merge_only();
    };
    explore(move || together(merged_before(), vec![writer, merges_columns, reader]));
}

#[test]
fn a_reader_of_an_old_snapshot_is_not_shown_a_merged_version() {
    let merges = |world: &World| {
        let mut txn = world.begin();
        txn.update(record(0), A, 10);
        txn.commit();
        world.merge_only();
    };
    let looks_twice = |world: &World| {
        let txn = world.begin();
        txn.look_around();
        txn.look_around();
    };
    explore(move || together(merged_before(), vec![merges, looks_twice]));
}

#[test]
fn a_deleted_record_stays_deleted_when_merged() {
    let deletes = |world: &World| {
        let mut txn = world.begin();
        txn.update(record(0), A, 10);
        txn.commit();
        let mut txn = world.begin();
        txn.delete(record(0));
        txn.commit();
    };
    explore(move || together(merged_before(), vec![deletes, merger, reader]));
}

#[test]
fn inserts_go_on_in_another_range_when_theirs_is_merged() {
    let inserts = |world: &World| {
        for value in [1, 2] {
            let mut txn = world.begin();
            let rid = txn.insert([value, value]);
            txn.update(rid, B, value + 10);
            txn.commit();
        }
    };
    explore(move || together(World::new(), vec![inserts, merger, reader]));
}

#[test]
fn two_merges_at_once_are_one() {
    explore(|| together(merged_before(), vec![merger, merger, writer]));
}

/// A world whose range is closed, and full: its last record is of transaction 1, which runs.
fn filled() -> World {
    let world = World::new();
    let mut txn = world.begin();
    assert_eq!(txn.insert(LAST), record(2));
    // It goes on in another thread.
    txn.written.clear();
    drop(txn);
    world.merge_only();
    world
}

const LAST: [u64; 2] = [102, 202];

/// Transaction 1 of a filled world.
fn filler(world: &World) -> Transaction<'_> {
    let mut txn = world.transaction(1, Timestamp(1));
    txn.written.push((record(2), None, Wrote::Inserted(LAST)));
    txn
}

fn builder(world: &World) {
    world.table.build_columns(0);
}

#[test]
fn columns_that_are_made_before_the_first_merge_miss_nothing() {
    let commits = |world: &World| {
        filler(world).commit();
    };
    explore(move || together(filled(), vec![commits, builder, merger, writer]));
}

#[test]
fn columns_that_are_made_before_a_rollback_are_not_seen() {
    let rolls_back = |world: &World| drop(filler(world));
    explore(move || together(filled(), vec![rolls_back, builder, merger, reader]));
}
