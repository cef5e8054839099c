//! Blobs that are longer than a piece come back as they were put, whatever is kept, moved or damaged.

use std::collections::BTreeMap;
use std::sync::Arc;

use durability::{Access, CheckpointError, CheckpointOptions, Checkpoints, Manifest};
use testkit::FaultyDevice;
use types::BlobRef;

const OPTIONS: CheckpointOptions =
    CheckpointOptions { file_bytes: 9000, buffer_bytes: 600, open_files: 2, piece_bytes: 700 };

fn open(device: &FaultyDevice) -> (Checkpoints, Vec<Manifest>) {
    let (checkpoints, found) = Checkpoints::open_with(Arc::new(device.clone()), Access::Write, OPTIONS).unwrap();
    (checkpoints, found.manifests)
}

/// Shorter than a piece, as long, longer, many times as long, and longer than a file.
fn content(number: u64) -> Vec<u8> {
    let length = [0, 1, 699, 700, 701, 1400, 3000, 12_000][number as usize % 8];
    (0..length).map(|at| (at as u64).wrapping_mul(number + 7).to_le_bytes()[at % 3]).collect()
}

fn check(checkpoints: &Checkpoints, blobs: &BTreeMap<u64, BlobRef>) {
    for (number, blob) in blobs {
        assert_eq!(checkpoints.read(*blob).unwrap(), content(*number), "blob {number}");
    }
    let damaged = checkpoints.verify(&mut |_, _| ());
    assert!(damaged.is_empty(), "{damaged:?}");
}

/// A checkpoint of what is kept and what is new.
fn checkpoint(checkpoints: &Checkpoints, blobs: &mut BTreeMap<u64, BlobRef>, new: std::ops::Range<u64>) -> u64 {
    let mut writer = checkpoints.begin().unwrap();
    blobs.values_mut().for_each(|blob| *blob = writer.keep(*blob).unwrap());
    blobs.extend(new.map(|number| (number, writer.put(&content(number)).unwrap())));
    writer.commit(1, b"").unwrap().copied_bytes
}

#[test]
fn long_blobs_are_kept_and_moved_with_all_their_pieces() {
    let device = FaultyDevice::new(0);
    let (mut checkpoints, _) = open(&device);
    let (mut blobs, mut copied) = (BTreeMap::new(), 0);
    for round in 0..30 {
        copied += checkpoint(&checkpoints, &mut blobs, round * 8..round * 8 + 8);
        check(&checkpoints, &blobs);
        let live: u64 = blobs.keys().map(|number| content(*number).len() as u64).sum();
        let stats = checkpoints.stats();
        assert!(stats.live_bytes >= live && stats.live_bytes < live + 100 * blobs.len() as u64, "{stats:?}");
        // Most are given up, so that files are emptied.
        blobs.retain(|number, _| number % 3 == 0 && number + 80 > round * 8);
        if round % 7 == 3 {
            drop(checkpoints);
            let reopened = open(&device.after_power_loss(round));
            assert_eq!(reopened.1.len(), 2);
            check(&reopened.0, &blobs);
            checkpoints = open(&device).0;
        }
    }
    assert!(copied > 10_000, "{copied} bytes were moved");
}

#[test]
fn damage_to_a_long_blob_is_named() {
    let device = FaultyDevice::new(0);
    let mut blobs = BTreeMap::new();
    checkpoint(&open(&device).0, &mut blobs, 0..7);
    let name = "checkpoint-00000001.blobs";
    let bytes = device.contents(name).len() as u64;
    for offset in (512..bytes).step_by(7) {
        let damaged = device.after_power_loss(0);
        damaged.flip_bit(name, offset, (offset % 8) as u32);
        let (checkpoints, _) = open(&damaged);
        for (number, blob) in &blobs {
            match checkpoints.read(*blob) {
                Ok(bytes) => assert_eq!(bytes, content(*number), "blob {number}, byte {offset}"),
                Err(error) => {
                    assert!(matches!(&error, CheckpointError::Corrupt { file, .. } if file == name), "{error}")
                }
            }
        }
        assert!(!checkpoints.verify(&mut |_, _| ()).is_empty(), "byte {offset}");
    }
}
