//! Words of an update in the log, all of them in as few bytes as the widest of them needs.
//!
//! ```text
//! head   operation (1) | table (4) | columns (1) | width (1) | 0 (1) | rid (8)
//! rest   column (2) ... | word (width: 1, 2, 4 or 8, signed) ... | zeros up to a multiple of eight bytes
//! ```
//!
//! Where each word has a width of its own, as in other operations, a short transaction takes four times the instructions to write them. The
//! head with the operation and the record is `redo`'s.
use lineage::Cell;

use crate::error::{Error, Result};

/// The bytes before the columns.
pub(super) const HEAD_BYTES: usize = 16;

/// So many words have room in one operation.
pub(super) const COUNT_MAX: usize = u8::MAX as usize;

const PADDING: [u8; 8] = [0; 8];

/// How many bytes the columns and words take.
fn padded(count: usize, width: usize) -> usize {
    (count * (size_of::<u16>() + width)).next_multiple_of(PADDING.len())
}

/// In how many bytes, 1, 2, 4 or 8, each of the words stands as a signed number.
#[inline]
fn width_of(words: &[u64]) -> usize {
    let magnitudes = words.iter().fold(0, |all, word| all | (*word as i64 ^ (*word as i64) >> 63) as u64);
    match magnitudes {
        0..0x80 => 1,
        0x80..0x8000 => 2,
        0x8000..0x8000_0000 => 4,
        _ => 8,
    }
}

/// Appends a head, in which the number of words and their width are set, the columns and the words.
#[inline]
pub(super) fn put(out: &mut Vec<u8>, mut head: [u8; HEAD_BYTES], columns: &[usize], words: &[u64]) {
    debug_assert_eq!(columns.len(), words.len(), "invariant 8: a word for each column");
    debug_assert!(words.len() <= COUNT_MAX, "invariant 8: {} words are too many", words.len());
    let width = width_of(words);
    head[5..8].copy_from_slice(&[words.len() as u8, width as u8, 0]);
    let end = out.len() + HEAD_BYTES + padded(words.len(), width);
    out.reserve(end + PADDING.len() - out.len());
    out.extend_from_slice(&head);
    put_each(out, columns, |column| (column as u16).to_le_bytes());
    match width {
        1 => put_each(out, words, |word| [word as u8]),
        2 => put_each(out, words, |word| (word as u16).to_le_bytes()),
        4 => put_each(out, words, |word| (word as u32).to_le_bytes()),
        _ => put_each(out, words, u64::to_le_bytes),
    }
    // A copy of a fixed size takes one instruction.
    out.extend_from_slice(&PADDING);
    out.truncate(end);
}

/// Puts numbers one after the other, four at a time where there are four.
#[inline(always)]
fn put_each<T: Copy, const N: usize>(out: &mut Vec<u8>, numbers: &[T], bytes: impl Fn(T) -> [u8; N]) {
    let (fours, rest) = numbers.as_chunks::<4>();
    fours.iter().for_each(|four| out.extend_from_slice(four.map(&bytes).as_flattened()));
    rest.iter().for_each(|number| out.extend_from_slice(&bytes(*number)));
}

/// How many bytes follow the head.
pub(super) fn bytes_of(count: usize, width: usize) -> Result<usize> {
    match width {
        1 | 2 | 4 | 8 => Ok(padded(count, width)),
        _ => Err(Error::BadRedo(format!("words of {width} bytes"))),
    }
}

/// The columns and words in the bytes that follow a head, of which there are [`bytes_of`].
pub(super) fn read<'a>(bytes: &[u8], count: usize, width: usize) -> Vec<(usize, Cell<'a>)> {
    debug_assert_eq!(bytes.len(), padded(count, width), "as many bytes as there are words");
    let (columns, words) = bytes.split_at(size_of::<u16>() * count);
    let columns = columns.as_chunks::<2>().0.iter().map(|column| usize::from(u16::from_le_bytes(*column)));
    let unused = 64 - 8 * width as u32;
    let words = words.chunks_exact(width).map(|bytes| {
        let mut word = [0; 8];
        word[..width].copy_from_slice(bytes);
        ((u64::from_le_bytes(word) << unused) as i64 >> unused) as u64
    });
    columns.zip(words.map(Cell::Word)).collect()
}

#[cfg(test)]
mod tests {
    use types::Rid;

    use super::*;
    use crate::disk::redo::{self, Operation};

    #[test]
    fn words_come_back_in_any_width_and_number() {
        let mut payload = Vec::new();
        for (count, bits) in
            [0, 1, 2, 3, 4, 5, 8, 255, 256, 300].iter().flat_map(|count| (0..64).map(move |bits| (*count, bits)))
        {
            let columns: Vec<usize> = (0..count).map(|at| (at * 7 + bits) % 65_536).collect();
            let word = |at: usize| {
                (1_u64 << bits).wrapping_sub(at as u64 % 3) ^ if at.is_multiple_of(2) { 0 } else { u64::MAX }
            };
            let words: Vec<u64> = (0..count).map(word).collect();
            payload.clear();
            redo::put_words(&mut payload, 8, Rid::base(3, 5), &columns, &words);
            assert!(count > 255 || payload.len().is_multiple_of(8), "{} bytes", payload.len());
            let cells = words.iter().copied().map(Cell::Word);
            let expected: Vec<(usize, Cell<'_>)> = columns.iter().copied().zip(cells).collect();
            let mut seen = 0;
            redo::read(&payload, |operation| {
                let Operation::Update { table, rid, values } = operation else { panic!("no update") };
                assert_eq!((table, rid, values), (8, Rid::base(3, 5), expected.clone()));
                seen += 1;
                Ok(())
            })
            .unwrap();
            assert_eq!(seen, 1);
        }
        for (bytes, words) in
            [(1, &[0x7f, u64::MAX - 0x7f][..]), (2, &[0x80]), (2, &[u64::MAX - 0x80]), (4, &[0x8000]), (8, &[1 << 31])]
        {
            assert_eq!(width_of(words), bytes, "{words:?}");
        }
    }

    #[test]
    fn words_of_an_odd_width_or_too_few_are_refused() {
        let mut payload = Vec::new();
        redo::put_words(&mut payload, 8, Rid::base(3, 5), &[1, 2], &[3, 4]);
        for cut in 1..payload.len() {
            assert!(redo::read(&payload[..cut], |_| Ok(())).is_err(), "cut at {cut}");
        }
        payload[6] = 3;
        assert!(matches!(redo::read(&payload, |_| Ok(())), Err(Error::BadRedo(why)) if why.contains("3 bytes")));
    }
}
