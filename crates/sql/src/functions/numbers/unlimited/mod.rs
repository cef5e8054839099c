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
use arrow_schema::DataType as ArrowType;
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
use crate::values::assign::argument;
use crate::values::numerics::{self, KEY, NUMERIC, is_numeric};

/// What a numeric is put into to be told from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Form {
    /// Bytes that are equal for equal numbers, and in their order.
    Key,
    /// The digits of the key as text, for orders in a window, where the library takes no bytes.
    Order,
    /// A numeric that shows no decimals but those needed; of an array the array of such.
    Plain,
}

/// The expression by which a numeric is compared: numbers that show other decimals are equal.
pub(crate) fn key(expr: Expr) -> Expr {
    if let Expr::Literal(ScalarValue::Binary(bytes), _) = &expr {
        let key = bytes.as_ref().map(|bytes| numeric::key_of(bytes).to_vec());
        return Expr::Literal(ScalarValue::BinaryView(key), None);
    }
    formed(Form::Key, expr)
}

/// The expression by which numerics are put in order in a window.
pub(crate) fn order(expr: Expr) -> Expr {
    formed(Form::Order, expr)
}

/// The numeric, or the array of such, that stands for all that are equal to it.
pub(crate) fn plain(expr: Expr) -> Expr {
    formed(Form::Plain, expr)
}

/// Whether an expression was made such a numeric.
pub(crate) fn is_plain(expr: &Expr) -> bool {
    let form = |call: &ScalarFunction| call.func.inner().downcast_ref::<Formed>().map(|formed| formed.form);
    matches!(expr, Expr::ScalarFunction(call) if form(call) == Some(Form::Plain))
}

fn formed(form: Form, expr: Expr) -> Expr {
    ScalarUDF::from(Formed { form, signature: Signature::any(1, Volatility::Immutable) }).call(vec![expr])
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Formed {
    form: Form,
    signature: Signature,
}

impl ScalarUDFImpl for Formed {
    fn name(&self) -> &str {
        match self.form {
            Form::Key => KEY,
            Form::Order => "numeric_order",
            Form::Plain => "numeric_plain",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[ArrowType]) -> Result<ArrowType> {
        Ok(match self.form {
            Form::Key => ArrowType::BinaryView,
            Form::Order => ArrowType::Utf8View,
            Form::Plain => types.first().cloned().unwrap_or(NUMERIC),
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let digits = |key: &[u8]| key.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        rows(args, |arrays, _| {
            let keys = || arrays[0].as_binary::<i32>().iter().map(|bytes| bytes.map(numeric::key_of));
            Ok(match self.form {
                Form::Key => Arc::new(keys().collect::<BinaryViewArray>()),
                Form::Order => Arc::new(keys().map(|key| key.map(digits)).collect::<StringViewArray>()),
                Form::Plain => numerics::plain(&arrays[0]),
            })
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

/// Arguments as arrays of numerics, literals without a type among them.
fn arguments(arrays: &[ArrayRef]) -> Result<Vec<ArrayRef>> {
    let external = |error: SqlError| DataFusionError::External(Box::new(error));
    arrays.iter().map(|array| argument(array, DataType::Numeric).map_err(external)).collect()
}
