//! The work given to contestants: keys, operations on them, and threads that begin at the same moment.
//!
//! Everything follows from a seed, and is there before the clock runs. The value of a key follows from the key, so
//! that one sum tells whether all answers to lookups were right.
use std::sync::Barrier;
use std::time::Instant;

use clap::ValueEnum;

/// How keys lie in their space of 32 bits (KISS-Tree, section 6: sequence, odd sequence, uniform).
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Order {
    /// 0, 1, 2, and so on
    Dense,
    /// 1, 3, 5, and so on
    Odd,
    /// Spread over all numbers of 32 bits, without repetition
    Uniform,
}

impl Order {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Order::Dense => "dense",
            Order::Odd => "odd",
            Order::Uniform => "uniform",
        }
    }

    /// The key with this number, in the order in which they are inserted.
    #[inline]
    pub fn key(self, number: u32) -> u64 {
        match self {
            Order::Dense => u64::from(number),
            Order::Odd => 2 * u64::from(number) + 1,
            // Odd multipliers permute the numbers of 32 bits, and the shifts spread what they leave in the upper bits.
            Order::Uniform => {
                let key = (number ^ (number >> 16)).wrapping_mul(0x7FEB_352D);
                let key = (key ^ (key >> 15)).wrapping_mul(0x846C_A68B);
                u64::from(key ^ (key >> 16))
            }
        }
    }
}

/// The value of a key; never zero.
#[inline]
pub(crate) fn value_of(key: u64) -> u64 {
    key ^ 0x5DEE_CE66_D000_0000
}

/// An operation: a key, and whether it is written or read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Operation(u64);

impl Operation {
    const WRITE: u64 = 1 << 63;

    /// Looks a key below 2^63 up.
    pub fn read(key: u64) -> Self {
        Operation(key)
    }

    /// Gives a key below 2^63 its value.
    pub fn write(key: u64) -> Self {
        Operation(key | Self::WRITE)
    }

    /// The key.
    #[inline]
    pub fn key(self) -> u64 {
        self.0 & !Self::WRITE
    }

    /// Whether the key is written.
    #[inline]
    pub fn is_write(self) -> bool {
        self.0 & Self::WRITE != 0
    }
}

/// Random numbers: wyrand, 64 bits of state.
pub(crate) struct Random(u64);

impl Random {
    /// The numbers that follow from a seed.
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0xA076_1D64_78BD_642F);
        let product = u128::from(self.0) * u128::from(self.0 ^ 0xE703_7ED1_A0B4_28DB);
        (product >> 64) as u64 ^ product as u64
    }

    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: u32) -> u32 {
        (((self.next() >> 32) * u64::from(bound)) >> 32) as u32
    }

    /// A number from 0 to below 1.
    pub(crate) fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// True in so many of 100 cases.
    pub(crate) fn is_among(&mut self, percent: u32) -> bool {
        self.below(100) < percent
    }
}

/// Keys for the reads of one thread, chosen at random from the first `count`, and the sum of their values.
pub(crate) struct PickedKeys {
    pub(crate) keys: Vec<u64>,
    pub(crate) sum: u64,
}

impl PickedKeys {
    /// So many keys.
    pub(crate) fn new(order: Order, count: u32, reads: usize, seed: u64) -> PickedKeys {
        let mut random = Random::new(seed);
        let keys: Vec<u64> = (0..reads).map(|_| order.key(random.below(count))).collect();
        let sum = keys.iter().fold(0, |sum: u64, key| sum.wrapping_add(value_of(*key)));
        PickedKeys { keys, sum }
    }
}

/// How many operations are done between two looks at the clock or at the epoch.
pub(crate) const GROUP: usize = 512;

/// Operations of one thread, some of them writes, and the sum of the values that are read.
pub(crate) struct MixedOperations {
    pub(crate) operations: Vec<Operation>,
    pub(crate) sum: u64,
}

impl MixedOperations {
    /// So many operations, `write_percent` of them writes of keys that `written` chooses, mingled at random.
    pub(crate) fn new(
        picked: &PickedKeys,
        write_percent: u32,
        seed: u64,
        mut written: impl FnMut(&mut Random) -> u64,
    ) -> MixedOperations {
        let (mut random, mut sum) = (Random::new(seed), 0u64);
        let operation = |key: &u64| {
            if random.is_among(write_percent) {
                return Operation::write(written(&mut random));
            }
            sum = sum.wrapping_add(value_of(*key));
            Operation::read(*key)
        };
        let operations = picked.keys.iter().map(operation).collect();
        MixedOperations { operations, sum }
    }

    /// Sorts each group's writes before its reads, which can then be done as a batch.
    pub(crate) fn in_batches(mut self) -> MixedOperations {
        self.operations.chunks_mut(GROUP).for_each(|group| group.sort_by_key(|operation| !operation.is_write()));
        self
    }
}

/// Has threads begin `work` at the same moment. Returns the seconds until the last one is done and what each returned;
/// `work` is told the thread's number.
pub(crate) fn side_by_side<R: Send>(threads: usize, work: impl Fn(usize) -> R + Sync) -> (f64, Vec<R>) {
    let barrier = Barrier::new(threads);
    let one = |thread| {
        barrier.wait();
        let start = Instant::now();
        let result = work(thread);
        (start, Instant::now(), result)
    };
    let done: Vec<(Instant, Instant, R)> = std::thread::scope(|scope| {
        let one = &one;
        let handles: Vec<_> = (0..threads).map(|thread| scope.spawn(move || one(thread))).collect();
        handles.into_iter().map(|handle| handle.join().expect("a measuring thread panicked")).collect()
    });
    let start = done.iter().map(|done| done.0).min();
    let end = done.iter().map(|done| done.1).max();
    let seconds = start.zip(end).map_or(0.0, |(start, end)| (end - start).as_secs_f64());
    (seconds, done.into_iter().map(|done| done.2).collect())
}

/// The memory of this process that is backed by the machine, in bytes; nothing where the system does not tell.
pub(crate) fn resident_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/smaps_rollup").ok()?;
    let line = text.lines().find(|line| line.starts_with("Rss:"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kib| kib << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_order_has_each_key_once() {
        for order in Order::value_variants() {
            let mut keys: Vec<u64> = (0..200_000).map(|number| order.key(number)).collect();
            keys.sort_unstable();
            keys.dedup();
            assert!(keys.len() == 200_000 && keys[199_999] < 1 << 32, "{order:?}");
        }
    }

    #[test]
    fn operations_are_mixed_as_ordered_and_sum_up_to_what_is_read() {
        let picked = PickedKeys::new(Order::Dense, 1_000, 10_000, 7);
        assert!(picked.keys.iter().all(|key| *key < 1_000));
        let mixed = MixedOperations::new(&picked, 20, 3, |random| 5_000 + u64::from(random.below(100)));
        let (written, read): (Vec<Operation>, Vec<Operation>) =
            mixed.operations.iter().partition(|operation| operation.is_write());
        assert!((1_800..2_200).contains(&written.len()));
        assert!(written.iter().all(|operation| (5_000..5_100).contains(&operation.key())));
        let sum_of =
            |read: &[Operation]| read.iter().map(|operation| value_of(operation.key())).fold(0, u64::wrapping_add);
        assert_eq!(sum_of(&read), mixed.sum);
        let (sum, batches) = (mixed.sum, mixed.in_batches());
        assert_eq!(batches.sum, sum);
        assert!(
            batches.operations.chunks(GROUP).all(|group| group.is_sorted_by_key(|operation| !operation.is_write()))
        );
    }

    #[test]
    fn threads_work_side_by_side() {
        let barrier = Barrier::new(3);
        let (seconds, numbers) = side_by_side(3, |thread| {
            barrier.wait();
            thread
        });
        assert_eq!(numbers, [0, 1, 2]);
        assert!(seconds > 0.0);
    }
}
