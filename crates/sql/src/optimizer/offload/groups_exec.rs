//! The operator that has a device group rows, portion by portion.
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use arrow_array::{ArrayRef, Decimal128Array, Int64Array, RecordBatch, UInt64Array};
use arrow_schema::DataType;
use datafusion::common::Statistics;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties};
use futures::StreamExt;

use super::groups::{GroupSection, Part};
use super::held::HeldSection;
use super::learn::Course;
use super::numbers::{Codes, Numbers, array_of};
use super::rest::{RestExec, over, whole};
use crate::coprocessor::decisions::Noted;
use crate::coprocessor::{ColumnTotals, GroupTotals, GroupedColumn, GroupedRows, Offload};
use crate::state::device_settings::DeviceSettings;

/// Groups rows on a device, and on the CPU where that does not answer.
pub(super) struct DeviceGroupsExec {
    section: Arc<GroupSection>,
    /// Where the input is a table of which columns stay on the device.
    held: Option<Arc<HeldSection>>,
    /// The CPU's operator: the partial step of the aggregate.
    cpu: Arc<dyn ExecutionPlan>,
    offload: Offload,
    settings: DeviceSettings,
    noted: Arc<Noted>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl DeviceGroupsExec {
    pub(super) fn new(
        (section, held): (GroupSection, Option<HeldSection>),
        cpu: Arc<dyn ExecutionPlan>,
        offload: Offload,
        settings: DeviceSettings,
        noted: Arc<Noted>,
    ) -> DeviceGroupsExec {
        let properties = Arc::new(PlanProperties::new(
            EquivalenceProperties::new(section.schema.clone()),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        ));
        let metrics = ExecutionPlanMetricsSet::new();
        let (section, held) = (Arc::new(section), held.map(Arc::new));
        DeviceGroupsExec { section, held, cpu, offload, settings, noted, properties, metrics }
    }
}

/// Rows that have been read and not yet grouped.
struct Portion {
    batches: Vec<RecordBatch>,
    keys: Vec<Numbers>,
    columns: Vec<Numbers>,
    rows: usize,
    bytes: usize,
    host_ns: f64,
}

impl Portion {
    fn of(section: &GroupSection) -> Portion {
        let numbers = |count| vec![Numbers::default(); count];
        let (keys, columns) = (numbers(section.keys.len()), numbers(section.columns.len()));
        Portion { batches: Vec::new(), keys, columns, rows: 0, bytes: 0, host_ns: 0.0 }
    }

    /// Adds the rows of a batch. Ok with a reason if they are none for the device.
    fn add(&mut self, section: &GroupSection, batch: RecordBatch) -> Result<std::result::Result<(), String>> {
        let began = Instant::now();
        let mut added = Ok(());
        let keys = section.keys.iter().map(|(key, _)| key);
        let arguments = section.columns.iter().map(|column| &column.argument);
        for (expr, numbers) in keys.chain(arguments).zip(self.keys.iter_mut().chain(&mut self.columns)) {
            let array = expr.evaluate(&batch)?.into_array(batch.num_rows())?;
            added = added.and_then(|()| numbers.append(&array));
        }
        self.rows += batch.num_rows();
        self.bytes += batch.get_array_memory_size() + batch.num_rows() * (self.keys.len() + self.columns.len()) * 8;
        self.batches.push(batch);
        self.host_ns += began.elapsed().as_nanos() as f64;
        Ok(added)
    }

    fn clear(&mut self) {
        self.batches.clear();
        self.keys.iter_mut().chain(&mut self.columns).for_each(Numbers::clear);
        (self.rows, self.bytes, self.host_ns) = (0, 0, 0.0);
    }
}

/// Where the rows come from now.
enum Source {
    /// The table below, to be looked at.
    Table(Arc<HeldSection>),
    /// The input, to be grouped by the device.
    Input(SendableRecordBatchStream),
    /// The CPU's operator.
    Cpu(SendableRecordBatchStream),
    Ended,
}

/// The operator at work.
struct Work {
    section: Arc<GroupSection>,
    cpu: Arc<dyn ExecutionPlan>,
    course: Course,
    context: Arc<TaskContext>,
    source: Source,
    portion: Portion,
    reservation: MemoryReservation,
    ready: VecDeque<RecordBatch>,
    metrics: BaselineMetrics,
}

impl Work {
    /// The next batch; `None` at the end.
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(batch) = self.ready.pop_front() {
                self.metrics.record_output(batch.num_rows());
                return Ok(Some(batch));
            }
            match &mut self.source {
                Source::Ended => return Ok(None),
                Source::Table(held) => {
                    let held = held.clone();
                    self.take_table(&held)?;
                }
                Source::Cpu(rows) => match rows.next().await.transpose()? {
                    Some(batch) => self.ready.push_back(batch),
                    None => self.source = Source::Ended,
                },
                Source::Input(input) => {
                    let batch = input.next().await.transpose()?;
                    self.take(batch)?;
                }
            }
        }
    }

    /// Has the device group what it keeps of the table; all other rows are the input.
    fn take_table(&mut self, held: &HeldSection) -> Result<()> {
        let rows = held.read()?;
        // What goes wrong here is seen again, and told, when the device is asked for the other rows.
        let answer = held.group(&self.section, &rows, &self.course).ok().flatten();
        if let Some(answer) = &answer {
            self.push(states(&self.section, &answer.codes, &answer.totals)?);
        }
        let are_few = answer.as_ref().is_some_and(|answer| held.are_few_left(&rows, answer));
        let rest = futures::stream::iter(held.rest(rows, answer.as_ref()));
        let rest = Box::pin(RecordBatchStreamAdapter::new(held.schema(), rest));
        self.source = match are_few {
            true => {
                let cpu = over(&self.cpu, vec![RestExec::new(Vec::new(), rest)])?;
                Source::Cpu(cpu.execute(0, self.context.clone())?)
            }
            false => Source::Input(rest),
        };
        Ok(())
    }

    /// Takes a batch of the input, or its end.
    fn take(&mut self, batch: Option<RecordBatch>) -> Result<()> {
        let Some(mut left) = batch else {
            return match self.group_if(self.portion.rows > 0)? {
                Ok(()) => {
                    self.source = Source::Ended;
                    Ok(())
                }
                Err(why) => self.go_on_without(&why),
            };
        };
        while left.num_rows() > 0 {
            let length = left.num_rows().min(self.rows_max() - self.portion.rows);
            let part = left.slice(0, length);
            left = left.slice(length, left.num_rows() - length);
            let mut taken = self.portion.add(&self.section, part)?;
            if taken.is_ok() {
                let has_room = self.reservation.try_resize(self.portion.bytes).is_ok();
                taken = self.group_if(!has_room || self.portion.rows >= self.rows_max())?;
            }
            if let Err(why) = taken {
                self.portion.batches.push(left);
                return self.go_on_without(&why);
            }
        }
        Ok(())
    }

    /// Has the portion grouped, if it is time; the inner error is why the device does not.
    fn group_if(&mut self, is_due: bool) -> Result<std::result::Result<(), String>> {
        if !is_due {
            return Ok(Ok(()));
        }
        let states = match self.group() {
            Ok(states) => states?,
            Err(why) => return Ok(Err(why)),
        };
        self.push(states);
        self.portion.clear();
        self.reservation.free();
        Ok(Ok(()))
    }

    fn rows_max(&self) -> usize {
        self.course.rows_max(self.section.bytes_per_row())
    }

    /// Has the device group the portion; the error is why it does not.
    fn group(&mut self) -> std::result::Result<Result<RecordBatch>, String> {
        let began = Instant::now();
        let codes = Codes::of(&self.portion.keys)?;
        let own: Vec<Option<Vec<u32>>> = self
            .portion
            .columns
            .iter()
            .map(|column| (!column.nulls.is_empty()).then(|| codes.without(&column.nulls)))
            .collect();
        let wanted = self.section.columns.iter().zip(&self.portion.columns).zip(&own);
        let columns: Vec<GroupedColumn<'_>> = wanted
            .map(|((asked, numbers), codes)| GroupedColumn {
                codes: codes.as_deref(),
                values: &numbers.values,
                sum: asked.sum,
                min: asked.min,
                max: asked.max,
            })
            .collect();
        // Behind the groups there is one more, for rows that do not count.
        let group_count = codes.group_count + 1;
        let host_ns = self.portion.host_ns + began.elapsed().as_nanos() as f64;
        let (rows, groups) = (self.portion.rows as u64, u64::from(group_count));
        let bytes = rows * self.section.bytes_per_row() + groups * self.section.bytes_per_group();
        let rows = GroupedRows { codes: &codes.codes, group_count, columns: &columns };
        let totals = self.course.ask(bytes, |offload, room| offload.group(&rows, room))?;
        let work = self.section.device_work(self.portion.rows as f64, groups as f64);
        self.course.answered(&work, host_ns, &totals.spent);
        Ok(states(&self.section, &codes, &totals))
    }

    /// Puts states among what is ready, in batches.
    fn push(&mut self, states: RecordBatch) {
        let most = self.context.session_config().batch_size().max(1);
        let starts = (0..states.num_rows()).step_by(most);
        self.ready.extend(starts.map(|from| states.slice(from, most.min(states.num_rows() - from))));
    }

    /// Leaves this portion and what follows to the CPU.
    fn go_on_without(&mut self, why: &str) -> Result<()> {
        self.course.continued(why);
        let Source::Input(following) = std::mem::replace(&mut self.source, Source::Ended) else { return Ok(()) };
        let rest = RestExec::new(std::mem::take(&mut self.portion.batches), following);
        self.portion.clear();
        self.reservation.free();
        let cpu = over(&self.cpu, vec![rest])?;
        self.source = Source::Cpu(cpu.execute(0, self.context.clone())?);
        Ok(())
    }
}

/// The states of the groups that have rows.
fn states(section: &GroupSection, codes: &Codes, totals: &GroupTotals) -> Result<RecordBatch> {
    let is_met = |group: &u32| totals.counts[*group as usize] > 0;
    let groups: Vec<u32> = (0..codes.group_count).filter(is_met).collect();
    let fields = section.schema.fields();
    let keys = (0..section.keys.len()).map(|key| array_of(&codes.keys(key, &groups), fields[key].data_type()));
    let parts = section.parts.iter().zip(&fields[section.keys.len()..]);
    let parts = parts.map(|(part, field)| state(*part, &groups, totals, field.data_type()));
    Ok(RecordBatch::try_new(section.schema.clone(), keys.map(Ok).chain(parts).collect::<Result<_>>()?)?)
}

/// One column of the states.
fn state(part: Part, groups: &[u32], totals: &GroupTotals, data_type: &DataType) -> Result<ArrayRef> {
    let at = |group: &u32| *group as usize;
    let extremes = |column: &ColumnTotals, values: &[i64]| {
        let value = |group: &u32| (column.counts[at(group)] > 0).then(|| values[at(group)]);
        array_of(&groups.iter().map(value).collect::<Vec<_>>(), data_type)
    };
    Ok(match part {
        Part::Rows => counts(groups, &totals.counts, data_type),
        Part::Count(column) => counts(groups, &totals.columns[column].counts, data_type),
        Part::Min(column) => extremes(&totals.columns[column], &totals.columns[column].mins),
        Part::Max(column) => extremes(&totals.columns[column], &totals.columns[column].maxs),
        Part::Sum(column) => {
            let column = &totals.columns[column];
            let sum = |group: &u32| (column.counts[at(group)] > 0).then(|| column.sums[at(group)]);
            let sums: Decimal128Array = groups.iter().map(sum).collect();
            let DataType::Decimal128(precision, scale) = *data_type else {
                return Err(DataFusionError::Internal(format!("a sum as {data_type}")));
            };
            Arc::new(sums.with_precision_and_scale(precision, scale)?)
        }
    })
}

fn counts(groups: &[u32], counts: &[u64], data_type: &DataType) -> ArrayRef {
    let counts = groups.iter().map(|group| counts[*group as usize]);
    match data_type {
        DataType::UInt64 => Arc::new(UInt64Array::from_iter_values(counts)),
        _ => Arc::new(Int64Array::from_iter_values(counts.map(u64::cast_signed))),
    }
}

impl ExecutionPlan for DeviceGroupsExec {
    fn name(&self) -> &str {
        "DeviceGroupsExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.cpu]
    }

    fn with_new_children(self: Arc<Self>, mut inputs: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(DeviceGroupsExec {
            section: self.section.clone(),
            held: self.held.clone(),
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
        let input = self.cpu.children().first().map(|input| (*input).clone());
        let source = match (&self.held, input, self.offload.lost()) {
            (Some(held), _, None) => Source::Table(held.clone()),
            (None, Some(input), None) => Source::Input(whole(&input, context.clone())?),
            (.., lost) => {
                course.continued(&lost.unwrap_or_default());
                Source::Cpu(whole(&self.cpu, context.clone())?)
            }
        };
        let work = Work {
            section: self.section.clone(),
            cpu: self.cpu.clone(),
            course,
            source,
            portion: Portion::of(&self.section),
            reservation: MemoryConsumer::new("DeviceGroups").register(context.memory_pool()),
            context,
            ready: VecDeque::new(),
            metrics: BaselineMetrics::new(&self.metrics, partition),
        };
        let rows = futures::stream::try_unfold(work, |mut work| async move {
            let batch = work.next().await?;
            Ok(batch.map(|batch| (batch, work)))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.section.schema.clone(), rows)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn partition_statistics(&self, _: Option<usize>) -> Result<Arc<Statistics>> {
        StatisticsContext::new().compute(self.cpu.as_ref(), &StatisticsArgs::new())
    }
}

impl DisplayAs for DeviceGroupsExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys: Vec<&str> = self.section.keys.iter().map(|(_, name)| name.as_str()).collect();
        write!(f, "DeviceGroupsExec: device={}, keys=[{}]", self.offload.facts(), keys.join(", "))?;
        self.held.iter().try_for_each(|held| write!(f, ", resident=[{}]", held.names().join(", ")))
    }
}

impl fmt::Debug for DeviceGroupsExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceGroupsExec").field("section", &self.section).finish_non_exhaustive()
    }
}
