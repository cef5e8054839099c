//! Types as the format strings of Arrow's C data interface, both ways.
use std::sync::Arc;

use arrow_schema::{DataType, Field, IntervalUnit, TimeUnit};

/// The format of a type; of a dictionary that of its keys. `None` where values of the type are not passed on.
pub(crate) fn format_of(data_type: &DataType) -> Option<String> {
    let plain = |format: &str| Some(format.to_owned());
    match data_type {
        DataType::Timestamp(unit, zone) => Some(format!("ts{}:{}", unit_letter(*unit), zone.as_deref().unwrap_or(""))),
        DataType::Duration(unit) => Some(format!("tD{}", unit_letter(*unit))),
        DataType::Time32(unit) | DataType::Time64(unit) => Some(format!("tt{}", unit_letter(*unit))),
        DataType::Interval(IntervalUnit::YearMonth) => plain("tiM"),
        DataType::Interval(IntervalUnit::DayTime) => plain("tiD"),
        DataType::Interval(IntervalUnit::MonthDayNano) => plain("tin"),
        DataType::Decimal32(precision, scale) => Some(format!("d:{precision},{scale},32")),
        DataType::Decimal64(precision, scale) => Some(format!("d:{precision},{scale},64")),
        DataType::Decimal128(precision, scale) => Some(format!("d:{precision},{scale}")),
        DataType::Decimal256(precision, scale) => Some(format!("d:{precision},{scale},256")),
        DataType::FixedSizeBinary(width) => Some(format!("w:{width}")),
        DataType::FixedSizeList(_, width) => Some(format!("+w:{width}")),
        DataType::List(_) => plain("+l"),
        DataType::LargeList(_) => plain("+L"),
        DataType::Struct(_) => plain("+s"),
        DataType::Dictionary(keys, _) => format_of(keys),
        other => SIMPLE.iter().find(|(known, _)| known == other).and_then(|(_, format)| plain(format)),
    }
}

/// Types that need nothing but a name.
const SIMPLE: [(DataType, &str); 20] = [
    (DataType::Null, "n"),
    (DataType::Boolean, "b"),
    (DataType::Int8, "c"),
    (DataType::UInt8, "C"),
    (DataType::Int16, "s"),
    (DataType::UInt16, "S"),
    (DataType::Int32, "i"),
    (DataType::UInt32, "I"),
    (DataType::Int64, "l"),
    (DataType::UInt64, "L"),
    (DataType::Float16, "e"),
    (DataType::Float32, "f"),
    (DataType::Float64, "g"),
    (DataType::Binary, "z"),
    (DataType::LargeBinary, "Z"),
    (DataType::BinaryView, "vz"),
    (DataType::Utf8, "u"),
    (DataType::LargeUtf8, "U"),
    (DataType::Utf8View, "vu"),
    (DataType::Date32, "tdD"),
];

fn unit_letter(unit: TimeUnit) -> char {
    match unit {
        TimeUnit::Second => 's',
        TimeUnit::Millisecond => 'm',
        TimeUnit::Microsecond => 'u',
        TimeUnit::Nanosecond => 'n',
    }
}

fn unit_of(letter: &str) -> Option<TimeUnit> {
    Some(match letter {
        "s" => TimeUnit::Second,
        "m" => TimeUnit::Millisecond,
        "u" => TimeUnit::Microsecond,
        "n" => TimeUnit::Nanosecond,
        _ => return None,
    })
}

/// The type that a format with these children stands for; `None` where it is not taken.
pub(crate) fn type_of(format: &str, children: Vec<Field>) -> Option<DataType> {
    if let Some((known, _)) = SIMPLE.iter().find(|(_, known)| *known == format) {
        return Some(known.clone());
    }
    if let Some(nested) = format.strip_prefix('+') {
        return nested_type(nested, children);
    }
    if let Some(digits) = format.strip_prefix("d:") {
        return decimal(digits);
    }
    if let Some(width) = format.strip_prefix("w:") {
        return width.parse().ok().map(DataType::FixedSizeBinary);
    }
    if let Some(of_time) = format.strip_prefix("ts") {
        let (unit, zone) = of_time.split_once(':')?;
        return Some(DataType::Timestamp(unit_of(unit)?, (!zone.is_empty()).then(|| Arc::from(zone))));
    }
    if let Some(unit) = format.strip_prefix("tt") {
        let unit = unit_of(unit)?;
        let is_short = matches!(unit, TimeUnit::Second | TimeUnit::Millisecond);
        return Some(if is_short { DataType::Time32(unit) } else { DataType::Time64(unit) });
    }
    if let Some(unit) = format.strip_prefix("tD") {
        return unit_of(unit).map(DataType::Duration);
    }
    Some(match format {
        "tdm" => DataType::Date64,
        "tiM" => DataType::Interval(IntervalUnit::YearMonth),
        "tiD" => DataType::Interval(IntervalUnit::DayTime),
        "tin" => DataType::Interval(IntervalUnit::MonthDayNano),
        _ => return None,
    })
}

fn nested_type(nested: &str, mut children: Vec<Field>) -> Option<DataType> {
    if nested == "s" {
        return Some(DataType::Struct(children.into()));
    }
    let item = Arc::new(children.pop().filter(|_| children.is_empty())?);
    Some(match nested {
        "l" => DataType::List(item),
        "L" => DataType::LargeList(item),
        _ => DataType::FixedSizeList(item, nested.strip_prefix("w:")?.parse().ok()?),
    })
}

fn decimal(digits: &str) -> Option<DataType> {
    let mut numbers = digits.split(',');
    let (precision, scale) = (numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?);
    Some(match numbers.next().unwrap_or("128") {
        "32" => DataType::Decimal32(precision, scale),
        "64" => DataType::Decimal64(precision, scale),
        "128" => DataType::Decimal128(precision, scale),
        "256" => DataType::Decimal256(precision, scale),
        _ => return None,
    })
}
