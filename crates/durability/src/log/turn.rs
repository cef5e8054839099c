//! Group commit: one thread, the leader, flushes for all, and the others follow.
//!
//! ```text
//!   until what I wait for is done:
//!     no leader         -> lead: flush for all, give up the lead, wake one waiter for the next flush,
//!                          which leads next; then all waiters for this one, by one system call
//!     a leader          -> sleep in the room of my flush
//! ```
//!
//! **Rooms.** Flushes are numbered, and an appender learns the number of the flush that takes its frame. While one
//! is under way every thread waits either for that one or for the next, so two rooms are enough, one for even and
//! one for odd numbers. A leader that gives up the lead wakes all of one room and one of the other, without looking
//! for single threads. A third room is for threads that wait for something else. The next leader is woken first:
//! the disk is to be idle for as short as can be, and the others run while it works.
//!
//! **No wake-up is lost.** A room is a futex: a word that changes with every wake-up there, and a count of the
//! threads that sleep or are about to. A follower counts itself, reads the word, and then looks whether there is
//! still a reason to sleep; the kernel lets it sleep only while the word is the same. A leader first gives up the
//! lead, then changes the words, and then looks at the counts. In the one order of these steps either the follower
//! sees that there is no leader, or its room's word changes after it was read. A thread that was woken to lead and
//! leaves instead, as another partition has failed, wakes all others.
//!
//! Followers do not look for a while before they sleep, though being woken costs a good part of a sync: looking made no
//! number of clients faster on two processors and doubled the work for a commit (docs/decisions.md).

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use sync::CachePadded;

use crate::log::futex;

/// All sleepers of a room.
const ALL: u32 = i32::MAX as u32;

/// Where a thread waits, by what it waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Room {
    /// A flush with an even number.
    Even,
    /// One with an odd number.
    Odd,
    /// The waiters for another event than a flush; woken whenever the lead is given up.
    Others,
}

impl Room {
    const COUNT: usize = 3;

    /// The room of the threads that wait for flush number `flush`.
    pub(crate) fn of_flush(flush: u64) -> Room {
        if flush.is_multiple_of(2) { Room::Even } else { Room::Odd }
    }
}

/// Elects the leader and lets the others wait.
#[derive(Default)]
pub(crate) struct Turn {
    is_led: CachePadded<AtomicBool>,
    rooms: [CachePadded<Sleepers>; Room::COUNT],
}

/// The threads that sleep in a room.
#[derive(Default)]
struct Sleepers {
    /// Changes with every wake-up.
    word: AtomicU32,
    count: AtomicUsize,
}

impl Sleepers {
    /// Sleeps, unless there is no `reason` to. May return for no reason.
    fn sleep(&self, reason: impl FnOnce() -> bool) {
        self.count.fetch_add(1, Ordering::SeqCst);
        let seen = self.word.load(Ordering::SeqCst);
        if reason() {
            futex::wait(&self.word, seen);
        }
        let before = self.count.fetch_sub(1, Ordering::Relaxed);
        debug_assert!(before > 0, "a sleeper was not counted and would not be woken");
    }

    fn wake(&self, most: u32) {
        self.word.fetch_add(1, Ordering::SeqCst);
        if self.count.load(Ordering::SeqCst) > 0 {
            futex::wake(&self.word, most);
        }
    }
}

impl Turn {
    /// Returns once `is_reached()` or `is_over()`, leading by `lead` whenever no other thread does, or with the
    /// error of its own `lead`. Neither must become false again. After a `lead` that failed others lead in their
    /// turn. `room` is that of what is to be reached, `next_room` that of the next flush to be done.
    pub(crate) fn wait_for<E>(
        &self,
        room: Room,
        next_room: impl Fn() -> Room,
        is_reached: impl Fn() -> bool,
        is_over: impl Fn() -> bool,
        mut lead: impl FnMut() -> Result<(), E>,
    ) -> Result<(), E> {
        let is_done = || is_reached() || is_over();
        while !is_done() {
            if !self.is_led.swap(true, Ordering::AcqRel) {
                let _lead = Lead { turn: self, next_room: &next_room };
                // The leader before may have done our work between our look and our election.
                if !is_done() {
                    lead()?;
                }
            } else {
                self.rooms[room as usize].sleep(|| !is_done() && self.is_led.load(Ordering::SeqCst));
            }
        }
        if !is_reached() {
            // It may have been woken to lead, and no other thread was.
            self.rooms.iter().for_each(|room| room.wake(ALL));
        }
        Ok(())
    }

    /// Gives up the lead; wakes one thread to lead next, and all that waited for what is done.
    fn give_up(&self, next_room: Room) {
        debug_assert!(self.is_led.load(Ordering::Relaxed), "two threads would lead");
        self.is_led.store(false, Ordering::SeqCst);
        self.rooms[next_room as usize].wake(1);
        let others = [Room::Even, Room::Odd, Room::Others].into_iter().filter(|room| *room != next_room);
        others.for_each(|room| self.rooms[room as usize].wake(ALL));
    }
}

/// The lead, given up on every way out, a panic included.
struct Lead<'a, N: Fn() -> Room> {
    turn: &'a Turn,
    next_room: &'a N,
}

impl<N: Fn() -> Room> Drop for Lead<'_, N> {
    fn drop(&mut self) {
        self.turn.give_up((self.next_room)());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;
    use std::time::Duration;

    use super::*;

    /// Flushes that take what was appended when they begin.
    #[derive(Default)]
    struct Flushes {
        turn: Turn,
        taken: AtomicU64,
        done: AtomicU64,
        leads: AtomicU64,
        is_over: AtomicBool,
    }

    impl Flushes {
        /// Appends, and waits for the flush that takes it; every `failing`th lead fails.
        fn commit(&self, failing: u64) -> Result<u64, u64> {
            // As under the append latch: a flush that begins later has a higher number.
            let flush = self.taken.load(Ordering::SeqCst) + 1;
            self.wait(Room::of_flush(flush), failing, || self.done.load(Ordering::SeqCst) >= flush).map(|()| flush)
        }

        fn wait(&self, room: Room, failing: u64, is_reached: impl Fn() -> bool) -> Result<(), u64> {
            let lead = || {
                let lead = self.leads.fetch_add(1, Ordering::SeqCst);
                let number = self.done.load(Ordering::SeqCst) + 1;
                self.taken.store(number, Ordering::SeqCst);
                std::thread::sleep(Duration::from_micros(70));
                if failing > 0 && lead.is_multiple_of(failing) {
                    return Err(lead);
                }
                self.done.store(number, Ordering::SeqCst);
                Ok(())
            };
            let next_room = || Room::of_flush(self.done.load(Ordering::SeqCst) + 1);
            self.turn.wait_for(room, next_room, is_reached, || self.is_over.load(Ordering::SeqCst), lead)
        }

        fn sleepers(&self) -> usize {
            self.turn.rooms.iter().map(|room| room.count.load(Ordering::SeqCst)).sum()
        }
    }

    #[test]
    fn everybody_is_woken() {
        let flushes = Flushes::default();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| (0..300).for_each(|_| assert!(flushes.commit(0).is_ok())));
            }
        });
        let (done, leads) = (flushes.done.into_inner(), flushes.leads.into_inner());
        assert_eq!(done, leads, "leads never overlap or happen for nothing");
        assert!((300..2400).contains(&done), "{done} flushes for 2400 commits");
    }

    /// A leader that fails leaves; the others go on without it, one after the other.
    #[test]
    fn nobody_waits_for_one_who_failed() {
        let flushes = Flushes::default();
        let failures: u64 = std::thread::scope(|scope| {
            let commit = || (0..200).filter(|_| flushes.commit(3).is_err()).count() as u64;
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(commit)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(flushes.sleepers(), 0);
        assert_eq!(failures, flushes.leads.into_inner().div_ceil(3), "only the thread that failed was told so");
    }

    /// Threads that wait for something else than a flush get their turn among all the flushes.
    #[test]
    fn others_get_their_turn() {
        let (flushes, others) = (Flushes::default(), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for thread in 0..6 {
                let (flushes, others) = (&flushes, &others);
                scope.spawn(move || {
                    for round in 1..=100 {
                        if thread < 3 {
                            flushes.commit(0).unwrap();
                            continue;
                        }
                        let lead = || {
                            others.fetch_max(round, Ordering::SeqCst);
                            Ok::<(), u64>(())
                        };
                        let next_room = || Room::of_flush(flushes.done.load(Ordering::SeqCst) + 1);
                        let is_reached = || others.load(Ordering::SeqCst) >= round;
                        flushes.turn.wait_for(Room::Others, next_room, is_reached, || false, lead).unwrap();
                    }
                });
            }
        });
        assert_eq!((others.into_inner(), flushes.sleepers()), (100, 0));
    }

    #[test]
    fn a_failed_lead_is_reported() {
        let flushes = Flushes::default();
        assert_eq!(flushes.wait(Room::Even, 1, || false), Err(0));
        assert_eq!(flushes.wait(Room::Even, 1, || true), Ok(()));
        assert_eq!(flushes.commit(5), Ok(2), "what was taken by a flush that failed is flushed first");
    }

    /// A thread that is woken to lead, and finds that all is over, leaves none asleep.
    #[test]
    fn nobody_sleeps_when_all_is_over() {
        for _ in 0..20 {
            let flushes = Flushes::default();
            let follow = || flushes.wait(Room::of_flush(2), 1, || flushes.done.load(Ordering::SeqCst) >= 2).unwrap();
            std::thread::scope(|scope| {
                let lead = || {
                    (0..4).for_each(|_| drop(scope.spawn(follow)));
                    while flushes.sleepers() < 4 {
                        std::thread::yield_now();
                    }
                    // The leader that gives up wakes one thread; the end comes before that thread looks.
                    flushes.is_over.store(true, Ordering::SeqCst);
                    Ok::<(), u64>(())
                };
                flushes.turn.wait_for(
                    Room::Odd,
                    || Room::Even,
                    || false,
                    || flushes.is_over.load(Ordering::SeqCst),
                    lead,
                )
            })
            .unwrap();
            assert_eq!(flushes.sleepers(), 0);
        }
    }
}
