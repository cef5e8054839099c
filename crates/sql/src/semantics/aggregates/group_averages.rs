//! `avg` of integers and numerics of up to 128 bits, of all groups of a query at once: an exact sum and a count for each, and in
//! the end their quotient. Beside it what all exact averages share.
//!
//! A row costs an addition. Whether one was too large for 128 bits is asked once for a batch.
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Int64Type};
use arrow_array::{Array, ArrayRef, BooleanArray, Decimal128Array, Int64Array};
use arrow_cast::cast;
use arrow_schema::DataType;
use datafusion::arrow::datatypes::i256;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{EmitTo, GroupsAccumulator};

use crate::error::SqlError;
use crate::semantics::operations::decimals::{rounded, rounded_narrow};

/// The decimals of results, unless the numbers have more.
pub(crate) const DECIMALS: i8 = 16;
/// The digits of a number of 128 bits.
const DIGITS: u8 = 38;

pub(crate) fn overflow() -> DataFusionError {
    let error = SqlError::new("22003", "numeric field overflow");
    DataFusionError::External(Box::new(error.hint("Cast the numbers to double precision.")))
}

/// Numbers without their decimal points.
pub(super) fn unscaled(array: &ArrayRef, scale: i8) -> Result<Decimal128Array> {
    match array.data_type() {
        DataType::Decimal128(_, own) if *own == scale => Ok(array.as_primitive::<Decimal128Type>().clone()),
        _ => Ok(cast(array, &DataType::Decimal128(DIGITS, scale))?.as_primitive::<Decimal128Type>().clone()),
    }
}

/// The rows of one group that are not NULL.
#[derive(Clone, Copy, Default)]
struct Total {
    sum: i128,
    count: i64,
}

/// The average of each group.
pub(super) struct GroupAverages {
    scale: i8,
    totals: Vec<Total>,
}

impl GroupAverages {
    /// Without any group, of numbers with so many decimals.
    pub(super) fn new(scale: i8) -> GroupAverages {
        GroupAverages { scale, totals: Vec::new() }
    }

    /// Adds to groups, of which there are `total` now.
    fn add(&mut self, total: usize, more: impl Iterator<Item = (usize, Total)>) -> Result<()> {
        self.totals.resize(total, Total::default());
        let mut is_over = false;
        for (group, more) in more {
            let group = &mut self.totals[group];
            let (sum, is_over_now) = group.sum.overflowing_add(more.sum);
            *group = Total { sum, count: group.count + more.count };
            is_over |= is_over_now;
        }
        if is_over { Err(overflow()) } else { Ok(()) }
    }

    fn decimals(&self) -> i8 {
        self.scale.max(DECIMALS)
    }
}

/// The average as a number without its decimal point, which `shift` moves to where it belongs; `None` of no rows.
fn average(Total { sum, count }: Total, shift: i128) -> Result<Option<i128>> {
    if count == 0 {
        return Ok(None);
    }
    let narrow = sum.checked_mul(shift).and_then(|dividend| rounded_narrow(dividend, count.into()));
    let average = narrow.or_else(|| {
        let dividend = i256::from_i128(sum).checked_mul(i256::from_i128(shift))?;
        rounded(dividend, i256::from_i128(count.into()))?.to_i128()
    });
    average.filter(|average| average.unsigned_abs() < 10u128.pow(DIGITS.into())).map(Some).ok_or_else(overflow)
}

pub(super) fn passes(filter: Option<&BooleanArray>, row: usize) -> bool {
    filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row))
}

impl GroupsAccumulator for GroupAverages {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total: usize,
    ) -> Result<()> {
        let values = unscaled(&values[0], self.scale)?;
        let of_one = |(sum, group): (&i128, &usize)| (*group, Total { sum: *sum, count: 1 });
        let all = values.values().iter().zip(groups);
        if filter.is_none() && values.null_count() == 0 {
            return self.add(total, all.map(of_one));
        }
        let kept = all.enumerate().filter(|(row, _)| values.is_valid(*row) && passes(filter, *row));
        self.add(total, kept.map(|(_, value)| of_one(value)))
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let decimals = self.decimals();
        let shift = 10i128.pow((decimals - self.scale).unsigned_abs().into());
        let totals = emit_to.take_needed(&mut self.totals).into_iter();
        let averages = totals.map(|total| average(total, shift)).collect::<Result<Decimal128Array>>()?;
        Ok(Arc::new(averages.with_data_type(DataType::Decimal128(DIGITS, decimals))))
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        let totals = emit_to.take_needed(&mut self.totals);
        let counts: Int64Array = totals.iter().map(|total| Some(total.count)).collect();
        let sums: Decimal128Array = totals.iter().map(|total| Some(total.sum)).collect();
        Ok(vec![Arc::new(counts), Arc::new(sums.with_data_type(DataType::Decimal128(DIGITS, self.scale)))])
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], total: usize) -> Result<()> {
        let (counts, sums) = (states[0].as_primitive::<Int64Type>(), states[1].as_primitive::<Decimal128Type>());
        let known = groups.iter().enumerate().filter(|(row, _)| counts.is_valid(*row) && sums.is_valid(*row));
        self.add(total, known.map(|(row, group)| (*group, Total { sum: sums.value(row), count: counts.value(row) })))
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let values = unscaled(&values[0], self.scale)?;
        let kept = |(row, value): (usize, Option<i128>)| value.filter(|_| passes(filter, row));
        let kept: Vec<Option<i128>> = values.iter().enumerate().map(kept).collect();
        let counts: Int64Array = kept.iter().map(|value| Some(i64::from(value.is_some()))).collect();
        let sums: Decimal128Array = kept.iter().map(|value| Some(value.unwrap_or(0))).collect();
        Ok(vec![Arc::new(counts), Arc::new(sums.with_data_type(DataType::Decimal128(DIGITS, self.scale)))])
    }

    fn size(&self) -> usize {
        self.totals.capacity() * size_of::<Total>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(values: &[Option<i128>]) -> ArrayRef {
        Arc::new(Decimal128Array::from(values.to_vec()).with_data_type(DataType::Decimal128(DIGITS, 2)))
    }

    fn averages(of: &mut GroupAverages) -> Vec<Option<i128>> {
        of.evaluate(EmitTo::All).unwrap().as_primitive::<Decimal128Type>().iter().collect()
    }

    #[test]
    fn each_group_has_its_own_and_none_without_rows() {
        let unit = 10i128.pow(14);
        let mut all = GroupAverages::new(2);
        all.update_batch(&[numbers(&[Some(100), Some(101), Some(-7)])], &[0, 0, 2], None, 4).unwrap();
        let only_first = BooleanArray::from(vec![Some(true), Some(false), None]);
        all.update_batch(&[numbers(&[Some(5), Some(1), Some(1)])], &[3, 3, 3], Some(&only_first), 4).unwrap();
        all.update_batch(&[numbers(&[None, Some(-8)])], &[0, 2], None, 4).unwrap();
        let expected = vec![Some(201 * unit / 2), None, Some(-15 * unit / 2), Some(5 * unit)];
        assert_eq!(averages(&mut all), expected);
    }

    #[test]
    fn states_merge_to_the_average_of_all_rows() {
        let (first, second) = (numbers(&[Some(1), None, Some(2)]), numbers(&[Some(5)]));
        let (mut whole, mut merged) = (GroupAverages::new(2), GroupAverages::new(2));
        whole.update_batch(std::slice::from_ref(&first), &[0, 1, 1], None, 2).unwrap();
        let state = whole.convert_to_state(&[first], None).unwrap();
        merged.merge_batch(&state, &[0, 1, 1], 2).unwrap();
        whole.update_batch(std::slice::from_ref(&second), &[1], None, 2).unwrap();
        let mut part = GroupAverages::new(2);
        part.update_batch(&[second], &[0], None, 1).unwrap();
        merged.merge_batch(&part.state(EmitTo::All).unwrap(), &[1], 2).unwrap();
        assert_eq!(averages(&mut merged), averages(&mut whole));
    }

    #[test]
    fn averages_beyond_their_digits_are_errors_and_long_sums_are_none() {
        let large = 10i128.pow(38) - 1;
        let mut all = GroupAverages::new(2);
        assert!(all.update_batch(&[numbers(&[Some(large); 2])], &[0, 0], None, 1).is_err(), "the sum has no room");
        // Of 256 bits on its way, and of 128 in the end.
        let total = Total { sum: 10i128.pow(30), count: 1_000_000_000_000 };
        assert_eq!(average(total, 10i128.pow(14)).unwrap(), Some(10i128.pow(32)));
        assert!(average(Total { sum: large, count: 1 }, 10).is_err(), "the average has no room");
    }
}
