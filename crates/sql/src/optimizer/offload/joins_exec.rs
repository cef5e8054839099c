//! The operator that has a device find the partners of rows, portion by portion of the larger side.
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use arrow_array::{RecordBatch, UInt32Array};
use arrow_schema::SchemaRef;
use arrow_select::concat::concat_batches;
use arrow_select::take::take;
use datafusion::common::Statistics;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties};
use futures::{StreamExt, stream};

use super::joins::JoinSection;
use super::learn::Course;
use super::numbers::Numbers;
use super::rest::{RestExec, over, whole};
use crate::coprocessor::decisions::Noted;
use crate::coprocessor::{Built, JoinKeys, Offload};
use crate::state::device_settings::DeviceSettings;

/// So many pairs for each row of a portion, and some in any case: what has more is no join by a foreign key.
const PAIRS_PER_ROW: usize = 4;
const PAIRS_ANYHOW: usize = 1 << 16;

/// Joins rows on a device, and on the CPU where that does not answer.
pub(super) struct DeviceJoinExec {
    section: Arc<JoinSection>,
    /// The CPU's operator: a hash join, or what only hands on its rows.
    cpu: Arc<dyn ExecutionPlan>,
    offload: Offload,
    settings: DeviceSettings,
    noted: Arc<Noted>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl DeviceJoinExec {
    pub(super) fn new(
        section: JoinSection,
        cpu: Arc<dyn ExecutionPlan>,
        offload: Offload,
        settings: DeviceSettings,
        noted: Arc<Noted>,
    ) -> DeviceJoinExec {
        let properties = Arc::new(PlanProperties::new(
            EquivalenceProperties::new(cpu.schema()),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        ));
        let metrics = ExecutionPlanMetricsSet::new();
        DeviceJoinExec { section: Arc::new(section), cpu, offload, settings, noted, properties, metrics }
    }
}

/// The hash join at or below an operator of which each has one child.
fn hash_join(plan: &Arc<dyn ExecutionPlan>) -> Option<&Arc<dyn ExecutionPlan>> {
    match plan.children()[..] {
        _ if plan.is::<HashJoinExec>() => Some(plan),
        [below] => hash_join(below),
        _ => None,
    }
}

/// Rows of one side that have been read.
#[derive(Default)]
struct Side {
    batches: Vec<RecordBatch>,
    keys: Numbers,
    narrow: Vec<u32>,
    wide: Vec<u64>,
    validity: Option<Vec<u8>>,
    bytes: usize,
}

impl Side {
    fn add(&mut self, key: &Arc<dyn PhysicalExpr>, batch: RecordBatch) -> Result<()> {
        let keys = key.evaluate(&batch)?.into_array(batch.num_rows())?;
        self.keys.append(&keys).map_err(DataFusionError::Internal)?;
        self.bytes += batch.get_array_memory_size() + 16 * batch.num_rows();
        self.batches.push(batch);
        Ok(())
    }

    fn rows(&self) -> usize {
        self.keys.values.len()
    }

    /// Brings the keys into the form in which the device takes them.
    fn make_ready(&mut self, is_wide: bool) {
        self.validity = self.keys.validity();
        match is_wide {
            true => self.wide = self.keys.values.iter().map(|key| key.cast_unsigned()).collect(),
            false => self.narrow = self.keys.values.iter().map(|key| *key as u32).collect(),
        }
    }

    fn keys(&self, is_wide: bool) -> JoinKeys<'_> {
        match is_wide {
            true => JoinKeys::Wide(&self.wide, self.validity.as_deref()),
            false => JoinKeys::Narrow(&self.narrow, self.validity.as_deref()),
        }
    }
}

/// A batch, and then a stream.
fn before(batch: RecordBatch, following: SendableRecordBatchStream) -> SendableRecordBatchStream {
    let schema = following.schema();
    Box::pin(RecordBatchStreamAdapter::new(schema, stream::iter([Ok(batch)]).chain(following)))
}

/// Where the operator stands.
enum Stage {
    /// It reads the build side.
    Build(SendableRecordBatchStream),
    /// It reads a portion of the probe side.
    Probe(SendableRecordBatchStream),
    /// It gives the rows of a portion: pairs, from this one on, of the build side's rows and these.
    Give {
        pairs: Vec<u64>,
        next: usize,
        probe: RecordBatch,
        following: SendableRecordBatchStream,
    },
    /// The CPU's operator goes on.
    Cpu(SendableRecordBatchStream),
    Ended,
}

/// The operator at work.
struct Work {
    section: Arc<JoinSection>,
    join: Arc<dyn ExecutionPlan>,
    schema: SchemaRef,
    course: Course,
    context: Arc<TaskContext>,
    stage: Stage,
    build: Side,
    /// The hash table of it, once a portion of the probe side is there.
    table: Option<Built>,
    /// The build side in one batch, once it is read.
    whole_build: Option<RecordBatch>,
    portion: Side,
    reservation: MemoryReservation,
    metrics: BaselineMetrics,
}

impl Work {
    fn side(&self, at: usize) -> Result<Arc<dyn ExecutionPlan>> {
        let side = self.join.children().get(at).map(|side| (*side).clone());
        side.ok_or_else(|| DataFusionError::Internal("a join without its sides".into()))
    }

    /// The next batch; `None` at the end.
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            match std::mem::replace(&mut self.stage, Stage::Ended) {
                Stage::Ended => return Ok(None),
                Stage::Cpu(mut rows) => {
                    let batch = rows.next().await.transpose()?;
                    if let Some(batch) = batch {
                        self.stage = Stage::Cpu(rows);
                        return Ok(Some(batch));
                    }
                }
                Stage::Build(mut rows) => {
                    let batch = rows.next().await.transpose()?;
                    self.take_build(batch, rows)?;
                }
                Stage::Probe(mut rows) => {
                    let batch = rows.next().await.transpose()?;
                    self.take_probe(batch, rows)?;
                }
                Stage::Give { pairs, next, probe, following } => {
                    let most = self.context.session_config().batch_size().max(1);
                    let end = pairs.len().min(next + most);
                    if next == end {
                        self.stage = Stage::Probe(following);
                        continue;
                    }
                    let batch = self.rows(&pairs[next..end], &probe)?;
                    self.stage = Stage::Give { pairs, next: end, probe, following };
                    return Ok(Some(batch));
                }
            }
        }
    }

    fn has_room(&mut self) -> bool {
        self.reservation.try_resize(self.build.bytes + self.portion.bytes).is_ok()
    }

    /// Takes a batch of the build side, or its end.
    fn take_build(&mut self, batch: Option<RecordBatch>, rows: SendableRecordBatchStream) -> Result<()> {
        let Some(batch) = batch else {
            if self.build.rows() == 0 {
                return Ok(());
            }
            self.build.make_ready(self.section.is_wide);
            self.stage = Stage::Probe(whole(&self.side(1)?, self.context.clone())?);
            return Ok(());
        };
        self.build.add(&self.section.build, batch)?;
        if self.has_room() {
            self.stage = Stage::Build(rows);
            return Ok(());
        }
        let probe = whole(&self.side(1)?, self.context.clone())?;
        self.go_on_without("a table that does not fit the memory of queries", rows, probe)
    }

    /// Takes a batch of the probe side, or its end.
    fn take_probe(&mut self, batch: Option<RecordBatch>, following: SendableRecordBatchStream) -> Result<()> {
        let most = self.course.rows_max(self.section.key_bytes() as u64);
        let (is_end, mut rows) = (batch.is_none(), following);
        if let Some(batch) = batch {
            let length = batch.num_rows().min(most - self.portion.rows());
            self.portion.add(&self.section.probe, batch.slice(0, length))?;
            if length < batch.num_rows() {
                rows = before(batch.slice(length, batch.num_rows() - length), rows);
            }
        }
        if !is_end && self.portion.rows() < most && self.has_room() {
            self.stage = Stage::Probe(rows);
            return Ok(());
        }
        if self.portion.rows() == 0 {
            return Ok(());
        }
        match self.pairs() {
            Ok(pairs) => self.give(pairs, rows),
            Err(why) => {
                let none = RecordBatchStreamAdapter::new(self.side(0)?.schema(), stream::empty());
                self.go_on_without(&why, Box::pin(none), rows)
            }
        }
    }

    /// Begins to give the rows of the portion that pairs stand for.
    fn give(&mut self, pairs: Vec<u64>, following: SendableRecordBatchStream) -> Result<()> {
        let portion = std::mem::take(&mut self.portion);
        let probe = concat_batches(&following.schema(), &portion.batches)?;
        if self.whole_build.is_none() {
            self.whole_build = Some(concat_batches(&self.side(0)?.schema(), &self.build.batches)?);
        }
        self.stage = Stage::Give { pairs, next: 0, probe, following };
        Ok(())
    }

    /// Has the device find the partners of the portion; the error is why it does not.
    fn pairs(&mut self) -> std::result::Result<Vec<u64>, String> {
        let (began, is_wide) = (Instant::now(), self.section.is_wide);
        self.portion.make_ready(is_wide);
        let host_ns = began.elapsed().as_nanos() as f64;
        let probe = self.portion.rows();
        let table = match self.table.take() {
            Some(table) => table,
            None => self.hash_table()?,
        };
        let (keys, pairs_max) = (self.portion.keys(is_wide), probe.saturating_mul(PAIRS_PER_ROW).max(PAIRS_ANYHOW));
        let bytes = self.section.device_bytes(0, probe as u64);
        let found = self.course.ask(bytes, |_, room| table.probe(&keys, pairs_max, room))?;
        self.table = Some(table);
        let work = self.section.device_work(0.0, probe as f64, found.pairs.len() as f64);
        self.course.answered(&work, host_ns, &found.spent);
        Ok(found.pairs)
    }

    /// Has the device make a hash table of the build side; the error is why it does not.
    fn hash_table(&self) -> std::result::Result<Built, String> {
        let rows = self.build.rows();
        let (keys, bytes) = (self.build.keys(self.section.is_wide), self.section.device_bytes(rows as u64, 0));
        let (table, spent) = self.course.ask(bytes, |offload, room| offload.hash_table(&keys, room))?;
        self.course.prepared(&self.section.device_work(rows as f64, 0.0, 0.0), &spent);
        Ok(table)
    }

    /// The rows that pairs stand for.
    fn rows(&self, pairs: &[u64], probe: &RecordBatch) -> Result<RecordBatch> {
        let Some(build) = &self.whole_build else {
            return Err(DataFusionError::Internal("pairs without a table".into()));
        };
        let of_build: UInt32Array = pairs.iter().map(|pair| *pair as u32).collect::<Vec<_>>().into();
        let of_probe: UInt32Array = pairs.iter().map(|pair| (*pair >> 32) as u32).collect::<Vec<_>>().into();
        let build = build.columns().iter().map(|column| take(column, &of_build, None));
        let probe = probe.columns().iter().map(|column| take(column, &of_probe, None));
        let columns = build.chain(probe).collect::<std::result::Result<Vec<_>, _>>()?;
        let batch = RecordBatch::try_new(self.schema.clone(), columns)?;
        self.metrics.record_output(batch.num_rows());
        Ok(batch)
    }

    /// Leaves what was read and not joined, and what follows, to the CPU.
    fn go_on_without(
        &mut self,
        why: &str,
        build: SendableRecordBatchStream,
        probe: SendableRecordBatchStream,
    ) -> Result<()> {
        self.course.continued(why);
        let build = RestExec::new(std::mem::take(&mut self.build).batches, build);
        let probe = RestExec::new(std::mem::take(&mut self.portion).batches, probe);
        (self.whole_build, self.table) = (None, None);
        self.reservation.free();
        let join = over(&self.join, vec![build, probe])?;
        self.stage = Stage::Cpu(join.execute(0, self.context.clone())?);
        Ok(())
    }
}

impl ExecutionPlan for DeviceJoinExec {
    fn name(&self) -> &str {
        "DeviceJoinExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.cpu]
    }

    fn with_new_children(self: Arc<Self>, mut inputs: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(DeviceJoinExec {
            section: self.section.clone(),
            cpu: inputs.pop().unwrap_or_else(|| self.cpu.clone()),
            offload: self.offload.clone(),
            settings: self.settings,
            noted: self.noted.clone(),
            properties: self.properties.clone(),
            metrics: ExecutionPlanMetricsSet::new(),
        }))
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let course = Course::new(&self.offload, self.settings, &self.noted, &self.metrics, partition);
        let (join, lost) = (hash_join(&self.cpu), self.offload.lost());
        let (Some(join), None) = (join, &lost) else {
            course.continued(&lost.unwrap_or_default());
            return whole(&self.cpu, context);
        };
        let mut work = Work {
            section: self.section.clone(),
            join: join.clone(),
            schema: self.schema(),
            course,
            stage: Stage::Ended,
            build: Side::default(),
            table: None,
            whole_build: None,
            portion: Side::default(),
            reservation: MemoryConsumer::new("DeviceJoin").register(context.memory_pool()),
            context: context.clone(),
            metrics: BaselineMetrics::new(&self.metrics, partition),
        };
        work.stage = Stage::Build(whole(&work.side(0)?, context)?);
        let rows = stream::try_unfold(work, |mut work| async move {
            let batch = work.next().await?;
            Ok(batch.map(|batch| (batch, work)))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), rows)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn partition_statistics(&self, _: Option<usize>) -> Result<Arc<Statistics>> {
        StatisticsContext::new().compute(self.cpu.as_ref(), &StatisticsArgs::new())
    }
}

impl DisplayAs for DeviceJoinExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (build, probe) = (&self.section.build, &self.section.probe);
        write!(f, "DeviceJoinExec: device={}, on=[({build}, {probe})]", self.offload.facts())
    }
}

impl fmt::Debug for DeviceJoinExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceJoinExec").field("section", &self.section).finish_non_exhaustive()
    }
}
