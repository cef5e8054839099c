//! Groups of rows that lie side by side, for the step that makes states of groups.
//!
//! ```text
//! l_orderkey  1 1 1 2 2 3 | 3 4 4 ...      a group for each run, given up before they leave the cache:
//! group       0 0 0 1 1 2 | 3 4 4            no table, no hash; the last step brings two runs of one key together
//! ```
//!
//! Where the rows of a key lie together, as the lines of an order do, this step finds nearly the groups that a table would. Whether they
//! do is seen from the first rows of the table, when the query is planned. Where that was wrong, states come of more rows than they
//! have to, and the last step has more to do.
use std::sync::Arc;

use arrow_array::{ArrayRef, UInt32Array};
use arrow_schema::ArrowError;
use datafusion::arrow::compute::{concat, partition, take};
use datafusion::error::Result;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateInputMode};
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;

use crate::access::scan::ScanExec;

/// So many groups are given up.
const GROUPS_MAX: usize = 1 << 14;
/// Rows lie side by side where a run has so many of them.
const ROWS_A_RUN: usize = 2;
/// Of fewer rows it is not told.
const ROWS_MIN: usize = 512;

/// Numbers groups by runs of equal keys.
#[derive(Default)]
pub(super) struct RunKeys {
    /// the keys of the groups, batch by batch
    firsts: Vec<Vec<ArrayRef>>,
    count: usize,
}

impl RunKeys {
    /// Appends the group of each row.
    pub(super) fn number(&mut self, columns: &[ArrayRef], groups: &mut Vec<usize>) -> Result<(), ArrowError> {
        let runs = partition(columns)?.ranges();
        let firsts: UInt32Array = runs.iter().map(|run| run.start as u32).collect();
        self.firsts.push(columns.iter().map(|column| take(column, &firsts, None)).collect::<Result<_, _>>()?);
        for run in runs {
            groups.resize(groups.len() + run.len(), self.count);
            self.count += 1;
        }
        Ok(())
    }

    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// Whether there are as many groups as are given up.
    pub(super) fn is_full(&self) -> bool {
        self.count >= GROUPS_MAX
    }

    /// The bytes that it takes.
    pub(super) fn size(&self) -> usize {
        self.firsts.iter().flatten().map(|keys| keys.get_array_memory_size()).sum()
    }

    /// The keys by group; it has no groups any more.
    pub(super) fn take(&mut self) -> Result<Vec<ArrayRef>, ArrowError> {
        let taken = std::mem::take(self);
        let width = taken.firsts.first().map_or(0, Vec::len);
        let column = |at: usize| {
            let parts: Vec<_> = taken.firsts.iter().map(|keys| keys[at].as_ref()).collect();
            concat(&parts)
        };
        (0..width).map(column).collect()
    }
}

/// Whether the rows of a group lie side by side where it takes them from.
pub(super) fn are_runs(aggregate: &AggregateExec) -> bool {
    let column = |(key, _): &(Arc<_>, String)| Some(column_of(key)?.index());
    let keys = aggregate.group_expr().expr().iter().map(column).collect::<Option<Vec<_>>>();
    if aggregate.mode().input_mode() != AggregateInputMode::Raw {
        return false;
    }
    let source = keys.and_then(|keys| source(aggregate.input(), keys));
    let first = source.and_then(|(scan, outputs)| scan.first_rows(&outputs));
    first.is_some_and(|rows| {
        let runs = partition(rows.columns()).map(|runs| runs.len());
        rows.num_rows() >= ROWS_MIN && runs.is_ok_and(|runs| runs * ROWS_A_RUN <= rows.num_rows())
    })
}

fn column_of(expr: &Arc<dyn datafusion::physical_expr::PhysicalExpr>) -> Option<&Column> {
    expr.downcast_ref()
}

/// The scan that columns come from in the order in which it has them, and which of its columns they are.
fn source(plan: &Arc<dyn ExecutionPlan>, columns: Vec<usize>) -> Option<(&ScanExec, Vec<usize>)> {
    if let Some(scan) = plan.downcast_ref::<ScanExec>() {
        return scan.reads_all().then_some((scan, columns));
    }
    let below: Option<Vec<usize>> = if let Some(filter) = plan.downcast_ref::<FilterExec>() {
        let kept = filter.projection().as_ref();
        columns.iter().map(|at| kept.map_or(Some(*at), |kept| kept.get(*at).copied())).collect()
    } else if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        columns.iter().map(|at| Some(column_of(&projection.expr().get(*at)?.expr)?.index())).collect()
    } else {
        Some(columns).filter(|_| plan.name() == "CooperativeExec")
    };
    source(plan.children().first()?, below?)
}
