//! Ended snapshots give everything back: memory, mappings, files and processes. A file of its own, as it counts those of the process.
use std::fs;
use std::sync::{Mutex, MutexGuard, PoisonError};

use snapshot::{Mechanism, Options, SnapshotArray, Stop};

/// Held by a test that counts, as what another does meanwhile would be counted as well.
fn alone() -> MutexGuard<'static, ()> {
    static COUNTING: Mutex<()> = Mutex::new(());
    COUNTING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What this process has: mappings, files, resident memory in KiB, and children.
#[derive(Debug)]
struct Held {
    mappings: usize,
    files: usize,
    resident_kib: usize,
    children: usize,
}

impl Held {
    fn now() -> Held {
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        let children = fs::read_dir("/proc/self/task").unwrap().filter_map(|task| {
            let path = task.ok()?.path().join("children");
            Some(fs::read_to_string(path).ok()?.split_whitespace().count())
        });
        Held {
            mappings: fs::read_to_string("/proc/self/maps").unwrap().lines().count(),
            files: fs::read_dir("/proc/self/fd").unwrap().count(),
            resident_kib: line.split_whitespace().nth(1).unwrap().parse().unwrap(),
            children: children.sum(),
        }
    }
}

/// Takes `count` snapshots, up to three at a time, with updates meanwhile.
fn cycle(array: &SnapshotArray<u64>, count: usize) {
    let mut writer = array.writer();
    let mut taken = std::collections::VecDeque::new();
    for step in 0..count {
        let value = array.get(step % array.len()).unwrap();
        taken.push_back((array.snapshot().unwrap(), step % array.len(), value));
        for update in 0..4 {
            writer.add((step * 1_001 + update * 517) % array.len(), 1).unwrap();
        }
        writer.add(step % array.len(), 1).unwrap();
        if taken.len() == 3 {
            let which = if step % 2 == 0 { taken.pop_front() } else { taken.pop_back() };
            let (snapshot, index, value) = which.unwrap();
            assert_eq!(snapshot.get(index).unwrap(), value);
        }
    }
}

#[test]
fn ten_thousand_ended_snapshots_leave_nothing_behind() {
    let _alone = alone();
    for (mechanism, stop, count) in [
        (Mechanism::Physical, Stop::Announced, 10_000),
        (Mechanism::Physical, Stop::Protected, 10_000),
        (Mechanism::Fork, Stop::Announced, 1_000),
        (Mechanism::Rewire, Stop::Announced, 10_000),
        (Mechanism::Protect, Stop::Protected, 10_000),
    ] {
        let options = Options { stop, ..Options::of(mechanism) };
        let Ok(array) = SnapshotArray::<u64>::new(32 << 10, &options) else { continue };
        cycle(&array, 100);
        let before = Held::now();
        cycle(&array, count);
        let after = Held::now();
        assert!(after.mappings <= before.mappings + 4, "{mechanism}: {before:?}, then {after:?}");
        assert_eq!((after.files, after.children), (before.files, before.children), "{mechanism}");
        // A copy of the array is 256 KiB; the allocator and the stack may move a little.
        assert!(after.resident_kib <= before.resident_kib + 512, "{mechanism}: {before:?}, then {after:?}");
    }
}

#[test]
fn a_snapshot_that_needs_too_many_mappings_becomes_a_copy() {
    let _alone = alone();
    for mechanism in [Mechanism::Rewire, Mechanism::Protect] {
        let options = Options { mapping_limit: 64, ..Options::of(mechanism) };
        let Ok(array) = SnapshotArray::<u64>::new(256 << 10, &options) else { continue };
        let (mut writer, pages) = (array.writer(), 512);
        let snapshot = array.snapshot().unwrap();
        let before = fs::read_to_string("/proc/self/maps").unwrap().lines().count();
        for page in (0..pages).step_by(2) {
            writer.set(page * 512, 9).unwrap();
        }
        let during = fs::read_to_string("/proc/self/maps").unwrap().lines().count();
        assert!(during <= before + 64 + 8, "{mechanism}: {before} mappings, then {during}");
        assert_eq!(snapshot.own_bytes(), 512 * 4096, "{mechanism}");
        assert_eq!(
            (snapshot.sum(..).unwrap(), array.snapshot().unwrap().sum(..).unwrap()),
            (0, 9 * 256),
            "{mechanism}"
        );
    }
}
