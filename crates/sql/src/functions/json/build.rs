//! JSON made of values: `to_json`, `row_to_json`, `array_to_json`, `json_build_array`, `json_build_object`, `json_object`, and their
//! kin for `jsonb`.
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, LargeBinaryArray, LargeStringArray};
use arrow_cast::cast;
use arrow_schema::DataType as ArrowType;
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature, Volatility,
};
use engine::json::{Json, Jsonb};

use super::cells::{faulty, wrong};
use super::written::json_text;
use crate::error::{SqlError, external};
use crate::values::array_input;

/// What is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Makes {
    Value,
    Row,
    OfArray,
    Array,
    Object,
    /// An array without what is NULL.
    ArrayOfSome,
    /// An object without members that are NULL.
    ObjectOfSome,
    /// An object of texts.
    Pairs,
}

/// The functions that constructors of SQL/JSON stand for. No statement can spell those that leave NULL out.
pub(crate) fn constructor(is_object: bool, has_nulls: bool, is_kept: bool) -> &'static str {
    let makes = match (is_object, has_nulls) {
        (true, true) => Makes::Object,
        (true, false) => Makes::ObjectOfSome,
        (false, true) => Makes::Array,
        (false, false) => Makes::ArrayOfSome,
    };
    let known = NAMED.iter().find(|(known, _, kept)| *known == makes && *kept == is_kept);
    known.map_or("json_build_object", |(_, name, _)| name)
}

const NAMED: [(Makes, &str, bool); 14] = [
    (Makes::Value, "to_json", false),
    (Makes::Value, "to_jsonb", true),
    (Makes::Row, "row_to_json", false),
    (Makes::OfArray, "array_to_json", false),
    (Makes::Array, "json_build_array", false),
    (Makes::Array, "jsonb_build_array", true),
    (Makes::Object, "json_build_object", false),
    (Makes::Object, "jsonb_build_object", true),
    (Makes::ArrayOfSome, "\0json_array", false),
    (Makes::ArrayOfSome, "\0jsonb_array", true),
    (Makes::ObjectOfSome, "\0json_object", false),
    (Makes::ObjectOfSome, "\0jsonb_object", true),
    (Makes::Pairs, "json_object", false),
    (Makes::Pairs, "jsonb_object", true),
];

pub(super) fn functions() -> impl Iterator<Item = ScalarUDF> {
    NAMED.into_iter().map(|(makes, name, is_kept)| {
        let any = vec![TypeSignature::Nullary, TypeSignature::VariadicAny];
        ScalarUDF::from(Build { makes, name, is_kept, signature: Signature::one_of(any, Volatility::Stable) })
    })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Build {
    makes: Makes,
    name: &'static str,
    /// Whether it makes a `jsonb`.
    is_kept: bool,
    signature: Signature,
}

impl ScalarUDFImpl for Build {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[ArrowType]) -> Result<ArrowType> {
        let is_texts = |found: &ArrowType| found.is_null() || found.is_string() || found.is_list();
        let fits = match (self.makes, types) {
            (Makes::Value, [ArrowType::Utf8]) => {
                let message = "could not determine polymorphic type because input has type unknown";
                return Err(external(SqlError::new("42804", message)));
            }
            (Makes::Value, [_]) => true,
            (Makes::Array | Makes::Object | Makes::ArrayOfSome | Makes::ObjectOfSome, _) => true,
            (Makes::Row, [row]) => matches!(row, ArrowType::Struct(_)),
            (Makes::OfArray, [list]) => list.is_list(),
            (Makes::Pairs, [texts]) => is_texts(texts),
            (Makes::Pairs, [keys, values]) => is_texts(keys) && is_texts(values),
            _ => false,
        };
        match fits {
            true => Ok(if self.is_kept { ArrowType::LargeBinary } else { ArrowType::LargeUtf8 }),
            false => Err(DataFusionError::Plan(format!("Function '{}' failed to match any signature", self.name))),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_scalar = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let rows = if is_scalar { 1 } else { args.number_rows };
        let arrays = args.args.into_iter().map(|arg| arg.into_array(rows)).collect::<Result<Vec<_>>>()?;
        let texts = (0..rows).map(|row| self.row(&arrays, row)).collect::<Result<Vec<Option<String>>, _>>();
        let made = as_json(texts.map_err(external)?, self.is_kept).map_err(external)?;
        Ok(match is_scalar {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&made, 0)?),
            false => ColumnarValue::Array(made),
        })
    }
}

/// Texts of JSON as a column of one of both types.
pub(crate) fn as_json(texts: Vec<Option<String>>, is_kept: bool) -> Result<ArrayRef, SqlError> {
    if !is_kept {
        return Ok(Arc::new(texts.into_iter().collect::<LargeStringArray>()));
    }
    let kept = texts.iter().map(|text| match text {
        Some(text) => Jsonb::parse(text).map(Some).map_err(|fault| faulty(fault, text)),
        None => Ok(None),
    });
    let kept = kept.collect::<Result<Vec<_>, _>>()?;
    Ok(Arc::new(kept.iter().map(|value| value.as_ref().map(Jsonb::as_bytes)).collect::<LargeBinaryArray>()))
}

impl Build {
    fn row(&self, arrays: &[ArrayRef], row: usize) -> Result<Option<String>, SqlError> {
        let is_null = |array: &ArrayRef| array.data_type().is_null() || array.is_null(row);
        Ok(match self.makes {
            Makes::Value | Makes::Row | Makes::OfArray => match arrays {
                [array] if !is_null(array) => Some(json_text(array, row)),
                _ => None,
            },
            Makes::Array | Makes::ArrayOfSome => {
                let is_item = |array: &&ArrayRef| self.makes == Makes::Array || !is_null(array);
                let items: Vec<String> = arrays.iter().filter(is_item).map(|array| json_text(array, row)).collect();
                Some(format!("[{}]", items.join(", ")))
            }
            Makes::Object | Makes::ObjectOfSome => Some(self.object(arrays, row)?),
            Makes::Pairs if arrays.iter().any(is_null) => None,
            Makes::Pairs => Some(pairs(arrays, row)?),
        })
    }

    fn object(&self, arrays: &[ArrayRef], row: usize) -> Result<String, SqlError> {
        if !arrays.len().is_multiple_of(2) {
            let hint = format!("The arguments of {}() must consist of alternating keys and values.", self.name);
            return Err(wrong("argument list must have even number of elements").hint(hint));
        }
        let mut members = Vec::with_capacity(arrays.len() / 2);
        for (at, pair) in arrays.chunks(2).enumerate() {
            let key = key_text(&pair[0], row).ok_or_else(|| match self.is_kept {
                true => wrong(format!("argument {}: key must not be null", at * 2 + 1)),
                false => wrong("null value not allowed for object key"),
            })?;
            let is_null = pair[1].data_type().is_null() || pair[1].is_null(row);
            if !(is_null && self.makes == Makes::ObjectOfSome) {
                members.push(format!("{} : {}", Json::quote(&key), json_text(&pair[1], row)));
            }
        }
        Ok(format!("{{{}}}", members.join(", ")))
    }
}

/// The text of a key.
pub(crate) fn key_text(array: &ArrayRef, row: usize) -> Option<String> {
    crate::values::assign::long_text(array, row)
}

/// The texts of an array, or of the text of one.
fn texts(array: &ArrayRef, row: usize) -> Result<Vec<Option<String>>, SqlError> {
    if array.data_type().is_list() {
        let lists = cast(array, &list_of_texts()).map_err(|error| wrong(error.to_string()))?;
        let items = lists.as_list::<i32>().value(row);
        return Ok(items.as_string_view().iter().map(|item| item.map(str::to_owned)).collect());
    }
    let text = key_text(array, row).unwrap_or_default();
    array_input::items(&text).ok_or_else(|| SqlError::new("22P02", format!("malformed array literal: \"{text}\"")))
}

fn list_of_texts() -> ArrowType {
    ArrowType::List(Arc::new(arrow_schema::Field::new_list_field(ArrowType::Utf8View, true)))
}

/// An object of keys and values that are texts.
fn pairs(arrays: &[ArrayRef], row: usize) -> Result<String, SqlError> {
    let (keys, values) = match arrays {
        [keys, values] => (texts(keys, row)?, texts(values, row)?),
        all => {
            let all = all.first().map_or_else(|| Ok(Vec::new()), |all| texts(all, row))?;
            if !all.len().is_multiple_of(2) {
                return Err(SqlError::new("2202E", "array must have even number of elements"));
            }
            let (keys, values) = all.chunks(2).map(|pair| (pair[0].clone(), pair[1].clone())).unzip();
            (keys, values)
        }
    };
    if keys.len() != values.len() {
        return Err(SqlError::new("2202E", "mismatched array dimensions"));
    }
    let member = |(key, value): (&Option<String>, &Option<String>)| {
        let key = key.as_ref().ok_or_else(|| SqlError::new("22004", "null value not allowed for object key"))?;
        let value = value.as_ref().map_or_else(|| "null".to_owned(), |value| Json::quote(value));
        Ok::<String, SqlError>(format!("{} : {value}", Json::quote(key)))
    };
    let members = keys.iter().zip(&values).map(member).collect::<Result<Vec<_>, _>>()?;
    Ok(format!("{{{}}}", members.join(", ")))
}
