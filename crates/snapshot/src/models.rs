//! The protocol of writers and snapshots under loom and shuttle: the real gate and the real sharing of pages, with two words in
//! place of pages and a table in place of the mappings.
//!
//! A read of a snapshot goes through its table with a mutex held, as a read of memory goes through the page table, and a rewiring
//! waits for it, as the system waits for all processors to forget the old entry.
//!
//! Where memory stops writers by its protection, a word and the right to write it lie behind one mutex, as the processor looks at the
//! right and writes in one step. A writer that may not write does what the keeper would do for it, or tries again.
//!
//! `RUSTFLAGS="--cfg loom -C debug-assertions" cargo test -p lstore-snapshot --release --lib models`, or `--cfg shuttle`.
use std::io;
use std::sync::Arc;

#[cfg(loom)]
use loom::thread;
#[cfg(all(shuttle, not(loom)))]
use shuttle::thread;
use sync::atomic::{AtomicU64, Ordering};
use sync::blocking::Mutex;

use crate::gate::{Gate, Seat};
use crate::sharing::{Preserve, Sharing};

type Words = Arc<[AtomicU64; 2]>;

/// A snapshot: a copy of a page, or nothing where it is shared.
struct Table {
    live: Words,
    copies: Mutex<[Option<u64>; 2]>,
}

impl Preserve for Table {
    fn preserve(&self, page: usize) -> io::Result<()> {
        let value = self.live[page].load(Ordering::Relaxed);
        let before = self.copies.lock().unwrap()[page].replace(value);
        assert_eq!(before, None, "a page is copied once");
        Ok(())
    }
}

impl Table {
    fn read(&self, page: usize) -> u64 {
        let copies = self.copies.lock().unwrap();
        copies[page].unwrap_or_else(|| self.live[page].load(Ordering::Relaxed))
    }

    fn read_both(&self) -> [u64; 2] {
        [0, 1].map(|page| self.read(page))
    }
}

struct Model {
    gate: Gate,
    sharing: Sharing<Table>,
    live: Words,
}

impl Model {
    fn new() -> Arc<Model> {
        let live = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
        Arc::new(Model { gate: Gate::new(), sharing: Sharing::new(2), live })
    }

    /// Sets pages in one batch.
    fn set(&self, seat: &Seat, me: usize, updates: &[(usize, u64)]) {
        self.gate.enter(seat, me);
        for (page, value) in updates {
            if self.sharing.is_shared(*page) {
                self.sharing.preserve(*page, || Ok(())).unwrap();
            }
            self.live[*page].store(*value, Ordering::Relaxed);
        }
        self.gate.exit(seat);
    }

    fn begin(&self, me: usize) -> (u64, Arc<Table>) {
        let _closed = self.gate.close(me).unwrap();
        let table = Table { live: self.live.clone(), copies: Mutex::new([None, None]) };
        self.sharing.begin(|| Ok::<_, ()>(Arc::new(table))).unwrap()
    }
}

/// Runs `body` in all orders up to a bound on preemptions.
#[cfg(loom)]
fn explore(body: impl Fn() + Send + Sync + Copy + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.max_branches = 20_000;
    builder.check(body);
}

/// Runs `body` in many orders drawn by chance and by priorities.
#[cfg(all(shuttle, not(loom)))]
fn explore(body: impl Fn() + Send + Sync + Copy + 'static) {
    shuttle::check_random(body, 5_000);
    shuttle::check_pct(body, 5_000, 3);
}

fn spawn(model: &Arc<Model>, part: impl FnOnce(&Model) + Send + 'static) -> thread::JoinHandle<()> {
    let model = model.clone();
    thread::spawn(move || part(&model))
}

#[test]
fn a_snapshot_has_a_batch_as_a_whole_and_does_not_change() {
    explore(|| {
        let model = Model::new();
        let seat = model.gate.seat();
        let reader = spawn(&model, |model| {
            let (number, table) = model.begin(2);
            let seen = table.read_both();
            assert_eq!(seen[0], seen[1]);
            assert_eq!(table.read_both(), seen);
            model.sharing.end(number);
        });
        model.set(&seat, 1, &[(0, 1), (1, 1)]);
        model.set(&seat, 1, &[(0, 2), (1, 2)]);
        reader.join().unwrap();
        assert_eq!([0, 1].map(|page| model.live[page].load(Ordering::Relaxed)), [2, 2]);
    });
}

#[test]
fn writers_of_one_shared_page_copy_it_once_and_before_they_write() {
    explore(|| {
        let model = Model::new();
        let (first, second) = (model.gate.seat(), model.gate.seat());
        let (_, table) = model.begin(1);
        let other = spawn(&model, move |model| model.set(&second, 2, &[(0, 2)]));
        let reader = spawn(&model, move |_| {
            assert_eq!(table.read(0), 0);
            assert_eq!(table.read(0), 0);
        });
        model.set(&first, 1, &[(0, 1)]);
        other.join().unwrap();
        reader.join().unwrap();
    });
}

#[test]
fn the_end_of_a_snapshot_leaves_an_older_one_as_it_is() {
    explore(|| {
        let model = Model::new();
        let seat = model.gate.seat();
        let (_, old) = model.begin(1);
        model.set(&seat, 1, &[(0, 1)]);
        let (number, new) = model.begin(1);
        let reader = spawn(&model, move |model| {
            assert_eq!((old.read(0), new.read(0)), (0, 1));
            model.sharing.end(number);
            assert_eq!(old.read_both(), [0, 0]);
        });
        model.set(&seat, 1, &[(0, 2), (1, 2)]);
        reader.join().unwrap();
    });
}

#[test]
fn a_writer_that_comes_while_the_gate_is_closed_waits_for_it() {
    explore(|| {
        let model = Model::new();
        let writer = spawn(&model, |model| {
            let seat = model.gate.seat();
            model.set(&seat, 2, &[(0, 1), (1, 1)]);
            model.gate.leave(&seat);
        });
        let (_, table) = model.begin(1);
        let seen = table.read_both();
        assert_eq!(seen[0], seen[1]);
        writer.join().unwrap();
        assert_eq!(table.read_both(), seen);
    });
}

/// A word, and whether it may be written.
struct Guarded {
    value: u64,
    is_protected: bool,
}

/// Words whose single updates nobody announces, and the table of a snapshot that shares them.
struct Guard {
    sharing: Sharing<Rewired>,
    words: Arc<[Mutex<Guarded>; 2]>,
}

/// A snapshot of guarded words: copies, or nothing where they are shared.
struct Rewired {
    words: Arc<[Mutex<Guarded>; 2]>,
    copies: Mutex<[Option<u64>; 2]>,
}

impl Preserve for Rewired {
    fn preserve(&self, page: usize) -> io::Result<()> {
        let value = self.words[page].lock().unwrap().value;
        let before = self.copies.lock().unwrap()[page].replace(value);
        assert_eq!(before, None, "a page is copied once");
        Ok(())
    }
}

impl Rewired {
    fn read_both(&self) -> [u64; 2] {
        let copies = self.copies.lock().unwrap();
        [0, 1].map(|page| copies[page].unwrap_or_else(|| self.words[page].lock().unwrap().value))
    }
}

impl Guard {
    fn new() -> Arc<Guard> {
        let words = [0, 0].map(|value| Mutex::new(Guarded { value, is_protected: false }));
        Arc::new(Guard { sharing: Sharing::new(2), words: Arc::new(words) })
    }

    /// Writes a word where it may be written.
    fn try_set(&self, page: usize, value: u64) -> bool {
        let mut word = self.words[page].lock().unwrap();
        if !word.is_protected {
            word.value = value;
        }
        !word.is_protected
    }

    /// Writes a word; where it may not be written, keeps it first, as the keeper does.
    fn set(&self, page: usize, value: u64) {
        while !self.try_set(page, value) {
            self.sharing.preserve(page, || Ok(self.allow(page))).unwrap();
        }
    }

    fn get(&self, page: usize) -> u64 {
        self.words[page].lock().unwrap().value
    }

    fn allow(&self, page: usize) {
        self.words[page].lock().unwrap().is_protected = false;
    }

    fn protect_all(&self) {
        self.words.iter().for_each(|word| word.lock().unwrap().is_protected = true);
    }

    /// Begins a snapshot by protection, as [`crate::mechanism::protect`].
    fn begin(&self) -> Arc<Rewired> {
        let make = || {
            let table = Rewired { words: self.words.clone(), copies: Mutex::new([None, None]) };
            self.protect_all();
            Ok::<_, ()>(Arc::new(table))
        };
        self.sharing.begin(make).unwrap().1
    }

    /// Copies all words while they are protected, as [`crate::mechanism::physical`].
    fn copy(&self) -> [u64; 2] {
        self.protect_all();
        let copied = [0, 1].map(|page| self.get(page));
        [0, 1].into_iter().for_each(|page| self.allow(page));
        copied
    }
}

/// One thread writes the first word, another carries what it sees there on to the second one.
fn write_in_order(guard: &Arc<Guard>, set: fn(&Guard, usize, u64), [first, second]: [usize; 2]) {
    let guard = guard.clone();
    let follower = guard.clone();
    let follower = thread::spawn(move || {
        let seen = follower.get(first);
        set(&follower, second, seen);
    });
    set(&guard, first, 1);
    follower.join().unwrap();
    set(&guard, second, 2);
}

#[test]
fn a_snapshot_by_protection_has_what_came_before_an_update_that_it_has_and_does_not_change() {
    for order in [[0, 1], [1, 0]] {
        explore(move || {
            let guard = Guard::new();
            let reader = guard.clone();
            let reader = thread::spawn(move || {
                let table = reader.begin();
                let seen = table.read_both();
                assert!(seen[order[1]] == 0 || seen[order[0]] == 1, "{seen:?}");
                assert_eq!(table.read_both(), seen);
            });
            write_in_order(&guard, Guard::set, order);
            reader.join().unwrap();
            assert_eq!(order.map(|page| guard.get(page)), [1, 2]);
        });
    }
}

#[test]
fn a_copy_of_protected_memory_has_what_came_before_an_update_that_it_has() {
    for order in [[0, 1], [1, 0]] {
        explore(move || {
            let guard = Guard::new();
            let reader = guard.clone();
            let reader = thread::spawn(move || {
                let seen = reader.copy();
                assert!(seen[order[1]] == 0 || seen[order[0]] == 1, "{seen:?}");
            });
            // A writer that may not write sleeps until it may.
            let set = |guard: &Guard, page, value| {
                while !guard.try_set(page, value) {
                    thread::yield_now();
                }
            };
            write_in_order(&guard, set, order);
            reader.join().unwrap();
            assert_eq!(order.map(|page| guard.get(page)), [1, 2]);
        });
    }
}
