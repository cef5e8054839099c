//! Casts from and to `json` and `jsonb`. Texts become either; one becomes the other by its text; a number or truth of a `jsonb` is
//! one of SQL; there are no others.
use arrow_array::ArrayRef;
use arrow_array::cast::AsArray;
use arrow_schema::DataType as ArrowType;
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::Transformed;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::expr::Cast;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use engine::DataType;

use super::casts::{ReadText, WriteText, each};
use super::untyped::{failed, is_text};
use crate::functions::json::change::plain_text;
use crate::semantics::operations::json::{called, is_json, no_cast};
use crate::values::builder::ColumnBuilder;
use crate::values::long_name;
use crate::values::types::{type_name, type_of_field};

/// The cast, if it is one of these; `None` where it is like any other.
pub(super) fn adapt(cast: &Cast, from: &ArrowType) -> Result<Option<Transformed<Expr>>> {
    let (to, target) = (cast.field.data_type(), type_of_field(&cast.field));
    if !(is_json(from) || is_json(to)) || from == to || from.is_null() || (is_text(from) && is_json(to)) {
        return Ok(None);
    }
    let expr = || cast.expr.as_ref().clone();
    Ok(Some(match target {
        Some(target @ (DataType::Json | DataType::Jsonb)) if is_json(from) => {
            called(ReadText::function(target), called(WriteText::function(), expr()).data)
        }
        Some(DataType::Text { .. } | DataType::Char { .. }) => return Ok(None),
        Some(
            target @ (DataType::Boolean
            | DataType::SmallInt
            | DataType::Integer
            | DataType::BigInt
            | DataType::Real
            | DataType::Double
            | DataType::Decimal { .. }
            | DataType::Numeric),
        ) if *from == ArrowType::LargeBinary => called(Plain::function(target), expr()),
        // The planner reads every whole number as a bigint.
        _ => match cast.expr.as_ref() {
            Expr::Literal(ScalarValue::Int64(Some(number)), _) if i32::try_from(*number).is_ok() => {
                return Err(no_cast("integer", &type_name(to)));
            }
            _ => return Err(no_cast(&type_name(from), &type_name(to))),
        },
    }))
}

/// Reads the numbers and truths that `jsonb` values are.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Plain {
    to: DataType,
    name: String,
    signature: Signature,
}

impl Plain {
    fn function(to: DataType) -> ScalarUDF {
        let signature = Signature::any(1, Volatility::Immutable);
        ScalarUDF::from(Plain { to, name: format!("to_{to}"), signature })
    }

    fn read(&self, values: &ArrayRef) -> Result<ArrayRef> {
        let mut builder = ColumnBuilder::new(self.to);
        for bytes in values.as_binary::<i64>() {
            let Some(bytes) = bytes else {
                builder.append_null();
                continue;
            };
            let is_boolean = self.to == DataType::Boolean;
            let text = plain_text(bytes, is_boolean, &long_name(self.to));
            let text = text.map_err(|error| DataFusionError::External(Box::new(error)))?;
            let appended = if is_boolean { builder.append_text(&text) } else { builder.append_number(&text) };
            appended.map_err(|misfit| failed(misfit, self.to, &text))?;
        }
        Ok(builder.finish())
    }
}

impl ScalarUDFImpl for Plain {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[ArrowType]) -> Result<ArrowType> {
        Ok(self.to.to_arrow())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        each(args, |values| self.read(values))
    }
}
