//! The two queues, built by hand by one thread, so that the waiters are known at each hand-over: against a model,
//! and for what they promise about sockets and about waiting.
use super::*;
use crate::throttle::VirtualTopology;
use proptest::prelude::*;
use std::collections::VecDeque;

/// Four sockets made up.
#[derive(Debug, Default)]
struct FourSockets;

impl Topology for FourSockets {
    fn socket_count(&self) -> usize {
        4
    }

    fn current_socket(&self) -> usize {
        VirtualTopology::new(4).current_socket()
    }
}

/// A latch with threads that this test plays. Each is known by a number.
struct Stage<const HAND_OVERS_MAX: u32> {
    latch: SocketQueueLatch<FourSockets, HAND_OVERS_MAX>,
    owner: Option<(u64, usize, QueuePlace)>,
    waiting: Vec<(u64, usize, QueuePlace)>,
}

impl<const HAND_OVERS_MAX: u32> Stage<HAND_OVERS_MAX> {
    fn new() -> Self {
        Stage { latch: SocketQueueLatch::new(), owner: None, waiting: Vec::new() }
    }

    /// Does what `acquire_exclusive` does, up to where it waits.
    fn arrive(&mut self, number: u64, socket: usize) {
        let taken = QueuePlace::take();
        let place = taken.place();
        let before = self.latch.tail.swap(place.link(), Ordering::AcqRel);
        if before.is_null() {
            enter_free(place);
            assert!(self.owner.is_none(), "a second owner");
            self.owner = Some((number, socket, taken));
        } else {
            place.socket.store(socket, Ordering::Relaxed);
            // SAFETY: the tail led to `before` until the exchange above; the place stays on the stage until it is let in.
            unsafe { place.link_behind(before) };
            self.waiting.push((number, socket, taken));
        }
    }

    /// Does what `release_exclusive` does on the owner's socket; returns the next owner.
    fn leave(&mut self) -> Option<(u64, usize)> {
        let (_, socket, held) = self.owner.take()?;
        VirtualTopology::new(4).move_to(socket);
        // SAFETY: the stage acquired the latch with the place, which is out of the queue once the next one is let in.
        let to = unsafe {
            let to = self.latch.hand_on(held.place());
            held.give_back();
            to
        };
        let at = self.waiting.iter().position(|waiting| waiting.2.place().link() == to)?;
        let next = self.waiting.remove(at);
        assert!(!next.2.place().is_waiting.load(Ordering::Relaxed));
        assert!(self.waiting.iter().all(|waiting| waiting.2.place().is_waiting.load(Ordering::Relaxed)));
        let seen = (next.0, next.1);
        self.owner = Some(next);
        Some(seen)
    }
}

/// The two queues as lists.
#[derive(Default)]
struct Model {
    owner: Option<(u64, usize)>,
    queue: VecDeque<(u64, usize)>,
    passed_over: VecDeque<(u64, usize)>,
    hand_overs: u32,
}

impl Model {
    fn arrive(&mut self, number: u64, socket: usize) {
        if self.owner.is_none() {
            *self = Model { owner: Some((number, socket)), ..Model::default() };
        } else {
            self.queue.push_back((number, socket));
        }
    }

    fn leave(&mut self, hand_overs_max: u32) -> Option<(u64, usize)> {
        let (_, socket) = self.owner.take()?;
        let near = self.queue.iter().position(|waiting| waiting.1 == socket);
        match near.filter(|_| self.hand_overs < hand_overs_max) {
            Some(at) => {
                self.passed_over.extend(self.queue.drain(..at));
                self.hand_overs = if self.passed_over.is_empty() { 0 } else { self.hand_overs + 1 };
            }
            None => {
                self.passed_over.extend(self.queue.drain(..));
                std::mem::swap(&mut self.queue, &mut self.passed_over);
                self.hand_overs = 0;
            }
        }
        self.owner = self.queue.pop_front();
        self.owner
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_latch_goes_to_whom_the_model_says(steps in proptest::collection::vec(prop::option::of(0..4usize), 1..200)) {
        let (mut stage, mut model) = (Stage::<3>::new(), Model::default());
        for (number, step) in (0..).zip(steps) {
            match step {
                Some(socket) => {
                    stage.arrive(number, socket);
                    model.arrive(number, socket);
                }
                None => prop_assert_eq!(stage.leave(), model.leave(3)),
            }
        }
        while model.owner.is_some() {
            prop_assert_eq!(stage.leave(), model.leave(3));
        }
        prop_assert!(stage.owner.is_none() && stage.waiting.is_empty() && stage.latch.is_free());
    }
}

/// Threads of `sockets` sockets that come again as soon as they have left, as under contention. Returns how many of
/// the hand-overs went to another socket, and the most hand-overs that a thread waited for.
fn contend<const HAND_OVERS_MAX: u32>(sockets: usize, threads: u64, rounds: u64) -> (u64, u64) {
    let mut stage = Stage::<HAND_OVERS_MAX>::new();
    let mut since = vec![0; threads as usize];
    (0..threads).for_each(|number| stage.arrive(number, number as usize % sockets));
    let (mut strangers, mut wait_max) = (0, 0);
    for round in 1..=rounds {
        let left = stage.owner.as_ref().map(|owner| (owner.0, owner.1)).unwrap();
        let next = stage.leave().unwrap();
        strangers += u64::from(next.1 != left.1);
        wait_max = wait_max.max(round - since[next.0 as usize]);
        since[left.0 as usize] = round;
        stage.arrive(left.0, left.1);
    }
    let waiting = stage.waiting.iter().map(|waiting| rounds - since[waiting.0 as usize]).max().unwrap();
    while stage.leave().is_some() {}
    (strangers, wait_max.max(waiting))
}

#[test]
fn hand_overs_stay_within_a_socket_until_the_limit() {
    const ROUNDS: u64 = 20_000;
    let (strangers, _) = contend::<0>(2, 8, ROUNDS);
    assert_eq!(strangers, ROUNDS, "in the order of arrival every hand-over changes sockets");
    let (strangers, _) = contend::<100>(2, 8, ROUNDS);
    assert!((ROUNDS / 110..=ROUNDS / 100).contains(&strangers), "{strangers} of {ROUNDS}");
    let (strangers, _) = contend::<HAND_OVERS>(2, 8, ROUNDS);
    assert_eq!(strangers, 0);
}

#[test]
fn nobody_waits_longer_than_the_limit_for_each_socket() {
    for (sockets, threads) in [(2, 4), (2, 9), (3, 12), (4, 16)] {
        let (_, wait_max) = contend::<50>(sockets, threads, 20_000);
        // For each socket a stretch of at most so many hand-overs, and every thread's own turn in between.
        let bound = sockets as u64 * (50 + threads) + threads;
        assert!(wait_max <= bound, "{sockets} sockets, {threads} threads: {wait_max} > {bound}");
        assert!(wait_max >= 50, "somebody was passed over");
    }
}

#[test]
fn on_one_socket_the_order_is_that_of_arrival() {
    let mut stage = Stage::<3>::new();
    (0..20).for_each(|number| stage.arrive(number, 2));
    (1..20).for_each(|number| assert_eq!(stage.leave(), Some((number, 2))));
    assert!(stage.leave().is_none() && stage.latch.is_free());
}
