//! The memory of the process: how much is resident, and how much of what was freed the allocator keeps.
//!
//! An allocator keeps freed memory for the next caller. glibc's keeps it in several *arenas*, and maps large blocks apart, which go
//! back to the system when they are freed; what is large grows with the blocks that a program frees, up to 32 MB. A program that is to
//! stay within a limit wants few arenas, blocks of the size of a page of the database apart, and from time to time what is left in the
//! arenas given back. All of this costs time, so callers ask for it where memory is short.
//!
//! Elsewhere than on Linux nothing is known of the process, and with another allocator than glibc's nothing is done.
use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};

/// The most blocks that are mapped apart: a process may have 65,530 mappings.
const MAPPED_MAX: u64 = 1 << 14;
/// Blocks of so many bytes are mapped apart where memory is short: the values of a column of a range take about as many.
const APART_MIN: u64 = 128 << 10;
/// The largest blocks that may be kept in arenas.
const APART_MAX: u64 = 32 << 20;
/// How many bytes an arena may keep free at its end where memory is short.
const FREE_MIN: u64 = 1 << 20;
/// An arena for so many bytes of the limit. Threads that share one wait for each other, and each large block that one of them asks for
/// has it look through what the others have freed: one arena for all took twice the processor's time to load a table.
const FOR_AN_ARENA: u64 = 48 << 20;

/// The size from which on blocks are mapped apart, of a process that is to stay within so many bytes: half of all that may be mapped
/// take no more than the limit.
fn apart_bytes(limit: u64) -> u64 {
    (limit / (MAPPED_MAX / 2)).clamp(APART_MIN, APART_MAX)
}

/// The bytes that this process has resident: of its program, its files and its own. `None` where the system does not tell.
pub fn resident_bytes() -> Option<u64> {
    let statm = fs::read_to_string("/proc/self/statm").ok()?;
    let pages = statm.split(' ').nth(1)?.parse::<u64>().ok()?;
    Some(pages * allocator::page_bytes())
}

/// Has the allocator of this process make no more arenas than a limit of so many bytes has room for. Those that there are stay, so it
/// is called before many threads run.
pub fn bound_arenas(limit: u64) {
    allocator::set_arenas((limit / FOR_AN_ARENA).clamp(1, 1 << 10));
}

/// Has the allocator of this process keep little of what is freed, for a limit of so many bytes; `None` has it keep as much as it
/// likes. The last call holds.
pub fn keep_little(limit: Option<u64>) {
    static IN_FORCE: AtomicU64 = AtomicU64::new(0);
    let apart = limit.map_or(0, apart_bytes);
    if IN_FORCE.swap(apart, Ordering::Relaxed) != apart {
        match limit {
            Some(limit) => allocator::set_thresholds(apart, (limit / 256).max(FREE_MIN)),
            None => allocator::set_thresholds(APART_MAX, 2 * APART_MAX),
        }
    }
}

/// Gives back to the system what the allocator of this process keeps free, as far as whole pages are. Takes milliseconds, for parts of
/// which threads that allocate wait.
pub fn give_back_free_memory() {
    allocator::trim();
}

#[cfg(all(target_os = "linux", target_env = "gnu", not(miri)))]
mod allocator {
    use super::MAPPED_MAX;

    pub(super) fn page_bytes() -> u64 {
        // SAFETY: `sysconf` reads a number of the system.
        u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
    }

    fn set(what: libc::c_int, value: u64) {
        let value = libc::c_int::try_from(value).unwrap_or(libc::c_int::MAX);
        // SAFETY: `mallopt` takes the latch of the allocator, and any values: what it can't use it refuses.
        unsafe { libc::mallopt(what, value) };
    }

    pub(super) fn set_arenas(count: u64) {
        set(libc::M_ARENA_MAX, count);
    }

    pub(super) fn set_thresholds(apart: u64, free: u64) {
        set(libc::M_MMAP_MAX, MAPPED_MAX);
        set(libc::M_MMAP_THRESHOLD, apart);
        set(libc::M_TRIM_THRESHOLD, free);
    }

    pub(super) fn trim() {
        // SAFETY: `malloc_trim` takes the latches of the arenas, and gives back pages that no allocation lies in.
        unsafe { libc::malloc_trim(0) };
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu", not(miri))))]
mod allocator {
    pub(super) fn page_bytes() -> u64 {
        4096
    }

    pub(super) fn set_arenas(_count: u64) {}

    pub(super) fn set_thresholds(_apart: u64, _free: u64) {}

    pub(super) fn trim() {}
}
