//! The common parts of all tests of encoded columns: values of every type in several shapes, and every form that a
//! column of them can have. The rule that all forms are held to is the array itself, read cell by cell.
mod columns;
mod defaults;
mod evaluation;
mod merging;

use arrow_array::{Array, ArrayRef};
use proptest::prelude::ProptestConfig;
use types::json::{Json, Jsonb};
use types::network::Family;
use types::{
    ArrayItem, ArrayValue, DataType, Geometry, GeometryKind, Interval, Network, NetworkKind, Numeric, RangeKind,
    RangeValue, Value, ZonedTime,
};

use super::choose::fill_nulls;
use super::choose::nulls_of;
use super::dictionary::Lookup;
use super::float::{Alp, Exponents};
use super::integers::{Integers, Runs};
use super::keys::is_float;
use super::packed::{Packed, extremes};
use super::predicate::{Comparison, Test};
use super::raw::Raw;
use super::simd::Simd;
use super::{EncodedColumn, Form, Meaning, dictionary, zones};
use crate::value::cell::{ArrayCells, Scratch, cell_of_value, is_wide};
use crate::value::column_builder::ColumnBuilder;

/// Small, fast, repeatable.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(2).wrapping_add(1))
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }
}

pub const TYPES: [DataType; 24] = [
    DataType::Boolean,
    DataType::SmallInt,
    DataType::Integer,
    DataType::BigInt,
    DataType::Real,
    DataType::Double,
    DataType::Decimal { precision: 15, scale: 2 },
    DataType::Decimal { precision: 38, scale: 4 },
    DataType::Numeric,
    DataType::TEXT,
    DataType::Bytea,
    DataType::Date,
    DataType::Timestamp,
    DataType::TimestampTz,
    DataType::Uuid,
    DataType::Json,
    DataType::Jsonb,
    DataType::Time,
    DataType::TimeTz,
    DataType::Interval,
    DataType::Array(ArrayItem::BigInt),
    DataType::Range(RangeKind::Int8),
    DataType::Geometry(GeometryKind::Point),
    DataType::Network(NetworkKind::Inet),
];

/// How the values of a column are spread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shape {
    Constant,
    Few,
    Runs,
    Ascending,
    Narrow,
    Any,
}

pub const SHAPES: [Shape; 6] = [Shape::Constant, Shape::Few, Shape::Runs, Shape::Ascending, Shape::Narrow, Shape::Any];

/// The value in row `i`.
pub fn value(data_type: DataType, shape: Shape, i: usize, random: &mut Random) -> Value {
    let spread = |number: u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17);
    let word = match shape {
        Shape::Constant => 77,
        Shape::Few => spread(random.next() % 5),
        Shape::Runs => spread(i as u64 / 130),
        Shape::Ascending => 5_000 + i as u64,
        Shape::Narrow => 100u64.wrapping_add(random.next() % 900).wrapping_sub(500),
        Shape::Any => match random.below(20) {
            0 => u64::MAX,
            1 => 0,
            2 => 1 << 63,
            3 => (1 << 63) - 1,
            _ => random.next(),
        },
    };
    of_word(data_type, shape, word)
}

fn of_word(data_type: DataType, shape: Shape, word: u64) -> Value {
    let number = word as i64;
    match data_type {
        DataType::TimeDigits { of, .. } => of_word(of.whole(), shape, word),
        DataType::Boolean => Value::Boolean(word % 3 == 1),
        DataType::SmallInt => Value::SmallInt(number as i16),
        DataType::Integer => Value::Integer(number as i32),
        DataType::Date => Value::Date(number as i32),
        DataType::BigInt => Value::BigInt(number),
        DataType::Timestamp => Value::Timestamp(number),
        DataType::TimestampTz => Value::TimestampTz(number),
        DataType::Decimal { precision: 15, scale } => Value::decimal(i128::from(number % 10i64.pow(15)), scale),
        DataType::Decimal { scale, .. } => Value::decimal(i128::from(number) * 1_000_000_007, scale),
        DataType::Numeric => Value::from(Numeric::new(number.into(), number.unsigned_abs() as u32 % 7)),
        DataType::Real | DataType::Double => float(data_type, shape, word),
        DataType::Text { .. } | DataType::Char { .. } => Value::Text(text(shape, word)),
        DataType::Bytea => Value::Bytea(text(shape, word).into_bytes()),
        DataType::Uuid => {
            let bytes = (u128::from(word) << 64 | u128::from(word.rotate_left(9))).to_be_bytes();
            Value::Uuid(bytes)
        }
        DataType::Json => Value::Json(format!("[{word}]")),
        DataType::Jsonb => Value::Jsonb(Jsonb::of(&Json::Array(vec![Json::Text(text(shape, word))]))),
        DataType::Time => Value::Time(number),
        DataType::TimeTz => Value::TimeTz(ZonedTime { micros: number >> 1, east: number as i32 % 50_000 }),
        DataType::Array(item) => Value::Array(ArrayValue::of(item, &[Value::BigInt(number), Value::Null])),
        DataType::Interval => Value::Interval(Interval { months: number as i32, days: -7, micros: number >> 8 }),
        DataType::Enum(of) => Value::Enum(types::EnumValue { of, position: number }),
        DataType::Range(kind) => {
            let lower = Some((i128::from(number), number % 2 == 0));
            RangeValue::new(kind, lower, None).unwrap_or(RangeValue::empty(kind)).into()
        }
        DataType::Geometry(kind) => Value::Geometry(Geometry::of_numbers(kind, [word as f64, 1.5, 2.0, 2.0])),
        DataType::Network(kind) => {
            let address = Network::new(kind, Family::V4, &(number as u32).to_be_bytes(), 32);
            Value::Network(address.expect("a host is a network, too"))
        }
    }
}

/// Decimals, and bits of all kinds: NaN with payloads, infinities, both zeros.
fn float(data_type: DataType, shape: Shape, word: u64) -> Value {
    let odd = [0x8000_0000_0000_0000, 0x7ff8_0000_0000_0123, 0xfff0_0000_0000_0000, 0x7ff0_0000_0000_0000, 1];
    let odd_reals = [0x8000_0000, 0x7fc0_0123, 0xff80_0000, 0x7f80_0000, 1];
    let is_odd = word.is_multiple_of(13) && shape != Shape::Constant;
    let i = (word % 5) as usize;
    match (data_type, shape) {
        (DataType::Real, _) if is_odd => Value::Real(f32::from_bits(odd_reals[i])),
        (_, _) if is_odd => Value::Double(f64::from_bits(odd[i])),
        (DataType::Real, Shape::Any) => Value::Real(f32::from_bits(word as u32)),
        (_, Shape::Any) => Value::Double(f64::from_bits(word)),
        (DataType::Real, _) => Value::Real((word as i64 % 100_000) as f32 / 100.0),
        (_, _) => Value::Double((word as i64 % 1_000_000_000) as f64 / 100.0),
    }
}

/// Short and long, with common beginnings, not only ASCII.
fn text(shape: Shape, word: u64) -> String {
    match word % 4 {
        0 if shape == Shape::Any => String::new(),
        0 => format!("{word}"),
        1 => format!("prefix ä {:x}", word >> 32),
        2 => format!("prefix and more than twelve bytes {word}"),
        _ => format!("ö{:04}", word % 10_000),
    }
}

pub fn array_of(data_type: DataType, values: &[Value]) -> ArrayRef {
    let mut builder = ColumnBuilder::new(data_type, values.len());
    for value in values {
        builder.push(cell_of_value(value, data_type, &mut Scratch::default()));
    }
    builder.finish()
}

/// `len` values, of which `null_percent` are NULL; from 100 on all.
pub fn values(data_type: DataType, shape: Shape, len: usize, null_percent: usize, random: &mut Random) -> Vec<Value> {
    let one = |i: usize| match random.below(100) < null_percent {
        true => Value::Null,
        false => value(data_type, shape, i, random),
    };
    (0..len).map(one).collect()
}

/// Every form in which a column of these values can be.
pub fn forms(array: &ArrayRef, data_type: DataType) -> Vec<EncodedColumn> {
    let (simd, len, nulls) = (Simd::best(), array.len(), nulls_of(array));
    let mut columns = vec![EncodedColumn::encode(array, data_type), EncodedColumn::raw(array.clone(), data_type)];
    let both = |keys: &[i64]| {
        [Integers::Packed(Packed::new(simd, keys, &extremes(simd, keys))), Integers::Runs(Runs::new(keys))]
    };
    let mut push = |integers: Integers, meaning: Meaning, zone_keys: &[i64]| {
        let zones = zones::of_keys(simd, zone_keys, nulls.as_ref());
        let form = Form::Encoded(integers, meaning);
        columns.push(EncodedColumn { data_type, len, nulls: nulls.clone(), form, zones });
    };
    let raw = Raw::of(array, data_type);
    if is_wide(data_type) {
        for i in 0..2 {
            let (entries, mut codes) = dictionary::of_raw(&raw, nulls.as_ref(), usize::MAX).expect("no limit");
            nulls.iter().for_each(|nulls| fill_nulls(&mut codes, nulls));
            let integers = both(&codes).into_iter().nth(i).expect("two forms");
            push(integers, Meaning::Entries(entries), &codes);
        }
        return columns;
    }
    let mut keys = vec![0; len];
    (0..len).step_by(1024).for_each(|from| raw.keys(from, len.min(from + 1024), &mut keys[from..]));
    nulls.iter().for_each(|nulls| fill_nulls(&mut keys, nulls));
    both(&keys).into_iter().for_each(|integers| push(integers, Meaning::Keys, &keys));
    let (distinct, codes) = dictionary::of_keys(&keys, usize::MAX).expect("no limit");
    both(&codes)
        .into_iter()
        .for_each(|integers| push(integers, Meaning::Lookup(Lookup(distinct.clone().into())), &keys));
    if is_float(data_type)
        && let Some((exponents, _)) = Exponents::choose(&keys, len, data_type)
        && let Some((integers, alp)) = Alp::encode(simd, &keys, exponents)
    {
        let again = Alp::encode(simd, &keys, exponents).expect("as before").1;
        let [packed, runs] = both(&integers);
        push(packed, Meaning::Float(alp), &keys);
        push(runs, Meaning::Float(again), &keys);
    }
    columns
}

/// A test of some kind with literals near the values of a column.
pub fn some_test(data_type: DataType, shape: Shape, values: &[Value], random: &mut Random) -> Test {
    let mut literal = || match random.below(8) {
        0 => Value::Null,
        1 => value(data_type, Shape::Any, 3, random),
        2 => value(data_type, shape, values.len() / 2, random),
        _ if values.is_empty() => value(data_type, shape, 0, random),
        _ => values[random.below(values.len())].clone(),
    };
    let (first, second, third) = (literal(), literal(), literal());
    let comparisons = [
        Comparison::Eq,
        Comparison::NotEq,
        Comparison::Less,
        Comparison::LessOrEqual,
        Comparison::Greater,
        Comparison::GreaterOrEqual,
    ];
    match random.below(12) {
        0 => Test::IsNull,
        1 => Test::IsNotNull,
        2 | 3 => Test::Between(first, second),
        4 => Test::In(vec![first, second, third]),
        5 if !is_wide(data_type) => {
            let every_third = values.iter().step_by(3).cloned();
            Test::In(every_third.take(200).collect())
        }
        5 => {
            let prefixes: [&[u8]; 4] = [b"", b"prefix", "prefix ä".as_bytes(), &[0xc3]];
            Test::Prefix(prefixes[random.below(4)].to_vec())
        }
        _ => Test::Compare(comparisons[random.below(6)], first),
    }
}

/// How many cases a property is tried on; failures leave no file behind.
pub fn cases(count: u32) -> ProptestConfig {
    ProptestConfig { cases: count, failure_persistence: None, ..ProptestConfig::default() }
}

pub fn cells(array: &ArrayRef, data_type: DataType) -> ArrayCells<'_> {
    ArrayCells::new(array.as_ref(), data_type)
}
