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
//! for. Rows pass through as they are. Should that side begin earlier, or a partition never end, scans give all rows. A plan that runs
//! again takes the keys back: they might be others.
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Int16Type, Int32Type, Int64Type};
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result;
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
    /// by column: the keys of partitions that have ended
    ended: Mutex<Vec<Vec<Vec<i64>>>>,
}

impl KeyCollectorExec {
    pub(super) fn new(input: Arc<dyn ExecutionPlan>, columns: Vec<Collected>) -> KeyCollectorExec {
        let partitions = input.output_partitioning().partition_count();
        let state = State {
            runs: (0..partitions).map(|_| AtomicUsize::new(0)).collect(),
            rows: AtomicUsize::new(0),
            ended: Mutex::new(vec![Vec::new(); columns.len()]),
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
}

impl Collection {
    fn add(&mut self, batch: &RecordBatch) {
        let rows = self.state.rows.fetch_add(batch.num_rows(), Ordering::Relaxed) + batch.num_rows();
        if rows > ROWS_MAX {
            self.keys.iter_mut().for_each(|keys| *keys = Vec::new());
            return;
        }
        for (Collected { column, .. }, keys) in self.columns.iter().zip(&mut self.keys) {
            append(batch.column(*column).as_ref(), keys);
        }
    }

    /// The partition has ended; the last one publishes the keys of all.
    fn end(self) {
        let mut ended = self.state.ended.lock().unwrap_or_else(PoisonError::into_inner);
        ended.iter_mut().zip(self.keys).for_each(|(parts, keys)| parts.push(keys));
        if self.state.rows.load(Ordering::Relaxed) > ROWS_MAX {
            return;
        }
        for (parts, Collected { filter, .. }) in ended.iter_mut().zip(&self.columns) {
            if parts.len() == self.state.runs.len() {
                filter.publish(KeySet::of(&std::mem::take(parts)));
            }
        }
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
        let input = self.input.execute(partition, context)?;
        if runs != Some(0) {
            self.take_back();
            return Ok(input);
        }
        let keys = vec![Vec::new(); self.columns.len()];
        let collection = Collection { state: self.state.clone(), columns: self.columns.clone(), keys };
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
