//! Models of the latches of this crate: loom runs each of them under every order of events that the memory model allows (up to a
//! bound on preemptions) and fails on a data race, a wrong value, or a thread that waits for ever.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p lstore-latches --release --test loom_latches`
#![cfg(loom)]

#[path = "../../sync/tests/laws/loom.rs"]
mod laws;

use latches::throttle::Topology;
use latches::{Biased, QueueLatch, SocketQueueLatch, VisibleReaders};
use laws::model;
use loom::sync::Arc;
use loom::thread;
use sync::atomic::{AtomicU64, Ordering};
use sync::{Latch, Latched, RwSpinLatch, VirtualClock};

type BiasedRw = Biased<RwSpinLatch, VirtualClock>;

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

type SocketQueue = SocketQueueLatch<TwoSockets, 1>;

#[test]
fn queue_writers_see_each_other() {
    laws::writers_see_each_other::<QueueLatch>(laws::WRITERS_PREEMPTED);
}

#[test]
fn socket_queue_writers_see_each_other() {
    laws::writers_see_each_other::<SocketQueue>(laws::WRITERS_PREEMPTED);
}

#[test]
fn biased_writers_see_each_other() {
    laws::writers_see_each_other::<BiasedRw>(laws::WRITERS_PREEMPTED);
}

#[test]
fn queue_readers_see_whole_writes() {
    laws::readers_see_whole_writes::<QueueLatch>(laws::READERS_PREEMPTED);
}

#[test]
fn socket_queue_readers_see_whole_writes() {
    laws::readers_see_whole_writes::<SocketQueue>(laws::READERS_PREEMPTED);
}

#[test]
fn biased_readers_see_whole_writes() {
    laws::readers_see_whole_writes::<BiasedRw>(laws::READERS_PREEMPTED);
}

/// Three threads that wait for a fourth, so that one can be passed over and another can come meanwhile.
#[test]
fn whoever_is_passed_over_in_a_socket_queue_is_let_in_later() {
    model(1, || {
        let data = Arc::new(Latched::<u64, SocketQueue>::new(0));
        let others = [1, 10, 100].map(|add| {
            let data = data.clone();
            thread::spawn(move || data.write(|sum| *sum += add))
        });
        data.write(|sum| *sum += 1_000);
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_eq!(data.read(|sum| *sum), 1_111);
        assert!(data.latch().try_exclusive().is_some());
    });
}

#[test]
fn a_writer_that_ends_the_bias_waits_for_the_readers_in_their_slots() {
    model(3, || {
        let readers = std::sync::Arc::new(VisibleReaders::with_lines(2));
        let latch = BiasedRw::with_readers(VirtualClock::default(), readers);
        let data = Arc::new(Latched::with_latch(latch, 0u64));
        data.read(|_| ());
        assert!(data.latch().is_biased());
        let reader = {
            let data = data.clone();
            thread::spawn(move || [(); 2].map(|()| data.read(|number| *number)))
        };
        data.write(|number| *number = 7);
        assert!([[0, 0], [0, 7], [7, 7]].contains(&reader.join().unwrap()));
        assert_eq!(data.read(|number| *number), 7);
    });
}

#[test]
fn a_writer_that_only_tries_excludes_biased_readers_or_gives_up() {
    model(3, || {
        let data = Arc::new(Latched::<u64, BiasedRw>::new(0));
        data.read(|_| ());
        let tried = Arc::new(AtomicU64::new(0));
        let reader = {
            let (data, tried) = (data.clone(), tried.clone());
            thread::spawn(move || {
                let before = data.read(|_| tried.load(Ordering::Relaxed));
                data.read(|_| assert!(tried.load(Ordering::Relaxed) >= before));
            })
        };
        if let Some(_held) = data.latch().try_exclusive() {
            assert!(data.latch().try_shared().is_none(), "nobody reads beside a writer");
            tried.store(1, Ordering::Relaxed);
        }
        reader.join().unwrap();
    });
}
