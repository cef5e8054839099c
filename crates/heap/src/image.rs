//! The bytes of a checkpoint.
//!
//! There are two files, `heap-0.checkpoint` and `heap-1.checkpoint`, written in turn. All integers are little-endian.
//!
//! ```text
//!   offset  bytes
//!        0      8  magic "LSTHEAP\0"
//!        8      4  format version, 1
//!       12      4  checksum: crc32c of the other bytes of the header (0..12, 16..512)
//!       16      8  number of the checkpoint, from 1
//!       24      8  words in a chunk
//!       32      8  words in all chunks; all words behind them are zero
//!       40      8  LSN of the oldest chunk, and of the words behind all chunks
//!       48      8  LSN of the newest chunk
//!       56    456  zeros
//!      512         the chunks one after the other, each
//!        0      8      number of the checkpoint
//!        8      8      number of the chunk, from 0
//!       16      8      its LSN: exactly the commits up to it are in it
//!       24      4      zeros
//!       28      4      checksum: crc32c of the other bytes of the chunk
//!       32    8 n      its words
//! ```
//!
//! The header has its sector to itself and is written last, when all chunks are on disk; before the first chunk is
//! written the sector is zeros on disk. So a valid header testifies that the chunks were on disk, and one that does
//! not fit them is damage. Zeros, or no file, are a checkpoint that was never finished.

use durability::{Access, Device, DeviceFile, LogError, Lsn, Result, device_error, u32_at, u64_at};

use crate::error::{HeapError, HeapResult};

const MAGIC: [u8; 8] = *b"LSTHEAP\0";
const FORMAT_VERSION: u32 = 1;
const HEADER_BYTES: usize = 512;
const CHECKSUM_OFFSET: usize = 12;
const CHUNK_HEAD_BYTES: usize = 32;
const CHUNK_CHECKSUM_OFFSET: usize = 28;

/// The two files.
pub(crate) const FILES: [&str; 2] = ["heap-0.checkpoint", "heap-1.checkpoint"];

/// The header of a finished checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) number: u64,
    pub(crate) chunk_words: u64,
    pub(crate) words: u64,
    pub(crate) first: Lsn,
    pub(crate) last: Lsn,
}

impl Header {
    fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
        let fields = [self.number, self.chunk_words, self.words, self.first, self.last];
        for (at, field) in (16..).step_by(8).zip(fields) {
            bytes[at..at + 8].copy_from_slice(&field.to_le_bytes());
        }
        let checksum = checksum(&bytes, CHECKSUM_OFFSET);
        bytes[CHECKSUM_OFFSET..CHECKSUM_OFFSET + 4].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Why there is none, where it was not zeros, in words.
    fn decode(bytes: &[u8], file: &str) -> HeapResult<std::result::Result<Header, &'static str>> {
        if bytes[..8] != MAGIC {
            return Ok(Err("it is no heap checkpoint"));
        }
        let found = u32_at(bytes, 8);
        if found != FORMAT_VERSION {
            return Err(HeapError::UnknownVersion { file: file.to_string(), found, supported: FORMAT_VERSION });
        }
        if u32_at(bytes, CHECKSUM_OFFSET) != checksum(bytes, CHECKSUM_OFFSET) {
            return Ok(Err("the checksum of its header does not match"));
        }
        let [number, chunk_words, words, first, last] = std::array::from_fn(|at| u64_at(bytes, 16 + 8 * at));
        Ok(Ok(Header { number, chunk_words, words, first, last }))
    }

    /// The words of chunk `chunk`.
    pub(crate) fn run(&self, chunk: u64) -> std::ops::Range<u64> {
        let start = chunk * self.chunk_words;
        start..self.words.min(start + self.chunk_words)
    }

    pub(crate) fn chunks(&self) -> u64 {
        self.words.div_ceil(self.chunk_words)
    }

    fn offset(&self, chunk: u64) -> u64 {
        HEADER_BYTES as u64 + chunk * (CHUNK_HEAD_BYTES as u64 + 8 * self.chunk_words)
    }
}

fn checksum(bytes: &[u8], at: usize) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&bytes[..at]), &bytes[at + 4..])
}

/// A checkpoint that is being written.
pub(crate) struct Writer<'device> {
    device: &'device dyn Device,
    name: &'static str,
    file: Box<dyn DeviceFile>,
    bytes: Vec<u8>,
}

impl<'device> Writer<'device> {
    /// Takes a file for a new checkpoint: from here on it holds none.
    pub(crate) fn begin(device: &'device dyn Device, name: &'static str) -> Result<Writer<'device>> {
        let fail = |source| device_error(format!("create {name}"), device.location(), source);
        let file = match device.create(name) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => device.open(name, Access::Write),
            created => created,
        };
        let file = file.map_err(fail)?;
        file.write_durably(&[0; HEADER_BYTES], 0).and_then(|()| device.sync_dir()).map_err(fail)?;
        Ok(Writer { device, name, file, bytes: Vec::new() })
    }

    /// Writes a chunk. `header` need not know the LSNs yet.
    pub(crate) fn write_chunk(&mut self, header: &Header, chunk: u64, lsn: Lsn, words: &[u64]) -> Result<()> {
        let bytes = &mut self.bytes;
        bytes.clear();
        for field in [header.number, chunk, lsn, 0].iter().chain(words) {
            bytes.extend_from_slice(&field.to_le_bytes());
        }
        let checksum = checksum(bytes, CHUNK_CHECKSUM_OFFSET);
        bytes[CHUNK_CHECKSUM_OFFSET..CHUNK_HEAD_BYTES].copy_from_slice(&checksum.to_le_bytes());
        let written = self.file.write_at(bytes, header.offset(chunk));
        written.map_err(|source| self.failed(source))
    }

    /// Makes the chunks durable, then the header: from here on the file holds this checkpoint.
    pub(crate) fn finish(self, header: &Header) -> Result<()> {
        self.file.sync().map_err(|source| self.failed(source))?;
        self.file.write_durably(&header.encode(), 0).map_err(|source| self.failed(source))
    }

    fn failed(&self, source: std::io::Error) -> LogError {
        device_error(format!("write {}", self.name), self.device.location(), source)
    }
}

/// Writes the header of a checkpoint again. It may have been read from the page cache only: after a crash of the
/// process it may not have been synced.
pub(crate) fn confirm(device: &dyn Device, name: &str, header: &Header) -> Result<()> {
    let written = device.open(name, Access::Write).and_then(|file| file.write_durably(&header.encode(), 0));
    written.map_err(|source| device_error(format!("write {name}"), device.location(), source))
}

/// The contents of a file.
#[derive(Debug)]
pub(crate) enum Found {
    /// A checkpoint with a whole header.
    Checkpoint(Header),
    /// None that was ever finished.
    Nothing,
    /// Bytes that are no checkpoint: the damage in words.
    Damage(String),
}

/// Looks at the header of a file.
pub(crate) fn look(device: &dyn Device, name: &str) -> HeapResult<Found> {
    let fail = |source| device_error(format!("read {name}"), device.location(), source);
    if !device.list().map_err(fail)?.iter().any(|found| found == name) {
        return Ok(Found::Nothing);
    }
    let file = device.open(name, Access::Read).map_err(fail)?;
    let mut bytes = [0; HEADER_BYTES];
    let length = file.size().map_err(fail)?.min(HEADER_BYTES as u64);
    file.read_at(&mut bytes[..length as usize], 0).map_err(fail)?;
    if bytes.iter().all(|&byte| byte == 0) {
        return Ok(Found::Nothing);
    }
    match Header::decode(&bytes, name)? {
        Ok(header) if header.chunk_words > 0 && header.first <= header.last => Ok(Found::Checkpoint(header)),
        Ok(_) => Ok(Found::Damage(format!("{name}: its header contradicts itself"))),
        Err(what) => Ok(Found::Damage(format!("{name}: {what}"))),
    }
}

/// Reads all chunks of a checkpoint, each with its number and LSN. Returns what is wrong with one, in words.
pub(crate) fn read_chunks(
    device: &dyn Device,
    name: &str,
    header: &Header,
    mut chunk_is: impl FnMut(u64, Lsn, &mut dyn Iterator<Item = u64>),
) -> Result<Option<String>> {
    let fail = |source| device_error(format!("read {name}"), device.location(), source);
    let file = device.open(name, Access::Read).map_err(fail)?;
    let size = file.size().map_err(fail)?;
    let mut bytes = Vec::new();
    for chunk in 0..header.chunks() {
        let (offset, run) = (header.offset(chunk), header.run(chunk));
        bytes.resize(CHUNK_HEAD_BYTES + 8 * (run.end - run.start) as usize, 0);
        if offset + bytes.len() as u64 > size {
            return Ok(Some(format!("{name}: it ends before chunk {chunk}")));
        }
        file.read_at(&mut bytes, offset).map_err(fail)?;
        let lsn = u64_at(&bytes, 16);
        let is_right = u32_at(&bytes, CHUNK_CHECKSUM_OFFSET) == checksum(&bytes, CHUNK_CHECKSUM_OFFSET)
            && (u64_at(&bytes, 0), u64_at(&bytes, 8)) == (header.number, chunk)
            && (header.first..=header.last).contains(&lsn);
        if !is_right {
            return Ok(Some(format!("{name}: chunk {chunk} at byte {offset} is not what was written")));
        }
        let (words, _) = bytes[CHUNK_HEAD_BYTES..].as_chunks::<8>();
        chunk_is(chunk, lsn, &mut words.iter().map(|word| u64::from_le_bytes(*word)));
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: Header = Header { number: 7, chunk_words: 16, words: 40, first: 90, last: 120 };

    #[test]
    fn a_header_is_found_as_it_was_written_and_never_with_a_bit_flipped() {
        assert_eq!(Header::decode(&HEADER.encode(), "f").unwrap(), Ok(HEADER));
        for bit in 0..HEADER_BYTES * 8 {
            let mut bytes = HEADER.encode();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(!matches!(Header::decode(&bytes, "f"), Ok(Ok(_))), "bit {bit}");
        }
    }

    #[test]
    fn chunks_cover_the_words() {
        assert_eq!(HEADER.chunks(), 3);
        assert_eq!((HEADER.run(0), HEADER.run(2)), (0..16, 32..40));
        assert_eq!(HEADER.offset(2), 512 + 2 * (32 + 128));
    }
}
