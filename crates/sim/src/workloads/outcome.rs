//! What came of a run.

use crate::machine::Counters;
use crate::sections::SectionCounts;
use latches::elision::AbortCause;

/// What came of a run.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// Operations that ended in the time that was measured, by group of threads.
    pub operations: Vec<u64>,
    /// Likewise by thread.
    pub by_thread: Vec<u64>,
    /// The time that was measured, in microseconds.
    pub microseconds: f64,
    /// What the steps of all threads met in the whole run.
    pub counters: Counters,
    /// How the sections of all threads ran in the whole run.
    pub sections: SectionCounts,
}

impl Outcome {
    /// Million operations a second, of all groups.
    pub fn rate(&self) -> f64 {
        self.operations.iter().sum::<u64>() as f64 / self.microseconds
    }

    /// Million operations a second of one group.
    pub fn rate_of(&self, group: usize) -> f64 {
        self.operations[group] as f64 / self.microseconds
    }

    /// The share of transactions that aborted, in percent.
    pub fn abort_percent(&self) -> f64 {
        percent(self.counters.aborts_in_all(), self.counters.begins)
    }

    /// The share of aborts that had a cause, in percent.
    pub fn cause_percent(&self, cause: AbortCause) -> f64 {
        percent(self.counters.aborts[cause as usize], self.counters.aborts_in_all())
    }

    /// The share of sections that took the latch after aborts, in percent.
    pub fn fall_back_percent(&self) -> f64 {
        percent(self.sections.fall_backs(), self.sections.sections())
    }
}

fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 }
}
