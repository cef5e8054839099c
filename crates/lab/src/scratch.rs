//! The files of a benchmark: a folder that ends with it.
use std::path::{Path, PathBuf};

use crate::LabError;

/// The folder of a benchmark's files, removed at the end.
pub struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// A folder in `parent`, or where the program was started, for the benchmark of this name.
    ///
    /// # Errors
    /// [`LabError::Failed`] if the folder cannot be made.
    pub fn new(parent: Option<PathBuf>, bench: &str) -> Result<Scratch, LabError> {
        let parent = parent.unwrap_or_else(|| PathBuf::from("."));
        let path = parent.join(format!("lstore-bench-{bench}-{}", std::process::id()));
        let fail = |error| LabError::Failed(format!("cannot make the folder {}: {error}", path.display()));
        std::fs::create_dir_all(&path).map_err(fail)?;
        Ok(Scratch { path })
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A path in it.
    pub fn sub(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A directory that can't be removed is left for people to see.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}
