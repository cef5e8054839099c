//! The files of a checkpoint whose contents a fuzz target chooses.

use super::blob_file::FileUse;
use super::header::{BLOBS, HEADER_BYTES, MANIFEST};
use super::manifest::FILE_BYTES;

/// The number of the file that holds blobs.
pub(crate) const FILE: u64 = 1;
const SALT: u64 = 5;

/// A manifest of so many files with this body, and the file of blobs that it names first, whose checksums are right.
pub(crate) fn files(count: u8, body: &[u8], blobs: &[u8]) -> Vec<(String, Vec<u8>)> {
    let own =
        FileUse { number: FILE, salt: SALT, bytes: (HEADER_BYTES + blobs.len()) as u64, live_blobs: 1, live_bytes: 8 };
    let words = [own.number, own.salt, own.bytes, own.live_blobs, own.live_bytes];
    let body = [words.map(u64::to_le_bytes).as_flattened(), body].concat();
    let count = (1 + u64::from(count % 3)).min(body.len() as u64 / FILE_BYTES);
    let payload = body.len() as u64 - count * FILE_BYTES;
    let manifest = MANIFEST.encode(1, &[1, 3, count, payload, crc32c::crc32c(&body).into()]);
    vec![
        (BLOBS.file_name(FILE), [&BLOBS.encode(1, &[FILE, SALT, 1])[..], blobs].concat()),
        (MANIFEST.file_name(1), [&manifest[..], &body].concat()),
    ]
}
