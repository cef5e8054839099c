//! `encode` and `decode` of bytes: `hex`, `base64` with its padding and lines of 76 signs, and `escape`.
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BinaryViewArray, StringViewArray};
use arrow_cast::cast;
use arrow_schema::DataType;
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};

use crate::error::SqlError;
use crate::values::input;

/// The functions under their names in SQL.
pub(crate) fn functions() -> impl Iterator<Item = ScalarUDF> {
    [true, false]
        .into_iter()
        .map(|encodes| ScalarUDF::from(Function { encodes, signature: Signature::any(2, Volatility::Immutable) }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Function {
    encodes: bool,
    signature: Signature,
}

impl ScalarUDFImpl for Function {
    fn name(&self) -> &str {
        if self.encodes { "encode" } else { "decode" }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        let is_text = |at: usize| types.get(at).is_some_and(|found| found.is_string() || found.is_null());
        let is_bytes = types.first().is_some_and(DataType::is_binary);
        if !(is_text(0) || (self.encodes && is_bytes)) || !is_text(1) {
            let message = format!("Function '{}' failed to match any signature", self.name());
            return Err(DataFusionError::Plan(message));
        }
        Ok(if self.encodes { DataType::Utf8View } else { DataType::BinaryView })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_scalar = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let rows = if is_scalar { 1 } else { args.number_rows };
        let arrays = args.args.into_iter().map(|arg| arg.into_array(rows)).collect::<Result<Vec<_>>>()?;
        let computed = self.compute(&arrays[0], &arrays[1])?;
        Ok(match is_scalar {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&computed, 0)?),
            false => ColumnarValue::Array(computed),
        })
    }
}

impl Function {
    fn compute(&self, values: &ArrayRef, formats: &ArrayRef) -> Result<ArrayRef> {
        let external = |error: SqlError| DataFusionError::External(Box::new(error));
        let formats = cast(formats, &DataType::Utf8View)?;
        let formats = formats.as_string_view();
        let rows = 0..values.len();
        if !self.encodes {
            let texts = cast(values, &DataType::Utf8View)?;
            let texts = texts.as_string_view();
            let decoded = rows.map(|row| {
                let is_null = texts.is_null(row) || formats.is_null(row);
                (!is_null).then(|| decode(texts.value(row), formats.value(row))).transpose().map_err(external)
            });
            return Ok(Arc::new(decoded.collect::<Result<BinaryViewArray>>()?));
        }
        let bytes = bytes_of(values)?;
        let bytes = bytes.as_binary_view();
        let encoded = rows.map(|row| {
            let is_null = bytes.is_null(row) || formats.is_null(row);
            (!is_null).then(|| encode(bytes.value(row), formats.value(row))).transpose().map_err(external)
        });
        Ok(Arc::new(encoded.collect::<Result<StringViewArray>>()?))
    }
}

/// Bytes; a text without a type is read as such.
fn bytes_of(values: &ArrayRef) -> Result<ArrayRef> {
    if !values.data_type().is_string() {
        return Ok(cast(values, &DataType::BinaryView)?);
    }
    let texts = cast(values, &DataType::Utf8View)?;
    let wrong = |_| {
        let error = SqlError::new("22P02", "invalid input syntax for type bytea");
        DataFusionError::External(Box::new(error))
    };
    let read = texts.as_string_view().iter().map(|text| text.map(input::bytea).transpose().map_err(wrong));
    Ok(Arc::new(read.collect::<Result<BinaryViewArray>>()?))
}

fn unknown(format: &str) -> SqlError {
    SqlError::new("22023", format!("unrecognized encoding: \"{format}\""))
}

fn wrong(message: impl Into<String>) -> SqlError {
    SqlError::new("22023", message)
}

fn encode(bytes: &[u8], format: &str) -> Result<String, SqlError> {
    match format.to_ascii_lowercase().as_str() {
        "hex" => Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect()),
        "base64" => Ok(encode_base64(bytes)),
        "escape" => Ok(escape(bytes)),
        _ => Err(unknown(format)),
    }
}

fn decode(text: &str, format: &str) -> Result<Vec<u8>, SqlError> {
    match format.to_ascii_lowercase().as_str() {
        "hex" => decode_hex(text),
        "base64" => decode_base64(text),
        "escape" => unescape(text),
        _ => Err(unknown(format)),
    }
}

const SIGNS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
/// The signs of a line.
const LINE: usize = 76;

fn encode_base64(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for (at, group) in bytes.chunks(3).enumerate() {
        let word = group.iter().enumerate().fold(0u32, |word, (at, byte)| word | u32::from(*byte) << (16 - 8 * at));
        for sign in 0..4 {
            match sign <= group.len() {
                true => out.push(char::from(SIGNS[(word >> (18 - 6 * sign)) as usize & 63])),
                false => out.push('='),
            }
        }
        // A line ends as soon as it is full, be it the last one.
        if group.len() == 3 && (at * 4 + 4).is_multiple_of(LINE) {
            out.push('\n');
        }
    }
    out
}

fn decode_base64(text: &str) -> Result<Vec<u8>, SqlError> {
    let end = || {
        wrong("invalid base64 end sequence")
            .hint("Input data is missing padding, is truncated, or is otherwise corrupted.")
    };
    let (mut out, mut word, mut signs, mut padding) = (Vec::with_capacity(text.len() / 4 * 3), 0u32, 0, 0);
    for sign in text.chars().filter(|sign| !matches!(sign, ' ' | '\t' | '\n' | '\r')) {
        let value = match sign {
            '=' => {
                padding += 1;
                if signs < 2 {
                    return Err(wrong("unexpected \"=\" while decoding base64 sequence"));
                }
                0
            }
            _ => {
                let known = u8::try_from(sign).ok();
                let known = known.and_then(|sign| SIGNS.iter().position(|known| *known == sign));
                if padding > 0 {
                    return Err(wrong("unexpected \"=\" while decoding base64 sequence"));
                }
                let unknown = || wrong(format!("invalid symbol \"{sign}\" found while decoding base64 sequence"));
                known.ok_or_else(unknown)?
            }
        };
        word = word << 6 | u32::try_from(value).unwrap_or(0);
        signs += 1;
        if signs == 4 {
            let bytes = word.to_be_bytes();
            out.extend_from_slice(&bytes[1..4 - padding.min(2)]);
            (word, signs) = (0, 0);
        }
    }
    if signs == 0 { Ok(out) } else { Err(end()) }
}

fn decode_hex(text: &str) -> Result<Vec<u8>, SqlError> {
    let mut digits = Vec::with_capacity(text.len());
    for sign in text.chars() {
        // Blanks may stand between bytes.
        if digits.len().is_multiple_of(2) && matches!(sign, ' ' | '\t' | '\n' | '\r') {
            continue;
        }
        let digit = sign.to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        digits.push(digit.ok_or_else(|| wrong(format!("invalid hexadecimal digit: \"{sign}\"")))?);
    }
    if !digits.len().is_multiple_of(2) {
        return Err(wrong("invalid hexadecimal data: odd number of digits"));
    }
    Ok(digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

fn escape(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for byte in bytes {
        match byte {
            b'\\' => out.push_str("\\\\"),
            0 | 128.. => out.push_str(&format!("\\{byte:03o}")),
            _ => out.push(char::from(*byte)),
        }
    }
    out
}

fn unescape(text: &str) -> Result<Vec<u8>, SqlError> {
    input::bytea_escapes(text).map_err(|_| SqlError::new("22P02", "invalid input syntax for type bytea"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back_as_they_went() {
        let all: Vec<u8> = (0..=255).collect();
        for length in [0, 1, 2, 3, 56, 57, 58, 255] {
            for format in ["hex", "base64", "escape"] {
                let text = encode(&all[..length], format).unwrap();
                assert_eq!(decode(&text, format).unwrap(), all[..length], "{format}");
            }
        }
    }

    #[test]
    fn base64_has_padding_and_lines() {
        assert_eq!(
            (encode_base64(b"a"), encode_base64(b"ab"), encode_base64(b"")),
            ("YQ==".into(), "YWI=".into(), "".into())
        );
        assert_eq!(encode_base64(&[0; 58]).find('\n'), Some(76));
        assert_eq!((encode_base64(&[0; 57]).len(), encode_base64(&[0; 56]).len()), (77, 76));
        assert!(["YQ", "Y?==", "=YQ=", "YQ=a"].iter().all(|text| decode_base64(text).is_err()));
    }
}
