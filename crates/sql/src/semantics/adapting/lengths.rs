//! `varchar(n)` and `char(n)` in expressions: a cast cuts what is too long, and the blanks at the end of a
//! `char(n)` are there only for `LIKE`, regular expressions and the output of the value.
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, StringViewArray};
use arrow_cast::cast;
use arrow_schema::{DataType as ArrowType, Field, FieldRef};
use datafusion::common::DFSchema;
use datafusion::error::Result;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use engine::DataType;

use super::casts::each;
use super::untyped::failed;
use crate::values::types::{marked, type_of_field};
use crate::values::{blanks, hstore};

/// The result that a text becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum To {
    /// What it is, known as one of this type.
    Known(DataType),
    /// A text of this type, cut to its length.
    Type(DataType),
    /// One of so many characters, with blanks.
    Padded(u32),
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Lengths {
    to: To,
    name: String,
    signature: Signature,
}

/// A cast of a text to one of these types.
pub(crate) fn cut(expr: Expr, to: DataType) -> Expr {
    call(expr, To::Type(to), format!("to_{to}"))
}

/// A text that is one of this type already.
pub(crate) fn marked_as(expr: Expr, to: DataType) -> Expr {
    call(expr, To::Known(to), format!("as_{to}"))
}

/// The type of what a call gives, if it is one of these.
pub(crate) fn given_by(call: &ScalarFunction) -> Option<DataType> {
    match call.func.inner().downcast_ref::<Lengths>()?.to {
        To::Known(to) | To::Type(to) => Some(to),
        To::Padded(_) => None,
    }
}

/// A text with the blanks that a `char(n)` has; any other as it is.
pub(crate) fn with_blanks(expr: Expr, schema: &DFSchema) -> Expr {
    match char_length(&expr, schema) {
        Some(chars) => call(expr, To::Padded(chars), "with_blanks".to_owned()),
        None => expr,
    }
}

/// The length of a `char(n)`, if an expression is one.
pub(crate) fn char_length(expr: &Expr, schema: &DFSchema) -> Option<u32> {
    match type_of_field(&expr.to_field(schema).ok()?.1) {
        Some(DataType::Char { chars }) => Some(chars),
        _ => None,
    }
}

fn call(expr: Expr, to: To, name: String) -> Expr {
    let function = ScalarUDF::from(Lengths { to, name, signature: Signature::any(1, Volatility::Immutable) });
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(function), vec![expr]))
}

impl ScalarUDFImpl for Lengths {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[ArrowType]) -> Result<ArrowType> {
        Ok(ArrowType::Utf8View)
    }

    fn return_field_from_args(&self, _: ReturnFieldArgs) -> Result<FieldRef> {
        let field = Field::new(&self.name, ArrowType::Utf8View, true);
        Ok(Arc::new(match self.to {
            To::Type(data_type) | To::Known(data_type) => marked(field, data_type),
            To::Padded(_) => field,
        }))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        each(args, |texts| {
            let texts = cast(texts, &ArrowType::Utf8View)?;
            Ok(match self.to {
                To::Padded(chars) => blanks::padded(&texts, chars),
                To::Known(_) | To::Type(DataType::TEXT | DataType::VARCHAR | DataType::CITEXT) => texts,
                To::Type(DataType::HSTORE) => as_pairs(&texts)?,
                To::Type(DataType::Char { chars: 0 }) => blanks::without(&texts),
                To::Type(DataType::Text { max_chars: Some(max) }) => cut_to(&texts, max),
                To::Type(DataType::Char { chars }) => blanks::without(&cut_to(&texts, chars)),
                To::Type(_) => texts,
            })
        })
    }
}

/// Texts as values of `hstore`.
fn as_pairs(texts: &ArrayRef) -> Result<ArrayRef> {
    let read = |text: Option<&str>| {
        let pairs = text.map(hstore::canonical).transpose();
        pairs.map_err(|misfit| failed(misfit, DataType::HSTORE, text.unwrap_or_default()))
    };
    let pairs = texts.as_string_view().iter().map(read).collect::<Result<StringViewArray>>()?;
    Ok(Arc::new(pairs))
}

fn cut_to(texts: &ArrayRef, max: u32) -> ArrayRef {
    let cut = |text: &str| match text.char_indices().nth(max as usize) {
        Some((end, _)) => text[..end].to_owned(),
        None => text.to_owned(),
    };
    Arc::new(texts.as_string_view().iter().map(|text| text.map(cut)).collect::<StringViewArray>())
}
