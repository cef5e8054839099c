//! Checkpoints: images of the database on disk, from which recovery starts (Hathi, section 3; L-Store, section 5).
//!
//! This module knows nothing of tables. A checkpoint is a set of **blobs**, bytes that are written once and never
//! changed, and a **manifest** that says which files they stand in, together with a payload that its writer
//! understands. A checkpoint refers to the blobs of earlier ones that are still true, so it costs what has changed.
//!
//! ```text
//!   checkpoint-00000007.manifest   checkpoint-00000008.manifest      the two newest stay
//!        |            |                 |        |      |
//!        v            v                 |        |      v
//!   ...01.blobs   ...05.blobs <---------|--------+   ...06.blobs      one file or more for each checkpoint
//!        ^                              |
//!        +------------------------------+
//! ```
//!
//! | module | what it owns |
//! |---|---|
//! | `header` | the first sector of every file; names |
//! | `blob_file`, `behind` | files of blobs: write, read, check; a thread that writes for another |
//! | `manifest` | manifests, and the moment at which a checkpoint exists |
//! | `writer` | [`CheckpointWriter`]: put, keep, commit, or give up |
//! | `emptying` | which files are so dead that what lives in them moves |
//! | `sweep` | removing what the two kept checkpoints do not need |
//! | `load` | [`LoadWriter`]: files that a load writes and the log names |
//! | `hold` | files that stay for readers although no checkpoint needs them |
//! | `handles` | files kept open for readers |
//! | `survey` | what there is: for inspection, verification and figures |
//!
//! The promises, and the tests that check them (`tests/checkpoint/`):
//! 1. A checkpoint whose commit returned is found whole after a crash, or a newer one, with the one before it
//!    (`crash.rs`).
//! 2. A checkpoint that was not published leaves nothing behind and changes nothing; the next one works
//!    (`faults.rs`).
//! 3. Damage is found before a wrong byte is handed out, and named by file and offset; if it hits the newest
//!    manifest, the one before it is used, and that is told (`damage.rs`).
//! 4. A file goes once neither of the two needs it and no reader holds it, and never before (`model.rs`).
//! 5. A file that a commit in the log names is there until both are from after that commit (`loads.rs`).
//!
//! **The lock.** The caller that opens checkpoints holds the lock of the directory
//! ([`lock_directory`](crate::lock_directory)), as leftovers are removed, and those of a running process must not
//! be.

mod behind;
mod blob_file;
mod emptying;
mod error;
pub(crate) mod fuzzing;
mod handles;
mod header;
mod hold;
mod load;
mod manifest;
mod survey;
mod sweep;
mod writer;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::RwLock;
use types::BlobRef;

use self::blob_file::FileUse;
pub use self::error::CheckpointError;
use self::error::{Result, corrupt, device_error};
use self::handles::Handles;
use self::header::{HEADER_BYTES, MANIFEST, count_of, is_of_load};
pub use self::hold::BlobHold;
use self::hold::Holds;
use self::load::LoadFiles;
pub use self::load::LoadWriter;
use self::manifest::Kept;
pub use self::manifest::Manifest;
pub use self::survey::{CheckpointFile, CheckpointFileKind, CheckpointStats};
pub use self::writer::{CheckpointWriter, PublishedCheckpoint};
use crate::Lsn;
use crate::device::{Access, Device, DeviceFile};

/// So many published checkpoints are kept.
const KEPT: usize = 2;

/// The sizes of checkpoints. They may differ from one opening to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckpointOptions {
    /// A file of blobs takes no blob that would end beyond this size, unless it is the only one.
    pub file_bytes: u64,
    /// Writes go through a buffer of this size, and to the disk in multiples of it.
    pub buffer_bytes: usize,
    /// Files that are kept open for readers.
    pub open_files: usize,
    /// A longer blob is written in pieces of this size, at most 1 GiB.
    pub piece_bytes: usize,
}

impl Default for CheckpointOptions {
    fn default() -> CheckpointOptions {
        CheckpointOptions { file_bytes: 256 << 20, buffer_bytes: 1 << 20, open_files: 128, piece_bytes: 1 << 30 }
    }
}

/// The checkpoints that were found at opening.
#[derive(Debug, Default)]
pub struct FoundCheckpoints {
    /// Published checkpoints that are whole, as far as manifests and the headers and lengths of files tell; newest
    /// first, at most two.
    pub manifests: Vec<Manifest>,
    /// The published checkpoints that are damaged or cannot be read, newest first. Nothing is removed as long as
    /// there are any, until the next checkpoint is published.
    pub damaged: Vec<CheckpointError>,
    /// Files that interrupted checkpoints had left behind, and that were removed.
    pub removed_files: u64,
}

/// The checkpoints of a directory. Share it between threads by reference or `Arc`.
pub struct Checkpoints {
    device: Arc<dyn Device>,
    access: Access,
    options: CheckpointOptions,
    state: RwLock<StoreState>,
    handles: Handles,
    holds: Holds,
    is_writing: AtomicBool,
    /// Whether what nothing needs may go at opening.
    may_sweep: bool,
    counts: survey::Counts,
}

struct StoreState {
    /// Newest first, at most two.
    kept: Vec<Kept>,
    next_manifest: u64,
    next_file: u64,
    loads: LoadFiles,
}

impl StoreState {
    /// The file of a blob, if a kept checkpoint or the log needs it.
    fn file(&self, number: u64) -> Option<FileUse> {
        let find = |kept: &Kept| {
            let place = kept.files.binary_search_by_key(&number, |file| file.number).ok()?;
            Some(kept.files[place])
        };
        self.kept.iter().find_map(find).or_else(|| self.loads.written(number))
    }
}

impl Checkpoints {
    /// Opens the checkpoints on `device`. The caller holds the lock of the directory, the exclusive one if `access` is
    /// for writing. With it leftovers of interrupted checkpoints are removed; without it nothing is changed.
    ///
    /// Damaged checkpoints are told and left out. Where only such are found, the database is not empty but damaged:
    /// a caller that goes on must know from elsewhere (the log was never trimmed) that nothing is missing. A checkpoint
    /// of an unknown format version is refused, as going on from an older one would do away with it.
    ///
    /// # Errors
    /// [`CheckpointError::UnknownVersion`] if the newest manifests, or a file that they need, have another format; a
    /// failure of the device to list the files and, where `access` is for writing, to write the newest manifest once
    /// more or to remove leftovers. Damage is no error: see [`FoundCheckpoints::damaged`].
    pub fn open(device: Arc<dyn Device>, access: Access) -> Result<(Checkpoints, FoundCheckpoints)> {
        Checkpoints::open_with(device, access, CheckpointOptions::default())
    }

    /// Opens the checkpoints as [`open`](Self::open) does, with sizes of the caller's choice.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with(
        device: Arc<dyn Device>,
        access: Access,
        options: CheckpointOptions,
    ) -> Result<(Checkpoints, FoundCheckpoints)> {
        let options = CheckpointOptions {
            file_bytes: options.file_bytes.max(HEADER_BYTES as u64),
            buffer_bytes: options.buffer_bytes.clamp(HEADER_BYTES, 1 << 30),
            open_files: options.open_files.max(1),
            piece_bytes: options.piece_bytes.clamp(1, blob_file::PIECE_BYTES_MAX),
        };
        let names = sweep::Names::list(&*device)?;
        let mut found = FoundCheckpoints::default();
        for &number in names.manifests.iter().rev() {
            match read_whole(&*device, number) {
                Ok(None) => {}
                Ok(Some(manifest)) if found.manifests.len() < KEPT => found.manifests.push(manifest),
                Ok(Some(_)) => break,
                Err(refused @ CheckpointError::UnknownVersion { .. }) => return Err(refused),
                Err(damage) => found.damaged.push(damage),
            }
        }
        let keep = |manifest: &Manifest| {
            let files = manifest.files.clone();
            Kept { number: manifest.number, low: manifest.low, files }
        };
        let kept: Vec<Kept> = found.manifests.iter().map(keep).collect();
        debug_assert!(
            kept.len() <= KEPT && kept.is_sorted_by(|left, right| left.number > right.number),
            "the newest checkpoint comes first: {kept:?}"
        );
        let named = kept.iter().flat_map(|kept| &kept.files).map(|file| file.number);
        let last_file = names.blobs.iter().copied().chain(named).map(count_of).max().unwrap_or(0);
        let next_manifest = names.manifests.last().map_or(1, |last| last.saturating_add(1));
        let loads = LoadFiles::of(&kept);
        let state = StoreState { kept, next_manifest, next_file: last_file.saturating_add(1), loads };
        let may_sweep = access == Access::Write && found.damaged.is_empty();
        if access == Access::Write {
            if let Some(newest) = found.manifests.first() {
                newest.mend(&*device)?;
            }
            if may_sweep {
                // The log may name those of loads.
                let loads = names.blobs.iter().copied().filter(|&number| is_of_load(number)).collect();
                found.removed_files = sweep::sweep(&*device, &names, &state.kept, &loads)?;
            }
        }
        let checkpoints = Checkpoints {
            handles: Handles::new(Arc::clone(&device), options.open_files),
            device,
            access,
            options,
            state: RwLock::new(state),
            holds: Holds::default(),
            is_writing: AtomicBool::new(false),
            may_sweep,
            counts: survey::Counts::default(),
        };
        Ok((checkpoints, found))
    }

    /// Begins a checkpoint. There is one at a time; a writer that is dropped without [`CheckpointWriter::commit`]
    /// leaves nothing behind.
    ///
    /// # Errors
    /// [`CheckpointError::Underway`] if another checkpoint is being written; [`CheckpointError::ReadOnly`] if the
    /// checkpoints were opened for reading.
    pub fn begin(&self) -> Result<CheckpointWriter<'_>> {
        if self.access == Access::Read {
            let source = std::io::ErrorKind::ReadOnlyFilesystem.into();
            return Err(device_error("write a checkpoint".to_string(), &*self.device, source));
        }
        if self.is_writing.swap(true, Ordering::Acquire) {
            return Err(CheckpointError::Underway { directory: self.device.location() });
        }
        Ok(CheckpointWriter::new(self))
    }

    /// Reads a blob of a kept checkpoint. Nothing but the very bytes that were put comes back: the checksum is
    /// verified, and an error names file and offset. Any number of threads may read.
    ///
    /// # Errors
    /// [`CheckpointError::NotThere`] if no kept checkpoint needs the file; [`CheckpointError::Corrupt`] if the file
    /// is missing or too short, or the checksum does not match; a failure of the device to open or read the file.
    pub fn read(&self, blob: BlobRef) -> Result<Vec<u8>> {
        let file = self.file_of(blob)?;
        file.check_place(blob)?;
        blob_file::read(&*self.device, &*self.handle(file, blob)?, blob)
    }

    fn handle(&self, file: FileUse, blob: BlobRef) -> Result<Arc<dyn DeviceFile>> {
        match self.handles.get(blob.file) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                // Perhaps it was given up meanwhile.
                self.file_of(blob)?;
                Err(corrupt(&file.name(), 0, "it is missing"))
            }
            opened => opened.map_err(|source| device_error(format!("open {}", file.name()), &*self.device, source)),
        }
    }

    /// The pieces of a blob, if it is a long one.
    fn pieces(&self, file: FileUse, blob: BlobRef) -> Result<Vec<BlobRef>> {
        if !blob_file::is_long(blob) {
            return Ok(Vec::new());
        }
        blob_file::pieces(&*self.device, &*self.handle(file, blob)?, blob)
    }

    /// Whether a kept checkpoint holds the file of the blob. If not, [`CheckpointWriter::keep`] and
    /// [`read`](Checkpoints::read) say [`CheckpointError::NotThere`].
    pub fn holds(&self, blob: BlobRef) -> bool {
        self.file_of(blob).is_ok()
    }

    /// Takes a checkpoint out of the two that are kept, because something that it needs turned out to be damaged. The
    /// one before it, from which the database goes on then, is thus not taken for the third newest. The files stay
    /// until the next checkpoint is published, and an opening before that finds this one again.
    pub fn distrust(&self, number: u64) {
        self.state.write().kept.retain(|kept| kept.number != number);
    }

    fn file_of(&self, blob: BlobRef) -> Result<FileUse> {
        let file = self.state.read().file(blob.file);
        // A page of a load may be away when the log needs its file no longer, and no checkpoint has referred to it yet.
        let held = || self.holds.file(blob.file).filter(|file| is_of_load(file.number));
        file.or_else(held).ok_or(CheckpointError::NotThere { blob })
    }

    fn take_file_number(&self) -> u64 {
        let mut state = self.state.write();
        debug_assert!(state.file(state.next_file).is_none(), "a file would be written over that a checkpoint needs");
        state.next_file += 1;
        state.next_file - 1
    }

    /// Makes a manifest the newest one that is kept, and removes what is not needed any more. Returns where the log can
    /// be trimmed, and how many files were removed.
    fn publish(&self, manifest: &Manifest) -> (Lsn, Result<u64>) {
        let kept = {
            let mut state = self.state.write();
            let newest = Kept { number: manifest.number, low: manifest.low, files: manifest.files.clone() };
            state.kept.insert(0, newest);
            state.kept.truncate(KEPT);
            if let [_, older] = &state.kept[..] {
                let low = older.low;
                state.loads.release(low);
            }
            state.kept.clone()
        };
        debug_assert!(
            kept.is_sorted_by(|left, right| left.number > right.number),
            "invariant 8: an older checkpoint would be taken for the newest: {kept:?}"
        );
        let has_two = kept.len() == KEPT;
        let trim_below =
            if has_two { kept.iter().map(|kept| kept.low.saturating_add(1)).min().unwrap_or(0) } else { 0 };
        debug_assert!(
            kept.iter().all(|kept| trim_below <= kept.low.saturating_add(1)),
            "invariant 8: the log is trimmed below {trim_below}, and a checkpoint needs it"
        );
        let needed: BTreeMap<u64, FileUse> =
            kept.iter().flat_map(|kept| &kept.files).map(|file| (file.number, *file)).collect();
        let mut held = self.holds.files();
        held.extend(self.state.read().loads.numbers());
        self.handles.retain(|number| needed.contains_key(&number) || held.contains(&number));
        let names = sweep::Names::list(&*self.device);
        let swept = names.and_then(|names| sweep::sweep(&*self.device, &names, &kept, &held));
        (trim_below, swept)
    }
}

impl std::fmt::Debug for Checkpoints {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Checkpoints")
            .field("directory", &self.device.location())
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}

/// Reads a published manifest, if all of its files are there.
fn read_whole(device: &dyn Device, number: u64) -> Result<Option<Manifest>> {
    let Some(manifest) = Manifest::read(device, number)? else {
        return Ok(None);
    };
    for file in &manifest.files {
        file.check(device).map_err(|error| match error {
            CheckpointError::Corrupt { file, offset, detail } => {
                let detail = format!("{detail}, and {} needs it", MANIFEST.file_name(number));
                CheckpointError::Corrupt { file, offset, detail }
            }
            other => other,
        })?;
    }
    Ok(Some(manifest))
}
