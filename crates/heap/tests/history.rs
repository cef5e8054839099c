//! Transactions of many threads are serializable in the order of their LSNs, and see one moment also where they fail.
//!
//! Each transaction notes what it has read and written. The committed ones are then repeated one after the other in the
//! order of their LSNs, on an array: each must read what it has read. A transaction that has only read is repeated where its
//! snapshot stands. So the order of the log is an order in which the heap could have come about, which is what
//! recovery needs; and as LSNs are taken while a transaction runs, it is linearizable as well.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier};

use durability::{CommitMode, LogOptions, Lsn};
use heap::{CheckpointCopy, Heap, HeapError, HeapOptions, HeapRef, HeapResult};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use testkit::FaultyDevice;

const WORDS: u64 = 24;
const THREADS: u64 = 4;
const EACH: u64 = 2_500;

fn options() -> HeapOptions {
    let log = LogOptions {
        partitions: 3,
        flush_interval: Some(std::time::Duration::from_millis(1)),
        ..LogOptions::default()
    };
    HeapOptions { words: 1 << 16, chunk_words: 16, checkpoint_interval: None, log, ..HeapOptions::default() }
}

/// The reads and writes of a transaction, in order: word, value, and whether it was written.
#[derive(Debug)]
struct Done {
    lsn: Lsn,
    is_update: bool,
    /// The last number that the clock had shown before it began, and the first after it had ended.
    began_after: Lsn,
    ended_before: Lsn,
    steps: Vec<(u64, u64, bool)>,
}

fn work(heap: &Heap, block: HeapRef, thread: u64, start: &Barrier) -> Vec<Done> {
    let mut random = StdRng::seed_from_u64(thread);
    start.wait();
    let mut all = Vec::new();
    for number in 0..EACH {
        let seed = random.random::<u64>();
        let began_after = heap.last_lsn();
        let mode = [CommitMode::Async, CommitMode::Partition][(number % 2) as usize];
        let result = heap.atomically_split_phase(mode, |tx| {
            let mut random = StdRng::seed_from_u64(seed);
            let mut steps = Vec::new();
            let writes = random.random_bool(0.7);
            for _ in 0..random.random_range(1..8) {
                // Others run in its midst also where each transaction is shorter than a thread's turn on its core.
                if random.random_ratio(1, 8) {
                    std::thread::yield_now();
                }
                let at = random.random_range(0..WORDS);
                if writes && random.random_bool(0.5) {
                    let value = thread << 40 | number << 8 | steps.len() as u64;
                    tx.write(block.at(at), value)?;
                    steps.push((at, value, true));
                } else {
                    steps.push((at, tx.read(block.at(at))?, false));
                }
            }
            Ok::<_, HeapError>(steps)
        });
        let (steps, committed) = result.unwrap();
        let (is_update, ended_before) = (committed.has_written(), heap.last_lsn());
        all.push(Done { lsn: committed.lsn, is_update, began_after, ended_before, steps });
    }
    all
}

fn repeat(mut history: Vec<Done>) -> Vec<u64> {
    // A transaction that has only read comes after the update that its snapshot ends with.
    history.sort_by_key(|done| (done.lsn, !done.is_update));
    let mut words = vec![0; WORDS as usize];
    let mut last = 0;
    for done in &history {
        assert!(!done.is_update || done.lsn > last, "LSN {} twice", done.lsn);
        assert!(done.lsn >= done.began_after && done.lsn <= done.ended_before, "{done:?}");
        last = if done.is_update { done.lsn } else { last };
        for &(at, value, is_write) in &done.steps {
            match is_write {
                true => words[at as usize] = value,
                false => assert_eq!(words[at as usize], value, "word {at} in {done:?}"),
            }
        }
    }
    words
}

fn histories(heap: &Heap, also: impl Fn(HeapRef, &AtomicBool) + Sync) -> (HeapRef, Vec<u64>) {
    let block = heap.atomically(CommitMode::Sync, |tx| tx.pmalloc(WORDS)).unwrap();
    let (is_over, start) = (AtomicBool::new(false), Barrier::new(THREADS as usize));
    let history = std::thread::scope(|scope| {
        let start = &start;
        let threads: Vec<_> =
            (0..THREADS).map(|thread| scope.spawn(move || work(heap, block, thread, start))).collect();
        let beside = scope.spawn(|| also(block, &is_over));
        let histories: Vec<_> = threads.into_iter().map(|thread| thread.join()).collect();
        is_over.store(true, Ordering::Relaxed);
        beside.join().unwrap();
        histories.into_iter().flat_map(|history| history.unwrap()).collect::<Vec<Done>>()
    });
    let conflicts = heap.stats().conflicts;
    assert!(conflicts > 0, "the threads have met");
    let words = repeat(history);
    let mut found = vec![0; WORDS as usize];
    heap.begin().read_words(block, &mut found).unwrap();
    assert_eq!(found, words);
    (block, words)
}

#[test]
fn the_order_of_the_lsns_is_a_serial_order_in_memory() {
    histories(&Heap::volatile(options()), |_, _| ());
}

/// Threads write with a log and checkpoints beside them; then the heap is opened again.
#[test]
fn the_order_of_the_log_is_a_serial_order() {
    the_log_repeats_history(CheckpointCopy::Chunks);
}

#[test]
fn the_order_of_the_log_is_a_serial_order_beside_snapshots() {
    the_log_repeats_history(CheckpointCopy::Snapshot);
}

fn the_log_repeats_history(checkpoint_copy: CheckpointCopy) {
    let options = || HeapOptions { checkpoint_copy, ..options() };
    let device = FaultyDevice::new(3);
    let (heap, _) = Heap::open(Arc::new(device.clone()), options()).unwrap();
    let (block, words) = histories(&heap, |_, is_over| {
        while !is_over.load(Ordering::Relaxed) {
            heap.checkpoint().unwrap();
        }
    });
    assert!(heap.stats().checkpoints > 2 && heap.stats().voids > 0, "{:?}", heap.stats());
    heap.close().unwrap();
    let (heap, recovered) = Heap::open(Arc::new(device), options()).unwrap();
    assert!(recovered.checkpoint > 2);
    let mut found = vec![0; WORDS as usize];
    heap.begin().read_words(block, &mut found).unwrap();
    assert_eq!(found, words);
}

/// Threads move amounts between words with a constant sum. Readers look at the sum after every single read, in
/// transactions that will fail as well, and never see another one.
#[test]
fn a_transaction_that_is_bound_to_fail_sees_one_moment_too() {
    let heap = Heap::volatile(options());
    let block = heap.atomically(CommitMode::Async, |tx| tx.pmalloc(WORDS)).unwrap();
    let (is_over, doomed) = (AtomicBool::new(false), AtomicU64::new(0));
    let move_one = |random: &mut StdRng| -> HeapResult<()> {
        let (from, to) = (block.at(random.random_range(0..WORDS)), block.at(random.random_range(0..WORDS)));
        heap.atomically(CommitMode::Async, |tx| {
            let less = tx.read(from)?.wrapping_sub(1);
            tx.write(from, less)?;
            let more = tx.read(to)?.wrapping_add(1);
            tx.write(to, more)
        })
    };
    std::thread::scope(|scope| {
        let (is_over, doomed, heap) = (&is_over, &doomed, &heap);
        for thread in 0..2 {
            scope.spawn(move || {
                let mut random = StdRng::seed_from_u64(thread);
                while !is_over.load(Ordering::Relaxed) {
                    move_one(&mut random).unwrap();
                }
            });
        }
        let readers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(move || {
                    for number in 0..6_000 {
                        let mut tx = heap.begin();
                        let sum = (0..WORDS)
                            .try_fold(0_u64, |sum, at| Ok::<_, HeapError>(sum.wrapping_add(tx.read(block.at(at))?)));
                        if number % 8 == 0 {
                            std::thread::yield_now();
                        }
                        // Again, from the other end: all that it was given before the conflict belongs together.
                        let again = (0..WORDS)
                            .rev()
                            .try_fold(0_u64, |sum, at| Ok::<_, HeapError>(sum.wrapping_add(tx.read(block.at(at))?)));
                        match (sum, again) {
                            (Ok(sum), Ok(again)) => assert_eq!((sum, again), (0, 0)),
                            (Ok(sum), Err(HeapError::Conflict)) => assert_eq!(sum, 0),
                            (Err(HeapError::Conflict), Err(HeapError::Conflict)) => {
                                assert_eq!(doomed.fetch_add(1, Ordering::Relaxed) >> 32, 0)
                            }
                            other => panic!("{other:?}"),
                        }
                    }
                })
            })
            .collect();
        let seen: Vec<_> = readers.into_iter().map(|reader| reader.join()).collect();
        is_over.store(true, Ordering::Relaxed);
        seen.into_iter().for_each(|seen| seen.unwrap());
    });
    assert!(doomed.into_inner() > 0, "some have met a conflict");
}

/// Two words that are always equal, read one after the other while others change both.
#[test]
fn no_pair_is_ever_seen_in_half() {
    let heap = Heap::volatile(options());
    let block = heap.atomically(CommitMode::Async, |tx| tx.pmalloc(WORDS)).unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (is_over, heap) = (&is_over, &heap);
        scope.spawn(move || {
            let mut value = 0;
            while !is_over.load(Ordering::Relaxed) {
                value += 1;
                let pair = [block, block.at(WORDS - 1)];
                heap.atomically(CommitMode::Async, |tx| pair.iter().try_for_each(|&at| tx.write(at, value))).unwrap();
            }
        });
        let mut pairs = std::collections::BTreeSet::new();
        for _ in 0..100_000 {
            let mut tx = heap.begin();
            if let (Ok(one), Ok(other)) = (tx.read(block), tx.read(block.at(WORDS - 1))) {
                pairs.insert((one, other));
            }
        }
        is_over.store(true, Ordering::Relaxed);
        assert!(pairs.len() > 1 && pairs.iter().all(|(one, other)| one == other));
    });
}

/// A transaction reads and writes all words, while others change some all the time.
#[test]
fn a_long_transaction_gets_through() {
    const LONG: u64 = 4_000;
    let heap = Heap::volatile(options());
    let block = heap.atomically(CommitMode::Async, |tx| tx.pmalloc(LONG)).unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (is_over, heap) = (&is_over, &heap);
        for thread in 0..2 {
            scope.spawn(move || {
                let mut random = StdRng::seed_from_u64(thread);
                while !is_over.load(Ordering::Relaxed) {
                    let at = block.at(random.random_range(0..LONG));
                    heap.atomically(CommitMode::Async, |tx| {
                        let value = tx.read(at)?;
                        tx.write(at, value + 1)
                    })
                    .unwrap();
                }
            });
        }
        let done: Vec<_> = (0..20)
            .map(|_| {
                heap.atomically(CommitMode::Async, |tx| {
                    (0..LONG).try_for_each(|at| {
                        let value = tx.read(block.at(at))?;
                        tx.write(block.at(at), value)
                    })
                })
            })
            .collect();
        is_over.store(true, Ordering::Relaxed);
        assert!(done.into_iter().all(|done| done.is_ok()));
    });
}
