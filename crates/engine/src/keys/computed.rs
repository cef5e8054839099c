//! Keys that are worked out: of indexes of expressions, and of a part of a table.
//!
//! ```text
//! cells of the columns that the index reads ──> one batch ──> the predicate ──> expressions of the rows for which it holds
//!                                                                  └ the others have no key, and no entry
//! ```
//!
//! The engine does not know the meaning of an expression. An [`ExpressionCompiler`], which SQL supplies where a
//! database is opened, makes a [`RowExpression`] of its text.
//!
//! An expression may fail for a row, as a division by zero does. Then the statement that writes the row fails, and nothing of
//! it stays. A version of a row that is older than the index may be one for which it fails all the same: that one has no key,
//! as those have none that are outside of the predicate. Reading through an index works keys out again, many rows at a time, so
//! that each row is judged by the version that the reader sees.
use std::any::Any;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions};
use arrow_schema::{Field, Schema as ArrowSchema, SchemaRef};
use arrow_select::filter::filter_record_batch;
use lineage::{ArrayCells, Cell, ColumnBuilder, value_of_cell};
use smallvec::smallvec;
use types::{Column, DataType, Value};

use super::definition::{IndexDefinition, IndexExpression, IndexMethod, IndexPart};
use crate::error::{ExpressionError, Result};
use crate::keys::data::IndexData;
use crate::keys::order::{IndexKey, Keyed, RowKeys};
use crate::terms::row::Cells;

/// Makes of the text of an expression what works it out.
pub trait ExpressionCompiler: Send + Sync {
    /// Compiles an expression for rows of these columns, which are those that it reads and perhaps others.
    ///
    /// # Errors
    /// What is wrong with the text.
    fn compile(
        &self,
        expression: &IndexExpression,
        columns: &[Column],
    ) -> Result<Arc<dyn RowExpression>, ExpressionError>;
}

/// An expression that can be worked out for rows.
pub trait RowExpression: Any + Send + Sync {
    /// Its value for each of the rows, as an array of exactly the Arrow form of its type. The columns are those
    /// that it was compiled for, in the same order. The value for a row depends on that row alone.
    ///
    /// # Errors
    /// If it has no value for one of the rows.
    fn evaluate(&self, rows: &RecordBatch) -> Result<ArrayRef, ExpressionError>;
}

/// Where a part of a key comes from.
enum Source {
    /// From the column that stands here in a batch.
    Column(usize),
    Expression(Arc<dyn RowExpression>),
}

/// The compiled expressions of an index.
pub(crate) struct ComputedExpressions {
    schema: SchemaRef,
    /// of the columns of a batch
    types: Box<[DataType]>,
    sources: Box<[Source]>,
    /// of the parts of a key
    part_types: Box<[DataType]>,
    predicate: Option<Arc<dyn RowExpression>>,
}

impl ComputedExpressions {
    /// Compiles the expressions of an index that reads these columns of a table.
    pub(crate) fn new(
        definition: &IndexDefinition,
        table: &[Column],
        reads: &[usize],
        compiler: &dyn ExpressionCompiler,
    ) -> Result<ComputedExpressions, ExpressionError> {
        debug_assert!(
            definition.reads().iter().all(|column| reads.contains(column)),
            "{definition:?} reads more columns than {reads:?}"
        );
        let columns: Vec<Column> = reads.iter().map(|column| table[*column].clone()).collect();
        let field = |column: &Column| Field::new(&column.name, column.data_type.to_stored_arrow(), true);
        let place = |column: usize| reads.iter().position(|read| *read == column).unwrap_or(0);
        let source = |part: &IndexPart| match part {
            IndexPart::Column(column) => Ok(Source::Column(place(*column))),
            IndexPart::Expression(expression) => compiler.compile(expression, &columns).map(Source::Expression),
        };
        let part_type = |part: &IndexPart| match part {
            IndexPart::Column(column) => table[*column].data_type,
            IndexPart::Expression(expression) => expression.data_type,
        };
        Ok(ComputedExpressions {
            schema: Arc::new(ArrowSchema::new(columns.iter().map(field).collect::<Vec<_>>())),
            types: columns.iter().map(|column| column.data_type).collect(),
            sources: definition.parts.iter().map(source).collect::<Result<_, _>>()?,
            part_types: definition.parts.iter().map(part_type).collect(),
            predicate: definition.predicate.as_ref().map(|text| compiler.compile(text, &columns)).transpose()?,
        })
    }

    pub(crate) fn expression(&self, part: usize) -> Option<&Arc<dyn RowExpression>> {
        match self.sources.get(part)? {
            Source::Column(_) => None,
            Source::Expression(expression) => Some(expression),
        }
    }

    pub(crate) fn predicate(&self) -> Option<&Arc<dyn RowExpression>> {
        self.predicate.as_ref()
    }

    fn builders(&self, capacity: usize) -> Vec<ColumnBuilder> {
        self.types.iter().map(|data_type| ColumnBuilder::new(*data_type, capacity)).collect()
    }

    fn batch(&self, builders: &mut [ColumnBuilder], rows: usize) -> Result<RecordBatch, ExpressionError> {
        self.batch_of(builders.iter_mut().map(ColumnBuilder::finish).collect(), rows)
    }

    /// A batch of the columns that the index reads.
    fn batch_of(&self, arrays: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch, ExpressionError> {
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(self.schema.clone(), arrays, &options).map_err(|error| broken(&error))
    }

    /// For which of the rows the predicate holds; `None` if for all of them.
    fn passing(&self, rows: &RecordBatch) -> Result<Option<BooleanArray>, ExpressionError> {
        let Some(predicate) = &self.predicate else { return Ok(None) };
        let passes = checked(predicate.evaluate(rows)?, DataType::Boolean, rows.num_rows())?;
        let passes: BooleanArray = passes.as_boolean().iter().map(|passes| Some(passes == Some(true))).collect();
        Ok((passes.true_count() < rows.num_rows()).then_some(passes))
    }

    /// The parts of the keys of rows, an array for each part.
    fn parts(&self, rows: &RecordBatch) -> Result<Vec<ArrayRef>, ExpressionError> {
        let part = |(source, data_type): (&Source, &DataType)| match source {
            Source::Column(at) => Ok(rows.column(*at).clone()),
            Source::Expression(expression) => checked(expression.evaluate(rows)?, *data_type, rows.num_rows()),
        };
        self.sources.iter().zip(&self.part_types).map(part).collect()
    }

    /// What its one expression, which is a condition, is for a row with these cells in the columns that it reads.
    ///
    /// # Errors
    /// If it has no value for the row.
    pub(crate) fn truth(&self, cells: &[Cell<'_>]) -> Result<Option<bool>, ExpressionError> {
        debug_assert_eq!(cells.len(), self.types.len(), "a cell for each column that the condition reads");
        let mut builders = self.builders(1);
        builders.iter_mut().zip(cells).for_each(|(builder, cell)| builder.push(*cell));
        let (batch, mut truth) = (self.batch(&mut builders, 1)?, None);
        self.for_each(&batch, |parts| {
            truth = parts.and_then(|parts| match parts.first() {
                Some(Cell::Word(word)) => Some(*word != 0),
                _ => None,
            });
        })?;
        Ok(truth)
    }

    /// Whether its one expression, which is a condition, is false for none of some rows, of which the columns are given that it reads.
    ///
    /// # Errors
    /// If it has no value for one of the rows.
    pub(crate) fn is_nowhere_false(&self, arrays: Vec<ArrayRef>, rows: usize) -> Result<bool, ExpressionError> {
        let (batch, mut is_so) = (self.batch_of(arrays, rows)?, true);
        self.for_each(&batch, |parts| is_so &= parts.is_none_or(|parts| parts.first() != Some(&Cell::Word(0))))?;
        Ok(is_so)
    }

    /// Passes on the parts of the keys of the rows that have one, and `None` for each that has not, in order.
    fn for_each(&self, rows: &RecordBatch, mut take: impl FnMut(Option<&[Cell<'_>]>)) -> Result<(), ExpressionError> {
        let passing = self.passing(rows)?;
        if passing.as_ref().is_some_and(|passing| passing.true_count() == 0) {
            (0..rows.num_rows()).for_each(|_| take(None));
            return Ok(());
        }
        let parts = match &passing {
            None => self.parts(rows)?,
            Some(passing) => self.parts(&filter_record_batch(rows, passing).map_err(|error| broken(&error))?)?,
        };
        let parts = parts.iter().zip(&self.part_types).map(|(part, of)| ArrayCells::new(part.as_ref(), *of));
        let (parts, mut next) = (parts.collect::<Vec<_>>(), 0);
        for row in 0..rows.num_rows() {
            if passing.as_ref().is_some_and(|passing| !passing.value(row)) {
                take(None);
                continue;
            }
            let cells: Cells<'_> = parts.iter().map(|part| part.get(next)).collect();
            take(Some(&cells));
            next += 1;
        }
        debug_assert_eq!(
            next,
            passing.map_or(rows.num_rows(), |passing| passing.true_count()),
            "invariant 7: a row within the predicate has no key"
        );
        Ok(())
    }
}

/// An array that an expression gave, if it is what it has to be.
fn checked(array: ArrayRef, data_type: DataType, rows: usize) -> Result<ArrayRef, ExpressionError> {
    match *array.data_type() == data_type.to_stored_arrow() && array.len() == rows {
        true => Ok(array),
        false => Err(broken(&format!("{} values of {} for {rows} rows", array.len(), array.data_type()))),
    }
}

fn broken(why: &dyn std::fmt::Display) -> ExpressionError {
    ExpressionError::new("XX000", format!("an expression of an index gave what it must not: {why}"))
}

impl IndexData {
    #[inline]
    fn keyed_of_parts(&self, parts: &[Cell<'_>]) -> RowKeys {
        let definition = &self.definition;
        if definition.method == IndexMethod::Gin {
            return self.keyed_of_terms(parts);
        }
        let is_compared = definition.is_unique() && (definition.nulls_equal || !parts.contains(&Cell::Null));
        smallvec![Keyed { key: self.shape.key(parts), is_compared }]
    }

    #[inline(never)]
    fn keyed_of_terms(&self, parts: &[Cell<'_>]) -> RowKeys {
        let mut keys = RowKeys::new();
        self.for_each_term_key(parts, |key| keys.push(Keyed { key, is_compared: false }));
        debug_assert!(keys.is_sorted_by(|left, right| left.key < right.key), "invariant 7: a row has a term twice");
        keys
    }

    /// The keys under which a row is entered, from its cells in [`IndexData::columns`].
    ///
    /// # Errors
    /// [`Error::Expression`](crate::error::Error::Expression) if an expression fails for it.
    #[inline]
    pub(crate) fn keyed(&self, cells: &[Cell<'_>]) -> Result<RowKeys> {
        match self.computed() {
            None => Ok(self.keyed_of_parts(cells)),
            Some(computed) => {
                Ok(self.worked_out(computed, cells, |parts| self.keyed_of_parts(parts))?.unwrap_or_default())
            }
        }
    }

    /// The keys of rows, from the columns that the index reads.
    fn keys_of(&self, computed: &ComputedExpressions, rows: &RecordBatch) -> Result<Vec<RowKeys>, ExpressionError> {
        let mut keys = Vec::with_capacity(rows.num_rows());
        computed
            .for_each(rows, |parts| keys.push(parts.map_or_else(RowKeys::new, |parts| self.keyed_of_parts(parts))))?;
        debug_assert_eq!(keys.len(), rows.num_rows(), "invariant 7: each row is told its key, or that it has none");
        Ok(keys)
    }

    /// The value of one row.
    #[inline(never)]
    fn worked_out<T>(
        &self,
        computed: &ComputedExpressions,
        cells: &[Cell<'_>],
        mut of_parts: impl FnMut(&[Cell<'_>]) -> T,
    ) -> Result<Option<T>, ExpressionError> {
        debug_assert_eq!(cells.len(), self.columns().len(), "a cell for each column that the index reads");
        let mut builders = computed.builders(1);
        builders.iter_mut().zip(cells).for_each(|(builder, cell)| builder.push(*cell));
        let (batch, mut found) = (computed.batch(&mut builders, 1)?, None);
        computed.for_each(&batch, |parts| found = parts.map(&mut of_parts))?;
        Ok(found)
    }

    /// The keys under which a version with these cells is found; none if that can't be told.
    #[inline]
    pub(crate) fn keys(&self, cells: &[Cell<'_>]) -> RowKeys {
        self.keyed(cells).unwrap_or_default()
    }

    /// Whether a version with these cells is found under a key.
    #[inline]
    pub(crate) fn has_key(&self, cells: &[Cell<'_>], key: &IndexKey) -> bool {
        self.keys(cells).iter().any(|keyed| keyed.key == *key)
    }

    /// The keys of a row, whose cell of a column `cell` returns.
    #[inline]
    pub(crate) fn keyed_row<'r>(&self, cell: impl Fn(usize) -> Cell<'r>) -> Result<RowKeys> {
        if let [column] = *self.columns() {
            return self.keyed(&[cell(column)]);
        }
        let cells: Cells<'_> = self.columns().iter().map(|column| cell(*column)).collect();
        self.keyed(&cells)
    }

    /// The values of the parts of a version's key, from its cells in [`IndexData::columns`]; `None` if it has no key.
    pub(crate) fn part_values(&self, cells: &[Cell<'_>]) -> Option<Vec<Value>> {
        let values = |parts: &[Cell<'_>]| -> Vec<Value> {
            let parts = parts.iter().zip(&self.key_columns);
            parts.map(|(cell, column)| value_of_cell(*cell, column.data_type)).collect()
        };
        match self.computed() {
            None => Some(values(cells)),
            Some(computed) => self.worked_out(computed, cells, values).ok().flatten(),
        }
    }

    /// The key of a row as it stands in a message.
    pub(crate) fn describe(&self, cells: &[Cell<'_>]) -> String {
        let values = |parts: &[Cell<'_>]| -> Vec<String> {
            let text = |(cell, column): (&Cell<'_>, &Column)| match cell {
                Cell::Null => "null".to_owned(),
                cell => value_of_cell(*cell, column.data_type).to_string(),
            };
            parts.iter().zip(&self.key_columns).map(text).collect()
        };
        let values = match self.computed() {
            None => values(cells),
            Some(computed) => self.worked_out(computed, cells, values).ok().flatten().unwrap_or_default(),
        };
        let names: Vec<&str> = self.key_columns.iter().map(|column| column.name.as_str()).collect();
        format!("({})=({})", names.join(", "), values.join(", "))
    }
}

/// Rows that have their keys worked out together.
pub(crate) const ROWS_AT_ONCE: usize = 1024;

/// The keys of the rows of a batch, in the indexes that have their keys worked out.
pub(crate) struct KeysOfBatch(Vec<(Arc<IndexData>, Vec<RowKeys>)>);

impl KeysOfBatch {
    /// Works out the keys of rows that have the columns of the table, in their Arrow form. Where that fails for one of them,
    /// each is left to be worked out when it is its turn, so that what is wrong is told in the order of the rows.
    pub(crate) fn new(indexes: &[Arc<IndexData>], rows: &RecordBatch) -> KeysOfBatch {
        let keys = |index: &Arc<IndexData>| {
            let computed = index.computed()?;
            let arrays = index.columns().iter().map(|column| rows.column(*column).clone()).collect();
            let batch = computed.batch_of(arrays, rows.num_rows()).ok()?;
            Some((index.clone(), index.keys_of(computed, &batch).ok()?))
        };
        KeysOfBatch(indexes.iter().filter_map(keys).collect())
    }

    /// The keys in an index of the row at this place of the batch, whose cell of a column `cell` returns.
    pub(crate) fn keyed<'r>(
        &self,
        index: &Arc<IndexData>,
        at: usize,
        cell: impl Fn(usize) -> Cell<'r>,
    ) -> Result<RowKeys> {
        match self.0.iter().find(|(of, _)| Arc::ptr_eq(of, index)) {
            Some((_, keys)) => {
                debug_assert!(
                    at > 0 || index.keyed_row(cell).is_ok_and(|alone| alone == keys[0]),
                    "invariant 7: a row has other keys by itself than in its batch"
                );
                Ok(keys[at].clone())
            }
            None => index.keyed_row(cell),
        }
    }
}

/// Works out the keys of many rows, and passes each row on with each key that it is entered under, in order.
pub(crate) struct KeysOfRows<'i, T, F> {
    index: &'i IndexData,
    take: F,
    /// of an index that has its keys worked out
    builders: Vec<ColumnBuilder>,
    rows: Vec<T>,
}

impl<'i, T: Copy, F: FnMut(T, Result<Keyed>)> KeysOfRows<'i, T, F> {
    /// To be given the rows of an index; `take` gets them, at the latest when it is told that there are no more.
    pub(crate) fn new(index: &'i IndexData, take: F) -> KeysOfRows<'i, T, F> {
        let builders = index.computed().map_or_else(Vec::new, |computed| computed.builders(ROWS_AT_ONCE));
        KeysOfRows { index, take, builders, rows: Vec::new() }
    }

    /// Takes the cells of a row in [`IndexData::columns`].
    #[inline]
    pub(crate) fn push(&mut self, row: T, cells: &[Cell<'_>]) {
        if self.index.computed().is_none() {
            let keys = self.index.keyed_of_parts(cells);
            return self.give(row, keys);
        }
        debug_assert_eq!(cells.len(), self.builders.len(), "a cell for each column that the index reads");
        self.builders.iter_mut().zip(cells).for_each(|(builder, cell)| builder.push(*cell));
        self.rows.push(row);
        if self.rows.len() == ROWS_AT_ONCE {
            self.finish();
        }
    }

    /// There are no more rows.
    pub(crate) fn finish(&mut self) {
        let (Some(computed), false) = (self.index.computed(), self.rows.is_empty()) else { return };
        let rows = std::mem::take(&mut self.rows);
        let batch = match computed.batch(&mut self.builders, rows.len()) {
            Ok(batch) => batch,
            Err(error) => return rows.into_iter().for_each(|row| (self.take)(row, Err(error.clone().into()))),
        };
        match self.index.keys_of(computed, &batch) {
            Ok(keys) => rows.into_iter().zip(keys).for_each(|(row, keys)| self.give(row, keys)),
            // One of them fails, and the others are to have their keys.
            Err(_) => {
                for (at, row) in rows.into_iter().enumerate() {
                    match self.index.keys_of(computed, &batch.slice(at, 1)) {
                        Ok(keys) => self.give(row, keys.into_iter().flatten()),
                        Err(error) => (self.take)(row, Err(error.into())),
                    }
                }
            }
        }
    }

    fn give(&mut self, row: T, keys: impl IntoIterator<Item = Keyed>) {
        keys.into_iter().for_each(|keyed| (self.take)(row, Ok(keyed)));
    }
}
