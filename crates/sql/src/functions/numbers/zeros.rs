//! Negative zero, which is equal to zero in SQL and another value to the library's kernels: to those that look for a value in
//! a list or an array, compare rows, join by equal keys, or order rows for ranks. So no operator and no function gives one.
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;

/// The values, floats without negative zeros.
pub(crate) fn of_one_zero(array: ArrayRef) -> ArrayRef {
    // Adding zero leaves every other float as it is.
    match array.data_type() {
        DataType::Float64 => Arc::new(array.as_primitive::<Float64Type>().unary::<_, Float64Type>(|value| value + 0.0)),
        DataType::Float32 => Arc::new(array.as_primitive::<Float32Type>().unary::<_, Float32Type>(|value| value + 0.0)),
        _ => array,
    }
}
