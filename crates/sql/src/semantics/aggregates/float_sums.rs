//! `sum`, `avg` and the variances of floats that fail when they overflow, where the library's become infinite.
//!
//! They are the library's, which are watched: an infinite result is an error unless an argument was infinite. That is known
//! of all groups together; where one has been seen, no result is doubted.
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{ArrayRef, BooleanArray};
use arrow_schema::{DataType, FieldRef};
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, EmitTo, GroupsAccumulator, Signature};

use crate::access::totals::SUM;
use crate::error::SqlError;

#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Watched {
    inner: Arc<AggregateUDF>,
}

/// The function, watched, if it is one of these.
pub(crate) fn watched(function: &Arc<AggregateUDF>) -> Option<Arc<AggregateUDF>> {
    const NAMES: [&str; 6] = [SUM, "avg", "var", "var_pop", "stddev", "stddev_pop"];
    let is_known = NAMES.contains(&function.name()) && !function.inner().is::<Watched>();
    is_known.then(|| Arc::new(AggregateUDF::from(Watched { inner: function.clone() })))
}

impl AggregateUDFImpl for Watched {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.inner.return_type(types)
    }

    fn return_field(&self, args: &[FieldRef]) -> Result<FieldRef> {
        self.inner.return_field(args)
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.coerce_types(types)
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(One { inner: self.inner.accumulator(args)?, has_infinite: false }))
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(One { inner: self.inner.create_sliding_accumulator(args)?, has_infinite: false }))
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        self.inner.state_fields(args)
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        self.inner.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(Box::new(Groups { inner: self.inner.create_groups_accumulator(args)?, has_infinite: false }))
    }
}

fn has_infinite(array: &ArrayRef) -> bool {
    if let Some(values) = array.as_primitive_opt::<Float64Type>() {
        return values.values().iter().any(|value| value.is_infinite());
    }
    let narrow = array.as_primitive_opt::<Float32Type>();
    narrow.is_some_and(|values| values.values().iter().any(|value| value.is_infinite()))
}

fn overflow() -> DataFusionError {
    DataFusionError::External(Box::new(SqlError::new("22003", "value out of range: overflow")))
}

fn check(has_infinite: bool, value: ScalarValue) -> Result<ScalarValue> {
    let is_infinite = match &value {
        ScalarValue::Float64(Some(value)) => value.is_infinite(),
        ScalarValue::Float32(Some(value)) => value.is_infinite(),
        _ => false,
    };
    if is_infinite && !has_infinite { Err(overflow()) } else { Ok(value) }
}

fn check_array(known: bool, array: ArrayRef) -> Result<ArrayRef> {
    if !known && has_infinite(&array) { Err(overflow()) } else { Ok(array) }
}

/// One group.
#[derive(Debug)]
struct One {
    inner: Box<dyn Accumulator>,
    has_infinite: bool,
}

impl Accumulator for One {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.has_infinite = self.has_infinite || values.iter().any(has_infinite);
        self.inner.update_batch(values)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.inner.retract_batch(values)
    }

    fn supports_retract_batch(&self) -> bool {
        self.inner.supports_retract_batch()
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        check(self.has_infinite, self.inner.evaluate()?)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let known = self.has_infinite;
        self.inner.state()?.into_iter().map(|value| check(known, value)).collect()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.has_infinite = self.has_infinite || states.iter().any(has_infinite);
        self.inner.merge_batch(states)
    }

    fn size(&self) -> usize {
        self.inner.size() + size_of_val(self)
    }
}

/// Many groups.
struct Groups {
    inner: Box<dyn GroupsAccumulator>,
    has_infinite: bool,
}

impl GroupsAccumulator for Groups {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total: usize,
    ) -> Result<()> {
        self.has_infinite = self.has_infinite || values.iter().any(has_infinite);
        self.inner.update_batch(values, groups, filter, total)
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        check_array(self.has_infinite, self.inner.evaluate(emit_to)?)
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        let known = self.has_infinite;
        self.inner.state(emit_to)?.into_iter().map(|array| check_array(known, array)).collect()
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], total: usize) -> Result<()> {
        self.has_infinite = self.has_infinite || states.iter().any(has_infinite);
        self.inner.merge_batch(states, groups, total)
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        self.inner.convert_to_state(values, filter)
    }

    fn size(&self) -> usize {
        self.inner.size() + size_of_val(self)
    }
}
