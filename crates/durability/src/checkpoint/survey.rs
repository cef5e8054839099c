//! A survey of checkpoints: figures, files, and whether they are whole.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use super::Checkpoints;
use super::blob_file::{self, FileUse};
use super::error::{CheckpointError, Result, corrupt, device_error};
use super::header::{BLOBS, Kind, MANIFEST, is_of_load};
use super::manifest::{Kept, Manifest};
use super::sweep::Names;
use crate::device::Access;

/// The contents of checkpoints, and the bytes written since they were opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckpointStats {
    /// Checkpoints that are kept: none, one or two.
    pub kept: usize,
    /// Files of blobs that they need.
    pub files: usize,
    /// The bytes of these files.
    pub file_bytes: u64,
    /// The bytes of the blobs that the newest checkpoint refers to.
    pub live_bytes: u64,
    /// Files kept open for readers.
    pub open_files: usize,
    /// Checkpoints published since opening.
    pub published: u64,
    /// Checkpoints given up since opening.
    pub given_up: u64,
    /// Bytes put into published checkpoints since opening.
    pub put_bytes: u64,
    /// Bytes copied out of files to be emptied since opening.
    pub copied_bytes: u64,
}

/// The kind of a file of checkpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckpointFileKind {
    /// Says what belongs to a checkpoint.
    Manifest,
    /// Holds blobs.
    Blobs,
    /// Holds blobs of a load, which the log may name.
    Load,
}

/// A file of checkpoints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointFile {
    /// Its name in the directory.
    pub name: String,
    /// Its kind.
    pub kind: CheckpointFileKind,
    /// The format version that it must have.
    pub version: u32,
    /// Its size.
    pub bytes: u64,
    /// Of a file of blobs: the bytes of the blobs that the newest checkpoint refers to. Of a manifest: all.
    pub live_bytes: u64,
    /// Blobs that the newest checkpoint refers to.
    pub live_blobs: u64,
    /// The kept checkpoints that need it, newest first. None: it is a leftover, or belongs to one that is being written
    /// or is damaged.
    pub needed_by: Vec<u64>,
}

/// Counts of the work since opening.
#[derive(Debug, Default)]
pub(super) struct Counts {
    published: AtomicU64,
    given_up: AtomicU64,
    put_bytes: AtomicU64,
    copied_bytes: AtomicU64,
}

impl Counts {
    pub(super) fn add_published(&self, put_bytes: u64, copied_bytes: u64) {
        self.published.fetch_add(1, Ordering::Relaxed);
        self.put_bytes.fetch_add(put_bytes, Ordering::Relaxed);
        self.copied_bytes.fetch_add(copied_bytes, Ordering::Relaxed);
    }

    pub(super) fn add_given_up(&self) {
        self.given_up.fetch_add(1, Ordering::Relaxed);
    }
}

impl Checkpoints {
    /// The contents of the checkpoints, and the work since opening.
    pub fn stats(&self) -> CheckpointStats {
        let kept = self.state.read().kept.clone();
        let files = needed(&kept);
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        CheckpointStats {
            kept: kept.len(),
            files: files.len(),
            file_bytes: files.values().map(|file| file.bytes).sum(),
            live_bytes: kept.first().map_or(0, |newest| newest.files.iter().map(|file| file.live_bytes).sum()),
            open_files: self.handles.count(),
            published: count(&self.counts.published),
            given_up: count(&self.counts.given_up),
            put_bytes: count(&self.counts.put_bytes),
            copied_bytes: count(&self.counts.copied_bytes),
        }
    }

    /// Every file of checkpoints in the directory: manifests, then files of blobs, by number.
    ///
    /// # Errors
    /// A failure of the device to list the files, or to tell the size of one: also of one that a sweep removes
    /// meanwhile.
    pub fn files(&self) -> Result<Vec<CheckpointFile>> {
        let kept = self.state.read().kept.clone();
        let names = Names::list(&*self.device)?;
        let mut files = Vec::new();
        for &number in &names.manifests {
            let (name, bytes) = self.name_and_size(MANIFEST, number)?;
            let needed_by = kept.iter().map(|kept| kept.number).filter(|&kept| kept == number).collect();
            let (kind, version) = (CheckpointFileKind::Manifest, MANIFEST.version());
            files.push(CheckpointFile { name, kind, version, bytes, live_bytes: bytes, live_blobs: 0, needed_by });
        }
        let newest = needed(kept.get(..1).unwrap_or_default());
        for &number in &names.blobs {
            let (name, bytes) = self.name_and_size(BLOBS, number)?;
            let needs = |kept: &&Kept| kept.files.iter().any(|file| file.number == number);
            let needed_by = kept.iter().filter(needs).map(|kept| kept.number).collect();
            let (live_bytes, live_blobs) =
                newest.get(&number).map_or((0, 0), |file| (file.live_bytes, file.live_blobs));
            let kind = if is_of_load(number) { CheckpointFileKind::Load } else { CheckpointFileKind::Blobs };
            let version = BLOBS.version();
            files.push(CheckpointFile { name, kind, version, bytes, live_bytes, live_blobs, needed_by });
        }
        Ok(files)
    }

    /// Reads every byte of the kept checkpoints and returns what is damaged or cannot be read, each with file and
    /// offset; also where the damage is in a blob that is no longer referred to. `progress` is told the bytes read
    /// and the bytes to read. Files that are given up meanwhile are passed over.
    pub fn verify(&self, progress: &mut dyn FnMut(u64, u64)) -> Vec<CheckpointError> {
        let kept = self.state.read().kept.clone();
        let mut damages = Vec::new();
        for &Kept { number, .. } in &kept {
            let damage = match Manifest::read(&*self.device, number) {
                Ok(Some(_)) => continue,
                Ok(None) => corrupt(&MANIFEST.file_name(number), 0, "zeros stand where its header should"),
                Err(damage) => damage,
            };
            let is_kept = self.state.read().kept.iter().any(|kept| kept.number == number);
            damages.extend(is_kept.then_some(damage));
        }
        let files = needed(&kept);
        let (mut done, total) = (0, files.values().map(|file| file.bytes).sum());
        for file in files.values() {
            let found = blob_file::walk(&*self.device, *file);
            if self.state.read().file(file.number).is_some() {
                damages.extend(found);
            }
            done += file.bytes;
            progress(done, total);
        }
        debug_assert_eq!(done, total, "every file is looked at");
        damages
    }

    fn name_and_size(&self, kind: Kind, number: u64) -> Result<(String, u64)> {
        let name = kind.file_name(number);
        let size = self.device.open(&name, Access::Read).and_then(|file| file.size());
        let size = size.map_err(|source| device_error(format!("look at {name}"), &*self.device, source))?;
        Ok((name, size))
    }
}

fn needed(kept: &[Kept]) -> BTreeMap<u64, FileUse> {
    // The newest comes last and says what lives.
    kept.iter().rev().flat_map(|kept| &kept.files).map(|file| (file.number, *file)).collect()
}
