//! A column of text that is encoded without hashing or sorting a value: the order of its values is known from the
//! dictionaries of insert and tail pages.
//!
//! ```text
//! values    run 0: Albany, Fresno, Oakland     run 1: Berlin, Oakland        ascending, as each dictionary had them
//! numbers          0       1       2                  3       4
//! rows      0, 4, 0, NULL, 2, 3                no row has Fresno
//!           -> Albany, Berlin, Oakland         the runs merged, each value once, without those that no row has
//!           -> 0, 2, 0, NULL, 2, 1             one look at a table for each row
//! ```
use arrow_array::Array;
use arrow_buffer::{BooleanBuffer, NullBuffer};
use types::DataType;

use super::choose::fill_nulls;
use super::column::EncodedColumn;
use super::dictionary::{Entries, buffer_bytes};
use super::form::{Form, Meaning};
use super::integers::Integers;
use super::meaning::IntegerMeaning;
use super::simd::Simd;
use super::zones;

/// The number of a row that is NULL.
pub(crate) const NULL_NUMBER: u32 = u32::MAX;

/// Decides whether a dictionary is worth it: the column's values as they came.
struct Raws {
    /// different values that are used
    distinct: usize,
    /// what the rows take without a dictionary
    bytes: usize,
}

impl EncodedColumn {
    /// Encodes a column of text as a dictionary, from values in known order: `values` are ascending runs, one after
    /// the other, and `numbers` says for each row where its value is among them, or [`NULL_NUMBER`]. `None` if a
    /// dictionary is not worth it.
    pub fn of_texts(values: &[&[u8]], numbers: &[u32], data_type: DataType) -> Option<EncodedColumn> {
        of_numbers(values, numbers, data_type)
    }

    /// The entries of a dictionary of text with the number of the entry that each row has, or [`NULL_NUMBER`]; `None` if the
    /// column is not kept as that.
    pub fn texts(&self) -> Option<(Vec<&[u8]>, Vec<u32>)> {
        let Form::Encoded(integers, Meaning::Entries(Entries::Text(entries))) = &self.form else { return None };
        let is_null = |slot: usize| self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(slot));
        let codes = integers.rows(0, self.len).into_iter().enumerate();
        let numbers = codes.map(|(slot, code)| if is_null(slot) { NULL_NUMBER } else { code as u32 }).collect();
        Some(((0..entries.len()).map(|entry| entries.value(entry).as_bytes()).collect(), numbers))
    }
}

/// The column of rows with these numbers, of values in ascending runs; `None` if it had better not be a dictionary.
fn of_numbers(values: &[&[u8]], numbers: &[u32], data_type: DataType) -> Option<EncodedColumn> {
    let mut uses = vec![0u32; values.len()];
    numbers.iter().filter(|number| **number != NULL_NUMBER).for_each(|number| uses[*number as usize] += 1);
    let (used, raws) = in_order(values, &uses, numbers.len());
    if used.is_empty() || raws.distinct > (numbers.len() / 2).max(1) {
        return None;
    }
    let (entries, codes) = entries_of(values, &used)?;
    let nulls = nulls_of(numbers);
    // A placeholder for NULL is replaced by a neighbour.
    let code = |number: &u32| codes.get(*number as usize).map_or(0, |code| i64::from(*code));
    let mut codes: Vec<i64> = numbers.iter().map(code).collect();
    nulls.iter().for_each(|nulls| fill_nulls(&mut codes, nulls));
    let (simd, limit) = (Simd::best(), raws.bytes / 4 * 3);
    let integers = Integers::smallest(simd, &codes, limit.checked_sub(entries.bytes())?)?;
    let zones = zones::of_keys(simd, &codes, nulls.as_ref());
    let form = Form::Encoded(integers, Meaning::Entries(entries));
    Some(EncodedColumn { data_type, len: numbers.len(), nulls, form, zones })
}

/// The numbers that are used by ascending value, those of equal values next to each other.
fn in_order(values: &[&[u8]], uses: &[u32], len: usize) -> (Vec<u32>, Raws) {
    let mut used: Vec<u32> = (0..values.len() as u32).filter(|number| uses[*number as usize] > 0).collect();
    let value = |number: u32| values[number as usize];
    // The standard library's stable sort finds ascending runs and merges them: one comparison a value for a single run.
    used.sort_by(|left, right| value(*left).cmp(value(*right)));
    let distinct = used.chunk_by(|left, right| value(*left) == value(*right)).count();
    let of_value = |number: &u32| uses[*number as usize] as usize * buffer_bytes(value(*number).len());
    let bytes = len * size_of::<u128>() + used.iter().map(of_value).sum::<usize>();
    (used, Raws { distinct, bytes })
}

/// The entries for numbers in the order of their values, and the code of each number.
fn entries_of(values: &[&[u8]], used: &[u32]) -> Option<(Entries, Vec<u32>)> {
    let mut texts: Vec<&str> = Vec::with_capacity(used.len());
    let mut codes = vec![0; values.len()];
    for number in used {
        let text = std::str::from_utf8(values[*number as usize]).ok()?;
        if texts.last() != Some(&text) {
            texts.push(text);
        }
        codes[*number as usize] = texts.len() as u32 - 1;
    }
    Some((Entries::of_texts(&texts), codes))
}

fn nulls_of(numbers: &[u32]) -> Option<NullBuffer> {
    let valid = BooleanBuffer::collect_bool(numbers.len(), |row| numbers[row] != NULL_NUMBER);
    Some(NullBuffer::new(valid)).filter(|nulls| nulls.null_count() > 0)
}
