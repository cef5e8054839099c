//! The columns that an `INSERT` or `COPY` fills, and whole rows made of them.
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions, new_null_array};
use arrow_schema::{Field, Schema as ArrowSchema, SchemaRef};
use engine::{Column, Table};

use crate::error::{Result, SqlError};
use crate::values::assign::{Texts, assign};

/// A table and the columns to fill, in the order of the values.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) table: Table,
    columns: Vec<usize>,
    /// The table's columns, all of them nullable: the engine says which NULL is wrong, in better words.
    schema: SchemaRef,
}

impl Target {
    /// The target with these columns, given by name and where it stands; all columns where none is named.
    pub(crate) fn new(table: Table, names: &[(String, Option<usize>)]) -> Result<Target> {
        let mut columns = Vec::with_capacity(names.len());
        for (name, position) in names {
            let column = crate::names::find_column(&table, name, *position)?;
            if columns.contains(&column) {
                let message = format!("column \"{name}\" specified more than once");
                return Err(SqlError::new("42701", message).at(*position));
            }
            columns.push(column);
        }
        if columns.is_empty() {
            columns = (0..table.schema().columns().len()).collect();
        }
        let schema = nullable(table.schema().columns().iter());
        Ok(Target { table, columns, schema })
    }

    /// Keeps only the first `width` of the columns to fill.
    pub(crate) fn first(mut self, width: usize) -> Target {
        self.columns.truncate(width);
        self
    }

    /// The columns to fill.
    pub(crate) fn columns(&self) -> impl ExactSizeIterator<Item = &Column> {
        let all = self.table.schema().columns();
        self.columns.iter().map(|at| &all[*at])
    }

    /// Keeps only those of the columns to fill that pass; `keeps` is asked for their places among them.
    pub(crate) fn retain(&mut self, keeps: impl Fn(usize) -> bool) {
        let mut at = 0..;
        self.columns.retain(|_| at.next().is_some_and(&keeps));
    }

    /// The positions of the columns to fill.
    pub(crate) fn positions(&self) -> &[usize] {
        &self.columns
    }

    /// The positions of all other columns.
    pub(crate) fn left_out(&self) -> impl Iterator<Item = usize> {
        (0..self.schema.fields().len()).filter(|at| !self.columns.contains(at))
    }

    /// Casts a query's columns to those of the table.
    pub(crate) fn assign(&self, batch: &RecordBatch, texts: &[Texts]) -> Result<Vec<ArrayRef>> {
        let schema = batch.schema();
        let pairs = batch.columns().iter().zip(schema.fields()).zip(self.columns()).zip(texts);
        pairs
            .map(|(((array, field), column), texts)| assign(array, field, &column.name, column.data_type, *texts))
            .collect()
    }

    /// Whole rows of arrays for the columns to fill; the other columns are NULL.
    pub(crate) fn rows(&self, arrays: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
        self.rows_with(arrays, Vec::new(), rows)
    }

    /// Whole rows of arrays for the columns to fill, and for others by their positions; what is left is NULL.
    pub(crate) fn rows_with(
        &self,
        arrays: Vec<ArrayRef>,
        others: Vec<(usize, ArrayRef)>,
        rows: usize,
    ) -> Result<RecordBatch> {
        let mut all: Vec<Option<ArrayRef>> = vec![None; self.schema.fields().len()];
        for (at, array) in self.columns.iter().copied().zip(arrays).chain(others) {
            all[at] = Some(array);
        }
        let fields = self.schema.fields().iter();
        let filled = all.into_iter().zip(fields).map(|(array, field)| match array {
            Some(array) => array,
            None => new_null_array(field.data_type(), rows),
        });
        batch(self.schema.clone(), filled.collect(), rows)
    }
}

/// The Arrow schema of columns that may all hold NULL on their way to the engine.
pub(crate) fn nullable<'a>(columns: impl Iterator<Item = &'a Column>) -> SchemaRef {
    let field = |column: &Column| Field::new(&column.name, column.data_type.to_arrow(), true);
    Arc::new(ArrowSchema::new(columns.map(field).collect::<Vec<_>>()))
}

/// A batch with a number of rows that does not depend on there being a column.
pub(crate) fn batch(schema: SchemaRef, columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(schema, columns, &options)
        .map_err(|error| SqlError::new("XX000", error.to_string()))
}
