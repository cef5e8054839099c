//! The answer of a subquery's rows, in three values where values are compared.
use std::cmp::Ordering;
use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, ListArray, RecordBatch, StructArray};
use arrow_schema::DataType as ArrowType;
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::compute::{cast, concat};
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::Operator;

use super::call::Kind;
use crate::error::SqlError;

/// The answer of a subquery, as far as its rows are known.
#[derive(Debug)]
pub(super) enum Answer {
    /// The answer.
    Value(ScalarValue),
    /// Values that others are compared with.
    Members(Members),
}

impl Answer {
    /// The answer of the rows, as a value of the type `returns`.
    pub(super) fn of(kind: Kind, returns: &ArrowType, batches: &[RecordBatch]) -> Result<Answer> {
        Ok(match kind {
            Kind::Exists => {
                let exists = batches.iter().any(|batch| batch.num_rows() > 0);
                Answer::Value(ScalarValue::Boolean(Some(exists)))
            }
            Kind::Scalar => Answer::Value(only_value(returns, batches)?),
            Kind::Members { .. } | Kind::HasMembers => Answer::Members(Members::of(batches)?),
            Kind::Rows => Answer::Value(list(returns, batches)?),
        })
    }

    /// The answer, for a value that is compared if there is one.
    pub(super) fn value(&self, kind: Kind, operand: Option<ScalarValue>) -> Result<ScalarValue> {
        match (self, kind, operand) {
            (Answer::Value(value), _, _) => Ok(value.clone()),
            (Answer::Members(members), Kind::Members { op, is_all }, Some(operand)) => {
                Ok(ScalarValue::Boolean(members.compare(plain(operand), op, is_all)))
            }
            (Answer::Members(members), Kind::HasMembers, _) => {
                Ok(ScalarValue::Boolean(Some(members.has_null || !members.values.is_empty())))
            }
            _ => Err(DataFusionError::Internal("nothing to compare a subquery with".to_owned())),
        }
    }
}

fn only_value(returns: &ArrowType, batches: &[RecordBatch]) -> Result<ScalarValue> {
    let mut batches = batches.iter().filter(|batch| batch.num_rows() > 0);
    match (batches.next(), batches.next()) {
        (None, _) => ScalarValue::try_new_null(returns),
        (Some(one), None) if one.num_rows() == 1 => {
            let value = ScalarValue::try_from_array(one.column(0), 0)?;
            if value.data_type() == *returns { Ok(value) } else { value.cast_to(returns) }
        }
        _ => {
            let message = "more than one row returned by a subquery used as an expression";
            Err(DataFusionError::External(Box::new(SqlError::new("21000", message))))
        }
    }
}

/// The rows as a list of structures, or NULL if there are none.
fn list(returns: &ArrowType, batches: &[RecordBatch]) -> Result<ScalarValue> {
    let count: usize = batches.iter().map(RecordBatch::num_rows).sum();
    let ArrowType::List(item) = returns else { return Err(no_list()) };
    let ArrowType::Struct(fields) = item.data_type() else { return Err(no_list()) };
    if count == 0 {
        return ScalarValue::try_new_null(returns);
    }
    let mut columns: Vec<ArrayRef> = Vec::with_capacity(fields.len());
    for (at, field) in fields.iter().enumerate() {
        let parts: Vec<&dyn Array> = batches.iter().map(|batch| batch.column(at).as_ref()).collect();
        columns.push(cast(&concat(&parts)?, field.data_type())?);
    }
    let rows = match columns.is_empty() {
        true => StructArray::new_empty_fields(count, None),
        false => StructArray::try_new(fields.clone(), columns, None)?,
    };
    let list = ListArray::try_new(item.clone(), OffsetBuffer::from_lengths([count]), Arc::new(rows), None)?;
    Ok(ScalarValue::List(Arc::new(list)))
}

fn no_list() -> DataFusionError {
    DataFusionError::Internal("the rows of a subquery are no list".to_owned())
}

/// The two zeros of floats are equal.
fn plain(value: ScalarValue) -> ScalarValue {
    match value {
        ScalarValue::Float32(Some(value)) => ScalarValue::Float32(Some(value + 0.0)),
        ScalarValue::Float64(Some(value)) => ScalarValue::Float64(Some(value + 0.0)),
        other => other,
    }
}

/// The values of a subquery's column.
#[derive(Debug, Default)]
pub(super) struct Members {
    values: HashSet<ScalarValue>,
    has_null: bool,
    least: Option<ScalarValue>,
    greatest: Option<ScalarValue>,
}

impl Members {
    fn of(batches: &[RecordBatch]) -> Result<Members> {
        let mut members = Members::default();
        for batch in batches {
            for row in 0..batch.num_rows() {
                let value = plain(ScalarValue::try_from_array(batch.column(0), row)?);
                if value.is_null() {
                    members.has_null = true;
                } else {
                    members.add(value);
                }
            }
        }
        Ok(members)
    }

    fn add(&mut self, value: ScalarValue) {
        let is_new = |known: &Option<ScalarValue>, order| {
            known.as_ref().is_none_or(|known| value.partial_cmp(known) == Some(order))
        };
        if is_new(&self.least, Ordering::Less) {
            self.least = Some(value.clone());
        }
        if is_new(&self.greatest, Ordering::Greater) {
            self.greatest = Some(value.clone());
        }
        self.values.insert(value);
    }

    /// Whether a value compares so with any of the values, or with all; `None` is unknown.
    fn compare(&self, value: ScalarValue, op: Operator, is_all: bool) -> Option<bool> {
        if self.values.is_empty() && !self.has_null {
            return Some(is_all);
        }
        if value.is_null() {
            return None;
        }
        // `x op ALL` is false as soon as the inverse holds for one, as `x op ANY` is true.
        let decides = match is_all {
            true => self.any(&value, op.negate()?),
            false => self.any(&value, op),
        };
        match (decides, self.has_null) {
            (true, _) => Some(!is_all),
            (false, true) => None,
            (false, false) => Some(is_all),
        }
    }

    /// Whether it holds for one of the values that are not NULL.
    fn any(&self, value: &ScalarValue, op: Operator) -> bool {
        let to = |other: &Option<ScalarValue>| other.as_ref().and_then(|other| value.partial_cmp(other));
        match op {
            Operator::Eq => self.values.contains(value),
            Operator::NotEq => self.values.len() > usize::from(self.values.contains(value)),
            Operator::Lt => to(&self.greatest).is_some_and(Ordering::is_lt),
            Operator::LtEq => to(&self.greatest).is_some_and(Ordering::is_le),
            Operator::Gt => to(&self.least).is_some_and(Ordering::is_gt),
            Operator::GtEq => to(&self.least).is_some_and(Ordering::is_ge),
            _ => false,
        }
    }
}
