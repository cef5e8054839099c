//! PostgreSQL's text form of values.
use arrow_array::Array;

/// The text form that PostgreSQL gives the value in this row of `array`; `None` for NULL.
pub fn text_value(array: &dyn Array, row: usize) -> Option<String> {
    if array.is_null(row) {
        return None;
    }
    arrow_cast::display::array_value_to_string(array, row).ok()
}
