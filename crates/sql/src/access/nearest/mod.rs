//! `ORDER BY place <-> point LIMIT k` by an index that knows distances.
//!
//! ```text
//! Sort, first k                         Sort, first k: hands on the first k rows, as they are in order
//!   Projection                            Projection
//!     Filter                        ─▶      NearestExec: the rows that pass the filter, by distance, as long as they are asked for
//!       ScanExec of the whole table
//! ```
//!
//! The sort stays, and finds its input in order by what [`NearestExec`] says of itself; where more keys follow the distance, it ends
//! with the first row that is farther than all it has. An index is taken where few rows are expected to be read until `k` pass.
//!
//! Imports scans and indexes' expressions; the list of rules imports it.
mod exec;
pub(crate) mod order;

use std::sync::Arc;

use arrow_schema::SortOptions;
use datafusion::common::DFSchema;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::execution::context::ExecutionProps;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::physical_expr::expressions::{Column, Literal};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr, create_physical_expr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use datafusion::physical_plan::{
    ChildrenPropertiesMode, ExecutionPlan, ExecutionPlanProperties, ReplaceChildrenOptions,
};
use engine::{DataType, Geometry, GeometryKind, Index, IndexMethod, IndexPart, Value};

use crate::access::index_expressions::compiled::CompiledExpression;
use crate::access::scan::ScanExec;
use crate::syntax::walk::WalkTree;
use crate::values::single::value_of_scalar;
use exec::{Distance, NearestExec};

/// The operator that gives a distance.
pub(crate) const OPERATOR: &str = "<->";

/// How NULL and numbers follow each other where nothing else is said.
const ASCENDING: SortOptions = SortOptions { descending: false, nulls_first: false };

/// An index is taken where one row of so many at most is expected to be read.
const SHARE: usize = 16;
/// So few rows are read through an index in any case.
const ROWS_MIN: usize = 64;

/// Puts [`NearestExec`] in the place of scans whose first rows by a distance are wanted.
#[derive(Debug)]
pub(crate) struct NearestFirst;

impl PhysicalOptimizerRule for NearestFirst {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.change_up(|node| Ok(by_distance(&node)?.map_or_else(|| Transformed::no(node), Transformed::yes))).data()
    }

    fn name(&self) -> &str {
        "nearest_first"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// The sort over rows that come in its order, if it has the first rows by a distance that an index knows.
fn by_distance(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let Some((sort, wanted)) = plan.downcast_ref::<SortExec>().and_then(|sort| Some((sort, sort.fetch()?))) else {
        return Ok(None);
    };
    let first = sort.expr().first();
    if first.options != ASCENDING {
        return Ok(None);
    }
    let Some(input) = in_order(sort.input(), &first.expr, wanted)? else { return Ok(None) };
    let is_in_order = input.equivalence_properties().ordering_satisfy([first.clone()])?;
    if !is_in_order {
        return Ok(None);
    }
    plan.clone().replace_children(vec![input], in_other_order()).map(Some)
}

/// Inputs in the place of others that had no order.
fn in_other_order() -> ReplaceChildrenOptions {
    ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute)
}

/// A plan of the same rows by this distance, if an index knows it and few rows are read until so many are `wanted`.
#[recursive::recursive]
fn in_order(
    plan: &Arc<dyn ExecutionPlan>,
    distance: &Arc<dyn PhysicalExpr>,
    wanted: usize,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if let Some(scan) = plan.downcast_ref::<ScanExec>() {
        return Ok(nearest(scan, plan, distance, None, wanted)?.map(|nearest| Arc::new(nearest) as _));
    }
    if let Some(filter) = plan.downcast_ref::<FilterExec>() {
        return filtered(filter, plan, distance, wanted);
    }
    let below = match plan.downcast_ref::<ProjectionExec>() {
        Some(projection) => of_input(distance, &|at| Some(projection.expr().get(at)?.expr.clone()))?,
        None if plan.name() == "CooperativeExec" => Some(distance.clone()),
        None => None,
    };
    let Some(below) = below else { return Ok(None) };
    match in_order(plan.children()[0], &below, wanted)? {
        Some(input) => plan.clone().replace_children(vec![input], in_other_order()).map(Some),
        None => Ok(None),
    }
}

/// The rows that pass a filter directly above a scan. It is made of each row as it comes: a filter of the library would wait for
/// many to pass.
fn filtered(
    filter: &FilterExec,
    plan: &Arc<dyn ExecutionPlan>,
    distance: &Arc<dyn PhysicalExpr>,
    wanted: usize,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let mut input = filter.input();
    while input.name() == "CooperativeExec" {
        input = input.children()[0];
    }
    let Some(scan) = input.downcast_ref::<ScanExec>().filter(|_| filter.fetch().is_none()) else { return Ok(None) };
    let (schema, kept) = (input.schema(), filter.projection().as_ref());
    let column = |at: usize| -> Arc<dyn PhysicalExpr> { Arc::new(Column::new(schema.field(at).name(), at)) };
    let place = |at: usize| kept.map_or(Some(at), |kept| kept.get(at).copied()).map(column);
    let Some(below) = of_input(distance, &place)? else { return Ok(None) };
    let Some(nearest) = nearest(scan, plan, &below, Some(filter.predicate().clone()), wanted)? else { return Ok(None) };
    let nearest: Arc<dyn ExecutionPlan> = Arc::new(nearest);
    let Some(kept) = kept else { return Ok(Some(nearest)) };
    let named = kept.iter().map(|at| ProjectionExpr::new(column(*at), schema.field(*at).name().clone()));
    Ok(Some(Arc::new(ProjectionExec::try_new(named, nearest)?)))
}

/// An expression over the rows below, where `below` says what each column is there.
fn of_input(
    expr: &Arc<dyn PhysicalExpr>,
    below: &dyn Fn(usize) -> Option<Arc<dyn PhysicalExpr>>,
) -> Result<Option<Arc<dyn PhysicalExpr>>> {
    let mut is_known = true;
    let changed = expr.clone().transform_down(|part| {
        let Some(column) = part.downcast_ref::<Column>() else { return Ok(Transformed::no(part)) };
        Ok(match below(column.index()) {
            // What is put in its place is of the rows below already.
            Some(other) => Transformed::new(other, true, TreeNodeRecursion::Jump),
            None => {
                is_known = false;
                Transformed::no(part)
            }
        })
    })?;
    Ok(is_known.then_some(changed.data))
}

/// The rows of a scan that pass a filter, by their distance. `plan` is the one that has them, for what is known of it.
fn nearest(
    scan: &ScanExec,
    plan: &Arc<dyn ExecutionPlan>,
    distance: &Arc<dyn PhysicalExpr>,
    filter: Option<Arc<dyn PhysicalExpr>>,
    wanted: usize,
) -> Result<Option<NearestExec>> {
    let Some((place, point)) = place_and_point(distance).filter(|_| scan.reads_all() && !scan.table().is_array())
    else {
        return Ok(None);
    };
    let indexes = scan.table().indexes();
    // The fewer parts, the nearer to each other are rows that are near.
    let known = |index: Index| Some((part_of(&index, scan, &place)?, index));
    let known = indexes.into_iter().filter_map(known).min_by_key(|(_, index)| index.key_columns().len());
    let Some((part, index)) = known else { return Ok(None) };
    let records = usize::try_from(scan.table().stats().records).unwrap_or(usize::MAX);
    let known = StatisticsContext::new().compute(plan.as_ref(), &StatisticsArgs::new())?;
    let passing = known.num_rows.get_value().copied().unwrap_or(records).max(1);
    let read = wanted.saturating_mul(records) / passing;
    if read > (records / SHARE).max(ROWS_MIN) {
        return Ok(None);
    }
    NearestExec::try_new(scan, index, Distance { expr: distance.clone(), part, point }, filter).map(Some)
}

/// What the distance is of, and the point that it is from.
fn place_and_point(distance: &Arc<dyn PhysicalExpr>) -> Option<(Arc<dyn PhysicalExpr>, [f64; 2])> {
    let call = distance.downcast_ref::<ScalarFunctionExpr>().filter(|call| call.fun().name() == OPERATOR)?;
    let [left, right] = call.args() else { return None };
    let point = |expr: &Arc<dyn PhysicalExpr>| {
        let literal = expr.downcast_ref::<Literal>()?;
        match value_of_scalar(literal.value(), DataType::Geometry(GeometryKind::Point))? {
            Value::Geometry(Geometry::Point(point)) => {
                (point.x.is_finite() && point.y.is_finite()).then_some([point.x, point.y])
            }
            _ => None,
        }
    };
    point(right).map(|point| (left.clone(), point)).or_else(|| point(left).map(|point| (right.clone(), point)))
}

/// The part of an index of all rows that is this expression over the rows of a scan, which gives shapes.
fn part_of(index: &Index, scan: &ScanExec, place: &Arc<dyn PhysicalExpr>) -> Option<usize> {
    let definition = index.definition();
    if definition.method != IndexMethod::Gist || definition.predicate.is_some() {
        return None;
    }
    let is_part = |(at, part): (usize, &IndexPart)| match part {
        _ if !matches!(index.key_columns()[at].data_type, DataType::Geometry(_)) => false,
        IndexPart::Column(of) => {
            let column = place.downcast_ref::<Column>().and_then(|column| scan.column(column.index()));
            column.is_some_and(|(column, _)| column == *of)
        }
        IndexPart::Expression(_) => {
            let known = index.expression(at);
            let Some(known) = known.as_deref().and_then(CompiledExpression::of) else { return false };
            let Ok(schema) = DFSchema::try_from(scan.schema()) else { return false };
            let context = PhysicalPlanningContext::default();
            let known = create_physical_expr(known.logical(), &schema, &ExecutionProps::new(), &context);
            known.is_ok_and(|known| are_same(&known, place))
        }
    };
    definition.parts.iter().enumerate().position(is_part)
}

/// Whether two expressions are of the same calls, whatever the settings were when they were planned.
fn are_same(one: &Arc<dyn PhysicalExpr>, other: &Arc<dyn PhysicalExpr>) -> bool {
    let call = |expr: &Arc<dyn PhysicalExpr>| {
        expr.downcast_ref::<ScalarFunctionExpr>().map(|call| (call.fun().clone(), call.args().to_vec()))
    };
    match (call(one), call(other)) {
        (Some((one, of_one)), Some((other, of_other))) => {
            let are_args_same = of_one.iter().zip(&of_other).all(|(one, other)| are_same(one, other));
            one == other && of_one.len() == of_other.len() && are_args_same
        }
        _ => one.as_ref() == other.as_ref(),
    }
}
