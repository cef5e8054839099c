//! Neighbouring keys of a primary key in pieces, each of which leads to records that follow one another.
//!
//! Key runs (see [`index::KissIndex::likely`]) tell 64 neighbouring keys by one word. Where there is none, as a key among them was
//! deleted and put in again, the tree tells the newest record of each:
//!
//! ```text
//! keys      | 64 keys: a run | 64 keys: k was put in again | 64 keys: a run | others ... |
//! pieces    (r, 64 ........  + ............ k: s .......... + .............) (t, 5) ...
//! rows      column by column; the row of k is laid over                      by row
//! ```
//!
//! Where the keys behind k go on along the records before k, k is a place of the piece whose record lies elsewhere. A piece is a guess,
//! right for a key if the record is there for the reader: a key has one record at a time, and no record of the table has changed its
//! key. A piece of two keys or more is read column by column if all of its records are there. Else its keys are looked up one by one,
//! and each has the first of its records that is there, the newest first, or no row.
use index::KissIndex;
use lineage::{Stretch, View};
use smallvec::SmallVec;
use sync::Guard;
use types::Rid;

use crate::error::Result;
use crate::table::Table;
use crate::table::found_rows::FoundRows;
use crate::terms::outcomes::Transactions;

/// A piece of fewer keys is read row by row. Two rows cost as much either way; ten cost less than half by column (docs/costs.md).
const BY_COLUMN: usize = 2;
/// A piece does not go on behind another one of so many keys.
const LONG: usize = 16;
/// Of so many keys at least one has to have a record, or a walk through the index is shorter.
const SPARSE: u64 = 4;
/// A piece goes on behind so many others, if these are not long.
const OTHERS_MAX: usize = 8;

/// Keys that follow one another and lead to records that do, but for some.
#[derive(Clone, Copy)]
struct Piece {
    key: u64,
    first: Rid,
    count: usize,
    /// the part of [`Pieces::elsewhere`] that tells the others
    elsewhere: (usize, usize),
}

impl Piece {
    fn new(key: u64, first: Rid, count: usize) -> Piece {
        Piece { key, first, count, elsewhere: (0, 0) }
    }

    /// The record that is next to follow.
    fn record(self, at: usize) -> Rid {
        debug_assert!(at < self.count, "no key of the piece");
        Rid::base(self.first.range(), self.first.slot() + at)
    }

    /// The range of the records, and what distinguishes their slots from their keys.
    fn line(self) -> (usize, u64) {
        (self.first.range(), (self.first.slot() as u64).wrapping_sub(self.key))
    }

    /// The key behind the last; wraps behind the last of all.
    fn next_key(self) -> u64 {
        self.key.wrapping_add(self.count as u64)
    }
}

/// The pieces of a range of keys, in the order of the keys.
#[derive(Default)]
pub(super) struct Pieces {
    pieces: SmallVec<[Piece; 4]>,
    /// Records that do not follow those before, each with its place in its piece.
    elsewhere: SmallVec<[(u32, Rid); 16]>,
}

impl Pieces {
    /// The pieces of the keys from `low` to `high`; `None` where few of these keys have a record.
    pub(super) fn between(index: &KissIndex, guard: &Guard, low: u64, high: u64) -> Option<Pieces> {
        let (mut pieces, mut key) = (Pieces::default(), low);
        loop {
            let count = (KissIndex::RUN_KEYS - key % KissIndex::RUN_KEYS).min(high - key + 1);
            match index.likely(key) {
                Some(first) => pieces.add(Piece::new(key, first, count as usize)),
                None => pieces.add_of_tree(index, guard, (key, count))?,
            }
            if high - key < count {
                return Some(pieces.joined());
            }
            key += count;
        }
    }

    fn add(&mut self, piece: Piece) {
        debug_assert!(
            self.pieces.last().is_none_or(|last| last.next_key() <= piece.key),
            "pieces come in the order of their keys"
        );
        match self.pieces.last_mut() {
            Some(last) if last.next_key() == piece.key && last.line() == piece.line() => last.count += piece.count,
            _ => self.pieces.push(piece),
        }
    }

    fn add_of_tree(&mut self, index: &KissIndex, guard: &Guard, (low, count): (u64, u64)) -> Option<()> {
        let mut found = 0;
        index.newest_of_neighbours((low, low + (count - 1)), guard, |key, rid| {
            found += 1;
            self.add(Piece::new(key, rid, 1));
        });
        (found * SPARSE >= count).then_some(())
    }

    /// These pieces, of which one that goes on behind others, which are short, has these in it.
    fn joined(self) -> Pieces {
        let mut joined = Pieces::default();
        for (at, piece) in self.pieces.iter().enumerate() {
            let last = joined.pieces.last_mut().filter(|last| last.next_key() == piece.key);
            let Some(last) = last.filter(|last| goes_on(**last, &self.pieces[at..])) else {
                let end = joined.elsewhere.len();
                joined.pieces.push(Piece { elsewhere: (end, end), ..*piece });
                continue;
            };
            if last.line() != piece.line() {
                let others = (0..piece.count).map(|at| ((last.count + at) as u32, piece.record(at)));
                joined.elsewhere.extend(others);
                last.elsewhere.1 = joined.elsewhere.len();
            }
            last.count += piece.count;
        }
        let keys = |pieces: &Pieces| pieces.pieces.iter().map(|piece| piece.count).sum::<usize>();
        debug_assert_eq!(keys(&joined), keys(&self), "no key comes or goes");
        joined
    }

    /// The records of a piece that do not follow those before.
    fn elsewhere(&self, piece: Piece) -> &[(u32, Rid)] {
        &self.elsewhere[piece.elsewhere.0..piece.elsewhere.1]
    }

    /// Where the records of a piece are.
    fn stretch(&self, piece: Piece) -> Stretch<'_> {
        Stretch { first: piece.first, count: piece.count, elsewhere: self.elsewhere(piece) }
    }
}

/// Whether one of the next pieces has records that go on along those of a piece, with no key missing and no long piece between.
fn goes_on(piece: Piece, next: &[Piece]) -> bool {
    let mut key = piece.next_key();
    for other in next.iter().take(OTHERS_MAX) {
        if other.key != key {
            return false;
        }
        if other.line() == piece.line() {
            return true;
        }
        if other.count >= LONG {
            return false;
        }
        key = other.next_key();
    }
    false
}

impl Table {
    /// Adds the rows that pieces of the primary key lead to, in the order of their keys.
    pub(super) fn add_pieces(
        &self,
        guard: &Guard,
        view: View<'_, Transactions>,
        (index, pieces): (&KissIndex, &Pieces),
        rows: &mut impl FoundRows,
    ) -> Result<()> {
        for piece in &pieces.pieces {
            let stretch = pieces.stretch(*piece);
            if piece.count < BY_COLUMN || !rows.add_stretch(guard, view, stretch)? {
                self.add_rows_of_piece(guard, view, index, (piece.key, stretch), rows)?;
            }
        }
        debug_assert!(
            rows.len() <= pieces.pieces.iter().map(|piece| piece.count).sum(),
            "invariant 7: a key has two rows"
        );
        Ok(())
    }

    fn add_rows_of_piece(
        &self,
        guard: &Guard,
        view: View<'_, Transactions>,
        index: &KissIndex,
        (key, stretch): (u64, Stretch<'_>),
        rows: &mut impl FoundRows,
    ) -> Result<()> {
        for (at, record) in stretch.records().enumerate() {
            if !rows.add_row(guard, view, record)? {
                let add = |rid: Rid| rows.add_row(guard, view, rid).map(|is_there| is_there.then_some(())).transpose();
                index.find(guard, key + at as u64, add).transpose()?;
            }
        }
        Ok(())
    }
}
