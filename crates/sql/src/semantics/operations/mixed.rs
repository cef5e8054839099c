//! Numbers of several types. Floats among others make floats of them, where the library makes numerics of all. Compared are
//! doubles; values that come together (`CASE`, `coalesce`, `UNION`, ...) are doubles if one of them is, else reals.
//!
//! Numerics become one that holds the digits of all, before and behind the point; the library cuts those before it when they
//! are more than 38 or 76 together.
use std::sync::Arc;

use arrow_schema::{DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION, DataType as ArrowType, Field, FieldRef};
use datafusion::common::{Column, DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::expr::{Between, Case, Cast, InList, InSubquery, SetComparison};
use datafusion::logical_expr::{
    BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator, Projection, Subquery, Union, cast, lit,
};

use super::decimals;
use crate::functions::numbers::unlimited::as_type;
use crate::values::numerics::{NUMERIC, is_exact, is_numeric};

/// The functions whose arguments become one type.
const JOINING: [&str; 5] = ["coalesce", "greatest", "least", "nullif", "make_array"];

/// The float that values of these types become, if any is one and not all are the same.
fn float_of<'a>(types: impl Iterator<Item = &'a ArrowType>, is_compared: bool) -> Option<ArrowType> {
    let (mut has_double, mut has_real, mut has_other) = (false, false, false);
    for found in types {
        match found {
            ArrowType::Float64 => has_double = true,
            ArrowType::Float32 => has_real = true,
            number if is_exact(number) => has_other = true,
            ArrowType::Null => {}
            // What is no number has its own rules.
            _ => return None,
        }
    }
    match (has_double, has_real) {
        (true, false) if !has_other => None,
        (true, _) => Some(ArrowType::Float64),
        (false, true) if has_other => Some(if is_compared { ArrowType::Float64 } else { ArrowType::Float32 }),
        _ => None,
    }
}

/// The numeric that holds all digits of values of these types, if they are numerics of several types.
fn numeric_of<'a>(types: impl Iterator<Item = &'a ArrowType>) -> Option<ArrowType> {
    let (mut before, mut behind, mut seen) = (0, 0, Vec::new());
    for found in types.filter(|found| !found.is_null()) {
        let (precision, scale) = decimals::digits(found)?;
        before = before.max(i16::from(precision) - i16::from(scale));
        behind = behind.max(scale);
        if !seen.contains(&found) {
            seen.push(found);
        }
    }
    if seen.len() < 2 || !seen.iter().any(|found| found.is_decimal()) {
        return None;
    }
    match u8::try_from(before + i16::from(behind)) {
        Ok(precision @ ..=DECIMAL128_MAX_PRECISION) => Some(ArrowType::Decimal128(precision, behind)),
        _ => Some(ArrowType::Decimal256(DECIMAL256_MAX_PRECISION, behind)),
    }
}

/// The type that values of these types become, if it is not the library's.
pub(crate) fn common_of<'a>(
    types: impl Iterator<Item = &'a ArrowType> + Clone,
    is_compared: bool,
) -> Option<ArrowType> {
    if let Some(float_or_numeric) = float_of(types.clone(), is_compared).or_else(|| unlimited_of(types.clone())) {
        return Some(float_or_numeric);
    }
    let wide = || numeric_of(types.clone()).filter(|numeric| matches!(numeric, ArrowType::Decimal256(..)));
    wide()
}

/// The type of numerics without limits, if one of these is it beside others of exact numbers.
fn unlimited_of<'a>(types: impl Iterator<Item = &'a ArrowType> + Clone) -> Option<ArrowType> {
    let mut known = types.filter(|found| !found.is_null());
    let has_both = known.clone().any(is_numeric) && known.clone().any(|found| !is_numeric(found));
    (has_both && known.all(is_exact)).then_some(NUMERIC)
}

fn is_exact_literal(expr: &Expr) -> bool {
    matches!(expr, Expr::Literal(value, _) if value.data_type().is_decimal() || value.data_type().is_integer())
}

/// Whether a literal is a number that a real has, too: compared with a real, it is the same as one and as a double, and the
/// column beside it need not be cast, which a condition that the storage tests must not be.
fn is_real(expr: &Expr) -> bool {
    let Expr::Literal(value, _) = expr else { return false };
    match value.cast_to(&ArrowType::Float64) {
        Ok(ScalarValue::Float64(Some(double))) => f64::from(double as f32) == double,
        _ => false,
    }
}

/// The type of a value, for a whole number that is spelled out the smallest that holds it.
fn type_of(value: &Expr, schema: &DFSchema) -> Option<ArrowType> {
    match value {
        Expr::Literal(ScalarValue::Int64(Some(number)), _) if i32::try_from(*number).is_ok() => Some(ArrowType::Int32),
        other => other.get_type(schema).ok(),
    }
}

/// Makes one type of values: floats, if one of them is a float; numerics that hold all of their digits.
fn unify(values: &mut [&mut Expr], schema: &DFSchema, is_compared: bool) {
    let types: Option<Vec<ArrowType>> = values.iter().map(|value| type_of(value, schema)).collect();
    // What is given together has its digits settled now, as the type that it has next decides on others.
    let settled = |types: &Vec<ArrowType>| (!is_compared).then(|| numeric_of(types.iter())).flatten();
    let common = |types: &Vec<ArrowType>| common_of(types.iter(), is_compared).or_else(|| settled(types));
    let Some(mut to) = types.as_ref().and_then(common) else { return };
    let mut with_types = values.iter().zip(types.iter().flatten());
    if to.is_floating()
        && with_types.all(|(value, from)| *from == ArrowType::Float32 || (is_exact_literal(value) && is_real(value)))
    {
        to = ArrowType::Float32;
    }
    for (value, from) in values.iter_mut().zip(types.iter().flatten()) {
        if *from != to && !from.is_null() {
            let inner = std::mem::replace(*value, lit(false));
            **value = as_type(inner, from, &to);
        }
    }
}

/// An expression by these rules, if they say anything of it.
pub(crate) fn adapt(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    Ok(match expr {
        Expr::BinaryExpr(BinaryExpr { mut left, op, mut right })
            if matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom) =>
        {
            unify(&mut [&mut *left, &mut *right], schema, true);
            Expr::BinaryExpr(BinaryExpr { left, op, right })
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right })
            if matches!(op, Operator::Plus | Operator::Minus | Operator::Multiply | Operator::Modulo) =>
        {
            let (left, right) = of_one_width(left, right, schema);
            Expr::BinaryExpr(BinaryExpr { left, op, right })
        }
        Expr::Between(Between { mut expr, negated, mut low, mut high }) => {
            unify(&mut [&mut *expr, &mut *low, &mut *high], schema, true);
            Expr::Between(Between { expr, negated, low, high })
        }
        Expr::InList(InList { mut expr, mut list, negated }) => {
            // Long lists are of one type; the first of them tells.
            let ends: Vec<&Expr> = std::iter::once(&*expr).chain(list.iter().take(20)).collect();
            let is_wide = |found: &ArrowType| {
                found.is_floating() || is_numeric(found) || matches!(found, ArrowType::Decimal256(..))
            };
            let is_mixed = ends.iter().any(|end| matches!(end.get_type(schema), Ok(found) if is_wide(&found)));
            if is_mixed {
                let mut values: Vec<&mut Expr> = std::iter::once(&mut *expr).chain(list.iter_mut()).collect();
                unify(&mut values, schema, false);
            }
            Expr::InList(InList { expr, list, negated })
        }
        Expr::InSubquery(InSubquery { expr, subquery, negated }) => {
            let (expr, subquery) = beside_subquery(expr, subquery, schema)?;
            Expr::InSubquery(InSubquery { expr, subquery, negated })
        }
        Expr::SetComparison(SetComparison { expr, subquery, op, quantifier }) => {
            let (expr, subquery) = beside_subquery(expr, subquery, schema)?;
            Expr::SetComparison(SetComparison { expr, subquery, op, quantifier })
        }
        Expr::Case(mut case) => {
            unify_case(&mut case, schema);
            Expr::Case(case)
        }
        Expr::ScalarFunction(mut call) if JOINING.contains(&call.name()) => {
            let is_nullif = call.name() == "nullif";
            if let [first, second] = &mut call.args[..]
                && is_nullif
            {
                narrow(first, second, schema);
            }
            let first = call.args.first().and_then(|first| first.get_type(schema).ok());
            unify(&mut call.args.iter_mut().collect::<Vec<_>>(), schema, is_nullif);
            let compared = if is_nullif { nullif_of_floats(&call.args, schema) } else { None };
            let call = compared.unwrap_or(Expr::ScalarFunction(call));
            // It gives its first argument as it is.
            if is_nullif && first == Some(ArrowType::Float32) { cast(call, ArrowType::Float32) } else { call }
        }
        other => other,
    })
}

/// Operands of a comparison as numbers of one type, if one of them is a numeric without limits: the library compares these with no
/// other.
pub(crate) fn beside_unlimited(mut left: Expr, mut right: Expr, schema: &DFSchema) -> (Expr, Expr) {
    let is_unlimited = |expr: &Expr| expr.get_type(schema).is_ok_and(|found| is_numeric(&found));
    if is_unlimited(&left) || is_unlimited(&right) {
        unify(&mut [&mut left, &mut right], schema, true);
    }
    (left, right)
}

/// Operands as numerics of 256 bits, if one of them is one: the library has no operators for two widths.
pub(crate) fn of_one_width(left: Box<Expr>, right: Box<Expr>, schema: &DFSchema) -> (Box<Expr>, Box<Expr>) {
    let is_wide = |found: &ArrowType| matches!(found, ArrowType::Decimal256(..));
    let widened = |expr: Box<Expr>, found: &ArrowType| match decimals::digits(found) {
        Some((_, scale)) => Box::new(cast(*expr, ArrowType::Decimal256(DECIMAL256_MAX_PRECISION, scale))),
        None => expr,
    };
    match (left.get_type(schema), right.get_type(schema)) {
        (Ok(first), Ok(second)) if is_wide(&first) && !is_wide(&second) => (left, widened(right, &second)),
        (Ok(first), Ok(second)) if is_wide(&second) && !is_wide(&first) => (widened(left, &first), right),
        _ => (left, right),
    }
}

/// `nullif` of floats as a comparison, to which zero and minus zero are equal.
fn nullif_of_floats(args: &[Expr], schema: &DFSchema) -> Option<Expr> {
    let [first, second] = args else { return None };
    let is_float = |expr: &Expr| expr.get_type(schema).is_ok_and(|found| found.is_floating());
    if !is_float(first) || !is_float(second) || first.is_volatile() {
        return None;
    }
    let is_same = Expr::BinaryExpr(BinaryExpr::new(Box::new(first.clone()), Operator::Eq, Box::new(second.clone())));
    let nothing = lit(ScalarValue::try_from(&first.get_type(schema).ok()?).ok()?);
    let when_then_expr = vec![(Box::new(is_same), Box::new(nothing))];
    Some(Expr::Case(Case { expr: None, when_then_expr, else_expr: Some(Box::new(first.clone())) }))
}

/// A value and the column of a subquery that it is compared with.
fn beside_subquery(expr: Box<Expr>, mut subquery: Subquery, schema: &DFSchema) -> Result<(Box<Expr>, Subquery)> {
    let inner = subquery.subquery.schema().fields().first().map(|field| field.data_type().clone());
    let to = match (expr.get_type(schema).ok(), inner) {
        (Some(outer), Some(inner)) => common_of([&outer, &inner].into_iter(), true),
        _ => None,
    };
    let Some(to) = to else { return Ok((expr, subquery)) };
    let from = expr.get_type(schema)?;
    subquery.subquery = Arc::new(projected(Arc::unwrap_or_clone(subquery.subquery), &[Some(to.clone())])?);
    Ok((Box::new(as_type(*expr, &from, &to)), subquery))
}

/// `nullif` gives the type of its first argument, so that a literal beside a smaller integer becomes one.
fn narrow(first: &Expr, second: &mut Expr, schema: &DFSchema) {
    let literal = match &*second {
        Expr::Literal(value, _) => value,
        Expr::Cast(cast) => match &*cast.expr {
            Expr::Literal(value, _) => value,
            _ => return,
        },
        _ => return,
    };
    let Ok(to @ (ArrowType::Int16 | ArrowType::Int32)) = first.get_type(schema) else { return };
    if literal.data_type().is_integer()
        && let Ok(value) = literal.cast_to(&to)
        && value.is_null() == literal.is_null()
    {
        *second = Expr::Literal(value, None);
    }
}

fn unify_case(case: &mut Case, schema: &DFSchema) {
    if let Some(of) = &mut case.expr {
        let mut compared: Vec<&mut Expr> = vec![&mut **of];
        compared.extend(case.when_then_expr.iter_mut().map(|(when, _)| &mut **when));
        unify(&mut compared, schema, true);
    }
    let mut results: Vec<&mut Expr> = case.when_then_expr.iter_mut().map(|(_, then)| &mut **then).collect();
    results.extend(case.else_expr.iter_mut().map(|other| &mut **other));
    unify(&mut results, schema, false);
}

/// The conditions of a join that are pairs, and the columns of a union.
pub(crate) fn adapt_node(plan: LogicalPlan) -> Result<LogicalPlan> {
    match plan {
        LogicalPlan::Join(mut join) => {
            for (first, second) in &mut join.on {
                let types = (first.get_type(join.left.schema()), second.get_type(join.right.schema()));
                let (Ok(left), Ok(right)) = types else { continue };
                if let Some(to) = common_of([&left, &right].into_iter(), true) {
                    *first = as_type(std::mem::replace(first, lit(false)), &left, &to);
                    *second = as_type(std::mem::replace(second, lit(false)), &right, &to);
                }
            }
            Ok(LogicalPlan::Join(join))
        }
        LogicalPlan::Union(union) => unite(union),
        other => Ok(other),
    }
}

/// A union whose columns have the types that their numbers have in common.
pub(crate) fn unite(union: Union) -> Result<LogicalPlan> {
    let width = union.schema.fields().len();
    let field = |input: &Arc<LogicalPlan>, at: usize| input.schema().fields().get(at).cloned();
    let at = |input: &Arc<LogicalPlan>, at: usize| field(input, at).map(|field| field.data_type().clone());
    let known = |at: usize| union.schema.fields().get(at).map(|field| field.data_type().clone());
    let to: Vec<Option<FieldRef>> = (0..width)
        .map(|column| {
            let fields: Vec<FieldRef> = union.inputs.iter().filter_map(|input| field(input, column)).collect();
            let types: Vec<ArrowType> = fields.iter().map(|field| field.data_type().clone()).collect();
            // A union around this one must find its type settled.
            let exact = || unlimited_of(types.iter()).or_else(|| numeric_of(types.iter()));
            let of_numbers = float_of(types.iter(), false).or_else(exact);
            of_numbers.or_else(|| widest(&types)).map(unnamed).or_else(|| beside_null(&fields))
        })
        .collect();
    if to.iter().all(Option::is_none) {
        // What it was told of its columns may be older than a union within it.
        let is_old = |column: &usize| union.inputs.iter().all(|input| at(input, *column) != known(*column));
        return match (0..width).find(is_old) {
            None => Ok(LogicalPlan::Union(union)),
            Some(_) => Ok(LogicalPlan::Union(Union::try_new_with_loose_types(union.inputs)?)),
        };
    }
    let inputs = union.inputs.into_iter().map(|input| cast_to(Arc::unwrap_or_clone(input), &to).map(Arc::new));
    Ok(LogicalPlan::Union(Union::try_new_with_loose_types(inputs.collect::<Result<Vec<_>>>()?)?))
}

/// The widest of several integers, or of dates and times, beside which there are NULLs at most.
fn widest(types: &[ArrowType]) -> Option<ArrowType> {
    let rank = |found: &ArrowType| match found {
        ArrowType::Int16 => Some((0, 0)),
        ArrowType::Int32 => Some((0, 1)),
        ArrowType::Int64 => Some((0, 2)),
        ArrowType::Date32 => Some((1, 0)),
        ArrowType::Timestamp(_, None) => Some((1, 1)),
        ArrowType::Timestamp(_, Some(_)) => Some((1, 2)),
        _ => None,
    };
    let known: Vec<&ArrowType> = types.iter().filter(|found| !found.is_null()).collect();
    let kind = rank(known.first()?)?.0;
    let is_alike = |found: &&ArrowType| rank(found).is_some_and(|(of, _)| of == kind);
    let greatest = known.iter().max_by_key(|found| rank(found))?;
    (known.iter().all(is_alike) && known.iter().any(|found| found != greatest)).then(|| (*greatest).clone())
}

/// The type of values that stand beside NULLs alone, a text's length with it; not of untyped literals.
fn beside_null(fields: &[FieldRef]) -> Option<FieldRef> {
    let is_null = |field: &&FieldRef| field.data_type().is_null();
    let known = fields.iter().find(|field| !is_null(field) && *field.data_type() != ArrowType::Utf8)?;
    let are_alike = fields.iter().all(|field| is_null(&field) || field.data_type() == known.data_type());
    let to = Field::new("", known.data_type().clone(), true).with_metadata(known.metadata().clone());
    (are_alike && fields.iter().any(|field| is_null(&field))).then(|| Arc::new(to))
}

fn unnamed(data_type: ArrowType) -> FieldRef {
    Arc::new(Field::new("", data_type, true))
}

/// A plan with some columns cast to these types.
pub(crate) fn projected(plan: LogicalPlan, to: &[Option<ArrowType>]) -> Result<LogicalPlan> {
    cast_to(plan, &to.iter().map(|to| to.clone().map(unnamed)).collect::<Vec<_>>())
}

fn cast_to(plan: LogicalPlan, to: &[Option<FieldRef>]) -> Result<LogicalPlan> {
    let column = |(at, to): (usize, &Option<FieldRef>)| {
        let (qualifier, field) = plan.schema().qualified_field(at);
        let column = Expr::Column(Column::new(qualifier.cloned(), field.name()));
        // What is of the type already keeps the length of its own.
        match to.as_ref().filter(|to| to.metadata().is_empty() || field.data_type().is_null()) {
            None => column,
            Some(to) if is_numeric(to.data_type()) || is_numeric(field.data_type()) => {
                let converted = as_type(column, field.data_type(), to.data_type());
                converted.alias_qualified(qualifier.cloned(), field.name())
            }
            Some(to) => Expr::Cast(Cast::new_from_field(Box::new(column), to.clone()))
                .alias_qualified(qualifier.cloned(), field.name()),
        }
    };
    let columns = to.iter().enumerate().map(column).collect();
    Ok(LogicalPlan::Projection(Projection::try_new(columns, Arc::new(plan))?))
}
