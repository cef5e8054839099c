//! A base page in row layout: the values of all columns of a record next to each other, read-only.
//!
//! ```text
//! words   record 0: [column 0][column 1]...   record 1: [column 0][column 1]...        8 bytes each
//! nulls   record 0: [bit per column]          record 1: ...                            64 columns a word
//! bytes   values that do not fit a word; their word holds offset (32 bits) and length (32 bits)
//! ```
//!
//! A table in row layout gains by key, a cache line or two a record, and pays for it in scans, which read all of
//! them; nothing is encoded. Merging rewrites the page whole.
use std::sync::Arc;

use crate::value::cell::{Cell, is_wide};
use types::DataType;

/// The records of a range, row by row.
pub(crate) struct RowPage {
    pub(crate) wide: Arc<[bool]>,
    pub(crate) words: Box<[u64]>,
    pub(crate) nulls: Box<[u64]>,
    pub(crate) bytes: Box<[u8]>,
}

impl RowPage {
    /// Builds the page of `len` records from the values that `cell(slot, column)` gives.
    pub(crate) fn build<'a>(types: &[DataType], len: usize, mut cell: impl FnMut(usize, usize) -> Cell<'a>) -> RowPage {
        let width = types.len();
        let set_words = width.div_ceil(64);
        let mut words = Vec::with_capacity(len * width);
        let mut nulls = vec![0u64; len * set_words];
        let mut bytes = Vec::new();
        for slot in 0..len {
            for column in 0..width {
                words.push(match cell(slot, column) {
                    Cell::Null => {
                        nulls[slot * set_words + column / 64] |= 1 << (column % 64);
                        0
                    }
                    Cell::Word(word) => word,
                    Cell::Bytes(value) => {
                        let place = (bytes.len() as u64) << 32 | value.len() as u64;
                        bytes.extend_from_slice(value);
                        place
                    }
                });
            }
        }
        assert!(bytes.len() <= u32::MAX as usize, "a range of rows holds 4 GiB of long values at most");
        let wide = types.iter().map(|data_type| is_wide(*data_type)).collect();
        RowPage { wide, words: words.into(), nulls: nulls.into(), bytes: bytes.into() }
    }

    /// Whether a value is NULL.
    #[inline]
    pub(crate) fn is_null(&self, column: usize, slot: usize) -> bool {
        let set_words = self.wide.len().div_ceil(64);
        self.nulls[slot * set_words + column / 64] & 1 << (column % 64) != 0
    }

    /// A value.
    #[inline]
    pub(crate) fn cell(&self, column: usize, slot: usize) -> Cell<'_> {
        if self.is_null(column, slot) {
            return Cell::Null;
        }
        let word = self.words[slot * self.wide.len() + column];
        if self.wide[column] {
            let (offset, len) = ((word >> 32) as usize, word as u32 as usize);
            Cell::Bytes(&self.bytes[offset..offset + len])
        } else {
            Cell::Word(word)
        }
    }

    /// Asks for the memory of a value.
    #[inline]
    pub(crate) fn prefetch(&self, column: usize, slot: usize) {
        sync::prefetch(self.words.as_ptr().wrapping_add(slot * self.wide.len() + column));
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.words) + size_of_val(&*self.nulls) + self.bytes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back_row_by_row() {
        let types = [DataType::BigInt, DataType::TEXT, DataType::Integer];
        let texts = ["", "a", "a longer text"];
        let cell = |slot: usize, column: usize| match column {
            _ if (slot + column).is_multiple_of(5) => Cell::Null,
            1 => Cell::Bytes(texts[slot % 3].as_bytes()),
            _ => Cell::Word((slot * 10 + column) as u64),
        };
        let page = RowPage::build(&types, 20, cell);
        for slot in 0..20 {
            for column in 0..3 {
                assert_eq!(page.cell(column, slot), cell(slot, column), "slot {slot} column {column}");
            }
        }
    }
}
