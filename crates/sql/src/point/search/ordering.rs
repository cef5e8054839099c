//! The rows of a query of few rows in an order, and each combination of values once.
//!
//! One column of text, which is what is mostly sorted, goes by the first eight bytes of each value as a number; the whole values are
//! looked at where these are equal. Where such a column is both the order and all that is given, rows are sorted once, and those that equal
//! the one before are left out. All else goes by Arrow's ways of sorting and of writing rows as bytes.
use std::cmp::Ordering;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, StringViewArray, UInt32Array};
use arrow_schema::{ArrowError, SortOptions};
use arrow_select::take::take_record_batch;
use datafusion::arrow::compute::{SortColumn, lexsort_to_indices};
use datafusion::arrow::row::{RowConverter, SortField};

use crate::error::{Result, SqlError};

/// A column that rows are sorted by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SortKey {
    /// its place among the columns that are read
    pub(crate) place: usize,
    pub(crate) is_down: bool,
    pub(crate) nulls_first: bool,
}

/// The rows in an order; with the places of some columns each combination of their values once, of rows that are given in any order.
pub(super) fn arranged(rows: &RecordBatch, distinct: Option<&[usize]>, order: &[SortKey]) -> Result<RecordBatch> {
    let Some(distinct) = distinct else { return sorted(rows, order) };
    if let ([place], [key]) = (distinct, order)
        && *place == key.place
        && let Some(texts) = rows.column(*place).as_string_view_opt()
    {
        return taken(rows, places_of_each(texts, *key));
    }
    let columns: Vec<ArrayRef> = distinct.iter().map(|place| rows.column(*place).clone()).collect();
    sorted(&taken(rows, first_places(&columns)?)?, order)
}

/// The rows in an order.
pub(crate) fn sorted(rows: &RecordBatch, order: &[SortKey]) -> Result<RecordBatch> {
    if order.is_empty() || rows.num_rows() < 2 {
        return Ok(rows.clone());
    }
    if let [key] = order
        && let Some(texts) = rows.column(key.place).as_string_view_opt()
    {
        return taken(rows, places_of(texts, *key));
    }
    let column = |key: &SortKey| SortColumn {
        values: rows.column(key.place).clone(),
        options: Some(SortOptions { descending: key.is_down, nulls_first: key.nulls_first }),
    };
    let columns: Vec<SortColumn> = order.iter().map(column).collect();
    let places = lexsort_to_indices(&columns, None).map_err(internal)?;
    take_record_batch(rows, &places).map_err(internal)
}

/// Where each combination of values stands first, in the order of the rows.
pub(super) fn first_places(columns: &[ArrayRef]) -> Result<Vec<u32>> {
    if let [column] = columns
        && let Some(texts) = column.as_string_view_opt()
    {
        let mut places = places_of_each(texts, SortKey { place: 0, is_down: false, nulls_first: true });
        places.sort_unstable();
        return Ok(places);
    }
    let fields = columns.iter().map(|column| SortField::new(column.data_type().clone())).collect();
    let converter = RowConverter::new(fields).map_err(internal)?;
    let rows = converter.convert_columns(columns).map_err(internal)?;
    let mut places: Vec<usize> = (0..rows.num_rows()).collect();
    places.sort_unstable_by(|left, right| rows.row(*left).cmp(&rows.row(*right)).then(left.cmp(right)));
    places.dedup_by(|next, first| rows.row(*next) == rows.row(*first));
    places.sort_unstable();
    Ok(places.into_iter().map(|at| at as u32).collect())
}

/// A column of rows that is sorted, row by row.
pub(crate) trait Sorted {
    /// How many rows there are.
    fn len(&self) -> usize;

    /// Whether some value is NULL.
    fn has_null(&self) -> bool;

    fn is_null(&self, row: u32) -> bool;

    /// A number that is smaller where the value is smaller; of a NULL any.
    fn head(&self, row: u32) -> u64;

    /// Compares two values whose heads are equal.
    fn compare(&self, left: u32, right: u32) -> Ordering;

    /// Whether two rows have one value, or none.
    fn is_same(&self, left: u32, right: u32) -> bool;
}

impl Sorted for StringViewArray {
    fn len(&self) -> usize {
        Array::len(self)
    }

    fn has_null(&self) -> bool {
        self.null_count() > 0
    }

    fn is_null(&self, row: u32) -> bool {
        Array::is_null(self, row as usize)
    }

    fn head(&self, row: u32) -> u64 {
        head(self.value(row as usize).as_bytes())
    }

    fn compare(&self, left: u32, right: u32) -> Ordering {
        self.value(left as usize).cmp(self.value(right as usize))
    }

    fn is_same(&self, left: u32, right: u32) -> bool {
        let text = |row: u32| self.is_valid(row as usize).then(|| self.value(row as usize));
        text(left) == text(right)
    }
}

/// The places of values in their order; equal ones in the order in which they stand.
pub(crate) fn places_of(values: &impl Sorted, key: SortKey) -> Vec<u32> {
    let rows = || 0..values.len() as u32;
    let turned = |head: u64| if key.is_down { !head } else { head };
    // Numbers alone are sorted in a fraction of the time: the heads, and behind them the place.
    let mut heads: Vec<u128> = Vec::with_capacity(values.len());
    let there = rows().filter(|row| !values.is_null(*row));
    heads.extend(there.map(|row| u128::from(turned(values.head(row))) << 32 | u128::from(row)));
    heads.sort_unstable();
    let mut places: Vec<u32> = heads.iter().map(|head| *head as u32).collect();
    let mut first = 0;
    for alike in heads.chunk_by(|left, right| left >> 32 == right >> 32) {
        if alike.len() > 1 {
            places[first..first + alike.len()].sort_by(|left, right| match key.is_down {
                false => values.compare(*left, *right),
                true => values.compare(*right, *left),
            });
        }
        first += alike.len();
    }
    let nulls = || rows().filter(|row| values.is_null(*row));
    match (values.has_null(), key.nulls_first) {
        (false, _) => places,
        (true, true) => nulls().chain(places).collect(),
        (true, false) => places.into_iter().chain(nulls()).collect(),
    }
}

/// The places of values in their order, of equal ones the first.
pub(crate) fn places_of_each(values: &impl Sorted, key: SortKey) -> Vec<u32> {
    let mut places = places_of(values, key);
    places.dedup_by(|next, first| values.is_same(*next, *first));
    places
}

/// The first bytes of a text as a number, of which a smaller one is that of a smaller text: shorter texts end with zeros.
pub(crate) fn head(bytes: &[u8]) -> u64 {
    u64::from_be_bytes(bytes.first_chunk().copied().unwrap_or_else(|| {
        let mut head = [0; 8];
        head[..bytes.len()].copy_from_slice(bytes);
        head
    }))
}

fn taken(rows: &RecordBatch, places: Vec<u32>) -> Result<RecordBatch> {
    take_record_batch(rows, &UInt32Array::from(places)).map_err(internal)
}

pub(super) fn internal(error: ArrowError) -> SqlError {
    SqlError::new("XX000", error.to_string())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::Int32Array;
    use arrow_schema::{DataType, Field, Schema};
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};

    use super::*;

    /// Texts of few letters, many of which begin alike, with their numbers.
    fn some_rows(random: &mut StdRng) -> RecordBatch {
        let letters = ["", "\0", "a", "b", "ä", "\u{10ffff}"];
        let starts = ["", "abcdefg", "abcdefgh", "zzzzzzzzzzzz"];
        let text = |random: &mut StdRng| {
            let end: String = (0..random.random_range(0..3)).map(|_| letters[random.random_range(0..6)]).collect();
            random.random_bool(0.9).then(|| format!("{}{end}", starts[random.random_range(0..4)]))
        };
        let texts: Vec<Option<String>> = (0..random.random_range(0..60)).map(|_| text(random)).collect();
        let numbers = Int32Array::from_iter_values(0..texts.len() as i32);
        let fields = vec![Field::new("t", DataType::Utf8View, true), Field::new("n", DataType::Int32, false)];
        let columns: Vec<ArrayRef> = vec![Arc::new(texts.into_iter().collect::<StringViewArray>()), Arc::new(numbers)];
        RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap()
    }

    fn texts(rows: &RecordBatch) -> Vec<Option<String>> {
        rows.column(0).as_string_view().iter().map(|text| text.map(str::to_owned)).collect()
    }

    #[test]
    fn texts_are_ordered_and_told_apart_by_all_their_bytes() {
        let random = &mut StdRng::seed_from_u64(1);
        for _ in 0..300 {
            let rows = some_rows(random);
            let key = SortKey { place: 0, is_down: random.random(), nulls_first: random.random() };
            let mut expected = texts(&rows);
            expected.sort_by(|left, right| match (left, right) {
                (Some(left), Some(right)) if key.is_down => right.as_bytes().cmp(left.as_bytes()),
                (Some(left), Some(right)) => left.as_bytes().cmp(right.as_bytes()),
                (left, right) if key.nulls_first => left.is_some().cmp(&right.is_some()),
                (left, right) => right.is_some().cmp(&left.is_some()),
            });
            assert_eq!(texts(&arranged(&rows, None, &[key]).unwrap()), expected);
            expected.dedup();
            assert_eq!(texts(&arranged(&rows, Some(&[0]), &[key]).unwrap()), expected);
            let mut seen = std::collections::HashSet::new();
            let first: Vec<_> = texts(&rows).into_iter().filter(|text| seen.insert(text.clone())).collect();
            assert_eq!(texts(&arranged(&rows, Some(&[0]), &[]).unwrap()), first);
            let (by_both, both) = ([key, SortKey { place: 1, ..key }], arranged(&rows, Some(&[0, 1]), &[key]).unwrap());
            assert_eq!(texts(&both), texts(&sorted(&rows, &by_both).unwrap()));
        }
    }
}
