//! One value on its way into or out of a page, and its translation from and to [`Value`]s and Arrow arrays.
//!
//! Insert and tail pages store a 64-bit word for each value: types of at most eight bytes as their bits, longer ones
//! as a place in the range's byte heap. A [`Cell`] is a value in that form, with the bytes lent. Base pages store
//! Arrow arrays. This module alone knows which bits stand for which type.
use std::borrow::Cow;
use std::ops::Range;

use super::uuid_text::{UUID_CHARS, text_of_uuid, uuid_of_text};
use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Int32Type, Int64Type, Time64MicrosecondType, TimestampMicrosecondType, TimestampSecondType,
};
use smallvec::SmallVec;
use types::geometry::GEOMETRY_BYTES_MAX;
use types::json::Jsonb;
use types::range::RANGE_BYTES_MAX;
use types::{
    ArrayValue, DataType, Decimal, EnumValue, Geometry, GeometryKind, Interval, Network, NetworkKind, Numeric,
    RangeKind, RangeValue, Value, ZonedTime,
};

// Arrow keeps decimals in the machine's byte order; cells lend those bytes as they are.
const _: () = assert!(cfg!(target_endian = "little"));

/// The most digits that a decimal may have to be stored as one word.
const WORD_DECIMAL_DIGITS: u8 = 18;

/// A value as pages store it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cell<'a> {
    /// NULL.
    Null,
    /// The bits of a value of at most eight bytes, sign-extended.
    Word(u64),
    /// The bytes of a longer value: text, bytea, uuid (as its text), decimal of more than 18 digits (16 bytes, little-endian).
    Bytes(&'a [u8]),
}

impl Cell<'_> {
    /// The word of a value that is stored as one; `None` of NULL, and of bytes.
    #[inline]
    pub fn word(self) -> Option<u64> {
        match self {
            Cell::Word(word) => Some(word),
            Cell::Null | Cell::Bytes(_) => None,
        }
    }
}

/// A few values with their columns.
pub(crate) type ColumnCells<'a> = SmallVec<[(usize, Cell<'a>); 8]>;

/// How pages and arrays hold the values of a type. What is stored in one way is compared, added up and packed in one way: a
/// new type that is stored as another one is needs nothing more here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Storage {
    /// A truth value: a word that is 0 or 1, a bit in an array.
    Boolean,
    /// A word in the order of signed integers, 16 bits in an array.
    I16,
    /// A word in the order of signed integers, 32 bits in an array.
    I32,
    /// A word in the order of signed integers.
    I64,
    /// The bits of a float of 32 bits.
    F32,
    /// The bits of a float of 64 bits.
    F64,
    /// The digits of a decimal of at most 18: a word in the order of signed integers, 128 bits in an array.
    Decimal,
    /// The digits of a decimal of more: 16 bytes, in the order of the number.
    WideDecimal,
    /// Text, in the order of its bytes.
    Text,
    /// Bytes, in their order.
    Bytes,
}

impl Storage {
    /// How values of this type are held.
    #[inline]
    pub fn of(data_type: DataType) -> Storage {
        match data_type {
            DataType::TimeDigits { of, .. } => Storage::of(of.whole()),
            DataType::Boolean => Storage::Boolean,
            DataType::SmallInt => Storage::I16,
            DataType::Integer | DataType::Date => Storage::I32,
            DataType::BigInt | DataType::Timestamp | DataType::TimestampTz | DataType::Time | DataType::Enum(_) => {
                Storage::I64
            }
            DataType::Real => Storage::F32,
            DataType::Double => Storage::F64,
            DataType::Decimal { precision, .. } if precision <= WORD_DECIMAL_DIGITS => Storage::Decimal,
            DataType::Decimal { .. } => Storage::WideDecimal,
            DataType::Text { .. } | DataType::Char { .. } | DataType::Uuid | DataType::Json => Storage::Text,
            DataType::Bytea
            | DataType::Jsonb
            | DataType::Numeric
            | DataType::TimeTz
            | DataType::Interval
            | DataType::Range(_)
            | DataType::Geometry(_)
            | DataType::Network(_)
            | DataType::Array(_) => Storage::Bytes,
        }
    }
}

/// What the number of a type has for arrays of that type.
const ARRAYS: u8 = 1 << 7;

/// A number for each type on disk, and what it is made with.
pub(crate) fn tag_of(data_type: DataType) -> [u8; 3] {
    match data_type {
        DataType::Boolean => [1, 0, 0],
        DataType::SmallInt => [2, 0, 0],
        DataType::Integer => [3, 0, 0],
        DataType::BigInt => [4, 0, 0],
        DataType::Real => [5, 0, 0],
        DataType::Double => [6, 0, 0],
        DataType::Decimal { precision, scale } => [7, precision, scale as u8],
        DataType::Text { .. } | DataType::Char { .. } => [8, 0, 0],
        DataType::Bytea => [9, 0, 0],
        DataType::Date => [10, 0, 0],
        DataType::Timestamp => [11, 0, 0],
        DataType::TimestampTz => [12, 0, 0],
        DataType::Uuid => [13, 0, 0],
        DataType::Json => [14, 0, 0],
        DataType::Jsonb => [15, 0, 0],
        DataType::Time => [16, 0, 0],
        DataType::Interval => [17, 0, 0],
        DataType::Enum(_) => [18, 0, 0],
        DataType::Range(kind) => [19, range_number(kind), 0],
        DataType::Geometry(kind) => [20, geometry_number(kind), 0],
        DataType::Network(kind) => [21, network_number(kind), 0],
        DataType::Numeric => [22, 0, 0],
        DataType::TimeTz => [23, 0, 0],
        DataType::TimeDigits { of, .. } => tag_of(of.whole()),
        // Behind the numbers of all other types: one for arrays of each.
        DataType::Array(item) => {
            let [number, first, second] = tag_of(item.data_type());
            [number | ARRAYS, first, second]
        }
    }
}

fn range_number(kind: RangeKind) -> u8 {
    match kind {
        RangeKind::Int4 => 1,
        RangeKind::Int8 => 2,
        RangeKind::Num => 3,
        RangeKind::Date => 4,
        RangeKind::Ts => 5,
        RangeKind::TsTz => 6,
    }
}

fn network_number(kind: NetworkKind) -> u8 {
    match kind {
        NetworkKind::Inet => 1,
        NetworkKind::Cidr => 2,
    }
}

fn geometry_number(kind: GeometryKind) -> u8 {
    match kind {
        GeometryKind::Point => 1,
        GeometryKind::Box => 2,
        GeometryKind::Circle => 3,
    }
}

/// Does something with the Arrow type of an array of whole numbers or floats, by the name `$arrow`; something else for types with
/// arrays of another kind.
macro_rules! with_primitive {
    ($data_type:expr, $arrow:ident => $action:expr, _ => $other:expr) => {
        match $data_type.whole() {
            ::types::DataType::SmallInt => {
                type $arrow = ::arrow_array::types::Int16Type;
                $action
            }
            ::types::DataType::Integer => {
                type $arrow = ::arrow_array::types::Int32Type;
                $action
            }
            ::types::DataType::BigInt => {
                type $arrow = ::arrow_array::types::Int64Type;
                $action
            }
            ::types::DataType::Real => {
                type $arrow = ::arrow_array::types::Float32Type;
                $action
            }
            ::types::DataType::Double => {
                type $arrow = ::arrow_array::types::Float64Type;
                $action
            }
            ::types::DataType::Date => {
                type $arrow = ::arrow_array::types::Date32Type;
                $action
            }
            ::types::DataType::Timestamp | ::types::DataType::TimestampTz => {
                type $arrow = ::arrow_array::types::TimestampMicrosecondType;
                $action
            }
            ::types::DataType::Time => {
                type $arrow = ::arrow_array::types::Time64MicrosecondType;
                $action
            }
            ::types::DataType::Enum(_) => {
                type $arrow = ::arrow_array::types::TimestampSecondType;
                $action
            }
            ::types::DataType::Boolean
            | ::types::DataType::Decimal { .. }
            | ::types::DataType::Text { .. }
            | ::types::DataType::Char { .. }
            | ::types::DataType::Bytea
            | ::types::DataType::Uuid
            | ::types::DataType::Json
            | ::types::DataType::Jsonb
            | ::types::DataType::Numeric
            | ::types::DataType::TimeTz
            | ::types::DataType::TimeDigits { .. }
            | ::types::DataType::Interval
            | ::types::DataType::Range(_)
            | ::types::DataType::Geometry(_)
            | ::types::DataType::Network(_)
            | ::types::DataType::Array(_) => $other,
        }
    };
}
pub(crate) use with_primitive;

/// Whether values of this type are stored as bytes in the heap, not as a word.
#[inline]
pub fn is_wide(data_type: DataType) -> bool {
    matches!(Storage::of(data_type), Storage::WideDecimal | Storage::Text | Storage::Bytes)
}

/// The least and the greatest word of a type that is stored as a word.
pub fn words_of(data_type: DataType) -> (i64, i64) {
    match (Storage::of(data_type), data_type) {
        (Storage::Boolean, _) => (0, 1),
        (Storage::I16, _) => (i64::from(i16::MIN), i64::from(i16::MAX)),
        (Storage::I32, _) => (i64::from(i32::MIN), i64::from(i32::MAX)),
        (Storage::F32, _) => (0, i64::from(u32::MAX)),
        (Storage::Decimal, DataType::Decimal { precision, .. }) => {
            let greatest = 10i64.saturating_pow(u32::from(precision)) - 1;
            (-greatest, greatest)
        }
        _ => (i64::MIN, i64::MAX),
    }
}

/// The most bytes of a value that its [`Value`] does not hold in the stored form.
const SCRATCH_BYTES: usize = RANGE_BYTES_MAX;
const _: () = assert!(SCRATCH_BYTES >= UUID_CHARS && SCRATCH_BYTES >= GEOMETRY_BYTES_MAX);

/// Room for the bytes of one value that its [`Value`] does not hold in the stored form.
pub struct Scratch([u8; SCRATCH_BYTES]);

impl Scratch {
    /// Copies bytes into the room, and lends them from there.
    #[inline]
    fn keep<const N: usize>(&mut self, bytes: &[u8; N]) -> &[u8] {
        let room = &mut self.0[..N];
        room.copy_from_slice(bytes);
        room
    }
}

impl Default for Scratch {
    #[inline]
    fn default() -> Scratch {
        Scratch([0; SCRATCH_BYTES])
    }
}

/// The word of a value that has exactly the type `data_type` and is stored as a word; `None` for all others.
#[inline]
pub fn word_of_value(value: &Value, data_type: DataType) -> Option<u64> {
    match (value, data_type) {
        (Value::BigInt(value), DataType::BigInt) => Some(*value as u64),
        (Value::Integer(value), DataType::Integer) => Some(i64::from(*value) as u64),
        _ if is_wide(data_type) || value.is_null() || !value.fits(data_type) => None,
        _ => match cell_of_value(value, data_type, &mut Scratch::default()) {
            Cell::Word(word) => Some(word),
            Cell::Null | Cell::Bytes(_) => None,
        },
    }
}

/// The cell of a value that fits `data_type` (see [`Value::fits`]).
pub fn cell_of_value<'a>(value: &'a Value, data_type: DataType, scratch: &'a mut Scratch) -> Cell<'a> {
    debug_assert!(value.fits(data_type), "{value} does not fit {data_type}");
    match value {
        Value::Null => Cell::Null,
        Value::Decimal(number) if !is_wide(data_type) => Cell::Word(number.unscaled as i64 as u64),
        value => match word_of(value) {
            Some(word) => Cell::Word(word),
            None => Cell::Bytes(bytes_of(value, scratch)),
        },
    }
}

/// The word of a value of a type that is stored as one, whichever; `None` for all others, and for decimals.
#[inline]
pub(crate) fn word_of(value: &Value) -> Option<u64> {
    match value {
        Value::Boolean(value) => Some(u64::from(*value)),
        Value::SmallInt(value) => Some(i64::from(*value) as u64),
        Value::Integer(value) | Value::Date(value) => Some(i64::from(*value) as u64),
        Value::BigInt(value) | Value::Timestamp(value) | Value::TimestampTz(value) | Value::Time(value) => {
            Some(*value as u64)
        }
        Value::Enum(value) => Some(value.position as u64),
        Value::Real(value) => Some(u64::from(value.to_bits())),
        Value::Double(value) => Some(value.to_bits()),
        Value::Null
        | Value::Decimal(_)
        | Value::Text(_)
        | Value::Bytea(_)
        | Value::Uuid(_)
        | Value::Json(_)
        | Value::Jsonb(_)
        | Value::Numeric(_)
        | Value::TimeTz(_)
        | Value::Interval(_)
        | Value::Range(_)
        | Value::Geometry(_)
        | Value::Network(_)
        | Value::Array(_) => None,
    }
}

/// The bytes of a value of a type that is stored as bytes, a decimal's as of many digits.
#[inline]
pub(crate) fn bytes_of<'a>(value: &'a Value, scratch: &'a mut Scratch) -> &'a [u8] {
    match value {
        Value::Text(text) | Value::Json(text) => text.as_bytes(),
        Value::Bytea(bytes) => bytes,
        Value::Jsonb(value) => value.as_bytes(),
        Value::Numeric(number) => number.as_bytes(),
        Value::Array(array) => array.as_bytes(),
        Value::TimeTz(time) => scratch.keep(&time.to_bytes()),
        Value::Interval(span) => scratch.keep(&span.to_bytes()),
        Value::Range(range) => range.write_bytes(&mut scratch.0),
        Value::Geometry(shape) => shape.write_bytes(&mut scratch.0),
        Value::Network(address) => address.write_bytes(&mut scratch.0),
        Value::Decimal(number) => scratch.keep(&number.unscaled.to_le_bytes()),
        Value::Uuid(uuid) => scratch.keep(&text_of_uuid(uuid)),
        other => unreachable!("{other} is stored as a word"),
    }
}

/// The value of a cell of this type.
pub fn value_of_cell(cell: Cell<'_>, data_type: DataType) -> Value {
    match (cell, data_type) {
        (Cell::Null, _) => Value::Null,
        (Cell::Word(word), _) => value_of_word(word, data_type),
        (Cell::Bytes(bytes), _) => value_of_bytes(bytes, data_type),
    }
}

/// Puts the value of a word of this type into the place of another, which mostly is of the type already: a number is changed where it
/// lies, as a value that is made elsewhere and moved is read before the parts that were written of it have come together.
#[inline]
pub fn put_value_of_word(word: u64, data_type: DataType, into: &mut Value) {
    match (data_type, into) {
        (DataType::BigInt, Value::BigInt(number)) => *number = word as i64,
        (DataType::Integer, Value::Integer(number)) => *number = word as i32,
        (_, into) => *into = value_of_word(word, data_type),
    }
}

/// The text that bytes are. They were checked when they came in as `str`, and where a page is damaged no wrong text is made of
/// them.
fn text(bytes: &[u8]) -> Cow<'_, str> {
    if types::is_ascii(bytes) {
        // SAFETY: each of these bytes is a character.
        return Cow::Borrowed(unsafe { std::str::from_utf8_unchecked(bytes) });
    }
    std::str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

fn value_of_bytes(bytes: &[u8], data_type: DataType) -> Value {
    match data_type {
        DataType::Text { .. } | DataType::Char { .. } => Value::Text(text(bytes).into_owned()),
        DataType::Bytea => Value::Bytea(bytes.to_vec()),
        DataType::Json => Value::Json(String::from_utf8_lossy(bytes).into_owned()),
        DataType::Jsonb => Value::Jsonb(Jsonb::from_bytes(bytes)),
        DataType::Numeric => Value::Numeric(Numeric::from_bytes(bytes)),
        DataType::TimeTz => Value::TimeTz(ZonedTime::from_bytes(bytes)),
        DataType::TimeDigits { of, .. } => value_of_bytes(bytes, of.whole()),
        DataType::Interval => Value::Interval(Interval::from_bytes(bytes)),
        DataType::Range(kind) => Value::from(RangeValue::from_bytes(kind, bytes)),
        DataType::Geometry(kind) => Value::Geometry(Geometry::from_bytes(kind, bytes)),
        DataType::Network(kind) => Value::Network(Network::from_bytes(kind, bytes)),
        DataType::Array(item) => Value::Array(ArrayValue::from_bytes(item, bytes)),
        DataType::Decimal { scale, .. } => Value::Decimal(Decimal { unscaled: decimal_of_bytes(bytes), scale }),
        DataType::Uuid => Value::Uuid(uuid_of_text(bytes)),
        DataType::Boolean
        | DataType::SmallInt
        | DataType::Integer
        | DataType::BigInt
        | DataType::Real
        | DataType::Double
        | DataType::Date
        | DataType::Timestamp
        | DataType::TimestampTz
        | DataType::Enum(_)
        | DataType::Time => unreachable!("{data_type} is stored as a word"),
    }
}

fn value_of_word(word: u64, data_type: DataType) -> Value {
    match data_type {
        DataType::Boolean => Value::Boolean(word != 0),
        DataType::SmallInt => Value::SmallInt(word as i16),
        DataType::Integer => Value::Integer(word as i32),
        DataType::Date => Value::Date(word as i32),
        DataType::Timestamp => Value::Timestamp(word as i64),
        DataType::TimestampTz => Value::TimestampTz(word as i64),
        DataType::Real => Value::Real(f32::from_bits(word as u32)),
        DataType::Double => Value::Double(f64::from_bits(word)),
        DataType::Decimal { scale, .. } => Value::Decimal(Decimal { unscaled: i128::from(word as i64), scale }),
        DataType::BigInt => Value::BigInt(word as i64),
        DataType::Time => Value::Time(word as i64),
        DataType::TimeDigits { of, .. } => value_of_word(word, of.whole()),
        DataType::Enum(of) => Value::Enum(EnumValue { of, position: word as i64 }),
        DataType::Text { .. }
        | DataType::Char { .. }
        | DataType::Bytea
        | DataType::Uuid
        | DataType::Json
        | DataType::Jsonb
        | DataType::Numeric
        | DataType::TimeTz
        | DataType::Interval
        | DataType::Range(_)
        | DataType::Geometry(_)
        | DataType::Network(_)
        | DataType::Array(_) => unreachable!("{data_type} is stored as bytes"),
    }
}

pub(super) fn decimal_of_bytes(bytes: &[u8]) -> i128 {
    let mut digits = [0; 16];
    digits.copy_from_slice(&bytes[..16]);
    i128::from_le_bytes(digits)
}

/// A column of an Arrow batch, read cell by cell. The array must have the type's Arrow form.
#[allow(missing_docs, reason = "each variant is the array of the type that it names")]
pub enum ArrayCells<'a> {
    Boolean(&'a arrow_array::BooleanArray),
    I16(&'a arrow_array::Int16Array),
    I32(&'a [i32], &'a dyn Array),
    I64(&'a [i64], &'a dyn Array),
    F32(&'a arrow_array::Float32Array),
    F64(&'a arrow_array::Float64Array),
    Decimal(&'a arrow_array::Decimal128Array),
    WideDecimal(&'a arrow_array::Decimal128Array),
    Text(&'a arrow_array::StringViewArray),
    Bytea(&'a arrow_array::BinaryViewArray),
}

impl<'a> ArrayCells<'a> {
    /// Reads `array` as a column of this type.
    ///
    /// # Panics
    /// If the array's Arrow type is not the one of `data_type`.
    pub fn new(array: &'a dyn Array, data_type: DataType) -> Self {
        match data_type {
            DataType::Boolean => ArrayCells::Boolean(array.as_boolean()),
            DataType::SmallInt => ArrayCells::I16(array.as_primitive()),
            DataType::Integer => ArrayCells::I32(array.as_primitive::<Int32Type>().values(), array),
            DataType::Date => ArrayCells::I32(array.as_primitive::<Date32Type>().values(), array),
            DataType::BigInt => ArrayCells::I64(array.as_primitive::<Int64Type>().values(), array),
            DataType::Timestamp | DataType::TimestampTz => {
                ArrayCells::I64(array.as_primitive::<TimestampMicrosecondType>().values(), array)
            }
            DataType::TimeDigits { of, .. } => ArrayCells::new(array, of.whole()),
            DataType::Time => ArrayCells::I64(array.as_primitive::<Time64MicrosecondType>().values(), array),
            DataType::Enum(_) => ArrayCells::I64(array.as_primitive::<TimestampSecondType>().values(), array),
            DataType::Real => ArrayCells::F32(array.as_primitive()),
            DataType::Double => ArrayCells::F64(array.as_primitive()),
            DataType::Decimal { .. } if is_wide(data_type) => ArrayCells::WideDecimal(array.as_primitive()),
            DataType::Decimal { .. } => ArrayCells::Decimal(array.as_primitive()),
            DataType::Text { .. } | DataType::Char { .. } | DataType::Uuid | DataType::Json => {
                ArrayCells::Text(array.as_string_view())
            }
            DataType::Bytea
            | DataType::Jsonb
            | DataType::Numeric
            | DataType::TimeTz
            | DataType::Interval
            | DataType::Range(_)
            | DataType::Geometry(_)
            | DataType::Network(_)
            | DataType::Array(_) => ArrayCells::Bytea(array.as_binary_view()),
        }
    }

    /// The cell at `row`.
    #[inline]
    pub fn get(&self, row: usize) -> Cell<'a> {
        if self.is_null(row) {
            return Cell::Null;
        }
        match self {
            ArrayCells::Boolean(array) => Cell::Word(u64::from(array.value(row))),
            ArrayCells::I16(array) => Cell::Word(i64::from(array.value(row)) as u64),
            ArrayCells::I32(values, _) => Cell::Word(i64::from(values[row]) as u64),
            ArrayCells::I64(values, _) => Cell::Word(values[row] as u64),
            ArrayCells::F32(array) => Cell::Word(u64::from(array.value(row).to_bits())),
            ArrayCells::F64(array) => Cell::Word(array.value(row).to_bits()),
            ArrayCells::Decimal(array) => Cell::Word(array.value(row) as i64 as u64),
            ArrayCells::WideDecimal(array) => Cell::Bytes(&array.values().inner().as_slice()[row * 16..][..16]),
            ArrayCells::Text(array) => Cell::Bytes(array.value(row).as_bytes()),
            ArrayCells::Bytea(array) => Cell::Bytes(array.value(row)),
        }
    }

    #[inline]
    fn is_null(&self, row: usize) -> bool {
        self.array().is_null(row)
    }

    #[inline]
    fn array(&self) -> &dyn Array {
        match self {
            ArrayCells::Boolean(array) => array,
            ArrayCells::I16(array) => array,
            ArrayCells::I32(_, array) | ArrayCells::I64(_, array) => *array,
            ArrayCells::F32(array) => array,
            ArrayCells::F64(array) => array,
            ArrayCells::Decimal(array) | ArrayCells::WideDecimal(array) => array,
            ArrayCells::Text(array) => array,
            ArrayCells::Bytea(array) => array,
        }
    }

    /// Whether its values are stored as bytes, not as words.
    pub fn is_wide(&self) -> bool {
        matches!(self, ArrayCells::WideDecimal(_) | ArrayCells::Text(_) | ArrayCells::Bytea(_))
    }

    /// Whether a value at these rows is NULL.
    pub fn has_null(&self, rows: Range<usize>) -> bool {
        self.array().null_count() > 0 && rows.into_iter().any(|row| self.is_null(row))
    }

    /// The views of the values, of a column that has such: rows with equal views have equal values.
    pub(crate) fn views(&self) -> Option<&'a [u128]> {
        match self {
            ArrayCells::Text(array) => Some(array.views()),
            ArrayCells::Bytea(array) => Some(array.views()),
            _ => None,
        }
    }

    /// The length of the longest value at these rows, and of all together, of a column that is stored as bytes; 0 of others. A NULL may
    /// be counted as what stands in its place.
    pub fn lengths(&self, rows: Range<usize>) -> (usize, usize) {
        match self {
            ArrayCells::WideDecimal(_) => (size_of::<i128>(), size_of::<i128>() * rows.len()),
            // A view begins with the length.
            _ => self.views().map_or((0, 0), |views| {
                let lengths = views[rows].iter().map(|view| *view as u32 as usize);
                lengths.fold((0, 0), |(longest, all), length| (length.max(longest), all + length))
            }),
        }
    }

    /// Passes on the words of these rows, each with its place among them, of a column without NULL there. False, and nothing is
    /// passed on, if the column is not stored as words.
    pub fn each_word(&self, rows: Range<usize>, mut put: impl FnMut(usize, u64)) -> bool {
        fn each<T: Copy>(values: &[T], word: impl Fn(T) -> u64, mut put: impl FnMut(usize, u64)) {
            values.iter().enumerate().for_each(|(at, value)| put(at, word(*value)));
        }
        match self {
            ArrayCells::Boolean(array) => rows.enumerate().for_each(|(at, row)| put(at, u64::from(array.value(row)))),
            ArrayCells::I16(array) => each(&array.values()[rows], |value| i64::from(value) as u64, put),
            ArrayCells::I32(values, _) => each(&values[rows], |value| i64::from(value) as u64, put),
            ArrayCells::I64(values, _) => each(&values[rows], |value| value as u64, put),
            ArrayCells::F32(array) => each(&array.values()[rows], |value| u64::from(value.to_bits()), put),
            ArrayCells::F64(array) => each(&array.values()[rows], f64::to_bits, put),
            ArrayCells::Decimal(array) => each(&array.values()[rows], |value| value as i64 as u64, put),
            ArrayCells::WideDecimal(_) | ArrayCells::Text(_) | ArrayCells::Bytea(_) => return false,
        }
        true
    }
}

#[cfg(test)]
mod tests;
