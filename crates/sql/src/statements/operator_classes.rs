//! Operator classes of indexes.
//!
//! An index has the one order of its type. PostgreSQL's default classes name that order, and so do the classes for patterns, as texts
//! are ordered by their bytes here (`COLLATE "C"`): `LIKE 'a%'` goes by any index of the column. A class is therefore looked
//! at and not kept.
use datafusion::sql::sqlparser::ast::ObjectName;
use engine::{DataType, IndexMethod};

use crate::error::{Result, SqlError};
use crate::names::position;
use crate::syntax::identifiers::last_part;
use crate::syntax::source::Source;
use crate::values::long_name;

/// Refuses a class that there is not, or not for the type.
pub(crate) fn check(class: &ObjectName, data_type: DataType, method: IndexMethod, source: &Source) -> Result<()> {
    let name = last_part(class).unwrap_or_default();
    let at = position(class, source);
    let Some(accepts) = accepts(&name) else {
        let message = format!("operator class \"{name}\" does not exist for access method \"{}\"", method.name());
        return Err(SqlError::new("42704", message).at(at));
    };
    match accepts(data_type) {
        true => Ok(()),
        false => {
            let message = format!("operator class \"{name}\" does not accept data type {}", long_name(data_type));
            Err(SqlError::new("42804", message).at(at))
        }
    }
}

/// The types that a class is for; none if there is no such class.
fn accepts(class: &str) -> Option<fn(DataType) -> bool> {
    Some(match class {
        "bool_ops" => |of| matches!(of, DataType::Boolean),
        "int2_ops" => |of| matches!(of, DataType::SmallInt),
        "int4_ops" => |of| matches!(of, DataType::Integer),
        "int8_ops" => |of| matches!(of, DataType::BigInt),
        "float4_ops" => |of| matches!(of, DataType::Real),
        "float8_ops" => |of| matches!(of, DataType::Double),
        "numeric_ops" => |of| matches!(of, DataType::Decimal { .. }),
        "text_ops" | "varchar_ops" | "text_pattern_ops" | "varchar_pattern_ops" => {
            |of| matches!(of, DataType::Text { .. })
        }
        "bpchar_ops" | "bpchar_pattern_ops" => |of| matches!(of, DataType::Char { .. }),
        "bytea_ops" => |of| matches!(of, DataType::Bytea),
        "date_ops" => |of| matches!(of, DataType::Date),
        "timestamp_ops" => |of| matches!(of, DataType::Timestamp),
        "timestamptz_ops" => |of| matches!(of, DataType::TimestampTz),
        "jsonb_ops" => |of| matches!(of, DataType::Jsonb),
        "time_ops" => |of| matches!(of, DataType::Time),
        "interval_ops" => |of| matches!(of, DataType::Interval),
        "range_ops" => |of| matches!(of, DataType::Range(_)),
        "uuid_ops" => |of| matches!(of, DataType::Uuid),
        _ => return None,
    })
}
