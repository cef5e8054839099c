//! Sets under one and two threads, on this computer and on the model: nanoseconds of an operation of a thread.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use super::rounds::{Times, Work, rounds};
use super::size::{CYCLES_PER_NS, CalibrationSize};
use crate::machine::{Aborted, LINE_WORDS, MachineConfig};
use crate::memory::Memory;
use crate::native::NativeMemory;
use crate::random::Random;
use crate::sections::{Latch, SectionCounts, Way};
use crate::simulation::{Simulation, complete};
use crate::structures::{AvlTree, LeafTree, Pool, Set, SkipList};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Avl,
    Leaf,
    SkipList,
}

/// A workload that is measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Measured {
    kind: Kind,
    keys: u64,
    update_percent: u64,
    threads: usize,
    way: Way,
    /// Whether the set has no key, and updates only remove: what is left of an operation is not memory.
    is_empty: bool,
}

/// How the model stands for this computer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Model {
    pub config: MachineConfig,
    /// Whether the two hardware threads share a core.
    pub is_core_shared: bool,
}

/// The points, from the smallest sets on.
const POINTS: [Measured; 15] = [
    Measured::alone(Kind::Avl, 2_048, 0),
    Measured::alone(Kind::Avl, 2_048, 100),
    Measured::alone(Kind::Leaf, 2_048, 0),
    Measured::alone(Kind::Leaf, 2_048, 100),
    Measured::alone(Kind::SkipList, 2_048, 0),
    Measured::under(Kind::Avl, 2_048, 0, Way::Unsynchronized),
    Measured::under(Kind::Avl, 2_048, 0, Way::ReadWrite),
    Measured::under(Kind::Avl, 2_048, 100, Way::Spin),
    Measured::under(Kind::Leaf, 2_048, 100, Way::Spin),
    Measured::alone(Kind::Avl, 16_384, 0),
    Measured::alone(Kind::Avl, 16_384, 100),
    Measured::alone(Kind::Leaf, 16_384, 0),
    Measured::alone(Kind::Avl, 131_072, 0),
    Measured::alone(Kind::Avl, 131_072, 100),
    Measured::alone(Kind::Leaf, 65_536, 0),
];

impl Measured {
    const fn alone(kind: Kind, keys: u64, update_percent: u64) -> Self {
        Measured { kind, keys, update_percent, threads: 1, way: Way::Unsynchronized, is_empty: false }
    }

    const fn under(kind: Kind, keys: u64, update_percent: u64, way: Way) -> Self {
        Measured { kind, keys, update_percent, threads: 2, way, is_empty: false }
    }

    /// Sets that L1 holds.
    pub const WITHIN_L1: [Self; 3] = [
        Measured::alone(Kind::Avl, 256, 0),
        Measured::alone(Kind::Leaf, 256, 0),
        Measured::alone(Kind::SkipList, 128, 0),
    ];

    /// One thread and two on a set that L1 holds, without a latch.
    pub const ALONE_AND_TOGETHER: [Self; 2] =
        [Measured::alone(Kind::Avl, 256, 0), Measured::under(Kind::Avl, 256, 0, Way::Unsynchronized)];

    /// What is told of it.
    pub fn name(&self) -> String {
        let kind = match self.kind {
            Kind::Avl => "AVL tree",
            Kind::Leaf => "leaf-oriented tree",
            Kind::SkipList => "skip list",
        };
        let way = match (self.threads, self.way) {
            (1, _) => "1 thread",
            (_, Way::Spin) => "2 threads, spin latch",
            (_, Way::ReadWrite) => "2 threads, RW latch",
            _ => "2 threads, no latch",
        };
        format!("{kind}, {} keys, {}% updates, {way}", self.keys, self.update_percent)
    }

    /// An operation on this computer: one pass.
    pub fn natively(&self, size: &CalibrationSize, seed: u64) -> Times {
        match self.kind {
            Kind::Avl => self.natively_on::<AvlTree>(size, seed),
            Kind::Leaf => self.natively_on::<LeafTree>(size, seed),
            Kind::SkipList => self.natively_on::<SkipList>(size, seed),
        }
    }

    /// What of an operation is not of the set: choosing a key, preparing the way, giving nodes.
    pub fn apart(&self) -> Self {
        Measured { is_empty: true, threads: 1, way: Way::Unsynchronized, ..*self }
    }

    /// Nanoseconds of an operation on the model, of which so many are not of the set.
    pub fn simulated(&self, model: &Model, apart_ns: f64, size: &CalibrationSize, seed: u64) -> f64 {
        let pause = (apart_ns * CYCLES_PER_NS as f64) as u64;
        match self.kind {
            Kind::Avl => self.simulated_on::<AvlTree>(model, pause, size, seed),
            Kind::Leaf => self.simulated_on::<LeafTree>(model, pause, size, seed),
            Kind::SkipList => self.simulated_on::<SkipList>(model, pause, size, seed),
        }
    }

    fn fill<M: Memory, S: Set>(&self, memory: &M, set: &S, pool: &Pool, seed: u64) {
        let mut keys: Vec<u64> = if self.is_empty { Vec::new() } else { (0..self.keys).collect() };
        Random::of(seed, self.keys).shuffle(&mut keys);
        for key in &keys[..keys.len() / 2] {
            let added = complete(set.insert(memory, *key, pool));
            debug_assert_eq!(added, Ok(true), "keys differ, and nothing aborts");
            pool.settle();
        }
    }

    /// Operations of a thread until a moment; how many.
    async fn operate<M: Memory, S: Set>(
        &self,
        memory: &M,
        (set, latch, pool): (&S, &Latch, &Pool),
        pause: u64,
        is_over: impl Fn() -> bool,
    ) -> Result<u64, Aborted> {
        let counts = SectionCounts::default();
        let mut operations = 0;
        while !is_over() {
            for _ in 0..OPERATIONS {
                let (choice, key) = (memory.below(100), memory.below(self.keys));
                let is_write = choice < self.update_percent;
                let body = async || {
                    if !is_write {
                        set.contains(memory, key).await
                    } else if choice.is_multiple_of(2) && !self.is_empty {
                        set.insert(memory, key, pool).await
                    } else {
                        set.remove(memory, key, pool).await
                    }
                };
                std::hint::black_box(self.way.run(memory, latch, is_write, &counts, body).await?);
                pool.settle();
                if pause > 0 {
                    memory.compute(pause).await?;
                }
            }
            operations += OPERATIONS;
        }
        Ok(operations)
    }

    fn natively_on<S: Set + Send + Sync>(&self, size: &CalibrationSize, seed: u64) -> Times {
        let memory = NativeMemory::new((self.keys * S::NODE_WORDS * 4 + (1 << 16)) as usize);
        let (latch, set) = (Latch::at(LINE_WORDS * 2), S::at(LINE_WORDS * 8));
        let next = Arc::new(AtomicU64::new(LINE_WORDS * 16));
        let pool = || {
            let next = next.clone();
            Pool::new(S::NODE_WORDS, move |words| next.fetch_add(words, Ordering::Relaxed))
        };
        self.fill(&memory.thread(0, seed), &set, &pool(), seed);
        rounds(self.threads, size, |number| {
            let (thread, pool) = (memory.thread(number, seed), pool());
            let (set, latch) = (&set, &latch);
            move |until| {
                let is_over = || Instant::now() >= until;
                complete(self.operate(&thread, (set, latch, &pool), 0, is_over)).map_or(Work::default(), Work::of)
            }
        })
    }

    fn simulated_on<S: Set + 'static>(&self, model: &Model, pause: u64, size: &CalibrationSize, seed: u64) -> f64 {
        let simulation = Simulation::new(model.config, seed);
        let latch = Latch::at(simulation.allocate(Latch::WORDS));
        let set = S::at(simulation.allocate(S::WORDS));
        self.fill(&simulation.unclocked(), &set, &Pool::of(&simulation, S::NODE_WORDS), seed);
        let cores: Vec<usize> = (0..self.threads).map(|thread| if model.is_core_shared { 0 } else { thread }).collect();
        simulation.preload(&cores);
        let length = size.simulated_us * 1_000 * CYCLES_PER_NS;
        let rate = Cell::new(0.0);
        simulation.run(&cores, |thread| {
            let pool = Pool::of(&simulation, S::NODE_WORDS);
            let (set, rate) = (&set, &rate);
            async move {
                self.operate(&thread, (set, &latch, &pool), pause, || thread.now() >= length).await?;
                // From its own beginning on, as the operations before may have run past any moment that was fixed.
                let begun = thread.now();
                let is_over = || thread.now() >= begun + length;
                let operations = self.operate(&thread, (set, &latch, &pool), pause, is_over).await?;
                rate.set(rate.get() + operations as f64 / (thread.now() - begun) as f64);
                Ok(())
            }
        });
        self.threads as f64 / rate.get() / CYCLES_PER_NS as f64
    }
}

/// Operations between two looks at the clock.
const OPERATIONS: u64 = 8;

/// The points of a size.
pub(super) fn chosen(size: &CalibrationSize) -> Vec<Measured> {
    POINTS.into_iter().filter(|point| size.has_large || point.keys < 10_000).collect()
}

#[cfg(test)]
mod tests {
    use super::super::shapes::Shapes;
    use super::super::uncalibrated;
    use super::*;

    #[test]
    fn an_operation_that_outlasts_the_run_has_a_time() {
        let mut config = uncalibrated(Shapes::here());
        config.latencies.transfer = 100 * CalibrationSize::SMALL.simulated_us * 1_000 * CYCLES_PER_NS;
        let point = Measured::under(Kind::Leaf, 2_048, 100, Way::Spin);
        let ns = point.simulated(&Model { config, is_core_shared: false }, 10.0, &CalibrationSize::SMALL, 1);
        assert!(ns.is_finite() && ns > 0.0, "{ns}");
    }
}
