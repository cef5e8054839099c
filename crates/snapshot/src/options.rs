//! How an array is made: its mechanism, its pages and its limits.
use std::sync::Arc;

use crate::error::SnapshotError;
use crate::item::Reduce;
use crate::kind::{Mechanism, Stop};
use crate::machine::{self, HUGE_PAGE_BYTES};
use crate::mechanism::copy::CopyPlan;
use crate::mechanism::file::{FileSharing, MemoryFile};
use crate::mechanism::fork::Fork;
use crate::mechanism::memory::Memory;
use crate::mechanism::physical::Physical;
use crate::mechanism::protect::Protect;
use crate::mechanism::rewire::Rewire;

/// With what pages the system backs an array.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, Debug)]
pub enum Pages {
    /// The system's small ones, of 4 KiB on x86-64.
    #[default]
    Small,
    /// Large ones of 2 MiB, where the system has them; a wish.
    Huge,
}

/// How an array is made.
#[derive(Clone, Debug)]
pub struct Options {
    /// How snapshots are kept.
    pub mechanism: Mechanism,
    /// With what pages the array's memory is backed.
    pub pages: Pages,
    /// How updates are stopped while a snapshot begins. `Physical` has both ways; `Fork` and `Rewire` know announced updates only, and
    /// with `Protect` single updates are never announced.
    pub stop: Stop,
    /// How much is copied at the first update of a page by `Rewire` and `Protect`, in bytes: a power of two from the system's small
    /// page to 2 MiB. 0 is the system's small page. What is said of pages holds for these.
    pub granule_bytes: usize,
    /// The most threads that copy for a physical snapshot: one for each memory channel is enough.
    pub copy_threads: usize,
    /// From how many bytes on a physical copy bypasses the caches.
    pub bypass_from_bytes: usize,
    /// How many ended physical snapshots leave their memory to later ones.
    pub spare_count: usize,
    /// The mappings that the snapshots of an array may have beyond one each, by `Rewire` and `Protect`; those of all arrays together may
    /// have half of the system's limit. A snapshot that would need more copies the rest of the array at once.
    pub mapping_limit: usize,
}

impl Default for Options {
    /// Physical snapshots on small pages, with announced updates, copied by all processors, with one spare copy; a quarter of the
    /// system's limit on mappings.
    fn default() -> Options {
        Options {
            mechanism: Mechanism::Physical,
            pages: Pages::Small,
            stop: Stop::Announced,
            granule_bytes: 0,
            copy_threads: machine::processor_count(),
            bypass_from_bytes: machine::last_level_cache_bytes() / 2,
            spare_count: 1,
            mapping_limit: machine::mapping_limit() / 4,
        }
    }
}

impl Options {
    /// The defaults with `mechanism`.
    pub fn of(mechanism: Mechanism) -> Options {
        Options { mechanism, ..Options::default() }
    }

    /// Whether single updates are announced.
    ///
    /// # Errors
    /// Where the mechanism has no other way than the one that was not asked for.
    pub(crate) fn announces(&self) -> Result<bool, SnapshotError> {
        match (self.mechanism, self.stop) {
            (Mechanism::Protect, _) | (Mechanism::Physical, Stop::Protected) => Ok(false),
            (_, Stop::Announced) => Ok(true),
            (mechanism, Stop::Protected) => Err(SnapshotError::BadOptions {
                what: format!(
                    "{mechanism} snapshots stop announced updates only, not by protection; physical and protect ones do"
                ),
            }),
        }
    }

    /// The bytes that are kept at a time.
    ///
    /// # Errors
    /// Where the options name no possible size.
    pub(crate) fn granule_bytes(&self) -> Result<usize, SnapshotError> {
        let page = machine::page_bytes();
        match self.granule_bytes {
            0 => Ok(page),
            bytes if bytes.is_power_of_two() && (page..=HUGE_PAGE_BYTES).contains(&bytes) => Ok(bytes),
            bytes => Err(SnapshotError::BadOptions {
                what: format!("granule_bytes is {bytes}; use a power of two from {page} to {HUGE_PAGE_BYTES}, or 0"),
            }),
        }
    }

    /// Zeroed memory of at least `len_bytes`, and what a writer has to ask before it writes there; nothing where the memory guards
    /// itself.
    ///
    /// # Errors
    /// Where the options are wrong or the system refuses.
    pub(crate) fn memory(&self, len_bytes: usize, reductions: [Reduce; 3]) -> Result<Made, SnapshotError> {
        let granule = self.granule_bytes()?;
        let is_huge = self.pages == Pages::Huge;
        let Some(len) = len_bytes.max(1).checked_next_multiple_of(granule) else {
            let what = format!("an array of {len_bytes} bytes is larger than memory can be");
            return Err(SnapshotError::BadOptions { what });
        };
        let file = || MemoryFile::new(self.mechanism, len, granule, is_huge, self.mapping_limit, reductions);
        Ok(match self.mechanism {
            Mechanism::Physical => {
                let plan = CopyPlan { threads: self.copy_threads, bypass_from_bytes: self.bypass_from_bytes };
                (Box::new(Physical::new(len, is_huge, self.stop, plan, self.spare_count, reductions)?), None)
            }
            Mechanism::Fork => (Box::new(Fork::new(len, is_huge, reductions)?), None),
            Mechanism::Rewire => {
                let file = file()?;
                let sharing = file.sharing.clone();
                (Box::new(Rewire(file)), Some(sharing))
            }
            Mechanism::Protect => (Box::new(Protect::new(file()?, granule)?), None),
        })
    }
}

/// Memory and what its writers ask.
type Made = (Box<dyn Memory>, Option<Arc<FileSharing>>);
