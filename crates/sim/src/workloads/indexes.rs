//! Threads that search and insert in an index behind one latch (tsx-index, sections 2.1.3 and 4.1): the index begins with the even
//! numbers, searches are for even numbers, inserts of odd ones.

use std::cell::Cell;
use std::rc::Rc;

use super::outcome::Outcome;
use crate::machine::{Aborted, Core, MachineConfig};
use crate::memory::Memory;
use crate::random::Random;
use crate::sections::{Latch, SectionCounts, Way};
use crate::simulation::{SimulatedThread, Simulation, complete};
use crate::structures::{IndexKind, IndexTree, Pool};

/// Cycles between two operations of a thread.
const BETWEEN_CYCLES: u64 = 60;

/// An index with its keys, made once for many runs.
pub struct FilledIndex {
    index: IndexTree,
    latch: Latch,
    keys: u64,
    image: Vec<u64>,
}

impl FilledIndex {
    /// An index with so many even numbers, which arrived in an order by chance.
    pub fn new(kind: IndexKind, keys: u64, seed: u64) -> Self {
        let simulation = Simulation::new(MachineConfig::I7_4770, seed);
        let latch = Latch::at(simulation.allocate(Latch::WORDS));
        let index = IndexTree::new(kind, keys + keys / 2 + 4_096, simulation.allocator());
        let pool = Pool::of(&simulation, IndexTree::NODE_WORDS);
        let memory = simulation.unclocked();
        let mut order: Vec<u64> = (0..keys).map(|key| 2 * key).collect();
        Random::of(seed, keys).shuffle(&mut order);
        let filled = complete(async {
            index.prepare(&memory, &pool).await?;
            pool.settle();
            for key in order {
                index.insert(&memory, key, &pool).await?;
                pool.settle();
            }
            Ok::<(), Aborted>(())
        });
        debug_assert_eq!(filled, Ok(()), "nothing aborts before threads run");
        FilledIndex { index, latch, keys, image: simulation.image() }
    }
}

/// A workload on an index.
#[derive(Debug, Clone)]
pub struct IndexWorkload {
    /// The machine.
    pub config: MachineConfig,
    /// A thread for each.
    pub cores: Vec<Core>,
    /// The share of inserts.
    pub insert_percent: u64,
    /// How sections run. Without synchronization each happens at one moment, so that the index is not broken: the paper's bound,
    /// whose runs were correct.
    pub way: Way,
    /// The time in which operations count, in microseconds; a fifth of it goes before.
    pub measured_us: u64,
    /// Where all chance comes from.
    pub seed: u64,
}

struct World {
    index: IndexTree,
    latch: Latch,
    keys: u64,
    insert_percent: u64,
    way: Way,
    count_from: u64,
    end: u64,
    operations: Cell<u64>,
    sections: SectionCounts,
}

impl IndexWorkload {
    /// Runs it on an index.
    pub fn run(&self, filled: &FilledIndex) -> Outcome {
        let simulation = Simulation::new(self.config, self.seed);
        simulation.load_image(&filled.image);
        let warm_up_us = (self.measured_us / 5).max(20);
        let world = Rc::new(World {
            index: filled.index,
            latch: filled.latch,
            keys: filled.keys,
            insert_percent: self.insert_percent,
            way: self.way,
            count_from: self.config.cycles(warm_up_us * 1_000),
            end: self.config.cycles((warm_up_us + self.measured_us) * 1_000),
            operations: Cell::new(0),
            sections: SectionCounts::default(),
        });
        simulation.preload(&self.cores);
        simulation.run(&self.cores, |thread| {
            let pool = Pool::of(&simulation, IndexTree::NODE_WORDS);
            work(thread, world.clone(), pool)
        });
        Outcome {
            operations: vec![world.operations.get()],
            by_thread: Vec::new(),
            microseconds: self.measured_us as f64,
            counters: simulation.counters(),
            sections: world.sections.clone(),
        }
    }
}

/// The work of one thread.
async fn work(thread: SimulatedThread, world: Rc<World>, pool: Pool) -> Result<(), Aborted> {
    let counts = SectionCounts::default();
    while thread.now() < world.end {
        let key = 2 * thread.below(world.keys);
        let inserts = thread.below(100) < world.insert_percent;
        let body = async || {
            if inserts {
                world.index.insert(&thread, key + 1, &pool).await
            } else {
                world.index.contains(&thread, key).await
            }
        };
        let answer = if world.way == Way::Unsynchronized {
            thread.at_one_moment(body()).await?
        } else {
            world.way.run(&thread, &world.latch, inserts, &counts, body).await?
        };
        debug_assert!(inserts || answer, "each key that is looked for is there");
        pool.settle();
        if (world.count_from..world.end).contains(&thread.now()) {
            world.operations.set(world.operations.get() + 1);
        }
        thread.compute(BETWEEN_CYCLES).await?;
    }
    world.sections.add(&counts);
    Ok(())
}
