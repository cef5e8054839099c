//! The request of a scan to the storage.
use arrow_schema::SchemaRef;

use crate::encoding::Test;

/// The request of a scan to the storage.
pub struct Request {
    /// positions of the columns to read, in output order
    pub columns: Vec<usize>,
    /// predicates that rows must pass, with the positions of their columns
    pub tests: Vec<(usize, Test)>,
}

impl Request {
    /// The columns to read: those of the output first, then others that tests need.
    pub(crate) fn all_columns(&self) -> Vec<usize> {
        let mut columns = self.columns.clone();
        for (column, _) in &self.tests {
            if !columns.contains(column) {
                columns.push(*column);
            }
        }
        columns
    }
}

/// The most rows in a batch of a scan.
pub const BLOCK_ROWS: usize = 8_192;

/// The columns that a scan reads.
pub struct Projection {
    /// the columns in output order, and what their rows must pass
    pub request: Request,
    /// whether a last column holds each row's Rid word
    pub with_rid: bool,
    /// the schema of the batches
    pub schema: SchemaRef,
}
