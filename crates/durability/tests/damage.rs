//! Damaged files: what was acknowledged is found, or the opening is refused with file and offset. Never is a
//! commit lost without a word, within the limits that `recover.rs` lists.

mod support;

use std::collections::BTreeMap;

use durability::LogError;
use support::{Acked, commit_and_wait, open};
use testkit::FaultyDevice;

const FIRST: &str = "redo-00000001.log";
const SECOND: &str = "redo-00000002.log";

/// A log of 30 commits over several segments, one flush each.
fn written(close: bool) -> (FaultyDevice, Vec<Acked>) {
    let device = FaultyDevice::new(0);
    let (log, _, _) = open(&device).unwrap();
    let (acked, result) = commit_and_wait(&log, 1, 1, 30);
    result.unwrap();
    let device = if close {
        log.close().unwrap();
        device
    } else {
        device.after_power_loss(0)
    };
    (device, acked)
}

fn segments(device: &FaultyDevice) -> BTreeMap<String, Vec<u8>> {
    use durability::Device;
    device.list().unwrap().into_iter().map(|name| (name.clone(), device.contents(&name))).collect()
}

fn put(files: &BTreeMap<String, Vec<u8>>) -> FaultyDevice {
    let device = FaultyDevice::new(0);
    files.iter().for_each(|(name, bytes)| device.put(name, bytes.clone()));
    device
}

/// Any byte of a closed log may be hit: the damage is refused at or before its place, or nothing is missing.
#[test]
fn every_flipped_byte_of_a_closed_log_is_noticed_or_harmless() {
    let (device, acked) = written(true);
    let files = segments(&device);
    assert!(files.len() >= 2);
    let (mut refused, mut harmless) = (0, 0);
    for (name, bytes) in &files {
        for offset in 0..bytes.len() as u64 {
            let device = put(&files);
            device.flip_bit(name, offset, (offset % 8) as u32);
            match open(&device) {
                Ok((_, _, found)) => {
                    found.holds(&acked);
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

/// After a crash only the last flush is without a witness.
#[test]
fn flips_in_all_but_the_last_flush_of_a_crashed_log_are_noticed() {
    let (device, acked) = written(false);
    let files = segments(&device);
    let (before_last, mut lost) = (&acked[..acked.len() - 1], 0);
    for (name, bytes) in &files {
        for offset in 0..bytes.len() as u64 {
            let device = put(&files);
            device.flip_bit(name, offset, (offset % 8) as u32);
            if let Ok((_, _, found)) = open(&device) {
                found.holds(before_last);
                lost += u64::from(found.commits.len() < acked.len());
            }
        }
    }
    println!("{lost} flips dropped the last commit as a torn tail");
}

#[test]
fn a_missing_segment_is_refused() {
    let (device, _) = written(true);
    let mut files = segments(&device);
    files.remove(FIRST);
    assert!(matches!(open(&put(&files)), Err(LogError::Corrupt { file, .. }) if file == FIRST));
}

#[test]
fn segments_of_two_logs_do_not_mix() {
    let (one, two) = (written(true).0, written(true).0);
    let mut files = segments(&one);
    files.insert(SECOND.to_string(), two.contents(SECOND));
    assert!(matches!(open(&put(&files)), Err(LogError::Corrupt { file, .. }) if file == SECOND));
    let mut renamed = segments(&one);
    renamed.insert(FIRST.to_string(), one.contents(SECOND));
    assert!(matches!(open(&put(&renamed)), Err(LogError::Corrupt { file, .. }) if file == FIRST));
}

#[test]
fn an_unknown_version_is_refused() {
    let (device, _) = written(true);
    let mut bytes = device.contents(FIRST);
    bytes[8] = 9;
    device.put(FIRST, bytes);
    let error = open(&device).unwrap_err();
    assert!(matches!(error, LogError::UnknownVersion { found: 9, supported: 1, .. }));
    assert!(error.to_string().contains("format version 9"), "{error}");
}

/// A segment is begun only after the one before is on disk, so the beginning of one testifies too.
#[test]
fn a_damaged_end_before_an_interrupted_segment_is_refused() {
    let (device, acked) = written(false);
    let mut files = segments(&device);
    let last = files.keys().next_back().unwrap().clone();
    let next = format!("redo-{:08}.log", files.len() + 1);
    files.insert(next.clone(), vec![0; 700]);
    open(&put(&files)).unwrap().2.holds(&acked);
    let device = put(&files);
    let end = files[&last].iter().rposition(|&byte| byte != 0).unwrap();
    device.flip_bit(&last, end as u64, 0);
    assert!(matches!(open(&device), Err(LogError::Corrupt { file, .. }) if file == last));
    // Anything but zeros is no interrupted creation.
    files.insert(next.clone(), vec![1; 700]);
    assert!(matches!(open(&put(&files)), Err(LogError::Corrupt { file, .. }) if file == next));
}

/// Frames cut off by a shorter file are missed if anything testifies to them.
#[test]
fn a_shortened_segment_is_refused() {
    let (device, _) = written(true);
    let bytes = device.contents(FIRST);
    device.put(FIRST, bytes[..bytes.len() / 2].to_vec());
    assert!(matches!(open(&device), Err(LogError::Corrupt { file, .. }) if file == FIRST));
}

/// Frames left over in a torn tail are zeroed: they must not come back behind new frames that end where they
/// begin.
#[test]
fn torn_frames_do_not_come_back() {
    let device = FaultyDevice::new(0);
    let (log, _, _) = open(&device).unwrap();
    for txn in 1..=3 {
        log.append_commit(txn, &0_u32.to_le_bytes(), || Ok::<_, LogError>(txn)).unwrap();
    }
    log.flush().unwrap();
    let image = device.after_power_loss(0);
    drop(log);
    // The first of three frames in one flush is lost.
    let mut bytes = image.contents(FIRST);
    bytes[512..552].fill(0);
    image.put(FIRST, bytes);
    let (log, recovered, found) = open(&image).unwrap();
    assert!(found.commits.is_empty());
    // Three frames of 40 bytes; the payload of the last is zeros.
    assert_eq!(recovered.torn_bytes, 120 - 8);
    log.append_commit(7, &0_u32.to_le_bytes(), || Ok::<_, LogError>(1)).unwrap();
    log.flush().unwrap();
    let image = image.after_power_loss(0);
    drop(log);
    assert_eq!(open(&image).unwrap().2.commits, [7]);
}

/// A payload that holds a copy of a frame is no frame.
#[test]
fn a_frame_within_a_payload_is_none() {
    let device = FaultyDevice::new(0);
    let (log, _, _) = open(&device).unwrap();
    log.append_commit(1, &0_u32.to_le_bytes(), || Ok::<_, LogError>(1)).unwrap();
    log.flush().unwrap();
    let copy = device.contents(FIRST)[512..552].to_vec();
    log.append_data(2, &copy).unwrap();
    log.flush().unwrap();
    let image = device.after_power_loss(0);
    drop(log);
    // Without the header of the frame around it, the copy is all there is.
    let mut bytes = image.contents(FIRST);
    bytes[552..584].fill(0);
    image.put(FIRST, bytes);
    assert_eq!(open(&image).unwrap().2.commits, [1]);
}
