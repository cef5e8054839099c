//! Text and bytea columns, and the dictionaries of such columns.
//!
//! ```text
//! views | lengths, packed | size | bytes end to end |        a NULL has length 0
//! ```
//!
//! In memory the values are Arrow views. On disk they are the bytes themselves and nothing that no value uses; what is
//! read has the longer ones together in one buffer (a second one after a gibibyte), and the others in their views.
use std::sync::Arc;

use arrow_array::builder::make_view;
use arrow_array::types::ByteViewType;
use arrow_array::{Array, GenericByteViewArray};
use arrow_buffer::{Buffer, NullBuffer};
use types::DataType;

use super::cells::check_length;
use super::{Damage, Reader, Writer};

/// Values of at most so many bytes are held in their views.
const INLINE_MAX: usize = 12;

/// Bytes of a buffer, unless a single value is longer.
const BUFFER_BYTES: usize = 1 << 30;

/// Writes the values of an array.
pub(crate) fn encode_views<T: ByteViewType>(writer: &mut Writer, array: &GenericByteViewArray<T>) {
    let (mut lengths, mut bytes) = (Vec::with_capacity(array.len()), Vec::new());
    for value in array.iter() {
        let value: &[u8] = value.map_or(&[], AsRef::as_ref);
        lengths.push(value.len() as u64);
        bytes.extend_from_slice(value);
    }
    writer.numbers(&lengths);
    writer.number(bytes.len() as u64);
    writer.bytes(&bytes);
}

/// The array of `len` values, of which these are NULL; it is text if `T` is.
pub(crate) fn decode_views<T: ByteViewType>(
    reader: &mut Reader<'_>,
    len: usize,
    nulls: Option<NullBuffer>,
    data_type: DataType,
) -> Result<GenericByteViewArray<T>, Damage> {
    let lengths = reader.numbers_of(len, "lengths of values")?;
    let size = reader.count(usize::MAX, "the size of values")?;
    let bytes = reader.bytes(size, "values")?;
    let total = lengths.iter().try_fold(0u64, |total, length| total.checked_add(*length));
    reader.check(total == Some(size as u64), || format!("has {size} bytes for values of other lengths"))?;
    if T::IS_UTF8 {
        check_text(reader, bytes, &lengths, data_type)?;
    }
    let long = lengths.iter().map(|length| *length as usize).filter(|length| *length > INLINE_MAX).sum::<usize>();
    let (mut views, mut buffers) = (Vec::with_capacity(len), Vec::new());
    let mut buffer = Vec::with_capacity(long.min(BUFFER_BYTES));
    let mut left = bytes;
    for (row, length) in lengths.iter().enumerate() {
        let (value, rest) = left.split_at(*length as usize);
        left = rest;
        let is_null = nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
        reader.check(!is_null || value.is_empty(), || format!("has a NULL of {length} bytes"))?;
        reader.check(value.len() < BUFFER_BYTES, || format!("has a value of {length} bytes"))?;
        if value.len() <= INLINE_MAX {
            views.push(make_view(value, 0, 0));
            continue;
        }
        if buffer.len() + value.len() > BUFFER_BYTES {
            buffers.push(Buffer::from_vec(std::mem::take(&mut buffer)));
        }
        views.push(make_view(value, buffers.len() as u32, buffer.len() as u32));
        buffer.extend_from_slice(value);
    }
    if !buffer.is_empty() {
        buffers.push(Buffer::from_vec(buffer));
    }
    let buffers: Arc<[Buffer]> = buffers.into();
    // SAFETY: each view was made of a value of at most 12 bytes, or of one that was then put at this place of the buffer
    // with this number; there are as many views as NULL bits; the bytes of text are UTF-8 from a character's first
    // byte to a character's last, as `check_text` has seen.
    Ok(unsafe { GenericByteViewArray::new_unchecked(views.into(), buffers, nulls) })
}

/// Whether all bytes are text, and every value of its own.
fn check_text(reader: &Reader<'_>, bytes: &[u8], lengths: &[u64], data_type: DataType) -> Result<(), Damage> {
    let text = std::str::from_utf8(bytes);
    let text = text.map_err(|error| reader.damage(&format!("has text that is no UTF-8: {error}")))?;
    let mut at = 0;
    for length in lengths {
        let end = at + *length as usize;
        let value = text.get(at..end).ok_or_else(|| reader.damage("has a value that ends within a character"))?;
        check_length(reader, value, data_type)?;
        at = end;
    }
    Ok(())
}
