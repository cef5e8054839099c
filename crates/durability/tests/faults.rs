//! Failing devices: what the caller is told, and that nothing is acknowledged afterwards.

mod support;

use std::sync::Arc;
use std::time::{Duration, Instant};

use durability::{CommitMode, Device, Log, LogError, LogOptions, MAX_PAYLOAD_BYTES};
use support::{Ledger, SMALL, commit, commit_and_wait, commit_many, open, open_with};
use testkit::{Failure, FaultyDevice};

/// The steps that 40 commits take.
fn rehearse() -> u64 {
    let device = FaultyDevice::new(0);
    let (log, _, _) = open(&device).unwrap();
    assert_eq!(device.steps(), 0, "a log without frames has no files");
    commit_many(&log, &Ledger::default(), 1, 40).unwrap();
    device.steps()
}

#[test]
fn a_failed_step_poisons_the_log() {
    let steps = rehearse();
    for step in 1..=steps {
        for seed in 0..4 {
            let (device, ledger) = (FaultyDevice::new(step << 8 | seed), Ledger::default());
            device.fail_at(step, Failure::Io);
            let (log, _, _) = open(&device).unwrap();
            let error = commit_many(&log, &ledger, 1, 40).unwrap_err();
            assert!(matches!(error, LogError::Io { .. }), "{error}");
            // The device works again; the log does not, in any partition.
            let stable = log.stable_lsn();
            for partition in 0..log.partitions() {
                assert!(matches!(log.append_data(partition, 99, b"late"), Err(LogError::Poisoned { .. })));
                assert!(matches!(log.reserve(partition, 4), Err(LogError::Poisoned { .. })));
            }
            assert!(matches!(log.trim(stable), Err(LogError::Poisoned { .. })));
            log.wait_stable(stable).unwrap();
            log.wait_stable(stable + 1).unwrap_err();
            assert!(!log.is_stable(stable + 1));
            let steps = device.steps();
            drop(log);
            assert_eq!(device.steps(), steps, "a poisoned log touches the disk no more");
            let (log, recovered, found) = open(&device.after_power_loss(seed)).unwrap();
            found.check(&ledger, 0);
            commit_many(&log, &Ledger::after(recovered.last_lsn), 100, 3).unwrap();
        }
    }
    println!("{steps} points of failure, 4 failures at each");
}

/// A single ENOSPC, wherever it comes, fails what was asked for and nothing else.
#[test]
fn a_disk_that_was_full_once_is_no_failure() {
    let steps = rehearse();
    for step in 1..=steps {
        let (device, ledger) = (FaultyDevice::new(step), Ledger::default());
        device.fail_at(step, Failure::DiskFull);
        let (log, _, _) = open(&device).unwrap();
        let error = commit_many(&log, &ledger, 1, 40).unwrap_err();
        assert!(matches!(error, LogError::DiskFull { .. }), "{error}");
        assert!(error.to_string().contains("free some space"), "{error}");
        commit_many(&log, &ledger, 100, 20).unwrap();
        assert_eq!(log.stable_lsn(), ledger.last(), "also the commit whose wait had failed");
        let image = device.after_power_loss(step);
        drop(log);
        open(&image).unwrap().2.check(&ledger, 0);
    }
}

#[test]
fn the_log_goes_on_when_there_is_space_again() {
    let (device, ledger) = (FaultyDevice::new(0), Ledger::default());
    let (log, _, _) = open(&device).unwrap();
    commit_many(&log, &ledger, 1, 3).unwrap();
    device.set_capacity(Some(device.used_bytes() + 6_000));
    let mut txn = 10;
    let error = loop {
        txn += 1;
        match commit_many(&log, &ledger, txn, 1) {
            Ok(()) => assert!(txn < 1_000),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, LogError::DiskFull { .. }), "{error}");
    let (last, used) = (ledger.last(), device.used_bytes());
    let mut files = Vec::new();
    for more in 0..100 {
        let partition = more as usize % 3;
        assert!(matches!(log.append_data(partition, 5_000 + more, &[7; 9_000]), Err(LogError::DiskFull { .. })));
        log.append_abort(partition, 5_000 + more);
        files.push(device.list().unwrap().len());
    }
    assert_eq!(ledger.last(), last, "no number is taken without room");
    assert_eq!(files[3], files[99], "what was begun is gone on with, not begun again: {used} bytes");
    assert!(log.is_stable(last), "everything that has a number is on disk");
    // Nothing was given up, but what a checkpoint allows.
    device.set_capacity(None);
    commit_many(&log, &ledger, 2_000, 20).unwrap();
    log.close().unwrap();
    let (_, recovered, found) = open(&device).unwrap();
    found.check(&ledger, 0);
    assert!(recovered.was_closed && recovered.dropped_commits == 0);
}

/// A full disk gets space by trimming too: segments are recycled in place.
#[test]
fn trimming_makes_space_on_a_full_disk() {
    let (device, ledger) = (FaultyDevice::new(0), Ledger::default());
    let options = LogOptions { spare_segments: 100, ..SMALL };
    let (log, _, _) = open_with(&device, options).unwrap();
    commit_many(&log, &ledger, 1, 200).unwrap();
    log.trim(2).unwrap();
    device.set_capacity(Some(device.used_bytes()));
    let mut txn = 1_000;
    while commit_and_wait(&log, &ledger, (0, txn), 1, CommitMode::Sync).is_ok() {
        txn += 1;
    }
    assert!(log.trim(ledger.last()).unwrap() > 3);
    // Some of the files are a step shorter than others.
    device.set_capacity(Some(device.used_bytes() + 10 * SMALL.growth_bytes));
    for i in 0..100 {
        commit_and_wait(&log, &ledger, (0, 2_000 + i), 1, CommitMode::Sync).unwrap();
    }
    let image = device.after_power_loss(1);
    drop(log);
    let (_, recovered, found) = open_with(&image, options).unwrap();
    found.check(&ledger, recovered.trimmed_below);
}

#[test]
fn a_failed_opening_leaves_no_trace() {
    let (device, ledger) = (FaultyDevice::new(0), Ledger::default());
    let (log, _, _) = open(&device).unwrap();
    commit_many(&log, &ledger, 1, 20).unwrap();
    log.trim(5).unwrap();
    let image = || device.after_power_loss(3);
    let probe = image();
    open(&probe).unwrap();
    let opening = probe.steps();
    assert!(opening > 4);
    for step in 1..=opening {
        let device = image();
        device.fail_at(step, Failure::DiskFull);
        let error = open(&device).map(drop);
        assert!(step > 4 || matches!(error, Err(LogError::DiskFull { .. })));
        let (log, recovered, found) = open(&device).unwrap();
        found.check(&ledger, 5);
        commit_many(&log, &Ledger::after(recovered.last_lsn), 100, 3).unwrap();
    }
}

/// Followers of a failed leader are told so too; none of them hangs. A failure in one partition stops all.
#[test]
fn followers_learn_of_the_failure() {
    for seed in 0..100 {
        let (device, ledger) = (FaultyDevice::new(seed), Ledger::default());
        device.yield_in_syncs(8);
        device.fail_at(8 + seed % 40, Failure::Io);
        let (log, _, _) = open(&device).unwrap();
        std::thread::scope(|scope| {
            for worker in 0..6 {
                let (log, ledger) = (&log, &ledger);
                scope.spawn(move || {
                    let mode = [CommitMode::Sync, CommitMode::Partition][worker % 2];
                    let mut txn = worker as u64 * 1000;
                    while commit_and_wait(log, ledger, (worker % 3, txn), 1, mode).is_ok() {
                        txn += 1;
                    }
                });
            }
        });
        assert!(matches!(log.reserve(0, 0), Err(LogError::Poisoned { .. })));
        drop(log);
        open(&device.after_power_loss(seed)).unwrap().2.check(&ledger, 0);
    }
}

#[test]
fn a_directory_is_opened_once() {
    let device = FaultyDevice::new(0);
    let (log, _, _) = open(&device).unwrap();
    let error = open(&device).unwrap_err();
    assert!(matches!(error, LogError::Locked { .. }));
    assert!(error.to_string().contains("memory is in use"), "{error}");
    drop(log);
    open(&device).unwrap();
}

#[test]
fn a_read_only_directory_is_read() {
    let (device, ledger) = (FaultyDevice::new(0), Ledger::default());
    let (log, _, _) = open(&device).unwrap();
    commit_many(&log, &ledger, 1, 30).unwrap();
    let image = device.after_power_loss(7);
    image.make_read_only();
    let (log, recovered, found) = open(&image).unwrap();
    found.check(&ledger, 0);
    assert!(log.is_read_only() && log.partitions() == 0 && recovered.last_lsn == 30);
    assert!(log.is_stable(30));
    log.wait_stable(30).unwrap();
    log.flush().unwrap();
    for refused in [log.append_data(0, 1, b"x").err(), log.reserve(0, 1).err(), log.trim(3).err()] {
        let error = refused.unwrap();
        assert!(matches!(error, LogError::ReadOnly { .. }));
        assert!(error.to_string().contains("read-only"), "{error}");
    }
    // Readers do not exclude each other.
    let second = open(&image).unwrap();
    assert_eq!(image.steps(), 0, "nothing was written");
    drop((log, second));
}

#[test]
fn an_unreadable_file_is_an_error_and_no_end() {
    let (device, ledger) = (FaultyDevice::new(0), Ledger::default());
    let (log, _, _) = open(&device).unwrap();
    commit_many(&log, &ledger, 1, 10).unwrap();
    log.close().unwrap();
    device.make_unreadable(Some("redo-00000002.log"));
    let error = open(&device).unwrap_err();
    assert!(matches!(error, LogError::Io { .. }) && error.to_string().contains("redo-00000002.log"), "{error}");
    device.make_unreadable(None);
    open(&device).unwrap().2.check(&ledger, 0);
}

#[test]
fn misuse_is_refused() {
    let (log, _, _) = open(&FaultyDevice::new(0)).unwrap();
    log.wait_stable(0).unwrap();
    assert!(matches!(log.wait_stable(1), Err(LogError::NotAppended { lsn: 1, last: 0 })));
    let huge = vec![0; MAX_PAYLOAD_BYTES + 1];
    assert!(matches!(log.append_data(0, 1, &huge), Err(LogError::FrameTooLarge { .. })));
    commit_many(&log, &Ledger::default(), 1, 3).unwrap();
    let stable = || drop(log.append_commit(0, 9, b"", CommitMode::Sync, || 3));
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(stable)).is_err(), "LSN 3 is on disk");
    let absurd = || drop(log.append_commit(0, 9, b"", CommitMode::Sync, || u64::MAX));
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(absurd)).is_err());
    commit_many(&log, &Ledger::after(3), 20, 3).unwrap();
}

/// A number that was taken and not appended yet holds back what comes after it, and nothing else.
#[test]
fn a_late_number_is_waited_for() {
    let (device, ledger) = (FaultyDevice::new(0), Ledger::default());
    let (log, _, _) = open(&device).unwrap();
    let late = log.reserve(1, 0).unwrap();
    let lsn = ledger.take(1, None);
    let partition = commit_and_wait(&log, &ledger, (0, 2), 1, CommitMode::Partition).unwrap();
    assert!(!log.is_stable(partition));
    let waiter = commit(&log, &ledger, (2, 3), 1, CommitMode::Sync).unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| log.wait(&waiter));
        while log.stats().syncs < 2 {
            std::thread::yield_now();
        }
        assert!(!waiting.is_finished());
        late.void(1, lsn);
        waiting.join().unwrap().unwrap();
    });
    assert_eq!(log.stable_lsn(), 3);
}

/// A frame larger than the buffer and the segment gets a segment of its own.
#[test]
fn a_huge_frame_fits() {
    let device = FaultyDevice::new(0);
    let (log, _, _) = open(&device).unwrap();
    let huge: Vec<u8> = (0..100_000_u32).map(|i| i as u8).collect();
    for payload in [&b"before"[..], &huge, b"after"] {
        log.append_data(0, 1, payload).unwrap();
    }
    log.append_commit(0, 1, &huge, CommitMode::Async, || 1).unwrap();
    log.flush().unwrap();
    assert_eq!(log.stats().segments, 4);
    let mut sizes = Vec::new();
    let mut apply = |frame: durability::Frame<'_>| {
        sizes.push(frame.payload.len());
        Ok::<(), std::fmt::Error>(())
    };
    let image = Arc::new(device.after_power_loss(1));
    Log::open(image, SMALL, &mut apply, &mut |_, _| {}).unwrap();
    assert_eq!(sizes, [6, 100_000, 5, 100_000]);
}

/// Many commits share a sync when many threads wait.
#[test]
fn commits_share_syncs() {
    let ledger = Ledger::default();
    let (log, _, _) =
        open_with(&FaultyDevice::new(0), LogOptions { flush_interval: None, ..LogOptions::default() }).unwrap();
    for txn in 1..=100 {
        commit(&log, &ledger, (0, txn), 1, CommitMode::Sync).unwrap();
    }
    log.wait_stable(40).unwrap();
    let stats = log.stats();
    assert_eq!((stats.frames, stats.syncs, stats.segments), (200, 1, 1));
    assert!(log.is_stable(100), "the leader flushed for all");
}

/// An async commit that no thread waits for is on disk after a while all the same, also after a pause.
#[test]
fn the_flusher_bounds_how_long_an_async_commit_waits() {
    let (device, ledger) = (FaultyDevice::new(0), Ledger::default());
    device.delay_syncs(Duration::from_micros(200));
    let options = LogOptions { flush_interval: Some(Duration::from_millis(1)), ..SMALL };
    let (log, _, _) = open_with(&device, options).unwrap();
    for round in 0..20 {
        for partition in 0..3 {
            commit(&log, &ledger, (partition, round * 10 + partition as u64), 1, CommitMode::Async).unwrap();
        }
        while round % 3 > 0 && !log.is_stable(ledger.last()) {
            std::thread::yield_now();
        }
    }
    while !log.is_stable(ledger.last()) {
        std::thread::yield_now();
    }
    ledger.ack_up_to(ledger.last());
    let image = device.after_power_loss(0);
    drop(log);
    open(&image).unwrap().2.check(&ledger, 0);
}

/// The flusher leaves room in the file for what is likely to come: that much is accepted even where the disk is full meanwhile.
#[test]
fn the_flusher_makes_room_ahead() {
    let device = FaultyDevice::new(0);
    let interval = Some(Duration::from_millis(1));
    let options = LogOptions { segment_bytes: 1 << 20, buffer_bytes: 1 << 20, flush_interval: interval, ..SMALL };
    let (log, _, _) = open_with(&device, options).unwrap();
    // More than a step by which an appender makes room for itself.
    let append = |txn: u64| log.append_commit(0, txn, &[7; 1500], CommitMode::Async, || txn).map(drop);
    let (start, mut txn) = (Instant::now(), 1);
    loop {
        append(txn).unwrap();
        while !log.is_stable(txn) {
            std::thread::yield_now();
        }
        // The flusher has a moment for it.
        std::thread::sleep(Duration::from_millis(2));
        device.set_capacity(Some(0));
        txn += 1;
        match append(txn) {
            Ok(()) => break,
            Err(error) => assert!(matches!(error, LogError::DiskFull { .. }), "{error}"),
        }
        device.set_capacity(None);
        assert!(start.elapsed() < Duration::from_secs(60), "each of {txn} appenders made room for itself");
    }
    log.wait_stable(txn).unwrap();
}

/// Segments that data frames of a running transaction stand in are kept, however old.
#[test]
fn trimming_keeps_what_a_running_transaction_wrote() {
    let (device, ledger) = (FaultyDevice::new(0), Ledger::default());
    let (log, _, _) = open(&device).unwrap();
    log.append_data(0, 7, &support::payload(7, 0)).unwrap();
    commit_many(&log, &ledger, 100, 300).unwrap();
    log.trim(250).unwrap();
    assert!(log.stats().segments > 6, "partition 0 keeps all");
    log.append_data(0, 7, &support::payload(7, 1)).unwrap();
    let lsn = ledger.take(7, Some(CommitMode::Sync));
    let last =
        log.append_commit(0, 7, &support::last_payload(2, CommitMode::Sync, 7), CommitMode::Sync, || lsn).unwrap();
    log.wait(&last).unwrap();
    log.trim(lsn).unwrap();
    assert!(log.stats().segments > 6, "the commit is not given up, so its data is not");
    let image = device.after_power_loss(0);
    let (second, recovered, found) = open(&image).unwrap();
    assert_eq!((recovered.trimmed_below, found.lsns()), (lsn, vec![lsn]));
    second.trim(lsn).unwrap();
    assert!(second.stats().segments > 6, "recovery knows as well");
    drop(second);
    commit_many(&log, &ledger, 500, 3).unwrap();
    assert!(log.trim(lsn + 2).unwrap() > 3);
}

/// A commit that was dropped at a gap does not come back because the gap itself was trimmed.
#[test]
fn the_trim_point_never_stands_in_a_hole() {
    let (device, ledger) = (FaultyDevice::new(0), Ledger::default());
    let (log, _, _) = open(&device).unwrap();
    commit_and_wait(&log, &ledger, (0, 1), 0, CommitMode::Sync).unwrap();
    // LSN 2 stays in memory, 3 and 4 go to disk; 4 can stand alone.
    commit(&log, &ledger, (1, 2), 0, CommitMode::Async).unwrap();
    commit(&log, &ledger, (0, 3), 0, CommitMode::Async).unwrap();
    commit_and_wait(&log, &ledger, (0, 4), 0, CommitMode::Partition).unwrap();
    let image = device.after_power_loss(0);
    let (second, recovered, found) = open(&image).unwrap();
    assert_eq!((found.lsns(), recovered.last_lsn), (vec![1, 4], 4));
    assert_eq!((recovered.dropped_commits, recovered.commits_beyond_gap), (1, 1));
    commit_and_wait(&second, &Ledger::after(4), (0, 5), 0, CommitMode::Sync).unwrap();
    second.trim(3).unwrap();
    let (_, recovered, found) = open(&image.after_power_loss(0)).unwrap();
    assert_eq!((found.lsns(), recovered.trimmed_below), (vec![4, 5], 2));
}

/// A frame that its receiver refuses is reported with its place.
#[test]
fn a_refused_frame_is_reported() {
    let (device, ledger) = (FaultyDevice::new(0), Ledger::default());
    let (log, _, _) = open(&device).unwrap();
    commit_and_wait(&log, &ledger, (0, 1), 1, CommitMode::Sync).unwrap();
    log.close().unwrap();
    let mut refuse = |_: durability::Frame<'_>| Err(std::fmt::Error);
    let opened = Log::open(Arc::new(device), SMALL, &mut refuse, &mut |_, _| {});
    let message = opened.unwrap_err().to_string();
    // Behind the header, the witnesses and the opening frame.
    assert!(message.contains("byte 1592 of redo-00000001.log"), "{message}");
}
