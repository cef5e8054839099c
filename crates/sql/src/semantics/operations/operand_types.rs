//! Which types an operator takes. PostgreSQL has an operator for two types or refuses it, where the planner's library makes one
//! type of nearly any two: it would compare numbers with texts, and days with numbers.
//!
//! A type belongs to a family, and a rule says for each operator which families it takes:
//!
//! ```text
//! =  <  IN  BETWEEN  CASE x WHEN  IS DISTINCT FROM    one family; dates and times with dates; a time of day with an interval
//! +  -  *  /  %                                       `has_arithmetic`
//! &  |                                                whole numbers
//! ~  LIKE                                             texts
//! AND  OR                                             truths
//! CASE  coalesce  greatest  least  ARRAY[...]         results of one family
//! ```
//!
//! A literal without a type takes the other's, and NULL is of any. Operators are looked at where they are planned, while literals
//! are still to be told from texts; what the planner types later, by a rule that runs before it does.
use arrow_schema::{DataType as ArrowType, TimeUnit};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::expr::{Between, Case, InList, InSubquery, Like, ScalarFunction, SetComparison};
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, Operator, Union};
use datafusion::optimizer::AnalyzerRule;
use datafusion::sql::sqlparser::ast::BinaryOperator;
use engine::{DataType, EnumType, RangeKind};

use super::json;
use super::spaces::{self, space_of};
use super::visible::{has_expressions, visible};
use crate::error::{SqlError, external};
use crate::functions::statement::user::UserCall;
use crate::names::diagnose::NO_TEXT_SEARCH;
use crate::values::types::{type_name, type_name_of_field};

/// Types that are compared with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    /// A literal without a type, NULL, and what the planner knows better.
    Any,
    Whole,
    /// With decimals or a point.
    Number,
    Text,
    Truth,
    Bytes,
    Date,
    /// With or without a zone.
    Timestamp,
    Time,
    Interval,
    Array,
    Json,
    Jsonb,
    /// Each enum type is a family of its own.
    Enum(EnumType),
    /// So is each range type.
    Range(RangeKind),
    /// Points, boxes and circles, whose comparisons are functions.
    Shape,
    /// Addresses, of hosts and of networks.
    Network,
    /// Times of day with their zone.
    ZonedTime,
}

use Family::{
    Any, Array, Bytes, Date, Enum, Interval, Json, Jsonb, Network, Number, Range, Shape, Text, Time, Timestamp, Truth,
    Whole, ZonedTime,
};

impl Family {
    fn of(data_type: &ArrowType) -> Family {
        match data_type {
            ArrowType::Utf8View => Text,
            ArrowType::LargeUtf8 => Json,
            ArrowType::LargeBinary => Jsonb,
            ArrowType::Boolean => Truth,
            ArrowType::BinaryView => Bytes,
            ArrowType::Binary => Number,
            ArrowType::Date32 | ArrowType::Date64 => Date,
            ArrowType::Timestamp(TimeUnit::Second, Some(zone)) if let Some(of) = EnumType::of_zone(zone) => Enum(of),
            ArrowType::Timestamp(..) => Timestamp,
            ArrowType::Time32(_) | ArrowType::Time64(_) => Time,
            ArrowType::Interval(_) | ArrowType::Duration(_) => Interval,
            other if let Some(space) = space_of(other) => match space {
                DataType::Range(kind) => Range(kind),
                DataType::Network(_) => Network,
                DataType::TimeTz => ZonedTime,
                _ => Shape,
            },
            other if other.is_list() => Array,
            other if other.is_integer() => Whole,
            other if other.is_numeric() => Number,
            _ => Any,
        }
    }

    fn is_number(self) -> bool {
        matches!(self, Whole | Number)
    }

    fn is_day(self) -> bool {
        matches!(self, Date | Timestamp)
    }

    fn is_comparable(self, other: Family) -> bool {
        self == other && self != Json && self != Shape
            || self == Any
            || other == Any
            || (self.is_number() && other.is_number())
            || (self.is_day() && other.is_day())
            || matches!((self, other), (Time, Interval) | (Interval, Time))
    }

    /// Whether values of both may be results of one expression.
    fn is_of_one_result(self, other: Family) -> bool {
        // Of shapes only those of one type, which the planner sees to.
        (self == other || self.is_comparable(other)) && !matches!((self, other), (Time, Interval) | (Interval, Time))
    }
}

/// Whether there is such an operator of arithmetic.
fn has_arithmetic(op: &BinaryOperator, left: Family, right: Family) -> bool {
    if left == Any || right == Any || left == Array || right == Array {
        return true;
    }
    match op {
        _ if left.is_number() && right.is_number() => true,
        BinaryOperator::Minus if left == Jsonb => true,
        BinaryOperator::Plus => matches!(
            (left, right),
            (Date, Whole | Time | Interval)
                | (Whole | Time | Interval, Date)
                | (Interval | Time, Interval | Timestamp)
                | (Timestamp, Interval | Time)
                | (Interval, Time)
        ),
        BinaryOperator::Minus => matches!(
            (left, right),
            (Date | Timestamp, Date | Timestamp | Interval | Time) | (Date, Whole) | (Interval | Time, Interval | Time)
        ),
        BinaryOperator::Multiply => match (left, right) {
            (Interval | Time, other) | (other, Interval | Time) => other.is_number(),
            _ => false,
        },
        BinaryOperator::Divide => matches!(left, Interval | Time) && right.is_number(),
        _ => false,
    }
}

/// How an operand stands in a message.
fn name(expr: &Expr, schema: &DFSchema) -> String {
    match expr {
        Expr::Literal(ScalarValue::Utf8(_) | ScalarValue::Null, _) => "unknown".to_owned(),
        // The planner reads every whole number as a bigint.
        Expr::Literal(ScalarValue::Int64(Some(value)), _) if i32::try_from(*value).is_ok() => "integer".to_owned(),
        other => other.to_field(schema).map_or_else(|_| "unknown".to_owned(), |(_, field)| type_name_of_field(&field)),
    }
}

fn family(expr: &Expr, schema: &DFSchema) -> Family {
    expr.get_type(schema).map_or(Any, |found| Family::of(&found))
}

/// The error that there is no such operator for two operands.
pub(crate) fn refused(op: &BinaryOperator, left: &Expr, right: &Expr, schema: &DFSchema) -> DataFusionError {
    no_operator(&name(left, schema), &op.to_string(), &name(right, schema))
}

fn no_operator(left: &str, op: &str, right: &str) -> DataFusionError {
    let error = SqlError::new("42883", format!("operator does not exist: {left} {op} {right}"));
    if op == "@@" {
        return external(error.hint(NO_TEXT_SEARCH));
    }
    external(
        error.hint("No operator matches the given name and argument types. You might need to add explicit type casts."),
    )
}

/// An error unless there is an operator for two expressions.
fn check_pair(
    op: &str,
    left: &Expr,
    right: &Expr,
    schema: &DFSchema,
    has: impl Fn(Family, Family) -> bool,
) -> Result<()> {
    match has(family(left, schema), family(right, schema)) {
        true => Ok(()),
        false => Err(no_operator(&name(left, schema), op, &name(right, schema))),
    }
}

fn check_comparison(op: &str, left: &Expr, right: &Expr, schema: &DFSchema) -> Result<()> {
    let item = |expr: &Expr| match expr.get_type(schema) {
        Ok(ArrowType::List(item)) => Family::of(item.data_type()),
        _ => Any,
    };
    let items_are_comparable = item(left).is_comparable(item(right));
    check_pair(op, left, right, schema, |left, right| left.is_comparable(right) && items_are_comparable)
}

/// An error if PostgreSQL has no such operator for these operands.
pub(crate) fn check(op: &BinaryOperator, left: &Expr, right: &Expr, schema: &DFSchema) -> Result<()> {
    use BinaryOperator as B;
    let are = |wanted: fn(Family) -> bool| move |left, right| wanted(left) && wanted(right);
    match op {
        B::Eq | B::Lt | B::LtEq | B::Gt | B::GtEq => check_comparison(&op.to_string(), left, right, schema),
        B::NotEq => check_comparison("<>", left, right, schema),
        B::Custom(_) => check_comparison("=", left, right, schema),
        B::BitwiseAnd | B::BitwiseOr => {
            let are_whole = are(|family| matches!(family, Any | Whole));
            check_pair(&op.to_string(), left, right, schema, are_whole)
        }
        B::PGRegexMatch | B::PGRegexIMatch | B::PGRegexNotMatch | B::PGRegexNotIMatch => {
            let are_texts = are(|family| matches!(family, Any | Text));
            check_pair(&op.to_string(), left, right, schema, are_texts)
        }
        B::AtArrow | B::ArrowAt | B::PGOverlap => {
            let have_parts = |left, right| {
                let both = |wanted: Family| [left, right].into_iter().all(|family| family == Any || family == wanted);
                both(Array) || (both(Jsonb) && *op != B::PGOverlap)
            };
            check_pair(&op.to_string(), left, right, schema, have_parts)
        }
        B::And | B::Or => {
            [left, right].into_iter().try_for_each(|operand| check_truth(&op.to_string(), operand, schema))
        }
        _ => Ok(()),
    }
}

/// An error if PostgreSQL has no such operator of arithmetic for operands of these types.
pub(crate) fn check_arithmetic(
    op: &BinaryOperator,
    (left, of_left): (&Expr, &ArrowType),
    (right, of_right): (&Expr, &ArrowType),
    schema: &DFSchema,
) -> Result<()> {
    match has_arithmetic(op, Family::of(of_left), Family::of(of_right)) {
        true => Ok(()),
        false => Err(refused(op, left, right, schema)),
    }
}

fn check_truth(what: &str, operand: &Expr, schema: &DFSchema) -> Result<()> {
    match family(operand, schema) {
        Truth | Any => Ok(()),
        _ => {
            let found = name(operand, schema);
            Err(external(SqlError::mismatch(format!("argument of {what} must be type boolean, not type {found}"))))
        }
    }
}

/// Looks at what has no operator of its own in the plan, before the planner makes one type of its parts.
#[derive(Debug)]
pub(crate) struct OperandTypes;

impl AnalyzerRule for OperandTypes {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        plan.apply_with_subqueries(|node| {
            if let LogicalPlan::Union(union) = node {
                check_union(union)?;
            }
            let schema = if has_expressions(node)? { visible(node)? } else { node.schema().clone() };
            spaces::check_node(node, &schema)?;
            node.apply_expressions(|expr| {
                expr.apply(|expr| check_expr(expr, &schema).map(|()| TreeNodeRecursion::Continue))
            })
        })?;
        Ok(plan)
    }

    fn name(&self) -> &str {
        "operand_types"
    }
}

fn check_expr(expr: &Expr, schema: &DFSchema) -> Result<()> {
    match expr {
        Expr::BinaryExpr(binary) if matches!(binary.op, Operator::IsDistinctFrom | Operator::IsNotDistinctFrom) => {
            check_comparison("=", &binary.left, &binary.right, schema)
        }
        Expr::InList(InList { expr, list, negated }) => {
            let op = if *negated { "<>" } else { "=" };
            list.iter().try_for_each(|item| check_comparison(op, expr, item, schema))
        }
        Expr::Between(Between { expr, negated, low, high }) => {
            let (first, second) = if *negated { ("<", ">") } else { (">=", "<=") };
            check_comparison(first, expr, low, schema)?;
            check_comparison(second, expr, high, schema)
        }
        Expr::InSubquery(InSubquery { expr, subquery, .. }) => {
            let Some(field) = subquery.subquery.schema().fields().first() else { return Ok(()) };
            if let Some(checked) = spaces::check_members(expr, Operator::Eq, field, schema) {
                return checked;
            }
            match family(expr, schema).is_comparable(Family::of(field.data_type())) {
                true => Ok(()),
                false => Err(no_operator(&name(expr, schema), "=", &type_name_of_field(field))),
            }
        }
        Expr::SetComparison(SetComparison { expr, subquery, op, .. }) => {
            let column = subquery.subquery.schema().fields().first();
            column.and_then(|field| spaces::check_members(expr, *op, field, schema)).unwrap_or(Ok(()))
        }
        Expr::Like(like) => check_like(like, schema),
        Expr::Not(inner) => check_truth("NOT", inner, schema),
        Expr::Case(case) => check_case(case, schema),
        Expr::ScalarFunction(call) => check_call(call, schema),
        Expr::WindowFunction(call) => spaces::check_window(call, schema),
        Expr::AggregateFunction(call) => {
            spaces::check_aggregate(call, schema)?;
            check_takes_enums(call.func.name(), &types_of(&call.params.args, schema))?;
            json::check_call(call.func.name(), &types_of(&call.params.args, schema))
        }
        _ => Ok(()),
    }
}

fn check_like(like: &Like, schema: &DFSchema) -> Result<()> {
    let op = match (like.negated, like.case_insensitive) {
        (false, false) => "~~",
        (true, false) => "!~~",
        (false, true) => "~~*",
        (true, true) => "!~~*",
    };
    let has = |left: Family, right: Family| matches!((left, right), (Any | Text, Any | Text));
    check_pair(op, &like.expr, &like.pattern, schema, has)
}

fn check_case(case: &Case, schema: &DFSchema) -> Result<()> {
    for (when, _) in &case.when_then_expr {
        match &case.expr {
            Some(operand) => check_comparison("=", operand, when, schema)?,
            None => check_truth("CASE/WHEN", when, schema)?,
        }
    }
    let results = case.when_then_expr.iter().map(|(_, then)| then.as_ref());
    check_results("CASE", case.else_expr.as_deref().into_iter().chain(results), schema)
}

/// An error unless all are of one family.
fn check_results<'e>(what: &str, results: impl Iterator<Item = &'e Expr>, schema: &DFSchema) -> Result<()> {
    let mut known: Option<(&Expr, Family)> = None;
    for result in results {
        let found = family(result, schema);
        match known {
            _ if found == Any => {}
            None => known = Some((result, found)),
            Some((_, first)) if first.is_of_one_result(found) => {}
            Some((first, _)) => {
                let (first, other) = (name(first, schema), name(result, schema));
                let message = format!("{what} types {first} and {other} cannot be matched");
                return Err(external(SqlError::mismatch(message)));
            }
        }
    }
    Ok(())
}

fn types_of(args: &[Expr], schema: &DFSchema) -> Vec<ArrowType> {
    args.iter().filter_map(|arg| arg.get_type(schema).ok()).collect()
}

fn check_call(call: &ScalarFunction, schema: &DFSchema) -> Result<()> {
    // The program's own say what they take.
    if call.func.inner().is::<UserCall>() {
        return Ok(());
    }
    json::check_call(call.name(), &types_of(&call.args, schema))?;
    check_takes_enums(call.name(), &types_of(&call.args, schema))?;
    let results = |what| check_results(what, call.args.iter(), schema);
    match (call.name(), &call.args[..]) {
        ("coalesce", _) => results("COALESCE"),
        ("greatest", _) => results("GREATEST"),
        ("least", _) => results("LEAST"),
        ("make_array", _) => results("ARRAY"),
        ("nullif", [left, right]) => check_comparison("=", left, right, schema),
        (name, [value, array]) if let Some(op) = quantified(name) => {
            let item = match array.get_type(schema) {
                Ok(ArrowType::List(item)) => item,
                _ => return Ok(()),
            };
            match family(value, schema).is_comparable(Family::of(item.data_type())) {
                true => Ok(()),
                false => Err(no_operator(&self::name(value, schema), op, &type_name_of_field(item.as_ref()))),
            }
        }
        _ => Ok(()),
    }
}

/// Refuses a union of an enum with anything else, which the library would take for moments, and of ranges or shapes, which it would
/// take for bytes.
fn check_union(union: &Union) -> Result<()> {
    let width = union.schema.fields().len();
    for at in 0..width {
        let types: Vec<&ArrowType> = union
            .inputs
            .iter()
            .filter_map(|input| input.schema().fields().get(at).map(|field| field.data_type()))
            .collect();
        let Some(of) = types.iter().find(|found| matches!(Family::of(found), Enum(_) | Range(_) | Shape)) else {
            continue;
        };
        let Some(other) = types.iter().find(|found| *found != of && !found.is_null()) else { continue };
        if **other == ArrowType::Utf8 && !matches!(Family::of(of), Enum(_)) {
            let what = type_name(of);
            let error = SqlError::unsupported(format!("a literal without a type beside {what} in a set operation"));
            return Err(external(error.hint("Give it a type with a cast.")));
        }
        let message = format!("UNION types {} and {} cannot be matched", type_name(of), type_name(other));
        return Err(external(SqlError::mismatch(message)));
    }
    Ok(())
}

/// Refuses a call of a function that takes no enums. Those of the library would take them for moments.
fn check_takes_enums(name: &str, types: &[ArrowType]) -> Result<()> {
    const OF_ANY_OR_ENUMS: [&str; 40] = [
        "enum_first",
        "enum_last",
        "enum_range",
        "min",
        "max",
        "count",
        "array_agg",
        "coalesce",
        "nullif",
        "greatest",
        "least",
        "concat",
        "concat_ws",
        "format",
        "make_array",
        "row",
        "struct",
        "named_struct",
        "num_nulls",
        "num_nonnulls",
        "quote_literal",
        "quote_nullable",
        "pg_typeof",
        "arrow_typeof",
        "cardinality",
        "unnest",
        "first_value",
        "last_value",
        "nth_value",
        "mode",
        "lag",
        "lead",
        "pg_column_size",
        "percentile_disc",
        "grouping",
        "rank",
        "dense_rank",
        "percent_rank",
        "cume_dist",
        "string_to_array",
    ];
    let is_own = name.starts_with(['\0', '_']) || name.contains("json");
    let is_cast = name.starts_with("to_") || name.starts_with("as_") || name.starts_with("array_");
    let is_enum = |found: &ArrowType| matches!(Family::of(found), Enum(_));
    if is_own || is_cast && name != "to_char" || OF_ANY_OR_ENUMS.contains(&name) || !types.iter().any(is_enum) {
        return Ok(());
    }
    let named: Vec<String> = types.iter().map(type_name).collect();
    let error = SqlError::new("42883", format!("function {name}({}) does not exist", named.join(", ")));
    let hint = "No function matches the given name and argument types. You might need to add explicit type casts.";
    Err(external(error.hint(hint)))
}

/// The operator of a function that compares a value with the items of an array.
fn quantified(name: &str) -> Option<&str> {
    name.strip_prefix("\0any ").or_else(|| name.strip_prefix("\0all "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_are_compared_as_postgresql_does() {
        assert!(Whole.is_comparable(Number) && Date.is_comparable(Timestamp) && Text.is_comparable(Any));
        assert!(Time.is_comparable(Interval) && !Time.is_of_one_result(Interval));
        assert!(!Text.is_comparable(Whole) && !Truth.is_comparable(Whole) && !Date.is_comparable(Time));
    }

    #[test]
    fn days_are_added_to_dates_and_not_to_moments() {
        assert!(
            has_arithmetic(&BinaryOperator::Plus, Date, Whole) && has_arithmetic(&BinaryOperator::Plus, Whole, Date)
        );
        assert!(!has_arithmetic(&BinaryOperator::Plus, Timestamp, Whole));
        assert!(
            !has_arithmetic(&BinaryOperator::Plus, Date, Date) && has_arithmetic(&BinaryOperator::Minus, Date, Date)
        );
        assert!(has_arithmetic(&BinaryOperator::Multiply, Number, Interval));
        assert!(!has_arithmetic(&BinaryOperator::Divide, Number, Interval));
    }
}
