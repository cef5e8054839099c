//! The lineage-based storage of L-Store (Sadoghi et al., EDBT 2018): one copy of the data for transactions and
//! analytics, every version kept.
//!
//! A [`Table`] is a list of ranges. A range's records live in insert pages while it fills, then in read-only base pages,
//! encoded, one a column (or one of rows); every later version is appended to the tail pages of the update range that
//! the record belongs to. A record's Indirection word leads to its newest version, each version to the one before. A
//! background merge takes the committed prefix of the tails into new base pages and swaps them in; each page remembers how
//! far it has come (its TPS), so readers put any two pages together for any snapshot. What is merged becomes history, in
//! few bytes, and each version goes when no snapshot needs it, be there older ones in use.
//!
//! Each folder imports only those above it in this table:
//!
//! | folder | subject |
//! |---|---|
//! | `value` | values, sets of columns, kinds of tail records, the snapshots that are kept |
//! | `encoding` | columns of base pages in few bits, and predicates and sums on them |
//! | `content` | what else base pages hold: rows, meta-data of records |
//! | `history` | versions that have left the tail, in few bits |
//! | `codec` | the bytes of pages |
//! | `memory` | the account of memory; pages that go to disk and come back |
//! | `page` | insert, tail, base and history pages |
//! | `record` | ranges; the version of a record that a snapshot sees; appending one; moving merged ones to history |
//! | `scan` | what a snapshot sees of a range: batches, totals, statistics, changes |
//! | `merge` | bringing base pages forward |
//! | `table` | the ranges of a table, insertion, the doors to everything else |
//! | `image` | ranges in the blobs of a checkpoint, and back; whether pages hold what they say |
//!
//! The crate does not know transactions, only their ids: it asks [`Outcomes`] what became of one.

mod codec;
mod content;
mod encoding;
#[doc(hidden)]
pub mod fuzzing;
mod history;
mod image;
mod memory;
mod merge;
mod page;
mod record;
mod scan;
mod table;
#[cfg(test)]
mod tests;
mod value;

pub use codec::rows::{WrittenRows, write_rows};
pub use encoding::{Aggregates, Comparison, Encoding, KeyFilter, KeySet, Mask, Sum, Test, Zone};
pub use image::{BlobSink, BlobSource, PageReading, RangeImage, RestoreError};
pub use memory::budget::{MemoryBudget, MemoryUse};
pub use memory::clock::EvictionStats;
pub use memory::source::{HeldBlob, PageError, PageSource};
pub use merge::early::EarlyColumns;
pub use merge::pages::MergeReport;
pub use page::heap::VALUE_BYTES_MAX;
pub use page::lent::Ahead;
pub use page::options::{TableOptions, TailValues};
pub use page::text::{EncodedText, NewTextDictionary, TextDictionary, TextOrder};
pub use page::words::Layout;
pub use record::append::AppendedRecords;
pub use record::hold::Hold;
pub use record::point::{AppendedVersion, Point, PointColumns, PointHint};
pub use record::view::{Outcome, Outcomes, View};
pub use record::write::{Change, WriteError, Writer};
pub use scan::aggregate::Totals;
pub use scan::past::ChangedRecord;
pub use scan::request::{BLOCK_ROWS, Projection, Request};
pub use scan::split::{BasePage, BasePageId, BaseRowSet, SplitRange};
pub use scan::statistics::{ColumnStatistics, TableStatistics};
pub use scan::stretch::Stretch;
pub use scan::validation::Validation;
pub use table::gather::GatheredColumn;
pub use table::{Points, Table, TableStats};
pub use value::cell::{
    ArrayCells, Cell, Scratch, Storage, cell_of_value, is_wide, put_value_of_word, value_of_cell, word_of_value,
    words_of,
};
pub use value::column_builder::ColumnBuilder;
pub use value::kept::{Kept, KeptFrom};
pub use value::word_rows::WordRows;
