//! `avg` of numerics of 256 bits: an exact sum, and a quotient that is rounded, where the library cuts it.
use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal256Type, Int64Type};
use arrow_schema::{DataType, Field, FieldRef};
use datafusion::arrow::datatypes::i256;
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::Accumulator;
use datafusion::logical_expr::utils::format_state_name;

use super::group_averages::{DECIMALS, overflow};
use crate::semantics::operations::decimals::{power_of_ten, rounded};

/// Whether averages of such numbers are worked out here.
pub(crate) fn is_wide(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Decimal256(_, 0..))
}

fn scale_of(data_type: &DataType) -> i8 {
    match data_type {
        DataType::Decimal256(_, scale) => *scale,
        _ => 0,
    }
}

/// The type of the average.
pub(crate) fn return_type(data_type: &DataType) -> DataType {
    DataType::Decimal256(76, scale_of(data_type).max(DECIMALS))
}

/// What is kept between rows.
pub(crate) fn state_fields(name: &str, data_type: &DataType) -> Vec<FieldRef> {
    let field = |part: &str, data_type| Arc::new(Field::new(format_state_name(name, part), data_type, true));
    vec![field("count", DataType::Int64), field("sum", DataType::Decimal256(76, scale_of(data_type)))]
}

/// The sum of some numbers and their count.
#[derive(Debug)]
pub(crate) struct WideAverage {
    scale: i8,
    count: i64,
    sum: i256,
}

impl WideAverage {
    pub(crate) fn new(data_type: &DataType) -> WideAverage {
        WideAverage { scale: scale_of(data_type), count: 0, sum: i256::ZERO }
    }

    fn average(&self, decimals: i8) -> Option<i256> {
        let power = power_of_ten(u32::try_from(decimals - self.scale).ok()?)?;
        rounded(self.sum.checked_mul(power)?, i256::from_i128(self.count.into()))
    }
}

impl Accumulator for WideAverage {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for value in values[0].as_primitive::<Decimal256Type>().iter().flatten() {
            self.sum = self.sum.checked_add(value).ok_or_else(overflow)?;
            self.count += 1;
        }
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for value in values[0].as_primitive::<Decimal256Type>().iter().flatten() {
            self.sum = self.sum.checked_sub(value).ok_or_else(overflow)?;
            self.count -= 1;
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let decimals = self.scale.max(DECIMALS);
        let average = match self.count {
            0 => None,
            _ => Some(self.average(decimals).ok_or_else(overflow)?),
        };
        Ok(ScalarValue::Decimal256(average, 76, decimals))
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![ScalarValue::Int64(Some(self.count)), ScalarValue::Decimal256(Some(self.sum), 76, self.scale)])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.count += states[0].as_primitive::<Int64Type>().iter().flatten().sum::<i64>();
        for sum in states[1].as_primitive::<Decimal256Type>().iter().flatten() {
            self.sum = self.sum.checked_add(sum).ok_or_else(overflow)?;
        }
        Ok(())
    }
}
