//! How a query's rows are written: as an aligned table, CSV, JSON or Markdown.
//!
//! A table is held back until its last row, as its columns are as wide as their widest value; the other
//! formats stream. All take the text of values from [`sql::text_value`], which is PostgreSQL's.
use std::io::{self, Write};

use arrow_array::RecordBatch;
use arrow_schema::Schema;
use clap::ValueEnum;
use sql::SqlError;

mod csv;
mod json;
mod markdown;
pub(crate) mod table;
pub(crate) mod width;

/// A format of rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Format {
    /// Aligned columns, as psql writes them
    Table,
    /// Comma-separated values (RFC 4180, lines end in LF)
    Csv,
    /// An array of objects, one a line
    Json,
    /// A Markdown table
    Markdown,
}

impl Format {
    /// The format's name on the command line and in `\format`.
    pub fn name(self) -> &'static str {
        match self {
            Format::Table => "table",
            Format::Csv => "csv",
            Format::Json => "json",
            Format::Markdown => "markdown",
        }
    }
}

/// How rows look.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// The format.
    pub format: Format,
    /// Whether the names of the columns (and a table's row count) are written.
    pub header: bool,
    /// Whether escape sequences for colour may be written.
    pub color: bool,
}

/// Why rows could not be written to their end.
#[derive(Debug)]
pub(crate) enum RowsError {
    /// The query failed on the way.
    Query(SqlError),
    /// The output does not take more.
    Output(io::Error),
}

impl From<io::Error> for RowsError {
    fn from(error: io::Error) -> RowsError {
        RowsError::Output(error)
    }
}

/// One format at work: begun once, then given every batch, then ended.
trait RowWriter {
    fn begin(&mut self, out: &mut dyn Write, schema: &Schema) -> io::Result<()>;
    fn batch(&mut self, out: &mut dyn Write, batch: &RecordBatch) -> io::Result<()>;
    fn end(&mut self, out: &mut dyn Write) -> io::Result<()>;
}

/// Writes all rows; returns how many there were.
pub(crate) fn write_rows(
    out: &mut dyn Write,
    schema: &Schema,
    batches: impl Iterator<Item = Result<RecordBatch, SqlError>>,
    style: Style,
) -> Result<u64, RowsError> {
    let mut writer: Box<dyn RowWriter> = match style.format {
        Format::Table => Box::new(table::TableWriter::new(style)),
        Format::Csv => Box::new(csv::CsvWriter::new(style.header)),
        Format::Json => Box::new(json::JsonWriter::default()),
        Format::Markdown => Box::new(markdown::MarkdownWriter::new(style.header)),
    };
    let mut rows = 0;
    writer.begin(out, schema)?;
    for batch in batches {
        let batch = batch.map_err(RowsError::Query)?;
        rows += batch.num_rows() as u64;
        writer.batch(out, &batch)?;
    }
    writer.end(out)?;
    Ok(rows)
}

#[cfg(test)]
pub(crate) mod test_data {
    //! Rows that every format is tested with.
    use std::sync::Arc;

    use arrow_array::{ArrayRef, BooleanArray, Decimal128Array, Int64Array, RecordBatch, StringViewArray};

    use super::{Format, Style, write_rows};

    /// A batch of bigint, text, numeric and boolean with awkward values.
    pub fn batch() -> RecordBatch {
        let money = Decimal128Array::from(vec![Some(150), Some(-5), None]).with_precision_and_scale(15, 2).unwrap();
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("id", Arc::new(Int64Array::from(vec![Some(1), Some(1 << 60), None]))),
            ("name", Arc::new(StringViewArray::from(vec![Some("a \"b\", c|d"), Some(""), Some("日本\nline")]))),
            ("money", Arc::new(money)),
            ("ok", Arc::new(BooleanArray::from(vec![Some(true), Some(false), None]))),
        ];
        RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true))).unwrap()
    }

    /// Renders some batches in a format.
    pub fn rendered(format: Format, batches: Vec<RecordBatch>) -> String {
        let mut out = Vec::new();
        let style = Style { format, header: true, color: false };
        let schema = batches[0].schema();
        write_rows(&mut out, &schema, batches.into_iter().map(Ok), style).unwrap();
        String::from_utf8(out).unwrap()
    }
}
