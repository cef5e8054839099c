//! Sums and averages of decimals and numbers of rows by a few groups, for a batch at a time.
//!
//! ```text
//! groups of a batch's rows   0 1 0 2 ...  ─┬─▶ rows of each group
//! each argument, in 64 bits  7 3 5 9 ...  ─┴─▶ its sum in each group  ─▶ states of the batch, one row a group, merged into
//!   (a thousand rows at a time, in the cache)                            those of sum, avg and count
//! ```
//!
//! A row so costs an addition of 64 bits for each argument, however many functions have it. States, results and overflows remain the
//! functions' own. An argument that has NULLs, or does not fit, goes to the functions as it is.
use std::sync::Arc;

use arrow_array::{ArrayRef, Decimal128Array, Int64Array, RecordBatch};
use arrow_schema::{DataType, Schema};
use datafusion::error::Result;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::Literal;

use super::exec::Function;
use crate::access::totals::SUM;
use crate::optimizer::short_decimals::ShortDecimals;

/// The most groups.
pub(super) const GROUPS_MAX: usize = 64;
/// Numbers of so many bits, a block of them, have a sum of 64.
const BITS_MAX: u32 = 52;

/// What a function's state is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Rows,
    /// the sum of the argument at a place
    Sum(usize),
    /// rows and the sum
    Average(usize),
}

/// The functions of a grouping that are worked out in this way.
#[derive(Debug)]
pub(super) struct BatchSums {
    /// each once, with the type of its sum in states
    arguments: Vec<(ShortDecimals, DataType)>,
    /// by function
    states: Vec<Option<State>>,
}

impl BatchSums {
    /// Those of some functions over rows; `None` if there are none.
    pub(super) fn of(functions: &[Function], schema: &Schema) -> Result<Option<BatchSums>> {
        let mut sums = BatchSums { arguments: Vec::new(), states: Vec::new() };
        for known in functions {
            let state = sums.state(known, schema)?;
            sums.states.push(state);
        }
        Ok((!sums.arguments.is_empty()).then_some(sums))
    }

    fn state(&mut self, known: &Function, schema: &Schema) -> Result<Option<State>> {
        let (function, [argument]) = (&known.function, &known.arguments[..]) else { return Ok(None) };
        if known.filter.is_some() {
            return Ok(None);
        }
        let literal = argument.downcast_ref::<Literal>();
        if function.fun().name() == "count" && literal.is_some_and(|literal| !literal.value().is_null()) {
            return Ok(Some(State::Rows));
        }
        let Some((sum, is_average)) = sum_in_state(function)? else { return Ok(None) };
        let Some(argument) =
            ShortDecimals::summand(argument, schema).filter(|argument| argument.scale() == scale(&sum))
        else {
            return Ok(None);
        };
        let known = self.arguments.iter().position(|(other, of)| *other == argument && *of == sum);
        let at = known.unwrap_or_else(|| {
            self.arguments.push((argument, sum));
            self.arguments.len() - 1
        });
        Ok(Some(if is_average { State::Average(at) } else { State::Sum(at) }))
    }

    /// The states that a batch is, by function, whose rows are of some groups: a row for each of them that has rows.
    pub(super) fn add_up(&self, batch: &RecordBatch, numbers: &[usize]) -> Result<BatchStates> {
        // As narrow as they are, an argument's additions find them in the cache.
        let groups: Vec<u8> = numbers.iter().map(|group| *group as u8).collect();
        let mut rows = [0i64; GROUPS_MAX];
        groups.iter().for_each(|group| rows[usize::from(*group) % GROUPS_MAX] += 1);
        let present: Vec<usize> = (0..GROUPS_MAX).filter(|group| rows[*group] > 0).collect();
        let counts: ArrayRef = Arc::new(Int64Array::from_iter_values(present.iter().map(|group| rows[*group])));
        let mut sums: Vec<Option<ArrayRef>> = Vec::with_capacity(self.arguments.len());
        for (argument, data_type) in &self.arguments {
            let sum = sums_by_group(argument, batch, &groups)?.map(|sums| {
                let sums = Decimal128Array::from_iter_values(present.iter().map(|group| sums[*group]));
                Arc::new(sums.with_data_type(data_type.clone())) as _
            });
            sums.push(sum);
        }
        let state = |state: &Option<State>| match (*state)? {
            State::Rows => Some(vec![counts.clone()]),
            State::Sum(at) => Some(vec![sums[at].clone()?]),
            State::Average(at) => Some(vec![counts.clone(), sums[at].clone()?]),
        };
        Ok(BatchStates { of_functions: self.states.iter().map(state).collect(), present })
    }
}

/// What a batch adds to the states of functions.
pub(super) struct BatchStates {
    /// by function; `None` of one that takes rows
    pub(super) of_functions: Vec<Option<Vec<ArrayRef>>>,
    /// the groups that they are of
    pub(super) present: Vec<usize>,
}

/// The type of a function's sum in its state, and whether a count is before it; `None` if the state is not made of them.
fn sum_in_state(function: &AggregateFunctionExpr) -> Result<Option<(DataType, bool)>> {
    let name = function.fun().name();
    let fields = function.state_fields()?;
    let types: Vec<&DataType> = fields.iter().map(|field| field.data_type()).collect();
    Ok(match &types[..] {
        [sum @ DataType::Decimal128(..)] if name == SUM => Some(((*sum).clone(), false)),
        [DataType::Int64, sum @ DataType::Decimal128(..)] if name == "avg" => Some(((*sum).clone(), true)),
        _ => None,
    })
}

fn scale(decimal: &DataType) -> Option<i8> {
    match decimal {
        DataType::Decimal128(_, scale) => Some(*scale),
        _ => None,
    }
}

/// The sums of an argument; `None` if it can't be added up in this way.
fn sums_by_group(argument: &ShortDecimals, batch: &RecordBatch, groups: &[u8]) -> Result<Option<[i128; GROUPS_MAX]>> {
    let mut sums = [0i128; GROUPS_MAX];
    let is_whole = argument.each_block(batch, |from, block, bits| {
        let groups = &groups[from..from + block.len()];
        if bits > BITS_MAX {
            let rows = groups.iter().zip(block);
            return rows.for_each(|(group, number)| sums[usize::from(*group) % GROUPS_MAX] += i128::from(*number));
        }
        // Rows in turn: an addition need not wait for the one before, though it may be of the same group.
        let mut parts = [[0i64; GROUPS_MAX]; 2];
        let (pairs, last) = block.as_chunks::<2>();
        let (pairs_of_groups, last_group) = groups.as_chunks::<2>();
        for ([first, second], [one, other]) in pairs.iter().zip(pairs_of_groups) {
            parts[0][usize::from(*one) % GROUPS_MAX] += first;
            parts[1][usize::from(*other) % GROUPS_MAX] += second;
        }
        last.iter().zip(last_group).for_each(|(number, group)| parts[0][usize::from(*group) % GROUPS_MAX] += number);
        let of_block = parts[0].iter().zip(&parts[1]).map(|(one, other)| i128::from(one + other));
        sums.iter_mut().zip(of_block).for_each(|(sum, more)| *sum += more);
    })?;
    Ok(is_whole.then_some(sums))
}

#[cfg(test)]
mod tests {
    use arrow_schema::Field;
    use datafusion::physical_expr::PhysicalExpr;
    use datafusion::physical_expr::expressions::{Column, col};
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};

    use super::*;

    const TYPE: DataType = DataType::Decimal128(38, 2);

    fn batch(numbers: &[Option<i128>]) -> RecordBatch {
        let schema = Schema::new(vec![Field::new("n", TYPE, true)]);
        let numbers = Decimal128Array::from(numbers.to_vec()).with_data_type(TYPE);
        RecordBatch::try_new(Arc::new(schema), vec![Arc::new(numbers)]).unwrap()
    }

    fn argument(batch: &RecordBatch) -> ShortDecimals {
        ShortDecimals::summand(&col("n", &batch.schema()).unwrap(), &batch.schema()).unwrap()
    }

    #[test]
    fn each_group_has_the_sum_of_its_rows() {
        for seed in 0..60 {
            let mut random = StdRng::seed_from_u64(seed);
            let (rows, groups) = (random.random_range(1..5_000), random.random_range(1..=GROUPS_MAX));
            let most = [9, 1 << 40, 1 << 52, i64::MAX.into(), i128::from(i64::MAX) + 2][seed as usize % 5];
            let numbers: Vec<i128> = (0..rows).map(|_| random.random_range(-most..=most)).collect();
            let numbers: Vec<i128> = if seed % 3 == 0 { vec![most; rows] } else { numbers };
            let of_rows: Vec<u8> = (0..rows).map(|_| random.random_range(0..groups) as u8).collect();
            let batch = batch(&numbers.iter().copied().map(Some).collect::<Vec<_>>());
            let mut expected = [0i128; GROUPS_MAX];
            numbers.iter().zip(&of_rows).for_each(|(number, group)| expected[usize::from(*group)] += number);
            let fits = numbers.iter().all(|number| i64::try_from(*number).is_ok());
            let found = sums_by_group(&argument(&batch), &batch, &of_rows).unwrap();
            assert_eq!(found, fits.then_some(expected), "seed {seed}");
        }
    }

    #[test]
    fn numbers_that_do_not_fit_or_are_null_are_left_to_the_functions() {
        let large = batch(&[Some(1), Some(1 << 70)]);
        let argument = argument(&large);
        let nulls = batch(&[Some(1), None]);
        assert_eq!(sums_by_group(&argument, &nulls, &[0, 0]).unwrap(), None);
        let whole = sums_by_group(&argument, &batch(&[Some(1), Some(2)]), &[0, 0]).unwrap();
        assert_eq!(whole.map(|sums| sums[0]), Some(3));
        assert_eq!(sums_by_group(&argument, &large, &[0, 0]).unwrap(), None);
        let column: Arc<dyn PhysicalExpr> = Arc::new(Column::new("i", 0));
        assert!(ShortDecimals::summand(&column, &Schema::new(vec![Field::new("i", DataType::Int64, false)])).is_none());
    }
}
