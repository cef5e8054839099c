//! Failing devices: what the caller is told, and that nothing is acknowledged afterwards.

mod support;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use durability::{LogError, LogOptions, MAX_PAYLOAD_BYTES};
use support::{Acked, SMALL, commit, commit_and_wait, open, open_with};
use testkit::{Failure, FaultyDevice};

/// The steps that 40 commits take, and the steps of opening among them.
fn rehearse() -> (u64, u64) {
    let device = FaultyDevice::new(0);
    let (log, _, _) = open(&device).unwrap();
    let opening = device.steps();
    commit_and_wait(&log, 1, 1, 40).1.unwrap();
    (opening, device.steps())
}

#[test]
fn a_failed_step_poisons_the_log() {
    let (opening, steps) = rehearse();
    for step in opening + 1..=steps {
        for (failure, seed) in [(Failure::Io, 0), (Failure::DiskFull, 1), (Failure::Io, 2), (Failure::DiskFull, 3)] {
            let device = FaultyDevice::new(step << 8 | seed);
            device.fail_at(step, failure);
            let (log, _, _) = open(&device).unwrap();
            let (acked, result) = commit_and_wait(&log, 1, 1, 40);
            let error = result.unwrap_err();
            match failure {
                Failure::DiskFull => {
                    assert!(matches!(error, LogError::DiskFull { .. }), "{error}");
                    assert!(error.to_string().contains("free some space"), "{error}");
                }
                _ => assert!(matches!(error, LogError::Io { .. }), "{error}"),
            }
            // The device works again; the log does not.
            let last = acked.last().map_or(0, |acked| acked.lsn);
            assert!(matches!(log.append_data(99, b"late"), Err(LogError::Poisoned { .. })));
            assert!(matches!(
                log.append_commit(99, b"late", || -> Result<u64, LogError> { unreachable!() }),
                Err(LogError::Poisoned { .. })
            ));
            assert!(log.is_stable(last));
            log.wait_stable(last).unwrap();
            assert!(!log.is_stable(last + 1));
            log.wait_stable(last + 1).unwrap_err();
            let steps = device.steps();
            drop(log);
            assert_eq!(device.steps(), steps, "a poisoned log touches the disk no more");
            let (log, recovered, found) = open(&device.after_power_loss(seed)).unwrap();
            found.holds(&acked);
            commit_and_wait(&log, 100, recovered.last_lsn + 1, 3).1.unwrap();
        }
    }
    println!("{} points of failure, 4 failures at each", steps - opening);
}

#[test]
fn a_failed_opening_leaves_no_trace() {
    let (opening, _) = rehearse();
    for step in 1..=opening {
        let device = FaultyDevice::new(step);
        device.fail_at(step, Failure::DiskFull);
        assert!(matches!(open(&device), Err(LogError::DiskFull { .. })));
        let (log, _, _) = open(&device).unwrap();
        let (acked, result) = commit_and_wait(&log, 1, 1, 3);
        result.unwrap();
        drop(log);
        open(&device.after_power_loss(step)).unwrap().2.holds(&acked);
    }
}

/// Followers of a failed leader are told so too; none of them hangs.
#[test]
fn followers_learn_of_the_failure() {
    for seed in 0..100 {
        let device = FaultyDevice::new(seed);
        device.fail_at(8 + seed % 20, Failure::Io);
        let (log, _, _) = open(&device).unwrap();
        let (last, acked) = (AtomicU64::new(0), Mutex::new(Vec::new()));
        std::thread::scope(|scope| {
            for worker in 0..6 {
                let (log, last, acked) = (&log, &last, &acked);
                scope.spawn(move || {
                    for txn in (worker * 1000).. {
                        let number = || last.fetch_add(1, Ordering::Relaxed) + 1;
                        let Ok(lsn) = commit(log, txn, 1, number) else {
                            return;
                        };
                        let Ok(()) = log.wait_stable(lsn) else { return };
                        acked.lock().unwrap().push(Acked { lsn, txn });
                    }
                });
            }
        });
        drop(log);
        open(&device.after_power_loss(seed)).unwrap().2.holds(&acked.into_inner().unwrap());
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
fn a_read_only_directory_is_told() {
    let device = FaultyDevice::new(0);
    device.make_read_only();
    let error = open(&device).unwrap_err();
    assert!(matches!(error, LogError::ReadOnly { .. }));
    assert!(error.to_string().contains("read-only"), "{error}");
}

#[test]
fn misuse_is_refused() {
    let (log, _, _) = open(&FaultyDevice::new(0)).unwrap();
    log.wait_stable(0).unwrap();
    assert!(matches!(log.wait_stable(1), Err(LogError::NotAppended { lsn: 1, last: 0 })));
    let huge = vec![0; MAX_PAYLOAD_BYTES + 1];
    assert!(matches!(log.append_data(1, &huge), Err(LogError::FrameTooLarge { .. })));
    commit_and_wait(&log, 1, 1, 1).1.unwrap();
}

/// LSNs are checked when they are issued; a wrong one leaves the log usable.
#[test]
fn a_gap_between_lsns_is_a_bug_of_the_caller() {
    let (log, _, _) = open(&FaultyDevice::new(0)).unwrap();
    let wrong =
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| log.append_commit(1, b"", || Ok::<_, LogError>(7))));
    assert!(wrong.is_err());
    commit_and_wait(&log, 1, 1, 1).1.unwrap();
}

/// A frame larger than the buffer and the segment gets a segment of its own.
#[test]
fn a_huge_frame_fits() {
    let device = FaultyDevice::new(0);
    let (log, _, _) = open(&device).unwrap();
    let huge: Vec<u8> = (0..100_000_u32).map(|i| i as u8).collect();
    log.append_data(1, b"before").unwrap();
    log.append_data(1, &huge).unwrap();
    log.append_data(1, b"after").unwrap();
    log.flush().unwrap();
    assert_eq!(log.stats().segments, 3);
    let mut sizes = Vec::new();
    let mut apply = |frame: durability::Frame<'_>| {
        sizes.push(frame.payload.len());
        Ok::<(), std::fmt::Error>(())
    };
    let image = Arc::new(device.after_power_loss(1));
    durability::Log::open(image, SMALL, &mut apply, &mut |_, _| {}).unwrap();
    assert_eq!(sizes, [6, 100_000, 5]);
}

/// Many commits share a sync when many threads wait.
#[test]
fn commits_share_syncs() {
    let (log, _, _) = open_with(&FaultyDevice::new(0), LogOptions::default()).unwrap();
    for lsn in 1..=100 {
        commit(&log, lsn, 1, || lsn).unwrap();
    }
    log.wait_stable(40).unwrap();
    let stats = log.stats();
    assert_eq!((stats.frames, stats.syncs, stats.segments), (200, 1, 1));
    assert!(log.is_stable(100), "the leader flushed for all");
}

/// What the receiver of the frames refuses is reported with its place.
#[test]
fn a_refused_frame_is_reported() {
    let device = FaultyDevice::new(0);
    let (log, _, _) = open(&device).unwrap();
    commit_and_wait(&log, 1, 1, 3).1.unwrap();
    log.close().unwrap();
    let mut refuse = |_: durability::Frame<'_>| Err(std::fmt::Error);
    let opened = durability::Log::open(Arc::new(device), SMALL, &mut refuse, &mut |_, _| {});
    let message = opened.unwrap_err().to_string();
    assert!(message.contains("byte 512 of redo-00000001.log"), "{message}");
}
