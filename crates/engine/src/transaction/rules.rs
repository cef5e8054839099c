//! Applying the rules of a table to the rows that a transaction writes.
//!
//! A row that is put in is looked at before it is stored, and so before its keys: a row that breaks a rule is refused for that, whatever
//! its keys are. A changed row is looked at once its version is there, as only then it is sure what the columns hold that the change
//! leaves as they are; a version that breaks a rule is taken back.
//!
//! A transaction that has changed the rules of a table goes by its own; others go by those that have committed. A
//! transaction that adds a rule has the table for itself until the rule is there for all.
use std::sync::Arc;

use arrow_array::RecordBatch;
use lineage::Cell;
use smallvec::SmallVec;
use types::Rid;

use super::Transaction;
use super::notes::CatalogStep;
use crate::error::{Error, Result};
use crate::keys::computed::ComputedExpressions;
use crate::keys::data::IndexData;
use crate::state::rules::Rules;
use crate::state::table_data::TableData;
use crate::table::Table;
use crate::terms::row::check_cells;
use crate::terms::settings::TableSettings;
use crate::terms::shown_row::shown;
use crate::terms::table_name::schema_and_name;
use crate::transaction::batch::{batch_columns, with_views};

impl Transaction {
    /// The rules for the rows of a table, ready to be applied; `None` where there are none.
    #[inline]
    pub(super) fn rules(&self, data: &Arc<TableData>) -> Result<Option<Arc<Rules>>> {
        if !data.is_ruled() && self.catalog.is_none() { Ok(None) } else { self.rules_there(data) }
    }

    #[inline(never)]
    fn rules_there(&self, data: &Arc<TableData>) -> Result<Option<Arc<Rules>>> {
        let own = self.steps().iter().rev().find_map(|step| match step {
            CatalogStep::Set(table, _, rules) if Arc::ptr_eq(table, data) => Some(rules.clone()),
            _ => None,
        });
        let rules = own.unwrap_or_else(|| data.rules());
        if rules.is_empty() {
            return Ok(None);
        }
        debug_assert!(data.is_plain(), "rules for rows of \"{}\", which are not a user's", &*data.name);
        rules.compile(data.schema.columns(), self.anchor.core.expressions())?;
        Ok(Some(rules))
    }

    /// Whether a constraint of a table that the transaction sees, but for those of one, has a name, whatever the schema of its table.
    pub fn has_constraint(&self, name: &str, without: Option<&str>) -> bool {
        let is_among = |settings: &TableSettings, table: &str, has_key: bool| {
            settings.checks.iter().any(|check| check.name == name)
                || settings.foreign_keys.iter().any(|key| key.name == name)
                || has_key && schema_and_name(&settings.name_of_key(table)).1 == name
        };
        let found = self.anchor.core.catalog.find_among(self.transactions(), self.sight(), |table, data| {
            if !data.is_plain() || without == Some(table) {
                return None;
            }
            let own = self.steps().iter().rev().find_map(|step| match step {
                CatalogStep::Set(changed, settings, _) if Arc::ptr_eq(changed, data) => Some(settings),
                _ => None,
            });
            let has_key = data.primary_key.is_some();
            let is_named = match own {
                Some(settings) => is_among(settings, table, has_key),
                None => data.of_settings(|settings| is_among(settings, table, has_key)),
            };
            let is_it =
                |index: &IndexData| index.definition.is_constraint && schema_and_name(&index.definition.name).1 == name;
            (is_named || data.indexes.which(is_it).iter().any(|index| self.has_index(index))).then_some(())
        });
        found.is_some()
    }

    /// Refuses a row that breaks a rule.
    pub(super) fn check_row(&self, data: &TableData, rules: &Rules, row: &[Cell<'_>]) -> Result<()> {
        debug_assert_eq!(row.len(), data.schema.columns().len(), "a cell for each column");
        let truth = |columns: &[usize], computed: &ComputedExpressions| {
            let cells: SmallVec<[Cell<'_>; 8]> = columns.iter().map(|column| row[*column]).collect();
            Ok(computed.truth(&cells)?)
        };
        match rules.broken(None, truth)? {
            Some(constraint) => Err(violated(data, constraint, shown(data.schema.columns(), row))),
            None => Ok(()),
        }
    }

    /// Refuses the newest version of a record, which this transaction has appended to set some columns, if it breaks a rule.
    pub(super) fn check_version(
        &self,
        data: &TableData,
        rules: &Rules,
        rid: Rid,
        changed: impl Iterator<Item = usize>,
    ) -> Result<()> {
        let changed: SmallVec<[usize; 8]> = changed.collect();
        let truth = |columns: &[usize], computed: &ComputedExpressions| {
            let read = data.storage.read(self.newest(), rid, columns, |cells| computed.truth(cells))?;
            debug_assert!(read.is_some(), "a version that was appended is not there");
            Ok(read.transpose()?.flatten())
        };
        let Some(constraint) = rules.broken(Some(&changed), truth)? else { return Ok(()) };
        let all: Vec<usize> = (0..data.schema.columns().len()).collect();
        let row = data.storage.read(self.newest(), rid, &all, |cells| shown(data.schema.columns(), cells))?;
        Err(violated(data, constraint, row.unwrap_or_default()))
    }

    /// Looks whether a table would take rows, but for their keys: the columns of the batch are those of the table. Nothing is put in.
    ///
    /// # Errors
    /// [`Error::WrongWidth`], [`Error::BadValue`], [`Error::NullInColumn`] and [`Error::CheckViolated`] as
    /// [`insert_batch`](Self::insert_batch), of the first row that is refused.
    pub fn check_batch(&mut self, table: &Table, rows: &RecordBatch) -> Result<()> {
        self.check_writable(table)?;
        let data = &table.data;
        let rows = &with_views(rows);
        let columns = batch_columns(data, 0..data.schema.columns().len(), rows)?;
        debug_assert_eq!(columns.len(), rows.num_columns(), "a column for each of the table's");
        let rules = self.rules(data)?;
        let unsure = rules.filter(|rules| !rules.are_right(rows));
        for at in 0..rows.num_rows() {
            let cells: SmallVec<[Cell<'_>; 16]> = columns.iter().map(|(_, array)| array.get(at)).collect();
            check_cells(&data.name, &data.schema, cells.iter().enumerate())?;
            unsure.as_ref().map_or(Ok(()), |rules| self.check_row(data, rules, &cells))?;
        }
        Ok(())
    }
}

/// The error of NULL in a column that takes none with the row that has it; any other as it is.
#[cold]
pub(super) fn told_with(error: Error, row: impl FnOnce() -> Option<String>) -> Error {
    match error {
        Error::NullInColumn { table, column, row: None } => Error::NullInColumn { table, column, row: row() },
        other => other,
    }
}

/// The error of a change that puts NULL into a column, with all of the row as it would be.
#[cold]
pub(super) fn with_whole_row(
    transaction: &Transaction,
    data: &TableData,
    (rid, changed): (Rid, &[(usize, Cell<'_>)]),
    error: Error,
) -> Error {
    told_with(error, || {
        let all: Vec<usize> = (0..data.schema.columns().len()).collect();
        let row = data.storage.read(transaction.newest(), rid, &all, |cells| {
            let mut cells = cells.to_vec();
            changed.iter().for_each(|(at, cell)| cells[*at] = *cell);
            shown(data.schema.columns(), &cells)
        });
        row.ok().flatten()
    })
}

fn violated(data: &TableData, constraint: &str, row: String) -> Error {
    Error::CheckViolated { table: data.name.to_string(), constraint: constraint.to_owned(), row }
}
