//! Keys: the values of a type of at most 64 bits as signed integers in the same order.
//!
//! For integers, dates, times and short decimals the key is the number itself. For floats it is IEEE 754's total
//! order: the bits as a signed integer, all but the sign inverted where it is set. Every bit pattern has its own key,
//! so NaN payloads and -0.0 survive.
use types::DataType;

use crate::value::cell::is_wide;

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
    match data_type {
        DataType::Real => ordered_real(word as u32),
        DataType::Double => ordered_double(word),
        _ => word as i64,
    }
}

/// The cell's word of a key.
#[inline]
pub(super) fn word_of_key(key: i64, data_type: DataType) -> u64 {
    match data_type {
        DataType::Real => u64::from(real_of_key(key).to_bits()),
        DataType::Double => double_of_key(key).to_bits(),
        _ => key as u64,
    }
}

/// Whether the type is a float.
#[inline]
pub(super) fn is_float(data_type: DataType) -> bool {
    matches!(data_type, DataType::Real | DataType::Double)
}

/// Whether sums of the type are meaningful and exact integers of 64 bits before they are added.
#[inline]
pub(super) fn is_summed(data_type: DataType) -> bool {
    match data_type {
        DataType::SmallInt | DataType::Integer | DataType::BigInt => true,
        DataType::Decimal { .. } => !is_wide(data_type),
        _ => false,
    }
}

/// The digits of a decimal that is stored as bytes.
#[inline]
pub(super) fn wide_decimal(bytes: &[u8]) -> i128 {
    let mut digits = [0; 16];
    digits.copy_from_slice(bytes);
    i128::from_le_bytes(digits)
}

/// A uuid as its column stores it: canonical lower-case text.
pub(super) fn text_of_uuid(uuid: &[u8; 16]) -> [u8; 36] {
    let mut text = [b'-'; 36];
    let places = (0..36).filter(|place| !matches!(place, 8 | 13 | 18 | 23));
    for (i, place) in places.enumerate() {
        let digit = uuid[i / 2] >> (4 * (1 - i % 2)) & 0xf;
        text[place] = b"0123456789abcdef"[usize::from(digit)];
    }
    text
}

#[cfg(test)]
mod tests {
    use types::Value;

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

    #[test]
    fn uuids_are_written_as_values_print_them() {
        let uuid = std::array::from_fn(|i| (i * 37 + 9) as u8);
        assert_eq!(text_of_uuid(&uuid).as_slice(), Value::Uuid(uuid).to_string().as_bytes());
    }
}
