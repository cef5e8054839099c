//! The thread that flushes for appenders: what no thread waits for is on disk after its interval, and a buffer that is half full at
//! once, so that appenders seldom write themselves.

mod support;

use std::time::{Duration, Instant};

use durability::{CommitMode, Log, LogOptions};
use support::{Ledger, commit, open_with};
use testkit::FaultyDevice;

const BUFFER_BYTES: usize = 64 << 10;
const HOUR: Duration = Duration::from_secs(3600);

fn opened(device: &FaultyDevice, interval: Duration) -> Log {
    let options = LogOptions { flush_interval: Some(interval), buffer_bytes: BUFFER_BYTES, ..LogOptions::default() };
    open_with(device, options).unwrap().0
}

/// Waits until that is so, which it must be some time.
fn wait_until(is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(60), "it is never so");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_buffer_that_is_half_full_is_written_long_before_the_interval_is_over() {
    let device = FaultyDevice::new(0);
    let log = opened(&device, HOUR);
    let flushes = log.stats().syncs;
    let part = vec![7; BUFFER_BYTES / 8];
    // Data of a transaction that runs: no commit is pending.
    (0..3).for_each(|_| log.append_data(0, 1, &part).unwrap());
    assert_eq!(log.stats().syncs, flushes, "there is room");
    log.append_data(0, 1, &part).unwrap();
    wait_until(|| log.stats().syncs == flushes + 1);
    // Commits after it: the first waits for its interval, those that fill the half go with it.
    let first = log.append_commit(0, 1, &part, CommitMode::Async, || 1).unwrap().lsn;
    assert!(!log.is_stable(first));
    for lsn in 2..6 {
        assert_eq!(log.append_commit(0, lsn, &part, CommitMode::Async, || lsn).unwrap().lsn, lsn);
    }
    wait_until(|| log.is_stable(4));
}

#[test]
fn an_interval_is_kept_while_other_buffers_are_half_full() {
    let device = FaultyDevice::new(0);
    let options = LogOptions {
        partitions: 2,
        flush_interval: Some(Duration::from_millis(20)),
        buffer_bytes: BUFFER_BYTES,
        ..LogOptions::default()
    };
    let log = open_with(&device, options).unwrap().0;
    let ledger = Ledger::default();
    let lsn = commit(&log, &ledger, (1, 1), 1, CommitMode::Async).unwrap().lsn;
    let part = vec![7; BUFFER_BYTES / 4];
    wait_until(|| {
        (0..2).for_each(|_| log.append_data(0, 2, &part).unwrap());
        log.is_stable(lsn)
    });
}
