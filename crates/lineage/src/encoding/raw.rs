//! A column kept as it came: Arrow's buffers, with their types known.
//!
//! Reading a value needs no downcast and no dynamic call; handing rows out as an Arrow array is a slice.
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Decimal128Type, Int64Type};
use arrow_array::{Array, ArrayRef, BinaryViewArray, BooleanArray, PrimitiveArray, StringViewArray};
use arrow_buffer::{ArrowNativeType, BooleanBuffer, Buffer, NullBuffer, ScalarBuffer};
use types::DataType;

use super::integers::{KeyTotals, find_keys};
use super::kernels::{totals, totals_kept};
use super::keys::{double_of_key, is_float, ordered_double, ordered_real, real_of_key};
use super::mask::{bits_of, count_bits};
use super::predicate::Intervals;
use super::simd::{BLOCK, BlockBits, Lane, Simd};
use super::within::within;
use crate::value::cell::{Cell, Storage, is_wide, with_primitive};

/// The values of a column as they came. The value of a NULL row is arbitrary.
pub(crate) enum Raw {
    I64(ScalarBuffer<i64>),
    I32(ScalarBuffer<i32>),
    I16(ScalarBuffer<i16>),
    F64(ScalarBuffer<f64>),
    F32(ScalarBuffer<f32>),
    Boolean(BooleanBuffer),
    /// decimals of at most 18 digits
    Decimal(ScalarBuffer<i128>),
    /// decimals of more digits
    WideDecimal(ScalarBuffer<i128>),
    Text(StringViewArray),
    Bytea(BinaryViewArray),
}

fn values<T: ArrowPrimitiveType>(array: &dyn Array) -> ScalarBuffer<T::Native> {
    array.as_primitive::<T>().values().clone()
}

fn primitive<T: ArrowPrimitiveType>(
    values: &ScalarBuffer<T::Native>,
    data_type: DataType,
    nulls: Option<NullBuffer>,
    (from, to): (usize, usize),
) -> ArrayRef {
    let array = PrimitiveArray::<T>::new(values.slice(from, to - from), nulls);
    match data_type {
        // The type of `T` says all of these.
        DataType::SmallInt | DataType::Integer | DataType::BigInt | DataType::Real | DataType::Double => {
            debug_assert_eq!(T::DATA_TYPE, data_type.to_stored_arrow());
            Arc::new(array)
        }
        _ => Arc::new(array.with_data_type(data_type.to_stored_arrow())),
    }
}

fn collect<T: ArrowNativeType>(keys: &[i64], value: impl Fn(i64) -> T) -> ScalarBuffer<T> {
    keys.iter().map(|key| value(*key)).collect::<Vec<T>>().into()
}

/// The smallest number of the signed type of `T`'s width, and the bit that maps its order to that of `T`.
fn sign<T: Lane>() -> (i64, T) {
    let bit = 1u64 << (T::WIDTH - 1);
    ((bit as i64).wrapping_neg(), T::of(bit))
}

/// Numbers of a width that raw columns have.
trait RawNative: ArrowNativeType {
    /// The column of these values.
    fn into_raw(values: ScalarBuffer<Self>) -> Raw;
    /// The values of a column that is of these.
    fn of_raw(raw: &Raw) -> &ScalarBuffer<Self>;
}

macro_rules! raw_native {
    ($($native:ty => $variant:ident),*) => {
        $(impl RawNative for $native {
            fn into_raw(values: ScalarBuffer<Self>) -> Raw {
                Raw::$variant(values)
            }

            fn of_raw(raw: &Raw) -> &ScalarBuffer<Self> {
                match raw {
                    Raw::$variant(values) => values,
                    _ => unreachable!("a column has the numbers of its type"),
                }
            }
        })*
    };
}
raw_native!(i16 => I16, i32 => I32, i64 => I64, f32 => F32, f64 => F64);

impl Raw {
    /// The values of an array of this type.
    pub fn of(array: &dyn Array, data_type: DataType) -> Raw {
        match Storage::of(data_type) {
            Storage::Boolean => Raw::Boolean(array.as_boolean().values().clone()),
            Storage::Decimal => Raw::Decimal(values::<Decimal128Type>(array)),
            Storage::WideDecimal => Raw::WideDecimal(values::<Decimal128Type>(array)),
            Storage::Text => Raw::Text(array.as_string_view().clone()),
            Storage::Bytes => Raw::Bytea(array.as_binary_view().clone()),
            Storage::I16 | Storage::I32 | Storage::I64 | Storage::F32 | Storage::F64 => with_primitive!(
                data_type,
                T => RawNative::into_raw(values::<T>(array)),
                _ => unreachable!("{data_type} is no number")
            ),
        }
    }

    /// The values that these keys stand for.
    pub fn of_keys(keys: Vec<i64>, data_type: DataType) -> Raw {
        match Storage::of(data_type) {
            Storage::Boolean => Raw::Boolean(BooleanBuffer::collect_bool(keys.len(), |i| keys[i] != 0)),
            Storage::I16 => Raw::I16(collect(&keys, |key| key as i16)),
            Storage::I32 => Raw::I32(collect(&keys, |key| key as i32)),
            Storage::I64 => Raw::I64(keys.into()),
            Storage::F32 => Raw::F32(collect(&keys, real_of_key)),
            // As long as the keys, so they take over the same memory.
            Storage::F64 => Raw::F64(keys.into_iter().map(double_of_key).collect::<Vec<f64>>().into()),
            Storage::Decimal => Raw::Decimal(collect(&keys, i128::from)),
            Storage::WideDecimal | Storage::Text | Storage::Bytes => unreachable!("wide types have no keys"),
        }
    }

    /// Bytes of memory, without NULLs.
    pub fn bytes(&self) -> usize {
        fn views(views: usize, buffers: &[Buffer]) -> usize {
            views * size_of::<u128>() + buffers.iter().map(Buffer::len).sum::<usize>()
        }
        match self {
            Raw::I64(values) => size_of_val(&**values),
            Raw::I32(values) => size_of_val(&**values),
            Raw::I16(values) => size_of_val(&**values),
            Raw::F64(values) => size_of_val(&**values),
            Raw::F32(values) => size_of_val(&**values),
            Raw::Boolean(values) => values.len().div_ceil(8),
            Raw::Decimal(values) | Raw::WideDecimal(values) => size_of_val(&**values),
            Raw::Text(array) => views(array.len(), array.data_buffers()),
            Raw::Bytea(array) => views(array.len(), array.data_buffers()),
        }
    }

    /// The value at `slot`, which is not NULL.
    #[inline]
    pub fn cell(&self, slot: usize) -> Cell<'_> {
        match self {
            Raw::I64(values) => Cell::Word(values[slot] as u64),
            Raw::I32(values) => Cell::Word(i64::from(values[slot]) as u64),
            Raw::I16(values) => Cell::Word(i64::from(values[slot]) as u64),
            Raw::F64(values) => Cell::Word(values[slot].to_bits()),
            Raw::F32(values) => Cell::Word(u64::from(values[slot].to_bits())),
            Raw::Boolean(values) => Cell::Word(u64::from(values.value(slot))),
            Raw::Decimal(values) => Cell::Word(values[slot] as i64 as u64),
            Raw::WideDecimal(values) => Cell::Bytes(&values.inner().as_slice()[slot * 16..][..16]),
            Raw::Text(array) => Cell::Bytes(array.value(slot).as_bytes()),
            Raw::Bytea(array) => Cell::Bytes(array.value(slot)),
        }
    }

    /// The rows `from..to` as an Arrow array, with these NULLs.
    pub fn array(&self, data_type: DataType, nulls: Option<NullBuffer>, rows: (usize, usize)) -> ArrayRef {
        let (from, to) = rows;
        match self {
            Raw::Boolean(values) => Arc::new(BooleanArray::new(values.slice(from, to - from), nulls)),
            Raw::Decimal(values) | Raw::WideDecimal(values) => {
                primitive::<Decimal128Type>(values, data_type, nulls, rows)
            }
            Raw::Text(array) => Arc::new(array.slice(from, to - from)),
            Raw::Bytea(array) => Arc::new(array.slice(from, to - from)),
            Raw::I64(_) | Raw::I32(_) | Raw::I16(_) | Raw::F64(_) | Raw::F32(_) => with_primitive!(
                data_type,
                T => primitive::<T>(RawNative::of_raw(self), data_type, nulls, rows),
                _ => unreachable!("{data_type} is no number")
            ),
        }
    }

    /// The keys of the rows `from..to`, at most a block, of a type that has keys.
    pub fn keys(&self, from: usize, to: usize, keys: &mut [i64]) {
        fn map<T: Copy>(keys: &mut [i64], values: &[T], key: impl Fn(T) -> i64) {
            keys.iter_mut().zip(values).for_each(|(out, value)| *out = key(*value));
        }
        match self {
            Raw::I64(values) => keys[..to - from].copy_from_slice(&values[from..to]),
            Raw::I32(values) => map(keys, &values[from..to], i64::from),
            Raw::I16(values) => map(keys, &values[from..to], i64::from),
            Raw::F64(values) => map(keys, &values[from..to], |value| ordered_double(value.to_bits())),
            Raw::F32(values) => map(keys, &values[from..to], |value| ordered_real(value.to_bits())),
            Raw::Decimal(values) => map(keys, &values[from..to], |value| value as i64),
            Raw::Boolean(values) => {
                keys.iter_mut().zip(from..to).for_each(|(key, slot)| *key = i64::from(values.value(slot)));
            }
            Raw::WideDecimal(_) | Raw::Text(_) | Raw::Bytea(_) => unreachable!("wide types have no keys"),
        }
    }

    /// Sets the bits of those of the rows `from..to` (of one block) that have a key in the intervals.
    pub fn find(&self, simd: Simd, (from, to): (usize, usize), intervals: &Intervals, bits: &mut BlockBits) {
        fn lanes<T: Lane>(simd: Simd, values: &[T], intervals: &Intervals, bits: &mut BlockBits) {
            let (least, _) = sign::<T>();
            for (low, high) in intervals.clipped(least, -(least + 1)) {
                within(simd, values, T::of(low as u64), T::of(high.wrapping_sub(low) as u64), bits);
            }
        }
        match self {
            Raw::I64(values) => find_keys(simd, &values[from..to], intervals, bits),
            Raw::I32(values) if !intervals.are_many() => {
                lanes::<u32>(simd, &values.inner().typed_data()[from..to], intervals, bits);
            }
            Raw::I16(values) if !intervals.are_many() => {
                lanes::<u16>(simd, &values.inner().typed_data()[from..to], intervals, bits);
            }
            Raw::Boolean(values) => {
                let set = bits_of(values, from, to - from);
                let (yes, no) = (intervals.contains(1), intervals.contains(0));
                let choose = |word: u64| if yes { word } else { 0 } | if no { !word } else { 0 };
                bits.iter_mut().zip(set).for_each(|(bits, word)| *bits |= choose(word));
            }
            _ => {
                let mut keys = [0; BLOCK];
                self.keys(from, to, &mut keys);
                find_keys(simd, &keys[..to - from], intervals, bits);
            }
        }
    }

    /// Totals of the rows `from..to` (of one block), or of those among them that `kept` has.
    pub fn totals<const EXTREMES: bool>(
        &self,
        simd: Simd,
        (from, to): (usize, usize),
        kept: Option<&BlockBits>,
    ) -> KeyTotals {
        fn lanes<T: Lane, const EXTREMES: bool>(simd: Simd, values: &[T], kept: Option<&BlockBits>) -> KeyTotals {
            let (least, flip) = sign::<T>();
            let count = kept.map_or(values.len(), |kept| count_bits(kept, 0, values.len()));
            let totals = match kept {
                None => totals::<T, EXTREMES>(simd, values, flip),
                Some(kept) => totals_kept::<T, EXTREMES>(simd, values, flip, kept),
            };
            KeyTotals::from_distances(least, count, totals)
        }
        match self {
            Raw::I64(values) => KeyTotals::of_keys::<EXTREMES>(simd, &values[from..to], kept),
            Raw::I32(values) => lanes::<u32, EXTREMES>(simd, &values.inner().typed_data()[from..to], kept),
            Raw::I16(values) => lanes::<u16, EXTREMES>(simd, &values.inner().typed_data()[from..to], kept),
            _ => {
                let mut keys = [0; BLOCK];
                self.keys(from, to, &mut keys);
                KeyTotals::of_keys::<EXTREMES>(simd, &keys[..to - from], kept)
            }
        }
    }

    /// The floats of the rows `from..to` (of one block) as doubles.
    pub fn doubles<'a>(&'a self, (from, to): (usize, usize), buffer: &'a mut [f64; BLOCK]) -> &'a [f64] {
        match self {
            Raw::F64(values) => &values[from..to],
            Raw::F32(values) => {
                buffer.iter_mut().zip(&values[from..to]).for_each(|(out, value)| *out = f64::from(*value));
                &buffer[..to - from]
            }
            _ => unreachable!("only floats are added as floats"),
        }
    }
}

/// The array of keys, with these NULLs.
pub(super) fn array_of_keys(keys: Vec<i64>, data_type: DataType, nulls: Option<NullBuffer>) -> ArrayRef {
    debug_assert!(!is_wide(data_type) || is_float(data_type));
    // What is looked up by key most often, and without a part for a whole.
    if data_type == DataType::BigInt {
        return Arc::new(PrimitiveArray::<Int64Type>::new(keys.into(), nulls));
    }
    let len = keys.len();
    Raw::of_keys(keys, data_type).array(data_type, nulls, (0, len))
}
