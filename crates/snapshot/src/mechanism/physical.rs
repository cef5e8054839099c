//! Physical snapshots: the whole memory is copied while the gate is closed (section 2.2 of the paper).
//!
//! No update pays anything after that, and a reader has memory of its own. The copy of a snapshot that has ended is kept for the
//! next one where the options say so, as the first use of fresh memory costs more than the copying.
//!
//! Single updates are held back by the gate, or by the protection of the memory for as long as the copying takes
//! ([`super::userfault`]).
use std::ptr::NonNull;
use std::sync::{Arc, PoisonError};

use linux_raw_sys::general::UFFD_FEATURE_WP_UNPOPULATED;
use sync::blocking::Mutex;

use super::copy::{self, CopyPlan};
use super::memory::{Image, Memory, read_here, reduce_here};
use super::userfault::WriteProtection;
use crate::error::SnapshotError;
use crate::item::Reduce;
use crate::kind::{Mechanism, Stop};
use crate::mapping::Mapping;

/// Memory whose snapshots are copies.
pub(crate) struct Physical {
    live: Arc<Mapping>,
    /// Holds back updates that are not announced, if there are such.
    protection: Option<WriteProtection>,
    plan: CopyPlan,
    is_huge: bool,
    reductions: [Reduce; 3],
    spares: Arc<Spares>,
}

/// Copies of ended snapshots.
struct Spares {
    most: usize,
    kept: Mutex<Vec<Mapping>>,
}

struct Copy {
    /// There until the copy is dropped.
    memory: Option<Mapping>,
    reductions: [Reduce; 3],
    spares: Arc<Spares>,
}

impl Physical {
    /// Zeros that `spare_count` ended snapshots may leave their memory to.
    pub(crate) fn new(
        len_bytes: usize,
        is_huge: bool,
        stop: Stop,
        plan: CopyPlan,
        spare_count: usize,
        reductions: [Reduce; 3],
    ) -> Result<Physical, SnapshotError> {
        let live = Arc::new(new_memory(len_bytes, is_huge)?);
        let protection = match stop {
            Stop::Announced => None,
            Stop::Protected => Some(WriteProtection::new(live.clone(), UFFD_FEATURE_WP_UNPOPULATED)),
        };
        let protection = protection.transpose().map_err(SnapshotError::not_protected)?;
        let spares = Arc::new(Spares { most: spare_count, kept: Mutex::new(Vec::new()) });
        Ok(Physical { live, protection, plan, is_huge, reductions, spares })
    }
}

fn new_memory(len_bytes: usize, is_huge: bool) -> Result<Mapping, SnapshotError> {
    let memory = Mapping::anonymous(len_bytes).map_err(|reason| {
        SnapshotError::refused(Mechanism::Physical, format!("{} KiB of memory", len_bytes >> 10), reason)
    })?;
    if is_huge {
        memory.prefer_huge();
    }
    Ok(memory)
}

impl Memory for Physical {
    fn live(&self) -> NonNull<u8> {
        self.live.start()
    }

    fn begin(&self, at: &mut dyn FnMut()) -> Result<Box<dyn Image>, SnapshotError> {
        let spare = self.spares.kept.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let memory = match spare {
            Some(memory) => memory,
            None => new_memory(self.live.len_bytes(), self.is_huge)?,
        };
        let held = self.protection.as_ref().map(WriteProtection::hold).transpose();
        let held = held.map_err(SnapshotError::not_protected)?;
        // SAFETY: both spans have this length and begin at pages; the gate is closed, and updates that are not announced to it are
        // held back, so nobody writes the first, and the second is ours alone.
        unsafe { copy::copy(self.live.start(), memory.start(), self.live.len_bytes(), self.plan) };
        at();
        drop(held);
        Ok(Box::new(Copy { memory: Some(memory), reductions: self.reductions, spares: self.spares.clone() }))
    }
}

impl Copy {
    fn memory(&self) -> &Mapping {
        self.memory.as_ref().expect("the memory is there until the drop")
    }
}

impl Image for Copy {
    fn bytes(&self) -> Option<NonNull<u8>> {
        Some(self.memory().start())
    }

    fn read(&self, offset: usize, into: &mut [u8]) -> Result<(), SnapshotError> {
        let start = self.memory().at(offset, into.len());
        // SAFETY: the part lies within the copy, which nobody writes.
        unsafe { read_here(start, 0, into) };
        Ok(())
    }

    fn reduce(&self, number: usize, offset: usize, len: usize) -> Result<[u8; 16], SnapshotError> {
        // SAFETY: the caller passes a range of the array's items, and nobody writes the copy.
        Ok(unsafe { reduce_here(self.reductions[number], self.memory().start(), offset, len) })
    }

    fn own_bytes(&self) -> usize {
        self.memory().len_bytes()
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        let mut kept = self.spares.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < self.spares.most {
            kept.extend(self.memory.take());
        }
    }
}
