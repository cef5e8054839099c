//! The rows that a statement has changed, side by side with those of other tables that they were joined to: what `RETURNING` is
//! about.
use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BooleanArray, Int64Array, RecordBatch, UInt64Array, new_empty_array};
use arrow_cast::cast;
use arrow_schema::{ArrowError, Field, Schema, SchemaRef};
use arrow_select::filter::filter;
use datafusion::sql::sqlparser::ast::{
    Expr, Ident, SelectItem, SelectItemQualifiedWildcardKind, SetExpr, Statement, TableFactor, TableWithJoins,
};
use engine::{Changed, Table};

use crate::access::table::{XMAX, rid_column};
use crate::error::{Result, SqlError};
use crate::names::moment::Moment;
use crate::names::schemas::local;
use crate::names::tables::Tables;
use crate::names::{fold, table_name};
use crate::session::Session;
use crate::state::target::batch;
use crate::state::view::View;
use crate::state::with_rows::WithRows;
use crate::syntax::identifiers::last_part;
use crate::syntax::source::Source;
use crate::syntax::template::template;
use crate::syntax::walk::walk_expressions;
use crate::values::assign::{Texts, assign};
use crate::values::types::arrow_schema;

/// Rows, and what their columns are called by in a statement.
#[derive(Clone)]
pub(crate) struct NamedRows {
    pub(crate) label: String,
    pub(crate) of: RowsOf,
}

/// What rows are of.
#[derive(Clone)]
pub(crate) enum RowsOf {
    Table(Table),
    /// What stands in FROM and is no table, with its columns.
    Query(SchemaRef),
}

impl NamedRows {
    pub(crate) fn of_table(label: impl Into<String>, table: &Table) -> NamedRows {
        NamedRows { label: label.into(), of: RowsOf::Table(table.clone()) }
    }

    fn names(&self) -> Vec<String> {
        match &self.of {
            RowsOf::Table(table) => table.schema().columns().iter().map(|column| column.name.clone()).collect(),
            RowsOf::Query(schema) => schema.fields().iter().map(|field| field.name().clone()).collect(),
        }
    }

    /// No rows.
    pub(crate) fn none(&self) -> Result<RecordBatch> {
        match &self.of {
            RowsOf::Table(table) => {
                let columns = table.schema().columns().iter();
                as_read(table, columns.map(|column| new_empty_array(&column.data_type.to_arrow())).collect(), 0)
            }
            RowsOf::Query(schema) => Ok(RecordBatch::new_empty(schema.clone())),
        }
    }
}

/// The rows in the FROM of an `UPDATE`, or the USING of a `DELETE`; `None` for those whose columns are not known, as they go by what
/// stands before them, and for a query of which `RETURNING` names none.
pub(crate) fn joined(
    others: &[TableWithJoins],
    returned: &[SelectItem],
    session: &Session,
    with: &WithRows,
    source: &Source,
) -> Vec<Option<NamedRows>> {
    let factors = others
        .iter()
        .flat_map(|table| std::iter::once(&table.relation).chain(table.joins.iter().map(|join| &join.relation)));
    factors
        .map(|factor| {
            named(factor, &session.tables, with, source).or_else(|| of_query(factor, returned, session, with))
        })
        .collect()
}

/// Whether an item may be about rows of this label: it names them, or does not say of which rows a column is.
fn may_name(item: &SelectItem, label: &str) -> bool {
    match item {
        SelectItem::Wildcard(_) => return true,
        SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) => {
            return last_part(name).is_none_or(|name| name == label);
        }
        _ => {}
    }
    let found = walk_expressions(item, |expr| match expr {
        Expr::CompoundIdentifier(parts) if parts.first().is_some_and(|part| fold(part) != label) => {
            ControlFlow::Continue(())
        }
        Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::CompoundFieldAccess { .. } => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    });
    found.is_break()
}

/// What stands in FROM with the columns that it gives by itself.
fn of_query(factor: &TableFactor, returned: &[SelectItem], session: &Session, with: &WithRows) -> Option<NamedRows> {
    let (alias, name) = match factor {
        TableFactor::Table { name, alias, .. } => (alias, last_part(name)),
        TableFactor::Derived { lateral: false, alias, .. } | TableFactor::Function { lateral: false, alias, .. } => {
            (alias, None)
        }
        _ => return None,
    };
    let label = alias.as_ref().map(|alias| fold(&alias.name)).or(name)?;
    if !returned.iter().any(|item| may_name(item, &label)) {
        return None;
    }
    let mut query = template("SELECT * FROM s.t AS t").ok()?;
    let SetExpr::Select(select) = query.body.as_mut() else { return None };
    select.from.first_mut()?.relation = factor.clone();
    with.surround(&mut query).ok()?;
    let moment = Moment::now(&session.db).ok()?;
    let view = View { given: with.given(), ..session.view(moment, Vec::new()) };
    let schema = session.planner.plan(Statement::Query(query), view, &Source::new("")).ok()?.schema();
    let names: HashSet<&String> = schema.fields().iter().map(|field| field.name()).collect();
    if names.len() < schema.fields().len() {
        return None;
    }
    let fields = schema.fields().iter().map(|field| field.as_ref().clone().with_nullable(true));
    Some(NamedRows { label, of: RowsOf::Query(Arc::new(Schema::new(fields.collect::<Vec<_>>()))) })
}

fn named(factor: &TableFactor, tables: &Tables, with: &WithRows, source: &Source) -> Option<NamedRows> {
    let TableFactor::Table { name, alias, args: None, version: None, .. } = factor else { return None };
    if name.0.len() == 1 && last_part(name).is_some_and(|name| with.has(&name)) {
        return None;
    }
    let name = table_name(name, source).ok()?;
    let table = tables.find(&name).ok().filter(|table| table.sequence().is_none() && table.view().is_none())?;
    match alias {
        None => Some(NamedRows::of_table(local(&name), &table)),
        Some(alias) if alias.columns.is_empty() => Some(NamedRows::of_table(fold(&alias.name), &table)),
        Some(_) => None,
    }
}

/// All columns of rows as expressions.
pub(crate) fn columns_of(tables: &[NamedRows]) -> Vec<Expr> {
    let quoted = |name: &str| Ident::with_quote('"', name);
    let of_rows = |named: &NamedRows| {
        let column = |name: String| Expr::CompoundIdentifier(vec![quoted(&named.label), quoted(&name)]);
        named.names().into_iter().map(column).collect::<Vec<_>>()
    };
    tables.iter().flat_map(of_rows).collect()
}

/// The rows that were changed, as they are now: of those that were found, with the columns of all tables from the one at `first` on, and
/// the new values of some columns of the first table.
pub(crate) fn rows_changed(
    tables: &[NamedRows],
    found: &RecordBatch,
    new: &[(usize, ArrayRef)],
    (rids, changed): (&UInt64Array, &Changed),
    mut first: usize,
) -> Result<Vec<RecordBatch>> {
    let left_out: HashSet<u64> = changed.stale.iter().chain(&changed.gone).copied().collect();
    let is_changed: BooleanArray = rids.values().iter().map(|rid| Some(!left_out.contains(rid))).collect();
    debug_assert_eq!(is_changed.true_count() as u64, changed.rows, "rows are changed, gone or stale");
    let mut kept = Vec::with_capacity(tables.len());
    let failed = |error: ArrowError| SqlError::new("XX000", error.to_string());
    for NamedRows { of, .. } in tables {
        let new = if kept.is_empty() { new } else { &[] };
        let columns = match of {
            RowsOf::Table(table) => columns_as_now(table, found, new, first)?,
            RowsOf::Query(schema) => {
                let arrays = found.columns()[first..].iter().zip(schema.fields());
                arrays.map(|(array, field)| cast(array, field.data_type()).map_err(failed)).collect::<Result<_>>()?
            }
        };
        first += columns.len();
        let columns: Vec<ArrayRef> =
            columns.iter().map(|array| filter(array, &is_changed).map_err(failed)).collect::<Result<_>>()?;
        let count = is_changed.true_count();
        kept.push(match of {
            RowsOf::Table(table) => as_read(table, columns, count)?,
            RowsOf::Query(schema) => batch(schema.clone(), columns, count)?,
        });
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
