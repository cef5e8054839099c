//! The rows of a table by their distance from a point, read from an index as far as they are asked for.
//!
//! ```text
//! portion of rows, all others at least `beyond` away ─▶ filter ─▶ distances ─▶ waiting, in order
//!                                                                               └─▶ handed on up to `beyond`
//! ```
use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use datafusion::arrow::compute::{concat_batches, filter_record_batch};
use datafusion::common::Statistics;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties};
use engine::{Index, NearestScan};

use crate::access::conditions;
use crate::access::nearest::order::ByDistance;
use crate::access::scan::{ScanExec, Turn, external};

/// A distance, the part of an index that it is of, and the point that it is from.
#[derive(Clone, Debug)]
pub(super) struct Distance {
    pub(super) expr: Arc<dyn PhysicalExpr>,
    pub(super) part: usize,
    pub(super) point: [f64; 2],
}

/// See the module.
pub(super) struct NearestExec {
    scan: ScanExec,
    index: Index,
    distance: Distance,
    filter: Option<Arc<dyn PhysicalExpr>>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl NearestExec {
    /// The rows of a scan that pass a filter, by a distance that the index knows; both are of the scan's rows.
    pub(super) fn try_new(
        scan: &ScanExec,
        index: Index,
        distance: Distance,
        filter: Option<Arc<dyn PhysicalExpr>>,
    ) -> Result<NearestExec> {
        let by_distance = PhysicalSortExpr::new(distance.expr.clone(), super::ASCENDING);
        let properties = Arc::new(PlanProperties::new(
            EquivalenceProperties::new_with_orderings(scan.schema(), [[by_distance]]),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        ));
        let metrics = ExecutionPlanMetricsSet::new();
        Ok(NearestExec { scan: scan.again(), index, distance, filter, properties, metrics })
    }

    fn batches(&self) -> Result<Nearest> {
        let (scan, filter) = (self.scan.again(), self.filter.clone());
        let options = scan.options().clone();
        let Distance { part, point, .. } = self.distance;
        let found = scan.table().index_nearest(scan.moment().view(), &self.index, part, point, options);
        let found = match found {
            Ok(found) => Some(found),
            // It was dropped after the statement was planned.
            Err(engine::Error::NoSuchIndex(_)) => None,
            Err(error) => return Err(external(error)),
        };
        let waiting = ByDistance::new(&scan.schema());
        Ok(Nearest { scan, filter, found, distance: self.distance.expr.clone(), waiting, is_over: false })
    }
}

/// Rows by their distance, as they are read.
struct Nearest {
    scan: ScanExec,
    filter: Option<Arc<dyn PhysicalExpr>>,
    /// `None` where the whole table is read and sorted
    found: Option<NearestScan>,
    distance: Arc<dyn PhysicalExpr>,
    /// Rows that may be farther than others which are still to come.
    waiting: ByDistance,
    is_over: bool,
}

impl Nearest {
    /// Rows as they are read, and how far all later ones are at least; `None` after the last.
    fn read(&mut self) -> Result<Option<(RecordBatch, f64)>> {
        match &mut self.found {
            Some(found) => {
                let Some(portion) = found.next() else { return Ok(None) };
                let portion = portion.map_err(external)?;
                Ok(Some((self.scan.arranged(&portion.rows)?, portion.beyond)))
            }
            None if self.is_over => Ok(None),
            None => {
                let rows = self.scan.whole().collect::<Result<Vec<_>>>()?;
                self.is_over = true;
                Ok(Some((concat_batches(&self.scan.schema(), &rows)?, 0.0)))
            }
        }
    }

    /// The next rows in order; there may be none of them yet. `None` after the last.
    fn advance(&mut self) -> Result<Option<RecordBatch>> {
        let (rows, beyond) = match self.read()? {
            Some((rows, beyond)) => (self.passing(rows)?, beyond),
            None if self.waiting.is_empty() => return Ok(None),
            None => (RecordBatch::new_empty(self.scan.schema()), f64::NAN),
        };
        let distances = self.distance.evaluate(&rows)?.into_array(rows.num_rows())?;
        self.waiting.take(&rows, &distances, beyond).map(Some)
    }

    /// The rows that pass the filter.
    fn passing(&self, rows: RecordBatch) -> Result<RecordBatch> {
        let Some(filter) = &self.filter else { return Ok(rows) };
        let passed = filter.evaluate(&rows)?.into_array(rows.num_rows())?;
        match passed.as_boolean_opt() {
            Some(passed) => Ok(filter_record_batch(&rows, passed)?),
            None => Err(DataFusionError::Internal("a condition is no truth".into())),
        }
    }
}

impl Iterator for Nearest {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Result<RecordBatch>> {
        self.advance().transpose()
    }
}

impl ExecutionPlan for NearestExec {
    fn name(&self) -> &str {
        "NearestExec"
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

    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn execute(&self, partition: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let (mut batches, mut turn, schema) = (self.batches()?, Turn::default(), self.schema());
        let next = move |context: &mut Context<'_>| loop {
            if turn.is_over() {
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            let timer = metrics.elapsed_compute().timer();
            let batch = batches.next();
            timer.done();
            match &batch {
                Some(Ok(batch)) if batch.num_rows() == 0 => continue,
                Some(Ok(batch)) => metrics.output_rows().add(batch.num_rows()),
                _ => {}
            }
            return Poll::Ready(batch);
        };
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, futures::stream::poll_fn(next))))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn partition_statistics(&self, partition: Option<usize>) -> Result<Arc<Statistics>> {
        let known = StatisticsContext::new().compute(&self.scan, &StatisticsArgs::new().with_partition(partition))?;
        Ok(if self.filter.is_some() { Arc::new((*known).clone().to_inexact()) } else { known })
    }
}

impl DisplayAs for NearestExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (schema, [x, y]) = (self.schema(), self.distance.point);
        let columns: Vec<&str> = schema.fields().iter().map(|field| field.name().trim_start_matches('\0')).collect();
        let (name, index) = (engine::shown_name(self.scan.table().name()), &self.index.definition().name);
        write!(f, "NearestExec: table={name}, columns=[{}], index={index}, point=({x},{y})", columns.join(", "))?;
        conditions::write(f, &self.scan.options().tests, self.scan.table().schema())?;
        if let Some(filter) = &self.filter {
            write!(f, ", filter={filter}")?;
        }
        self.scan.moment().write_past(f)
    }
}

impl fmt::Debug for NearestExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NearestExec").field("table", &self.scan.table().name()).finish_non_exhaustive()
    }
}
