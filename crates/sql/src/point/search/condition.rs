//! Conditions on a column, whose other side is known when the statement runs.
//!
//! What is read here is what a scan tests exactly as the planner's filter would (`access/conditions`).
use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, UnaryOperator};
use engine::{Comparison, DataType, Test, Value};

use crate::point::bound::Bound;
use crate::point::scope::Scope;
use crate::point::term::Origin;

/// Lists of values up to so many.
const VALUES_MAX: usize = 256;

/// A condition on a column of a table.
#[derive(Clone, Debug)]
pub(crate) struct Condition {
    column: usize,
    relation: Relation,
}

/// What holds of the column.
#[derive(Clone, Debug)]
enum Relation {
    Compare(Comparison, Origin),
    Between(Origin, Origin),
    In(Vec<Origin>),
    IsNull,
    IsNotNull,
}

/// Whether values of a type are compared by the planner in another way than by how they are kept: the zeros of floats, equal
/// intervals, numerics that show more decimals and numbers in JSON that are written otherwise, and shapes, which are compared by
/// their areas.
pub(crate) fn is_compared_otherwise(data_type: DataType) -> bool {
    use DataType::{Array, Double, Geometry, Interval, Json, Jsonb, Numeric, Real};

    match data_type {
        Array(item) => is_compared_otherwise(item.data_type()),
        other => matches!(other, Real | Double | Numeric | Json | Jsonb | Interval | Geometry(_)),
    }
}

/// Whether rows are put in order by values of a type in another way than by how these are kept. Numerics that are equal are in any
/// order, which nothing shows if no other value decides behind them.
pub(crate) fn is_sorted_otherwise(data_type: DataType, is_last: bool) -> bool {
    is_compared_otherwise(data_type) && !(is_last && data_type == DataType::Numeric)
}

impl Condition {
    /// The column that it is about.
    pub(crate) fn column(&self) -> usize {
        self.column
    }

    /// This condition on another column.
    pub(crate) fn of_column(self, column: usize) -> Condition {
        Condition { column, ..self }
    }

    /// That a column has a value.
    pub(super) fn equal(column: usize, value: Origin) -> Condition {
        Condition { column, relation: Relation::Compare(Comparison::Eq, value) }
    }

    /// That a column is not NULL.
    pub(crate) fn is_not_null(column: usize) -> Condition {
        Condition { column, relation: Relation::IsNotNull }
    }

    /// The least and the greatest value of those that fulfil it, if it is about that.
    pub(super) fn extremes(&self) -> Option<(&Origin, &Origin)> {
        match &self.relation {
            Relation::Compare(Comparison::Eq, value) => Some((value, value)),
            Relation::Between(low, high) => Some((low, high)),
            _ => None,
        }
    }

    /// Conditions, of which a least and a greatest value of one column are one.
    pub(super) fn joined(mut conditions: Vec<Condition>) -> Vec<Condition> {
        let bound = |condition: &Condition, wanted: Comparison| match &condition.relation {
            Relation::Compare(comparison, value) if *comparison == wanted => Some(value.clone()),
            _ => None,
        };
        let mut at = 0;
        while at < conditions.len() {
            let column = conditions[at].column;
            let low = bound(&conditions[at], Comparison::GreaterOrEqual);
            let high = |other: &Condition| bound(other, Comparison::LessOrEqual).filter(|_| other.column == column);
            let place = low.as_ref().and_then(|_| conditions.iter().position(|other| high(other).is_some()));
            if let (Some(low), Some(place)) = (low, place)
                && let Some(high) = high(&conditions[place])
            {
                conditions[at].relation = Relation::Between(low, high);
                conditions.remove(place);
                at -= usize::from(place < at);
            }
            at += 1;
        }
        conditions
    }

    /// Whether NULL alone fulfils it; no other condition holds of NULL.
    pub(crate) fn is_null(&self) -> bool {
        matches!(self.relation, Relation::IsNull)
    }
}

impl Scope<'_> {
    /// The condition that an expression is.
    pub(crate) fn condition(&self, expr: &Expr) -> Option<Condition> {
        let condition = self.relation(expr)?;
        // Of numerics the storage takes those for equal that the planner does.
        Some(condition).filter(|condition| match self.known(condition.column).data_type {
            DataType::Numeric => true,
            other => !is_compared_otherwise(other),
        })
    }

    fn relation(&self, expr: &Expr) -> Option<Condition> {
        let value = |column: usize, expr: &Expr| self.key_value(expr, self.known(column));
        let (column, relation) = match expr {
            Expr::BinaryOp { left, op, right } => {
                let (column, value_side, is_turned) = match (self.column(left), self.column(right)) {
                    (Some(column), None) => (column, right, false),
                    (None, Some(column)) => (column, left, true),
                    _ => return None,
                };
                (column, Relation::Compare(comparison(op, is_turned)?, value(column, value_side)?))
            }
            Expr::Between { expr, negated: false, low, high } => {
                let column = self.column(expr)?;
                (column, Relation::Between(value(column, low)?, value(column, high)?))
            }
            Expr::InList { expr, list, negated: false } if list.len() <= VALUES_MAX => {
                let column = self.column(expr)?;
                let values = list.iter().map(|item| value(column, item)).collect::<Option<_>>()?;
                (column, Relation::In(values))
            }
            Expr::IsNull(expr) => (self.column(expr)?, Relation::IsNull),
            Expr::IsNotNull(expr) => (self.column(expr)?, Relation::IsNotNull),
            Expr::UnaryOp { op: UnaryOperator::Not, expr } => self.truth(expr, false)?,
            other => self.truth(other, true)?,
        };
        Some(Condition { column, relation })
    }

    /// A column of booleans that is to be true or false.
    fn truth(&self, expr: &Expr, is_true: bool) -> Option<(usize, Relation)> {
        let column = self.column(expr)?;
        let is_boolean = self.known(column).data_type == DataType::Boolean;
        let value = Origin::Constant(Value::Boolean(is_true));
        is_boolean.then_some((column, Relation::Compare(Comparison::Eq, value)))
    }
}

/// A comparison; the column stands on the right of one that is turned.
fn comparison(op: &BinaryOperator, is_turned: bool) -> Option<Comparison> {
    Some(match (op, is_turned) {
        (BinaryOperator::Eq, _) => Comparison::Eq,
        (BinaryOperator::NotEq, _) => Comparison::NotEq,
        (BinaryOperator::Lt, false) | (BinaryOperator::Gt, true) => Comparison::Less,
        (BinaryOperator::LtEq, false) | (BinaryOperator::GtEq, true) => Comparison::LessOrEqual,
        (BinaryOperator::Gt, false) | (BinaryOperator::Lt, true) => Comparison::Greater,
        (BinaryOperator::GtEq, false) | (BinaryOperator::LtEq, true) => Comparison::GreaterOrEqual,
        _ => return None,
    })
}

impl Bound<'_> {
    /// The tests that conditions are. One against NULL goes the long way.
    pub(crate) fn tests(&self, conditions: &[Condition]) -> Option<Vec<(usize, Test)>> {
        conditions.iter().map(|condition| Some((condition.column, self.test(&condition.relation)?))).collect()
    }

    fn test(&self, relation: &Relation) -> Option<Test> {
        let value = |origin: &Origin| self.value(origin).filter(|value| !value.is_null());
        Some(match relation {
            Relation::Compare(comparison, origin) => Test::Compare(*comparison, value(origin)?),
            Relation::Between(low, high) => Test::Between(value(low)?, value(high)?),
            Relation::In(origins) => Test::In(origins.iter().map(value).collect::<Option<_>>()?),
            Relation::IsNull => Test::IsNull,
            Relation::IsNotNull => Test::IsNotNull,
        })
    }
}
