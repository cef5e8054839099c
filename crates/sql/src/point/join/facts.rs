//! What is known of the rows of a few joined tables: of columns by themselves, and of equal columns of two tables.
//!
//! ```text
//! WHERE, ON of inner joins ──▶ facts about all rows ─┐ a fact that NULL does not fulfil makes the
//! ON of a LEFT JOIN ──▶ facts about its table        ◀┘ LEFT JOIN of its table an inner one
//! ```
use std::ops::Range;

use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr};
use engine::DataType;

use super::from::{Factor, FromClause, On};
use crate::point::exact::is_integer;
use crate::point::scope::{Named, Scope};
use crate::point::search::condition::{Condition, is_compared_otherwise};

/// What holds of rows; columns are counted within their tables.
#[derive(Clone)]
pub(super) enum Fact {
    /// of a table's column
    Of(usize, Condition),
    /// Columns of two tables are equal: each as table and column.
    Equal((usize, usize), (usize, usize)),
}

/// What is known of a query's tables.
pub(super) struct Facts {
    /// Of all rows of the answer.
    pub(super) all: Vec<Fact>,
    /// What makes a row of a table a partner, where its `LEFT JOIN` is still one.
    pub(super) left: Vec<Option<Vec<Fact>>>,
}

/// The columns that `USING` makes one: those of the new table, each with the one before it that it equals.
pub(super) fn merged(factor: &Factor<'_>, before: &[Named<'_>], new: &Named<'_>) -> Option<Vec<(usize, Fact)>> {
    let On::Using(names) = &factor.on else { return Some(Vec::new()) };
    let mut merged = Vec::with_capacity(names.len());
    for name in names {
        let column = new.table.schema().position(name)?;
        let of_table = |(at, named): (usize, &Named<'_>)| Some((at, named.position(name)?));
        let mut others = before.iter().enumerate().skip(factor.item).filter_map(of_table);
        let other = others.next().filter(|_| others.next().is_none())?;
        let type_of = |named: &Named<'_>, at: usize| named.table.schema().columns()[at].data_type;
        let types = (type_of(&before[other.0], other.1), type_of(new, column));
        if !are_alike(types) || merged.iter().any(|(known, _)| *known == column) {
            return None;
        }
        merged.push((column, Fact::Equal(other, (before.len(), column))));
    }
    Some(merged)
}

/// Whether values of two types are equal where they are kept alike, but for the width of integers.
fn are_alike((left, right): (DataType, DataType)) -> bool {
    let is_text = |data_type| matches!(data_type, DataType::Text { .. });
    (left == right && !is_compared_otherwise(left))
        || (is_integer(left) && is_integer(right))
        || (is_text(left) && is_text(right))
}

impl Facts {
    /// Those of a query, if all that joins its tables and is said of them is such; `using` are those of `USING` for each table.
    pub(super) fn of(from: &FromClause<'_>, using: Vec<Vec<Fact>>, scope: &Scope<'_>) -> Option<Facts> {
        let mut facts = Facts { all: Vec::new(), left: Vec::new() };
        for ((at, factor), mut own) in from.tables.iter().enumerate().zip(using) {
            if let On::Conditions(conditions) = &factor.on {
                let fact = |expr: &&Expr| fact(expr, factor.seen(at), scope);
                own = conditions.iter().map(fact).collect::<Option<_>>()?;
            }
            if factor.is_left && !own.iter().all(|fact| fact.is_about(at)) {
                return None;
            }
            let (left, all) = if factor.is_left { (Some(own), Vec::new()) } else { (None, own) };
            facts.left.push(left);
            facts.all.extend(all);
        }
        for expr in &from.conditions {
            facts.all.push(fact(expr, 0..from.tables.len(), scope)?);
        }
        facts.settle();
        Some(facts)
    }

    /// Makes `LEFT JOIN`s of tables inner ones where rows without a partner are not in the answer anyway.
    fn settle(&mut self) {
        loop {
            let is_needless =
                |at: &usize| self.left[*at].is_some() && self.all.iter().any(|fact| fact.refuses_null(*at));
            let Some(needless) = (0..self.left.len()).find(is_needless) else { return };
            self.all.extend(self.left[needless].take().into_iter().flatten());
        }
    }
}

impl Fact {
    /// Whether it is a condition on a table's rows, or joins them to others.
    fn is_about(&self, at: usize) -> bool {
        match self {
            Fact::Of(table, _) => *table == at,
            Fact::Equal((left, _), (right, _)) => *left == at || *right == at,
        }
    }

    /// Whether it does not hold where a table's columns are NULL.
    fn refuses_null(&self, at: usize) -> bool {
        self.is_about(at) && !matches!(self, Fact::Of(_, condition) if condition.is_null())
    }
}

/// The fact that an expression is, if it names columns of these tables alone.
fn fact(expr: &Expr, seen: Range<usize>, scope: &Scope<'_>) -> Option<Fact> {
    if let Expr::BinaryOp { left, op: BinaryOperator::Eq, right } = expr
        && let (Some(left), Some(right)) = (scope.column(left), scope.column(right))
    {
        let types = (scope.known(left).data_type, scope.known(right).data_type);
        let (left, right) = (scope.place(left), scope.place(right));
        let fits = left.0 != right.0 && seen.contains(&left.0) && seen.contains(&right.0) && are_alike(types);
        return fits.then_some(Fact::Equal(left, right));
    }
    let condition = scope.condition(expr)?;
    let (table, column) = scope.place(condition.column());
    seen.contains(&table).then(|| Fact::Of(table, condition.of_column(column)))
}
