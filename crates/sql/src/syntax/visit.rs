//! Ways through a statement's expressions: those of one query without those of the queries within them, where names mean
//! something else, and all of them, each replaced where there is another spelling of it.
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{Expr, JoinConstraint, JoinOperator, LimitClause, Query, VisitMut, VisitorMut};

use crate::error::{Result, SqlError};
use crate::syntax::walk::WalkMut;

/// The numbers of a query's `LIMIT` and `OFFSET`.
pub(crate) fn limit_and_offset(clause: Option<&mut LimitClause>) -> [Option<&mut Expr>; 2] {
    match clause {
        Some(LimitClause::LimitOffset { limit, offset, .. }) => {
            [limit.as_mut(), offset.as_mut().map(|offset| &mut offset.value)]
        }
        Some(LimitClause::OffsetCommaLimit { offset, limit }) => [Some(limit), Some(offset)],
        None => [None, None],
    }
}

/// The condition of a join.
pub(crate) fn constraint_mut(join: &mut JoinOperator) -> Option<&mut JoinConstraint> {
    match join {
        JoinOperator::Join(constraint)
        | JoinOperator::Inner(constraint)
        | JoinOperator::Left(constraint)
        | JoinOperator::LeftOuter(constraint)
        | JoinOperator::Right(constraint)
        | JoinOperator::RightOuter(constraint)
        | JoinOperator::FullOuter(constraint) => Some(constraint),
        _ => None,
    }
}

/// When an expression is looked at: before what it consists of, after that, or both.
#[derive(Clone, Copy, PartialEq, Eq)]
enum VisitOrder {
    Before,
    After,
    Around,
}

/// What is found on the way.
pub(crate) enum Found<'f> {
    Expr(&'f mut Expr),
    /// An expression whose parts have been visited.
    Left(&'f mut Expr),
    /// A subquery, whose own expressions are not visited.
    Query(&'f mut Query),
}

/// Visits the expressions of one query, each before its parts, and the outermost of its subqueries.
pub(crate) fn own_parts<B>(
    part: &mut impl VisitMut,
    mut change: impl FnMut(Found<'_>) -> ControlFlow<B>,
) -> ControlFlow<B> {
    part.walk_mut(&mut Own { depth: 0, when: VisitOrder::Before, change: &mut change })
}

/// Visits the expressions of one query, each before and after its parts, and the outermost of its subqueries.
pub(crate) fn own_around<B>(
    part: &mut impl VisitMut,
    mut change: impl FnMut(Found<'_>) -> ControlFlow<B>,
) -> ControlFlow<B> {
    part.walk_mut(&mut Own { depth: 0, when: VisitOrder::Around, change: &mut change })
}

/// Visits the expressions of one query, each before its parts.
pub(crate) fn own<B>(part: &mut impl VisitMut, mut change: impl FnMut(&mut Expr) -> ControlFlow<B>) -> ControlFlow<B> {
    own_parts(part, |found| match found {
        Found::Expr(expr) => change(expr),
        Found::Left(_) | Found::Query(_) => ControlFlow::Continue(()),
    })
}

/// Visits the expressions of one query, each after its parts.
pub(crate) fn own_after(part: &mut impl VisitMut, mut change: impl FnMut(&mut Expr)) {
    let mut change = |found: Found<'_>| {
        if let Found::Left(expr) = found {
            change(expr);
        }
        ControlFlow::<()>::Continue(())
    };
    let _ = part.walk_mut(&mut Own { depth: 0, when: VisitOrder::After, change: &mut change });
}

struct Own<'c, B> {
    /// How many queries are around.
    depth: usize,
    when: VisitOrder,
    change: &'c mut dyn FnMut(Found<'_>) -> ControlFlow<B>,
}

impl<B> Own<'_, B> {
    fn expr(&mut self, found: Found<'_>, when: VisitOrder) -> ControlFlow<B> {
        match self.depth == 0 && (self.when == when || self.when == VisitOrder::Around) {
            true => (self.change)(found),
            false => ControlFlow::Continue(()),
        }
    }
}

impl<B> VisitorMut for Own<'_, B> {
    type Break = B;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<B> {
        self.depth += 1;
        match self.depth {
            1 => (self.change)(Found::Query(query)),
            _ => ControlFlow::Continue(()),
        }
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<B> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<B> {
        self.expr(Found::Expr(expr), VisitOrder::Before)
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<B> {
        self.expr(Found::Left(expr), VisitOrder::After)
    }
}

/// Puts another spelling in the place of each expression for which there is one, and goes on with that one's parts.
pub(crate) fn replace(part: &mut impl VisitMut, spelling: impl Fn(&Expr) -> Result<Option<Expr>>) -> Result<()> {
    match part.walk_mut(&mut Replace { spelling }) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(*error),
    }
}

struct Replace<F> {
    spelling: F,
}

impl<F: Fn(&Expr) -> Result<Option<Expr>>> VisitorMut for Replace<F> {
    type Break = Box<SqlError>;

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Self::Break> {
        match (self.spelling)(expr) {
            Ok(Some(other)) => {
                *expr = other;
                ControlFlow::Continue(())
            }
            Ok(None) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(Box::new(error)),
        }
    }
}
