//! Physical plans of no moment: what is left of a plan once its scans are taken out, to be used again for other moments.
//!
//! ```text
//! plan ──▶ Unbound::of ──▶ the operators, and in place of each scan what makes one ──▶ bound ──▶ a plan of this moment
//! ```
//!
//! Operators keep what they have worked out, such as the hash table of a join. So each plan that is made gets operators of its own, with
//! the properties of those that were kept, which are most of what an operator costs to make. Only operators are kept of which this is
//! known, and no plan in which one operator gives another something while it runs, the values of subqueries to filters apart: such a plan
//! is `None` here, and made from its logical plan each time.
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use arrow_schema::Schema;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::physical_planning_context::ScalarSubqueryResults;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::DynamicFilterPhysicalExpr;
use datafusion::physical_expr::scalar_subquery::ScalarSubqueryExpr;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::filter::{FilterExec, FilterExecBuilder};
use datafusion::physical_plan::joins::{CrossJoinExec, HashJoinExec, NestedLoopJoinExec, SortMergeJoinExec};
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::scalar_subquery::{ScalarSubqueryExec, ScalarSubqueryLink};
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, ReplaceChildrenOptions,
};
use engine::Table;

use crate::access::scan::{Bind, ScanExec};
use crate::access::totals;
use crate::interrupt;
use crate::names::moment::Moment;

/// A plan without its tables and moments.
pub(crate) struct Unbound {
    plan: Arc<dyn ExecutionPlan>,
}

impl Unbound {
    /// What is kept of a plan that has not run; `None` if it holds what is of its run alone. `shared` knows the queries of the statement
    /// that leaves may read.
    ///
    /// # Errors
    /// If the statement is to stop.
    pub(crate) fn of(
        plan: &Arc<dyn ExecutionPlan>,
        shared: &dyn Fn(&Arc<dyn ExecutionPlan>) -> Option<SharedRows>,
    ) -> Result<Option<Unbound>> {
        let scan = |leaf: &Arc<dyn ExecutionPlan>| Ok(UnboundScan::of(leaf, shared).map(|scan| Arc::new(scan) as _));
        Ok(rebuilt(plan, (&is_kept, &scan), None)?.map(|plan| Unbound { plan }))
    }

    /// The plan over these tables, by the names that they had, at a moment; `None` if a table is missing or read in another way by now.
    /// `shared` makes what reads queries of the statement.
    ///
    /// # Errors
    /// If the statement is to stop, or those of `shared`.
    pub(crate) fn bound(
        &self,
        tables: &BTreeMap<String, Table>,
        moment: &Moment,
        shared: &ReadShared<'_>,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let bind = |leaf: &Arc<dyn ExecutionPlan>| match leaf.downcast_ref::<UnboundScan>().map(|scan| &scan.rows) {
            Some(Rows::OfTable { name, bind }) => Ok(tables.get(name).and_then(|table| bind(table, moment))),
            Some(Rows::Shared(rows)) => shared(rows),
            None => Ok(None),
        };
        rebuilt(&self.plan, (&|_| Ok(true), &bind), None)
    }
}

/// Makes what reads the rows of a query of the statement; `None` if there is no such query.
type ReadShared<'r> = dyn Fn(&SharedRows) -> Result<Option<Arc<dyn ExecutionPlan>>> + 'r;

/// What stands in the place of a leaf.
type Leaf<'l> = dyn Fn(&Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> + 'l;

/// Whether an operator is kept, and what stands in the place of a leaf.
type Rules<'r> = (&'r dyn Fn(&Arc<dyn ExecutionPlan>) -> Result<bool>, &'r Leaf<'r>);

/// Where the values of subqueries were put by the plan that was, and are by the one that is made.
struct SubqueryValues {
    former: ScalarSubqueryResults,
    fresh: ScalarSubqueryResults,
}

/// The plan in operators of its own, with other leaves; `None` where an operator is not kept, or a leaf has no other.
#[recursive::recursive]
fn rebuilt(
    plan: &Arc<dyn ExecutionPlan>,
    rules: Rules<'_>,
    values: Option<&SubqueryValues>,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    interrupt::check_plan()?;
    if let Some(level) = plan.downcast_ref::<ScalarSubqueryExec>() {
        return rebuilt_with_subqueries(level, rules);
    }
    let (is_kept, leaf) = rules;
    let children = plan.children();
    if children.is_empty() {
        return leaf(plan);
    }
    if !is_kept(plan)? {
        return Ok(None);
    }
    let mut inputs = Vec::with_capacity(children.len());
    for child in children {
        let Some(input) = rebuilt(child, rules, values)? else { return Ok(None) };
        inputs.push(input);
    }
    fresh(plan, inputs, values).map(Some)
}

/// A plan and the subqueries whose values it reads, as [`rebuilt`], with a place of their own for the values.
fn rebuilt_with_subqueries(level: &ScalarSubqueryExec, rules: Rules<'_>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let fresh = ScalarSubqueryResults::new(level.subqueries().len());
    let values = SubqueryValues { former: level.results().clone(), fresh };
    let Some(input) = rebuilt(level.input(), rules, Some(&values))? else { return Ok(None) };
    let mut links = Vec::with_capacity(level.subqueries().len());
    for link in level.subqueries() {
        // What a subquery reads of others stands in a level of its own.
        let Some(plan) = rebuilt(&link.plan, rules, None)? else { return Ok(None) };
        links.push(ScalarSubqueryLink { plan, index: link.index });
    }
    Ok(Some(Arc::new(ScalarSubqueryExec::new(input, links, values.fresh))))
}

/// An expression that reads the values of subqueries in their new place.
#[recursive::recursive]
fn reading(expr: &Arc<dyn PhysicalExpr>, values: &SubqueryValues) -> Result<Arc<dyn PhysicalExpr>> {
    if let Some(value) = expr.downcast_ref::<ScalarSubqueryExpr>() {
        let field = value.return_field(&Schema::empty())?;
        #[expect(deprecated, reason = "there is no other way to ask which of the values it reads")]
        let index = value.index();
        debug_assert!(ScalarSubqueryResults::ptr_eq(value.results(), &values.former), "a value of another level");
        let fresh = values.fresh.clone();
        return Ok(Arc::new(ScalarSubqueryExpr::new(field.data_type().clone(), field.is_nullable(), index, fresh)));
    }
    let children = expr.children();
    if children.is_empty() {
        return Ok(expr.clone());
    }
    let children = children.into_iter().map(|child| reading(child, values)).collect::<Result<_>>()?;
    expr.clone().with_new_children(children)
}

/// An operator that has not run, over inputs with the properties of its own.
fn fresh(
    plan: &Arc<dyn ExecutionPlan>,
    inputs: Vec<Arc<dyn ExecutionPlan>>,
    values: Option<&SubqueryValues>,
) -> Result<Arc<dyn ExecutionPlan>> {
    if let (Some(values), Some(filter), [input]) = (values, plan.downcast_ref::<FilterExec>(), &inputs[..])
        && reads_values(filter.predicate())
    {
        let predicate = reading(filter.predicate(), values)?;
        let filter = FilterExecBuilder::from(filter).with_predicate(predicate).with_input(input.clone()).build()?;
        return Ok(Arc::new(filter));
    }
    if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
        // Otherwise both would share the table of their build side.
        return join.builder().with_new_children(inputs)?.reset_state().build_exec();
    }
    let keep = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep);
    let fresh = plan.clone().replace_children(inputs, keep)?;
    // The first rows so far are known to all copies of a sort.
    let is_top = fresh.is::<SortExec>() && fresh.fetch().is_some();
    if is_top { fresh.reset_state() } else { Ok(fresh) }
}

/// Whether an operator over the same inputs does the same at another moment, and a copy of it shares nothing with it but what is reset.
fn is_kept(plan: &Arc<dyn ExecutionPlan>) -> Result<bool> {
    let is_known = plan.is::<FilterExec>()
        || plan.is::<ProjectionExec>()
        || plan.is::<RepartitionExec>()
        || plan.is::<CoalescePartitionsExec>()
        || plan.is::<AggregateExec>()
        || plan.is::<HashJoinExec>()
        || plan.is::<NestedLoopJoinExec>()
        || plan.is::<CrossJoinExec>()
        || plan.is::<SortMergeJoinExec>()
        || plan.is::<SortExec>()
        || plan.is::<SortPreservingMergeExec>()
        || plan.is::<GlobalLimitExec>()
        || plan.is::<LocalLimitExec>()
        || plan.is::<UnionExec>()
        || plan.is::<CooperativeExec>()
        || plan.name() == "PlainExec";
    let moves_nothing = plan.is::<SortExec>() || !has(plan, moves)?;
    Ok(is_known && moves_nothing && (plan.is::<FilterExec>() || !has(plan, reads_values)?))
}

/// Whether an operator has such an expression.
fn has(plan: &Arc<dyn ExecutionPlan>, is_such: fn(&Arc<dyn PhysicalExpr>) -> bool) -> Result<bool> {
    let mut found = false;
    plan.apply_expressions(&mut |expr| {
        found |= is_such(expr);
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(found)
}

/// Whether an expression changes while the plan runs.
#[recursive::recursive]
fn moves(expr: &Arc<dyn PhysicalExpr>) -> bool {
    expr.is::<DynamicFilterPhysicalExpr>() || expr.children().into_iter().any(moves)
}

/// Whether an expression reads the value of a subquery.
#[recursive::recursive]
fn reads_values(expr: &Arc<dyn PhysicalExpr>) -> bool {
    expr.is::<ScalarSubqueryExpr>() || expr.children().into_iter().any(reads_values)
}

/// Rows of a query that a statement works out once.
pub(crate) struct SharedRows {
    /// Which one of the statement's.
    pub(crate) query: usize,
    /// `None` for all of them.
    pub(crate) columns: Option<Vec<usize>>,
}

/// What a scan reads.
enum Rows {
    OfTable { name: String, bind: Bind },
    Shared(SharedRows),
}

/// In the place of a scan.
struct UnboundScan {
    rows: Rows,
    properties: Arc<PlanProperties>,
}

impl UnboundScan {
    fn of(
        leaf: &Arc<dyn ExecutionPlan>,
        shared: &dyn Fn(&Arc<dyn ExecutionPlan>) -> Option<SharedRows>,
    ) -> Option<UnboundScan> {
        let of_table = |table: &Table, bind| Rows::OfTable { name: table.name().to_string(), bind };
        let rows = match leaf.downcast_ref::<ScanExec>() {
            Some(scan) => of_table(scan.table(), scan.bindable()?),
            None => match totals::bindable(leaf) {
                Some((table, bind)) => of_table(table, bind),
                None => Rows::Shared(shared(leaf)?),
            },
        };
        Some(UnboundScan { rows, properties: leaf.properties().clone() })
    }
}

impl fmt::Debug for UnboundScan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.rows {
            Rows::OfTable { name, .. } => write!(f, "UnboundScan: table={name}"),
            Rows::Shared(rows) => write!(f, "UnboundScan: query={}", rows.query),
        }
    }
}

impl DisplayAs for UnboundScan {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl ExecutionPlan for UnboundScan {
    fn name(&self) -> &str {
        "UnboundScan"
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

    fn execute(&self, _: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        Err(DataFusionError::Internal(format!("{self:?} is read without a moment")))
    }
}
