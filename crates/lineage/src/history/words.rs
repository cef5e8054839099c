//! Records of words on their way into a page: what nearly all versions are, and in a tenth of the instructions.
//!
//! A record whose versions have no bytes and no NULLs is not made a chain of drafts (see [`super::chain`]). Its values are looked
//! at where they are, twice:
//!
//! ```text
//! oldest to newest    is the value what the column had before?     -> which columns stay in each version, a bit each
//! newest to oldest    the columns that stay                         -> the page
//! ```
//!
//! The delta rule is the one of `chain`. Versions that are seen together are left to it as well.
use std::ops::Range;

use super::chain::{Draft, are_some_seen_together};
use super::column::{Column, ColumnWriter, Values, WordRows};
use super::page::{HistoryPage, PageWriter, READ_AHEAD};
use crate::value::cell::Cell;
use crate::value::column_set::{WORD_COLUMNS, columns_of, each_column};
use crate::value::kind::Kind;

/// A version whose values are words.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WordVersion {
    /// its number in the tail
    pub(crate) sequence: u64,
    /// what it is
    pub(crate) kind: Kind,
    /// when it was committed
    pub(crate) start: u64,
    /// the columns that have a value, a bit each
    pub(crate) explicit: u64,
}

/// The words of a record's versions, which are numbered from the newest on.
pub(crate) trait ChainWords {
    /// The word of a column of a version, which has it.
    fn word(&self, at: usize, column: usize) -> u64;

    /// Passes on the words of some columns of a version, which has them, a bit each.
    #[inline]
    fn each_word(&self, at: usize, columns: u64, mut take: impl FnMut(usize, u64)) {
        columns_of(columns).for_each(|column| take(column, self.word(at, column)));
    }

    /// Which of some columns, which both versions have, have the same word in both, a bit each.
    #[inline]
    fn equal(&self, at: usize, other: usize, columns: u64) -> u64 {
        let is_equal = |column: &usize| self.word(at, *column) == self.word(other, *column);
        columns_of(columns).filter(is_equal).fold(0, |equal, column| equal | 1 << column)
    }
}

/// Leaves out the words that a record's versions, newest first, repeat: what is left of the columns of each stays there.
#[inline]
fn leave_out_repeated(versions: &mut [WordVersion], words: &impl ChainWords) {
    // The value that a column had last, of those that the version looked at last has not.
    let mut latest = [0; WORD_COLUMNS];
    let (mut known, mut before) = (0, 0);
    for (at, version) in versions.iter_mut().enumerate().rev() {
        let explicit = version.explicit;
        // Nearly all columns that a version has are in the one before.
        let shared = explicit & before;
        let mut repeated = if shared == 0 { 0 } else { words.equal(at, at + 1, shared) };
        if explicit != before {
            each_column(explicit & known & !before, |column| {
                repeated |= u64::from(latest[column] == words.word(at, column)) << column;
            });
            each_column(before & !explicit, |column| latest[column] = words.word(at + 1, column));
        }
        if version.kind != Kind::Snapshot {
            version.explicit &= !repeated;
        }
        known |= explicit;
        before = explicit;
    }
}

/// The words of a column in versions of one [`WordBlock`].
#[derive(Clone)]
struct BlockColumn {
    /// the versions that have one, a bit each
    present: u64,
    len: usize,
    words: [u64; WordBlock::VERSIONS],
}

/// The words of versions whose numbers follow each other, by column: they go to the columns of the page many at a time, so that
/// each takes few instructions.
#[derive(Default)]
pub(super) struct WordBlock {
    columns: Vec<BlockColumn>,
}

impl WordBlock {
    /// Those of one block have the same number, divided by this.
    pub(super) const VERSIONS: usize = u64::BITS as usize;

    /// Begins with so many columns, unless it has begun.
    #[inline]
    fn begin(&mut self, columns: usize) {
        if self.columns.is_empty() {
            self.columns.resize(columns, BlockColumn { present: 0, len: 0, words: [0; Self::VERSIONS] });
        }
    }

    /// Adds the word of a column of a version, the bit of which is given. No other version has that bit.
    #[inline]
    fn push(&mut self, column: usize, bit: u64, word: u64) {
        let column = &mut self.columns[column];
        column.words[column.len % Self::VERSIONS] = word;
        column.len += 1;
        column.present |= bit;
    }

    /// Gives the words to the columns; the numbers of their versions are in this block.
    pub(super) fn flush(&mut self, block: usize, columns: &mut [ColumnWriter<'_>]) {
        for (from, to) in self.columns.iter_mut().zip(columns).filter(|(from, _)| from.present != 0) {
            to.push_words(block, from.present, &from.words[..from.len]);
            (from.present, from.len) = (0, 0);
        }
    }
}

impl PageWriter<'_, '_> {
    /// Adds a record's versions, newest first, which have these words. Slots ascend.
    #[inline]
    pub(crate) fn push_words(&mut self, slot: usize, versions: &mut [WordVersion], words: &impl ChainWords) {
        if versions.is_empty() {
            return;
        }
        let deciding = versions.iter().filter(|version| version.kind != Kind::Snapshot);
        if are_some_seen_together(deciding.map(|version| version.start), self.kept) {
            let draft = |(at, version): (usize, &WordVersion)| {
                let values =
                    columns_of(version.explicit).map(|column| (column, Cell::Word(words.word(at, column)))).collect();
                Draft { sequence: version.sequence, kind: version.kind, start: version.start, values }
            };
            return self.push_record(slot, &mut versions.iter().enumerate().map(draft).collect());
        }
        leave_out_repeated(versions, words);
        self.words.begin(self.columns.len());
        self.begin_record(slot);
        for (at, version) in versions.iter().enumerate() {
            let number = self.push_version(version.sequence, version.kind, version.start);
            let place = number % WordBlock::VERSIONS;
            words.each_word(at, version.explicit, |column, word| self.words.push(column, 1 << place, word));
            if place == WordBlock::VERSIONS - 1 {
                self.words.flush(number / WordBlock::VERSIONS, &mut self.columns);
            }
        }
    }
}

/// Reads a page of words from its first record to its last, a window of versions at a time.
pub(crate) struct WordReader<'a> {
    page: &'a HistoryPage,
    slots: std::vec::IntoIter<usize>,
    /// the record of the first slot left
    record: usize,
    /// the numbers of the versions that were read
    window: Range<usize>,
    versions: Vec<WordVersion>,
    rows: WordRows,
}

impl<'a> WordReader<'a> {
    /// A reader of a page that has words only, none of them NULL; `None` if it has more.
    pub(crate) fn new(page: &'a HistoryPage) -> Option<Self> {
        let is_of_words = |column: &Column| column.nulls.len() == 0 && !matches!(column.values, Values::Bytes { .. });
        if page.columns.len() > WORD_COLUMNS || !page.columns.iter().flatten().all(|column| is_of_words(column)) {
            return None;
        }
        let slots = page.slots().collect::<Vec<_>>().into_iter();
        Some(WordReader { page, slots, record: 0, window: 0..0, versions: Vec::new(), rows: WordRows::default() })
    }

    /// Adds the versions of a record to a chain, newest first, each with its place here. Slots are asked for in ascending order,
    /// and none that has versions is left out.
    pub(crate) fn take(&mut self, slot: usize, mut add: impl FnMut(WordVersion, usize)) {
        if self.slots.as_slice().first() != Some(&slot) {
            return;
        }
        self.slots.next();
        let numbers = self.page.numbers(self.record);
        self.record += 1;
        if numbers.end > self.window.end {
            self.read(numbers.start..numbers.end.max(numbers.start + READ_AHEAD).min(self.page.len()));
        }
        for place in numbers.start - self.window.start..numbers.end - self.window.start {
            add(self.versions[place], place);
        }
    }

    /// The words at a place that [`WordReader::take`] has told last, with a place for each column.
    #[inline]
    pub(crate) fn row(&self, place: usize) -> &[u64] {
        let width = self.page.columns.len();
        &self.rows.words[place * width..][..width]
    }

    fn read(&mut self, numbers: Range<usize>) {
        let (page, width) = (self.page, self.page.columns.len());
        self.rows.clear(numbers.len(), width);
        for (at, column) in page.columns.iter().enumerate() {
            column.iter().for_each(|column| column.put_words(numbers.clone(), (at, width), &mut self.rows));
        }
        self.versions.clear();
        page.each_without_values(numbers.clone(), &mut self.versions);
        let explicit = self.versions.iter_mut().zip(&self.rows.explicit);
        explicit.for_each(|(version, explicit)| version.explicit = *explicit);
        self.window = numbers;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use types::DataType;

    use super::*;
    use crate::history::NewVersion;
    use crate::value::kept::Kept;

    const TYPES: [DataType; 5] = [DataType::BigInt; 5];

    /// By slot, and from newest to oldest: kind, how much earlier it started, columns, and a number that makes their values.
    type Record = Vec<(Kind, u64, u64, u64)>;

    fn records() -> impl Strategy<Value = Vec<Record>> {
        let kind = prop_oneof![6 => Just(Kind::Update), 1 => Just(Kind::Delete), 2 => Just(Kind::Snapshot)];
        let version = (kind, prop_oneof![1 => Just(0), 5 => 1_u64..20], 0_u64..32, 0_u64..4);
        prop::collection::vec(prop::collection::vec(version, 0..8), 1..60)
    }

    fn word(seed: u64, column: usize) -> u64 {
        seed * (column as u64 + 1)
    }

    /// Words by version and column.
    struct Words<F>(F);

    impl<F: Fn(usize, usize) -> u64> ChainWords for Words<F> {
        fn word(&self, at: usize, column: usize) -> u64 {
            self.0(at, column)
        }
    }

    /// The versions of the records with their seeds, numbered from `first` on.
    fn versions(records: &[Record], first: u64) -> Vec<Vec<(WordVersion, u64)>> {
        let mut sequence = first;
        let of_record = |record: &Record| {
            let mut start = first + 200;
            let mut made: Vec<_> = record
                .iter()
                .map(|(kind, earlier, explicit, seed)| {
                    start -= earlier;
                    (WordVersion { sequence: 0, kind: *kind, start, explicit: *explicit }, *seed)
                })
                .collect();
            for (version, _) in made.iter_mut().rev() {
                sequence += 1;
                version.sequence = sequence;
            }
            made
        };
        records.iter().map(of_record).collect()
    }

    fn of_words(records: &[Vec<(WordVersion, u64)>], kept: &Kept) -> HistoryPage {
        let mut writer = PageWriter::new(&TYPES, kept);
        for (slot, record) in records.iter().enumerate() {
            let mut versions: Vec<WordVersion> = record.iter().map(|(version, _)| *version).collect();
            writer.push_words(slot, &mut versions, &Words(|at: usize, column| word(record[at].1, column)));
        }
        writer.finish()
    }

    fn of_drafts(records: &[Vec<(WordVersion, u64)>], kept: &Kept) -> HistoryPage {
        let new = |slot: usize, (version, seed): &(WordVersion, u64)| NewVersion {
            slot,
            sequence: version.sequence,
            kind: version.kind,
            start: version.start,
            values: columns_of(version.explicit).map(|column| (column, Cell::Word(word(*seed, column)))).collect(),
        };
        let all = records.iter().enumerate().flat_map(|(slot, record)| record.iter().map(move |one| new(slot, one)));
        HistoryPage::build(&TYPES, kept, all)
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn words_and_drafts_make_one_page(records in records(), horizon in prop_oneof![Just(0), 100_u64..400]) {
            let (versions, kept) = (versions(&records, 100), Kept::from(types::Timestamp(horizon)));
            let page = of_words(&versions, &kept);
            prop_assert_eq!(format!("{page:?}"), format!("{:?}", of_drafts(&versions, &kept)));
            // Read again, it makes the same page.
            let (mut reader, mut writer) = (WordReader::new(&page).unwrap(), PageWriter::new(&TYPES, &kept));
            for slot in 0..records.len() {
                let (mut chain, mut places) = (Vec::new(), Vec::new());
                reader.take(slot, |version, place| {
                    chain.push(version);
                    places.push(place);
                });
                writer.push_words(slot, &mut chain, &Words(|at: usize, column: usize| reader.row(places[at])[column]));
            }
            prop_assert_eq!(format!("{:?}", writer.finish()), format!("{page:?}"));
        }
    }

    #[test]
    fn pages_with_more_than_words_are_read_otherwise() {
        let one = |cell: Cell<'static>, data_type| {
            let version =
                NewVersion { slot: 1, sequence: 1, kind: Kind::Update, start: 1, values: [(0, cell)][..].into() };
            WordReader::new(&HistoryPage::build(&[data_type], &Kept::default(), [version])).is_some()
        };
        assert!(one(Cell::Word(1), DataType::BigInt));
        assert!(!one(Cell::Null, DataType::BigInt) && !one(Cell::Bytes(b"x"), DataType::TEXT));
    }
}
