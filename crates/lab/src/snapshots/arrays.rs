//! Arrays of the mechanisms that are compared, and words for them.
use snapshot::{SnapshotArray, SnapshotError};

use crate::LabError;

/// The mechanism that others stand beside.
pub(super) const PHYSICAL: &str = "physical";

/// A size in words.
pub(super) fn size_text(size_bytes: usize) -> String {
    format!("{} MiB", size_bytes >> 20)
}

/// An array of which every page is memory.
pub(super) fn filled(size_bytes: usize, options: &snapshot::Options) -> Result<SnapshotArray<u64>, LabError> {
    let array = SnapshotArray::new(size_bytes / size_of::<u64>(), options).map_err(failed)?;
    let mut writer = array.writer();
    for item in (0..array.len()).step_by(512) {
        writer.set(item, 1).map_err(failed)?;
    }
    drop(writer);
    Ok(array)
}

pub(super) fn failed(error: SnapshotError) -> LabError {
    LabError::Failed(error.to_string())
}
