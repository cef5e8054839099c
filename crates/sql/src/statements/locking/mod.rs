//! `SELECT ... FOR UPDATE` and its like: the rows of a query, with their tables' rows locked.
//!
//! ```text
//! query without LIMIT, with row ids ──▶ lock the ids of each row, in the order of the rows
//!                                           locked as seen   ──▶ give the row
//!                                           locked and newer ──▶ run the query again over these ids as of now: the row
//!                                                                as it is, or nothing if it no longer qualifies
//!                                           gone or skipped  ──▶ nothing
//!                                       OFFSET and LIMIT, and stop
//! ```
//!
//! So a queue's `WHERE state = 'new' ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED` locks one row, and gets one as long as
//! there is one that is free. Rows that were newer may stand out of order, as in PostgreSQL. The rows are computed before
//! they are given: what is given is locked.
pub(crate) mod check;
pub(crate) mod tables;
use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use arrow_cast::cast;
use arrow_schema::{DataType as ArrowType, SchemaRef};
use arrow_select::concat::concat_batches;
use datafusion::sql::sqlparser::ast::{Expr, LimitClause, Query, SelectItem, SetExpr, Statement};
use engine::RowLock;
use tables::LockedTable;

use crate::access::table::is_rid_column;
use crate::error::{Result, SqlError};
use crate::names::headings::{self, Headings};
use crate::names::moment::Moment;
use crate::parsing::lock_clauses::LockClause;
use crate::planning::planner::Plan;
use crate::semantics::naming::using;
use crate::session::Session;
use crate::session::cursors::Places;
use crate::session::transactions::Write;
use crate::state::outcome::Rows;
use crate::state::view::{RowTarget, View};
use crate::state::with_rows::GivenRows;
use crate::syntax::source::Source;
use crate::syntax::template::template;

/// Runs a query that locks its rows.
pub(crate) fn run(session: &mut Session, query: &Query, clauses: &[LockClause], source: &Source) -> Result<Rows> {
    let Some(first) = clauses.first() else { return Err(SqlError::new("XX000", "nothing to lock")) };
    let command = format!("SELECT {}", first.strength);
    session.write(&command, |session, write| locked(session, write, query.clone(), clauses, source))
}

/// The rows of a query that locks them.
pub(crate) fn locked(
    session: &Session,
    write: &mut Write<'_>,
    query: Query,
    clauses: &[LockClause],
    source: &Source,
) -> Result<Rows> {
    let (rows, tables, headings) = locked_with_ids(session, write, query, clauses, source)?;
    headed(&rows, &tables, &headings)
}

/// The rows of a query that locks them, for a cursor, and which rows of tables are behind them.
pub(crate) fn for_cursor(
    session: &mut Session,
    query: &Query,
    clauses: &[LockClause],
    source: &Source,
) -> Result<(Rows, Vec<Places>)> {
    session.write("DECLARE CURSOR", |session, write| {
        let (rows, tables, headings) = locked_with_ids(session, write, query.clone(), clauses, source)?;
        let ids = &rows.columns()[rows.num_columns() - tables.len()..];
        let places = tables.iter().zip(ids).filter(|(table, _)| table.lock.is_some()).map(|(table, ids)| Places {
            table: table.table.id(),
            ids: ids.as_primitive::<UInt64Type>().iter().collect(),
        });
        let places = places.collect();
        Ok((headed(&rows, &tables, &headings)?, places))
    })
}

/// Locked rows without the ids behind their columns, which have their names.
fn headed(rows: &RecordBatch, tables: &[LockedTable], headings: &Headings) -> Result<Rows> {
    let rows = without_ids(rows, tables.len())?;
    let schema = headings::apply(&rows.schema(), headings);
    Ok(Rows::ready(rows).renamed(schema))
}

/// The rows that a query has locked with the ids of those of its tables behind their columns, the tables, and what the columns are called.
fn locked_with_ids(
    session: &Session,
    write: &mut Write<'_>,
    query: Query,
    clauses: &[LockClause],
    source: &Source,
) -> Result<(RecordBatch, Vec<LockedTable>, Headings)> {
    let Some(first) = clauses.first() else { return Err(SqlError::new("XX000", "nothing to lock")) };
    check::select(&query, first, &session.planner)?;
    let mut query = merging_spelled_out(query, session)?;
    let headings = headings::of(&query);
    let bounds = (query.limit_clause.take(), query.fetch.take());
    write.with.surround(&mut query)?;
    let tables = tables::prepare(session, write, &mut query, clauses, source)?;
    let locking = Locking { query: Box::new(query), tables, given: write.with.given(), source };
    let (limit, fetch) = &bounds;
    let limit = limit_of(limit.as_ref(), fetch.as_ref());
    let (offset, limit) = locking.bounds(session, write, limit)?;
    let rows = locking.rows(session, write, offset, limit)?;
    Ok((rows, locking.tables, headings))
}

/// The query with the columns of joins that merge some, which nobody can tell once its tables have other names.
fn merging_spelled_out(query: Query, session: &Session) -> Result<Query> {
    let mut statement = Statement::Query(Box::new(query));
    using::rewrite(&mut statement, &session.tables)?;
    match statement {
        Statement::Query(query) => Ok(*query),
        _ => Err(SqlError::new("XX000", "a query has become another statement")),
    }
}

/// `OFFSET` and `LIMIT` as they are written.
type Bounds<'a> = (Option<&'a Expr>, Option<Expr>);

fn limit_of<'a>(clause: Option<&'a LimitClause>, fetch: Option<&datafusion::sql::sqlparser::ast::Fetch>) -> Bounds<'a> {
    let one = || Expr::value(datafusion::sql::sqlparser::ast::Value::Number("1".to_owned(), false));
    let fetched = fetch.map(|fetch| fetch.quantity.clone().unwrap_or_else(one));
    match clause {
        Some(LimitClause::LimitOffset { limit, offset, .. }) => {
            (offset.as_ref().map(|offset| &offset.value), limit.clone().or(fetched))
        }
        Some(LimitClause::OffsetCommaLimit { offset, limit }) => (Some(offset), Some(limit.clone())),
        None => (None, fetched),
    }
}

struct Locking<'a> {
    query: Box<Query>,
    tables: Vec<LockedTable>,
    /// What the query may name of parts of its statement.
    given: Arc<[GivenRows]>,
    source: &'a Source<'a>,
}

/// What came of locking the rows of the tables behind one row of the query.
enum LockedRow {
    AsSeen,
    Newer,
    Not,
}

impl Locking<'_> {
    fn plan(&self, session: &Session, moment: &Moment, rids: Option<&[Vec<u64>]>) -> Result<Plan> {
        let target = |(at, table): (usize, &LockedTable)| {
            let rids = rids.map(|rids| rids[at].as_slice().into());
            RowTarget::new(table.table.clone(), moment.clone(), rids)
        };
        let targets = self.tables.iter().enumerate().map(target).collect();
        let statement = Statement::Query(self.query.clone());
        let view = View { given: self.given.clone(), ..session.view(moment.clone(), targets) };
        session.planner.plan(statement, view, self.source)
    }

    /// How many rows to leave out at first, and how many to give then.
    fn bounds(&self, session: &Session, write: &mut Write<'_>, bounds: Bounds<'_>) -> Result<(u64, Option<u64>)> {
        let mut number = |expr: Option<&Expr>, sqlstate, name: &str| -> Result<Option<u64>> {
            let Some(expr) = expr else { return Ok(None) };
            let mut query = template("SELECT 1")?;
            if let SetExpr::Select(select) = query.body.as_mut() {
                select.projection = vec![SelectItem::UnnamedExpr(expr.clone())];
            }
            let view = session.view(write.moment()?, Vec::new());
            let batches = session.planner.plan(Statement::Query(query), view, self.source)?.collect()?;
            let value = batches.iter().find(|batch| batch.num_rows() > 0).map(|batch| batch.column(0));
            let value = value.map(|value| cast(value, &ArrowType::Int64)).transpose();
            let mismatch = |_| SqlError::mismatch(format!("argument of {name} must be type bigint"));
            match value.map_err(mismatch)?.filter(|value| !value.is_null(0)) {
                None => Ok(None),
                Some(value) => u64::try_from(value.as_primitive::<Int64Type>().value(0))
                    .map(Some)
                    .map_err(|_| SqlError::new(sqlstate, format!("{name} must not be negative"))),
            }
        };
        let (offset, limit) = bounds;
        let limit = number(limit.as_ref(), "2201W", "LIMIT")?;
        Ok((number(offset, "2201X", "OFFSET")?.unwrap_or(0), limit))
    }

    /// The rows that are locked, with the ids behind their columns.
    fn rows(&self, session: &Session, write: &mut Write<'_>, offset: u64, limit: Option<u64>) -> Result<RecordBatch> {
        let moment = write.moment()?;
        let plan = self.plan(session, &moment, None)?;
        let schema = plan.schema();
        let end = limit.map(|limit| offset.saturating_add(limit));
        let (mut found, mut kept, mut seen) = (0, Vec::new(), HashMap::new());
        let mut rows = plan.start()?;
        while end.is_none_or(|end| found < end) {
            let Some(batch) = rows.next() else { break };
            let batch = batch?;
            for row in 0..batch.num_rows() {
                if end.is_some_and(|end| found >= end) {
                    break;
                }
                session.token.check()?;
                let ids = self.ids(&batch, row);
                let locked = match self.lock(write, &ids, &moment)? {
                    LockedRow::Not => None,
                    LockedRow::AsSeen => Some(batch.slice(row, 1)),
                    LockedRow::Newer => self.row_as_of_now(session, write, ids, &mut seen)?,
                };
                if let Some(locked) = locked {
                    found += 1;
                    kept.extend(Some(locked).filter(|_| found > offset));
                }
            }
        }
        drop(rows);
        concatenated(&schema, &kept)
    }

    /// The ids of the tables' rows behind one row; none of a table of which an outer join gave no row.
    fn ids(&self, batch: &RecordBatch, row: usize) -> Vec<Vec<u64>> {
        let ids = &batch.columns()[batch.num_columns() - self.tables.len()..];
        let id = |ids: &Arc<dyn Array>| {
            let id = (!ids.is_null(row)).then(|| ids.as_primitive::<UInt64Type>().value(row));
            id.into_iter().collect()
        };
        ids.iter().map(id).collect()
    }

    fn lock(&self, write: &mut Write<'_>, ids: &[Vec<u64>], moment: &Moment) -> Result<LockedRow> {
        let mut locked = LockedRow::AsSeen;
        for (table, ids) in self.tables.iter().zip(ids) {
            let (Some((strength, wait)), [id]) = (table.lock, &ids[..]) else { continue };
            match write.transaction.lock_row(&table.table, *id, strength, wait, moment.view())? {
                RowLock::Locked => {}
                RowLock::Stale => locked = LockedRow::Newer,
                RowLock::Gone | RowLock::Skipped => return Ok(LockedRow::Not),
            }
        }
        Ok(locked)
    }

    /// The row that the query gives now for these rows of its tables. What else is in FROM may make several rows of them:
    /// then the first is taken at first, and so on.
    fn row_as_of_now(
        &self,
        session: &Session,
        write: &mut Write<'_>,
        ids: Vec<Vec<u64>>,
        seen: &mut HashMap<Vec<Vec<u64>>, usize>,
    ) -> Result<Option<RecordBatch>> {
        let plan = self.plan(session, &write.later_moment()?, Some(&ids))?;
        let rows = concatenated(&plan.schema(), &plan.collect()?)?;
        let at = seen.entry(ids).or_default();
        *at += 1;
        Ok((*at <= rows.num_rows()).then(|| rows.slice(*at - 1, 1)))
    }
}

fn concatenated(schema: &SchemaRef, batches: &[RecordBatch]) -> Result<RecordBatch> {
    concat_batches(schema, batches).map_err(|error| SqlError::new("XX000", error.to_string()))
}

/// The rows with the columns that were asked for: not the ids at the end, nor those that a `*` has brought.
fn without_ids(rows: &RecordBatch, tables: usize) -> Result<RecordBatch> {
    let (schema, width) = (rows.schema(), rows.num_columns() - tables);
    let asked: Vec<usize> = (0..width).filter(|at| !is_rid_column(schema.field(*at).name())).collect();
    rows.project(&asked).map_err(|error| SqlError::new("XX000", error.to_string()))
}
