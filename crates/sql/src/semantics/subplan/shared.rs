//! Queries of `WITH` that are worked out once, however often they are named: those that are named more than once, that have
//! functions which give another value each time, or that say `MATERIALIZED`. Queries in FROM that select such functions are
//! worked out as they stand, too, whatever of them is needed.
//!
//! Only those rows are worked out that one of the readers asks for (`readers`). A query that gives more rows than it reads is worked
//! out by each reader instead, with what that one asks for, unless it says `MATERIALIZED`.
//!
//! The planner puts a copy of the query's plan wherever it is named. Copies are found by their name and by being
//! equal, and one table stands for them. All scans of it share the rows: the scan that needs a batch first has it
//! computed, and it stays for the others as long as the statement.
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{Fields, Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Column;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::datasource::{DefaultTableSource, provider_as_source, source_as_provider};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::logical_plan::SubqueryAlias;
use datafusion::logical_expr::{Expr, Filter, LogicalPlan, LogicalPlanBuilder, TableScan, TableSource, TableType};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties};
use futures::{StreamExt, TryStreamExt, stream};
use tokio::sync::Mutex;

use super::readers::{Readers, Uses};
use super::run::Statement;
use super::{Subplans, call, scope};
use crate::access::table::EngineTable;
use crate::names::origin::Origin;
use crate::optimizer::is_worth_keeping;
use crate::semantics::aggregates::ordered;
use crate::semantics::operations::constants;
use crate::semantics::rules::origins::origins;
use crate::state::query_memory::{Spilling, is_out_of_memory};
use crate::syntax::walk::WalkPlan;

/// Puts tables in the place of queries that are worked out once.
pub(super) fn share(plan: LogicalPlan, plans: &Subplans) -> Result<LogicalPlan> {
    let names = &plans.statement.with_names;
    if names.names.is_empty() && !call::is_volatile(&plan)? {
        return Ok(plan);
    }
    let uses = Readers::of(&plan, &|name| names.names.contains_key(name))?;
    Sharing { plans, uses, tables: HashMap::new() }.plan(plan)
}

struct Sharing<'a> {
    plans: &'a Subplans,
    uses: HashMap<LogicalPlan, Uses>,
    tables: HashMap<LogicalPlan, LogicalPlan>,
}

impl Sharing<'_> {
    fn plan(&mut self, plan: LogicalPlan) -> Result<LogicalPlan> {
        let shared = plan.change_down_with_subqueries(|node| {
            let LogicalPlan::SubqueryAlias(alias) = &node else { return Ok(Transformed::no(node)) };
            let table = match self.tables.get(&node) {
                Some(table) => table.clone(),
                None if self.is_shared(&node, alias)? => {
                    let table = self.table(&node, alias, true)?;
                    self.tables.insert(node, table.clone());
                    table
                }
                None if selects_volatile(alias) && !scope::is_open(&node)? => self.table(&node, alias, false)?,
                None => return Ok(Transformed::no(node)),
            };
            Ok(Transformed::new(table, true, TreeNodeRecursion::Jump))
        })?;
        Ok(shared.data)
    }

    /// Whether it is a query of WITH that is worked out once.
    fn is_shared(&self, node: &LogicalPlan, alias: &SubqueryAlias) -> Result<bool> {
        let Some(uses) = self.uses.get(node) else { return Ok(false) };
        let is_asked = match self.said(alias) {
            Some(said) => said,
            None => uses.count() > 1 && (uses.is_repeated || is_worth_keeping(&alias.input)?),
        };
        Ok((is_asked || call::is_volatile(node)?) && !scope::is_open(node)?)
    }

    /// What the statement says of whether the query is worked out once.
    fn said(&self, alias: &SubqueryAlias) -> Option<bool> {
        self.plans.statement.with_names.names.get(alias.alias.table()).copied().flatten()
    }

    /// What is asked of the rows of a query that is worked out once, where others need not be worked out.
    fn asked(&self, node: &LogicalPlan, alias: &SubqueryAlias, columns: &[Column]) -> Result<Option<Expr>> {
        if self.said(alias) == Some(true) || call::is_volatile(node)? {
            return Ok(None);
        }
        Ok(self.uses.get(node).and_then(|uses| uses.condition(columns)))
    }

    fn table(&mut self, node: &LogicalPlan, alias: &SubqueryAlias, keeps: bool) -> Result<LogicalPlan> {
        let query = self.plan(alias.input.as_ref().clone())?;
        let schema = with_nulls(query.schema().inner());
        let origins = origins(&query, &origin);
        let query = self.plans.convert(query)?;
        let is_in_order = ordered::has_order(&query, &is_in_order);
        constants::check(&query, &call::failure)?;
        let asked = self.asked(node, alias, &query.schema().columns())?;
        let query = match asked.clone() {
            Some(condition) => LogicalPlan::Filter(Filter::try_new(condition, Arc::new(query))?),
            None => query,
        };
        let query = self.plans.statement.optimize(query)?;
        let statement = self.plans.statement.clone();
        let name = alias.alias.table().to_owned();
        let plan = SharedPlan { name: name.clone(), asked, query, schema, origins, keeps, is_in_order };
        let source = SharedQuery::new(plan, statement).source();
        LogicalPlanBuilder::scan(name, source, None)?.alias(alias.alias.clone())?.build()
    }
}

/// A schema of columns that may all be NULL: only the conversion finds that a subquery as a value may have no row.
fn with_nulls(schema: &Schema) -> SchemaRef {
    let fields: Fields = schema.fields().iter().map(|field| field.as_ref().clone().with_nullable(true)).collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

/// Whether a scan gives the rows of a query that is worked out once, in the order that it asks for.
pub(super) fn is_in_order(scan: &TableScan) -> bool {
    let provider = source_as_provider(&scan.source);
    provider.is_ok_and(|provider| provider.downcast_ref::<SharedTable>().is_some_and(|table| table.0.plan.is_in_order))
}

/// Where a column of a scan comes from.
pub(crate) fn origin(scan: &TableScan, at: usize) -> Option<Origin> {
    let provider = source_as_provider(&scan.source).ok()?;
    if let Some(table) = provider.downcast_ref::<EngineTable>() {
        return table.origin(scan.projected_schema.field(at).name());
    }
    let shared = provider.downcast_ref::<SharedTable>()?;
    let at = scan.projection.as_ref().map_or(Some(at), |kept| kept.get(at).copied())?;
    shared.0.plan.origins.get(at).copied()
}

/// Whether the query of an alias selects functions that give another value each time.
fn selects_volatile(alias: &SubqueryAlias) -> bool {
    match alias.input.as_ref() {
        LogicalPlan::Projection(projection) => projection.expr.iter().any(Expr::is_volatile),
        _ => false,
    }
}

/// What a query is that is worked out once, whatever statement reads it.
#[derive(Clone)]
pub(crate) struct SharedPlan {
    name: String,
    /// what the rows meet that are worked out, where these are not all
    asked: Option<Expr>,
    query: LogicalPlan,
    schema: SchemaRef,
    /// Where its columns come from.
    origins: Vec<Origin>,
    /// Whether its rows are kept for others that read them.
    keeps: bool,
    is_in_order: bool,
}

impl SharedPlan {
    pub(crate) fn query(&self) -> &LogicalPlan {
        &self.query
    }

    /// The query over other tables of the same columns.
    pub(crate) fn with_query(&self, query: LogicalPlan) -> SharedPlan {
        SharedPlan { query, ..self.clone() }
    }
}

/// A query of which each row is worked out once.
pub(crate) struct SharedQuery {
    plan: SharedPlan,
    statement: Arc<Statement>,
    rows: Mutex<Rows>,
}

impl fmt::Debug for SharedQuery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedQuery").field("name", &self.plan.name).finish_non_exhaustive()
    }
}

struct Rows {
    source: Source,
    batches: Vec<RecordBatch>,
    /// what the batches take
    memory: MemoryReservation,
}

/// Where more rows come from.
enum Source {
    /// No scan has asked yet.
    Waiting,
    Running(SendableRecordBatchStream),
    /// With what its plan put into files.
    Failed(Arc<DataFusionError>, Spilling),
    Ended,
}

impl SharedQuery {
    /// The query of a statement, of which no row is worked out yet.
    pub(crate) fn new(plan: SharedPlan, statement: Arc<Statement>) -> Arc<SharedQuery> {
        let memory = statement.memory("rows of WITH");
        let rows = Mutex::new(Rows { source: Source::Waiting, batches: Vec::new(), memory });
        Arc::new(SharedQuery { plan, statement, rows })
    }

    /// The query whose rows a scan reads, if it is one that is worked out once.
    pub(crate) fn of_scan(scan: &TableScan) -> Option<Arc<SharedQuery>> {
        let source = scan.source.downcast_ref::<DefaultTableSource>()?;
        source.table_provider.downcast_ref::<SharedTable>().map(|table| table.0.clone())
    }

    /// The query whose rows an operator reads, and which of its columns.
    pub(crate) fn of_leaf(leaf: &Arc<dyn ExecutionPlan>) -> Option<(&Arc<SharedQuery>, Option<&Vec<usize>>)> {
        leaf.downcast_ref::<SharedExec>().map(|exec| (&exec.shared, exec.projection.as_ref()))
    }

    pub(crate) fn plan(&self) -> &SharedPlan {
        &self.plan
    }

    /// Its rows as those of a table.
    pub(crate) fn source(self: Arc<Self>) -> Arc<dyn TableSource> {
        provider_as_source(Arc::new(SharedTable(self)))
    }

    /// The operator that reads some of its columns, or all.
    pub(crate) fn read(self: Arc<Self>, projection: Option<&Vec<usize>>) -> Result<Arc<dyn ExecutionPlan>> {
        let schema = match projection {
            Some(columns) => Arc::new(self.plan.schema.project(columns)?),
            None => self.plan.schema.clone(),
        };
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema.clone()),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        let (projection, properties) = (projection.cloned(), Arc::new(properties));
        Ok(Arc::new(SharedExec { shared: self, projection, schema, properties }))
    }

    /// The batch at a place, if there are so many.
    async fn batch(&self, at: usize) -> Result<Option<RecordBatch>> {
        let mut rows = self.rows.lock().await;
        loop {
            if let Some(batch) = rows.batches.get(at) {
                return Ok(Some(batch.clone()));
            }
            let next = match &mut rows.source {
                Source::Waiting => match self.statement.stream(&self.plan.query).await {
                    Ok(stream) => {
                        rows.source = Source::Running(stream);
                        continue;
                    }
                    Err(error) => Some(Err(error)),
                },
                Source::Running(stream) => stream.next().await,
                // The statement runs again.
                Source::Failed(error, before) if is_out_of_memory(error) && *before < self.statement.spilling() => {
                    rows.batches.clear();
                    rows.memory.free();
                    rows.source = Source::Waiting;
                    continue;
                }
                Source::Failed(error, _) => return Err(DataFusionError::Shared(error.clone())),
                Source::Ended => return Ok(None),
            };
            let kept = next.map(|batch| {
                let batch = batch?;
                rows.memory.try_grow(batch.get_array_memory_size())?;
                Ok::<_, DataFusionError>(batch)
            });
            match kept {
                Some(Ok(batch)) => rows.batches.push(batch),
                Some(Err(error)) => rows.source = Source::Failed(Arc::new(error), self.statement.spilling()),
                None => rows.source = Source::Ended,
            }
        }
    }
}

#[derive(Debug)]
struct SharedTable(Arc<SharedQuery>);

#[async_trait]
impl TableProvider for SharedTable {
    fn schema(&self) -> SchemaRef {
        self.0.plan.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Temporary
    }

    async fn scan(
        &self,
        _: &dyn Session,
        projection: Option<&Vec<usize>>,
        _: &[Expr],
        _: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.0.clone().read(projection)
    }
}

fn projected(batch: RecordBatch, columns: Option<&Vec<usize>>) -> Result<RecordBatch> {
    match columns {
        Some(columns) => Ok(batch.project(columns)?),
        None => Ok(batch),
    }
}

/// Reads the rows of a query that is worked out once.
#[derive(Debug)]
struct SharedExec {
    shared: Arc<SharedQuery>,
    projection: Option<Vec<usize>>,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
}

impl DisplayAs for SharedExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedExec: {}", self.shared.plan.name)?;
        self.shared.plan.asked.iter().try_for_each(|asked| write!(f, ", asked=[{asked}]"))
    }
}

impl ExecutionPlan for SharedExec {
    fn name(&self) -> &str {
        "SharedExec"
    }

    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(self: Arc<Self>, _: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn execute(&self, _: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let (shared, projection) = (self.shared.clone(), self.projection.clone());
        if !shared.plan.keeps {
            let started = async move { shared.statement.stream(&shared.plan.query).await };
            let batches = stream::once(started).try_flatten().map(move |batch| projected(batch?, projection.as_ref()));
            return Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema.clone(), batches)));
        }
        let batches = stream::unfold(0, move |at| {
            let (shared, projection) = (shared.clone(), projection.clone());
            async move {
                let batch = shared.batch(at).await.transpose()?;
                let projected = batch.and_then(|batch| projected(batch, projection.as_ref()));
                Some((projected, at + 1))
            }
        });
        // After an error no scan asks for more.
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema.clone(), batches)))
    }
}
