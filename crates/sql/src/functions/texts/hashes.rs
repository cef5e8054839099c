//! `sha224`, `sha256`, `sha384`, `sha512` and `digest` of the library, which give bytes in the form in which columns of `bytea` have them.
use std::sync::Arc;

use arrow_cast::cast;
use arrow_schema::{DataType, Field, FieldRef};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::functions::crypto::{digest, sha224, sha256, sha384, sha512};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};

/// The functions under their names in SQL.
pub(crate) fn functions() -> impl Iterator<Item = ScalarUDF> {
    [digest(), sha224(), sha256(), sha384(), sha512()]
        .into_iter()
        .map(|library| ScalarUDF::from(HashFunction { library }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct HashFunction {
    library: Arc<ScalarUDF>,
}

impl ScalarUDFImpl for HashFunction {
    fn name(&self) -> &str {
        self.library.name()
    }

    fn signature(&self) -> &Signature {
        self.library.signature()
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.library.coerce_types(types)
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::BinaryView)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let is_nullable = args.arg_fields.iter().any(|field| field.is_nullable());
        Ok(Arc::new(Field::new(self.name(), DataType::BinaryView, is_nullable)))
    }

    fn invoke_with_args(&self, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        args.return_field = Arc::new(args.return_field.as_ref().clone().with_data_type(DataType::Binary));
        Ok(match self.library.invoke_with_args(args)? {
            ColumnarValue::Array(hashes) => ColumnarValue::Array(cast(&hashes, &DataType::BinaryView)?),
            ColumnarValue::Scalar(ScalarValue::Binary(hash)) => ColumnarValue::Scalar(ScalarValue::BinaryView(hash)),
            other => other,
        })
    }
}
