//! The column types of lstore, with PostgreSQL's names, and the Arrow type that each one travels as.
use std::fmt;
use std::sync::Arc;

use arrow_schema::{DataType as ArrowType, Field, IntervalUnit, TimeUnit};
use serde::{Deserialize, Serialize};

use crate::{EnumType, GeometryKind, IntervalFields, NetworkKind, RangeKind, TimeKind, ZONED_TIME_BYTES};

/// The type of a column.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum DataType {
    /// `boolean`
    Boolean,
    /// `smallint`, 16 bits
    SmallInt,
    /// `integer`, 32 bits
    Integer,
    /// `bigint`, 64 bits
    BigInt,
    /// `real`, IEEE 754 single
    Real,
    /// `double precision`, IEEE 754 double
    Double,
    /// `numeric(precision, scale)`, exact, 1..=38 digits of which `scale` after the point
    Decimal {
        /// digits in all, 1..=38
        precision: u8,
        /// digits after the decimal point, 0..=precision
        scale: i8,
    },
    /// `numeric` without limits; see [`Numeric`](crate::Numeric)
    Numeric,
    /// `text`, or `varchar(n)` where `max_chars` is given, or one of the constants
    Text {
        /// the longest value allowed, in characters
        max_chars: Option<u32>,
    },
    /// `char(n)`: its blanks at the end mean nothing, are not kept, and are shown up to this length
    Char {
        /// the length of every value as it is shown, in characters
        chars: u32,
    },
    /// `bytea`
    Bytea,
    /// `date`, days since 1970-01-01
    Date,
    /// `timestamp`, microseconds since 1970-01-01 00:00 in no particular zone
    Timestamp,
    /// `timestamptz`, microseconds since 1970-01-01 00:00 UTC
    TimestampTz,
    /// `uuid`, 16 bytes; travels in Arrow as its canonical lower-case text
    Uuid,
    /// `json`, its text as it was written
    Json,
    /// `jsonb`, the value alone; see [`Jsonb`](crate::json::Jsonb)
    Jsonb,
    /// `time`, microseconds since midnight
    Time,
    /// `timetz`; see [`ZonedTime`](crate::ZonedTime)
    TimeTz,
    /// `timestamp(p)`, `timestamptz(p)`, `time(p)`, `timetz(p)`, `interval(p)` or `interval day to hour` and its like: values of the kind,
    /// whose seconds keep so many digits
    TimeDigits {
        /// which of them
        of: TimeKind,
        /// digits behind the point, 0..=6
        digits: u8,
    },
    /// `interval`; see [`Interval`](crate::Interval)
    Interval,
    /// an enum type, its values as the positions of their labels; see [`EnumType`]
    Enum(EnumType),
    /// a range type; see [`RangeValue`](crate::RangeValue)
    Range(RangeKind),
    /// a geometric type; see [`Geometry`](crate::Geometry)
    Geometry(GeometryKind),
    /// `inet` or `cidr`; see [`Network`](crate::Network)
    Network(NetworkKind),
    /// an array of one dimension; see [`ArrayValue`](crate::ArrayValue)
    Array(ArrayItem),
}

impl DataType {
    /// `text` of any length.
    pub const TEXT: DataType = DataType::Text { max_chars: None };

    /// `varchar` of any length, which is `text` but for its name.
    pub const VARCHAR: DataType = DataType::Text { max_chars: Some(u32::MAX) };

    /// `citext`: a `text` whose letters are compared whatever their case.
    pub const CITEXT: DataType = DataType::Text { max_chars: Some(u32::MAX - 1) };

    /// `hstore`: pairs of texts, kept as their text in one form.
    pub const HSTORE: DataType = DataType::Text { max_chars: Some(u32::MAX - 2) };

    /// Whether it says how many characters a text has at most.
    pub fn has_length(self) -> bool {
        ![DataType::VARCHAR, DataType::CITEXT, DataType::HSTORE].contains(&self)
            && matches!(self, DataType::Char { .. } | DataType::Text { max_chars: Some(_) })
    }

    /// The Arrow type of arrays of this column in queries, which is one for each type but for those of texts and of `uuid`.
    pub fn to_arrow(self) -> ArrowType {
        match self {
            DataType::Boolean => ArrowType::Boolean,
            DataType::SmallInt => ArrowType::Int16,
            DataType::Integer => ArrowType::Int32,
            DataType::BigInt => ArrowType::Int64,
            DataType::Real => ArrowType::Float32,
            DataType::Double => ArrowType::Float64,
            DataType::Decimal { precision, scale } => ArrowType::Decimal128(precision, scale),
            DataType::Numeric => ArrowType::Binary,
            DataType::Text { .. } | DataType::Char { .. } | DataType::Uuid => ArrowType::Utf8View,
            DataType::Bytea => ArrowType::BinaryView,
            DataType::Date => ArrowType::Date32,
            DataType::Timestamp => ArrowType::Timestamp(TimeUnit::Microsecond, None),
            DataType::TimestampTz => ArrowType::Timestamp(TimeUnit::Microsecond, Some(Arc::from("UTC"))),
            DataType::Json => ArrowType::LargeUtf8,
            DataType::Jsonb => ArrowType::LargeBinary,
            DataType::Time => ArrowType::Time64(TimeUnit::Microsecond),
            DataType::TimeTz => fixed(ZONED_TIME_BYTES),
            DataType::TimeDigits { of, .. } => of.whole().to_arrow(),
            DataType::Interval => ArrowType::Interval(IntervalUnit::MonthDayNano),
            DataType::Enum(of) => ArrowType::Timestamp(TimeUnit::Second, Some(Arc::from(of.zone()))),
            DataType::Range(kind) => fixed(kind.width()),
            DataType::Geometry(kind) => fixed(kind.width()),
            DataType::Network(kind) => fixed(kind.width()),
            DataType::Array(item) => {
                ArrowType::List(Arc::new(Field::new_list_field(item.data_type().to_arrow(), true)))
            }
        }
    }

    /// The Arrow type of arrays in which tables take and give values of this column.
    pub fn to_stored_arrow(self) -> ArrowType {
        match self {
            DataType::Json => ArrowType::Utf8View,
            DataType::Jsonb | DataType::Interval | DataType::Numeric | DataType::Array(_) => ArrowType::BinaryView,
            DataType::TimeDigits { of, .. } => of.whole().to_stored_arrow(),
            DataType::TimeTz | DataType::Range(_) | DataType::Geometry(_) | DataType::Network(_) => {
                ArrowType::BinaryView
            }
            other => other.to_arrow(),
        }
    }

    /// The column type that best holds values of an Arrow type; `None` where there is none (lists, structs, ...).
    pub fn from_arrow(arrow: &ArrowType) -> Option<DataType> {
        Some(match arrow {
            ArrowType::Boolean => DataType::Boolean,
            ArrowType::Int8 | ArrowType::UInt8 | ArrowType::Int16 => DataType::SmallInt,
            ArrowType::UInt16 | ArrowType::Int32 => DataType::Integer,
            ArrowType::UInt32 | ArrowType::Int64 => DataType::BigInt,
            ArrowType::UInt64 => DataType::Decimal { precision: 20, scale: 0 },
            ArrowType::Float16 | ArrowType::Float32 => DataType::Real,
            ArrowType::Float64 => DataType::Double,
            ArrowType::Decimal32(precision, scale)
            | ArrowType::Decimal64(precision, scale)
            | ArrowType::Decimal128(precision, scale)
                if *scale >= 0 =>
            {
                DataType::Decimal { precision: *precision, scale: *scale }
            }
            ArrowType::Utf8 | ArrowType::Utf8View | ArrowType::Null => DataType::TEXT,
            ArrowType::FixedSizeBinary(width) if let Some(of) = DataType::of_width(*width) => of,
            ArrowType::Binary => DataType::Numeric,
            ArrowType::BinaryView | ArrowType::FixedSizeBinary(_) => DataType::Bytea,
            ArrowType::LargeUtf8 => DataType::Json,
            ArrowType::LargeBinary => DataType::Jsonb,
            ArrowType::Time32(_) | ArrowType::Time64(_) => DataType::Time,
            ArrowType::Interval(_) | ArrowType::Duration(_) => DataType::Interval,
            ArrowType::Date32 | ArrowType::Date64 => DataType::Date,
            ArrowType::Timestamp(_, None) => DataType::Timestamp,
            ArrowType::Timestamp(TimeUnit::Second, Some(zone)) if let Some(of) = EnumType::of_zone(zone) => {
                DataType::Enum(of)
            }
            ArrowType::Timestamp(_, Some(_)) => DataType::TimestampTz,
            ArrowType::List(item) | ArrowType::LargeList(item) | ArrowType::FixedSizeList(item, _) => {
                DataType::Array(ArrayItem::of(DataType::from_arrow(item.data_type())?)?)
            }
            ArrowType::Dictionary(_, values) => return DataType::from_arrow(values),
            _ => return None,
        })
    }

    /// The type of times with their zone, ranges, shapes or addresses that are kept in so many bytes.
    fn of_width(width: i32) -> Option<DataType> {
        let is = |own: usize| usize::try_from(width) == Ok(own);
        let range = RangeKind::ALL.into_iter().find(|kind| is(kind.width())).map(DataType::Range);
        let shape = || GeometryKind::ALL.into_iter().find(|kind| is(kind.width())).map(DataType::Geometry);
        let network = || NetworkKind::ALL.into_iter().find(|kind| is(kind.width())).map(DataType::Network);
        let time = || is(ZONED_TIME_BYTES).then_some(DataType::TimeTz);
        range.or_else(shape).or_else(network).or_else(time)
    }

    /// The type with all digits of a second, of one that keeps fewer; any other as it is.
    #[inline]
    pub fn whole(self) -> DataType {
        match self {
            DataType::TimeDigits { of, .. } => of.whole(),
            other => other,
        }
    }

    /// Whether its values are no text, and Arrow has them as text.
    #[inline]
    pub fn travels_as_text(self) -> bool {
        self == DataType::Uuid
    }

    /// Whether its values are whole numbers of a fixed width.
    #[inline]
    pub fn is_integer(self) -> bool {
        matches!(self, DataType::SmallInt | DataType::Integer | DataType::BigInt)
    }

    /// Whether values of this type may be (part of) a primary key: a `json` and a shape may not, as they have no order.
    pub fn is_key(self) -> bool {
        match self {
            DataType::Array(item) => item.data_type().is_key(),
            other => !matches!(other, DataType::Json | DataType::Geometry(_)),
        }
    }
}

impl TimeKind {
    /// The type that keeps all digits.
    pub fn whole(self) -> DataType {
        match self {
            TimeKind::Timestamp => DataType::Timestamp,
            TimeKind::TimestampTz => DataType::TimestampTz,
            TimeKind::Time => DataType::Time,
            TimeKind::TimeTz => DataType::TimeTz,
            TimeKind::Interval { .. } => DataType::Interval,
        }
    }

    /// The kind of a type that keeps all digits; `None` of all others.
    pub fn of(data_type: DataType) -> Option<TimeKind> {
        TimeKind::ALL.into_iter().find(|kind| kind.whole() == data_type)
    }
}

/// Values of so many bytes each.
fn fixed(width: usize) -> ArrowType {
    ArrowType::FixedSizeBinary(i32::try_from(width).unwrap_or(i32::MAX))
}

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DataType::Boolean => f.write_str("boolean"),
            DataType::SmallInt => f.write_str("smallint"),
            DataType::Integer => f.write_str("integer"),
            DataType::BigInt => f.write_str("bigint"),
            DataType::Real => f.write_str("real"),
            DataType::Double => f.write_str("double precision"),
            DataType::Decimal { precision, scale } => write!(f, "numeric({precision},{scale})"),
            DataType::Numeric => f.write_str("numeric"),
            DataType::Text { max_chars: None } => f.write_str("text"),
            varchar if *varchar == DataType::VARCHAR => f.write_str("varchar"),
            &DataType::CITEXT => f.write_str("citext"),
            &DataType::HSTORE => f.write_str("hstore"),
            DataType::Text { max_chars: Some(n) } => write!(f, "varchar({n})"),
            DataType::Char { chars } => write!(f, "char({chars})"),
            DataType::Bytea => f.write_str("bytea"),
            DataType::Date => f.write_str("date"),
            DataType::Timestamp => f.write_str("timestamp"),
            DataType::TimestampTz => f.write_str("timestamptz"),
            DataType::Uuid => f.write_str("uuid"),
            DataType::Json => f.write_str("json"),
            DataType::Jsonb => f.write_str("jsonb"),
            DataType::Time => f.write_str("time"),
            DataType::TimeTz => f.write_str("timetz"),
            DataType::TimeDigits { of: TimeKind::Interval { fields, says_digits }, digits } => {
                f.write_str("interval")?;
                if *fields != IntervalFields::All {
                    write!(f, " {}", fields.name())?;
                }
                if *says_digits { write!(f, "({digits})") } else { Ok(()) }
            }
            DataType::TimeDigits { of, digits } => write!(f, "{}({digits})", of.whole()),
            DataType::Interval => f.write_str("interval"),
            DataType::Enum(of) => write!(f, "{}", of.name()),
            DataType::Range(kind) => f.write_str(kind.name()),
            DataType::Geometry(kind) => f.write_str(kind.name()),
            DataType::Network(kind) => f.write_str(kind.name()),
            DataType::Array(item) => write!(f, "{}[]", item.data_type()),
        }
    }
}

macro_rules! items {
    ($($name:ident),* $(,)?) => {
        /// The type of an array's items: any type of a column but another array.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
        #[allow(missing_docs, reason = "each is the type of its name")]
        pub enum ArrayItem {
            $($name,)*
            Decimal {
                /// digits in all
                precision: u8,
                /// digits after the decimal point
                scale: i8,
            },
            Text {
                /// the longest value allowed, in characters
                max_chars: Option<u32>,
            },
            Char {
                /// the length of every value as it is shown, in characters
                chars: u32,
            },
            Enum(EnumType),
            Range(RangeKind),
            Geometry(GeometryKind),
            Network(NetworkKind),
        }

        impl ArrayItem {
            /// The type of items; `None` if there are no arrays of it.
            pub fn of(data_type: DataType) -> Option<ArrayItem> {
                Some(match data_type {
                    $(DataType::$name => ArrayItem::$name,)*
                    DataType::Decimal { precision, scale } => ArrayItem::Decimal { precision, scale },
                    DataType::Text { max_chars } => ArrayItem::Text { max_chars },
                    DataType::Char { chars } => ArrayItem::Char { chars },
                    DataType::Enum(of) => ArrayItem::Enum(of),
                    DataType::Range(kind) => ArrayItem::Range(kind),
                    DataType::Geometry(kind) => ArrayItem::Geometry(kind),
                    DataType::Network(kind) => ArrayItem::Network(kind),
                    // Items keep all digits.
                    DataType::TimeDigits { of, .. } => return ArrayItem::of(of.whole()),
                    DataType::Array(_) => return None,
                })
            }

            /// The type of a column of such values.
            pub fn data_type(self) -> DataType {
                match self {
                    $(ArrayItem::$name => DataType::$name,)*
                    ArrayItem::Decimal { precision, scale } => DataType::Decimal { precision, scale },
                    ArrayItem::Text { max_chars } => DataType::Text { max_chars },
                    ArrayItem::Char { chars } => DataType::Char { chars },
                    ArrayItem::Enum(of) => DataType::Enum(of),
                    ArrayItem::Range(kind) => DataType::Range(kind),
                    ArrayItem::Geometry(kind) => DataType::Geometry(kind),
                    ArrayItem::Network(kind) => DataType::Network(kind),
                }
            }
        }
    };
}

items! {
    Boolean, SmallInt, Integer, BigInt, Real, Double, Numeric, Bytea, Date, Timestamp, TimestampTz, Uuid, Json, Jsonb, Time, TimeTz,
    Interval,
}

impl ArrayItem {
    /// Texts of any length.
    pub const TEXT: ArrayItem = ArrayItem::Text { max_chars: None };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_comes_back_from_its_arrow_type() {
        let all = [
            DataType::Boolean,
            DataType::SmallInt,
            DataType::Integer,
            DataType::BigInt,
            DataType::Real,
            DataType::Double,
            DataType::Decimal { precision: 15, scale: 2 },
            DataType::Numeric,
            DataType::TEXT,
            DataType::Bytea,
            DataType::Date,
            DataType::Timestamp,
            DataType::TimestampTz,
            DataType::Json,
            DataType::Jsonb,
            DataType::Time,
            DataType::TimeTz,
            DataType::Interval,
            DataType::Enum(EnumType(7)),
            DataType::Array(ArrayItem::Enum(EnumType(7))),
            DataType::Array(ArrayItem::Integer),
            DataType::Array(ArrayItem::Network(NetworkKind::Cidr)),
        ];
        let ranges = RangeKind::ALL.map(DataType::Range);
        let shapes = GeometryKind::ALL.map(DataType::Geometry);
        let addresses = NetworkKind::ALL.map(DataType::Network);
        for data_type in all.into_iter().chain(ranges).chain(shapes).chain(addresses) {
            assert_eq!(DataType::from_arrow(&data_type.to_arrow()), Some(data_type), "{data_type}");
        }
    }
}
