//! Limits of the process: one test in a file of its own, as they hold for all threads, those that the test harness starts for further
//! tests included.
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

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

#[test]
fn limits_refuse_snapshots_and_updates_in_words_and_nothing_is_lost() {
    // SAFETY: no handler is set; a write beyond a limit is an error then, as it is without this signal.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    a_limit_refuses_a_snapshot_and_the_array_goes_on();
    an_update_whose_page_cannot_be_kept_fails_and_writes_nothing();
    a_protected_page_that_cannot_be_kept_holds_its_writer_up_until_it_can();
    arrays_together_leave_half_of_the_mappings_to_the_process();
}

/// The mappings that this process has, and may have.
fn mappings() -> (usize, usize) {
    let limit = std::fs::read_to_string("/proc/sys/vm/max_map_count").unwrap().trim().parse().unwrap();
    (std::fs::read_to_string("/proc/self/maps").unwrap().lines().count(), limit)
}

/// Items of a page.
const PAGE_ITEMS: usize = 512;

/// Writes every other page from the first on; gives how many.
fn write_every_other(array: &SnapshotArray<u64>) -> usize {
    let mut writer = array.writer();
    (0..array.len()).step_by(2 * PAGE_ITEMS).map(|at| writer.set(at, 1).unwrap()).count()
}

fn arrays_together_leave_half_of_the_mappings_to_the_process() {
    let (before, limit) = mappings();
    if limit > 1 << 17 {
        return;
    }
    let len = limit / 4 * PAGE_ITEMS;
    let options = Options { mapping_limit: usize::MAX, ..Options::of(Mechanism::Rewire) };
    let arrays: Vec<SnapshotArray<u64>> = (0..3).map(|_| SnapshotArray::new(len, &options).unwrap()).collect();
    let snapshots: Vec<_> = arrays.iter().map(|array| array.snapshot().unwrap()).collect();
    let written: Vec<usize> = arrays.iter().map(write_every_other).collect();
    let (now, _) = mappings();
    assert!(2 * written.iter().sum::<usize>() > limit / 2, "{written:?} pages come to the limit");
    assert!(now - before < limit / 2 + 100, "{now} mappings of {limit}, {before} before");
    assert!(snapshots.iter().all(|snapshot| snapshot.sum(..).unwrap() == 0), "snapshots are as the arrays were");
    assert!(
        arrays
            .iter()
            .zip(written)
            .all(|(array, written)| array.snapshot().unwrap().sum(..).unwrap() == written as i128)
    );
}

/// Snapshots that the limit does not allow fail in words; the array goes on, and snapshots are possible again afterwards.
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

/// A limit on the size of files, by which only the first page of a snapshot's copies can be written.
const FIRST_PAGE_ONLY: u64 = 4_096;

fn an_update_whose_page_cannot_be_kept_fails_and_writes_nothing() {
    let array = SnapshotArray::<u64>::new(4_096, &Options::of(Mechanism::Rewire)).unwrap();
    let mut writer = array.writer();
    writer.set(600, 6).unwrap();
    let snapshot = array.snapshot().unwrap();
    let failed = with_limit(Resource::Fsize, FIRST_PAGE_ONLY, || writer.set(600, 7));
    let Err(error @ SnapshotError::NotKept { index: 600, .. }) = failed else { panic!("{failed:?}") };
    assert!(error.to_string().contains("end snapshots, or free memory"), "{error}");
    assert_eq!((array.get(600).unwrap(), snapshot.get(600).unwrap()), (6, 6));
    writer.set(600, 8).unwrap();
    assert_eq!((array.get(600).unwrap(), snapshot.get(600).unwrap()), (8, 6));
}

fn a_protected_page_that_cannot_be_kept_holds_its_writer_up_until_it_can() {
    let Ok(array) = SnapshotArray::<u64>::new(4_096, &Options::of(Mechanism::Protect)) else { return };
    array.writer().set(600, 6).unwrap();
    let snapshot = array.snapshot().unwrap();
    let [is_ready, may_write, has_written] = [const { AtomicBool::new(false) }; 3];
    thread::scope(|threads| {
        threads.spawn(|| {
            let mut writer = array.writer();
            is_ready.store(true, Ordering::Release);
            while !may_write.load(Ordering::Acquire) {
                thread::yield_now();
            }
            writer.set(600, 7).unwrap();
            has_written.store(true, Ordering::Release);
        });
        while !is_ready.load(Ordering::Acquire) {
            thread::yield_now();
        }
        with_limit(Resource::Fsize, FIRST_PAGE_ONLY, || {
            may_write.store(true, Ordering::Release);
            thread::sleep(Duration::from_millis(50));
            assert!(!has_written.load(Ordering::Acquire), "the page is not kept");
            assert_eq!(array.get(600).unwrap(), 6);
        });
    });
    assert_eq!((array.get(600).unwrap(), snapshot.get(600).unwrap()), (7, 6));
}
