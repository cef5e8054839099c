//! Keys of the rows on their way into a join's hash table, for scans on the other side.
//!
//! ```text
//! HashJoin ── probes ──▶ ... scan: leaves out rows with other keys
//!    │ builds                 ▲
//! repartition, coalesce       │ publishes once all partitions have ended
//!    │                        │
//! KeyCollectorExec ───────────┘
//! ```
//!
//! It stands below what deals the rows out to partitions, and so has seen all of them before the first row of the other side is asked
//! for. Rows pass through as they are. The keys are charged to the memory of queries, and given up where there is none left. Should
//! that side begin earlier, or a partition never end, scans give all rows. A plan that runs again takes the keys back: they might be
//! others.
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Int16Type, Int32Type, Int64Type};
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties};
use engine::{KeyFilter, KeySet};
use futures::StreamExt;

/// Of more rows no keys are collected: they are not few of anything.
const ROWS_MAX: usize = 4 << 20;

/// Whether keys of this type are collected.
pub(super) fn is_collected(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Int16 | DataType::Int32 | DataType::Int64 | DataType::Date32)
}

/// A column whose keys are collected, and what they are for.
#[derive(Clone, Debug)]
pub(super) struct Collected {
    pub(super) column: usize,
    pub(super) filter: Arc<KeyFilter>,
}

/// Hands on the rows of its input, and the keys of some columns to filters.
#[derive(Debug)]
pub(super) struct KeyCollectorExec {
    input: Arc<dyn ExecutionPlan>,
    columns: Vec<Collected>,
    state: Arc<State>,
}

#[derive(Debug)]
struct State {
    /// by partition: how often it was run
    runs: Box<[AtomicUsize]>,
    rows: AtomicUsize,
    ended: Mutex<Ended>,
}

/// Partitions that have ended.
#[derive(Debug)]
struct Ended {
    /// by column: their keys
    keys: Vec<Vec<Vec<i64>>>,
    /// what the keys take
    memory: Vec<MemoryReservation>,
}

impl KeyCollectorExec {
    pub(super) fn new(input: Arc<dyn ExecutionPlan>, columns: Vec<Collected>) -> KeyCollectorExec {
        let partitions = input.output_partitioning().partition_count();
        let state = State {
            runs: (0..partitions).map(|_| AtomicUsize::new(0)).collect(),
            rows: AtomicUsize::new(0),
            ended: Mutex::new(Ended { keys: vec![Vec::new(); columns.len()], memory: Vec::new() }),
        };
        KeyCollectorExec { input, columns, state: Arc::new(state) }
    }

    fn take_back(&self) {
        self.columns.iter().for_each(|collected| collected.filter.switch_off());
    }
}

/// The keys of one partition.
struct Collection {
    state: Arc<State>,
    columns: Vec<Collected>,
    keys: Vec<Vec<i64>>,
    memory: MemoryReservation,
}

impl Collection {
    fn add(&mut self, batch: &RecordBatch) {
        let rows = self.state.rows.fetch_add(batch.num_rows(), Ordering::Relaxed) + batch.num_rows();
        let bytes = self.columns.len() * batch.num_rows() * size_of::<i64>();
        if rows > ROWS_MAX || self.memory.try_grow(bytes).is_err() {
            // No partition's keys are published without those of the others.
            self.state.rows.fetch_max(ROWS_MAX + 1, Ordering::Relaxed);
            self.keys.iter_mut().for_each(|keys| *keys = Vec::new());
            self.memory.free();
            return;
        }
        for (Collected { column, .. }, keys) in self.columns.iter().zip(&mut self.keys) {
            append(batch.column(*column).as_ref(), keys);
        }
    }

    /// The partition has ended; the last one publishes the keys of all.
    fn end(self) {
        let mut ended = self.state.ended.lock().unwrap_or_else(PoisonError::into_inner);
        ended.keys.iter_mut().zip(self.keys).for_each(|(parts, keys)| parts.push(keys));
        ended.memory.push(self.memory);
        if ended.memory.len() < self.state.runs.len() {
            return;
        }
        let (keys, memory) = (std::mem::take(&mut ended.keys), std::mem::take(&mut ended.memory));
        if self.state.rows.load(Ordering::Relaxed) <= ROWS_MAX {
            keys.iter().zip(&self.columns).for_each(|(parts, collected)| collected.filter.publish(KeySet::of(parts)));
        }
        drop(memory);
    }
}

/// Appends the values that are not NULL.
fn append(array: &dyn Array, keys: &mut Vec<i64>) {
    macro_rules! append {
        ($type:ty) => {{
            let values = array.as_primitive::<$type>();
            match values.null_count() {
                0 => keys.extend(values.values().iter().map(|value| i64::from(*value))),
                _ => keys.extend(values.iter().flatten().map(i64::from)),
            }
        }};
    }
    match array.data_type() {
        DataType::Int16 => append!(Int16Type),
        DataType::Int32 => append!(Int32Type),
        DataType::Int64 => append!(Int64Type),
        DataType::Date32 => append!(Date32Type),
        other => debug_assert!(false, "no keys are collected of {other}"),
    }
}

impl ExecutionPlan for KeyCollectorExec {
    fn name(&self) -> &str {
        "KeyCollectorExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn with_new_children(self: Arc<Self>, mut inputs: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        let input = inputs.pop().unwrap_or_else(|| self.input.clone());
        let is_as_before =
            input.output_partitioning().partition_count() == self.input.output_partitioning().partition_count();
        if !is_as_before {
            self.take_back();
        }
        Ok(Arc::new(KeyCollectorExec { input, columns: self.columns.clone(), state: self.state.clone() }))
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        self.take_back();
        Ok(self)
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let runs = self.state.runs.get(partition).map(|runs| runs.fetch_add(1, Ordering::Relaxed));
        let consumer = MemoryConsumer::new(format!("KeyCollector[{partition}]"));
        let memory = consumer.register(context.memory_pool());
        let input = self.input.execute(partition, context)?;
        if runs != Some(0) {
            self.take_back();
            return Ok(input);
        }
        let keys = vec![Vec::new(); self.columns.len()];
        let collection = Collection { state: self.state.clone(), columns: self.columns.clone(), keys, memory };
        let schema = input.schema();
        let rows = futures::stream::unfold((input, Some(collection)), |(mut input, mut collection)| async move {
            let batch = input.next().await;
            match (&batch, &mut collection) {
                (Some(Ok(batch)), Some(collection)) => collection.add(batch),
                (Some(Err(_)), _) => drop(collection.take()),
                (None, _) => {
                    if let Some(collection) = collection.take() {
                        collection.end();
                    }
                }
                (Some(Ok(_)), None) => {}
            }
            batch.map(|batch| (batch, (input, collection)))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }
}

impl DisplayAs for KeyCollectorExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let schema = self.input.schema();
        let names: Vec<&str> =
            self.columns.iter().map(|collected| schema.field(collected.column).name().as_str()).collect();
        write!(f, "KeyCollectorExec: keys=[{}]", names.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::Int64Array;
    use arrow_schema::{Field, Schema};
    use datafusion::catalog::memory::MemorySourceConfig;
    use datafusion::execution::runtime_env::RuntimeEnvBuilder;

    use super::*;

    /// Whether the keys of two partitions come to their filter where queries have so much memory, of which none is taken in the end.
    fn are_published(bytes: usize) -> bool {
        let schema = Arc::new(Schema::new(vec![Field::new("k", DataType::Int64, false)]));
        let keys = Arc::new(Int64Array::from_iter_values(0..1_000));
        let batch = RecordBatch::try_new(schema.clone(), vec![keys]).unwrap();
        let input = MemorySourceConfig::try_new_exec(&[vec![batch.clone()], vec![batch]], schema, None).unwrap();
        let filter = Arc::new(KeyFilter::default());
        let collector = KeyCollectorExec::new(input, vec![Collected { column: 0, filter: filter.clone() }]);
        let runtime = RuntimeEnvBuilder::new().with_memory_limit(bytes, 1.0).build_arc().unwrap();
        let context = Arc::new(TaskContext::default().with_runtime(runtime.clone()));
        for partition in 0..2 {
            let rows = collector.execute(partition, context.clone()).unwrap();
            let batches: Vec<_> = futures::executor::block_on(rows.collect());
            assert_eq!(batches.into_iter().map(|batch| batch.unwrap().num_rows()).sum::<usize>(), 1_000);
        }
        assert_eq!(runtime.memory_pool.reserved(), 0);
        !format!("{filter:?}").contains("keys: OnceLock(<uninit>)")
    }

    #[test]
    fn keys_are_charged_to_the_memory_of_queries_and_given_up_without() {
        assert!(are_published(16_000));
        assert!(!are_published(15_999));
    }
}
