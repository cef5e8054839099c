//! `sum` of integers that is right or an error: it is kept in 128 bits, where DataFusion's wraps around in 64.
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Int64Type};
use arrow_array::{Array, ArrayRef, BooleanArray, Decimal128Array, Int64Array};
use arrow_schema::{DataType, Field, FieldRef};
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::format_state_name;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, EmitTo, GroupsAccumulator, Signature, Volatility,
};

use crate::error::SqlError;

const STATE: DataType = DataType::Decimal128(38, 0);

/// `sum(bigint)`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct IntegerSum {
    signature: Signature,
}

impl IntegerSum {
    pub(super) fn function() -> Arc<AggregateUDF> {
        Arc::new(AggregateUDF::from(IntegerSum { signature: Signature::any(1, Volatility::Immutable) }))
    }
}

impl AggregateUDFImpl for IntegerSum {
    fn name(&self) -> &str {
        "sum"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int64)
    }

    fn accumulator(&self, _: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(Total::default()))
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        Ok(vec![Arc::new(Field::new(format_state_name(args.name, "sum"), STATE, true))])
    }

    fn groups_accumulator_supported(&self, _: AccumulatorArgs) -> bool {
        true
    }

    fn create_groups_accumulator(&self, _: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(Box::new(Totals::default()))
    }
}

/// The sum of values that are all there. Each is shifted to be positive and split in halves; the sums of halves fit
/// 64 bits, so the loop is one of plain vector additions.
fn sum(values: &[i64]) -> i128 {
    const HALF: u64 = u32::MAX as u64;
    let mut total = 0;
    for values in values.chunks(1 << 30) {
        let (mut low, mut high) = (0u64, 0u64);
        for value in values {
            let shifted = value.cast_unsigned() ^ (1 << 63);
            low += shifted & HALF;
            high += shifted >> 32;
        }
        total += (i128::from(high) << 32) + i128::from(low) - ((values.len() as i128) << 63);
    }
    total
}

fn sum_of(array: &ArrayRef) -> i128 {
    let values = array.as_primitive::<Int64Type>();
    match values.null_count() {
        0 => sum(values.values()),
        _ => values.iter().flatten().map(i128::from).sum(),
    }
}

fn fit(total: i128) -> Result<i64> {
    i64::try_from(total).map_err(|_| {
        let error = SqlError::new("22003", "bigint out of range").hint("Sum a numeric: sum(x::numeric(38,0)).");
        DataFusionError::External(Box::new(error))
    })
}

/// One sum.
#[derive(Debug, Default)]
struct Total {
    sum: i128,
    count: usize,
}

impl Accumulator for Total {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.sum += sum_of(&values[0]);
        self.count += values[0].len() - values[0].null_count();
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.sum -= sum_of(&values[0]);
        self.count -= values[0].len() - values[0].null_count();
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let value = if self.count == 0 { None } else { Some(fit(self.sum)?) };
        Ok(ScalarValue::Int64(value))
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let sum = (self.count > 0).then_some(self.sum);
        Ok(vec![ScalarValue::Decimal128(sum, 38, 0)])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for sum in states[0].as_primitive::<Decimal128Type>().iter().flatten() {
            self.sum += sum;
            self.count += 1;
        }
        Ok(())
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }
}

/// One sum for each group; `None` while the group has no value.
#[derive(Default)]
struct Totals {
    sums: Vec<Option<i128>>,
}

impl Totals {
    fn add(
        &mut self,
        values: impl Iterator<Item = Option<i128>>,
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total: usize,
    ) {
        self.sums.resize(total, None);
        for (row, (value, group)) in values.zip(groups).enumerate() {
            let passes = filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row));
            if let Some(value) = value.filter(|_| passes) {
                let sum = &mut self.sums[*group];
                *sum = Some(sum.unwrap_or(0) + value);
            }
        }
    }
}

fn states(sums: impl Iterator<Item = Option<i128>>) -> Vec<ArrayRef> {
    vec![Arc::new(sums.collect::<Decimal128Array>().with_data_type(STATE))]
}

impl GroupsAccumulator for Totals {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total: usize,
    ) -> Result<()> {
        let values = values[0].as_primitive::<Int64Type>();
        match values.null_count() {
            0 => self.add(values.values().iter().map(|value| Some(i128::from(*value))), groups, filter, total),
            _ => self.add(values.iter().map(|value| value.map(i128::from)), groups, filter, total),
        }
        Ok(())
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let sums = emit_to.take_needed(&mut self.sums).into_iter();
        let fitted: Result<Int64Array> = sums.map(|sum| sum.map(fit).transpose()).collect();
        Ok(Arc::new(fitted?))
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        Ok(states(emit_to.take_needed(&mut self.sums).into_iter()))
    }

    fn merge_batch(&mut self, values: &[ArrayRef], groups: &[usize], total: usize) -> Result<()> {
        self.add(values[0].as_primitive::<Decimal128Type>().iter(), groups, None, total);
        Ok(())
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let passes = |row| filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row));
        let values = values[0].as_primitive::<Int64Type>().iter().enumerate();
        Ok(states(values.map(|(row, value)| value.filter(|_| passes(row)).map(i128::from))))
    }

    fn size(&self) -> usize {
        self.sums.capacity() * size_of::<Option<i128>>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_add_up_to_the_whole() {
        let values = [0, 1, -1, i64::MAX, i64::MIN, i64::MAX, 1 << 32, -(1 << 32), 12_345_678_901];
        for end in 0..=values.len() {
            assert_eq!(sum(&values[..end]), values[..end].iter().map(|value| i128::from(*value)).sum::<i128>());
        }
        assert!(fit(i128::from(i64::MAX) + 1).is_err());
    }
}
