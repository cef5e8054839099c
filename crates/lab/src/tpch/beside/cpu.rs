//! The time that this process has spent on processors, as Linux counts it by thread.
use std::fs;

/// Seconds of all threads that live now; `None` where the system does not say. Differences are right as long as no thread ends
/// between.
pub(super) fn cpu_seconds() -> Option<f64> {
    let mut nanos = 0;
    for task in fs::read_dir("/proc/self/task").ok()?.flatten() {
        // A thread may end while the list is read.
        if let Ok(text) = fs::read_to_string(task.path().join("schedstat")) {
            nanos += text.split_whitespace().next()?.parse::<u64>().ok()?;
        }
    }
    Some(nanos as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_takes_time_of_a_processor() {
        let Some(before) = cpu_seconds() else { return };
        let sum = (0..30_000_000u64).fold(1u64, |sum, number| std::hint::black_box(sum.wrapping_mul(31) ^ number));
        let after = cpu_seconds().unwrap();
        assert!(after > before || sum == 0, "{before} to {after}");
    }
}
