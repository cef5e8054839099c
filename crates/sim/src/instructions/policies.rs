//! A cache that inserts new blocks where its policy says (Qureshi et al., ISCA 2007; the paper, section 4.2).
//!
//! | policy | a new block becomes |
//! |---|---|
//! | LRU | the newest |
//! | LIP | the oldest: it stays only if it is used again before the next miss of its set |
//! | BIP | the oldest, one time in 32 the newest |
//! | DIP | as LRU or BIP, whichever misses less on a few sets of its own |

use crate::machine::{CacheShape, LineNumber};
use crate::random::Random;

/// Where a new block is inserted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// As the newest.
    Lru,
    /// As the oldest.
    Lip,
    /// As the oldest, seldom as the newest.
    Bip,
    /// As LRU or BIP, by a contest.
    Dip,
}

/// One time in so many BIP inserts as the newest.
const BIP_SELDOM: u64 = 32;
/// Of so many sets one always inserts by LRU, and one by BIP.
const CONTEST_SETS: u32 = 16;
const CONTEST_MAX: i32 = 512;

/// A cache with a policy.
pub struct PolicyCache {
    policy: Policy,
    ways: usize,
    mask: u32,
    sets: Vec<Vec<LineNumber>>,
    /// Above 0 LRU's sets have missed more.
    contest: i32,
    random: Random,
}

impl PolicyCache {
    /// An empty cache.
    ///
    /// # Panics
    /// If the number of sets is no power of two.
    pub fn new(shape: CacheShape, policy: Policy, seed: u64) -> Self {
        assert!(shape.sets.is_power_of_two(), "a set is found by the low bits of the block");
        let sets = (0..shape.sets).map(|_| Vec::with_capacity(shape.ways as usize)).collect();
        PolicyCache {
            policy,
            ways: shape.ways as usize,
            mask: shape.sets - 1,
            sets,
            contest: 0,
            random: Random::new(seed),
        }
    }

    /// Whether a block is here.
    pub fn contains(&self, block: LineNumber) -> bool {
        self.sets[(block & self.mask) as usize].contains(&block)
    }

    /// Uses a block, which is here afterwards; whether it was before.
    pub fn touch(&mut self, block: LineNumber) -> bool {
        let number = block & self.mask;
        let set = &mut self.sets[number as usize];
        if let Some(at) = set.iter().position(|&other| other == block) {
            set[..=at].rotate_right(1);
            return true;
        }
        let is_newest = self.inserts_as_newest(number);
        let set = &mut self.sets[number as usize];
        set.truncate(self.ways - 1);
        if is_newest {
            set.insert(0, block)
        } else {
            set.push(block)
        }
        false
    }

    fn inserts_as_newest(&mut self, set: u32) -> bool {
        let policy = match (self.policy, set % CONTEST_SETS) {
            (Policy::Dip, 0) => {
                self.contest = (self.contest + 1).min(CONTEST_MAX);
                Policy::Lru
            }
            (Policy::Dip, 1) => {
                self.contest = (self.contest - 1).max(-CONTEST_MAX);
                Policy::Bip
            }
            (Policy::Dip, _) => {
                if self.contest > 0 {
                    Policy::Bip
                } else {
                    Policy::Lru
                }
            }
            (policy, _) => policy,
        };
        match policy {
            Policy::Lru | Policy::Dip => true,
            Policy::Lip => false,
            Policy::Bip => self.random.below(BIP_SELDOM) == 0,
        }
    }

    /// Drops a block; whether it was here.
    pub fn remove(&mut self, block: LineNumber) -> bool {
        let set = &mut self.sets[(block & self.mask) as usize];
        let found = set.iter().position(|&other| other == block);
        found.is_some_and(|at| {
            set.remove(at);
            true
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Misses of a loop over some blocks of one set with four ways.
    fn misses(policy: Policy, blocks: u32, rounds: u32) -> usize {
        let mut cache = PolicyCache::new(CacheShape { sets: 1, ways: 4 }, policy, 1);
        (0..rounds).flat_map(|_| 0..blocks).filter(|&block| !cache.touch(block)).count()
    }

    #[test]
    fn a_loop_that_does_not_fit_misses_always_under_lru_and_mostly_hits_where_the_newcomer_goes_first() {
        assert_eq!(misses(Policy::Lru, 5, 100), 500);
        assert_eq!(misses(Policy::Lip, 5, 100), 3 + 2 * 100);
        assert!(misses(Policy::Bip, 5, 100) < 300);
        assert!([Policy::Lru, Policy::Lip, Policy::Bip].iter().all(|&policy| misses(policy, 1, 9) == 1));
    }

    #[test]
    fn the_contest_takes_the_better_of_both() {
        let run = |policy, blocks: u32| {
            let mut cache = PolicyCache::new(CacheShape { sets: 64, ways: 4 }, policy, 1);
            (0..200).flat_map(|_| 0..blocks).filter(|&block| !cache.touch(block)).count()
        };
        let (lru, bip, dip) = (run(Policy::Lru, 64 * 6), run(Policy::Bip, 64 * 6), run(Policy::Dip, 64 * 6));
        assert!(bip < lru && dip < lru * 3 / 4, "{lru} {bip} {dip}");
    }
}
