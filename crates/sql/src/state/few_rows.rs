//! The memory of rows that a query of few has passed on, for those of the next one.
use engine::{Value, WordRows};

/// See the module.
#[derive(Default)]
pub(crate) struct FewRows {
    /// rows that were found side by side
    pub(crate) words: WordRows,
    /// the row that is passed on
    pub(crate) row: Vec<Value>,
}
