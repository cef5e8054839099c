//! A column with some values replaced, as the merge makes it.
//!
//! Types that have keys are decoded into a plain buffer of keys, overwritten and encoded again. Views of text and bytea
//! are taken over, buffers and all; the new values come into a buffer of their own behind them. Encoding again under the
//! hint of what the column was costs no sampling. Where a dictionary already has all the new values, only codes change. A
//! column of plain distances (see `packed`) that has room for the new ones is copied and they are put in their places.
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{BinaryViewType, ByteViewType, Decimal128Type, StringViewType};
use arrow_array::{ArrayRef, GenericByteViewArray};
use arrow_buffer::{BooleanBufferBuilder, Buffer, NullBuffer};
use types::DataType;

use super::choose::{Hint, encode, encode_keys, fill_nulls};
use super::column::EncodedColumn;
use super::form::{Form, Meaning};
use super::integers::Integers;
use super::keys::{is_float, key_of_word, wide_decimal};
use super::packed::{KeyRoom, Packed};
use super::raw::Raw;
use super::simd::{BLOCK, Simd};
use super::zones::{self, BlockZone};
use crate::value::cell::{Cell, Storage, is_wide};
use crate::value::column_builder::ColumnBuilder;

/// Slots, ascending, each once, and their new values.
type Patches<'a> = [(usize, Cell<'a>)];

impl EncodedColumn {
    /// A new column with some values replaced: `patches` are slots, ascending, each once, and their new values.
    pub fn patched(&self, patches: &[(usize, Cell<'_>)]) -> EncodedColumn {
        patched(self, patches)
    }

    /// A new column with some words replaced, if a copy with others in their places will do: `patches` are slots, ascending, each once,
    /// and their new words.
    pub fn overwritten(&self, patches: &mut [(usize, i64)]) -> Option<EncodedColumn> {
        if is_float(self.data_type) {
            patches.iter_mut().for_each(|(_, word)| *word = key_of_word(*word as u64, self.data_type));
        }
        overwritten_keys(self, patches)
    }

    /// The keys that any of its slots can have in place of what it has now; `None` if values are not replaced where they lie.
    pub fn room(&self) -> Option<KeyRoom> {
        match &self.form {
            Form::Encoded(Integers::Packed(packed), Meaning::Keys) if self.nulls.is_none() => packed.room(),
            _ => None,
        }
    }

    /// A copy in memory of its own that has [room](Self::room), if there is one: no value is NULL or stored as bytes.
    pub fn copy(&self) -> Option<EncodedColumn> {
        if self.nulls.is_some() || is_wide(self.data_type) || self.len == 0 {
            return None;
        }
        let (packed, zones) = match &self.form {
            Form::Encoded(Integers::Packed(packed), Meaning::Keys) if packed.room().is_some() => {
                (packed.copy(), self.zones.to_vec().into())
            }
            form => {
                let (keys, simd) = (form.keys(0, self.len, self.data_type), Simd::best());
                let zones = zones::of_keys(simd, &keys, None);
                let extremes =
                    zones.iter().fold((i64::MAX, i64::MIN), |(min, max), zone| (min.min(zone.min), max.max(zone.max)));
                (Packed::new_plain(simd, &keys, extremes), zones)
            }
        };
        let form = Form::Encoded(Integers::Packed(packed), Meaning::Keys);
        Some(EncodedColumn { data_type: self.data_type, len: self.len, nulls: None, form, zones })
    }

    /// Replaces some keys where they lie, each of which has [room](Self::room): the last one of a slot stays. Zones change by the
    /// differences, and are found again where an extreme went.
    pub fn overwrite(&mut self, keys: &[(usize, i64)]) {
        let Form::Encoded(Integers::Packed(packed), Meaning::Keys) = &mut self.form else {
            unreachable!("keys have room in packed columns alone");
        };
        let (zones, simd) = (Arc::make_mut(&mut self.zones), Simd::best());
        let mut has_lost_extreme = vec![false; zones.len()];
        packed.overwrite(keys, |slot, old, key| {
            let zone = &mut zones[slot / BLOCK];
            has_lost_extreme[slot / BLOCK] |= old == zone.min || old == zone.max;
            zone.sum += i128::from(key) - i128::from(old);
            (zone.min, zone.max) = (zone.min.min(key), zone.max.max(key));
        });
        for (block, zone) in zones.iter_mut().enumerate().filter(|(block, _)| has_lost_extreme[*block]) {
            let totals = packed.totals::<true>(simd, block, (0, BLOCK.min(self.len - block * BLOCK)), None);
            (zone.min, zone.max) = (totals.min, totals.max);
        }
    }

    /// The key that stands for a word of this column.
    #[inline]
    pub fn key_of(&self, word: u64) -> i64 {
        key_of_word(word, self.data_type)
    }

    /// A new column with some values replaced, if only codes change: the column is a dictionary that has all the
    /// new values.
    pub fn recoded(&self, patches: &[(usize, Cell<'_>)]) -> Option<EncodedColumn> {
        recoded(self, patches)
    }
}

fn patched(column: &EncodedColumn, patches: &Patches<'_>) -> EncodedColumn {
    debug_assert!(patches.is_sorted_by(|left, right| left.0 < right.0));
    if let Some(recoded) = recoded(column, patches) {
        return recoded;
    }
    if let Some(overwritten) = overwritten(column, patches) {
        return overwritten;
    }
    let nulls = patched_nulls(column, patches);
    let hint = Some(Hint::of(&column.form));
    let (data_type, len) = (column.data_type, column.len);
    if is_wide(data_type) {
        let raw = patched_bytes(column, patches, nulls.as_ref());
        return encode(raw, nulls, len, data_type, hint);
    }
    let mut keys = column.form.keys(0, len, data_type);
    for (slot, cell) in patches {
        if let Cell::Word(word) = cell {
            keys[*slot] = key_of_word(*word, data_type);
        }
    }
    if let Some(nulls) = &nulls {
        fill_nulls(&mut keys, nulls);
    }
    let (form, zones) = encode_keys(&keys, nulls.as_ref(), data_type, hint);
    let form = form.unwrap_or_else(|| Form::Raw(Raw::of_keys(keys, data_type)));
    EncodedColumn { data_type, len, nulls, form, zones }
}

/// More patches than one value in so many are no few: then it pays to look for another encoding.
const FEW: usize = 4;

/// A copy in which only the new values are others, where these are few and have room.
fn overwritten(column: &EncodedColumn, patches: &Patches<'_>) -> Option<EncodedColumn> {
    if column.nulls.is_some() || patches.len() * FEW > column.len {
        return None;
    }
    let keys: Vec<(usize, i64)> = patches
        .iter()
        .map(|(slot, cell)| match cell {
            Cell::Word(word) => Some((*slot, key_of_word(*word, column.data_type))),
            Cell::Null | Cell::Bytes(_) => None,
        })
        .collect::<Option<_>>()?;
    overwritten_keys(column, &keys)
}

fn overwritten_keys(column: &EncodedColumn, keys: &[(usize, i64)]) -> Option<EncodedColumn> {
    let Form::Encoded(Integers::Packed(packed), Meaning::Keys) = &column.form else { return None };
    let room = column.room().filter(|_| keys.len() * FEW <= column.len)?;
    if !keys.iter().all(|(_, key)| room.has(*key)) {
        return None;
    }
    let mut new = column.copy()?;
    new.overwrite(keys);
    let (min, max) =
        new.zones.iter().fold((i64::MAX, i64::MIN), |(min, max), zone| (min.min(zone.min), max.max(zone.max)));
    packed.is_as_wide(min, max).then_some(new)
}

/// A column with the old dictionary and other codes, if it has all of the new values. Entries that are no longer
/// used stay.
fn recoded(column: &EncodedColumn, patches: &Patches<'_>) -> Option<EncodedColumn> {
    let nulls = patched_nulls(column, patches);
    let (form, zones) = patched_codes(column, patches, nulls.as_ref())?;
    Some(EncodedColumn { data_type: column.data_type, len: column.len, nulls, form, zones })
}

fn patched_codes(
    column: &EncodedColumn,
    patches: &Patches<'_>,
    nulls: Option<&NullBuffer>,
) -> Option<(Form, Arc<[BlockZone]>)> {
    let Form::Encoded(integers, meaning) = &column.form else { return None };
    if !meaning.has_codes() {
        return None;
    }
    let mut codes = integers.rows(0, column.len);
    for (slot, cell) in patches.iter().filter(|(_, cell)| *cell != Cell::Null) {
        codes[*slot] = meaning.code_of(*cell, column.data_type)?;
    }
    nulls.iter().for_each(|nulls| fill_nulls(&mut codes, nulls));
    let simd = Simd::best();
    let integers = Integers::smallest(simd, &codes, usize::MAX)?;
    meaning.replace_by_zone_keys(0, &mut codes, column.data_type);
    Some((Form::Encoded(integers, meaning.clone()), zones::of_keys(simd, &codes, nulls)))
}

fn patched_nulls(column: &EncodedColumn, patches: &Patches<'_>) -> Option<NullBuffer> {
    if column.nulls.is_none() && patches.iter().all(|(_, cell)| *cell != Cell::Null) {
        return None;
    }
    let mut valid = BooleanBufferBuilder::new(column.len);
    match &column.nulls {
        Some(nulls) => valid.append_buffer(nulls.inner()),
        None => valid.append_n(column.len, true),
    }
    patches.iter().for_each(|(slot, cell)| valid.set_bit(*slot, *cell != Cell::Null));
    Some(NullBuffer::new(valid.finish())).filter(|nulls| nulls.null_count() > 0)
}

fn patched_bytes(column: &EncodedColumn, patches: &Patches<'_>, nulls: Option<&NullBuffer>) -> Raw {
    let values = column.decode(0, column.len);
    let nulls = nulls.cloned();
    match Storage::of(column.data_type) {
        Storage::WideDecimal => {
            let mut values = values.as_primitive::<Decimal128Type>().values().to_vec();
            for (slot, cell) in patches {
                if let Cell::Bytes(bytes) = cell {
                    values[*slot] = wide_decimal(bytes);
                }
            }
            Raw::WideDecimal(values.into())
        }
        Storage::Bytes => {
            let new = array_of(patches, column.data_type);
            let array = patched_views::<BinaryViewType>(values.as_binary_view(), new.as_binary_view(), patches, nulls);
            Raw::Bytea(compact(array))
        }
        _ => {
            let new = array_of(patches, column.data_type);
            let array = patched_views::<StringViewType>(values.as_string_view(), new.as_string_view(), patches, nulls);
            Raw::Text(compact(array))
        }
    }
}

/// The new values as an array.
fn array_of(patches: &Patches<'_>, data_type: DataType) -> ArrayRef {
    let mut builder = ColumnBuilder::new(data_type, patches.len());
    patches.iter().for_each(|(_, cell)| builder.push(*cell));
    builder.finish()
}

fn patched_views<T: ByteViewType>(
    old: &GenericByteViewArray<T>,
    new: &GenericByteViewArray<T>,
    patches: &Patches<'_>,
    nulls: Option<NullBuffer>,
) -> GenericByteViewArray<T> {
    const INLINE_MAX: u32 = 12;
    const BUFFER_INDEX_SHIFT: u32 = 64;
    assert!(nulls.as_ref().is_none_or(|nulls| nulls.len() == old.views().len()), "a NULL bit for each row");
    let mut views = old.views().to_vec();
    for ((slot, _), view) in patches.iter().zip(new.views().iter()) {
        // The lowest 32 bits are the length; longer values name their buffer in the third quarter of the view.
        let is_inline = *view as u32 <= INLINE_MAX;
        let behind = (old.data_buffers().len() as u128) << BUFFER_INDEX_SHIFT;
        views[*slot] = if is_inline { *view } else { *view + behind };
    }
    let buffers: Arc<[Buffer]> = old.data_buffers().iter().chain(new.data_buffers()).cloned().collect();
    // SAFETY: a view is one of `old`, which keeps the numbers of its buffers, or one of `new`, moved by the number
    // of `old`'s buffers, after which those of `new` stand. Both arrays are valid, and NULLs have as many bits as
    // `old` has rows.
    unsafe { GenericByteViewArray::new_unchecked(views.into(), buffers, nulls) }
}

/// Copies the bytes together once there are many buffers, or most of their bytes belong to values replaced since.
fn compact<T: ByteViewType>(array: GenericByteViewArray<T>) -> GenericByteViewArray<T> {
    const BUFFERS_MAX: usize = 8;
    let held: usize = array.data_buffers().iter().map(Buffer::len).sum();
    if array.data_buffers().len() > BUFFERS_MAX || held > 2 * array.total_buffer_bytes_used() {
        return array.gc();
    }
    array
}
