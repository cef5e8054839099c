//! The answer of a subquery's rows, in three values where values are compared.
use std::cmp::Ordering;
use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, BooleanArray, Int64Array, ListArray, RecordBatch, StructArray};
use arrow_schema::DataType as ArrowType;
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::compute::{cast, concat};
use datafusion::arrow::row::{Row, RowConverter, SortField};
use datafusion::common::ScalarValue;
use datafusion::common::hash_utils::RandomState;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{ColumnarValue, Operator};

use super::call::Kind;
use crate::error::SqlError;
use crate::functions::spaces::{areas_of, compare_areas};

/// The answer of a subquery, as far as its rows are known.
#[derive(Debug)]
pub(super) enum Answer {
    /// The answer.
    Value(ScalarValue),
    /// Values that others are compared with.
    Members(Box<Members>),
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
            Kind::Members { .. } | Kind::HasMembers => Answer::Members(Box::new(Members::of(batches)?)),
            Kind::Rows => Answer::Value(list(returns, batches)?),
        })
    }

    /// The answers for so many rows, with the values that are compared if there are any.
    pub(super) fn values(&self, kind: Kind, operands: Option<&ArrayRef>) -> Result<ColumnarValue> {
        match (self, kind, operands) {
            (Answer::Value(value), _, _) => Ok(ColumnarValue::Scalar(value.clone())),
            (Answer::Members(members), Kind::Members { op, is_all }, Some(operands)) => {
                Ok(ColumnarValue::Array(Arc::new(members.compare(operands, op, is_all)?)))
            }
            (Answer::Members(members), Kind::HasMembers, _) => {
                Ok(ColumnarValue::Scalar(ScalarValue::Boolean(Some(!members.is_empty()))))
            }
            _ => Err(DataFusionError::Internal("nothing to compare a subquery with".to_owned())),
        }
    }

    /// The answer for one row.
    pub(super) fn value(&self, kind: Kind, operand: Option<&ArrayRef>) -> Result<ScalarValue> {
        match self.values(kind, operand)? {
            ColumnarValue::Scalar(value) => Ok(value),
            ColumnarValue::Array(values) => ScalarValue::try_from_array(&values, 0),
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

fn areas(values: &ArrayRef) -> Result<Option<Vec<Option<f64>>>> {
    areas_of(values).map_err(|error| DataFusionError::External(Box::new(error)))
}

/// Values of which the two zeros of floats are one.
fn plain(values: &ArrayRef) -> ArrayRef {
    match values.data_type() {
        ArrowType::Float32 => {
            Arc::new(values.as_primitive::<Float32Type>().unary::<_, Float32Type>(|value| value + 0.0))
        }
        ArrowType::Float64 => {
            Arc::new(values.as_primitive::<Float64Type>().unary::<_, Float64Type>(|value| value + 0.0))
        }
        _ => values.clone(),
    }
}

/// Integers as those of one type; `None` if they are no integers.
fn integers(values: &ArrayRef) -> Result<Option<Int64Array>> {
    let are_integers = matches!(values.data_type(), ArrowType::Int16 | ArrowType::Int32 | ArrowType::Int64);
    let as_one = || cast(values, &ArrowType::Int64).map(|values| values.as_primitive::<Int64Type>().clone());
    Ok(are_integers.then(as_one).transpose()?)
}

/// The values of a subquery's column. Those that are equal have one form in bytes, by which they are found: a whole array of
/// operands is brought into that form at once.
#[derive(Debug, Default)]
pub(super) struct Members {
    /// `None` if there are no rows
    found: Option<(ArrowType, RowConverter)>,
    values: HashSet<Box<[u8]>, RandomState>,
    /// in their place where they are integers
    integers: HashSet<i64, RandomState>,
    /// the areas of boxes or circles, by which these are compared
    areas: Option<Vec<f64>>,
    has_null: bool,
    least: Option<ScalarValue>,
    greatest: Option<ScalarValue>,
}

impl Members {
    fn of(batches: &[RecordBatch]) -> Result<Members> {
        let mut members = Members::default();
        for batch in batches.iter().filter(|batch| batch.num_rows() > 0) {
            let column = plain(batch.column(0));
            if let Some(areas) = areas(&column)? {
                members.has_null |= areas.contains(&None);
                members.areas.get_or_insert_default().extend(areas.into_iter().flatten());
                continue;
            }
            let converter = members.converter(column.data_type())?;
            if let Some(integers) = integers(&column)? {
                members.add_integers(&column, &integers)?;
                continue;
            }
            let rows = converter.convert_columns(std::slice::from_ref(&column))?;
            for (at, row) in rows.iter().enumerate() {
                if column.is_null(at) {
                    members.has_null = true;
                } else if !members.values.contains(row.as_ref()) {
                    members.values.insert(row.as_ref().into());
                    members.add_extreme(ScalarValue::try_from_array(&column, at)?);
                }
            }
        }
        Ok(members)
    }

    fn add_integers(&mut self, column: &ArrayRef, integers: &Int64Array) -> Result<()> {
        for (at, value) in integers.iter().enumerate() {
            match value {
                None => self.has_null = true,
                Some(value) if self.integers.insert(value) => {
                    self.add_extreme(ScalarValue::try_from_array(column, at)?);
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    /// What brings values of this type into bytes.
    fn converter(&mut self, data_type: &ArrowType) -> Result<&RowConverter> {
        let found = match self.found.take() {
            Some(found) => found,
            None => (data_type.clone(), RowConverter::new(vec![SortField::new(data_type.clone())])?),
        };
        Ok(&self.found.insert(found).1)
    }

    fn add_extreme(&mut self, value: ScalarValue) {
        let is_new = |known: &Option<ScalarValue>, order| {
            known.as_ref().is_none_or(|known| value.partial_cmp(known) == Some(order))
        };
        if is_new(&self.least, Ordering::Less) {
            self.least = Some(value.clone());
        }
        if is_new(&self.greatest, Ordering::Greater) {
            self.greatest = Some(value);
        }
    }

    fn is_empty(&self) -> bool {
        self.len() == 0 && self.areas.as_ref().is_none_or(Vec::is_empty) && !self.has_null
    }

    /// Of each operand whether it compares so with any of the values, or with all; NULL is unknown.
    fn compare(&self, operands: &ArrayRef, op: Operator, is_all: bool) -> Result<BooleanArray> {
        if let Some(known) = &self.areas {
            return self.compare_areas(known, operands, op, is_all);
        }
        let (operands, Some((data_type, converter))) = (plain(operands), &self.found) else {
            return Ok(BooleanArray::from(vec![is_all; operands.len()]));
        };
        let operands = if operands.data_type() == data_type { operands } else { cast(&operands, data_type)? };
        // `x op ALL` is false as soon as the inverse holds for one, as `x op ANY` is true.
        let asked = if is_all { op.negate() } else { Some(op) };
        let answer = |decides: bool| match (decides, self.has_null) {
            (true, _) => Some(!is_all),
            (false, true) => None,
            (false, false) => Some(is_all),
        };
        match asked {
            Some(asked @ (Operator::Eq | Operator::NotEq)) => {
                if let Some(operands) = integers(&operands)? {
                    let of = |value: i64| answer(self.has(self.integers.contains(&value), asked));
                    return Ok(operands.iter().map(|value| value.and_then(of)).collect());
                }
                let rows = converter.convert_columns(std::slice::from_ref(&operands))?;
                let of_row = |(at, row): (usize, Row<'_>)| match operands.is_null(at) {
                    true => None,
                    false => answer(self.has(self.values.contains(row.as_ref()), asked)),
                };
                Ok(rows.iter().enumerate().map(of_row).collect())
            }
            Some(asked) => {
                (0..operands.len()).map(|at| Ok(self.beyond(&operands, at, asked)?.and_then(answer))).collect()
            }
            None => Ok(BooleanArray::new_null(operands.len())),
        }
    }

    fn compare_areas(&self, known: &[f64], operands: &ArrayRef, op: Operator, is_all: bool) -> Result<BooleanArray> {
        let Some(operands) = areas(operands)? else { return Ok(BooleanArray::new_null(operands.len())) };
        // As soon as one says so, the answer of all is known.
        let decides = |operand: f64| known.iter().any(|known| compare_areas(operand, op, *known) == Some(!is_all));
        let answer = |operand: f64| match decides(operand) {
            true => Some(!is_all),
            false => (!self.has_null).then_some(is_all),
        };
        Ok(operands.into_iter().map(|operand| operand.and_then(answer)).collect())
    }

    /// So many values are different, and not NULL.
    fn len(&self) -> usize {
        self.values.len() + self.integers.len()
    }

    /// Whether a value that is not NULL is one of those that are not NULL, as is known, or is another than one of them.
    fn has(&self, is_one: bool, op: Operator) -> bool {
        match op {
            Operator::Eq => is_one,
            _ => self.len() > usize::from(is_one),
        }
    }

    /// Whether the operand at a place compares so with the least or the greatest value, by which all are known; `None` if it is NULL.
    fn beyond(&self, operands: &ArrayRef, at: usize, op: Operator) -> Result<Option<bool>> {
        if operands.is_null(at) {
            return Ok(None);
        }
        let value = ScalarValue::try_from_array(operands, at)?;
        let to = |other: &Option<ScalarValue>| other.as_ref().and_then(|other| value.partial_cmp(other));
        Ok(Some(match op {
            Operator::Lt => to(&self.greatest).is_some_and(Ordering::is_lt),
            Operator::LtEq => to(&self.greatest).is_some_and(Ordering::is_le),
            Operator::Gt => to(&self.least).is_some_and(Ordering::is_gt),
            Operator::GtEq => to(&self.least).is_some_and(Ordering::is_ge),
            _ => false,
        }))
    }
}
