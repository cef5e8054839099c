//! The rows that an index is asked for: by the values of its columns in their order, or by a part of space.
use std::ops::Bound;

use types::Value;

use super::space::IndexWindow;

/// The rows that an index is asked for: those that have certain values in the first columns (NULL for IS NULL) and
/// lie between two bounds in the next one. A bound leaves out NULL; a NULL as a bound leaves out all.
#[derive(Clone, PartialEq, Debug)]
pub struct IndexRange {
    /// values of the index's first columns
    pub equal: Vec<Value>,
    /// where the column after these begins
    pub low: Bound<Value>,
    /// where it ends
    pub high: Bound<Value>,
    /// the part of space in place of all this, for an index that is asked so
    pub window: Option<IndexWindow>,
}

impl IndexRange {
    /// All rows.
    pub fn all() -> IndexRange {
        IndexRange::equal(Vec::new())
    }

    /// Rows that have these values in the first columns.
    pub fn equal(values: Vec<Value>) -> IndexRange {
        IndexRange { equal: values, low: Bound::Unbounded, high: Bound::Unbounded, window: None }
    }

    /// Rows that lie between two bounds in the first column.
    pub fn between(low: Bound<Value>, high: Bound<Value>) -> IndexRange {
        IndexRange { equal: Vec::new(), low, high, window: None }
    }

    /// Rows in a part of space.
    pub fn within(window: IndexWindow) -> IndexRange {
        IndexRange { window: Some(window), ..IndexRange::all() }
    }

    /// Whether no row can be in it.
    pub(crate) fn is_empty(&self) -> bool {
        let is_null =
            |bound: &Bound<Value>| matches!(bound, Bound::Included(Value::Null) | Bound::Excluded(Value::Null));
        is_null(&self.low) || is_null(&self.high) || self.window.as_ref().is_some_and(IndexWindow::is_empty)
    }
}
