//! Values on their way into columns: PostgreSQL's input syntax and assignment casts.
//!
//! Imports syntax and `interrupt`; names and all rooms above import it.
pub(crate) mod array_input;
pub(crate) mod assign;
pub(crate) mod blanks;
pub(crate) mod builder;
pub(crate) mod clock;
mod date_input;
pub(crate) mod datetime;
pub(crate) mod input;
pub(crate) mod interval_input;
pub(crate) mod literals;
pub mod pg_types;
pub(crate) mod single;
pub(crate) mod stored;
pub(crate) mod text;
pub(crate) mod text_column;
pub(crate) mod types;

use engine::DataType;
use engine::json::JsonFault;

use crate::error::SqlError;

pub use single::{column_of_values, read_value};

/// Why a value does not go into a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Misfit {
    /// The text is no value of the type.
    Syntax,
    /// The value lies outside of the type's range.
    Range,
    /// A field of a date or time (month 13, hour 25) lies outside of its range.
    DateField,
    /// The text has more characters than the column takes.
    TooLong,
    /// The text holds a zero byte or is not UTF-8.
    Encoding,
    /// The number is NaN or infinite, and the type holds neither.
    NotFinite,
    /// Values of this kind need an explicit cast.
    Kind,
    /// The text is no JSON.
    Json(JsonFault),
}

/// PostgreSQL's long name of a column's type, as its error messages write it.
pub(crate) fn long_name(data_type: DataType) -> String {
    match data_type {
        DataType::Text { max_chars: Some(chars) } | DataType::Char { chars } => {
            format!("{}({chars})", pg_types::of_column(data_type).shown)
        }
        other => pg_types::of_column(other).shown.to_owned(),
    }
}

impl Misfit {
    /// The error for a value (of the type named `from`, where it has one) that was meant for a column.
    pub(crate) fn error(self, column: &str, data_type: DataType, value: &str, from: &str) -> SqlError {
        let name = long_name(data_type);
        let shown = abbreviate(value);
        let error = match self {
            Misfit::Syntax => {
                let name = name.split(" with").next().unwrap_or(&name);
                SqlError::new(syntax_code(name), format!("invalid input syntax for type {name}: \"{shown}\""))
            }
            Misfit::Range => match data_type {
                DataType::Decimal { precision, scale } => {
                    return SqlError::new("22003", "numeric field overflow").detail(format!(
                        "Column \"{column}\", value {shown}: a field with precision {precision}, scale {scale} must \
                         round to an absolute value less than 10^{}.",
                        i16::from(precision) - i16::from(scale)
                    ));
                }
                _ => SqlError::new("22003", format!("value \"{shown}\" is out of range for type {name}")),
            },
            Misfit::DateField if data_type == DataType::Interval => {
                SqlError::new("22015", format!("interval field value out of range: \"{shown}\""))
            }
            Misfit::Json(fault) => {
                let (sqlstate, message) = fault.error();
                return SqlError::new(sqlstate, message).detail(fault.detail(value));
            }
            Misfit::DateField => SqlError::new("22008", format!("date/time field value out of range: \"{shown}\"")),
            Misfit::NotFinite => {
                let error = SqlError::unsupported(format!("{shown} as {name}"));
                return error.hint("Use double precision, which holds NaN and infinity.");
            }
            Misfit::TooLong => SqlError::new("22001", format!("value too long for type {name}")),
            Misfit::Encoding => SqlError::new("22021", "invalid byte sequence for encoding \"UTF8\""),
            Misfit::Kind => {
                let message = format!("column \"{column}\" is of type {name} but expression is of type {from}");
                return SqlError::mismatch(message).hint("You will need to rewrite or cast the expression.");
            }
        };
        error.detail(format!("Column \"{column}\", value \"{shown}\"."))
    }
}

/// The code of a text that is no value of a type.
pub(crate) fn syntax_code(type_name: &str) -> &'static str {
    let is_time = ["date", "time", "interval"].iter().any(|word| type_name.starts_with(word));
    if is_time { "22007" } else { "22P02" }
}

/// Long values are cut in messages.
fn abbreviate(value: &str) -> String {
    match value.char_indices().nth(100) {
        Some((end, _)) => format!("{}...", &value[..end]),
        None => value.to_owned(),
    }
}
