//! Whose turn it is to flush: leader and followers of the group commit.
//!
//! ```text
//!   until my target is reached:
//!     nobody leads      -> lead: flush for all, give up the lead, wake whom the flush satisfied
//!                          and one of those it did not, who leads next
//!     somebody leads    -> look again for some microseconds, then sleep
//! ```
//!
//! Followers look before they sleep, because being woken costs as much as a good part of a sync. But not more of them
//! than there are processors beside the leader's: where threads wait for a processor, looking keeps them from it. A sleeper is on
//! the list of sleepers; it enters the list only while somebody leads, and whoever leads empties the list of
//! everybody satisfied after giving up the lead, under the latch of the list: no wake-up is lost. A thread that
//! woke for another reason may stay on the list. That does no harm: targets are only ever reached, never lost, and
//! who leaves without its target takes itself off the list first, so an entry whose target is not reached belongs to a
//! thread that still waits, and will lead when woken. Unless all is over before it comes to that, as another
//! partition failed: then it wakes the others in its place.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::Thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// How long a follower looks before it sleeps.
const LOOK: Duration = Duration::from_micros(50);
/// Looks between two glances at the clock, after which the processor is offered to others.
const LOOKS_PER_YIELD: u32 = 32;

/// Elects the leader and lets the others wait. `T` is what a thread waits for.
pub(crate) struct Turn<T> {
    taken: AtomicBool,
    sleepers: Mutex<Vec<(Thread, T)>>,
    /// Threads that look, and how many may.
    looking: AtomicUsize,
    looking_max: usize,
}

impl<T: Copy> Turn<T> {
    pub(crate) fn new() -> Turn<T> {
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Turn {
            taken: AtomicBool::new(false),
            sleepers: Mutex::new(Vec::new()),
            looking: AtomicUsize::new(0),
            looking_max: processors.saturating_sub(1).max(1),
        }
    }

    /// Returns once `reached(target)` or `is_over()`, leading by `lead` whenever nobody else does, or with the error of
    /// its own `lead`. Neither must become false again. After a `lead` that failed others lead in their turn.
    pub(crate) fn wait_for<E>(
        &self,
        target: T,
        reached: impl Fn(T) -> bool,
        is_over: impl Fn() -> bool,
        mut lead: impl FnMut() -> Result<(), E>,
    ) -> Result<(), E> {
        let is_reached = &reached;
        let reached = |target| is_reached(target) || is_over();
        while !reached(target) {
            if !self.taken.swap(true, Ordering::AcqRel) {
                let _lead = Lead { turn: self, reached: &reached };
                // The leader before may have done our work between our look and our election.
                if !reached(target)
                    && let Err(error) = lead()
                {
                    self.forget();
                    return Err(error);
                }
            } else if !self.look(target, &reached) && self.enter(target, &reached) {
                std::thread::park();
            }
        }
        if !is_reached(target) {
            // It may have been woken to lead, and nobody else was.
            self.wake(&reached);
        }
        Ok(())
    }

    /// Wakes the satisfied.
    fn wake(&self, reached: &impl Fn(T) -> bool) {
        let woken: Vec<_> = self.sleepers.lock().extract_if(.., |(_, target)| reached(*target)).collect();
        woken.into_iter().for_each(|(thread, _)| thread.unpark());
    }

    /// Looks for a while; true if there is something to do other than to sleep.
    fn look(&self, target: T, reached: &impl Fn(T) -> bool) -> bool {
        if self.looking.fetch_add(1, Ordering::Relaxed) >= self.looking_max {
            self.looking.fetch_sub(1, Ordering::Relaxed);
            return false;
        }
        let is_over = self.look_on(target, reached);
        self.looking.fetch_sub(1, Ordering::Relaxed);
        is_over
    }

    fn look_on(&self, target: T, reached: &impl Fn(T) -> bool) -> bool {
        let start = Instant::now();
        while start.elapsed() < LOOK {
            for _ in 0..LOOKS_PER_YIELD {
                if reached(target) || !self.taken.load(Ordering::Acquire) {
                    return true;
                }
                std::hint::spin_loop();
            }
            std::thread::yield_now();
        }
        false
    }

    /// Enters the list of sleepers unless there is something else to do.
    fn enter(&self, target: T, reached: &impl Fn(T) -> bool) -> bool {
        let mut sleepers = self.sleepers.lock();
        if reached(target) || !self.taken.load(Ordering::Acquire) {
            return false;
        }
        sleepers.push((std::thread::current(), target));
        true
    }

    /// Takes this thread off the list, as it leaves with its target not reached. Called while it leads, so that it
    /// doesn't wake itself in place of one who waits.
    fn forget(&self) {
        let me = std::thread::current().id();
        self.sleepers.lock().retain(|(thread, _)| thread.id() != me);
    }

    /// Gives up the lead; wakes the satisfied, and one more to lead.
    fn give_up(&self, reached: &impl Fn(T) -> bool) {
        let mut woken = Vec::new();
        {
            let mut sleepers = self.sleepers.lock();
            self.taken.store(false, Ordering::Release);
            woken.extend(sleepers.extract_if(.., |(_, target)| reached(*target)));
            if !sleepers.is_empty() {
                woken.push(sleepers.swap_remove(0));
            }
        }
        for (thread, _) in woken {
            thread.unpark();
        }
    }
}

/// The lead, given up on every way out, a panic included.
struct Lead<'a, T: Copy, R: Fn(T) -> bool> {
    turn: &'a Turn<T>,
    reached: &'a R,
}

impl<T: Copy, R: Fn(T) -> bool> Drop for Lead<'_, T, R> {
    fn drop(&mut self) {
        self.turn.give_up(self.reached);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;

    /// Many threads wait for ever higher numbers; each lead raises the number by a few.
    #[test]
    fn everybody_is_woken() {
        let (turn, number, leads) = (Turn::new(), AtomicU64::new(0), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let (turn, number, leads) = (&turn, &number, &leads);
                scope.spawn(move || {
                    for round in 0..200 {
                        let target = round * 8 + thread;
                        let reached = |target| number.load(Ordering::Acquire) >= target;
                        let lead = || {
                            leads.fetch_add(1, Ordering::Relaxed);
                            std::thread::sleep(Duration::from_micros(70));
                            number.fetch_add(5, Ordering::Release);
                            Ok::<(), ()>(())
                        };
                        turn.wait_for(target, reached, || false, lead).unwrap();
                    }
                });
            }
        });
        assert!(number.into_inner() >= 199 * 8 + 7);
        assert!(leads.into_inner() <= 1600 / 5 + 1, "leads never overlap or happen for nothing");
    }

    /// A leader that fails leaves; the others go on without it, one after the other.
    #[test]
    fn nobody_waits_for_one_who_failed() {
        let (turn, number, leads) = (Turn::new(), AtomicU64::new(0), AtomicU64::new(0));
        let failures: u64 = std::thread::scope(|scope| {
            let threads = (0..8).map(|thread| {
                let (turn, number, leads) = (&turn, &number, &leads);
                scope.spawn(move || {
                    (0..100)
                        .filter(|round| {
                            let target = round * 8 + thread;
                            let reached = |target| number.load(Ordering::Acquire) >= target;
                            let lead = || {
                                std::thread::sleep(Duration::from_micros(70));
                                let fails = leads.fetch_add(1, Ordering::Relaxed) % 3 == 0;
                                number.fetch_add(if fails { 0 } else { 7 }, Ordering::Release);
                                if fails { Err(()) } else { Ok(()) }
                            };
                            turn.wait_for(target, reached, || false, lead).is_err()
                        })
                        .count() as u64
                })
            });
            threads.collect::<Vec<_>>().into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(failures, leads.into_inner().div_ceil(3), "only who failed was told so");
        assert!(turn.sleepers.into_inner().is_empty());
    }

    #[test]
    fn a_failed_lead_is_reported() {
        let turn = Turn::new();
        assert_eq!(turn.wait_for((), |()| false, || false, || Err("no")), Err("no"));
        assert_eq!(turn.wait_for((), |()| true, || false, || Err("no")), Ok(()));
    }

    /// One who is woken to lead, and finds that all is over, leaves nobody asleep.
    #[test]
    fn nobody_sleeps_when_all_is_over() {
        let (turn, forgotten) = (Turn::new(), AtomicUsize::new(0));
        let [is_led, is_over] = [(); 2].map(|()| AtomicBool::new(false));
        let reached = |target| target == 1 && is_led.load(Ordering::Acquire);
        let follow = || {
            let over = || {
                // Whoever is woken to lead learns only then that all is over.
                while is_led.load(Ordering::Acquire) && !is_over.load(Ordering::Acquire) {
                    std::thread::yield_now();
                }
                is_over.load(Ordering::Acquire)
            };
            turn.wait_for(2, reached, over, || Err("there is nothing to lead")).unwrap();
            let left: Vec<_> = turn.sleepers.lock().drain(..).collect();
            forgotten.fetch_add(left.len(), Ordering::Relaxed);
            left.into_iter().for_each(|(thread, _)| thread.unpark());
        };
        std::thread::scope(|scope| {
            let lead = || {
                (0..2).for_each(|_| drop(scope.spawn(follow)));
                while turn.sleepers.lock().len() < 2 {
                    std::thread::yield_now();
                }
                is_led.store(true, Ordering::Release);
                Ok::<(), ()>(())
            };
            turn.wait_for(1, reached, || false, lead).unwrap();
            is_over.store(true, Ordering::Release);
        });
        assert_eq!(forgotten.into_inner(), 0);
    }
}
