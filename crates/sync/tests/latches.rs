//! Every latch under threads of the system, and against a model of which threads may be inside.
#![cfg(not(any(loom, shuttle)))]

use proptest::prelude::*;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use sync::elision::InjectedBackend;
use sync::latch::VisibleReaders;
use sync::throttle::Topology;
use sync::{
    Biased, Elided, Latch, Latched, QueueLatch, RwSpinLatch, SocketQueueLatch, SpinLatch, SystemClock, Throttled,
    VersionLatch, VirtualClock,
};

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

/// Calls `check::<Latch>(readers share)` for every latch, alone and wrapped.
macro_rules! for_every_latch {
    ($check:ident) => {
        $check::<SpinLatch>(false);
        $check::<RwSpinLatch>(true);
        $check::<QueueLatch>(false);
        $check::<SocketQueueLatch>(false);
        $check::<SocketQueueLatch<TwoSockets, 3>>(false);
        $check::<VersionLatch>(true);
        $check::<Biased<RwSpinLatch>>(true);
        $check::<Biased<VersionLatch, VirtualClock>>(true);
        $check::<Elided<SpinLatch>>(false);
        $check::<Elided<SocketQueueLatch<TwoSockets>>>(false);
        $check::<Elided<RwSpinLatch>>(true);
        $check::<Throttled<Biased<Elided<RwSpinLatch>>>>(true);
    };
}

#[test]
fn no_write_is_lost_and_no_reader_sees_half_of_one() {
    fn check<L: Latch>(_: bool) {
        const WRITES: u64 = 2_000;
        let data = Latched::<[u64; 8], L>::new([0; 8]);
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let mut last = 0;
                    while !done.load(Ordering::Relaxed) {
                        let seen = data.read(|words| *words);
                        assert!(seen.iter().all(|word| *word == seen[0]) && seen[0] >= last);
                        last = seen[0];
                        std::thread::yield_now();
                    }
                });
            }
            let writers = [0, 1].map(|_| {
                scope.spawn(|| {
                    (0..WRITES).for_each(|_| data.write(|words| words.iter_mut().for_each(|word| *word += 1)))
                })
            });
            writers.into_iter().for_each(|writer| writer.join().unwrap());
            done.store(true, Ordering::Relaxed);
        });
        assert_eq!(data.read(|words| *words), [2 * WRITES; 8]);
    }
    for_every_latch!(check);
}

#[test]
fn a_body_of_atomics_reads_whole_writes_whatever_the_latch() {
    fn check<L: Latch>(_: bool) {
        const WRITES: u64 = 2_000;
        let latch = L::default();
        let words: [AtomicU64; 8] = Default::default();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for value in 1..=WRITES {
                    let _held = latch.exclusive();
                    words.iter().for_each(|word| word.store(value, Ordering::Relaxed));
                }
            });
            for _ in 0..2 {
                scope.spawn(|| {
                    let mut last = 0;
                    while last < WRITES {
                        let seen = latch.read(|reading| {
                            let first = words[0].load(Ordering::Relaxed);
                            let sum: u64 = words.iter().map(|word| word.load(Ordering::Relaxed)).sum();
                            reading.check()?;
                            assert_eq!(sum, 8 * first, "a check that passes vouches for what was read before");
                            Ok(first)
                        });
                        assert!(seen >= last);
                        last = seen;
                        std::thread::yield_now();
                    }
                });
            }
        });
    }
    for_every_latch!(check);
}

#[derive(Debug, Clone, Copy)]
enum Step {
    TryShared,
    TryExclusive,
    ReleaseShared,
    ReleaseExclusive,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        Just(Step::TryShared),
        Just(Step::TryExclusive),
        Just(Step::ReleaseShared),
        Just(Step::ReleaseExclusive)
    ];
    proptest::collection::vec(step, 1..60)
}

/// Lets a latch go through `steps` beside a model that counts the threads inside.
fn agrees_with_the_model<L: Latch>(steps: &[Step], readers_share: bool) -> Result<(), TestCaseError> {
    let latch = L::default();
    let (mut readers, mut writer) = (Vec::new(), None);
    for step in steps {
        match step {
            Step::TryShared => {
                let may_enter = writer.is_none() && (readers_share || readers.is_empty());
                let held = latch.try_acquire_shared();
                prop_assert_eq!(held.is_some(), may_enter);
                readers.extend(held);
            }
            Step::TryExclusive => {
                let may_enter = writer.is_none() && readers.is_empty();
                let held = latch.try_acquire_exclusive();
                prop_assert_eq!(held.is_some(), may_enter);
                writer = writer.or(held);
            }
            Step::ReleaseShared => {
                if let Some(held) = readers.pop() {
                    // SAFETY: acquired above, by this thread.
                    unsafe { latch.release_shared(held) };
                }
            }
            Step::ReleaseExclusive => {
                if let Some(held) = writer.take() {
                    // SAFETY: acquired above, by this thread.
                    unsafe { latch.release_exclusive(held) };
                }
            }
        }
    }
    // SAFETY: acquired above, by this thread.
    readers.into_iter().for_each(|held| unsafe { latch.release_shared(held) });
    // SAFETY: acquired above, by this thread.
    writer.into_iter().for_each(|held| unsafe { latch.release_exclusive(held) });
    prop_assert!(latch.try_exclusive().is_some());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_latch_lets_in_readers_or_one_writer(steps in steps()) {
        agrees_with_the_model::<SpinLatch>(&steps, false)?;
        agrees_with_the_model::<RwSpinLatch>(&steps, true)?;
        agrees_with_the_model::<QueueLatch>(&steps, false)?;
        agrees_with_the_model::<SocketQueueLatch>(&steps, false)?;
        agrees_with_the_model::<VersionLatch>(&steps, true)?;
        agrees_with_the_model::<Biased<RwSpinLatch>>(&steps, true)?;
        agrees_with_the_model::<Biased<VersionLatch, VirtualClock>>(&steps, true)?;
        agrees_with_the_model::<Throttled<RwSpinLatch>>(&steps, true)?;
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
