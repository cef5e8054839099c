//! What every latch owes to threads of the system: whole sections, whole optimistic reads, and one writer or readers inside.
//! The tests of `sync` and of `latches` both hold their latches to it.

use proptest::prelude::*;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use sync::{Latch, Latched};

/// Two writers count in eight words, and two readers look at all of them.
pub fn no_write_is_lost_and_no_reader_sees_half_of_one<L: Latch>() {
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
            scope.spawn(|| (0..WRITES).for_each(|_| data.write(|words| words.iter_mut().for_each(|word| *word += 1))))
        });
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(data.read(|words| *words), [2 * WRITES; 8]);
}

/// Two readers look at eight atomics without acquiring, where the latch lets them, while a writer changes them.
pub fn a_body_of_atomics_reads_whole_writes<L: Latch>() {
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

/// What a thread does with a latch; a release without a hold does nothing.
#[derive(Debug, Clone, Copy)]
pub enum Step {
    TryShared,
    TryExclusive,
    ReleaseShared,
    ReleaseExclusive,
}

/// Steps of any kind, in any order.
pub fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        Just(Step::TryShared),
        Just(Step::TryExclusive),
        Just(Step::ReleaseShared),
        Just(Step::ReleaseExclusive)
    ];
    proptest::collection::vec(step, 1..60)
}

/// Lets a latch go through `steps` beside a model that counts the threads inside.
pub fn agrees_with_the_model<L: Latch>(steps: &[Step], readers_share: bool) -> Result<(), TestCaseError> {
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
