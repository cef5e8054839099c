//! `var_pop`, `var_samp`, `stddev_pop` and `stddev_samp` of integers and numerics, of all groups of a query at once: for each group a
//! count and exact sums of its numbers and their squares, of which the result is worked out as for one group ([`Moment`]).
//!
//! The sums have 128 bits. What has no room there is added up beside them, in 256 bits, for the few groups where it happens.
use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal256Type, Int64Type};
use arrow_array::{Array, ArrayRef, BooleanArray, Decimal128Array, Decimal256Array, Int64Array};
use arrow_schema::DataType;
use datafusion::arrow::datatypes::i256;
use datafusion::error::Result;
use datafusion::logical_expr::{EmitTo, GroupsAccumulator};

use super::group_averages::{overflow, passes, unscaled};
use super::one_moment::{Kind, Moment, WIDE};

/// The rows of one group that are not NULL.
#[derive(Clone, Copy, Default)]
struct Total {
    count: i64,
    sum: i128,
    squares: i128,
}

/// What has no room in a total.
#[derive(Clone, Copy, Default)]
struct Excess {
    sum: i256,
    squares: i256,
}

/// The sums of each group.
pub(super) struct GroupMoments {
    kind: Kind,
    scale: i8,
    totals: Vec<Total>,
    /// by group
    excess: BTreeMap<usize, Excess>,
}

impl GroupMoments {
    /// Without any group, of numbers with so many decimals.
    pub(super) fn new(kind: Kind, scale: i8) -> GroupMoments {
        GroupMoments { kind, scale, totals: Vec::new(), excess: BTreeMap::new() }
    }

    fn add(&mut self, group: usize, value: i128) -> Result<()> {
        let square = match i64::try_from(value) {
            Ok(narrow) => Some(i128::from(narrow) * i128::from(narrow)),
            Err(_) => value.checked_mul(value),
        };
        if square.is_some_and(|square| self.add_narrow(group, 1, value, square)) {
            return Ok(());
        }
        let value = i256::from_i128(value);
        self.add_wide(group, 1, value, value.checked_mul(value).ok_or_else(overflow)?)
    }

    /// Adds to the sums of 128 bits, if there is room.
    fn add_narrow(&mut self, group: usize, count: i64, sum: i128, squares: i128) -> bool {
        let total = &mut self.totals[group];
        match (total.sum.checked_add(sum), total.squares.checked_add(squares)) {
            (Some(sum), Some(squares)) => {
                *total = Total { count: total.count + count, sum, squares };
                true
            }
            _ => false,
        }
    }

    fn add_wide(&mut self, group: usize, count: i64, sum: i256, squares: i256) -> Result<()> {
        let excess = self.excess.entry(group).or_default();
        let sum = excess.sum.checked_add(sum).ok_or_else(overflow)?;
        let squares = excess.squares.checked_add(squares).ok_or_else(overflow)?;
        *excess = Excess { sum, squares };
        self.totals[group].count += count;
        Ok(())
    }

    /// Takes groups out, each with the whole of its sums.
    fn take(&mut self, emit_to: EmitTo) -> Result<Vec<Moment>> {
        let totals = emit_to.take_needed(&mut self.totals);
        let later = self.excess.split_off(&totals.len());
        let excess = std::mem::replace(
            &mut self.excess,
            later.into_iter().map(|(group, excess)| (group - totals.len(), excess)).collect(),
        );
        let whole = |narrow: i128, excess: i256| i256::from_i128(narrow).checked_add(excess).ok_or_else(overflow);
        let moment = |(group, total): (usize, Total)| {
            let Excess { sum, squares } = excess.get(&group).copied().unwrap_or_default();
            let (sum, squares) = (whole(total.sum, sum)?, whole(total.squares, squares)?);
            Ok(Moment { count: total.count, sum, squares, ..Moment::new(self.kind, self.scale) })
        };
        totals.into_iter().enumerate().map(moment).collect()
    }
}

fn states(moments: impl Iterator<Item = (i64, i256, i256)>) -> Vec<ArrayRef> {
    let (mut counts, mut sums, mut squares) = (Vec::new(), Vec::new(), Vec::new());
    for (count, sum, square) in moments {
        counts.push(count);
        sums.push(sum);
        squares.push(square);
    }
    let wide = |values: Vec<i256>| Arc::new(Decimal256Array::from_iter_values(values).with_data_type(WIDE));
    vec![Arc::new(Int64Array::from(counts)), wide(sums), wide(squares)]
}

impl GroupsAccumulator for GroupMoments {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total: usize,
    ) -> Result<()> {
        self.totals.resize(total, Total::default());
        let values = unscaled(&values[0], self.scale)?;
        let mut all = values.values().iter().zip(groups);
        if filter.is_none() && values.null_count() == 0 {
            return all.try_for_each(|(value, group)| self.add(*group, *value));
        }
        let mut kept = all.enumerate().filter(|(row, _)| values.is_valid(*row) && passes(filter, *row));
        kept.try_for_each(|(_, (value, group))| self.add(*group, *value))
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let decimals = Moment::new(self.kind, self.scale).decimals();
        let moments = self.take(emit_to)?;
        let results = moments.iter().map(|moment| moment.result(decimals)).collect::<Result<Decimal128Array>>()?;
        Ok(Arc::new(results.with_data_type(DataType::Decimal128(38, decimals))))
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        let moments = self.take(emit_to)?;
        Ok(states(moments.into_iter().map(|moment| (moment.count, moment.sum, moment.squares))))
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], total: usize) -> Result<()> {
        self.totals.resize(total, Total::default());
        let counts = states[0].as_primitive::<Int64Type>();
        let (sums, squares) = (states[1].as_primitive::<Decimal256Type>(), states[2].as_primitive::<Decimal256Type>());
        for (row, group) in groups.iter().enumerate().filter(|(row, _)| counts.is_valid(*row)) {
            let (count, sum, square) = (counts.value(row), sums.value(row), squares.value(row));
            let narrow = sum.to_i128().zip(square.to_i128());
            if !narrow.is_some_and(|(sum, square)| self.add_narrow(*group, count, sum, square)) {
                self.add_wide(*group, count, sum, square)?;
            }
        }
        Ok(())
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let values = unscaled(&values[0], self.scale)?;
        let state = |(row, value): (usize, Option<i128>)| match value.filter(|_| passes(filter, row)) {
            Some(value) => {
                let value = i256::from_i128(value);
                Ok((1, value, value.checked_mul(value).ok_or_else(overflow)?))
            }
            None => Ok((0, i256::ZERO, i256::ZERO)),
        };
        let rows: Vec<_> = values.iter().enumerate().map(state).collect::<Result<_>>()?;
        Ok(states(rows.into_iter()))
    }

    fn size(&self) -> usize {
        self.totals.capacity() * size_of::<Total>() + self.excess.len() * size_of::<(usize, Excess)>()
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::types::Decimal128Type;
    use datafusion::common::ScalarValue;
    use datafusion::logical_expr::Accumulator;
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};

    use super::*;

    const KINDS: [Kind; 4] = [
        Kind::Variance { of_population: true },
        Kind::Variance { of_population: false },
        Kind::Deviation { of_population: true },
        Kind::Deviation { of_population: false },
    ];
    const GROUPS: usize = 5;

    /// Rows with their groups.
    type Rows = (ArrayRef, Vec<usize>, BooleanArray);

    fn rows(random: &mut StdRng, digits: u32, scale: i8) -> Rows {
        let count = random.random_range(1..40);
        let limit = 10i128.pow(digits);
        let value =
            |random: &mut StdRng| (random.random_range(0..6) > 0).then(|| random.random_range(-limit + 1..limit));
        let values: Vec<Option<i128>> = (0..count).map(|_| value(random)).collect();
        let groups = (0..count).map(|_| random.random_range(0..GROUPS)).collect();
        let kept: Vec<Option<bool>> = (0..count).map(|_| Some(random.random_range(0..8) > 0)).collect();
        let values = Decimal128Array::from(values).with_data_type(DataType::Decimal128(38, scale));
        (Arc::new(values), groups, BooleanArray::from(kept))
    }

    /// The result of each group by an accumulator of its own; `None` where one fails.
    fn one_by_one(kind: Kind, scale: i8, all: &[Rows]) -> Option<Vec<ScalarValue>> {
        let result = |group: usize| {
            let mut moment = Moment::new(kind, scale);
            for (values, groups, kept) in all {
                let is_of = |row: &usize| groups[*row] == group && kept.value(*row);
                let of_group: Vec<ArrayRef> = (0..groups.len()).filter(is_of).map(|row| values.slice(row, 1)).collect();
                of_group.iter().try_for_each(|value| moment.update_batch(std::slice::from_ref(value)))?;
            }
            moment.evaluate()
        };
        (0..GROUPS).map(result).collect::<Result<_>>().ok()
    }

    /// By one accumulator for all groups, in parts that are merged, some of them row by row, and taken out in two portions.
    fn at_once(kind: Kind, scale: i8, all: &[Rows], first: usize) -> Option<Vec<ScalarValue>> {
        let mut whole = GroupMoments::new(kind, scale);
        let mut work = || {
            for (at, (values, groups, kept)) in all.iter().enumerate() {
                let values = std::slice::from_ref(values);
                match at % 3 {
                    0 => whole.update_batch(values, groups, Some(kept), GROUPS)?,
                    1 => whole.merge_batch(&whole.convert_to_state(values, Some(kept))?, groups, GROUPS)?,
                    _ => {
                        let mut part = GroupMoments::new(kind, scale);
                        part.update_batch(values, groups, Some(kept), GROUPS)?;
                        let (head, tail) = (part.state(EmitTo::First(first))?, part.state(EmitTo::All)?);
                        whole.merge_batch(&head, &(0..first).collect::<Vec<_>>(), GROUPS)?;
                        whole.merge_batch(&tail, &(first..GROUPS).collect::<Vec<_>>(), GROUPS)?;
                    }
                }
            }
            let parts = [whole.evaluate(EmitTo::First(first))?, whole.evaluate(EmitTo::All)?];
            let scalars = |part: &ArrayRef| {
                let decimals = part.as_primitive::<Decimal128Type>();
                (0..decimals.len()).map(|row| ScalarValue::try_from_array(part, row)).collect::<Result<Vec<_>>>()
            };
            Ok::<_, datafusion::error::DataFusionError>([scalars(&parts[0])?, scalars(&parts[1])?].concat())
        };
        work().ok()
    }

    #[test]
    fn all_groups_at_once_give_what_each_gives_alone() {
        let mut random = StdRng::seed_from_u64(22);
        let mut failures = 0;
        for digits in (1..=38).chain([38; 20]) {
            for kind in KINDS {
                let scale = random.random_range(0..=digits.min(16) as i8);
                let batches = random.random_range(1..8);
                let all: Vec<Rows> = (0..batches).map(|_| rows(&mut random, digits, scale)).collect();
                let alone = one_by_one(kind, scale, &all);
                failures += usize::from(alone.is_none());
                assert_eq!(
                    at_once(kind, scale, &all, random.random_range(1..GROUPS)),
                    alone,
                    "{digits} digits, {kind:?}"
                );
            }
        }
        assert!(failures > 0, "no result was too long");
    }

    #[test]
    fn sums_beyond_128_bits_are_exact() {
        let large = 10i128.pow(38) - 1;
        let values: ArrayRef = Arc::new(
            Decimal128Array::from(vec![large, large, large - 2, large - 2]).with_data_type(DataType::Decimal128(38, 0)),
        );
        let mut moments = GroupMoments::new(Kind::Variance { of_population: true }, 0);
        moments.update_batch(&[values], &[0; 4], None, 1).unwrap();
        let [only] = &moments.take(EmitTo::All).unwrap()[..] else { panic!("one group") };
        let wide = |value: i128| i256::from_i128(value);
        assert_eq!(only.sum, wide(large) * wide(4) - wide(4));
    }
}
