//! An operator of the CPU over rows that are there already, and those that follow: how a section goes on without its device.
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::RecordBatch;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, Partitioning,
    PlanProperties, ReplaceChildrenOptions,
};
use futures::{StreamExt, stream};

/// All rows of a plan in one stream.
pub(super) fn whole(plan: &Arc<dyn ExecutionPlan>, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
    match plan.output_partitioning().partition_count() {
        1 => plan.execute(0, context),
        _ => CoalescePartitionsExec::new(plan.clone()).execute(0, context),
    }
}

/// An operator of the CPU over these rows.
pub(super) fn over(operator: &Arc<dyn ExecutionPlan>, inputs: Vec<RestExec>) -> Result<Arc<dyn ExecutionPlan>> {
    let inputs = inputs.into_iter().map(|input| Arc::new(input) as _).collect();
    operator.clone().replace_children(inputs, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
}

/// Gives some batches, and then those of a stream. It can be run once.
pub(super) struct RestExec {
    rest: Mutex<Option<SendableRecordBatchStream>>,
    properties: Arc<PlanProperties>,
}

impl RestExec {
    /// The rows of `batches`, then those of `following`.
    pub(super) fn new(batches: Vec<RecordBatch>, following: SendableRecordBatchStream) -> RestExec {
        let schema = following.schema();
        let properties = Arc::new(PlanProperties::new(
            EquivalenceProperties::new(schema.clone()),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        ));
        let batches = stream::iter(batches.into_iter().map(Ok)).chain(following);
        let rest: SendableRecordBatchStream = Box::pin(RecordBatchStreamAdapter::new(schema, batches));
        RestExec { rest: Mutex::new(Some(rest)), properties }
    }
}

impl ExecutionPlan for RestExec {
    fn name(&self) -> &str {
        "RestExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn with_new_children(self: Arc<Self>, _: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn execute(&self, _: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let rest = self.rest.lock().unwrap_or_else(PoisonError::into_inner).take();
        rest.ok_or_else(|| DataFusionError::Internal("the rest of some rows is read twice".into()))
    }
}

impl DisplayAs for RestExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RestExec")
    }
}

impl fmt::Debug for RestExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RestExec")
    }
}
