//! A small array through all that physical snapshots do: sizes that an interpreter gets through (`cargo xtask miri`). It has no
//! files in memory, no children and no write protection, which the other mechanisms stand on.
use std::thread;

use snapshot::{Item, Options, SnapshotArray};

/// Copies by ordinary stores: those that bypass the caches are instructions that an interpreter does not know.
fn options() -> Options {
    Options { copy_threads: 1, bypass_from_bytes: usize::MAX, ..Options::default() }
}

fn updates_of<T: Item>(values: [T; 3]) {
    let array = SnapshotArray::<T>::new(200, &options()).unwrap();
    let mut writer = array.writer();
    writer.set(0, values[0]).unwrap();
    writer.add(199, values[1]).unwrap();
    let before = array.snapshot().unwrap();
    assert_eq!(writer.update(199, |old| old.plus(values[2])).unwrap(), values[1]);
    assert_eq!((before.get(0).unwrap(), before.get(199).unwrap()), (values[0], values[1]));
    assert_eq!(array.get(199).unwrap(), values[1].plus(values[2]));
    let (mut some, all) = ([T::default(); 2], before.to_vec(..).unwrap());
    before.read(198, &mut some).unwrap();
    assert_eq!(some, all[198..]);
    assert_eq!(before.sum(..).unwrap(), T::total(&all));
    let smallest = all.iter().fold(T::default(), |best, item| if *item < best { *item } else { best });
    let largest = all.iter().fold(T::default(), |best, item| if *item > best { *item } else { best });
    assert_eq!((before.min(..).unwrap(), before.max(..).unwrap()), (Some(smallest), Some(largest)));
    drop(writer);
    drop(array);
    assert_eq!(before.as_slice().unwrap(), all, "a snapshot outlives its array");
}

#[test]
fn items_of_every_width_are_updated_and_read() {
    updates_of::<i8>([-7, 3, i8::MAX]);
    updates_of::<u16>([7, 3, u16::MAX]);
    updates_of::<f32>([-7.5, 3.25, 9.0]);
    updates_of::<u64>([7, 3, 9]);
    updates_of::<f64>([-7.5, 3.25, 9.0]);
}

#[test]
fn snapshots_beside_two_writers_have_batches_as_a_whole() {
    let array = SnapshotArray::<i64>::new(600, &options()).unwrap();
    thread::scope(|threads| {
        for seed in 0..2 {
            let array = &array;
            threads.spawn(move || {
                let mut writer = array.writer();
                for step in 0..10 {
                    writer.batch(|batch| {
                        batch.add(seed * 300 + step, -5).unwrap();
                        batch.add(599 - step, 5).unwrap();
                    });
                }
            });
        }
        let snapshots: Vec<_> = (0..4).map(|_| array.snapshot().unwrap()).collect();
        assert!(snapshots.iter().all(|snapshot| snapshot.sum(..).unwrap() == 0));
    });
    let end = array.snapshot().unwrap();
    assert_eq!((end.get(0).unwrap(), end.get(309).unwrap(), end.get(599).unwrap()), (-5, -5, 10));
}
