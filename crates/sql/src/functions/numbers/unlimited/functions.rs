//! The functions of numbers for numerics without limits.
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BinaryArray, Int32Array};
use arrow_schema::{DataType as ArrowType, Field, FieldRef};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use engine::numeric::{Exact, Number};
use num_bigint::BigInt;

use super::super::numerics::{Elementary, bucket, elementary};
use super::{NUMERIC, arguments, column, failed, is_numeric, kept, rows};
use crate::error::{SqlError, external};
use crate::functions::overloads::beside;
use crate::values::assign::doubles;

/// What a function does with numerics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Does {
    Abs,
    Sign,
    Ceil,
    Floor,
    Round,
    Trunc,
    Div,
    Gcd,
    Lcm,
    Scale,
    MinScale,
    TrimScale,
    WidthBucket,
    Elementary(Elementary),
    /// It has none of numerics, and takes them for doubles.
    OfDoubles,
}

/// What a function of this name does with numerics, if it takes numbers.
fn of_name(name: &str) -> Option<Does> {
    Some(match name {
        "abs" => Does::Abs,
        "signum" => Does::Sign,
        "ceil" => Does::Ceil,
        "floor" => Does::Floor,
        "round" => Does::Round,
        "trunc" => Does::Trunc,
        "div" => Does::Div,
        "gcd" => Does::Gcd,
        "lcm" => Does::Lcm,
        "scale" => Does::Scale,
        "min_scale" => Does::MinScale,
        "trim_scale" => Does::TrimScale,
        "width_bucket" => Does::WidthBucket,
        "ln" => Does::Elementary(Elementary::Ln),
        "log" | "log10" => Does::Elementary(Elementary::Log),
        "exp" => Does::Elementary(Elementary::Exp),
        "sqrt" => Does::Elementary(Elementary::Sqrt),
        "power" => Does::Elementary(Elementary::Power),
        "asin" | "acos" | "atan" | "atan2" | "sin" | "cos" | "tan" | "cot" | "sinh" | "cosh" | "tanh" | "asinh"
        | "acosh" | "atanh" | "cbrt" | "degrees" | "radians" | "log2" | "sind" | "cosd" | "tand" | "cotd" | "asind"
        | "acosd" | "atand" | "atan2d" => Does::OfDoubles,
        _ => return None,
    })
}

/// A function of numbers that takes numerics without limits, too.
pub(crate) fn over(library: Arc<ScalarUDF>) -> ScalarUDF {
    match of_name(library.name()) {
        None => library.as_ref().clone(),
        Some(does) => {
            let signature = Signature::variadic_any(Volatility::Immutable);
            let own = Unlimited { does, library: library.clone(), signature };
            beside(library, Arc::new(ScalarUDF::from(own)), is_numeric)
        }
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Unlimited {
    does: Does,
    library: Arc<ScalarUDF>,
    signature: Signature,
}

impl Unlimited {
    /// What it gives, and whether its arguments are taken for doubles.
    fn result(&self, types: &[ArrowType]) -> Result<(ArrowType, bool)> {
        let is_number =
            |found: &ArrowType| is_numeric(found) || found.is_numeric() || found.is_null() || *found == ArrowType::Utf8;
        let counts = match self.does {
            Does::Round | Does::Trunc | Does::Elementary(Elementary::Log) => 1..=2,
            Does::Div | Does::Gcd | Does::Lcm | Does::Elementary(Elementary::Power) => 2..=2,
            Does::WidthBucket => 4..=4,
            Does::OfDoubles => 1..=2,
            _ => 1..=1,
        };
        if !counts.contains(&types.len()) || !types.iter().all(is_number) {
            return Err(DataFusionError::Plan(format!("Function '{}' failed to match any signature", self.name())));
        }
        Ok(match self.does {
            _ if self.does == Does::OfDoubles || types.iter().any(ArrowType::is_floating) => {
                let doubles = vec![ArrowType::Float64; types.len()];
                (self.library.return_type(&doubles)?, true)
            }
            Does::Scale | Does::MinScale | Does::WidthBucket => (ArrowType::Int32, false),
            _ => (NUMERIC, false),
        })
    }
}

impl ScalarUDFImpl for Unlimited {
    fn name(&self) -> &str {
        self.library.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[ArrowType]) -> Result<ArrowType> {
        self.result(types).map(|(gives, _)| gives)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let types: Vec<ArrowType> = args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        Ok(Arc::new(Field::new(self.name(), self.return_type(&types)?, true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let types: Vec<ArrowType> = args.args.iter().map(ColumnarValue::data_type).collect();
        if self.result(&types)?.1 {
            return self.of_doubles(args);
        }
        rows(args, |arrays, count| self.compute(arrays, count))
    }
}

impl Unlimited {
    /// The library's function of the arguments as doubles.
    fn of_doubles(&self, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        for (arg, field) in args.args.iter_mut().zip(&mut args.arg_fields) {
            if !is_numeric(&arg.data_type()) {
                continue;
            }
            let rows = if let ColumnarValue::Array(array) = arg { array.len() } else { 1 };
            let doubles = doubles(&arg.to_array(rows)?).map_err(external)?;
            *arg = match arg {
                ColumnarValue::Array(_) => ColumnarValue::Array(doubles),
                ColumnarValue::Scalar(_) => {
                    ColumnarValue::Scalar(datafusion::common::ScalarValue::try_from_array(&doubles, 0)?)
                }
            };
            *field = Arc::new(field.as_ref().clone().with_data_type(ArrowType::Float64));
        }
        self.library.invoke_with_args(args)
    }

    fn compute(&self, arrays: &[ArrayRef], count: usize) -> Result<ArrayRef> {
        let arrays = arguments(arrays)?;
        let columns: Vec<&BinaryArray> = arrays.iter().map(|array| array.as_binary::<i32>()).collect();
        let number =
            |values: &&BinaryArray, row: usize| (!values.is_null(row)).then(|| Number::of_bytes(values.value(row)));
        let row = |row: usize| columns.iter().map(|values| number(values, row)).collect::<Option<Vec<Number>>>();
        if matches!(self.does, Does::Scale | Does::MinScale | Does::WidthBucket) {
            let whole = (0..count).map(|at| row(at).map(|numbers| self.whole(&numbers)).transpose());
            let whole = whole.map(|found| Ok(found?.flatten())).collect::<Result<Int32Array>>()?;
            return Ok(Arc::new(whole));
        }
        column(count, |at| row(at).map(|numbers| kept(&self.number(numbers)?)).transpose())
    }

    fn number(&self, numbers: Vec<Number>) -> Result<Number> {
        let mut numbers = numbers.into_iter();
        let Some(first) = numbers.next() else { return Ok(Number::NotANumber) };
        let second = numbers.next();
        Ok(match (self.does, second) {
            (Does::Abs, _) => first.absolute(),
            (Does::Sign, _) => first.signum(),
            (Does::Ceil, _) => first.finite(|exact| exact.to_whole(true)),
            (Does::Floor, _) => first.finite(|exact| exact.to_whole(false)),
            (Does::Round, place) => first.finite(|exact| exact.to_place(place_of(place.as_ref()), false)),
            (Does::Trunc, place) => first.finite(|exact| exact.to_place(place_of(place.as_ref()), true)),
            (Does::TrimScale, _) => first.finite(|exact| exact.rounded(exact.decimals_needed())),
            (Does::Div, Some(divisor)) => first.times_within(&divisor).map_err(failed)?,
            (Does::Gcd, Some(second)) => divisor(first, second)?,
            (Does::Lcm, Some(second)) => multiple(&first, &second)?,
            (Does::Elementary(of), second) => {
                let numbers: Vec<Number> = [Some(first), second].into_iter().flatten().collect();
                elementary(of, &numbers).map_err(external)?
            }
            _ => Number::NotANumber,
        })
    }

    /// What functions give that give integers; NULL for what is infinite or no number.
    fn whole(&self, numbers: &[Number]) -> Result<Option<i32>> {
        let count = |decimals: u32| i32::try_from(decimals).ok();
        Ok(match (self.does, numbers) {
            (Does::Scale, [Number::Finite(exact)]) => count(exact.decimals),
            (Does::MinScale, [Number::Finite(exact)]) => count(exact.decimals_needed()),
            (Does::WidthBucket, [value, low, high, Number::Finite(buckets)]) => {
                let found = bucket([value, low, high], buckets).map_err(external)?;
                let beyond = |_| external(SqlError::new("22003", "integer out of range"));
                Some(i32::try_from(found).map_err(beyond)?)
            }
            _ => None,
        })
    }
}

/// The digits behind the point that are asked for, none if nothing is said.
fn place_of(number: Option<&Number>) -> i32 {
    const MOST: i32 = 16_383;
    match number {
        Some(Number::Finite(exact)) => {
            let most = if exact.is_negative() { -131_072 } else { MOST };
            i32::try_from(&exact.cut(0).units).map_or(most, |place| place.clamp(-131_072, MOST))
        }
        _ => 0,
    }
}

/// The greatest common divisor, as Euclid has it.
fn divisor(mut left: Number, mut right: Number) -> Result<Number> {
    if !matches!((&left, &right), (Number::Finite(_), Number::Finite(_))) {
        return Ok(Number::NotANumber);
    }
    while !matches!(&right, Number::Finite(exact) if exact.is_zero()) {
        let rest = left.remainder(&right).map_err(failed)?;
        (left, right) = (right, rest);
    }
    // It shows the decimals of both.
    let zero = right;
    Ok(left.absolute().plus(&zero))
}

/// The least common multiple.
fn multiple(left: &Number, right: &Number) -> Result<Number> {
    let (Number::Finite(first), Number::Finite(second)) = (left, right) else { return Ok(Number::NotANumber) };
    let decimals = first.decimals.max(second.decimals);
    if first.is_zero() || second.is_zero() {
        return Ok(Number::Finite(Exact { units: BigInt::ZERO, decimals }));
    }
    let common = divisor(left.clone(), right.clone())?;
    let times = left.times_within(&common).map_err(failed)?;
    Ok(times.times(right).absolute().finite(|exact| exact.rounded(decimals)))
}
