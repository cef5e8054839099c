//! What a transaction notes of rows that refer to others, or to which others may refer, until it looks at them.
use std::collections::VecDeque;
use std::sync::Arc;

use smallvec::SmallVec;
use types::{Rid, Value};

use super::modes::Modes;
use crate::keys::data::IndexData;
use crate::state::table_data::TableData;
use crate::terms::constraints::{ForeignKey, Referential, Referrer};
use crate::terms::table_name::schema_and_name;

/// The keys of a row to which others may refer, as they are before a change.
pub(in crate::transaction) type FormerKeys = SmallVec<[(Arc<Referrer>, Vec<Value>); 2]>;

/// Rows that are to be looked at.
#[derive(Clone)]
pub(super) enum Noted {
    /// They may refer to others.
    Referring { data: Arc<TableData>, key: Arc<ForeignKey>, rows: Vec<Rid> },
    /// They had these keys, and may have them no more.
    Referred { data: Arc<TableData>, referrer: Arc<Referrer>, is_deleted: bool, rows: Vec<(Rid, Vec<Value>)> },
    /// They have keys that no other row may have by then.
    Keyed { data: Arc<TableData>, index: Arc<IndexData>, rows: Vec<Rid> },
}

/// What is left to be looked at in a transaction.
#[derive(Default)]
pub(in crate::transaction) struct References {
    /// at the end of the statement, in this order
    pub(super) now: VecDeque<Noted>,
    /// before the commit
    pub(super) later: Vec<Noted>,
    /// what was put off and has been looked at since: again, once the transaction goes back to a savepoint
    pub(super) settled: Vec<Noted>,
    pub(super) modes: Modes,
}

impl References {
    pub(super) fn is_deferred(&self, key: &ForeignKey) -> bool {
        key.deferrable && self.is_put_off(&key.name, key.deferred)
    }

    /// Whether a constraint of this name is put off that may be, and is so or not where nothing is said.
    pub(super) fn is_put_off(&self, name: &str, deferred: bool) -> bool {
        self.modes.said(name).unwrap_or(deferred)
    }

    /// Notes a row that was entered in an index of which no two rows may have one key by the end of the statement, or of the transaction.
    pub(in crate::transaction) fn note_keyed(&mut self, data: &Arc<TableData>, index: &Arc<IndexData>, rid: Rid) {
        debug_assert!(index.definition.deferral.is_some(), "a key that is claimed at once is not noted");
        let same = self.now.iter_mut().rev().find_map(|noted| match noted {
            Noted::Keyed { index: known, rows, .. } if Arc::ptr_eq(known, index) => Some(rows),
            _ => None,
        });
        match same {
            Some(rows) => rows.push(rid),
            None => {
                let (data, index) = (data.clone(), index.clone());
                self.now.push_back(Noted::Keyed { data, index, rows: vec![rid] });
            }
        }
    }

    /// Takes up again what has been looked at since it was put off: the transaction goes back to what it had said of constraints then.
    pub(in crate::transaction) fn take_back(&mut self, modes: Modes) {
        self.modes = modes;
        let left = self.later.len() + self.settled.len();
        self.later.append(&mut self.settled);
        debug_assert_eq!(self.later.len(), left, "what was put off would be committed without a look at it");
    }

    /// There is no savepoint any more to go back to.
    pub(in crate::transaction) fn forget_settled(&mut self) {
        self.settled = Vec::new();
    }

    /// What the transaction has said of constraints.
    pub(in crate::transaction) fn modes(&self) -> Modes {
        self.modes.clone()
    }

    pub(super) fn note_referring(&mut self, data: &Arc<TableData>, key: &Arc<ForeignKey>, rid: Rid) {
        debug_assert!(data.storage.contains(rid), "invariant 3: {rid:?} was written and is out of reach");
        let same = self.now.iter_mut().rev().find_map(|noted| match noted {
            Noted::Referring { key: known, rows, .. } if Arc::ptr_eq(known, key) => Some(rows),
            _ => None,
        });
        match same {
            Some(rows) => rows.push(rid),
            None => {
                let (data, key) = (data.clone(), key.clone());
                self.now.push_back(Noted::Referring { data, key, rows: vec![rid] });
            }
        }
    }

    pub(super) fn note_referred(
        &mut self,
        data: &Arc<TableData>,
        referrer: &Arc<Referrer>,
        deleted: bool,
        (rid, key): (Rid, Vec<Value>),
    ) {
        debug_assert_eq!(key.len(), referrer.columns.len(), "a value for each column that is referred to");
        let same = self.now.iter_mut().rev().find_map(|noted| match noted {
            Noted::Referred { referrer: known, is_deleted, rows, .. }
                if Arc::ptr_eq(known, referrer) && *is_deleted == deleted =>
            {
                Some(rows)
            }
            _ => None,
        });
        match same {
            Some(rows) => rows.push((rid, key)),
            None => {
                let (data, referrer, rows) = (data.clone(), referrer.clone(), vec![(rid, key)]);
                self.now.push_back(Noted::Referred { data, referrer, is_deleted: deleted, rows });
            }
        }
    }
}

impl Noted {
    /// The name of the constraint.
    pub(super) fn constraint(&self) -> &str {
        match self {
            Noted::Referring { key, .. } => &key.name,
            Noted::Referred { referrer, .. } => &referrer.constraint,
            Noted::Keyed { index, .. } => schema_and_name(&index.definition.name).1,
        }
    }
}

/// What is done to rows that refer to a key that goes.
pub(super) fn action(key: &ForeignKey, is_deleted: bool) -> Referential {
    if is_deleted { key.on_delete } else { key.on_update }
}

/// Whether nothing is done but to look, which can wait.
pub(super) fn is_check(key: &ForeignKey, is_deleted: bool) -> bool {
    action(key, is_deleted) == Referential::NoAction
}
