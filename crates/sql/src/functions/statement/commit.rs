//! `lstore_commit()`: the number of the newest commit that the statement sees.
use std::sync::Arc;

use arrow_schema::DataType;
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};
use engine::Timestamp;

/// The function, for a statement that sees this commit as the newest.
pub(crate) fn function(at: Timestamp) -> Arc<ScalarUDF> {
    let number = i64::try_from(at.0).unwrap_or(i64::MAX);
    let signature = Signature::nullary(Volatility::Immutable);
    Arc::new(ScalarUDF::from(Commit { number, signature }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Commit {
    number: i64,
    signature: Signature,
}

impl ScalarUDFImpl for Commit {
    fn name(&self) -> &str {
        "lstore_commit"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int64)
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Ok(ColumnarValue::Scalar(ScalarValue::Int64(Some(self.number))))
    }
}
