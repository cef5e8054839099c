//! Estimates of how many distinct values a column has: HyperLogLog (Flajolet et al., AofA 2007) with 1,024 registers,
//! about 3% of error for 1 KiB.
//!
//! A merge adds the values that it takes in to the sketch of the page before, so keeping it costs nothing for
//! values that stay. Values that updates have replaced are still counted; statistics need no more.
use std::hash::BuildHasher;

use foldhash::fast::FixedState;

use crate::value::cell::Cell;

const BITS: u32 = 10;
/// The greatest rank: of a hash without a bit behind those that choose the register.
pub(crate) const RANK_MAX: u8 = 64 - BITS as u8 + 1;
pub(crate) const REGISTERS: usize = 1 << BITS;

const STATE: FixedState = FixedState::with_seed(0x5eed);

/// A sketch of a set of values.
#[derive(Clone)]
pub(crate) struct Sketch {
    pub(crate) registers: Box<[u8; REGISTERS]>,
}

impl Default for Sketch {
    fn default() -> Self {
        Sketch { registers: Box::new([0; REGISTERS]) }
    }
}

impl Sketch {
    /// Adds a value; NULL is none.
    #[inline]
    pub(crate) fn add(&mut self, cell: Cell<'_>) {
        match cell {
            Cell::Null => {}
            Cell::Word(word) => self.add_word(word),
            Cell::Bytes(bytes) => self.add_hash(STATE.hash_one(bytes)),
        }
    }

    /// Adds a value that is a word.
    #[inline]
    pub(crate) fn add_word(&mut self, word: u64) {
        self.add_hash(STATE.hash_one(word));
    }

    #[inline]
    fn add_hash(&mut self, hash: u64) {
        let register = &mut self.registers[(hash >> (64 - BITS)) as usize];
        // The rest of the hash, with a bit that ends the run of zeros.
        let rank = ((hash << BITS) | 1 << (BITS - 1)).leading_zeros() as u8 + 1;
        *register = rank.max(*register);
    }

    /// Adds the values of another sketch.
    pub(crate) fn merge(&mut self, other: &Sketch) {
        self.registers.iter_mut().zip(other.registers.iter()).for_each(|(mine, theirs)| *mine = (*mine).max(*theirs));
    }

    /// About how many distinct values were added.
    pub(crate) fn distinct(&self) -> u64 {
        let count = REGISTERS as f64;
        let harmonic: f64 = self.registers.iter().map(|rank| share_of_rank(*rank)).sum();
        let estimate = 0.7213 / (1.0 + 1.079 / count) * count * count / harmonic;
        let empty = self.registers.iter().filter(|rank| **rank == 0).count();
        // Few values leave registers empty, and the number of those says more.
        let few = estimate <= 2.5 * count && empty > 0;
        (if few { count * (count / empty as f64).ln() } else { estimate }).round() as u64
    }
}

/// 2 to the power of minus `rank`, which is an exponent of a double without any digits.
fn share_of_rank(rank: u8) -> f64 {
    f64::from_bits((u64::from(f64::MAX_EXP as u32) - 1 - u64::from(rank)) << (f64::MANTISSA_DIGITS - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_of_a_rank_is_a_power_of_a_half() {
        (0..=RANK_MAX).for_each(|rank| assert_eq!(share_of_rank(rank), 0.5f64.powi(i32::from(rank))));
    }

    #[test]
    fn estimates_are_within_a_tenth() {
        for distinct in [0u64, 1, 10, 500, 5_000, 100_000] {
            let (mut left, mut right) = (Sketch::default(), Sketch::default());
            for value in 0..distinct {
                left.add(Cell::Word(value * 7));
                right.add(Cell::Word(value / 2 * 14));
                right.add(Cell::Null);
            }
            left.merge(&right);
            let (found, allowed) = (left.distinct() as f64, distinct as f64 * 0.1);
            assert!((found - distinct as f64).abs() <= allowed, "{found} for {distinct}");
        }
        let mut texts = Sketch::default();
        (0..300).for_each(|i| texts.add(Cell::Bytes(format!("text {}", i % 30).as_bytes())));
        assert!((28..=32).contains(&texts.distinct()));
    }
}
