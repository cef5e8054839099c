//! One column of a history page: the versions that have a value for it, and these values in version order.
//!
//! ```text
//! present   which versions have a value here; its rank among them is the value's number
//! nulls     which of these are NULL; the others follow each other in
//! words     plain       as numbers in few bits
//!           dictionary  distinct values in order, and a code each
//!           delta       a record's newest value, and the distance of its other values to that
//! bytes     distinct values end to end, and a code each (codes that only count up take no bits)
//! ```
//!
//! The distance to the record's newest value is the delta-compression across versions of section 2.1 in a form in
//! which every value is within reach at once; a difference to the neighbour would make readers add up a record's
//! newer values. Equal neighbours are not here at all (see [`super::chain`]).
use std::collections::{HashMap, HashSet};
use std::ops::Range;

use foldhash::fast::FixedState;

use super::packed::Packed;
use super::positions::{NewPositions, Positions};
use crate::value::cell::Cell;

/// Words that are looked at to see whether a dictionary can pay, and places for them.
const SAMPLE: usize = 500;
const SAMPLE_PLACES: usize = 1024;
/// Records, and values of each, that are looked at to see whether distances can pay.
const SAMPLE_RECORDS: usize = 64;
const SAMPLE_VALUES: usize = 4;

/// The values of a column.
#[derive(Debug)]
pub(crate) struct Column {
    pub(crate) present: Positions,
    pub(crate) nulls: Positions,
    pub(crate) values: Values,
}

/// The values that are not NULL, in version order.
#[derive(Debug)]
pub(crate) enum Values {
    Plain(Packed),
    Dictionary {
        distinct: Packed,
        codes: Packed,
    },
    Delta {
        /// numbers of the values that are a record's newest
        heads: Positions,
        newest: Packed,
        others: Packed,
    },
    Bytes {
        distinct: Box<[u8]>,
        /// where each distinct value begins, and where the last one ends
        begins: Packed,
        codes: Packed,
    },
}

impl Column {
    /// Whether this version has a value.
    #[inline]
    pub(super) fn contains(&self, version: usize) -> bool {
        self.present.contains(version)
    }

    /// The value of this version, if it has one.
    #[inline]
    pub(super) fn get(&self, version: usize) -> Option<Cell<'_>> {
        let number = self.present.find(version)?;
        if self.nulls.len() == 0 {
            return Some(self.values.get(number));
        }
        match self.nulls.find(number) {
            Some(_) => Some(Cell::Null),
            None => Some(self.values.get(number - self.nulls.rank(number))),
        }
    }

    /// Passes the values of these versions that have one to `take`, in order: without the search for each that
    /// [`get`](Self::get) makes.
    pub(super) fn for_each_within<'a>(&'a self, versions: Range<usize>, mut take: impl FnMut(usize, Cell<'a>)) {
        let numbers = self.present.rank(versions.start)..self.present.rank(versions.end);
        let mut present = self.present.within(versions);
        let mut nulls = self.nulls.within(numbers.clone()).peekable();
        let words = numbers.start - self.nulls.rank(numbers.start)..numbers.end - self.nulls.rank(numbers.end);
        let mut number = numbers.start;
        self.values.for_each_within(words, |cell| {
            while nulls.next_if_eq(&number).is_some() {
                present.next().into_iter().for_each(|version| take(version, Cell::Null));
                number += 1;
            }
            present.next().into_iter().for_each(|version| take(version, cell));
            number += 1;
        });
        present.for_each(|version| take(version, Cell::Null));
    }

    /// Puts the words of these versions that have one into `words`, whose place for this column is `at` of every `width`, and sets
    /// the bit of the column in `explicit`, which has an entry for each version. No value is NULL or bytes.
    pub(super) fn put_words(&self, versions: Range<usize>, (at, width): (usize, usize), rows: &mut WordRows) {
        let numbers = self.present.rank(versions.start)..self.present.rank(versions.end);
        rows.column.clear();
        self.values.words_within(numbers, &mut rows.column);
        let mut values = rows.column.iter();
        self.present.each_within(versions.clone(), |version| {
            let place = version - versions.start;
            if let Some(word) = values.next() {
                rows.words[place * width + at] = *word;
                rows.explicit[place] |= 1 << at;
            }
        });
    }

    /// How many versions have a value that is not NULL.
    pub(super) fn value_count(&self) -> usize {
        self.present.len() - self.nulls.len()
    }

    /// Memory beyond the struct itself.
    pub(super) fn heap_bytes(&self) -> usize {
        self.present.heap_bytes() + self.nulls.heap_bytes() + self.values.heap_bytes()
    }
}

impl Values {
    #[inline]
    pub(crate) fn get(&self, number: usize) -> Cell<'_> {
        match self {
            Values::Plain(words) => Cell::Word(words.get(number)),
            Values::Dictionary { distinct, codes } => Cell::Word(distinct.get(codes.get(number) as usize)),
            Values::Delta { heads, newest, others } => {
                if let Some(record) = heads.find(number) {
                    return Cell::Word(newest.get(record));
                }
                let heads_before = heads.rank(number);
                Cell::Word(newest.get(heads_before - 1).wrapping_add(others.get(number - heads_before)))
            }
            Values::Bytes { distinct, begins, codes } => {
                let code = codes.get(number) as usize;
                Cell::Bytes(&distinct[begins.get(code) as usize..begins.get(code + 1) as usize])
            }
        }
    }

    /// Passes the values of these numbers to `take`, in order.
    fn for_each_within<'a>(&'a self, numbers: Range<usize>, mut take: impl FnMut(Cell<'a>)) {
        let Values::Delta { heads, newest, others } = self else {
            return numbers.for_each(|number| take(self.get(number)));
        };
        // The record of the first number may have its newest value before it.
        let mut heads_before = heads.rank(numbers.start);
        let mut head = heads_before.checked_sub(1).map_or(0, |record| newest.get(record));
        let mut heads = heads.within(numbers.clone()).peekable();
        for number in numbers {
            if heads.next_if_eq(&number).is_some() {
                head = newest.get(heads_before);
                heads_before += 1;
                take(Cell::Word(head));
            } else {
                take(Cell::Word(head.wrapping_add(others.get(number - heads_before))));
            }
        }
    }

    /// Appends the values of these numbers, which are words.
    fn words_within(&self, numbers: Range<usize>, found: &mut Vec<u64>) {
        match self {
            Values::Plain(words) => words.each_within(numbers, |word| found.push(word)),
            Values::Dictionary { distinct, codes } => {
                codes.each_within(numbers, |code| found.push(distinct.get(code as usize)));
            }
            Values::Delta { .. } | Values::Bytes { .. } => self.for_each_within(numbers, |cell| match cell {
                Cell::Word(word) => found.push(word),
                Cell::Null | Cell::Bytes(_) => unreachable!("the values are words"),
            }),
        }
    }

    fn heap_bytes(&self) -> usize {
        match self {
            Values::Plain(words) => words.heap_bytes(),
            Values::Dictionary { distinct, codes } => distinct.heap_bytes() + codes.heap_bytes(),
            Values::Delta { heads, newest, others } => heads.heap_bytes() + newest.heap_bytes() + others.heap_bytes(),
            Values::Bytes { distinct, begins, codes } => distinct.len() + begins.heap_bytes() + codes.heap_bytes(),
        }
    }

    /// The smallest form of these words. `of_record` tells which of them are those of a record, of so many; the first one is its newest.
    fn of_words(words: &[u64], records: usize, of_record: impl Fn(usize) -> Option<Range<usize>>) -> Values {
        let dictionary = Values::dictionary(words);
        let is_close = Self::are_close(words, records, &of_record);
        if dictionary.is_none() && !is_close {
            return Values::Plain(Packed::of(words));
        }
        let plain_bytes = Packed::bytes_of(words);
        let dictionary = dictionary.filter(|form| form.heap_bytes() < plain_bytes);
        let best_bytes = dictionary.as_ref().map_or(plain_bytes, Values::heap_bytes);
        let heads = || (0..records).filter_map(|record| Some(of_record(record)?.start as u64)).collect::<Vec<_>>();
        let delta = if is_close { Values::delta(words, &heads(), best_bytes) } else { None };
        delta.or(dictionary).unwrap_or_else(|| Values::Plain(Packed::of(words)))
    }

    /// Whether a look at some of the words shows that nearly all differ.
    fn are_distinct(words: &[u64]) -> bool {
        if words.len() < 4 * SAMPLE {
            return false;
        }
        // Each goes to the first free place from that of its hash on.
        let (mut places, mut distinct) = ([None; SAMPLE_PLACES], 0);
        for word in words.iter().step_by(words.len() / SAMPLE).take(SAMPLE) {
            let mut at = (word.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize % SAMPLE_PLACES;
            while places[at].is_some_and(|other| other != *word) {
                at = (at + 1) % SAMPLE_PLACES;
            }
            distinct += usize::from(places[at].replace(*word).is_none());
        }
        distinct > SAMPLE / 100 * 97
    }

    /// Whether a look at some records all over the page shows that they have several values each, which are closer to the newest one
    /// than to those of other records.
    fn are_close(words: &[u64], records: usize, of_record: impl Fn(usize) -> Option<Range<usize>>) -> bool {
        let span = |(least, greatest): (i64, i64), value: u64| (least.min(value as i64), greatest.max(value as i64));
        let (mut of_words, mut of_distances) = ((i64::MAX, i64::MIN), (0, 0));
        let (mut heads, mut values) = (0, 0);
        for own in (0..records).step_by(records.div_ceil(SAMPLE_RECORDS)).filter_map(of_record) {
            heads += 1;
            values += own.len();
            let newest = words[own.start];
            for word in &words[own.start..own.end.min(own.start + SAMPLE_VALUES)] {
                of_words = span(of_words, *word);
                of_distances = span(of_distances, word.wrapping_sub(newest));
            }
        }
        let width = |(least, greatest): (i64, i64)| greatest.wrapping_sub(least) as u64;
        heads * 2 <= values && width(of_distances) < width(of_words)
    }

    fn dictionary(words: &[u64]) -> Option<Values> {
        if Self::are_distinct(words) {
            return None;
        }
        let (mut known, most) = (HashSet::with_hasher(FixedState::default()), words.len() / 4);
        for word in words {
            if known.insert(*word) && known.len() > most {
                return None;
            }
        }
        let mut distinct: Vec<u64> = known.into_iter().collect();
        distinct.sort_unstable();
        let code = |word: &u64| distinct.partition_point(|other| other < word) as u64;
        let codes: Vec<u64> = words.iter().map(code).collect();
        Some(Values::Dictionary { distinct: Packed::of(&distinct), codes: Packed::of(&codes) })
    }

    /// The distances, if they take less than so many bytes.
    fn delta(words: &[u64], heads: &[u64], bytes_max: usize) -> Option<Values> {
        if heads.len() > words.len() / 2 {
            return None;
        }
        let (mut newest, mut others) = (Vec::with_capacity(heads.len()), Vec::with_capacity(words.len()));
        for (number, word) in words.iter().enumerate() {
            if heads.get(newest.len()) == Some(&(number as u64)) {
                newest.push(*word);
            } else {
                others.push(word.wrapping_sub(newest[newest.len() - 1]));
            }
        }
        let heads = Positions::of(heads, words.len());
        if heads.heap_bytes() + Packed::bytes_of(&newest) + Packed::bytes_of(&others) >= bytes_max {
            return None;
        }
        Some(Values::Delta { heads, newest: Packed::of(&newest), others: Packed::of(&others) })
    }

    fn of_bytes(values: &[&[u8]]) -> Values {
        let (mut distinct, mut begins) = (Vec::new(), vec![0]);
        let mut known = HashMap::new();
        let codes: Vec<u64> = values
            .iter()
            .map(|value| {
                *known.entry(*value).or_insert_with(|| {
                    distinct.extend_from_slice(value);
                    begins.push(distinct.len() as u64);
                    begins.len() as u64 - 2
                })
            })
            .collect();
        Values::Bytes { distinct: distinct.into(), begins: Packed::of(&begins), codes: Packed::of(&codes) }
    }
}

/// Versions as rows of words.
#[derive(Default)]
pub(super) struct WordRows {
    /// of each version, a place for each column
    pub(super) words: Vec<u64>,
    /// of each version, the columns that have a word, a bit each
    pub(super) explicit: Vec<u64>,
    /// room for the values of a column
    column: Vec<u64>,
}

impl WordRows {
    /// Begins anew with so many versions and columns.
    pub(super) fn clear(&mut self, versions: usize, width: usize) {
        self.words.clear();
        self.words.resize(versions * width, 0);
        self.explicit.clear();
        self.explicit.resize(versions, 0);
    }
}

/// Collects the values of a column, in version order.
#[derive(Default)]
pub(super) struct ColumnWriter<'a> {
    present: NewPositions,
    nulls: Vec<u64>,
    words: Vec<u64>,
    bytes: Vec<&'a [u8]>,
}

impl<'a> ColumnWriter<'a> {
    /// Makes room for so many words more.
    pub(super) fn reserve_words(&mut self, words: usize) {
        self.words.reserve(words);
    }

    /// Adds the value of a version, which is later in the page than those before.
    pub(super) fn push(&mut self, version: usize, cell: Cell<'a>) {
        match cell {
            Cell::Null => self.nulls.push((self.nulls.len() + self.words.len() + self.bytes.len()) as u64),
            Cell::Word(word) => self.words.push(word),
            Cell::Bytes(bytes) => self.bytes.push(bytes),
        }
        self.present.push(version);
    }

    /// Adds words of versions of a block of 64, which are later in the page than those before; a bit for each version that has one.
    pub(super) fn push_words(&mut self, block: usize, versions: u64, words: &[u64]) {
        self.words.extend_from_slice(words);
        self.present.push_word(block, versions);
    }

    /// The column of a page whose records begin with the versions `first`, the number of all versions behind them, `None` if no
    /// version has a value; `is_wide` says that its values are bytes.
    pub(super) fn finish(self, first: &[u64], is_wide: bool) -> Option<Column> {
        assert!(
            if is_wide { self.words.is_empty() } else { self.bytes.is_empty() },
            "a column's cells are of one kind"
        );
        if self.present.is_empty() {
            return None;
        }
        let versions = first.last().map_or(0, |versions| *versions as usize);
        let present = self.present.finish(versions);
        let nulls = Positions::of(&self.nulls, present.len());
        let head = |record: usize| {
            let (from, to) = (present.rank(first[record] as usize), present.rank(first[record + 1] as usize));
            let (from, to) = (from - nulls.rank(from), to - nulls.rank(to));
            (from < to).then_some(from..to)
        };
        let values = match is_wide {
            true => Values::of_bytes(&self.bytes),
            false => Values::of_words(&self.words, first.len() - 1, head),
        };
        Some(Column { present, nulls, values })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four values for each record: the column of them, every one of which is found again.
    fn column_of(cells: &[Cell<'_>], is_wide: bool) -> Column {
        let mut writer = ColumnWriter::default();
        cells.iter().enumerate().for_each(|(i, cell)| writer.push(2 * i, *cell));
        let first: Vec<u64> = (0..2 * cells.len()).step_by(8).chain([2 * cells.len()]).map(|at| at as u64).collect();
        let column = writer.finish(&first, is_wide).unwrap();
        for (i, cell) in cells.iter().enumerate() {
            assert_eq!(column.get(2 * i), Some(*cell));
            assert_eq!((column.get(2 * i + 1), column.contains(2 * i + 1)), (None, false));
        }
        column
    }

    fn scattered(i: u64) -> u64 {
        i.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    #[test]
    fn words_take_the_smallest_form() {
        let words = |word: fn(u64) -> u64| (0..2000).map(|i| Cell::Word(word(i))).collect::<Vec<_>>();
        assert!(matches!(column_of(&words(|i| scattered(i) >> 54), false).values, Values::Plain(_)));
        let few = column_of(&words(|i| scattered(i % 7 * 13 % 7)), false);
        assert!(matches!(few.values, Values::Dictionary { .. }));
        assert!(few.values.heap_bytes() < 2000 * 5 / 8, "three bits a value and a block's sixteen bytes");
        let close = column_of(&words(|i| scattered(i / 4).wrapping_sub(i % 4)), false);
        assert!(matches!(close.values, Values::Delta { .. }));
        assert!(close.values.heap_bytes() < 2000 * 3, "eight bytes for each record, few bits for its other values");
    }

    #[test]
    fn nulls_stand_between_values_of_every_form() {
        for modulus in [2, 3, 50, 5000] {
            let cell = |i: u64, word: u64| if i % modulus == 1 { Cell::Null } else { Cell::Word(word) };
            column_of(&(0..999).map(|i| cell(i, scattered(i))).collect::<Vec<_>>(), false);
            column_of(&(0..999).map(|i| cell(i, scattered(i / 4) + i % 3)).collect::<Vec<_>>(), false);
            column_of(&(0..999).map(|i| cell(i, scattered(i % 5))).collect::<Vec<_>>(), false);
        }
        column_of(&[Cell::Null; 99], false);
        column_of(&[Cell::Null; 99], true);
    }

    #[test]
    fn equal_bytes_are_kept_once() {
        let texts: Vec<String> = (0..1000).map(|i| format!("text {}", i % 10)).collect();
        let cells: Vec<Cell<'_>> = texts.iter().map(|text| Cell::Bytes(text.as_bytes())).collect();
        let column = column_of(&cells, true);
        assert!(matches!(&column.values, Values::Bytes { distinct, .. } if distinct.len() == 60));
        assert!(column.values.heap_bytes() < 800);
        column_of(&[Cell::Bytes(b""), Cell::Null, Cell::Bytes(&[0; 300]), Cell::Bytes(b"")], true);
    }
}
