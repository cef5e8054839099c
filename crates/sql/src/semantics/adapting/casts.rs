//! Casts from text by PostgreSQL's input syntax, and to text in its output form, as functions that plans call.
use std::sync::Arc;

use arrow_array::{ArrayRef, StringViewArray};
use arrow_cast::cast;
use arrow_schema::{DataType as ArrowType, Field, FieldRef};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use engine::DataType;

use super::untyped::failed;
use crate::error::SqlError;
use crate::values::assign::{Texts, assign, long_text};
use crate::values::builder::ColumnBuilder;
use crate::values::literals::field_of;

/// Reads texts as values of a type.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct ReadText {
    to: DataType,
    name: String,
    signature: Signature,
}

impl ReadText {
    pub(crate) fn function(to: DataType) -> ScalarUDF {
        let name = format!("to_{to}");
        ScalarUDF::from(ReadText { to, name, signature: Signature::any(1, Volatility::Immutable) })
    }
}

impl ScalarUDFImpl for ReadText {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[ArrowType]) -> Result<ArrowType> {
        Ok(self.to.to_arrow())
    }

    fn return_field_from_args(&self, _: ReturnFieldArgs) -> Result<FieldRef> {
        Ok(Arc::new(field_of(self.to).with_name(&self.name)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        each(args, |texts| {
            let texts = cast(texts, &ArrowType::Utf8View)?;
            let texts = texts.as_any().downcast_ref::<StringViewArray>();
            let texts = texts.ok_or_else(|| DataFusionError::Internal("a cast gave no texts".to_owned()))?;
            let mut builder = ColumnBuilder::new(self.to);
            for text in texts {
                let failed = |misfit| failed(misfit, self.to, text.unwrap_or_default());
                builder.append_option(text).map_err(failed)?;
            }
            Ok(builder.finish())
        })
    }
}

/// Casts the items of arrays, of which some are labels of an enum.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct CastItems {
    to: DataType,
    name: String,
    signature: Signature,
}

impl CastItems {
    pub(crate) fn function(to: DataType) -> ScalarUDF {
        let name = format!("to_{to}");
        ScalarUDF::from(CastItems { to, name, signature: Signature::any(1, Volatility::Immutable) })
    }
}

impl ScalarUDFImpl for CastItems {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[ArrowType]) -> Result<ArrowType> {
        Ok(self.to.to_arrow())
    }

    fn return_field_from_args(&self, _: ReturnFieldArgs) -> Result<FieldRef> {
        Ok(Arc::new(field_of(self.to).with_name(&self.name)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        each(args, |lists| {
            let from = Field::new("", lists.data_type().clone(), true);
            let cast = assign(lists, &from, "", self.to, Texts::AreRead);
            cast.map_err(|error| DataFusionError::External(Box::new(SqlError { detail: None, ..error })))
        })
    }
}

/// Writes values as text.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct WriteText {
    signature: Signature,
}

impl WriteText {
    pub(crate) fn function() -> ScalarUDF {
        ScalarUDF::from(WriteText { signature: Signature::any(1, Volatility::Immutable) })
    }
}

impl ScalarUDFImpl for WriteText {
    fn name(&self) -> &str {
        "to_text"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[ArrowType]) -> Result<ArrowType> {
        Ok(ArrowType::Utf8View)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        each(args, |values| {
            let texts = (0..values.len()).map(|row| long_text(values, row));
            Ok(Arc::new(texts.collect::<StringViewArray>()))
        })
    }
}

/// Applies a function of arrays to the one argument, which may be a single value.
pub(crate) fn each(args: ScalarFunctionArgs, apply: impl Fn(&ArrayRef) -> Result<ArrayRef>) -> Result<ColumnarValue> {
    match args.args.first() {
        Some(ColumnarValue::Array(array)) => Ok(ColumnarValue::Array(apply(array)?)),
        Some(ColumnarValue::Scalar(value)) => {
            let applied = apply(&value.to_array()?)?;
            Ok(ColumnarValue::Scalar(datafusion::common::ScalarValue::try_from_array(&applied, 0)?))
        }
        None => Err(DataFusionError::Internal("a cast without an argument".to_owned())),
    }
}
