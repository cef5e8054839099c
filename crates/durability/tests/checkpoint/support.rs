//! A user of checkpoints, every byte of which can be checked after a crash.
//!
//! The user holds a set of blobs, named by number; the bytes of a blob follow from its number. The payload of a
//! checkpoint lists numbers and references. A ledger remembers which checkpoints were tried and which were published, so
//! that what an opening finds can be told right from wrong.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use durability::{
    Access, CheckpointError, CheckpointOptions, Checkpoints, Device, FoundCheckpoints, Manifest, PublishedCheckpoint,
};
use testkit::FaultyDevice;
use types::BlobRef;

/// Sizes that make files and buffers change hands often.
pub const SMALL: CheckpointOptions =
    CheckpointOptions { file_bytes: 6000, buffer_bytes: 600, open_files: 2, piece_bytes: usize::MAX };

/// The bytes of a blob: mostly short, now and then longer than the buffer, than a file, or empty.
pub fn content(number: u64) -> Vec<u8> {
    let mix = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let length = match mix >> 59 {
        0 => 0,
        1 => 1,
        2 => 2000,
        3 => 7000,
        class => (mix >> 32) % (class * 16) + 1,
    };
    (0..length).map(|i| (mix >> (i % 8 * 8)) as u8 ^ (i / 8) as u8).collect()
}

/// Opens the checkpoints for writing, as small as can be.
pub fn open(device: &FaultyDevice) -> Result<(Checkpoints, FoundCheckpoints), CheckpointError> {
    open_for(device, Access::Write)
}

pub fn open_for(device: &FaultyDevice, access: Access) -> Result<(Checkpoints, FoundCheckpoints), CheckpointError> {
    Checkpoints::open_with(Arc::new(device.clone()), access, SMALL)
}

/// The blobs of a user, with their places once they are published.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    pub blobs: BTreeMap<u64, Option<BlobRef>>,
    next: u64,
}

impl User {
    /// The user as a checkpoint knows it. New blobs have higher numbers than all that `ledger` has seen.
    pub fn restored(manifest: Option<&Manifest>, ledger: &Ledger) -> User {
        let mut user = User { next: ledger.next_blob, ..User::default() };
        if let Some(manifest) = manifest {
            user.blobs = blobs_of(&manifest.payload).into_iter().map(|(number, blob)| (number, Some(blob))).collect();
        }
        user
    }

    /// So many new blobs.
    pub fn add(&mut self, count: u64) {
        self.blobs.extend((self.next..self.next + count).map(|number| (number, None)));
        self.next += count;
    }

    /// Forgets each blob that `is_dead` names.
    pub fn forget(&mut self, is_dead: impl Fn(u64) -> bool) {
        self.blobs.retain(|&number, _| !is_dead(number));
    }

    /// Writes a checkpoint of all blobs and notes it.
    pub fn checkpoint(
        &mut self,
        checkpoints: &Checkpoints,
        ledger: &mut Ledger,
    ) -> Result<PublishedCheckpoint, CheckpointError> {
        ledger.next_blob = self.next;
        let mut writer = checkpoints.begin()?;
        let mut placed = BTreeMap::new();
        for (&number, &blob) in &self.blobs {
            let now = match blob {
                None => writer.put(&content(number))?,
                Some(blob) => writer.keep(blob)?,
            };
            placed.insert(number, now);
        }
        let payload = payload_of(&placed);
        let low = ledger.tried(payload.clone());
        let published = writer.commit(low, &payload)?;
        ledger.published(low);
        self.blobs = placed.into_iter().map(|(number, blob)| (number, Some(blob))).collect();
        Ok(published)
    }

    /// Writes everything but the manifest, then thinks better of it.
    pub fn abandon(&self, checkpoints: &Checkpoints) -> Result<(), CheckpointError> {
        let mut writer = checkpoints.begin()?;
        for (&number, &blob) in &self.blobs {
            match blob {
                None => writer.put(&content(number))?,
                Some(blob) => writer.keep(blob)?,
            };
        }
        Ok(())
    }
}

fn payload_of(placed: &BTreeMap<u64, BlobRef>) -> Vec<u8> {
    let entry = |(number, blob): (&u64, &BlobRef)| [&number.to_le_bytes()[..], &blob.to_bytes()].concat();
    placed.iter().flat_map(entry).collect()
}

/// The blobs that a payload lists.
pub fn blobs_of(payload: &[u8]) -> BTreeMap<u64, BlobRef> {
    let entry = |bytes: &[u8]| {
        let number = u64::from_le_bytes(bytes[..8].try_into().unwrap());
        (number, BlobRef::from_bytes(bytes[8..].try_into().unwrap()))
    };
    payload.chunks_exact(8 + BlobRef::ENCODED_LEN).map(entry).collect()
}

/// The checkpoints that were tried: by `low`, which counts the tries, the payload and whether the commit returned.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    tries: BTreeMap<u64, (Vec<u8>, bool)>,
    next_low: u64,
    next_blob: u64,
    /// The log would be trimmed up to here.
    pub trim_below: u64,
}

impl Ledger {
    fn tried(&mut self, payload: Vec<u8>) -> u64 {
        self.next_low += 1;
        self.tries.insert(self.next_low, (payload, false));
        self.next_low
    }

    fn published(&mut self, low: u64) {
        self.tries.get_mut(&low).unwrap().1 = true;
    }

    /// The lows of what is published, oldest first.
    pub fn lows(&self) -> Vec<u64> {
        self.tries.iter().filter(|(_, (_, is_published))| *is_published).map(|(&low, _)| low).collect()
    }

    /// Checks what was found against what was done; from then on it counts as published, and what was not found as lost.
    pub fn check(&mut self, found: &FoundCheckpoints, checkpoints: &Checkpoints) {
        assert!(found.damaged.is_empty(), "a crash looks like damage: {:?}", found.damaged);
        let lows: Vec<u64> = found.manifests.iter().map(|manifest| manifest.low).collect();
        for (place, low) in self.lows().into_iter().rev().take(2).enumerate() {
            let there = lows.get(place).copied();
            assert!(there.is_some_and(|there| there >= low), "checkpoint {low} was published, found are {lows:?}");
        }
        let low = lows.iter().min().copied().unwrap_or(0);
        assert!(self.trim_below <= low + 1, "the log is trimmed below {} and needed from {low}", self.trim_below);
        for manifest in &found.manifests {
            let (payload, is_published) = self.tries.get_mut(&manifest.low).expect("a checkpoint that was tried");
            assert_eq!(&manifest.payload, payload);
            *is_published = true;
            for (number, blob) in blobs_of(payload) {
                assert_eq!(checkpoints.read(blob).unwrap(), content(number), "blob {number}");
                assert!(manifest.refers_to(blob) && checkpoints.holds(blob));
            }
        }
        self.tries.retain(|low, _| lows.first().is_some_and(|newest| low <= newest));
        assert_eq!(checkpoints.verify(&mut |done, total| assert!(done <= total)).len(), 0);
    }
}

/// The files of checkpoints that must be there for these manifests, and no others.
pub fn files_of(manifests: &[Manifest]) -> BTreeSet<String> {
    let name = |manifest: &Manifest| format!("checkpoint-{:08}.manifest", manifest.number);
    let mut files: BTreeSet<String> = manifests.iter().map(name).collect();
    for manifest in manifests {
        let blobs = blobs_of(&manifest.payload).into_values();
        files.extend(blobs.map(|blob| format!("checkpoint-{:08}.blobs", blob.file)));
    }
    files
}

/// The files that are there.
pub fn files(device: &FaultyDevice) -> BTreeSet<String> {
    device.list().unwrap().into_iter().collect()
}

/// Opens and checks; blobs that are not needed must be gone.
pub fn open_checked(device: &FaultyDevice, ledger: &mut Ledger) -> (Checkpoints, User) {
    let (checkpoints, found) = open(device).unwrap();
    ledger.check(&found, &checkpoints);
    assert_eq!(files(device), files_of(&found.manifests));
    let user = User::restored(found.manifests.first(), ledger);
    (checkpoints, user)
}

/// Names the run that failed, so that it can be replayed.
pub struct Run {
    pub step: u64,
    pub seed: u64,
}

impl Drop for Run {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("failed with step {} and seed {}", self.step, self.seed);
        }
    }
}
