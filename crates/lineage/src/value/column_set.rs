//! A set of columns, one bit each: the form of the Schema Encoding column (L-Store, section 2.2).
use types::Schema;

/// How many words the Schema Encoding of this schema's records takes.
pub fn words_of(schema: &Schema) -> usize {
    schema.columns().len().div_ceil(64).max(1)
}

/// How many columns one word has bits for: a table with no more is read and written as words.
pub const WORD_COLUMNS: usize = u64::BITS as usize;

/// The columns whose bits are set, ascending.
#[inline]
pub fn columns_of(mut bits: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let column = (bits != 0).then(|| bits.trailing_zeros() as usize);
        bits &= bits.wrapping_sub(1);
        column
    })
}

/// Passes on the columns whose bits are set, ascending, in fewer instructions than [`columns_of`].
#[inline(always)]
pub(crate) fn each_column(mut bits: u64, mut take: impl FnMut(usize)) {
    while bits != 0 {
        take(bits.trailing_zeros() as usize);
        bits &= bits - 1;
    }
}

/// A set of column positions. Tables of at most 64 columns, nearly all, need no allocation.
#[derive(Clone, Debug, Default)]
pub struct ColumnSet {
    first: u64,
    rest: Vec<u64>,
}

impl ColumnSet {
    /// No column.
    pub const EMPTY: ColumnSet = ColumnSet { first: 0, rest: Vec::new() };

    /// Adds a column.
    #[inline]
    pub fn insert(&mut self, column: usize) {
        self.insert_word(column / 64, 1 << (column % 64));
    }

    /// Whether the column is in the set.
    #[inline]
    pub fn contains(&self, column: usize) -> bool {
        self.word(column / 64) & 1 << (column % 64) != 0
    }

    /// Word `i` of the set: columns `64 * i ..`.
    #[inline]
    pub fn word(&self, i: usize) -> u64 {
        if i == 0 { self.first } else { self.rest.get(i - 1).copied().unwrap_or(0) }
    }

    /// Adds the columns of word `i`.
    #[inline]
    pub fn insert_word(&mut self, i: usize, word: u64) {
        if i == 0 {
            self.first |= word;
        } else if word != 0 {
            if self.rest.len() < i {
                self.rest.resize(i, 0);
            }
            self.rest[i - 1] |= word;
        }
    }

    /// Adds every column of `other`.
    #[inline]
    pub fn insert_all(&mut self, other: &ColumnSet) {
        self.first |= other.first;
        for (i, word) in other.rest.iter().enumerate() {
            self.insert_word(i + 1, *word);
        }
    }

    /// Whether no column is in the set.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.first == 0 && self.rest.iter().all(|word| *word == 0)
    }

    /// Passes the columns to `action` in ascending order.
    #[inline]
    pub fn for_each(&self, mut action: impl FnMut(usize)) {
        let mut each = |first: usize, mut word: u64| {
            while word != 0 {
                action(first + word.trailing_zeros() as usize);
                word &= word - 1;
            }
        };
        each(0, self.first);
        self.rest.iter().enumerate().for_each(|(i, word)| each((i + 1) * 64, *word));
    }

    /// The columns in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        std::iter::once(self.first).chain(self.rest.iter().copied()).enumerate().flat_map(|(i, word)| {
            std::iter::successors(Some(word), |left| Some(left & left.wrapping_sub(1)))
                .take_while(|left| *left != 0)
                .map(move |left| i * 64 + left.trailing_zeros() as usize)
        })
    }
}

impl PartialEq for ColumnSet {
    fn eq(&self, other: &Self) -> bool {
        let words = self.rest.len().max(other.rest.len());
        (0..=words).all(|i| self.word(i) == other.word(i))
    }
}

impl Eq for ColumnSet {}

#[cfg(test)]
mod tests {
    use super::*;

    fn set_of(columns: impl IntoIterator<Item = usize>) -> ColumnSet {
        let mut set = ColumnSet::EMPTY;
        columns.into_iter().for_each(|column| set.insert(column));
        set
    }

    #[test]
    fn sets_hold_what_was_put_in() {
        let columns = [0, 3, 63, 64, 700, 1599];
        let set = set_of(columns);
        assert_eq!(set.iter().collect::<Vec<_>>(), columns);
        assert!(set.contains(700) && !set.contains(701));
        let mut passed = Vec::new();
        set.for_each(|column| passed.push(column));
        assert_eq!(passed, columns);
        let mut both = set_of([1]);
        both.insert_all(&set);
        assert_eq!(both.iter().count(), 7);
        assert!(!both.is_empty() && ColumnSet::EMPTY.is_empty());
        assert_eq!(set_of([3]), ColumnSet { first: 8, rest: vec![0, 0] });
    }
}
