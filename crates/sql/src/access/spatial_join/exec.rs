//! The operator of a join by an index: it reads the outer side and hands its batches to [`Probe`].
use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use arrow_schema::SchemaRef;
use datafusion::common::JoinSide;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::joins::NestedLoopJoinExec;
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricBuilder, MetricsSet};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, Partitioning, PlanProperties,
    ReplaceChildrenOptions,
};
use futures::StreamExt;

use super::probe::{Joined, Probe};
use super::{Asked, Inner};
use crate::access::conditions;
use crate::access::scan::Turn;
use crate::coprocessor::decisions::Noted;
use crate::coprocessor::{Offload, Owner, Searches, Spent};
use crate::state::device_settings::{DeviceSettings, Enabled};

/// The device that may search the index, and the note of that.
#[derive(Clone)]
pub(crate) struct JoinDevice {
    pub(crate) offload: Offload,
    pub(crate) settings: DeviceSettings,
    pub(crate) noted: Arc<Noted>,
}

/// See the room.
pub(crate) struct SpatialJoinExec {
    outer: Arc<dyn ExecutionPlan>,
    inner: Arc<Inner>,
    asked: Asked,
    joined: Arc<Joined>,
    device: Option<JoinDevice>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl SpatialJoinExec {
    /// The join in the place of a nested loop, with one of its sides as the outer one.
    pub(super) fn try_new(
        join: &NestedLoopJoinExec,
        outer: JoinSide,
        inner: Inner,
        asked: Asked,
    ) -> Result<SpatialJoinExec> {
        let joined = Arc::new(Joined::of(join, outer)?);
        let outer = if outer == JoinSide::Left { join.left() } else { join.right() };
        let (inner, metrics) = (Arc::new(inner), ExecutionPlanMetricsSet::new());
        let properties = properties(outer, join.schema());
        Ok(SpatialJoinExec { outer: outer.clone(), inner, asked, joined, device: None, properties, metrics })
    }

    fn over(&self, outer: Arc<dyn ExecutionPlan>) -> SpatialJoinExec {
        SpatialJoinExec {
            properties: properties(&outer, self.schema()),
            outer,
            inner: self.inner.clone(),
            asked: self.asked.clone(),
            joined: self.joined.clone(),
            device: self.device.clone(),
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }

    /// This join, with a device that may search the index.
    pub(crate) fn on(&self, device: JoinDevice) -> SpatialJoinExec {
        SpatialJoinExec { device: Some(device), ..self.over(self.outer.clone()) }
    }

    /// The rows that go through the index.
    pub(crate) fn outer(&self) -> &Arc<dyn ExecutionPlan> {
        &self.outer
    }

    /// About how many entries the index has.
    pub(crate) fn entries(&self) -> u64 {
        self.inner.scan.table().stats().records
    }

    /// The searches of one partition on the device.
    fn searches(&self, partition: usize) -> Option<Searches> {
        let JoinDevice { offload, settings, noted } = self.device.as_ref()?;
        let time = |name: &'static str| MetricBuilder::new(&self.metrics).subset_time(name, partition);
        let (transfer, kernels, results) = (time("device_transfer"), time("device_kernels"), time("device_results"));
        let batches = MetricBuilder::new(&self.metrics).counter("device_batches", partition);
        let is_emulated = offload.facts().is_emulated;
        let heard = move |spent: &Spent| {
            batches.add(1);
            let phases = [(&transfer, spent.transfer_ns), (&kernels, spent.kernels_ns), (&results, spent.results_ns)];
            for (time, ns) in phases.into_iter().filter(|_| !is_emulated) {
                time.add_duration(Duration::from_nanos(ns as u64));
            }
        };
        let owner = Owner {
            table: engine::shown_name(self.inner.scan.table().name()),
            index: self.inner.index.definition().name.to_string(),
        };
        let limits = (settings.memory_limit, settings.enabled == Enabled::Force);
        Some(Searches::new(offload, owner, limits, Some(noted.clone()), Box::new(heard)))
    }
}

fn properties(outer: &Arc<dyn ExecutionPlan>, schema: SchemaRef) -> Arc<PlanProperties> {
    Arc::new(PlanProperties::new(
        EquivalenceProperties::new(schema),
        Partitioning::UnknownPartitioning(outer.output_partitioning().partition_count()),
        EmissionType::Incremental,
        Boundedness::Bounded,
    ))
}

impl ExecutionPlan for SpatialJoinExec {
    fn name(&self) -> &str {
        "SpatialJoinExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.outer]
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        match <[_; 1]>::try_from(children) {
            Ok([outer]) => Ok(Arc::new(self.over(outer))),
            Err(_) => Err(DataFusionError::Internal("a spatial join has one input".into())),
        }
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match <[_; 1]>::try_from(children) {
            Ok([outer]) => Ok(Arc::new(self.over(outer))),
            Err(_) => Err(DataFusionError::Internal("a spatial join has one input".into())),
        }
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(self.over(self.outer.clone())))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let mut outer = self.outer.execute(partition, context)?;
        let searches = self.searches(partition);
        let mut probe = Probe::new(self.inner.clone(), self.asked.clone(), self.joined.clone(), searches);
        let (mut turn, mut has_ended) = (Turn::default(), false);
        let next = move |context: &mut Context<'_>| loop {
            if turn.is_over() {
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            let timer = metrics.elapsed_compute().timer();
            let found = probe.next();
            timer.done();
            match found {
                Some(Ok(batch)) if batch.num_rows() == 0 => {}
                Some(Ok(batch)) => {
                    metrics.output_rows().add(batch.num_rows());
                    return Poll::Ready(Some(Ok(batch)));
                }
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None if has_ended => return Poll::Ready(None),
                None => match ready!(outer.poll_next_unpin(context)) {
                    Some(Ok(batch)) => probe.begin(batch),
                    Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                    None => has_ended = true,
                },
            }
        };
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), futures::stream::poll_fn(next))))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}

impl DisplayAs for SpatialJoinExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (table, index) = (self.inner.scan.table(), &self.inner.index.definition().name);
        let columns: Vec<String> =
            self.inner.schema().fields().iter().map(|field| field.name().trim_start_matches('\0').to_owned()).collect();
        let (kind, name) = (self.joined.kind(), engine::shown_name(table.name()));
        write!(f, "SpatialJoinExec: join_type={kind}, filter={}, ", self.joined.condition())?;
        write!(f, "table={name}, columns=[{}], index={index}", columns.join(", "))?;
        if let Some(device) = &self.device {
            write!(f, ", device={}", device.offload.facts())?;
        }
        conditions::write(f, &self.inner.scan.options().tests, table.schema())?;
        if let Some(filter) = &self.inner.filter {
            write!(f, ", inner_filter={filter}")?;
        }
        self.inner.scan.moment().write_past(f)
    }
}

impl fmt::Debug for SpatialJoinExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpatialJoinExec").field("table", &self.inner.scan.table().name()).finish_non_exhaustive()
    }
}
