//! The columns of a range that a transaction has filled: made once, by a merge thread or by the transaction when it needs them.
use std::sync::{Arc, OnceLock};

use crate::background::loads::{Load, PlacedColumns};
use crate::state::table_data::TableData;

/// See the module.
pub(crate) struct FilledColumns {
    table: Arc<TableData>,
    range: usize,
    /// the load that they are written to, if they are
    load: Option<Arc<Load>>,
    made: OnceLock<Option<MadeColumns>>,
}

/// What the redo has of columns.
pub(crate) enum MadeColumns {
    /// All of it.
    Bytes(Vec<u8>),
    /// Where they are, and what [`EarlyColumns::with_blobs`](lineage::EarlyColumns::with_blobs) says of them.
    Blobs(PlacedColumns, Vec<u8>),
}

impl FilledColumns {
    /// Those of a range that takes no more records, all of them of one transaction.
    pub(crate) fn new(table: Arc<TableData>, range: usize, load: Option<Arc<Load>>) -> FilledColumns {
        debug_assert!(
            table.storage.is_filled(range, table.storage.range_len(range)),
            "invariant 3: columns of a range that takes records would miss some"
        );
        FilledColumns { table, range, load, made: OnceLock::new() }
    }

    /// Whether they are made.
    pub(crate) fn are_made(&self) -> bool {
        self.made.get().is_some()
    }

    /// Makes them, unless that is done; waits for a thread that does it. `None` where the range is no longer as its records were
    /// inserted, or where the load could not take them, which fails at its end.
    pub(crate) fn make(&self) -> Option<&MadeColumns> {
        self.made.get_or_init(|| self.build()).as_ref()
    }

    fn build(&self) -> Option<MadeColumns> {
        let storage = &self.table.storage;
        let columns = storage.build_columns(self.range)?;
        let Some(load) = &self.load else { return Some(MadeColumns::Bytes(columns.to_bytes())) };
        let placed = load.put(&columns)?;
        debug_assert_eq!(placed.blobs.len(), self.table.schema.columns().len(), "invariant 8: a column would be lost");
        storage.place_columns(self.range, &placed.blobs);
        let said = columns.with_blobs(&placed.blobs);
        Some(MadeColumns::Blobs(placed, said))
    }
}
