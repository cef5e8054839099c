//! Texts of `citext` as they are compared: in small letters, as `lower` has them; of lists, each item.
use std::sync::{Arc, LazyLock};

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, ListArray, StringViewArray};
use arrow_cast::cast;
use arrow_schema::{DataType as ArrowType, Field};
use datafusion::error::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};

use crate::error::FOLDED;

#[derive(Debug, PartialEq, Eq, Hash)]
struct Folded {
    signature: Signature,
}

/// The functions under their names.
pub(crate) fn functions() -> impl Iterator<Item = ScalarUDF> {
    [function().as_ref().clone()].into_iter()
}

/// The function of a text, or of a list of texts.
pub(crate) fn function() -> Arc<ScalarUDF> {
    static FUNCTION: LazyLock<Arc<ScalarUDF>> =
        LazyLock::new(|| Arc::new(ScalarUDF::from(Folded { signature: Signature::any(1, Volatility::Immutable) })));
    FUNCTION.clone()
}

impl ScalarUDFImpl for Folded {
    fn name(&self) -> &str {
        FOLDED
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[ArrowType]) -> Result<ArrowType> {
        Ok(match &types[0] {
            ArrowType::List(_) => list(),
            _ => ArrowType::Utf8View,
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match args.args.into_iter().next() {
            Some(ColumnarValue::Scalar(scalar)) => {
                let folded = folded(&scalar.to_array()?)?;
                Ok(ColumnarValue::Scalar(datafusion::common::ScalarValue::try_from_array(&folded, 0)?))
            }
            Some(ColumnarValue::Array(texts)) => folded(&texts).map(ColumnarValue::Array),
            None => datafusion::common::internal_err!("a text is folded"),
        }
    }
}

fn list() -> ArrowType {
    ArrowType::List(Arc::new(Field::new_list_field(ArrowType::Utf8View, true)))
}

fn folded(texts: &ArrayRef) -> Result<ArrayRef> {
    if let ArrowType::List(_) = texts.data_type() {
        let lists = texts.as_list::<i32>();
        let items = folded(lists.values())?;
        let item = Arc::new(Field::new_list_field(ArrowType::Utf8View, true));
        return Ok(Arc::new(ListArray::new(item, lists.offsets().clone(), items, lists.nulls().cloned())));
    }
    let texts = cast(texts, &ArrowType::Utf8View)?;
    let in_small = |text: Option<&str>| text.map(str::to_lowercase);
    Ok(Arc::new(texts.as_string_view().iter().map(in_small).collect::<StringViewArray>()))
}
