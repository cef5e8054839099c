//! What is measured on this computer to calibrate the model: a load, a load of what another core has changed, an
//! atomic addition.

use std::time::{Duration, Instant};

use super::rounds::{Times, Work, rounds};
use super::size::CalibrationSize;
use crate::machine::{Aborted, Address, LINE_WORDS};
use crate::memory::Memory;
use crate::native::NativeMemory;
use crate::random::Random;
use crate::simulation::complete;

/// Words before the first that a program uses, which is no address.
const FIRST: Address = LINE_WORDS;

/// A chain through all of some lines, in an order by chance: each load needs the one before it.
pub(super) struct Chain {
    memory: NativeMemory,
    lines: u64,
    first: Address,
}

/// Loads between two looks at the clock.
const LOADS: u64 = 128;

impl Chain {
    pub fn of(lines: u64, seed: u64) -> Self {
        let memory = NativeMemory::new((FIRST + lines * LINE_WORDS) as usize);
        let thread = memory.thread(0, seed);
        let mut order: Vec<u64> = (0..lines).collect();
        Random::of(seed, lines).shuffle(&mut order);
        let at = |number: u64| FIRST + number * LINE_WORDS;
        linked(&thread, &order, at);
        let first = at(order[0]);
        Chain { memory, lines, first }
    }

    /// A load.
    pub fn load(&self, size: &CalibrationSize, seed: u64) -> Times {
        rounds(1, size, |_| {
            let thread = self.memory.thread(0, seed);
            let mut place = self.first;
            let mut walk = move |steps: u64| {
                complete(async {
                    for _ in 0..steps {
                        place = thread.load(place).await.unwrap_or(FIRST);
                    }
                });
            };
            // Once round a chain that some cache holds brings it in.
            walk(self.lines.min(1 << 18));
            move |until| {
                let mut loads = 0;
                while Instant::now() < until {
                    walk(LOADS);
                    loads += LOADS;
                }
                Work::of(loads)
            }
        })
    }
}

/// Lines that two threads pass to each other.
const PASSED: u64 = 64;
/// How often each has them in a round.
const TURNS: u64 = 20;

/// What two threads measure that change some lines in turn: a load of a line that the other has changed, each needing the one
/// before, or an atomic addition to one that was loaded before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Passed {
    Load,
    AdditionAfterLoad,
}

/// Times of lines that two threads pass to each other.
pub(super) fn passed(what: Passed, size: &CalibrationSize, seed: u64) -> Times {
    let memory = NativeMemory::new((FIRST + (2 * PASSED + 1) * LINE_WORDS) as usize);
    // Every second line, as some processors fetch pairs.
    let line = |number: u64| FIRST + (2 * number + 1) * LINE_WORDS;
    let mut order: Vec<u64> = (0..PASSED).collect();
    Random::of(seed, PASSED).shuffle(&mut order);
    linked(&memory.thread(0, seed), &order, line);
    rounds(2, size, |number| {
        let (thread, me, order) = (memory.thread(number, seed), number as u64, &order);
        move |_| {
            let mut took = Duration::ZERO;
            complete(async {
                for _ in 0..TURNS {
                    thread.wait_while(FIRST, 1 - me).await?;
                    let mut begun = Instant::now();
                    let mut place = line(order[0]);
                    for _ in 0..PASSED {
                        place = thread.load(place).await?;
                    }
                    if what == Passed::Load {
                        took += begun.elapsed();
                    }
                    begun = Instant::now();
                    for &number in order {
                        thread.fetch_add(line(number) + 1, std::hint::black_box(place)).await?;
                    }
                    if what == Passed::AdditionAfterLoad {
                        took += begun.elapsed();
                    }
                    thread.store(FIRST, 1 - me).await?;
                }
                Ok::<(), Aborted>(())
            })
            .map_or(Work::default(), |()| Work { operations: TURNS * PASSED, took: Some(took) })
        }
    })
}

/// Turns of each thread on a line.
const LINE_TURNS: u64 = 10;

/// A turn of two threads that write a word in turn, each looking at it until it is its turn: what a line takes whose request is there
/// before it. It depends on where the line has its place in L3, so it is done on some lines, one after the other.
pub(super) fn in_turn(size: &CalibrationSize, seed: u64) -> Times {
    let memory = NativeMemory::new((FIRST + PASSED * LINE_WORDS) as usize);
    rounds(2, size, |number| {
        let (thread, me) = (memory.thread(number, seed), number as u64);
        move |_| {
            let turns = async {
                for turn in 0..PASSED * LINE_TURNS {
                    let word = FIRST + turn / LINE_TURNS * LINE_WORDS;
                    thread.wait_while(word, 1 - me).await?;
                    thread.store(word, 1 - me).await?;
                }
                Ok::<(), Aborted>(())
            };
            // Each turn is one of both.
            complete(turns).map_or(Work::default(), |()| Work::of(2 * PASSED * LINE_TURNS))
        }
    })
}

/// Links some lines to a ring in an order.
fn linked<M: Memory>(memory: &M, order: &[u64], line: impl Fn(u64) -> Address) {
    let linked = complete(async {
        for (place, &number) in order.iter().enumerate() {
            memory.store(line(number), line(order[(place + 1) % order.len()])).await?;
        }
        Ok::<(), Aborted>(())
    });
    debug_assert_eq!(linked, Ok(()), "no transaction runs");
}

/// Additions between two looks at the clock.
const ADDITIONS: u64 = 32;

/// An atomic addition of a thread to a line of its own.
pub(super) fn addition(size: &CalibrationSize, seed: u64) -> Times {
    let memory = NativeMemory::new(2 * LINE_WORDS as usize);
    rounds(1, size, |number| {
        let thread = memory.thread(number, seed);
        move |until| {
            let mut additions = 0;
            while Instant::now() < until {
                complete(async {
                    for _ in 0..ADDITIONS {
                        let _before = thread.fetch_add(FIRST, 1).await;
                    }
                });
                additions += ADDITIONS;
            }
            Work::of(additions)
        }
    })
}
