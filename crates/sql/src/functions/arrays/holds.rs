//! Whether a list has an item, be it a row: what `CYCLE` of a recursive query asks.
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, BooleanArray};
use arrow_schema::{DataType, Field, FieldRef};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::parsing::search_cycle::HOLDS;

/// The function.
pub(crate) fn functions() -> Vec<ScalarUDF> {
    vec![ScalarUDF::from(Holds { signature: Signature::any(2, Volatility::Immutable) })]
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Holds {
    signature: Signature,
}

impl ScalarUDFImpl for Holds {
    fn name(&self) -> &str {
        HOLDS
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn return_field_from_args(&self, _: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        Ok(Arc::new(Field::new(HOLDS, DataType::Boolean, false)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let arrays = args.args.into_iter().map(|arg| arg.into_array(rows)).collect::<Result<Vec<_>>>()?;
        let (lists, items) = (arrays[0].as_list::<i32>(), &arrays[1]);
        let holds = |row: usize| {
            if lists.is_null(row) {
                return Ok(Some(false));
            }
            let (list, item) = (lists.value(row), ScalarValue::try_from_array(items, row)?);
            for at in 0..list.len() {
                if values_of(&ScalarValue::try_from_array(&list, at)?) == values_of(&item) {
                    return Ok(Some(true));
                }
            }
            Ok(Some(false))
        };
        Ok(ColumnarValue::Array(Arc::new((0..rows).map(holds).collect::<Result<BooleanArray>>()?)))
    }
}

/// The values of a row whatever its fields are called, or a value that is none.
fn values_of(value: &ScalarValue) -> Vec<ScalarValue> {
    match value {
        ScalarValue::Struct(row) => {
            let fields = row.columns().iter().map(|column| ScalarValue::try_from_array(column, 0));
            fields.map(|field| field.unwrap_or(ScalarValue::Null)).collect()
        }
        other => vec![other.clone()],
    }
}
