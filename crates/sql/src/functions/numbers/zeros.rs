//! Negative zero, which is equal to zero in SQL and another value to the library's kernels: to those that look for a value in
//! a list or an array, compare rows, join by equal keys, or order rows for ranks. So no operator and no function gives one. Likewise
//! they give one NaN: that of a processor for `inf - inf` is negative, which comes before all numbers.
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;

/// The values, floats without negative zeros and with one NaN.
pub(crate) fn of_one_zero(array: ArrayRef) -> ArrayRef {
    // Adding zero leaves every other float as it is.
    let double = |value: f64| if value.is_nan() { f64::NAN } else { value + 0.0 };
    let real = |value: f32| if value.is_nan() { f32::NAN } else { value + 0.0 };
    match array.data_type() {
        DataType::Float64 => Arc::new(array.as_primitive::<Float64Type>().unary::<_, Float64Type>(double)),
        DataType::Float32 => Arc::new(array.as_primitive::<Float32Type>().unary::<_, Float32Type>(real)),
        _ => array,
    }
}
