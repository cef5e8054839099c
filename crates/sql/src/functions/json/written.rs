//! Values of any type as JSON: numbers and truths as they are, times in ISO form, rows as objects, all else as strings.
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType as ArrowType;
use engine::json::Json;

use crate::values::numerics::is_numeric;
use crate::values::text::{lasting_text, text_value};

/// The value in a row as the text of a `json`.
pub(crate) fn json_text(array: &dyn Array, row: usize) -> String {
    let text = match array.data_type() {
        ArrowType::Date32 | ArrowType::Timestamp(..) => lasting_text(array, row),
        _ => text_value(array, row),
    };
    let Some(text) = text else { return "null".to_owned() };
    match array.data_type() {
        ArrowType::Boolean => array.as_boolean().value(row).to_string(),
        ArrowType::LargeUtf8 | ArrowType::LargeBinary => text,
        // NaN and infinity are no numbers of JSON.
        found if (found.is_numeric() || is_numeric(found)) && text.ends_with(|sign: char| sign.is_ascii_digit()) => {
            text
        }
        ArrowType::Timestamp(_, zone) => {
            let moment = text.replacen(' ', "T", 1);
            // Here an offset has minutes.
            let has_hours_alone = moment.rfind(['+', '-']).is_some_and(|sign| moment.len() - sign == 3);
            let is_zoned = zone.is_some() && moment.contains('T');
            let moment = if is_zoned && has_hours_alone { format!("{moment}:00") } else { moment };
            Json::quote(&moment)
        }
        ArrowType::List(_) => array_text(&array.as_list::<i32>().value(row)),
        ArrowType::LargeList(_) => array_text(&array.as_list::<i64>().value(row)),
        ArrowType::FixedSizeList(..) => array_text(&array.as_fixed_size_list().value(row)),
        ArrowType::Struct(fields) => {
            // The fields of a row without names are `f1`, `f2`, ..., and not what the library calls them.
            let has_names = fields.iter().enumerate().any(|(at, field)| *field.name() != format!("c{at}"));
            let columns = array.as_struct().columns().iter().zip(fields).enumerate();
            let member = |(at, (column, field)): (usize, (&ArrayRef, &arrow_schema::FieldRef))| {
                let name = if has_names { field.name().clone() } else { format!("f{}", at + 1) };
                format!("{}:{}", Json::quote(&name), json_text(column, row))
            };
            format!("{{{}}}", columns.map(member).collect::<Vec<_>>().join(","))
        }
        _ => Json::quote(&text),
    }
}

fn array_text(items: &ArrayRef) -> String {
    let items: Vec<String> = (0..items.len()).map(|row| json_text(items, row)).collect();
    format!("[{}]", items.join(","))
}

/// A tree as text without blanks, as `json_strip_nulls` gives it.
pub(super) fn compact(json: &Json) -> String {
    match json {
        Json::Array(items) => format!("[{}]", items.iter().map(compact).collect::<Vec<_>>().join(",")),
        Json::Object(members) => {
            let member = |(key, value): &(String, Json)| format!("{}:{}", Json::quote(key), compact(value));
            format!("{{{}}}", members.iter().map(member).collect::<Vec<_>>().join(","))
        }
        plain => plain.to_string(),
    }
}
