//! From the time on the wall to the commit that was the newest then, for reading the past by date.
//!
//! Commits are numbered, not timed. Many times a second the merge pool's sweeper marks which commit is the newest
//! ([`WallClock::tick`]); asking for a time gives the last mark before it. For databases on disk, the first commit after
//! each tick carries the time into the log ([`WallClock::mark_for_log`]); commits without a mark follow the one before them
//! within a tick, which is how recovery fills the gaps.
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use types::Timestamp;

/// Microseconds since 1970.
pub(crate) type Micros = i64;

/// Two ticks: by then a commit that was not marked itself has been followed by a mark.
const GAP: Micros = 40_000;
/// The older half of so many marks is thinned out.
const MARKS_MAX: usize = 1 << 17;

/// Which commit was the newest when.
#[derive(Default)]
pub(crate) struct WallClock {
    marks: Mutex<Vec<(Micros, Timestamp)>>,
    is_log_due: AtomicBool,
}

/// The time on the wall.
pub(crate) fn wall_time() -> Micros {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

impl WallClock {
    /// Notes that everything up to `newest` has been committed by now.
    pub(crate) fn tick(&self, newest: Timestamp) {
        let mut marks = self.marks.lock();
        if marks.last().is_none_or(|(_, last)| *last < newest) {
            push(&mut marks, wall_time(), newest);
            self.is_log_due.store(true, Ordering::Relaxed);
        }
    }

    /// The time, if the commit under way should carry it into the log.
    #[inline]
    pub(crate) fn mark_for_log(&self) -> Option<Micros> {
        let is_due = self.is_log_due.load(Ordering::Relaxed) && self.is_log_due.swap(false, Ordering::Relaxed);
        is_due.then(wall_time)
    }

    /// A mark that was read from the log: the commit `at` happened at `time`.
    pub(crate) fn recover(&self, time: Micros, at: Timestamp) {
        let mut marks = self.marks.lock();
        // A checkpoint knows more of its own time than the log.
        if marks.last().is_none_or(|(_, last)| *last < at) {
            fill_gap(&mut marks, time, Timestamp(at.0.saturating_sub(1)));
            push(&mut marks, time, at);
        }
    }

    /// All marks, for a checkpoint.
    pub(crate) fn marks(&self) -> Vec<(Micros, Timestamp)> {
        self.marks.lock().clone()
    }

    /// The marks that a checkpoint has; what the log has after it comes later.
    pub(crate) fn restore(&self, marks: Vec<(Micros, Timestamp)>) {
        debug_assert!(marks.is_sorted(), "marks go forward");
        *self.marks.lock() = marks;
    }

    /// The log ended with the commit `last`.
    pub(crate) fn finish_recovery(&self, last: Timestamp) {
        fill_gap(&mut self.marks.lock(), wall_time(), last);
        self.is_log_due.store(true, Ordering::Relaxed);
    }

    /// The newest commit at a time; `None` before the first that is known.
    pub(crate) fn newest_at(&self, time: Micros) -> Option<Timestamp> {
        let marks = self.marks.lock();
        let after = marks.partition_point(|(marked, _)| *marked <= time);
        debug_assert!(after == marks.len() || marks[after].0 > time, "marks are out of order");
        after.checked_sub(1).map(|at| marks[at].1)
    }

    /// When a commit happened, a little later at most; `None` if that is not known.
    pub(crate) fn time_of(&self, at: Timestamp) -> Option<Micros> {
        let marks = self.marks.lock();
        marks.get(marks.partition_point(|(_, marked)| *marked < at)).map(|(time, _)| *time)
    }
}

/// Marks the commits that followed the last mark and were not marked themselves.
fn fill_gap(marks: &mut Vec<(Micros, Timestamp)>, now: Micros, newest: Timestamp) {
    if let Some(&(time, last)) = marks.last()
        && last < newest
    {
        push(marks, (time + GAP).min(now), newest);
    }
}

fn push(marks: &mut Vec<(Micros, Timestamp)>, time: Micros, newest: Timestamp) {
    // The time on the wall may be set back; marks go forward all the same.
    let time = marks.last().map_or(time, |(last, _)| time.max(*last));
    debug_assert!(marks.last().is_none_or(|(_, last)| *last < newest), "invariant 4: {newest:?} is marked twice");
    marks.push((time, newest));
    if marks.len() >= MARKS_MAX {
        let half = marks.len() / 2;
        let mut at = 0;
        marks.retain(|_| {
            at += 1;
            at > half || at % 2 == 0
        });
        debug_assert!(marks.len() < MARKS_MAX, "{} marks are left", marks.len());
        debug_assert_eq!(marks.last(), Some(&(time, newest)), "the newest mark stays");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_finds_the_commit_that_was_the_newest_then() {
        let clock = WallClock::default();
        for (time, at) in [(1_000_000, 3), (2_000_000, 10), (2_010_000, 11)] {
            clock.recover(time, Timestamp(at));
        }
        clock.finish_recovery(Timestamp(20));
        let newest = |time| clock.newest_at(time).map(|at| at.0);
        assert_eq!(newest(999_999), None);
        assert_eq!(newest(1_000_000), Some(3));
        assert_eq!(newest(1_500_000), Some(9), "commits without a mark follow the one before them closely");
        assert_eq!((newest(2_000_000), newest(2_010_000)), (Some(10), Some(11)));
        assert_eq!(newest(3_000_000), Some(20));
        assert_eq!(clock.time_of(Timestamp(10)), Some(2_000_000));
        assert_eq!(clock.time_of(Timestamp(21)), None);
        clock.recover(9_000_000, Timestamp(15));
        assert_eq!(newest(9_000_000), Some(20), "a commit before the last mark says nothing new");
        clock.tick(Timestamp(30));
        assert_eq!(newest(Micros::MAX), Some(30));
        assert!(clock.mark_for_log().is_some() && clock.mark_for_log().is_none());
    }

    #[test]
    fn marks_take_bounded_memory_and_stay_in_order() {
        let mut marks = Vec::new();
        for i in 0..1_000_000i64 {
            push(&mut marks, i - i % 7, Timestamp(i as u64));
        }
        assert!(marks.len() < MARKS_MAX && marks.is_sorted());
        assert_eq!(marks.last().unwrap().1, Timestamp(999_999));
    }
}
