//! Models of the latches of the database: loom runs each of them under every order of events that the memory model allows (up to a
//! bound on preemptions) and fails on a data race, a wrong value, or a thread that waits for ever.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p lstore-sync --release --test loom_latches`
#![cfg(loom)]

#[path = "laws/loom.rs"]
mod laws;

use laws::model;
use loom::sync::Arc;
use loom::thread;
use sync::atomic::{AtomicU64, Ordering};
use sync::{Latch, RwSpinLatch, SpinLatch, VersionLatch};

#[test]
fn spin_writers_see_each_other() {
    laws::writers_see_each_other::<SpinLatch>(laws::WRITERS_PREEMPTED);
}

#[test]
fn rw_writers_see_each_other() {
    laws::writers_see_each_other::<RwSpinLatch>(laws::WRITERS_PREEMPTED);
}

#[test]
fn version_writers_see_each_other() {
    laws::writers_see_each_other::<VersionLatch>(laws::WRITERS_PREEMPTED);
}

#[test]
fn spin_readers_see_whole_writes() {
    laws::readers_see_whole_writes::<SpinLatch>(laws::READERS_PREEMPTED);
}

#[test]
fn rw_readers_see_whole_writes() {
    laws::readers_see_whole_writes::<RwSpinLatch>(laws::READERS_PREEMPTED);
}

#[test]
fn version_readers_see_whole_writes() {
    laws::readers_see_whole_writes::<VersionLatch>(laws::READERS_PREEMPTED);
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
