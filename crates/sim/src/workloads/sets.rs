//! Threads that look up, insert and remove keys at random in one or more sets, each behind one latch
//! (tle-multisocket, section 3).
//!
//! A set begins with half of its keys. Each line is in the L3 of a socket that has threads. Threads work through a
//! warm-up, then what ends is counted. With throttling, profiling is part of the warm-up, as it lasts a hundredth of the
//! paper's trials.

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::Rc;

use latches::throttle::Strategy;

use super::outcome::Outcome;
use crate::machine::{Aborted, Core, MachineConfig, Pinning};
use crate::memory::Memory;
use crate::random::Random;
use crate::sections::{Gate, GateKeeper, Latch, SectionCounts, Way};
use crate::simulation::{SimulatedThread, Simulation, complete};
use crate::structures::{Pool, Set};

/// Cycles between two operations of a thread.
const BETWEEN_CYCLES: u64 = 30;

/// What threads do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operations {
    /// Updates, of which half insert and half remove, and lookups.
    Updates {
        /// The share of updates.
        percent: u64,
    },
    /// A lookup that writes the key of the last node of its way again.
    SearchAndReplace,
}

/// Threads that do the same.
#[derive(Debug, Clone)]
pub struct Group {
    /// The number of the set that they work on.
    pub set: usize,
    /// The keys that they pick from.
    pub keys: Range<u64>,
    /// What they do.
    pub operations: Operations,
    /// Where they run: a thread for each.
    pub cores: Vec<Core>,
}

/// Throttling by socket.
#[derive(Debug, Clone, Copy)]
pub struct Throttling {
    /// What is made of the profile.
    pub strategy: Strategy,
    /// How long each mode is profiled, in microseconds.
    pub mode_us: u64,
    /// The quantum that modes share, in microseconds.
    pub quantum_us: u64,
}

/// A workload.
#[derive(Debug, Clone)]
pub struct SetWorkload {
    /// The machine.
    pub config: MachineConfig,
    /// The sets, by how many keys each may have.
    pub key_ranges: Vec<u64>,
    /// The threads.
    pub groups: Vec<Group>,
    /// How sections run.
    pub way: Way,
    /// Throttling around the latches, if any.
    pub throttling: Option<Throttling>,
    /// Cycles that each section computes at its end.
    pub section_delay: u64,
    /// The time until operations count, in microseconds.
    pub warm_up_us: u64,
    /// The time in which they count, in microseconds.
    pub measured_us: u64,
    /// Where all chance comes from.
    pub seed: u64,
}

struct World<S> {
    sets: Vec<(S, Latch, Gate)>,
    groups: Vec<Group>,
    keeper: Option<GateKeeper>,
    way: Way,
    section_delay: u64,
    /// When profiling begins, when counting begins, when all ends.
    profile_at: u64,
    count_from: u64,
    end: u64,
    operations: RefCell<Vec<u64>>,
    by_thread: RefCell<Vec<u64>>,
    sections: SectionCounts,
    has_profiled: Cell<bool>,
}

impl SetWorkload {
    /// Threads of one group on one set.
    pub fn plain(config: MachineConfig, key_range: u64, percent: u64, threads: usize, way: Way) -> Self {
        let cores = Pinning::FillSocket.cores(&config, threads);
        SetWorkload {
            config,
            key_ranges: vec![key_range],
            groups: vec![Group { set: 0, keys: 0..key_range, operations: Operations::Updates { percent }, cores }],
            way,
            throttling: None,
            section_delay: 0,
            warm_up_us: 40,
            measured_us: 200,
            seed: 1,
        }
    }

    /// Runs it on structures of a kind.
    pub fn run<S: Set + 'static>(&self) -> Outcome {
        let simulation = Simulation::new(self.config, self.seed);
        let warm_up_us = self.warm_up_us + self.throttling.map_or(0, |throttling| self.profiling_us(throttling));
        let cycles = |us: u64| self.config.cycles(us * 1_000);
        let strategy = self.throttling.unwrap_or(Throttling { strategy: Strategy::Share, mode_us: 1, quantum_us: 1 });
        let keeper =
            GateKeeper::new(&self.config, strategy.strategy, strategy.mode_us * 1_000, strategy.quantum_us * 1_000);
        let cores: Vec<Core> = self.groups.iter().flat_map(|group| group.cores.iter().copied()).collect();
        let world = Rc::new(World {
            sets: self.key_ranges.iter().map(|&range| self.filled::<S>(&simulation, range, &keeper)).collect(),
            groups: self.groups.clone(),
            keeper: self.throttling.map(|_| keeper),
            way: self.way,
            section_delay: self.section_delay,
            profile_at: cycles(self.warm_up_us),
            count_from: cycles(warm_up_us),
            end: cycles(warm_up_us + self.measured_us),
            operations: RefCell::new(vec![0; self.groups.len()]),
            by_thread: RefCell::new(vec![0; cores.len()]),
            sections: SectionCounts::default(),
            has_profiled: Cell::new(false),
        });
        simulation.preload(&cores);
        simulation.run(&cores, |thread| {
            let pool = Pool::of(&simulation, S::NODE_WORDS);
            work(thread, world.clone(), pool)
        });
        Outcome {
            operations: world.operations.borrow().clone(),
            by_thread: world.by_thread.borrow().clone(),
            microseconds: self.measured_us as f64,
            counters: simulation.counters(),
            sections: world.sections.clone(),
        }
    }

    fn profiling_us(&self, throttling: Throttling) -> u64 {
        // One mode more until all have looked at the result.
        throttling.mode_us * (self.config.sockets as u64 + 2)
    }

    /// A set with half of the keys of a range, in an order by chance.
    fn filled<S: Set>(&self, simulation: &Simulation, range: u64, keeper: &GateKeeper) -> (S, Latch, Gate) {
        let latch = Latch::at(simulation.allocate(Latch::WORDS));
        let set = S::at(simulation.allocate(S::WORDS));
        let pool = Pool::of(simulation, S::NODE_WORDS);
        let mut keys: Vec<u64> = (0..range).collect();
        Random::of(self.seed, range).shuffle(&mut keys);
        for key in &keys[..keys.len() / 2] {
            let added = complete(set.insert(&simulation.unclocked(), *key, &pool));
            debug_assert_eq!(added, Ok(true), "keys differ, and nothing aborts");
            pool.settle();
        }
        (set, latch, keeper.gate())
    }
}

/// A step of a thread's work.
#[derive(Clone, Copy)]
enum Operation {
    Contains,
    Insert,
    Remove,
    Replace,
}

impl<S: Set> World<S> {
    fn group_of(&self, mut thread: usize) -> usize {
        for (at, group) in self.groups.iter().enumerate() {
            if thread < group.cores.len() {
                return at;
            }
            thread -= group.cores.len();
        }
        self.groups.len() - 1
    }

    fn pick<M: Memory>(&self, memory: &M, group: &Group) -> (Operation, u64) {
        let key = group.keys.start + memory.below(group.keys.end - group.keys.start);
        let operation = match group.operations {
            Operations::SearchAndReplace => Operation::Replace,
            Operations::Updates { percent } if memory.below(100) >= percent => Operation::Contains,
            Operations::Updates { .. } if memory.below(2) == 0 => Operation::Insert,
            Operations::Updates { .. } => Operation::Remove,
        };
        (operation, key)
    }
}

/// The work of one thread.
async fn work<S: Set>(thread: SimulatedThread, world: Rc<World<S>>, pool: Pool) -> Result<(), Aborted> {
    let group_number = world.group_of(thread.number());
    let group = &world.groups[group_number];
    let (set, latch, gate) = &world.sets[group.set];
    let counts = SectionCounts::default();
    while thread.now() < world.end {
        let (operation, key) = world.pick(&thread, group);
        if let Some(keeper) = &world.keeper {
            if thread.now() >= world.profile_at && !world.has_profiled.replace(true) {
                keeper.profile(&thread);
            }
            if !keeper.enter(gate, &thread, world.end).await? {
                break;
            }
        }
        let is_write = !matches!(operation, Operation::Contains);
        let body = async || {
            match operation {
                Operation::Contains => set.contains(&thread, key).await.map(drop)?,
                Operation::Insert => set.insert(&thread, key, &pool).await.map(drop)?,
                Operation::Remove => set.remove(&thread, key, &pool).await.map(drop)?,
                Operation::Replace => set.search_and_replace(&thread, key).await?,
            }
            if world.section_delay > 0 { thread.compute(world.section_delay).await } else { Ok(()) }
        };
        world.way.run(&thread, latch, is_write, &counts, body).await?;
        pool.settle();
        if (world.count_from..world.end).contains(&thread.now()) {
            world.operations.borrow_mut()[group_number] += 1;
            world.by_thread.borrow_mut()[thread.number()] += 1;
        }
        thread.compute(BETWEEN_CYCLES).await?;
    }
    world.sections.add(&counts);
    Ok(())
}
