//! `avg`, `var_pop`, `var_samp`, `stddev_pop` and `stddev_samp` of integers and numerics: exact sums of the numbers and their
//! squares, of which the result is worked out in the end, where DataFusion computes in floats. Of floats it serves.
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Decimal256Type, Int64Type};
use arrow_array::{ArrayRef, Decimal256Array};
use arrow_schema::{DataType, Field, FieldRef};
use datafusion::arrow::datatypes::i256;
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::format_state_name;
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, GroupsAccumulator, Signature, Volatility};

use super::group_averages::{DECIMALS, GroupAverages, overflow, unscaled};
use super::interval_averages::{self, IntervalAverage};
use super::wide_averages::{self, WideAverage};
use crate::functions::times::intervals::INTERVAL;
use crate::semantics::operations::decimals::{self, power_of_ten, rounded};
use crate::values::types::taken;

/// The decimals that numbers of 256 bits keep.
const MOST_DECIMALS: i8 = 20;
const WIDE: DataType = DataType::Decimal256(76, 0);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Average,
    Variance { of_population: bool },
    Deviation { of_population: bool },
}

#[derive(Debug, PartialEq, Eq)]
struct Moments {
    kind: Kind,
    inner: Arc<AggregateUDF>,
    signature: Signature,
}

/// There is one of each kind, see [`super::sum`].
impl Hash for Moments {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.kind.hash(state);
    }
}

/// The function in the place of the library's, if it is one of these.
pub(crate) fn function(inner: &Arc<AggregateUDF>) -> Option<AggregateUDF> {
    let kind = match inner.name() {
        "avg" => Kind::Average,
        "var_pop" => Kind::Variance { of_population: true },
        "var" => Kind::Variance { of_population: false },
        "stddev_pop" => Kind::Deviation { of_population: true },
        "stddev" => Kind::Deviation { of_population: false },
        _ => return None,
    };
    let signature = Signature::user_defined(Volatility::Immutable);
    Some(AggregateUDF::from(Moments { kind, inner: inner.clone(), signature }))
}

fn is_exact(data_type: &DataType) -> bool {
    data_type.is_signed_integer() || matches!(data_type, DataType::Decimal128(_, 0..))
}

fn are_exact(fields: &[FieldRef]) -> bool {
    matches!(fields, [field] if is_exact(field.data_type()))
}

/// The decimals of the numbers.
fn scale_of(data_type: &DataType) -> i8 {
    match data_type {
        DataType::Decimal128(_, scale) => *scale,
        _ => 0,
    }
}

impl Moments {
    fn is_of_intervals(&self, data_type: &DataType) -> bool {
        self.kind == Kind::Average && interval_averages::is_interval(data_type)
    }

    /// The type of the numbers, if this is the average of such of 256 bits.
    fn wide<'f>(&self, fields: &'f [FieldRef]) -> Option<&'f DataType> {
        let [field] = fields else { return None };
        (self.kind == Kind::Average && wide_averages::is_wide(field.data_type())).then(|| field.data_type())
    }

    fn are_intervals(&self, fields: &[FieldRef]) -> bool {
        matches!(fields, [field] if self.is_of_intervals(field.data_type()))
    }
}

impl AggregateUDFImpl for Moments {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match types {
            [one] if self.is_of_intervals(one) => Ok(vec![INTERVAL]),
            [one] if is_exact(one) => Ok(types.to_vec()),
            [one] if self.kind == Kind::Average && wide_averages::is_wide(one) => Ok(types.to_vec()),
            // The squares of numbers of 256 bits have no room; those of as many as most columns hold are exact all the same.
            [DataType::Decimal256(_, scale @ 0..)] => Ok(vec![DataType::Decimal128(38, (*scale).min(MOST_DECIMALS))]),
            _ => taken(self.inner.as_ref(), types),
        }
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [one] if self.is_of_intervals(one) => Ok(INTERVAL),
            [one] if is_exact(one) => Ok(DataType::Decimal128(38, scale_of(one).max(DECIMALS))),
            [one] if self.kind == Kind::Average && wide_averages::is_wide(one) => Ok(wide_averages::return_type(one)),
            _ => self.inner.return_type(types),
        }
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        if self.are_intervals(args.expr_fields) {
            return match args.is_distinct {
                true => Err(interval_averages::distinct_is_refused()),
                false => Ok(Box::new(IntervalAverage::default())),
            };
        }
        if let Some(data_type) = self.wide(args.expr_fields) {
            return Ok(Box::new(WideAverage::new(data_type)));
        }
        if !are_exact(args.expr_fields) {
            return self.inner.accumulator(args);
        }
        let scale = args.expr_fields.first().map_or(0, |field| scale_of(field.data_type()));
        Ok(Box::new(Moment { kind: self.kind, scale, count: 0, sum: i256::ZERO, squares: i256::ZERO }))
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let fields = args.expr_fields;
        match are_exact(fields) || self.are_intervals(fields) || self.wide(fields).is_some() {
            true => self.accumulator(args),
            false => self.inner.create_sliding_accumulator(args),
        }
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        if self.are_intervals(args.input_fields) {
            return Ok(interval_averages::state_fields(args.name));
        }
        if let Some(data_type) = self.wide(args.input_fields) {
            return Ok(wide_averages::state_fields(args.name, data_type));
        }
        if !are_exact(args.input_fields) {
            return self.inner.state_fields(args);
        }
        let scale = args.input_fields.first().map_or(0, |field| scale_of(field.data_type()));
        let field = |part: &str, data_type| Arc::new(Field::new(format_state_name(args.name, part), data_type, true));
        let count = field("count", DataType::Int64);
        Ok(match self.kind {
            Kind::Average => vec![count, field("sum", DataType::Decimal128(38, scale))],
            _ => vec![count, field("sum", WIDE), field("squares", WIDE)],
        })
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        match are_exact(args.expr_fields) {
            _ if self.are_intervals(args.expr_fields) || self.wide(args.expr_fields).is_some() => false,
            true => self.kind == Kind::Average,
            false => self.inner.groups_accumulator_supported(args),
        }
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        if !are_exact(args.expr_fields) {
            return self.inner.create_groups_accumulator(args);
        }
        let scale = args.expr_fields.first().map_or(0, |field| scale_of(field.data_type()));
        Ok(Box::new(GroupAverages::new(scale)))
    }
}

/// One group.
#[derive(Debug)]
struct Moment {
    kind: Kind,
    scale: i8,
    count: i64,
    sum: i256,
    squares: i256,
}

impl Moment {
    fn change(&mut self, values: &ArrayRef, sign: i64) -> Result<()> {
        for value in unscaled(values, self.scale)?.iter().flatten() {
            let (value, sign_wide) = (i256::from_i128(value), i256::from_i128(sign.into()));
            self.count += sign;
            let add = |total: i256, more: Option<i256>| more.and_then(|more| total.checked_add(more * sign_wide));
            self.sum = add(self.sum, Some(value)).ok_or_else(overflow)?;
            if self.kind != Kind::Average {
                self.squares = add(self.squares, value.checked_mul(value)).ok_or_else(overflow)?;
            }
        }
        Ok(())
    }

    /// The result with so many decimals.
    fn result(&self, decimals: i8) -> Result<Option<i128>> {
        let count = i256::from_i128(self.count.into());
        let least = match self.kind {
            Kind::Variance { of_population: false } | Kind::Deviation { of_population: false } => 2,
            _ => 1,
        };
        if self.count < least {
            return Ok(None);
        }
        let shift = |digits: i8| power_of_ten(u32::try_from(digits).unwrap_or(0));
        let scaled = |value: i256, digits| shift(digits).and_then(|power| value.checked_mul(power));
        let found = match self.kind {
            Kind::Average => scaled(self.sum, decimals - self.scale).and_then(|dividend| rounded(dividend, count)),
            Kind::Variance { of_population } => {
                self.spread(of_population).and_then(|(dividend, divisor)| match decimals - 2 * self.scale {
                    digits @ 0.. => rounded(scaled(dividend, digits)?, divisor),
                    digits => rounded(dividend, scaled(divisor, -digits)?),
                })
            }
            Kind::Deviation { of_population } => {
                self.spread(of_population).and_then(|(dividend, divisor)| self.deviation(dividend, divisor, decimals))
            }
        };
        let limit = 10i128.pow(38);
        found.and_then(i256::to_i128).filter(|value| value.abs() < limit).map(Some).ok_or_else(overflow)
    }

    /// The root of a variance. PostgreSQL rounds the variance first, to as many decimals as it gives the quotient.
    fn deviation(&self, dividend: i256, divisor: i256, decimals: i8) -> Option<i256> {
        let scale_of_dividend = 2 * i32::from(self.scale);
        let scale = decimals::scale_of_quotient((dividend, scale_of_dividend), (divisor, 0)).max(scale_of_dividend);
        let power = |digits: i32| power_of_ten(u32::try_from(digits).ok()?);
        let exact = power(scale - scale_of_dividend)
            .and_then(|power| dividend.checked_mul(power))
            .and_then(|dividend| rounded(dividend, divisor))
            .and_then(|variance| root(variance.checked_mul(power(scale)?)?));
        match (exact, i32::from(decimals) - scale) {
            (Some(exact), more @ 0..) => exact.checked_mul(power(more)?),
            (Some(exact), less) => rounded(exact, power(-less)?),
            // The numbers are large: half of the digits are taken from the root.
            (None, _) => {
                let digits = i32::from(decimals - self.scale);
                let square = rounded(dividend.checked_mul(power(digits)?)?, divisor)?;
                root(square)?.checked_mul(power(digits / 2)?)
            }
        }
    }

    /// The variance as a quotient, with twice the decimals of the numbers.
    fn spread(&self, of_population: bool) -> Option<(i256, i256)> {
        let count = i256::from_i128(self.count.into());
        let left = count.checked_mul(self.squares)?;
        let dividend = left.checked_sub(self.sum.checked_mul(self.sum)?)?;
        let others = if of_population { count } else { count - i256::ONE };
        Some((dividend, count.checked_mul(others)?))
    }
}

/// The square root, rounded to the nearest whole number.
fn root(square: i256) -> Option<i256> {
    if square <= i256::ZERO {
        return Some(i256::ZERO);
    }
    let mut digits = 0;
    let mut rest = square;
    while rest > i256::ZERO {
        rest = rest.checked_div(i256::from_i128(4))?;
        digits += 1;
    }
    // From above, Newton's steps come down to the root.
    let mut guess = i256::from_i128(2).checked_pow(digits)?;
    loop {
        let next = guess.checked_add(square.checked_div(guess)?)?.checked_div(i256::from_i128(2))?;
        if next >= guess {
            break;
        }
        guess = next;
    }
    let rest = square.checked_sub(guess.checked_mul(guess)?)?;
    Some(if rest > guess { guess + i256::ONE } else { guess })
}

impl Accumulator for Moment {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.change(&values[0], 1)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.change(&values[0], -1)
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let decimals = self.scale.max(DECIMALS);
        Ok(ScalarValue::Decimal128(self.result(decimals)?, 38, decimals))
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let count = ScalarValue::Int64(Some(self.count));
        Ok(match self.kind {
            Kind::Average => {
                let sum = self.sum.to_i128().ok_or_else(overflow)?;
                vec![count, ScalarValue::Decimal128(Some(sum), 38, self.scale)]
            }
            _ => {
                let wide = |value| ScalarValue::Decimal256(Some(value), 76, 0);
                vec![count, wide(self.sum), wide(self.squares)]
            }
        })
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.count += states[0].as_primitive::<Int64Type>().iter().flatten().sum::<i64>();
        if self.kind == Kind::Average {
            for sum in states[1].as_primitive::<Decimal128Type>().iter().flatten() {
                self.sum = self.sum.checked_add(i256::from_i128(sum)).ok_or_else(overflow)?;
            }
            return Ok(());
        }
        let total = |array: &ArrayRef, from: i256| {
            let values: &Decimal256Array = array.as_primitive::<Decimal256Type>();
            values.iter().flatten().try_fold(from, |total, value| total.checked_add(value)).ok_or_else(overflow)
        };
        self.sum = total(&states[1], self.sum)?;
        self.squares = total(&states[2], self.squares)?;
        Ok(())
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::Int64Array;

    use super::*;

    fn of(kind: Kind, values: &[i64]) -> Option<i128> {
        let mut moment = Moment { kind, scale: 0, count: 0, sum: i256::ZERO, squares: i256::ZERO };
        let values: ArrayRef = Arc::new(Int64Array::from(values.to_vec()));
        moment.update_batch(&[values]).unwrap();
        moment.result(DECIMALS).unwrap()
    }

    #[test]
    fn results_are_exact() {
        assert_eq!(of(Kind::Average, &[1, 1, 2]), Some(13_333_333_333_333_333));
        assert_eq!(of(Kind::Variance { of_population: true }, &[1, 2, 4]), Some(15_555_555_555_555_556));
        assert_eq!(of(Kind::Variance { of_population: false }, &[1, 2, 4]), Some(23_333_333_333_333_333));
        assert_eq!(of(Kind::Deviation { of_population: false }, &[1, 2, 4]), Some(15_275_252_316_519_467));
        assert_eq!(of(Kind::Variance { of_population: false }, &[7]), None);
        // In floats the squares of these would lose their last digits.
        let large = [i64::from(i32::MAX), i64::from(i32::MAX) - 1];
        assert_eq!(of(Kind::Variance { of_population: true }, &large), Some(2_500_000_000_000_000));
    }

    #[test]
    fn roots_are_rounded() {
        let of = |value: i128| root(i256::from_i128(value)).and_then(i256::to_i128);
        assert_eq!(
            (of(0), of(1), of(2), of(3), of(4), of(6), of(7)),
            (Some(0), Some(1), Some(1), Some(2), Some(2), Some(2), Some(3))
        );
        assert_eq!(of(10i128.pow(38)), Some(10i128.pow(19)));
    }
}
