//! One row of aggregate states for a whole table.
use std::fmt;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType as ArrowType, SchemaRef};
use datafusion::common::ScalarValue;
use datafusion::common::Statistics;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties};
use engine::{Aggregates, DataType, Sum, Table, Test, Totals};

use super::Part;
use crate::access::conditions;
use crate::access::scan::{Bind, ScanExec};
use crate::error::SqlError;
use crate::interrupt;
use crate::names::moment::Moment;
use crate::values::single::scalar_of_value;

/// Asks the storage for aggregates of columns over the rows that pass all tests.
#[derive(Clone)]
pub(super) struct TotalsExec {
    table: Table,
    moment: Moment,
    tests: Vec<(usize, Test)>,
    columns: Vec<usize>,
    parts: Vec<Part>,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl TotalsExec {
    /// The totals of `columns` in place of `scan`; `parts` make up the columns of `schema`.
    pub(super) fn new(scan: &ScanExec, columns: Vec<usize>, parts: Vec<Part>, schema: SchemaRef) -> TotalsExec {
        let properties = Arc::new(PlanProperties::new(
            EquivalenceProperties::new(schema.clone()),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Final,
            Boundedness::Bounded,
        ));
        let (table, moment, tests) = (scan.table().clone(), scan.moment().clone(), scan.tests().to_vec());
        TotalsExec { table, moment, tests, columns, parts, schema, properties, metrics: Default::default() }
    }

    /// Makes these totals of the same table at another moment.
    pub(super) fn bindable(&self) -> Bind {
        let (tests, columns, parts) = (self.tests.clone(), self.columns.clone(), self.parts.clone());
        let (schema, properties) = (self.schema.clone(), self.properties.clone());
        Box::new(move |table, moment| {
            Some(Arc::new(TotalsExec {
                table: table.clone(),
                moment: moment.clone(),
                tests: tests.clone(),
                columns: columns.clone(),
                parts: parts.clone(),
                schema: schema.clone(),
                properties: properties.clone(),
                metrics: Default::default(),
            }))
        })
    }

    pub(super) fn table(&self) -> &Table {
        &self.table
    }

    fn states(&self) -> Result<RecordBatch> {
        // Counts and sums of whole columns are kept by the storage; extremes are not.
        let is_extreme = |part: &Part| matches!(part, Part::Min(_) | Part::Max(_));
        let totals = if self.tests.is_empty() && !self.parts.iter().any(is_extreme) {
            self.table.sums(self.moment.view(), &self.columns)
        } else {
            self.table.aggregate(self.moment.view(), &self.tests, &self.columns)
        };
        let totals = totals.map_err(|error| DataFusionError::External(error.into()))?;
        let state = |(part, field): (&Part, &arrow_schema::FieldRef)| -> Result<ArrayRef> {
            self.state(*part, &totals, field.data_type())?.to_array()
        };
        let arrays: Result<Vec<ArrayRef>> = self.parts.iter().zip(self.schema.fields()).map(state).collect();
        Ok(RecordBatch::try_new(self.schema.clone(), arrays?)?)
    }

    fn state(&self, part: Part, totals: &Totals, state: &ArrowType) -> Result<ScalarValue> {
        let data_type = |at: usize| self.table.schema().columns()[self.columns[at]].data_type;
        let extreme = |value: &Option<engine::Value>, at: usize| {
            let value = value.as_ref().unwrap_or(&engine::Value::Null);
            scalar_of_value(value, data_type(at)).ok_or_else(|| mistyped("an extreme"))
        };
        match part {
            Part::Rows => Ok(count(totals.rows, state)),
            Part::Count(at) => Ok(count(totals.columns[at].count, state)),
            Part::Min(at) => extreme(&totals.columns[at].min, at),
            Part::Max(at) => extreme(&totals.columns[at].max, at),
            Part::Sum(at) => sum(&totals.columns[at], data_type(at), state),
        }
    }

    fn show(&self, part: &Part) -> String {
        let name = |at: &usize| &self.table.schema().columns()[self.columns[*at]].name;
        match part {
            Part::Rows => "rows".to_owned(),
            Part::Count(at) => format!("count({})", name(at)),
            Part::Sum(at) => format!("sum({})", name(at)),
            Part::Min(at) => format!("min({})", name(at)),
            Part::Max(at) => format!("max({})", name(at)),
        }
    }
}

fn mistyped(what: &str) -> DataFusionError {
    DataFusionError::Internal(format!("{what} of another type than its column"))
}

fn count(count: u64, state: &ArrowType) -> ScalarValue {
    match state {
        ArrowType::UInt64 => ScalarValue::UInt64(Some(count)),
        _ => ScalarValue::Int64(Some(i64::try_from(count).unwrap_or(i64::MAX))),
    }
}

#[expect(clippy::cast_precision_loss, reason = "an average of integers is a double")]
fn sum(of: &Aggregates, data_type: DataType, state: &ArrowType) -> Result<ScalarValue> {
    if of.count == 0 {
        return ScalarValue::try_new_null(state);
    }
    if of.sum_overflows {
        let error = SqlError::new("22003", format!("value overflows {data_type}"));
        return Err(DataFusionError::External(Box::new(error)));
    }
    match (of.sum, state) {
        (Sum::Integer(sum), ArrowType::Decimal128(precision, scale)) => {
            Ok(ScalarValue::Decimal128(Some(sum), *precision, *scale))
        }
        (Sum::Integer(sum), ArrowType::Float64) => Ok(ScalarValue::Float64(Some(sum as f64))),
        (Sum::Float(sum), ArrowType::Float64) => Ok(ScalarValue::Float64(Some(sum))),
        _ => Err(mistyped("a sum")),
    }
}

impl ExecutionPlan for TotalsExec {
    fn name(&self) -> &str {
        "TotalsExec"
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
        let totals = self.clone();
        let batch = async move {
            let timer = metrics.elapsed_compute().timer();
            let batch = totals.states();
            timer.done();
            metrics.record_output(1);
            batch
        };
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema.clone(), futures::stream::once(batch))))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn partition_statistics(&self, _: Option<usize>) -> Result<Arc<Statistics>> {
        interrupt::check_plan()?;
        let mut statistics = Statistics::new_unknown(&self.schema);
        statistics.num_rows = Precision::Exact(1);
        Ok(Arc::new(statistics))
    }
}

impl DisplayAs for TotalsExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> = self.parts.iter().map(|part| self.show(part)).collect();
        write!(f, "TotalsExec: table={}, of=[{}]", engine::shown_name(self.table.name()), parts.join(", "))?;
        conditions::write(f, &self.tests, self.table.schema())?;
        self.moment.write_past(f)
    }
}

impl fmt::Debug for TotalsExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TotalsExec").field("table", &self.table.name()).finish_non_exhaustive()
    }
}
