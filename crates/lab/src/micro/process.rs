//! The system's figures of memory, where it has any: Linux, by `/proc`.
use std::fs;

/// The memory that this process has resident.
pub(super) fn resident_bytes() -> Option<u64> {
    field_bytes(&fs::read_to_string("/proc/self/status").ok()?, "VmRSS:")
}

/// The memory that programs can still have without swapping.
pub(super) fn available_bytes() -> Option<u64> {
    field_bytes(&fs::read_to_string("/proc/meminfo").ok()?, "MemAvailable:")
}

/// The bytes of a line like `VmRSS:     1234 kB`.
fn field_bytes(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kilobytes = rest.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?;
    Some(kilobytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_found_by_its_name() {
        let text = "VmPeak:\t  99 kB\nVmRSS:\t    1234 kB\nThreads:\t1\n";
        assert_eq!(field_bytes(text, "VmRSS:"), Some(1234 * 1024));
        assert_eq!(field_bytes(text, "VmSwap:"), None);
        assert_eq!(field_bytes(text, "Threads:"), None);
    }
}
