//! Groups by some keys of a few words each: integers, dates, truth values, decimals and texts.
//!
//! ```text
//! row ('A', 1995)  ─▶ words  (length 1, "A")  1995   nulls 00  ─▶ hash ─▶ slots ─▶ group ─▶ its words, compared
//! ```
//!
//! A text of up to twelve bytes is in the sixteen that Arrow has of each text beside the buffers, so that it is compared as a number.
//! A longer one is kept once, and its number among those stands for it.
use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::builder::StringViewBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Decimal128Type, Int16Type, Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, BooleanArray, PrimitiveArray};
use arrow_schema::DataType;

/// The most keys.
pub(super) const KEYS_MAX: usize = 4;
/// So many rows of short texts are kept with their groups, to be found without a search.
const RECENT: usize = 64;
/// The bytes of a text that are in its word.
const INLINE: usize = 12;

/// Numbers groups by several keys.
pub(super) struct WordKeys {
    types: Vec<DataType>,
    /// by group: a word for each key, and one that says which are NULL
    words: Vec<u128>,
    hashes: Vec<u64>,
    /// a group's number and one, at its hash or after it
    slots: Vec<u32>,
    /// long texts
    texts: Vec<Arc<str>>,
    numbers: HashMap<Arc<str>, u32, foldhash::fast::FixedState>,
    text_bytes: usize,
}

impl WordKeys {
    /// Whether groups of keys of these types are numbered in this way.
    pub(super) fn takes(types: &[DataType]) -> bool {
        let is_taken = |data_type: &DataType| {
            matches!(
                data_type,
                DataType::Int16
                    | DataType::Int32
                    | DataType::Int64
                    | DataType::Date32
                    | DataType::Boolean
                    | DataType::Decimal128(..)
                    | DataType::Utf8View
            )
        };
        (1..=KEYS_MAX).contains(&types.len()) && types.iter().all(is_taken)
    }

    pub(super) fn new(types: Vec<DataType>) -> WordKeys {
        let (words, hashes, slots, texts) = Default::default();
        WordKeys { types, words, hashes, slots, texts, numbers: HashMap::default(), text_bytes: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.hashes.len()
    }

    /// The bytes that it takes.
    pub(super) fn size(&self) -> usize {
        self.words.capacity() * 16 + self.hashes.capacity() * 8 + self.slots.capacity() * 4 + 2 * self.text_bytes
    }

    /// Appends the group of each row.
    pub(super) fn number(&mut self, columns: &[ArrayRef], groups: &mut Vec<usize>) {
        match &columns.iter().map(short_texts).collect::<Option<Vec<_>>>().as_deref() {
            Some([one]) => return self.number_texts(groups, one.iter().map(|one| [*one, 0])),
            Some([one, other]) => {
                return self.number_texts(groups, one.iter().zip(*other).map(|(one, other)| [*one, *other, 0]));
            }
            _ => {}
        }
        let rows = columns.first().map_or(0, |column| column.len());
        let stride = columns.len() + 1;
        let mut words = vec![0; rows * stride];
        for (at, column) in columns.iter().enumerate() {
            self.fill(column, at, &mut words);
        }
        let mut last: Option<(&[u128], usize)> = None;
        for row in words.chunks_exact(stride) {
            let group = match last {
                Some((words, group)) if words == row => group,
                _ => self.group(row),
            };
            last = Some((row, group));
            groups.push(group);
        }
    }

    /// Appends the group of each row of short texts, given as its words.
    fn number_texts<const N: usize>(&mut self, groups: &mut Vec<usize>, rows: impl Iterator<Item = [u128; N]>) {
        // No short text has this word.
        let mut recent = [([u128::MAX; N], usize::MAX); RECENT];
        groups.extend(rows.map(|row| {
            let (known, group) = &mut recent[place(&row)];
            if !are_equal(&row, known) {
                let hash = hash(&row);
                *group = self.known_of(hash, &row).unwrap_or_else(|at| self.new_group(at, hash, &row));
                *known = row;
            }
            *group
        }));
    }

    /// Puts the words of a column into those of all rows.
    fn fill(&mut self, column: &ArrayRef, at: usize, words: &mut [u128]) {
        let stride = self.types.len() + 1;
        macro_rules! numbers {
            ($type:ty) => {{
                let values = column.as_primitive::<$type>().values();
                for (row, value) in words.chunks_exact_mut(stride).zip(values) {
                    row[at] = i128::from(*value) as u128;
                }
            }};
        }
        match &self.types[at] {
            DataType::Int16 => numbers!(Int16Type),
            DataType::Int32 => numbers!(Int32Type),
            DataType::Int64 => numbers!(Int64Type),
            DataType::Date32 => numbers!(Date32Type),
            DataType::Decimal128(..) => numbers!(Decimal128Type),
            DataType::Boolean => {
                let values = column.as_boolean().values();
                words.chunks_exact_mut(stride).zip(values).for_each(|(row, value)| row[at] = u128::from(value));
            }
            _ => {
                let texts = column.as_string_view();
                for (number, (row, view)) in words.chunks_exact_mut(stride).zip(texts.views()).enumerate() {
                    row[at] = match *view as u32 as usize <= INLINE || texts.is_null(number) {
                        true => *view,
                        false => self.word_of(texts.value(number)),
                    };
                }
            }
        }
        if column.null_count() > 0 {
            for (number, row) in
                words.chunks_exact_mut(stride).enumerate().filter(|(number, _)| column.is_null(*number))
            {
                debug_assert!(column.is_null(number), "only NULLs are marked");
                row[at] = 0;
                row[stride - 1] |= 1 << at;
            }
        }
    }

    /// The word of a long text: its length, which no short one has, and its number.
    fn word_of(&mut self, text: &str) -> u128 {
        let number = match self.numbers.get(text) {
            Some(number) => *number,
            None => {
                let (kept, number): (Arc<str>, u32) = (text.into(), self.texts.len() as u32);
                self.text_bytes += text.len() + 32;
                self.texts.push(kept.clone());
                self.numbers.insert(kept, number);
                number
            }
        };
        u128::from(number) << 64 | u128::from(u32::MAX)
    }

    fn group(&mut self, row: &[u128]) -> usize {
        let hash = hash(row);
        self.known(hash, row).unwrap_or_else(|at| self.new_group(at, hash, row))
    }

    /// The group with these words; where there is none, the slot for it.
    #[inline]
    fn known(&self, hash: u64, row: &[u128]) -> Result<usize, usize> {
        let mask = self.slots.len().wrapping_sub(1);
        let mut at = hash as usize & mask;
        while let Some(known) = self.slots.get(at).filter(|known| **known != 0) {
            let group = *known as usize - 1;
            let words = &self.words[group * row.len()..(group + 1) * row.len()];
            if words == row {
                return Ok(group);
            }
            at = (at + 1) & mask;
        }
        Err(at)
    }

    /// As [`known`](Self::known), of a number of words that is known beforehand: they are compared without a loop.
    #[inline]
    fn known_of<const N: usize>(&self, hash: u64, row: &[u128; N]) -> Result<usize, usize> {
        let mask = self.slots.len().wrapping_sub(1);
        let mut at = hash as usize & mask;
        let (groups, _) = self.words.as_chunks::<N>();
        while let Some(known) = self.slots.get(at).filter(|known| **known != 0) {
            let group = *known as usize - 1;
            if groups.get(group).is_some_and(|words| are_equal(words, row)) {
                return Ok(group);
            }
            at = (at + 1) & mask;
        }
        Err(at)
    }

    #[cold]
    fn new_group(&mut self, mut at: usize, hash: u64, row: &[u128]) -> usize {
        if self.slots.len() < 2 * (self.len() + 1) {
            self.grow();
            at = self.known(hash, row).unwrap_or_else(|at| at);
        }
        self.words.extend_from_slice(row);
        self.hashes.push(hash);
        self.slots[at] = self.len() as u32;
        self.len() - 1
    }

    fn grow(&mut self) {
        let count = (4 * (self.len() + 1)).next_power_of_two().max(64);
        self.slots = vec![0; count];
        for (group, hash) in self.hashes.iter().enumerate() {
            let mut at = *hash as usize & (count - 1);
            while self.slots[at] != 0 {
                at = (at + 1) & (count - 1);
            }
            self.slots[at] = group as u32 + 1;
        }
    }

    /// The keys by group; it has no groups any more.
    pub(super) fn take(&mut self) -> Vec<ArrayRef> {
        let taken = std::mem::replace(self, WordKeys::new(self.types.clone()));
        (0..taken.types.len()).map(|at| taken.array(at)).collect()
    }

    fn array(&self, at: usize) -> ArrayRef {
        let rows = self.words.chunks_exact(self.types.len() + 1);
        let words = rows.map(|row| (row[self.types.len()] & 1 << at == 0).then_some(row[at]));
        macro_rules! numbers {
            ($type:ty) => {
                PrimitiveArray::<$type>::from_iter(words.map(|word| Some(word? as _)))
            };
        }
        match &self.types[at] {
            DataType::Int16 => Arc::new(numbers!(Int16Type)),
            DataType::Int32 => Arc::new(numbers!(Int32Type)),
            DataType::Int64 => Arc::new(numbers!(Int64Type)),
            DataType::Date32 => Arc::new(numbers!(Date32Type)),
            decimal @ DataType::Decimal128(..) => Arc::new(numbers!(Decimal128Type).with_data_type(decimal.clone())),
            DataType::Boolean => Arc::new(words.map(|word| Some(word? != 0)).collect::<BooleanArray>()),
            _ => {
                let mut texts = StringViewBuilder::with_capacity(self.len());
                for word in words {
                    match word {
                        None => texts.append_null(),
                        Some(word) if word as u32 == u32::MAX => texts.append_value(&self.texts[(word >> 64) as usize]),
                        Some(word) => {
                            let bytes = word.to_le_bytes();
                            let text = std::str::from_utf8(&bytes[4..4 + word as u32 as usize]);
                            texts.append_value(text.unwrap_or_default());
                        }
                    }
                }
                Arc::new(texts.finish())
            }
        }
    }
}

/// The place of a row of short texts among those that were seen last: by their lengths and first four bytes, in few instructions.
#[inline(always)]
fn place<const N: usize>(row: &[u128; N]) -> usize {
    let (mut at, mut mixed) = (0, 0u64);
    while at < N {
        mixed = mixed.rotate_left(9) ^ row[at] as u64;
        at += 1;
    }
    (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - RECENT.trailing_zeros())) as usize
}

/// Whether all words are equal, without a call or a branch for each.
#[inline(always)]
fn are_equal<const N: usize>(one: &[u128; N], other: &[u128; N]) -> bool {
    let (mut at, mut differing) = (0, 0);
    // A zip would be a call here: its parts are not inlined from other units of code.
    while at < N {
        differing |= one[at] ^ other[at];
        at += 1;
    }
    differing == 0
}

/// The words of a column of texts, if all are short and none is NULL.
fn short_texts(column: &ArrayRef) -> Option<&[u128]> {
    let views = &column.as_string_view_opt()?.views()[..];
    let is_short = column.null_count() == 0 && views.iter().all(|view| *view as u32 as usize <= INLINE);
    is_short.then_some(views)
}

#[inline(always)]
fn hash(row: &[u128]) -> u64 {
    let mut hash = 0u64;
    for word in row {
        let low = (*word as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let high = ((*word >> 64) as u64).wrapping_mul(0xc2b2_ae3d_27d4_eb4f);
        hash = hash.rotate_left(23) ^ low ^ high;
    }
    let hash = (hash ^ hash >> 32).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash ^ hash >> 32
}
