//! Building Arrow arrays of texts and bytes.
//!
//! A value of at most 12 bytes lies in its view, the bytes of the others behind one another in blocks:
//!
//! ```text
//! views   | 4 "fine" | 30, block 0, byte 0 | 25, block 0, byte 30 | NULL | ...
//! block 0 | the 30 bytes of one | the 25 bytes of another | ...
//! ```
//!
//! Texts were checked when they came in as `str`, but a damaged page may have other bytes. Those of ASCII are told as such for a whole
//! block at once, which takes a fraction of what each value by itself takes; where there are others, each is looked at.
use std::sync::Arc;

use arrow_array::builder::make_view;
use arrow_array::{Array, ArrayRef, BinaryViewArray, StringViewArray};
use arrow_buffer::{Buffer, NullBufferBuilder, ScalarBuffer};

/// A block is closed when it has so many bytes: it grows by being copied.
const BLOCK_BYTES: usize = 1 << 20;
/// The first block begins with room for so many bytes at most, and grows. A block may keep as much room that it does not use.
const FIRST_BYTES: usize = 1 << 14;
/// The bytes that a view has room for, behind the length.
const INLINE_BYTES: usize = 12;
/// Of a view that has its value, the highest bit of each byte.
const HIGH_BITS: u128 = 0x8080_8080_8080_8080_8080_8080_0000_0000;

/// Values of different lengths.
pub(super) struct Views {
    views: Vec<u128>,
    nulls: NullBufferBuilder,
    closed: Vec<Buffer>,
    block: Vec<u8>,
    /// the views that have their values, together
    inline: u128,
}

impl Views {
    pub(super) fn new(capacity: usize) -> Views {
        Views {
            views: Vec::with_capacity(capacity),
            nulls: NullBufferBuilder::new(capacity),
            closed: Vec::new(),
            block: Vec::new(),
            inline: 0,
        }
    }

    #[inline]
    pub(super) fn append_value(&mut self, bytes: &[u8]) {
        let view = if bytes.len() <= INLINE_BYTES {
            let view = make_view(bytes, 0, 0);
            self.inline |= view;
            view
        } else {
            self.append_to_block(bytes)
        };
        self.views.push(view);
        self.nulls.append_non_null();
    }

    /// Puts the bytes of a value behind the others, and returns its view.
    #[inline]
    fn append_to_block(&mut self, bytes: &[u8]) -> u128 {
        if self.block.len() >= BLOCK_BYTES {
            self.close_block();
        }
        // One that is longer than a block is added to what is shorter than one.
        debug_assert!(self.block.len() < BLOCK_BYTES, "an offset has 32 bits");
        if self.block.capacity() == 0 {
            let most = if self.closed.is_empty() { FIRST_BYTES } else { BLOCK_BYTES };
            self.block.reserve(self.views.capacity().saturating_mul(bytes.len()).min(most).max(bytes.len()));
        }
        let (number, offset) = (self.closed.len() as u32, self.block.len() as u32);
        self.block.extend_from_slice(bytes);
        // The bytes that stand in a view behind the length are the first ones.
        let first = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        let length = bytes.len() as u32;
        u128::from(length) | u128::from(first) << 32 | u128::from(number) << 64 | u128::from(offset) << 96
    }

    fn close_block(&mut self) {
        let mut block = std::mem::take(&mut self.block);
        if block.capacity() - block.len() > FIRST_BYTES {
            block.shrink_to_fit();
        }
        self.closed.push(Buffer::from_vec(block));
    }

    pub(super) fn append_null(&mut self) {
        self.views.push(0);
        self.nulls.append_null();
    }

    /// Whether all values are characters of ASCII.
    fn is_ascii(&self) -> bool {
        self.inline & HIGH_BITS == 0
            && types::is_ascii(&self.block)
            && self.closed.iter().all(|block| types::is_ascii(block))
    }

    /// The array of all values; there are none then.
    pub(super) fn finish(&mut self) -> ArrayRef {
        Arc::new(self.finish_bytes())
    }

    fn finish_bytes(&mut self) -> BinaryViewArray {
        if !self.block.is_empty() {
            self.close_block();
        }
        self.inline = 0;
        let views = ScalarBuffer::from(std::mem::take(&mut self.views));
        let blocks = std::mem::take(&mut self.closed);
        // SAFETY: each view has its value, or says where in the blocks it was put, and begins with its first bytes; there is a bit for
        // each view among the nulls.
        unsafe { BinaryViewArray::new_unchecked(views, blocks, self.nulls.finish()) }
    }

    /// The array of all values as texts; there are none then. What is no text gets marks in place of what is wrong with it.
    pub(super) fn finish_texts(&mut self) -> ArrayRef {
        let is_ascii = self.is_ascii();
        let array = self.finish_bytes();
        debug_assert!(array.len() == array.views().len(), "a view for each value");
        if is_ascii || array.iter().flatten().all(|bytes| std::str::from_utf8(bytes).is_ok()) {
            // SAFETY: each value is a text, by one or the other look at it.
            return Arc::new(unsafe { array.to_string_view_unchecked() });
        }
        let mended = array.iter().map(|bytes| bytes.map(String::from_utf8_lossy));
        Arc::new(mended.collect::<StringViewArray>())
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray;

    use super::*;

    /// Texts of all lengths around those at which something changes, NULLs between them, and their array made by the library.
    fn both(values: &[Option<Vec<u8>>]) -> (ArrayRef, BinaryViewArray) {
        let mut views = Views::new(3);
        for value in values {
            match value {
                Some(bytes) => views.append_value(bytes),
                None => views.append_null(),
            }
        }
        (views.finish_texts(), values.iter().map(|value| value.as_deref()).collect())
    }

    #[test]
    fn the_array_is_that_of_the_library() {
        let lengths = [0, 1, 11, 12, 13, 31, 32, 120, 70_000, BLOCK_BYTES - 1, BLOCK_BYTES + 1, 5, 40];
        for letter in ["a", "é", "日"] {
            let value = |length: &usize| (length % 5 != 1).then(|| letter.repeat(*length).into_bytes());
            let values: Vec<_> = lengths.iter().cycle().take(40).map(value).collect();
            let (array, expected) = both(&values);
            let texts = array.as_string_view();
            assert_eq!(texts.clone().to_binary_view(), expected, "{letter}");
            assert!(texts.iter().flatten().all(|text| std::str::from_utf8(text.as_bytes()).is_ok()), "{letter}");
            assert!(texts.to_data().validate_full().is_ok(), "{letter}");
        }
    }

    #[test]
    fn what_is_no_text_is_mended() {
        for bad in [&b"\xff"[..], b"caf\xe9, and some more of it", b"twelve bytes\xc3"] {
            let values = [Some(b"fine".to_vec()), Some(bad.to_vec()), None, Some("é".repeat(9).into_bytes())];
            let (array, _) = both(&values);
            let texts = array.as_string_view();
            let shown: Vec<_> = texts.iter().flatten().collect();
            assert_eq!(shown, ["fine", &String::from_utf8_lossy(bad), &"é".repeat(9)]);
        }
    }

    #[test]
    fn a_builder_is_empty_behind_its_array() {
        let mut views = Views::new(0);
        for round in 0..3 {
            views.append_value(b"\xff");
            views.append_value(&[round; 20]);
            assert_eq!(views.finish().as_binary_view().value(1), [round; 20]);
            views.append_value(b"text");
            let array = views.finish_texts();
            assert_eq!((array.len(), array.as_string_view().value(0)), (1, "text"));
        }
    }
}
