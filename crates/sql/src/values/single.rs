//! Single values of the engine: from their text, and from and to the scalars of DataFusion.
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int16Type, Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef};
use datafusion::common::ScalarValue;
use engine::json::Jsonb;
use engine::{
    ArrayItem, ArrayValue, DataType, Decimal, EnumValue, Geometry, Network, Numeric, RangeValue, TimeKind, Value,
    ZonedTime,
};

use super::builder::ColumnBuilder;
use super::clock::{interval_of, span_of};
use super::interval_form::IntervalForm;
use super::{Misfit, array_input, datetime, hstore, input, interval_input, numerics, space_input};
use crate::error::Result;

/// The value that a text stands for in the input syntax of a type. A `numeric` keeps the digits that it is written with.
///
/// # Errors
/// As PostgreSQL's input functions: 22P02, 22003, 22008, ...
pub fn read_value(text: &str, data_type: DataType) -> Result<Value> {
    read(text, data_type).map_err(|misfit| {
        let error = misfit.error("", data_type, text, "text");
        crate::SqlError { detail: None, ..error }
    })
}

/// The value that a text stands for, or why it stands for none.
pub(super) fn read(text: &str, data_type: DataType) -> Result<Value, Misfit> {
    Ok(match data_type {
        DataType::Boolean => Value::Boolean(input::boolean(text)?),
        DataType::SmallInt => Value::SmallInt(input::integer(text)?),
        DataType::Integer => Value::Integer(input::integer(text)?),
        DataType::BigInt => Value::BigInt(input::integer(text)?),
        DataType::Real => Value::Real(input::real(text)?),
        DataType::Double => Value::Double(input::double(text)?),
        DataType::Decimal { .. } => Value::Decimal(number(text)?),
        DataType::Numeric => Value::Numeric(numerics::read(text)?),
        DataType::HSTORE => Value::Text(hstore::canonical(text)?),
        DataType::Text { max_chars } => Value::Text(input::text(text, max_chars)?.to_owned()),
        DataType::Char { chars } => Value::Text(input::blank_padded(text, chars)?.to_owned()),
        DataType::Bytea => Value::Bytea(input::bytea(text)?),
        DataType::Date => Value::Date(datetime::parse_date(text)?),
        DataType::Timestamp => Value::Timestamp(datetime::parse_timestamp(text, false)?),
        DataType::TimestampTz => Value::TimestampTz(datetime::parse_timestamp(text, true)?),
        DataType::Array(item) => {
            let items = array_input::items(text).ok_or(Misfit::Syntax)?;
            let read = |text: Option<String>| text.map_or(Ok(Value::Null), |text| element(&text, item));
            let values = items.into_iter().map(read).collect::<Result<Vec<_>, _>>()?;
            Value::Array(ArrayValue::of(item, &values))
        }
        DataType::Enum(of) => Value::Enum(EnumValue { of, position: input::label(text, of)? }),
        DataType::Json => Value::Json(input::json(text)?.to_owned()),
        DataType::Jsonb => Value::Jsonb(input::jsonb(text)?),
        DataType::Time => Value::Time(datetime::parse_time(text)?),
        DataType::TimeTz => Value::TimeTz(datetime::parse_zoned_time(text)?),
        DataType::TimeDigits { of: TimeKind::Interval { fields, .. }, digits } => {
            let span = interval_input::parse_as(text, IntervalForm::of_column(fields, digits))?;
            Value::Interval(input::interval_of(span)?)
        }
        DataType::TimeDigits { of, digits } => read(text, of.whole())?.rounded(digits),
        DataType::Interval => Value::Interval(input::interval(text)?),
        DataType::Range(kind) => space_input::range(text, kind)?.into(),
        DataType::Geometry(kind) => Value::Geometry(space_input::geometry(text, kind)?),
        DataType::Network(kind) => Value::Network(space_input::network(text, kind)?),
        DataType::Uuid => {
            let canonical = input::uuid(text)?;
            Value::Uuid(uuid::Uuid::try_parse(&canonical).map_err(|_| Misfit::Syntax)?.into_bytes())
        }
    })
}

/// The items of an array as one value.
pub(crate) fn array_of(items: &ArrayRef, item: ArrayItem) -> Option<ArrayValue> {
    let value = |row: usize| {
        let scalar = ScalarValue::try_from_array(items, row).ok()?;
        if scalar.is_null() { Some(Value::Null) } else { value_of_scalar(&scalar, item.data_type()) }
    };
    let values = (0..items.len()).map(value).collect::<Option<Vec<Value>>>()?;
    Some(ArrayValue::of(item, &values))
}

/// A value of an array, whose numerics have the decimals of its type.
fn element(text: &str, item: ArrayItem) -> Result<Value, Misfit> {
    match item {
        ArrayItem::Decimal { precision, scale } => Ok(Value::decimal(input::decimal(text, precision, scale)?, scale)),
        other => read(text, other.data_type()),
    }
}

/// A number with as many decimals as are written, or as there may be.
fn number(text: &str) -> Result<Decimal, Misfit> {
    let text = text.trim();
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let written = mantissa.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    let written = i64::try_from(written).map_err(|_| Misfit::Range)?;
    let exponent: i64 = exponent.parse().unwrap_or(0);
    let scale = i8::try_from(written.saturating_sub(exponent).clamp(0, 38)).unwrap_or(38);
    Ok(Decimal { unscaled: input::decimal(text, 38, scale)?, scale })
}

/// A column with these values, in the Arrow type of a column type. A `numeric` is rounded to the type's decimals.
///
/// # Errors
/// 42804 for a value of another type, 22003 for a number that is too large.
pub fn column_of_values(values: &[Value], data_type: DataType) -> Result<ArrayRef> {
    let mut builder = ColumnBuilder::new(data_type);
    for value in values {
        let appended = match value {
            Value::Decimal(_) => builder.append_text(&value.to_string()),
            _ => builder.append_value(value),
        };
        appended.map_err(|misfit| misfit.error("", data_type, &value.to_string(), "another type"))?;
    }
    Ok(builder.finish())
}

/// A scalar as a value of exactly this type; `None` where it is NULL or of another type.
pub(crate) fn value_of_scalar(scalar: &ScalarValue, data_type: DataType) -> Option<Value> {
    let data_type = data_type.whole();
    if scalar.is_null() || scalar.data_type() != data_type.to_arrow() {
        return None;
    }
    if let (ScalarValue::List(list), DataType::Array(item)) = (scalar, data_type) {
        return array_of(&list.value(0), item).map(Value::Array);
    }
    Some(match (scalar, data_type) {
        (ScalarValue::Boolean(Some(value)), _) => Value::Boolean(*value),
        (ScalarValue::Int16(Some(value)), _) => Value::SmallInt(*value),
        (ScalarValue::Int32(Some(value)), _) => Value::Integer(*value),
        (ScalarValue::Int64(Some(value)), _) => Value::BigInt(*value),
        (ScalarValue::Float32(Some(value)), _) => Value::Real(*value),
        (ScalarValue::Float64(Some(value)), _) => Value::Double(*value),
        (ScalarValue::Decimal128(Some(unscaled), _, scale), _) => {
            Value::Decimal(Decimal { unscaled: *unscaled, scale: *scale })
        }
        (ScalarValue::Utf8View(Some(text)), DataType::Uuid) => {
            // Stored text is canonical, so anything else equals no row: leave it to a filter.
            let id = uuid::Uuid::try_parse(text).ok().filter(|id| id.hyphenated().to_string() == *text)?;
            Value::Uuid(id.into_bytes())
        }
        (ScalarValue::Utf8View(Some(text)), _) => Value::Text(text.clone()),
        (ScalarValue::BinaryView(Some(bytes)), _) => Value::Bytea(bytes.clone()),
        (ScalarValue::Binary(Some(bytes)), _) => Value::Numeric(Numeric::from_bytes(bytes)),
        (ScalarValue::LargeUtf8(Some(text)), _) => Value::Json(text.clone()),
        (ScalarValue::LargeBinary(Some(bytes)), _) => Value::Jsonb(Jsonb::from_bytes(bytes)),
        (ScalarValue::FixedSizeBinary(_, Some(bytes)), DataType::Range(kind)) => {
            RangeValue::from_bytes(kind, bytes).into()
        }
        (ScalarValue::FixedSizeBinary(_, Some(bytes)), DataType::Geometry(kind)) => {
            Value::Geometry(Geometry::from_bytes(kind, bytes))
        }
        (ScalarValue::FixedSizeBinary(_, Some(bytes)), DataType::Network(kind)) => {
            Value::Network(Network::from_bytes(kind, bytes))
        }
        (ScalarValue::FixedSizeBinary(_, Some(bytes)), DataType::TimeTz) => Value::TimeTz(ZonedTime::from_bytes(bytes)),
        (ScalarValue::Time64Microsecond(Some(micros)), _) => Value::Time(*micros),
        (ScalarValue::IntervalMonthDayNano(Some(interval)), _) => Value::Interval(span_of(*interval)),
        (ScalarValue::TimestampSecond(Some(position), _), DataType::Enum(of)) => {
            Value::Enum(EnumValue { of, position: *position })
        }
        (ScalarValue::Date32(Some(days)), _) => Value::Date(*days),
        (ScalarValue::TimestampMicrosecond(Some(time), None), _) => Value::Timestamp(*time),
        (ScalarValue::TimestampMicrosecond(Some(time), Some(_)), _) => Value::TimestampTz(*time),
        _ => return None,
    })
}

/// The value in a row of a column of this type, NULL too; `None` if it is none of the type.
pub(crate) fn value_at(array: &dyn Array, row: usize, data_type: DataType) -> Option<Value> {
    if array.is_null(row) {
        return Some(Value::Null);
    }
    match data_type.whole() {
        DataType::SmallInt => array.as_primitive_opt::<Int16Type>().map(|array| Value::SmallInt(array.value(row))),
        DataType::Integer => array.as_primitive_opt::<Int32Type>().map(|array| Value::Integer(array.value(row))),
        DataType::BigInt => array.as_primitive_opt::<Int64Type>().map(|array| Value::BigInt(array.value(row))),
        DataType::Double => array.as_primitive_opt::<Float64Type>().map(|array| Value::Double(array.value(row))),
        DataType::TimeTz => bytes_at(array, row).map(|bytes| Value::TimeTz(ZonedTime::from_bytes(bytes))),
        DataType::Range(kind) => bytes_at(array, row).map(|bytes| Value::from(RangeValue::from_bytes(kind, bytes))),
        DataType::Geometry(kind) => {
            bytes_at(array, row).map(|bytes| Value::Geometry(Geometry::from_bytes(kind, bytes)))
        }
        DataType::Network(kind) => bytes_at(array, row).map(|bytes| Value::Network(Network::from_bytes(kind, bytes))),
        // Rows of the table have numerics and arrays as they are kept.
        DataType::Numeric if array.as_binary_view_opt().is_some() => {
            array.as_binary_view_opt().map(|kept| Value::Numeric(Numeric::from_bytes(kept.value(row))))
        }
        DataType::Array(item) if array.as_binary_view_opt().is_some() => {
            array.as_binary_view_opt().map(|kept| Value::Array(ArrayValue::from_bytes(item, kept.value(row))))
        }
        _ => value_of_scalar(&ScalarValue::try_from_array(array, row).ok()?, data_type),
    }
}

/// The bytes of a time with its zone, a range, a shape or an address: rows of the table have them in another array than those of queries.
fn bytes_at(array: &dyn Array, row: usize) -> Option<&[u8]> {
    match array.as_fixed_size_binary_opt() {
        Some(queried) => Some(queried.value(row)),
        None => array.as_binary_view_opt().map(|kept| kept.value(row)),
    }
}

/// A value of a column of this type as a scalar of the column's Arrow type; `None` where it is not of that type.
pub(crate) fn scalar_of_value(value: &Value, data_type: DataType) -> Option<ScalarValue> {
    Some(match (value, data_type.whole()) {
        (Value::Null, _) => ScalarValue::try_new_null(&data_type.to_arrow()).ok()?,
        (Value::Boolean(value), DataType::Boolean) => ScalarValue::Boolean(Some(*value)),
        (Value::SmallInt(value), DataType::SmallInt) => ScalarValue::Int16(Some(*value)),
        (Value::Integer(value), DataType::Integer) => ScalarValue::Int32(Some(*value)),
        (Value::BigInt(value), DataType::BigInt) => ScalarValue::Int64(Some(*value)),
        (Value::Real(value), DataType::Real) => ScalarValue::Float32(Some(*value)),
        (Value::Double(value), DataType::Double) => ScalarValue::Float64(Some(*value)),
        (Value::Decimal(value), DataType::Decimal { precision, scale }) if value.scale == scale => {
            ScalarValue::Decimal128(Some(value.unscaled), precision, scale)
        }
        (Value::Numeric(number), DataType::Numeric) => ScalarValue::Binary(Some(number.as_bytes().to_vec())),
        (Value::Text(text), DataType::Text { .. } | DataType::Char { .. }) => ScalarValue::Utf8View(Some(text.clone())),
        (Value::Uuid(id), DataType::Uuid) => {
            ScalarValue::Utf8View(Some(uuid::Uuid::from_bytes(*id).hyphenated().to_string()))
        }
        (Value::Bytea(bytes), DataType::Bytea) => ScalarValue::BinaryView(Some(bytes.clone())),
        (Value::Json(text), DataType::Json) => ScalarValue::LargeUtf8(Some(text.clone())),
        (Value::Jsonb(value), DataType::Jsonb) => ScalarValue::LargeBinary(Some(value.as_bytes().to_vec())),
        (Value::Time(micros), DataType::Time) => ScalarValue::Time64Microsecond(Some(*micros)),
        (Value::TimeTz(time), DataType::TimeTz) => bytes_of(time.to_bytes().to_vec()),
        (Value::Interval(span), DataType::Interval) => ScalarValue::IntervalMonthDayNano(Some(interval_of(*span))),
        (Value::Range(range), DataType::Range(kind)) if range.kind() == kind => bytes_of(range.to_bytes()),
        (Value::Geometry(shape), DataType::Geometry(kind)) if shape.kind() == kind => bytes_of(shape.to_bytes()),
        (Value::Network(address), DataType::Network(kind)) if address.kind() == kind => bytes_of(address.to_bytes()),
        (Value::Array(array), DataType::Array(_)) => {
            let mut builder = ColumnBuilder::new(data_type);
            builder.append_value(&Value::Array(array.clone())).ok()?;
            ScalarValue::try_from_array(&builder.finish(), 0).ok()?
        }
        (Value::Enum(value), DataType::Enum(of)) if value.of == of => {
            ScalarValue::TimestampSecond(Some(value.position), Some(of.zone().into()))
        }
        (Value::Date(days), DataType::Date) => ScalarValue::Date32(Some(*days)),
        (Value::Timestamp(time), DataType::Timestamp) => ScalarValue::TimestampMicrosecond(Some(*time), None),
        (Value::TimestampTz(time), DataType::TimestampTz) => {
            let arrow_schema::DataType::Timestamp(_, zone) = data_type.to_arrow() else { return None };
            ScalarValue::TimestampMicrosecond(Some(*time), zone)
        }
        _ => return None,
    })
}

/// A time with its zone, a range, a shape or an address as it is kept.
fn bytes_of(bytes: Vec<u8>) -> ScalarValue {
    ScalarValue::FixedSizeBinary(i32::try_from(bytes.len()).unwrap_or(i32::MAX), Some(bytes))
}

#[cfg(test)]
mod tests {
    use engine::{GeometryKind, RangeKind};

    use super::*;

    #[test]
    fn values_come_back_from_scalars_as_they_went() {
        let money = DataType::Decimal { precision: 10, scale: 2 };
        let values = [
            (Value::Boolean(true), DataType::Boolean),
            (Value::SmallInt(-1), DataType::SmallInt),
            (Value::Integer(7), DataType::Integer),
            (Value::BigInt(i64::MIN), DataType::BigInt),
            (Value::Real(-0.0), DataType::Real),
            (Value::Double(1.5), DataType::Double),
            (Value::decimal(-1234, 2), money),
            (read_value("-12.340", DataType::Numeric).unwrap(), DataType::Numeric),
            (Value::from("ä"), DataType::Text { max_chars: Some(3) }),
            (Value::Bytea(vec![0, 255]), DataType::Bytea),
            (Value::Date(-1), DataType::Date),
            (Value::Timestamp(1), DataType::Timestamp),
            (Value::TimestampTz(-1), DataType::TimestampTz),
            (Value::Uuid([7; 16]), DataType::Uuid),
            (Value::Json("[ 1 ]".to_owned()), DataType::Json),
            (Value::Jsonb(Jsonb::parse("{\"a\": [1.0]}").unwrap()), DataType::Jsonb),
            (Value::Time(7), DataType::Time),
            (
                Value::Array(ArrayValue::of(ArrayItem::Uuid, &[Value::Uuid([7; 16]), Value::Null])),
                DataType::Array(ArrayItem::Uuid),
            ),
            (Value::Interval(engine::Interval { months: 1, days: -2, micros: 3 }), DataType::Interval),
            (read_value("[1,5]", DataType::Range(RangeKind::Int4)).unwrap(), DataType::Range(RangeKind::Int4)),
            (
                read_value("1,2", DataType::Geometry(GeometryKind::Point)).unwrap(),
                DataType::Geometry(GeometryKind::Point),
            ),
        ];
        for (value, data_type) in values {
            let scalar = scalar_of_value(&value, data_type).unwrap();
            assert_eq!(scalar.data_type(), data_type.to_arrow());
            assert_eq!(value_of_scalar(&scalar, data_type), Some(value));
            let null = scalar_of_value(&Value::Null, data_type).unwrap();
            assert!(null.is_null() && value_of_scalar(&null, data_type).is_none());
        }
        assert_eq!(value_of_scalar(&ScalarValue::Int64(Some(1)), DataType::Integer), None);
        assert_eq!(value_of_scalar(&ScalarValue::Decimal128(Some(1), 10, 3), money), None);
        assert_eq!(value_of_scalar(&ScalarValue::Utf8View(Some("7".into())), DataType::Uuid), None);
    }

    #[test]
    fn numbers_keep_their_decimals() {
        let money = DataType::Decimal { precision: 5, scale: 1 };
        let of = |text: &str| read(text, money);
        assert_eq!(of("1.50"), Ok(Value::decimal(150, 2)));
        assert_eq!((of("-12e3"), of("12.5e-2")), (Ok(Value::decimal(-12_000, 0)), Ok(Value::decimal(125, 3))));
        assert_eq!((of("NaN"), of("1,5")), (Err(Misfit::NotFinite), Err(Misfit::Syntax)));
    }

    #[test]
    fn texts_become_values_of_their_type_or_errors() {
        assert_eq!(read_value("7", DataType::SmallInt), Ok(Value::SmallInt(7)));
        assert_eq!(read_value("t", DataType::Boolean), Ok(Value::Boolean(true)));
        let id = read_value("550e8400-e29b-41d4-a716-446655440000", DataType::Uuid).unwrap();
        assert_eq!(id.to_string(), "550e8400-e29b-41d4-a716-446655440000");
        assert_eq!(read_value("x", DataType::Integer).unwrap_err().sqlstate, "22P02");
        assert_eq!(read_value("99999999999", DataType::Integer).unwrap_err().sqlstate, "22003");
        assert_eq!(read_value("2020-13-01", DataType::Date).unwrap_err().sqlstate, "22008");
    }
}
