//! Neighbouring keys of a primary key in pieces, each of which leads to records that follow one another.
//!
//! Key runs (see [`index::KissIndex::likely`]) tell 64 neighbouring keys by one word. Where there is none, as a key among them was
//! deleted and put in again, the tree tells the newest record of each:
//!
//! ```text
//! keys      | 64 keys: a run | 64 keys: k was put in again | 64 keys: a run |
//! pieces    (r, 64 ........  + ...) (s, 1) (r', ........... + .............)
//! rows      column by column         by row     column by column
//! ```
//!
//! A piece is a guess, right for a key if the record is there for the reader: a key has one record at a time, and no record of the table
//! has changed its key. A long piece is read column by column if all of its records are there. Else its keys are looked up one by one,
//! and each has the first of its records that is there, the newest first, or no row.
use arrow_array::{ArrayRef, UInt64Array};
use index::KissIndex;
use lineage::View;
use smallvec::SmallVec;
use std::sync::Arc;
use sync::Guard;
use types::Rid;

use crate::error::Result;
use crate::state::table_data::ScanOptions;
use crate::table::key_runs::{RowArrays, joined};
use crate::table::{Rows, Table};
use crate::terms::outcomes::Transactions;

/// A piece of fewer keys is read row by row.
const LONG: usize = 16;
/// Of so many keys at least one has to have a record, or a walk through the index is shorter.
const SPARSE: u64 = 4;
/// Keys that the tree is asked for together.
const AT_ONCE: usize = 16;

/// Keys that follow one another and lead to records that do.
#[derive(Clone, Copy)]
pub(super) struct Piece {
    key: u64,
    first: Rid,
    count: usize,
}

impl Piece {
    fn record(self, at: usize) -> Rid {
        debug_assert!(at < self.count, "no key of the piece");
        Rid::base(self.first.range(), self.first.slot() + at)
    }

    /// Whether another piece is its continuation.
    fn goes_on(self, next: Piece) -> bool {
        let (keys, records) = (self.key + self.count as u64, self.first.slot() + self.count);
        (keys, self.first.range(), records) == (next.key, next.first.range(), next.first.slot())
    }
}

/// The pieces of a range of keys, in the order of the keys.
#[derive(Default)]
pub(super) struct Pieces(SmallVec<[Piece; 4]>);

impl Pieces {
    /// The pieces of the keys from `low` to `high`; `None` where few of these keys have a record.
    pub(super) fn between(index: &KissIndex, guard: &Guard, low: u64, high: u64) -> Option<Pieces> {
        let (mut pieces, mut key) = (Pieces::default(), low);
        loop {
            let count = (KissIndex::RUN_KEYS - key % KissIndex::RUN_KEYS).min(high - key + 1);
            match index.likely(key) {
                Some(first) => pieces.add(Piece { key, first, count: count as usize }),
                None => pieces.add_of_tree(index, guard, (key, count))?,
            }
            if high - key < count {
                return Some(pieces);
            }
            key += count;
        }
    }

    fn add(&mut self, piece: Piece) {
        debug_assert!(
            self.0.last().is_none_or(|last| last.key + last.count as u64 <= piece.key),
            "pieces come in the order of their keys"
        );
        match self.0.last_mut() {
            Some(last) if last.goes_on(piece) => last.count += piece.count,
            _ => self.0.push(piece),
        }
    }

    fn add_of_tree(&mut self, index: &KissIndex, guard: &Guard, (low, count): (u64, u64)) -> Option<()> {
        let mut found = 0;
        for first in (low..low + count).step_by(AT_ONCE) {
            let end = (low + count).min(first + AT_ONCE as u64);
            let keys: SmallVec<[u64; AT_ONCE]> = (first..end).collect();
            index.newest_few(&keys, guard, |at, rid| {
                found += 1;
                self.add(Piece { key: keys[at], first: rid, count: 1 });
            });
        }
        (found * SPARSE >= count).then_some(())
    }
}

impl Table {
    /// The rows that pieces of the primary key lead to, in the order of their keys: the columns of the options and, if they say so, the
    /// Rids. The options' tests are not looked at.
    pub(super) fn rows_of_pieces(
        &self,
        guard: &Guard,
        view: View<'_, Transactions>,
        (index, pieces): (&KissIndex, &Pieces),
        options: &ScanOptions,
    ) -> Result<RowArrays> {
        let mut parts: SmallVec<[Vec<ArrayRef>; 4]> = SmallVec::new();
        let (mut rows, mut count) = (Rows::with_room(self, options, 0), 0);
        for piece in &pieces.0 {
            match self.columns_of_piece(guard, view, *piece, options)? {
                Some(arrays) => {
                    count += piece.count + rows.len();
                    parts.extend((rows.len() > 0).then(|| rows.take_arrays()));
                    parts.push(arrays);
                }
                None => self.push_rows_of_piece(guard, view, (index, *piece), &mut rows)?,
            }
        }
        count += rows.len();
        if rows.len() > 0 || parts.is_empty() {
            parts.push(rows.take_arrays());
        }
        debug_assert!(count <= pieces.0.iter().map(|piece| piece.count).sum(), "invariant 7: a key has two rows");
        Ok((joined(&mut parts), count))
    }

    /// The columns of a long piece all of whose records are there.
    fn columns_of_piece(
        &self,
        guard: &Guard,
        view: View<'_, Transactions>,
        piece: Piece,
        options: &ScanOptions,
    ) -> Result<Option<Vec<ArrayRef>>> {
        if piece.count < LONG {
            return Ok(None);
        }
        let mut arrays = self.data.storage.stretch(guard, view, (piece.first, piece.count), &options.columns)?;
        debug_assert!(
            arrays.as_ref().is_none_or(|arrays| arrays.iter().all(|array| array.len() == piece.count)),
            "invariant 7: a key without its row"
        );
        if let Some(arrays) = arrays.as_mut().filter(|_| options.with_rid) {
            let first = piece.first.word();
            arrays.push(Arc::new(UInt64Array::from_iter_values(first..first + piece.count as u64)));
        }
        Ok(arrays)
    }

    fn push_rows_of_piece(
        &self,
        guard: &Guard,
        view: View<'_, Transactions>,
        (index, piece): (&KissIndex, Piece),
        rows: &mut Rows<'_>,
    ) -> Result<()> {
        let (storage, columns) = (&self.data.storage, &rows.options.columns);
        let mut read =
            |rid: Rid| storage.read_pinned(guard, view, rid, columns, |cells| rows.push_untested(rid, cells));
        for at in 0..piece.count {
            if read(piece.record(at))?.is_none() {
                index.find(guard, piece.key + at as u64, |rid| read(rid).transpose()).transpose()?;
            }
        }
        Ok(())
    }
}
