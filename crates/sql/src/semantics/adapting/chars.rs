//! `char(n)`, `varchar(n)` and `text` among each other.
//!
//! The blanks at the end of a `char(n)` mean nothing, those of the others do. What is compared with a `char(n)` loses them,
//! unless it is a `text`. Where values of several types come together (`CASE`, `coalesce`, `UNION`, ...) the first that has a
//! type decides; one with a length keeps it if all have it. A `char` without a length (of zero characters here) is read
//! without blanks.
use std::sync::Arc;

use arrow_schema::FieldRef;
use datafusion::common::{Column, DFSchema};
use datafusion::error::Result;
use datafusion::logical_expr::expr::{Between, Case, InList, InSubquery, ScalarFunction};
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator, Projection, Union, lit};
use engine::DataType;

use super::untyped::{typed, untyped};
use super::{alike, lengths};
use crate::semantics::aggregates::extremes;
use crate::values::types::type_of_field;

const CHAR: DataType = DataType::Char { chars: 0 };
const VARCHAR: DataType = DataType::VARCHAR;

/// The type of an expression that is a `char(n)` or a `varchar(n)`; found without looking at all of it.
pub(crate) fn mark(expr: &Expr, schema: &DFSchema) -> Option<DataType> {
    let found = match expr {
        Expr::Column(column) => {
            let (qualifier, name) = (column.relation.as_ref(), &column.name);
            type_of_field(schema.field_with_name(qualifier, name).ok()?)
        }
        Expr::OuterReferenceColumn(field, _) => type_of_field(field),
        Expr::Cast(cast) => type_of_field(&cast.field),
        Expr::Alias(alias) => return mark(&alias.expr, schema),
        Expr::ScalarSubquery(subquery) => type_of_field(subquery.subquery.schema().fields().first()?),
        Expr::ScalarFunction(call) => lengths::given_by(call),
        Expr::Literal(_, Some(metadata)) => {
            let field = arrow_schema::Field::new("", arrow_schema::DataType::Utf8View, true);
            type_of_field(&metadata.add_to_field(field))
        }
        _ => None,
    };
    found.filter(|found| matches!(found, DataType::Char { .. } | DataType::Text { max_chars: Some(_) }))
}

fn is_char(mark: Option<DataType>) -> bool {
    matches!(mark, Some(DataType::Char { .. }))
}

/// Without the blanks that mean nothing beside a `char(n)`.
fn trimmed(expr: Expr) -> Expr {
    lengths::cut(expr, CHAR)
}

fn is_comparison(op: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom)
}

/// Two sides of a comparison: a `varchar` beside a `char` loses its blanks.
fn sides(left: Expr, right: Expr, schema: &DFSchema) -> (Expr, Expr) {
    match (mark(&left, schema), mark(&right, schema)) {
        (Some(DataType::Char { .. }), Some(DataType::Text { .. })) => (left, trimmed(right)),
        (Some(DataType::Text { .. }), Some(DataType::Char { .. })) => (trimmed(left), right),
        _ => (left, right),
    }
}

/// An expression by these rules, if they say anything of it.
pub(crate) fn adapt(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    Ok(match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_comparison(op) => {
            let (left, right) = sides(*left, *right, schema);
            Expr::BinaryExpr(BinaryExpr { left: Box::new(left), op, right: Box::new(right) })
        }
        Expr::Between(Between { expr, negated, low, high }) => between(*expr, negated, (*low, *high), schema),
        Expr::InList(InList { expr, list, negated }) if is_char(mark(&expr, schema)) => {
            let item = |item: Expr| {
                let is_constant = !item.any_column_refs() && !is_char(mark(&item, schema));
                if is_constant { trimmed(item) } else { sides((*expr).clone(), item, schema).1 }
            };
            let list = list.into_iter().map(item).collect();
            Expr::InList(InList { expr, list, negated })
        }
        Expr::InSubquery(InSubquery { expr, mut subquery, negated }) => {
            let inner = subquery.subquery.schema().fields().first().and_then(|field| type_of_field(field));
            let expr = match (mark(&expr, schema), inner) {
                (Some(DataType::Text { max_chars: Some(_) }), Some(DataType::Char { .. })) => Box::new(trimmed(*expr)),
                (Some(DataType::Char { .. }), Some(DataType::Text { max_chars: Some(_) })) => {
                    let plan = Arc::unwrap_or_clone(subquery.subquery);
                    subquery.subquery = Arc::new(projected(plan, &[Some(CHAR)])?);
                    expr
                }
                _ => expr,
            };
            Expr::InSubquery(InSubquery { expr, subquery, negated })
        }
        Expr::Case(case) => chosen(case, schema),
        Expr::ScalarFunction(call) => function(call, schema)?,
        Expr::AggregateFunction(mut call) => {
            let of = marked_type(&call.params.args, schema);
            if let Some(function) = of.and_then(|of| extremes::of_marked(&call.func, of)) {
                call.func = function;
            }
            if call.func.name() == "array_agg" {
                padded(&mut call.params.args, schema);
            }
            alike::of_hosts(call.func.name(), &mut call.params.args, schema);
            all_told_as_text(&mut call.params.args, schema);
            Expr::AggregateFunction(call)
        }
        Expr::WindowFunction(mut call) => {
            let of = marked_type(&call.params.args, schema);
            if let Some(function) = of.and_then(|of| extremes::over_window(&call.fun, of)) {
                call.fun = function;
            }
            alike::of_hosts(call.fun.name(), &mut call.params.args, schema);
            all_told_as_text(&mut call.params.args, schema);
            Expr::WindowFunction(call)
        }
        other => other,
    })
}

/// The type of the first argument, where Arrow does not say it.
fn marked_type(args: &[Expr], schema: &DFSchema) -> Option<DataType> {
    let first = args.first()?;
    let is_uuid = |field: FieldRef| type_of_field(&field) == Some(DataType::Uuid);
    mark(first, schema)
        .or_else(|| first.to_field(schema).is_ok_and(|(_, field)| is_uuid(field)).then_some(DataType::Uuid))
}

fn between(expr: Expr, negated: bool, (low, high): (Expr, Expr), schema: &DFSchema) -> Expr {
    let ends = [mark(&low, schema), mark(&high, schema)];
    let expr = match mark(&expr, schema) {
        Some(DataType::Text { .. }) if ends.iter().all(|end| is_char(*end)) => trimmed(expr),
        _ => expr,
    };
    let (low, high) = (sides(expr.clone(), low, schema).1, sides(expr.clone(), high, schema).1);
    Expr::Between(Between { expr: Box::new(expr), negated, low: Box::new(low), high: Box::new(high) })
}

/// What is not known to be of a type by itself.
fn is_unknown(expr: &Expr) -> bool {
    untyped(expr).is_some() || matches!(expr, Expr::Literal(value, _) if value.is_null())
}

/// The type of what comes of several values, in the order in which they count; `None` where it is none of these.
fn common(values: &[&Expr], schema: &DFSchema) -> Option<DataType> {
    let first = mark(values.iter().find(|value| !is_unknown(value))?, schema)?;
    let is_one = values.iter().all(|value| mark(value, schema) == Some(first));
    let are_of_it = || values.iter().all(|value| is_unknown(value) || mark(value, schema) == Some(first));
    Some(match first {
        _ if is_one => first,
        DataType::CITEXT | DataType::HSTORE if are_of_it() => first,
        DataType::CITEXT | DataType::HSTORE => DataType::TEXT,
        DataType::Char { .. } => CHAR,
        _ => VARCHAR,
    })
}

/// A value as one of that type.
fn become_one(value: &mut Expr, to: DataType, schema: &DFSchema) {
    if to == DataType::HSTORE
        && let Some(read) = untyped(value).and_then(|text| typed(text, to).ok())
    {
        *value = read;
    }
    if is_char(Some(to))
        && !is_char(mark(value, schema))
        && !matches!(value, Expr::Literal(value, _) if value.is_null())
    {
        *value = trimmed(std::mem::replace(value, lit(false)));
    }
}

fn chosen(mut case: Case, schema: &DFSchema) -> Expr {
    if let Some(of) = &case.expr
        && is_char(mark(of, schema))
    {
        for (when, _) in &mut case.when_then_expr {
            let is_blanked = untyped(when).is_some() || matches!(mark(when, schema), Some(DataType::Text { .. }));
            if is_blanked {
                **when = trimmed(std::mem::replace(when, lit(false)));
            }
        }
    }
    // Where the planner takes one branch for all, its type is that of the whole.
    case.when_then_expr.iter_mut().map(|(_, then)| then).chain(&mut case.else_expr).for_each(|result| {
        **result = told_as_text(std::mem::replace(result, lit(false)), schema);
    });
    let mut results: Vec<&Expr> = case.else_expr.iter().map(AsRef::as_ref).collect();
    results.extend(case.when_then_expr.iter().map(|(_, then)| then.as_ref()));
    let Some(to) = common(&results, schema) else { return Expr::Case(case) };
    case.when_then_expr.iter_mut().for_each(|(_, then)| become_one(then, to, schema));
    if let Some(other) = &mut case.else_expr {
        become_one(other, to, schema);
    }
    lengths::marked_as(Expr::Case(case), to)
}

fn function(mut call: ScalarFunction, schema: &DFSchema) -> Result<Expr> {
    match call.name() {
        "coalesce" | "greatest" | "least" => {
            all_told_as_text(&mut call.args, schema);
            let Some(to) = common(&call.args.iter().collect::<Vec<_>>(), schema) else {
                return Ok(Expr::ScalarFunction(call));
            };
            call.args.iter_mut().for_each(|arg| become_one(arg, to, schema));
            return Ok(lengths::marked_as(Expr::ScalarFunction(call), to));
        }
        "nullif" if call.args.len() == 2 => {
            let marks = [mark(&call.args[0], schema), mark(&call.args[1], schema)];
            let is_text = |at: usize| marks[at].is_none() && !is_unknown(&call.args[at]);
            // Compared, and so given back, are two of the type `char` unless one is a text.
            if !marks.iter().any(|mark| is_char(*mark)) || is_text(0) || is_text(1) {
                return Ok(Expr::ScalarFunction(call));
            }
            let to = marks[0].filter(|mark| is_char(Some(*mark))).unwrap_or(CHAR);
            call.args.iter_mut().for_each(|arg| become_one(arg, to, schema));
            return Ok(lengths::marked_as(Expr::ScalarFunction(call), to));
        }
        // These read values as they are shown.
        "octet_length" | "concat" | "concat_ws" | "format" | "make_array" | "struct" | "named_struct" | "row" => {
            padded(&mut call.args, schema);
        }
        _ => {}
    }
    Ok(Expr::ScalarFunction(call))
}

fn padded(args: &mut [Expr], schema: &DFSchema) {
    for arg in args {
        if let Some(DataType::Char { chars: 1.. }) = mark(arg, schema) {
            *arg = lengths::with_blanks(std::mem::replace(arg, lit(false)), schema);
        }
    }
}

/// A cast of a `varchar` to `text`, which changes nothing but the type that clients are told; anything else as it is.
pub(crate) fn told_as_text(expr: Expr, schema: &DFSchema) -> Expr {
    let is_text = |field: &arrow_schema::Field| type_of_field(field) == Some(DataType::TEXT);
    match expr {
        Expr::Alias(mut alias) => {
            *alias.expr = told_as_text(*alias.expr, schema);
            Expr::Alias(alias)
        }
        Expr::Cast(cast) if is_text(&cast.field) && matches!(mark(&cast.expr, schema), Some(DataType::Text { .. })) => {
            lengths::marked_as(*cast.expr, DataType::TEXT)
        }
        other => other,
    }
}

fn all_told_as_text(args: &mut [Expr], schema: &DFSchema) {
    for arg in args {
        *arg = told_as_text(std::mem::replace(arg, lit(false)), schema);
    }
}

/// The conditions of a join that are pairs of columns, and the columns of a union.
pub(crate) fn adapt_node(plan: LogicalPlan) -> Result<LogicalPlan> {
    match plan {
        LogicalPlan::Join(mut join) => {
            let (left, right) = (join.left.schema().clone(), join.right.schema().clone());
            for (first, second) in &mut join.on {
                match (mark(first, &left), mark(second, &right)) {
                    (Some(DataType::Char { .. }), Some(DataType::Text { .. })) => {
                        *second = trimmed(std::mem::replace(second, lit(false)));
                    }
                    (Some(DataType::Text { .. }), Some(DataType::Char { .. })) => {
                        *first = trimmed(std::mem::replace(first, lit(false)));
                    }
                    _ => {}
                }
            }
            Ok(LogicalPlan::Join(join))
        }
        LogicalPlan::Union(union) => unite(union),
        other => Ok(other),
    }
}

/// For each column its type if it is a `char(n)` or a `varchar(n)`.
fn marks_of(schema: &DFSchema) -> Vec<Option<DataType>> {
    let is_one = |found: &DataType| matches!(found, DataType::Char { .. } | DataType::Text { max_chars: Some(_) });
    schema.fields().iter().map(|field| type_of_field(field).filter(is_one)).collect()
}

fn unite(union: Union) -> Result<LogicalPlan> {
    let all: Vec<Vec<Option<DataType>>> = union.inputs.iter().map(|input| marks_of(input.schema())).collect();
    if all.windows(2).all(|pair| pair[0] == pair[1]) {
        // What it was told of its columns may be older than theirs.
        let is_settled = all.first().is_none_or(|first| marks_of(&union.schema) == *first);
        return match is_settled {
            true => Ok(LogicalPlan::Union(union)),
            false => Ok(LogicalPlan::Union(Union::try_new_with_loose_types(union.inputs)?)),
        };
    }
    let width = all.first().map_or(0, Vec::len);
    let mut to: Vec<Option<DataType>> = Vec::with_capacity(width);
    for at in 0..width {
        let is_one = all.iter().all(|marks| marks.get(at) == all[0].get(at));
        let is_text = |input: &Arc<LogicalPlan>| input.schema().field(at).data_type().is_string();
        to.push(match all[0][at] {
            _ if is_one || !union.inputs.iter().all(is_text) => None,
            Some(DataType::Char { .. }) => Some(CHAR),
            Some(DataType::CITEXT | DataType::HSTORE) => Some(DataType::TEXT),
            Some(_) => Some(VARCHAR),
            None => Some(DataType::TEXT),
        });
    }
    let inputs = union.inputs.into_iter().map(|input| projected(Arc::unwrap_or_clone(input), &to).map(Arc::new));
    let inputs = inputs.collect::<Result<Vec<_>>>()?;
    Ok(LogicalPlan::Union(Union::try_new_with_loose_types(inputs)?))
}

/// A plan with some columns as texts of these types.
fn projected(plan: LogicalPlan, to: &[Option<DataType>]) -> Result<LogicalPlan> {
    let column = |(at, to): (usize, &Option<DataType>)| {
        let (qualifier, field) = plan.schema().qualified_field(at);
        let column = Expr::Column(Column::new(qualifier.cloned(), field.name()));
        match to {
            None => column,
            Some(to) => lengths::cut(column, *to).alias_qualified(qualifier.cloned(), field.name()),
        }
    };
    let columns = to.iter().enumerate().map(column).collect();
    Ok(LogicalPlan::Projection(Projection::try_new(columns, Arc::new(plan))?))
}
