//! Building Arrow arrays value by value.
use std::sync::Arc;

use arrow_array::builder::{ArrayBuilder, BooleanBuilder};
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type,
    Time64MicrosecondType, TimestampMicrosecondType, TimestampSecondType,
};
use arrow_array::{ArrayRef, PrimitiveArray};
use arrow_buffer::NullBufferBuilder;
use types::DataType;

use crate::value::cell::{Cell, decimal_of_bytes};
use crate::value::views::Views;

/// Builds the Arrow array of one column from cells.
pub struct ColumnBuilder {
    data_type: DataType,
    builder: Builder,
}

enum Builder {
    Boolean(BooleanBuilder),
    I16(Numbers<Int16Type>),
    I32(Numbers<Int32Type>),
    I64(Numbers<Int64Type>),
    F32(Numbers<Float32Type>),
    F64(Numbers<Float64Type>),
    Date(Numbers<Date32Type>),
    Time(Numbers<TimestampMicrosecondType>),
    Clock(Numbers<Time64MicrosecondType>),
    Label(Numbers<TimestampSecondType>),
    Decimal(Numbers<Decimal128Type>),
    Text(Views),
    Bytea(Views),
}

impl ColumnBuilder {
    /// A builder for a column of this type with room for `capacity` values.
    pub fn new(data_type: DataType, capacity: usize) -> Self {
        let builder = match data_type.whole() {
            DataType::Boolean => Builder::Boolean(BooleanBuilder::with_capacity(capacity)),
            DataType::SmallInt => Builder::I16(Numbers::new(capacity)),
            DataType::Integer => Builder::I32(Numbers::new(capacity)),
            DataType::BigInt => Builder::I64(Numbers::new(capacity)),
            DataType::Real => Builder::F32(Numbers::new(capacity)),
            DataType::Double => Builder::F64(Numbers::new(capacity)),
            DataType::Date => Builder::Date(Numbers::new(capacity)),
            DataType::Timestamp | DataType::TimestampTz => Builder::Time(Numbers::new(capacity)),
            DataType::Decimal { .. } => Builder::Decimal(Numbers::new(capacity)),
            DataType::Time => Builder::Clock(Numbers::new(capacity)),
            DataType::Enum(_) => Builder::Label(Numbers::new(capacity)),
            DataType::Text { .. } | DataType::Char { .. } | DataType::Uuid | DataType::Json => {
                Builder::Text(Views::new(capacity))
            }
            DataType::Bytea
            | DataType::Jsonb
            | DataType::Numeric
            | DataType::TimeTz
            | DataType::TimeDigits { .. }
            | DataType::Interval
            | DataType::Range(_)
            | DataType::Geometry(_)
            | DataType::Network(_)
            | DataType::Array(_) => Builder::Bytea(Views::new(capacity)),
        };
        ColumnBuilder { data_type, builder }
    }

    /// Adds one value.
    #[inline]
    pub fn push(&mut self, cell: Cell<'_>) {
        match cell {
            Cell::Null => self.push_null(),
            Cell::Word(word) => self.push_word(word),
            Cell::Bytes(bytes) => match &mut self.builder {
                Builder::Decimal(builder) => builder.append_value(decimal_of_bytes(bytes)),
                Builder::Text(builder) | Builder::Bytea(builder) => builder.append_value(bytes),
                _ => unreachable!("column of {} holds words", self.data_type),
            },
        }
    }

    #[inline]
    fn push_word(&mut self, word: u64) {
        match &mut self.builder {
            Builder::Boolean(builder) => builder.append_value(word != 0),
            Builder::I16(builder) => builder.append_value(word as i16),
            Builder::I32(builder) => builder.append_value(word as i32),
            Builder::I64(builder) => builder.append_value(word as i64),
            Builder::F32(builder) => builder.append_value(f32::from_bits(word as u32)),
            Builder::F64(builder) => builder.append_value(f64::from_bits(word)),
            Builder::Date(builder) => builder.append_value(word as i32),
            Builder::Time(builder) => builder.append_value(word as i64),
            Builder::Clock(builder) => builder.append_value(word as i64),
            Builder::Label(builder) => builder.append_value(word as i64),
            Builder::Decimal(builder) => builder.append_value(i128::from(word as i64)),
            Builder::Text(_) | Builder::Bytea(_) => unreachable!("column of {} holds bytes", self.data_type),
        }
    }

    /// Adds values that are words, none of them NULL.
    ///
    /// # Panics
    /// If the column's values are not stored as words.
    pub fn extend_words(&mut self, words: impl Iterator<Item = u64>) {
        match &mut self.builder {
            Builder::Boolean(builder) => words.for_each(|word| builder.append_value(word != 0)),
            Builder::I16(builder) => builder.extend(words.map(|word| word as i16)),
            Builder::I32(builder) => builder.extend(words.map(|word| word as i32)),
            Builder::Date(builder) => builder.extend(words.map(|word| word as i32)),
            Builder::I64(builder) => builder.extend(words.map(|word| word as i64)),
            Builder::Time(builder) => builder.extend(words.map(|word| word as i64)),
            Builder::Clock(builder) => builder.extend(words.map(|word| word as i64)),
            Builder::Label(builder) => builder.extend(words.map(|word| word as i64)),
            Builder::F32(builder) => builder.extend(words.map(|word| f32::from_bits(word as u32))),
            Builder::F64(builder) => builder.extend(words.map(f64::from_bits)),
            Builder::Decimal(builder) => builder.extend(words.map(|word| i128::from(word as i64))),
            Builder::Text(_) | Builder::Bytea(_) => unreachable!("column of {} holds bytes", self.data_type),
        }
    }

    fn push_null(&mut self) {
        match &mut self.builder {
            Builder::Boolean(builder) => builder.append_null(),
            Builder::I16(builder) => builder.append_null(),
            Builder::I32(builder) => builder.append_null(),
            Builder::I64(builder) => builder.append_null(),
            Builder::F32(builder) => builder.append_null(),
            Builder::F64(builder) => builder.append_null(),
            Builder::Date(builder) => builder.append_null(),
            Builder::Time(builder) => builder.append_null(),
            Builder::Clock(builder) => builder.append_null(),
            Builder::Label(builder) => builder.append_null(),
            Builder::Decimal(builder) => builder.append_null(),
            Builder::Text(builder) | Builder::Bytea(builder) => builder.append_null(),
        }
    }

    /// The array of all values pushed; the builder is empty again.
    pub fn finish(&mut self) -> ArrayRef {
        match &mut self.builder {
            Builder::Boolean(builder) => ArrayBuilder::finish(builder),
            Builder::I16(builder) => builder.finish(self.data_type),
            Builder::I32(builder) => builder.finish(self.data_type),
            Builder::I64(builder) => builder.finish(self.data_type),
            Builder::F32(builder) => builder.finish(self.data_type),
            Builder::F64(builder) => builder.finish(self.data_type),
            Builder::Date(builder) => builder.finish(self.data_type),
            Builder::Time(builder) => builder.finish(self.data_type),
            Builder::Clock(builder) => builder.finish(self.data_type),
            Builder::Label(builder) => builder.finish(self.data_type),
            Builder::Decimal(builder) => builder.finish(self.data_type),
            Builder::Text(builder) => builder.finish_texts(),
            Builder::Bytea(builder) => builder.finish(),
        }
    }
}

/// Values of one length. The library's builder checks its parts when it puts an array together, which takes longer than the few
/// values that a statement by key reads.
struct Numbers<T: ArrowPrimitiveType> {
    values: Vec<T::Native>,
    nulls: NullBufferBuilder,
}

impl<T: ArrowPrimitiveType> Numbers<T> {
    fn new(capacity: usize) -> Numbers<T> {
        Numbers { values: Vec::with_capacity(capacity), nulls: NullBufferBuilder::new(capacity) }
    }

    #[inline]
    fn append_value(&mut self, value: T::Native) {
        self.values.push(value);
        self.nulls.append_non_null();
    }

    fn extend(&mut self, values: impl Iterator<Item = T::Native>) {
        let before = self.values.len();
        self.values.extend(values);
        self.nulls.append_n_non_nulls(self.values.len() - before);
    }

    fn append_null(&mut self) {
        self.values.push(T::Native::default());
        self.nulls.append_null();
    }

    fn finish(&mut self, data_type: DataType) -> ArrayRef {
        let (values, nulls) = (std::mem::take(&mut self.values), self.nulls.finish());
        let array = PrimitiveArray::<T>::new(values.into(), nulls);
        Arc::new(array.with_data_type(data_type.to_stored_arrow()))
    }
}
