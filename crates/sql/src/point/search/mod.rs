//! Queries and changes of few rows of one table that an index leads to, without the planner.
//!
//! ```text
//! SELECT [DISTINCT] a, b | count(*), sum(a), min(b), max(b), count(DISTINCT a)
//!     FROM t WHERE a = ? AND b BETWEEN ? AND ? AND c IN (?, ?) AND d IS NOT NULL
//!     [ORDER BY a DESC, b] [LIMIT ? OFFSET ?] [FOR UPDATE | SHARE ... [NOWAIT | SKIP LOCKED]]
//! UPDATE t SET a = ?, b = b + ? WHERE ...      DELETE FROM t WHERE ...
//!
//! conditions ──▶ tests ──▶ which index (`path`) ──▶ its rows that pass ──▶ sorted, each once, cut, added up (`answer`)
//! ```
//!
//! Such a statement is read once, its values are put in when it runs, and then the index is chosen by what the values leave of it.
//! Where no index leads to few rows, or a value is not plainly one of its column's type, the planner answers.
pub(crate) mod answer;
pub(crate) mod between;
pub(crate) mod condition;
pub(crate) mod derived;
#[cfg(test)]
mod derived_tests;
mod items;
pub(crate) mod nearest;
pub(crate) mod one_value;
pub(crate) mod ordering;
pub(crate) mod passed;
pub(crate) mod path;
#[cfg(test)]
mod tests;

use std::sync::atomic::AtomicBool;

use answer::Answer;
use between::Between;
use condition::Condition;
use datafusion::sql::sqlparser::ast::{Expr, LimitClause};
use derived::Derived;
use engine::{DataType, LockStrength, LockWait, Value};
use nearest::Nearest;
use one_value::OneValue;
use ordering::SortKey;
use passed::Passed;

use super::bound::Bound;
use super::columns::Columns;
use super::exact::integer;
use super::scope::Scope;
use super::shape::Selection;
use super::term::{Origin, Term};
use crate::names::tables::Tables;
use crate::parsing::lock_clauses::LockClause;

/// A query of few rows.
#[derive(Debug)]
pub(crate) struct Search {
    pub(crate) conditions: Vec<Condition>,
    /// The columns that are read of each row.
    pub(crate) reads: Vec<usize>,
    /// What is worked out of them.
    pub(crate) derived: Derived,
    pub(crate) answer: Answer,
    pub(crate) order: Vec<SortKey>,
    /// The order, if it is one by a distance.
    pub(crate) nearest: Option<Nearest>,
    pub(crate) limits: Limits,
    /// How its rows are locked, if they are.
    pub(crate) lock: Option<(LockStrength, LockWait)>,
    /// What it is about, if its rows may lie side by side.
    pub(crate) between: Option<Between>,
    /// What it is about, if its rows may be passed on as cells.
    pub(crate) passed: Option<Passed>,
    /// Whether the one way to its rows has been found long, and they are counted beforehand since.
    pub(crate) was_long: AtomicBool,
}

/// `LIMIT` and `OFFSET`.
#[derive(Debug)]
pub(crate) struct Limits {
    limit: Option<Origin>,
    offset: Option<Origin>,
}

/// A change of few rows.
#[derive(Debug)]
pub(crate) struct Changes {
    pub(crate) conditions: Vec<Condition>,
    /// Queries whose values the conditions compare with, behind so many parameters.
    pub(crate) queries: Vec<OneValue>,
    pub(crate) parameters: usize,
    /// The columns that the new values are made of, then those that are given back.
    pub(crate) reads: Vec<usize>,
    /// What is given back of each row, if anything is.
    pub(crate) returning: Option<Returned>,
    /// The columns that are set, each with its new value; the rows are deleted where there are none.
    pub(crate) sets: Vec<(usize, Term)>,
    /// How often the table's settings had changed.
    pub(crate) settings_changes: u64,
}

impl Changes {
    /// The change, if its rows can be looked for along an index.
    pub(super) fn plan(
        conditions: &[&Expr],
        sets: Vec<(usize, Term)>,
        returning: Option<Columns>,
        (scope, tables): (&Scope<'_>, &Tables),
    ) -> Option<Changes> {
        let mut queries = Vec::new();
        let condition = |expr: &&Expr| one_value::condition(expr, scope, tables, &mut queries);
        let conditions = conditions.iter().map(condition).collect::<Option<Vec<_>>>()?;
        let parameters = scope.types.len();
        let mut reads: Vec<usize> = sets.iter().flat_map(|(_, term)| term.reads()).collect();
        let returning = returning.map(|columns| Returned::of(columns, &sets, &mut reads));
        let settings_changes = scope.table().settings_changes();
        let changes = Changes { conditions, queries, parameters, reads, returning, sets, settings_changes };
        (!changes.conditions.is_empty()).then_some(changes)
    }
}

/// What a change gives back of each row.
#[derive(Debug)]
pub(crate) struct Returned {
    pub(crate) columns: Columns,
    pub(crate) from: Vec<Given>,
}

/// Where a column that is given back comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Given {
    /// It is set, as the change's set of this number.
    Set(usize),
    /// It stays as it was, and is read at this place.
    Read(usize),
}

impl Returned {
    fn of(columns: Columns, sets: &[(usize, Term)], reads: &mut Vec<usize>) -> Returned {
        let given = |column: &usize| match sets.iter().position(|(set, _)| set == column) {
            Some(set) => Given::Set(set),
            None => {
                reads.push(*column);
                Given::Read(reads.len() - 1)
            }
        };
        let from = columns.positions.iter().map(given).collect();
        Returned { columns, from }
    }
}

/// How many rows are left out at first, and how many are given then.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cut {
    pub(crate) offset: usize,
    pub(crate) limit: Option<usize>,
}

impl Cut {
    /// The rows that have to be found.
    pub(crate) fn end(self) -> usize {
        self.limit.map_or(usize::MAX, |limit| limit.saturating_add(self.offset))
    }
}

impl Search {
    /// The query, if it is one of these.
    pub(super) fn plan(
        conditions: &[&Expr],
        selection: &Selection<'_>,
        lock: Option<&LockClause>,
        scope: &Scope<'_>,
    ) -> Option<Search> {
        let mut search = Search::unlocked(conditions, selection, scope)?;
        search.lock = match lock {
            Some(clause) if clause.of.is_empty() && search.answer.may_lock() && search.derived.is_empty() => {
                Some((clause.strength.lock(), clause.wait))
            }
            Some(_) => return None,
            None => None,
        };
        if !search.is_bounded() || (search.limits.are_given() && matches!(search.answer, Answer::Totals { .. })) {
            return None;
        }
        let mut search = search.of_extreme();
        let between = || {
            let is_plain = search.lock.is_none() && !search.limits.are_given() && search.derived.is_empty();
            Between::of(&search.conditions, &search.reads, scope).filter(|_| is_plain)
        };
        let (answer, order, reads) = (&search.answer, &search.order[..], &search.reads[..]);
        let passed = between().and_then(|between| Passed::of(between, answer, order, reads));
        let is_as_found = |between: &Between| between.is_order(order, reads) && !answer.is_distinct();
        (search.between, search.passed) = (between().filter(is_as_found), passed);
        Some(search)
    }

    /// The query without what is said of locks.
    fn unlocked(conditions: &[&Expr], selection: &Selection<'_>, scope: &Scope<'_>) -> Option<Search> {
        let (mut tests, mut others) = (Vec::new(), Vec::new());
        for condition in conditions {
            match scope.condition(condition) {
                Some(test) => tests.push(test),
                None if scope.compiles => others.push(*condition),
                None => return None,
            }
        }
        let mut reads = Vec::new();
        let mut derived = Derived::of_conditions(&others, &mut reads, scope)?;
        let limits = Limits::of(selection.limit, scope)?;
        let columns = Answer::of(selection, &mut reads, scope);
        let columns = columns.and_then(|answer| Some((answer.order(selection.order, &mut reads, scope)?, answer)));
        let (order, nearest, answer) = match columns {
            Some((order, answer)) => (order, None, answer),
            None if scope.compiles => {
                items::note_columns(selection, &mut reads, scope)?;
                let answer = Answer::of_items(selection, &reads, &mut derived.values, scope)?;
                let nearest = Nearest::of(selection.order, &reads, scope).filter(|_| !answer.is_distinct());
                let order = match nearest {
                    Some(_) => Vec::new(),
                    None => answer.order_of_items(selection.order, &reads, &mut derived.values, scope)?,
                };
                (order, nearest, answer)
            }
            None => return None,
        };
        let (lock, between, passed, was_long) = Default::default();
        let conditions = Condition::joined(tests);
        Some(Search { conditions, reads, derived, answer, order, nearest, limits, lock, between, passed, was_long })
    }

    /// Whether an index may lead to few rows of it, or what it gives is kept.
    fn is_bounded(&self) -> bool {
        // Counts and sums of all rows are kept by the storage.
        let is_kept = self.answer.is_of_sums() && self.lock.is_none() && !self.derived.has_filters();
        let is_first = (!self.order.is_empty() || self.nearest.is_some()) && self.limits.limit.is_some();
        let is_some = !self.conditions.is_empty() || self.derived.has_windows();
        is_kept || if self.nearest.is_some() { is_first } else { is_some || is_first }
    }

    /// Whether it is about counts and sums of all rows.
    pub(crate) fn is_of_whole_table(&self) -> bool {
        self.conditions.is_empty() && !self.derived.has_filters() && self.answer.is_of_sums()
    }

    /// The smallest or the largest value is that of the first row which has any, in its order.
    fn of_extreme(mut self) -> Search {
        if let Some(key) = self.answer.extreme().filter(|_| !self.derived.has_filters()) {
            self.conditions.push(Condition::is_not_null(self.reads[key.place]));
            self.order = vec![key];
            self.limits.limit = Some(Origin::Constant(Value::BigInt(1)));
        }
        self
    }
}

impl Limits {
    /// Those of a query, if they are numbers or parameters.
    pub(super) fn of(clause: Option<&LimitClause>, scope: &Scope<'_>) -> Option<Limits> {
        let number = |expr: Option<&Expr>| match expr {
            Some(expr) => scope.count(expr).map(Some),
            None => Some(None),
        };
        match clause {
            None => Some(Limits { limit: None, offset: None }),
            Some(LimitClause::LimitOffset { limit, offset, limit_by }) if limit_by.is_empty() => Some(Limits {
                limit: number(limit.as_ref())?,
                offset: number(offset.as_ref().map(|offset| &offset.value))?,
            }),
            Some(_) => None,
        }
    }

    /// Whether there are any.
    pub(crate) fn are_given(&self) -> bool {
        self.limit.is_some() || self.offset.is_some()
    }

    /// How rows are cut, with the values of one execution; `None` where the long way has something to say about them.
    pub(crate) fn cut(&self, bound: &Bound<'_>) -> Option<Cut> {
        let number = |origin: &Origin| usize::try_from(integer(&bound.value(origin)?)?).ok();
        let offset = self.offset.as_ref().map_or(Some(0), number)?;
        let limit = match &self.limit {
            Some(limit) => Some(number(limit)?),
            None => None,
        };
        Some(Cut { offset, limit })
    }
}

impl Scope<'_> {
    /// A number of rows.
    fn count(&self, expr: &Expr) -> Option<Origin> {
        match self.integer(expr)? {
            (Origin::Constant(Value::BigInt(number)), _) if number < 0 => None,
            (origin, DataType::SmallInt | DataType::Integer | DataType::BigInt) => Some(origin),
            _ => None,
        }
    }
}
