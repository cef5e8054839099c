//! Reading a table in DataFusion's execution: partitions that pull ranges from one shared scan, or one key lookup.
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::SchemaRef;
use costs::CostModel;
use datafusion::common::Statistics;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties};
use engine::{DataType, Direction, KeyFilter, ScanOptions, Table, TableScan, Test, Value};

use crate::access::conditions;
use crate::access::index_path::IndexLookup;
use crate::access::scan_costs::ScanCosts;
use crate::access::small_batches;
use crate::access::statistics;
use crate::interrupt;
use crate::names::moment::Moment;
use crate::values::stored::as_queried;

/// The part of the table that is read.
#[derive(Clone)]
pub(crate) enum ScanSource {
    /// Every row, in at most this many partitions.
    All { partitions: usize },
    /// The row with this primary key.
    Key(Vec<Value>),
    /// The rows with these ids.
    Rids(Arc<[u64]>),
    /// The rows in a range of an index.
    Index(IndexLookup),
}

/// Makes a scan of a table at a moment; `None` where it can't be as it was.
pub(crate) type Bind = Box<dyn Fn(&Table, &Moment) -> Option<Arc<dyn ExecutionPlan>> + Send + Sync>;

/// Reads columns of a table at a moment.
pub(crate) struct ScanExec {
    table: Table,
    moment: Moment,
    source: ScanSource,
    options: ScanOptions,
    /// For every output column, its position among the columns that the engine gives.
    order: Vec<usize>,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
    runs: Mutex<Runs>,
    /// worked out when the optimizer asks for the first time
    statistics: OnceLock<Statistics>,
}

/// In how many partitions a table is read, at most so many.
fn partitions_of(table: &Table, partitions: usize) -> usize {
    let ranges = usize::try_from(table.stats().ranges).unwrap_or(usize::MAX);
    ranges.clamp(1, partitions)
}

/// The scans started so far. The partitions of one run share a scan; a plan that runs again gets a new one.
#[derive(Default)]
struct Runs {
    scans: Vec<Arc<TableScan>>,
    started: Vec<usize>,
}

impl ScanExec {
    /// `columns` are positions in the table, the one after the last meaning the row id; `schema` is theirs. Only rows
    /// that pass all `tests` are given.
    pub(crate) fn new(
        table: Table,
        moment: Moment,
        source: ScanSource,
        tests: Vec<(usize, Test)>,
        columns: Vec<usize>,
        schema: SchemaRef,
    ) -> ScanExec {
        let rid = table.schema().columns().len();
        let stored: Vec<usize> = columns.iter().copied().filter(|column| *column != rid).collect();
        let mut next = 0;
        let place = |column: &usize| match *column == rid {
            true => stored.len(),
            false => {
                next += 1;
                next - 1
            }
        };
        let order = columns.iter().map(place).collect();
        let options = ScanOptions { with_rid: columns.contains(&rid), columns: stored, tests };
        let partitions = match &source {
            ScanSource::Key(_) | ScanSource::Rids(_) | ScanSource::Index(_) => 1,
            ScanSource::All { partitions } => partitions_of(&table, *partitions),
        };
        let properties = Arc::new(PlanProperties::new(
            EquivalenceProperties::new(schema.clone()),
            Partitioning::UnknownPartitioning(partitions),
            EmissionType::Incremental,
            Boundedness::Bounded,
        ));
        let (metrics, runs, statistics) = Default::default();
        ScanExec { table, moment, source, options, order, schema, properties, metrics, runs, statistics }
    }

    /// The scan with one more test of an output column: of keys that become known while the query runs. `None` where it looks few
    /// rows up, or where the column's keys are no numbers.
    pub(crate) fn with_keys(&self, output: usize, keys: &Arc<KeyFilter>) -> Option<ScanExec> {
        let (column, data_type) = self.column(output)?;
        let is_number = matches!(data_type, DataType::Date) || data_type.is_integer();
        if !is_number || !self.reads_all() {
            return None;
        }
        let mut scan = self.again();
        scan.options.tests.push((column, Test::Among(keys.clone())));
        Some(scan)
    }

    /// A scan of the same rows that has not begun.
    pub(crate) fn again(&self) -> ScanExec {
        ScanExec {
            table: self.table.clone(),
            moment: self.moment.clone(),
            source: self.source.clone(),
            options: self.options.clone(),
            order: self.order.clone(),
            schema: self.schema.clone(),
            properties: self.properties.clone(),
            metrics: ExecutionPlanMetricsSet::new(),
            runs: Mutex::default(),
            statistics: OnceLock::new(),
        }
    }

    /// Makes this scan of the same table, as it is then, at another moment; `None` for a lookup, which depends on what it found. What
    /// is made is `None` where the table has come to be read in another number of partitions.
    pub(crate) fn bindable(&self) -> Option<Bind> {
        let ScanSource::All { partitions } = self.source else { return None };
        let (options, order) = (self.options.clone(), self.order.clone());
        let (schema, properties) = (self.schema.clone(), self.properties.clone());
        Some(Box::new(move |table, moment| {
            if partitions_of(table, partitions) != properties.partitioning.partition_count() {
                return None;
            }
            let (metrics, runs, statistics) = Default::default();
            Some(Arc::new(ScanExec {
                table: table.clone(),
                moment: moment.clone(),
                source: ScanSource::All { partitions },
                options: options.clone(),
                order: order.clone(),
                schema: schema.clone(),
                properties: properties.clone(),
                metrics,
                runs,
                statistics,
            }))
        }))
    }

    /// What is asked of the engine.
    pub(crate) fn options(&self) -> &ScanOptions {
        &self.options
    }

    /// Puts a batch of the engine into the plan's order and under its names.
    pub(crate) fn arranged(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        arrange(batch, &self.order, &self.schema)
    }

    /// Where the engine gives an output column.
    pub(crate) fn place(&self, output: usize) -> Option<usize> {
        self.order.get(output).copied()
    }

    /// Reads the table outside of a plan.
    pub(crate) fn begin(&self) -> engine::Result<TableScan> {
        self.table.scan(self.moment.view(), self.options.clone())
    }

    /// The whole table in one partition, whatever there is of it.
    pub(crate) fn whole(&self) -> Batches {
        let rows = self.all_batches(0);
        let (order, schema) = (self.order.clone(), self.schema.clone());
        Box::new(rows.map(move |batch| arrange(&batch?, &order, &schema)))
    }

    /// The first rows of the table, of these output columns, whatever the tests say of them; `None` if there are none to be had.
    pub(crate) fn first_rows(&self, outputs: &[usize]) -> Option<RecordBatch> {
        let columns = outputs.iter().map(|output| Some(self.column(*output)?.0)).collect::<Option<Vec<_>>>()?;
        let options = ScanOptions { columns, ..ScanOptions::default() };
        // What is looked at beforehand is not what the query has read.
        let scan = self.table.scan(self.moment.view().snapshot(), options).ok()?;
        scan.next_range()?.ok()?.into_iter().next()
    }

    /// Whether this is a scan, not a lookup.
    pub(crate) fn reads_all(&self) -> bool {
        matches!(self.source, ScanSource::All { .. })
    }

    /// What reading it is likely to cost, where it gives so many rows.
    pub(crate) fn cost(&self, rows: f64, model: &CostModel) -> f64 {
        let (read, all) = (self.options.columns.len().max(1), self.table.schema().columns().len().max(1));
        let costs = ScanCosts::of(&self.table, read as f64 / all as f64, model);
        let conditions = self.options.tests.len();
        match &self.source {
            ScanSource::All { .. } => costs.whole(conditions),
            ScanSource::Key(_) => costs.by_index(1.0, conditions),
            ScanSource::Rids(rids) => costs.by_index(rids.len() as f64, conditions),
            ScanSource::Index(lookup) => costs.by_index((lookup.rows as f64).max(rows), conditions),
        }
    }

    /// Which part of the table it reads.
    pub(crate) fn source(&self) -> &ScanSource {
        &self.source
    }

    pub(crate) fn table(&self) -> &Table {
        &self.table
    }

    pub(crate) fn moment(&self) -> &Moment {
        &self.moment
    }

    pub(crate) fn tests(&self) -> &[(usize, Test)] {
        &self.options.tests
    }

    /// The column of the table that an output column is, and its type; `None` for the row id.
    pub(crate) fn column(&self, output: usize) -> Option<(usize, DataType)> {
        let column = *self.options.columns.get(*self.order.get(output)?)?;
        Some((column, self.table.schema().columns()[column].data_type))
    }

    /// The scan that this execution of a partition takes part in.
    fn join_run(&self, partition: usize) -> Result<Arc<TableScan>> {
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        if runs.started.len() <= partition {
            runs.started.resize(partition + 1, 0);
        }
        let run = runs.started[partition];
        runs.started[partition] += 1;
        if run == runs.scans.len() {
            runs.scans.push(Arc::new(self.begin().map_err(external)?));
        }
        Ok(runs.scans[run].clone())
    }

    fn batches(&self, partition: usize) -> Batches {
        match &self.source {
            ScanSource::Key(key) => one_batch(self.table.lookup(self.moment.view(), key, &self.options)),
            ScanSource::Rids(rids) => one_batch(self.table.lookup_rids(self.moment.view(), rids, &self.options)),
            ScanSource::Index(lookup) => match self.index_batches(lookup) {
                Ok(batches) => batches,
                // It was dropped after the statement was planned.
                Err(engine::Error::NoSuchIndex(_)) => self.all_batches(partition),
                Err(error) => one_batch(Err(error)),
            },
            ScanSource::All { .. } => self.all_batches(partition),
        }
    }

    /// The rows in all ranges of an index, which are few.
    fn index_batches(&self, IndexLookup { index, ranges, .. }: &IndexLookup) -> engine::Result<Batches> {
        let scan =
            |range| self.table.index_scan(self.moment.view(), index, range, Direction::Upward, self.options.clone());
        let scans = ranges.iter().map(scan).collect::<engine::Result<Vec<_>>>()?;
        Ok(Box::new(scans.into_iter().flatten().map(|batch| batch.map_err(external))))
    }

    fn all_batches(&self, partition: usize) -> Batches {
        let scan = match self.join_run(partition) {
            Ok(scan) => scan,
            Err(error) => return Box::new(std::iter::once(Err(error))),
        };
        let mut ready = VecDeque::new();
        Box::new(std::iter::from_fn(move || {
            while ready.is_empty() {
                match scan.next_range()? {
                    Ok(batches) => ready.extend(batches),
                    Err(error) => return Some(Err(external(error))),
                }
            }
            ready.pop_front().map(Ok)
        }))
    }
}

/// When a task that reads a table lets others have its thread.
///
/// A task that is woken by another one waits in a place of that one's thread from which no other thread takes it: both partitions of a
/// join are thus done by one thread, one after the other, if the first never pauses once the rows to look for are collected. A task
/// that pauses goes to the end of the queue, where an idle thread finds it.
#[derive(Default)]
pub(crate) struct Turn {
    began: Option<Instant>,
}

/// How long a task goes on.
const TURN: Duration = Duration::from_millis(1);

impl Turn {
    /// Whether the task is to pause now, before its first batch and then from time to time; another turn begins then.
    pub(crate) fn is_over(&mut self) -> bool {
        let is_over = self.began.is_none_or(|began| began.elapsed() >= TURN);
        if is_over {
            self.began = Some(Instant::now());
        }
        is_over
    }
}

pub(crate) type Batches = Box<dyn Iterator<Item = Result<RecordBatch>> + Send>;

fn one_batch(found: engine::Result<RecordBatch>) -> Batches {
    Box::new(std::iter::once(found.map_err(external)))
}

pub(crate) fn external(error: engine::Error) -> DataFusionError {
    DataFusionError::External(error.into())
}

/// Puts the engine's columns into the plan's order and under its names.
fn arrange(batch: &RecordBatch, order: &[usize], schema: &SchemaRef) -> Result<RecordBatch> {
    let fields = order.iter().zip(schema.fields());
    let columns = fields.map(|(at, field)| as_queried(batch.column(*at), field.data_type())).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(schema.clone(), columns, &options)?)
}

impl ExecutionPlan for ScanExec {
    fn name(&self) -> &str {
        match self.source {
            ScanSource::All { .. } => "ScanExec",
            ScanSource::Key(_) | ScanSource::Rids(_) => "LookupExec",
            ScanSource::Index(_) => "IndexScanExec",
        }
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

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let (order, schema) = (self.order.clone(), self.schema.clone());
        let mut batches = self.batches(partition);
        let mut turn = Turn::default();
        let next = move |context: &mut Context<'_>| {
            if turn.is_over() {
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            let timer = metrics.elapsed_compute().timer();
            let batch = batches.next().map(|batch| arrange(&batch?, &order, &schema));
            timer.done();
            if let Some(Ok(batch)) = &batch {
                metrics.record_output(batch.num_rows());
            }
            Poll::Ready(batch)
        };
        let rows = RecordBatchStreamAdapter::new(self.schema.clone(), futures::stream::poll_fn(next));
        Ok(small_batches::cut(Box::pin(rows), context.session_config().batch_size()))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    /// The planner asks again for each operator above, of which there may be hundreds.
    fn partition_statistics(&self, partition: Option<usize>) -> Result<Arc<Statistics>> {
        interrupt::check_plan()?;
        let whole = self.statistics.get_or_init(|| match self.source {
            ScanSource::Key(_) => statistics::of_rows(1, &self.schema),
            ScanSource::Rids(ref rids) => statistics::of_rows(rids.len(), &self.schema),
            ScanSource::Index(ref lookup) => statistics::of_rows(lookup.rows, &self.schema),
            ScanSource::All { .. } => {
                let columns = (0..self.order.len()).map(|at| self.column(at).map(|(column, _)| column));
                statistics::of_scan(&self.table, &self.options.tests, &columns.collect::<Vec<_>>(), &self.schema)
            }
        });
        let mut statistics = whole.clone();
        if partition.is_some() {
            let parts = self.properties.partitioning.partition_count().max(1);
            let part = |whole: &usize| whole / parts;
            statistics.num_rows = statistics.num_rows.map(|whole| part(&whole));
            statistics.total_byte_size = statistics.total_byte_size.map(|whole| part(&whole));
        }
        Ok(Arc::new(statistics))
    }
}

impl DisplayAs for ScanExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns: Vec<&str> =
            self.schema.fields().iter().map(|field| field.name().trim_start_matches('\0')).collect();
        let partitions = self.properties.partitioning.partition_count();
        let name = engine::shown_name(self.table.name());
        match &self.source {
            ScanSource::All { .. } => {
                write!(f, "ScanExec: table={name}, columns=[{}], partitions={partitions}", columns.join(", "))?;
            }
            ScanSource::Key(key) => {
                let key: Vec<String> = key.iter().map(Value::to_string).collect();
                write!(f, "LookupExec: table={name}, columns=[{}], key=({})", columns.join(", "), key.join(", "))?;
            }
            ScanSource::Rids(rids) => {
                write!(f, "LookupExec: table={name}, columns=[{}], rows={}", columns.join(", "), rids.len())?;
            }
            ScanSource::Index(lookup) => {
                let index = &lookup.index.definition().name;
                write!(f, "IndexScanExec: table={name}, columns=[{}], index={index}", columns.join(", "))?;
            }
        }
        conditions::write(f, &self.options.tests, self.table.schema())?;
        self.moment.write_past(f)
    }
}

impl fmt::Debug for ScanExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScanExec").field("table", &self.table.name()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_pauses_before_its_first_batch_and_when_its_turn_is_over() {
        let mut turn = Turn::default();
        assert!(turn.is_over() && !turn.is_over());
        std::thread::sleep(TURN);
        assert!(turn.is_over() && !turn.is_over());
    }
}
