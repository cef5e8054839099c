//! The rows of relations of the catalog, before they become arrays; and arrays of views on the database itself.
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, StringViewArray};

/// A value of a row.
pub(super) enum Cell {
    Number(i64),
    Text(String),
    Truth(bool),
    Real(f32),
    Numbers(Vec<i64>),
    Texts(Vec<String>),
    /// An interval of so many seconds.
    Seconds(i64),
    /// A moment, in microseconds since 1970.
    Moment(i64),
}

/// The columns of a row that are not NULL, by their names.
pub(super) type Row = Vec<(&'static str, Cell)>;

pub(super) fn text(text: &str) -> Cell {
    Cell::Text(text.to_owned())
}

/// A count as a number of the catalog.
pub(super) fn count(count: usize) -> Cell {
    Cell::Number(i64::try_from(count).unwrap_or(i64::MAX))
}

/// A column of texts.
pub(super) fn texts(texts: impl Iterator<Item = String>) -> ArrayRef {
    Arc::new(texts.map(Some).collect::<StringViewArray>())
}

/// A column of texts, or NULL.
pub(super) fn optional_texts(texts: impl Iterator<Item = Option<String>>) -> ArrayRef {
    Arc::new(texts.collect::<StringViewArray>())
}

/// A column of counts, or NULL.
pub(super) fn numbers(numbers: impl Iterator<Item = Option<u64>>) -> ArrayRef {
    let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    Arc::new(numbers.map(|value| value.map(number)).collect::<Int64Array>())
}
