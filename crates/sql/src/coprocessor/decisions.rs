//! Which sections of plans went to the device or not, why, and how it went: the newest of them, for a look from SQL.
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// So many are kept.
const KEPT_MAX: usize = 256;

/// Where a section was planned to run, and why.
#[derive(Clone, Debug)]
pub(crate) struct Decision {
    pub(crate) number: u64,
    /// `grouping` or `join`.
    pub(crate) operator: &'static str,
    /// About how many rows come in.
    pub(crate) rows: u64,
    /// What it was likely to take there, and on the CPU.
    pub(crate) device_ns: f64,
    pub(crate) cpu_ns: f64,
    pub(crate) is_on_device: bool,
    pub(crate) reason: &'static str,
}

/// How a section that went to the device came along, if it was run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Course {
    /// Portions of rows that the device has answered.
    pub(crate) portions: u64,
    /// How long the device took for them.
    pub(crate) device_ns: f64,
    /// Why the CPU went on with the rest.
    pub(crate) continued_why: Option<String>,
}

/// A decision with its course.
#[derive(Debug)]
pub(crate) struct Noted {
    pub(crate) decision: Decision,
    course: Mutex<Course>,
}

impl Noted {
    pub(crate) fn course(&self) -> Course {
        lock(&self.course).clone()
    }

    /// The device has answered so many portions.
    pub(crate) fn answered(&self, portions: u64, device_ns: f64) {
        let mut course = lock(&self.course);
        course.portions += portions;
        course.device_ns += device_ns;
    }

    /// The CPU goes on.
    pub(crate) fn continued(&self, why: &str) {
        lock(&self.course).continued_why = Some(why.to_owned());
    }
}

/// The newest decisions.
#[derive(Debug, Default)]
pub(crate) struct Decisions(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    count: u64,
    newest: VecDeque<Arc<Noted>>,
}

impl Decisions {
    /// Keeps a decision, under the next number.
    pub(crate) fn note(&self, decision: Decision) -> Arc<Noted> {
        let mut kept = lock(&self.0);
        kept.count += 1;
        let decision = Decision { number: kept.count, ..decision };
        let noted = Arc::new(Noted { decision, course: Mutex::default() });
        if kept.newest.len() == KEPT_MAX {
            kept.newest.pop_front();
        }
        kept.newest.push_back(noted.clone());
        noted
    }

    /// Those kept, the oldest first.
    pub(crate) fn all(&self) -> Vec<Arc<Noted>> {
        lock(&self.0).newest.iter().cloned().collect()
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_decisions_are_kept_under_their_numbers() {
        let decisions = Decisions::default();
        for rows in 1..=KEPT_MAX as u64 + 3 {
            let decision = Decision {
                number: 0,
                operator: "join",
                rows,
                device_ns: 1.0,
                cpu_ns: 2.0,
                is_on_device: true,
                reason: "cheaper",
            };
            decisions.note(decision).answered(1, 5.0);
        }
        let all = decisions.all();
        assert_eq!((all.len(), all[0].decision.number, all[0].decision.rows), (KEPT_MAX, 4, 4));
        assert_eq!((all[0].course().portions, all[0].course().device_ns), (1, 5.0));
    }
}
