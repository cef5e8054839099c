//! When references are looked at: at the end of a statement, or of the transaction.
use std::sync::Arc;

use lineage::Cell;
use types::Rid;

use super::noted::{Noted, References, is_check};
use crate::error::Result;
use crate::keys::definition::Deferral;
use crate::state::rules::Rules;
use crate::state::table_data::TableData;
use crate::terms::constraints::ForeignKey;
use crate::transaction::Transaction;

impl Transaction {
    /// Looks at what the statement has done to references between tables, and does what follows from it. To be called when a
    /// statement is done; a commit does it as well.
    ///
    /// # Errors
    /// [`NotReferenced`](crate::Error::NotReferenced), [`StillReferenced`](crate::Error::StillReferenced) or
    /// [`MixedKey`](crate::Error::MixedKey) if a foreign key is broken; those of a write and of a
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
    pub(in crate::transaction) fn end_references(&mut self) -> Result<()> {
        if self.references.is_none() {
            return Ok(());
        }
        self.end_statement()?;
        self.defer(None, false)?;
        let is_done = |known: &References| known.now.is_empty() && known.later.is_empty();
        debug_assert!(
            self.references.as_deref().is_none_or(is_done),
            "rows would be committed that nobody has looked at"
        );
        Ok(())
    }

    /// Puts the checks of foreign keys that may be deferred off to the end of the transaction, or does them from here on at the end of each
    /// statement, and at once what was put off: of all, or of those with these names.
    ///
    /// # Errors
    /// As [`end_statement`](Self::end_statement).
    pub fn set_constraints(&mut self, names: Option<&[String]>, deferred: bool) -> Result<()> {
        self.references.get_or_insert_default().modes.set(names, deferred);
        self.defer(names, deferred)
    }

    /// Takes up what was put off, unless it goes on to be.
    fn defer(&mut self, names: Option<&[String]>, deferred: bool) -> Result<()> {
        let may_go_back = self.has_savepoints();
        let Some(references) = self.references.as_mut().filter(|_| !deferred) else { return Ok(()) };
        let later = std::mem::take(&mut references.later);
        let is_meant = |noted: &Noted| names.is_none_or(|names| names.iter().any(|name| name == noted.constraint()));
        let (now, later): (Vec<_>, Vec<_>) = later.into_iter().partition(is_meant);
        references.later = later;
        if may_go_back {
            references.settled.extend(now.iter().cloned());
        }
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
        if self.is_settled(&noted)? {
            return Ok(());
        }
        match noted {
            Noted::Referring { data, key, rows } => self.settle_referring(&data, &key, &rows),
            Noted::Referred { data, referrer, is_deleted, rows } => {
                self.settle_referred(&data, &referrer, is_deleted, &rows)
            }
            Noted::Keyed { data, index, rows } => self.settle_keys(&data, &index, &rows),
        }
    }

    /// Whether the transaction has dropped the table or the constraint since.
    fn is_settled(&self, noted: &Noted) -> Result<bool> {
        match noted {
            Noted::Referring { data, key, .. } => {
                let is_there = self.rules(data)?.is_some_and(|rules| rules.foreign_key(&key.name).is_some());
                Ok(!is_there || self.has_dropped(data))
            }
            Noted::Referred { data, .. } => Ok(self.has_dropped(data)),
            Noted::Keyed { data, index, .. } => Ok(self.has_dropped(data) || self.has_dropped_index(index)),
        }
    }

    /// Whether rows are not looked at before the end of the transaction. Actions never wait.
    fn is_put_off(&self, noted: &Noted) -> Result<bool> {
        let is_deferred = |key: &ForeignKey| self.references.as_ref().is_some_and(|known| known.is_deferred(key));
        match noted {
            Noted::Referring { key, .. } => Ok(is_deferred(key)),
            Noted::Referred { referrer, is_deleted, .. } => {
                let key = self.constraint_of(referrer)?;
                Ok(key.is_some_and(|(_, key)| is_check(&key, *is_deleted) && is_deferred(&key)))
            }
            Noted::Keyed { index, .. } => {
                let deferred = index.definition.deferral == Some(Deferral::Deferred);
                let known = self.references.as_ref();
                Ok(known.is_some_and(|known| known.is_put_off(noted.constraint(), deferred)))
            }
        }
    }

    /// The foreign keys that a change of a row is to meet.
    fn heeded_keys<'r>(&self, rules: &'r Rules) -> &'r [Arc<ForeignKey>] {
        if self.options.ignores_references { &[] } else { rules.foreign_keys() }
    }

    /// Notes a row that was put in, if it refers to others.
    pub(in crate::transaction) fn note_inserted(
        &mut self,
        data: &Arc<TableData>,
        rules: &Rules,
        rid: Rid,
        row: &[Cell<'_>],
    ) {
        for key in self.heeded_keys(rules) {
            let nulls = key.columns.iter().filter(|column| row[**column] == Cell::Null).count();
            let is_nothing = nulls == key.columns.len() || (nulls > 0 && !key.is_full);
            if !is_nothing {
                self.references.get_or_insert_default().note_referring(data, key, rid);
            }
        }
    }

    /// Notes a row that has new values in some columns, if they refer to others.
    pub(in crate::transaction) fn note_updated(
        &mut self,
        data: &Arc<TableData>,
        rules: &Rules,
        rid: Rid,
        changed: &[usize],
    ) {
        for key in self.heeded_keys(rules) {
            if key.columns.iter().any(|column| changed.contains(column)) {
                self.references.get_or_insert_default().note_referring(data, key, rid);
            }
        }
    }
}
