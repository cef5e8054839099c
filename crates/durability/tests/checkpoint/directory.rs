//! Checkpoints on a real directory, beside a log.

use std::convert::Infallible;
use std::sync::Arc;

use durability::{
    Access, CheckpointError, Checkpoints, CommitMode, Device, Frame, FsDevice, Log, LogError, LogOptions,
    lock_directory,
};

type Opened = (Checkpoints, Log, Vec<(u64, Vec<u8>)>, Vec<u64>);

/// Opens checkpoints and log under one lock. Returns what the newest checkpoint holds and the LSNs that are replayed.
fn open(path: &std::path::Path) -> Result<Opened, LogError> {
    let device: Arc<dyn Device> = Arc::new(FsDevice::new(path).unwrap());
    let locked = lock_directory(&*device)?;
    assert_eq!(locked.1, Access::Write);
    let (checkpoints, found) = Checkpoints::open(Arc::clone(&device), locked.1).unwrap();
    assert!(found.damaged.is_empty());
    let newest = found.manifests.iter().map(|manifest| (manifest.low, manifest.payload.clone())).collect();
    let mut lsns = Vec::new();
    let mut apply = |frame: Frame<'_>| {
        lsns.push(frame.lsn);
        Ok::<(), Infallible>(())
    };
    let (log, _) = Log::open_locked(device, locked, 0, LogOptions::default(), &mut apply, &mut |_, _| {}).unwrap();
    Ok((checkpoints, log, newest, lsns))
}

#[test]
fn a_log_and_checkpoints_share_a_directory() {
    let directory = tempfile::tempdir().unwrap();
    let large: Vec<u8> = (0..9_000_000_u32).map(|i| (i >> 3) as u8).collect();
    let (checkpoints, log, found, lsns) = open(directory.path()).unwrap();
    assert!(found.is_empty() && lsns.is_empty());
    assert!(matches!(open(directory.path()), Err(LogError::Locked { .. })), "one lock for both");
    let mut blob = None;
    for round in 1..=3 {
        for lsn in round * 10 - 9..=round * 10 {
            log.append_commit(0, lsn, b"redo", CommitMode::Sync, || lsn).unwrap();
        }
        log.wait_stable(round * 10).unwrap();
        let mut writer = checkpoints.begin().unwrap();
        let kept = match blob {
            None => writer.put(&large).unwrap(),
            Some(blob) => writer.keep(blob).unwrap(),
        };
        blob = Some(kept);
        writer.put(&round.to_le_bytes()).unwrap();
        let published = writer.commit(round * 10, &kept.to_bytes()).unwrap();
        assert_eq!(published.trim_below, if round == 1 { 0 } else { round * 10 - 9 });
        log.trim(published.trim_below).unwrap();
    }
    drop((checkpoints, log));
    let (checkpoints, log, found, lsns) = open(directory.path()).unwrap();
    assert_eq!(found.iter().map(|(low, _)| *low).collect::<Vec<_>>(), [30, 20]);
    assert_eq!(lsns, (21..=30).collect::<Vec<_>>());
    let blob = types::BlobRef::from_bytes(found[0].1[..].try_into().unwrap());
    assert!(checkpoints.read(blob).unwrap() == large);
    assert!(checkpoints.verify(&mut |_, _| {}).is_empty());
    log.close().unwrap();
    drop(checkpoints);
    // A byte in the middle of the blob is hit.
    let path = directory.path().join(format!("checkpoint-{:08}.blobs", blob.file));
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[5_000_000] ^= 4;
    std::fs::write(&path, bytes).unwrap();
    let (checkpoints, _log, _, _) = open(directory.path()).unwrap();
    let error = checkpoints.read(blob).unwrap_err();
    assert!(matches!(error, CheckpointError::Corrupt { offset, .. } if offset == blob.offset), "{error}");
    assert_eq!(checkpoints.verify(&mut |_, _| {}).len(), 1);
}
