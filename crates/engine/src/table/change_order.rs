//! The changes of rows, and the order of those of one commit.
//!
//! The changes of a commit are known by record, and each record by its state before and after it. Listed as they
//! come, an insert may stand before the delete of another record that had its key, and a replay of the list onto a
//! table with that key loses the row. So a change that frees a key stands before the change that takes it:
//!
//! ```text
//! deletes      free keys
//! updates      of the key: each after the one that frees its new key
//! inserts      take keys
//! ```
//!
//! Updates that pass keys on in a circle, such as two rows that swap them, have no such order. One of them is told as a delete
//! and an insert, which are what it is to a table that knows rows by their keys.
use std::collections::HashMap;

use types::{Rid, Timestamp, Value};

use crate::keys::order::IndexKey;
use crate::table::Table;

/// The kind of change to a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub enum ChangeKind {
    Insert,
    Update,
    Delete,
}

/// The change of one commit to one row.
#[derive(Clone, PartialEq, Debug)]
pub struct RowChange {
    /// the commit
    pub at: Timestamp,
    /// the kind of change
    pub kind: ChangeKind,
    /// which record
    pub rid: Rid,
    /// the row before, `None` for an insert
    pub old: Option<Vec<Value>>,
    /// the row after, `None` for a delete
    pub new: Option<Vec<Value>>,
}

/// Puts the changes of each commit in order; those of one commit follow one another.
pub(crate) fn in_order(table: &Table, changes: Vec<RowChange>) -> Vec<RowChange> {
    debug_assert!(changes.is_sorted_by_key(|change| change.at), "changes come commit by commit");
    let mut ordered = Vec::with_capacity(changes.len());
    let mut changes = changes.into_iter().peekable();
    while let Some(first) = changes.next() {
        let at = first.at;
        let mut commit = Commit::default();
        commit.take(table, first);
        while let Some(change) = changes.next_if(|change| change.at == at) {
            commit.take(table, change);
        }
        commit.give(table, &mut ordered);
    }
    ordered
}

/// The changes of one commit.
#[derive(Default)]
struct Commit {
    deletes: Vec<RowChange>,
    /// those of the key
    moves: Vec<RowChange>,
    updates: Vec<RowChange>,
    inserts: Vec<RowChange>,
}

impl Commit {
    fn take(&mut self, table: &Table, change: RowChange) {
        debug_assert_eq!(change.old.is_some(), change.kind != ChangeKind::Insert, "{change:?}");
        debug_assert_eq!(change.new.is_some(), change.kind != ChangeKind::Delete, "{change:?}");
        let key = table.schema().primary_key();
        let is_moved = |(old, new): (&Vec<Value>, &Vec<Value>)| key.iter().any(|at| old[*at] != new[*at]);
        let list = match change.kind {
            ChangeKind::Delete => &mut self.deletes,
            ChangeKind::Insert => &mut self.inserts,
            ChangeKind::Update if change.old.as_ref().zip(change.new.as_ref()).is_some_and(is_moved) => &mut self.moves,
            ChangeKind::Update => &mut self.updates,
        };
        list.push(change);
    }

    fn give(mut self, table: &Table, ordered: &mut Vec<RowChange>) {
        let moves = self.order_moves(table);
        ordered.extend(self.deletes.into_iter().chain(moves).chain(self.updates).chain(self.inserts));
    }

    /// The updates of keys in order. Keys are unique before and after the commit, so that each key is freed by one of them at
    /// most and taken by one: they make up rows, which are told from their ends, and circles.
    fn order_moves(&mut self, table: &Table) -> Vec<RowChange> {
        let keys = |row: &Option<Vec<Value>>| row.as_deref().and_then(|row| key_of(table, row));
        let frees = |(at, change): (usize, &RowChange)| Some((keys(&change.old)?, at));
        let freed: HashMap<IndexKey, usize> = self.moves.iter().enumerate().filter_map(frees).collect();
        let frees_key_of: Vec<Option<usize>> =
            self.moves.iter().map(|change| freed.get(&keys(&change.new)?).copied()).collect();
        let mut moves: Vec<Option<RowChange>> = std::mem::take(&mut self.moves).into_iter().map(Some).collect();
        let mut ordered = Vec::with_capacity(moves.len());
        for first in 0..moves.len() {
            let mut row = Vec::new();
            let mut next = Some(first);
            while let Some(at) = next.filter(|at| moves[*at].is_some() && row.first() != Some(at)) {
                row.push(at);
                next = frees_key_of[at];
            }
            if next.is_some() && next == row.first().copied() {
                let change = moves[first].take().into_iter();
                let parts = change.map(|change| {
                    let delete = RowChange { kind: ChangeKind::Delete, new: None, ..change.clone() };
                    (delete, RowChange { kind: ChangeKind::Insert, old: None, ..change })
                });
                let (deletes, inserts): (Vec<_>, Vec<_>) = parts.unzip();
                self.deletes.extend(deletes);
                self.inserts.extend(inserts);
            }
            ordered.extend(row.into_iter().rev().filter_map(|at| moves[at].take()));
        }
        debug_assert!(moves.iter().all(Option::is_none), "invariant 3: a change of a key is not told");
        ordered
    }
}

/// The primary key of a row; none where that has a NULL, as rows of a table from before the key may.
fn key_of(table: &Table, row: &[Value]) -> Option<IndexKey> {
    let key: Vec<Value> = table.schema().primary_key().iter().map(|at| row[*at].clone()).collect();
    table.data.key_of_values(&key).ok().flatten()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use types::{Column, DataType, Schema};

    use super::*;
    use crate::Database;

    fn row(key: i64, value: i64) -> Option<Vec<Value>> {
        Some([key, value].map(Value::from).to_vec())
    }

    fn change(slot: usize, old: Option<Vec<Value>>, new: Option<Vec<Value>>) -> RowChange {
        let kind = match (&old, &new) {
            (None, _) => ChangeKind::Insert,
            (_, None) => ChangeKind::Delete,
            _ => ChangeKind::Update,
        };
        RowChange { at: Timestamp(7), kind, rid: Rid::base(0, slot), old, new }
    }

    /// Every way in which rows with keys 0 to 3 come to have keys 0 to 3, or to be gone, and new ones to come: the rows end as they
    /// should when the changes are done one by one, none of which ever meets a key that is taken.
    #[test]
    fn changes_done_one_by_one_never_meet_a_key_that_is_taken() {
        let db = Database::in_memory();
        let columns = ["id", "x"].map(|name| Column::new(name, DataType::BigInt)).to_vec();
        let table = db.create_table("t", Schema::new(columns, &["id"]).unwrap()).unwrap();
        for way in 0..5_i64.pow(4) {
            let becomes: Vec<i64> = (0..4).map(|at| way / 5_i64.pow(at) % 5).collect();
            let kept: Vec<i64> = becomes.iter().copied().filter(|key| *key < 4).collect();
            if (0..4).any(|key| kept.iter().filter(|kept| **kept == key).count() > 1) {
                continue;
            }
            let to = |key: i64, at: i64| if key < 4 { row(key, at + 10) } else { None };
            let mut changes: Vec<RowChange> =
                (0..4).zip(&becomes).map(|(at, key)| change(at as usize, row(at, at), to(*key, at))).collect();
            let free = (0..4).filter(|key| !kept.contains(key));
            changes.splice(0..0, free.map(|key| change(9, None, row(key, 99))));
            let mut replayed: BTreeMap<i64, Vec<Value>> = (0..4).filter_map(|at| Some((at, row(at, at)?))).collect();
            for change in in_order(&table, changes) {
                let key = |row: &[Value]| if let Value::BigInt(key) = row[0] { key } else { panic!("a key") };
                if let Some(old) = &change.old {
                    assert_eq!(replayed.remove(&key(old)).as_ref(), Some(old), "{becomes:?}");
                }
                if let Some(new) = change.new {
                    assert_eq!(replayed.insert(key(&new), new), None, "{becomes:?}");
                }
            }
            for (key, row) in replayed {
                let x = becomes.iter().position(|to| *to == key).map_or(99, |at| at as i64 + 10);
                assert_eq!(row[1], Value::from(x), "{becomes:?}");
            }
        }
    }
}
