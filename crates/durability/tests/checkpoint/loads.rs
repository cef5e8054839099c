//! Files of loads: they are there as long as a commit in the log names them, or a checkpoint refers to their blobs; after a crash, too,
//! whichever checkpoint is found.

use std::collections::BTreeMap;
use std::sync::Arc;

use durability::{Access, CheckpointError, Checkpoints, Device, Lsn};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use testkit::FaultyDevice;
use types::BlobRef;

use crate::support::{content, open, open_for};

/// A load that a commit names: its blobs by their numbers.
#[derive(Clone, Debug)]
struct Named {
    lsn: Lsn,
    salt: u64,
    blobs: Vec<(u64, BlobRef)>,
}

/// What a database knows: the commits of its log that name loads, and what its checkpoints refer to.
#[derive(Clone, Default)]
struct Known {
    newest: Lsn,
    /// of its newest checkpoint
    low: Lsn,
    log: Vec<Named>,
    referred: BTreeMap<u64, BlobRef>,
}

fn opened(device: &FaultyDevice) -> Arc<Checkpoints> {
    Arc::new(open(device).unwrap().0)
}

/// Reads the log after a checkpoint as an opening does, and checks every blob.
fn replay(checkpoints: &Checkpoints, low: Lsn, known: &Known) {
    for Named { lsn, salt, blobs } in known.log.iter().filter(|named| named.lsn > low) {
        checkpoints.adopt(blobs[0].1.file, *salt, *lsn).unwrap();
        check(checkpoints, blobs.iter().copied());
    }
    checkpoints.forget_unnamed().unwrap();
}

fn check(checkpoints: &Checkpoints, blobs: impl Iterator<Item = (u64, BlobRef)>) {
    blobs.for_each(|(number, blob)| assert_eq!(checkpoints.read(blob).unwrap(), content(number), "{blob}"));
}

fn load(checkpoints: &Arc<Checkpoints>, known: &mut Known, next: &mut u64, random: &mut StdRng) {
    let mut load = checkpoints.begin_load();
    let mut puts = Vec::new();
    for _ in 0..random.random_range(1..4) {
        let numbers: Vec<u64> = (*next..*next + random.random_range(1..4)).collect();
        *next += numbers.len() as u64;
        let bytes: Vec<Vec<u8>> = numbers.iter().map(|number| content(*number)).collect();
        let (salt, blobs) = load.put(bytes.iter().map(Vec::as_slice)).unwrap();
        assert!(blobs.iter().all(|blob| blob.file == blobs[0].file), "{blobs:?}");
        puts.push((salt, numbers.into_iter().zip(blobs).collect()));
    }
    // Checkpoints may come in its midst, and before its commit is known.
    (0..random.random_range(0..2)).for_each(|_| checkpoint(checkpoints, known, random));
    // Now and then it is rolled back.
    if random.random_range(0..4) == 0 {
        return;
    }
    load.finish().unwrap();
    assert!(load.put([&[1u8][..]].into_iter()).is_err(), "it is over");
    (0..random.random_range(0..2)).for_each(|_| checkpoint(checkpoints, known, random));
    known.newest += 1;
    load.named_by(known.newest);
    known.log.extend(puts.into_iter().map(|(salt, blobs)| Named { lsn: known.newest, salt, blobs }));
}

/// A checkpoint of all up to the newest commit, or of less; blobs die.
fn checkpoint(checkpoints: &Checkpoints, known: &mut Known, random: &mut StdRng) {
    known.low = known.low.max(known.newest.saturating_sub(random.random_range(0..2)));
    let low = known.low;
    let taken = known.log.iter().filter(|named| named.lsn <= low).flat_map(|named| named.blobs.iter().copied());
    let mut referred: BTreeMap<u64, BlobRef> = taken.collect();
    referred.extend(known.referred.clone());
    referred.retain(|_, _| random.random_range(0..5) > 0);
    let mut writer = checkpoints.begin().unwrap();
    let kept = referred.iter().filter_map(|(number, blob)| match writer.keep(*blob) {
        // Nothing has referred to it for too long.
        Err(CheckpointError::NotThere { .. }) => None,
        kept => Some((*number, kept.unwrap())),
    });
    known.referred = kept.collect();
    let published = writer.commit(low, &[]).unwrap();
    known.log.retain(|named| named.lsn >= published.trim_below);
}

fn run(seed: u64) {
    let mut random = StdRng::seed_from_u64(seed);
    let (device, mut known, mut next) = (FaultyDevice::new(seed), Known::default(), 1);
    let mut checkpoints = opened(&device);
    for _ in 0..40 {
        match random.random_range(0..6) {
            0..3 => load(&checkpoints, &mut known, &mut next, &mut random),
            3 | 4 => checkpoint(&checkpoints, &mut known, &mut random),
            _ => {
                // It is opened as after a crash: with the newest checkpoint, or with the one before.
                drop(checkpoints);
                let (found, manifests) = open(&device).unwrap();
                let at = random.random_range(0..manifests.manifests.len().max(1));
                let low = manifests.manifests.get(at).map_or(0, |manifest| manifest.low);
                replay(&found, low, &known);
                let reader = open_for(&device, Access::Read).unwrap().0;
                replay(&reader, low, &known);
                checkpoints = Arc::new(found);
            }
        }
        check(&checkpoints, known.log.iter().flat_map(|named| named.blobs.iter().copied()));
        check(&checkpoints, known.referred.iter().map(|(number, blob)| (*number, *blob)));
    }
    // Once nothing is named or referred to any more all of them go.
    (known.referred, known.newest) = (BTreeMap::new(), known.newest + 1);
    for _ in 0..3 {
        checkpoints.begin().unwrap().commit(known.newest, &[]).unwrap();
    }
    let left: Vec<String> = device.list().unwrap().into_iter().filter(|name| name.starts_with("load-")).collect();
    assert!(left.is_empty(), "seed {seed}: {left:?}");
}

#[test]
fn files_stay_while_the_log_or_a_checkpoint_needs_them_and_go_then() {
    (0..300).for_each(run);
}

#[test]
fn what_the_log_does_not_name_is_removed_once_it_was_read() {
    let device = FaultyDevice::new(0);
    let checkpoints = opened(&device);
    let mut load = checkpoints.begin_load();
    let (salt, blobs) = load.put([&b"abc"[..]].into_iter()).unwrap();
    load.finish().unwrap();
    // The power goes before the commit.
    let image = device.after_process_crash(0);
    let reopened = opened(&image);
    assert_eq!(image.list().unwrap().len(), 1, "the log may name it");
    assert!(reopened.adopt(blobs[0].file, salt + 1, 1).unwrap_err().to_string().contains("load-00000001"));
    assert!(reopened.adopt(1, salt, 1).unwrap_err().to_string().contains("it is none"));
    reopened.forget_unnamed().unwrap();
    assert!(image.list().unwrap().is_empty());
    let error = reopened.adopt(blobs[0].file, salt, 1).unwrap_err().to_string();
    assert!(error.contains("load-00000001.blobs") && error.contains("it is missing"), "{error}");
}
