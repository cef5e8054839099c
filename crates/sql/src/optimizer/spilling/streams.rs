//! Where the rows of an operator that spills go, and rows as the input of one of the library's operators.
use std::fmt;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use futures::{StreamExt, TryStreamExt, stream};
use tokio::sync::mpsc::Sender;

/// How many batches an operator may be ahead of its reader.
pub(super) const BATCHES_AHEAD: usize = 2;

/// Where the rows of an operator go.
pub(super) struct Output {
    sender: Sender<Result<RecordBatch>>,
    metrics: BaselineMetrics,
    /// how many rows are still wanted, if not all are
    wanted: Option<usize>,
    has_given: bool,
}

impl Output {
    pub(super) fn new(
        sender: Sender<Result<RecordBatch>>,
        metrics: &ExecutionPlanMetricsSet,
        partition: usize,
        wanted: Option<usize>,
    ) -> Output {
        Output { sender, metrics: BaselineMetrics::new(metrics, partition), wanted, has_given: false }
    }

    /// Runs the only partition of a plan and hands its rows on.
    pub(super) async fn give_all(
        &mut self,
        plan: &Arc<dyn ExecutionPlan>,
        context: &Arc<TaskContext>,
    ) -> Result<ControlFlow<()>> {
        self.has_given = false;
        let mut rows = plan.execute(0, context.clone())?;
        while let Some(batch) = rows.next().await.transpose()? {
            if self.give(batch).await.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Whether the plan that was run last has given a row.
    pub(super) fn has_given(&self) -> bool {
        self.has_given
    }

    /// Hands a batch on; breaks where no more rows are wanted.
    async fn give(&mut self, batch: RecordBatch) -> ControlFlow<()> {
        let rows = self.wanted.map_or(batch.num_rows(), |wanted| wanted.min(batch.num_rows()));
        if let Some(wanted) = &mut self.wanted {
            *wanted -= rows;
        }
        self.metrics.record_output(rows);
        self.has_given = true;
        let is_taken = self.sender.send(Ok(batch.slice(0, rows))).await.is_ok();
        if is_taken && self.wanted != Some(0) { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }
}

/// An input that is read once, and with it what is needed no longer once it is read.
#[derive(Clone)]
pub(super) struct Once {
    schema: SchemaRef,
    unread: Arc<Mutex<Option<Unread>>>,
}

type Unread = (SendableRecordBatchStream, Vec<RecordBatch>);

impl Once {
    pub(super) fn new(schema: SchemaRef, rows: SendableRecordBatchStream, until_read: Vec<RecordBatch>) -> Once {
        Once { schema, unread: Arc::new(Mutex::new(Some((rows, until_read)))) }
    }

    /// The input, unless a row of it was asked for.
    pub(super) fn take_back(&self) -> Option<Unread> {
        self.unread.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(super) fn into_plan(self) -> Result<Arc<dyn ExecutionPlan>> {
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
