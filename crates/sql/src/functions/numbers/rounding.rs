//! `ceil`, `floor`, `trunc` and `round`. Of floats and integers they give floats, of numerics numerics with as many decimals as
//! were asked for, which are none unless a second argument says how many.
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Decimal256Type, Float64Type};
use arrow_array::{Array, ArrayRef, Decimal128Array, Decimal256Array};
use arrow_cast::cast;
use arrow_schema::{DataType, Field, FieldRef};
use datafusion::arrow::datatypes::i256;
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::zeros::of_one_zero;
use crate::error::SqlError;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Does {
    Ceil,
    Floor,
    Trunc,
    Round,
}

/// One of the functions; `to` is what it gives once that is settled, so that it does not change with what the planner finds
/// out of the arguments later.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Rounding {
    does: Does,
    to: Option<DataType>,
    signature: Signature,
    aliases: Vec<String>,
}

/// The functions under their names in SQL.
pub(crate) fn functions() -> impl Iterator<Item = ScalarUDF> {
    [Does::Ceil, Does::Floor, Does::Trunc, Does::Round].into_iter().map(|does| {
        let aliases = if does == Does::Ceil { vec!["ceiling".to_owned()] } else { Vec::new() };
        let signature = Signature::variadic_any(Volatility::Immutable);
        ScalarUDF::from(Rounding { does, to: None, signature, aliases })
    })
}

/// The function with its result's type, if it is one of these.
pub(crate) fn settled(function: &ScalarUDF, to: &DataType) -> Option<ScalarUDF> {
    let known = function.inner().downcast_ref::<Rounding>().filter(|known| known.to.is_none())?;
    Some(ScalarUDF::from(Rounding { to: Some(to.clone()), ..known.clone() }))
}

impl Rounding {
    fn result(&self, types: &[DataType], digits: Option<i64>) -> Result<DataType> {
        let takes_digits = matches!(self.does, Does::Trunc | Does::Round);
        let (value, asks) = match types {
            [value] => (value, false),
            [value, digits] if takes_digits && (digits.is_integer() || digits.is_null()) => (value, true),
            _ => return Err(self.unknown()),
        };
        let own = match value {
            DataType::Decimal32(_, scale)
            | DataType::Decimal64(_, scale)
            | DataType::Decimal128(_, scale)
            | DataType::Decimal256(_, scale) => *scale,
            number if number.is_numeric() && !asks => return Ok(DataType::Float64),
            DataType::Null | DataType::Utf8 if !asks => return Ok(DataType::Float64),
            number if number.is_integer() || matches!(number, DataType::Null | DataType::Utf8) => 0,
            _ => return Err(self.unknown()),
        };
        let scale = match (asks, digits) {
            (false, _) => 0,
            (true, Some(digits)) => i8::try_from(digits.clamp(0, 60)).unwrap_or(0),
            // What the digits are is known row by row only.
            (true, None) => own.max(0),
        };
        let is_wide = matches!(value, DataType::Decimal256(..)) || scale > 38;
        Ok(if is_wide { DataType::Decimal256(76, scale) } else { DataType::Decimal128(38, scale) })
    }

    fn unknown(&self) -> DataFusionError {
        DataFusionError::Plan(format!("Function '{}' failed to match any signature", self.name()))
    }
}

impl ScalarUDFImpl for Rounding {
    fn name(&self) -> &str {
        match self.does {
            Does::Ceil => "ceil",
            Does::Floor => "floor",
            Does::Trunc => "trunc",
            Does::Round => "round",
        }
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match &self.to {
            Some(to) => Ok(to.clone()),
            None => self.result(types, None),
        }
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let data_type = match &self.to {
            Some(to) => to.clone(),
            None => {
                let types: Vec<DataType> = args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
                let digits = args.scalar_arguments.get(1).copied().flatten();
                self.result(&types, digits.and_then(whole))?
            }
        };
        Ok(Arc::new(Field::new(self.name(), data_type, true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_scalar = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let rows = if is_scalar { 1 } else { args.number_rows };
        let to = args.return_field.data_type();
        let arrays = args.args.into_iter().map(|arg| arg.into_array(rows)).collect::<Result<Vec<_>>>()?;
        let computed = match to {
            DataType::Float64 => self.floats(&arrays[0])?,
            _ => self.decimals(&arrays, to)?,
        };
        Ok(match is_scalar {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&computed, 0)?),
            false => ColumnarValue::Array(computed),
        })
    }
}

/// The whole number that a literal is.
fn whole(value: &ScalarValue) -> Option<i64> {
    match value.cast_to(&DataType::Int64) {
        Ok(ScalarValue::Int64(value)) => value,
        _ => None,
    }
}

impl Rounding {
    fn floats(&self, values: &ArrayRef) -> Result<ArrayRef> {
        let values = cast(values, &DataType::Float64)?;
        let values = values.as_primitive::<Float64Type>();
        Ok(of_one_zero(Arc::new(match self.does {
            Does::Ceil => values.unary::<_, Float64Type>(f64::ceil),
            Does::Floor => values.unary::<_, Float64Type>(f64::floor),
            Does::Trunc => values.unary::<_, Float64Type>(f64::trunc),
            Does::Round => values.unary::<_, Float64Type>(f64::round_ties_even),
        })))
    }

    fn decimals(&self, arrays: &[ArrayRef], to: &DataType) -> Result<ArrayRef> {
        let external = || DataFusionError::External(Box::new(overflow()));
        let (values, from) = unscaled(&arrays[0])?;
        let digits = arrays.get(1).map(|digits| cast(digits, &DataType::Int64)).transpose()?;
        let digits = digits.as_ref().map(|digits| digits.as_primitive::<arrow_array::types::Int64Type>());
        let (DataType::Decimal128(_, scale) | DataType::Decimal256(_, scale)) = to else { return Err(self.unknown()) };
        let mut rounded = Vec::with_capacity(values.len());
        for (row, value) in values.iter().enumerate() {
            let asked = match digits {
                Some(digits) if digits.is_null(row) => None,
                Some(digits) => Some(digits.value(row).clamp(-80, 80)),
                None => Some(0),
            };
            rounded.push(match value.zip(asked) {
                Some((value, asked)) => {
                    Some(self.round(value, from.into(), asked, (*scale).into()).ok_or_else(external)?)
                }
                None => None,
            });
        }
        if let DataType::Decimal128(..) = to {
            let limit = i256::from_i128(10i128.pow(38));
            let narrow = |value: Option<i256>| match value {
                Some(value) if value.wrapping_abs() >= limit => Err(external()),
                value => Ok(value.and_then(i256::to_i128)),
            };
            let narrow = rounded.into_iter().map(narrow).collect::<Result<Decimal128Array>>()?;
            return Ok(Arc::new(narrow.with_data_type(to.clone())));
        }
        Ok(Arc::new(Decimal256Array::from(rounded).with_data_type(to.clone())))
    }

    /// A number of `from` decimals with `asked` decimals, written with `to`.
    fn round(&self, value: i256, from: i64, asked: i64, to: i64) -> Option<i256> {
        let ten = i256::from_i128(10);
        // The whole number of units of the last digit that is asked for.
        let units = match u32::try_from(from - asked) {
            Err(_) => value.checked_mul(ten.checked_pow(u32::try_from(asked - from).ok()?)?)?,
            Ok(drop) => match ten.checked_pow(drop) {
                None => i256::ZERO,
                Some(power) => self.divided(value, power)?,
            },
        };
        if units == i256::ZERO {
            return Some(units);
        }
        match u32::try_from(to - asked) {
            Ok(add) => units.checked_mul(ten.checked_pow(add)?),
            // More digits are asked for than a column of this type shows.
            Err(_) => units.checked_div(ten.checked_pow(u32::try_from(asked - to).ok()?)?),
        }
    }

    fn divided(&self, value: i256, power: i256) -> Option<i256> {
        // Division in 256 bits takes far longer.
        let (whole, rest) = match (value.to_i128(), power.to_i128()) {
            (Some(value), Some(power)) => (i256::from_i128(value / power), i256::from_i128(value % power)),
            _ => (value.checked_div(power)?, value.checked_rem(power)?),
        };
        let (is_negative, is_exact) = (value < i256::ZERO, rest == i256::ZERO);
        let away = match self.does {
            Does::Trunc => false,
            Does::Ceil => !is_negative && !is_exact,
            Does::Floor => is_negative && !is_exact,
            Does::Round => rest.wrapping_abs() >= power.checked_sub(rest.wrapping_abs())?,
        };
        match (away, is_negative) {
            (false, _) => Some(whole),
            (true, true) => whole.checked_sub(i256::ONE),
            (true, false) => whole.checked_add(i256::ONE),
        }
    }
}

fn overflow() -> SqlError {
    let hint = "A numeric has 76 digits in expressions: cast it to fewer decimals or to double precision.";
    SqlError::new("22003", "numeric field overflow").hint(hint)
}

/// Decimals, or integers, in 256 bits, and how many decimals they have.
pub(crate) fn unscaled(array: &ArrayRef) -> Result<(Decimal256Array, i8)> {
    let scale = match array.data_type() {
        DataType::Decimal32(_, scale)
        | DataType::Decimal64(_, scale)
        | DataType::Decimal128(_, scale)
        | DataType::Decimal256(_, scale) => *scale,
        _ => 0,
    };
    if let Some(values) = array.as_primitive_opt::<Decimal128Type>() {
        return Ok((values.iter().map(|value| value.map(i256::from_i128)).collect(), scale));
    }
    let wide = cast(array, &DataType::Decimal256(76, scale))?;
    Ok((wide.as_primitive::<Decimal256Type>().clone(), scale))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(does: Does, value: i128, from: i64, asked: i64, to: i64) -> i128 {
        let signature = Signature::variadic_any(Volatility::Immutable);
        let function = Rounding { does, to: None, signature, aliases: Vec::new() };
        function.round(i256::from_i128(value), from, asked, to).and_then(i256::to_i128).unwrap()
    }

    #[test]
    fn halves_go_away_from_zero() {
        assert_eq!((of(Does::Round, 25, 1, 0, 0), of(Does::Round, -25, 1, 0, 0)), (3, -3));
        assert_eq!((of(Does::Trunc, -29, 1, 0, 0), of(Does::Floor, -21, 1, 0, 0)), (-2, -3));
        assert_eq!((of(Does::Ceil, 21, 1, 0, 0), of(Does::Ceil, -29, 1, 0, 0)), (3, -2));
    }

    #[test]
    fn digits_may_lie_before_the_point() {
        assert_eq!(of(Does::Round, 12_345, 1, -2, 0), 1200);
        assert_eq!(of(Does::Round, 15, 1, 5, 5), 150_000);
        assert_eq!(of(Does::Round, 15, 0, -1, 0), 20);
        assert_eq!(of(Does::Trunc, 15, 0, -80, 0), 0);
    }
}
