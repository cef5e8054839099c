//! Making, changing and dropping views within a transaction; the queries of materialized views, which are tables.
//!
//! A view is changed as a table is emptied: a new one takes its name, so that earlier snapshots go on with the old query. The
//! names that its query reads are held before it is made: until the transaction ends no other one drops or renames what they
//! mean, and one that wanted to and waited looks for views afterwards.
use std::sync::Arc;

use types::{Schema, Snapshot, Timestamp};

use super::Transaction;
use crate::error::{Error, Result};
use crate::state::table_data::TableData;
use crate::table::Table;
use crate::terms::materialized_query::MaterializedQuery;
use crate::terms::settings::TableSettings;
use crate::terms::view_definition::ViewDefinition;

impl Transaction {
    /// The names of the views that the transaction sees, sorted.
    pub fn view_names(&self) -> Vec<String> {
        self.names(TableData::is_view)
    }

    /// The views that there are now, whatever the transaction's snapshot, with its own changes; sorted by their names.
    pub fn views_now(&self) -> Vec<(String, Table)> {
        let now = Snapshot::of_transaction(Timestamp::MAX, self.id());
        let catalog = &self.anchor.core.catalog;
        let names = catalog.names(self.transactions(), now, TableData::is_view).into_iter();
        let view = |name: String| catalog.find(self.transactions(), now, &name).map(|data| (name, data));
        let views: Vec<(String, Table)> =
            names.filter_map(view).map(|(name, data)| (name, self.table_of(data))).collect();
        debug_assert!(views.iter().all(|(_, view)| view.view().is_some()), "a table is taken for a view");
        views
    }

    /// The materialized views that there are now, as [`views_now`](Self::views_now) has the views.
    pub fn materialized_views_now(&self) -> Vec<(String, Table)> {
        let now = Snapshot::of_transaction(Timestamp::MAX, self.id());
        let catalog = &self.anchor.core.catalog;
        let names = catalog.names(self.transactions(), now, |data| data.is_materialized).into_iter();
        let view = |name: String| catalog.find(self.transactions(), now, &name).map(|data| (name, data));
        names.filter_map(view).map(|(name, data)| (name, self.table_of(data))).collect()
    }

    /// Keeps others from changing what names mean until this transaction ends; waits for those that are changing it.
    ///
    /// # Errors
    /// [`Error::ReadOnlyTransaction`]; those of a wait.
    pub fn hold_names(&mut self, names: &[String]) -> Result<()> {
        self.change_catalog(|transaction| names.iter().try_for_each(|name| transaction.claim(name)))?;
        debug_assert!(
            names.iter().all(|name| self.anchor.core.catalog.is_claimed_by(name, self.id())),
            "invariant 4: others could change what a view reads"
        );
        Ok(())
    }

    /// Makes a view of these columns. The names that its query reads should be held
    /// ([`hold_names`](Self::hold_names)).
    ///
    /// # Errors
    /// As [`create_table_with`](Self::create_table_with).
    pub fn create_view(&mut self, name: &str, schema: Schema, view: ViewDefinition) -> Result<()> {
        self.change_catalog(|transaction| {
            transaction.claim_free(name)?;
            transaction.make_view(name, schema, view)
        })
    }

    /// Gives a view other columns and another query.
    ///
    /// # Errors
    /// As [`drop_view`](Self::drop_view) and [`create_table_with`](Self::create_table_with).
    pub fn replace_view(&mut self, name: &str, schema: Schema, view: ViewDefinition) -> Result<()> {
        self.change_catalog(|transaction| {
            let old = transaction.claim_view(name)?;
            debug_assert_eq!(old.storage.range_count(), 0, "the view \"{name}\" has rows");
            transaction.lock_whole(&old)?;
            transaction.remove(old)?;
            transaction.make_view(name, schema, view)
        })
    }

    /// Changes the query of a materialized view, or whether it is populated. Which rows it has is for the caller to see to.
    ///
    /// # Errors
    /// As [`drop_table`](Self::drop_table); [`Error::WrongKind`] also if it is a table of another kind.
    pub fn set_materialized(&mut self, name: &str, query: MaterializedQuery) -> Result<()> {
        if !self.table(name)?.is_materialized() {
            return Err(Error::WrongKind { name: name.into(), expected: "materialized view" });
        }
        self.change_settings(name, |settings| {
            debug_assert!(settings.materialized.is_some(), "\"{name}\" would become a materialized view");
            settings.materialized = Some(query);
        })
    }

    /// Removes a view. What is read as of before goes on having it.
    ///
    /// # Errors
    /// - [`Error::NoSuchTable`] if there is no such view; [`Error::WrongKind`] if it is a table or a sequence.
    /// - [`Error::TableChanged`] if others have changed the meaning of the name since the transaction's snapshot.
    /// - [`Error::ReadOnlyTransaction`]; [`Error::Log`] if the redo cannot be passed on; those of a wait.
    pub fn drop_view(&mut self, name: &str) -> Result<()> {
        self.change_catalog(|transaction| {
            let data = transaction.claim_view(name)?;
            transaction.drop_claimed(name, data)
        })
    }

    fn make_view(&mut self, name: &str, schema: Schema, view: ViewDefinition) -> Result<()> {
        debug_assert!(view.other_types.iter().all(|(at, _)| *at < schema.columns().len()), "a type of no column");
        let made = self.make(name, schema, TableSettings { view: Some(view), ..TableSettings::default() })?;
        debug_assert!(made.is_view(), "\"{name}\" would take rows");
        Ok(())
    }

    fn claim_view(&mut self, name: &str) -> Result<Arc<TableData>> {
        self.claim(name)?;
        if self.views_now().iter().any(|(view, _)| view == name) && self.table(name).is_err() {
            return Err(self.lose(Error::TableChanged(name.into())));
        }
        let data = self.claim_table(name)?;
        match data.is_view() {
            true => Ok(data),
            false => Err(Error::WrongKind { name: name.into(), expected: "view" }),
        }
    }
}
