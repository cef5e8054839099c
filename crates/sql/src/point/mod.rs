//! Statements that touch a row by its primary key, or few rows by any index, without the planner.
//!
//! ```text
//! SELECT a, b FROM t WHERE key = ?            UPDATE t SET a = ?, b = b + ? WHERE key = ?
//! INSERT INTO t (a, b) VALUES (?, ?), ...     DELETE FROM t WHERE key = ?              ?: a literal or a parameter
//!     [ON CONFLICT ... DO NOTHING | UPDATE SET a = EXCLUDED.a, b = t.b + EXCLUDED.b]
//!     [RETURNING a, b], of each of the three
//! ```
//!
//! Queries of few rows that any index leads to are read beside them, by [`search`], and those of a few tables that are joined by
//! their keys by [`join`].
//!
//! Such a statement is looked at once (`shape` tells what it is, `term` where its values come from), against the table as it is
//! then, and run (`statements/point.rs`, with the values that `bound` has) as often as wanted by a call of the engine: no plan, no
//! task, no other thread. Whatever it says besides, and whatever value is not plainly one of its column's type, goes the long
//! way, which means the same for all that both can do, errors included: here nothing is reported that the engine does not report.
//!
//! Imports names, values, defaults of columns (in `access`) and below; sessions keep such statements prepared.
mod assigned;
#[cfg(test)]
mod assigned_tests;
#[cfg(test)]
mod both_ways;
pub(crate) mod bound;
pub(crate) mod columns;
pub(crate) mod computed;
pub(crate) mod conflict;
#[cfg(test)]
mod conflict_tests;
pub(crate) mod exact;
pub(crate) mod fills;
pub(crate) mod join;
pub(crate) mod operands;
pub(crate) mod scope;
pub(crate) mod search;
pub(crate) mod shape;
pub(crate) mod term;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tpcc;
use arrow_schema::SchemaRef;
use columns::Columns;
use conflict::Conflict;
use datafusion::sql::sqlparser::ast::{Query, Statement};
use engine::{DataType, Table, WordsRead, WordsUpdate};
use fills::is_always_filled;
use join::Join;
use scope::{Named, Scope, is_plain};
use search::passed::are_passed;
use search::{Changes, Search};
use shape::Shape;
use term::{Origin, Term};

use crate::names::tables::Tables;
use crate::parsing::lock_clauses::LockClause;

/// A statement about rows by their keys, for tables as they are.
#[derive(Debug)]
pub(crate) struct Point {
    /// Of several tables the first.
    pub(crate) table: String,
    pub(crate) id: u32,
    pub(crate) action: Action,
}

/// What a statement is read for.
#[derive(Clone, Copy)]
pub(crate) struct Reading<'a> {
    /// of the parameters
    types: &'a [DataType],
    /// Whether expressions are compiled.
    compiles: bool,
}

impl<'a> Reading<'a> {
    /// For one execution, without parameters.
    pub(crate) const ONCE: Reading<'static> = Reading { types: &[], compiles: false };

    /// For many executions, with parameters of these types.
    pub(crate) fn often(types: &'a [DataType]) -> Reading<'a> {
        Reading { types, compiles: true }
    }
}

/// The action of such a statement; values are the literals and parameters that they come from.
#[derive(Debug)]
pub(crate) enum Action {
    Select {
        key: Vec<Origin>,
        columns: Columns,
        /// How the row is read at once, where all of its columns are words.
        words: Option<WordsRead>,
    },
    /// Rows that an index leads to.
    Search(Box<Search>),
    /// Rows of a few tables, each of which an index leads to.
    Join(Join),
    /// A change of such rows.
    Change(Changes),
    /// Columns in the order in which they are set; those that are read.
    Update {
        key: Vec<Origin>,
        sets: Vec<(usize, Term)>,
        reads: Vec<usize>,
        settings_changes: u64,
        returning: Option<Columns>,
        /// How it is done at once, where all that is read and set are words.
        words: Option<WordsUpdate>,
    },
    Delete {
        key: Vec<Origin>,
    },
    Insert(NewRows),
}

/// Whole rows that are put in, as they are filled until the settings of the table change.
#[derive(Debug)]
pub(crate) struct NewRows {
    pub(crate) rows: Vec<Vec<Origin>>,
    /// whether values are numbers of sequences
    pub(crate) takes_numbers: bool,
    pub(crate) settings_changes: u64,
    /// What becomes of rows whose key is taken, where that is no error.
    pub(crate) conflict: Option<Conflict>,
    pub(crate) returning: Option<Columns>,
}

impl Action {
    fn select(key: Vec<Origin>, columns: Columns, table: &Table) -> Action {
        let words = table.words_read(&columns.positions).ok().flatten();
        Action::Select { key, columns, words }
    }
}

impl Point {
    /// The statement, if it is one of these.
    pub(crate) fn plan(statement: &Statement, tables: &Tables, of: Reading<'_>) -> Option<Point> {
        match Shape::of(statement) {
            Some(shape) => Point::of_shape(shape, None, tables, of),
            None => Join::plan(statement, tables, of.types).map(Point::of_join),
        }
    }

    fn of_join(join: Join) -> Point {
        let (table, id) = join.first();
        Point { table: table.to_owned(), id, action: Action::Join(join) }
    }

    /// The query that locks its rows, if it is one of these.
    pub(crate) fn plan_locking(
        query: &Query,
        clauses: &[LockClause],
        tables: &Tables,
        of: Reading<'_>,
    ) -> Option<Point> {
        let [clause] = clauses else { return None };
        Point::of_shape(Shape::of_query(query)?, Some(clause), tables, of)
    }

    fn of_shape(shape: Shape<'_>, lock: Option<&LockClause>, tables: &Tables, of: Reading<'_>) -> Option<Point> {
        let table = tables.find(&shape.table).ok().filter(is_plain)?;
        let named = [Named::only(&shape.label, &table)];
        let scope = Scope { tables: &named, types: of.types, compiles: of.compiles };
        let key = || scope.key(&shape.conditions);
        let action = match &shape.action {
            shape::Action::Select(selection) => {
                let columns = || Columns::of(selection.items, &scope);
                let plain = key().filter(|_| lock.is_none() && selection.is_plain());
                match plain.and_then(|key| Some(Action::select(key, columns()?, &table))) {
                    Some(select) => select,
                    None => Action::Search(Box::new(Search::plan(&shape.conditions, selection, lock, &scope)?)),
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
                if defaults.iter().any(|default| default.is_generated) {
                    return None;
                }
                if sets.iter().any(|(column, _)| is_always_filled(&defaults, *column)) {
                    return None;
                }
                let reads: Vec<usize> = sets.iter().flat_map(|(_, term)| term.reads()).collect();
                let returning = Columns::of_clause(*returning, &scope)?;
                let is_of_key = |(column, _): &(usize, Term)| scope.schema().primary_key().contains(column);
                // A row that takes another key is not found by this one afterwards.
                let keeps_key = returning.is_none() || !sets.iter().any(is_of_key);
                match key().filter(|_| keeps_key) {
                    Some(key) => {
                        let columns: Vec<usize> = sets.iter().map(|(column, _)| *column).collect();
                        let words = table.words_update(&reads, &columns).ok().flatten();
                        let settings_changes = table.settings_changes();
                        Action::Update { key, sets, reads, settings_changes, returning, words }
                    }
                    None => Action::Change(Changes::plan(&shape.conditions, sets, returning, (&scope, tables))?),
                }
            }
            shape::Action::Delete { returning } => {
                let returning = Columns::of_clause(*returning, &scope)?;
                match key().filter(|_| returning.is_none()) {
                    Some(key) => Action::Delete { key },
                    None => Action::Change(Changes::plan(&shape.conditions, Vec::new(), returning, (&scope, tables))?),
                }
            }
            shape::Action::Insert { columns, rows, on, returning } => {
                let defaults = table.settings().defaults;
                if defaults.iter().any(|default| default.is_generated) {
                    return None;
                }
                let returning = Columns::of_clause(*returning, &scope)?;
                let rows = scope.rows(columns, rows, &defaults)?;
                let conflict = match on {
                    Some(on) => Some(Conflict::of(on, &scope, &defaults)?),
                    None => None,
                };
                let settings_changes = table.settings_changes();
                let takes_numbers = rows.iter().flatten().any(|origin| matches!(origin, Origin::Next(..)));
                Action::Insert(NewRows { rows, takes_numbers, settings_changes, conflict, returning })
            }
        };
        Some(Point { table: shape.table, id: table.id(), action })
    }

    /// Whether it changes rows by keys that are known, and nothing else is asked of them or of sequences.
    pub(crate) fn changes_by_key(&self) -> bool {
        self.is_of_known_keys() && self.returning().is_none()
    }

    /// Whether it changes rows by keys that are known, and nothing is asked of sequences.
    pub(crate) fn is_of_known_keys(&self) -> bool {
        match &self.action {
            Action::Update { .. } | Action::Delete { .. } => true,
            Action::Insert(new) => !new.takes_numbers,
            Action::Select { .. } | Action::Search(_) | Action::Join(_) | Action::Change(_) => false,
        }
    }

    /// What a change by keys gives back, if anything.
    pub(crate) fn returning(&self) -> Option<&Columns> {
        match &self.action {
            Action::Insert(NewRows { returning, .. }) | Action::Update { returning, .. } => returning.as_ref(),
            _ => None,
        }
    }

    /// The columns of the one row that it gives at most.
    pub(crate) fn row_schema(&self) -> Option<&SchemaRef> {
        match &self.action {
            Action::Select { columns, .. } => Some(&columns.schema),
            Action::Search(search) => Some(search.answer.schema()).filter(|_| search.is_of_whole_table()),
            _ => None,
        }
    }

    /// The columns of its rows, if these may be passed on as cells.
    pub(crate) fn passed_schema(&self) -> Option<&SchemaRef> {
        match &self.action {
            Action::Select { columns, .. } => Some(&columns.schema).filter(|_| are_passed(columns)),
            Action::Search(search) => Some(search.answer.schema()).filter(|_| search.passed.is_some()),
            _ => None,
        }
    }

    /// The columns of its rows, if it gives any and its table is what it was.
    pub(crate) fn schema(&self, tables: &Tables) -> Option<SchemaRef> {
        let schema = match &self.action {
            Action::Select { columns, .. } => &columns.schema,
            Action::Search(search) => search.answer.schema(),
            Action::Join(join) => return join.are_there(tables).then(|| join.answer.schema().clone()),
            Action::Insert(_) | Action::Update { .. } => &self.returning()?.schema,
            Action::Change(changes) => &changes.returning.as_ref()?.columns.schema,
            Action::Delete { .. } => return None,
        };
        let table = tables.find(&self.table).ok().filter(|table| table.id() == self.id);
        table.map(|_| schema.clone())
    }
}
