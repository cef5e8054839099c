//! The machine on which the figures are measured: the paper's Table 2, as far as the system tells.
use std::fs;

use crate::LabError;
use crate::figures::{Figure, Report};

/// Caches of a processor that are looked for.
const CACHES_MAX: usize = 8;

fn text(path: &str) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

/// A number of kibibytes, as the system spells sizes of caches: `48K`, `2M`.
fn kib(size: &str) -> Option<f64> {
    let (number, unit) = size.split_at(size.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(size.len()));
    let number: f64 = number.parse().ok()?;
    match unit {
        "K" => Some(number),
        "M" => Some(number * 1024.0),
        _ => None,
    }
}

/// The value behind a name in a file of the kind of `/proc/meminfo`: the first number there.
fn field(file: &str, name: &str) -> Option<f64> {
    let line = file.lines().find(|line| line.starts_with(name))?;
    line.split(|letter: char| !letter.is_ascii_digit() && letter != '.').find_map(|word| word.parse().ok())
}

/// The caches of the first processor: `L1 data`, and its size.
fn caches() -> Vec<(String, f64)> {
    let cache = |index: usize| {
        let fact = |name: &str| text(&format!("/sys/devices/system/cpu/cpu0/cache/index{index}/{name}"));
        let kind = fact("type")?.to_lowercase();
        Some((format!("L{} {kind} cache", fact("level")?), kib(&fact("size")?)?))
    };
    (0..CACHES_MAX).filter_map(cache).collect()
}

/// Table 2: what the machine has.
pub(super) fn machine(report: &mut Report<'_>) -> Result<(), LabError> {
    let mut push = |what: &str, metric, unit, value: f64| {
        report.push(Figure::amount(&format!("machine, {what}"), metric, unit, &[value]))
    };
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    push("processors", "count", "", processors as f64)?;
    let cpu = text("/proc/cpuinfo").unwrap_or_default();
    if let Some(mhz) = field(&cpu, "cpu MHz") {
        push("clock", "rate", "MHz", mhz)?;
    }
    for (name, size) in caches() {
        push(&name, "size", "KiB", size)?;
    }
    let memory = text("/proc/meminfo").unwrap_or_default();
    for (name, what) in [("MemTotal", "memory"), ("Hugepagesize", "large page")] {
        if let Some(size) = field(&memory, name) {
            push(what, "size", "KiB", size)?;
        }
    }
    let limit = text("/proc/sys/vm/max_map_count").and_then(|limit| limit.parse().ok());
    limit.map_or(Ok(()), |limit| push("mappings", "limit", "", limit))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_fields_are_read_as_the_system_spells_them() {
        assert_eq!((kib("48K"), kib("2M"), kib("many")), (Some(48.0), Some(2048.0), None));
        let file = "processor\t: 0\ncpu MHz\t\t: 2600.125\nMemTotal:       24684084 kB";
        assert_eq!(
            (field(file, "cpu MHz"), field(file, "MemTotal"), field(file, "x")),
            (Some(2600.125), Some(24_684_084.0), None)
        );
    }
}
