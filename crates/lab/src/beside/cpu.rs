//! The time that the threads of this process have spent on processors, as Linux counts it.
use std::collections::HashMap;
use std::fs;

/// How long each thread that lived at a moment had run, in nanoseconds by its number.
pub(crate) struct CpuTimes(HashMap<String, u64>);

impl CpuTimes {
    /// The times of now; `None` where the system does not say.
    pub(crate) fn now() -> Option<CpuTimes> {
        let mut nanos = HashMap::new();
        for task in fs::read_dir("/proc/self/task").ok()?.flatten() {
            // A thread may end while the list is read.
            if let (Ok(thread), Ok(text)) =
                (task.file_name().into_string(), fs::read_to_string(task.path().join("schedstat")))
            {
                nanos.insert(thread, text.split_whitespace().next()?.parse::<u64>().ok()?);
            }
        }
        Some(CpuTimes(nanos))
    }

    /// Seconds that the threads of now have run since an earlier moment. What a thread ran that has ended since is not counted.
    pub(crate) fn seconds_since(&self, earlier: &CpuTimes) -> f64 {
        let nanos = self.0.iter().map(|(thread, now)| {
            let before = earlier.0.get(thread).copied().unwrap_or(0);
            // A number that was given to another thread may count less than it did.
            now.saturating_sub(before)
        });
        nanos.sum::<u64>() as f64 / 1e9
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_takes_time_of_a_processor_whatever_other_threads_do() {
        let ended = std::thread::spawn(|| {
            let at_work =
                (0..3_000_000u64).fold(1u64, |sum, number| std::hint::black_box(sum.wrapping_mul(31) ^ number));
            (CpuTimes::now(), at_work)
        });
        let Some(before) = ended.join().unwrap().0 else { return };
        let sum = (0..30_000_000u64).fold(1u64, |sum, number| std::hint::black_box(sum.wrapping_mul(31) ^ number));
        let seconds = CpuTimes::now().unwrap().seconds_since(&before);
        assert!(seconds > 0.0 || sum == 0, "{seconds}");
    }
}
