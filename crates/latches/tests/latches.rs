//! The latches of this crate under threads of the system, and against a model of which threads may be inside.
#![cfg(not(any(loom, shuttle)))]

#[path = "../../sync/tests/laws/threads.rs"]
mod laws;

use latches::elision::InjectedBackend;
use latches::throttle::Topology;
use latches::{Biased, Elided, QueueLatch, SocketQueueLatch, Throttled, VisibleReaders};
use proptest::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};
use sync::{Latch, Latched, RwSpinLatch, SpinLatch, SystemClock, VersionLatch, VirtualClock};

/// Two sockets made up: every other thread is on the second.
#[derive(Default)]
struct TwoSockets;

impl Topology for TwoSockets {
    fn socket_count(&self) -> usize {
        2
    }

    fn current_socket(&self) -> usize {
        sync::thread_slot() % 2
    }
}

/// Calls `laws::check::<Latch>()` for every latch, alone and wrapped.
macro_rules! for_every_latch {
    ($check:ident) => {
        laws::$check::<QueueLatch>();
        laws::$check::<SocketQueueLatch>();
        laws::$check::<SocketQueueLatch<TwoSockets, 3>>();
        laws::$check::<Biased<RwSpinLatch>>();
        laws::$check::<Biased<VersionLatch, VirtualClock>>();
        laws::$check::<Elided<SpinLatch>>();
        laws::$check::<Elided<SocketQueueLatch<TwoSockets>>>();
        laws::$check::<Elided<RwSpinLatch>>();
        laws::$check::<Throttled<Biased<Elided<RwSpinLatch>>>>();
    };
}

#[test]
fn no_write_is_lost_and_no_reader_sees_half_of_one() {
    for_every_latch!(no_write_is_lost_and_no_reader_sees_half_of_one);
}

#[test]
fn a_body_of_atomics_reads_whole_writes_whatever_the_latch() {
    for_every_latch!(a_body_of_atomics_reads_whole_writes);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_latch_lets_in_readers_or_one_writer(steps in laws::steps()) {
        laws::agrees_with_the_model::<QueueLatch>(&steps, false)?;
        laws::agrees_with_the_model::<SocketQueueLatch>(&steps, false)?;
        laws::agrees_with_the_model::<Biased<RwSpinLatch>>(&steps, true)?;
        laws::agrees_with_the_model::<Biased<VersionLatch, VirtualClock>>(&steps, true)?;
        laws::agrees_with_the_model::<Throttled<RwSpinLatch>>(&steps, true)?;
    }
}

#[test]
fn the_queue_lets_threads_in_as_they_came() {
    let latch = QueueLatch::new();
    let order = std::sync::Mutex::new(Vec::new());
    let begun: [AtomicBool; 3] = Default::default();
    let held = latch.exclusive();
    std::thread::scope(|scope| {
        for number in 0..3 {
            let (latch, order, begun) = (&latch, &order, &begun[number]);
            scope.spawn(move || {
                begun.store(true, Ordering::SeqCst);
                let _held = latch.exclusive();
                order.lock().unwrap().push(number);
            });
            while !begun.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
            // The thread is about to queue; only its place in the queue cannot be seen from outside.
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        drop(held);
    });
    assert_eq!(order.into_inner().unwrap(), [0, 1, 2]);
}

#[test]
fn threads_of_two_sockets_all_come_to_their_turns() {
    const THREADS: usize = 6;
    const TURNS: u64 = 400;
    let data = Latched::<[u64; THREADS], SocketQueueLatch<TwoSockets, 4>>::new([0; THREADS]);
    std::thread::scope(|scope| {
        for number in 0..THREADS {
            let data = &data;
            scope.spawn(move || (0..TURNS).for_each(|_| data.write(|turns| turns[number] += 1)));
        }
    });
    assert_eq!(data.read(|turns| *turns), [TURNS; THREADS]);
    assert!(data.latch().try_exclusive().is_some());
}

#[test]
fn the_bias_comes_with_readers_goes_with_a_writer_and_stays_away_for_a_while() {
    let clock = VirtualClock::default();
    let readers = std::sync::Arc::new(VisibleReaders::with_lines(4));
    let latch: Biased<RwSpinLatch, VirtualClock> = Biased::with_readers(clock.clone(), readers);
    assert!(!latch.is_biased());
    drop(latch.shared());
    assert!(latch.is_biased());
    let reader = latch.shared();
    assert!(latch.try_exclusive().is_none() && latch.is_biased(), "a refused writer leaves the bias");
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| drop(latch.exclusive()));
        while latch.is_biased() {
            std::thread::yield_now();
        }
        clock.advance_ns(100);
        drop(reader);
        writer.join().unwrap();
    });
    let read_often = || (0..20).for_each(|_| drop(latch.shared()));
    clock.advance_ns(899);
    read_often();
    assert!(!latch.is_biased(), "nine times as long as the writer waited");
    clock.advance_ns(1);
    read_often();
    assert!(latch.is_biased());
}

#[test]
fn latches_over_one_table_do_not_take_each_other_for_readers() {
    let latches: Vec<Biased<RwSpinLatch, SystemClock>> = (0..200).map(|_| Biased::default()).collect();
    latches.iter().for_each(|latch| drop(latch.shared()));
    let all: Vec<_> = latches.iter().map(|latch| latch.shared()).collect();
    assert!(latches.iter().all(|latch| latch.try_exclusive().is_none()), "more latches than slots");
    drop(all);
    assert!(latches.iter().all(|latch| latch.try_exclusive().is_some()));
}

#[test]
fn a_leaked_reader_does_not_haunt_the_next_latch_at_its_address() {
    let mut latch = Biased::<RwSpinLatch>::default();
    drop(latch.shared());
    std::mem::forget(latch.shared());
    assert!(latch.try_exclusive().is_none());
    latch = Biased::default();
    drop(latch.shared());
    assert!(latch.is_biased() && latch.try_exclusive().is_some());
}

#[test]
fn a_biased_latch_over_an_elided_one_keeps_writers_out_of_transactions_of_readers() {
    let latch = Biased::<Elided<RwSpinLatch, InjectedBackend>, VirtualClock>::default();
    drop(latch.shared());
    let reader = latch.shared();
    assert!(latch.try_exclusive().is_none());
    drop(reader);
    assert!(latch.try_exclusive().is_some());
}
