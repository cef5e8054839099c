//! Builds a column from single values: texts of a CSV file, literals of a `VALUES` list, values of the engine, or cells
//! of other arrays.
use std::sync::Arc;

use arrow_array::builder::{
    BinaryBuilder, BinaryViewBuilder, BooleanBuilder, Date32Builder, Decimal128Builder, FixedSizeBinaryBuilder,
    Float32Builder, Float64Builder, Int16Builder, Int32Builder, Int64Builder, IntervalMonthDayNanoBuilder,
    LargeBinaryBuilder, LargeStringBuilder, StringViewBuilder, Time64MicrosecondBuilder, TimestampMicrosecondBuilder,
    TimestampSecondBuilder,
};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type, IntervalMonthDayNanoType,
    Time64MicrosecondType, TimestampMicrosecondType, TimestampSecondType,
};
use arrow_array::{Array, ArrayRef, ListArray};
use arrow_schema::Field;
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer};
use engine::{ArrayItem, ArrayValue, DataType, Value, ZONED_TIME_BYTES};

use super::clock::interval_of;
use super::single::read;
use super::{Misfit, array_input, datetime, hstore, input, numerics, space_input};

/// A column in the making.
pub(crate) struct ColumnBuilder {
    data_type: DataType,
    values: Values,
}

enum Values {
    Boolean(BooleanBuilder),
    Int16(Int16Builder),
    Int32(Int32Builder),
    Int64(Int64Builder),
    Float32(Float32Builder),
    Float64(Float64Builder),
    Decimal(Decimal128Builder),
    Numeric(BinaryBuilder),
    Text(StringViewBuilder),
    Bytes(BinaryViewBuilder),
    Date(Date32Builder),
    Timestamp(TimestampMicrosecondBuilder),
    Json(LargeStringBuilder),
    Jsonb(LargeBinaryBuilder),
    Time(Time64MicrosecondBuilder),
    Interval(IntervalMonthDayNanoBuilder),
    Label(TimestampSecondBuilder),
    /// Times with their zone, ranges, shapes and addresses.
    Fixed(FixedSizeBinaryBuilder),
    List(Box<Lists>),
}

/// Arrays in the making.
struct Lists {
    items: ColumnBuilder,
    lengths: Vec<usize>,
    valid: Vec<bool>,
}

impl Lists {
    fn append_null(&mut self) {
        self.lengths.push(0);
        self.valid.push(false);
    }

    fn end(&mut self, length: usize) {
        self.lengths.push(length);
        self.valid.push(true);
    }

    fn append_text(&mut self, text: &str) -> Result<(), Misfit> {
        let items = array_input::items(text).ok_or(Misfit::Syntax)?;
        let mut row = ColumnBuilder::new(self.item_type());
        items.iter().try_for_each(|item| row.append_option(item.as_deref()))?;
        self.append_cells(&row.finish());
        Ok(())
    }

    fn append_values(&mut self, values: &[Value]) -> Result<(), Misfit> {
        let mut row = ColumnBuilder::new(self.item_type());
        values.iter().try_for_each(|value| row.append_value(value))?;
        self.append_cells(&row.finish());
        Ok(())
    }

    /// Items of an array as a table keeps it, which are of the type of this one's.
    fn append_kept(&mut self, bytes: &[u8]) {
        let (mut count, data_type) = (0, self.items.data_type);
        let item = ArrayItem::of(data_type).unwrap_or(ArrayItem::TEXT);
        ArrayValue::for_each_item(bytes, &mut |own| {
            count += 1;
            match (&mut self.items.values, own) {
                (_, None) => self.items.append_null(),
                (Values::Text(builder), Some(own)) => builder.append_value(String::from_utf8_lossy(own)),
                (_, Some(own)) => {
                    let appended = self.items.append_value(&ArrayValue::item_value(item, own));
                    debug_assert!(appended.is_ok(), "{item:?} is not the type of the items");
                }
            }
        });
        self.end(count);
    }

    /// Items are appended a row at a time: of a row that fails nothing may stay.
    fn item_type(&self) -> DataType {
        self.items.data_type
    }

    fn append_cells(&mut self, items: &ArrayRef) {
        (0..items.len()).for_each(|row| self.items.append_cell(items, row));
        self.end(items.len());
    }

    fn finish(&mut self) -> ListArray {
        let items = self.items.finish();
        let field = Arc::new(Field::new_list_field(items.data_type().clone(), true));
        let (lengths, valid) = (std::mem::take(&mut self.lengths), std::mem::take(&mut self.valid));
        ListArray::new(field, OffsetBuffer::from_lengths(lengths), items, Some(NullBuffer::from(valid)))
    }
}

macro_rules! each {
    ($values:expr, $builder:ident => $do:expr) => {
        match $values {
            Values::Boolean($builder) => $do,
            Values::Int16($builder) => $do,
            Values::Int32($builder) => $do,
            Values::Int64($builder) => $do,
            Values::Float32($builder) => $do,
            Values::Float64($builder) => $do,
            Values::Decimal($builder) => $do,
            Values::Numeric($builder) => $do,
            Values::Text($builder) => $do,
            Values::Bytes($builder) => $do,
            Values::Date($builder) => $do,
            Values::Timestamp($builder) => $do,
            Values::Json($builder) => $do,
            Values::Jsonb($builder) => $do,
            Values::Time($builder) => $do,
            Values::Interval($builder) => $do,
            Values::Label($builder) => $do,
            Values::Fixed($builder) => $do,
            Values::List($builder) => $do,
        }
    };
}

impl ColumnBuilder {
    pub(crate) fn new(data_type: DataType) -> ColumnBuilder {
        let values = match data_type {
            DataType::TimeDigits { of, .. } => ColumnBuilder::new(of.whole()).values,
            DataType::Boolean => Values::Boolean(BooleanBuilder::new()),
            DataType::SmallInt => Values::Int16(Int16Builder::new()),
            DataType::Integer => Values::Int32(Int32Builder::new()),
            DataType::BigInt => Values::Int64(Int64Builder::new()),
            DataType::Real => Values::Float32(Float32Builder::new()),
            DataType::Double => Values::Float64(Float64Builder::new()),
            DataType::Decimal { .. } => Values::Decimal(Decimal128Builder::new().with_data_type(data_type.to_arrow())),
            DataType::Numeric => Values::Numeric(BinaryBuilder::new()),
            DataType::Text { .. } | DataType::Char { .. } | DataType::Uuid => Values::Text(StringViewBuilder::new()),
            DataType::Bytea => Values::Bytes(BinaryViewBuilder::new()),
            DataType::Json => Values::Json(LargeStringBuilder::new()),
            DataType::Jsonb => Values::Jsonb(LargeBinaryBuilder::new()),
            DataType::Time => Values::Time(Time64MicrosecondBuilder::new()),
            DataType::TimeTz => fixed(ZONED_TIME_BYTES),
            DataType::Interval => Values::Interval(IntervalMonthDayNanoBuilder::new()),
            DataType::Enum(_) => Values::Label(TimestampSecondBuilder::new().with_data_type(data_type.to_arrow())),
            DataType::Range(kind) => fixed(kind.width()),
            DataType::Geometry(kind) => fixed(kind.width()),
            DataType::Network(kind) => fixed(kind.width()),
            DataType::Array(item) => {
                let items = ColumnBuilder::new(item.data_type());
                Values::List(Box::new(Lists { items, lengths: Vec::new(), valid: Vec::new() }))
            }
            DataType::Date => Values::Date(Date32Builder::new()),
            DataType::Timestamp | DataType::TimestampTz => {
                Values::Timestamp(TimestampMicrosecondBuilder::new().with_data_type(data_type.to_arrow()))
            }
        };
        ColumnBuilder { data_type, values }
    }

    pub(crate) fn append_null(&mut self) {
        each!(&mut self.values, builder => builder.append_null());
    }

    /// Appends the value with this text in the type's input syntax.
    pub(crate) fn append_text(&mut self, text: &str) -> Result<(), Misfit> {
        if let DataType::TimeDigits { .. } = self.data_type {
            return self.append_value(&read(text, self.data_type)?);
        }
        match (&mut self.values, self.data_type) {
            (Values::Boolean(builder), _) => builder.append_value(input::boolean(text)?),
            (Values::Int16(builder), _) => builder.append_value(input::integer(text)?),
            (Values::Int32(builder), _) => builder.append_value(input::integer(text)?),
            (Values::Int64(builder), _) => builder.append_value(input::integer(text)?),
            (Values::Float32(builder), _) => builder.append_value(input::real(text)?),
            (Values::Float64(builder), _) => builder.append_value(input::double(text)?),
            (Values::Decimal(builder), DataType::Decimal { precision, scale }) => {
                builder.append_value(input::decimal(text, precision, scale)?);
            }
            (Values::Numeric(builder), _) => builder.append_value(numerics::read(text)?.as_bytes()),
            (Values::Text(builder), DataType::HSTORE) => builder.append_value(hstore::canonical(text)?),
            (Values::Text(builder), DataType::Text { max_chars }) => {
                builder.append_value(input::text(text, max_chars)?);
            }
            (Values::Text(builder), DataType::Char { chars }) => {
                builder.append_value(input::blank_padded(text, chars)?);
            }
            (Values::Text(builder), _) => builder.append_value(input::uuid(text)?),
            (Values::Bytes(builder), _) => builder.append_value(input::bytea(text)?),
            (Values::Date(builder), _) => builder.append_value(datetime::parse_date(text)?),
            (Values::Timestamp(builder), data_type) => {
                builder.append_value(datetime::parse_timestamp(text, data_type == DataType::TimestampTz)?);
            }
            (Values::Json(builder), _) => builder.append_value(input::json(text)?),
            (Values::Jsonb(builder), _) => builder.append_value(input::jsonb(text)?.as_bytes()),
            (Values::Time(builder), _) => builder.append_value(datetime::parse_time(text)?),
            (Values::Interval(builder), _) => builder.append_value(interval_of(input::interval(text)?)),
            (Values::Label(builder), DataType::Enum(of)) => builder.append_value(input::label(text, of)?),
            (Values::Fixed(builder), DataType::TimeTz) => {
                put(builder, &datetime::parse_zoned_time(text)?.to_bytes())?;
            }
            (Values::Fixed(builder), DataType::Range(kind)) => {
                put(builder, &space_input::range(text, kind)?.to_bytes())?
            }
            (Values::Fixed(builder), DataType::Geometry(kind)) => {
                put(builder, &space_input::geometry(text, kind)?.to_bytes())?;
            }
            (Values::Fixed(builder), DataType::Network(kind)) => {
                put(builder, &space_input::network(text, kind)?.to_bytes())?;
            }
            (Values::List(lists), _) => lists.append_text(text)?,
            (Values::Decimal(_) | Values::Label(_) | Values::Fixed(_), _) => return Err(Misfit::Kind),
        }
        Ok(())
    }

    /// Appends NULL or a text as [`ColumnBuilder::append_text`] does.
    pub(crate) fn append_option(&mut self, text: Option<&str>) -> Result<(), Misfit> {
        match text {
            Some(text) => self.append_text(text),
            None => {
                self.append_null();
                Ok(())
            }
        }
    }

    /// Appends a numeric literal: integers round it, texts take it as it stands, other types refuse it.
    pub(crate) fn append_number(&mut self, number: &str) -> Result<(), Misfit> {
        let rounded =
            || input::decimal(number, 38, 0).and_then(|value| i64::try_from(value).map_err(|_| Misfit::Range));
        match &mut self.values {
            Values::Int16(builder) => builder.append_value(i16::try_from(rounded()?).map_err(|_| Misfit::Range)?),
            Values::Int32(builder) => builder.append_value(i32::try_from(rounded()?).map_err(|_| Misfit::Range)?),
            Values::Int64(builder) => builder.append_value(rounded()?),
            // A literal is a numeric first, which knows no negative zero.
            Values::Float32(builder) => builder.append_value(input::real(number)? + 0.0),
            Values::Float64(builder) => builder.append_value(input::double(number)? + 0.0),
            Values::Decimal(_) | Values::Numeric(_) => return self.append_text(number),
            Values::Text(_) if !self.data_type.travels_as_text() => return self.append_text(number),
            _ => return Err(Misfit::Kind),
        }
        Ok(())
    }

    /// Appends a boolean literal.
    pub(crate) fn append_boolean(&mut self, value: bool) -> Result<(), Misfit> {
        match &mut self.values {
            Values::Boolean(builder) => builder.append_value(value),
            Values::Text(_) if !self.data_type.travels_as_text() => {
                return self.append_text(if value { "true" } else { "false" });
            }
            _ => return Err(Misfit::Kind),
        }
        Ok(())
    }

    /// Appends an array as a table keeps it, whose items are of the column's type.
    pub(crate) fn append_array(&mut self, bytes: &[u8]) {
        match &mut self.values {
            Values::List(lists) => lists.append_kept(bytes),
            _ => debug_assert!(false, "a column of arrays"),
        }
    }

    /// Appends a value of the engine, which must be of the column's type.
    pub(crate) fn append_value(&mut self, value: &Value) -> Result<(), Misfit> {
        match (&mut self.values, value) {
            (_, Value::Null) => self.append_null(),
            (Values::Boolean(builder), Value::Boolean(value)) => builder.append_value(*value),
            (Values::Int16(builder), Value::SmallInt(value)) => builder.append_value(*value),
            (Values::Int32(builder), Value::Integer(value)) => builder.append_value(*value),
            (Values::Int64(builder), Value::BigInt(value)) => builder.append_value(*value),
            (Values::Float32(builder), Value::Real(value)) => builder.append_value(*value),
            (Values::Float64(builder), Value::Double(value)) => builder.append_value(*value),
            (Values::Decimal(builder), Value::Decimal(value)) => builder.append_value(value.unscaled),
            (Values::Numeric(builder), Value::Numeric(number)) => builder.append_value(number.as_bytes()),
            (Values::Text(builder), Value::Text(text)) => builder.append_value(text),
            (Values::Text(builder), Value::Uuid(id)) => {
                builder.append_value(uuid::Uuid::from_bytes(*id).hyphenated().to_string());
            }
            (Values::Bytes(builder), Value::Bytea(bytes)) => builder.append_value(bytes),
            (Values::Json(builder), Value::Json(text)) => builder.append_value(text),
            (Values::Jsonb(builder), Value::Jsonb(value)) => builder.append_value(value.as_bytes()),
            (Values::Time(builder), Value::Time(micros)) => builder.append_value(*micros),
            (Values::Interval(builder), Value::Interval(span)) => builder.append_value(interval_of(*span)),
            (Values::Label(builder), Value::Enum(value)) => builder.append_value(value.position),
            (Values::Fixed(builder), Value::TimeTz(time)) => put(builder, &time.to_bytes())?,
            (Values::Fixed(builder), Value::Range(range)) => put(builder, &range.to_bytes())?,
            (Values::Fixed(builder), Value::Geometry(shape)) => put(builder, &shape.to_bytes())?,
            (Values::Fixed(builder), Value::Network(address)) => put(builder, &address.to_bytes())?,
            (Values::List(lists), Value::Array(array)) => lists.append_values(&array.values())?,
            (Values::Date(builder), Value::Date(days)) => builder.append_value(*days),
            (Values::Timestamp(builder), Value::Timestamp(time) | Value::TimestampTz(time)) => {
                builder.append_value(*time);
            }
            _ => return Err(Misfit::Kind),
        }
        Ok(())
    }

    /// Appends one cell of an array that has the column's Arrow type already.
    pub(crate) fn append_cell(&mut self, array: &dyn Array, row: usize) {
        if array.is_null(row) {
            return self.append_null();
        }
        match &mut self.values {
            Values::Boolean(builder) => builder.append_value(array.as_boolean().value(row)),
            Values::Int16(builder) => builder.append_value(array.as_primitive::<Int16Type>().value(row)),
            Values::Int32(builder) => builder.append_value(array.as_primitive::<Int32Type>().value(row)),
            Values::Int64(builder) => builder.append_value(array.as_primitive::<Int64Type>().value(row)),
            Values::Float32(builder) => builder.append_value(array.as_primitive::<Float32Type>().value(row)),
            Values::Float64(builder) => builder.append_value(array.as_primitive::<Float64Type>().value(row)),
            Values::Decimal(builder) => builder.append_value(array.as_primitive::<Decimal128Type>().value(row)),
            Values::Numeric(builder) => builder.append_value(array.as_binary::<i32>().value(row)),
            Values::Text(builder) => builder.append_value(array.as_string_view().value(row)),
            Values::Bytes(builder) => builder.append_value(array.as_binary_view().value(row)),
            Values::Date(builder) => builder.append_value(array.as_primitive::<Date32Type>().value(row)),
            Values::List(lists) => lists.append_cells(&array.as_list::<i32>().value(row)),
            Values::Fixed(builder) => {
                let appended = put(builder, array.as_fixed_size_binary().value(row));
                debug_assert!(appended.is_ok(), "the array has the column's Arrow type");
            }
            Values::Json(builder) => builder.append_value(array.as_string::<i64>().value(row)),
            Values::Jsonb(builder) => builder.append_value(array.as_binary::<i64>().value(row)),
            Values::Time(builder) => builder.append_value(array.as_primitive::<Time64MicrosecondType>().value(row)),
            Values::Interval(builder) => {
                builder.append_value(array.as_primitive::<IntervalMonthDayNanoType>().value(row));
            }
            Values::Label(builder) => builder.append_value(array.as_primitive::<TimestampSecondType>().value(row)),
            Values::Timestamp(builder) => {
                builder.append_value(array.as_primitive::<TimestampMicrosecondType>().value(row));
            }
        }
    }

    /// The column; the builder is empty again.
    pub(crate) fn finish(&mut self) -> ArrayRef {
        each!(&mut self.values, builder => Arc::new(builder.finish()))
    }
}

/// Values of so many bytes each.
fn fixed(width: usize) -> Values {
    Values::Fixed(FixedSizeBinaryBuilder::new(i32::try_from(width).unwrap_or(i32::MAX)))
}

/// Appends a value of as many bytes as the column has; of a value of another kind there are others.
fn put(builder: &mut FixedSizeBinaryBuilder, bytes: &[u8]) -> Result<(), Misfit> {
    builder.append_value(bytes).map_err(|_| Misfit::Kind)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text_value;

    fn show(data_type: DataType, append: impl Fn(&mut ColumnBuilder) -> Result<(), Misfit>) -> String {
        let mut builder = ColumnBuilder::new(data_type);
        match append(&mut builder) {
            Ok(()) => text_value(&builder.finish(), 0).unwrap_or("NULL".to_owned()),
            Err(misfit) => format!("{misfit:?}"),
        }
    }

    #[test]
    fn of_an_array_that_fails_nothing_stays() {
        let array = DataType::Array(engine::ArrayItem::Integer);
        let mut builder = ColumnBuilder::new(array);
        assert_eq!(builder.append_text("{1,x}"), Err(Misfit::Syntax));
        builder.append_null();
        ["{7,8}", "{}", "{9,NULL}"].iter().for_each(|text| assert_eq!(builder.append_text(text), Ok(())));
        let arrays = builder.finish();
        let texts: Vec<_> = (0..4).map(|row| text_value(&arrays, row)).collect();
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(texts, [None, text("{7,8}"), text("{}"), text("{9,NULL}")]);
    }

    #[test]
    fn number_literals_are_assigned_as_numbers() {
        let show = |data_type, number| show(data_type, |builder| builder.append_number(number));
        assert_eq!(show(DataType::Integer, "2.5"), "3");
        assert_eq!(show(DataType::Integer, "-2.5"), "-3");
        assert_eq!(show(DataType::SmallInt, "40000"), "Range");
        assert_eq!(show(DataType::TEXT, "1.50"), "1.50");
        assert_eq!(show(DataType::Boolean, "1"), "Kind");
        assert_eq!(show(DataType::Date, "20200101"), "Kind");
        assert_eq!(show(DataType::Decimal { precision: 4, scale: 1 }, "1.25"), "1.3");
    }

    #[test]
    fn text_literals_are_read_in_the_columns_syntax() {
        let show = |data_type, text| show(data_type, |builder| builder.append_text(text));
        assert_eq!(show(DataType::Integer, "2.5"), "Syntax");
        assert_eq!(show(DataType::Bytea, "\\xAB"), "\\xab");
        assert_eq!(show(DataType::TimestampTz, "2020-01-02 03:04:05-01"), "2020-01-02 04:04:05+00");
    }
}
