//! The steps of the storage that depend on the order of memory, under loom: every order of two or three threads (up
//! to a bound on preemptions), and every value that the memory model lets a load return. The runs of
//! `shuttle_models` are cut down here to the words that threads meet at; the code is the real one.
//!
//! `RUSTFLAGS="--cfg loom -C debug-assertions" cargo test -p lstore-lineage --release --lib loom_models`
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Mutex;

use loom::sync::Arc;
use loom::thread;
use sync::atomic::{AtomicU64, Ordering};
use sync::hint::SpinWait;
use sync::pin;
use types::{Column, DataType, Schema, Snapshot, StartTime, Timestamp, TxnId};

use crate::memory::budget::Meter;
use crate::page::sequence::SequenceBlocks;
use crate::page::tail::{NewRecord, TailPages};
use crate::record::range::LATCH;
use crate::record::view::{Resolved, Visibility, resolve_and_stamp};
use crate::record::write::IndirectionLatch;
use crate::value::cell::Cell;
use crate::value::column_set::ColumnSet;
use crate::value::kind::Kind;
use crate::{Outcome, Outcomes, TableOptions, View};

/// Checks `body` in every order with at most `preemptions` switches away from a thread that could go on.
fn model(preemptions: usize, body: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 20_000;
    builder.check(body);
}

/// One record's Indirection word and its tail.
struct Record {
    indirection: AtomicU64,
    tails: TailPages,
}

impl Record {
    /// With one version. Pages are of `page_records` versions.
    fn new(page_records: usize) -> Record {
        let schema = Schema::new(vec![Column::new("k", DataType::BigInt)], &["k"]).unwrap();
        let meter = Meter::new(Default::default());
        // A sixteenth of an update range is a page.
        let options = TableOptions { workers: 1, ..TableOptions::with_range(16 * page_records) };
        let tails = TailPages::new(&schema, &options, &meter);
        let record = Record { indirection: AtomicU64::new(0), tails };
        record.append();
        record
    }

    /// Appends a version with its number times three as value, as `Range::append` does.
    fn append(&self) {
        let guard = &pin();
        let latch = IndirectionLatch::acquire(&self.indirection);
        let number = self.tails.allocate(guard, 1, latch.sequence);
        let (prev, ever, values) = (latch.sequence, &ColumnSet::EMPTY, &[(0, Cell::Word(number * 3))]);
        let record =
            NewRecord { prev, slot: 7, kind: Kind::Update, start: number, reset: 0, ever, values, carried: None };
        self.tails.write(guard, number, &record);
        latch.publish(number);
    }

    /// The numbers of the versions, newest first.
    fn walk(&self) -> Vec<u64> {
        let guard = &pin();
        let mut number = self.indirection.load(Ordering::Acquire) & !LATCH;
        let mut walked = Vec::new();
        while number != 0 {
            let record = self.tails.get(guard, number).expect("what is published is there");
            assert_eq!((record.cell(0), record.slot()), (Cell::Word(number * 3), 7));
            assert_eq!(record.start().load(Ordering::Relaxed), number);
            walked.push(number);
            number = record.prev();
        }
        walked
    }
}

#[test]
fn a_version_is_published_whole_and_its_writers_take_turns() {
    model(3, || {
        let record = Arc::new(Record::new(4));
        let others = [(); 2].map(|()| {
            let record = record.clone();
            thread::spawn(move || record.append())
        });
        assert!([vec![1], vec![2, 1], vec![3, 2, 1]].contains(&record.walk()));
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_eq!(record.walk(), [3, 2, 1]);
    });
}

/// The promise of [`Table::newest_writer_latched`](crate::Table::newest_writer_latched): a transaction that
/// registers a share lock and then looks, and one that appends and then looks for share locks, do not miss each
/// other.
#[test]
fn a_share_lock_and_a_version_do_not_miss_each_other() {
    model(3, || {
        let shared = Arc::new((Record::new(4), AtomicU64::new(0)));
        let writer = {
            let shared = shared.clone();
            thread::spawn(move || {
                shared.0.append();
                shared.1.load(Ordering::Relaxed) == 1
            })
        };
        shared.1.store(1, Ordering::Relaxed);
        let newest = IndirectionLatch::acquire(&shared.0.indirection).sequence;
        let is_registration_found = writer.join().unwrap();
        assert!(is_registration_found || newest == 2);
    });
}

#[test]
fn every_number_is_used_or_buried_once() {
    model(3, || {
        let shared = Arc::new((SequenceBlocks::new(1), Mutex::new(BTreeSet::new())));
        let note = |seen: &Mutex<BTreeSet<u64>>, numbers: Range<u64>| {
            numbers.for_each(|number| assert!(seen.lock().unwrap().insert(number), "{number} came twice"));
        };
        let take = move |(blocks, seen): &(SequenceBlocks, Mutex<BTreeSet<u64>>), count| {
            let first = blocks.take(count, 0, |unused| note(seen, unused));
            note(seen, first..first + count);
        };
        // A block that is used up, so that the next one follows it.
        take(&shared, 16);
        let others = [1, 2].map(|count| {
            let shared = shared.clone();
            thread::spawn(move || take(&shared, count))
        });
        shared.0.seal(|unused| note(&shared.1, unused));
        others.into_iter().for_each(|other| other.join().unwrap());
        shared.0.seal(|unused| note(&shared.1, unused));
        let seen = shared.1.lock().unwrap();
        assert_eq!((seen.len() as u64, seen.last().copied()), (shared.0.allocated(), Some(shared.0.allocated())));
    });
}

const ACTIVE: u64 = 0;
const COMMITTING: u64 = 1;
const RELEASED: u64 = 2;
const COMMITTED: u64 = 4;

/// One transaction and its two versions, of which it takes the second one back.
struct Versions {
    clock: AtomicU64,
    state: AtomicU64,
    kept: AtomicU64,
    taken_back: AtomicU64,
}

impl Outcomes for Versions {
    fn outcome(&self, _: TxnId) -> Outcome {
        let mut wait = SpinWait::new();
        loop {
            match self.state.load(Ordering::Acquire) {
                ACTIVE => return Outcome::Active,
                COMMITTING => wait.pause(),
                RELEASED => return Outcome::Stamped,
                committed => return Outcome::Committed(Timestamp(committed - COMMITTED)),
            }
        }
    }

    fn speculate(&self, _: Snapshot, _: TxnId) -> bool {
        unreachable!("nothing is prepared")
    }

    fn await_decision(&self, _: TxnId) {}
}

impl Versions {
    fn new() -> Versions {
        let start = || AtomicU64::new(owner().word());
        Versions { clock: AtomicU64::new(0), state: AtomicU64::new(ACTIVE), kept: start(), taken_back: start() }
    }

    /// Takes one version back, commits and stamps the other.
    fn commit(&self) {
        let stamp = |start: &AtomicU64, stamp| {
            let _ = start.compare_exchange(owner().word(), stamp, Ordering::AcqRel, Ordering::Relaxed);
        };
        stamp(&self.taken_back, StartTime::TOMBSTONE);
        self.state.store(COMMITTING, Ordering::Release);
        let at = self.clock.fetch_add(1, Ordering::AcqRel) + 1;
        self.state.store(COMMITTED + at, Ordering::Release);
        stamp(&self.kept, at);
        self.state.store(RELEASED, Ordering::Release);
    }
}

fn owner() -> TxnId {
    TxnId::new(9)
}

#[test]
fn a_snapshot_sees_a_commit_at_or_before_it_and_no_other() {
    model(3, || {
        let versions = Arc::new(Versions::new());
        let writer = {
            let versions = versions.clone();
            thread::spawn(move || versions.commit())
        };
        let at = Timestamp(versions.clock.load(Ordering::Acquire));
        let view = View { snapshot: Snapshot::at(at), outcomes: &*versions };
        let expected = if at.0 >= 1 { Visibility::Visible } else { Visibility::Invisible };
        assert_eq!(view.visibility(&versions.kept), expected);
        assert_ne!(view.visibility(&versions.taken_back), Visibility::Visible);
        writer.join().unwrap();
    });
}

#[test]
fn a_merge_stamps_what_the_owner_stamps() {
    model(3, || {
        let versions = Arc::new(Versions::new());
        let writer = {
            let versions = versions.clone();
            thread::spawn(move || versions.commit())
        };
        let kept = resolve_and_stamp(&versions.kept, &*versions);
        let taken_back = resolve_and_stamp(&versions.taken_back, &*versions);
        assert!([Resolved::Active(owner()), Resolved::Committed(Timestamp(1))].contains(&kept), "{kept:?}");
        assert!([Resolved::Active(owner()), Resolved::Tombstone].contains(&taken_back), "{taken_back:?}");
        writer.join().unwrap();
        let words = [&versions.kept, &versions.taken_back].map(|start| start.load(Ordering::Relaxed));
        assert_eq!(words, [1, StartTime::TOMBSTONE]);
    });
}

#[test]
fn what_a_merge_takes_for_committed_is_stamped() {
    model(3, || {
        let versions = Arc::new(Versions { kept: AtomicU64::new(0), ..Versions::new() });
        let writer = {
            let versions = versions.clone();
            thread::spawn(move || {
                versions.kept.store(owner().word(), Ordering::Release);
                versions.commit();
            })
        };
        let kept = resolve_and_stamp(&versions.kept, &*versions);
        let is_known =
            [Resolved::Unwritten, Resolved::Active(owner()), Resolved::Committed(Timestamp(1))].contains(&kept);
        assert!(is_known, "{kept:?}");
        // History takes what is not stamped for rolled back.
        if kept == Resolved::Committed(Timestamp(1)) {
            assert_eq!(versions.kept.load(Ordering::Relaxed), 1);
        }
        writer.join().unwrap();
    });
}
