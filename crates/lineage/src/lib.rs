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
//! | module | subject |
//! |---|---|
//! | `table` | ranges of a table, insertion, the doors to everything else |
//! | `range` | one range: its slots, pages and update ranges |
//! | `read`, `prefetch` | the version of a record that a snapshot sees |
//! | `write` | appending a version |
//! | `merge`, `merge_texts` | bringing base pages forward |
//! | `kept` | which snapshots a table still has its rows for |
//! | `archive`, `history` | versions that have left the tail, and giving them up |
//! | `fold`, `block`, `scan`, `aggregate`, `overlay` | what a snapshot sees of a range, as batches or totals |
//! | `base`, `encoding`, `row_page`, `insert`, `tail`, `sequence` | the pages |
//! | `words`, `wide`, `heap`, `text` | the values of insert and tail pages; dictionaries of text |
//! | `evict` | pages that are away, and reading them back |
//! | `validation` | whether others changed what a transaction has read |
//! | `statistics`, `sketch`, `past`, `memory` | what is known of a table, its changes, its bytes |
//! | `image`, `codec` | ranges in the blobs of a checkpoint, and back |
//! | `check` | whether pages hold what they say |
//! | `cell`, `column_set`, `view` | values, sets of columns, visibility |
//!
//! The crate does not know transactions, only their ids: it asks [`Outcomes`] what became of one.

mod aggregate;
mod archive;
mod base;
mod block;
mod cell;
mod check;
mod codec;
mod column_set;
mod encoding;
mod evict;
mod fold;
mod heap;
mod history;
mod image;
mod insert;
mod kept;
#[cfg(test)]
mod locks;
#[cfg(test)]
mod long_readers;
#[cfg(all(test, loom))]
mod loom_models;
#[cfg(test)]
mod mechanism;
mod memory;
mod merge;
mod merge_texts;
#[cfg(test)]
mod model;
mod overlay;
#[cfg(test)]
mod paper;
mod past;
mod prefetch;
mod range;
mod read;
mod row_page;
mod scan;
mod sequence;
#[cfg(all(test, shuttle))]
mod shuttle_models;
mod sketch;
mod statistics;
mod table;
mod tail;
mod text;
mod validation;
mod view;
mod wide;
mod words;
mod write;

pub use aggregate::Totals;
pub use block::Request;
pub use cell::{ArrayCells, Cell, ColumnBuilder, Scratch, cell_of_value, is_wide, value_of_cell, word_of_value};
pub use encoding::{Aggregates, Comparison, Encoding, Mask, Sum, Test, Zone};
pub use evict::{Ahead, EvictionStats, HeldBlob, PageError, PageSource};
pub use heap::VALUE_BYTES_MAX;
pub use image::{BlobSink, BlobSource, RangeImage, RestoreError};
pub use kept::{Kept, KeptFrom};
pub use memory::{MemoryBudget, MemoryUse};
pub use merge::MergeReport;
pub use past::Changed;
pub use scan::{BLOCK_ROWS, Projection};
pub use statistics::{ColumnStatistics, TableStatistics};
pub use table::{Table, TableOptions, TableStats};
pub use text::{Encoded, NewTextDictionary, TextDictionary, TextOrder};
pub use validation::Validation;
pub use view::{Outcome, Outcomes, View};
pub use words::Layout;
pub use write::{Appended, Change, WriteError, Writer};
