//! The shape of arrays: `array_length`, `array_upper`, `array_lower`, `array_ndims`, `array_dims` and `cardinality`. They give
//! an `integer`, where the library's give numbers without a sign; an array without items has no dimension.
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef, Int32Array, StringViewArray, new_null_array};
use arrow_cast::cast;
use arrow_schema::DataType;
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};

use crate::values::types::is_vector;

/// What is told of a shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Tells {
    /// The items of one dimension.
    Length,
    /// The first place of a dimension: 1, but of a vector of the catalog.
    Lower,
    /// The last place.
    Upper,
    Dimensions,
    /// All lengths as a text such as `[1:2][1:3]`.
    Bounds,
    /// The items of all dimensions.
    Items,
}

const NAMED: [(Tells, &str, usize); 6] = [
    (Tells::Length, "array_length", 2),
    (Tells::Upper, "array_upper", 2),
    (Tells::Lower, "array_lower", 2),
    (Tells::Dimensions, "array_ndims", 1),
    (Tells::Bounds, "array_dims", 1),
    (Tells::Items, "cardinality", 1),
];

/// The functions under their names in SQL.
pub(crate) fn functions() -> impl Iterator<Item = ScalarUDF> {
    NAMED.into_iter().map(|(tells, name, count)| {
        ScalarUDF::from(Shape { tells, name, signature: Signature::any(count, Volatility::Immutable) })
    })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Shape {
    tells: Tells,
    name: &'static str,
    signature: Signature,
}

impl ScalarUDFImpl for Shape {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        let is_array = types.first().is_some_and(|found| found.is_list() || found.is_null());
        let is_place = types.get(1).is_none_or(|found| found.is_integer() || found.is_null());
        if !is_array || !is_place {
            return Err(DataFusionError::Plan(format!("Function '{}' failed to match any signature", self.name)));
        }
        Ok(if self.tells == Tells::Bounds { DataType::Utf8View } else { DataType::Int32 })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_scalar = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let rows = if is_scalar { 1 } else { args.number_rows };
        // Vectors of the catalog count from 0.
        let first = i32::from(!args.arg_fields.first().is_some_and(|field| is_vector(field)));
        let arrays = args.args.into_iter().map(|arg| arg.into_array(rows)).collect::<Result<Vec<_>>>()?;
        let told = self.tell(&arrays, first)?;
        Ok(match is_scalar {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&told, 0)?),
            false => ColumnarValue::Array(told),
        })
    }
}

impl Shape {
    fn tell(&self, arrays: &[ArrayRef], first: i32) -> Result<ArrayRef> {
        let lists = &arrays[0];
        if lists.data_type().is_null() {
            return Ok(new_null_array(&self.return_type(&[DataType::Null])?, lists.len()));
        }
        let places = arrays.get(1).map(|places| cast(places, &DataType::Int32)).transpose()?;
        let shapes = (0..lists.len()).map(|row| lists.is_valid(row).then(|| shape(lists, row)));
        if self.tells == Tells::Bounds {
            let bounds = |shape: Vec<usize>| shape.iter().map(|length| format!("[1:{length}]")).collect::<String>();
            let texts = shapes.map(|shape| shape.map(bounds).filter(|text| !text.is_empty()));
            return Ok(Arc::new(texts.collect::<StringViewArray>()));
        }
        let told = shapes.enumerate().map(|(row, shape)| {
            let shape = shape?;
            let length = || {
                let places = places.as_ref()?.as_primitive::<Int32Type>();
                let place = places.is_valid(row).then(|| usize::try_from(places.value(row)).ok())??;
                shape.get(place.checked_sub(1)?).copied()
            };
            let number = match self.tells {
                Tells::Length => length()?,
                Tells::Lower => return length().map(|_| first),
                Tells::Upper => return i32::try_from(length()?).ok().map(|length| length + first - 1),
                Tells::Dimensions if shape.is_empty() => return None,
                Tells::Dimensions => shape.len(),
                Tells::Items if shape.is_empty() => 0,
                Tells::Items | Tells::Bounds => shape.iter().product(),
            };
            i32::try_from(number).ok()
        });
        Ok(Arc::new(told.collect::<Int32Array>()))
    }
}

/// The lengths of the dimensions of one array; the first item of each has those of the others.
fn shape(lists: &ArrayRef, row: usize) -> Vec<usize> {
    let mut shape = Vec::new();
    let mut items = item_of(lists, row);
    while let Some(inner) = items {
        if inner.is_empty() {
            break;
        }
        shape.push(inner.len());
        items = if inner.is_valid(0) { item_of(&inner, 0) } else { None };
    }
    shape
}

fn item_of(lists: &ArrayRef, row: usize) -> Option<ArrayRef> {
    match lists.data_type() {
        DataType::List(_) => Some(lists.as_list::<i32>().value(row)),
        DataType::LargeList(_) => Some(lists.as_list::<i64>().value(row)),
        DataType::FixedSizeList(..) => Some(lists.as_fixed_size_list().value(row)),
        _ => None,
    }
}
