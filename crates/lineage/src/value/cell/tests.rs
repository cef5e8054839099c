//! Values of every type come back from cells and arrays.
use types::ArrayItem;

use super::super::uuid_text::text_of_uuid;
use super::*;
use crate::value::column_builder::ColumnBuilder;

fn samples() -> Vec<(DataType, Value)> {
    let narrow = DataType::Decimal { precision: 15, scale: 2 };
    let wide = DataType::Decimal { precision: 38, scale: 4 };
    [
        (DataType::Boolean, Value::Boolean(true)),
        (DataType::SmallInt, Value::SmallInt(i16::MIN)),
        (DataType::Integer, Value::Integer(-5)),
        (DataType::BigInt, Value::BigInt(i64::MIN)),
        (DataType::Real, Value::Real(-0.5)),
        (DataType::Double, Value::Double(1e300)),
        (narrow, Value::decimal(-12_345, 2)),
        (wide, Value::decimal(-10i128.pow(37), 4)),
        (DataType::TEXT, Value::from("a text longer than twelve bytes, with äöü")),
        (DataType::Bytea, Value::from(vec![0u8, 255, 7])),
        (DataType::Date, Value::Date(-1)),
        (DataType::Timestamp, Value::Timestamp(-1)),
        (DataType::TimestampTz, Value::TimestampTz(1_700_000_000_000_000)),
        (DataType::Uuid, Value::Uuid(std::array::from_fn(|i| (i * 17) as u8))),
        (DataType::Json, Value::Json("[1, 2]".to_owned())),
        (DataType::Jsonb, Value::Jsonb(Jsonb::parse("{\"a\": [1.50, \"b\"]}").unwrap())),
        (DataType::Time, Value::Time(86_399_999_999)),
        (DataType::TimeTz, Value::TimeTz(ZonedTime { micros: 86_400_000_000, east: -28_800 })),
        (
            DataType::Array(ArrayItem::Integer),
            Value::Array(ArrayValue::of(ArrayItem::Integer, &[Value::Integer(0), Value::Null])),
        ),
        (DataType::Interval, Value::Interval(Interval { months: 14, days: -3, micros: 7 })),
    ]
    .into_iter()
    .chain(RangeKind::ALL.map(|kind| (DataType::Range(kind), range(kind, -3))))
    .chain(GeometryKind::ALL.map(|kind| (DataType::Geometry(kind), shape(kind, 1.5))))
    .chain(NetworkKind::ALL.map(|kind| (DataType::Network(kind), address(kind))))
    .collect()
}

fn range(kind: RangeKind, lower: i128) -> Value {
    RangeValue::new(kind, Some((lower, true)), None).unwrap().into()
}

fn address(kind: NetworkKind) -> Value {
    Value::Network(Network::parse(kind, "2001:db8::/32").unwrap())
}

fn shape(kind: GeometryKind, number: f64) -> Value {
    Value::Geometry(Geometry::of_numbers(kind, [number, -number, 7.0, 0.0]))
}

#[test]
fn uuids_are_written_as_values_print_them() {
    let uuid = std::array::from_fn(|i| (i * 37 + 9) as u8);
    assert_eq!(text_of_uuid(&uuid).as_slice(), Value::Uuid(uuid).to_string().as_bytes());
}

#[test]
fn each_type_has_a_number_of_its_own_on_disk() {
    let mut tags: Vec<[u8; 3]> = samples().iter().map(|(data_type, _)| tag_of(*data_type)).collect();
    let count = tags.len();
    tags.sort_unstable();
    tags.dedup();
    assert_eq!(tags.len(), count);
}

#[test]
fn every_type_survives_cells_and_arrays() {
    for (data_type, value) in samples() {
        let mut builder = ColumnBuilder::new(data_type, 2);
        let mut scratch = Scratch::default();
        let cell = cell_of_value(&value, data_type, &mut scratch);
        assert_eq!(matches!(cell, Cell::Bytes(_)), is_wide(data_type), "{data_type}");
        assert_eq!(value_of_cell(cell, data_type), value);
        builder.push(cell);
        builder.push(Cell::Null);
        let array = builder.finish();
        assert_eq!(array.data_type(), &data_type.to_stored_arrow());
        let cells = ArrayCells::new(&array, data_type);
        assert_eq!(value_of_cell(cells.get(0), data_type), value);
        assert_eq!(cells.get(1), Cell::Null);
    }
}
