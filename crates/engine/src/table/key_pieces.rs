//! Neighbouring keys of a primary key, as runs that lead to records that follow one another and as records that lie anywhere.
//!
//! Key runs (see [`index::KissIndex::likely`]) tell 64 neighbouring keys by one word. Where there is none, as a key among them was
//! deleted and put in again, the tree tells the newest record of each:
//!
//! ```text
//! keys      | 64 keys: a run | 64 keys: some were put in again | 64 keys: a run |
//! pieces    run (r, 64)        records s t u v ...               run (w, 64)
//! rows      column by column   each where it is                  column by column
//! ```
//!
//! Both are a guess, right for a key if the record is there for the reader: a key has one record at a time, and no record of the table
//! has changed its key. A run is read column by column if all of its records are there. Of records, and of a run of which one is missing,
//! those up to the first that is not there are read together; its key is looked up, and has the first of its records that is there, the
//! newest first, or no row.
use index::KissIndex;
use lineage::{Stretch, View};
use smallvec::SmallVec;
use sync::Guard;
use types::Rid;

use crate::error::Result;
use crate::table::Table;
use crate::table::found_rows::FoundRows;
use crate::terms::outcomes::Transactions;

/// Fewer records that follow one another are read each where it is, if others that lie anywhere come before or behind them: each run is
/// a part of its own of the rows' columns.
const LONG: usize = 48;
/// Of so many keys at least one has to have a record, or a walk through the index is shorter.
const SPARSE: u64 = 4;

/// Keys that follow one another and lead to records that do.
#[derive(Clone, Copy)]
struct Run {
    key: u64,
    first: Rid,
    count: usize,
    /// how many of [`Pieces::records`] come before it
    behind: usize,
}

impl Run {
    /// The range of the records, and what distinguishes their slots from their keys.
    fn line(self) -> (usize, u64) {
        (self.first.range(), (self.first.slot() as u64).wrapping_sub(self.key))
    }

    /// The key behind the last; wraps behind the last of all.
    fn next_key(self) -> u64 {
        self.key.wrapping_add(self.count as u64)
    }

    fn stretch(self) -> Stretch {
        Stretch { first: self.first, count: self.count }
    }

    /// The keys with their records.
    fn records(self) -> Records {
        self.stretch().records().enumerate().map(|(at, rid)| (self.key + at as u64, rid)).unzip()
    }
}

/// Keys with their records, in the order of the keys.
type Records = (Vec<u64>, Vec<Rid>);

/// A range of keys, in their order.
#[derive(Default)]
pub(super) struct Pieces {
    runs: SmallVec<[Run; 4]>,
    /// what is in no run
    records: Records,
}

impl Pieces {
    /// The pieces of the keys from `low` to `high`; `None` where few of these keys have a record.
    pub(super) fn between(index: &KissIndex, guard: &Guard, low: u64, high: u64) -> Option<Pieces> {
        let (mut pieces, mut key) = (Pieces::default(), low);
        loop {
            let count = (KissIndex::RUN_KEYS - key % KissIndex::RUN_KEYS).min(high - key + 1);
            match index.likely(key) {
                Some(first) => pieces.add_run(key, first, count as usize),
                None => pieces.add_of_tree(index, guard, (key, count))?,
            }
            if high - key < count {
                debug_assert!(pieces.count() as u64 <= high - low + 1, "a key has one piece");
                return Some(pieces);
            }
            key += count;
        }
    }

    /// How many keys it has.
    fn count(&self) -> usize {
        self.records.0.len() + self.runs.iter().map(|run| run.count).sum::<usize>()
    }

    fn add_run(&mut self, key: u64, first: Rid, count: usize) {
        let run = Run { key, first, count, behind: self.records.0.len() };
        let before = self.runs.last_mut().filter(|last| last.behind == run.behind);
        match before {
            Some(last) if last.next_key() == key && last.line() == run.line() => last.count += count,
            // It comes behind records that lie anywhere.
            None if run.behind > 0 && count < LONG => self.add_records(run.records()),
            _ => self.runs.push(run),
        }
    }

    fn add_records(&mut self, (keys, rids): Records) {
        self.records.0.extend(keys);
        self.records.1.extend(rids);
    }

    /// Adds the keys of a node of the tree, of which those that lead to many records that follow one another are a run.
    fn add_of_tree(&mut self, index: &KissIndex, guard: &Guard, (low, count): (u64, u64)) -> Option<()> {
        let is_short = |run: &Run| run.count < LONG && run.behind == self.records.0.len();
        if self.runs.last().is_some_and(is_short)
            && let Some(run) = self.runs.pop()
        {
            self.add_records(run.records());
        }
        let from = self.records.0.len();
        self.records.0.reserve(count as usize);
        self.records.1.reserve(count as usize);
        index.newest_of_neighbours((low, low + (count - 1)), guard, |key, rid| {
            self.records.0.push(key);
            self.records.1.push(rid);
        });
        let found = self.records.0.len() - from;
        if found >= LONG {
            self.split_runs(from);
        }
        (found as u64 * SPARSE >= count).then_some(())
    }

    /// Makes runs of the records from one on, as far as many follow one another.
    fn split_runs(&mut self, from: usize) {
        let follow = |at: usize| {
            let (keys, rids) = &self.records;
            keys[at] == keys[at - 1] + 1 && rids[at].word() == rids[at - 1].word() + 1
        };
        let (end, mut start) = (self.records.0.len(), from);
        let mut long: SmallVec<[(usize, usize); 2]> = SmallVec::new();
        for at in from + 1..=end {
            if at == end || !follow(at) {
                if at - start >= LONG {
                    long.push((start, at));
                }
                start = at;
            }
        }
        if long.is_empty() {
            return;
        }
        debug_assert!(long.iter().all(|(start, end)| from <= *start && start < end), "parts of these records");
        let rest: Records = (self.records.0.drain(from..).collect(), self.records.1.drain(from..).collect());
        let mut done = 0;
        for (start, end) in long.into_iter().map(|(start, end)| (start - from, end - from)) {
            self.add_records((rest.0[done..start].into(), rest.1[done..start].into()));
            self.add_run(rest.0[start], rest.1[start], end - start);
            done = end;
        }
        self.add_records((rest.0[done..].into(), rest.1[done..].into()));
    }
}

impl Table {
    /// Adds the rows that pieces of the primary key lead to, in the order of their keys.
    pub(super) fn add_pieces<'g>(
        &self,
        guard: &'g Guard,
        view: View<'g, Transactions>,
        (index, pieces): (&KissIndex, &Pieces),
        rows: &mut impl FoundRows<'g>,
    ) -> Result<()> {
        let (keys, rids) = &pieces.records;
        let mut done = 0;
        for run in &pieces.runs {
            self.add_records(guard, view, index, (&keys[done..run.behind], &rids[done..run.behind]), rows)?;
            done = run.behind;
            if !rows.add_stretch(guard, view, run.stretch())? {
                let (keys, rids) = run.records();
                self.add_records(guard, view, index, (&keys, &rids), rows)?;
            }
        }
        self.add_records(guard, view, index, (&keys[done..], &rids[done..]), rows)?;
        debug_assert!(rows.len() <= pieces.count(), "invariant 7: a key has two rows");
        Ok(())
    }

    fn add_records<'g>(
        &self,
        guard: &'g Guard,
        view: View<'g, Transactions>,
        index: &KissIndex,
        (keys, rids): (&[u64], &[Rid]),
        rows: &mut impl FoundRows<'g>,
    ) -> Result<()> {
        debug_assert_eq!(keys.len(), rids.len(), "invariant 7: a record for each key");
        let mut done = 0;
        while done < keys.len() {
            done += rows.add_records(guard, view, &rids[done..])?;
            if let Some(key) = keys.get(done) {
                let add =
                    |rid: Rid| rows.add_records(guard, view, &[rid]).map(|count| (count > 0).then_some(())).transpose();
                index.find(guard, *key, add).transpose()?;
                done += 1;
            }
        }
        Ok(())
    }
}
