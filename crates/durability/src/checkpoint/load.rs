//! Files of a load: blobs that a transaction writes as it goes, and that the log then names in place of their bytes.
//!
//! ```text
//! put, put ...   blobs go to files of the load; each is synced when it is full
//! finish         all of them are on disk, and their names        <- only then may the commit that names them go to the log
//! named          by the commit of this number                    replaying it needs the files
//!                    ... checkpoint ... checkpoint ...           those that have pages of them refer to the blobs as to their own
//! released       once both kept checkpoints are from after it    the files stay for what is referred to, as any other
//! ```
//!
//! A file that the log may need is listed in the manifests that are written meanwhile, so that an opening finds it needed. One that came
//! after the newest manifest is known by the log alone: none is removed before that was read ([`Checkpoints::adopt`],
//! [`Checkpoints::forget_unnamed`]).

use std::collections::BTreeMap;
use std::sync::Arc;

use types::BlobRef;

use super::blob_file::{BlobWriter, FileUse, PREFIX_BYTES};
use super::error::{CheckpointError, Result, corrupt, device_error};
use super::header::{BLOBS, is_of_load, load_number};
use super::manifest::Kept;
use super::{Checkpoints, sweep};
use crate::Lsn;
use crate::device::Access;

/// A file of a load.
#[derive(Clone, Copy, Debug)]
pub(super) enum LoadFile {
    /// It is being written, and nothing names it.
    Writing,
    /// It is on disk; the commit that names it, as far as that is known.
    Written(FileUse, Option<Lsn>),
}

/// The files that the log names, or is about to.
#[derive(Debug, Default)]
pub(super) struct LoadFiles(BTreeMap<u64, LoadFile>);

impl LoadFiles {
    /// Those that kept checkpoints list at opening: by a commit that the newest of them has, or by one that is read later.
    pub(super) fn of(kept: &[Kept]) -> LoadFiles {
        let newest = kept.first().map_or(0, |kept| kept.low);
        let files = kept.iter().flat_map(|kept| &kept.files).filter(|file| is_of_load(file.number));
        LoadFiles(files.map(|file| (file.number, LoadFile::Written(file.unused(), Some(newest)))).collect())
    }

    /// All of them.
    pub(super) fn numbers(&self) -> impl Iterator<Item = u64> {
        self.0.keys().copied()
    }

    /// One that is written.
    pub(super) fn written(&self, number: u64) -> Option<FileUse> {
        match self.0.get(&number)? {
            LoadFile::Writing => None,
            LoadFile::Written(file, _) => Some(*file),
        }
    }

    /// Those that are needed to replay the commits after this one.
    pub(super) fn needed_after(&self, low: Lsn) -> impl Iterator<Item = FileUse> {
        self.0.values().filter_map(move |file| match file {
            LoadFile::Written(file, named) if named.is_none_or(|lsn| lsn > low) => Some(*file),
            _ => None,
        })
    }

    /// Gives up those that only commits up to this one name.
    pub(super) fn release(&mut self, low: Lsn) {
        self.0.retain(|_, file| !matches!(file, LoadFile::Written(_, Some(lsn)) if *lsn <= low));
    }

    fn name(&mut self, number: u64, file: FileUse, lsn: Lsn) {
        debug_assert!(is_of_load(number) && file.number == number, "{number} is no file of a load, or another one");
        let newest = match self.0.get(&number) {
            Some(LoadFile::Written(_, Some(before))) => lsn.max(*before),
            _ => lsn,
        };
        self.0.insert(number, LoadFile::Written(file, Some(newest)));
    }
}

/// Writes the blobs of a load. Dropped before it is finished its files go. Where it is finished and no commit names it, they stay until
/// the database is opened again: the log may have failed, and nobody knows whether it has the commit.
pub struct LoadWriter {
    owner: Arc<Checkpoints>,
    current: Option<Current>,
    created: Vec<u64>,
    written: Vec<FileUse>,
    /// why a blob could not be written, for the end to tell
    failure: Option<CheckpointError>,
    /// whether no more blobs are taken
    is_over: bool,
    is_finished: bool,
}

struct Current {
    file: BlobWriter,
    salt: u64,
}

impl Checkpoints {
    /// Begins a load. The caller has opened the checkpoints for writing.
    pub fn begin_load(self: &Arc<Self>) -> LoadWriter {
        debug_assert!(self.access == Access::Write, "a load is written to a directory that is only read");
        let (created, written) = (Vec::new(), Vec::new());
        let (owner, failure) = (Arc::clone(self), None);
        LoadWriter { owner, current: None, created, written, failure, is_over: false, is_finished: false }
    }

    /// Keeps a file that the log names, in the commit `lsn`, until checkpoints make that needless. For the replay of the log.
    ///
    /// # Errors
    /// [`CheckpointError::Corrupt`] if the file is missing, damaged or another one; a failure of the device to read it.
    pub fn adopt(&self, number: u64, salt: u64, lsn: Lsn) -> Result<()> {
        let name = BLOBS.file_name(number);
        if !is_of_load(number) {
            return Err(corrupt(&name, 0, format!("commit {lsn} names it as a file of a load, and it is none")));
        }
        let known = self.state.read().file(number);
        let file = match known {
            Some(file) => file,
            None => {
                let opened = self.device.open(&name, Access::Read);
                let bytes = opened.and_then(|file| file.size());
                let bytes = match bytes {
                    Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                        return Err(corrupt(&name, 0, format!("it is missing, and commit {lsn} of the log names it")));
                    }
                    read => read.map_err(|source| device_error(format!("read {name}"), &*self.device, source))?,
                };
                let file = FileUse { number, salt, bytes, live_blobs: 0, live_bytes: 0 };
                file.check(&*self.device)?;
                file
            }
        };
        if file.salt != salt {
            return Err(corrupt(&name, 0, format!("commit {lsn} names another file of this name")));
        }
        self.state.write().loads.name(number, file.unused(), lsn);
        Ok(())
    }

    /// Removes the files of loads that neither a checkpoint nor the log needs: what was left when loads were cut off. To be called once
    /// the log was read.
    ///
    /// # Errors
    /// A failure of the device to list or remove files.
    pub fn forget_unnamed(&self) -> Result<()> {
        if self.access == Access::Read || !self.may_sweep {
            return Ok(());
        }
        let names = sweep::Names::list(&*self.device)?;
        let state = self.state.read();
        let unnamed = names.blobs.iter().copied().filter(|&number| is_of_load(number) && state.file(number).is_none());
        sweep::remove(&*self.device, BLOBS, unnamed.collect::<Vec<u64>>().into_iter()).map(drop)
    }

    /// The names of the files of loads that replaying the commits after this one may need.
    pub fn files_of_loads_after(&self, low: Lsn) -> Vec<String> {
        self.state.read().loads.needed_after(low).map(|file| file.name()).collect()
    }

    /// The bytes of those that replaying the commits after the newest checkpoint may need.
    pub fn load_bytes(&self) -> u64 {
        let state = self.state.read();
        let low = state.kept.first().map_or(0, |kept| kept.low);
        state.loads.needed_after(low).map(|file| file.bytes).sum()
    }
}

impl LoadWriter {
    /// Appends blobs, all of them to one file. Returns the salt of the file, by which the log is to name it with its number.
    ///
    /// # Errors
    /// [`CheckpointError::GivenUp`] after a failure of the device, which [`finish`](LoadWriter::finish) tells, and once the load is over.
    pub fn put<'b>(&mut self, blobs: impl Iterator<Item = &'b [u8]> + Clone) -> Result<(u64, Vec<BlobRef>)> {
        if self.is_over {
            return Err(CheckpointError::GivenUp { cause: "the load is over".into() });
        }
        self.append(blobs).map_err(|failure| {
            let cause = failure.to_string();
            (self.is_over, self.failure) = (true, Some(failure));
            CheckpointError::GivenUp { cause }
        })
    }

    fn append<'b>(&mut self, blobs: impl Iterator<Item = &'b [u8]> + Clone) -> Result<(u64, Vec<BlobRef>)> {
        let bytes: u64 = blobs.clone().map(|blob| blob.len() as u64 + PREFIX_BYTES).sum();
        let limit = self.owner.options.file_bytes;
        let is_full = |current: &Current| !current.file.is_empty() && current.file.bytes() + bytes > limit;
        if self.current.as_ref().is_some_and(is_full) {
            self.finish_file()?;
        }
        let mut current = match self.current.take() {
            Some(current) => current,
            None => self.create_file()?,
        };
        let piece_bytes = self.owner.options.piece_bytes;
        let places = blobs.map(|blob| Ok(current.file.put(blob, piece_bytes)?.0)).collect::<Result<Vec<BlobRef>>>();
        let (salt, places) = (current.salt, places?);
        debug_assert!(places.iter().all(|place| place.file == places[0].file), "one salt for several files");
        self.current = Some(current);
        Ok((salt, places))
    }

    fn create_file(&mut self) -> Result<Current> {
        let number = load_number(self.owner.take_file_number());
        self.created.push(number);
        self.owner.state.write().loads.0.insert(number, LoadFile::Writing);
        let options = &self.owner.options;
        let buffer = Vec::with_capacity(options.buffer_bytes);
        let file = BlobWriter::create(&self.owner.device, number, 0, buffer, options.buffer_bytes)?;
        let salt = file.salt();
        Ok(Current { file, salt })
    }

    fn finish_file(&mut self) -> Result<()> {
        if let Some(Current { file, .. }) = self.current.take() {
            self.written.push(file.finish()?.0);
        }
        Ok(())
    }

    /// Makes all blobs durable: from here on the log may name them, and checkpoints may refer to them.
    ///
    /// # Errors
    /// A failure of the device, now or before.
    pub fn finish(&mut self) -> Result<()> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        if self.is_over {
            return Err(CheckpointError::GivenUp { cause: "the load is over".into() });
        }
        self.is_over = true;
        self.finish_file()?;
        let fail = |source| device_error("sync the directory".to_string(), &*self.owner.device, source);
        self.owner.device.sync_dir().map_err(fail)?;
        debug_assert_eq!(self.written.len(), self.created.len(), "invariant 8: a file is named that is not on disk");
        let mut state = self.owner.state.write();
        state.loads.0.extend(self.written.iter().map(|file| (file.number, LoadFile::Written(*file, None))));
        self.is_finished = true;
        Ok(())
    }

    /// Notes the commit that names the blobs, once it is in the log.
    pub fn named_by(&mut self, lsn: Lsn) {
        debug_assert!(self.is_finished, "invariant 8: commit {lsn} names blobs that may not be on disk");
        let mut state = self.owner.state.write();
        self.written.iter().for_each(|file| state.loads.name(file.number, *file, lsn));
    }
}

impl Drop for LoadWriter {
    fn drop(&mut self) {
        if self.is_finished {
            return;
        }
        self.current = None;
        let mut state = self.owner.state.write();
        state.loads.0.retain(|number, _| !self.created.contains(number));
        drop(state);
        // What can't be removed goes with the next checkpoint, or opening.
        let _left = sweep::remove(&*self.owner.device, BLOBS, self.created.drain(..));
    }
}

impl std::fmt::Debug for LoadWriter {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("LoadWriter")
            .field("files", &self.created)
            .field("failure", &self.failure)
            .finish_non_exhaustive()
    }
}
