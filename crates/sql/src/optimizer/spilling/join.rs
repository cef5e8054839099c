//! A hash join that goes to files where its build side is larger than its part of the query's memory.
//!
//! ```text
//! left  ─▶ held in memory ─ fits ──────────────────────────▶ HashJoin of left and right
//!              │ too much
//!              └▶ 16 files by hash of the keys ─┐ file by file: fits ─▶ HashJoin of the two files
//! right ─────────▶ 16 files by the same hash ───┘            too much ─▶ 16 files each by another hash
//! ```
//!
//! This is the partitioned ("Grace") hash join: rows with equal keys are in files with equal numbers, so that each pair of files is
//! joined by itself, by the library's operator with its join type, condition and treatment of NULL. Files are written once and read
//! once, in order.
use std::fmt;
use std::sync::Arc;

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::joins::{HashJoinExec, PartitionMode};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::stream::{RecordBatchReceiverStreamBuilder, RecordBatchStreamAdapter};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties};
use futures::StreamExt;

use super::join_work::Work;
use super::streams::{BATCHES_AHEAD, Output};

/// The join that a node is, if equal keys of both sides come to partitions with equal numbers.
pub(super) fn divisible(node: &Arc<dyn ExecutionPlan>) -> Option<&HashJoinExec> {
    let join = node.downcast_ref::<HashJoinExec>()?;
    let meets = match join.partition_mode() {
        PartitionMode::Partitioned => true,
        PartitionMode::CollectLeft => join.right().output_partitioning().partition_count() == 1,
        PartitionMode::Auto => false,
    };
    (meets && !join.null_aware).then_some(join)
}

/// Joins two inputs as a [`HashJoinExec`] does, part by part where the left one is too large.
#[derive(Debug)]
pub(in crate::optimizer) struct SpillingJoinExec {
    join: Arc<HashJoinExec>,
    /// the bytes of the left input that a partition may hold
    share: usize,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl SpillingJoinExec {
    pub(super) fn new(join: HashJoinExec, share: usize) -> SpillingJoinExec {
        let unordered = EquivalenceProperties::new(join.schema());
        let properties = join.properties().as_ref().clone().with_eq_properties(unordered);
        SpillingJoinExec {
            join: Arc::new(join),
            share,
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }
}

impl ExecutionPlan for SpillingJoinExec {
    fn name(&self) -> &str {
        "SpillingJoinExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.join.children()
    }

    fn fetch(&self) -> Option<usize> {
        self.join.fetch()
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        let join = self.join.builder().recompute_properties().with_new_children(children)?.build()?;
        Ok(Arc::new(SpillingJoinExec::new(join, self.share)))
    }

    fn apply_expressions(
        &self,
        look: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.join.apply_expressions(look)
    }

    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let left = self.join.left().execute(partition, context.clone())?;
        let right = self.join.right().execute(partition, context.clone())?;
        let (join, share, metrics) = (self.join.clone(), self.share, self.metrics.clone());
        let schema = self.schema();
        // Nothing is read before a row is asked for: joins above have the keys of their other sides by then.
        let started = async move {
            let mut rows = RecordBatchReceiverStreamBuilder::new(join.schema(), BATCHES_AHEAD);
            let output = Output::new(rows.tx(), &metrics, partition, join.fetch());
            let work = Work::new(join, share, &context, &metrics, partition);
            rows.spawn(work.run(left, right, output));
            rows.build()
        };
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, futures::stream::once(started).flatten())))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}

impl DisplayAs for SpillingJoinExec {
    fn fmt_as(&self, kind: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SpillingJoinExec: share={} kB, ", self.share >> 10)?;
        self.join.fmt_as(kind, f)
    }
}
