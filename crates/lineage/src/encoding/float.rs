//! Floats that are decimals at heart, as integers (ALP: Afroozeh, Kuffo and Boncz, SIGMOD 2023).
//!
//! Most floats in databases were typed in with a few digits after the point: 7.25 is 725 / 10^2. With a pair of
//! exponents `e >= f` chosen for the whole column, a float `x` becomes the integer `d = round(x * 10^e * 10^-f)`, and
//! comes back as `d * 10^f * 10^-e`. Where that does not give the same bits again (NaN, -0.0, infinities, more digits
//! than thought) the value is an *exception*, kept as it is in a list by slot.
//!
//! The pair is found by sampling, as in the paper: all pairs are tried on a sample and the one with the smallest
//! result taken. Reals are handled as doubles and rounded at the end, otherwise than in the paper: one code for both.
//!
//! Decoding never decreases where `d` grows, as multiplying by a positive number and rounding do not. So an interval
//! of floats is an interval of integers, which a binary search finds: predicates need not decode.
use smallvec::SmallVec;
use types::DataType;

use super::keys::{double_of_key, ordered_double, ordered_real, real_of_key, word_of_key};
use super::meaning::IntegerMeaning;
use super::packing::width_of;
use super::predicate::Intervals;
use super::simd::{BLOCK, BlockBits, Simd, kernel};
use crate::value::cell::Cell;

const POWERS: [f64; 19] =
    [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18];
const INVERSES: [f64; 19] = [
    1e0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10, 1e-11, 1e-12, 1e-13, 1e-14, 1e-15, 1e-16, 1e-17,
    1e-18,
];

/// The greatest integer: beyond it, doubles are not exact.
const INTEGER_MAX: i64 = 1 << 51;

/// Added and subtracted again, it rounds a double below 2^51 to an integer.
const ROUNDING: f64 = 6_755_399_441_055_744.0;

/// Bits that an exception takes: its slot and its key.
const EXCEPTION_BITS: usize = 96;

/// How many values of the sample the pairs are tried on.
const TRIED: usize = 64;

/// The two exponents of a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Exponents {
    pub exponent: u8,
    pub factor: u8,
    pub is_real: bool,
}

/// The exponents and exceptions that make a column of integers one of floats.
#[derive(Clone)]
pub(crate) struct Alp {
    pub exponents: Exponents,
    /// slots of the exceptions, ascending
    pub slots: Box<[u32]>,
    /// their keys
    pub keys: Box<[i64]>,
}

/// The factors of a column, ready to multiply with.
#[derive(Clone, Copy)]
struct Factors {
    up: f64,
    up_inverse: f64,
    down: f64,
    down_inverse: f64,
}

impl Factors {
    /// The integer of a float, right only if it comes back.
    #[inline(always)]
    fn integer(self, value: f64) -> i64 {
        let scaled = value * self.up * self.down_inverse;
        ((scaled + ROUNDING) - ROUNDING) as i64
    }

    #[inline(always)]
    fn double(self, integer: i64) -> f64 {
        integer as f64 * self.down * self.up_inverse
    }

    #[inline(always)]
    fn double_key(self, integer: i64) -> i64 {
        ordered_double(self.double(integer).to_bits())
    }

    #[inline(always)]
    fn real_key(self, integer: i64) -> i64 {
        ordered_real((self.double(integer) as f32).to_bits())
    }
}

kernel! {
    /// Makes integers of some floats, and says whether all of them come back.
    fn encode_all(factors: Factors, is_real: bool, keys: &[i64], integers: &mut [i64]) -> bool = encode_all_body;
}

#[inline(always)]
fn encode_all_body(factors: Factors, is_real: bool, keys: &[i64], integers: &mut [i64]) -> bool {
    let mut misses = 0u64;
    let mut check = |integer: i64, decoded: i64, key: i64| {
        misses |= u64::from(decoded != key) | u64::from(integer.unsigned_abs() > INTEGER_MAX as u64);
    };
    for (integer, key) in integers.iter_mut().zip(keys) {
        if is_real {
            *integer = factors.integer(f64::from(real_of_key(*key)));
            check(*integer, factors.real_key(*integer), *key);
        } else {
            *integer = factors.integer(double_of_key(*key));
            check(*integer, factors.double_key(*integer), *key);
        }
    }
    misses == 0
}

kernel! {
    /// Turns integers into the keys of their floats.
    fn decode_all(factors: Factors, is_real: bool, integers: &mut [i64]) = decode_all_body;
}

#[inline(always)]
fn decode_all_body(factors: Factors, is_real: bool, integers: &mut [i64]) {
    if is_real {
        integers.iter_mut().for_each(|integer| *integer = factors.real_key(*integer));
    } else {
        integers.iter_mut().for_each(|integer| *integer = factors.double_key(*integer));
    }
}

impl Exponents {
    /// The greatest exponent that a column may have.
    pub const MAX: u8 = POWERS.len() as u8 - 1;

    #[inline]
    fn factors(self) -> Factors {
        let (exponent, factor) = (usize::from(self.exponent), usize::from(self.factor));
        Factors {
            up: POWERS[exponent],
            up_inverse: INVERSES[exponent],
            down: POWERS[factor],
            down_inverse: INVERSES[factor],
        }
    }

    /// The integer of a float, if it comes back from it bit by bit.
    #[inline]
    fn encode(self, key: i64) -> Option<i64> {
        let value = if self.is_real { f64::from(real_of_key(key)) } else { double_of_key(key) };
        let integer = self.factors().integer(value);
        (self.decode(integer) == key && integer.unsigned_abs() <= INTEGER_MAX as u64).then_some(integer)
    }

    /// The key of the float of an integer.
    #[inline]
    fn decode(self, integer: i64) -> i64 {
        let factors = self.factors();
        if self.is_real { factors.real_key(integer) } else { factors.double_key(integer) }
    }

    /// The pair that makes a column of `len` values like the sample smallest, and how many bytes it would take.
    pub fn choose(sample: &[i64], len: usize, data_type: DataType) -> Option<(Exponents, usize)> {
        if sample.is_empty() {
            return None;
        }
        let is_real = data_type == DataType::Real;
        let exponent_max = if is_real { 10 } else { 18 };
        let step = sample.len().div_ceil(TRIED).max(1);
        let tried: SmallVec<[i64; TRIED]> = sample.iter().copied().step_by(step).collect();
        let pairs = (0..=exponent_max).flat_map(|exponent| (0..=exponent).map(move |factor| (exponent, factor)));
        let cost = |exponents: Exponents| {
            let (mut min, mut max, mut exceptions) = (i64::MAX, i64::MIN, 0);
            for key in &tried {
                match exponents.encode(*key) {
                    Some(integer) => (min, max) = (min.min(integer), max.max(integer)),
                    None => exceptions += 1,
                }
                if exceptions * 4 > tried.len() {
                    return None;
                }
            }
            let width = if min > max { 0 } else { width_of(max.wrapping_sub(min) as u64) };
            Some((width * tried.len() + exceptions * EXCEPTION_BITS) * len / tried.len() / 8)
        };
        let priced = pairs.filter_map(|(exponent, factor)| {
            let exponents = Exponents { exponent, factor, is_real };
            cost(exponents).map(|bytes| (exponents, bytes))
        });
        priced.min_by_key(|(_, bytes)| *bytes)
    }
}

impl Alp {
    /// The integers of these floats and the exceptions; `None` if those are more than an eighth.
    pub fn encode(simd: Simd, keys: &[i64], exponents: Exponents) -> Option<(Vec<i64>, Alp)> {
        let exceptions_max = keys.len() / 8;
        let (mut slots, mut exceptions) = (vec![], vec![]);
        let mut integers = vec![0; keys.len()];
        let blocks = keys.chunks(BLOCK).zip(integers.chunks_mut(BLOCK)).enumerate();
        for (block, (keys, integers)) in blocks {
            if encode_all(simd, exponents.factors(), exponents.is_real, keys, integers) {
                continue;
            }
            // An exception repeats a neighbour within its block, which costs the block no width.
            let mut last = keys.iter().find_map(|key| exponents.encode(*key)).unwrap_or(0);
            for (i, key) in keys.iter().enumerate() {
                match exponents.encode(*key) {
                    Some(integer) => last = integer,
                    None => {
                        slots.push((block * BLOCK + i) as u32);
                        exceptions.push(*key);
                    }
                }
                integers[i] = last;
            }
            if slots.len() > exceptions_max {
                return None;
            }
        }
        Some((integers, Alp { exponents, slots: slots.into(), keys: exceptions.into() }))
    }

    /// The key at `slot`, where the integer is this.
    #[inline]
    fn key(&self, slot: usize, integer: i64) -> i64 {
        if !self.slots.is_empty()
            && let Ok(i) = self.slots.binary_search(&(slot as u32))
        {
            return self.keys[i];
        }
        self.exponents.decode(integer)
    }

    /// The exceptions in rows `from..to`: slot and key.
    fn exceptions(&self, from: usize, to: usize) -> impl Iterator<Item = (usize, i64)> + '_ {
        let first = self.slots.partition_point(|slot| (*slot as usize) < from);
        let pairs = self.slots[first..].iter().zip(&self.keys[first..]);
        pairs.map(|(slot, key)| (*slot as usize, *key)).take_while(move |(slot, _)| *slot < to)
    }
}

impl IntegerMeaning for Alp {
    #[inline]
    fn value(&self, slot: usize, integer: i64, data_type: DataType) -> Cell<'_> {
        Cell::Word(word_of_key(self.key(slot, integer), data_type))
    }

    fn bytes(&self) -> usize {
        size_of_val(&*self.slots) + size_of_val(&*self.keys)
    }

    fn replace_by_keys(&self, simd: Simd, from: usize, integers: &mut [i64], _: DataType) {
        decode_all(simd, self.exponents.factors(), self.exponents.is_real, integers);
        for (slot, key) in self.exceptions(from, from + integers.len()) {
            integers[slot - from] = key;
        }
    }

    /// The integers of which the floats lie in the intervals.
    fn integers_of(&self, zone_keys: &Intervals) -> Option<Intervals> {
        let first_with = |is_past: &dyn Fn(i64) -> bool| {
            let (mut low, mut high) = (-INTEGER_MAX, INTEGER_MAX + 1);
            while low < high {
                let middle = low + (high - low) / 2;
                if is_past(self.exponents.decode(middle)) { high = middle } else { low = middle + 1 }
            }
            low
        };
        let interval = |(low, high): (i64, i64)| {
            let from = first_with(&|key| key >= low);
            let to = first_with(&|key| key > high);
            (from < to).then(|| (from, to - 1))
        };
        Some(Intervals::of(zone_keys.iter().filter_map(interval).collect()))
    }

    fn correct(&self, (from, to): (usize, usize), zone_keys: &Intervals, bits: &mut BlockBits) {
        for (slot, key) in self.exceptions(from, to) {
            let row = slot - from;
            let bit = u64::from(zone_keys.contains(key)) << (row % 64);
            bits[row / 64] = bits[row / 64] & !(1 << (row % 64)) | bit;
        }
    }
}
