//! The operator that groups rows directly, in each of the steps of an aggregate.
//!
//! | step | takes | gives |
//! |---|---|---|
//! | partial | rows | states of groups, one group perhaps several times |
//! | final | states | results |
//! | single | rows | results |
//!
//! A partial step gives up its groups where memory ends, and goes on without any. Where nearly every row is a group of its own, it
//! makes states of rows one by one, as the library's does.
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, BooleanArray, RecordBatch};
use arrow_schema::SchemaRef;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{EmitTo, GroupsAccumulator};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateInputMode, AggregateOutputMode};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::StreamExt;

use super::Way;
use super::batch_sums::{self, BatchSums};
use super::dense::DenseKeys;
use super::runs::RunKeys;
use super::words::WordKeys;

/// After so many rows it is seen, again and again, whether they are fewer groups.
const TRIAL_ROWS: usize = 50_000;

/// What is grouped, and how.
#[derive(Debug)]
pub(super) struct Grouping {
    keys: Vec<(Arc<dyn PhysicalExpr>, String)>,
    functions: Vec<Function>,
    takes_states: bool,
    gives_states: bool,
    way: Way,
    /// where rows are taken
    sums: Option<BatchSums>,
    input_schema: SchemaRef,
    schema: SchemaRef,
}

/// An aggregate function with what it is given.
#[derive(Debug)]
pub(super) struct Function {
    pub(super) function: Arc<AggregateFunctionExpr>,
    pub(super) arguments: Vec<Arc<dyn PhysicalExpr>>,
    pub(super) filter: Option<Arc<dyn PhysicalExpr>>,
}

/// Groups the rows of each partition of its input.
#[derive(Debug)]
pub(in crate::optimizer) struct DirectGroupsExec {
    grouping: Arc<Grouping>,
    input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl DirectGroupsExec {
    /// The operator that does what the library's does.
    pub(super) fn new(aggregate: &AggregateExec, way: Way) -> Result<DirectGroupsExec> {
        let (mode, keys) = (aggregate.mode(), aggregate.group_expr().expr().to_vec());
        let takes_states = mode.input_mode() == AggregateInputMode::Partial;
        let input_schema = aggregate.input().schema();
        let (mut next, mut functions) = (keys.len(), Vec::new());
        for (function, filter) in aggregate.aggr_expr().iter().zip(aggregate.filter_expr()) {
            let arguments = match takes_states {
                false => function.expressions(),
                true => {
                    let states = next..next + function.state_fields()?.len();
                    next = states.end;
                    let state = |at: usize| Arc::new(Column::new(input_schema.field(at).name(), at)) as _;
                    states.map(state).collect()
                }
            };
            let filter = filter.clone().filter(|_| !takes_states);
            functions.push(Function { function: function.clone(), arguments, filter });
        }
        let sums = if takes_states { None } else { BatchSums::of(&functions, &input_schema)? };
        let grouping = Grouping {
            keys,
            functions,
            sums,
            takes_states,
            gives_states: mode.output_mode() == AggregateOutputMode::Partial,
            way,
            input_schema,
            schema: aggregate.schema(),
        };
        Ok(DirectGroupsExec {
            grouping: Arc::new(grouping),
            input: aggregate.input().clone(),
            properties: aggregate.properties().clone(),
            metrics: ExecutionPlanMetricsSet::new(),
        })
    }
}

/// Numbers of groups by their keys.
enum Keys {
    Dense(DenseKeys),
    Words(WordKeys),
    Runs(RunKeys),
}

impl Keys {
    fn number(&mut self, columns: &[ArrayRef], groups: &mut Vec<usize>) -> Result<()> {
        match self {
            Keys::Dense(keys) => keys.number(&columns[0], groups),
            Keys::Words(keys) => keys.number(columns, groups),
            Keys::Runs(keys) => keys.number(columns, groups)?,
        }
        Ok(())
    }

    fn len(&self) -> usize {
        match self {
            Keys::Dense(keys) => keys.len(),
            Keys::Words(keys) => keys.len(),
            Keys::Runs(keys) => keys.len(),
        }
    }

    fn size(&self) -> usize {
        match self {
            Keys::Dense(keys) => keys.size(),
            Keys::Words(keys) => keys.size(),
            Keys::Runs(keys) => keys.size(),
        }
    }

    /// Whether groups are given up, of which more may come later.
    fn are_full(&self) -> bool {
        matches!(self, Keys::Runs(keys) if keys.is_full())
    }

    fn take(&mut self) -> Result<Vec<ArrayRef>> {
        match self {
            Keys::Dense(keys) => Ok(vec![keys.take()]),
            Keys::Words(keys) => Ok(keys.take()),
            Keys::Runs(keys) => Ok(keys.take()?),
        }
    }
}

/// One partition's groups.
struct Groups {
    grouping: Arc<Grouping>,
    keys: Keys,
    states: Vec<Box<dyn GroupsAccumulator>>,
    /// by row of the last batch
    numbers: Vec<usize>,
    /// rows, and groups before them, since it was last seen whether these are fewer
    rows: usize,
    known_before: usize,
    /// whether each row is a group of its own
    passes_on: bool,
    batch_rows: usize,
    reservation: MemoryReservation,
    ready: VecDeque<RecordBatch>,
}

impl Groups {
    fn new(grouping: Arc<Grouping>, context: &TaskContext, partition: usize) -> Result<Groups> {
        let types = grouping.keys.iter().map(|(key, _)| key.data_type(&grouping.input_schema));
        let types = types.collect::<Result<Vec<_>>>()?;
        let keys = match &types[..] {
            _ if grouping.way == Way::Runs => Keys::Runs(RunKeys::default()),
            [one] if DenseKeys::takes(one) => Keys::Dense(DenseKeys::new(one.clone())),
            _ => Keys::Words(WordKeys::new(types)),
        };
        let states = grouping.functions.iter().map(|function| function.function.create_groups_accumulator());
        let states = states.collect::<Result<_>>()?;
        let consumer = MemoryConsumer::new(format!("DirectGroups[{partition}]"));
        Ok(Groups {
            keys,
            states,
            numbers: Vec::new(),
            rows: 0,
            known_before: 0,
            passes_on: false,
            batch_rows: context.session_config().batch_size().max(1),
            reservation: consumer.register(context.memory_pool()),
            ready: VecDeque::new(),
            grouping,
        })
    }

    /// Adds the rows of a batch to their groups.
    fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        let grouping = self.grouping.clone();
        let rows = batch.num_rows();
        let array = |expr: &Arc<dyn PhysicalExpr>| expr.evaluate(batch)?.into_array(rows);
        let keys = grouping.keys.iter().map(|(key, _)| array(key)).collect::<Result<Vec<_>>>()?;
        if !self.passes_on {
            self.numbers.clear();
            self.keys.number(&keys, &mut self.numbers)?;
        }
        let are_few = !self.passes_on && self.keys.len() <= batch_sums::GROUPS_MAX;
        let sums = grouping.sums.as_ref().filter(|_| are_few && rows > 0);
        let sums = sums.map(|sums| sums.add_up(batch, &self.numbers)).transpose()?;
        let mut passed_on = keys;
        for (at, (function, state)) in grouping.functions.iter().zip(&mut self.states).enumerate() {
            if let Some(sums) = &sums
                && let Some(states) = &sums.of_functions[at]
            {
                state.merge_batch(states, &sums.present, self.keys.len())?;
                continue;
            }
            let arguments = function.arguments.iter().map(array).collect::<Result<Vec<_>>>()?;
            let filter = function.filter.as_ref().map(array).transpose()?;
            let filter: Option<&BooleanArray> = filter.as_ref().map(|filter| filter.as_boolean());
            let (numbers, groups) = (&self.numbers, self.keys.len());
            match (self.passes_on, grouping.takes_states) {
                (true, _) => passed_on.extend(state.convert_to_state(&arguments, filter)?),
                (false, true) => state.merge_batch(&arguments, numbers, groups)?,
                (false, false) => state.update_batch(&arguments, numbers, filter, groups)?,
            }
        }
        if self.passes_on {
            self.ready.push_back(RecordBatch::try_new(grouping.schema.clone(), passed_on)?);
            return Ok(());
        }
        if self.keys.are_full() {
            return self.finish();
        }
        self.rows += rows;
        self.look_around()
    }

    /// Whether there are too many groups for the memory, or nearly as many as rows.
    fn look_around(&mut self) -> Result<()> {
        let bytes = self.keys.size() + self.states.iter().map(|state| state.size()).sum::<usize>();
        let fits = self.reservation.try_resize(bytes);
        if !self.grouping.gives_states {
            return fits;
        }
        let is_due = self.rows >= TRIAL_ROWS && self.grouping.way == Way::Keys;
        self.passes_on = is_due && self.keys.len() - self.known_before > self.rows / 20 * 19;
        if fits.is_err() || self.passes_on {
            self.finish()?;
        }
        if is_due || fits.is_err() {
            (self.rows, self.known_before) = (0, self.keys.len());
        }
        Ok(())
    }

    /// Gives up all groups.
    fn finish(&mut self) -> Result<()> {
        if self.keys.len() == 0 {
            return Ok(());
        }
        let mut columns = self.keys.take()?;
        for state in &mut self.states {
            match self.grouping.gives_states {
                true => columns.extend(state.state(EmitTo::All)?),
                false => columns.push(state.evaluate(EmitTo::All)?),
            }
        }
        self.reservation.free();
        let all = RecordBatch::try_new(self.grouping.schema.clone(), columns)?;
        let starts = (0..all.num_rows()).step_by(self.batch_rows);
        self.ready.extend(starts.map(|from| all.slice(from, self.batch_rows.min(all.num_rows() - from))));
        Ok(())
    }
}

/// One partition at work.
struct Work {
    input: Option<SendableRecordBatchStream>,
    groups: Groups,
    metrics: BaselineMetrics,
}

impl Work {
    /// The next batch; `None` at the end.
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(batch) = self.groups.ready.pop_front() {
                self.metrics.record_output(batch.num_rows());
                return Ok(Some(batch));
            }
            let Some(input) = &mut self.input else { return Ok(None) };
            let batch = input.next().await.transpose()?;
            let timer = self.metrics.elapsed_compute().timer();
            match &batch {
                Some(batch) => self.groups.add(batch)?,
                None => {
                    self.input = None;
                    self.groups.finish()?;
                }
            }
            timer.done();
        }
    }
}

impl ExecutionPlan for DirectGroupsExec {
    fn name(&self) -> &str {
        "DirectGroupsExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn with_new_children(self: Arc<Self>, mut inputs: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(DirectGroupsExec {
            grouping: self.grouping.clone(),
            input: inputs.pop().unwrap_or_else(|| self.input.clone()),
            properties: self.properties.clone(),
            metrics: ExecutionPlanMetricsSet::new(),
        }))
    }

    fn apply_expressions(
        &self,
        look: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        let keys = self.grouping.keys.iter().map(|(key, _)| key);
        let arguments =
            self.grouping.functions.iter().flat_map(|function| function.arguments.iter().chain(&function.filter));
        for expr in keys.chain(arguments) {
            if look(expr)? == TreeNodeRecursion::Stop {
                return Ok(TreeNodeRecursion::Stop);
            }
        }
        Ok(TreeNodeRecursion::Continue)
    }

    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let groups = Groups::new(self.grouping.clone(), &context, partition)?;
        let input = Some(self.input.execute(partition, context)?);
        let work = Work { input, groups, metrics: BaselineMetrics::new(&self.metrics, partition) };
        let rows = futures::stream::try_unfold(work, |mut work| async move {
            let batch = work.next().await?;
            Ok(batch.map(|batch| (batch, work)))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.grouping.schema.clone(), rows)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}

impl DisplayAs for DirectGroupsExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let step = match (self.grouping.takes_states, self.grouping.gives_states) {
            (false, true) => "partial",
            (true, _) => "final",
            (false, false) => "single",
        };
        let keys: Vec<String> = self.grouping.keys.iter().map(|(key, name)| shown(key, name)).collect();
        let functions = self.grouping.functions.iter().map(|function| match &function.arguments[..] {
            [argument] if !self.grouping.takes_states => format!("{}({argument})", function.function.fun().name()),
            _ => function.function.name().to_owned(),
        });
        let functions: Vec<String> = functions.collect();
        let way = if self.grouping.way == Way::Runs { ", of=runs" } else { "" };
        write!(f, "DirectGroupsExec: step={step}{way}, keys=[{}], aggr=[{}]", keys.join(", "), functions.join(", "))
    }
}

/// A key with its name, where it has another one.
fn shown(key: &Arc<dyn PhysicalExpr>, name: &str) -> String {
    match key.downcast_ref::<Column>() {
        Some(column) if column.name() == name => name.to_owned(),
        _ => format!("{key} as {name}"),
    }
}
