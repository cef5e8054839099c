//! The log on a real directory.

mod support;

use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;

use durability::{Access, CommitMode, Device, FsDevice, Log, LogError, LogOptions, OpenError, RecoveredLog};
use support::{Found, Ledger, commit, commit_and_wait, commit_many};

fn open(directory: &Path) -> Result<(Log, RecoveredLog, Found), OpenError<Infallible>> {
    let device = Arc::new(FsDevice::new(directory).unwrap());
    let options = LogOptions { partitions: 3, segment_bytes: 256 << 10, ..LogOptions::default() };
    let (mut found, mut seen) = (Found::default(), (0, 0));
    let mut progress = |done, total| {
        assert!(seen.0 <= done && done <= total);
        seen = (done, total);
    };
    let (log, recovered) = Log::open(device, options, &mut |frame| found.apply(frame), &mut progress)?;
    assert_eq!(seen.0, seen.1, "progress ends at the end");
    Ok((log, recovered, found))
}

#[test]
fn commits_are_found_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a/b");
    let (log, recovered, _) = open(&path).unwrap();
    assert_eq!(recovered, RecoveredLog { was_closed: true, ..RecoveredLog::default() });
    let ledger = Ledger::default();
    commit_many(&log, &ledger, 1, 50).unwrap();
    for txn in 51..=9_000 {
        commit(&log, &ledger, (txn as usize % 3, txn), 2, CommitMode::Async).unwrap();
    }
    log.close().unwrap();
    let (log, recovered, found) = open(&path).unwrap();
    ledger.ack_up_to(9_000);
    found.check(&ledger, 0);
    assert_eq!((recovered.last_lsn, recovered.commits, recovered.was_closed), (9_000, 9_000, true));
    assert!(recovered.segments > 3 && recovered.torn_bytes == 0);
    // Trimmed files are used again.
    log.trim(9_001).unwrap();
    let names = || std::fs::read_dir(&path).unwrap().count();
    let files = names();
    for txn in 9_001..=15_000 {
        commit(&log, &ledger, (txn as usize % 3, txn), 2, CommitMode::Async).unwrap();
        if txn % 1_000 == 0 {
            log.flush().unwrap();
            log.trim(ledger.last()).unwrap();
        }
    }
    assert!(names() <= files + 3, "{} files, then {}", files, names());
    log.close().unwrap();
    let (log, recovered, found) = open(&path).unwrap();
    ledger.ack_up_to(15_000);
    found.check(&ledger, recovered.trimmed_below);
    assert_eq!(recovered.trimmed_below, 15_000);
    drop(log);
    assert!(open(&path).unwrap().1.was_closed);
}

#[test]
fn a_second_opening_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let _log = open(directory.path()).unwrap();
    let error = open(directory.path()).unwrap_err();
    assert!(matches!(error, OpenError::Log(LogError::Locked { .. })));
    assert!(error.to_string().contains(directory.path().to_str().unwrap()), "{error}");
}

#[test]
fn the_device_keeps_its_contract() {
    let directory = tempfile::tempdir().unwrap();
    let device = FsDevice::new(directory.path()).unwrap();
    let file = device.create("x").unwrap();
    assert_eq!(device.create("x").err().unwrap().kind(), std::io::ErrorKind::AlreadyExists);
    file.write_at(b"hello", 3).unwrap();
    file.preallocate(200_000).unwrap();
    file.preallocate(10).unwrap();
    assert_eq!(file.size().unwrap(), 200_000);
    file.sync().unwrap();
    file.write_durably(b"again", 199_990).unwrap();
    assert!(device.open("x", Access::Read).unwrap().write_at(b"no", 0).is_err());
    let mut bytes = [9; 10];
    device.open("x", Access::Read).unwrap().read_at(&mut bytes, 0).unwrap();
    assert_eq!(&bytes, b"\0\0\0hello\0\0");
    assert_eq!(file.read_at(&mut bytes, 199_995).unwrap_err().kind(), std::io::ErrorKind::UnexpectedEof);
    file.read_at(&mut bytes, 199_990).unwrap();
    assert_eq!(&bytes, b"again\0\0\0\0\0");
    assert_eq!(device.list().unwrap(), ["x"]);
    device.remove("x").unwrap();
    device.sync_dir().unwrap();
    assert!(device.open("x", Access::Write).is_err() && device.list().unwrap().is_empty());
}

/// Where permissions bind (they do not bind root), a directory that is not ours to write is opened for reading.
#[test]
fn a_read_only_directory_is_read() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let ledger = Ledger::default();
    let (log, _, _) = open(directory.path()).unwrap();
    commit_many(&log, &ledger, 1, 5).unwrap();
    log.close().unwrap();
    let permit = |mode| {
        for entry in std::fs::read_dir(directory.path()).unwrap() {
            std::fs::set_permissions(entry.unwrap().path(), std::fs::Permissions::from_mode(mode & 0o666)).unwrap();
        }
        std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(mode)).unwrap();
    };
    permit(0o555);
    let binds = std::fs::write(directory.path().join("probe"), b"").is_err();
    if binds {
        let (log, _, found) = open(directory.path()).unwrap();
        found.check(&ledger, 0);
        assert!(log.is_read_only());
        assert!(matches!(log.reserve(0, 1), Err(LogError::ReadOnly { .. })));
    }
    permit(0o777);
    let device = FsDevice::new(directory.path()).unwrap();
    let readers = (device.lock_shared().unwrap(), device.lock_shared().unwrap());
    assert!(matches!(open(directory.path()), Err(OpenError::Log(LogError::Locked { .. }))), "readers keep writers out");
    drop(readers);
    open(directory.path()).unwrap().2.check(&ledger, 0);
}

/// Threads commit on a real disk in all modes.
#[test]
fn threads_share_syncs() {
    for threads in [1, 2, 8] {
        let directory = tempfile::tempdir().unwrap();
        let ledger = Ledger::default();
        let (log, _, _) = open(directory.path()).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..threads {
                let (log, ledger) = (&log, &ledger);
                scope.spawn(move || {
                    for i in 0..100 {
                        let mode = [CommitMode::Sync, CommitMode::Partition, CommitMode::Async][(i % 3) as usize];
                        let partition = log.partition_for(mode);
                        commit_and_wait(log, ledger, (partition, thread * 1_000 + i), 2, mode).unwrap();
                    }
                });
            }
        });
        let syncs = log.stats().syncs;
        println!("{threads} threads: {} commits, {syncs} syncs", threads * 100);
        log.close().unwrap();
        let (_, recovered, found) = open(directory.path()).unwrap();
        found.check(&ledger, 0);
        assert_eq!(recovered.commits, threads * 100);
    }
}
