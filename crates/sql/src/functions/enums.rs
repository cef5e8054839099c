//! The functions of enum types: `enum_first`, `enum_last` and `enum_range`, whose arguments tell a type and, some of them, a label.
use std::sync::Arc;

use arrow_array::builder::ListBuilder;
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType as ArrowType, Field};
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};
use engine::{DataType, EnumType};

use crate::error::SqlError;
use crate::values::types::type_name;

/// See the module.
pub(crate) fn functions() -> impl Iterator<Item = ScalarUDF> {
    let all = [("enum_first", Gives::First), ("enum_last", Gives::Last), ("enum_range", Gives::Range)];
    all.into_iter().map(|(name, gives)| ScalarUDF::from(OfEnum::new(name, gives)))
}

/// What a function gives of the labels of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Gives {
    First,
    Last,
    Range,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct OfEnum {
    name: &'static str,
    gives: Gives,
    signature: Signature,
}

impl OfEnum {
    fn new(name: &'static str, gives: Gives) -> OfEnum {
        OfEnum { name, gives, signature: Signature::variadic_any(Volatility::Stable) }
    }

    /// The type that the arguments are of.
    fn type_of(&self, types: &[ArrowType]) -> Result<EnumType> {
        let is_fine = types.len() == 1 || (types.len() == 2 && self.gives == Gives::Range);
        let known = types.iter().filter_map(enum_of).next();
        let are_alike = types.iter().all(|found| found.is_null() || enum_of(found) == known);
        match known {
            Some(of) if is_fine && are_alike => Ok(of),
            _ if is_fine && types.iter().all(|found| matches!(found, ArrowType::Null | ArrowType::Utf8)) => {
                let message = "could not determine polymorphic type because input has type unknown";
                Err(DataFusionError::External(Box::new(SqlError::new("42804", message))))
            }
            _ => {
                let named: Vec<String> = types.iter().map(type_name).collect();
                let message = format!("function {}({}) does not exist", self.name, named.join(", "));
                Err(DataFusionError::External(Box::new(SqlError::new("42883", message))))
            }
        }
    }
}

fn enum_of(found: &ArrowType) -> Option<EnumType> {
    match DataType::from_arrow(found) {
        Some(DataType::Enum(of)) => Some(of),
        _ => None,
    }
}

impl ScalarUDFImpl for OfEnum {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[ArrowType]) -> Result<ArrowType> {
        let item = DataType::Enum(self.type_of(types)?).to_arrow();
        Ok(match self.gives {
            Gives::Range => ArrowType::List(Arc::new(Field::new_list_field(item, true))),
            Gives::First | Gives::Last => item,
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let types: Vec<ArrowType> = args.args.iter().map(ColumnarValue::data_type).collect();
        let of = self.type_of(&types)?;
        let positions: Vec<i64> =
            of.definition().map(|known| known.labels.iter().map(|(at, _)| *at).collect()).unwrap_or_default();
        let item = DataType::Enum(of).to_arrow();
        let value = |position: Option<&i64>| match &item {
            ArrowType::Timestamp(_, zone) => ScalarValue::TimestampSecond(position.copied(), zone.clone()),
            _ => ScalarValue::Null,
        };
        match self.gives {
            Gives::First => return Ok(ColumnarValue::Scalar(value(positions.first()))),
            Gives::Last => return Ok(ColumnarValue::Scalar(value(positions.last()))),
            Gives::Range => {}
        }
        let ends = ColumnarValue::values_to_arrays(&args.args)?;
        let end = |at: usize, row: usize| -> Result<Option<i64>> {
            match ends.get(at).filter(|_| ends.len() == 2).filter(|end| !end.data_type().is_null()) {
                Some(end) => match ScalarValue::try_from_array(end, row)? {
                    ScalarValue::TimestampSecond(position, _) => Ok(position),
                    _ => Ok(None),
                },
                None => Ok(None),
            }
        };
        let rows = ends.first().map_or(1, |first| first.len());
        let labels = arrow_array::builder::TimestampSecondBuilder::new().with_data_type(item.clone());
        let mut lists = ListBuilder::new(labels).with_field(Arc::new(Field::new_list_field(item, true)));
        for row in 0..rows {
            let (low, high) = (end(0, row)?, end(1, row)?);
            let within = |at: &i64| low.is_none_or(|low| low <= *at) && high.is_none_or(|high| *at <= high);
            lists.append_value(positions.iter().filter(|at| within(at)).map(|at| Some(*at)));
        }
        let lists: ArrayRef = Arc::new(lists.finish());
        Ok(ColumnarValue::Array(lists))
    }
}
