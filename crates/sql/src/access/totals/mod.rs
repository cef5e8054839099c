//! Aggregates without groups directly over a scan, answered by the storage on its encoded pages.
//!
//! An aggregate runs in two steps: a partial one for each partition of its input, which results in *states*, and a
//! final one that merges states. The rule puts [`TotalsExec`] in the place of the partial step and its scan: it
//! gives one row of states for the whole table. The final step stays, and with it the types of results and what
//! overflows.
mod exec;

use std::sync::Arc;

use arrow_schema::{DataType as ArrowType, FieldRef, Schema, SchemaRef};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::{CastExpr, Column, Literal};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use engine::{DataType, Table};

use crate::access::scan::{Bind, ScanExec};
use crate::syntax::walk::WalkTree;
use exec::TotalsExec;

/// The name of our `sum` in plans. The optimizer takes a sum of sums for the sum where the function is called `sum`, which would have
/// another type here.
pub(crate) const SUM: &str = "Sum";

/// One column of a state, of the column at this position among those asked of the storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Rows,
    Count(usize),
    Sum(usize),
    Min(usize),
    Max(usize),
}

/// Replaces partial aggregates over scans.
#[derive(Debug)]
pub(crate) struct AggregateScans;

impl PhysicalOptimizerRule for AggregateScans {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.change_up(|node| {
            Ok(match replace(&node)? {
                Some(replaced) => Transformed::yes(replaced),
                None => Transformed::no(node),
            })
        })
        .data()
    }

    fn name(&self) -> &str {
        "aggregate_scans"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// The table of totals, and what makes them at another moment; `None` for any other operator.
pub(super) fn bindable(plan: &Arc<dyn ExecutionPlan>) -> Option<(&Table, Bind)> {
    plan.downcast_ref::<TotalsExec>().map(|totals| (totals.table(), totals.bindable()))
}

fn replace(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let Some(aggregate) = plan.downcast_ref::<AggregateExec>() else { return Ok(None) };
    let is_plain = aggregate.group_expr().is_true_no_grouping()
        && aggregate.limit_options().is_none()
        && aggregate.filter_expr().iter().all(Option::is_none);
    let Some(scan) = aggregate.input().downcast_ref::<ScanExec>().filter(|scan| is_plain && scan.reads_all()) else {
        return Ok(None);
    };
    let (mut columns, mut parts, mut fields) = (Vec::new(), Vec::new(), Vec::new());
    for expr in aggregate.aggr_expr() {
        let state = expr.state_fields()?;
        let Some(found) = parts_of(expr, &state, scan, &mut columns) else { return Ok(None) };
        parts.extend(found);
        fields.extend(state);
    }
    let totals = |schema: SchemaRef| Arc::new(TotalsExec::new(scan, columns.clone(), parts.clone(), schema));
    match aggregate.mode() {
        AggregateMode::Partial => Ok(Some(totals(plan.schema()))),
        AggregateMode::Single | AggregateMode::SinglePartitioned => {
            let merged = AggregateExec::try_new(
                AggregateMode::Final,
                aggregate.group_expr().clone(),
                aggregate.aggr_expr().to_vec(),
                aggregate.filter_expr().to_vec(),
                totals(Arc::new(Schema::new(fields))),
                aggregate.input_schema(),
            )?;
            Ok(Some(Arc::new(merged)))
        }
        _ => Ok(None),
    }
}

/// The parts of an aggregate's state that the storage has to give; `None` where it can't.
fn parts_of(
    expr: &AggregateFunctionExpr,
    state: &[FieldRef],
    scan: &ScanExec,
    columns: &mut Vec<usize>,
) -> Option<Vec<Part>> {
    let name = expr.fun().name();
    if !expr.order_bys().is_empty() || (expr.is_distinct() && !matches!(name, "min" | "max")) {
        return None;
    }
    let args = expr.expressions();
    let [arg] = &args[..] else { return None };
    if name == "count"
        && let Some(literal) = arg.downcast_ref::<Literal>()
    {
        return (!literal.value().is_null()).then(|| vec![Part::Rows]);
    }
    let (column, data_type) = summand(arg, scan, matches!(name, SUM | "avg"))?;
    let place = columns.iter().position(|known| *known == column).unwrap_or_else(|| {
        columns.push(column);
        columns.len() - 1
    });
    let parts = match name {
        "count" => vec![Part::Count(place)],
        SUM => vec![Part::Sum(place)],
        "min" => vec![Part::Min(place)],
        "max" => vec![Part::Max(place)],
        "avg" => vec![Part::Count(place), Part::Sum(place)],
        _ => return None,
    };
    let fits = parts.len() == state.len()
        && parts.iter().zip(state).all(|(part, field)| has_type(*part, data_type, field.data_type()));
    fits.then_some(parts)
}

/// The column of the table that an argument is. Sums may have a cast around it that makes its numbers wider.
fn summand(arg: &Arc<dyn PhysicalExpr>, scan: &ScanExec, is_sum: bool) -> Option<(usize, DataType)> {
    let (column, cast) = match arg.downcast_ref::<CastExpr>() {
        Some(cast) => (cast.expr().downcast_ref::<Column>()?, Some(cast.cast_type())),
        None => (arg.downcast_ref::<Column>()?, None),
    };
    let (column, data_type) = scan.column(column.index())?;
    let is_wider = match (cast, data_type) {
        (None, _) => true,
        (Some(ArrowType::Int64), DataType::SmallInt | DataType::Integer) => is_sum,
        (Some(ArrowType::Float64), DataType::SmallInt | DataType::Integer | DataType::BigInt | DataType::Real) => {
            is_sum
        }
        _ => false,
    };
    is_wider.then_some((column, data_type))
}

/// Whether a part of a column of this type can be given as this type of a state.
fn has_type(part: Part, data_type: DataType, state: &ArrowType) -> bool {
    match part {
        Part::Rows | Part::Count(_) => matches!(state, ArrowType::Int64 | ArrowType::UInt64),
        Part::Min(_) | Part::Max(_) => *state == data_type.to_arrow(),
        Part::Sum(_) => match (data_type, state) {
            (DataType::SmallInt | DataType::Integer | DataType::BigInt, ArrowType::Decimal128(_, scale)) => *scale == 0,
            (DataType::Decimal { scale: stored, .. }, ArrowType::Decimal128(_, scale)) => *scale == stored,
            (
                DataType::SmallInt | DataType::Integer | DataType::BigInt | DataType::Real | DataType::Double,
                ArrowType::Float64,
            ) => true,
            _ => false,
        },
    }
}
