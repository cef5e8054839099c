//! Foreign keys: rows that refer to rows of other tables.
//!
//! ```text
//! a row that refers is written ────────┐                                 referring: its key is there, and stays (KEY SHARE)
//!                                      ├──noted──> end of the statement ─┤
//! a row loses a key others refer to ───┘           or of the transaction  referred: nobody refers to it, or they follow
//! ```
//!
//! **When.** A statement may leave a reference open that it closes itself (`UPDATE t SET k = k + 1`, rows that refer to each other), so
//! rows are noted when they are written, and looked at when the statement is done ([`Transaction::end_statement`]), or the commit of a
//! transaction that is used without statements. A constraint that is deferred is looked at before the commit. What is noted is a row, not
//! its values: what it holds by then counts, and a row that has gone again, by a savepoint say, asks nothing.
//!
//! **What others do.** All of this goes by what is newest, whatever the transaction's snapshot is: a snapshot of before would not see a
//! row that another transaction has put in since, and an orphan would stay. A row that refers takes a lock on the one that it refers to,
//! which keeps others from deleting it or changing its key (`FOR KEY SHARE`), for as long as the transaction runs. A row that loses its
//! key is written, which that lock keeps off, before others that refer to it are looked for. So of the two that meet, the second
//! waits for the first, and then finds either the key gone, or the row that refers to it.
//!
//! **Actions** (`CASCADE` and its like) are writes like others, of rows that are locked and looked at again first; what they do is noted
//! in its turn. They come in the order in which rows were noted, as in PostgreSQL. Rows that a snapshot does not see are a conflict.
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use lineage::Cell;
use types::{Rid, Value};

use super::Transaction;
use crate::error::{Error, Result};
use crate::keys::data::IndexData;
use crate::keys::order::IndexKey;
use crate::state::rules::Rules;
use crate::state::table_data::TableData;
use crate::table::Table;
use crate::terms::constraints::{ForeignKey, Referrer};
use crate::terms::row::{FittedRow, shorten};

mod constraints;
mod referred;
mod referring;

pub(super) use referred::FormerKeys;

/// Rows that are to be looked at.
enum Noted {
    /// They may refer to others.
    Referring { data: Arc<TableData>, key: Arc<ForeignKey>, rows: Vec<Rid> },
    /// They had these keys, and may have them no more.
    Referred { data: Arc<TableData>, referrer: Arc<Referrer>, is_deleted: bool, rows: Vec<(Rid, Vec<Value>)> },
}

/// What is left to be looked at in a transaction.
#[derive(Default)]
pub(super) struct References {
    /// at the end of the statement, in this order
    now: VecDeque<Noted>,
    /// before the commit
    later: Vec<Noted>,
    /// whether constraints that may be deferred are, where the transaction has said so
    all_deferred: Option<bool>,
    /// by their names, since it was said of all
    deferred: HashMap<String, bool>,
}

impl References {
    fn is_deferred(&self, key: &ForeignKey) -> bool {
        let said = self.deferred.get(&key.name).copied().or(self.all_deferred);
        key.deferrable && said.unwrap_or(key.deferred)
    }

    fn note_referring(&mut self, data: &Arc<TableData>, key: &Arc<ForeignKey>, rid: Rid) {
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

    fn note_referred(
        &mut self,
        data: &Arc<TableData>,
        referrer: &Arc<Referrer>,
        deleted: bool,
        (rid, key): (Rid, Vec<Value>),
    ) {
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

impl Transaction {
    /// Looks at what the statement has done to references between tables, and does what follows from it. To be called when a
    /// statement is done; a commit does it as well.
    ///
    /// # Errors
    /// [`Error::NotReferenced`], [`Error::StillReferenced`] or [`Error::MixedKey`] if a foreign key is broken; those of a write and of a
    /// wait. The statement is to be taken back then, by a savepoint or with the transaction.
    #[inline]
    pub fn end_statement(&mut self) -> Result<()> {
        match &self.references {
            Some(references) if !references.now.is_empty() => self.settle_references(),
            _ => Ok(()),
        }
    }

    /// Looks at what was put off to the end of the transaction.
    #[inline]
    pub(super) fn end_references(&mut self) -> Result<()> {
        if self.references.is_none() {
            return Ok(());
        }
        self.end_statement()?;
        self.defer(None, false)
    }

    /// Puts the checks of foreign keys that may be deferred off to the end of the transaction, or does them from here on at the end of each
    /// statement, and at once what was put off: of all, or of those with these names.
    ///
    /// # Errors
    /// As [`end_statement`](Self::end_statement).
    pub fn set_constraints(&mut self, names: Option<&[String]>, deferred: bool) -> Result<()> {
        let references = self.references.get_or_insert_default();
        match names {
            None => {
                references.deferred.clear();
                references.all_deferred = Some(deferred);
            }
            Some(names) => references.deferred.extend(names.iter().map(|name| (name.clone(), deferred))),
        }
        self.defer(names, deferred)
    }

    /// Takes up what was put off, unless it goes on to be.
    fn defer(&mut self, names: Option<&[String]>, deferred: bool) -> Result<()> {
        let Some(references) = self.references.as_mut().filter(|_| !deferred) else { return Ok(()) };
        let later = std::mem::take(&mut references.later);
        let is_meant = |noted: &Noted| names.is_none_or(|names| names.iter().any(|name| name == noted.constraint()));
        let (now, later): (Vec<_>, Vec<_>) = later.into_iter().partition(is_meant);
        references.later = later;
        now.into_iter().try_for_each(|noted| self.settle_noted(noted))?;
        self.end_statement()
    }

    #[inline(never)]
    fn settle_references(&mut self) -> Result<()> {
        while let Some(noted) = self.references.as_mut().and_then(|references| references.now.pop_front()) {
            let done = match self.is_put_off(&noted) {
                Ok(false) => self.settle_noted(noted),
                Ok(true) => {
                    self.references.get_or_insert_default().later.push(noted);
                    Ok(())
                }
                Err(error) => Err(error),
            };
            if let Err(error) = done {
                self.references.iter_mut().for_each(|references| references.now.clear());
                return Err(error);
            }
        }
        Ok(())
    }

    fn settle_noted(&mut self, noted: Noted) -> Result<()> {
        match noted {
            Noted::Referring { data, key, rows } => self.settle_referring(&data, &key, &rows),
            Noted::Referred { data, referrer, is_deleted, rows } => {
                self.settle_referred(&data, &referrer, is_deleted, &rows)
            }
        }
    }

    /// Whether rows are not looked at before the end of the transaction. Actions never wait.
    fn is_put_off(&self, noted: &Noted) -> Result<bool> {
        let is_deferred = |key: &ForeignKey| self.references.as_ref().is_some_and(|known| known.is_deferred(key));
        match noted {
            Noted::Referring { key, .. } => Ok(is_deferred(key)),
            Noted::Referred { referrer, is_deleted, .. } => {
                let key = self.constraint_of(referrer)?;
                Ok(key.is_some_and(|(_, key)| referred::is_check(&key, *is_deleted) && is_deferred(&key)))
            }
        }
    }

    /// The table that refers, and its constraint; `None` if it is gone.
    fn constraint_of(&self, referrer: &Referrer) -> Result<Option<(Table, Arc<ForeignKey>)>> {
        let table = match self.table(&referrer.table) {
            Err(Error::NoSuchTable(_)) => return Ok(None),
            found => found?,
        };
        let key = self.rules(&table.data)?.and_then(|rules| rules.foreign_key(&referrer.constraint));
        Ok(key.map(|key| (table, key)))
    }

    /// Notes a row that was put in, if it refers to others.
    pub(super) fn note_inserted(&mut self, data: &Arc<TableData>, rules: &Rules, rid: Rid, row: &[Cell<'_>]) {
        for key in rules.foreign_keys() {
            let nulls = key.columns.iter().filter(|column| row[**column] == Cell::Null).count();
            let is_nothing = nulls == key.columns.len() || (nulls > 0 && !key.is_full);
            if !is_nothing {
                self.references.get_or_insert_default().note_referring(data, key, rid);
            }
        }
    }

    /// Notes a row that has new values in some columns, if they refer to others.
    pub(super) fn note_updated(&mut self, data: &Arc<TableData>, rules: &Rules, rid: Rid, changed: &[usize]) {
        for key in rules.foreign_keys() {
            if key.columns.iter().any(|column| changed.contains(column)) {
                self.references.get_or_insert_default().note_referring(data, key, rid);
            }
        }
    }

    /// The values of some columns of a record as they are now.
    fn newest_values(&self, data: &TableData, rid: Rid, columns: &[usize]) -> Result<Option<Vec<Value>>> {
        let types = columns.iter().map(|column| data.schema.columns()[*column].data_type);
        let values = |cells: &[Cell<'_>]| {
            cells.iter().zip(types).map(|(cell, data_type)| lineage::value_of_cell(*cell, data_type)).collect()
        };
        Ok(data.storage.read(self.newest(), rid, columns, values)?)
    }

    /// The index over exactly these columns, of which no two rows have the same values.
    fn key_over(&self, table: &Table, columns: &[usize]) -> Result<Arc<IndexData>> {
        let primary = table.primary_index().map(|index| index.data);
        let others = self.indexes(table).into_iter().map(|index| index.data).filter(|index| index.definition.is_key());
        let is_over = |index: &Arc<IndexData>| {
            index.columns().len() == columns.len() && columns.iter().all(|column| index.columns().contains(column))
        };
        let found = primary.into_iter().chain(others).find(is_over);
        found.ok_or_else(|| Error::NoKeyToReference { table: table.name().to_owned() })
    }

    /// The record that has these values in the columns of a key now, those of this transaction included.
    fn newest_with(
        &self,
        data: &TableData,
        index: &IndexData,
        (columns, values): (&[usize], &[Value]),
    ) -> Result<Option<Rid>> {
        let Some(key) = key_of(data, index, columns, values) else { return Ok(None) };
        let (guard, view) = (&sync::pin(), self.newest());
        let found = index.entries.find_pinned(guard, &key, |rid| {
            let has_key = |cells: &[Cell<'_>]| index.has_key(cells, &key);
            match data.storage.read_pinned(guard, view, rid, index.columns(), has_key) {
                Ok(Some(true)) => Some(Ok(rid)),
                Ok(_) => None,
                Err(error) => Some(Err(error)),
            }
        });
        Ok(found.transpose()?)
    }
}

impl Noted {
    fn constraint(&self) -> &str {
        match self {
            Noted::Referring { key, .. } => &key.name,
            Noted::Referred { referrer, .. } => &referrer.constraint,
        }
    }
}

/// The form in an index of values of its columns, which are given in another order; `None` if no row can have them.
fn key_of(data: &TableData, index: &IndexData, columns: &[usize], values: &[Value]) -> Option<IndexKey> {
    debug_assert_eq!(columns.len(), values.len(), "a value for each column");
    let value_of = |column: &usize| {
        let at = columns.iter().position(|known| known == column)?;
        values.get(at).map(|value| (*column, value))
    };
    let ordered: Option<Vec<(usize, &Value)>> = index.columns().iter().map(value_of).collect();
    let mut fitted = FittedRow::new(&data.name, data.schema.columns(), ordered?.into_iter()).ok()?;
    Some(index.plain_key(&fitted.all()))
}

/// Columns and their values as they stand in messages.
fn shown(data: &TableData, columns: &[usize], values: &[Value]) -> String {
    let names: Vec<&str> = columns.iter().map(|column| data.schema.columns()[*column].name.as_str()).collect();
    let value = |value: &Value| if value.is_null() { "null".to_owned() } else { value.to_string() };
    let values: Vec<String> = values.iter().map(value).collect();
    shorten(format!("({})=({})", names.join(", "), values.join(", ")))
}
