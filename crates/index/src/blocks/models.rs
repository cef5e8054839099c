//! Blocks under shuttle: readers, a new image that takes the place of what there was, blocks that leave, and entries that come.
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::ops::RangeBounds;

use sync::blocking::{Mutex, MutexGuard};

use super::{BlockList, Residence};
use crate::explore::{explore, together};

type Run = Vec<u32>;

/// An index of numbers. Loading a run takes each of its entries out for a moment, as one does that orders the records of a key.
struct Model {
    residence: Residence<u32, Run, ()>,
    memory: Mutex<BTreeSet<u32>>,
}

impl Model {
    /// An index that is whole.
    fn new(entries: impl IntoIterator<Item = u32>) -> Model {
        Model { residence: Residence::whole(), memory: Mutex::new(entries.into_iter().collect()) }
    }

    fn memory(&self) -> MutexGuard<'_, BTreeSet<u32>> {
        self.memory.lock().unwrap()
    }

    fn load(&self, run: &Run) -> Result<bool, Infallible> {
        for entry in run {
            self.memory().remove(entry);
            self.memory().insert(*entry);
        }
        Ok(true)
    }

    /// Has `look` look at the entries in memory while the block of one is held; `None` if another list has come.
    fn with_block<R>(&self, list: &BlockList<u32, Run, ()>, block: usize, look: impl FnOnce() -> R) -> Option<R> {
        let held = list.hold(block, |run| self.load(run)).unwrap()?;
        let result = look();
        drop(held);
        Some(result)
    }

    fn has(&self, entry: u32) -> bool {
        let guard = sync::pin();
        loop {
            let look = || self.memory().contains(&entry);
            let found = match self.residence.blocks(&guard) {
                None => Some(look()),
                Some(list) => self.with_block(list, list.of_entry(&entry, true), look),
            };
            match found {
                Some(found) => return found,
                None => sync::thread::yield_now(),
            }
        }
    }

    fn enter(&self, entry: u32) {
        self.memory().insert(entry);
        assert!(self.has(entry), "{entry} is gone as soon as it is there");
    }

    /// All entries, as a walk lists them that takes a block at a time, or nothing if another list comes meanwhile.
    fn walk(&self) -> Option<Vec<Run>> {
        let guard = sync::pin();
        let runs = |range: &dyn Fn(&u32) -> bool| {
            let entries: Vec<u32> = self.memory().iter().copied().filter(range).collect();
            entries.chunks(2).map(<[u32]>::to_vec).collect::<Vec<Run>>()
        };
        let Some(list) = self.residence.blocks(&guard) else { return Some(runs(&|_| true)) };
        let mut all = Vec::new();
        for block in 0..list.len() {
            let bounds = list.bounds(block);
            let is_within = |entry: &u32| bounds.contains(entry);
            // What nothing has come to is kept.
            match list.while_away(block, |run| runs(&is_within).is_empty().then(|| run.clone())).flatten() {
                Some(run) => all.push(run),
                None => all.extend(self.with_block(list, block, || runs(&is_within))?),
            }
        }
        Some(all)
    }

    fn exchange(&self) {
        self.walk().into_iter().for_each(|runs| self.put(runs));
    }

    fn put(&self, runs: Vec<Run>) {
        let _here = self.residence.exchange(runs.into_iter().map(|run| (run[0], run)).collect(), ());
    }

    fn evict(&self) {
        let unload = |_: &BlockList<u32, Run, ()>, run: &Run| {
            for entry in run {
                self.memory().remove(entry);
            }
            Some(1)
        };
        self.residence.evict(u64::MAX, unload);
    }

    fn has_all(&self, entries: impl IntoIterator<Item = u32>) {
        entries.into_iter().for_each(|entry| assert!(self.has(entry), "{entry} is missed"));
    }
}

#[test]
fn a_reader_of_a_whole_index_misses_nothing_when_it_gets_blocks() {
    explore(3_000, || {
        let parts: [fn(&Model); 3] = [
            |model| {
                model.exchange();
                (0..3).for_each(|_| model.evict());
            },
            |model| model.has_all([3, 1]),
            |model| {
                model.enter(7);
                model.evict();
            },
        ];
        let model = together(Model::new(1..5), parts);
        model.evict();
        model.has_all([1, 2, 3, 4, 7]);
    });
}

#[test]
fn a_reader_of_blocks_misses_nothing_when_others_take_their_place() {
    explore(3_000, || {
        let model = Model::new(1..6);
        model.exchange();
        crate::explore::end_grace_periods();
        model.evict();
        let parts: [fn(&Model); 4] = [
            |model| {
                model.exchange();
                model.evict();
            },
            |model| {
                model.enter(9);
                model.has_all([3]);
            },
            |model| model.has_all([3, 5]),
            |model| {
                model.evict();
                model.exchange();
                model.evict();
            },
        ];
        let model = together(model, parts);
        model.evict();
        model.has_all([1, 2, 3, 4, 5, 9]);
    });
}

#[test]
fn an_index_that_becomes_whole_misses_nothing() {
    explore(2_000, || {
        let model = Model::new(1..5);
        model.exchange();
        crate::explore::end_grace_periods();
        model.evict();
        let parts: [fn(&Model); 3] = [
            |model| {
                model.has_all([1, 4]);
                let _is_whole = model.residence.note_here();
                model.has_all([2]);
            },
            |model| {
                model.evict();
                model.has_all([1, 3]);
            },
            |model| {
                model.exchange();
                model.evict();
            },
        ];
        let model = together(model, parts);
        model.has_all(1..5);
    });
}

#[test]
fn blocks_that_left_between_the_walk_and_the_exchange_are_read_once() {
    explore(4_000, || {
        let model = Model::new([2, 3, 6, 7]);
        model.exchange();
        crate::explore::end_grace_periods();
        model.evict();
        // What came makes the walk read both blocks.
        model.memory().extend([1, 4, 9]);
        let runs = model.walk().unwrap();
        model.evict();
        let exchange = move |model: &Model| model.put(runs);
        let parts: [Box<dyn FnOnce(&Model) + Send>; 4] = [
            Box::new(exchange),
            Box::new(|model| model.has_all([3, 2])),
            Box::new(|model| model.has_all([3, 7, 4])),
            Box::new(Model::evict),
        ];
        let model = together(model, parts);
        model.evict();
        model.has_all([1, 2, 3, 4, 6, 7, 9]);
    });
}
