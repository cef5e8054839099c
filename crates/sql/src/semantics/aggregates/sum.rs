//! `sum` with PostgreSQL's types: of `smallint` and `integer` it is a `bigint`, of `bigint` a numeric, of `real` a `real`. Sums
//! of integers are kept in 128 bits, where the library's wrap around in 64. Of all else the library's function serves.
use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Float32Type, Int64Type};
use arrow_array::{Array, ArrayRef, BooleanArray, Decimal128Array, Int64Array};
use arrow_cast::cast;
use arrow_schema::{DataType, Field, FieldRef};
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::format_state_name;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, EmitTo, GroupsAccumulator, Signature, Volatility,
};

use super::distinct_values::{self, DistinctValues};
use super::unlimited::{self, Gives};
use crate::access::totals::SUM;
use crate::error::SqlError;
use crate::values::numerics::{NUMERIC, is_numeric};
use crate::values::types::taken;

const STATE: DataType = DataType::Decimal128(38, 0);

/// `sum`.
#[derive(Debug, PartialEq, Eq)]
struct Sum {
    inner: Arc<AggregateUDF>,
    aliases: Vec<String>,
    signature: Signature,
}

/// There is one: the planner hashes the calls of a query again and again, and all that is in their functions.
impl Hash for Sum {
    fn hash<H: Hasher>(&self, state: &mut H) {
        SUM.hash(state);
    }
}

/// The function in the place of the library's.
pub(crate) fn function(inner: Arc<AggregateUDF>) -> AggregateUDF {
    let aliases = vec![inner.name().to_owned()];
    AggregateUDF::from(Sum { inner, aliases, signature: Signature::user_defined(Volatility::Immutable) })
}

fn is_integer(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Int16 | DataType::Int32 | DataType::Int64)
}

/// Whether the library adds up values of this type, and ours, as they are. To ask it takes long, and planners ask often.
fn is_taken(data_type: &DataType) -> bool {
    use DataType::*;

    matches!(data_type, Float32 | Float64 | Decimal128(..) | Decimal256(..))
}

/// The type of the sum of integers.
fn result_of(data_type: &DataType) -> DataType {
    if *data_type == DataType::Int64 { STATE } else { DataType::Int64 }
}

fn of(fields: &[FieldRef]) -> DataType {
    fields.first().map_or(DataType::Null, |field| field.data_type().clone())
}

impl AggregateUDFImpl for Sum {
    fn name(&self) -> &str {
        SUM
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match types {
            [one] if is_integer(one) || is_taken(one) || is_numeric(one) => Ok(types.to_vec()),
            _ => taken(self.inner.as_ref(), types),
        }
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [one] if is_integer(one) => Ok(result_of(one)),
            [DataType::Float32] => Ok(DataType::Float32),
            [one] if is_numeric(one) => Ok(NUMERIC),
            _ => self.inner.return_type(types),
        }
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let of = of(args.expr_fields);
        let total = Total { gives: result_of(&of), sum: 0, count: 0 };
        Ok(match of {
            _ if is_integer(&of) && args.is_distinct => Box::new(DistinctValues::new(STATE, Box::new(total))),
            _ if is_integer(&of) => Box::new(total),
            _ if is_numeric(&of) => unlimited::accumulator(Gives::Sum, args.is_distinct),
            DataType::Float32 => Box::new(RealTotal { is_distinct: args.is_distinct, ..RealTotal::default() }),
            _ => self.inner.accumulator(args)?,
        })
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        match of(args.expr_fields) {
            of if is_integer(&of) || is_numeric(&of) => self.accumulator(args),
            DataType::Float32 => self.accumulator(args),
            _ => self.inner.create_sliding_accumulator(args),
        }
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let of = of(args.input_fields);
        let state = |data_type| vec![Arc::new(Field::new(format_state_name(args.name, "sum"), data_type, true))];
        Ok(match of {
            _ if is_integer(&of) && args.is_distinct => vec![distinct_values::field(args.name, STATE)],
            _ if is_integer(&of) => state(STATE),
            _ if is_numeric(&of) => unlimited::state_fields(args.name),
            DataType::Float32 => vec![Arc::new(Field::new_list(
                format_state_name(args.name, "sum"),
                Field::new_list_field(DataType::Float32, true),
                true,
            ))],
            _ => self.inner.state_fields(args)?,
        })
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        let of = of(args.expr_fields);
        match of {
            _ if is_integer(&of) => !args.is_distinct,
            DataType::Float32 => false,
            _ if is_numeric(&of) => false,
            _ => self.inner.groups_accumulator_supported(args),
        }
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        let of = of(args.expr_fields);
        match is_integer(&of) {
            true => Ok(Box::new(Totals { gives: result_of(&of), sums: Vec::new() })),
            false => self.inner.create_groups_accumulator(args),
        }
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

fn sum_of(array: &ArrayRef) -> Result<i128> {
    let wide = cast(array, &DataType::Int64)?;
    let values = wide.as_primitive::<Int64Type>();
    Ok(match values.null_count() {
        0 => sum(values.values()),
        _ => values.iter().flatten().map(i128::from).sum(),
    })
}

fn fit(total: i128) -> Result<i64> {
    i64::try_from(total).map_err(|_| {
        let error = SqlError::new("22003", "bigint out of range").hint("Sum a numeric: sum(x::numeric(38,0)).");
        DataFusionError::External(Box::new(error))
    })
}

/// One sum.
#[derive(Debug)]
struct Total {
    gives: DataType,
    sum: i128,
    count: usize,
}

impl Accumulator for Total {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.sum += sum_of(&values[0])?;
        self.count += values[0].len() - values[0].null_count();
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.sum -= sum_of(&values[0])?;
        self.count -= values[0].len() - values[0].null_count();
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let sum = (self.count > 0).then_some(self.sum);
        match self.gives {
            DataType::Int64 => Ok(ScalarValue::Int64(sum.map(fit).transpose()?)),
            _ => Ok(ScalarValue::Decimal128(sum, 38, 0)),
        }
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
struct Totals {
    gives: DataType,
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
        let wide = cast(&values[0], &DataType::Int64)?;
        let values = wide.as_primitive::<Int64Type>();
        match values.null_count() {
            0 => self.add(values.values().iter().map(|value| Some(i128::from(*value))), groups, filter, total),
            _ => self.add(values.iter().map(|value| value.map(i128::from)), groups, filter, total),
        }
        Ok(())
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let sums = emit_to.take_needed(&mut self.sums).into_iter();
        if self.gives != DataType::Int64 {
            return Ok(Arc::new(sums.collect::<Decimal128Array>().with_data_type(STATE)));
        }
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
        let wide = cast(&values[0], &DataType::Int64)?;
        let values = wide.as_primitive::<Int64Type>().iter().enumerate();
        Ok(states(values.map(|(row, value)| value.filter(|_| passes(row)).map(i128::from))))
    }

    fn size(&self) -> usize {
        self.sums.capacity() * size_of::<Option<i128>>()
    }
}

/// One sum of reals, which is a real at each step. Distinct ones are kept till the end.
#[derive(Debug, Default)]
struct RealTotal {
    is_distinct: bool,
    /// Their bits, where zeros have one sign.
    seen: BTreeSet<u32>,
    sum: f32,
    count: usize,
    has_infinite: bool,
}

impl Accumulator for RealTotal {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for value in values[0].as_primitive::<Float32Type>().iter().flatten() {
            if self.is_distinct && !self.seen.insert((value + 0.0).to_bits()) {
                continue;
            }
            self.count += 1;
            self.sum += value;
            self.has_infinite |= value.is_infinite();
        }
        match self.sum.is_infinite() && !self.has_infinite {
            true => Err(DataFusionError::External(Box::new(SqlError::new("22003", "value out of range: overflow")))),
            false => Ok(()),
        }
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(ScalarValue::Float32((self.count > 0).then_some(self.sum)))
    }

    /// The sum alone, or all that is distinct.
    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let real = |value: f32| ScalarValue::Float32(Some(value));
        let values: Vec<ScalarValue> = match self.is_distinct {
            true => self.seen.iter().map(|bits| real(f32::from_bits(*bits))).collect(),
            false if self.count > 0 => vec![real(self.sum)],
            false => Vec::new(),
        };
        Ok(vec![ScalarValue::List(ScalarValue::new_list_nullable(&values, &DataType::Float32))])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for values in states[0].as_list::<i32>().iter().flatten() {
            self.update_batch(&[values])?;
        }
        Ok(())
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.seen.len() * 2 * size_of::<u32>()
    }
}

#[cfg(test)]
mod tests {
    use datafusion::functions_aggregate::sum::sum_udaf;

    use super::*;

    #[test]
    fn the_library_adds_up_as_they_are_what_it_is_not_asked_about() {
        for data_type in [DataType::Float64, DataType::Decimal128(15, 2), DataType::Decimal256(76, 20)] {
            assert!(is_taken(&data_type));
            assert_eq!(taken(sum_udaf().as_ref(), std::slice::from_ref(&data_type)).unwrap(), [data_type]);
        }
    }

    #[test]
    fn halves_add_up_to_the_whole() {
        let values = [0, 1, -1, i64::MAX, i64::MIN, i64::MAX, 1 << 32, -(1 << 32), 12_345_678_901];
        for end in 0..=values.len() {
            assert_eq!(sum(&values[..end]), values[..end].iter().map(|value| i128::from(*value)).sum::<i128>());
        }
        assert!(fit(i128::from(i64::MAX) + 1).is_err());
    }
}
