//! One partition of a join that spills, at work.
use std::fmt;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, SpillMetrics};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use datafusion::physical_plan::{ExecutionPlan, SpillManager};
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, TryStreamExt, stream};
use tokio::sync::mpsc::Sender;

use super::partitions::{Part, Partitions};
use crate::access::small_batches::copied;
use crate::state::query_memory::is_out_of_memory;

/// How often the rows of a file are dealt out again. Sixteen files of sixteen, four times over, are 65,536.
const DEPTH_MAX: usize = 4;

/// Where the rows of a join go.
pub(super) struct Output {
    sender: Sender<Result<RecordBatch>>,
    metrics: BaselineMetrics,
    /// how many rows are still wanted, if not all are
    wanted: Option<usize>,
}

impl Output {
    pub(super) fn new(
        sender: Sender<Result<RecordBatch>>,
        metrics: &ExecutionPlanMetricsSet,
        partition: usize,
        wanted: Option<usize>,
    ) -> Output {
        Output { sender, metrics: BaselineMetrics::new(metrics, partition), wanted }
    }

    /// Hands a batch on; breaks where no more rows are wanted.
    async fn give(&mut self, batch: RecordBatch) -> ControlFlow<()> {
        let rows = self.wanted.map_or(batch.num_rows(), |wanted| wanted.min(batch.num_rows()));
        if let Some(wanted) = &mut self.wanted {
            *wanted -= rows;
        }
        self.metrics.record_output(rows);
        let is_taken = self.sender.send(Ok(batch.slice(0, rows))).await.is_ok();
        if is_taken && self.wanted != Some(0) { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }
}

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
        let mut rows = join.execute(0, self.context.clone())?;
        while let Some(batch) = rows.next().await.transpose()? {
            if output.give(batch).await.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
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
        let left = self.to_files(held, left_keys, &self.left_files, depth).await?;
        let right = self.to_files(right, right_keys, &self.right_files, depth).await?;
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

    async fn to_files(
        &self,
        mut rows: impl futures::Stream<Item = Result<RecordBatch>> + Send + Unpin,
        keys: Vec<Arc<dyn PhysicalExpr>>,
        files: &Arc<SpillManager>,
        depth: usize,
    ) -> Result<Vec<Part>> {
        let mut parts = Partitions::new(keys, depth, files, (self.share / 2, self.memory()));
        while let Some(batch) = rows.next().await.transpose()? {
            parts.add(&batch)?;
        }
        parts.finish()
    }
}

/// An input that is read once, and with it what is needed no longer once it is read.
#[derive(Clone)]
struct Once {
    schema: SchemaRef,
    unread: Arc<Mutex<Option<Unread>>>,
}

type Unread = (SendableRecordBatchStream, Vec<RecordBatch>);

impl Once {
    fn new(schema: SchemaRef, rows: SendableRecordBatchStream, until_read: Vec<RecordBatch>) -> Once {
        Once { schema, unread: Arc::new(Mutex::new(Some((rows, until_read)))) }
    }

    /// The input, unless a row of it was asked for.
    fn take_back(&self) -> Option<Unread> {
        self.unread.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn into_plan(self) -> Result<Arc<dyn ExecutionPlan>> {
        let schema = self.schema.clone();
        Ok(Arc::new(StreamingTableExec::try_new(schema, vec![Arc::new(self)], None, [], false, None)?))
    }
}

impl PartitionStream for Once {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let own = self.clone();
        let rows = async move {
            let (rows, _) =
                own.take_back().ok_or_else(|| DataFusionError::Internal("an input is read again".into()))?;
            Ok::<_, DataFusionError>(rows)
        };
        Box::pin(RecordBatchStreamAdapter::new(self.schema.clone(), stream::once(rows).try_flatten()))
    }
}

impl fmt::Debug for Once {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Once")
    }
}
