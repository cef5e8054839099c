//! The tables of a query's `FROM`, and what joins them, by their syntax alone.
use std::ops::Range;

use datafusion::sql::sqlparser::ast::{Expr, JoinConstraint, JoinOperator, Query, Statement, TableWithJoins};

use crate::names::column_name;
use crate::point::shape::{Selection, conditions, factor, selection};
use crate::syntax::source::Source;

/// Tables of one query at most.
const TABLES_MAX: usize = 4;

/// A query of a few tables, taken apart.
pub(super) struct FromClause<'a> {
    pub(super) tables: Vec<Factor<'a>>,
    /// What the `WHERE` says, joined by AND.
    pub(super) conditions: Vec<&'a Expr>,
    pub(super) selection: Selection<'a>,
}

/// A table and how it is joined to those before it.
pub(super) struct Factor<'a> {
    pub(super) table: String,
    pub(super) label: String,
    /// Whether rows without a partner stay, with NULL in place of this table's columns.
    pub(super) is_left: bool,
    pub(super) on: On<'a>,
    /// The first of the tables that its `ON` may name; the last is this one.
    pub(super) item: usize,
}

/// What joins a table to those before it.
pub(super) enum On<'a> {
    Conditions(Vec<&'a Expr>),
    Using(Vec<String>),
}

impl<'a> FromClause<'a> {
    pub(super) fn of(statement: &'a Statement) -> Option<FromClause<'a>> {
        let Statement::Query(query) = statement else { return None };
        FromClause::of_query(query)
    }

    fn of_query(query: &'a Query) -> Option<FromClause<'a>> {
        let (select, selection) = selection(query)?;
        let count: usize = select.from.iter().map(|item| 1 + item.joins.len()).sum();
        if !(2..=TABLES_MAX).contains(&count) {
            return None;
        }
        let mut tables = Vec::with_capacity(count);
        for item in &select.from {
            add(item, &mut tables)?;
        }
        let is_twice = |(at, one): (usize, &Factor<'_>)| tables[..at].iter().any(|other| other.label == one.label);
        if tables.iter().enumerate().any(is_twice) {
            return None;
        }
        Some(FromClause { tables, conditions: conditions(select.selection.as_ref()), selection })
    }
}

impl Factor<'_> {
    /// The tables that what joins it may name, if it stands at `at`.
    pub(super) fn seen(&self, at: usize) -> Range<usize> {
        self.item..at + 1
    }
}

/// Adds the tables of one item of a `FROM`.
fn add<'a>(item: &'a TableWithJoins, tables: &mut Vec<Factor<'a>>) -> Option<()> {
    let first = tables.len();
    let (table, label) = factor(&item.relation)?;
    tables.push(Factor { table, label, is_left: false, on: On::Conditions(Vec::new()), item: first });
    for join in &item.joins {
        let (is_left, constraint) = match &join.join_operator {
            JoinOperator::Join(constraint) | JoinOperator::Inner(constraint) => (false, constraint),
            JoinOperator::CrossJoin(constraint @ JoinConstraint::None) => (false, constraint),
            JoinOperator::Left(constraint) | JoinOperator::LeftOuter(constraint) => (true, constraint),
            _ => return None,
        };
        let on = match constraint {
            JoinConstraint::On(expr) => On::Conditions(conditions(Some(expr))),
            JoinConstraint::Using(names) => {
                let name = |name| column_name(name, &Source::new("")).ok();
                On::Using(names.iter().map(name).collect::<Option<_>>()?)
            }
            JoinConstraint::None if matches!(join.join_operator, JoinOperator::CrossJoin(_)) => {
                On::Conditions(Vec::new())
            }
            JoinConstraint::None | JoinConstraint::Natural => return None,
        };
        let (table, label) = factor(&join.relation)?;
        let fits = !join.global;
        tables.push(fits.then_some(Factor { table, label, is_left, on, item: first })?);
    }
    Some(())
}
