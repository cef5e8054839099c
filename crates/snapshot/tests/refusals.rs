//! What cannot be done is refused in words, and leaves nothing behind.
use snapshot::{Mechanism, Options, SnapshotArray, SnapshotError, Stop};

fn mechanisms() -> Vec<Mechanism> {
    let runs = |mechanism: &Mechanism| {
        SnapshotArray::<u8>::new(1, &Options::of(*mechanism)).and_then(|array| array.snapshot().map(drop)).is_ok()
    };
    Mechanism::ALL.into_iter().filter(runs).collect()
}

#[test]
fn an_array_that_no_address_space_holds_is_refused_with_a_remedy() {
    for mechanism in mechanisms() {
        let text = SnapshotArray::<u64>::new(1 << 55, &Options::of(mechanism)).unwrap_err().to_string();
        assert!(text.starts_with(mechanism.name()) && text.contains("refused"), "{text}");
        assert!(
            text.contains("ulimit -v") || text.contains("another mechanism") || text.contains("overcommit"),
            "{text}"
        );
        assert!(SnapshotArray::<u64>::new(usize::MAX, &Options::of(mechanism)).is_err());
        assert!(SnapshotArray::<u8>::new(usize::MAX, &Options::of(mechanism)).is_err());
    }
}

#[test]
fn a_granule_that_is_no_page_is_refused_with_the_range_of_those_that_are() {
    for granule_bytes in [1, 4097, 4 << 20] {
        let options = Options { granule_bytes, ..Options::of(Mechanism::Rewire) };
        let text = SnapshotArray::<u64>::new(1, &options).unwrap_err().to_string();
        assert!(text.contains(&granule_bytes.to_string()) && text.contains("2097152"), "{text}");
    }
}

#[test]
fn a_mechanism_that_cannot_stop_unannounced_updates_says_which_can() {
    for mechanism in [Mechanism::Fork, Mechanism::Rewire] {
        let options = Options { stop: Stop::Protected, ..Options::of(mechanism) };
        let text = SnapshotArray::<u64>::new(1, &options).unwrap_err().to_string();
        assert!(text.contains(mechanism.name()) && text.contains("physical and protect"), "{text}");
    }
}

#[test]
fn what_runs_at_the_instant_may_panic_and_updates_go_on() {
    for stop in [Stop::Announced, Stop::Protected] {
        let options = Options { stop, ..Options::default() };
        let Ok(array) = SnapshotArray::<i32>::new(10, &options) else { continue };
        let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            drop(array.snapshot_with(|| panic!("the caller's own")));
        }));
        assert!(panic.is_err());
        array.writer().set(1, 1).unwrap();
        assert_eq!(array.snapshot_with(|| array.get(1).unwrap()).unwrap().1, 1);
    }
}

#[test]
fn an_index_beyond_the_end_is_an_error_of_every_call() {
    for mechanism in mechanisms() {
        let array = SnapshotArray::<i32>::new(10, &Options::of(mechanism)).unwrap();
        let mut writer = array.writer();
        let snapshot = array.snapshot().unwrap();
        let errors = [
            array.get(10).unwrap_err(),
            writer.set(10, 1).unwrap_err(),
            writer.add(usize::MAX, 1).unwrap_err(),
            writer.update(10, |old| old).unwrap_err(),
            writer.batch(|batch| batch.set(11, 1)).unwrap_err(),
            snapshot.get(10).unwrap_err(),
            snapshot.sum(..11).unwrap_err(),
            snapshot.to_vec(5..=10).unwrap_err(),
            snapshot.min(usize::MAX..).unwrap_err(),
            snapshot.for_each(..=usize::MAX, |_, _| ()).unwrap_err(),
            snapshot.read(9, &mut [0; 2]).unwrap_err(),
        ];
        assert!(errors.iter().all(|error| matches!(error, SnapshotError::OutOfRange { len: 10, .. })), "{errors:?}");
        assert_eq!((snapshot.sum(10..).unwrap(), snapshot.min(10..).unwrap()), (0, None));
        assert!(snapshot.to_vec(10..10).unwrap().is_empty());
    }
}

#[test]
fn a_snapshot_from_within_a_batch_is_an_error_and_no_hang() {
    for mechanism in mechanisms() {
        let array = SnapshotArray::<i32>::new(10, &Options::of(mechanism)).unwrap();
        let mut writer = array.writer();
        let inside = writer.batch(|_| array.snapshot().map(drop)).unwrap_err();
        assert!(matches!(inside, SnapshotError::InsideBatch), "{inside}");
        let mut seen = None;
        writer
            .update(3, |old| {
                seen = array.snapshot().err();
                old + 1
            })
            .unwrap();
        assert!(matches!(seen, Some(SnapshotError::InsideBatch)));
        assert_eq!(array.snapshot().unwrap().get(3).unwrap(), 1);
    }
}

#[test]
fn a_batch_that_panics_does_not_hold_up_snapshots() {
    let array = SnapshotArray::<i32>::new(10, &Options::default()).unwrap();
    let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        array.writer().batch(|batch| {
            batch.set(1, 1).unwrap();
            panic!("the caller's own");
        });
    }));
    assert!(panic.is_err());
    assert_eq!(array.snapshot().unwrap().get(1).unwrap(), 1);
}

#[test]
fn an_empty_array_has_empty_snapshots() {
    for mechanism in mechanisms() {
        let array = SnapshotArray::<f32>::new(0, &Options::of(mechanism)).unwrap();
        let snapshot = array.snapshot().unwrap();
        assert_eq!((snapshot.len(), snapshot.sum(..).unwrap(), snapshot.max(..).unwrap()), (0, 0.0, None));
        assert!(array.is_empty() && snapshot.to_vec(..).unwrap().is_empty());
    }
}
