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
pub(crate) mod condition;
pub(crate) mod path;
#[cfg(test)]
mod tests;

use answer::{Answer, SortKey};
use condition::Condition;
use datafusion::sql::sqlparser::ast::{Expr, LimitClause};
use engine::{DataType, LockStrength, LockWait, Table, Value};

use super::bound::Bound;
use super::exact::integer;
use super::shape::Selection;
use super::term::{Origin, Scope, Term};
use crate::parsing::lock_clauses::LockClause;

/// A query of few rows.
#[derive(Debug)]
pub(crate) struct Search {
    pub(crate) conditions: Vec<Condition>,
    /// The columns that are read of each row.
    pub(crate) reads: Vec<usize>,
    pub(crate) answer: Answer,
    pub(crate) order: Vec<SortKey>,
    limit: Option<Origin>,
    offset: Option<Origin>,
    /// How its rows are locked, if they are.
    pub(crate) lock: Option<(LockStrength, LockWait)>,
}

/// A change of few rows.
#[derive(Debug)]
pub(crate) struct Changes {
    pub(crate) conditions: Vec<Condition>,
    /// The columns that the new values are made of.
    pub(crate) reads: Vec<usize>,
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
        (scope, table): (&Scope<'_>, &Table),
    ) -> Option<Changes> {
        let conditions = conditions.iter().map(|condition| scope.condition(condition)).collect::<Option<Vec<_>>>()?;
        let reads = sets.iter().filter_map(|(_, term)| term.reads()).collect();
        let settings_changes = table.settings_changes();
        (!conditions.is_empty()).then_some(Changes { conditions, reads, sets, settings_changes })
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
        (scope, table): (&Scope<'_>, &Table),
    ) -> Option<Search> {
        let conditions = conditions.iter().map(|condition| scope.condition(condition)).collect::<Option<Vec<_>>>()?;
        let mut reads = Vec::new();
        let answer = Answer::of(selection, &mut reads, scope, table)?;
        let order = answer.order(selection.order, &mut reads, scope)?;
        let (limit, offset) = bounds(selection.limit, scope)?;
        let is_bounded = !conditions.is_empty() || (!order.is_empty() && limit.is_some());
        let lock = match lock {
            Some(clause) if clause.of.is_empty() && answer.may_lock() => Some((clause.strength.lock(), clause.wait)),
            Some(_) => return None,
            None => None,
        };
        let is_cut = limit.is_some() || offset.is_some();
        let fits = is_bounded && !(is_cut && matches!(answer, Answer::Totals { .. }));
        fits.then_some(Search { conditions, reads, answer, order, limit, offset, lock })
    }

    /// How its rows are cut, with the values of one execution; `None` where the long way has something to say about them.
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

/// `LIMIT` and `OFFSET`, if they are numbers or parameters.
fn bounds(clause: Option<&LimitClause>, scope: &Scope<'_>) -> Option<(Option<Origin>, Option<Origin>)> {
    let number = |expr: Option<&Expr>| match expr {
        Some(expr) => scope.count(expr).map(Some),
        None => Some(None),
    };
    match clause {
        None => Some((None, None)),
        Some(LimitClause::LimitOffset { limit, offset, limit_by }) if limit_by.is_empty() => {
            Some((number(limit.as_ref())?, number(offset.as_ref().map(|offset| &offset.value))?))
        }
        Some(_) => None,
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
