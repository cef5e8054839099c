//! Values on their way into columns: PostgreSQL's input syntax and assignment casts.
//!
//! Imports syntax and `interrupt`; names and all rooms above import it.
pub(crate) mod alike;
pub(crate) mod array_input;
pub(crate) mod assign;
pub(crate) mod blanks;
pub(crate) mod builder;
pub(crate) mod built_in;
pub(crate) mod clock;
pub(crate) mod collated;
mod date_form;
mod date_input;
pub(crate) mod datetime;
mod deep_arrays;
mod errors;
pub(crate) mod hstore;
pub(crate) mod input;
pub(crate) mod interval_form;
pub(crate) mod interval_input;
pub(crate) mod literals;
pub(crate) mod numerics;
pub mod pg_types;
pub(crate) mod set_parts;
pub(crate) mod single;
pub(crate) mod space_input;
pub(crate) mod stored;
pub(crate) mod text;
pub(crate) mod text_column;
pub(crate) mod types;
pub mod wire;
pub(crate) mod zoned;

use engine::DataType;
use engine::json::JsonFault;
use engine::range::{RangeFault, RangeTextFault};

pub(crate) use hstore::PairsFault;
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
    /// A zone is further away from Greenwich than any.
    Displacement,
    /// The text has more characters than the column takes.
    TooLong,
    /// The text holds a zero byte or is not UTF-8.
    Encoding,
    /// The number is NaN or infinite, and the type holds neither.
    NotFinite,
    /// Values of this kind need an explicit cast.
    Kind,
    /// An array has arrays as items.
    Dimensions,
    /// The text is no label of the enum type.
    Label,
    /// The text is no JSON.
    Json(JsonFault),
    /// The text is no list of pairs.
    Pairs(PairsFault),
    /// The text is no range.
    RangeText(RangeTextFault),
    /// The bounds of a range are none.
    Bounds(RangeFault),
    /// An address has a host, and the type is of networks.
    Host,
}

/// A misfit and the row where it is.
pub(crate) type Misplaced = (Option<usize>, Misfit);

/// PostgreSQL's long name of a column's type, as its error messages write it.
pub(crate) fn long_name(data_type: DataType) -> String {
    with_length(data_type, pg_types::shown_name)
}

/// PostgreSQL's long name of a column's type, as texts that are kept write it.
pub(crate) fn long_kept_name(data_type: DataType) -> String {
    with_length(data_type, pg_types::kept_name)
}

fn with_length(data_type: DataType, name: fn(DataType) -> String) -> String {
    match data_type {
        DataType::VARCHAR | DataType::CITEXT | DataType::HSTORE => name(data_type),
        DataType::Text { max_chars: Some(chars) } | DataType::Char { chars } => {
            format!("{}({chars})", pg_types::of_column(data_type).shown)
        }
        other => name(other),
    }
}

/// The code of a text that is no value of a type.
pub(crate) fn syntax_code(type_name: &str) -> &'static str {
    let is_time = ["date", "time", "interval"].iter().any(|word| type_name.starts_with(word));
    if is_time { "22007" } else { "22P02" }
}
