//! Numerics without limits in expressions: what they are compared by, how numbers of other types become such, and the functions and
//! operators of them.
//!
//! In an expression a numeric is a decimal of the query engine as long as its type says how many decimals it has: a literal, a column
//! of `numeric(p,s)`, and what is computed of them. A column of `numeric` does not say so: each of its values has decimals of its own.
//! What is computed with one is worked out number by number here, to any precision.
mod converted;
mod functions;
mod operators;
pub(crate) mod signs;

use std::sync::Arc;

use arrow_array::builder::BinaryBuilder;
use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, BinaryViewArray, StringViewArray};
use arrow_schema::{DataType as ArrowType, Field};
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, cast,
};
use engine::numeric::{self, Number, NumericFault};
use engine::{DataType, Numeric};

pub(crate) use self::converted::converted;
pub(crate) use self::functions::over;
pub(crate) use self::operators::operator;
use crate::error::SqlError;
use crate::values::assign::{Texts, assign};
use crate::values::numerics::{KEY, NUMERIC, is_numeric};

/// The expression by which a numeric is compared: numbers that show other decimals are equal.
pub(crate) fn key(expr: Expr) -> Expr {
    if let Expr::Literal(ScalarValue::Binary(bytes), _) = &expr {
        let key = bytes.as_ref().map(|bytes| numeric::key_of(bytes).to_vec());
        return Expr::Literal(ScalarValue::BinaryView(key), None);
    }
    let function = ScalarUDF::from(Key { signature: Signature::any(1, Volatility::Immutable) });
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(function), vec![expr]))
}

/// The numeric that stands for all that are equal to it: the one that shows no decimals but those needed. Of an array the array of
/// such.
pub(crate) fn plain(expr: Expr) -> Expr {
    let function = ScalarUDF::from(Plain { signature: Signature::any(1, Volatility::Immutable) });
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(function), vec![expr]))
}

/// Whether an expression was made such a numeric.
pub(crate) fn is_plain(expr: &Expr) -> bool {
    matches!(expr, Expr::ScalarFunction(call) if call.func.inner().is::<Plain>())
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Plain {
    signature: Signature,
}

impl ScalarUDFImpl for Plain {
    fn name(&self) -> &str {
        "numeric_plain"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[ArrowType]) -> Result<ArrowType> {
        Ok(types.first().cloned().unwrap_or(NUMERIC))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        rows(args, |arrays, _| Ok(crate::values::numerics::plain(&arrays[0])))
    }
}

/// The expression by which numerics are put in order in a window, where the library takes no bytes: the digits of its key.
pub(crate) fn order(expr: Expr) -> Expr {
    let function = ScalarUDF::from(Order { signature: Signature::any(1, Volatility::Immutable) });
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(function), vec![expr]))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Order {
    signature: Signature,
}

impl ScalarUDFImpl for Order {
    fn name(&self) -> &str {
        "numeric_order"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[ArrowType]) -> Result<ArrowType> {
        Ok(ArrowType::Utf8View)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let digits = |bytes: &[u8]| numeric::key_of(bytes).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        rows(args, |arrays, _| {
            let keys = arrays[0].as_binary::<i32>().iter().map(|bytes| bytes.map(digits));
            Ok(Arc::new(keys.collect::<StringViewArray>()))
        })
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Key {
    signature: Signature,
}

impl ScalarUDFImpl for Key {
    fn name(&self) -> &str {
        KEY
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[ArrowType]) -> Result<ArrowType> {
        Ok(ArrowType::BinaryView)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        rows(args, |arrays, _| {
            let keys = arrays[0].as_binary::<i32>().iter().map(|bytes| bytes.map(numeric::key_of));
            Ok(Arc::new(keys.collect::<BinaryViewArray>()))
        })
    }
}

/// An expression as one of another type, where one of the two is that of numerics; for two others a cast.
pub(crate) fn as_type(expr: Expr, from: &ArrowType, to: &ArrowType) -> Expr {
    if !is_numeric(from) && !is_numeric(to) || from.is_null() {
        return cast(expr, to.clone());
    }
    if from == to { expr } else { converted(expr, to.clone()) }
}

/// Works something out of the arguments as arrays of one length.
fn rows(
    args: ScalarFunctionArgs,
    compute: impl FnOnce(&[ArrayRef], usize) -> Result<ArrayRef>,
) -> Result<ColumnarValue> {
    let is_scalar = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
    let rows = if is_scalar { 1 } else { args.number_rows };
    let arrays = args.args.into_iter().map(|arg| arg.into_array(rows)).collect::<Result<Vec<_>>>()?;
    let computed = compute(&arrays, rows)?;
    Ok(match is_scalar {
        true => ColumnarValue::Scalar(ScalarValue::try_from_array(&computed, 0)?),
        false => ColumnarValue::Array(computed),
    })
}

/// A column of numerics, NULL where there is none.
fn column(count: usize, mut number: impl FnMut(usize) -> Result<Option<Numeric>>) -> Result<ArrayRef> {
    let mut builder = BinaryBuilder::with_capacity(count, 8 * count);
    for row in 0..count {
        match number(row)? {
            Some(number) => builder.append_value(number.as_bytes()),
            None => builder.append_null(),
        }
    }
    Ok(Arc::new(builder.finish()))
}

/// PostgreSQL's words for a number that there is not.
pub(crate) fn failed(fault: NumericFault) -> DataFusionError {
    let error = match fault {
        NumericFault::Overflow => SqlError::new("22003", "value overflows numeric format"),
        NumericFault::DivisionByZero => SqlError::new("22012", "division by zero"),
    };
    DataFusionError::External(Box::new(error))
}

/// A number as it is kept.
pub(crate) fn kept(number: &Number) -> Result<Numeric> {
    number.to_numeric().map_err(failed)
}

/// The type of what is computed of values of these types, of which one at least is a numeric: a float beside it makes it one.
fn has_float(types: &[ArrowType]) -> bool {
    types.iter().any(ArrowType::is_floating)
}

/// Arguments as arrays of numerics, literals without a type among them.
fn numerics(arrays: &[ArrayRef]) -> Result<Vec<ArrayRef>> {
    let read = |array: &ArrayRef| {
        let from = Field::new("", array.data_type().clone(), true);
        let numbers = assign(array, &from, "", DataType::Numeric, Texts::AreRead);
        numbers.map_err(|error| DataFusionError::External(Box::new(SqlError { detail: None, ..error })))
    };
    arrays.iter().map(read).collect()
}
