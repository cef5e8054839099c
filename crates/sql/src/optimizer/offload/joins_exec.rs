//! The operator that has a device find the partners of rows, portion by portion of the larger side.
//!
//! One partition at a time reads and asks the device ([`Dealt`]); each puts the rows together that it gives.
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use arrow_array::RecordBatch;
use arrow_select::concat::concat_batches;
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

use super::dealt::Dealt;
use super::joined::{Chunk, Rest};
use super::joins::JoinSection;
use super::learn::Course;
use super::numbers::SideKeys;
use super::rest::{RestExec, over, whole};
use crate::coprocessor::decisions::Noted;
use crate::coprocessor::{Built, Offload, Partners};
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
    run: Mutex<Run>,
}

/// The run that partitions take part in, and which of them do.
#[derive(Default)]
struct Run {
    items: Option<Dealing>,
    partitions: Vec<usize>,
}

impl DeviceJoinExec {
    pub(super) fn new(
        section: JoinSection,
        (cpu, partitions): (Arc<dyn ExecutionPlan>, usize),
        offload: Offload,
        settings: DeviceSettings,
        noted: Arc<Noted>,
    ) -> DeviceJoinExec {
        let properties = Arc::new(PlanProperties::new(
            EquivalenceProperties::new(cpu.schema()),
            Partitioning::UnknownPartitioning(partitions.max(1)),
            EmissionType::Incremental,
            Boundedness::Bounded,
        ));
        let metrics = ExecutionPlanMetricsSet::new();
        let (section, run) = (Arc::new(section), Mutex::default());
        DeviceJoinExec { section, cpu, offload, settings, noted, properties, metrics, run }
    }

    /// What the partitions of a run share, begun by the first of them.
    fn begin(&self, context: Arc<TaskContext>) -> Result<Dealing> {
        let course = Course::new(&self.offload, self.settings, &self.noted, &self.metrics, 0);
        let (join, lost) = (hash_join(&self.cpu), self.offload.lost());
        let (Some(join), None) = (join, &lost) else {
            course.continued(&lost.unwrap_or_default());
            return Ok(Dealt::new(whole(&self.cpu, context)?.map(|batch| batch.map(Item::Batch))));
        };
        let mut work = Work {
            section: self.section.clone(),
            join: join.clone(),
            course,
            stage: Stage::Ended,
            build: Side::default(),
            table: None,
            whole_build: None,
            portion: Side::default(),
            reservation: MemoryConsumer::new("DeviceJoin").register(context.memory_pool()),
            context: context.clone(),
        };
        work.stage = Stage::Build(whole(&work.side(0)?, context)?);
        Ok(Dealt::new(stream::try_unfold(work, |mut work| async move {
            let item = work.next().await?;
            Ok(item.map(|item| (item, work)))
        })))
    }
}

type Dealing = Arc<Dealt<Item>>;

/// What a partition is given.
enum Item {
    /// Rows of the CPU's operator.
    Batch(RecordBatch),
    /// Rows to be put together.
    Chunk(Chunk),
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
    keys: SideKeys,
    bytes: usize,
}

impl Side {
    fn add(&mut self, key: &Arc<dyn PhysicalExpr>, batch: RecordBatch) -> Result<()> {
        let keys = key.evaluate(&batch)?.into_array(batch.num_rows())?;
        self.keys.append(&keys).map_err(DataFusionError::Internal)?;
        self.bytes += batch.get_array_memory_size() + 8 * batch.num_rows();
        self.batches.push(batch);
        Ok(())
    }

    fn rows(&self) -> usize {
        self.keys.rows()
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
    /// It gives the rows of a portion that are left.
    Give(Rest, SendableRecordBatchStream),
    /// The CPU's operator goes on.
    Cpu(SendableRecordBatchStream),
    Ended,
}

/// The operator at work.
struct Work {
    section: Arc<JoinSection>,
    join: Arc<dyn ExecutionPlan>,
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
}

impl Work {
    fn side(&self, at: usize) -> Result<Arc<dyn ExecutionPlan>> {
        let side = self.join.children().get(at).map(|side| (*side).clone());
        side.ok_or_else(|| DataFusionError::Internal("a join without its sides".into()))
    }

    /// The next rows; `None` at the end.
    async fn next(&mut self) -> Result<Option<Item>> {
        loop {
            match std::mem::replace(&mut self.stage, Stage::Ended) {
                Stage::Ended => return Ok(None),
                Stage::Cpu(mut rows) => {
                    let batch = rows.next().await.transpose()?;
                    if let Some(batch) = batch {
                        self.stage = Stage::Cpu(rows);
                        return Ok(Some(Item::Batch(batch)));
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
                Stage::Give(mut rest, following) => {
                    let most = self.context.session_config().batch_size().max(1);
                    let Some(chunk) = rest.next(most) else {
                        self.stage = Stage::Probe(following);
                        continue;
                    };
                    self.stage = Stage::Give(rest, following);
                    return Ok(Some(Item::Chunk(chunk)));
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
            self.build.keys.make_ready();
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
        match self.partners() {
            Ok(partners) => self.give(partners, rows),
            Err(why) => {
                let none = RecordBatchStreamAdapter::new(self.side(0)?.schema(), stream::empty());
                self.go_on_without(&why, Box::pin(none), rows)
            }
        }
    }

    /// Begins to give the rows of the portion.
    fn give(&mut self, partners: Partners, following: SendableRecordBatchStream) -> Result<()> {
        let portion = std::mem::take(&mut self.portion);
        let build = match self.whole_build.take() {
            Some(build) => build,
            None => concat_batches(&self.side(0)?.schema(), &self.build.batches)?,
        };
        self.whole_build = Some(build.clone());
        self.stage = Stage::Give(Rest::new(build, portion.batches, partners)?, following);
        Ok(())
    }

    /// Has the device find the partners of the portion; the error is why it does not.
    fn partners(&mut self) -> std::result::Result<Partners, String> {
        let (began, is_wide) = (Instant::now(), self.section.is_wide);
        self.portion.keys.make_ready();
        let host_ns = began.elapsed().as_nanos() as f64;
        let probe = self.portion.rows();
        let table = match self.table.take() {
            Some(table) => table,
            None => self.hash_table()?,
        };
        let (keys, pairs_max) =
            (self.portion.keys.keys(is_wide), probe.saturating_mul(PAIRS_PER_ROW).max(PAIRS_ANYHOW));
        let bytes = self.section.device_bytes(0, probe as u64);
        let found = self.course.ask(bytes, |_, room| table.probe(&keys, pairs_max, room))?;
        self.table = Some(table);
        let work = self.section.device_work(0.0, probe as f64, found.partners.len() as f64);
        self.course.answered(&work, host_ns, &found.spent);
        Ok(found.partners)
    }

    /// Has the device make a hash table of the build side; the error is why it does not.
    fn hash_table(&self) -> std::result::Result<Built, String> {
        let rows = self.build.rows();
        let (keys, bytes) = (self.build.keys.keys(self.section.is_wide), self.section.device_bytes(rows as u64, 0));
        let (table, spent) = self.course.ask(bytes, |offload, room| offload.hash_table(&keys, room))?;
        self.course.prepared(&self.section.device_work(rows as f64, 0.0, 0.0), &spent);
        Ok(table)
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
            run: Mutex::default(),
        }))
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let mut run = self.run.lock().unwrap_or_else(PoisonError::into_inner);
        // A partition that is asked for once more begins another run.
        let items = match run.items.clone().filter(|_| !run.partitions.contains(&partition)) {
            Some(items) => items,
            None => {
                run.partitions.clear();
                self.begin(context)?
            }
        };
        run.items = Some(items.clone());
        run.partitions.push(partition);
        if run.partitions.len() == self.properties.partitioning.partition_count() {
            *run = Run::default();
        }
        let (schema, metrics) = (self.schema(), BaselineMetrics::new(&self.metrics, partition));
        let rows = items.items(partition).map(move |item| {
            let _timer = metrics.elapsed_compute().timer();
            let batch = match item? {
                Item::Batch(batch) => return Ok(batch),
                Item::Chunk(chunk) => chunk.rows(&schema)?,
            };
            metrics.record_output(batch.num_rows());
            Ok(batch)
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
