//! Tables that a program has in memory and gives its session, to be read under a name.
//!
//! They belong to the session and to no transaction; a table of the database hides one of the same name. Columns have the Arrow types
//! that the database's own columns have, so that operators and functions meet no others: what differs is cast once, here.
use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_cast::cast;
use arrow_schema::{DataType as ArrowType, Field, Schema, SchemaRef};
use datafusion::catalog::{MemTable, TableProvider};
use engine::DataType;

use crate::error::{Result, SqlError};

/// The registered tables by their names.
#[derive(Clone, Default)]
pub(crate) struct Registered(Arc<BTreeMap<String, Arc<dyn TableProvider>>>);

/// The type that a column of this type gets.
fn taken(found: &ArrowType) -> ArrowType {
    match found {
        // Of its values not all are numbers of 64 bits with a sign.
        ArrowType::Decimal256(..) => found.clone(),
        _ => DataType::from_arrow(found).map_or_else(|| found.clone(), DataType::to_arrow),
    }
}

fn table(schema: &SchemaRef, batches: &[RecordBatch]) -> Result<MemTable, String> {
    let field = |field: &Arc<Field>| Field::new(field.name(), taken(field.data_type()), true);
    let wanted = Arc::new(Schema::new(schema.fields().iter().map(field).collect::<Vec<_>>()));
    let mut taken = Vec::with_capacity(batches.len());
    for batch in batches {
        let columns = batch.columns().iter().zip(wanted.fields());
        let columns = columns.map(|(column, field)| match column.data_type() == field.data_type() {
            true => Ok(column.clone()),
            false => cast(column, field.data_type()).map_err(|error| error.to_string()),
        });
        let columns = columns.collect::<Result<Vec<_>, String>>()?;
        taken.push(super::target::batch(wanted.clone(), columns, batch.num_rows()).map_err(|error| error.message)?);
    }
    MemTable::try_new(wanted, vec![taken]).map_err(|error| error.to_string())
}

impl Registered {
    /// Adds a table, in place of one of the same name.
    ///
    /// # Errors
    /// 42804 if its batches are not of this schema, or a column does not become one of SQL.
    pub(crate) fn add(&mut self, name: &str, schema: &SchemaRef, batches: &[RecordBatch]) -> Result<()> {
        let table = table(schema, batches);
        let table = table.map_err(|why| SqlError::mismatch(format!("\"{name}\" can't be read as a table: {why}")))?;
        Arc::make_mut(&mut self.0).insert(name.to_owned(), Arc::new(table));
        Ok(())
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Removes a table; whether there was one.
    pub(crate) fn remove(&mut self, name: &str) -> bool {
        Arc::make_mut(&mut self.0).remove(name).is_some()
    }

    pub(crate) fn get(&self, name: &str) -> Option<Arc<dyn TableProvider>> {
        self.0.get(name).cloned()
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }
}
