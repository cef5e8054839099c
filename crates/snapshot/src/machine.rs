//! What the machine has: the size of a page and of the last-level cache, and the limit on mappings.
use std::fs;

/// The size of the system's small pages, in bytes.
pub(crate) fn page_bytes() -> usize {
    rustix::param::page_size()
}

/// A large page of x86-64, and of 64-bit ARM with small pages of 4 KiB.
pub(crate) const HUGE_PAGE_BYTES: usize = 2 << 20;

/// The size of the largest cache that this processor shares or owns, in bytes; 8 MiB where the system does not say.
pub fn last_level_cache_bytes() -> usize {
    let sizes = (0..8).filter_map(|index| {
        let text = fs::read_to_string(format!("/sys/devices/system/cpu/cpu0/cache/index{index}/size")).ok()?;
        let text = text.trim();
        let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
        let scale = match unit {
            "K" => 1 << 10,
            "M" => 1 << 20,
            _ => 1,
        };
        Some(number.parse::<usize>().ok()? * scale)
    });
    sizes.max().unwrap_or(8 << 20)
}

/// The mappings that a process may have (`vm.max_map_count`).
pub(crate) fn mapping_limit() -> usize {
    let text = fs::read_to_string("/proc/sys/vm/max_map_count").unwrap_or_default();
    text.trim().parse().unwrap_or(65_530)
}

/// The processors that this process may use.
pub(crate) fn processor_count() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}
