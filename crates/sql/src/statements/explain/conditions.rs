//! Expressions of a physical plan in PostgreSQL's spelling, as far as it has one; what else there is stands as the library spells it.
use std::sync::Arc;

use arrow_array::Array;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{
    BinaryExpr, CastExpr, Column, InListExpr, IsNotNullExpr, IsNullExpr, LikeExpr, Literal, NotExpr, TryCastExpr,
};
use datafusion::physical_expr::{PhysicalExpr, PhysicalSortExpr, ScalarFunctionExpr};
use datafusion::physical_expr_common::physical_expr::fmt_sql;
use engine::{Column as TableColumn, Comparison, Schema, Test, Value};

use super::columns::{Columns, plain};
use crate::semantics::rules::careful::plain_of;
use crate::values::pg_types::shown_name;
use crate::values::text::lasting_text;
use crate::values::types;

/// Several conditions that all hold.
pub(super) fn all(conditions: &[String]) -> String {
    match conditions {
        [one] => one.clone(),
        more => format!("({})", more.join(" AND ")),
    }
}

#[recursive::recursive]
pub(super) fn shown(expr: &Arc<dyn PhysicalExpr>, columns: &Columns<'_>) -> String {
    let shown = |part: &Arc<dyn PhysicalExpr>| shown(part, columns);
    if let Some(column) = expr.downcast_ref::<Column>() {
        return columns.name(column);
    }
    if let Some(literal) = expr.downcast_ref::<Literal>() {
        return constant(literal.value());
    }
    if let Some(binary) = expr.downcast_ref::<BinaryExpr>() {
        return format!("({} {} {})", shown(binary.left()), operator(*binary.op()), shown(binary.right()));
    }
    if let Some(not) = expr.downcast_ref::<NotExpr>() {
        return format!("(NOT {})", shown(not.arg()));
    }
    if let Some(tested) = expr.downcast_ref::<IsNullExpr>() {
        return format!("({} IS NULL)", shown(tested.arg()));
    }
    if let Some(tested) = expr.downcast_ref::<IsNotNullExpr>() {
        return format!("({} IS NOT NULL)", shown(tested.arg()));
    }
    if let Some(like) = expr.downcast_ref::<LikeExpr>() {
        let is_not = if like.negated() { "!" } else { "" };
        let star = if like.case_insensitive() { "*" } else { "" };
        return format!("({} {is_not}~~{star} {})", shown(like.expr()), shown(like.pattern()));
    }
    if let Some(list) = expr.downcast_ref::<InListExpr>() {
        let items: Vec<String> = list.list().iter().map(shown).collect();
        let not = if list.negated() { "NOT " } else { "" };
        return format!("({} {not}IN ({}))", shown(list.expr()), items.join(", "));
    }
    if let Some(cast) = expr.downcast_ref::<CastExpr>() {
        return format!("({})::{}", shown(cast.expr()), types::type_name(cast.cast_type()));
    }
    if let Some(cast) = expr.downcast_ref::<TryCastExpr>() {
        return format!("({})::{}", shown(cast.expr()), types::type_name(cast.cast_type()));
    }
    if let Some(plain) = plain_of(expr) {
        return shown(plain);
    }
    if let Some(call) = expr.downcast_ref::<ScalarFunctionExpr>() {
        return called(call, columns);
    }
    plain(&fmt_sql(expr.as_ref()).to_string())
}

/// The operator that a function is to its user.
fn operator_of(function: &str) -> Option<&str> {
    Some(match function {
        "checked_add" => "+",
        "checked_subtract" => "-",
        "checked_multiply" => "*",
        "checked_divide" => "/",
        "checked_modulo" => "%",
        "array_contains_all" | "jsonb_contains" => "@>",
        "jsonb_contained" => "<@",
        "array_overlaps" => "&&",
        "jsonb_exists" => "?",
        "jsonb_exists_any" => "?|",
        "jsonb_exists_all" => "?&",
        "json_object_field" => "->",
        "json_object_field_text" => "->>",
        "json_extract_path_op" => "#>",
        "json_extract_path_text_op" => "#>>",
        signs if !signs.contains(|sign: char| sign.is_alphanumeric() || sign == '_' || sign == '\0') => signs,
        _ => return None,
    })
}

/// A call, as its user has written it.
fn called(call: &ScalarFunctionExpr, columns: &Columns<'_>) -> String {
    let arguments: Vec<String> = call.args().iter().map(|argument| shown(argument, columns)).collect();
    // The name of `value = ANY (array)`, which no statement can spell.
    let of_items = call.name().strip_prefix('\0').and_then(|words| words.split_once(' '));
    match (operator_of(call.name()), of_items, &arguments[..]) {
        (Some(operator), _, [left, right]) => format!("({left} {operator} {right})"),
        (_, Some((which @ ("any" | "all"), operator)), [value, array]) => {
            format!("({value} {operator} {} ({array}))", which.to_uppercase())
        }
        _ => format!("{}({})", plain(call.name()), arguments.join(", ")),
    }
}

fn operator(operator: Operator) -> String {
    match operator {
        Operator::NotEq => "<>".to_owned(),
        Operator::RegexMatch => "~".to_owned(),
        other => other.to_string(),
    }
}

/// A key of a sort.
pub(super) fn sort_key(key: &PhysicalSortExpr, columns: &Columns<'_>) -> String {
    let direction = match (key.options.descending, key.options.nulls_first) {
        (false, false) => "",
        (false, true) => " NULLS FIRST",
        (true, true) => " DESC",
        (true, false) => " DESC NULLS LAST",
    };
    format!("{}{direction}", shown(&key.expr, columns))
}

/// A condition of which a scan takes care itself; `None` of one that becomes known while the query runs.
pub(super) fn tested(test: &(usize, Test), schema: &Schema) -> Option<String> {
    let column = &schema.columns()[test.0];
    let (name, value) = (&column.name, |value: &Value| value_shown(value, column));
    Some(match &test.1 {
        Test::Compare(Comparison::Eq, Value::Boolean(true)) => name.clone(),
        Test::Compare(Comparison::Eq, Value::Boolean(false)) => format!("(NOT {name})"),
        Test::Compare(comparison, other) => format!("({name} {} {})", compared(*comparison), value(other)),
        Test::Between(low, high) => format!("(({name} >= {}) AND ({name} <= {}))", value(low), value(high)),
        Test::In(values) => {
            let values: Vec<String> = values.iter().map(value).collect();
            format!("({name} IN ({}))", values.join(", "))
        }
        Test::IsNull => format!("({name} IS NULL)"),
        Test::IsNotNull => format!("({name} IS NOT NULL)"),
        Test::Prefix(start) => {
            format!("({name} ~~ {})", quoted(&format!("{}%", String::from_utf8_lossy(start)), "text"))
        }
        Test::Among(_) => return None,
    })
}

fn compared(comparison: Comparison) -> &'static str {
    match comparison {
        Comparison::Eq => "=",
        Comparison::NotEq => "<>",
        Comparison::Less => "<",
        Comparison::LessOrEqual => "<=",
        Comparison::Greater => ">",
        Comparison::GreaterOrEqual => ">=",
    }
}

/// A value of a column: a number as it is, anything else in quotes and with its type.
pub(super) fn value_shown(value: &Value, column: &TableColumn) -> String {
    match value {
        Value::SmallInt(_) | Value::Integer(_) | Value::BigInt(_) | Value::Decimal(_) => value.to_string(),
        Value::Null => "NULL".to_owned(),
        other => quoted(&other.to_string(), &shown_name(column.data_type)),
    }
}

fn constant(value: &ScalarValue) -> String {
    let found = value.to_array().ok().and_then(|array| Some((lasting_text(&array, 0)?, array.data_type().clone())));
    match found {
        None => "NULL".to_owned(),
        Some((text, data_type)) if data_type.is_numeric() => text,
        Some((text, arrow_schema::DataType::Boolean)) => if text == "t" { "true" } else { "false" }.to_owned(),
        Some((text, data_type)) => quoted(&text, &types::type_name(&data_type)),
    }
}

/// In quotes and with its type. Characters that would break the line, as keys of collations have them, are dots.
fn quoted(text: &str, data_type: &str) -> String {
    let text: String = text.chars().map(|sign| if sign.is_control() { '.' } else { sign }).collect();
    format!("'{}'::{data_type}", text.replace('\'', "''"))
}
