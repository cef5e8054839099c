//! `avg` of intervals: the sum, each of months, days and time for itself, divided by the count as PostgreSQL divides intervals.
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType};
use arrow_array::{Array, ArrayRef};
use arrow_cast::cast;
use arrow_schema::{DataType, Field, FieldRef};
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::Accumulator;
use datafusion::logical_expr::utils::format_state_name;

use crate::error::SqlError;
use crate::functions::times::intervals::{INTERVAL, divided};

/// Whether a type is that of intervals.
pub(crate) fn is_interval(found: &DataType) -> bool {
    matches!(found, DataType::Interval(_))
}

/// What is kept between rows.
pub(crate) fn state_fields(name: &str) -> Vec<FieldRef> {
    let field = |part: &str, data_type| Arc::new(Field::new(format_state_name(name, part), data_type, true));
    vec![field("count", DataType::Int64), field("sum", INTERVAL)]
}

/// The sum of some intervals and their count.
#[derive(Debug, Default)]
pub(crate) struct IntervalAverage {
    count: i64,
    months: i32,
    days: i32,
    nanoseconds: i64,
}

/// The planner makes groups of a DISTINCT that stands alone.
pub(crate) fn distinct_is_refused() -> DataFusionError {
    let error = SqlError::unsupported("avg(DISTINCT interval) beside other aggregates");
    DataFusionError::External(Box::new(error.hint("Take the distinct intervals in a query of its own in FROM.")))
}

fn out_of_range() -> DataFusionError {
    DataFusionError::External(Box::new(SqlError::new("22008", "interval out of range")))
}

impl IntervalAverage {
    fn add(&mut self, value: IntervalMonthDayNano, count: i64) -> Result<()> {
        self.months = self.months.checked_add(value.months).ok_or_else(out_of_range)?;
        self.days = self.days.checked_add(value.days).ok_or_else(out_of_range)?;
        self.nanoseconds = self.nanoseconds.checked_add(value.nanoseconds).ok_or_else(out_of_range)?;
        self.count += count;
        Ok(())
    }

    fn sum(&self) -> IntervalMonthDayNano {
        IntervalMonthDayNano::new(self.months, self.days, self.nanoseconds)
    }
}

/// The intervals of an array, without its NULLs.
fn intervals(array: &ArrayRef) -> Result<Vec<IntervalMonthDayNano>> {
    let array = cast(array, &INTERVAL)?;
    Ok(array.as_primitive::<IntervalMonthDayNanoType>().iter().flatten().collect())
}

impl Accumulator for IntervalAverage {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        intervals(&values[0])?.into_iter().try_for_each(|value| self.add(value, 1))
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        intervals(&values[0])?.into_iter().try_for_each(|value| {
            let less = IntervalMonthDayNano::new(-value.months, -value.days, -value.nanoseconds);
            self.add(less, -1)
        })
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let average = match self.count {
            0 => None,
            #[expect(clippy::cast_precision_loss, reason = "PostgreSQL divides by a float, too")]
            count => {
                Some(divided(self.sum(), count as f64).map_err(|error| DataFusionError::External(Box::new(error)))?)
            }
        };
        Ok(ScalarValue::IntervalMonthDayNano(average))
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![ScalarValue::Int64(Some(self.count)), ScalarValue::IntervalMonthDayNano(Some(self.sum()))])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let counts = states[0].as_primitive::<Int64Type>();
        let sums = states[1].as_primitive::<IntervalMonthDayNanoType>();
        (0..states[0].len()).try_for_each(|row| self.add(sums.value(row), counts.value(row)))
    }
}
