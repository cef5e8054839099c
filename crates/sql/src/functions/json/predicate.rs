//! `value IS JSON [VALUE | SCALAR | ARRAY | OBJECT] [WITH UNIQUE KEYS]`: whether a text is JSON, of a kind.
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BooleanArray};
use arrow_schema::DataType;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};

use engine::json::Jsonb;

use crate::error::SqlError;
use crate::syntax::infix::IS_JSON;
use crate::values::input::json;
use crate::values::text::text_value;
use crate::values::types::type_name;

pub(super) fn functions() -> impl Iterator<Item = ScalarUDF> {
    std::iter::once(ScalarUDF::from(IsJson { signature: Signature::any(3, Volatility::Immutable) }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct IsJson {
    signature: Signature,
}

impl ScalarUDFImpl for IsJson {
    fn name(&self) -> &str {
        IS_JSON
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        use DataType::{BinaryView, LargeBinary, LargeUtf8, Null, Utf8, Utf8View};
        match types.first() {
            Some(Null | Utf8 | Utf8View | LargeUtf8 | LargeBinary | BinaryView) => Ok(DataType::Boolean),
            other => {
                let name = other.map_or_else(String::new, type_name);
                let error = SqlError::new("42804", format!("cannot use type {name} in IS JSON predicate"));
                Err(DataFusionError::External(Box::new(error)))
            }
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let word = |at: usize| match &args.args[at] {
            ColumnarValue::Scalar(word) => word.try_as_str().flatten().unwrap_or_default().to_owned(),
            ColumnarValue::Array(_) => String::new(),
        };
        let (kind, is_unique) = (word(1), word(2) == "unique");
        let values = args.args[0].to_array(args.number_rows)?;
        let is_one = |row| Some(is_json(&text_of(&values, row)?, &kind, is_unique));
        Ok(ColumnarValue::Array(Arc::new((0..values.len()).map(is_one).collect::<BooleanArray>())))
    }
}

/// The text of a value; bytes that are none stand for one that is no JSON.
fn text_of(values: &ArrayRef, row: usize) -> Option<String> {
    match values.as_binary_view_opt() {
        Some(bytes) if bytes.is_valid(row) => Some(String::from_utf8(bytes.value(row).to_vec()).unwrap_or_default()),
        Some(_) => None,
        None => text_value(values, row),
    }
}

fn is_json(text: &str, kind: &str, is_unique: bool) -> bool {
    let is_of_kind = match (kind, text.trim_start().as_bytes().first()) {
        (_, None) => false,
        ("object", Some(first)) => *first == b'{',
        ("array", Some(first)) => *first == b'[',
        ("scalar", Some(first)) => !matches!(first, b'{' | b'['),
        _ => true,
    };
    is_of_kind && json(text).is_ok() && !(is_unique && has_key_twice(text))
}

/// Whether an object in a text that is JSON has a key twice: a `jsonb` keeps one of them.
fn has_key_twice(text: &str) -> bool {
    Jsonb::parse(text).is_ok_and(|kept| keys(text) != keys(&kept.to_string()))
}

/// How many keys the objects in a text that is JSON have.
fn keys(text: &str) -> usize {
    let (mut is_within, mut is_escaped, mut keys) = (false, false, 0);
    for byte in text.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_within => is_escaped = true,
            b'"' => is_within = !is_within,
            b':' if !is_within => keys += 1,
            _ => {}
        }
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_json_of_a_kind() {
        let is = |text, kind| is_json(text, kind, false);
        assert!(is("1", "value") && is(" \"a\"", "scalar") && is("null", "scalar") && is("[1]", "array"));
        assert!(!is("[1]", "object") && !is("a", "value") && !is("", "value") && !is("{}", "scalar"));
        let unique = |text| is_json(text, "value", true);
        assert!(unique(r#"{"a": 1, "b": {"a": "a"}, "c": ["a", "a", {"a": 1}]}"#));
        assert!(!unique(r#"{"a": 1, "\u0061": 2}"#) && !unique(r#"[{"b": {"a": 1, "x\"": 2, "a": 3}}]"#));
    }
}
