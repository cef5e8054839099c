//! Looking for the two ends of a reference: keys by their values, constraints by their names, all as of now.
use std::sync::Arc;

use lineage::Cell;
use types::{Rid, Value};

use crate::error::{Error, Result};
use crate::keys::data::IndexData;
use crate::keys::order::IndexKey;
use crate::state::table_data::TableData;
use crate::table::Table;
use crate::terms::constraints::{ForeignKey, Referrer};
use crate::terms::row::{FittedRow, shorten};
use crate::transaction::Transaction;

impl Transaction {
    /// The table that refers, and its constraint; `None` if it is gone.
    pub(super) fn constraint_of(&self, referrer: &Referrer) -> Result<Option<(Table, Arc<ForeignKey>)>> {
        let table = match self.table(&referrer.table) {
            Err(Error::NoSuchTable(_)) => return Ok(None),
            found => found?,
        };
        let key = self.rules(&table.data)?.and_then(|rules| rules.foreign_key(&referrer.constraint));
        Ok(key.map(|key| (table, key)))
    }

    /// The values of some columns of a record as they are now.
    pub(super) fn newest_values(&self, data: &TableData, rid: Rid, columns: &[usize]) -> Result<Option<Vec<Value>>> {
        let types = columns.iter().map(|column| data.schema.columns()[*column].data_type);
        let values = |cells: &[Cell<'_>]| {
            cells.iter().zip(types).map(|(cell, data_type)| lineage::value_of_cell(*cell, data_type)).collect()
        };
        Ok(data.storage.read(self.newest(), rid, columns, values)?)
    }

    /// The index over exactly these columns, of which no two rows have the same values.
    pub(super) fn key_over(&self, table: &Table, columns: &[usize]) -> Result<Arc<IndexData>> {
        debug_assert!(!columns.is_empty(), "a key without columns");
        let primary = table.primary_index().map(|index| index.data);
        let others = self.indexes(table).into_iter().map(|index| index.data).filter(|index| index.definition.is_key());
        let is_over = |index: &Arc<IndexData>| {
            index.columns().len() == columns.len() && columns.iter().all(|column| index.columns().contains(column))
        };
        let found = primary.into_iter().chain(others).find(is_over);
        found.ok_or_else(|| Error::NoKeyToReference { table: table.name().to_owned() })
    }

    /// The record that has these values in the columns of a key now, those of this transaction included.
    pub(super) fn newest_with(
        &self,
        data: &TableData,
        index: &IndexData,
        (columns, values): (&[usize], &[Value]),
    ) -> Result<Option<Rid>> {
        debug_assert_eq!(columns.len(), index.columns().len(), "invariant 7: the index is of other columns");
        let Some(key) = key_of(data, index, columns, values) else { return Ok(None) };
        data.fill(index)?;
        let (guard, view) = (&sync::pin(), self.newest());
        let found = index.at(guard, &key)?.find_pinned(guard, &key, |rid| {
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
pub(super) fn shown(data: &TableData, columns: &[usize], values: &[Value]) -> String {
    debug_assert_eq!(columns.len(), values.len(), "a value for each column");
    let names: Vec<&str> = columns.iter().map(|column| data.schema.columns()[*column].name.as_str()).collect();
    let value = |value: &Value| if value.is_null() { "null".to_owned() } else { value.to_string() };
    let values: Vec<String> = values.iter().map(value).collect();
    shorten(format!("({})=({})", names.join(", "), values.join(", ")))
}
