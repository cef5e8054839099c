//! The bytes of pages: how columns, rows, meta-data, history and range images lie in the blobs of a checkpoint.
//!
//! Every blob begins with two bytes, what it is and the version of its form; all numbers are little-endian. Arrays of words
//! are copied as they are, so that what is written once is read at the speed of memory; what is small or irregular is put
//! into few bits by the history's packed streams.
//!
//! ```text
//! blob    | kind (8) | format (8) | content
//!
//! kind 1  column page      see `column`      one column of a range, encoded, and its sketch
//!      2  page of rows     see `meta`        all columns of a range in row layout, and their sketches
//!      3  start times      see `meta`        Start Time of the base records
//!      4  update columns   see `meta`        Last Updated Time, Schema Encoding, deletes
//!      5  history page     see `history`     versions that have left the tail
//!      6  range image      see `image`       what else a range is, with references to the others and their outlines
//! ```
//!
//! # What is believed of bytes that are read
//!
//! Nothing. A blob's checksum has been compared, but a decoder does not know that, and must answer bytes of any origin with
//! a [`Damage`] that names what is wrong: it never panics, never reads outside, and takes memory in proportion to what is
//! there. Each length is compared with what is left before anything is taken for it, and whatever later code takes for
//! granted when it computes a place is checked here, once: codes lie in their dictionary, offsets and slots ascend and end
//! where they must, widths are those of words, text is UTF-8, wide decimals have 16 bytes, values lie within their type, NULLs
//! are counted, no time is after the image's own.
pub(crate) mod bytes;
pub(crate) mod cells;
mod column;
mod column_outline;
mod history;
pub(crate) mod meta;
mod numbers;
pub(crate) mod rows;
#[cfg(test)]
mod tests;
mod views;

use types::{DataType, Timestamp};

pub(crate) use bytes::{Damage, Reader, Writer};
pub(crate) use column::{decode_column, encode_column};
pub(crate) use column_outline::{ColumnSummary, FlatNumbers, decode_column_outline, encode_column_outline};
pub(crate) use history::{decode_history_page, encode_history_page};
pub(crate) use meta::{
    decode_rows, decode_start_times, decode_update_columns, encode_rows, encode_start_times, encode_update_columns,
};

/// The kind of a blob.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum BlobKind {
    Column = 1,
    Rows = 2,
    StartTimes = 3,
    UpdateColumns = 4,
    HistoryPage = 5,
    Range = 6,
}

/// The version of the forms of pages.
const FORMAT: u8 = 1;
/// The version of range images: from the second on they have the outlines of their pages.
const RANGE_FORMAT: u8 = 2;

impl BlobKind {
    fn name(self) -> &'static str {
        match self {
            BlobKind::Column => "column page",
            BlobKind::Rows => "page of rows",
            BlobKind::StartTimes => "page of start times",
            BlobKind::UpdateColumns => "page of update columns",
            BlobKind::HistoryPage => "history page",
            BlobKind::Range => "range image",
        }
    }

    /// The version of its form that this program writes; it reads older ones, too.
    fn format(self) -> u8 {
        if self == BlobKind::Range { RANGE_FORMAT } else { FORMAT }
    }

    /// A blob of this kind, to be filled.
    pub(crate) fn begin(self) -> Writer {
        let mut writer = Writer::default();
        writer.byte(self as u8);
        writer.byte(self.format());
        writer
    }

    /// What is left of a blob that was opened before, from a byte on that had been reached.
    pub(crate) fn resume(self, bytes: &[u8], from: usize) -> Reader<'_> {
        Reader::new(bytes.get(from..).unwrap_or_default(), self.name())
    }

    /// The content of a blob, which has to be of this kind.
    pub(crate) fn open(self, bytes: &[u8]) -> Result<Reader<'_>, Damage> {
        self.open_with_format(bytes).map(|(reader, _)| reader)
    }

    /// The content of a blob, which has to be of this kind, and the version of its form.
    pub(crate) fn open_with_format(self, bytes: &[u8]) -> Result<(Reader<'_>, u8), Damage> {
        let mut reader = Reader::new(bytes, self.name());
        let kind = reader.byte("its kind")?;
        reader.check(kind == self as u8, || format!("is a blob of kind {kind}, not {}", self as u8))?;
        let (format, newest) = (reader.byte("its format")?, self.format());
        let is_known = (1..=newest).contains(&format);
        reader.check(is_known, || format!("has format {format}, and this program knows those up to {newest}"))?;
        Ok((reader, format))
    }
}

/// The decoder's knowledge of the range that it reads for.
#[derive(Clone, Copy)]
pub(crate) struct Shape<'a> {
    /// the columns' types
    pub(crate) types: &'a [DataType],
    /// how many slots there are
    pub(crate) len: usize,
    /// when the image was taken: nothing is newer
    pub(crate) at: Timestamp,
}

impl Shape<'_> {
    /// How many words a set of columns takes.
    pub(crate) fn set_words(&self) -> usize {
        self.types.len().div_ceil(64).max(1)
    }

    /// The columns that a word of a set may name.
    pub(crate) fn columns_of_word(&self, i: usize) -> u64 {
        match self.types.len() - i * 64 {
            64.. => u64::MAX,
            left => (1 << left) - 1,
        }
    }

    /// Whether a version may have begun then.
    pub(crate) fn is_committed(&self, start: u64) -> bool {
        start > 0 && start <= self.at.0
    }
}
