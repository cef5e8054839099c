//! The numbers and pages of a tail: what is handed out is used or buried once, pages grow and go under readers.
use std::collections::BTreeSet;

use sync::{EpochCell, pin};

use crate::memory::budget::Meter;
use crate::page::sequence::SequenceBlocks;
use crate::page::tail::{NewRecord, TailPages};
use crate::tests::shuttle_models::*;
use crate::value::column_set::ColumnSet;
use crate::value::kind::Kind;

#[test]
fn every_number_is_used_or_buried_once() {
    explore(|| {
        let shared = Arc::new((SequenceBlocks::new(1), Mutex::new(BTreeSet::new())));
        let note = |seen: &Mutex<BTreeSet<u64>>, numbers: std::ops::Range<u64>| {
            numbers.for_each(|number| assert!(seen.lock().unwrap().insert(number), "{number} came twice"));
        };
        let threads: Vec<_> = (1..=3u64)
            .map(|thread| {
                let shared = shared.clone();
                shuttle::thread::spawn(move || {
                    let (blocks, seen) = &*shared;
                    for count in [thread, 2 * thread, 17 - thread] {
                        let above = blocks.allocated() / 2;
                        let first = blocks.take(count, above, |unused| note(seen, unused));
                        assert!(first > above);
                        note(seen, first..first + count);
                    }
                    blocks.seal(|unused| note(seen, unused));
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        let (blocks, seen) = &*shared;
        blocks.seal(|unused| note(seen, unused));
        let seen = seen.lock().unwrap();
        assert_eq!((seen.len() as u64, seen.last().copied()), (blocks.allocated(), Some(blocks.allocated())));
    });
}

/// Two writers of one word that leads to the newest record, and a thread that turns the oldest ones into history:
/// the cell holds how far that has come.
struct Tail {
    pages: TailPages,
    newest: sync::blocking::Mutex<u64>,
    head: AtomicU64,
    history: EpochCell<u64>,
}

impl Tail {
    fn new() -> Tail {
        Tail::with_workers(2)
    }

    fn with_workers(workers: usize) -> Tail {
        let columns = vec![Column::new("k", DataType::BigInt)];
        let schema = Schema::new(columns, &["k"]).unwrap();
        let meter = Meter::new(Arc::default());
        // Pages of two records.
        let options = TableOptions { workers, ..TableOptions::with_range(32) };
        Tail {
            pages: TailPages::new(&schema, &options, &meter),
            newest: sync::blocking::Mutex::new(0),
            head: AtomicU64::new(0),
            history: EpochCell::new(0),
        }
    }

    /// Appends a record with its number times three as value.
    fn append(&self) {
        let guard = &pin();
        let mut newest = self.newest.lock().unwrap();
        let number = self.pages.allocate(guard, 1, *newest);
        let values = [(0, Cell::Word(number * 3))];
        let (prev, ever) = (*newest, &ColumnSet::EMPTY);
        let record =
            NewRecord { prev, slot: 7, kind: Kind::Update, start: 1, reset: 0, ever, values: &values, carried: None };
        self.pages.write(guard, number, &record);
        *newest = number;
        self.head.store(number, Ordering::Release);
    }

    /// Walks from the newest record down to history.
    fn walk(&self) -> usize {
        let guard = &pin();
        let mut number = self.head.load(Ordering::Acquire);
        let mut steps = 0;
        while number != 0 {
            let Some(record) = self.pages.get(guard, number) else {
                assert!(*self.history.load(guard) >= number, "{number} is in neither place");
                break;
            };
            assert_eq!((record.cell(0), record.slot()), (Cell::Word(number * 3), 7));
            assert!(record.prev() < number);
            (number, steps) = (record.prev(), steps + 1);
        }
        steps
    }

    /// Visits the records above what is history now, newest first.
    fn visit(&self) {
        let guard = &pin();
        let after = *self.history.load(guard);
        let head = self.head.load(Ordering::Acquire);
        let mut visited = BTreeSet::new();
        let mut last = u64::MAX;
        let visit = self.pages.each_newest_first(guard, after, |record| {
            assert!(record.sequence < last && record.sequence > after);
            last = record.sequence;
            if record.start().load(Ordering::Acquire) == 1 {
                assert_eq!(record.cell(0), Cell::Word(record.sequence * 3));
                visited.insert(record.sequence);
            }
        });
        match visit {
            Ok(()) => assert!(head <= after || visited.contains(&head), "{head} was there before"),
            Err(_) => {
                assert!(visited.is_empty(), "nothing was visited");
                assert!(*self.history.load(guard) > after, "the tail has become history meanwhile");
            }
        }
    }

    /// Makes whole pages history, as far as all numbers are used or buried.
    fn archive(&self) {
        let guard = &pin();
        self.pages.seal(guard);
        let is_known =
            |number| self.pages.get(guard, number).is_some_and(|record| record.start().load(Ordering::Acquire) != 0);
        let mut end = *self.history.load(guard);
        while is_known(end + 1) {
            end += 1;
        }
        let through = end / 2 * 2;
        self.history.replace(through, guard);
        self.pages.give_up(guard, through);
    }
}

#[test]
fn pages_grow_and_go_under_readers() {
    let run = |parts: [fn(&Tail); 3]| {
        let tail = Arc::new(Tail::new());
        let threads = parts.map(|part| {
            let tail = tail.clone();
            shuttle::thread::spawn(move || part(&tail))
        });
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert!(tail.walk() <= 8);
        tail.visit();
    };
    let appends = |tail: &Tail| (0..4).for_each(|_| tail.append());
    let appends_and_archives = |tail: &Tail| {
        for _ in 0..2 {
            tail.append();
            tail.archive();
        }
    };
    let reads = |tail: &Tail| {
        for _ in 0..2 {
            assert!(tail.walk() <= 8);
            tail.visit();
        }
    };
    explore(move || run([appends, appends_and_archives, reads]));
}

/// A page is made by one of the writers that need it first. The others find their records in it again as soon as they have
/// written them, for the outcome of their transactions.
#[test]
fn writers_find_their_records_in_a_page_that_another_is_making() {
    explore(|| {
        let tail = Arc::new(Tail::with_workers(1));
        let threads = [(); 3].map(|()| {
            let tail = tail.clone();
            shuttle::thread::spawn(move || {
                let guard = &pin();
                let number = tail.pages.allocate(guard, 1, 0);
                let (values, ever) = ([(0, Cell::Word(number * 3))], &ColumnSet::EMPTY);
                let (prev, slot, kind, start, values) = (0, 7, Kind::Update, 1 << 63, values.as_slice());
                let record = NewRecord { prev, slot, kind, start, reset: 0, ever, values, carried: None };
                tail.pages.write(guard, number, &record);
                let place = tail.pages.place_of(guard, number).expect("it was written");
                place.start().store(2, Ordering::Release);
                let record = tail.pages.get(guard, number).expect("it was written");
                assert_eq!((record.start().load(Ordering::Acquire), record.cell(0)), (2, Cell::Word(number * 3)));
            })
        });
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

impl Tail {
    /// Appends a record as of a transaction that runs, and then decides it: every third is taken back.
    fn append_undecided(&self) {
        let guard = &pin();
        let mut newest = self.newest.lock().unwrap();
        let number = self.pages.allocate(guard, 1, *newest);
        let (values, ever) = ([(0, Cell::Word(number * 3))], &ColumnSet::EMPTY);
        let (prev, slot, kind, start, values) = (*newest, number as usize, Kind::Update, 1 << 63, values.as_slice());
        let record = NewRecord { prev, slot, kind, start, reset: 0, ever, values, carried: None };
        self.pages.write(guard, number, &record);
        let outcome = if number % 3 == 0 { StartTime::TOMBSTONE } else { 1 };
        self.pages.place_of(guard, number).expect("it was written").start().store(outcome, Ordering::Release);
        *newest = number;
        self.head.store(number, Ordering::Release);
    }

    /// Visits all pages as scans do, those that have digests by these. What was committed before the visit is met, what was
    /// taken back is not.
    fn visit_digests(&self) {
        let guard = &pin();
        let head = self.head.load(Ordering::Acquire);
        let mut met = BTreeSet::new();
        let visited =
            self.pages.each_part_newest_first(guard, 0, &[0], |part| match part.digest(Timestamp(1), 0, &[0]) {
                Some(versions) => versions.versions().for_each(|(slot, row)| {
                    let cell = row.expect("nothing was deleted").explicit(0);
                    assert_eq!(cell, Some(Cell::Word(slot as u64 * 3)));
                    met.insert(slot as u64);
                }),
                None => part.records().for_each(|record| {
                    if record.start().load(Ordering::Acquire) == 1 {
                        assert_eq!(record.cell(0), Cell::Word(record.sequence * 3));
                        met.insert(record.sequence);
                    }
                }),
            });
        visited.expect("nothing becomes history");
        assert!((1..=head).all(|number| met.contains(&number) != (number % 3 == 0)), "{met:?} of {head}");
    }
}

#[test]
fn a_digest_has_what_was_committed_and_is_drawn_up_when_all_is_decided() {
    explore(|| {
        let tail = Arc::new(Tail::with_workers(1));
        let writes: fn(&Tail) = |tail| (0..4).for_each(|_| tail.append_undecided());
        let reads: fn(&Tail) = |tail| (0..3).for_each(|_| tail.visit_digests());
        let threads = [writes, reads, reads].map(|part| {
            let tail = tail.clone();
            shuttle::thread::spawn(move || part(&tail))
        });
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        tail.visit_digests();
    });
}
