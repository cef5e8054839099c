//! Which encoding a column gets, and encoding it.
//!
//! Zones need the exact extremes of every block, so the size of bit-packed distances is known exactly at once, and
//! counting runs is one more pass. Encodings that cost more are tried on a sample of about 1,000 values spread over
//! the column first: a dictionary, if few of them are distinct, and for floats the exponents of ALP. An encoding is
//! taken only if it saves at least a quarter, as reading a raw value is cheapest; columns of one value are always
//! encoded where that is smaller.
//!
//! A merge knows what the column was before and hands that in as a hint: then nothing is sampled, and the same
//! encoding is tried first.
use std::sync::Arc;

use arrow_array::{Array, ArrayRef};
use arrow_buffer::NullBuffer;
use types::DataType;

use super::column::EncodedColumn;
use super::dictionary::{self, Lookup};
use super::float::{Alp, Exponents};
use super::form::{Form, Meaning};
use super::integers::Integers;
use super::keys::is_float;
use super::meaning::IntegerMeaning;
use super::raw::Raw;
use super::simd::{BLOCK, Simd};
use super::zones::{self, BlockZone};
use crate::value::cell::{Cell, Storage, is_wide};

/// How many values a sample has.
const SAMPLE: usize = 1_024;

/// The most entries of a dictionary of keys: their codes must be much narrower than keys.
const LOOKUP_MAX: usize = 4_096;

/// The former encoding of a column.
#[derive(Clone, Copy)]
pub(super) enum Hint {
    Raw,
    Integers,
    Dictionary,
    Float(Exponents),
}

impl Hint {
    /// What a form says of the next one.
    pub(super) fn of(form: &Form) -> Hint {
        match form {
            Form::Raw(_) => Hint::Raw,
            Form::Encoded(_, Meaning::Keys) => Hint::Integers,
            Form::Encoded(_, Meaning::Lookup(_) | Meaning::Entries(_)) => Hint::Dictionary,
            Form::Encoded(_, Meaning::Float(alp)) => Hint::Float(alp.exponents),
        }
    }
}

impl EncodedColumn {
    /// Chooses an encoding by sampling and encodes. `array` has the Arrow form of the type.
    pub fn encode(array: &ArrayRef, data_type: DataType) -> EncodedColumn {
        encode(Raw::of(array, data_type), nulls_of(array), array.len(), data_type, None)
    }

    /// Keeps the array as it is.
    #[cfg(test)]
    pub fn raw(array: ArrayRef, data_type: DataType) -> EncodedColumn {
        keep_raw(Raw::of(&array, data_type), nulls_of(&array), array.len(), data_type)
    }
}

/// The NULLs of an array, if there are any.
pub(super) fn nulls_of(array: &ArrayRef) -> Option<NullBuffer> {
    array.nulls().filter(|nulls| nulls.null_count() > 0).cloned()
}

/// Keeps the values as they are.
fn keep_raw(raw: Raw, nulls: Option<NullBuffer>, len: usize, data_type: DataType) -> EncodedColumn {
    let zones = if is_wide(data_type) {
        zones::of_raw_bytes(&raw, nulls.as_ref(), len)
    } else {
        let mut keys = vec![0; len];
        raw_keys(&raw, nulls.as_ref(), &mut keys);
        zones::of_keys(Simd::best(), &keys, nulls.as_ref())
    };
    EncodedColumn { data_type, len, nulls, form: Form::Raw(raw), zones }
}

/// Encodes the values as seems best.
pub(super) fn encode(
    raw: Raw,
    nulls: Option<NullBuffer>,
    len: usize,
    data_type: DataType,
    hint: Option<Hint>,
) -> EncodedColumn {
    if is_wide(data_type) {
        return encode_bytes(raw, nulls, len, data_type, hint);
    }
    let (form, zones) = match (&raw, &nulls) {
        (Raw::I64(values), None) => encode_keys(values, None, data_type, hint),
        _ => {
            let mut keys = vec![0; len];
            raw_keys(&raw, nulls.as_ref(), &mut keys);
            encode_keys(&keys, nulls.as_ref(), data_type, hint)
        }
    };
    EncodedColumn { data_type, len, nulls, form: form.unwrap_or(Form::Raw(raw)), zones }
}

/// The keys of a raw column, with neighbours in place of NULLs.
fn raw_keys(raw: &Raw, nulls: Option<&NullBuffer>, keys: &mut [i64]) {
    let len = keys.len();
    for from in (0..len).step_by(BLOCK) {
        let to = len.min(from + BLOCK);
        raw.keys(from, to, &mut keys[from..to]);
    }
    if let Some(nulls) = nulls {
        fill_nulls(keys, nulls);
    }
}

/// Puts a neighbour in the place of each NULL, of the same block where that has one: it changes no extremes and makes
/// no run.
pub(super) fn fill_nulls(keys: &mut [i64], nulls: &NullBuffer) {
    let mut last = 0;
    for (block, keys) in keys.chunks_mut(BLOCK).enumerate() {
        let is_valid = |i: usize| nulls.is_valid(block * BLOCK + i);
        if let Some(first) = (0..keys.len()).find(|i| is_valid(*i)) {
            last = if is_valid(0) { last } else { keys[first] };
        }
        for (i, key) in keys.iter_mut().enumerate() {
            if is_valid(i) { last = *key } else { *key = last }
        }
    }
}

/// Encodes keys, which have a neighbour's where they are NULL; no form says that they had better be kept raw.
pub(super) fn encode_keys(
    keys: &[i64],
    nulls: Option<&NullBuffer>,
    data_type: DataType,
    hint: Option<Hint>,
) -> (Option<Form>, Arc<[BlockZone]>) {
    let simd = Simd::best();
    let limit = raw_bytes(keys.len(), data_type) / 4 * 3;
    (best_form(simd, keys, data_type, limit, hint), zones::of_keys(simd, keys, nulls))
}

fn raw_bytes(len: usize, data_type: DataType) -> usize {
    match Storage::of(data_type) {
        Storage::Boolean => len.div_ceil(8),
        Storage::I16 => len * 2,
        Storage::I32 | Storage::F32 => len * 4,
        Storage::I64 | Storage::F64 => len * 8,
        Storage::Decimal | Storage::WideDecimal | Storage::Text | Storage::Bytes => len * 16,
    }
}

fn best_form(simd: Simd, keys: &[i64], data_type: DataType, limit: usize, hint: Option<Hint>) -> Option<Form> {
    let plain = Integers::smallest(simd, keys, limit);
    let plain_bytes = plain.as_ref().map_or(limit, Integers::bytes);
    let is_good = |integers: &Integers| integers.runs().is_some() || matches!(hint, Some(Hint::Integers));
    if plain.as_ref().is_some_and(is_good) || matches!(hint, Some(Hint::Raw)) {
        return plain.map(|integers| Form::Encoded(integers, Meaning::Keys));
    }
    // More than one byte a value leaves room for something better.
    let other = if plain_bytes > keys.len() {
        let floats = is_float(data_type).then(|| encode_floats(simd, keys, data_type, plain_bytes, hint)).flatten();
        floats.or_else(|| encode_lookup(simd, keys, plain_bytes, hint))
    } else {
        None
    };
    other.or(plain.map(|integers| Form::Encoded(integers, Meaning::Keys)))
}

/// About a thousand slots spread over the column, one in each stretch of it. Within its stretch the place is arbitrary:
/// an even step would see only one digit of ascending numbers.
fn sample_slots(len: usize) -> impl Iterator<Item = usize> {
    let step = len.div_ceil(SAMPLE).max(1);
    let place = move |start: usize| start + (start.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) % step;
    (0..len).step_by(step).map(move |start| place(start).min(len - 1))
}

/// The keys of a sample.
fn sample(keys: &[i64]) -> Vec<i64> {
    sample_slots(keys.len()).map(|slot| keys[slot]).collect()
}

fn encode_floats(simd: Simd, keys: &[i64], data_type: DataType, limit: usize, hint: Option<Hint>) -> Option<Form> {
    let with = |exponents: Exponents| {
        let (integers, alp) = Alp::encode(simd, keys, exponents)?;
        let integers = Integers::smallest(simd, &integers, limit.checked_sub(alp.bytes() + 1)?)?;
        Some(Form::Encoded(integers, Meaning::Float(alp)))
    };
    if let Some(Hint::Float(exponents)) = hint
        && let Some(form) = with(exponents)
    {
        return Some(form);
    }
    if matches!(hint, Some(Hint::Dictionary)) {
        return None;
    }
    let (exponents, bytes) = Exponents::choose(&sample(keys), keys.len(), data_type)?;
    // The sample knows one width for the whole column, but each block may be narrower.
    if bytes < limit / 4 * 5 { with(exponents) } else { None }
}

/// A dictionary of keys, if it takes fewer bytes than `limit`.
fn encode_lookup(simd: Simd, keys: &[i64], limit: usize, hint: Option<Hint>) -> Option<Form> {
    if !matches!(hint, Some(Hint::Dictionary)) {
        let mut sample = sample(keys);
        let sampled = sample.len();
        sample.sort_unstable();
        sample.dedup();
        if sample.len() * 4 > sampled {
            return None;
        }
    }
    let (values, codes) = dictionary::of_keys(keys, LOOKUP_MAX.min(keys.len() / 4))?;
    let codes = Integers::smallest(simd, &codes, limit.checked_sub(values.len() * 8 + 1)?)?;
    Some(Form::Encoded(codes, Meaning::Lookup(Lookup(values.into()))))
}

fn encode_bytes(
    raw: Raw,
    nulls: Option<NullBuffer>,
    len: usize,
    data_type: DataType,
    hint: Option<Hint>,
) -> EncodedColumn {
    if matches!(hint, Some(Hint::Raw)) || !(matches!(hint, Some(Hint::Dictionary)) || repeats(&raw, len)) {
        return keep_raw(raw, nulls, len, data_type);
    }
    let limit = raw.bytes() / 4 * 3;
    let encoded = dictionary::of_raw(&raw, nulls.as_ref(), (len / 2).max(1)).and_then(|(entries, mut codes)| {
        if let Some(nulls) = &nulls {
            fill_nulls(&mut codes, nulls);
        }
        let simd = Simd::best();
        let integers = Integers::smallest(simd, &codes, limit.checked_sub(entries.bytes())?)?;
        let zones: Arc<[BlockZone]> = zones::of_keys(simd, &codes, nulls.as_ref());
        Some((Form::Encoded(integers, Meaning::Entries(entries)), zones))
    });
    match encoded {
        Some((form, zones)) => EncodedColumn { data_type, len, nulls, form, zones },
        None => keep_raw(raw, nulls, len, data_type),
    }
}

/// Whether the values of a sample repeat themselves so that a dictionary is likely to pay.
fn repeats(raw: &Raw, len: usize) -> bool {
    let bytes = |slot: usize| match raw.cell(slot) {
        Cell::Bytes(bytes) => bytes,
        Cell::Null | Cell::Word(_) => &[],
    };
    let mut sample: Vec<&[u8]> = sample_slots(len).map(bytes).collect();
    let sampled = sample.len();
    sample.sort_unstable();
    sample.dedup();
    sample.len() * 2 <= sampled.max(2)
}
