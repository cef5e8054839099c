//! How rows are written: aligned, unaligned or as HTML, CSV, JSON or Markdown, and what `\pset` says of it.
//!
//! Rows of a query stream through `write_rows`; what a command lists is gathered in a `Table`. Both go through a
//! `RowWriter`, which is begun once, given every row, and ended. Aligned and expanded rows are held back until the last one, as
//! columns are as wide as their widest value; the other formats stream.
use std::io::Write;

use arrow_array::{Array, RecordBatch};
use arrow_schema::{Field, Schema};
use sql::SqlError;

use rows::{Column, Footer, Row, RowWriter, RowsError};
use style::{Expanded, Format, Style};

mod aligned;
mod csv;
mod expanded;
mod html;
mod json;
mod markdown;
pub(crate) mod options;
pub(crate) mod rows;
mod signs;
pub mod style;
pub(crate) mod table;
mod unaligned;
pub(crate) mod width;
mod wrapping;

fn writer(style: &Style) -> Box<dyn RowWriter> {
    let is_expanded = style.expanded == Expanded::On;
    match style.format {
        Format::Table | Format::Wrapped if is_expanded => Box::new(expanded::ExpandedWriter::new(style.clone())),
        Format::Table | Format::Wrapped => Box::new(aligned::AlignedWriter::new(style.clone())),
        Format::Unaligned => Box::new(unaligned::UnalignedWriter::new(style.clone())),
        Format::Csv => Box::new(csv::CsvWriter::new(style.clone())),
        Format::Html => Box::new(html::HtmlWriter::new(style.clone())),
        Format::Json => Box::new(json::JsonWriter::default()),
        Format::Markdown => Box::new(markdown::MarkdownWriter::new(style.clone())),
    }
}

/// The columns of a query.
pub(crate) fn columns_of(schema: &Schema) -> Vec<Column> {
    let column = |field: &Field| Column { name: field.name().clone(), oid: sql::wire::oids::of_field(field) };
    schema.fields().iter().map(|field| column(field)).collect()
}

/// The rows of a batch.
pub(crate) fn rows_of<'a>(batch: &'a RecordBatch, columns: &'a [Column]) -> impl Iterator<Item = Row> + 'a {
    let value = |array: &dyn Array, row: usize, column: &Column| {
        let text = sql::text_value(array, row)?;
        Some(if column.is_vector() { sql::vector_text(&text) } else { text })
    };
    let row = move |row| batch.columns().iter().zip(columns).map(|(array, column)| value(array, row, column)).collect();
    (0..batch.num_rows()).map(row)
}

/// Writes all rows of a query; returns how many there were.
pub(crate) fn write_rows(
    out: &mut dyn Write,
    schema: &Schema,
    batches: impl Iterator<Item = Result<RecordBatch, SqlError>>,
    style: &Style,
) -> Result<u64, RowsError> {
    let columns = columns_of(schema);
    let mut writer = writer(style);
    let mut rows = 0;
    writer.begin(out, style.title.as_deref(), &columns)?;
    for batch in batches {
        let batch = batch.map_err(RowsError::Query)?;
        rows += batch.num_rows() as u64;
        rows_of(&batch, &columns).try_for_each(|row| writer.row(out, row))?;
    }
    let footer = if style.footer { Footer::Count(rows) } else { Footer::Nothing };
    writer.end(out, &footer)?;
    Ok(rows)
}

#[cfg(test)]
pub(crate) mod test_data {
    //! Rows that every format is tested with.
    use std::sync::Arc;

    use arrow_array::{ArrayRef, BooleanArray, Decimal128Array, Int64Array, RecordBatch, StringViewArray};

    use super::style::{Format, Style};
    use super::write_rows;

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
        rendered_in(&Style { format, ..Style::default() }, batches)
    }

    /// Renders some batches in a style.
    pub fn rendered_in(style: &Style, batches: Vec<RecordBatch>) -> String {
        let mut out = Vec::new();
        let schema = batches[0].schema();
        write_rows(&mut out, &schema, batches.into_iter().map(Ok), style).unwrap();
        String::from_utf8(out).unwrap()
    }
}
