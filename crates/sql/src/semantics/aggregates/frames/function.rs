//! A function over the rows of a frame, some of which are left out.
//!
//! ```text
//! rows of a part     0 1 2 3 4 5 6 7
//! frame                  [2 ..... 7)
//! beside row 4             [3 . 5)        GROUP leaves them out, TIES all but row 4, CURRENT ROW row 4
//! seen (GROUP)           2     5 6
//! ```
use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType as ArrowType, FieldRef, Schema};
use datafusion::arrow::compute::{cast, filter, partition};
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::function::{AccumulatorArgs, PartitionEvaluatorArgs, WindowUDFFieldArgs};
use datafusion::logical_expr::{AggregateUDF, PartitionEvaluator, Signature, TypeSignature, Volatility, WindowUDFImpl};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Literal;

use super::Exclusion;
use crate::error::SqlError;
use crate::semantics::aggregates::inputs::inputs;
use crate::state::stop::StopFlag;

/// What is worked out of the rows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Inner {
    Aggregate(Arc<AggregateUDF>),
    First,
    Last,
    Nth,
    /// The value of a row so far before this one, or behind it.
    Lag,
    Lead,
}

/// The function; its arguments are those of what is worked out, and the condition of its FILTER.
#[derive(Debug)]
pub(super) struct FramedFunction {
    inner: Inner,
    exclusion: Exclusion,
    is_distinct: bool,
    has_filter: bool,
    flag: StopFlag,
    signature: Signature,
}

impl FramedFunction {
    pub(super) fn new(
        inner: Inner,
        exclusion: Exclusion,
        is_distinct: bool,
        has_filter: bool,
        flag: StopFlag,
    ) -> FramedFunction {
        let any = TypeSignature::OneOf(vec![TypeSignature::VariadicAny, TypeSignature::Nullary]);
        FramedFunction {
            inner,
            exclusion,
            is_distinct,
            has_filter,
            flag,
            signature: Signature::new(any, Volatility::Immutable),
        }
    }

    fn key(&self) -> (&Inner, Exclusion, bool, bool) {
        (&self.inner, self.exclusion, self.is_distinct, self.has_filter)
    }

    /// How many arguments are those of what is worked out.
    fn own_args(&self, args: usize) -> usize {
        args - usize::from(self.has_filter)
    }

    fn returned(&self, fields: &[FieldRef]) -> Result<FieldRef> {
        match &self.inner {
            Inner::Aggregate(function) => function.return_field(&fields[..self.own_args(fields.len())]),
            _ => fields.first().cloned().ok_or_else(|| internal("a window function without its argument")),
        }
    }
}

fn internal(message: &str) -> DataFusionError {
    DataFusionError::Internal(message.to_owned())
}

impl PartialEq for FramedFunction {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for FramedFunction {}

impl Hash for FramedFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

impl WindowUDFImpl for FramedFunction {
    fn name(&self) -> &str {
        match &self.inner {
            Inner::Aggregate(function) => function.name(),
            Inner::First => "first_value",
            Inner::Last => "last_value",
            Inner::Nth => "nth_value",
            Inner::Lag => "lag",
            Inner::Lead => "lead",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn partition_evaluator(&self, args: PartitionEvaluatorArgs) -> Result<Box<dyn PartitionEvaluator>> {
        let own = self.own_args(args.input_fields().len());
        let constant = |at: usize| args.input_exprs()[at].downcast_ref::<Literal>().map(|one| one.value().clone());
        let fields = args.input_fields()[..own].to_vec();
        let (exprs, schema) = inputs(&fields, &constant);
        Ok(Box::new(Evaluator {
            inner: self.inner.clone(),
            exclusion: self.exclusion,
            is_distinct: self.is_distinct,
            has_filter: self.has_filter,
            flag: self.flag.clone(),
            returned: self.returned(args.input_fields())?,
            exprs,
            fields,
            schema,
            row: 0,
            groups: None,
        }))
    }

    fn field(&self, args: WindowUDFFieldArgs) -> Result<FieldRef> {
        let field = self.returned(args.input_fields())?;
        let is_nullable = field.is_nullable() || !matches!(self.inner, Inner::Aggregate(_));
        Ok(Arc::new(field.as_ref().clone().with_name(args.name()).with_nullable(is_nullable)))
    }
}

/// The whole number in a row of a column.
fn number(column: &ArrayRef, row: usize) -> Result<Option<i64>> {
    let number = cast(&column.slice(row, 1), &ArrowType::Int64)?;
    Ok((!number.is_null(0)).then(|| number.as_primitive::<Int64Type>().value(0)))
}

/// Goes through the rows of one part of a window.
#[derive(Debug)]
struct Evaluator {
    inner: Inner,
    exclusion: Exclusion,
    is_distinct: bool,
    has_filter: bool,
    flag: StopFlag,
    returned: FieldRef,
    exprs: Vec<Arc<dyn PhysicalExpr>>,
    fields: Vec<FieldRef>,
    schema: Schema,
    /// The row that comes next: each is asked about once, in their order.
    row: usize,
    /// The rows that stand beside each other, and how many of them are done with.
    groups: Option<(Vec<Range<usize>>, usize)>,
}

impl PartitionEvaluator for Evaluator {
    /// `values` are the arguments and, behind them, what the rows are ordered by.
    fn evaluate(&mut self, values: &[ArrayRef], frame: &Range<usize>) -> Result<ScalarValue> {
        self.flag.check()?;
        let row = self.row;
        self.row += 1;
        let seen = self.seen(row, values, frame)?;
        match self.inner {
            Inner::Aggregate(_) => self.aggregate(values, &seen),
            Inner::First => self.value(values, seen.first().map(|rows| rows.start)),
            Inner::Last => self.value(values, seen.last().map(|rows| rows.end - 1)),
            Inner::Nth => {
                let Some(wanted) = number(&values[1], row)? else { return self.value(values, None) };
                let wanted = usize::try_from(wanted).ok().filter(|nth| *nth > 0);
                let wanted = wanted.ok_or_else(|| {
                    let error = SqlError::new("22016", "argument of nth_value must be greater than zero");
                    DataFusionError::External(Box::new(error))
                })?;
                self.value(values, seen.into_iter().flatten().nth(wanted - 1))
            }
            Inner::Lag => self.shifted(values, row, false),
            Inner::Lead => self.shifted(values, row, true),
        }
    }

    fn uses_window_frame(&self) -> bool {
        true
    }
}

impl Evaluator {
    /// The rows of the frame that are not left out.
    fn seen(&mut self, row: usize, values: &[ArrayRef], frame: &Range<usize>) -> Result<Vec<Range<usize>>> {
        let left_out = match self.exclusion {
            Exclusion::Nothing => [0..0, 0..0],
            Exclusion::CurrentRow => [row..row + 1, 0..0],
            Exclusion::Group => [self.group(row, values)?, 0..0],
            Exclusion::Ties => {
                let group = self.group(row, values)?;
                [group.start..row, row + 1..group.end]
            }
        };
        let mut seen: Vec<Range<usize>> = std::iter::once(frame.clone()).collect();
        for out in left_out.into_iter().filter(|out| !out.is_empty()) {
            let parts = |rows: Range<usize>| [rows.start..rows.end.min(out.start), rows.start.max(out.end)..rows.end];
            seen = seen.into_iter().flat_map(parts).collect();
        }
        seen.retain(|rows| !rows.is_empty());
        Ok(seen)
    }

    /// The rows that stand beside a row, itself included.
    fn group(&mut self, row: usize, values: &[ArrayRef]) -> Result<Range<usize>> {
        let keys = &values[self.fields.len() + usize::from(self.has_filter)..];
        if keys.is_empty() {
            return Ok(0..values.first().map_or(row + 1, |column| column.len()));
        }
        let (groups, done) = match &mut self.groups {
            Some(known) => known,
            none => none.insert((partition(keys)?.ranges(), 0)),
        };
        while groups.get(*done).is_some_and(|group| group.end <= row) {
            *done += 1;
        }
        groups.get(*done).cloned().ok_or_else(|| internal("a row of no group"))
    }

    fn value(&self, values: &[ArrayRef], row: Option<usize>) -> Result<ScalarValue> {
        match row {
            Some(row) => ScalarValue::try_from_array(&values[0], row),
            None => ScalarValue::try_new_null(self.returned.data_type()),
        }
    }

    /// The value of another row of the part; where there is none the default.
    fn shifted(&self, values: &[ArrayRef], row: usize, is_ahead: bool) -> Result<ScalarValue> {
        let by = match self.fields.len() {
            1 => Some(1),
            _ => number(&values[1], row)?,
        };
        let Some(by) = by else { return self.value(values, None) };
        let by = if is_ahead { Some(by) } else { by.checked_neg() };
        let row_number = i64::try_from(row).unwrap_or(i64::MAX);
        let other = by.and_then(|by| row_number.checked_add(by)).and_then(|other| usize::try_from(other).ok());
        match other.filter(|other| *other < values[0].len()) {
            None if self.fields.len() == 3 => {
                ScalarValue::try_from_array(&values[2], row)?.cast_to(self.returned.data_type())
            }
            other => self.value(values, other),
        }
    }

    fn aggregate(&self, values: &[ArrayRef], seen: &[Range<usize>]) -> Result<ScalarValue> {
        let Inner::Aggregate(function) = &self.inner else { return Err(internal("no aggregate")) };
        let mut accumulator = function.accumulator(AccumulatorArgs {
            return_field: self.returned.clone(),
            schema: &self.schema,
            ignore_nulls: false,
            order_bys: &[],
            is_reversed: false,
            name: function.name(),
            is_distinct: self.is_distinct,
            exprs: &self.exprs,
            expr_fields: &self.fields,
        })?;
        let own = self.fields.len();
        for rows in seen {
            let part = |column: &ArrayRef| column.slice(rows.start, rows.len());
            let mut columns: Vec<ArrayRef> = values[..own].iter().map(part).collect();
            if self.has_filter {
                let condition = part(&values[own]);
                let taken: Result<Vec<ArrayRef>, _> =
                    columns.iter().map(|column| filter(column, condition.as_boolean())).collect();
                columns = taken?;
            }
            accumulator.update_batch(&columns)?;
        }
        accumulator.evaluate()
    }
}
