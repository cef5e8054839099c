//! Where ranges, points, boxes and circles are not as other values are: their casts, and that shapes have no order.
use arrow_schema::DataType as ArrowType;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::expr::{AggregateFunction, Case, Sort, WindowFunction};
use datafusion::logical_expr::{Distinct, Expr, ExprSchemable, LogicalPlan};
use engine::{DataType, GeometryKind};

use super::json::no_cast;
use crate::error::SqlError;
use crate::functions::spaces::named;
use crate::values::types::{is_space, type_name};

/// The range type or geometric type that an Arrow type is.
pub(crate) fn space_of(found: &ArrowType) -> Option<DataType> {
    is_space(found).then(|| DataType::from_arrow(found)).flatten()
}

/// Whether an Arrow type is that of points, boxes or circles.
pub(crate) fn is_shape(found: &ArrowType) -> bool {
    matches!(space_of(found), Some(DataType::Geometry(_)))
}

/// What a cast from or to one of these types is, if it is none between one type and itself or a text.
///
/// # Errors
/// Where there is no such cast.
pub(crate) fn cast(expr: &Expr, from: &ArrowType, to: &ArrowType) -> Result<Option<Expr>> {
    let is_text = |found: &ArrowType| matches!(found, ArrowType::Utf8 | ArrowType::Utf8View);
    if !(is_space(from) || is_space(to)) || from == to || from.is_null() || is_text(from) || is_text(to) {
        return Ok(None);
    }
    use GeometryKind::{Box, Circle, Point};
    let function = match (space_of(from), space_of(to)) {
        (Some(DataType::Geometry(from)), Some(DataType::Geometry(to))) => match (from, to) {
            (Box | Circle, Point) | (Point | Circle, Box) | (Box, Circle) => named(to.name()),
            _ => None,
        },
        _ => None,
    };
    match function {
        Some(function) => Ok(Some(function.call(vec![expr.clone()]))),
        // The planner reads every whole number as a bigint.
        None if matches!(expr, Expr::Literal(ScalarValue::Int64(Some(number)), _) if i32::try_from(*number).is_ok()) => {
            Err(no_cast("integer", &type_name(to)))
        }
        None => Err(no_cast(&type_name(from), &type_name(to))),
    }
}

fn no_operator(what: &str, found: &ArrowType) -> DataFusionError {
    let message = format!("could not identify an {what} operator for type {}", type_name(found));
    let error = SqlError::new("42883", message);
    let hint = "Use an explicit ordering operator or modify the query.";
    DataFusionError::External(Box::new(if what == "ordering" { error.hint(hint) } else { error }))
}

/// Refuses a node that sorts or groups by shapes.
///
/// # Errors
/// Where it does.
pub(crate) fn check_node(node: &LogicalPlan, schema: &DFSchema) -> Result<()> {
    match node {
        LogicalPlan::Sort(sort) => check_order(&sort.expr, schema),
        LogicalPlan::Aggregate(aggregate) => check_equality(&aggregate.group_expr, schema),
        LogicalPlan::Distinct(Distinct::All(input)) => {
            input.schema().fields().iter().try_for_each(|field| equality_of(field.data_type()))
        }
        LogicalPlan::Distinct(Distinct::On(on)) => check_equality(&on.on_expr, schema),
        // Written with `=` it is a condition of the join, as the operator is a function.
        LogicalPlan::Join(join) => join.on.iter().try_for_each(|(key, _)| match key.get_type(join.left.schema()) {
            Ok(found) if is_shape(&found) => Err(by_itself("USING", &found)),
            _ => Ok(()),
        }),
        _ => Ok(()),
    }
}

/// Refuses an expression that compares shapes without an operator: by their bytes, where `=` goes by their areas.
///
/// # Errors
/// Where it does.
pub(crate) fn check_compared(expr: &Expr, schema: &DFSchema) -> Result<()> {
    let (what, compared) = match expr {
        Expr::InList(list) => ("IN", &list.expr),
        Expr::Between(between) => ("BETWEEN", &between.expr),
        Expr::Case(Case { expr: Some(compared), .. }) => ("CASE", compared),
        _ => return Ok(()),
    };
    match compared.get_type(schema) {
        Ok(found) if is_shape(&found) => Err(by_itself(what, &found)),
        _ => Ok(()),
    }
}

fn by_itself(what: &str, found: &ArrowType) -> DataFusionError {
    let error = SqlError::unsupported(format_args!("{what} over values of type {}", type_name(found)));
    DataFusionError::External(Box::new(error.hint("Compare them one by one, with operators.")))
}

/// Refuses an aggregate of which shapes are sorted or told apart.
///
/// # Errors
/// Where they are.
pub(crate) fn check_aggregate(call: &AggregateFunction, schema: &DFSchema) -> Result<()> {
    if call.params.distinct {
        check_equality(&call.params.args, schema)?;
    }
    check_order(&call.params.order_by, schema)
}

/// Refuses a window that is sorted or divided by shapes.
///
/// # Errors
/// Where it is.
pub(crate) fn check_window(call: &WindowFunction, schema: &DFSchema) -> Result<()> {
    check_equality(&call.params.partition_by, schema)?;
    check_order(&call.params.order_by, schema)
}

fn check_order(order: &[Sort], schema: &DFSchema) -> Result<()> {
    for key in order {
        if let Ok(found) = key.expr.get_type(schema)
            && is_shape(&found)
        {
            return Err(no_operator("ordering", &found));
        }
    }
    Ok(())
}

fn check_equality(keys: &[Expr], schema: &DFSchema) -> Result<()> {
    keys.iter().filter_map(|key| key.get_type(schema).ok()).try_for_each(|found| equality_of(&found))
}

fn equality_of(found: &ArrowType) -> Result<()> {
    if is_shape(found) { Err(no_operator("equality", found)) } else { Ok(()) }
}
