//! Rows of a query of few, passed on one by one as the storage has them.
use engine::Cell;

use crate::SqlError;

/// Takes the rows of a query.
pub trait RowSink {
    /// Takes a row, a cell for each column of the answer. A text is one as it is stored: of `char(n)` without its blanks.
    ///
    /// # Errors
    /// Where it can't be taken, which ends the query.
    fn take(&mut self, row: &[Cell<'_>]) -> Result<(), SqlError>;
}
