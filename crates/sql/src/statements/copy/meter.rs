//! The way through a file that is read or written, told to the session's observer of progress.
use std::sync::Arc;

use crate::Progress;
use crate::error::{Result, SqlError};

/// Tells of progress while it lives.
pub(super) struct Meter {
    progress: Option<Arc<dyn Progress>>,
    told: u64,
}

impl Meter {
    pub(super) fn start(progress: Option<Arc<dyn Progress>>, label: &str, total_bytes: Option<u64>) -> Meter {
        if let Some(progress) = &progress {
            progress.start(label, total_bytes);
        }
        Meter { progress, told: 0 }
    }

    /// So many bytes are done since the start.
    pub(super) fn reach(&mut self, bytes: u64) {
        if let Some(progress) = &self.progress
            && bytes > self.told
        {
            progress.advance(bytes - self.told);
            self.told = bytes;
        }
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        if let Some(progress) = &self.progress {
            progress.finish();
        }
    }
}

/// Opens a file that is to be read, and tells its size.
pub(super) fn open(path: &str) -> Result<(std::fs::File, u64)> {
    let opened = std::fs::File::open(path).and_then(|file| {
        let metadata = file.metadata()?;
        match metadata.is_dir() {
            true => Err(std::io::Error::new(std::io::ErrorKind::IsADirectory, "it is a directory")),
            false => Ok((file, metadata.len())),
        }
    });
    opened.map_err(|error| SqlError::io("open", path, &error))
}
