//! The latches of the database under threads of the system, and against a model of which threads may be inside.
#![cfg(not(any(loom, shuttle)))]

#[path = "laws/threads.rs"]
mod laws;

use proptest::prelude::*;
use sync::{Latch, RwSpinLatch, SpinLatch, VersionLatch};

#[test]
fn no_write_is_lost_and_no_reader_sees_half_of_one() {
    laws::no_write_is_lost_and_no_reader_sees_half_of_one::<SpinLatch>();
    laws::no_write_is_lost_and_no_reader_sees_half_of_one::<RwSpinLatch>();
    laws::no_write_is_lost_and_no_reader_sees_half_of_one::<VersionLatch>();
}

#[test]
fn a_body_of_atomics_reads_whole_writes_whatever_the_latch() {
    laws::a_body_of_atomics_reads_whole_writes::<SpinLatch>();
    laws::a_body_of_atomics_reads_whole_writes::<RwSpinLatch>();
    laws::a_body_of_atomics_reads_whole_writes::<VersionLatch>();
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_latch_lets_in_readers_or_one_writer(steps in laws::steps()) {
        laws::agrees_with_the_model::<SpinLatch>(&steps, false)?;
        laws::agrees_with_the_model::<RwSpinLatch>(&steps, true)?;
        laws::agrees_with_the_model::<VersionLatch>(&steps, true)?;
    }
}

#[test]
fn a_waiting_writer_keeps_new_readers_out() {
    fn check<L: Latch>() {
        let latch = L::default();
        let reader = latch.shared();
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| drop(latch.exclusive()));
            while let Some(newcomer) = latch.try_shared() {
                drop(newcomer);
                std::thread::yield_now();
            }
            assert!(!writer.is_finished(), "the first reader is still inside");
            drop(reader);
            writer.join().unwrap();
        });
        assert!(latch.try_shared().is_some(), "readers enter again");
    }
    check::<RwSpinLatch>();
    check::<VersionLatch>();
}

#[test]
fn only_writers_make_a_version_invalid() {
    let latch = VersionLatch::new();
    let version = latch.read_version();
    drop(latch.shared());
    assert!(latch.validate(version) && latch.try_read_version() == Some(version));
    let held = latch.exclusive();
    assert!(!latch.validate(version) && latch.try_read_version().is_none());
    drop(held);
    assert!(!latch.validate(version) && latch.try_upgrade(version).is_none());

    let version = latch.read_version();
    assert!(latch.try_upgrade(version).is_some());
    assert!(latch.try_shared().is_none() && latch.try_upgrade(version).is_none());
    // SAFETY: the upgrade made this thread the writer.
    unsafe { latch.release_exclusive(()) };
    let version = latch.read_version();
    let _reader = latch.shared();
    assert!(latch.try_upgrade(version).is_none(), "another reader is inside");
}

#[test]
fn a_reader_that_is_always_overtaken_ends_by_acquiring() {
    let latch = VersionLatch::new();
    let mut attempts = 0;
    let result = latch.read(|reading| {
        attempts += 1;
        drop(latch.try_exclusive());
        reading.check().map(|()| attempts)
    });
    assert!(result > 1, "the writer came between until the latch was held");
    assert!(latch.try_exclusive().is_some());
}

#[test]
fn an_upgrade_waits_for_other_readers_and_a_downgrade_lets_them_in() {
    let latch = RwSpinLatch::new();
    latch.acquire_shared();
    let other = latch.shared();
    std::thread::scope(|scope| {
        // SAFETY: this thread stands for the first reader, which does nothing meanwhile.
        let upgrade = scope.spawn(|| unsafe { latch.try_upgrade() });
        while latch.try_shared().is_some() {
            std::thread::yield_now();
        }
        // SAFETY: the guard `other` holds the latch for reading. It is refused, as the first reader was faster.
        assert!(!unsafe { latch.try_upgrade() });
        drop(other);
        assert!(upgrade.join().unwrap());
    });
    assert!(latch.try_shared().is_none());
    // SAFETY: the upgrade gave the latch to the first reader.
    unsafe { latch.downgrade() };
    assert!(latch.try_shared().is_some() && latch.try_exclusive().is_none());
    // SAFETY: what the downgrade left.
    unsafe { latch.release_shared(()) };
    assert!(latch.try_exclusive().is_some());
}

#[test]
fn counters_of_threads_add_up() {
    let (counter, pair) = (sync::Counter::new(), sync::Counters::<2>::with_lines(2));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for step in 0..1_000 {
                    counter.add(3);
                    pair.add(step % 2, 1);
                }
            });
        }
    });
    assert_eq!((counter.sum(), pair.sum(0), pair.sum(1)), (12_000, 2_000, 2_000));
}
