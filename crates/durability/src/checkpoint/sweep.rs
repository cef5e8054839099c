//! Removing what the kept checkpoints do not need: files of checkpoints that were given up or interrupted, and of those
//! that are older than the two newest.
//!
//! Manifests go first, and their names durably, then files of blobs: whatever a crash leaves of this, a published
//! manifest never stands there without its files.

use std::collections::BTreeSet;

use super::error::{Result, device_error};
use super::header::{BLOBS, Kind, MANIFEST};
use super::manifest::Kept;
use crate::device::Device;

/// The numbers of all files of checkpoints in the directory.
pub(super) struct Names {
    pub(super) manifests: BTreeSet<u64>,
    pub(super) blobs: BTreeSet<u64>,
}

impl Names {
    pub(super) fn list(device: &dyn Device) -> Result<Names> {
        let fail = |source| device_error("list the files".to_string(), device, source);
        let names = device.list().map_err(fail)?;
        let of_kind = |kind: Kind| names.iter().filter_map(|name| kind.parse_name(name)).collect();
        Ok(Names { manifests: of_kind(MANIFEST), blobs: of_kind(BLOBS) })
    }
}

/// Removes what none of `kept` needs, but for the files of blobs that are held. Returns the number of files removed.
pub(super) fn sweep(device: &dyn Device, names: &Names, kept: &[Kept], held: &BTreeSet<u64>) -> Result<u64> {
    let needed: BTreeSet<u64> = kept.iter().flat_map(|kept| &kept.files).map(|file| file.number).collect();
    let is_kept = |number: u64| kept.iter().any(|kept| kept.number == number);
    let manifests = names.manifests.iter().copied().filter(|&number| !is_kept(number));
    let removed = remove(device, MANIFEST, manifests)?;
    let blobs = names.blobs.iter().copied().filter(|number| !needed.contains(number) && !held.contains(number));
    Ok(removed + remove(device, BLOBS, blobs)?)
}

/// Removes files, their names durably. Those that are gone already do not matter. Returns their number.
pub(super) fn remove(device: &dyn Device, kind: Kind, numbers: impl Iterator<Item = u64>) -> Result<u64> {
    let mut removed = 0;
    for number in numbers {
        let name = kind.file_name(number);
        match device.remove(&name) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            outcome => outcome.map_err(|source| device_error(format!("remove {name}"), device, source))?,
        }
        removed += 1;
    }
    let fail = |source| device_error("sync the directory".to_string(), device, source);
    if removed > 0 {
        device.sync_dir().map_err(fail)?;
    }
    Ok(removed)
}
