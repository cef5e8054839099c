//! A heap, every word of which can be checked after a crash: what transactions did, and what survivors must make of
//! it.
#![allow(dead_code, reason = "each test file uses its share")]

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use durability::{CommitMode, LogOptions, Lsn};
use heap::{CheckpointCopy, Heap, HeapError, HeapOptions, HeapRecovered, HeapRef, HeapResult, Transaction};
use parking_lot::Mutex;
use testkit::FaultyDevice;

/// Threads, log partitions.
pub const WORKERS: usize = 3;
/// One list for all, and one for the partition commits of each worker.
const LISTS: usize = 1 + WORKERS;
/// Words that transactions of a list change.
const SHARED: u64 = 24;
/// At most so many transactions.
const MARKS: u64 = 200;
const SHARED_AT: u64 = LISTS as u64;
const MARKS_AT: u64 = SHARED_AT + SHARED * LISTS as u64;
const GROUND_WORDS: u64 = MARKS_AT + MARKS;
/// Words of an entry of a list: value, next, and some that repeat the value.
const ENTRY_WORDS: u64 = 7;

/// Sizes that make segments, buffers and chunks change hands often.
pub fn options() -> HeapOptions {
    let log = LogOptions {
        partitions: WORKERS,
        segment_bytes: 4096,
        buffer_bytes: 2048,
        growth_bytes: 2048,
        spare_segments: 1,
        flush_interval: None,
    };
    HeapOptions { words: 1 << 12, chunk_words: 256, checkpoint_copy: copy(), checkpoint_interval: None, log }
}

thread_local! {
    static COPY: Cell<CheckpointCopy> = const { Cell::new(CheckpointCopy::Chunks) };
}

/// How heaps that this thread opens take their checkpoints.
fn copy() -> CheckpointCopy {
    COPY.get()
}

/// Has heaps that this thread opens from here on take their checkpoints so.
pub fn copy_by(copy: CheckpointCopy) {
    COPY.set(copy);
}

/// Opens the heap.
pub fn open(device: &FaultyDevice) -> HeapResult<(Heap, HeapRecovered)> {
    Heap::open(Arc::new(device.clone()), options())
}

/// A transaction's writes.
#[derive(Clone, Debug)]
struct Issued {
    mark: u64,
    mode: CommitMode,
    is_acked: bool,
    writes: Vec<(u64, u64)>,
    list: usize,
    /// The value pushed; `None`: the top was taken off, if there was one.
    pushed: Option<u64>,
}

/// All transactions by their LSNs, and what was acknowledged.
#[derive(Default)]
pub struct Ledger {
    issued: Mutex<BTreeMap<Lsn, Issued>>,
    marks: Mutex<u64>,
}

impl Ledger {
    /// Everything up to `lsn` was acknowledged.
    pub fn ack_up_to(&self, lsn: Lsn) {
        self.issued.lock().range_mut(..=lsn).for_each(|(_, issued)| issued.is_acked = true);
    }

    fn next_mark(&self) -> u64 {
        let mut marks = self.marks.lock();
        *marks += 1;
        assert!(*marks <= MARKS);
        *marks - 1
    }

    /// The ledger of a heap in which these have survived: they are acknowledged, as they were shown.
    pub fn after(&self, survivors: &BTreeSet<Lsn>) -> Ledger {
        let issued = self.issued.lock();
        let survived = issued.iter().filter(|(lsn, _)| survivors.contains(lsn));
        let issued = survived.map(|(&lsn, issued)| (lsn, Issued { is_acked: true, ..issued.clone() })).collect();
        Ledger { issued: Mutex::new(issued), marks: Mutex::new(*self.marks.lock()) }
    }

    /// Checks the heap against what was done. Returns the LSNs of those that survived.
    pub fn check(&self, heap: &Heap) -> BTreeSet<Lsn> {
        let issued = self.issued.lock();
        let mut tx = heap.begin();
        let ground = tx.root(0).unwrap();
        if ground.is_null() {
            assert!(issued.values().all(|issued| !issued.is_acked), "all is lost");
            return BTreeSet::new();
        }
        let survived =
            |tx: &mut Transaction<'_>, issued: &Issued| tx.read(ground.at(MARKS_AT + issued.mark)).unwrap() != 0;
        let mut survivors = BTreeSet::new();
        let mut gap = None;
        for (&lsn, issued) in issued.iter() {
            if survived(&mut tx, issued) {
                let may = gap.is_none() || issued.mode == CommitMode::Partition;
                assert!(may, "LSN {lsn}, {:?}, is beyond the gap at {gap:?}", issued.mode);
                survivors.insert(lsn);
            } else {
                assert!(!issued.is_acked, "LSN {lsn}, {:?}, was acknowledged and is lost", issued.mode);
                gap.get_or_insert(lsn);
            }
        }
        let (mut words, mut lists) = (vec![0; GROUND_WORDS as usize], vec![Vec::new(); LISTS]);
        for issued in survivors.iter().map(|lsn| &issued[lsn]) {
            words[(MARKS_AT + issued.mark) as usize] = mark_of(issued.mark);
            issued.writes.iter().for_each(|&(at, value)| words[at as usize] = value);
            match issued.pushed {
                Some(value) => lists[issued.list].push(value),
                None => drop(lists[issued.list].pop()),
            }
        }
        let mut found = vec![0; GROUND_WORDS as usize];
        tx.read_words(ground, &mut found).unwrap();
        assert_eq!(found[LISTS..], words[LISTS..], "the words are not what the survivors make of them");
        let found = check_lists(&mut tx, ground, &lists);
        check_room(&mut tx, &found);
        survivors
    }
}

/// The lists hold what they must. Returns the places of their entries.
fn check_lists(tx: &mut Transaction<'_>, ground: HeapRef, lists: &[Vec<u64>]) -> BTreeSet<HeapRef> {
    let mut places = BTreeSet::from([ground]);
    for (list, values) in lists.iter().enumerate() {
        let mut entry = tx.read_ref(ground.at(list as u64)).unwrap();
        for &value in values.iter().rev() {
            assert!(!entry.is_null() && places.insert(entry), "list {list}: {entry:?}");
            let mut words = [0; ENTRY_WORDS as usize];
            tx.read_words(entry, &mut words).unwrap();
            assert_eq!((words[0], words[ENTRY_WORDS as usize - 1]), (value, value), "list {list}");
            entry = HeapRef::from_word(words[1]);
        }
        assert!(entry.is_null(), "list {list} goes on");
    }
    places
}

/// Blocks that are allocated now are no part of what is in use.
fn check_room(tx: &mut Transaction<'_>, in_use: &BTreeSet<HeapRef>) {
    for _ in 0..in_use.len() + 9 {
        let place = tx.pmalloc(ENTRY_WORDS).unwrap();
        let before = in_use.range(..place.at(ENTRY_WORDS)).next_back();
        if let Some(&before) = before {
            let is_ground = before == *in_use.first().unwrap();
            let words = if is_ground { GROUND_WORDS } else { ENTRY_WORDS };
            assert!(before.at(words) <= place, "{place:?} is in use");
        }
    }
}

fn mark_of(mark: u64) -> u64 {
    mark << 8 | 0xA5
}

/// The block with the heads of the lists, the shared words and the marks.
#[derive(Clone, Copy)]
pub struct Ground {
    place: HeapRef,
}

impl Ground {
    /// The ground of a heap, which may have one.
    pub fn create(heap: &Heap) -> HeapResult<Ground> {
        let place = heap.begin().root(0)?;
        if !place.is_null() {
            return Ok(Ground { place });
        }
        let place = heap.atomically(CommitMode::Sync, |tx| {
            let place = tx.pmalloc(GROUND_WORDS)?;
            tx.set_root(0, place)?;
            Ok::<_, HeapError>(place)
        })?;
        Ok(Ground { place })
    }

    /// Runs the transaction of a seed for a worker, commits it and waits as the mode says.
    pub fn commit(&self, heap: &Heap, ledger: &Ledger, worker: usize, mode: CommitMode, seed: u64) -> HeapResult<()> {
        let mark = ledger.next_mark();
        let list = if mode == CommitMode::Partition { 1 + worker } else { 0 };
        let mix = (seed ^ mark << 24).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 16;
        let first = SHARED_AT + SHARED * list as u64;
        let writes: Vec<(u64, u64)> = (0..mix % 5).map(|at| (first + (mix >> (at * 5)) % SHARED, mix ^ at)).collect();
        let writes: Vec<(u64, u64)> = writes.into_iter().collect::<BTreeMap<_, _>>().into_iter().collect();
        let pushed = (!mix.is_multiple_of(3)).then_some(mix | 1);
        let (_, committed) = heap.atomically_split_phase(mode, |tx| {
            tx.write(self.place.at(MARKS_AT + mark), mark_of(mark))?;
            writes.iter().try_for_each(|&(at, value)| tx.write(self.place.at(at), value))?;
            self.change_list(tx, list, pushed)
        })?;
        let issued = Issued { mark, mode, is_acked: false, writes, list, pushed };
        assert!(ledger.issued.lock().insert(committed.lsn, issued).is_none(), "an LSN twice");
        heap.wait(&committed)?;
        match mode {
            CommitMode::Sync => ledger.ack_up_to(committed.lsn),
            CommitMode::Partition => ledger.issued.lock().get_mut(&committed.lsn).unwrap().is_acked = true,
            CommitMode::Async => {}
        }
        Ok(())
    }

    fn change_list(&self, tx: &mut Transaction<'_>, list: usize, pushed: Option<u64>) -> HeapResult<()> {
        let head = self.place.at(list as u64);
        let top = tx.read_ref(head)?;
        if let Some(value) = pushed {
            let entry = tx.pmalloc(ENTRY_WORDS)?;
            tx.write_words(entry, &[value, top.to_word(), 0, 0, 0, 0, value])?;
            return tx.write_ref(head, entry);
        }
        if !top.is_null() {
            let next = tx.read(top.at(1))?;
            tx.write(head, next)?;
            tx.pfree(top)?;
        }
        Ok(())
    }
}

type Job = Box<dyn FnOnce() + Send>;

/// Threads, each with a log partition of its own, that work when they are told.
pub struct Workers {
    jobs: Vec<Sender<Job>>,
    threads: Vec<JoinHandle<()>>,
}

impl Workers {
    /// Starts threads until each partition has one.
    pub fn start() -> Workers {
        let (mut jobs, mut threads) = (BTreeMap::new(), Vec::new());
        while jobs.len() < WORKERS {
            let ((sender, receiver), (slot_is, slot)): ((Sender<Job>, Receiver<Job>), _) = (channel(), channel());
            threads.push(std::thread::spawn(move || {
                slot_is.send(sync::thread_slot() % WORKERS).unwrap();
                receiver.into_iter().for_each(|job| job());
            }));
            jobs.insert(slot.recv().unwrap(), sender);
        }
        Workers { jobs: jobs.into_values().collect(), threads }
    }

    /// Runs something on a thread and waits for it.
    pub fn run<T: Send + 'static>(&self, worker: usize, job: impl FnOnce() -> T + Send + 'static) -> T {
        let (done, result) = channel();
        self.jobs[worker].send(Box::new(move || drop(done.send(job())))).expect("the worker is there");
        result.recv().expect("the worker has not panicked")
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.jobs.clear();
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}
