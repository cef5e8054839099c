//! Values that are equal without being the same: intervals, as a month and thirty days, and numerics without limits, as `1.5` and
//! `1.50`. What tells rows apart by them looks at their measure: the length of an interval, the number that a numeric is. Of equal
//! ones the first stands for all.
use std::sync::Arc;

use arrow_schema::DataType as ArrowType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::functions_aggregate::expr_fn::first_value;
use datafusion::logical_expr::expr::{Between, Case, InList, InSubquery, ScalarFunction, SetComparison};
use datafusion::logical_expr::{
    Aggregate, BinaryExpr, Distinct, DistinctOn, Expr, ExprSchemable, GroupingSet, LogicalPlan, Operator, Projection,
    Subquery, WindowFrameBound, WindowFrameUnits, lit,
};

use crate::functions::numbers::unlimited;
use crate::functions::times::intervals;
use crate::values::numerics::is_numeric;

/// Of so many values at most the greatest is found by comparing each with all.
const CHOSEN_MOST: usize = 16;

/// Types of which values are equal without being the same.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Measured {
    Interval,
    Numeric,
}

impl Measured {
    fn of_type(found: &ArrowType) -> Option<Measured> {
        match found {
            ArrowType::Interval(_) => Some(Measured::Interval),
            found if is_numeric(found) => Some(Measured::Numeric),
            _ => None,
        }
    }

    fn of(expr: &Expr, schema: &DFSchema) -> Option<Measured> {
        match expr {
            Expr::Literal(value, _) => Measured::of_type(&value.data_type()),
            other => Measured::of_type(&other.get_type(schema).ok()?),
        }
    }

    /// The measure of a value of the type.
    fn key(self, expr: Expr) -> Expr {
        match self {
            Measured::Interval => intervals::order(expr),
            Measured::Numeric => unlimited::key(expr),
        }
    }

    /// No value of the type.
    fn nothing(self) -> ScalarValue {
        match self {
            Measured::Interval => ScalarValue::IntervalMonthDayNano(None),
            Measured::Numeric => ScalarValue::Binary(None),
        }
    }
}

/// Puts the measure of a value in its place, if it has one.
fn measure(expr: &mut Expr, schema: &DFSchema) {
    if let Some(of) = Measured::of(expr, schema) {
        let inner = std::mem::replace(expr, lit(false));
        *expr = of.key(inner);
    }
}

/// The type of two values, if both are of one of these.
fn of_both(left: &Expr, right: &Expr, schema: &DFSchema) -> Option<Measured> {
    Measured::of(left, schema).filter(|of| Measured::of(right, schema) == Some(*of))
}

fn is_comparison(op: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq)
}

/// Expressions that tell such values apart.
pub(crate) fn adapt(expr: Expr, schema: &DFSchema) -> Expr {
    match expr {
        compared @ (Expr::BinaryExpr(_) | Expr::Between(_)) => compare(compared, schema),
        Expr::InList(InList { mut expr, mut list, negated })
            if list.iter().all(|item| of_both(&expr, item, schema).is_some()) =>
        {
            measure(&mut expr, schema);
            list.iter_mut().for_each(|item| measure(item, schema));
            Expr::InList(InList { expr, list, negated })
        }
        Expr::InSubquery(InSubquery { mut expr, mut subquery, negated }) => {
            measure_beside(&mut expr, &mut subquery, schema);
            Expr::InSubquery(InSubquery { expr, subquery, negated })
        }
        Expr::SetComparison(SetComparison { mut expr, mut subquery, op, quantifier }) => {
            measure_beside(&mut expr, &mut subquery, schema);
            Expr::SetComparison(SetComparison { expr, subquery, op, quantifier })
        }
        Expr::Case(Case { expr: Some(mut of), mut when_then_expr, else_expr })
            if when_then_expr.iter().all(|(when, _)| of_both(&of, when, schema).is_some()) =>
        {
            measure(&mut of, schema);
            when_then_expr.iter_mut().for_each(|(when, _)| measure(when, schema));
            Expr::Case(Case { expr: Some(of), when_then_expr, else_expr })
        }
        Expr::ScalarFunction(call)
            if call.args.len() <= CHOSEN_MOST
                && let Some(of) = call.args.iter().find_map(|arg| Measured::of(arg, schema))
                && call.args.iter().all(|arg| is_of_or_null(arg, of, schema) && !arg.is_volatile()) =>
        {
            chosen(call, of)
        }
        call @ (Expr::AggregateFunction(_) | Expr::WindowFunction(_)) => over_rows(call, schema),
        other => other,
    }
}

/// Comparisons of two values, and of one with two.
fn compare(expr: Expr, schema: &DFSchema) -> Expr {
    match expr {
        // Intervals are compared by a rule of times.
        Expr::BinaryExpr(BinaryExpr { mut left, op, mut right })
            if is_comparison(op) && of_both(&left, &right, schema) == Some(Measured::Numeric) =>
        {
            measure(&mut left, schema);
            measure(&mut right, schema);
            Expr::BinaryExpr(BinaryExpr { left, op, right })
        }
        Expr::Between(Between { mut expr, negated, mut low, mut high })
            if of_both(&expr, &low, schema) == Some(Measured::Numeric)
                && of_both(&expr, &high, schema) == Some(Measured::Numeric) =>
        {
            [&mut expr, &mut low, &mut high].into_iter().for_each(|of| measure(of, schema));
            Expr::Between(Between { expr, negated, low, high })
        }
        Expr::BinaryExpr(BinaryExpr {
            mut left,
            op: op @ (Operator::IsDistinctFrom | Operator::IsNotDistinctFrom),
            mut right,
        }) if of_both(&left, &right, schema).is_some() => {
            measure(&mut left, schema);
            measure(&mut right, schema);
            Expr::BinaryExpr(BinaryExpr { left, op, right })
        }
        other => other,
    }
}

/// Aggregates and windows, which tell rows apart or put them in order.
fn over_rows(expr: Expr, schema: &DFSchema) -> Expr {
    match expr {
        Expr::AggregateFunction(mut call) => {
            if call.params.distinct
                && call.func.name() == "count"
                && let [arg] = &mut call.params.args[..]
            {
                measure(arg, schema);
            }
            // Of distinct values, and of those of WITHIN GROUP, the order is that of the values themselves.
            if !call.params.distinct && !call.func.supports_within_group_clause() {
                call.params.order_by.iter_mut().for_each(|key| measure(&mut key.expr, schema));
            }
            Expr::AggregateFunction(call)
        }
        Expr::WindowFunction(mut call) => {
            let params = &mut call.params;
            let has_distance = params.window_frame.units == WindowFrameUnits::Range
                && [&params.window_frame.start_bound, &params.window_frame.end_bound].into_iter().any(is_distance);
            for key in params.order_by.iter_mut().map(|key| &mut key.expr) {
                match Measured::of(key, schema) {
                    Some(Measured::Numeric) if has_distance => {
                        *key = unlimited::converted(std::mem::take(key), ArrowType::Float64);
                    }
                    Some(Measured::Numeric) => *key = unlimited::order(std::mem::take(key)),
                    _ => measure(key, schema),
                }
            }
            params.partition_by.iter_mut().for_each(|key| measure(key, schema));
            Expr::WindowFunction(call)
        }
        other => other,
    }
}

fn is_null(expr: &Expr) -> bool {
    matches!(expr, Expr::Literal(value, _) if value.is_null())
}

/// Whether a bound of a window's frame is so far from the row.
fn is_distance(bound: &WindowFrameBound) -> bool {
    match bound {
        WindowFrameBound::Preceding(distance) | WindowFrameBound::Following(distance) => !distance.is_null(),
        WindowFrameBound::CurrentRow => false,
    }
}

fn is_of_or_null(expr: &Expr, of: Measured, schema: &DFSchema) -> bool {
    Measured::of(expr, schema) == Some(of) || matches!(expr.get_type(schema), Ok(ArrowType::Null))
}

/// A function that gives one of its arguments, by their measures.
fn chosen(call: ScalarFunction, of: Measured) -> Expr {
    let length = |expr: &Expr| of.key(expr.clone());
    let nothing = Expr::Literal(of.nothing(), None);
    let (branches, otherwise) = match (call.name(), &call.args[..]) {
        ("nullif", [first, second]) if !is_null(second) => {
            (vec![(length(first).eq(length(second)), nothing)], first.clone())
        }
        (name @ ("greatest" | "least"), args) => {
            let args: Vec<&Expr> = args.iter().filter(|arg| !is_null(arg)).collect();
            let is_beyond = |other: &Expr, arg: &Expr| match name {
                "greatest" => length(other).gt(length(arg)),
                _ => length(other).lt(length(arg)),
            };
            let branch = |arg: &Expr| {
                let others = args.iter().copied().filter(|other| *other != arg);
                let none_beyond = others.map(|other| is_beyond(other, arg).is_not_true());
                (none_beyond.fold(arg.clone().is_not_null(), Expr::and), arg.clone())
            };
            (args.iter().copied().map(branch).collect(), nothing)
        }
        _ => return Expr::ScalarFunction(call),
    };
    let when_then_expr = branches.into_iter().map(|(when, then)| (Box::new(when), Box::new(then))).collect();
    Expr::Case(Case { expr: None, when_then_expr, else_expr: Some(Box::new(otherwise)) })
}

/// Puts measures in the place of a value and of those of a query that it is compared with, if it has one.
fn measure_beside(expr: &mut Expr, subquery: &mut Subquery, schema: &DFSchema) {
    let Some(of) = Measured::of(expr, schema) else { return };
    if let Ok(measured) = measured_column(Arc::unwrap_or_clone(subquery.subquery.clone()), of) {
        subquery.subquery = Arc::new(measured);
        measure(expr, schema);
    }
}

/// A query of one column, as the measures of its values.
fn measured_column(plan: LogicalPlan, of: Measured) -> Result<LogicalPlan> {
    let (qualifier, field) = plan.schema().qualified_field(0);
    let column = Expr::Column(Column::new(qualifier.cloned(), field.name()));
    let measured = of.key(column).alias_qualified(qualifier.cloned(), field.name());
    Ok(LogicalPlan::Projection(Projection::try_new(vec![measured], Arc::new(plan))?))
}

/// Nodes that tell rows apart, or put them in order.
pub(crate) fn adapt_node(plan: LogicalPlan) -> Result<LogicalPlan> {
    match plan {
        LogicalPlan::Sort(mut sort) => {
            let schema = sort.input.schema().clone();
            sort.expr.iter_mut().for_each(|key| measure(&mut key.expr, &schema));
            Ok(LogicalPlan::Sort(sort))
        }
        LogicalPlan::Distinct(Distinct::All(input)) => {
            let schema = input.schema().clone();
            let columns = schema.columns().into_iter().map(Expr::Column).collect::<Vec<_>>();
            if !columns.iter().any(|column| Measured::of(column, &schema).is_some()) {
                return Ok(LogicalPlan::Distinct(Distinct::All(input)));
            }
            let mut keys = columns.clone();
            keys.iter_mut().for_each(|key| measure(key, &schema));
            Ok(LogicalPlan::Distinct(Distinct::On(DistinctOn::try_new(keys, columns, None, input)?)))
        }
        LogicalPlan::Distinct(Distinct::On(mut on)) => {
            let schema = on.input.schema().clone();
            on.on_expr.iter_mut().for_each(|key| measure(key, &schema));
            on.sort_expr.iter_mut().flatten().for_each(|key| measure(&mut key.expr, &schema));
            Ok(LogicalPlan::Distinct(Distinct::On(on)))
        }
        LogicalPlan::Aggregate(aggregate) => group(aggregate),
        LogicalPlan::Join(mut join) => {
            for (left, right) in &mut join.on {
                let of = Measured::of(left, join.left.schema());
                if of.is_some() && of == Measured::of(right, join.right.schema()) {
                    measure(left, join.left.schema());
                    measure(right, join.right.schema());
                }
            }
            Ok(LogicalPlan::Join(join))
        }
        other => Ok(other),
    }
}

/// Groups by sets of keys, of which numerics are such as stand for all that are equal.
fn group_by_sets(aggregate: Aggregate) -> Result<LogicalPlan> {
    let inner = aggregate.input.schema().clone();
    let plain = |expr: Expr| match Measured::of(&expr, &inner) {
        Some(Measured::Numeric) => Transformed::yes(unlimited::plain(expr)),
        _ => Transformed::no(expr),
    };
    let each = |exprs: Vec<Expr>| {
        let exprs = exprs.into_iter().map(plain).collect::<Vec<_>>();
        let is_changed = exprs.iter().any(|expr| expr.transformed);
        (exprs.into_iter().map(|expr| expr.data).collect::<Vec<_>>(), is_changed)
    };
    let mut is_changed = false;
    let mut keys = Vec::with_capacity(aggregate.group_expr.len());
    for key in aggregate.group_expr.clone() {
        let (key, changed) = match key {
            Expr::GroupingSet(GroupingSet::Rollup(exprs)) => {
                let (exprs, changed) = each(exprs);
                (Expr::GroupingSet(GroupingSet::Rollup(exprs)), changed)
            }
            Expr::GroupingSet(GroupingSet::Cube(exprs)) => {
                let (exprs, changed) = each(exprs);
                (Expr::GroupingSet(GroupingSet::Cube(exprs)), changed)
            }
            Expr::GroupingSet(GroupingSet::GroupingSets(sets)) => {
                let sets: Vec<_> = sets.into_iter().map(each).collect();
                let changed = sets.iter().any(|(_, changed)| *changed);
                let sets = sets.into_iter().map(|(exprs, _)| exprs).collect();
                (Expr::GroupingSet(GroupingSet::GroupingSets(sets)), changed)
            }
            other => {
                let key = plain(other);
                (key.data, key.transformed)
            }
        };
        is_changed |= changed;
        keys.push(key);
    }
    if !is_changed {
        return Ok(LogicalPlan::Aggregate(aggregate));
    }
    let is_grouping = |call: &Expr| matches!(call, Expr::AggregateFunction(call) if call.func.name() == "grouping");
    let asks = aggregate.aggr_expr.iter().any(is_grouping);
    let asked = |call: Expr| match call {
        Expr::AggregateFunction(mut call) if call.func.name() == "grouping" => {
            call.params.args = std::mem::take(&mut call.params.args).into_iter().map(|arg| plain(arg).data).collect();
            Expr::AggregateFunction(call)
        }
        other => other,
    };
    let calls = aggregate.aggr_expr.iter().cloned().map(asked).collect();
    let grouped = Aggregate::try_new(aggregate.input, keys, calls)?;
    let column = |at: usize| {
        let ((of, field), (qualifier, named)) =
            (grouped.schema.qualified_field(at), aggregate.schema.qualified_field(at));
        Expr::Column(Column::new(of.cloned(), field.name())).alias_qualified(qualifier.cloned(), named.name())
    };
    // The number of the set is read where `grouping` was, once the library has put it there; while it has not, it makes its own.
    let is_shown = |at: &usize| !asks || grouped.schema.field(*at).name() != Aggregate::INTERNAL_GROUPING_ID;
    let columns = (0..grouped.schema.fields().len()).filter(is_shown).map(column).collect();
    Ok(LogicalPlan::Projection(Projection::try_new(columns, Arc::new(LogicalPlan::Aggregate(grouped)))?))
}

/// The keys of groups, each once: the library gives a key that is named twice (`GROUP BY t.x, x`) one column.
pub(crate) fn keys_once(aggregate: &Aggregate) -> Vec<Expr> {
    let mut keys: Vec<Expr> = Vec::with_capacity(aggregate.group_expr.len());
    for key in &aggregate.group_expr {
        if !keys.contains(key) {
            keys.push(key.clone());
        }
    }
    keys
}

/// Groups by measures, and takes the first value of each group for all of it.
fn group(aggregate: Aggregate) -> Result<LogicalPlan> {
    let inner = aggregate.input.schema().clone();
    if aggregate.group_expr.iter().any(|key| matches!(key, Expr::GroupingSet(_))) {
        return group_by_sets(aggregate);
    }
    if !aggregate.group_expr.iter().any(|key| Measured::of(key, &inner).is_some()) {
        return Ok(LogicalPlan::Aggregate(aggregate));
    }
    let outer = aggregate.schema.clone();
    let given = keys_once(&aggregate);
    let (mut keys, mut calls) = (given.clone(), aggregate.aggr_expr.clone());
    let plain = calls.len();
    for key in &mut keys {
        if Measured::of(key, &inner).is_some() {
            *key = std::mem::take(key).unalias();
            calls.push(first_value(key.clone(), Vec::new()));
            measure(key, &inner);
        }
    }
    let grouped = Aggregate::try_new(aggregate.input, keys.clone(), calls)?;
    let column = |at: usize| {
        let (qualifier, field) = grouped.schema.qualified_field(at);
        Expr::Column(Column::new(qualifier.cloned(), field.name()))
    };
    let mut first = keys.len() + plain;
    let mut columns = Vec::with_capacity(first);
    for at in 0..keys.len() + plain {
        let (qualifier, field) = outer.qualified_field(at);
        let is_measured = given.get(at).is_some_and(|key| Measured::of(key, &inner).is_some());
        let value = if is_measured { column(first) } else { column(at) };
        first += usize::from(is_measured);
        columns.push(value.alias_qualified(qualifier.cloned(), field.name()));
    }
    Ok(LogicalPlan::Projection(Projection::try_new(columns, Arc::new(LogicalPlan::Aggregate(grouped)))?))
}
