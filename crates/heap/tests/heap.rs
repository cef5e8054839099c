//! The heap as its user sees it: what is written is read, here and after it was opened again, and nothing else.

use std::collections::BTreeMap;
use std::sync::Arc;

use durability::{CommitMode, LogOptions};
use heap::{CheckpointCopy, HashTable, Heap, HeapError, HeapOptions, HeapRef, HeapResult, Transaction};
use proptest::prelude::*;
use testkit::FaultyDevice;

/// Small in every way, so that chunks, segments and blocks come to their ends.
fn small() -> HeapOptions {
    let log = LogOptions {
        partitions: 2,
        segment_bytes: 8192,
        buffer_bytes: 4096,
        growth_bytes: 2048,
        spare_segments: 1,
        flush_interval: None,
    };
    HeapOptions { words: 1 << 16, chunk_words: 64, checkpoint_interval: None, log, ..HeapOptions::default() }
}

fn open(device: &FaultyDevice) -> Heap {
    Heap::open(Arc::new(device.clone()), small()).unwrap().0
}

#[test]
fn a_transaction_sees_its_own_writes_and_nobody_else_does_before_the_commit() {
    let heap = Heap::volatile(small());
    let place = heap.atomically(CommitMode::Async, |tx| tx.pmalloc(3)).unwrap();
    let mut writer = heap.begin();
    for value in 1..20 {
        for offset in 0..3 {
            writer.write(place.at(offset), value).unwrap();
        }
    }
    assert_eq!(writer.read(place.at(2)).unwrap(), 19);
    let mut reader = heap.begin();
    assert_eq!(reader.read(place).unwrap(), 0);
    let committed = writer.commit(CommitMode::Sync).unwrap();
    assert_eq!((committed.lsn, heap.last_lsn(), committed.has_written()), (2, 2, true));
    let mut words = [0; 3];
    heap.begin().read_words(place, &mut words).unwrap();
    assert_eq!(words, [19; 3]);
    // The reader has a snapshot from before, and goes on with it or not at all.
    assert!(matches!(reader.read(place.at(1)), Err(HeapError::Conflict)));
    assert!(matches!(reader.read(place), Err(HeapError::Conflict)), "and so it stays");
    assert!(matches!(reader.commit(CommitMode::Async), Err(HeapError::Conflict)));
}

#[test]
fn a_snapshot_moves_on_where_nothing_read_has_changed() {
    let heap = Heap::volatile(small());
    let place = heap.atomically(CommitMode::Async, |tx| tx.pmalloc(64)).unwrap();
    let mut reader = heap.begin();
    assert_eq!(reader.read(place).unwrap(), 0);
    heap.atomically(CommitMode::Async, |tx| tx.write(place.at(32), 5)).unwrap();
    assert_eq!(reader.read(place.at(32)).unwrap(), 5);
    assert_eq!(reader.commit(CommitMode::Sync).unwrap().lsn, 2);
}

#[test]
fn what_was_aborted_has_not_happened() {
    let device = FaultyDevice::new(0);
    let heap = open(&device);
    let place = heap.atomically(CommitMode::Sync, |tx| tx.pmalloc(1)).unwrap();
    let mut transaction = heap.begin();
    transaction.write(place, 7).unwrap();
    let lost = transaction.pmalloc(1).unwrap();
    transaction.pfree(place).unwrap();
    transaction.abort();
    let failed: HeapResult<()> = heap.atomically(CommitMode::Sync, |tx| {
        tx.write(place, 8)?;
        Err(HeapError::NotABlock { at: 1 })
    });
    assert!(matches!(failed, Err(HeapError::NotABlock { at: 1 })));
    assert_eq!(heap.begin().read(place).unwrap(), 0);
    assert_eq!(heap.last_lsn(), 1, "no number was taken");
    let again = heap.atomically(CommitMode::Sync, |tx| tx.pmalloc(1)).unwrap();
    assert_eq!(again, lost, "its block is the heap's again");
    heap.close().unwrap();
    let heap = open(&device);
    assert_eq!(heap.begin().read(place).unwrap(), 0);
}

#[test]
fn wrong_calls_are_told_so() {
    let heap = Heap::volatile(HeapOptions { words: 4096, ..small() });
    let (place, gone) =
        heap.atomically(CommitMode::Async, |tx| Ok::<_, HeapError>((tx.pmalloc(9)?, tx.pmalloc(9)?))).unwrap();
    heap.atomically(CommitMode::Async, |tx| tx.pfree(gone)).unwrap();
    let mut tx = heap.begin();
    for wrong in [HeapRef::NULL, HeapRef::from_word(4096), HeapRef::from_word(u64::MAX)] {
        assert!(matches!(tx.read(wrong), Err(HeapError::OutOfBounds { .. })), "{wrong:?}");
        assert!(matches!(tx.write(wrong, 1), Err(HeapError::OutOfBounds { .. })), "{wrong:?}");
    }
    for wrong in [HeapRef::NULL, HeapRef::from_word(5), place.at(1), gone, place.at(3000)] {
        assert!(matches!(tx.pfree(wrong), Err(HeapError::NotABlock { .. })), "{wrong:?}");
    }
    tx.pfree(place).unwrap();
    assert!(matches!(tx.pfree(place), Err(HeapError::NotABlock { .. })), "twice in one transaction");
    assert!(matches!(tx.pmalloc(5000), Err(HeapError::OutOfSpace { words: 5000, size_words: 4096 })));
    assert!(matches!(tx.pmalloc(u64::MAX), Err(HeapError::OutOfSpace { .. })));
    tx.abort();
    let heap = Heap::volatile(small());
    let mut tx = heap.begin();
    tx.write(HeapRef::from_word(30_000), 1).unwrap();
    let error = tx.commit(CommitMode::Async).unwrap_err();
    assert!(matches!(error, HeapError::OutOfBounds { at: 30_000, .. }), "{error}");
}

#[test]
fn a_block_is_zero_also_where_it_was_used_before() {
    let device = FaultyDevice::new(0);
    let heap = open(&device);
    let first = heap.atomically(CommitMode::Sync, |tx| {
        let place = tx.pmalloc(5)?;
        tx.write_words(place, &[1, 2, 3, 4, 5])?;
        HeapResult::Ok(place)
    });
    let first = first.unwrap();
    heap.atomically(CommitMode::Async, |tx| tx.pfree(first)).unwrap();
    let other = heap.atomically(CommitMode::Async, |tx| tx.pmalloc(5)).unwrap();
    assert_ne!(other, first, "its freeing is not stable yet");
    heap.is_stable(heap.last_lsn(), true).unwrap();
    let mut tx = heap.begin();
    assert_eq!(tx.pmalloc(5).unwrap(), first);
    let mut words = [9; 5];
    tx.read_words(first, &mut words).unwrap();
    assert_eq!(words, [0; 5]);
    tx.commit(CommitMode::Sync).unwrap();
    heap.begin().read_words(first, &mut words).unwrap();
    assert_eq!(words, [0; 5]);
}

#[test]
fn a_full_heap_waits_for_what_was_freed() {
    let device = FaultyDevice::new(0);
    let options = HeapOptions { words: 2048, ..small() };
    let (heap, _) = Heap::open(Arc::new(device), options).unwrap();
    let mut places = Vec::new();
    let error = loop {
        match heap.atomically(CommitMode::Async, |tx| tx.pmalloc(99)) {
            Ok(place) => places.push(place),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, HeapError::OutOfSpace { words: 99, size_words: 2048 }), "{error}");
    assert!(places.len() >= 17, "{} blocks", places.len());
    heap.atomically(CommitMode::Async, |tx| tx.pfree(places[3])).unwrap();
    assert!(!heap.is_stable(heap.last_lsn(), false).unwrap());
    assert_eq!(heap.atomically(CommitMode::Async, |tx| tx.pmalloc(99)).unwrap(), places[3]);
}

#[test]
fn a_heap_of_another_size_opens_if_its_words_fit() {
    let device = FaultyDevice::new(0);
    let heap = open(&device);
    let place = heap.atomically(CommitMode::Sync, |tx| tx.pmalloc(30_000)).unwrap();
    heap.atomically(CommitMode::Sync, |tx| tx.write(place.at(29_999), 4)).unwrap();
    heap.close().unwrap();
    let sized = |words| HeapOptions { words, chunk_words: 100, ..small() };
    let refused = |words| Heap::open(Arc::new(device.clone()), sized(words)).map(drop);
    assert!(matches!(refused(20_000), Err(HeapError::TooSmall { size_words: 20_000, .. })));
    let (heap, _) = Heap::open(Arc::new(device.clone()), sized(1 << 17)).unwrap();
    assert_eq!(heap.begin().read(place.at(29_999)).unwrap(), 4);
    heap.checkpoint().unwrap().unwrap();
    heap.close().unwrap();
    assert!(matches!(refused(20_000), Err(HeapError::TooSmall { size_words: 20_000, .. })));
    assert_eq!(open(&device).begin().read(place.at(29_999)).unwrap(), 4);
}

#[test]
fn two_heaps_cannot_have_one_directory() {
    let device = FaultyDevice::new(0);
    let _heap = open(&device);
    let error = Heap::open(Arc::new(device), small()).unwrap_err();
    assert!(error.to_string().contains("in use"), "{error}");
}

/// Checkpoints in turn, beside commits; the log that they make needless goes, and each opening gives the same words.
#[test]
fn the_log_is_given_up_before_the_older_of_two_checkpoints() {
    let device = FaultyDevice::new(0);
    let heap = open(&device);
    let place = heap.atomically(CommitMode::Sync, |tx| tx.pmalloc(4096)).unwrap();
    let (mut expected, mut trimmed) = (vec![0; 4096], 0);
    for turn in 1..=40_u64 {
        for step in 0..20 {
            let at = (turn * 37 + step * 211) % 4096;
            heap.atomically(CommitMode::Async, |tx| tx.write(place.at(at), turn << 8 | step)).unwrap();
            expected[at as usize] = turn << 8 | step;
        }
        let checkpoint = heap.checkpoint().unwrap().unwrap();
        assert_eq!((checkpoint.number, checkpoint.last), (turn, heap.last_lsn()));
        assert!(heap.is_stable(checkpoint.last, false).unwrap(), "write-ahead");
        trimmed += checkpoint.trimmed_segments;
    }
    assert!(trimmed > 3, "{trimmed} segments");
    assert!(heap.stats().log.segments < 6);
    heap.close().unwrap();
    let (heap, recovered) = Heap::open(Arc::new(device), small()).unwrap();
    assert_eq!(recovered.checkpoint, 40);
    assert!(recovered.log.trimmed_below > 700 && recovered.damaged.is_empty());
    let mut words = vec![0; 4096];
    heap.begin().read_words(place, &mut words).unwrap();
    assert_eq!(words, expected);
}

#[test]
fn checkpoints_are_taken_from_time_to_time() {
    let device = FaultyDevice::new(0);
    let options = HeapOptions { checkpoint_interval: Some(std::time::Duration::from_millis(1)), ..small() };
    let (heap, _) = Heap::open(Arc::new(device.clone()), options).unwrap();
    let place = heap.atomically(CommitMode::Sync, |tx| tx.pmalloc(1)).unwrap();
    while heap.stats().checkpoints < 3 {
        heap.atomically(CommitMode::Sync, |tx| tx.write(place, 3)).unwrap();
    }
    heap.close().unwrap();
    let (heap, recovered) = Heap::open(Arc::new(device), small()).unwrap();
    assert!(recovered.checkpoint >= 3);
    assert_eq!(heap.begin().read(place).unwrap(), 3);
}

#[derive(Clone, Debug)]
enum Step {
    Allocate(u64),
    Free(usize),
    Write(usize, u64, u64),
}

#[derive(Clone, Debug)]
enum Turn {
    Transaction(Vec<Step>, CommitMode, bool),
    Checkpoint,
    Reopen,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (1_u64..40).prop_map(Step::Allocate),
        any::<usize>().prop_map(Step::Free),
        (any::<usize>(), any::<u64>(), any::<u64>()).prop_map(|(block, at, value)| Step::Write(block, at, value)),
    ]
}

fn turn() -> impl Strategy<Value = Turn> {
    let mode = prop_oneof![Just(CommitMode::Sync), Just(CommitMode::Async), Just(CommitMode::Partition)];
    prop_oneof![
        8 => (prop::collection::vec(step(), 0..30), mode, prop::bool::weighted(0.8))
            .prop_map(|(steps, mode, commits)| Turn::Transaction(steps, mode, commits)),
        1 => Just(Turn::Checkpoint),
        1 => Just(Turn::Reopen),
    ]
}

/// Blocks in use, each with its words.
type Model = BTreeMap<HeapRef, Vec<u64>>;

fn take_step(tx: &mut Transaction<'_>, model: &mut Model, step: &Step) {
    let nth = |model: &Model, number: usize| model.keys().nth(number % model.len().max(1)).copied();
    match *step {
        Step::Allocate(words) => {
            let place = tx.pmalloc(words).unwrap();
            let overlaps =
                |(&other, held): (&HeapRef, &Vec<u64>)| other < place.at(words) && place < other.at(held.len() as u64);
            assert!(!model.iter().any(overlaps), "{place:?} is in use");
            model.insert(place, vec![0; words as usize]);
        }
        Step::Free(number) => {
            if let Some(place) = nth(model, number) {
                tx.pfree(place).unwrap();
                model.remove(&place);
            }
        }
        Step::Write(number, at, value) => {
            if let Some(place) = nth(model, number) {
                let words = model.get_mut(&place).unwrap();
                let at = at % words.len() as u64;
                tx.write(place.at(at), value).unwrap();
                words[at as usize] = value;
            }
        }
    }
}

fn check(heap: &Heap, model: &Model) {
    let mut tx = heap.begin();
    for (&place, words) in model {
        let mut found = vec![0; words.len()];
        tx.read_words(place, &mut found).unwrap();
        assert_eq!(&found, words, "{place:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Transactions of one thread, checkpoints and openings in any order, against blocks in a map.
    #[test]
    fn a_heap_is_a_map_of_blocks(turns in prop::collection::vec(turn(), 1..40)) {
        let device = FaultyDevice::new(1);
        let (mut heap, mut model) = (open(&device), Model::new());
        for turn in turns {
            match turn {
                Turn::Transaction(steps, mode, commits) => {
                    let (mut tx, mut after) = (heap.begin(), model.clone());
                    steps.iter().for_each(|step| take_step(&mut tx, &mut after, step));
                    if commits {
                        tx.commit(mode).unwrap();
                        model = after;
                    }
                }
                Turn::Checkpoint => drop(heap.checkpoint().unwrap()),
                Turn::Reopen => {
                    heap.close().unwrap();
                    heap = open(&device);
                }
            }
            check(&heap, &model);
        }
    }

    /// The hash table against a map, in transactions of several operations, some of which are aborted.
    #[test]
    fn a_hash_table_is_a_map(
        transactions in prop::collection::vec(
            (prop::collection::vec((0_u64..60, prop::option::of(any::<u64>())), 1..30), any::<bool>()),
            1..20,
        ),
    ) {
        let heap = Heap::volatile(small());
        let table = heap.atomically(CommitMode::Async, |tx| HashTable::create(tx, 1)).unwrap();
        prop_assert_eq!(HashTable::at(table.place()), table);
        let mut model = BTreeMap::new();
        for (operations, commits) in transactions {
            let (mut tx, mut after) = (heap.begin(), model.clone());
            for (key, value) in operations {
                prop_assert_eq!(table.get(&mut tx, key).unwrap(), after.get(&key).copied());
                let (before, expected) = match value {
                    Some(value) => (table.insert(&mut tx, key, value), after.insert(key, value)),
                    None => (table.remove(&mut tx, key), after.remove(&key)),
                };
                prop_assert_eq!(before.unwrap(), expected);
                prop_assert_eq!(table.len(&mut tx).unwrap(), after.len() as u64);
                prop_assert_eq!(table.is_empty(&mut tx).unwrap(), after.is_empty());
            }
            if commits {
                tx.commit(CommitMode::Async).unwrap();
                model = after;
            }
            let mut entries = table.entries(&mut heap.begin()).unwrap();
            entries.sort_unstable();
            prop_assert!(entries.into_iter().eq(model.clone()));
        }
    }
}

/// Threads count while the checkpoint is taken; the log goes on from exactly its LSN.
#[test]
fn a_checkpoint_beside_commits_has_each_of_them_or_leaves_it_to_the_log() {
    for round in 0..12 {
        let copy = [CheckpointCopy::Chunks, CheckpointCopy::Snapshot][round % 2];
        let options = || HeapOptions { checkpoint_copy: copy, ..small() };
        let device = FaultyDevice::new(round as u64);
        let (heap, _) = Heap::open(Arc::new(device.clone()), options()).unwrap();
        let counters = heap.atomically(CommitMode::Sync, |tx| tx.pmalloc(64)).unwrap();
        let is_over = std::sync::atomic::AtomicBool::new(false);
        let counted: u64 = std::thread::scope(|scope| {
            let count = |thread: u64| {
                let mut counted = 0;
                while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                    let at = counters.at(thread * 16 + counted % 16);
                    let add = heap.atomically(CommitMode::Async, |tx| {
                        let before = tx.read(at)?;
                        tx.write(at, before + 1)
                    });
                    add.unwrap();
                    counted += 1;
                }
                counted
            };
            let threads: Vec<_> = (0..3).map(|thread| scope.spawn(move || count(thread))).collect();
            std::thread::sleep(std::time::Duration::from_millis(5));
            (0..4).for_each(|_| assert!(heap.checkpoint().unwrap().is_some()));
            std::thread::sleep(std::time::Duration::from_millis(2));
            is_over.store(true, std::sync::atomic::Ordering::Relaxed);
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        heap.close().unwrap();
        let (heap, _) = Heap::open(Arc::new(device), options()).unwrap();
        let mut found = vec![0; 64];
        heap.begin().read_words(counters, &mut found).unwrap();
        assert_eq!(found.iter().sum::<u64>(), counted, "round {round}, {copy:?}");
    }
}
