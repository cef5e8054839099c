//! One partition of a join that spills, at work.
use std::ops::ControlFlow;
use std::sync::Arc;

use arrow_array::RecordBatch;
use datafusion::error::Result;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, SpillMetrics};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{ExecutionPlan, SpillManager};
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, stream};

use super::partitions::{DEPTH_MAX, Partitions};
use super::streams::{Once, Output};
use crate::access::small_batches::copied;
use crate::state::query_memory::is_out_of_memory;

/// What a partition works with.
pub(super) struct Work {
    join: Arc<HashJoinExec>,
    share: usize,
    context: Arc<TaskContext>,
    left_files: Arc<SpillManager>,
    right_files: Arc<SpillManager>,
    consumer: String,
}

/// What was read of a left side.
struct Held {
    batches: Vec<RecordBatch>,
    bytes: usize,
    memory: MemoryReservation,
}

impl Work {
    pub(super) fn new(
        join: Arc<HashJoinExec>,
        share: usize,
        context: &Arc<TaskContext>,
        metrics: &ExecutionPlanMetricsSet,
        partition: usize,
    ) -> Work {
        let spilled = SpillMetrics::new(metrics, partition);
        let files = |input: &Arc<dyn ExecutionPlan>| {
            Arc::new(SpillManager::new(context.runtime_env(), spilled.clone(), input.schema()))
        };
        let (left_files, right_files) = (files(join.left()), files(join.right()));
        let consumer = format!("SpillingJoin[{partition}]");
        Work { join, share, context: context.clone(), left_files, right_files, consumer }
    }

    /// Joins all.
    pub(super) async fn run(
        self,
        left: SendableRecordBatchStream,
        right: SendableRecordBatchStream,
        mut output: Output,
    ) -> Result<()> {
        self.join(left, right, 0, &mut output).await.map(drop)
    }

    /// Memory of this join, which asks for no more than its share.
    fn memory(&self) -> MemoryReservation {
        MemoryConsumer::new(&self.consumer).register(self.context.memory_pool())
    }

    /// Joins what is left of two inputs, in memory if the left one fits.
    fn join<'a>(
        &'a self,
        mut left: SendableRecordBatchStream,
        right: SendableRecordBatchStream,
        depth: usize,
        output: &'a mut Output,
    ) -> BoxFuture<'a, Result<ControlFlow<()>>> {
        async move {
            if depth == DEPTH_MAX {
                let schema = self.join.left().schema();
                let rows = left.map(|batch| batch.and_then(|batch| copied(&batch, 0..batch.num_rows())));
                let left = Once::new(schema.clone(), Box::pin(RecordBatchStreamAdapter::new(schema, rows)), Vec::new());
                return self.in_memory(left, Once::new(self.join.right().schema(), right, Vec::new()), output).await;
            }
            let mut held = Held { batches: Vec::new(), bytes: 0, memory: self.memory() };
            while let Some(batch) = left.next().await.transpose()? {
                let batch = copied(&batch, 0..batch.num_rows())?;
                let bytes = batch.get_array_memory_size();
                held.batches.push(batch);
                held.bytes += bytes;
                if held.bytes > self.share || held.memory.try_grow(bytes).is_err() {
                    return self.divided(held, left, right, depth, output).await;
                }
            }
            // The join takes over, and asks for the same rows and its table.
            held.memory.free();
            let schema = self.join.left().schema();
            let rows = RecordBatchStreamAdapter::new(schema.clone(), stream::iter(held.batches.clone()).map(Ok));
            let left = Once::new(schema.clone(), Box::pin(rows), Vec::new());
            let right = Once::new(self.join.right().schema(), right, std::mem::take(&mut held.batches));
            match (self.in_memory(left, right.clone(), output).await, right.take_back()) {
                (Err(error), Some((right, batches))) if is_out_of_memory(&error) => {
                    held.batches = batches;
                    let no_more = Box::pin(RecordBatchStreamAdapter::new(schema, stream::empty()));
                    self.divided(held, no_more, right, depth, output).await
                }
                (result, _) => result,
            }
        }
        .boxed()
    }

    /// Joins two inputs by the library's operator.
    async fn in_memory(&self, left: Once, right: Once, output: &mut Output) -> Result<ControlFlow<()>> {
        let children = vec![left.into_plan()?, right.into_plan()?];
        let join = self.join.builder().reset_state().recompute_properties().with_new_children(children)?.build()?;
        output.give_all(&(Arc::new(join) as _), &self.context).await
    }

    /// Deals the rows of both inputs out to files, and joins these one by one.
    async fn divided(
        &self,
        mut held: Held,
        left: SendableRecordBatchStream,
        right: SendableRecordBatchStream,
        depth: usize,
        output: &mut Output,
    ) -> Result<ControlFlow<()>> {
        held.memory.free();
        let held = stream::iter(std::mem::take(&mut held.batches)).map(Ok).chain(left);
        let (left_keys, right_keys) = self.join.on().iter().cloned().unzip();
        let waiting = || (self.share / 2, self.memory());
        let left = Partitions::new(left_keys, depth, &self.left_files, waiting()).deal_out(held).await?;
        let right = Partitions::new(right_keys, depth, &self.right_files, waiting()).deal_out(right).await?;
        let all: usize = left.iter().map(|part| part.bytes).sum();
        for (left, right) in left.into_iter().zip(right) {
            if left.rows + right.rows == 0 {
                continue;
            }
            // Rows that one hash did not tell apart have one key, and no other hash will.
            let is_one_key = left.bytes > all / 10 * 9;
            let depth = if is_one_key { DEPTH_MAX } else { depth + 1 };
            if self.join(left.batches, right.batches, depth, output).await?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}
