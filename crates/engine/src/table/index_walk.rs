//! A walk through the entries of an index, and over the stretches of it that are of no use any more.
//!
//! Rows leave an index without their entries, as readers of the past need these. A reader that meets many of them in a row looks
//! at each once more, and where none has a version that a snapshot from now on can see, it notes them as a gap
//! ([`index::Gaps`]), which later readers step over. So a queue gives its first row at once, whatever has gone through it.
use std::ops::Bound;

use index::EndOfIndex;
use lineage::Writer;
use types::{Rid, Timestamp};

use crate::error::Result;
use crate::keys::data::IndexData;
use crate::keys::entries::Entry;
use crate::keys::order::{Bounds, Direction, IndexKey, beside_all};
use crate::keys::space::Asked;
use crate::state::table_data::TableData;
use crate::terms::outcomes::Transactions;

/// Entries that are looked at together at first; each time twice as many, so that a reader of few rows reads few.
pub(crate) const ENTRIES_FIRST: usize = 16;
const ENTRIES_MAX: usize = 1024;

/// Entries of no use that make a gap worth noting.
const IDLE_MIN: usize = 16;
/// Entries that are looked at once more at most for a gap.
const IDLE_MAX: usize = 4096;

/// Which of the entries looked at together have led to a row.
#[derive(Clone, Copy, Default)]
pub(crate) struct Used {
    first: Option<usize>,
    last: usize,
}

impl Used {
    /// Notes that an entry has led to a row; they come in their order.
    pub(crate) fn note(&mut self, at: usize) {
        self.first.get_or_insert(at);
        self.last = at;
    }
}

/// Where a walk through an index stands.
pub(crate) struct Cursor {
    /// the range that is left; `None` when nothing is
    bounds: Option<Asked>,
    direction: Direction,
    count: usize,
    pub(crate) entries: Vec<Entry>,
    /// where the walk stood before these entries
    stood: Bound<Entry>,
    idle: Option<Idle>,
    /// those that a gap came behind
    idle_before: Vec<Idle>,
}

/// Entries passed one after the other that have led to no row, up to where the walk stands.
struct Idle {
    /// where the walk stood before them
    start: Bound<Entry>,
    last: Entry,
    count: usize,
}

impl Cursor {
    pub(crate) fn new(bounds: Option<Asked>, direction: Direction) -> Cursor {
        let (stood, idle, idle_before) = (Bound::Unbounded, None, Vec::new());
        Cursor { bounds, direction, count: ENTRIES_FIRST, entries: Vec::new(), stood, idle, idle_before }
    }

    /// Gets the next entries, those left out that are of no use at `at`, if that is said; false if there are none.
    ///
    /// # Errors
    /// As [`IndexData::next`].
    pub(crate) fn advance(&mut self, index: &IndexData, at: Option<Timestamp>) -> Result<bool> {
        self.entries.clear();
        let mut bounds = match self.bounds.take() {
            None => return Ok(false),
            // All at once: there is no place in it to go on from.
            Some(Asked::Space(window)) => {
                index.entries().space().iter().for_each(|space| space.search(&window, &mut self.entries));
                return Ok(!self.entries.is_empty());
            }
            Some(Asked::Terms(groups)) => {
                let found = index.with_terms(&groups, usize::MAX)?.unwrap_or_default();
                // Nobody asks for their keys: each of them has several.
                self.entries.extend(found.into_iter().map(|rid| (IndexKey::Null, rid)));
                return Ok(!self.entries.is_empty());
            }
            Some(Asked::Keys(bounds)) => bounds,
        };
        if at.is_some_and(|at| self.step_over(index, &mut bounds, at) == Err(EndOfIndex)) {
            return Ok(false);
        }
        self.stood = match self.direction {
            Direction::Upward => bounds.0.clone(),
            Direction::Downward => bounds.1.clone(),
        };
        self.entries.reserve(self.count.min(ENTRIES_FIRST));
        let has_more = index.next(&bounds, self.direction, self.count, &mut self.entries)?;
        debug_assert!(!has_more || !self.entries.is_empty(), "a walk that goes on has found something");
        self.count = (self.count * 2).min(ENTRIES_MAX);
        if has_more && let Some(last) = self.entries.last() {
            let behind = Bound::Excluded(self.end_of(index, last));
            match self.direction {
                Direction::Upward => bounds.0 = behind,
                Direction::Downward => bounds.1 = behind,
            }
            self.bounds = Some(Asked::Keys(bounds));
        }
        Ok(!self.entries.is_empty())
    }

    /// Whether nothing comes behind these entries.
    pub(crate) fn is_through(&self) -> bool {
        self.bounds.is_none()
    }

    /// The end of these entries and what comes behind it, if anything does.
    pub(crate) fn end_and_rest(&self, index: &IndexData) -> Option<(Entry, Asked)> {
        Some((self.end_of(index, self.entries.last()?), self.bounds.clone()?))
    }

    /// Looks at no more entries at first than are likely to be wanted.
    pub(crate) fn begin_with(&mut self, entries: usize) {
        self.count = entries.clamp(1, ENTRIES_FIRST);
    }

    pub(crate) fn direction(&self) -> Direction {
        self.direction
    }

    /// The end of what was passed once the entries of a record were, if it has one among these.
    pub(crate) fn end_behind(&self, index: &IndexData, record: Rid) -> Option<Entry> {
        let last = self.entries.iter().rev().find(|(_, rid)| *rid == record)?;
        Some(self.end_of(index, last))
    }

    /// The end of what was passed once an entry was: where the records of its key are listed, that is the end of the key.
    fn end_of(&self, index: &IndexData, entry: &Entry) -> Entry {
        match index.entries_so_far().are_listed(&entry.0) {
            true => beside_all(&entry.0, self.direction == Direction::Upward),
            false => entry.clone(),
        }
    }

    /// Goes on behind the gap that the walk stands in, if it stands in one.
    fn step_over(&mut self, index: &IndexData, bounds: &mut Bounds, at: Timestamp) -> Result<(), EndOfIndex> {
        let over = match self.direction {
            Direction::Upward => index.gaps.above(&bounds.0, at)?,
            Direction::Downward => index.gaps.below(&bounds.1, at)?,
        };
        if let Some(over) = over {
            let is_up = self.direction == Direction::Upward;
            let over = match over {
                // Of a key whose records are listed nothing was passed yet.
                Bound::Included((key, _)) if index.entries_so_far().are_listed(&key) => {
                    Bound::Included(beside_all(&key, !is_up))
                }
                other => other,
            };
            *if is_up { &mut bounds.0 } else { &mut bounds.1 } = over;
            self.idle_before.extend(self.idle.take());
        }
        Ok(())
    }

    /// Tells which of the entries have led to a row. Those before, between the last two times that one did, may be a gap.
    pub(crate) fn note_used(&mut self, table: &TableData, index: &IndexData, transactions: &Transactions, used: Used) {
        let of_use = used.first.map(|first| {
            self.whole_key(index, first, first).start..self.whole_key(index, used.last, used.last + 1).end
        });
        let before = 0..of_use.as_ref().map_or(self.entries.len(), |of_use| of_use.start);
        if let Some(end) = self.entries[before.clone()].last() {
            let last = self.end_of(index, end);
            let (start, count) = match self.idle.take() {
                Some(idle) => (idle.start, idle.count),
                None => (self.stood.clone(), 0),
            };
            self.idle = Some(Idle { start, last, count: count + before.len() });
        }
        if let Some(of_use) = of_use {
            self.end_idle(table, index, transactions);
            let behind = &self.entries[of_use.end..];
            self.idle = behind.last().map(|end| Idle {
                start: Bound::Excluded(self.end_of(index, &self.entries[of_use.end - 1])),
                last: self.end_of(index, end),
                count: behind.len(),
            });
        }
    }

    /// The entries around the one at `at` that are passed together with it, and at least up to `end`: those of its key, where
    /// they are listed.
    fn whole_key(&self, index: &IndexData, at: usize, end: usize) -> std::ops::Range<usize> {
        let key = &self.entries[at].0;
        if !index.entries_so_far().are_listed(key) {
            return at..end;
        }
        let is_of_key = |entry: &&Entry| entry.0 == *key;
        let before = self.entries[..at].iter().rev().take_while(is_of_key).count();
        let behind = self.entries[at..].iter().take_while(is_of_key).count();
        at - before..at + behind
    }

    /// Notes what was passed last as gaps, where it is long enough and of no use to a reader of the present.
    pub(crate) fn end_idle(&mut self, table: &TableData, index: &IndexData, transactions: &Transactions) {
        for idle in self.idle_before.drain(..).chain(self.idle.take()) {
            if idle.count < IDLE_MIN || !index.is_walked() {
                continue;
            }
            let range = match self.direction {
                Direction::Upward => (idle.start, Bound::Included(idle.last)),
                Direction::Downward => (Bound::Included(idle.last), idle.start),
            };
            let Some(announcement) = index.gaps.announce(range.clone()) else { return };
            match are_idle(table, index, transactions, range).unwrap_or(false) {
                true => drop(index.gaps.confirm(announcement, transactions.0.now())),
                false => index.gaps.withdraw(announcement),
            }
        }
    }
}

/// Whether no entry of a range leads to a version that a snapshot from now on can see, unless its key is entered anew.
fn are_idle(table: &TableData, index: &IndexData, transactions: &Transactions, range: Bounds) -> Result<bool> {
    let (mut cursor, mut count) = (Cursor::new(Some(Asked::Keys(range)), Direction::Upward), 0);
    while cursor.advance(index, None)? {
        count += cursor.entries.len();
        if count > IDLE_MAX {
            return Ok(false);
        }
        for (key, rid) in &cursor.entries {
            if !is_idle(table, index, transactions, key, *rid)? {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// Whether the newest version of a record is decided and has another key, or is none.
fn is_idle(
    table: &TableData,
    index: &IndexData,
    transactions: &Transactions,
    key: &IndexKey,
    rid: Rid,
) -> Result<bool> {
    let newest = transactions.newest(None);
    if matches!(table.storage.newest_writer(newest, rid)?, Writer::Running(_)) {
        return Ok(false);
    }
    Ok(table.storage.read(newest, rid, index.columns(), |cells| index.has_key(cells, key))? != Some(true))
}
