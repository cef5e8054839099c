//! Outer joins whose rows without a partner are dropped further up, as inner joins.
//!
//! ```text
//! Inner join: r.reason = reason.id        drops rows without a reason
//!   Left join: s.id = r.id                a row of s without one of r has none: an inner join gives what is asked for
//!     s
//!     r
//! ```
//!
//! The library looks at a condition that stands directly above the join. Here the keys of joins count as well, and what lies between may
//! be other joins, conditions and columns. So the join may change places with others, and the keys of one reach the tables of the other.
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, JoinType, NullEquality};
use datafusion::error::Result;
use datafusion::logical_expr::expr::{Between, BinaryExpr, InList};
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{Cast, Expr, Join, LogicalPlan, Operator};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

use crate::interrupt;
use crate::optimizer::PlanOptions;

/// Makes outer joins inner ones, if joins are put into an order of their own.
#[derive(Debug)]
pub(crate) struct NeedlessOuterJoins;

impl OptimizerRule for NeedlessOuterJoins {
    fn name(&self) -> &str {
        "needless_outer_joins"
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        match PlanOptions::of(&config.options()).join_order {
            true => below(plan, Vec::new()),
            false => Ok(Transformed::no(plan)),
        }
    }
}

/// The plan, of whose rows only those matter in which none of these columns is NULL.
#[recursive::recursive]
fn below(plan: LogicalPlan, wanted: Vec<Column>) -> Result<Transformed<LogicalPlan>> {
    interrupt::check_plan()?;
    let plan = match plan {
        LogicalPlan::Join(join) => return of_join(join, wanted),
        other => other,
    };
    let of_input = handed_down(&plan, wanted);
    let in_subqueries = plan.map_subqueries(|query| below(query, Vec::new()))?;
    in_subqueries.transform_data(|plan| plan.map_children(|input| below(input, of_input.clone())))
}

/// The columns of the input of a node that is no join which no row of it may have as NULL, where those of the node are these.
fn handed_down(plan: &LogicalPlan, wanted: Vec<Column>) -> Vec<Column> {
    match plan {
        LogicalPlan::Filter(filter) => {
            let mut all = wanted;
            split_conjunction(&filter.predicate).into_iter().for_each(|condition| add_compared(condition, &mut all));
            all
        }
        LogicalPlan::Projection(projection) => {
            let below =
                |column: &Column| plain_column(projection.expr.get(plan.schema().maybe_index_of_column(column)?)?);
            wanted.iter().filter_map(below).collect()
        }
        LogicalPlan::SubqueryAlias(alias) => {
            let columns = alias.input.schema().columns();
            let below = |column: &Column| columns.get(plan.schema().maybe_index_of_column(column)?).cloned();
            wanted.iter().filter_map(below).collect()
        }
        LogicalPlan::Sort(sort) if sort.fetch.is_none() => wanted,
        _ => Vec::new(),
    }
}

fn of_join(join: Join, wanted: Vec<Column>) -> Result<Transformed<LogicalPlan>> {
    let is_of = |side: &LogicalPlan| wanted.iter().any(|column| side.schema().has_column(column));
    let (of_left, of_right) = (is_of(&join.left), is_of(&join.right));
    let join_type = match join.join_type {
        JoinType::Left | JoinType::Full if of_left && of_right => JoinType::Inner,
        JoinType::Right if of_left => JoinType::Inner,
        JoinType::Left if of_right => JoinType::Inner,
        JoinType::Full if of_left => JoinType::Left,
        JoinType::Full if of_right => JoinType::Right,
        same => same,
    };
    let is_changed = join_type != join.join_type;
    let mut join = Join { join_type, ..join };
    let [left, right] = of_sides(&join, &wanted);
    let in_conditions = LogicalPlan::Join(join.clone()).map_subqueries(|query| below(query, Vec::new()))?;
    if in_conditions.transformed
        && let LogicalPlan::Join(changed) = in_conditions.data
    {
        join = changed;
    }
    let left = below(Arc::unwrap_or_clone(join.left), left)?;
    let right = below(Arc::unwrap_or_clone(join.right), right)?;
    let is_changed = is_changed || in_conditions.transformed || left.transformed || right.transformed;
    let (left, right) = (Arc::new(left.data), Arc::new(right.data));
    let join = LogicalPlan::Join(Join { left, right, ..join });
    Ok(if is_changed { Transformed::yes(join) } else { Transformed::no(join) })
}

/// The columns of each side that no row of it may have as NULL, where those of the join are these.
fn of_sides(join: &Join, wanted: &[Column]) -> [Vec<Column>; 2] {
    use JoinType::{Full, Inner, Left, LeftSemi, Right, RightSemi};

    let mut compared = Vec::new();
    join.filter.iter().flat_map(split_conjunction).for_each(|condition| add_compared(condition, &mut compared));
    if join.null_equality == NullEquality::NullEqualsNothing {
        compared.extend(join.on.iter().flat_map(|(left, right)| [left, right]).filter_map(own_column));
    }
    let of = |side: &LogicalPlan, keeps: bool, drops: bool| {
        let asked = wanted.iter().filter(|_| keeps).chain(compared.iter().filter(|_| drops));
        asked.filter(|column| side.schema().has_column(column)).cloned().collect::<Vec<_>>()
    };
    // Rows of a side that may come without a partner are not asked by what the join compares.
    let asks_left = matches!(join.join_type, Inner | Right | LeftSemi | RightSemi);
    let asks_right = matches!(join.join_type, Inner | Left | LeftSemi | RightSemi);
    let gives_left = matches!(join.join_type, Inner | Left | LeftSemi);
    let gives_right = matches!(join.join_type, Inner | Right | RightSemi);
    debug_assert!(join.join_type != Full || !(asks_left || asks_right || gives_left || gives_right));
    [of(&join.left, gives_left, asks_left), of(&join.right, gives_right, asks_right)]
}

fn plain_column(expr: &Expr) -> Option<Column> {
    match expr {
        Expr::Column(column) => Some(column.clone()),
        Expr::Alias(alias) => plain_column(&alias.expr),
        _ => None,
    }
}

/// The column of an expression that is NULL where the column is.
fn own_column(expr: &Expr) -> Option<Column> {
    match expr {
        Expr::Column(column) => Some(column.clone()),
        Expr::Cast(Cast { expr, .. }) => own_column(expr),
        _ => None,
    }
}

fn is_comparison(op: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};

    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq)
}

/// Adds the columns that are not NULL where a condition is true.
fn add_compared(condition: &Expr, columns: &mut Vec<Column>) {
    match condition {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_comparison(*op) => {
            columns.extend([left, right].into_iter().filter_map(|side| own_column(side)));
        }
        Expr::Between(Between { expr, negated: false, .. })
        | Expr::InList(InList { expr, negated: false, .. })
        | Expr::IsNotNull(expr) => columns.extend(own_column(expr)),
        _ => {}
    }
}
