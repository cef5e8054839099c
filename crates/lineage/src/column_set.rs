//! A set of columns, one bit each: the form of the Schema Encoding column (L-Store, section 2.2).
use types::Schema;

const WORDS_MAX: usize = 1600usize.div_ceil(64);

/// How many words the Schema Encoding of this schema's records takes.
pub fn words_of(schema: &Schema) -> usize {
    schema.columns().len().div_ceil(64)
}

/// A set of column positions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ColumnSet {
    words: [u64; WORDS_MAX],
}

impl ColumnSet {
    /// No column.
    pub const EMPTY: ColumnSet = ColumnSet { words: [0; WORDS_MAX] };

    /// The set of these columns.
    pub fn of(columns: impl IntoIterator<Item = usize>) -> ColumnSet {
        let mut set = ColumnSet::EMPTY;
        columns.into_iter().for_each(|column| set.insert(column));
        set
    }

    /// Adds a column.
    #[inline]
    pub fn insert(&mut self, column: usize) {
        self.words[column / 64] |= 1 << (column % 64);
    }

    /// Whether the column is in the set.
    #[inline]
    pub fn contains(&self, column: usize) -> bool {
        self.words[column / 64] & 1 << (column % 64) != 0
    }

    /// Word `i` of the set: columns `64 * i ..`.
    #[inline]
    pub fn word(&self, i: usize) -> u64 {
        self.words[i]
    }

    /// Adds the columns of word `i`.
    #[inline]
    pub fn insert_word(&mut self, i: usize, word: u64) {
        self.words[i] |= word;
    }

    /// Adds every column of `other`.
    #[inline]
    pub fn insert_all(&mut self, other: &ColumnSet) {
        self.words.iter_mut().zip(&other.words).for_each(|(mine, theirs)| *mine |= theirs);
    }

    /// The columns in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = usize> + use<> {
        self.words.into_iter().enumerate().flat_map(|(i, word)| {
            std::iter::successors(Some(word), |left| Some(left & left.wrapping_sub(1)))
                .take_while(|left| *left != 0)
                .map(move |left| i * 64 + left.trailing_zeros() as usize)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_hold_what_was_put_in() {
        let columns = [0, 3, 63, 64, 700, 1599];
        let set = ColumnSet::of(columns);
        assert_eq!(set.iter().collect::<Vec<_>>(), columns);
        assert!(set.contains(700) && !set.contains(701));
        let mut both = ColumnSet::of([1]);
        both.insert_all(&set);
        assert_eq!(both.iter().count(), 7);
    }
}
