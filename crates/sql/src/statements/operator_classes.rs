//! Operator classes of indexes.
//!
//! An ordered index has the one order of its type. PostgreSQL's default classes name that order, and so do the classes for patterns, as
//! texts are ordered by their bytes here (`COLLATE "C"`): `LIKE 'a%'` goes by any index of the column. A class is therefore looked at, and
//! its name kept where it is not that of the type, for the catalog. The class of an inverted index says which terms it has
//! ([`engine::TermClass`]).
use datafusion::sql::sqlparser::ast::ObjectName;
use engine::{DataType, GeometryKind, IndexMethod, TermClass};

use crate::error::{Result, SqlError};
use crate::names::position;
use crate::pg_catalog::opclasses;
use crate::syntax::identifiers::last_part;
use crate::syntax::source::Source;
use crate::values::long_name;

/// Refuses a class that there is not, or not for the type.
pub(crate) fn check(class: &ObjectName, data_type: DataType, method: IndexMethod, source: &Source) -> Result<()> {
    let name = last_part(class).unwrap_or_default();
    let at = position(class, source);
    let accepted = match method {
        IndexMethod::Brin | IndexMethod::Spgist => opclasses::accepts(method, &name, data_type),
        _ => accepts(&name, method).map(|accepts| accepts(data_type)),
    };
    let Some(is_accepted) = accepted else {
        let message = format!("operator class \"{name}\" does not exist for access method \"{}\"", method.name());
        return Err(SqlError::new("42704", message).at(at));
    };
    match is_accepted {
        true => Ok(()),
        false => {
            let message = format!("operator class \"{name}\" does not accept data type {}", long_name(data_type));
            Err(SqlError::new("42804", message).at(at))
        }
    }
}

/// Whether a class of an index that is not inverted is no type's own.
pub(crate) fn is_other(class: &str, method: IndexMethod) -> bool {
    if matches!(method, IndexMethod::Brin | IndexMethod::Spgist) {
        return !opclasses::is_default(method, class);
    }
    class.ends_with("_pattern_ops") || matches!(class, "varchar_ops" | "cidr_ops")
}

/// Refuses types that a method has no class for: shapes and `json` have no order, and a tree of extents knows no more of a document, a
/// list or an interval than its bytes, which do not tell what is equal.
pub(crate) fn check_default(data_type: DataType, method: IndexMethod) -> Result<()> {
    if matches!(method, IndexMethod::Brin | IndexMethod::Spgist) {
        return match opclasses::default_of(method, data_type) {
            Some(_) => Ok(()),
            None => {
                let (name, method) = (long_name(data_type), method.name());
                let message = format!("data type {name} has no default operator class for access method \"{method}\"");
                let hint = "You must specify an operator class for the index or define a default operator class for \
                            the data type.";
                Err(SqlError::new("42704", message).hint(hint))
            }
        };
    }
    let is_of_space = method == IndexMethod::Gist;
    if method == IndexMethod::Gin && TermClass::of_type(data_type).is_none() {
        let message =
            format!("data type {} has no default operator class for access method \"gin\"", long_name(data_type));
        let hint = match data_type {
            DataType::Text { .. } => "Use gin_trgm_ops for LIKE '%...%', or btree.",
            _ => "It is for arrays, jsonb and, by gin_trgm_ops, texts. Use btree.",
        };
        return Err(SqlError::new("42704", message).hint(hint));
    }
    let hint = match data_type {
        DataType::Json => "Index a part of it, as in ((column ->> 'key')), or use jsonb.",
        DataType::Geometry(_) if !is_of_space => "Index it USING gist, or a number of it, as in ((column[0])).",
        DataType::Jsonb | DataType::Array(_) | DataType::Interval if is_of_space => "Use btree.",
        _ => return Ok(()),
    };
    let (name, method) = (long_name(data_type), method.name());
    let message = format!("data type {name} has no default operator class for access method \"{method}\"");
    Err(SqlError::new("42704", message).hint(hint))
}

/// The types that a class is for; none if there is no such class.
fn accepts(class: &str, method: IndexMethod) -> Option<fn(DataType) -> bool> {
    if method == IndexMethod::Gin {
        return Some(match TermClass::named(class)? {
            TermClass::Items => |of| TermClass::Items.accepts(of),
            TermClass::Names => |of| TermClass::Names.accepts(of),
            TermClass::Paths => |of| TermClass::Paths.accepts(of),
            TermClass::Trigrams => |of| TermClass::Trigrams.accepts(of),
        });
    }
    if method == IndexMethod::Gist {
        return match class {
            "range_ops" => Some(|of| matches!(of, DataType::Range(_))),
            "inet_ops" => Some(|of| matches!(of, DataType::Network(_))),
            "point_ops" => Some(|of| of == DataType::Geometry(GeometryKind::Point)),
            "box_ops" => Some(|of| of == DataType::Geometry(GeometryKind::Box)),
            "circle_ops" => Some(|of| of == DataType::Geometry(GeometryKind::Circle)),
            _ => accepts(class.strip_prefix("gist_")?, IndexMethod::Btree),
        };
    }
    Some(match class {
        "bool_ops" => |of| matches!(of, DataType::Boolean),
        "int2_ops" => |of| matches!(of, DataType::SmallInt),
        "int4_ops" => |of| matches!(of, DataType::Integer),
        "int8_ops" => |of| matches!(of, DataType::BigInt),
        "float4_ops" => |of| matches!(of, DataType::Real),
        "float8_ops" => |of| matches!(of, DataType::Double),
        "numeric_ops" => |of| matches!(of, DataType::Decimal { .. } | DataType::Numeric),
        "text_ops" | "varchar_ops" | "text_pattern_ops" | "varchar_pattern_ops" => {
            |of| matches!(of, DataType::Text { .. })
        }
        "bpchar_ops" | "bpchar_pattern_ops" => |of| matches!(of, DataType::Char { .. }),
        "bytea_ops" => |of| matches!(of, DataType::Bytea),
        "date_ops" => |of| matches!(of, DataType::Date),
        "timestamp_ops" => |of| of.whole() == DataType::Timestamp,
        "timestamptz_ops" => |of| of.whole() == DataType::TimestampTz,
        "jsonb_ops" => |of| matches!(of, DataType::Jsonb),
        "time_ops" => |of| of.whole() == DataType::Time,
        "timetz_ops" => |of| of.whole() == DataType::TimeTz,
        "interval_ops" => |of| matches!(of, DataType::Interval),
        "range_ops" => |of| matches!(of, DataType::Range(_)),
        "inet_ops" | "cidr_ops" => |of| matches!(of, DataType::Network(_)),
        "uuid_ops" => |of| matches!(of, DataType::Uuid),
        _ => return None,
    })
}
