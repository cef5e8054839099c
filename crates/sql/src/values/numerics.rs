//! Columns of numerics without limits: made of numbers of other types, and made into them.
//!
//! Queries have such a column as an array of [`Binary`](ArrowType::Binary), in the bytes in which [`Numeric`] keeps a number.
use std::sync::Arc;

use arrow_array::builder::BinaryBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Decimal256Type, Float64Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, BinaryArray, Decimal128Array, Decimal256Array, Float64Array, Int64Array, ListArray,
};
use arrow_cast::cast;
use arrow_schema::{DataType as ArrowType, Field};
use datafusion::arrow::datatypes::i256;
use datafusion::logical_expr::Expr;
use engine::numeric::{self, Exact, Number};
use engine::{DataType, Decimal, Numeric};
use num_bigint::BigInt;

use super::text::float_digits;
use super::{Misfit, Misplaced};

/// The type of such columns in queries.
pub(crate) const NUMERIC: ArrowType = ArrowType::Binary;

/// The name of the function that gives the key of a numeric: what it is compared by.
pub(crate) const KEY: &str = "numeric_key";

/// The numeric of which an expression is the key.
pub(crate) fn keyed(expr: &Expr) -> Option<&Expr> {
    match expr {
        Expr::ScalarFunction(call) if call.name() == KEY => call.args.first(),
        _ => None,
    }
}

/// Whether values of this type are numerics without limits.
pub(crate) fn is_numeric(found: &ArrowType) -> bool {
    *found == NUMERIC
}

/// Whether values of this type are arrays of numerics without limits.
pub(crate) fn is_list(found: &ArrowType) -> bool {
    matches!(found, ArrowType::List(item) if is_numeric(item.data_type()))
}

/// Whether values of this type are numbers that a numeric without limits has, too.
pub(crate) fn is_exact(found: &ArrowType) -> bool {
    is_numeric(found) || found.is_integer() || found.is_decimal()
}

/// The number in a row of integers or decimals.
fn small_at(array: &dyn Array, row: usize) -> Option<Numeric> {
    let decimals = |scale: i8| u32::try_from(scale).unwrap_or(0);
    Some(match array.data_type() {
        ArrowType::Decimal128(_, scale) => {
            Numeric::new(array.as_primitive::<Decimal128Type>().value(row), decimals(*scale))
        }
        ArrowType::Decimal256(_, scale) => {
            let value = array.as_primitive::<Decimal256Type>().value(row);
            match value.to_i128() {
                Some(units) => Numeric::new(units, decimals(*scale)),
                None => {
                    let units = BigInt::from_signed_bytes_le(&value.to_le_bytes());
                    Number::Finite(Exact { units, decimals: decimals(*scale) }).to_numeric().ok()?
                }
            }
        }
        ArrowType::Int64 => Numeric::from(array.as_primitive::<Int64Type>().value(row)),
        _ => return None,
    })
}

/// Numbers of any type as numerics; a float has as many digits as it holds for sure: 15, and 6 of a `real`.
pub(crate) fn of_numbers(array: &ArrayRef) -> Result<ArrayRef, Misplaced> {
    let array = match array.data_type() {
        ArrowType::Binary => return Ok(array.clone()),
        found if found.is_integer() && *found != ArrowType::UInt64 => {
            &cast(array, &ArrowType::Int64).map_err(unknown)?
        }
        ArrowType::UInt64 => &cast(array, &ArrowType::Decimal128(20, 0)).map_err(unknown)?,
        ArrowType::Decimal32(_, scale) | ArrowType::Decimal64(_, scale) => {
            &cast(array, &ArrowType::Decimal128(38, *scale)).map_err(unknown)?
        }
        ArrowType::Float16 | ArrowType::Float32 => {
            return of_floats(&cast(array, &ArrowType::Float64).map_err(unknown)?, 5);
        }
        ArrowType::Float64 => return of_floats(array, 14),
        _ => array,
    };
    let mut builder = BinaryBuilder::with_capacity(array.len(), 8 * array.len());
    for row in 0..array.len() {
        match array.is_null(row) {
            true => builder.append_null(),
            false => builder.append_value(small_at(array, row).ok_or((None, Misfit::Kind))?.as_bytes()),
        }
    }
    Ok(Arc::new(builder.finish()))
}

fn unknown<E>(_: E) -> Misplaced {
    (None, Misfit::Kind)
}

fn of_floats(array: &ArrayRef, digits: usize) -> Result<ArrayRef, Misplaced> {
    let mut builder = BinaryBuilder::with_capacity(array.len(), 8 * array.len());
    for (row, value) in array.as_primitive::<Float64Type>().iter().enumerate() {
        match value {
            None => builder.append_null(),
            Some(value) => {
                builder.append_value(of_float(value, digits).map_err(|misfit| (Some(row), misfit))?.as_bytes())
            }
        }
    }
    Ok(Arc::new(builder.finish()))
}

/// The number that a float shows with so many digits after its first.
fn of_float(value: f64, digits: usize) -> Result<Numeric, Misfit> {
    let text = float_digits(value, digits);
    let Some((mantissa, exponent)) = text.split_once('e') else { return read(&text) };
    // Digits that are zeros at the end are not shown.
    let mantissa = if mantissa.contains('.') { mantissa.trim_end_matches('0').trim_end_matches('.') } else { mantissa };
    read(&format!("{mantissa}e{exponent}"))
}

/// The number that a text is.
pub(crate) fn read(text: &str) -> Result<Numeric, Misfit> {
    Numeric::parse(text).map_err(|fault| match fault {
        numeric::NumericTextFault::Syntax => Misfit::Syntax,
        numeric::NumericTextFault::Range => Misfit::Range,
    })
}

/// Numerics as numbers of another type: rounded, or the nearest float.
pub(crate) fn into_numbers(array: &ArrayRef, to: DataType) -> Result<ArrayRef, Misplaced> {
    let numbers = array.as_binary::<i32>();
    let place = |row: usize| move |misfit| (Some(row), misfit);
    match to {
        DataType::Numeric => Ok(array.clone()),
        DataType::Decimal { precision, scale } => {
            let units = each(numbers, |bytes| decimal(bytes, precision, scale));
            let units = units.map(|(row, units)| units.transpose().map_err(place(row)));
            let units = units.collect::<Result<Decimal128Array, _>>()?;
            Ok(Arc::new(units.with_data_type(to.to_arrow())))
        }
        DataType::SmallInt | DataType::Integer | DataType::BigInt => {
            let (least, greatest) = match to {
                DataType::SmallInt => (i64::from(i16::MIN), i64::from(i16::MAX)),
                DataType::Integer => (i64::from(i32::MIN), i64::from(i32::MAX)),
                _ => (i64::MIN, i64::MAX),
            };
            let whole = |bytes: &[u8]| {
                let units = decimal(bytes, 38, 0)?;
                let whole = i64::try_from(units).ok().filter(|whole| (least..=greatest).contains(whole));
                whole.ok_or(Misfit::Range)
            };
            let whole = each(numbers, whole).map(|(row, whole)| whole.transpose().map_err(place(row)));
            let whole: ArrayRef = Arc::new(whole.collect::<Result<Int64Array, _>>()?);
            cast(&whole, &to.to_arrow()).map_err(unknown)
        }
        DataType::Real | DataType::Double => {
            let floats = each(numbers, |bytes| double(bytes, to));
            let floats = floats.map(|(row, float)| float.transpose().map_err(place(row)));
            let floats: ArrayRef = Arc::new(floats.collect::<Result<Float64Array, _>>()?);
            cast(&floats, &to.to_arrow()).map_err(unknown)
        }
        _ => Err((None, Misfit::Kind)),
    }
}

/// Numerics as decimals of 256 bits, rounded.
pub(crate) fn into_wide(array: &ArrayRef, precision: u8, scale: i8) -> Result<ArrayRef, Misplaced> {
    let limit = BigInt::from(10).pow(precision.into());
    let units = |bytes: &[u8]| match Number::of_bytes(bytes) {
        Number::Finite(exact) => {
            let units = exact.rounded(u32::try_from(scale).unwrap_or(0)).units;
            let fits = units.magnitude() < limit.magnitude();
            fits.then(|| i256::from_string(&units.to_string())).flatten().ok_or(Misfit::Range)
        }
        _ => Err(Misfit::NotFinite),
    };
    let units = each(array.as_binary::<i32>(), units);
    let units = units.map(|(row, units)| units.transpose().map_err(|misfit| (Some(row), misfit)));
    let units = units.collect::<Result<Decimal256Array, _>>()?;
    Ok(Arc::new(units.with_data_type(ArrowType::Decimal256(precision, scale))))
}

/// What becomes of each number, with its row.
fn each<T>(
    numbers: &BinaryArray,
    of: impl Fn(&[u8]) -> Result<T, Misfit>,
) -> impl Iterator<Item = (usize, Option<Result<T, Misfit>>)> {
    numbers.iter().enumerate().map(move |(row, bytes)| (row, bytes.map(&of)))
}

/// Numerics as those that stand for all that are equal to them: such as show no decimals but those needed. Of arrays arrays of such.
pub(crate) fn plain(array: &ArrayRef) -> ArrayRef {
    match array.data_type() {
        found if is_list(found) => with_items(array.as_list(), plain(array.as_list::<i32>().values())),
        _ => {
            let keys = array.as_binary::<i32>().iter().map(|bytes| bytes.map(numeric::key_of));
            Arc::new(keys.collect::<BinaryArray>())
        }
    }
}

/// Lists with other items in the places of theirs.
pub(crate) fn with_items(lists: &ListArray, items: ArrayRef) -> ArrayRef {
    let item = Arc::new(Field::new_list_field(items.data_type().clone(), true));
    Arc::new(ListArray::new(item, lists.offsets().clone(), items, lists.nulls().cloned()))
}

/// The unscaled value of a number as `numeric(precision, scale)`, rounded half away from zero.
pub(crate) fn decimal(bytes: &[u8], precision: u8, scale: i8) -> Result<i128, Misfit> {
    let decimals = u32::try_from(scale).unwrap_or(0);
    let units = match numeric::small(bytes) {
        Some((units, shown)) if shown <= decimals => {
            let power = 10_i128.checked_pow(decimals - shown);
            power.and_then(|power| units.checked_mul(power)).ok_or(Misfit::Range)?
        }
        _ => match Number::of_bytes(bytes) {
            Number::Finite(exact) => i128::try_from(exact.rounded(decimals).units).map_err(|_| Misfit::Range)?,
            _ => return Err(Misfit::NotFinite),
        },
    };
    let fits = units.unsigned_abs() < 10_u128.pow(precision.into());
    if fits { Ok(units) } else { Err(Misfit::Range) }
}

/// The float that is nearest to a number.
pub(crate) fn double(bytes: &[u8], to: DataType) -> Result<f64, Misfit> {
    let text = Numeric::from_bytes(bytes).to_string();
    match to {
        DataType::Real => super::input::real(&text).map(f64::from),
        _ => super::input::double(&text),
    }
}

/// A numeric as the decimal that it is, if it has at most 38 digits.
pub(crate) fn narrow(number: &Numeric) -> Option<Decimal> {
    let (unscaled, decimals) = numeric::small(number.as_bytes())?;
    let scale = i8::try_from(decimals).ok().filter(|scale| *scale <= 38)?;
    (unscaled.unsigned_abs() < 10_u128.pow(38)).then_some(Decimal { unscaled, scale })
}

/// A decimal as a numeric.
pub(crate) fn of_decimal(number: Decimal) -> Numeric {
    Numeric::new(number.unscaled, u32::try_from(number.scale).unwrap_or(0))
}
