//! Images while transactions, merges and archiving go on: what is restored from one is the range at the image's time, and
//! at every earlier time that is kept (L-Store, section 5).
use crate::image::tests::Blobs;
use crate::tests::shuttle_models::*;

impl World {
    /// Takes an image, and notes what a table that is restored from it says of all that is kept.
    fn image(&self, blobs: &mut Blobs) {
        let Ok(image) = self.table.image_range(0, self, || self.now(), blobs);
        let (at, blob) = (image.at, image.blob);
        image.published();
        let restored = Table::new(self.table.schema().clone(), *self.table.options(), Arc::default());
        restored.restore_range(0, blob, blobs, (PageReading::AtOnce, "t")).unwrap();
        for at in restored.horizon().0..=at.0 {
            let (view, at) = (View { snapshot: Snapshot::at(Timestamp(at)), outcomes: self }, Timestamp(at));
            for rid in [record(0), record(1)] {
                let row = restored.read(view, rid, &[A, B], |cells| {
                    [0, 1]
                        .map(|i: usize| if let Cell::Word(word) = cells[i] { word } else { panic!("no value is null") })
                });
                self.seen.lock().unwrap().push(Seen::Row { at, rid, row: row.unwrap() });
            }
        }
    }
}

fn commit_update(world: &World, column: usize, value: u64) {
    let mut txn = world.begin();
    if txn.update(record(0), column, value) {
        txn.commit();
    }
}

fn images(world: &World) {
    let mut blobs = Blobs::default();
    world.image(&mut blobs);
    world.image(&mut blobs);
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
fn what_becomes_history_meanwhile_is_in_the_image_once() {
    let archives = |world: &World| {
        world.merge_only();
        world.table.archive_range(0, Timestamp::ZERO, true);
        commit_update(world, B, 21);
        world.merge_only();
        world.table.archive_range(0, Timestamp::ZERO, true);
    };
    explore(move || together(with_versions(), vec![archives, images]));
}

/// The history of the record was given up: a merge that puts a new value over the old one keeps that as an origin, which
/// must be in the image that has the new page.
#[test]
fn the_origin_of_a_record_is_in_the_image_with_the_page_that_replaced_it() {
    let world = || {
        let world = with_versions();
        world.merge();
        world.archive();
        assert_eq!(world.table.horizon(), world.now());
        commit_update(&world, A, 12);
        world
    };
    // It was told what is kept before the update.
    let merges = |world: &World| {
        let before = Timestamp(world.now().0 - 1);
        world.table.merge_range(0, world, before);
    };
    explore(move || together(world(), vec![merges, |world| world.image(&mut Blobs::default())]));
}

#[test]
fn an_image_waits_for_who_is_prepared_and_leaves_out_who_is_not() {
    let writes = |world: &World| {
        commit_update(world, B, 30);
        let mut fails = world.begin();
        fails.update(record(1), A, 40);
        fails.fail();
        commit_update(world, A, 31);
    };
    let merges = |world: &World| {
        world.merge_only();
        world.merge_only();
    };
    explore(move || together(World::new(), vec![writes, merges, images]));
}

#[test]
fn columns_merged_apart_are_one_moment() {
    let merges = |world: &World| {
        for column in [A, B, A] {
            world.table.merge_columns(0, &[column], world, Timestamp::ZERO);
        }
    };
    let updates = |world: &World| {
        commit_update(world, B, 22);
        commit_update(world, A, 12);
    };
    explore(move || together(with_versions(), vec![merges, updates, images]));
}
