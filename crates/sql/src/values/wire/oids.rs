//! The numbers by which PostgreSQL names types on the wire.
use arrow_schema::{DataType as ArrowType, Field, IntervalUnit};
use engine::DataType;

use crate::values::pg_types;
use crate::values::types::{self, NAMES, OBJECT, OBJECT_VECTOR, catalog_type, type_of_field};

pub use crate::values::pg_types::number_of as of_type;
pub(super) use crate::values::pg_types::{
    BOOL, BPCHAR, BYTEA, DATE, FLOAT4, INT2, INT4, INT8, INTERVAL, JSON, JSONB, NAME, NUMERIC, OID, TEXT, TIME,
    TIMESTAMP, TIMESTAMPTZ, UNKNOWN, UUID, VARCHAR,
};

/// `"char"`
pub const CHAR: u32 = 18;
const INT2VECTOR: u32 = 22;
const OIDVECTOR: u32 = 30;
pub(super) const JSONPATH: u32 = 4072;
pub(super) const RECORD: u32 = 2249;
const RECORDS: u32 = 2287;
const VOID: u32 = 2278;

/// The type of a parameter that a client has given a number for; `None` where it is left to be found out. Types without a
/// column type here travel as text.
pub fn parameter_type(oid: u32) -> Option<DataType> {
    match oid {
        0 | UNKNOWN => None,
        oid if let Some(made) = pg_types::made_type(oid) => Some(made),
        oid => Some(pg_types::numbered(oid).and_then(|known| known.column).unwrap_or(DataType::TEXT)),
    }
}

/// The number of the type of a query's column.
pub fn of_field(field: &Field) -> u32 {
    match catalog_type(field) {
        Some(types::LETTER) => return CHAR,
        Some(types::NAME) => return NAME,
        Some("jsonpath") => return JSONPATH,
        Some(types::VOID) => return VOID,
        Some(OBJECT) => return OID,
        Some(NAMES) => return array_of(NAME),
        Some(OBJECT_VECTOR) => return OIDVECTOR,
        Some(_) => return INT2VECTOR,
        None => {}
    }
    // Numbers without a sign come from functions of which PostgreSQL's give a bigint, like row_number().
    let is_of_no_column = field.data_type().is_null() || field.data_type().is_unsigned_integer();
    if let Some(data_type) = type_of_field(field)
        && !is_of_no_column
    {
        return of_type(data_type);
    }
    match field.data_type() {
        ArrowType::Int8 | ArrowType::UInt8 => INT2,
        ArrowType::UInt16 => INT4,
        ArrowType::UInt32 | ArrowType::UInt64 => INT8,
        ArrowType::Float16 => FLOAT4,
        ArrowType::Decimal32(..) | ArrowType::Decimal64(..) | ArrowType::Decimal256(..) => NUMERIC,
        ArrowType::Binary | ArrowType::LargeBinary | ArrowType::FixedSizeBinary(_) => BYTEA,
        ArrowType::Date64 => DATE,
        ArrowType::Timestamp(_, None) => TIMESTAMP,
        ArrowType::Timestamp(_, Some(_)) => TIMESTAMPTZ,
        ArrowType::Time32(_) | ArrowType::Time64(_) => TIME,
        ArrowType::Interval(IntervalUnit::YearMonth | IntervalUnit::DayTime | IntervalUnit::MonthDayNano)
        | ArrowType::Duration(_) => INTERVAL,
        ArrowType::Dictionary(_, values) => of_field(&Field::new("", values.as_ref().clone(), true)),
        ArrowType::List(item)
        | ArrowType::LargeList(item)
        | ArrowType::FixedSizeList(item, _)
        | ArrowType::ListView(item)
        | ArrowType::LargeListView(item) => array_of(of_field(item)),
        ArrowType::Struct(_) => RECORD,
        _ => TEXT,
    }
}

/// The number of the type of the items of a vector of the catalog.
pub(super) fn item_of_vector(number: u32) -> Option<u32> {
    match number {
        INT2VECTOR => Some(INT2),
        OIDVECTOR => Some(OID),
        _ => None,
    }
}

/// Arrays of arrays have the type of the inner ones.
pub fn array_of(item: u32) -> u32 {
    if let Some(DataType::Enum(of)) = pg_types::made_type(item) {
        return of.array_number();
    }
    match pg_types::numbered(item).map_or(item, |known| known.array) {
        RECORD | RECORDS => RECORDS,
        array if pg_types::item_of(array).is_some() => array,
        _ => TEXT,
    }
}

/// The type of an array's items.
pub fn item_of(array: u32) -> Option<u32> {
    match array {
        RECORDS => Some(RECORD),
        array if let Some(DataType::Array(item)) = pg_types::made_type(array) => Some(of_type(item.data_type())),
        array => pg_types::item_of(array).map(|known| known.number),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn types_have_postgresqls_numbers() {
        let of = |arrow| of_field(&Field::new("", arrow, true));
        assert_eq!((of(ArrowType::Int32), of(ArrowType::UInt64), of(ArrowType::Null)), (INT4, INT8, TEXT));
        assert_eq!(of(ArrowType::List(Arc::new(Field::new("", ArrowType::Int64, true)))), 1016);
        assert_eq!((item_of(1016), item_of(INT4)), (Some(INT8), None));
        assert_eq!((array_of(BPCHAR), array_of(1014), item_of(1014)), (1014, 1014, Some(BPCHAR)));
        assert_eq!((array_of(RECORD), item_of(RECORDS)), (RECORDS, Some(RECORD)));
        assert_eq!((array_of(UNKNOWN), array_of(0), item_of(0)), (TEXT, TEXT, None));
        assert_eq!((parameter_type(0), parameter_type(114)), (None, Some(DataType::Json)));
    }
}
