//! Record identifiers: one 64-bit key space for base and tail records (L-Store, section 2.1).
//!
//! ```text
//!  63   62 ............ 36   35 .................. 0
//! +----+-------------------+------------------------+
//! |tail|   range (27 bits) | slot or sequence (36)  |
//! +----+-------------------+------------------------+
//! ```
//!
//! A base Rid names a slot of a range and never changes; indexes hold base Rids only. A tail Rid names a tail
//! record of the same range by its sequence number, which grows from 1.
use std::fmt;

const OFFSET_BITS: u32 = 36;
const OFFSET_MASK: u64 = (1 << OFFSET_BITS) - 1;
const TAIL_BIT: u64 = 1 << 63;

/// Names one record of a table: a base record by range and slot, or a tail record by range and sequence number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Rid(u64);

impl Rid {
    /// The base record at `slot` of `range`.
    #[inline]
    pub fn base(range: usize, slot: usize) -> Rid {
        debug_assert!((range as u64) < 1 << 27 && (slot as u64) <= OFFSET_MASK);
        Rid((range as u64) << OFFSET_BITS | slot as u64)
    }

    /// The tail record numbered `sequence` of `range`.
    #[inline]
    pub fn tail(range: usize, sequence: u64) -> Rid {
        debug_assert!((range as u64) < 1 << 27 && sequence <= OFFSET_MASK);
        Rid(TAIL_BIT | (range as u64) << OFFSET_BITS | sequence)
    }

    /// Builds a Rid from its word, the inverse of [`Rid::word`].
    #[inline]
    pub fn from_word(word: u64) -> Rid {
        Rid(word)
    }

    /// The bits of this Rid, for logs and hidden columns.
    #[inline]
    pub fn word(self) -> u64 {
        self.0
    }

    /// Whether this names a tail record.
    #[inline]
    pub fn is_tail(self) -> bool {
        self.0 & TAIL_BIT != 0
    }

    /// The index of the range.
    #[inline]
    pub fn range(self) -> usize {
        ((self.0 & !TAIL_BIT) >> OFFSET_BITS) as usize
    }

    /// The slot of a base record within its range.
    #[inline]
    pub fn slot(self) -> usize {
        debug_assert!(!self.is_tail());
        (self.0 & OFFSET_MASK) as usize
    }

    /// The sequence number of a tail record within its range.
    #[inline]
    pub fn sequence(self) -> u64 {
        debug_assert!(self.is_tail());
        self.0 & OFFSET_MASK
    }
}

impl fmt::Debug for Rid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.is_tail() { 't' } else { 'b' };
        write!(f, "{kind}{}.{}", self.range(), self.0 & OFFSET_MASK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_and_tail_share_one_key_space() {
        let base = Rid::base(7, 65_535);
        let tail = Rid::tail(7, 65_535);
        assert_ne!(base, tail);
        assert_eq!((base.range(), base.slot(), base.is_tail()), (7, 65_535, false));
        assert_eq!((tail.range(), tail.sequence(), tail.is_tail()), (7, 65_535, true));
        assert_eq!(Rid::from_word(tail.word()), tail);
    }
}
