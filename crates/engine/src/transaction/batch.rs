//! Rows by the batch, as Arrow arrays. A batch that fails leaves nothing behind.
//!
//! Columns of text and bytes are kept as Arrow's views; the other layouts of strings and bytes, which most programs build,
//! are turned into views first.
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BinaryViewArray, RecordBatch, RecordBatchOptions, StringViewArray, UInt64Array};
use arrow_schema::{DataType as ArrowType, Field, Schema as ArrowSchema};
use lineage::{ArrayCells, Cell, Change};
use types::{Rid, Timestamp};

use super::Transaction;
use super::change::Done;
use super::columns::ColumnRows;
use super::locks::{hold_of, strength_of};
use super::rules::with_whole_row;
use crate::error::{Error, Result};
use crate::keys::computed::{KeysOfBatch, ROWS_AT_ONCE};
use crate::state::rules::Rules;
use crate::state::table_data::TableData;
use crate::table::Table;
use crate::table::read_view::ReadView;
use crate::terms::isolation::{Changed, LockWait, RowLock};
use crate::terms::row::{Cells, check_cells, check_width};

impl Transaction {
    /// Inserts rows given as Arrow arrays, a column for each of the table's, in its order; returns how many.
    ///
    /// Each array has the Arrow type of its column ([`types::DataType::to_arrow`]); text may be any of Arrow's layouts of
    /// strings, bytes any of those of bytes.
    ///
    /// # Errors
    /// [`Error::WrongWidth`] and [`Error::BadValue`] for other columns or types, and those of [`Transaction::insert`]; then no
    /// row of the batch is inserted.
    pub fn insert_batch(&mut self, table: &Table, rows: &RecordBatch) -> Result<u64> {
        self.check_writable(table)?;
        let data = &table.data;
        if data.array.is_some() {
            return self.insert_batch_in_array(data, rows);
        }
        let rows = &with_views(rows);
        let columns = batch_columns(data, 0..data.schema.columns().len(), rows)?;
        let columns: Vec<_> = columns.into_iter().map(|(_, cells)| cells).collect();
        self.whole(|transaction| {
            for first in (0..rows.num_rows()).step_by(ROWS_AT_ONCE) {
                transaction.go_on(first)?;
                let end = rows.num_rows().min(first + ROWS_AT_ONCE);
                let (part, slice) =
                    (ColumnRows { columns: &columns, rows: first..end }, rows.slice(first, end - first));
                let rules = transaction.rules(data)?;
                let are_right = rules.as_ref().is_none_or(|rules| rules.are_right(&slice));
                let refer_to_none = rules.as_ref().is_none_or(|rules| rules.foreign_keys().is_empty());
                match are_right && refer_to_none && part.fit(data) {
                    true => transaction.insert_columns(data, part, &slice)?,
                    false => transaction.insert_rows_of(data, part, &slice, (rules.as_deref(), are_right))?,
                }
            }
            Ok(rows.num_rows() as u64)
        })
    }

    /// Inserts some rows of a batch one by one; `slice` has the same rows. The caller knows the rules for
    /// them, and whether all rows are right.
    fn insert_rows_of(
        &mut self,
        data: &Arc<TableData>,
        part: ColumnRows<'_>,
        slice: &RecordBatch,
        (rules, are_right): (Option<&Rules>, bool),
    ) -> Result<()> {
        debug_assert_eq!(part.rows.len(), slice.num_rows(), "the same rows twice");
        let mut cells = Cells::with_capacity(part.columns.len());
        let keys = KeysOfBatch::new(&data.indexes.all(), slice);
        let unsure = rules.filter(|_| !are_right);
        for (at, row) in part.rows.enumerate() {
            cells.clear();
            cells.extend(part.columns.iter().map(|column| column.get(row)));
            check_cells(&data.name, &data.schema, cells.iter().enumerate())?;
            unsure.map_or(Ok(()), |rules| self.check_row(data, rules, &cells))?;
            self.insert_right(data, &cells, Some((&keys, at)), rules)?;
        }
        Ok(())
    }

    /// Sets `columns` of the rows named by `rids`, which were found in `view`, to the columns of `values` (same order, same
    /// length).
    ///
    /// Under READ COMMITTED a row that another transaction is changing is waited for, one that was deleted is passed over,
    /// and one that is newer than `view` is locked and named in the answer. Above, such rows are a conflict.
    ///
    /// # Errors
    /// [`Error::WrongWidth`], [`Error::BadValue`] or [`Error::NullInColumn`] if `values` do not fit the columns;
    /// [`Error::DuplicateKey`], [`Error::Expression`] and [`Error::Conflict`] as
    /// [`update_columns`](Self::update_columns); those of a write and of a wait. No row of the batch is changed then.
    pub fn update_batch(
        &mut self,
        table: &Table,
        rids: &UInt64Array,
        columns: &[usize],
        values: &RecordBatch,
        view: &ReadView,
    ) -> Result<Changed> {
        self.check_writable(table)?;
        let data = &table.data;
        if data.array.is_some() {
            return self.update_batch_in_array(data, rids, (columns, values), view);
        }
        let values = &with_views(values);
        debug_assert_eq!(rids.len(), values.num_rows(), "values for each row");
        let arrays = batch_columns(data, columns.iter().copied(), values)?;
        self.whole(|transaction| {
            let mut changed = Changed::default();
            for (row, rid) in rids.values().iter().enumerate() {
                transaction.go_on(row)?;
                let cells: Vec<(usize, Cell<'_>)> = arrays.iter().map(|(at, array)| (*at, array.get(row))).collect();
                check_cells(&data.name, &data.schema, cells.iter().map(|(at, cell)| (*at, cell)))
                    .map_err(|error| with_whole_row(transaction, data, (Rid::from_word(*rid), &cells), error))?;
                transaction.change_found(table, *rid, view.at(), Change::Update(&cells), &mut changed)?;
            }
            Ok(changed)
        })
    }

    /// Deletes the rows named by `rids`, which were found in `view`; the rest as in [`Transaction::update_batch`].
    ///
    /// # Errors
    /// [`Error::Conflict`] as [`delete`](Self::delete); those of a write and of a wait. No row of the batch is
    /// deleted then.
    pub fn delete_batch(&mut self, table: &Table, rids: &UInt64Array, view: &ReadView) -> Result<Changed> {
        self.check_writable(table)?;
        if table.data.array.is_some() {
            return self.delete_batch_in_array(&table.data, rids, view);
        }
        self.whole(|transaction| {
            let mut changed = Changed::default();
            for (row, rid) in rids.values().iter().enumerate() {
                transaction.go_on(row)?;
                transaction.change_found(table, *rid, view.at(), Change::Delete, &mut changed)?;
            }
            Ok(changed)
        })
    }

    /// An error before this row of a batch, if the transaction was interrupted. It looks once for many rows.
    #[inline]
    fn go_on(&self, row: usize) -> Result<()> {
        match row.is_multiple_of(ROWS_AT_ONCE) && self.is_interrupted() {
            true => Err(Error::Interrupted),
            false => Ok(()),
        }
    }

    fn change_found(
        &mut self,
        table: &Table,
        rid: u64,
        seen: Timestamp,
        change: Change<'_>,
        changed: &mut Changed,
    ) -> Result<()> {
        if !table.data.storage.contains(Rid::from_word(rid)) {
            return Ok(());
        }
        let strength = strength_of(hold_of(&table.data, change));
        match self.change(&table.data, Rid::from_word(rid), seen, change)? {
            Done::Changed => changed.rows += 1,
            Done::Gone => changed.gone.push(rid),
            Done::Stale => match self.lock_found(table, rid, strength, LockWait::Block, seen)? {
                RowLock::Gone | RowLock::Skipped => changed.gone.push(rid),
                RowLock::Locked | RowLock::Stale => changed.stale.push(rid),
            },
        }
        Ok(())
    }
}

/// The batch with its strings and bytes as views, whatever layout they came in.
pub(super) fn with_views(batch: &RecordBatch) -> RecordBatch {
    let columns: Vec<ArrayRef> = batch.columns().iter().map(with_view).collect();
    let is_own = |(new, old): (&ArrayRef, &ArrayRef)| Arc::ptr_eq(new, old);
    if columns.iter().zip(batch.columns()).all(is_own) {
        return batch.clone();
    }
    let fields = batch.schema_ref().fields().iter().zip(&columns);
    let fields = fields.map(|(field, array)| Field::new(field.name(), array.data_type().clone(), true));
    let schema = Arc::new(ArrowSchema::new(fields.collect::<Vec<_>>()));
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    let batch_of_views = RecordBatch::try_new_with_options(schema, columns, &options);
    debug_assert!(batch_of_views.is_ok(), "views are as long as what they are of: {batch_of_views:?}");
    batch_of_views.unwrap_or_else(|_| batch.clone())
}

fn with_view(array: &ArrayRef) -> ArrayRef {
    match array.data_type() {
        ArrowType::Utf8 => Arc::new(StringViewArray::from(array.as_string::<i32>())),
        ArrowType::LargeUtf8 => Arc::new(StringViewArray::from(array.as_string::<i64>())),
        ArrowType::Binary => Arc::new(BinaryViewArray::from(array.as_binary::<i32>())),
        ArrowType::LargeBinary => Arc::new(BinaryViewArray::from(array.as_binary::<i64>())),
        _ => array.clone(),
    }
}

/// The arrays of a batch as cells of the table's columns.
pub(super) fn batch_columns<'a>(
    data: &TableData,
    columns: impl ExactSizeIterator<Item = usize>,
    batch: &'a RecordBatch,
) -> Result<Vec<(usize, ArrayCells<'a>)>> {
    check_width(&data.name, columns.len(), batch.num_columns())?;
    let pair = |(at, array): (usize, &'a Arc<dyn Array>)| {
        let column = &data.schema.columns()[at];
        let expected = column.data_type.to_stored_arrow();
        if *array.data_type() != expected {
            return Err(Error::BadValue {
                table: data.name.to_string(),
                column: column.name.clone(),
                data_type: column.data_type,
                value: format!("of Arrow type {}, not {expected}", array.data_type()),
            });
        }
        Ok((at, ArrayCells::new(array.as_ref(), column.data_type)))
    };
    columns.zip(batch.columns()).map(pair).collect()
}
