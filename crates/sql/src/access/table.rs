//! A table of the engine as DataFusion sees it: a schema, pushdown of conditions and primary keys, and scans of one
//! moment.
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{Field, Schema as ArrowSchema, SchemaRef};
use async_trait::async_trait;
use costs::CostModel;
use datafusion::catalog::memory::MemorySourceConfig;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{Constraint, Constraints, DFSchema};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::FilterExecBuilder;
use engine::{Table, Test, Value};

use crate::access::conditions::{equality, test};
use crate::access::index_path;
use crate::access::scan::{ScanExec, ScanSource};
use crate::access::scan_costs::PlanCosts;
use crate::access::statistics::{self, TableEstimates};
use crate::error::SqlError;
use crate::interrupt;
use crate::names::moment::Moment;
use crate::names::origin::Origin;
use crate::state::view::RowTarget;
use crate::values::types::arrow_schema;

/// The name of the hidden column with the ids of a target's rows, another for each target; no statement can spell it.
pub(crate) fn rid_column(target: usize) -> String {
    format!("{RID}{target}")
}

/// Whether a column is one of those.
pub(crate) fn is_rid_column(name: &str) -> bool {
    name.starts_with(RID)
}

const RID: &str = "\0rid ";

/// The hidden column that is not 0 for a row that a statement has changed rather than put in.
pub(crate) const XMAX: &str = "\0rid xmax";

/// One table at one moment.
#[derive(Clone)]
pub(crate) struct EngineTable {
    table: Table,
    moment: Moment,
    partitions: usize,
    /// Only these rows, if given.
    rids: Option<Arc<[u64]>>,
    /// These rows instead of the table's own, if given.
    given: Option<Arc<[RecordBatch]>>,
    schema: SchemaRef,
    constraints: Constraints,
}

impl std::fmt::Debug for EngineTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EngineTable").field("name", &self.table.name()).finish_non_exhaustive()
    }
}

impl EngineTable {
    /// Checks that it has rows of its own: a view's are those of its query, in whose place it does not come here.
    fn check_rows(&self) -> Result<()> {
        let is_view = self.table.view().is_some() && !self.table.is_materialized();
        if is_view && self.given.is_none() && self.rids.is_none() {
            let message = format!("the query of view \"{}\" was not put in its place", self.table.name());
            return Err(DataFusionError::External(Box::new(SqlError::new("XX000", message))));
        }
        Ok(())
    }

    pub(crate) fn new(table: Table, moment: Moment, partitions: usize) -> EngineTable {
        let schema = arrow_schema(table.schema());
        let key = table.schema().primary_key();
        let constraints = match key.is_empty() {
            true => Constraints::default(),
            false => Constraints::new_unverified(vec![Constraint::PrimaryKey(key.to_vec())]),
        };
        EngineTable { table, moment, partitions, rids: None, given: None, schema, constraints }
    }

    /// The table, if all of its rows are read and no more than its columns.
    pub(crate) fn plain(&self) -> Option<&Table> {
        let is_plain = self.rids.is_none() && self.given.is_none() && !self.moment.is_past();
        (is_plain && self.schema.fields().len() == self.table.schema().columns().len()).then_some(&self.table)
    }

    /// A table that has rows changed or locked, with the ids of its rows in one more column, or the rows that a statement gives back.
    pub(crate) fn of_target(target: RowTarget, at: usize, partitions: usize) -> EngineTable {
        let plain = EngineTable::new(target.table, target.moment, partitions);
        if let Some(given) = target.given {
            let schema = given.first().map_or_else(|| plain.schema.clone(), RecordBatch::schema);
            // A row may come twice where it was joined to several.
            return EngineTable { given: Some(given), schema, constraints: Constraints::default(), ..plain };
        }
        let mut fields = crate::values::types::fields(plain.table.schema().columns());
        fields.push(Field::new(rid_column(at), arrow_schema::DataType::UInt64, false));
        EngineTable { schema: Arc::new(ArrowSchema::new(fields)), rids: target.rids, ..plain }
    }

    /// Where the column of a name comes from, if it is the table's own.
    pub(crate) fn origin(&self, column: &str) -> Option<Origin> {
        self.table.schema().position(column).map(|at| Origin::of_column(&self.table, at))
    }

    /// What is known of the rows that pass these conditions, and of the columns of a projection.
    pub(crate) fn estimates(&self, filters: &[Expr], projection: Option<&[usize]>) -> TableEstimates {
        /// The share of rows that is taken to pass a condition that no scan tests.
        const GUESS: f64 = 0.25;
        let tests: Vec<(usize, Test)> = filters.iter().filter_map(|filter| test(filter, self.table.schema())).collect();
        let others = GUESS.powi(i32::try_from((filters.len() - tests.len()).min(8)).unwrap_or_default());
        let stored = self.table.schema().columns().len();
        let column = |at: usize| (at < stored).then_some(at);
        match projection {
            Some(columns) => statistics::of_table(&self.table, &tests, others, columns.iter().copied().map(column)),
            None => {
                let all = 0..self.schema.fields().len();
                statistics::of_table(&self.table, &tests, others, all.map(column))
            }
        }
    }

    /// The primary key that tests pin down, if they pin down all of it.
    fn key(&self, tests: &[(usize, Test)]) -> Option<Vec<Value>> {
        let key = self.table.schema().primary_key();
        let value_of = |position: &usize| {
            let mut values = tests.iter().filter_map(equality);
            values.find_map(|(at, value)| (at == *position).then(|| value.clone()))
        };
        key.iter().map(value_of).collect::<Option<Vec<Value>>>().filter(|key| !key.is_empty())
    }

    /// Where to look for the rows that pass, and what is still to be tested there.
    fn source(
        &self,
        mut tests: Vec<(usize, Test)>,
        conditions: &[Expr],
        model: &CostModel,
        partitions: usize,
    ) -> (ScanSource, Vec<(usize, Test)>) {
        if let Some(rids) = &self.rids {
            return (ScanSource::Rids(rids.clone()), tests);
        }
        let Some(key) = self.key(&tests) else {
            let all = ScanSource::All { partitions };
            return (index_path::best(&self.table, &tests, conditions, model).map_or(all, ScanSource::Index), tests);
        };
        let columns = self.table.schema().primary_key();
        let is_found_by = |test: &(usize, Test)| {
            equality(test).is_some_and(|(at, value)| columns.iter().zip(&key).any(|known| known == (&at, value)))
        };
        tests.retain(|test| !is_found_by(test));
        (ScanSource::Key(key), tests)
    }

    /// What the scan does with a condition.
    fn answer(&self, filter: &Expr) -> TableProviderFilterPushDown {
        match test(filter, self.table.schema()) {
            _ if self.given.is_some() => TableProviderFilterPushDown::Unsupported,
            Some(_) => TableProviderFilterPushDown::Exact,
            // The scan does not test it, and may look where it can hold.
            None if self.rids.is_none() && index_path::is_of_use(&self.table, filter) => {
                TableProviderFilterPushDown::Inexact
            }
            None => TableProviderFilterPushDown::Unsupported,
        }
    }

    fn scan_of(&self, session: &dyn Session, columns: Vec<usize>, filters: &[Expr]) -> Result<Arc<dyn ExecutionPlan>> {
        if let Some(given) = &self.given {
            return Ok(MemorySourceConfig::try_new_exec(&[given.to_vec()], self.schema.clone(), Some(columns))?);
        }
        let tests = filters.iter().filter_map(|filter| test(filter, self.table.schema())).collect();
        let options = session.config_options();
        // A query that has run out of memory is planned again for fewer threads.
        let partitions = self.partitions.min(options.execution.target_partitions);
        let (source, tests) = self.source(tests, filters, &PlanCosts::of(options), partitions);
        let schema = Arc::new(self.schema.project(&columns)?);
        Ok(Arc::new(ScanExec::new(self.table.clone(), self.moment.clone(), source, tests, columns, schema)))
    }

    /// A scan and the test of a condition that it does not know. The planner has simplified one that it did know, and that
    /// nothing above tests: `id IS NULL` of a key is false, once the join around it keeps no rows without a partner.
    fn filtered(
        &self,
        condition: &Expr,
        session: &dyn Session,
        columns: Vec<usize>,
        filters: &[Expr],
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let kept: Vec<usize> = (0..columns.len()).collect();
        let mut read = columns;
        for column in condition.column_refs() {
            let at = self.schema.index_of(column.name())?;
            if !read.contains(&at) {
                read.push(at);
            }
        }
        let scan = self.scan_of(session, read, filters)?;
        let schema = DFSchema::try_from(scan.schema())?;
        let predicate = session.create_physical_expr(condition.clone(), &schema)?;
        Ok(Arc::new(FilterExecBuilder::new(predicate, scan).apply_projection(Some(kept))?.build()?))
    }
}

#[async_trait]
impl TableProvider for EngineTable {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn constraints(&self) -> Option<&Constraints> {
        Some(&self.constraints)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        _: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        interrupt::check_plan()?;
        self.check_rows()?;
        let all = (0..self.schema.fields().len()).collect();
        let columns = projection.cloned().unwrap_or(all);
        let became_others =
            filters.iter().filter(|filter| self.answer(filter) == TableProviderFilterPushDown::Unsupported);
        match conjunction(became_others.cloned()) {
            None => self.scan_of(session, columns, filters),
            Some(condition) => self.filtered(&condition, session, columns, filters),
        }
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(filters.iter().map(|filter| self.answer(filter)).collect())
    }
}
