//! Manifests: what belongs to a checkpoint.
//!
//! ```text
//!   offset  bytes
//!        0    512  header (`header.rs`), magic "LSTCKPT\0", with the words
//!                    number of the checkpoint, as in the name
//!                    low: the log is needed after this LSN
//!                    count of files
//!                    bytes of the payload
//!                    checksum: crc32c of all that follows the header
//!      512     40  for each file of blobs: number, salt, length, live blobs, live bytes (8 bytes each)
//!                  the payload, up to the end of the file
//! ```
//!
//! **Publication.** The file is written with zeros for a header, synced, and its name is made durable; then the header is
//! written durably. A sector arrives whole or not at all, so this is the moment at which the checkpoint exists. Therefore
//! - a header of zeros is a checkpoint that was never published: a leftover, no damage;
//! - a valid header testifies that everything else of the checkpoint had been on disk: whatever does not match is damage.
//!
//! A header may have been read from the page cache only, after a crash of the process between its write and its sync. So
//! it is written once more when the checkpoint is found ([`Manifest::mend`]).

use types::BlobRef;

use super::blob_file::FileUse;
use super::error::{Result, corrupt, device_error};
use super::header::{HEADER_BYTES, MANIFEST, is_of_load};
use crate::Lsn;
use crate::device::{Access, Device, DeviceFile};
use crate::format::frame::u64_at;

const WORDS: usize = 5;
/// What the manifest says of one file.
pub(super) const FILE_BYTES: u64 = 40;

/// A published checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// Counts the checkpoints.
    pub number: u64,
    /// The least LSN that any part of the checkpoint is consistent at: the log is needed from the next one on.
    pub low: Lsn,
    /// A payload for the writer of the checkpoint.
    pub payload: Vec<u8>,
    /// The files that its blobs stand in, by number.
    pub(super) files: Vec<FileUse>,
}

/// What is remembered of a checkpoint that is kept.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    pub(super) number: u64,
    pub(super) low: Lsn,
    pub(super) files: Vec<FileUse>,
}

impl Manifest {
    /// The blobs of the checkpoint and their bytes.
    pub fn live(&self) -> (u64, u64) {
        let add = |(blobs, bytes): (u64, u64), file: &FileUse| {
            (blobs.saturating_add(file.live_blobs), bytes.saturating_add(file.live_bytes))
        };
        self.files.iter().fold((0, 0), add)
    }

    /// Whether a blob can be in the checkpoint: it refers to the file.
    pub fn refers_to(&self, blob: BlobRef) -> bool {
        self.files.iter().any(|file| file.number == blob.file)
    }

    fn body(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.files.len() * FILE_BYTES as usize + self.payload.len());
        for &FileUse { number, salt, bytes: length, live_blobs, live_bytes } in &self.files {
            for word in [number, salt, length, live_blobs, live_bytes] {
                bytes.extend_from_slice(&word.to_le_bytes());
            }
        }
        debug_assert_eq!(bytes.len() as u64, self.files.len() as u64 * FILE_BYTES, "the payload comes after the files");
        bytes.extend_from_slice(&self.payload);
        bytes
    }

    fn header(&self, body: &[u8]) -> [u8; HEADER_BYTES] {
        let checksum = u64::from(crc32c::crc32c(body));
        let words: [u64; WORDS] = [self.number, self.low, self.files.len() as u64, self.payload.len() as u64, checksum];
        // A program from before would look for a file of a load under another name.
        let version = if self.files.iter().any(|file| is_of_load(file.number)) { MANIFEST.version() } else { 1 };
        MANIFEST.encode(version, &words)
    }

    /// Writes everything but the header, durably. [`UnpublishedManifest::publish`] is the rest.
    pub(super) fn write<'a>(&self, device: &'a dyn Device) -> Result<UnpublishedManifest<'a>> {
        let name = MANIFEST.file_name(self.number);
        let fail = |source| device_error(format!("write {name}"), device, source);
        debug_assert!(
            self.files.is_sorted_by(|left, right| left.number < right.number),
            "files are looked up by their numbers: {:?}",
            self.files
        );
        let body = self.body();
        let file = device.create(&name).map_err(fail)?;
        let zeros_and_body = [&[0; HEADER_BYTES][..], &body].concat();
        file.write_at(&zeros_and_body, 0).and_then(|()| file.sync()).map_err(fail)?;
        // The names of the files of blobs become durable with it.
        device.sync_dir().map_err(fail)?;
        Ok(UnpublishedManifest { device, file, name, header: self.header(&body) })
    }

    /// Writes the header once more.
    pub(super) fn mend(&self, device: &dyn Device) -> Result<()> {
        let name = MANIFEST.file_name(self.number);
        let fail = |source| device_error(format!("mend {name}"), device, source);
        let file = device.open(&name, Access::Write).map_err(fail)?;
        file.write_durably(&self.header(&self.body()), 0).map_err(fail)
    }

    /// Reads a manifest; `None` if it was never published.
    pub(super) fn read(device: &dyn Device, number: u64) -> Result<Option<Manifest>> {
        let name = MANIFEST.file_name(number);
        let fail = |source| device_error(format!("read {name}"), device, source);
        let file = device.open(&name, Access::Read).map_err(fail)?;
        let size = file.size().map_err(fail)?;
        let mut header = [0; HEADER_BYTES];
        let header = &mut header[..size.min(HEADER_BYTES as u64) as usize];
        file.read_at(header, 0).map_err(fail)?;
        let Some(words) = MANIFEST.decode::<WORDS>(header, &name)? else {
            return Ok(None);
        };
        let [found, low, file_count, payload_bytes, checksum] = words;
        if found != number {
            return Err(corrupt(&name, 0, "its header names another checkpoint, was it renamed?"));
        }
        let files_bytes = file_count.checked_mul(FILE_BYTES);
        let end = files_bytes.and_then(|bytes| bytes.checked_add(payload_bytes)?.checked_add(HEADER_BYTES as u64));
        if end != Some(size) {
            let detail = format!("the file has {size} bytes, and its header says otherwise");
            return Err(corrupt(&name, size.min(end.unwrap_or(u64::MAX)), detail));
        }
        let mut body = vec![0; size as usize - HEADER_BYTES];
        file.read_at(&mut body, HEADER_BYTES as u64).map_err(fail)?;
        if u64::from(crc32c::crc32c(&body)) != checksum {
            return Err(corrupt(&name, HEADER_BYTES as u64, "the checksum of the manifest does not match"));
        }
        let payload = body.split_off((file_count * FILE_BYTES) as usize);
        let files = body.chunks_exact(FILE_BYTES as usize).map(decode_file).collect();
        Ok(Some(Manifest { number, low, payload, files }))
    }
}

fn decode_file(bytes: &[u8]) -> FileUse {
    let [number, salt, length, live_blobs, live_bytes] = std::array::from_fn(|at| u64_at(bytes, 8 * at));
    FileUse { number, salt, bytes: length, live_blobs, live_bytes }
}

/// A manifest that is on disk but for its header.
pub(super) struct UnpublishedManifest<'a> {
    device: &'a dyn Device,
    file: Box<dyn DeviceFile>,
    name: String,
    header: [u8; HEADER_BYTES],
}

impl UnpublishedManifest<'_> {
    /// From here on the checkpoint exists. When this fails, that is not known.
    pub(super) fn publish(self) -> Result<()> {
        let fail = |source| device_error(format!("publish {}", self.name), self.device, source);
        self.file.write_durably(&self.header, 0).map_err(fail)
    }
}
