//! The columns of a range that a transaction has filled: made once, by a merge thread or by the transaction when it needs them.
use std::sync::{Arc, OnceLock};

use crate::state::table_data::TableData;

/// See the module.
pub(crate) struct FilledColumns {
    table: Arc<TableData>,
    range: usize,
    bytes: OnceLock<Option<Vec<u8>>>,
}

impl FilledColumns {
    /// Those of a range that takes no more records, all of them of one transaction.
    pub(crate) fn new(table: Arc<TableData>, range: usize) -> FilledColumns {
        debug_assert!(
            table.storage.is_filled(range, table.storage.range_len(range)),
            "invariant 3: columns of a range that takes records would miss some"
        );
        FilledColumns { table, range, bytes: OnceLock::new() }
    }

    /// Whether they are made.
    pub(crate) fn are_made(&self) -> bool {
        self.bytes.get().is_some()
    }

    /// Makes them, unless that is done; waits for a thread that does it. Returns their bytes, `None` where the range is no longer as
    /// its records were inserted.
    pub(crate) fn make(&self) -> Option<&[u8]> {
        self.bytes.get_or_init(|| self.table.storage.build_columns(self.range)).as_deref()
    }
}
