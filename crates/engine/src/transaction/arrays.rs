//! Array tables: what a transaction writes to them is collected, and written in place at its commit.
//!
//! ```text
//! first write   the table is this transaction's alone until its end: other writers wait in its queue
//! write         into an overlay, which the transaction's own later statements read over what is committed
//! savepoint     remembers the overlay as it is; its leaves are shared
//! commit        redo from the overlay; then, with the latches of the tables held: keep pages for snapshots, take the number, write
//! rollback      the overlay is forgotten
//! ```
//!
//! An overlay counts in the memory budget. At the limit a statement fails and what it has written is forgotten.
//!
//! What can fail is done before the number is taken. As readers take their snapshots under the same latch, they see all of a commit
//! or nothing, and a commit that they do not see has a later number than whatever they see.
use std::sync::Arc;

use arrow_array::{RecordBatch, UInt64Array};
use lineage::Cell;
use types::{Rid, Schema, Value};

use super::Transaction;
use super::batch::{batch_columns, with_views};
use super::commit::Committed;
use super::notes::CatalogStep;
use crate::disk::redo;
use crate::error::{Error, Result};
use crate::state::array::data::{ArrayData, KEY_MAX};
use crate::state::array::leaf::{Overlay, Overlays, place_of};
use crate::state::table_data::TableData;
use crate::table::Table;
use crate::table::read_view::ReadView;
use crate::terms::isolation::{Changed, Isolation, LockWait, RowLock};
use crate::terms::row::{Cells, check_cells};
use crate::terms::settings::TableSettings;
use crate::terms::table_lock::Standing;
use crate::terms::table_name::TableId;

/// Rows after which a batch looks whether it is to stop.
const BETWEEN_CHECKS: usize = 1024;

impl Transaction {
    /// Gets an array table for this transaction alone.
    ///
    /// # Errors
    /// [`Error::ArrayChanged`] above READ COMMITTED if others have written to it since the transaction's snapshot.
    pub(super) fn enter_array(&mut self, data: &Arc<TableData>) -> Result<()> {
        if data.lock.standing() == Standing::Locked(self.id()) {
            // It may be locked for the sake of its definition, after others have written to it.
            self.check_there(data)?;
            return self.check_unchanged(data);
        }
        self.whole(|transaction| {
            transaction.lock_whole(data).map_err(|error| match (error, transaction.check_there(data)) {
                (Error::NoSuchTable(_), Err(changed)) => changed,
                (error, _) => error,
            })?;
            transaction.check_unchanged(data)
        })
    }

    /// Fails if others have written to the table since what this transaction may see.
    fn check_unchanged(&self, data: &TableData) -> Result<()> {
        match data.array().newest() <= self.newest_allowed() {
            true => Ok(()),
            false => Err(self.lose(Error::ArrayChanged(data.name.to_string()))),
        }
    }

    /// Makes a table that takes the place of another. Keys that the old one has room for are not too far from the others in it.
    pub(super) fn make_in_place(
        &mut self,
        old: &TableData,
        name: &str,
        schema: Schema,
        settings: TableSettings,
    ) -> Result<Arc<TableData>> {
        let new = self.make(name, schema, settings)?;
        if let (Some(array), Some(before)) = (&new.array, &old.array) {
            array.reserve(&new.name, before.leaf_count())?;
        }
        Ok(new)
    }

    fn overlay(&self, data: &TableData) -> Option<&Overlay> {
        self.arrays.as_ref().and_then(|arrays| arrays.get(&data.id))
    }

    /// The overlay of a table, to be written to. What views and savepoints have stays as it is.
    fn overlay_mut(&mut self, data: &TableData) -> &mut Overlay {
        debug_assert_eq!(data.lock.standing(), Standing::Locked(self.id()), "invariant 4: others could write, too");
        Arc::make_mut(self.arrays.get_or_insert_default()).entry(data.id).or_default()
    }

    /// The stored words of the row with a key, as this transaction has left it or others have.
    fn array_row(&self, data: &TableData, key: u64) -> Option<Vec<u64>> {
        let ((number, slot), array) = (place_of(key), data.array());
        match self.overlay(data).and_then(|overlay| overlay.leaf(number)) {
            Some(leaf) if leaf.touched >> slot & 1 == 1 => {
                let is_there = leaf.present >> slot & 1 == 1;
                is_there.then(|| (0..array.shape.width()).map(|place| leaf.word(place, slot)).collect())
            }
            _ => array.newest_row(key),
        }
    }

    /// Passes some columns of the row with a key to `take`, as the transaction sees it at this moment.
    pub(super) fn read_array<R>(
        &self,
        data: &Arc<TableData>,
        key: &[Value],
        columns: &[usize],
        take: impl FnOnce(&[Cell<'_>]) -> R,
    ) -> Result<Option<R>> {
        if let Some(reads) = self.reads() {
            reads.note_rows(data, &[], &[]);
        }
        let Some(key) = data.array_key(key)? else { return Ok(None) };
        let row = self.array_row(data, key);
        // What was read may have been committed just before.
        self.saw_anything();
        // Looked at afterwards: what was read is from before.
        self.check_unchanged(data)?;
        Ok(row.map(|row| take(&cells_of(data.array(), key, &row, columns))))
    }

    /// Inserts a row that has become cells.
    pub(super) fn insert_in_array(&mut self, data: &Arc<TableData>, cells: &[Cell<'_>]) -> Result<Rid> {
        self.anchor.check_memory_of(data)?;
        if let Some(rules) = self.rules(data)? {
            self.check_row(data, &rules, cells)?;
        }
        let array = data.array();
        let (whole, row) = array.shape.row(cells);
        let grows = self.overlay(data).map_or(0, |overlay| overlay.grows);
        let below = ArrayData::keys_below(array.rows().saturating_add_signed(grows)).max(array.keys_reserved());
        let Some(key) = u64::try_from(whole).ok().filter(|key| *key < below.min(KEY_MAX)) else {
            return Err(Error::ArrayKey { table: data.name.to_string(), key: whole, last: below - 1 });
        };
        if self.array_row(data, key).is_some() {
            let name = &data.schema.columns()[array.shape.key()].name;
            let (table, constraint) = (data.name.to_string(), data.settings().name_of_key(&data.name));
            return Err(Error::DuplicateKey { table, constraint, key: format!("({name})=({key})") });
        }
        let (number, slot) = place_of(key);
        array.reserve(&data.name, number + 1)?;
        let (width, overlay) = (array.shape.width(), self.overlay_mut(data));
        overlay.leaf_mut(number, width, &array.budget).set(slot, &row);
        overlay.grows += 1;
        debug_assert!(self.array_row(data, key).is_some(), "invariant 4: a row that was written is not there");
        Ok(Rid::from_word(key))
    }

    /// Sets columns of the row with a key; returns whether there is one.
    fn update_in_array(&mut self, data: &Arc<TableData>, key: u64, changes: &[(usize, Cell<'_>)]) -> Result<bool> {
        self.anchor.check_memory_of(data)?;
        let Some(mut row) = self.array_row(data, key) else { return Ok(false) };
        let shape = data.array().shape;
        for (column, cell) in changes {
            let Cell::Word(word) = cell else { unreachable!("columns of arrays are words, and never NULL") };
            match shape.place(*column) {
                Some(place) => row[place] = *word,
                None if *word == key => {}
                None => data.check_no_array("a change of the key", "DELETE the row and INSERT it with another key.")?,
            }
        }
        if let Some(rules) = self.rules(data)? {
            let all: Vec<usize> = (0..data.schema.columns().len()).collect();
            self.check_row(data, &rules, &cells_of(data.array(), key, &row, &all))?;
        }
        let (number, slot) = place_of(key);
        self.overlay_mut(data).leaf_mut(number, shape.width(), &data.array().budget).set(slot, &row);
        Ok(true)
    }

    /// Deletes the row with a key; returns whether there was one. Unlike in other tables a delete takes memory and makes no room.
    fn delete_in_array(&mut self, data: &Arc<TableData>, key: u64) -> Result<bool> {
        self.anchor.check_memory_of(data)?;
        if self.array_row(data, key).is_none() {
            return Ok(false);
        }
        let (number, slot) = place_of(key);
        let (array, overlay) = (data.array(), self.overlay_mut(data));
        overlay.leaf_mut(number, array.shape.width(), &array.budget).delete(slot);
        overlay.grows -= 1;
        debug_assert!(self.array_row(data, key).is_none(), "invariant 4: a row that was deleted is there");
        Ok(true)
    }

    /// Sets columns of the row that a key given as values names.
    pub(super) fn update_key_in_array(
        &mut self,
        data: &Arc<TableData>,
        key: &[Value],
        changes: &[(usize, Cell<'_>)],
    ) -> Result<bool> {
        let Some(key) = data.array_key(key)? else { return Ok(false) };
        self.update_in_array(data, key, changes)
    }

    /// Deletes the row that a key given as values names.
    pub(super) fn delete_key_in_array(&mut self, data: &Arc<TableData>, key: &[Value]) -> Result<bool> {
        data.array_key(key)?.map_or(Ok(false), |key| self.delete_in_array(data, key))
    }

    /// Inserts a batch of rows, or none of it.
    pub(super) fn insert_batch_in_array(&mut self, data: &Arc<TableData>, rows: &RecordBatch) -> Result<u64> {
        let rows = &with_views(rows);
        let columns = batch_columns(data, 0..data.schema.columns().len(), rows)?;
        self.whole(|transaction| {
            for row in 0..rows.num_rows() {
                transaction.check_going(row)?;
                let cells: Cells<'_> = columns.iter().map(|(_, column)| column.get(row)).collect();
                check_cells(&data.name, &data.schema, cells.iter().enumerate())?;
                transaction.insert_in_array(data, &cells)?;
            }
            Ok(rows.num_rows() as u64)
        })
    }

    /// Sets columns of the rows with these keys, which were found in `view`, to those of `values`; of all or none.
    pub(super) fn update_batch_in_array(
        &mut self,
        data: &Arc<TableData>,
        keys: &UInt64Array,
        (columns, values): (&[usize], &RecordBatch),
        view: &ReadView,
    ) -> Result<Changed> {
        self.check_current(data, view)?;
        let values = &with_views(values);
        let arrays = batch_columns(data, columns.iter().copied(), values)?;
        self.whole(|transaction| {
            let mut changed = Changed::default();
            for (row, key) in keys.values().iter().enumerate() {
                transaction.check_going(row)?;
                let cells: Vec<(usize, Cell<'_>)> = arrays.iter().map(|(at, array)| (*at, array.get(row))).collect();
                check_cells(&data.name, &data.schema, cells.iter().map(|(at, cell)| (*at, cell)))?;
                match transaction.update_in_array(data, *key, &cells)? {
                    true => changed.rows += 1,
                    false => changed.gone.push(*key),
                }
            }
            Ok(changed)
        })
    }

    /// Deletes the rows with these keys, which were found in `view`; all or none.
    pub(super) fn delete_batch_in_array(
        &mut self,
        data: &Arc<TableData>,
        keys: &UInt64Array,
        view: &ReadView,
    ) -> Result<Changed> {
        self.check_current(data, view)?;
        self.whole(|transaction| {
            let mut changed = Changed::default();
            for (row, key) in keys.values().iter().enumerate() {
                transaction.check_going(row)?;
                match transaction.delete_in_array(data, *key)? {
                    true => changed.rows += 1,
                    false => changed.gone.push(*key),
                }
            }
            Ok(changed)
        })
    }

    /// Refuses to change rows that were found before the table was this transaction's alone, if others have written since.
    fn check_current(&self, data: &TableData, view: &ReadView) -> Result<()> {
        match view.array_rows(data)?.image.at == data.array().newest() {
            true => Ok(()),
            false => Err(self.lose(Error::ArrayChanged(data.name.to_string()))),
        }
    }

    fn check_going(&self, row: usize) -> Result<()> {
        match row.is_multiple_of(BETWEEN_CHECKS) && self.is_interrupted() {
            true => Err(Error::Interrupted),
            false => Ok(()),
        }
    }

    /// Locks a row: as only whole array tables are locked, its table is this transaction's already.
    pub(super) fn lock_in_array(
        &mut self,
        table: &Table,
        key: u64,
        wait: LockWait,
        view: &ReadView,
    ) -> Result<RowLock> {
        if wait != LockWait::Block {
            table.data.check_no_array("NOWAIT or SKIP LOCKED", "Set lock_timeout: rows are locked by their table.")?;
        }
        if self.array_row(&table.data, key).is_none() {
            return Ok(RowLock::Gone);
        }
        let is_current = view.array_rows(&table.data)?.image.at == table.data.array().newest();
        Ok(if is_current { RowLock::Locked } else { RowLock::Stale })
    }

    /// The array tables that the commit writes to, with what it writes.
    fn written_arrays<'o>(&self, own: &'o Overlays) -> Vec<(Arc<TableData>, &'o Overlay)> {
        let of_id = |id: TableId| {
            self.steps().iter().find_map(|step| match step {
                CatalogStep::Locked(table) | CatalogStep::Made(table) if table.id == id => Some(table.clone()),
                _ => None,
            })
        };
        let written = own.iter().filter(|(_, overlay)| !overlay.leaves.is_empty());
        let found = written.map(|(id, overlay)| (of_id(*id), overlay));
        let tables: Vec<_> = found.filter_map(|(table, overlay)| Some((table?, overlay))).collect();
        debug_assert!(tables.is_sorted_by_key(|(table, _)| table.id), "latches are taken in the order of tables");
        tables.into_iter().filter(|(table, _)| !self.has_dropped(table)).collect()
    }

    /// Adds what was written to array tables to the redo.
    pub(super) fn log_arrays(&mut self) -> Result<()> {
        let Some(own) = self.arrays.clone() else { return Ok(()) };
        for (table, overlay) in self.written_arrays(&own) {
            if !self.is_logged(&table) {
                continue;
            }
            for (number, leaf) in &overlay.leaves {
                redo::put_array_rows(&mut self.redo, table.id, *number as u64, leaf, table.array().shape.width());
                self.pass_redo_on()?;
            }
        }
        Ok(())
    }

    /// Decides the commit with the latches of the array tables held that it writes to, and writes to them.
    pub(super) fn decide_with_arrays(&mut self, own: &Overlays) -> Result<Committed> {
        let tables = self.written_arrays(own);
        let mut latches: Vec<_> = tables.iter().map(|(table, _)| table.array().latch()).collect();
        for ((table, overlay), stored) in tables.iter().zip(&latches) {
            table.array().prepare(&table.name, stored, overlay)?;
        }
        let committed = self.decide()?;
        for ((table, overlay), stored) in tables.iter().zip(&mut latches) {
            let written = table.array().apply(stored, overlay, committed.at);
            written.expect("every page to be written was kept for the snapshots, and none has begun since");
        }
        Ok(committed)
    }

    /// Lets others write again to tables that were only locked, if that is all that was done to the catalog.
    pub(super) fn unlock_only(&mut self) -> bool {
        if self.has_changed_catalog() {
            return false;
        }
        for step in self.steps() {
            match step {
                CatalogStep::Locked(table) => {
                    debug_assert_eq!(table.lock.standing(), Standing::Locked(self.id()), "another transaction has it");
                    table.lock.unlock();
                }
                CatalogStep::InMode(table, mode) => table.modes.leave(self.id(), *mode),
                _ => {}
            }
        }
        self.catalog = None;
        true
    }

    /// Whether its views show nothing of array tables that is newer than they are.
    pub(super) fn reads_arrays_strictly(&self) -> bool {
        self.seen.is_some() || self.options.isolation != Isolation::ReadCommitted
    }
}

/// Columns of a row that is stored as these words.
fn cells_of(array: &ArrayData, key: u64, row: &[u64], columns: &[usize]) -> Vec<Cell<'static>> {
    let word = |column: &usize| Cell::Word(array.shape.place(*column).map_or(key, |place| row[place]));
    columns.iter().map(word).collect()
}
