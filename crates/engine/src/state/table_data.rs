//! The state that all handles of a table share: its storage, its keys and indexes, its settings and locks.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arrow_schema::{DataType as ArrowType, Field, FieldRef, Fields, Schema as ArrowSchema};
use lineage::{Cell, MemoryBudget, Projection, Request, TableOptions, Test, View};
use parking_lot::RwLock;
use smallvec::SmallVec;
use sync::Counter;
use types::{Column, DataType, EnumDefinition, Rid, Schema, Value};

use super::array::data::ArrayData;
use super::numbers::Numbers;
use super::rules::Rules;
use crate::error::{Error, Result};
use crate::keys::data::{IndexData, IndexList};
use crate::keys::definition::KeptIndex;
use crate::keys::order::IndexKey;
use crate::keys::primary_key::PrimaryKey;
use crate::terms::outcomes::Transactions;
use crate::terms::row::{FittedRow, check_width};
use crate::terms::settings::{LayoutSetting, Retention, TableSettings};
use crate::terms::share_locks::ShareLocks;
use crate::terms::table_lock::TableLock;
use crate::terms::table_modes::TableModes;
use crate::terms::table_name::{TableId, TableName, is_hidden, is_temporary};
use crate::terms::type_definition::TypeDefinition;
use crate::terms::view_definition::ViewDefinition;

/// The state that all handles of a table share.
pub(crate) struct TableData {
    pub(crate) id: TableId,
    /// Which database it belongs to: where that has its account of memory, which lives as long as the table.
    pub(crate) home: usize,
    pub(crate) name: TableName,
    pub(crate) schema: Arc<Schema>,
    /// Its columns as scans give them.
    fields: Fields,
    pub(crate) storage: lineage::Table,
    /// the account of memory of its database
    pub(crate) budget: Arc<MemoryBudget>,
    pub(crate) primary_key: Option<PrimaryKey>,
    pub(crate) indexes: IndexList,
    /// How many entries of indexes have been outdated by updates and deletes.
    pub(crate) outdated_entries: Counter,
    /// How many they were when the indexes were swept last.
    pub(crate) outdated_when_swept: AtomicU64,
    pub(crate) share_locks: ShareLocks,
    /// The numbers of a sequence.
    pub(crate) numbers: Option<Numbers>,
    /// The query of a view.
    pub(crate) view: Option<ViewDefinition>,
    /// Whether it is a materialized view.
    pub(crate) is_materialized: bool,
    /// The rows of a table of the layout `array`, whose storage stays empty.
    pub(crate) array: Option<ArrayData>,
    settings: RwLock<TableSettings>,
    /// How many times they were changed.
    settings_changes: AtomicU64,
    /// What its rows must meet.
    rules: RwLock<Arc<Rules>>,
    /// Whether that is anything.
    is_ruled: AtomicBool,
    /// Whether an index may still have to be filled, as the database was opened since.
    pub(super) fills_late: AtomicBool,
    has_changed_keys: AtomicBool,
    /// Whether it belongs to one session, and no log has it.
    pub(crate) is_temporary: bool,
    /// Which transactions may write to it.
    pub(crate) lock: TableLock,
    /// The modes in which transactions hold it.
    pub(crate) modes: TableModes,
}

/// Rows that are prefetched at once; more would not fit the processor's buffers for what it waits for.
const ROWS_AT_ONCE: usize = 16;

/// The part of a table that a scan reads.
#[derive(Clone, Debug, Default)]
pub struct ScanOptions {
    /// positions of the columns to read, in output order
    pub columns: Vec<usize>,
    /// the tests that rows must pass, with the positions of the columns; values have exactly the column's type and
    /// scale
    pub tests: Vec<(usize, Test)>,
    /// whether to add a last column `__rid` (uint64) holding each row's Rid word
    pub with_rid: bool,
}

impl TableData {
    /// Whether it is a table that was made as one.
    pub(crate) fn is_plain(&self) -> bool {
        self.takes_rows() && !self.is_hidden()
    }

    /// Whether it serves the database itself.
    pub(crate) fn is_hidden(&self) -> bool {
        is_hidden(&self.name)
    }

    pub(crate) fn new(
        id: TableId,
        name: &str,
        schema: Schema,
        settings: TableSettings,
        defaults: TableOptions,
        budget: &Arc<MemoryBudget>,
    ) -> Result<TableData> {
        let primary_key = PrimaryKey::new(name, &schema)?;
        let settings = settings.heeded();
        debug_assert!(id > 0, "no table has the number 0, which stands for a name");
        debug_assert!(
            settings.view.is_none() || (settings.sequence.is_none() && primary_key.is_none()),
            "the view \"{name}\" is something else as well"
        );
        let array = match settings.layout {
            LayoutSetting::Array => Some(ArrayData::new(name, &schema, budget)?),
            LayoutSetting::Column | LayoutSetting::Row => None,
        };
        let storage = lineage::Table::new(schema.clone(), settings.options(defaults), budget.clone());
        let rules = Rules::of(&settings);
        let field = |column: &Column| Field::new(&column.name, column.data_type.to_stored_arrow(), column.nullable);
        let fields = schema.columns().iter().map(field).collect();
        if let Some(ViewDefinition { of_type: Some(of_type), .. }) = &settings.view {
            of_type.introduce();
        }
        if let Some(ViewDefinition { of_function: Some(of_function), .. }) = &settings.view {
            of_function.introduce();
        }
        Ok(TableData {
            id,
            home: Arc::as_ptr(budget).addr(),
            name: TableName::new(name),
            schema: Arc::new(schema),
            fields,
            storage,
            budget: budget.clone(),
            primary_key,
            indexes: IndexList::default(),
            outdated_entries: Counter::new(),
            outdated_when_swept: AtomicU64::new(0),
            share_locks: ShareLocks::default(),
            numbers: settings.sequence.map(|_| Numbers::default()),
            view: settings.view.clone(),
            is_materialized: settings.materialized.is_some(),
            array,
            is_ruled: AtomicBool::new(!rules.is_empty()),
            rules: RwLock::new(Arc::new(rules)),
            settings: RwLock::new(settings),
            settings_changes: AtomicU64::new(0),
            fills_late: AtomicBool::new(false),
            has_changed_keys: AtomicBool::new(false),
            is_temporary: is_temporary(name),
            lock: TableLock::default(),
            modes: TableModes::default(),
        })
    }

    /// The labels, if it stands for an enum type.
    pub(crate) fn labels(&self) -> Option<&EnumDefinition> {
        match self.view.as_ref()?.of_type.as_ref()? {
            TypeDefinition::Enum(labels) => Some(labels),
            TypeDefinition::Domain(_) => None,
        }
    }

    /// Puts an index that recovery has found on the list; it is built later.
    pub(crate) fn add_known_index(&self, kept: KeptIndex) -> Result<()> {
        self.indexes.add(Arc::new(IndexData::new(&self.schema, kept, None)?));
        Ok(())
    }

    /// Leaves filling the indexes to those that first use them. For recovery, once all tables are there.
    pub(crate) fn put_off_indexes(self: &Arc<Self>) {
        if self.storage.range_count() > 0 {
            self.fills_late.store(true, Ordering::Release);
            let table = Arc::downgrade(self);
            self.all_indexes().for_each(|index| index.put_off(table.clone()));
        }
    }

    /// The index of the primary key, and the others.
    pub(crate) fn all_indexes(&self) -> impl Iterator<Item = Arc<IndexData>> {
        let primary = self.primary_key.as_ref().map(|primary_key| primary_key.index.clone());
        primary.into_iter().chain(self.indexes.all())
    }

    /// About how many entries each of the indexes has: of the records, and of keys that they had before.
    pub(crate) fn index_entries(&self) -> u64 {
        let swept = self.outdated_when_swept.load(Ordering::Relaxed);
        self.storage.stats().records + self.outdated_entries.sum().saturating_sub(swept)
    }

    /// Bytes of memory of the indexes.
    pub(crate) fn index_bytes(&self) -> u64 {
        let primary = self.primary_key.as_ref().map_or(0, PrimaryKey::bytes);
        (primary + self.indexes.all().iter().map(|index| index.bytes()).sum::<usize>()) as u64
    }

    pub(crate) fn is_sequence(&self) -> bool {
        self.numbers.is_some()
    }

    pub(crate) fn is_view(&self) -> bool {
        self.view.is_some()
    }

    /// Refuses what a table of the layout `array` does not do.
    pub(crate) fn check_no_array(&self, what: &str, hint: &'static str) -> Result<()> {
        match &self.array {
            None => Ok(()),
            Some(_) => Err(Error::ArrayTable { table: self.name.to_string(), what: what.into(), hint }),
        }
    }

    /// The rows of a table of the layout `array`.
    pub(crate) fn array(&self) -> &ArrayData {
        self.array.as_ref().expect("only tables of the layout `array` come here")
    }

    /// Whether it is a table, whose rows are written by statements.
    pub(crate) fn takes_rows(&self) -> bool {
        !self.is_sequence() && !self.is_view()
    }

    /// Refuses sequences, whose row only takes numbers, and views.
    pub(crate) fn check_takes_rows(&self) -> Result<()> {
        match self.takes_rows() {
            true => Ok(()),
            false if self.is_view() => Err(Error::ViewWritten(self.name.to_string())),
            false => Err(Error::SequenceWritten(self.name.to_string())),
        }
    }

    pub(crate) fn settings(&self) -> TableSettings {
        self.settings.read().clone()
    }

    /// What the settings say, without a copy of them.
    pub(crate) fn of_settings<T>(&self, ask: impl FnOnce(&TableSettings) -> T) -> T {
        ask(&self.settings.read())
    }

    pub(crate) fn retention(&self) -> Retention {
        self.settings.read().retention
    }

    /// How many times the settings were changed since the table was opened or made.
    pub(crate) fn settings_changes(&self) -> u64 {
        self.settings_changes.load(Ordering::Acquire)
    }

    pub(crate) fn set_settings(&self, settings: TableSettings) {
        let settings = settings.heeded();
        let mut known = self.settings.write();
        debug_assert_eq!(
            (known.sequence, &known.view),
            (settings.sequence, &settings.view),
            "a table stays a table, a sequence the sequence and a view the view that it is"
        );
        let is_ruled_alike = known.checks == settings.checks
            && known.foreign_keys == settings.foreign_keys
            && known.referrers == settings.referrers
            && known.references_off == settings.references_off;
        if !is_ruled_alike {
            let rules = Rules::of(&settings);
            self.is_ruled.store(!rules.is_empty(), Ordering::Release);
            *self.rules.write() = Arc::new(rules);
        }
        *known = settings;
        self.settings_changes.fetch_add(1, Ordering::Release);
    }

    /// Whether there are any rules for its rows, but for those of transactions that have not committed.
    #[inline]
    pub(crate) fn is_ruled(&self) -> bool {
        self.is_ruled.load(Ordering::Acquire)
    }

    /// The rules for its rows, but for those of transactions that have not committed.
    pub(crate) fn rules(&self) -> Arc<Rules> {
        self.rules.read().clone()
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
        let mut parts = columns.clone().zip(values);
        // A text that is longer than its column's may be is in no row.
        let is_beyond = |(column, value): (usize, &Value)| {
            matches!(value, Value::Text(_)) && is_too_long(value, self.schema.columns()[column].data_type)
        };
        if parts.any(is_beyond) {
            return Ok(None);
        }
        let mut fitted = FittedRow::new(&self.name, self.schema.columns(), columns.zip(values))?;
        Ok(Some(primary_key.key(&fitted.all())))
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
        self.fill_primary_key()?;
        let (mut take, guard) = (Some(take), &sync::pin());
        if !self.has_changed_keys() {
            // Whatever version of a record is visible, it has the key that the record was inserted with.
            let found = primary_key.find(guard, key, |rid| {
                let take = |cells: &[Cell<'_>]| take.take().map(|take| take(rid, cells));
                self.storage.read_pinned(guard, view, rid, columns, take).map(Option::flatten).transpose()
            });
            return Ok(found?.transpose()?);
        }
        let all: Vec<usize> = columns.iter().chain(&primary_key.columns).copied().collect();
        let found = primary_key.find(guard, key, |rid| {
            let passed = self.storage.read_pinned(guard, view, rid, &all, |cells| {
                let (cells, key_cells) = cells.split_at(columns.len());
                debug_assert_eq!(key_cells.len(), primary_key.columns.len(), "a cell for each column of the key");
                let has_key = primary_key.key(key_cells) == *key;
                take.take_if(|_| has_key).map(|take| take(rid, cells))
            });
            passed.map(Option::flatten).transpose()
        });
        Ok(found?.transpose()?)
    }

    /// The record that has this key in the version that the view sees.
    pub(crate) fn find(&self, view: View<'_, Transactions>, key: &IndexKey) -> Result<Option<Rid>> {
        self.read(view, key, &[], |rid, _| rid)
    }

    /// Asks for the memory of the rows with these keys, each with the columns that will be read: the first sixteen rows.
    pub(crate) fn prefetch<'k>(&self, rows: impl Iterator<Item = (&'k [Value], &'k [usize])>) {
        let (Some(primary_key), guard) = (&self.primary_key, &sync::pin()) else { return };
        // Nothing is read for a hint.
        if !primary_key.index.is_filled() || primary_key.index.blocks(guard).is_some() {
            return;
        }
        let mut keys = SmallVec::<[IndexKey; ROWS_AT_ONCE]>::new();
        let mut columns_of = SmallVec::<[&[usize]; ROWS_AT_ONCE]>::new();
        for (key, columns) in rows.take(ROWS_AT_ONCE) {
            let key = primary_key.key_of_words(&self.schema, key);
            let Some(key) = key.filter(|_| self.check_positions(columns.iter().copied()).is_ok()) else { continue };
            keys.push(key);
            columns_of.push(columns);
        }
        debug_assert_eq!(keys.len(), columns_of.len(), "columns for each key");
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
        let field = |column: &usize| self.fields[*column].clone();
        let mut fields: Vec<FieldRef> = options.columns.iter().map(field).collect();
        if options.with_rid {
            fields.push(Arc::new(Field::new("__rid", ArrowType::UInt64, false)));
        }
        Projection {
            request: Request { columns: options.columns.clone(), tests: options.tests.clone() },
            with_rid: options.with_rid,
            schema: Arc::new(ArrowSchema::new(fields)),
        }
    }
}

/// Whether a text has more characters than a type takes.
fn is_too_long(value: &Value, data_type: DataType) -> bool {
    data_type.has_length() && !value.fits(data_type)
}
