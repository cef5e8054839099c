//! Writers of one record against each other and against readers: the latch bit, publication, and what becomes of Start
//! Time (L-Store, sections 3 and 5).
use crate::tests::shuttle_models::*;

fn reader(world: &World) {
    for _ in 0..2 {
        world.begin().look_around();
    }
}

fn writer_of_a(world: &World) {
    let mut txn = world.begin();
    if txn.update(record(0), A, 10) && txn.update(record(0), A, 11) {
        txn.commit();
    }
}

fn writer_of_b(world: &World) {
    let mut txn = world.begin();
    if txn.update(record(0), B, 20) {
        txn.commit();
    }
}

#[test]
fn two_writers_of_a_record_take_turns() {
    explore(|| together(World::new(), vec![writer_of_a, writer_of_b, reader]));
}

#[test]
fn two_writers_of_a_record_take_turns_in_row_layout() {
    explore(|| together(World::with_layout(Layout::Row), vec![writer_of_a, writer_of_b, reader]));
}

/// One writer goes on until it succeeds, so that versions follow upon those that were rolled back.
#[test]
fn a_version_follows_those_that_were_rolled_back() {
    let rolls_back = |world: &World| {
        for value in [10, 11] {
            let mut txn = world.begin();
            txn.update(record(0), A, value);
            txn.delete(record(0));
        }
    };
    let persists = |world: &World| {
        for value in [20, 21] {
            let mut txn = world.begin();
            if txn.update(record(0), A, value) {
                txn.commit();
            }
        }
    };
    explore(move || together(World::new(), vec![rolls_back, persists, reader]));
}

#[test]
fn an_insert_appears_whole_or_not_at_all() {
    let inserts = |world: &World| {
        let mut txn = world.begin();
        let rid = txn.insert([1, 2]);
        txn.update(rid, A, 3);
        txn.commit();
    };
    let gives_up = |world: &World| {
        let mut txn = world.begin();
        txn.insert([4, 5]);
    };
    explore(move || together(World::new(), vec![inserts, gives_up, reader]));
}

/// A statement that fails takes back what it wrote; its transaction commits without that, while a merge stamps.
#[test]
fn what_was_taken_back_does_not_commit_with_its_transaction() {
    let takes_back = |world: &World| {
        let mut txn = world.begin();
        txn.update(record(0), A, 10);
        txn.update(record(0), B, 11);
        txn.take_back();
        txn.insert([1, 2]);
        txn.take_back();
        txn.commit();
    };
    let merges = |world: &World| {
        world.merge_only();
        world.merge_only();
    };
    explore(move || together(World::new(), vec![takes_back, merges, reader]));
}

#[test]
fn a_snapshot_stays_as_it_is() {
    let deletes = |world: &World| {
        let mut txn = world.begin();
        txn.update(record(0), A, 10);
        txn.commit();
        let mut txn = world.begin();
        txn.delete(record(0));
        txn.commit();
    };
    let looks_twice = |world: &World| {
        let txn = world.begin();
        txn.look_around();
        txn.look_around();
    };
    explore(move || together(World::new(), vec![deletes, looks_twice, looks_twice]));
}

#[test]
fn nobody_changes_what_is_locked() {
    let locks = |world: &World| {
        let mut txn = world.begin();
        if txn.lock(record(0)) && txn.update(record(1), A, 10) {
            txn.commit_holding(record(0));
        }
    };
    let locks_and_updates = |world: &World| {
        let mut txn = world.begin();
        if txn.lock(record(0)) && txn.update(record(0), B, 20) {
            txn.take_back();
            txn.commit_holding(record(0));
        }
    };
    let updates = |world: &World| {
        writer_of_a(world);
        world.merge_only();
    };
    explore(move || together(World::new(), vec![locks, locks_and_updates, updates]));
}

#[test]
fn what_was_prepared_and_aborted_never_was() {
    let fails = |world: &World| {
        let mut txn = world.begin();
        txn.update(record(0), A, 10);
        txn.insert([1, 2]);
        txn.fail();
        writer_of_b(world);
    };
    let merges = |world: &World| {
        world.merge_only();
        writer_of_a(world);
        world.merge_only();
    };
    explore(move || together(World::new(), vec![fails, merges, reader]));
}

#[test]
fn a_validation_finds_what_others_committed_since_its_snapshot() {
    let changes = |world: &World| {
        writer_of_a(world);
        let mut txn = world.begin();
        txn.insert([1, 2]);
        txn.update(record(1), B, 30);
        txn.commit();
    };
    let archives = |world: &World| {
        world.merge();
        writer_of_b(world);
        world.merge();
        world.archive();
    };
    let validates = |world: &World| {
        let mut txn = world.begin();
        txn.validate();
        txn.update(record(1), A, 40);
        txn.validate();
        txn.validate();
    };
    explore(move || together(World::new(), vec![changes, archives, validates]));
}
