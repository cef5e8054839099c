//! Functions of numerics: `div`, `scale`, `min_scale`, `trim_scale`, `width_bucket`, `factorial`; and what `ln`, `log`, `exp`,
//! `sqrt` and `power` give for numerics.
//!
//! A result has the decimals that PostgreSQL gives it where the arguments are literals. In a column all values have the
//! same number of decimals: 16, and 20 of what may be very small, as powers.
mod fixed;
mod weights;

use std::cmp::Ordering;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, Decimal128Array, Decimal256Array, Int32Array};
use arrow_cast::cast;
use arrow_schema::{DataType, Field, FieldRef};
use datafusion::arrow::datatypes::i256;
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use engine::numeric::{Exact, Number};
use num_bigint::BigInt;

use self::fixed::Functions;
pub(crate) use self::weights::Elementary;
use super::rounding::unscaled;
use crate::error::SqlError;

/// The decimals of a column of results, and of one of those that may be very small.
const DECIMALS: u8 = 16;
const DECIMALS_OF_SMALL: u8 = 20;
/// What PostgreSQL's numerics have at most.
const EXPONENT_MAX: f64 = 6000.0;
/// The digits before the point that a power has at most.
const POWER_DIGITS_MAX: f64 = 800.0;
const WHOLE_POWER_DIGITS_MAX: f64 = 20_000.0;

/// The type of the result, where the arguments make it a numeric; literals among them are known.
pub(crate) fn result_of(of: Elementary, types: &[DataType], literals: &[Option<&ScalarValue>]) -> Option<DataType> {
    let is_exact = |found: &DataType| found.is_decimal() || found.is_integer() || found.is_null();
    let has_decimal = types.iter().any(DataType::is_decimal) || (of == Elementary::Log && types.len() == 2);
    if !has_decimal || !types.iter().all(is_exact) {
        return None;
    }
    let known: Option<Vec<Exact>> = literals.iter().map(|literal| literal.and_then(number_of)).collect();
    let known = known.filter(|known| known.len() == types.len());
    if let Some((decimals, digits)) = known.and_then(|known| weights::of_result(of, &known)) {
        return Some(decimal_of(digits, decimals));
    }
    Some(match of {
        Elementary::Exp | Elementary::Power => decimal_of(56, DECIMALS_OF_SMALL.into()),
        _ => decimal_of(22, DECIMALS.into()),
    })
}

/// The type for so many digits before and behind the point.
fn decimal_of(before: u32, decimals: u32) -> DataType {
    let scale = i8::try_from(decimals.min(60)).unwrap_or(60);
    if before + decimals <= 38 { DataType::Decimal128(38, scale) } else { DataType::Decimal256(76, scale) }
}

fn number_of(literal: &ScalarValue) -> Option<Exact> {
    let array = literal.to_array().ok()?;
    let (values, scale) = unscaled(&array).ok()?;
    (!values.is_null(0)).then(|| number(values.value(0), scale))
}

fn number(value: i256, scale: i8) -> Exact {
    let units = BigInt::from_signed_bytes_le(&value.to_le_bytes());
    match u32::try_from(scale) {
        Ok(decimals) => Exact { units, decimals },
        Err(_) => Exact { units: units * BigInt::from(10).pow(scale.unsigned_abs().into()), decimals: 0 },
    }
}

fn overflow() -> SqlError {
    SqlError::new("22003", "value overflows numeric format")
        .hint("A numeric has 76 digits here: cast an argument to double precision.")
}

/// Numbers as an array of a decimal's type.
fn decimals(numbers: Vec<Option<Exact>>, to: &DataType) -> Result<ArrayRef> {
    let external = || DataFusionError::External(Box::new(overflow()));
    let (DataType::Decimal128(precision, scale) | DataType::Decimal256(precision, scale)) = to else {
        return Err(DataFusionError::Internal("a numeric that is no decimal".to_owned()));
    };
    let limit = BigInt::from(10).pow((*precision).into());
    let fitted = |number: Option<Exact>| match number {
        None => Ok(None),
        Some(number) => {
            let units = number.rounded(u32::try_from(*scale).unwrap_or(0)).units;
            if units >= limit || -&units >= limit {
                return Err(external());
            }
            Ok(Some(units))
        }
    };
    let fitted = numbers.into_iter().map(fitted);
    Ok(match to {
        DataType::Decimal128(..) => {
            let narrow = fitted.map(|units| units.map(|units| units.and_then(|units| i128::try_from(units).ok())));
            Arc::new(narrow.collect::<Result<Decimal128Array>>()?.with_data_type(to.clone()))
        }
        _ => {
            let wide =
                fitted.map(|units| units.map(|units| units.and_then(|units| i256::from_string(&units.to_string()))));
            Arc::new(wide.collect::<Result<Decimal256Array>>()?.with_data_type(to.clone()))
        }
    })
}

/// The results for arrays of numerics or integers.
pub(crate) fn compute(of: Elementary, arrays: &[ArrayRef], to: &DataType) -> Result<ArrayRef> {
    let external = |error: SqlError| DataFusionError::External(Box::new(error));
    let columns = arrays.iter().map(unscaled).collect::<Result<Vec<_>>>()?;
    let (DataType::Decimal128(_, scale) | DataType::Decimal256(_, scale)) = to else {
        return Err(DataFusionError::Internal("a numeric that is no decimal".to_owned()));
    };
    let places = u32::try_from(*scale).unwrap_or(0);
    let rows = columns.first().map_or(0, |(values, _)| values.len());
    let mut results = Vec::with_capacity(rows);
    for row in 0..rows {
        let cell =
            |(values, scale): &(Decimal256Array, i8)| (!values.is_null(row)).then(|| number(values.value(row), *scale));
        let cells: Option<Vec<Exact>> = columns.iter().map(cell).collect();
        results.push(cells.map(|cells| rounded(of, &cells, places)).transpose().map_err(external)?);
    }
    decimals(results, to)
}

/// The value of a function of numerics without limits, with the decimals that PostgreSQL gives it.
pub(crate) fn elementary(of: Elementary, numbers: &[Number]) -> Result<Number, SqlError> {
    let exact = |number: &Number| match number {
        Number::Finite(exact) => Some(exact.clone()),
        _ => None,
    };
    let Some(cells) = numbers.iter().map(exact).collect::<Option<Vec<Exact>>>() else { return unusual(of, numbers) };
    let places = weights::of_result(of, &cells).map_or(u32::from(DECIMALS), |(decimals, _)| decimals);
    Ok(Number::Finite(value(of, &cells, places)?))
}

/// The value of a function of what is infinite or no number: that of doubles, as it is one of these, or a whole number.
fn unusual(of: Elementary, numbers: &[Number]) -> Result<Number, SqlError> {
    let float = |number: &Number| match number {
        Number::NotANumber => f64::NAN,
        Number::Infinite { is_negative: true } => f64::NEG_INFINITY,
        Number::Infinite { is_negative: false } => f64::INFINITY,
        Number::Finite(exact) => exact.to_f64(),
    };
    let is_below = |value: f64| value < 0.0;
    let value = match (of, &numbers.iter().map(float).collect::<Vec<f64>>()[..]) {
        (Elementary::Ln | Elementary::Log, values) if values.iter().copied().any(is_below) => {
            return Err(SqlError::new("2201E", "cannot take logarithm of a negative number"));
        }
        (Elementary::Sqrt, [value]) if is_below(*value) => {
            return Err(SqlError::new("2201F", "cannot take square root of a negative number"));
        }
        (Elementary::Ln | Elementary::Log | Elementary::Sqrt, [value]) => *value,
        (Elementary::Log, [base, value]) => value.ln() / base.ln(),
        (Elementary::Exp, [value]) => value.exp(),
        (Elementary::Power, [base, exponent]) => base.powf(*exponent),
        _ => f64::NAN,
    };
    Ok(match value {
        infinite if infinite.is_infinite() => Number::Infinite { is_negative: infinite < 0.0 },
        none if none.is_nan() => Number::NotANumber,
        whole => Number::Finite(Exact::whole(if whole == 0.0 { 0 } else { 1 })),
    })
}

/// The value with the decimals that PostgreSQL gives it, as far as the column has so many.
fn rounded(of: Elementary, cells: &[Exact], places: u32) -> Result<Exact, SqlError> {
    let own = weights::of_result(of, cells).map_or(places, |(decimals, _)| decimals.min(places));
    value(of, cells, own)
}

fn value(of: Elementary, cells: &[Exact], places: u32) -> Result<Exact, SqlError> {
    match (of, cells) {
        (Elementary::Ln, [value]) => Ok(positive(value)?.ln(places)),
        (Elementary::Log, [value]) => {
            let base = Exact { units: BigInt::from(10), decimals: 0 };
            Ok(positive(value)?.log(&base, places))
        }
        (Elementary::Log, [base, value]) => {
            let (base, value) = (positive(base)?, positive(value)?);
            match base.whole() == Some(BigInt::from(1)) {
                true => Err(SqlError::new("22012", "division by zero")),
                false => Ok(value.log(base, places)),
            }
        }
        (Elementary::Sqrt, [value]) if value.is_negative() => {
            Err(SqlError::new("2201F", "cannot take square root of a negative number"))
        }
        (Elementary::Sqrt, [value]) => Ok(value.root(places)),
        (Elementary::Exp, [value]) => match value.to_f64() {
            large if large >= EXPONENT_MAX => Err(overflow()),
            small if small <= -EXPONENT_MAX => Ok(zero(places)),
            _ => Ok(value.exp(places)),
        },
        (Elementary::Power, [base, exponent]) => power(base, exponent, places),
        _ => Err(SqlError::new("XX000", "a function of so many numerics")),
    }
}

fn zero(decimals: u32) -> Exact {
    Exact { units: BigInt::ZERO, decimals }
}

fn positive(value: &Exact) -> Result<&Exact, SqlError> {
    let of = match value {
        zero if zero.is_zero() => "zero",
        negative if negative.is_negative() => "a negative number",
        positive => return Ok(positive),
    };
    Err(SqlError::new("2201E", format!("cannot take logarithm of {of}")))
}

fn power(base: &Exact, exponent: &Exact, places: u32) -> Result<Exact, SqlError> {
    let whole = exponent.whole();
    if base.is_zero() {
        return match exponent.is_negative() {
            true => Err(SqlError::new("2201F", "zero raised to a negative power is undefined")),
            false if exponent.is_zero() => Ok(Exact { units: BigInt::from(1), decimals: 0 }.rounded(places)),
            false => Ok(zero(places)),
        };
    }
    if base.is_negative() && whole.is_none() {
        let message = "a negative number raised to a non-integer power yields a complex result";
        return Err(SqlError::new("2201F", message));
    }
    let magnitude = Exact { units: base.units.magnitude().clone().into(), decimals: base.decimals };
    let digits = magnitude.to_f64().log10() * exponent.to_f64();
    if digits > if whole.is_some() { WHOLE_POWER_DIGITS_MAX } else { POWER_DIGITS_MAX } {
        return Err(overflow());
    }
    if digits < -f64::from(places) - 2.0 {
        return Ok(zero(places));
    }
    let small =
        whole.as_ref().and_then(|whole| i32::try_from(whole).ok()).filter(|whole| whole.unsigned_abs() <= 10_000);
    let power = match small {
        Some(whole) => magnitude.power_of_whole(whole, places),
        None => magnitude.power(exponent, places),
    };
    let is_odd = base.is_negative() && whole.is_some_and(|whole| whole.bit(0));
    Ok(if is_odd { Exact { units: -power.units, decimals: power.decimals } } else { power })
}

/// The functions that are of numerics only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Does {
    Div,
    Scale,
    MinScale,
    TrimScale,
    WidthBucket,
    Factorial,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Function {
    does: Does,
    /// What it gives once that is settled, so that it does not change with what the planner finds out later.
    to: Option<DataType>,
    signature: Signature,
}

/// The function with its result's type, if it is `trim_scale`, whose type depends on the value of a literal.
pub(crate) fn settled(function: &ScalarUDF, to: &DataType) -> Option<ScalarUDF> {
    let known = function.inner().downcast_ref::<Function>().filter(|known| known.to.is_none())?;
    Some(ScalarUDF::from(Function { to: Some(to.clone()), ..known.clone() }))
}

/// The functions under their names in SQL.
pub(crate) fn functions() -> impl Iterator<Item = ScalarUDF> {
    let of = |(does, count)| {
        ScalarUDF::from(Function { does, to: None, signature: Signature::any(count, Volatility::Immutable) })
    };
    [
        (Does::Div, 2),
        (Does::Scale, 1),
        (Does::MinScale, 1),
        (Does::TrimScale, 1),
        (Does::WidthBucket, 4),
        (Does::Factorial, 1),
    ]
    .into_iter()
    .map(of)
}

impl Function {
    fn result(&self, types: &[DataType], first: Option<&ScalarValue>) -> Result<DataType> {
        if let Some(to) = &self.to {
            return Ok(to.clone());
        }
        let is_exact = |found: &DataType| found.is_decimal() || found.is_integer() || found.is_null();
        let is_known = match self.does {
            Does::WidthBucket => types.iter().all(|found| found.is_numeric() || found.is_null()),
            Does::Factorial => types.iter().all(|found| found.is_integer() || found.is_null()),
            _ => types.iter().all(is_exact),
        };
        if !is_known {
            return Err(DataFusionError::Plan(format!("Function '{}' failed to match any signature", self.name())));
        }
        let scale = match types.first() {
            Some(DataType::Decimal128(_, scale) | DataType::Decimal256(_, scale)) => *scale,
            _ => 0,
        };
        Ok(match self.does {
            Does::Div => decimal_of(38, 0),
            Does::Factorial => DataType::Decimal256(76, 0),
            Does::Scale | Does::MinScale | Does::WidthBucket => DataType::Int32,
            Does::TrimScale => {
                let least = first.and_then(number_of).map(|number| number.decimals_needed());
                let scale = least.and_then(|least| i8::try_from(least).ok()).unwrap_or(scale);
                match types.first() {
                    Some(DataType::Decimal256(..)) => DataType::Decimal256(76, scale),
                    _ => DataType::Decimal128(38, scale),
                }
            }
        })
    }
}

impl ScalarUDFImpl for Function {
    fn name(&self) -> &str {
        match self.does {
            Does::Div => "div",
            Does::Scale => "scale",
            Does::MinScale => "min_scale",
            Does::TrimScale => "trim_scale",
            Does::WidthBucket => "width_bucket",
            Does::Factorial => "factorial",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.result(types, None)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let types: Vec<DataType> = args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        let data_type = self.result(&types, args.scalar_arguments.first().copied().flatten())?;
        Ok(Arc::new(Field::new(self.name(), data_type, true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_scalar = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let rows = if is_scalar { 1 } else { args.number_rows };
        let arrays = args.args.into_iter().map(|arg| arg.into_array(rows)).collect::<Result<Vec<_>>>()?;
        let computed = self.compute(&arrays, args.return_field.data_type())?;
        Ok(match is_scalar {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&computed, 0)?),
            false => ColumnarValue::Array(computed),
        })
    }
}

impl Function {
    fn compute(&self, arrays: &[ArrayRef], to: &DataType) -> Result<ArrayRef> {
        let external = |error: SqlError| DataFusionError::External(Box::new(error));
        if self.does == Does::WidthBucket && arrays.iter().take(3).any(|array| array.data_type().is_floating()) {
            return buckets_of_floats(arrays);
        }
        let columns = arrays.iter().map(unscaled).collect::<Result<Vec<_>>>()?;
        let rows = columns.first().map_or(0, |(values, _)| values.len());
        let mut results = Vec::with_capacity(rows);
        for row in 0..rows {
            let cell = |(values, scale): &(Decimal256Array, i8)| {
                (!values.is_null(row)).then(|| number(values.value(row), *scale))
            };
            let cells: Option<Vec<Exact>> = columns.iter().map(cell).collect();
            results.push(cells.map(|cells| self.value(&cells)).transpose().map_err(external)?);
        }
        if to.is_decimal() {
            return decimals(results, to);
        }
        let whole = results.into_iter().map(|number| number.and_then(|number| i32::try_from(number.units).ok()));
        Ok(Arc::new(whole.collect::<Int32Array>()))
    }

    fn value(&self, cells: &[Exact]) -> Result<Exact, SqlError> {
        let whole = |units: BigInt| Ok(Exact { units, decimals: 0 });
        match (self.does, cells) {
            (Does::Div, [_, divisor]) if divisor.is_zero() => Err(SqlError::new("22012", "division by zero")),
            (Does::Div, [dividend, divisor]) => {
                let decimals = dividend.decimals.max(divisor.decimals);
                whole(dividend.rounded(decimals).units / divisor.rounded(decimals).units)
            }
            (Does::Scale, [value]) => whole(value.decimals.into()),
            (Does::MinScale, [value]) => whole(value.decimals_needed().into()),
            (Does::TrimScale, [value]) => Ok(value.clone()),
            (Does::Factorial, [value]) if value.is_negative() => {
                Err(SqlError::new("22003", "factorial of a negative number is undefined"))
            }
            (Does::Factorial, [value]) => {
                let last = u32::try_from(&value.units).ok().filter(|last| *last < 60).ok_or_else(overflow)?;
                whole((1..=last).map(BigInt::from).product())
            }
            (Does::WidthBucket, [value, low, high, count]) => {
                let [value, low, high] = [value, low, high].map(|exact| Number::Finite(exact.clone()));
                whole(bucket([&value, &low, &high], count)?)
            }
            _ => Err(SqlError::new("XX000", "a function of so many numerics")),
        }
    }
}

fn wrong_bucket(message: &str) -> SqlError {
    SqlError::new("2201G", message)
}

/// The part of a range, which is cut into so many of one width, that a number lies in.
pub(crate) fn bucket([value, low, high]: [&Number; 3], count: &Exact) -> Result<BigInt, SqlError> {
    if count.is_zero() || count.is_negative() {
        return Err(wrong_bucket("count must be greater than zero"));
    }
    if [value, low, high].iter().any(|number| matches!(number, Number::NotANumber)) {
        return Err(wrong_bucket("operand, lower bound, and upper bound cannot be NaN"));
    }
    let (Number::Finite(low), Number::Finite(high)) = (low, high) else {
        return Err(wrong_bucket("lower and upper bounds must be finite"));
    };
    let is_upward = match low.compare(high) {
        Ordering::Equal => return Err(wrong_bucket("lower bound cannot equal upper bound")),
        order => order.is_lt(),
    };
    let beyond = || BigInt::from(1) + &count.units;
    Ok(match value {
        Number::Finite(value) => {
            let decimals = value.decimals.max(low.decimals).max(high.decimals);
            let [value, low, high] = [value, low, high].map(|number| number.rounded(decimals).units);
            let (from, width) = if is_upward { (&value - &low, &high - &low) } else { (&low - &value, &low - &high) };
            match from {
                from if from < BigInt::ZERO => BigInt::ZERO,
                from if from >= width => beyond(),
                from => from * &count.units / width + 1,
            }
        }
        infinite if infinite.is_negative() == is_upward => BigInt::ZERO,
        _ => beyond(),
    })
}

fn buckets_of_floats(arrays: &[ArrayRef]) -> Result<ArrayRef> {
    let external = |message: &str| Err(DataFusionError::External(Box::new(wrong_bucket(message))));
    let floats = arrays.iter().take(3).map(|array| Ok(cast(array, &DataType::Float64)?)).collect::<Result<Vec<_>>>()?;
    let counts = arrays.get(3).map(|counts| cast(counts, &DataType::Int64)).transpose()?;
    let Some(counts) = counts else { return external("count must be greater than zero") };
    let counts = counts.as_primitive::<Int64Type>();
    let mut buckets = Vec::with_capacity(counts.len());
    for row in 0..counts.len() {
        if counts.is_null(row) || floats.iter().any(|array| array.is_null(row)) {
            buckets.push(None);
            continue;
        }
        let at = |place: usize| floats[place].as_primitive::<arrow_array::types::Float64Type>().value(row);
        let (value, low, high, count) = (at(0), at(1), at(2), counts.value(row));
        if count <= 0 {
            return external("count must be greater than zero");
        }
        if value.is_nan() || low.is_nan() || high.is_nan() {
            return external("operand, lower bound, and upper bound cannot be NaN");
        }
        if low.is_infinite() || high.is_infinite() {
            return external("lower and upper bounds must be finite");
        }
        #[expect(clippy::float_cmp, reason = "the bounds are compared, not computed")]
        if low == high {
            return external("lower bound cannot equal upper bound");
        }
        let (from, width) = if low < high { (value - low, high - low) } else { (low - value, low - high) };
        #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "counts are small")]
        let bucket = match from {
            _ if from < 0.0 => 0,
            _ if from >= width => count + 1,
            _ => (from / width * count as f64) as i64 + 1,
        };
        buckets.push(i32::try_from(bucket).ok());
    }
    Ok(Arc::new(Int32Array::from(buckets)))
}
