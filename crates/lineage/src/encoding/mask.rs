//! Which rows of a stretch of a column are still wanted: a bit each, in words from the lowest bit upward.
//!
//! A scan starts with all rows, each predicate clears those that do not pass. The words are those of an Arrow bitmap,
//! so a mask becomes one without a copy. Bits past the last row are 0 at all times.
use arrow_buffer::{BooleanBuffer, Buffer};

use super::simd::{BLOCK_WORDS, BlockBits, low_bits};

/// A bit for each row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mask {
    words: Vec<u64>,
    len: usize,
}

impl Mask {
    /// All of `len` rows.
    pub fn new_all(len: usize) -> Mask {
        let mut words = vec![u64::MAX; len.div_ceil(64)];
        if let Some(last) = words.last_mut() {
            *last &= low_bits(len - (len - 1) / 64 * 64);
        }
        Mask { words, len }
    }

    /// How many rows it is about.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it is about no rows at all.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether the row is kept.
    #[inline]
    pub fn get(&self, row: usize) -> bool {
        debug_assert!(row < self.len);
        self.words[row / 64] >> (row % 64) & 1 != 0
    }

    /// Leaves the row out.
    #[inline]
    pub fn clear(&mut self, row: usize) {
        debug_assert!(row < self.len);
        self.words[row / 64] &= !(1 << (row % 64));
    }

    /// Keeps the row again.
    #[inline]
    pub fn set(&mut self, row: usize) {
        debug_assert!(row < self.len);
        self.words[row / 64] |= 1 << (row % 64);
    }

    /// Leaves out the rows that `other`, of the same length, keeps.
    pub fn leave_out(&mut self, other: &Mask) {
        debug_assert_eq!(self.len, other.len);
        self.words.iter_mut().zip(&other.words).for_each(|(word, other)| *word &= !other);
    }

    /// Keeps the rows, too, that `other`, of the same length, keeps.
    pub(crate) fn add(&mut self, other: &Mask) {
        debug_assert_eq!(self.len, other.len);
        self.add_words(&other.words);
    }

    /// Keeps the rows, too, with their bit set in `others`, which has as many words.
    pub(crate) fn add_words(&mut self, others: &[u64]) {
        debug_assert_eq!(self.words.len(), others.len());
        self.words.iter_mut().zip(others).for_each(|(word, other)| *word |= other);
    }

    /// The rows that are kept and have their bit set in `others`, which has as many words.
    pub(crate) fn and_words(&self, others: &[u64]) -> Mask {
        debug_assert_eq!(self.words.len(), others.len());
        Mask { words: self.words.iter().zip(others).map(|(word, other)| word & other).collect(), len: self.len }
    }

    /// Leaves out the rows with their bit set in `others`, which has as many words; tells whether there are any.
    pub(crate) fn leave_out_words(&mut self, others: &[u64]) -> bool {
        debug_assert_eq!(self.words.len(), others.len());
        let mut any = 0;
        for (word, other) in self.words.iter_mut().zip(others) {
            *word &= !other;
            any |= other;
        }
        any != 0
    }

    /// How many rows are kept.
    pub fn count(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// The words, 64 rows each.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// The rows kept, ascending.
    pub fn rows(&self) -> impl Iterator<Item = usize> + '_ {
        ones(self.words.iter().copied())
    }

    /// The mask as Arrow's bitmap, without a copy.
    pub fn into_boolean_buffer(self) -> BooleanBuffer {
        BooleanBuffer::new(Buffer::from_vec(self.words), 0, self.len)
    }

    /// Leaves rows `at..at + len` out.
    pub(crate) fn clear_range(&mut self, at: usize, len: usize) {
        for (i, low, count) in pieces(at, len) {
            self.words[i] &= !(low_bits(count) << low);
        }
    }

    /// Of the rows `at..at + len`, keeps only those with their bit set: bit 0 of `bits` is row `at`.
    pub(super) fn keep_only(&mut self, at: usize, len: usize, bits: &[u64]) {
        debug_assert!(at + len <= self.len && bits.len() * 64 >= len);
        let mut taken = 0;
        for (i, low, count) in pieces(at, len) {
            let wanted = word_at(bits, taken) | !low_bits(count);
            self.words[i] &= wanted.rotate_left(low as u32);
            taken += count;
        }
    }

    /// The bits of rows `at..at + len`, at most a block.
    pub(super) fn part(&self, at: usize, len: usize) -> BlockBits {
        debug_assert!(at + len <= self.len && len <= BLOCK_WORDS * 64);
        let mut part = [0; BLOCK_WORDS];
        for (i, word) in part.iter_mut().enumerate().take(len.div_ceil(64)) {
            *word = word_at(&self.words, at + i * 64) & low_bits(len - i * 64);
        }
        part
    }

    /// Whether any of the rows `at..at + len` is kept.
    pub(crate) fn has_any(&self, at: usize, len: usize) -> bool {
        pieces(at, len).any(|(i, low, count)| self.words[i] & low_bits(count) << low != 0)
    }
}

/// The bits that are set in these words, ascending.
#[inline]
pub(crate) fn ones(words: impl Iterator<Item = u64>) -> impl Iterator<Item = usize> {
    words.enumerate().flat_map(|(i, mut word)| {
        std::iter::from_fn(move || {
            let bit = (word != 0).then(|| word.trailing_zeros() as usize)?;
            word &= word - 1;
            Some(i * 64 + bit)
        })
    })
}

/// The 64 bits from bit `at` on, zeros past the end.
#[inline]
fn word_at(words: &[u64], at: usize) -> u64 {
    let word = words.get(at / 64).copied().unwrap_or(0);
    match at % 64 {
        0 => word,
        shift => word >> shift | words.get(at / 64 + 1).copied().unwrap_or(0) << (64 - shift),
    }
}

/// The bits `at..at + len` word by word: which word, from which bit, how many.
#[inline]
fn pieces(at: usize, len: usize) -> impl Iterator<Item = (usize, usize, usize)> {
    let end = at + len;
    (at / 64..end.div_ceil(64)).filter_map(move |i| {
        let (from, to) = (at.max(i * 64), end.min(i * 64 + 64));
        (from < to).then(|| (i, from - i * 64, to - from))
    })
}

/// Sets the bits `from..to`.
pub(super) fn set_bits(bits: &mut BlockBits, from: usize, to: usize) {
    for (i, low, count) in pieces(from, to - from) {
        bits[i] |= low_bits(count) << low;
    }
}

/// How many of the bits `from..to` are set.
pub(super) fn count_bits(bits: &BlockBits, from: usize, to: usize) -> usize {
    pieces(from, to - from).map(|(i, low, count)| (bits[i] & low_bits(count) << low).count_ones() as usize).sum()
}

/// The bits `from..from + len` of an Arrow bitmap, at most a block.
pub(super) fn bits_of(bitmap: &BooleanBuffer, from: usize, len: usize) -> BlockBits {
    let mut bits = [0; BLOCK_WORDS];
    let part = bitmap.slice(from, len);
    bits.iter_mut().zip(part.bit_chunks().iter_padded()).for_each(|(word, chunk)| *word = chunk);
    if !len.is_multiple_of(64) {
        bits[len / 64] &= low_bits(len % 64);
    }
    bits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_is_the_list_of_its_bits_at_any_offset() {
        let bits: BlockBits = std::array::from_fn(|i| 0x9e37_79b9_7f4a_7c15u64.rotate_left(i as u32 * 11));
        let bit = |i: usize| bits[i / 64] >> (i % 64) & 1 != 0;
        for len in [0, 1, 63, 64, 65, 200, 700] {
            for at in [0, 1, 31, 64, 100] {
                let mut mask = Mask::new_all(900);
                mask.clear(50);
                mask.keep_only(at, len, &bits);
                let kept = |row: usize| row != 50 && (!(at..at + len).contains(&row) || bit(row - at));
                assert!((0..900).all(|row| mask.get(row) == kept(row)), "{len} at {at}");
                let rows: Vec<usize> = (0..900).filter(|row| kept(*row)).collect();
                assert_eq!(mask.rows().collect::<Vec<_>>(), rows);
                assert_eq!(mask.count(), rows.len());
                let part = mask.part(at, len);
                assert!((0..1024).all(|i| (part[i / 64] >> (i % 64) & 1 != 0) == (i < len && kept(at + i))));
                assert_eq!(mask.has_any(at, len), (at..at + len).any(kept));
                assert_eq!(
                    count_bits(&bits, at, at + len.min(800)),
                    (at..at + len.min(800)).filter(|i| bit(*i)).count()
                );
                let bitmap = mask.clone().into_boolean_buffer();
                assert_eq!(bits_of(&bitmap, at, len), part);
                mask.clear_range(at, len);
                assert!((0..900).all(|row| mask.get(row) == (row != 50 && !(at..at + len).contains(&row))));
                let mut set = [0; BLOCK_WORDS];
                set_bits(&mut set, at, at + len);
                assert!((0..1024).all(|i| (set[i / 64] >> (i % 64) & 1 != 0) == (at..at + len).contains(&i)));
            }
        }
        assert_eq!(Mask::new_all(0).count(), 0);
        assert_eq!(Mask::new_all(65).words(), [u64::MAX, 1]);
    }
}
