//! [`HeapRef`]: where a word of a heap stands.
//!
//! A number of a word and not an address: it can be stored in the heap itself and means the same after the heap was
//! opened again, wherever its memory lies then. Number 0 is no place.

use std::fmt;

/// The number of a word of a heap; 0 is [`HeapRef::NULL`].
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HeapRef(u64);

impl HeapRef {
    /// No place.
    pub const NULL: HeapRef = HeapRef(0);

    /// The reference that [`HeapRef::to_word`] has made a word of.
    pub const fn from_word(word: u64) -> HeapRef {
        HeapRef(word)
    }

    /// The reference as a word, to be stored in a heap.
    pub const fn to_word(self) -> u64 {
        self.0
    }

    /// Whether it is no place.
    pub const fn is_null(self) -> bool {
        self.0 == 0
    }

    /// The word `offset` words after this one. A reference beyond every heap stays beyond it.
    pub const fn at(self, offset: u64) -> HeapRef {
        HeapRef(self.0.saturating_add(offset))
    }
}

impl fmt::Debug for HeapRef {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "HeapRef({})", self.0)
    }
}
