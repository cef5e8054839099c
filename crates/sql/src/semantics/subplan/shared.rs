//! Queries of `WITH` that are worked out once, however often they are named: those that are named more than once, that have
//! functions which give another value each time, or that say `MATERIALIZED`.
//!
//! The planner puts a copy of the query's plan wherever it is named. Copies are found by their name and by being equal, and
//! one table stands for them, whose scans share the rows: whoever needs a batch first has it computed, and it stays for the
//! others as long as the statement.
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::datasource::provider_as_source;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::logical_plan::SubqueryAlias;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, TableType};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties};
use datafusion::sql::sqlparser::ast::{self, CteAsMaterialized, Visit, Visitor};
use futures::{StreamExt, stream};
use tokio::sync::Mutex;

use super::run::Statement;
use super::{Subplans, call, scope};
use crate::names::fold;

/// The names of a statement's WITH queries, and whether each says to be worked out once, or says not to.
#[derive(Debug, Default)]
pub(crate) struct WithNames(BTreeMap<String, Option<bool>>);

impl WithNames {
    pub(crate) fn of(statement: &ast::Statement) -> WithNames {
        let mut names = WithNames::default();
        let _ = statement.visit(&mut names);
        names
    }
}

impl Visitor for WithNames {
    type Break = ();

    fn pre_visit_query(&mut self, query: &ast::Query) -> ControlFlow<()> {
        for cte in query.with.iter().flat_map(|with| &with.cte_tables) {
            let said = cte.materialized.as_ref().map(|said| matches!(said, CteAsMaterialized::Materialized));
            let known = self.0.entry(fold(&cte.alias.name)).or_insert(said);
            if *known != said {
                *known = None;
            }
        }
        ControlFlow::Continue(())
    }
}

/// Puts tables in the place of queries that are worked out once.
pub(super) fn share(plan: LogicalPlan, plans: &Subplans) -> Result<LogicalPlan> {
    let names = &plans.statement.with_names;
    if names.0.is_empty() {
        return Ok(plan);
    }
    let mut uses: HashMap<LogicalPlan, usize> = HashMap::new();
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::SubqueryAlias(alias) = node
            && names.0.contains_key(alias.alias.table())
        {
            *uses.entry(node.clone()).or_default() += 1;
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Sharing { plans, uses, tables: HashMap::new() }.plan(plan)
}

struct Sharing<'a> {
    plans: &'a Subplans,
    uses: HashMap<LogicalPlan, usize>,
    tables: HashMap<LogicalPlan, LogicalPlan>,
}

impl Sharing<'_> {
    fn plan(&mut self, plan: LogicalPlan) -> Result<LogicalPlan> {
        let shared = plan.transform_down_with_subqueries(|node| {
            let Some(alias) = self.is_shared(&node)? else { return Ok(Transformed::no(node)) };
            let table = match self.tables.get(&node) {
                Some(table) => table.clone(),
                None => {
                    let table = self.table(&alias)?;
                    self.tables.insert(node, table.clone());
                    table
                }
            };
            Ok(Transformed::new(table, true, TreeNodeRecursion::Jump))
        })?;
        Ok(shared.data)
    }

    fn is_shared(&self, node: &LogicalPlan) -> Result<Option<SubqueryAlias>> {
        let (LogicalPlan::SubqueryAlias(alias), Some(uses)) = (node, self.uses.get(node)) else { return Ok(None) };
        let said = self.plans.statement.with_names.0.get(alias.alias.table()).copied().flatten();
        let is_asked = said == Some(true) || (*uses > 1 && said != Some(false));
        let is_shared = (is_asked || call::is_volatile(node)?) && !scope::is_open(node)?;
        Ok(is_shared.then(|| alias.clone()))
    }

    fn table(&mut self, alias: &SubqueryAlias) -> Result<LogicalPlan> {
        let query = self.plan(alias.input.as_ref().clone())?;
        let schema = query.schema().inner().clone();
        let query = self.plans.statement.optimize(self.plans.convert(query)?)?;
        let rows = Mutex::new(Rows { source: Source::Waiting, batches: Vec::new() });
        let statement = self.plans.statement.clone();
        let name = alias.alias.table().to_owned();
        let table = SharedTable(Arc::new(Shared { name: name.clone(), query, schema, statement, rows }));
        let source = provider_as_source(Arc::new(table));
        LogicalPlanBuilder::scan(name, source, None)?.alias(alias.alias.clone())?.build()
    }
}

/// A query whose rows are kept.
struct Shared {
    name: String,
    query: LogicalPlan,
    schema: SchemaRef,
    statement: Arc<Statement>,
    rows: Mutex<Rows>,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("name", &self.name).finish_non_exhaustive()
    }
}

struct Rows {
    source: Source,
    batches: Vec<RecordBatch>,
}

/// Where more rows come from.
enum Source {
    /// Nobody has asked yet.
    Waiting,
    Running(SendableRecordBatchStream),
    Failed(Arc<DataFusionError>),
    Ended,
}

impl Shared {
    /// The batch at a place, if there are so many.
    async fn batch(&self, at: usize) -> Result<Option<RecordBatch>> {
        let mut rows = self.rows.lock().await;
        loop {
            if let Some(batch) = rows.batches.get(at) {
                return Ok(Some(batch.clone()));
            }
            let next = match &mut rows.source {
                Source::Waiting => match self.statement.stream(&self.query).await {
                    Ok(stream) => {
                        rows.source = Source::Running(stream);
                        continue;
                    }
                    Err(error) => Some(Err(error)),
                },
                Source::Running(stream) => stream.next().await,
                Source::Failed(error) => return Err(DataFusionError::Shared(error.clone())),
                Source::Ended => return Ok(None),
            };
            match next {
                Some(Ok(batch)) => rows.batches.push(batch),
                Some(Err(error)) => rows.source = Source::Failed(Arc::new(error)),
                None => rows.source = Source::Ended,
            }
        }
    }
}

#[derive(Debug)]
struct SharedTable(Arc<Shared>);

#[async_trait]
impl TableProvider for SharedTable {
    fn schema(&self) -> SchemaRef {
        self.0.schema.clone()
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
        let schema = match projection {
            Some(columns) => Arc::new(self.0.schema.project(columns)?),
            None => self.0.schema.clone(),
        };
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema.clone()),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        let (shared, projection) = (self.0.clone(), projection.cloned());
        Ok(Arc::new(SharedExec { shared, projection, schema, properties: Arc::new(properties) }))
    }
}

/// Reads the rows of a query that is worked out once.
#[derive(Debug)]
struct SharedExec {
    shared: Arc<Shared>,
    projection: Option<Vec<usize>>,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
}

impl DisplayAs for SharedExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedExec: {}", self.shared.name)
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
        let batches = stream::unfold(0, move |at| {
            let (shared, projection) = (shared.clone(), projection.clone());
            async move {
                let batch = shared.batch(at).await.transpose()?;
                let projected = batch.and_then(|batch| match &projection {
                    Some(columns) => Ok(batch.project(columns)?),
                    None => Ok(batch),
                });
                Some((projected, at + 1))
            }
        });
        // After an error nobody asks for more.
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema.clone(), batches)))
    }
}
