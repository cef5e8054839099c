//! The frontier: up to which LSN everything is on disk.
//!
//! LSNs are dense, but they reach the disk out of order: two partitions are flushed one after the other, and two
//! threads append in another order than they took their numbers. The prefix without a gap is stable:
//!
//! ```text
//!   LSN        1 2 3 4 5 6 7 8 9 ...
//!   on disk    x x x x . x x . .        stable = 4; 5 is missing, 6 and 7 wait for it
//!                      ^next
//! ```
//!
//! Appenders have no part in this. A thread that has flushed a partition hands over the LSNs of the flush, under a
//! latch that is taken once a flush; a bit for each LSN from the first missing one on remembers what is ahead of
//! it. Readers look at one atomic word. There is a bit for each LSN between the first missing and the highest on
//! disk, so the work and the memory depend on how far numbers run ahead of each other and never on how many there
//! were.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use sync::CachePadded;

use crate::Lsn;

/// No LSN may be as far ahead of the first missing one: such a number was never taken.
pub(crate) const AHEAD_MAX: u64 = 1 << 32;

/// The largest LSN with nothing missing before it, and what is on disk beyond.
pub(crate) struct Frontier {
    stable: CachePadded<AtomicU64>,
    ahead: Mutex<Ahead>,
}

/// The LSNs on disk from the first missing one on.
struct Ahead {
    /// The first LSN that is not on disk.
    next: Lsn,
    /// Bit `lsn % 64` of word `lsn / 64 - next / 64`.
    words: VecDeque<u64>,
}

impl Frontier {
    /// Everything up to `stable` is on disk.
    pub(crate) fn new(stable: Lsn) -> Frontier {
        let ahead = Ahead { next: stable + 1, words: VecDeque::new() };
        Frontier { stable: CachePadded::new(AtomicU64::new(stable)), ahead: Mutex::new(ahead) }
    }

    /// The largest LSN up to which everything is on disk.
    #[inline]
    pub(crate) fn stable(&self) -> Lsn {
        self.stable.load(Ordering::Acquire)
    }

    /// Notes that these LSNs are on disk now.
    ///
    /// # Panics
    /// If one was before: an LSN is appended once.
    pub(crate) fn complete(&self, lsns: &[Lsn]) {
        if lsns.is_empty() {
            return;
        }
        let mut ahead = self.ahead.lock();
        lsns.iter().for_each(|&lsn| ahead.mark(lsn));
        ahead.advance();
        debug_assert!(ahead.next > self.stable(), "invariant 8: what was on disk is not any more");
        debug_assert!(
            ahead.words.front().is_none_or(|word| word >> (ahead.next % 64) & 1 == 0),
            "{} is on disk, and is told to be missing",
            ahead.next
        );
        self.stable.store(ahead.next - 1, Ordering::Release);
    }
}

impl Ahead {
    fn mark(&mut self, lsn: Lsn) {
        assert!(lsn >= self.next, "LSN {lsn} is appended a second time");
        let word = (lsn / 64 - self.next / 64) as usize;
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        let bit = 1 << (lsn % 64);
        assert_eq!(self.words[word] & bit, 0, "LSN {lsn} is appended a second time");
        self.words[word] |= bit;
    }

    /// Moves `next` behind what is on disk without a gap.
    fn advance(&mut self) {
        while let Some(&word) = self.words.front() {
            let at = self.next % 64;
            let run = u64::from((word >> at).trailing_ones());
            self.next += run;
            if at + run < 64 {
                return;
            }
            self.words.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// LSNs in any order, in groups of any size, from any start, against a set.
        #[test]
        fn stable_is_the_longest_prefix(
            start in 0_u64..200,
            order in Just((1_u64..400).collect::<Vec<_>>()).prop_shuffle(),
            groups in prop::collection::vec(1_usize..40, 400),
        ) {
            let frontier = Frontier::new(start);
            let (mut rest, mut set) = (&order[..], BTreeSet::new());
            for group in groups {
                let (now, later) = rest.split_at(group.min(rest.len()));
                rest = later;
                let lsns: Vec<Lsn> = now.iter().map(|lsn| start + lsn).collect();
                frontier.complete(&lsns);
                set.extend(lsns);
                let prefix = (start + 1..).take_while(|lsn| set.contains(lsn)).count() as u64;
                prop_assert_eq!(frontier.stable(), start + prefix);
                let ahead = frontier.ahead.lock();
                let span = set.last().map_or(0, |last| (last + 1).saturating_sub(ahead.next));
                prop_assert!(ahead.words.len() as u64 <= span / 64 + 2, "memory follows the span");
            }
        }

        /// Nearly in order, as in life: nothing stays behind.
        #[test]
        fn a_row_in_order_keeps_nothing(start in 0_u64..100, count in 1_u64..1000) {
            let frontier = Frontier::new(start);
            for lsn in start + 1..=start + count {
                frontier.complete(&[lsn]);
                prop_assert_eq!(frontier.stable(), lsn);
            }
            prop_assert!(frontier.ahead.lock().words.len() <= 1);
        }
    }

    #[test]
    #[should_panic(expected = "a second time")]
    fn an_lsn_ahead_is_taken_once() {
        let frontier = Frontier::new(0);
        frontier.complete(&[5]);
        frontier.complete(&[5]);
    }

    #[test]
    #[should_panic(expected = "a second time")]
    fn a_stable_lsn_is_taken_once() {
        let frontier = Frontier::new(9);
        frontier.complete(&[9]);
    }
}
