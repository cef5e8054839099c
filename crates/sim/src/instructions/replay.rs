//! Traces on many cores, each with an L1-I and an L1-D: threads stay where they are, or migrate to the core that has their code
//! (the paper, section 3).
//!
//! ```text
//! a miss -> miss counter of the core
//! counter > FMT?            the cache is full: a thread that misses may migrate
//! misses of the last 100 accesses >= AMT?      it is no gap that is filled
//! the last TLS missed blocks are all in one other cache?  -> to that core
//! an idle core?                                           -> there
//! otherwise                                               stay
//! ```
//!
//! Two relatives are replayed beside. STEPS (Harizopoulos and Ailamaki, TODS 2006; section 5 of the paper) keeps a team on one core:
//! its first thread runs until it has filled the cache, and each of the others runs the same part before the first goes on. SLICC
//! (Atta et al., MICRO 2012) is TMi that takes a cache anew where a thread finds no other one to go to: its miss counter begins at 0.
//!
//! Threads never preempt one another: a thread that comes to a core waits until the ones before it have ended or left. The threads
//! of a team all begin at one core, so that each finds what the one before it has brought in. Cores take turns, a touch each.

use std::collections::VecDeque;

use super::policies::{Policy, PolicyCache};
use super::trace::{Access, Touch, Trace};
use crate::machine::CacheShape;
use crate::random::Random;

/// Whether and how threads migrate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Migration {
    /// NO-MGRT: a thread runs on one core, chosen by chance.
    Never,
    /// TMi-ST: threads of one type run together, a team at a time.
    Teams,
    /// TMi-B: all threads run at once, whatever their types.
    Blind,
    /// Like STEPS: the threads of a team take turns on one core, a part of their code after the other.
    Steps,
    /// Like SLICC: TMi-ST, with caches that are filled anew.
    Slicc,
}

/// How traces are replayed.
#[derive(Debug, Clone, Copy)]
pub struct Replay {
    /// Cores.
    pub cores: usize,
    /// The shape of each L1, of instructions and of data.
    pub shape: CacheShape,
    /// Where L1-I inserts.
    pub policy: Policy,
    /// Whether threads migrate.
    pub migration: Migration,
    /// Misses until a cache counts as full: FMT.
    pub full_misses: u32,
    /// Missed blocks that another cache must have: TLS.
    pub tags: usize,
    /// Misses among the last hundred accesses that a thread must have: AMT; 0 asks for none.
    pub recent_misses: u32,
    /// Threads of a team.
    pub team: usize,
    /// Where all chance comes from.
    pub seed: u64,
}

impl Default for Replay {
    fn default() -> Self {
        Replay {
            cores: 16,
            shape: CacheShape::kib(32, 8),
            policy: Policy::Lru,
            migration: Migration::Never,
            full_misses: 256,
            tags: 6,
            recent_misses: 8,
            team: 25,
            seed: 1,
        }
    }
}

/// What came of a replay.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ReplayOutcome {
    /// Instructions in all.
    pub instructions: u64,
    /// Misses of L1-I.
    pub code_misses: u64,
    /// Misses of L1-D by reads.
    pub read_misses: u64,
    /// Misses of L1-D by writes.
    pub write_misses: u64,
    /// Migrations; of STEPS, the turns that threads took.
    pub migrations: u64,
    /// Threads that ran on a core between two of one type, summed up, and how often that was counted.
    distances: (u64, u64),
}

impl ReplayOutcome {
    fn per_thousand(&self, count: u64) -> f64 {
        count as f64 * 1_000.0 / self.instructions.max(1) as f64
    }

    /// Misses of L1-I for each thousand instructions.
    pub fn i_mpki(&self) -> f64 {
        self.per_thousand(self.code_misses)
    }

    /// Misses of L1-D by reads for each thousand instructions.
    pub fn read_mpki(&self) -> f64 {
        self.per_thousand(self.read_misses)
    }

    /// Misses of L1-D by writes for each thousand instructions.
    pub fn write_mpki(&self) -> f64 {
        self.per_thousand(self.write_misses)
    }

    /// Thousand instructions between two migrations.
    pub fn kipm(&self) -> f64 {
        self.instructions as f64 / 1_000.0 / self.migrations.max(1) as f64
    }

    /// The distance between similar threads: after how many turns of threads on a core one of the same type comes again.
    pub fn dbst(&self) -> f64 {
        self.distances.0 as f64 / self.distances.1.max(1) as f64
    }
}

struct CoreState {
    code: PolicyCache,
    data: PolicyCache,
    /// Threads that are here; the first one runs.
    queue: VecDeque<usize>,
    misses: u32,
    /// The last blocks that the running thread missed: MTB.
    missed: VecDeque<u32>,
    /// The last hundred accesses, a bit for each miss: AB.
    recent: u128,
    /// How many threads have come to run here, and when one of each type did.
    turns: u64,
    last_turns: Vec<Option<u64>>,
    part: Part,
}

/// The part of their code that the threads of a team go through in turn, as STEPS has them.
#[derive(Default)]
struct Part {
    /// Blocks that the first thread ran, and the block before which it stopped: the end of the part, once it is known.
    end: Option<(u64, u32)>,
    /// Threads that have run it.
    done: usize,
    /// Blocks and misses of the thread that runs.
    blocks: u64,
    misses: u32,
}

impl Part {
    /// Whether the thread that runs is at the end of the part. A cache is full after `full_misses`.
    fn ends_before(&self, block: u32, full_misses: u32) -> bool {
        if self.misses > full_misses {
            return true;
        }
        // Threads leave out blocks or repeat them: the end is looked for where it should be.
        self.end.is_some_and(|(blocks, end)| {
            let is_near = self.blocks * 4 >= blocks * 3;
            is_near && end == block || self.blocks * 4 >= blocks * 5
        })
    }
}

/// The bits of the access buffer.
const RECENT: u128 = (1 << 100) - 1;

struct Cores<'a> {
    replay: Replay,
    traces: &'a [Trace],
    /// How far each thread is.
    places: Vec<usize>,
    cores: Vec<CoreState>,
    outcome: ReplayOutcome,
}

impl Replay {
    /// Replays transactions, a thread for each.
    pub fn run(&self, traces: &[Trace]) -> ReplayOutcome {
        let core = |at: usize| CoreState {
            code: PolicyCache::new(self.shape, self.policy, self.seed + at as u64),
            data: PolicyCache::new(self.shape, Policy::Lru, 1),
            queue: VecDeque::new(),
            misses: 0,
            missed: VecDeque::new(),
            recent: 0,
            turns: 0,
            last_turns: vec![None; 256],
            part: Part::default(),
        };
        let mut cores = Cores {
            replay: *self,
            traces,
            places: vec![0; traces.len()],
            cores: (0..self.cores).map(core).collect(),
            outcome: ReplayOutcome { instructions: traces.iter().map(Trace::instructions).sum(), ..Default::default() },
        };
        let mut random = Random::new(self.seed);
        // STEPS has a team on each core, TMi one on all of them.
        let at_once = if self.migration == Migration::Steps { self.cores } else { 1 };
        for teams in self.teams(traces).chunks(at_once) {
            for (at, team) in teams.iter().enumerate() {
                for &thread in team {
                    let core = match self.migration {
                        Migration::Teams | Migration::Slicc | Migration::Steps => at,
                        Migration::Never | Migration::Blind => random.below(self.cores as u64) as usize,
                    };
                    cores.enqueue(core, thread);
                }
            }
            cores.run_all();
        }
        cores.outcome
    }

    /// The threads that run together, in their order.
    fn teams(&self, traces: &[Trace]) -> Vec<Vec<usize>> {
        let all = || 0..traces.len();
        if matches!(self.migration, Migration::Never | Migration::Blind) {
            return vec![all().collect()];
        }
        let mut teams = Vec::new();
        for kind in 0..=u8::MAX {
            let similar: Vec<usize> = all().filter(|&thread| traces[thread].kind == kind).collect();
            teams.extend(similar.chunks(self.team).map(<[usize]>::to_vec));
        }
        teams
    }
}

impl Cores<'_> {
    /// Runs until no thread is left; then the counters of a team begin anew.
    fn run_all(&mut self) {
        while self.cores.iter().any(|core| !core.queue.is_empty()) {
            (0..self.cores.len()).for_each(|core| self.turn(core));
        }
        for core in &mut self.cores {
            core.part = Part::default();
            core.misses = 0;
            core.missed.clear();
            core.recent = 0;
        }
    }

    fn enqueue(&mut self, core: usize, thread: usize) {
        self.cores[core].queue.push_back(thread);
        if self.cores[core].queue.len() == 1 {
            self.note_start(core);
        }
    }

    /// The first thread of a core leaves it.
    fn dequeue(&mut self, core: usize) {
        let state = &mut self.cores[core];
        state.queue.pop_front();
        state.missed.clear();
        state.recent = 0;
        if !state.queue.is_empty() {
            self.note_start(core);
        }
    }

    fn note_start(&mut self, core: usize) {
        let state = &mut self.cores[core];
        let kind = usize::from(self.traces[state.queue[0]].kind);
        state.turns += 1;
        if let Some(before) = state.last_turns[kind].replace(state.turns) {
            self.outcome.distances.0 += state.turns - before;
            self.outcome.distances.1 += 1;
        }
    }

    /// One touch of the thread that runs on a core.
    fn turn(&mut self, core: usize) {
        let Some(&thread) = self.cores[core].queue.front() else { return };
        let Some(&touch) = self.traces[thread].touches.get(self.places[thread]) else {
            self.dequeue(core);
            self.end_part(core, None);
            return;
        };
        if self.replay.migration == Migration::Steps && matches!(touch.access, Access::Code(_)) {
            let state = &mut self.cores[core];
            if state.queue.len() > 1 && state.part.ends_before(touch.block, self.replay.full_misses) {
                self.outcome.migrations += 1;
                self.dequeue(core);
                self.end_part(core, Some(touch.block));
                self.enqueue(core, thread);
                return;
            }
            state.part.blocks += 1;
        }
        self.places[thread] += 1;
        match touch.access {
            Access::Code(_) => {
                let has_missed = self.fetch(core, touch);
                if has_missed && let Some(other) = self.target(core) {
                    self.outcome.migrations += 1;
                    self.dequeue(core);
                    self.enqueue(other, thread);
                }
            }
            Access::Read => self.outcome.read_misses += u64::from(!self.cores[core].data.touch(touch.block)),
            Access::Write => {
                self.outcome.write_misses += u64::from(!self.cores[core].data.touch(touch.block));
                for other in (0..self.cores.len()).filter(|&other| other != core) {
                    self.cores[other].data.remove(touch.block);
                }
            }
        }
    }

    /// The thread that ran has ended, or stopped before a block: the next one runs the part, or if all have, the first runs the next.
    fn end_part(&mut self, core: usize, block: Option<u32>) {
        let state = &mut self.cores[core];
        let part = &mut state.part;
        part.done += usize::from(block.is_some());
        if let Some(block) = block
            && part.end.is_none()
        {
            part.end = Some((part.blocks, block));
        }
        (part.blocks, part.misses) = (0, 0);
        if part.done > state.queue.len() {
            *part = Part::default();
        }
    }

    /// Fetches code; whether it missed.
    fn fetch(&mut self, core: usize, touch: Touch) -> bool {
        let state = &mut self.cores[core];
        let has_missed = !state.code.touch(touch.block);
        if state.misses >= self.replay.full_misses {
            state.recent = (state.recent << 1 | u128::from(has_missed)) & RECENT;
        }
        if has_missed {
            self.outcome.code_misses += 1;
            state.misses += 1;
            state.part.misses += 1;
            state.missed.push_back(touch.block);
            if state.missed.len() > self.replay.tags {
                state.missed.pop_front();
            }
        }
        has_missed
    }

    /// The core to which the thread of a core should go, if any.
    fn target(&mut self, core: usize) -> Option<usize> {
        let (replay, state) = (&self.replay, &self.cores[core]);
        let is_enabled = matches!(replay.migration, Migration::Teams | Migration::Blind | Migration::Slicc)
            && state.misses > replay.full_misses
            && state.missed.len() == replay.tags
            && state.recent.count_ones() >= replay.recent_misses;
        if !is_enabled {
            return None;
        }
        let others = || (0..self.cores.len()).filter(|&other| other != core);
        let has_all = |&other: &usize| state.missed.iter().all(|&block| self.cores[other].code.contains(block));
        let target = others().find(has_all).or_else(|| others().find(|&other| self.cores[other].queue.is_empty()));
        if target.is_none() && replay.migration == Migration::Slicc {
            self.cores[core].misses = 0;
        }
        target
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Threads whose code is `parts` runs of 512 blocks, one cache each, gone through some times.
    fn cyclic(threads: usize, parts: u32, rounds: usize) -> Vec<Trace> {
        let touch = |block: u32| Touch { block, access: Access::Code(10) };
        let touches: Vec<Touch> = (0..rounds).flat_map(|_| (0..parts * 512).map(touch)).collect();
        (0..threads).map(|_| Trace { kind: 0, touches: touches.clone() }).collect()
    }

    #[test]
    fn code_that_fits_into_all_caches_together_is_found_there_by_threads_that_migrate() {
        let traces = cyclic(20, 4, 3);
        let stay = Replay::default().run(&traces);
        assert_eq!(stay.i_mpki(), 100.0, "a loop over four caches misses always");
        let teams = Replay { migration: Migration::Teams, ..Replay::default() }.run(&traces);
        assert!(teams.i_mpki() < 30.0 && teams.migrations > 100, "{teams:?}");
        assert_eq!(stay.instructions, teams.instructions);
    }

    #[test]
    fn threads_that_take_turns_on_one_core_miss_each_part_of_their_code_once() {
        let traces = cyclic(16, 4, 3);
        let steps = Replay { migration: Migration::Steps, full_misses: 500, team: 16, ..Replay::default() };
        let outcome = steps.run(&traces);
        let stay = Replay::default().run(&traces);
        assert!(outcome.code_misses * 8 < stay.code_misses, "{outcome:?}");
        assert_eq!((outcome.instructions, stay.migrations), (stay.instructions, 0));
        assert!(outcome.migrations >= 16 * 11, "twelve parts, each run by all: {outcome:?}");
    }

    #[test]
    fn a_cache_that_is_filled_anew_lets_threads_go_on_where_no_core_is_left() {
        // More code than all caches of two cores hold.
        let traces = cyclic(12, 6, 2);
        let run = |migration| Replay { migration, cores: 2, ..Replay::default() }.run(&traces);
        let (teams, slicc) = (run(Migration::Teams), run(Migration::Slicc));
        assert!(slicc.migrations < teams.migrations, "{slicc:?} {teams:?}");
    }

    #[test]
    fn code_that_fits_into_one_cache_stays_there() {
        let traces = cyclic(32, 1, 5);
        for migration in [Migration::Teams, Migration::Blind] {
            let outcome = Replay { migration, full_misses: 512, ..Replay::default() }.run(&traces);
            assert_eq!(outcome.migrations, 0, "{migration:?}");
        }
    }

    #[test]
    fn data_that_another_core_writes_is_missed() {
        let touch = |access| Touch { block: 7, access };
        let reads: Vec<Touch> = (0..10).map(|_| touch(Access::Read)).collect();
        let writes: Vec<Touch> = (0..10).map(|_| touch(Access::Write)).collect();
        let traces = [Trace { kind: 0, touches: reads }, Trace { kind: 1, touches: writes }];
        let seed = (0..).find(|&seed| {
            let mut random = Random::new(seed);
            random.below(2) != random.below(2)
        });
        let outcome = Replay { cores: 2, seed: seed.unwrap_or(0), ..Replay::default() }.run(&traces);
        assert!(outcome.read_misses >= 9, "{outcome:?}");
    }
}
