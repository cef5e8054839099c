//! The names of columns: which table one comes from, so that its name can say so where a plan reads several, and names of what is
//! computed as people write them.
use std::sync::Arc;

use datafusion::common::{JoinSide, JoinType};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::utils::{ColumnIndex, JoinFilter, build_join_schema};
use datafusion::physical_plan::joins::{HashJoinExec, NestedLoopJoinExec, SortMergeJoinExec};
use datafusion::physical_plan::projection::ProjectionExec;

use crate::access::scan::ScanExec;
use crate::names::schemas::local;

/// The columns that an expression names.
pub(super) struct Columns<'p> {
    /// one operator, or the two sides of a join
    inputs: Vec<&'p Arc<dyn ExecutionPlan>>,
    /// where an expression of both sides has them
    places: &'p [ColumnIndex],
    /// Names say which table they are of.
    are_qualified: bool,
}

impl<'p> Columns<'p> {
    pub(super) fn of(input: &'p Arc<dyn ExecutionPlan>, are_qualified: bool) -> Columns<'p> {
        Columns { inputs: vec![input], places: &[], are_qualified }
    }

    /// Those of the condition of a join.
    pub(super) fn of_both(
        (left, right): (&'p Arc<dyn ExecutionPlan>, &'p Arc<dyn ExecutionPlan>),
        filter: &'p JoinFilter,
        are_qualified: bool,
    ) -> Columns<'p> {
        Columns { inputs: vec![left, right], places: filter.column_indices(), are_qualified }
    }

    /// The name of a column.
    pub(super) fn name(&self, column: &Column) -> String {
        let place = match self.inputs[..] {
            [input] => Some((input, column.index())),
            [left, right] => self.places.get(column.index()).map(|place| match place.side {
                JoinSide::Right => (right, place.index),
                JoinSide::Left | JoinSide::None => (left, place.index),
            }),
            _ => None,
        };
        match place.and_then(|(input, at)| origin(input, at)) {
            Some((table, name)) if self.are_qualified => format!("{table}.{name}"),
            Some((_, name)) => name,
            None => plain(column.name()),
        }
    }
}

/// How many tables a plan reads.
pub(super) fn tables(plan: &Arc<dyn ExecutionPlan>) -> usize {
    let below: usize = plan.children().into_iter().map(tables).sum();
    below + usize::from(plan.is::<ScanExec>())
}

/// The table and the name there of a column that an operator gives, unless it is computed.
#[recursive::recursive]
fn origin(plan: &Arc<dyn ExecutionPlan>, at: usize) -> Option<(String, String)> {
    if let Some(scan) = plan.downcast_ref::<ScanExec>() {
        let schema = plan.schema();
        let name = schema.fields().get(at)?.name();
        return Some((plain(local(scan.table().name())), plain(name)));
    }
    let of = |input: &Arc<dyn ExecutionPlan>, expr: &Arc<dyn PhysicalExpr>| {
        origin(input, expr.downcast_ref::<Column>()?.index())
    };
    if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        return of(projection.input(), &projection.expr().get(at)?.expr);
    }
    if let Some(aggregate) = plan.downcast_ref::<AggregateExec>() {
        return of(aggregate.input(), &aggregate.group_expr().expr().get(at)?.0);
    }
    if let Some(filter) = plan.downcast_ref::<FilterExec>() {
        return origin(filter.input(), projected(filter.projection().as_deref(), at)?);
    }
    if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
        let at = projected(join.projection.as_deref(), at)?;
        return of_side((join.left(), join.right()), *join.join_type(), at);
    }
    if let Some(join) = plan.downcast_ref::<NestedLoopJoinExec>() {
        let at = projected(join.projection().as_deref(), at)?;
        return of_side((join.left(), join.right()), *join.join_type(), at);
    }
    if let Some(join) = plan.downcast_ref::<SortMergeJoinExec>() {
        return of_side((join.left(), join.right()), join.join_type(), at);
    }
    match plan.children()[..] {
        [input] if input.schema().fields() == plan.schema().fields() => origin(input, at),
        _ => None,
    }
}

fn projected(projection: Option<&[usize]>, at: usize) -> Option<usize> {
    projection.map_or(Some(at), |columns| columns.get(at).copied())
}

/// A column that a join gives.
fn of_side(
    (left, right): (&Arc<dyn ExecutionPlan>, &Arc<dyn ExecutionPlan>),
    of: JoinType,
    at: usize,
) -> Option<(String, String)> {
    let (_, places) = build_join_schema(&left.schema(), &right.schema(), &of);
    let place = places.get(at)?;
    match place.side {
        JoinSide::Left => origin(left, place.index),
        JoinSide::Right => origin(right, place.index),
        JoinSide::None => None,
    }
}

/// How the library marks a constant in the names that it makes of expressions.
const MARKS: [&str; 8] = ["Int16(", "Int32(", "Int64(", "Float32(", "Float64(", "Utf8(", "Utf8View(", "Boolean("];

/// A text without the marks of names that only we can spell.
pub(super) fn unmarked(text: &str) -> String {
    text.replace('\0', "")
}

/// A name without these marks, and those of the library's constants.
pub(super) fn plain(name: &str) -> String {
    let mut name = unmarked(name).replace("count(Int64(1))", "count(*)");
    for mark in MARKS {
        while let Some(start) = name.find(mark) {
            let Some(length) = name[start..].find(')') else { break };
            let inner = name[start + mark.len()..start + length].replace('"', "'");
            name.replace_range(start..=start + length, &inner);
        }
    }
    name
}
