//! Pages that go and come back while others read, write, merge and take checkpoints that move their blobs.
use crate::tests::shuttle_models::*;

impl World {
    /// Takes a checkpoint of the range, which may move all of its blobs, and publishes it.
    fn store(&self, moves: bool) {
        let mut blobs = self.blobs.lock().unwrap().take().expect("one checkpoint at a time");
        blobs.begin();
        blobs.moves = moves;
        let Ok(image) = self.table.image_range(0, self, || self.now(), &mut blobs);
        self.shelf.fill(&blobs);
        image.published();
        *self.blobs.lock().unwrap() = Some(blobs);
    }

    fn evict(&self) {
        self.budget.evict(u64::MAX);
    }
}

/// A record with versions in base pages, in history and in the tail; all pages have blobs, and are away.
pub(super) fn stored(layout: Layout) -> World {
    let world = World::with_layout(layout);
    for (column, value) in [(A, 10), (B, 20), (A, 11)] {
        let mut txn = world.begin();
        assert!(txn.update(record(0), column, value));
        txn.commit();
        world.merge_only();
    }
    world.table.archive_range(0, Timestamp::ZERO, true);
    let mut txn = world.begin();
    assert!(txn.update(record(1), A, 12));
    txn.commit();
    world.store(false);
    world.evict();
    assert!(world.table.memory().evicted_bytes > 0);
    world
}

/// That record in a range that was restored, none of whose pages was ever read.
pub(super) fn restored(layout: Layout) -> World {
    let mut world = stored(layout);
    let mut blobs = world.blobs.lock().unwrap().take().expect("no checkpoint is taken");
    let Ok(image) = world.table.image_range(0, &world, || world.now(), &mut blobs);
    let restored = Table::new(world.table.schema().clone(), *world.table.options(), world.budget.clone());
    restored.restore_range(0, image.blob, &blobs, (PageReading::WhenUsed, "t")).unwrap();
    image.published();
    restored.finish_recovery();
    assert!(restored.memory().evicted_bytes > 0, "pages are away from the start");
    *world.blobs.lock().unwrap() = Some(blobs);
    world.table = restored;
    world
}

pub(super) fn evicts(world: &World) {
    (0..3).for_each(|_| world.evict());
}

fn reads(world: &World) {
    (0..2).for_each(|_| world.begin().look_around());
}

fn reads_the_past(world: &World) {
    for at in [1, 3] {
        world.begin_at(Timestamp(at)).expect("all is kept").look_around();
    }
}

pub(super) fn moves(world: &World) {
    world.store(true);
    world.evict();
}

fn writes(world: &World) {
    for (slot, column, value) in [(1, B, 30), (0, B, 40)] {
        let mut txn = world.begin();
        if txn.update(record(slot), column, value) {
            txn.commit();
        }
    }
    world.merge_only();
}

#[test]
fn two_readers_find_the_page_that_a_third_thread_evicts() {
    explore(|| together(stored(Layout::Column), vec![reads, reads_the_past, evicts]));
}

#[test]
fn rows_are_evicted_under_readers_and_writers() {
    explore(|| together(stored(Layout::Row), vec![reads, writes, evicts]));
}

#[test]
fn blobs_may_move_while_their_pages_are_away_or_on_their_way() {
    explore(|| together(stored(Layout::Column), vec![reads, evicts, moves]));
}

#[test]
fn pages_that_were_never_read_are_read_once_and_evicted_under_readers_and_moves() {
    explore(|| together(restored(Layout::Column), vec![reads, evicts, moves]));
    explore(|| together(restored(Layout::Row), vec![reads_the_past, writes, evicts]));
}

#[test]
fn merges_replace_pages_that_are_evicted_meanwhile() {
    explore(|| together(stored(Layout::Column), vec![writes, evicts, reads]));
}
