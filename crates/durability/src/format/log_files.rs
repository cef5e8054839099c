//! The files of a log, for inspecting a directory: what their headers say.

use crate::Lsn;
use crate::device::{Access, Device};
use crate::error::{Result, device_error};
use crate::format::segment::{self, HEADER_BYTES, Header};

/// A file of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogFile {
    /// Its name.
    pub name: String,
    /// Its size; what follows the last frame is room, or what a recycled file held before.
    pub bytes: u64,
    /// Its contents.
    pub content: LogFileContent,
}

/// The contents of a file of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogFileContent {
    /// A segment of a partition.
    Segment {
        /// The partition.
        partition: u64,
        /// The place in the partition, from 1.
        sequence: u64,
        /// The highest LSN in the segments of the partition before it.
        lsn_before: Lsn,
    },
    /// A segment that was being made.
    Unfinished,
    /// Its header can't be read; why.
    Damaged(String),
}

/// The files of the log in a directory, by name.
///
/// # Errors
/// A failure of the device to list or read the files. A damaged header is none: see [`LogFileContent::Damaged`].
pub fn log_files(device: &dyn Device) -> Result<Vec<LogFile>> {
    let fail = |what: &str, source| device_error(what.to_string(), device.location(), source);
    let mut names = device.list().map_err(|source| fail("list the files", source))?;
    names.sort_unstable();
    let numbered = |name: String| segment::parse_name(&name).map(|number| (name, number));
    let read = |(name, number): (String, u64)| {
        let what = format!("read {name}");
        let file = device.open(&name, Access::Read).map_err(|source| fail(&what, source))?;
        let bytes = file.size().map_err(|source| fail(&what, source))?;
        let mut header = vec![0; bytes.min(HEADER_BYTES as u64) as usize];
        file.read_at(&mut header, 0).map_err(|source| fail(&what, source))?;
        let content = match Header::decode(&header, number) {
            _ if header.iter().all(|byte| *byte == 0) => LogFileContent::Unfinished,
            Err(error) => LogFileContent::Damaged(error.to_string()),
            Ok(Header { link, .. }) => LogFileContent::Segment {
                partition: link.partition,
                sequence: link.sequence,
                lsn_before: link.lsn_before,
            },
        };
        Ok(LogFile { name, bytes, content })
    };
    names.into_iter().filter_map(numbered).map(read).collect()
}
