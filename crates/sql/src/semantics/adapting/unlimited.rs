//! Numerics without limits among the operands and arguments of expressions, once types are known.
use arrow_schema::DataType as ArrowType;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{Expr, ExprSchemable, WindowFunctionDefinition};
use engine::{ArrayItem, DataType};

use super::casts::CastItems;
use super::untyped::{failed, is_text, of_own_digits, typed};
use crate::functions::numbers::unlimited::{as_type, is_plain, plain, signs};
use crate::functions::statement::user::UserCall;
use crate::semantics::aggregates::of_doubles::OfDoubles;
use crate::semantics::operations::json;
use crate::values::input;
use crate::values::numerics::{NUMERIC, is_exact, is_list, is_numeric};
use crate::values::types::type_name;

/// The sign of an operand whose type is known now.
pub(super) fn signed(call: &ScalarFunction, schema: &DFSchema) -> Option<Expr> {
    if ![signs::MINUS, signs::PLUS].contains(&call.name()) {
        return None;
    }
    signs::planned(call, &call.args.first()?.get_type(schema).ok()?)
}

/// A call of an aggregate of doubles alone with its arguments as such; any other as it is.
pub(super) fn beside_doubles(mut call: Expr, schema: &DFSchema) -> Expr {
    let args = match &mut call {
        Expr::AggregateFunction(call) if call.func.inner().is::<OfDoubles>() => &mut call.params.args,
        Expr::WindowFunction(call) if is_of_doubles(&call.fun) => &mut call.params.args,
        _ => return call,
    };
    args.iter_mut().for_each(|arg| as_double(arg, schema));
    call
}

fn is_of_doubles(function: &WindowFunctionDefinition) -> bool {
    matches!(function, WindowFunctionDefinition::AggregateUDF(function) if function.inner().is::<OfDoubles>())
}

/// A numeric without limits as a double.
fn as_double(arg: &mut Expr, schema: &DFSchema) {
    if let Ok(from) = arg.get_type(schema)
        && is_numeric(&from)
    {
        *arg = as_type(std::mem::take(arg), &from, &ArrowType::Float64);
    }
}

/// Two arrays that are compared, both of numerics without limits where one is, and the other one is of exact numbers.
pub(super) fn arrays_alike(left: Expr, right: Expr, schema: &DFSchema) -> (Expr, Expr) {
    let item = |expr: &Expr| match expr.get_type(schema) {
        Ok(ArrowType::List(item)) => Some(item.data_type().clone()),
        _ => None,
    };
    let widened = |expr: Expr| CastItems::function(DataType::Array(ArrayItem::Numeric)).call(vec![expr]);
    match (item(&left), item(&right)) {
        (Some(one), Some(other)) if is_numeric(&one) && is_exact(&other) && !is_numeric(&other) => {
            (left, widened(right))
        }
        (Some(one), Some(other)) if is_numeric(&other) && is_exact(&one) && !is_numeric(&one) => (widened(left), right),
        _ => (left, right),
    }
}

/// The arguments of a function of the program's that are numerics without limits, or are to be such.
pub(super) fn as_wanted(call: &mut ScalarFunction, schema: &DFSchema) {
    let Some(function) = call.func.inner().downcast_ref::<UserCall>() else { return };
    for (arg, wanted) in call.args.iter_mut().zip(function.wanted()) {
        let to = wanted.to_arrow();
        if let Ok(from) = arg.get_type(schema)
            && from != to
            && (is_numeric(&from) || is_numeric(&to) && is_exact(&from))
        {
            *arg = as_type(std::mem::take(arg), &from, &to);
        }
    }
}

/// The numbers beside an array of numerics without limits, in a function of arrays and items, as such numerics.
pub(super) fn beside_items(call: &mut ScalarFunction, schema: &DFSchema) {
    const PUTTING: [&str; 2] = ["array_append", "array_prepend"];
    const COMPARING: [&str; 3] = ["array_position", "array_positions", "array_replace"];
    let name = call.name();
    let compares = COMPARING.contains(&name);
    let types: Vec<ArrowType> = call.args.iter().filter_map(|arg| arg.get_type(schema).ok()).collect();
    let is_known = compares || PUTTING.contains(&name);
    if !is_known || types.len() != call.args.len() || !types.iter().any(is_list) {
        return;
    }
    // Behind an array and its item stands, at `array_position`, where to begin.
    let items = if call.name() == "array_position" { 2 } else { types.len() };
    for (arg, from) in call.args.iter_mut().zip(&types).take(items) {
        if is_exact(from) {
            *arg = as_type(std::mem::take(arg), from, &NUMERIC);
        }
        // Items are compared as they are kept.
        if compares && !is_plain(arg) && (is_exact(from) || is_list(from)) {
            *arg = plain(std::mem::take(arg));
        }
    }
}

/// A cast between numerics without limits and other numbers; `None` where it is none, or one of texts. One of anything else is refused:
/// the library would take bytes for numbers.
pub(super) fn cast(expr: &Expr, from: &ArrowType, to: &ArrowType) -> Result<Option<Expr>> {
    if !is_numeric(from) && !is_numeric(to) || is_text(from) || is_text(to) || from.is_null() {
        return Ok(None);
    }
    let is_number = |found: &ArrowType| is_numeric(found) || found.is_numeric();
    if !is_number(from) || !is_number(to) {
        return Err(json::no_cast(&type_name(from), &type_name(to)));
    }
    Ok(Some(as_type(expr.clone(), from, to)))
}

/// What a literal without a type is as a value of this one. A numeric cast rounds to the scale that it names.
pub(super) fn literal(text: &str, data_type: DataType) -> Result<Expr> {
    let (precision, scale) = match data_type {
        DataType::Decimal { precision, scale } => (precision, scale),
        // A literal that is a number of few digits is a decimal, which has as many decimals.
        DataType::Numeric => return of_own_digits(text),
        _ => return typed(text, data_type),
    };
    let unscaled = input::decimal(text, precision, scale).map_err(|misfit| failed(misfit, data_type, text))?;
    Ok(Expr::Literal(ScalarValue::Decimal128(Some(unscaled), precision, scale), None))
}
