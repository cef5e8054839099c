//! The function that gives its argument, and has the query in whose select list it stands be worked out for each row of the query around
//! that (`semantics::subplan`). Calls of functions in SQL with another value each time are written so.
use std::sync::Arc;

use arrow_schema::{DataType, FieldRef};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

/// Its name, which no statement can spell.
pub(crate) const NAME: &str = "\0each row";

/// The function.
pub(crate) fn function() -> ScalarUDF {
    ScalarUDF::from(EachRow { signature: Signature::any(1, Volatility::Volatile) })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct EachRow {
    signature: Signature,
}

fn of_nothing() -> DataFusionError {
    DataFusionError::Internal("each_row() of nothing".to_owned())
}

impl ScalarUDFImpl for EachRow {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        types.first().cloned().ok_or_else(of_nothing)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let field = args.arg_fields.first().ok_or_else(of_nothing)?;
        Ok(Arc::new(field.as_ref().clone().with_nullable(true)))
    }

    fn invoke_with_args(&self, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        args.args.pop().ok_or_else(of_nothing)
    }
}
