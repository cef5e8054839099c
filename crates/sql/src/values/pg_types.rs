//! PostgreSQL's types: the numbers, names and sizes by which the catalog, messages and the wire name those that columns have, and
//! some that only queries have.
use engine::{ArrayItem, DataType, EnumType, GeometryKind, NetworkKind, RangeKind, schema_and_name};

use crate::interrupt::made_types;
use crate::syntax::identifiers::quoted;

macro_rules! numbers {
    ($($name:ident = $number:literal: $shown:literal,)*) => {
        $(
            #[doc = concat!("`", $shown, "`")]
            pub const $name: u32 = $number;
        )*
    };
}

numbers! {
    BOOL = 16: "boolean",
    BYTEA = 17: "bytea",
    NAME = 19: "name",
    INT8 = 20: "bigint",
    INT2 = 21: "smallint",
    INT4 = 23: "integer",
    TEXT = 25: "text",
    OID = 26: "oid",
    JSON = 114: "json",
    POINT = 600: "point",
    BOX = 603: "box",
    CIDR = 650: "cidr",
    FLOAT4 = 700: "real",
    FLOAT8 = 701: "double precision",
    UNKNOWN = 705: "unknown",
    CIRCLE = 718: "circle",
    INET = 869: "inet",
    BPCHAR = 1042: "character",
    VARCHAR = 1043: "character varying",
    DATE = 1082: "date",
    TIME = 1083: "time without time zone",
    TIMESTAMP = 1114: "timestamp without time zone",
    TIMESTAMPTZ = 1184: "timestamp with time zone",
    INTERVAL = 1186: "interval",
    TIMETZ = 1266: "time with time zone",
    NUMERIC = 1700: "numeric",
    UUID = 2950: "uuid",
    JSONB = 3802: "jsonb",
    INT4RANGE = 3904: "int4range",
    NUMRANGE = 3906: "numrange",
    TSRANGE = 3908: "tsrange",
    TSTZRANGE = 3910: "tstzrange",
    DATERANGE = 3912: "daterange",
    INT8RANGE = 3926: "int8range",
    CITEXT = 4_289_000_001: "citext",
    CITEXT_ARRAY = 4_289_000_002: "citext[]",
    HSTORE = 4_289_000_003: "hstore",
    HSTORE_ARRAY = 4_289_000_004: "hstore[]",
}

/// A type as PostgreSQL's catalog has it.
#[derive(Debug)]
pub struct PgType {
    /// its number
    pub number: u32,
    /// its internal name
    pub name: &'static str,
    /// its name in messages, without what it was made with
    pub shown: &'static str,
    /// bytes of a value, -1 if these differ
    pub length: i16,
    /// the kind of type
    pub category: &'static str,
    /// the number of its arrays, or 0
    pub array: u32,
    /// the type of columns and parameters that takes its values; `None` where they travel as text
    pub column: Option<DataType>,
}

const fn named(
    (number, array): (u32, u32),
    name: &'static str,
    shown: &'static str,
    length: i16,
    category: &'static str,
    column: Option<DataType>,
) -> PgType {
    PgType { number, name, shown, length, category, array, column }
}

/// All types that are known here.
pub static TYPES: [PgType; 36] = [
    named((BOOL, 1000), "bool", "boolean", 1, "B", Some(DataType::Boolean)),
    named((BYTEA, 1001), "bytea", "bytea", -1, "U", Some(DataType::Bytea)),
    named((NAME, 1003), "name", "name", 64, "S", None),
    named((INT8, 1016), "int8", "bigint", 8, "N", Some(DataType::BigInt)),
    named((INT2, 1005), "int2", "smallint", 2, "N", Some(DataType::SmallInt)),
    named((INT4, 1007), "int4", "integer", 4, "N", Some(DataType::Integer)),
    named((TEXT, 1009), "text", "text", -1, "S", Some(DataType::TEXT)),
    named((OID, 1028), "oid", "oid", 4, "N", Some(DataType::BigInt)),
    named((JSON, 199), "json", "json", -1, "U", Some(DataType::Json)),
    named((FLOAT4, 1021), "float4", "real", 4, "N", Some(DataType::Real)),
    named((FLOAT8, 1022), "float8", "double precision", 8, "N", Some(DataType::Double)),
    named((UNKNOWN, 0), "unknown", "unknown", -2, "X", None),
    named((BPCHAR, 1014), "bpchar", "character", -1, "S", None),
    named((VARCHAR, 1015), "varchar", "character varying", -1, "S", None),
    named((DATE, 1182), "date", "date", 4, "D", Some(DataType::Date)),
    named((TIME, 1183), "time", "time without time zone", 8, "D", Some(DataType::Time)),
    named((TIMESTAMP, 1115), "timestamp", "timestamp without time zone", 8, "D", Some(DataType::Timestamp)),
    named((TIMESTAMPTZ, 1185), "timestamptz", "timestamp with time zone", 8, "D", Some(DataType::TimestampTz)),
    named((TIMETZ, 1270), "timetz", "time with time zone", 12, "D", Some(DataType::TimeTz)),
    named((INTERVAL, 1187), "interval", "interval", 16, "T", Some(DataType::Interval)),
    named((NUMERIC, 1231), "numeric", "numeric", -1, "N", Some(DataType::Numeric)),
    named((UUID, 2951), "uuid", "uuid", 16, "U", Some(DataType::Uuid)),
    named((JSONB, 3807), "jsonb", "jsonb", -1, "U", Some(DataType::Jsonb)),
    shape((POINT, 1017), "point", 16, GeometryKind::Point),
    shape((BOX, 1020), "box", 32, GeometryKind::Box),
    shape((CIRCLE, 719), "circle", 24, GeometryKind::Circle),
    network((INET, 1041), "inet", NetworkKind::Inet),
    network((CIDR, 651), "cidr", NetworkKind::Cidr),
    range((INT4RANGE, 3905), "int4range", RangeKind::Int4),
    range((NUMRANGE, 3907), "numrange", RangeKind::Num),
    range((TSRANGE, 3909), "tsrange", RangeKind::Ts),
    range((TSTZRANGE, 3911), "tstzrange", RangeKind::TsTz),
    range((DATERANGE, 3913), "daterange", RangeKind::Date),
    range((INT8RANGE, 3927), "int8range", RangeKind::Int8),
    named((CITEXT, CITEXT_ARRAY), "citext", "citext", -1, "S", Some(DataType::CITEXT)),
    named((HSTORE, HSTORE_ARRAY), "hstore", "hstore", -1, "U", Some(DataType::HSTORE)),
];

/// The category of range types.
pub(crate) const RANGES: &str = "R";

const fn range(numbers: (u32, u32), name: &'static str, kind: RangeKind) -> PgType {
    named(numbers, name, name, -1, RANGES, Some(DataType::Range(kind)))
}

const fn shape(numbers: (u32, u32), name: &'static str, length: i16, kind: GeometryKind) -> PgType {
    named(numbers, name, name, length, "G", Some(DataType::Geometry(kind)))
}

const fn network(numbers: (u32, u32), name: &'static str, kind: NetworkKind) -> PgType {
    named(numbers, name, name, -1, "I", Some(DataType::Network(kind)))
}

/// An array of such items.
const fn array(number: u32, name: &'static str, shown: &'static str) -> PgType {
    named((number, 0), name, shown, -1, "A", None)
}

/// The arrays of the types that columns have; as parameters they travel as text.
static ARRAYS: [PgType; 34] = [
    array(1000, "_bool", "boolean[]"),
    array(1001, "_bytea", "bytea[]"),
    array(1016, "_int8", "bigint[]"),
    array(1005, "_int2", "smallint[]"),
    array(1007, "_int4", "integer[]"),
    array(1009, "_text", "text[]"),
    array(199, "_json", "json[]"),
    array(1021, "_float4", "real[]"),
    array(1022, "_float8", "double precision[]"),
    array(1014, "_bpchar", "character[]"),
    array(1015, "_varchar", "character varying[]"),
    array(1182, "_date", "date[]"),
    array(1183, "_time", "time without time zone[]"),
    array(1115, "_timestamp", "timestamp without time zone[]"),
    array(1185, "_timestamptz", "timestamp with time zone[]"),
    array(1270, "_timetz", "time with time zone[]"),
    array(1187, "_interval", "interval[]"),
    array(1231, "_numeric", "numeric[]"),
    array(2951, "_uuid", "uuid[]"),
    array(3807, "_jsonb", "jsonb[]"),
    array(1003, "_name", "name[]"),
    array(1017, "_point", "point[]"),
    array(1020, "_box", "box[]"),
    array(719, "_circle", "circle[]"),
    array(1041, "_inet", "inet[]"),
    array(651, "_cidr", "cidr[]"),
    array(3905, "_int4range", "int4range[]"),
    array(3907, "_numrange", "numrange[]"),
    array(3909, "_tsrange", "tsrange[]"),
    array(3911, "_tstzrange", "tstzrange[]"),
    array(3913, "_daterange", "daterange[]"),
    array(3927, "_int8range", "int8range[]"),
    array(CITEXT_ARRAY, "_citext", "citext[]"),
    array(HSTORE_ARRAY, "_hstore", "hstore[]"),
];

/// What all enum types have in common; their names and numbers are those of the user.
static ENUM: PgType = named((0, 0), "enum", "enum", 4, "E", None);
static ENUM_ARRAY: PgType = array(0, "_enum", "enum[]");

/// The number of a column's type.
pub fn number_of(data_type: DataType) -> u32 {
    match data_type {
        DataType::Boolean => BOOL,
        DataType::SmallInt => INT2,
        DataType::Integer => INT4,
        DataType::BigInt => INT8,
        DataType::Real => FLOAT4,
        DataType::Double => FLOAT8,
        DataType::Decimal { .. } | DataType::Numeric => NUMERIC,
        DataType::Text { max_chars: None } => TEXT,
        DataType::CITEXT => CITEXT,
        DataType::HSTORE => HSTORE,
        DataType::Text { max_chars: Some(_) } => VARCHAR,
        DataType::Char { .. } => BPCHAR,
        DataType::Bytea => BYTEA,
        DataType::Date => DATE,
        DataType::Timestamp => TIMESTAMP,
        DataType::TimestampTz => TIMESTAMPTZ,
        DataType::Uuid => UUID,
        DataType::Json => JSON,
        DataType::Jsonb => JSONB,
        DataType::Time => TIME,
        DataType::TimeTz => TIMETZ,
        DataType::TimeDigits { of, .. } => number_of(of.whole()),
        DataType::Interval => INTERVAL,
        DataType::Range(RangeKind::Int4) => INT4RANGE,
        DataType::Range(RangeKind::Int8) => INT8RANGE,
        DataType::Range(RangeKind::Num) => NUMRANGE,
        DataType::Range(RangeKind::Date) => DATERANGE,
        DataType::Range(RangeKind::Ts) => TSRANGE,
        DataType::Range(RangeKind::TsTz) => TSTZRANGE,
        DataType::Geometry(GeometryKind::Point) => POINT,
        DataType::Geometry(GeometryKind::Box) => BOX,
        DataType::Geometry(GeometryKind::Circle) => CIRCLE,
        DataType::Network(NetworkKind::Inet) => INET,
        DataType::Network(NetworkKind::Cidr) => CIDR,
        DataType::Enum(of) => of.number(),
        DataType::Array(ArrayItem::Enum(of)) => of.array_number(),
        DataType::Array(item) => of_column(item.data_type()).array,
    }
}

/// The column type with this number, if a user has made it.
pub fn made_type(number: u32) -> Option<DataType> {
    let (of, is_array) = EnumType::numbered(number)?;
    Some(if is_array { DataType::Array(ArrayItem::Enum(of)) } else { DataType::Enum(of) })
}

/// PostgreSQL's name of a column's type in messages, without what it was made with: with its schema, unless the statement finds it
/// without.
pub fn shown_name(data_type: DataType) -> String {
    spelled_by(data_type, &made_types::is_found)
}

/// The name of a column's type in a text that is kept: with its schema, unless that is `public`.
pub(crate) fn kept_name(data_type: DataType) -> String {
    spelled_by(data_type, &|known| schema_and_name(known).0 == engine::PUBLIC_SCHEMA)
}

fn spelled_by(data_type: DataType, is_found: &dyn Fn(&str) -> bool) -> String {
    let spelled = |of: EnumType| {
        let known = of.name();
        match (schema_and_name(&known), is_found(&known)) {
            ((_, name), true) => quoted(name),
            ((schema, name), false) => format!("{}.{}", quoted(schema), quoted(name)),
        }
    };
    match data_type {
        DataType::Enum(of) => spelled(of),
        DataType::Array(ArrayItem::Enum(of)) => format!("{}[]", spelled(of)),
        other => of_column(other).shown.to_owned(),
    }
}

/// The schema and the internal name of a column's type, as `pg_type` has them.
pub(crate) fn internal_name(data_type: DataType) -> (String, String) {
    let made = |of: EnumType, prefix: &str| {
        let name = of.name();
        let (schema, name) = schema_and_name(&name);
        (schema.to_owned(), format!("{prefix}{name}"))
    };
    match data_type {
        DataType::Enum(of) => made(of, ""),
        DataType::Array(ArrayItem::Enum(of)) => made(of, "_"),
        other if extension_of(number_of(other)).is_some() => {
            (engine::PUBLIC_SCHEMA.to_owned(), of_column(other).name.to_owned())
        }
        other => ("pg_catalog".to_owned(), of_column(other).name.to_owned()),
    }
}

/// The extension that brings the type with this number to PostgreSQL.
pub(crate) fn extension_of(number: u32) -> Option<&'static str> {
    match number {
        CITEXT | CITEXT_ARRAY => Some("citext"),
        HSTORE | HSTORE_ARRAY => Some("hstore"),
        _ => None,
    }
}

/// The type with this number.
pub fn numbered(number: u32) -> Option<&'static PgType> {
    TYPES.iter().find(|known| known.number == number)
}

/// The type of which arrays have this number.
pub fn item_of(array: u32) -> Option<&'static PgType> {
    TYPES.iter().find(|known| known.array == array && array != 0)
}

/// PostgreSQL's type of a column.
pub(crate) fn of_column(data_type: DataType) -> &'static PgType {
    match data_type {
        DataType::Enum(_) => return &ENUM,
        DataType::Array(ArrayItem::Enum(_)) => return &ENUM_ARRAY,
        _ => {}
    }
    let number = number_of(data_type);
    let known = numbered(number).or_else(|| ARRAYS.iter().find(|known| known.number == number));
    known.expect("the type of each column is in the list")
}

/// What `information_schema` tells of the width of a type.
pub(crate) enum Measure {
    /// Bits of a number; the digits behind its point where these are fixed.
    Bits(u8, Option<u8>),
    /// Decimal digits, and those behind the point.
    Digits(u8, i8),
    /// Characters at most, where there is a limit.
    Characters(Option<u32>),
    /// Digits behind the seconds.
    Seconds(u8),
    /// It has none.
    None,
}

/// What is told of the width of a column's type.
pub(crate) fn measure_of(data_type: DataType) -> Measure {
    match data_type {
        DataType::SmallInt => Measure::Bits(16, Some(0)),
        DataType::Integer => Measure::Bits(32, Some(0)),
        DataType::BigInt => Measure::Bits(64, Some(0)),
        DataType::Real => Measure::Bits(24, None),
        DataType::Double => Measure::Bits(53, None),
        DataType::Decimal { precision, scale } => Measure::Digits(precision, scale),
        DataType::CITEXT | DataType::HSTORE => Measure::None,
        DataType::VARCHAR => Measure::Characters(None),
        DataType::Text { max_chars } => Measure::Characters(max_chars),
        DataType::Char { chars } => Measure::Characters(Some(chars)),
        DataType::Date => Measure::Seconds(0),
        DataType::TimeDigits { digits, .. } => Measure::Seconds(digits),
        DataType::Timestamp | DataType::TimestampTz | DataType::Time | DataType::TimeTz | DataType::Interval => {
            Measure::Seconds(6)
        }
        DataType::Boolean
        | DataType::Bytea
        | DataType::Numeric
        | DataType::Enum(_)
        | DataType::Uuid
        | DataType::Json
        | DataType::Jsonb
        | DataType::Range(_)
        | DataType::Geometry(_)
        | DataType::Network(_)
        | DataType::Array(_) => Measure::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_arrays_are_those_of_one_type() {
        for known in &TYPES {
            assert_eq!(numbered(known.number).map(|found| found.name), Some(known.name));
            if let Some(found) = item_of(known.array) {
                assert_eq!(found.number, known.number);
            }
            if let Some(column) = known.column.filter(|_| known.number != OID) {
                assert_eq!(number_of(column), known.number, "{}", known.name);
            }
        }
        assert!(item_of(0).is_none() && numbered(0).is_none());
    }
}
