//! A base page of one column as bytes: the encoded form as it is in memory, and the sketch of its values.
//!
//! ```text
//! type (24) | rows | has NULLs (8) | valid rows, a bit each, in words
//! zones     least, greatest (64 each), sums (128), NULLs (32), an array each, one entry for 1,024 rows
//! form      | 0 | values as they came: numbers, bits in words, or views (see `views`)
//!           | 1 | integers                                            keys
//!           | 2 | entries | keys | integers                           codes of keys
//!           | 3 | entries | views, or wide decimals | integers        codes of longer values
//!           | 4 | exponent (8) | factor (8) | exceptions | their slots (32), keys (64) | integers          floats
//! integers  | 0 | bases (64) | widths (8) | packed distances          frame of reference
//!           | 1 | runs | ends (32) | keys (64)                        runs
//! sketch    see `meta`
//! ```
use std::sync::Arc;

use arrow_array::types::{BinaryViewType, StringViewType};
use arrow_buffer::{ArrowNativeType, BooleanBuffer, Buffer, NullBuffer, ScalarBuffer};
use types::DataType;

use super::bytes::Plain;
use super::cells::{check_decimal, keys_of};
use super::meta::{decode_sketch, encode_sketch};
use super::views::{decode_views, encode_views};
use super::{BlobKind, Damage, Reader, Shape, Writer};
use crate::encoding::dictionary::{Entries, Lookup};
use crate::encoding::float::{Alp, Exponents};
use crate::encoding::integers::{Integers, Runs};
use crate::encoding::packed::Packed;
use crate::encoding::raw::Raw;
use crate::encoding::simd::{BLOCK, Simd};
use crate::encoding::zones::BlockZone;
use crate::encoding::{EncodedColumn, Form, Meaning};
use crate::value::cell::{Storage, is_wide, tag_of};
use crate::value::sketch::Sketch;

/// The greatest sum of a block: of 1,024 keys.
const SUM_MAX: u128 = 1 << 73;

impl Writer {
    /// The type of a column.
    pub(crate) fn data_type(&mut self, data_type: DataType) {
        self.bytes(&tag_of(data_type));
    }
}

impl Reader<'_> {
    /// The type of a column, which has to be this one.
    pub(crate) fn data_type(&mut self, data_type: DataType) -> Result<(), Damage> {
        let (tag, expected) = (self.bytes(3, "the type of a column")?, tag_of(data_type));
        self.check(tag == expected, || format!("has a column of type {tag:?}, and {data_type} is {expected:?}"))
    }
}

/// The bytes of a column and its sketch.
pub(crate) fn encode_column(column: &EncodedColumn, sketch: &Sketch) -> Vec<u8> {
    let mut writer = BlobKind::Column.begin();
    writer.data_type(column.data_type);
    writer.number(column.len as u64);
    writer.byte(u8::from(column.nulls.is_some()));
    if let Some(nulls) = &column.nulls {
        writer.array(&words_of(nulls.inner()));
    }
    encode_zones(&column.zones, &mut writer);
    match &column.form {
        Form::Raw(raw) => {
            writer.byte(0);
            encode_raw(raw, &mut writer);
        }
        Form::Encoded(integers, meaning) => {
            encode_meaning(meaning, &mut writer);
            encode_integers(integers, &mut writer);
        }
    }
    encode_sketch(sketch, &mut writer);
    writer.finish()
}

/// The bits of a bitmap from the first on, those behind its end 0.
fn words_of(bits: &BooleanBuffer) -> Vec<u64> {
    bits.bit_chunks().iter_padded().take(bits.len().div_ceil(64)).collect()
}

pub(super) fn encode_zones(zones: &[BlockZone], writer: &mut Writer) {
    let zones = || zones.iter();
    writer.array(&zones().map(|zone| zone.min).collect::<Vec<i64>>());
    writer.array(&zones().map(|zone| zone.max).collect::<Vec<i64>>());
    writer.array(&zones().map(|zone| zone.sum).collect::<Vec<i128>>());
    writer.array(&zones().map(|zone| zone.nulls).collect::<Vec<u32>>());
}

fn encode_raw(raw: &Raw, writer: &mut Writer) {
    match raw {
        Raw::I64(values) => writer.bytes(values.inner().as_slice()),
        Raw::I32(values) => writer.bytes(values.inner().as_slice()),
        Raw::I16(values) => writer.bytes(values.inner().as_slice()),
        Raw::F64(values) => writer.bytes(values.inner().as_slice()),
        Raw::F32(values) => writer.bytes(values.inner().as_slice()),
        Raw::Decimal(values) | Raw::WideDecimal(values) => writer.bytes(values.inner().as_slice()),
        Raw::Boolean(values) => writer.array(&words_of(values)),
        Raw::Text(array) => encode_views(writer, array),
        Raw::Bytea(array) => encode_views(writer, array),
    }
}

fn encode_meaning(meaning: &Meaning, writer: &mut Writer) {
    match meaning {
        Meaning::Keys => writer.byte(1),
        Meaning::Lookup(Lookup(keys)) => {
            writer.byte(2);
            writer.number(keys.len() as u64);
            writer.array(keys);
        }
        Meaning::Entries(entries) => {
            writer.byte(3);
            writer.number(entries.len() as u64);
            match entries {
                Entries::Text(array) => encode_views(writer, array),
                Entries::Bytea(array) => encode_views(writer, array),
                Entries::Decimal(values) => writer.bytes(values.inner().as_slice()),
            }
        }
        Meaning::Float(alp) => {
            writer.byte(4);
            writer.byte(alp.exponents.exponent);
            writer.byte(alp.exponents.factor);
            writer.number(alp.slots.len() as u64);
            writer.array(&alp.slots);
            writer.array(&alp.keys);
        }
    }
}

fn encode_integers(integers: &Integers, writer: &mut Writer) {
    match integers {
        Integers::Packed(packed) => {
            writer.byte(0);
            let (bases, widths): (Vec<i64>, Vec<u8>) = packed.blocks().unzip();
            writer.array(&bases);
            writer.array(&widths);
            writer.bytes(packed.words());
        }
        Integers::Runs(runs) => {
            writer.byte(1);
            writer.number(runs.ends.len() as u64);
            writer.array(&runs.ends);
            writer.array(&runs.keys);
        }
    }
}

/// The column of this type, as long as the range, and its sketch.
pub(crate) fn decode_column(
    bytes: &[u8],
    shape: Shape<'_>,
    data_type: DataType,
) -> Result<(EncodedColumn, Sketch), Damage> {
    let mut reader = BlobKind::Column.open(bytes)?;
    let reader = &mut reader;
    reader.data_type(data_type)?;
    let len = reader.count(usize::MAX, "rows")?;
    reader.check(len == shape.len, || format!("has {len} rows, and its range {}", shape.len))?;
    let nulls = decode_nulls(reader, len)?;
    let zones = decode_zones(reader, len, nulls.as_ref())?;
    let form = match reader.byte("its form")? {
        0 => Form::Raw(decode_raw(reader, len, nulls.clone(), data_type)?),
        form => {
            let meaning = decode_meaning(reader, form, len, data_type)?;
            let integers = decode_integers(reader, len)?;
            check_integers(reader, &integers, &meaning, len, data_type)?;
            Form::Encoded(integers, meaning)
        }
    };
    check_zones(reader, &zones, &form, data_type, len)?;
    let sketch = decode_sketch(reader)?;
    reader.check_end()?;
    Ok((EncodedColumn { data_type, len, nulls, form, zones }, sketch))
}

fn decode_nulls(reader: &mut Reader<'_>, len: usize) -> Result<Option<NullBuffer>, Damage> {
    if !reader.flag("whether there are NULLs")? {
        return Ok(None);
    }
    let valid = reader.buffer::<u64>(len.div_ceil(64), "bits of valid rows")?;
    let nulls = NullBuffer::new(BooleanBuffer::new(valid, 0, len));
    reader.check(nulls.null_count() > 0, || "says that it has NULLs, and has none".into())?;
    Ok(Some(nulls))
}

fn decode_zones(reader: &mut Reader<'_>, len: usize, nulls: Option<&NullBuffer>) -> Result<Arc<[BlockZone]>, Damage> {
    let zones = decode_zones_alone(reader, len)?;
    for (block, zone) in zones.iter().enumerate() {
        let (from, rows) = (block * BLOCK, BLOCK.min(len - block * BLOCK));
        let counted = nulls.map_or(0, |nulls| nulls.slice(from, rows).null_count());
        reader.check(zone.nulls as usize == counted, || {
            format!("counts {} NULLs in block {block}, which has {counted}", zone.nulls)
        })?;
    }
    Ok(zones)
}

/// Zones without the values that they are of.
pub(super) fn decode_zones_alone(reader: &mut Reader<'_>, len: usize) -> Result<Arc<[BlockZone]>, Damage> {
    let blocks = len.div_ceil(BLOCK);
    let least = reader.array::<i64>(blocks, "least keys")?;
    let greatest = reader.array::<i64>(blocks, "greatest keys")?;
    let sums = reader.array::<i128>(blocks, "sums")?;
    let null_counts = reader.array::<u32>(blocks, "numbers of NULLs")?;
    let zone = |block: usize| {
        let zone = BlockZone { min: least[block], max: greatest[block], sum: sums[block], nulls: null_counts[block] };
        let rows = BLOCK.min(len - block * BLOCK);
        reader.check(zone.nulls as usize <= rows, || format!("counts {} NULLs in {rows} rows", zone.nulls))?;
        reader.check(zone.sum.unsigned_abs() <= SUM_MAX, || format!("has {} as a sum of keys", zone.sum))?;
        Ok(zone)
    };
    (0..blocks).map(zone).collect()
}

/// The extremes of a block without values are those of nothing; others are keys of the type, codes, or slots of the block.
fn check_zones(
    reader: &Reader<'_>,
    zones: &[BlockZone],
    form: &Form,
    data_type: DataType,
    len: usize,
) -> Result<(), Damage> {
    let bounds = |rows: std::ops::Range<usize>| match form {
        Form::Encoded(_, Meaning::Entries(entries)) => (0, entries.len() as i64 - 1),
        Form::Raw(_) if is_wide(data_type) => (rows.start as i64, rows.end as i64 - 1),
        _ => keys_of(data_type),
    };
    check_extremes(reader, zones, len, bounds, !(matches!(form, Form::Raw(_)) && is_wide(data_type)))
}

/// The extremes of a block without values are those of nothing; others are within `bounds` of its rows, and in order if they are
/// keys that have one.
pub(super) fn check_extremes(
    reader: &Reader<'_>,
    zones: &[BlockZone],
    len: usize,
    bounds: impl Fn(std::ops::Range<usize>) -> (i64, i64),
    are_ordered: bool,
) -> Result<(), Damage> {
    for (block, zone) in zones.iter().enumerate() {
        let (from, to) = (block * BLOCK, len.min((block + 1) * BLOCK));
        if zone.nulls as usize == to - from {
            reader.check(zone.min == i64::MAX && zone.max == i64::MIN && zone.sum == 0, || {
                format!("has extremes in block {block}, where all is NULL")
            })?;
            continue;
        }
        let (least, greatest) = bounds(from..to);
        let is_right = zone.min >= least && zone.min <= greatest && zone.max >= least && zone.max <= greatest;
        let is_ordered = zone.min <= zone.max || !are_ordered;
        reader
            .check(is_right && is_ordered, || format!("has extremes {} and {} in block {block}", zone.min, zone.max))?;
    }
    Ok(())
}

fn decode_raw(
    reader: &mut Reader<'_>,
    len: usize,
    nulls: Option<NullBuffer>,
    data_type: DataType,
) -> Result<Raw, Damage> {
    fn scalars<N: ArrowNativeType, P: Plain>(reader: &mut Reader<'_>, len: usize) -> Result<ScalarBuffer<N>, Damage> {
        debug_assert_eq!(size_of::<N>(), P::BYTES);
        Ok(ScalarBuffer::new(reader.buffer::<P>(len, "values")?, 0, len))
    }
    Ok(match Storage::of(data_type) {
        Storage::Boolean => {
            let bits = reader.buffer::<u64>(len.div_ceil(64), "values")?;
            Raw::Boolean(BooleanBuffer::new(bits, 0, len))
        }
        Storage::I16 => Raw::I16(scalars::<i16, i16>(reader, len)?),
        Storage::I32 => Raw::I32(scalars::<i32, u32>(reader, len)?),
        Storage::I64 => Raw::I64(scalars::<i64, i64>(reader, len)?),
        Storage::F32 => Raw::F32(scalars::<f32, u32>(reader, len)?),
        Storage::F64 => Raw::F64(scalars::<f64, u64>(reader, len)?),
        storage @ (Storage::Decimal | Storage::WideDecimal) => {
            let values = scalars::<i128, i128>(reader, len)?;
            values.iter().try_for_each(|value| check_decimal(reader, *value, data_type))?;
            if storage == Storage::WideDecimal { Raw::WideDecimal(values) } else { Raw::Decimal(values) }
        }
        Storage::Text => Raw::Text(decode_views::<StringViewType>(reader, len, nulls, data_type)?),
        Storage::Bytes => Raw::Bytea(decode_views::<BinaryViewType>(reader, len, nulls, data_type)?),
    })
}

fn decode_meaning(reader: &mut Reader<'_>, form: u8, len: usize, data_type: DataType) -> Result<Meaning, Damage> {
    let is_float = matches!(Storage::of(data_type), Storage::F32 | Storage::F64);
    reader.check(is_wide(data_type) == (form == 3) && (is_float || form != 4), || {
        format!("has a column of {data_type} in form {form}")
    })?;
    match form {
        1 => Ok(Meaning::Keys),
        2 => {
            let entries = reader.count(len, "entries")?;
            let keys = reader.array::<i64>(entries, "entries")?;
            let (least, greatest) = keys_of(data_type);
            let is_within = keys.iter().all(|key| (least..=greatest).contains(key));
            reader
                .check(is_within && keys.is_sorted(), || "has entries that do not ascend within their type".into())?;
            Ok(Meaning::Lookup(Lookup(keys.into())))
        }
        3 => {
            let entries = reader.count(len.max(1), "entries")?;
            Ok(Meaning::Entries(decode_entries(reader, entries, data_type)?))
        }
        4 => decode_alp(reader, len, data_type),
        form => Err(reader.damage(&format!("has form {form}"))),
    }
}

fn decode_entries(reader: &mut Reader<'_>, len: usize, data_type: DataType) -> Result<Entries, Damage> {
    let (entries, is_sorted) = match decode_raw(reader, len, None, data_type)? {
        Raw::Text(array) => {
            let is_sorted = array.iter().is_sorted();
            (Entries::Text(array), is_sorted)
        }
        Raw::Bytea(array) => {
            let is_sorted = array.iter().is_sorted();
            (Entries::Bytea(array), is_sorted)
        }
        Raw::WideDecimal(values) => {
            let is_sorted = values.is_sorted();
            (Entries::Decimal(values), is_sorted)
        }
        _ => return Err(reader.damage("has entries of a type of words")),
    };
    reader.check(is_sorted, || "has entries that do not ascend".into())?;
    Ok(entries)
}

fn decode_alp(reader: &mut Reader<'_>, len: usize, data_type: DataType) -> Result<Meaning, Damage> {
    let (exponent, factor) = (reader.byte("its exponent")?, reader.byte("its factor")?);
    reader.check(exponent <= Exponents::MAX && factor <= exponent, || {
        format!("has {exponent} and {factor} as exponents of floats")
    })?;
    let count = reader.count(len, "exceptions")?;
    let slots = reader.array::<u32>(count, "slots of exceptions")?;
    let keys = reader.array::<i64>(count, "exceptions")?;
    let is_ascending = slots.is_sorted_by(|left, right| left < right);
    let is_within = slots.last().is_none_or(|last| (*last as usize) < len);
    reader.check(is_ascending && is_within, || "has exceptions that do not ascend within the range".into())?;
    let (least, greatest) = keys_of(data_type);
    let are_keys = keys.iter().all(|key| (least..=greatest).contains(key));
    reader.check(are_keys, || format!("has an exception that is no {data_type}"))?;
    let exponents = Exponents { exponent, factor, is_real: data_type == DataType::Real };
    Ok(Meaning::Float(Alp { exponents, slots: slots.into(), keys: keys.into() }))
}

fn decode_integers(reader: &mut Reader<'_>, len: usize) -> Result<Integers, Damage> {
    match reader.byte("the form of its integers")? {
        0 => {
            let blocks = len.div_ceil(BLOCK);
            let bases = reader.array::<i64>(blocks, "bases")?;
            let widths = reader.array::<u8>(blocks, "widths")?;
            let size = Packed::words_len(&widths);
            let size = size.ok_or_else(|| reader.damage("has a block of more than 64 bits a value"))?;
            let words = Buffer::from(reader.bytes(size, "packed distances")?);
            Ok(Integers::Packed(Packed::of_parts(bases.into_iter().zip(widths), words)))
        }
        1 => {
            let runs = reader.count(len, "runs")?;
            let ends = reader.array::<u32>(runs, "ends of runs")?;
            let keys = reader.array::<i64>(runs, "keys of runs")?;
            let is_ascending = ends.first().is_none_or(|end| *end > 0) && ends.is_sorted_by(|left, right| left < right);
            reader.check(is_ascending && ends.last().map_or(0, |end| *end as usize) == len, || {
                format!("has runs that do not ascend to {len} rows")
            })?;
            Ok(Integers::Runs(Runs::of_parts(ends.into(), keys.into())))
        }
        form => Err(reader.damage(&format!("has integers in form {form}"))),
    }
}

/// Codes name entries, and keys are those of the type.
fn check_integers(
    reader: &Reader<'_>,
    integers: &Integers,
    meaning: &Meaning,
    len: usize,
    data_type: DataType,
) -> Result<(), Damage> {
    let (least, greatest) = match meaning {
        Meaning::Keys => keys_of(data_type),
        Meaning::Lookup(Lookup(keys)) => (0, keys.len() as i64 - 1),
        Meaning::Entries(entries) => (0, entries.len() as i64 - 1),
        Meaning::Float(_) => return Ok(()),
    };
    if (least, greatest) == (i64::MIN, i64::MAX) {
        return Ok(());
    }
    let simd = Simd::best();
    for block in 0..len.div_ceil(BLOCK) {
        let rows = (0, BLOCK.min(len - block * BLOCK));
        let totals = integers.totals::<true>(simd, block, rows, None);
        // Where a distance goes past the greatest integer, the extremes change places.
        reader.check(least <= totals.min && totals.min <= totals.max && totals.max <= greatest, || {
            format!("has {} to {} in block {block}, not {least} to {greatest}", totals.min, totals.max)
        })?;
    }
    Ok(())
}
