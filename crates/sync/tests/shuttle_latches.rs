//! The latches under shuttle: more threads and longer runs than loom can go through, in orders drawn by chance and by
//! priorities. Shuttle knows sequentially consistent memory only; weaker orders are loom's to check.
//!
//! `RUSTFLAGS="--cfg shuttle" cargo test -p sync --release --test shuttle_latches`
//!
//! A failing order is printed as a string that `shuttle::replay` accepts.
#![cfg(shuttle)]

use shuttle::thread;
use std::sync::Arc;
use sync::elision::{AbortCause, Adaptivity, Begin, InjectedBackend, RetryPolicy};
use sync::throttle::Topology;
use sync::{
    Biased, Elided, Latch, Latched, QueueLatch, RwSpinLatch, SocketQueueLatch, SpinLatch, VersionLatch, VirtualClock,
};

const RUNS: usize = 400;

/// Three writers and a reader, twice each.
fn sections_stay_whole<L: Latch + 'static>(make: impl Fn() -> L + Send + Sync + Copy + 'static) {
    let body = move || {
        let data = Arc::new(Latched::with_latch(make(), [0u64; 2]));
        let writers: Vec<_> = (0..3)
            .map(|_| {
                let data = data.clone();
                thread::spawn(move || {
                    for _ in 0..2 {
                        data.write(|pair| {
                            pair[0] += 1;
                            thread::yield_now();
                            pair[1] += 1;
                        });
                    }
                })
            })
            .collect();
        for _ in 0..2 {
            data.read(|pair| assert_eq!(pair[0], pair[1]));
        }
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        assert_eq!(data.read(|pair| *pair), [6, 6]);
    };
    shuttle::check_random(body, RUNS);
    shuttle::check_pct(body, RUNS, 3);
}

#[test]
fn spin_sections_stay_whole() {
    sections_stay_whole(SpinLatch::default);
}

#[test]
fn rw_sections_stay_whole() {
    sections_stay_whole(RwSpinLatch::default);
}

#[test]
fn queue_sections_stay_whole() {
    sections_stay_whole(QueueLatch::default);
}

/// Two sockets made up; the threads of a model take turns in being on one, as they first ask.
#[derive(Default)]
struct TwoSockets;

impl Topology for TwoSockets {
    fn socket_count(&self) -> usize {
        2
    }

    fn current_socket(&self) -> usize {
        sync::thread::number() % 2
    }
}

#[test]
fn socket_queue_sections_stay_whole() {
    sections_stay_whole(SocketQueueLatch::<TwoSockets, 2>::default);
}

#[test]
fn version_sections_stay_whole() {
    sections_stay_whole(VersionLatch::default);
}

#[test]
fn biased_sections_stay_whole() {
    sections_stay_whole(Biased::<RwSpinLatch, VirtualClock>::default);
}

#[test]
fn elided_sections_stay_whole() {
    sections_stay_whole(|| {
        let latch: Elided<RwSpinLatch, _> =
            Elided::with_policy(InjectedBackend::default(), RetryPolicy::attempts_of(2), Adaptivity::NEVER);
        latch.backend().inject([Begin::Started, Begin::Aborted(AbortCause::Overflow)]);
        latch.backend().inject_aborts(AbortCause::Conflict, 3);
        latch
    });
}
