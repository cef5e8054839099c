//! The rows of relations of the catalog, before they become arrays.

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
