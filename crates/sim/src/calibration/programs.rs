//! What is measured on this computer to calibrate the model: each answers nanoseconds.

use std::sync::atomic::{AtomicU64, Ordering};

use super::size::CalibrationSize;
use crate::machine::{Aborted, Address, LINE_WORDS};
use crate::memory::Memory;
use crate::native::NativeMemory;
use crate::random::Random;
use crate::simulation::complete;

/// Words before the first that a program uses, which is no address.
const FIRST: Address = LINE_WORDS;

/// The best of some runs, each of which answers nanoseconds.
pub(super) fn best(size: &CalibrationSize, mut run: impl FnMut() -> f64) -> f64 {
    (0..size.runs).map(|_| run()).fold(f64::INFINITY, f64::min)
}

/// A load of a chain through all of some lines, in an order by chance: each needs the one before it.
pub(super) fn chain(lines: u64, size: &CalibrationSize, seed: u64) -> f64 {
    let memory = NativeMemory::new((FIRST + lines * LINE_WORDS) as usize);
    let thread = memory.thread(0, seed);
    let mut order: Vec<u64> = (0..lines).collect();
    Random::of(seed, lines).shuffle(&mut order);
    let at = |number: u64| FIRST + number * LINE_WORDS;
    let linked = complete(async {
        for (place, &line) in order.iter().enumerate() {
            thread.store(at(line), at(order[(place + 1) % order.len()])).await?;
        }
        Ok::<(), Aborted>(())
    });
    debug_assert_eq!(linked, Ok(()), "no transaction runs");
    // All of a chain that some cache holds, so that the next run finds it there.
    let loads = lines.clamp(1, 5 * size.operations);
    let mut place = at(order[0]);
    // Once round a short chain brings it in.
    let mut walk = |steps: u64| {
        complete(async {
            for _ in 0..steps {
                place = thread.load(place).await.unwrap_or(FIRST);
            }
        });
    };
    walk(lines.min(1 << 18));
    best(size, || {
        let begun = thread.now();
        walk(loads);
        (thread.now() - begun) as f64 / loads as f64
    })
}

/// An atomic addition of each of so many threads to one line.
pub(super) fn additions(threads: usize, size: &CalibrationSize, seed: u64) -> f64 {
    let memory = NativeMemory::new(2 * LINE_WORDS as usize);
    let additions = size.operations / 10 + 1;
    timed(threads, size.runs * 4, |number| {
        let thread = memory.thread(number, seed);
        move || {
            let begun = thread.now();
            complete(async {
                for _ in 0..additions {
                    let _before = thread.fetch_add(FIRST, 1).await;
                }
            });
            (thread.now() - begun) as f64 / additions as f64
        }
    })
}

/// Waits until so many have come.
fn meet(arrived: &AtomicU64, all: u64) {
    arrived.fetch_add(1, Ordering::AcqRel);
    let mut looks = 0u32;
    while arrived.load(Ordering::Acquire) < all {
        looks += 1;
        if looks.is_multiple_of(1_000) {
            std::thread::yield_now();
        }
        std::hint::spin_loop();
    }
}

/// Runs rounds on some threads at once, each made by `start`: the best round counts, and in it the slowest thread, as one that
/// waited for a processor makes its round a long one.
pub(super) fn timed<R: FnMut() -> f64>(threads: usize, rounds: u32, start: impl Fn(usize) -> R + Sync) -> f64 {
    let arrived = AtomicU64::new(0);
    let all = |number: usize| {
        let mut run = start(number);
        let round = |round: u32| {
            meet(&arrived, u64::from(round + 1) * threads as u64);
            run()
        };
        (0..rounds).map(round).collect::<Vec<f64>>()
    };
    std::thread::scope(|scope| {
        let all = &all;
        let others: Vec<_> = (1..threads).map(|number| scope.spawn(move || all(number))).collect();
        let mut times = all(0);
        for other in others {
            let theirs = other.join().unwrap_or_default();
            times.iter_mut().zip(theirs).for_each(|(time, other)| *time = time.max(other));
        }
        times.into_iter().fold(f64::INFINITY, f64::min)
    })
}

/// Turns of a run: few, so that some run is disturbed by no other program.
const TURNS: u64 = 200;

/// A turn of two threads that write a word in turn.
pub(super) fn in_turn(size: &CalibrationSize, seed: u64) -> f64 {
    let memory = NativeMemory::new(2 * LINE_WORDS as usize);
    timed(2, size.runs * 10, |number| {
        let (thread, me) = (memory.thread(number, seed), number as u64);
        move || {
            let turns = async {
                for _ in 0..TURNS {
                    let mut looks = 0u32;
                    while thread.load(FIRST).await? != me {
                        looks += 1;
                        if looks.is_multiple_of(1_000) {
                            std::thread::yield_now();
                        }
                    }
                    thread.store(FIRST, 1 - me).await?;
                }
                Ok::<(), Aborted>(())
            };
            let begun = thread.now();
            let done = complete(turns).is_ok();
            if done { (thread.now() - begun) as f64 / (2 * TURNS) as f64 } else { f64::INFINITY }
        }
    })
}
