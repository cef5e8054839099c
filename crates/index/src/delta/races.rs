//! The index under several threads, over each kind of latch.
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use latches::elision::{AbortCause, Adaptivity, Begin, InjectedBackend, RetryPolicy};
use latches::{Biased, Elided, QueueLatch};
use sync::{SpinLatch, VersionLatch};

use super::*;

const TUNED: DeltaForm = DeltaForm { search: NodeSearch::Binary, dictionary_count: 4 };

/// A string for a number. Some strings are long, and their order is not that of the numbers.
fn name(number: u64) -> Vec<u8> {
    let mut name = number.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes()[..3].to_vec();
    name.extend(std::iter::repeat_n(b'.', (number % 30) as usize));
    name.extend(number.to_be_bytes());
    name
}

/// Threads enter overlapping values while others look them up, decode and iterate.
fn encode_together<L: Latch>(index: &DeltaIndex<[u8], L>) {
    const VALUES: u64 = if cfg!(miri) { 40 } else { 3_000 };
    let (done, entered) = (AtomicBool::new(false), AtomicU64::new(0));
    let ids = thread::scope(|scope| {
        let writers: Vec<_> = (0..3u64)
            .map(|writer| {
                let entered = &entered;
                scope.spawn(move || {
                    let mut ids = vec![None; VALUES as usize];
                    for at in 0..VALUES {
                        // Each writer goes through all values, from a place of its own.
                        let number = (at + writer * VALUES / 3) % VALUES;
                        ids[number as usize] = Some(index.encode(&name(number)).unwrap());
                        if writer == 0 {
                            entered.store(at + 1, Ordering::Release);
                        }
                    }
                    ids
                })
            })
            .collect();
        let reader = scope.spawn(|| {
            let mut rounds = 0;
            while !done.load(Ordering::Relaxed) || rounds == 0 {
                rounds += 1;
                look_around(index, entered.load(Ordering::Acquire));
                thread::yield_now();
            }
        });
        let ids: Vec<_> = writers.into_iter().map(|writer| writer.join().unwrap()).collect();
        done.store(true, Ordering::Relaxed);
        reader.join().unwrap();
        ids
    });
    assert!(ids.iter().all(|of_one| *of_one == ids[0]), "all threads know a value by one id");
    assert_eq!(index.len(), VALUES);
    let mut names: Vec<_> = (0..VALUES).map(name).collect();
    names.sort();
    assert!(index.ids().map(|id| index.value(id).unwrap()).eq(names.iter().map(|name| &name[..])));
}

/// Checks what a reader may see while the first `entered` numbers are certainly there.
fn look_around<L: Latch>(index: &DeltaIndex<[u8], L>, entered: u64) {
    for number in (0..entered).step_by(if cfg!(miri) { 7 } else { 97 }) {
        let id = index.lookup(&name(number)).expect("the value was entered before");
        assert_eq!(index.value(id), Some(&name(number)[..]));
    }
    let sorted = index.sorted();
    let values: Vec<&[u8]> = sorted.ids().iter().map(|id| index.value(*id).unwrap()).collect();
    assert!(values.is_sorted_by(|left, right| left < right), "in order, and each once");
    for number in 0..entered {
        let id = index.lookup(&name(number)).unwrap();
        assert_eq!(values[sorted.position(id).expect("it was there before") as usize], name(number));
    }
}

#[test]
fn threads_agree_on_ids_over_every_latch() {
    encode_together(&DeltaIndex::<[u8], RwSpinLatch>::new(DeltaForm::ORIGINAL));
    encode_together(&DeltaIndex::<[u8], RwSpinLatch>::new(TUNED));
    encode_together(&DeltaIndex::<[u8], SpinLatch>::new(TUNED));
    encode_together(&DeltaIndex::<[u8], QueueLatch>::new(TUNED));
    encode_together(&DeltaIndex::<[u8], VersionLatch>::new(TUNED));
    encode_together(&DeltaIndex::<[u8], Biased<RwSpinLatch>>::new(TUNED));
    encode_together(&DeltaIndex::<[u8], Elided<SpinLatch>>::new(TUNED));
}

#[test]
fn threads_agree_on_ids_when_transactions_commit_and_abort() {
    let backend = InjectedBackend::default();
    for _ in 0..200 {
        backend.inject([Begin::Started, Begin::Aborted(AbortCause::Overflow), Begin::Started]);
        backend.inject_aborts(AbortCause::Conflict, 3);
    }
    let latch: Elided<SpinLatch, _> = Elided::with_policy(backend, RetryPolicy::attempts_of(2), Adaptivity::NEVER);
    let index = DeltaIndex::with_latch(TUNED, latch);
    encode_together(&index);
    let counts = index.latch().counts();
    assert!(counts.commits > 0 && counts.fall_backs > 0, "{counts:?}");
}

#[test]
fn rows_of_a_column_are_whole_when_they_can_be_seen() {
    let column = DeltaColumn::<u64, VersionLatch>::new(TUNED);
    thread::scope(|scope| {
        for writer in 0..3u64 {
            let column = &column;
            scope.spawn(move || {
                for at in 0..3_000 {
                    let value = 3 * (at % 500) + writer;
                    let row = column.append(value).unwrap().unwrap();
                    assert_eq!(column.value(row), Some(value));
                }
            });
        }
        let column = &column;
        scope.spawn(move || {
            while column.row_count() < 9_000 {
                let seen = (0..column.row_count() as u32).filter_map(|row| column.value(row));
                assert!(seen.into_iter().all(|value| value < 1_500));
                thread::yield_now();
            }
        });
    });
    let mut counts = vec![0; 1_500];
    (0..9_000).for_each(|row| counts[column.value(row).unwrap() as usize] += 1);
    assert_eq!((column.row_count(), column.index().len()), (9_000, 1_500));
    assert!(counts.into_iter().all(|count| count == 6));
}
