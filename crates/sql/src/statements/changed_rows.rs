//! The rows that a statement has changed, side by side with those of other tables that they were joined to: what `RETURNING` is
//! about.
use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BooleanArray, Int64Array, RecordBatch, UInt64Array};
use arrow_schema::{Field, Schema};
use arrow_select::filter::filter;
use datafusion::sql::sqlparser::ast::{Expr, Ident, TableFactor, TableWithJoins};
use engine::{Changed, Table};

use crate::access::table::{XMAX, rid_column};
use crate::error::{Result, SqlError};
use crate::names::schemas::local;
use crate::names::tables::Tables;
use crate::names::{fold, table_name};
use crate::state::target::batch;
use crate::state::with_rows::WithRows;
use crate::syntax::identifiers::last_part;
use crate::syntax::source::Source;
use crate::values::assign::{Texts, assign};
use crate::values::types::arrow_schema;

/// A table and what its columns are called by in a statement.
#[derive(Clone)]
pub(crate) struct NamedTable {
    pub(crate) label: String,
    pub(crate) table: Table,
}

/// The tables in the FROM of an `UPDATE`, or the USING of a `DELETE`; `None` for what is no table there.
pub(crate) fn joined(
    others: &[TableWithJoins],
    tables: &Tables,
    with: &WithRows,
    source: &Source,
) -> Vec<Option<NamedTable>> {
    let factors = others
        .iter()
        .flat_map(|table| std::iter::once(&table.relation).chain(table.joins.iter().map(|join| &join.relation)));
    factors.map(|factor| named(factor, tables, with, source)).collect()
}

fn named(factor: &TableFactor, tables: &Tables, with: &WithRows, source: &Source) -> Option<NamedTable> {
    let TableFactor::Table { name, alias, args: None, version: None, .. } = factor else { return None };
    if name.0.len() == 1 && last_part(name).is_some_and(|name| with.has(&name)) {
        return None;
    }
    let name = table_name(name, source).ok()?;
    let table = tables.find(&name).ok().filter(|table| table.sequence().is_none() && table.view().is_none())?;
    match alias {
        None => Some(NamedTable { label: local(&name).to_owned(), table }),
        Some(alias) if alias.columns.is_empty() => Some(NamedTable { label: fold(&alias.name), table }),
        Some(_) => None,
    }
}

/// All columns of tables as expressions.
pub(crate) fn columns_of(tables: &[NamedTable]) -> Vec<Expr> {
    let quoted = |name: &str| Ident::with_quote('"', name);
    let of_table = |named: &NamedTable| {
        let columns = named.table.schema().columns().iter();
        let column = |name: &String| Expr::CompoundIdentifier(vec![quoted(&named.label), quoted(name)]);
        columns.map(|known| column(&known.name)).collect::<Vec<_>>()
    };
    tables.iter().flat_map(of_table).collect()
}

/// The rows that were changed, as they are now: of those that were found, with the columns of all tables from the one at `first` on, and
/// the new values of some columns of the first table.
pub(crate) fn rows_changed(
    tables: &[NamedTable],
    found: &RecordBatch,
    new: &[(usize, ArrayRef)],
    (rids, changed): (&UInt64Array, &Changed),
    mut first: usize,
) -> Result<Vec<RecordBatch>> {
    let left_out: HashSet<u64> = changed.stale.iter().chain(&changed.gone).copied().collect();
    let is_changed: BooleanArray = rids.values().iter().map(|rid| Some(!left_out.contains(rid))).collect();
    debug_assert_eq!(is_changed.true_count() as u64, changed.rows, "rows are changed, gone or stale");
    let mut kept = Vec::with_capacity(tables.len());
    for NamedTable { table, .. } in tables {
        let new = if kept.is_empty() { new } else { &[] };
        let columns = columns_as_now(table, found, new, first)?;
        first += columns.len();
        let columns: std::result::Result<_, _> = columns.iter().map(|array| filter(array, &is_changed)).collect();
        let columns = columns.map_err(|error| SqlError::new("XX000", error.to_string()))?;
        kept.push(as_read(table, columns, is_changed.true_count())?);
    }
    Ok(kept)
}

/// The columns of one table among those that were found, from the one at `first` on, but for those that have new values.
fn columns_as_now(
    table: &Table,
    found: &RecordBatch,
    new: &[(usize, ArrayRef)],
    first: usize,
) -> Result<Vec<ArrayRef>> {
    let schema = found.schema();
    let columns = table.schema().columns().iter().enumerate();
    let column = |(at, column): (usize, &engine::Column)| match new.iter().find(|(set, _)| *set == at) {
        Some((_, array)) => Ok(array.clone()),
        None => {
            let (array, field) = (found.column(first + at), schema.field(first + at));
            assign(array, field, &column.name, column.data_type, Texts::Stay)
        }
    };
    columns.map(column).collect()
}

/// Whole rows of a table as a query reads them.
pub(crate) fn as_read(table: &Table, columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
    batch(arrow_schema(table.schema()), columns, rows)
}

/// Numbers rows in one more column, by which those of one table find those of another that stood beside them.
pub(crate) fn numbered(rows: &[RecordBatch], table: usize) -> Result<Vec<RecordBatch>> {
    let mut next = 0u64;
    let mut numbered = Vec::with_capacity(rows.len());
    for rows in rows {
        let end = next + rows.num_rows() as u64;
        numbered.push(with_rids(rows, (next..end).collect(), table)?);
        next = end;
    }
    Ok(numbered)
}

/// Rows with numbers in one more column, which no statement can spell.
pub(crate) fn with_rids(rows: &RecordBatch, numbers: UInt64Array, table: usize) -> Result<RecordBatch> {
    with_column(rows, rid_column(table), Arc::new(numbers))
}

/// Rows that say by which transaction the rows before them were changed, 0 for none.
pub(crate) fn with_xmax(rows: &RecordBatch, number: i64) -> Result<RecordBatch> {
    with_column(rows, XMAX.to_owned(), Arc::new(Int64Array::from(vec![number; rows.num_rows()])))
}

/// Whether rows say that.
pub(crate) fn has_xmax(rows: &RecordBatch) -> bool {
    rows.schema().fields().iter().any(|field| field.name() == XMAX)
}

fn with_column(rows: &RecordBatch, name: String, values: ArrayRef) -> Result<RecordBatch> {
    let field = Arc::new(Field::new(name, values.data_type().clone(), false));
    let fields: Vec<Arc<Field>> = rows.schema().fields().iter().cloned().chain([field]).collect();
    let columns = rows.columns().iter().cloned().chain([values]).collect();
    batch(Arc::new(Schema::new(fields)), columns, rows.num_rows())
}
