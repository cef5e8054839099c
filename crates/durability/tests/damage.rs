//! Damaged files: what was acknowledged is found, or the opening is refused with file and offset. Never is a
//! commit lost without a word, within the limits that `recover.rs` lists.

mod support;

use std::collections::BTreeMap;

use durability::{CommitMode, Device, Log, LogError, LogOptions, RecoveredLog};
use support::{Found, Ledger, SMALL, commit, commit_and_wait, commit_many, open_with};
use testkit::FaultyDevice;

const FIRST: &str = "redo-00000001.log";
/// Where its first slot of witnesses stands, with sizes as small as these, and its frames start.
const SLOT: usize = 512;
const FRAMES: usize = 1536;

/// Opens with segments so small that every partition has several.
fn open(device: &FaultyDevice) -> Result<(Log, RecoveredLog, Found), LogError> {
    open_with(device, LogOptions { segment_bytes: 2048, growth_bytes: 512, ..SMALL })
}

/// A log of some commits over all partitions and several segments, one flush each.
fn written(close: bool) -> (FaultyDevice, Ledger) {
    let (device, ledger) = (FaultyDevice::new(0), Ledger::default());
    let (log, _, _) = open(&device).unwrap();
    commit_many(&log, &ledger, 1, 30).unwrap();
    commit_and_wait(&log, &ledger, (1, 100), 1, CommitMode::Partition).unwrap();
    support::void(&log, &ledger, (2, 101), 1).unwrap();
    commit_and_wait(&log, &ledger, (0, 102), 0, CommitMode::Sync).unwrap();
    let device = if close {
        log.close().unwrap();
        device
    } else {
        device.after_power_loss(0)
    };
    (device, ledger)
}

fn files(device: &FaultyDevice) -> BTreeMap<String, Vec<u8>> {
    device.list().unwrap().into_iter().map(|name| (name.clone(), device.contents(&name))).collect()
}

fn put(files: &BTreeMap<String, Vec<u8>>) -> FaultyDevice {
    let device = FaultyDevice::new(0);
    files.iter().for_each(|(name, bytes)| device.put(name, bytes.clone()));
    device
}

/// The offset of the last frame with this payload.
fn frame_of(bytes: &[u8], payload: &[u8]) -> usize {
    bytes.windows(payload.len()).rposition(|window| window == payload).unwrap() - 40
}

/// Any byte of a closed log may be hit: the damage is refused at or before its place, or nothing is missing.
#[test]
fn every_flipped_byte_of_a_closed_log_is_noticed_or_harmless() {
    let (device, ledger) = written(true);
    let files = files(&device);
    assert!(files.len() >= 4, "more than one segment somewhere");
    let (mut refused, mut harmless) = (0, 0);
    for (name, bytes) in &files {
        // Of the slots of witnesses, and the notes, most is room.
        let is_room = |offset: &u64| (SLOT..FRAMES).contains(&(*offset as usize)) || name == "redo.begun";
        for offset in (0..bytes.len() as u64).filter(|offset| !is_room(offset) || offset % 5 == 0) {
            let device = put(&files);
            device.flip_bit(name, offset, (offset % 8) as u32);
            match open(&device) {
                Ok((_, recovered, found)) => {
                    found.check(&ledger, 0);
                    assert_eq!(recovered.last_lsn, ledger.last());
                    harmless += 1;
                }
                Err(LogError::Corrupt { file, offset: told, .. }) => {
                    assert_eq!(file, *name);
                    assert!(told <= offset, "{told} {offset}");
                    refused += 1;
                }
                Err(LogError::UnknownVersion { file, .. }) => {
                    assert!(file == *name && (8..12).contains(&offset))
                }
                Err(other) => panic!("{other}"),
            }
        }
    }
    assert!(refused > 5_000 && harmless > 0);
    println!("{} flips: {refused} refused, {harmless} harmless", refused + harmless);
}

/// After a crash nothing follows the last flush but its witness.
#[test]
fn every_flip_in_a_crashed_log_is_noticed_or_mended() {
    let (device, ledger) = written(false);
    let files = files(&device);
    let (mut refused, mut whole) = (0, 0);
    for (name, bytes) in &files {
        for offset in (0..bytes.len() as u64).step_by(3) {
            let device = put(&files);
            device.flip_bit(name, offset, (offset % 8) as u32);
            if let Ok((_, _, found)) = open(&device) {
                found.check(&ledger, 0);
                whole += 1;
            } else {
                refused += 1;
            }
        }
    }
    println!("{refused} flips refused, {whole} harmless or mended");
    assert!(refused > 1000 && whole > 1000);
}

#[test]
fn a_missing_file_is_refused() {
    let (device, ledger) = written(true);
    for name in files(&device).into_keys() {
        let mut files = files(&device);
        files.remove(&name);
        // The last file of a partition is missed by the marks of the others, if it held what was acknowledged.
        match open(&put(&files)) {
            Err(LogError::Corrupt { .. }) => {}
            Err(other) => panic!("{other}"),
            Ok((_, _, found)) => found.check(&ledger, 0),
        }
    }
}

#[test]
fn segments_of_two_logs_do_not_mix() {
    let (one, two) = (written(true).0, written(true).0);
    for name in files(&one).into_keys() {
        let mut mixed = files(&one);
        mixed.insert(name.clone(), two.contents(&name));
        assert!(matches!(open(&put(&mixed)), Err(LogError::Corrupt { .. })), "{name}");
        let other = if name == FIRST { "redo-00000002.log" } else { FIRST };
        let mut renamed = files(&one);
        renamed.insert(name.clone(), one.contents(other));
        assert!(matches!(open(&put(&renamed)), Err(LogError::Corrupt { file, .. }) if file == name));
    }
}

#[test]
fn an_unknown_version_is_refused() {
    let (device, _) = written(true);
    for version in [1, 9] {
        let mut bytes = device.contents(FIRST);
        bytes[8] = version;
        device.put(FIRST, bytes);
        let error = open(&device).unwrap_err();
        assert!(matches!(error, LogError::UnknownVersion { supported: 4, .. }));
        assert!(error.to_string().contains(&format!("format version {version}")), "{error}");
    }
}

/// Frames cut off by a shorter file are missed if anything testifies to them.
#[test]
fn a_shortened_segment_is_refused() {
    let (device, _) = written(true);
    for (name, bytes) in files(&device).into_iter().filter(|(name, _)| name.ends_with(".log")) {
        let device = put(&files(&device));
        device.put(&name, bytes[..bytes.len() / 2].to_vec());
        assert!(matches!(open(&device), Err(LogError::Corrupt { file, .. }) if file == name));
    }
}

/// A segment that was there when the log was closed is missed, also where nothing that is left names it.
#[test]
fn a_segment_that_is_removed_from_a_closed_log_is_missed() {
    let (device, ledger) = (FaultyDevice::new(0), Ledger::default());
    let options = LogOptions { segment_bytes: 2048, growth_bytes: 512, ..SMALL };
    let (log, _, _) = open_with(&device, options).unwrap();
    for txn in 1..=60 {
        commit_and_wait(&log, &ledger, (0, txn), 1, CommitMode::Sync).unwrap();
    }
    log.close().unwrap();
    let names: Vec<String> = files(&device).into_keys().filter(|name| name.ends_with(".log")).collect();
    assert!(names.len() > 3);
    for name in &names {
        let device = put(&files(&device));
        device.remove(name).unwrap();
        assert!(matches!(open(&device), Err(LogError::Corrupt { .. })), "{name}");
    }
    // Without the last two; and with a file of before, that says nothing of it.
    let device = put(&files(&device));
    names.iter().rev().take(2).for_each(|name| device.remove(name).unwrap());
    assert!(matches!(open(&device), Err(LogError::Corrupt { .. })));
    device.remove("redo.trim").unwrap();
    assert!(matches!(open(&device), Err(LogError::Corrupt { file, .. }) if file == "redo.begun"));
    device.remove("redo.begun").unwrap();
    let (_, recovered, _) = open(&device).unwrap();
    assert!(recovered.last_lsn < 60);
}

#[test]
fn a_blank_file_is_no_damage_and_anything_else_is() {
    let (device, ledger) = written(false);
    let mut files = files(&device);
    let next = format!("redo-{:08}.log", files.len() + 1);
    files.insert(next.clone(), vec![0; 700]);
    let (log, recovered, found) = open(&put(&files)).unwrap();
    found.check(&ledger, 0);
    commit_many(&log, &Ledger::after(recovered.last_lsn), 500, 30).unwrap();
    files.insert(next.clone(), vec![1; 700]);
    assert!(matches!(open(&put(&files)), Err(LogError::Corrupt { file, .. }) if file == next));
}

/// Frames left over in a torn tail are zeroed: they must not come back behind new frames that end where they
/// begin.
#[test]
fn torn_frames_do_not_come_back() {
    let device = FaultyDevice::new(0);
    let (log, _, _) = open_with(&device, SMALL).unwrap();
    let payloads = [b"one frame", b"two frame", b"the third"];
    for (payload, lsn) in payloads.into_iter().zip(1..) {
        log.append_commit(0, lsn, payload, CommitMode::Sync, || lsn).unwrap();
    }
    log.flush().unwrap();
    let image = device.after_power_loss(0);
    drop(log);
    // The first of three frames in one flush is lost, and its witness; the second and third are whole.
    let mut bytes = image.contents(FIRST);
    bytes[SLOT..SLOT + 512].fill(0);
    let (lost, kept) = (frame_of(&bytes, payloads[0]), frame_of(&bytes, payloads[1]));
    bytes[lost..kept].fill(0);
    image.put(FIRST, bytes);
    let mut lsns = Vec::new();
    let (log, recovered) = read_lsns(&image, &mut lsns);
    assert!(lsns.is_empty() && recovered.torn_bytes > 0);
    // The opening frame of the new life is as large as the frame that was lost, the commit as large as the second.
    assert_eq!(kept - lost, 56);
    log.append_commit(0, 7, b"new frame", CommitMode::Sync, || 1).unwrap();
    // The LSN between, so that the third would be next.
    log.append_commit(1, 8, b"other partition", CommitMode::Sync, || 2).unwrap();
    log.flush().unwrap();
    let image = image.after_power_loss(0);
    drop(log);
    read_lsns(&image, &mut lsns);
    assert_eq!(lsns, [1, 2]);
}

/// Reads the LSNs of a log with payloads that are none of `support`.
fn read_lsns(device: &FaultyDevice, lsns: &mut Vec<u64>) -> (Log, RecoveredLog) {
    let mut apply = |frame: durability::Frame<'_>| {
        lsns.push(frame.lsn);
        Ok::<(), std::fmt::Error>(())
    };
    let device = std::sync::Arc::new(device.clone());
    Log::open(device, SMALL, &mut apply, &mut |_, _| {}).unwrap()
}

/// A payload that holds a copy of a frame is no frame.
#[test]
fn a_frame_within_a_payload_is_none() {
    let device = FaultyDevice::new(0);
    let (log, _, _) = open_with(&device, SMALL).unwrap();
    log.append_commit(0, 1, b"first", CommitMode::Sync, || 1).unwrap();
    log.flush().unwrap();
    let written = device.contents(FIRST);
    let at = frame_of(&written, b"first");
    let copy = written[at..at + 48].to_vec();
    log.append_data(0, 2, &copy).unwrap();
    log.flush().unwrap();
    let image = device.after_power_loss(0);
    drop(log);
    // Without the header of the frame around it, and the witness of its flush, the copy is all there is.
    let mut bytes = image.contents(FIRST);
    bytes[SLOT + 512..SLOT + 1024].fill(0);
    let around = bytes.windows(48).rposition(|window| window == copy).unwrap() - 40;
    bytes[around..around + 40].fill(0);
    image.put(FIRST, bytes);
    let mut lsns = Vec::new();
    read_lsns(&image, &mut lsns);
    assert_eq!(lsns, [1]);
}

#[test]
fn a_flush_testifies_to_what_other_partitions_had_on_disk() {
    let (device, ledger) = (FaultyDevice::new(0), Ledger::default());
    let (log, _, _) = open_with(&device, SMALL).unwrap();
    commit_and_wait(&log, &ledger, (1, 1), 1, CommitMode::Sync).unwrap();
    commit(&log, &ledger, (0, 2), 1, CommitMode::Async).unwrap();
    log.flush().unwrap();
    let image = device.after_power_loss(0);
    drop(log);
    // The only flush of partition 1 looks like a torn one, its witness as well, but partition 0 was flushed after it was
    // acknowledged.
    image.flip_bit(FIRST, SLOT as u64 + 60, 0);
    image.flip_bit(FIRST, FRAMES as u64 + 60, 0);
    let error = open(&image).unwrap_err();
    assert!(matches!(&error, LogError::Corrupt { file, .. } if file == FIRST), "{error}");
    assert!(error.to_string().contains("LSN 1 "), "{error}");
}

/// Partition commits are on disk while nothing is stable; then the flushes of their own partition testify to them.
#[test]
fn a_flush_testifies_to_the_flushes_before_it() {
    let (device, ledger) = (FaultyDevice::new(0), Ledger::default());
    let (log, _, _) = open_with(&device, SMALL).unwrap();
    let _never_appended = ledger.take(1, None);
    for txn in 2..5 {
        commit_and_wait(&log, &ledger, (0, txn), 1, CommitMode::Partition).unwrap();
    }
    assert_eq!(log.stable_lsn(), 0);
    let image = device.after_power_loss(0);
    open_with(&image, SMALL).unwrap().2.check(&ledger, 0);
    let image = device.after_power_loss(0);
    image.flip_bit(FIRST, FRAMES as u64 + 60, 0);
    let error = open_with(&image, SMALL).unwrap_err();
    assert!(matches!(&error, LogError::Corrupt { file, offset: 1592, .. } if file == FIRST), "{error}");
}

/// Either copy of the trim point may be lost, not both.
#[test]
fn the_trim_point_has_two_copies() {
    let (device, ledger) = (FaultyDevice::new(0), Ledger::default());
    let (log, _, _) = open(&device).unwrap();
    commit_many(&log, &ledger, 1, 120).unwrap();
    assert!(log.trim(100).unwrap() > 0);
    log.close().unwrap();
    let files = files(&device);
    for offset in 0..files["redo.trim"].len() as u64 {
        let device = put(&files);
        device.flip_bit("redo.trim", offset, (offset % 8) as u32);
        let (_, recovered, found) = open(&device).unwrap();
        assert_eq!((recovered.trimmed_below, found.lsns()), (100, (100..=120).collect()));
    }
    let device = put(&files);
    device.flip_bit("redo.trim", 25, 0);
    device.flip_bit("redo.trim", 512 + 25, 0);
    assert!(matches!(open(&device), Err(LogError::Corrupt { file, .. }) if file == "redo.trim"));
    let mut files = files;
    files.remove("redo.trim");
    assert!(matches!(open(&put(&files)), Err(LogError::Corrupt { .. })), "trimmed segments look lost");
}
