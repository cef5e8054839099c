//! Stopping queries that no client waits for any more.
//!
//! A task is aborted where it yields, but a join can compute for minutes without doing so: it pairs the rows of two batches,
//! of which none may pass, or hands many batches to an operator that only counts them. So the plan of a query that is about
//! to run gets a look at a flag in two places:
//!
//! ```text
//! above each join        every batch that it hands on            (StoppableExec)
//! in a join's condition  every few thousand pairs that it tries  (StoppableCondition)
//! ```
//!
//! Plans without joins stay as they are: their operators yield after some batches of a table.
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow_array::RecordBatch;
use arrow_schema::{FieldRef, Schema, SchemaRef};
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::joins::{NestedLoopJoinExec, NestedLoopJoinExecBuilder};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::StreamExt;

use crate::cancel::Reason;
use crate::walk::WalkTree;

/// Whether a query is to stop.
#[derive(Clone, Default, Debug)]
pub(crate) struct StopFlag(Arc<AtomicBool>);

impl StopFlag {
    pub(crate) fn raise(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(crate) fn check(&self) -> Result<()> {
        match self.0.load(Ordering::Relaxed) {
            true => Err(DataFusionError::External(Box::new(Reason::User.error()))),
            false => Ok(()),
        }
    }
}

/// Makes a plan fail soon after the flag is raised.
pub(crate) fn stoppable(plan: Arc<dyn ExecutionPlan>, flag: &StopFlag) -> Result<Arc<dyn ExecutionPlan>> {
    let with_looks = |node: Arc<dyn ExecutionPlan>| {
        if !node.name().ends_with("JoinExec") {
            return Ok(Transformed::no(node));
        }
        let join = match node.downcast_ref::<NestedLoopJoinExec>() {
            Some(join) => with_stoppable_condition(join, flag)?,
            None => node,
        };
        Ok(Transformed::yes(Arc::new(StoppableExec { input: join, flag: flag.clone() }) as _))
    };
    plan.change_up(with_looks).map(|transformed| transformed.data)
}

fn with_stoppable_condition(join: &NestedLoopJoinExec, flag: &StopFlag) -> Result<Arc<dyn ExecutionPlan>> {
    let filter = join.filter().map(|filter| {
        let condition = StoppableCondition { inner: filter.expression().clone(), flag: flag.clone() };
        JoinFilter::new(Arc::new(condition), filter.column_indices().to_vec(), filter.schema().clone())
    });
    Ok(Arc::new(NestedLoopJoinExecBuilder::from(join).with_filter(filter).build()?))
}

/// Hands on what comes, until the flag is raised.
#[derive(Debug)]
struct StoppableExec {
    input: Arc<dyn ExecutionPlan>,
    flag: StopFlag,
}

impl DisplayAs for StoppableExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StoppableExec")
    }
}

impl ExecutionPlan for StoppableExec {
    fn name(&self) -> &str {
        "StoppableExec"
    }

    fn schema(&self) -> SchemaRef {
        self.input.schema()
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(self: Arc<Self>, mut children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        let input = children.pop().ok_or_else(|| DataFusionError::Internal("an operator without its input".into()))?;
        Ok(Arc::new(StoppableExec { input, flag: self.flag.clone() }))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let (batches, flag) = (self.input.execute(partition, context)?, self.flag.clone());
        let checked = batches.map(move |batch| flag.check().and(batch));
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), checked)))
    }
}

/// A condition that can't be evaluated any more once the flag is raised.
#[derive(Debug)]
struct StoppableCondition {
    inner: Arc<dyn PhysicalExpr>,
    flag: StopFlag,
}

impl PartialEq for StoppableCondition {
    fn eq(&self, other: &Self) -> bool {
        self.inner.eq(&other.inner)
    }
}

impl Eq for StoppableCondition {}

impl Hash for StoppableCondition {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.inner.hash(state);
    }
}

impl fmt::Display for StoppableCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl PhysicalExpr for StoppableCondition {
    fn return_field(&self, schema: &Schema) -> Result<FieldRef> {
        self.inner.return_field(schema)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        self.flag.check()?;
        self.inner.evaluate(batch)
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.inner]
    }

    fn with_new_children(self: Arc<Self>, mut children: Vec<Arc<dyn PhysicalExpr>>) -> Result<Arc<dyn PhysicalExpr>> {
        let inner = children.pop().ok_or_else(|| DataFusionError::Internal("a condition without its inner".into()))?;
        Ok(Arc::new(StoppableCondition { inner, flag: self.flag.clone() }))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt_sql(f)
    }
}

#[cfg(test)]
mod tests {
    use std::thread::sleep;
    use std::time::{Duration, Instant};

    use engine::Database;

    use crate::outcome::Source;
    use crate::{Outcome, Session, SessionOptions};

    #[test]
    fn a_query_that_nobody_waits_for_computes_no_more() {
        let mut session = Session::new(&Database::in_memory(), SessionOptions::default());
        let numbers = |name| format!("generate_series(1, 100000) AS {name}(n)");
        let (a, b, c) = (numbers("a"), numbers("b"), numbers("c"));
        for condition in ["", "WHERE a.n + b.n + c.n = -1", "WHERE a.n = b.n % 2 AND b.n + c.n < 0"] {
            let query = format!("SELECT count(*) FROM {a}, {b}, {c} {condition}");
            let Outcome::Rows(rows) = session.execute(&query).unwrap() else { panic!("no rows") };
            let Source::Running { stop, .. } = &rows.source else { panic!("it does not run") };
            let task = stop.task.clone();
            sleep(Duration::from_millis(200));
            drop(rows);
            let end = Instant::now() + Duration::from_secs(60);
            while !task.is_finished() {
                assert!(Instant::now() < end, "it still runs: {condition}");
                sleep(Duration::from_millis(5));
            }
        }
    }
}
