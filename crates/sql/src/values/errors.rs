//! The errors for values that do not go into columns, in PostgreSQL's words. Of an array the item is named that does not fit.
use engine::{DataType, Geometry};

use super::builder::ColumnBuilder;
use super::{Misfit, array_input, long_name, space_input, syntax_code};
use crate::error::SqlError;

impl Misfit {
    /// The error for a value (of the type named `from`, where it has one) that was meant for a column.
    pub(crate) fn error(self, column: &str, data_type: DataType, value: &str, from: &str) -> SqlError {
        if let (DataType::Array(item), false) = (data_type, matches!(self, Misfit::Kind | Misfit::Dimensions)) {
            return array_error(column, item.data_type(), value);
        }
        if let DataType::Range(kind) = data_type
            && let Some((bound, misfit)) = space_input::wrong_bound(value, kind)
        {
            return misfit.error(column, kind.bound_type(), &bound, from);
        }
        let name = long_name(data_type);
        let shown = abbreviate(value);
        let error = match self {
            Misfit::Syntax => {
                let name = name.split(" without").next().unwrap_or(&name);
                SqlError::new(syntax_code(name), format!("invalid input syntax for type {name}: \"{shown}\""))
            }
            Misfit::Label => SqlError::new("22P02", format!("invalid input value for enum {name}: \"{shown}\"")),
            Misfit::Range => match data_type {
                DataType::Geometry(kind) => match Geometry::parse(kind, value) {
                    Err(fault) => space_input::fault_of_geometry(&fault),
                    Ok(_) => SqlError::new("22003", format!("value \"{shown}\" is out of range for type {name}")),
                },
                DataType::Numeric => SqlError::new("22003", "value overflows numeric format"),
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
            Misfit::Pairs(fault) => return SqlError::new("XX000", fault.message(value)),
            Misfit::RangeText(fault) => {
                let message = format!("malformed range literal: \"{shown}\"");
                return SqlError::new("22P02", message).detail(fault.detail());
            }
            Misfit::Host => {
                let error = SqlError::new("22P02", format!("invalid cidr value: \"{shown}\""));
                return error.detail("Value has bits set to right of mask.");
            }
            Misfit::Bounds(fault) => match data_type {
                DataType::Range(kind) => space_input::fault_of_range(fault, kind),
                _ => SqlError::new("22000", format!("invalid bounds for type {name}")),
            },
            Misfit::DateField => SqlError::new("22008", format!("date/time field value out of range: \"{shown}\"")),
            Misfit::Displacement => SqlError::new("22009", format!("time zone displacement out of range: \"{shown}\"")),
            Misfit::NotFinite => {
                let error = SqlError::unsupported(format!("{shown} as {name}"));
                return error.hint("Use double precision, which holds NaN and infinity.");
            }
            Misfit::TooLong => SqlError::new("22001", format!("value too long for type {name}")),
            Misfit::Encoding => SqlError::new("22021", "invalid byte sequence for encoding \"UTF8\""),
            Misfit::Dimensions => return SqlError::unsupported(SEVERAL_DIMENSIONS),
            Misfit::Kind => {
                let message = format!("column \"{column}\" is of type {name} but expression is of type {from}");
                return SqlError::mismatch(message).hint("You will need to rewrite or cast the expression.");
            }
        };
        error.detail(format!("Column \"{column}\", value \"{shown}\"."))
    }
}

/// What tables have not.
const SEVERAL_DIMENSIONS: &str = "an array of several dimensions in a column";

/// The error for an array that was meant for a column: that of the item which does not fit.
fn array_error(column: &str, item: DataType, value: &str) -> SqlError {
    let wrong = |text: &str| ColumnBuilder::new(item).append_text(text).err();
    let items = array_input::items(value);
    let found = items.iter().flatten().flatten().find_map(|text| wrong(text).map(|misfit| (text, misfit)));
    match found {
        Some((text, misfit)) => misfit.error(column, item, text, "text"),
        None if array_input::has_dimensions(value) => SqlError::unsupported(SEVERAL_DIMENSIONS),
        None => SqlError::new("22P02", format!("malformed array literal: \"{}\"", abbreviate(value))),
    }
}

/// Long values are cut in messages.
fn abbreviate(value: &str) -> String {
    match value.char_indices().nth(100) {
        Some((end, _)) => format!("{}...", &value[..end]),
        None => value.to_owned(),
    }
}
