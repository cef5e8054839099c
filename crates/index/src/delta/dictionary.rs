//! Dictionaries that values are appended to, and the ids of values.
//!
//! ```text
//! id:  | number of the dictionary | position in it |      32 bits; with one dictionary all are position
//! ```
//!
//! In the original form there is one dictionary, and every insert writes its length. In the tuned form each core has one
//! (tsx-index, section 5.2.1 and figure 8): appending then touches nothing that another core's appending does, and
//! reading goes to any of them.
use std::fmt;

use sync::CachePadded;
use sync::atomic::{AtomicU32, Ordering};

use super::buckets::Buckets;
use super::footprint::Visitor;
use super::pool::Pool;
use super::value::DictionaryValue;

/// The name of a value in a [`DeltaIndex`](super::DeltaIndex). Says nothing about the order of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ValueId(u32);

impl ValueId {
    /// No value has this word as its id.
    pub const NONE_WORD: u32 = u32::MAX;

    /// The id as a word, to be kept in a column.
    pub fn word(self) -> u32 {
        self.0
    }

    /// The id of a word that [`ValueId::word`] returned.
    pub fn from_word(word: u32) -> Self {
        ValueId(word)
    }
}

/// How ids are put together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct IdLayout {
    position_bits: u32,
}

impl IdLayout {
    /// Ids of `id_bits` for a number of dictionaries that is a power of two.
    pub(super) fn new(dictionary_count: usize, id_bits: u32) -> Self {
        assert!(dictionary_count.is_power_of_two() && dictionary_count.ilog2() < id_bits);
        IdLayout { position_bits: id_bits - dictionary_count.ilog2() }
    }

    #[inline]
    pub(super) fn id(self, dictionary: usize, position: u32) -> ValueId {
        ValueId(((dictionary as u64) << self.position_bits) as u32 | position)
    }

    /// The number of the dictionary of an id, and the position there.
    #[inline]
    pub(super) fn parts(self, id: ValueId) -> (usize, u32) {
        let word = u64::from(id.0);
        ((word >> self.position_bits) as usize, (word & ((1 << self.position_bits) - 1)) as u32)
    }

    /// Values in each dictionary. The last position stays free, so that one word is never an id.
    pub(super) fn positions_max(self) -> u32 {
        ((1u64 << self.position_bits) - 1) as u32
    }
}

/// Why a value could not be entered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DictionaryError {
    /// All ids are taken.
    Full {
        /// The values that the index holds.
        value_count: u64,
    },
    /// The value is longer than an entry can say.
    TooLong {
        /// The bytes of the value.
        size_bytes: usize,
    },
}

impl fmt::Display for DictionaryError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DictionaryError::Full { value_count } => write!(
                formatter,
                "a delta dictionary holds {value_count} different values and has no id left; merge the column, which \
                 starts a new dictionary"
            ),
            DictionaryError::TooLong { size_bytes } => write!(
                formatter,
                "a value of {size_bytes} bytes is too long for a delta dictionary, whose values have less than 4 GiB"
            ),
        }
    }
}

impl std::error::Error for DictionaryError {}

/// The fields that only an append writes, apart from the table that readers go through.
#[derive(Default)]
struct End {
    len: AtomicU32,
    pool: Pool,
}

/// One dictionary.
pub(super) struct Dictionary<V: DictionaryValue + ?Sized> {
    entries: CachePadded<Buckets<V::Entry>>,
    end: CachePadded<End>,
}

impl<V: DictionaryValue + ?Sized> Default for Dictionary<V> {
    fn default() -> Self {
        Dictionary { entries: CachePadded::default(), end: CachePadded::default() }
    }
}

impl<V: DictionaryValue + ?Sized> Dictionary<V> {
    /// How many values it holds.
    pub(super) fn len(&self) -> u32 {
        self.end.len.load(Ordering::Acquire)
    }

    /// The memory that it holds.
    pub(super) fn bytes(&self) -> usize {
        self.entries.bytes() + self.end.pool.bytes()
    }

    /// Sees to it that the next value can be appended without a request to the system.
    pub(super) fn prepare(&self, value: V::Borrowed<'_>) {
        self.entries.reserve(self.end.len.load(Ordering::Relaxed));
        self.end.pool.prepare(V::pool_bytes(value));
    }

    /// Appends a value and returns its position.
    ///
    /// # Safety
    /// No other thread appends, and appends follow one another by happens-before.
    pub(super) unsafe fn append(&self, value: V::Borrowed<'_>) -> u32 {
        let position = self.end.len.load(Ordering::Relaxed);
        // SAFETY: the entry is beyond the length, so no thread reads it; the caller appends alone.
        unsafe { V::write(self.entries.reserve(position), value, &self.end.pool) };
        self.end.len.store(position + 1, Ordering::Release);
        position
    }

    /// The value at a position.
    #[inline]
    pub(super) fn value(&self, position: u32) -> Option<V::Borrowed<'_>> {
        if position >= self.len() {
            return None;
        }
        // SAFETY: the length that was just acquired says that the entry is written.
        self.entries.get(position).map(|entry| unsafe { V::read(entry) })
    }

    /// How the value at a position stands to another.
    ///
    /// # Safety
    /// The value was appended before, by the order of happens-before.
    #[inline]
    pub(super) unsafe fn compare(
        &self,
        position: u32,
        sought: V::Borrowed<'_>,
        visitor: &mut impl Visitor,
    ) -> std::cmp::Ordering {
        let entry = self.entries.visit(position, visitor).expect("a value that was appended has an entry");
        // SAFETY: the caller's promise.
        unsafe { V::compare(entry, sought, visitor) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_different_and_lead_back() {
        for dictionary_count in [1usize, 2, 64] {
            for id_bits in [8, 20, 32] {
                let layout = IdLayout::new(dictionary_count, id_bits);
                let last = layout.positions_max() - 1;
                let mut words = Vec::new();
                for dictionary in [0, dictionary_count / 2, dictionary_count - 1] {
                    for position in [0, 1.min(last), last] {
                        let id = layout.id(dictionary, position);
                        assert_eq!(layout.parts(ValueId::from_word(id.word())), (dictionary, position));
                        assert_ne!(id.word(), ValueId::NONE_WORD);
                        words.push((id.word(), (dictionary, position)));
                    }
                }
                words.sort_unstable();
                words.dedup();
                assert!(words.windows(2).all(|pair| pair[0].0 != pair[1].0), "{words:?}");
            }
        }
    }

    #[test]
    fn a_position_has_a_value_from_its_append_on() {
        let dictionary = Dictionary::<[u8]>::default();
        for position in 0..500u32 {
            assert_eq!(dictionary.value(position), None);
            let value = vec![b'x'; position as usize % 40];
            dictionary.prepare(&value);
            // SAFETY: one thread.
            assert_eq!(unsafe { dictionary.append(&value) }, position);
            assert_eq!(dictionary.value(position), Some(&value[..]));
        }
        assert_eq!((dictionary.len(), dictionary.value(u32::MAX)), (500, None));
        assert!(dictionary.bytes() > 500 * 16);
    }
}
