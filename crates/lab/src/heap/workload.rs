//! A workload: a step that is done again and again, numbers by chance for it, and a look at what it left.

use durability::CommitMode;
use heap::{CommittedTransaction, Heap, HeapResult};

/// A step that threads do to a heap again and again.
pub trait Workload: Sync {
    /// Runs one transaction, without waiting for the disk.
    ///
    /// # Errors
    /// As [`Heap::atomically_split_phase`]; conflicts are met by repetition.
    fn step(&self, heap: &Heap, random: &mut Random, mode: CommitMode) -> HeapResult<CommittedTransaction>;

    /// Looks whether all is as the workload must have left it. Returns what is wrong, in words.
    ///
    /// # Errors
    /// As [`Heap::atomically`]. That the result is wrong is the inner error.
    fn check(&self, heap: &Heap) -> HeapResult<Result<(), String>>;
}

/// Numbers by chance, the same for the same seed (xorshift64*).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The numbers of a seed.
    pub fn new(seed: u64) -> Random {
        let mut random = Random((seed ^ 0x9E37_79B9_7F4A_7C15).max(1));
        // Seeds that are close to each other begin alike.
        for _ in 0..8 {
            random.next();
        }
        random
    }

    /// The next number.
    #[expect(clippy::should_implement_trait, reason = "it never ends, and nobody wants an adapter of it")]
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// A number below `end`, which is not 0.
    pub fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(end)) >> 64) as u64
    }
}
