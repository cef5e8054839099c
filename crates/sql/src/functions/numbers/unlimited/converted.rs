//! Numbers of one type as those of another, where the library has no such cast, or rounds and fails otherwise than PostgreSQL.
use arrow_schema::DataType as ArrowType;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use engine::DataType;

use super::rows;
use crate::error::SqlError;
use crate::values::Misfit;
use crate::values::assign::{into_numbers, long_text};
use crate::values::numerics::into_wide;
use crate::values::types::type_name;

/// A number as one of another type.
pub(crate) fn converted(expr: Expr, to: ArrowType) -> Expr {
    let name = DataType::from_arrow(&to).map_or_else(|| type_name(&to), |to| to.to_string());
    let name = format!("to_{name}");
    let function = Converted { to, name, signature: Signature::any(1, Volatility::Immutable) };
    ScalarUDF::from(function).call(vec![expr])
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Converted {
    to: ArrowType,
    name: String,
    signature: Signature,
}

impl ScalarUDFImpl for Converted {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[ArrowType]) -> Result<ArrowType> {
        Ok(self.to.clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        rows(args, |arrays, _| {
            let numbers = &arrays[0];
            let converted = match (&self.to, DataType::from_arrow(&self.to)) {
                (ArrowType::Decimal256(precision, scale), _) => into_wide(numbers, *precision, *scale),
                (_, Some(to)) => into_numbers(numbers, to),
                (_, None) => Err((None, Misfit::Kind)),
            };
            converted.map_err(|(row, misfit)| {
                let text = row.and_then(|row| long_text(numbers, row)).unwrap_or_default();
                DataFusionError::External(Box::new(self.misfit(misfit, &text)))
            })
        })
    }
}

impl Converted {
    /// PostgreSQL's words for a number that the type has not.
    fn misfit(&self, misfit: Misfit, text: &str) -> SqlError {
        let to = DataType::from_arrow(&self.to).unwrap_or(DataType::Numeric);
        match misfit {
            Misfit::Range if to.is_integer() => SqlError::new("22003", format!("{to} out of range")),
            Misfit::NotFinite if to.is_integer() => {
                let name = if text.eq_ignore_ascii_case("nan") { "NaN" } else { "infinity" };
                SqlError::new("0A000", format!("cannot convert {name} to {to}"))
            }
            other => SqlError { detail: None, ..other.error("", to, text, "text") },
        }
    }
}
