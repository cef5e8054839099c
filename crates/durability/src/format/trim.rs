//! The trim point: below which LSN the log has been given up. And up to which it was on disk when it was closed, so that the
//! loss of its last file is noticed.
//!
//! It is on disk before the first file is given up, so that recovery can tell a segment that was trimmed from one that
//! was lost, and knows from which LSN on the row must be dense. It stands in a file of its own, `redo.trim`, twice:
//! whatever happens while one copy is written, the other is whole.
//!
//! ```text
//!   offset  bytes
//!        0      8  magic "LSTTRIM\0"
//!        8      4  format version, 2
//!       12      4  checksum: crc32c of the other bytes of the copy (0..12, 16..40)
//!       16      8  log: the number that all files of a log share
//!       24      8  trim point: every LSN below it may be missing
//!       32      8  every LSN up to this one was on disk once
//!       40    472  zeros
//!      512    512  the second copy, written after the first is on disk
//! ```
//!
//! Version 1 ended before the last number.

use crate::Lsn;
use crate::device::{Access, Device};
use crate::error::{LogError, Result, device_error};
use crate::format::frame::{u32_at, u64_at};

pub(crate) const FILE: &str = "redo.trim";
const MAGIC: [u8; 8] = *b"LSTTRIM\0";
const FORMAT_VERSION: u32 = 2;
const COPY_BYTES: usize = 40;
const COPY_BYTES_BEFORE: usize = 32;
const COPY_STEP: u64 = 512;
const COPIES: [u64; 2] = [0, COPY_STEP];

/// The trim point that was found on disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TrimPoint {
    /// 0 if nothing was ever trimmed.
    pub(crate) below: Lsn,
    /// Up to here everything was on disk when the log was closed; 0 if it never was.
    pub(crate) proven: Lsn,
    /// The copies differ: one of them was being written.
    pub(crate) is_uneven: bool,
    /// The number of the log, if the file tells it.
    pub(crate) log: Option<u64>,
}

/// The trim point of log `log`. `log` is `None` where no segment tells it.
pub(crate) fn read(device: &dyn Device, log: Option<u64>) -> Result<TrimPoint> {
    let fail = |source| device_error(format!("read {FILE}"), device.location(), source);
    if !device.list().map_err(fail)?.iter().any(|name| name == FILE) {
        return Ok(TrimPoint::default());
    }
    let file = device.open(FILE, Access::Read).map_err(fail)?;
    let mut bytes = vec![0; 2 * COPY_STEP as usize];
    let length = file.size().map_err(fail)?.min(2 * COPY_STEP);
    file.read_at(&mut bytes[..length as usize], 0).map_err(fail)?;
    let mut found = Vec::new();
    for copy in COPIES {
        let copy = &bytes[copy as usize..];
        let version = u32_at(copy, 8);
        let length = if version == 1 { COPY_BYTES_BEFORE } else { COPY_BYTES };
        if copy[..8] != MAGIC || u32_at(copy, 12) != checksum(&copy[..length]) {
            continue;
        }
        if version > FORMAT_VERSION {
            let file = FILE.to_string();
            return Err(LogError::UnknownVersion { file, found: version, supported: FORMAT_VERSION });
        }
        if log.is_none_or(|log| log == u64_at(copy, 16)) {
            let proven = if version == 1 { 0 } else { u64_at(copy, 32) };
            found.push((u64_at(copy, 24), proven, u64_at(copy, 16)));
        }
    }
    // Both numbers only grow.
    match found.iter().max() {
        Some(&(below, proven, log)) => {
            let is_uneven = found.len() != 2 || found[0] != found[1];
            Ok(TrimPoint { below, proven, is_uneven, log: Some(log) })
        }
        // Its creation was interrupted; nothing was given up yet.
        None if bytes.iter().all(|&byte| byte == 0) => Ok(TrimPoint::default()),
        None => {
            let detail = "neither copy of the trim point is whole, or both belong to another log".to_string();
            Err(LogError::Corrupt { file: FILE.to_string(), offset: 0, detail })
        }
    }
}

/// Makes an empty directory that of a log which begins at `below`, as if all before it had been given up.
///
/// # Errors
/// A failure of the device to write the trim point.
pub fn begin_log_at(device: &dyn Device, below: Lsn) -> Result<()> {
    write(device, crate::format::segment::random_number(), below, 0)
}

/// Puts the trim point on disk, one copy after the other, and up to where everything was.
pub(crate) fn write(device: &dyn Device, log: u64, below: Lsn, proven: Lsn) -> Result<()> {
    let fail = |source| device_error(format!("write {FILE}"), device.location(), source);
    let file = match device.create(FILE) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => device.open(FILE, Access::Write),
        created => created,
    };
    let file = file.map_err(fail)?;
    file.preallocate(2 * COPY_STEP).and_then(|()| device.sync_dir()).map_err(fail)?;
    let bytes = copy_of(log, below, proven);
    for copy in COPIES {
        file.write_durably(&bytes, copy).map_err(fail)?;
    }
    Ok(())
}

/// The whole file.
pub(crate) fn encode(log: u64, below: Lsn) -> Vec<u8> {
    let mut bytes = vec![0; 2 * COPY_STEP as usize];
    for copy in COPIES {
        bytes[copy as usize..][..COPY_BYTES].copy_from_slice(&copy_of(log, below, 0));
    }
    bytes
}

fn copy_of(log: u64, below: Lsn, proven: Lsn) -> [u8; COPY_BYTES] {
    let mut bytes = [0; COPY_BYTES];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
    bytes[16..24].copy_from_slice(&log.to_le_bytes());
    bytes[24..32].copy_from_slice(&below.to_le_bytes());
    bytes[32..40].copy_from_slice(&proven.to_le_bytes());
    let checksum = checksum(&bytes);
    bytes[12..16].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

/// Of the whole slice but the place of the checksum.
fn checksum(copy: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&copy[..12]), &copy[16..])
}
