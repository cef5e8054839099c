//! PostgreSQL's text form of values.
use std::fmt::Write;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Date64Type, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type, DecimalType,
    DurationMicrosecondType, Float16Type, Float32Type, Float64Type, Int64Type, IntervalDayTimeType,
    IntervalMonthDayNanoType, IntervalYearMonthType, TimestampMicrosecondType, TimestampSecondType,
};
use arrow_array::{Array, ArrayRef};
use arrow_cast::cast;
use arrow_schema::{DataType, IntervalUnit, TimeUnit};
use engine::json::Jsonb;
use engine::{
    EnumType, EnumValue, Geometry, GeometryKind, Network, Numeric, RangeValue, ZonedTime, double_text, real_text,
};

use crate::interrupt::session_zone;
use crate::values::date_form::{self, bound_text, date_text, moment_text, timestamp_text};
use crate::values::datetime::{MICROS_PER_DAY, format_time};

/// A sum may have a digit more than its type says, which Arrow would leave out.
const ALL_DIGITS: u8 = u8::MAX;

/// The text form that PostgreSQL gives the value in this row of `array`; `None` for NULL.
pub fn text_value(array: &dyn Array, row: usize) -> Option<String> {
    if array.is_null(row) || array.data_type() == &DataType::Null {
        return None;
    }
    Some(match array.data_type() {
        DataType::Boolean => if array.as_boolean().value(row) { "t" } else { "f" }.to_owned(),
        DataType::Int64 => array.as_primitive::<Int64Type>().value(row).to_string(),
        DataType::Float16 => real_text(array.as_primitive::<Float16Type>().value(row).into()),
        DataType::Float32 => real_text(array.as_primitive::<Float32Type>().value(row)),
        DataType::Float64 => double_text(array.as_primitive::<Float64Type>().value(row)),
        DataType::Decimal32(_, s) => {
            Decimal32Type::format_decimal(array.as_primitive::<Decimal32Type>().value(row), ALL_DIGITS, *s)
        }
        DataType::Decimal64(_, s) => {
            Decimal64Type::format_decimal(array.as_primitive::<Decimal64Type>().value(row), ALL_DIGITS, *s)
        }
        DataType::Decimal128(_, s) => {
            Decimal128Type::format_decimal(array.as_primitive::<Decimal128Type>().value(row), ALL_DIGITS, *s)
        }
        DataType::Decimal256(_, s) => {
            Decimal256Type::format_decimal(array.as_primitive::<Decimal256Type>().value(row), ALL_DIGITS, *s)
        }
        DataType::Utf8 => array.as_string::<i32>().value(row).to_owned(),
        DataType::LargeUtf8 => array.as_string::<i64>().value(row).to_owned(),
        DataType::Utf8View => array.as_string_view().value(row).to_owned(),
        DataType::Binary => Numeric::from_bytes(array.as_binary::<i32>().value(row)).to_string(),
        DataType::LargeBinary => Jsonb::tree_of(array.as_binary::<i64>().value(row)).to_string(),
        DataType::BinaryView => bytes_text(array.as_binary_view().value(row)),
        DataType::FixedSizeBinary(_) => fixed_text(array.as_fixed_size_binary().value(row), array.data_type()),
        DataType::List(_) => list_text(&array.as_list::<i32>().value(row)),
        DataType::LargeList(_) => list_text(&array.as_list::<i64>().value(row)),
        DataType::FixedSizeList(..) => list_text(&array.as_fixed_size_list().value(row)),
        DataType::ListView(_) => list_text(&array.as_list_view::<i32>().value(row)),
        DataType::LargeListView(_) => list_text(&array.as_list_view::<i64>().value(row)),
        DataType::Struct(_) => struct_text(array, row),
        DataType::Dictionary(_, values) => return text_value(&cast(&array.slice(row, 1), values).ok()?, 0),
        other => return temporal_text(array, row, other),
    })
}

/// As [`text_value`], of dates in the form that every session reads alike: ISO.
pub(crate) fn lasting_text(array: &dyn Array, row: usize) -> Option<String> {
    let _scope = date_form::in_iso();
    text_value(array, row)
}

fn temporal_text(array: &dyn Array, row: usize, data_type: &DataType) -> Option<String> {
    Some(match data_type {
        DataType::Date32 => date_text(array.as_primitive::<Date32Type>().value(row).into()),
        DataType::Date64 => date_text(array.as_primitive::<Date64Type>().value(row).div_euclid(86_400_000)),
        DataType::Timestamp(TimeUnit::Second, Some(zone)) if let Some(of) = EnumType::of_zone(zone) => {
            let position = array.as_primitive::<TimestampSecondType>().value(row);
            EnumValue { of, position }.to_string()
        }
        DataType::Timestamp(unit, zone) => {
            let micros = timestamp_micros(array, row, *unit)?;
            if zone.is_some() { moment_text(micros) } else { timestamp_text(micros) }
        }
        DataType::Time32(_) | DataType::Time64(_) => {
            let micros = cast(&array.slice(row, 1), &DataType::Time64(TimeUnit::Microsecond)).ok()?;
            format_time(arrow_cast::cast(&micros, &DataType::Int64).ok()?.as_primitive::<Int64Type>().value(0))
        }
        DataType::Duration(_) => {
            let micros = cast(&array.slice(row, 1), &DataType::Duration(TimeUnit::Microsecond)).ok()?;
            let micros = micros.as_primitive::<DurationMicrosecondType>().value(0);
            interval_text(0, micros / MICROS_PER_DAY, micros % MICROS_PER_DAY)
        }
        DataType::Interval(unit) => interval_value(array, row, *unit),
        _ => arrow_cast::display::array_value_to_string(array, row).ok()?,
    })
}

/// A timestamp of any unit in microseconds, cut towards the past.
fn timestamp_micros(array: &dyn Array, row: usize, unit: TimeUnit) -> Option<i64> {
    if unit == TimeUnit::Microsecond {
        return Some(array.as_primitive::<TimestampMicrosecondType>().value(row));
    }
    let raw = cast(&array.slice(row, 1), &DataType::Int64).ok()?;
    let raw = raw.as_primitive::<Int64Type>().value(0);
    match unit {
        TimeUnit::Second => raw.checked_mul(1_000_000),
        TimeUnit::Millisecond => raw.checked_mul(1_000),
        TimeUnit::Microsecond => Some(raw),
        TimeUnit::Nanosecond => Some(raw.div_euclid(1_000)),
    }
}

fn interval_value(array: &dyn Array, row: usize, unit: IntervalUnit) -> String {
    match unit {
        IntervalUnit::YearMonth => interval_text(array.as_primitive::<IntervalYearMonthType>().value(row), 0, 0),
        IntervalUnit::DayTime => {
            let value = array.as_primitive::<IntervalDayTimeType>().value(row);
            interval_text(0, value.days.into(), i64::from(value.milliseconds) * 1_000)
        }
        IntervalUnit::MonthDayNano => {
            let value = array.as_primitive::<IntervalMonthDayNanoType>().value(row);
            interval_text(value.months, value.days.into(), value.nanoseconds / 1_000)
        }
    }
}

/// In the style of the session: `1 year 2 mons 3 days 04:05:06.7`, or that of ISO 8601.
fn interval_text(months: i32, days: i64, micros: i64) -> String {
    let days = i32::try_from(days).unwrap_or(i32::MAX);
    session_zone::style().intervals.text(engine::Interval { months, days, micros })
}

/// A float with `digits` digits after the first, for casts to numeric.
pub(crate) fn float_digits(value: f64, digits: usize) -> String {
    format!("{value:.digits$e}")
}

fn bytes_text(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(2 + 2 * bytes.len());
    out.push_str("\\x");
    for byte in bytes {
        let _ = write!(out, "{byte:02x}");
    }
    out
}

/// A range, a shape, an address, a time with its zone, or bytes.
fn fixed_text(bytes: &[u8], data_type: &DataType) -> String {
    match engine::DataType::from_arrow(data_type) {
        Some(engine::DataType::Range(kind)) => RangeValue::from_bytes(kind, bytes).text_with(bound_text),
        Some(engine::DataType::Geometry(kind)) => Geometry::from_bytes(kind, bytes).to_string(),
        Some(engine::DataType::Network(kind)) => Network::from_bytes(kind, bytes).to_string(),
        Some(engine::DataType::TimeTz) => ZonedTime::from_bytes(bytes).to_string(),
        _ => bytes_text(bytes),
    }
}

const BOX: engine::DataType = engine::DataType::Geometry(GeometryKind::Box);

fn list_text(items: &ArrayRef) -> String {
    let is_nested = items.data_type().is_nested() && !matches!(items.data_type(), DataType::Struct(_));
    // Boxes have commas within.
    let is_box = engine::DataType::from_arrow(items.data_type()) == Some(BOX);
    let item = |row| match text_value(items, row) {
        None => "NULL".to_owned(),
        Some(text) if is_nested || is_box => text,
        Some(text) => quoted_item(text),
    };
    let items: Vec<String> = (0..items.len()).map(item).collect();
    format!("{{{}}}", items.join(if is_box { ";" } else { "," }))
}

/// Items that hold what means something in a list are quoted.
fn quoted_item(text: String) -> String {
    let means_something = |c: char| matches!(c, '{' | '}' | ',' | '"' | '\\') || c.is_ascii_whitespace();
    if !text.is_empty() && !text.contains(means_something) && !text.eq_ignore_ascii_case("null") {
        return text;
    }
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

fn struct_text(array: &dyn Array, row: usize) -> String {
    let means_something = |c: char| matches!(c, '(' | ')' | ',' | '"' | '\\') || c.is_ascii_whitespace();
    let field = |column: &ArrayRef| match text_value(column, row) {
        None => String::new(),
        Some(text) if text.is_empty() || text.contains(means_something) => {
            format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\"\""))
        }
        Some(text) => text,
    };
    let fields: Vec<String> = array.as_struct().columns().iter().map(field).collect();
    format!("({})", fields.join(","))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::types::IntervalMonthDayNano;
    use arrow_array::{
        BinaryViewArray, BooleanArray, Decimal128Array, Int32Array, IntervalMonthDayNanoArray, ListArray, NullArray,
        StringArray, TimestampMicrosecondArray, TimestampNanosecondArray,
    };

    use super::*;

    fn show(array: impl Array) -> Vec<String> {
        (0..array.len()).map(|row| text_value(&array, row).unwrap_or("NULL".to_owned())).collect()
    }

    #[test]
    fn every_kind_has_its_form() {
        assert_eq!(show(BooleanArray::from(vec![Some(true), Some(false), None])), ["t", "f", "NULL"]);
        assert_eq!(show(BinaryViewArray::from(vec![&b"\x00\xff"[..], b""])), ["\\x00ff", "\\x"]);
        assert_eq!(show(NullArray::new(1)), ["NULL"]);
        let decimals = Decimal128Array::from(vec![-5, 1234]).with_precision_and_scale(10, 2).unwrap();
        assert_eq!(show(decimals), ["-0.05", "12.34"]);
        let times = TimestampMicrosecondArray::from(vec![1_577_934_245_600_000]);
        assert_eq!(show(times.clone()), ["2020-01-02 03:04:05.6"]);
        assert_eq!(show(times.with_timezone("UTC")), ["2020-01-02 03:04:05.6+00"]);
        assert_eq!(show(TimestampNanosecondArray::from(vec![-1])), ["1969-12-31 23:59:59.999999"]);
        let interval = IntervalMonthDayNano::new(14, -3, 3_600_000_000_000);
        assert_eq!(show(IntervalMonthDayNanoArray::from(vec![interval])), ["1 year 2 mons -3 days +01:00:00"]);
        let list = ListArray::from_iter_primitive::<arrow_array::types::Int32Type, _, _>([Some([Some(1), None])]);
        assert_eq!(show(list), ["{1,NULL}"]);
        let texts: ArrayRef = Arc::new(StringArray::from(vec!["a", "b c", "", "null", "\"\\"]));
        assert_eq!(list_text(&texts), r#"{a,"b c","","null","\"\\"}"#);
        assert_eq!(show(Int32Array::from(vec![i32::MIN])), ["-2147483648"]);
    }
}
