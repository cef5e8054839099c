//! Conditions that a scan tests itself: a column against literals, where the storage's rule is exactly the filter's.
//!
//! The planner has made both sides of a comparison the same type by then. A literal of any other type than its column
//! (a date against a timestamp, another scale) stands beside a cast of the column, which no scan does: such a
//! condition stays a filter. Of equal types the storage compares as Arrow's kernels do, and so as the filter would but
//! for the zeros of floats.
use std::collections::HashSet;
use std::fmt;

use datafusion::common::ScalarValue;
use datafusion::logical_expr::expr::{Between, InList, Like};
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};
use engine::{Comparison, DataType, Numeric, Schema, Test, Value};

use crate::values::numerics::keyed;
use crate::values::single::value_of_scalar;

/// Finds the number and the type of an operand that tests are made of: of a column, or of a part of an index's
/// keys.
pub(crate) type Find<'a> = dyn Fn(&Expr) -> Option<(usize, DataType)> + 'a;

/// The column and the test that a condition is, if a scan can do it. NULL is as good as false here.
pub(crate) fn test(condition: &Expr, schema: &Schema) -> Option<(usize, Test)> {
    test_of(condition, &|expr| column(expr, schema))
}

/// The column and the test that a condition is, with `find` to find the column. NULL is as good as false here.
pub(crate) fn test_of(condition: &Expr, find: &Find<'_>) -> Option<(usize, Test)> {
    let find: &Find<'_> = &|expr| match keyed(expr) {
        // Numerics are compared by their keys, and so does the storage.
        Some(numeric) => find(numeric).filter(|(_, data_type)| *data_type == DataType::Numeric),
        None => find(expr),
    };
    if let Some(test) = is(condition, true, find) {
        return Some(test);
    }
    match condition {
        Expr::BinaryExpr(BinaryExpr { op: Operator::Or, .. }) => any_of(condition, find),
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => match (left.as_ref(), right.as_ref()) {
            (operand, Expr::Literal(literal, _)) => compare(operand, comparison(*op)?, literal, find),
            (Expr::Literal(literal, _), operand) => compare(operand, comparison(op.swap()?)?, literal, find),
            _ => None,
        },
        Expr::Between(Between { expr, negated: false, low, high }) => {
            let (at, data_type) = find(expr)?;
            let (low, high) = (literal(low, data_type)?, literal(high, data_type)?);
            let low = zeros(&low).map_or(low, |(negative, _)| negative);
            Some((at, Test::Between(low, zeros(&high).map_or(high, |(_, positive)| positive))))
        }
        Expr::InList(InList { expr, list, negated: false }) => {
            let (at, data_type) = find(expr)?;
            let values = list.iter().filter(|item| !is_null(item)).map(|item| literal(item, data_type));
            Some((at, Test::In(values.collect::<Option<_>>().filter(|_| is_listed(data_type))?)))
        }
        Expr::IsNull(expr) => Some((find(expr)?.0, Test::IsNull)),
        Expr::IsNotNull(expr) => Some((find(expr)?.0, Test::IsNotNull)),
        Expr::Like(like) => prefix(like, find),
        Expr::Not(inner) => is(inner, false, find),
        _ => None,
    }
}

/// The columns that a condition of equality pins down, with their values.
pub(crate) fn equality(test: &(usize, Test)) -> Option<(usize, &Value)> {
    match test {
        (at, Test::Compare(Comparison::Eq, value)) => Some((*at, value)),
        _ => None,
    }
}

/// A column's position and type. Hidden columns are none of the table's.
fn column(expr: &Expr, schema: &Schema) -> Option<(usize, DataType)> {
    let Expr::Column(column) = expr else { return None };
    let at = schema.position(&column.name)?;
    Some((at, schema.columns()[at].data_type))
}

fn literal(expr: &Expr, data_type: DataType) -> Option<Value> {
    let Expr::Literal(scalar, _) = expr else { return None };
    value_of(scalar, data_type)
}

/// A literal as a value of this type. Functions give texts in several forms.
fn value_of(scalar: &ScalarValue, data_type: DataType) -> Option<Value> {
    use DataType::{Double, Interval, Json, Jsonb, Real};

    // Arrays are compared by their bytes, which may differ where such items are equal.
    if let DataType::Array(item) = data_type
        && matches!(item.data_type(), Real | Double | DataType::Numeric | Interval | Json | Jsonb)
    {
        return None;
    }
    match (scalar, data_type) {
        (
            ScalarValue::Utf8(Some(text)) | ScalarValue::LargeUtf8(Some(text)),
            DataType::Text { .. } | DataType::Char { .. },
        ) => Some(Value::Text(text.clone())),
        (ScalarValue::BinaryView(Some(key)), DataType::Numeric) => Some(Value::Numeric(Numeric::from_bytes(key))),
        _ => value_of_scalar(scalar, data_type),
    }
}

fn is_null(expr: &Expr) -> bool {
    matches!(expr, Expr::Literal(scalar, _) if scalar.is_null())
}

fn comparison(op: Operator) -> Option<Comparison> {
    Some(match op {
        Operator::Eq => Comparison::Eq,
        Operator::NotEq => Comparison::NotEq,
        Operator::Lt => Comparison::Less,
        Operator::LtEq => Comparison::LessOrEqual,
        Operator::Gt => Comparison::Greater,
        Operator::GtEq => Comparison::GreaterOrEqual,
        _ => return None,
    })
}

fn compare(expr: &Expr, how: Comparison, literal: &ScalarValue, find: &Find<'_>) -> Option<(usize, Test)> {
    let (at, data_type) = find(expr)?;
    compare_with(how, value_of(literal, data_type)?).map(|test| (at, test))
}

/// The comparison with a value. Filters take both zeros of floats for equal, the storage has the negative one first.
fn compare_with(how: Comparison, value: Value) -> Option<Test> {
    let Some((negative, positive)) = zeros(&value) else { return Some(Test::Compare(how, value)) };
    match how {
        Comparison::Eq => Some(Test::Between(negative, positive)),
        Comparison::NotEq => None,
        Comparison::Less | Comparison::GreaterOrEqual => Some(Test::Compare(how, negative)),
        Comparison::LessOrEqual | Comparison::Greater => Some(Test::Compare(how, positive)),
    }
}

/// Both zeros of its type, where a value is one of them.
fn zeros(value: &Value) -> Option<(Value, Value)> {
    match value {
        Value::Real(0.0) => Some((Value::Real(-0.0), Value::Real(0.0))),
        Value::Double(0.0) => Some((Value::Double(-0.0), Value::Double(0.0))),
        _ => None,
    }
}

/// Sets of floats are compared by their bits, while single ones are by their order.
fn is_listed(data_type: DataType) -> bool {
    !matches!(data_type, DataType::Real | DataType::Double)
}

/// `a = 1 OR a = 2`, which is what the planner makes of a short `IN`.
fn any_of(condition: &Expr, find: &Find<'_>) -> Option<(usize, Test)> {
    let (mut values, mut operands) = (Vec::new(), HashSet::new());
    let mut rest = vec![condition];
    while let Some(next) = rest.pop() {
        match next {
            Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right }) => rest.extend([&**right, &**left]),
            other => {
                let found = test_of(other, find)?;
                match found.1 {
                    Test::Compare(Comparison::Eq, value) => values.push(value),
                    Test::In(list) => values.extend(list),
                    _ => return None,
                }
                operands.insert(found.0);
            }
        }
    }
    let at = operands.iter().next().copied().filter(|_| operands.len() == 1)?;
    let is_float = |value: &Value| matches!(value, Value::Real(_) | Value::Double(_));
    (!values.iter().any(is_float)).then_some((at, Test::In(values)))
}

/// `LIKE 'prefix%'`. A pattern with any other wildcard, or a sign that takes one its meaning, stays a filter.
fn prefix(like: &Like, find: &Find<'_>) -> Option<(usize, Test)> {
    let Like { negated: false, expr, pattern, escape_char: None, case_insensitive: false } = like else { return None };
    let (at, data_type) = find(expr)?;
    if !matches!(data_type, DataType::Text { .. } | DataType::Char { .. }) {
        return None;
    }
    let Value::Text(pattern) = literal(pattern, data_type)? else { return None };
    let start = pattern.strip_suffix('%').filter(|start| !start.contains(['%', '_', '\\']))?;
    Some((at, Test::Prefix(start.as_bytes().to_vec())))
}

/// An operand that is a boolean as a condition.
fn is(expr: &Expr, value: bool, find: &Find<'_>) -> Option<(usize, Test)> {
    let (at, data_type) = find(expr)?;
    (data_type == DataType::Boolean).then_some((at, Test::Compare(Comparison::Eq, Value::Boolean(value))))
}

/// Writes tests as `EXPLAIN` shows them, after what else it shows.
pub(crate) fn write(f: &mut fmt::Formatter<'_>, tests: &[(usize, Test)], schema: &Schema) -> fmt::Result {
    if tests.is_empty() {
        return Ok(());
    }
    let tests: Vec<String> = tests.iter().map(|test| show(test, schema)).collect();
    write!(f, ", tests=[{}]", tests.join(", "))
}

fn show(test: &(usize, Test), schema: &Schema) -> String {
    let name = &schema.columns()[test.0].name;
    match &test.1 {
        Test::Compare(comparison, value) => format!("{name} {} {value}", sign(*comparison)),
        Test::Between(low, high) => format!("{name} BETWEEN {low} AND {high}"),
        Test::In(values) if values.len() > 5 => format!("{name} IN ({} values)", values.len()),
        Test::In(values) => {
            let values: Vec<String> = values.iter().map(Value::to_string).collect();
            format!("{name} IN ({})", values.join(", "))
        }
        Test::IsNull => format!("{name} IS NULL"),
        Test::IsNotNull => format!("{name} IS NOT NULL"),
        Test::Prefix(start) => format!("{name} LIKE {}%", String::from_utf8_lossy(start)),
        Test::Among(_) => format!("{name} IN (keys of a join)"),
    }
}

fn sign(comparison: Comparison) -> &'static str {
    match comparison {
        Comparison::Eq => "=",
        Comparison::NotEq => "<>",
        Comparison::Less => "<",
        Comparison::LessOrEqual => "<=",
        Comparison::Greater => ">",
        Comparison::GreaterOrEqual => ">=",
    }
}

#[cfg(test)]
mod tests {
    use datafusion::logical_expr::{col, lit};
    use engine::Column;

    use super::*;

    fn schema() -> Schema {
        let money = DataType::Decimal { precision: 10, scale: 2 };
        let types = [("a", DataType::Integer), ("m", money), ("t", DataType::TEXT), ("f", DataType::Double)];
        let columns = types.into_iter().chain([("b", DataType::Boolean), ("u", DataType::Uuid)]);
        Schema::new(columns.map(|(name, data_type)| Column::new(name, data_type)).collect(), &["a"]).unwrap()
    }

    fn shown(condition: Expr) -> Option<String> {
        let schema = schema();
        test(&condition, &schema).map(|test| show(&test, &schema))
    }

    fn text(value: &str) -> Expr {
        lit(ScalarValue::Utf8View(Some(value.to_owned())))
    }

    #[test]
    fn what_a_scan_can_test_is_found() {
        let cases = [
            (col("a").lt(lit(5)), "a < 5"),
            (lit(5).lt_eq(col("a")), "a >= 5"),
            (col("a").between(lit(1), lit(2)), "a BETWEEN 1 AND 2"),
            (col("a").eq(lit(1)).or(col("a").eq(lit(2))).or(lit(3).eq(col("a"))), "a IN (1, 2, 3)"),
            (col("a").in_list(vec![lit(1), lit(ScalarValue::Int32(None)), lit(9)], false), "a IN (1, 9)"),
            (col("m").gt(lit(ScalarValue::Decimal128(Some(150), 10, 2))), "m > 1.50"),
            (col("t").like(text("ab%")), "t LIKE ab%"),
            (col("t").not_eq(text("x")), "t <> x"),
            (col("f").is_null(), "f IS NULL"),
            (col("f").eq(lit(0.0)), "f BETWEEN -0 AND 0"),
            (col("f").lt(lit(0.0)), "f < -0"),
            (col("f").gt(lit(-0.0)), "f > 0"),
            (col("f").gt_eq(lit(0.5)), "f >= 0.5"),
            (col("b"), "b = t"),
            (Expr::Not(Box::new(col("b"))), "b = f"),
        ];
        for (condition, expected) in cases {
            assert_eq!(shown(condition.clone()).as_deref(), Some(expected), "{condition}");
        }
    }

    #[test]
    fn what_a_scan_would_answer_otherwise_stays_a_filter() {
        let cases = [
            col("a").eq(lit(5i64)),
            col("a").eq(lit(ScalarValue::Int32(None))),
            col("a").lt(col("m")),
            col("hidden").eq(lit(1)),
            col("m").gt(lit(ScalarValue::Decimal128(Some(1500), 10, 3))),
            col("a").in_list(vec![lit(1)], true),
            col("a").eq(lit(1)).or(col("m").is_null()),
            col("a").eq(lit(1)).or(col("f").eq(lit(1.0))),
            col("f").not_eq(lit(0.0)),
            col("f").in_list(vec![lit(1.0), lit(2.0)], false),
            col("t").like(text("a_%")),
            col("t").like(text("%a")),
            col("t").like(text("a\\%")),
            col("t").not_like(text("a%")),
            col("t").ilike(text("a%")),
            col("u").eq(text("NOT-CANONICAL")),
            col("u").like(text("a%")),
            col("a"),
        ];
        for condition in cases {
            assert_eq!(shown(condition.clone()), None, "{condition}");
        }
    }
}
