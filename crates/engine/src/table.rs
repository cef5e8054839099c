//! One table: its storage, its primary key, and reading it without a transaction.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use arrow_array::RecordBatch;
use arrow_schema::{DataType as ArrowType, Field, Schema as ArrowSchema, SchemaRef};
use lineage::{
    Cell, ColumnBuilder, Encoding, MemoryBudget, Projection, Request, TableOptions, TableStatistics, TableStats, Test,
    Totals, View, value_of_cell,
};
use parking_lot::RwLock;
use smallvec::SmallVec;
use sync::Counter;
use types::{Rid, Schema, Snapshot, Timestamp, TxnId, Value};

use crate::database::Database;
use crate::error::{Error, Result};
use crate::indexes::{Index, IndexData, IndexKey, IndexList, KeptIndex};
use crate::outcomes::Transactions;
use crate::primary_key::PrimaryKey;
use crate::read_ahead::ReadAhead;
use crate::read_view::{ReadView, Sight};
use crate::redo::TableId;
use crate::row::{Cells, Fitted, check_width};
use crate::sequence::{Numbers, Sequence};
use crate::settings::TableSettings;
use crate::share_locks::ShareLocks;
use crate::table_lock::TableLock;
use crate::table_name::TableName;

/// A handle to one table; cheap to clone.
#[derive(Clone)]
pub struct Table {
    pub(crate) database: Database,
    pub(crate) data: Arc<TableData>,
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
    /// What pages would take that are evicted; the others are what is in memory.
    pub evicted_bytes: u64,
}

/// What all handles of a table share.
pub(crate) struct TableData {
    pub(crate) id: TableId,
    /// Which database it belongs to: where that has its account of memory, which lives as long as the table.
    pub(crate) home: usize,
    pub(crate) name: TableName,
    pub(crate) schema: Arc<Schema>,
    pub(crate) storage: lineage::Table,
    pub(crate) primary_key: Option<PrimaryKey>,
    pub(crate) indexes: IndexList,
    /// How many entries of indexes have been outdated by updates and deletes.
    pub(crate) outdated_entries: Counter,
    /// How many they were when the indexes were swept last.
    pub(crate) outdated_when_swept: AtomicU64,
    pub(crate) share_locks: ShareLocks,
    /// Those of a sequence.
    pub(crate) numbers: Option<Numbers>,
    settings: RwLock<TableSettings>,
    has_changed_keys: AtomicBool,
    /// Which transactions may write to it.
    pub(crate) lock: TableLock,
}

/// An aggregate is not spread over more threads than there are so many ranges: starting one takes as long as some ranges.
const RANGES_A_THREAD: usize = 16;

/// Rows that are prefetched at once; more would not fit the processor's buffers for what it waits for.
const ROWS_AT_ONCE: usize = 16;

/// What a scan reads.
#[derive(Clone, Debug, Default)]
pub struct ScanOptions {
    /// positions of the columns to read, in output order
    pub columns: Vec<usize>,
    /// what rows must pass, with the positions of the columns; values have exactly the column's type and scale
    pub tests: Vec<(usize, Test)>,
    /// whether to add a last column `__rid` (uint64) holding each row's Rid word
    pub with_rid: bool,
}

impl TableData {
    pub(crate) fn new(
        id: TableId,
        name: &str,
        schema: Schema,
        settings: TableSettings,
        defaults: TableOptions,
        budget: &Arc<MemoryBudget>,
    ) -> Result<TableData> {
        let primary_key = PrimaryKey::new(name, &schema)?;
        let storage = lineage::Table::new(schema.clone(), settings.options(defaults), budget.clone());
        Ok(TableData {
            id,
            home: Arc::as_ptr(budget).addr(),
            name: TableName::new(name),
            schema: Arc::new(schema),
            storage,
            primary_key,
            indexes: IndexList::default(),
            outdated_entries: Counter::new(),
            outdated_when_swept: AtomicU64::new(0),
            share_locks: ShareLocks::default(),
            numbers: settings.sequence.map(|_| Numbers::default()),
            settings: RwLock::new(settings),
            has_changed_keys: AtomicBool::new(false),
            lock: TableLock::default(),
        })
    }

    /// Puts an index that recovery has found on the list; it is built later.
    pub(crate) fn add_known_index(&self, kept: KeptIndex) -> Result<()> {
        self.indexes.add(Arc::new(IndexData::new(&self.schema, kept, None)?));
        Ok(())
    }

    pub(crate) fn index_bytes(&self) -> u64 {
        let primary = self.primary_key.as_ref().map_or(0, PrimaryKey::bytes);
        (primary + self.indexes.all().iter().map(|index| index.entries.bytes()).sum::<usize>()) as u64
    }

    pub(crate) fn is_sequence(&self) -> bool {
        self.numbers.is_some()
    }

    /// Refuses sequences: their row only takes numbers.
    pub(crate) fn check_is_no_sequence(&self) -> Result<()> {
        if self.is_sequence() { Err(Error::SequenceWritten(self.name.to_string())) } else { Ok(()) }
    }

    pub(crate) fn settings(&self) -> TableSettings {
        *self.settings.read()
    }

    pub(crate) fn set_settings(&self, settings: TableSettings) {
        *self.settings.write() = settings;
    }

    pub(crate) fn schema(&self) -> &Schema {
        &self.schema
    }

    pub(crate) fn primary_key(&self) -> Result<&PrimaryKey> {
        self.primary_key.as_ref().ok_or_else(|| Error::NoPrimaryKey(self.name.to_string()))
    }

    /// The index form of a key given as values, one for each key column.
    pub(crate) fn key_of_values(&self, values: &[Value]) -> Result<Option<IndexKey>> {
        let primary_key = self.primary_key()?;
        check_width(&self.name, primary_key.columns.len(), values.len())?;
        if let Some(key) = primary_key.key_of_words(&self.schema, values) {
            return Ok(Some(key));
        }
        if values.iter().any(Value::is_null) {
            return Ok(None);
        }
        let columns = primary_key.columns.iter().copied();
        let mut fitted = Fitted::new(&self.name, self.schema.columns(), columns.zip(values))?;
        let cells: Cells<'_> = fitted.cells().map(|(_, cell)| cell).collect();
        Ok(Some(primary_key.key(&cells)))
    }

    /// Passes some columns of the record that has this key, in the version that the view sees, to `take`, with its Rid.
    pub(crate) fn read<R>(
        &self,
        view: View<'_, Transactions>,
        key: &IndexKey,
        columns: &[usize],
        take: impl FnOnce(Rid, &[Cell<'_>]) -> R,
    ) -> Result<Option<R>> {
        let Some(primary_key) = &self.primary_key else { return Ok(None) };
        let (mut take, guard) = (Some(take), &sync::pin());
        if !self.has_changed_keys() {
            // Whatever version of a record is visible, it has the key that the record was inserted with.
            let found = primary_key.find(guard, key, |rid| {
                let take = |cells: &[Cell<'_>]| take.take().map(|take| take(rid, cells));
                self.storage.read_pinned(guard, view, rid, columns, take).map(Option::flatten).transpose()
            });
            return Ok(found.transpose()?);
        }
        let all: Vec<usize> = columns.iter().chain(&primary_key.columns).copied().collect();
        let found = primary_key.find(guard, key, |rid| {
            let passed = self.storage.read_pinned(guard, view, rid, &all, |cells| {
                let (cells, key_cells) = cells.split_at(columns.len());
                let has_key = primary_key.key(key_cells) == *key;
                take.take_if(|_| has_key).map(|take| take(rid, cells))
            });
            passed.map(Option::flatten).transpose()
        });
        Ok(found.transpose()?)
    }

    /// The record that has this key in the version that the view sees.
    pub(crate) fn find(&self, view: View<'_, Transactions>, key: &IndexKey) -> Result<Option<Rid>> {
        self.read(view, key, &[], |rid, _| rid)
    }

    /// Asks for the memory of the rows with these keys, each with the columns that will be read: the first sixteen rows.
    pub(crate) fn prefetch<'k>(&self, rows: impl Iterator<Item = (&'k [Value], &'k [usize])>) {
        let (Some(primary_key), guard) = (&self.primary_key, &sync::pin()) else { return };
        let mut keys = SmallVec::<[IndexKey; ROWS_AT_ONCE]>::new();
        let mut columns_of = SmallVec::<[&[usize]; ROWS_AT_ONCE]>::new();
        for (key, columns) in rows.take(ROWS_AT_ONCE) {
            let key = primary_key.key_of_words(&self.schema, key);
            let Some(key) = key.filter(|_| self.check_positions(columns.iter().copied()).is_ok()) else { continue };
            keys.push(key);
            columns_of.push(columns);
        }
        let mut found = SmallVec::<[(Rid, &[usize]); ROWS_AT_ONCE]>::new();
        for (newest, columns) in primary_key.newest(guard, &keys).into_iter().zip(columns_of) {
            if let Some(rid) = newest {
                self.storage.prefetch_base(guard, rid, columns);
                found.push((rid, columns));
            }
        }
        found.iter().for_each(|(rid, _)| self.storage.prefetch_newest(guard, *rid));
        found.iter().for_each(|(rid, columns)| self.storage.prefetch_values(guard, *rid, columns));
    }

    /// Refuses positions that are no column's.
    #[inline]
    pub(crate) fn check_positions(&self, columns: impl Iterator<Item = usize>) -> Result<()> {
        let len = self.schema.columns().len();
        for column in columns {
            if column >= len {
                return Err(self.no_such_position(column));
            }
        }
        Ok(())
    }

    #[cold]
    pub(crate) fn no_such_position(&self, column: usize) -> Error {
        Error::NoSuchColumn { table: self.name.to_string(), column: format!("number {column}") }
    }

    /// Whether an update, even one that was rolled back, may have given a record another key.
    #[inline]
    pub(crate) fn has_changed_keys(&self) -> bool {
        self.has_changed_keys.load(Ordering::Acquire)
    }

    /// To be called before a record is given another key: a thread that sees its version also sees this.
    pub(crate) fn note_changed_key(&self) {
        if !self.has_changed_keys() {
            self.has_changed_keys.store(true, Ordering::Release);
        }
    }

    /// The position of a column.
    pub(crate) fn position(&self, column: &str) -> Result<usize> {
        self.schema
            .position(column)
            .ok_or_else(|| Error::NoSuchColumn { table: self.name.to_string(), column: column.into() })
    }

    pub(crate) fn projection(&self, options: &ScanOptions) -> Projection {
        let field = |column: &usize| {
            let column = &self.schema.columns()[*column];
            Field::new(&column.name, column.data_type.to_arrow(), column.nullable)
        };
        let mut fields: Vec<Field> = options.columns.iter().map(field).collect();
        if options.with_rid {
            fields.push(Field::new("__rid", ArrowType::UInt64, false));
        }
        Projection {
            request: Request { columns: options.columns.clone(), tests: options.tests.clone() },
            with_rid: options.with_rid,
            schema: Arc::new(ArrowSchema::new(fields)),
        }
    }
}

impl Table {
    /// The name.
    pub fn name(&self) -> &str {
        &self.data.name
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

    /// What was chosen for it.
    pub fn settings(&self) -> TableSettings {
        self.data.settings()
    }

    /// The sequence that this is, if it is one. For one that a transaction may have made or changed itself there is
    /// [`Transaction::sequence`](crate::Transaction::sequence).
    pub fn sequence(&self) -> Option<Sequence> {
        Sequence::of(self, None)
    }

    /// The sequence that this is, for a transaction of this id, which may have made or changed it.
    pub fn sequence_within(&self, transaction: TxnId) -> Option<Sequence> {
        Sequence::of(self, Some(transaction))
    }

    /// What the table holds now.
    pub fn stats(&self) -> TableStats {
        self.data.storage.stats()
    }

    /// A scan of what the view, or a bare snapshot, sees.
    ///
    /// # Errors
    /// [`Error::SnapshotTooOld`] if the table's history does not reach back to the snapshot.
    pub fn scan<'v>(&self, view: impl Into<Sight<'v>>, options: ScanOptions) -> Result<TableScan> {
        let Sight { snapshot, reads, .. } = view.into();
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
            ranges: self.data.storage.range_count(),
            next: AtomicUsize::new(0),
            view,
            table: self.clone(),
        })
    }

    /// Count, sum and extremes of columns over the rows that the view sees and that pass every test, worked out on the
    /// encoded pages by as many threads as there are processors for it.
    pub fn aggregate<'v>(
        &self,
        view: impl Into<Sight<'v>>,
        tests: &[(usize, Test)],
        columns: &[usize],
    ) -> Result<Totals> {
        let sight @ Sight { snapshot, reads, .. } = view.into();
        if let Some(reads) = reads {
            reads.note_rows(&self.data, tests, columns);
        }
        let _held = self.hold_for_a_moment(sight)?;
        let storage = &self.data.storage;
        let request = Request { columns: columns.to_vec(), tests: tests.to_vec() };
        let view = self.database.shared.core.transactions.view(snapshot);
        let types = || columns.iter().map(|column| self.schema().columns()[*column].data_type);
        let (ranges, next) = (storage.range_count(), AtomicUsize::new(0));
        let work = || -> Result<Totals> {
            let mut totals = Totals::new(types());
            loop {
                let range = next.fetch_add(1, Ordering::Relaxed);
                if range >= ranges {
                    return Ok(totals);
                }
                totals.merge(&storage.aggregate_range(range, view, &request)?);
            }
        };
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(ranges / RANGES_A_THREAD);
        std::thread::scope(|scope| {
            let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
            let mut totals = work();
            for other in others {
                let theirs = other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                if let Ok(totals) = &mut totals {
                    totals.merge(&theirs?);
                }
            }
            totals
        })
    }

    /// Values of some columns.
    pub(crate) fn values_of(&self, columns: &[usize], cells: &[Cell<'_>]) -> Vec<Value> {
        let data_type = |column: &usize| self.schema().columns()[*column].data_type;
        cells.iter().zip(columns).map(|(cell, column)| value_of_cell(*cell, data_type(column))).collect()
    }

    /// What the optimizer may know of the table: estimates, kept by the merge.
    pub fn statistics(&self) -> TableStatistics {
        self.data.storage.statistics()
    }

    /// How the merged pages of a column are encoded, range by range; `None` for ranges that are not merged, and for rows.
    pub fn encodings(&self, column: &str) -> Result<Vec<Option<Encoding>>> {
        Ok(self.data.storage.encodings(self.data.position(column)?))
    }

    /// The memory that the table takes.
    pub fn memory(&self) -> TableMemory {
        let used = self.data.storage.memory();
        TableMemory {
            table: self.data.name.to_string(),
            insert_bytes: used.insert_bytes,
            base_bytes: used.base_bytes,
            tail_bytes: used.tail_bytes,
            history_bytes: used.history_bytes,
            index_bytes: self.data.index_bytes(),
            evicted_bytes: used.evicted_bytes,
        }
    }

    /// Holds a snapshot for a read of this table.
    pub(crate) fn hold(&self, snapshot: Snapshot) -> Result<ReadView> {
        // First held, then looked at: what is found to be there now stays.
        let view = ReadView::of(&self.database, snapshot)?;
        self.check_history(snapshot)?;
        Ok(view)
    }

    /// Holds a snapshot for a read that is over when its call returns.
    fn hold_for_a_moment(&self, sight: Sight<'_>) -> Result<Option<ReadView>> {
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
    pub fn lookup<'v>(&self, view: impl Into<Sight<'v>>, key: &[Value], options: &ScanOptions) -> Result<RecordBatch> {
        let sight @ Sight { snapshot, reads, .. } = view.into();
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
        Ok(rows.finish(self.data.projection(options).schema))
    }

    /// The visible ones of the records with these Rid words that pass the tests, in this order, shaped as a scan's batches
    /// are.
    pub fn lookup_rids<'v>(
        &self,
        view: impl Into<Sight<'v>>,
        rids: &[u64],
        options: &ScanOptions,
    ) -> Result<RecordBatch> {
        let sight @ Sight { snapshot, reads, .. } = view.into();
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
    options: &'a ScanOptions,
    /// what is read of each row: the columns asked for, then those tested
    pub(crate) columns: Vec<usize>,
    builders: Vec<ColumnBuilder>,
    rids: Vec<u64>,
}

impl<'a> Rows<'a> {
    pub(crate) fn new(table: &'a Table, options: &'a ScanOptions) -> Rows<'a> {
        let type_of = |column: &usize| table.schema().columns()[*column].data_type;
        let tested = options.tests.iter().map(|(column, _)| *column);
        Rows {
            table,
            options,
            columns: options.columns.iter().copied().chain(tested).collect(),
            builders: options.columns.iter().map(|column| ColumnBuilder::new(type_of(column), 1)).collect(),
            rids: Vec::new(),
        }
    }

    /// Takes a row if it passes the tests.
    pub(crate) fn push(&mut self, rid: Rid, cells: &[Cell<'_>]) {
        let (cells, tested) = cells.split_at(self.options.columns.len());
        let type_of = |column: &usize| self.table.schema().columns()[*column].data_type;
        let mut tests = self.options.tests.iter().zip(tested);
        if tests.all(|((column, test), cell)| test.passes(*cell, type_of(column))) {
            self.builders.iter_mut().zip(cells).for_each(|(builder, cell)| builder.push(*cell));
            self.rids.push(rid.word());
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rids.is_empty()
    }

    pub(crate) fn finish(mut self, schema: SchemaRef) -> RecordBatch {
        let rows = arrow_array::RecordBatchOptions::new().with_row_count(Some(self.rids.len()));
        let mut arrays: Vec<_> = self.builders.iter_mut().map(ColumnBuilder::finish).collect();
        if self.options.with_rid {
            arrays.push(Arc::new(arrow_array::UInt64Array::from(self.rids)));
        }
        RecordBatch::try_new_with_options(schema, arrays, &rows)
            .expect("the arrays have the projection's types and visible rows obey NOT NULL")
    }
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

    /// The batches of the next range that nobody has taken, `None` when all are taken.
    ///
    /// # Errors
    /// [`Error::Page`] if an evicted page of the range can't be read back.
    pub fn next_range(&self) -> Option<Result<Vec<RecordBatch>>> {
        let range = self.next.fetch_add(1, Ordering::Relaxed);
        if range >= self.ranges {
            return None;
        }
        let view = self.table.database.shared.core.transactions.view(self.view.snapshot());
        let (storage, ahead) = (&self.table.data.storage, self.ahead.take(range));
        self.ahead.begin(self.next.load(Ordering::Relaxed));
        let batches = match ahead {
            Some(ahead) => storage.scan_range_after(range, view, &self.projection, ahead),
            None => storage.scan_range(range, view, &self.projection),
        };
        Some(batches.map_err(Error::from))
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
