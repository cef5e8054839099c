//! Joins by what values overlap or what lies between them, as batch scans of an index.
//!
//! ```text
//! NestedLoopJoin  outer.area && inner.area        SpatialJoin  the rows of `outer`, some hundreds at a time, are windows;
//!   outer                                   ─▶      outer      the index of `inner` finds the pairs that may match, level by level;
//!   Filter                                                     each row that is found is read once, and the whole condition asked
//!     ScanExec of inner                                        of each pair
//! ```
//!
//! Which side is `inner` and whether an index is used at all is a matter of cost: a nested loop asks the condition of all pairs, an
//! index leads to some rows one by one. Rows of the outer side without a partner stay where the kind of join keeps them.
//!
//! Imports scans and windows; the list of rules imports it.
mod asked;
mod exec;
mod probe;

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::common::{JoinSide, JoinType};
use datafusion::error::Result;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{BinaryExpr, Column};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::NestedLoopJoinExec;
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use engine::Index;

use crate::access::scan::ScanExec;
use crate::syntax::walk::WalkTree;
use asked::{Asked, Condition};
pub(crate) use exec::{JoinDevice, SpatialJoinExec};

/// Of a smaller table no index is used.
const RECORDS_MIN: usize = 64;
/// A descent costs as much as asking the condition of so many pairs.
const DESCENT: f64 = 10.0;
/// The share of the entries that is taken to be found, and what reading the row of one costs, in pairs.
const FOUND: f64 = 0.05;
const ROW: f64 = 2.0;

/// Puts [`SpatialJoinExec`] in the place of nested loops.
#[derive(Debug)]
pub(crate) struct SpatialJoins;

impl PhysicalOptimizerRule for SpatialJoins {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.change_up(|node| Ok(by_index(&node)?.map_or_else(|| Transformed::no(node), Transformed::yes))).data()
    }

    fn name(&self) -> &str {
        "spatial_joins"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// The side of a join that an index is asked for.
pub(super) struct Inner {
    scan: ScanExec,
    index: Index,
    /// a condition on the rows of the scan
    filter: Option<Arc<dyn PhysicalExpr>>,
    /// the columns of the scan that the side has, or all
    kept: Option<Vec<usize>>,
}

/// The join by an index, if one leads to what may match and costs less.
fn by_index(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let Some(join) = plan.downcast_ref::<NestedLoopJoinExec>() else { return Ok(None) };
    let Some(filter) = join.filter() else { return Ok(None) };
    let mut best: Option<(f64, SpatialJoinExec)> = None;
    for outer in [JoinSide::Left, JoinSide::Right] {
        if !keeps_only(outer, *join.join_type()) {
            continue;
        }
        let (outer_plan, inner_plan) = match outer {
            JoinSide::Left => (join.left(), join.right()),
            _ => (join.right(), join.left()),
        };
        let Some((inner, asked)) = inner_of(inner_plan, filter, outer) else { continue };
        let (outer_rows, inner_rows) = (rows(outer_plan)?, rows(inner_plan)?);
        let records = inner.scan.table().stats().records as f64;
        let cost = outer_rows * (DESCENT + records * FOUND * ROW);
        if cost < outer_rows * inner_rows && best.as_ref().is_none_or(|(least, _)| cost < *least) {
            best = Some((cost, SpatialJoinExec::try_new(join, outer, inner, asked)?));
        }
    }
    Ok(best.map(|(_, join)| Arc::new(join) as _))
}

/// Whether a kind of join keeps rows without a partner of no other side than this one, and gives a row for each pair or for each of
/// this side.
fn keeps_only(outer: JoinSide, kind: JoinType) -> bool {
    match kind {
        JoinType::Inner => true,
        JoinType::Left | JoinType::LeftSemi | JoinType::LeftAnti => outer == JoinSide::Left,
        JoinType::Right | JoinType::RightSemi | JoinType::RightAnti => outer == JoinSide::Right,
        JoinType::Full | JoinType::LeftMark | JoinType::RightMark => false,
    }
}

/// About how many rows a plan has.
fn rows(plan: &Arc<dyn ExecutionPlan>) -> Result<f64> {
    const UNKNOWN: usize = 1000;
    let known = StatisticsContext::new().compute(plan.as_ref(), &StatisticsArgs::new())?;
    Ok(known.num_rows.get_value().copied().unwrap_or(UNKNOWN) as f64)
}

/// The side that an index leads to, and how it is asked; `None` if there is no index for any part of the condition.
fn inner_of(plan: &Arc<dyn ExecutionPlan>, condition: &JoinFilter, outer: JoinSide) -> Option<(Inner, Asked)> {
    let (mut below, mut filter, mut kept) = (plan, None, None);
    if let Some(projection) = below.downcast_ref::<ProjectionExec>() {
        let column = |item: &ProjectionExpr| item.expr.downcast_ref::<Column>().map(Column::index);
        kept = Some(projection.expr().iter().map(column).collect::<Option<Vec<usize>>>()?);
        below = projection.input();
    }
    if let Some(tested) = below.downcast_ref::<FilterExec>().filter(|tested| tested.fetch().is_none()) {
        kept = match (kept, tested.projection().as_ref()) {
            (Some(kept), Some(of)) => Some(kept.into_iter().map(|at| of[at]).collect()),
            (kept, of) => kept.or_else(|| of.map(|of| of.to_vec())),
        };
        filter = Some(tested.predicate().clone());
        below = tested.input();
    }
    let scan = below.downcast_ref::<ScanExec>()?;
    let records = usize::try_from(scan.table().stats().records).unwrap_or(usize::MAX);
    if !scan.reads_all() || scan.table().is_array() || records < RECORDS_MIN {
        return None;
    }
    let mut parts = Vec::new();
    conjuncts(condition.expression(), &mut parts);
    let place = |column: usize| kept.as_ref().map_or(Some(column), |kept| kept.get(column).copied());
    let inner_column = |column: usize| scan.column(place(column)?);
    let asking = Condition { filter: condition, outer, parts: &parts, inner_column: &inner_column };
    let whole = scan.table().indexes().into_iter().filter(|index| index.definition().predicate.is_none());
    let (index, asked) = whole.into_iter().find_map(|index| asking.asks(&index).map(|asked| (index, asked)))?;
    Some((Inner { scan: scan.again(), index, filter, kept }, asked))
}

/// The conditions that all must hold.
fn conjuncts<'e>(expr: &'e Arc<dyn PhysicalExpr>, out: &mut Vec<&'e Arc<dyn PhysicalExpr>>) {
    match expr.downcast_ref::<BinaryExpr>() {
        Some(both) if *both.op() == Operator::And => {
            conjuncts(both.left(), out);
            conjuncts(both.right(), out);
        }
        _ => out.push(expr),
    }
}
