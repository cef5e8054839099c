//! `sha224`, `sha256`, `sha384`, `sha512` and `digest` of the library, which give bytes in the form in which columns of `bytea` have them,
//! and the SHA-1 of `digest`, which the library has not.
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
        let hashes = bytes.as_binary_view().iter().map(|bytes| bytes.map(sha1));
        Ok(Arc::new(hashes.collect::<BinaryViewArray>()))
    };
    Ok(match values {
        ColumnarValue::Array(values) => ColumnarValue::Array(of_array(values)?),
        ColumnarValue::Scalar(value) => {
            ColumnarValue::Scalar(ScalarValue::try_from_array(&of_array(&value.to_array()?)?, 0)?)
        }
    })
}

/// SHA-1 (FIPS 180-4, section 6.1).
fn sha1(bytes: &[u8]) -> [u8; 20] {
    let mut padded = bytes.to_vec();
    padded.push(0x80);
    while padded.len() % 64 != 56 {
        padded.push(0);
    }
    padded.extend_from_slice(&(8 * bytes.len() as u64).to_be_bytes());
    let mut hash: [u32; 5] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];
    for block in padded.as_chunks::<64>().0 {
        let mut words = [0; 80];
        for (word, bytes) in words.iter_mut().zip(block.as_chunks::<4>().0) {
            *word = u32::from_be_bytes(*bytes);
        }
        for at in 16..80 {
            words[at] = (words[at - 3] ^ words[at - 8] ^ words[at - 14] ^ words[at - 16]).rotate_left(1);
        }
        let [mut a, mut b, mut c, mut d, mut e] = hash;
        for (round, word) in words.into_iter().enumerate() {
            let (mixed, constant) = match round / 20 {
                0 => ((b & c) | (!b & d), 0x5a82_7999),
                1 => (b ^ c ^ d, 0x6ed9_eba1),
                2 => ((b & c) | (b & d) | (c & d), 0x8f1b_bcdc),
                _ => (b ^ c ^ d, 0xca62_c1d6_u32),
            };
            let sum = [a.rotate_left(5), mixed, e, constant, word].into_iter().fold(0, u32::wrapping_add);
            (a, b, c, d, e) = (sum, a, b.rotate_left(30), c, d);
        }
        hash.iter_mut().zip([a, b, c, d, e]).for_each(|(word, new)| *word = word.wrapping_add(new));
    }
    let mut bytes = [0; 20];
    bytes.as_chunks_mut::<4>().0.iter_mut().zip(hash).for_each(|(bytes, word)| *bytes = word.to_be_bytes());
    bytes
}
