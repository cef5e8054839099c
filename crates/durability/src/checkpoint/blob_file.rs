//! The files that blobs stand in.
//!
//! ```text
//!   offset  bytes
//!        0    512  header (`header.rs`), magic "LSTBLOB\0", with the words
//!                    number of the file, as in its name
//!                    salt: random, tells the file from another of the same number
//!                    number of the checkpoint that it was written for, 0 for a load
//!      512         blobs, one after the other, up to the end of the file:
//!                     4  length
//!                     4  crc32c of the bytes
//!                     4  seal: crc32c of salt, offset of the first byte, length and checksum
//!                        the bytes: where a `BlobRef` points
//! ```
//!
//! A blob that is longer than a piece ([`CheckpointOptions::piece_bytes`](super::CheckpointOptions::piece_bytes)) is written in
//! pieces, which are blobs of the file like others, and behind them in the same file a blob that lists them:
//!
//! ```text
//!   piece | piece | ... | count (8) | offset (8), length (4), crc32c (4) of each
//! ```
//!
//! The reference leads to the list; the top bit of its length, [`LONG`], tells. So its file has all of it.
//!
//! A file is written once from start to end, through one buffer: every write begins at a multiple of the buffer's
//! size and is as long as it, or longer for a blob that is. The file counts once it is synced and a manifest names
//! it, with its salt and length; before, it is a leftover that is never read. So nothing in it needs to stand a
//! torn write.
//!
//! A reader needs nothing but the reference. The seals are for [`walk`], which checks a whole file without knowing
//! the references to it.

use std::sync::Arc;

use types::BlobRef;

use super::behind::WriteBehind;
use super::error::{CheckpointError, Result, corrupt, device_error};
use super::header::{BLOBS, HEADER_BYTES};
use crate::device::{Access, Device, DeviceFile};
use crate::format::frame::{u32_at, u64_at};
use crate::format::segment::random_number;

/// In the length of a reference: it leads to the list of the pieces of a longer blob.
const LONG: u32 = 1 << 31;
/// The longest piece.
pub(super) const PIECE_BYTES_MAX: usize = 1 << 30;
const LISTED_BYTES: usize = 16;

/// Bytes before each blob.
pub(super) const PREFIX_BYTES: u64 = 12;
const HEADER_END: u64 = HEADER_BYTES as u64;
const WALK_BYTES: u64 = 1 << 20;

/// A file of blobs as a manifest describes it, and what the checkpoint of the manifest needs of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileUse {
    pub(super) number: u64,
    pub(super) salt: u64,
    /// The length of the file.
    pub(super) bytes: u64,
    /// Blobs that the checkpoint refers to, and their bytes.
    pub(super) live_blobs: u64,
    pub(super) live_bytes: u64,
}

impl FileUse {
    pub(super) fn name(&self) -> String {
        BLOBS.file_name(self.number)
    }

    /// The file with nothing in it referred to yet.
    pub(super) fn unused(self) -> FileUse {
        FileUse { live_blobs: 0, live_bytes: 0, ..self }
    }

    /// One more blob is referred to: with its pieces, if it is a long one.
    pub(super) fn count(&mut self, blob: BlobRef, pieces: &[BlobRef]) {
        self.live_blobs += 1 + pieces.len() as u64;
        self.live_bytes += pieces.iter().chain([&blob]).map(|blob| u64::from(blob.len & !LONG)).sum::<u64>();
    }

    /// The bytes of all blobs with what stands before each, and those of them that are live.
    pub(super) fn share(&self) -> (u64, u64) {
        (
            self.bytes.saturating_sub(HEADER_END),
            self.live_bytes.saturating_add(self.live_blobs.saturating_mul(PREFIX_BYTES)),
        )
    }

    /// Refuses a reference to what is not in the file.
    pub(super) fn check_place(&self, blob: BlobRef) -> Result<()> {
        let end = blob.offset.checked_add(u64::from(blob.len & !LONG));
        if blob.offset >= HEADER_END + PREFIX_BYTES && end.is_some_and(|end| end <= self.bytes) {
            return Ok(());
        }
        let len = blob.len & !LONG;
        let detail = format!("a blob of {len} bytes cannot stand here, the file has {} bytes", self.bytes);
        Err(corrupt(&self.name(), blob.offset, detail))
    }

    /// Checks that the file is the one that is meant, and whole as far as its length tells.
    pub(super) fn check(&self, device: &dyn Device) -> Result<Box<dyn DeviceFile>> {
        let name = self.name();
        let fail = |source| device_error(format!("read {name}"), device, source);
        let file = match device.open(&name, Access::Read) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(corrupt(&name, 0, "it is missing"));
            }
            opened => opened.map_err(fail)?,
        };
        let size = file.size().map_err(fail)?;
        let mut bytes = [0; HEADER_BYTES];
        let bytes = &mut bytes[..size.min(HEADER_END) as usize];
        file.read_at(bytes, 0).map_err(fail)?;
        let Some([number, salt]) = BLOBS.decode(bytes, &name)? else {
            return Err(corrupt(&name, 0, "zeros stand where its header should"));
        };
        if (number, salt) != (self.number, self.salt) {
            return Err(corrupt(
                &name,
                0,
                "it is not the file that the checkpoint was written to, was it copied here?",
            ));
        }
        if size != self.bytes {
            let detail = format!("the file should have {} bytes and has {size}", self.bytes);
            return Err(corrupt(&name, size.min(self.bytes), detail));
        }
        Ok(file)
    }
}

/// Reads a blob after its place was checked.
pub(super) fn read(device: &dyn Device, file: &dyn DeviceFile, blob: BlobRef) -> Result<Vec<u8>> {
    let mut whole = Vec::new();
    if is_long(blob) {
        for piece in pieces(device, file, blob)? {
            read_into(device, file, piece, &mut whole)?;
        }
    } else {
        read_into(device, file, blob, &mut whole)?;
        debug_assert_eq!(whole.len(), blob.len as usize, "a whole blob");
    }
    Ok(whole)
}

/// Whether a blob stands in pieces.
pub(super) fn is_long(blob: BlobRef) -> bool {
    blob.len & LONG != 0
}

/// The pieces of a long blob.
pub(super) fn pieces(device: &dyn Device, file: &dyn DeviceFile, blob: BlobRef) -> Result<Vec<BlobRef>> {
    let mut list = Vec::new();
    read_into(device, file, BlobRef { len: blob.len & !LONG, ..blob }, &mut list)?;
    let broken = || corrupt(&BLOBS.file_name(blob.file), blob.offset, "it does not list the pieces of a blob");
    list_of(&list, blob).ok_or_else(broken)
}

/// Decodes a list; `None` if it is none.
fn list_of(list: &[u8], blob: BlobRef) -> Option<Vec<BlobRef>> {
    let (count, listed) = list.split_at_checked(8)?;
    let piece = |bytes: &[u8]| {
        let [len, checksum] = [8, 12].map(|at| u32_at(bytes, at));
        BlobRef { file: blob.file, offset: u64_at(bytes, 0), len, checksum }
    };
    let pieces: Vec<BlobRef> = listed.chunks_exact(LISTED_BYTES).map(piece).collect();
    let is_right = u64_at(count, 0) == pieces.len() as u64 && listed.len() == pieces.len() * LISTED_BYTES;
    (is_right && pieces.iter().all(|piece| !is_long(*piece))).then_some(pieces)
}

/// Appends the bytes of a blob that is not long.
fn read_into(device: &dyn Device, file: &dyn DeviceFile, blob: BlobRef, whole: &mut Vec<u8>) -> Result<()> {
    let name = BLOBS.file_name(blob.file);
    let from = whole.len();
    whole.resize(from + blob.len as usize, 0);
    file.read_at(&mut whole[from..], blob.offset).map_err(|source| read_error(device, &name, blob, source))?;
    if crc32c::crc32c(&whole[from..]) != blob.checksum {
        return Err(mismatch(&name, blob.offset, u64::from(blob.len)));
    }
    Ok(())
}

fn read_error(device: &dyn Device, name: &str, blob: BlobRef, source: std::io::Error) -> CheckpointError {
    if source.kind() == std::io::ErrorKind::UnexpectedEof {
        return corrupt(name, blob.offset, format!("the file ends within a blob of {} bytes", blob.len));
    }
    device_error(format!("read {} bytes at byte {} of {name}", blob.len, blob.offset), device, source)
}

fn mismatch(name: &str, offset: u64, bytes: u64) -> CheckpointError {
    corrupt(name, offset, format!("the checksum of a blob of {bytes} bytes does not match"))
}

/// Checks every byte of a file, whatever is referred to. Returns what is damaged.
pub(super) fn walk(device: &dyn Device, file: FileUse) -> Vec<CheckpointError> {
    let mut damages = Vec::new();
    if let Err(error) = file.check(device).and_then(|handle| walk_blobs(device, file, &*handle, &mut damages)) {
        damages.push(error);
    }
    damages
}

fn walk_blobs(
    device: &dyn Device,
    file: FileUse,
    handle: &dyn DeviceFile,
    damages: &mut Vec<CheckpointError>,
) -> Result<()> {
    let name = file.name();
    let fail = |source| device_error(format!("read {name}"), device, source);
    let mut at = HEADER_END;
    let mut chunk = Vec::new();
    while at < file.bytes {
        let mut prefix = [0; PREFIX_BYTES as usize];
        let offset = at + PREFIX_BYTES;
        if offset > file.bytes {
            return Err(corrupt(&name, at, "the file ends before a blob does"));
        }
        handle.read_at(&mut prefix, at).map_err(fail)?;
        let [len, checksum, sealed] = [0, 4, 8].map(|word| u32_at(&prefix, word));
        if sealed != seal(file.salt, offset, len, checksum) || u64::from(len) > file.bytes - offset {
            return Err(corrupt(&name, at, "what stands before a blob is damaged"));
        }
        let end = offset + u64::from(len);
        let (mut found, mut from) = (0, offset);
        while from < end {
            chunk.resize(WALK_BYTES.min(end - from) as usize, 0);
            handle.read_at(&mut chunk, from).map_err(fail)?;
            found = crc32c::crc32c_append(found, &chunk);
            from += chunk.len() as u64;
        }
        if found != checksum {
            damages.push(mismatch(&name, offset, u64::from(len)));
        }
        at = end;
    }
    Ok(())
}

fn seal(salt: u64, offset: u64, len: u32, checksum: u32) -> u32 {
    let seed = crc32c::crc32c_append(crc32c::crc32c(&salt.to_le_bytes()), &offset.to_le_bytes());
    crc32c::crc32c_append(crc32c::crc32c_append(seed, &len.to_le_bytes()), &checksum.to_le_bytes())
}

/// From here on a file is written behind: a checkpoint that is smaller is not worth a thread.
const BEHIND_FROM: u64 = 4 << 20;

/// A file that is being written.
pub(super) struct BlobWriter {
    device: Arc<dyn Device>,
    file: Arc<dyn DeviceFile>,
    /// writes the rest of it
    behind: Option<WriteBehind>,
    number: u64,
    salt: u64,
    /// Bytes that are not written yet: less than `buffer_bytes`.
    buffer: Vec<u8>,
    buffer_bytes: usize,
    /// How far the file is written, or will be by what is handed over.
    written: u64,
}

impl BlobWriter {
    /// Creates the file. `buffer` is empty, its memory is used.
    pub(super) fn create(
        device: &Arc<dyn Device>,
        number: u64,
        checkpoint: u64,
        buffer: Vec<u8>,
        buffer_bytes: usize,
    ) -> Result<BlobWriter> {
        let name = BLOBS.file_name(number);
        let file = device.create(&name).map_err(|source| device_error(format!("create {name}"), &**device, source))?;
        let (file, salt) = (Arc::from(file), random_number());
        let device = Arc::clone(device);
        let mut writer = BlobWriter { device, file, behind: None, number, salt, buffer, buffer_bytes, written: 0 };
        writer.write(&BLOBS.encode(BLOBS.version(), &[number, salt, checkpoint]))?;
        Ok(writer)
    }

    /// Tells the file from another of its number.
    pub(super) fn salt(&self) -> u64 {
        self.salt
    }

    /// The length of the file once all is written.
    pub(super) fn bytes(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    /// Whether the file holds no blob yet.
    pub(super) fn is_empty(&self) -> bool {
        self.bytes() <= HEADER_END
    }

    /// Appends a blob, in pieces of at most so many bytes. Returns it with its pieces, if it is a long one.
    pub(super) fn put(&mut self, bytes: &[u8], piece_bytes: usize) -> Result<(BlobRef, Vec<BlobRef>)> {
        if bytes.len() <= piece_bytes {
            return Ok((self.put_piece(bytes)?, Vec::new()));
        }
        let pieces = bytes.chunks(piece_bytes).map(|piece| self.put_piece(piece)).collect::<Result<Vec<BlobRef>>>()?;
        let mut list = (pieces.len() as u64).to_le_bytes().to_vec();
        for piece in &pieces {
            list.extend(piece.offset.to_le_bytes());
            list.extend(piece.len.to_le_bytes());
            list.extend(piece.checksum.to_le_bytes());
        }
        let whole = BlobRef { file: self.number, offset: 0, len: LONG, checksum: 0 };
        debug_assert_eq!(list_of(&list, whole).as_ref(), Some(&pieces), "invariant 8: the pieces would not be found");
        let list = self.put_piece(&list)?;
        Ok((BlobRef { len: list.len | LONG, ..list }, pieces))
    }

    fn put_piece(&mut self, bytes: &[u8]) -> Result<BlobRef> {
        debug_assert!(bytes.len() <= PIECE_BYTES_MAX, "a piece of {} bytes would be taken for a list", bytes.len());
        let (len, checksum) = (bytes.len() as u32, crc32c::crc32c(bytes));
        let offset = self.bytes() + PREFIX_BYTES;
        let words = [len, checksum, seal(self.salt, offset, len, checksum)].map(u32::to_le_bytes);
        self.write(words.as_flattened())?;
        self.write(bytes)?;
        Ok(BlobRef { file: self.number, offset, len, checksum })
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let mut rest = bytes;
        while !rest.is_empty() {
            if self.behind.is_none() && self.buffer.is_empty() && rest.len() >= self.buffer_bytes {
                let (now, later) = rest.split_at(rest.len() / self.buffer_bytes * self.buffer_bytes);
                self.write_through(now)?;
                rest = later;
                continue;
            }
            let (now, later) = rest.split_at(rest.len().min(self.buffer_bytes - self.buffer.len()));
            self.buffer.extend_from_slice(now);
            rest = later;
            if self.buffer.len() == self.buffer_bytes {
                self.write_buffer()?;
            }
        }
        debug_assert!(self.buffer.len() < self.buffer_bytes, "a full buffer is written");
        Ok(())
    }

    fn write_buffer(&mut self) -> Result<()> {
        if self.written >= BEHIND_FROM && self.behind.is_none() {
            // Where the system has no thread left, this one writes.
            self.behind = WriteBehind::start(Arc::clone(&self.file)).ok();
        }
        let (mut buffer, at) = (std::mem::take(&mut self.buffer), self.written);
        if let Some(behind) = self.behind.as_mut().filter(|_| !buffer.is_empty()) {
            self.written += buffer.len() as u64;
            self.buffer = behind.write(buffer, at).map_err(|source| self.failed("write", source))?;
            return Ok(());
        }
        let outcome = self.write_through(&buffer);
        buffer.clear();
        self.buffer = buffer;
        outcome
    }

    fn write_through(&mut self, bytes: &[u8]) -> Result<()> {
        debug_assert!(
            self.written.is_multiple_of(self.buffer_bytes as u64),
            "writes begin at multiples of {} bytes, not at {}",
            self.buffer_bytes,
            self.written
        );
        self.file.write_at(bytes, self.written).map_err(|source| self.failed("write", source))?;
        self.written += bytes.len() as u64;
        Ok(())
    }

    /// Writes what is left and makes all of it durable. Returns the file, and the memory of the buffer.
    pub(super) fn finish(mut self) -> Result<(FileUse, Vec<u8>)> {
        self.write_buffer()?;
        let written = self.behind.take().map_or(Ok(()), WriteBehind::finish);
        written.map_err(|source| self.failed("write", source))?;
        debug_assert!(self.buffer.is_empty(), "invariant 8: the end of the file is not synced");
        self.file.sync().map_err(|source| self.failed("sync", source))?;
        let file = FileUse { number: self.number, salt: self.salt, bytes: self.written, live_blobs: 0, live_bytes: 0 };
        Ok((file, self.buffer))
    }

    fn failed(&self, verb: &str, source: std::io::Error) -> CheckpointError {
        device_error(format!("{verb} {}", BLOBS.file_name(self.number)), &*self.device, source)
    }
}
