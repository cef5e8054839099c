//! How a table's storage is laid out: the sizes that its pages and merges go by.
use crate::page::text::NewTextDictionary;
use crate::page::words::Layout;

/// How a table's storage is laid out.
#[derive(Clone, Copy, Debug)]
pub struct TableOptions {
    /// records in a range, which has its base pages and is merged by itself: a power of two, 2^16 at most
    pub range_records: usize,
    /// records in an update range, the part of a range that shares tail pages: a power of two, a sixteenth of a range to a whole
    /// one
    pub update_range_records: usize,
    /// unmerged tail records at which a range is due for a merge (M in section 6.2 of the paper)
    pub merge_tail_records: u64,
    /// threads that insert and update without meeting each other
    pub workers: usize,
    /// how values lie in memory
    pub layout: Layout,
    /// where the values of new versions lie
    pub tail_values: TailValues,
    /// what makes the dictionaries of text columns in insert pages; without, every value is kept for itself
    pub text_dictionary: Option<NewTextDictionary>,
    /// what makes the dictionaries of text columns in tail pages; without, every value is kept for itself
    pub tail_text_dictionary: Option<NewTextDictionary>,
}

/// Where tail pages have their values.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum TailValues {
    /// Those of the first columns in each record, behind its meta-data, so that a reader by key waits for the memory of one or
    /// two neighbouring cache lines.
    #[default]
    InRecords,
    /// All of them column by column, or as the table's layout says: as in the paper, for tables of which few columns are
    /// updated.
    InColumns,
}

/// Records in an update range by default.
const UPDATE_RANGE_RECORDS: usize = 1 << 16;

impl Default for TableOptions {
    fn default() -> Self {
        Self::with_range(1 << 16)
    }
}

impl TableOptions {
    /// Options for ranges of `range_records` records, a power of two.
    pub fn with_range(range_records: usize) -> TableOptions {
        let workers = std::thread::available_parallelism().map_or(1, usize::from);
        TableOptions {
            range_records,
            update_range_records: range_records.min(UPDATE_RANGE_RECORDS),
            merge_tail_records: (range_records as u64 / 8).max(1),
            workers: workers.min(16),
            layout: Layout::Column,
            tail_values: TailValues::default(),
            text_dictionary: None,
            tail_text_dictionary: None,
        }
    }
}

/// Tail records in one tail page: 2 KiB a column, smaller than base pages (section 4.3, footnote 8).
const PAGE_RECORDS: usize = 256;

/// Tail records in one tail page of an update range: fewer where the range is small.
pub(crate) fn page_records(update_range_records: usize) -> usize {
    (update_range_records / 16).clamp(1, PAGE_RECORDS)
}
