//! Conditions that may be asked of other rows than before.
//!
//! A join in another place sees rows that another join took away before. So its conditions must not fail for any row
//! (`1 / a.x = b.y`), must not change from one call to the next, and must not hold queries.
use arrow_schema::DataType;
use datafusion::common::DFSchema;
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{Between, BinaryExpr, Cast, Expr, ExprSchemable, Like, Operator};

/// Whether the condition has a value for every row of `schema`, and always the same.
pub(super) fn is_steady(expr: &Expr, schema: &DFSchema) -> bool {
    let steady = |expr: &Expr| is_steady(expr, schema);
    match expr {
        Expr::Column(_) | Expr::Literal(..) => true,
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => is_steady_operator(*op) && steady(left) && steady(right),
        Expr::Not(inner)
        | Expr::IsNull(inner)
        | Expr::IsNotNull(inner)
        | Expr::IsTrue(inner)
        | Expr::IsFalse(inner)
        | Expr::IsUnknown(inner)
        | Expr::IsNotTrue(inner)
        | Expr::IsNotFalse(inner)
        | Expr::IsNotUnknown(inner) => steady(inner),
        Expr::Between(Between { expr, low, high, .. }) => steady(expr) && steady(low) && steady(high),
        Expr::InList(InList { expr, list, .. }) => steady(expr) && list.iter().all(steady),
        Expr::Like(Like { expr, pattern, .. }) => steady(expr) && matches!(**pattern, Expr::Literal(..)),
        Expr::Cast(Cast { expr, field }) => {
            expr.get_type(schema).is_ok_and(|from| is_widening(&from, field.data_type())) && steady(expr)
        }
        _ => false,
    }
}

fn is_steady_operator(op: Operator) -> bool {
    matches!(
        op,
        Operator::Eq
            | Operator::NotEq
            | Operator::Lt
            | Operator::LtEq
            | Operator::Gt
            | Operator::GtEq
            | Operator::And
            | Operator::Or
            | Operator::IsDistinctFrom
            | Operator::IsNotDistinctFrom
    )
}

/// Whether every value of a type has one in the other.
fn is_widening(from: &DataType, to: &DataType) -> bool {
    let whole_digits = |data_type: &DataType| match data_type {
        DataType::Int16 => Some(5),
        DataType::Int32 => Some(10),
        DataType::Int64 => Some(19),
        _ => None,
    };
    match (from, to) {
        _ if from == to => true,
        (DataType::Int16, DataType::Int32 | DataType::Int64 | DataType::Float64) => true,
        (DataType::Int32, DataType::Int64 | DataType::Float64) => true,
        (DataType::Float32, DataType::Float64) => true,
        (DataType::Decimal128(digits, scale), DataType::Decimal128(to_digits, to_scale)) => {
            scale <= to_scale && i16::from(*digits) - i16::from(*scale) <= i16::from(*to_digits) - i16::from(*to_scale)
        }
        (from, DataType::Decimal128(digits, scale)) => {
            whole_digits(from).is_some_and(|whole| whole <= i16::from(*digits) - i16::from(*scale))
        }
        (DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View, DataType::Utf8View | DataType::LargeUtf8) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use arrow_schema::{Field, Schema};
    use datafusion::logical_expr::{cast, col, lit};

    use super::*;

    #[test]
    fn what_may_fail_or_change_is_not_steady() {
        let fields = [("a", DataType::Int32), ("b", DataType::Int64), ("s", DataType::Utf8View)];
        let schema = Schema::new(fields.map(|(name, data_type)| Field::new(name, data_type, true)).to_vec());
        let schema = DFSchema::try_from(schema).unwrap();
        let steady = [
            col("a").eq(lit(1)).or(col("b").gt(lit(2i64))),
            cast(col("a"), DataType::Int64).eq(col("b")),
            cast(col("b"), DataType::Decimal128(20, 0)).lt(lit(1)),
            col("s").like(lit("a%")).and(col("a").is_null()),
            col("a").between(lit(1), lit(2)),
        ];
        let others = [
            (lit(1) / col("a")).eq(lit(1)),
            (col("a") + lit(1)).eq(lit(1)),
            cast(col("b"), DataType::Int32).eq(col("a")),
            cast(col("b"), DataType::Decimal128(20, 2)).eq(lit(1)),
            cast(col("s"), DataType::Int32).eq(col("a")),
            col("s").like(col("s")),
        ];
        for (conditions, expected) in [(&steady[..], true), (&others[..], false)] {
            conditions.iter().for_each(|condition| assert_eq!(is_steady(condition, &schema), expected, "{condition}"));
        }
    }
}
