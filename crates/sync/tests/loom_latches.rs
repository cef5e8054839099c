//! Models of the latches: loom runs each of them under every order of events that the memory model allows (up to a
//! bound on preemptions) and fails on a data race, a wrong value, or a thread that waits for ever.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p sync --release --test loom_latches`
#![cfg(loom)]

use loom::sync::Arc;
use loom::thread;
use sync::atomic::{AtomicU64, Ordering};
use sync::latch::VisibleReaders;
use sync::throttle::Topology;
use sync::{Biased, Latch, Latched, QueueLatch, RwSpinLatch, SocketQueueLatch, SpinLatch, VersionLatch, VirtualClock};

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

/// Checks `body` in every order with at most `preemptions` switches away from a thread that could go on.
fn model(preemptions: usize, body: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 20_000;
    builder.check(body);
}

/// Two threads beside the main one add to a plain number.
fn writers_see_each_other<L: Latch + 'static>(preemptions: usize) {
    model(preemptions, || {
        let data = Arc::new(Latched::<u64, L>::new(0));
        let others = [1, 10].map(|add| {
            let data = data.clone();
            thread::spawn(move || data.write(|sum| *sum += add))
        });
        data.write(|sum| *sum += 100);
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_eq!(data.read(|sum| *sum), 111);
    });
}

/// A writer changes two numbers that readers must see alike.
fn readers_see_whole_writes<L: Latch + 'static>(preemptions: usize) {
    model(preemptions, || {
        let data = Arc::new(Latched::<[u64; 2], L>::new([0, 0]));
        let writer = {
            let data = data.clone();
            thread::spawn(move || {
                for round in 1..=2 {
                    data.write(|pair| *pair = [round, round]);
                }
            })
        };
        let reader = {
            let data = data.clone();
            thread::spawn(move || data.read(|pair| assert_eq!(pair[0], pair[1])))
        };
        let first = data.read(|pair| *pair);
        let second = data.read(|pair| *pair);
        assert!(first[0] == first[1] && second[0] == second[1] && first[0] <= second[0]);
        writer.join().unwrap();
        reader.join().unwrap();
        assert_eq!(data.read(|pair| *pair), [2, 2]);
    });
}

/// Preemptions in the models that every latch goes through: as many as end within seconds.
const WRITERS_PREEMPTED: usize = 3;
const READERS_PREEMPTED: usize = 2;

#[test]
fn spin_writers_see_each_other() {
    writers_see_each_other::<SpinLatch>(WRITERS_PREEMPTED);
}

#[test]
fn rw_writers_see_each_other() {
    writers_see_each_other::<RwSpinLatch>(WRITERS_PREEMPTED);
}

#[test]
fn queue_writers_see_each_other() {
    writers_see_each_other::<QueueLatch>(WRITERS_PREEMPTED);
}

#[test]
fn socket_queue_writers_see_each_other() {
    writers_see_each_other::<SocketQueue>(WRITERS_PREEMPTED);
}

#[test]
fn version_writers_see_each_other() {
    writers_see_each_other::<VersionLatch>(WRITERS_PREEMPTED);
}

#[test]
fn biased_writers_see_each_other() {
    writers_see_each_other::<BiasedRw>(WRITERS_PREEMPTED);
}

#[test]
fn spin_readers_see_whole_writes() {
    readers_see_whole_writes::<SpinLatch>(READERS_PREEMPTED);
}

#[test]
fn rw_readers_see_whole_writes() {
    readers_see_whole_writes::<RwSpinLatch>(READERS_PREEMPTED);
}

#[test]
fn queue_readers_see_whole_writes() {
    readers_see_whole_writes::<QueueLatch>(READERS_PREEMPTED);
}

#[test]
fn socket_queue_readers_see_whole_writes() {
    readers_see_whole_writes::<SocketQueue>(READERS_PREEMPTED);
}

#[test]
fn version_readers_see_whole_writes() {
    readers_see_whole_writes::<VersionLatch>(READERS_PREEMPTED);
}

#[test]
fn biased_readers_see_whole_writes() {
    readers_see_whole_writes::<BiasedRw>(READERS_PREEMPTED);
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

/// Two numbers that optimistic readers look at: atomics, as a writer may be at work meanwhile.
#[derive(Default)]
struct Pair {
    latch: VersionLatch,
    values: [AtomicU64; 2],
}

impl Pair {
    fn set(&self, value: u64) {
        let _held = self.latch.exclusive();
        self.values.iter().for_each(|word| word.store(value, Ordering::Relaxed));
    }

    fn look(&self) -> [u64; 2] {
        [0, 1].map(|at: usize| self.values[at].load(Ordering::Relaxed))
    }
}

#[test]
fn an_optimistic_reader_accepts_no_torn_pair() {
    model(3, || {
        let pair = Arc::new(Pair::default());
        let writer = {
            let pair = pair.clone();
            thread::spawn(move || (1..=2).for_each(|value| pair.set(value)))
        };
        if let Some(version) = pair.latch.try_read_version() {
            let seen = pair.look();
            if pair.latch.validate(version) {
                assert_eq!(seen[0], seen[1]);
            }
        }
        let seen = pair.latch.read(|reading| {
            let seen = pair.look();
            reading.check()?;
            assert_eq!(seen[0], seen[1], "a check that passes vouches for what was read before");
            Ok(seen)
        });
        assert_eq!(seen[0], seen[1]);
        writer.join().unwrap();
        assert_eq!(pair.look(), [2, 2]);
    });
}

#[test]
fn an_upgrade_succeeds_only_on_what_was_read() {
    model(3, || {
        let pair = Arc::new(Pair::default());
        let add = |pair: &Pair| loop {
            let version = pair.latch.read_version();
            let seen = pair.look();
            if pair.latch.try_upgrade(version).is_some() {
                pair.values.iter().zip(seen).for_each(|(word, seen)| word.store(seen + 1, Ordering::Relaxed));
                // SAFETY: the upgrade made this thread the writer.
                unsafe { pair.latch.release_exclusive(()) };
                return;
            }
            thread::yield_now();
        };
        let other = {
            let pair = pair.clone();
            thread::spawn(move || add(&pair))
        };
        add(&pair);
        other.join().unwrap();
        assert_eq!(pair.look(), [2, 2]);
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

#[test]
fn one_of_two_upgrading_readers_becomes_the_writer() {
    model(3, || {
        let latch = Arc::new(RwSpinLatch::new());
        let winners = Arc::new(AtomicU64::new(0));
        let upgrade = |latch: &RwSpinLatch, winners: &AtomicU64| {
            latch.acquire_shared();
            // SAFETY: held shared just now; on success it is held exclusively, otherwise still shared.
            unsafe {
                if latch.try_upgrade() {
                    let seen = winners.load(Ordering::Relaxed);
                    winners.store(seen + 1, Ordering::Relaxed);
                    latch.downgrade();
                }
                latch.release_shared(());
            }
        };
        let other = {
            let (latch, winners) = (latch.clone(), winners.clone());
            thread::spawn(move || upgrade(&latch, &winners))
        };
        upgrade(&latch, &winners);
        other.join().unwrap();
        assert!((1..=2).contains(&winners.load(Ordering::Relaxed)));
        assert!(latch.try_exclusive().is_some());
    });
}
