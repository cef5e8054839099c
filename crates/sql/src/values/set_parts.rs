//! What becomes a part of an array or a `jsonb` that subscripts name: its type and its conversion.
use arrow_array::ArrayRef;
use arrow_schema::{DataType as ArrowType, Field};
use datafusion::error::Result;
use engine::DataType;

use crate::error::{SqlError, external};
use crate::values::assign::{Texts, assign, is_assignable};
use crate::values::long_name;
use crate::values::types::type_name_of_field;

/// How a value that has this type goes into a column.
fn texts(field: &Field) -> Texts {
    if *field.data_type() == ArrowType::Utf8 { Texts::AreRead } else { Texts::Stay }
}

/// An error if values of this field do not become parts, which have a type of their own, of such a column.
///
/// # Errors
/// 42804, with both types.
pub(crate) fn check_part(whole: &Field, to: DataType, value: &Field) -> Result<()> {
    if is_assignable(value, to, texts(value)) {
        return Ok(());
    }
    let (name, needed, found) = (whole.name(), long_name(to), type_name_of_field(value));
    let message =
        format!("subscripted assignment to \"{name}\" requires type {needed} but expression is of type {found}");
    Err(external(SqlError::mismatch(message).hint("You will need to rewrite or cast the expression.")))
}

/// Values of this field as parts of such a column.
pub(crate) fn part(values: &ArrayRef, field: &Field, whole: &Field, to: DataType) -> Result<ArrayRef> {
    let made = assign(values, field, whole.name(), to, texts(field));
    made.map_err(|error| external(SqlError { detail: None, ..error }))
}
