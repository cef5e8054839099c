//! Limits of the process: a file of its own, as they hold for all threads of the program.
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use snapshot::{Mechanism, Options, SnapshotArray, SnapshotError};

/// Runs `body` with a soft limit of `current`.
fn with_limit<R>(resource: Resource, current: u64, body: impl FnOnce() -> R) -> R {
    let before = getrlimit(resource);
    setrlimit(resource, Rlimit { current: Some(current), maximum: before.maximum }).unwrap();
    let result = body();
    setrlimit(resource, before).unwrap();
    result
}

fn used_address_space() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split_whitespace().next().unwrap().parse::<u64>().unwrap() * rustix::param::page_size() as u64
}

/// Snapshots that the limit does not allow fail in words; the array goes on, and snapshots are possible again afterwards.
#[test]
fn a_limit_refuses_a_snapshot_and_the_array_goes_on() {
    const LEN: usize = 4 << 20;
    for mechanism in [Mechanism::Physical, Mechanism::Rewire, Mechanism::Protect] {
        let Ok(array) = SnapshotArray::<u64>::new(LEN, &Options::of(mechanism)) else { continue };
        let mut writer = array.writer();
        writer.set(7, 7).unwrap();
        let refused = with_limit(Resource::As, used_address_space() + (8 << 20), || array.snapshot().map(drop));
        let Err(error @ SnapshotError::Refused { .. }) = refused else { panic!("{refused:?}") };
        let text = error.to_string();
        assert!(text.contains(mechanism.name()) && text.contains("ulimit -v"), "{text}");
        writer.set(8, 8).unwrap();
        let snapshot = array.snapshot().unwrap();
        writer.set(7, 0).unwrap();
        assert_eq!((snapshot.get(7).unwrap(), snapshot.get(8).unwrap()), (7, 8));
    }
    for mechanism in [Mechanism::Fork, Mechanism::Rewire] {
        let array = SnapshotArray::<u64>::new(10, &Options::of(mechanism)).unwrap();
        let refused = with_limit(Resource::Nofile, 3, || array.snapshot().map(drop));
        let text = refused.unwrap_err().to_string();
        assert!(text.contains("ulimit -n"), "{text}");
        array.snapshot().unwrap();
    }
}
