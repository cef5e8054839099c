//! Keys: the values of a type of at most 64 bits as signed integers in the same order.
//!
//! For integers, dates, times and short decimals the key is the number itself. For floats it is IEEE 754's total
//! order: the bits as a signed integer, all but the sign inverted where it is set. Every bit pattern has its own key,
//! so NaN payloads and -0.0 survive.
use types::DataType;

use crate::value::cell::Storage;

/// The key of a double's bits. Its own inverse on bits.
#[inline(always)]
pub(super) fn ordered_double(bits: u64) -> i64 {
    let bits = bits as i64;
    bits ^ ((bits >> 63) as u64 >> 1) as i64
}

/// The key of a real's bits.
#[inline(always)]
pub(super) fn ordered_real(bits: u32) -> i64 {
    let bits = bits as i32;
    i64::from(bits ^ ((bits >> 31) as u32 >> 1) as i32)
}

/// The double of a key.
#[inline(always)]
pub(super) fn double_of_key(key: i64) -> f64 {
    f64::from_bits(ordered_double(key as u64) as u64)
}

/// The real of a key.
#[inline(always)]
pub(super) fn real_of_key(key: i64) -> f32 {
    f32::from_bits(ordered_real(key as u32) as u32)
}

/// The key of a cell's word.
#[inline]
pub(super) fn key_of_word(word: u64, data_type: DataType) -> i64 {
    match Storage::of(data_type) {
        Storage::F32 => ordered_real(word as u32),
        Storage::F64 => ordered_double(word),
        _ => word as i64,
    }
}

/// The cell's word of a key.
#[inline]
pub(super) fn word_of_key(key: i64, data_type: DataType) -> u64 {
    match Storage::of(data_type) {
        Storage::F32 => u64::from(real_of_key(key).to_bits()),
        Storage::F64 => double_of_key(key).to_bits(),
        _ => key as u64,
    }
}

/// Whether the type is a float.
#[inline]
pub(super) fn is_float(data_type: DataType) -> bool {
    matches!(Storage::of(data_type), Storage::F32 | Storage::F64)
}

/// Whether sums of the type are meaningful and exact integers of 64 bits before they are added.
#[inline]
pub(super) fn is_summed(data_type: DataType) -> bool {
    data_type.is_integer() || Storage::of(data_type) == Storage::Decimal
}

/// The digits of a decimal that is stored as bytes.
#[inline]
pub(super) fn wide_decimal(bytes: &[u8]) -> i128 {
    let mut digits = [0; 16];
    digits.copy_from_slice(bytes);
    i128::from_le_bytes(digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_in_the_order_of_floats_and_come_back_bit_by_bit() {
        let negative_nan = f64::from_bits(f64::NAN.to_bits() | 1 << 63 | 7);
        let ascending =
            [negative_nan, f64::NEG_INFINITY, -1.5, -1e-310, -0.0, 0.0, 1e-310, 2.0, f64::INFINITY, f64::NAN];
        for pair in ascending.windows(2) {
            assert!(ordered_double(pair[0].to_bits()) < ordered_double(pair[1].to_bits()), "{pair:?}");
            let reals = [pair[0] as f32, pair[1] as f32];
            let keys = reals.map(|real| ordered_real(real.to_bits()));
            assert_eq!(keys[0].cmp(&keys[1]), reals[0].total_cmp(&reals[1]));
        }
        for double in ascending {
            let key = ordered_double(double.to_bits());
            assert_eq!(double_of_key(key).to_bits(), double.to_bits());
            assert_eq!(
                word_of_key(key_of_word(double.to_bits(), DataType::Double), DataType::Double),
                double.to_bits()
            );
            let real = double as f32;
            assert_eq!(real_of_key(ordered_real(real.to_bits())).to_bits(), real.to_bits());
        }
    }
}
