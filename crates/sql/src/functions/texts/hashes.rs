//! `sha224`, `sha256`, `sha384`, `sha512` and `digest` of the library, which give bytes in the form in which columns of `bytea` have them,
//! and the SHA-1 of `digest`, which DataFusion's has not.
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, BinaryViewArray};
use arrow_cast::cast;
use arrow_schema::{DataType, Field, FieldRef};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::functions::crypto::{digest, sha224, sha256, sha384, sha512};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};
use sha1::{Digest, Sha1};

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
        if let [of, ColumnarValue::Scalar(method)] = &args.args[..]
            && method.try_as_str().flatten().is_some_and(|method| method.eq_ignore_ascii_case("sha1"))
        {
            return sha1_of(of);
        }
        args.return_field = Arc::new(args.return_field.as_ref().clone().with_data_type(DataType::Binary));
        Ok(match self.library.invoke_with_args(args)? {
            ColumnarValue::Array(hashes) => ColumnarValue::Array(cast(&hashes, &DataType::BinaryView)?),
            ColumnarValue::Scalar(ScalarValue::Binary(hash)) => ColumnarValue::Scalar(ScalarValue::BinaryView(hash)),
            other => other,
        })
    }
}

/// The SHA-1 of each text or value of bytes.
fn sha1_of(values: &ColumnarValue) -> Result<ColumnarValue> {
    let of_array = |values: &ArrayRef| -> Result<ArrayRef> {
        let bytes = cast(values, &DataType::BinaryView)?;
        let hashes = bytes.as_binary_view().iter().map(|bytes| bytes.map(Sha1::digest));
        Ok(Arc::new(hashes.collect::<BinaryViewArray>()))
    };
    Ok(match values {
        ColumnarValue::Array(values) => ColumnarValue::Array(of_array(values)?),
        ColumnarValue::Scalar(value) => {
            ColumnarValue::Scalar(ScalarValue::try_from_array(&of_array(&value.to_array()?)?, 0)?)
        }
    })
}
