//! How many threads an analytical query of a session may use. It is one setting under two names: `lstore.threads` counts them all,
//! PostgreSQL's `max_parallel_workers_per_gather` those beside the one that every query has.
//!
//! It lowers what a session has by itself, a thread for each processor, and never raises it.
use crate::error::{Result, SqlError};
use crate::state::setting_values::invalid;

pub(crate) const THREADS: &str = "lstore.threads";
pub(crate) const WORKERS: &str = "max_parallel_workers_per_gather";

/// The most workers beside the first thread.
const WORKERS_MAX: usize = 1024;

/// A name under which the number of threads is set.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ThreadCount {
    All,
    /// Without the first one.
    Workers,
}

impl ThreadCount {
    /// How many threads are none of those that this name counts.
    fn uncounted(self) -> usize {
        match self {
            ThreadCount::All => 0,
            ThreadCount::Workers => 1,
        }
    }

    /// A number of threads as this name counts them.
    pub(crate) fn show(self, threads: usize) -> String {
        (threads - self.uncounted()).to_string()
    }

    /// The number of threads that a value of this setting means: at least one.
    ///
    /// # Errors
    /// PostgreSQL's of what is no integer, and of one out of range.
    pub(crate) fn read(self, name: &str, value: &str) -> Result<usize> {
        let number = value.trim().parse::<f64>().ok().filter(|number| number.is_finite());
        let number = number.ok_or_else(|| invalid(name, value))?.round_ties_even();
        if number.abs() > f64::from(i32::MAX) {
            return Err(invalid(name, value).hint("Value exceeds integer range."));
        }
        let (least, most) = (1 - self.uncounted(), WORKERS_MAX + 1 - self.uncounted());
        if !(least as f64..=most as f64).contains(&number) {
            let message = format!("{number} is outside the valid range for parameter \"{name}\" ({least} .. {most})");
            return Err(SqlError::new("22023", message));
        }
        Ok(number as usize + self.uncounted())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_are_the_threads_but_one() {
        let workers = |value| ThreadCount::Workers.read(WORKERS, value).map_err(|error| error.message);
        assert_eq!((workers("0"), workers(" 4 "), workers("2.5"), workers("1.5")), (Ok(1), Ok(5), Ok(3), Ok(3)));
        assert_eq!((ThreadCount::Workers.show(1), ThreadCount::All.show(1)), ("0".to_owned(), "1".to_owned()));
        let range =
            |value, least, most| Err(format!("{value} is outside the valid range for parameter {least} .. {most})"));
        assert_eq!(workers("1025"), range("1025", "\"max_parallel_workers_per_gather\" (0", "1024"));
        assert_eq!(workers("-1"), range("-1", "\"max_parallel_workers_per_gather\" (0", "1024"));
        let threads = ThreadCount::All.read(THREADS, "0").map_err(|error| error.message);
        assert_eq!(threads, range("0", "\"lstore.threads\" (1", "1025"));
        for value in ["", "many", "3MB", "inf"] {
            assert_eq!(workers(value), Err(invalid(WORKERS, value).message), "{value}");
        }
    }
}
