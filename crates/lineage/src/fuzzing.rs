//! Bodies of fuzz targets: bytes of any origin are refused or decoded, and what decodes is written as bytes that decode to it.
//!
//! `fuzz/` runs them on what it invents, `tests/fuzz.rs` on the kept corpus. Nothing else calls them.
use types::{DataType, Timestamp};

use crate::codec::{
    BlobKind, Shape, decode_column, decode_history_page, decode_rows, decode_start_times, decode_update_columns,
    encode_column, encode_history_page, encode_rows, encode_start_times, encode_update_columns,
};
use crate::image::range_bytes::decode_range;
use crate::page::options::TableOptions;
use crate::page::words::Layout;

/// The types that pages are tried with, by the first byte.
const TYPES: [DataType; 14] = [
    DataType::Boolean,
    DataType::SmallInt,
    DataType::Integer,
    DataType::BigInt,
    DataType::Real,
    DataType::Double,
    DataType::Decimal { precision: 12, scale: 2 },
    DataType::Decimal { precision: 38, scale: 2 },
    DataType::Text { max_chars: Some(40) },
    DataType::Bytea,
    DataType::Date,
    DataType::Timestamp,
    DataType::TimestampTz,
    DataType::Uuid,
];

/// More rows are not asked for: pages of so many have blocks of every kind.
const ROWS_MAX: usize = 1 << 12;
/// In the byte of the type: the range is laid out in rows.
const ROWS: u8 = 1 << 7;
/// The time of every image.
const AT: Timestamp = Timestamp(1 << 40);
/// The highest number of a tail record.
const THROUGH: u64 = 1 << 32;

/// A page of any kind: its type and layout (8), its rows (16), and its blob.
///
/// # Panics
/// If what was decoded is not what its own bytes decode to.
pub fn pages(data: &[u8]) {
    let Some((&[tag, low, high], blob)) = data.split_first_chunk() else { return };
    let Some(kind) = blob.first() else { return };
    let data_type = TYPES[usize::from(tag & !ROWS) % TYPES.len()];
    let len = usize::from(u16::from_le_bytes([low, high])).min(ROWS_MAX);
    let shape = Shape { types: &TYPES, len, at: AT };
    match *kind {
        kind if kind == BlobKind::Column as u8 => column(blob, shape, data_type),
        kind if kind == BlobKind::Rows as u8 => again(blob, |bytes| {
            let (page, sketches) = decode_rows(bytes, shape).ok()?;
            Some(encode_rows(shape, &page, sketches.iter()))
        }),
        kind if kind == BlobKind::StartTimes as u8 => again(blob, |bytes| {
            let words = decode_start_times(bytes, shape).ok()?;
            Some(encode_start_times(words.into_iter()))
        }),
        kind if kind == BlobKind::UpdateColumns as u8 => again(blob, |bytes| {
            let updates = decode_update_columns(bytes, shape).ok()?;
            Some(encode_update_columns(shape, &updates))
        }),
        kind if kind == BlobKind::HistoryPage as u8 => again(blob, |bytes| {
            let page = decode_history_page(bytes, shape, 0..len, THROUGH).ok()?;
            Some(encode_history_page(&page))
        }),
        _ => range(blob, if tag & ROWS == 0 { Layout::Column } else { Layout::Row }),
    }
}

/// A page of a column, every value of which can be read, one by one and together.
fn column(blob: &[u8], shape: Shape<'_>, data_type: DataType) {
    again(blob, |bytes| {
        let (column, sketch) = decode_column(bytes, shape, data_type).ok()?;
        let values = column.decode(0, shape.len);
        assert_eq!(values.len(), shape.len, "a value for each row");
        let nulls = (0..shape.len).filter(|slot| column.cell(*slot) == crate::Cell::Null).count();
        assert_eq!(nulls, values.null_count(), "one by one and together");
        let _ = column.zone(0, shape.len);
        Some(encode_column(&column, &sketch))
    });
}

/// The image of a range, and the records in it.
fn range(blob: &[u8], layout: Layout) {
    let options = TableOptions { update_range_records: 16, layout, ..TableOptions::with_range(64) };
    let Ok((_, inserts, tails)) = decode_range(blob, &TYPES, &options) else { return };
    if let Some(inserts) = inserts {
        inserts.for_each(|_, _, cells| assert_eq!(cells.len(), TYPES.len(), "a cell for each column"));
    }
    for tail in tails.0 {
        tail.for_each(|sequence, _| assert!(sequence > 0, "sequence numbers begin with 1"));
    }
}

/// Decodes and encodes, and does so once more with what came of it: the bytes are then the same.
fn again(bytes: &[u8], decode_and_encode: impl Fn(&[u8]) -> Option<Vec<u8>>) {
    let Some(first) = decode_and_encode(bytes) else { return };
    let second = decode_and_encode(&first);
    assert_eq!(second.as_ref(), Some(&first), "what decodes is written as bytes that decode to it");
}
