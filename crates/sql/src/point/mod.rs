//! Statements that touch a row by its primary key, or few rows by any index, without the planner.
//!
//! ```text
//! SELECT a, b FROM t WHERE key = ?            UPDATE t SET a = ?, b = b + ? WHERE key = ?
//! INSERT INTO t (a, b) VALUES (?, ?), ...     DELETE FROM t WHERE key = ?              ?: a literal or a parameter
//!     [RETURNING a, b], also of an UPDATE that sets no column of the key
//! ```
//!
//! Queries of few rows that any index leads to are read beside them, by [`search`].
//!
//! Such a statement is looked at once (`shape` tells what it is, `term` where its values come from), against the table as it is
//! then, and run (`statements/point.rs`, with the values that `bound` has) as often as wanted by a call of the engine: no plan, no
//! task, no other thread. Whatever it says besides, and whatever value is not plainly one of its column's type, goes the long
//! way, which means the same for all that both can do, errors included: here nothing is reported that the engine does not report.
//!
//! Imports names, values, defaults of columns (in `access`) and below; sessions keep such statements prepared.
pub(crate) mod bound;
pub(crate) mod exact;
pub(crate) mod fills;
pub(crate) mod search;
pub(crate) mod shape;
pub(crate) mod term;
#[cfg(test)]
mod tests;
use std::sync::Arc;

use arrow_schema::{Field, Schema as ArrowSchema, SchemaRef};
use datafusion::sql::sqlparser::ast::{Query, SelectItem, Statement};
use engine::{DataType, Table};
use fills::is_always_filled;
use search::{Changes, Search};
use shape::Shape;
use term::{Origin, Scope, Term};

use crate::names::origin::Origin as Source;
use crate::names::tables::Tables;
use crate::parsing::lock_clauses::LockClause;
use crate::values::types::arrow_schema;

/// A statement about rows by their keys, for a table as it is.
#[derive(Debug)]
pub(crate) struct Point {
    pub(crate) table: String,
    pub(crate) id: u32,
    pub(crate) action: Action,
}

/// The action of such a statement; values are the literals and parameters that they come from.
#[derive(Debug)]
pub(crate) enum Action {
    Select {
        key: Vec<Origin>,
        columns: Columns,
    },
    /// Rows that an index leads to.
    Search(Search),
    /// A change of such rows.
    Change(Changes),
    /// Columns in the order in which they are set; those that are read.
    Update {
        key: Vec<Origin>,
        sets: Vec<(usize, Term)>,
        reads: Vec<usize>,
        settings_changes: u64,
        returning: Option<Columns>,
    },
    Delete {
        key: Vec<Origin>,
    },
    /// Whole rows, as they are filled until the settings of the table change.
    Insert {
        rows: Vec<Vec<Origin>>,
        settings_changes: u64,
        returning: Option<Columns>,
    },
}

/// Columns of a table that a statement gives.
#[derive(Debug)]
pub(crate) struct Columns {
    /// their positions
    pub(crate) positions: Vec<usize>,
    /// under their names in the answer
    pub(crate) schema: SchemaRef,
}

impl Point {
    /// The statement, if it is one of these; `types` are those of its parameters.
    pub(crate) fn plan(statement: &Statement, tables: &Tables, types: &[DataType]) -> Option<Point> {
        Point::of_shape(Shape::of(statement)?, None, tables, types)
    }

    /// The query that locks its rows, if it is one of these.
    pub(crate) fn plan_locking(
        query: &Query,
        clauses: &[LockClause],
        tables: &Tables,
        types: &[DataType],
    ) -> Option<Point> {
        let [clause] = clauses else { return None };
        Point::of_shape(Shape::of_query(query)?, Some(clause), tables, types)
    }

    fn of_shape(shape: Shape<'_>, lock: Option<&LockClause>, tables: &Tables, types: &[DataType]) -> Option<Point> {
        let table =
            tables.find(&shape.table).ok().filter(|table| table.sequence().is_none() && table.view().is_none())?;
        let schema = table.schema().clone();
        let scope = Scope { schema: &schema, label: &shape.label, types };
        let key = || scope.key(&shape.conditions);
        let action = match &shape.action {
            shape::Action::Select(selection) => {
                let columns = || Columns::of(selection.items, &scope, &table);
                let plain = key().filter(|_| lock.is_none() && selection.is_plain());
                match plain.and_then(|key| Some(Action::Select { key, columns: columns()? })) {
                    Some(select) => select,
                    None => Action::Search(Search::plan(&shape.conditions, selection, lock, (&scope, &table))?),
                }
            }
            shape::Action::Update { sets, returning } => {
                let sets = sets.iter().map(|(column, expr)| scope.set(column, expr)).collect::<Option<Vec<_>>>()?;
                let is_twice =
                    |(at, (column, _)): (usize, &(usize, Term))| sets[..at].iter().any(|set| set.0 == *column);
                if sets.iter().enumerate().any(is_twice) {
                    return None;
                }
                let defaults = table.settings().defaults;
                if sets.iter().any(|(column, _)| is_always_filled(&defaults, *column)) {
                    return None;
                }
                let reads = sets.iter().filter_map(|(_, term)| term.reads()).collect();
                let returning = Columns::of_clause(*returning, &scope, &table)?;
                let is_of_key = |(column, _): &(usize, Term)| schema.primary_key().contains(column);
                if returning.is_some() && sets.iter().any(is_of_key) {
                    return None;
                }
                match key() {
                    Some(key) => {
                        Action::Update { key, sets, reads, settings_changes: table.settings_changes(), returning }
                    }
                    None if returning.is_some() => return None,
                    None => Action::Change(Changes::plan(&shape.conditions, sets, (&scope, &table))?),
                }
            }
            shape::Action::Delete => match key() {
                Some(key) => Action::Delete { key },
                None => Action::Change(Changes::plan(&shape.conditions, Vec::new(), (&scope, &table))?),
            },
            shape::Action::Insert { columns, rows, returning } => {
                let settings_changes = table.settings_changes();
                let defaults = table.settings().defaults;
                let returning = Columns::of_clause(*returning, &scope, &table)?;
                Action::Insert { rows: scope.rows(columns, rows, &defaults)?, settings_changes, returning }
            }
        };
        Some(Point { table: shape.table, id: table.id(), action })
    }

    /// The columns of its rows, if it gives any and its table is what it was.
    pub(crate) fn schema(&self, tables: &Tables) -> Option<SchemaRef> {
        let schema = match &self.action {
            Action::Select { columns, .. } => &columns.schema,
            Action::Search(search) => search.answer.schema(),
            Action::Insert { returning, .. } | Action::Update { returning, .. } => &returning.as_ref()?.schema,
            Action::Delete { .. } | Action::Change(_) => return None,
        };
        let table = tables.find(&self.table).ok().filter(|table| table.id() == self.id);
        table.map(|_| schema.clone())
    }
}

impl Columns {
    /// Those of a `RETURNING`, if there is one; `None` if it gives more than columns.
    fn of_clause(items: Option<&[SelectItem]>, scope: &Scope<'_>, table: &Table) -> Option<Option<Columns>> {
        match items {
            Some(items) => Columns::of(items, scope, table).map(Some),
            None => Some(None),
        }
    }

    /// Those of a list, if it is one of columns.
    fn of(items: &[SelectItem], scope: &Scope<'_>, table: &Table) -> Option<Columns> {
        let items = shape::columns(items, scope)?;
        let positions = items.iter().map(|(column, _)| *column).collect();
        Some(Columns { positions, schema: heading(table, &items) })
    }
}

/// The columns of a query's answer, each under its name there.
fn heading(table: &Table, items: &[(usize, String)]) -> SchemaRef {
    let schema = arrow_schema(table.schema());
    let field = |(column, name): &(usize, String)| -> Field {
        let field = schema.field(*column).clone().with_name(name).with_nullable(true);
        Source::of_column(table, *column).noted_on(field)
    };
    Arc::new(ArrowSchema::new(items.iter().map(field).collect::<Vec<_>>()))
}
