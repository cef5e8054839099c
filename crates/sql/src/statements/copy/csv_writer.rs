//! Writes CSV as PostgreSQL does: what would read back as something else is quoted.
use std::io::Write;

use arrow_array::{Array, RecordBatch};

use super::csv_reader::END_OF_DATA;
use crate::parsing::copy_options::{CopyOptions, Header};
use crate::text_value;

/// Writes batches to a file.
pub(crate) struct CsvWriter<W> {
    out: W,
    delimiter: u8,
    quote: char,
    escape: char,
    null: String,
    line: Vec<u8>,
}

impl<W: Write> CsvWriter<W> {
    /// A writer that has written the header, if there is to be one.
    pub(crate) fn new(out: W, options: &CopyOptions, names: &[&str]) -> std::io::Result<CsvWriter<W>> {
        let quote = options.quote.unwrap_or(b'"');
        let mut writer = CsvWriter {
            out,
            delimiter: options.delimiter.unwrap_or(b','),
            quote: char::from(quote),
            escape: char::from(options.escape.unwrap_or(quote)),
            null: options.null.clone().unwrap_or_default(),
            line: Vec::new(),
        };
        if options.header != Header::None {
            for (at, name) in names.iter().enumerate() {
                writer.put(at, Some(name), names.len() == 1);
            }
            writer.end_line()?;
        }
        Ok(writer)
    }

    /// Writes a batch.
    pub(crate) fn write(&mut self, batch: &RecordBatch) -> std::io::Result<()> {
        for row in 0..batch.num_rows() {
            for (at, column) in batch.columns().iter().enumerate() {
                self.put(at, text_value(column.as_ref() as &dyn Array, row).as_deref(), batch.num_columns() == 1);
            }
            self.end_line()?;
        }
        Ok(())
    }

    fn put(&mut self, at: usize, text: Option<&str>, is_alone: bool) {
        if at > 0 {
            self.line.push(self.delimiter);
        }
        let Some(text) = text else {
            self.line.extend_from_slice(self.null.as_bytes());
            return;
        };
        let means_something = |c: char| c == char::from(self.delimiter) || c == self.quote || c == '\n' || c == '\r';
        let ends_data = is_alone && text.as_bytes() == END_OF_DATA;
        let needs_quotes = text == self.null || text.contains(means_something) || ends_data;
        if !needs_quotes {
            self.line.extend_from_slice(text.as_bytes());
            return;
        }
        let mut quoted = String::with_capacity(text.len() + 2);
        quoted.push(self.quote);
        for c in text.chars() {
            if c == self.quote || c == self.escape {
                quoted.push(self.escape);
            }
            quoted.push(c);
        }
        quoted.push(self.quote);
        self.line.extend_from_slice(quoted.as_bytes());
    }

    fn end_line(&mut self) -> std::io::Result<()> {
        self.line.push(b'\n');
        self.out.write_all(&self.line)?;
        self.line.clear();
        Ok(())
    }

    /// Where the lines go.
    pub(crate) fn out(&self) -> &W {
        &self.out
    }

    /// The file, with everything written to it.
    pub(crate) fn finish(mut self) -> std::io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, StringArray};

    use super::*;

    #[test]
    fn what_would_change_is_quoted() {
        let texts = StringArray::from(vec![Some("a"), None, Some(""), Some("b,c"), Some("\"x\"\n"), Some("\\.")]);
        let batch = RecordBatch::try_from_iter([("t", Arc::new(texts) as ArrayRef)]).unwrap();
        let options = CopyOptions { header: Header::Present, ..CopyOptions::default() };
        let mut writer = CsvWriter::new(Vec::new(), &options, &["t"]).unwrap();
        writer.write(&batch).unwrap();
        let text = String::from_utf8(writer.finish().unwrap()).unwrap();
        assert_eq!(text, "t\na\n\n\"\"\n\"b,c\"\n\"\"\"x\"\"\n\"\n\"\\.\"\n");
    }
}
