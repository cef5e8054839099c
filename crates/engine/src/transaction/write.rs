//! Rows one by one, as values: insert, update, delete.
//!
//! Here values are checked and become cells, and a primary key its form in the index. What is then done with the cells
//! is in `insert` and `change`.
use std::sync::Arc;

use lineage::{Cell, Change, word_of_value};
use smallvec::SmallVec;
use types::{Column, Rid, Value};

use super::Transaction;
use super::change::Done;
use super::locks::{hold_of, strength_of};
use crate::error::{Error, Result};
use crate::state::table_data::TableData;
use crate::table::Table;
use crate::table::cell_rows::CellRows;
use crate::terms::isolation::LockWait;
use crate::terms::row::{FittedRow, check_width};
use crate::terms::shown_row::shown_values;
use crate::transaction::rules::told_with;

/// A row as it would be with changes.
fn shown_changed(columns: &[Column], mut row: Vec<Value>, changes: &[(usize, Value)]) -> String {
    debug_assert_eq!(columns.len(), row.len(), "a value for each column");
    changes.iter().for_each(|(at, value)| row[*at] = value.clone());
    shown_values(columns, &row)
}

impl Transaction {
    /// Inserts a row: one value for each column, in the table's order.
    ///
    /// # Errors
    /// - [`Error::WrongWidth`], [`Error::BadValue`] or [`Error::NullInColumn`] if the row does not fit the table's
    ///   columns.
    /// - [`Error::DuplicateKey`] if another row has its primary key, or its key of a unique index;
    ///   [`Error::Conflict`] if a transaction that has not ended may have written such a row, and this one does not
    ///   wait for it.
    /// - [`Error::Expression`] if an expression of an index has no value for the row.
    /// - Those of a write and of a wait.
    pub fn insert(&mut self, table: &Table, row: &[Value]) -> Result<Rid> {
        self.check_writable(table)?;
        let data = &table.data;
        check_width(&data.name, data.schema.columns().len(), row.len())?;
        let columns = data.schema.columns();
        let mut fitted = FittedRow::new(&data.name, columns, row.iter().enumerate())
            .map_err(|error| told_with(error, || Some(shown_values(columns, row))))?;
        match data.array.is_some() {
            true => self.insert_in_array(data, &fitted.all()),
            false => self.insert_cells(data, &fitted.all(), None),
        }
    }

    /// Inserts rows whose values are cells already, in their order.
    ///
    /// # Errors
    /// [`Error::WrongWidth`] if the last row is not complete, [`Error::NullInColumn`] if one has NULL in a column that does not take
    /// it; those of [`insert`](Self::insert) of the first row that is refused, where the rows before it are in.
    pub fn insert_rows(&mut self, rows: &CellRows<'_, '_>) -> Result<()> {
        let table = rows.table();
        self.check_writable(table)?;
        let data = &table.data;
        rows.for_each(|cells| match data.array.is_some() {
            true => self.insert_in_array(data, cells).map(drop),
            false => self.insert_cells(data, cells, None).map(drop),
        })
    }

    /// Sets columns of the row with this primary key; returns whether there is one.
    ///
    /// # Errors
    /// As [`update_columns`](Self::update_columns).
    pub fn update(&mut self, table: &Table, key: &[Value], changes: &[(&str, Value)]) -> Result<bool> {
        let position = |(name, value): &'_ (&str, Value)| Ok((table.data.position(name)?, value.clone()));
        let changes = changes.iter().map(position).collect::<Result<SmallVec<[(usize, Value); 4]>>>()?;
        self.update_columns(table, key, &changes)
    }

    /// Sets columns, named by their positions, of the row with this primary key; returns whether there is one.
    ///
    /// # Errors
    /// - [`Error::NoSuchColumn`] or [`Error::ColumnTwice`] if `changes` name no column of the table, or one twice.
    /// - [`Error::NoPrimaryKey`] or [`Error::WrongWidth`] if the table has no such key; [`Error::BadValue`] or
    ///   [`Error::NullInColumn`] if a value does not fit its column, the latter only where there is such a row.
    /// - [`Error::Conflict`] above READ COMMITTED if another transaction has changed the row: it has not ended, or it
    ///   has committed after this one's snapshot.
    /// - [`Error::DuplicateKey`] and [`Error::Expression`] as [`insert`](Self::insert); those of a write and of a
    ///   wait.
    pub fn update_columns(&mut self, table: &Table, key: &[Value], changes: &[(usize, Value)]) -> Result<bool> {
        self.check_writable(table)?;
        let data = &table.data;
        let columns = data.schema.columns();
        let (mut seen, mut words) = (0_u64, SmallVec::<[(usize, Cell<'_>); 8]>::new());
        for (i, (at, value)) in changes.iter().enumerate() {
            let Some(column) = columns.get(*at) else { return Err(data.no_such_position(*at)) };
            // Columns beyond the bits of the word share some, and are looked for one by one.
            let bit = 1 << (at % 64);
            if seen & bit != 0 && changes[..i].iter().any(|(earlier, _)| earlier == at) {
                return Err(Error::ColumnTwice { table: data.name.to_string(), column: column.name.clone() });
            }
            seen |= bit;
            if let Some(word) = word_of_value(value, column.data_type) {
                words.push((*at, Cell::Word(word)));
            }
        }
        if words.len() == changes.len() {
            return self.change_key(data, key, Change::Update(&words));
        }
        let values = changes.iter().map(|(at, value)| (*at, value));
        let mut fitted = match FittedRow::new(&data.name, data.schema.columns(), values) {
            Ok(fitted) => fitted,
            Err(error @ Error::NullInColumn { .. }) => match self.get(table, key)? {
                // Where there is no row, no column of one is NULL.
                None => return Ok(false),
                Some(row) => return Err(told_with(error, || Some(shown_changed(columns, row, changes)))),
            },
            Err(error) => return Err(error),
        };
        let values: Vec<(usize, Cell<'_>)> = fitted.cells().collect();
        self.change_key(data, key, Change::Update(&values))
    }

    /// Sets columns of the row with this primary key to what `compute` makes of its values in `columns`; returns whether there is
    /// such a row, or `None` if `compute` gives none, and nothing is changed. Under READ COMMITTED it computes again for a row that
    /// others have changed meanwhile.
    ///
    /// # Errors
    /// As [`update_columns`](Self::update_columns).
    pub fn update_computed(
        &mut self,
        table: &Table,
        given: &[Value],
        columns: &[usize],
        mut compute: impl FnMut(&[Value]) -> Option<Vec<(usize, Value)>>,
    ) -> Result<Option<bool>> {
        self.check_writable(table)?;
        let data = &table.data;
        data.check_positions(columns.iter().copied())?;
        let Some(key) = data.key_of_values(given)? else { return Ok(Some(false)) };
        loop {
            let (found, seen) = if data.array.is_some() {
                let whole = |cells: &[Cell<'_>]| (Rid::from_word(0), table.values_of(columns, cells));
                (self.read_array(data, given, columns, whole)?, self.at)
            } else {
                let glance = self.glance();
                let view = self.transactions().view(glance.snapshot);
                (
                    data.read(view, &key, columns, |rid, cells| (rid, table.values_of(columns, cells)))?,
                    glance.snapshot.at,
                )
            };
            if let Some(reads) = self.reads() {
                reads.note_key(data, key.clone(), found.as_ref().map(|(rid, _)| *rid));
            }
            let Some((rid, values)) = found else { return Ok(Some(false)) };
            let Some(changes) = compute(&values) else { return Ok(None) };
            let fields = data.schema.columns();
            let fitted = FittedRow::new(&data.name, fields, changes.iter().map(|(at, value)| (*at, value)));
            let row = || Some(shown_changed(fields, self.get(table, given).ok()??, &changes));
            let mut fitted = fitted.map_err(|error| told_with(error, row))?;
            let cells: Vec<(usize, Cell<'_>)> = fitted.cells().collect();
            if data.array.is_some() {
                return self.update_key_in_array(data, given, &cells).map(Some);
            }
            match self.change(data, rid, seen, Change::Update(&cells))? {
                Done::Changed => return Ok(Some(true)),
                Done::Gone => return Ok(Some(false)),
                // Locked, it is not changed again before its values are read.
                Done::Stale => {
                    let strength = strength_of(hold_of(data, Change::Update(&cells)));
                    self.lock_found(table, rid.word(), strength, LockWait::Block, seen).map(drop)?
                }
            }
        }
    }

    /// Deletes the row with this primary key; returns whether there was one.
    ///
    /// # Errors
    /// [`Error::NoPrimaryKey`], [`Error::WrongWidth`] or [`Error::BadValue`] if the table has no such key;
    /// [`Error::Conflict`] as [`update_columns`](Self::update_columns); those of a write and of a wait.
    pub fn delete(&mut self, table: &Table, key: &[Value]) -> Result<bool> {
        self.check_writable(table)?;
        self.change_key(&table.data, key, Change::Delete)
    }

    /// Appends a version to the record with this key; false if there is none.
    fn change_key(&mut self, data: &Arc<TableData>, key: &[Value], change: Change<'_>) -> Result<bool> {
        match (data.array.is_some(), change) {
            (true, Change::Update(values)) => return self.update_key_in_array(data, key, values),
            (true, Change::Delete) => return self.delete_key_in_array(data, key),
            (false, _) => {}
        }
        let Some(key) = data.key_of_values(key)? else { return Ok(false) };
        self.change_by_key(data, key, change)
    }
}
