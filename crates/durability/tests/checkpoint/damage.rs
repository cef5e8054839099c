//! Damaged files: every flipped byte is found by an opening or a verification, no wrong byte is ever handed out, and the
//! older checkpoint is used where the newest manifest is hit.

use std::collections::BTreeMap;

use durability::{Access, CheckpointError, Device, FoundCheckpoints};
use testkit::FaultyDevice;

use crate::support::{Ledger, User, blobs_of, content, files, open, open_checked, open_for};

const OLDER: &str = "checkpoint-00000001.manifest";
const NEWEST: &str = "checkpoint-00000002.manifest";

type Files = BTreeMap<String, Vec<u8>>;

/// Two small checkpoints, the newest with a file of its own and one that both need.
fn written() -> Files {
    let (device, mut ledger) = (FaultyDevice::new(0), Ledger::default());
    let (checkpoints, mut user) = open_checked(&device, &mut ledger);
    for _ in 0..2 {
        user.add(4);
        user.checkpoint(&checkpoints, &mut ledger).unwrap();
    }
    let all: Files = files(&device).into_iter().map(|name| (name.clone(), device.contents(&name))).collect();
    assert_eq!(all.len(), 4, "{:?}", all.keys());
    all
}

fn put(files: &Files) -> FaultyDevice {
    let device = FaultyDevice::new(0);
    files.iter().for_each(|(name, bytes)| device.put(name, bytes.clone()));
    device
}

fn numbers(found: &FoundCheckpoints) -> Vec<u64> {
    found.manifests.iter().map(|manifest| manifest.number).collect()
}

/// The file and offset that an error names.
fn place(error: &CheckpointError) -> (&str, u64) {
    match error {
        CheckpointError::Corrupt { file, offset, .. } => (file, *offset),
        other => panic!("{other}"),
    }
}

#[test]
fn every_flipped_bit_is_noticed_and_no_wrong_byte_comes_out() {
    let files = written();
    let (mut by_opening, mut by_reading, mut by_verifying) = (0, 0, 0);
    for (name, bytes) in &files {
        for offset in 0..bytes.len() as u64 {
            let device = put(&files);
            device.flip_bit(name, offset, (offset % 8) as u32);
            let (checkpoints, found) = open_for(&device, Access::Read).unwrap();
            for damage in &found.damaged {
                let (file, told) = place(damage);
                assert!(file == name && told <= offset, "{damage}");
            }
            let mut misread = 0;
            for (number, blob) in found.manifests.iter().flat_map(|manifest| blobs_of(&manifest.payload)) {
                match checkpoints.read(blob) {
                    Ok(bytes) => assert_eq!(bytes, content(number)),
                    Err(error) => {
                        assert_eq!(place(&error), (name.as_str(), blob.offset));
                        assert!((blob.offset..blob.offset + u64::from(blob.len)).contains(&offset), "{error}");
                        misread += 1;
                    }
                }
            }
            let damages = checkpoints.verify(&mut |_, _| {});
            assert!(damages.len() == 1 || !found.damaged.is_empty(), "byte {offset} of {name}");
            assert!(damages.iter().all(|damage| place(damage).0 == name && place(damage).1 <= offset));
            match (found.damaged.len(), misread) {
                (0, 0) => by_verifying += 1,
                (0, _) => by_reading += 1,
                _ => by_opening += 1,
            }
            let healthy: &[u64] = if name == NEWEST { &[1] } else { &[2] };
            assert!(!name.ends_with("manifest") || numbers(&found) == healthy, "{name}");
        }
    }
    println!("noticed: {by_opening} by opening, {by_reading} by reading, {by_verifying} by verifying alone");
    assert!(by_opening > 1500 && by_reading > 100 && by_verifying > 50);
}

/// With a damaged newest manifest nothing is removed, and the next checkpoint is built on the older one.
#[test]
fn a_damaged_newest_manifest_leads_to_the_older_one() {
    let files_before = written();
    let device = put(&files_before);
    device.flip_bit(NEWEST, 600, 0);
    let (checkpoints, found) = open(&device).unwrap();
    assert_eq!((numbers(&found), found.damaged.len(), found.removed_files), (vec![1], 1, 0));
    assert!(files(&device).iter().eq(files_before.keys()), "nothing is removed");
    let mut ledger = Ledger::default();
    let mut user = User::restored(found.manifests.first(), &ledger);
    // They need a file, beside those that only the damaged manifest knows.
    user.add(2);
    let published = user.checkpoint(&checkpoints, &mut ledger).unwrap();
    assert_eq!((published.number, published.trim_below), (3, 2));
    assert!(!files(&device).contains(NEWEST), "now it is");
    drop(checkpoints);
    let (_, found) = open(&device).unwrap();
    assert_eq!((numbers(&found), found.damaged.len()), (vec![3, 1], 0));
}

#[test]
fn a_missing_shortened_or_lengthened_file_is_told() {
    let all = written();
    for name in all.keys() {
        let mut missing = all.clone();
        missing.remove(name);
        let (_, found) = open(&put(&missing)).unwrap();
        let is_manifest = name.ends_with("manifest");
        assert_eq!(found.damaged.is_empty(), is_manifest, "{name}");
        for bytes in [all[name][..all[name].len() / 2].to_vec(), [&all[name][..], &[0]].concat(), vec![1; 40]] {
            let mut changed = all.clone();
            changed.insert(name.clone(), bytes);
            let device = put(&changed);
            let (_, found) = open(&device).unwrap();
            assert!(found.damaged.iter().all(|damage| place(damage).0 == name) && !found.damaged.is_empty());
            assert!(files(&device).iter().eq(all.keys()), "nothing is removed");
        }
    }
    // A file that both need leaves nothing; one that the newest alone needs leaves the older one.
    for (file, left) in [("checkpoint-00000001.blobs", vec![]), ("checkpoint-00000002.blobs", vec![1])] {
        let mut missing = all.clone();
        missing.remove(file);
        let (_, found) = open(&put(&missing)).unwrap();
        assert_eq!(numbers(&found), left);
        assert!(found.damaged[0].to_string().contains("it is missing"), "{}", found.damaged[0]);
        assert!(found.damaged[0].to_string().contains(NEWEST), "{}", found.damaged[0]);
    }
}

#[test]
fn files_of_two_databases_do_not_mix() {
    let (one, two) = (written(), written());
    for name in one.keys().filter(|name| name.ends_with("blobs")) {
        let mut mixed = one.clone();
        mixed.insert(name.clone(), two[name].clone());
        let (_, found) = open(&put(&mixed)).unwrap();
        assert!(!found.damaged.is_empty() && found.damaged.iter().all(|damage| place(damage).0 == name));
    }
    let mut renamed = one.clone();
    renamed.insert("checkpoint-00000009.manifest".to_string(), one[OLDER].clone());
    let (_, found) = open(&put(&renamed)).unwrap();
    assert_eq!((numbers(&found), place(&found.damaged[0]).0), (vec![2, 1], "checkpoint-00000009.manifest"));
}

/// A newer program's files are refused, and not swept away.
#[test]
fn an_unknown_version_is_refused() {
    let all = written();
    for (name, bytes) in &all {
        let mut newer = bytes.clone();
        newer[8] = 3;
        let checksum = crc32c::crc32c_append(crc32c::crc32c(&newer[..12]), &newer[16..512]);
        newer[12..16].copy_from_slice(&checksum.to_le_bytes());
        let device = put(&all);
        device.put(name, newer);
        let error = open(&device).unwrap_err();
        assert!(matches!(&error, CheckpointError::UnknownVersion { file, found: 3, .. } if file == name), "{error}");
        assert!(error.to_string().contains("format version 3"), "{error}");
        assert_eq!(device.steps(), 0, "nothing was changed");
    }
}

/// A header that lies about what follows is damage, whatever it says, and costs no memory.
#[test]
fn a_lying_manifest_is_damage() {
    let all = written();
    for (word, lie) in [(4, u64::MAX), (4, 1 << 40), (5, u64::MAX), (5, 1 << 40), (5, 0), (4, 0), (6, 7)] {
        let mut bytes = all[NEWEST].clone();
        bytes[8 * word..8 * word + 8].copy_from_slice(&lie.to_le_bytes());
        let checksum = crc32c::crc32c_append(crc32c::crc32c(&bytes[..12]), &bytes[16..512]);
        bytes[12..16].copy_from_slice(&checksum.to_le_bytes());
        let device = put(&all);
        device.put(NEWEST, bytes);
        let (_, found) = open(&device).unwrap();
        assert_eq!((numbers(&found), place(&found.damaged[0]).0), (vec![1], NEWEST), "word {word}");
    }
}

/// A checkpoint that was never published is a leftover, not damage; files with other names are left alone.
#[test]
fn leftovers_are_removed_and_nothing_else() {
    let all = written();
    let device = put(&all);
    let others = ["redo-00000001.log", "redo.trim", "checkpoint-3.blobs", "checkpoint-00000003.blobs.bak", "LOCK"];
    others.iter().for_each(|name| device.put(name, vec![1; 9]));
    let mut unpublished = all[NEWEST].clone();
    unpublished[..512].fill(0);
    device.put("checkpoint-00000003.manifest", unpublished);
    device.put("checkpoint-00000004.manifest", Vec::new());
    device.put("checkpoint-00000009.blobs", vec![5; 3000]);
    let (checkpoints, found) = open(&device).unwrap();
    assert_eq!((numbers(&found), found.damaged.len(), found.removed_files), (vec![2, 1], 0, 3));
    let mut expected: Vec<&str> = all.keys().map(String::as_str).chain(others).collect();
    expected.sort_unstable();
    assert!(files(&device).iter().eq(expected));
    assert_eq!(checkpoints.files().unwrap().len(), 4);
    assert!(device.list().unwrap().len() == 9);
}

/// A blob that is found damaged while its file is emptied can be put anew in the same checkpoint.
/// What cannot be put anew stays where it is, with all else that its file has, and so does what is wrong with it.
#[test]
fn a_damaged_blob_can_stay_in_a_file_that_was_to_be_emptied() {
    let device = FaultyDevice::new(0);
    let (checkpoints, _) = open(&device).unwrap();
    let mut writer = checkpoints.begin().unwrap();
    let [damaged, whole] = [b"damaged", b"is fine"].map(|bytes| writer.put(bytes).unwrap());
    writer.put(&[1; 900]).unwrap();
    writer.commit(1, b"").unwrap();
    let mut writer = checkpoints.begin().unwrap();
    [damaged, whole].into_iter().for_each(|blob| assert_eq!(writer.keep(blob).unwrap(), blob));
    writer.commit(2, b"").unwrap();
    device.flip_bit("checkpoint-00000001.blobs", damaged.offset + 2, 5);
    for low in 3..6 {
        let mut writer = checkpoints.begin().unwrap();
        assert!(writer.keep(damaged).is_err());
        assert_eq!(writer.keep_in_place(damaged).unwrap(), damaged);
        assert_eq!(writer.keep(whole).unwrap(), whole, "nothing is to be gained by a copy");
        let published = writer.commit(low, b"").unwrap();
        assert_eq!((published.live_blobs, published.copied_bytes), (2, 0));
    }
    drop(checkpoints);
    let (checkpoints, _) = open(&device).unwrap();
    assert_eq!(checkpoints.read(whole).unwrap(), b"is fine");
    assert_eq!(place(&checkpoints.read(damaged).unwrap_err()), ("checkpoint-00000001.blobs", damaged.offset));
}

#[test]
fn a_damaged_blob_is_told_when_it_is_copied_and_can_be_put_anew() {
    let device = FaultyDevice::new(0);
    let (checkpoints, _) = open(&device).unwrap();
    let mut writer = checkpoints.begin().unwrap();
    let lives = writer.put(b"lives").unwrap();
    writer.put(&[1; 900]).unwrap();
    writer.commit(1, b"").unwrap();
    let mut writer = checkpoints.begin().unwrap();
    assert_eq!(writer.keep(lives).unwrap(), lives);
    writer.commit(2, b"").unwrap();
    device.flip_bit("checkpoint-00000001.blobs", lives.offset + 2, 5);
    let mut writer = checkpoints.begin().unwrap();
    let error = writer.keep(lives).unwrap_err();
    assert_eq!(place(&error), ("checkpoint-00000001.blobs", lives.offset));
    let anew = writer.put(b"lives").unwrap();
    let published = writer.commit(3, b"").unwrap();
    assert_eq!((published.live_blobs, published.put_bytes, published.copied_bytes), (1, 5, 0));
    assert_eq!(checkpoints.read(anew).unwrap(), b"lives");
}
