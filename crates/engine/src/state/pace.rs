//! Which of two ways to run a group of statements by key is faster on a table, by measurement.
//!
//! The answer depends on what the processor's caches hold, and so on the table, its hot rows, the machine and what else runs. One
//! group in so many is timed, each way in turn, and a mean of each way's time for a statement is kept. A group that met something
//! rare, such as an interrupt, counts as twice the mean at most. All others go the way that was faster.
//!
//! All threads share the means of a table; they write them seldom, and where two do so at once, one measurement is lost.
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use types::TxnId;

/// How a group of statements is run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Way {
    /// Each step for all statements.
    SideBySide,
    /// All steps for each statement.
    OneByOne,
}

/// A group's way, and when it set out if that is measured.
#[derive(Clone, Copy)]
pub(crate) struct Turn {
    pub(crate) way: Way,
    since: Option<Instant>,
}

/// The time that a table's statements take by either way.
#[derive(Default)]
pub(crate) struct Pace {
    is_one_by_one: AtomicBool,
    /// how many groups were timed
    count: AtomicU64,
    /// mean time of a statement, in 1/256 of a nanosecond, side by side and one by one; 0 where none was timed
    means: [AtomicU64; 2],
}

/// One transaction in so many is timed: a power of two.
const TIMED: u64 = 64;

/// So many groups are timed before one way is taken.
const FIRST_TIMED: u64 = 32;

/// A mean moves by this part of what a measurement differs from it.
const WEIGHT: u64 = 8;

/// Parts of a nanosecond.
const PARTS: u64 = 256;

/// 2^64 divided by the golden ratio: spreads the numbers of transactions.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

impl Way {
    /// The way for a group that is not timed.
    #[inline]
    pub(crate) fn untimed(self) -> Turn {
        Turn { way: self, since: None }
    }
}

impl Turn {
    #[inline]
    pub(crate) fn is_timed(&self) -> bool {
        self.since.is_some()
    }
}

impl Pace {
    /// The way for a group of so many statements of a transaction.
    #[inline]
    pub(crate) fn turn(&self, txn: TxnId, statements: usize) -> Turn {
        // One alone has nobody beside it.
        if statements == 1 {
            return Way::OneByOne.untimed();
        }
        let draw = txn.number().wrapping_mul(SPREAD);
        if draw >> (u64::BITS - TIMED.trailing_zeros()) == 0 {
            return self.timed();
        }
        match self.is_one_by_one.load(Ordering::Relaxed) {
            true => Way::OneByOne.untimed(),
            false => self.untold(),
        }
    }

    /// A group that goes side by side, because that is faster or nobody knows yet.
    #[inline]
    fn untold(&self) -> Turn {
        if self.count.load(Ordering::Relaxed) < FIRST_TIMED { self.timed() } else { Way::SideBySide.untimed() }
    }

    #[cold]
    fn timed(&self) -> Turn {
        let way = if self.count.load(Ordering::Relaxed).is_multiple_of(2) { Way::SideBySide } else { Way::OneByOne };
        Turn { way, since: Some(Instant::now()) }
    }

    /// Notes the time since a group of so many statements set out.
    #[cold]
    pub(crate) fn note(&self, turn: Turn, statements: usize) {
        let Some(since) = turn.since else { return };
        let nanoseconds = u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX / PARTS);
        self.note_time(turn.way, nanoseconds.saturating_mul(PARTS) / statements as u64);
    }

    fn note_time(&self, way: Way, time: u64) {
        let mean = &self.means[way as usize];
        let before = mean.load(Ordering::Relaxed);
        let after = if before == 0 { time } else { (before * (WEIGHT - 1) + time.min(2 * before)) / WEIGHT };
        mean.store(after.max(1), Ordering::Relaxed);
        self.count.store(self.count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        let [side_by_side, one_by_one] = self.means.each_ref().map(|mean| mean.load(Ordering::Relaxed));
        let is_known = side_by_side != 0 && one_by_one != 0;
        self.is_one_by_one.store(is_known && one_by_one < side_by_side, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ways of so many transactions, where the ways take so long.
    fn ways(pace: &Pace, numbers: std::ops::Range<u64>, times: [u64; 2]) -> [usize; 2] {
        let mut ways = [0; 2];
        for number in numbers {
            let turn = pace.turn(TxnId::new(number), 10);
            ways[turn.way as usize] += 1;
            if turn.is_timed() {
                // Something rare now and then.
                let rare = if number % 50 == 0 { 1_000_000 } else { 0 };
                pace.note_time(turn.way, times[turn.way as usize] + rare);
            }
        }
        ways
    }

    #[test]
    fn groups_go_the_way_that_is_faster() {
        let pace = Pace::default();
        let [side_by_side, one_by_one] = ways(&pace, 0..10_000, [9_000, 5_000]);
        assert!(one_by_one > 9_700 && side_by_side > 50, "{side_by_side} and {one_by_one}");
        ways(&pace, 10_000..14_000, [20_000, 70_000]);
        let [side_by_side, one_by_one] = ways(&pace, 14_000..24_000, [20_000, 70_000]);
        assert!(side_by_side > 9_700 && one_by_one > 50, "{side_by_side} and {one_by_one}");
    }

    #[test]
    fn a_statement_alone_is_not_timed() {
        let pace = Pace::default();
        for number in 0..1_000 {
            let turn = pace.turn(TxnId::new(number), 1);
            assert!(turn.way == Way::OneByOne && !turn.is_timed());
        }
    }
}
