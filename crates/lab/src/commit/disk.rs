//! The bound: how often the disk makes a small write durable.
use std::fs::OpenOptions;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::LabError;

/// Bytes of one write: a sector.
const WRITE_BYTES: usize = 512;
/// Room of the file, which is written before the clock starts: what is measured overwrites, as a log does.
const FILE_BYTES: u64 = 8 << 20;

/// Durable writes a second, one after the other.
pub(super) fn rate(directory: &Path, time: Duration) -> Result<f64, LabError> {
    let path = directory.join("fdatasync");
    let fail = |error| LabError::Failed(format!("cannot write {}: {error}", path.display()));
    let measure = || {
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).open(&path)?;
        file.write_all(&vec![0; FILE_BYTES as usize])?;
        file.sync_all()?;
        let (start, mut writes, mut at) = (Instant::now(), 0_u64, 0);
        while start.elapsed() < time {
            file.seek(SeekFrom::Start(at))?;
            file.write_all(&[writes as u8; WRITE_BYTES])?;
            file.sync_data()?;
            writes += 1;
            at = (at + WRITE_BYTES as u64) % FILE_BYTES;
        }
        Ok(writes as f64 / start.elapsed().as_secs_f64())
    };
    let rate = measure().map_err(fail)?;
    std::fs::remove_file(&path).map_err(fail)?;
    Ok(rate)
}
