//! The log on a real directory.

mod support;

use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;

use durability::{Device, FsDevice, Log, LogError, LogOptions, OpenError, Recovered};
use support::{Found, commit, commit_and_wait};

fn open(directory: &Path) -> Result<(Log, Recovered, Found), OpenError<Infallible>> {
    let device = Arc::new(FsDevice::new(directory).unwrap());
    let options = LogOptions { segment_bytes: 256 << 10, ..LogOptions::default() };
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
    assert_eq!(recovered, Recovered { was_closed: true, ..Recovered::default() });
    let (acked, result) = commit_and_wait(&log, 1, 1, 50);
    result.unwrap();
    for lsn in 51..=5_000 {
        commit(&log, lsn, 2, || lsn).unwrap();
    }
    log.close().unwrap();
    let (log, recovered, found) = open(&path).unwrap();
    found.holds(&acked);
    assert_eq!((recovered.last_lsn, recovered.commits, recovered.was_closed), (5_000, 5_000, true));
    assert!(recovered.segments > 1 && recovered.torn_bytes == 0);
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
    let mut bytes = [9; 10];
    device.open("x").unwrap().read_at(&mut bytes, 0).unwrap();
    assert_eq!(&bytes, b"\0\0\0hello\0\0");
    assert_eq!(file.read_at(&mut bytes, 199_995).unwrap_err().kind(), std::io::ErrorKind::UnexpectedEof);
    assert_eq!(device.list().unwrap(), ["x"]);
    device.remove("x").unwrap();
    device.sync_dir().unwrap();
    assert!(device.open("x").is_err() && device.list().unwrap().is_empty());
}

/// Where permissions bind (they do not bind root), a directory that is not ours to write is told as such.
#[test]
fn a_read_only_directory_is_told() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o555)).unwrap();
    if std::fs::write(directory.path().join("probe"), b"").is_ok() {
        return;
    }
    let error = open(directory.path()).unwrap_err();
    assert!(matches!(error, OpenError::Log(LogError::ReadOnly { .. })), "{error}");
}

/// Threads commit on a real disk; prints what a durable commit costs there.
#[test]
fn threads_share_syncs() {
    for threads in [1, 2, 8] {
        let directory = tempfile::tempdir().unwrap();
        let (log, _, _) = open(directory.path()).unwrap();
        let last = std::sync::atomic::AtomicU64::new(0);
        let start = std::time::Instant::now();
        std::thread::scope(|scope| {
            for thread in 0..threads {
                let (log, last) = (&log, &last);
                scope.spawn(move || {
                    for i in 0..200 {
                        let number = || last.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1;
                        let lsn = commit(log, thread * 1_000 + i, 2, number).unwrap();
                        log.wait_stable(lsn).unwrap();
                    }
                });
            }
        });
        let (commits, syncs) = (threads * 200, log.stats().syncs);
        let commit_us = start.elapsed().as_micros() as u64 / commits;
        println!("{threads} threads: {commits} commits, {syncs} syncs, {commit_us} us a commit");
        log.close().unwrap();
        assert_eq!(open(directory.path()).unwrap().1.commits, commits);
    }
}
