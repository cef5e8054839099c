//! Functions of floats that fail as PostgreSQL's do, where the library's give infinity or NaN: `ln`, `log`, `log10`, `exp`,
//! `sqrt`, `power`, those of angles and of hyperbolas. Of numerics the first six give numerics. Of reals they give doubles,
//! where the library's give reals.
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{Array, ArrayRef, Float64Array};
use arrow_cast::cast;
use arrow_schema::{DataType, Field, FieldRef};
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature, Volatility,
};

use super::numerics::{self, Elementary};
use crate::error::{SqlError, external};

/// The computation of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Compute {
    Ln,
    /// of base 10, or of the base that is the first of two arguments
    Log,
    Log10,
    Log2,
    Exp,
    Sqrt,
    Power,
    Asin,
    Acos,
    Atan,
    Atan2,
    Sin,
    Cos,
    Tan,
    Cot,
    Sinh,
    Cosh,
    Tanh,
    Asinh,
    Acosh,
    Atanh,
    Cbrt,
    Degrees,
    Radians,
}

impl Compute {
    fn one(self, value: f64) -> Result<f64, SqlError> {
        match self {
            Compute::Ln => positive(value).map(f64::ln),
            Compute::Log | Compute::Log10 => positive(value).map(f64::log10),
            Compute::Log2 => positive(value).map(f64::log2),
            Compute::Exp => in_range(value.exp(), value.is_infinite()),
            Compute::Sqrt => sqrt(value),
            Compute::Power | Compute::Atan2 => Ok(value),
            Compute::Asin => within_one(value).map(f64::asin),
            Compute::Acos => within_one(value).map(f64::acos),
            Compute::Atan => Ok(value.atan()),
            Compute::Sin => finite(value).map(f64::sin),
            Compute::Cos => finite(value).map(f64::cos),
            Compute::Tan => finite(value).map(f64::tan),
            Compute::Cot => finite(value).map(|value| value.tan().recip()),
            Compute::Sinh => Ok(value.sinh()),
            Compute::Cosh => in_range(value.cosh(), value.is_infinite()).or(Ok(f64::INFINITY)),
            Compute::Tanh => Ok(value.tanh()),
            Compute::Asinh => Ok(value.asinh()),
            Compute::Acosh if value < 1.0 => Err(outside()),
            Compute::Acosh => Ok(value.acosh()),
            Compute::Atanh => within_one(value).map(f64::atanh),
            Compute::Cbrt => Ok(value.cbrt()),
            Compute::Degrees => in_range(value.to_degrees(), value.is_infinite() || value == 0.0),
            Compute::Radians => in_range(value.to_radians(), value.is_infinite() || value == 0.0),
        }
    }

    fn two(self, left: f64, right: f64) -> Result<f64, SqlError> {
        match self {
            Compute::Power => power(left, right),
            Compute::Atan2 => Ok(left.atan2(right)),
            _ => log(left, right),
        }
    }

    /// What is computed of numerics.
    fn of_numerics(self) -> Option<Elementary> {
        Some(match self {
            Compute::Ln => Elementary::Ln,
            Compute::Log | Compute::Log10 => Elementary::Log,
            Compute::Exp => Elementary::Exp,
            Compute::Sqrt => Elementary::Sqrt,
            Compute::Power => Elementary::Power,
            _ => return None,
        })
    }

    fn counts(self) -> &'static [usize] {
        match self {
            Compute::Power | Compute::Atan2 => &[2],
            Compute::Log => &[1, 2],
            _ => &[1],
        }
    }
}

/// The functions under their names in SQL.
pub(crate) fn functions() -> impl Iterator<Item = ScalarUDF> {
    let named: [(&'static str, &'static [&'static str], Compute); 24] = [
        ("asin", &[], Compute::Asin),
        ("acos", &[], Compute::Acos),
        ("atan", &[], Compute::Atan),
        ("atan2", &[], Compute::Atan2),
        ("sin", &[], Compute::Sin),
        ("cos", &[], Compute::Cos),
        ("tan", &[], Compute::Tan),
        ("cot", &[], Compute::Cot),
        ("sinh", &[], Compute::Sinh),
        ("cosh", &[], Compute::Cosh),
        ("tanh", &[], Compute::Tanh),
        ("asinh", &[], Compute::Asinh),
        ("acosh", &[], Compute::Acosh),
        ("atanh", &[], Compute::Atanh),
        ("cbrt", &["dcbrt"], Compute::Cbrt),
        ("degrees", &[], Compute::Degrees),
        ("radians", &[], Compute::Radians),
        ("ln", &[], Compute::Ln),
        ("log", &[], Compute::Log),
        ("log10", &[], Compute::Log10),
        ("log2", &[], Compute::Log2),
        ("exp", &[], Compute::Exp),
        ("sqrt", &["dsqrt"], Compute::Sqrt),
        ("power", &["pow", "dpow"], Compute::Power),
    ];
    named.into_iter().map(|(name, aliases, compute)| ScalarUDF::from(Function::new(name, aliases, compute)))
}

/// The function with its result's type, if it is one of these and gives a numeric.
pub(crate) fn settled(function: &ScalarUDF, to: &DataType) -> Option<ScalarUDF> {
    let known = function.inner().downcast_ref::<Function>().filter(|known| known.to.is_none() && to.is_decimal())?;
    Some(ScalarUDF::from(Function { to: Some(to.clone()), ..known.clone() }))
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Function {
    name: &'static str,
    aliases: Vec<String>,
    compute: Compute,
    /// What it gives once that is settled, so that it does not change with what the planner finds out later.
    to: Option<DataType>,
    signature: Signature,
}

impl Function {
    fn new(name: &'static str, aliases: &[&str], compute: Compute) -> Function {
        let of = |count: &usize| TypeSignature::Any(*count);
        let signature = Signature::one_of(compute.counts().iter().map(of).collect(), Volatility::Immutable);
        let aliases = aliases.iter().map(|alias| (*alias).to_owned()).collect();
        Function { name, aliases, compute, to: None, signature }
    }
}

impl ScalarUDFImpl for Function {
    fn name(&self) -> &str {
        self.name
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.result(types, &vec![None; types.len()])
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let types: Vec<DataType> = args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        let data_type = self.result(&types, args.scalar_arguments)?;
        Ok(Arc::new(Field::new(self.name, data_type, true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_scalar = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let to = args.return_field.data_type();
        if let Some(of) = self.compute.of_numerics().filter(|_| to.is_decimal()) {
            let computed = numerics::compute(of, &arrays, to)?;
            return Ok(match is_scalar && computed.len() == 1 {
                true => ColumnarValue::Scalar(ScalarValue::try_from_array(&computed, 0)?),
                false => ColumnarValue::Array(computed),
            });
        }
        let floats = |array: &ArrayRef| Ok(cast(array, &DataType::Float64)?);
        let arrays = arrays.iter().map(floats).collect::<Result<Vec<ArrayRef>>>()?;
        let values: Vec<&Float64Array> = arrays.iter().map(|array| array.as_primitive::<Float64Type>()).collect();
        let computed: Float64Array = match (self.compute, &values[..]) {
            (compute, [values]) => {
                let one = |value: Option<f64>| value.map(|value| compute.one(value)).transpose();
                values.iter().map(one).collect::<Result<_, _>>().map_err(external)?
            }
            (compute, [left, right]) => {
                let pairs = left.iter().zip(right.iter()).map(|(left, right)| left.zip(right));
                let computed = pairs.map(|pair| pair.map(|(left, right)| compute.two(left, right)).transpose());
                computed.collect::<Result<_, _>>().map_err(external)?
            }
            _ => return Err(DataFusionError::Internal(format!("{} of so many arguments", self.name))),
        };
        match is_scalar && computed.len() == 1 {
            true => Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&computed, 0)?)),
            false => Ok(ColumnarValue::Array(Arc::new(computed))),
        }
    }
}

impl Function {
    fn result(&self, types: &[DataType], literals: &[Option<&ScalarValue>]) -> Result<DataType> {
        if let Some(to) = &self.to {
            return Ok(to.clone());
        }
        let is_number = |found: &DataType| found.is_numeric() || found.is_null() || *found == DataType::Utf8;
        if !types.iter().all(is_number) {
            return Err(DataFusionError::Plan(format!("Function '{}' failed to match any signature", self.name)));
        }
        let numeric = self.compute.of_numerics().and_then(|of| numerics::result_of(of, types, literals));
        Ok(numeric.unwrap_or(DataType::Float64))
    }
}

fn outside() -> SqlError {
    SqlError::new("22003", "input is out of range")
}

/// Sines and cosines are from -1 to 1.
fn within_one(value: f64) -> Result<f64, SqlError> {
    if value.abs() > 1.0 { Err(outside()) } else { Ok(value) }
}

/// No angle is infinite.
fn finite(value: f64) -> Result<f64, SqlError> {
    if value.is_infinite() { Err(outside()) } else { Ok(value) }
}

/// Logarithms are of positive numbers.
fn positive(value: f64) -> Result<f64, SqlError> {
    let of = match value {
        0.0 => "zero",
        _ if value < 0.0 => "a negative number",
        _ => return Ok(value),
    };
    Err(SqlError::new("2201E", format!("cannot take logarithm of {of}")))
}

fn log(base: f64, value: f64) -> Result<f64, SqlError> {
    let (base, value) = (positive(base)?, positive(value)?);
    match base {
        1.0 => Err(SqlError::new("22012", "division by zero")),
        2.0 => Ok(value.log2()),
        10.0 => Ok(value.log10()),
        _ => Ok(value.ln() / base.ln()),
    }
}

fn sqrt(value: f64) -> Result<f64, SqlError> {
    match value < 0.0 {
        true => Err(SqlError::new("2201F", "cannot take square root of a negative number")),
        false => Ok(value.sqrt()),
    }
}

fn power(base: f64, exponent: f64) -> Result<f64, SqlError> {
    if base == 0.0 && exponent < 0.0 {
        return Err(SqlError::new("2201F", "zero raised to a negative power is undefined"));
    }
    if base < 0.0 && exponent.is_finite() && exponent.fract() != 0.0 {
        let message = "a negative number raised to a non-integer power yields a complex result";
        return Err(SqlError::new("2201F", message));
    }
    let is_exact = base == 0.0 || base.is_infinite() || exponent.is_infinite();
    in_range(base.powf(exponent), is_exact)
}

/// A result, unless it has become infinite or zero by its size.
fn in_range(value: f64, is_exact: bool) -> Result<f64, SqlError> {
    match value {
        _ if is_exact => Ok(value),
        0.0 => Err(SqlError::new("22003", "value out of range: underflow")),
        _ if value.is_infinite() => Err(SqlError::new("22003", "value out of range: overflow")),
        _ => Ok(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_float_holds_is_an_error() {
        let code = |result: Result<f64, SqlError>| result.map_err(|error| error.sqlstate);
        assert_eq!(
            (code(Compute::Ln.one(0.0)), code(Compute::Ln.one(-1.0)), code(Compute::Ln.one(1.0))),
            (Err("2201E"), Err("2201E"), Ok(0.0))
        );
        assert_eq!((code(Compute::Exp.one(1000.0)), code(Compute::Exp.one(-1000.0))), (Err("22003"), Err("22003")));
        assert_eq!(
            (code(Compute::Exp.one(f64::INFINITY)), code(Compute::Exp.one(f64::NEG_INFINITY))),
            (Ok(f64::INFINITY), Ok(0.0))
        );
        assert_eq!((code(power(0.0, -1.0)), code(power(-8.0, 0.5)), code(power(10.0, 400.0))), {
            (Err("2201F"), Err("2201F"), Err("22003"))
        });
        assert_eq!((code(power(-2.0, 3.0)), code(sqrt(-1.0)), code(sqrt(4.0))), (Ok(-8.0), Err("2201F"), Ok(2.0)));
    }
}
