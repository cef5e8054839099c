//! Stopping queries that no client waits for any more.
//!
//! A task is aborted where it yields, but a join can compute for minutes without doing so: it pairs the rows of two batches,
//! of which none may pass, or hands many batches to an operator that only counts them. An aggregate over sets of columns puts
//! each row into a group of each set: of a batch it may make as many groups as a table has rows, and with hundreds of keys it
//! has as many values to compare. An expression of thousands of parts, as `a IN (b + 1, b + 2, ...)`, is worked out for all
//! rows of a batch. So the plan of a query that is about to run gets a look at a flag in three places:
//!
//! ```text
//! above each join                   every batch that it hands on                 (StoppableExec)
//! below what takes long for a row   every few rows, which it gets by themselves  (StoppableExec)
//! in a join's condition             every few thousand pairs that it tries       (StoppableCondition)
//! ```
//!
//! An aggregate of many keys also asks for memory after each of its few rows, and not when it has taken far too much. Plans without
//! these stay as they are: their operators yield after some batches of a table.
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
use datafusion::physical_expr::expressions::{InListExpr, Literal};
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::joins::{NestedLoopJoinExec, NestedLoopJoinExecBuilder};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, ReplaceChildrenOptions,
};
use futures::{StreamExt, stream};

use crate::interrupt::cancel::Reason;
use crate::syntax::walk::WalkTree;

/// How many rows a batch has at the most.
const BATCH_ROWS: usize = 8_192;

/// How many values of keys an aggregate may look up between two looks: its rows times its sets times their columns.
const KEYS_BETWEEN_LOOKS: usize = 1 << 20;

/// How many values the expressions of a filter, projection or aggregate may work out between two looks: rows times the
/// parts of the expressions.
const VALUES_BETWEEN_LOOKS: usize = 8 << 20;

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
        let rows = rows_between_looks(&node)?;
        if rows < BATCH_ROWS {
            let input = |input: &Arc<dyn ExecutionPlan>| {
                Arc::new(StoppableExec { input: input.clone(), flag: flag.clone(), rows: rows.max(1) }) as _
            };
            let inputs = node.children().into_iter().map(input).collect();
            let keep = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep);
            return node.replace_children(inputs, keep).map(Transformed::yes);
        }
        if !node.name().ends_with("JoinExec") {
            return Ok(Transformed::no(node));
        }
        let join = match node.downcast_ref::<NestedLoopJoinExec>() {
            Some(join) => with_stoppable_condition(join, flag)?,
            None => node,
        };
        Ok(Transformed::yes(Arc::new(StoppableExec { input: join, flag: flag.clone(), rows: usize::MAX }) as _))
    };
    plan.change_up(with_looks).map(|transformed| transformed.data)
}

/// How many rows an operator may take at once.
fn rows_between_looks(node: &Arc<dyn ExecutionPlan>) -> Result<usize> {
    let mut keys = 1;
    if let Some(aggregate) = node.downcast_ref::<AggregateExec>() {
        keys = aggregate.group_expr().groups().len() * aggregate.group_expr().expr().len();
    } else if !node.is::<FilterExec>() && !node.is::<ProjectionExec>() && node.name() != "DirectGroupsExec" {
        return Ok(usize::MAX);
    }
    let mut values = 0;
    let _ = node.apply_expressions(&mut |expr| {
        values += parts_of(expr);
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok((KEYS_BETWEEN_LOOKS / keys.max(1)).min(VALUES_BETWEEN_LOOKS / values.max(1)))
}

/// How many expressions one is made of. A list of constants is a set, in which a value is found at once.
fn parts_of(expr: &Arc<dyn PhysicalExpr>) -> usize {
    match expr.downcast_ref::<InListExpr>() {
        Some(list) if list.list().iter().all(|item| item.is::<Literal>()) => 1 + parts_of(list.expr()),
        _ => expr.children().into_iter().fold(1, |sum, part| sum + parts_of(part)),
    }
}

fn with_stoppable_condition(join: &NestedLoopJoinExec, flag: &StopFlag) -> Result<Arc<dyn ExecutionPlan>> {
    let filter = join.filter().map(|filter| {
        let condition = StoppableCondition { inner: filter.expression().clone(), flag: flag.clone() };
        JoinFilter::new(Arc::new(condition), filter.column_indices().to_vec(), filter.schema().clone())
    });
    Ok(Arc::new(NestedLoopJoinExecBuilder::from(join).with_filter(filter).build()?))
}

/// Hands on what comes, in batches of so many rows at the most, until the flag is raised.
#[derive(Debug)]
struct StoppableExec {
    input: Arc<dyn ExecutionPlan>,
    flag: StopFlag,
    rows: usize,
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
        Ok(Arc::new(StoppableExec { input, flag: self.flag.clone(), rows: self.rows }))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let (batches, flag) = (self.input.execute(partition, context)?, self.flag.clone());
        let rows = self.rows;
        let parts = batches.flat_map(move |batch| stream::iter(parts(batch, rows)));
        let checked = parts.map(move |batch| flag.check().and(batch));
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), checked)))
    }
}

/// A batch in parts of so many rows at the most.
fn parts(batch: Result<RecordBatch>, rows: usize) -> impl Iterator<Item = Result<RecordBatch>> {
    let count = batch.as_ref().map_or(1, |batch| batch.num_rows().div_ceil(rows).max(1));
    let mut whole = Some(batch);
    (0..count).map_while(move |at| match &whole {
        Some(Ok(batch)) if count > 1 => {
            let start = at * rows;
            Some(Ok(batch.slice(start, rows.min(batch.num_rows() - start))))
        }
        _ => whole.take(),
    })
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

    use arrow_array::{ArrayRef, Int64Array};
    use arrow_schema::{DataType, Field};
    use datafusion::arrow::compute::concat_batches;
    use datafusion::physical_plan::collect;
    use datafusion::prelude::SessionContext;
    use engine::Database;

    use super::*;
    use crate::planning::planner::plain_state;
    use crate::state::outcome::Source;
    use crate::{Outcome, Session, SessionOptions};

    #[test]
    fn an_aggregate_of_many_keys_gets_few_rows_at_a_time() {
        let schema = Arc::new(Schema::new(vec![Field::new("a", DataType::Int64, true)]));
        let column = |from: i64, to: i64| Arc::new(Int64Array::from_iter_values(from..to)) as ArrayRef;
        let batch = RecordBatch::try_new(schema.clone(), vec![column(0, 8_192)]).unwrap();
        let lengths = |rows| parts(Ok(batch.clone()), rows).map(|part| part.unwrap().num_rows()).collect::<Vec<_>>();
        assert_eq!(lengths(usize::MAX), [8_192]);
        assert_eq!(lengths(3_000), [3_000, 3_000, 2_192]);
        assert_eq!(lengths(4_096), [4_096, 4_096]);
        assert_eq!(parts(Ok(RecordBatch::new_empty(schema)), 10).count(), 1);
        assert_eq!(parts(Err(DataFusionError::Internal("x".into())), 10).count(), 1);
        let all: Vec<_> = parts(Ok(batch.clone()), 3_000).map(Result::unwrap).collect();
        assert_eq!(concat_batches(&batch.schema(), &all).unwrap(), batch);
    }

    /// How many rows come at once to operators that get few of them, after a look whether that changes the answer, and
    /// whether the flag ends it.
    fn rows_at_once(query: &str) -> Vec<usize> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let context = SessionContext::new_with_state(plain_state());
        runtime.block_on(async {
            let plan = context.sql(query).await.unwrap().create_physical_plan().await.unwrap();
            let flag = StopFlag::default();
            let looking = stoppable(plan.clone(), &flag).unwrap();
            let mut found = Vec::new();
            let _ = looking.look(|node| {
                found.extend(node.downcast_ref::<StoppableExec>().map(|input| input.rows));
                Ok(TreeNodeRecursion::Continue)
            });
            let whole = collect(plan, context.task_ctx()).await.unwrap();
            assert_eq!(collect(looking.clone(), context.task_ctx()).await.unwrap(), whole);
            flag.raise();
            assert_eq!(collect(looking, context.task_ctx()).await.is_err(), !found.is_empty());
            found
        })
    }

    #[test]
    fn operators_that_take_long_for_a_row_look_at_the_flag_and_answer_as_without() {
        let row = |item: &dyn Fn(usize) -> String, count| (0..count).map(item).collect::<Vec<_>>().join(", ");
        let numbers = format!("(VALUES {}) AS v(a)", row(&|at| format!("({at})"), 100));
        let columns = row(&|at| format!("a % {}", at + 2), 10);
        let cube = format!("SELECT count(*) AS n FROM {numbers} GROUP BY CUBE ({columns}) ORDER BY n");
        assert_eq!(rows_at_once(&cube), [KEYS_BETWEEN_LOOKS / (1 << 10) / 10]);
        let few = |condition: &str| rows_at_once(&format!("SELECT a FROM {numbers} WHERE a IN ({condition})"));
        let rows = few(&row(&|at| format!("a % {} + 7", at + 2), 2_000));
        assert!(rows.len() == 1 && (500..BATCH_ROWS).contains(&rows[0]), "{rows:?}");
        assert_eq!(few(&row(&|at| at.to_string(), 2_000)), [0; 0], "constants are a set");
        assert_eq!(few("a % 2 + 7, a % 3"), [0; 0]);
    }

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
