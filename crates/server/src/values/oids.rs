//! The numbers by which PostgreSQL names types on the wire.
use arrow_schema::{DataType as ArrowType, Field, IntervalUnit};
use sql::Origin;
use types::DataType;

use crate::wire::output::ColumnDescription;

pub(crate) const BOOL: u32 = 16;
pub(crate) const BYTEA: u32 = 17;
pub(crate) const CHAR: u32 = 18;
pub(crate) const NAME: u32 = 19;
pub(crate) const INT8: u32 = 20;
pub(crate) const INT2: u32 = 21;
pub(crate) const INT2VECTOR: u32 = 22;
pub(crate) const INT4: u32 = 23;
pub(crate) const TEXT: u32 = 25;
pub(crate) const OID: u32 = 26;
pub(crate) const FLOAT4: u32 = 700;
pub(crate) const FLOAT8: u32 = 701;
pub(crate) const UNKNOWN: u32 = 705;
pub(crate) const BPCHAR: u32 = 1042;
pub(crate) const VARCHAR: u32 = 1043;
pub(crate) const DATE: u32 = 1082;
pub(crate) const TIME: u32 = 1083;
pub(crate) const TIMESTAMP: u32 = 1114;
pub(crate) const TIMESTAMPTZ: u32 = 1184;
pub(crate) const INTERVAL: u32 = 1186;
pub(crate) const NUMERIC: u32 = 1700;
pub(crate) const RECORD: u32 = 2249;
pub(crate) const UUID: u32 = 2950;

/// Types and the types of their arrays.
const ARRAYS: [(u32, u32); 18] = [
    (OID, 1028),
    (BOOL, 1000),
    (BYTEA, 1001),
    (INT8, 1016),
    (INT2, 1005),
    (INT4, 1007),
    (TEXT, 1009),
    (FLOAT4, 1021),
    (FLOAT8, 1022),
    (VARCHAR, 1015),
    (DATE, 1182),
    (TIME, 1183),
    (TIMESTAMP, 1115),
    (TIMESTAMPTZ, 1185),
    (INTERVAL, 1187),
    (NUMERIC, 1231),
    (RECORD, 2287),
    (UUID, 2951),
];

/// The number of a column's type.
pub(crate) fn of_type(data_type: DataType) -> u32 {
    match data_type {
        DataType::Boolean => BOOL,
        DataType::SmallInt => INT2,
        DataType::Integer => INT4,
        DataType::BigInt => INT8,
        DataType::Real => FLOAT4,
        DataType::Double => FLOAT8,
        DataType::Decimal { .. } => NUMERIC,
        DataType::Text { max_chars: None } => TEXT,
        DataType::Text { .. } => VARCHAR,
        DataType::Char { .. } => BPCHAR,
        DataType::Bytea => BYTEA,
        DataType::Date => DATE,
        DataType::Timestamp => TIMESTAMP,
        DataType::TimestampTz => TIMESTAMPTZ,
        DataType::Uuid => UUID,
    }
}

/// The type of a parameter that a client has given a number for; `None` where it is left to be found out.
pub(crate) fn parameter_type(oid: u32) -> Option<DataType> {
    Some(match oid {
        0 | UNKNOWN => return None,
        BOOL => DataType::Boolean,
        INT2 => DataType::SmallInt,
        INT4 => DataType::Integer,
        INT8 | OID => DataType::BigInt,
        FLOAT4 => DataType::Real,
        FLOAT8 => DataType::Double,
        NUMERIC => DataType::Decimal { precision: 38, scale: 10 },
        BYTEA => DataType::Bytea,
        DATE => DataType::Date,
        TIMESTAMP => DataType::Timestamp,
        TIMESTAMPTZ => DataType::TimestampTz,
        UUID => DataType::Uuid,
        // Types without a column type here travel as text.
        _ => DataType::TEXT,
    })
}

/// The number of the type of a query's column.
pub(crate) fn of_field(field: &Field) -> u32 {
    match sql::catalog_type(field) {
        Some("char") => return CHAR,
        Some(_) => return INT2VECTOR,
        None => {}
    }
    // Numbers without a sign come from functions of which PostgreSQL's give a bigint, like row_number().
    let is_of_no_column = field.data_type().is_null() || field.data_type().is_unsigned_integer();
    if let Some(data_type) = sql::type_of_field(field)
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

/// Arrays of arrays have the type of the inner ones.
pub(crate) fn array_of(item: u32) -> u32 {
    ARRAYS.iter().find(|(of, array)| *of == item || *array == item).map_or(TEXT, |(_, array)| *array)
}

/// The type of an array's items.
pub(crate) fn item_of(array: u32) -> Option<u32> {
    ARRAYS.iter().find(|(_, of)| *of == array).map(|(item, _)| *item)
}

fn size_of(oid: u32) -> i16 {
    match oid {
        BOOL | CHAR => 1,
        INT2 => 2,
        INT4 | FLOAT4 | DATE | OID => 4,
        INT8 | FLOAT8 | TIME | TIMESTAMP | TIMESTAMPTZ => 8,
        UUID | INTERVAL => 16,
        NAME => 64,
        _ => -1,
    }
}

/// A query's column as it is described.
pub(crate) fn describe(field: &Field, format: i16) -> ColumnDescription {
    let (oid, origin) = (of_field(field), Origin::of_field(field));
    let Origin { table, column, modifier } = origin;
    ColumnDescription { name: field.name().clone(), table, column, oid, size: size_of(oid), modifier, format }
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
        assert_eq!(describe(&Field::new("", ArrowType::Decimal128(10, 2), true), 0).modifier, -1);
        assert_eq!((parameter_type(0), parameter_type(114)), (None, Some(DataType::TEXT)));
    }
}
