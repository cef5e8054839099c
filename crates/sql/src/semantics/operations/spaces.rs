//! Where ranges, points, boxes, circles, addresses and times with their zone are not as other values are: their casts, and that shapes
//! have no order.
use arrow_schema::{DataType as ArrowType, Field};
use datafusion::common::{DFSchema, FunctionalDependence, ScalarValue};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::expr::{AggregateFunction, Sort, WindowFunction};
use datafusion::logical_expr::{Distinct, Expr, ExprSchemable, LogicalPlan, Operator, ScalarUDF};
use engine::{DataType, GeometryKind};

use super::json::no_cast;
use crate::error::SqlError;
use crate::functions::spaces::{TO_TIME, becomes, named, operands_of, operator};
use crate::values::types::{is_space, type_name};
use crate::values::zoned::is_moment;

/// The range type, geometric type or type of addresses that an Arrow type is.
pub(crate) fn space_of(found: &ArrowType) -> Option<DataType> {
    is_space(found).then(|| DataType::from_arrow(found)).flatten()
}

/// Whether an Arrow type is that of points, boxes or circles.
pub(crate) fn is_shape(found: &ArrowType) -> bool {
    matches!(space_of(found), Some(DataType::Geometry(_)))
}

/// Whether an Arrow type is that of addresses.
pub(crate) fn is_network(found: &ArrowType) -> bool {
    matches!(space_of(found), Some(DataType::Network(_)))
}

/// Whether an Arrow type is that of times of day with their zone.
pub(crate) fn is_zoned_time(found: &ArrowType) -> bool {
    space_of(found) == Some(DataType::TimeTz)
}

/// Whether values of these types are compared by operators that are functions: shapes, and addresses of two kinds.
pub(crate) fn need_operators<'t>(mut types: impl Iterator<Item = &'t ArrowType> + Clone) -> bool {
    let first = types.clone().find(|found| is_network(found));
    types.any(|found| is_shape(found) || is_network(found) && first.is_some_and(|first| first != found))
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
        (Some(DataType::Network(_)), Some(DataType::Network(to))) => named(to.name()),
        (Some(DataType::TimeTz), None) if matches!(to, ArrowType::Time64(_)) => operator(TO_TIME),
        (None, Some(DataType::TimeTz)) if matches!(from, ArrowType::Time64(_)) || is_moment(from) => named("timetz"),
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

/// Refuses a node that sorts or groups by shapes, which one does not by what a key determines.
///
/// # Errors
/// Where it does.
pub(crate) fn check_node(node: &LogicalPlan, schema: &DFSchema) -> Result<()> {
    match node {
        LogicalPlan::Sort(sort) => check_order(&sort.expr, schema),
        LogicalPlan::Aggregate(aggregate) => check_groups(&aggregate.group_expr, schema),
        LogicalPlan::Distinct(Distinct::All(input)) => {
            input.schema().fields().iter().try_for_each(|field| equality_of(field.data_type()))
        }
        LogicalPlan::Distinct(Distinct::On(on)) => check_equality(&on.on_expr, schema),
        // A join on a condition compares by operators; this one stands for EXCEPT or INTERSECT.
        LogicalPlan::Join(join) => join.on.iter().try_for_each(|(left, right)| {
            [left, right].into_iter().filter_map(|key| key.get_type(schema).ok()).try_for_each(|key| equality_of(&key))
        }),
        _ => Ok(()),
    }
}

/// Refuses groups by shapes. Columns that a key among the groups determines are groups as well, without being named: the planner's
/// library adds them.
fn check_groups(groups: &[Expr], schema: &DFSchema) -> Result<()> {
    let place = |group: &Expr| group.try_as_col().and_then(|column| schema.maybe_index_of_column(column));
    let places: Vec<usize> = groups.iter().filter_map(place).collect();
    let is_key = |dependency: &&FunctionalDependence| {
        dependency.source_indices.iter().all(|source| places.contains(source)) && !dependency.source_indices.is_empty()
    };
    let keys: Vec<&FunctionalDependence> = schema.functional_dependencies().iter().filter(is_key).collect();
    let is_determined =
        |group: &Expr| place(group).is_some_and(|place| keys.iter().any(|key| key.target_indices.contains(&place)));
    groups.iter().filter(|group| !is_determined(group)).try_for_each(|group| match group.get_type(schema) {
        Ok(found) => equality_of(&found),
        Err(_) => Ok(()),
    })
}

/// The function of `=` of shapes of a type.
///
/// # Errors
/// Where there is none.
pub(crate) fn equal_shapes(shape: &ArrowType) -> Result<ScalarUDF> {
    let takes = |function: &ScalarUDF| operands_of(function).iter().any(|(left, _)| left.to_arrow() == *shape);
    operator("=").filter(takes).ok_or_else(|| {
        let message = format!("operator does not exist: {0} = {0}", type_name(shape));
        DataFusionError::External(Box::new(SqlError::new("42883", message)))
    })
}

/// Whether an expression may be compared with the members of a subquery's column by an operator; `None` if neither is a shape.
///
/// # Errors
/// Where there is no such operator, or not yet.
pub(crate) fn check_members(expr: &Expr, op: Operator, column: &Field, schema: &DFSchema) -> Option<Result<()>> {
    let (found, members) = (expr.get_type(schema).ok()?, column.data_type());
    if !is_shape(&found) && !is_shape(members) {
        return None;
    }
    let op = if op == Operator::NotEq { "<>".to_owned() } else { op.to_string() };
    let pairs = operator(&op).map(|function| operands_of(&function)).unwrap_or_default();
    let has = pairs.iter().any(|(left, right)| becomes(&found, *left) && *members == right.to_arrow());
    let is_point = space_of(members) == Some(DataType::Geometry(GeometryKind::Point));
    Some(match (has, is_point) {
        (true, false) => Ok(()),
        (true, true) => Err(DataFusionError::External(Box::new(SqlError::unsupported(format_args!(
            "{op} ANY or ALL over values of type point"
        ))))),
        (false, _) => {
            let message = format!("operator does not exist: {} {op} {}", type_name(&found), type_name(members));
            Err(DataFusionError::External(Box::new(SqlError::new("42883", message))))
        }
    })
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
