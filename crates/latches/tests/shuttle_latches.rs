//! The latches of this crate under shuttle: more threads and longer runs than loom can go through, in orders drawn by chance and by
//! priorities. Shuttle knows sequentially consistent memory only; weaker orders are loom's to check.
//!
//! `RUSTFLAGS="--cfg shuttle" cargo test -p lstore-latches --release --test shuttle_latches`
//!
//! A failing order is printed as a string that `shuttle::replay` accepts.
#![cfg(shuttle)]

#[path = "../../sync/tests/laws/shuttle.rs"]
mod laws;

use latches::elision::{AbortCause, Adaptivity, Begin, InjectedBackend, RetryPolicy};
use latches::throttle::Topology;
use latches::{Biased, Elided, QueueLatch, SocketQueueLatch};
use sync::{RwSpinLatch, VirtualClock};

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
fn queue_sections_stay_whole() {
    laws::sections_stay_whole(QueueLatch::default);
}

#[test]
fn socket_queue_sections_stay_whole() {
    laws::sections_stay_whole(SocketQueueLatch::<TwoSockets, 2>::default);
}

#[test]
fn biased_sections_stay_whole() {
    laws::sections_stay_whole(Biased::<RwSpinLatch, VirtualClock>::default);
}

#[test]
fn elided_sections_stay_whole() {
    laws::sections_stay_whole(|| {
        let latch: Elided<RwSpinLatch, _> =
            Elided::with_policy(InjectedBackend::default(), RetryPolicy::attempts_of(2), Adaptivity::NEVER);
        latch.backend().inject([Begin::Started, Begin::Aborted(AbortCause::Overflow)]);
        latch.backend().inject_aborts(AbortCause::Conflict, 3);
        latch
    });
}
