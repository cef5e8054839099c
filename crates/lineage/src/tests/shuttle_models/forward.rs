//! Columns that scans bring forward (`scan::forward`), against writers, merges and other scans.
use crate::tests::shuttle_models::*;

/// A world with its records in base pages, in which two updates are pending that a scan has met.
fn met_before() -> World {
    let world = World::new();
    world.merge_only();
    let mut txn = world.begin();
    txn.update(record(0), A, 5);
    txn.update(record(1), B, 6);
    txn.commit();
    world.begin().scan();
    world
}

fn writer(world: &World) {
    let mut txn = world.begin();
    txn.update(record(0), A, 10);
    txn.update(record(1), A, 11);
    txn.commit();
    let mut txn = world.begin();
    txn.update(record(0), B, 20);
    txn.commit();
}

/// Scans as of now, and once more as of the same time when others may have gone on.
fn scans_twice(world: &World) {
    let txn = world.begin();
    txn.scan();
    txn.scan();
}

#[test]
fn scans_that_bring_columns_forward_see_their_snapshots() {
    explore(|| together(met_before(), vec![writer, scans_twice, scans_twice]));
}

#[test]
fn a_merge_may_pass_what_was_brought_forward() {
    let merges_columns = |world: &World| {
        world.table.merge_columns(0, &[A], world, Timestamp::ZERO);
        world.merge_only();
    };
    explore(move || together(met_before(), vec![writer, merges_columns, scans_twice]));
}

#[test]
fn a_version_that_is_rolled_back_is_not_brought_forward() {
    let gives_up = |world: &World| {
        let mut txn = world.begin();
        txn.update(record(0), A, 99);
        drop(txn);
        let mut txn = world.begin();
        txn.delete(record(1));
        txn.commit();
    };
    explore(move || together(met_before(), vec![gives_up, scans_twice, scans_twice]));
}
