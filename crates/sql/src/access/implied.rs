//! Whether the conditions of a query say as much as the predicate of an index: then all rows that pass are in the index.
//!
//! It is a matter of their form, as in PostgreSQL. Each part of the predicate, as joined by AND, must be among the
//! conditions, or follow from one of them: both are tests of one column against constants, or the condition can't
//! hold where an operand is NULL that the predicate says is not. A predicate that does not follow in this way may
//! still be true; then the index is not used.
use std::ops::Bound;

use datafusion::common::ScalarValue;
use datafusion::logical_expr::expr::{Between, InList, Like};
use datafusion::logical_expr::utils::{split_binary, split_conjunction};
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};
use engine::{Comparison, DataType, Schema, Test, Value};

use crate::access::conditions::test;

/// Whether a predicate holds for every row that passes all of the conditions.
pub(crate) fn is_implied(predicate: &Expr, conditions: &[Expr], schema: &Schema) -> bool {
    let is_true = |part: &Expr| matches!(part, Expr::Literal(ScalarValue::Boolean(Some(true)), _));
    let follows = |part: &Expr| conditions.iter().any(|known| follows(part, known, schema));
    split_conjunction(predicate).into_iter().all(|part| is_true(part) || follows(part))
}

/// Whether a condition is one from which a part of a predicate follows.
pub(crate) fn says_of(predicate: &Expr, condition: &Expr, schema: &Schema) -> bool {
    split_conjunction(predicate).into_iter().any(|part| follows(part, condition, schema))
}

fn is_or(expr: &Expr) -> bool {
    matches!(expr, Expr::BinaryExpr(BinaryExpr { op: Operator::Or, .. }))
}

fn is_and(expr: &Expr) -> bool {
    matches!(expr, Expr::BinaryExpr(BinaryExpr { op: Operator::And, .. }))
}

/// Whether `wanted` holds wherever `known` does.
fn follows(wanted: &Expr, known: &Expr, schema: &Schema) -> bool {
    if wanted == known {
        return true;
    }
    if let (Some((of, known)), Some((at, wanted))) = (test(known, schema), test(wanted, schema)) {
        return of == at && test_follows(&wanted, &known, schema.columns()[at].data_type);
    }
    if is_or(known) {
        return split_binary(known, Operator::Or).into_iter().all(|arm| follows(wanted, arm, schema));
    }
    if is_and(known) {
        return split_conjunction(known).into_iter().any(|part| follows(wanted, part, schema));
    }
    if is_or(wanted) {
        return split_binary(wanted, Operator::Or).into_iter().any(|arm| follows(arm, known, schema));
    }
    if is_and(wanted) {
        return split_conjunction(wanted).into_iter().all(|part| follows(part, known, schema));
    }
    matches!(wanted, Expr::IsNotNull(operand) if is_strict(known, operand))
}

fn is_comparison(op: Operator) -> bool {
    matches!(op, Operator::Eq | Operator::NotEq | Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq)
}

/// Whether a condition never holds where an operand is NULL.
fn is_strict(condition: &Expr, operand: &Expr) -> bool {
    match condition {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            is_comparison(*op) && (**left == *operand || **right == *operand)
        }
        Expr::InList(InList { expr, .. }) | Expr::Between(Between { expr, .. }) | Expr::Like(Like { expr, .. }) => {
            **expr == *operand
        }
        Expr::IsNotNull(expr) => **expr == *operand,
        _ => false,
    }
}

/// Whether every value of a type that passes `known` passes `wanted`.
fn test_follows(wanted: &Test, known: &Test, data_type: DataType) -> bool {
    let passes = |value: &Value| wanted.holds_for(value, data_type);
    match (known, wanted) {
        (Test::IsNull, _) => *wanted == Test::IsNull,
        (_, Test::IsNull) => false,
        (_, Test::IsNotNull) => true,
        (Test::Compare(Comparison::Eq, value), _) => passes(value),
        (Test::In(values), _) => values.iter().all(passes),
        (Test::Prefix(longer), Test::Prefix(shorter)) => longer.starts_with(shorter),
        (_, Test::Compare(Comparison::NotEq, value)) => !known.holds_for(value, data_type),
        _ => match (range(known), range(wanted)) {
            (Some(known), Some(wanted)) => {
                let order = |how, value: &Value, against: &Value| {
                    Test::Compare(how, against.clone()).holds_for(value, data_type)
                };
                let above = |strictly: bool, value: &Value, against: &Value| {
                    let how = if strictly { Comparison::Greater } else { Comparison::GreaterOrEqual };
                    order(how, value, against)
                };
                let below = |strictly: bool, value: &Value, against: &Value| {
                    let how = if strictly { Comparison::Less } else { Comparison::LessOrEqual };
                    order(how, value, against)
                };
                is_within(known.0, wanted.0, above) && is_within(known.1, wanted.1, below)
            }
            _ => false,
        },
    }
}

/// Whether one bound lies within another; `is_beyond` compares two values, strictly or not.
fn is_within(known: Bound<&Value>, wanted: Bound<&Value>, is_beyond: impl Fn(bool, &Value, &Value) -> bool) -> bool {
    match (known, wanted) {
        (_, Bound::Unbounded) => true,
        (Bound::Unbounded, _) => false,
        (Bound::Included(known), Bound::Excluded(wanted)) => is_beyond(true, known, wanted),
        (Bound::Included(known) | Bound::Excluded(known), Bound::Included(wanted) | Bound::Excluded(wanted)) => {
            is_beyond(false, known, wanted)
        }
    }
}

/// The values that pass a test, where they are a range.
fn range(test: &Test) -> Option<(Bound<&Value>, Bound<&Value>)> {
    Some(match test {
        Test::Compare(Comparison::Eq, value) => (Bound::Included(value), Bound::Included(value)),
        Test::Compare(Comparison::Less, value) => (Bound::Unbounded, Bound::Excluded(value)),
        Test::Compare(Comparison::LessOrEqual, value) => (Bound::Unbounded, Bound::Included(value)),
        Test::Compare(Comparison::Greater, value) => (Bound::Excluded(value), Bound::Unbounded),
        Test::Compare(Comparison::GreaterOrEqual, value) => (Bound::Included(value), Bound::Unbounded),
        Test::Between(low, high) => (Bound::Included(low), Bound::Included(high)),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use datafusion::logical_expr::{col, lit};
    use engine::Column;

    use super::*;

    fn schema() -> Schema {
        let types =
            [("a", DataType::Integer), ("b", DataType::Integer), ("t", DataType::TEXT), ("f", DataType::Double)];
        let columns = types.into_iter().chain([("o", DataType::Boolean)]);
        Schema::new(columns.map(|(name, data_type)| Column::new(name, data_type)).collect(), &[]).unwrap()
    }

    fn text(value: &str) -> Expr {
        lit(ScalarValue::Utf8View(Some(value.to_owned())))
    }

    #[test]
    fn what_follows_from_the_conditions_is_implied() {
        let cases = [
            (col("a").gt(lit(0)), vec![col("a").gt(lit(0))]),
            (col("a").gt(lit(0)), vec![col("b").eq(lit(9)), col("a").eq(lit(1))]),
            (col("a").gt(lit(0)), vec![col("a").gt_eq(lit(1))]),
            (col("a").gt_eq(lit(0)), vec![col("a").gt(lit(0))]),
            (col("a").gt(lit(0)), vec![col("a").in_list(vec![lit(1), lit(2)], false)]),
            (col("a").gt(lit(0)).and(col("a").lt(lit(9))), vec![col("a").gt(lit(1)), col("a").lt(lit(9))]),
            (col("a").gt(lit(0)), vec![col("a").eq(lit(1)).and(col("b").is_null()).or(col("a").eq(lit(2)))]),
            (col("a").not_eq(lit(0)), vec![col("a").lt(lit(0))]),
            (col("a").is_not_null(), vec![col("a").lt(lit(0))]),
            (col("a").is_not_null(), vec![col("b").lt(col("a"))]),
            (col("a").is_not_null(), vec![col("a").in_list(vec![col("b")], true)]),
            (col("a").is_null(), vec![col("a").is_null()]),
            (col("a").lt(col("b")), vec![col("a").lt(col("b"))]),
            (col("a").eq(lit(1)).or(col("t").is_null()), vec![col("t").is_null()]),
            (col("t").like(text("a%")), vec![col("t").like(text("ab%"))]),
            (col("t").like(text("a%")), vec![col("t").eq(text("abc"))]),
            (col("t").gt(text("a")), vec![col("t").eq(text("b"))]),
            (col("f").gt(lit(0.0)), vec![col("f").gt(lit(0.5))]),
            (col("o"), vec![col("o")]),
            (lit(true), vec![]),
        ];
        for (predicate, conditions) in cases {
            assert!(is_implied(&predicate, &conditions, &schema()), "{predicate} by {conditions:?}");
        }
    }

    #[test]
    fn what_might_be_false_is_not_implied() {
        let cases = [
            (col("a").gt(lit(0)), vec![]),
            (col("a").gt(lit(0)), vec![col("b").eq(lit(1))]),
            (col("a").gt(lit(0)), vec![col("a").gt_eq(lit(0))]),
            (col("a").gt(lit(0)), vec![col("a").lt(lit(5))]),
            (col("a").gt(lit(0)), vec![col("a").in_list(vec![lit(1), lit(0)], false)]),
            (col("a").gt(lit(0)), vec![col("a").eq(lit(1)).or(col("b").eq(lit(1)))]),
            (col("a").gt(lit(0)).and(col("b").gt(lit(0))), vec![col("a").gt(lit(0))]),
            (col("a").not_eq(lit(0)), vec![col("a").gt_eq(lit(0))]),
            (col("a").is_not_null(), vec![col("a").is_null()]),
            (col("a").is_not_null(), vec![col("b").is_not_null()]),
            (col("a").is_null(), vec![col("a").eq(lit(1))]),
            (col("t").like(text("ab%")), vec![col("t").like(text("a%"))]),
            (col("f").gt(lit(0.0)), vec![col("f").gt_eq(lit(0.0))]),
            (col("o"), vec![Expr::Not(Box::new(col("o")))]),
            (lit(false), vec![col("o")]),
        ];
        for (predicate, conditions) in cases {
            assert!(!is_implied(&predicate, &conditions, &schema()), "{predicate} by {conditions:?}");
        }
    }
}
