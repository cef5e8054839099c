//! Scans that leave out rows without a partner in a join, once the other side of the join is in memory.
//!
//! A hash join reads its left side first. Where its kind drops right rows without a partner, and a key of the right side is a column
//! of a scan however far below, the keys of the left side become a test of that scan ([`engine::KeyFilter`]):
//!
//! ```text
//! HashJoin  p.id = l.part             left keys collected
//!   Filter of p                          │
//!   Aggregate by l.part                  │  groups of other keys would find no partner
//!     HashJoin l.order = o.id            │  rows of l alone decide about l.part
//!       o                                ▼
//!       Scan of l                     test: l.part IN (keys of the join)
//! ```
//!
//! So an average by part is made of the parts that are asked for, and a table is joined to others only where its rows matter. What
//! lies between must hand on a row or not by itself: conditions, projections, other joins on the side whose rows they keep,
//! groups of which the key is one, unions each of whose parts can be asked. Where the column is a key
//! of a join on the way, the other side has the test, too: its rows with other keys have lost their partners.
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{JoinType, NullEquality};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::ScalarUDF;
use datafusion::physical_expr::ScalarFunctionExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::{ChildrenPropertiesMode, ExecutionPlan, PhysicalExpr, ReplaceChildrenOptions};
use engine::KeyFilter;

use super::key_collector::{Collected, KeyCollectorExec, is_collected};
use super::options::PlanOptions;
use crate::access::scan::ScanExec;
use crate::syntax::walk::WalkTree;

/// Gives scans the keys of joins.
#[derive(Debug)]
pub(crate) struct RunTimeFilters {
    /// Whether a function that is called volatile, so that plans leave it where it is, gives the same for the same arguments all through
    /// a statement.
    pub(crate) is_steady: fn(&ScalarUDF) -> bool,
}

impl PhysicalOptimizerRule for RunTimeFilters {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        if !PlanOptions::of(config).run_time_filters {
            return Ok(plan);
        }
        // What runs again and again has other keys each time.
        if plan.has(|node| Ok(node.name() == "RecursiveQueryExec"))? {
            return Ok(plan);
        }
        plan.change_up(|node| Ok(self.with_filters(&node)?.map_or_else(|| Transformed::no(node), Transformed::yes)))
            .map(|plan| plan.data)
    }

    fn name(&self) -> &str {
        "run_time_filters"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

impl RunTimeFilters {
    /// The join with its keys given to scans of its right side.
    fn with_filters(&self, node: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let Some(join) = node.downcast_ref::<HashJoinExec>() else { return Ok(None) };
        if !drops_right_rows(join) || !has_fewer_rows(join.left())? {
            return Ok(None);
        }
        let (mut right, mut collected) = (join.right().clone(), Vec::new());
        for (left_key, right_key) in join.on() {
            let (Some(left_key), Some(right_key)) = (column(left_key), column(right_key)) else { continue };
            if !is_collected(join.left().schema().field(left_key).data_type()) {
                continue;
            }
            let filter = Arc::new(KeyFilter::default());
            if let Some(filtered) = self.filtered(&right, right_key, &filter)? {
                right = filtered;
                collected.push(Collected { column: left_key, filter });
            }
        }
        if collected.is_empty() {
            return Ok(None);
        }
        let left = collecting(join.left(), collected)?;
        node.clone().replace_children(vec![left, right], as_planned()).map(Some)
    }

    /// The plan with a filter of one of its columns in the scan that the column comes from; `None` if there is no such scan, or
    /// if rows without these keys decide about others on the way.
    #[recursive::recursive]
    fn filtered(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        column: usize,
        filter: &Arc<KeyFilter>,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        if let Some(scan) = plan.downcast_ref::<ScanExec>() {
            return Ok(scan.with_keys(column, filter).map(|scan| Arc::new(scan) as _));
        }
        if plan.is::<UnionExec>() {
            return self.filtered_parts(plan, column, filter);
        }
        let Some((child, column)) = self.origin(plan, column) else { return Ok(None) };
        if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
            return self.filtered_sides(join, plan, (child, column), filter);
        }
        if plan.is::<AggregateExec>() {
            // Of a group that has lost some of its rows, what is worked out above might be an error.
            filter.be_steady();
        }
        let mut children: Vec<Arc<dyn ExecutionPlan>> = plan.children().into_iter().cloned().collect();
        let Some(changed) = self.filtered(&children[child], column, filter)? else { return Ok(None) };
        children[child] = changed;
        plan.clone().replace_children(children, as_planned()).map(Some)
    }

    /// A join with a filter of a column of one side in the scan that it comes from, and in that of the key of the other side that is equal
    /// to it.
    fn filtered_sides(
        &self,
        join: &HashJoinExec,
        plan: &Arc<dyn ExecutionPlan>,
        (side, of_side): (usize, usize),
        filter: &Arc<KeyFilter>,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let mut sides = [join.left().clone(), join.right().clone()];
        let mut has_filter = false;
        let mut filtered = |side: usize, column: usize| {
            if let Some(changed) = self.filtered(&sides[side], column, filter)? {
                sides[side] = changed;
                has_filter = true;
            }
            Ok::<_, DataFusionError>(())
        };
        filtered(side, of_side)?;
        let key = join.on().iter().find_map(|(left, right)| {
            let (own, others) = if side == 0 { (left, right) } else { (right, left) };
            column(others).filter(|_| column(own) == Some(of_side))
        });
        if let Some(key) = key {
            filtered(1 - side, key)?;
        }
        match has_filter {
            true => plan.clone().replace_children(sides.to_vec(), as_planned()).map(Some),
            false => Ok(None),
        }
    }

    /// A union with a filter in the scan of each of its parts: of some alone, groups above might lose some of their rows.
    fn filtered_parts(
        &self,
        union: &Arc<dyn ExecutionPlan>,
        column: usize,
        filter: &Arc<KeyFilter>,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let parts = union.children().into_iter().map(|part| self.filtered(part, column, filter));
        match parts.collect::<Result<Option<Vec<_>>>>()? {
            Some(parts) => union.clone().replace_children(parts, as_planned()).map(Some),
            None => Ok(None),
        }
    }

    /// Whether a plan works out something for each row that is more than a value, such as the next number of a sequence.
    fn does_more(&self, plan: &Arc<dyn ExecutionPlan>) -> bool {
        if let Some(filter) = plan.downcast_ref::<FilterExec>() {
            return !self.is_steady(filter.predicate());
        }
        let projection = plan.downcast_ref::<ProjectionExec>();
        projection.is_some_and(|projection| projection.expr().iter().any(|item| !self.is_steady(&item.expr)))
    }

    /// The input and its column that a column is, where leaving out rows by it above and below is the same.
    fn origin(&self, plan: &Arc<dyn ExecutionPlan>, output: usize) -> Option<(usize, usize)> {
        if plan.fetch().is_some() {
            return None;
        }
        if self.does_more(plan) {
            return None;
        }
        if let Some(filter) = plan.downcast_ref::<FilterExec>() {
            let kept = filter.projection().as_ref().map_or(Some(output), |kept| kept.get(output).copied());
            return kept.map(|column| (0, column));
        }
        if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
            return column(&projection.expr().get(output)?.expr).map(|column| (0, column));
        }
        if let Some(aggregate) = plan.downcast_ref::<AggregateExec>() {
            let groups = aggregate.group_expr();
            let is_plain = groups.is_single() && !groups.has_grouping_set() && aggregate.limit_options().is_none();
            return match groups.expr().get(output).filter(|_| is_plain) {
                Some((group, _)) => column(group).map(|column| (0, column)),
                None => None,
            };
        }
        if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
            let joined = join.projection.as_ref().map_or(Some(output), |kept| kept.get(output).copied())?;
            return of_join(join, joined);
        }
        let hands_on = plan.is::<RepartitionExec>() || plan.is::<CoalescePartitionsExec>() || plan.is::<SortExec>();
        let is_plain = ["CooperativeExec", "KeyCollectorExec", "PlainExec"].contains(&plan.name());
        (hands_on || is_plain || plan.name() == "SortPreservingMergeExec").then_some((0, output))
    }

    /// Whether an expression gives the same for the same row all through a statement.
    fn is_steady(&self, expr: &Arc<dyn PhysicalExpr>) -> bool {
        let is_steady = match expr.downcast_ref::<ScalarFunctionExpr>() {
            Some(call) if expr.is_volatile_node() => (self.is_steady)(call.fun()),
            _ => !expr.is_volatile_node(),
        };
        is_steady && expr.children().into_iter().all(|child| self.is_steady(child))
    }
}

/// Inputs in the place of others that have the same properties.
fn as_planned() -> ReplaceChildrenOptions {
    ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep)
}

fn column(expr: &Arc<dyn PhysicalExpr>) -> Option<usize> {
    expr.downcast_ref::<Column>().map(Column::index)
}

/// Whether a row of the right side without a partner is of no matter.
fn drops_right_rows(join: &HashJoinExec) -> bool {
    let drops = matches!(
        join.join_type(),
        JoinType::Inner
            | JoinType::Left
            | JoinType::LeftSemi
            | JoinType::LeftAnti
            | JoinType::LeftMark
            | JoinType::RightSemi
    );
    drops && join.null_equality() == NullEquality::NullEqualsNothing && !join.null_aware
}

/// Whether a plan may lack rows of its tables: all keys of a table are of little use.
fn has_fewer_rows(plan: &Arc<dyn ExecutionPlan>) -> Result<bool> {
    plan.has(|node| {
        let is_tested =
            node.downcast_ref::<ScanExec>().is_some_and(|scan| !scan.tests().is_empty() || !scan.reads_all());
        let leaves_out = node.is::<FilterExec>() || node.fetch().is_some();
        Ok(is_tested || leaves_out || node.children().is_empty() && !node.is::<ScanExec>())
    })
}

/// The plan with the keys of a column collected, below what deals its rows out.
fn collecting(plan: &Arc<dyn ExecutionPlan>, collected: Vec<Collected>) -> Result<Arc<dyn ExecutionPlan>> {
    if (plan.is::<RepartitionExec>() || plan.is::<CoalescePartitionsExec>()) && plan.fetch().is_none() {
        let input = collecting(plan.children()[0], collected)?;
        return plan.clone().replace_children(vec![input], as_planned());
    }
    Ok(Arc::new(KeyCollectorExec::new(plan.clone(), collected)))
}

/// The side of a join and its column that a column of all is, where the join keeps that side's rows one by one.
fn of_join(join: &HashJoinExec, column: usize) -> Option<(usize, usize)> {
    let of_left = join.left().schema().fields().len();
    let (side, column) = match join.join_type() {
        JoinType::LeftSemi | JoinType::LeftAnti => (0, column),
        JoinType::RightSemi | JoinType::RightAnti => (1, column),
        JoinType::Inner | JoinType::Left | JoinType::Right if column < of_left => (0, column),
        JoinType::Inner | JoinType::Left | JoinType::Right => (1, column - of_left),
        JoinType::Full | JoinType::LeftMark | JoinType::RightMark => return None,
    };
    let keeps = match join.join_type() {
        JoinType::Left => side == 0,
        JoinType::Right => side == 1,
        _ => !join.null_aware,
    };
    keeps.then_some((side, column))
}
