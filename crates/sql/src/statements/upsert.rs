//! What `ON CONFLICT ... DO UPDATE` changes rows to, where that is made of values alone and needs no query.
use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{Field, Schema as ArrowSchema};
use engine::{ScanOptions, Table, Value};

use crate::error::{Result, SqlError};
use crate::names::moment::Moment;
use crate::point::bound::Bound;
use crate::point::conflict::Update;
use crate::state::target::batch;
use crate::values::builder::ColumnBuilder;
use crate::values::single::value_at;
use crate::values::stored::as_queried;
use crate::values::types::{arrow_columns, fields};

/// What rows that are there change to, in one execution.
#[derive(Clone, Copy)]
pub(super) struct Upsert<'a> {
    pub(super) update: &'a Update,
    pub(super) bound: &'a Bound<'a>,
}

impl Upsert<'_> {
    /// The rows that are there, each with its id, the new values and where they are wanted all of its columns, as a query would
    /// give them; `rows` are those that were to be put in, and `which` tells which of them meets which row. `None` if a value
    /// does not fit.
    pub(super) fn rows(
        self,
        table: &Table,
        moment: &Moment,
        rows: &RecordBatch,
        which: &[&(usize, u64)],
        keeps: bool,
    ) -> Result<Option<RecordBatch>> {
        let columns = table.schema().columns();
        let (width, reads) = (columns.len(), &self.update.reads);
        let own = reads.iter().copied().filter(|column| *column < width);
        let read: Vec<usize> = own.chain((0..width).filter(|_| keeps)).collect();
        let options = ScanOptions { columns: read.clone(), with_rid: true, ..ScanOptions::default() };
        let rids: Vec<u64> = which.iter().map(|(_, rid)| *rid).collect();
        let found = table.lookup_rids(moment.view(), &rids, &options)?;
        let found_rids = found.column(read.len()).as_primitive::<UInt64Type>();
        let set: Vec<_> = self.update.sets.iter().map(|(column, _)| &columns[*column]).collect();
        let mut builders: Vec<ColumnBuilder> = set.iter().map(|column| ColumnBuilder::new(column.data_type)).collect();
        for row in 0..found.num_rows() {
            let Some((new, _)) = which.iter().find(|(_, rid)| *rid == found_rids.value(row)) else { continue };
            let mut place = 0..;
            let value = |column: &usize| match *column < width {
                true => value_at(found.column(place.next()?), row, columns[*column].data_type),
                false => value_at(rows.column(column - width), *new, columns[column - width].data_type),
            };
            let values = reads.iter().map(value).collect::<Option<Vec<Value>>>();
            let values =
                values.ok_or_else(|| SqlError::new("XX000", "a column has a value that is none of its type"))?;
            let Some(changes) = self.bound.changes(&self.update.sets, &values) else { return Ok(None) };
            for ((builder, column), (_, value)) in builders.iter_mut().zip(&set).zip(&changes) {
                let appended = builder.append_value(value);
                appended.map_err(|misfit| misfit.error(&column.name, column.data_type, "", ""))?;
            }
        }
        let new =
            fields(&set.into_iter().cloned().collect::<Vec<_>>()).into_iter().map(|field| field.with_nullable(true));
        let all = if keeps { arrow_columns(columns) } else { ArrowSchema::empty().into() };
        let rid = Field::new("", arrow_schema::DataType::UInt64, false);
        let of_all = [rid.into()].into_iter().chain(new.map(Into::into)).chain(all.fields().iter().cloned());
        let schema = ArrowSchema::new(of_all.collect::<Vec<_>>());
        let mut arrays: Vec<ArrayRef> = vec![found.column(read.len()).clone()];
        arrays.extend(builders.into_iter().map(|mut builder| builder.finish()));
        let first = read.len() - all.fields().len();
        let whole = all.fields().iter().enumerate();
        arrays.extend(whole.map(|(at, field)| as_queried(found.column(first + at), field.data_type())));
        debug_assert!(arrays.iter().all(|array| array.len() == found.num_rows()), "one new value for each row");
        batch(schema.into(), arrays, found.num_rows()).map(Some)
    }
}
