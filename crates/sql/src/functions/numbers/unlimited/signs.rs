//! The signs `-x` and `+x`, as functions until the types are known: the planner of the library has them of its own numbers alone.
use arrow_schema::DataType as ArrowType;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::{is_numeric, operator};

/// The names of the functions in a statement that was rewritten.
pub(crate) const MINUS: &str = "\0minus";
pub(crate) const PLUS: &str = "\0plus";

/// The functions under these names.
pub(crate) fn functions() -> impl Iterator<Item = ScalarUDF> {
    [MINUS, PLUS]
        .into_iter()
        .map(|name| ScalarUDF::from(Sign { name, signature: Signature::any(1, Volatility::Immutable) }))
}

/// A call of one of the functions as what it stands for, where its operand is of this type; `None` for any other call.
pub(crate) fn planned(call: &ScalarFunction, of: &ArrowType) -> Option<Expr> {
    let [operand] = &call.args[..] else { return None };
    Some(match call.name() {
        PLUS => operand.clone(),
        MINUS if is_numeric(of) => operator(Operator::Minus, 1).call(vec![operand.clone()]),
        MINUS => Expr::Negative(Box::new(operand.clone())),
        _ => return None,
    })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Sign {
    name: &'static str,
    signature: Signature,
}

impl ScalarUDFImpl for Sign {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[ArrowType]) -> Result<ArrowType> {
        match types {
            [of] if of.is_signed_integer() || of.is_floating() || of.is_decimal() || is_numeric(of) || of.is_null() => {
                Ok(of.clone())
            }
            [of @ (ArrowType::Interval(_) | ArrowType::Duration(_))] => Ok(of.clone()),
            _ => Err(DataFusionError::Plan("Unary operator '-' only supports numbers and intervals".to_owned())),
        }
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Err(DataFusionError::Internal("a sign that was not planned".to_owned()))
    }
}
