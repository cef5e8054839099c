//! One table: its storage, its primary key, and reading it without a transaction.
//!
//! Imports the handle of the database and what is below it; transactions and the methods of the handle import it.
//!
//! | module | subject |
//! |---|---|
//! | `read_view`, `read_set` | a snapshot that is held; what a serializable transaction has read |
//! | `index_asked`, `index_walk` | what an index is asked for, as its entries know it; its entries in use |
//! | `index_scan`, `key_runs` | reading rows through it; rows that lie side by side |
//! | `nearest`, `index_pairs`, `batch_search` | rows by their distance from a point; rows of many windows, of many values at once |
//! | `point_access`, `cell_rows` | reads and writes by key, prepared; rows of which each value is a cell |
//! | `totals` | counts, sums and extremes of columns |
//! | `past`, `change_order` | the versions of a row, and changes between commits |
//! | `array_rows` | the rows of array tables |
//! | `bare` | the storage without transactions, to measure them |
pub(crate) mod array_rows;
pub(crate) mod bare;
pub(crate) mod batch_search;
pub(crate) mod cell_rows;
pub(crate) mod change_order;
pub(crate) mod found_rows;
mod index_asked;
pub(crate) mod index_pairs;
pub(crate) mod index_scan;
pub(crate) mod index_walk;
mod key_pieces;
pub(crate) mod key_runs;
pub(crate) mod nearest;
pub(crate) mod newest_rows;
pub(crate) mod past;
pub(crate) mod point_access;
pub(crate) mod read_set;
pub(crate) mod read_view;
pub(crate) mod seen;
pub(crate) mod totals;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::SchemaRef;
use lineage::{
    Cell, ColumnBuilder, Encoding, GatheredColumn, Projection, Request, SplitRange, TableStatistics, TableStats, View,
    value_of_cell,
};
use smallvec::SmallVec;
use types::{Rid, Schema, Snapshot, Timestamp, TxnId, Value};

use crate::background::read_ahead::ReadAhead;
use crate::database::handle::Database;
use crate::error::{Error, Result};
use crate::keys::data::Index;
use crate::state::array::data::ArrayData;
use crate::state::array::image::ArrayRows;
use crate::state::table_data::{ScanOptions, TableData};
use crate::table::read_view::{ReadView, Sight};
use crate::terms::outcomes::Transactions;
use crate::terms::settings::TableSettings;
use crate::terms::view_definition::ViewDefinition;

/// A handle to one table; cheap to clone.
#[derive(Clone)]
pub struct Table {
    pub(crate) database: Database,
    pub(crate) data: Arc<TableData>,
    /// its name in the transaction that has renamed it, as long as that has not committed
    renamed: Option<Arc<str>>,
}

/// The memory that a table takes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[allow(missing_docs, reason = "the names say it")]
pub struct TableMemory {
    pub table: String,
    pub insert_bytes: u64,
    pub base_bytes: u64,
    pub tail_bytes: u64,
    pub history_bytes: u64,
    pub index_bytes: u64,
    /// The memory that evicted pages would take; the other figures are of memory in use.
    pub evicted_bytes: u64,
}

impl Table {
    /// A handle under the name that all know.
    pub(crate) fn of(database: Database, data: Arc<TableData>) -> Table {
        Table { database, data, renamed: None }
    }

    /// The handle under the name by which a transaction has found it, if that name is of its own making.
    pub(crate) fn found_as(self, name: &str, finder: impl Into<Option<TxnId>>) -> Table {
        let is_other = *self.data.name != *name;
        let catalog = &self.database.shared.core.catalog;
        let is_own = is_other && finder.into().is_some_and(|finder| catalog.is_claimed_by(name, finder));
        Table { renamed: is_own.then(|| Arc::from(name)), ..self }
    }

    /// The newest name; in a transaction that has renamed the table, that which it has given it.
    pub fn name(&self) -> &str {
        self.renamed.as_deref().unwrap_or(&self.data.name)
    }

    /// Tells it from every other table of its database, also from those that had its name or will have it.
    pub fn id(&self) -> u32 {
        self.data.id
    }

    /// The columns and the primary key.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.data.schema
    }

    /// The index of the primary key, if there is one, for reading ranges of it.
    pub fn primary_index(&self) -> Option<Index> {
        self.data.primary_key.as_ref().map(|primary_key| Index { data: primary_key.index.clone() })
    }

    /// The settings of the table.
    pub fn settings(&self) -> TableSettings {
        self.data.settings()
    }

    /// The query of the table, if it is a view.
    pub fn view(&self) -> Option<&ViewDefinition> {
        self.data.view.as_ref()
    }

    /// Whether it is a materialized view, whose rows come from a query.
    pub fn is_materialized(&self) -> bool {
        self.data.is_materialized
    }

    /// Whether its layout is `array`: the key of a row is its place, and there are no indexes and no history.
    pub fn is_array(&self) -> bool {
        self.data.array.is_some()
    }

    /// How many times the settings were changed since the table was opened or made: for a caller that keeps what it has made of
    /// them.
    pub fn settings_changes(&self) -> u64 {
        self.data.settings_changes()
    }

    /// The present contents of the table.
    pub fn stats(&self) -> TableStats {
        match &self.data.array {
            Some(array) => array_rows::stats(array),
            None => self.data.storage.stats(),
        }
    }

    /// How many ranges of records it has.
    pub fn range_count(&self) -> usize {
        self.data.storage.range_count()
    }

    /// A scan of what the view, or a bare snapshot, sees.
    ///
    /// # Errors
    /// [`Error::SnapshotTooOld`] if the table's history does not reach back to the snapshot.
    pub fn scan<'v>(&self, view: impl Into<Sight<'v>>, options: ScanOptions) -> Result<TableScan> {
        let sight @ Sight { snapshot, reads, .. } = view.into();
        let rows = self.data.array.is_some().then(|| sight.array_rows(&self.data)).transpose()?;
        if let Some(reads) = reads {
            reads.note_rows(&self.data, &options.tests, &options.columns);
        }
        let view = self.hold(snapshot)?;
        Ok(TableScan {
            ahead: ReadAhead::new(
                &self.data,
                Request { columns: options.columns.clone(), tests: options.tests.clone() },
            ),
            projection: self.data.projection(&options),
            ranges: rows.as_ref().map_or_else(|| self.data.storage.range_count(), array_rows::range_count),
            next: AtomicUsize::new(0),
            view,
            array: rows.map(|rows| Box::new((rows, options))),
            table: self.clone(),
        })
    }

    /// The Arrow schema of the batches that a scan with these options gives.
    pub fn scan_schema(&self, options: &ScanOptions) -> SchemaRef {
        self.data.projection(options).schema
    }

    /// Values of some columns.
    pub(crate) fn values_of(&self, columns: &[usize], cells: &[Cell<'_>]) -> Vec<Value> {
        debug_assert_eq!(columns.len(), cells.len(), "a cell for each column");
        let data_type = |column: &usize| self.schema().columns()[*column].data_type;
        cells.iter().zip(columns).map(|(cell, column)| value_of_cell(*cell, data_type(column))).collect()
    }

    /// Statistics of the table for the optimizer: estimates, kept by the merge.
    pub fn statistics(&self) -> TableStatistics {
        match &self.data.array {
            Some(array) => array_rows::statistics(array, self.schema()),
            None => self.data.storage.statistics(),
        }
    }

    /// How the merged pages of a column are encoded, range by range; `None` for ranges that are not merged, and for rows.
    ///
    /// # Errors
    /// [`Error::NoSuchColumn`] if the table has no such column.
    pub fn encodings(&self, column: &str) -> Result<Vec<Option<Encoding>>> {
        Ok(self.data.storage.encodings(self.data.position(column)?))
    }

    /// Whether its rows have to meet conditions: checks, or references of other tables and to them.
    pub fn has_rules(&self) -> bool {
        self.data.is_ruled()
    }

    /// The memory that the table takes.
    pub fn memory(&self) -> TableMemory {
        let used = self.data.storage.memory();
        TableMemory {
            table: self.data.name.to_string(),
            insert_bytes: used.insert_bytes,
            base_bytes: used.base_bytes + self.data.array.as_ref().map_or(0, ArrayData::bytes),
            tail_bytes: used.tail_bytes,
            history_bytes: used.history_bytes,
            index_bytes: self.data.index_bytes(),
            evicted_bytes: used.evicted_bytes,
        }
    }

    /// The bytes of the pages that a scan reads: of those in memory, and of those that are evicted. Indexes are not counted, which takes
    /// longer the larger they are.
    pub fn page_bytes(&self) -> (u64, u64) {
        let used = self.data.storage.memory();
        (used.base_bytes + used.insert_bytes + used.tail_bytes, used.evicted_bytes)
    }

    /// Holds a snapshot for a read of this table.
    pub(crate) fn hold(&self, snapshot: Snapshot) -> Result<ReadView> {
        // First held, then looked at: versions that are found now stay.
        let view = ReadView::of(&self.database, snapshot)?;
        self.check_history(snapshot)?;
        debug_assert_eq!(view.at(), snapshot.at, "invariant 4: another snapshot is held than the one that is read");
        Ok(view)
    }

    /// Holds a snapshot for a read that is over when its call returns.
    pub(crate) fn hold_for_a_moment(&self, sight: Sight<'_>) -> Result<Option<ReadView>> {
        match sight.is_held {
            true => self.check_history(sight.snapshot).map(|()| None),
            false => self.hold(sight.snapshot).map(Some),
        }
    }

    fn check_history(&self, snapshot: Snapshot) -> Result<()> {
        if self.data.storage.keeps(snapshot.at) { Ok(()) } else { Err(self.too_old(snapshot.at)) }
    }

    /// The error for a snapshot that was given up.
    pub(crate) fn too_old(&self, at: Timestamp) -> Error {
        let oldest = self.data.storage.horizon();
        Error::SnapshotTooOld { table: self.data.name.to_string(), at: at.0, oldest: oldest.0 }
    }

    /// The visible row with this primary key as one batch of zero or one row, shaped as a scan's batches are. The
    /// batch is empty for a key with a NULL in it, and for a row that fails a test.
    ///
    /// # Errors
    /// - [`Error::NoPrimaryKey`], [`Error::WrongWidth`] or [`Error::BadValue`] if the table has no such key.
    /// - [`Error::SnapshotTooOld`] if the table does not keep what the view sees; [`Error::TooManyTransactions`] if
    ///   nothing holds it yet, and as many transactions run as there may be.
    /// - [`Error::Page`] if an evicted page cannot be read back.
    pub fn lookup<'v>(&self, view: impl Into<Sight<'v>>, key: &[Value], options: &ScanOptions) -> Result<RecordBatch> {
        self.lookup_with(view.into(), key, options, || self.data.projection(options).schema)
    }

    /// As [`lookup`](Self::lookup), with a schema that its caller has made before: under any names, of the types in which a scan gives the
    /// columns, and with NULLs where they are allowed.
    ///
    /// # Errors
    /// As [`lookup`](Self::lookup).
    ///
    /// # Panics
    /// If the schema has other types than the columns.
    pub fn lookup_as<'v>(
        &self,
        view: impl Into<Sight<'v>>,
        key: &[Value],
        options: &ScanOptions,
        schema: &SchemaRef,
    ) -> Result<RecordBatch> {
        self.lookup_with(view.into(), key, options, || schema.clone())
    }

    fn lookup_with(
        &self,
        sight: Sight<'_>,
        key: &[Value],
        options: &ScanOptions,
        schema: impl FnOnce() -> SchemaRef,
    ) -> Result<RecordBatch> {
        if self.data.array.is_some() {
            let found = self.lookup_in_array(sight, key, options)?;
            return Ok(batch_of(schema(), found.columns().to_vec(), found.num_rows()));
        }
        let Sight { snapshot, reads, .. } = sight;
        let key = self.data.key_of_values(key)?;
        let _held = self.hold_for_a_moment(sight)?;
        let view = self.database.shared.core.transactions.view(snapshot);
        let mut rows = Rows::new(self, options);
        if let Some(key) = key {
            let columns = rows.columns.clone();
            let found = self.data.read(view, &key, &columns, |rid, cells| {
                rows.push(rid, cells);
                rid
            })?;
            reads.into_iter().for_each(|reads| reads.note_key(&self.data, key.clone(), found));
        }
        Ok(rows.finish(schema()))
    }

    /// Some columns (positions in the table) of the visible row with this primary key, as values; `None` where there is none.
    ///
    /// # Errors
    /// [`Error::NoSuchColumn`] if the table has fewer columns; else as [`lookup`](Self::lookup).
    pub fn lookup_values<'v>(
        &self,
        view: impl Into<Sight<'v>>,
        key: &[Value],
        columns: &[usize],
    ) -> Result<Option<Vec<Value>>> {
        let sight = view.into();
        if self.data.array.is_some() {
            self.data.check_positions(columns.iter().copied())?;
            return self.lookup_values_in_array(sight, key, columns);
        }
        self.lookup_cells(sight, key, columns, |cells| self.values_of(columns, cells))
    }

    /// As [`lookup_values`](Self::lookup_values), as cells, which `pass` is given. `None` where there is no such row; an array table has
    /// no cells.
    ///
    /// # Errors
    /// As [`lookup_values`](Self::lookup_values).
    pub fn lookup_cells<'v, R>(
        &self,
        view: impl Into<Sight<'v>>,
        key: &[Value],
        columns: &[usize],
        pass: impl FnOnce(&[Cell<'_>]) -> R,
    ) -> Result<Option<R>> {
        let sight @ Sight { snapshot, reads, .. } = view.into();
        self.data.check_positions(columns.iter().copied())?;
        if self.data.array.is_some() {
            return Ok(None);
        }
        let key = self.data.key_of_values(key)?;
        let _held = self.hold_for_a_moment(sight)?;
        let Some(key) = key else { return Ok(None) };
        let view = self.database.shared.core.transactions.view(snapshot);
        let found = self.data.read(view, &key, columns, |rid, cells| (rid, pass(cells)))?;
        reads
            .into_iter()
            .for_each(|reads| reads.note_key(&self.data, key.clone(), found.as_ref().map(|(rid, _)| *rid)));
        Ok(found.map(|(_, passed)| passed))
    }

    /// The visible ones of the records with these Rid words that pass the tests, in this order, shaped as a scan's batches
    /// are.
    ///
    /// # Errors
    /// [`Error::SnapshotTooOld`], [`Error::TooManyTransactions`] and [`Error::Page`] as [`lookup`](Self::lookup).
    pub fn lookup_rids<'v>(
        &self,
        view: impl Into<Sight<'v>>,
        rids: &[u64],
        options: &ScanOptions,
    ) -> Result<RecordBatch> {
        let sight @ Sight { snapshot, reads, .. } = view.into();
        if self.data.array.is_some() {
            return self.lookup_rids_in_array(sight, rids, options);
        }
        let _held = self.hold_for_a_moment(sight)?;
        let view = self.database.shared.core.transactions.view(snapshot);
        let mut rows = Rows::new(self, options);
        let columns = rows.columns.clone();
        for rid in rids.iter().map(|rid| Rid::from_word(*rid)).filter(|rid| self.data.storage.contains(*rid)) {
            self.data.storage.read(view, rid, &columns, |cells| rows.push(rid, cells))?;
            reads.into_iter().for_each(|reads| reads.note_record(&self.data, rid));
        }
        Ok(rows.finish(self.data.projection(options).schema))
    }
}

/// Rows collected one by one into a batch.
pub(crate) struct Rows<'a> {
    table: &'a Table,
    pub(crate) options: &'a ScanOptions,
    /// the columns that are read of each row: those asked for, then those tested
    pub(crate) columns: SmallVec<[usize; 8]>,
    pub(crate) builders: Vec<ColumnBuilder>,
    pub(crate) rids: Vec<u64>,
}

impl<'a> Rows<'a> {
    pub(crate) fn new(table: &'a Table, options: &'a ScanOptions) -> Rows<'a> {
        Rows::with_room(table, options, 1)
    }

    /// Room for so many, and more if need be.
    pub(crate) fn with_room(table: &'a Table, options: &'a ScanOptions, room: usize) -> Rows<'a> {
        let type_of = |column: &usize| table.schema().columns()[*column].data_type;
        let tested = options.tests.iter().map(|(column, _)| *column);
        Rows {
            table,
            options,
            columns: options.columns.iter().copied().chain(tested).collect(),
            builders: options.columns.iter().map(|column| ColumnBuilder::new(type_of(column), room)).collect(),
            rids: Vec::with_capacity(room),
        }
    }

    /// Takes a row if it passes the tests.
    pub(crate) fn push(&mut self, rid: Rid, cells: &[Cell<'_>]) {
        debug_assert_eq!(cells.len(), self.columns.len(), "a cell for each column that is read");
        let (cells, tested) = cells.split_at(self.options.columns.len());
        let type_of = |column: &usize| self.table.schema().columns()[*column].data_type;
        let mut tests = self.options.tests.iter().zip(tested);
        if tests.all(|((column, test), cell)| test.passes(*cell, type_of(column))) {
            self.push_untested(rid, cells);
        }
    }

    /// Takes a row of which only the columns asked for were read.
    pub(crate) fn push_untested(&mut self, rid: Rid, cells: &[Cell<'_>]) {
        debug_assert_eq!(cells.len(), self.builders.len(), "a cell for each column asked for");
        self.builders.iter_mut().zip(cells).for_each(|(builder, cell)| builder.push(*cell));
        self.rids.push(rid.word());
    }

    /// Takes the values of some rows, whose records are noted afterwards, for the column asked for at this place.
    pub(crate) fn push_column(&mut self, place: usize, values: GatheredColumn<'_, '_>) {
        let builder = &mut self.builders[place];
        match values {
            GatheredColumn::Words(words) => builder.extend_words(words.iter().copied()),
            GatheredColumn::Cells(cells) => cells.iter().for_each(|cell| builder.push(*cell)),
        }
    }

    /// Notes the records of the rows whose values were taken column by column.
    pub(crate) fn note_records(&mut self, rids: &[Rid]) {
        self.rids.extend(rids.iter().map(|rid| rid.word()));
    }

    /// How many rows it has taken.
    pub(crate) fn len(&self) -> usize {
        self.rids.len()
    }

    pub(crate) fn finish(mut self, schema: SchemaRef) -> RecordBatch {
        let count = self.rids.len();
        batch_of(schema, self.take_arrays(), count)
    }

    /// The columns of the rows taken so far, and their Rids if these are asked for. Others may follow.
    pub(crate) fn take_arrays(&mut self) -> Vec<ArrayRef> {
        let rids = std::mem::take(&mut self.rids);
        let mut arrays: Vec<_> = self.builders.iter_mut().map(ColumnBuilder::finish).collect();
        debug_assert!(arrays.iter().all(|array| array.len() == rids.len()), "columns of one length");
        if self.options.with_rid {
            arrays.push(Arc::new(arrow_array::UInt64Array::from(rids)));
        }
        arrays
    }
}

/// A batch of so many rows.
fn batch_of(schema: SchemaRef, arrays: Vec<ArrayRef>, rows: usize) -> RecordBatch {
    let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(schema, arrays, &options)
        .expect("the arrays have the projection's types and visible rows obey NOT NULL")
}

/// A scan in progress, an iterator over batches of at most 8,192 rows. Several threads may pull from one scan by
/// [`TableScan::next_range`]; each range goes to one of them.
pub struct TableScan {
    table: Table,
    view: ReadView,
    projection: Projection,
    ranges: usize,
    next: AtomicUsize,
    ahead: ReadAhead,
    /// Of an array table, its rows and what is asked of them.
    array: Option<Box<(ArrayRows, ScanOptions)>>,
}

impl TableScan {
    /// The Arrow schema of the batches.
    pub fn schema(&self) -> &SchemaRef {
        &self.projection.schema
    }

    /// How many ranges the scan has, the most threads that it can keep busy.
    pub fn range_count(&self) -> usize {
        self.ranges
    }

    /// The batches of the next range that was not taken, `None` when all are taken.
    ///
    /// # Errors
    /// [`Error::Page`] if an evicted page of the range can't be read back.
    pub fn next_range(&self) -> Option<Result<Vec<RecordBatch>>> {
        let range = self.next.fetch_add(1, Ordering::Relaxed);
        if range >= self.ranges {
            return None;
        }
        if let Some((rows, options)) = self.array.as_deref() {
            return Some(Ok(array_rows::batches(&self.table, rows, options, range)));
        }
        let view = self.seen();
        let (storage, ahead) = (&self.table.data.storage, self.ahead.take(range));
        self.ahead.begin(self.next.load(Ordering::Relaxed));
        let batches = match ahead {
            Some(ahead) => storage.scan_range_after(range, view, &self.projection, ahead),
            None => storage.scan_range(range, view, &self.projection),
        };
        debug_assert!(
            batches
                .iter()
                .flatten()
                .all(|batch| batch.num_rows() <= 8192 && batch.schema_ref() == &self.projection.schema),
            "a batch is larger than readers expect, or of other columns"
        );
        Some(batches.map_err(Error::from))
    }

    /// The next range that was not taken, by its number, and its rows with the values of base pages apart from all others, see
    /// [`SplitRange`]; `None` in the place of these where there are no such pages: the rows are told by [`TableScan::read`]. So it is of an
    /// array table, and where Rids are asked for.
    ///
    /// # Errors
    /// As [`next_range`](Self::next_range).
    pub fn next_split(&self) -> Option<Result<(usize, Option<SplitRange>)>> {
        let range = self.next.fetch_add(1, Ordering::Relaxed);
        if range >= self.ranges {
            return None;
        }
        if self.array.is_some() || self.projection.with_rid {
            return Some(Ok((range, None)));
        }
        let split = self.table.data.storage.split_range(range, self.seen(), &self.projection);
        Some(split.map(|split| (range, split)).map_err(Error::from))
    }

    /// The batches of a range, whether it was taken or not.
    ///
    /// # Errors
    /// As [`next_range`](Self::next_range).
    pub fn read(&self, range: usize) -> Result<Vec<RecordBatch>> {
        if let Some((rows, options)) = self.array.as_deref() {
            return Ok(array_rows::batches(&self.table, rows, options, range));
        }
        Ok(self.table.data.storage.scan_range(range, self.seen(), &self.projection)?)
    }

    fn seen(&self) -> View<'_, Transactions> {
        self.table.database.shared.core.transactions.view(self.view.snapshot())
    }

    /// All batches that are left, one by one.
    pub fn batches(self) -> impl Iterator<Item = Result<RecordBatch>> {
        let each = |range: Result<Vec<RecordBatch>>| match range {
            Ok(batches) => batches.into_iter().map(Ok).collect(),
            Err(error) => vec![Err(error)],
        };
        self.flat_map(each)
    }
}

/// Iterates over the batches of each range.
impl Iterator for TableScan {
    type Item = Result<Vec<RecordBatch>>;

    fn next(&mut self) -> Option<Result<Vec<RecordBatch>>> {
        self.next_range()
    }
}
