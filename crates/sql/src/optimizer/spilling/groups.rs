//! A grouping that goes to files where its rows are more than its part of the query's memory.
//!
//! ```text
//! rows ─▶ held in memory ─ few, and their groups fit ─────────────────▶ the library's grouping
//!            │ too many
//!            └▶ 16 files by hash of the keys ─┬─ few keys ────────────▶ the library's grouping, as the rows are read
//!                                             └─ file by file: as above, by another hash
//! ```
//!
//! Rows of one group are in one file, so that each file is grouped by itself, and no two have a group in common. Rows keep their order
//! within a file, so that functions that depend on it give what they would have given.
use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::{GreedyMemoryPool, MemoryConsumer, MemoryReservation};
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricsSet, SpillMetrics};
use datafusion::physical_plan::stream::{RecordBatchReceiverStreamBuilder, RecordBatchStreamAdapter};
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, InputOrderMode, PlanProperties, SpillManager,
    replace_children_if_necessary,
};
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, stream};

use super::partitions::{DEPTH_MAX, Partitions};
use super::streams::{BATCHES_AHEAD, Once, Output};
use crate::access::small_batches::copied;
use crate::state::context::in_runtime;
use crate::state::query_memory::is_out_of_memory;

/// Which part of the memory rows may take that wait for their grouping; the rest is for the groups.
const ROWS_PART: usize = 4;

/// The grouping that a node is, if rows of one group come to one partition, and in no order that shows where a group ends.
pub(super) fn divisible(node: &Arc<dyn ExecutionPlan>) -> Option<&AggregateExec> {
    let aggregate = node.downcast_ref::<AggregateExec>()?;
    let is_whole = match aggregate.mode() {
        AggregateMode::Partial | AggregateMode::PartialReduce => false,
        AggregateMode::Final | AggregateMode::FinalPartitioned => true,
        AggregateMode::Single | AggregateMode::SinglePartitioned => true,
    };
    let groups = aggregate.group_expr();
    let is_linear = *aggregate.input_order_mode() == InputOrderMode::Linear;
    let is_plain = is_linear && groups.is_single() && !groups.is_empty() && aggregate.limit_options().is_none();
    (is_whole && is_plain).then_some(aggregate)
}

/// Groups rows as an [`AggregateExec`] does, part by part where they are too many.
#[derive(Debug)]
pub(in crate::optimizer) struct SpillingGroupsExec {
    aggregate: Arc<dyn ExecutionPlan>,
    keys: Vec<Arc<dyn PhysicalExpr>>,
    /// the bytes that a partition may hold
    share: usize,
    metrics: ExecutionPlanMetricsSet,
}

impl SpillingGroupsExec {
    /// `aggregate` is one that is [`divisible`].
    pub(super) fn new(aggregate: Arc<dyn ExecutionPlan>, keys: Vec<Arc<dyn PhysicalExpr>>, share: usize) -> Self {
        SpillingGroupsExec { aggregate, keys, share, metrics: ExecutionPlanMetricsSet::new() }
    }

    fn input(&self) -> &Arc<dyn ExecutionPlan> {
        self.aggregate.children()[0]
    }
}

impl ExecutionPlan for SpillingGroupsExec {
    fn name(&self) -> &str {
        "SpillingGroupsExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.aggregate.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.aggregate.children()
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        let aggregate = replace_children_if_necessary(self.aggregate.clone(), children)?;
        Ok(Arc::new(SpillingGroupsExec::new(aggregate, self.keys.clone(), self.share)))
    }

    fn apply_expressions(
        &self,
        look: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.aggregate.apply_expressions(look)
    }

    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let rows = self.input().execute(partition, context.clone())?;
        let work = Work::new(self, &context, partition)?;
        let (schema, metrics) = (self.schema(), self.metrics.clone());
        let started = async move {
            let mut groups = RecordBatchReceiverStreamBuilder::new(work.aggregate.schema(), BATCHES_AHEAD);
            let output = Output::new(groups.tx(), &metrics, partition, None);
            groups.spawn(work.run(rows, output));
            groups.build()
        };
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, stream::once(started).flatten())))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}

impl DisplayAs for SpillingGroupsExec {
    fn fmt_as(&self, kind: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SpillingGroupsExec: share={} kB, ", self.share >> 10)?;
        self.aggregate.fmt_as(kind, f)
    }
}

/// What a partition works with.
struct Work {
    aggregate: Arc<dyn ExecutionPlan>,
    keys: Vec<Arc<dyn PhysicalExpr>>,
    share: usize,
    context: Arc<TaskContext>,
    /// Groupings in it have the rest of the share, and no files: they fail before they give a row.
    in_memory: Arc<TaskContext>,
    files: Arc<SpillManager>,
    partition: usize,
}

impl Work {
    fn new(of: &SpillingGroupsExec, context: &Arc<TaskContext>, partition: usize) -> Result<Work> {
        let runtime = context.runtime_env();
        let without_files = DiskManagerBuilder::default().with_mode(DiskManagerMode::Disabled).build()?;
        let of_groups = RuntimeEnv {
            memory_pool: Arc::new(GreedyMemoryPool::new(of.share - of.share / ROWS_PART)),
            disk_manager: Arc::new(without_files),
            cache_manager: runtime.cache_manager.clone(),
            object_store_registry: runtime.object_store_registry.clone(),
        };
        let spilled = SpillMetrics::new(&of.metrics, partition);
        Ok(Work {
            aggregate: of.aggregate.clone(),
            keys: of.keys.clone(),
            share: of.share,
            context: context.clone(),
            in_memory: in_runtime(context, Arc::new(of_groups)),
            files: Arc::new(SpillManager::new(runtime, spilled, of.input().schema())),
            partition,
        })
    }

    async fn run(self, rows: SendableRecordBatchStream, mut output: Output) -> Result<()> {
        self.group(rows, 0, &mut output).await.map(drop)
    }

    fn memory(&self) -> MemoryReservation {
        MemoryConsumer::new(format!("SpillingGroups[{}]", self.partition)).register(self.context.memory_pool())
    }

    /// Groups what is left of some rows, in memory if they are few.
    fn group<'a>(
        &'a self,
        mut rows: SendableRecordBatchStream,
        depth: usize,
        output: &'a mut Output,
    ) -> BoxFuture<'a, Result<ControlFlow<()>>> {
        async move {
            // It is ours by the plan, and what is set aside for all is half of what the query has.
            let memory = self.memory();
            memory.grow(self.share);
            let (mut held, mut bytes) = (Vec::new(), 0);
            while let Some(batch) = rows.next().await.transpose()? {
                let batch = copied(&batch, 0..batch.num_rows())?;
                bytes += batch.get_array_memory_size();
                held.push(batch);
                if bytes > self.share / ROWS_PART {
                    drop(memory);
                    let all = stream::iter(held).map(Ok).chain(rows);
                    return self
                        .divided(Box::pin(RecordBatchStreamAdapter::new(self.schema(), all)), depth, output)
                        .await;
                }
            }
            let again = |batches| -> SendableRecordBatchStream {
                Box::pin(RecordBatchStreamAdapter::new(self.schema(), stream::iter(batches).map(Ok)))
            };
            let grouped = self.grouped(again(held.clone()), &self.in_memory, output).await;
            match grouped {
                Err(error) if is_out_of_memory(&error) && !output.has_given() => {
                    drop(memory);
                    self.divided(again(held), depth, output).await
                }
                grouped => grouped,
            }
        }
        .boxed()
    }

    fn schema(&self) -> arrow_schema::SchemaRef {
        self.aggregate.children()[0].schema()
    }

    /// Groups rows by the library's operator.
    async fn grouped(
        &self,
        rows: SendableRecordBatchStream,
        context: &Arc<TaskContext>,
        output: &mut Output,
    ) -> Result<ControlFlow<()>> {
        let rows = Once::new(self.schema(), rows, Vec::new()).into_plan()?;
        output.give_all(&replace_children_if_necessary(self.aggregate.clone(), vec![rows])?, context).await
    }

    /// Deals rows out to files, and groups these one by one.
    async fn divided(
        &self,
        rows: SendableRecordBatchStream,
        depth: usize,
        output: &mut Output,
    ) -> Result<ControlFlow<()>> {
        let waiting = (self.share / 2, self.memory());
        let parts = Partitions::new(self.keys.clone(), depth, &self.files, waiting).deal_out(rows).await?;
        for part in parts {
            let given = match part.has_few_keys || depth + 1 == DEPTH_MAX {
                // No other hash would divide them, or need not: how many rows a group has is nothing to its size, as a rule.
                true => self.grouped(part.batches, &self.context, output).await?,
                false => self.group(part.batches, depth + 1, output).await?,
            };
            if given.is_break() {
                return Ok(given);
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}
