//! Operators of JSON as functions, comparisons of `jsonb`, and casts from and to both types.
//!
//! An operator is one of JSON where one operand is a `json` or a `jsonb`; a literal beside it becomes what the function takes.
//! A `jsonb` is compared by the bytes that equal values have in common; a `json` has no order, and no value of it is equal to another.
use std::sync::Arc;

use arrow_schema::DataType as ArrowType;
use datafusion::common::DFSchema;
use datafusion::common::tree_node::Transformed;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::expr::{Between, InList};
use datafusion::logical_expr::{Expr, ExprSchemable};
use datafusion::sql::sqlparser::ast::BinaryOperator;

use super::operand_types;
use super::spaces::{is_network, is_shape, is_zoned_time};
use crate::error::SqlError;
use crate::functions::json::access;
use crate::functions::spaces::takes_spaces;
use crate::values::types::is_space;

/// Whether an Arrow type is that of `json` or `jsonb`.
pub(crate) fn is_json(found: &ArrowType) -> bool {
    matches!(found, ArrowType::LargeUtf8 | ArrowType::LargeBinary)
}

fn is_kept(expr: &Expr, schema: &DFSchema) -> bool {
    expr.get_type(schema).is_ok_and(|found| found == ArrowType::LargeBinary)
}

/// The call that an operator is, if it is one of JSON.
///
/// # Errors
/// Where there is no such operator for the operands.
pub(crate) fn plan(op: &BinaryOperator, left: &Expr, right: &Expr, schema: &DFSchema) -> Result<Option<Expr>> {
    use BinaryOperator as B;
    let (Ok(first), Ok(second)) = (left.get_type(schema), right.get_type(schema)) else { return Ok(None) };
    let is_of_json_only = matches!(
        op,
        B::Arrow
            | B::LongArrow
            | B::HashArrow
            | B::HashLongArrow
            | B::HashMinus
            | B::Question
            | B::QuestionPipe
            | B::QuestionAnd
            | B::AtQuestion
            | B::AtAt
    );
    let is_shared = matches!(op, B::AtArrow | B::ArrowAt | B::Minus | B::StringConcat);
    if !is_of_json_only && !(is_shared && (is_json(&first) || is_json(&second))) {
        return Ok(None);
    }
    // A text beside a `json` or a `jsonb` makes a text of it.
    let is_text = |found: &ArrowType| *found == ArrowType::Utf8View;
    if *op == B::StringConcat && (is_text(&first) || is_text(&second) || first == ArrowType::LargeUtf8) {
        return Ok(None);
    }
    let refused = || operand_types::refused(op, left, right, schema);
    let function = access::operator(op).filter(|_| is_json(&first) || is_json(&second)).ok_or_else(refused)?;
    function.return_type(&[first, second]).map_err(|_| refused())?;
    Ok(Some(function.call(vec![left.clone(), right.clone()])))
}

/// What a `jsonb` is compared by; anything else as it is.
fn key(expr: Expr, schema: &DFSchema) -> Expr {
    match is_kept(&expr, schema) && !is_key(&expr) {
        true => access::key().call(vec![expr]),
        false => expr,
    }
}

fn is_key(expr: &Expr) -> bool {
    matches!(expr, Expr::ScalarFunction(call) if call.name() == access::key().name())
}

/// Two operands of a comparison, by what they are compared by.
pub(crate) fn compared(left: Expr, right: Expr, schema: &DFSchema) -> (Box<Expr>, Box<Expr>) {
    (Box::new(key(left, schema)), Box::new(key(right, schema)))
}

/// `IN` and `BETWEEN` of `jsonb`.
pub(crate) fn adapt(expr: Expr, schema: &DFSchema) -> Expr {
    match expr {
        Expr::InList(InList { expr, list, negated }) if is_kept(&expr, schema) => {
            let list = list.into_iter().map(|item| key(item, schema)).collect();
            Expr::InList(InList { expr: Box::new(key(*expr, schema)), list, negated })
        }
        Expr::Between(Between { expr, negated, low, high }) if is_kept(&expr, schema) => {
            let by = |expr: Box<Expr>| Box::new(key(*expr, schema));
            Expr::Between(Between { expr: by(expr), negated, low: by(low), high: by(high) })
        }
        other => other,
    }
}

/// Refuses a call of a function that does not take JSON, ranges or shapes. Those of the library would take it for a text or for bytes.
///
/// # Errors
/// Where the function is one of these.
pub(crate) fn check_call(name: &str, types: &[ArrowType]) -> Result<()> {
    const TAKE_ANYTHING: [&str; 29] = [
        "first_value",
        "last_value",
        "nth_value",
        "lag",
        "lead",
        "count",
        "array_agg",
        "coalesce",
        "nullif",
        "concat",
        "concat_ws",
        "format",
        "make_array",
        "row",
        "struct",
        "named_struct",
        "to_text",
        "num_nulls",
        "num_nonnulls",
        "quote_literal",
        "quote_nullable",
        "array_append",
        "array_prepend",
        "array_to_string",
        "array_length",
        "cardinality",
        "array_cat",
        "arrow_typeof",
        "pg_typeof",
    ];
    let is_own = name.starts_with(['\0', '_']) || name.contains("json");
    let is_cast = name.starts_with("to_") || name.starts_with("as_") || name.starts_with("array_");
    let compares = |found: &ArrowType| match name {
        "greatest" | "least" => !is_shape(found),
        "min" | "max" => is_network(found) || is_zoned_time(found),
        "extract" | "date_part" => is_zoned_time(found),
        _ => false,
    };
    let is_fine = |found: &ArrowType| !is_json(found) && (!is_space(found) || takes_spaces(name) || compares(found));
    if is_own || is_cast || TAKE_ANYTHING.contains(&name) || types.iter().all(is_fine) {
        return Ok(());
    }
    let named: Vec<String> = types.iter().map(crate::values::types::type_name).collect();
    let error = SqlError::new("42883", format!("function {name}({}) does not exist", named.join(", ")));
    let hint = "No function matches the given name and argument types. You might need to add explicit type casts.";
    Err(DataFusionError::External(Box::new(error.hint(hint))))
}

/// The error of a cast that there is not.
pub(crate) fn no_cast(from: &str, to: &str) -> DataFusionError {
    DataFusionError::External(Box::new(SqlError::new("42846", format!("cannot cast type {from} to {to}"))))
}

/// An expression that was changed.
pub(crate) fn called(function: datafusion::logical_expr::ScalarUDF, expr: Expr) -> Transformed<Expr> {
    let call = datafusion::logical_expr::expr::ScalarFunction::new_udf(Arc::new(function), vec![expr]);
    Transformed::yes(Expr::ScalarFunction(call))
}
