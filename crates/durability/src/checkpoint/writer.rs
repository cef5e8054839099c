//! Writing a checkpoint.
//!
//! ```text
//!   put, keep ...    blobs go to files of this checkpoint; each is synced when it is full
//!   commit           sync the last file
//!                    manifest without header, synced; its name and those of the files durable
//!                    the header                          <- the checkpoint exists
//!                    sweep: what the two newest do not need goes
//! ```
//!
//! Anything that fails before the header gives the checkpoint up: its files are removed, the checkpoints before it are
//! as they were, and the next one starts anew. A sync that failed is not tried again, as a second one proves nothing.
//!
//! When the write of the header fails, it is not known whether the checkpoint exists. It is removed; if that fails too,
//! its files of blobs stay, so that it is whole in case it does exist, and the next sweep decides.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::Ordering;

use types::BlobRef;

use super::blob_file::{BlobWriter, FileUse, PREFIX_BYTES};
use super::error::{CheckpointError, Result};
use super::header::{BLOBS, MANIFEST};
use super::manifest::Manifest;
use super::{Checkpoints, emptying, sweep};
use crate::Lsn;

/// A checkpoint that is being written. Dropped without [`commit`](CheckpointWriter::commit) it is given up.
pub struct CheckpointWriter<'a> {
    owner: &'a Checkpoints,
    /// Files that are emptied by this checkpoint.
    emptied: HashSet<u64>,
    /// Every file that the checkpoint refers to or that was written for it, and what it needs of it.
    uses: BTreeMap<u64, FileUse>,
    /// Blobs that were kept already, and where they stand now.
    kept: HashMap<BlobRef, BlobRef>,
    /// The file that is being written.
    current: Option<BlobWriter>,
    /// Files that were created.
    created: Vec<u64>,
    buffer: Vec<u8>,
    manifest: Option<u64>,
    given_up: Option<String>,
    is_over: bool,
    put_bytes: u64,
    copied_bytes: u64,
}

/// A checkpoint that was published.
#[derive(Debug)]
pub struct PublishedCheckpoint {
    /// Its number.
    pub number: u64,
    /// The log can be trimmed below this LSN ([`Log::trim`](crate::Log::trim)): the two checkpoints that are kept need
    /// nothing before it. 0 as long as there is only one.
    pub trim_below: Lsn,
    /// Blobs that belong to it, new and kept.
    pub live_blobs: u64,
    /// Their bytes.
    pub live_bytes: u64,
    /// Bytes that were put.
    pub put_bytes: u64,
    /// Bytes that were copied out of files to be emptied.
    pub copied_bytes: u64,
    /// Files that were removed.
    pub removed_files: u64,
    /// Why files that are no longer needed could not be removed. The next checkpoint tries again; this one is
    /// published.
    pub leftovers: Option<CheckpointError>,
}

impl<'a> CheckpointWriter<'a> {
    pub(super) fn new(owner: &'a Checkpoints) -> CheckpointWriter<'a> {
        let state = owner.state.read();
        let (low, newest) = state.kept.first().map_or((0, &[][..]), |kept| (kept.low, &kept.files));
        // What the log needs from then on is not emptied.
        let needed: HashSet<u64> = state.loads.needed_after(low).map(|file| file.number).collect();
        let newest: Vec<FileUse> = newest.iter().filter(|file| !needed.contains(&file.number)).copied().collect();
        CheckpointWriter {
            owner,
            emptied: emptying::choose(&newest, owner.options.file_bytes),
            uses: BTreeMap::new(),
            kept: HashMap::new(),
            current: None,
            created: Vec::new(),
            buffer: Vec::with_capacity(owner.options.buffer_bytes),
            manifest: None,
            given_up: None,
            is_over: false,
            put_bytes: 0,
            copied_bytes: 0,
        }
    }

    /// Appends a blob. It belongs to the checkpoint, and can be read once that is published.
    ///
    /// # Errors
    /// A failure of the device, which gives the checkpoint up; [`CheckpointError::GivenUp`] from then on.
    pub fn put(&mut self, bytes: &[u8]) -> Result<BlobRef> {
        let blob = self.append(bytes)?;
        self.put_bytes += bytes.len() as u64;
        Ok(blob)
    }

    /// Makes a blob of an earlier checkpoint belong to this one as well. It stays where it is, unless its file is
    /// about to be emptied: then it is copied, and the reference to the copy comes back. So a caller that keeps
    /// references within blobs must look at what comes back.
    ///
    /// # Errors
    /// - [`CheckpointError::NotThere`] if no kept checkpoint holds the blob: it must be put anew.
    /// - [`CheckpointError::Corrupt`] if the blob stands beyond the end of its file, or its bytes had to be read and
    ///   are damaged.
    /// - A failure of the device. One to read the blob, and both errors above, do not give the checkpoint up; one to
    ///   write the copy does, and [`CheckpointError::GivenUp`] comes from then on.
    pub fn keep(&mut self, blob: BlobRef) -> Result<BlobRef> {
        self.check()?;
        if let Some(&now) = self.kept.get(&blob) {
            return Ok(now);
        }
        if self.created.contains(&blob.file) {
            return Ok(blob);
        }
        let file = self.owner.file_of(blob)?;
        file.check_place(blob)?;
        let pieces = self.owner.pieces(file, blob)?;
        let now = if self.emptied.contains(&blob.file) {
            let bytes = self.owner.read(blob)?;
            let copy = self.append(&bytes)?;
            self.copied_bytes += bytes.len() as u64;
            copy
        } else {
            self.uses.entry(blob.file).or_insert_with(|| file.unused()).count(blob, &pieces);
            blob
        };
        debug_assert!(!self.emptied.contains(&now.file), "invariant 3: {now} is kept in a file that is about to go");
        self.kept.insert(blob, now);
        Ok(now)
    }

    /// As [`keep`](Self::keep), without a look at the blob: it stays where it is, and so does its file. For a caller that was told
    /// that it is damaged, and has nothing to put in its place.
    ///
    /// # Errors
    /// - [`CheckpointError::NotThere`] if no kept checkpoint holds the blob.
    /// - [`CheckpointError::Corrupt`] if the blob stands beyond the end of its file.
    pub fn keep_in_place(&mut self, blob: BlobRef) -> Result<BlobRef> {
        self.check()?;
        let file = self.owner.file_of(blob)?;
        file.check_place(blob)?;
        let pieces = self.owner.pieces(file, blob)?;
        self.emptied.remove(&blob.file);
        self.uses.entry(blob.file).or_insert_with(|| file.unused()).count(blob, &pieces);
        let known = self.kept.insert(blob, blob);
        debug_assert!(known.is_none(), "invariant 3: {blob} is there twice");
        Ok(blob)
    }

    /// Publishes the checkpoint. When this returns it survives a crash, and only then are files removed that the two
    /// newest checkpoints do not need.
    ///
    /// The caller has made the log stable up to all that the blobs contain, and everything after `low` is in the log or
    /// in the blobs.
    ///
    /// # Errors
    /// [`CheckpointError::GivenUp`] if an earlier call has failed; a failure of the device to write or sync, which
    /// gives the checkpoint up. Where only its publication failed, an opening may find it nevertheless. That old
    /// files could not be removed is no error: see [`PublishedCheckpoint::leftovers`].
    pub fn commit(mut self, low: Lsn, payload: &[u8]) -> Result<PublishedCheckpoint> {
        self.check()?;
        let outcome = self.write_all(low, payload);
        let manifest = outcome.map_err(|error| self.give_up(error))?;
        self.is_over = true;
        let (trim_below, swept) = self.owner.publish(&manifest);
        let (live_blobs, live_bytes) = manifest.live();
        self.owner.counts.add_published(self.put_bytes, self.copied_bytes);
        let (removed_files, leftovers) = match swept {
            Ok(removed) => (removed, None),
            Err(error) => (0, Some(error)),
        };
        Ok(PublishedCheckpoint {
            number: manifest.number,
            trim_below,
            live_blobs,
            live_bytes,
            put_bytes: self.put_bytes,
            copied_bytes: self.copied_bytes,
            removed_files,
            leftovers,
        })
    }

    /// Bytes put and copied so far.
    pub fn written_bytes(&self) -> u64 {
        self.put_bytes + self.copied_bytes
    }

    fn check(&self) -> Result<()> {
        match &self.given_up {
            None => Ok(()),
            Some(cause) => Err(CheckpointError::GivenUp { cause: cause.clone() }),
        }
    }

    fn append(&mut self, bytes: &[u8]) -> Result<BlobRef> {
        self.check()?;
        let written = self.write(bytes);
        let (blob, pieces) = written.map_err(|error| self.give_up(error))?;
        let file = FileUse { number: blob.file, salt: 0, bytes: 0, live_blobs: 0, live_bytes: 0 };
        debug_assert!(self.created.contains(&blob.file), "{blob} was put into another checkpoint's file");
        self.uses.entry(blob.file).or_insert(file).count(blob, &pieces);
        Ok(blob)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(BlobRef, Vec<BlobRef>)> {
        let end = |file: &BlobWriter| file.bytes() + PREFIX_BYTES + bytes.len() as u64;
        let limit = self.owner.options.file_bytes;
        if self.current.as_ref().is_some_and(|file| !file.is_empty() && end(file) > limit) {
            self.finish_file()?;
        }
        let mut file = match self.current.take() {
            Some(file) => file,
            None => self.create_file()?,
        };
        let blob = file.put(bytes, self.owner.options.piece_bytes);
        self.current = Some(file);
        blob
    }

    fn create_file(&mut self) -> Result<BlobWriter> {
        let (number, options) = (self.owner.take_file_number(), &self.owner.options);
        self.created.push(number);
        let checkpoint = self.owner.state.read().next_manifest;
        let buffer = std::mem::take(&mut self.buffer);
        BlobWriter::create(&self.owner.device, number, checkpoint, buffer, options.buffer_bytes)
    }

    /// Makes the current file durable.
    fn finish_file(&mut self) -> Result<()> {
        let Some(file) = self.current.take() else {
            return Ok(());
        };
        let (file, buffer) = file.finish()?;
        self.buffer = buffer;
        let counted = self.uses.entry(file.number).or_insert(file);
        *counted = FileUse { live_blobs: counted.live_blobs, live_bytes: counted.live_bytes, ..file };
        let (all, live) = counted.share();
        debug_assert!(live <= all, "{live} bytes live of {all}");
        Ok(())
    }

    fn write_all(&mut self, low: Lsn, payload: &[u8]) -> Result<Manifest> {
        self.finish_file()?;
        let number = {
            let mut state = self.owner.state.write();
            state.next_manifest += 1;
            state.next_manifest - 1
        };
        self.manifest = Some(number);
        self.list_loads();
        debug_assert!(self.current.is_none(), "invariant 8: a file is not on disk that the manifest names");
        debug_assert!(
            self.uses.keys().all(|file| !self.emptied.contains(file)),
            "invariant 3: the checkpoint needs a file that was emptied"
        );
        let files = self.uses.values().copied().collect();
        let manifest = Manifest { number, low, payload: payload.to_vec(), files };
        manifest.write(&*self.owner.device)?.publish()?;
        Ok(manifest)
    }

    /// Adds the files that replaying the log needs, from the checkpoint before this one on.
    fn list_loads(&mut self) {
        let state = self.owner.state.read();
        let low = state.kept.first().map_or(0, |kept| kept.low);
        for file in state.loads.needed_after(low) {
            self.uses.entry(file.number).or_insert_with(|| file.unused());
        }
    }

    /// Removes what was written. Returns the failure that made it necessary.
    fn give_up(&mut self, cause: CheckpointError) -> CheckpointError {
        self.given_up = Some(cause.to_string());
        self.remove_files();
        cause
    }

    /// Removes the manifest, then the files; what cannot be removed is left to the next sweep.
    fn remove_files(&mut self) {
        self.current = None;
        let device = &*self.owner.device;
        let removed = sweep::remove(device, MANIFEST, self.manifest.take().into_iter());
        // As long as the manifest may be there, so must be what it refers to.
        if removed.is_ok() {
            let _ = sweep::remove(device, BLOBS, self.created.drain(..));
        }
        self.owner.counts.add_given_up();
    }
}

impl Drop for CheckpointWriter<'_> {
    fn drop(&mut self) {
        if !self.is_over && self.given_up.is_none() {
            self.remove_files();
        }
        self.owner.is_writing.store(false, Ordering::Release);
    }
}

impl std::fmt::Debug for CheckpointWriter<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("CheckpointWriter")
            .field("put_bytes", &self.put_bytes)
            .field("copied_bytes", &self.copied_bytes)
            .field("given_up", &self.given_up)
            .finish_non_exhaustive()
    }
}
