//! Rows that lose a key to which others refer: by a delete, or by an update of its columns.
//!
//! The row is locked before it is changed, so that its key is known which it has then; transactions that share the key are waited
//! for. What refers to the key is looked for when the statement is done.
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::Schema as ArrowSchema;
use lineage::{ArrayCells, Cell, Change, Comparison, Hold, Test, Validation, value_of_cell};
use smallvec::SmallVec;
use types::{Rid, Timestamp, Value};

use super::lookup::shown;
use super::noted::{FormerKeys, action};
use crate::error::{Error, ExpressionError, Result};
use crate::keys::data::Index;
use crate::keys::definition::{IndexExpression, IndexPart};
use crate::keys::order::Direction;
use crate::keys::range::IndexRange;
use crate::state::rules::Rules;
use crate::state::table_data::{ScanOptions, TableData};
use crate::table::Table;
use crate::terms::constraints::{ForeignKey, Referential, Referrer};
use crate::terms::isolation::{Isolation, LockStrength, LockWait, RowLock};
use crate::terms::row::{FittedRow, fitting};
use crate::transaction::Transaction;
use crate::transaction::change::Done;
use crate::transaction::locks::{hold_of, strength_of};

/// The Rids in the last column of a batch.
pub(super) fn rids(batch: &RecordBatch) -> Vec<Rid> {
    let words = batch.columns().last().and_then(|column| column.as_primitive_opt::<UInt64Type>());
    debug_assert!(words.is_some(), "a scan for Rids gives Rids");
    words.map(|words| words.values().iter().map(|word| Rid::from_word(*word)).collect()).unwrap_or_default()
}

impl Transaction {
    /// Locks a row that a change takes a key from to which others may refer, and reads what it is; `None` if the row is gone.
    pub(in crate::transaction) fn former_keys(
        &mut self,
        data: &Arc<TableData>,
        (rid, at): (Rid, Timestamp),
        rules: &Rules,
        change: Change<'_>,
    ) -> Result<Option<FormerKeys>> {
        debug_assert!(self.has_entered(data), "the table could go while a row of it is locked");
        let is_touched = |referrer: &&Arc<Referrer>| match change {
            Change::Delete => true,
            Change::Update(values) => values.iter().any(|(column, _)| referrer.columns.contains(column)),
        };
        let touched: SmallVec<[Arc<Referrer>; 2]> = rules.referrers().iter().filter(is_touched).cloned().collect();
        let mut keys = FormerKeys::new();
        if touched.is_empty() || self.options.ignores_references {
            return Ok(Some(keys));
        }
        if self.lock_for_change(data, rid, Hold::Whole, LockWait::Block, at)? == RowLock::Gone {
            return Ok(None);
        }
        for referrer in touched {
            let Some(key) = self.newest_values(data, rid, &referrer.columns)? else { return Ok(None) };
            // Nobody refers to NULL.
            if !key.iter().any(Value::is_null) {
                keys.push((referrer, key));
            }
        }
        Ok(Some(keys))
    }

    /// Notes the keys that a row had before a change, as far as it has them no more.
    pub(in crate::transaction) fn note_former_keys(
        &mut self,
        data: &Arc<TableData>,
        rid: Rid,
        keys: FormerKeys,
        is_deleted: bool,
    ) -> Result<()> {
        for (referrer, key) in keys {
            let is_kept = !is_deleted && self.newest_values(data, rid, &referrer.columns)?.as_ref() == Some(&key);
            if !is_kept {
                let references = self.references.get_or_insert_default();
                references.note_referred(data, &referrer, is_deleted, (rid, key));
            }
        }
        Ok(())
    }

    /// Looks for what refers to keys that rows had, and does with it what the constraint says.
    pub(super) fn settle_referred(
        &mut self,
        data: &Arc<TableData>,
        referrer: &Referrer,
        is_deleted: bool,
        rows: &[(Rid, Vec<Value>)],
    ) -> Result<()> {
        let Some((found, key)) = self.constraint_of(referrer)? else { return Ok(()) };
        let table = self.table_to_write(found.name())?;
        let own = self.table_of(data.clone());
        let index = self.key_over(&own, &referrer.columns)?;
        for (rid, old) in rows {
            let new = self.newest_values(data, *rid, &referrer.columns)?;
            // The change was taken back, or back again.
            if new.as_ref() == Some(old) {
                continue;
            }
            // A row that got another key and has gone since is as good as deleted.
            let (is_deleted, new) = (is_deleted || new.is_none(), new.as_deref());
            let action = action(&key, is_deleted);
            let follow = Follow { data, referrer, key: &key, action, is_deleted, old, new };
            // Another row may have got the key.
            if follow.action == Referential::NoAction
                && self.newest_with(data, &index, (&referrer.columns, old))?.is_some()
            {
                continue;
            }
            for referring in self.rows_with(&table, &key.columns, old)? {
                self.follow_reference(&table, referring, &follow)?;
            }
        }
        Ok(())
    }

    /// The records of a table that have these values in some columns now.
    fn rows_with(&self, table: &Table, columns: &[usize], values: &[Value]) -> Result<Vec<Rid>> {
        debug_assert_eq!(columns.len(), values.len(), "a value for each column");
        let known = table.schema().columns();
        let fit = |(column, value): (&usize, &Value)| fitting(&table.data.name, &known[*column], value);
        let Some(values) = columns.iter().zip(values).map(fit).collect::<Option<Vec<_>>>() else {
            return Ok(Vec::new());
        };
        let (view, options) = (self.newest_view()?, ScanOptions { with_rid: true, ..ScanOptions::default() });
        let mut found = Vec::new();
        if let Some((index, order)) = self.index_over(table, columns) {
            let range = IndexRange::equal(order.iter().map(|at| values[*at].clone()).collect());
            for batch in table.index_scan(&view, &index, &range, Direction::Upward, options)? {
                found.extend(rids(&batch?));
            }
        } else {
            let tests = columns.iter().zip(values);
            let tests = tests.map(|(column, value)| (*column, Test::Compare(Comparison::Eq, value))).collect();
            for batch in table.scan(&view, ScanOptions { tests, ..options })?.batches() {
                found.extend(rids(&batch?));
            }
        }
        Ok(found)
    }

    /// An index that begins with these columns, and the order in which it has them.
    fn index_over(&self, table: &Table, columns: &[usize]) -> Option<(Index, Vec<usize>)> {
        let order = |index: Index| {
            let definition = index.definition();
            let place = |part: &IndexPart| match part {
                IndexPart::Column(column) => columns.iter().position(|known| known == column),
                IndexPart::Expression(_) => None,
            };
            let order = definition.parts.iter().take(columns.len()).map(place).collect::<Option<Vec<_>>>()?;
            let is_whole = order.len() == columns.len() && (0..order.len()).all(|at| order.contains(&at));
            let is_whole_key = definition.parts.len() == columns.len() && definition.method.finds_keys();
            let serves = index.is_ordered() || is_whole_key;
            (is_whole && serves && definition.predicate.is_none()).then_some((index, order))
        };
        table.primary_index().into_iter().chain(self.indexes(table)).find_map(order)
    }

    /// Does with a row that refers to a key that went what the constraint says.
    fn follow_reference(&mut self, table: &Table, rid: Rid, follow: &Follow<'_>) -> Result<()> {
        let Follow { key, action, .. } = follow;
        let set = match follow.is_deleted && !key.set_on_delete.is_empty() {
            true => &key.set_on_delete,
            false => &key.columns,
        };
        let changes = match action {
            Referential::NoAction | Referential::Restrict => {
                return self.refuse_reference(table, rid, follow);
            }
            Referential::Cascade => follow.new.filter(|_| !follow.is_deleted).map(<[Value]>::to_vec),
            Referential::SetNull => Some(vec![Value::Null; set.len()]),
            Referential::SetDefault => {
                let defaults = self.defaults_of(table, set)?;
                // Nothing would change, and so nobody would look.
                if set.len() == key.columns.len() && follow.is_old(table, &defaults) {
                    return self.refuse_reference(table, rid, follow);
                }
                Some(defaults)
            }
        };
        let Some(values) = changes else {
            return self.change_referring(table, rid, LockStrength::Update, Change::Delete, follow);
        };
        let changes = set.iter().copied().zip(&values);
        let mut fitted = FittedRow::new(&table.data.name, table.schema().columns(), changes)?;
        let cells: SmallVec<[(usize, Cell<'_>); 4]> = fitted.cells().collect();
        let change = Change::Update(&cells);
        self.change_referring(table, rid, strength_of(hold_of(&table.data, change)), change, follow)
    }

    /// Changes a row if it still refers to a key. Above READ COMMITTED one that is newer than the snapshot is a conflict.
    fn change_referring(
        &mut self,
        table: &Table,
        rid: Rid,
        strength: LockStrength,
        change: Change<'_>,
        follow: &Follow<'_>,
    ) -> Result<()> {
        let data = &table.data;
        if !self.still_refers(table, rid, strength, follow)? {
            return Ok(());
        }
        if self.options.isolation != Isolation::ReadCommitted {
            let asked = Validation { from: self.at, to: Timestamp::MAX, own: self.id(), outcomes: self.transactions() };
            if data.storage.changed_between(rid, asked)? {
                return Err(self.lose(Error::Conflict));
            }
        }
        let done = self.change(data, rid, Timestamp::MAX, change)?;
        debug_assert_eq!(done, Done::Changed, "a row that is locked is there");
        Ok(())
    }

    /// Refuses that a key goes which a row still refers to.
    fn refuse_reference(&mut self, table: &Table, rid: Rid, follow: &Follow<'_>) -> Result<()> {
        match self.still_refers(table, rid, LockStrength::KeyShare, follow)? {
            true => Err(follow.refused(table)),
            false => Ok(()),
        }
    }

    /// Locks a row that refers to a key; whether it still does.
    fn still_refers(&mut self, table: &Table, rid: Rid, strength: LockStrength, follow: &Follow<'_>) -> Result<bool> {
        let locked = self.lock_found(table, rid.word(), strength, LockWait::Block, Timestamp::MAX)?;
        if !matches!(locked, RowLock::Locked | RowLock::Stale) {
            return Ok(false);
        }
        let now = self.newest_values(&table.data, rid, &follow.key.columns)?;
        Ok(now.is_some_and(|now| follow.is_old(table, &now)))
    }

    /// What fills some columns where nothing is given.
    fn defaults_of(&self, table: &Table, columns: &[usize]) -> Result<Vec<Value>> {
        let settings = self.settings(table);
        let value = |column: &usize| {
            let default = settings.defaults.iter().find(|default| default.column == *column);
            match default.and_then(|default| default.expression.as_deref()) {
                None => Ok(Value::Null),
                Some(text) => Ok(self.constant(text, table.schema().columns()[*column].data_type)?),
            }
        };
        debug_assert!(!columns.is_empty(), "a foreign key without columns");
        columns.iter().map(value).collect()
    }

    /// The value of an expression that is the same for all rows.
    fn constant(&self, text: &str, data_type: types::DataType) -> Result<Value, ExpressionError> {
        let changing = |_| {
            let why =
                format!("SET DEFAULT of a column that is filled by {text}, which is no constant, is not supported");
            ExpressionError::new("0A000", why)
        };
        let missing = || ExpressionError::new("55000", "SET DEFAULT needs SQL, and the database was opened without");
        let compiler = self.anchor.core.expressions().ok_or_else(missing)?;
        let expression = IndexExpression { text: text.to_owned(), columns: Vec::new(), data_type };
        let compiled = compiler.compile(&expression, &[]).map_err(changing)?;
        let options = RecordBatchOptions::new().with_row_count(Some(1));
        let row = RecordBatch::try_new_with_options(Arc::new(ArrowSchema::empty()), Vec::new(), &options);
        let row = row.map_err(|error| ExpressionError::new("XX000", error.to_string()))?;
        let value = compiled.evaluate(&row)?;
        Ok(value_of_cell(ArrayCells::new(value.as_ref(), data_type).get(0), data_type))
    }
}

/// What happens to rows that refer to a key that went.
struct Follow<'a> {
    data: &'a TableData,
    referrer: &'a Referrer,
    key: &'a ForeignKey,
    action: Referential,
    is_deleted: bool,
    old: &'a [Value],
    /// `None` where the row is gone
    new: Option<&'a [Value]>,
}

impl Follow<'_> {
    /// Whether values of the columns that refer are the key that went.
    fn is_old(&self, table: &Table, values: &[Value]) -> bool {
        let known = table.schema().columns();
        let is_old = |((column, value), old): ((&usize, &Value), &Value)| {
            fitting(&table.data.name, &known[*column], old).as_ref() == Some(value)
        };
        self.key.columns.iter().zip(values).zip(self.old).all(is_old)
    }

    fn refused(&self, table: &Table) -> Error {
        Error::StillReferenced {
            table: self.data.name.to_string(),
            constraint: self.key.name.clone(),
            by: table.name().to_owned(),
            key: shown(self.data, &self.referrer.columns, self.old),
        }
    }
}
